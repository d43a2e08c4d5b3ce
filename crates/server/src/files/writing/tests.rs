use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use content::conflicts::{Decision, Keep};
use model::{Change, Clock, ConflictOrigin, Fence, Mount, Mounts};

use super::*;
use crate::files::spool::Spool;
use crate::files::views::LET_IN_HOLDS;
use crate::services::accounts;
use crate::services::files::conflicts;
use crate::services::readers::{READERS, WAIT_MAX as READING_WAIT_MAX};
use crate::testing::TestApp;

fn path(text: &str) -> RelativePath {
    RelativePath::new(text.as_bytes()).unwrap()
}

#[tokio::test]
async fn file_whose_folder_is_shared_at_the_same_moment_lies_nowhere_else() {
    let test = TestApp::start();
    let (caller, workspace) = (test.devices[0], test.home.workspace());
    let app = &test.app;
    let [folder] = made(&test, ["d/"]).await;
    let body = Spool::begin(&app.files.spools).await.unwrap().finish().await.unwrap();
    let modified = Timestamp::default();
    let put = Put { path: path("d/x"), condition: Condition::Any, modified, upload: None };
    let refused =
        beside(&test, vec![share(folder)], app.put_file(caller, workspace, &put, &body)).await;
    assert!(matches!(refused, Err(ServerError::Conflict { .. })), "{refused:?}");
    let view = app.view(caller, workspace).await.unwrap();
    assert!(view.is_mounted(&folder), "it was shared before the file came");
    assert_eq!(view.head().seq, 4, "the file came, and went again");
    let left: Vec<NodeId> =
        view.list(NodeId::ROOT, None, 9).into_iter().map(|node| node.id).collect();
    assert_eq!(left, [folder]);
}

/// Lets a device change a plain workspace of its owner at the moment at which somebody else's plan, which does not see that, is to be committed.
async fn beside<T>(test: &TestApp, theirs: Vec<Change>, ours: impl Future<Output = T>) -> T {
    let writing = hold_behind(test, theirs).await;
    let go = async {
        test.until_waiting(2).await;
        drop(writing);
    };
    tokio::join!(ours, go).0
}

/// Holds the writer, with a commit of a device as the first that waits for it.
async fn hold_behind(test: &TestApp, theirs: Vec<Change>) -> std::sync::mpsc::Sender<()> {
    let ([_, other], workspace) = (test.devices, test.home.workspace());
    let seen = test.app.view(other, workspace).await.unwrap().head();
    let writing = test.hold_writer().await;
    let commit = of_device(test, seen, theirs);
    test.app.committer.commit(commit, drop).await.unwrap();
    writing
}

/// Lets a device change something before and behind what we ask for, all of which is in the log before we hear of ours. `prepare` comes when
/// ours waits to be written, `meanwhile` when all is, and before we go on.
async fn between<T, P>(
    test: &TestApp,
    [first, later]: [Vec<Change>; 2],
    ours: impl Future<Output = T>,
    prepare: impl AsyncFnOnce() -> P,
    meanwhile: impl AsyncFnOnce(Head, P),
) -> T {
    let seen = test.app.view(test.devices[1], test.home.workspace()).await.unwrap().head();
    let writing = hold_behind(test, first).await;
    let go = async {
        test.until_waiting(2).await;
        let prepared = prepare().await;
        test.app.committer.commit(of_device(test, seen, later), drop).await.unwrap();
        drop(writing);
        meanwhile(until_written(test, seen.seq + 3).await, prepared).await;
    };
    tokio::join!(biased; go, ours).1
}

/// Waits on this thread, so that nobody goes on meanwhile, until the log has so many entries.
async fn until_written(test: &TestApp, seq: u64) -> Head {
    let workspace = test.home.workspace();
    loop {
        let (tell, told) = std::sync::mpsc::channel();
        let look = move |metadata: &mut dyn Metadata| {
            let found = metadata.workspace(workspace)?;
            Ok(found.map(|found| found.head))
        };
        let finish = move |head| tell.send(head).unwrap();
        test.app.writer.submit(look, finish).await.unwrap();
        let head: Result<Option<Head>> = told.recv().unwrap();
        match head.unwrap() {
            Some(head) if head.seq >= seq => return head,
            _ => {}
        }
    }
}

