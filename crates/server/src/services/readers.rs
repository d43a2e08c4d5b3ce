//! Connections that read, so that reading never waits for the writer.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Semaphore;

use crate::blocking::{self, STOPPING};
use crate::error::{Result, ServerError};
use crate::metadata::Metadata;

/// How many connections there are.
const READERS: usize = 4;

/// How long a question waits for a connection. Those before it wait for a database that stands still, and it would not fare better.
const WAIT_MAX: Duration = Duration::from_secs(10);

/// A pool of reading connections; cheap to clone.
#[derive(Debug, Clone)]
pub struct Readers {
    idle: Arc<Mutex<Vec<Box<dyn Metadata>>>>,
    permits: Arc<Semaphore>,
}

impl Readers {
    /// Opens the connections, each by `open`.
    ///
    /// # Errors
    /// Those of `open`.
    pub fn open(open: impl Fn() -> Result<Box<dyn Metadata>>) -> Result<Self> {
        let idle: Result<Vec<_>> = (0..READERS).map(|_| open()).collect();
        let permits = Arc::new(Semaphore::new(READERS));
        Ok(Self { idle: Arc::new(Mutex::new(idle?)), permits })
    }

    /// Does `work` on a connection, where it may block.
    ///
    /// # Errors
    /// Those of `work`; [`ServerError::Unavailable`] where no connection is free for too long.
    pub async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&dyn Metadata) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let permit = Arc::clone(&self.permits).acquire_owned();
        let permit = tokio::time::timeout(WAIT_MAX, permit)
            .await
            .map_err(|_| ServerError::Unavailable { reason: "waits for its database" })?
            .map_err(|_| STOPPING)?;
        let idle = Arc::clone(&self.idle);
        let read = move || {
            let connection = idle.lock().pop().expect("there are as many connections as permits");
            // A panic below must not lose the connection.
            let borrowed = Borrowed { idle, connection: Some(connection) };
            let outcome = work(&**borrowed.connection.as_ref().expect("it goes back on drop only"));
            drop(borrowed);
            drop(permit);
            outcome
        };
        blocking::piece(read).await?
    }
}

struct Borrowed {
    idle: Arc<Mutex<Vec<Box<dyn Metadata>>>>,
    connection: Option<Box<dyn Metadata>>,
}

impl Drop for Borrowed {
    fn drop(&mut self) {
        self.idle.lock().extend(self.connection.take());
    }
}
