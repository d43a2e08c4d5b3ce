use std::time::Duration;

use content::documents::PHOTOGRAPH;
use content::jpeg;
use model::ChunkRef;
use tokio::time::timeout;

use super::*;
use crate::error::{Result, ServerError};
use crate::files::bases::tests::World;

/// How many bytes the pictures have of which a few are read.
const LENGTH: usize = 60_000;

/// As how much work it counts to open one.
const WORK: u64 = 64 * LENGTH as u64;

/// Stores pictures; returns the last bytes of each, which are a chunk.
async fn add_pictures(world: &mut World, count: u32) -> Vec<Vec<u8>> {
    let mut ends = Vec::new();
    for number in 0..count {
        let noise = blake3::Hasher::new().update(&number.to_be_bytes()).finalize_xof();
        let mut file = PHOTOGRAPH.to_vec();
        file.resize(LENGTH, 0);
        noise.clone().fill(&mut file[PHOTOGRAPH.len()..]);
        let (start, end) = file.split_at(LENGTH - 4);
        let mut writer = world.writer();
        let form = jpeg::shorten(&file).expect("it is a picture");
        let chunks = [world.chunk(start), world.chunk(end)];
        assert!(writer.push_picture(&chunks, &form).expect("packed"));
        ends.push(end.to_vec());
        world.add(writer).await;
    }
    ends
}

async fn read(world: &World, bytes: &[u8], open: &mut OpenRecords) -> Result<()> {
    let chunk: ChunkRef = world.chunk(bytes);
    let packs = world.test.app.locate(world.reading, &[chunk]).await?.remove(0);
    let namer = world.keys.content().namer();
    let read = world.test.app.chunk(world.reading, (&chunk, &packs), &namer, open).await?;
    assert_eq!(read, bytes);
    Ok(())
}

#[tokio::test]
async fn pictures_are_opened_once_whoever_reads_them_in_turn() {
    let mut world = World::start().await;
    let ends = add_pictures(&mut world, 3).await;
    let (mut open, mut other) = (OpenRecords::default(), OpenRecords::default());
    for _ in 0..5 {
        for end in &ends {
            read(&world, end, &mut open).await.expect("read");
            read(&world, end, &mut other).await.expect("read");
        }
    }
    assert_eq!((open.allowance.done(), other.allowance.done()), (3 * WORK, 0));
}

/// Whatever somebody has stored, and in whatever order it is read.
#[tokio::test]
async fn what_a_request_works_is_bounded_by_what_it_reads() {
    let mut world = World::start().await;
    let ends = add_pictures(&mut world, 5).await;
    let mut open = OpenRecords::default();
    // It has opened many before, for nothing.
    open.allowance.count((1 << 32) - 3 * WORK);
    for end in &ends[..4] {
        read(&world, end, &mut open).await.expect("read");
    }
    let failure = read(&world, &ends[4], &mut open).await.expect_err("it reads 4 bytes of each");
    assert!(matches!(failure, ServerError::TooMuchWork), "{failure}");
    assert_eq!(open.allowance.done(), (1 << 32) + WORK);
    // What is open costs nothing, and another request begins anew.
    read(&world, &ends[0], &mut open).await.expect("read");
    read(&world, &ends[4], &mut OpenRecords::default()).await.expect("read");
}

#[tokio::test]
async fn what_is_kept_open_for_all_is_bounded() {
    let mut world = World::start().await;
    let ends = add_pictures(&mut world, 1).await;
    read(&world, &ends[0], &mut OpenRecords::default()).await.expect("read");
    let dear = &world.test.app.files.dear_records.kept;
    let record =
        |kept: &Kept| kept.records.iter().next().map(|(name, (_, it))| (*name, it.clone()));
    let ((workspace, pack, _), record) = record(&dear.0.lock()).expect("it is kept");
    let count = KEPT_LENGTH_MAX / weight(&record);
    for number in 0..=count + 1 {
        dear.keep((workspace, pack, number), &record);
        // It is used all the time.
        assert!(dear.get(&(workspace, pack, 0)).is_some());
    }
    let kept = |number| dear.get(&(workspace, pack, number)).is_some();
    let all: Vec<bool> = (0..=count + 1).map(kept).collect();
    assert_eq!(all.iter().position(|is_kept| !is_kept), Some(1));
    assert_eq!(all.iter().filter(|is_kept| **is_kept).count(), count);
}