/// Returns a commit of a device.
fn of_device(test: &TestApp, seen: Head, changes: Vec<Change>) -> CommitRequest {
    let ([_, caller], workspace) = (test.devices, test.home.workspace());
    let op_id = OpId::from_bytes(random_bytes(&*test.app.random));
    let commit = model::testing::commit(1, changes);
    let commit = Commit { op_id, device: caller.device, seen, ..commit };
    CommitRequest { caller, workspace, commit }
}

/// Puts a commit of a device into the log; returns the entry that it is.
async fn commit_of_device(test: &TestApp, seen: Head, changes: Vec<Change>) -> Head {
    let (answer, answered) = oneshot::channel();
    let finish = |committed| drop(answer.send(committed));
    test.app.committer.commit(of_device(test, seen, changes), finish).await.unwrap();
    answered.await.unwrap().unwrap()
}

/// Puts empty files, and folders where the name ends with a slash; returns their nodes.
async fn made<const N: usize>(test: &TestApp, names: [&str; N]) -> [NodeId; N] {
    let (caller, workspace) = (test.devices[0], test.home.workspace());
    let nodes = names.map(|_| test.app.new_node());
    for (name, node) in zip(names, nodes) {
        let plan = |view: &View| match name.strip_suffix('/') {
            Some(name) => changes::make_folder(view, &path(name), node),
            None => changes::put_file(view, &path(name), &Condition::Any, &empty(0), node),
        };
        test.app.apply(caller, workspace, plan).await.unwrap();
    }
    nodes
}

/// Returns the change that makes a folder a workspace of its own.
fn share(folder: NodeId) -> Change {
    let mount = Mount { workspace: WorkspaceId::from_bytes([1; 16]), since: 1 };
    let payload = model::codec::encode_message(&Mounts::from_iter([(folder, mount)]));
    Change { node: NodeId::MOUNTS, base: 0, action: Action::Put(payload) }
}

fn empty(seconds: i64) -> NewFile {
    let modified = Timestamp { seconds, nanoseconds: 0 };
    NewFile { content: Content::default(), modified }
}

/// Returns the change of a file that is put at a path, and the version that is there before.
async fn putting(test: &TestApp, name: &str, seconds: i64) -> (Vec<Change>, FileNode) {
    let view = test.app.view(test.devices[0], test.home.workspace()).await.unwrap();
    let new = test.app.new_node();
    let plan = changes::put_file(&view, &path(name), &Condition::Any, &empty(seconds), new);
    (plan.unwrap().changes, view.get(&path(name)).unwrap())
}

#[tokio::test]
async fn what_is_done_to_a_file_whose_folder_is_shared_at_the_same_moment_is_not_said_to_be_done() {
    for is_deletion in [false, true] {
        let test = TestApp::start();
        let (caller, workspace) = (test.devices[0], test.home.workspace());
        let [folder, inner] = made(&test, ["d/", "d/x"]).await;
        let plan = |view: &View| match is_deletion {
            true => changes::delete(view, &path("d/x"), &Condition::Any),
            false => changes::set_modified(view, &path("d/x"), empty(7).modified),
        };
        let asked = test.app.apply(caller, workspace, plan);
        let refused = beside(&test, vec![share(folder)], asked).await;
        assert!(matches!(refused, Err(ServerError::NotFound { .. })), "{refused:?}");
        let view = test.app.view(caller, workspace).await.unwrap();
        assert!(view.is_frozen(&inner), "it is what the other workspace began with");
    }
}

