use std::future::Future;
use std::pin::Pin;

use futures_util::{FutureExt, SinkExt};
use model::testing::{commit, put};
use model::wire::{FRAME_LENGTH_MAX, ServerFrame};
use model::{EntryHash, Timestamp};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{WebSocketStream, accept_async};

use super::*;
use crate::envelope;

#[test]
fn address_of_a_server_leads_to_its_live_door() {
    for (server, live) in [
        ("http://127.0.0.1:8470", "ws://127.0.0.1:8470/api/v1/live"),
        ("http://[::1]:1/", "ws://[::1]:1/api/v1/live"),
        ("https://host", "wss://host/api/v1/live"),
        ("wss://host:1/", "wss://host:1/api/v1/live"),
        ("ws://host/behind/a/proxy/?x#y", "ws://host/behind/a/proxy/api/v1/live"),
    ] {
        assert_eq!(live_url(server).expect(server).as_str(), live);
    }
}

#[test]
fn addresses_of_other_things_are_refused() {
    for server in ["", "host", "ftp://host", "http://", "http://user:secret@host", "file:/x"] {
        let refused = live_url(server);
        assert!(matches!(refused, Err(WebSocketError::InvalidUrl { .. })), "{server}: {refused:?}");
    }
}

#[test]
fn refused_handshakes_have_kinds() {
    assert!(matches!(refused_handshake(401), Lost::Refused(r) if r.kind == RefusalKind::Forbidden));
    assert!(
        matches!(refused_handshake(409), Lost::Refused(r) if r.kind == RefusalKind::DeviceCloned)
    );
    assert!(matches!(refused_handshake(503), Lost::Unreachable(_)));
}

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
struct NoRandom;

impl Random for NoRandom {
    fn fill(&self, bytes: &mut [u8]) {
        bytes.fill(0);
    }
}

const WORKSPACE: WorkspaceId = WorkspaceId::from_bytes([1; 16]);

/// A server that does what a test says.
struct FakeServer(TcpListener);

type ServerSocket = WebSocketStream<TcpStream>;

impl FakeServer {
    async fn start() -> Self {
        Self(TcpListener::bind("127.0.0.1:0").await.expect("a port"))
    }

    fn connection(&self, request_timeout: Duration) -> WebSocketConnection {
        let server = format!("http://{}", self.0.local_addr().expect("an address"));
        let options = WebSocketOptions { request_timeout, ..WebSocketOptions::new(server, "t", 1) };
        let clock = Arc::new(RealClock(Instant::now()));
        WebSocketConnection::new(options, clock, Arc::new(NoRandom)).expect("an address")
    }

    async fn accept(&self) -> ServerSocket {
        let (stream, _) = self.0.accept().await.expect("a connection");
        accept_async(stream).await.expect("a handshake")
    }
}

async fn heard(socket: &mut ServerSocket) -> RequestFrame {
    loop {
        match socket.next().await.expect("a frame").expect("a frame") {
            Message::Binary(bytes) => {
                return envelope::unwrap(&bytes, FRAME_LENGTH_MAX).expect("a request");
            }
            _ => continue,
        }
    }
}

async fn say(socket: &mut ServerSocket, frame: ServerFrame) {
    let bytes = envelope::wrap(&frame).into();
    socket.send(Message::Binary(bytes)).await.expect("a listener");
}

fn entry(seq: u64) -> Entry {
    Entry { seq, previous: EntryHash::NONE, commit: commit(1, vec![put(1, 0, "a")]) }
}

