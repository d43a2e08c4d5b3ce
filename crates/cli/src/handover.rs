//! Hands a workspace over to other stores: what the old ones have decided, the locked keys, and last the hint that leads there.
//!
//! *Participants*: the device that exchanges the stores, any other that hears of it, and devices that know only the stores from
//! before. *Invariants*: a hint (`pool/<version>`) lies in a store only after a majority of the stores that agree then has
//! everything that was decided before them; it is left in those that have gone, too. All of it may be cut off anywhere and
//! done again, by anybody (`docs/design/agreement.md`, "Groups that change").

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use commit_log::CommitLogError;
use commit_log::serverless::group::Membership;
use futures_util::future::join_all;
use model::codec::encode_message;
use model::{PoolHint, StoreRecord};
use storage::{ObjectKey, ObjectStore, PutMode};

use crate::connect::{Driver, coordinator};
use crate::context::Context;
use crate::error::{CommandError, Result};
use crate::folder::{Folder, Place, StoredPlace};
use crate::interrupt::stopped;
use crate::sealed;
use crate::stores;
use crate::workspaces::newest_hint;

/// How long a store is waited for that may have a hint.
const HINT_PATIENCE: Duration = Duration::from_secs(10);

type Part = (StoreRecord, Arc<dyn ObjectStore>);

/// Returns the parts of all stores that matter, those that have left, too.
fn parts(context: &Context<'_>, folder: &Folder, stored: &StoredPlace) -> Vec<Part> {
    let workspace = folder.genesis.workspace();
    let open = |record: StoreRecord| {
        let part = stores::open_part(&context.home, stored, &record, workspace, false);
        (record, part)
    };
    stored.all_stores().into_iter().map(open).collect()
}

async fn hint_in(part: &Part) -> Result<Option<(u64, PoolHint)>> {
    match tokio::time::timeout(HINT_PATIENCE, newest_hint(&*part.1)).await {
        Ok(found) => found,
        Err(_) => Ok(None),
    }
}

/// Carries over what a change of the stores that agree has left to be done, if it has, and tells all stores. What lies behind
/// `after` is all that remains.
///
/// # Errors
/// [`CommandError`]; to do it again goes on.
pub(crate) fn complete(
    context: &Context<'_>,
    driver: &Driver,
    folder: &Folder,
    after: u64,
) -> Result<()> {
    let Place::Stored(stored) = &folder.place else { return Ok(()) };
    if stored.earlier.is_none() {
        return Ok(());
    }
    let keys = sealed::keys_of_device(context, driver, folder)?;
    let reached = driver.within(|| coordinator(context, folder, keys.as_ref()))?;
    let (Some(log), Some(membership)) = (reached.slots, reached.membership) else { return Ok(()) };
    let mut parts = driver.within(|| parts(context, folder, stored));
    let work = async {
        if is_announced(stored, &parts).await {
            // Who did this may have been cut off before the last of them heard; those that have left may be somebody else's.
            parts.retain(|(record, _)| stored.pool.store(record.id).is_some());
        } else {
            let heirs =
                membership.newest().ok_or(CommitLogError::GroupChanged { seq: stored.since })?;
            log.carry_over(&heirs, after, stored.since).await?;
        }
        if folder.genesis.mode.sealed().is_some() {
            share_keys(stored, &parts).await?;
        }
        announce(context, stored, &parts).await
    };
    driver.run(async {
        tokio::select! {
            done = work => done,
            code = driver.interrupts().wait() => Err(stopped(code, "syncline sync")),
        }
    })?;
    // Another process may have heard of yet other stores meanwhile.
    let mut newest = Folder::locate(&context.home, &folder.root)?;
    if let Place::Stored(known) = &newest.place
        && known.version == stored.version
        && known.earlier.is_some()
    {
        let place = Place::Stored(StoredPlace { earlier: None, ..known.clone() });
        newest.set_place(place)?;
    }
    Ok(())
}

/// Tells whether a majority of the stores that agree leads here already: then everything was carried over.
async fn is_announced(stored: &StoredPlace, parts: &[Part]) -> bool {
    let agreeing: Vec<&Part> = agreeing(stored, parts).collect();
    let found = join_all(agreeing.iter().map(|part| hint_in(part))).await;
    let knows = |hint: &Result<Option<(u64, PoolHint)>>| matches!(hint, Ok(Some((version, _))) if *version >= stored.version);
    found.iter().filter(|hint| knows(hint)).count() > agreeing.len() / 2
}

fn agreeing<'a>(stored: &'a StoredPlace, parts: &'a [Part]) -> impl Iterator<Item = &'a Part> {
    let agrees = |part: &&Part| stored.pool.store(part.0.id).is_some_and(|store| store.agrees);
    parts.iter().filter(agrees)
}

