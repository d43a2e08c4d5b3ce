//! Members: from where to where in the log what they write counts, and what nobody else can do.

use std::sync::Arc;

use model::checkpoint::Checkpoint;
use model::fold::{Folded, fold, members_of};
use model::hex;
use model::testing::{node, put};
use model::tree::SETTINGS_LENGTH_MAX;
use model::{
    Action, Change, DeviceId, Entry, Genesis, Head, NodeId, Opener, PageId, Timestamp, Tree,
};

use super::*;
use crate::keyring::{Identity, SecretKey, Unlocked};
use crate::samples::{FixedRandom, SeededRandom};
use crate::sealed::{DeviceKeys, Envelope, WorkspaceKeys};

/// The log of a sealed workspace, as a server that takes everything orders it, and as a device of the owner folds it.
struct Room {
    genesis: Genesis,
    unlocked: Unlocked,
    tree: Tree,
    head: Head,
    list: Option<MemberList>,
    versions: u64,
}

impl Room {
    fn new(seed: u64) -> Self {
        let random = SeededRandom::new(seed);
        let made = super::super::genesis::unlocked("Letters", Timestamp::default(), &random);
        let (genesis, unlocked) = made.expect("this build can seal");
        let head = genesis.head();
        Self { genesis, unlocked, tree: Tree::default(), head, list: None, versions: 0 }
    }

    fn workspace(&self) -> WorkspaceId {
        self.genesis.workspace()
    }

    fn owner(&self) -> WorkspaceKeys {
        let (id, seed) = (DeviceId::from_bytes([1; 16]), SecretKey::from_bytes([1; 32]));
        let device = DeviceKeys::enroll(&self.genesis, &self.unlocked, id, seed);
        self.open(device.expect("enrolls"))
    }

    fn open(&self, device: DeviceKeys) -> WorkspaceKeys {
        let number = device.identity.device.as_bytes()[0];
        let random = Arc::new(SeededRandom::new(number.into()));
        WorkspaceKeys::open(&self.genesis, Some(device), random).expect("opens")
    }

    /// Gives somebody the keys that there are now, on device `number`.
    fn member(&self, identity: &Identity, number: u8) -> WorkspaceKeys {
        let random = SeededRandom::new(50);
        let envelope = Envelope::seal(&self.genesis, &self.unlocked, identity.public(), &random);
        let own = (DeviceId::from_bytes([number; 16]), SecretKey::from_bytes([number; 32]));
        let envelope = envelope.expect("seals");
        let device = DeviceKeys::enroll_member(&self.genesis, identity, &envelope, own);
        self.open(device.expect("opens"))
    }

    /// Takes a commit of a device into the log, and folds it by the owner's keys.
    fn push(&mut self, keys: &WorkspaceKeys, number: u8, changes: Vec<Change>) -> Folded {
        let mut commit = model::testing::commit(number, changes);
        commit.device = keys.sealer.as_ref().expect("it is sealed").device.identity.device;
        commit.seen = self.head;
        self.push_sealed(keys.seal_commit(commit).expect("seals"))
    }

    fn push_sealed(&mut self, commit: Commit) -> Folded {
        let entry = Entry { seq: self.head.seq + 1, previous: self.head.hash, commit };
        self.head = entry.head();
        let owner = self.owner();
        let Ok(folded) = fold(&mut self.tree, &entry, &owner);
        folded
    }

    /// Signs the list that follows the last one.
    fn sign(&self, members: &[(&str, &Identity, MemberRole)]) -> MemberList {
        let member = |(name, identity, role): &(&str, &Identity, MemberRole)| Member {
            name: (*name).to_owned(),
            identity: *identity.public(),
            role: *role,
        };
        let members = members.iter().map(member).collect();
        let account = &self.unlocked.account;
        let keys = self.unlocked.keyring.epochs.len() as u32;
        let list = MemberList::sign(account, self.workspace(), self.list.as_ref(), members, keys);
        list.expect("signs")
    }

