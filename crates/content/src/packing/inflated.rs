//! Packs files that hold deflate streams as what these hold: office files, PDF, archives.
//!
//! *Participants*: devices, and pages that write into sealed workspaces, which have such a file in memory. *Goals*: an edit of a document costs what was edited, though the compressed
//! stream is another one from there on; the first version costs less, too. *Invariants*: the chunks of the file are those that cutting it
//! alone gives, whatever is stored for them; what stands behind them is within the one rule of readers, and what other threads pack at the
//! same moment, behind which nobody here knows what stands, is no base.
//!
//! How it is stored: `crate::pack`, deflate records, whose bases are the chunks of the inflated form.

use model::{ChunkRef, Content};

use super::edited::read_error;
use super::{FilePacker, PackSink, WHOLE_FILE_SIZE_MAX, average, put, sample_of};
use crate::chunker::Chunks;
use crate::delta::{DeltaError, Features, SketchBuilder, VersionSketch};
use crate::error::ContentError;
use crate::inflated::{self, Inflated};
use crate::naming::WorkspaceContentKeys;
use crate::pack::{Addition, Ancestry, deflate_has_room};

/// The average size in bytes of the chunks of inflated forms. There are few enough of them for a record, and an edit of one costs what was
/// edited, however large it is.
const CHUNK_SIZE: u32 = 128 * 1024;

/// How what is kept of an inflated form begins.
const INFLATED: u8 = b'i';

/// What a device or a page keeps of a version of a file, so that the next one is stored as what has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kept {
    /// Of the file itself.
    File(VersionSketch),
    /// Of its inflated form.
    Inflated(VersionSketch),
}

impl Kept {
    /// Returns it as bytes, to be kept by the device.
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Self::File(sketch) => sketch.encode(),
            Self::Inflated(sketch) => [&[INFLATED][..], &sketch.encode()].concat(),
        }
    }

    /// Reads what [`Self::encode`] wrote.
    ///
    /// # Errors
    /// [`DeltaError::Message`] where it is something else; then the device does as if it had kept nothing.
    pub fn decode(bytes: &[u8]) -> Result<Self, DeltaError> {
        match bytes {
            [INFLATED, sketch @ ..] => VersionSketch::decode(sketch).map(Self::Inflated),
            sketch => VersionSketch::decode(sketch).map(Self::File),
        }
    }

    /// Returns the chunks that may be bases.
    pub fn chunks(&self) -> &[ChunkRef] {
        let (Self::File(sketch) | Self::Inflated(sketch)) = self;
        sketch.chunks()
    }

    /// Returns by what files are found that are like this one, or forms that are like its.
    pub fn features(&self) -> Features {
        match self {
            Self::File(sketch) => sketch.features().clone(),
            Self::Inflated(sketch) => sketch.features().of_form(),
        }
    }
}

/// Finds out what to keep of a version whose chunks come one after the other.
pub struct KeptBuilder {
    keys: WorkspaceContentKeys,
    sketch: SketchBuilder,
    /// Its bytes until now, if it may hold streams.
    whole: Option<Vec<u8>>,
    length: u64,
    inflates: bool,
}

impl KeptBuilder {
    /// Begins with no chunk; `inflates` tells whether streams are looked for.
    pub fn new(keys: &WorkspaceContentKeys, inflates: bool) -> Self {
        let (keys, sketch) = (keys.clone(), SketchBuilder::new(keys));
        Self { keys, sketch, whole: None, length: 0, inflates }
    }

    /// Adds a chunk, whose bytes are what its id says.
    pub fn push(&mut self, chunk: ChunkRef, bytes: &[u8]) {
        self.sketch.push(chunk, bytes);
        if self.inflates && self.length == 0 && Inflated::may_be_of(bytes) {
            self.whole = Some(Vec::new());
        }
        self.length += bytes.len() as u64;
        self.whole = self.whole.take().filter(|_| self.length <= WHOLE_FILE_SIZE_MAX);
        if let Some(whole) = &mut self.whole {
            whole.extend_from_slice(bytes);
        }
    }

    /// Returns what to keep of a version that was cut with this average chunk size in bytes.
    ///
    /// # Errors
    /// [`ContentError::TooManyChunks`].
    pub fn finish(self, chunk_size: u32) -> Result<Kept, ContentError> {
        match self.whole.as_deref().and_then(Inflated::of) {
            // Its sender has inflated it, too.
            Some(form) => sketch(&self.keys, &form).map(Kept::Inflated),
            None => self.sketch.finish(chunk_size).map(Kept::File),
        }
    }
}

fn sketch(keys: &WorkspaceContentKeys, form: &Inflated) -> Result<VersionSketch, ContentError> {
    VersionSketch::survey(keys, CHUNK_SIZE, &mut form.bytes()).map_err(read_error)
}

