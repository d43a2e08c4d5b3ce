//! What the stores of a workspace say about all of them, in the objects `pool/<version>`: read, checked, and weighed.
//!
//! *Participants*: a new device, which knows one store or a few; a device that has lost the stores which it knew; and stores, of
//! which some may lie. *Goals*: in a sealed workspace nothing is followed that no device of it has signed; in a plain one, where
//! nobody can tell, the stores that the user named are weighed against each other; either way the user reads who led where, and
//! who said otherwise. *Non-goals*: that the newest is found. The log knows it, and has the last word.
//! *Invariants*: before its hint was checked, no store that a hint names is asked for anything; before a secret has opened the
//! keys of the workspace, none gets any credentials of this home.

use std::sync::Arc;
use std::time::Duration;

use content::check_hint;
use futures_util::future::join_all;
use model::codec::{DecodeError, decode_message};
use model::{DeviceId, Genesis, PoolHint, StoreRecord};
use serde_json::json;
use storage::object_store::list_all;
use storage::{ObjectEntry, ObjectKey, ObjectStore};

use crate::context::Context;
use crate::error::{Code, CommandError, Result};
use crate::folder::{Folder, Place, StoredPlace};
use crate::stores;
use crate::ui::Symbol;
use crate::workspaces::Found;

/// How long a store is waited for that may have a hint.
const PATIENCE: Duration = Duration::from_secs(10);

/// The longest hint that is looked at, in bytes: that of as many stores as there may be, each with the longest address.
const HINT_LENGTH_MAX: u64 = 64 << 10;

/// How many hints of one store are looked at until one is good.
const HINTS_MAX: usize = 16;

/// How often a newer hint is followed to yet other stores.
const FOLLOWED_MAX: u32 = 8;

/// A store of a workspace, restricted to it.
type Part = (StoreRecord, Arc<dyn ObjectStore>);

/// What one store says.
#[derive(Debug, Clone, Default)]
pub(crate) struct Said {
    /// The newest that can be believed, with its version.
    pub(crate) newest: Option<(u64, PoolHint)>,
    /// What is wrong with a newer one.
    pub(crate) refused: Option<String>,
}

/// Asks a store which stores the workspace has.
///
/// # Errors
/// [`Code::Newer`]; those of the store.
pub(crate) async fn ask(inside: &dyn ObjectStore, genesis: &Genesis) -> Result<Said> {
    let mut listed = list_all(inside, ObjectKey::POOL).await?;
    listed.sort_by(|one, other| other.key.cmp(&one.key));
    let mut said = Said::default();
    for entry in listed.iter().take(HINTS_MAX) {
        match read(inside, entry, genesis).await? {
            Ok(hint) => {
                said.newest = Some(hint);
                break;
            }
            Err(reason) => {
                said.refused.get_or_insert(reason);
            }
        }
    }
    Ok(said)
}

/// Reads a hint; where it cannot be believed, says why.
async fn read(
    inside: &dyn ObjectStore,
    entry: &ObjectEntry,
    genesis: &Genesis,
) -> Result<Result<(u64, PoolHint), String>> {
    let number =
        entry.key.as_str().strip_prefix(ObjectKey::POOL).and_then(|name| name.parse().ok());
    let Some(version) = number.filter(|version| ObjectKey::pool(*version) == entry.key) else {
        return Ok(Err(format!("'{}' is no version", entry.key)));
    };
    if entry.size > HINT_LENGTH_MAX {
        return Ok(Err(format!("what it says is too long, {} bytes", entry.size)));
    }
    let Some(bytes) = inside.get(&entry.key).await? else {
        return Ok(Err("what it lists is not there".to_owned()));
    };
    Ok(match decode_message::<PoolHint>(&bytes) {
        // That is no lie, and nothing to be written anew by this version.
        Err(error @ DecodeError::NewerVersion { .. }) => {
            let headline = "which stores there are was written by a newer version of Syncline";
            return Err(CommandError::new(Code::Newer, headline)
                .cause(error)
                .state("nothing was changed"));
        }
        Err(error) => Err(format!("what it says is damaged: {error}")),
        Ok(hint) => match check_hint(genesis, version, &hint) {
            Err(_) if hint.seal.is_none() => Err("nobody has signed what it says".to_owned()),
            Err(_) => Err("no device of the workspace has signed what it says".to_owned()),
            Ok(()) => Ok((version, hint)),
        },
    })
}

