//! Reading whole objects: from the best stores, verified; what was found wrong on the way is mended behind the reader.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use futures_util::future::{BoxFuture, join_all};

use crate::blocking::off_runtime;
use crate::content_store::hash_of;
use crate::error::{Result, StorageError};
use crate::key::ObjectKey;
use crate::object_store::ObjectStore;
use crate::placement::StoreOrder;

use super::Shared;
use super::ask::{Answer, Trail};
use super::block::{
    Block, BlockCode, BlockName, HEADER_LENGTH, blocks_of, decode, encode, parse_key,
};
use super::member::Direction;
use super::piece::{Piece, Placed};

/// How large an object is taken for before any was read: most bytes are in packs.
pub(crate) const SIZE_AT_FIRST: u64 = 4 << 20;

/// How much one object counts for how large the next is taken: one part in so many.
const SIZE_MEMORY: u64 = 8;

/// How many ways to combine blocks are tried when some of them lie about themselves.
const COMBINATIONS_MAX: usize = 512;

/// More blocks of one object than this in one store are not looked at.
const BLOCKS_IN_STORE_MAX: usize = 128;

/// A piece that a store says it has, and how many bytes it has.
pub(crate) type Sized = (Placed, u64);

impl Shared {
    pub(crate) async fn get(self: &Arc<Self>, key: &ObjectKey) -> Result<Option<Bytes>> {
        let mut trail = Trail::default();
        let found = self.find(key, &mut trail).await?;
        match &found {
            Some(bytes) if !trail.wrong.is_empty() => {
                self.mend_later(key, bytes.clone(), trail.wrong);
            }
            // Whoever has written it may be about to give a home that is behind its piece.
            Some(_) if !trail.absent.is_empty() => self.backlog.owe(key),
            _ => {}
        }
        Ok(found)
    }

    /// Returns the object, verified, and what was found wrong on the way.
    pub(crate) async fn find(
        self: &Arc<Self>,
        key: &ObjectKey,
        trail: &mut Trail,
    ) -> Result<Option<Bytes>> {
        let hash = self.object(key)?;
        let order = self.order(&hash);
        let found = match self.code() {
            None => {
                let mut copies: Vec<Placed> =
                    order.all().iter().map(|&member| (member, Piece::Copy)).collect();
                self.rank(&mut copies[..order.homes().len()], self.size_guess());
                self.read_copy(key, hash, &copies, trail).await?
            }
            Some(code) => {
                let known = self.known.lock().get(key).map(|known| known.blocks);
                let blocks = known.unwrap_or_else(|| self.home_blocks(&order, code));
                self.read_blocks(key, hash, code, blocks, trail).await?
            }
        };
        let found = match found {
            Some(bytes) => Some(bytes),
            None => self.get_from_anywhere(key, hash, trail).await?,
        };
        match found {
            Some(bytes) => Ok(Some(bytes)),
            None => self.verdict(key, std::mem::take(trail)),
        }
    }

    /// Reads an object that is not where it should be: in blocks of another code, in blocks elsewhere, or as a copy.
    async fn get_from_anywhere(
        self: &Arc<Self>,
        key: &ObjectKey,
        hash: [u8; 32],
        trail: &mut Trail,
    ) -> Result<Option<Bytes>> {
        // Who has failed is asked again, and fails again or not.
        trail.failed.clear();
        let located = self.locate(key, trail).await;
        let present: Vec<Placed> = located.into_iter().map(|(placed, _)| placed).collect();
        let is_new = |placed: &&Placed| !trail.wrong.contains(placed);
        let present: Vec<Placed> = present.iter().filter(is_new).copied().collect();
        let is_copy = |placed: &&Placed| placed.1 == Piece::Copy;
        let copies: Vec<Placed> = present.iter().filter(is_copy).copied().collect();
        if let Some(bytes) = self.read_copy(key, hash, &copies, trail).await? {
            return Ok(Some(bytes));
        }
        for code in codes(&present) {
            let blocks = blocks_of_code(&present, code);
            if let Some(bytes) = self.read_blocks(key, hash, code, blocks, trail).await? {
                return Ok(Some(bytes));
            }
        }
        // What is left is too little, which is not the same as nothing.
        trail.wrong.extend(present);
        Ok(None)
    }

