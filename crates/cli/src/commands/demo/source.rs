//! Files to show it on: a project like those that people have, made from a fixed seed.

use std::path::{Path, PathBuf};

use super::scene::{make_folder, write};
use crate::error::Result;

/// How many source files there are.
const SOURCES: usize = 1900;

/// How many pictures, which do not compress.
const PICTURES: usize = 24;

/// Length of a picture in bytes.
const PICTURE_LENGTH: usize = 256 * 1024;

const WORDS: &[&str] = &[
    "account", "answer", "before", "block", "branch", "change", "cloud", "commit", "copy",
    "device", "entry", "every", "file", "folder", "from", "hash", "head", "index", "key", "later",
    "length", "line", "local", "merge", "name", "node", "order", "other", "owner", "pack", "path",
    "plain", "queue", "read", "remote", "return", "server", "state", "store", "sync", "table",
    "token", "tree", "value", "version", "watch", "when", "where", "with", "write",
];

/// Numbers that look random and are always the same (xorshift).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }

    fn word(&mut self) -> &'static str {
        WORDS[self.below(WORDS.len())]
    }

    fn text(&mut self, lines: usize) -> String {
        let mut text = String::new();
        for _ in 0..lines {
            for _ in 0..3 + self.below(9) {
                text.push_str(self.word());
                text.push(' ');
            }
            text.push('\n');
        }
        text
    }
}

/// Makes the project.
pub(super) fn generate(root: &Path) -> Result<()> {
    let mut numbers = Numbers(0x5eed_cafe_f00d_1234);
    for room in 0..12 {
        for part in 0..8 {
            make_folder(&root.join(format!("src/room-{room:02}/part-{part}")))?;
        }
    }
    for number in 0..SOURCES {
        let (room, part) = (numbers.below(12), numbers.below(8));
        let path = PathBuf::from(format!(
            "src/room-{room:02}/part-{part}/{}-{number}.txt",
            numbers.word()
        ));
        let lines = numbers.below(160);
        write(&root.join(path), numbers.text(lines).as_bytes())?;
    }
    make_folder(&root.join("pictures"))?;
    for number in 0..PICTURES {
        let bytes: Vec<u8> =
            (0..PICTURE_LENGTH / 8).flat_map(|_| numbers.next().to_le_bytes()).collect();
        write(&root.join(format!("pictures/{number:02}.raw")), &bytes)?;
    }
    make_folder(&root.join("empty/very"))?;
    write(&root.join("README.md"), numbers.text(40).as_bytes())?;
    write(&root.join("notes.md"), numbers.text(60).as_bytes())?;
    write(&root.join("nothing"), b"")?;
    write(&root.join("\u{dc}nic\u{f6}de \u{1f600} name.txt"), b"any name will do\n")?;
    Ok(())
}
