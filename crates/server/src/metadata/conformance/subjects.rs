//! People at providers of OpenID Connect: rows, whose account they are led to, and who is first where several servers are asked at once.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use super::several::at_once;
use super::{Database, Numbers, Story, World, write};
use crate::auth::subject::Subject;
use crate::auth::totp::TotpSecret;
use crate::auth::{Caller, NO_PASSWORD, verify_password};
use crate::error::{Result, ServerError};
use crate::limits::SUBJECTS_MAX;
use crate::metadata::{
    AccountId, AccountRecord, Metadata, MetadataError, Scope, SubjectRecord, SubjectTables,
};
use crate::services::passwords::{self, Ended, SignedIn};
use crate::services::subjects;
use crate::services::tokens::{self, NewToken};

pub(super) const STORIES: &[Story] = &[
    Story { name: "a_subject_is_bound_to_one_account_and_goes_with_it", tell: rows },
    Story { name: "who_is_bound_signs_in_while_that_and_the_account_count", tell: sign_ins },
    Story { name: "nobody_gets_an_account_by_its_name", tell: by_name },
    Story { name: "of_several_servers_that_see_a_newcomer_one_makes_the_account", tell: newcomer },
    Story { name: "owners_bind_and_unbind_their_own_accounts_only", tell: owners },
    Story { name: "an_account_keeps_a_way_in_whatever_happens_at_once", tell: last_way },
    Story { name: "only_the_provider_that_people_sign_in_by_is_a_way_in", tell: way_of_now },
    Story { name: "devices_that_bind_at_once_do_not_exceed_the_limit", tell: room_for_one },
    Story { name: "nobody_stays_bound_where_others_are_signed_out", tell: signed_out },
];

const ISSUER: &str = "https://id.example.org";

fn subject(id: &str) -> Subject {
    Subject::new(ISSUER, id).unwrap()
}

fn sign_in(
    metadata: &mut dyn Metadata,
    account: AccountId,
    id: &str,
    number: u64,
) -> Result<SignedIn> {
    let (random, subject) = (Numbers(AtomicU64::new(number << 32)), subject(id));
    write(metadata, |metadata| {
        subjects::sign_in(metadata, &random, (account, &subject), None, ("new", 5))
    })
}

fn create(metadata: &mut dyn Metadata, id: &str, name: &str) -> Result<AccountRecord> {
    create_of_size(metadata, id, (name, None)).map(|made| made.0)
}

fn create_of_size(
    metadata: &mut dyn Metadata,
    id: &str,
    name_and_quota: (&str, Option<u64>),
) -> Result<(AccountRecord, bool)> {
    write(metadata, |metadata| subjects::create(metadata, &subject(id), name_and_quota, 5))
}

fn bind(metadata: &mut dyn Metadata, caller: Caller, hash: &str, id: &str) -> Result<()> {
    bind_at(metadata, caller, hash, (id, 5)).map(drop)
}

fn bind_at(
    metadata: &mut dyn Metadata,
    caller: Caller,
    hash: &str,
    (id, now): (&str, i64),
) -> Result<SubjectRecord> {
    let account = metadata.account(caller.account)?.unwrap();
    let account = AccountRecord { password_hash: hash.to_owned(), ..account };
    write(metadata, |metadata| subjects::bind(metadata, &caller, &account, &subject(id), now))
}

fn unbind(metadata: &mut dyn Metadata, caller: Caller, id: &str) -> Result<()> {
    write(metadata, |metadata| subjects::unbind(metadata, &caller, id, Some(ISSUER)))
}

fn is_not_bound<T>(outcome: &Result<T>) -> bool {
    matches!(outcome, Err(ServerError::NotBound { .. }))
}

