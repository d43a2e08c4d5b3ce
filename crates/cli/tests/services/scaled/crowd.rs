//! Devices that commit without a pause, each until it is answered, and note what they were told.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use commit_log::served::websocket::{WebSocketConnection, WebSocketOptions};
use commit_log::{CommitLog, CommitLogError, ServedCommitLog};
use futures_util::StreamExt;
use model::codec::encode_message;
use model::wire::RefusalKind;
use model::{
    Action, Change, Clock, Commit, DeviceId, EntryHash, Genesis, Head, Mode, NodeId, OpId, Random,
    Timestamp, WorkspaceId,
};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::machines::PASSWORD;

/// How long anything here may take that does come about.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

#[derive(Debug)]
struct RealClock(Instant);

impl Clock for RealClock {
    fn now(&self) -> Timestamp {
        Timestamp::default()
    }

    fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }

    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(tokio::time::sleep(duration))
    }
}

#[derive(Debug)]
struct RealRandom;

impl Random for RealRandom {
    fn fill(&self, bytes: &mut [u8]) {
        getrandom::fill(bytes).unwrap();
    }
}

fn random<const N: usize>() -> [u8; N] {
    model::environment::random_bytes(&RealRandom)
}

fn clock() -> Arc<dyn Clock> {
    Arc::new(RealClock(Instant::now()))
}

/// A device that is signed in.
#[derive(Clone)]
struct Device {
    server: String,
    token: String,
    id: DeviceId,
    incarnation: u64,
}

impl Device {
    async fn sign_in(server: &str) -> Self {
        let body = json!({ "user": "ada", "password": PASSWORD, "device_name": "laptop" });
        let request = http().post(format!("{server}/api/v1/login")).json(&body);
        let said: Value = request.send().await.unwrap().json().await.unwrap();
        let text = |name: &str| said[name].as_str().unwrap_or_else(|| panic!("{said}")).to_owned();
        let id = text("device_id").parse().unwrap();
        let incarnation = u64::from_le_bytes(random());
        Self { server: server.to_owned(), token: text("token"), id, incarnation }
    }

    async fn log(&self, workspace: WorkspaceId) -> ServedCommitLog {
        let options = WebSocketOptions::new(&self.server, &self.token, self.incarnation);
        let connection = WebSocketConnection::new(options, clock(), Arc::new(RealRandom)).unwrap();
        ServedCommitLog::open(Arc::new(connection), clock(), workspace).await.unwrap()
    }
}

fn http() -> reqwest::Client {
    // Needed by the library even where no TLS is spoken; somebody else may have been first.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().no_proxy().build().unwrap()
}

/// What devices were told of their commits.
type Told = Arc<Mutex<BTreeMap<OpId, Head>>>;

/// An answer that was none: a device was told to come back.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Delay {
    /// What the server said; nothing where the connection was lost.
    pub(crate) kind: Option<RefusalKind>,
    /// After what time.
    pub(crate) after: Duration,
}

type Delays = Arc<Mutex<Vec<Delay>>>;

/// What a server has answered to a request.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) status: u16,
    /// What health or a problem document says in a word.
    pub(crate) word: String,
    pub(crate) after: Duration,
}

/// Devices at work.
pub(crate) struct Crowd {
    runtime: Runtime,
    told: Told,
    delays: Delays,
    heard: Arc<Mutex<Vec<Head>>>,
    is_over: Arc<AtomicBool>,
    working: Vec<JoinHandle<()>>,
    reader: Device,
    genesis: Genesis,
}

impl Crowd {
    /// Lets so many devices at each server commit into one workspace, and one listen.
    pub(crate) fn gather(servers: &[String], devices: u8) -> Self {
        let runtime = Runtime::new().unwrap();
        let genesis = Genesis {
            name: "home".to_owned(),
            mode: Mode::Plain,
            created: Timestamp::default(),
            content_key: random(),
        };
        let (told, is_over, heard) = (Told::default(), Arc::default(), Arc::default());
        let delays = Delays::default();
        let (working, reader) = runtime.block_on(async {
            let reader = Device::sign_in(servers.last().unwrap()).await;
            let made = http().post(format!("{}/api/v1/workspaces", reader.server));
            let made = made.bearer_auth(&reader.token).body(encode_message(&genesis));
            assert_eq!(made.send().await.unwrap().status(), 201);
            let mut working = Vec::new();
            for (number, server) in (0..devices).zip(servers.iter().cycle()) {
                let device = Device::sign_in(server).await;
                let notes = (Arc::clone(&told), Arc::clone(&delays));
                let (workspace, is_over) = (genesis.workspace(), Arc::clone(&is_over));
                let committing = commit_always((device, number), workspace, notes, is_over);
                working.push(tokio::spawn(committing));
            }
            let listening = listen(reader.clone(), genesis.workspace(), Arc::clone(&heard));
            working.push(tokio::spawn(listening));
            (working, reader)
        });
        Self { runtime, told, delays, heard, is_over, working, reader, genesis }
    }

    /// Returns how many commits were answered.
    pub(crate) fn count(&self) -> usize {
        self.told.lock().len()
    }

