//! WebR2sync and WebR2sync+: the roles are reversed, and the server searches the client's blocks in the old version.
//!
//! Paper, section 5.1 and Figure 10; section 5.2 for the optimisations, section 5.3 for the two together. Two round trips: sums
//! and matches, literals and answer. The client reads the new version once to sum it up and again where the server lacks
//! bytes; what it sends are whole blocks.

use super::assembly::{Assembly, Finished, VersionSink};
use super::error::DeltaError;
use super::message::{
    DeltaMessage, Literals, MatchRun, Opening, PART_LENGTH, SessionSums, WholeFile,
};
use super::plain::{Plain, SessionId};
use super::rsync::finish;
use super::search::Search;
use super::source::{RangedSource, Window};
use super::sums::{BlockLayout, BlockSums};
use super::tuning::{Next, Tuning, check_session};

/// The side that has the new version.
#[derive(Debug)]
pub struct ReverseClient {
    opening: Opening,
    layout: BlockLayout,
    literal_length: u64,
}

impl ReverseClient {
    /// Begins a session by summing the new version up; returns its first message.
    ///
    /// # Errors
    /// [`DeltaError::TooLarge`] above [`super::BLOCKED_SIZE_MAX`]; [`DeltaError::Read`].
    pub fn begin(
        plain: Plain,
        session: SessionId,
        tuning: Tuning,
        new: &mut dyn RangedSource,
    ) -> Result<(Self, Vec<u8>), DeltaError> {
        let opening = tuning.opening(plain, session);
        let mut hasher = blake3::Hasher::new();
        let fingerprinter = opening.fingerprinter();
        let sums = BlockSums::read(new, &fingerprinter, |bytes| {
            hasher.update(bytes);
        })?;
        let (layout, hash) = (sums.layout, *hasher.finalize().as_bytes());
        let whole = WholeFile { size: layout.size(), hash };
        let sums = SessionSums { width: opening.strength.width(), sums };
        let message = DeltaMessage::NewSums(opening, whole, sums).encode();
        Ok((Self { opening, layout, literal_length: 0 }, message))
    }

    /// Takes the matches, and gives the messages with all other blocks to `send`.
    ///
    /// # Errors
    /// [`DeltaError::Length`] where the matches are not those of the blocks that were sent; [`DeltaError::Read`]; those of
    /// messages; whatever `send` returns.
    pub fn take_matches<E: From<DeltaError>>(
        &mut self,
        message: &[u8],
        new: &mut dyn RangedSource,
        mut send: impl FnMut(Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        let session = self.opening.session;
        let runs = self.read_runs(message)?;
        let mut window = Window::new(new, PART_LENGTH / 4);
        let (mut block, mut bytes) = (0, Vec::new());
        for run in runs {
            let mut offset = self.layout.start(block);
            block += run.count as usize;
            let end = self.layout.start(block).min(self.layout.size());
            while run.offset.is_none() && offset < end {
                let length = (end - offset).min((PART_LENGTH - bytes.len()) as u64) as usize;
                bytes.extend_from_slice(window.exactly(offset, length)?);
                offset += length as u64;
                self.literal_length += length as u64;
                if bytes.len() == PART_LENGTH {
                    let bytes = std::mem::take(&mut bytes);
                    let part = Literals { session, is_last: false, bytes };
                    send(DeltaMessage::Literals(part).encode())?;
                }
            }
        }
        send(DeltaMessage::Literals(Literals { session, is_last: true, bytes }).encode())
    }

    /// Returns how many bytes of the file were sent.
    pub fn literal_length(&self) -> u64 {
        self.literal_length
    }

    /// Takes the answer to the literals.
    ///
    /// # Errors
    /// As those of [`super::RsyncClient::take_answer`].
    pub fn take_answer(self, message: &[u8]) -> Result<Next, DeltaError> {
        self.opening.take_answer(message)
    }

    fn read_runs(&self, message: &[u8]) -> Result<Vec<MatchRun>, DeltaError> {
        let message = DeltaMessage::decode(message)?;
        let DeltaMessage::Matches(session, runs) = message else {
            return Err(message.unexpected("matches"));
        };
        check_session(self.opening.session, session)?;
        let actual = runs.iter().map(|run| u64::from(run.count)).sum();
        let expected = self.layout.count() as u64;
        if actual == expected {
            return Ok(runs);
        }
        Err(DeltaError::Length { what: "matches", expected, actual })
    }
}

/// The side that has the old version.
#[derive(Debug, Clone)]
pub struct ReverseServer {
    session: SessionId,
    layout: BlockLayout,
    whole: WholeFile,
    /// Neighbouring blocks that the old version has in the same order, or has not.
    runs: Vec<MatchRun>,
    /// The first run that is not written.
    next_run: usize,
    /// How many blocks lie before it.
    next_block: usize,
    /// How many bytes of a run of missing blocks have come already.
    come: u64,
    assembly: Assembly,
}

impl ReverseServer {
    /// Takes the first message of a session, and searches its blocks in the old version; returns the answer.
    /// `size_max` is how many bytes the new version may have.
    ///
    /// # Errors
    /// [`DeltaError::WrongWorkspace`]; [`DeltaError::TooLarge`]; [`DeltaError::Read`]; those of messages.
    pub fn begin(
        plain: Plain,
        message: &[u8],
        old: &mut dyn RangedSource,
        size_max: u64,
    ) -> Result<(Self, Vec<u8>), DeltaError> {
        let message = DeltaMessage::decode(message)?;
        let DeltaMessage::NewSums(opening, whole, SessionSums { sums, .. }) = message else {
            return Err(message.unexpected("new sums"));
        };
        opening.check_workspace(plain)?;
        if whole.size > size_max {
            return Err(DeltaError::TooLarge { size: whole.size, max: size_max });
        }
        let runs = runs(sums.layout, &find_blocks(&opening, &sums, old)?);
        let session = opening.session;
        let answer = DeltaMessage::Matches(session, runs.clone()).encode();
        let server = Self {
            session,
            layout: sums.layout,
            whole,
            runs,
            next_run: 0,
            next_block: 0,
            come: 0,
            assembly: Assembly::new(size_max),
        };
        Ok((server, answer))
    }

