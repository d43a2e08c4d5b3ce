//! The door of deltas: new versions that come as what has changed in them.

use std::sync::Arc;
use std::time::Duration;

use commit_log::CommitLog;
use content::delta::{
    BaseVersion, ChunkClient, ChunkTable, DeltaError, DeltaPart, Next, Plain, Reconciled,
    Reconciler, ReverseClient, RsyncClient, SessionId, Tuning, body_of,
};
use content::{PackGuard, WorkspaceContentKeys, WorkspaceKeys, verify_whole};
use futures_util::StreamExt;
use model::codec::decode_message;
use model::{Action, Genesis, NodeKind, NodeRecord, PackId};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use server::Admin;

use crate::support::{Device, PushedClock, SystemRandom, TestServer, noise, random};

const CHUNK_SIZE: u32 = 16 << 10;

/// A server with a file, and a client that knows what it has sent.
struct Place {
    server: TestServer,
    device: Device,
    genesis: Genesis,
    plain: Plain,
    keys: WorkspaceContentKeys,
    guard: PackGuard,
}

/// What the server says to a delta.
#[derive(Debug)]
struct Answer {
    status: StatusCode,
    etag: String,
    bytes: Vec<u8>,
}

impl Answer {
    async fn of(request: reqwest::RequestBuilder, headers: &[(&str, &str)]) -> Self {
        let request =
            headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        let answer = request.send().await.unwrap();
        let etag = answer.headers().get("etag").map(|etag| etag.to_str().unwrap().to_owned());
        let (status, etag) = (answer.status(), etag.unwrap_or_default());
        Self { status, etag, bytes: answer.bytes().await.unwrap().to_vec() }
    }

    fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes).unwrap_or(Value::Null)
    }

    /// Returns status and code of a refusal.
    fn refusal(&self) -> (u16, String) {
        let code = self.json()["code"].as_str().unwrap_or_default().to_owned();
        (self.status.as_u16(), code)
    }
}

fn refused(status: u16, code: &str) -> (u16, String) {
    (status, code.to_owned())
}

/// A delta of our own method.
struct Delta {
    parts: Vec<Vec<u8>>,
}

impl Delta {
    fn body(&self) -> Vec<u8> {
        body_of(&self.parts)
    }
}

impl Place {
    async fn start() -> Self {
        let server = TestServer::start().await;
        let device = server.device("ada").await;
        Self::on(server, device).await
    }

    async fn on(server: TestServer, device: Device) -> Self {
        let genesis = device.create_workspace("home").await;
        let keys = WorkspaceKeys::open(&genesis, None, Arc::new(SystemRandom)).unwrap();
        let (guard, keys) = (keys.packs(), keys.content().clone());
        let plain = Plain::of(&genesis).unwrap();
        Self { server, device, genesis, plain, keys, guard }
    }

    fn at(&self, rest: &str) -> String {
        format!("/workspaces/{}/{rest}", self.genesis.workspace())
    }

    /// Puts a file; returns its etag.
    async fn put(&self, path: &str, bytes: &[u8]) -> String {
        let request = self.device.request(Method::PUT, &self.at(&format!("files/{path}")));
        let answer = request.body(bytes.to_vec()).send().await.unwrap();
        assert!(answer.status().is_success(), "{}", answer.status());
        answer.headers()["etag"].to_str().unwrap().to_owned()
    }

    async fn read(&self, path: &str) -> Vec<u8> {
        let request = self.device.request(Method::GET, &self.at(&format!("files/{path}")));
        request.send().await.unwrap().bytes().await.unwrap().to_vec()
    }

    /// Asks for the chunk list of a file.
    async fn list(&self, path: &str) -> ChunkTable {
        let request = self.device.request(Method::GET, &self.at(&format!("chunks/{path}")));
        let bytes = request.send().await.unwrap().bytes().await.unwrap();
        BaseVersion::decode(&bytes).unwrap().table().clone()
    }

    async fn send(&self, path: &str, body: Vec<u8>, headers: &[(&str, &str)]) -> Answer {
        self.send_as(&self.device, path, body, headers).await
    }

    async fn send_as(
        &self,
        device: &Device,
        path: &str,
        body: Vec<u8>,
        headers: &[(&str, &str)],
    ) -> Answer {
        let request = device.request(Method::POST, &self.at(&format!("delta/{path}")));
        Answer::of(request.body(body), headers).await
    }

    /// Cuts and sums up what a client has.
    fn survey(&self, bytes: &[u8]) -> BaseVersion {
        ChunkClient::survey(&self.keys, CHUNK_SIZE, &mut &*bytes).unwrap()
    }

