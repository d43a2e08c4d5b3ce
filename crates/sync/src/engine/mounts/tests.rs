//! Two devices of one workspace, in which a folder becomes a workspace of its own.

#![expect(clippy::disallowed_methods, reason = "the test plays the user")]

use std::path::PathBuf;
use std::sync::Arc;

use futures_util::FutureExt;
use model::codec::encode_message;
use model::{DeviceId, WorkspaceId};
use storage::{ObjectKey, PutMode};
use tempfile::TempDir;

use super::*;
use crate::engine::fixture::{Counting, engine};
use crate::engine::{Keep, SyncReport};

/// The first device has mounted `shared`; the other has what was synced before.
struct Scene {
    room: TempDir,
    one: Engine,
    other: Engine,
}

const INNER: Mount = Mount { workspace: WorkspaceId::from_bytes([9; 16]), since: 1 };

fn now<T>(work: impl Future<Output = Result<T>>) -> T {
    work.now_or_never().expect("nothing to wait for").expect("done")
}

impl Scene {
    fn new() -> Self {
        let room = tempfile::tempdir().expect("a folder");
        let store = room.path().join("store");
        let dice = Arc::new(Counting::default());
        let mut number = 0;
        let [mut one, other] = ["one", "other"].map(|name| {
            let folder = room.path().join(name);
            std::fs::create_dir(&folder).expect("made");
            let mut engine = engine(&folder, &store, State::in_memory());
            number += 1;
            engine.options.device = DeviceId::from_bytes([number; 16]);
            engine.environment.random = dice.clone();
            engine
        });
        let genesis = encode_message(one.environment.log.genesis()).into();
        let key = ObjectKey::genesis();
        let put = one.environment.store.object_store().put(&key, genesis, PutMode::IfAbsent);
        put.now_or_never().expect("nothing to wait for").expect("put");
        let mut scene = {
            now(one.sync(Scope::Everything));
            Self { room, one, other }
        };
        for (path, text) in [("shared/a", "a"), ("shared/sub/b", "b"), ("beside", "c")] {
            scene.write(true, path, text);
        }
        scene.settle();
        scene
    }

    fn path(&self, is_one: bool, path: &str) -> PathBuf {
        self.room.path().join(if is_one { "one" } else { "other" }).join(path)
    }

    fn write(&self, is_one: bool, path: &str, text: &str) {
        let path = self.path(is_one, path);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        std::fs::write(path, text).expect("written");
    }

    fn read(&self, is_one: bool, path: &str) -> Option<String> {
        std::fs::read_to_string(self.path(is_one, path)).ok()
    }

    /// Lets a device exchange everything, which settles.
    fn sync(&mut self, is_one: bool) -> SyncReport {
        let engine = if is_one { &mut self.one } else { &mut self.other };
        let report = now(engine.sync(Scope::Everything));
        assert_eq!(engine.state.unsynced().expect("read"), [], "everything is merged");
        report
    }

    fn settle(&mut self) {
        for is_one in [true, false, true] {
            self.sync(is_one);
        }
    }

    fn folder(&self) -> NodeId {
        let path = RelativePath::new(b"shared").expect("a path");
        self.one.folder_at(&path).expect("read").expect("it is there")
    }

    /// Makes the engine of the workspace in the folder of a device, which lies in another store.
    fn inner(&self, is_one: bool, number: u8) -> Engine {
        let store = self.room.path().join("inner store");
        let mut inner = engine(&self.path(is_one, "shared"), &store, State::in_memory());
        inner.options.device = DeviceId::from_bytes([number; 16]);
        inner.environment.random = Arc::new(Counting::from(u64::from(number) << 32));
        let genesis = encode_message(inner.environment.log.genesis()).into();
        let key = ObjectKey::genesis();
        let put = inner.environment.store.object_store().put(&key, genesis, PutMode::IfAbsent);
        put.now_or_never().expect("nothing to wait for").expect("put");
        inner
    }

    /// Mounts the folder by the word of the first device.
    fn mount(&mut self) {
        let (folder, seen) = (self.folder(), self.sync(true).seq);
        now(self.one.mount(folder, INNER, seen));
    }

    /// The folders in which the log has something alive, by the first device.
    fn log_of(&mut self, path: &str) -> Vec<String> {
        let path = RelativePath::new(path.as_bytes()).expect("a path");
        let listed = now(self.one.list(&path, None, false, true));
        listed.into_iter().map(|listed| listed.path.to_string()).collect()
    }
}

