//! A synced folder as a tree of files for the door of WebDAV (`docs/design/gateway.md`).
//!
//! *Participants*: the door ([`server::serve_tree`]), whose requests come in at the same time; the user and other programs,
//! who change the folder at any moment; the engine, which is one of them and carries what changes to other devices. *Goals*:
//! whoever changes a file here is told the truth: with an answer of success it is durable, whole and under its name. *Non-goals*:
//! to commit by itself; to show what is not synced. *Invariants*: nothing outside of the folder is reached; every change is
//! checked at its own moment against what the request rests on; what is displaced is in the history, or was put here by the
//! same door, or goes to the trash of the folder.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream, try_unfold};
use model::{Clock, Random, RelativePath, Timestamp, WorkspaceId};
use parking_lot::Mutex;
use server::doors::tree::{
    Changed, Checksums, Condition, Destination, FileTree, Item, ItemKind, KnownChecksums, Promises,
    Put, Room, Spooled, Spools,
};
use server::metadata::AccountId;
use server::services::locks::Locks;
use server::{Result, ServerError};
use sync::file_system::native::NativeFileSystem;
use sync::file_system::{FileKind, OpenFile, SERVICE_DIRECTORY, Stat};
use sync::state::State;

mod changes;
mod copying;
mod durability;
mod looking;
pub(crate) mod password;
mod rules;

use durability::Durability;
use looking::refusal;
use rules::FolderRules;

/// How many entries of a folder are sent at once.
const PAGE: usize = 1000;

/// How much of a file is read at once, in bytes.
const PIECE: usize = 256 * 1024;

/// The only account that there is.
const OWNER: AccountId = AccountId::ALONE;

/// What a gateway needs to know of a folder.
pub(crate) struct GatewayOptions {
    /// Where it is.
    pub(crate) root: PathBuf,
    /// The workspace it belongs to.
    pub(crate) workspace: WorkspaceId,
    /// Whether nobody may change anything.
    pub(crate) is_read_only: bool,
    /// What is known to be in the history; nothing where that cannot be read.
    pub(crate) state: Option<State>,
    /// The time.
    pub(crate) clock: Arc<dyn Clock>,
    /// Randomness.
    pub(crate) random: Arc<dyn Random>,
}

/// A synced folder. Cheap to clone.
#[derive(Clone)]
pub(crate) struct FolderTree(Arc<OpenFolder>);

/// What all requests share. Its methods block.
struct OpenFolder {
    root: PathBuf,
    workspace: WorkspaceId,
    is_read_only: bool,
    files: NativeFileSystem,
    durability: Durability,
    rules: Mutex<FolderRules>,
    state: Mutex<Option<State>>,
    /// Those of the files that were put here, by what names them.
    checksums: KnownChecksums,
    locks: Locks,
    spools: Spools,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
}

impl FolderTree {
    /// Opens a folder.
    ///
    /// # Errors
    /// Those of the file system.
    pub(crate) fn open(options: GatewayOptions) -> sync::error::Result<Self> {
        let GatewayOptions { root, workspace, is_read_only, state, clock, random } = options;
        let files = NativeFileSystem::open(&root)?;
        // On the disk that has the plain text anyway, under no name.
        let spools = Spools::new(root.join(SERVICE_DIRECTORY));
        Ok(Self(Arc::new(OpenFolder {
            root,
            workspace,
            is_read_only,
            files,
            durability: Durability::default(),
            rules: Mutex::default(),
            state: Mutex::new(state),
            checksums: KnownChecksums::default(),
            locks: Locks::default(),
            spools,
            clock,
            random,
        })))
    }

    /// Does something that blocks, where that keeps nobody else waiting.
    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&OpenFolder) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let folder = Arc::clone(&self.0);
        let done = tokio::task::spawn_blocking(move || work(&folder)).await;
        done.unwrap_or(Err(ServerError::Unavailable { reason: "is stopping" }))
    }
}

/// Returns what is told of a file or folder.
fn item(path: &RelativePath, stat: Stat) -> Item<Stat> {
    let kind = match stat.kind {
        FileKind::Directory => ItemKind::Folder,
        FileKind::File => ItemKind::File(stat.size),
        FileKind::Symlink | FileKind::Other => ItemKind::Link,
    };
    let name = path.split_last().map(|(_, name)| name);
    Item { name, kind, etag: etag(&stat), modified: stat.modified, handle: stat }
}

/// Returns what names a version of a file: what the file system says of it. A file that was put is a new one, so the name of
/// what it replaced does not come back; what a program writes into a file shows in its change time.
fn etag(stat: &Stat) -> String {
    let Stat { inode, size, modified, changed, .. } = stat;
    let time = |time: &Timestamp| format!("{:x}.{:x}", time.seconds, time.nanoseconds);
    format!("\"{inode:x}-{size:x}-{}-{}\"", time(modified), time(changed))
}

impl FileTree for FolderTree {
    type Handle = Stat;

