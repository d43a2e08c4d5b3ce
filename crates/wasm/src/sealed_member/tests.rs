use content::{MemberList, Replay};
use model::codec::{decode_message, encode_message};
use model::{Action, Change, Commit, DeviceId, NodeId};

use super::*;
use crate::sealed_writing::tests::{ROOT, Scene};

const NOW: f64 = 1_700_000_000_123.0;

/// Somebody with an identity, which a passphrase of their own locks.
struct Person {
    name: &'static str,
    identity: Identity,
    locked: Vec<u8>,
}

impl Person {
    fn new(name: &'static str, seed: u8) -> Self {
        let random = Seeded::new("a person", &[seed; 32]).unwrap();
        let identity = Identity::random(&random).unwrap();
        let passphrase = Passphrase::new(Zeroizing::new(format!("of {name}")));
        let locked = identity.lock(&passphrase, &random).unwrap().to_bytes();
        Self { name, identity, locked }
    }

    fn member(&self, role: MemberRole) -> Member {
        Member { name: self.name.to_owned(), identity: *self.identity.public(), role }
    }

    fn envelope(&self, scene: &Scene) -> Vec<u8> {
        let random = Seeded::new("an envelope", &[7; 32]).unwrap();
        let public = self.identity.public();
        Envelope::seal(&scene.genesis, &scene.unlocked, public, &random).unwrap().to_bytes()
    }

    fn open(
        &self,
        scene: &Scene,
        envelope: &[u8],
        (public, secret, seen): (&PublicIdentity, &str, f64),
    ) -> Result<SealedWorkspace, Failure> {
        let id = scene.genesis.workspace().to_string();
        let genesis = encode_message(&scene.genesis);
        let public = public.to_bytes();
        let device = DeviceId::from_bytes([public[0]; 16]).to_string();
        let (locked, seed) = (&self.locked, [public[0]; 32]);
        SealedWorkspace::open_of_other(
            &id,
            &genesis,
            envelope,
            &public,
            locked,
            secret.to_owned(),
            seen,
            &device,
            "page",
            &seed,
        )
    }

    fn page(&self, scene: &Scene) -> SealedWorkspace {
        let secret = format!("of {}", self.name);
        let asked = (self.identity.public(), &secret[..], 0.0);
        let mut page = self.open(scene, &self.envelope(scene), asked).unwrap();
        scene.catch_up(&mut page).unwrap();
        page
    }
}

/// The owner says who is a member from here on.
fn let_in(scene: &mut Scene, number: u8, old: Option<&MemberList>, new: Vec<Member>) -> MemberList {
    let (account, workspace) = (&scene.unlocked.account, scene.genesis.workspace());
    let keys = scene.unlocked.keyring.epochs.len() as u32;
    let list = MemberList::sign(account, workspace, old, new, keys).unwrap();
    let base = u64::from(old.is_some());
    let action = Action::Put(list.to_bytes());
    scene.device_changes(number, vec![Change { node: NodeId::MEMBERS, base, action }]);
    list
}

/// The owner makes one more key, and goes on with it.
fn rotate(scene: &mut Scene) {
    let random: Arc<dyn Random> = Arc::new(Seeded::new("a rotation", &[6; 32]).unwrap());
    scene.unlocked.keyring.rotate(&*random).unwrap();
    scene.unlocked.generation += 1;
    let own = (DeviceId::from_bytes([1; 16]), SecretKey::random(&*random));
    let keys = DeviceKeys::enroll(&scene.genesis, &scene.unlocked, own.0, own.1).unwrap();
    scene.device = WorkspaceKeys::open(&scene.genesis, Some(keys), random).unwrap();
}

fn code<T>(result: Result<T, Failure>) -> &'static str {
    result.err().unwrap().code
}

#[test]
fn members_open_with_their_identity_and_do_what_the_owner_has_signed() {
    let mut scene = Scene::new();
    let (bob, carol) = (Person::new("bob", 1), Person::new("carol", 2));
    let members = vec![bob.member(MemberRole::Edit), carol.member(MemberRole::View)];
    let_in(&mut scene, 60, None, members);
    let envelope = bob.envelope(&scene);
    let (of_bob, of_carol) = (bob.identity.public(), carol.identity.public());
    assert_eq!(code(bob.open(&scene, &envelope, (of_bob, "of carol", 0.0))), "wrong_key");
    assert_eq!(code(bob.open(&scene, &envelope, (of_carol, "of bob", 0.0))), "identity_changed");
    assert_eq!(code(bob.open(&scene, &envelope, (of_bob, "of bob", 2.0))), "older_history");
    assert_eq!(code(carol.open(&scene, &envelope, (of_carol, "of carol", 0.0))), "not_for_us");

    let mut page = bob.page(&scene);
    assert_eq!((page.name().as_str(), page.may_write(), page.generation()), ("Diary", true, 1.0));
    let letter = b"Dear Ada, nobody else reads this letter.".repeat(300);
    scene.put(&mut page, "letter.txt", &letter);
    assert_eq!(scene.seen_by_device(), [("letter.txt".to_owned(), Some(letter))]);

    let mut viewing = carol.page(&scene);
    assert!(!viewing.may_write());
    let file = viewing.list(ROOT).unwrap()[0].id.clone();
    let reading = viewing.begin(&file).unwrap();
    viewing.end(reading);
    assert_eq!(code(viewing.make_folder(ROOT, "folder")), "read_only");
    let renamed = viewing.move_all(vec![file.clone()], &[1.0], vec!["other".into()], ROOT);
    assert_eq!(code(renamed), "read_only");
    assert_eq!(code(viewing.remove(vec![file], &[1.0])), "read_only");
    assert_eq!(code(viewing.put(ROOT, "file", None, true, 1.0, NOW)), "read_only");
    assert_eq!(code(scene.page(9).renew(&envelope)), "not_sealed");
}