#[tokio::test]
async fn what_comes_before_its_folder_is_shared_counts_there_also_where_both_are_seen_at_once() {
    let test = TestApp::start();
    let (caller, workspace) = (test.devices[0], test.home.workspace());
    let [folder, inner] = made(&test, ["d/", "d/x"]).await;
    let app = &test.app;
    let reading = app.let_in(caller, workspace, Right::Read).await.unwrap();
    let turn = app.newest_turn(reading).await.unwrap();
    let view = turn.view().await;
    let seen = view.head();
    let [one, other] = [5, 7].map(|seconds| {
        let plan = changes::set_modified(&view, &path("d/x"), empty(seconds).modified);
        plan.unwrap().changes
    });
    drop(view);
    // Whoever shares it has seen the change; nobody here has, before both are there.
    let before = commit_of_device(&test, seen, one).await;
    let shared = commit_of_device(&test, before, vec![share(folder)]).await;
    let wanted = |seq| Some(Wanted { seq, subject: inner });
    let done = app.catch_up(reading, &turn, wanted(before.seq)).await.unwrap().unwrap();
    assert!(turn.view().await.is_frozen(&inner));
    assert!(!done.is_elsewhere, "it is what the other workspace began with");
    let late = other.into_iter().map(|change| Change { base: change.base + 1, ..change });
    let after = commit_of_device(&test, shared, late.collect()).await;
    let done = app.catch_up(reading, &turn, wanted(after.seq)).await.unwrap().unwrap();
    assert!(done.is_elsewhere, "it counts for nothing here");
}

#[tokio::test]
async fn what_was_to_be_replaced_is_there_where_what_was_to_replace_it_was_changed() {
    let test = TestApp::start();
    let (caller, workspace) = (test.devices[0], test.home.workspace());
    let [one, folder, inner] = made(&test, ["a", "d/", "d/x"]).await;
    let (theirs, seen) = putting(&test, "a", 7).await;
    let to = changes::Destination { path: path("d"), overwrite: true };
    let condition = Condition::Is(vec![seen.etag()]);
    let plan = |view: &View| changes::move_node(view, &path("a"), &to, &condition);
    let refused = beside(&test, theirs, test.app.apply(caller, workspace, plan)).await;
    assert!(matches!(refused, Err(ServerError::PreconditionFailed { .. })), "{refused:?}");
    let view = test.app.view(caller, workspace).await.unwrap();
    let modified = |name| view.find(&path(name)).map(|it| it.record.unwrap().modified.seconds);
    assert_eq!(modified("a"), Some(7), "theirs was first");
    for (name, node) in [("a", one), ("d", folder), ("d/x", inner)] {
        assert_eq!(view.find(&path(name)).map(|it| it.id), Some(node), "{name}");
    }
}

#[tokio::test]
async fn what_has_replaced_something_goes_back_where_that_could_not_be_deleted() {
    let test = TestApp::start();
    let (caller, workspace) = (test.devices[0], test.home.workspace());
    let [one, folder, inner] = made(&test, ["a", "d/", "d/x"]).await;
    let new = test.app.new_node();
    let view = test.app.view(caller, workspace).await.unwrap();
    let theirs = changes::put_file(&view, &path("d/y"), &Condition::Any, &empty(7), new).unwrap();
    drop(view);
    let to = changes::Destination { path: path("d"), overwrite: true };
    let mut tries = 0;
    let plan = |view: &View| {
        tries += 1;
        let there: Vec<_> = ["a", "d", "d/x"].map(|name| view.find(&path(name))).into();
        let ids: Vec<_> = there.into_iter().flatten().map(|node| node.id).collect();
        assert_eq!(ids, [one, folder, inner], "attempt {tries}");
        match tries {
            1 => changes::move_node(view, &path("a"), &to, &Condition::Any),
            _ => changes::make_folder(view, &path("d"), new),
        }
    };
    let refused = beside(&test, theirs.changes, test.app.apply(caller, workspace, plan)).await;
    assert!(matches!(refused, Err(ServerError::Taken { .. })), "{refused:?}");
    assert_eq!(tries, 2);
    let view = test.app.view(caller, workspace).await.unwrap();
    assert_eq!(view.find(&path("d/y")).map(|node| node.id), Some(new));
}

