//! A store in a folder tree of another machine: what SFTP, FTP, WebDAV and SMB have in common.
//!
//! *Participants*: [`TreeStore`], which keeps the promises of [`crate::object_store`], and a [`RemoteTree`], which
//! speaks one protocol. *Goals*: objects that appear whole and at once, exclusive creation that no crash leaves half
//! done, an absence that was looked up. *Non-goals*: removing at once what a crashed writer left aside.
//! *Invariants*:
//!
//! * Bytes are written under a random name in the folder aside, and become an object by one step of the server.
//! * Exclusive creation is that one step ([`Exclusive`]), so there is no lock that a crash could leave behind:
//!   either a hard link, or the renaming of a folder that holds nothing but the bytes. A file system replaces a file
//!   that is renamed onto another, but never a folder that holds something, so of two such renames one fails.
//! * With folders, an object is the file of its key or the file [`OBJECT`] in the folder of its key. Both cannot be
//!   there at once: a folder is not renamed onto a file, nor a file onto a folder.
//! * "Nothing there" is said only while the format file can be seen: a disk that is not mounted on the server shows an
//!   empty folder.

mod walk;

use std::fmt;
use std::ops::Range;

use async_trait::async_trait;
use bytes::Bytes;
use model::hex;
use tokio::sync::OnceCell;

use crate::error::{Result, StorageError};
use crate::file_store::Opening;
use crate::key::{ObjectKey, check_prefix};
use crate::object_store::{
    ObjectEntry, ObjectStore, PutMode, PutOutcome, WHOLE, askable, check_size, whole,
};

/// The file of an object inside the folder of its key. No key has capital letters.
pub(crate) const OBJECT: &str = "OBJECT";

/// How often a put looks again at what stood in its way: each time it was removed by somebody else.
const ATTEMPTS_MAX: usize = 5;

/// The step by which a server creates something only where nothing is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exclusive {
    /// [`RemoteTree::link`]; the tree then looks like that of a file store, and may be one.
    Link,
    /// [`RemoteTree::move_folder`].
    Folder,
}

/// The names that belong to the store and not to its keys.
struct Layout {
    format_file: &'static str,
    format: &'static str,
    aside: &'static str,
}

/// As in a file store, which keeps its own half-written files in another folder.
const LINKED: Layout =
    Layout { format_file: ".format", format: "syncline file store 1\n", aside: ".aside" };
/// Without leading dots, because some FTP servers do not list what has one.
const FOLDERS: Layout = Layout {
    format_file: "SYNCLINE-FORMAT",
    format: "syncline folder store 1\n",
    aside: "SYNCLINE-ASIDE",
};

/// What stands in a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TreeEntry {
    pub(crate) name: String,
    /// The size of a file; nothing for a folder.
    pub(crate) size: Option<u64>,
}

/// A folder tree on a server. Paths are relative to the root of the store, which is the empty path.
///
/// `false` says that the server understood and did not do it; why is found out by looking. An error says that nothing
/// is known.
#[async_trait]
pub(crate) trait RemoteTree: fmt::Debug + Send + Sync {
    /// Names the store in error texts.
    fn describe(&self) -> String;

    /// Says how something is created only where nothing is.
    fn exclusive(&self) -> Exclusive;

    /// Whether [`Self::write`] replaces a file in one step while [`Self::rename`] does not; then every object lies in a
    /// folder of its own.
    fn replaces_in_place(&self) -> bool {
        false
    }

    /// Makes the root folder and those above it, where they are missing.
    async fn make_root(&self) -> Result<()>;

    /// Returns what stands in a folder, in any order, or nothing when there is no such folder.
    async fn entries(&self, folder: &str) -> Result<Option<Vec<TreeEntry>>>;

    /// Returns the size of a file, or nothing when there is no file of this name.
    async fn size(&self, path: &str) -> Result<Option<u64>>;

    /// Reads what of a file lies in `range`, which is not empty; nothing when there is no file of this name.
    async fn read(&self, path: &str, range: Range<u64>) -> Result<Option<Bytes>>;

    /// Writes a new file in a folder that exists, as durably as the protocol can ask for.
    async fn write(&self, path: &str, bytes: Bytes) -> Result<()>;

    /// Gives a file another name, replacing a file that has it.
    async fn rename(&self, _source: &str, _target: &str) -> Result<bool> {
        Err(unsupported(self.describe(), "rename files"))
    }

    /// Gives a file another name only where nothing is, in one step; the old name may stay.
    async fn link(&self, _source: &str, _target: &str) -> Result<bool> {
        Err(unsupported(self.describe(), "link files"))
    }

