//! Folders of a workspace that are workspaces of their own: whoever works on the one takes the others along
//! (`docs/design/shared-folders.md`).
//!
//! *Invariants*: where such a folder is not connected yet, the workspace is cloned over what lies there, so what was edited there and
//! never sent is merged, and nothing is removed; one that this account may not open (any more) stays as it is, and is named; one of somebody
//! else than the workspace around it is never connected: its owner would get what lies there.

use model::{Mount, NodeId, RelativePath};
use serde_json::{Value, json};
use sync::engine::{MountPoint, has_base, mount_points, take_base};

use crate::claim::HomeClaim;
use crate::commands::clone::genesis_in_another;
use crate::commands::init::bind;
use crate::commands::sync::exchange_one;
use crate::connect::{SessionOptions, with_engine};
use crate::context::Context;
use crate::error::{Code, CommandError, Result};
use crate::folder::{Folder, Place, read_identity};
use crate::text::{path_text, quoted};

pub(crate) mod rules;

/// A folder that is here and is a workspace of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mounted {
    /// Where it is in the folder around it.
    pub(crate) path: RelativePath,
    /// Its node there.
    pub(crate) node: NodeId,
    /// Its workspace, and what that began with.
    pub(crate) mount: Mount,
}

impl Mounted {
    /// Returns the synced folder that it is, if this device has connected it already.
    ///
    /// # Errors
    /// [`Code::Exists`] where it is that of another workspace; [`Code::OtherFolder`], [`Code::File`].
    pub(crate) fn folder(&self, context: &Context<'_>, outer: &Folder) -> Result<Option<Folder>> {
        let root = outer.root.join(self.path.to_os_path());
        if read_identity(&root)?.is_none() {
            return Ok(None);
        }
        let found = match Folder::locate(&context.home, &root) {
            // What another home has left behind is taken over.
            Err(error) if error.code == Code::NotSynced => return Ok(None),
            found => found?,
        };
        match found.genesis.workspace() == self.mount.workspace {
            true => Ok(Some(found)),
            false => Err(CommandError::new(
                Code::Exists,
                format!("{} belongs to another workspace", root.display()),
            )
            .cause(format!(
                "it is '{}', and '{}' has the workspace {} there",
                found.genesis.name, outer.genesis.name, self.mount.workspace
            ))
            .state("nothing was changed there")),
        }
    }

    /// Connects it, unless it is connected. What lies there is taken for what the workspace began with, as far as that was up to date.
    ///
    /// # Errors
    /// As [`Self::folder`]; [`Code::NoSuchWorkspace`] where this account may not open it; [`Code::NotShareable`] where it belongs to somebody
    /// else than the workspace around it, or rules of that matter in it; those of the server.
    pub(crate) fn connect(&self, context: &Context<'_>, outer: &Folder) -> Result<Folder> {
        let folder = match self.folder(context, outer)? {
            Some(folder) => folder,
            None => {
                let (outer_id, id) = (outer.genesis.workspace(), self.mount.workspace);
                let genesis = genesis_in_another(context, id, outer_id)?;
                rules::refuse_where_they_matter(&outer.root, &self.path)?;
                let root = outer.root.join(self.path.to_os_path());
                let _claim = HomeClaim::beside_watches(&context.home)?;
                bind(context, &root, genesis, outer.place.clone())?
            }
        };
        // Where the server did not answer the last time, it is not too late.
        let is_new = folder.state()?.synced_count()? == 0;
        if is_new && has_base(&outer.state()?, &self.node)? {
            let options = SessionOptions::CHANGE_BESIDE_WATCH;
            with_engine(context, &folder, options, None, async |engine| {
                engine.fetch().await?;
                let paths = take_base(&mut outer.state()?, &self.node)?;
                engine.adopt_base(self.mount.since, &paths).await
            })?;
        }
        Ok(folder)
    }
}

/// Returns the folders of a folder that are workspaces of their own, as they were after its last sync.
///
/// # Errors
/// Those of the database.
pub(crate) fn of(folder: &Folder) -> Result<Vec<Mounted>> {
    let Place::Served { .. } = &folder.place else { return Ok(Vec::new()) };
    let here = |point: MountPoint| {
        let MountPoint { node, mount, path } = point;
        path.map(|path| Mounted { path, node, mount })
    };
    Ok(mount_points(&folder.state()?)?.into_iter().filter_map(here).collect())
}

/// Exchanges everything in the folders of a folder that are workspaces of their own. Returns the exit code.
///
/// # Errors
/// That of the first that could not be exchanged, after all others were.
pub(crate) fn exchange_all(context: &Context<'_>, command: &str, outer: &Folder) -> Result<u8> {
    let (mut code, mut failure) = (0, None);
    for mounted in of(outer)? {
        let exchanged = mounted
            .connect(context, outer)
            // What vanished there would vanish for others: that is confirmed there.
            .and_then(|folder| exchange_one(context, command, &folder, SessionOptions::CHANGE));
        match exchanged {
            Ok(done) if code == 0 => code = done,
            Ok(_) => {}
            Err(error) if error.code == Code::NoSuchWorkspace => {
                context.ui.json(&closed_json(&mounted));
                context.ui.note(closed_line(&mounted));
            }
            Err(error) if [Code::Interrupted, Code::Terminated].contains(&error.code) => {
                return Err(error);
            }
            Err(error) => drop(failure.get_or_insert(error)),
        }
    }
    failure.map_or(Ok(code), Err)
}

/// The same for programs.
fn closed_json(mounted: &Mounted) -> Value {
    json!({
        "schema": "syncline.shared-folder/1",
        "type": "closed",
        "path": path_text(&mounted.path),
        "workspace_id": mounted.mount.workspace.to_string(),
    })
}

/// Says that a folder is not open to this account.
pub(crate) fn closed_line(mounted: &Mounted) -> String {
    let path = quoted(&mounted.path.to_string());
    format!(
        "{path} is a workspace of its own that this account may not open; what is here stays, and is not synced"
    )
}