    /// Takes bytes that the old version lacks, and writes the new one as far as it is known; returns the answer after the last
    /// ones.
    ///
    /// What was written must not be kept without [`Finished::verified`], nor after an error.
    ///
    /// # Errors
    /// [`DeltaError::Length`] where too few or too many bytes come; [`DeltaError::OutOfRange`] where the old version has
    /// become shorter; [`DeltaError::Read`] and [`DeltaError::Write`]; those of messages.
    pub fn take(
        &mut self,
        message: &[u8],
        old: &mut dyn RangedSource,
        out: &mut dyn VersionSink,
    ) -> Result<Option<Finished>, DeltaError> {
        let message = DeltaMessage::decode(message)?;
        let DeltaMessage::Literals(literals) = message else {
            return Err(message.unexpected("literals"));
        };
        check_session(self.session, literals.session)?;
        let mut bytes = &literals.bytes[..];
        while let Some(run) = self.runs.get(self.next_run) {
            let end = self.next_block + run.count as usize;
            let length =
                self.layout.start(end).min(self.layout.size()) - self.layout.start(self.next_block);
            if let Some(offset) = run.offset {
                self.assembly.copy(old, (offset, length), out)?;
            } else {
                let due = (length - self.come).min(bytes.len() as u64);
                let (now, rest) = bytes.split_at(due as usize);
                self.assembly.literal(now, out)?;
                (bytes, self.come) = (rest, self.come + due);
                if self.come < length {
                    break;
                }
                self.come = 0;
            }
            (self.next_run, self.next_block) = (self.next_run + 1, end);
        }
        let is_complete = self.next_run == self.runs.len();
        if !bytes.is_empty() || (literals.is_last && !is_complete) {
            return Err(self.wrong_length(bytes.len()));
        }
        let is_last = literals.is_last;
        Ok(is_last.then(|| finish(self.session, &self.assembly, &self.whole)))
    }

    /// Moves all that was found, as if the old version had more before it.
    #[cfg(test)]
    pub(super) fn move_matches(&mut self, by: u64) {
        for run in &mut self.runs {
            run.offset = run.offset.map(|offset| offset + by);
        }
    }

    /// Tells how many literal bytes are due in all, and how many came: too few, or `surplus` more.
    fn wrong_length(&self, surplus: usize) -> DeltaError {
        let mut block = 0;
        let (mut expected, mut actual) = (0, self.come + surplus as u64);
        for (number, run) in self.runs.iter().enumerate() {
            let start = self.layout.start(block);
            block += run.count as usize;
            let length = self.layout.start(block).min(self.layout.size()) - start;
            if run.offset.is_none() {
                expected += length;
                actual += if number < self.next_run { length } else { 0 };
            }
        }
        DeltaError::Length { what: "literals", expected, actual }
    }
}

/// Searches blocks in the old version; returns where it has each of them.
fn find_blocks(
    opening: &Opening,
    sums: &BlockSums,
    old: &mut dyn RangedSource,
) -> Result<Vec<Option<u64>>, DeltaError> {
    let fingerprinter = opening.fingerprinter();
    let mut search = Search::new(sums, &fingerprinter, opening.locality);
    let mut window = Window::new(old, sums.layout.block_size() as usize);
    let mut places = vec![None; sums.layout.count()];
    let mut missing = places.len();
    while missing > 0 {
        let Some(found) = search.next(&mut window)? else { break };
        // Equal blocks are all found at once. A long list of them must not cost its length at every match: whether there
        // is anything to enter, its ends tell.
        let equal = search.equal_blocks(&found);
        let is_open =
            |block: Option<&u32>| block.is_some_and(|&block| places[block as usize].is_none());
        let equal = if is_open(equal.first()) || is_open(equal.last()) { equal } else { &[] };
        for &block in equal.iter().chain([&found.block]) {
            let place = &mut places[block as usize];
            missing -= usize::from(place.is_none());
            place.get_or_insert(found.position);
        }
    }
    Ok(places)
}

/// Joins neighbouring blocks that are neighbours in the old version, too, or that it does not have.
fn runs(layout: BlockLayout, places: &[Option<u64>]) -> Vec<MatchRun> {
    let mut runs: Vec<MatchRun> = Vec::new();
    for &offset in places {
        if let Some(run) = runs.last_mut() {
            let behind = run.offset.map(|start| start + layout.start(run.count as usize));
            if behind == offset {
                run.count += 1;
                continue;
            }
        }
        runs.push(MatchRun { count: 1, offset });
    }
    runs
}
