//! The one place where blocking work leaves the async runtime.

use crate::error::{Result, StorageError};

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
