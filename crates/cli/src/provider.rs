//! A visit of a person to the provider by which a server lets people in (OpenID Connect): the code flow, with PKCE (RFC 7636), and with a
//! browser that comes back to this computer (RFC 8252).
//!
//! *Invariants*: what comes back counts only with the state that was sent along, once, and at the path of the server that the person has
//! named, so that no other server can use it (RFC 9700, section 4.4); the browser is sent nowhere but to an address of TLS, or of this
//! computer where the server is on it.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use model::Random;
use model::environment::random_bytes;
use serde::{Deserialize, Serialize};
use serde_json::json;
use server::loopback::leads_here;
use server::oidc::{redirect_path, word};
use tokio::runtime::Runtime;
use url::Url;

use crate::arguments::BrowserArguments;
use crate::browser::{self, Lead, VISIT_MAX, Visitors};
use crate::context::Context;
use crate::error::{Code, CommandError, Result};

/// Where a browser begins on this device.
const START_PATH: &str = "/sign-in/start";

/// What a provider is asked beside what stands in its own address.
const QUESTIONS: [&str; 8] = [
    "response_type",
    "client_id",
    "redirect_uri",
    "scope",
    "state",
    "nonce",
    "code_challenge",
    "code_challenge_method",
];

const DONE: &str = "Done. You can close this page, and go back to where you called Syncline.";
const REFUSED: &str = "The provider did not let you in. The terminal says why.";
const NOTHING: &str = "There is nothing here.";
const NOT_OURS: &str = "This does not belong to the sign-in that waits here.";

/// What a server says of its provider.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Offer {
    /// The provider, as it calls itself.
    pub(crate) issuer: String,
    /// Where the browser goes.
    pub(crate) authorization_endpoint: String,
    /// By which id the provider knows the server.
    pub(crate) client_id: String,
    /// What the provider is asked for.
    pub(crate) scope: String,
}

/// What the server wants of a visit.
#[derive(Serialize)]
pub(crate) struct Grant {
    authorization_code: String,
    redirect_uri: String,
    code_verifier: String,
    nonce: String,
}

/// What the browser was sent out with.
struct Errand {
    issuer: String,
    /// Where it comes back to on this device.
    origin: String,
    path: String,
    state: String,
    nonce: String,
    verifier: String,
}

/// What a browser has come back with.
#[derive(Debug, PartialEq, Eq)]
enum Back {
    /// Nothing of ours: it wants an icon, for example.
    Elsewhere,
    /// An answer to another errand.
    NotOurs,
    /// A no.
    No(String),
    /// A code.
    Code(String),
}

/// Where a browser begins that this program has opened, and where it goes on.
struct Start {
    target: String,
    url: Url,
}

/// Sends a person to the provider of the server at an address, and returns what comes back.
///
/// # Errors
/// [`Code::ProviderRefused`] where the provider says no, [`Code::Refused`] where nobody comes back in time.
pub(crate) fn visit(
    context: &Context<'_>,
    runtime: &Runtime,
    server: &Url,
    offer: &Offer,
    arguments: &BrowserArguments,
) -> Result<Grant> {
    let (listener, port) = runtime.block_on(browser::listen(arguments.port))?;
    let origin = format!("http://127.0.0.1:{port}");
    let errand = Errand::new(offer, origin, redirect_path(server), &*context.random);
    let url = errand.address(offer, leads_here(server))?;
    tell(context, &url);
    let code = if arguments.no_browser {
        // The browser is elsewhere, and finds nobody at this port of its computer.
        drop(listener);
        let pasted = context.ui.pasted("Address at which the browser ends", VISIT_MAX)?;
        errand.code_of_pasted(&pasted)?
    } else {
        let start = errand.start(url, &*context.random);
        let lead = start.address(&errand).and_then(|address| browser::open(context, &address));
        runtime.block_on(async {
            let mut visitors = Visitors::listen(listener);
            let waiting = errand.wait(&mut visitors, &start, lead);
            let waited = tokio::time::timeout(VISIT_MAX, waiting).await;
            visitors.end().await;
            waited.unwrap_or_else(|_| Err(browser::too_late()))
        })?
    };
    Ok(Grant {
        authorization_code: code,
        redirect_uri: errand.redirect_uri(),
        code_verifier: errand.verifier,
        nonce: errand.nonce,
    })
}

/// Tells the person where to go.
fn tell(context: &Context<'_>, url: &Url) {
    context.ui.json(&json!({
        "schema": "syncline.login/1", "type": "visit", "address": url.as_str(),
    }));
    context.ui.answer(format!("Open in a browser:\n{url}"));
}

impl Start {
    fn address(&self, errand: &Errand) -> Option<Url> {
        Url::parse(&format!("{}{}", errand.origin, self.target)).ok()
    }
}

