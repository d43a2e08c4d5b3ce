//! Workspaces in stores: where they lie, and how they are found by name.
//!
//! | key in each store of the pool | object |
//! |---|---|
//! | `workspaces/<id>/…` | the workspace, laid out as `storage::key` says |
//! | `names/<blake3 of the name>` | two lines, the id and the name; created only if absent, so a name has one owner |
//! | `names/<blake3 of the id>` | one line, the id of a sealed workspace, whose name stands nowhere |
//!
//! The workspace is complete before its name is taken: one that lost the race for its name is removed again. Any one of
//! the stores leads to the others, because each holds the pool; the log knows a newer one, if there is one.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use content::{DeviceKeys, KeyObject};
use futures_util::future::{join_all, try_join_all};
use model::codec::{decode_message, encode_message};
use model::{Genesis, PoolConfig, PoolHint, StoreId, StoreRecord, WorkspaceId};
use storage::object_store::list_all;
use storage::{ObjectKey, ObjectStore, PutMode, PutOutcome};

use crate::error::{Code, CommandError, Result};
use crate::folder::StoredPlace;
use crate::hints::{self, Led};
use crate::sealed;
use crate::stores::{Backend, workspace_store};

const NAMES: &str = "names/";

/// A store of a pool that is being made, whole.
pub(crate) type NewStore = (StoreRecord, Arc<dyn ObjectStore>);

/// Makes a workspace in all stores of a pool and gives it its name there.
///
/// # Errors
/// [`Code::Taken`] where a store has one of this name; those of the stores.
pub(crate) async fn create_workspace(
    stores: &[NewStore],
    pool: &PoolConfig,
    genesis: &Genesis,
    keys: Option<(&KeyObject, &DeviceKeys)>,
) -> Result<()> {
    let (key, text) = entry_of(genesis);
    let mut hint = PoolHint::plain(pool.clone(), 0);
    if let Some((_, device)) = keys {
        hint = device.sign_hint(0, hint)?;
    }
    let hint = Bytes::from(encode_message(&hint));
    for (_, store) in stores {
        if store.get(&key).await?.is_some() {
            return Err(taken(&genesis.name));
        }
    }
    let id = genesis.workspace();
    // A workspace that can be found can be opened.
    if let Some((keys, _)) = keys {
        sealed::put_keys(&sealed::stores_of_pool(stores, id), keys).await?;
    }
    let found = try_join_all(stores.iter().map(|(record, store)| async {
        found_store(store, record.identity(), genesis).await?;
        let inside = workspace_store(store.clone(), id);
        inside.put(&ObjectKey::pool(0), hint.clone(), PutMode::IfAbsent).await?;
        Ok::<_, CommandError>(())
    }));
    found.await?;
    let name = |(_, store): &NewStore| {
        let (store, key, text) = (store.clone(), key.clone(), text.clone());
        async move { store.put(&key, text, PutMode::IfAbsent).await }
    };
    let outcomes = join_all(stores.iter().map(name)).await;
    let is_named =
        |outcome: &storage::Result<PutOutcome>| matches!(outcome, Ok(PutOutcome::Written));
    if outcomes.iter().all(is_named) {
        return Ok(());
    }
    for ((_, store), outcome) in stores.iter().zip(&outcomes) {
        let inside = workspace_store(store.clone(), id);
        for key in [ObjectKey::pool(0), ObjectKey::store_id(), ObjectKey::genesis()] {
            inside.delete(&key).await?;
        }
        if is_named(outcome) {
            store.delete(&key).await?;
        }
    }
    match outcomes.into_iter().find_map(std::result::Result::err) {
        Some(error) => Err(error.into()),
        None => Err(taken(&genesis.name)),
    }
}

/// Writes into a store what it needs to belong to a workspace: the genesis, and which store it is. What leads from it to the
/// others follows when it is one of them.
///
/// # Errors
/// [`Code::Taken`] where it is another store of this workspace already; those of the store.
pub(crate) async fn found_store(
    store: &Arc<dyn ObjectStore>,
    identity: StoreId,
    genesis: &Genesis,
) -> Result<()> {
    let inside = workspace_store(store.clone(), genesis.workspace());
    let put = |key, bytes: Bytes| {
        let inside = inside.clone();
        async move { inside.put(&key, bytes, PutMode::IfAbsent).await }
    };
    put(ObjectKey::genesis(), encode_message(genesis).into()).await?;
    put(ObjectKey::store_id(), identity.to_string().into()).await?;
    if store_identity(&*inside).await? != Some(identity) {
        let headline = format!("the {} is in the pool of this workspace already", store.describe());
        return Err(CommandError::new(Code::Taken, headline).state("nothing was changed"));
    }
    Ok(())
}

/// Lets a workspace be found by its name in a store that joins it; false where the name belongs to another one there.
///
/// # Errors
/// Those of the store.
pub(crate) async fn name_store(store: &Arc<dyn ObjectStore>, genesis: &Genesis) -> Result<bool> {
    let (key, text) = entry_of(genesis);
    let outcome = store.put(&key, text.clone(), PutMode::IfAbsent).await?;
    Ok(outcome == PutOutcome::Written || store.get(&key).await? == Some(text))
}

