//! Invitations: rows, what has ended one, and who gets the account where several people come at once.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use super::several::at_once;
use super::{Database, Numbers, Story, World, write};
use crate::auth::NO_PASSWORD;
use crate::auth::invitation::InvitationSecret;
use crate::error::{Ended, Result, ServerError};
use crate::limits::{INVITATION_SECONDS_MAX, INVITATIONS_MAX};
use crate::metadata::{
    AccountRecord, InvitationId, InvitationRecord, InvitationTables, Metadata, NewInvitation,
};
use crate::services::invitations::{self, Comer};

pub(super) const STORIES: &[Story] = &[
    Story { name: "an_invitation_ends_once_and_is_known_for_a_while", tell: rows },
    Story { name: "who_is_invited_makes_one_account_and_hears_what_ended_the_rest", tell: joins },
    Story { name: "a_join_that_fails_leaves_the_invitation_and_no_account", tell: failures },
    Story { name: "of_several_people_with_one_invitation_one_gets_an_account", tell: one_of_many },
    Story { name: "of_several_invited_people_one_gets_a_name", tell: one_name },
    Story { name: "the_operator_invites_only_so_many_for_so_long", tell: limits },
];

fn invitation(name: Option<&str>, expires: i64) -> NewInvitation {
    NewInvitation { name: name.map(str::to_owned), quota_bytes: Some(7), made: 5, expires }
}

fn invite(
    metadata: &mut dyn Metadata,
    number: u64,
    new: &NewInvitation,
) -> Result<(InvitationId, InvitationSecret)> {
    let random = Numbers(AtomicU64::new(number << 32));
    write(metadata, |metadata| invitations::invite(metadata, &random, new))
}

fn join(
    metadata: &mut dyn Metadata,
    secret: &InvitationSecret,
    (name, number): (&str, u64),
    now: i64,
) -> Result<AccountRecord> {
    let random = Numbers(AtomicU64::new(number << 32));
    let comer = Comer { name, kept: "kept", device_name: "browser" };
    write(metadata, |metadata| {
        invitations::join(metadata, &random, secret, comer, now).map(|joined| joined.0)
    })
}

fn how<T: std::fmt::Debug>(outcome: Result<T>) -> Ended {
    match outcome {
        Err(ServerError::InvitationGone { how }) => how,
        other => panic!("{other:?}"),
    }
}

fn rows(database: &Arc<dyn Database>) {
    let mut metadata = World::new(database).metadata;
    assert_eq!(metadata.invitation_by_secret(&[1; 32]).unwrap(), None);
    let news = [invitation(Some("eve"), 20), invitation(None, 10)];
    let ids =
        [1, 2].map(|n| metadata.insert_invitation(&news[usize::from(n) - 1], &[n; 32]).unwrap());
    assert!(ids[0] < ids[1]);
    assert!(metadata.insert_invitation(&news[0], &[1; 32]).is_err(), "a secret leads to one");
    let record = |n: usize, ended, account: Option<&str>| InvitationRecord {
        id: ids[n],
        invitation: news[n].clone(),
        ended,
        account: account.map(str::to_owned),
    };
    assert_eq!(metadata.invitations().unwrap(), [record(0, None, None), record(1, None, None)]);
    assert!(metadata.end_invitation(ids[0], Some("eva"), 8).unwrap());
    assert!(!metadata.end_invitation(ids[0], None, 9).unwrap());
    assert!(!metadata.end_invitation(InvitationId::from_number(77), None, 9).unwrap());
    let used = record(0, Some(8), Some("eva"));
    assert_eq!(metadata.invitation_by_secret(&[1; 32]).unwrap(), Some(used.clone()));
    let copied = crate::Sqlite::from_snapshot(&metadata.snapshot().unwrap()).unwrap();
    assert_eq!(copied.invitations().unwrap(), [used.clone(), record(1, None, None)]);
    // What became of it counts, and else when it was to end.
    metadata.delete_old_invitations(8).unwrap();
    assert_eq!(metadata.invitations().unwrap().len(), 2);
    metadata.delete_old_invitations(10).unwrap();
    assert_eq!(metadata.invitations().unwrap(), [record(1, None, None)]);
    metadata.delete_old_invitations(11).unwrap();
    assert_eq!(metadata.invitations().unwrap(), []);
}

fn joins(database: &Arc<dyn Database>) {
    let mut world = World::new(database);
    let metadata = &mut *world.metadata;
    let unknown = InvitationSecret::generate(&Numbers(AtomicU64::new(99 << 32)));
    assert_eq!(how(invitations::open(metadata, &unknown, 5)), Ended::Unknown);
    assert_eq!(how(join(metadata, &unknown, ("eve", 1), 5)), Ended::Unknown);

    let (id, secret) = invite(metadata, 1, &invitation(Some("eve"), 20)).unwrap();
    let kept = metadata.invitation_by_secret(&secret.hash()).unwrap().unwrap();
    assert_eq!((kept.id, kept.invitation.name.as_deref()), (id, Some("eve")));
    // The name is proposed, and no more.
    let eva = join(metadata, &secret, ("eva", 2), 19).unwrap();
    let made = (eva.name.as_str(), eva.password_hash.as_str(), eva.quota_bytes, eva.created);
    assert_eq!(made, ("eva", "kept", Some(7), 19));
    let devices = metadata.devices(eva.id).unwrap();
    assert_eq!(devices.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(), ["browser"]);
    assert_eq!(how(join(metadata, &secret, ("eve", 3), 19)), Ended::Used);
    assert_eq!(metadata.account_by_name("eve").unwrap(), None);
    assert!(!write(metadata, |metadata| invitations::take_back(metadata, id, 19)).unwrap());
    assert_eq!(metadata.invitations().unwrap()[0].account.as_deref(), Some("eva"));

    let (id, secret) = invite(metadata, 4, &invitation(None, 20)).unwrap();
    assert_eq!(how(join(metadata, &secret, ("eve", 5), 20)), Ended::Expired);
    assert!(write(metadata, |metadata| invitations::take_back(metadata, id, 19)).unwrap());
    assert_eq!(how(join(metadata, &secret, ("eve", 6), 19)), Ended::TakenBack);
    let none = InvitationId::from_number(77);
    let none = write(metadata, |metadata| invitations::take_back(metadata, none, 19));
    assert!(matches!(none, Err(ServerError::NotFound { .. })), "{none:?}");
}

