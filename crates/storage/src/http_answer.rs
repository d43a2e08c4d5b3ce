//! Reads what a server answers, none of which is trusted.

#![cfg_attr(not(feature = "stores"), allow(dead_code, reason = "a driver uses a part of it"))]

#[cfg(any(feature = "store-azblob", feature = "store-gcs", feature = "store-swift"))]
mod names;

use std::ops::Range;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use reqwest::header::{CONTENT_LENGTH, CONTENT_RANGE, HeaderMap, RETRY_AFTER};
use reqwest::{Response, StatusCode};

use crate::error::{Result, StorageError};
use crate::key::ObjectKey;
use crate::object_store::OBJECT_SIZE_MAX;

#[cfg(any(feature = "store-azblob", feature = "store-gcs", feature = "store-swift"))]
pub(crate) use names::Names;

/// Most memory that is set aside because a header promises bytes; more comes with the bytes.
const CAPACITY_TRUSTED: u64 = 8 << 20;

/// The answer to a request for a part of an object.
#[derive(Debug)]
pub(crate) enum Answer {
    Absent,
    /// There is an object, but nothing of it lies in the range.
    NoSuchBytes,
    Part {
        start: u64,
        bytes: Bytes,
    },
    /// The server does not do ranges.
    Whole(Bytes),
}

impl Answer {
    /// Returns what lies in `range`.
    pub(crate) fn cut_to(self, range: &Range<u64>) -> Result<Option<Bytes>, &'static str> {
        match self {
            Self::Absent => Ok(None),
            Self::NoSuchBytes => Ok(Some(Bytes::new())),
            Self::Part { start, bytes } => {
                let fits = start == range.start && bytes.len() as u64 <= range.end - range.start;
                fits.then_some(Some(bytes)).ok_or("another part than asked")
            }
            Self::Whole(bytes) => {
                let length = bytes.len() as u64;
                let cut = crate::object_store::clamp(range, length);
                Ok(Some(bytes.slice(to_usize(cut.start)..to_usize(cut.end))))
            }
        }
    }

    /// Returns the last `length` bytes.
    pub(crate) fn cut_to_tail(self, length: u64) -> Result<Option<Bytes>, &'static str> {
        match self {
            Self::Absent => Ok(None),
            Self::NoSuchBytes => Ok(Some(Bytes::new())),
            Self::Part { bytes, .. } => {
                let fits = bytes.len() as u64 <= length;
                fits.then_some(Some(bytes)).ok_or("a longer part than asked")
            }
            Self::Whole(bytes) => {
                let start = (bytes.len() as u64).saturating_sub(length);
                Ok(Some(bytes.slice(to_usize(start)..)))
            }
        }
    }
}

/// Lengths of bytes in memory fit by their nature.
fn to_usize(length: u64) -> usize {
    usize::try_from(length).unwrap_or(usize::MAX)
}

/// Reads a body of at most `size_max` bytes, and gives up on a longer one.
pub(crate) async fn read_body(
    store: String,
    mut response: Response,
    size_max: u64,
) -> Result<Bytes> {
    let mut body = BytesMut::new();
    loop {
        let chunk = match response.chunk().await {
            Ok(Some(chunk)) => chunk,
            Ok(None) => return Ok(body.freeze()),
            Err(error) => return Err(transport_error(store, error)),
        };
        if body.len() as u64 + chunk.len() as u64 > size_max {
            let detail = format!("a body of more than {size_max} bytes");
            return Err(StorageError::InvalidAnswer { store, detail });
        }
        if body.capacity() == 0 {
            if chunk.len() as u64 == size_max {
                return Ok(chunk);
            }
            body.reserve(to_usize(size_max.min(CAPACITY_TRUSTED)));
        }
        body.extend_from_slice(&chunk);
    }
}

fn invalid(store: &str, detail: &str) -> StorageError {
    StorageError::InvalidAnswer { store: store.to_owned(), detail: detail.to_owned() }
}

