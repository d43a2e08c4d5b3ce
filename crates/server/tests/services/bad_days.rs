//! A database that is killed, stands still, or is full, while a server writes to it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use model::testing::{commit, put};
use model::{Commit, Genesis, Mode, OpId, Random, Timestamp};
use server::metadata::conformance::Database;
use server::metadata::postgres::testing::ThrowAway;
use server::metadata::{Metadata, MetadataError};
use server::services::batch;
use server::services::sync_service::{self, CommitRequest, commit_all};
use server::services::{accounts, workspaces};
use server::{Caller, ServerError};

use crate::place::{NAME, PATIENCE, Place};

#[derive(Debug)]
struct Numbers;

impl Random for Numbers {
    fn fill(&self, bytes: &mut [u8]) {
        getrandom::fill(bytes).unwrap();
    }
}

/// One device with one workspace.
pub(crate) fn furnish(metadata: &mut dyn Metadata) -> (Caller, Genesis) {
    let genesis = Genesis {
        name: "home".to_owned(),
        mode: Mode::Plain,
        created: Timestamp::default(),
        content_key: [7; 32],
    };
    let account = accounts::create_account(metadata, "ada", "!", 0).unwrap();
    let caller = accounts::enrol_device(metadata, &Numbers, account, "laptop", 0).unwrap().0;
    workspaces::create(metadata, &caller, &genesis).unwrap();
    (caller, genesis)
}

pub(crate) fn request(caller: Caller, genesis: &Genesis, n: u32) -> CommitRequest {
    let mut op_id = [1; 16];
    op_id[..4].copy_from_slice(&n.to_le_bytes());
    let change = put((n % 200) as u8 + 1, u64::from(n / 200), "a file");
    let commit =
        Commit { op_id: OpId::from_bytes(op_id), device: caller.device, ..commit(1, vec![change]) };
    CommitRequest { caller, workspace: genesis.workspace(), commit }
}

/// Commits in groups, each until it is answered, as devices do; returns how often it had to be repeated.
#[expect(clippy::disallowed_methods, reason = "the database is real, and so is the time")]
fn commit_until_answered(
    metadata: &mut dyn Metadata,
    (caller, genesis): (Caller, &Genesis),
    count: u32,
    done: impl Fn(u32),
) -> u32 {
    let (mut repeated, start) = (0, Instant::now());
    for first in (0..count).step_by(10) {
        loop {
            let group = (first..first + 10).map(|n| request(caller, genesis, n));
            let outcomes = commit_all(metadata, group.collect());
            if outcomes.iter().all(Result::is_ok) {
                break;
            }
            for outcome in outcomes {
                let is_retryable = outcome.as_ref().err().is_none_or(ServerError::is_retryable);
                assert!(is_retryable, "{outcome:?}");
            }
            repeated += 1;
            assert!(start.elapsed() < PATIENCE, "the database does not come back");
        }
        done(first);
    }
    repeated
}

/// Checks that each of so many commits stands once.
pub(crate) fn assert_complete(
    metadata: &dyn Metadata,
    caller: Caller,
    genesis: &Genesis,
    count: u32,
) {
    let (mut head, mut ops) = (genesis.head(), std::collections::BTreeSet::new());
    loop {
        let frame = model::wire::Request::Entries { since: head.seq, length_max: 1 << 20 };
        let reply = sync_service::read(metadata, &caller, genesis.workspace(), &frame).unwrap();
        let model::wire::Reply::Entries(page) = reply else { panic!("{reply:?}") };
        if page.is_empty() {
            break;
        }
        for entry in page {
            assert!(entry.follows(&head));
            head = entry.head();
            assert!(ops.insert(*entry.commit.op_id.as_bytes()), "an operation stands twice");
        }
    }
    assert_eq!((head.seq, ops.len()), (u64::from(count), count as usize));
}

