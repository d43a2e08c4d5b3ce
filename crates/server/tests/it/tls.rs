//! TLS at the server's own door.

use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};

use reqwest::{Certificate, Client, StatusCode};
use server::listener::{GuardedListener, Identity, TlsFiles};
use server::{ServeOptions, ServerError};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::support::TestServer;

/// Certificates made for these tests alone; they end in a hundred years.
fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/tls").join(name)
}

fn files(name: &str) -> TlsFiles {
    let (certificate, key) = (file(&format!("{name}.pem")), file(&format!("{name}.key.pem")));
    TlsFiles { certificate, key }
}

#[expect(clippy::disallowed_methods, reason = "the test plays the administrator")]
fn copy(from: &TlsFiles, to: &TlsFiles) {
    std::fs::write(&to.key, std::fs::read(&from.key).unwrap()).unwrap();
    std::fs::write(&to.certificate, std::fs::read(&from.certificate).unwrap()).unwrap();
}

/// A client that trusts one certificate only, and comes from an address of this computer.
#[expect(clippy::disallowed_methods, reason = "the test plays the user")]
fn trusting(name: &str, from: u8) -> Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let pem = std::fs::read(files(name).certificate).unwrap();
    let builder =
        Client::builder().no_proxy().local_address(IpAddr::V4(Ipv4Addr::new(127, 0, 0, from)));
    builder.tls_certs_only([Certificate::from_pem(&pem).unwrap()]).build().unwrap()
}

async fn start(configure: impl FnOnce(&mut ServeOptions)) -> Result<TestServer, ServerError> {
    let stopped = TestServer::start().await.stop().await;
    TestServer::start_again(&stopped, configure).await
}

#[tokio::test]
async fn a_server_with_a_certificate_speaks_tls_and_nothing_else() {
    let server = start(|options| options.tls = Some(files("one"))).await.unwrap();
    let (secure, plain) = (format!("https://{}/livez", server.address), server.url("/livez"));
    let answer = trusting("one", 1).get(&secure).send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    assert!(trusting("two", 1).get(&secure).send().await.is_err(), "another is not trusted");
    assert!(trusting("one", 1).get(&plain).send().await.is_err(), "nothing goes in the clear");
}

/// Connections that never begin their handshake keep nobody out who comes from elsewhere.
#[tokio::test]
async fn half_open_connections_of_one_address_keep_no_other_out() {
    let server = start(|options| {
        options.tls = Some(files("one"));
        options.connections_max = 300;
        options.connections_per_address_max = 200;
    });
    let server = server.await.unwrap();
    let mut silent = Vec::new();
    for _ in 0..400 {
        silent.push(TcpStream::connect(server.address).await.unwrap());
    }
    // Those beyond the limit were closed.
    let mut last = silent.pop().unwrap();
    assert_eq!(last.read(&mut [0]).await.unwrap_or(0), 0);
    let secure = format!("https://{}/livez", server.address);
    let answer = trusting("one", 2).get(&secure).send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
}

#[tokio::test(start_paused = true)]
async fn a_handshake_that_does_not_go_on_ends() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let identity = Identity::read(files("one")).unwrap();
    let mut guarded = GuardedListener::new(listener, 1, 1).with_identity(Some(identity));
    let mut client = TcpStream::connect(address).await.unwrap();
    let (mut stream, _) = axum::serve::Listener::accept(&mut guarded).await;
    // The beginning of a greeting, and then nothing.
    client.write_all(&[22, 3, 1, 2, 0]).await.unwrap();
    let error = stream.read(&mut [0]).await.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::TimedOut);
}

#[tokio::test]
async fn a_renewed_certificate_is_shown_and_a_broken_one_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let there = |name: &str| folder.path().join(name);
    let place = TlsFiles { certificate: there("server.pem"), key: there("server.key.pem") };
    copy(&files("one"), &place);
    let identity = Identity::read(place.clone()).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let guarded = GuardedListener::new(listener, 50, 50).with_identity(Some(identity.clone()));
    let router = axum::Router::new().route("/", axum::routing::get(|| async { "here" }));
    tokio::spawn(axum::serve(guarded, router).into_future());
    let is_shown = async |name: &str| {
        trusting(name, 1).get(format!("https://{address}/")).send().await.is_ok()
    };
    assert!(is_shown("one").await && !is_shown("two").await);
    assert!(!identity.renew().unwrap());
    copy(&files("two"), &place);
    assert!(identity.renew().unwrap());
    assert!(is_shown("two").await && !is_shown("one").await);
    // A certificate whose key has not come yet, and no certificate at all.
    copy(&TlsFiles { certificate: files("one").certificate, ..files("two") }, &place);
    assert!(matches!(identity.renew(), Err(ServerError::DataFolder { .. })));
    copy(&TlsFiles { certificate: files("one").key, ..files("one") }, &place);
    assert!(identity.renew().is_err());
    assert!(is_shown("two").await);
}

#[tokio::test]
async fn files_that_cannot_be_used_are_named_before_anything_is_opened() {
    let absent = TlsFiles { certificate: file("nowhere.pem"), ..files("one") };
    let strange = TlsFiles { key: files("two").key, ..files("one") };
    for (tls, named) in [(absent, "nowhere.pem"), (strange, "two.key.pem")] {
        let refused = start(|options| options.tls = Some(tls)).await.err().unwrap().to_string();
        assert!(refused.contains(named), "{refused}");
    }
}