    /// Says what it means that nothing was found.
    pub(crate) fn verdict<T>(&self, key: &ObjectKey, trail: Trail) -> Result<Option<T>> {
        if !trail.failed.is_empty() {
            return Err(self.combine(trail.failed));
        }
        if trail.wrong.is_empty() {
            return Ok(None);
        }
        let mut names: Vec<_> =
            trail.wrong.iter().map(|(member, _)| self.members[*member].name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        let detail = format!("what is left of it, in {}, does not give it back", names.join(", "));
        Err(StorageError::Damaged { key: key.clone(), detail })
    }

    /// Returns where the blocks of an object are, unless stores failed or changed since.
    pub(crate) fn home_blocks(&self, order: &StoreOrder, code: BlockCode) -> Vec<Placed> {
        let block = |&home: &usize| {
            let index = order.index_of(home)?;
            Some((home, Piece::Block(BlockName { code, index })))
        };
        order.homes().iter().filter_map(block).collect()
    }

    async fn read_copy(
        self: &Arc<Self>,
        key: &ObjectKey,
        hash: [u8; 32],
        copies: &[Placed],
        trail: &mut Trail,
    ) -> Result<Option<Bytes>> {
        let guess = self.size_guess();
        let question = |placed: Placed| -> BoxFuture<'static, Result<Answer<Bytes>>> {
            let (shared, key) = (Arc::clone(self), key.clone());
            Box::pin(async move {
                let Some(bytes) = shared.fetch(placed, &key, guess).await? else {
                    return Ok(Answer::Absent);
                };
                shared.learn_size(bytes.len());
                let is_right = hash_of(bytes.clone()).await? == hash;
                Ok(if is_right { Answer::Found(bytes) } else { Answer::Wrong })
            })
        };
        let found = self.ask(copies, 1, guess, question, trail).await;
        Ok(found.into_iter().next().map(|(_, bytes)| bytes))
    }

    /// Returns how large an object is likely to be.
    pub(crate) fn size_guess(&self) -> u64 {
        self.typical_size.load(Ordering::Relaxed)
    }

    fn learn_size(&self, length: usize) {
        let guess = self.size_guess();
        let learned = guess - guess / SIZE_MEMORY + length as u64 / SIZE_MEMORY;
        // Two at once may forget one of the two, which is no harm.
        self.typical_size.store(learned.max(1), Ordering::Relaxed);
    }

    /// Gets a piece as it is.
    pub(crate) async fn fetch(
        &self,
        (member, piece): Placed,
        object: &ObjectKey,
        guess: u64,
    ) -> Result<Option<Bytes>> {
        let (store, key) = (Arc::clone(&self.members[member].store), piece.key(object));
        let get = async move { store.get(&key).await };
        let length = |found: &Option<Bytes>| found.as_ref().map_or(0, |bytes| bytes.len() as u64);
        let found = self.call(member, Direction::Read, guess, get, length).await?;
        self.members[member].looked(found.is_some(), self.clock.elapsed());
        Ok(found)
    }

