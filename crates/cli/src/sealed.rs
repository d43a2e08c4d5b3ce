//! The keys of sealed workspaces: asked for, unlocked, kept in the home of the device, and changed in the stores.
//!
//! | where | what |
//! |---|---|
//! | `envelopes/<name>` at a server | the keys of somebody else's workspace for this account ([`member`]) |
//! | `keys/<generation>` in every store of the workspace, or at its server | its locked keys; whoever changes them writes the next generation |
//! | `keys` beside `folder.toml` in the home, mode 0600 | what this device needs to read and write, and not the account key |
//!
//! A secret comes from the terminal, or from the file that `SYNCLINE_PASSPHRASE_FILE` names, and never from an argument.

pub(crate) mod member;
mod trying;

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use content::keyring::{KEY_OBJECT_LENGTH_MAX, SecretKey};
use content::{DeviceKeys, KeyObject, Passphrase, Secret, Unlocked};
use futures_util::future::join_all;
use model::hex;
use model::{DeviceId, StoreRecord, WorkspaceId};
use storage::object_store::list_all;
use storage::{ObjectKey, ObjectStore, PutMode, PutOutcome};
use zeroize::Zeroizing;

pub(crate) use trying::{NamedStores, Opened, Trying, by_name};

use crate::connect::{self, Driver};
use crate::context::Context;
use crate::error::{Code, CommandError, Result};
use crate::folder::{Folder, Place};
use crate::home::{Home, file_error};
use crate::server_client::ServerClient;
use crate::stores;
use crate::system;

/// The variable that names the file with the passphrase.
pub(crate) const PASSPHRASE_FILE: &str = "SYNCLINE_PASSPHRASE_FILE";

/// Gets what opens a workspace: the passphrase, or the recovery key.
///
/// # Errors
/// [`Code::WouldAsk`] where nobody is there to type it.
pub(crate) fn secret(context: &Context<'_>, workspace: &str) -> Result<Secret> {
    let question = format!("Passphrase or recovery key of {workspace}");
    typed(context, &question).map(Secret::from_text)
}

/// Gets a passphrase that is to be: from a file, or typed twice.
///
/// # Errors
/// [`Code::Usage`] where it is too short or was typed differently; [`Code::WouldAsk`].
pub(crate) fn new_passphrase(context: &Context<'_>, file: Option<&Path>) -> Result<Passphrase> {
    let text = match file {
        Some(file) => read_secret(file)?,
        None => {
            let text = typed(context, "New passphrase")?;
            let is_asked = context.variables.get(PASSPHRASE_FILE).is_none();
            if is_asked && *typed(context, "The same again")? != *text {
                return Err(
                    CommandError::usage("the passphrases differ").state("nothing was changed")
                );
            }
            text
        }
    };
    let passphrase = Passphrase::new(text);
    if passphrase.length() < Passphrase::LENGTH_MIN {
        let headline = format!("a passphrase has at least {} characters", Passphrase::LENGTH_MIN);
        return Err(CommandError::usage(headline)
            .cause("whoever gets hold of a store can try passphrases as long as they like")
            .state("nothing was changed"));
    }
    Ok(passphrase)
}

/// Gets a secret: from the file that the variable names, or from the terminal.
///
/// # Errors
/// [`Code::WouldAsk`] where nobody is there to type it.
pub(crate) fn typed(context: &Context<'_>, question: &str) -> Result<Zeroizing<String>> {
    if let Some(file) = context.variables.path(PASSPHRASE_FILE) {
        return read_secret(&file);
    }
    if !context.ui.may_ask() {
        return Err(CommandError::new(
            Code::WouldAsk,
            "a passphrase is needed, and nobody is there to type it",
        )
        .state("nothing was changed")
        .help(format!("{PASSPHRASE_FILE}=FILE"), "names a file that holds it"));
    }
    context.ui.password(false, question).map(Zeroizing::new)
}

/// Reads a secret from a file, without the line break at its end.
pub(crate) fn read_secret(file: &Path) -> Result<Zeroizing<String>> {
    let text = system::read_text(file).map_err(|error| file_error(file, &error))?;
    let text = text.map(Zeroizing::new).ok_or_else(|| {
        CommandError::usage(format!("there is no file {} with a secret", file.display()))
    })?;
    Ok(Zeroizing::new(text.trim_end_matches(['\n', '\r']).to_owned()))
}

