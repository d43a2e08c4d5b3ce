//! Waits for an object in a folder, told by the kernel.
//!
//! *Goals*: what another process of this computer creates is seen at once; what comes over a network disk, of which the kernel
//! does not hear, is seen at the next look. *Invariant*: a folder is watched first and looked into then, so that nothing that
//! comes in between is missed.

use std::sync::Arc;
use std::time::Duration;

use rustix::fd::{AsRawFd, OwnedFd};
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::io::Errno;
use tokio::io::unix::AsyncFd;
use tokio::time::{Instant, timeout_at};

use super::FileStore;
use super::root::Root;
use crate::error::Result;
use crate::key::ObjectKey;
use crate::object_store::{ObjectStore, Waited};

/// How often a network disk is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(30);

/// How many bytes of events are thrown away at once; what has happened in the folder, a look tells.
const BUFFER_SIZE: usize = 4096;

/// Hears when something comes into a folder.
struct Ear(AsyncFd<Arc<OwnedFd>>);

impl Ear {
    /// Returns nothing where the user has as many watchers as one may have, or anything else is against it.
    #[expect(
        deprecated,
        reason = "its successor is unsafe, for types that may lie about their descriptor; this one owns it"
    )]
    fn new() -> Option<Self> {
        let kernel = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).ok()?;
        AsyncFd::new(Arc::new(kernel)).ok().map(Self)
    }

    /// Returns when something has come, or when the kernel says no more.
    async fn hear(&self) {
        let Ok(mut ready) = self.0.readable().await else { return };
        let mut buffer = [0; BUFFER_SIZE];
        while rustix::io::read(self.0.get_ref(), &mut buffer).is_ok_and(|length| length > 0) {}
        ready.clear_ready();
    }
}

/// Watches the folder in which an object will come, or the nearest above it that is there: then it is heard when the next one
/// is made.
fn listen(kernel: &OwnedFd, root: &Root, key: &ObjectKey) -> Result<(), Errno> {
    let flags = WatchFlags::CREATE
        | WatchFlags::MOVED_TO
        | WatchFlags::DELETE_SELF
        | WatchFlags::MOVE_SELF
        | WatchFlags::ONLYDIR;
    // Through the descriptor: another folder that is mounted over the path is not the store.
    let root = format!("/proc/self/fd/{}", root.fd().as_raw_fd());
    let ends = key.as_str().rmatch_indices('/').map(|(end, _)| end);
    // The innermost first; the store itself is the last.
    let folders: Vec<&str> = ends.map(|end| &key.as_str()[..end]).chain([""]).collect();
    let (mut at, mut watched) = (0, None);
    loop {
        match inotify::add_watch(kernel, format!("{root}/{}", folders[at]), flags) {
            Ok(_) if at == 0 => return Ok(()),
            // The next one may have been made before this one was watched, and nobody would hear what comes into it.
            Ok(_) => {
                watched = Some(at);
                at -= 1;
            }
            Err(Errno::NOENT | Errno::NOTDIR) if watched == Some(at + 1) => return Ok(()),
            Err(Errno::NOENT | Errno::NOTDIR) if at + 1 < folders.len() => at += 1,
            Err(error) => return Err(error),
        }
    }
}

impl FileStore {
    pub(super) async fn wait_in_folder(
        &self,
        key: &ObjectKey,
        patience: Duration,
    ) -> Result<Waited> {
        if self.size(key).await?.is_some() {
            return Ok(Waited::Come);
        }
        // A simulation has no runtime, and its own time.
        if tokio::runtime::Handle::try_current().is_err() {
            return Ok(Waited::Unable);
        }
        if patience.is_zero() {
            return Ok(Waited::InVain);
        }
        let Some(ear) = Ear::new() else { return Ok(Waited::Unable) };
        let end = Instant::now() + patience;
        loop {
            let (kernel, wanted) = (Arc::clone(ear.0.get_ref()), key.clone());
            let listens =
                self.run(move |shared| Ok(listen(&kernel, &shared.root, &wanted).is_ok()));
            if !listens.await? {
                return Ok(Waited::Unable);
            }
            if self.size(key).await?.is_some() {
                return Ok(Waited::Come);
            }
            if Instant::now() >= end {
                return Ok(Waited::InVain);
            }
            // Silence is as good as a noise: it is looked at anyhow.
            let _heard = timeout_at(end.min(Instant::now() + LOOK_EVERY), ear.hear()).await;
        }
    }
}
