use super::*;
use model::{Action, DeviceId, EntryHash, Timestamp};

/// A log of commits with these numbers, each of a node of its own, and what their devices know of them: commit n was sent at second
/// n and known half a second later.
fn history(numbers: &[u8]) -> (Head, Vec<Entry>, Vec<Offered>) {
    let genesis = Head { seq: 0, hash: EntryHash::from_bytes([9; 32]) };
    let (mut head, mut entries, mut offered) = (genesis, Vec::new(), Vec::new());
    for &number in numbers {
        let entry = Entry { seq: head.seq + 1, previous: head.hash, commit: commit(number) };
        head = entry.head();
        let known = Known {
            at: Duration::from_secs(u64::from(number)) + Duration::from_millis(500),
            seq: head.seq,
            answer: Some(head),
        };
        offered.push(Offered {
            op_id: entry.commit.op_id,
            change: entry.commit.changes[0].clone(),
            sent: Duration::from_secs(u64::from(number)),
            known: Some(known),
        });
        entries.push(entry);
    }
    (genesis, entries, offered)
}

fn commit(number: u8) -> Commit {
    let action = Action::Put(vec![number]);
    let change = Change { node: NodeId::from_bytes([number; 16]), base: 0, action };
    Commit {
        op_id: OpId::from_bytes([number; 16]),
        device: DeviceId::from_bytes([1; 16]),
        device_name: "device".to_owned(),
        time: Timestamp::default(),
        seen: Head { seq: 0, hash: EntryHash::NONE },
        changes: vec![change],
        packs: Vec::new(),
        inline_packs: Vec::new(),
        has_deltas: false,
        seal: None,
    }
}

fn judge(genesis: Head, entries: &[Entry], offered: Vec<Offered>) -> Verdict {
    let mut judge = Judge::new(genesis, offered);
    for entry in entries {
        judge.entry(entry);
    }
    judge.finish()
}

fn op(number: u8) -> OpId {
    OpId::from_bytes([number; 16])
}

#[test]
fn log_that_holds_what_was_answered_in_the_order_of_time_is_right() {
    let (genesis, entries, offered) = history(&[1, 2, 3]);
    let verdict = judge(genesis, &entries, offered);
    assert_eq!(verdict.violations, []);
    assert_eq!((verdict.sent, verdict.known, verdict.silent, verdict.gone), (3, 3, 0, 0));
}

#[test]
fn answered_commit_that_is_not_in_the_log_is_lost() {
    let (genesis, entries, offered) = history(&[1, 2, 3]);
    let verdict = judge(genesis, &entries[..2], offered);
    assert_eq!(verdict.violations, [Violation::Lost(op(3))]);
}

#[test]
fn commit_without_an_answer_may_stand_or_not() {
    let (genesis, entries, mut offered) = history(&[1, 2, 3]);
    offered[1].known = None;
    offered[2].known = None;
    let verdict = judge(genesis, &entries[..2], offered);
    assert_eq!(verdict.violations, []);
    assert_eq!((verdict.known, verdict.silent, verdict.gone), (1, 1, 1));
}

#[test]
fn commit_that_stands_twice_is_found() {
    let (genesis, mut entries, offered) = history(&[1, 2]);
    let last = entries[1].head();
    entries.push(Entry { seq: last.seq + 1, previous: last.hash, commit: commit(1) });
    let verdict = judge(genesis, &entries, offered);
    assert!(verdict.violations.contains(&Violation::Doubled(op(1), 3)), "{verdict:?}");
}

#[test]
fn commit_that_stands_elsewhere_than_was_said_is_found() {
    let (genesis, entries, mut offered) = history(&[1, 2]);
    offered[1].known = offered[1].known.map(|known| Known { seq: 7, ..known });
    let verdict = judge(genesis, &entries, offered);
    assert_eq!(verdict.violations, [Violation::Moved(op(2), 2)]);

    let (genesis, entries, mut offered) = history(&[1, 2]);
    let other = Head { seq: 2, hash: EntryHash::from_bytes([4; 32]) };
    offered[1].known = offered[1].known.map(|known| Known { answer: Some(other), ..known });
    let verdict = judge(genesis, &entries, offered);
    assert_eq!(verdict.violations, [Violation::Moved(op(2), 2)]);
}

#[test]
fn entry_that_nobody_sent_or_that_was_altered_is_found() {
    let (genesis, entries, mut offered) = history(&[1, 2]);
    offered.remove(1);
    let verdict = judge(genesis, &entries, offered);
    assert_eq!(verdict.violations, [Violation::Invented(2)]);

    let (genesis, entries, mut offered) = history(&[1, 2]);
    offered[0].change.action = Action::Delete;
    let verdict = judge(genesis, &entries, offered);
    assert_eq!(verdict.violations, [Violation::Changed(op(1), 1)]);
}

#[test]
fn entry_that_follows_another_one_than_the_last_is_found() {
    let (genesis, mut entries, offered) = history(&[1, 2, 3]);
    entries.remove(1);
    let verdict = judge(genesis, &entries, offered);
    assert!(verdict.violations.contains(&Violation::Broken(3)), "{verdict:?}");
    assert!(verdict.violations.contains(&Violation::Lost(op(2))), "{verdict:?}");
}

#[test]
fn order_against_real_time_is_found_and_order_of_what_overlaps_is_free() {
    // 2 was sent a second after 1 was known, but stands before it.
    let (genesis, entries, mut offered) = history(&[2, 1]);
    let verdict = judge(genesis, &entries, offered.clone());
    assert_eq!(verdict.violations, [Violation::OutOfTime(2)]);
    // Where 1 was known only after 2 was sent, both orders are right.
    let known = offered[1].known.expect("it was answered");
    offered[1].known = Some(Known { at: Duration::from_millis(2100), ..known });
    let verdict = judge(genesis, &entries, offered);
    assert_eq!(verdict.violations, []);
}

#[test]
fn change_that_was_not_accepted_is_found() {
    let (genesis, mut entries, mut offered) = history(&[1]);
    entries[0].commit.changes[0].base = 5;
    offered[0].change.base = 5;
    let head = entries[0].head();
    offered[0].known = offered[0].known.map(|known| Known { answer: Some(head), ..known });
    let verdict = judge(genesis, &entries, offered);
    assert_eq!(verdict.violations, [Violation::Rejected(op(1), 1)]);
}
