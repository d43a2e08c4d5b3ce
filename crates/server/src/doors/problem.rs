//! Errors as problem documents (RFC 9457): `{type, title, status, code, detail}`.

use axum::Json;
use axum::extract::Request;
use axum::http::header::{ALLOW, CACHE_CONTROL, CONTENT_RANGE, CONTENT_TYPE, ETAG, RETRY_AFTER};
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use model::wire::RefusalKind;
use serde::Serialize;

use crate::error::{Ended, ServerError};
use crate::metadata::MetadataError;
use crate::metrics::Fault;

const PROBLEM_JSON: HeaderValue = HeaderValue::from_static("application/problem+json");

/// When to come back after the server had too much to do, in seconds.
const RETRY_AFTER_SECONDS: u64 = 1;

/// A problem document.
#[derive(Debug, Serialize)]
struct Problem {
    #[serde(rename = "type")]
    kind: String,
    title: &'static str,
    status: u16,
    /// Stable, for programs.
    code: &'static str,
    /// For people.
    detail: String,
}

/// Stands with an answer that has its form already, although it says an error.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shaped;

/// Returns status and code of an error.
fn classify(error: &ServerError) -> (StatusCode, &'static str) {
    match error {
        ServerError::NotSignedIn => (StatusCode::UNAUTHORIZED, "not_signed_in"),
        ServerError::WrongPassword | ServerError::WrongLinkPassword => {
            (StatusCode::UNAUTHORIZED, "wrong_password")
        }
        ServerError::CodeNeeded => (StatusCode::UNAUTHORIZED, "code_needed"),
        ServerError::WrongCode => (StatusCode::UNAUTHORIZED, "wrong_code"),
        ServerError::TokenNeeded => (StatusCode::UNAUTHORIZED, "token_needed"),
        ServerError::OidcRefused { .. } => (StatusCode::UNAUTHORIZED, "oidc_refused"),
        ServerError::NotBound { .. } => (StatusCode::FORBIDDEN, "oidc_unbound"),
        ServerError::ProviderUnusable { .. } => {
            (StatusCode::SERVICE_UNAVAILABLE, "provider_unavailable")
        }
        ServerError::LinkGone => (StatusCode::NOT_FOUND, "link_gone"),
        ServerError::InvitationGone { how } => match how {
            Ended::Unknown => (StatusCode::NOT_FOUND, "invitation_unknown"),
            Ended::Expired => (StatusCode::GONE, "invitation_expired"),
            Ended::Used => (StatusCode::GONE, "invitation_used"),
            Ended::TakenBack => (StatusCode::GONE, "invitation_taken_back"),
        },
        ServerError::LinkLocked => (StatusCode::UNAUTHORIZED, "link_locked"),
        ServerError::RateLimited { .. } => (StatusCode::TOO_MANY_REQUESTS, "rate_limited"),
        ServerError::Forbidden { .. } => (StatusCode::FORBIDDEN, "forbidden"),
        ServerError::SealedNotShared => (StatusCode::CONFLICT, "sealed_not_shared"),
        ServerError::NotFound { .. } => (StatusCode::NOT_FOUND, "not_found"),
        ServerError::Invalid { .. } => (StatusCode::BAD_REQUEST, "invalid"),
        ServerError::TooLarge { .. } => (StatusCode::PAYLOAD_TOO_LARGE, "too_large"),
        ServerError::RangeOutside { .. } => {
            (StatusCode::RANGE_NOT_SATISFIABLE, "range_not_satisfiable")
        }
        ServerError::WrongContent { .. } => (StatusCode::UNPROCESSABLE_ENTITY, "wrong_content"),
        ServerError::Taken { .. } => (StatusCode::CONFLICT, "taken"),
        ServerError::PreconditionFailed { .. } => {
            (StatusCode::PRECONDITION_FAILED, "precondition_failed")
        }
        ServerError::Conflict { .. } => (StatusCode::CONFLICT, "conflict"),
        ServerError::VersionDropped { .. } => (StatusCode::CONFLICT, "version_dropped"),
        ServerError::WrongBase { .. } => (StatusCode::CONFLICT, "wrong_base"),
        ServerError::Unverified { .. } => (StatusCode::UNPROCESSABLE_ENTITY, "unverified"),
        ServerError::SessionGone => (StatusCode::GONE, "session_gone"),
        ServerError::Sealed { .. } => (StatusCode::FORBIDDEN, "sealed_workspace"),
        ServerError::OverQuota { .. } => (StatusCode::INSUFFICIENT_STORAGE, "over_quota"),
        ServerError::Metadata(MetadataError::NoSpace)
        | ServerError::Storage { is_full: true, .. } => {
            (StatusCode::INSUFFICIENT_STORAGE, "no_space")
        }
        // To the caller the object is not there, and storing it again heals that.
        ServerError::Storage { is_damage: true, .. } => (StatusCode::NOT_FOUND, "object_damaged"),
        ServerError::TooMuchWork => (StatusCode::UNPROCESSABLE_ENTITY, "too_much_work"),
        ServerError::PackMissing { .. } => (StatusCode::UNPROCESSABLE_ENTITY, "pack_missing"),
        ServerError::HistoryLost { .. } => (StatusCode::CONFLICT, "history_lost"),
        ServerError::OperationReused { .. } => (StatusCode::CONFLICT, "operation_reused"),
        ServerError::DeviceCloned => (StatusCode::CONFLICT, "device_cloned"),
        ServerError::Refused { refusal } => classify_refusal(refusal.kind),
        ServerError::Unavailable { .. }
        | ServerError::Metadata(_)
        | ServerError::Storage { .. }
        | ServerError::DataFolder { .. }
        | ServerError::Locked { .. }
        | ServerError::Listen { .. } => (StatusCode::SERVICE_UNAVAILABLE, "unavailable"),
    }
}