#[tokio::test]
async fn folder_that_is_renamed_at_the_moment_at_which_it_is_to_be_deleted_has_all_that_was_in_it()
{
    let test = TestApp::start();
    let (caller, workspace) = (test.devices[0], test.home.workspace());
    let [folder, inner] = made(&test, ["d/", "d/x"]).await;
    let view = test.app.view(caller, workspace).await.unwrap();
    let to = changes::Destination { path: path("e"), overwrite: false };
    let theirs = changes::move_node(&view, &path("d"), &to, &Condition::Any).unwrap();
    drop(view);
    let plan = |view: &View| changes::delete(view, &path("d"), &Condition::Any);
    let refused = beside(&test, theirs.changes, test.app.apply(caller, workspace, plan)).await;
    assert!(matches!(refused, Err(ServerError::NotFound { .. })), "{refused:?}");
    let view = test.app.view(caller, workspace).await.unwrap();
    for (name, node) in [("e", folder), ("e/x", inner)] {
        assert_eq!(view.find(&path(name)).map(|it| it.id), Some(node), "{name}");
    }
}

#[tokio::test]
async fn what_comes_back_under_a_name_that_is_taken_comes_beside_what_has_it() {
    let test = TestApp::start();
    let (caller, workspace) = (test.devices[0], test.home.workspace());
    let app = &test.app;
    for is_named in [false, true] {
        let [old] = made(&test, ["a"]).await;
        let gone = |view: &View| changes::delete(view, &path("a"), &Condition::Any);
        app.apply(caller, workspace, gone).await.unwrap();
        let [new] = made(&test, ["a"]).await;
        let view = app.view(caller, workspace).await.unwrap();
        let (head, record) = (view.head(), view.tree().get(&old).unwrap().record.clone());
        drop(view);
        let back = |view: &View| match is_named {
            true => changes::restore(view, old, &record),
            false => changes::revive(view, old),
        };
        let node = app.apply(caller, workspace, back).await.unwrap().node.unwrap();
        assert_eq!(node.id, old);
        let view = app.view(caller, workspace).await.unwrap();
        assert_eq!(view.head().seq, head.seq + 1, "by one commit");
        assert_eq!(view.find(&path("a")).map(|node| node.id), Some(new));
        let record = node.record.unwrap();
        assert_eq!(record.conflict.map(|origin| origin.node), Some(new), "{record:?}");
        assert!(record.name.to_string().starts_with("a (conflict v"), "{record:?}");
        drop(view);
        app.apply(caller, workspace, gone).await.unwrap();
    }
}

#[tokio::test]
async fn decision_about_a_copy_that_changes_at_the_same_moment_leaves_both_sides_as_they_were() {
    let test = TestApp::start();
    let (caller, workspace) = (test.devices[0], test.home.workspace());
    let [original, copy] = made(&test, ["a", "b"]).await;
    let origin = ConflictOrigin { node: original, base: 1 };
    let mark = conflicts::Mark { node: copy, version: 1, origin };
    test.app.apply(caller, workspace, |view| conflicts::mark(view, &mark)).await.unwrap();
    // They differ, so that a decision changes the original.
    let later = |view: &View| changes::set_modified(view, &path("b"), empty(5).modified);
    test.app.apply(caller, workspace, later).await.unwrap();
    for changed in ["b", "a"] {
        let (theirs, _) = putting(&test, changed, 7).await;
        let (_, [first, second]) = sides(&test).await;
        let decision = Decision {
            node: copy,
            version: second.version,
            original_version: Some(first.version),
            keep: Keep::Copy,
        };
        let plan = |view: &View| conflicts::resolve(view, &decision);
        let refused = beside(&test, theirs, test.app.apply(caller, workspace, plan)).await;
        assert!(matches!(refused, Err(ServerError::PreconditionFailed { .. })), "{refused:?}");
        let (count, now) = sides(&test).await;
        assert_eq!((count, now.each_ref().map(|side| side.id)), (1, [original, copy]), "{changed}");
        // Theirs, or the decision and its way back.
        let versions = now.each_ref().map(|side| side.version);
        let wanted = match changed {
            "b" => [first.version + 2, second.version + 1],
            _ => [first.version + 1, second.version + 2],
        };
        assert_eq!(versions, wanted, "{changed}");
        for (name, before, now) in [("a", first, &now[0]), ("b", second, &now[1])] {
            let modified = before.record.as_ref().unwrap().modified.seconds;
            let wanted = if name == changed { 7 } else { modified };
            assert_eq!(now.record.as_ref().unwrap().modified.seconds, wanted, "{changed}: {name}");
        }
    }
}

