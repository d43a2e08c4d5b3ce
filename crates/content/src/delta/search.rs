//! Finds blocks, of which only sums are known, in a file, at any byte.
//!
//! Three levels (paper, section 5.2, Figure 11): 16 bits of the weak sum, the weak sum, the fingerprint. With *locality* the
//! block behind the last match is compared first, by its fingerprint alone, and only when it is not there the search
//! goes on byte by byte. The work is bounded whatever the sums are: after [`FALSE_ALARMS_MAX`] bytes for each byte of
//! the file were fingerprinted for nothing, the rest counts as not found. Blocks that are found in step are fingerprinted ahead, several at
//! once; that begins again only with the second block behind one that was not there, so the vain part of it is not counted.

use std::cmp::Ordering;
use std::ops::Range;

use super::abreast::ABREAST;
use super::error::DeltaError;
use super::source::Window;
use super::sums::{BlockSums, Fingerprinter, Leaving, RollingSum};

/// How many bytes may be fingerprinted in vain for each byte of the searched file.
const FALSE_ALARMS_MAX: u64 = 4;

/// In vain whatever the size, in bytes: small files may be unlucky.
const FALSE_ALARMS_FREE: u64 = 16 * 1024 * 1024;

/// A block that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Match {
    /// Where it begins in the searched file, in bytes.
    pub(super) position: u64,
    /// The block: of several equal ones that which continues the match before, or the first.
    pub(super) block: u32,
    /// Where the equal ones stand in the index.
    equal: Range<usize>,
}

/// The blocks by their weak sums.
struct Index {
    /// A bit for each value of [`tag`], so that most bytes cost one look.
    tags: Vec<u64>,
    /// Where the tags that begin with the same bits begin in `order`, and where the last ones end.
    heads: Vec<u32>,
    /// How many bits of a tag are behind those: a table of all tags takes longer to make than to search where there are few blocks.
    tail_bits: u32,
    /// The blocks of full size by tag, weak sum, fingerprint and number.
    order: Vec<u32>,
}

/// How many bits a [`tag`] has.
const TAG_BITS: u32 = 16;

/// Returns the first level: 16 bits in which every bit of the weak sum has a part.
fn tag(weak: u32) -> usize {
    (weak.wrapping_mul(0x9e37_79b1) >> (u32::BITS - TAG_BITS)) as usize
}

impl Index {
    fn of(sums: &BlockSums) -> Self {
        let full = sums.layout.short_block().unwrap_or(sums.layout.count());
        let mut order: Vec<u32> = (0..full as u32).collect();
        order.sort_unstable_by_key(|&block| {
            let (weak, strong) = (sums.weak[block as usize], sums.strong[block as usize]);
            (tag(weak), weak, strong, block)
        });
        let tail_bits = TAG_BITS - full.next_power_of_two().ilog2().min(TAG_BITS);
        let (mut tags, mut heads) = (vec![0; 1024], vec![0; (1 << (TAG_BITS - tail_bits)) + 1]);
        for &block in &order {
            let tag = tag(sums.weak[block as usize]);
            tags[tag / 64] |= 1_u64 << (tag % 64);
            heads[(tag >> tail_bits) + 1] += 1;
        }
        for head in 1..heads.len() {
            heads[head] += heads[head - 1];
        }
        Self { tags, heads, tail_bits, order }
    }

    fn may_have(&self, weak: u32) -> bool {
        let tag = tag(weak);
        self.tags[tag / 64] >> (tag % 64) & 1 == 1
    }

    /// Returns where the blocks of a weak sum stand in the order, sorted by fingerprint.
    fn of_weak(&self, sums: &BlockSums, weak: u32) -> Range<usize> {
        let head = tag(weak) >> self.tail_bits;
        let bucket = self.heads[head] as usize..self.heads[head + 1] as usize;
        let key = |weak: u32| (tag(weak), weak);
        self.equal_range(bucket, |block| key(sums.weak[block as usize]).cmp(&key(weak)))
    }

    /// Returns the part of a sorted range that compares as equal.
    fn equal_range(&self, range: Range<usize>, compare: impl Fn(u32) -> Ordering) -> Range<usize> {
        let list = &self.order[range.clone()];
        let start = list.partition_point(|&block| compare(block).is_lt());
        let end = list.partition_point(|&block| compare(block).is_le());
        range.start + start..range.start + end
    }
}

