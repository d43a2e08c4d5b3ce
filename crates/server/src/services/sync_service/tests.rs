use model::testing::{commit as commit_with, node, put};
use model::wire::{RefusalKind, ServerFrame};
use model::{DeviceId, Mode, NodeId, OpId, PackId, PackRef, PageId, Timestamp};

use storage::ObjectKey;

use super::*;
use crate::auth::NO_PASSWORD;
use crate::metadata::WorkspaceNumber;
use crate::metadata::commits::Wanted;
use crate::metadata::sqlite::Sqlite;
use crate::services::{accounts, objects};
use crate::testing::Counter;

struct World {
    service: SyncService,
    callers: Vec<Caller>,
    workspace: WorkspaceId,
    genesis: Genesis,
}

/// A server in memory with two devices of one account and one of another, and a workspace of the first account.
fn world() -> World {
    let mut database = Sqlite::open_in_memory().unwrap();
    let random = Counter::default();
    let ada = accounts::create_account(&mut database, "ada", NO_PASSWORD, 0).unwrap();
    let bob = accounts::create_account(&mut database, "bob", NO_PASSWORD, 0).unwrap();
    let callers: Vec<_> = [ada, ada, bob]
        .map(|account| accounts::enrol_device(&mut database, &random, account, "d", 0).unwrap().0)
        .into();
    let genesis = Genesis {
        name: "home".to_owned(),
        mode: Mode::Plain,
        created: Timestamp::default(),
        content_key: [7; 32],
    };
    let (found, is_new) = workspaces::create(&mut database, &callers[0], &genesis).unwrap();
    assert!(is_new);
    World { service: SyncService::new(database), callers, workspace: found.id, genesis }
}

impl World {
    fn commit(&self, device: usize, op: u8, changes: Vec<model::Change>) -> Commit {
        Commit { device: self.callers[device].device, ..commit_with(op, changes) }
    }

    fn request(&self, device: usize, commit: &Commit) -> CommitRequest {
        let caller = self.callers[device];
        CommitRequest { caller, workspace: self.workspace, commit: commit.clone() }
    }

    fn propose(&mut self, device: usize, commit: &Commit) -> Result<Committed> {
        let request = self.request(device, commit);
        self.service.commit_batch(vec![request]).pop().unwrap()
    }

    fn ask(&mut self, device: usize, request: Request) -> Answer {
        let frame = RequestFrame { number: 1, workspace: self.workspace, request };
        self.service.answer(&self.callers[device].clone(), frame)
    }

    fn entries(&self) -> Vec<Entry> {
        self.service.entries(&self.callers[0], self.workspace, 0, u64::MAX).unwrap()
    }
}

fn version(service: &SyncService, workspace: WorkspaceId, n: u8) -> u64 {
    let number = service.metadata().workspace(workspace).unwrap().unwrap().number;
    let wanted = Wanted { versions: vec![(number, node(n))], ..Wanted::default() };
    service.metadata().find(&wanted).unwrap().versions[&(number, node(n))]
}

fn kind(outcome: &Result<Committed>) -> Option<RefusalKind> {
    outcome.as_ref().err().map(ServerError::kind)
}

#[test]
fn commits_form_a_chain_and_are_announced_once() {
    let mut world = world();
    let mut head = world.genesis.head();
    for op in 1..=5 {
        let proposed = world.commit(0, op, vec![put(op, 0, "name")]);
        let committed = world.propose(0, &proposed).unwrap();
        let entry = committed.appended.expect("it is new");
        assert!(entry.follows(&head));
        head = committed.head;
        let again = world.propose(0, &proposed).unwrap();
        assert_eq!((again.head, again.appended), (head, None));
    }
    assert_eq!(world.service.head(&world.callers[1], world.workspace).unwrap(), head);
    assert_eq!(world.entries().len(), 5);
}

