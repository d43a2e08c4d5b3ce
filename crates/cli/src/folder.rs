//! The synced folders of this device: which workspace each belongs to, and where that lives.
//!
//! A folder is known by the identity in `.syncline/root`, so it may be moved; what belongs to it is remembered in the
//! home, below that identity, so nothing about servers or stores stands in the folder itself.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use commit_log::serverless::membership::{Earlier, Stand};
use model::codec::{decode_message, encode_message};
use model::hex;
use model::{Genesis, PoolConfig, RelativePath, StoreId, StoreRecord};
use serde::{Deserialize, Serialize};
use sync::file_system::SERVICE_DIRECTORY;
use sync::state::State;

use crate::error::{Code, CommandError, Result};
use crate::home::{Home, file_error, read_toml, write_toml};
use crate::system;

/// The format of `folder.toml`.
const FORMAT: u32 = 1;

/// Where a workspace lives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    /// On a server.
    Served {
        /// Its address.
        server: String,
    },
    /// In the stores of a pool.
    Stored(StoredPlace),
}

/// The stores of a workspace, as this device knows and reaches them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StoredPlace {
    /// The stores, as the workspace has agreed.
    pub(crate) pool: PoolConfig,
    /// The version of the settings that this is; 0 is what the workspace began with.
    pub(crate) version: u64,
    /// Addresses of stores that this device reaches elsewhere than the others, as a disk that is mounted elsewhere.
    pub(crate) addresses: BTreeMap<StoreId, String>,
    /// The entry of the log with which the stores that agree took over; 0 for those of the beginning.
    pub(crate) since: u64,
    /// The stores that agreed before, as long as it is not known that everything was carried over from them.
    pub(crate) earlier: Option<Earlier>,
}

impl StoredPlace {
    /// Returns the stores with which a workspace begins.
    pub(crate) fn first(pool: PoolConfig) -> Self {
        Self { pool, version: 0, addresses: BTreeMap::new(), since: 0, earlier: None }
    }

    /// Returns what the log begins with.
    pub(crate) fn stand(&self) -> Stand {
        let (pool, earlier) = (self.pool.clone(), self.earlier.clone());
        Stand { version: self.version, pool, since: self.since, earlier }
    }

    /// Returns the place after the log has said which stores there are.
    pub(crate) fn after(&self, stand: Stand) -> Self {
        let Stand { version, pool, since, earlier } = stand;
        let mut addresses = self.addresses.clone();
        addresses.retain(|id, _| {
            let was_there = earlier.as_ref().is_some_and(|e| e.pool.store(*id).is_some());
            was_there || pool.store(*id).is_some()
        });
        Self { pool, version, addresses, since, earlier }
    }

    /// Returns all stores that matter, those that have left before everything was carried over, too.
    pub(crate) fn all_stores(&self) -> Vec<StoreRecord> {
        let mut all = self.pool.stores.clone();
        let earlier = self.earlier.iter().flat_map(|earlier| earlier.pool.stores.iter());
        all.extend(earlier.filter(|store| self.pool.store(store.id).is_none()).cloned());
        all
    }

    /// Returns where this device reaches a store.
    pub(crate) fn url<'a>(&'a self, store: &'a StoreRecord) -> &'a str {
        self.addresses.get(&store.id).unwrap_or(&store.url)
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Served { server } => formatter.write_str(server),
            Self::Stored(stored) => match &stored.pool.stores[..] {
                [one] => write!(formatter, "{} ({})", one.name, stored.url(one)),
                several => {
                    let names: Vec<&str> =
                        several.iter().map(|store| store.name.as_str()).collect();
                    write!(formatter, "{} ({})", names.join(", "), stored.pool.redundancy)
                }
            },
        }
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct FolderRecord {
    format: u32,
    path: String,
    workspace: String,
    genesis: String,
    server: Option<String>,
    /// The name of a sealed workspace, whose genesis does not tell it.
    name: Option<String>,
    pool: Option<PoolRecord>,
}

#[derive(Debug, Serialize, Deserialize)]
struct PoolRecord {
    version: u64,
    config: String,
    #[serde(default)]
    since: u64,
    #[serde(default)]
    addresses: BTreeMap<String, String>,
    earlier: Option<EarlierRecord>,
}

#[derive(Debug, Serialize, Deserialize)]
struct EarlierRecord {
    config: String,
    since: u64,
}

impl PoolRecord {
    fn of(stored: &StoredPlace) -> Self {
        let address = |(id, url): (&StoreId, &String)| (id.to_string(), url.clone());
        Self {
            version: stored.version,
            config: hex::encode(&encode_message(&stored.pool)),
            since: stored.since,
            addresses: stored.addresses.iter().map(address).collect(),
            earlier: stored.earlier.as_ref().map(|earlier| EarlierRecord {
                config: hex::encode(&encode_message(&earlier.pool)),
                since: earlier.since,
            }),
        }
    }

