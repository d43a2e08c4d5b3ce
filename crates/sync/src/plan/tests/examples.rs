//! The cases that have names: each is a folder, a merge base and a log, written as paths.

use std::collections::BTreeMap;

use model::codec::encode_message;
use model::{Mount, Mounts, NodeId, NodeState, TreeStore, WorkspaceId};

use super::case::{Case, Nodes};
use super::world::{Base, Device, File, Flag, content_of, directory, file, id, place, tree_node};
use crate::plan::{Matter, Operation, copied_place, parked_place};

/// Writes a tree: a line is `node path content`, where `/` stands for the content of a directory. Node numbers from 10 on
/// are new.
fn tree(lines: &[&str]) -> Nodes {
    let mut nodes = Nodes::new();
    let mut by_path = BTreeMap::from([(String::new(), NodeId::ROOT)]);
    for line in lines {
        let words: Vec<_> = line.split(' ').collect();
        let [number, path, content] = words[..] else { panic!("'{line}' is no node") };
        let number: u32 = number.parse().unwrap();
        let node = id((number / 10) as u8, number);
        let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
        let matter = if content == "/" { directory() } else { file(content.parse().unwrap()) };
        nodes.insert(node, (place(by_path[parent], name), matter));
        by_path.insert(path.to_owned(), node);
    }
    nodes
}

/// Checks a case and where it ends, written as `path content`.
fn ends(synced: &[&str], local: &[&str], remote: &[&str], expected: &[&str]) {
    let case = Case::new(tree(local), tree(synced), tree(remote));
    if let Err(error) = case.check(1, None) {
        panic!("{error}\n{}", case.explain(1));
    }
    let end = case.end(1).unwrap();
    let shown = |(path, matter): (String, Matter)| {
        let content = content_of(&matter).map_or("/".to_owned(), |one| one.to_string());
        format!("{} {content}", &path[1..])
    };
    assert_eq!(end.into_iter().map(shown).collect::<Vec<_>>(), expected, "{}", case.explain(1));
}

/// A change of one side arrives as it is, whichever side that is.
fn arrives(before: &[&str], after: &[&str]) {
    let mut expected: Vec<_> = after.iter().map(|line| line.split_once(' ').unwrap().1).collect();
    expected.sort_unstable();
    ends(before, after, before, &expected);
    ends(before, before, after, &expected);
}

#[test]
fn chain_of_renames_arrives() {
    arrives(&["1 a 1", "2 b 2", "3 c 3"], &["1 b 1", "2 c 2", "3 d 3"]);
    arrives(&["3 a 1", "2 b 2", "1 c 3"], &["3 b 1", "2 c 2", "1 d 3"]);
}

#[test]
fn swap_of_files_arrives() {
    arrives(&["1 a 1", "2 b 2"], &["1 b 1", "2 a 2"]);
}

#[test]
fn swap_of_directories_arrives() {
    let before = ["1 a /", "2 b /", "3 a/x 1", "4 b/x 2"];
    arrives(&before, &["2 a /", "1 b /", "4 a/x 2", "3 b/x 1"]);
}

#[test]
fn circle_of_renames_arrives() {
    arrives(&["1 a 1", "2 b 2", "3 c 3"], &["1 b 1", "2 c 2", "3 a 3"]);
}

#[test]
fn directory_that_changes_places_with_its_content_arrives() {
    arrives(&["1 a /", "2 a/a /", "3 a/a/f 1"], &["2 a /", "1 a/a /", "3 a/f 1"]);
}

#[test]
fn directory_that_is_put_into_a_new_one_of_its_name_arrives() {
    arrives(&["1 a /", "2 a/f 1"], &["11 a /", "1 a/old /", "2 a/old/f 1"]);
}

#[test]
fn file_that_takes_the_name_of_its_directory_arrives() {
    arrives(&["1 a /", "2 a/f 1"], &["2 a 1"]);
}

#[test]
fn file_replaced_by_directory_and_back_arrives() {
    arrives(&["1 a 1"], &["11 a /", "12 a/f 1"]);
    arrives(&["1 a /", "2 a/f 1"], &["11 a 1"]);
}

#[test]
fn copy_under_the_old_name_of_a_renamed_file_arrives() {
    arrives(&["1 a 1"], &["1 b 1", "11 a 1"]);
}

#[test]
fn moves_into_each_other_end_in_a_tree() {
    let before = ["1 a /", "2 b /", "3 a/f 1", "4 b/g 2"];
    let here = ["2 b /", "1 b/a /", "3 b/a/f 1", "4 b/g 2"];
    let there = ["1 a /", "2 a/b /", "3 a/f 1", "4 a/b/g 2"];
    // The log was first.
    ends(&before, &here, &there, &["a /", "a/b /", "a/b/g 2", "a/f 1"]);
}

#[test]
fn edit_wins_against_deletion() {
    ends(&["1 a 1"], &["1 a 2"], &[], &["a 2"]);
    ends(&["1 a 1"], &[], &["1 a 2"], &["a 2"]);
}

#[test]
fn move_wins_against_deletion() {
    ends(&["1 a 1"], &["1 b 1"], &[], &["b 1"]);
    ends(&["1 a 1"], &[], &["1 b 1"], &["b 1"]);
}