/// Returns the value of a `Range` header, or nothing where the whole is meant: more than any object has.
pub(crate) fn range_header(range: &Range<u64>) -> Option<String> {
    let is_whole = range.start == 0 && range.end > OBJECT_SIZE_MAX;
    (!is_whole).then(|| format!("bytes={}-{}", range.start, range.end - 1))
}

/// Reads the answer to a request for a part of at most `length_max` bytes; gives back a response whose status is no such
/// answer.
pub(crate) async fn read_part(
    store: &str,
    response: Response,
    length_max: u64,
) -> Result<Result<Answer, Response>> {
    match response.status() {
        StatusCode::PARTIAL_CONTENT => {
            let sent = parse_content_range(response.headers())
                .ok_or_else(|| invalid(store, "a part without a valid Content-Range"))?;
            let length = sent.end - sent.start;
            if length > length_max.min(OBJECT_SIZE_MAX) {
                return Err(invalid(store, "a longer part than asked"));
            }
            let bytes = read_body(store.to_owned(), response, length).await?;
            if bytes.len() as u64 != length {
                return Err(invalid(store, "a part shorter than it says"));
            }
            Ok(Ok(Answer::Part { start: sent.start, bytes }))
        }
        StatusCode::OK => Ok(Ok(Answer::Whole(read_whole(store, response).await?))),
        StatusCode::RANGE_NOT_SATISFIABLE => Ok(Ok(Answer::NoSuchBytes)),
        StatusCode::NOT_FOUND => Ok(Ok(Answer::Absent)),
        _ => Ok(Err(response)),
    }
}

/// Reads the answer to a request for this range of an object; gives back a response whose status is no such answer.
pub(crate) async fn read_range(
    store: &str,
    response: Response,
    range: &Range<u64>,
) -> Result<Result<Option<Bytes>, Response>> {
    match read_part(store, response, range.end - range.start).await? {
        Ok(answer) => answer.cut_to(range).map(Ok).map_err(|detail| invalid(store, detail)),
        Err(response) => Ok(Err(response)),
    }
}

/// Reads a whole object, whose length must be the announced one.
pub(crate) async fn read_whole(store: &str, response: Response) -> Result<Bytes> {
    let announced = header_length(&response);
    let size_max = announced.unwrap_or(OBJECT_SIZE_MAX).min(OBJECT_SIZE_MAX);
    let bytes = read_body(store.to_owned(), response, size_max).await?;
    if announced.is_some_and(|announced| announced != bytes.len() as u64) {
        let detail = "a body of another length than it says".to_owned();
        return Err(StorageError::InvalidAnswer { store: store.to_owned(), detail });
    }
    Ok(bytes)
}

/// Returns the announced length of a body.
pub(crate) fn header_length(response: &Response) -> Option<u64> {
    response.headers().get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// Returns the range in `Content-Range: bytes 3-9/20`.
pub(crate) fn parse_content_range(headers: &HeaderMap) -> Option<Range<u64>> {
    let text = headers.get(CONTENT_RANGE)?.to_str().ok()?;
    let (range, size) = text.strip_prefix("bytes ")?.split_once('/')?;
    let (start, last) = range.split_once('-')?;
    let (start, last): (u64, u64) = (start.parse().ok()?, last.parse().ok()?);
    let is_inside = size == "*" || size.parse::<u64>().is_ok_and(|size| last < size);
    (start <= last && last < u64::MAX && is_inside).then(|| start..last + 1)
}

/// Says what a failure below HTTP means: always that the server was not reached, or stopped answering.
pub(crate) fn transport_error(store: String, error: reqwest::Error) -> StorageError {
    // The URL is left out, because it is in `store`; the cause below says what happened.
    let error = error.without_url();
    let mut detail = error.to_string();
    let mut source = std::error::Error::source(&error);
    while let Some(cause) = source {
        detail = format!("{detail}: {cause}");
        source = cause.source();
    }
    StorageError::NotReachable { store, detail }
}

/// Says what an answer means that refuses; one that names a time to come back at speaks for the whole store.
pub(crate) fn refusal(store: String, key: Option<&ObjectKey>, response: &Response) -> StorageError {
    let status = response.status();
    let is_throttling =
        matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE);
    match parse_retry_after(response.headers()) {
        Some(retry_after) if is_throttling => {
            StorageError::Throttled { store, detail: format!("status {status}"), retry_after }
        }
        _ => status_error(store, key, status),
    }
}

