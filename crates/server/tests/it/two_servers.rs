//! Two servers on one database and one store, as the doors see it; told over each database.

use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use model::{Clock, Genesis, Mode, PackId, Random, Timestamp};
use reqwest::{Client, StatusCode};
use server::app::{App, router};
use server::auth::Token;
use server::cluster::Role;
use server::files::Files;
use server::listener::PeerAddress;
use server::metadata::Metadata;
use server::services::events::Hub;
use server::services::news::News;
use server::services::readers::Readers;
use server::services::writer::Writer;
use server::services::{accounts, workspaces};
use storage::{ObjectEntry, ObjectKey, ObjectStore, PutMode, PutOutcome};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};

/// How long anything here may take that does come about.
const PATIENCE: Duration = Duration::from_secs(60);

const LENGTH: usize = 10_000;

/// Makes one more connection to the database.
pub(crate) type Open = Arc<dyn Fn() -> Box<dyn Metadata> + Send + Sync>;

#[derive(Debug)]
struct Numbers;

impl Random for Numbers {
    fn fill(&self, bytes: &mut [u8]) {
        getrandom::fill(bytes).unwrap();
    }
}

/// A clock that stands still.
#[derive(Debug)]
pub(crate) struct Still;

impl Clock for Still {
    fn now(&self) -> Timestamp {
        Timestamp { seconds: 1_700_000_000, nanoseconds: 0 }
    }

    fn elapsed(&self) -> Duration {
        Duration::ZERO
    }

    fn sleep(&self, duration: Duration) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(tokio::time::sleep(duration))
    }
}

/// A store over which a server takes long to delete: until it may.
#[derive(Debug)]
struct SlowToDelete {
    store: Arc<dyn ObjectStore>,
    wants_to_delete: watch::Sender<bool>,
    may_delete: watch::Receiver<bool>,
}

#[async_trait]
impl ObjectStore for SlowToDelete {
    fn describe(&self) -> String {
        self.store.describe()
    }

    async fn put(
        &self,
        key: &ObjectKey,
        bytes: Bytes,
        mode: PutMode,
    ) -> storage::Result<PutOutcome> {
        self.store.put(key, bytes, mode).await
    }

    async fn get(&self, key: &ObjectKey) -> storage::Result<Option<Bytes>> {
        self.store.get(key).await
    }

    async fn get_range(
        &self,
        key: &ObjectKey,
        range: Range<u64>,
    ) -> storage::Result<Option<Bytes>> {
        self.store.get_range(key, range).await
    }

    async fn size(&self, key: &ObjectKey) -> storage::Result<Option<u64>> {
        self.store.size(key).await
    }

    async fn list(
        &self,
        prefix: &str,
        start_after: Option<&str>,
        limit: usize,
    ) -> storage::Result<Vec<ObjectEntry>> {
        self.store.list(prefix, start_after, limit).await
    }

    async fn delete(&self, key: &ObjectKey) -> storage::Result<()> {
        self.wants_to_delete.send_replace(true);
        self.may_delete.clone().wait_for(|may| *may).await.unwrap();
        self.store.delete(key).await
    }
}

/// Starts a server as [`server::serve()`] does, over a store that is given.
pub(crate) async fn start(open: &Open, store: Arc<dyn ObjectStore>) -> SocketAddr {
    let open = Arc::clone(open);
    let opened =
        tokio::task::spawn_blocking(move || (open(), Readers::open(|| Ok(open())).unwrap()));
    let (metadata, readers) = opened.await.unwrap();
    let (writer, _) = Writer::start(metadata).unwrap();
    let news = News::default();
    let (hub, sending) = Hub::new(news.clone());
    tokio::spawn(sending);
    let (in_use, _) = mpsc::channel(1);
    let environment: (Arc<dyn Clock>, Arc<dyn Random>) = (Arc::new(Still), Arc::new(Numbers));
    // No file is received here.
    let files = Files::new(std::env::temp_dir());
    let app = App::new(environment, (readers, writer), store, (hub, news), files, in_use);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let listener = server::listener::GuardedListener::new(listener, 100, 100);
    let service =
        router(Arc::new(app), Role::All).into_make_service_with_connect_info::<PeerAddress>();
    tokio::spawn(axum::serve(listener, service).into_future());
    address
}