/// The stores of a workspace, each restricted to it.
pub(crate) type Stores = Vec<Arc<dyn ObjectStore>>;

/// Returns the stores of a folder's workspace, which on a server is one.
///
/// # Errors
/// [`Code::NotSignedIn`].
pub(crate) fn stores_of(home: &Home, folder: &Folder) -> Result<Stores> {
    Ok(named_stores_of(home, folder)?.into_iter().map(|(_, store)| store).collect())
}

/// Returns the same by their names.
///
/// # Errors
/// As [`stores_of`].
pub(crate) fn named_stores_of(home: &Home, folder: &Folder) -> Result<NamedStores> {
    let workspace = folder.genesis.workspace();
    match &folder.place {
        Place::Stored(stored) => Ok(by_name(stores::open_pool(home, stored, workspace))),
        Place::Served { server } => {
            let account = connect::account_of(home, server)?;
            stores_on_server(&ServerClient::of_account(&account)?, workspace)
        }
    }
}

/// Returns the only store that a workspace has on a server, by the address of that.
///
/// # Errors
/// Those of [`ServerClient::store`].
pub(crate) fn stores_on_server(
    client: &ServerClient,
    workspace: WorkspaceId,
) -> Result<NamedStores> {
    Ok(vec![(client.address(), client.store(workspace)?)])
}

/// Restricts stores that a user named to a workspace.
pub(crate) fn stores_in<'a>(
    named: impl IntoIterator<Item = &'a Arc<dyn ObjectStore>>,
    workspace: WorkspaceId,
) -> Stores {
    let inside = |store: &Arc<dyn ObjectStore>| stores::workspace_store(store.clone(), workspace);
    named.into_iter().map(inside).collect()
}

/// Restricts the stores of a new pool to its workspace.
pub(crate) fn stores_of_pool(
    pool: &[(StoreRecord, Arc<dyn ObjectStore>)],
    workspace: WorkspaceId,
) -> Stores {
    stores_in(pool.iter().map(|(_, store)| store), workspace)
}

/// Returns the locked keys of a workspace that count, of those in all stores that answer.
///
/// # Errors
/// [`Code::Missing`] where no store has any; those of the stores, where none answers.
pub(crate) async fn newest_keys(stores: &Stores) -> Result<KeyObject> {
    newest_of(&look(stores).await).map(|(keys, _)| keys.clone())
}

/// What each store has as its newest locked keys.
type Found = Vec<Result<Option<KeyObject>>>;

async fn look(stores: &Stores) -> Found {
    join_all(stores.iter().map(|store| newest_in(&**store))).await
}

/// Picks the locked keys that count, and tells whether more than half of the stores have them: those before all others, since
/// whoever changes keys succeeds only so, and a store may invent some. Else the newest count, and of one generation those that
/// most have. Damage in locked keys shows only when they are opened, and looks like a wrong passphrase.
fn newest_of(found: &Found) -> Result<(&KeyObject, bool)> {
    ranked(found).map(|(all, is_agreed)| (all[0], is_agreed))
}

/// Returns all locked keys that stores have, those that count first, and whether more than half of the stores have these.
fn ranked(found: &Found) -> Result<(Vec<&KeyObject>, bool)> {
    let all: Vec<&KeyObject> = found.iter().flatten().flatten().collect();
    let holders = |keys: &KeyObject| all.iter().filter(|other| **other == keys).count();
    let is_agreed = |keys: &KeyObject| holders(keys) * 2 > found.len();
    let rank = |keys: &&KeyObject| (is_agreed(keys), keys.generation(), holders(keys));
    let mut distinct: Vec<&KeyObject> = Vec::new();
    for keys in &all {
        if !distinct.contains(keys) {
            distinct.push(keys);
        }
    }
    distinct.sort_by_key(|keys| std::cmp::Reverse(rank(keys)));
    if let Some(newest) = distinct.first() {
        let is_agreed = is_agreed(newest);
        return Ok((distinct, is_agreed));
    }
    let failure = found.iter().find_map(|found| found.as_ref().err()).cloned();
    Err(failure.unwrap_or_else(|| {
        CommandError::new(Code::Missing, "the locked keys of the workspace are not stored")
            .state("nothing was changed; devices that have its keys still open it")
    }))
}

