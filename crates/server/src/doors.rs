//! Where requests come in. Doors parse and answer; what they let in, the services decide.
//!
//! The control door ([`rest`], [`account`], [`oidc`], [`join`], [`members`], [`identities`], [`links`], [`tokens`], [`live`]) carries small messages, the data door
//! ([`packs`]) carries bytes; a device may use both at once and neither waits for the other.

pub mod account;
mod archive;
pub mod dav;
pub mod exchange;
pub mod files;
pub mod health;
pub mod identities;
pub mod join;
pub mod links;
pub mod live;
pub mod log;
pub mod members;
pub mod oidc;
pub mod openapi;
pub mod packs;
pub mod page;
pub mod problem;
pub mod public;
pub mod rest;
pub mod tokens;
pub mod tree;
pub mod watch;
pub mod web;

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::HeaderMap;
use axum::http::header::{AUTHORIZATION, CONTENT_LENGTH};
use axum::http::request::Parts;

use crate::app::App;
use crate::auth::{Caller, Token};
use crate::blocking::to_the_end;
use crate::error::ServerError;
use crate::services::accounts;

/// Every door but the login and the health check lets in only who shows the token of a device.
impl FromRequestParts<Arc<App>> for Caller {
    type Rejection = ServerError;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, ServerError> {
        let (token, now) = (token_of(parts)?, app.now());
        let (caller, is_due) =
            app.readers.read(move |metadata| accounts::authenticate(metadata, &token, now)).await?;
        if is_due {
            app.note_seen(caller, now).await?;
        }
        Ok(caller)
    }
}

/// Returns how many bytes the body of a request has, where that was said before.
fn announced_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// Returns the token that a request shows.
fn token_of(parts: &Parts) -> Result<Token, ServerError> {
    let header = parts.headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let (scheme, text) =
        header.and_then(|value| value.split_once(' ')).ok_or(ServerError::NotSignedIn)?;
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(ServerError::NotSignedIn);
    }
    Token::from_text(text.trim()).ok_or(ServerError::NotSignedIn)
}
