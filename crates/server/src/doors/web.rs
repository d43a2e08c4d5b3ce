//! The web app, as it was built when the program was: `cargo xtask web`, then the program.
//!
//! *Goals*: one program and nothing beside it; a page that is there at once the second time. *Invariants*: whatever is sent has the headers
//! of `web/security-headers.json`, by which a browser loads nothing from elsewhere and runs nothing that the app did not bring along;
//! nobody is asked who he is here, and nothing here knows anybody's files. A program built without debug information for its own
//! developers has the files in it; theirs reads them from `web/dist`.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, IF_NONE_MATCH, VARY,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rust_embed::Embed;
use serde::Deserialize;

use super::problem::Shaped;
use crate::app::App;

/// The files of the app; none where it was not built.
#[derive(Embed)]
#[folder = "../../web/dist"]
#[allow_missing = true]
struct Dist;

/// The list of the app's files, in the form of `sha256sum`.
const LIST: &str = "files.txt";

/// What the app and its tests are served with, too.
const HEADERS: &str = include_str!("../../../../web/security-headers.json");

/// What a person sees where the app was not built.
const WITHOUT_APP: &str = "This server was built without the web app. It works: `syncline login` signs a device in.\n\
    To have the app, build it with `cargo xtask web`, and then the program.\n";

/// A file of the app, perhaps compressed.
#[derive(Debug, Clone)]
struct File {
    bytes: Cow<'static, [u8]>,
    hash: [u8; 32],
}

/// How files are sent: `web/security-headers.json`.
#[derive(Debug, Deserialize)]
struct Rules {
    headers: BTreeMap<String, String>,
    /// By what the path begins with; the longest beginning counts.
    #[serde(rename = "cache-control")]
    cache_control: BTreeMap<String, String>,
}

static RULES: LazyLock<Rules> =
    LazyLock::new(|| serde_json::from_str(HEADERS).expect("a test has read it"));

/// Returns the routes of this door.
pub fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/", get(send))
        .route("/icon.svg", get(send))
        .route("/files.txt", get(send))
        .route("/assets/{*path}", get(send))
}

async fn send(request: Request) -> Response {
    answer(request.uri().path(), request.headers(), file)
}

/// Returns a file of the app by its path below `web/dist`.
fn file(path: &str) -> Option<File> {
    let found = Dist::get(path)?;
    Some(File { hash: found.metadata.sha256_hash(), bytes: found.data })
}

/// What the app consists of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bundle {
    /// SHA-256 of the list of its files: one number for all of them.
    pub hash: [u8; 32],
    /// How many files there are.
    pub files: usize,
    /// Those that are not there, or not what the list says.
    pub wrong: Vec<String>,
}

/// Returns what the app of this program consists of; nothing where it has none.
pub fn bundle() -> Option<Bundle> {
    bundle_of(file)
}

fn bundle_of(file: impl Fn(&str) -> Option<File>) -> Option<Bundle> {
    let list = file(LIST)?;
    let (mut files, mut wrong) = (0, Vec::new());
    for line in String::from_utf8_lossy(&list.bytes).lines() {
        files += 1;
        let (hash, name) = line.split_once("  ").unwrap_or(("", line));
        if file(name).is_none_or(|found| model::hex::encode(&found.hash) != hash) {
            wrong.push(name.to_owned());
        }
    }
    Some(Bundle { hash: list.hash, files, wrong })
}

