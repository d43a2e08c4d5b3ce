//! Many commits, one transaction: what they need is read at once, they are decided one after the other in memory, and
//! what comes of it is written at once.
//!
//! *Goals*: the number of statements does not grow with the group. *Invariants*: the outcome is that of the same commits
//! one after the other; one that is refused, or whose rows are damaged, harms no other; nobody hears of success before
//! the transaction is durable.

use std::collections::hash_map::Entry as Slot;
use std::collections::{BTreeMap, HashMap};
use std::convert::Infallible;
use std::sync::Arc;

use commit_log::envelope;
use model::codec::encode_message;
use model::{
    Commit, DeviceId, Entry, EntryHash, Genesis, Head, NodeId, OpId, Outcome, Versions, WorkspaceId,
};
use storage::ObjectKey;

use super::{
    CommitRequest, Committed, ENTRY_FRAME_LENGTH, check_limits, length_bound, stored_entry,
};
use crate::auth::Caller;
use crate::error::{Result, ServerError};
use crate::metadata::commits::{Appended, EntryRow, Found, HeadRow, Operation, Wanted, Welcome};
use crate::metadata::{
    AccountId, MemberRole, Metadata, MetadataError, Room, WorkspaceNumber, WorkspaceRecord,
};
use crate::services::authorisation::{Role, Standing};
use crate::services::{authorisation, batch, workspaces};

/// A commit on its way into the log; its entry has a place once it is decided.
struct Proposal {
    caller: Caller,
    workspace: WorkspaceId,
    entry: Entry,
}

/// What became of a proposal.
struct Decision {
    head: Head,
    is_new: bool,
}

/// Puts commits into their logs. What was answered with success is durable.
pub fn commit_all(
    metadata: &mut dyn Metadata,
    requests: Vec<CommitRequest>,
) -> Vec<Result<Committed>> {
    let proposal = |request: CommitRequest| Proposal {
        caller: request.caller,
        workspace: request.workspace,
        entry: Entry { seq: 0, previous: EntryHash::NONE, commit: request.commit },
    };
    let mut proposals: Vec<Proposal> = requests.into_iter().map(proposal).collect();
    let decisions = settle(metadata, &mut proposals);
    let committed = |(proposal, decision): (Proposal, Result<Decision>)| {
        decision.map(|Decision { head, is_new }| Committed {
            head,
            appended: is_new.then(|| Arc::new(proposal.entry)),
        })
    };
    proposals.into_iter().zip(decisions).map(committed).collect()
}

/// Decides and writes proposals in one transaction. Where a row is in its way, the halves try alone, so that in the end
/// only those fail who need that row.
fn settle(metadata: &mut dyn Metadata, proposals: &mut [Proposal]) -> Vec<Result<Decision>> {
    let mut decisions = Vec::new();
    let written = batch::transact(metadata, |metadata| {
        decisions.clear();
        let mut group = Group::load(metadata, proposals)?;
        decisions.extend(group.decide_all(proposals));
        match group.appended() {
            Some(appended) => metadata.append(&appended),
            None => Ok(()),
        }
    });
    match written {
        Ok(()) => decisions,
        Err(error) if error.may_concern_one_row() && proposals.len() > 1 => {
            let (first, second) = proposals.split_at_mut(proposals.len() / 2);
            let mut decisions = settle(metadata, first);
            decisions.append(&mut settle(metadata, second));
            decisions
        }
        Err(error) => batch::fail_all(decisions, proposals.len(), &error.into()),
    }
}

/// Reads the roles of those who propose in workspaces of others; mostly there are none, and nothing is asked.
fn roles(
    metadata: &dyn Metadata,
    workspaces: &HashMap<WorkspaceId, Working>,
    proposals: &[Proposal],
) -> Result<HashMap<(WorkspaceNumber, AccountId), MemberRole>, MetadataError> {
    let member = |proposal: &Proposal| {
        let record = &workspaces.get(&proposal.workspace)?.record;
        let account = proposal.caller.account;
        (record.owner != account).then_some((record.number, account))
    };
    let mut members: Vec<_> = proposals.iter().filter_map(member).collect();
    members.sort_unstable();
    members.dedup();
    if members.is_empty() { Ok(HashMap::new()) } else { metadata.roles(&members) }
}

