//! Says where in a folder something may have changed, soon after it has.
//!
//! *Participants*: the kernel's inotify; one thread that listens to it; the engine, which takes [`Hints`] when it has
//! time. *Goals*: a hint follows the close of a file within 15 ms; a directory is watched before anybody is told of
//! it, so that a scan of what a hint names misses nothing. *Non-goals*: saying what has changed; being right: every hint
//! may be late, too broad or needless, and a full scan now and then finds what was missed.
//! *Invariants*: what is not known is told as [`Hint::everything`], never left out; memory is bounded, since hints that
//! nobody takes merge into one.
//!
//! The kernel is spoken to directly. The `notify` crate asks it for every opening of a file too, so that reading a
//! large folder, as our own scan does, can overflow the queue and cause the next scan; it watches the service directory
//! and ignored ones; and under traffic it tells of new directories long before it watches them.
//!
//! Reading order: this file, `tree` (which directory is where), `hints` (how hints merge).

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use model::RelativePath;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fs::inotify;
use rustix::io::Errno;

use hints::Mailbox;
use tree::{RawEvent, WatchTree};

pub use hints::{Hint, Hints};

mod hints;
mod tree;

/// How long it must be quiet before what has happened is told.
const SETTLE: Duration = Duration::from_millis(8);

/// How long it may take to become quiet.
const SETTLE_MAX: Duration = Duration::from_millis(100);

/// How many bytes of events are read at once: some thousand events.
const BUFFER_SIZE: usize = 64 * 1024;

/// Why a folder cannot be watched.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// There is no such directory.
    #[error("there is no directory '{}' to watch", .0.display())]
    NoSuchDirectory(PathBuf),
    /// The user has as many watchers as one may have.
    #[error(
        "this user has as many folder watchers as the system allows; raise the limit with \
         'sysctl fs.inotify.max_user_instances=1024'"
    )]
    TooManyWatchers,
    /// Anything else.
    #[error("'{}' cannot be watched: {reason}", path.display())]
    System {
        /// The folder.
        path: PathBuf,
        /// What the operating system said.
        reason: String,
    },
}

/// Why a watched folder is not watched as a whole. Full scans find what the watcher misses, only later.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WatchWarning {
    /// The user has as many watched directories as one may have.
    #[error(
        "not every directory can be watched, since the system allows no more than {limit}; raise the limit with \
         'sysctl fs.inotify.max_user_watches={}'", limit.saturating_mul(4)
    )]
    LimitReached {
        /// How many directories may be watched.
        limit: u64,
    },
    /// The kernel answers no more.
    #[error("the folder is not watched any more: {0}")]
    Stopped(String),
}

/// What a watcher passes over. Rules that change on the way take effect at once: the watcher then visits every directory
/// again.
pub trait WatchFilter: Send {
    /// Is told of a directory before it is asked about anything in it, and whether a file with rules stands there.
    fn visit(&mut self, directory: &RelativePath, has_rules: bool);

    /// Tells whether a path, whose directory is watched, is of no interest; it may be that of a directory.
    fn passes_over(&self, path: &RelativePath, is_directory: bool) -> bool;
}

/// A filter whose rules never change.
impl<F: Fn(&RelativePath, bool) -> bool + Send> WatchFilter for F {
    fn visit(&mut self, _directory: &RelativePath, _has_rules: bool) {}

    fn passes_over(&self, path: &RelativePath, is_directory: bool) -> bool {
        self(path, is_directory)
    }
}

/// Watches a folder until it is dropped.
#[derive(Debug)]
pub struct FolderWatcher {
    mailbox: Arc<Mailbox>,
    stop: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

impl FolderWatcher {
    /// Starts to watch `root` and every directory below it, except the service directory and what the filter passes
    /// over.
    ///
    /// When this returns, everything is watched: a scan after it misses nothing.
    ///
    /// # Errors
    /// [`WatchError`]. Too few watches are no error but a [`WatchWarning`].
    pub fn start(
        root: &Path,
        filter: impl WatchFilter + 'static,
    ) -> Result<(Self, Hints), WatchError> {
        let system = |error: io::Error| WatchError::System {
            path: root.to_path_buf(),
            reason: error.to_string(),
        };
        let flags = inotify::CreateFlags::NONBLOCK | inotify::CreateFlags::CLOEXEC;
        let kernel = match inotify::init(flags) {
            Ok(kernel) => Arc::new(kernel),
            Err(Errno::MFILE) => return Err(WatchError::TooManyWatchers),
            Err(errno) => return Err(system(errno.into())),
        };
        let tree = WatchTree::new(root, Arc::clone(&kernel), Box::new(filter));
        let tree = tree.map_err(|errno| match errno {
            Errno::NOENT | Errno::NOTDIR => WatchError::NoSuchDirectory(root.to_path_buf()),
            errno => system(errno.into()),
        })?;
        let stop = Arc::new(eventfd(0, EventfdFlags::CLOEXEC).map_err(|e| system(e.into()))?);
        let mailbox = Arc::new(Mailbox::default());
        mailbox.set_warning(tree.warning());
        let hints = Hints::new(Arc::clone(&mailbox));
        let listener =
            Listener { kernel, stop: Arc::clone(&stop), tree, mailbox: Arc::clone(&mailbox) };
        let thread = std::thread::Builder::new()
            .name("folder-watch".to_owned())
            .spawn(move || listener.run())
            .map_err(system)?;
        Ok((Self { mailbox, stop, thread: Some(thread) }, hints))
    }

