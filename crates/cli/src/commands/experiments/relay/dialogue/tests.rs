//! Whatever a dialogue is cut into, the same bytes are contents.

use model::wire::Request;
use model::{DeviceId, Entry, EntryHash, Head, OpId, PackId, PackRef, Timestamp, WorkspaceId};

use super::*;

fn commit(inline: &[usize]) -> Commit {
    Commit {
        op_id: OpId::from_bytes([1; 16]),
        device: DeviceId::from_bytes([2; 16]),
        device_name: "first".to_owned(),
        time: Timestamp { seconds: 1, nanoseconds: 2 },
        seen: Head { seq: 0, hash: EntryHash::from_bytes([3; 32]) },
        changes: Vec::new(),
        packs: vec![PackRef { id: PackId::from_bytes([4; 32]), length: 5 }],
        inline_packs: inline.iter().map(|length| vec![6; *length]).collect(),
        has_deltas: false,
        seal: None,
    }
}

/// A message as frames, of which the first has at most so many bytes of it.
fn frames(message: &[u8], mask: Option<[u8; 4]>, first: usize) -> Vec<u8> {
    let (start, rest) = message.split_at(first.min(message.len()));
    let mut bytes = Vec::new();
    for (number, part) in [start, rest].into_iter().enumerate() {
        // A binary message that goes on, and its end.
        bytes.push([0x02, 0x80][number]);
        let is_masked = if mask.is_some() { 0x80 } else { 0 };
        match part.len() {
            short @ 0..126 => bytes.push(is_masked | short as u8),
            _ => {
                bytes.push(is_masked | 126);
                bytes.extend_from_slice(&(part.len() as u16).to_be_bytes());
            }
        }
        bytes.extend_from_slice(&mask.map_or(Vec::new(), |mask| mask.to_vec()));
        let mask = mask.unwrap_or_default();
        bytes.extend(part.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask));
        // A ping between two frames belongs to no message.
        bytes.extend_from_slice(&[0x89, is_masked]);
        bytes.extend_from_slice(if is_masked == 0 { &[] } else { &[9; 4] });
    }
    bytes
}

/// Lets both sides speak in turn, in pieces of so many bytes; returns the contents that either side has said.
fn heard(turns: &[(Side, Vec<u8>)], piece: usize) -> Result<[u64; 2], NotUnderstood> {
    let mut known = Known::default();
    let mut device = Listener::new(Side::Device);
    let mut server = Listener::new(Side::Server);
    let mut counts = [0, 0];
    for (side, bytes) in turns {
        for piece in bytes.chunks(piece) {
            match side {
                Side::Device => counts[0] += device.hear(piece, &mut known)?,
                Side::Server => counts[1] += server.hear(piece, &mut known)?,
            }
        }
    }
    Ok(counts)
}

fn text(words: &str) -> Vec<u8> {
    words.as_bytes().to_vec()
}

#[test]
fn packs_are_contents_and_all_else_is_not() {
    use Side::{Device, Server};
    let turns = [
        (Device, text("GET /api/v1/whoami HTTP/1.1\r\nhost: a\r\n\r\n")),
        (Server, text("HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nada")),
        (
            Device,
            text("PUT /api/v1/workspaces/w/packs/ab HTTP/1.1\r\nContent-Length: 5\r\n\r\npacks"),
        ),
        (
            Server,
            text("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\ncontent-length: 0\r\n\r\n"),
        ),
        (Device, text("HEAD /api/v1/workspaces/w/packs/ab HTTP/1.1\r\n\r\n")),
        (Server, text("HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n")),
        (Device, text("GET /api/v1/workspaces/w/packs/ab?a=b HTTP/1.1\r\n\r\n")),
        (Device, text("GET /api/v1/workspaces/w/packs/ab/direct HTTP/1.1\r\n\r\n")),
        (
            Server,
            text(
                "HTTP/1.1 206 Partial Content\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\n\r\n",
            ),
        ),
        (Server, text("HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nnull")),
        (Device, text("GET /api/v1/workspaces/w/packs/cd HTTP/1.1\r\n\r\n")),
        (Server, text("HTTP/1.1 404 Not Found\r\ncontent-length: 7\r\n\r\nnothing")),
        (Device, text("GET /api/v1/workspaces/w/packs/ef HTTP/1.1\r\n\r\n")),
        (Server, text("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nto the end")),
    ];
    for piece in [1, 7, 10_000] {
        assert_eq!(heard(&turns, piece), Ok([5, 13 + 10]), "{piece}");
    }
}

#[test]
fn packs_inside_commits_are_contents_in_frames_of_both_sides() {
    let workspace = WorkspaceId::from_bytes([7; 16]);
    let asks = |request| envelope::wrap(&RequestFrame { number: 1, workspace, request });
    let entry = |inline: &[usize]| Entry {
        seq: 1,
        previous: EntryHash::from_bytes([3; 32]),
        commit: commit(inline),
    };
    let event = envelope::wrap(&ServerFrame::Event { workspace, entry: entry(&[300]) });
    let reply = Reply::Entries(vec![entry(&[10, 20]), entry(&[])]);
    let reply = envelope::wrap(&ServerFrame::Reply { number: 2, reply });
    let mask = Some([1, 2, 3, 250]);
    let turns = [
        (Side::Device, text("GET /api/v1/live HTTP/1.1\r\nupgrade: websocket\r\n\r\n")),
        (Side::Server, text("HTTP/1.1 101 Switching Protocols\r\n\r\n")),
        (Side::Device, frames(&asks(Request::Commit(commit(&[1000, 24]))), mask, 5)),
        (Side::Device, frames(&asks(Request::Head), mask, 100)),
        (Side::Server, [frames(&event, None, 200), frames(&reply, None, 1)].concat()),
    ];
    for piece in [1, 3, 10_000] {
        assert_eq!(heard(&turns, piece), Ok([1024, 330]), "{piece}");
    }
}

#[test]
fn what_is_not_understood_is_no_guess() {
    use Side::{Device, Server};
    let put = "PUT /packs/a HTTP/1.1\r\n";
    for turns in [
        vec![(Server, text("HTTP/1.1 200 OK\r\n\r\n"))],
        vec![(Device, text(&"x".repeat(HEAD_MAX)))],
        vec![(Device, text(&format!("{put}content-length: many\r\n\r\n")))],
        vec![(Device, text(&format!("{put}transfer-encoding: chunked\r\n\r\nmany\r\n")))],
        vec![
            (Device, text("GET /live HTTP/1.1\r\n\r\n")),
            (Server, text("HTTP/1.1 101 Switching Protocols\r\n\r\n")),
            (Server, frames(b"\x00nonsense", None, 100)),
        ],
    ] {
        assert!(heard(&turns, 10_000).is_err(), "{turns:?}");
    }
}