async fn newest_in(store: &dyn ObjectStore) -> Result<Option<KeyObject>> {
    let mut failure = None;
    for entry in list_all(store, ObjectKey::KEYS).await?.into_iter().rev() {
        if entry.size > KEY_OBJECT_LENGTH_MAX as u64 {
            continue;
        }
        let Some(bytes) = store.get(&entry.key).await? else { continue };
        match KeyObject::from_bytes(&bytes) {
            // Damaged: its name is that of its generation.
            Ok(keys) if ObjectKey::keys(keys.generation()) != entry.key => {}
            Ok(keys) => return Ok(Some(keys)),
            Err(error) => failure = Some(error),
        }
    }
    failure.map_or(Ok(None), |error| Err(error.into()))
}

/// Stores locked keys in all stores that answer, of which there must be more than half: so of two devices that change them at
/// once at most one succeeds. Older ones are deleted there, so that an old passphrase opens nothing any more. Returns how many
/// stores were not told; [`catch_up`] tells them.
///
/// # Errors
/// [`Code::Locked`] where another device has changed them at the same time; those of the stores, where too few answer.
pub(crate) async fn put_keys(stores: &Stores, keys: &KeyObject) -> Result<usize> {
    let key = ObjectKey::keys(keys.generation());
    let bytes = Bytes::from(keys.to_bytes());
    let put =
        |store: &Arc<dyn ObjectStore>| put_if_absent(store.clone(), key.clone(), bytes.clone());
    let puts = join_all(stores.iter().map(put)).await;
    let is_at = |put: &Result<bool>| matches!(put, Ok(true));
    if puts.iter().filter(|put| is_at(put)).count() * 2 <= stores.len() {
        return Err(undo_put(stores, &key, &bytes, puts).await);
    }
    let spread = stores.iter().zip(&puts).map(|(store, put)| {
        let (key, bytes) = (&key, &bytes);
        async move {
            match put {
                Ok(is_there) => replace_keys(&**store, key, bytes, *is_there).await.map(|()| true),
                Err(_) => Ok(false),
            }
        }
    });
    let told = join_all(spread).await;
    Ok(told.iter().filter(|told: &&Result<bool>| !matches!(told, Ok(true))).count())
}

/// Leaves nothing in a store but the keys that more than half of the stores have, which may be there already.
async fn replace_keys(
    store: &dyn ObjectStore,
    key: &ObjectKey,
    bytes: &Bytes,
    is_there: bool,
) -> Result<()> {
    if !is_there {
        // What a device has put there that did not succeed, or what was damaged.
        store.put(key, bytes.clone(), PutMode::Overwrite).await?;
    }
    remove_older(store, key).await
}

/// Puts locked keys into a store. Returns whether they are there now, and not others.
async fn put_if_absent(store: Arc<dyn ObjectStore>, key: ObjectKey, bytes: Bytes) -> Result<bool> {
    Ok(store.put(&key, bytes.clone(), PutMode::IfAbsent).await? == PutOutcome::Written
        || store.get(&key).await? == Some(bytes))
}

/// Takes back what was put into too few stores. Returns why it was.
async fn undo_put(
    stores: &Stores,
    key: &ObjectKey,
    bytes: &Bytes,
    puts: Vec<Result<bool>>,
) -> CommandError {
    let is_other = puts.iter().any(|put| matches!(put, Ok(false)));
    for (store, _) in stores.iter().zip(&puts).filter(|(_, put)| !matches!(put, Ok(false))) {
        // A store that has failed may have it all the same.
        if let Ok(Some(there)) = store.get(key).await
            && there == *bytes
        {
            let _ = store.delete(key).await;
        }
    }
    let failure = puts.into_iter().find_map(Result::err);
    match failure {
        Some(failure) if !is_other => failure.state(
            "too few stores answer; the keys are as they were, or else the new passphrase counts",
        ),
        _ => {
            let headline = "another device has changed the keys of the workspace at the same time";
            CommandError::new(Code::Locked, headline).state("what that device has done counts")
        }
    }
}

async fn remove_older(store: &dyn ObjectStore, newest: &ObjectKey) -> Result<()> {
    for entry in list_all(store, ObjectKey::KEYS).await? {
        if entry.key < *newest {
            store.delete(&entry.key).await?;
        }
    }
    Ok(())
}