/// Answers a request for a path with what `file` finds. What lies there compressed, too, under the same name and `.gz`, is sent so to
/// whoever takes it.
fn answer(path: &str, asked: &HeaderMap, file: impl Fn(&str) -> Option<File>) -> Response {
    let name = if path == "/" { "index.html" } else { path.trim_start_matches('/') };
    let packed = takes_gzip(asked).then(|| file(&format!("{name}.gz"))).flatten();
    let is_packed = packed.is_some();
    let mut response = match packed.or_else(|| file(name)) {
        Some(found) => send_file(found, asked),
        None => {
            let text = if path == "/" { WITHOUT_APP } else { "There is nothing here.\n" };
            let mut response = (StatusCode::NOT_FOUND, text).into_response();
            response.extensions_mut().insert(Shaped);
            response
        }
    };
    let is_found = response.status() != StatusCode::NOT_FOUND;
    let headers = response.headers_mut();
    for (name, value) in &RULES.headers {
        headers.insert(header_name(name), header_value(value));
    }
    if is_found {
        headers.insert(CONTENT_TYPE, type_of(name));
        headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
        let caching = RULES.cache_control.iter().filter(|(start, _)| path.starts_with(*start));
        if let Some((_, value)) = caching.max_by_key(|(start, _)| start.len()) {
            headers.insert(CACHE_CONTROL, header_value(value));
        }
    }
    if is_found && is_packed {
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    response
}

/// Sends a file, unless the browser has it.
fn send_file(file: File, asked: &HeaderMap) -> Response {
    let tag = format!("\"{}\"", URL_SAFE_NO_PAD.encode(file.hash));
    let known = asked.get(IF_NONE_MATCH).and_then(|value| value.to_str().ok());
    let is_known = known.is_some_and(|known| {
        known.split(',').any(|one| one.trim().trim_start_matches("W/") == tag)
    });
    let mut response = match is_known {
        true => StatusCode::NOT_MODIFIED.into_response(),
        false => Body::from(file.bytes).into_response(),
    };
    response.headers_mut().insert(ETAG, header_value(&tag));
    response
}

/// Tells whether whoever asks takes gzip; `gzip;q=0` says no.
fn takes_gzip(asked: &HeaderMap) -> bool {
    let accepted = asked.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    accepted.flat_map(|value| value.split(',')).any(|one| {
        let mut words = one.split(';').map(str::trim);
        let refuses = |word: &str| word.trim_end_matches(['0', '.']) == "q=";
        words.next() == Some("gzip") && !words.any(refuses)
    })
}

fn header_name(text: &str) -> HeaderName {
    text.parse().expect("a test has read it")
}

fn header_value(text: &str) -> HeaderValue {
    text.parse().expect("a test has read it")
}

/// Returns the type of a file by its name. What is none of these is only ever downloaded.
fn type_of(name: &str) -> HeaderValue {
    HeaderValue::from_static(match name.rsplit_once('.').map(|(_, end)| end) {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("txt") => "text/plain; charset=utf-8",
        Some("wasm") => "application/wasm",
        Some("woff2") => "font/woff2",
        _ => "application/octet-stream",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str) -> Option<File> {
        let bytes: &'static [u8] = match path {
            "index.html" => b"<!doctype html>",
            "assets/app-1.js" => b"a program",
            "assets/app-1.js.gz" => b"packed",
            _ => return None,
        };
        Some(File { bytes: Cow::Borrowed(bytes), hash: [bytes.len() as u8; 32] })
    }

    fn asked(headers: &[(HeaderName, &'static str)]) -> HeaderMap {
        headers
            .iter()
            .map(|(name, value)| (name, HeaderValue::from_static(value)))
            .map(|(name, value)| (name.clone(), value))
            .collect()
    }

    fn text<'a>(response: &'a Response, name: &str) -> &'a str {
        response.headers().get(name).map_or("", |value| value.to_str().unwrap())
    }

    async fn body(response: Response) -> Vec<u8> {
        axum::body::to_bytes(response.into_body(), 1000).await.unwrap().to_vec()
    }

    #[test]
    fn what_is_not_as_the_list_says_is_named() {
        let whole = format!("{}  index.html\n{}  assets/app-1.js\n", hex(15), hex(9));
        let broken =
            format!("{whole}{}  assets/app-1.js\n{}  assets/none.js\nno line\n", hex(8), hex(1));
        let bundle = |list: String| {
            let hash = [list.len() as u8; 32];
            let listed = File { bytes: Cow::Owned(list.into_bytes()), hash };
            bundle_of(|path| if path == LIST { Some(listed.clone()) } else { found(path) })
        };
        let hash = [whole.len() as u8; 32];
        assert_eq!(bundle(whole), Some(Bundle { hash, files: 2, wrong: Vec::new() }));
        let found_wrong = bundle(broken).unwrap();
        assert_eq!((found_wrong.files, found_wrong.wrong.len()), (5, 3));
        assert_eq!(found_wrong.wrong, ["assets/app-1.js", "assets/none.js", "no line"]);
        assert_eq!(bundle_of(found), None);
    }

    fn hex(byte: u8) -> String {
        model::hex::encode(&[byte; 32])
    }

    #[tokio::test]
    async fn whatever_is_sent_lets_a_browser_load_nothing_from_elsewhere() {
        for (path, file) in
            [("/", true), ("/assets/app-1.js", true), ("/assets/none.js", true), ("/", false)]
        {
            let response = answer(path, &HeaderMap::new(), |path| found(path).filter(|_| file));
            let policy = text(&response, "content-security-policy");
            assert!(
                policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'")
            );
            // The core is WebAssembly, which a browser takes only so; text does not become code by it.
            let rest = policy.replace("'wasm-unsafe-eval'", "");
            assert!(!rest.contains("unsafe") && !rest.contains("http"), "{policy}");
            assert_eq!(text(&response, "x-content-type-options"), "nosniff");
            assert_eq!(text(&response, "referrer-policy"), "no-referrer");
        }
    }

    #[tokio::test]
    async fn page_is_asked_for_again_and_what_bears_its_hash_in_its_name_is_kept() {
        let page = answer("/", &HeaderMap::new(), found);
        assert_eq!(text(&page, "content-type"), "text/html; charset=utf-8");
        assert_eq!(text(&page, "cache-control"), "no-cache");
        let tag = text(&page, "etag").to_owned();
        assert_eq!(body(page).await, b"<!doctype html>");
        let mut again = HeaderMap::new();
        again.insert(IF_NONE_MATCH, format!("\"other\", W/{tag}").parse().unwrap());
        let known = answer("/", &again, found);
        assert_eq!(known.status(), StatusCode::NOT_MODIFIED);
        assert_eq!(text(&known, "etag"), tag);
        assert!(body(known).await.is_empty());

        let script = answer("/assets/app-1.js", &again, found);
        assert_eq!(script.status(), StatusCode::OK);
        assert!(text(&script, "cache-control").contains("immutable"));
    }

    #[tokio::test]
    async fn packed_file_goes_to_whoever_takes_it_and_to_nobody_else() {
        for (accepted, packed) in [
            ("gzip", true),
            ("br, gzip;q=0.5", true),
            ("gzip;q=0", false),
            ("gzip; q=0.000", false),
            ("br", false),
            ("", false),
        ] {
            let response =
                answer("/assets/app-1.js", &asked(&[(ACCEPT_ENCODING, accepted)]), found);
            assert_eq!(text(&response, "content-encoding") == "gzip", packed, "{accepted}");
            assert_eq!(text(&response, "content-type"), "text/javascript; charset=utf-8");
            assert_eq!(text(&response, "vary"), "accept-encoding");
            assert_eq!(body(response).await == b"packed", packed, "{accepted}");
        }
        let page = answer("/", &asked(&[(ACCEPT_ENCODING, "gzip")]), found);
        assert_eq!(text(&page, "content-encoding"), "", "it is not there packed");
    }

    #[tokio::test]
    async fn server_without_the_app_says_how_to_get_it() {
        let response = answer("/", &HeaderMap::new(), |_| None);
        assert_eq!(response.status(), StatusCode::NOT_FOUND);
        assert_eq!(body(response).await, WITHOUT_APP.as_bytes());
    }
}
