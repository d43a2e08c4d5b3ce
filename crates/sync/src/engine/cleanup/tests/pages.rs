//! Pages of old checkpoints, and devices that publish, begin and remove at the same time.

use std::collections::BTreeSet;
use std::pin::pin;

use futures_util::future::{join, join3};
use model::PageId;
use storage::layers::{Answer, Gate, Operation};
use storage::{ContentStore, ObjectStore};
use tokio::sync::Notify;

use super::*;

/// A store that stops at the first call of a kind, and goes on when it is told to.
#[derive(Debug, Clone)]
struct Stopping {
    store: Arc<dyn ObjectStore>,
    at: Operation,
    /// Whether it stops when the call has been answered, or before it is made.
    is_after: bool,
    has_stopped: Arc<AtomicBool>,
    reached: Arc<Notify>,
    goes_on: Arc<Notify>,
}

impl Gate for Stopping {
    fn store(&self) -> &dyn ObjectStore {
        &*self.store
    }

    async fn pass<A: Send>(
        &self,
        operation: Operation,
        _: usize,
        answer: impl Answer<A>,
    ) -> storage::Result<A> {
        let stops = operation == self.at && !self.has_stopped.swap(true, Ordering::Relaxed);
        if operation != self.at {
            return answer.await;
        }
        let stop = async {
            if stops {
                self.reached.notify_one();
                self.goes_on.notified().await;
            }
        };
        match self.is_after {
            true => {
                let answered = answer.await;
                stop.await;
                answered
            }
            false => {
                stop.await;
                answer.await
            }
        }
    }
}

/// Runs what waits for nothing but each other.
fn together<T>(work: impl Future<Output = T>) -> T {
    let mut work = pin!(work);
    for _ in 0..1000 {
        if let Some(done) = work.as_mut().now_or_never() {
            return done;
        }
    }
    panic!("both wait");
}

impl TestDevice {
    /// Lets the store of this device stop at a call.
    fn stop_at(&mut self, at: Operation, is_after: bool) -> Stopping {
        let store = self.engine.environment.store.object_store().clone();
        let (has_stopped, reached, goes_on) = Default::default();
        let gate = Stopping { store, at, is_after, has_stopped, reached, goes_on };
        self.engine.environment.store = Arc::new(ContentStore::new(Arc::new(gate.clone())));
        gate
    }

    /// Changes a file so many times, with a checkpoint each time.
    fn publish(&mut self, times: u8) {
        for number in 0..times {
            self.write("counter", &[number, times]);
            self.sync();
            now(self.engine.publish_checkpoint_now()).expect("published");
        }
    }

    /// Returns the pages of the newest checkpoint, and of the one before it.
    fn last_pages(&self) -> [BTreeSet<PageId>; 2] {
        let log = &self.engine.environment.log;
        let last = log.last_checkpoints().now_or_never().expect("nothing to wait for");
        let last = last.expect("listed").expect("it is for devices");
        let pages = last.iter().map(|checkpoint| now(self.engine.pages_of(checkpoint)));
        let mut pages = pages.map(|found| found.expect("read").ids);
        [pages.next().expect("a newest"), pages.next().unwrap_or_default()]
    }
}

impl Room {
    /// Returns the pages that are stored.
    fn pages(&mut self) -> BTreeSet<PageId> {
        let device = self.device();
        let listed = device.engine.environment.store.list_pages().now_or_never();
        let listed = listed.expect("nothing to wait for").expect("listed");
        listed.into_iter().map(|(id, _)| id).collect()
    }

    /// Lets a new device begin. It begins at the newest checkpoint, and replays no entry.
    fn begins_at_checkpoint(&mut self) {
        let mut device = self.device();
        let report = device.sync();
        assert_eq!(report.void_entries, []);
        let newest = now(async { Ok(device.engine.environment.log.checkpoint().await?) });
        let seq = newest.expect("asked").expect("there is one").head.seq;
        let oldest = device.engine.state.oldest_entry().expect("read");
        assert!(oldest.is_none_or(|oldest| oldest > seq), "it has replayed {oldest:?}");
    }
}