    /// Gives a folder another name; never that of a file, or of a folder that holds something.
    async fn move_folder(&self, _source: &str, _target: &str) -> Result<bool> {
        Err(unsupported(self.describe(), "rename folders"))
    }

    /// Makes a folder in a folder that exists.
    async fn make_folder(&self, path: &str) -> Result<bool>;

    /// Removes a file.
    async fn remove_file(&self, path: &str) -> Result<bool>;

    /// Removes a folder that is empty.
    async fn remove_folder(&self, path: &str) -> Result<bool>;

    /// Removes the folder of an object that has no file any more; never one that holds something.
    async fn remove_object_folder(&self, path: &str) -> Result<bool> {
        self.remove_folder(path).await
    }
}

/// A store in a folder tree.
#[derive(Debug)]
pub(crate) struct TreeStore<T> {
    tree: T,
    opening: Opening,
    is_ready: OnceCell<()>,
}

impl<T: RemoteTree> TreeStore<T> {
    /// Opens the store; the server is reached at the first call.
    pub(crate) fn new(tree: T, opening: Opening) -> Self {
        Self { tree, opening, is_ready: OnceCell::new() }
    }

    fn layout(&self) -> &'static Layout {
        match self.tree.exclusive() {
            Exclusive::Link => &LINKED,
            Exclusive::Folder => &FOLDERS,
        }
    }

    /// Looks at the root before the first call, and makes the store where it may.
    async fn ready(&self) -> Result<()> {
        self.is_ready.get_or_try_init(|| self.prepare()).await.map(|_| ())
    }

    async fn prepare(&self) -> Result<()> {
        let layout = self.layout();
        if self.has_format().await? {
            // It may be gone: some people delete what looks like rubbish.
            self.tree.make_folder(layout.aside).await?;
            return Ok(());
        }
        if self.opening == Opening::Existing {
            return Err(self.no_store());
        }
        self.tree.make_root().await?;
        self.tree.make_folder(layout.aside).await?;
        if self.tree.replaces_in_place() {
            return self.tree.write(layout.format_file, layout.format.into()).await;
        }
        let aside = self.aside()?;
        self.tree.write(&aside, layout.format.into()).await?;
        if !self.tree.rename(&aside, layout.format_file).await? {
            return Err(self.refused("write", layout.format_file));
        }
        Ok(())
    }

    /// Returns whether the format file is there; fails when it names an unknown format.
    async fn has_format(&self) -> Result<bool> {
        let layout = self.layout();
        let found = self.tree.read(layout.format_file, 0..64).await?;
        match found {
            None => Ok(false),
            Some(found) if found == layout.format.as_bytes() => Ok(true),
            Some(found) => {
                let found = String::from_utf8_lossy(&found).trim().escape_debug().to_string();
                Err(StorageError::UnknownFormat { store: self.describe(), found })
            }
        }
    }

    /// Returns that there is nothing, once it is sure that the store itself is there.
    async fn absent<A: Default>(&self) -> Result<A> {
        match self.tree.size(self.layout().format_file).await? {
            Some(_) => Ok(A::default()),
            None => Err(self.no_store()),
        }
    }

    fn no_store(&self) -> StorageError {
        StorageError::NoStore {
            store: self.describe(),
            detail: "its folder holds no store (is the disk of the server mounted?)".to_owned(),
        }
    }

    fn refused(&self, verb: &str, what: &str) -> StorageError {
        StorageError::PermissionDenied {
            store: self.describe(),
            detail: format!("the server does not {verb} {what}"),
        }
    }

    /// Returns a path aside that nobody else uses.
    fn aside(&self) -> Result<String> {
        let mut token = [0; 16];
        getrandom::fill(&mut token).map_err(|error| StorageError::Failed {
            store: self.describe(),
            operation: "find a random name".to_owned(),
            source: Box::new(error),
        })?;
        Ok(format!("{}/{}", self.layout().aside, hex::encode(&token)))
    }

    /// Returns the paths at which the object may lie, the likelier first.
    fn places(&self, key: &ObjectKey) -> Vec<String> {
        let (file, folder) = (key.to_string(), format!("{key}/{OBJECT}"));
        match self.tree.exclusive() {
            Exclusive::Link => vec![file],
            Exclusive::Folder if self.tree.replaces_in_place() => vec![folder],
            Exclusive::Folder if is_deferred(key) => vec![file, folder],
            Exclusive::Folder => vec![folder, file],
        }
    }

    async fn find_size(&self, key: &ObjectKey) -> Result<Option<u64>> {
        for place in self.places(key) {
            if let Some(size) = self.tree.size(&place).await? {
                return Ok(Some(size));
            }
        }
        Ok(None)
    }

    async fn find(&self, key: &ObjectKey, range: Range<u64>) -> Result<Option<Bytes>> {
        self.ready().await?;
        for place in self.places(key) {
            if let Some(bytes) = self.tree.read(&place, range.clone()).await? {
                return Ok(Some(bytes));
            }
        }
        self.absent().await
    }

    /// Makes the folders that the key needs.
    async fn make_parents(&self, key: &ObjectKey) -> Result<()> {
        for (at, _) in key.as_str().match_indices('/') {
            self.tree.make_folder(&key.as_str()[..at]).await?;
        }
        Ok(())
    }

    /// Removes the folders of the key that are empty now.
    async fn prune(&self, key: &ObjectKey) -> Result<()> {
        for (at, _) in key.as_str().rmatch_indices('/') {
            if !self.tree.remove_folder(&key.as_str()[..at]).await? {
                break;
            }
        }
        Ok(())
    }

    async fn create(&self, key: &ObjectKey, bytes: Bytes) -> Result<PutOutcome> {
        let aside = self.aside()?;
        let by_link = self.tree.exclusive() == Exclusive::Link;
        let file = if by_link { aside.clone() } else { format!("{aside}/{OBJECT}") };
        if !by_link && !self.tree.make_folder(&aside).await? {
            return Err(self.refused("make", &aside));
        }
        self.tree.write(&file, bytes).await?;
        let outcome = self.create_from(key, &aside).await;
        let is_moved = !by_link && matches!(outcome, Ok(PutOutcome::Written));
        if !is_moved {
            self.tree.remove_file(&file).await?;
        }
        if !is_moved && !by_link {
            self.tree.remove_object_folder(&aside).await?;
        }
        outcome
    }

    async fn create_from(&self, key: &ObjectKey, aside: &str) -> Result<PutOutcome> {
        for _ in 0..ATTEMPTS_MAX {
            let is_created = match self.tree.exclusive() {
                Exclusive::Link => self.tree.link(aside, key.as_str()).await?,
                Exclusive::Folder => self.tree.move_folder(aside, key.as_str()).await?,
            };
            if is_created {
                return Ok(PutOutcome::Written);
            }
            if self.find_size(key).await?.is_some() {
                return Ok(PutOutcome::Exists);
            }
            if self.tree.exclusive() == Exclusive::Folder {
                // What a delete left; some servers rename onto no folder, not even an empty one.
                self.tree.remove_object_folder(key.as_str()).await?;
            }
            self.make_parents(key).await?;
        }
        Err(self.in_the_way(key).await)
    }

    async fn overwrite_in_place(&self, key: &ObjectKey, bytes: Bytes) -> Result<PutOutcome> {
        let exists = self.find_size(key).await?.is_some();
        if !exists && self.create(key, bytes.clone()).await? == PutOutcome::Written {
            return Ok(PutOutcome::Written);
        }
        self.tree.write(&format!("{key}/{OBJECT}"), bytes).await?;
        Ok(PutOutcome::Written)
    }

    async fn overwrite(&self, key: &ObjectKey, bytes: Bytes) -> Result<PutOutcome> {
        let aside = self.aside()?;
        self.tree.write(&aside, bytes).await?;
        for _ in 0..ATTEMPTS_MAX {
            if self.tree.rename(&aside, key.as_str()).await? {
                return Ok(PutOutcome::Written);
            }
            let inside = format!("{key}/{OBJECT}");
            if self.tree.exclusive() == Exclusive::Folder
                && self.tree.size(&inside).await?.is_some()
                && self.tree.rename(&aside, &inside).await?
            {
                return Ok(PutOutcome::Written);
            }
            self.make_parents(key).await?;
        }
        self.tree.remove_file(&aside).await?;
        Err(self.in_the_way(key).await)
    }

    /// Says why nothing can be put at `key`.
    async fn in_the_way(&self, key: &ObjectKey) -> StorageError {
        let text = key.as_str();
        for (at, _) in text.match_indices('/') {
            match self.tree.size(&text[..at]).await {
                Ok(None) => {}
                Ok(Some(_)) => {
                    let detail = "an object has the name of one of its folders";
                    return StorageError::InvalidKey { key: text.to_owned(), detail };
                }
                Err(error) => return error,
            }
        }
        match self.tree.entries(text).await {
            // What another writer puts there in this moment is no folder of other objects.
            Ok(Some(entries)) if entries.iter().any(|entry| entry.name != OBJECT) => {
                let detail = "it is a folder of other objects";
                StorageError::InvalidKey { key: text.to_owned(), detail }
            }
            Ok(_) => self.vanished(key).await.unwrap_or_else(|error| error),
            Err(error) => error,
        }
    }

    /// Says why nothing was put at `key` although nothing stands there: either others write and delete there all the
    /// time, or the server takes nothing in that folder, which is found out by making a folder beside it.
    async fn vanished(&self, key: &ObjectKey) -> Result<StorageError> {
        let text = key.as_str();
        let aside = self.aside()?;
        let token = aside.rsplit('/').next().unwrap_or(&aside);
        let beside = match text.rsplit_once('/') {
            Some((parent, _)) => format!("{parent}/{token}"),
            None => token.to_owned(),
        };
        // Whoever deletes at the key removes its empty folders, perhaps in the middle of this.
        for _ in 0..ATTEMPTS_MAX {
            self.make_parents(key).await?;
            if self.tree.make_folder(&beside).await? {
                self.tree.remove_object_folder(&beside).await?;
                let detail = format!("others write and delete {text} at the same time");
                return Ok(StorageError::Busy { store: self.describe(), detail });
            }
        }
        Ok(self.refused("write", text))
    }
}

