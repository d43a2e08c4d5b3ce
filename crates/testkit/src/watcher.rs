//! A watcher on its bad days: it loses most of what happens, and tells of things that did not.

use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::{BoxStream, unfold};
use model::RelativePath;
use sync::file_system::FileKind;
use sync::scan::Scope;

use crate::clock::VirtualTime;
use crate::coverage::{Coverage, Fault};
use crate::file_system::SimulatedFileSystem;
use crate::random::Dice;

/// A watcher of a folder, together with the user of it.
#[derive(Debug)]
pub struct Watcher {
    /// The folder.
    pub folder: SimulatedFileSystem,
    /// The time.
    pub time: VirtualTime,
    /// What came to be.
    pub coverage: Coverage,
    /// Chance.
    pub dice: Dice,
    /// After how many moments it ends.
    pub left: u32,
}

impl Watcher {
    /// Returns its hints.
    pub fn hints(self) -> BoxStream<'static, Scope> {
        unfold(self, |mut watcher| async move {
            while watcher.left > 0 {
                watcher.left -= 1;
                let pause = Duration::from_millis(watcher.dice.below(2500));
                watcher.time.sleep(pause).await;
                watcher.folder.act();
                if let Some(hint) = watcher.hint() {
                    watcher.coverage.hit(Fault::RescanAfterHint);
                    return Some((hint, watcher));
                }
            }
            None
        })
        .boxed()
    }

    fn hint(&mut self) -> Option<Scope> {
        let directory = match self.dice.below(10) {
            0..4 => self.folder.last_directory()?,
            4..6 => self.any_directory(),
            6 => return Some(Scope::Everything),
            _ => return None,
        };
        Some(Scope::Directories(BTreeSet::from([directory])))
    }

    fn any_directory(&mut self) -> RelativePath {
        let disk = self.folder.disk();
        let mut found = disk.walk();
        found.retain(|(_, key)| disk.file(*key).kind() == FileKind::Directory);
        if found.is_empty() { RelativePath::ROOT } else { self.dice.pick(&found).0.clone() }
    }
}
