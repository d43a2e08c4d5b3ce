//! Where each service has people sign in, and what it is asked for.

use reqwest::Url;

use crate::error::Result;

/// A service that people sign in to.
#[derive(Debug, Clone)]
pub(crate) struct Provider {
    /// How people call it.
    pub(crate) name: &'static str,
    /// How a person says yes.
    pub(super) way: ProviderWay,
    /// Who gives tokens.
    pub(super) token: Url,
    /// What is asked for: files that this program has made, and no others, where the service can tell them apart.
    pub(super) scope: &'static str,
    /// It wants questions about tokens in the address. So does Baidu alone.
    pub(super) asks_by_get: bool,
}

#[derive(Debug, Clone)]
pub(super) enum ProviderWay {
    /// The person types a code on any device.
    Device { code: Url },
    /// The person says yes in a browser of this device, which then comes back to this program.
    Browser { authorize: Url, extra: &'static [(&'static str, &'static str)] },
}

/// The row of a service.
struct Row {
    scheme: &'static str,
    name: &'static str,
    is_device: bool,
    ask: &'static str,
    token: &'static str,
    scope: &'static str,
    extra: &'static [(&'static str, &'static str)],
}

const ROWS: [Row; 5] = [
    Row {
        scheme: "dropbox",
        name: "Dropbox",
        is_device: false,
        ask: "https://www.dropbox.com/oauth2/authorize",
        token: "https://api.dropboxapi.com/oauth2/token",
        scope: "files.content.write files.content.read files.metadata.read",
        // Without it there is no refresh token.
        extra: &[("token_access_type", "offline")],
    },
    Row {
        scheme: "gdrive",
        name: "Google Drive",
        is_device: true,
        ask: "https://oauth2.googleapis.com/device/code",
        token: "https://oauth2.googleapis.com/token",
        scope: "https://www.googleapis.com/auth/drive.file",
        extra: &[],
    },
    Row {
        scheme: "onedrive",
        name: "OneDrive",
        is_device: true,
        ask: "https://login.microsoftonline.com/common/oauth2/v2.0/devicecode",
        token: "https://login.microsoftonline.com/common/oauth2/v2.0/token",
        scope: "offline_access Files.ReadWrite.AppFolder",
        extra: &[],
    },
    Row {
        scheme: "box",
        name: "Box",
        is_device: false,
        ask: "https://account.box.com/api/oauth2/authorize",
        token: "https://api.box.com/oauth2/token",
        scope: "",
        extra: &[],
    },
    Row {
        scheme: "baidu",
        name: "Baidu",
        is_device: true,
        ask: "https://openapi.baidu.com/oauth/2.0/device/code",
        token: "https://openapi.baidu.com/oauth/2.0/token",
        scope: "basic,netdisk",
        extra: &[],
    },
];

/// Returns whether a person has to sign in before a store of this scheme can be opened.
pub fn wants_sign_in(scheme: &str) -> bool {
    ROWS.iter().any(|row| row.scheme == scheme)
}

impl Provider {
    /// Returns the service of a scheme, at its own address or at that of a server that speaks like it.
    pub(crate) fn of(scheme: &str, endpoint: Option<&Url>) -> Option<Self> {
        let row = ROWS.iter().find(|row| row.scheme == scheme)?;
        let (ask, token) = (at_endpoint(endpoint, row.ask), at_endpoint(endpoint, row.token));
        let way = if row.is_device {
            ProviderWay::Device { code: ask }
        } else {
            ProviderWay::Browser { authorize: ask, extra: row.extra }
        };
        let asks_by_get = row.scheme == "baidu";
        Some(Self { name: row.name, way, token, scope: row.scope, asks_by_get })
    }

    /// As [`Self::of`], for a driver, whose scheme has a row.
    pub(crate) fn required(scheme: &str, endpoint: Option<&Url>) -> Result<Self> {
        Self::of(scheme, endpoint)
            .ok_or_else(|| crate::credentials::invalid(format!("nobody signs in to {scheme}:")))
    }
}

/// Returns an address of a service, or the same place on another server.
pub(crate) fn at_endpoint(endpoint: Option<&Url>, address: &str) -> Url {
    let own = Url::parse(address).expect("the addresses of services are written in this room");
    let Some(endpoint) = endpoint else { return own };
    let mut url = endpoint.clone();
    url.set_path(&format!("{}{}", endpoint.path().trim_end_matches('/'), own.path()));
    url.set_query(own.query());
    url
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_server_keeps_the_paths_of_the_service() {
        let endpoint = Url::parse("http://127.0.0.1:9/fake/").unwrap();
        let at = |endpoint| at_endpoint(endpoint, "https://api.box.com/2.0/files").to_string();
        assert_eq!(at(None), "https://api.box.com/2.0/files");
        assert_eq!(at(Some(&endpoint)), "http://127.0.0.1:9/fake/2.0/files");
    }

    #[test]
    fn every_service_is_known_by_its_scheme() {
        for row in &ROWS {
            let provider = Provider::of(row.scheme, None).unwrap();
            assert_eq!((provider.name, provider.token.as_str()), (row.name, row.token));
            assert!(wants_sign_in(row.scheme));
        }
        assert!(!wants_sign_in("s3") && Provider::required("s3", None).is_err());
    }
}
