//! What a browser has brought back from the provider, as a device hands it over.
//!
//! *Invariant*: a code is for the server to which its person has signed in, and for no other one that knows the same provider. The device
//! takes the path at which its browser comes back from the address of the server that was named to it, and the provider keeps the code for
//! that place; a server takes codes for its own addresses alone. So another server that a device signs in to cannot sign in here by what
//! it gets. What a request says of the address does not count: whoever passes a code on writes that, too.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

use reqwest::Url;
use serde::Deserialize;

use crate::error::{Result, ServerError};

/// What is before the address of the server where browsers come back to on a device.
const REDIRECT_PATH: &str = "/sign-in/oidc";

/// Returns where browsers come back to on a device that signs in to the server of this address, whose own path does not count:
/// `/sign-in/oidc/cloud.example.org`, `/sign-in/oidc/127.0.0.1-8470`.
pub fn redirect_path(server: &Url) -> String {
    let host = server.host_str().unwrap_or_default().trim_matches(['[', ']']).replace(':', "-");
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    // Where a host ends as if there were a port, its port is always there, so that no other host has its path.
    let is_doubtful = host.rsplit_once('-').is_some_and(|(_, end)| is_number(end));
    let port = if is_doubtful { server.port_or_known_default() } else { server.port() };
    match port {
        Some(port) => format!("{REDIRECT_PATH}/{host}-{port}"),
        None => format!("{REDIRECT_PATH}/{host}"),
    }
}

/// The addresses of this server, as its operator has said.
#[derive(Debug, Clone)]
pub(super) struct Addresses(Vec<Url>);

impl Addresses {
    /// Reads addresses, one at least.
    ///
    /// # Errors
    /// [`ServerError::Invalid`].
    pub(super) fn read(texts: &[String]) -> Result<Self> {
        let invalid = |reason: String| {
            Err(ServerError::Invalid { what: "the address of this server", reason })
        };
        let mut addresses = Vec::new();
        for text in texts {
            match Url::parse(text) {
                Ok(url) if matches!(url.scheme(), "http" | "https") => addresses.push(url),
                _ => return invalid(format!("'{text}' is none; https://cloud.example.org is one")),
            }
        }
        match addresses.is_empty() {
            true => invalid("there is none, so nobody could sign in".to_owned()),
            false => Ok(Self(addresses)),
        }
    }

    /// Says where browsers may come back to.
    fn places(&self) -> String {
        let place = |url: &Url| format!("http://127.0.0.1:PORT{}", redirect_path(url));
        self.0.iter().map(place).collect::<Vec<_>>().join(" or ")
    }
}

/// The longest code, in bytes.
const CODE_LENGTH_MAX: usize = 4096;

/// How long a verifier is, by section 4.1 of RFC 7636.
const VERIFIER_LENGTHS: std::ops::RangeInclusive<usize> = 43..=128;

/// How long a nonce is: 128 random bits have 22 letters.
const NONCE_LENGTHS: std::ops::RangeInclusive<usize> = 22..=128;

/// A code, and what proves that it is for whoever brings it.
#[derive(Clone, Deserialize)]
pub struct Grant {
    /// What the provider has given to the browser.
    pub authorization_code: String,
    /// Where the browser has brought it.
    pub redirect_uri: String,
    /// What the provider was shown the hash of.
    pub code_verifier: String,
    /// What the ID token must repeat.
    pub nonce: String,
}

impl fmt::Debug for Grant {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Grant(..)")
    }
}

impl Grant {
    /// Checks the form of all of it, so that the provider is asked for nothing that cannot be.
    ///
    /// # Errors
    /// [`ServerError::Invalid`].
    pub(super) fn check(&self, addresses: &Addresses) -> Result<()> {
        let invalid =
            |what, reason: &str| Err(ServerError::Invalid { what, reason: reason.to_owned() });
        let is_plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
        let code = &self.authorization_code;
        if code.is_empty() || code.len() > CODE_LENGTH_MAX || !is_plain(code) {
            return invalid("authorization_code", "no provider gives such a one");
        }
        let is_unreserved = |text: &str| {
            text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte))
        };
        if !VERIFIER_LENGTHS.contains(&self.code_verifier.len())
            || !is_unreserved(&self.code_verifier)
        {
            return invalid("code_verifier", "it has 43 to 128 letters and digits");
        }
        if !NONCE_LENGTHS.contains(&self.nonce.len()) || !is_unreserved(&self.nonce) {
            return invalid("nonce", "it has 22 to 128 letters and digits");
        }
        match leads_to_a_device(&self.redirect_uri, addresses) {
            true => Ok(()),
            false => {
                let places = addresses.places();
                let reason =
                    format!("the browser came back for another server; here it is {places}");
                invalid("redirect_uri", &reason)
            }
        }
    }
}

