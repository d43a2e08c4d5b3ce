//! Servers that share a PostgreSQL and meet at a broker.

use std::sync::Arc;
use std::time::Duration;

use commit_log::CommitLog;
use futures_util::{SinkExt, StreamExt};
use model::Genesis;
use model::wire::{Request, RequestFrame};
use reqwest::{Method, StatusCode};
use server::metadata::postgres::testing::ThrowAway;
use server::{Admin, Broker, Database, ServeOptions};
use tempfile::TempDir;
use tokio::time::{Instant, timeout};
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use crate::place::{PATIENCE, Place};
use crate::support::{Device, PASSWORD, SystemClock, SystemRandom, TestServer};

/// Far below the time after which a device asks by itself, and after which a server looks for itself whether a device is signed in.
const AT_ONCE: Duration = Duration::from_secs(3);

/// A database with two accounts and a store, for any number of servers.
pub(crate) struct Shared {
    database: Arc<ThrowAway>,
    store: TempDir,
}

impl Shared {
    pub(crate) fn new(place: &Place) -> Self {
        let database = ThrowAway::create(&place.config()).unwrap();
        let store = tempfile::tempdir().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let mut admin = Admin::open_in(folder.path(), &in_postgres(&database)).unwrap();
        for name in ["ada", "bob"] {
            admin.add(name, PASSWORD, &*SystemClock::start(), &SystemRandom).unwrap();
        }
        Self { database, store }
    }

    /// Around a database that has what it needs.
    pub(crate) fn around(database: Arc<ThrowAway>) -> Self {
        Self { database, store: tempfile::tempdir().unwrap() }
    }

    pub(crate) async fn server(&self, change: impl FnOnce(&mut ServeOptions)) -> TestServer {
        let folder = Arc::new(tempfile::tempdir().unwrap());
        let mut options = TestServer::options(folder.path());
        options.database = in_postgres(&self.database);
        options.store = Some(format!("file:{}", self.store.path().display()));
        change(&mut options);
        TestServer::start_with(folder, options).await.unwrap()
    }

    async fn pair(&self, broker: &Broker) -> (TestServer, TestServer) {
        let meet = |options: &mut ServeOptions| options.broker = Some(broker.clone());
        let servers = (self.server(meet).await, self.server(meet).await);
        for server in [&servers.0, &servers.1] {
            until_health(server, "ok").await;
        }
        servers
    }

    /// Starts two servers, and makes a device and a workspace at the first.
    async fn two(&self, broker: &Broker) -> (TestServer, TestServer, Device, Genesis) {
        let (one, two) = self.pair(broker).await;
        let device = one.device("ada").await;
        let genesis = device.create_workspace("home").await;
        (one, two, device, genesis)
    }
}

fn in_postgres(database: &ThrowAway) -> Database {
    Database::Postgres(Box::new(database.config().clone()))
}

/// The same device, at another server.
pub(crate) fn at(server: &TestServer, device: &Device) -> Device {
    Device { server: server.url(""), ..device.clone() }
}