/// Brings the locked keys that count to the stores that have missed a change. Where too few stores have them, others are left
/// as they are: they may be the only good ones. Returns how many stores lack them still.
///
/// # Errors
/// As [`newest_keys`].
pub(crate) async fn catch_up(stores: &Stores) -> Result<usize> {
    let found = look(stores).await;
    let (newest, is_agreed) = newest_of(&found)?;
    let (key, bytes) = (ObjectKey::keys(newest.generation()), Bytes::from(newest.to_bytes()));
    let tell = |(store, found): (&Arc<dyn ObjectStore>, &Result<Option<KeyObject>>)| {
        let (store, key, bytes) = (store.clone(), key.clone(), bytes.clone());
        let is_theirs = match found {
            Ok(Some(keys)) => keys == newest,
            Ok(None) => true,
            Err(_) => false,
        };
        async move {
            if !is_theirs && !is_agreed {
                return Ok(false);
            }
            let is_there = put_if_absent(store.clone(), key.clone(), bytes.clone()).await?;
            if is_agreed {
                replace_keys(&*store, &key, &bytes, is_there).await?;
            }
            Ok(is_there || is_agreed)
        }
    };
    let told: Vec<Result<bool>> = join_all(stores.iter().zip(&found).map(tell)).await;
    Ok(told.iter().filter(|told| !matches!(told, Ok(true))).count())
}

/// A store whose locked keys are not those that count.
#[derive(Debug, Clone)]
pub(crate) struct Differing {
    /// Which store, from 0.
    pub(crate) store: usize,
    /// The locked keys that it should have.
    pub(crate) key: ObjectKey,
    /// Whether it has some.
    pub(crate) is_there: bool,
    /// Whether more than half of the stores have those that count.
    pub(crate) is_agreed: bool,
}

/// Returns the stores that answer and have other locked keys than those that count, or none.
///
/// # Errors
/// As [`newest_keys`].
pub(crate) async fn differing(stores: &Stores) -> Result<Vec<Differing>> {
    let found = look(stores).await;
    let (newest, is_agreed) = newest_of(&found)?;
    let (key, bytes) = (ObjectKey::keys(newest.generation()), Bytes::from(newest.to_bytes()));
    let compare = |(number, store): (usize, &Arc<dyn ObjectStore>)| {
        let (store, key, bytes) = (store.clone(), key.clone(), bytes.clone());
        async move {
            let there = store.get(&key).await.ok()?;
            let is_there = there.is_some();
            (there != Some(bytes)).then_some(Differing { store: number, key, is_there, is_agreed })
        }
    };
    Ok(join_all(stores.iter().enumerate().map(compare)).await.into_iter().flatten().collect())
}

/// The file in the folder's memory that says that some stores have missed a change of the keys.
const UNTOLD_FILE: &str = "keys-untold";

/// Remembers whether some stores have missed a change of the keys, for [`catch_up_if_due`].
///
/// # Errors
/// [`Code::File`].
pub(crate) fn note_untold(folder: &Folder, count: usize) -> Result<()> {
    let path = folder.memory_file(UNTOLD_FILE);
    let done = match count {
        0 => system::remove_file(&path),
        _ => system::write_private(&path, &format!("{count}\n")),
    };
    done.map_err(|error| file_error(&path, &error))
}

/// Tells stores of a change of the keys that this device has made while they were away.
///
/// # Errors
/// [`Code::File`]. What stores say is no error: they are told the next time.
pub(crate) fn catch_up_if_due(context: &Context<'_>, folder: &Folder) -> Result<()> {
    let path = folder.memory_file(UNTOLD_FILE);
    let is_due = system::read_text(&path).map_err(|error| file_error(&path, &error))?.is_some();
    if !is_due {
        return Ok(());
    }
    let stores = stores_of(&context.home, folder)?;
    match context.runtime()?.block_on(catch_up(&stores)) {
        Ok(count) => note_untold(folder, count),
        Err(_) => Ok(()),
    }
}

