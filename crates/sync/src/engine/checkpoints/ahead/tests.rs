//! A far store, and how many pages are on their way from it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use model::checkpoint::{PageWalk, build_pages};
use storage::ObjectStore;
use storage::layers::{Answer as StoreAnswer, Gate, Operation};

use super::*;

/// How long a request takes.
const LATENCY: Duration = Duration::from_millis(100);

type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

/// A store that takes time, and counts what is under way.
#[derive(Debug)]
struct Far {
    store: Arc<dyn ObjectStore>,
    under_way: AtomicUsize,
    most: AtomicUsize,
}

impl Gate for Far {
    fn store(&self) -> &dyn ObjectStore {
        &*self.store
    }

    async fn pass<A: Send>(
        &self,
        _: Operation,
        _: usize,
        answer: impl StoreAnswer<A>,
    ) -> storage::Result<A> {
        let under_way = self.under_way.fetch_add(1, Ordering::Relaxed) + 1;
        self.most.fetch_max(under_way, Ordering::Relaxed);
        tokio::time::sleep(LATENCY).await;
        let answered = answer.await;
        self.under_way.fetch_sub(1, Ordering::Relaxed);
        answered
    }
}

/// What came of reading a map.
struct Read {
    pairs: Pairs,
    pages: u32,
    most: usize,
    time: Duration,
}

/// Stores a map of so many keys, each with a value of that length, and reads it again.
async fn store_and_read(count: u32, length: usize) -> (Pairs, Read) {
    let folder = tempfile::tempdir().expect("a folder");
    let store = storage::open(&format!("file:{}", folder.path().display())).expect("opens");
    let key = |number: u32| blake3::hash(&number.to_le_bytes()).as_bytes().to_vec();
    let mut pairs: Pairs = (0..count).map(|it| (key(it), vec![it as u8; length])).collect();
    pairs.sort();
    let (near, mut pages) = (ContentStore::new(store.clone()), Vec::new());
    let keep = |id, page| {
        pages.push((id, Bytes::from(page)));
        Ok::<_, StorageError>(())
    };
    let top = build_pages(pairs.iter().cloned(), Ok, keep).expect("built");
    let number = pages.len() as u32;
    for (id, page) in pages {
        near.put_page(id, page).await.expect("stored");
    }
    let far = Arc::new(Far { store, under_way: AtomicUsize::new(0), most: AtomicUsize::new(0) });
    let gate: Arc<dyn ObjectStore> = far.clone();
    let mut ahead = PagesAhead::new(Arc::new(ContentStore::new(gate)));
    let (mut walk, mut found) = (PageWalk::new(top), Vec::new());
    let began = tokio::time::Instant::now();
    while let Some(id) = walk.wanted() {
        let page = ahead.get(id, walk.upcoming()).await.expect("read");
        found.extend(walk.take(&page).expect("in its place"));
    }
    let (most, time) = (far.most.load(Ordering::Relaxed), began.elapsed());
    (pairs, Read { pairs: found, pages: number, most, time })
}

#[tokio::test(start_paused = true)]
async fn many_pages_are_on_their_way_at_once_and_come_in_their_order() {
    let (pairs, read) = store_and_read(20_000, 50).await;
    assert_eq!(read.pairs, pairs);
    assert!(read.pages > 60, "{} pages", read.pages);
    // One or two of those that list others may wait meanwhile.
    assert!((PAGES_AT_ONCE - 2..=PAGES_AT_ONCE).contains(&read.most), "{} at once", read.most);
    // The top, a few to see how long they are, and the rest nearly sixteen at a time.
    assert!(read.time < LATENCY * (read.pages / 16 + 8), "{:?}", read.time);
}

#[tokio::test(start_paused = true)]
async fn long_pages_do_not_fill_the_memory() {
    let (pairs, read) = store_and_read(4_000, 20_000).await;
    assert_eq!(read.pairs, pairs);
    assert!(read.pages > 10, "{} pages", read.pages);
    assert!(read.most <= AT_FIRST + 2, "{} at once", read.most);
}
