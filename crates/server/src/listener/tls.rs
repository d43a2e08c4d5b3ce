//! TLS at the server's own door.
//!
//! *Goals*: a certificate that was renewed is used without a stop; one that cannot be used does not take the place of one that
//! can. *Invariant*: a handshake happens where its connection is read or written, so nobody waits for that of another, and it
//! counts as getting nowhere like any other silence.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::server::TlsStream;
use tokio_rustls::{Accept, TlsAcceptor};

use super::GuardedStream;
use super::work::Work;
use crate::error::{Result, ServerError};
use crate::tls::use_ring;

/// The longest file that is read.
const FILE_LENGTH_MAX: u64 = 1024 * 1024;

/// Where a certificate and its key are, both PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate, and those that lead from it to an authority.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// What a door shows to prove who it is; it may change while the door is open. Cheap to clone.
#[derive(Clone)]
pub struct Identity {
    files: Arc<TlsFiles>,
    current: Arc<Mutex<Current>>,
}

struct Current {
    hash: blake3::Hash,
    config: Arc<ServerConfig>,
}

impl fmt::Debug for Identity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Identity").field(&self.files).finish()
    }
}

impl Identity {
    /// Reads certificate and key.
    ///
    /// # Errors
    /// [`ServerError::DataFolder`] names the file that cannot be used, and why.
    pub fn read(files: TlsFiles) -> Result<Self> {
        let current = read(&files)?;
        Ok(Self { files: Arc::new(files), current: Arc::new(Mutex::new(current)) })
    }

    /// Reads the files again; tells whether they are others than before. What cannot be used changes nothing.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn renew(&self) -> Result<bool> {
        let new = read(&self.files)?;
        let mut current = self.current.lock();
        let is_new = new.hash != current.hash;
        *current = new;
        Ok(is_new)
    }

    /// Begins the handshake of a connection.
    pub(super) fn greet(&self, stream: GuardedStream) -> DoorStream {
        let config = Arc::clone(&self.current.lock().config);
        DoorStream::Greeting(Box::new(TlsAcceptor::from(config).accept(stream)))
    }
}

fn read(files: &TlsFiles) -> Result<Current> {
    let (certificate, key) = (read_file(&files.certificate)?, read_file(&files.key)?);
    let unusable =
        |path: &Path, reason: String| ServerError::DataFolder { path: path.to_owned(), reason };
    let in_certificate = |error: &dyn fmt::Display| {
        unusable(&files.certificate, format!("it cannot be read as a certificate: {error}"))
    };
    let in_key = |error: &dyn fmt::Display| {
        unusable(&files.key, format!("it cannot be read as the key of the certificate: {error}"))
    };
    let chain: Vec<_> = CertificateDer::pem_slice_iter(&certificate)
        .collect::<Result<_, _>>()
        .map_err(|error| in_certificate(&error))?;
    if chain.is_empty() {
        return Err(in_certificate(&"there is none in it"));
    }
    let private = PrivateKeyDer::from_pem_slice(&key).map_err(|error| in_key(&error))?;
    use_ring();
    let config = ServerConfig::builder().with_no_client_auth().with_single_cert(chain, private);
    let mut config = config.map_err(|error| in_key(&error))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    let hash = blake3::Hasher::new().update(&certificate).update(&[0]).update(&key).finalize();
    Ok(Current { hash, config: Arc::new(config) })
}

#[expect(clippy::disallowed_methods, reason = "certificate and key have no other home")]
fn read_file(path: &Path) -> Result<Vec<u8>> {
    use std::io::Read;

    let mut bytes = Vec::new();
    let read = std::fs::File::open(path)
        .and_then(|file| file.take(FILE_LENGTH_MAX).read_to_end(&mut bytes));
    let failed = |error: io::Error| ServerError::DataFolder {
        path: path.to_owned(),
        reason: error.to_string(),
    };
    read.map(|_| bytes).map_err(failed)
}

/// A connection, with TLS or without.
pub enum DoorStream {
    /// Without.
    Plain(GuardedStream),
    /// In the middle of its handshake.
    Greeting(Box<Accept<GuardedStream>>),
    /// With.
    Tls(Box<TlsStream<GuardedStream>>),
    /// Its handshake has failed.
    Failed,
}

impl DoorStream {
    /// Returns what the server works at of what comes by it; nothing where that is over already.
    pub(super) fn work(&self) -> Option<Arc<Work>> {
        let stream = match self {
            Self::Plain(stream) => Some(stream),
            Self::Greeting(greeting) => greeting.get_ref(),
            Self::Tls(stream) => Some(stream.get_ref().0),
            Self::Failed => None,
        };
        stream.map(|stream| Arc::clone(&stream.work))
    }

    /// Goes on with the handshake, if it is not over yet.
    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Self::Greeting(greeting) = self else { return Poll::Ready(Ok(())) };
        let greeted = ready!(Pin::new(greeting.as_mut()).poll(context));
        *self = Self::Failed;
        *self = Self::Tls(Box::new(greeted?));
        Poll::Ready(Ok(()))
    }
}

fn over() -> io::Error {
    io::ErrorKind::NotConnected.into()
}

impl AsyncRead for DoorStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        ready!(self.poll_ready(context))?;
        match &mut *self {
            Self::Plain(stream) => Pin::new(stream).poll_read(context, buffer),
            Self::Tls(stream) => Pin::new(stream.as_mut()).poll_read(context, buffer),
            Self::Greeting(_) | Self::Failed => Poll::Ready(Err(over())),
        }
    }
}

impl AsyncWrite for DoorStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_ready(context))?;
        match &mut *self {
            Self::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Tls(stream) => Pin::new(stream.as_mut()).poll_write(context, bytes),
            Self::Greeting(_) | Self::Failed => Poll::Ready(Err(over())),
        }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_ready(context))?;
        match &mut *self {
            Self::Plain(stream) => Pin::new(stream).poll_write_vectored(context, slices),
            Self::Tls(stream) => Pin::new(stream.as_mut()).poll_write_vectored(context, slices),
            Self::Greeting(_) | Self::Failed => Poll::Ready(Err(over())),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Plain(stream) => stream.is_write_vectored(),
            Self::Tls(stream) => stream.is_write_vectored(),
            Self::Greeting(_) | Self::Failed => false,
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_ready(context))?;
        match &mut *self {
            Self::Plain(stream) => Pin::new(stream).poll_flush(context),
            Self::Tls(stream) => Pin::new(stream.as_mut()).poll_flush(context),
            Self::Greeting(_) | Self::Failed => Poll::Ready(Err(over())),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut *self {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Tls(stream) => Pin::new(stream.as_mut()).poll_shutdown(context),
            // Nothing was agreed that could be ended politely.
            Self::Greeting(_) | Self::Failed => Poll::Ready(Ok(())),
        }
    }
}