#[test]
fn what_happens_in_a_mounted_folder_is_no_business_of_the_workspace_around_it() {
    let mut scene = Scene::new();
    scene.mount();
    let is_one = true;
    scene.write(is_one, "shared/new", "new");
    scene.write(is_one, "shared/a", "changed");
    std::fs::remove_file(scene.path(is_one, "shared/sub/b")).expect("removed");
    scene.write(is_one, "beside", "changed");
    let report = scene.sync(is_one);
    assert_eq!((report.sent, report.problems.len()), (1, 0), "{report:?}");
    scene.sync(!is_one);
    assert_eq!(scene.read(!is_one, "beside").as_deref(), Some("changed"));
    assert_eq!(scene.read(!is_one, "shared/a").as_deref(), Some("a"));
    assert_eq!(scene.read(!is_one, "shared/sub/b").as_deref(), Some("b"));
    assert_eq!(scene.read(!is_one, "shared/new"), None);
    assert_eq!(scene.log_of("shared"), ["shared/a", "shared/sub", "shared/sub/b"], "frozen");
    // The other device leaves it alone, too.
    scene.write(!is_one, "shared/of other", "x");
    assert_eq!(scene.sync(!is_one).sent, 0);
    let points = mount_points(&scene.other.state).expect("read");
    let path = RelativePath::new(b"shared").ok();
    assert_eq!(points, [MountPoint { node: scene.folder(), mount: INNER, path }]);
}

#[test]
fn edits_that_were_not_sent_before_stay_where_they_are() {
    let mut scene = Scene::new();
    scene.mount();
    let is_one = true;
    scene.write(!is_one, "shared/a", "edited here");
    scene.write(!is_one, "shared/new", "new here");
    std::fs::remove_file(scene.path(!is_one, "shared/sub/b")).expect("removed");
    std::fs::rename(scene.path(!is_one, "beside"), scene.path(!is_one, "shared/beside"))
        .expect("moved in");
    let report = scene.sync(!is_one);
    assert_eq!(report.sent, 1, "what was moved into it is deleted here");
    scene.sync(is_one);
    assert_eq!(scene.read(!is_one, "shared/a").as_deref(), Some("edited here"));
    assert_eq!(scene.read(!is_one, "shared/new").as_deref(), Some("new here"));
    assert_eq!(scene.read(!is_one, "shared/sub/b"), None);
    assert_eq!(scene.read(!is_one, "shared/beside").as_deref(), Some("c"));
    assert_eq!((scene.read(is_one, "beside"), scene.read(is_one, "shared/beside")), (None, None));
    assert_eq!(scene.read(is_one, "shared/sub/b").as_deref(), Some("b"));
}

#[test]
fn what_was_moved_out_and_not_sent_before_becomes_a_file_of_its_own() {
    let mut scene = Scene::new();
    scene.mount();
    let is_one = true;
    std::fs::rename(scene.path(!is_one, "shared/a"), scene.path(!is_one, "taken out"))
        .expect("moved");
    scene.sync(!is_one);
    scene.sync(is_one);
    for side in [is_one, !is_one] {
        assert_eq!(scene.read(side, "taken out").as_deref(), Some("a"));
    }
    assert_eq!(scene.read(is_one, "shared/a").as_deref(), Some("a"));
    assert_eq!(scene.log_of("shared"), ["shared/a", "shared/sub", "shared/sub/b"]);
}

#[test]
fn what_waited_in_the_outbox_is_lost_neither_here_nor_there() {
    let mut scene = Scene::new();
    let is_one = true;
    scene.write(!is_one, "shared/a", "edited off line");
    scene.write(!is_one, "shared/new", "new off line");
    std::fs::rename(scene.path(!is_one, "shared/sub"), scene.path(!is_one, "sub")).expect("moved");
    now(scene.other.checkin());
    assert!(!scene.other.state.outbox().expect("read").is_empty());
    scene.mount();
    scene.settle();
    assert_eq!(scene.read(!is_one, "shared/a").as_deref(), Some("edited off line"));
    assert_eq!(scene.read(!is_one, "shared/new").as_deref(), Some("new off line"));
    assert_eq!(scene.read(!is_one, "sub/b").as_deref(), Some("b"));
    // What is in the folder here does not become what it is there.
    assert_eq!(scene.read(is_one, "shared/a").as_deref(), Some("a"));
    assert_eq!(scene.read(is_one, "shared/sub/b").as_deref(), Some("b"));
    // What could not go into it any more is beside it, and what was taken out is both.
    assert_eq!(scene.read(is_one, "new").as_deref(), Some("new off line"));
    assert_eq!(scene.read(is_one, "sub/b").as_deref(), Some("b"));
}

