#![expect(clippy::disallowed_methods, reason = "the test plays the user")]

use std::fs;

use super::*;
use crate::engine::fixture::room::{Room, folder, noise};
use crate::file_system::native::NativeFileSystem;
use crate::scan::Scope;

const LENGTH: usize = 3_000_000;

#[tokio::test(start_paused = true)]
async fn received_edit_is_made_from_what_lies_in_the_folder() {
    let room = Room::new();
    let folders = [folder(), folder()];
    let mut film = noise(1, LENGTH);
    // Both have it from elsewhere: neither has fetched anything that it could still remember.
    for folder in &folders {
        fs::write(folder.path().join("film"), &film).expect("written");
    }
    let (mut one, _) = room.device(&folders[0], 1).await;
    let (mut other, _) = room.device(&folders[1], 2).await;
    one.sync(Scope::Everything).await.expect("syncs");
    other.sync(Scope::Everything).await.expect("syncs");
    for edits in [1, 3] {
        for edit in 0..edits {
            // Never back to what it was: that would rest whole, and not in the folder.
            film[LENGTH / 2 + 10 * edits + edit] ^= 1;
            film.extend(noise(edit as u8, 100));
            fs::write(folders[0].path().join("film"), &film).expect("written");
            one.sync(Scope::Everything).await.expect("syncs");
        }
        let report = other.sync(Scope::Everything).await.expect("syncs");
        assert!(fs::read(folders[1].path().join("film")).expect("read") == film);
        assert!(report.received == 1 && report.received_bytes < 10_000, "{report:?}");
    }
}

#[test]
fn only_what_is_as_its_id_says_is_at_hand() {
    let folder = folder();
    let file_system = NativeFileSystem::open(folder.path()).expect("opens");
    let namer = content::WorkspaceContentKeys::derive(&[7; 32]).namer();
    let bytes = noise(1, 3000);
    let chunk = |at: usize| {
        let bytes = &bytes[at..at + 1000];
        (ChunkRef { id: namer.name(bytes), length: 1000 }, at as u64)
    };
    let chunks = [chunk(0), chunk(1000), chunk(2000)];
    let path = RelativePath::new(b"film").expect("a path");
    let read = || read_right_ones(&file_system, &path, &chunks, &namer);
    assert!(read().is_empty(), "nothing is there");
    let place = folder.path().join("film");
    fs::create_dir(&place).expect("made");
    assert!(read().is_empty(), "a folder is there");
    fs::remove_dir(&place).expect("removed");
    fs::write(&place, &bytes).expect("written");
    let all = read();
    assert!(chunks.iter().all(|(chunk, at)| all[&chunk.id] == bytes[*at as usize..][..1000]));
    let mut edited = bytes.clone();
    edited[1500] ^= 1;
    edited.truncate(2500);
    fs::write(&place, &edited).expect("written");
    let some = read();
    assert!(
        some.len() == 1 && some.contains_key(&chunks[0].0.id),
        "one was edited, one is cut off"
    );
}