/// Waits until a server says this of itself, with status 200.
pub(crate) async fn until_health(server: &TestServer, wanted: &str) {
    let asking = async {
        loop {
            let url = server.url("/healthz");
            let (status, said) =
                crate::support::read_json(crate::support::http().get(url).send().await.unwrap())
                    .await;
            assert_eq!(status, StatusCode::OK, "{said}");
            if said["status"] == wanted {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    timeout(PATIENCE, asking).await.unwrap_or_else(|_| panic!("a server is not '{wanted}'"));
}

type Socket = WebSocketStream<MaybeTlsStream<tokio::net::TcpStream>>;

/// Opens a live connection by hand, which asks nothing by itself.
async fn open(device: &Device, incarnation: u64) -> Result<Socket, StatusCode> {
    let url = format!("{}/api/v1/live", device.server.replace("http:", "ws:"));
    let mut request = url.into_client_request().unwrap();
    let headers = request.headers_mut();
    headers.insert("authorization", format!("Bearer {}", device.token).parse().unwrap());
    headers.insert("syncline-incarnation", format!("{incarnation:016x}").parse().unwrap());
    match connect_async(request).await {
        Ok((socket, _)) => Ok(socket),
        Err(Error::Http(response)) => Err(response.status().as_u16().try_into().unwrap()),
        Err(error) => panic!("{error}"),
    }
}

/// Subscribes to a workspace, and waits for the answer.
async fn subscribe(socket: &mut Socket, genesis: &Genesis) {
    let request = Request::Subscribe { since: 0 };
    let frame = RequestFrame { number: 1, workspace: genesis.workspace(), request };
    socket.send(Message::Binary(commit_log::envelope::wrap(&frame).into())).await.unwrap();
    socket.next().await.unwrap().unwrap();
}

/// Waits until a connection is closed, and returns why. Reading answers pings.
async fn end_of(socket: &mut Socket) -> String {
    loop {
        match socket.next().await {
            Some(Ok(Message::Close(Some(close)))) => return close.reason.to_string(),
            Some(Ok(_)) => {}
            other => panic!("{other:?}"),
        }
    }
}

/// Runs a story. The database is opened and removed outside of it, because doing so blocks.
pub(crate) fn run<T>(story: impl Future<Output = T>) -> T {
    tokio::runtime::Runtime::new().unwrap().block_on(story)
}

#[test]
fn what_is_committed_at_one_server_is_pushed_by_the_other() {
    let place = Place::take();
    for (name, broker) in place.brokers() {
        let shared = Shared::new(&place);
        run(async {
            let (_one, two, writer, genesis) = shared.two(&broker).await;
            let reader = two.device("ada").await;
            let (log, elsewhere) = (writer.log(&genesis).await, reader.log(&genesis).await);
            let mut events = elsewhere.subscribe(0).await.unwrap();
            let mut head = genesis.head();
            for node in 1..=50 {
                head = log.commit(&writer.commit(node, head)).await.unwrap();
                let event = timeout(AT_ONCE, events.next()).await.expect(name);
                assert_eq!(event.unwrap().unwrap().head(), head, "{name}");
            }
            // What fits into no bulletin is read from the log.
            let mut large = writer.commit(51, head);
            large.inline_packs = vec![crate::support::noise(63 * 1024)];
            large.changes = (1..=60).map(|node| model::testing::put(node, 1, "name")).collect();
            large.changes.iter_mut().for_each(|change| {
                if let model::Action::Put(payload) = &mut change.action {
                    *payload = crate::support::noise(2_000);
                }
            });
            head = log.commit(&large).await.unwrap();
            let event = timeout(AT_ONCE, events.next()).await.expect(name);
            assert_eq!(event.unwrap().unwrap().head(), head, "{name}");
        });
    }
}

#[test]
fn a_device_that_is_revoked_at_one_server_loses_its_connection_at_the_other() {
    let place = Place::take();
    for (name, broker) in place.brokers() {
        let shared = Shared::new(&place);
        run(async {
            let (_one, two, owner, _genesis) = shared.two(&broker).await;
            let lost = two.device("ada").await;
            let mut socket = open(&lost, 1).await.unwrap();
            let path = format!("/devices/{}", lost.id);
            assert_eq!(owner.status(Method::DELETE, &path, vec![]).await, StatusCode::NO_CONTENT);
            let reason = timeout(AT_ONCE, end_of(&mut socket)).await.expect(name);
            assert!(reason.contains("signed out"), "{reason}");
        });
    }
}

#[test]
fn a_member_who_is_removed_at_one_server_hears_nothing_more_at_the_other() {
    let place = Place::take();
    for (name, broker) in place.brokers() {
        let shared = Shared::new(&place);
        run(async {
            let (_one, two, owner, genesis) = shared.two(&broker).await;
            let path = format!("/workspaces/{}/members/bob", genesis.workspace());
            let role = serde_json::json!({ "role": "view" });
            let shared = owner.request(Method::PUT, &path).json(&role).send().await.unwrap();
            assert_eq!(shared.status(), StatusCode::CREATED);
            let mut socket = open(&two.device("bob").await, 1).await.unwrap();
            subscribe(&mut socket, &genesis).await;
            assert_eq!(owner.status(Method::DELETE, &path, vec![]).await, StatusCode::NO_CONTENT);
            let reason = timeout(AT_ONCE, end_of(&mut socket)).await.expect(name);
            assert!(reason.contains("not shared any more"), "{reason}");
        });
    }
}

#[test]
fn a_device_that_is_connected_twice_is_found_out_across_servers() {
    let place = Place::take();
    let [(_, broker), _] = place.brokers();
    let shared = Shared::new(&place);
    run(async {
        let (_one, two, device, _genesis) = shared.two(&broker).await;
        let mut first = open(&device, 1).await.unwrap();
        let reading = tokio::spawn(async move { end_of(&mut first).await });
        // Until the other server has heard of it: of two that come at one moment both are found out.
        tokio::time::sleep(Duration::from_secs(1)).await;
        let elsewhere = at(&two, &device);
        let mut second = open(&elsewhere, 2).await.unwrap();
        let reason = timeout(AT_ONCE, end_of(&mut second)).await.unwrap();
        assert!(reason.contains("another installation"), "{reason}");
        assert_eq!(open(&elsewhere, 2).await.unwrap_err(), StatusCode::CONFLICT);
        assert!(!reading.is_finished(), "the one that was there first stays");
        // The same incarnation may move from one server to another.
        let mut moved = open(&elsewhere, 1).await.unwrap();
        timeout(AT_ONCE, end_of(&mut moved)).await.unwrap_err();
        assert!(!reading.is_finished());
    });
}

#[test]
fn a_broker_that_dies_delays_no_commit_and_is_taken_up_again() {
    let mut place = Place::take();
    for (name, broker) in place.brokers() {
        let shared = Shared::new(&place);
        run(async {
            let (one, two, writer, genesis) = shared.two(&broker).await;
            let reader = two.device("ada").await;
            let (log, elsewhere) = (writer.log(&genesis).await, reader.log(&genesis).await);
            let mut events = elsewhere.subscribe(0).await.unwrap();
            place.running.kill(name).unwrap();
            let mut head = genesis.head();
            for node in 1..=50 {
                let start = Instant::now();
                head = log.commit(&writer.commit(node, head)).await.unwrap();
                assert!(start.elapsed() < Duration::from_secs(1), "{name}: {:?}", start.elapsed());
            }
            until_health(&one, "degraded").await;
            until_health(&two, "degraded").await;
            place.running.revive(name).unwrap();
            until_health(&one, "ok").await;
            until_health(&two, "ok").await;
            head = log.commit(&writer.commit(51, head)).await.unwrap();
            loop {
                let event = timeout(AT_ONCE, events.next()).await.expect(name).unwrap().unwrap();
                if event.head() == head {
                    break;
                }
            }
        });
    }
}

/// Without a broker between them one hears of the other when a device asks.
#[test]
fn servers_that_never_meet_push_nothing_to_each_other() {
    let place = Place::take();
    let shared = Shared::new(&place);
    run(async {
        let (one, two) = (shared.server(|_| {}).await, shared.server(|_| {}).await);
        let writer = one.device("ada").await;
        let genesis = writer.create_workspace("home").await;
        let mut socket = open(&two.device("ada").await, 1).await.unwrap();
        subscribe(&mut socket, &genesis).await;
        let log = writer.log(&genesis).await;
        log.commit(&writer.commit(1, genesis.head())).await.unwrap();
        timeout(Duration::from_secs(1), socket.next()).await.unwrap_err();
    });
}