#[test]
fn folder_is_moved_with_the_mount_and_comes_back_where_it_was_deleted() {
    let mut scene = Scene::new();
    scene.mount();
    let is_one = true;
    scene.sync(!is_one);
    std::fs::create_dir(scene.path(is_one, "inside")).expect("made");
    std::fs::rename(scene.path(is_one, "shared"), scene.path(is_one, "inside/ours"))
        .expect("moved");
    scene.settle();
    assert_eq!(scene.read(!is_one, "inside/ours/sub/b").as_deref(), Some("b"), "moved as it is");
    let path = |scene: &Scene| {
        let points = mount_points(&scene.other.state).expect("read");
        points[0].path.as_ref().map(ToString::to_string)
    };
    assert_eq!(path(&scene).as_deref(), Some("inside/ours"));
    // With what is around it, and for nobody else.
    std::fs::remove_dir_all(scene.path(!is_one, "inside")).expect("deleted");
    scene.sync(!is_one);
    scene.sync(is_one);
    scene.sync(!is_one);
    assert_eq!(scene.read(is_one, "inside/ours/a").as_deref(), Some("a"));
    let back = scene.path(!is_one, "inside/ours");
    assert_eq!(std::fs::read_dir(back).expect("it is back").count(), 0);
}

#[test]
fn new_device_makes_the_folder_and_nothing_in_it() {
    let mut scene = Scene::new();
    scene.mount();
    let folder = scene.room.path().join("third");
    std::fs::create_dir(&folder).expect("made");
    let mut third = engine(&folder, &scene.room.path().join("store"), State::in_memory());
    third.options.device = DeviceId::from_bytes([3; 16]);
    let report = now(third.sync(Scope::Everything));
    assert!(report.problems.is_empty(), "{report:?}");
    assert_eq!(std::fs::read_to_string(folder.join("beside")).expect("read"), "c");
    assert_eq!(std::fs::read_dir(folder.join("shared")).expect("made").count(), 0);
    assert_eq!(third.state.unsynced().expect("read"), []);
    assert_eq!(now(third.sync(Scope::Everything)).received, 0);
    let path = RelativePath::new(b"shared").ok();
    assert_eq!(mount_points(&third.state).expect("read")[0].path, path);
}

#[test]
fn device_that_was_behind_takes_what_came_before_and_gives_the_rest_over_as_a_merge_base() {
    let mut scene = Scene::new();
    let is_one = true;
    for path in ["shared/b", "shared/c", "shared/d", "shared/e"] {
        scene.write(is_one, path, "first");
    }
    scene.settle();
    // The other device is away from here on.
    scene.write(is_one, "shared/a", "second of one");
    scene.sync(is_one);
    let mut inner = scene.inner(is_one, 11);
    let since = now(inner.sync(Scope::Everything)).seq;
    let (folder, seen) = (scene.folder(), scene.sync(is_one).seq);
    now(scene.one.mount(folder, Mount { since, ..INNER }, seen));
    // Others change, move and delete in the folder; the device that was away has changes that it never sent.
    scene.write(is_one, "shared/b", "second, in the inner workspace");
    std::fs::rename(scene.path(is_one, "shared/c"), scene.path(is_one, "shared/moved"))
        .expect("moved");
    std::fs::remove_file(scene.path(is_one, "shared/d")).expect("removed");
    now(inner.sync(Scope::Everything));
    scene.write(!is_one, "shared/e", "edited while away");
    std::fs::remove_file(scene.path(!is_one, "shared/sub/b")).expect("removed");

    scene.sync(!is_one);
    assert_eq!(scene.read(!is_one, "shared/a").as_deref(), Some("second of one"));
    let paths = take_base(&mut scene.other.state, &folder).expect("read");
    let shown: Vec<_> = paths.iter().map(ToString::to_string).collect();
    assert_eq!(shown, ["a", "b", "c", "d", "e", "sub", "sub/b"]);
    assert_eq!(take_base(&mut scene.other.state, &folder).expect("read"), [], "given out once");

    let mut other = scene.inner(!is_one, 12);
    assert_eq!(now(other.adopt_base(since, &paths)), 6, "what is not there is no evidence");
    let report = now(other.sync(Scope::Everything));
    assert_eq!((report.sent, report.kept_copies.len()), (1, 0), "{report:?}");
    now(inner.sync(Scope::Everything));
    for side in [is_one, !is_one] {
        let found = ["a", "b", "c", "moved", "d", "e", "sub/b"]
            .map(|path| scene.read(side, &format!("shared/{path}")));
        let found = found.each_ref().map(Option::as_deref);
        let [of_one, inside] = ["second of one", "second, in the inner workspace"];
        let edited = Some("edited while away");
        let expected = [Some(of_one), Some(inside), None, Some("first"), None, edited, Some("b")];
        assert_eq!(found, expected);
    }
}

