//! The tree store over folders of this disk, whole and with a line that breaks at every step.

use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::conformance;

/// Which of the three ways to create and to replace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Link,
    Folder,
    InPlace,
}

const WAYS: [Way; 3] = [Way::Link, Way::Folder, Way::InPlace];

/// What becomes of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Break {
    Before,
    After,
}

/// A folder of this disk that breaks at one of its steps.
#[derive(Debug, Clone)]
struct LocalTree {
    root: PathBuf,
    way: Way,
    steps: Arc<AtomicUsize>,
    fault: Option<(usize, Break)>,
    /// A folder in which nothing can be made.
    closed: Option<&'static str>,
    /// Whether somebody else is always there first, and gone when it is looked.
    is_crowded: bool,
}

impl LocalTree {
    fn new(root: PathBuf, way: Way) -> Self {
        let steps = Arc::default();
        Self { root, way, steps, fault: None, closed: None, is_crowded: false }
    }

    fn breaking(&self, step: usize, fault: Break) -> Self {
        Self { steps: Arc::default(), fault: Some((step, fault)), ..self.clone() }
    }

    fn full(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    /// Returns whether something new may be made at `path`.
    fn is_open(&self, path: &str) -> bool {
        self.closed.is_none_or(|closed| path.rsplit_once('/').is_none_or(|(at, _)| at != closed))
    }

    /// Does one step, unless the line breaks: at its step and at all after it.
    fn step<A>(&self, work: impl FnOnce() -> std::io::Result<A>) -> Result<A> {
        let lost = || StorageError::NotReachable {
            store: self.describe(),
            detail: "the line broke".to_owned(),
        };
        let number = self.steps.fetch_add(1, Ordering::Relaxed);
        match self.fault {
            Some((step, Break::Before)) if number >= step => return Err(lost()),
            Some((step, Break::After)) if number > step => return Err(lost()),
            _ => {}
        }
        let result = work();
        match self.fault {
            Some((step, _)) if number == step => Err(lost()),
            _ => result.map_err(|error| StorageError::Failed {
                store: self.describe(),
                operation: "work".to_owned(),
                source: Box::new(error),
            }),
        }
    }
}

fn is_absent(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::IsADirectory)
}

