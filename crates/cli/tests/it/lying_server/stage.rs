//! A real server in this process, devices with real engines, and between each of them and the server a door that shows another
//! history when it is told to.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use commit_log::served::Connection;
use commit_log::served::websocket::{WebSocketConnection, WebSocketOptions};
use commit_log::{CommitLogError, ServedCommitLog};
use content::keyring::SecretKey;
use content::{DeviceKeys, NewWorkspace, Passphrase, Transform, Unlocked};
use futures_util::stream::BoxStream;
use model::codec::encode_message;
use model::environment::random_bytes;
use model::wire::{Reply, Request};
use model::{Clock, Commit, DeviceId, Entry, Genesis, Head, Random, Timestamp, WorkspaceId};
use parking_lot::Mutex;
use reqwest::Client;
use serde_json::{Value, json};
use storage::ContentStore;
use storage::server_door::ServerDoor;
use sync::engine::SyncReport;
use sync::file_system::native::NativeFileSystem;
use sync::scan::Scope;
use sync::state::State;
use sync::workers::Workers;
use sync::{DeltaBudget, Engine, EngineOptions, Environment};
use tokio::sync::oneshot;
use tokio::time::Instant;

const PASSWORD: &str = "a password of ada";

#[derive(Debug)]
struct Time(Instant);

impl Clock for Time {
    fn now(&self) -> Timestamp {
        Timestamp { seconds: 1_800_000_000, nanoseconds: 0 }
    }

    fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }

    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(tokio::time::sleep(duration))
    }
}

#[derive(Debug)]
struct Dice;

impl Random for Dice {
    fn fill(&self, bytes: &mut [u8]) {
        getrandom::fill(bytes).expect("the system has randomness");
    }
}

/// Puts commits into a chain, as a server can that wants to show another history.
pub(super) fn chain(genesis: &Genesis, commits: Vec<Commit>) -> Vec<Entry> {
    let mut head = genesis.head();
    let link = |commit| {
        let entry = Entry { seq: head.seq + 1, previous: head.hash, commit };
        head = entry.head();
        entry
    };
    commits.into_iter().map(link).collect()
}

/// What stands between a device and the server: it shows the log as it is, or another one, to which it adds what is committed.
#[derive(Debug)]
pub(super) struct Door {
    connection: WebSocketConnection,
    genesis: Head,
    shown: Mutex<Option<Vec<Entry>>>,
}

impl Door {
    /// Shows these entries from now on, or the truth.
    pub(super) fn show(&self, entries: Option<Vec<Entry>>) {
        *self.shown.lock() = entries;
    }

    /// Returns the history that is shown in place of the true one.
    pub(super) fn shown(&self) -> Vec<Entry> {
        self.shown.lock().clone().unwrap_or_default()
    }

    fn lie(&self, request: &Request) -> Option<Reply> {
        let mut shown = self.shown.lock();
        let entries = shown.as_mut()?;
        let head = entries.last().map_or(self.genesis, Entry::head);
        Some(match request {
            Request::Head => Reply::Head(head),
            Request::Entries { since, .. } => {
                Reply::Entries(entries.iter().filter(|entry| entry.seq > *since).cloned().collect())
            }
            Request::Commit(commit) => {
                let known = entries.iter().find(|entry| entry.commit.op_id == commit.op_id);
                if let Some(known) = known {
                    return Some(Reply::Committed(known.head()));
                }
                let (seq, previous) = (head.seq + 1, head.hash);
                let entry = Entry { seq, previous, commit: commit.clone() };
                let head = entry.head();
                entries.push(entry);
                Reply::Committed(head)
            }
            Request::Checkpoint => Reply::Checkpoint(None),
            Request::PublishCheckpoint(_) => Reply::Published,
            Request::InSync => Reply::Noted,
            Request::Subscribe { .. } | Request::Genesis => return None,
        })
    }
}

#[async_trait]
impl Connection for Door {
    fn describe(&self) -> String {
        self.connection.describe()
    }

    async fn call(
        &self,
        workspace: WorkspaceId,
        request: Request,
    ) -> Result<Reply, CommitLogError> {
        match self.lie(&request) {
            Some(reply) => Ok(reply),
            None => self.connection.call(workspace, request).await,
        }
    }

    fn events(&self, workspace: WorkspaceId) -> BoxStream<'static, Entry> {
        self.connection.events(workspace)
    }
}

/// A server with a sealed workspace of one account.
pub(super) struct Stage {
    room: tempfile::TempDir,
    url: String,
    http: Client,
    pub(super) genesis: Genesis,
    unlocked: Unlocked,
    /// The server stops when this goes.
    _stop: oneshot::Sender<()>,
}