#[tokio::test]
async fn what_is_changed_at_once_is_changed_to_the_end_where_who_asked_has_gone() {
    let test = TestApp::start();
    let (caller, workspace) = (test.devices[0], test.home.workspace());
    let [one, folder, _] = made(&test, ["a", "d/", "d/x"]).await;
    let (theirs, seen) = putting(&test, "a", 7).await;
    let app = &test.app;
    let writing = hold_behind(&test, theirs).await;
    let to = changes::Destination { path: path("d"), overwrite: true };
    let condition = Condition::Is(vec![seen.etag()]);
    let plan = |view: &View| changes::move_node(view, &path("a"), &to, &condition);
    tokio::select! {
        biased;
        _ = app.apply(caller, workspace, plan) => panic!("nobody writes"),
        () = test.until_waiting(2) => {}
    }
    drop(writing);
    // Its turn is over once all is taken back.
    let long = Duration::from_secs(30);
    let turn = tokio::time::timeout(long, app.files.views.turn(workspace)).await;
    drop(turn.expect("it comes to its end"));
    // Of one group this comes before commits; the second time it is another group.
    for _ in 0..2 {
        drop(test.hold_writer().await);
    }
    let view = app.view(caller, workspace).await.unwrap();
    for (name, node) in [("a", one), ("d", folder)] {
        assert_eq!(view.find(&path(name)).map(|it| it.id), Some(node), "{name}");
    }
    assert!(view.find(&path("d/x")).is_some());
}

/// Returns how many conflicts there are, and what is at `a` and `b`.
async fn sides(test: &TestApp) -> (usize, [FileNode; 2]) {
    let view = test.app.view(test.devices[0], test.home.workspace()).await.unwrap();
    let there = ["a", "b"].map(|name| view.get(&path(name)).unwrap());
    (view.conflict_count(), there)
}

#[tokio::test]
async fn who_reads_does_not_wait_until_what_somebody_writes_is_durable() {
    let test = TestApp::start();
    let ([caller, other], workspace) = (test.devices, test.home.workspace());
    let app = Arc::clone(&test.app);
    let before = app.let_in(other, workspace, Right::Read).await.unwrap();
    let writing = test.hold_writer().await;
    let folder = app.new_node();
    let make = |view: &View| changes::make_folder(view, &path("d"), folder);
    let read = async {
        test.until_waiting(1).await;
        let long = Duration::from_secs(30);
        let seen = tokio::time::timeout(long, app.view(other, workspace)).await;
        assert_eq!(seen.expect("it does not wait").unwrap().head().seq, 0);
        drop(writing);
    };
    let (made, ()) = tokio::join!(app.apply(caller, workspace, make), read);
    made.unwrap();
    // Who was let in before sees the newer state, also while somebody else has the turn to change it.
    let _turn = app.files.views.turn(workspace).await;
    let seen = tokio::time::timeout(Duration::from_secs(30), app.view_of(before)).await;
    assert_eq!(seen.expect("it does not wait").unwrap().head().seq, 1);
}

/// A clock that shows the seconds that a test sets.
#[derive(Debug, Default)]
struct Standing(AtomicU64);

impl Clock for Standing {
    fn now(&self) -> Timestamp {
        Timestamp::default()
    }

    fn elapsed(&self) -> Duration {
        Duration::from_secs(self.0.load(Ordering::SeqCst))
    }

    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(tokio::time::sleep(duration))
    }
}

