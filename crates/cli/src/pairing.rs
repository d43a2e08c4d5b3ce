//! The boxes of a pairing in the stores of a workspace: `pairing/<name>/offer`, `request`, `grant` and `done`.
//!
//! What they are, and why no store can do anything with them: `content::pairing`.

use std::time::Duration;

use bytes::Bytes;
use content::pairing::{BOX_LENGTH_MAX, BOXES, PATIENCE_SECONDS, PairingCode};
use futures_util::future::join_all;
use model::Clock;
use storage::{ObjectKey, PutMode, PutOutcome};

use crate::context::Context;
use crate::error::{Code, CommandError, Result};
use crate::sealed::Stores;

/// How long one side waits for the other, that is for a person.
pub(crate) const PATIENCE: Duration = Duration::from_secs(PATIENCE_SECONDS);

/// How often is looked.
const PAUSE: Duration = Duration::from_millis(500);

/// The boxes of one pairing.
#[derive(Debug)]
pub(crate) struct Boxes {
    stores: Stores,
    name: String,
}

impl Boxes {
    /// Finds the boxes of a code.
    pub(crate) fn of(stores: Stores, code: &PairingCode) -> Self {
        Self { stores, name: code.name() }
    }

    fn key(&self, part: &str) -> ObjectKey {
        ObjectKey::pairing(&self.name, part).expect("digits are a segment")
    }

    /// Puts a box into all stores. Returns whether any of them had none of its kind.
    ///
    /// # Errors
    /// Those of the stores, where none takes it.
    pub(crate) async fn put(&self, part: &str, bytes: &[u8]) -> Result<bool> {
        let key = self.key(part);
        let bytes = Bytes::copy_from_slice(bytes);
        let put = self.stores.iter().map(|store| store.put(&key, bytes.clone(), PutMode::IfAbsent));
        let (mut failure, mut is_new, mut any) = (None, false, false);
        for outcome in join_all(put).await {
            match outcome {
                Ok(outcome) => {
                    any = true;
                    is_new |= outcome == PutOutcome::Written;
                }
                Err(error) => failure = Some(error),
            }
        }
        match failure {
            Some(failure) if !any => Err(failure.into()),
            _ => Ok(is_new),
        }
    }

    /// Returns what the stores have of a kind; each may have something else.
    async fn all(&self, part: &str) -> Vec<Bytes> {
        let key = self.key(part);
        let read = |store: &std::sync::Arc<dyn storage::ObjectStore>| {
            let (store, key) = (store.clone(), key.clone());
            async move {
                let size = store.size(&key).await.ok().flatten()?;
                if size > BOX_LENGTH_MAX { None } else { store.get(&key).await.ok().flatten() }
            }
        };
        let mut found: Vec<Bytes> =
            join_all(self.stores.iter().map(read)).await.into_iter().flatten().collect();
        found.dedup();
        found
    }

    /// Returns the first box of a kind that `open` opens.
    pub(crate) async fn first<T>(
        &self,
        part: &str,
        open: impl Fn(&[u8]) -> Option<T>,
    ) -> Option<(Bytes, T)> {
        let all = self.all(part).await;
        all.into_iter().find_map(|bytes| open(&bytes).map(|opened| (bytes, opened)))
    }

    /// Waits for a box that `open` opens.
    ///
    /// # Errors
    /// [`Code::WouldAsk`] where none comes in time.
    pub(crate) async fn wait<T>(
        &self,
        context: &Context<'_>,
        part: &str,
        open: impl Fn(&[u8]) -> Option<T>,
    ) -> Result<(Bytes, T)> {
        let end = context.clock.elapsed() + PATIENCE;
        loop {
            if let Some(found) = self.first(part, &open).await {
                return Ok(found);
            }
            if context.clock.elapsed() >= end {
                return Err(CommandError::new(Code::WouldAsk, "the other device has not answered")
                    .state("the code is void; nothing was changed")
                    .help("syncline pair", "shows another code"));
            }
            context.clock.sleep(PAUSE).await;
        }
    }

    /// Removes all boxes, so that the code is void.
    pub(crate) async fn remove(&self) {
        for part in BOXES {
            let key = self.key(part);
            // What stays is worth nothing without the code.
            join_all(self.stores.iter().map(|store| store.delete(&key))).await;
        }
    }
}
