//! TLS to the database.
//!
//! *Invariant*: who is spoken to was verified, by an authority that the system trusts and by name. There is no way to encrypt
//! for nobody knows whom.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use rustls_platform_verifier::ConfigVerifierExt;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::{InvalidDnsNameError, ServerName};

use crate::metadata::MetadataError;
use crate::tls::use_ring;

/// Makes connections with TLS.
#[derive(Clone)]
pub(super) struct Tls(TlsConnector);

impl Tls {
    /// Trusts what the system trusts.
    pub(super) fn trusting_the_system() -> Result<Self, MetadataError> {
        use_ring();
        let config = ClientConfig::with_platform_verifier();
        let config = config.map_err(|error| MetadataError::Failed {
            operation: "start TLS".to_owned(),
            detail: error.to_string(),
        })?;
        Ok(Self(TlsConnector::from(Arc::new(config))))
    }
}

impl<S: AsyncRead + AsyncWrite + Send + Unpin + 'static> MakeTlsConnect<S> for Tls {
    type Stream = Secure<S>;
    type TlsConnect = Greeting;
    type Error = InvalidDnsNameError;

    fn make_tls_connect(&mut self, host: &str) -> Result<Greeting, InvalidDnsNameError> {
        let name = ServerName::try_from(host.to_owned())?;
        Ok(Greeting { connector: self.0.clone(), name })
    }
}

/// A handshake with the server of one name.
pub(super) struct Greeting {
    connector: TlsConnector,
    name: ServerName<'static>,
}

impl<S: AsyncRead + AsyncWrite + Send + Unpin + 'static> TlsConnect<S> for Greeting {
    type Stream = Secure<S>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Secure<S>>> + Send>>;

    fn connect(self, stream: S) -> Self::Future {
        Box::pin(async move { self.connector.connect(self.name, stream).await.map(Secure) })
    }
}

/// A connection with TLS.
pub(super) struct Secure<S>(tokio_rustls::client::TlsStream<S>);

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream for Secure<S> {
    fn channel_binding(&self) -> ChannelBinding {
        // The certificate was verified, so the password need not be bound to it.
        ChannelBinding::none()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Secure<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Secure<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}
