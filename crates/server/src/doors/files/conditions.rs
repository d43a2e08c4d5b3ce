//! Conditions and times in headers.

use axum::http::header::{IF_MATCH, IF_NONE_MATCH};
use axum::http::{HeaderMap, HeaderName};
use model::Timestamp;

use crate::error::{Result, ServerError};
use crate::files::Checksum;
use crate::services::files::Condition;

/// When a file was modified, as the client says: seconds since 1970, perhaps with a fraction.
pub(crate) const MTIME_HEADER: HeaderName = HeaderName::from_static("x-oc-mtime");

/// The checksum of a body.
pub(crate) const CHECKSUM_HEADER: HeaderName = HeaderName::from_static("oc-checksum");

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>> {
    let invalid = |_| ServerError::Invalid {
        what: "header",
        reason: format!("'{name}' has bytes that are no text"),
    };
    headers.get(name).map(|value| value.to_str().map_err(invalid)).transpose()
}

/// Returns what must be so for a change: by `If-Match`, else by `If-None-Match`.
pub(crate) fn condition_of(headers: &HeaderMap) -> Result<Condition> {
    if let Some(value) = text(headers, &IF_MATCH)? {
        let etags = || value.split(',').map(|etag| etag.trim().to_owned()).collect();
        return Ok(if value.trim() == "*" { Condition::Present } else { Condition::Is(etags()) });
    }
    match text(headers, &IF_NONE_MATCH)? {
        None => Ok(Condition::Any),
        Some(value) if value.trim() == "*" => Ok(Condition::Absent),
        Some(_) => Err(ServerError::Invalid {
            what: "If-None-Match",
            reason: "a change takes '*' only; name the version that is to be there by If-Match"
                .to_owned(),
        }),
    }
}

/// Tells whether a client has this version already.
pub(crate) fn is_known(headers: &HeaderMap, etag: &str) -> bool {
    let Ok(Some(value)) = text(headers, &IF_NONE_MATCH) else { return false };
    let is_it = |one: &str| one == "*" || one.strip_prefix("W/").unwrap_or(one) == etag;
    value.split(',').map(str::trim).any(is_it)
}

/// Returns the modification time that a client names.
pub(crate) fn modified_of(headers: &HeaderMap) -> Result<Option<Timestamp>> {
    text(headers, &MTIME_HEADER)?.map(parse_time).transpose()
}

/// Reads seconds since 1970, perhaps with a fraction.
pub(crate) fn parse_time(value: &str) -> Result<Timestamp> {
    let invalid = || ServerError::Invalid {
        what: "X-OC-Mtime",
        reason: "seconds since 1970 are expected".to_owned(),
    };
    let (whole, fraction) = value.trim().split_once('.').unwrap_or((value.trim(), ""));
    let seconds: i64 = whole.parse().map_err(|_| invalid())?;
    if !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(invalid());
    }
    let digits = format!("{fraction:0<9}");
    let nanoseconds: u32 = digits[..9].parse().map_err(|_| invalid())?;
    // Before 1970 the fraction counts backwards, and a time counts forwards.
    match (whole.starts_with('-') && nanoseconds > 0, seconds.checked_sub(1)) {
        (true, Some(seconds)) => {
            Ok(Timestamp { seconds, nanoseconds: 1_000_000_000 - nanoseconds })
        }
        _ => Ok(Timestamp { seconds, nanoseconds }),
    }
}

/// Returns the checksum that a client names; nothing where its kind is not known here.
pub(crate) fn checksum_of(headers: &HeaderMap) -> Result<Option<Checksum>> {
    Ok(text(headers, &CHECKSUM_HEADER)?.and_then(Checksum::parse))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_with_and_without_fractions() {
        let time = |seconds, nanoseconds| Timestamp { seconds, nanoseconds };
        assert_eq!(parse_time("1700000000").unwrap(), time(1_700_000_000, 0));
        assert_eq!(parse_time(" 1.5 ").unwrap(), time(1, 500_000_000));
        assert_eq!(parse_time("-1.25").unwrap(), time(-2, 750_000_000));
        assert_eq!(parse_time("1.1234567899").unwrap(), time(1, 123_456_789));
        for text in ["", "x", "1e9", "1.x", ".", "1.-5"] {
            assert!(parse_time(text).is_err(), "{text}");
        }
    }
}
