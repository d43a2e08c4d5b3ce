//! Links for people without an account: rows, who makes them, and what ends them.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use model::DeviceId;
use model::testing::{node, put};

use super::several::at_once;
use super::{Database, Numbers, Story, World, write};
use crate::auth::{Caller, LinkSecret};
use crate::error::{Result, ServerError};
use crate::metadata::{DeviceRecord, LinkRecord, MemberRole, MetadataError};
use crate::services::links::{self, NewLink, SeenLink, State};
use crate::services::{members, tokens};

pub(super) const STORIES: &[Story] = &[
    Story { name: "links_are_kept_with_their_counts_until_they_are_taken_back", tell: rows },
    Story { name: "a_link_lets_in_no_more_downloads_than_it_says_on_several_servers", tell: limit },
    Story { name: "a_link_ends_on_its_day_and_with_what_its_maker_may_do", tell: ends },
    Story { name: "links_that_ended_with_a_right_do_not_come_back_with_it", tell: stays_ended },
    Story { name: "who_may_edit_makes_links_and_sees_and_ends_only_those", tell: makers },
    Story { name: "a_link_is_no_token_and_writes_nothing", tell: no_token },
];

/// A link to a node of `home` that leads there for ever.
fn new(n: u8) -> NewLink {
    NewLink { node: node(n), expires: None, password_hash: None, downloads_max: None }
}

impl World {
    /// Makes a link into `home`.
    fn link(&mut self, caller: Caller, new: &NewLink) -> Result<(SeenLink, LinkSecret)> {
        // Another one for each device and node.
        let ([device, ..], [.., node]) = (*caller.device.as_bytes(), *new.node.as_bytes());
        let (home, salt) =
            (self.home.workspace(), u64::from_be_bytes([1, device, node, 0, 0, 0, 0, 0]));
        let random = Numbers(AtomicU64::new(salt));
        write(&mut *self.metadata, |metadata| {
            links::add(metadata, &random, (&caller, home), new, 5)
        })
    }

    /// Tells whether a secret leads somewhere at a time.
    fn leads(&self, secret: &LinkSecret, now: i64) -> bool {
        match links::open(&*self.metadata, secret, now) {
            Ok(_) => true,
            Err(ServerError::LinkGone) => false,
            Err(other) => panic!("{other}"),
        }
    }

    fn listed(&self, caller: &Caller, now: i64) -> Vec<(DeviceId, State)> {
        let listed = links::list(&*self.metadata, caller, self.home.workspace(), now).unwrap();
        listed.into_iter().map(|seen| (seen.link.device.id, seen.state)).collect()
    }

    fn take_back(&mut self, caller: &Caller, id: DeviceId) -> Result<()> {
        let home = self.home.workspace();
        write(&mut *self.metadata, |metadata| links::remove(metadata, caller, home, id))
    }
}

fn rows(database: &Arc<dyn Database>) {
    let mut world = World::new(database);
    world.share(MemberRole::Edit);
    let password_hash = Some("hash".to_owned());
    let full = NewLink { expires: Some(60), password_hash, downloads_max: Some(3), ..new(1) };
    let ((first, secret), (second, _)) =
        (world.link(world.ada[0], &full).unwrap(), world.link(world.bob, &new(2)).unwrap());
    assert_eq!((first.maker.as_str(), second.maker.as_str()), ("ada", "bob"));
    let number = world.metadata.workspace(world.home.workspace()).unwrap().unwrap().number;
    let metadata = &mut *world.metadata;
    let found = metadata.link_by_secret(&secret.hash()).unwrap();
    assert_eq!(found.as_ref(), Some(&first.link));
    assert_eq!((first.link.node, first.link.password_hash.as_deref()), (node(1), Some("hash")));
    assert_eq!((first.link.downloads_max, first.link.downloads), (Some(3), 0));
    assert_eq!(first.link.device.limits.and_then(|limits| limits.expires), Some(60));
    assert_eq!(metadata.link_by_secret(&[7; 32]).unwrap(), None);
    let device = DeviceRecord { id: DeviceId::from_bytes([9; 16]), ..second.link.device.clone() };
    let twin = LinkRecord { device, ..second.link.clone() };
    let again =
        write(metadata, |metadata| Ok(metadata.insert_link(&twin, number, &secret.hash())?));
    assert!(matches!(again, Err(ServerError::Metadata(MetadataError::Taken { .. }))), "{again:?}");

    metadata.count_download(first.link.device.id).unwrap();
    let counted = metadata.link(first.link.device.id).unwrap().unwrap();
    assert_eq!(counted.downloads, 1);
    let mut both = vec![counted, second.link.clone()];
    both.sort_by_key(|link| link.device.id);
    assert_eq!(metadata.links(number).unwrap(), both);
    let copied = crate::Sqlite::from_snapshot(&metadata.snapshot().unwrap()).unwrap();
    assert_eq!(crate::metadata::LinkTables::links(&copied, number).unwrap(), both);

    metadata.revoke_device(first.link.device.id).unwrap();
    assert_eq!(metadata.links(number).unwrap(), [second.link]);
    assert!(metadata.link(first.link.device.id).unwrap().unwrap().device.is_revoked);
    metadata.delete_account(world.people.bob.account).unwrap();
    assert_eq!(metadata.links(number).unwrap(), []);
}

