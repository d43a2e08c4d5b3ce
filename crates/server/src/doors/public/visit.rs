//! Who follows a link: what stands in the address, and whether the password was right.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{ConnectInfo, FromRequestParts};
use axum::http::HeaderMap;
use axum::http::header::COOKIE;
use axum::http::request::Parts;
use model::{NodeKind, RelativePath};

use super::path;
use crate::app::App;
use crate::audit::{Happened, Line};
use crate::auth::{self, LinkSecret};
use crate::error::{Result, ServerError};
use crate::files::{Recipient, ViewGuard};
use crate::listener::PeerAddress;
use crate::metadata::{LinkRecord, Metadata};
use crate::services::files::FileNode;
use crate::services::links::{self, OpenLink};

/// For how many seconds a pass counts.
pub(crate) const PASS_LIFE_SECONDS: i64 = 3600;

/// Where programs show a pass; browsers show it as a cookie.
const PASS_HEADER: &str = "syncline-link-pass";

/// The cookie with a pass.
pub(crate) const PASS_COOKIE: &str = "pass";

/// How many parts of an address stand before the path: nothing, `public` or `s`, the secret, the collection.
const PARTS_BEFORE: usize = 4;

/// Somebody behind a link that leads somewhere.
#[derive(Debug)]
pub(crate) struct Visit {
    app: Arc<App>,
    peer: PeerAddress,
    secret: LinkSecret,
    open: OpenLink,
    /// From the node of the link down.
    path: RelativePath,
    is_unlocked: bool,
}

impl FromRequestParts<Arc<App>> for Visit {
    type Rejection = ServerError;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self> {
        let peer = parts.extensions.get::<ConnectInfo<PeerAddress>>().map(|connect| connect.0);
        let peer = peer.ok_or(ServerError::Unavailable { reason: "does not know who asks" })?;
        let mut names = parts.uri.path().splitn(PARTS_BEFORE + 1, '/');
        let secret = names.nth(PARTS_BEFORE - 2).and_then(LinkSecret::from_text);
        let path = path::parse(names.nth(1).unwrap_or_default());
        let (secret, open) = find(app, secret, peer.network()).await?;
        let pass = pass_of(&parts.headers);
        let is_unlocked = open
            .link
            .password_hash
            .as_ref()
            .is_none_or(|hash| pass.is_some_and(|pass| secret.has_pass(pass, hash, app.now())));
        Ok(Self { app: Arc::clone(app), peer, secret, open, path: path?, is_unlocked })
    }
}

/// Returns the link of a secret, whose node is there. Only so many that lead nowhere are answered.
async fn find(
    app: &App,
    secret: Option<LinkSecret>,
    address: IpAddr,
) -> Result<(LinkSecret, OpenLink)> {
    let found = try_to_find(app, secret).await;
    if let Err(ServerError::LinkGone) = &found {
        // Nobody guesses 256 bits, so whoever asks for many keeps nobody of the same address from those that lead somewhere.
        let limits = &app.dead_links_per_address;
        limits.take(address, app.clock.elapsed()).map_err(ServerError::limited)?;
    }
    found
}

async fn try_to_find(app: &App, secret: Option<LinkSecret>) -> Result<(LinkSecret, OpenLink)> {
    let secret = secret.ok_or(ServerError::LinkGone)?;
    let (asked, now) = (secret.clone(), app.now());
    let open = app.readers.read(move |metadata| links::open(metadata, &asked, now)).await?;
    // Where the node is gone, nobody is asked for a password either.
    let view = app.view(open.caller, open.workspace).await.map_err(gone)?;
    links::node_of(&open.link, &view).ok_or(ServerError::LinkGone)?;
    Ok((secret, open))
}

fn pass_of(headers: &HeaderMap) -> Option<&str> {
    let header = headers.get(PASS_HEADER).and_then(|value| value.to_str().ok());
    let cookies = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let cookie = cookies
        .flat_map(|value| value.split(';'))
        .find_map(|one| one.trim().strip_prefix(PASS_COOKIE)?.strip_prefix('='));
    header.or(cookie)
}

impl Visit {
    pub(crate) fn link(&self) -> &LinkRecord {
        &self.open.link
    }

    pub(crate) fn path(&self) -> &RelativePath {
        &self.path
    }

    pub(crate) fn is_unlocked(&self) -> bool {
        self.is_unlocked
    }

    /// Returns where the page of the link is.
    pub(crate) fn address(&self) -> String {
        format!("/s/{}", self.secret.to_text())
    }