impl<S: PackSink> FilePacker<S> {
    /// Packs a file that is in memory as a change of its version before, of which this is kept, or of a file that is like it where nothing is
    /// kept; inflated where it holds deflate streams, and in a shorter form where it is a photograph. `chunk_size` is the average chunk size of the version before. Returns what to keep for the next version, too.
    ///
    /// # Errors
    /// As [`Self::pack_edited`].
    pub fn pack_whole(
        &mut self,
        kept: Option<&Kept>,
        bytes: &[u8],
        chunk_size: Option<u32>,
    ) -> Result<(Content, Kept), S::Error> {
        let chunk_size =
            average(chunk_size, bytes.len() as u64, |offset| Ok(sample_of(bytes, offset)))?;
        if let Some(packed) = self.pack_inflated(kept, bytes, chunk_size)? {
            return Ok(packed);
        }
        let found;
        let before = match kept {
            Some(Kept::File(before)) if before.chunk_size() == chunk_size => before,
            Some(_) => {
                found = VersionSketch::empty(chunk_size);
                &found
            }
            None => {
                found = self.similar(bytes, chunk_size)?;
                &found
            }
        };
        if let Some(packed) = self.pack_picture(before, bytes)? {
            return Ok(packed);
        }
        let (content, sketch) = self.pack_edited(before, &mut &*bytes)?;
        Ok((content, Kept::File(sketch)))
    }

    /// Packs a file by its inflated form, if it has one and that pays.
    fn pack_inflated(
        &mut self,
        kept: Option<&Kept>,
        bytes: &[u8],
        chunk_size: u32,
    ) -> Result<Option<(Content, Kept)>, S::Error> {
        if !Inflated::may_be_of(bytes) {
            return Ok(None);
        }
        let file = self.cut(bytes, chunk_size)?;
        let is_lacking = self.which_lack(&file)?;
        let (Some(first), Some(last)) = (
            is_lacking.iter().position(|is_lacking| *is_lacking),
            is_lacking.iter().rposition(|is_lacking| *is_lacking),
        ) else {
            return self.keep_inflated(kept, bytes, (chunk_size, &file));
        };
        let Some(form) = Inflated::of(bytes) else { return Ok(None) };
        let chunks = self.cut(form.bytes(), CHUNK_SIZE)?;
        if !deflate_has_room(&file, &chunks) {
            return Ok(None);
        }
        let form_lacks = self.which_lack(&chunks)?;
        let mut found = None;
        let empty = VersionSketch::empty(CHUNK_SIZE);
        let before = match kept {
            Some(Kept::Inflated(before)) if before.chunk_size() == CHUNK_SIZE => before,
            Some(_) => &empty,
            None => {
                found = self.similar_form(&form, (&chunks, &form_lacks))?;
                found.as_ref().unwrap_or(&empty)
            }
        };
        let before_lacks = self.which_lack(before.chunks())?;
        // What is in packs as it is would be stored a second time.
        if !is_mostly_there(before.chunks(), &before_lacks)
            && !is_mostly_there(&chunks, &form_lacks)
            && is_mostly_there(&file, &is_lacking)
        {
            return Ok(None);
        }
        // Of one that was found this is known.
        if found.is_none() && !self.may_be_bases(&chunks, &form_lacks, before)? {
            return Ok(None);
        }
        let known = form_lacks.iter().filter(|is_lacking| !**is_lacking).count();
        let known_before = self.known;
        let sketch = self.pack_version(before, &mut form.bytes())?;
        // Somebody else has claimed one meanwhile.
        if self.known - known_before != known {
            return Ok(None);
        }
        let skip: u64 = file[..first].iter().map(|chunk| u64::from(chunk.length)).sum();
        self.push_deflated(&file[first..=last], skip, (&form, sketch.chunks()), bytes)?;
        Ok(Some((self.pack_list(chunk_size, &file)?, Kept::Inflated(sketch))))
    }

    /// Returns what is kept of an inflated form that is like one, whose chunks may be made from it.
    fn similar_form(
        &mut self,
        form: &Inflated,
        (chunks, is_lacking): (&[ChunkRef], &[bool]),
    ) -> Result<Option<VersionSketch>, S::Error> {
        match self.sink.similar(&Features::of(form.bytes()).of_form())? {
            Some(Kept::Inflated(found))
                if found.chunk_size() == CHUNK_SIZE
                    && self.may_be_bases(chunks, is_lacking, &found)? =>
            {
                Ok(Some(found))
            }
            _ => Ok(None),
        }
    }

