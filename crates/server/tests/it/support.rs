//! A server, and devices that talk to it.

use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use commit_log::served::websocket::{WebSocketConnection, WebSocketOptions};
use commit_log::{CommitLog, CommitLogError, ServedCommitLog};
use model::codec::encode_message;
use model::testing::put;
use model::{
    Action, Change, Clock, Commit, DeviceId, Fence, Genesis, Head, Mode, Mount, Mounts, NodeId,
    OpId, PackId, Random, Timestamp, WorkspaceId,
};
use reqwest::{Method, RequestBuilder, Response, StatusCode};
use serde_json::{Value, json};
use server::{Admin, ServeOptions, ServerError, serve};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use tokio::time::Instant;

pub(crate) const PASSWORD: &str = "correct horse battery staple";

/// The time of this computer.
#[derive(Debug)]
pub(crate) struct SystemClock(Instant);

impl SystemClock {
    pub(crate) fn start() -> Arc<dyn Clock> {
        Arc::new(Self(Instant::now()))
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp { seconds: 1_700_000_000, nanoseconds: 0 }
    }

    fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }

    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(tokio::time::sleep(duration))
    }
}

/// A clock that stands, so that no limit is lifted while a slow computer makes its attempts.
#[derive(Debug)]
struct StandingClock;

/// A clock whose time passes when a test says so.
#[derive(Debug, Default)]
pub(crate) struct PushedClock(AtomicU64);

impl PushedClock {
    pub(crate) fn push(&self, by: Duration) {
        self.0.fetch_add(by.as_secs(), Ordering::Relaxed);
    }
}

impl Clock for PushedClock {
    fn now(&self) -> Timestamp {
        StandingClock.now()
    }

    fn elapsed(&self) -> Duration {
        Duration::from_secs(self.0.load(Ordering::Relaxed))
    }

    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        StandingClock.sleep(duration)
    }
}

impl Clock for StandingClock {
    fn now(&self) -> Timestamp {
        Timestamp { seconds: 1_700_000_000, nanoseconds: 0 }
    }

    fn elapsed(&self) -> Duration {
        Duration::ZERO
    }

    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(tokio::time::sleep(duration))
    }
}

/// The randomness of this computer.
#[derive(Debug)]
pub(crate) struct SystemRandom;

impl Random for SystemRandom {
    fn fill(&self, bytes: &mut [u8]) {
        getrandom::fill(bytes).expect("the system has randomness");
    }
}

pub(crate) fn random<const N: usize>() -> [u8; N] {
    model::environment::random_bytes(&SystemRandom)
}

/// The folder of a server; a temporary one goes with the last who uses it.
#[derive(Clone)]
pub(crate) enum Place {
    Temporary(Arc<TempDir>),
    Given(PathBuf),
}

impl Place {
    fn path(&self) -> &Path {
        match self {
            Self::Temporary(folder) => folder.path(),
            Self::Given(path) => path,
        }
    }
}

impl From<Arc<TempDir>> for Place {
    fn from(folder: Arc<TempDir>) -> Self {
        Self::Temporary(folder)
    }
}

/// A running server, with a runtime of its own so that it can be killed.
pub(crate) struct TestServer {
    pub(crate) address: SocketAddr,
    folder: Place,
    runtime: Option<Runtime>,
    stop: Option<oneshot::Sender<()>>,
    stopped: oneshot::Receiver<()>,
}

impl TestServer {
    /// Starts a server with the accounts `ada` and `bob`.
    pub(crate) async fn start() -> Self {
        let folder = Place::Temporary(Arc::new(tempfile::tempdir().unwrap()));
        let mut admin = Admin::open(folder.path()).unwrap();
        let clock = SystemClock::start();
        for name in ["ada", "bob"] {
            admin.add(name, PASSWORD, &*clock, &SystemRandom).unwrap();
        }
        drop(admin);
        Self::start_on(folder, 0).await.expect("it starts")
    }

    /// Starts another one, as `configure` wants it, on the folder of one that has ended.
    pub(crate) async fn start_again(
        stopped: &Stopped,
        configure: impl FnOnce(&mut ServeOptions),
    ) -> Result<Self, ServerError> {
        let mut options = Self::options(stopped.folder.path());
        options.listen.set_port(stopped.port);
        configure(&mut options);
        Self::start_with(stopped.folder.clone(), options).await
    }

    /// Starts a server whose clock stands.
    pub(crate) async fn start_while_time_stands() -> Self {
        let stopped = Self::start().await.stop().await;
        Self::start_again_while_time_stands(&stopped, |_| {}).await
    }

    /// The same, with an audit log; returns where that is.
    pub(crate) async fn start_auditing_while_time_stands() -> (Self, PathBuf) {
        let stopped = Self::start().await.stop().await;
        let log = stopped.database().with_file_name("audit.log");
        let configure = |options: &mut ServeOptions| options.audit_log = Some(log.clone());
        (Self::start_again_while_time_stands(&stopped, configure).await, log)
    }

