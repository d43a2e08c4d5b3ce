//! Ranges of an object: `bytes=3-9`, `bytes=3-`, `bytes=-64`. One range per request; more are answered with the whole.

use std::ops::Range;

use axum::http::header::CONTENT_RANGE;
use axum::http::{HeaderName, HeaderValue};

use crate::error::ServerError;

/// Which part of an object is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part {
    /// All of it.
    Whole,
    /// Bytes from the first bound to before the second, which is not empty and lies inside.
    Range(Range<u64>),
}

impl Part {
    /// Reads the header `Range` for an object of `length` bytes. What is not understood asks for the whole, as the
    /// standard wants it.
    pub(crate) fn parse(header: &HeaderValue, length: u64) -> Result<Self, ServerError> {
        let Some(range) = parse_range(header, length) else { return Ok(Self::Whole) };
        if range.is_empty() {
            return Err(ServerError::RangeOutside { length });
        }
        Ok(Self::Range(range))
    }

    /// Returns the bounds.
    pub(crate) fn bounds(&self, length: u64) -> Range<u64> {
        match self {
            Self::Whole => 0..length,
            Self::Range(range) => range.clone(),
        }
    }

    /// Returns the header that says which part is sent.
    pub(crate) fn content_range(&self, length: u64) -> Option<(HeaderName, HeaderValue)> {
        let Self::Range(range) = self else { return None };
        let text = format!("bytes {}-{}/{length}", range.start, range.end - 1);
        Some((CONTENT_RANGE, text.parse().expect("digits fit into a header")))
    }
}

/// Returns the part that is asked for and exists, which may be empty.
fn parse_range(header: &HeaderValue, length: u64) -> Option<Range<u64>> {
    let (first, last) = header.to_str().ok()?.strip_prefix("bytes=")?.split_once('-')?;
    if first.is_empty() {
        let tail: u64 = last.parse().ok()?;
        return Some(length.saturating_sub(tail)..length);
    }
    let first: u64 = first.parse().ok()?;
    let end = match last {
        "" => length,
        last => last.parse::<u64>().ok().filter(|&last| last >= first)?.saturating_add(1),
    };
    Some(first.min(length)..end.min(length))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(text: &str) -> Result<Part, ServerError> {
        Part::parse(&HeaderValue::from_str(text).unwrap(), 10)
    }

    #[test]
    fn ranges_are_cut_at_the_end_of_the_object() {
        for (text, range) in [
            ("bytes=0-0", 0..1),
            ("bytes=3-9", 3..10),
            ("bytes=3-", 3..10),
            ("bytes=8-500", 8..10),
            ("bytes=0-18446744073709551615", 0..10),
            ("bytes=-4", 6..10),
            ("bytes=-99", 0..10),
        ] {
            assert_eq!(part(text).unwrap(), Part::Range(range), "{text}");
        }
    }

    #[test]
    fn ranges_outside_of_the_object_are_refused() {
        for text in ["bytes=10-", "bytes=10-20", "bytes=-0", "bytes=18446744073709551615-"] {
            assert!(matches!(part(text), Err(ServerError::RangeOutside { length: 10 })), "{text}");
        }
    }

    #[test]
    fn what_is_no_single_range_asks_for_the_whole() {
        for text in ["bytes=9-3", "bytes=a-b", "bytes=1-2,4-5", "lines=1-2", "bytes=-", "3-9", ""] {
            assert_eq!(part(text).unwrap(), Part::Whole, "{text}");
        }
    }
}