/// What is known of a workspace while its commits are decided.
struct Working {
    record: WorkspaceRecord,
    added_bytes: u64,
}

/// Everything that the commits of a group rest on, as it is after those that were decided already.
struct Group {
    devices: HashMap<DeviceId, Welcome>,
    workspaces: HashMap<WorkspaceId, Working>,
    /// Of those who propose in workspaces of others.
    roles: HashMap<(WorkspaceNumber, AccountId), MemberRole>,
    rooms: HashMap<AccountId, Room>,
    found: Found,
    /// Which proposal of this group has done an operation.
    fresh: HashMap<(WorkspaceNumber, DeviceId, OpId), usize>,
    changed: BTreeMap<(WorkspaceNumber, NodeId), u64>,
    entries: Vec<EntryRow>,
}

struct KnownVersions<'a>(&'a HashMap<(WorkspaceNumber, NodeId), u64>, WorkspaceNumber);

impl Versions for KnownVersions<'_> {
    type Error = Infallible;

    fn version(&self, node: &NodeId) -> Result<u64, Infallible> {
        Ok(self.0.get(&(self.1, *node)).copied().unwrap_or(0))
    }
}

impl Group {
    /// Reads what the proposals need.
    fn load(metadata: &dyn Metadata, proposals: &[Proposal]) -> Result<Self, MetadataError> {
        let distinct = |devices: &mut Vec<DeviceId>| {
            devices.sort_unstable();
            devices.dedup();
        };
        let mut devices = proposals.iter().map(|one| one.caller.device).collect();
        distinct(&mut devices);
        let mut ids: Vec<WorkspaceId> = proposals.iter().map(|one| one.workspace).collect();
        ids.sort_unstable();
        ids.dedup();
        let devices = metadata.welcome_devices(&devices)?;
        let workspaces: HashMap<_, _> = metadata
            .open_workspaces(&ids)?
            .into_iter()
            .map(|(id, record)| (id, Working { record, added_bytes: 0 }))
            .collect();
        let roles = roles(metadata, &workspaces, proposals)?;
        let mut owners: Vec<_> = workspaces.values().map(|one| one.record.owner).collect();
        owners.sort_unstable();
        owners.dedup();
        let mut group = Self {
            devices,
            roles,
            rooms: metadata.rooms(&owners)?,
            found: Found::default(),
            fresh: HashMap::new(),
            changed: BTreeMap::new(),
            entries: Vec::with_capacity(proposals.len()),
            workspaces,
        };
        group.found = metadata.find(&group.wanted(proposals))?;
        for Working { record, .. } in group.workspaces.values() {
            group.found.hashes.insert((record.number, record.head.seq), record.head.hash);
        }
        Ok(group)
    }

    /// Lists what is to be read for those proposals that are not refused anyway.
    fn wanted(&self, proposals: &[Proposal]) -> Wanted {
        let mut wanted = Wanted::default();
        wanted
            .versions
            .extend(self.workspaces.values().map(|working| (working.record.number, NodeId::FENCE)));
        for proposal in proposals {
            let Ok(record) = self.admit(proposal) else { continue };
            let (number, commit) = (record.number, &proposal.entry.commit);
            let length_max = (length_bound(commit) + ENTRY_FRAME_LENGTH) as u64;
            let (device, op_id) = (commit.device, commit.op_id);
            wanted.operations.push(Operation { workspace: number, device, op_id, length_max });
            match commit.seen {
                Head { seq: 0, hash: EntryHash::NONE } => {}
                Head { seq: 0, .. } => wanted.geneses.push(number),
                Head { seq, .. } if seq < record.head.seq => wanted.hashes.push((number, seq)),
                _ => {}
            }
            let keys = commit.packs.iter().map(|pack| ObjectKey::pack(pack.id).to_string());
            wanted.objects.extend(keys.map(|key| (number, key)));
            wanted.versions.extend(commit.changes.iter().map(|change| (number, change.node)));
        }
        wanted.operations.sort_unstable_by_key(|one| (one.workspace, one.device, one.op_id));
        wanted.objects.sort_unstable();
        wanted.versions.sort_unstable();
        wanted.versions.dedup();
        wanted.geneses.sort_unstable();
        wanted.geneses.dedup();
        wanted.hashes.sort_unstable();
        wanted.hashes.dedup();
        wanted
    }

