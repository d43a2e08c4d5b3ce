//! What every database must do, told as stories of a server and its devices; each runs on each database.
//!
//! A story gets a fresh and empty database ([`Database`]), opens as many connections to it as it wants, and calls the
//! services as the doors do. It may use everything that blocks, so it does not run in a task of a runtime.

#![expect(clippy::unwrap_used, reason = "a story that cannot go on has failed")]

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use model::testing::{commit, node};
use model::{Change, Commit, Genesis, Head, Mode, Random, Timestamp, WorkspaceId};

use super::Metadata;
use super::commits::Wanted;
use crate::auth::{Caller, NO_PASSWORD};
use crate::error::ServerError;
use crate::services::sync_service::{CommitRequest, Committed, commit_all};
use crate::services::{accounts, batch, sync_service, workspaces};

mod accounts_and_objects;
mod copies;
mod device_syncs;
mod full_accounts;
mod invitations;
mod keys;
mod links;
mod logs;
mod members;
mod passwords;
mod second_factors;
mod secrets;
mod several;
mod subjects;

/// A database of its own for one story.
pub trait Database: Debug + Send + Sync {
    /// Makes one more connection to it, as another server would.
    fn open(&self) -> Box<dyn Metadata>;
    /// Makes another one of this kind, which is empty.
    fn sibling(&self) -> Arc<dyn Database>;
    /// Returns the columns of all tables, each as `table.column`, without the one that keeps the version.
    fn columns(&self) -> BTreeSet<String>;
    /// Damages rows behind the back of the server.
    fn damage(&self, damage: Damage);
    /// Ends all connections, as a database that starts again does. Tells whether this database can.
    fn cut_connections(&self) -> bool;
}

/// What is wrong with a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Damage {
    /// The entries of this number hold bytes that are none.
    Entries {
        /// The number in each log.
        seq: u64,
    },
    /// The hash at the head of the workspace of this name has lost bytes.
    Head {
        /// The name.
        workspace: &'static str,
    },
}

/// One story.
#[derive(Clone, Copy)]
pub struct Story {
    /// What it claims.
    pub name: &'static str,
    /// Tells it.
    pub tell: fn(&Arc<dyn Database>),
}

/// Returns all stories.
pub fn stories() -> Vec<Story> {
    let mut stories = accounts_and_objects::STORIES.to_vec();
    stories.extend(copies::STORIES);
    stories.extend(device_syncs::STORIES);
    stories.extend(full_accounts::STORIES);
    stories.extend(secrets::STORIES);
    stories.extend(invitations::STORIES);
    stories.extend(keys::STORIES);
    stories.extend(links::STORIES);
    stories.extend(logs::STORIES);
    stories.extend(members::STORIES);
    stories.extend(passwords::STORIES);
    stories.extend(second_factors::STORIES);
    stories.extend(several::STORIES);
    stories.extend(subjects::STORIES);
    stories
}

impl Debug for Story {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.name)
    }
}

/// Bytes that never repeat.
#[derive(Debug, Default)]
struct Numbers(AtomicU64);

impl Random for Numbers {
    fn fill(&self, bytes: &mut [u8]) {
        let number = self.0.fetch_add(1, Ordering::Relaxed);
        blake3::Hasher::new().update(&number.to_le_bytes()).finalize_xof().fill(bytes);
    }
}

/// A database, and who uses it.
struct World {
    metadata: Box<dyn Metadata>,
    people: People,
}

/// Two devices of `ada` and one of `bob`; `ada` has the workspaces `home` and `work`.
#[derive(Clone)]
struct People {
    ada: [Caller; 2],
    bob: Caller,
    home: Genesis,
    work: Genesis,
}

fn genesis(name: &str) -> Genesis {
    Genesis {
        name: name.to_owned(),
        mode: Mode::Plain,
        created: Timestamp::default(),
        content_key: [7; 32],
    }
}

impl World {
    fn new(database: &Arc<dyn Database>) -> Self {
        let mut metadata = database.open();
        let (ada, bob) = write(&mut *metadata, |metadata| {
            let random = Numbers::default();
            let ada = accounts::create_account(metadata, "ada", NO_PASSWORD, 0)?;
            let bob = accounts::create_account(metadata, "bob", NO_PASSWORD, 0)?;
            let mut enrol = |account| {
                accounts::enrol_device(metadata, &random, account, "laptop", 0).map(|one| one.0)
            };
            Ok(([enrol(ada)?, enrol(ada)?], enrol(bob)?))
        })
        .unwrap();
        let (home, work) = (genesis("home"), genesis("work"));
        for genesis in [&home, &work] {
            write(&mut *metadata, |metadata| workspaces::create(metadata, &ada[0], genesis))
                .unwrap();
        }
        Self { metadata, people: People { ada, bob, home, work } }
    }

    fn commit_one(&mut self, request: CommitRequest) -> Result<Committed, ServerError> {
        commit_all(&mut *self.metadata, vec![request]).pop().unwrap()
    }

    fn head(&self, genesis: &Genesis) -> Head {
        self.metadata.workspace(genesis.workspace()).unwrap().unwrap().head
    }

    fn version(&self, genesis: &Genesis, n: u8) -> u64 {
        let number = self.metadata.workspace(genesis.workspace()).unwrap().unwrap().number;
        let wanted = Wanted { versions: vec![(number, node(n))], ..Wanted::default() };
        let found = self.metadata.find(&wanted).unwrap();
        found.versions.get(&(number, node(n))).copied().unwrap_or(0)
    }

    fn entries(&self, genesis: &Genesis) -> Vec<model::Entry> {
        all_entries(&*self.metadata, &self.ada[0], genesis.workspace())
    }
}

impl Deref for World {
    type Target = People;

    fn deref(&self) -> &People {
        &self.people
    }
}

impl People {
    /// A commit of a device of `ada` into a workspace.
    fn request(
        &self,
        device: usize,
        genesis: &Genesis,
        op: u8,
        changes: Vec<Change>,
    ) -> CommitRequest {
        let caller = self.ada[device];
        let commit = Commit { device: caller.device, ..commit(op, changes) };
        CommitRequest { caller, workspace: genesis.workspace(), commit }
    }
}

/// Reads a whole log, page by page, and checks that it is a chain.
fn all_entries(
    metadata: &dyn Metadata,
    caller: &Caller,
    workspace: WorkspaceId,
) -> Vec<model::Entry> {
    let mut entries: Vec<model::Entry> = Vec::new();
    loop {
        let since = entries.last().map_or(0, |entry| entry.seq);
        let page = sync_service::entries(metadata, caller, workspace, since, 2000).unwrap();
        if page.is_empty() {
            break;
        }
        entries.extend(page);
    }
    for (earlier, later) in entries.iter().zip(entries.iter().skip(1)) {
        assert!(later.follows(&earlier.head()), "{later:?}");
    }
    entries
}

/// Does work in a transaction of its own.
fn write<T>(
    metadata: &mut dyn Metadata,
    work: impl FnMut(&mut dyn Metadata) -> Result<T, ServerError> + Send,
) -> Result<T, ServerError> {
    batch::run(metadata, vec![Box::new(work)]).pop().unwrap()
}