#[tokio::test]
async fn what_a_delta_was_made_from_is_open_for_the_next_one_and_forgotten_where_it_is_damaged() {
    let mut world = World::start().await;
    let plain = vec![7; 1000];
    world.add_whole(std::slice::from_ref(&plain)).await;
    let edited = Arc::clone(&world.test.app.files.edited_records);
    let count = || edited.0.lock().records.len();
    read(&world, &plain, &mut OpenRecords::default()).await.expect("read");
    assert_eq!(count(), 0, "who reads a file keeps nothing for others");
    read(&world, &plain, &mut OpenRecords::again(&edited)).await.expect("read");
    let mut open = OpenRecords::again(&edited);
    read(&world, &plain, &mut open).await.expect("read");
    assert_eq!((count(), edited.0.lock().next), (1, 2), "it was used twice");
    let name = open.last.as_ref().map(|(name, _)| *name).expect("it is open");
    open.forget(&name, &world.test.app.files.dear_records);
    assert_eq!((count(), open.last.is_none(), edited.0.lock().length), (0, true, 0));
}

#[tokio::test]
async fn chunk_behind_the_last_one_is_had_without_looking_for_it_and_never_with_wrong_bytes() {
    let mut world = World::start().await;
    let files: Vec<Vec<u8>> = (1..=4).map(|number| vec![number; 1000]).collect();
    let chunks: Vec<ChunkRef> = files.iter().map(|bytes| world.chunk(bytes)).collect();
    let wrong = world.chunk(&[5; 1000]);
    let mut writer = world.writer();
    for (chunk, bytes) in chunks.iter().zip(&files) {
        writer.push(*chunk, bytes).expect("packed");
    }
    writer.push(wrong, &files[0]).expect("packed");
    world.add(writer).await;
    let mut open = OpenRecords::default();
    assert_eq!(open.near(&chunks[0]), None);
    read(&world, &files[0], &mut open).await.expect("read");
    for (number, is_near) in
        [(0, true), (2, false), (1, true), (1, true), (0, false), (2, true), (3, true)]
    {
        let expected = is_near.then_some(&files[number][..]);
        assert_eq!(open.near(&chunks[number]), expected, "{number}");
    }
    let longer = ChunkRef { length: 1001, ..chunks[3] };
    assert_eq!(open.near(&longer), None);
    assert_eq!(open.near(&wrong), None);
}

#[tokio::test]
async fn others_are_read_while_pictures_wait_for_each_other() {
    let mut world = World::start().await;
    let ends = add_pictures(&mut world, 2).await;
    let plain = vec![7; 1000];
    world.add_whole(std::slice::from_ref(&plain)).await;
    read(&world, &ends[0], &mut OpenRecords::default()).await.expect("read");
    let dear = &world.test.app.files.dear_records;
    let mut turns = Vec::new();
    for _ in 0..openings_at_once_max() {
        turns.push(dear.turn().await.expect("a turn"));
    }
    let wait = Duration::from_millis(200);
    for (bytes, is_read) in [(&plain, true), (&ends[0], true), (&ends[1], false)] {
        let mut open = OpenRecords::default();
        let read = timeout(wait, read(&world, bytes, &mut open)).await;
        assert_eq!(read.is_ok(), is_read);
        read.unwrap_or(Ok(())).expect("read");
    }
    turns.pop();
    read(&world, &ends[1], &mut OpenRecords::default()).await.expect("read");
}
