//! Hands a workspace over to other stores: what the old ones have decided, the locked keys, and last the hint that leads there.
//!
//! *Participants*: the device that exchanges the stores, any other that hears of it, and devices that know only the stores from
//! before. *Invariants*: a hint (`pool/<version>`) lies in a store only after a majority of the stores that agree then has
//! everything that was decided before them; it is left in those that have gone, too. All of it may be cut off anywhere and
//! done again, by anybody (`docs/design/agreement.md`, "Groups that change").

use std::sync::Arc;

use bytes::Bytes;
use commit_log::CommitLogError;
use commit_log::serverless::group::Membership;
use content::DeviceKeys;
use futures_util::future::join_all;
use model::codec::encode_message;
use model::{PoolHint, StoreRecord};
use storage::{ObjectKey, ObjectStore, PutMode};

use crate::connect::{Driver, coordinator};
use crate::context::Context;
use crate::error::{CommandError, Result};
use crate::folder::{Folder, Place, StoredPlace};
use crate::hints::{Said, ask_all, led_line, led_to};
use crate::interrupt::stopped;
use crate::sealed;
use crate::stores;

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
        if is_announced(folder, stored, &parts).await {
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
        announce(context, (stored, keys.as_ref()), &parts).await
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
async fn is_announced(folder: &Folder, stored: &StoredPlace, parts: &[Part]) -> bool {
    let agreeing: Vec<&Part> = agreeing(stored, parts).collect();
    let said = ask_all(agreeing.iter().copied(), &folder.genesis).await;
    let knows =
        |said: &&Said| said.newest.as_ref().is_some_and(|(version, _)| *version >= stored.version);
    said.iter().flatten().filter(knows).count() > agreeing.len() / 2
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
async fn announce(
    context: &Context<'_>,
    (stored, keys): (&StoredPlace, Option<&DeviceKeys>),
    parts: &[Part],
) -> Result<()> {
    let told = tell((stored, keys), parts).await?;
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

/// Puts the hint at the stores of a place, signed where the workspace is sealed, into stores.
async fn tell<'a>(
    (stored, keys): (&StoredPlace, Option<&DeviceKeys>),
    parts: &'a [Part],
) -> Result<Vec<(&'a Part, Option<storage::StorageError>)>> {
    let mut hint = PoolHint::plain(stored.pool.clone(), stored.since);
    if let Some(keys) = keys {
        hint = keys.sign_hint(stored.version, hint)?;
    }
    let (key, bytes) = (ObjectKey::pool(stored.version), Bytes::from(encode_message(&hint)));
    let puts = parts.iter().map(|(_, part)| part.put(&key, bytes.clone(), PutMode::Overwrite));
    let outcomes = join_all(puts).await;
    Ok(parts.iter().zip(outcomes).map(|(part, outcome)| (part, outcome.err())).collect())
}

/// Leaves the stores of a place in all of them and in `gone`, so that a new device finds the newest ones; what a store does not
/// hear the log tells.
///
/// # Errors
/// [`CommandError`] where this device has no keys to sign that with.
pub(crate) fn tell_stores(
    context: &Context<'_>,
    driver: &Driver,
    folder: &Folder,
    stored: &StoredPlace,
    gone: &[StoreRecord],
) -> Result<()> {
    let keys = sealed::keys_of_device(context, driver, folder)?;
    let mut parts = driver.within(|| parts(context, folder, stored));
    let workspace = folder.genesis.workspace();
    for record in gone {
        let part = stores::open_part(&context.home, stored, record, workspace, false);
        parts.push((record.clone(), part));
    }
    for ((record, _), error) in driver.run(tell((stored, keys.as_ref()), &parts))? {
        if let Some(error) = error {
            context.ui.note(format!("'{}' was not told: {error}", record.name));
        }
    }
    Ok(())
}

/// Looks whether each store says what the workspace has, and tells those again that do not, if that is wanted. Returns which
/// ones say something that cannot be believed.
///
/// # Errors
/// [`CommandError`] where this device has no keys to sign with.
pub(crate) fn check_hints(
    context: &Context<'_>,
    driver: &Driver,
    folder: &Folder,
    mends: bool,
) -> Result<Vec<String>> {
    let Place::Stored(stored) = &folder.place else { return Ok(Vec::new()) };
    // While the stores are exchanged, whoever completes that tells them.
    if stored.earlier.is_some() {
        return Ok(Vec::new());
    }
    let parts = driver.within(|| parts(context, folder, stored));
    let said = driver.run(ask_all(&parts, &folder.genesis));
    let (mut wrong, mut liars) = (Vec::new(), Vec::new());
    for (part, said) in parts.into_iter().zip(said) {
        let Some(said) = said else { continue };
        let name = &part.0.name;
        let refused = said.refused.or_else(|| {
            let (version, hint) = said.newest.as_ref()?;
            let is_other = *version == stored.version
                && (&hint.pool, hint.since) != (&stored.pool, stored.since);
            is_other.then(|| "it says something else than the settings".to_owned())
        });
        match (refused, said.newest) {
            (Some(reason), _) => {
                context.ui.note(format!("'{name}' is not believed about the stores: {reason}"));
                liars.push(name.clone());
            }
            (None, Some((version, _))) if version >= stored.version => continue,
            (None, _) => context.ui.note(format!("'{name}' does not lead to all stores")),
        }
        wrong.push(part);
    }
    if wrong.is_empty() {
        return Ok(liars);
    }
    if !mends {
        context.ui.note("`syncline check --repair` tells it again which stores there are");
        return Ok(liars);
    }
    let keys = sealed::keys_of_device(context, driver, folder)?;
    for ((record, _), error) in driver.run(tell((stored, keys.as_ref()), &wrong))? {
        let told =
            error.map_or("was told again".to_owned(), |error| format!("was not told: {error}"));
        context.ui.note(format!("'{}' {told}", record.name));
    }
    Ok(liars)
}

/// Looks whether one of the stores that answer leads to other ones than those which this device knows.
pub(crate) fn newer_place(
    context: &Context<'_>,
    driver: &Driver,
    folder: &Folder,
) -> Option<StoredPlace> {
    let Place::Stored(stored) = &folder.place else { return None };
    let parts = driver.within(|| parts(context, folder, stored));
    let said = driver.run(ask_all(&parts, &folder.genesis));
    for ((record, _), said) in parts.iter().zip(&said) {
        if let Some(reason) = said.as_ref().and_then(|said| said.refused.as_ref()) {
            context
                .ui
                .note(format!("'{}' is not believed about the stores: {reason}", record.name));
        }
    }
    let newest = parts.iter().zip(said).filter_map(|(part, said)| Some((&part.0, said?.newest?)));
    let (teller, (version, hint)) = newest.max_by_key(|(_, (version, _))| *version)?;
    let signer = hint.seal.as_ref().map(|seal| seal.device);
    let place = led_to(stored, version, hint)?;
    let others: Vec<&StoreRecord> =
        place.pool.stores.iter().filter(|store| stored.pool.store(store.id).is_none()).collect();
    if !others.is_empty() {
        context.ui.note(led_line(std::slice::from_ref(&teller.name), &others, signer));
    }
    Some(place)
}