    /// Makes a delta against a base.
    fn delta(&self, base: &BaseVersion, new: &[u8]) -> (Delta, ChunkClient) {
        let session = SessionId::from_bytes(random());
        let mut client = ChunkClient::new(&self.keys, self.genesis.workspace(), session);
        let mut parts = Vec::new();
        client.send_delta(base, None, &mut &*new, |part| self.take(part, &mut parts)).unwrap();
        (Delta { parts }, client)
    }

    fn take(&self, part: DeltaPart, parts: &mut Vec<Vec<u8>>) -> Result<(), DeltaError> {
        parts.push(part.into_message(self.plain)?);
        Ok(())
    }

    /// Returns how many entries the log has.
    async fn head(&self) -> u64 {
        self.device.get(&self.at("")[..self.at("").len() - 1]).await.1["head_seq"].as_u64().unwrap()
    }
}

#[tokio::test]
async fn edit_of_a_byte_costs_some_hundred_bytes_and_one_request() {
    let place = Place::start().await;
    let mut bytes = noise(1 << 20);
    // Bytes that do not compress would be cut coarser.
    for byte in &mut bytes {
        *byte &= 0xf;
    }
    let etag = place.put("a.bin", &bytes).await;
    let base = place.survey(&bytes);
    assert_eq!(place.list("a.bin").await, *base.table());
    bytes[500_000] ^= 1;
    let (delta, client) = place.delta(&base, &bytes);
    let body = delta.body();
    assert!(body.len() < 1000, "{}", body.len());
    let headers = [("if-match", &*etag), ("x-oc-mtime", "1600000000.5")];
    let answer = place.send("a.bin", body.clone(), &headers).await;
    assert_eq!(answer.status, StatusCode::OK, "{answer:?}");
    let node = answer.json();
    assert_eq!((&node["version"], &node["size"]), (&json!(2), &json!(1 << 20)));
    assert_eq!(
        (&node["modified"], &node["modified_ns"]),
        (&json!(1_600_000_000), &json!(500_000_000))
    );
    assert_eq!(answer.etag, node["etag"].as_str().unwrap());
    assert_ne!(answer.etag, etag);
    assert!(place.read("a.bin").await == bytes);
    assert_eq!(place.list("a.bin").await, *client.into_base().table());

    // Once more: the base is another one now, and nothing is committed.
    let head = place.head().await;
    assert_eq!(place.send("a.bin", body.clone(), &[]).await.refusal(), refused(409, "wrong_base"));
    let stale = place.send("a.bin", body, &[("if-match", &etag)]).await;
    assert_eq!(stale.refusal(), refused(412, "precondition_failed"));
    assert_eq!(stale.etag, answer.etag);
    assert_eq!(place.head().await, head);

    let Place { server, device, genesis, .. } = place;
    let _server = server.stop().await.start().await;
    let path = format!("/workspaces/{}/files/a.bin", genesis.workspace());
    let read = device.request(Method::GET, &path).send().await.unwrap();
    assert!(read.bytes().await.unwrap() == bytes);
}

#[tokio::test]
async fn who_is_shut_out_while_a_delta_comes_is_told_nothing_of_the_file() {
    let place = Place::start().await;
    place.put("a", &noise(100_000)).await;
    // A body that was announced to be short is received before anybody is asked, and another one in between.
    for is_announced in [false, true] {
        let lost = place.server.device("ada").await;
        let session = SessionId::from_bytes(random());
        let (_client, open) = RsyncClient::begin(place.plain, session, Tuning::Plus);
        let (body, mid) = (body_of(&[open]), 10);
        let (sender, rest) = tokio::sync::oneshot::channel::<Vec<u8>>();
        let first = futures_util::stream::iter([Ok(body[..mid].to_vec())]);
        let pieces = first.chain(futures_util::stream::once(rest));
        let mut request = lost.request(Method::POST, &place.at("delta/a"));
        if is_announced {
            request = request.header("content-length", body.len());
        }
        let sending = tokio::spawn(request.body(reqwest::Body::wrap_stream(pieces)).send());
        tokio::time::sleep(Duration::from_millis(200)).await;
        let path = format!("/devices/{}", lost.id);
        let removed = place.device.status(Method::DELETE, &path, vec![]).await;
        assert_eq!(removed, StatusCode::NO_CONTENT);
        sender.send(body[mid..].to_vec()).unwrap();
        let answer = sending.await.unwrap().unwrap();
        assert_eq!(answer.status(), StatusCode::UNAUTHORIZED, "{is_announced}: {answer:?}");
    }
}

