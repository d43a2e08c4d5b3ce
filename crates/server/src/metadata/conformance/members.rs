//! Members of workspaces: rows, and what they let people do.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use model::testing::put;
use model::{Action, Change, Commit, Genesis, Mode, NodeId, PackId, PageId, SealedGenesis};
use storage::ObjectKey;

use super::{Database, Numbers, Story, World, genesis, write};
use crate::auth::{Caller, NO_PASSWORD};
use crate::error::ServerError;
use crate::metadata::{DeviceRecord, MemberRole, MemberTables, Metadata, Scope};
use crate::services::authorisation::Role;
use crate::services::sync_service::CommitRequest;
use crate::services::tokens::{self, NewToken};
use crate::services::{accounts, members, objects, sync_service, workspaces};

pub(super) const STORIES: &[Story] = &[
    Story { name: "members_are_kept_with_role_and_date_until_they_go", tell: rows },
    Story { name: "who_may_only_read_reads_everything_and_writes_nothing", tell: viewer },
    Story { name: "who_may_edit_writes_on_the_quota_of_the_owner", tell: editor },
    Story { name: "who_is_removed_is_a_stranger_in_the_next_commit", tell: removed },
    Story { name: "members_find_a_workspace_under_the_name_of_its_owner", tell: names },
    Story { name: "a_sealed_workspace_is_shared_under_its_id", tell: sealed },
    Story { name: "a_token_keeps_its_limits_in_every_group_of_commits", tell: limited },
];

impl World {
    /// Makes `bob` a member of `home`.
    pub(super) fn share(&mut self, role: MemberRole) {
        let (ada, home) = (self.ada[0], self.home.workspace());
        let share =
            |metadata: &mut dyn Metadata| members::set(metadata, &ada, home, "bob", role, 7);
        write(&mut *self.metadata, share).unwrap();
    }

    /// A commit of `bob` into `home`.
    fn of_bob(&self, op: u8, changes: Vec<Change>) -> CommitRequest {
        let commit = Commit { device: self.bob.device, ..model::testing::commit(op, changes) };
        CommitRequest { caller: self.bob, workspace: self.home.workspace(), commit }
    }

    /// Tells that nobody but its owner knows a workspace.
    fn assert_is_strange(&mut self, caller: &Caller, genesis: &Genesis) {
        let (id, key) = (genesis.workspace(), ObjectKey::pack(PackId::from_bytes([1; 32])));
        let text = format!("there is no workspace '{id}'");
        let commit = Commit { device: caller.device, ..model::testing::commit(9, vec![]) };
        let request = CommitRequest { caller: *caller, workspace: id, commit };
        let committed = self.commit_one(request).map(drop);
        let recorded = write(&mut *self.metadata, |metadata| {
            objects::record(metadata, caller, id, &key, 5).map(drop)
        });
        let left =
            write(&mut *self.metadata, |metadata| members::remove(metadata, caller, id, "bob"));
        let metadata = &*self.metadata;
        let heard = [
            committed,
            recorded,
            left.map(drop),
            sync_service::entries(metadata, caller, id, 0, 1000).map(drop),
            objects::find(metadata, caller, id, &key).map(drop),
            objects::list(metadata, caller, id, "", "", 9).map(drop),
            members::list(metadata, caller, id).map(drop),
            workspaces::find(metadata, caller, &id.to_string()).map(drop),
        ];
        for heard in heard {
            assert_eq!(heard.unwrap_err().to_string(), text);
        }
    }
}

