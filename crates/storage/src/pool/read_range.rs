//! Reading parts of objects, unverified: from one copy, or from the one block, rarely two, in which the part lies.

use std::ops::Range;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use futures_util::future::{BoxFuture, Either, select, try_join_all};

use crate::error::Result;
use crate::key::ObjectKey;
use crate::object_store::{ObjectStore, clamp};

use super::Shared;
use super::ask::{Answer, Trail};
use super::block::{BlockCode, BlockHeader, BlockName, HEADER_LENGTH};
use super::known::Known;
use super::member::Direction;
use super::piece::{Piece, Placed};

/// Which part of an object.
#[derive(Debug, Clone)]
enum Part {
    Range(Range<u64>),
    Tail(u64),
}

impl Part {
    /// Returns the range that it is of an object of this length.
    fn within(&self, length: u64) -> Range<u64> {
        match self {
            Self::Range(range) => clamp(range, length),
            Self::Tail(tail) => length.saturating_sub(*tail)..length,
        }
    }

    fn length_max(&self) -> u64 {
        match self {
            Self::Range(range) => range.end.saturating_sub(range.start),
            Self::Tail(length) => *length,
        }
    }
}

impl Shared {
    pub(crate) async fn get_range(
        self: &Arc<Self>,
        key: &ObjectKey,
        range: Range<u64>,
    ) -> Result<Option<Bytes>> {
        self.get_part(key, Part::Range(range)).await
    }

    pub(crate) async fn get_tail(
        self: &Arc<Self>,
        key: &ObjectKey,
        length: u64,
    ) -> Result<Option<Bytes>> {
        self.get_part(key, Part::Tail(length)).await
    }

    async fn get_part(self: &Arc<Self>, key: &ObjectKey, part: Part) -> Result<Option<Bytes>> {
        let hash = self.object(key)?;
        let direct = match self.code() {
            None => self.part_of_copy(key, hash, &part).await,
            Some(code) => self.part_of_blocks(key, hash, code, &part).await,
        };
        if direct.is_some() {
            return Ok(direct);
        }
        // Where it should be it is not: the whole is searched for, verified, and mended.
        let Some(bytes) = self.get(key).await? else { return Ok(None) };
        let range = part.within(bytes.len() as u64);
        // Within the length of bytes in memory.
        Ok(Some(bytes.slice(range.start as usize..range.end as usize)))
    }