    fn read(self) -> Option<StoredPlace> {
        let address = |(id, url): (String, String)| Some((id.parse().ok()?, url));
        let earlier = match self.earlier {
            None => None,
            Some(EarlierRecord { config, since }) => {
                Some(Earlier { pool: decode_message(&hex::decode(&config)?).ok()?, since })
            }
        };
        Some(StoredPlace {
            since: self.since,
            earlier,
            pool: decode_message(&hex::decode(&self.config)?).ok()?,
            version: self.version,
            addresses: self.addresses.into_iter().map(address).collect::<Option<_>>()?,
        })
    }
}

/// A synced folder.
#[derive(Debug, Clone)]
pub(crate) struct Folder {
    /// Where it is, without links.
    pub(crate) root: PathBuf,
    /// Its workspace.
    pub(crate) genesis: Genesis,
    /// Where the workspace lives.
    pub(crate) place: Place,
    /// Where the home remembers it.
    memory: PathBuf,
}

impl Folder {
    /// Remembers a folder, whose identity is written already.
    ///
    /// # Errors
    /// [`Code::File`].
    pub(crate) fn remember(
        home: &Home,
        identity: [u8; 16],
        root: &Path,
        genesis: Genesis,
        place: Place,
    ) -> Result<Self> {
        let memory = home.folders().join(format!("{:032x}", u128::from_be_bytes(identity)));
        let folder = Self { root: root.to_owned(), genesis, place, memory };
        folder.write()?;
        Ok(folder)
    }

    /// Remembers that the workspace lives elsewhere now.
    ///
    /// # Errors
    /// [`Code::File`].
    pub(crate) fn set_place(&mut self, place: Place) -> Result<()> {
        self.place = place;
        self.write()
    }

    fn write(&self) -> Result<()> {
        let (server, pool) = match &self.place {
            Place::Served { server } => (Some(server.clone()), None),
            Place::Stored(stored) => (None, Some(PoolRecord::of(stored))),
        };
        let path = path_text(&self.root)?;
        let genesis = hex::encode(&encode_message(&self.genesis));
        let workspace = self.genesis.workspace().to_string();
        let name = self.genesis.mode.sealed().map(|_| self.genesis.name.clone());
        write_toml(
            &self.memory.join("folder.toml"),
            &FolderRecord { format: FORMAT, path, workspace, genesis, server, name, pool },
        )
    }

    fn read(memory: &Path) -> Result<Option<Self>> {
        let file = memory.join("folder.toml");
        let Some(record) = read_toml::<FolderRecord>(&file)? else { return Ok(None) };
        if record.format != FORMAT {
            return Err(CommandError::new(
                Code::Newer,
                "this was written by a newer version of Syncline",
            )
            .cause(format!("{} has format {}", file.display(), record.format)));
        }
        let genesis = hex::decode(&record.genesis).and_then(|bytes| decode_message(&bytes).ok());
        let place = match (record.server, record.pool) {
            (Some(server), None) => Some(Place::Served { server }),
            (None, Some(pool)) => pool.read().map(Place::Stored),
            _ => None,
        };
        let (Some(mut genesis), Some(place)): (Option<Genesis>, _) = (genesis, place) else {
            return Err(CommandError::new(
                Code::File,
                format!("{} makes no sense", file.display()),
            ));
        };
        if let Some(name) = record.name {
            genesis.name = name;
        }
        Ok(Some(Self {
            root: PathBuf::from(record.path),
            genesis,
            place,
            memory: memory.to_owned(),
        }))
    }