fn limit(database: &Arc<dyn Database>) {
    let mut world = World::new(database);
    let (seen, secret) =
        world.link(world.ada[0], &NewLink { downloads_max: Some(7), ..new(1) }).unwrap();
    let let_in = at_once(database, 4, |_, metadata| {
        let admit = || write(metadata, |metadata| links::admit(metadata, &secret, 5));
        let outcomes: Vec<_> = std::iter::repeat_with(admit).take(10).collect();
        let is_refused =
            |outcome: &Result<()>| matches!(outcome, Ok(()) | Err(ServerError::LinkGone));
        assert!(outcomes.iter().all(is_refused), "{outcomes:?}");
        outcomes.iter().filter(|outcome| outcome.is_ok()).count()
    });
    assert_eq!(let_in.iter().sum::<usize>(), 7, "{let_in:?}");
    assert_eq!(world.metadata.link(seen.link.device.id).unwrap().unwrap().downloads, 7);
    assert!(!world.leads(&secret, 5));
    assert_eq!(world.listed(&world.ada[0], 5), [(seen.link.device.id, State::UsedUp)]);
}

fn ends(database: &Arc<dyn Database>) {
    let mut world = World::new(database);
    world.share(MemberRole::Edit);
    let (ada, bob) = (world.ada[0], world.bob);
    let (seen, secret) = world.link(ada, &NewLink { expires: Some(60), ..new(1) }).unwrap();
    assert_eq!([5, 59, 60, 61].map(|now| world.leads(&secret, now)), [true, true, false, false]);
    assert_eq!(world.listed(&ada, 60), [(seen.link.device.id, State::Expired)]);
    let admitted =
        write(&mut *world.metadata, |metadata| links::admit(metadata, &secret, 60)).unwrap_err();
    assert!(matches!(admitted, ServerError::LinkGone), "{admitted}");
    // A device that is signed out leaves the links of its account as they are.
    world.metadata.revoke_device(ada.device).unwrap();
    assert!(world.leads(&secret, 59));

    let (of_bob, secret) = world.link(bob, &new(2)).unwrap();
    let number = world.metadata.workspace(world.home.workspace()).unwrap().unwrap().number;
    world.metadata.update_account(bob.account, "!", true).unwrap();
    assert!(!world.leads(&secret, 5));
    let state_of_bobs = |world: &World| {
        let listed = world.listed(&world.ada[1], 5);
        listed.into_iter().find(|(id, _)| *id == of_bob.link.device.id).unwrap().1
    };
    assert_eq!(state_of_bobs(&world), State::Suspended);
    world.metadata.update_account(bob.account, "!", false).unwrap();
    assert!(world.leads(&secret, 5));
    // As an administrator's command writes it, and another server may at any time.
    world.metadata.set_member(number, bob.account, MemberRole::View, 6).unwrap();
    assert!(!world.leads(&secret, 5));
    assert_eq!(state_of_bobs(&world), State::Suspended);
    world.metadata.delete_member(number, bob.account).unwrap();
    assert!(!world.leads(&secret, 5));
    world.metadata.set_member(number, bob.account, MemberRole::Edit, 7).unwrap();
    assert!(world.leads(&secret, 5));
    world.take_back(&bob, of_bob.link.device.id).unwrap();
    assert!(!world.leads(&secret, 5));
}

