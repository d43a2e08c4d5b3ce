//! Second factors: rows, steps of time, recovery codes, and who is first where several servers are asked at once.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use super::several::at_once;
use super::{Database, Numbers, Story, World, write};
use crate::auth::Caller;
use crate::auth::second_factor::{Proof, RecoveryCode};
use crate::auth::totp::{STEP_SECONDS, TotpSecret};
use crate::error::{Result, ServerError};
use crate::metadata::{AccountId, Metadata, Scope, SecondFactorRecord};
use crate::services::second_factor::{self, Admission, RECOVERY_CODES, State, Status};
use crate::services::tokens::{self, NewToken};

pub(super) const STORIES: &[Story] = &[
    Story { name: "a_second_factor_is_kept_changed_and_goes_with_its_account", tell: rows },
    Story { name: "a_second_factor_counts_from_its_first_code_until_its_end", tell: life },
    Story { name: "a_code_counts_around_its_step_and_once", tell: steps },
    Story { name: "a_recovery_code_lets_in_once_and_ends_a_second_factor", tell: recovery },
    Story { name: "of_several_servers_that_see_one_code_one_lets_in", tell: one_lets_in },
    Story { name: "a_secret_that_is_confirmed_is_not_replaced_meanwhile", tell: confirmed },
    Story { name: "no_recovery_code_outlives_its_second_factor", tell: gone_with_it },
    Story { name: "applications_and_others_have_no_part_in_a_second_factor", tell: others },
];

const SECRET: TotpSecret = TotpSecret::from_bytes([7; 20]);

/// The step at which a second factor begins in these stories, and the first second of that.
const STEP: i64 = 56_666_666;
const NOW: i64 = STEP * STEP_SECONDS;

fn code(step: i64) -> Proof {
    Proof::Code(SECRET.code(step))
}

/// Turns the second factor of a caller on by the code of [`STEP`].
fn turn_on(metadata: &mut dyn Metadata, caller: Caller) -> Result<Vec<RecoveryCode>> {
    write(metadata, |metadata| second_factor::begin(metadata, &caller, &SECRET, NOW))?;
    // Not the numbers that devices and tokens have.
    let random = Numbers(AtomicU64::new(1 << 50));
    let confirm = |metadata: &mut dyn Metadata| {
        second_factor::confirm(metadata, &random, &caller, &code(STEP), NOW)
    };
    write(metadata, confirm)
}

fn admit(
    metadata: &mut dyn Metadata,
    account: AccountId,
    shown: Option<Proof>,
    now: i64,
) -> Result<Admission> {
    write(metadata, |metadata| second_factor::admit(metadata, account, shown.as_ref(), now))
}

fn is_wrong<T: std::fmt::Debug>(outcome: &Result<T>) -> bool {
    matches!(outcome, Err(ServerError::WrongCode))
}

fn is_conflict<T: std::fmt::Debug>(outcome: &Result<T>) -> bool {
    matches!(outcome, Err(ServerError::Conflict { .. }))
}

fn rows(database: &Arc<dyn Database>) {
    let mut world = World::new(database);
    let (ada, bob) = (world.ada[0].account, world.bob.account);
    let (first, second) = (SECRET, TotpSecret::from_bytes([8; 20]));
    let metadata = &mut *world.metadata;
    assert_eq!(metadata.second_factor(ada).unwrap(), None);
    assert!(metadata.offer_second_factor(ada, &first, 5).unwrap());
    assert!(metadata.offer_second_factor(ada, &second, 6).unwrap());
    let waiting =
        SecondFactorRecord { secret: second.clone(), is_on: false, used_step: 0, since: 6 };
    assert_eq!(metadata.second_factor(ada).unwrap().as_ref(), Some(&waiting));
    assert!(!metadata.use_step(ada, 1).unwrap(), "it is not on");
    assert!(!metadata.turn_on_second_factor(ada, &first, 9, 7).unwrap(), "it was replaced");
    assert!(metadata.turn_on_second_factor(ada, &second, 9, 7).unwrap());
    assert!(!metadata.turn_on_second_factor(ada, &second, 9, 7).unwrap());
    assert!(!metadata.offer_second_factor(ada, &first, 8).unwrap());
    for (step, is_new) in [(9, false), (8, false), (10, true), (10, false), (12, true)] {
        assert_eq!(metadata.use_step(ada, step).unwrap(), is_new, "{step}");
    }
    let on = SecondFactorRecord { is_on: true, used_step: 12, since: 7, ..waiting };
    assert_eq!(metadata.second_factor(ada).unwrap().as_ref(), Some(&on));

    metadata.insert_recovery_codes(ada, &[[1; 32], [2; 32], [3; 32]]).unwrap();
    metadata.insert_recovery_codes(bob, &[[1; 32]]).unwrap();
    assert!(metadata.delete_recovery_code(ada, &[2; 32]).unwrap());
    assert!(!metadata.delete_recovery_code(ada, &[2; 32]).unwrap());
    assert!(!metadata.delete_recovery_code(bob, &[3; 32]).unwrap());
    assert_eq!(metadata.recovery_code_count(ada).unwrap(), 2);
    let copied = crate::Sqlite::from_snapshot(&metadata.snapshot().unwrap()).unwrap();
    assert_eq!(second_factor_of(&copied, ada), (Some(on), 2));
    assert!(metadata.delete_second_factor(ada).unwrap());
    assert!(!metadata.delete_second_factor(ada).unwrap());
    assert_eq!(second_factor_of(metadata, ada), (None, 0));

    assert!(metadata.offer_second_factor(bob, &first, 5).unwrap());
    assert_eq!(metadata.recovery_code_count(bob).unwrap(), 1);
    metadata.delete_account(bob).unwrap();
    assert_eq!(second_factor_of(metadata, bob), (None, 0));
}