/// Asks several stores at once; of one that does not answer there is nothing.
pub(crate) async fn ask_all<'a>(
    parts: impl IntoIterator<Item = &'a Part>,
    genesis: &Genesis,
) -> Vec<Option<Said>> {
    let ask = |(_, part): &'a Part| async {
        let asked = tokio::time::timeout(PATIENCE, ask(&**part, genesis)).await;
        asked.ok().and_then(Result::ok)
    };
    join_all(parts.into_iter().map(ask)).await
}

/// To which stores somebody is led, and by whom.
#[derive(Debug)]
pub(crate) struct Led {
    /// The version of the settings.
    pub(crate) version: u64,
    /// The stores.
    pub(crate) hint: PoolHint,
    /// The stores that say so.
    pub(crate) by: Vec<String>,
    /// What else was said, and by whom.
    pub(crate) doubts: Vec<String>,
}

/// What one store says that can be believed.
struct Answer<'a> {
    store: &'a str,
    version: u64,
    hint: &'a PoolHint,
}

impl Answer<'_> {
    /// Tells whether another one says the same, whoever has signed it.
    fn says_as(&self, other: &Answer<'_>) -> bool {
        let (one, other_hint) = (self.hint, other.hint);
        self.version == other.version
            && one.pool == other_hint.pool
            && one.since == other_hint.since
    }
}

/// Weighs what stores say, each under its name. In a sealed workspace everything that counts was signed, so the newest is
/// followed; in a plain one what more than half of them say, and the newest only where they do not agree.
///
/// # Errors
/// [`Code::HintRefused`] where stores of a sealed workspace say something, and nothing that can be believed;
/// [`Code::LogDamaged`] where nobody says anything.
pub(crate) fn weigh<'a>(genesis: &Genesis, said: &'a [(String, Said)]) -> Result<Led> {
    let answer = |(name, said): &'a (String, Said)| {
        said.newest.as_ref().map(|(version, hint)| Answer { store: name, version: *version, hint })
    };
    let answers: Vec<Answer<'_>> = said.iter().filter_map(answer).collect();
    let is_plain = genesis.mode.sealed().is_none();
    let rank = |answer: &&Answer<'_>| {
        let count = answers.iter().filter(|other| answer.says_as(other)).count();
        (is_plain && count * 2 > answers.len(), answer.version, count)
    };
    let refused = |(name, said): &(String, Said)| {
        said.refused.as_ref().map(|reason| format!("'{name}' is not believed: {reason}"))
    };
    let mut doubts: Vec<String> = said.iter().filter_map(refused).collect();
    let Some(chosen) = answers.iter().max_by_key(rank) else {
        return Err(nothing_to_follow(genesis, doubts));
    };
    let mut by = Vec::new();
    for answer in &answers {
        let name = answer.store;
        if answer.says_as(chosen) {
            by.push(name.to_owned());
        } else if answer.version < chosen.version {
            doubts.push(format!("'{name}' tells of older stores than those that are followed"));
        } else {
            let stores = listed(&answer.hint.pool.stores.iter().collect::<Vec<_>>());
            doubts.push(format!("'{name}' says otherwise, and is not followed: {stores}"));
        }
    }
    Ok(Led { version: chosen.version, hint: chosen.hint.clone(), by, doubts })
}

fn nothing_to_follow(genesis: &Genesis, doubts: Vec<String>) -> CommandError {
    let nothing = "no store says which stores the workspace has";
    let error = match genesis.mode.sealed() {
        Some(_) if !doubts.is_empty() => refused(&doubts),
        _ if doubts.is_empty() => CommandError::new(Code::LogDamaged, nothing),
        _ => CommandError::new(Code::LogDamaged, nothing).cause(doubts.join("; ")),
    };
    error
        .state("nothing was changed, and no other store was asked")
        .help("--backend NAME=URL", "names another of its stores; one that is whole leads to all")
}

/// Says that what stores lead to was not signed by a device of the workspace.
pub(crate) fn refused(doubts: &[String]) -> CommandError {
    let headline = "which stores the workspace has, no device of it has said";
    CommandError::new(Code::HintRefused, headline).cause(doubts.join("; ")).help(
        "syncline check --repair",
        "on a device that has the workspace, tells its stores anew",
    )
}

/// Returns the place to which a hint leads, if that is a newer one.
pub(crate) fn led_to(stored: &StoredPlace, version: u64, hint: PoolHint) -> Option<StoredPlace> {
    let PoolHint { pool, since, .. } = hint;
    let is_newer =
        version > stored.version || (version == stored.version && stored.earlier.is_some());
    is_newer.then(|| {
        let mut stand = stored.stand();
        (stand.version, stand.pool, stand.since, stand.earlier) = (version, pool, since, None);
        stored.after(stand)
    })
}

