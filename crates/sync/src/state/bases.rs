//! What the delta records of packs are made from, so that nobody forgets what others need.
//!
//! *Goals*: a cleanup can tell from this alone what else a needed chunk needs. *Invariants*: the bases of a record are there as soon as
//! its chunks are; a program that knows no bases does not open a database that has some.
//!
//! Why there are such records: `docs/decisions/0018-deltas-are-records.md`.

use std::collections::{BTreeMap, HashMap, HashSet};

use content::pack::Ancestry;
use model::{ChunkId, ChunkRef};
use rusqlite::{Connection, params};

use super::packs::{ChunkPlace, PLACES_OF, place};
use super::{DELTAS_SCHEMA_VERSION, State, id_column};
use crate::error::Result;

/// Made wherever it is missing, so that databases without it stay good.
pub(super) const SCHEMA: &str = "
CREATE TABLE IF NOT EXISTS bases (
    pack INTEGER NOT NULL, record INTEGER NOT NULL, position INTEGER NOT NULL, id BLOB NOT NULL, length INTEGER NOT NULL,
    PRIMARY KEY (pack, record, position)) WITHOUT ROWID;
";

/// Tells what a record is made from, in the order in which it wants it.
const BASES_OF: &str =
    "SELECT id, length FROM bases WHERE pack = ? AND record = ? ORDER BY position";

/// How many chunks are looked up to find out how some can be made.
const LOOKS_MAX: usize = 16 * 1024;

/// Tells whether any chunk is made from others.
pub(super) fn has_bases(connection: &Connection) -> rusqlite::Result<bool> {
    connection.prepare_cached("SELECT 1 FROM bases LIMIT 1")?.exists([])
}

/// Tells whether a chunk can be made from what packs have: in one of them it rests whole, or all of what it is made from there can be made.
pub(super) fn can_be_made(
    connection: &Connection,
    chunk: &ChunkId,
    bad: &HashSet<ChunkPlace>,
) -> rusqlite::Result<bool> {
    // Its length says nothing of whether it can be.
    let chunk = ChunkRef { id: *chunk, length: 0 };
    let made = Look::new(connection, bad).make(&[chunk])?;
    // As whoever reads it by itself asks.
    Ok(made.is_ok_and(|making| making.ancestry_of_record().is_readable()))
}

/// Returns what stands behind a chunk, if it can be made.
pub(super) fn ancestry(
    connection: &Connection,
    chunk: &ChunkRef,
) -> rusqlite::Result<Option<Ancestry>> {
    let made = Look::new(connection, &HashSet::new()).make(&[*chunk])?;
    Ok(made.ok().map(|making| making.ancestry_of(chunk)))
}

/// How chunks are made: from which others, wherever these rest.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Making {
    /// Each before those that are made from it.
    pub steps: Vec<Step>,
}

/// A chunk that is made, from the record in which it rests and the chunks of steps before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// The chunk.
    pub chunk: ChunkRef,
    /// Where it rests.
    pub place: ChunkPlace,
    /// How many deltas in a row are opened for it; 0 where it rests whole.
    pub depth: u32,
}

impl Making {
    fn length(&self) -> u64 {
        self.steps.iter().map(|step| u64::from(step.chunk.length)).sum()
    }

    fn depth(&self) -> u32 {
        self.steps.iter().map(|step| step.depth).max().unwrap_or_default()
    }

    /// Returns what stands behind the only chunk that this makes.
    pub fn ancestry_of(&self, chunk: &ChunkRef) -> Ancestry {
        let (chunks, length) = (self.steps.len().saturating_sub(1), self.length());
        let length = length.saturating_sub(u64::from(chunk.length));
        Ancestry { depth: self.depth(), chunks, length }
    }

    /// Returns what stands behind a record that is made from the chunks that this makes.
    pub fn ancestry_of_record(&self) -> Ancestry {
        Ancestry { depth: self.depth() + 1, chunks: self.steps.len(), length: self.length() }
    }
}

/// Why a chunk cannot be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unmade {
    /// This is in no pack that can be read, or is made from what is not.
    Missing(ChunkId),
    /// This is made from more than anybody reads.
    TooMany(ChunkId),
}

