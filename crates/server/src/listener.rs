//! Connections as they come in: how many there may be, and how slow.
//!
//! *Invariants*: there are never more connections than the limit, in all and per address; a connection on which
//! nothing moves, or nothing but a trickle of request bytes, is closed. Within each interval something
//! must be sent to the other side, or a few KiB must come from it: an idle device answers pings, an
//! upload over the slowest line is faster, and whoever sends one header byte per second is neither. Only while the server itself works at what came
//! as a whole, nobody has to move ([`work`]).

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, Sleep};

mod tls;
mod work;

pub use tls::{DoorStream, Identity, TlsFiles};
pub(crate) use work::service;

use work::Work;

/// Within this time a connection must get somewhere.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(60);

/// How many bytes that come in count as getting somewhere.
const PROGRESS_LENGTH_MIN: usize = 16 * 1024;

/// How long to wait when the system has no descriptor left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Who is on the other side.
#[derive(Debug, Clone, Copy)]
pub struct PeerAddress(pub SocketAddr);

impl Connected<IncomingStream<'_, GuardedListener>> for PeerAddress {
    fn connect_info(stream: IncomingStream<'_, GuardedListener>) -> Self {
        Self(*stream.remote_addr())
    }
}

impl PeerAddress {
    /// Returns what limits count by: the address, or for IPv6 the network, of which one customer has all addresses.
    pub fn network(&self) -> IpAddr {
        match self.0.ip().to_canonical() {
            IpAddr::V6(address) => {
                let network = u128::from(address) & (u128::MAX << 64);
                IpAddr::V6(network.into())
            }
            address => address,
        }
    }
}

/// A listener with limits.
#[derive(Debug)]
pub struct GuardedListener {
    listener: TcpListener,
    places: Arc<Semaphore>,
    per_address: Arc<Mutex<HashMap<IpAddr, usize>>>,
    per_address_max: usize,
    identity: Option<Identity>,
}

impl GuardedListener {
    /// Puts limits on a listener: connections in all, and connections of one address.
    pub fn new(listener: TcpListener, connections_max: usize, per_address_max: usize) -> Self {
        let places = Arc::new(Semaphore::new(connections_max));
        Self { listener, places, per_address: Arc::default(), per_address_max, identity: None }
    }

    /// Speaks TLS, where there is something to prove who it is.
    #[must_use]
    pub fn with_identity(self, identity: Option<Identity>) -> Self {
        Self { identity, ..self }
    }

    /// Counts a connection of this address, unless there are too many.
    fn count(&self, address: IpAddr) -> Option<AddressPlace> {
        let mut counts = self.per_address.lock();
        let count = counts.entry(address).or_default();
        if *count >= self.per_address_max {
            return None;
        }
        *count += 1;
        Some(AddressPlace { counts: Arc::clone(&self.per_address), address })
    }
}