fn second_factor_of(
    metadata: &dyn Metadata,
    account: AccountId,
) -> (Option<SecondFactorRecord>, u64) {
    (metadata.second_factor(account).unwrap(), metadata.recovery_code_count(account).unwrap())
}

fn life(database: &Arc<dyn Database>) {
    let mut world = World::new(database);
    let (caller, other) = (world.ada[0], world.ada[1]);
    let account = caller.account;
    let metadata = &mut *world.metadata;
    let status = |metadata: &dyn Metadata| second_factor::status(metadata, &other).unwrap();
    let random = Numbers::default();
    let confirm = |metadata: &mut dyn Metadata, shown: &Proof| {
        write(metadata, |metadata| second_factor::confirm(metadata, &random, &caller, shown, NOW))
    };
    let off = Status { state: State::Off, since: None, recovery_codes_left: 0 };
    assert_eq!(status(metadata), off);
    assert!(is_conflict(&confirm(metadata, &code(STEP))), "nothing was begun");
    write(metadata, |metadata| second_factor::begin(metadata, &caller, &SECRET, NOW)).unwrap();
    assert_eq!(status(metadata), Status { state: State::Waiting, since: Some(NOW), ..off });
    // Until the first code nobody is asked for one, whatever they show.
    for shown in [None, Some(code(STEP)), Some(Proof::Neither)] {
        assert_eq!(admit(metadata, account, shown, NOW).unwrap(), Admission::Password);
    }
    for shown in [code(STEP - 2), code(STEP + 2), Proof::Neither] {
        assert!(is_wrong(&confirm(metadata, &shown)));
    }
    assert_eq!(status(metadata).state, State::Waiting);
    let codes = turn_on(metadata, caller).unwrap();
    assert_eq!(codes.len(), RECOVERY_CODES);
    let on = Status { state: State::On, since: Some(NOW), recovery_codes_left: 10 };
    assert_eq!(status(metadata), on);
    assert!(is_conflict(&turn_on(metadata, caller)), "it is on");
    // The code that turned it on was used by that.
    assert!(is_wrong(&admit(metadata, account, Some(code(STEP)), NOW)));
    let needed = admit(metadata, account, None, NOW);
    assert!(matches!(needed, Err(ServerError::CodeNeeded)), "{needed:?}");
    let alone = second_factor::check_password_is_enough(metadata, account);
    assert!(matches!(alone, Err(ServerError::TokenNeeded)), "{alone:?}");
    // A new password leaves it, and so does it if the account is shut out for a while.
    metadata.update_account(account, "new", true).unwrap();
    metadata.update_account(account, "new", false).unwrap();
    assert_eq!(status(metadata), on);

    let end = |metadata: &mut dyn Metadata, shown: &Proof| {
        write(metadata, |metadata| second_factor::end(metadata, &other, shown, NOW))
    };
    for shown in [code(STEP), code(STEP + 2), Proof::Neither] {
        assert!(is_wrong(&end(metadata, &shown)));
    }
    assert_eq!(status(metadata), on);
    end(metadata, &code(STEP + 1)).unwrap();
    assert_eq!(status(metadata), off);
    assert!(is_conflict(&end(metadata, &code(STEP + 1))), "it is off");
    assert_eq!(admit(metadata, account, None, NOW).unwrap(), Admission::Password);
    second_factor::check_password_is_enough(metadata, account).unwrap();
}