/// A look for what chunks can be made from.
struct Look<'a> {
    connection: &'a Connection,
    /// Places that are of no use.
    bad: &'a HashSet<ChunkPlace>,
    chunks: HashMap<ChunkId, Seen>,
    /// For each delta record that was come across: what it is made from.
    records: HashMap<ChunkPlace, Vec<ChunkRef>>,
    /// What can be made, in an order in which it can be.
    steps: Vec<Step>,
}

/// A chunk that was come across.
#[derive(Default)]
struct Seen {
    length: u32,
    /// Delta records in which it rests.
    made_in: Vec<ChunkPlace>,
    /// Delta records that are made from it.
    users: Vec<ChunkPlace>,
    /// Which of the steps makes it.
    step: Option<usize>,
}

impl<'a> Look<'a> {
    fn new(connection: &'a Connection, bad: &'a HashSet<ChunkPlace>) -> Self {
        let (chunks, records, steps) = (HashMap::new(), HashMap::new(), Vec::new());
        Self { connection, bad, chunks, records, steps }
    }

    /// Finds out how chunks are made, each in as few deltas in a row as can be. A chunk that rests whole is taken from there, and of several
    /// such places from that in the newest pack.
    fn make(
        mut self,
        wanted: &[ChunkRef],
    ) -> rusqlite::Result<std::result::Result<Making, Unmade>> {
        // In order, so that of two ways of one length the same one is found each time.
        let mut holders: BTreeMap<ChunkPlace, Vec<ChunkId>> = BTreeMap::new();
        let mut unseen: Vec<ChunkRef> = wanted.to_vec();
        while let Some(chunk) = unseen.pop() {
            if self.chunks.contains_key(&chunk.id) {
                continue;
            }
            if self.chunks.len() == LOOKS_MAX {
                return Ok(Err(Unmade::TooMany(wanted[0].id)));
            }
            self.chunks.insert(chunk.id, Seen { length: chunk.length, ..Seen::default() });
            let mut made_in = Vec::new();
            for place in self.places(&chunk.id)? {
                if self.bases(place)? {
                    made_in.push(place);
                    continue;
                }
                self.push_step(&chunk.id, place, 0);
                made_in.clear();
                break;
            }
            for place in &made_in {
                holders.entry(*place).or_default().push(chunk.id);
                unseen.extend(&self.records[place]);
            }
            self.chunks.entry(chunk.id).or_default().made_in = made_in;
        }
        self.solve(&holders);
        Ok(self.extract(wanted))
    }

    /// Goes from what rests whole to what is made from it, and on, so that the first way to a chunk that is found is the shortest.
    fn solve(&mut self, holders: &BTreeMap<ChunkPlace, Vec<ChunkId>>) {
        let mut lacking: HashMap<ChunkPlace, usize> = HashMap::new();
        for place in holders.keys() {
            let bases: HashSet<ChunkId> = self.records[place].iter().map(|base| base.id).collect();
            lacking.insert(*place, bases.len());
            for base in bases {
                self.chunks.entry(base).or_default().users.push(*place);
            }
        }
        let mut next = 0;
        while let Some(step) = self.steps.get(next).copied() {
            next += 1;
            for place in self.chunks[&step.chunk.id].users.clone() {
                let count = lacking.entry(place).or_default();
                *count -= 1;
                if *count == 0 {
                    for chunk in &holders[&place] {
                        self.push_step(chunk, place, step.depth + 1);
                    }
                }
            }
        }
    }

    /// Takes only what is needed of all that can be made.
    fn extract(self, wanted: &[ChunkRef]) -> std::result::Result<Making, Unmade> {
        let mut is_needed = vec![false; self.steps.len()];
        let mut needed: Vec<ChunkId> = wanted.iter().map(|chunk| chunk.id).collect();
        while let Some(chunk) = needed.pop() {
            let Some(step) = self.chunks[&chunk].step else {
                return Err(Unmade::Missing(self.missing_behind(chunk)));
            };
            if !std::mem::replace(&mut is_needed[step], true) {
                let bases = self.records.get(&self.steps[step].place).into_iter().flatten();
                needed.extend(bases.map(|base| base.id));
            }
        }
        let steps = self.steps.into_iter().zip(is_needed);
        Ok(Making {
            steps: steps.filter(|(_, is_needed)| *is_needed).map(|(step, _)| step).collect(),
        })
    }