fn failures(database: &Arc<dyn Database>) {
    let mut world = World::new(database);
    let metadata = &mut *world.metadata;
    let (_, secret) = invite(metadata, 1, &invitation(None, 20)).unwrap();
    let taken = join(metadata, &secret, ("ada", 2), 6);
    assert!(matches!(taken, Err(ServerError::Taken { .. })), "{taken:?}");
    for name in ["", "-x", "a b", "a/b", &"x".repeat(65)] {
        let refused = join(metadata, &secret, (name, 3), 6);
        assert!(matches!(refused, Err(ServerError::Invalid { .. })), "{name}: {refused:?}");
    }
    // What fails last undoes what was done before.
    let random = Numbers(AtomicU64::new(4 << 32));
    let comer = Comer { name: "eve", kept: "kept", device_name: "" };
    let nameless = write(metadata, |metadata| {
        invitations::join(metadata, &random, &secret, comer, 6).map(drop)
    });
    assert!(matches!(nameless, Err(ServerError::Invalid { .. })), "{nameless:?}");
    assert_eq!(metadata.account_by_name("eve").unwrap(), None);
    assert_eq!(metadata.account_count().unwrap(), 2);
    assert_eq!(invitations::open(metadata, &secret, 6).unwrap().ended, None);
    join(metadata, &secret, ("eve", 5), 6).unwrap();
}

fn one_of_many(database: &Arc<dyn Database>) {
    let mut world = World::new(database);
    for round in 0..10 {
        let (id, secret) = invite(&mut *world.metadata, round + 1, &invitation(None, 20)).unwrap();
        let made = at_once(database, 4, |server, metadata| {
            let name = format!("new{round}-{server}");
            match join(metadata, &secret, (&name, 1000 + round * 4 + u64::from(server)), 6) {
                Ok(account) => Some(account.name),
                refused => {
                    assert_eq!(how(refused), Ended::Used);
                    None
                }
            }
        });
        let made: Vec<_> = made.into_iter().flatten().collect();
        assert_eq!(made.len(), 1, "{made:?}");
        let all = world.metadata.invitations().unwrap();
        let ended = all.into_iter().find(|one| one.id == id).unwrap();
        assert_eq!(ended.account.as_ref(), made.first());
    }
    assert_eq!(world.metadata.account_count().unwrap(), 12);
}

fn one_name(database: &Arc<dyn Database>) {
    let mut world = World::new(database);
    for round in 0..10 {
        let secrets = [0, 1, 2, 3].map(|server| {
            invite(&mut *world.metadata, round * 4 + server + 1, &invitation(None, 20)).unwrap().1
        });
        let name = format!("new{round}");
        let made = at_once(database, 4, |server, metadata| {
            let secret = &secrets[usize::from(server)];
            let number = 1000 + round * 4 + u64::from(server);
            let joined = join(metadata, secret, (&name, number), 6);
            let is_taken = matches!(joined, Err(ServerError::Taken { .. }));
            assert!(joined.is_ok() || is_taken, "{joined:?}");
            // Who is told that another name is wanted comes again with it.
            assert_eq!(invitations::open(metadata, secret, 6).is_ok(), is_taken);
            joined.is_ok()
        });
        assert_eq!(made.into_iter().filter(|is_made| *is_made).count(), 1);
    }
}

fn limits(database: &Arc<dyn Database>) {
    let mut world = World::new(database);
    let metadata = &mut *world.metadata;
    let taken = invite(metadata, 1, &invitation(Some("ada"), 20));
    assert!(matches!(taken, Err(ServerError::Taken { .. })), "{taken:?}");
    let invalid = [
        invitation(Some("a b"), 20),
        invitation(None, 5),
        invitation(None, 6 + INVITATION_SECONDS_MAX),
        invitation(None, i64::MIN),
    ];
    for new in invalid {
        let refused = invite(metadata, 1, &new);
        assert!(matches!(refused, Err(ServerError::Invalid { .. })), "{new:?}: {refused:?}");
    }
    let last = 5 + INVITATION_SECONDS_MAX;
    let open = invitation(None, last);
    write(metadata, |metadata| {
        for n in 0..INVITATIONS_MAX as u64 {
            metadata.insert_invitation(&open, blake3::hash(&n.to_le_bytes()).as_bytes())?;
        }
        Ok(())
    })
    .unwrap();
    let full = invite(metadata, 5000, &open);
    assert!(matches!(full, Err(ServerError::Forbidden { .. })), "{full:?}");
    // Those that have ended make room, and are forgotten later.
    let later = NewInvitation { made: last, expires: last + 1, ..open.clone() };
    invite(metadata, 5001, &later).unwrap();
    assert_eq!(metadata.invitations().unwrap().len(), INVITATIONS_MAX + 1);
    let much_later = NewInvitation { made: last * 3, expires: last * 3 + 1, ..open };
    invite(metadata, 5002, &much_later).unwrap();
    assert_eq!(metadata.invitations().unwrap().len(), 1);
    assert_eq!(metadata.account_by_name("ada").unwrap().unwrap().password_hash, NO_PASSWORD);
}
