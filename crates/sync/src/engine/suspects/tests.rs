//! What is taken for damaged, and what becomes of it.

#![expect(clippy::disallowed_methods, reason = "the test plays the user, and the power cut")]

use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use model::testing::node;
use model::{Clock, RelativePath, Timestamp};

use super::*;
use crate::engine::fixture::{engine, look, record};
use crate::file_system::Stat;
use crate::plan::LocalMatter;
use crate::scan::Scope;
use crate::state::{State, SyncedNode};

/// A clock that lets a program finish what it was writing while somebody waits.
#[derive(Debug)]
struct Meanwhile(PathBuf);

impl Clock for Meanwhile {
    fn now(&self) -> Timestamp {
        Timestamp::default()
    }

    fn elapsed(&self) -> Duration {
        Duration::ZERO
    }

    fn sleep(&self, _: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        std::fs::write(&self.0, "written anew").expect("writes");
        Box::pin(std::future::ready(()))
    }
}

struct Rig {
    folder: tempfile::TempDir,
    _store: tempfile::TempDir,
    engine: Engine,
}

/// A folder with one file, of which the merge base remembers the same times and another size.
fn rig() -> Rig {
    let (folder, store) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    std::fs::write(folder.path().join("file"), "").unwrap();
    let mut engine = engine(folder.path(), store.path(), State::in_memory());
    let found = engine.environment.file_system.stat(&path()).unwrap().unwrap();
    let stat = Some(Stat { size: 7, ..found });
    let row =
        SyncedNode { node: node(1), version: 1, record: record("file", 7), stat, pending: None };
    engine.state.set_synced(&row).unwrap();
    engine.begin().unwrap();
    Rig { folder, _store: store, engine }
}

fn path() -> RelativePath {
    RelativePath::new(b"file").unwrap()
}

fn matter(engine: &Engine) -> LocalMatter {
    engine.overlay.get(&node(1)).unwrap().local.matter.clone()
}

#[test]
fn file_that_lost_its_bytes_is_suspect() {
    let mut rig = rig();
    look(&mut rig.engine, &Scope::Everything);
    assert_eq!(matter(&rig.engine), LocalMatter::Suspect);
    let kinds: Vec<_> =
        rig.engine.overlay.problems.iter().map(|found| found.kind.clone()).collect();
    assert_eq!(kinds, [ProblemKind::Suspect]);
}

/// Saving a file anew cuts it off first, and file systems set the size before the times.
#[test]
fn file_that_is_just_being_written_is_not_suspect() {
    let mut rig = rig();
    rig.engine.environment.clock = Arc::new(Meanwhile(rig.folder.path().join("file")));
    look(&mut rig.engine, &Scope::Everything);
    assert_eq!(matter(&rig.engine), LocalMatter::Touched);
    assert!(rig.engine.overlay.problems.is_empty());
}

/// A run that is cut off, or whose disk is full, between the trash and the good version must not leave a deletion.
#[test]
fn suspect_in_the_trash_does_not_look_deleted() {
    for is_trashed in [false, true] {
        let mut rig = rig();
        look(&mut rig.engine, &Scope::Everything);
        rig.engine.state.set_fact(SUSPECTS, node(1).as_bytes()).unwrap();
        if is_trashed {
            std::fs::remove_file(rig.folder.path().join("file")).unwrap();
        }
        rig.engine.forget_trashed_suspects().unwrap();
        assert_eq!(rig.engine.state.synced(&node(1)).unwrap().is_none(), is_trashed);
        assert_eq!(rig.engine.state.unsynced().unwrap().contains(&node(1)), is_trashed);
        assert_eq!(rig.engine.state.fact(SUSPECTS).unwrap(), None);
    }
}