#[tokio::test]
async fn log_says_of_a_delta_what_a_device_would_have_written() {
    let place = Place::start().await;
    let mut bytes = vec![7; 300_000];
    bytes.iter_mut().zip(noise(300_000)).for_each(|(byte, noise)| *byte = noise & 0xf);
    place.put("a", &bytes).await;
    let base = place.survey(&bytes);
    bytes.splice(100_000..100_000, *b"inserted");
    let (delta, client) = place.delta(&base, &bytes);
    assert_eq!(place.send("a", delta.body(), &[]).await.status, StatusCode::OK);

    let log = place.device.log(&place.genesis).await;
    let entry = log.entries(1, 1 << 20).await.unwrap().pop().unwrap();
    let Action::Put(payload) = &entry.commit.changes[0].action else { panic!("{entry:?}") };
    let record: NodeRecord = decode_message(payload).unwrap();
    let NodeKind::File(content) = record.kind else { panic!("{record:?}") };
    let new = client.into_base();
    assert_eq!((content.size, content.chunk_size), (300_008, CHUNK_SIZE));
    assert_eq!(content.chunks, new.table().chunks());
    // Only what the workspace had not is in the pack.
    let [pack] = &entry.commit.inline_packs[..] else { panic!("{entry:?}") };
    let id = PackId::from_bytes(*blake3::hash(pack).as_bytes());
    let index = verify_whole(id, pack, &place.guard).unwrap();
    let packed: Vec<_> = index.packed_chunks().map(|packed| packed.chunk).collect();
    let is_new = |chunk: &&_| !base.table().chunks().contains(chunk);
    let fresh: Vec<_> = new.table().chunks().iter().filter(is_new).copied().collect();
    assert_eq!(packed, fresh);
    assert!(!fresh.is_empty() && fresh.len() < 4);
}

#[tokio::test]
async fn edits_of_media_store_what_is_new_in_them_and_in_the_log_itself() {
    let place = Place::start().await;
    let mut bytes = noise(2 << 20);
    place.put("film", &bytes).await;
    let mut base =
        ChunkClient::survey(&place.keys, place.list("film").await.chunk_size(), &mut &bytes[..])
            .unwrap();
    // How long the last chunk is depends on where the file ends, and on the key of this run.
    let (_, others) = base.table().chunks().split_last().unwrap();
    assert!(others.iter().all(|chunk| chunk.length > 100_000), "{others:?}");
    let log = place.device.log(&place.genesis).await;
    let mut costs = Vec::new();
    for edit in 0..10_usize {
        let at = (1 << 20) + 5000 * edit;
        bytes.splice(at..at, noise(100));
        let (delta, client) = place.delta(&base, &bytes);
        let answer = place.send("film", delta.body(), &[]).await;
        assert_eq!(answer.status, StatusCode::OK, "{answer:?}");
        base = client.into_base();
        assert!(place.read("film").await == bytes);
        assert_eq!(place.list("film").await, *base.table());
        let head = log.head().await.unwrap().seq;
        let commit = log.entries(head - 1, 1 << 20).await.unwrap().pop().unwrap().commit;
        let has_deltas = commit.inline_packs.iter().any(|pack| {
            let id = PackId::from_bytes(*blake3::hash(pack).as_bytes());
            verify_whole(id, pack, &place.guard).unwrap().has_deltas()
        });
        // Programs that would not keep what a delta is made from are told of it.
        assert_eq!(commit.has_deltas, has_deltas);
        costs.push(if commit.packs.is_empty() {
            commit.inline_packs.iter().map(Vec::len).sum()
        } else {
            usize::MAX
        });
    }
    // After some deltas in a row a chunk is stored whole, in a pack of its own.
    let small = costs.iter().filter(|cost| **cost < 1000).count();
    let whole = costs.iter().filter(|cost| **cost == usize::MAX).count();
    assert!(small >= 9 && small + whole == costs.len(), "{costs:?}");

    let Place { server, device, genesis, .. } = place;
    let _server = server.stop().await.start().await;
    let path = format!("/workspaces/{}/files/film", genesis.workspace());
    let read = device.request(Method::GET, &path).send().await.unwrap();
    assert!(read.bytes().await.unwrap() == bytes);
}

#[tokio::test]
async fn client_that_knows_nothing_learns_the_list_and_the_sums() {
    let place = Place::start().await;
    let mut bytes: Vec<u8> = noise(1 << 20).iter().map(|byte| byte & 0xf).collect();
    place.put("a", &bytes).await;
    bytes[77] ^= 1;
    bytes.drain(600_000..600_100);
    let workspace = place.genesis.workspace();
    let (mut reconciler, mut ask) = Reconciler::begin(workspace, &SystemRandom);
    let base = loop {
        let answer = place.send("a", body_of(&[ask]), &[]).await;
        assert_eq!(answer.status, StatusCode::ACCEPTED);
        match reconciler.take(&answer.bytes, &place.keys, &mut &bytes[..]).unwrap() {
            Reconciled::Base(base) => break base,
            Reconciled::More(more) => ask = more,
        }
    };
    assert_eq!(place.list("a").await, *base.table());
    let ask = reconciler.ask_sums(place.plain, &base).unwrap();
    let answer = place.send("a", body_of(std::slice::from_ref(&ask)), &[]).await;
    assert_eq!(answer.status, StatusCode::ACCEPTED);
    let base = reconciler.take_sums(base, &answer.bytes).unwrap();
    let (delta, _) = place.delta(&base, &bytes);
    assert!(delta.body().len() < 2500, "{}", delta.body().len());
    assert_eq!(place.head().await, 1);
    assert_eq!(place.send("a", delta.body(), &[]).await.status, StatusCode::OK);
    assert!(place.read("a").await == bytes);
    // What is asked of a base that is gone is told so.
    assert_eq!(place.send("a", body_of(&[ask]), &[]).await.refusal(), refused(409, "wrong_base"));
}