#[tokio::test]
async fn what_a_device_commits_after_somebody_was_let_in_is_seen_before_anything_takes_its_place() {
    let mut test = TestApp::start();
    let clock = Arc::new(Standing::default());
    Arc::get_mut(&mut test.app).unwrap().clock = Arc::<Standing>::clone(&clock);
    let ([caller, other], workspace) = (test.devices, test.home.workspace());
    let app = Arc::clone(&test.app);
    let file = app.new_node();
    let at = |seconds| Timestamp { seconds, nanoseconds: 0 };
    let plan_of = move |view: &View, seconds| {
        let new = NewFile { content: Content::default(), modified: at(seconds) };
        changes::put_file(view, &path("x"), &Condition::Any, &new, file)
    };
    app.apply(caller, workspace, |view| plan_of(view, 0)).await.unwrap();

    let author = app.let_write(caller, workspace).await.unwrap();
    for round in 1..4 {
        let view = app.view(other, workspace).await.unwrap();
        let Plan { changes, .. } = plan_of(&view, round).unwrap();
        let seen = view.head();
        drop(view);
        let newest = commit_of_device(&test, seen, changes).await;
        // Nobody has looked at the log since, but where it was long ago.
        let is_long = round == 3;
        if is_long {
            clock.0.store(2 * LET_IN_HOLDS.as_secs(), Ordering::SeqCst);
        }
        let mut planned_on = Vec::new();
        let plan = |view: &View| {
            planned_on.push(view.head());
            plan_of(view, 10 + round)
        };
        let turn = app.turn_of(author.reading).await.unwrap();
        let attempt = app.apply_with(&author, turn, Packs::default(), plan).await.unwrap();
        assert_eq!(planned_on == [newest], is_long, "{round}");
        assert_eq!(matches!(attempt, Attempt::Done(_)), is_long, "{round}");
        assert_eq!(matches!(attempt, Attempt::Lost), !is_long, "{round}");
        let view = app.view(caller, workspace).await.unwrap();
        let modified = if is_long { 10 + round } else { round };
        assert_eq!(view.find(&path("x")).unwrap().record.unwrap().modified, at(modified));
    }
}

#[tokio::test]
async fn what_rests_on_entries_that_the_log_has_lost_is_packed_anew() {
    let test = TestApp::start();
    let ([caller, _], workspace) = (test.devices, test.home.workspace());
    let app = &test.app;
    let mut heads = vec![app.view(caller, workspace).await.unwrap().head()];
    for name in ["a", "b"] {
        let folder = app.new_node();
        let make = |view: &View| changes::make_folder(view, &path(name), folder);
        app.apply(caller, workspace, make).await.unwrap();
        note(&mut heads, &app.view(caller, workspace).await.unwrap());
    }
    let [newest] = heads[..] else { panic!("{heads:?}") };
    assert_eq!(newest.seq, 2);
    let lost = Head { hash: model::EntryHash::from_bytes([1; 32]), ..newest };
    heads.insert(0, lost);
    let author = app.let_write(caller, workspace).await.unwrap();
    let folder = app.new_node();
    for (rests_on, is_done) in [(heads.clone(), false), (vec![lost], false), (vec![newest], true)] {
        let packs = Packs { rests_on, ..Packs::default() };
        let make = |view: &View| changes::make_folder(view, &path("c"), folder);
        let turn = app.turn_of(author.reading).await.unwrap();
        let attempt = app.apply_with(&author, turn, packs, make).await.unwrap();
        assert_eq!(matches!(attempt, Attempt::Done(_)), is_done);
        assert_eq!(matches!(attempt, Attempt::Lost), !is_done);
    }
    // A view that did not come through what was noted before leaves that noted.
    let mut heads = vec![lost];
    note(&mut heads, &app.view(caller, workspace).await.unwrap());
    assert_eq!((heads.len(), heads[0]), (2, lost));
}

#[tokio::test]
async fn who_has_put_something_hears_of_that_and_not_of_what_came_behind_it() {
    for is_deletion in [false, true] {
        let test = TestApp::start();
        let (caller, workspace) = (test.devices[0], test.home.workspace());
        let [file, _] = made(&test, ["a", "b"]).await;
        let (theirs, _) = putting(&test, "b", 7).await;
        let (mut later, _) = putting(&test, "a", 9).await;
        later[0].base += 1;
        if is_deletion {
            later[0].action = Action::Delete;
        }
        let plan = |view: &View| changes::set_modified(view, &path("a"), empty(5).modified);
        let asked = test.app.apply(caller, workspace, plan);
        let done =
            between(&test, [theirs, later], asked, async || (), async |_, ()| ()).await.unwrap();
        let node = done.node.expect("ours has stood");
        assert_eq!((node.id, node.version, done.path), (file, 2, Some(path("a"))));
        assert_eq!(node.record.unwrap().modified.seconds, 5);
        let view = test.app.view(caller, workspace).await.unwrap();
        assert_eq!(view.tree().get(&file).unwrap().version, 3, "theirs stands behind ours");
    }
}

