//! How a client that knows nothing of the old version learns its chunk list, for about as many symbols as the two lists differ.
//!
//! Rateless set reconciliation (Yang, Gilad and Alizadeh, "Practical Rateless Set Reconciliation", SIGCOMM 2024, sections 3 and
//! 4): every item falls into symbol 0 and into ever fewer of the later ones, by a sequence that follows from the item. A
//! symbol is the sum of the items in it. The client subtracts the symbols of its own list; one that has a single item left gives
//! it away, and taking it out of all its symbols uncovers others. Any number of symbols can be asked for, and the first ones
//! serve every client.
//!
//! Order matters in a list, so an item is a chunk together with what comes before it. What travels are keyed ids, so the side
//! that answers need not be able to read the file; in a sealed workspace it is another device, since only devices know the
//! lists there.

use std::collections::{HashMap, HashSet};

use model::content::{CHUNK_SIZE_MAX, ChunkRef};
use model::environment::Random;
use model::{ChunkId, WorkspaceId};

use super::base::{BaseVersion, ChunkTable};
use super::chunks::ChunkClient;
use super::error::DeltaError;
use super::message::{
    AskSymbols, DeltaMessage, ITEM_LENGTH, SYMBOLS_PER_MESSAGE, Symbol, SymbolBatch,
};
use super::plain::SessionId;
use super::source::RangedSource;
use super::sums::sip_hash;
use super::tuning::{check_session, check_workspace};
use crate::naming::WorkspaceContentKeys;

/// What the keys of symbols are for.
const SYMBOLS: &str = "syncline delta v1: symbols";

/// How many symbols are asked for at first: enough for four changed places, in 2 KB.
const SYMBOLS_FIRST: u64 = 32;

/// How many symbols there are at most; that tells lists apart that differ in 20,000 places.
const SYMBOLS_MAX: u64 = SYMBOLS_PER_MESSAGE;

/// How many bytes a symbol takes in a message, mostly: sum, check, and a count of one or two.
const SYMBOL_LENGTH: u64 = ITEM_LENGTH as u64 + 10;

/// How many bytes a chunk takes in a list: id, and a length of three.
const LISTED_LENGTH: u64 = 35;

/// A chunk in its place: id (32 bytes), length (4), how many equal ones come before it (4), and the label of the chunk before it
/// (8), all little-endian.
type Item = [u8; ITEM_LENGTH];

/// The keys of one session.
struct Hashes {
    label: [u64; 2],
    check: [u64; 2],
}

impl Hashes {
    fn of(workspace: WorkspaceId, session: SessionId) -> Self {
        let key = session.derive(SYMBOLS, workspace);
        let (words, _) = key.as_chunks::<8>();
        let word = |number: usize| u64::from_le_bytes(words[number]);
        Self { label: [word(0), word(1)], check: [word(2), word(3)] }
    }

    /// Returns the items of a list.
    fn items(&self, chunks: &[ChunkRef]) -> Vec<Item> {
        let mut counts: HashMap<ChunkId, u32> = HashMap::new();
        let mut before = START;
        let item = |chunk: &ChunkRef| {
            let count = counts.entry(chunk.id).or_default();
            let mut item = [0; ITEM_LENGTH];
            item[..32].copy_from_slice(chunk.id.as_bytes());
            item[32..36].copy_from_slice(&chunk.length.to_le_bytes());
            item[36..40].copy_from_slice(&count.to_le_bytes());
            item[40..].copy_from_slice(&before.to_le_bytes());
            *count += 1;
            before = self.label(&item);
            item
        };
        chunks.iter().map(item).collect()
    }

    /// Returns the name of a place in a list: a hash of the chunk and of how many equal ones come before it.
    fn label(&self, item: &Item) -> u64 {
        sip_hash(self.label, &item[..40])
    }

    fn check(&self, item: &Item) -> u64 {
        sip_hash(self.check, item)
    }
}