    /// The same, as `configure` wants it, on the folder of one that has ended.
    pub(crate) async fn start_again_while_time_stands(
        stopped: &Stopped,
        configure: impl FnOnce(&mut ServeOptions),
    ) -> Self {
        let started = Self::start_again(stopped, |options| {
            options.clock = Arc::new(StandingClock);
            configure(options);
        });
        started.await.unwrap()
    }

    /// Starts a server on a folder that has accounts already.
    pub(crate) async fn start_in(folder: PathBuf) -> Result<Self, ServerError> {
        Self::start_on(Place::Given(folder), 0).await
    }

    async fn start_on(folder: Place, port: u16) -> Result<Self, ServerError> {
        let mut options = Self::options(folder.path());
        options.listen.set_port(port);
        Self::start_with(folder, options).await
    }

    /// Returns the options of a server on a folder, on a port of its choice.
    pub(crate) fn options(folder: &Path) -> ServeOptions {
        let (clock, random) = (SystemClock::start(), Arc::new(SystemRandom));
        let mut options = ServeOptions::new(folder.to_owned(), clock, random);
        options.listen.set_port(0);
        options
    }

    /// Starts a server with these options.
    pub(crate) async fn start_with(
        folder: impl Into<Place>,
        options: ServeOptions,
    ) -> Result<Self, ServerError> {
        let folder = folder.into();
        let runtime = Runtime::new().unwrap();
        let (ready, is_ready) = oneshot::channel();
        let (stop, stopping) = oneshot::channel::<()>();
        let (gone, stopped) = oneshot::channel();
        let (failed, has_failed) = oneshot::channel();
        runtime.spawn(async move {
            let ready = |address| ready.send(address).unwrap();
            if let Err(error) = serve(options, ready, async { drop(stopping.await) }).await {
                let _ = failed.send(error);
            }
            let _ = gone.send(());
        });
        match is_ready.await {
            Ok(address) => {
                Ok(Self { address, folder, runtime: Some(runtime), stop: Some(stop), stopped })
            }
            Err(_) => {
                runtime.shutdown_background();
                Err(has_failed.await.expect("a server that is not ready has failed"))
            }
        }
    }

    pub(crate) fn data(&self) -> &Path {
        self.folder.path()
    }

    /// Starts another server on the same folder, which must fail while this one runs.
    pub(crate) async fn start_second(&self) -> Result<Self, ServerError> {
        Self::start_on(self.folder.clone(), 0).await
    }

    /// Stops gracefully.
    pub(crate) async fn stop(mut self) -> Stopped {
        let _ = self.stop.take().unwrap().send(());
        let _ = (&mut self.stopped).await;
        self.halt().await
    }

    /// Stops without a word: every task is dropped where it stands.
    pub(crate) async fn kill(self) -> Stopped {
        self.halt().await
    }