#[tokio::test]
async fn chunks_that_come_out_wrong_are_wanted_and_come_with_the_second_request() {
    let place = Place::start().await;
    let mut bytes: Vec<u8> = noise(200_000).iter().map(|byte| byte & 0xf).collect();
    place.put("a", &bytes).await;
    // The sums of a damaged sketch: they say that the old bytes are what they are not. A cut that moved would give it away.
    let lengths = |bytes: &[u8]| {
        let chunks = place.survey(bytes).table().chunks().to_vec();
        chunks.iter().map(|chunk| chunk.length).collect::<Vec<_>>()
    };
    let mut damaged = bytes.clone();
    let spot = (50_000..).step_by(1000).find(|&spot| {
        damaged.copy_from_slice(&bytes);
        damaged[spot] ^= 1;
        lengths(&damaged) == lengths(&bytes)
    });
    let spot = spot.unwrap();
    let (sketch, table) = (place.survey(&damaged).encode(), place.survey(&bytes));
    let list = BaseVersion::without_sketch(table.table().clone()).encode();
    let sums = &sketch[list.len()..];
    let base = [&list[..list.len() - 1], &[1], sums].concat();
    let base = BaseVersion::decode(&base).unwrap();
    bytes[spot] ^= 1;
    bytes[spot + 700] ^= 1;
    let (mut delta, mut client) = place.delta(&base, &bytes);
    let answer = place.send("a", delta.body(), &[]).await;
    assert_eq!(answer.status, StatusCode::ACCEPTED, "{answer:?}");
    assert_eq!(place.head().await, 1);
    let mut more = Vec::new();
    let is_done = client
        .take_answer(&answer.bytes, &mut &bytes[..], |part| place.take(part, &mut more))
        .unwrap();
    assert!(!is_done && !more.is_empty());
    delta.parts.extend(more);
    assert_eq!(place.send("a", delta.body(), &[]).await.status, StatusCode::OK);
    assert!(place.read("a").await == bytes);
}

/// A file, and versions of which each has changed it elsewhere.
fn rival_edits() -> (Vec<u8>, Vec<Vec<u8>>) {
    let old: Vec<u8> = noise(300_000).iter().map(|byte| byte & 0xf).collect();
    let edit = |number: usize| {
        let mut bytes = old.clone();
        bytes[number * 30_000] ^= 1;
        bytes
    };
    let edits = (0..8).map(edit).collect();
    (old, edits)
}

/// Checks that one of such versions was put, and the others were refused; returns its number.
async fn winner(place: &Place, edits: &[Vec<u8>], answers: &[Answer]) -> usize {
    let done = |answer: &Answer| answer.status == StatusCode::OK;
    let winner = answers.iter().position(done).unwrap();
    for (number, answer) in answers.iter().enumerate().filter(|(number, _)| *number != winner) {
        assert_eq!(answer.refusal(), refused(409, "wrong_base"), "{number}");
    }
    assert!(place.read("a").await == edits[winner]);
    assert_eq!(place.head().await, 2);
    winner
}

#[tokio::test]
async fn who_was_first_loses_nothing_to_a_delta() {
    let place = Place::start().await;
    let (old, edits) = rival_edits();
    place.put("a", &old).await;
    let base = place.survey(&old);
    let sends = edits.iter().map(|bytes| {
        let body = place.delta(&base, bytes).0.body();
        place.send("a", body, &[])
    });
    let answers = futures_util::future::join_all(sends).await;
    let winner = winner(&place, &edits, &answers).await;

    // A new name, and the same bytes: the delta is still right, and its version follows the move.
    let base = place.survey(&edits[winner]);
    let (delta, _) = place.delta(&base, &old);
    let moved = json!({ "from": "a", "to": "b" });
    place.device.request(Method::POST, &place.at("move")).json(&moved).send().await.unwrap();
    assert_eq!(place.send("a", delta.body(), &[]).await.refusal(), refused(404, "not_found"));
    assert_eq!(place.send("b", delta.body(), &[]).await.status, StatusCode::OK);
    assert!(place.read("b").await == old);
}

