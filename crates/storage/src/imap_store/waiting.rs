//! Waits for a message, told by the server (`IDLE`, RFC 2177).
//!
//! *Invariant*: the server listens first, and then it is looked, so that nothing that comes in between is missed.

use std::time::Duration;

use super::{Connection, ImapStore};
use crate::error::Result;
use crate::key::ObjectKey;
use crate::object_store::{ObjectStore, Waited};

impl ImapStore {
    pub(super) async fn wait_in_mailbox(
        &self,
        key: &ObjectKey,
        patience: Duration,
    ) -> Result<Waited> {
        if patience.is_zero() {
            let (session, index) = self.current().await?;
            let (is_there, has_idle) = (index.object(key).is_some(), session.has_idle);
            drop(index);
            session.keep();
            return Ok(match (is_there, has_idle) {
                (true, _) => Waited::Come,
                (false, true) => Waited::InVain,
                (false, false) => Waited::Unable,
            });
        }
        self.ready().await?;
        // A connection of its own: the others are for those who work.
        let idle = self.idle.lock().take();
        let mut connection = match idle {
            Some(connection) => connection,
            None => self.connect().await?,
        };
        if !connection.has_idle {
            return self.look(key, Waited::Unable).await;
        }
        let fail = |error| self.failure("wait for messages", error);
        connection.imap.select(&self.mailbox).await.map_err(fail)?;
        let Connection { imap, has_uidplus, has_idle } = connection;
        let mut listening = imap.idle();
        listening.init().await.map_err(fail)?;
        let mut waited = self.look(key, Waited::InVain).await?;
        if waited == Waited::InVain {
            // The library's own timeout begins anew whenever the server says that it is still there.
            let (message, _stop) = listening.wait_with_timeout(patience);
            if let Ok(message) = tokio::time::timeout(patience, message).await {
                message.map_err(fail)?;
                waited = self.look(key, Waited::InVain).await?;
            }
        }
        let imap = listening.done().await.map_err(fail)?;
        *self.idle.lock() = Some(Connection { imap, has_uidplus, has_idle });
        Ok(waited)
    }

    async fn look(&self, key: &ObjectKey, otherwise: Waited) -> Result<Waited> {
        Ok(if self.size(key).await?.is_some() { Waited::Come } else { otherwise })
    }
}