    /// Tells whether a proposal may be made at all, whatever stands in the log.
    fn admit(&self, proposal: &Proposal) -> Result<&WorkspaceRecord> {
        let Proposal { caller, workspace, entry } = proposal;
        let welcome = self.devices.get(&caller.device);
        let welcome = welcome.filter(|welcome| welcome.account == caller.account);
        let welcome = welcome.ok_or(ServerError::NotSignedIn)?;
        let found = self.workspaces.get(workspace).map(|working| &working.record);
        let role = found.and_then(|record| match record.owner == caller.account {
            true => Some(Role::Owner),
            false => self.roles.get(&(record.number, caller.account)).copied().map(Role::Member),
        });
        let right = authorisation::right_of(&entry.commit);
        let standing = Standing::new(role, *workspace, welcome.limits.as_ref());
        authorisation::require(standing, right, workspace)?;
        let found = found.ok_or_else(|| workspaces::not_found(&workspace.to_string()))?;
        if entry.commit.device != caller.device {
            return Err(ServerError::Forbidden { what: "committing as another device".to_owned() });
        }
        check_limits(&entry.commit)?;
        Ok(found)
    }

    fn decide_all(&mut self, proposals: &mut [Proposal]) -> Vec<Result<Decision>> {
        (0..proposals.len()).map(|index| self.decide(proposals, index)).collect()
    }

    /// Decides one proposal after those before it. One that is refused leaves nothing behind.
    fn decide(&mut self, proposals: &mut [Proposal], index: usize) -> Result<Decision> {
        let proposal = &proposals[index];
        let record = self.admit(proposal)?;
        let commit = &proposal.entry.commit;
        let operation = (record.number, commit.device, commit.op_id);
        if let Some(head) = self.find_operation(record, proposals, index)? {
            return Ok(Decision { head, is_new: false });
        }
        self.check_seen(record, &commit.seen)?;
        self.check_packs(record, commit)?;
        let (number, owner, previous) = (record.number, record.owner, record.head);

        let proposal = &mut proposals[index];
        proposal.entry.seq = previous.seq + 1;
        proposal.entry.previous = previous.hash;
        let encoded = encode_message(&proposal.entry);
        let head = Head { seq: proposal.entry.seq, hash: EntryHash::of_encoded(&encoded) };
        let bytes = envelope::wrap_encoded(&encoded);
        let length = bytes.len() as u64;
        if let Some(room) = self.rooms.get_mut(&owner) {
            room.take(length)?;
        }
        let commit = &proposal.entry.commit;
        let known = KnownVersions(&self.found.versions, number);
        let Ok(outcomes) = model::decide::decide(&known, &previous, commit);
        for (change, outcome) in commit.changes.iter().zip(outcomes) {
            if let Outcome::Accepted { version } = outcome {
                self.found.versions.insert((number, change.node), version);
                self.changed.insert((number, change.node), version);
            }
        }
        let (device, op_id) = (commit.device, commit.op_id);
        self.entries.push(EntryRow { workspace: number, head, device, op_id, bytes });
        self.fresh.insert(operation, index);
        self.found.hashes.insert((number, head.seq), head.hash);
        if let Slot::Occupied(mut working) = self.workspaces.entry(proposal.workspace) {
            working.get_mut().record.head = head;
            working.get_mut().added_bytes += length;
        }
        Ok(Decision { head, is_new: true })
    }