#[test]
fn edit_and_move_are_one_change_of_one_file() {
    ends(&["1 a 1"], &["1 a 2"], &["1 b 1"], &["b 2"]);
    ends(&["1 a 1"], &["1 b 1"], &["1 a 2"], &["b 2"]);
}

#[test]
fn both_edits_are_kept() {
    ends(
        &["1 a.txt 1"],
        &["1 a.txt 2"],
        &["1 a.txt 3"],
        &["a (conflict device 0).txt 2", "a.txt 3"],
    );
}

#[test]
fn equal_edits_are_no_conflict() {
    ends(&["1 a 1"], &["1 a 2"], &["1 a 2"], &["a 2"]);
    ends(&["1 a 1"], &["1 b 1"], &["1 b 1"], &["b 1"]);
}

#[test]
fn what_both_delete_is_gone() {
    ends(&["1 a /", "2 a/f 1"], &[], &[], &[]);
}

#[test]
fn two_moves_of_a_file_end_where_the_log_was_first() {
    ends(&["1 a 1"], &["1 b 1"], &["1 c 1"], &["c 1"]);
}

#[test]
fn same_new_name_on_both_devices_keeps_both_files() {
    ends(&[], &["11 a.txt 1"], &["21 a.txt 2"], &["a (conflict v1).txt 1", "a.txt 2"]);
}

#[test]
fn same_new_file_on_both_devices_is_one_file() {
    ends(&[], &["11 a 1"], &["21 a 1"], &["a 1"]);
}

#[test]
fn same_new_directory_on_both_devices_is_one_directory() {
    let here = ["11 a /", "12 a/b /", "13 a/b/here 1"];
    let there = ["21 a /", "22 a/b /", "23 a/b/there 2"];
    ends(&[], &here, &there, &["a /", "a/b /", "a/b/here 1", "a/b/there 2"]);
}

#[test]
fn file_and_directory_of_one_name_are_both_kept() {
    ends(
        &[],
        &["11 a /", "12 a/f 1"],
        &["21 a 2"],
        &["a 2", "a (conflict v1) /", "a (conflict v1)/f 1"],
    );
}

#[test]
fn addition_wins_against_deletion_of_its_directory() {
    let before = ["1 a /", "2 a/f 1"];
    ends(&before, &["1 a /", "2 a/f 1", "11 a/g 2"], &[], &["a /", "a/g 2"]);
    ends(&before, &[], &["1 a /", "2 a/f 1", "21 a/g 2"], &["a /", "a/g 2"]);
}

#[test]
fn new_file_that_becomes_one_with_a_file_edited_here_is_kept() {
    // The new file equals what the log has under its name; here that one is elsewhere, and another by now.
    ends(&["1 x 1"], &["1 a 2", "11 b 1"], &["1 b 1"], &["b 2", "b (conflict device 0) 1"]);
}

#[test]
fn file_that_two_merged_nodes_claim_stays() {
    let (one, other, at) = (id(1, 10), id(1, 11), place(NodeId::ROOT, "a"));
    let mut device = Device::default();
    for (node, state) in [(one, NodeState::Alive), (other, NodeState::MergedInto(one))] {
        let Ok(()) = device.remote.set(node, tree_node(&at, &file(1), 1, state));
        let base = Base { place: at.clone(), matter: file(1), version: 1 };
        device.synced.insert(node, base);
        let found = File { place: at.clone(), matter: file(1), flag: Flag::Same };
        device.local.insert(node, found);
    }
    let operations = crate::plan::plan(&device, &[one, other].into()).unwrap();
    assert_eq!(operations.into_iter().collect::<Vec<_>>(), [(other, Operation::Forget)]);
}

/// A directory of the merge base that is not in the folder, and is mounted or not.
fn without(directory_of: u32, is_mounted: bool) -> Device {
    let (node, at) = (id(1, directory_of), place(NodeId::ROOT, "shared"));
    let mut device = Device::default();
    let Ok(()) = device.remote.set(node, tree_node(&at, &directory(), 1, NodeState::Alive));
    device.synced.insert(node, Base { place: at.clone(), matter: directory(), version: 1 });
    if is_mounted {
        let mount = Mount { workspace: WorkspaceId::from_bytes([1; 16]), since: 1 };
        let payload = encode_message(&Mounts::from_iter([(node, mount)]));
        let settings = tree_node(&at, &directory(), 1, NodeState::Settings(payload));
        let Ok(()) = device.remote.set(NodeId::MOUNTS, settings);
    }
    device
}

#[test]
fn mounted_folder_that_was_deleted_here_is_made_again() {
    let planned = |device: &Device| {
        let operations = crate::plan::plan(device, &[id(1, 10), NodeId::MOUNTS].into()).unwrap();
        operations.into_iter().collect::<Vec<_>>()
    };
    assert_eq!(planned(&without(10, true)), [(id(1, 10), Operation::Materialise)]);
    let delete = Operation::ProposeDelete { base: 1 };
    assert_eq!(planned(&without(10, false)), [(id(1, 10), delete)]);
}

#[test]
fn copy_of_what_is_parked_is_kept_beside_its_file() {
    let home = place(id(1, 10), "file");
    let parked = parked_place(&id(1, 11));
    assert_eq!(copied_place(&parked, &home, true), home);
    assert_eq!(copied_place(&parked, &home, false), place(NodeId::ROOT, "file"));
    let moved = place(id(1, 12), "moved");
    assert_eq!(copied_place(&moved, &home, true), moved);
}
