//! From the URL of a store to its driver.
//!
//! | URL | store |
//! |---|---|
//! | `file:/absolute/folder`, `file:relative/folder`, `file:///absolute/folder` | a folder; the text is the path as it is, without percent codes |
//! | `memory:NAME` | memory of this process; equal names share one store |
//!
//! The server's store has no URL: it needs a token, which must not stand in one (see `server_door`).

use std::path::Path;
use std::sync::Arc;

use crate::error::{Result, StorageError};
use crate::file_store::{FileStore, Opening};
use crate::object_store::ObjectStore;
use crate::opendal_store;

/// What [`open`] understands, for texts that say so.
pub const SUPPORTED: &str = "file:FOLDER and memory:NAME";

/// Opens the store that `url` names, and creates its folder when there is none.
///
/// # Errors
/// [`StorageError::InvalidUrl`] names what is supported; other errors are the driver's.
pub fn open(url: &str) -> Result<Arc<dyn ObjectStore>> {
    open_as(url, Opening::CreateIfMissing)
}

/// Opens the store that `url` names, which must have been written before: use it for a store that is known, so that
/// a disk that is not mounted is not taken for an empty store.
///
/// # Errors
/// As [`open`]; [`StorageError::NotReachable`] when no store is there.
pub fn open_existing(url: &str) -> Result<Arc<dyn ObjectStore>> {
    open_as(url, Opening::Existing)
}

fn open_as(url: &str, opening: Opening) -> Result<Arc<dyn ObjectStore>> {
    let invalid = |detail: String| StorageError::InvalidUrl { url: url.to_owned(), detail };
    let (scheme, rest) = url
        .split_once(':')
        .ok_or_else(|| invalid(format!("it has no scheme; supported are {SUPPORTED}")))?;
    match scheme {
        "file" => {
            let path = file_path(rest).map_err(|detail| invalid(detail.to_owned()))?;
            Ok(Arc::new(FileStore::open(Path::new(path), opening)?))
        }
        "memory" if rest.is_empty() => Err(invalid("memory: wants a name after it".to_owned())),
        "memory" => Ok(opendal_store::shared_memory(rest)),
        _ => Err(invalid(format!("'{scheme}:' is not supported; supported are {SUPPORTED}"))),
    }
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
        for url in ["s3:bucket", "/plain/path", "", "ftp://host/x"] {
            let text = open(url).unwrap_err().to_string();
            assert!(text.contains(SUPPORTED), "{text}");
        }
        assert!(open("memory:").is_err());
    }
}
