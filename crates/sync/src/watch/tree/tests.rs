//! What the kernel can hardly be brought to tell, told by hand.

#![expect(clippy::disallowed_methods, reason = "the tests play the user")]

use std::path::Path;
use std::sync::Arc;

use model::RelativePath;
use rustix::fs::inotify::{self, ReadFlags};

use super::{Hint, RawEvent, Watch, WatchTree};

fn at(path: &str) -> RelativePath {
    RelativePath::new(path.as_bytes()).unwrap()
}

struct Scene {
    folder: tempfile::TempDir,
    tree: WatchTree,
}

impl Scene {
    fn new(directories: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for directory in directories {
            std::fs::create_dir_all(folder.path().join(directory)).unwrap();
        }
        let kernel = inotify::init(inotify::CreateFlags::NONBLOCK).unwrap();
        let ignored = |path: &RelativePath, _| path.as_bytes() == b"ignored";
        let tree = WatchTree::new(folder.path(), Arc::new(kernel), Box::new(ignored)).unwrap();
        Self { folder, tree }
    }

    fn path(&self, path: &str) -> std::path::PathBuf {
        self.folder.path().join(path)
    }

    fn watch(&self, path: &str) -> Watch {
        let mut watches = self.tree.directories.keys();
        *watches.find(|watch| self.tree.path(**watch) == Some(at(path))).expect("it is watched")
    }

    fn tell(&mut self, watch: Watch, flags: ReadFlags, cookie: u32, name: &str) {
        self.tree.take_event(&RawEvent { watch, flags, cookie, name: name.as_bytes() });
    }

    /// The paths of all watched directories.
    fn watched(&self) -> Vec<String> {
        let paths = self.tree.directories.keys().filter_map(|watch| self.tree.path(*watch));
        let mut paths: Vec<_> = paths.map(|path| path.to_string()).collect();
        paths.sort();
        assert_eq!(paths.len(), self.tree.children.len() + 1, "each has one place");
        paths
    }
}

fn hint(directories: &[&str]) -> Hint {
    Hint { directories: directories.iter().map(|path| at(path)).collect(), everything: false }
}

const DIRECTORY: ReadFlags = ReadFlags::ISDIR;

#[test]
fn start_watches_everything_but_the_service_directory_and_what_is_ignored() {
    let mut scene = Scene::new(&["one/inner", ".syncline/tmp", "ignored/inner", "two/.syncline"]);
    assert_eq!(scene.watched(), [".", "one", "one/inner", "two", "two/.syncline"]);
    assert_eq!(scene.tree.take_hint(true), Hint::default());
}

#[test]
fn overflow_is_told_as_everything_and_the_tree_is_found_again() {
    let mut scene = Scene::new(&["one/inner", "two", "three"]);
    // What happened meanwhile was not told.
    std::fs::rename(scene.path("one"), scene.path("moved")).unwrap();
    std::fs::create_dir_all(scene.path("new/inner")).unwrap();
    std::fs::remove_dir(scene.path("two")).unwrap();
    let (moved, three) = (scene.watch("one"), scene.watch("three"));
    scene.tell(three, ReadFlags::CLOSE_WRITE, 0, "file");
    scene.tell(-1, ReadFlags::QUEUE_OVERFLOW, 0, "");
    assert_eq!(scene.tree.take_hint(true), Hint::everything());
    assert_eq!(scene.watched(), [".", "moved", "moved/inner", "new", "new/inner", "three"]);
    assert_eq!(scene.watch("moved"), moved);
    scene.tell(moved, ReadFlags::CLOSE_WRITE, 0, "file");
    assert_eq!(scene.tree.take_hint(true), hint(&["moved"]));
}

#[test]
fn unknown_watch_means_everything_and_one_given_back_means_nothing() {
    let mut scene = Scene::new(&["one/inner"]);
    scene.tell(12_345, ReadFlags::CLOSE_WRITE, 0, "file");
    assert_eq!(scene.tree.take_hint(true), Hint::everything());
    let (root, one, inner) = (scene.watch(""), scene.watch("one"), scene.watch("one/inner"));
    scene.tell(root, ReadFlags::MOVED_FROM | DIRECTORY, 1, "one");
    assert_eq!(scene.tree.take_hint(true), hint(&[""]));
    assert_eq!(scene.watched(), ["."]);
    for watch in [one, inner] {
        scene.tell(watch, ReadFlags::CLOSE_WRITE, 0, "file");
        scene.tell(watch, ReadFlags::IGNORED, 0, "");
    }
    assert_eq!(scene.tree.take_hint(true), Hint::default());
    assert!(scene.tree.retired.is_empty());
}

