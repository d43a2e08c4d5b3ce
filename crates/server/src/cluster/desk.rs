//! What a server does with the news of others.
//!
//! *Invariant*: nothing here waits while the next bulletin is there: what takes time is noted and done beside.

use std::collections::BTreeSet;
use std::sync::Arc;

use messaging::{Context, Fault, InstanceId, Name};
use model::{DeviceId, WorkspaceId};
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::Standing;
use super::interface::{Bulletin, Item, Servers, read};
use crate::app::App;
use crate::doors::live;
use crate::metadata::AccountId;
use crate::services::events::{Hub, wrapped};
use crate::services::news::{News, Told};
use crate::services::presence::{Closing, Presence};
use crate::services::readers::Readers;
use crate::services::sync_service;

/// How many workspaces are looked at in one go.
const LOOK_AT_ONCE: usize = 64;

/// Where news comes in.
#[derive(Debug, Clone)]
pub(super) struct Desk {
    hub: Hub,
    presence: Arc<Presence>,
    readers: Readers,
    news: News,
    standing: Arc<Standing>,
    unsure: Arc<Unsure>,
}

/// Workspaces with entries that subscribers may not have heard of.
#[derive(Debug, Default)]
struct Unsure {
    workspaces: Mutex<BTreeSet<WorkspaceId>>,
    has_some: Notify,
}

impl Desk {
    pub(super) fn new(app: &App, standing: Arc<Standing>) -> Self {
        Self {
            hub: app.hub.clone(),
            presence: Arc::clone(&app.presence),
            readers: app.readers.clone(),
            news: app.news.clone(),
            standing,
            unsure: Arc::default(),
        }
    }

    /// Returns the desk of an instance.
    pub(super) fn at(&self, own: InstanceId) -> Seat {
        Seat { desk: self.clone(), own }
    }

    /// Tells subscribers the newest entries of workspaces that are unsure, for ever. Devices see a gap and ask.
    pub(super) async fn look(&self) {
        loop {
            self.unsure.has_some.notified().await;
            let workspaces = std::mem::take(&mut *self.unsure.workspaces.lock());
            let workspaces: Vec<_> = workspaces.into_iter().collect();
            for group in workspaces.chunks(LOOK_AT_ONCE) {
                self.look_at(group.to_vec()).await;
            }
        }
    }

    async fn look_at(&self, workspaces: Vec<WorkspaceId>) {
        let read = self.readers.read(move |metadata| {
            let newest = workspaces.into_iter().map(|workspace| {
                let newest = sync_service::newest_entry(metadata, workspace)?;
                Ok(newest.map(|entry| (workspace, wrapped(workspace, Arc::new(entry)))))
            });
            newest.collect::<Result<Vec<_>, _>>()
        });
        match read.await {
            Ok(frames) => {
                for (workspace, frame) in frames.into_iter().flatten() {
                    self.hub.deliver(workspace, &frame);
                }
            }
            // The devices ask by themselves.
            Err(error) => tracing::debug!(%error, "newest entries cannot be read"),
        }
    }

    fn is_unsure(&self, workspaces: impl IntoIterator<Item = WorkspaceId>) {
        self.unsure.workspaces.lock().extend(workspaces);
        self.unsure.has_some.notify_one();
    }

    /// Looks whether a device that has come to another server is here in another incarnation.
    fn challenge(&self, device: DeviceId, incarnation: u64) {
        let challenged = self.presence.challenge(device, incarnation);
        if challenged.is_empty() {
            return;
        }
        let desk = self.clone();
        tokio::spawn(async move {
            if live::any_lives(&challenged).await {
                tracing::warn!(%device, "two installations use one device; the later one is refused");
                desk.news.tell(Told::Contested { device, incarnation });
            } else {
                for other in challenged {
                    other.replace(&desk.presence);
                }
            }
        });
    }

    fn take(&self, item: Item, is_own: bool) -> Result<(), Fault> {
        match item {
            // A server sees itself to what it tells others.
            Item::Moved { workspace } => {
                let workspace = read(&workspace)?;
                if self.hub.is_heard(workspace) {
                    self.is_unsure([workspace]);
                }
            }
            _ if is_own => {}
            Item::Entry { workspace, frame } => {
                self.hub.deliver(read(&workspace)?, &frame.0.into());
            }
            Item::SignedOut { device } => {
                self.presence.close_device(read(&device)?, Closing::Revoked);
            }
            Item::Expelled { account, workspace } => {
                self.presence.expel(&self.hub, AccountId(account), read(&workspace)?);
            }
            Item::Arrived { device, incarnation } => self.challenge(read(&device)?, incarnation),
            Item::Contested { device, incarnation } => {
                self.presence.contest(read(&device)?, incarnation);
            }
        }
        Ok(())
    }
}

/// The desk of one instance, which hears itself, too.
#[derive(Debug)]
pub(super) struct Seat {
    desk: Desk,
    own: InstanceId,
}

impl Servers for Seat {
    async fn news(&self, context: &Context, bulletin: Bulletin) -> Result<(), Fault> {
        let standing = &self.desk.standing;
        standing.hear(&standing.bulletins);
        let is_own = context.sender == self.own;
        for item in bulletin.items {
            self.desk.take(item, is_own)?;
        }
        if bulletin.is_incomplete && !is_own {
            self.desk.is_unsure(self.desk.hub.workspaces());
        }
        Ok(())
    }

    async fn missed(&self, _topic: &Name) {
        self.desk.is_unsure(self.desk.hub.workspaces());
    }
}
