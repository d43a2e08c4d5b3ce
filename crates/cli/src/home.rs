//! Everything that one device remembers: `SYNCLINE_HOME`, or the folders that XDG names.
//!
//! | file | holds |
//! |---|---|
//! | `config.toml` (config) | what the user sets; never written by the program |
//! | `account.toml` (data) | the server that is signed in to, and the token of this device; mode 0600 |
//! | `stores/<id>.toml` (data) | the secrets of a store of a pool; mode 0600 |
//! | `sign-ins/<service>-<hash of the URL>.toml` (data) | what a person allowed at a service; mode 0600, kept by [`storage::sign_in`] |
//! | `identities/<hash>.toml`, `people.toml` (data) | who this account is to others, and who others are; mode 0600, see [`crate::identity`] |
//! | `device.toml` (data) | the id that this device uses in stores |
//! | `people.lock` (data) | nothing; held while `people.toml` is written |
//! | `lock` (state) | nothing; whoever changes anything here holds it, see [`crate::claim`] |
//! | `folders/<identity>/` (state) | a synced folder: `folder.toml`, `state.sqlite`, `lock`, `watch.json`, `watch.log` |
//! | `server/` (data) | the data of `serve`, where no other folder is named |

mod deltas;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use model::environment::random_bytes;
use model::{DeviceId, StoreId};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use storage::credentials::{Credentials, TOKEN, TOKEN_FILE};
use storage::sign_in::wants_sign_in;
use sync::DeltaBudget;

use self::deltas::DeltaSetting;
use crate::error::{Code, CommandError, Result};
use crate::system::{self, SystemRandom, Variables};

/// Where the state of this device is.
#[derive(Debug, Clone)]
pub(crate) struct Home {
    config: PathBuf,
    data: PathBuf,
    state: PathBuf,
    /// Whether one folder holds everything.
    is_one_folder: bool,
}

/// What the user may set.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Config {
    /// How this device is called.
    pub(crate) device_name: Option<String>,
    /// How many threads read and write files.
    pub(crate) threads: Option<usize>,
    /// How long `watch` trusts its hints before it scans everything again, in seconds.
    pub(crate) rescan_after_s: Option<u64>,
    /// In how many days `watch` reads everything that is stored once; never, where it is 0.
    pub(crate) scrub_days: Option<u64>,
    /// How many bytes a second it reads at most for that.
    pub(crate) scrub_bytes_per_second: Option<u64>,
    /// After how many seconds `watch` fills a store again that was emptied; never, where it is 0.
    pub(crate) renew_after_s: Option<u64>,
    /// After how many seconds without a cleanup `watch` starts one; never, where it is 0.
    pub(crate) cleanup_after_s: Option<u64>,
    /// Whether of edited files only what is new is stored, and sums of files are kept for that; or how much work that may be.
    pub(crate) deltas: Option<DeltaSetting>,
    /// For how many seconds after a sync the next one sends new files while it looks for what others have done; never, where it is 0.
    pub(crate) send_ahead_s: Option<u64>,
    /// What is set for workspaces, by their names.
    pub(crate) workspaces: BTreeMap<String, WorkspaceConfig>,
}

/// What the user may set for a workspace. All else is that of the device.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct WorkspaceConfig {
    /// The same as for the device.
    pub(crate) deltas: Option<DeltaSetting>,
}

impl Config {
    /// Returns how much work may be done in a workspace so that edits cost little.
    pub(crate) fn delta_budget(&self, workspace: &str) -> DeltaBudget {
        let own = self.workspaces.get(workspace).and_then(|workspace| workspace.deltas);
        own.or(self.deltas).map_or_else(DeltaBudget::default, |DeltaSetting(budget)| budget)
    }
}

/// Where this device is signed in.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Account {
    /// Address of the server.
    pub(crate) server: String,
    /// Name of the account.
    pub(crate) user: String,
    /// The device, as the server knows it.
    pub(crate) device_id: String,
    /// Its name.
    pub(crate) device_name: String,
    /// What proves it.
    pub(crate) token: String,
}

/// This device, where no server gives it an id.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct DeviceRecord {
    id: String,
    /// Where it was made. Elsewhere it is a copy, and becomes a device of its own.
    place: String,
}

