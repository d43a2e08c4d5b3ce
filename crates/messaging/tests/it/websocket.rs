//! Devices over WebSocket, with a gateway behind a real socket.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use axum::Router;
use axum::extract::WebSocketUpgrade;
use axum::routing::get;
use bytes::Bytes;
use futures_util::{FutureExt, StreamExt};
use messaging::body::PackedBody;
use messaging::conformance::world::{
    self, Deed, Dice, LabourDispatcher, LabourProxy, RealClock, Service, Tally, Worker,
};
use messaging::conformance::{self, Fixture, WAITING_MAX};
use messaging::envelope::{Envelope, Kind};
use messaging::names::ReplyAddress;
use messaging::transport::{Notice, Parcel, Route, Source};
use messaging::websocket::{Gateway, Guard, WebSocketOptions, WebSocketTransport};
use messaging::{
    Encoding, InProcessTransport, InstanceId, MessagingError, Messenger, MessengerOptions, Name,
    OperationId, ServeOptions, Serving, Transport,
};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// Lets a device do everything but what begins with `secret`.
struct Watchful;

#[async_trait]
impl Guard for Watchful {
    async fn may_send(&self, _kind: Kind, target: &Name, _method: &str) -> bool {
        !target.as_str().starts_with("secret")
    }

    async fn may_listen(&self, topic: &Name) -> bool {
        !topic.as_str().starts_with("secret")
    }
}

/// A server: a gateway in front of a transport in memory, reached over a line that can be cut.
struct Server {
    behind: InProcessTransport,
    gateway: Gateway,
    address: SocketAddr,
    /// How often the line was cut, and whether it takes no new connection.
    cuts: watch::Sender<(u32, bool)>,
}

impl Server {
    async fn start() -> Self {
        let behind = InProcessTransport::with_waiting_max(WAITING_MAX);
        let clock = Arc::new(RealClock::default());
        let dice = Arc::new(Dice::default());
        let gateway = Gateway::start(Arc::new(behind.clone()), clock, dice).await.unwrap();
        let door = gateway.clone();
        let upgrade =
            async move |upgrade: WebSocketUpgrade| door.upgrade(upgrade, Arc::new(Watchful));
        let app = Router::new().route("/messages", get(upgrade));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let door = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, app).await });
        let line = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = line.local_addr().unwrap();
        let cuts = watch::Sender::new((0, false));
        tokio::spawn(carry(line, door, cuts.subscribe()));
        Self { behind, gateway, address, cuts }
    }

    fn device(&self) -> WebSocketTransport {
        let options = WebSocketOptions {
            url: format!("ws://{}/messages", self.address),
            authorization: Some("Bearer me".to_owned()),
        };
        let clock = Arc::new(RealClock::default());
        WebSocketTransport::new(options, clock, Arc::new(Dice::default())).unwrap()
    }

    /// Breaks every connection there is; a line that is blocked takes no other.
    fn cut(&self, blocked: bool) {
        self.cuts.send_modify(|cuts| *cuts = (cuts.0 + 1, blocked));
    }

    async fn messenger(&self) -> Messenger {
        start(self.server().await).await
    }
}

/// Carries bytes to and fro until the line is cut.
async fn carry(line: TcpListener, door: SocketAddr, cuts: watch::Receiver<(u32, bool)>) {
    while let Ok((mut near, _)) = line.accept().await {
        let mut cuts = cuts.clone();
        if cuts.borrow_and_update().1 {
            continue;
        }
        tokio::spawn(async move {
            let mut far = TcpStream::connect(door).await.unwrap();
            tokio::select! {
                _ = tokio::io::copy_bidirectional(&mut near, &mut far) => {}
                _ = cuts.changed() => {}
            }
        });
    }
}

#[async_trait]
impl Fixture for Server {
    async fn client(&self) -> Arc<dyn Transport> {
        Arc::new(self.device())
    }

    async fn server(&self) -> Arc<dyn Transport> {
        Arc::new(self.behind.clone())
    }
}

