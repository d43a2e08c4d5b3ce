//! A server that lies to the devices of an encrypted workspace: nothing wrong is applied, and the lie is found out.

use std::fs;

use model::{Action, Change, Commit, Entry, OpId};
use sync::SyncError;

#[path = "lying_server/stage.rs"]
mod stage;

use stage::{Stage, chain};

#[tokio::test(flavor = "multi_thread")]
async fn commit_that_was_answered_and_not_kept_is_sent_again() {
    let stage = Stage::start().await;
    let (mut one, mut other) = (stage.device("one").await, stage.device("other").await);
    one.write("file", "first");
    one.sync().await.unwrap();
    let kept = stage.entries(&one).await;
    one.door.show(Some(kept));
    one.write("file", "second");
    let report = one.sync().await.unwrap();
    assert_eq!((report.sent, report.history_lost_at), (1, None), "it was told that all is well");
    one.door.show(None);
    let report = one.sync().await.unwrap();
    assert!(report.history_lost_at.is_some(), "{report:?}");
    other.sync().await.unwrap();
    assert_eq!(other.read("file"), "second");
    assert_eq!(one.read("file"), "second");
}

#[tokio::test(flavor = "multi_thread")]
async fn history_that_goes_back_takes_no_file_back() {
    let stage = Stage::start().await;
    let (mut one, mut other) = (stage.device("one").await, stage.device("other").await);
    for text in ["first", "second", "third"] {
        one.write("file", text);
        one.sync().await.unwrap();
    }
    other.sync().await.unwrap();
    let entries = stage.entries(&other).await;
    assert_eq!(entries.len(), 3);
    for seen in [0, 1, 2] {
        other.door.show(Some(entries[..seen].to_vec()));
        let report = other.sync().await.unwrap();
        assert!(report.history_lost_at.is_some(), "{seen}: {report:?}");
        assert_eq!(other.read("file"), "third");
        other.door.show(None);
        other.sync().await.unwrap();
        assert_eq!(other.read("file"), "third");
    }
    one.sync().await.unwrap();
    assert_eq!(one.files(), [("file".to_owned(), "third".to_owned())]);
    assert_eq!(other.files(), one.files());
}

