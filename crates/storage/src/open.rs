//! From the URL of a store to its driver.
//!
//! | URL | store | credentials |
//! |---|---|---|
//! | `file:/absolute/folder`, `file:relative/folder`, `file:///absolute/folder` | a folder; the text is the path as it is, without percent codes | |
//! | `memory:NAME` | memory of this process; equal names share one store | |
//! | `s3:BUCKET/PREFIX?endpoint=URL&region=NAME&public=URL` | a bucket of Amazon S3 or of a server that speaks its protocol; `public` is the address by which devices of a server reach it, `none` where they do not | `access_key`, `secret_key`, `session_token`, `certificate_file` |
//! | `swift:CONTAINER/PREFIX?auth=URL` | a container of OpenStack Swift behind TempAuth, whose address is `auth` | `user`, `password`, `certificate_file` |
//! | `swift:CONTAINER/PREFIX?storage=URL` | the same with a token that Keystone or somebody else gave | `token`, `certificate_file` |
//! | `webdav:https://HOST/PATH` | a folder on a WebDAV server | `user`, `password` or `token`, `certificate_file` |
//! | `sftp://USER@HOST:PORT/PATH` | a folder on an SSH server; `/~/PATH` begins at the home folder | `user`, `password`, `private_key`, `private_key_file`, `passphrase`, and `host_key` or `known_hosts_file` |
//! | `ftp://HOST:PORT/PATH`, `ftps://...` | a folder on an FTP server, `ftps:` with TLS (`AUTH TLS`) | `user`, `password`, `certificate_file` |
//! | `smb://HOST:PORT/SHARE/PATH` | a folder of a Windows or Samba share | `user`, `password`, `domain` |
//! | `imap://HOST:PORT/MAILBOX`, `imaps://...` | a folder of a mailbox, `imaps:` with TLS | `user`, `password`, `certificate_file` |
//! | `gcs:BUCKET/PREFIX` | a bucket of Google Cloud Storage | `service_account_file` or `token`, `certificate_file` |
//! | `azblob:CONTAINER/PREFIX?account=NAME` | a container of Azure Blob Storage | `secret_key`, or `token` (a shared access signature), `certificate_file` |
//! | `dropbox:FOLDER` | a folder of a Dropbox | `token_file` or `token` |
//! | `gdrive:FOLDER` | a folder of a Google Drive | as before |
//! | `onedrive:FOLDER` | a folder of a OneDrive, among those of programs | as before |
//! | `box:FOLDER` | a folder at Box | as before |
//! | `baidu:FOLDER` | a folder of Baidu's net disk, among those of programs | as before |
//!
//! No URL holds a secret: URLs are stored and shown. [`open_with`] takes the [`Credentials`] beside it. Stores in a
//! network are reached at their first call and not when they are opened, and a call may take as long as
//! [`crate::layers::Timed`] lets it.
//!
//! The server's store has no URL (see `server_door`). A scheme whose feature is not built in is refused by name.

#[cfg(feature = "network")]
pub(crate) mod address;
#[cfg(feature = "network")]
pub(crate) mod clock;
#[cfg(feature = "http")]
pub(crate) mod http;
#[cfg(feature = "tls")]
pub(crate) mod tls;

use std::path::Path;
use std::sync::Arc;

use crate::credentials::Credentials;
use crate::error::{Result, StorageError};
use crate::file_store::FileStore;
pub use crate::file_store::Opening;
#[cfg(feature = "network")]
use crate::layers::{Paced, Timed};
use crate::object_store::ObjectStore;
use crate::opendal_store;
#[cfg(any(
    feature = "cloud",
    feature = "store-azblob",
    feature = "store-ftp",
    feature = "store-gcs",
    feature = "store-imap",
    feature = "store-s3",
    feature = "store-sftp",
    feature = "store-smb",
    feature = "store-swift"
))]
use address::Address;

