//! The tree of a plain workspace, as one caller may see and change it.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::{BoxStream, try_unfold};
use model::{Clock, Name, NodeKind, Random, RelativePath, Timestamp, WorkspaceId};

use super::{
    Changed, Checksums, Condition, Destination, FileTree, Item, ItemKind, Promises, Put, Room,
    Spooled, Spools,
};
use crate::app::App;
use crate::auth::Caller;
use crate::error::{Result, ServerError};
use crate::files::{FileReader, Recipient};
use crate::limits::LIST_MAX;
use crate::metadata::Metadata;
use crate::services::authorisation::Right;
use crate::services::files::{FileNode, View, changes};
use crate::services::workspaces;

/// A plain workspace, and who asks.
#[derive(Debug, Clone)]
pub(crate) struct WorkspaceTree {
    pub(crate) app: Arc<App>,
    pub(crate) caller: Caller,
    pub(crate) workspace: WorkspaceId,
}

impl From<FileNode> for Item<FileNode> {
    fn from(node: FileNode) -> Self {
        let record = node.record.as_ref();
        let kind = match record.map(|record| &record.kind) {
            None | Some(NodeKind::Directory) => ItemKind::Folder,
            Some(NodeKind::File(content)) => ItemKind::File(content.size),
            Some(NodeKind::Symlink(_)) => ItemKind::Link,
        };
        Self {
            name: record.map(|record| record.name.clone()),
            kind,
            etag: node.etag(),
            modified: record.map(|record| record.modified).unwrap_or_default(),
            handle: node,
        }
    }
}

impl FileTree for WorkspaceTree {
    type Handle = FileNode;

    async fn find(&self, path: &RelativePath) -> Result<Option<Item<FileNode>>> {
        Ok(self.app.view(self.caller, self.workspace).await?.find(path).map(Item::from))
    }

    fn list(
        &self,
        path: &RelativePath,
        folder: &Item<FileNode>,
    ) -> BoxStream<'static, Result<Vec<Item<FileNode>>>> {
        let (tree, path, folder) = (self.clone(), path.clone(), folder.handle.id);
        // By names, so that a list goes on where it was whatever is changed meanwhile.
        let pages = try_unfold(Some(None::<Name>), move |after| {
            let (tree, path) = (tree.clone(), path.clone());
            async move {
                let Some(after) = after else { return Ok(None) };
                let view = tree.app.view(tree.caller, tree.workspace).await?;
                // One that has ended or become a workspace of its own since the page before has not lost the rest of its files.
                let gone = || ServerError::NotFound { what: format!("'{path}'") };
                view.node(folder).ok_or_else(gone)?.check_is_shown(&path)?;
                let nodes = view.list(folder, after.as_ref(), LIST_MAX);
                drop(view);
                let last = nodes.last().and_then(|node| Some(node.record.as_ref()?.name.clone()));
                let next = last.filter(|_| nodes.len() == LIST_MAX).map(Some);
                Ok(Some((nodes.into_iter().map(Item::from).collect(), next)))
            }
        });
        pages.boxed()
    }

    async fn read(
        &self,
        path: &RelativePath,
        file: &Item<FileNode>,
        range: Range<u64>,
    ) -> Result<BoxStream<'static, std::io::Result<Bytes>>> {
        let no_file = || ServerError::Conflict { what: format!("'{path}'"), reason: "is no file" };
        let content = file.handle.content().ok_or_else(no_file)?;
        let app = Arc::clone(&self.app);
        let recipient = Recipient::account(app, self.caller, self.workspace);
        let reader = FileReader::open(recipient, content, range).await?;
        Ok(reader.into_stream().boxed())
    }

    async fn check_may_write(&self) -> Result<()> {
        self.app.check_may_write(self.caller, self.workspace).await
    }

    async fn check_put(&self, put: &Put) -> Result<()> {
        self.app.check_put(self.caller, self.workspace, put).await
    }

    async fn put(&self, put: &Put, body: &Spooled) -> Result<Changed<FileNode>> {
        let applied = self.app.put_file(self.caller, self.workspace, put, body).await?;
        Ok(Changed { item: applied.node.map(Item::from), is_new: applied.is_new })
    }

    async fn make_folder(&self, path: &RelativePath) -> Result<()> {
        let plan = |view: &View| changes::make_folder(view, path, self.app.new_node());
        self.app.apply(self.caller, self.workspace, plan).await.map(drop)
    }

    async fn set_modified(&self, path: &RelativePath, modified: Timestamp) -> Result<()> {
        let plan = |view: &View| changes::set_modified(view, path, modified);
        self.app.apply(self.caller, self.workspace, plan).await.map(drop)
    }

    async fn delete(&self, path: &RelativePath, condition: &Condition) -> Result<()> {
        let plan = |view: &View| changes::delete(view, path, condition);
        self.app.apply(self.caller, self.workspace, plan).await.map(drop)
    }

    async fn relocate(
        &self,
        from: &RelativePath,
        to: &Destination,
        condition: &Condition,
    ) -> Result<bool> {
        let plan = |view: &View| changes::move_node(view, from, to, condition);
        Ok(self.app.apply(self.caller, self.workspace, plan).await?.is_new)
    }

    async fn copy(&self, from: &RelativePath, to: &Destination, is_deep: bool) -> Result<bool> {
        let plan =
            |view: &View| changes::copy_node(view, from, to, is_deep, &mut || self.app.new_node());
        Ok(self.app.apply(self.caller, self.workspace, plan).await?.is_new)
    }

    async fn room(&self) -> Result<Room> {
        let (caller, workspace) = (self.caller, self.workspace);
        let read = move |metadata: &dyn Metadata| {
            let owner = workspaces::open(metadata, &caller, workspace, Right::Read)?.owner;
            let account = metadata.account(owner)?.ok_or(ServerError::NotSignedIn)?;
            let used = metadata.used_bytes(owner)?;
            Ok(Room { left: account.quota_bytes.map(|quota| quota.saturating_sub(used)), used })
        };
        self.app.readers.read(read).await
    }

    fn checksums(&self, file: &Item<FileNode>) -> Option<Checksums> {
        self.app.files.checksums(file.handle.content()?)
    }

    fn promises(&self) -> Promises<'_> {
        let (workspace, account) = (self.workspace, self.caller.account);
        Promises { locks: &self.app.files.locks, workspace, account }
    }

    fn spools(&self) -> &Spools {
        &self.app.files.spools
    }

    fn clock(&self) -> &dyn Clock {
        &*self.app.clock
    }

    fn random(&self) -> &dyn Random {
        &*self.app.random
    }
}
