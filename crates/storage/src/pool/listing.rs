//! Lists are unions of the lists of the stores; deleting is done everywhere.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::future::join_all;

use crate::error::Result;
use crate::key::{ObjectKey, check_prefix};
use crate::object_store::{ObjectEntry, ObjectStore};

use super::Shared;
use super::ask::Trail;
use super::block::{BLOCKS, BlockName, HEADER_LENGTH, blocks_of, parse_key};
use super::member::Direction;
use super::piece::{Piece, Placed};

/// How many blocks are listed at once at most.
const BLOCK_PAGE: usize = 1000;

/// What is known of the objects of a list: their pieces with the sizes of these.
type Union = BTreeMap<ObjectKey, Vec<(Placed, u64)>>;

/// What one store lists: entries up to the key `complete_to`, or all.
struct Page {
    pieces: Vec<(ObjectKey, Piece, u64)>,
    complete_to: Option<ObjectKey>,
}

impl Shared {
    /// Returns the union of the lists. It is complete as long as fewer stores fail than an object is durable in.
    pub(crate) async fn list(
        self: &Arc<Self>,
        prefix: &str,
        start_after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<ObjectEntry>> {
        check_prefix(prefix)?;
        if limit == 0 {
            return Ok(Vec::new());
        }
        let pages = (0..self.members.len()).map(|m| self.page(m, prefix, start_after, limit));
        let (mut union, mut failed) = (Union::new(), Vec::new());
        let mut complete_to: Option<ObjectKey> = None;
        for (member, page) in join_all(pages).await.into_iter().enumerate() {
            match page {
                Ok(page) => {
                    for (key, piece, size) in page.pieces {
                        union.entry(key).or_default().push(((member, piece), size));
                    }
                    if let Some(end) = page.complete_to {
                        complete_to = Some(complete_to.map_or(end.clone(), |other| other.min(end)));
                    }
                }
                Err(error) => failed.push((member, error)),
            }
        }
        if failed.len() >= self.enough() {
            return Err(self.combine(failed));
        }
        let is_complete = |key: &&ObjectKey| complete_to.as_ref().is_none_or(|end| *key <= end);
        let keys: Vec<ObjectKey> = union.keys().filter(is_complete).take(limit).cloned().collect();
        let sizes = keys.iter().map(|key| self.size_of(key, &union[key]));
        let sizes: Vec<u64> = join_all(sizes).await.into_iter().collect::<Result<_>>()?;
        Ok(keys.into_iter().zip(sizes).map(|(key, size)| ObjectEntry { key, size }).collect())
    }

    /// Returns the next pieces in one store, of at least `limit` objects unless there are fewer.
    async fn page(
        &self,
        member: usize,
        prefix: &str,
        start_after: Option<&str>,
        limit: usize,
    ) -> Result<Page> {
        let mut page = Page { pieces: Vec::new(), complete_to: None };
        let mut ends: Vec<Option<ObjectKey>> = Vec::new();
        for class in [ObjectKey::PACKS, ObjectKey::PAGES] {
            let Some((rest, after)) = rest_of(class, prefix, start_after) else { continue };
            let (prefix, after) = (format!("{class}{rest}"), after.map(|a| format!("{class}{a}")));
            let found = self.list_page(member, &prefix, after.as_deref(), limit).await?;
            let end = (found.len() >= limit).then(|| found[limit - 1].key.clone());
            ends.push(end);
            let pieces = found
                .into_iter()
                .filter_map(|entry| Some((Piece::parse(&entry.key)?.0, Piece::Copy, entry.size)));
            page.pieces.extend(pieces);
            ends.push(
                self.page_of_blocks(member, class, (rest, start_after), limit, &mut page).await?,
            );
        }
        page.complete_to = ends.into_iter().flatten().min();
        Ok(page)
    }

    /// Collects blocks until they are of `limit` objects; returns the last object when there may be more.
    async fn page_of_blocks(
        &self,
        member: usize,
        class: &str,
        (rest, start_after): (&str, Option<&str>),
        limit: usize,
        page: &mut Page,
    ) -> Result<Option<ObjectKey>> {
        let prefix = format!("{BLOCKS}{rest}");
        let mut after = start_after
            .and_then(|after| after.strip_prefix(class))
            .map(|after| format!("{BLOCKS}{after}"));
        let (mut objects, mut last) = (0, None::<ObjectKey>);
        let at_once = limit.saturating_mul(2).clamp(16, BLOCK_PAGE);
        loop {
            let found = self.list_page(member, &prefix, after.as_deref(), at_once).await?;
            let is_last = found.len() < at_once;
            after = found.last().map(|entry| entry.key.to_string());
            for entry in found {
                let Some((object, name)) = parse_key(&entry.key) else { continue };
                let is_wanted = object.as_str().starts_with(class)
                    && start_after.is_none_or(|after| object.as_str() > after);
                if !is_wanted {
                    continue;
                }
                if last.as_ref() != Some(&object) {
                    if objects == limit {
                        return Ok(last);
                    }
                    (objects, last) = (objects + 1, Some(object.clone()));
                }
                page.pieces.push((object, Piece::Block(name), entry.size));
            }
            if is_last {
                return Ok(None);
            }
        }
    }

    pub(crate) async fn list_page(
        &self,
        member: usize,
        prefix: &str,
        start_after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<ObjectEntry>> {
        let store = Arc::clone(&self.members[member].store);
        let list = store.list(prefix, start_after, limit);
        self.call(member, Direction::Read, 0, list, |_| 0).await
    }

    /// Returns the size of a listed object: that of its copies, or what the sizes of its blocks or a header say. Of one that is
    /// lost it is a bound.
    async fn size_of(self: &Arc<Self>, key: &ObjectKey, pieces: &[(Placed, u64)]) -> Result<u64> {
        // A torn copy is shorter than the others.
        let copies = pieces.iter().filter(|((_, piece), _)| *piece == Piece::Copy);
        if let Some(size) = copies.map(|(_, size)| *size).max() {
            return Ok(size);
        }
        if let Some(size) = size_by_own_blocks(pieces) {
            return Ok(size);
        }
        let placed: Vec<Placed> = pieces.iter().map(|(placed, _)| *placed).collect();
        let hash = self.object(key)?;
        let mut trail = Trail::default();
        if let Some(length) = self.length(key, hash, &placed, &mut trail).await {
            return Ok(length);
        }
        if trail.failed.is_empty() {
            // What is left of it is damaged. One lost object must not hide all others, so its size is only bounded.
            return Ok(pieces
                .iter()
                .map(|(placed, size)| size_at_most(placed.1, *size))
                .max()
                .unwrap_or(0));
        }
        Err(self.combine(trail.failed))
    }

    pub(crate) async fn delete(self: &Arc<Self>, key: &ObjectKey) -> Result<()> {
        self.object(key)?;
        // A copy that is still on its way would come back.
        self.backlog.drain().await;
        self.backlog.pay(key);
        self.known.lock().forget(key);
        let deletes = (0..self.members.len()).map(|member| self.delete_in(member, key));
        let failed: Vec<_> = join_all(deletes)
            .await
            .into_iter()
            .enumerate()
            .filter_map(|(member, result)| Some((member, result.err()?)))
            .collect();
        if failed.is_empty() { Ok(()) } else { Err(self.combine(failed)) }
    }

    /// Deletes all pieces of an object in one store.
    async fn delete_in(&self, member: usize, key: &ObjectKey) -> Result<()> {
        let store = Arc::clone(&self.members[member].store);
        let delete = async {
            store.delete(key).await?;
            loop {
                let blocks = store.list(&blocks_of(key), None, BLOCK_PAGE).await?;
                let is_last = blocks.len() < BLOCK_PAGE;
                for entry in blocks {
                    store.delete(&entry.key).await?;
                }
                if is_last {
                    return Ok(());
                }
            }
        };
        self.call(member, Direction::Write, 0, delete, |()| 0).await
    }
}

/// Returns what follows the class in a prefix and in a start; `None` when no key of the class is meant.
fn rest_of<'a>(
    class: &str,
    prefix: &'a str,
    start_after: Option<&'a str>,
) -> Option<(&'a str, Option<&'a str>)> {
    let rest = match prefix.strip_prefix(class) {
        Some(rest) => rest,
        None if class.starts_with(prefix) => "",
        None => return None,
    };
    let after = match start_after {
        None => None,
        Some(after) => match after.strip_prefix(class) {
            Some(after) => Some(after),
            None if after < class => None,
            None => return None,
        },
    };
    Some((rest, after))
}

/// Returns how large an object can be of which there is this piece of this size.
fn size_at_most(piece: Piece, size: u64) -> u64 {
    match piece {
        Piece::Copy => size,
        Piece::Block(name) => size.saturating_sub(HEADER_LENGTH as u64) * u64::from(name.code.data),
    }
}

/// Returns the size of an object whose own bytes are all in listed blocks of one code.
fn size_by_own_blocks(pieces: &[(Placed, u64)]) -> Option<u64> {
    let mut own: BTreeMap<BlockName, u64> = BTreeMap::new();
    for ((_, piece), size) in pieces {
        if let Piece::Block(name) = piece
            && name.index < name.code.data
        {
            own.insert(*name, *size);
        }
    }
    let code = own.keys().next()?.code;
    let header = HEADER_LENGTH as u64;
    (0..code.data)
        .map(|index| own.get(&BlockName { code, index })?.checked_sub(header))
        .sum::<Option<u64>>()
}