/// What [`open`] understands, for texts that say so.
pub const SUPPORTED: &str = "file:FOLDER, memory:NAME, s3:BUCKET, swift:CONTAINER, webdav:URL, sftp://HOST/FOLDER, \
                             ftp://HOST/FOLDER, smb://HOST/SHARE/FOLDER, imap://HOST/MAILBOX, \
                             gcs:BUCKET, azblob:CONTAINER, dropbox:FOLDER, gdrive:FOLDER, onedrive:FOLDER, box:FOLDER and baidu:FOLDER";

/// Opens the store that `url` names, and creates its folder when there is none; for stores without secrets.
///
/// # Errors
/// [`StorageError::InvalidUrl`] names what is supported; other errors are the driver's.
pub fn open(url: &str) -> Result<Arc<dyn ObjectStore>> {
    open_with(url, &Credentials::none(), Opening::CreateIfMissing)
}

/// Opens the store that `url` names, which must have been written before: use it for a store that is known, so that
/// a disk that is not mounted is not taken for an empty store.
///
/// # Errors
/// As [`open`]; [`StorageError::NoStore`] when no store is there.
pub fn open_existing(url: &str) -> Result<Arc<dyn ObjectStore>> {
    open_with(url, &Credentials::none(), Opening::Existing)
}

/// Opens the store that `url` names with the secrets that it asks for.
///
/// A store in a network is not yet reached: that nothing is there, or that it knows no such user, is an error of its
/// first call.
///
/// # Errors
/// [`StorageError::InvalidUrl`] names what is supported, [`StorageError::InvalidCredentials`] what is missing or too
/// much; other errors are the driver's.
pub fn open_with(
    url: &str,
    credentials: &Credentials,
    opening: Opening,
) -> Result<Arc<dyn ObjectStore>> {
    let invalid = |detail: String| StorageError::InvalidUrl { url: url.to_owned(), detail };
    let (scheme, rest) = url
        .split_once(':')
        .ok_or_else(|| invalid(format!("it has no scheme; supported are {SUPPORTED}")))?;
    match scheme {
        "file" => {
            credentials.allow_only(scheme, &[])?;
            let path = file_path(rest).map_err(|detail| invalid(detail.to_owned()))?;
            Ok(Arc::new(FileStore::open(Path::new(path), opening)?))
        }
        "memory" if rest.is_empty() => Err(invalid("memory: wants a name after it".to_owned())),
        "memory" => {
            credentials.allow_only(scheme, &[])?;
            Ok(opendal_store::shared_memory(rest))
        }
        _ => open_in_network(scheme, rest, credentials, opening),
    }
}

/// Opens a store in a network, behind a limit of the time that a call may take.
#[cfg(feature = "network")]
fn open_in_network(
    scheme: &str,
    rest: &str,
    credentials: &Credentials,
    opening: Opening,
) -> Result<Arc<dyn ObjectStore>> {
    let store: Arc<dyn ObjectStore> = match scheme {
        #[cfg(feature = "store-s3")]
        "s3" => {
            marked(crate::s3_store::open(&Address::parse(scheme, rest)?, credentials)?, opening)
        }
        #[cfg(feature = "store-swift")]
        "swift" => {
            let address = Address::parse(scheme, rest)?;
            let store = crate::swift_store::SwiftStore::new(&address, credentials, opening)?;
            marked(store, opening)
        }
        #[cfg(feature = "store-webdav")]
        "webdav" => {
            let tree = crate::webdav_store::WebdavTree::new(rest, credentials)?;
            in_tree(tree, opening)
        }
        #[cfg(feature = "store-sftp")]
        "sftp" => {
            let tree =
                crate::sftp_store::SftpTree::new(&Address::parse(scheme, rest)?, credentials)?;
            in_tree(tree, opening)
        }
        #[cfg(feature = "store-ftp")]
        "ftp" | "ftps" => {
            let tree = crate::ftp_store::FtpTree::new(
                scheme,
                &Address::parse(scheme, rest)?,
                credentials,
            )?;
            in_tree(tree, opening)
        }
        #[cfg(feature = "store-smb")]
        "smb" => {
            let tree = crate::smb_store::SmbTree::new(&Address::parse(scheme, rest)?, credentials)?;
            in_tree(tree, opening)
        }
        #[cfg(feature = "store-imap")]
        "imap" | "imaps" => {
            let address = Address::parse(scheme, rest)?;
            let store = crate::imap_store::ImapStore::new(scheme, &address, credentials, opening)?;
            marked(store, opening)
        }
        #[cfg(feature = "store-gcs")]
        "gcs" => {
            let address = Address::parse(scheme, rest)?;
            marked(crate::gcs_store::GcsStore::new(&address, credentials)?, opening)
        }
        #[cfg(feature = "store-azblob")]
        "azblob" => {
            let address = Address::parse(scheme, rest)?;
            let store = crate::azure_store::AzureStore::new(&address, credentials, opening)?;
            marked(store, opening)
        }
        #[cfg(feature = "cloud")]
        scheme if crate::sign_in::wants_sign_in(scheme) => {
            let address = Address::parse(scheme, rest)?;
            let store = crate::clouds::open(scheme, &address, credentials)?;
            marked(store.ok_or_else(|| unsupported(scheme))?, opening)
        }
        _ => return Err(unsupported(scheme)),
    };
    // Outside the limit of time: a call that waits for its turn has not begun.
    let clock = Arc::new(clock::RuntimeClock::new());
    Ok(Arc::new(Paced::new(Arc::new(Timed::new(store)), clock)))
}