    async fn part_of_copy(
        self: &Arc<Self>,
        key: &ObjectKey,
        hash: [u8; 32],
        part: &Part,
    ) -> Option<Bytes> {
        let length = part.length_max().min(self.size_guess());
        let order = self.order(&hash);
        let mut copies: Vec<Placed> =
            order.homes().iter().map(|&home| (home, Piece::Copy)).collect();
        self.rank(&mut copies, length);
        let question = |(member, _): Placed| -> BoxFuture<'static, Result<Answer<Bytes>>> {
            let (shared, key, part) = (Arc::clone(self), key.clone(), part.clone());
            Box::pin(async move {
                let store = Arc::clone(&shared.members[member].store);
                let get = async move {
                    match part {
                        Part::Range(range) => store.get_range(&key, range).await,
                        Part::Tail(length) => store.get_tail(&key, length).await,
                    }
                };
                let moved = |found: &Option<Bytes>| found.as_ref().map_or(0, |b| b.len() as u64);
                let found = shared.call(member, Direction::Read, length, get, moved).await?;
                Ok(found.map_or(Answer::Absent, Answer::Found))
            })
        };
        let found = self.ask(&copies, 1, length, question, &mut Trail::default()).await;
        found.into_iter().next().map(|(_, bytes)| bytes)
    }

    /// Returns a part of an object from the blocks that hold it, unless one of them is not to be had or slow: then from
    /// the whole. `None` when it is not in blocks of this code.
    async fn part_of_blocks(
        self: &Arc<Self>,
        key: &ObjectKey,
        hash: [u8; 32],
        code: BlockCode,
        part: &Part,
    ) -> Option<Bytes> {
        let known = self.known_blocks(key, hash, code).await?;
        let length = known.length as u64;
        let range = part.within(length);
        if range.is_empty() {
            return Some(Bytes::new());
        }
        let Some(parts) = self.parts(key, code, &known, &range) else {
            return self.part_of_whole(key, &range).await;
        };
        let expected = parts.iter().map(|part| part.expected(self)).max().unwrap_or_default();
        let direct = Box::pin(try_join_all(parts.into_iter().map(|part| part.read(self))));
        let is_late = self.clock.sleep(expected * 2);
        let pieces = match select(direct, is_late).await {
            Either::Left((pieces, _)) => pieces.ok(),
            Either::Right(((), direct)) => {
                let whole = Box::pin(self.part_of_whole(key, &range));
                match select(direct, whole).await {
                    Either::Left((Ok(pieces), _)) => Some(pieces),
                    Either::Left((Err(NotThere), whole)) => return whole.await,
                    Either::Right((Some(bytes), _)) => return Some(bytes),
                    Either::Right((None, direct)) => direct.await.ok(),
                }
            }
        };
        let Some(pieces) = pieces else {
            // Perhaps the blocks have moved.
            self.known.lock().forget(key);
            return self.part_of_whole(key, &range).await;
        };
        let mut bytes = BytesMut::with_capacity(pieces.iter().map(Bytes::len).sum());
        for piece in &pieces {
            bytes.extend_from_slice(piece);
        }
        Some(bytes.freeze())
    }

    async fn part_of_whole(self: &Arc<Self>, key: &ObjectKey, range: &Range<u64>) -> Option<Bytes> {
        // An error is met again, and told, by who gets the whole after us.
        let bytes = self.get(key).await.ok()??;
        let range = clamp(range, bytes.len() as u64);
        Some(bytes.slice(range.start as usize..range.end as usize))
    }

    /// Returns where in which blocks a range lies; `None` when the holder of one is not known.
    fn parts(
        &self,
        key: &ObjectKey,
        code: BlockCode,
        known: &Known,
        range: &Range<u64>,
    ) -> Option<Vec<BlockPart>> {
        let stretch = code.stretch(known.length) as u64;
        let part = |index: u64| {
            let name = BlockName { code, index: u8::try_from(index).ok()? };
            let member = known.holder(name)?;
            let start = range.start.max(index * stretch) - index * stretch;
            let end = range.end.min((index + 1) * stretch) - index * stretch;
            let header = HEADER_LENGTH as u64;
            Some(BlockPart { member, key: name.key(key), range: header + start..header + end })
        };
        (range.start / stretch..=(range.end - 1) / stretch).map(part).collect()
    }

    /// Returns where the blocks of an object are: as remembered, or where they should be or, if they are not there,
    /// where they are.
    async fn known_blocks(
        self: &Arc<Self>,
        key: &ObjectKey,
        hash: [u8; 32],
        code: BlockCode,
    ) -> Option<Known> {
        if let Some(known) = self.known.lock().get(key) {
            return Some(known);
        }
        let mut trail = Trail::default();
        let mut blocks = self.home_blocks(&self.order(&hash), code);
        let length = match self.length(key, hash, &blocks, &mut trail).await {
            Some(length) if trail.absent.is_empty() => length,
            _ => {
                let located = self.locate(key, &mut trail).await;
                blocks = located.into_iter().map(|(placed, _)| placed).collect();
                blocks.retain(|(_, piece)| matches!(piece, Piece::Block(b) if b.code == code));
                self.length(key, hash, &blocks, &mut trail).await?
            }
        };
        let known = Known { length: usize::try_from(length).ok()?, blocks };
        self.known.lock().insert(key, known.clone());
        Some(known)
    }

    /// Returns the length of an object by the header of one of its blocks.
    pub(crate) async fn length(
        self: &Arc<Self>,
        key: &ObjectKey,
        hash: [u8; 32],
        blocks: &[Placed],
        trail: &mut Trail,
    ) -> Option<u64> {
        let mut blocks: Vec<Placed> =
            blocks.iter().filter(|(_, piece)| *piece != Piece::Copy).copied().collect();
        self.rank(&mut blocks, 0);
        let question = |(member, piece): Placed| -> BoxFuture<'static, Result<Answer<u64>>> {
            let (shared, key) = (Arc::clone(self), key.clone());
            Box::pin(async move {
                let Piece::Block(name) = piece else { return Ok(Answer::Absent) };
                let (store, key) = (Arc::clone(&shared.members[member].store), name.key(&key));
                let get = async move { store.get_range(&key, 0..HEADER_LENGTH as u64).await };
                let found = shared.call(member, Direction::Read, 0, get, |_| 0).await?;
                let Some(bytes) = found else { return Ok(Answer::Absent) };
                let header = BlockHeader::decode(&bytes, &hash, name);
                Ok(header
                    .map_or(Answer::Wrong, |header| Answer::Found(header.object_length as u64)))
            })
        };
        let found = self.ask(&blocks, 1, 0, question, trail).await;
        found.into_iter().next().map(|(_, length)| length)
    }
}

/// A block is not where it was expected, or shorter.
#[derive(Debug)]
struct NotThere;

/// A part of a block, header included.
#[derive(Debug)]
struct BlockPart {
    member: usize,
    key: ObjectKey,
    range: Range<u64>,
}

impl BlockPart {
    fn length(&self) -> u64 {
        self.range.end - self.range.start
    }

    fn expected(&self, shared: &Shared) -> std::time::Duration {
        let member = &shared.members[self.member];
        member.expected(member.expectation(self.length()), shared.clock.elapsed())
    }

    async fn read(self, shared: &Shared) -> Result<Bytes, NotThere> {
        let length = self.length();
        let store = Arc::clone(&shared.members[self.member].store);
        let get = store.get_range(&self.key, self.range.clone());
        let moved = |found: &Option<Bytes>| found.as_ref().map_or(0, |bytes| bytes.len() as u64);
        match shared.call(self.member, Direction::Read, length, get, moved).await {
            Ok(Some(bytes)) if bytes.len() as u64 == length => Ok(bytes),
            _ => Err(NotThere),
        }
    }
}