/// Returns which store of a workspace this says that it is, if it is one.
///
/// # Errors
/// Those of the store.
pub(crate) async fn store_identity(inside: &dyn ObjectStore) -> storage::Result<Option<StoreId>> {
    let text = inside.get(&ObjectKey::store_id()).await?;
    Ok(text.and_then(|text| identity_in(&text)))
}

/// Reads what says which store one is; nothing where it is damaged.
pub(crate) fn identity_in(text: &[u8]) -> Option<StoreId> {
    std::str::from_utf8(text).ok()?.trim().parse().ok()
}

/// A workspace that was found in stores.
#[derive(Debug)]
pub(crate) struct Found {
    /// What it began with.
    pub(crate) genesis: Genesis,
    /// All its stores.
    pub(crate) place: StoredPlace,
    /// Which of them the user named, under which names.
    pub(crate) named: BTreeMap<String, StoreId>,
    /// Who says so.
    pub(crate) led: Led,
}

impl Found {
    /// Tells whether the user named a store of the workspace.
    pub(crate) fn has_named(&self, store: StoreId) -> bool {
        self.named.values().any(|named| *named == store)
    }
}

/// Finds a workspace by its name or id in one of some stores that a user named, and with it all its stores. Whether the genesis
/// of a sealed one is that of the user, nobody knows until a secret opens its keys.
///
/// # Errors
/// [`Code::NoSuchWorkspace`]; [`Code::LogDamaged`]; [`Code::HintRefused`]; those of the stores, where none that answers has it.
pub(crate) async fn find_workspace(
    backends: &[(Backend, Arc<dyn ObjectStore>)],
    text: &str,
) -> Result<Found> {
    let mut failure = None;
    let mut genesis = None;
    for (_, store) in backends {
        match find_genesis(store, text).await {
            Ok(Some(found)) => {
                genesis = Some(found);
                break;
            }
            Ok(None) => {}
            Err(error) => failure = Some(error),
        }
    }
    let Some(genesis) = genesis else {
        return Err(match failure {
            Some(failure) => failure,
            None => not_there(backends, text).await?,
        });
    };
    let mut reached = Vec::new();
    let (mut said, mut failures) = (Vec::new(), Vec::new());
    for (backend, store) in backends {
        let inside = workspace_store(store.clone(), genesis.workspace());
        // A store that is away now is as good as one that was not named.
        let Ok(Some(identity)) = store_identity(&*inside).await else { continue };
        reached.push((backend, identity));
        match hints::ask(&*inside, &genesis).await {
            Ok(answer) => said.push((backend.name.clone(), answer)),
            Err(error) => failures.push((&backend.name, error)),
        }
    }
    if said.is_empty()
        && let Some((_, failure)) = failures.pop()
    {
        return Err(failure);
    }
    let mut led = hints::weigh(&genesis, &said)?;
    let (version, pool, since) = (led.version, led.hint.pool.clone(), led.hint.since);
    let Recognised { addresses, named, impostors } = recognise(&pool, &reached);
    led.doubts.extend(impostors);
    let failure = |(name, error): (&String, CommandError)| format!("'{name}': {}", error.headline);
    led.doubts.extend(failures.into_iter().map(failure));
    let place = StoredPlace { addresses, version, since, ..StoredPlace::first(pool) };
    Ok(Found { genesis, place, named, led })
}

/// Which stores of a pool a user has named.
struct Recognised {
    /// Those that are reached elsewhere than the pool says.
    addresses: BTreeMap<StoreId, String>,
    /// Under which names.
    named: BTreeMap<String, StoreId>,
    /// What to say of those that say that they are another one.
    impostors: Vec<String>,
}

/// Recognises stores by what they say that they are. Of two that say the same only one can be it: the one where the pool says that
/// it is, else the first. So no store that lies gets the place of another one that was named, or its secrets.
fn recognise(pool: &PoolConfig, reached: &[(&Backend, StoreId)]) -> Recognised {
    let (mut addresses, mut named) = (BTreeMap::new(), BTreeMap::new());
    let mut impostors = Vec::new();
    for (backend, identity) in reached {
        let record = pool.identified(*identity);
        let mut same = reached.iter().filter(|(_, other)| other == identity);
        let is_home = |(other, _): &&(&Backend, StoreId)| {
            record.is_some_and(|record| record.url == other.url)
        };
        let rightful = same.clone().find(is_home).or_else(|| same.next());
        if let Some((other, _)) = rightful.filter(|(other, _)| other.name != backend.name) {
            let (name, other) = (&backend.name, &other.name);
            impostors.push(format!(
                "'{name}' says that it is the same store as '{other}'; it is not taken for it"
            ));
            let there = pool.stores.iter().find(|record| record.url == backend.url);
            named.extend(there.map(|record| (name.clone(), record.id)));
            continue;
        }
        named.insert(backend.name.clone(), record.map_or(*identity, |record| record.id));
        if let Some(record) = record.filter(|record| record.url != backend.url) {
            addresses.insert(record.id, backend.url.clone());
        }
    }
    Recognised { addresses, named, impostors }
}