fn unreachable_reason(outcome: Result<Reply, CommitLogError>) -> String {
    match outcome {
        Err(CommitLogError::Unreachable { reason, .. }) => reason,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn server_that_never_answers_costs_the_timeout_only() {
    let server = FakeServer::start().await;
    let connection = server.connection(Duration::from_millis(50));
    let call = connection.call(WORKSPACE, Request::Head);
    let (outcome, _socket) = tokio::join!(call, server.accept());
    assert_eq!(unreachable_reason(outcome), "no answer in time");
}

#[tokio::test]
async fn server_that_talks_nonsense_is_left_and_tried_again() {
    let server = FakeServer::start().await;
    let connection = server.connection(REQUEST_TIMEOUT);
    for nonsense in [vec![], vec![9; 100], vec![0, b'S', 1, 7], vec![0, b'Q', 1, 0]] {
        let fake = async {
            let mut socket = server.accept().await;
            heard(&mut socket).await;
            socket.send(Message::Binary(nonsense.into())).await.expect("a listener");
            socket
        };
        let (outcome, _socket) = tokio::join!(connection.call(WORKSPACE, Request::Head), fake);
        let reason = unreachable_reason(outcome);
        assert!(reason.starts_with("it sends what cannot be read"), "{reason}");
    }
}

#[tokio::test]
async fn answers_nobody_waits_for_are_ignored() {
    let server = FakeServer::start().await;
    let connection = server.connection(REQUEST_TIMEOUT);
    let fake = async {
        let mut socket = server.accept().await;
        let RequestFrame { number, .. } = heard(&mut socket).await;
        let wrong = ServerFrame::Reply { number: number + 99, reply: Reply::Published };
        say(&mut socket, wrong).await;
        say(&mut socket, ServerFrame::Event { workspace: WORKSPACE, entry: entry(1) }).await;
        say(&mut socket, ServerFrame::Reply { number, reply: Reply::Subscribed }).await;
        socket
    };
    let call = connection.call(WORKSPACE, Request::Subscribe { since: 0 });
    let (outcome, _socket) = tokio::join!(call, fake);
    assert_eq!(outcome.expect("an answer"), Reply::Subscribed);
}

#[tokio::test]
async fn lost_connection_comes_back_subscribes_again_and_fetches_what_was_missed() {
    let server = FakeServer::start().await;
    let connection = server.connection(REQUEST_TIMEOUT);
    let mut events = connection.events(WORKSPACE);
    let fake = async {
        let mut socket = server.accept().await;
        let RequestFrame { number, .. } = heard(&mut socket).await;
        say(&mut socket, ServerFrame::Reply { number, reply: Reply::Subscribed }).await;
        say(&mut socket, ServerFrame::Event { workspace: WORKSPACE, entry: entry(8) }).await;
        socket
    };
    let call = connection.call(WORKSPACE, Request::Subscribe { since: 7 });
    let (outcome, socket) = tokio::join!(call, fake);
    outcome.expect("an answer");
    assert_eq!(events.next().await.map(|entry| entry.seq), Some(8));
    drop(socket);

    let mut socket = server.accept().await;
    assert_eq!(heard(&mut socket).await.request, Request::Subscribe { since: 8 });
    let RequestFrame { number, request, .. } = heard(&mut socket).await;
    assert!(matches!(request, Request::Entries { since: 8, .. }), "{request:?}");
    let missed = Reply::Entries(vec![entry(9), entry(10)]);
    say(&mut socket, ServerFrame::Reply { number, reply: missed }).await;
    for seq in 9..=10 {
        assert_eq!(events.next().await.map(|entry| entry.seq), Some(seq));
    }
}

#[tokio::test]
async fn own_commits_are_heard_of_without_coming_back() {
    let server = FakeServer::start().await;
    let connection = server.connection(REQUEST_TIMEOUT);
    let mut events = connection.events(WORKSPACE);
    let others = Entry { seq: 8, ..entry(8) };
    let own = |op| Commit { seen: others.head(), ..commit(op, vec![put(op, 0, "own")]) };
    let first = Entry { seq: 9, previous: others.head().hash, commit: own(2) };
    // It had seen less than what stands before it.
    let second = Entry { seq: 10, previous: first.head().hash, commit: own(3) };
    let behind_unknown = Head { seq: 12, ..second.head() };
    let next = Entry { seq: 13, previous: behind_unknown.hash, ..entry(13) };
    let fake = async {
        let mut socket = server.accept().await;
        for (answer, event) in [
            (Reply::Subscribed, Some(others.clone())),
            (Reply::Committed(first.head()), None),
            (Reply::Committed(second.head()), None),
            // Something that never came here stands before this one: it is left to the cursors.
            (Reply::Committed(behind_unknown), Some(next.clone())),
        ] {
            let RequestFrame { number, .. } = heard(&mut socket).await;
            say(&mut socket, ServerFrame::Reply { number, reply: answer }).await;
            if let Some(entry) = event {
                say(&mut socket, ServerFrame::Event { workspace: WORKSPACE, entry }).await;
            }
        }
        socket
    };
    let calls = async {
        let subscribe = Request::Subscribe { since: 7 };
        connection.call(WORKSPACE, subscribe).await.expect("an answer");
        for op in 2..=4 {
            connection.call(WORKSPACE, Request::Commit(own(op))).await.expect("an answer");
        }
    };
    let (_socket, ()) = tokio::join!(fake, calls);
    for expected in [&others, &first, &second, &next] {
        assert_eq!(events.next().await.as_ref(), Some(expected));
    }
}

#[tokio::test]
async fn events_that_nobody_fetches_push_out_the_oldest() {
    let server = FakeServer::start().await;
    let connection = server.connection(REQUEST_TIMEOUT);
    let mut events = connection.events(WORKSPACE);
    for seq in 1..=1000 {
        connection.core.publish(WORKSPACE, entry(seq));
    }
    let first = events.next().now_or_never().flatten().expect("an event").seq;
    assert_eq!(first, 1000 - EVENTS_WAITING_MAX as u64 + 1);
}
