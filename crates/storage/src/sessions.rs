//! Connections that are opened when they are wanted, used by one call at a time, and kept for the next.

#![cfg_attr(
    not(feature = "stores"),
    allow(dead_code, reason = "not every tree has connections of its own")
)]

use std::ops::{Deref, DerefMut};

use parking_lot::Mutex;
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::error::Result;

/// The connections of one store.
#[derive(Debug)]
pub(crate) struct Sessions<S> {
    idle: Mutex<Vec<S>>,
    permits: Semaphore,
}

impl<S> Sessions<S> {
    /// At most `sessions_max` connections will be open at once.
    pub(crate) fn new(sessions_max: usize) -> Self {
        Self { idle: Mutex::new(Vec::new()), permits: Semaphore::new(sessions_max) }
    }

    /// Takes an idle connection, or makes one.
    pub(crate) async fn take<F>(&self, connect: impl FnOnce() -> F) -> Result<Session<'_, S>>
    where
        F: Future<Output = Result<S>>,
    {
        let permit = self.permits.acquire().await.expect("the semaphore is never closed");
        let idle = self.idle.lock().pop();
        let connection = match idle {
            Some(connection) => connection,
            None => connect().await?,
        };
        Ok(Session { connection: Some(connection), home: self, _permit: permit })
    }
}

/// A connection in use. Unless it is given back by [`Self::keep`] it is closed: after an error or a dropped call nobody
/// knows what the server will send next. The idle ones go with it, because they are as old as what just failed.
#[derive(Debug)]
pub(crate) struct Session<'a, S> {
    connection: Option<S>,
    home: &'a Sessions<S>,
    _permit: SemaphorePermit<'a>,
}

impl<S> Session<'_, S> {
    /// Gives the connection back for the next call.
    pub(crate) fn keep(mut self) {
        self.home.idle.lock().extend(self.connection.take());
    }
}

impl<S> Drop for Session<'_, S> {
    fn drop(&mut self) {
        if self.connection.is_some() {
            self.home.idle.lock().clear();
        }
    }
}

impl<S> Deref for Session<'_, S> {
    type Target = S;

    fn deref(&self) -> &S {
        self.connection.as_ref().expect("only keep takes the connection, and it ends the session")
    }
}

impl<S> DerefMut for Session<'_, S> {
    fn deref_mut(&mut self) -> &mut S {
        self.connection.as_mut().expect("only keep takes the connection, and it ends the session")
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    fn take<'a>(sessions: &'a Sessions<u32>, number: u32) -> Session<'a, u32> {
        let taken = sessions.take(|| async move { Ok(number) }).now_or_never();
        taken.expect("a permit is free").unwrap()
    }

    #[test]
    fn a_kept_connection_is_used_again_and_a_failed_one_takes_the_idle_ones_along() {
        let sessions = Sessions::new(2);
        let (one, two) = (take(&sessions, 1), take(&sessions, 2));
        assert!(sessions.take(|| async { Ok(3) }).now_or_never().is_none());
        one.keep();
        two.keep();
        let again = take(&sessions, 3);
        assert_eq!(*again, 2);
        drop(again);
        assert_eq!(*take(&sessions, 4), 4);
    }
}