fn rows(database: &Arc<dyn Database>) {
    let mut world = World::new(database);
    let (ada, bob) = (world.ada[0].account, world.bob.account);
    let metadata = &mut *world.metadata;
    let elsewhere = Subject::new("https://other.example.org", "1").unwrap();
    assert_eq!(metadata.account_of_subject(&subject("1")).unwrap(), None);
    for (one, since) in [(&elsewhere, 7), (&subject("2"), 6), (&subject("1"), 5)] {
        assert!(metadata.bind_subject(one, ada, since).unwrap());
        assert!(!metadata.bind_subject(one, ada, 9).unwrap());
        assert!(!metadata.bind_subject(one, bob, 9).unwrap(), "it is of somebody else");
        assert_eq!(metadata.account_of_subject(one).unwrap(), Some(ada));
    }
    // Letters are compared as they are.
    assert!(metadata.bind_subject(&subject("A"), ada, 8).unwrap());
    assert!(metadata.bind_subject(&subject("a"), bob, 8).unwrap());
    let record = |subject: &Subject, since| SubjectRecord { subject: subject.clone(), since };
    let of_ada = [
        record(&subject("1"), 5),
        record(&subject("2"), 6),
        record(&subject("A"), 8),
        record(&elsewhere, 7),
    ];
    assert_eq!(metadata.subjects(ada).unwrap(), of_ada);
    let copied = crate::Sqlite::from_snapshot(&metadata.snapshot().unwrap()).unwrap();
    assert_eq!(copied.subjects(ada).unwrap(), of_ada);

    assert!(!metadata.unbind_subject(&subject("2"), bob).unwrap());
    assert!(metadata.unbind_subject(&subject("2"), ada).unwrap());
    assert!(!metadata.unbind_subject(&subject("2"), ada).unwrap());
    assert_eq!(metadata.subjects(ada).unwrap().len(), 3);
    metadata.delete_account(bob).unwrap();
    assert_eq!(metadata.account_of_subject(&subject("a")).unwrap(), None);
}

fn sign_ins(database: &Arc<dyn Database>) {
    let mut world = World::new(database);
    let account = world.ada[0].account;
    let metadata = &mut *world.metadata;
    assert!(is_not_bound(&subjects::account_of(metadata, &subject("1"))));
    assert!(is_not_bound(&sign_in(metadata, account, "1", 1)));
    metadata.bind_subject(&subject("1"), account, 5).unwrap();
    assert_eq!(subjects::account_of(metadata, &subject("1")).unwrap().id, account);
    let signed_in = sign_in(metadata, account, "1", 2).unwrap();
    assert_eq!(signed_in.caller.account, account);
    assert!(is_not_bound(&sign_in(metadata, world.people.bob.account, "1", 3)));

    let secret = TotpSecret::from_bytes([7; 20]);
    assert!(metadata.offer_second_factor(account, &secret, 5).unwrap());
    assert!(metadata.turn_on_second_factor(account, &secret, 6, 7).unwrap());
    let without = sign_in(metadata, account, "1", 4);
    assert!(matches!(without, Err(ServerError::CodeNeeded)), "{without:?}");
    assert!(metadata.delete_second_factor(account).unwrap());

    metadata.update_disabled(account, true).unwrap();
    let disabled = sign_in(metadata, account, "1", 5);
    assert!(matches!(disabled, Err(ServerError::Forbidden { .. })), "{disabled:?}");
    metadata.update_disabled(account, false).unwrap();
    sign_in(metadata, account, "1", 6).unwrap();
    metadata.unbind_subject(&subject("1"), account).unwrap();
    assert!(is_not_bound(&sign_in(metadata, account, "1", 7)));
}

fn by_name(database: &Arc<dyn Database>) {
    let mut world = World::new(database);
    let ada = world.ada[0].account;
    let metadata = &mut *world.metadata;
    let taken = create(metadata, "1", "ada");
    assert!(matches!(taken, Err(ServerError::Taken { .. })), "{taken:?}");
    for name in ["", "-x", "a b", "a/b", &"x".repeat(65)] {
        let refused = create(metadata, "1", name);
        assert!(matches!(refused, Err(ServerError::Invalid { .. })), "{name}: {refused:?}");
    }
    assert_eq!(metadata.account_of_subject(&subject("1")).unwrap(), None);
    assert!(metadata.subjects(ada).unwrap().is_empty());

    let eve = create(metadata, "1", "eve").unwrap();
    assert_eq!((eve.name.as_str(), eve.password_hash.as_str()), ("eve", NO_PASSWORD));
    for password in ["", "!", "eve"] {
        assert!(!verify_password(password, Some(&eve.password_hash)), "{password}");
    }
    // Whatever the person is called later, the account stays the same.
    assert_eq!(create_of_size(metadata, "1", ("renamed", Some(7))).unwrap(), (eve.clone(), false));
    assert_eq!(metadata.account_by_name("renamed").unwrap(), None);
    sign_in(metadata, eve.id, "1", 1).unwrap();
    let (dora, is_new) = create_of_size(metadata, "2", ("dora", Some(7))).unwrap();
    assert_eq!((dora.quota_bytes, eve.quota_bytes, is_new), (Some(7), None, true));
}