    async fn read_blocks(
        self: &Arc<Self>,
        key: &ObjectKey,
        hash: [u8; 32],
        code: BlockCode,
        mut blocks: Vec<Placed>,
        trail: &mut Trail,
    ) -> Result<Option<Bytes>> {
        let guess = self.size_guess() / u64::from(code.data);
        let wanted = usize::from(code.data);
        self.rank(&mut blocks, guess);
        let question = |placed: Placed| -> BoxFuture<'static, Result<Answer<Block>>> {
            let (shared, key) = (Arc::clone(self), key.clone());
            Box::pin(async move { shared.fetch_block(placed, key, hash, guess).await })
        };
        let mut found = self.ask(&blocks, wanted, guess, &question, trail).await;
        if found.len() < wanted {
            return Ok(None);
        }
        if let Some(bytes) = combined(code, hash, &found).await? {
            self.learn_size(bytes.len());
            return Ok(Some(bytes));
        }
        // Some block says of itself what is not so. The others tell which.
        let is_new = |placed: &&Placed| {
            !found.iter().any(|(other, _)| other == *placed) && !trail.wrong.contains(placed)
        };
        let rest: Vec<Placed> = blocks.iter().filter(is_new).copied().collect();
        found.extend(self.ask(&rest, rest.len(), guess, &question, trail).await);
        if let Some(bytes) = any_combined(code, hash, &found).await? {
            trail.wrong.extend(liars(code, hash, &bytes, &found).await?);
            return Ok(Some(bytes));
        }
        trail.wrong.extend(found.iter().map(|(placed, _)| *placed));
        Ok(None)
    }

    /// Gets a block, and checks it against its header and the header against what was expected.
    pub(crate) async fn fetch_block(
        &self,
        placed: Placed,
        key: ObjectKey,
        hash: [u8; 32],
        guess: u64,
    ) -> Result<Answer<Block>> {
        let Piece::Block(name) = placed.1 else { return Ok(Answer::Absent) };
        let Some(bytes) = self.fetch(placed, &key, guess).await? else { return Ok(Answer::Absent) };
        let block = off_runtime(move || Ok(Block::decode(&bytes, &hash, name))).await?;
        Ok(block.map_or(Answer::Wrong, Answer::Found))
    }

    /// Asks all stores at once what they have of an object.
    pub(crate) async fn locate(self: &Arc<Self>, key: &ObjectKey, trail: &mut Trail) -> Vec<Sized> {
        let looks = (0..self.members.len()).map(|member| self.look(member, key));
        let mut present = Vec::new();
        for (member, result) in join_all(looks).await.into_iter().enumerate() {
            match result {
                Ok(found) => present.extend(found),
                Err(error) => trail.failed.push((member, error)),
            }
        }
        present
    }

    /// Asks one store what it has of an object.
    async fn look(&self, member: usize, key: &ObjectKey) -> Result<Vec<Sized>> {
        let store = Arc::clone(&self.members[member].store);
        let prefix = blocks_of(key);
        let look = async {
            futures_util::future::try_join(
                store.size(key),
                store.list(&prefix, None, BLOCKS_IN_STORE_MAX),
            )
            .await
        };
        let (size, blocks) = self.call(member, Direction::Read, 0, look, |_| 0).await?;
        let mut present: Vec<Sized> = Vec::new();
        present.extend(size.map(|size| ((member, Piece::Copy), size)));
        for entry in blocks {
            if let Some((_, name)) = parse_key(&entry.key).filter(|(object, _)| object == key) {
                present.push(((member, Piece::Block(name)), entry.size));
            }
        }
        Ok(present)
    }

    pub(crate) async fn size(self: &Arc<Self>, key: &ObjectKey) -> Result<Option<u64>> {
        let hash = self.object(key)?;
        let order = self.order(&hash);
        let mut trail = Trail::default();
        match self.code() {
            None => {
                let mut copies: Vec<Placed> =
                    order.homes().iter().map(|&home| (home, Piece::Copy)).collect();
                self.rank(&mut copies, 0);
                let found = self.ask(&copies, 1, 0, self.size_question(key), &mut trail).await;
                if let Some((_, size)) = found.into_iter().next() {
                    return Ok(Some(size));
                }
            }
            Some(code) => {
                let blocks = self.home_blocks(&order, code);
                if let Some(length) = self.length(key, hash, &blocks, &mut trail).await {
                    return Ok(Some(length));
                }
            }
        }
        trail.failed.clear();
        let present = self.locate(key, &mut trail).await;
        if let Some((_, size)) = present.iter().find(|((_, piece), _)| *piece == Piece::Copy) {
            return Ok(Some(*size));
        }
        let present: Vec<Placed> = present.into_iter().map(|(placed, _)| placed).collect();
        match self.length(key, hash, &present, &mut trail).await {
            Some(length) => Ok(Some(length)),
            None => self.verdict(key, trail),
        }
    }

    fn size_question(
        self: &Arc<Self>,
        key: &ObjectKey,
    ) -> impl Fn(Placed) -> BoxFuture<'static, Result<Answer<u64>>> {
        let (shared, key) = (Arc::clone(self), key.clone());
        move |(member, _)| {
            let (shared, key) = (Arc::clone(&shared), key.clone());
            Box::pin(async move {
                let store = Arc::clone(&shared.members[member].store);
                let size = async move { store.size(&key).await };
                let size = shared.call(member, Direction::Read, 0, size, |_| 0).await?;
                Ok(size.map_or(Answer::Absent, Answer::Found))
            })
        }
    }
}

