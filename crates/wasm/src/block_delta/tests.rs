//! The golden vectors: `crates/wasm/golden/blocks.json` says which messages travel for edits of files from fixed seeds. A test
//! in a browser holds the module to the same file.

use content::delta::{Finished, ReverseServer, RsyncServer};
use model::codec::encode_message;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::*;
use crate::samples::{SESSION, genesis, hex, sealed_genesis, versions};

const GOLDEN: &str = include_str!("../../golden/blocks.json");

/// Returns a case with what travels: the first message, what the server says to it, and what the client sends then.
fn solved(case: &Value) -> Value {
    let (old, new) = versions(case);
    let (mut old, mut new) = (&old[..], &new[..]);
    let delta = BlockDelta::new(
        &encode_message(&genesis()),
        &SESSION,
        case["tuning"].as_str().unwrap(),
        case["isReversed"].as_bool().unwrap(),
    );
    let BlockDelta { plain, session, tuning, is_reversed, .. } = delta.unwrap();
    let (mut messages, mut out, mut finished) = (Vec::new(), Vec::new(), None::<Finished>);
    let (begun, said, literal);
    if is_reversed {
        let (mut client, message) = ReverseClient::begin(plain, session, tuning, &mut new).unwrap();
        let server = ReverseServer::begin(plain, &message, &mut old, 1 << 40);
        let (mut server, answer) = server.unwrap();
        let send = |message: Vec<u8>| {
            finished = server.take(&message, &mut old, &mut out)?;
            messages.push(message);
            Ok::<_, DeltaError>(())
        };
        client.take_matches(&answer, &mut new, send).unwrap();
        (begun, said, literal) = (message, answer, client.literal_length());
    } else {
        let (mut client, message) = RsyncClient::begin(plain, session, tuning);
        let server = RsyncServer::begin(plain, &message, &mut old, 1 << 40);
        let (mut server, answer) = server.unwrap();
        let send = |message: Vec<u8>| {
            finished = server.take(&message, &mut old, &mut out)?;
            messages.push(message);
            Ok::<_, DeltaError>(())
        };
        client.take_sums(&answer, &mut new, send).unwrap();
        (begun, said, literal) = (message, answer, client.literal_length());
    }
    let finished = finished.expect("the last message says that it is");
    assert!(finished.verified.is_some() && out == new);
    let mut solved = case.clone();
    solved["begun"] = json!(hex(&Sha256::digest(&begun)));
    solved["said"] = json!(hex(&said));
    solved["messages"] = json!(hex(&Sha256::digest(messages.concat())));
    solved["literal"] = json!(literal);
    solved["answer"] = json!(hex(&finished.answer));
    solved
}

#[test]
fn golden_edits_travel_in_blocks_as_they_always_did() {
    let golden: Vec<Value> = serde_json::from_str(GOLDEN).unwrap();
    assert!(golden.len() >= 12);
    let solved: Vec<Value> = golden.iter().map(solved).collect();
    assert!(solved == golden, "now:\n{}", serde_json::to_string(&solved).unwrap());
}

#[test]
fn calls_out_of_turn_and_unknown_tunings_have_codes() {
    let genesis = encode_message(&genesis());
    let mut delta = BlockDelta::new(&genesis, &SESSION, "plus", false).unwrap();
    let code = |failure: Option<Failure>| failure.map(|failure| failure.code);
    assert_eq!(code(delta.take_answer(&[]).err()), Some("no_such"));
    assert_eq!(code(BlockDelta::new(&genesis, &SESSION, "fast", false).err()), Some("no_such"));
    assert_eq!(code(BlockDelta::new(&genesis, &[], "plus", false).err()), Some("length"));
    let sealed = encode_message(&sealed_genesis());
    let refused = BlockDelta::new(&sealed, &SESSION, "plus", false).err();
    assert_eq!(code(refused), Some("is_sealed"));
}
