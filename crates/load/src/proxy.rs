//! A TCP proxy on this machine that makes the way to a real server long, narrow or broken.
//!
//! *Participants*: a client that connects to [`Proxy::address`], a server behind it, and a test that changes
//! [`Conditions`] while both talk. *Goals*: latency and rate for each direction, and the ways in which connections break,
//! for any program that speaks TCP, ours or not. *Non-goals*: loss of packets, which TCP hides; virtual time, which
//! sockets do not keep (`crates/testkit/src/clouds.rs` does). *Invariants*: bytes arrive in order and unchanged unless a fault says
//! otherwise; all connections share the rate of a direction; latency delays bytes and does not thin them out.
//!
//! Connections are set up at once; their first byte is delayed like every other. Reading order: this module, `pump`.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use pump::Pace;

mod pump;

/// How often a port that another program has taken meanwhile is asked for again.
const BIND_PAUSE: Duration = Duration::from_millis(20);

/// What one direction is like.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Way {
    /// How long every byte is under way.
    pub latency: Duration,
    /// How many bytes a second all connections together may send; `None` for as many as there are.
    pub bytes_per_second: Option<u64>,
}

/// Which way bytes go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From the client to the server.
    Up,
    /// From the server to the client.
    Down,
}

/// What is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Nobody listens: new connections are refused, those that are there go on.
    Refuse,
    /// All connections are closed, and new ones at once.
    Close,
    /// Nothing moves; what waits goes on when the fault is gone.
    Stall,
    /// Every connection is reset when so many bytes have passed, both directions together.
    ResetAfter(u64),
    /// One bit of the byte at this offset is flipped, on every connection.
    Corrupt {
        /// Which way.
        direction: Direction,
        /// Which byte of the connection, in this direction.
        offset: u64,
    },
}

/// What the way to the server is like.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Conditions {
    /// From the client to the server.
    pub up: Way,
    /// From the server to the client.
    pub down: Way,
    /// What is broken, if anything.
    pub fault: Option<Fault>,
}

impl Conditions {
    /// A line that is the same both ways: half of the round trip each, and a rate in bytes a second for each.
    pub fn line(round_trip: Duration, bytes_per_second: u64) -> Self {
        let way = Way { latency: round_trip / 2, bytes_per_second: Some(bytes_per_second) };
        Self { up: way, down: way, fault: None }
    }
}

/// What has passed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Connections that were accepted.
    pub connections: u64,
    /// Bytes that were delivered to the server.
    pub up: u64,
    /// Bytes that were delivered to the client.
    pub down: u64,
}

/// What the proxy and its connections share.
#[derive(Debug)]
struct Shared {
    connections: AtomicU64,
    up: Lane,
    down: Lane,
}

/// One direction of all connections.
#[derive(Debug, Default)]
struct Lane {
    bytes: AtomicU64,
    pace: Pace,
}

/// A running proxy; it ends, and its connections with it, when it is dropped.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    conditions: watch::Sender<Conditions>,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

impl Proxy {
    /// Starts a proxy to `target` on a free port of this machine.
    ///
    /// # Errors
    /// Where no port can be opened.
    pub async fn start(target: SocketAddr, conditions: Conditions) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let (conditions, watched) = watch::channel(conditions);
        let (connections, up, down) = (AtomicU64::new(0), Lane::default(), Lane::default());
        let shared = Arc::new(Shared { connections, up, down });
        let task = tokio::spawn(serve(listener, address, target, watched, shared.clone()));
        Ok(Self { address, conditions, shared, task })
    }

    /// Returns where clients connect.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Changes what the way is like, for connections that are there and those to come. Bytes that are under way arrive when
    /// they were to.
    pub fn set(&self, conditions: Conditions) {
        self.conditions.send_replace(conditions);
    }

    /// Breaks the way, or heals it.
    pub fn set_fault(&self, fault: Option<Fault>) {
        self.conditions.send_modify(|conditions| conditions.fault = fault);
    }

    /// Returns what has passed so far.
    pub fn counters(&self) -> Counters {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counters {
            connections: read(&self.shared.connections),
            up: read(&self.shared.up.bytes),
            down: read(&self.shared.down.bytes),
        }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Accepts connections for as long as the proxy lives, except while they are refused.
async fn serve(
    listener: TcpListener,
    address: SocketAddr,
    target: SocketAddr,
    mut conditions: watch::Receiver<Conditions>,
    shared: Arc<Shared>,
) {
    let mut listener = Some(listener);
    let mut connections = JoinSet::new();
    loop {
        let fault = conditions.borrow_and_update().fault;
        if fault == Some(Fault::Refuse) {
            // Only a port on which nobody listens refuses.
            listener = None;
            if conditions.changed().await.is_err() {
                return;
            }
            continue;
        }
        let Some(open) = &listener else {
            listener = TcpListener::bind(address).await.ok();
            if listener.is_none() {
                tokio::time::sleep(BIND_PAUSE).await;
            }
            continue;
        };
        tokio::select! {
            accepted = open.accept() => {
                let Ok((client, _)) = accepted else { continue };
                shared.connections.fetch_add(1, Ordering::Relaxed);
                let (conditions, shared) = (conditions.clone(), shared.clone());
                connections.spawn(connect(client, target, conditions, shared));
            }
            changed = conditions.changed() => {
                if changed.is_err() {
                    return;
                }
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

/// Serves one connection to its end.
async fn connect(
    mut client: TcpStream,
    target: SocketAddr,
    conditions: watch::Receiver<Conditions>,
    shared: Arc<Shared>,
) {
    if conditions.borrow().fault == Some(Fault::Close) {
        return;
    }
    // A server that is not there shows as a connection that ends at once.
    let Ok(mut server) = TcpStream::connect(target).await else { return };
    // Latency is ours to add; Nagle's would be on top.
    if client.set_nodelay(true).is_err() || server.set_nodelay(true).is_err() {
        return;
    }
    let ended = pump::exchange(&mut client, &mut server, conditions, &shared).await;
    if ended == pump::Ended::Reset {
        // Where it cannot be set the connection ends all the same, only more politely.
        let _ = client.set_zero_linger();
        let _ = server.set_zero_linger();
    }
}
