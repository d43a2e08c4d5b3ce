//! WebRsync and WebRsync+: the client searches the server's blocks in the new version.
//!
//! Paper, section 3.1 and Figure 1; section 4 for the variant with the optimisations at the client. Two round trips: open and
//! sums, recipe and answer. The client has the work, the server little.

use super::assembly::{Assembly, Finished, VersionSink};
use super::error::DeltaError;
use super::message::{
    Answer, DeltaMessage, MESSAGE_STEPS_MAX, Opening, PART_LENGTH, Recipe, RecipeStep, SessionSums,
    WholeFile,
};
use super::plain::{Plain, SessionId};
use super::search::Search;
use super::source::{RangedSource, Window};
use super::sums::{BlockLayout, BlockSums};
use super::tuning::{Next, Tuning, check_session};

/// The side that has the new version.
#[derive(Debug)]
pub struct RsyncClient {
    opening: Opening,
    literal_length: u64,
}

impl RsyncClient {
    /// Begins a session; returns its first message.
    pub fn begin(plain: Plain, session: SessionId, tuning: Tuning) -> (Self, Vec<u8>) {
        let opening = tuning.opening(plain, session);
        (Self { opening, literal_length: 0 }, DeltaMessage::Open(opening).encode())
    }

    /// Takes the sums of the old version, searches the blocks in the new one, and gives the messages that follow to
    /// `send`.
    ///
    /// # Errors
    /// [`DeltaError::Message`], [`DeltaError::UnexpectedMessage`] and [`DeltaError::WrongSession`] where the sums are none;
    /// [`DeltaError::Read`]; whatever `send` returns.
    pub fn take_sums<E: From<DeltaError>>(
        &mut self,
        message: &[u8],
        new: &mut dyn RangedSource,
        send: impl FnMut(Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        let sums = self.read_sums(message)?;
        let fingerprinter = self.opening.fingerprinter();
        let mut search = Search::new(&sums, &fingerprinter, self.opening.locality);
        let mut window = Window::new(new, sums.layout.block_size() as usize);
        let mut writer = RecipeWriter::new(self.opening.session, send);
        let mut cursor = 0;
        while let Some(found) = search.next(&mut window)? {
            let length = sums.layout.length(found.block as usize) as u64;
            self.literal_length += found.position - cursor;
            writer.literal(&mut window, cursor..found.position)?;
            writer.copy(&mut window, found.block, found.position..found.position + length)?;
            cursor = found.position + length;
        }
        let size = window.size();
        self.literal_length += size - cursor;
        writer.literal(&mut window, cursor..size)?;
        writer.finish(size)
    }

    /// Returns how many bytes of the file were sent.
    pub fn literal_length(&self) -> u64 {
        self.literal_length
    }

    /// Takes the answer to the recipe.
    ///
    /// # Errors
    /// [`DeltaError::Unverified`] where the server has put together something else though the fingerprints were strong, for
    /// example because the file changed while it was read; those of messages.
    pub fn take_answer(self, message: &[u8]) -> Result<Next, DeltaError> {
        self.opening.take_answer(message)
    }

    fn read_sums(&self, message: &[u8]) -> Result<BlockSums, DeltaError> {
        let message = DeltaMessage::decode(message)?;
        let DeltaMessage::OldSums(session, SessionSums { width, sums }) = message else {
            return Err(message.unexpected("old sums"));
        };
        check_session(self.opening.session, session)?;
        let expected = self.opening.strength.width();
        if width == expected {
            return Ok(sums);
        }
        let (expected, actual) = (expected as u64, width as u64);
        Err(DeltaError::Length { what: "fingerprint", expected, actual })
    }
}

/// Collects a recipe and sends it in parts.
struct RecipeWriter<F> {
    recipe: Recipe,
    /// About how many bytes the part has.
    length: usize,
    hasher: blake3::Hasher,
    send: F,
}

impl<F> RecipeWriter<F> {
    fn new(session: SessionId, send: F) -> Self {
        let recipe = Recipe { session, steps: Vec::new(), whole: None };
        Self { recipe, length: 0, hasher: blake3::Hasher::new(), send }
    }

    /// Sends the bytes of a range of the new version.
    fn literal<E: From<DeltaError>>(
        &mut self,
        window: &mut Window<'_>,
        range: std::ops::Range<u64>,
    ) -> Result<(), E>
    where
        F: FnMut(Vec<u8>) -> Result<(), E>,
    {
        let mut offset = range.start;
        while offset < range.end {
            let length = (range.end - offset).min((PART_LENGTH - self.length) as u64) as usize;
            let bytes = window.exactly(offset, length)?;
            self.hasher.update(bytes);
            match self.recipe.steps.last_mut() {
                Some(RecipeStep::Literal(before)) => before.extend_from_slice(bytes),
                _ => self.recipe.steps.push(RecipeStep::Literal(bytes.to_vec())),
            }
            self.length += length;
            offset += length as u64;
            self.flush_if_full()?;
        }
        Ok(())
    }