fn secret(random: &dyn Random) -> String {
    URL_SAFE_NO_PAD.encode(random_bytes::<32>(random))
}

impl Errand {
    fn new(offer: &Offer, origin: String, path: String, random: &dyn Random) -> Self {
        let issuer = offer.issuer.clone();
        let (state, nonce, verifier) = (secret(random), secret(random), secret(random));
        Self { issuer, origin, path, state, nonce, verifier }
    }

    fn redirect_uri(&self) -> String {
        format!("{}{}", self.origin, self.path)
    }

    /// Returns where a browser begins that goes on to `url`, which nobody else knows.
    fn start(&self, url: Url, random: &dyn Random) -> Start {
        Start { target: format!("{START_PATH}?{}", secret(random)), url }
    }

    /// Returns where the browser goes. That may be this computer, without TLS, where the server is on it.
    fn address(&self, offer: &Offer, is_server_here: bool) -> Result<Url> {
        let refuse = |reason: &str| {
            CommandError::new(Code::Invalid, "the server sends the browser to no safe place")
                .cause(reason)
                .state("nothing was opened, and nothing was changed")
        };
        let mut url =
            Url::parse(&offer.authorization_endpoint).map_err(|_| refuse("it is no address"))?;
        if url.scheme() != "https"
            && !(url.scheme() == "http" && is_server_here && leads_here(&url))
        {
            return Err(refuse("it does not begin with https:"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(refuse("a name stands in it"));
        }
        // Of two answers to one question some providers take the first.
        if url.query_pairs().any(|(name, _)| QUESTIONS.contains(&&*name)) {
            return Err(refuse("it answers what the provider is asked"));
        }
        let digest = ring::digest::digest(&ring::digest::SHA256, self.verifier.as_bytes());
        let answers = [
            "code",
            &offer.client_id,
            &self.redirect_uri(),
            &offer.scope,
            &self.state,
            &self.nonce,
            &URL_SAFE_NO_PAD.encode(digest),
            "S256",
        ];
        url.query_pairs_mut().extend_pairs(QUESTIONS.iter().zip(answers));
        Ok(url)
    }

    /// Waits for the browser. Whoever comes with anything else waits in vain, and nobody else does for that.
    async fn wait(
        &self,
        visitors: &mut Visitors,
        start: &Start,
        mut lead: Option<Lead>,
    ) -> Result<String> {
        while let Some(visitor) = visitors.next().await {
            if visitor.target == start.target {
                drop(lead.take());
                visitor.send_on(&start.url).await;
                continue;
            }
            match self.judge(&visitor.target) {
                Back::Elsewhere => visitor.answer("404 Not Found", NOTHING).await,
                Back::NotOurs => visitor.answer("400 Bad Request", NOT_OURS).await,
                Back::No(word) => {
                    visitor.answer("200 OK", REFUSED).await;
                    return Err(refused(&word));
                }
                Back::Code(code) => {
                    visitor.answer("200 OK", DONE).await;
                    return Ok(code);
                }
            }
        }
        Err(browser::too_late())
    }

    /// Reads the address at which a browser elsewhere has ended.
    fn code_of_pasted(&self, text: &str) -> Result<String> {
        let no_use = |reason| {
            CommandError::usage("this is not the address at which the browser ends")
                .cause(reason)
                .state("nothing was changed")
        };
        let target = text.trim().strip_prefix(&self.origin);
        match self.judge(target.unwrap_or_default()) {
            Back::Elsewhere => Err(no_use(format!("it begins with {}?", self.redirect_uri()))),
            Back::NotOurs => Err(no_use("it belongs to another sign-in".to_owned())),
            Back::No(word) => Err(refused(&word)),
            Back::Code(code) => Ok(code),
        }
    }

    /// Says what a browser has come back with, by path and query.
    fn judge(&self, target: &str) -> Back {
        let query = target.strip_prefix(&self.path).and_then(|rest| rest.strip_prefix('?'));
        let Some(query) = query else { return Back::Elsewhere };
        let pairs: Vec<_> = url::form_urlencoded::parse(query.as_bytes()).collect();
        let one = |name: &str| {
            let mut found = pairs.iter().filter(|(key, _)| key == name).map(|(_, value)| value);
            found.next().filter(|_| found.next().is_none())
        };
        // A provider that names itself is the one that was asked (RFC 9207).
        let is_of_another = one("iss").is_some_and(|issuer| **issuer != *self.issuer);
        if one("state").is_none_or(|state| **state != *self.state) || is_of_another {
            return Back::NotOurs;
        }
        match (one("error"), one("code")) {
            (Some(word), _) => Back::No(word.to_string()),
            (None, Some(code)) => Back::Code(code.to_string()),
            (None, None) => Back::NotOurs,
        }
    }
}

fn refused(reason: &str) -> CommandError {
    CommandError::new(Code::ProviderRefused, "the provider did not let you in")
        .cause(word(reason))
        .state("nothing was changed")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::SystemRandom;

    const SERVER: &str = "https://cloud.example.org/syncline";

    fn offer(endpoint: &str) -> Offer {
        Offer {
            issuer: "https://id.example.org".to_owned(),
            authorization_endpoint: endpoint.to_owned(),
            client_id: "syncline".to_owned(),
            scope: "openid profile".to_owned(),
        }
    }

    fn errand() -> Errand {
        let path = redirect_path(&Url::parse(SERVER).unwrap());
        Errand::new(&offer(""), "http://127.0.0.1:4711".to_owned(), path, &SystemRandom)
    }

    #[test]
    fn browser_goes_to_the_provider_with_all_that_it_wants() {
        let errand = errand();
        let url = errand.address(&offer("https://id.example.org/auth?tenant=1"), false).unwrap();
        let pairs: Vec<_> = url.query_pairs().map(|(key, _)| key.into_owned()).collect();
        assert_eq!(pairs[0], "tenant");
        assert_eq!(pairs[1..], QUESTIONS);
        assert!(!url.as_str().contains(&errand.verifier));
        let texts = [&errand.state, &errand.nonce, &errand.verifier];
        assert!(texts.iter().all(|text| text.len() == 43), "{texts:?}");
        assert!(texts[0] != texts[1] && texts[1] != texts[2]);
        assert!(errand.address(&offer("http://127.0.0.1:9/auth"), true).is_ok());
        for endpoint in [
            "http://id.example.org",
            "http://127.0.0.1:9/auth",
            "https://somebody@id.example.org",
            "https://id.example.org?state=known",
            "file:///etc/passwd",
            "javascript:x",
            "x",
            "",
        ] {
            let refused = errand.address(&offer(endpoint), false).unwrap_err();
            assert_eq!(refused.code, Code::Invalid, "{endpoint}");
        }
    }

    #[test]
    fn what_comes_back_at_the_path_of_another_server_is_not_ours() {
        let errand = errand();
        let query = format!("code=a&state={}", errand.state);
        assert_eq!(errand.redirect_uri(), "http://127.0.0.1:4711/sign-in/oidc/cloud.example.org");
        let at = |host: &str| errand.judge(&format!("/sign-in/oidc/{host}?{query}"));
        assert_eq!(at("cloud.example.org"), Back::Code("a".to_owned()));
        for host in ["evil.example.org", "", "cloud.example.org-1", "cloud.example.org/"] {
            assert_eq!(at(host), Back::Elsewhere, "{host}");
        }
    }

    #[test]
    fn only_the_right_state_brings_a_code() {
        let errand = errand();
        let state = &errand.state;
        let judge = |query: String| errand.judge(&format!("{}?{query}", errand.path));
        let code = || Back::Code("a/code".to_owned());
        assert_eq!(judge(format!("code=a%2Fcode&state={state}")), code());
        let issuer = "iss=https%3A%2F%2Fid.example.org";
        assert_eq!(judge(format!("state={state}&{issuer}&code=a%2Fcode")), code());
        let no = format!("error=access_denied&state={state}&code=x");
        assert_eq!(judge(no), Back::No("access_denied".to_owned()));
        for query in [
            "code=a".to_owned(),
            "code=a&state=another".to_owned(),
            "error=access_denied".to_owned(),
            format!("state={state}"),
            format!("code=a&code=b&state={state}"),
            format!("code=a&state={state}&state=another"),
            format!("code=a&state={state}&iss=https%3A%2F%2Fother.example.org"),
        ] {
            assert_eq!(judge(query.clone()), Back::NotOurs, "{query}");
        }
        for target in ["/", "/favicon.ico", "/other?code=a", &errand.path, "", "//x?"] {
            assert_eq!(errand.judge(target), Back::Elsewhere, "{target}");
        }
    }

    #[test]
    fn an_address_that_is_pasted_is_read_as_if_the_browser_had_come() {
        let errand = errand();
        let (uri, state) = (errand.redirect_uri(), &errand.state);
        assert_eq!(errand.code_of_pasted(&format!(" {uri}?code=x&state={state}\n")).unwrap(), "x");
        let wrong = errand.code_of_pasted(&format!("{uri}?code=x&state=another")).unwrap_err();
        assert_eq!(wrong.code, Code::Usage);
        for text in ["", "x", "https://id.example.org/?code=x", &errand.path] {
            assert_eq!(errand.code_of_pasted(text).unwrap_err().code, Code::Usage, "{text}");
        }
        let no = errand.code_of_pasted(&format!("{uri}?error=x&state={state}")).unwrap_err();
        assert_eq!(no.code, Code::ProviderRefused);
    }
}
