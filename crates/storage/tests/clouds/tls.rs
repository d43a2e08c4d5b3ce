//! Stores behind TLS, with an authority that only this store trusts.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::serve::Listener;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use storage::credentials::CERTIFICATE_FILE;
use storage::{Credentials, ObjectKey, Opening, PutMode, StorageError, open_with};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::dropbox::Dropbox;
use crate::server::Cloud;

/// Made for these tests alone; they end in a hundred years.
const AUTHORITY: &str = include_str!("tls/authority.pem");
const OTHER_AUTHORITY: &str = include_str!("tls/other-authority.pem");
const CERTIFICATE: &str = include_str!("tls/server.pem");
const KEY: &str = include_str!("tls/server.key.pem");

struct Tls {
    listener: TcpListener,
    acceptor: TlsAcceptor,
}

impl Listener for Tls {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            let Ok((stream, address)) = self.listener.accept().await else { continue };
            // Whoever does not trust us goes away again.
            if let Ok(stream) = self.acceptor.accept(stream).await {
                return (stream, address);
            }
        }
    }

    fn local_addr(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

async fn cloud() -> Cloud<Dropbox> {
    // Other tests may have installed it before.
    let _already_installed = rustls::crypto::ring::default_provider().install_default();
    let certificate = CertificateDer::from_pem_slice(CERTIFICATE.as_bytes()).unwrap();
    let key = PrivateKeyDer::from_pem_slice(KEY.as_bytes()).unwrap();
    let config = ServerConfig::builder().with_no_client_auth();
    let config = config.with_single_cert(vec![certificate], key).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("https://localhost:{}", listener.local_addr().unwrap().port());
    let acceptor = TlsAcceptor::from(Arc::new(config));
    Cloud::serve_on(Dropbox::default(), Tls { listener, acceptor }, endpoint).await
}

fn trusting(cloud: &Cloud<Dropbox>, authority: &str) -> Credentials {
    let path = cloud.folder.path().join("authority.pem");
    std::fs::write(&path, authority).unwrap();
    cloud.credentials().with(CERTIFICATE_FILE, path.to_str().unwrap()).unwrap()
}

#[tokio::test]
async fn a_store_behind_tls_is_reached_with_its_authority_and_told_nothing_without() {
    let cloud = cloud().await;
    let open = |credentials: &Credentials| {
        open_with(&cloud.url("Syncline"), credentials, Opening::CreateIfMissing).unwrap()
    };
    for credentials in [cloud.credentials(), trusting(&cloud, OTHER_AUTHORITY)] {
        let error = open(&credentials).get(&ObjectKey::genesis()).await.unwrap_err();
        assert!(matches!(error, StorageError::NotReachable { .. }), "{error:?}");
        assert!(error.to_string().contains("certificate"), "{error}");
    }
    assert!(cloud.account().asked.is_empty(), "no token was told to a stranger");
    let store = open(&trusting(&cloud, AUTHORITY));
    let genesis = ObjectKey::genesis();
    store.put(&genesis, "x".into(), PutMode::IfAbsent).await.unwrap();
    assert_eq!(store.get(&genesis).await.unwrap().as_deref(), Some(&b"x"[..]));
    cloud.assert_lawful();
}
