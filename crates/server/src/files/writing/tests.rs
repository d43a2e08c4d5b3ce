use model::{Change, Mount, Mounts};

use super::*;
use crate::files::spool::Spool;
use crate::testing::TestApp;

fn path(text: &str) -> RelativePath {
    RelativePath::new(text.as_bytes()).unwrap()
}

#[tokio::test]
async fn file_whose_folder_is_shared_at_the_same_moment_lies_nowhere_else() {
    let test = TestApp::start();
    let ([caller, other], workspace) = (test.devices, test.home.workspace());
    let app = Arc::clone(&test.app);
    let folder = app.new_node();
    let make = |view: &View| changes::make_folder(view, &path("d"), folder);
    app.apply(caller, workspace, make).await.unwrap();
    let seen = app.view(caller, workspace).await.unwrap().head();

    let writing = test.hold_writer().await;
    let mount = Mount { workspace: WorkspaceId::from_bytes([1; 16]), since: 1 };
    let payload = model::codec::encode_message(&Mounts::from_iter([(folder, mount)]));
    let share = Change { node: NodeId::MOUNTS, base: 0, action: Action::Put(payload) };
    let commit = Commit { device: other.device, seen, ..model::testing::commit(1, vec![share]) };
    app.committer.commit(CommitRequest { caller: other, workspace, commit }, drop).await.unwrap();
    let body = Spool::begin(&app.files.spools).await.unwrap().finish().await.unwrap();
    let modified = Timestamp::default();
    let put = Put { path: path("d/x"), condition: Condition::Any, modified, upload: None };
    let go = async {
        test.until_waiting(2).await;
        drop(writing);
    };
    let (refused, ()) = tokio::join!(app.put_file(caller, workspace, &put, &body), go);
    assert!(matches!(refused, Err(ServerError::Conflict { .. })), "{refused:?}");
    let view = app.view(caller, workspace).await.unwrap();
    assert!(view.is_mounted(&folder), "it was shared before the file came");
    assert_eq!(view.head().seq, 4, "the file came, and went again");
    let left: Vec<NodeId> =
        view.list(NodeId::ROOT, None, 9).into_iter().map(|node| node.id).collect();
    assert_eq!(left, [folder]);
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
        let long = std::time::Duration::from_secs(30);
        let seen = tokio::time::timeout(long, app.view(other, workspace)).await;
        assert_eq!(seen.expect("it does not wait").unwrap().head().seq, 0);
        drop(writing);
    };
    let (made, ()) = tokio::join!(app.apply(caller, workspace, make), read);
    made.unwrap();
    // Who was let in before sees the newer state, also while somebody else has the turn to change it.
    let _turn = app.view_to_change(caller, workspace).await.unwrap();
    let seen = tokio::time::timeout(std::time::Duration::from_secs(30), app.view_of(before)).await;
    assert_eq!(seen.expect("it does not wait").unwrap().head().seq, 1);
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
    let reading = app.let_in(caller, workspace, Right::Write).await.unwrap();
    let folder = app.new_node();
    for (rests_on, is_done) in [(heads.clone(), false), (vec![lost], false), (vec![newest], true)] {
        let packs = Packs { rests_on, ..Packs::default() };
        let make = |view: &View| changes::make_folder(view, &path("c"), folder);
        let attempt = app.apply_with(reading, packs, make).await.unwrap();
        assert_eq!(matches!(attempt, Attempt::Done(_)), is_done);
        assert_eq!(matches!(attempt, Attempt::Lost), !is_done);
    }
    // A view that did not come through what was noted before leaves that noted.
    let mut heads = vec![lost];
    note(&mut heads, &app.view(caller, workspace).await.unwrap());
    assert_eq!((heads.len(), heads[0]), (2, lost));
}
