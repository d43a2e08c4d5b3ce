//! Takes the address of a store in a network apart.

#![cfg_attr(not(feature = "stores"), allow(dead_code, reason = "a driver uses a part of it"))]

use std::collections::BTreeMap;

use url::Url;

use crate::error::{Result, StorageError};

/// An address `scheme://user@host:port/path?option=value`, checked for secrets and for what does not belong there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Address {
    /// The account, which is no secret.
    pub(crate) user: Option<String>,
    /// Name or number of the host, or what stands in its place: a bucket.
    pub(crate) host: String,
    pub(crate) port: Option<u16>,
    /// The segments of the path, decoded.
    pub(crate) segments: Vec<String>,
    options: BTreeMap<String, String>,
    /// The address as text, for errors.
    shown: String,
}

impl Address {
    /// Reads what stands after `scheme:`; the two slashes may be missing where no host is meant.
    pub(crate) fn parse(scheme: &str, rest: &str) -> Result<Self> {
        let text = match rest.strip_prefix("//") {
            Some(after) => format!("{scheme}://{after}"),
            None => format!("{scheme}://{rest}"),
        };
        let url = checked(&text)?;
        let shown = url.to_string();
        let host = url.host_str().filter(|host| !host.is_empty());
        let host = host.ok_or_else(|| refused(&shown, "it names no host"))?.to_owned();
        let mut segments = Vec::new();
        for segment in url.path().split('/').filter(|segment| !segment.is_empty()) {
            segments.push(decoded(segment).ok_or_else(|| refused(&shown, "its path is no text"))?);
        }
        if segments.iter().any(|segment| segment.contains(['/', '\\', '\0']) || segment == "..") {
            return Err(refused(&shown, "its path leaves itself"));
        }
        let user = match url.username() {
            "" => None,
            user => Some(decoded(user).ok_or_else(|| refused(&shown, "its user is no text"))?),
        };
        let options = url.query_pairs().into_owned().collect();
        Ok(Self { user, host, port: url.port(), segments, options, shown })
    }

    /// Returns the value of an option that is itself the address of a server.
    pub(crate) fn server(&self, name: &str) -> Result<Option<Url>> {
        self.options.get(name).map(|text| server(text)).transpose()
    }

    /// Returns the value of an option.
    pub(crate) fn option(&self, name: &str) -> Option<&str> {
        self.options.get(name).map(String::as_str)
    }

    /// Refuses options that the driver does not know: a misspelt one would silently mean nothing.
    pub(crate) fn allow_only(&self, known: &[&str]) -> Result<()> {
        match self.options.keys().find(|name| !known.contains(&name.as_str())) {
            None => Ok(()),
            Some(name) => Err(self.refused(&format!("the option '{name}' is not known here"))),
        }
    }

    /// Returns the path as `a/b`, without a slash at its ends.
    pub(crate) fn path(&self) -> String {
        self.segments.join("/")
    }

    /// Returns what the names of all objects begin with: nothing, or the path with a slash at its end.
    pub(crate) fn prefix(&self) -> String {
        self.segments.iter().map(|segment| format!("{segment}/")).collect()
    }

    /// Returns `host:port`.
    pub(crate) fn host_and_port(&self, default_port: u16) -> String {
        format!("{}:{}", self.host, self.port.unwrap_or(default_port))
    }

    /// Says what is wrong with this address.
    pub(crate) fn refused(&self, detail: &str) -> StorageError {
        refused(&self.shown, detail)
    }
}

/// Reads the `http:` or `https:` address of a server.
pub(crate) fn server(text: &str) -> Result<Url> {
    let url = checked(text)?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(refused(url.as_str(), "a server is reached by http: or https:"));
    }
    Ok(url)
}

/// Parses, and refuses a password without showing it.
fn checked(text: &str) -> Result<Url> {
    // An address that cannot be read may hold a password anywhere, so it is not shown.
    let scheme = text.split(':').next().unwrap_or_default();
    let mut url =
        Url::parse(text).map_err(|error| refused(&format!("{scheme}:"), &error.to_string()))?;
    if url.password().is_some() {
        let _has_a_host = url.set_password(None);
        return Err(refused(url.as_str(), "a password must not stand in an address"));
    }
    if url.fragment().is_some() {
        return Err(refused(url.as_str(), "it has a '#'; write %23"));
    }
    Ok(url)
}

fn refused(shown: &str, detail: &str) -> StorageError {
    StorageError::InvalidUrl { url: shown.to_owned(), detail: detail.to_owned() }
}

/// Resolves the percent codes of a segment.
pub(crate) fn decoded(segment: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(segment.len());
    let mut rest = segment.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let [high, low, after @ ..] = rest else { return None };
        let digits = [*high, *low];
        bytes.push(u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?);
        rest = after;
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_taken_apart() {
        let address =
            Address::parse("sftp", "//ada@host:2222/srv/my%20files/?x=1&endpoint=http://h:9/")
                .unwrap();
        assert_eq!(address.user.as_deref(), Some("ada"));
        assert_eq!(address.host_and_port(22), "host:2222");
        assert_eq!(address.path(), "srv/my files");
        assert_eq!(address.prefix(), "srv/my files/");
        assert_eq!(address.option("x"), Some("1"));
        assert_eq!(address.server("endpoint").unwrap().unwrap().as_str(), "http://h:9/");
        assert!(address.allow_only(&["x"]).is_err());
        address.allow_only(&["x", "endpoint"]).unwrap();
        let up = Address::parse("sftp", "//host/a/%2e%2e/%2e%2e/b").unwrap();
        assert_eq!(up.path(), "b", "nothing leads above the root");
        let bucket = Address::parse("s3", "My.Bucket/prefix").unwrap();
        assert_eq!((bucket.host.as_str(), bucket.path().as_str()), ("My.Bucket", "prefix"));
        assert_eq!(Address::parse("ftp", "//[::1]:2121/").unwrap().host_and_port(21), "[::1]:2121");
    }

    #[test]
    fn a_password_is_refused_and_not_shown() {
        for rest in ["//ada:sesame@host/x", "//ada:sesame@host:bad/x", "//:sesame@host/"] {
            let error = Address::parse("ftp", rest).unwrap_err();
            assert!(!format!("{error} {error:?}").contains("sesame"), "{error:?}");
        }
        let address = Address::parse("s3", "b?endpoint=http://ada:sesame@host/").unwrap();
        let error = address.server("endpoint").unwrap_err();
        assert!(!error.to_string().contains("sesame"), "{error}");
    }

    #[test]
    fn hostile_and_empty_addresses_are_refused() {
        for rest in ["", "//", "///path", "//host/a%2Fb", "//host/%zz", "//h/#f"] {
            assert!(Address::parse("sftp", rest).is_err(), "{rest}");
        }
        assert!(server("ftp://host/").is_err() && server("http:").is_err());
    }
}