    fn put_list(&mut self, keys: &WorkspaceKeys, bytes: Vec<u8>) -> Folded {
        let put = Change { node: NodeId::MEMBERS, base: self.versions, action: Action::Put(bytes) };
        self.versions += 1;
        self.push(keys, 100 + self.versions as u8, vec![put])
    }

    /// Says as the owner who is a member from now on.
    fn set(&mut self, members: &[(&str, &Identity, MemberRole)]) {
        let list = self.sign(members);
        let done = self.put_list(&self.owner(), list.to_bytes());
        assert_eq!((done.void, done.notes), (None, Vec::new()));
        self.list = Some(list);
    }

    fn is_in_force(&self, list: &MemberList) -> bool {
        let Ok(bytes) = members_of(&self.tree);
        bytes == Some(list.to_bytes())
    }
}

fn identity(seed: u64) -> Identity {
    Identity::random(&SeededRandom::new(seed)).expect("this build can sign")
}

use MemberRole::{Edit, View};

#[test]
fn what_a_member_writes_counts_from_the_list_that_names_it_to_the_one_that_does_not() {
    let mut room = Room::new(1);
    let (bob, eve) = (identity(10), identity(11));
    let of_bob = room.member(&bob, 2);
    let void = |done: Folded| done.void.expect("it counts for nothing");
    assert!(void(room.push(&of_bob, 1, vec![put(1, 0, "early")])).contains("no member's"));
    room.set(&[("bob", &bob, Edit)]);
    assert_eq!(room.push(&of_bob, 2, vec![put(2, 0, "mine")]).void, None);
    // Any device of bob's.
    let tablet = room.member(&bob, 3);
    assert_eq!(room.push(&tablet, 3, vec![put(2, 1, "renamed")]).void, None);
    // Who has the keys of the workspace and is no member.
    let of_eve = room.member(&eve, 4);
    void(room.push(&of_eve, 4, vec![put(3, 0, "of eve")]));
    room.set(&[("bob", &bob, View)]);
    assert_eq!(void(room.push(&of_bob, 5, vec![put(4, 0, "void")])), "bob may only read");
    room.set(&[("bob", &bob, Edit), ("eve", &eve, Edit)]);
    assert_eq!(room.push(&of_eve, 6, vec![put(5, 0, "of eve, too")]).void, None);
    // Shut out, whoever orders the log may take what bob sends; it counts for nothing.
    room.set(&[("eve", &eve, Edit)]);
    for (number, keys) in [(7, &of_bob), (8, &tablet)] {
        let delete = Change { node: node(2), base: 2, action: Action::Delete };
        let done = room.push(keys, number, vec![put(6, 0, "late"), delete]);
        assert!(void(done).contains("no member's"), "{number}");
    }
    assert_eq!(room.push(&of_eve, 9, vec![put(7, 0, "stays")]).void, None);
    let names: Vec<String> = room
        .tree
        .nodes()
        .filter(|(_, node)| node.is_alive())
        .map(|(_, node)| node.record.name.to_string())
        .collect();
    assert_eq!(names, ["renamed", "of eve, too", "stays"]);
}

/// All devices agree, whoever's they are.
#[test]
fn devices_of_members_fold_the_log_as_those_of_the_owner_do() {
    let mut room = Room::new(2);
    let (bob, eve) = (identity(10), identity(11));
    let (of_bob, of_eve) = (room.member(&bob, 2), room.member(&eve, 3));
    let mut entries = Vec::new();
    let mut note = |room: &mut Room, keys: &WorkspaceKeys, number, changes| {
        let mut commit = model::testing::commit(number, changes);
        commit.device = keys.sealer.as_ref().expect("it is sealed").device.identity.device;
        let commit = keys.seal_commit(commit).expect("seals");
        let entry = Entry { seq: room.head.seq + 1, previous: room.head.hash, commit };
        room.push_sealed(entry.commit.clone());
        entries.push(entry);
    };
    let owner = room.owner();
    note(&mut room, &of_bob, 1, vec![put(1, 0, "early")]);
    let list = room.sign(&[("bob", &bob, Edit), ("eve", &eve, View)]).to_bytes();
    let put_list = Change { node: NodeId::MEMBERS, base: 0, action: Action::Put(list) };
    note(&mut room, &owner, 2, vec![put_list, put(2, 0, "beside")]);
    note(&mut room, &of_bob, 3, vec![put(3, 0, "of bob")]);
    note(&mut room, &of_eve, 4, vec![put(4, 0, "of eve")]);
    for keys in [&owner, &of_bob, &of_eve] {
        let mut tree = Tree::default();
        for entry in &entries {
            let Ok(_) = fold(&mut tree, entry, keys);
        }
        assert_eq!(tree, room.tree);
    }
    assert!(room.tree.get(&node(3)).is_some_and(model::TreeNode::is_alive));
    assert!(!room.tree.get(&node(4)).is_some_and(model::TreeNode::is_alive));
}