impl Stage {
    pub(super) async fn start() -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let room = tempfile::tempdir().unwrap();
        let clock: Arc<dyn Clock> = Arc::new(Time(Instant::now()));
        let data = room.path().join("server");
        let mut admin = ::server::Admin::open(&data).unwrap();
        admin.add("ada", PASSWORD, &*clock, &Dice).unwrap();
        drop(admin);
        let mut options = ::server::ServeOptions::new(data, clock, Arc::new(Dice));
        options.listen.set_port(0);
        let (ready, is_ready) = oneshot::channel();
        let (stop, stopping) = oneshot::channel::<()>();
        tokio::spawn(async move {
            let ready = |address| ready.send(address).unwrap();
            ::server::serve(options, ready, async { drop(stopping.await) }).await.unwrap();
        });
        let url = format!("http://{}", is_ready.await.unwrap());
        let http = ServerDoor::client_builder().no_proxy().build().unwrap();
        let made = NewWorkspace::create(
            "letters",
            Timestamp::default(),
            &Passphrase::new("correct horse".to_owned().into()),
            &Dice,
        );
        let NewWorkspace { genesis, unlocked, .. } = made.unwrap();
        let stage = Self { room, url, http, genesis, unlocked, _stop: stop };
        let (token, _) = stage.login().await;
        let made = stage.http.post(format!("{}/api/v1/workspaces", stage.url)).bearer_auth(token);
        let made = made.body(encode_message(&stage.genesis)).send().await.unwrap();
        assert_eq!(made.status(), 201);
        stage
    }

    async fn login(&self) -> (String, DeviceId) {
        let body = json!({"user": "ada", "password": PASSWORD, "device_name": "laptop"});
        let answer = self.http.post(format!("{}/api/v1/login", self.url)).json(&body);
        let answer: Value = answer.send().await.unwrap().json().await.unwrap();
        let text = |field: &str| answer[field].as_str().unwrap().to_owned();
        (text("token"), text("device_id").parse().unwrap())
    }

    /// Makes a device with an empty folder and an empty memory.
    pub(super) async fn device(&self, name: &str) -> Device {
        let (token, id) = self.login().await;
        let clock: Arc<dyn Clock> = Arc::new(Time(Instant::now()));
        let random: Arc<dyn Random> = Arc::new(Dice);
        let incarnation = u64::from_le_bytes(random_bytes(&Dice));
        let options = WebSocketOptions::new(self.url.as_str(), token.as_str(), incarnation);
        let connection = WebSocketConnection::new(options, clock.clone(), random.clone()).unwrap();
        let genesis = self.genesis.clone();
        let door = Door { connection, genesis: genesis.head(), shown: Mutex::default() };
        let door = Arc::new(door);
        let base = format!("{}/api/v1/workspaces/{}", self.url, genesis.workspace());
        let packs = ServerDoor::new(self.http.clone(), &base, &token).unwrap();
        let folder = self.room.path().join(format!("{name} {id}"));
        std::fs::create_dir(&folder).unwrap();
        let seed = SecretKey::random(&Dice);
        let keys = DeviceKeys::enroll(&genesis, &self.unlocked, id, seed).unwrap();
        let log = ServedCommitLog::with_genesis(door.clone(), clock.clone(), genesis);
        let environment = Environment {
            file_system: Arc::new(NativeFileSystem::open(&folder).unwrap()),
            log: Arc::new(log),
            store: Arc::new(ContentStore::new(Arc::new(packs))),
            clock,
            random,
            workers: Workers::inline(),
        };
        let options = EngineOptions {
            device: id,
            device_name: name.to_owned(),
            allow_mass_delete: false,
            transform: Transform::default(),
            deltas: DeltaBudget::default(),
            keys: Some(keys),
        };
        let state = State::open(&self.room.path().join(format!("{id}.sqlite"))).unwrap();
        let engine = Engine::open(environment, state, options).unwrap();
        Device { folder, door, engine }
    }

    /// Returns the log as the server has it.
    pub(super) async fn entries(&self, device: &Device) -> Vec<Entry> {
        let request = Request::Entries { since: 0, length_max: 1 << 20 };
        match device.door.connection.call(self.genesis.workspace(), request).await.unwrap() {
            Reply::Entries(entries) => entries,
            other => panic!("{other:?}"),
        }
    }

    /// Returns where the packs lie that the server has stored.
    pub(super) fn packs(&self) -> Vec<PathBuf> {
        let (mut found, mut waiting) = (Vec::new(), vec![self.room.path().join("server/store")]);
        while let Some(folder) = waiting.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                match path.is_dir() {
                    true => waiting.push(path),
                    false if is_pack(&path) => found.push(path),
                    false => {}
                }
            }
        }
        found.sort();
        found
    }
}

fn is_pack(path: &Path) -> bool {
    path.to_string_lossy().contains("/packs/")
}

/// A device.
pub(super) struct Device {
    folder: PathBuf,
    pub(super) door: Arc<Door>,
    engine: Engine,
}

impl Device {
    pub(super) async fn sync(&mut self) -> sync::error::Result<SyncReport> {
        self.engine.sync(Scope::Everything).await
    }

    pub(super) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        std::fs::write(self.folder.join(name), bytes).unwrap();
    }

    pub(super) fn bytes(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.folder.join(name)).unwrap()
    }

    pub(super) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder.join(name)).unwrap()
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.folder.join(name).exists()
    }

    /// Returns names and texts of all files, in the order of names.
    pub(super) fn files(&self) -> Vec<(String, String)> {
        let entries = std::fs::read_dir(&self.folder).unwrap().map(Result::unwrap);
        let names = entries.map(|entry| entry.file_name().into_string().unwrap());
        let mut names: Vec<String> = names.filter(|name| !name.starts_with('.')).collect();
        names.sort();
        names.into_iter().map(|name| (name.clone(), self.read(&name))).collect()
    }
}