#[test]
fn of_many_commits_on_one_base_exactly_one_is_accepted() {
    let mut world = world();
    let batch: Vec<_> = (1..=20)
        .map(|op| {
            world.request(
                usize::from(op % 2),
                &world.commit(usize::from(op % 2), op, vec![put(1, 0, "x")]),
            )
        })
        .collect();
    assert!(world.service.commit_batch(batch).iter().all(Result::is_ok));
    assert_eq!(version(&world.service, world.workspace, 1), 1);
    assert_eq!(world.entries().len(), 20, "rejected changes stand in the log, too");
}

#[test]
fn bad_commit_does_not_sink_its_batch() {
    let mut world = world();
    let good = world.commit(0, 1, vec![put(1, 0, "a")]);
    let mut bad = world.commit(0, 2, vec![put(2, 0, "b")]);
    bad.packs = vec![PackRef { id: PackId::from_bytes([9; 32]), length: 5 }];
    let also_good = world.commit(1, 3, vec![put(3, 0, "c")]);
    let batch =
        [(0, &good), (0, &bad), (1, &also_good)].map(|(d, commit)| world.request(d, commit)).into();
    let outcomes = world.service.commit_batch(batch);
    assert_eq!(outcomes[0].as_ref().unwrap().head.seq, 1);
    assert_eq!(kind(&outcomes[1]), Some(RefusalKind::PackMissing));
    assert_eq!(outcomes[2].as_ref().unwrap().head.seq, 2);
    let entries = world.entries();
    assert!(entries[1].follows(&entries[0].head()));
}

#[test]
fn one_commit_twice_in_a_batch_stands_once() {
    let mut world = world();
    let proposed = world.commit(0, 1, vec![put(1, 0, "a")]);
    let batch = vec![world.request(0, &proposed), world.request(0, &proposed)];
    let outcomes = world.service.commit_batch(batch);
    assert_eq!(outcomes[0].as_ref().unwrap().head, outcomes[1].as_ref().unwrap().head);
    assert!(outcomes[1].as_ref().unwrap().appended.is_none());
    assert_eq!(world.entries().len(), 1);
}

#[test]
fn operation_id_with_another_body_is_refused_but_not_on_another_device() {
    let mut world = world();
    let first = world.commit(0, 1, vec![put(1, 0, "a")]);
    world.propose(0, &first).unwrap();
    let other = Commit { changes: vec![put(2, 0, "b")], ..first };
    assert_eq!(kind(&world.propose(0, &other)), Some(RefusalKind::OperationReused));
    let elsewhere = world.commit(1, 1, vec![put(2, 0, "b")]);
    assert_eq!(world.propose(1, &elsewhere).unwrap().head.seq, 2);
}

#[test]
fn strangers_revoked_devices_and_false_names_are_refused() {
    let mut world = world();
    let proposed = world.commit(2, 1, vec![put(1, 0, "a")]);
    assert_eq!(kind(&world.propose(2, &proposed)), Some(RefusalKind::NotFound));
    let false_name = world.commit(1, 1, vec![put(1, 0, "a")]);
    assert_eq!(kind(&world.propose(0, &false_name)), Some(RefusalKind::NotAllowed));
    for request in
        [Request::Head, Request::Checkpoint, Request::Genesis, Request::Subscribe { since: 0 }]
    {
        let reply = world.ask(2, request).reply;
        assert!(matches!(reply, Reply::Refused(r) if r.kind == RefusalKind::NotFound));
    }
    let (owner, revoked) = (world.callers[0], world.callers[1]);
    accounts::revoke_device(world.service.metadata_mut(), &owner, revoked.device).unwrap();
    let proposed = world.commit(1, 2, vec![put(1, 0, "a")]);
    assert_eq!(kind(&world.propose(1, &proposed)), Some(RefusalKind::Forbidden));
    assert!(
        matches!(world.ask(1, Request::Head).reply, Reply::Refused(r) if r.kind == RefusalKind::Forbidden)
    );
    assert!(world.entries().is_empty());
}