#[tokio::test]
async fn forged_and_broken_deltas_change_nothing() {
    let place = Place::start().await;
    let old: Vec<u8> = noise(60_000).iter().map(|byte| byte & 0xf).collect();
    place.put("a", &old).await;
    place.device.status(Method::PUT, &place.at("folders/f"), vec![]).await;
    let head = place.head().await;
    let mut new = old.clone();
    new[30_000] ^= 1;
    let base = place.survey(&old);
    let (delta, _) = place.delta(&base, &new);
    let body = delta.body();
    let invalid = refused(400, "invalid");
    let flipped = |place: usize| {
        let mut body = body.clone();
        body[place] ^= 1;
        body
    };
    let mut expected = vec![
        (Vec::new(), invalid.clone()),
        (b"no delta".to_vec(), refused(413, "too_large")),
        (body[..body.len() - 1].to_vec(), invalid.clone()),
        ([&body[..], &[0]].concat(), invalid.clone()),
        ([&body[..], &body[..]].concat(), invalid.clone()),
        // A lying digest: behind length, head, session, number, workspace, base and count.
        (flipped(4 + 3 + 16 + 1 + 33 + 2), refused(422, "unverified")),
        // Another workspace than that of the address.
        (flipped(4 + 3 + 16 + 2), invalid.clone()),
    ];
    // Another chunk than the base has: the digest of the list says so.
    let forged = ChunkTable::new(CHUNK_SIZE, base.table().chunks()[1..].to_vec()).unwrap();
    let (other, _) = place.delta(&BaseVersion::without_sketch(forged), &new);
    expected.push((other.body(), refused(409, "wrong_base")));
    for (number, (body, expected)) in expected.into_iter().enumerate() {
        assert_eq!(place.send("a", body, &[]).await.refusal(), expected, "{number}");
    }
    // No byte that is flipped anywhere does harm: an error, a wish, or the very version.
    let mut outcomes = std::collections::BTreeSet::new();
    let session = 7..23;
    for at in (4..body.len()).filter(|at| !session.contains(at)) {
        let answer = place.send("a", flipped(at), &[]).await;
        let is_same = answer.status == StatusCode::OK;
        assert!(!answer.status.is_server_error() && !is_same, "{at}: {answer:?}");
        outcomes.insert(answer.status.as_u16());
    }
    assert!(
        outcomes.contains(&202) && outcomes.contains(&400) && outcomes.contains(&409),
        "{outcomes:?}"
    );
    let with_sum = place.send("a", body.clone(), &[("oc-checksum", "MD5:00")]).await;
    assert_eq!(with_sum.refusal(), invalid);
    assert_eq!(place.send("f", body.clone(), &[]).await.refusal(), refused(409, "conflict"));
    assert_eq!(place.send("g", body.clone(), &[]).await.refusal(), refused(404, "not_found"));
    assert_eq!(place.head().await, head);
    assert!(place.read("a").await == old);
    // The delta itself was right.
    assert_eq!(place.send("a", body, &[]).await.status, StatusCode::OK);
    assert!(place.read("a").await == new);
}

#[tokio::test]
async fn strangers_and_viewers_are_refused() {
    let place = Place::start().await;
    place.put("a", b"old").await;
    let (delta, _) = place.delta(&place.survey(b"old"), b"new");
    let bob = place.server.device("bob").await;
    let answer = place.send_as(&bob, "a", delta.body(), &[]).await;
    assert_eq!(answer.refusal(), refused(404, "not_found"));
    // Nor are they told what else would be wrong.
    let answer = place.send_as(&bob, "a", delta.body(), &[("oc-checksum", "SHA1:00")]).await;
    assert_eq!(answer.refusal(), refused(404, "not_found"));
    let role = json!({ "role": "view" });
    let member = place.device.request(Method::PUT, &place.at("members/bob")).json(&role);
    assert_eq!(member.send().await.unwrap().status(), StatusCode::CREATED);
    let answer = place.send_as(&bob, "a", delta.body(), &[]).await;
    assert_eq!(answer.refusal(), refused(403, "forbidden"));
    let (status, _) = bob.get(&place.at("chunks/a")).await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(place.read("a").await, b"old");
}

#[tokio::test]
async fn empty_files_grow_and_long_ones_become_empty() {
    let place = Place::start().await;
    place.put("a", b"").await;
    let base = BaseVersion::without_sketch(place.list("a").await);
    assert!(base.table().chunks().is_empty());
    let bytes: Vec<u8> = noise(100_000).iter().map(|byte| byte & 0xf).collect();
    let (delta, client) = place.delta(&base, &bytes);
    assert_eq!(place.send("a", delta.body(), &[]).await.status, StatusCode::OK);
    assert!(place.read("a").await == bytes);
    let base = client.into_base();
    let (delta, client) = place.delta(&base, b"");
    assert_eq!(place.send("a", delta.body(), &[]).await.status, StatusCode::OK);
    assert_eq!(place.read("a").await, b"");
    // Nothing to nothing is no new version.
    let head = place.head().await;
    let (delta, _) = place.delta(&client.into_base(), b"");
    let mtime = [("x-oc-mtime", "1700000000")];
    assert_eq!(place.send("a", delta.body(), &mtime).await.status, StatusCode::OK);
    assert_eq!(place.head().await, head);
}

