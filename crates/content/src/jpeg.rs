//! Pictures as JPEG, coded shorter: what a file has, with its Huffman codes replaced by what the blocks beside foretell.
//!
//! *Participants*: who packs a file, and who puts it together again. *Goals*: a photograph takes a fifth to a third less, and comes out bit by
//! bit the same, on every computer and in a browser. *Non-goals*: showing pictures; progressive ones, arithmetic codes, 12 bits, and files that
//! end within their picture: they stay as they are. *Invariants*: a picture is coded only after it was made again of what is kept; making it
//! needs nothing but what this room says for ever, in integers; whatever somebody says of a picture, it takes no more than
//! [`BLOCKS_HELD_MAX`] blocks of memory beside what it makes, no more bytes are made than are wanted, and at most four blocks for each.
//!
//! The format in words: `docs/design/pack-format.md`, "JPEG records".

mod blocks;
mod frame;
mod odds;
mod scan;

use std::borrow::Cow;

use model::codec::{DecodeError, Decoder, Encoder};

use blocks::{Beside, Coded, Model};
use frame::Frame;
use odds::{Bits, BitsReader, BitsWriter};
use scan::{ScanReader, ScanWriter};

use crate::pack::JPEG_PLAIN_MAX;

/// How many blocks are in memory at once, of some 200 bytes: two rows and what belongs to them.
const BLOCKS_HELD_MAX: usize = 64 * 1024;

/// Why something is no picture that this room codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct NoPicture;

/// Tells by its first bytes whether a file may be a picture.
pub fn may_be_of(start: &[u8]) -> bool {
    start.starts_with(frame::START)
}

/// Returns a picture coded shorter; nothing where a file is none that can be, or does not come out again.
pub fn shorten(file: &[u8]) -> Option<Vec<u8>> {
    let picture = Picture::read(file).ok()?;
    let form = picture.encode();
    lengthen(&form, file.len()).is_ok_and(|made| made == file).then_some(form)
}

/// Makes a picture again, a file of so many bytes.
///
/// # Errors
/// Where that was not made by [`shorten`] of such a file.
pub(crate) fn lengthen(form: &[u8], length: usize) -> Result<Vec<u8>, DecodeError> {
    let mut decoder = Decoder::new(form);
    let picture = Picture::decode(&mut decoder)?;
    picture.write(length).map_err(|NoPicture| decoder.invalid("picture", "it makes something else"))
}

/// What is kept of a file.
struct Picture<'a> {
    /// What stands before the bits, and behind them.
    head: &'a [u8],
    tail: &'a [u8],
    /// Whether ones fill the last byte of each stretch, or zeros.
    fills_with_ones: bool,
    bits: Cow<'a, [u8]>,
    raw: Cow<'a, [u8]>,
}

impl<'a> Picture<'a> {
    fn encode(&self) -> Vec<u8> {
        let mut encoder = Encoder::default();
        encoder.unsigned(self.head.len() as u64);
        encoder.unsigned((self.tail.len() as u64) << 1 | u64::from(self.fills_with_ones));
        encoder.unsigned(self.bits.len() as u64);
        for part in [self.head, self.tail, &self.bits, &self.raw] {
            encoder.raw(part);
        }
        encoder.into_bytes()
    }

    fn decode(decoder: &mut Decoder<'a>) -> Result<Self, DecodeError> {
        let head = decoder.unsigned_max(u64::from(u32::MAX))? as usize;
        let tail = decoder.unsigned_max(u64::from(u32::MAX))?;
        let bits = decoder.unsigned_max(u64::from(u32::MAX))? as usize;
        let (tail, fills_with_ones) = ((tail >> 1) as usize, tail & 1 == 1);
        let (head, tail) = (decoder.raw(head)?, decoder.raw(tail)?);
        let (bits, raw) = (decoder.raw(bits)?.into(), decoder.raw(decoder.remaining())?.into());
        Ok(Self { head, tail, fills_with_ones, bits, raw })
    }

    /// Reads a file.
    fn read(file: &'a [u8]) -> Result<Self, NoPicture> {
        let frame = Frame::read(file)?;
        let (head, behind) = file.split_at(frame.length);
        let mut reader = Reading {
            scan: ScanReader::new(behind),
            before: vec![0; frame.components.len()],
            fills_with_ones: None,
            models: <[Model; 2]>::default(),
            bits: BitsWriter::default(),
        };
        walk(&frame, &mut reader)?;
        let Bits { coded, raw } = reader.bits.finish();
        Ok(Self {
            head,
            tail: &behind[reader.scan.place()..],
            fills_with_ones: reader.fills_with_ones.unwrap_or(true),
            bits: coded.into(),
            raw: raw.into(),
        })
    }

