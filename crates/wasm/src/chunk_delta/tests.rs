//! The golden vectors: `crates/wasm/golden/deltas.json` says which messages travel for edits of files from fixed seeds. A test
//! in a browser holds the module to the same file.

use content::delta::{ChunkAssembler, answer_sums, answer_symbols};
use model::codec::encode_message;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::*;
use crate::samples::{SESSION, genesis, hex, sealed_genesis, versions};

const GOLDEN: &str = include_str!("../../golden/deltas.json");
const AVERAGE: u32 = 16 * 1024;

/// What a client sends, given what it knows, and what it keeps.
struct Sent {
    messages: Vec<Vec<u8>>,
    literal: usize,
    kept: Vec<u8>,
}

fn send(base: &BaseVersion, survey: Option<BaseVersion>, old: &[u8], mut new: &[u8]) -> Sent {
    let (plain, keys) = workspace_of(&encode_message(&genesis())).unwrap();
    let session = session_of(&SESSION).unwrap();
    let mut client = ChunkClient::new(&keys, plain.workspace(), session);
    if let Some(survey) = survey {
        client = client.with_survey(survey);
    }
    let (mut messages, mut literal) = (Vec::new(), 0);
    let collect = |part: DeltaPart| {
        literal += part.literal_length();
        messages.push(part.into_message(plain)?);
        Ok::<_, DeltaError>(())
    };
    client.send_delta(base, None, &mut new, collect).unwrap();
    let table = base.table().clone();
    let mut assembler = ChunkAssembler::new(plain.workspace(), keys.namer(), table, 1 << 40);
    let mut assembled = None;
    for message in &messages {
        assembled = assembler.take(message, &mut &old[..], |_| Ok::<_, DeltaError>(())).unwrap();
    }
    let made =
        assembled.and_then(|assembled| assembled.table).expect("the delta makes the version");
    let kept = client.into_base();
    assert_eq!(&made, kept.table());
    Sent { messages, literal, kept: kept.encode() }
}

fn digest(messages: &[Vec<u8>]) -> String {
    hex(&Sha256::digest(messages.concat()))
}

/// What is asked next, or the code of why nothing is.
type NextQuestion = Result<Option<Vec<u8>>, &'static str>;

/// Returns what asks for the first symbols, the answer, and what the client says to that: the next question, or why it goes on no further.
/// Then the list serves as well, and the version is not cut again.
fn reconciled(base: &BaseVersion, mut new: &[u8]) -> (Vec<u8>, Vec<u8>, NextQuestion) {
    let mut delta = ChunkDelta::new(&encode_message(&genesis()), &SESSION, None).unwrap();
    let workspace = delta.plain.workspace();
    let (reconciler, begun) = Reconciler::begin_session(workspace, delta.session);
    delta.reconciler = Some(reconciler);
    let symbols = answer_symbols(workspace, base.table(), &begun).unwrap();
    let next = delta.take_told_of(&symbols, &mut new).map_err(|failure| failure.code);
    assert!(delta.base.as_ref().is_none_or(|learnt| learnt == base));
    if next == Err("too_different") {
        let listed = delta.take_list(&base.encode()).unwrap();
        let survey = ChunkClient::survey(&delta.keys, AVERAGE, &mut new).unwrap();
        let other = Reconciler::of_survey(workspace, delta.session, survey.clone());
        assert_eq!(listed, other.ask_sums(delta.plain, base));
        assert!(delta.reconciler.and_then(Reconciler::into_survey) == Some(survey));
    }
    (begun, symbols, next)
}

/// Returns a case with what travels: the server's list, or some symbols of it, the question for sums and its answer, the messages of the delta, and those of the way
/// back, for which the client has kept a sketch.
fn solved(case: &Value) -> Value {
    let (old, new) = versions(case);
    let (plain, keys) = workspace_of(&encode_message(&genesis())).unwrap();
    let survey = |mut bytes: &[u8]| ChunkClient::survey(&keys, AVERAGE, &mut bytes).unwrap();
    let base = BaseVersion::without_sketch(survey(&old).table().clone());
    let session = session_of(&SESSION).unwrap();
    let reconciler = Reconciler::of_survey(plain.workspace(), session, survey(&new));
    let ask = reconciler.ask_sums(plain, &base);
    let sums = ask
        .as_ref()
        .map(|ask| answer_sums(plain, &keys, base.table(), ask, &mut &old[..]).unwrap());
    let known = match &sums {
        Some(sums) => reconciler.take_sums(base.clone(), sums).unwrap(),
        None => base.clone(),
    };
    let there = send(&known, reconciler.into_survey(), &old, &new);
    let (_, symbols, next) = reconciled(&base, &new);
    let is_learnt = next == Ok(ask.clone());
    let back = send(&BaseVersion::decode(&there.kept).unwrap(), None, &new, &old);
    let mut solved = case.clone();
    solved["base"] = json!(hex(&base.encode()));
    solved["symbols"] = json!(is_learnt.then(|| hex(&symbols)));
    solved["ask"] = json!(ask.map(|ask| hex(&ask)));
    solved["sums"] = json!(sums.map(|sums| hex(&sums)));
    solved["literal"] = json!(there.literal);
    solved["messages"] = json!(digest(&there.messages));
    solved["kept"] = json!(hex(&Sha256::digest(&there.kept)));
    solved["back"] = json!(digest(&back.messages));
    solved
}

#[test]
fn golden_edits_travel_as_they_always_did() {
    let golden: Value = serde_json::from_str(GOLDEN).unwrap();
    let cases = golden["cases"].as_array().unwrap();
    assert!(cases.len() >= 8);
    let solved: Vec<Value> = cases.iter().map(solved).collect();
    assert!(solved.iter().any(|case| case["symbols"].is_null()), "not all are worth it");
    let (begun, _, _) = reconciled(&BaseVersion::default(), &[]);
    let solved = json!({
        "genesis": hex(&encode_message(&genesis())), "session": hex(&SESSION), "begun": hex(&begun), "cases": solved,
    });
    assert!(solved == golden, "now:\n{}", serde_json::to_string(&solved).unwrap());
}

#[test]
fn what_is_no_genesis_session_or_base_has_a_code() {
    let genesis = encode_message(&genesis());
    let base = BaseVersion::default().encode();
    let code = |genesis: &[u8], session: &[u8], base: &[u8]| {
        ChunkDelta::new(genesis, session, Some(base.to_vec())).err().map(|failure| failure.code)
    };
    assert_eq!(code(&genesis, &SESSION, &base), None);
    assert_eq!(code(b"something", &SESSION, &base), Some("message"));
    assert_eq!(code(&encode_message(&sealed_genesis()), &SESSION, &base), Some("is_sealed"));
    assert_eq!(code(&genesis, &SESSION[1..], &base), Some("length"));
    assert_eq!(code(&genesis, &SESSION, b"something"), Some("message"));
    let mut delta = ChunkDelta::new(&genesis, &SESSION, Some(base.clone())).unwrap();
    let listed = delta.take_list(&base).err().map(|failure| failure.code);
    assert_eq!(listed, Some("no_such"), "nothing was asked");
    let told = delta.take_told_of(&[], &mut &b""[..]);
    assert_eq!(told.err().map(|failure| failure.code), Some("no_such"));
    assert_eq!(delta.kept(), None);
}
