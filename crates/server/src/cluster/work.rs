//! What gateways ask of sync services, declared once.

use commit_log::envelope;
use messaging::Fault;
use model::WorkspaceId;
use model::commit::COMMIT_LENGTH_MAX;
use model::wire::RefusalKind;
use serde::{Deserialize, Serialize};

use super::interface::{Blob, read};
use crate::auth::Caller;
use crate::error::{Result, ServerError};
use crate::metadata::AccountId;
use crate::services::sync_service::CommitRequest;
use crate::services::workspaces::SeenWorkspace;

/// How long one reply to a commit is at most, in bytes.
pub const REPLY_LENGTH_MAX: usize = 4 * 1024;

messaging::interface! {
    /// The sync service. Who asks has authenticated the asker; every call is authorised again.
    #[interface(
        name = "sync-service",
        version = 1,
        proxy = SyncServiceProxy,
        dispatcher = SyncServiceDispatcher,
    )]
    pub trait SyncServiceCalls {
        /// Returns the workspaces of the asker's account in the order of their names.
        #[call(timeout_ms = 5_000, retries = 2)]
        async fn get_workspaces(&self, asker: Asker) -> Vec<WorkspaceLine>;

        /// Returns a page of entries after `since`, oldest first, at least one where there is any: the wrapped reply
        /// [`Entries`](model::wire::Reply::Entries).
        #[call(timeout_ms = 5_000, retries = 2)]
        async fn get_changes(&self, asker: Asker, workspace: String, since: u64) -> Blob;

        /// Puts commits into their logs, and answers their gateway when they are durable.
        #[cast(timeout_ms = 2_000, expires_ms = 60_000)]
        async fn commit(&self, group: CommitGroup);

        /// Returns what each instance has done since it began.
        #[multi(timeout_ms = 500)]
        async fn load(&self) -> InstanceLoad;
    }
}

messaging::interface! {
    /// A gateway, which hears what became of what it has cast.
    #[interface(
        name = "gateway",
        version = 1,
        proxy = GatewayProxy,
        dispatcher = GatewayDispatcher,
    )]
    pub trait GatewayAnswers {
        /// The commits of a group are durable or refused.
        #[event]
        async fn answered(&self, answer: GroupAnswer);
    }
}

/// For whom something is asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asker {
    /// The number of the account in the database.
    pub account: i64,
    /// The device, as hexadecimal digits.
    pub device: String,
}

/// Commits that travel together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommitGroup {
    /// Chosen by the gateway; the answer carries it.
    pub number: u64,
    /// The topic where the gateway hears answers.
    pub gateway: String,
    /// The commits, in the order in which they came.
    pub commits: Vec<ProposedCommit>,
}

/// A commit and who proposes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProposedCommit {
    /// The device that asks.
    pub asker: Asker,
    /// The workspace, as hexadecimal digits.
    pub workspace: String,
    /// The wrapped commit.
    pub commit: Blob,
}

/// What became of a group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupAnswer {
    /// The number of the group.
    pub number: u64,
    /// A wrapped reply for each commit: [`Committed`](model::wire::Reply::Committed) or
    /// [`Refused`](model::wire::Reply::Refused).
    pub replies: Vec<Blob>,
}

/// What an instance has done since it began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstanceLoad {
    /// Groups of commits.
    pub groups: u64,
    /// How long all of them together were in its hands, in microseconds.
    pub busy_us: u64,
    /// How many groups it takes at once at most.
    pub groups_at_once: u64,
}

/// A workspace in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkspaceLine {
    /// Its id, as hexadecimal digits.
    pub id: String,
    /// Its name.
    pub name: String,
    /// The sequence number of its newest entry.
    pub head_seq: u64,
    /// How many bytes of entries and objects it holds.
    pub used_bytes: u64,
}

impl From<SeenWorkspace> for WorkspaceLine {
    fn from(seen: SeenWorkspace) -> Self {
        let workspace = seen.workspace;
        Self {
            id: workspace.id.to_string(),
            name: seen.name,
            head_seq: workspace.head.seq,
            used_bytes: workspace.used_bytes,
        }
    }
}

impl From<&Caller> for Asker {
    fn from(caller: &Caller) -> Self {
        Self { account: caller.account.0, device: caller.device.to_string() }
    }
}

impl Asker {
    /// Returns the caller.
    pub(super) fn open(&self) -> Result<Caller, Fault> {
        Ok(Caller { account: AccountId(self.account), device: read(&self.device)? })
    }
}

impl ProposedCommit {
    /// Writes a proposal whose commit is wrapped already.
    pub(super) fn new(request: &CommitRequest, commit: &[u8]) -> Self {
        Self {
            asker: (&request.caller).into(),
            workspace: request.workspace.to_string(),
            commit: Blob(commit.to_vec()),
        }
    }

    /// Reads the proposal.
    pub(super) fn open(&self) -> Result<CommitRequest> {
        let unreadable = |reason: String| ServerError::Invalid { what: "commit", reason };
        let caller = self.asker.open().map_err(|fault| unreadable(fault.message))?;
        let workspace: WorkspaceId = self
            .workspace
            .parse()
            .map_err(|error: model::ids::InvalidId| unreadable(error.to_string()))?;
        let commit = envelope::unwrap(&self.commit.0, COMMIT_LENGTH_MAX)
            .map_err(|error| unreadable(error.to_string()))?;
        Ok(CommitRequest { caller, workspace, commit })
    }
}

/// Returns the code of a fault that says no.
pub(super) fn code(kind: RefusalKind) -> &'static str {
    match kind {
        RefusalKind::Forbidden => "forbidden",
        RefusalKind::NotFound => "not_found",
        RefusalKind::Invalid => "invalid",
        RefusalKind::PackMissing => "pack_missing",
        RefusalKind::HistoryLost => "history_lost",
        RefusalKind::NoSpace => "no_space",
        RefusalKind::Unavailable => "unavailable",
        RefusalKind::OperationReused => "operation_reused",
        RefusalKind::DeviceCloned => "device_cloned",
        RefusalKind::NotAllowed => "not_allowed",
    }
}