impl Listener for GuardedListener {
    type Io = DoorStream;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (DoorStream, SocketAddr) {
        loop {
            // While all places are taken, the system keeps newcomers waiting.
            let place = Arc::clone(&self.places).acquire_owned().await;
            let place = place.expect("the places are never closed");
            match self.listener.accept().await {
                Ok((stream, address)) => {
                    let Some(address_place) = self.count(PeerAddress(address).network()) else {
                        continue;
                    };
                    // Small answers must leave at once.
                    let _ = stream.set_nodelay(true);
                    let stream = GuardedStream::new(stream, place, address_place);
                    let stream = match &self.identity {
                        Some(identity) => identity.greet(stream),
                        None => DoorStream::Plain(stream),
                    };
                    return (stream, address);
                }
                Err(error) => {
                    tracing::debug!(%error, "a connection could not be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// The share of an address in the connections.
#[derive(Debug)]
struct AddressPlace {
    counts: Arc<Mutex<HashMap<IpAddr, usize>>>,
    address: IpAddr,
}

impl Drop for AddressPlace {
    fn drop(&mut self) {
        let mut counts = self.counts.lock();
        if let Some(count) = counts.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.address);
            }
        }
    }
}

/// A connection that must get somewhere.
#[derive(Debug)]
pub struct GuardedStream {
    stream: TcpStream,
    deadline: Pin<Box<Sleep>>,
    received: usize,
    work: Arc<Work>,
    _place: OwnedSemaphorePermit,
    _address_place: AddressPlace,
}

impl GuardedStream {
    fn new(stream: TcpStream, place: OwnedSemaphorePermit, address_place: AddressPlace) -> Self {
        let deadline = Box::pin(tokio::time::sleep(PROGRESS_INTERVAL));
        Self {
            stream,
            deadline,
            received: 0,
            work: Arc::default(),
            _place: place,
            _address_place: address_place,
        }
    }

    fn made_progress(&mut self) {
        self.received = 0;
        self.deadline.as_mut().reset(Instant::now() + PROGRESS_INTERVAL);
    }

    /// Fails when the connection got nowhere for too long.
    fn check(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        while self.deadline.as_mut().poll(context).is_ready() {
            let Some(since) = self.work.last() else { return Err(io::ErrorKind::TimedOut.into()) };
            let until = since + PROGRESS_INTERVAL;
            if until <= Instant::now() {
                return Err(io::ErrorKind::TimedOut.into());
            }
            self.deadline.as_mut().reset(until);
        }
        Ok(())
    }
}

impl AsyncRead for GuardedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.check(context)?;
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(context, buffer);
        self.received += buffer.filled().len() - before;
        if self.received >= PROGRESS_LENGTH_MIN {
            self.made_progress();
        }
        polled
    }
}

impl GuardedStream {
    fn after_write(&mut self, polled: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if matches!(polled, Poll::Ready(Ok(length)) if length > 0) {
            self.made_progress();
        }
        polled
    }
}

impl AsyncWrite for GuardedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.check(context)?;
        let polled = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.after_write(polled)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.check(context)?;
        let polled = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.after_write(polled)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_addresses_of_a_network_count_as_one() {
        let network = |text: &str| PeerAddress(text.parse().unwrap()).network().to_string();
        assert_eq!(network("[2001:db8:1:2:3:4:5:6]:1"), "2001:db8:1:2::");
        assert_eq!(network("[2001:db8:1:2:ffff::]:2"), "2001:db8:1:2::");
        assert_eq!(network("192.0.2.7:1"), "192.0.2.7");
        assert_eq!(network("[::ffff:192.0.2.7]:1"), "192.0.2.7");
    }

    #[tokio::test(start_paused = true)]
    async fn connection_that_trickles_is_closed_and_gives_its_place_back() {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut guarded = GuardedListener::new(listener, 1, 1);
        let mut client = TcpStream::connect(address).await.unwrap();
        let (mut stream, _) = guarded.accept().await;
        let mut byte = [0; 1];
        for _ in 0..PROGRESS_INTERVAL.as_secs() - 1 {
            client.write_all(b"x").await.unwrap();
            stream.read_exact(&mut byte).await.unwrap();
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        tokio::time::advance(Duration::from_secs(2)).await;
        let error = stream.read(&mut byte).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        drop(stream);
        let _second = TcpStream::connect(address).await.unwrap();
        guarded.accept().await;
    }

    #[tokio::test(start_paused = true)]
    async fn connection_that_is_written_to_lives_on() {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut guarded = GuardedListener::new(listener, 1, 1);
        let mut client = TcpStream::connect(address).await.unwrap();
        let (mut stream, _) = guarded.accept().await;
        let mut byte = [0; 1];
        for _ in 0..10 {
            tokio::time::advance(PROGRESS_INTERVAL / 2).await;
            stream.write_all(b"p").await.unwrap();
            client.read_exact(&mut byte).await.unwrap();
        }
        client.write_all(b"x").await.unwrap();
        stream.read_exact(&mut byte).await.unwrap();
    }
}