#[test]
fn settings_are_for_the_owner_whatever_a_server_takes() {
    let mut room = Room::new(3);
    let bob = identity(10);
    room.set(&[("bob", &bob, Edit)]);
    let of_bob = room.member(&bob, 2);
    for settings in [NodeId::POOL, NodeId::TURN, NodeId::VERSION_POLICY, NodeId::FENCE] {
        let change = Change { node: settings, base: 0, action: Action::Put(vec![1]) };
        let done = room.push(&of_bob, 2, vec![put(1, 0, "beside"), change]);
        assert!(done.void.is_some_and(|why| why.contains("owner")), "{settings:?}");
        assert!(done.fence.is_none());
    }
    // Even a list that the owner has signed, and has not proposed.
    let signed = room.sign(&[("bob", &bob, View)]);
    let done = room.put_list(&of_bob, signed.to_bytes());
    assert!(done.void.is_some() && !room.is_in_force(&signed));
}

#[test]
fn lists_that_the_owner_has_not_signed_or_has_replaced_count_as_versions_only() {
    let mut room = Room::new(4);
    let (bob, eve) = (identity(10), identity(11));
    room.set(&[("bob", &bob, Edit)]);
    let first = room.list.clone().expect("there is one");
    room.set(&[]);
    let none = room.list.clone().expect("there is one");
    // A device that was stolen, or a program that is wrong: the commit is good, the list is not.
    let owner = room.owner();
    let refuse = |room: &mut Room, bytes: Vec<u8>, why: &str| {
        let done = room.put_list(&owner, bytes);
        assert_eq!((done.void, done.notes.len()), (None, 1), "{why}");
        assert!(room.is_in_force(&none), "{why}");
    };
    refuse(&mut room, first.to_bytes(), "an older list");
    refuse(&mut room, none.to_bytes(), "the same once more");
    let other = Room::new(5);
    let mut theirs = Room { list: Some(none.clone()), ..Room::new(4) };
    theirs.unlocked = other.unlocked;
    let forged = theirs.sign(&[("eve", &eve, Edit)]);
    refuse(&mut room, forged.to_bytes(), "signed by another account");
    let elsewhere = MemberList::sign(
        &room.unlocked.account,
        WorkspaceId::from_bytes([1; 16]),
        Some(&none),
        Vec::new(),
        1,
    );
    refuse(&mut room, elsewhere.expect("signs").to_bytes(), "of another workspace");
    let mut own = room.sign(&[("eve", &eve, Edit)]);
    own.members[0].role = View;
    refuse(&mut room, own.to_bytes(), "changed");
    refuse(&mut room, Vec::new(), "nothing");
    let delete = Change { node: NodeId::MEMBERS, base: room.versions, action: Action::Delete };
    room.versions += 1;
    let done = room.push(&owner, 99, vec![delete]);
    assert!(done.notes.len() == 1 && room.is_in_force(&none), "it cannot be deleted");
    // The next list counts all the same.
    room.set(&[("bob", &bob, Edit)]);
}