#[test]
fn log_that_lacks_what_the_device_has_seen_is_not_continued() {
    let mut world = world();
    let first = world.commit(0, 1, vec![put(1, 0, "a")]);
    let head = world.propose(0, &first).unwrap().head;
    let seen = |op, seen| Commit { seen, ..world.commit(0, op, vec![put(op, 0, "b")]) };
    let later = seen(2, Head { seq: 2, hash: head.hash });
    let forked = seen(3, Head { seq: 1, hash: EntryHash::from_bytes([3; 32]) });
    let foreign = seen(4, Head { seq: 0, hash: EntryHash::from_bytes([3; 32]) });
    let right = seen(5, head);
    let genesis = seen(6, world.genesis.head());
    for proposed in [later, forked, foreign] {
        assert_eq!(kind(&world.propose(0, &proposed)), Some(RefusalKind::HistoryLost));
    }
    assert_eq!(world.propose(0, &right).unwrap().head.seq, 2);
    assert_eq!(world.propose(0, &genesis).unwrap().head.seq, 3);
}

#[test]
fn server_restored_from_an_older_copy_is_found_out() {
    let mut database = Sqlite::open_in_memory().unwrap();
    let account = accounts::create_account(&mut database, "ada", NO_PASSWORD, 0).unwrap();
    let random = Counter::default();
    let (caller, _) = accounts::enrol_device(&mut database, &random, account, "d", 0).unwrap();
    let genesis = world().genesis;
    workspaces::create(&mut database, &caller, &genesis).unwrap();
    let workspace = genesis.workspace();
    let older = database.snapshot().unwrap();
    let mut service = SyncService::new(database);
    let commit =
        |op, seen| Commit { device: caller.device, seen, ..commit_with(op, vec![put(op, 0, "a")]) };
    let request = |commit| vec![CommitRequest { caller, workspace, commit }];
    let head =
        service.commit_batch(request(commit(1, genesis.head()))).pop().unwrap().unwrap().head;
    let mut restored = SyncService::new(Sqlite::from_snapshot(&older).unwrap());
    let outcome = restored.commit_batch(request(commit(2, head))).pop().unwrap();
    assert_eq!(kind(&outcome), Some(RefusalKind::HistoryLost));
}

#[test]
fn commit_waits_for_its_packs_in_the_right_length() {
    let mut world = world();
    let pack = PackRef { id: PackId::from_bytes([5; 32]), length: 1000 };
    let proposed = Commit { packs: vec![pack], ..world.commit(0, 1, vec![put(1, 0, "a")]) };
    assert_eq!(kind(&world.propose(0, &proposed)), Some(RefusalKind::PackMissing));
    let (caller, workspace) = (world.callers[0], world.workspace);
    let key = ObjectKey::pack(pack.id);
    let record = |world: &mut World, length| {
        objects::record(world.service.metadata_mut(), &caller, workspace, &key, length).unwrap()
    };
    assert!(record(&mut world, 999));
    assert_eq!(kind(&world.propose(0, &proposed)), Some(RefusalKind::PackMissing));
    world.service.metadata_mut().delete_object(WorkspaceNumber(1), key.as_str()).unwrap();
    assert!(record(&mut world, 1000));
    assert!(!record(&mut world, 1000));
    assert_eq!(world.propose(0, &proposed).unwrap().head.seq, 1);
}

