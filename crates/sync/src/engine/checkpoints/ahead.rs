//! Pages on their way before they are wanted, so that a device that begins does not wait for one after the other.
//!
//! *Invariants*: no more pages than [`PAGES_AT_ONCE`] are on their way or wait here, and beside the one that is wanted none is asked for
//! where all of them together would have more than [`LENGTH_MAX`], if those on their way are as long as the longest so far. How
//! long they are is not known before the first have come, so it begins with a few.

use std::collections::{BTreeSet, HashMap};
use std::iter::once;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::{BoxFuture, FutureExt};
use futures_util::stream::{FuturesUnordered, StreamExt};
use model::PageId;
use storage::{ContentStore, StorageError};

use super::PAGES_AT_ONCE;

/// So many bytes of pages may be on their way or wait until they are wanted. A page has some 25 KB, and may have a thousand
/// times that.
const LENGTH_MAX: usize = 8 << 20;

/// How many pages are on their way while nobody knows how long they are.
const AT_FIRST: usize = 4;

/// What came of asking for a page.
type Answer = Result<Bytes, StorageError>;

/// Pages that were asked for and not wanted yet.
pub(super) struct PagesAhead {
    store: Arc<ContentStore>,
    asked: BTreeSet<PageId>,
    reads: FuturesUnordered<BoxFuture<'static, (PageId, Answer)>>,
    here: HashMap<PageId, Answer>,
    /// How many have come.
    count: usize,
    longest: usize,
}

impl PagesAhead {
    /// Asks for nothing yet.
    pub(super) fn new(store: Arc<ContentStore>) -> Self {
        let (asked, reads, here) = Default::default();
        Self { store, asked, reads, here, count: 0, longest: 0 }
    }

    /// Waits for a page, and lets those come that are wanted next, as many as there is room for.
    pub(super) async fn get(
        &mut self,
        wanted: PageId,
        next: impl Iterator<Item = PageId>,
    ) -> Answer {
        for id in once(wanted).chain(next).take(PAGES_AT_ONCE) {
            if id != wanted && !self.has_room() {
                break;
            }
            if self.asked.insert(id) {
                let store = Arc::clone(&self.store);
                self.reads.push(async move { (id, store.read_page(id).await) }.boxed());
            }
        }
        loop {
            if let Some(answer) = self.here.remove(&wanted) {
                self.asked.remove(&wanted);
                return answer;
            }
            let (id, answer) = self.reads.next().await.expect("the wanted one was asked for");
            self.count += 1;
            self.longest = self.longest.max(answer.as_ref().map_or(0, Bytes::len));
            self.here.insert(id, answer);
        }
    }

    fn has_room(&self) -> bool {
        let waiting = self.here.values().flatten().map(Bytes::len).sum::<usize>();
        let expected = waiting + (self.reads.len() + 1) * self.longest;
        let at_once = PAGES_AT_ONCE.min(AT_FIRST + self.count);
        self.asked.len() < at_once && expected <= LENGTH_MAX
    }
}

#[cfg(test)]
mod tests;