/// Returns the codes of which there are blocks.
fn codes(present: &[Placed]) -> Vec<BlockCode> {
    let code = |(_, piece): &Placed| match piece {
        Piece::Copy => None,
        Piece::Block(name) => Some(name.code),
    };
    let mut codes: Vec<BlockCode> = present.iter().filter_map(code).collect();
    codes.sort_unstable();
    codes.dedup();
    codes
}

/// Returns blocks of one code; of several with one index one is asked first, the others stay in reserve.
fn blocks_of_code(present: &[Placed], code: BlockCode) -> Vec<Placed> {
    let is_of_code =
        |(_, piece): &&Placed| matches!(piece, Piece::Block(name) if name.code == code);
    present.iter().filter(is_of_code).copied().collect()
}

/// Decodes blocks and compares the result with the hash.
async fn combined(
    code: BlockCode,
    hash: [u8; 32],
    blocks: &[(Placed, Block)],
) -> Result<Option<Bytes>> {
    let blocks: Vec<Block> = blocks.iter().map(|(_, block)| block.clone()).collect();
    off_runtime(move || {
        let bytes = decode(code, &blocks);
        Ok(bytes.filter(|bytes| *blake3::hash(bytes).as_bytes() == hash))
    })
    .await
}

/// Decodes as many combinations of blocks as it takes, or as are worth it.
pub(crate) async fn any_combined(
    code: BlockCode,
    hash: [u8; 32],
    found: &[(Placed, Block)],
) -> Result<Option<Bytes>> {
    for chosen in combinations(found.len(), usize::from(code.data)).take(COMBINATIONS_MAX) {
        let chosen: Vec<(Placed, Block)> = chosen.iter().map(|&at| found[at].clone()).collect();
        if let Some(bytes) = combined(code, hash, &chosen).await? {
            return Ok(Some(bytes));
        }
    }
    Ok(None)
}

/// Returns the blocks that are not those of the object.
pub(crate) async fn liars(
    code: BlockCode,
    hash: [u8; 32],
    bytes: &Bytes,
    found: &[(Placed, Block)],
) -> Result<Vec<Placed>> {
    let (bytes, found) = (bytes.clone(), found.to_vec());
    off_runtime(move || {
        let right = encode(code, hash, &bytes);
        let is_wrong = |(_, block): &&(Placed, Block)| {
            let right = &right[usize::from(block.header.name.index)];
            right[HEADER_LENGTH..] != *block.payload || block.header.object_length != bytes.len()
        };
        Ok(found.iter().filter(is_wrong).map(|(placed, _)| *placed).collect())
    })
    .await
}

/// Returns all ways to choose `wanted` of `count` things.
fn combinations(count: usize, wanted: usize) -> impl Iterator<Item = Vec<usize>> {
    let mut next: Option<Vec<usize>> = (wanted <= count).then(|| (0..wanted).collect());
    std::iter::from_fn(move || {
        let current = next.take()?;
        let mut following = current.clone();
        if let Some(at) = (0..wanted).rev().find(|&at| following[at] < count - wanted + at) {
            following[at] += 1;
            for later in at + 1..wanted {
                following[later] = following[later - 1] + 1;
            }
            next = Some(following);
        }
        Some(current)
    })
}

#[cfg(test)]
mod tests {
    use super::combinations;

    #[test]
    fn all_combinations_are_made_once() {
        let found: Vec<_> = combinations(4, 2).collect();
        assert_eq!(found, [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]]);
        assert_eq!(combinations(5, 3).count(), 10);
        assert_eq!(combinations(2, 3).count(), 0);
        assert_eq!(combinations(3, 3).count(), 1);
    }
}