#[test]
fn commits_survive_a_database_that_is_killed_again_and_again() {
    let mut place = Place::take();
    let database = ThrowAway::create(&place.config()).unwrap();
    let mut metadata = database.open();
    let (caller, genesis) = furnish(&mut *metadata);
    let (is_done, reached) = (AtomicBool::new(false), std::sync::mpsc::channel());
    let repeated = std::thread::scope(|scope| {
        let (told, heard) = reached;
        let (running, is_done) = (&mut place.running, &is_done);
        scope.spawn(move || {
            for first in heard {
                if first % 100 == 50 && !is_done.load(Ordering::Acquire) {
                    running.kill(NAME).unwrap();
                    running.revive(NAME).unwrap();
                }
            }
        });
        let told_of = move |first| told.send(first).unwrap();
        let repeated = commit_until_answered(&mut *metadata, (caller, &genesis), 600, told_of);
        is_done.store(true, Ordering::Release);
        repeated
    });
    assert!(repeated > 0, "the database died while it was asked");
    place.wait_until_it_answers();
    assert_complete(&*metadata, caller, &genesis, 600);
}

#[test]
fn a_database_that_stands_still_holds_nobody_for_ever() {
    let place = Place::take();
    let database = ThrowAway::create(&place.config()).unwrap();
    let mut metadata = database.open();
    let (caller, genesis) = furnish(&mut *metadata);
    place.freeze();
    let refused = commit_all(&mut *metadata, vec![request(caller, &genesis, 0)]).pop().unwrap();
    let is_named = matches!(refused, Err(ServerError::Metadata(MetadataError::Unreachable { .. })));
    assert!(is_named, "{refused:?}");
    place.thaw();
    commit_until_answered(&mut *metadata, (caller, &genesis), 10, drop);
    assert_complete(&*metadata, caller, &genesis, 10);
}

/// A server that dies in the middle of a transaction holds locks until the database hears of it.
#[test]
fn a_server_that_falls_silent_in_a_transaction_holds_up_the_others_for_a_while_only() {
    let place = Place::take();
    let database = ThrowAway::create(&place.config()).unwrap();
    let mut metadata = database.open();
    let (caller, genesis) = furnish(&mut *metadata);
    let mut silent = database.open();
    silent.begin().unwrap();
    silent.workspace(genesis.workspace()).unwrap().unwrap();
    // It does not end its transaction; the database does.
    commit_until_answered(&mut *metadata, (caller, &genesis), 10, drop);
    assert_complete(&*metadata, caller, &genesis, 10);
    assert!(silent.commit().is_err());
}

#[test]
fn a_full_disk_is_named_and_leaves_nothing_half_done() {
    let place = Place::take();
    let database = ThrowAway::create(&place.config()).unwrap();
    let mut metadata = database.open();
    let (caller, genesis) = furnish(&mut *metadata);
    commit_until_answered(&mut *metadata, (caller, &genesis), 10, drop);
    // What the database says when its disk is full, said by a trigger, because its disk is everybody's.
    let sql = "CREATE FUNCTION fill() RETURNS trigger LANGUAGE plpgsql AS
         $$ BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = 'disk_full'; END $$;
         CREATE TRIGGER full_disk BEFORE UPDATE ON workspaces FOR EACH ROW EXECUTE FUNCTION fill()";
    database.run(sql).unwrap();
    let group = (10..20).map(|n| request(caller, &genesis, n)).collect();
    for outcome in commit_all(&mut *metadata, group) {
        let is_full = matches!(outcome, Err(ServerError::Metadata(MetadataError::NoSpace)));
        assert!(is_full, "{outcome:?}");
    }
    let number = metadata.workspace(genesis.workspace()).unwrap().unwrap().number;
    let note: batch::Work<'_, ()> =
        Box::new(|metadata| Ok(metadata.insert_object(number, "packs/1", 1)?));
    let outcome = batch::run(&mut *metadata, vec![note]).pop().unwrap();
    assert!(matches!(outcome, Err(ServerError::Metadata(MetadataError::NoSpace))), "{outcome:?}");
    assert_complete(&*metadata, caller, &genesis, 10);
    assert_eq!(metadata.objects(number, "", "", 9).unwrap(), []);
    database.run("DROP TRIGGER full_disk ON workspaces").unwrap();
    commit_until_answered(&mut *metadata, (caller, &genesis), 20, drop);
    assert_complete(&*metadata, caller, &genesis, 20);
}