    async fn find(&self, path: &RelativePath) -> Result<Option<Item<Stat>>> {
        let path = path.clone();
        self.run(move |folder| Ok(folder.look(&path)?.map(|stat| item(&path, stat)))).await
    }

    fn list(
        &self,
        path: &RelativePath,
        _: &Item<Stat>,
    ) -> BoxStream<'static, Result<Vec<Item<Stat>>>> {
        let (tree, path) = (self.clone(), path.clone());
        let listed = stream::once(async move { tree.run(move |folder| folder.list(&path)).await });
        let pages = listed.flat_map(|listed| match listed {
            Ok(items) => {
                let mut items = items.into_iter();
                let page = move || Some(items.by_ref().take(PAGE).collect::<Vec<_>>());
                let pages = std::iter::from_fn(page).take_while(|page| !page.is_empty());
                stream::iter(pages.map(Ok)).left_stream()
            }
            Err(error) => stream::iter([Err(error)]).right_stream(),
        });
        pages.boxed()
    }

    async fn read(
        &self,
        path: &RelativePath,
        file: &Item<Stat>,
        range: Range<u64>,
    ) -> Result<BoxStream<'static, std::io::Result<Bytes>>> {
        let (path, expected) = (path.clone(), file.handle);
        let open = move |folder: &OpenFolder| folder.open(&path, &expected, range.start);
        let reading =
            Reading { file: self.run(open).await?, expected, left: range.end - range.start };
        let pieces = try_unfold(reading, |reading| async move {
            let read = tokio::task::spawn_blocking(move || reading.piece()).await;
            read.unwrap_or_else(|_| Err(std::io::Error::other("the gateway stops")))
        });
        Ok(pieces.boxed())
    }

    async fn check_may_write(&self) -> Result<()> {
        self.0.check_may_write()
    }

    async fn check_put(&self, put: &Put) -> Result<()> {
        let put = put.clone();
        self.run(move |folder| folder.check_put(&put).map(drop)).await
    }

    async fn put(&self, put: &Put, body: &Spooled) -> Result<Changed<Stat>> {
        let (put, body) = (put.clone(), body.clone());
        self.run(move |folder| folder.put(&put, &body)).await
    }

    async fn make_folder(&self, path: &RelativePath) -> Result<()> {
        let path = path.clone();
        self.run(move |folder| folder.make_folder(&path)).await
    }

    async fn set_modified(&self, path: &RelativePath, modified: Timestamp) -> Result<()> {
        let path = path.clone();
        self.run(move |folder| folder.set_modified(&path, modified)).await
    }

    async fn delete(&self, path: &RelativePath, condition: &Condition) -> Result<()> {
        let (path, condition) = (path.clone(), condition.clone());
        self.run(move |folder| folder.delete(&path, &condition)).await
    }

    async fn relocate(
        &self,
        from: &RelativePath,
        to: &Destination,
        condition: &Condition,
    ) -> Result<bool> {
        let (from, to, condition) = (from.clone(), to.clone(), condition.clone());
        self.run(move |folder| folder.relocate(&from, &to, &condition)).await
    }

    async fn copy(&self, from: &RelativePath, to: &Destination, is_deep: bool) -> Result<bool> {
        let (from, to) = (from.clone(), to.clone());
        self.run(move |folder| folder.copy(&from, &to, is_deep)).await
    }

    async fn room(&self) -> Result<Room> {
        self.run(OpenFolder::room).await
    }

    fn checksums(&self, file: &Item<Stat>) -> Option<Checksums> {
        self.0.checksums.get(&checksum_key(&file.handle))
    }

    fn promises(&self) -> Promises<'_> {
        Promises { locks: &self.0.locks, workspace: self.0.workspace, account: OWNER }
    }

    fn spools(&self) -> &Spools {
        &self.0.spools
    }

    fn clock(&self) -> &dyn Clock {
        &*self.0.clock
    }

    fn random(&self) -> &dyn Random {
        &*self.0.random
    }
}

/// Returns by what the checksums of a file are known.
fn checksum_key(stat: &Stat) -> [u8; 32] {
    *blake3::hash(etag(stat).as_bytes()).as_bytes()
}

/// A file that is being sent.
struct Reading {
    file: Box<dyn OpenFile>,
    /// What it was when it was asked for.
    expected: Stat,
    /// How many bytes are still wanted.
    left: u64,
}

impl Reading {
    /// Reads the next piece. The last one is not given before it is known that nobody has written to the file meanwhile.
    fn piece(mut self) -> std::io::Result<Option<(Bytes, Self)>> {
        use std::io::Read;
        if self.left == 0 {
            return Ok(None);
        }
        let mut bytes = vec![0; (PIECE as u64).min(self.left) as usize];
        self.file.read_exact(&mut bytes)?;
        self.left -= bytes.len() as u64;
        if self.left == 0 {
            let now = self.file.stat().map_err(|error| std::io::Error::other(refusal(error)))?;
            if (now.size, now.modified) != (self.expected.size, self.expected.modified) {
                return Err(std::io::Error::other("the file was changed while it was sent"));
            }
        }
        Ok(Some((bytes.into(), self)))
    }
}