#[test]
fn oversized_commits_are_refused() {
    let mut world = world();
    let ok = world.commit(0, 1, vec![put(1, 0, "a")]);
    let too_many = vec![put(1, 0, "a"); COMMIT_CHANGES_MAX + 1];
    let long = model::Action::Put(vec![0; COMMIT_LENGTH_MAX]);
    let cases = [
        Commit { changes: too_many, ..ok.clone() },
        Commit { inline_packs: vec![vec![0; INLINE_PACKS_LENGTH_MAX], vec![0]], ..ok.clone() },
        Commit { device_name: "x".repeat(65), ..ok.clone() },
        Commit {
            changes: vec![model::Change { node: node(1), base: 0, action: long }],
            ..ok.clone()
        },
    ];
    for proposed in cases {
        assert_eq!(kind(&world.propose(0, &proposed)), Some(RefusalKind::Invalid));
    }
    let inline_packs = vec![vec![7; INLINE_PACKS_LENGTH_MAX]];
    assert!(world.propose(0, &Commit { inline_packs, ..ok }).is_ok());
}

#[test]
fn quota_counts_entries_and_objects() {
    let mut world = world();
    let account = world.callers[0].account;
    world.service.metadata_mut().update_quota(account, Some(1000)).unwrap();
    let (caller, workspace) = (world.callers[0], world.workspace);
    let key = |n| ObjectKey::pack(PackId::from_bytes([n; 32]));
    let record = |world: &mut World, n, length| {
        objects::record(world.service.metadata_mut(), &caller, workspace, &key(n), length)
    };
    record(&mut world, 1, 900).unwrap();
    let refused = record(&mut world, 2, 200);
    assert!(
        matches!(refused, Err(ServerError::OverQuota { needed: 200, left: 100 })),
        "{refused:?}"
    );
    let large = Commit { inline_packs: vec![(0..=255).collect()], ..world.commit(0, 1, vec![]) };
    assert_eq!(kind(&world.propose(0, &large)), Some(RefusalKind::NoSpace));
    record(&mut world, 3, 100).unwrap();
    assert_eq!(world.service.metadata().used_bytes(account).unwrap(), 1000);
}

#[test]
fn entries_say_of_their_own_packs_that_they_have_delta_records() {
    let mut world = world();
    let mut heads = Vec::new();
    for (op, has_deltas) in [(1, false), (2, true), (3, false)] {
        let proposed =
            Commit { has_deltas, ..world.commit(0, op, vec![put(op, 0, &format!("file {op}"))]) };
        let answer = world.ask(0, Request::Commit(proposed.clone()));
        let Reply::Committed(head) = answer.reply else { panic!("{answer:?}") };
        heads.push(head);
        let told = answer.event.map(|(_, entry)| entry.commit.clone());
        assert_eq!(told, Some(proposed.clone()));
        // What says something else is another commit.
        let other = Commit { has_deltas: !has_deltas, ..proposed };
        assert_eq!(kind(&world.propose(0, &other)), Some(RefusalKind::OperationReused));
    }
    let reply = world.ask(1, Request::Entries { since: 0, length_max: 1 << 20 }).reply;
    let frame = encode_message(&ServerFrame::Reply { number: 1, reply });
    let Ok(ServerFrame::Reply { reply: Reply::Entries(entries), .. }) = decode_message(&frame)
    else {
        panic!("entries were asked for");
    };
    assert_eq!(entries.iter().map(Entry::head).collect::<Vec<_>>(), heads);
    let said: Vec<_> = entries.iter().map(|entry| entry.commit.has_deltas).collect();
    assert_eq!(said, [false, true, false]);
}

#[test]
fn answer_carries_the_event_of_a_new_entry_only() {
    let mut world = world();
    let proposed = world.commit(0, 1, vec![put(1, 0, "a")]);
    let first = world.ask(0, Request::Commit(proposed.clone()));
    let Reply::Committed(head) = first.reply else { panic!("{first:?}") };
    assert_eq!(first.event.map(|(_, entry)| entry.head()), Some(head));
    let second = world.ask(0, Request::Commit(proposed));
    assert_eq!((second.reply, second.event), (Reply::Committed(head), None));
    assert_eq!(world.ask(1, Request::Head).reply, Reply::Head(head));
    assert_eq!(world.ask(1, Request::Genesis).reply, Reply::Genesis(world.genesis.clone()));
    assert_eq!(world.ask(1, Request::Subscribe { since: 0 }).reply, Reply::Subscribed);
}

