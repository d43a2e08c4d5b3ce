//! What agreement on one slot costs by the older protocols, pPaxos and Disk Paxos, over the same emulated services.
//!
//! pPaxos gets what its paper's services give it: lists to which one request appends and which one request returns.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use commit_log::CommitLogError;
use commit_log::serverless::candidate::{Candidate, Context};
use commit_log::serverless::disk_paxos::DiskPaxos;
use commit_log::serverless::older::{AppendList, agree_by_disk_paxos, agree_by_ppaxos};
use commit_log::serverless::ppaxos::PassivePaxos;
use commit_log::serverless::rounds::{FaultModel, ProposerId, Quorums};
use commit_log::serverless::slot_log::Means;
use futures_util::future::join_all;
use model::{Entry, WorkspaceId};
use parking_lot::Mutex;
use storage::StorageError;
use storage::faulty::Operation;

use super::CloudStore;
use super::agreement::{Group, Party};
use super::services::Service;
use super::time::in_virtual_time;

/// The lists of one service; clones share them.
type Lists = Arc<Mutex<BTreeMap<u64, Vec<Bytes>>>>;

/// A device's way to the lists of a service.
#[derive(Debug)]
struct CloudLists {
    way: Arc<CloudStore>,
    lists: Lists,
}

#[async_trait]
impl AppendList for CloudLists {
    async fn append(&self, slot: u64, message: Bytes) -> Result<(), StorageError> {
        let length = message.len() as u64;
        let underway = self.way.begin(Operation::Put, "list", length).await;
        self.lists.lock().entry(slot).or_default().push(message);
        self.way.end(underway, 0).await;
        Ok(())
    }

    async fn fetch(&self, slot: u64, from: usize) -> Result<Vec<Bytes>, StorageError> {
        let underway = self.way.begin(Operation::Get, "list", 0).await;
        let list = self.lists.lock().get(&slot).cloned().unwrap_or_default();
        let messages: Vec<Bytes> = list.into_iter().skip(from).collect();
        let length = messages.iter().map(|message| message.len() as u64).sum();
        self.way.end(underway, length).await;
        Ok(messages)
    }
}

/// Measures pPaxos with so many devices at once: until the first of them knows what was agreed on, and until the last does.
///
/// # Errors
/// [`CommitLogError`].
pub fn by_ppaxos(
    services: &[Service],
    seed: u64,
    devices: u8,
) -> Result<[Duration; 2], CommitLogError> {
    in_virtual_time(async |clock| {
        let mut group = Group::new(clock.clone(), services, seed);
        let shared: Vec<Lists> = services.iter().map(|_| Lists::default()).collect();
        let parties: Vec<Party> = (1..=devices).map(|number| group.party(number)).collect();
        let began = clock.elapsed();
        let ends = parties.into_iter().map(async |mut party| {
            let ways = party.ways.iter().zip(&shared);
            let lists = ways.map(|(way, lists)| -> Arc<dyn AppendList> {
                Arc::new(CloudLists { way: way.clone(), lists: lists.clone() })
            });
            let lists: Vec<_> = lists.collect();
            let id = ProposerId(party.device.as_bytes()[0].into());
            let quorums = Quorums::new(lists.len(), FaultModel::Crash);
            let machine = PassivePaxos::propose(quorums, id, candidate(&mut party), false);
            let workspace = WorkspaceId::from_bytes([1; 16]);
            let context = Context { workspace, slot: 1, certifier: None, is_single: false };
            agree_by_ppaxos(&lists, context, machine, &means(&party)).await?;
            Ok(party.clock.elapsed() - began)
        });
        first_and_last(join_all(ends).await)
    })
}

/// Measures Disk Paxos with one device that proposes, among so many that might.
///
/// # Errors
/// [`CommitLogError`].
pub fn by_disk_paxos(
    services: &[Service],
    seed: u64,
    clients: usize,
) -> Result<Duration, CommitLogError> {
    in_virtual_time(async |clock| {
        let mut party = Group::new(clock.clone(), services, seed).party(1);
        let stores: Vec<_> = party.stores.iter().map(|(_, store)| store.clone()).collect();
        let quorums = Quorums::new(stores.len(), FaultModel::Crash);
        let machine = DiskPaxos::propose(quorums, 0, clients, candidate(&mut party));
        agree_by_disk_paxos(&stores, 1, 0, machine, &means(&party)).await?;
        Ok(clock.elapsed())
    })
}

fn first_and_last(
    ends: Vec<Result<Duration, CommitLogError>>,
) -> Result<[Duration; 2], CommitLogError> {
    let mut ends = ends.into_iter().collect::<Result<Vec<_>, _>>()?;
    ends.sort();
    Ok([ends[0], ends[ends.len() - 1]])
}

fn candidate(party: &mut Party) -> Candidate {
    let head = super::agreement::genesis().head();
    let commit = party.next_commit(head);
    let entry = Entry { seq: 1, previous: head.hash, commit };
    Candidate::new(entry, ProposerId(party.device.as_bytes()[0].into()), false)
}

fn means(party: &Party) -> Means {
    Means { clock: party.clock.clone(), random: party.random.clone() }
}
