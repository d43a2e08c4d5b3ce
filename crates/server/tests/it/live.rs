//! The live door.

use std::time::Duration;

use commit_log::served::Connection;
use commit_log::{CommitLog, envelope};
use futures_util::future::join_all;
use futures_util::{SinkExt, StreamExt};
use model::wire::{FRAME_LENGTH_MAX, RefusalKind, Reply, Request, RequestFrame, ServerFrame};
use model::{Action, Change, Entry, Genesis};
use reqwest::StatusCode;
use tokio::net::TcpStream;
use tokio::time::Instant;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use crate::support::{Device, TestServer, noise};

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// Opens a live connection by hand.
async fn open(device: &Device, incarnation: Option<u64>) -> Result<Socket, StatusCode> {
    let url = format!("{}/api/v1/live", device.server.replace("http:", "ws:"));
    let mut request = url.into_client_request().unwrap();
    let headers = request.headers_mut();
    headers.insert("authorization", format!("Bearer {}", device.token).parse().unwrap());
    if let Some(incarnation) = incarnation {
        headers.insert("syncline-incarnation", format!("{incarnation:016x}").parse().unwrap());
    }
    match connect_async(request).await {
        Ok((socket, _)) => Ok(socket),
        Err(Error::Http(response)) => Err(response.status().as_u16().try_into().unwrap()),
        Err(error) => panic!("{error}"),
    }
}

async fn ask(socket: &mut Socket, genesis: &Genesis, number: u64, request: Request) {
    let frame = RequestFrame { number, workspace: genesis.workspace(), request };
    socket.send(Message::Binary(envelope::wrap(&frame).into())).await.unwrap();
}

/// Returns the next frame, or nothing when the connection has ended.
async fn next(socket: &mut Socket) -> Option<ServerFrame> {
    loop {
        match socket.next().await?.ok()? {
            Message::Binary(bytes) => {
                return Some(envelope::unwrap(&bytes, FRAME_LENGTH_MAX).unwrap());
            }
            Message::Close(_) => return None,
            _ => {}
        }
    }
}

async fn setup() -> (TestServer, Device, Genesis) {
    let server = TestServer::start().await;
    let device = server.device("ada").await;
    let genesis = device.create_workspace("home").await;
    (server, device, genesis)
}

#[tokio::test]
async fn commit_reaches_every_device_as_an_event() {
    let (server, writer, genesis) = setup().await;
    let reader = server.device("ada").await;
    let (mine, theirs) = (writer.log(&genesis).await, reader.log(&genesis).await);
    let mut own_events = mine.subscribe(0).await.unwrap();
    let mut events = theirs.subscribe(0).await.unwrap();
    let mut head = genesis.head();
    for node in 1..=20 {
        let started = Instant::now();
        head = mine.commit(&writer.commit(node, head)).await.unwrap();
        for stream in [&mut events, &mut own_events] {
            assert_eq!(stream.next().await.unwrap().unwrap().head(), head);
        }
        // Far below the heartbeat of the cursor: it was the event that brought it.
        assert!(started.elapsed() < Duration::from_secs(2));
    }
}

#[tokio::test]
async fn what_a_connection_has_brought_does_not_come_back_to_it() {
    let (server, writer, genesis) = setup().await;
    let reader = server.device("ada").await;
    let mut mine = open(&writer, Some(1)).await.unwrap();
    let mut theirs = open(&reader, Some(2)).await.unwrap();
    for socket in [&mut mine, &mut theirs] {
        ask(socket, &genesis, 1, Request::Subscribe { since: 0 }).await;
        let subscribed = ServerFrame::Reply { number: 1, reply: Reply::Subscribed };
        assert_eq!(next(socket).await, Some(subscribed));
    }
    let mut head = genesis.head();
    for number in 2..=4 {
        let commit = writer.commit(number as u8, head);
        ask(&mut mine, &genesis, number, Request::Commit(commit.clone())).await;
        let Some(ServerFrame::Reply { reply: Reply::Committed(stands_at), .. }) =
            next(&mut mine).await
        else {
            panic!("only the answer comes");
        };
        let entry = Entry { seq: head.seq + 1, previous: head.hash, commit };
        assert_eq!(entry.head(), stands_at);
        let event = ServerFrame::Event { workspace: genesis.workspace(), entry };
        assert_eq!(next(&mut theirs).await, Some(event));
        head = stands_at;
    }
}

