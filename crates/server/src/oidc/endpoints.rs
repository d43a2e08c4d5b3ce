//! Where a provider is asked for what (OpenID Connect Discovery 1.0).
//!
//! *Invariant*: every address is one of TLS, or of this computer where the provider is on it: whoever can answer in the place of the
//! provider could be anybody.

use reqwest::Url;
use serde::Deserialize;

use crate::error::{Result, ServerError};
use crate::loopback::leads_here;

/// Behind the issuer, as section 4 of the specification wants it.
const DESCRIPTION: &str = "/.well-known/openid-configuration";

/// How this server says who it is, where it has a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Authentication {
    /// In a header.
    Basic,
    /// In the body.
    Post,
}

/// The addresses of a provider.
#[derive(Debug)]
pub(super) struct Endpoints {
    pub(super) authorization: Url,
    pub(super) token: Url,
    pub(super) keys: Url,
    pub(super) user_info: Option<Url>,
    pub(super) authentication: Authentication,
}

#[derive(Deserialize)]
struct Description {
    issuer: String,
    authorization_endpoint: String,
    token_endpoint: String,
    jwks_uri: String,
    userinfo_endpoint: Option<String>,
    token_endpoint_auth_methods_supported: Option<Vec<String>>,
}

impl Endpoints {
    /// Reads the description of the provider that this server was told of.
    ///
    /// # Errors
    /// Why it is none, in words.
    pub(super) fn read(bytes: &[u8], issuer: &str) -> Result<Self, String> {
        let description: Description = serde_json::from_slice(bytes).map_err(|_| {
            format!("there is no description of a provider at {issuer}{DESCRIPTION}")
        })?;
        if description.issuer != issuer {
            let shown = description.issuer.escape_debug().take(200).collect::<String>();
            return Err(format!(
                "it calls itself '{shown}', and this server knows it as '{issuer}'"
            ));
        }
        let is_here = is_here(issuer);
        let address = |what: &str, text: &str| {
            address(text, is_here).map_err(|reason| format!("its {what} is of no use: {reason}"))
        };
        // The specification names the one that every provider has.
        let methods = description.token_endpoint_auth_methods_supported;
        let takes = |name: &str| {
            methods.as_ref().is_none_or(|methods| methods.iter().any(|method| method == name))
        };
        let user_info = description.userinfo_endpoint;
        Ok(Self {
            authorization: address("authorization_endpoint", &description.authorization_endpoint)?,
            token: address("token_endpoint", &description.token_endpoint)?,
            keys: address("jwks_uri", &description.jwks_uri)?,
            user_info: user_info.map(|text| address("userinfo_endpoint", &text)).transpose()?,
            authentication: match takes("client_secret_basic") || !takes("client_secret_post") {
                true => Authentication::Basic,
                false => Authentication::Post,
            },
        })
    }
}

/// Returns where a provider describes itself.
pub(super) fn description_of(issuer: &str) -> Result<Url> {
    let text = format!("{}{DESCRIPTION}", issuer.trim_end_matches('/'));
    address(&text, is_here(issuer))
        .map_err(|reason| ServerError::ProviderUnusable { reason: reason.to_owned() })
}

/// Tells whether an address leads to this computer, without a look at names.
pub(super) fn is_here(text: &str) -> bool {
    Url::parse(text).is_ok_and(|url| leads_here(&url))
}

/// Reads the address of a provider.
pub(super) fn issuer(text: &str) -> Result<Url, &'static str> {
    address(text, true)
}

/// Reads an address of a provider, which may be on this computer. One that is elsewhere sends nobody here.
fn address(text: &str, may_be_here: bool) -> Result<Url, &'static str> {
    let url = Url::parse(text).map_err(|_| "it is no address")?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err("a password does not belong into it");
    }
    match url.scheme() {
        "https" => Ok(url),
        "http" if may_be_here && leads_here(&url) => Ok(url),
        _ => Err("it does not begin with https:"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    const ISSUER: &str = "https://id.example.org/realms/home";

    fn description() -> Value {
        json!({
            "issuer": ISSUER,
            "authorization_endpoint": "https://id.example.org/auth?kc=1",
            "token_endpoint": "https://id.example.org/token",
            "jwks_uri": "https://keys.example.org/keys",
        })
    }

    fn read(description: &Value) -> Result<Endpoints, String> {
        Endpoints::read(description.to_string().as_bytes(), ISSUER)
    }

    #[test]
    fn description_of_the_provider_itself_is_read() {
        let found = read(&description()).unwrap();
        assert_eq!(found.authorization.as_str(), "https://id.example.org/auth?kc=1");
        assert_eq!((found.user_info, found.authentication), (None, Authentication::Basic));
        let mut posting = description();
        posting["token_endpoint_auth_methods_supported"] = json!(["client_secret_post", "none"]);
        assert_eq!(read(&posting).unwrap().authentication, Authentication::Post);
        for issuer in [ISSUER.to_owned(), format!("{ISSUER}/")] {
            let url = description_of(&issuer).unwrap();
            assert_eq!(url.as_str(), format!("{ISSUER}/.well-known/openid-configuration"));
        }
    }

    #[test]
    fn description_of_another_or_with_addresses_for_anybody_is_refused() {
        for (name, text, reason) in [
            ("issuer", "https://id.example.org/realms/other", "calls itself"),
            ("issuer", "https://id.example.org/realms/home/", "calls itself"),
            ("token_endpoint", "http://id.example.org/token", "https:"),
            ("jwks_uri", "file:///etc/passwd", "https:"),
            ("authorization_endpoint", "javascript:alert(1)", "https:"),
            ("userinfo_endpoint", "http://10.0.0.1/", "https:"),
            ("token_endpoint", "http://127.0.0.1:8470/api", "https:"),
            ("jwks_uri", "http://localhost/keys", "https:"),
            ("token_endpoint", "https://a:b@id.example.org/", "password"),
            ("jwks_uri", "keys", "no address"),
        ] {
            let mut changed = description();
            changed[name] = json!(text);
            let why = read(&changed).unwrap_err();
            assert!(why.contains(reason), "{name}: {why}");
        }
        assert!(Endpoints::read(b"<html>", ISSUER).unwrap_err().contains("no description"));
    }

    #[test]
    fn without_tls_only_this_computer_is_asked() {
        for text in ["http://127.0.0.1:9/x", "http://[::1]/", "http://localhost:9"] {
            assert!(issuer(text).is_ok() && is_here(text), "{text}");
        }
        let here = "http://127.0.0.1:9";
        let mut local = description();
        local["issuer"] = json!(here);
        local["token_endpoint"] = json!("http://[::1]:9/token");
        assert!(Endpoints::read(local.to_string().as_bytes(), here).is_ok());
        for text in ["http://localhost.example.org", "http://192.168.0.1", "http://[::2]/"] {
            assert!(issuer(text).is_err() && !is_here(text), "{text}");
        }
        assert!(!is_here(ISSUER));
    }
}