fn rows(database: &Arc<dyn Database>) {
    let mut world = World::new(database);
    let (ada, bob) = (world.ada[0].account, world.bob.account);
    let eve = world.metadata.insert_account("Eve", NO_PASSWORD, 0).unwrap();
    let number = |world: &World, genesis: &Genesis| {
        world.metadata.workspace(genesis.workspace()).unwrap().unwrap().number
    };
    let (home, work) = (number(&world, &world.home), number(&world, &world.work));
    let metadata = &mut *world.metadata;
    metadata.set_member(home, bob, MemberRole::View, 5).unwrap();
    metadata.set_member(home, eve, MemberRole::Edit, 6).unwrap();
    metadata.set_member(work, bob, MemberRole::Edit, 7).unwrap();
    metadata.set_member(home, bob, MemberRole::Edit, 8).unwrap();
    let found = metadata.members(home).unwrap().into_iter();
    let found: Vec<_> = found.map(|one| (one.account, one.name, one.role, one.added)).collect();
    let (eves, bobs) = ("Eve".to_owned(), "bob".to_owned());
    assert_eq!(found, [(eve, eves, MemberRole::Edit, 6), (bob, bobs, MemberRole::Edit, 5)]);

    metadata.set_member(home, eve, MemberRole::View, 9).unwrap();
    let roles = metadata.roles(&[(home, bob), (home, eve), (work, eve), (home, ada)]).unwrap();
    let mut roles: Vec<_> = roles.into_iter().collect();
    roles.sort_by_key(|one| one.0);
    assert_eq!(roles, [((home, bob), MemberRole::Edit), ((home, eve), MemberRole::View)]);
    assert!(metadata.roles(&[]).unwrap().is_empty());

    let seen = metadata.memberships(bob).unwrap().into_iter();
    let seen: Vec<_> = seen.map(|one| (one.owner, one.workspace.name, one.role)).collect();
    let named = |name: &str| ("ada".to_owned(), name.to_owned(), MemberRole::Edit);
    assert_eq!(seen, [named("home"), named("work")]);
    let whole = metadata.memberships(eve).unwrap().remove(0).workspace;
    assert_eq!(Some(whole), metadata.workspace(world.people.home.workspace()).unwrap());

    metadata.delete_member(home, bob).unwrap();
    metadata.delete_member(home, bob).unwrap();
    metadata.delete_account(eve).unwrap();
    assert_eq!(metadata.members(home).unwrap(), []);
    assert_eq!(metadata.members(work).unwrap().len(), 1);
    let copied = crate::Sqlite::from_snapshot(&metadata.snapshot().unwrap()).unwrap();
    assert_eq!(copied.members(work).unwrap(), metadata.members(work).unwrap());
}

fn viewer(database: &Arc<dyn Database>) {
    let mut world = World::new(database);
    world.share(MemberRole::View);
    let (bob, home) = (world.bob, world.home.workspace());
    world.commit_one(world.request(0, &world.home, 1, vec![put(1, 0, "kept")])).unwrap();
    let key = ObjectKey::pack(PackId::from_bytes([1; 32]));
    let ada = world.ada[0];
    write(&mut *world.metadata, |metadata| objects::record(metadata, &ada, home, &key, 5)).unwrap();
    // In one group with those of somebody who may.
    let requests = vec![
        world.of_bob(2, vec![put(2, 0, "mine")]),
        world.request(0, &world.home, 3, vec![put(3, 0, "hers")]),
    ];
    let mut outcomes = super::commit_all(&mut *world.metadata, requests);
    outcomes.pop().unwrap().unwrap();
    let refused = outcomes.pop().unwrap();
    assert!(matches!(refused, Err(ServerError::Forbidden { .. })), "{refused:?}");
    let other = ObjectKey::pack(PackId::from_bytes([2; 32]));
    let stored =
        write(&mut *world.metadata, |metadata| objects::record(metadata, &bob, home, &other, 5));
    assert!(matches!(stored, Err(ServerError::Forbidden { .. })), "{stored:?}");
    let room = objects::check_room(&*world.metadata, &bob, home, &key, 5);
    assert!(matches!(room, Err(ServerError::Forbidden { .. })), "{room:?}");

    let metadata = &*world.metadata;
    assert_eq!(sync_service::entries(metadata, &bob, home, 0, 1000).unwrap().len(), 2);
    assert_eq!(objects::find(metadata, &bob, home, &key).unwrap().1, 5);
    assert_eq!(objects::list(metadata, &bob, home, "", "", 9).unwrap().len(), 1);
    let work = world.work.clone();
    world.assert_is_strange(&bob, &work);
}