async fn find_genesis(store: &Arc<dyn ObjectStore>, text: &str) -> Result<Option<Genesis>> {
    let named = store.get(&name_key(text)).await?;
    let named = named.and_then(|bytes| parse_name(&bytes)).map(|(id, _)| id);
    let Some(id) = named.or_else(|| text.parse::<WorkspaceId>().ok()) else { return Ok(None) };
    let inside = workspace_store(store.clone(), id);
    let Some(bytes) = inside.get(&ObjectKey::genesis()).await? else { return Ok(None) };
    match decode_message::<Genesis>(&bytes) {
        Ok(genesis) if genesis.workspace() == id => Ok(Some(genesis)),
        Ok(_) => Err(damaged("the workspace in the store is another than its id says")),
        Err(error) => {
            Err(damaged("what the workspace began with cannot be read").cause(error.to_string()))
        }
    }
}

fn damaged(headline: &str) -> CommandError {
    CommandError::new(Code::LogDamaged, headline).state("nothing was changed")
}

async fn not_there(
    backends: &[(Backend, Arc<dyn ObjectStore>)],
    text: &str,
) -> Result<CommandError> {
    let mut names = Vec::new();
    for (_, store) in backends {
        names.extend(workspace_names(store).await?);
    }
    names.sort();
    names.dedup();
    let error = CommandError::new(
        Code::NoSuchWorkspace,
        format!("the store has no workspace called '{text}'"),
    );
    Ok(if names.is_empty() {
        error.help("syncline init --backend NAME=URL", "makes one")
    } else {
        error.cause(format!("it has: {}", names.join(", ")))
    })
}

/// Returns the sealed workspaces in some stores that a user named: nobody can tell which is which without opening them.
///
/// # Errors
/// Those of the stores, where none answers.
pub(crate) async fn sealed_workspaces(
    backends: &[(Backend, Arc<dyn ObjectStore>)],
) -> Result<Vec<Genesis>> {
    let mut found: BTreeMap<WorkspaceId, Genesis> = BTreeMap::new();
    for (_, store) in backends {
        for entry in list_all(&**store, NAMES).await? {
            let bytes = store.get(&entry.key).await?.unwrap_or_default();
            let Some(id) = parse_id(&bytes).filter(|id| !found.contains_key(id)) else { continue };
            let Some(genesis) = find_genesis(store, &id.to_string()).await? else { continue };
            found.insert(id, genesis);
        }
    }
    Ok(found.into_values().collect())
}

/// Returns the names of the workspaces in a store.
///
/// # Errors
/// Those of the store.
async fn workspace_names(store: &Arc<dyn ObjectStore>) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in list_all(&**store, NAMES).await? {
        let bytes = store.get(&entry.key).await?.unwrap_or_default();
        names.extend(parse_name(&bytes).map(|(_, name)| name));
    }
    Ok(names)
}

fn name_key(name: &str) -> ObjectKey {
    let hash = blake3::hash(name.as_bytes()).to_hex();
    ObjectKey::new(&format!("{NAMES}{hash}")).expect("a hash is a segment of a key")
}

/// Returns under which key a workspace is found, and what stands there.
fn entry_of(genesis: &Genesis) -> (ObjectKey, Bytes) {
    let id = genesis.workspace().to_string();
    match genesis.mode.sealed() {
        None => (name_key(&genesis.name), format!("{id}\n{}\n", genesis.name).into()),
        Some(_) => (name_key(&id), format!("{id}\n").into()),
    }
}

fn parse_id(bytes: &[u8]) -> Option<WorkspaceId> {
    std::str::from_utf8(bytes).ok()?.strip_suffix('\n')?.parse().ok()
}

fn parse_name(bytes: &[u8]) -> Option<(WorkspaceId, String)> {
    let text = std::str::from_utf8(bytes).ok()?;
    let (id, name) = text.trim_end_matches('\n').split_once('\n')?;
    Some((id.parse().ok()?, name.to_owned()))
}

fn taken(name: &str) -> CommandError {
    let quoted = crate::text::quoted(name);
    CommandError::new(Code::Taken, format!("the store has a workspace called '{name}' already"))
        .state("nothing was changed")
        .help(format!("syncline clone {quoted} --backend NAME=URL"), "gets it")
        .help("--workspace NAME", "takes another name")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_objects_are_read_back_and_others_refused() {
        let id = "00112233445566778899aabbccddeeff";
        let (found, name) = parse_name(format!("{id}\nMy notes\n").as_bytes()).unwrap();
        assert_eq!((found.to_string().as_str(), name.as_str()), (id, "My notes"));
        for text in ["", "x\ny\n", id] {
            assert_eq!(parse_name(text.as_bytes()), None, "{text}");
        }
    }
}