#[test]
fn only_newer_checkpoints_of_this_log_are_kept() {
    let mut world = world();
    let mut heads = vec![world.genesis.head()];
    for op in 1..=2 {
        let proposed = world.commit(0, op, vec![put(op, 0, "a")]);
        heads.push(world.propose(0, &proposed).unwrap().head);
    }
    let checkpoint = |head, n| {
        let page = PageId::from_bytes([n; 32]);
        Checkpoint {
            head,
            nodes: page,
            node_count: 1,
            packs: page,
            fence: 0,
            has_mounts: false,
            has_deltas: false,
            seal: None,
        }
    };
    let mut publish = |checkpoint| world.ask(0, Request::PublishCheckpoint(checkpoint)).reply;
    assert_eq!(publish(checkpoint(heads[2], 1)), Reply::Published);
    assert_eq!(publish(checkpoint(heads[1], 2)), Reply::Published);
    let foreign = Head { seq: 2, hash: EntryHash::from_bytes([1; 32]) };
    let ahead = Head { seq: 3, hash: heads[2].hash };
    for head in [foreign, ahead] {
        let reply = publish(checkpoint(head, 3));
        assert!(matches!(reply, Reply::Refused(r) if r.kind == RefusalKind::HistoryLost));
    }
    let newest = world.ask(1, Request::Checkpoint).reply;
    assert_eq!(newest, Reply::Checkpoint(Some(checkpoint(heads[2], 1))));
}

#[test]
fn entries_come_in_pages_whose_plain_length_fits_a_frame() {
    let mut world = world();
    // 6 MiB that compress to almost nothing: what counts is what the device unpacks.
    let action = model::Action::Put(vec![0; 6 << 20]);
    for op in 1..=4 {
        let change = model::Change { node: node(op), base: 0, action: action.clone() };
        let proposed = world.commit(0, op, vec![change]);
        world.propose(0, &proposed).unwrap();
    }
    let page = world.entries();
    assert_eq!(page.len(), 2);
    let frame = ServerFrame::Reply { number: 1, reply: Reply::Entries(page) };
    assert!(encode_message(&frame).len() <= model::wire::FRAME_LENGTH_MAX);
    let one = world.service.entries(&world.callers[0], world.workspace, 2, 1).unwrap();
    assert_eq!(one.len(), 1);
    assert_eq!(one[0].seq, 3);
}