struct Device {
    token: Token,
    genesis: Genesis,
    http: Client,
}

impl Device {
    /// Makes an account with a device and a workspace.
    fn furnish(metadata: &mut dyn Metadata, quota_bytes: u64) -> Self {
        let genesis = Genesis {
            name: "home".to_owned(),
            mode: Mode::Plain,
            created: Timestamp::default(),
            content_key: [7; 32],
        };
        let account = accounts::create_account(metadata, "ada", "!", 0).unwrap();
        metadata.update_quota(account, Some(quota_bytes)).unwrap();
        let (caller, token) =
            accounts::enrol_device(metadata, &Numbers, account, "laptop", 0).unwrap();
        workspaces::create(metadata, &caller, &genesis).unwrap();
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = Client::builder().no_proxy().timeout(PATIENCE).build().unwrap();
        Self { token, genesis, http }
    }

    fn path(&self, pack: &[u8]) -> String {
        let id = PackId::from_bytes(*blake3::hash(pack).as_bytes());
        format!("/api/v1/workspaces/{}/packs/{id}", self.genesis.workspace())
    }

    async fn put(&self, server: SocketAddr, pack: &[u8]) -> StatusCode {
        let request = self.http.put(format!("http://{server}{}", self.path(pack)));
        let request = request.bearer_auth(self.token.to_text()).body(pack.to_vec());
        request.send().await.unwrap().status()
    }

    async fn get(&self, server: SocketAddr, pack: &[u8]) -> (StatusCode, Bytes) {
        let request = self.http.get(format!("http://{server}{}", self.path(pack)));
        let response = request.bearer_auth(self.token.to_text()).send().await.unwrap();
        (response.status(), response.bytes().await.unwrap())
    }

    /// Begins to send a pack; returns when the server has looked at its quota and asks for the bytes.
    async fn begin(&self, server: SocketAddr, pack: &[u8]) -> TcpStream {
        let mut stream = TcpStream::connect(server).await.unwrap();
        let head = format!(
            "PUT {} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\nconnection: close\r\n\
             expect: 100-continue\r\ncontent-length: {}\r\n\r\n",
            self.path(pack),
            self.token.to_text(),
            pack.len()
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut answer = [0; 25];
        stream.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"HTTP/1.1 100 Continue\r\n\r\n");
        stream
    }
}

/// One server refuses a pack for the quota, while the other one, a little later, takes the same pack.
pub(crate) fn pack_that_one_server_refuses_stays_where_another_has_taken_it(
    open: impl Fn() -> Box<dyn Metadata> + Send + Sync + 'static,
) {
    let open: Open = Arc::new(open);
    let mut metadata = open();
    let device = Device::furnish(&mut *metadata, (LENGTH + LENGTH / 2) as u64);
    let folder = tempfile::tempdir().unwrap();
    let store = storage::open(&format!("file:{}", folder.path().display())).unwrap();
    let (wants_to_delete, mut waits) = watch::channel(false);
    let (let_go, may_delete) = watch::channel(false);
    let slow = SlowToDelete { store: Arc::clone(&store), wants_to_delete, may_delete };
    let (pack, other) = (vec![1; LENGTH], vec![2; LENGTH]);

    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let one = start(&open, Arc::new(slow)).await;
        let two = start(&open, store).await;
        let mut upload = device.begin(one, &pack).await;
        // There was room when it began, and is none when it is complete.
        assert_eq!(device.put(two, &other).await, StatusCode::CREATED);
        upload.write_all(&pack).await.unwrap();
        let mut answer = String::new();
        tokio::select! {
            read = upload.read_to_string(&mut answer) => { read.unwrap(); }
            waiting = waits.wait_for(|waits| *waits) => drop(waiting.unwrap()),
        }
        let raised = tokio::task::spawn_blocking(move || {
            let account = metadata.account_by_name("ada").unwrap().unwrap().id;
            metadata.update_quota(account, None).unwrap();
        });
        raised.await.unwrap();
        assert_eq!(device.put(two, &pack).await, StatusCode::CREATED);
        let_go.send_replace(true);
        upload.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 507 "), "{answer}");
        let (status, bytes) = device.get(two, &pack).await;
        assert_eq!(status, StatusCode::OK, "the database knows a pack that the store has not");
        assert!(bytes == pack);
    });
}