/// What stands before the first chunk.
const START: u64 = 0;

fn place_before(item: &Item) -> u64 {
    u64::from_le_bytes(item[40..].try_into().expect("a label has 8 bytes"))
}

fn chunk_of(item: &Item) -> ChunkRef {
    let id = item[..32].try_into().expect("an id has 32 bytes");
    let length = item[32..36].try_into().expect("a length has 4 bytes");
    ChunkRef { id: ChunkId::from_bytes(id), length: u32::from_le_bytes(length) }
}

/// The symbols into which an item falls, ascending, without end.
struct Indices {
    state: u64,
    next: u64,
}

impl Indices {
    fn of(check: u64) -> Self {
        Self { state: check, next: 0 }
    }
}

impl Iterator for Indices {
    type Item = u64;

    /// Symbol i has an item with the probability 1 / (1 + i / 2), so that from i on the next one is about
    /// (i + 3/2) (1 / sqrt(r) - 1) away for a uniform r (section 4.2 of the paper); here in whole numbers, so that all
    /// machines agree.
    fn next(&mut self) -> Option<u64> {
        const ONE: u64 = 1 << 32;
        let here = self.next;
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut random = self.state;
        random = (random ^ random >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        random = (random ^ random >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        let root = (random ^ random >> 31).isqrt().max(1);
        let gap = u128::from(2 * here + 3) * u128::from(ONE - root);
        let gap = gap.div_ceil(u128::from(2 * root)).max(1) as u64;
        self.next = here.saturating_add(gap);
        Some(here)
    }
}

/// Adds an item to symbols `first..first + symbols.len()`, once or, with `times` -1, takes it out.
fn add(symbols: &mut [Symbol], first: u64, item: &Item, check: u64, times: i64) {
    let end = first + symbols.len() as u64;
    let indices = Indices::of(check).skip_while(|&index| index < first);
    for index in indices.take_while(|&index| index < end) {
        let symbol = &mut symbols[(index - first) as usize];
        symbol.items.iter_mut().zip(item).for_each(|(sum, byte)| *sum ^= byte);
        symbol.check ^= check;
        // Hostile counts may be anything.
        symbol.count = symbol.count.wrapping_add(times);
    }
}

const EMPTY: Symbol = Symbol { items: [0; ITEM_LENGTH], check: 0, count: 0 };

/// Returns some symbols of a chunk list, as a message asks for them: the answer of the side that has the old version. It
/// remembers nothing between two such questions.
///
/// # Errors
/// [`DeltaError::WrongWorkspace`]; [`DeltaError::TooDifferent`] where more are asked for than there are; those of messages.
pub fn answer_symbols(
    workspace: WorkspaceId,
    table: &ChunkTable,
    message: &[u8],
) -> Result<Vec<u8>, DeltaError> {
    let message = DeltaMessage::decode(message)?;
    let DeltaMessage::AskSymbols(ask) = message else {
        return Err(message.unexpected("ask symbols"));
    };
    check_workspace(workspace, ask.workspace)?;
    let end = ask.first + ask.count;
    if end > SYMBOLS_MAX {
        return Err(DeltaError::TooDifferent { symbols: end });
    }
    let hashes = Hashes::of(workspace, ask.session);
    let mut symbols = vec![EMPTY; ask.count as usize];
    for item in hashes.items(table.chunks()) {
        add(&mut symbols, ask.first, &item, hashes.check(&item), 1);
    }
    let batch = SymbolBatch {
        session: ask.session,
        chunk_size: table.chunk_size(),
        chunk_count: table.chunks().len() as u64,
        digest: table.digest(),
        first: ask.first,
        symbols,
    };
    Ok(DeltaMessage::Symbols(batch).encode())
}

/// The side that has the new version, and wants to know the list of the old one.
pub struct Reconciler {
    workspace: WorkspaceId,
    session: SessionId,
    symbols: Vec<Symbol>,
    /// How many chunks the other side's list has, as far as it was told.
    their_count: u64,
    /// The chunks of the new version, once it is known how the old one was cut.
    own: Option<BaseVersion>,
}

/// How far the reconciliation is.
#[derive(Debug)]
pub enum Reconciled {
    /// The old version's list, against which a delta can be sent.
    Base(BaseVersion),
    /// More symbols are needed: a message that asks for them.
    More(Vec<u8>),
}

impl Reconciler {
    /// Begins a session; returns its first message.
    pub fn begin(workspace: WorkspaceId, random: &dyn Random) -> (Self, Vec<u8>) {
        Self::begin_session(workspace, SessionId::new(random))
    }

    /// Begins one that was named elsewhere, as by a page for its worker.
    pub fn begin_session(workspace: WorkspaceId, session: SessionId) -> (Self, Vec<u8>) {
        let reconciler =
            Self { workspace, session, symbols: Vec::new(), their_count: 0, own: None };
        let ask = reconciler.ask(SYMBOLS_FIRST);
        (reconciler, ask)
    }

    /// Begins where the list of the old version is known already, and the new one is surveyed: then only sums are asked for.
    pub fn of_survey(workspace: WorkspaceId, session: SessionId, survey: BaseVersion) -> Self {
        Self { workspace, session, symbols: Vec::new(), their_count: 0, own: Some(survey) }
    }

    /// Checks that what is asked for next is shorter than the list itself. Whoever may have that does better to fetch it otherwise.
    ///
    /// # Errors
    /// [`DeltaError::TooDifferent`].
    pub fn check_shorter_than_list(&self) -> Result<(), DeltaError> {
        match self.next_count() * SYMBOL_LENGTH < self.their_count.saturating_mul(LISTED_LENGTH) {
            true => Ok(()),
            false => Err(DeltaError::TooDifferent { symbols: self.symbols.len() as u64 }),
        }
    }

    /// Returns how many symbols are asked for next: three times as many as there are, so that the last ones are the most.
    fn next_count(&self) -> u64 {
        let count = self.symbols.len() as u64;
        (3 * count).min(SYMBOLS_MAX.saturating_sub(count))
    }

    fn ask(&self, count: u64) -> Vec<u8> {
        let (workspace, session, first) = (self.workspace, self.session, self.symbols.len() as u64);
        DeltaMessage::AskSymbols(AskSymbols { workspace, session, first, count }).encode()
    }

    pub(super) fn session(&self) -> SessionId {
        self.session
    }

    pub(super) fn own(&self) -> Option<&BaseVersion> {
        self.own.as_ref()
    }

    /// Returns what was found out about the new version, for [`ChunkClient::with_survey`]. It is known after [`Self::take`].
    pub fn into_survey(self) -> Option<BaseVersion> {
        self.own
    }

    /// Takes symbols of the old version's list. `new` is cut and named once.
    ///
    /// # Errors
    /// [`DeltaError::TooDifferent`] where the lists have hardly anything in common; then the new version is sent as one without
    /// an old one. [`DeltaError::Unverified`] where the symbols are not those of a list. [`DeltaError::Read`]; those of
    /// messages.
    pub fn take(
        &mut self,
        message: &[u8],
        keys: &WorkspaceContentKeys,
        new: &mut dyn RangedSource,
    ) -> Result<Reconciled, DeltaError> {
        let message = DeltaMessage::decode(message)?;
        let DeltaMessage::Symbols(batch) = message else {
            return Err(message.unexpected("symbols"));
        };
        check_session(self.session, batch.session)?;
        let known = self.symbols.len() as u64;
        if batch.first != known || batch.symbols.is_empty() {
            return Err(DeltaError::NoSuch { what: "symbol", index: batch.first, count: known });
        }
        self.symbols.extend_from_slice(&batch.symbols);
        self.their_count = batch.chunk_count;
        let own = match self.own.take() {
            Some(own) => own,
            None => ChunkClient::survey(keys, batch.chunk_size, new)?,
        };
        let own = self.own.insert(own);
        let hashes = Hashes::of(self.workspace, self.session);
        let mut items: HashSet<Item> = hashes.items(own.table().chunks()).into_iter().collect();
        let mut symbols = self.symbols.clone();
        for item in &items {
            add(&mut symbols, 0, item, hashes.check(item), -1);
        }
        if peel(&hashes, &mut symbols, &mut items) {
            let chunks = in_order(&hashes, items, batch.chunk_count)?;
            let table = ChunkTable::new(batch.chunk_size, chunks)?;
            if table.digest() != batch.digest {
                return Err(DeltaError::Unverified);
            }
            return Ok(Reconciled::Base(BaseVersion::without_sketch(table)));
        }
        let count = self.symbols.len() as u64;
        if count >= SYMBOLS_MAX {
            return Err(DeltaError::TooDifferent { symbols: count });
        }
        Ok(Reconciled::More(self.ask(self.next_count())))
    }
}

/// Takes single items out of symbols until nothing is left in them, and makes `items` those of the other side; tells whether it
/// came so far.
fn peel(hashes: &Hashes, symbols: &mut [Symbol], items: &mut HashSet<Item>) -> bool {
    // No symbol gives away more than one item, unless they were made to.
    let mut allowed = 2 * symbols.len();
    let mut candidates: Vec<usize> = (0..symbols.len()).collect();
    while let Some(candidate) = candidates.pop() {
        let symbol = symbols[candidate];
        let is_single =
            symbol.count.unsigned_abs() == 1 && hashes.check(&symbol.items) == symbol.check;
        if !is_single {
            continue;
        }
        if allowed == 0 {
            return false;
        }
        allowed -= 1;
        match symbol.count {
            1 => items.insert(symbol.items),
            _ => items.remove(&symbol.items),
        };
        add(symbols, 0, &symbol.items, symbol.check, -symbol.count);
        let touched = Indices::of(symbol.check).take_while(|&index| index < symbols.len() as u64);
        candidates.extend(touched.map(|index| index as usize));
    }
    symbols.iter().all(|symbol| *symbol == EMPTY)
}

/// Puts the chunks of a list into their order.
fn in_order(
    hashes: &Hashes,
    items: HashSet<Item>,
    count: u64,
) -> Result<Vec<ChunkRef>, DeltaError> {
    let actual = items.len() as u64;
    if actual != count {
        return Err(DeltaError::Length { what: "chunk list", expected: count, actual });
    }
    let mut behind: HashMap<u64, Item> =
        items.into_iter().map(|item| (place_before(&item), item)).collect();
    let mut chunks = Vec::with_capacity(behind.len());
    let mut label = START;
    while let Some(item) = behind.remove(&label) {
        let chunk = chunk_of(&item);
        if !(1..=CHUNK_SIZE_MAX).contains(&chunk.length) {
            return Err(DeltaError::Unverified);
        }
        chunks.push(chunk);
        label = hashes.label(&item);
    }
    if chunks.len() as u64 == count { Ok(chunks) } else { Err(DeltaError::Unverified) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequence_of_an_item_is_known_and_thins_out_as_it_should() {
        let first: Vec<u64> = Indices::of(7).take(8).collect();
        assert_eq!(first, [0, 1, 18, 20, 27, 41, 84, 124]);
        // The sum of 1 / (1 + i / 2) over the first 1000 symbols.
        let expected: f64 = (0..1000).map(|i| 1.0 / (1.0 + f64::from(i) / 2.0)).sum();
        let count = |check| Indices::of(check).take_while(|&index| index < 1000).count();
        let mean = (0..2000).map(|check| count(check * 0x1234_5677)).sum::<usize>() as f64 / 2000.0;
        assert!((mean / expected - 1.0).abs() < 0.05, "{mean} where {expected} are due");
    }
}
