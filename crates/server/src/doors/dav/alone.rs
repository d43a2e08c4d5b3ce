//! A door of WebDAV over one tree alone, with one name and one password: what a device opens to the programs beside it.
//!
//! *Participants*: programs on the same computer, or on a network that its owner has opened the door to; web pages in a browser
//! there, which are strangers. *Goals*: the limits of a server's doors. *Non-goals*: accounts. *Invariants*: nobody gets past
//! the door without the password; a request names this computer by its address, or by a name that the owner has said, so
//! that a page whose name was made to lead here (DNS rebinding) is refused.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::header::HOST;
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method};
use axum::middleware;
use axum::response::{IntoResponse, Response};
use model::Clock;
use tokio::sync::watch;

use super::{Dav, Refused, basic, options, respond};
use crate::app::limit_head;
use crate::doors::files::path;
use crate::doors::problem;
use crate::doors::tree::FileTree;
use crate::error::{Result, ServerError};
use crate::limits::STOP_TIMEOUT;
use crate::listener::{GuardedListener, Identity, TlsFiles, service};
use crate::serve::{bind, renew, stopping_signal};

/// How many connections there are at most; those of one address are nearly all.
const CONNECTIONS_MAX: usize = 64;

/// A door over one tree.
#[derive(Clone)]
pub struct LoneDoor {
    /// Where to listen; port 0 picks one.
    pub listen: SocketAddr,
    /// What the tree is called, for people.
    pub title: String,
    /// Under which names this computer is reached, beside its addresses and `localhost`.
    pub hosts: Vec<String>,
    /// The name that programs give.
    pub user: String,
    /// The password that they must know.
    pub password: String,
    /// What to prove with who this is; without it, the door speaks no TLS.
    pub tls: Option<TlsFiles>,
    /// The time.
    pub clock: Arc<dyn Clock>,
}

/// What all requests share.
struct Shared<T> {
    tree: T,
    title: String,
    hosts: Vec<String>,
    /// The hash of name and password.
    known: blake3::Hash,
}

/// Answers requests about a tree until `shutdown` is done; calls `ready` with the address when they are answered. The stop is
/// graceful and bounded in time.
///
/// # Errors
/// [`ServerError::Listen`]; [`ServerError::DataFolder`] for a certificate that cannot be used.
pub async fn serve_tree<T: FileTree>(
    tree: T,
    door: LoneDoor,
    ready: impl FnOnce(SocketAddr),
    shutdown: impl Future<Output = ()> + Send,
) -> Result<()> {
    let identity = door.tls.map(Identity::read).transpose()?;
    let (listener, address) = bind(door.listen).await?;
    let renewing = identity.clone().map(|one| tokio::spawn(renew(one, door.clock)));
    let listener = GuardedListener::new(listener, CONNECTIONS_MAX, CONNECTIONS_MAX - 1);
    let listener = listener.with_identity(identity);
    let known = credentials(&door.user, &door.password);
    let shared = Shared { tree, title: door.title, hosts: door.hosts, known };
    let router = Router::new()
        .fallback(answer::<T>)
        .layer(middleware::from_fn(limit_head))
        .layer(middleware::from_fn(problem::shape))
        .with_state(Arc::new(shared));
    let (stopping, stopped) = watch::channel(false);
    let serving =
        axum::serve(listener, service(router)).with_graceful_shutdown(stopping_signal(stopped));
    let serving = tokio::spawn(serving.into_future());
    ready(address);
    shutdown.await;
    let _ = stopping.send(true);
    // Whoever is still sending is cut off then: what was not answered is not promised.
    let _ = tokio::time::timeout(STOP_TIMEOUT, serving).await;
    if let Some(renewing) = renewing {
        renewing.abort();
    }
    Ok(())
}

async fn answer<T: FileTree>(State(shared): State<Arc<Shared<T>>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let admitted = shared.check_host(&parts);
    if parts.method == Method::OPTIONS {
        return match admitted {
            Ok(()) => options(),
            Err(error) => Refused::from(error).into_response(),
        };
    }
    let dav = admitted.and_then(|()| shared.open(&parts));
    respond(dav, &parts, body).await
}

impl<T: FileTree> Shared<T> {
    fn open(&self, parts: &Parts) -> Result<Dav<T>> {
        self.check_password(&parts.headers)?;
        Ok(Dav {
            tree: self.tree.clone(),
            path: path::parse(parts.uri.path())?,
            root: String::new(),
            title: self.title.clone(),
        })
    }

    fn check_password(&self, headers: &HeaderMap) -> Result<()> {
        let (user, password) = basic::named(headers)?;
        // Hashes are compared in constant time.
        match credentials(&user, &password) == self.known {
            true => Ok(()),
            false => Err(ServerError::WrongPassword),
        }
    }

    /// Refuses requests that name somebody else: their sender may believe to be somewhere else.
    fn check_host(&self, parts: &Parts) -> Result<()> {
        let header = parts.headers.get(HOST).map(|host| host.to_str().unwrap_or_default());
        let named = [parts.uri.host(), header];
        match named.into_iter().flatten().find(|host| !is_own(host, &self.hosts)) {
            Some(host) => Err(ServerError::Forbidden {
                what: format!("to ask for '{host}' here, which is no name of this computer,"),
            }),
            None if header.is_none() => Err(ServerError::Invalid {
                what: "Host",
                reason: "the header is missing".to_owned(),
            }),
            None => Ok(()),
        }
    }
}

fn credentials(user: &str, password: &str) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&(user.len() as u64).to_le_bytes());
    hasher.update(user.as_bytes()).update(password.as_bytes()).finalize()
}

/// Tells whether a host, perhaps with a port, is this computer: addresses have no name that anybody could lead elsewhere.
fn is_own(host: &str, names: &[String]) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split_once(']').map_or(host, |(address, _)| address),
        None => host.split_once(':').map_or(host, |(name, _)| name),
    };
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<IpAddr>().is_ok()
        || names.iter().any(|own| own.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_is_an_address_or_a_name_that_was_said() {
        let names = ["nas.home".to_owned()];
        for host in ["127.0.0.1", "127.0.0.1:8472", "[::1]:80", "LocalHost:1", "nas.home:8472"] {
            assert!(is_own(host, &names), "{host}");
        }
        for host in
            ["evil.example", "nas.home.evil.example:80", "127.0.0.1.evil.example", "", "[::1"]
        {
            assert!(!is_own(host, &names), "{host}");
        }
    }
}