    /// Tells whether, and why, the folder is not watched as a whole.
    pub fn warning(&self) -> Option<WatchWarning> {
        self.mailbox.warning()
    }
}

impl Drop for FolderWatcher {
    fn drop(&mut self) {
        // The only failure is that of a full counter, and one is enough.
        let _ = rustix::io::write(&self.stop, &1_u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        self.mailbox.close();
    }
}

/// The thread that listens.
struct Listener {
    kernel: Arc<OwnedFd>,
    stop: Arc<OwnedFd>,
    tree: WatchTree,
    mailbox: Arc<Mailbox>,
}

/// What a wait ended with.
#[derive(PartialEq)]
enum Woken {
    Event,
    Quiet,
    Stop,
}

impl Listener {
    fn run(mut self) {
        if let Err(errno) = self.listen() {
            let reason = io::Error::from(errno).to_string();
            self.mailbox.set_warning(Some(WatchWarning::Stopped(reason)));
            self.mailbox.put(Hint::everything());
        }
    }

    fn listen(&mut self) -> Result<(), Errno> {
        let mut buffer = Vec::with_capacity(BUFFER_SIZE);
        while self.wait(None)? == Woken::Event {
            let timer = Timer::start();
            let is_quiet = loop {
                self.read(buffer.spare_capacity_mut())?;
                let rest = SETTLE_MAX.saturating_sub(timer.elapsed());
                if rest.is_zero() {
                    break false;
                }
                match self.wait(Some(SETTLE.min(rest)))? {
                    Woken::Event => {}
                    Woken::Quiet => break true,
                    Woken::Stop => return Ok(()),
                }
            };
            let hint = self.tree.take_hint(is_quiet);
            self.mailbox.set_warning(self.tree.warning());
            self.mailbox.put(hint);
        }
        Ok(())
    }

    fn wait(&self, timeout: Option<Duration>) -> Result<Woken, Errno> {
        let timeout = timeout.map(|timeout| Timespec {
            tv_sec: timeout.as_secs().try_into().unwrap_or(0),
            tv_nsec: timeout.subsec_nanos().into(),
        });
        let mut ready =
            [PollFd::new(&self.kernel, PollFlags::IN), PollFd::new(&self.stop, PollFlags::IN)];
        rustix::io::retry_on_intr(|| poll(&mut ready, timeout.as_ref()))?;
        let is_ready = |index: usize| !ready[index].revents().is_empty();
        Ok(if is_ready(1) {
            Woken::Stop
        } else if is_ready(0) {
            Woken::Event
        } else {
            Woken::Quiet
        })
    }

    /// Takes in what the kernel has, at most one buffer.
    fn read(&mut self, buffer: &mut [MaybeUninit<u8>]) -> Result<(), Errno> {
        let mut reader = inotify::Reader::new(self.kernel.as_fd(), buffer);
        loop {
            let event = match reader.next() {
                Ok(event) => event,
                Err(Errno::WOULDBLOCK | Errno::INTR) => return Ok(()),
                Err(errno) => return Err(errno),
            };
            self.tree.take_event(&RawEvent {
                watch: event.wd(),
                flags: event.events(),
                cookie: event.cookie(),
                name: event.file_name().map_or(&[], std::ffi::CStr::to_bytes),
            });
            if reader.is_buffer_empty() {
                return Ok(());
            }
        }
    }
}

/// Measures how long it takes to become quiet; simulations have no watcher, and so no use for another clock here.
struct Timer(Instant);

#[expect(
    clippy::disallowed_methods,
    reason = "the only place of the watcher that looks at a clock"
)]
impl Timer {
    fn start() -> Self {
        Self(Instant::now())
    }

    fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}

#[cfg(test)]
mod tests;