    /// Names a block of the old version that is a range of the new one.
    fn copy<E: From<DeltaError>>(
        &mut self,
        window: &mut Window<'_>,
        block: u32,
        range: std::ops::Range<u64>,
    ) -> Result<(), E>
    where
        F: FnMut(Vec<u8>) -> Result<(), E>,
    {
        let bytes = window.exactly(range.start, (range.end - range.start) as usize)?;
        self.hasher.update(bytes);
        match self.recipe.steps.last_mut() {
            Some(RecipeStep::Copy { block: first, count }) if *first + *count == block => {
                *count += 1;
            }
            _ => self.recipe.steps.push(RecipeStep::Copy { block, count: 1 }),
        }
        self.flush_if_full()
    }

    fn flush_if_full<E: From<DeltaError>>(&mut self) -> Result<(), E>
    where
        F: FnMut(Vec<u8>) -> Result<(), E>,
    {
        let is_full =
            self.length >= PART_LENGTH || self.recipe.steps.len() as u64 >= MESSAGE_STEPS_MAX;
        if is_full { self.flush() } else { Ok(()) }
    }

    fn flush<E: From<DeltaError>>(&mut self) -> Result<(), E>
    where
        F: FnMut(Vec<u8>) -> Result<(), E>,
    {
        let next = Recipe { session: self.recipe.session, steps: Vec::new(), whole: None };
        let part = std::mem::replace(&mut self.recipe, next);
        self.length = 0;
        (self.send)(DeltaMessage::Recipe(part).encode())
    }

    fn finish<E: From<DeltaError>>(mut self, size: u64) -> Result<(), E>
    where
        F: FnMut(Vec<u8>) -> Result<(), E>,
    {
        let hash = *self.hasher.finalize().as_bytes();
        self.recipe.whole = Some(WholeFile { size, hash });
        self.flush()
    }
}

/// The side that has the old version.
#[derive(Debug, Clone)]
pub struct RsyncServer {
    session: SessionId,
    layout: BlockLayout,
    assembly: Assembly,
}

impl RsyncServer {
    /// Takes the first message of a session; returns the answer to it. `size_max` is how many bytes the new version may have.
    ///
    /// # Errors
    /// [`DeltaError::WrongWorkspace`]; [`DeltaError::TooLarge`] where the old version is; [`DeltaError::Read`]; those of
    /// messages.
    pub fn begin(
        plain: Plain,
        message: &[u8],
        old: &mut dyn RangedSource,
        size_max: u64,
    ) -> Result<(Self, Vec<u8>), DeltaError> {
        let message = DeltaMessage::decode(message)?;
        let DeltaMessage::Open(opening) = message else { return Err(message.unexpected("open")) };
        opening.check_workspace(plain)?;
        let sums = BlockSums::read(old, &opening.fingerprinter(), |_| ())?;
        let (layout, session, width) = (sums.layout, opening.session, opening.strength.width());
        let answer = DeltaMessage::OldSums(session, SessionSums { width, sums }).encode();
        Ok((Self { session, layout, assembly: Assembly::new(size_max) }, answer))
    }

    /// Takes a part of the recipe, and writes what it says; returns the answer after the last one.
    ///
    /// What was written must not be kept without [`Finished::verified`], nor after an error.
    ///
    /// # Errors
    /// [`DeltaError::WrongBase`] where the old version is another one than at the beginning; [`DeltaError::NoSuch`];
    /// [`DeltaError::TooLarge`]; [`DeltaError::Read`] and [`DeltaError::Write`]; those of messages.
    pub fn take(
        &mut self,
        message: &[u8],
        old: &mut dyn RangedSource,
        out: &mut dyn VersionSink,
    ) -> Result<Option<Finished>, DeltaError> {
        let message = DeltaMessage::decode(message)?;
        let DeltaMessage::Recipe(recipe) = message else {
            return Err(message.unexpected("recipe"));
        };
        check_session(self.session, recipe.session)?;
        if old.size() != self.layout.size() {
            return Err(DeltaError::WrongBase);
        }
        for step in &recipe.steps {
            match step {
                RecipeStep::Copy { block, count } => {
                    self.assembly.copy(old, self.range(*block, *count)?, out)?;
                }
                RecipeStep::Literal(bytes) => self.assembly.literal(bytes, out)?,
            }
        }
        Ok(recipe.whole.map(|whole| finish(self.session, &self.assembly, &whole)))
    }

    /// Returns offset and length of blocks of the old version, in bytes.
    fn range(&self, block: u32, count: u32) -> Result<(u64, u64), DeltaError> {
        let last = u64::from(block) + u64::from(count) - 1;
        let blocks = self.layout.count() as u64;
        if last >= blocks {
            return Err(DeltaError::NoSuch { what: "block", index: last, count: blocks });
        }
        let offset = self.layout.start(block as usize);
        let end = self.layout.start(last as usize) + self.layout.length(last as usize) as u64;
        Ok((offset, end - offset))
    }
}

/// Checks what was put together, and answers.
pub(super) fn finish(session: SessionId, assembly: &Assembly, whole: &WholeFile) -> Finished {
    let verified = assembly.finish(whole);
    let answer = if verified.is_some() { Answer::Verified } else { Answer::Mismatch };
    Finished { answer: DeltaMessage::Answer(session, answer).encode(), verified }
}
