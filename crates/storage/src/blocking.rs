//! The one place where blocking work leaves the async runtime.

use std::cell::Cell;
use std::marker::PhantomData;

use crate::error::{Result, StorageError};

thread_local! {
    /// Whether this thread waits for a future of its own, and nobody else for it.
    static MAY_BLOCK: Cell<bool> = const { Cell::new(false) };
}

/// Tells whether blocking work may stay on this thread.
pub fn may_block() -> bool {
    MAY_BLOCK.get()
}

/// Lets blocking work stay on this thread as long as this lives: the thread waits for one future, and no other waits for it. What is to run at
/// the same time in that future, or to be cut off after a while, is neither then. It cannot leave the thread.
#[derive(Debug)]
pub struct MayBlock {
    before: bool,
    _of_this_thread: PhantomData<*const ()>,
}

impl MayBlock {
    /// Marks this thread.
    pub fn here() -> Self {
        Self { before: MAY_BLOCK.replace(true), _of_this_thread: PhantomData }
    }
}

impl Drop for MayBlock {
    fn drop(&mut self) {
        MAY_BLOCK.set(self.before);
    }
}

/// Reads something: where this thread may block here, else as [`off_runtime`].
pub(crate) async fn read<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    match may_block() {
        true => work(),
        false => off_runtime(work).await,
    }
}

/// Runs `work` where it may block: on the runtime's blocking threads when there is a runtime, else right here
/// (a simulation has none, and wants one thread).
///
/// The work runs to its end even when the returned future is dropped.
pub(crate) async fn off_runtime<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    let Ok(runtime) = tokio::runtime::Handle::try_current() else {
        return work();
    };
    match runtime.spawn_blocking(work).await {
        Ok(result) => result,
        Err(failure) if failure.is_panic() => std::panic::resume_unwind(failure.into_panic()),
        Err(cancelled) => Err(StorageError::Failed {
            store: "this program".to_owned(),
            operation: "start blocking work".to_owned(),
            source: Box::new(cancelled),
        }),
    }
}