/// Tells whether a browser comes back to the computer on which it runs, as RFC 8252, section 7.3, has it, and for one of these addresses.
fn leads_to_a_device(text: &str, addresses: &Addresses) -> bool {
    let is_one = |url: Url| {
        let host = url.host_str().unwrap_or_default();
        let is_loopback =
            host == Ipv4Addr::LOCALHOST.to_string() || host == format!("[{}]", Ipv6Addr::LOCALHOST);
        // What the provider compares are letters, so there is one spelling.
        is_loopback
            && url.as_str() == text
            && url.scheme() == "http"
            && addresses.0.iter().any(|address| redirect_path(address) == url.path())
            && url.username().is_empty()
            && url.password().is_none()
            && url.query().is_none()
            && url.fragment().is_none()
    };
    Url::parse(text).is_ok_and(is_one)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses() -> Addresses {
        let texts = ["https://cloud.example.org", "http://127.0.0.1:8384/"];
        Addresses::read(&texts.map(str::to_owned)).unwrap()
    }

    fn grant() -> Grant {
        Grant {
            authorization_code: "a-code".to_owned(),
            redirect_uri: "http://127.0.0.1:4711/sign-in/oidc/cloud.example.org".to_owned(),
            code_verifier: "v".repeat(43),
            nonce: "n".repeat(22),
        }
    }

    #[test]
    fn each_server_has_a_path_of_its_own() {
        for (address, path) in [
            ("https://cloud.example.org", "cloud.example.org"),
            ("https://CLOUD.example.org:443/a/b?c#d", "cloud.example.org"),
            ("https://cloud.example.org:80", "cloud.example.org-80"),
            ("http://cloud.example.org:443", "cloud.example.org-443"),
            ("http://127.0.0.1:8384", "127.0.0.1-8384"),
            ("http://[::1]:8384", "--1-8384"),
            ("http://[0:0:0:0:0:0:0:1]", "--1-80"),
            ("https://b\u{fc}cher.example", "xn--bcher-kva.example"),
        ] {
            let url = Url::parse(address).unwrap();
            assert_eq!(redirect_path(&url), format!("{REDIRECT_PATH}/{path}"), "{address}");
        }
        // Who chooses a name does not get the path of somebody's port.
        for (one, other) in [
            ("http://box:8384", "http://box-8384"),
            ("http://[::1]:8384", "http://[::1:8384]"),
            ("https://box-443", "https://box"),
            ("http://box-8384", "http://box-8384:8384"),
        ] {
            let [one, other] = [one, other].map(|text| redirect_path(&Url::parse(text).unwrap()));
            assert_ne!(one, other);
        }
    }

    #[test]
    fn addresses_of_a_server_are_those_of_the_web() {
        for text in ["cloud.example.org", "", "ftp://cloud.example.org", "https://", "mailto:a@b"] {
            let refused = Addresses::read(&[text.to_owned()]).unwrap_err();
            assert!(matches!(refused, ServerError::Invalid { .. }), "{text}: {refused}");
        }
        assert!(Addresses::read(&[]).unwrap_err().to_string().contains("there is none"));
    }

    #[test]
    fn browsers_come_back_to_this_computer_only() {
        let addresses = addresses();
        assert!(grant().check(&addresses).is_ok());
        for text in [
            "http://[::1]:1/sign-in/oidc/cloud.example.org",
            "http://127.0.0.1/sign-in/oidc/127.0.0.1-8384",
        ] {
            assert!(leads_to_a_device(text, &addresses), "{text}");
        }
        let path = "/sign-in/oidc/cloud.example.org";
        for text in [
            format!("https://127.0.0.1:1{path}"),
            format!("http://127.0.0.1:1{path}/"),
            "http://127.0.0.1:1/other".to_owned(),
            format!("http://127.0.0.1:1{path}?x"),
            format!("http://127.0.0.1:1{path}#x"),
            format!("http://a@127.0.0.1:1{path}"),
            format!("http://127.1:1{path}"),
            format!("http://localhost:1{path}"),
            format!("http://127.0.0.1.example.org{path}"),
            format!("http://example.org{path}"),
            String::new(),
        ] {
            assert!(!leads_to_a_device(&text, &addresses), "{text}");
        }
    }

    #[test]
    fn a_code_for_another_server_is_refused_and_that_one_is_not_repeated() {
        for place in [
            "",
            "/",
            "/evil.example.org",
            "/cloud.example.org-8443",
            "/cloud.example.org/",
            "/cloud.example.org/x",
            "/CLOUD.example.org",
            "/x/../cloud.example.org",
            "/cloud%2Eexample.org",
        ] {
            let mut grant = grant();
            grant.redirect_uri = format!("http://127.0.0.1:4711/sign-in/oidc{place}");
            let refused = grant.check(&addresses()).unwrap_err();
            assert!(
                matches!(refused, ServerError::Invalid { what: "redirect_uri", .. }),
                "{place}"
            );
            let text = refused.to_string();
            assert!(
                text.contains("http://127.0.0.1:PORT/sign-in/oidc/cloud.example.org"),
                "{text}"
            );
            assert!(text.contains("/127.0.0.1-8384") && !text.contains("evil"), "{text}");
        }
    }

    #[test]
    fn what_no_provider_gives_is_refused_before_it_is_asked() {
        let refused = |change: fn(&mut Grant)| {
            let mut changed = grant();
            change(&mut changed);
            changed.check(&addresses()).unwrap_err().to_string()
        };
        assert!(refused(|grant| grant.authorization_code.clear()).contains("authorization_code"));
        assert!(refused(|grant| grant.authorization_code = "a b".to_owned()).contains("code"));
        assert!(refused(|grant| grant.authorization_code = "x".repeat(4097)).contains("code"));
        assert!(refused(|grant| grant.code_verifier = "v".repeat(42)).contains("code_verifier"));
        assert!(refused(|grant| grant.code_verifier.push('=')).contains("code_verifier"));
        assert!(refused(|grant| grant.nonce = "short".to_owned()).contains("nonce"));
        assert!(refused(|grant| grant.redirect_uri.push('x')).contains("redirect_uri"));
        assert_eq!(format!("{:?}", grant()), "Grant(..)");
    }
}