#[test]
fn commits_of_many_threads_on_one_base_stand_in_one_order() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("metadata.sqlite");
    let mut database = Sqlite::open(&path).unwrap();
    let account = accounts::create_account(&mut database, "ada", NO_PASSWORD, 0).unwrap();
    let random = Counter::default();
    let (caller, _) = accounts::enrol_device(&mut database, &random, account, "d", 0).unwrap();
    let genesis = world().genesis;
    workspaces::create(&mut database, &caller, &genesis).unwrap();
    let workspace = genesis.workspace();
    let threads: Vec<_> = (0..4_u8)
        .map(|thread| {
            let mut service = SyncService::new(Sqlite::open(&path).unwrap());
            std::thread::spawn(move || {
                for n in 0..10 {
                    let op_id = OpId::from_bytes([thread * 10 + n + 1; 16]);
                    let device = DeviceId::from_bytes(*caller.device.as_bytes());
                    let commit =
                        Commit { op_id, device, ..commit_with(1, vec![put(n + 1, 0, "x")]) };
                    let request = CommitRequest { caller, workspace, commit };
                    service.commit_batch(vec![request]).pop().unwrap().unwrap();
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    let service = SyncService::new(database);
    let entries = service.entries(&caller, workspace, 0, u64::MAX).unwrap();
    let last = entries.iter().fold(genesis.head(), |head, entry| {
        assert!(entry.follows(&head));
        entry.head()
    });
    assert_eq!(last.seq, 40);
    for n in 1..=10 {
        let version = version(&service, workspace, n);
        assert_eq!(version, 1, "exactly one of four commits on one base is accepted");
    }
}

/// Proposals of two devices: new files, edits on right and wrong bases, fences, repetitions, and much that is refused.
fn mixed_proposals(world: &World) -> Vec<CommitRequest> {
    let change = |op: u8| match op % 7 {
        0 => vec![put(op, 0, "new"), put(op, 1, "edited at once")],
        1 => vec![put(1, u64::from(op / 7), "edited by turns")],
        2 => vec![model::Change { node: NodeId::FENCE, ..put(0, 0, "fence") }],
        _ => vec![put(op % 5, u64::from(op % 3), "on some base")],
    };
    let mut requests = Vec::new();
    for op in 1..=60 {
        let device = usize::from(op % 3 == 0);
        let mut commit = world.commit(device, op, change(op));
        match op % 11 {
            4 => commit.packs = vec![PackRef { id: PackId::from_bytes([9; 32]), length: 5 }],
            5 => commit.seen = Head { seq: 3, hash: EntryHash::from_bytes([3; 32]) },
            6 => commit.seen = world.genesis.head(),
            7 => commit.device = world.callers[1 - device].device,
            _ => {}
        }
        requests.push(world.request(device, &commit));
        if op % 8 == 0 {
            requests.push(world.request(device, &commit));
        }
        if op % 9 == 0 {
            let other = Commit { changes: vec![put(9, 9, "reused")], ..commit };
            requests.push(world.request(device, &other));
        }
        requests.push(world.request(2, &world.commit(2, op, vec![])));
    }
    requests
}

#[test]
fn groups_of_any_size_lead_to_the_log_of_commits_one_by_one() {
    let outcomes = |size: usize| {
        let mut world = world();
        let account = world.callers[0].account;
        // So that the last ones do not fit any more.
        world.service.metadata_mut().update_quota(account, Some(6_000)).unwrap();
        let requests = mixed_proposals(&world);
        let mut told = Vec::new();
        for group in requests.chunks(size) {
            let outcomes = world.service.commit_batch(group.to_vec());
            told.extend(outcomes.into_iter().map(|outcome| match outcome {
                Ok(Committed { head, appended }) => Ok((head, appended)),
                Err(error) => Err(error.to_string()),
            }));
        }
        let used = world.service.metadata().used_bytes(account).unwrap();
        (told, used, world.entries())
    };
    let alone = outcomes(1);
    let kinds = |told: &[Result<_, String>]| told.iter().filter(|outcome| outcome.is_ok()).count();
    assert!(kinds(&alone.0) > 20 && alone.0.len() - kinds(&alone.0) > 60, "{alone:?}");
    assert!(alone.0.iter().any(|outcome| matches!(outcome, Err(text) if text.contains("quota"))));
    for size in [2, 3, 7, 50, 1000] {
        assert!(outcomes(size) == alone, "groups of {size}");
    }
}

#[test]
fn no_commit_is_longer_than_its_bound_not_even_a_sealed_one() {
    let long = vec![7; 300];
    let changes = vec![put(255, u64::MAX, "name"); 3];
    let plain = Commit {
        device_name: "x".repeat(DEVICE_NAME_LENGTH_MAX),
        inline_packs: vec![long.clone()],
        ..commit_with(1, changes)
    };
    let seal = model::commit::CommitSeal {
        epoch: u32::MAX,
        salt: [1; 32],
        device_key: [2; 32],
        certificate: [3; 64],
        header: long,
        signature: [4; 64],
    };
    let sealed = Commit { seal: Some(Box::new(seal)), device_name: String::new(), ..plain.clone() };
    for commit in [plain, sealed] {
        let length = encode_message(&commit).len();
        assert!(length <= length_bound(&commit), "{length} and {}", length_bound(&commit));
    }
}