#[test]
fn events_are_understood_in_their_order_whatever_the_paths_are_by_now() {
    let mut scene = Scene::new(&["one", "two"]);
    let (root, one, two) = (scene.watch(""), scene.watch("one"), scene.watch("two"));
    // By now `one` is called `three`; the first events still speak of `one`.
    std::fs::rename(scene.path("one"), scene.path("three")).unwrap();
    scene.tell(one, ReadFlags::CLOSE_WRITE, 0, "file");
    scene.tell(root, ReadFlags::MOVED_FROM | DIRECTORY, 1, "one");
    scene.tell(root, ReadFlags::MOVED_TO | DIRECTORY, 1, "three");
    scene.tell(two, ReadFlags::CLOSE_WRITE, 0, "file");
    assert_eq!(scene.tree.take_hint(true), hint(&["", "three", "two"]));
    assert_eq!(scene.watched(), [".", "three", "two"]);
}

#[test]
fn directory_whose_parent_moves_before_it_is_found_is_found_later() {
    let mut scene = Scene::new(&["one"]);
    let (root, one) = (scene.watch(""), scene.watch("one"));
    std::fs::create_dir_all(scene.path("one/new/inner")).unwrap();
    std::fs::rename(scene.path("one"), scene.path("two")).unwrap();
    scene.tell(one, ReadFlags::CREATE | DIRECTORY, 0, "new");
    assert_eq!(scene.watched(), [".", "one"]);
    scene.tell(root, ReadFlags::MOVED_FROM | DIRECTORY, 1, "one");
    scene.tell(root, ReadFlags::MOVED_TO | DIRECTORY, 1, "two");
    assert_eq!(scene.tree.take_hint(true), hint(&["", "two", "two/new", "two/new/inner"]));
    assert_eq!(scene.watched(), [".", "two", "two/new", "two/new/inner"]);
}

#[test]
fn path_that_leads_to_another_directory_by_now_is_noticed() {
    let mut scene = Scene::new(&["one"]);
    let (root, one) = (scene.watch(""), scene.watch("one"));
    // A directory is made in `one`, which is then called `two`; a new `one` holds one of the same name.
    std::fs::create_dir(scene.path("one/new")).unwrap();
    std::fs::rename(scene.path("one"), scene.path("two")).unwrap();
    std::fs::create_dir_all(scene.path("one/new")).unwrap();
    scene.tell(one, ReadFlags::CREATE | DIRECTORY, 0, "new");
    scene.tell(root, ReadFlags::MOVED_FROM | DIRECTORY, 1, "one");
    scene.tell(root, ReadFlags::MOVED_TO | DIRECTORY, 1, "two");
    scene.tell(root, ReadFlags::CREATE | DIRECTORY, 0, "one");
    scene.tree.take_hint(true);
    assert_eq!(scene.watched(), [".", "one", "one/new", "two", "two/new"]);
    assert_eq!(scene.watch("two"), one);
}

#[test]
fn removed_directory_and_its_successor_are_not_mixed_up() {
    let mut scene = Scene::new(&["one"]);
    let (root, old) = (scene.watch(""), scene.watch("one"));
    std::fs::remove_dir(scene.path("one")).unwrap();
    std::fs::create_dir(scene.path("one")).unwrap();
    scene.tell(old, ReadFlags::IGNORED, 0, "");
    scene.tell(root, ReadFlags::DELETE | DIRECTORY, 0, "one");
    scene.tell(root, ReadFlags::CREATE | DIRECTORY, 0, "one");
    assert_eq!(scene.tree.take_hint(true), hint(&["", "one"]));
    assert_eq!(scene.watched(), [".", "one"]);
    assert_ne!(scene.watch("one"), old);
}

#[test]
fn links_to_directories_are_not_watched() {
    let mut scene = Scene::new(&["one"]);
    let root = scene.watch("");
    std::os::unix::fs::symlink("one", scene.path("link")).unwrap();
    std::os::unix::fs::symlink(Path::new("/"), scene.path("outside")).unwrap();
    // As if a directory had been swapped for the link since the event.
    scene.tell(root, ReadFlags::CREATE | DIRECTORY, 0, "outside");
    scene.tell(-1, ReadFlags::QUEUE_OVERFLOW, 0, "");
    assert_eq!(scene.tree.take_hint(true), Hint::everything());
    assert_eq!(scene.watched(), [".", "one"]);
}

#[test]
fn tree_deeper_than_paths_may_be_is_watched_as_deep_as_it_is_synced() {
    let deep = ["d"; 140].join("/");
    let mut scene = Scene::new(&[&deep]);
    assert_eq!(scene.watched().len(), 129);
    let deepest = scene.watch(&["d"; 128].join("/"));
    scene.tell(deepest, ReadFlags::CREATE, 0, "file");
    assert_eq!(scene.tree.take_hint(true), hint(&[&["d"; 128].join("/")]));
}