#[tokio::test]
async fn pipelined_requests_are_all_answered_and_commits_keep_their_order() {
    let (_server, device, genesis) = setup().await;
    let mut socket = open(&device, Some(1)).await.unwrap();
    for number in 1..=200 {
        let request = match number % 2 {
            0 => Request::Head,
            _ => Request::Commit(device.commit(1, genesis.head())),
        };
        ask(&mut socket, &genesis, number, request).await;
    }
    let mut committed = Vec::new();
    for _ in 1..=200 {
        match next(&mut socket).await.unwrap() {
            ServerFrame::Reply { number, reply: Reply::Committed(head) } => {
                committed.push((number, head.seq));
            }
            ServerFrame::Reply { number, reply: Reply::Head(_) } => assert_eq!(number % 2, 0),
            other => panic!("{other:?}"),
        }
    }
    committed.sort_unstable();
    let seqs: Vec<_> = committed.iter().map(|(_, seq)| *seq).collect();
    assert_eq!(seqs, (1..=100).collect::<Vec<_>>());
}

#[tokio::test]
async fn garbage_is_refused_and_the_connection_lives() {
    let (_server, device, genesis) = setup().await;
    let mut socket = open(&device, Some(1)).await.unwrap();
    let good = envelope::wrap(&RequestFrame {
        number: 77,
        workspace: genesis.workspace(),
        request: Request::Head,
    });
    let mut newer = good.clone();
    newer[2] = 9;
    let mut unknown = good.clone();
    *unknown.last_mut().unwrap() = 99;
    let garbage = [vec![], vec![0], vec![9; 100], noise(1000), good[..10].to_vec(), newer, unknown];
    for bytes in garbage {
        socket.send(Message::Binary(bytes.clone().into())).await.unwrap();
        let ServerFrame::Reply { number, reply: Reply::Refused(refusal) } =
            next(&mut socket).await.unwrap()
        else {
            panic!("{bytes:?} is not refused")
        };
        assert_eq!(refusal.kind, RefusalKind::Invalid);
        assert!(number == 77 || bytes.get(3) != Some(&77), "the sender learns which one it was");
    }
    socket.send(Message::Binary(good.into())).await.unwrap();
    let reply = next(&mut socket).await.unwrap();
    assert_eq!(reply, ServerFrame::Reply { number: 77, reply: Reply::Head(genesis.head()) });
}

#[tokio::test]
async fn bombs_and_oversized_frames_harm_nobody() {
    let (_server, device, genesis) = setup().await;
    let log = device.log(&genesis).await;
    // Compresses to a few kilobytes, unpacks to more than a frame may have.
    let mut commit = device.commit(1, genesis.head());
    let action = Action::Put(vec![0; FRAME_LENGTH_MAX + 1]);
    commit.changes = vec![Change { node: model::testing::node(1), base: 0, action }];
    let mut socket = open(&device, Some(device.incarnation)).await.unwrap();
    ask(&mut socket, &genesis, 1, Request::Commit(commit)).await;
    let reply = next(&mut socket).await.unwrap();
    assert!(matches!(reply, ServerFrame::Reply { reply: Reply::Refused(_), .. }));
    // Longer than any frame: the connection ends, and only this one.
    let long = Message::Binary(vec![0; FRAME_LENGTH_MAX + 1000].into());
    let _ = socket.send(long).await;
    assert_eq!(next(&mut socket).await, None);
    let mut socket = open(&device, Some(device.incarnation)).await.unwrap();
    socket.send(Message::Text("hello".into())).await.unwrap();
    assert_eq!(next(&mut socket).await, None);
    assert_eq!(log.head().await.unwrap(), genesis.head());
}