#[test]
fn after_a_rotation_those_who_stay_go_on_with_the_new_key_and_who_was_shut_out_does_not() {
    let mut scene = Scene::new();
    let (bob, dave) = (Person::new("bob", 1), Person::new("dave", 3));
    let members = vec![bob.member(MemberRole::Edit), dave.member(MemberRole::Edit)];
    let list = let_in(&mut scene, 60, None, members);
    let (mut page, mut shut_out) = (bob.page(&scene), dave.page(&scene));
    scene.put(&mut page, "before.txt", b"of before");
    scene.catch_up(&mut shut_out).unwrap();
    let (old, old_of_dave) = (bob.envelope(&scene), dave.envelope(&scene));
    rotate(&mut scene);
    // Dave's page is about to write, and the server takes it behind the list that shuts him out.
    let deed = shut_out.make_folder(ROOT, "of dave").unwrap();
    let late = shut_out.propose(deed, NOW).unwrap().unwrap();
    let_in(&mut scene, 61, Some(&list), vec![bob.member(MemberRole::Edit)]);

    assert_eq!(code(scene.catch_up(&mut page)), "unknown_epoch");
    assert_eq!(code(page.make_folder(ROOT, "folder")), "unknown_epoch");
    assert!(!page.renew(&old).unwrap(), "the server gives what it had");
    assert_eq!(code(page.renew(&dave.envelope(&scene))), "not_for_us");
    assert!(page.renew(&bob.envelope(&scene)).unwrap());
    assert_eq!(page.generation(), 2.0);
    assert_eq!(scene.catch_up(&mut page).unwrap(), 1);
    scene.put(&mut page, "after.txt", b"of after");
    let epochs = scene.log.iter().map(|entry| entry.commit.seal.as_ref().unwrap().epoch);
    assert_eq!(epochs.rev().take(3).collect::<Vec<_>>(), [2, 2, 1]);
    let seen = scene.seen_by_device();
    assert_eq!(seen[0], ("after.txt".to_owned(), Some(b"of after".to_vec())));
    assert_eq!(seen[1], ("before.txt".to_owned(), Some(b"of before".to_vec())));

    assert!(!shut_out.renew(&old_of_dave).unwrap());
    assert_eq!(code(scene.catch_up(&mut shut_out)), "unknown_epoch");
    assert_eq!(code(shut_out.propose(deed, NOW)), "unknown_epoch");
    let commit: Commit = decode_message(&late).unwrap();
    scene.append(commit);
    scene.catch_up(&mut page).unwrap();
    assert_eq!(page.list(ROOT).unwrap().len(), 2, "it counts for nobody");
    assert_eq!(page.shown().void_entries, 1.0);
    let mut replay = Replay::new(&scene.genesis, scene.device.clone());
    let folded: Vec<_> = scene.log.iter().map(|entry| replay.fold(entry).unwrap()).collect();
    assert!(folded.last().unwrap().void.is_some());
}

#[test]
fn a_file_whose_packs_were_sealed_before_newer_keys_came_is_written_again_with_these() {
    let mut scene = Scene::new();
    let (bob, dave) = (Person::new("bob", 1), Person::new("dave", 3));
    let members = vec![bob.member(MemberRole::Edit), dave.member(MemberRole::Edit)];
    let list = let_in(&mut scene, 60, None, members);
    let (mut page, mut shut_out) = (bob.page(&scene), dave.page(&scene));
    scene.catch_up(&mut shut_out).unwrap();
    // They come before a commit is proposed, and while the file is packed.
    let packed = scene.begin_put(&mut page, "packed", b"for those who stay");
    let begun = page.put(ROOT, "begun", None, true, 18.0, NOW).unwrap();
    rotate(&mut scene);
    let_in(&mut scene, 61, Some(&list), vec![bob.member(MemberRole::Edit)]);
    assert_eq!(code(scene.catch_up(&mut page)), "unknown_epoch");
    assert!(page.renew(&bob.envelope(&scene)).unwrap());
    scene.catch_up(&mut page).unwrap();
    let length = scene.log.len();
    scene.pack(&mut page, begun, b"for those who stay", None);
    for deed in [packed, begun] {
        assert_eq!(code(scene.act(&mut page, deed)), "fenced");
    }
    assert_eq!(scene.log.len(), length);
    scene.put(&mut page, "file", b"for those who stay");
    let seen = scene.seen_by_device();
    assert_eq!(seen, [("file".to_owned(), Some(b"for those who stay".to_vec()))]);
    assert_eq!(scene.log.last().unwrap().commit.seal.as_ref().unwrap().epoch, 2);
}