fn editor(database: &Arc<dyn Database>) {
    let mut world = World::new(database);
    world.share(MemberRole::Edit);
    let (ada, bob, home) = (world.ada[0], world.bob, world.home.workspace());
    world.commit_one(world.of_bob(1, vec![put(1, 0, "mine")])).unwrap();
    assert_eq!(world.version(&world.home, 1), 1);
    let held = world.metadata.used_bytes(ada.account).unwrap();
    assert!(held > 0 && world.metadata.used_bytes(bob.account).unwrap() == 0);
    world.metadata.update_quota(ada.account, Some(held)).unwrap();
    let full = world.commit_one(world.of_bob(2, vec![put(2, 0, "more")]));
    assert!(matches!(full, Err(ServerError::OverQuota { .. })), "{full:?}");
    world.metadata.update_quota(ada.account, None).unwrap();
    world.metadata.update_quota(bob.account, Some(0)).unwrap();
    let (pack, page) = (PackId::from_bytes([1; 32]), PageId::from_bytes([1; 32]));
    let (pack, page) = (ObjectKey::pack(pack), ObjectKey::page(page));
    let keep = |metadata: &mut dyn Metadata| objects::record(metadata, &bob, home, &pack, 5);
    assert!(write(&mut *world.metadata, keep).unwrap());

    // What the history comes to, what removes some of it, and who shares, is for the owner.
    for room in [
        objects::check_room(&*world.metadata, &bob, home, &page, 5).map(drop),
        write(&mut *world.metadata, |metadata| {
            objects::reserve(metadata, &bob, home, (&page, 5), 0)
        }),
        write(&mut *world.metadata, |metadata| {
            objects::record(metadata, &bob, home, &page, 5).map(drop)
        }),
    ] {
        assert!(matches!(room, Err(ServerError::Forbidden { .. })), "{room:?}");
    }
    let change = Change { node: NodeId::FENCE, base: 0, action: Action::Put(Vec::new()) };
    let fence = world.commit_one(world.of_bob(3, vec![change]));
    assert!(matches!(fence, Err(ServerError::Forbidden { .. })), "{fence:?}");
    let forget = |metadata: &mut dyn Metadata| objects::forget(metadata, &bob, home, &page, false);
    let forgotten = write(&mut *world.metadata, forget);
    assert!(matches!(forgotten, Err(ServerError::Forbidden { .. })), "{forgotten:?}");
    let role = MemberRole::Edit;
    let share = |metadata: &mut dyn Metadata| members::set(metadata, &bob, home, "bob", role, 0);
    let shared = write(&mut *world.metadata, share);
    assert!(matches!(shared, Err(ServerError::Forbidden { .. })), "{shared:?}");
}

fn removed(database: &Arc<dyn Database>) {
    let mut world = World::new(database);
    world.share(MemberRole::Edit);
    let (ada, bob, home) = (world.ada[0], world.bob, world.home.clone());
    world.commit_one(world.of_bob(1, vec![put(1, 0, "mine")])).unwrap();
    // At another server.
    let mut other = database.open();
    let remove =
        |metadata: &mut dyn Metadata| members::remove(metadata, &ada, home.workspace(), "bob");
    assert_eq!(write(&mut *other, remove).unwrap(), bob.account);
    world.assert_is_strange(&bob, &home);
    assert_eq!(workspaces::list(&*world.metadata, &bob).unwrap(), []);
    let again = write(&mut *other, remove);
    assert!(matches!(again, Err(ServerError::NotFound { .. })), "{again:?}");

    // A member leaves by itself; the owner cannot.
    world.share(MemberRole::View);
    let leave = |caller: Caller, name: &'static str| {
        move |metadata: &mut dyn Metadata| {
            members::remove(metadata, &caller, home.workspace(), name)
        }
    };
    let refused = write(&mut *world.metadata, leave.clone()(ada, "ada"));
    assert!(matches!(refused, Err(ServerError::Forbidden { .. })), "{refused:?}");
    let refused = write(&mut *world.metadata, leave.clone()(bob, "ada"));
    assert!(matches!(refused, Err(ServerError::Forbidden { .. })), "{refused:?}");
    write(&mut *world.metadata, leave(bob, "bob")).unwrap();
    assert_eq!(world.entries(&world.people.home.clone()).len(), 1);
}

fn names(database: &Arc<dyn Database>) {
    let mut world = World::new(database);
    let bob = world.bob;
    let own = Genesis { content_key: [9; 32], ..genesis("home") };
    write(&mut *world.metadata, |metadata| workspaces::create(metadata, &bob, &own)).unwrap();
    world.share(MemberRole::View);
    let listed = workspaces::list(&*world.metadata, &bob).unwrap().into_iter();
    let listed: Vec<_> = listed.map(|one| (one.name, one.owner, one.role)).collect();
    let member = Role::Member(MemberRole::View);
    let expected = [("home", "bob", Role::Owner), ("ada/home", "ada", member)];
    assert_eq!(listed, expected.map(|(name, owner, role)| (name.into(), owner.into(), role)));
    let find =
        |text: &str| workspaces::find(&*world.metadata, &bob, text).map(|found| found.workspace.id);
    assert_eq!(find("home").unwrap(), own.workspace());
    assert_eq!(find("bob/home").unwrap(), own.workspace());
    assert_eq!(find("ada/home").unwrap(), world.home.workspace());
    assert_eq!(find(&world.home.workspace().to_string()).unwrap(), world.home.workspace());
    for hidden in ["ada/work", "eve/home", "ada/", "/home", "ada/ho\0me"] {
        let refused = find(hidden).unwrap_err();
        assert_eq!(refused.to_string(), format!("there is no workspace '{hidden}'"));
    }
    let seen = |caller: &Caller| {
        let listed = members::list(&*world.metadata, caller, world.home.workspace()).unwrap();
        listed.into_iter().map(|one| one.name).collect::<Vec<_>>()
    };
    assert_eq!(seen(&world.ada[0]), ["ada", "bob"]);
    let eve = accounts::create_account(&mut *world.metadata, "eve", NO_PASSWORD, 0).unwrap();
    let number = world.metadata.workspace(world.home.workspace()).unwrap().unwrap().number;
    world.metadata.set_member(number, eve, MemberRole::Edit, 0).unwrap();
    let seen = |caller: &Caller| {
        let listed = members::list(&*world.metadata, caller, world.home.workspace()).unwrap();
        listed.into_iter().map(|one| one.name).collect::<Vec<_>>()
    };
    assert_eq!(seen(&world.ada[0]), ["ada", "bob", "eve"]);
    // Members need not know of each other.
    assert_eq!(seen(&bob), ["ada", "bob"]);
}

