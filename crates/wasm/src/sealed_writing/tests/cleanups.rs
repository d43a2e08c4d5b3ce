//! What a cleanup comes in between of.

use super::*;

#[test]
fn what_was_left_out_before_a_cleanup_is_not_put_behind_it() {
    let mut scene = Scene::new();
    let mut page = scene.page(1);
    scene.put(&mut page, "file", b"content");
    // It comes before a commit is proposed, and before that is there.
    for (device, base) in [(80, 0), (82, 1)] {
        let deed = scene.begin_put(&mut page, "copy", b"content");
        let proposed = (base == 1).then(|| page.propose(deed, NOW).unwrap().unwrap());
        let fence = encode_message(&Fence { condemned: Vec::new(), dropped: Vec::new() });
        let change = Change { node: NodeId::FENCE, base, action: Action::Put(fence) };
        scene.device_changes(device, vec![change]);
        let length = scene.log.len();
        if let Some(message) = &proposed {
            scene.append(decode_message(message).unwrap());
        }
        scene.catch_up(&mut page).unwrap();
        let told = if proposed.is_some() { page.settle(deed) } else { scene.act(&mut page, deed) };
        assert_eq!(told.err().unwrap().code, "fenced");
        assert_eq!(scene.log.len(), length + usize::from(proposed.is_some()));
        assert_eq!(page.list(ROOT).unwrap().len(), 1);
    }
    scene.put(&mut page, "copy", b"content");
    assert_eq!(page.list(ROOT).unwrap().len(), 2);
}