#[tokio::test]
async fn slow_reader_holds_up_nobody_and_catches_up() {
    let (server, writer, genesis) = setup().await;
    let slow = server.device("ada").await;
    let mut socket = open(&slow, Some(1)).await.unwrap();
    ask(&mut socket, &genesis, 1, Request::Subscribe { since: 0 }).await;
    assert!(next(&mut socket).await.is_some());
    // Far more than the buffers of the system and the outbox hold, while the reader reads nothing.
    let log = writer.log(&genesis).await;
    let mut head = genesis.head();
    for node in 0..60 {
        let mut commit = writer.commit(node + 1, head);
        commit.changes[0].action = Action::Put(noise(1 << 20));
        head = log.commit(&commit).await.unwrap();
    }
    let mut last = 0;
    let (mut number, mut events) = (2, 0);
    ask(&mut socket, &genesis, number, Request::Entries { since: 0, length_max: 1 << 20 }).await;
    while last < head.seq {
        match next(&mut socket).await.unwrap() {
            ServerFrame::Event { .. } => events += 1,
            ServerFrame::Reply { reply: Reply::Entries(entries), .. } => {
                for entry in entries {
                    assert_eq!(entry.seq, last + 1);
                    last = entry.seq;
                }
                number += 1;
                let request = Request::Entries { since: last, length_max: 1 << 20 };
                ask(&mut socket, &genesis, number, request).await;
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(events < 60, "what did not fit was left out");
}

#[tokio::test]
async fn second_installation_of_a_device_is_refused_while_the_first_lives() {
    let (_server, device, genesis) = setup().await;
    let log = device.log(&genesis).await;
    let copy = Device { incarnation: device.incarnation ^ 1, ..device.clone() };
    let error = copy.open_log(genesis.workspace()).await.unwrap_err();
    assert!(error.is_refusal(RefusalKind::DeviceCloned), "{error:?}");
    log.commit(&device.commit(1, genesis.head())).await.expect("the first is not disturbed");
}

#[tokio::test]
async fn connection_that_gives_no_sign_of_life_makes_way() {
    let (_server, device, genesis) = setup().await;
    // Nobody reads this socket, so nobody answers its pings: as after a lost network.
    let dead = open(&device, Some(1)).await.unwrap();
    let mut socket = open(&device, Some(2)).await.expect("the dead connection makes way");
    ask(&mut socket, &genesis, 1, Request::Head).await;
    assert!(next(&mut socket).await.is_some());
    drop(dead);
}

#[tokio::test]
async fn connection_without_incarnation_or_token_is_refused() {
    let (_server, device, _) = setup().await;
    assert_eq!(open(&device, None).await.err(), Some(StatusCode::BAD_REQUEST));
    let stranger = Device { token: "x".to_owned(), ..device };
    assert_eq!(open(&stranger, Some(1)).await.err(), Some(StatusCode::UNAUTHORIZED));
}

#[tokio::test(flavor = "multi_thread")]
async fn devices_that_commit_at_once_all_get_a_place() {
    let (server, first, genesis) = setup().await;
    let mut logs = vec![(first.clone(), first.log(&genesis).await)];
    for _ in 0..3 {
        let device = server.device("ada").await;
        let log = device.log(&genesis).await;
        logs.push((device, log));
    }
    let genesis = &genesis;
    let commits = logs.iter().flat_map(|(device, log)| {
        (1..=25).map(move |node| async move {
            log.commit(&device.commit(node, genesis.head())).await.unwrap().seq
        })
    });
    let mut seqs = join_all(commits).await;
    seqs.sort_unstable();
    assert_eq!(seqs, (1..=100).collect::<Vec<_>>());
    let entries = logs[0].1.entries(0, u64::MAX).await.unwrap();
    entries.iter().fold(genesis.head(), |head, entry| {
        assert!(entry.follows(&head));
        entry.head()
    });
}

#[tokio::test]
async fn server_that_is_not_there_is_unreachable() {
    let (server, device, genesis) = setup().await;
    let connection = device.connection();
    server.stop().await;
    let error = connection.call(genesis.workspace(), Request::Head).await.unwrap_err();
    assert!(error.is_retryable(), "{error:?}");
}