fn steps(database: &Arc<dyn Database>) {
    let mut world = World::new(database);
    let (caller, account) = (world.ada[0], world.ada[0].account);
    let metadata = &mut *world.metadata;
    turn_on(metadata, caller).unwrap();
    let begin = |step: i64| step * STEP_SECONDS;
    let mut shown_at = |step, now| admit(metadata, account, Some(code(step)), now);
    let next = STEP + 10;
    assert!(is_wrong(&shown_at(next, begin(next) - 31)));
    assert_eq!(shown_at(next, begin(next) - 30).unwrap(), Admission::Code);
    assert!(is_wrong(&shown_at(next, begin(next))), "it was used");
    assert!(is_wrong(&shown_at(next - 1, begin(next) - 30)), "a later one was used");
    let last = STEP + 20;
    assert!(is_wrong(&shown_at(last, begin(last) + 60)));
    assert_eq!(shown_at(last, begin(last) + 59).unwrap(), Admission::Code);
    // What fails after a code was taken gives it back.
    let failing = write(metadata, |metadata| {
        let later = Some(code(STEP + 30));
        second_factor::admit(metadata, account, later.as_ref(), begin(STEP + 30))?;
        Err::<(), _>(ServerError::NotSignedIn)
    });
    assert!(matches!(failing, Err(ServerError::NotSignedIn)), "{failing:?}");
    let again = admit(metadata, account, Some(code(STEP + 30)), begin(STEP + 30));
    assert_eq!(again.unwrap(), Admission::Code);
}

fn recovery(database: &Arc<dyn Database>) {
    let mut world = World::new(database);
    let (caller, account) = (world.ada[0], world.ada[0].account);
    let metadata = &mut *world.metadata;
    let codes = turn_on(metadata, caller).unwrap();
    let shown = |n: usize| Proof::from_text(&codes[n].to_text());
    assert_eq!(admit(metadata, account, Some(shown(0)), NOW).unwrap(), Admission::Recovery);
    assert!(is_wrong(&admit(metadata, account, Some(shown(0)), NOW)));
    let foreign = Proof::Recovery(RecoveryCode::generate(&Numbers(AtomicU64::new(1 << 60))));
    assert!(is_wrong(&admit(metadata, account, Some(foreign), NOW)));
    assert_eq!(metadata.recovery_code_count(account).unwrap(), 9);
    let end = |metadata: &mut dyn Metadata, shown: Proof| {
        write(metadata, |metadata| second_factor::end(metadata, &caller, &shown, NOW))
    };
    assert!(is_wrong(&end(metadata, shown(0))));
    end(metadata, shown(1)).unwrap();
    assert_eq!(second_factor_of(metadata, account), (None, 0));
    // The codes from before open nothing that begins later.
    turn_on(metadata, caller).unwrap();
    assert_eq!(metadata.recovery_code_count(account).unwrap(), 10);
}

fn one_lets_in(database: &Arc<dyn Database>) {
    let mut world = World::new(database);
    let (caller, account) = (world.ada[0], world.ada[0].account);
    let codes = turn_on(&mut *world.metadata, caller).unwrap();
    let let_in = at_once(database, 4, |_, metadata| {
        let by_code = (1..=20).map(|round| {
            let step = STEP + 10 * round;
            (code(step), step * STEP_SECONDS)
        });
        let by_recovery = codes.iter().map(|code| (Proof::from_text(&code.to_text()), NOW));
        let enter = |(shown, now)| {
            let outcome = admit(metadata, account, Some(shown), now);
            assert!(outcome.is_ok() || is_wrong(&outcome), "{outcome:?}");
            outcome.is_ok()
        };
        by_code.chain(by_recovery).map(enter).collect::<Vec<_>>()
    });
    for round in 0..30 {
        let admitted = let_in.iter().filter(|outcomes| outcomes[round]).count();
        assert_eq!(admitted, 1, "{round}: {let_in:?}");
    }
    assert_eq!(world.metadata.recovery_code_count(account).unwrap(), 0);
}