#[test]
fn merge_base_is_taken_by_a_new_engine_only() {
    let mut scene = Scene::new();
    let is_one = true;
    let mut inner = scene.inner(is_one, 11);
    let since = now(inner.sync(Scope::Everything)).seq;
    scene.mount();
    scene.sync(!is_one);
    let folder = scene.folder();
    let paths = take_base(&mut scene.other.state, &folder).expect("read");
    assert_eq!(now(inner.adopt_base(since, &paths)), 0);
    let mut other = scene.inner(!is_one, 12);
    assert_eq!(now(other.adopt_base(since, &paths)), 3);
    let report = now(other.sync(Scope::Everything));
    assert_eq!((report.sent, report.received, report.received_bytes), (0, 0, 0), "{report:?}");
}

#[test]
fn folder_is_not_mounted_where_others_have_gone_on() {
    let mut scene = Scene::new();
    let is_one = true;
    let (folder, seen) = (scene.folder(), scene.sync(is_one).seq);
    scene.write(!is_one, "shared/late", "late");
    scene.sync(!is_one);
    let refused = scene.one.mount(folder, INNER, seen).now_or_never().expect("nothing to wait for");
    assert!(matches!(refused, Err(SyncError::SettingsChanged)), "{refused:?}");
    assert_eq!(mount_points(&scene.one.state).expect("read"), []);
    // A proposal that was made before, and comes behind what others did, does not count.
    let list = encode_message(&Mounts::default().with(folder, INNER).expect("one"));
    scene.one.put_into_outbox(NodeId::MOUNTS, 0, list).expect("waits");
    scene.write(!is_one, "shared/later", "later");
    scene.sync(!is_one);
    scene.sync(is_one);
    assert_eq!(mount_points(&scene.one.state).expect("read"), []);
    assert_eq!(scene.read(is_one, "shared/later").as_deref(), Some("later"));
    scene.mount();
    assert_eq!(mount_points(&scene.one.state).expect("read").len(), 1);
}

#[test]
fn conflicts_in_a_mounted_folder_wait_for_nobody() {
    let mut scene = Scene::new();
    let is_one = true;
    scene.write(is_one, "shared/a", "of one");
    scene.write(!is_one, "shared/a", "of other");
    scene.settle();
    assert_eq!(scene.one.conflicts().expect("read").len(), 1);
    scene.mount();
    scene.settle();
    assert_eq!(scene.other.conflicts().expect("read"), []);
    let path = RelativePath::new(b"shared/a").expect("a path");
    let resolved = scene.one.resolve(&path, Keep::Both).now_or_never().expect("at once");
    assert!(matches!(resolved, Err(SyncError::NoConflict(_))), "{resolved:?}");
}

#[test]
fn what_a_log_lacks_of_a_folder_is_found() {
    let mut scene = Scene::new();
    let missing = |scene: &Scene| {
        let (one, other) = (&scene.one.state, &scene.other.state);
        let found = first_missing(one, &NodeId::ROOT, other).expect("read");
        found.map(|path| path.to_string())
    };
    scene.sync(false);
    assert_eq!(missing(&scene), None);
    scene.write(true, "shared/sub/new", "of one");
    scene.sync(true);
    assert_eq!(missing(&scene).as_deref(), Some("shared/sub/new"));
    scene.sync(false);
    assert_eq!(missing(&scene), None);
    // A folder in the place of a file is another thing, also where it is as empty.
    std::fs::remove_file(scene.path(true, "beside")).expect("removed");
    std::fs::create_dir(scene.path(true, "beside")).expect("made");
    scene.sync(true);
    assert_eq!(missing(&scene).as_deref(), Some("beside"));
}
