//! Who is told of new entries.
//!
//! Events are hints: the log is the truth, and a device that misses one finds out by itself. So nothing here ever
//! waits for a slow device; what does not fit into its outbox is left out.

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
    fn offer(&self, frame: Bytes) {
        let length = frame.len();
        let waiting = self.length.fetch_add(length, Ordering::Relaxed);
        let fits = waiting == 0 || waiting + length <= OUTBOX_LENGTH_MAX;
        if !fits || self.frames.try_send(Outgoing::Frame(frame)).is_err() {
            self.length.fetch_sub(length, Ordering::Relaxed);
        }
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

/// The subscribers of all workspaces; cheap to clone.
#[derive(Debug, Clone)]
pub struct Hub {
    subscribers: Arc<Mutex<HashMap<WorkspaceId, HashMap<u64, Outbox>>>>,
    entries: mpsc::Sender<(WorkspaceId, Arc<Entry>)>,
}

impl Hub {
    /// Makes a hub and the task that sends entries out, which runs until the last clone is dropped.
    pub fn new() -> (Self, impl Future<Output = ()> + Send + 'static) {
        let (entries, mut receiver) = mpsc::channel::<(WorkspaceId, Arc<Entry>)>(ENTRIES_MAX);
        let subscribers: Arc<Mutex<HashMap<WorkspaceId, HashMap<u64, Outbox>>>> = Arc::default();
        let known = Arc::clone(&subscribers);
        let task = async move {
            while let Some((workspace, entry)) = receiver.recv().await {
                let outboxes: Vec<Outbox> = match known.lock().get(&workspace) {
                    Some(subscribers) => subscribers.values().cloned().collect(),
                    None => continue,
                };
                let entry = Arc::unwrap_or_clone(entry);
                let frame = Bytes::from(envelope::wrap(&ServerFrame::Event { workspace, entry }));
                for outbox in outboxes {
                    outbox.offer(frame.clone());
                }
            }
        };
        (Self { subscribers, entries }, task)
    }

    /// Sends an entry to everybody who has subscribed, some time soon. Never waits.
    pub fn publish(&self, workspace: WorkspaceId, entry: Arc<Entry>) {
        // The cursor of every device heals what is lost here.
        let _ = self.entries.try_send((workspace, entry));
    }

    /// Adds a subscriber.
    pub fn subscribe(&self, workspace: WorkspaceId, connection: u64, outbox: Outbox) {
        self.subscribers.lock().entry(workspace).or_default().insert(connection, outbox);
    }

    /// Removes a subscriber from the workspaces that it had subscribed to.
    pub fn unsubscribe(&self, workspaces: impl IntoIterator<Item = WorkspaceId>, connection: u64) {
        let mut subscribers = self.subscribers.lock();
        for workspace in workspaces {
            if let Some(connections) = subscribers.get_mut(&workspace) {
                connections.remove(&connection);
                if connections.is_empty() {
                    subscribers.remove(&workspace);
                }
            }
        }
    }
}