fn confirmed(database: &Arc<dyn Database>) {
    for round in 0..10 {
        let sibling = database.sibling();
        let mut world = World::new(&sibling);
        let caller = world.ada[0];
        write(&mut *world.metadata, |metadata| {
            second_factor::begin(metadata, &caller, &SECRET, NOW)
        })
        .unwrap();
        let done = at_once(&sibling, 3, |server, metadata| {
            if server == 0 {
                let other = TotpSecret::from_bytes([9; 20]);
                let begin = |metadata: &mut dyn Metadata| {
                    second_factor::begin(metadata, &caller, &other, NOW)
                };
                return write(metadata, begin).map(drop);
            }
            let random = Numbers(AtomicU64::new(u64::from(server) << 50));
            let confirm = |metadata: &mut dyn Metadata| {
                second_factor::confirm(metadata, &random, &caller, &code(STEP), NOW)
            };
            write(metadata, confirm).map(drop)
        });
        let confirmations = done[1..].iter().filter(|outcome| outcome.is_ok()).count();
        let left = world.metadata.recovery_code_count(caller.account).unwrap();
        let kept = world.metadata.second_factor(caller.account).unwrap().unwrap();
        match confirmations {
            // The other secret was there before the code.
            0 => assert_eq!((kept.is_on, left, done[0].is_ok()), (false, 0, true), "{round}"),
            // Who was told recovery codes has a second factor with the secret that was confirmed.
            1 => assert_eq!((kept.is_on, kept.secret, left), (true, SECRET, 10), "{round}"),
            more => panic!("{round}: {more} were told recovery codes"),
        }
    }
}

fn others(database: &Arc<dyn Database>) {
    let mut world = World::new(database);
    let (ada, bob) = (world.ada[0], world.bob);
    let new = NewToken {
        name: "program".to_owned(),
        scope: Scope::Write,
        workspace: None,
        expires: None,
    };
    let random = Numbers(AtomicU64::new(1 << 40));
    let metadata = &mut *world.metadata;
    let added = write(metadata, |metadata| tokens::add(metadata, &random, &ada, &new, 0));
    let program = Caller { device: added.unwrap().0.id, ..ada };
    turn_on(metadata, ada).unwrap();
    let shown = code(STEP + 1);
    let refused: [Result<()>; 4] = [
        second_factor::status(metadata, &program).map(drop),
        write(metadata, |metadata| second_factor::begin(metadata, &program, &SECRET, NOW))
            .map(drop),
        write(metadata, |metadata| {
            second_factor::confirm(metadata, &random, &program, &shown, NOW)
        })
        .map(drop),
        write(metadata, |metadata| second_factor::end(metadata, &program, &shown, NOW)),
    ];
    for refusal in refused {
        assert!(matches!(refusal, Err(ServerError::Forbidden { .. })), "{refusal:?}");
    }
    // Nor do the codes of one account mean anything to another.
    assert_eq!(second_factor::status(metadata, &bob).unwrap().state, State::Off);
    assert_eq!(admit(metadata, bob.account, None, NOW).unwrap(), Admission::Password);
    assert_eq!(admit(metadata, ada.account, Some(shown), NOW).unwrap(), Admission::Code);
}

/// The operator removes a second factor while its person turns it on.
fn gone_with_it(database: &Arc<dyn Database>) {
    let mut world = World::new(database);
    let caller = world.ada[0];
    for round in 0..20_u64 {
        let metadata = &mut *world.metadata;
        write(metadata, |metadata| second_factor::begin(metadata, &caller, &SECRET, NOW)).unwrap();
        at_once(database, 2, |server, metadata| {
            if server == 0 {
                let delete = |metadata: &mut dyn Metadata| {
                    Ok(metadata.delete_second_factor(caller.account)?)
                };
                assert!(write(metadata, delete).unwrap(), "it waits, or is on");
                return;
            }
            let random = Numbers(AtomicU64::new((1 << 50) | (round << 32)));
            let confirm = |metadata: &mut dyn Metadata| {
                second_factor::confirm(metadata, &random, &caller, &code(STEP), NOW)
            };
            let confirmed = write(metadata, confirm).map(drop);
            assert!(confirmed.is_ok() || is_conflict(&confirmed), "{confirmed:?}");
        });
        assert_eq!(world.metadata.second_factor(caller.account), Ok(None));
        assert_eq!(world.metadata.recovery_code_count(caller.account), Ok(0), "{round}");
    }
}
