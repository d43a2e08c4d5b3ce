//! Sums on request: what a client that has learnt the chunk list of a plain workspace's file may ask of the server, so that it
//! need not send whole chunks.
//!
//! It costs one more round trip, and 2.5 % of the old chunks in whose places there are new ones. The sums are those of a
//! sketch, so from then on all is as if the client had kept them.

use super::base::{BaseVersion, ChunkTable, Places};
use super::chunks::{Section, sections};
use super::error::DeltaError;
use super::message::{AskSums, ChunkRun, DeltaMessage};
use super::plain::Plain;
use super::reconcile::Reconciler;
use super::sketch::{PIECE_LENGTH, SketchKey};
use super::source::{RangedSource, read_at};
use super::tuning::{check_session, check_workspace};
use crate::naming::WorkspaceContentKeys;

/// How many bytes of old chunks one question is about at most: 1.5 MiB of sums.
const ASKED_LENGTH_MAX: u64 = 64 * 1024 * 1024;

impl Reconciler {
    /// Returns a message that asks for the sums of the old chunks in whose places there are new ones; nothing where there are
    /// none. Of more than 64 MiB of them the first are asked for.
    pub fn ask_sums(&self, plain: Plain, base: &BaseVersion) -> Option<Vec<u8>> {
        let runs = self.asked(base);
        let (workspace, session) = (plain.workspace(), self.session());
        let ask = AskSums { workspace, session, base: base.table().digest(), runs };
        (!ask.runs.is_empty()).then(|| DeltaMessage::AskSums(ask).encode())
    }

    /// Takes the sums that were asked for; returns the base with them.
    ///
    /// # Errors
    /// [`DeltaError::Length`] where they are not so many; those of messages.
    pub fn take_sums(&self, base: BaseVersion, message: &[u8]) -> Result<BaseVersion, DeltaError> {
        let message = DeltaMessage::decode(message)?;
        let DeltaMessage::Sums(session, sums) = message else {
            return Err(message.unexpected("sums"));
        };
        check_session(self.session(), session)?;
        let runs = self.asked(&base);
        base.with_sums(&runs, sums)
    }

    /// Returns the old chunks whose sums are of use.
    fn asked(&self, base: &BaseVersion) -> Vec<ChunkRun> {
        let Some(own) = self.own() else { return Vec::new() };
        let table = base.table();
        let mut room = ASKED_LENGTH_MAX;
        let mut runs = Vec::new();
        for section in sections(table, &Places::of(table), own.table().chunks()) {
            let Section::Gap(gap) = section else { continue };
            let mut end = gap.old.start;
            while end < gap.old.end && u64::from(table.chunks()[end].length) <= room {
                room -= u64::from(table.chunks()[end].length);
                end += 1;
            }
            if end > gap.old.start {
                let (first, count) = (gap.old.start as u64, (end - gap.old.start) as u64);
                runs.push(ChunkRun { first, count });
            }
        }
        runs
    }
}

/// Sums some chunks of the old version up, as a message asks: the answer of the server of a plain workspace. It remembers
/// nothing between two such questions.
///
/// # Errors
/// [`DeltaError::WrongWorkspace`]; [`DeltaError::WrongBase`] where the old version is another one meanwhile;
/// [`DeltaError::NoSuch`]; [`DeltaError::TooLarge`] above 64 MiB of chunks, or of so many that their sums are more than those of
/// twice as much; [`DeltaError::Read`]; those of messages.
pub fn answer_sums(
    plain: Plain,
    keys: &WorkspaceContentKeys,
    table: &ChunkTable,
    message: &[u8],
    old: &mut dyn RangedSource,
) -> Result<Vec<u8>, DeltaError> {
    let message = DeltaMessage::decode(message)?;
    let DeltaMessage::AskSums(ask) = message else { return Err(message.unexpected("ask sums")) };
    check_workspace(plain.workspace(), ask.workspace)?;
    if ask.base != table.digest() || old.size() != table.size() {
        return Err(DeltaError::WrongBase);
    }
    let key = SketchKey::of(keys);
    let (mut size, mut bytes, mut sums) = (0, Vec::new(), Vec::new());
    for run in &ask.runs {
        for chunk in run.chunks(table)? {
            let length = table.chunks()[chunk].length;
            size += u64::from(length);
            if size > ASKED_LENGTH_MAX {
                return Err(DeltaError::TooLarge { size, max: ASKED_LENGTH_MAX });
            }
            // A chunk of a few bytes has a sum, too.
            let summed = ((sums.len() + 1) * PIECE_LENGTH) as u64 + u64::from(length);
            if summed > 2 * ASKED_LENGTH_MAX {
                return Err(DeltaError::TooLarge { size: summed, max: 2 * ASKED_LENGTH_MAX });
            }
            bytes.resize(length as usize, 0);
            read_at(old, table.start(chunk), &mut bytes)?;
            sums.extend(bytes.chunks(PIECE_LENGTH).map(|piece| key.piece_sum(piece)));
        }
    }
    Ok(DeltaMessage::Sums(ask.session, sums).encode())
}

impl ChunkRun {
    /// Returns the places of the chunks in a table.
    pub(super) fn chunks(&self, table: &ChunkTable) -> Result<std::ops::Range<usize>, DeltaError> {
        let count = table.chunks().len() as u64;
        let end = self.first.checked_add(self.count).filter(|&end| end <= count);
        let index = self.first.saturating_add(self.count - 1);
        let end = end.ok_or(DeltaError::NoSuch { what: "chunk", index, count })?;
        Ok(self.first as usize..end as usize)
    }
}