#[test]
fn a_list_that_nobody_signed_makes_no_members_where_it_came_past_the_fold() {
    let room = Room::new(6);
    let eve = identity(11);
    let other = Room::new(7);
    let forged = Room { unlocked: other.unlocked, ..Room::new(6) }.sign(&[("eve", &eve, Edit)]);
    let of_eve = room.member(&eve, 2);
    let commit = Commit {
        device: DeviceId::from_bytes([2; 16]),
        ..model::testing::commit(1, vec![put(1, 0, "x")])
    };
    let commit = of_eve.seal_commit(commit).expect("seals");
    assert!(room.owner().check(&commit, Some(&forged.to_bytes())).is_err());
    let genuine = room.sign(&[("eve", &eve, Edit)]);
    assert_eq!(room.owner().check(&commit, Some(&genuine.to_bytes())), Ok(()));
    // What somebody else signs under a certificate of eve's is not hers.
    let mut stolen = commit;
    stolen.seal.as_mut().expect("sealed").device_key = [3; 32];
    assert!(room.owner().check(&stolen, Some(&genuine.to_bytes())).is_err());
}

#[test]
fn checkpoints_of_members_count_for_nobody() {
    let mut room = Room::new(12);
    let bob = identity(10);
    room.set(&[("bob", &bob, Edit)]);
    let of_bob = room.member(&bob, 2);
    let page = |number| PageId::from_bytes([number; 32]);
    let (nodes, packs, head) = (page(1), page(2), room.head);
    let plain = Checkpoint {
        head,
        nodes,
        node_count: 1,
        packs,
        fence: 0,
        has_mounts: false,
        has_deltas: false,
        seal: None,
    };
    let [by_bob, by_owner] =
        [&of_bob, &room.owner()].map(|keys| keys.seal_checkpoint(plain.clone()).expect("seals"));
    for reader in [&of_bob, &room.owner()] {
        let refused = reader.check_checkpoint(&by_bob);
        assert!(matches!(refused, Err(ContentError::Tampered { .. })), "{refused:?}");
        assert!(reader.check_checkpoint(&by_owner).is_ok());
    }
}

#[test]
fn what_is_sealed_after_a_rotation_does_not_open_for_whom_was_shut_out() {
    let mut room = Room::new(8);
    let (bob, eve) = (identity(10), identity(11));
    room.set(&[("bob", &bob, Edit), ("eve", &eve, Edit)]);
    let before = room.member(&bob, 2);
    room.unlocked.keyring.rotate(&SeededRandom::new(9)).expect("there is room");
    room.unlocked.generation += 1;
    room.set(&[("eve", &eve, Edit)]);
    let owner = room.owner();
    let commit = Commit {
        device: DeviceId::from_bytes([1; 16]),
        ..model::testing::commit(1, vec![put(1, 0, "secret")])
    };
    let sealed = owner.seal_commit(commit).expect("seals");
    assert_eq!(before.check(&sealed, None), Ok(()), "whose it is everybody sees");
    assert!(before.open(&sealed, 0).is_err() && before.commit_header(&sealed).is_err());
    let page = owner.seal_page(b"page".to_vec()).expect("seals");
    assert!(before.open_page(&page).is_err());
    let after = room.member(&eve, 3);
    assert!(after.open(&sealed, 0).is_ok() && after.open_page(&page).is_ok());
}

#[test]
fn nobody_waits_for_a_key_that_the_owner_has_not_announced() {
    let mut room = Room::new(11);
    let bob = identity(10);
    room.set(&[("bob", &bob, Edit)]);
    let (owner, of_bob) = (room.owner(), room.member(&bob, 2));
    let list = |room: &Room| room.list.as_ref().expect("there is one").to_bytes();
    let first = list(&room);
    let of_key = |number: u32| {
        let device = DeviceId::from_bytes([2; 16]);
        let commit = Commit { device, ..model::testing::commit(1, vec![put(1, 0, "x")]) };
        let mut commit = of_bob.seal_commit(commit).expect("seals");
        commit.seal.as_mut().expect("sealed").epoch = number;
        of_bob.sealer.as_ref().expect("it is sealed").sign(commit).expect("signs")
    };
    for number in [0, 2, 3, u32::MAX] {
        let (commit, members) = (of_key(number), Some(first.as_slice()));
        assert!(owner.check_epoch(&commit, members).is_ok(), "{number} is not waited for");
        assert!(owner.check(&commit, members).is_err(), "{number} counts for nothing");
    }
    // Announced, and not made yet: this one there will be.
    let (account, workspace) = (&room.unlocked.account, room.workspace());
    let members = room.list.as_ref().expect("there is one").members().to_vec();
    let next = MemberList::sign(account, workspace, room.list.as_ref(), members, 2);
    let next = next.expect("signs");
    let bytes = next.to_bytes();
    assert_eq!(owner.check(&of_key(2), Some(&bytes)), Ok(()));
    let waits = owner.check_epoch(&of_key(2), Some(&bytes));
    assert!(matches!(waits, Err(ContentError::UnknownEpoch { epoch: 2 })), "{waits:?}");
    assert!(owner.check(&of_key(3), Some(&bytes)).is_err());
    // A list that somebody signs who has not heard of it takes nothing back.
    room.list = Some(next);
    assert_eq!(room.sign(&[]).keys(), 2);
}

