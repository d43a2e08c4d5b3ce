//! Paths in addresses, and the workspace and path that a request names.

use std::sync::Arc;

use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use model::{Name, RelativePath, WorkspaceId};

use crate::app::App;
use crate::auth::{Caller, Token};
use crate::doors::token_of;
use crate::doors::tree::workspace::WorkspaceTree;
use crate::error::{Result, ServerError};
use crate::files::Author;
use crate::metadata::Metadata;
use crate::services::workspaces;

/// What no device syncs, at any depth: the folder in which a device keeps what it writes aside.
const SERVICE_DIRECTORY: &[u8] = b".syncline";

/// How many parts of an address stand before the path: nothing, `workspaces`, the workspace, the collection.
const PARTS_BEFORE: usize = 4;

/// The file or folder that a request names, and who asks.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) app: Arc<App>,
    pub(crate) caller: Caller,
    pub(crate) workspace: WorkspaceId,
    pub(crate) path: RelativePath,
}

impl Target {
    /// Returns the tree, and the path in it.
    pub(crate) fn into_tree(self) -> (WorkspaceTree, RelativePath) {
        let Self { app, caller, workspace, path } = self;
        (WorkspaceTree { app, caller, workspace }, path)
    }
}

impl FromRequestParts<Arc<App>> for Target {
    type Rejection = ServerError;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self> {
        let caller = Caller::from_request_parts(parts, app).await?;
        let names =
            Path::<std::collections::HashMap<String, String>>::from_request_parts(parts, app);
        let workspace = names.await.ok().and_then(|Path(mut names)| names.remove("workspace"));
        let path = parts.uri.path().splitn(PARTS_BEFORE + 1, '/').nth(PARTS_BEFORE);
        let path = parse(path.unwrap_or_default())?;
        let workspace = match workspace {
            Some(text) => workspace_of(app, caller, &text).await?,
            // What is no text names no workspace, but the path may be any bytes.
            None => raw_workspace(app, caller, parts.uri.path()).await?,
        };
        Ok(Self { app: Arc::clone(app), caller, workspace, path })
    }
}

/// A file that a request is to change, and who asks.
pub(crate) struct Changing {
    pub(crate) app: Arc<App>,
    pub(crate) path: RelativePath,
    asking: Asking,
    workspace: WorkspaceId,
}

/// Who asks: known already, or by a token that nobody has looked at.
enum Asking {
    Known(Caller),
    Bearer(Token),
}

impl Changing {
    /// Lets the one in who asks, at this moment, to what the server can read.
    ///
    /// # Errors
    /// As [`App::enter`]; [`ServerError::Sealed`].
    pub(crate) async fn let_in(&self) -> Result<Author> {
        let author = match &self.asking {
            Asking::Known(caller) => self.app.let_write(*caller, self.workspace).await?,
            Asking::Bearer(token) => self.app.enter(token.clone(), self.workspace).await?,
        };
        drop(self.app.view_of(author.reading).await?);
        Ok(author)
    }
}

impl FromRequestParts<Arc<App>> for Changing {
    type Rejection = ServerError;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self> {
        let mut names = parts.uri.path().splitn(PARTS_BEFORE + 1, '/').skip(PARTS_BEFORE - 2);
        let workspace = names.next().and_then(|text| text.parse().ok());
        let path = names.nth(1).map(parse);
        let (Some(workspace), Some(Ok(path))) = (workspace, path) else {
            // It is found by its name, or refused.
            let Target { app, caller, workspace, path } =
                Target::from_request_parts(parts, app).await?;
            return Ok(Self { app, path, asking: Asking::Known(caller), workspace });
        };
        let asking = Asking::Bearer(token_of(parts)?);
        Ok(Self { app: Arc::clone(app), path, asking, workspace })
    }
}

async fn raw_workspace(app: &App, caller: Caller, path: &str) -> Result<WorkspaceId> {
    let text = path.split('/').nth(PARTS_BEFORE - 2).unwrap_or_default();
    let bytes = decode(text)?;
    workspace_of(app, caller, &String::from_utf8_lossy(&bytes)).await
}

/// Returns the workspace of an id or of a name that the caller gave it.
pub(crate) async fn workspace_of(app: &App, caller: Caller, text: &str) -> Result<WorkspaceId> {
    if let Ok(id) = text.parse() {
        return Ok(id);
    }
    let text = text.to_owned();
    let find = move |metadata: &dyn Metadata| {
        workspaces::find(metadata, &caller, &text).map(|found| found.workspace.id)
    };
    app.readers.read(find).await
}

fn invalid(reason: String) -> ServerError {
    ServerError::Invalid { what: "path", reason }
}

/// Reads a path as it stands in an address; slashes at its ends mean nothing.
pub(crate) fn parse(text: &str) -> Result<RelativePath> {
    let bytes = decode(text)?;
    let start = usize::from(bytes.first() == Some(&b'/'));
    let end = bytes.len() - usize::from(bytes.len() > start && bytes.last() == Some(&b'/'));
    let path = RelativePath::new(&bytes[start..end]).map_err(|error| invalid(error.to_string()))?;
    if path.names().any(|name| name.as_bytes() == SERVICE_DIRECTORY) {
        let reason = format!("no device syncs '{}'", String::from_utf8_lossy(SERVICE_DIRECTORY));
        return Err(invalid(reason));
    }
    Ok(path)
}

/// Reads one name as it stands in an address.
pub(crate) fn name_of(text: &str) -> Result<Name> {
    Name::new(decode(text)?).map_err(|error| invalid(error.to_string()))
}

/// Undoes percent-encoding.
pub(crate) fn decode(text: &str) -> Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || rest.next().and_then(|byte| char::from(byte).to_digit(16));
        let (high, low) = (digit(), digit());
        let pair = high.zip(low).map(|(high, low)| (high * 16 + low) as u8);
        bytes.push(pair.ok_or_else(|| invalid("'%' is followed by no two digits".to_owned()))?);
    }
    Ok(bytes)
}

/// Writes bytes as they stand in an address; slashes stay.
pub(crate) fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for &byte in bytes {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                text.push(char::from(byte));
            }
            _ => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}

/// Returns the address of a file.
pub(crate) fn address(workspace: WorkspaceId, path: &RelativePath) -> String {
    format!("/api/v1/workspaces/{workspace}/files/{}", encode(path.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_of_any_bytes_returns_from_its_address() {
        for bytes in [&b"a/b c/%41"[..], b"\xff\x01/?#", "ä/é".as_bytes(), b""] {
            let path = RelativePath::new(bytes).unwrap();
            assert_eq!(parse(&encode(bytes)).unwrap(), path);
            assert_eq!(parse(&encode(bytes).replace('/', "%2f")).unwrap(), path);
        }
        assert_eq!(parse("/a/").unwrap(), RelativePath::new(b"a").unwrap());
    }

    #[test]
    fn path_that_leads_elsewhere_is_refused() {
        for text in [
            "../x",
            "a/%2e%2e/b",
            "a//b",
            "a/./b",
            "%",
            "%zz",
            "a%00",
            ".syncline/x",
            "a/.syncline",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
