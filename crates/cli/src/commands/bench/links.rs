//! Public links to the files of a workspace, as a benchmark makes them. What a mix writes and reads besides is in the folder.

use std::fmt;
use std::path::Path;

use lab::bench::driver::{Driver, Failure, Folder, Link, Listed};
use lab::bench::plan::Plan;
use model::RelativePath;
use tokio::runtime::Handle;

use super::in_words;
use crate::commands::share::{Target, find_place};
use crate::context::Context;
use crate::error::{CommandError, Result};
use crate::server_client::links::NewLink;
use crate::text::encode_address;

/// A link ends after so long where nobody could take it back.
const LIFE_SECONDS: i64 = 3600;

/// A folder whose workspace is on a server, which makes links to files in it.
pub(super) struct Links {
    target: Target,
    /// Where the folder is in the workspace.
    inside: RelativePath,
    folder: Folder,
    runtime: Handle,
}

impl Links {
    /// Finds the workspace of a folder.
    pub(super) fn open(
        context: &Context<'_>,
        folder: &Path,
        plan: &Plan,
        runtime: Handle,
    ) -> Result<Self> {
        if !folder.is_dir() {
            let text = format!("target.workspace: there is no folder {}", folder.display());
            return Err(CommandError::usage(text));
        }
        let text = folder.to_string_lossy();
        let (target, inside) = find_place(context, Some(&text))?;
        if target.workspace.is_sealed() {
            let text = format!("target.workspace: '{}' is encrypted", target.workspace.name);
            return Err(CommandError::usage(text).cause("no link leads into such a workspace"));
        }
        Ok(Self { target, inside, folder: Folder::new(folder, &plan.target), runtime })
    }
}

impl fmt::Debug for Links {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Links").field("folder", &self.folder).finish_non_exhaustive()
    }
}

impl Driver for Links {
    fn describe(&self) -> String {
        format!("workspace '{}' on {}", self.target.workspace.name, self.target.client.address())
    }

    fn put(&self, path: &str, bytes: &[u8], is_new: bool) -> Result<(), Failure> {
        self.folder.put(path, bytes, is_new)
    }

    fn get(&self, path: &str) -> Result<Option<Vec<u8>>, Failure> {
        self.folder.get(path)
    }

    fn reread(&self, path: &str) -> Result<Option<Vec<u8>>, Failure> {
        self.folder.reread(path)
    }

    fn list(&self, directory: &str) -> Result<Vec<Listed>, Failure> {
        let mut listed = self.folder.list(directory)?;
        // What programs keep for themselves in a folder is not in its workspace.
        listed.retain(|file| !file.path.rsplit('/').next().unwrap_or_default().starts_with('.'));
        Ok(listed)
    }

    fn share(&self, path: &str) -> Result<Link, Failure> {
        let whole = match self.inside.is_root() {
            true => path.as_bytes().to_vec(),
            false => [self.inside.as_bytes(), b"/", path.as_bytes()].concat(),
        };
        let new = NewLink {
            path: &encode_address(&whole),
            expires_in_seconds: Some(LIFE_SECONDS),
            password: None,
            downloads_max: None,
        };
        let made = self.target.client.add_link(&self.target.workspace.id, &new);
        let made = self.runtime.block_on(made).map_err(|error| in_words(&error))?;
        Ok(Link { id: made.id, secret: made.secret.unwrap_or_default() })
    }

    fn withdraw(&self, link: &Link, size: u64) -> Result<(), Failure> {
        let (client, workspace) = (&self.target.client, &self.target.workspace.id);
        let found = self.runtime.block_on(client.linked_size(&link.secret));
        let removed = self.runtime.block_on(client.remove_link(workspace, &link.id));
        removed.map_err(|error| in_words(&error))?;
        match found.map_err(|error| in_words(&error))? {
            Some(found) if found == size => Ok(()),
            Some(found) => Err(Failure(format!("the link leads to {found} bytes, not {size}"))),
            None => Err(Failure("the link leads to no file".to_owned())),
        }
    }
}
