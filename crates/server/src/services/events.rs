//! Who is told of new entries.
//!
//! Events are hints: the log is the truth, and a device that misses one finds out by itself. So nothing here ever
//! waits for a slow device; what does not fit into its outbox is left out. Servers that share the database are told by
//! [`News`].

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use commit_log::envelope;
use model::wire::ServerFrame;
use model::{Entry, WorkspaceId};
use parking_lot::Mutex;
use tokio::sync::mpsc;

use crate::limits::{OUTBOX_FRAMES_MAX, OUTBOX_LENGTH_MAX};
use crate::metrics::Counter;
use crate::services::news::{News, Told};

/// How many entries wait to be sent out at most.
const ENTRIES_MAX: usize = 1024;

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

/// The subscribers of all workspaces; cheap to clone.
#[derive(Debug, Clone)]
pub struct Hub {
    subscribers: Subscribers,
    entries: mpsc::Sender<(WorkspaceId, Arc<Entry>)>,
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
        let (entries, mut receiver) = mpsc::channel::<(WorkspaceId, Arc<Entry>)>(ENTRIES_MAX);
        let subscribers = Subscribers::default();
        let (known, tell) = (Arc::clone(&subscribers), news.clone());
        let counts: Arc<EventCounts> = Arc::default();
        let counting = Arc::clone(&counts);
        let task = async move {
            while let Some((workspace, entry)) = receiver.recv().await {
                let outboxes = outboxes(&known, workspace);
                if outboxes.is_empty() && !tell.is_told() {
                    continue;
                }
                let frame = wrapped(workspace, entry);
                counting.offer(outboxes, &frame);
                tell.tell(Told::Entry { workspace, frame });
            }
        };
        (Self { subscribers, entries, news, counts }, task)
    }

    /// Sends an entry to everybody who has subscribed, some time soon. Never waits.
    pub fn publish(&self, workspace: WorkspaceId, entry: Arc<Entry>) {
        // The cursor of every device heals what is lost here.
        if self.entries.try_send((workspace, entry)).is_err() {
            self.news.leave_out();
            self.counts.left_out.add(1);
        }
    }

    /// Sends what another server has published to everybody who has subscribed here.
    pub fn deliver(&self, workspace: WorkspaceId, frame: &Bytes) {
        self.counts.offer(outboxes(&self.subscribers, workspace), frame);
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

fn outboxes(subscribers: &Subscribers, workspace: WorkspaceId) -> Vec<Outbox> {
    let subscribers = subscribers.lock();
    subscribers.get(&workspace).into_iter().flat_map(HashMap::values).cloned().collect()
}