fn stays_ended(database: &Arc<dyn Database>) {
    let mut world = World::new(database);
    let (ada, bob, home) = (world.ada[0], world.bob, world.home.workspace());
    let (_, of_ada) = world.link(ada, &new(9)).unwrap();
    for n in [1, 2] {
        world.share(MemberRole::Edit);
        let (_, secret) = world.link(bob, &new(n)).unwrap();
        assert!(world.leads(&secret, 5));
        match n {
            1 => world.share(MemberRole::View),
            _ => write(&mut *world.metadata, |metadata| {
                members::remove(metadata, &ada, home, "bob").map(drop)
            })
            .unwrap(),
        }
        assert!(!world.leads(&secret, 5));
        world.share(MemberRole::Edit);
        assert!(!world.leads(&secret, 5));
    }
    assert!(world.leads(&of_ada, 5));
}

fn makers(database: &Arc<dyn Database>) {
    let mut world = World::new(database);
    let (ada, bob, home) = (world.ada[0], world.bob, world.home.workspace());
    let (of_ada, _) = world.link(ada, &new(1)).unwrap();
    let stranger = world.link(bob, &new(2)).unwrap_err().to_string();
    assert_eq!(stranger, format!("there is no workspace '{home}'"));
    world.share(MemberRole::View);
    let viewer = world.link(bob, &new(2));
    assert!(matches!(viewer, Err(ServerError::Forbidden { .. })), "{viewer:?}");
    let listed = links::list(&*world.metadata, &bob, home, 5);
    assert!(matches!(listed, Err(ServerError::Forbidden { .. })), "{listed:?}");

    world.share(MemberRole::Edit);
    let (of_bob, _) = world.link(bob, &new(2)).unwrap();
    let (of_ada, of_bob) = (of_ada.link.device.id, of_bob.link.device.id);
    assert_eq!(world.listed(&bob, 5), [(of_bob, State::Open)]);
    assert_eq!(world.listed(&world.ada[1], 5).len(), 2);
    let refused = world.take_back(&bob, of_ada);
    assert!(matches!(refused, Err(ServerError::Forbidden { .. })), "{refused:?}");
    let work = world.work.workspace();
    let elsewhere =
        write(&mut *world.metadata, |metadata| links::remove(metadata, &ada, work, of_bob));
    assert!(matches!(elsewhere, Err(ServerError::NotFound { .. })), "{elsewhere:?}");
    world.take_back(&ada, of_bob).unwrap();
    let again = world.take_back(&ada, of_bob);
    assert!(matches!(again, Err(ServerError::NotFound { .. })), "{again:?}");
    assert_eq!(world.listed(&ada, 5), [(of_ada, State::Open)]);

    for bad in [
        NewLink { expires: Some(5), ..new(3) },
        NewLink { expires: Some(i64::MIN), ..new(3) },
        NewLink { downloads_max: Some(0), ..new(3) },
    ] {
        let refused = world.link(ada, &bad);
        assert!(matches!(refused, Err(ServerError::Invalid { .. })), "{bad:?}: {refused:?}");
    }
}

fn no_token(database: &Arc<dyn Database>) {
    let mut world = World::new(database);
    let (seen, secret) = world.link(world.ada[0], &new(1)).unwrap();
    assert_eq!(tokens::list(&*world.metadata, &world.ada[0]).unwrap(), []);
    let caller = links::open(&*world.metadata, &secret, 5).unwrap().caller;
    assert_eq!((caller.account, caller.device), (world.ada[0].account, seen.link.device.id));
    let mut request = world.request(0, &world.home, 1, vec![put(1, 0, "by a link")]);
    request.caller = caller;
    request.commit.device = caller.device;
    let refused = world.commit_one(request);
    assert!(matches!(refused, Err(ServerError::Forbidden { .. })), "{refused:?}");
    let home = world.home.workspace();
    let shared = write(&mut *world.metadata, |metadata| {
        members::set(metadata, &caller, home, "bob", MemberRole::Edit, 5)
    });
    assert!(matches!(shared, Err(ServerError::Forbidden { .. })), "{shared:?}");
    let linked = world.link(caller, &new(2)).unwrap_err();
    assert!(matches!(linked, ServerError::Forbidden { .. }), "{linked}");
}