/// Makes this device one of the workspace's, and keeps its keys beside the folder's record.
///
/// # Errors
/// [`Code::File`]; [`Code::WrongKey`].
pub(crate) fn enroll(
    context: &Context<'_>,
    folder: &Folder,
    unlocked: &Unlocked,
    device: DeviceId,
) -> Result<DeviceKeys> {
    check_generation(folder, unlocked.generation)?;
    let seed = SecretKey::random(&*context.random);
    let keys = DeviceKeys::enroll(&folder.genesis, unlocked, device, seed)?;
    keep(folder, &keys)?;
    Ok(keys)
}

/// Keeps the keys of this device beside the folder's record.
///
/// # Errors
/// [`Code::File`].
pub(crate) fn keep(folder: &Folder, keys: &DeviceKeys) -> Result<()> {
    let path = folder.memory_file(KEYS_FILE);
    let text = Zeroizing::new(hex::encode(&keys.to_bytes()));
    system::write_private(&path, &text).map_err(|error| file_error(&path, &error))
}

/// Checks that keys from a store are not older than those that this device has seen.
///
/// # Errors
/// [`Code::HistoryDiverged`].
pub(crate) fn check_generation(folder: &Folder, found: u64) -> Result<()> {
    match kept_keys(folder)?.map(|keys| keys.generation) {
        Some(known) if known > found => Err(rolled_back(found, known)),
        _ => Ok(()),
    }
}

/// The file in the folder's memory that holds the keys.
const KEYS_FILE: &str = "keys";

/// Returns the keys that are kept for a folder, if there are any that can be read.
///
/// # Errors
/// [`Code::File`].
pub(crate) fn kept_keys(folder: &Folder) -> Result<Option<DeviceKeys>> {
    let path = folder.memory_file(KEYS_FILE);
    let text = system::read_text(&path).map_err(|error| file_error(&path, &error))?;
    let bytes = text.map(Zeroizing::new).and_then(|text| hex::decode(text.trim()));
    Ok(bytes.map(Zeroizing::new).and_then(|bytes| DeviceKeys::from_bytes(&bytes).ok()))
}

/// Where stores may lie, nobody believes what they say of the history without the keys.
pub(crate) fn nothing_can_be_checked() -> CommandError {
    let headline = "the stores of this workspace may lie, and its keys are not on this device";
    CommandError::new(Code::WrongKey, headline)
        .cause("what devices say in these stores is signed, and without the keys nothing of it can be checked")
        .state("nothing was changed")
        .help("syncline key unlock", "asks for the passphrase and keeps the keys")
}

fn rolled_back(found: u64, known: u64) -> CommandError {
    let headline = "the store has older keys than this device has seen";
    CommandError::new(Code::HistoryDiverged, headline)
        .cause(format!("generation {found}, after generation {known}"))
        .state("nothing was changed")
        .help("syncline doctor", "looks for the reason")
}

/// Returns the keys of a folder's workspace for the device that this home is, where it is sealed. Where they are not kept, or
/// belong to the device that this home was copied from, somebody is asked for the passphrase.
///
/// # Errors
/// [`Code::WouldAsk`], [`Code::WrongKey`], [`Code::File`].
pub(crate) fn keys_of_device(
    context: &Context<'_>,
    driver: &Driver,
    folder: &Folder,
) -> Result<Option<DeviceKeys>> {
    let (device, _) = connect::device(context, &folder.place)?;
    if folder.genesis.mode.sealed().is_none() {
        return Ok(None);
    }
    let kept = kept_keys(folder)?.filter(|keys| keys.identity.device == device);
    match kept {
        Some(keys) => Ok(Some(keys)),
        None => unlock_again(context, driver, folder).map(Some),
    }
}

/// Asks for the passphrase of a folder's workspace and keeps the newest keys; of somebody else's takes those in the envelope.
///
/// # Errors
/// As [`keys_of_device`].
pub(crate) fn unlock_again(
    context: &Context<'_>,
    driver: &Driver,
    folder: &Folder,
) -> Result<DeviceKeys> {
    if let Some(keys) = member::renew(context, driver, folder)? {
        return Ok(keys);
    }
    let (device, _) = connect::device(context, &folder.place)?;
    let secret = secret(context, &format!("'{}'", folder.genesis.name))?;
    let stores = named_stores_of(&context.home, folder)?;
    let opened = driver.run(Trying::new(&folder.genesis, &secret).open(&stores))?;
    opened.tell(context);
    enroll(context, folder, &opened.unlocked, device)
}

#[cfg(test)]
mod tests;
