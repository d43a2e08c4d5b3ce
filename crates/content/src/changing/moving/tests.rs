use model::codec::encode_message;
use model::testing::node;
use model::{Action, NodeRecord};

use super::super::tests::{Log, name};
use super::*;

fn versions(log: &Log, nodes: &[u8]) -> Vec<(NodeId, u64, Name)> {
    let seen = |id: &u8| {
        let found = log.tree.get(&node(*id)).unwrap();
        (node(*id), found.version, found.record.name.clone())
    };
    nodes.iter().map(seen).collect()
}

/// Two folders, and two files beside them.
fn log() -> Log {
    let mut log = Log::default();
    log.folder(1, NodeId::ROOT, "one");
    log.folder(2, node(1), "two");
    log.put(3, NodeId::ROOT, "a", 1);
    log.put(4, NodeId::ROOT, "b", 2);
    log
}

#[test]
fn nodes_are_moved_together_and_back_with_what_was_changed_in_them_since() {
    let mut log = log();
    let (changes, moves) = move_all(&log.tree, &versions(&log, &[3, 4]), node(2)).unwrap();
    log.append(changes);
    assert_eq!(
        (log.names(NodeId::ROOT), log.names(node(2))),
        (named(&["one"]), named(&["a", "b"]))
    );
    log.put(9, node(2), "a", 7);
    // Somebody else takes one of them elsewhere, which stays so.
    let elsewhere = relocate(&log.tree, node(4), node(1), name("b")).unwrap();
    log.append(elsewhere);
    let back = move_back(&log.tree, &moves).unwrap();
    assert_eq!(back.len(), 1);
    log.append(back);
    assert_eq!(log.names(NodeId::ROOT), ["a", "one"]);
    assert_eq!(log.names(node(1)), ["b", "two"]);
    assert_eq!(log.tree.get(&node(3)).unwrap().version, 4, "it has what was changed in it");
    assert_eq!(move_back(&log.tree, &moves), Err(ChangeError::Changed { node: node(4) }));
    assert_eq!(move_back(&log.tree, &[]), Ok(Vec::new()));
}

#[test]
fn new_name_is_given_to_what_was_seen_and_taken_back_from_what_nobody_else_has_moved_or_renamed() {
    let mut log = log();
    let rename =
        |log: &Log, seen: u64| move_all(&log.tree, &[(node(3), seen, name("new"))], NodeId::ROOT);
    // Somebody else takes it into a folder while its new name is typed.
    let seen = log.tree.get(&node(3)).unwrap().version;
    let elsewhere = relocate(&log.tree, node(3), node(2), name("a")).unwrap();
    log.append(elsewhere);
    assert_eq!(rename(&log, seen), Err(ChangeError::Changed { node: node(3) }));
    let back = relocate(&log.tree, node(3), NodeId::ROOT, name("a")).unwrap();
    log.append(back);

    let (changes, moves) = rename(&log, 3).unwrap();
    log.append(changes);
    log.put(9, NodeId::ROOT, "new", 7);
    let back = move_back(&log.tree, &moves).unwrap();
    log.append(back);
    assert_eq!(log.names(NodeId::ROOT), ["a", "b", "one"], "with what was changed in it since");

    let (changes, moves) = rename(&log, 6).unwrap();
    log.append(changes);
    let theirs = relocate(&log.tree, node(3), NodeId::ROOT, name("theirs")).unwrap();
    log.append(theirs);
    assert_eq!(move_back(&log.tree, &moves), Err(ChangeError::Changed { node: node(3) }));
    let elsewhere = relocate(&log.tree, node(3), node(2), name("new")).unwrap();
    log.append(elsewhere);
    assert_eq!(move_back(&log.tree, &moves), Err(ChangeError::Changed { node: node(3) }));
}

#[test]
fn all_are_moved_as_they_were_seen_or_none() {
    let mut log = log();
    log.put(5, node(2), "b", 3);
    let seen = versions(&log, &[3, 4]);
    let taken = Err(ChangeError::Taken { name: "b".to_owned() });
    assert_eq!(move_all(&log.tree, &seen, node(2)), taken);
    let mut renamed = seen.clone();
    renamed[1].2 = name("a");
    let twice = Err(ChangeError::Taken { name: "a".to_owned() });
    assert_eq!(move_all(&log.tree, &renamed, node(2)), twice);
    renamed[1].2 = name("b (2)");
    assert_eq!(move_all(&log.tree, &renamed, node(2)).unwrap().0.len(), 2);
    log.put(9, NodeId::ROOT, "a", 9);
    assert_eq!(move_all(&log.tree, &renamed, node(2)), Err(ChangeError::Changed { node: node(3) }));
    let into = |nodes: &[u8], folder: u8| move_all(&log.tree, &versions(&log, nodes), node(folder));
    assert_eq!(into(&[1], 2), Err(ChangeError::IntoItself { node: node(1) }));
    assert_eq!(into(&[1], 1), Err(ChangeError::IntoItself { node: node(1) }));
    assert_eq!(into(&[3], 4), Err(ChangeError::NoSuch { node: node(4) }));
    assert_eq!(into(&[2], 1), Ok((Vec::new(), Vec::new())), "it is there already");
}

#[test]
fn every_change_rests_on_the_version_that_was_seen() {
    let log = log();
    let (changes, _) = move_all(&log.tree, &versions(&log, &[1, 3]), node(2)).map_or_else(
        |error| {
            assert_eq!(error, ChangeError::IntoItself { node: node(1) });
            move_all(&log.tree, &versions(&log, &[3]), node(2)).unwrap()
        },
        |_| panic!("a folder went into itself"),
    );
    let record = log.tree.get(&node(3)).unwrap().record.clone();
    let record = NodeRecord { parent: node(2), ..record };
    let action = Action::Put(encode_message(&record));
    assert_eq!(changes, [Change { node: node(3), base: 1, action }]);
}

fn named(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}