/// Returns the same for what a live connection hears.
fn classify_refusal(kind: RefusalKind) -> (StatusCode, &'static str) {
    match kind {
        RefusalKind::Forbidden => (StatusCode::UNAUTHORIZED, "not_signed_in"),
        RefusalKind::NotAllowed => (StatusCode::FORBIDDEN, "forbidden"),
        RefusalKind::NotFound => (StatusCode::NOT_FOUND, "not_found"),
        RefusalKind::Invalid => (StatusCode::BAD_REQUEST, "invalid"),
        RefusalKind::PackMissing => (StatusCode::UNPROCESSABLE_ENTITY, "pack_missing"),
        RefusalKind::HistoryLost => (StatusCode::CONFLICT, "history_lost"),
        RefusalKind::OperationReused => (StatusCode::CONFLICT, "operation_reused"),
        RefusalKind::DeviceCloned => (StatusCode::CONFLICT, "device_cloned"),
        RefusalKind::NoSpace => (StatusCode::INSUFFICIENT_STORAGE, "no_space"),
        RefusalKind::Unavailable => (StatusCode::SERVICE_UNAVAILABLE, "unavailable"),
    }
}

fn document(status: StatusCode, code: &'static str, detail: String) -> Response {
    let title = status.canonical_reason().unwrap_or("Error");
    let kind = format!("urn:syncline:problem:{code}");
    let problem = Problem { kind, title, status: status.as_u16(), code, detail };
    let mut response = (status, Json(problem)).into_response();
    response.headers_mut().insert(CONTENT_TYPE, PROBLEM_JSON);
    response
}

impl IntoResponse for ServerError {
    fn into_response(self) -> Response {
        if self.is_internal() {
            tracing::error!(error = %self, "a request failed");
        }
        let (status, code) = classify(&self);
        let mut response = document(status, code, self.public_text());
        if let Some(fault) = Fault::of(&self) {
            // For whoever counts.
            response.extensions_mut().insert(fault);
        }
        let headers = response.headers_mut();
        match self {
            Self::RateLimited { retry_after_seconds } => {
                headers.insert(RETRY_AFTER, retry_after_seconds.into());
            }
            Self::RangeOutside { length } => {
                let text = format!("bytes */{length}");
                headers.insert(CONTENT_RANGE, text.parse().expect("digits fit into a header"));
            }
            Self::PreconditionFailed { current: Some(current), .. } => {
                headers.insert(ETAG, current.parse().expect("an etag fits into a header"));
            }
            _ if status == StatusCode::SERVICE_UNAVAILABLE => {
                headers.insert(RETRY_AFTER, RETRY_AFTER_SECONDS.into());
            }
            _ => {}
        }
        response
    }
}

/// Gives every answer the headers it needs, and every error that the framework made the form of a problem. Texts of
/// the framework may repeat what was sent, so they are not passed on.
pub async fn shape(request: Request, next: Next) -> Response {
    let response = next.run(request).await;
    let status = response.status();
    let is_error = status.is_client_error() || status.is_server_error();
    let is_problem = response.headers().get(CONTENT_TYPE) == Some(&PROBLEM_JSON)
        || response.extensions().get::<Shaped>().is_some();
    let mut response = if is_error && !is_problem {
        let (code, detail) = match status {
            StatusCode::NOT_FOUND => ("not_found", "there is nothing at this address"),
            StatusCode::METHOD_NOT_ALLOWED => {
                ("method_not_allowed", "this address has other methods")
            }
            StatusCode::PAYLOAD_TOO_LARGE => ("too_large", "the body is too long"),
            StatusCode::UNSUPPORTED_MEDIA_TYPE => {
                ("invalid", "the body has another type than expected")
            }
            status if status.is_server_error() => ("unavailable", "the server cannot answer now"),
            _ => ("invalid", "the request cannot be understood"),
        };
        let mut document = document(status, code, detail.to_owned());
        if let Some(allowed) = response.headers().get(ALLOW) {
            document.headers_mut().insert(ALLOW, allowed.clone());
        }
        document
    } else {
        response
    };
    let headers = response.headers_mut();
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    headers.insert("x-content-type-options", HeaderValue::from_static("nosniff"));
    response
}