fn unsupported(store: String, operation: &'static str) -> StorageError {
    StorageError::Unsupported { store, operation }
}

/// Returns whether the key is that of a pack or a page, also inside a scope: they are written as files.
fn is_deferred(key: &ObjectKey) -> bool {
    ["packs", "pages"].iter().any(|kind| key.as_str().split('/').any(|segment| segment == *kind))
}

#[async_trait]
impl<T: RemoteTree> ObjectStore for TreeStore<T> {
    fn describe(&self) -> String {
        self.tree.describe()
    }

    async fn put(&self, key: &ObjectKey, bytes: Bytes, mode: PutMode) -> Result<PutOutcome> {
        check_size(key, bytes.len() as u64)?;
        self.ready().await?;
        match mode {
            PutMode::Overwrite if self.tree.replaces_in_place() => {
                self.overwrite_in_place(key, bytes).await
            }
            PutMode::Overwrite => self.overwrite(key, bytes).await,
            PutMode::IfAbsent => self.create(key, bytes).await,
        }
    }

    /// As the key names the content, replacing is as good as leaving, and costs less.
    async fn put_deferred(&self, key: &ObjectKey, bytes: Bytes) -> Result<()> {
        self.put(key, bytes, PutMode::Overwrite).await.map(drop)
    }

