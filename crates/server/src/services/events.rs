//! Who is told of new entries.
//!
//! Events are hints: the log is the truth, and a device that misses one finds out by itself. So nothing here ever
//! waits for a slow device; what does not fit into its outbox is left out. Answers are no hints: they come with the entry that they
//! confirm, so that a device which hears of both is woken once. Servers that share the database are told by [`News`].

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use commit_log::envelope;
use model::wire::ServerFrame;
use model::{Entry, WorkspaceId};
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;

use crate::limits::{OUTBOX_FRAMES_MAX, OUTBOX_LENGTH_MAX};
use crate::metrics::Counter;
use crate::services::news::{News, Told};

/// How many entries wait to be sent out at most: those of some groups of commits.
const ENTRIES_MAX: usize = 16 * 1024;

/// What a live connection sends next.
#[derive(Debug)]
pub enum Outgoing {
    /// A wrapped frame.
    Frame(Bytes),
    /// A sign of life is wanted.
    Ping,
}

/// Where frames for one live connection wait; cheap to clone.
#[derive(Debug, Clone)]
pub struct Outbox {
    frames: mpsc::Sender<Outgoing>,
    length: Arc<AtomicUsize>,
}

impl Outbox {
    /// Makes an outbox and its other end.
    pub fn new() -> (Self, mpsc::Receiver<Outgoing>) {
        let (frames, receiver) = mpsc::channel(OUTBOX_FRAMES_MAX);
        (Self { frames, length: Arc::default() }, receiver)
    }

    /// Waits until there is room for an answer; returns whether the connection lives.
    pub async fn send(&self, frame: Bytes) -> bool {
        self.length.fetch_add(frame.len(), Ordering::Relaxed);
        self.frames.send(Outgoing::Frame(frame)).await.is_ok()
    }

    /// Adds an answer where there is room; else it is given back.
    pub fn give(&self, frame: Bytes) -> Result<(), Bytes> {
        let length = frame.len();
        self.length.fetch_add(length, Ordering::Relaxed);
        match self.frames.try_send(Outgoing::Frame(frame)) {
            Err(TrySendError::Full(Outgoing::Frame(frame))) => {
                self.length.fetch_sub(length, Ordering::Relaxed);
                Err(frame)
            }
            // A connection that has ended wants no answers.
            _ => Ok(()),
        }
    }

    /// Adds an event, or leaves it out where there is no room.
    /// Tells whether there was.
    fn offer(&self, frame: Bytes) -> bool {
        let length = frame.len();
        let waiting = self.length.fetch_add(length, Ordering::Relaxed);
        let fits = waiting == 0 || waiting + length <= OUTBOX_LENGTH_MAX;
        let is_in = fits && self.frames.try_send(Outgoing::Frame(frame)).is_ok();
        if !is_in {
            self.length.fetch_sub(length, Ordering::Relaxed);
        }
        is_in
    }

    /// Asks the device for a sign of life.
    pub fn ping(&self) {
        // A full outbox will hear of the device soon enough.
        let _ = self.frames.try_send(Outgoing::Ping);
    }

    /// Notes that a frame has left.
    pub fn sent(&self, length: usize) {
        self.length.fetch_sub(length, Ordering::Relaxed);
    }
}

/// Who has subscribed to each workspace, by the numbers of their connections.
type Subscribers = Arc<Mutex<HashMap<WorkspaceId, HashMap<u64, Outbox>>>>;

/// An entry to be sent out, and what is to be done then.
struct Published {
    workspace: WorkspaceId,
    entry: Arc<Entry>,
    /// The connection that has brought it, and needs it not again.
    from: Option<u64>,
    then: Box<dyn FnOnce() + Send>,
}

/// The subscribers of all workspaces; cheap to clone.
#[derive(Debug, Clone)]
pub struct Hub {
    subscribers: Subscribers,
    entries: mpsc::Sender<Published>,
    news: News,
    counts: Arc<EventCounts>,
}

/// What became of events.
#[derive(Debug, Default)]
pub struct EventCounts {
    /// They went into an outbox.
    pub sent: Counter,
    /// There was no room for them.
    pub left_out: Counter,
}

