//! Services that stop answering while a device works: they accept what is sent, and never say anything.

use std::sync::Arc;

use futures_util::future::{Either, pending, select};
use storage::layers::{Answer, Gate, Operation};
use storage::{ObjectStore, Result};
use tokio::sync::watch;

/// Lets stores hang, and answer again; clones are the same switch.
#[derive(Debug, Clone)]
pub struct Switch(Arc<watch::Sender<bool>>);

impl Default for Switch {
    fn default() -> Self {
        Self(Arc::new(watch::channel(false).0))
    }
}

impl Switch {
    /// Lets the stores hang, with what they were asked, or answer again what they are asked from now on.
    pub fn set(&self, hangs: bool) {
        self.0.send_replace(hangs);
    }

    /// Puts a store behind the switch.
    pub fn control(&self, store: Arc<dyn ObjectStore>) -> Arc<dyn ObjectStore> {
        Arc::new(Hanging { store, hangs: self.0.subscribe() })
    }
}

/// A store behind a switch.
#[derive(Debug)]
struct Hanging {
    store: Arc<dyn ObjectStore>,
    hangs: watch::Receiver<bool>,
}

impl Gate for Hanging {
    fn store(&self) -> &dyn ObjectStore {
        &*self.store
    }

    async fn pass<A: Send>(&self, _: Operation, _: usize, answer: impl Answer<A>) -> Result<A> {
        let mut hangs = self.hangs.clone();
        let hung = std::pin::pin!(async { drop(hangs.wait_for(|hangs| *hangs).await) });
        match select(hung, std::pin::pin!(answer)).await {
            Either::Left(_) => pending().await,
            Either::Right((answer, _)) => answer,
        }
    }
}
