//! The page behind a link, for people with a browser and nothing else: `/s/SECRET`.
//!
//! *Goals*: what is there, how large it is, and a way to download it, without a script. *Invariants*: names are text and never markup; a
//! browser loads nothing else for it, runs nothing in it, frames it nowhere, tells no other site the address, and no search
//! engine keeps it. What may be seen is decided by the public door ([`super::public`]).

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{DefaultBodyLimit, Form, Query, Request};
use axum::http::header::{
    CONTENT_SECURITY_POLICY, CONTENT_TYPE, LOCATION, REFERRER_POLICY, SET_COOKIE,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use super::problem::Shaped;
use super::public::{
    PASS_COOKIE, PASS_LIFE_SECONDS, Page, PageQuery, Visit, head, head_archive, send, send_archive,
};
use crate::app::App;
use crate::error::{Result, ServerError};
use crate::limits::SMALL_BODY_LENGTH_MAX;

mod html;

const HTML: HeaderValue = HeaderValue::from_static("text/html; charset=utf-8");
const ROBOTS: HeaderName = HeaderName::from_static("x-robots-tag");

/// Returns the routes of this door.
pub fn routes() -> Router<Arc<App>> {
    let content = || get(content).head(head);
    Router::new()
        .route("/s/{secret}", get(show).post(unlock))
        .route("/s/{secret}/folders/{*path}", get(show))
        .route("/s/{secret}/content", content())
        .route("/s/{secret}/content/{*path}", content())
        .route("/s/{secret}/archive", get(archive).head(head_archive))
        .route("/s/{secret}/archive/{*path}", get(archive).head(head_archive))
        .layer(DefaultBodyLimit::max(SMALL_BODY_LENGTH_MAX))
        .layer(middleware::from_fn(guard))
}

/// Gives every answer the headers that keep its address secret, and its page quiet.
async fn guard(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let style = ring::digest::digest(&ring::digest::SHA256, html::STYLE.as_bytes());
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{}'; form-action 'self'; base-uri 'none'; \
         frame-ancestors 'none'",
        STANDARD.encode(style)
    );
    let headers = response.headers_mut();
    headers.insert(CONTENT_SECURITY_POLICY, policy.parse().expect("it has no control characters"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(ROBOTS, HeaderValue::from_static("noindex, nofollow"));
    response
}

/// Says an error to a person, with the status and the headers that a program gets.
fn trouble(error: ServerError, text: String) -> Response {
    let (mut parts, _) = error.into_response().into_parts();
    parts.headers.insert(CONTENT_TYPE, HTML);
    parts.extensions.insert(Shaped);
    Response::from_parts(parts, Body::from(text))
}

fn notice(error: ServerError) -> Response {
    let text = html::notice(&error.public_text());
    trouble(error, text)
}

async fn show(visit: Result<Visit, ServerError>, Query(query): Query<PageQuery>) -> Response {
    let shown = match visit {
        Ok(visit) if !visit.is_unlocked() => Ok(html::password(&visit.address(), None)),
        Ok(visit) => describe(&visit, &query).await,
        Err(error) => Err(error),
    };
    shown.map_or_else(notice, |text| (StatusCode::OK, [(CONTENT_TYPE, HTML)], text).into_response())
}

async fn describe(visit: &Visit, query: &PageQuery) -> Result<String> {
    let node = visit.node().await?.1;
    let expires = visit.link().device.limits.and_then(|limits| limits.expires);
    let place = html::Place { address: visit.address(), path: visit.path().clone(), expires };
    Ok(match node.is_directory() {
        true => {
            let page = Page::of(visit, query).await?;
            html::folder(&place, &node, &page)
        }
        false => html::file(&place, &node),
    })
}

#[derive(Deserialize)]
struct PasswordForm {
    password: String,
}

/// Turns the password into a cookie, and leads back to the page.
async fn unlock(visit: Result<Visit, ServerError>, Form(form): Form<PasswordForm>) -> Response {
    let visit = match visit {
        Ok(visit) => visit,
        Err(error) => return notice(error),
    };
    let address = visit.address();
    match visit.unlock(form.password).await {
        Ok(pass) => {
            let cookie = format!(
                "{PASS_COOKIE}={pass}; Path={address}; Max-Age={PASS_LIFE_SECONDS}; HttpOnly; SameSite=Lax"
            );
            let headers = [(SET_COOKIE, cookie), (LOCATION, address)];
            (StatusCode::SEE_OTHER, headers).into_response()
        }
        Err(error @ (ServerError::WrongLinkPassword | ServerError::RateLimited { .. })) => {
            let text = html::password(&address, Some(&error.public_text()));
            trouble(error, text)
        }
        Err(error) => notice(error),
    }
}

async fn content(visit: Result<Visit, ServerError>, headers: HeaderMap) -> Response {
    let sent = match visit {
        Ok(visit) => send(visit, headers).await,
        Err(error) => Err(error),
    };
    sent.unwrap_or_else(notice)
}

async fn archive(visit: Result<Visit, ServerError>) -> Response {
    let sent = match visit {
        Ok(visit) => send_archive(visit).await,
        Err(error) => Err(error),
    };
    sent.unwrap_or_else(notice)
}
