//! The stores that a user names: opening and probing them, and the part of them that holds a workspace.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use model::environment::random_bytes;
use model::pool::{FaultModel, STORE_NAME_LENGTH_MAX};
use model::{PoolConfig, Redundancy, StoreId, StoreRecord, WorkspaceId};
use storage::layers::{Lazy, Retrying, Scoped};
use storage::probe::{ProbeOptions, ProbeReport, probe};
use storage::{Credentials, ObjectKey, ObjectStore, Opening};

use crate::error::{Code, CommandError, Result};
use crate::folder::{StoredPlace, absolute, path_text};
use crate::home::Home;
use crate::system::{SystemRandom, SystemWaiting};

/// The largest object that a probe tries: that of a pack and a little more.
const PROBE_OBJECT_SIZE: u64 = 8 << 20;

/// The capacity of a store of which nobody has said anything, in gigabytes.
pub(crate) const CAPACITY_DEFAULT: u32 = 100;

/// A store that a user named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Backend {
    /// How the user calls it.
    pub(crate) name: String,
    /// Its URL; a folder is absolute.
    pub(crate) url: String,
    /// What opens it.
    pub(crate) credentials: Credentials,
}

impl Backend {
    /// Reads what `--backend` was given, each with its secrets, or the sign-in of this device, where there are some.
    ///
    /// # Errors
    /// [`Code::Usage`], also for two of one name.
    pub(crate) fn of_flags(flags: &[String], secrets: &Secrets, home: &Home) -> Result<Vec<Self>> {
        let mut backends: Vec<Self> = Vec::new();
        for flag in flags {
            let mut backend = Self::parse(flag)?;
            backend.credentials = home.signed_in(&backend.url, secrets.of(&backend.name));
            if backends.iter().any(|other| other.name == backend.name) {
                return Err(CommandError::usage(format!(
                    "two stores are called '{}'",
                    backend.name
                )));
            }
            backends.push(backend);
        }
        Ok(backends)
    }

    /// Reads NAME=URL.
    ///
    /// # Errors
    /// [`Code::Usage`].
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let Some((name, url)) = text.split_once('=') else { return Err(no_backend(text)) };
        Self::new(name, url).map_err(|_| no_backend(text))
    }

    /// Makes one of a name and a URL.
    ///
    /// # Errors
    /// [`Code::Usage`].
    pub(crate) fn new(name: &str, url: &str) -> Result<Self> {
        let is_word = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        let is_name = (1..=STORE_NAME_LENGTH_MAX).contains(&name.len());
        if !is_name || !name.chars().all(is_word) || url.is_empty() {
            return Err(no_backend(&format!("{name}={url}")));
        }
        let url = match url.strip_prefix("file:") {
            Some(path) if !path.is_empty() && !path.starts_with('/') => {
                format!("file:{}", path_text(&absolute(path.as_ref())?)?)
            }
            _ => url.to_owned(),
        };
        Ok(Self { name: name.to_owned(), url, credentials: Credentials::none() })
    }

    /// Makes the record of the store in a pool, with a new id.
    pub(crate) fn record(&self, capacity: u32) -> StoreRecord {
        let id = StoreId::from_bytes(random_bytes(&SystemRandom));
        StoreRecord::new(id, self.name.clone(), self.url.clone(), capacity)
    }

    /// Opens the store, and makes its folder where it is missing.
    ///
    /// # Errors
    /// Those of the store.
    pub(crate) fn create(&self) -> Result<Arc<dyn ObjectStore>> {
        Ok(patient(storage::open_with(&self.url, &self.credentials, Opening::CreateIfMissing)?))
    }

    /// Opens the store, which must be there.
    ///
    /// # Errors
    /// Those of the store.
    pub(crate) fn open(&self) -> Result<Arc<dyn ObjectStore>> {
        Ok(patient(storage::open_with(&self.url, &self.credentials, Opening::Existing)?))
    }
}

/// What `--credentials` was given: the secrets of stores, by name.
#[derive(Debug, Default)]
pub(crate) struct Secrets(BTreeMap<String, Credentials>);

