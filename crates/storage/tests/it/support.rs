//! What several tests need.

use std::sync::Arc;

use bytes::Bytes;
use model::PackId;
use storage::file_store::{FileStore, Opening};
use storage::opendal_store::OpendalStore;
use storage::{ObjectKey, ObjectStore};

pub(crate) fn memory() -> Arc<dyn ObjectStore> {
    Arc::new(OpendalStore::memory("test"))
}

pub(crate) fn file_store(folder: &std::path::Path) -> Arc<dyn ObjectStore> {
    Arc::new(FileStore::open(folder, Opening::CreateIfMissing).unwrap())
}

pub(crate) fn key(text: &str) -> ObjectKey {
    ObjectKey::new(text).unwrap()
}

/// A pack: any bytes, and their id.
pub(crate) fn pack(seed: u64, length: usize) -> (PackId, Bytes) {
    let mut bytes = vec![0; length];
    blake3::Hasher::new().update(&seed.to_le_bytes()).finalize_xof().fill(&mut bytes);
    (PackId::from_bytes(*blake3::hash(&bytes).as_bytes()), bytes.into())
}

/// All files below a folder, as paths relative to it.
pub(crate) fn all_files(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                found.push(path.strip_prefix(folder).unwrap().to_owned());
            }
        }
    }
    found.sort();
    found
}
