//! Disk Paxos (Gafni and Lamport, DISC 2000): every client has one block at every store, which only it writes and all read.
//! The baseline of the comparison.
//!
//! *Participants*: a fixed number of clients; stores that overwrite and read blocks. *Goals*: the published algorithm.
//! *Non-goals*: use in a workspace: its cost grows with the clients, active or not, and it is safe only where a write that
//! was given up never happens later. *Invariants*: a client's rounds rise; it writes its value under a round only after it
//! has read all blocks of a quorum and found no newer round.

use super::rounds::{ProposerId, Quorums, Round, Status, Value};

/// The block of one client at one store.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Block<V> {
    /// The newest round that the client has begun.
    pub begun: Round,
    /// The newest round in which it proposed a value, and the value.
    pub proposed: Option<(Round, V)>,
}

/// What a client wants from one store.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BlockRequest<V> {
    /// To overwrite its own block.
    Write(Block<V>),
    /// To read the block of another client.
    Read(usize),
}

/// What a store says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BlockAnswer<V> {
    /// The block was written.
    Written,
    /// The block, or `None` where it was never written.
    Read(Option<Block<V>>),
    /// The store failed. A block may have been written.
    Failed,
}

/// Where a client stands with one store in this phase.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
struct StoreBlocks<V> {
    has_written: bool,
    /// How many clients' blocks were read, in order.
    read: usize,
    blocks: Vec<Block<V>>,
    asked: Option<BlockRequest<V>>,
    has_failed: bool,
}

/// The machine of one client.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DiskPaxos<V> {
    quorums: Quorums,
    client: usize,
    clients: usize,
    own: V,
    block: Block<V>,
    is_second_phase: bool,
    outcome: Option<V>,
    newest_seen: u64,
    stores: Vec<StoreBlocks<V>>,
}

impl<V: Value> DiskPaxos<V> {
    /// Starts to propose, as client number `client` of `clients`.
    pub fn propose(quorums: Quorums, client: usize, clients: usize, own: V) -> Self {
        let begun = Round { counter: 1, proposer: ProposerId(client as u128) };
        Self {
            quorums,
            client,
            clients,
            own,
            block: Block { begun, proposed: None },
            is_second_phase: false,
            outcome: None,
            newest_seen: 1,
            stores: Self::fresh(quorums.stores),
        }
    }

    fn fresh(count: usize) -> Vec<StoreBlocks<V>> {
        let fresh = || StoreBlocks {
            has_written: false,
            read: 0,
            blocks: Vec::new(),
            asked: None,
            has_failed: false,
        };
        std::iter::repeat_with(fresh).take(count).collect()
    }

    /// Everything that is known of one store and asked of it, as a number.
    #[cfg(feature = "testing")]
    pub fn fingerprint(&self, store: usize) -> u64
    where
        V: std::hash::Hash,
    {
        use std::hash::{DefaultHasher, Hash, Hasher};
        let mut hasher = DefaultHasher::new();
        self.stores[store].hash(&mut hasher);
        hasher.finish()
    }

    /// Numbers the stores anew: the first is now the one that was `order[0]`.
    #[cfg(feature = "testing")]
    pub fn reorder(&mut self, order: &[usize]) {
        self.stores = order.iter().map(|store| self.stores[*store].clone()).collect();
    }

    /// What was asked of a store and not answered.
    pub fn asked(&self, store: usize) -> Option<&BlockRequest<V>> {
        self.stores[store].asked.as_ref()
    }

    /// Returns the requests to be sent now, each with the number of its store.
    pub fn requests(&mut self) -> Vec<(usize, BlockRequest<V>)> {
        let mut requests = Vec::new();
        for store in 0..self.stores.len() {
            if let Some(request) = self.wish(store) {
                self.stores[store].asked = Some(request.clone());
                requests.push((store, request));
            }
        }
        requests
    }