    /// Returns what is nowhere of all that a chunk is made from.
    fn missing_behind(&self, mut chunk: ChunkId) -> ChunkId {
        let mut seen = HashSet::new();
        while seen.insert(chunk)
            && let Some(place) = self.chunks[&chunk].made_in.first()
        {
            let is_unmade = |base: &&ChunkRef| self.chunks[&base.id].step.is_none();
            chunk = self.records[place].iter().find(is_unmade).map_or(chunk, |base| base.id);
        }
        chunk
    }

    fn push_step(&mut self, chunk: &ChunkId, place: ChunkPlace, depth: u32) {
        let seen = self.chunks.get_mut(chunk).expect("only what was seen is made");
        if seen.step.is_none() {
            seen.step = Some(self.steps.len());
            let chunk = ChunkRef { id: *chunk, length: seen.length };
            self.steps.push(Step { chunk, place, depth });
        }
    }

    /// Returns where a chunk rests, the newest pack first.
    fn places(&self, chunk: &ChunkId) -> rusqlite::Result<Vec<ChunkPlace>> {
        let mut statement = self.connection.prepare_cached(PLACES_OF)?;
        let rows = statement.query_map([chunk.as_bytes()], place)?;
        let mut places: Vec<ChunkPlace> = rows.collect::<rusqlite::Result<_>>()?;
        places.retain(|place| !self.bad.contains(place));
        places.reverse();
        Ok(places)
    }

    /// Looks up what a record is made from; tells whether there is anything.
    fn bases(&mut self, place: ChunkPlace) -> rusqlite::Result<bool> {
        if !self.records.contains_key(&place) {
            let mut statement = self.connection.prepare_cached(BASES_OF)?;
            let rows = statement.query_map(params![place.pack as i64, place.record], base)?;
            self.records.insert(place, rows.collect::<rusqlite::Result<_>>()?);
        }
        Ok(!self.records[&place].is_empty())
    }
}

fn base(row: &rusqlite::Row<'_>) -> rusqlite::Result<ChunkRef> {
    Ok(ChunkRef { id: ChunkId::from_bytes(id_column(row, 0)?), length: row.get(1)? })
}

impl State {
    /// Tells whether any chunk is made from others.
    ///
    /// # Errors
    /// [`crate::SyncError::Database`].
    pub fn has_bases(&self) -> Result<bool> {
        self.database(has_bases(&self.connection))
    }

    /// Tells whether a chunk can be made from what packs have, as far as this device knows them.
    ///
    /// # Errors
    /// [`crate::SyncError::Database`].
    pub fn can_be_made(&self, chunk: &ChunkId) -> Result<bool> {
        self.can_be_made_without(chunk, &HashSet::new())
    }

    /// Tells the same where some places are of no use.
    ///
    /// # Errors
    /// [`crate::SyncError::Database`].
    pub fn can_be_made_without(&self, chunk: &ChunkId, bad: &HashSet<ChunkPlace>) -> Result<bool> {
        self.database(can_be_made(&self.connection, chunk, bad))
    }

    /// Returns what stands behind a chunk, if it can be made.
    ///
    /// # Errors
    /// [`crate::SyncError::Database`].
    pub fn ancestry(&self, chunk: &ChunkRef) -> Result<Option<Ancestry>> {
        self.database(ancestry(&self.connection, chunk))
    }

    /// Tells how chunks are made, without what rests in some places; or why one of them cannot be.
    ///
    /// # Errors
    /// [`crate::SyncError::Database`].
    pub fn making(
        &self,
        chunks: &[ChunkRef],
        bad: &HashSet<ChunkPlace>,
    ) -> Result<std::result::Result<Making, Unmade>> {
        self.reading(|| self.database(Look::new(&self.connection, bad).make(chunks)))
    }

