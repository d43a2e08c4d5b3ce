//! Connections that read, so that reading never waits for the writer.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Semaphore;

use crate::blocking;
use crate::error::{Result, ServerError};
use crate::metadata::Metadata;

/// How many connections there are.
pub(crate) const READERS: usize = 4;

/// How long a question waits for a connection. Those before it wait for a database that stands still, and it would not fare better.
pub(crate) const WAIT_MAX: Duration = Duration::from_secs(10);

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
            .map_err(|_| ServerError::STOPPING)?;
        let idle = Arc::clone(&self.idle);
        let read = move || {
            let connection = idle.lock().pop().expect("there are as many connections as permits");
            // A panic below must not lose the connection.
            let borrowed = Borrowed { idle, connection: Some(connection) };
            let outcome = borrowed.read(work);
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

impl Borrowed {
    fn read<T>(&self, work: impl FnOnce(&dyn Metadata) -> Result<T>) -> Result<T> {
        let connection = &**self.connection.as_ref().expect("it goes back on drop only");
        connection.begin_asking()?;
        work(connection)
    }
}

impl Drop for Borrowed {
    fn drop(&mut self) {
        let Some(connection) = self.connection.take() else { return };
        if let Err(error) = connection.end_asking() {
            tracing::warn!(%error, "a connection that has read does not end that");
        }
        self.idle.lock().push(connection);
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;
    use crate::services::accounts;
    use crate::testing::TestApp;

    #[tokio::test]
    async fn questions_of_one_reading_are_answered_as_of_one_moment() {
        let test = TestApp::start();
        let app = Arc::clone(&test.app);
        let has_bob = |metadata: &dyn Metadata| Ok(metadata.account_by_name("bob")?.is_some());
        let (asked, was_asked) = oneshot::channel();
        let (wrote, written) = std::sync::mpsc::channel();
        let reading = app.readers.read(move |metadata| {
            let before = has_bob(metadata)?;
            asked.send(()).unwrap();
            written.recv().unwrap();
            Ok((before, has_bob(metadata)?))
        });
        let writing = async {
            was_asked.await.unwrap();
            let add = |metadata: &mut dyn Metadata| {
                accounts::create_account(metadata, "bob", "", 0).map(drop)
            };
            app.writer.write(add).await.unwrap();
            wrote.send(()).unwrap();
        };
        let (read, ()) = tokio::join!(reading, writing);
        assert_eq!(read.unwrap(), (false, false));
        // The next one of each connection sees what is there by now.
        for _ in 0..=READERS {
            assert!(app.readers.read(has_bob).await.unwrap());
        }
    }
}