/// Follows the hints of a sealed workspace whose keys are open: from the stores that a user named to all of them, and to others
/// where one knows newer ones.
pub(crate) async fn follow(context: &Context<'_>, found: &mut Found) {
    let workspace = found.genesis.workspace();
    for _ in 0..FOLLOWED_MAX {
        let parts = stores::open_pool(&context.home, &found.place, workspace);
        let said = ask_all(&parts, &found.genesis).await;
        let mut newest: Option<(&str, u64, &PoolHint)> = None;
        for ((record, _), said) in parts.iter().zip(&said) {
            let Some(said) = said else { continue };
            let is_named = found.has_named(record.id);
            if let Some(reason) = said.refused.as_ref().filter(|_| !is_named) {
                let doubt = format!("'{}' is not believed: {reason}", record.name);
                if !found.led.doubts.contains(&doubt) {
                    found.led.doubts.push(doubt);
                }
            }
            if let Some((version, hint)) = &said.newest
                && *version > newest.map_or(found.place.version, |(_, version, _)| version)
            {
                newest = Some((&record.name, *version, hint));
            }
        }
        let Some((name, version, hint)) = newest else { return };
        let Some(place) = led_to(&found.place, version, hint.clone()) else { return };
        found.place = place;
        (found.led.version, found.led.hint) = (version, hint.clone());
        found.led.by = vec![name.to_owned()];
    }
}

/// Takes the stores that this device knows already, by another folder of the same workspace, where these are newer.
///
/// # Errors
/// [`Code::File`].
pub(crate) fn prefer_known(context: &Context<'_>, found: &mut Found) -> Result<()> {
    for folder in Folder::all(&context.home)? {
        let Place::Stored(known) = folder.place else { continue };
        let is_same = folder.genesis.workspace() == found.genesis.workspace();
        if !is_same || known.version <= found.place.version {
            continue;
        }
        found.led.doubts.push(format!(
            "{} older stores than this device knows; these are taken",
            speaking(&found.led.by, "tells of", "tell of")
        ));
        let mut addresses = known.addresses.clone();
        addresses.append(&mut found.place.addresses);
        addresses.retain(|id, _| known.pool.store(*id).is_some());
        found.place = StoredPlace { addresses, ..known };
    }
    Ok(())
}

/// Tells a user to which stores which ones led, and what others said.
pub(crate) fn tell(context: &Context<'_>, found: &Found) {
    let (place, led) = (&found.place, &found.led);
    for doubt in &led.doubts {
        context.ui.note(doubt);
    }
    let signer = led.hint.seal.as_ref().map(|seal| seal.device);
    let stores: Vec<_> = place
        .pool
        .stores
        .iter()
        .map(|store| {
            let is_named = found.has_named(store.id);
            json!({"name": store.name, "url": place.url(store), "is_named": is_named})
        })
        .collect();
    context.ui.json(&json!({
        "schema": "syncline.clone/1",
        "type": "led",
        "by": led.by,
        "signed_by": signer.map(|device| device.to_string()),
        "stores": stores,
    }));
    let others: Vec<&StoreRecord> =
        place.pool.stores.iter().filter(|store| !found.has_named(store.id)).collect();
    if !others.is_empty() {
        context.ui.say(Symbol::Received, led_line(&led.by, &others, signer));
    }
}

/// Says who led where, and who vouches for it.
pub(crate) fn led_line(by: &[String], stores: &[&StoreRecord], signer: Option<DeviceId>) -> String {
    let vouched = match signer {
        Some(device) => format!("signed by device {device}"),
        None => "for which nobody vouches in a workspace that is not encrypted".to_owned(),
    };
    format!("{} {}, {vouched}", speaking(by, "leads to", "lead to"), listed(stores))
}

fn speaking(by: &[String], one: &str, several: &str) -> String {
    let names: Vec<String> = by.iter().map(|name| format!("'{name}'")).collect();
    format!("{} {}", names.join(", "), if by.len() == 1 { one } else { several })
}

fn listed(stores: &[&StoreRecord]) -> String {
    let texts: Vec<String> = stores
        .iter()
        .map(|store| format!("'{}' ({})", store.name.escape_debug(), store.url.escape_debug()))
        .collect();
    texts.join(", ")
}

#[cfg(test)]
mod tests;