async fn start(transport: Arc<dyn Transport>) -> Messenger {
    world::messenger(transport, MessengerOptions::default()).await
}

fn worker(tally: &Arc<Tally>, deed: fn(u64) -> Deed) -> Arc<LabourDispatcher<Worker>> {
    Arc::new(LabourDispatcher(Worker { number: 0, tally: Arc::clone(tally), deed }))
}

async fn listen(device: &Messenger, topic: &Name, tally: &Arc<Tally>) -> Serving {
    device.listen(topic, worker(tally, world::diligent), 1000).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn devices_conform() {
    conformance::run_all(&Server::start().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cut_line_loses_no_event_and_no_call() {
    let server = Server::start().await;
    let (topic, service) = (world::fresh_name("news"), Service::new("cut"));
    let _instance = service.instance(&server, world::diligent).await;
    let device = start(server.client().await).await;
    let tally = Arc::new(Tally::default());
    let _listening = listen(&device, &topic, &tally).await;
    let news = LabourProxy::at(Arc::new(server.messenger().await), topic);
    for number in 0..300 {
        if number % 60 == 30 {
            server.cut(false);
        }
        news.happened(number).await.unwrap();
        // The effect of each call is one, whether its line broke before, in, or after it.
        if number % 10 == 0 {
            service.proxy(&device).work(number).await.unwrap();
        }
    }
    let done = tally.until("all events", |done| done.order.len() >= 300).await;
    assert_eq!(done.order, (0..300).collect::<Vec<u64>>());
    assert_eq!(done.missed, 0, "it could go on where it was");
    world::assert_each_once(&service.tally.done(), (0..300).step_by(10));
    assert_eq!(server.gateway.sessions(), 1, "a device that comes back has its old session");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_device_that_was_away_too_long_hears_of_the_gap() {
    const EVENTS: u64 = 3_000;
    let server = Server::start().await;
    let topic = world::fresh_name("news");
    let device = start(server.client().await).await;
    let (away, present) = (Arc::new(Tally::default()), Arc::new(Tally::default()));
    let _listening = listen(&device, &topic, &away).await;
    let beside = server.messenger().await;
    let _beside = listen(&beside, &topic, &present).await;
    let news = LabourProxy::at(Arc::new(server.messenger().await), topic);
    news.happened(0).await.unwrap();
    away.until("the first", |done| done.order.len() == 1).await;
    server.cut(true);
    for number in 1..EVENTS {
        news.happened(number).await.unwrap();
        present.until("it is told", |done| done.effects.contains_key(&number)).await;
    }
    server.cut(false);
    // What comes after the gap is heard again, while the line comes back.
    let more = async {
        for number in EVENTS.. {
            news.happened(number).await.unwrap();
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let back = away.until("it is back", |done| done.order.last() >= Some(&EVENTS));
    let done = tokio::select! {
        done = back => done,
        () = more => unreachable!("there is always one more"),
    };
    assert!(done.missed > 0, "events were lost in silence");
    assert!(done.order.len() < 1_500, "{} events were kept for it", done.order.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_device_may_not_do_what_its_guard_forbids_nor_serve() {
    let server = Server::start().await;
    let transport = server.client().await;
    let device = start(Arc::clone(&transport)).await;
    let secret = Name::new("secret.plans").unwrap();
    let spying = LabourProxy::at(Arc::new(device.clone()), secret.clone());
    for error in [
        spying.shout("let me in".to_owned()).await.unwrap_err(),
        spying.later(1).await.unwrap_err(),
        spying.happened(1).await.unwrap_err(),
        spying.who().await.unwrap_err(),
    ] {
        assert!(matches!(error, MessagingError::Refused { .. }), "{error}");
    }
    let tally = Arc::new(Tally::default());
    let handler = worker(&tally, world::diligent);
    let error = device.listen(&secret, handler.clone(), 10).await.unwrap_err();
    assert!(matches!(error, MessagingError::Refused { .. }), "{error}");
    let open = Name::new("open").unwrap();
    let error = device.serve(&open, handler, ServeOptions::default()).await.unwrap_err();
    assert!(matches!(error, MessagingError::Unsupported { .. }), "{error}");
    assert!(!transport.abilities().serves);
}

/// An envelope that a device should not write.
fn forged(victim: InstanceId, target: &Name) -> Envelope {
    let arguments = Encoding::Json.encode("it", &("hello",)).unwrap();
    Envelope {
        kind: Kind::Call,
        encoding: Encoding::Json,
        interface_version: 3,
        attempt: 1,
        operation: OperationId::from_bytes([2; 16]),
        sender: victim,
        // Its time has long passed, if that of a device counted.
        deadline_ms: Some(1),
        sequence: 0,
        previous: 0,
        reply_to: Some(ReplyAddress { instance: victim, channel: 3 }),
        target: target.clone(),
        method: "shout".to_owned(),
        body: PackedBody::pack(arguments, 1024).unwrap(),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_gateway_believes_no_reply_address_deadline_or_kind_of_a_device() {
    let server = Server::start().await;
    let service = Service::new("forged");
    let _instance = service.instance(&server, world::diligent).await;
    // Somebody behind the gateway, whose address the device has found out.
    let victim = InstanceId::from_bytes([7; 16]);
    let mut letters = server.behind.receive(&Source::Replies(victim), 10).await.unwrap();
    let device = server.client().await;
    let own = Source::Replies(InstanceId::from_bytes([1; 16]));
    let mut answers = device.receive(&own, 10).await.unwrap();
    let envelope = forged(victim, &service.name);
    let expires_in = Some(Duration::from_secs(30));
    let (bytes, operation) = (envelope.encode().unwrap(), envelope.operation);
    let route = Route::Call(service.name.clone());
    let parcel = Parcel { bytes: bytes.clone(), operation, expires_in };
    device.send(&route, parcel).await.unwrap();
    let Some(Notice::Delivery(answer)) = answers.next().await else { panic!("no answer") };
    let answer = Envelope::decode(&answer.bytes).unwrap();
    assert_eq!((answer.kind, answer.operation), (Kind::Answer, operation));
    assert_eq!(answer.body.open().unwrap(), &b"\"HELLO\""[..]);
    assert!(letters.next().now_or_never().is_none(), "the victim got an answer");
    // Nor does it pass on what is no envelope.
    let lies =
        [(Route::Event(service.name.clone()), bytes), (route, Bytes::from_static(b"no envelope"))];
    for (route, bytes) in lies {
        let parcel = Parcel { bytes, operation, expires_in };
        let error = device.send(&route, parcel).await.unwrap_err();
        assert!(matches!(error, MessagingError::Refused { .. }), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_not_there_is_an_error_in_time() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let options = WebSocketOptions { url: format!("ws://{address}/messages"), authorization: None };
    let clock = Arc::new(RealClock::default());
    let device = WebSocketTransport::new(options, clock, Arc::new(Dice::default())).unwrap();
    let device = start(Arc::new(device)).await;
    let proxy = Service::new("nowhere").proxy(&device);
    let asked = tokio::time::timeout(Duration::from_secs(20), proxy.hopeless(1));
    let error = asked.await.unwrap().unwrap_err();
    assert!(matches!(error, MessagingError::Unreachable { .. }), "{error}");
}

#[tokio::test]
async fn addresses_that_are_none_or_hold_secrets_are_refused() {
    for url in ["", "http://a/b", "wss://a/b", "ws://", "ws://me:secret@a/b"] {
        let options = WebSocketOptions { url: url.to_owned(), authorization: None };
        let clock = Arc::new(RealClock::default());
        let made = WebSocketTransport::new(options, clock, Arc::new(Dice::default()));
        assert!(matches!(made, Err(MessagingError::Refused { .. })), "{url}");
    }
}