#[tokio::test]
async fn large_file_has_lists_and_a_quota() {
    let place = Place::start().await;
    let mut bytes: Vec<u8> = noise(12 << 20).iter().map(|byte| byte & 0xf).collect();
    let etag = place.put("a", &bytes).await;
    let base = place.survey(&bytes);
    assert!(base.table().chunks().len() > 256);
    assert_eq!(place.list("a").await, *base.table());
    let path = place.at("chunks/a");
    let known = place.device.request(Method::GET, &path).header("if-none-match", &etag);
    let known = known.send().await.unwrap();
    assert_eq!(
        (known.status(), known.headers()["etag"].to_str().unwrap()),
        (StatusCode::NOT_MODIFIED, &*etag)
    );
    bytes.splice(5_000_000..5_000_100, noise(3_000_000));
    let (delta, _) = place.delta(&base, &bytes);
    assert!(delta.parts.len() > 10);
    let used = place.device.get("/whoami").await.1["used_bytes"].as_u64().unwrap();
    Admin::open(place.server.data()).unwrap().set_quota("ada", Some(used + 100_000)).unwrap();
    let full = place.send("a", delta.body(), &[]).await;
    assert_eq!(full.refusal(), refused(507, "over_quota"));
    Admin::open(place.server.data()).unwrap().set_quota("ada", None).unwrap();
    assert_eq!(place.send("a", delta.body(), &[]).await.status, StatusCode::OK);
    assert!(place.read("a").await == bytes);
    let old = place.device.request(Method::GET, &format!("{path}?version=1")).send().await.unwrap();
    let old = BaseVersion::decode(&old.bytes().await.unwrap()).unwrap();
    assert_eq!(old.table(), base.table());
}

#[tokio::test]
async fn delta_that_comes_in_pieces_goes_on_where_it_was_and_is_taken_once() {
    let place = Place::start().await;
    let mut bytes: Vec<u8> = noise(2 << 20).iter().map(|byte| byte & 0xf).collect();
    let etag = place.put("a b", &bytes).await;
    let base = place.survey(&bytes);
    bytes.splice(1_000_000..1_000_100, noise(500_000));
    let body = place.delta(&base, &bytes).0.body();
    let begin = async || {
        let request = place.device.request(Method::POST, &place.at("uploads"));
        let begun = request.json(&json!({ "path": "a%20b" })).send().await.unwrap();
        let begun: Value = begun.json().await.unwrap();
        place.at(&format!("uploads/{}", begun["id"].as_str().unwrap()))
    };
    let piece = async |upload: &str, from: usize, bytes: &[u8]| {
        let request = place.device.request(Method::PATCH, upload);
        let request = request.header("upload-offset", from.to_string());
        request.body(bytes.to_vec()).send().await.unwrap().status()
    };
    let end = async |upload: &str, headers: &[(&str, &str)]| {
        let request = place.device.request(Method::POST, &format!("{upload}/delta"));
        Answer::of(request, headers).await
    };
    let upload = begin().await;
    assert_eq!(piece(&upload, 0, &body[..200_000]).await, StatusCode::OK);
    assert_eq!(piece(&upload, 0, &body).await, StatusCode::CONFLICT);
    assert_eq!(piece(&upload, 200_000, &body[200_000..]).await, StatusCode::OK);
    let head = place.head().await;
    // What is refused is kept, and nothing is put.
    let used = place.device.get("/whoami").await.1["used_bytes"].as_u64().unwrap();
    let set_quota = |quota| Admin::open(place.server.data()).unwrap().set_quota("ada", quota);
    set_quota(Some(used + 1000)).unwrap();
    assert_eq!(end(&upload, &[]).await.refusal(), refused(507, "over_quota"));
    set_quota(None).unwrap();
    let other = [("if-match", "\"other\"")];
    assert_eq!(end(&upload, &other).await.refusal(), refused(412, "precondition_failed"));
    let summed = end(&upload, &[("oc-checksum", "SHA1:00")]).await;
    assert_eq!(summed.refusal(), refused(400, "invalid"));
    assert_eq!(place.head().await, head);
    let headers = [("if-match", &*etag), ("x-oc-mtime", "1000")];
    let put = end(&upload, &headers).await;
    assert_eq!((put.status, &put.json()["modified"]), (StatusCode::OK, &json!(1000)), "{put:?}");
    assert!(place.read("a%20b").await == bytes);
    assert_eq!(end(&upload, &headers).await.refusal(), refused(404, "not_found"));

    // Half of one is none, and neither is a file: as such nobody puts it by mistake.
    let head = place.head().await;
    for half in [&body[..body.len() / 2], &bytes[..300_000]] {
        let upload = begin().await;
        assert_eq!(piece(&upload, 0, half).await, StatusCode::OK);
        assert!(end(&upload, &[]).await.status.is_client_error());
    }
    let bob = place.server.device("bob").await;
    let upload = begin().await;
    let stranger = bob.request(Method::POST, &format!("{upload}/delta"));
    assert_eq!(Answer::of(stranger, &[]).await.refusal(), refused(404, "not_found"));
    assert_eq!(place.head().await, head);
}

