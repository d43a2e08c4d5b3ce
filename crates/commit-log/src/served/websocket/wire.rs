//! The bytes below a socket: TCP, or TLS over it.

use std::io;
use std::sync::Arc;

use rustls_platform_verifier::ConfigVerifierExt;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{self, ClientConfig};
use url::{Host, Url};

/// What a socket is made over.
pub(super) trait Bytes: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Bytes for T {}

/// TCP or TLS.
pub(super) type Wire = Box<dyn Bytes>;

/// Connects to the server of an address, `ws:` or `wss:`. Behind TLS is whom the system trusts under that name.
pub(super) async fn connect(url: &Url) -> io::Result<Wire> {
    let host = url.host().ok_or_else(|| io::Error::other("the address has no host"))?;
    let port = url.port_or_known_default().unwrap_or(80);
    let stream = match &host {
        Host::Domain(name) => TcpStream::connect((*name, port)).await?,
        Host::Ipv4(address) => TcpStream::connect((*address, port)).await?,
        Host::Ipv6(address) => TcpStream::connect((*address, port)).await?,
    };
    // Small requests must leave at once.
    stream.set_nodelay(true)?;
    if url.scheme() != "wss" {
        return Ok(Box::new(stream));
    }
    let name = match host {
        Host::Domain(name) => ServerName::try_from(name.to_owned()).map_err(io::Error::other)?,
        Host::Ipv4(address) => ServerName::IpAddress(std::net::IpAddr::V4(address).into()),
        Host::Ipv6(address) => ServerName::IpAddress(std::net::IpAddr::V6(address).into()),
    };
    let config = trusting_the_system().map_err(io::Error::other)?;
    Ok(Box::new(TlsConnector::from(Arc::new(config)).connect(name, stream).await?))
}

fn trusting_the_system() -> Result<ClientConfig, rustls::Error> {
    // One may be installed already, and is then the right one: the program has only this.
    let _already_installed = default_provider().install_default();
    ClientConfig::with_platform_verifier()
}