/// Returns the time in `Retry-After: 30`. The other form of the header, a date, is left to the caller's own patience: it
/// would have to be compared with a clock that may be wrong.
pub(crate) fn parse_retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds: u64 = headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds))
}

/// Says what a status means.
pub(crate) fn status_error(
    store: String,
    key: Option<&ObjectKey>,
    status: StatusCode,
) -> StorageError {
    let detail = format!("status {status}");
    match (status, key) {
        (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN, _) => {
            StorageError::PermissionDenied { store, detail }
        }
        (StatusCode::PAYLOAD_TOO_LARGE, Some(key)) => {
            let detail = format!("{store} refuses its size");
            StorageError::TooLarge { key: key.clone(), detail }
        }
        (StatusCode::TOO_MANY_REQUESTS, _) => StorageError::Busy { store, detail },
        (StatusCode::INSUFFICIENT_STORAGE, _) => StorageError::NoSpace { store },
        (status, _) if status.is_server_error() => StorageError::NotReachable { store, detail },
        _ => StorageError::InvalidAnswer { store, detail },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content_range(text: &str) -> Option<Range<u64>> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_RANGE, text.parse().unwrap());
        parse_content_range(&headers)
    }

    #[test]
    fn only_sound_content_ranges_are_read() {
        assert_eq!(content_range("bytes 3-9/20"), Some(3..10));
        assert_eq!(content_range("bytes 0-0/*"), Some(0..1));
        for text in ["bytes 9-3/20", "bytes 3-20/20", "bytes 3-/9", "3-9/20", "bytes */20"] {
            assert_eq!(content_range(text), None, "{text}");
        }
        assert_eq!(content_range(&format!("bytes 0-{}/*", u64::MAX)), None);
    }

    #[test]
    fn a_time_to_come_back_is_read_in_seconds_only() {
        let wait = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(RETRY_AFTER, text.parse().unwrap());
            parse_retry_after(&headers)
        };
        assert_eq!(wait("30"), Some(Duration::from_secs(30)));
        for text in ["-1", "", "Fri, 20 Nov 2026 08:00:00 GMT", "99999999999999999999"] {
            assert_eq!(wait(text), None, "{text}");
        }
    }

    #[test]
    fn a_whole_object_is_cut_to_the_range_that_was_asked() {
        let whole = || Answer::Whole(Bytes::from_static(b"0123456789"));
        assert_eq!(whole().cut_to(&(3..5)), Ok(Some(Bytes::from_static(b"34"))));
        assert_eq!(whole().cut_to(&(8..50)), Ok(Some(Bytes::from_static(b"89"))));
        assert_eq!(whole().cut_to(&(20..30)), Ok(Some(Bytes::new())));
        assert_eq!(whole().cut_to_tail(2), Ok(Some(Bytes::from_static(b"89"))));
        assert_eq!(whole().cut_to_tail(200).map(|tail| tail.map(|tail| tail.len())), Ok(Some(10)));
    }

    #[test]
    fn another_part_than_asked_is_refused() {
        let part = |start| Answer::Part { start, bytes: Bytes::from_static(b"345") };
        assert!(part(3).cut_to(&(3..6)).is_ok());
        assert!(part(2).cut_to(&(3..6)).is_err());
        assert!(part(3).cut_to(&(3..5)).is_err());
        assert!(part(3).cut_to_tail(2).is_err());
    }
}