    /// Returns where the operation of a proposal stands, if it was done before.
    fn find_operation(
        &self,
        record: &WorkspaceRecord,
        proposals: &[Proposal],
        index: usize,
    ) -> Result<Option<Head>> {
        let commit = &proposals[index].entry.commit;
        let operation = (record.number, commit.device, commit.op_id);
        let (head, is_same) = if let Some(&fresh) = self.fresh.get(&operation) {
            let entry = &proposals[fresh].entry;
            (entry.head(), entry.commit == *commit)
        } else if let Some(done) = self.found.operations.get(&operation) {
            let bytes = done.bytes.as_ref();
            let entry = bytes.map(|bytes| stored_entry(bytes, record)).transpose()?;
            (done.head, entry.is_some_and(|entry| entry.commit == *commit))
        } else {
            return Ok(None);
        };
        match is_same {
            true => Ok(Some(head)),
            false => Err(ServerError::OperationReused { seq: head.seq }),
        }
    }

    /// Checks that this log has what the device has seen.
    fn check_seen(&self, record: &WorkspaceRecord, seen: &Head) -> Result<()> {
        let known = match seen.seq {
            // Before the first entry there is nothing to lose; who has seen nothing at all may say so.
            0 if seen.hash == EntryHash::NONE => return Ok(()),
            0 => Some(self.genesis(record)?.hash()),
            seq if seq > record.head.seq => None,
            seq => self.found.hashes.get(&(record.number, seq)).copied(),
        };
        match known == Some(seen.hash) {
            true => Ok(()),
            false => Err(ServerError::HistoryLost { seq: seen.seq }),
        }
    }

    fn genesis(&self, record: &WorkspaceRecord) -> Result<Genesis> {
        let bytes = self.found.geneses.get(&record.number);
        workspaces::decode_genesis(bytes.map_or(&[][..], Vec::as_slice), record)
    }

    /// Checks that every pack of the commit rests in the store, in that length.
    fn check_packs(&self, record: &WorkspaceRecord, commit: &Commit) -> Result<()> {
        for pack in &commit.packs {
            let object = (record.number, ObjectKey::pack(pack.id).to_string());
            if self.found.objects.get(&object) != Some(&pack.length) {
                return Err(ServerError::PackMissing { pack: pack.id, length: pack.length });
            }
        }
        Ok(())
    }

    /// Returns what is to be written, if anything is.
    fn appended(self) -> Option<Appended> {
        if self.entries.is_empty() {
            return None;
        }
        let changed = self.workspaces.into_values().filter(|working| working.added_bytes > 0);
        let head = |working: Working| HeadRow {
            workspace: working.record.number,
            head: working.record.head,
            added_bytes: working.added_bytes,
        };
        let mut heads: Vec<_> = changed.map(head).collect();
        heads.sort_unstable_by_key(|row| row.workspace);
        // Rows that lie side by side in the indices are written one after the other. Those of a workspace keep their order.
        let mut entries = self.entries;
        entries.sort_by_key(|row| (row.workspace, row.head.seq));
        let versions = self.changed.into_iter();
        let versions = versions.map(|((workspace, node), version)| (workspace, node, version));
        Some(Appended { entries, heads, versions: versions.collect() })
    }
}

impl Room {
    /// Takes `length` bytes of it.
    ///
    /// # Errors
    /// [`ServerError::OverQuota`] where they do not fit.
    pub(crate) fn take(&mut self, length: u64) -> Result<()> {
        let left = self.quota_bytes.saturating_sub(self.used_bytes);
        if length > left {
            return Err(ServerError::OverQuota { needed: length, left });
        }
        self.used_bytes += length;
        Ok(())
    }
}
