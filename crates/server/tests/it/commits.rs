//! Commits at the door for those who can open no live connection.

use model::codec::{decode_message, encode_message};
use model::commit::COMMIT_LENGTH_MAX;
use model::wire::{Reply, ServerFrame};
use model::{Commit, EntryHash, Genesis, Head, PackRef};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::{Device, TestServer, noise, pack_id};

async fn post(device: &Device, genesis: &Genesis, body: Vec<u8>) -> (StatusCode, Vec<u8>) {
    let path = format!("/workspaces/{}/log", genesis.workspace());
    let answer = device.request(Method::POST, &path).body(body).send().await.unwrap();
    (answer.status(), answer.bytes().await.unwrap().to_vec())
}

async fn commit(device: &Device, genesis: &Genesis, commit: &Commit) -> Result<Head, String> {
    let (status, body) = post(device, genesis, encode_message(commit)).await;
    if status != StatusCode::OK {
        return Err(code(status, &body));
    }
    match decode_message(&body).unwrap() {
        ServerFrame::Reply { number: 0, reply: Reply::Committed(head) } => Ok(head),
        other => panic!("{other:?}"),
    }
}

fn code(status: StatusCode, body: &[u8]) -> String {
    let problem: Value = serde_json::from_slice(body).unwrap();
    assert_eq!(problem["status"], status.as_u16());
    problem["code"].as_str().unwrap().to_owned()
}

async fn log_length(device: &Device, genesis: &Genesis) -> usize {
    let path = format!("/workspaces/{}/log", genesis.workspace());
    let answer = device.request(Method::GET, &path).send().await.unwrap();
    match decode_message(&answer.bytes().await.unwrap()).unwrap() {
        ServerFrame::Reply { reply: Reply::Entries(entries), .. } => entries.len(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn hash_of_an_entry_tells_whose_history_it_is() {
    let server = TestServer::start().await;
    let device = server.device("ada").await;
    let genesis = device.create_workspace("home").await;
    let path = format!("/workspaces/{}", genesis.workspace());
    assert_eq!(device.get(&path).await.1["head_hash"], genesis.head().hash.to_string());
    let one = commit(&device, &genesis, &device.commit(1, genesis.head())).await.unwrap();
    let two = commit(&device, &genesis, &device.commit(2, one)).await.unwrap();
    let found = device.get(&path).await.1;
    assert_eq!(
        (&found["head_seq"], &found["head_hash"]),
        (&2.into(), &two.hash.to_string().into())
    );
    for head in [one, two] {
        let found = device.get(&format!("{path}/log/{}", head.seq)).await.1;
        assert_eq!(found, json!({ "seq": head.seq, "hash": head.hash.to_string() }));
    }
    for none in ["0", "3", "-1", "x", "18446744073709551615"] {
        let (status, problem) = device.get(&format!("{path}/log/{none}")).await;
        assert_eq!(
            (status, &problem["code"]),
            (StatusCode::NOT_FOUND, &"not_found".into()),
            "{none}"
        );
    }
}

#[tokio::test]
async fn commit_that_is_sent_again_stands_in_the_log_once_and_live_devices_hear_of_it() {
    let server = TestServer::start().await;
    let (device, other) = (server.device("ada").await, server.device("ada").await);
    let genesis = device.create_workspace("home").await;
    let live = other.log(&genesis).await;
    let one = device.commit(1, genesis.head());
    let head = commit(&device, &genesis, &one).await.unwrap();
    assert_eq!(head.seq, 1);
    assert_eq!(commit_log::CommitLog::head(&live).await.unwrap(), head);
    assert_eq!(commit(&device, &genesis, &one).await.unwrap(), head);
    assert_eq!(log_length(&device, &genesis).await, 1);
    let two = Commit { op_id: one.op_id, ..device.commit(2, head) };
    assert_eq!(commit(&device, &genesis, &two).await.unwrap_err(), "operation_reused");
    let again = device.open_log(genesis.workspace()).await.unwrap();
    assert_eq!(commit_log::CommitLog::commit(&again, &one).await.unwrap(), head);
    assert_eq!(log_length(&device, &genesis).await, 1);
}

#[tokio::test]
async fn commit_that_may_not_be_is_refused_by_name_and_leaves_nothing_behind() {
    let server = TestServer::start().await;
    let (device, other) = (server.device("ada").await, server.device("ada").await);
    let stranger = server.device("bob").await;
    let genesis = device.create_workspace("home").await;
    let good = device.commit(1, genesis.head());
    let refused = async |who: &Device, wrong: &Commit| {
        commit(who, &genesis, wrong).await.expect_err("it is refused")
    };
    let theirs = stranger.commit(1, genesis.head());
    assert_eq!(refused(&stranger, &theirs).await, "not_found");
    assert_eq!(refused(&other, &good).await, "forbidden");
    let seen = Head { seq: 9, hash: EntryHash::from_bytes([9; 32]) };
    assert_eq!(refused(&device, &Commit { seen, ..good.clone() }).await, "history_lost");
    let pack = PackRef { id: pack_id(&noise(9)), length: 9 };
    assert_eq!(
        refused(&device, &Commit { packs: vec![pack], ..good.clone() }).await,
        "pack_missing"
    );

    let encoded = encode_message(&good);
    for wrong in [Vec::new(), encoded[1..].to_vec(), encoded[..encoded.len() - 1].to_vec()] {
        let (status, body) = post(&device, &genesis, wrong).await;
        assert_eq!((status, &*code(status, &body)), (StatusCode::BAD_REQUEST, "invalid"));
    }
    let (status, body) = post(&device, &genesis, vec![0; COMMIT_LENGTH_MAX + 1]).await;
    assert_eq!((status, &*code(status, &body)), (StatusCode::PAYLOAD_TOO_LARGE, "too_large"));
    // Its length is told by nobody beforehand.
    let path = format!("/workspaces/{}/log", genesis.workspace());
    let pieces =
        (0..=COMMIT_LENGTH_MAX >> 20).map(|_| Ok::<_, std::io::Error>(vec![0_u8; 1 << 20]));
    let body = reqwest::Body::wrap_stream(futures_util::stream::iter(pieces));
    let answer = device.request(Method::POST, &path).body(body).send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(log_length(&device, &genesis).await, 0);
    assert_eq!(commit(&device, &genesis, &good).await.unwrap().seq, 1);
}
