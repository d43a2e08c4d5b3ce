//! Workspaces in plain stores: where they lie, and how they are found by name.
//!
//! | key | object |
//! |---|---|
//! | `workspaces/<id>/…` | the workspace, laid out as `storage::key` says |
//! | `names/<blake3 of the name>` | two lines, the id and the name; created only if absent, so a name has one owner |
//!
//! The workspace is complete before its name is taken: one that lost the race for its name is removed again.

use std::sync::Arc;

use bytes::Bytes;
use commit_log::SlotCommitLog;
use model::environment::random_bytes;
use model::{Clock, Genesis, WorkspaceId};
use storage::layers::{Retrying, Scoped};
use storage::object_store::list_all;
use storage::probe::{ProbeOptions, ProbeReport, probe};
use storage::{ObjectKey, ObjectStore, PutMode, PutOutcome};

use crate::error::{Code, CommandError, Result};
use crate::folder::{Place, absolute, path_text};
use crate::system::{SystemRandom, SystemWaiting};
use crate::text::counted;

const NAMES: &str = "names/";

/// The largest object that a probe tries: that of a pack and a little more.
const PROBE_OBJECT_SIZE: u64 = 8 << 20;

/// A store that a user named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Backend {
    /// How the user calls it.
    pub(crate) name: String,
    /// Its URL; a folder is absolute.
    pub(crate) url: String,
}

impl Backend {
    /// Reads what `--backend` was given: nothing, or one store.
    ///
    /// # Errors
    /// [`Code::Usage`]; [`Code::NotInThisRelease`] for several.
    pub(crate) fn of_flags(flags: &[String]) -> Result<Option<Self>> {
        match flags {
            [] => Ok(None),
            [one] => Self::parse(one).map(Some),
            several => {
                let headline = format!(
                    "a workspace in {} is not in this release",
                    counted(several.len() as u64, "store", "stores")
                );
                Err(CommandError::new(Code::NotInThisRelease, headline).help(
                    format!("--backend {}", crate::text::quoted(&several[0])),
                    "one store works",
                ))
            }
        }
    }

    fn parse(text: &str) -> Result<Self> {
        let usage = || {
            CommandError::usage(format!("'{text}' is not NAME=URL"))
                .help("--backend disk=file:/mnt/disk/cloud", "a folder as a store")
        };
        let (name, url) = text.split_once('=').ok_or_else(usage)?;
        let is_word = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        if name.is_empty() || !name.chars().all(is_word) || url.is_empty() {
            return Err(usage());
        }
        let url = match url.strip_prefix("file:") {
            Some(path) if !path.is_empty() && !path.starts_with('/') => {
                format!("file:{}", path_text(&absolute(path.as_ref())?)?)
            }
            _ => url.to_owned(),
        };
        Ok(Self { name: name.to_owned(), url })
    }

    /// Returns where a workspace in this store lives.
    pub(crate) fn place(&self) -> Place {
        Place::Stored { backend: self.name.clone(), url: self.url.clone() }
    }

    /// Opens the store, and makes its folder where it is missing.
    ///
    /// # Errors
    /// Those of the store.
    pub(crate) fn create(&self) -> Result<Arc<dyn ObjectStore>> {
        Ok(patient(storage::open(&self.url)?))
    }

    /// Opens the store, which must be there.
    ///
    /// # Errors
    /// Those of the store.
    pub(crate) fn open(&self) -> Result<Arc<dyn ObjectStore>> {
        open_store(&self.url)
    }
}

/// Opens a store that must be there.
///
/// # Errors
/// Those of the store.
pub(crate) fn open_store(url: &str) -> Result<Arc<dyn ObjectStore>> {
    Ok(patient(storage::open_existing(url)?))
}

/// Lets a store that is briefly away come back.
pub(crate) fn patient(store: Arc<dyn ObjectStore>) -> Arc<dyn ObjectStore> {
    Arc::new(Retrying::new(store, Arc::new(SystemWaiting)))
}

/// Returns the part of a store that holds a workspace.
pub(crate) fn workspace_store(
    store: Arc<dyn ObjectStore>,
    workspace: WorkspaceId,
) -> Arc<dyn ObjectStore> {
    let scope =
        ObjectKey::new(&format!("workspaces/{workspace}")).expect("an id is a segment of a key");
    Arc::new(Scoped::new(store, scope))
}