#[tokio::test]
async fn what_was_done_is_said_to_be_done_where_who_asked_was_sent_away_since() {
    let test = TestApp::start();
    let ([caller, other], workspace) = (test.devices, test.home.workspace());
    made(&test, ["a", "b"]).await;
    let [(first, _), (mut later, _)] = [putting(&test, "b", 7).await, putting(&test, "b", 9).await];
    later[0].base += 1;
    let plan = |view: &View| changes::set_modified(view, &path("a"), empty(5).modified);
    let asked = test.app.apply(caller, workspace, plan);
    let send_away = async |_, ()| {
        let (revoked, is_revoked) = std::sync::mpsc::channel();
        let revoke = move |metadata: &mut dyn Metadata| {
            accounts::revoke_device(metadata, &other, caller.device)
        };
        let finish = move |outcome| revoked.send(outcome).unwrap();
        test.app.writer.submit(revoke, finish).await.unwrap();
        let revoked: Result<()> = is_revoked.recv().unwrap();
        revoked.unwrap();
    };
    let done = between(&test, [first, later], asked, async || (), send_away).await.unwrap();
    assert_eq!(done.node.unwrap().version, 2);
    assert!(matches!(test.app.view(caller, workspace).await, Err(ServerError::NotSignedIn)));
}

/// So many that one commit does not change them and what they are in.
const MANY: usize = 8192;

/// Puts many empty files into the folder `d`.
async fn fill(test: &TestApp) {
    let view = test.app.view(test.devices[1], test.home.workspace()).await.unwrap();
    let put = (0..MANY).flat_map(|number| {
        let (at, new) = (path(&format!("d/{number}")), test.app.new_node());
        changes::put_file(&view, &at, &Condition::Any, &empty(0), new).unwrap().changes
    });
    let (seen, put) = (view.head(), put.collect());
    drop(view);
    commit_of_device(test, seen, put).await;
}

#[tokio::test]
async fn what_is_done_by_several_commits_is_planned_anew_where_a_cleanup_comes_between_them() {
    let test = TestApp::start();
    let (caller, workspace) = (test.devices[0], test.home.workspace());
    made(&test, ["d/", "a"]).await;
    fill(&test).await;
    let [(first, _), (mut later, _)] = [putting(&test, "a", 7).await, putting(&test, "a", 9).await];
    later[0].base += 1;
    let to = changes::Destination { path: path("e"), overwrite: false };
    let mut tries = 0;
    let plan = |view: &View| {
        tries += 1;
        let new = &mut || test.app.new_node();
        let plan = changes::copy_node(view, &path("d"), &to, true, new)?;
        assert!(groups(plan.changes.clone()).len() > 1, "attempt {tries}");
        Ok(plan)
    };
    let asked = test.app.apply(caller, workspace, plan);
    let clean_up = async |seen: Head, ()| {
        let payload = model::codec::encode_message(&Fence::default());
        let fence = Change { node: NodeId::FENCE, base: 0, action: Action::Put(payload) };
        test.app.committer.commit(of_device(&test, seen, vec![fence]), drop).await.unwrap();
        until_written(&test, seen.seq + 1).await;
    };
    between(&test, [first, later], asked, async || (), clean_up).await.unwrap();
    assert_eq!(tries, 2);
    let view = test.app.view(caller, workspace).await.unwrap();
    assert!(view.fence() > 0);
    let copy = view.find(&path("e")).unwrap();
    assert_eq!(view.list(copy.id, None, usize::MAX).len(), MANY);
}

/// Keeps all connections that read for itself until what this returns is dropped.
async fn hold_readers(test: &TestApp) -> Vec<std::sync::mpsc::Sender<()>> {
    let mut held = Vec::new();
    for _ in 0..READERS {
        let (hold, dropped) = std::sync::mpsc::channel::<()>();
        let (begun, has_begun) = oneshot::channel();
        let app = Arc::clone(&test.app);
        tokio::spawn(async move {
            let wait = move |_: &dyn Metadata| {
                let _ = begun.send(());
                let _ = dropped.recv();
                Ok(())
            };
            app.readers.read(wait).await.unwrap();
        });
        has_begun.await.unwrap();
        held.push(hold);
    }
    held
}