/// Begins a session of the rsync family for a version; returns the bytes up, and the body that ends it.
async fn begin_by_family(
    place: &Place,
    is_reverse: bool,
    tuning: Tuning,
    new: &[u8],
) -> (usize, Vec<u8>) {
    let session = SessionId::from_bytes(random());
    let mut parts = Vec::new();
    let mut keep = |part| {
        parts.push(part);
        Ok::<_, DeltaError>(())
    };
    let begin = async |message| {
        let first = body_of(&[message]);
        let answer = place.send("a", first.clone(), &[]).await;
        assert_eq!(answer.status, StatusCode::ACCEPTED, "{answer:?}");
        (first.len(), answer.bytes)
    };
    let up = if is_reverse {
        let (mut client, sums) =
            ReverseClient::begin(place.plain, session, tuning, &mut &*new).unwrap();
        let (up, matches) = begin(sums).await;
        client.take_matches(&matches, &mut &*new, &mut keep).unwrap();
        up
    } else {
        let (mut client, open) = RsyncClient::begin(place.plain, session, tuning);
        let (up, sums) = begin(open).await;
        client.take_sums(&sums, &mut &*new, &mut keep).unwrap();
        up
    };
    (up, body_of(&parts))
}

/// Sends a version by a method of the rsync family; returns the last answer and the bytes up.
async fn by_family(place: &Place, is_reverse: bool, tuning: Tuning, new: &[u8]) -> (Answer, usize) {
    let (up, body) = begin_by_family(place, is_reverse, tuning, new).await;
    let up = up + body.len();
    (place.send("a", body, &[]).await, up)
}

#[tokio::test]
async fn of_sessions_that_end_at_once_one_puts_its_version() {
    for is_reverse in [false, true] {
        let place = Place::start().await;
        let (old, edits) = rival_edits();
        place.put("a", &old).await;
        let mut bodies = Vec::new();
        for bytes in &edits {
            bodies.push(begin_by_family(&place, is_reverse, Tuning::Plus, bytes).await.1);
        }
        let sends = bodies.into_iter().map(|body| place.send("a", body, &[]));
        let answers = futures_util::future::join_all(sends).await;
        winner(&place, &edits, &answers).await;
    }
}

#[tokio::test]
async fn methods_of_the_rsync_family_bring_the_same_versions() {
    let place = Place::start().await;
    let mut bytes: Vec<u8> = noise(1 << 20).iter().map(|byte| byte & 0xf).collect();
    place.put("a", &bytes).await;
    let mut version = 1;
    for tuning in [Tuning::Classic, Tuning::Plus, Tuning::Careful] {
        for is_reverse in [false, true] {
            bytes.splice(400_000..400_000, noise(100));
            let (answer, up) = by_family(&place, is_reverse, tuning, &bytes).await;
            assert_eq!(answer.status, StatusCode::OK, "{answer:?}");
            version += 1;
            assert_eq!(answer.json()["version"], json!(version));
            assert!(up < 20_000, "{tuning:?} {is_reverse}: {up}");
            assert!(place.read("a").await == bytes);
        }
    }
    // They are cut like any other: our own method goes on from them.
    let base = place.survey(&bytes);
    assert_eq!(place.list("a").await, *base.table());
}

