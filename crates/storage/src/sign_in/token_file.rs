//! The file of a sign-in: what the person allowed, in a form that outlives a crash.
//!
//! It is a credentials file with the names `client_id`, `client_secret`, `refresh_token`, `token` and `expires`. It is
//! replaced whole, after a flush, under a lock on the file beside it that ends in `.lock`.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::{Held, TokenAnswer};
use crate::blocking::off_runtime;
use crate::credentials::{
    CLIENT_ID, CLIENT_SECRET, Credentials, EXPIRES, REFRESH_TOKEN, TOKEN, invalid,
};
use crate::error::Result;

/// The contents of the file.
#[derive(Debug, Clone)]
pub(super) struct Kept(Credentials);

impl Kept {
    /// Begins a file for a program that the user registered.
    pub(super) fn new(client_id: &str, client_secret: Option<&str>) -> Result<Self> {
        let mut credentials = Credentials::none().with(CLIENT_ID, client_id)?;
        if let Some(secret) = client_secret {
            credentials.set(CLIENT_SECRET, secret)?;
        }
        Ok(Self(credentials))
    }

    /// Takes in what the service gave at the time `now`. A refresh token that it does not repeat stays valid.
    pub(super) fn take(&mut self, answer: TokenAnswer, now: i64) -> Result<()> {
        self.0.set(TOKEN, answer.access_token)?;
        if let Some(refresh_token) = answer.refresh_token {
            self.0.set(REFRESH_TOKEN, refresh_token)?;
        }
        let seconds = answer.expires_in.unwrap_or(ENDLESS_S).min(ENDLESS_S);
        let end = now.saturating_add(i64::try_from(seconds).unwrap_or(i64::MAX));
        self.0.set(EXPIRES, end.to_string())
    }

    /// Returns the token.
    pub(super) fn held(&self) -> Option<Held> {
        let expires = self.0.get(EXPIRES).and_then(|text| text.parse().ok());
        self.0.get(TOKEN).map(|token| Held { token: token.into(), expires })
    }

    pub(super) fn required(&self, name: &str) -> Result<&str> {
        self.0.required(name, "the file of the sign-in")
    }

    /// Returns the registered program, and its secret.
    pub(super) fn client(&self) -> Result<(&str, Option<&str>)> {
        Ok((self.required(CLIENT_ID)?, self.0.get(CLIENT_SECRET)))
    }
}

/// What counts as the life of a token of which nothing is said; if it ends earlier, the service says so.
const ENDLESS_S: u64 = 10 * 365 * 24 * 3600;

/// A file of a sign-in.
#[derive(Debug, Clone)]
pub(super) struct TokenFile(PathBuf);

/// The right to renew it, until it is dropped.
#[derive(Debug)]
pub(super) struct Lock {
    _file: File,
}

impl TokenFile {
    pub(super) fn new(path: PathBuf) -> Self {
        Self(path)
    }

    /// Reads the file, which only its owner may read.
    pub(super) async fn read(&self) -> Result<Kept> {
        let path = self.0.clone();
        off_runtime(move || Credentials::read_file(&path).map(Kept)).await
    }

    /// Waits for the right to renew.
    pub(super) async fn lock(&self) -> Result<Lock> {
        let path = self.0.with_extension("lock");
        off_runtime(move || {
            let opened = private(OpenOptions::new().create(true).truncate(false), &path);
            let locked = opened.and_then(|file| file.lock().map(|()| file));
            locked.map(|file| Lock { _file: file }).map_err(|error| unusable(&path, &error))
        })
        .await
    }

    /// Replaces the file; when this returns, a power cut does not bring the old one back.
    pub(super) async fn write(&self, kept: Kept) -> Result<()> {
        let path = self.0.clone();
        off_runtime(move || {
            replace(&path, &kept.0.to_toml()).map_err(|error| unusable(&path, &error))
        })
        .await
    }
}

#[expect(clippy::disallowed_methods, reason = "the file of a sign-in has its home here")]
fn private(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    options.write(true).mode(0o600).open(path)
}

#[expect(clippy::disallowed_methods, reason = "the file of a sign-in has its home here")]
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let aside = path.with_extension("new");
    match std::fs::remove_file(&aside) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = private(OpenOptions::new().create_new(true), &aside)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    std::fs::rename(&aside, path)?;
    match path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        Some(folder) => File::open(folder)?.sync_all(),
        None => File::open(".")?.sync_all(),
    }
}

fn unusable(path: &Path, error: &io::Error) -> crate::error::StorageError {
    invalid(format!("the file {} cannot be used: {error}", path.display()))
}