#[cfg(any(
    feature = "store-ftp",
    feature = "store-sftp",
    feature = "store-smb",
    feature = "store-webdav"
))]
fn in_tree(
    tree: impl crate::tree_store::RemoteTree + 'static,
    opening: Opening,
) -> Arc<dyn ObjectStore> {
    Arc::new(crate::tree_store::TreeStore::new(tree, opening))
}

/// Buckets, containers and mailboxes are there also when no store is.
#[cfg(any(
    feature = "cloud",
    feature = "store-azblob",
    feature = "store-gcs",
    feature = "store-imap",
    feature = "store-s3",
    feature = "store-swift"
))]
fn marked(store: impl ObjectStore + 'static, opening: Opening) -> Arc<dyn ObjectStore> {
    Arc::new(crate::layers::Marked::new(Arc::new(store), opening))
}

#[cfg(not(feature = "network"))]
fn open_in_network(
    scheme: &str,
    _rest: &str,
    _credentials: &Credentials,
    _opening: Opening,
) -> Result<Arc<dyn ObjectStore>> {
    Err(unsupported(scheme))
}

/// The rest of the text is not shown, because it was not checked for secrets.
fn unsupported(scheme: &str) -> StorageError {
    let mut known = SUPPORTED.split(' ').filter_map(|word| word.split_once(':'));
    let detail = match known.any(|(known, _)| known == scheme) {
        true => "this program was built without the driver for it".to_owned(),
        false => format!("it is not supported; supported are {SUPPORTED}"),
    };
    StorageError::InvalidUrl { url: format!("{scheme}:"), detail }
}

/// Returns the path in what follows `file:`.
fn file_path(rest: &str) -> Result<&str, &'static str> {
    let path = match rest.strip_prefix("//") {
        None => rest,
        Some(after) => {
            let slash = after.find('/').ok_or("file:// wants an absolute path after it")?;
            if !matches!(&after[..slash], "" | "localhost") {
                return Err("a file: URL names a folder of this computer, so it has no host");
            }
            &after[slash..]
        }
    };
    if path.is_empty() { Err("file: wants a folder after it") } else { Ok(path) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_of_a_file_url_gives_its_path() {
        for (rest, path) in [
            ("/a/b", "/a/b"),
            ("a/b", "a/b"),
            ("///a/b", "/a/b"),
            ("//localhost/a", "/a"),
            ("/with space/%20", "/with space/%20"),
        ] {
            assert_eq!(file_path(rest), Ok(path));
        }
        for rest in ["", "//", "//host/a", "//relative"] {
            assert!(file_path(rest).is_err(), "{rest}");
        }
    }

    #[test]
    fn a_refused_url_says_what_is_supported() {
        for url in ["gopher:x", "/plain/path", "", "x:y"] {
            let text = open(url).unwrap_err().to_string();
            assert!(text.contains(SUPPORTED), "{text}");
        }
        assert!(open("memory:").is_err());
    }
}
