//! Azure's signature of a request with the key of the account ("Shared Key").

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use reqwest::Request;
use reqwest::header::{HeaderMap, HeaderName};
use ring::hmac;

use crate::credentials::invalid;
use crate::error::Result;

/// The headers that are signed by their place, in order.
const SIGNED: [&str; 11] = [
    "content-encoding",
    "content-language",
    "content-length",
    "content-md5",
    "content-type",
    "date",
    "if-modified-since",
    "if-match",
    "if-none-match",
    "if-unmodified-since",
    "range",
];

/// The key of an account.
pub(super) struct AccountKey(hmac::Key);

impl AccountKey {
    /// Reads a key as Azure shows it.
    pub(super) fn parse(text: &str) -> Result<Self> {
        let bytes = STANDARD
            .decode(text)
            .map_err(|_| invalid("'secret_key' is not in Base64, as Azure shows it".to_owned()))?;
        Ok(Self(hmac::Key::new(hmac::HMAC_SHA256, &bytes)))
    }

    /// Returns the signature of a request.
    pub(super) fn sign(&self, account: &str, request: &Request) -> String {
        STANDARD.encode(hmac::sign(&self.0, text_of(account, request).as_bytes()))
    }
}

/// Returns what is signed.
fn text_of(account: &str, request: &Request) -> String {
    let headers = request.headers();
    let mut text = format!("{}\n", request.method());
    for name in SIGNED {
        let value = value_of(headers, name);
        // A length of nothing is no length.
        text.push_str(if name == "content-length" && value == "0" { "" } else { value });
        text.push('\n');
    }
    let mut own: Vec<(&str, &str)> = headers
        .keys()
        .map(HeaderName::as_str)
        .filter(|name| name.starts_with("x-ms-"))
        .map(|name| (name, value_of(headers, name)))
        .collect();
    own.sort_unstable();
    for (name, value) in own {
        text.push_str(&format!("{name}:{value}\n"));
    }
    text.push_str(&format!("/{account}{}", request.url().path()));
    let mut query: Vec<(String, String)> = request
        .url()
        .query_pairs()
        .map(|(name, value)| (name.to_lowercase(), value.into_owned()))
        .collect();
    query.sort_unstable();
    for (name, value) in query {
        text.push_str(&format!("\n{name}:{value}"));
    }
    text
}

fn value_of<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().trim()
}

/// Writes a time as HTTP does: `Fri, 20 Nov 2026 08:00:00 GMT`.
pub(super) fn http_date(unix_seconds: i64) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let seconds = unix_seconds.max(0).unsigned_abs();
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    let is_leap =
        |year: u64| year.is_multiple_of(4) && !year.is_multiple_of(100) || year.is_multiple_of(400);
    let (mut year, mut day) = (1970, days);
    while day >= 365 + u64::from(is_leap(year)) {
        day -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let february = 28 + u64::from(is_leap(year));
    let lengths = [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 0;
    while day >= lengths[month] {
        day -= lengths[month];
        month += 1;
    }
    let (week_day, month) = (DAYS[(days % 7) as usize], MONTHS[month]);
    format!("{week_day}, {:02} {month} {year} {hour:02}:{minute:02}:{second:02} GMT", day + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_http() {
        for (seconds, text) in [
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
            (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"),
            (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"),
            (1_709_251_199, "Thu, 29 Feb 2024 23:59:59 GMT"),
            (1_798_761_600, "Fri, 01 Jan 2027 00:00:00 GMT"),
        ] {
            assert_eq!(http_date(seconds), text);
        }
    }

    #[test]
    fn what_is_signed_is_the_text_of_azures_documents() {
        let mut request = Request::new(
            reqwest::Method::GET,
            "https://a.blob.core.windows.net/c?restype=container&Comp=list&prefix=a%2Fb"
                .parse()
                .unwrap(),
        );
        for (name, value) in [("x-ms-version", "v"), ("x-ms-date", "d"), ("content-length", "0")] {
            request.headers_mut().insert(name, value.parse().unwrap());
        }
        let text = text_of("a", &request);
        let expected = "GET\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:d\nx-ms-version:v\n/a/c\ncomp:list\nprefix:a/b\nrestype:container";
        assert_eq!(text, expected);
    }
}