#[tokio::test(flavor = "multi_thread")]
async fn history_with_a_gap_or_in_another_order_is_refused() {
    let stage = Stage::start().await;
    let mut one = stage.device("one").await;
    for text in ["first", "second", "third"] {
        one.write("file", text);
        one.sync().await.unwrap();
    }
    let all = stage.entries(&one).await;
    let commits: Vec<Commit> = all.iter().map(|entry| entry.commit.clone()).collect();
    let pick = |order: &[usize]| order.iter().map(|&at| commits[at].clone()).collect::<Vec<_>>();
    let swapped: Vec<Entry> = [0, 2, 1].map(|at| all[at].clone()).to_vec();
    let mut number = 0;
    let mut refusal = async |shown: Vec<Entry>| {
        number += 1;
        let mut reader = stage.device(&format!("reader {number}")).await;
        reader.door.show(Some(shown));
        let refused = reader.sync().await.unwrap_err();
        let files = reader.files();
        // What came before the lie is there; nothing of the lie is.
        assert!(files.iter().all(|(_, text)| text == "first"), "{files:?}");
        reader.door.show(None);
        reader.sync().await.unwrap();
        assert_eq!(reader.read("file"), "third");
        refused
    };
    // As it is, and with a chain that the server has made anew.
    let refused = refusal(swapped).await;
    assert!(matches!(refused, SyncError::HistoryDiverged { .. }), "{refused}");
    for order in [&[0, 2, 1][..], &[0, 2], &[1, 2]] {
        let refused = refusal(chain(&stage.genesis, pick(order))).await;
        assert!(matches!(refused, SyncError::HistoryForked { .. }), "{order:?}: {refused}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn histories_that_were_parted_cannot_be_joined_again() {
    let stage = Stage::start().await;
    let (mut one, mut other) = (stage.device("one").await, stage.device("other").await);
    one.write("file", "first");
    one.sync().await.unwrap();
    other.sync().await.unwrap();
    // From here on the other device is shown a history of its own.
    other.door.show(Some(stage.entries(&other).await));
    for text in ["theirs", "theirs again"] {
        other.write("file", text);
        other.sync().await.unwrap();
    }
    for text in ["ours", "ours again"] {
        one.write("file", text);
        one.sync().await.unwrap();
    }
    let theirs = other.door.shown();
    let last = theirs.last().unwrap().commit.clone();
    let ours = stage.entries(&one).await;
    let mut joined: Vec<Commit> = ours.iter().map(|entry| entry.commit.clone()).collect();
    joined.push(last);
    one.door.show(Some(chain(&stage.genesis, joined)));
    let refused = one.sync().await.unwrap_err();
    assert!(matches!(refused, SyncError::HistoryForked { seq: 4 }), "{refused}");
    assert_eq!(one.read("file"), "ours again");
    // Shown the true history, both have everything.
    one.door.show(None);
    other.door.show(None);
    one.sync().await.unwrap();
    let report = other.sync().await.unwrap();
    assert!(report.history_lost_at.is_some());
    one.sync().await.unwrap();
    let mut texts: Vec<String> = one.files().into_iter().map(|(_, text)| text).collect();
    texts.sort();
    assert_eq!(texts, ["ours again", "theirs again"]);
    assert_eq!(one.files(), other.files());
}

#[tokio::test(flavor = "multi_thread")]
async fn forged_commits_count_for_nothing_and_are_told() {
    let stage = Stage::start().await;
    let (mut one, mut other) = (stage.device("one").await, stage.device("other").await);
    one.write("file", "first");
    one.sync().await.unwrap();
    let first = stage.entries(&one).await.remove(0).commit;
    let target = first.changes[0].node;
    // A deletion that nobody has signed, one under the seal of something else, a flipped bit, and a commit of another workspace.
    let deletion = Change { node: target, base: 1, action: Action::Delete };
    let op_id = |number| OpId::from_bytes([number; 16]);
    let unsealed = Commit {
        op_id: op_id(1),
        changes: vec![deletion.clone()],
        seal: None,
        device_name: "one".to_owned(),
        ..first.clone()
    };
    let borrowed = Commit { op_id: op_id(2), changes: vec![deletion], ..first.clone() };
    let mut flipped = Commit { op_id: op_id(3), ..first.clone() };
    if let Action::Put(payload) = &mut flipped.changes[0].action {
        payload[40] ^= 1;
    }
    let elsewhere = Stage::start().await;
    let mut stranger = elsewhere.device("stranger").await;
    stranger.write("planted", "x");
    stranger.sync().await.unwrap();
    let foreign = elsewhere.entries(&stranger).await.remove(0).commit;
    let commits = vec![first, unsealed, borrowed, flipped, foreign];
    for device in [&mut one, &mut other] {
        device.door.show(Some(chain(&stage.genesis, commits.clone())));
        let report = device.sync().await.unwrap();
        let void: Vec<u64> = report.void_entries.iter().map(|entry| entry.seq).collect();
        assert_eq!(void, [2, 3, 4, 5]);
        assert_eq!(device.files(), [("file".to_owned(), "first".to_owned())]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn packs_that_are_exchanged_are_not_written_into_files() {
    let stage = Stage::start().await;
    let elsewhere = Stage::start().await;
    // Far from both ends of a step of lengths, whatever the chunks are.
    let noise = |letter: u8| {
        let mut bytes = vec![0; 148_600];
        blake3::Hasher::new().update(&[letter]).finalize_xof().fill(&mut bytes);
        bytes
    };
    let mut one = stage.device("one").await;
    one.write("first", noise(1));
    one.sync().await.unwrap();
    let before = stage.packs();
    one.write("second", noise(2));
    one.sync().await.unwrap();
    let mut stranger = elsewhere.device("stranger").await;
    stranger.write("first", noise(1));
    stranger.sync().await.unwrap();
    let (first, foreign) = (before[0].clone(), elsewhere.packs()[0].clone());
    let second = stage.packs().into_iter().find(|pack| !before.contains(pack)).unwrap();
    let right = fs::read(&first).unwrap();
    for wrong in [&second, &foreign] {
        let wrong = fs::read(wrong).unwrap();
        assert_eq!(wrong.len(), right.len(), "the server must not notice it by itself");
        fs::write(&first, &wrong).unwrap();
        let mut reader = stage.device("reader").await;
        let report = reader.sync().await;
        assert!(!reader.has("first"), "{report:?}");
        let is_told = report.as_ref().is_ok_and(|report| !report.problems.is_empty());
        assert!(is_told || report.is_err(), "{report:?}");
        fs::write(&first, &right).unwrap();
        let mut reader = stage.device("another reader").await;
        reader.sync().await.unwrap();
        assert_eq!((reader.bytes("first"), reader.bytes("second")), (noise(1), noise(2)));
    }
}