    /// Returns all folders that the home remembers.
    ///
    /// # Errors
    /// [`Code::File`].
    pub(crate) fn all(home: &Home) -> Result<Vec<Self>> {
        let mut found = Vec::new();
        let Ok(entries) = std::fs::read_dir(home.folders()) else { return Ok(found) };
        for entry in entries.flatten() {
            found.extend(Self::read(&entry.path())?);
        }
        found.sort_by(|one, other| one.root.cmp(&other.root));
        Ok(found)
    }

    /// Finds the synced folder in which `start` lies, which is followed if it is a link.
    ///
    /// # Errors
    /// [`Code::NotSynced`], [`Code::OtherFolder`].
    pub(crate) fn locate(home: &Home, start: &Path) -> Result<Self> {
        let start = match start.canonicalize() {
            Ok(start) => start,
            Err(_) => absolute(start)?,
        };
        for root in start.ancestors() {
            if let Some(identity) = read_identity(root)? {
                return Self::of_identity(home, identity, root);
            }
        }
        // A folder that is remembered and has no identity is a disk that is not mounted, or an emptied folder.
        for folder in Self::all(home)? {
            if start.starts_with(&folder.root) {
                return Err(lost_identity(&folder.root));
            }
        }
        Err(CommandError::new(
            Code::NotSynced,
            format!("{} is not in a synced folder", start.display()),
        )
        .help("syncline init", "makes it one")
        .help("syncline clone WORKSPACE", "gets an existing workspace"))
    }

    fn of_identity(home: &Home, identity: [u8; 16], root: &Path) -> Result<Self> {
        let memory = home.folders().join(format!("{:032x}", u128::from_be_bytes(identity)));
        let Some(mut folder) = Self::read(&memory)? else {
            let headline = format!("{} is synced, but not by this device", root.display());
            return Err(CommandError::new(Code::NotSynced, headline)
                .cause("the home of this device does not know the folder")
                .help(
                    format!(
                        "syncline clone WORKSPACE {}",
                        crate::text::quoted(&root.to_string_lossy())
                    ),
                    "connects it; files that are there are merged",
                ));
        };
        if folder.root == root {
            return Ok(folder);
        }
        if read_identity(&folder.root)? == Some(identity) && !is_same_folder(&folder.root, root) {
            return Err(CommandError::new(
                Code::OtherFolder,
                format!("{} is a copy of a synced folder", root.display()),
            )
            .cause(format!("the folder that is kept in sync is {}", folder.root.display()))
            .state("nothing was changed")
            .help(
                format!(
                    "rm -r {}",
                    crate::text::quoted(&root.join(SERVICE_DIRECTORY).to_string_lossy())
                ),
                "makes it a plain folder, which `init` or `clone` can take",
            ));
        }
        root.clone_into(&mut folder.root);
        folder.write()?;
        Ok(folder)
    }

    /// Finds the synced folder of a path inside of it, and the path there. A link at its end is not followed.
    ///
    /// # Errors
    /// As [`Self::locate`]; [`Code::Usage`] for a path that cannot be synced.
    pub(crate) fn locate_path(home: &Home, path: &Path) -> Result<(Self, RelativePath)> {
        let path = absolute(path)?;
        // Parts may be missing by now: the deepest folder that is there is resolved, the rest is text.
        let mut existing = path.parent().unwrap_or(&path);
        if read_identity(&path)?.is_some() {
            existing = &path;
        }
        while !existing.exists() {
            let Some(parent) = existing.parent() else { break };
            existing = parent;
        }
        let rest = path.strip_prefix(existing).unwrap_or(Path::new(""));
        let resolved =
            existing.canonicalize().map_err(|error| file_error(existing, &error))?.join(rest);
        let folder = Self::locate(
            home,
            resolved.ancestors().find(|path| path.is_dir()).unwrap_or(&resolved),
        )?;
        let inside = resolved.strip_prefix(&folder.root).map_err(|_| {
            CommandError::usage(format!(
                "{} is not in {}",
                resolved.display(),
                folder.root.display()
            ))
        })?;
        let inside = RelativePath::from_os_path(inside)
            .map_err(|error| CommandError::usage(error.to_string()))?;
        Ok((folder, inside))
    }