/// Lets so many waits for a connection that reads end.
async fn let_waits_end(count: usize) {
    for _ in 0..count {
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        tokio::time::advance(READING_WAIT_MAX + READ_PAUSE).await;
    }
}

#[tokio::test]
async fn what_was_done_is_said_to_be_done_where_nothing_could_be_read_for_a_while() {
    let test = TestApp::start();
    let (caller, workspace) = (test.devices[0], test.home.workspace());
    made(&test, ["a", "b"]).await;
    let [(first, _), (mut later, _)] = [putting(&test, "b", 7).await, putting(&test, "b", 9).await];
    later[0].base += 1;
    tokio::time::pause();
    let plan = |view: &View| changes::set_modified(view, &path("a"), empty(5).modified);
    let asked = test.app.apply(caller, workspace, plan);
    let hold = async || hold_readers(&test).await;
    let stand_still = async |_, held| {
        let_waits_end(READ_TRIES).await;
        drop(held);
    };
    let done = between(&test, [first, later], asked, hold, stand_still).await.unwrap();
    assert_eq!(done.node.unwrap().version, 2);
}

#[tokio::test]
async fn part_that_stands_goes_back_where_it_could_not_be_read_what_it_has_done() {
    let test = TestApp::start();
    let (caller, workspace) = (test.devices[0], test.home.workspace());
    let [one, folder] = made(&test, ["a", "d/"]).await;
    fill(&test).await;
    let [(first, _), (mut later, _)] = [putting(&test, "a", 7).await, putting(&test, "a", 9).await];
    later[0].base += 1;
    tokio::time::pause();
    let to = changes::Destination { path: path("d"), overwrite: true };
    let plan = |view: &View| {
        let plan = changes::move_node(view, &path("a"), &to, &Condition::Any)?;
        assert!(groups(plan.changes.clone()).len() > 1);
        Ok(plan)
    };
    let asked = test.app.apply(caller, workspace, plan);
    let hold = async || hold_readers(&test).await;
    let stand_still = async |_, held| {
        // Each of them is followed by a pause.
        let_waits_end(2 * READ_TRIES).await;
        drop(held);
    };
    let refused = between(&test, [first, later], asked, hold, stand_still).await;
    assert!(matches!(refused, Err(ServerError::Unavailable { .. })), "{refused:?}");
    let view = test.app.view(caller, workspace).await.unwrap();
    for (name, node) in [("a", one), ("d", folder)] {
        assert_eq!(view.find(&path(name)).map(|it| it.id), Some(node), "{name}");
    }
    assert_eq!(view.list(folder, None, usize::MAX).len(), MANY);
}

#[tokio::test]
async fn what_was_done_is_said_to_be_done_where_the_workspace_has_become_too_large_by_it() {
    let mut test = TestApp::start();
    let (caller, workspace) = (test.devices[0], test.home.workspace());
    made(&test, ["a"]).await;
    let weight = test.app.view(caller, workspace).await.unwrap().weight();
    Arc::get_mut(&mut test.app).unwrap().files.views.weight_max = weight;
    let app = &test.app;
    let [b, c] = ["b", "c"].map(|name| (path(name), app.new_node()));
    let make = |view: &View| changes::make_folder(view, &b.0, b.1);
    let done = app.apply(caller, workspace, make).await.unwrap();
    assert_eq!(done.node.map(|node| node.id), Some(b.1));
    let more = |view: &View| changes::make_folder(view, &c.0, c.1);
    let refused = app.apply(caller, workspace, more).await;
    assert!(matches!(refused, Err(ServerError::TooLarge { .. })), "{refused:?}");
    let view = app.view(caller, workspace).await.unwrap();
    assert!(view.find(&b.0).is_some() && view.find(&c.0).is_none());
    let (seen, plan) = (view.head(), more(&view).unwrap());
    drop(view);
    commit_of_device(&test, seen, plan.changes).await;
    let refused = app.view(caller, workspace).await.map(drop);
    assert!(matches!(refused, Err(ServerError::TooLarge { .. })), "{refused:?}");
}
