//! What happened in a world: a hash that two runs of one seed must share, and lines for people.

use std::fmt::Display;
use std::sync::Arc;

use parking_lot::Mutex;

/// The record of a world; clones share it.
#[derive(Debug, Clone)]
pub struct Record(Arc<Mutex<Inner>>);

#[derive(Debug)]
struct Inner {
    hash: u64,
    is_verbose: bool,
}

impl Record {
    /// Starts a record; a verbose one prints its lines at once, so that they are seen even if the run hangs.
    pub fn new(is_verbose: bool) -> Self {
        Self(Arc::new(Mutex::new(Inner { hash: 0xcbf2_9ce4_8422_2325, is_verbose })))
    }

    /// Mixes a number into the hash.
    pub fn mix(&self, number: u64) {
        let mut inner = self.0.lock();
        inner.hash = (inner.hash ^ number).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(23);
    }

    /// Mixes bytes into the hash.
    pub fn mix_bytes(&self, bytes: &[u8]) {
        for piece in bytes.chunks(8) {
            let mut number = [0; 8];
            number[..piece.len()].copy_from_slice(piece);
            self.mix(u64::from_le_bytes(number) ^ piece.len() as u64);
        }
    }

    /// Notes what happened, with details that are only for people.
    pub fn note(&self, what: &str, details: impl Display) {
        self.mix_bytes(what.as_bytes());
        if self.0.lock().is_verbose {
            print_line(&format!("{what} {details}"));
        }
    }

    /// Tells whether people look on.
    pub fn is_verbose(&self) -> bool {
        self.0.lock().is_verbose
    }

    /// Returns the hash of everything so far.
    pub fn hash(&self) -> u64 {
        self.0.lock().hash
    }
}

fn print_line(line: &str) {
    use std::io::Write;
    // A closed pipe is no reason to stop.
    let _ = writeln!(std::io::stderr(), "{line}");
}