impl Home {
    /// Finds the home of this device.
    ///
    /// # Errors
    /// [`Code::Usage`] where no variable tells.
    pub(crate) fn find(variables: &Variables) -> Result<Self> {
        if let Some(home) = variables.path("SYNCLINE_HOME") {
            return Ok(Self::at(&std::path::absolute(&home).unwrap_or(home)));
        }
        let user = variables.path("HOME");
        let place = |variable: &str, below: &str| {
            let named = variables.path(variable).filter(|path| path.is_absolute());
            let found = named.or_else(|| Some(user.as_ref()?.join(below)));
            found.map(|path| path.join("syncline")).ok_or_else(|| {
                CommandError::usage("there is no home folder")
                    .help("SYNCLINE_HOME=DIR", "holds everything that Syncline remembers")
            })
        };
        Ok(Self {
            config: place("XDG_CONFIG_HOME", ".config")?,
            data: place("XDG_DATA_HOME", ".local/share")?,
            state: place("XDG_STATE_HOME", ".local/state")?,
            is_one_folder: false,
        })
    }

    /// Returns the home that is one folder.
    pub(crate) fn at(folder: &Path) -> Self {
        let home = folder.to_owned();
        Self { config: home.clone(), data: home.clone(), state: home, is_one_folder: true }
    }

    /// Returns the value of `SYNCLINE_HOME` that leads to this home, where one does.
    pub(crate) fn as_variable(&self) -> Option<&Path> {
        self.is_one_folder.then_some(self.state.as_path())
    }

    /// Returns the folder below which synced folders are remembered.
    pub(crate) fn folders(&self) -> PathBuf {
        self.state.join("folders")
    }

    /// Returns the file that whoever changes the home holds.
    pub(crate) fn lock(&self) -> PathBuf {
        self.state.join("lock")
    }

    /// Returns the data folder of a server, where no other is named.
    pub(crate) fn server_data(&self) -> PathBuf {
        self.data.join("server")
    }

    /// Returns the folder for reports of crashes.
    pub(crate) fn reports(&self) -> PathBuf {
        self.state.join("reports")
    }

    /// Returns the folder of the configuration.
    pub(crate) fn config_path(&self) -> PathBuf {
        self.config.join("config.toml")
    }

    /// Reads what the user has set.
    ///
    /// # Errors
    /// [`Code::Usage`] where it makes no sense.
    pub(crate) fn config(&self) -> Result<Config> {
        Ok(read_toml(&self.config_path())?.unwrap_or_default())
    }

    /// Returns the file with the secrets of a store.
    fn credentials_path(&self, store: StoreId) -> PathBuf {
        self.data.join("stores").join(format!("{store}.toml"))
    }

    /// Returns the secrets of a store; none where none were given.
    ///
    /// # Errors
    /// [`storage::StorageError::InvalidCredentials`].
    pub(crate) fn credentials(&self, store: StoreId) -> storage::Result<Credentials> {
        let path = self.credentials_path(store);
        if path.exists() { Credentials::read_file(&path) } else { Ok(Credentials::none()) }
    }

    /// Keeps the secrets of a store.
    ///
    /// # Errors
    /// [`Code::File`].
    pub(crate) fn set_credentials(&self, store: StoreId, credentials: &Credentials) -> Result<()> {
        let path = self.credentials_path(store);
        let folder = path.parent().unwrap_or(Path::new("."));
        let written = system::make_private_folder(folder)
            .and_then(|()| system::write_private(&path, &credentials.to_toml()));
        written.map_err(|error| file_error(&path, &error))
    }

    /// Forgets the secrets of a store.
    ///
    /// # Errors
    /// [`Code::File`].
    pub(crate) fn forget_credentials(&self, store: StoreId) -> Result<()> {
        let path = self.credentials_path(store);
        system::remove_file(&path).map_err(|error| file_error(&path, &error))
    }

    /// Returns the file with the sign-in to the store at a URL. It belongs to the whole URL, so that nobody who changes
    /// the address of a store gets a token that was meant for another.
    pub(crate) fn sign_in_path(&self, url: &str) -> PathBuf {
        let scheme = url.split(':').next().unwrap_or_default();
        let hash = blake3::hash(url.as_bytes()).to_hex();
        self.data.join("sign-ins").join(format!("{scheme}-{}.toml", &hash[..32]))
    }

    /// Adds the sign-in to the secrets of a store at a URL, where there is one and nothing else was given.
    pub(crate) fn signed_in(&self, url: &str, credentials: Credentials) -> Credentials {
        let scheme = url.split(':').next().unwrap_or_default();
        let is_given = [TOKEN, TOKEN_FILE].iter().any(|name| credentials.get(name).is_some());
        let path = self.sign_in_path(url);
        match path.to_str() {
            Some(text) if wants_sign_in(scheme) && !is_given && path.exists() => {
                credentials.clone().with(TOKEN_FILE, text).unwrap_or(credentials)
            }
            _ => credentials,
        }
    }

    /// Forgets the sign-in to the store at a URL.
    ///
    /// # Errors
    /// [`Code::File`].
    pub(crate) fn forget_sign_in(&self, url: &str) -> Result<()> {
        let path = self.sign_in_path(url);
        system::remove_file(&path).map_err(|error| file_error(&path, &error))
    }