    /// Learns what a record is made from.
    ///
    /// # Errors
    /// [`crate::SyncError::Database`].
    pub(crate) fn add_bases(&mut self, place: ChunkPlace, bases: &[ChunkRef]) -> Result<()> {
        if bases.is_empty() {
            return Ok(());
        }
        self.require_version(DELTAS_SCHEMA_VERSION)?;
        for (base, position) in bases.iter().zip(0_i64..) {
            self.run(
                "INSERT OR REPLACE INTO bases (pack, record, position, id, length) VALUES (?, ?, ?, ?, ?)",
                params![
                    place.pack as i64,
                    place.record,
                    position,
                    base.id.as_bytes(),
                    base.length
                ],
            )?;
        }
        Ok(())
    }

    /// Returns what the chunks of a record are made from; nothing for a record that rests whole.
    ///
    /// # Errors
    /// [`crate::SyncError::Database`].
    pub fn bases(&self, place: ChunkPlace) -> Result<Vec<ChunkRef>> {
        self.rows(BASES_OF, params![place.pack as i64, place.record], base)
    }

    /// Returns what every delta record is made from.
    ///
    /// # Errors
    /// [`crate::SyncError::Database`].
    pub fn all_bases(&self) -> Result<HashMap<ChunkPlace, Vec<ChunkRef>>> {
        let sql = "SELECT pack, record, id, length FROM bases ORDER BY pack, record, position";
        let mut all: HashMap<ChunkPlace, Vec<ChunkRef>> = HashMap::new();
        self.rows(sql, [], |row| {
            let place = ChunkPlace { pack: row.get::<_, i64>(0)? as u64, record: row.get(1)? };
            let id = ChunkId::from_bytes(id_column(row, 2)?);
            all.entry(place).or_default().push(ChunkRef { id, length: row.get(3)? });
            Ok(())
        })?;
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use model::{PackId, PackRef};

    use super::*;

    fn chunk(number: u8) -> ChunkId {
        ChunkId::from_bytes([number; 32])
    }

    /// A state with packs, each of one record that has these chunks and is made from these.
    fn state_of(packs: &[(&[u8], &[u8])]) -> State {
        let mut state = State::in_memory();
        for ((chunks, bases), number) in packs.iter().zip(1..) {
            let pack = PackId::from_bytes([number; 32]);
            state.add_pack(&PackRef { id: pack, length: 10 }, None).expect("added");
            let chunks = chunks.iter().map(|number| (chunk(*number), 0));
            state.add_chunks(&pack, chunks).expect("added");
            let number = state.pack_by_id(&pack).expect("read").expect("known").number;
            let bases: Vec<ChunkRef> =
                bases.iter().map(|base| ChunkRef { id: chunk(*base), length: 5 }).collect();
            state.add_bases(ChunkPlace { pack: number, record: 0 }, &bases).expect("added");
        }
        state
    }

    fn made(state: &State, chunks: &[u8]) -> Vec<bool> {
        chunks.iter().map(|number| state.can_be_made(&chunk(*number)).expect("read")).collect()
    }

    #[test]
    fn chunk_can_be_made_where_all_that_it_is_made_from_can() {
        let state = state_of(&[(&[1], &[]), (&[2], &[1]), (&[3], &[2, 1]), (&[4], &[3, 9])]);
        assert_eq!(made(&state, &[1, 2, 3, 4, 9]), [true, true, true, false, false]);
        // Another pack has it, too, from something that is there.
        let state = state_of(&[(&[1], &[]), (&[4], &[9]), (&[4], &[1])]);
        assert_eq!(made(&state, &[4]), [true]);
    }

    #[test]
    fn chunks_that_are_made_from_each_other_are_made_from_nothing() {
        let state = state_of(&[(&[1], &[2]), (&[2], &[1]), (&[3], &[3])]);
        assert_eq!(made(&state, &[1, 2, 3]), [false, false, false]);
        let state = state_of(&[(&[1], &[2]), (&[2], &[1]), (&[2], &[])]);
        assert_eq!(made(&state, &[1, 2]), [true, true]);
    }

    /// How some chunks are made when these packs are bad: each step as chunk, pack and depth.
    fn steps(
        state: &State,
        wanted: &[u8],
        bad: &[u64],
    ) -> std::result::Result<Vec<[u64; 3]>, Unmade> {
        let wanted: Vec<ChunkRef> =
            wanted.iter().map(|number| ChunkRef { id: chunk(*number), length: 5 }).collect();
        let bad = bad.iter().map(|pack| ChunkPlace { pack: *pack, record: 0 }).collect();
        let step = |step: &Step| {
            let number = u64::from(step.chunk.id.as_bytes()[0]);
            [number, step.place.pack, u64::from(step.depth)]
        };
        let making = state.making(&wanted, &bad).expect("read")?;
        Ok(making.steps.iter().map(step).collect())
    }

    #[test]
    fn chunk_is_made_in_the_fewest_deltas_from_what_is_not_bad() {
        // 4 is made from 3, which is made from 2, which is made from 1; and at once from 1.
        let packs: &[(&[u8], &[u8])] =
            &[(&[1], &[]), (&[2], &[1]), (&[3], &[2]), (&[4], &[3]), (&[4], &[1]), (&[1], &[])];
        let state = state_of(packs);
        assert_eq!(steps(&state, &[4], &[]).expect("made"), [[1, 6, 0], [4, 5, 1]]);
        assert_eq!(steps(&state, &[1], &[6]).expect("made"), [[1, 1, 0]]);
        let long = steps(&state, &[4], &[5]).expect("made");
        assert_eq!(long, [[1, 6, 0], [2, 2, 1], [3, 3, 2], [4, 4, 3]]);
        assert_eq!(steps(&state, &[4], &[5, 2]), Err(Unmade::Missing(chunk(2))));
        assert_eq!(steps(&state, &[9], &[]), Err(Unmade::Missing(chunk(9))));
        assert_eq!(steps(&state, &[2, 3], &[]).expect("made").len(), 3);
    }

    #[test]
    fn what_is_made_in_too_many_deltas_cannot_be_made() {
        let rows: Vec<(Vec<u8>, Vec<u8>)> = (0..20)
            .map(|row| (vec![row + 1], if row == 0 { Vec::new() } else { vec![row] }))
            .collect();
        let packs: Vec<(&[u8], &[u8])> =
            rows.iter().map(|(chunks, bases)| (&chunks[..], &bases[..])).collect();
        assert_eq!(made(&state_of(&packs), &[16, 17]), [true, false]);
    }

    /// Numbers of packs are given anew, so that what the old ones were made from would be said of others.
    #[test]
    fn nothing_is_left_of_bases_when_the_log_is_another_one() {
        let mut state = state_of(&[(&[1], &[]), (&[2], &[9])]);
        state.clear_remote().expect("cleared");
        for number in [3, 4] {
            let pack = PackId::from_bytes([number; 32]);
            state.add_pack(&PackRef { id: pack, length: 10 }, None).expect("added");
            state.add_chunks(&pack, [(chunk(number), 0)]).expect("added");
        }
        assert_eq!(made(&state, &[3, 4]), [true, true]);
        assert!(!state.has_bases().expect("read"));
    }

    #[test]
    fn many_chunks_with_many_bases_in_common_are_looked_up_once_each() {
        let rows: Vec<Vec<u8>> = (0..12).map(|row| (row * 20..row * 20 + 20).collect()).collect();
        let packs: Vec<(&[u8], &[u8])> = (0..12)
            .map(|row| (&rows[row][..], if row == 0 { &[][..] } else { &rows[row - 1][..] }))
            .collect();
        assert_eq!(made(&state_of(&packs), &[239]), [true]);
    }

    #[test]
    fn bases_keep_older_programs_out_and_are_forgotten_with_their_pack() {
        let version = |state: &State| -> i64 {
            let sql = "PRAGMA user_version";
            state.connection.query_row(sql, [], |row| row.get(0)).expect("read")
        };
        assert_eq!(version(&state_of(&[(&[1], &[])])), super::super::SCHEMA_VERSION);
        let mut state = state_of(&[(&[1], &[]), (&[2], &[1])]);
        state.require_mounts().expect("done");
        assert_eq!(version(&state), DELTAS_SCHEMA_VERSION);
        assert_eq!(state.all_bases().expect("read").len(), 1);
        state.forget_packs(&[PackId::from_bytes([2; 32])]).expect("forgotten");
        assert!(state.all_bases().expect("read").is_empty());
        let again = State::from_connection(state.into_connection());
        assert_eq!(version(&again.expect("opens")), DELTAS_SCHEMA_VERSION);
    }
}