impl EventCounts {
    fn offer(&self, outboxes: Vec<Outbox>, frame: &Bytes) {
        for outbox in outboxes {
            match outbox.offer(frame.clone()) {
                true => self.sent.add(1),
                false => self.left_out.add(1),
            }
        }
    }
}

impl Hub {
    /// Makes a hub and the task that sends entries out, which runs until the last clone is dropped.
    pub fn new(news: News) -> (Self, impl Future<Output = ()> + Send + 'static) {
        let (entries, mut receiver) = mpsc::channel::<Published>(ENTRIES_MAX);
        let subscribers = Subscribers::default();
        let (known, tell) = (Arc::clone(&subscribers), news.clone());
        let counts: Arc<EventCounts> = Arc::default();
        let counting = Arc::clone(&counts);
        let task = async move {
            while let Some(Published { workspace, entry, from, then }) = receiver.recv().await {
                let outboxes = outboxes(&known, workspace, from);
                if !outboxes.is_empty() || tell.is_told() {
                    let frame = wrapped(workspace, entry);
                    counting.offer(outboxes, &frame);
                    tell.tell(Told::Entry { workspace, frame });
                }
                then();
            }
        };
        (Self { subscribers, entries, news, counts }, task)
    }

    /// Sends an entry to everybody who has subscribed, but not back to the connection `from` which it came, some time soon, and does something
    /// `then`, which must be quick. Never waits: where too much is to be sent, the entry is not, and what is to be done is done at once.
    pub fn publish(
        &self,
        workspace: WorkspaceId,
        (entry, from): (Arc<Entry>, Option<u64>),
        then: impl FnOnce() + Send + 'static,
    ) {
        let published = Published { workspace, entry, from, then: Box::new(then) };
        // The cursor of every device heals what is lost here.
        if let Err(refused) = self.entries.try_send(published) {
            self.news.leave_out();
            self.counts.left_out.add(1);
            let (TrySendError::Full(left_out) | TrySendError::Closed(left_out)) = refused;
            (left_out.then)();
        }
    }

    /// Sends what another server has published to everybody who has subscribed here.
    pub fn deliver(&self, workspace: WorkspaceId, frame: &Bytes) {
        self.counts.offer(outboxes(&self.subscribers, workspace, None), frame);
    }

    /// Says whether anybody has subscribed to a workspace.
    pub fn is_heard(&self, workspace: WorkspaceId) -> bool {
        self.subscribers.lock().contains_key(&workspace)
    }

    /// Returns the workspaces that anybody has subscribed to.
    pub fn workspaces(&self) -> Vec<WorkspaceId> {
        self.subscribers.lock().keys().copied().collect()
    }

    /// Returns what became of events so far.
    pub fn counts(&self) -> &EventCounts {
        &self.counts
    }

    /// Returns how many entries wait to be told.
    pub fn waiting(&self) -> usize {
        ENTRIES_MAX - self.entries.capacity()
    }

    /// Returns how many workspaces somebody has subscribed to.
    pub fn subscriptions(&self) -> usize {
        self.subscribers.lock().len()
    }

    /// Adds a subscriber.
    pub fn subscribe(&self, workspace: WorkspaceId, connection: u64, outbox: Outbox) {
        self.subscribers.lock().entry(workspace).or_default().insert(connection, outbox);
    }

    /// Removes a subscriber from a workspace; tells whether it was one.
    pub fn expel(&self, workspace: WorkspaceId, connection: u64) -> bool {
        let mut subscribers = self.subscribers.lock();
        let Some(connections) = subscribers.get_mut(&workspace) else { return false };
        let was_subscribed = connections.remove(&connection).is_some();
        if connections.is_empty() {
            subscribers.remove(&workspace);
        }
        was_subscribed
    }

    /// Removes a subscriber from the workspaces that it had subscribed to.
    pub fn unsubscribe(&self, workspaces: impl IntoIterator<Item = WorkspaceId>, connection: u64) {
        for workspace in workspaces {
            self.expel(workspace, connection);
        }
    }
}

