use content::documents::PHOTOGRAPH;
use content::jpeg;
use model::ChunkRef;

use super::*;
use crate::error::Result;
use crate::files::bases::tests::World;

/// How many bytes the pictures have of which a few are read.
const LENGTH: usize = 60_000;

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

async fn read(world: &World, end: &[u8], open: &mut OpenRecords) -> Result<()> {
    let chunk: ChunkRef = world.chunk(end);
    let packs = world.test.app.locate(world.reading, &[chunk]).await?.remove(0);
    let namer = world.keys.content().namer();
    let bytes = world.test.app.chunk(world.reading, (&chunk, &packs), &namer, open).await?;
    assert_eq!(bytes, end);
    Ok(())
}

#[tokio::test]
async fn pictures_that_are_read_in_turn_are_opened_once() {
    let mut world = World::start().await;
    let ends = add_pictures(&mut world, 3).await;
    let mut open = OpenRecords::default();
    for _ in 0..5 {
        for end in &ends {
            read(&world, end, &mut open).await.expect("read");
        }
    }
    assert_eq!(open.allowance.opened(), 3 * LENGTH as u64);
}

/// Whatever somebody has stored, and in whatever order it is read.
#[tokio::test]
async fn what_a_request_opens_of_pictures_is_bounded_by_what_it_reads() {
    let mut world = World::start().await;
    // More than are kept open.
    let count = PICTURES_LENGTH_MAX / LENGTH + 10;
    let ends = add_pictures(&mut world, count as u32).await;
    let (mut open, mut opened) = (OpenRecords::default(), 0);
    let failure = loop {
        match read(&world, &ends[opened % count], &mut open).await {
            Ok(()) => opened += 1,
            Err(error) => break error,
        }
    };
    assert!(failure.to_string().contains("more pictures"), "{failure}");
    let allowed = (128 << 20) + 16 * 4 * opened;
    assert!((allowed - LENGTH..=allowed).contains(&(opened * LENGTH)), "{opened}");
    let kept: usize = open.kept.iter().map(|open| open.record.plain_len()).sum();
    assert!(kept <= PICTURES_LENGTH_MAX + LENGTH);
    // Another request begins anew.
    read(&world, &ends[0], &mut OpenRecords::default()).await.expect("read");
}