    /// Waits until so many more commits are answered; returns after what time.
    pub(crate) fn progress(&self, more: usize) -> Duration {
        let (start, wanted) = (Instant::now(), self.count() + more);
        while self.count() < wanted {
            let workers = self.working.iter().filter(|one| one.is_finished()).count();
            assert!(workers == 0, "{workers} devices have failed");
            assert!(start.elapsed() < PATIENCE, "nobody is answered any more");
            std::thread::sleep(Duration::from_millis(5));
        }
        start.elapsed()
    }

    /// Returns what devices were told instead of an answer since this was last asked.
    pub(crate) fn take_delays(&self) -> Vec<Delay> {
        std::mem::take(&mut *self.delays.lock())
    }

    /// Waits until a device was told so, and returns all that was said until then.
    pub(crate) fn await_delay(&self, kind: RefusalKind) -> Vec<Delay> {
        let start = Instant::now();
        let mut delays = self.take_delays();
        while delays.iter().all(|delay| delay.kind != Some(kind)) {
            assert!(start.elapsed() < PATIENCE, "nobody was told {kind:?}, but {delays:?}");
            std::thread::sleep(Duration::from_millis(5));
            delays.extend(self.take_delays());
        }
        delays
    }

    /// Asks a server as somebody who is signed in.
    pub(crate) fn ask(&self, url: &str) -> Said {
        self.runtime.block_on(async {
            let start = Instant::now();
            let answer = http().get(url).bearer_auth(&self.reader.token).send().await.unwrap();
            let status = answer.status().as_u16();
            let said: Value = answer.json().await.unwrap();
            let word = ["code", "status"].iter().find_map(|name| said[name].as_str());
            Said { status, word: word.unwrap_or_default().to_owned(), after: start.elapsed() }
        })
    }

    /// Waits until a server says this of itself.
    pub(crate) fn await_status(&self, url: &str, status: u16) {
        let start = Instant::now();
        while self.ask(url).status != status {
            assert!(start.elapsed() < PATIENCE, "{url} does not answer {status}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Lets everybody finish, and checks the log against what they were told: each commit stands once, where its device was told, the
    /// sequence has no gap, and the listener heard of all.
    pub(crate) fn judge(self) -> usize {
        self.is_over.store(true, Ordering::Release);
        let Self { runtime, told, heard, mut working, reader, genesis, .. } = self;
        let listening = working.pop().unwrap();
        runtime.block_on(async {
            for device in working {
                device.await.unwrap();
            }
            let log = reader.log(genesis.workspace()).await;
            let (mut head, mut stands) = (genesis.head(), BTreeMap::new());
            loop {
                let page = log.entries(head.seq, 1 << 20).await.unwrap();
                if page.is_empty() {
                    break;
                }
                for entry in page {
                    assert!(entry.follows(&head), "a gap after {}", head.seq);
                    head = entry.head();
                    let twice = stands.insert(entry.commit.op_id, head);
                    assert_eq!(twice, None, "an operation stands twice");
                }
            }
            let told = told.lock().clone();
            assert_eq!(told, stands, "what was answered is what stands in the log");
            let start = Instant::now();
            while heard.lock().last() != Some(&head) {
                assert!(!listening.is_finished() && start.elapsed() < PATIENCE, "it is not heard");
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            listening.abort();
            assert_eq!(heard.lock().len() as u64, head.seq, "each entry was heard once");
            told.len()
        })
    }
}

/// Commits one change after the other, each resting on the one before, until told to end.
async fn commit_always(
    (device, number): (Device, u8),
    workspace: WorkspaceId,
    (told, delays): (Told, Delays),
    is_over: Arc<AtomicBool>,
) {
    let log = device.log(workspace).await;
    let mut base = 0;
    while !is_over.load(Ordering::Acquire) {
        let node = NodeId::from_bytes([number + 1; 16]);
        let change = Change { node, base, action: Action::Put(vec![number; 100]) };
        let commit = Commit {
            op_id: OpId::from_bytes(random()),
            device: device.id,
            device_name: "laptop".to_owned(),
            time: Timestamp::default(),
            seen: Head { seq: 0, hash: EntryHash::NONE },
            changes: vec![change],
            packs: Vec::new(),
            inline_packs: Vec::new(),
            has_deltas: false,
            seal: None,
        };
        let start = Instant::now();
        let head = loop {
            let asked = Instant::now();
            match log.commit(&commit).await {
                Ok(head) => break head,
                Err(error) => {
                    // A device waits for room as it waits for an answer.
                    let is_full = error.is_refusal(RefusalKind::NoSpace);
                    assert!(error.is_retryable() || is_full, "{error}");
                    let kind = match error {
                        CommitLogError::Refused(refusal) => Some(refusal.kind),
                        _ => None,
                    };
                    delays.lock().push(Delay { kind, after: asked.elapsed() });
                }
            }
            assert!(start.elapsed() < PATIENCE, "a commit is never answered");
            tokio::time::sleep(Duration::from_millis(50)).await;
        };
        base += 1;
        told.lock().insert(commit.op_id, head);
    }
}

/// Notes what is heard of, until the stream ends.
async fn listen(device: Device, workspace: WorkspaceId, heard: Arc<Mutex<Vec<Head>>>) {
    let log = device.log(workspace).await;
    let mut entries = log.subscribe(0).await.unwrap();
    while let Some(entry) = entries.next().await {
        match entry {
            Ok(entry) => heard.lock().push(entry.head()),
            Err(error) => assert!(error.is_retryable(), "{error}"),
        }
    }
}
