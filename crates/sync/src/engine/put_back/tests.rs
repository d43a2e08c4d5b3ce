//! New devices, which know packs and pages from the checkpoint alone, after something of them was lost.

#![expect(clippy::disallowed_methods, reason = "the test plays the user")]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use commit_log::serverless::slot_log::SlotCommitLog;

use super::*;
use crate::engine::fixture::{Counting, Stopped, engine};
use crate::state::State;

struct World {
    room: tempfile::TempDir,
    dice: Arc<Counting>,
}

impl World {
    async fn new() -> Self {
        let this = Self { room: tempfile::tempdir().unwrap(), dice: Arc::default() };
        let genesis = this.device("one").environment.log.genesis().clone();
        let url = format!("file:{}", this.room.path().join("store").display());
        let store = storage::open(&url).unwrap();
        SlotCommitLog::create(store, Arc::new(Stopped), genesis).await.unwrap();
        this
    }

    fn folder(&self, name: &str) -> PathBuf {
        self.room.path().join(name)
    }

    fn device(&self, name: &str) -> Engine {
        std::fs::create_dir_all(self.folder(name)).unwrap();
        let mut engine =
            engine(&self.folder(name), &self.room.path().join("store"), State::in_memory());
        engine.environment.random = self.dice.clone();
        engine
    }

    /// The objects of a kind.
    fn objects(&self, kind: &str) -> Vec<PathBuf> {
        let (mut found, mut waiting) = (Vec::new(), vec![self.room.path().join("store")]);
        while let Some(path) = waiting.pop() {
            for entry in std::fs::read_dir(path).unwrap() {
                let path = entry.unwrap().path();
                match path.is_dir() {
                    true => waiting.push(path),
                    false if path.to_string_lossy().contains(kind) => found.push(path),
                    false => {}
                }
            }
        }
        found.sort();
        found
    }

    /// Lets the log have enough entries for a checkpoint.
    async fn fill_log(&self, engine: &mut Engine, name: &str) {
        for number in 0..260 {
            std::fs::write(self.folder(name).join("counter"), format!("{number}")).unwrap();
            engine.sync(Scope::Everything).await.unwrap();
        }
    }
}

fn flip(path: &Path, at: usize) {
    let mut bytes = std::fs::read(path).unwrap();
    bytes[at] ^= 1;
    std::fs::write(path, bytes).unwrap();
}

fn noise() -> Vec<u8> {
    let mut bytes = vec![0; 3 << 20];
    blake3::Hasher::new().finalize_xof().fill(&mut bytes);
    bytes
}

#[tokio::test]
async fn new_device_takes_a_chunk_from_whichever_pack_has_it_right() {
    let world = World::new().await;
    let mut one = world.device("one");
    // Something before it, so that what is made anew is no copy of the pack.
    for (name, bytes) in [("a", &b"first"[..].repeat(9000)), ("noise", &noise())] {
        std::fs::write(world.folder("one").join(name), bytes).unwrap();
    }
    one.sync(Scope::Everything).await.unwrap();
    let [damaged] = world.objects("/packs/").try_into().unwrap();
    let original = std::fs::read(&damaged).unwrap();
    let middle = original.len() / 2;
    flip(&damaged, middle);
    std::fs::remove_file(world.folder("one").join("a")).unwrap();
    one.sync(Scope::Everything).await.unwrap();
    let lost = one.lost_packs(true).await.unwrap();
    assert_eq!(lost.len(), 1);
    let done = one.put_back(&lost).await.unwrap();
    assert!(done.packs > 0 && done.chunks > 10, "{done:?}");
    world.fill_log(&mut one, "one").await;
    assert!(!world.objects("/checkpoint/").is_empty());
    // In the checkpoint packs stand by their ids, and nobody can tell which is the newer one.
    let packs = world.objects("/packs/");
    assert!(packs.len() > 1);
    for number in 0..2 {
        let name = format!("new{number}");
        let mut new = world.device(&name);
        let report = new.sync(Scope::Everything).await.unwrap();
        assert_eq!(report.problems, []);
        assert_eq!(std::fs::read(world.folder(&name).join("noise")).unwrap(), noise());
        // Once more with the other one damaged.
        std::fs::write(&damaged, &original).unwrap();
        let others = packs.iter().filter(|pack| **pack != damaged);
        let other = others.max_by_key(|pack| pack.metadata().unwrap().len()).unwrap();
        flip(other, 20_000);
    }
}

#[tokio::test]
async fn damaged_checkpoint_keeps_nobody_out_and_is_made_anew() {
    let world = World::new().await;
    let mut one = world.device("one");
    world.fill_log(&mut one, "one").await;
    assert_eq!(one.stored_pages().await.unwrap().len(), world.objects("/pages/").len());
    for (number, is_gone) in [false, true].into_iter().enumerate() {
        let id = *one.stored_pages().await.unwrap().last().unwrap();
        let [page] = world.objects(&id.to_string()).try_into().unwrap();
        match is_gone {
            false => flip(&page, 20),
            true => std::fs::remove_file(page).unwrap(),
        }
        let name = format!("new{number}");
        let mut new = world.device(&name);
        let report = new.sync(Scope::Everything).await.unwrap();
        assert_eq!(std::fs::read(world.folder(&name).join("counter")).unwrap(), b"259");
        assert!(report.void_entries[0].reason.contains("checkpoint"), "{report:?}");
        assert!(new.stored_pages().await.unwrap().contains(&id));
        assert_eq!(new.renew_pages(&BTreeSet::from([id])).await.unwrap(), 1);
        let mut last = world.device(&format!("last{number}"));
        assert_eq!(last.sync(Scope::Everything).await.unwrap().void_entries, []);
    }
}