/// Gives the newest locked keys to every store that does not have them.
async fn share_keys(stored: &StoredPlace, parts: &[Part]) -> Result<()> {
    let all = parts.iter().map(|(_, part)| part.clone()).collect();
    let keys = sealed::newest_keys(&all).await?;
    let (key, bytes) = (ObjectKey::keys(keys.generation()), Bytes::from(keys.to_bytes()));
    let joined = parts.iter().filter(|(record, _)| stored.pool.store(record.id).is_some());
    let puts = joined.map(|(_, part)| part.put(&key, bytes.clone(), PutMode::IfAbsent));
    // A store that is away is no reason to stop: every other one has them.
    let done = join_all(puts).await.iter().filter(|put| put.is_ok()).count();
    match done {
        0 => Err(CommandError::new(
            crate::error::Code::StoreUnreachable,
            "no store took the keys of the workspace",
        )),
        _ => Ok(()),
    }
}

/// Leaves the stores of a place in all of them, and in those that were before: a majority of those that agree must know.
async fn announce(context: &Context<'_>, stored: &StoredPlace, parts: &[Part]) -> Result<()> {
    let told = tell(stored, parts).await;
    let mut reasons = Vec::new();
    for ((record, _), error) in &told {
        let error = error.as_ref().map(ToString::to_string);
        reasons.extend(error.map(|error| format!("{}: {error}", record.name)));
    }
    let is_missing = |(part, error): &&(&Part, Option<storage::StorageError>)| {
        error.is_some() && stored.pool.store(part.0.id).is_some_and(|store| store.agrees)
    };
    let (missing, count) =
        (told.iter().filter(is_missing).count(), agreeing(stored, parts).count());
    if missing * 2 >= count {
        let place = format!("{missing} of {count} stores");
        return Err(CommitLogError::Unreachable { place, reason: reasons.join("; ") }.into());
    }
    for reason in reasons {
        context.ui.note(format!("not told of the other stores: {reason}"));
    }
    Ok(())
}

async fn tell<'a>(
    stored: &StoredPlace,
    parts: &'a [Part],
) -> Vec<(&'a Part, Option<storage::StorageError>)> {
    let hint = PoolHint { pool: stored.pool.clone(), since: stored.since };
    let (key, bytes) = (ObjectKey::pool(stored.version), Bytes::from(encode_message(&hint)));
    let puts = parts.iter().map(|(_, part)| part.put(&key, bytes.clone(), PutMode::Overwrite));
    let outcomes = join_all(puts).await;
    parts.iter().zip(outcomes).map(|(part, outcome)| (part, outcome.err())).collect()
}

/// Leaves the stores of a place in all of them and in `gone`, so that a new device finds the newest ones; what a store does not
/// hear the log tells.
pub(crate) fn tell_stores(
    context: &Context<'_>,
    driver: &Driver,
    folder: &Folder,
    stored: &StoredPlace,
    gone: &[StoreRecord],
) {
    let mut parts = driver.within(|| parts(context, folder, stored));
    let workspace = folder.genesis.workspace();
    for record in gone {
        let part = stores::open_part(&context.home, stored, record, workspace, false);
        parts.push((record.clone(), part));
    }
    for ((record, _), error) in driver.run(tell(stored, &parts)) {
        if let Some(error) = error {
            context.ui.note(format!("'{}' was not told: {error}", record.name));
        }
    }
}

/// Looks whether one of the stores that answer leads to other ones than those which this device knows.
pub(crate) fn newer_place(
    context: &Context<'_>,
    driver: &Driver,
    folder: &Folder,
) -> Option<StoredPlace> {
    let Place::Stored(stored) = &folder.place else { return None };
    let parts = driver.within(|| parts(context, folder, stored));
    let found = driver.run(join_all(parts.iter().map(hint_in)));
    let newest = found.into_iter().flatten().flatten().max_by_key(|(version, _)| *version);
    let (version, hint) = newest?;
    led_to(stored, version, hint)
}

/// Returns the place to which a hint leads, if that is a newer one.
pub(crate) fn led_to(stored: &StoredPlace, version: u64, hint: PoolHint) -> Option<StoredPlace> {
    let PoolHint { pool, since } = hint;
    let is_newer =
        version > stored.version || (version == stored.version && stored.earlier.is_some());
    is_newer.then(|| {
        let mut stand = stored.stand();
        (stand.version, stand.pool, stand.since, stand.earlier) = (version, pool, since, None);
        stored.after(stand)
    })
}