    /// Writes the file again.
    fn write(&self, length: usize) -> Result<Vec<u8>, NoPicture> {
        if length > JPEG_PLAIN_MAX {
            return Err(NoPicture);
        }
        let frame = Frame::read(self.head)?;
        if frame.length != self.head.len() {
            return Err(NoPicture);
        }
        let mut writer = Writing {
            scan: ScanWriter::new(self.head, length),
            length_max: length.checked_sub(self.tail.len()).ok_or(NoPicture)?,
            before: vec![0; frame.components.len()],
            fills_with_ones: self.fills_with_ones,
            models: <[Model; 2]>::default(),
            bits: BitsReader::new(&self.bits, &self.raw),
        };
        walk(&frame, &mut writer)?;
        writer.bits.finish()?;
        let mut file = writer.scan.into_bytes();
        file.extend_from_slice(self.tail);
        if file.len() == length { Ok(file) } else { Err(NoPicture) }
    }
}

/// What is done with each block of a picture, and with each stretch of blocks.
trait Visit {
    /// Codes a block of the component of a number.
    fn block(
        &mut self,
        frame: &Frame,
        number: usize,
        beside: Beside<'_>,
    ) -> Result<Coded, NoPicture>;

    /// Ends a stretch; `next` is the number of the marker that follows, if one does.
    fn end_stretch(&mut self, next: Option<usize>) -> Result<(), NoPicture>;
}

/// Visits the blocks of a picture in the order of their codes.
fn walk(frame: &Frame, visit: &mut impl Visit) -> Result<(), NoPicture> {
    // Of each component the last row of the unit above, and the rows of this one; with an empty block at the left of each.
    let rows = frame.components.iter().map(|component| {
        vec![vec![Coded::default(); frame.blocks_across(component) + 1]; component.down + 1]
    });
    let mut rows: Vec<Vec<Vec<Coded>>> = rows.collect();
    let (mut unit, count) = (0, frame.across * frame.down);
    for y in 0..frame.down {
        for rows in &mut rows {
            let last = rows.len() - 1;
            rows.swap(0, last);
        }
        for x in 0..frame.across {
            for (number, (component, rows)) in frame.components.iter().zip(&mut rows).enumerate() {
                for row in 1..=component.down {
                    for across in 0..component.across {
                        let place = x * component.across + across + 1;
                        let beside = Beside {
                            left: &rows[row][place - 1],
                            above: &rows[row - 1][place],
                            corner: &rows[row - 1][place - 1],
                            is_there: [place > 1, y > 0 || row > 1],
                        };
                        rows[row][place] = visit.block(frame, number, beside)?;
                    }
                }
            }
            unit += 1;
            if unit == count {
                visit.end_stretch(None)?;
            } else if frame.restart > 0 && unit % frame.restart == 0 {
                visit.end_stretch(Some(unit / frame.restart - 1))?;
            }
        }
    }
    Ok(())
}

/// A file that is read.
struct Reading<'a> {
    scan: ScanReader<'a>,
    /// The first value of the block before, of each component.
    before: Vec<i32>,
    fills_with_ones: Option<bool>,
    /// Of brightness, and of colours.
    models: [Model; 2],
    bits: BitsWriter,
}

impl Visit for Reading<'_> {
    #[inline(always)]
    fn block(
        &mut self,
        frame: &Frame,
        number: usize,
        beside: Beside<'_>,
    ) -> Result<Coded, NoPicture> {
        let component = &frame.components[number];
        let (values, mask) = self.scan.block(component, &mut self.before[number])?;
        let mut block = Coded::of(values, mask);
        let model = &mut self.models[number.min(1)];
        model.code(&mut self.bits, &component.steps, beside, &mut block)?;
        Ok(block)
    }

    fn end_stretch(&mut self, next: Option<usize>) -> Result<(), NoPicture> {
        let (bits, count) = self.scan.end_stretch()?;
        if count > 0 {
            let with_ones = bits != 0;
            let is_even = bits == 0 || bits == (1 << count) - 1;
            // All are filled alike.
            if !is_even || *self.fills_with_ones.get_or_insert(with_ones) != with_ones {
                return Err(NoPicture);
            }
        }
        let Some(next) = next else { return Ok(()) };
        self.before.fill(0);
        self.scan.restart(next)
    }
}

/// A file that is written.
struct Writing<'a> {
    scan: ScanWriter,
    length_max: usize,
    before: Vec<i32>,
    fills_with_ones: bool,
    models: [Model; 2],
    bits: BitsReader<'a>,
}

impl Visit for Writing<'_> {
    #[inline(always)]
    fn block(
        &mut self,
        frame: &Frame,
        number: usize,
        beside: Beside<'_>,
    ) -> Result<Coded, NoPicture> {
        let component = &frame.components[number];
        let mut block = Coded::default();
        let model = &mut self.models[number.min(1)];
        model.code(&mut self.bits, &component.steps, beside, &mut block)?;
        let coded = (&block.values, block.mask);
        self.scan.block(component, &mut self.before[number], coded)?;
        if self.scan.len() <= self.length_max { Ok(block) } else { Err(NoPicture) }
    }

    fn end_stretch(&mut self, next: Option<usize>) -> Result<(), NoPicture> {
        self.scan.end_stretch(self.fills_with_ones);
        if let Some(next) = next {
            self.before.fill(0);
            self.scan.restart(next);
        }
        Ok(())
    }
}

#[cfg(test)]
pub(crate) mod tests;