/// Returns what devices are sent of an entry.
pub fn wrapped(workspace: WorkspaceId, entry: Arc<Entry>) -> Bytes {
    let entry = Arc::unwrap_or_clone(entry);
    envelope::wrap(&ServerFrame::Event { workspace, entry }).into()
}

/// Returns where those listen who have subscribed to a workspace, but for one connection.
fn outboxes(subscribers: &Subscribers, workspace: WorkspaceId, except: Option<u64>) -> Vec<Outbox> {
    let subscribers = subscribers.lock();
    let all = subscribers.get(&workspace).into_iter().flatten();
    all.filter(|(number, _)| except != Some(**number)).map(|(_, outbox)| outbox.clone()).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use model::EntryHash;
    use model::testing::{commit, put};

    use super::*;

    const WORKSPACE: WorkspaceId = WorkspaceId::from_bytes([7; 16]);

    fn entry() -> Arc<Entry> {
        let commit = commit(1, vec![put(1, 0, "name")]);
        Arc::new(Entry { seq: 1, previous: EntryHash::NONE, commit })
    }

    fn frame(outgoing: Option<Outgoing>) -> Bytes {
        match outgoing {
            Some(Outgoing::Frame(frame)) => frame,
            other => panic!("a frame is expected, not {other:?}"),
        }
    }

    #[tokio::test]
    async fn an_answer_stands_behind_its_event_before_anything_is_sent() {
        let (hub, sending) = Hub::new(News::default());
        let (outbox, mut frames) = Outbox::new();
        hub.subscribe(WORKSPACE, 1, outbox.clone());
        let answer = Bytes::from_static(b"answer");
        let given = answer.clone();
        hub.publish(WORKSPACE, (entry(), None), move || outbox.give(given).expect("there is room"));
        assert!(frames.try_recv().is_err(), "nothing happens on the thread that writes");
        drop(hub);
        sending.await;
        assert_eq!(frame(frames.recv().await), wrapped(WORKSPACE, entry()));
        assert_eq!(frame(frames.recv().await), answer);
    }

    #[tokio::test]
    async fn who_has_brought_an_entry_is_not_sent_it_back() {
        let (hub, sending) = Hub::new(News::default());
        let ((mine, mut my_frames), (theirs, mut their_frames)) = (Outbox::new(), Outbox::new());
        hub.subscribe(WORKSPACE, 1, mine);
        hub.subscribe(WORKSPACE, 2, theirs);
        hub.publish(WORKSPACE, (entry(), Some(1)), || {});
        drop(hub);
        sending.await;
        assert_eq!(frame(their_frames.recv().await), wrapped(WORKSPACE, entry()));
        assert!(my_frames.recv().await.is_none());
    }

    #[tokio::test]
    async fn where_too_much_is_to_be_sent_events_are_left_out_and_answers_are_not() {
        let (hub, _sending) = Hub::new(News::default());
        for _ in 0..ENTRIES_MAX {
            hub.publish(WORKSPACE, (entry(), None), || panic!("nobody sends"));
        }
        assert_eq!((hub.waiting(), hub.counts().left_out.get()), (ENTRIES_MAX, 0));
        let is_answered = Arc::new(AtomicBool::new(false));
        let answered = Arc::clone(&is_answered);
        hub.publish(WORKSPACE, (entry(), None), move || answered.store(true, Ordering::Relaxed));
        assert!(is_answered.load(Ordering::Relaxed));
        assert_eq!(hub.counts().left_out.get(), 1);
    }

    #[tokio::test]
    async fn a_full_outbox_gives_an_answer_back_and_one_that_nobody_reads_takes_it() {
        let (outbox, frames) = Outbox::new();
        let answer = Bytes::from_static(b"answer");
        for _ in 0..OUTBOX_FRAMES_MAX {
            assert_eq!(outbox.give(answer.clone()), Ok(()));
        }
        let waiting = outbox.length.load(Ordering::Relaxed);
        assert_eq!(outbox.give(answer.clone()), Err(answer.clone()));
        assert_eq!(outbox.length.load(Ordering::Relaxed), waiting);
        drop(frames);
        assert_eq!(outbox.give(answer), Ok(()));
    }
}