fn newcomer(database: &Arc<dyn Database>) {
    let world = World::new(database);
    for round in 0..10 {
        let (id, name) = (format!("new {round}"), format!("new{round}"));
        let made = at_once(database, 4, |_, metadata| {
            // Whoever was second looks again, as the door does.
            let made = match create_of_size(metadata, &id, (&name, None)) {
                Err(
                    ServerError::Taken { .. } | ServerError::Metadata(MetadataError::Taken { .. }),
                ) => create_of_size(metadata, &id, (&name, None)),
                made => made,
            };
            let (account, is_new) = made.unwrap();
            assert_eq!(account.name, name);
            is_new
        });
        assert_eq!(made.into_iter().filter(|is_new| *is_new).count(), 1);
        let account = world.metadata.account_by_name(&name).unwrap().unwrap();
        assert_eq!(world.metadata.account_of_subject(&subject(&id)).unwrap(), Some(account.id));
    }
    assert_eq!(world.metadata.account_count().unwrap(), 12);
}

fn owners(database: &Arc<dyn Database>) {
    let mut world = World::new(database);
    let (one, bob) = (world.ada[0], world.bob);
    let metadata = &mut *world.metadata;
    let wrong = bind(metadata, one, "changed since", "1");
    assert!(matches!(wrong, Err(ServerError::WrongPassword)), "{wrong:?}");
    for now in [5, 6] {
        let bound = bind_at(metadata, one, NO_PASSWORD, ("1", now)).unwrap();
        assert_eq!(bound, SubjectRecord { subject: subject("1"), since: 5 });
    }
    let taken = bind(metadata, bob, NO_PASSWORD, "1");
    assert!(matches!(taken, Err(ServerError::Taken { .. })), "{taken:?}");
    assert!(subjects::list(metadata, &bob).unwrap().is_empty());
    let hidden = unbind(metadata, bob, "1");
    assert!(matches!(hidden, Err(ServerError::NotFound { .. })), "{hidden:?}");

    let new = NewToken {
        name: "program".to_owned(),
        scope: Scope::Write,
        workspace: None,
        expires: None,
    };
    let random = Numbers(AtomicU64::new(1 << 50));
    let add = |metadata: &mut dyn Metadata| tokens::add(metadata, &random, &one, &new, 0);
    let program = Caller { device: write(metadata, add).unwrap().0.id, ..one };
    let refusals = [
        bind(metadata, program, NO_PASSWORD, "2"),
        unbind(metadata, program, "1"),
        subjects::list(metadata, &program).map(drop),
    ];
    for refused in refusals {
        assert!(matches!(refused, Err(ServerError::Forbidden { .. })), "{refused:?}");
    }
    for number in 2..=SUBJECTS_MAX {
        bind(metadata, one, NO_PASSWORD, &number.to_string()).unwrap();
    }
    let full = bind(metadata, one, NO_PASSWORD, "one more");
    assert!(matches!(full, Err(ServerError::Forbidden { .. })), "{full:?}");
    bind(metadata, one, NO_PASSWORD, "1").unwrap();
}

fn room_for_one(database: &Arc<dyn Database>) {
    let mut world = World::new(database);
    let caller = world.ada[0];
    for number in 1..SUBJECTS_MAX {
        bind(&mut *world.metadata, caller, NO_PASSWORD, &number.to_string()).unwrap();
    }
    for round in 0..10 {
        let bound = at_once(database, 4, |server, metadata| {
            let id = format!("{round} {server}");
            let outcome = bind(metadata, caller, NO_PASSWORD, &id);
            let is_full = matches!(outcome, Err(ServerError::Forbidden { .. }));
            assert!(outcome.is_ok() || is_full, "{outcome:?}");
            outcome.is_ok().then_some(id)
        });
        let bound: Vec<_> = bound.into_iter().flatten().collect();
        assert_eq!(bound.len(), 1, "{bound:?}");
        unbind(&mut *world.metadata, caller, &bound[0]).unwrap();
    }
}

