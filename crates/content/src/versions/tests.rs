use model::codec::encode_message;
use model::fence::DroppedVersions;
use model::testing::{commit, node, put_record};
use model::{Change, Fence, NodeKind};

use super::*;
use crate::ContentError;
use crate::replay::tests::Scene;
use crate::samples::text;

/// A file with three versions, deleted and put again, and one beside it.
fn scene() -> Scene {
    let mut scene = Scene::new();
    scene.put(1, "a", &text(1, 300));
    scene.put(2, "b", &text(2, 300));
    let record = record(&scene, 1);
    for (base, mode) in [(1, 0o600), (2, 0o640)] {
        scene.append(commit(9, vec![put_record(1, base, &NodeRecord { mode, ..record.clone() })]));
    }
    scene.append(commit(9, vec![Change { node: node(1), base: 3, action: Action::Delete }]));
    scene.append(commit(9, vec![put_record(1, 4, &record)]));
    scene
}

fn record(scene: &Scene, id: u8) -> NodeRecord {
    scene.replay().tree().get(&node(id)).unwrap().record.clone()
}

fn listed(versions: &Versions, id: u8) -> Vec<(u64, u64, bool)> {
    let place = |place: &VersionPlace| (place.version, place.seq, place.is_deletion);
    versions.of(&node(id)).iter().map(place).collect()
}

#[test]
fn versions_of_a_node_are_those_that_were_accepted_and_can_be_read() {
    let mut scene = scene();
    let lost = record(&scene, 1);
    scene.append(commit(9, vec![put_record(1, 1, &lost)]));
    let unread = Action::Put(b"no record".to_vec());
    scene.append(commit(9, vec![Change { node: node(2), base: 1, action: unread }]));
    let replay = scene.replay();
    let expected = [(1, 1, false), (2, 3, false), (3, 4, false), (4, 5, true), (5, 6, false)];
    assert_eq!(listed(replay.versions(), 1), expected);
    assert_eq!(listed(replay.versions(), 2), [(1, 2, false)]);
    assert_eq!(listed(replay.versions(), 3), []);
}

#[test]
fn what_changes_twice_in_an_entry_is_what_it_is_at_its_end() {
    let mut scene = scene();
    let record = record(&scene, 2);
    let twice = [(1, 0o600), (2, 0o640)]
        .map(|(base, mode)| put_record(2, base, &NodeRecord { mode, ..record.clone() }));
    scene.append(commit(9, twice.to_vec()));
    let replay = scene.replay();
    assert_eq!(listed(replay.versions(), 2), [(1, 2, false), (3, 7, false)]);
    let found = replay.find_version(&node(2), 7, &scene.log[6]).unwrap().unwrap();
    assert_eq!(found.record.unwrap().mode, 0o640);
}

#[test]
fn a_version_is_read_from_its_entry_and_from_no_other() {
    let scene = scene();
    let replay = scene.replay();
    let entry = |seq: u64| &scene.log[seq as usize - 1];
    let find = |seq| replay.find_version(&node(1), seq, entry(seq)).unwrap();
    let found = find(3).unwrap();
    assert_eq!((found.place.version, found.device), (2, scene.log[2].commit.device));
    assert_eq!(found.record.unwrap().mode, 0o600);
    assert!(!found.device_name.is_empty());
    assert_eq!(find(5).unwrap().record, None, "it was deleted");
    assert_eq!(find(2), None, "that one has changed another node");
    let mut forged = scene.log[2].clone();
    forged.seq = 4;
    let other = replay.find_version(&node(1), 4, &forged);
    assert!(matches!(other, Err(ContentError::Tampered { .. })), "{other:?}");
    let older = replay.find_version(&node(1), 4, entry(3));
    assert!(matches!(older, Err(ContentError::Tampered { .. })), "{older:?}");
    let mut longer = self::scene();
    longer.put(3, "c", &text(3, 300));
    let unknown = replay.find_version(&node(3), 7, longer.log.last().unwrap());
    assert!(matches!(unknown, Err(ContentError::Tampered { .. })), "{unknown:?}");
}

#[test]
fn what_a_cleanup_has_removed_is_told() {
    let mut scene = scene();
    let clean_up = |scene: &mut Scene, base, versions: &[u64]| {
        let dropped = DroppedVersions { node: node(1), versions: versions.to_vec() };
        let fence = Fence { condemned: Vec::new(), dropped: vec![dropped] };
        let action = Action::Put(encode_message(&fence));
        scene.append(commit(9, vec![Change { node: NodeId::FENCE, base, action }]));
    };
    clean_up(&mut scene, 0, &[1, 3]);
    let replay = scene.replay();
    let dropped: Vec<_> =
        replay.versions().of(&node(1)).iter().map(|place| place.is_dropped).collect();
    assert_eq!(dropped, [true, false, true, false, false]);
    assert!(!replay.versions().is_dropped(&node(1)) && !replay.versions().is_dropped(&node(2)));
    let fence = replay.head().seq;
    clean_up(&mut scene, fence, &[5]);
    assert!(scene.replay().versions().is_dropped(&node(1)));
    let kind = record(&scene, 1).kind;
    assert!(matches!(kind, NodeKind::File(_)), "what it was is still known");
}