    /// Takes an answer to what was asked of a store.
    pub fn answer(&mut self, store: usize, answer: BlockAnswer<V>) {
        let Some(view) = self.stores.get_mut(store) else { return };
        match (view.asked.take(), answer) {
            (Some(BlockRequest::Write(written)), BlockAnswer::Written) => {
                view.has_written = written == self.block;
            }
            (Some(BlockRequest::Read(_)), BlockAnswer::Read(block)) => {
                view.read += 1;
                view.blocks.extend(block);
            }
            (Some(_), _) => view.has_failed = true,
            (None, _) => {}
        }
        self.advance();
    }

    /// Begins a round newer than any that was seen.
    pub fn begin_round(&mut self) {
        self.newest_seen = self.newest_seen.max(self.newest_begun());
        self.newest_seen += 1;
        self.block.begun.counter = self.newest_seen;
        self.is_second_phase = false;
        self.restart_phase();
    }

    /// Asks the stores again that have failed.
    pub fn retry(&mut self) {
        for store in &mut self.stores {
            store.has_failed = false;
        }
    }

    /// Tells what is known.
    pub fn status(&self) -> Status<V> {
        if let Some(value) = &self.outcome {
            return Status::Decided(value.clone());
        }
        if self.is_outbid() {
            return Status::Outbid;
        }
        let is_waiting = self.stores.iter().any(|store| store.asked.is_some());
        let has_wish = (0..self.stores.len()).any(|store| self.wish(store).is_some());
        if is_waiting || has_wish { Status::Working } else { Status::TooFew }
    }

    fn wish(&self, store: usize) -> Option<BlockRequest<V>> {
        let view = &self.stores[store];
        if view.asked.is_some() || view.has_failed || self.outcome.is_some() {
            return None;
        }
        if !view.has_written {
            return Some(BlockRequest::Write(self.block.clone()));
        }
        self.other(view.read).map(BlockRequest::Read)
    }

    /// Returns the number of the other client that is read as number `read`.
    fn other(&self, read: usize) -> Option<usize> {
        (0..self.clients).filter(|client| *client != self.client).nth(read)
    }

    fn is_done(&self, store: &StoreBlocks<V>) -> bool {
        store.has_written && self.other(store.read).is_none()
    }

    fn blocks(&self) -> impl Iterator<Item = &Block<V>> {
        self.stores.iter().flat_map(|store| &store.blocks)
    }

    fn newest_begun(&self) -> u64 {
        self.blocks().map(|block| block.begun.counter).max().unwrap_or(0)
    }

    fn is_outbid(&self) -> bool {
        self.blocks().any(|block| block.begun > self.block.begun)
    }

    fn restart_phase(&mut self) {
        let asked: Vec<_> = self.stores.iter().map(|store| store.asked.clone()).collect();
        let failed: Vec<_> = self.stores.iter().map(|store| store.has_failed).collect();
        self.stores = Self::fresh(self.quorums.stores);
        for (store, (asked, has_failed)) in
            self.stores.iter_mut().zip(asked.into_iter().zip(failed))
        {
            // A block that is being written must have been written before the next one is.
            store.asked = asked.filter(|asked| matches!(asked, BlockRequest::Write(_)));
            store.has_failed = has_failed;
        }
    }

    fn advance(&mut self) {
        if self.outcome.is_some() || self.is_outbid() {
            return;
        }
        let done = self.stores.iter().filter(|store| self.is_done(store)).count();
        if done < self.quorums.classic {
            return;
        }
        if self.is_second_phase {
            self.outcome = self.block.proposed.as_ref().map(|(_, value)| value.clone());
            return;
        }
        let proposed = self.blocks().filter_map(|block| block.proposed.as_ref());
        let newest = proposed.chain(&self.block.proposed).max_by_key(|(round, _)| *round);
        let value = newest.map_or_else(|| self.own.clone(), |(_, value)| value.clone());
        self.block.proposed = Some((self.block.begun, value));
        self.is_second_phase = true;
        self.restart_phase();
    }
}

#[cfg(test)]
mod tests;