fn sealed(database: &Arc<dyn Database>) {
    let mut world = World::new(database);
    let ada = world.ada[0];
    let header = SealedGenesis { account: [1; 32], salt: [2; 32], header: vec![3; 60] };
    let secret = Genesis { mode: Mode::Sealed(header), ..genesis("secret") };
    write(&mut *world.metadata, |metadata| workspaces::create(metadata, &ada, &secret)).unwrap();
    write(&mut *world.metadata, |metadata| {
        members::set(metadata, &ada, secret.workspace(), "bob", MemberRole::View, 0)
    })
    .unwrap();
    let seen = workspaces::list(&*world.metadata, &world.bob).unwrap();
    let name = format!("ada/{}", secret.workspace());
    assert_eq!(seen.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(), [name]);
}

fn limited(database: &Arc<dyn Database>) {
    let mut world = World::new(database);
    let ada = world.ada[0];
    let mut add = |scope, workspace: Option<&str>, expires| {
        let (name, workspace) = ("program".to_owned(), workspace.map(str::to_owned));
        let new = NewToken { name, scope, workspace, expires };
        let add = |metadata: &mut dyn Metadata| {
            tokens::add(
                metadata,
                &Numbers(AtomicU64::new(1000 + u64::from(scope == Scope::Read))),
                &ada,
                &new,
                5,
            )
        };
        write(&mut *world.metadata, add).unwrap()
    };
    let (reader, _) = add(Scope::Read, None, None);
    let (writer, secret) = add(Scope::Write, Some("home"), Some(60));
    let found = world.metadata.device_by_token(&secret.hash()).unwrap();
    assert_eq!(found.as_ref(), Some(&writer));
    let limits = writer.limits.unwrap();
    assert_eq!((limits.scope, limits.expires), (Scope::Write, Some(60)));
    assert_eq!(limits.workspace, Some(world.home.workspace()));
    assert_eq!(world.metadata.device(reader.id).unwrap(), Some(reader.clone()));
    let copied = crate::Sqlite::from_snapshot(&world.metadata.snapshot().unwrap()).unwrap();
    let devices = |metadata: &dyn Metadata| metadata.devices(ada.account).unwrap();
    assert_eq!(devices(&copied), devices(&*world.metadata));

    let request = |token: &DeviceRecord, genesis: &Genesis, op| {
        let caller = Caller { account: token.account, device: token.id };
        let commit = Commit {
            device: token.id,
            ..model::testing::commit(op, vec![put(op, 0, "by a program")])
        };
        CommitRequest { caller, workspace: genesis.workspace(), commit }
    };
    let (home, work) = (world.home.clone(), world.work.clone());
    let requests = vec![
        request(&reader, &home, 1),
        request(&writer, &work, 2),
        request(&writer, &home, 3),
        world.request(0, &home, 4, vec![put(4, 0, "by a device")]),
    ];
    let outcomes = super::commit_all(&mut *world.metadata, requests);
    assert!(matches!(outcomes[0], Err(ServerError::Forbidden { .. })), "{:?}", outcomes[0]);
    assert!(matches!(outcomes[1], Err(ServerError::NotFound { .. })), "{:?}", outcomes[1]);
    assert!(outcomes[2].is_ok() && outcomes[3].is_ok(), "{outcomes:?}");

    let metadata = &*world.metadata;
    let at = |now| accounts::authenticate(metadata, &secret, now).is_ok();
    assert_eq!([5, 59, 60, 61].map(at), [true, true, false, false]);
}