fn change(
    metadata: &mut dyn Metadata,
    caller: Caller,
    hashes: (&str, &str),
    signs_out_others: bool,
) -> Ended {
    let change =
        write(metadata, |metadata| passwords::change(metadata, &caller, hashes, signs_out_others));
    change.unwrap()
}

fn signed_out(database: &Arc<dyn Database>) {
    let mut world = World::new(database);
    let (caller, bob) = (world.ada[0], world.bob);
    bind(&mut *world.metadata, bob, NO_PASSWORD, "of bob").unwrap();
    bind(&mut *world.metadata, caller, NO_PASSWORD, "1").unwrap();
    let elsewhere = Subject::new("https://other.example.org", "1").unwrap();
    assert!(world.metadata.bind_subject(&elsewhere, caller.account, 5).unwrap());
    let kept = change(&mut *world.metadata, caller, (NO_PASSWORD, "0"), false);
    assert!(kept.unbound.is_empty());
    let ended = change(&mut *world.metadata, caller, ("0", "1"), true).unbound;
    let ended: Vec<_> = ended.into_iter().map(|one| one.subject).collect();
    assert_eq!(ended, [subject("1"), elsewhere]);
    // Nor does whoever knows the old password, and binds somebody at this moment.
    for round in 1..20 {
        let (old, new) = (round.to_string(), (round + 1).to_string());
        at_once(database, 4, |server, metadata| match server {
            0 => drop(change(metadata, caller, (&old, &new), true)),
            _ => {
                let bound = bind(metadata, caller, &old, &format!("{round} {server}"));
                let is_late = matches!(bound, Err(ServerError::WrongPassword));
                assert!(bound.is_ok() || is_late, "{bound:?}");
            }
        });
        assert_eq!(world.metadata.subjects(caller.account).unwrap(), []);
    }
    assert_eq!(world.metadata.subjects(bob.account).unwrap().len(), 1);
}

fn way_of_now(database: &Arc<dyn Database>) {
    let mut world = World::new(database);
    let caller = world.ada[0];
    let metadata = &mut *world.metadata;
    bind(metadata, caller, NO_PASSWORD, "1").unwrap();
    let before = Subject::new("https://before.example.org", "2").unwrap();
    assert!(metadata.bind_subject(&before, caller.account, 5).unwrap());
    let only = unbind(metadata, caller, "1");
    assert!(matches!(only, Err(ServerError::Conflict { .. })), "{only:?}");
    let none = write(metadata, |metadata| subjects::unbind(metadata, &caller, "2", None));
    assert!(matches!(none, Err(ServerError::Conflict { .. })), "{none:?}");
    unbind(metadata, caller, "2").unwrap();
    assert_eq!(metadata.subjects(caller.account).unwrap().len(), 1);
}

fn last_way(database: &Arc<dyn Database>) {
    let mut world = World::new(database);
    let caller = world.ada[0];
    bind(&mut *world.metadata, caller, NO_PASSWORD, "0").unwrap();
    let only = unbind(&mut *world.metadata, caller, "0");
    assert!(matches!(only, Err(ServerError::Conflict { .. })), "{only:?}");
    for _ in 0..10 {
        for id in ["0", "1", "2", "3"] {
            bind(&mut *world.metadata, caller, NO_PASSWORD, id).unwrap();
        }
        at_once(database, 4, |server, metadata| {
            let outcome = unbind(metadata, caller, &server.to_string());
            let is_last = matches!(outcome, Err(ServerError::Conflict { .. }));
            assert!(outcome.is_ok() || is_last, "{outcome:?}");
        });
        assert_eq!(world.metadata.subjects(caller.account).unwrap().len(), 1);
    }
    // Where there is a password, the last one may go.
    world.metadata.update_account(caller.account, "a hash", false).unwrap();
    let left = world.metadata.subjects(caller.account).unwrap();
    unbind(&mut *world.metadata, caller, left[0].subject.id()).unwrap();
    assert!(world.metadata.subjects(caller.account).unwrap().is_empty());
}