    async fn halt(mut self) -> Stopped {
        let runtime = self.runtime.take().unwrap();
        let halt = move || runtime.shutdown_timeout(Duration::from_secs(10));
        tokio::task::spawn_blocking(halt).await.unwrap();
        Stopped { folder: self.folder.clone(), port: self.address.port() }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Signs in and returns the new device.
    pub(crate) async fn device(&self, account: &str) -> Device {
        let (status, body) = self.login(account, PASSWORD).await;
        assert_eq!(status, StatusCode::OK, "{body}");
        let text = |field: &str| body[field].as_str().unwrap().to_owned();
        Device {
            server: self.url(""),
            token: text("token"),
            id: text("device_id").parse().unwrap(),
            incarnation: u64::from_le_bytes(random()),
            http: http(),
        }
    }

    pub(crate) async fn login(&self, user: &str, password: &str) -> (StatusCode, Value) {
        let body = json!({ "user": user, "password": password, "device_name": "laptop" });
        let request = http().post(self.url("/api/v1/login")).json(&body);
        read_json(request.send().await.unwrap()).await
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// A folder whose server has ended.
pub(crate) struct Stopped {
    folder: Place,
    port: u16,
}

impl Stopped {
    pub(crate) fn database(&self) -> PathBuf {
        self.folder.path().join("metadata.sqlite")
    }

    pub(crate) fn store(&self) -> PathBuf {
        self.folder.path().join("store")
    }

    /// Starts again at the same address.
    pub(crate) async fn start(self) -> TestServer {
        self.try_start().await.expect("it starts again")
    }

    /// Starts again, which may fail.
    pub(crate) async fn try_start(&self) -> Result<TestServer, ServerError> {
        TestServer::start_on(self.folder.clone(), self.port).await
    }
}

pub(crate) fn http() -> reqwest::Client {
    http_builder().build().unwrap()
}

/// A client that comes from this address, which is one of this machine.
pub(crate) fn http_from(address: IpAddr) -> reqwest::Client {
    http_builder().local_address(address).build().unwrap()
}

fn http_builder() -> reqwest::ClientBuilder {
    // Needed by the client library even where no TLS is spoken; somebody else may have been first.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().no_proxy()
}

pub(crate) async fn read_json(response: Response) -> (StatusCode, Value) {
    let status = response.status();
    let bytes = response.bytes().await.unwrap();
    (status, serde_json::from_slice(&bytes).unwrap_or(Value::Null))
}

/// A device that has signed in.
#[derive(Clone)]
pub(crate) struct Device {
    pub(crate) server: String,
    pub(crate) token: String,
    pub(crate) id: DeviceId,
    pub(crate) incarnation: u64,
    pub(crate) http: reqwest::Client,
}

impl Device {
    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.http.request(method, format!("{}/api/v1{path}", self.server)).bearer_auth(&self.token)
    }

    pub(crate) async fn get(&self, path: &str) -> (StatusCode, Value) {
        read_json(self.request(Method::GET, path).send().await.unwrap()).await
    }

    pub(crate) async fn status(&self, method: Method, path: &str, body: Vec<u8>) -> StatusCode {
        self.request(method, path).body(body).send().await.unwrap().status()
    }

    pub(crate) async fn create_workspace(&self, name: &str) -> Genesis {
        let genesis = genesis(name);
        let body = encode_message(&genesis);
        assert_eq!(self.status(Method::POST, "/workspaces", body).await, StatusCode::CREATED);
        genesis
    }

    pub(crate) fn connection(&self) -> Arc<WebSocketConnection> {
        let options = WebSocketOptions::new(&self.server, &self.token, self.incarnation);
        let clock = SystemClock::start();
        Arc::new(WebSocketConnection::new(options, clock, Arc::new(SystemRandom)).unwrap())
    }

    pub(crate) async fn log(&self, genesis: &Genesis) -> ServedCommitLog {
        self.open_log(genesis.workspace()).await.unwrap()
    }

    pub(crate) async fn open_log(
        &self,
        workspace: WorkspaceId,
    ) -> Result<ServedCommitLog, CommitLogError> {
        ServedCommitLog::open(self.connection(), SystemClock::start(), workspace).await
    }

    pub(crate) fn commit(&self, node: u8, seen: Head) -> Commit {
        Commit {
            op_id: OpId::from_bytes(random()),
            device: self.id,
            seen,
            ..model::testing::commit(1, vec![put(node, 0, "name")])
        }
    }

    /// Makes a folder of a workspace one of its own.
    pub(crate) async fn mount(&self, outer: &Genesis, folder: &str, inner: &Genesis) {
        let nodes = format!("/workspaces/{}/nodes/{folder}", outer.workspace());
        let (_, folder) = self.get(&nodes).await;
        let folder: NodeId = folder["id"].as_str().unwrap().parse().unwrap();
        let mount = Mount { workspace: inner.workspace(), since: 1 };
        let payload = encode_message(&Mounts::from_iter([(folder, mount)]));
        let log = self.log(outer).await;
        let seen = log.head().await.unwrap();
        let change = Change { node: NodeId::MOUNTS, base: 0, action: Action::Put(payload) };
        let commit = Commit { changes: vec![change], ..self.commit(1, seen) };
        log.commit(&commit).await.unwrap();
    }

    /// Cleans up as a device does: what came with these entries is gone.
    pub(crate) async fn clean_up(&self, genesis: &Genesis, seqs: &[u64]) {
        let log = self.log(genesis).await;
        let mut condemned = Vec::new();
        for seq in seqs {
            let entries = log.entries(seq - 1, 1).await.unwrap();
            let Commit { packs, inline_packs, .. } = &entries[0].commit;
            condemned.extend(packs.iter().map(|pack| pack.id));
            condemned.extend(inline_packs.iter().map(|bytes| pack_id(bytes)));
        }
        assert!(condemned.len() >= seqs.len(), "each of them has brought a pack");
        condemned.sort_unstable();
        let payload = encode_message(&Fence { condemned, dropped: vec![] });
        let change = Change { node: NodeId::FENCE, base: 0, action: Action::Put(payload) };
        let seen = log.head().await.unwrap();
        let commit = Commit { changes: vec![change], ..self.commit(1, seen) };
        log.commit(&commit).await.unwrap();
    }

    pub(crate) async fn put_pack(&self, genesis: &Genesis, bytes: &[u8]) -> StatusCode {
        let path = pack_path(genesis, bytes);
        self.status(Method::PUT, &path, bytes.to_vec()).await
    }
}

pub(crate) fn genesis(name: &str) -> Genesis {
    Genesis {
        name: name.to_owned(),
        mode: Mode::Plain,
        created: Timestamp::default(),
        content_key: random(),
    }
}

pub(crate) fn pack_id(bytes: &[u8]) -> PackId {
    PackId::from_bytes(*blake3::hash(bytes).as_bytes())
}

pub(crate) fn pack_path(genesis: &Genesis, bytes: &[u8]) -> String {
    format!("/workspaces/{}/packs/{}", genesis.workspace(), pack_id(bytes))
}

/// Bytes that do not compress.
pub(crate) fn noise(length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    SystemRandom.fill(&mut bytes);
    bytes
}