/// Fingerprints of stretches that follow each other, taken at once.
#[derive(Debug, Default)]
struct Ahead {
    /// Where the first one begins, in bytes.
    position: u64,
    /// How long each is; 0 where there are none.
    length: usize,
    fingerprints: [u128; ABREAST],
}

impl Ahead {
    /// Returns the fingerprint of a stretch, if it is one of these.
    fn of(&self, position: u64, length: usize) -> Option<u128> {
        let distance = position.checked_sub(self.position)?;
        let is_one = length == self.length && length > 0 && distance % length as u64 == 0;
        let number = is_one.then(|| usize::try_from(distance / length as u64).ok())??;
        self.fingerprints.get(number).copied()
    }
}

/// A search through one file, from front to back.
pub(super) struct Search<'a> {
    sums: &'a BlockSums,
    fingerprinter: &'a Fingerprinter,
    locality: bool,
    index: Index,
    leaving: Leaving,
    position: u64,
    /// Where the last match ends, in bytes.
    covered: u64,
    /// The block that should be here, if edits are local.
    expected: Option<u32>,
    /// Whether the block that was expected last was there: then the next ones are, mostly.
    is_in_step: bool,
    ahead: Ahead,
    false_alarms: u64,
    /// A limit of `false_alarms` instead of the usual one.
    false_alarms_max: Option<u64>,
    is_at_end: bool,
}

impl<'a> Search<'a> {
    pub(super) fn new(
        sums: &'a BlockSums,
        fingerprinter: &'a Fingerprinter,
        locality: bool,
    ) -> Self {
        Self {
            sums,
            fingerprinter,
            locality,
            index: Index::of(sums),
            leaving: Leaving::of_length(sums.layout.block_size()),
            position: 0,
            covered: 0,
            expected: Some(0),
            is_in_step: false,
            ahead: Ahead::default(),
            false_alarms: 0,
            false_alarms_max: None,
            is_at_end: false,
        }
    }

    /// Begins somewhere else than at the start.
    #[cfg(test)]
    pub(super) fn starting_at(self, position: u64) -> Self {
        Self { position, ..self }
    }

    /// Returns how many bytes were fingerprinted in vain.
    #[cfg(test)]
    pub(super) fn false_alarms(&self) -> u64 {
        self.false_alarms
    }

    /// Sets how many bytes may be fingerprinted in vain.
    #[cfg(test)]
    pub(super) fn allow_false_alarms(&mut self, bytes: u64) {
        self.false_alarms_max = Some(bytes);
    }

    /// Returns the next match, behind the one before.
    pub(super) fn next(&mut self, window: &mut Window<'_>) -> Result<Option<Match>, DeltaError> {
        if self.is_at_end {
            return Ok(None);
        }
        let position = self.position;
        if let Some(block) = self.expected_block(window)? {
            return Ok(Some(Match { position, block, equal: 0..0 }));
        }
        if let Some((position, equal)) = self.scan(window)? {
            let blocks = &self.index.order[equal.clone()];
            // They are ascending, and a file of zeros has very many of them: a walk through all at each match takes hours.
            let likely = self.expected.filter(|block| blocks.binary_search(block).is_ok());
            let block = likely.unwrap_or(blocks[0]);
            self.advance(position, block);
            return Ok(Some(Match { position, block, equal }));
        }
        self.is_at_end = true;
        self.short_block_at_end(window)
    }

    /// Returns the blocks that are equal to one that was found, ascending, itself among them; none where only that one was
    /// compared.
    pub(super) fn equal_blocks(&self, found: &Match) -> &[u32] {
        &self.index.order[found.equal.clone()]
    }

    fn advance(&mut self, position: u64, block: u32) {
        self.position = position + self.sums.layout.length(block as usize) as u64;
        self.covered = self.position;
        self.expected = Some(block + 1);
    }