    /// Returns the database of the folder.
    pub(crate) fn database(&self) -> PathBuf {
        self.memory.join("state.sqlite")
    }

    /// Opens the database, for looking.
    ///
    /// # Errors
    /// As [`State::open`].
    pub(crate) fn state(&self) -> sync::error::Result<State> {
        State::open(&self.database())
    }

    /// Returns a file of the folder's memory.
    pub(crate) fn memory_file(&self, name: &str) -> PathBuf {
        self.memory.join(name)
    }

    /// Returns the identity, as the home spells it.
    pub(crate) fn identity(&self) -> String {
        self.memory.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// Moves a damaged database aside. Returns where it is now.
    ///
    /// # Errors
    /// [`Code::File`].
    pub(crate) fn set_database_aside(&self) -> Result<PathBuf> {
        let database = self.database();
        let aside = |number: u32| self.memory.join(format!("state.sqlite.damaged-{number}"));
        let number = (1..).find(|&number| !aside(number).exists()).unwrap_or(u32::MAX);
        for ending in ["-wal", "-shm", ""] {
            let from = self.memory.join(format!("state.sqlite{ending}"));
            let to = self.memory.join(format!("state.sqlite.damaged-{number}{ending}"));
            system::move_file(&from, &to).map_err(|error| file_error(&database, &error))?;
        }
        Ok(aside(number))
    }
}

/// Returns the identity of a root, if it has one.
pub(crate) fn read_identity(root: &Path) -> Result<Option<[u8; 16]>> {
    let path = root.join(SERVICE_DIRECTORY).join("root");
    let text = match system::read_text(&path) {
        Ok(text) => text,
        Err(error)
            if matches!(
                error.kind(),
                std::io::ErrorKind::NotADirectory | std::io::ErrorKind::PermissionDenied
            ) =>
        {
            None
        }
        Err(error) => return Err(file_error(&path, &error)),
    };
    let digits = text.map(|text| text.trim().to_owned());
    let digits = digits.filter(|digits| digits.len() == 32);
    Ok(digits.and_then(|digits| u128::from_str_radix(&digits, 16).ok()).map(u128::to_be_bytes))
}

fn lost_identity(root: &Path) -> CommandError {
    let reason = "its identity is missing, as on an unmounted disk".to_owned();
    let mut error = CommandError::from(sync::SyncError::RootMismatch(reason));
    error.headline = format!("{} is not the folder that was synced", root.display());
    error
}

fn is_same_folder(one: &Path, other: &Path) -> bool {
    let number = |path: &Path| path.metadata().ok().map(|data| (data.dev(), data.ino()));
    number(one) == number(other)
}

/// Makes a path absolute and takes `.` and `..` out of its text.
pub(crate) fn absolute(path: &Path) -> Result<PathBuf> {
    let path = std::path::absolute(path).map_err(|error| file_error(path, &error))?;
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            other => plain.push(other),
        }
    }
    Ok(plain)
}

/// Returns a path of the operating system as text, or says that it is none.
pub(crate) fn path_text(path: &Path) -> Result<String> {
    path.to_str().map(ToOwned::to_owned).ok_or_else(|| {
        CommandError::usage(format!("the path of the folder is not UTF-8: {}", path.display()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lose_their_dots() {
        assert_eq!(absolute(Path::new("/a/./b/../c")).unwrap(), Path::new("/a/c"));
        assert_eq!(absolute(Path::new("/../a")).unwrap(), Path::new("/a"));
    }
}