    /// Says of a file that is in packs what is to be kept of it: what is kept of another version, or of its own inflated form if that is in
    /// packs, too.
    fn keep_inflated(
        &mut self,
        kept: Option<&Kept>,
        bytes: &[u8],
        (chunk_size, file): (u32, &[ChunkRef]),
    ) -> Result<Option<(Content, Kept)>, S::Error> {
        if let Some(kept @ Kept::Inflated(_)) = kept {
            return Ok(Some((self.pack_list(chunk_size, file)?, kept.clone())));
        }
        let Some(form) = Inflated::of(bytes) else { return Ok(None) };
        let chunks = self.cut(form.bytes(), CHUNK_SIZE)?;
        if self.which_lack(&chunks)?.contains(&true) {
            return Ok(None);
        }
        let sketch = sketch(&self.keys, &form)?;
        Ok(Some((self.pack_list(chunk_size, file)?, Kept::Inflated(sketch))))
    }

    /// Tells of each chunk whether it is in no pack.
    pub(super) fn which_lack(&mut self, chunks: &[ChunkRef]) -> Result<Vec<bool>, S::Error> {
        let knows = chunks.iter().map(|chunk| self.sink.knows(chunk));
        knows.map(|knows| knows.map(|knows| !knows)).collect()
    }

    /// Tells whether a file may be made from these chunks, those that lack being made from the version before: not too much stands behind
    /// them, and it is known how much.
    fn may_be_bases(
        &mut self,
        chunks: &[ChunkRef],
        is_lacking: &[bool],
        before: &VersionSketch,
    ) -> Result<bool, S::Error> {
        let mut bases = Vec::with_capacity(chunks.len());
        for (chunk, is_lacking) in chunks.iter().zip(is_lacking) {
            let ancestry = match is_lacking {
                true => Some(Ancestry::default()),
                false => self.sink.ancestry(chunk)?,
            };
            let Some(ancestry) = ancestry else { return Ok(false) };
            bases.push((*chunk, ancestry));
        }
        let mut behind = Ancestry::of_record(bases);
        for chunk in before.chunks() {
            let ancestry = self.sink.ancestry(chunk)?;
            if let Some(ancestry) = ancestry.filter(|ancestry| ancestry.lets_be_base(chunk)) {
                let more = Ancestry::of_record([(*chunk, ancestry)]);
                behind.depth = behind.depth.max(more.depth + 1);
                behind.chunks += more.chunks;
                behind.length += more.length;
            }
        }
        Ok(behind.lets_be_written())
    }

    /// Stores chunks of a file as how they come out of its inflated form, those that nobody has claimed meanwhile.
    fn push_deflated(
        &mut self,
        chunks: &[ChunkRef],
        skip: u64,
        (form, bases): (&Inflated, &[ChunkRef]),
        bytes: &[u8],
    ) -> Result<(), S::Error> {
        let mut claimed = Vec::new();
        let mut start = skip as usize;
        for chunk in chunks {
            let end = start + chunk.length as usize;
            if self.claim(chunk)? {
                claimed.push((*chunk, &bytes[start..end]));
            }
            start = end;
        }
        if claimed.is_empty() {
            return Ok(());
        }
        // Once more, and as whoever reads it will: this may be the only copy.
        let (plan, length) = (form.plan(skip), start - skip as usize);
        let made = inflated::deflate(&plan, form.bytes(), length, &mut 0);
        let mut is_stored = false;
        if made.is_ok_and(|made| made == bytes[skip as usize..start]) {
            let more = Addition { chunks: chunks.len(), bases: bases.len(), length: plan.len() };
            put(&mut self.writer, more, &mut self.sink, |writer| {
                is_stored = writer.push_deflated(chunks, (&plan, bases))?;
                Ok(())
            })?;
        }
        if !is_stored {
            for (chunk, bytes) in claimed {
                super::push(&mut self.writer, chunk, bytes, &mut self.sink)?;
            }
        }
        Ok(())
    }

    /// Returns the chunks of bytes.
    pub(super) fn cut(&mut self, bytes: &[u8], chunk_size: u32) -> Result<Vec<ChunkRef>, S::Error> {
        let chunker = self.take_chunker(chunk_size)?;
        let name =
            |bytes: &[u8]| ChunkRef { id: self.namer.name(bytes), length: bytes.len() as u32 };
        let chunks = Chunks::new(&*chunker, bytes).map(name).collect();
        self.chunker = Some((chunk_size, chunker));
        Ok(chunks)
    }
}

/// Tells whether the half of some chunks by their length, or more, is in packs, where it is known which of them are in none.
fn is_mostly_there(chunks: &[ChunkRef], is_lacking: &[bool]) -> bool {
    let length = |(chunk, is_lacking): (&ChunkRef, &bool)| {
        if *is_lacking { -i64::from(chunk.length) } else { i64::from(chunk.length) }
    };
    !chunks.is_empty() && chunks.iter().zip(is_lacking).map(length).sum::<i64>() >= 0
}

#[cfg(test)]
mod tests;