    /// Returns the file with the identity of an account.
    pub(crate) fn identity_path(&self, account: &Account) -> PathBuf {
        let of = [account.server.as_bytes(), &[0], account.user.as_bytes()].concat();
        let hash = blake3::hash(&of).to_hex();
        self.data.join("identities").join(format!("{}.toml", &hash[..32]))
    }

    /// Returns the file with the identities of others.
    pub(crate) fn people_path(&self) -> PathBuf {
        self.data.join("people.toml")
    }

    /// Returns the file that is held while those are written.
    pub(crate) fn people_lock(&self) -> PathBuf {
        self.data.join("people.lock")
    }

    /// Returns the file with the account.
    pub(crate) fn account_path(&self) -> PathBuf {
        self.data.join("account.toml")
    }

    /// Returns where this device is signed in, if it is.
    ///
    /// # Errors
    /// [`Code::File`].
    pub(crate) fn account(&self) -> Result<Option<Account>> {
        read_toml(&self.account_path())
    }

    /// Remembers where this device is signed in.
    ///
    /// # Errors
    /// [`Code::File`].
    pub(crate) fn set_account(&self, account: &Account) -> Result<()> {
        write_toml(&self.account_path(), account)
    }

    /// Forgets where this device was signed in.
    ///
    /// # Errors
    /// [`Code::File`].
    pub(crate) fn forget_account(&self) -> Result<()> {
        let path = self.account_path();
        system::remove_file(&path).map_err(|error| file_error(&path, &error))
    }

    /// Returns the id of this device, which is made at its first use. A home that was copied or moved gets a new one,
    /// so that no two devices are ever taken for one.
    ///
    /// # Errors
    /// [`Code::File`].
    pub(crate) fn device_id(&self) -> Result<DeviceId> {
        let path = self.data.join("device.toml");
        let place = self.place(&system::machine_identity());
        let known: Option<DeviceRecord> = read_toml(&path)?;
        let known = known.filter(|known| known.place == place);
        if let Some(id) = known.and_then(|known| known.id.parse().ok()) {
            return Ok(id);
        }
        let id = DeviceId::from_bytes(random_bytes(&SystemRandom));
        write_toml(&path, &DeviceRecord { id: id.to_string(), place })?;
        Ok(id)
    }

    /// Returns how this device is called.
    ///
    /// # Errors
    /// As [`Self::config`].
    pub(crate) fn device_name(&self) -> Result<String> {
        Ok(self.config()?.device_name.unwrap_or_else(system::host_name))
    }

    /// Returns a number that all processes of this home share until the computer starts again, and no copy of it has.
    pub(crate) fn incarnation(&self) -> u64 {
        let place = self.place(&system::boot_identity());
        let hash = blake3::hash(place.as_bytes());
        let (first, _) = hash.as_bytes().split_at(8);
        u64::from_le_bytes(first.try_into().expect("a hash is longer than a number"))
    }

    fn place(&self, computer: &str) -> String {
        let path = self.data.canonicalize().unwrap_or_else(|_| self.data.clone());
        let mut hasher = blake3::Hasher::new();
        hasher.update(computer.as_bytes()).update(&[0]);
        hasher.update(path.as_os_str().as_encoded_bytes());
        hasher.finalize().to_hex()[..32].to_owned()
    }
}

/// Reads a file of our own.
pub(crate) fn read_toml<T: DeserializeOwned>(path: &Path) -> Result<Option<T>> {
    let Some(text) = system::read_text(path).map_err(|error| file_error(path, &error))? else {
        return Ok(None);
    };
    toml::from_str(&text).map(Some).map_err(|error| {
        CommandError::new(Code::File, format!("{} makes no sense", path.display()))
            .cause(error.message())
    })
}

/// Writes a file of our own, which only its user may read.
pub(crate) fn write_toml<T: Serialize>(path: &Path, value: &T) -> Result<()> {
    let text = toml::to_string(value).expect("records of our own can be written as TOML");
    let folder = path.parent().unwrap_or(Path::new("."));
    let written =
        system::make_private_folder(folder).and_then(|()| system::write_private(path, &text));
    written.map_err(|error| file_error(path, &error))
}

/// Turns a failure with a file of our own into an error.
pub(crate) fn file_error(path: &Path, error: &io::Error) -> CommandError {
    let code = match error.kind() {
        io::ErrorKind::PermissionDenied => Code::FileRefused,
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Code::NoSpaceHere,
        _ => Code::File,
    };
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default().to_owned();
    CommandError::new(code, format!("{} cannot be used", path.display())).cause(text)
}