/// So much is new that packs of it are stored before the whole is compared.
#[tokio::test]
async fn long_version_of_the_rsync_family_is_put_as_a_whole_or_not_at_all() {
    let place = Place::start().await;
    let mut bytes = noise(8 << 20);
    place.put("a", &bytes).await;
    let old = bytes.clone();
    bytes.splice(5_000_000..5_000_100, noise(3_000_000));
    let used = place.device.get("/whoami").await.1["used_bytes"].as_u64().unwrap();
    let quota = |bytes| Admin::open(place.server.data()).unwrap().set_quota("ada", bytes).unwrap();
    let head = place.head().await;
    for is_reverse in [false, true] {
        quota(Some(used + 100_000));
        let (full, _) = by_family(&place, is_reverse, Tuning::Plus, &bytes).await;
        assert_eq!(full.refusal(), refused(507, "over_quota"));
        quota(None);
        assert_eq!(place.head().await, head);
        assert!(place.read("a").await == old);
    }
    // The file changes while it is sent.
    let session = SessionId::from_bytes(random());
    let (mut client, sums) =
        ReverseClient::begin(place.plain, session, Tuning::Plus, &mut &bytes[..]).unwrap();
    let matches = place.send("a", body_of(&[sums]), &[]).await.bytes;
    let (mut parts, mut changed) = (Vec::new(), bytes.clone());
    changed[7_900_000] ^= 1;
    let keep = |part| {
        parts.push(part);
        Ok::<_, DeltaError>(())
    };
    client.take_matches(&matches, &mut &changed[..], keep).unwrap();
    let answer = place.send("a", body_of(&parts), &[]).await;
    assert_eq!(answer.status, StatusCode::ACCEPTED, "{answer:?}");
    assert!(client.take_answer(&answer.bytes).is_ok_and(|next| next != Next::Done));
    assert_eq!(place.head().await, head);
    assert!(place.read("a").await == old);
    for is_reverse in [false, true] {
        let (answer, _) = by_family(&place, is_reverse, Tuning::Plus, &bytes).await;
        assert_eq!(answer.status, StatusCode::OK, "{answer:?}");
        assert!(place.read("a").await == bytes);
        bytes.truncate(9_000_000);
    }
}

#[tokio::test]
async fn sessions_are_of_who_began_them_and_end() {
    let server = TestServer::start().await.stop().await;
    let clock = Arc::new(PushedClock::default());
    let pushed = Arc::clone(&clock);
    let server = TestServer::start_again(&server, |options| options.clock = pushed).await.unwrap();
    let device = server.device("ada").await;
    let place = Place::on(server, device).await;
    let (old, new) = (noise(50_000), noise(60_000));
    place.put("a", &old).await;
    place.put("b", &old).await;
    let begin = async |session: SessionId| {
        let (mut client, open) = RsyncClient::begin(place.plain, session, Tuning::Plus);
        let answer = place.send("a", body_of(&[open]), &[]).await;
        let mut parts = Vec::new();
        if answer.status == StatusCode::ACCEPTED {
            let keep = |part| {
                parts.push(part);
                Ok::<_, DeltaError>(())
            };
            client.take_sums(&answer.bytes, &mut &new[..], keep).unwrap();
        }
        (answer, client, body_of(&parts))
    };
    let id = || SessionId::from_bytes(random());
    let gone = refused(410, "session_gone");

    // Not at another path, and then not at its own: whoever takes it has it.
    let (_, _, recipe) = begin(id()).await;
    assert_eq!(place.send("b", recipe.clone(), &[]).await.refusal(), gone);
    assert_eq!(place.send("a", recipe, &[]).await.refusal(), gone);
    // Not for another device of the same account.
    let (_, _, recipe) = begin(id()).await;
    let other = place.server.device("ada").await;
    assert_eq!(place.send_as(&other, "a", recipe.clone(), &[]).await.refusal(), gone);
    // Not broken off, and then it has ended.
    let broken = body_of(&[recipe[4..recipe.len() - 1].to_vec()]);
    assert_eq!(place.send("a", broken, &[]).await.refusal(), refused(400, "invalid"));
    assert_eq!(place.send("a", recipe, &[]).await.refusal(), gone);
    // Not too late.
    let (_, _, recipe) = begin(id()).await;
    clock.push(Duration::from_secs(61));
    assert_eq!(place.send("a", recipe, &[]).await.refusal(), gone);
    // Not too many.
    for _ in 0..8 {
        assert_eq!(begin(id()).await.0.status, StatusCode::ACCEPTED);
    }
    assert_eq!(begin(id()).await.0.refusal(), refused(503, "unavailable"));
    clock.push(Duration::from_secs(61));
    // Not against another version.
    let (_, _, recipe) = begin(id()).await;
    place.put("a", b"of somebody else").await;
    assert_eq!(place.send("a", recipe, &[]).await.refusal(), refused(409, "wrong_base"));
    assert_eq!(place.read("a").await, b"of somebody else");

    // What comes out as something else is thrown away, and the client begins again.
    let (_, client, mut recipe) = begin(id()).await;
    recipe[30_000] ^= 1;
    let answer = place.send("a", recipe, &[]).await;
    assert_eq!(answer.status, StatusCode::ACCEPTED, "{answer:?}");
    assert_eq!(client.take_answer(&answer.bytes).unwrap(), Next::Again(Tuning::Careful));
    assert_eq!(place.read("a").await, b"of somebody else");
}
