use super::*;
use crate::sealed_writing::tests::{NOW, ROOT, Scene};

fn code<T>(done: Result<T, Failure>) -> &'static str {
    done.err().unwrap().code
}

fn found(page: &SealedWorkspace, name: &str) -> SealedPlaced {
    let all = page.list_all(ROOT).unwrap();
    all.into_iter().find(|placed| placed.node.name == name).unwrap()
}

#[test]
fn all_that_is_in_a_folder_is_told_with_where_it_is() {
    let mut scene = Scene::new();
    let mut page = scene.page(1);
    let folder = page.make_folder(ROOT, "Letters").unwrap();
    let folder = scene.act(&mut page, folder).unwrap().node.unwrap();
    scene.put(&mut page, "plan.txt", b"plan");
    let moved =
        page.move_all(vec![found(&page, "plan.txt").node.id], &[1.0], vec!["p".into()], &folder);
    let moved = moved.unwrap();
    scene.act(&mut page, moved).unwrap();
    let told = page.list_all(ROOT).unwrap();
    let told: Vec<_> = told.iter().map(|one| (&*one.node.name, &*one.folder)).collect();
    assert_eq!(told, [("Letters", ROOT), ("p", &*folder)]);
    let file = found(&page, "p");
    assert!(file.is_text && !file.is_mounted);
    assert_eq!(code(page.list_all(&file.node.id)), "no_such");
}

#[test]
fn file_is_compared_with_the_version_that_somebody_has_seen_and_with_no_other() {
    let mut scene = Scene::new();
    let mut page = scene.page(1);
    scene.put(&mut page, "plan.txt", b"plan");
    let is_equal = |page: &SealedWorkspace, version, bytes: &[u8]| {
        let mut comparison = page.compare(&found(page, "plan.txt").node.id, version)?;
        comparison.push(bytes)?;
        comparison.finish()
    };
    assert_eq!(is_equal(&page, 1.0, b"plan"), Ok(true));
    assert_eq!(is_equal(&page, 1.0, b"plat"), Ok(false));
    scene.put(&mut page, "plan.txt", b"other");
    assert_eq!(code(is_equal(&page, 1.0, b"plan")), "changed");
    assert_eq!(is_equal(&page, 2.0, b"other"), Ok(true));
}

#[test]
fn file_goes_over_the_one_that_was_seen_and_neither_over_another_of_its_name_nor_beside_it() {
    let mut scene = Scene::new();
    let (mut page, mut other) = (scene.page(1), scene.page(2));
    scene.put(&mut page, "plan.txt", b"first");
    let seen = found(&page, "plan.txt").node.id;
    let put = |page: &mut SealedWorkspace, node: &str| {
        page.put(ROOT, "plan.txt", Some(format!("{node}.1")), false, 4.0, NOW)
    };
    let deed = put(&mut page, &seen).unwrap();
    scene.pack(&mut page, deed, b"ours", None);
    scene.catch_up(&mut other).unwrap();
    scene.put(&mut other, "plan.txt", b"theirs");
    scene.catch_up(&mut page).unwrap();
    assert_eq!(code(page.propose(deed, NOW)), "changed");
    // It is deleted, and another one has its name and the version that was seen.
    let removed = other.remove_one(&seen, 2.0).unwrap();
    scene.act(&mut other, removed).unwrap();
    scene.put(&mut other, "plan.txt", b"another");
    scene.catch_up(&mut page).unwrap();
    assert_eq!(found(&page, "plan.txt").node.version, 1.0);
    assert_eq!(code(put(&mut page, &seen)), "changed");
    assert_eq!(scene.seen_by_device(), [("plan.txt".to_owned(), Some(b"another".to_vec()))]);
}

#[test]
fn version_of_what_is_put_is_told_as_it_was_then_whatever_others_make_of_it() {
    let mut scene = Scene::new();
    let (mut page, mut other) = (scene.page(1), scene.page(2));
    let done = scene.put(&mut page, "plan.txt", b"first");
    assert_eq!((done.version, done.is_partial), (Some(1.0), false));
    assert_eq!(scene.put(&mut page, "plan.txt", b"second").version, Some(2.0));
    // It stands in the log, and before the page reads that the other one has changed it.
    let seen = done.node.map(|node| format!("{node}.2"));
    let deed = page.put(ROOT, "plan.txt", seen, false, 5.0, NOW).unwrap();
    scene.pack(&mut page, deed, b"third", None);
    scene.send(&mut page, deed);
    scene.catch_up(&mut other).unwrap();
    scene.put(&mut other, "plan.txt", b"fourth");
    scene.catch_up(&mut page).unwrap();
    let done = page.settle(deed).unwrap();
    assert_eq!((done.is_over, done.version), (true, Some(3.0)));
    assert_eq!(found(&page, "plan.txt").node.version, 4.0);
    // Two make the same at the same moment: it is one.
    let deed = page.make_folder(ROOT, "Letters").unwrap();
    let same = other.make_folder(ROOT, "Letters").unwrap();
    scene.send(&mut other, same);
    scene.send(&mut page, deed);
    scene.catch_up(&mut page).unwrap();
    let done = page.settle(deed).unwrap();
    let folder = found(&page, "Letters").node;
    assert_eq!((done.node, done.version), (Some(folder.id), Some(1.0)));
}

#[test]
fn copy_is_marked_as_a_conflict_and_a_folder_with_something_in_it_is_not_deleted() {
    let mut scene = Scene::new();
    let mut page = scene.page(1);
    scene.put(&mut page, "plan.txt", b"plan");
    scene.put(&mut page, "copy.txt", b"copy");
    let [copy, original] = ["copy.txt", "plan.txt"].map(|name| found(&page, name).node.id);
    let marked = page.mark(&copy, 1.0, &original, 1.0).unwrap();
    assert!(!scene.act(&mut page, marked).unwrap().is_partial);
    let node = found(&page, "copy.txt").node;
    assert!(node.is_conflict && node.version == 2.0);
    assert_eq!(code(page.mark(&copy, 2.0, &original, 1.0)), "changed");

    let folder = page.make_folder(ROOT, "Letters").unwrap();
    let folder = scene.act(&mut page, folder).unwrap().node.unwrap();
    let moved =
        page.move_all(vec![copy.clone()], &[2.0], vec!["copy.txt".into()], &folder).unwrap();
    scene.act(&mut page, moved).unwrap();
    assert_eq!(code(page.remove_one(&folder, 1.0)), "changed");
    let removed = page.remove_one(&copy, 3.0).unwrap();
    assert!(!scene.act(&mut page, removed).unwrap().is_partial);
    let removed = page.remove_one(&folder, 1.0).unwrap();
    assert!(!scene.act(&mut page, removed).unwrap().is_partial);
    assert_eq!(page.list_all(ROOT).unwrap().len(), 1);
}
