//! A bit is flipped in every object of an encrypted workspace over three stores, at one place after the other.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{Device, noise};

const PASSPHRASE: &str = "correct horse";

/// Flipped are the first bytes one by one, which are headers, and after that one in so many.
const HEADER: usize = 16;
const STEP: usize = 4096;

/// Three stores and a device that has synced a few small files into them.
struct Small {
    room: tempfile::TempDir,
    one: Device,
}

impl Small {
    fn new(kept: [&str; 2]) -> Self {
        let room = tempfile::tempdir().unwrap();
        let one = Device::new(room.path(), "one");
        let this = Self { room, one };
        // Too large to travel in the log.
        this.one.write("large", noise(70_000));
        this.one.write("deep/small", "small\n");
        let mut words = vec!["init", "--workspace", "Notes"];
        let backends = [0, 1, 2].map(|number| this.backend(number));
        words.extend(backends.iter().flat_map(|backend| ["--backend", backend]));
        words.extend(kept);
        this.one.run_with_passphrase(PASSPHRASE, &words).ok();
        this.one.sync().ok();
        this
    }

    fn backend(&self, number: usize) -> String {
        format!("s{number}=file:{}", self.store(number).display())
    }

    fn store(&self, number: usize) -> PathBuf {
        self.room.path().join(format!("store{number}"))
    }

    /// All files of a store whose path has one of these words in it.
    fn objects(&self, number: usize, words: &[&str]) -> BTreeMap<PathBuf, Vec<u8>> {
        let (mut found, mut waiting) = (BTreeMap::new(), vec![self.store(number)]);
        while let Some(folder) = waiting.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    waiting.push(path);
                } else if words.iter().any(|word| path.to_string_lossy().contains(word)) {
                    found.insert(path.clone(), fs::read(&path).unwrap());
                }
            }
        }
        found
    }
}

fn flip(path: &Path, bytes: &[u8], offset: usize) {
    let mut bytes = bytes.to_vec();
    bytes[offset] ^= 1 << (offset % 8);
    fs::write(path, bytes).unwrap();
}

/// The places at which the objects are damaged, up to the length of the longest.
fn offsets(objects: &BTreeMap<PathBuf, Vec<u8>>) -> Vec<usize> {
    let length = objects.values().map(Vec::len).max().unwrap_or_default();
    (0..HEADER).chain((HEADER..length).step_by(STEP)).chain(length.checked_sub(1)).collect()
}

#[test]
fn every_flipped_bit_of_the_data_is_found_and_mended() {
    for kept in [["--replicas", "2"], ["--erasure", "2/3"]] {
        let small = Small::new(kept);
        let stores =
            [0, 1, 2].map(|number| small.objects(number, &["/packs/", "/blocks/", "/pages/"]));
        let longest = stores.iter().max_by_key(|objects| offsets(objects).len()).unwrap();
        for (round, offset) in offsets(longest).into_iter().enumerate() {
            // One piece of each object at most, so that the others give it back.
            let objects = &stores[round % 3];
            let flipped: Vec<_> =
                objects.iter().filter(|(_, bytes)| offset < bytes.len()).collect();
            for (path, bytes) in &flipped {
                flip(path, bytes, offset);
            }
            let found = small.one.run(&["check", "--read-data", "--json"]);
            let damaged = found.json()["damaged"].as_u64();
            assert_eq!(damaged, Some(flipped.len() as u64), "at {offset}: {found:?}");
            small.one.run(&["check", "--read-data", "--repair", "--json"]).ok();
            for (path, bytes) in flipped {
                assert!(fs::read(path).unwrap() == *bytes, "{} at {offset}", path.display());
            }
        }
    }
}

#[test]
fn no_flipped_bit_of_one_store_gives_a_new_device_anything_wrong() {
    let small = Small::new(["--replicas", "2"]);
    let objects = small.objects(1, &["/workspaces/"]);
    let (count, longest) = (24, objects.values().map(Vec::len).max().unwrap());
    for round in 0..count {
        for (path, bytes) in &objects {
            // Spread over each object, whatever its length.
            flip(path, bytes, (round * longest / count) % bytes.len());
        }
        let other = Device::new(small.room.path(), &format!("other{round}"));
        let folder = other.folder.to_str().unwrap();
        let backend = small.backend(if round % 2 == 0 { 0 } else { 2 });
        other
            .run_with_passphrase(PASSPHRASE, &["clone", "Notes", folder, "--backend", &backend])
            .ok();
        assert_eq!(other.tree(), small.one.tree(), "round {round}");
        for (path, bytes) in &objects {
            fs::write(path, bytes).unwrap();
        }
    }
}