/// Finds out whether a store can hold a workspace.
///
/// # Errors
/// [`Code::StoreUnfit`]; those of the store.
pub(crate) async fn check_abilities(store: &Arc<dyn ObjectStore>) -> Result<ProbeReport> {
    let token = format!("{:016x}", u64::from_le_bytes(random_bytes(&SystemRandom)));
    let options = ProbeOptions { token, object_size_max: PROBE_OBJECT_SIZE };
    let report = probe(store.clone(), &options).await?;
    if report.may_hold_data() && report.may_take_part_in_agreement() {
        return Ok(report);
    }
    Err(CommandError::new(
        Code::StoreUnfit,
        format!("the {} cannot hold a workspace", store.describe()),
    )
    .cause(report.words().join("; "))
    .state("nothing was left in the store"))
}

fn name_key(name: &str) -> ObjectKey {
    let hash = blake3::hash(name.as_bytes()).to_hex();
    ObjectKey::new(&format!("{NAMES}{hash}")).expect("a hash is a segment of a key")
}

fn parse_name(bytes: &[u8]) -> Option<(WorkspaceId, String)> {
    let text = std::str::from_utf8(bytes).ok()?;
    let (id, name) = text.trim_end_matches('\n').split_once('\n')?;
    Some((id.parse().ok()?, name.to_owned()))
}

/// Makes a workspace in a store and gives it its name there.
///
/// # Errors
/// [`Code::Taken`] where the store has one of this name; those of the store.
pub(crate) async fn create_workspace(
    store: &Arc<dyn ObjectStore>,
    clock: Arc<dyn Clock>,
    genesis: &Genesis,
) -> Result<()> {
    let id = genesis.workspace();
    let key = name_key(&genesis.name);
    if store.get(&key).await?.is_some() {
        return Err(taken(&genesis.name));
    }
    let inside = workspace_store(store.clone(), id);
    SlotCommitLog::create(inside.clone(), clock, genesis.clone()).await?;
    let text = Bytes::from(format!("{id}\n{}\n", genesis.name));
    match store.put(&key, text, PutMode::IfAbsent).await? {
        PutOutcome::Written => Ok(()),
        PutOutcome::Exists => {
            inside.delete(&ObjectKey::genesis()).await?;
            Err(taken(&genesis.name))
        }
    }
}

fn taken(name: &str) -> CommandError {
    let quoted = crate::text::quoted(name);
    CommandError::new(Code::Taken, format!("the store has a workspace called '{name}' already"))
        .state("nothing was changed")
        .help(format!("syncline clone {quoted} --backend NAME=URL"), "gets it")
        .help("--workspace NAME", "takes another name")
}

/// Finds a workspace by its name or id.
///
/// # Errors
/// [`Code::NoSuchWorkspace`]; those of the store.
pub(crate) async fn find_workspace(
    store: &Arc<dyn ObjectStore>,
    clock: Arc<dyn Clock>,
    text: &str,
) -> Result<Genesis> {
    use commit_log::CommitLog;
    let named = store.get(&name_key(text)).await?;
    let named = named.and_then(|bytes| parse_name(&bytes)).map(|(id, _)| id);
    if let Some(id) = named.or_else(|| text.parse().ok()) {
        let inside = workspace_store(store.clone(), id);
        if let Some(log) = SlotCommitLog::open(inside, clock).await? {
            let genesis = log.genesis().clone();
            if genesis.workspace() == id {
                return Ok(genesis);
            }
            return Err(CommandError::new(
                Code::LogDamaged,
                "the workspace in the store is another than its id says",
            )
            .state("nothing was changed"));
        }
    }
    let names = workspace_names(store).await?;
    let error = CommandError::new(
        Code::NoSuchWorkspace,
        format!("the store has no workspace called '{text}'"),
    );
    Err(if names.is_empty() {
        error.help("syncline init --backend NAME=URL", "makes one")
    } else {
        error.cause(format!("it has: {}", names.join(", ")))
    })
}

/// Returns the names of the workspaces in a store.
///
/// # Errors
/// Those of the store.
pub(crate) async fn workspace_names(store: &Arc<dyn ObjectStore>) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in list_all(&**store, NAMES).await? {
        let bytes = store.get(&entry.key).await?.unwrap_or_default();
        names.extend(parse_name(&bytes).map(|(_, name)| name));
    }
    names.sort();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backends_have_a_name_and_a_url() {
        let backend = Backend::parse("disk=file:/mnt/a=b").unwrap();
        assert_eq!((backend.name.as_str(), backend.url.as_str()), ("disk", "file:/mnt/a=b"));
        assert!(Backend::parse("disk=file:here").unwrap().url.starts_with("file:/"));
        for text in ["", "disk", "=file:/x", "disk=", "a b=file:/x"] {
            assert!(Backend::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn several_backends_are_refused_by_name() {
        let flags = ["a=file:/x".to_owned(), "b=file:/y".to_owned()];
        assert_eq!(Backend::of_flags(&flags).unwrap_err().code, Code::NotInThisRelease);
        assert_eq!(Backend::of_flags(&[]).unwrap(), None);
    }

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