impl Secrets {
    /// Reads NAME=FILE, any number of them.
    ///
    /// # Errors
    /// [`Code::Usage`]; those of the files.
    pub(crate) fn of_flags(flags: &[String]) -> Result<Self> {
        let mut secrets = BTreeMap::new();
        for flag in flags {
            let Some((name, file)) = flag.split_once('=').filter(|(name, _)| !name.is_empty())
            else {
                return Err(CommandError::usage(format!("'{flag}' is not NAME=FILE")).help(
                    "--credentials nas=nas.toml",
                    "a file with the secrets of the store 'nas'",
                ));
            };
            secrets.insert(name.to_owned(), Credentials::read_file(Path::new(file))?);
        }
        Ok(Self(secrets))
    }

    /// Returns the secrets of a store; none where none were given.
    pub(crate) fn of(&self, name: &str) -> Credentials {
        self.0.get(name).cloned().unwrap_or_default()
    }

    /// Refuses secrets for stores that the user did not name: where nobody vouches for their addresses, a store that lies could
    /// have them sent to itself.
    ///
    /// # Errors
    /// [`Code::Usage`].
    pub(crate) fn refuse_unnamed(&self, named: &BTreeMap<String, StoreId>) -> Result<()> {
        let Some(name) = self.0.keys().find(|name| !named.contains_key(*name)) else {
            return Ok(());
        };
        let headline = format!("credentials were given for '{name}', and not its address");
        Err(CommandError::usage(headline)
            .cause("the workspace is not encrypted, so nobody vouches for addresses in its stores")
            .state("nothing was changed")
            .help(format!("--backend {name}=URL"), "says where they may be sent"))
    }

    /// Keeps them in the home, for the stores of a pool, each by the name that the user gave it or that the pool has.
    ///
    /// # Errors
    /// [`Code::Usage`] for a name that no store has; [`Code::File`].
    pub(crate) fn keep(
        &self,
        home: &Home,
        pool: &PoolConfig,
        named: &BTreeMap<String, StoreId>,
    ) -> Result<()> {
        for (name, credentials) in &self.0 {
            let id = named.get(name).copied();
            let Some(id) = id.or_else(|| pool.store_named(name).map(|store| store.id)) else {
                return Err(CommandError::usage(format!(
                    "credentials were given for '{name}', and no store is called that"
                )));
            };
            home.set_credentials(id, credentials)?;
        }
        Ok(())
    }
}

fn no_backend(text: &str) -> CommandError {
    CommandError::usage(format!("'{text}' is not NAME=URL"))
        .help("--backend disk=file:/mnt/disk/cloud", "a folder as a store")
}

/// Reads what `--replicas` and `--erasure` were given, for a pool of so many stores: two copies where nothing was said and
/// there are two stores.
///
/// # Errors
/// [`Code::Usage`].
pub(crate) fn redundancy_of(
    replicas: Option<u8>,
    erasure: Option<&str>,
    stores: usize,
) -> Result<Redundancy> {
    let Some(text) = erasure else {
        return Ok(Redundancy::Replicas(replicas.unwrap_or(if stores > 1 { 2 } else { 1 })));
    };
    let counts = text.split_once('/').and_then(|(data, total)| {
        Some(Redundancy::Erasure { data: data.parse().ok()?, total: total.parse().ok()? })
    });
    counts.ok_or_else(|| {
        CommandError::usage(format!("'{text}' is not K/N"))
            .help("--erasure 3/5", "five blocks, of which any three give an object back")
    })
}

/// Makes the pool of a new workspace.
///
/// # Errors
/// [`Code::Usage`] where the stores do not allow the redundancy.
pub(crate) fn new_pool(
    stores: Vec<StoreRecord>,
    (redundancy, faults): (Redundancy, FaultModel),
) -> Result<PoolConfig> {
    let pool = PoolConfig::new(redundancy, stores).and_then(|pool| pool.with_faults(faults));
    pool.map_err(|error| {
        CommandError::usage(format!("these stores make no pool: {error}"))
            .help("--backend NAME=URL", "adds a store")
    })
}

/// Returns the stores of a pool, each restricted to the workspace and opened when it is first used.
pub(crate) fn open_pool(
    home: &Home,
    stored: &StoredPlace,
    workspace: WorkspaceId,
) -> Vec<(StoreRecord, Arc<dyn ObjectStore>)> {
    let open = |record: &StoreRecord| {
        let is_alone = stored.pool.stores.len() == 1;
        (record.clone(), open_part(home, stored, record, workspace, is_alone))
    };
    stored.pool.stores.iter().map(open).collect()
}