fn look<A>(result: std::io::Result<A>) -> std::io::Result<Option<A>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if is_absent(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

#[async_trait]
impl RemoteTree for LocalTree {
    fn describe(&self) -> String {
        format!("{:?} tree {}", self.way, self.root.display())
    }

    fn exclusive(&self) -> Exclusive {
        if self.way == Way::Link { Exclusive::Link } else { Exclusive::Folder }
    }

    fn replaces_in_place(&self) -> bool {
        self.way == Way::InPlace
    }

    async fn make_root(&self) -> Result<()> {
        self.step(|| fs::create_dir_all(&self.root))
    }

    async fn entries(&self, folder: &str) -> Result<Option<Vec<TreeEntry>>> {
        self.step(|| {
            let Some(found) = look(fs::read_dir(self.full(folder)))? else { return Ok(None) };
            let mut entries = Vec::new();
            for entry in found {
                let entry = entry?;
                // It may be gone since the folder was read.
                let Some(metadata) = look(entry.metadata())? else { continue };
                let name = entry.file_name().to_string_lossy().into_owned();
                entries
                    .push(TreeEntry { name, size: metadata.is_file().then_some(metadata.len()) });
            }
            Ok(Some(entries))
        })
    }

    async fn size(&self, path: &str) -> Result<Option<u64>> {
        self.step(|| {
            let found = look(fs::metadata(self.full(path)))?;
            Ok(found.filter(fs::Metadata::is_file).map(|metadata| metadata.len()))
        })
    }

    async fn read(&self, path: &str, range: Range<u64>) -> Result<Option<Bytes>> {
        self.step(|| {
            let bytes = look(fs::read(self.full(path)))?.map(Bytes::from);
            Ok(bytes.map(|bytes| {
                let range = crate::object_store::clamp(&range, bytes.len() as u64);
                bytes.slice(range.start as usize..range.end as usize)
            }))
        })
    }

    async fn write(&self, path: &str, bytes: Bytes) -> Result<()> {
        // As a server does that replaces in one step.
        let part = self.full(&format!("{path}.part-{}", self.steps.load(Ordering::Relaxed)));
        self.step(|| fs::write(&part, &bytes).and_then(|()| fs::rename(&part, self.full(path))))
    }

    async fn rename(&self, source: &str, target: &str) -> Result<bool> {
        assert!(self.way != Way::InPlace, "such a server would delete the target first");
        self.step(|| Ok(fs::rename(self.full(source), self.full(target)).is_ok()))
    }

    async fn link(&self, source: &str, target: &str) -> Result<bool> {
        let is_refused = self.is_crowded || !self.is_open(target);
        self.step(|| Ok(!is_refused && fs::hard_link(self.full(source), self.full(target)).is_ok()))
    }

    async fn move_folder(&self, source: &str, target: &str) -> Result<bool> {
        self.step(|| {
            // As servers do that look first; the file system has the last word.
            let is_refused = self.is_crowded
                || !self.is_open(target)
                || self.way == Way::InPlace && self.full(target).exists();
            Ok(!is_refused && fs::rename(self.full(source), self.full(target)).is_ok())
        })
    }

    async fn make_folder(&self, path: &str) -> Result<bool> {
        let is_open = self.is_open(path);
        self.step(|| Ok(is_open && fs::create_dir(self.full(path)).is_ok()))
    }

    async fn remove_file(&self, path: &str) -> Result<bool> {
        self.step(|| Ok(fs::remove_file(self.full(path)).is_ok()))
    }

    async fn remove_folder(&self, path: &str) -> Result<bool> {
        self.step(|| Ok(self.way != Way::InPlace && fs::remove_dir(self.full(path)).is_ok()))
    }

    async fn remove_object_folder(&self, path: &str) -> Result<bool> {
        self.step(|| Ok(fs::remove_dir(self.full(path)).is_ok()))
    }
}

fn store(tree: LocalTree) -> TreeStore<LocalTree> {
    TreeStore::new(tree, Opening::CreateIfMissing)
}

#[tokio::test]
async fn every_way_conforms() {
    for way in WAYS {
        let folder = tempfile::tempdir().unwrap();
        let number = AtomicUsize::new(0);
        conformance::run(|| {
            let name = number.fetch_add(1, Ordering::Relaxed).to_string();
            Arc::new(store(LocalTree::new(folder.path().join(name), way)))
        })
        .await;
    }
}

/// What a call did: put only where nothing is, put over an old one, delete.
#[derive(Debug, Clone, Copy)]
enum Call {
    Create,
    Overwrite,
    Delete,
}

async fn call(store: &TreeStore<LocalTree>, key: &ObjectKey, what: Call) -> Result<()> {
    match what {
        Call::Create => store.put(key, "new".into(), PutMode::IfAbsent).await.map(drop),
        Call::Overwrite => store.put(key, "new".into(), PutMode::Overwrite).await.map(drop),
        Call::Delete => store.delete(key).await,
    }
}

#[tokio::test]
async fn a_device_that_dies_at_any_step_leaves_the_old_or_the_new_and_no_lock() {
    let mut broken = 0;
    for way in WAYS {
        for old in [None, Some(PutMode::IfAbsent), Some(PutMode::Overwrite)] {
            for what in [Call::Create, Call::Overwrite, Call::Delete] {
                for fault in [Break::Before, Break::After] {
                    for step in 0.. {
                        let folder = tempfile::tempdir().unwrap();
                        let tree = LocalTree::new(folder.path().join("store"), way);
                        let sound = store(tree.clone());
                        let key = ObjectKey::log_slot(1, 0);
                        let beside = ObjectKey::log_slot(2, 0);
                        sound.put(&beside, "beside".into(), PutMode::IfAbsent).await.unwrap();
                        if let Some(mode) = old {
                            sound.put(&key, "old".into(), mode).await.unwrap();
                        }
                        let dying = store(tree.breaking(step, fault));
                        let result = call(&dying, &key, what).await;
                        check(&sound, &key, old.is_some(), what, &result).await;
                        let found = sound.get(&beside).await.unwrap();
                        assert_eq!(found.as_deref(), Some(&b"beside"[..]), "{way:?} {step}");
                        if result.is_ok() {
                            break;
                        }
                        broken += 1;
                    }
                }
            }
        }
    }
    assert!(broken > 100, "only {broken} steps broke");
}

/// Looks with a sound line at what a dying device left, and goes on from there.
async fn check(
    sound: &TreeStore<LocalTree>,
    key: &ObjectKey,
    had_old: bool,
    what: Call,
    result: &Result<()>,
) {
    let at = format!("{what:?}, old: {had_old}, {result:?} on {}", sound.describe());
    let found = sound.get(key).await.unwrap();
    let text = found.as_deref().map(|bytes| std::str::from_utf8(bytes).unwrap());
    let allowed: &[Option<&str>] = match (what, had_old, result.is_ok()) {
        (Call::Create, false, true) | (Call::Overwrite, _, true) => &[Some("new")],
        (Call::Create, true, _) => &[Some("old")],
        (Call::Create | Call::Overwrite, false, false) => &[None, Some("new")],
        (Call::Overwrite, true, false) => &[Some("old"), Some("new")],
        (Call::Delete, true, false) => &[Some("old"), None],
        (Call::Delete, _, _) => &[None],
    };
    assert!(allowed.contains(&text), "{text:?} after {at}");
    let listed = sound.list("", None, 10).await.unwrap();
    let is_listed = listed.iter().any(|entry| entry.key == *key);
    assert_eq!(is_listed, text.is_some(), "the list after {at}");
    // Nothing that was left stands in the way of others.
    let outcome = sound.put(key, "later".into(), PutMode::IfAbsent).await;
    let outcome = outcome.unwrap_or_else(|error| panic!("{error} after {at}"));
    assert_eq!(outcome == PutOutcome::Written, text.is_none(), "{at}");
    sound.put(key, "last".into(), PutMode::Overwrite).await.unwrap();
    assert_eq!(sound.get(key).await.unwrap().as_deref(), Some(&b"last"[..]), "{at}");
    sound.delete(key).await.unwrap();
    assert_eq!(sound.get(key).await.unwrap(), None, "{at}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_creators_one_wins_while_others_delete() {
    for way in WAYS {
        let folder = tempfile::tempdir().unwrap();
        let tree = LocalTree::new(folder.path().join("store"), way);
        let sound = Arc::new(store(tree));
        let key = ObjectKey::log_slot(1, 0);
        let tasks = (0..4).map(|racer: u8| {
            let (store, key) = (Arc::clone(&sound), key.clone());
            tokio::spawn(async move {
                let mut won = 0;
                for _ in 0..50 {
                    let bytes = Bytes::from(vec![racer; 1000]);
                    match store.put(&key, bytes, PutMode::IfAbsent).await {
                        // Somebody was always quicker, and had deleted it again before it was looked.
                        Err(StorageError::Busy { .. }) | Ok(PutOutcome::Exists) => {
                            tokio::task::yield_now().await;
                        }
                        Err(error) => panic!("{error:?}"),
                        Ok(PutOutcome::Written) => {
                            won += 1;
                            let found = store.get(&key).await.unwrap().expect("only we delete it");
                            assert!(found.iter().all(|byte| *byte == racer), "another one's bytes");
                            store.delete(&key).await.unwrap();
                        }
                    }
                }
                won
            })
        });
        let won: Vec<i32> = futures_util::future::join_all(tasks)
            .await
            .into_iter()
            .map(|won| won.unwrap())
            .collect();
        assert!(won.iter().sum::<i32>() > 0, "{way:?}: {won:?}");
    }
}

#[tokio::test]
async fn what_stands_in_the_way_is_named() {
    for way in WAYS {
        let folder = tempfile::tempdir().unwrap();
        let tree = LocalTree::new(folder.path().join("store"), way);
        let sound = store(tree);
        let key = |text: &str| ObjectKey::new(text).unwrap();
        sound.put(&key("a/b"), "x".into(), PutMode::IfAbsent).await.unwrap();
        let error = sound.put(&key("a"), "x".into(), PutMode::IfAbsent).await.unwrap_err();
        assert!(matches!(error, StorageError::InvalidKey { .. }), "{way:?}: {error:?}");
        assert_eq!(sound.get(&key("a/b")).await.unwrap().as_deref(), Some(&b"x"[..]));
    }
}

#[tokio::test]
async fn who_is_always_too_late_is_told_to_come_again_and_who_may_not_write_that_it_may_not() {
    for way in WAYS {
        let folder = tempfile::tempdir().unwrap();
        let tree = LocalTree::new(folder.path().join("store"), way);
        let key = ObjectKey::log_slot(1, 0);
        let parent = "log/00000000000000000001";
        store(tree.clone()).list("", None, 1).await.unwrap();
        fs::create_dir_all(tree.full(parent)).unwrap();

        let crowded = store(LocalTree { is_crowded: true, ..tree.clone() });
        let error = crowded.put(&key, "x".into(), PutMode::IfAbsent).await.unwrap_err();
        assert!(matches!(error, StorageError::Busy { .. }), "{way:?}: {error:?}");
        assert!(error.is_retryable());

        let closed = store(LocalTree { closed: Some(parent), ..tree.clone() });
        let error = closed.put(&key, "x".into(), PutMode::IfAbsent).await.unwrap_err();
        assert!(matches!(error, StorageError::PermissionDenied { .. }), "{way:?}: {error:?}");

        assert_eq!(fs::read_dir(tree.full(parent)).unwrap().count(), 0, "{way:?}: what was tried");
        let outcome = store(tree).put(&key, "x".into(), PutMode::IfAbsent).await.unwrap();
        assert_eq!(outcome, PutOutcome::Written);
    }
}

#[tokio::test]
async fn a_disk_that_is_not_mounted_is_not_an_empty_store() {
    for way in WAYS {
        let folder = tempfile::tempdir().unwrap();
        let (root, away) = (folder.path().join("store"), folder.path().join("away"));
        let sound = store(LocalTree::new(root.clone(), way));
        let key = ObjectKey::genesis();
        sound.put(&key, "x".into(), PutMode::IfAbsent).await.unwrap();
        fs::rename(&root, &away).unwrap();
        for is_empty in [false, true] {
            if is_empty {
                fs::create_dir(&root).unwrap();
            }
            for error in [
                sound.get(&key).await.map(drop).unwrap_err(),
                sound.size(&key).await.map(drop).unwrap_err(),
                sound.list("", None, 10).await.map(drop).unwrap_err(),
                sound.delete(&key).await.unwrap_err(),
                sound.put(&key, "y".into(), PutMode::IfAbsent).await.map(drop).unwrap_err(),
            ] {
                assert!(!matches!(error, StorageError::InvalidKey { .. }), "{way:?}: {error:?}");
            }
            assert!(!root.join("genesis").exists(), "nothing is written under the mount");
        }
    }
}
