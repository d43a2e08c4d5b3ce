//! Versions that are sent as what has changed.

use super::*;
use crate::sealed_workspace::SealedNode;

/// Names the version of a node.
pub(super) fn seen_of(node: &SealedNode) -> String {
    format!("{}.{}", node.id, node.version)
}

#[test]
fn a_version_whose_sketch_was_kept_is_sent_as_what_has_changed() {
    let mut scene = Scene::new();
    let mut page = scene.page(1);
    let mut large = noise(6 << 20);
    let deed = scene.begin_put(&mut page, "large.bin", &large);
    assert_eq!(page.put_base(deed).unwrap(), None);
    scene.act(&mut page, deed).unwrap();
    let SealedSketch { name, bytes: sketch } = page.take_sketch(deed).unwrap().expect("it is kept");
    assert!(page.take_sketch(deed).unwrap().is_none(), "once");
    let other = Scene::new().page(9).replay.seal_note(b"no sketch").unwrap();

    // The sketch is in the hands of whoever has the browser; what is none does no harm.
    let mut page = scene.page(2);
    let mut costs = Vec::new();
    for (kept, number) in [Some(&sketch), Some(&other), None].into_iter().zip(0..) {
        large[1_000_000 + 2_000_000 * number] ^= 1;
        let before = scene.wire.len();
        let seen = seen_of(&page.list(ROOT).unwrap()[0]);
        let size = large.len() as f64;
        let deed = page.put(ROOT, "large.bin", Some(seen), true, size, NOW).unwrap();
        let is_first = number == 0;
        assert_eq!(page.put_base(deed).unwrap().as_ref() == Some(&name), is_first);
        if let Some(sketch) = kept {
            page.put_sketch(deed, sketch).unwrap();
        }
        scene.pack(&mut page, deed, &large, None);
        assert!(scene.act(&mut page, deed).unwrap().is_over);
        page.forget(deed);
        costs.push(scene.wire.len() - before);
        assert!(scene.seen_by_device() == [("large.bin".to_owned(), Some(large.clone()))]);
    }
    assert!(costs[0] < 6_000 && costs[1] > 60_000 && costs[2] > 60_000, "{costs:?}");
}