#[test]
fn pages_of_the_last_two_checkpoints_stay_and_all_others_go() {
    let mut room = Room::new();
    let mut one = room.device();
    one.publish(5);
    let before = room.pages();
    let [newest, older] = one.last_pages();
    let needed: BTreeSet<PageId> = newest.union(&older).copied().collect();
    assert!(needed.is_subset(&before) && needed.len() < before.len());
    let dry = CleanupOptions { dry_run: true, ..CleanupOptions::default() };
    let told = now(one.engine.cleanup(&dry)).expect("looks");
    assert_eq!(room.pages(), before);
    let report = one.cleanup();
    assert_eq!((report.pages, report.pages_length), (told.pages, told.pages_length));
    assert_eq!(report.pages as usize, before.len() - needed.len());
    assert!(report.pages_length > 0 && report.left_pages == 0, "{report:?}");
    assert_eq!(room.pages(), needed);
    assert_eq!(count(&room.store.path().join("checkpoint")), 2);
    assert_eq!(one.cleanup().pages, 0);
    room.begins_at_checkpoint();
}

#[test]
fn page_that_the_newest_checkpoint_lacks_is_written_again() {
    let mut room = Room::new();
    let mut one = room.device();
    one.publish(2);
    let [newest, _] = one.last_pages();
    for page in newest {
        now(async { Ok(one.engine.environment.store.remove_page(page).await?) }).expect("removed");
        one.cleanup();
        assert!(room.pages().contains(&page));
        room.begins_at_checkpoint();
    }
}

#[test]
fn checkpoint_of_another_log_removes_nothing() {
    let mut room = Room::new();
    let mut one = room.device();
    one.publish(4);
    let before = room.pages();
    let log = one.engine.environment.log.clone();
    let mut foreign = now(async { Ok(log.checkpoint().await?) }).expect("asked").expect("one");
    foreign.head.seq += 100;
    now(async { Ok(log.publish_checkpoint(&foreign).await?) }).expect("published");
    assert_eq!(one.cleanup().pages, 0);
    assert_eq!(room.pages(), before);
}

#[test]
fn publisher_writes_again_what_a_cleanup_took_before_it_had_published() {
    let mut room = Room::new();
    let (mut publisher, mut cleaner) = (room.device(), room.device());
    publisher.publish(3);
    publisher.write("counter", b"the last");
    publisher.sync();
    let gate = publisher.stop_at(Operation::Sync, true);
    let cleans_up = async {
        gate.reached.notified().await;
        let report = cleaner.engine.cleanup(&CleanupOptions::default()).await;
        gate.goes_on.notify_one();
        report
    };
    let both = together(join(publisher.engine.publish_checkpoint_now(), cleans_up));
    both.0.expect("published");
    assert!(both.1.expect("cleans up").pages > 0);
    let [newest, _] = cleaner.last_pages();
    assert!(newest.is_subset(&room.pages()));
    room.begins_at_checkpoint();
}

#[test]
fn cleanup_writes_again_what_was_published_while_it_removed() {
    let mut room = Room::new();
    let (mut publisher, mut cleaner) = (room.device(), room.device());
    publisher.publish(3);
    publisher.write("counter", b"the last");
    publisher.sync();
    let (publishing, removing) =
        (publisher.stop_at(Operation::Sync, true), cleaner.stop_at(Operation::Delete, false));
    let publishes = async {
        let published = publisher.engine.publish_checkpoint_now().await;
        removing.goes_on.notify_one();
        published
    };
    let cleans_up = async {
        // The pages are there, and nobody names them yet.
        publishing.reached.notified().await;
        cleaner.engine.cleanup(&CleanupOptions::default()).await
    };
    let meanwhile = async {
        removing.reached.notified().await;
        publishing.goes_on.notify_one();
    };
    let all = together(join3(publishes, cleans_up, meanwhile));
    all.0.expect("published");
    assert!(all.1.expect("cleans up").pages > 0);
    let [newest, _] = publisher.last_pages();
    assert!(newest.is_subset(&room.pages()));
    room.begins_at_checkpoint();
}

#[test]
fn new_device_whose_checkpoint_is_cleaned_up_begins_at_a_newer_one() {
    let mut room = Room::new();
    let (mut one, mut new) = (room.device(), room.device());
    one.publish(1);
    let gate = new.stop_at(Operation::Get, false);
    let meanwhile = async {
        gate.reached.notified().await;
        one.publish(3);
        assert!(one.cleanup().pages > 0);
        gate.goes_on.notify_one();
    };
    let (report, ()) = together(join(new.engine.sync(Scope::Everything), meanwhile));
    assert_eq!(report.expect("syncs").void_entries, []);
    assert_eq!(new.read("counter"), Some(vec![2, 3]));
    assert_eq!(new.engine.state.oldest_entry().expect("read"), None);
}