    /// Returns the block that should be here, if it is, and goes behind it. The last, short block is found so, too.
    fn expected_block(&mut self, window: &mut Window<'_>) -> Result<Option<u32>, DeltaError> {
        let layout = self.sums.layout;
        let expected =
            self.expected.filter(|&block| self.locality && (block as usize) < layout.count());
        let Some(block) = expected else { return Ok(None) };
        let length = layout.length(block as usize);
        let found = self.fingerprint_here(window, length)?;
        let Some(fingerprint) = found else { return Ok(None) };
        self.is_in_step = fingerprint == self.sums.strong[block as usize];
        if !self.is_in_step {
            self.false_alarms += length as u64;
            return Ok(None);
        }
        self.advance(self.position, block);
        Ok(Some(block))
    }

    /// Returns the fingerprint of so many bytes from here on, if the file has them.
    fn fingerprint_here(
        &mut self,
        window: &mut Window<'_>,
        length: usize,
    ) -> Result<Option<u128>, DeltaError> {
        if let Some(known) = self.ahead.of(self.position, length) {
            return Ok(Some(known));
        }
        let bytes = window.bytes(self.position, length)?;
        if self.is_in_step
            && let Some(blocks) = bytes.get(..ABREAST * length)
            && length == self.sums.layout.block_size() as usize
        {
            let blocks = std::array::from_fn(|block| &blocks[block * length..][..length]);
            if let Some(fingerprints) = self.fingerprinter.fingerprints(blocks) {
                self.ahead = Ahead { position: self.position, length, fingerprints };
                return Ok(Some(fingerprints[0]));
            }
        }
        Ok(bytes.get(..length).map(|bytes| self.fingerprinter.fingerprint(bytes)))
    }

    /// Rolls to the next match of a block of full size; returns where it is, and its range in the index.
    fn scan(&mut self, window: &mut Window<'_>) -> Result<Option<(u64, Range<usize>)>, DeltaError> {
        let block_size = self.sums.layout.block_size() as usize;
        let by_size =
            FALSE_ALARMS_FREE.saturating_add(window.size().saturating_mul(FALSE_ALARMS_MAX));
        let allowed = self.false_alarms_max.unwrap_or(by_size);
        if self.index.order.is_empty() {
            return Ok(None);
        }
        loop {
            let bytes = window.bytes(self.position, block_size + 1)?;
            if bytes.len() < block_size {
                return Ok(None);
            }
            let mut sum = RollingSum::of(&bytes[..block_size]);
            let last = bytes.len() - block_size;
            for start in 0..=last {
                let weak = sum.value();
                if self.index.may_have(weak) {
                    if let Some(range) = self.confirm(weak, &bytes[start..start + block_size]) {
                        return Ok(Some((self.position + start as u64, range)));
                    }
                    if self.false_alarms > allowed {
                        return Ok(None);
                    }
                }
                if start < last {
                    sum.roll(bytes[start], bytes[start + block_size], &self.leaving);
                }
            }
            self.position += last as u64 + 1;
        }
    }

    /// Asks the second and the third level.
    fn confirm(&mut self, weak: u32, bytes: &[u8]) -> Option<Range<usize>> {
        let blocks = self.index.of_weak(self.sums, weak);
        if blocks.is_empty() {
            return None;
        }
        let strong = self.fingerprinter.fingerprint(bytes);
        let compare = |block: u32| self.sums.strong[block as usize].cmp(&strong);
        let equal = self.index.equal_range(blocks, compare);
        if equal.is_empty() {
            self.false_alarms += bytes.len() as u64;
            return None;
        }
        Some(equal)
    }

    /// Returns the last, short block where the file ends with it, as rsync does.
    fn short_block_at_end(&self, window: &mut Window<'_>) -> Result<Option<Match>, DeltaError> {
        let Some(block) = self.sums.layout.short_block() else { return Ok(None) };
        let length = self.sums.layout.length(block);
        let position = window.size().checked_sub(length as u64);
        let Some(position) = position.filter(|&position| position >= self.covered) else {
            return Ok(None);
        };
        let bytes = window.exactly(position, length)?;
        let is_equal = RollingSum::of(bytes).value() == self.sums.weak[block]
            && self.fingerprinter.fingerprint(bytes) == self.sums.strong[block];
        Ok(is_equal.then_some(Match { position, block: block as u32, equal: 0..0 }))
    }
}