    /// Returns to whom files are sent.
    pub(crate) fn recipient(&self) -> Recipient {
        Recipient::stranger(Arc::clone(&self.app), self.open.caller, self.open.workspace)
    }

    /// Returns the node that is asked for, and the view that has it.
    ///
    /// # Errors
    /// [`ServerError::LinkLocked`]; [`ServerError::LinkGone`] where the node of the link is gone; [`ServerError::NotFound`].
    pub(crate) async fn node(&self) -> Result<(ViewGuard, FileNode)> {
        if !self.is_unlocked {
            return Err(ServerError::LinkLocked);
        }
        let OpenLink { caller, workspace, link } = &self.open;
        let view = self.app.view(*caller, *workspace).await.map_err(gone)?;
        let (top, _) = links::node_of(link, &view).ok_or(ServerError::LinkGone)?;
        let is_shown = |node: &FileNode| {
            let kind = node.record.as_ref().map(|record| &record.kind);
            !matches!(kind, Some(NodeKind::Symlink(_)))
        };
        let node = view.find_below(top.id, &self.path).filter(is_shown);
        let node =
            node.ok_or_else(|| ServerError::NotFound { what: format!("'{}'", self.path) })?;
        Ok((view, node))
    }

    /// Lets a download in.
    ///
    /// # Errors
    /// As [`links::admit`].
    pub(crate) async fn admit(&self) -> Result<()> {
        let (secret, now) = (self.secret.clone(), self.app.now());
        let admit = move |metadata: &mut dyn Metadata| links::admit(metadata, &secret, now);
        self.app.writer.write(admit).await?;
        self.note(Happened::LinkDownload).await;
        Ok(())
    }

    /// Turns the password into a pass. Only so many attempts are listened to.
    ///
    /// # Errors
    /// [`ServerError::WrongLinkPassword`], [`ServerError::RateLimited`]; [`ServerError::Invalid`] where the link wants none.
    pub(crate) async fn unlock(&self, password: String) -> Result<String> {
        let unlocked = self.try_password(password).await;
        // What was not listened to is not noted either, or strangers would fill the disk.
        if let Err(ServerError::WrongLinkPassword) = &unlocked {
            self.note(Happened::LinkPasswordRefused).await;
        }
        unlocked
    }

    async fn try_password(&self, password: String) -> Result<String> {
        let Self { app, open, secret, .. } = self;
        let reason = || "the link wants none".to_owned();
        let hash = open.link.password_hash.clone();
        let hash =
            hash.ok_or_else(|| ServerError::Invalid { what: "password", reason: reason() })?;
        self.take_attempt()?;
        let pass = secret.pass(&hash, app.now() + PASS_LIFE_SECONDS);
        let turn = app.password_turn().await?;
        if !turn.stretch(move || auth::verify_password(&password, Some(&hash))).await? {
            return Err(ServerError::WrongLinkPassword);
        }
        let (id, address) = (open.caller.device, self.peer.network());
        app.passwords_per_link.give_back(&id);
        app.passwords_per_link_and_address.give_back(&(id, address));
        app.logins_per_address.give_back(&address);
        Ok(pass)
    }

    /// Takes an attempt at the password. What is refused for this link takes nothing from what the address has for others and for signing in,
    /// and what is refused for this address nothing from what other addresses have for the link.
    fn take_attempt(&self) -> Result<()> {
        let (app, id, address) = (&self.app, self.open.caller.device, self.peer.network());
        let now = app.clock.elapsed();
        app.logins_per_address.take(address, now).map_err(ServerError::limited)?;
        let here = &app.passwords_per_link_and_address;
        let taken = here.take((id, address), now).and_then(|()| {
            let everywhere = app.passwords_per_link.take(id, now);
            everywhere.inspect_err(|_| here.give_back(&(id, address)))
        });
        taken.map_err(|wait| {
            app.logins_per_address.give_back(&address);
            ServerError::limited(wait)
        })
    }

    async fn note(&self, event: Happened) {
        let line = Line::new(self.app.clock.now(), event).from(self.peer.0.ip());
        self.app.audit.note(line.to(self.open.caller.device)).await;
    }
}

/// What ended between two looks at a link is told as what had ended before.
pub(crate) fn gone(error: ServerError) -> ServerError {
    match error {
        ServerError::NotSignedIn | ServerError::NotFound { .. } | ServerError::Forbidden { .. } => {
            ServerError::LinkGone
        }
        other => other,
    }
}