#[test]
fn every_flipped_bit_and_every_cut_of_a_list_is_seen() {
    let room = Room::new(9);
    let (bob, eve) = (identity(10), identity(11));
    let bytes = room.sign(&[("bob", &bob, Edit), ("eve", &eve, View)]).to_bytes();
    let owner = room.owner();
    assert_eq!(owner.check_members(None, &bytes), Ok(()));
    for length in 0..bytes.len() {
        assert!(owner.check_members(None, &bytes[..length]).is_err(), "{length} bytes");
    }
    for bit in 0..bytes.len() * 8 {
        let mut changed = bytes.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        assert!(owner.check_members(None, &changed).is_err(), "bit {bit}");
    }
}

#[test]
fn as_many_members_as_may_be_fit_into_settings_and_no_more_are_signed() {
    let room = Room::new(10);
    let one = |number: usize, name: &str| Member {
        name: name.to_owned(),
        identity: *identity(number as u64).public(),
        role: Edit,
    };
    let longest = "n".repeat(MEMBER_NAME_LENGTH_MAX);
    let account = &room.unlocked.account;
    let sign =
        |members| MemberList::sign(account, room.workspace(), None, members, EPOCHS_MAX as u32);
    let list = sign((0..MEMBERS_MAX).map(|number| one(number, &longest)).collect());
    let bytes = list.expect("signs").to_bytes();
    assert!(bytes.len() <= SETTINGS_LENGTH_MAX, "{}", bytes.len());
    assert_eq!(room.owner().check_members(None, &bytes), Ok(()));
    let many = sign((0..=MEMBERS_MAX).map(|number| one(number, "x")).collect());
    assert!(matches!(many, Err(ContentError::TooManyMembers { .. })), "{many:?}");
    for members in [vec![one(1, "a"), one(1, "b")], vec![one(1, &"n".repeat(129))]] {
        let refused = sign(members);
        assert!(matches!(refused, Err(ContentError::InvalidMember { .. })), "{refused:?}");
    }
}

#[test]
fn list_has_the_documented_vectors() {
    let random = FixedRandom(7);
    let created = Timestamp { seconds: 1_700_000_000, nanoseconds: 0 };
    let made = super::super::genesis::unlocked("Letters", created, &random);
    let (genesis, unlocked) = made.expect("this build can seal");
    let bob = Identity::random(&random).expect("this build can sign");
    let member = Member { name: "bob".to_owned(), identity: *bob.public(), role: Edit };
    let list = MemberList::sign(&unlocked.account, genesis.workspace(), None, vec![member], 1);
    let bytes = list.expect("signs").to_bytes();
    let lines = [
        ("begin of the list", hex::encode(&bytes[..4])),
        ("length of the list", bytes.len().to_string()),
        ("list, signature, first", hex::encode(&bytes[bytes.len() - 64..][..32])),
        ("list, signature, second", hex::encode(&bytes[bytes.len() - 32..])),
        ("hash of the list", blake3::hash(&bytes).to_hex().to_string()),
    ];
    let document = include_str!("../../../../../docs/design/keys.md");
    let lines: String = lines.map(|(what, value)| format!("{what:<24} {value}\n")).concat();
    assert!(document.contains(&lines), "docs/design/keys.md lacks:\n{lines}");
}