/// Returns the stores of a pool that a user did not name, as [`open_pool`] does, without any secret or sign-in of this home:
/// nobody knows yet who has given their addresses.
pub(crate) fn open_without_secrets(
    stored: &StoredPlace,
    named: &BTreeMap<String, StoreId>,
    workspace: WorkspaceId,
) -> Vec<(StoreRecord, Arc<dyn ObjectStore>)> {
    let is_named = |record: &&StoreRecord| named.values().any(|named| *named == record.id);
    let open = |record: &StoreRecord| {
        let url = record.url.clone();
        let store = Lazy::new(format!("store '{}' ({url})", record.name), move || {
            storage::open_with(&url, &Credentials::none(), Opening::Existing)
        });
        (record.clone(), workspace_store(Arc::new(store), workspace))
    };
    stored.pool.stores.iter().filter(|record| !is_named(record)).map(open).collect()
}

/// Returns the part of a store that holds a workspace, opened when it is first used.
pub(crate) fn open_part(
    home: &Home,
    stored: &StoredPlace,
    record: &StoreRecord,
    workspace: WorkspaceId,
    is_alone: bool,
) -> Arc<dyn ObjectStore> {
    let store: Arc<dyn ObjectStore> = if is_alone {
        patient(open_store(home, stored, record))
    } else {
        // The others do its work meanwhile, so there is no need for much patience.
        let waiting = Arc::new(SystemWaiting);
        Arc::new(Retrying::new(open_store(home, stored, record), waiting).with_attempts_max(2))
    };
    workspace_store(store, workspace)
}

/// Opens a store of a pool when it is first used.
pub(crate) fn open_store(
    home: &Home,
    stored: &StoredPlace,
    record: &StoreRecord,
) -> Arc<dyn ObjectStore> {
    let (home, id, url) = (home.clone(), record.id, stored.url(record).to_owned());
    Arc::new(Lazy::new(format!("store '{}' ({url})", record.name), move || {
        let credentials = home.signed_in(&url, home.credentials(id)?);
        storage::open_with(&url, &credentials, Opening::Existing)
    }))
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

/// Finds out by experiment what a store can do.
///
/// # Errors
/// Those of the store.
pub(crate) async fn abilities(store: &Arc<dyn ObjectStore>) -> Result<ProbeReport> {
    let token = format!("{:016x}", u64::from_le_bytes(random_bytes(&SystemRandom)));
    let options = ProbeOptions { token, object_size_max: PROBE_OBJECT_SIZE };
    Ok(probe(store.clone(), &options).await?)
}

/// Says why a store is of no use.
pub(crate) fn unfit(store: &dyn ObjectStore, report: &ProbeReport) -> CommandError {
    let headline = format!("the {} cannot hold a workspace", store.describe());
    CommandError::new(Code::StoreUnfit, headline)
        .cause(report.words().join("; "))
        .state("nothing was left in the store")
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
    fn backends_of_one_name_are_refused() {
        let flags = ["a=file:/x".to_owned(), "a=file:/y".to_owned()];
        let home = Home::at(Path::new("/nowhere"));
        let refused = Backend::of_flags(&flags, &Secrets::default(), &home).unwrap_err();
        assert_eq!(refused.code, Code::Usage);
    }

    #[test]
    fn two_stores_hold_two_copies_unless_something_else_is_said() {
        let of = |replicas, erasure, stores| redundancy_of(replicas, erasure, stores).unwrap();
        assert_eq!(of(None, None, 1), Redundancy::Replicas(1));
        assert_eq!(of(None, None, 5), Redundancy::Replicas(2));
        assert_eq!(of(Some(1), None, 5), Redundancy::Replicas(1));
        assert_eq!(of(None, Some("3/5"), 5), Redundancy::Erasure { data: 3, total: 5 });
        for text in ["3", "3/", "a/b", "300/5", "-1/3"] {
            assert!(redundancy_of(None, Some(text), 5).is_err(), "{text}");
        }
    }
}