    async fn get(&self, key: &ObjectKey) -> Result<Option<Bytes>> {
        whole(key, self.find(key, WHOLE).await?)
    }

    async fn get_range(&self, key: &ObjectKey, range: Range<u64>) -> Result<Option<Bytes>> {
        match askable(&range) {
            Some(range) => self.find(key, range).await,
            None => Ok(ObjectStore::size(self, key).await?.map(|_| Bytes::new())),
        }
    }

    async fn size(&self, key: &ObjectKey) -> Result<Option<u64>> {
        self.ready().await?;
        match self.find_size(key).await? {
            Some(size) => Ok(Some(size)),
            None => self.absent().await,
        }
    }

    async fn list(
        &self,
        prefix: &str,
        start_after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<ObjectEntry>> {
        check_prefix(prefix)?;
        self.ready().await?;
        let found = walk::list(&self.tree, prefix, start_after.unwrap_or(""), limit).await?;
        if found.is_empty() && limit > 0 { self.absent().await } else { Ok(found) }
    }

    async fn delete(&self, key: &ObjectKey) -> Result<()> {
        self.ready().await?;
        for place in self.places(key) {
            if self.tree.remove_file(&place).await? {
                if place.len() > key.as_str().len() {
                    self.tree.remove_object_folder(key.as_str()).await?;
                }
                return self.prune(key).await;
            }
        }
        match self.find_size(key).await? {
            Some(_) => Err(self.refused("delete", key.as_str())),
            None => self.absent().await,
        }
    }
}

#[cfg(all(test, feature = "testing"))]
#[expect(clippy::disallowed_methods, reason = "the tree of these tests is a folder of this disk")]
#[expect(clippy::unwrap_used, reason = "helpers of tests fail as the tests themselves do")]
mod tests;
