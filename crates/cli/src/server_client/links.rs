//! Links for people without an account, at the control door of a server.

use reqwest::Method;
use serde::{Deserialize, Serialize};

use super::ServerClient;
use crate::error::Result;

/// What a new link is to be.
#[derive(Debug, Serialize)]
pub(crate) struct NewLink<'a> {
    /// To where it is to lead, percent-encoded.
    pub(crate) path: &'a str,
    /// After how long it ends.
    pub(crate) expires_in_seconds: Option<i64>,
    /// What opens it.
    pub(crate) password: Option<&'a str>,
    /// How many downloads it lets in.
    pub(crate) downloads_max: Option<u64>,
}

/// A link.
#[derive(Debug, Deserialize)]
pub(crate) struct LinkLine {
    /// Its id, which is no secret.
    pub(crate) id: String,
    /// To where it leads now, percent-encoded; nothing where that was deleted.
    pub(crate) path: Option<String>,
    /// Who made it.
    pub(crate) maker: String,
    /// When it was made, in seconds since 1970.
    pub(crate) created: i64,
    /// When it ends, in seconds since 1970.
    pub(crate) expires: Option<i64>,
    /// Whether it wants a password.
    pub(crate) has_password: bool,
    /// How many downloads it lets in.
    pub(crate) downloads_max: Option<u64>,
    /// How many it has let in.
    pub(crate) downloads: u64,
    /// How it is with it: open, expired, used_up or suspended.
    pub(crate) state: String,
    /// What stands in its address, when it is new.
    pub(crate) secret: Option<String>,
}

/// What strangers are told of a file.
#[derive(Debug, Deserialize)]
struct LinkedLine {
    size: Option<u64>,
}

impl ServerClient {
    /// Makes a link.
    ///
    /// # Errors
    /// [`crate::error::CommandError`].
    pub(crate) async fn add_link(&self, workspace: &str, new: &NewLink<'_>) -> Result<LinkLine> {
        let segments = ["workspaces", workspace, "links"];
        self.ask(self.request(Method::POST, &segments).json(new)).await
    }

    /// Returns the links into a workspace, without what is secret about them.
    ///
    /// # Errors
    /// [`crate::error::CommandError`].
    pub(crate) async fn links(&self, workspace: &str) -> Result<Vec<LinkLine>> {
        self.ask(self.request(Method::GET, &["workspaces", workspace, "links"])).await
    }

    /// Returns how large the file is to which a link leads, as strangers are told; nothing where it is none.
    ///
    /// # Errors
    /// [`crate::error::CommandError`].
    pub(crate) async fn linked_size(&self, secret: &str) -> Result<Option<u64>> {
        let request = self.anonymous(Method::GET, &["public", secret]);
        self.ask::<LinkedLine>(request).await.map(|linked| linked.size)
    }

    /// Takes a link back.
    ///
    /// # Errors
    /// [`crate::error::CommandError`].
    pub(crate) async fn remove_link(&self, workspace: &str, id: &str) -> Result<()> {
        let segments = ["workspaces", workspace, "links", id];
        self.send(self.request(Method::DELETE, &segments)).await.map(drop)
    }
}
