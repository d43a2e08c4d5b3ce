//! Which addresses lead to this computer.

use std::net::IpAddr;

use url::Url;

/// Tells whether a host, without brackets, is this computer. No name is looked up: whoever answers could say so of any.
pub(crate) fn is_loopback(host: &str) -> bool {
    host == "localhost" || host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
}

/// Tells whether an address leads to this computer.
pub fn leads_here(url: &Url) -> bool {
    is_loopback(url.host_str().unwrap_or_default().trim_matches(['[', ']']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_computer_is_known_by_its_names() {
        for host in ["localhost", "127.0.0.1", "127.9.9.9", "::1"] {
            assert!(is_loopback(host), "{host}");
        }
        for host in ["", "[::1]", "localhost.example.org", "192.168.0.1", "::2", "0.0.0.0"] {
            assert!(!is_loopback(host), "{host}");
        }
        for (address, is_here) in [
            ("http://localhost:9/x", true),
            ("https://[::1]", true),
            ("http://127.0.0.1.example.org", false),
            ("mailto:a@localhost", false),
        ] {
            assert_eq!(leads_here(&Url::parse(address).unwrap()), is_here, "{address}");
        }
    }
}
