//! A way to a server, on this machine, on which bytes are counted; where somebody wants it, those of contents by themselves.

mod dialogue;

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use lab::bench::driver::Failure;
use lab::targets::{Carried, Moved};
use parking_lot::Mutex;

use dialogue::{Known, Listener, NotUnderstood, Side};

const PIECE_BYTES: usize = 64 << 10;

/// What all connections share.
#[derive(Debug, Default)]
struct Counts {
    up: Way,
    down: Way,
    is_over: AtomicBool,
    /// What was said that is not understood.
    lost: Mutex<Option<NotUnderstood>>,
}

/// What has gone one way.
#[derive(Debug, Default)]
struct Way {
    bytes: AtomicU64,
    contents: AtomicU64,
}

/// Hands every byte on, and counts it before.
#[derive(Debug)]
pub(super) struct Relay {
    address: SocketAddr,
    counts: Arc<Counts>,
}

impl Relay {
    /// Starts to take connections for a server.
    pub(super) fn start(server: SocketAddr) -> io::Result<Self> {
        Self::start_with(server, false)
    }

    /// Does the same, and tells contents from all else.
    pub(super) fn listening(server: SocketAddr) -> io::Result<Self> {
        Self::start_with(server, true)
    }

    fn start_with(server: SocketAddr, is_listening: bool) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let counts = Arc::<Counts>::default();
        let shared = counts.clone();
        thread::spawn(move || {
            for client in listener.incoming() {
                if shared.is_over.load(Ordering::Relaxed) {
                    break;
                }
                // A client whose connection does not come about tries again.
                let _ = client.and_then(|client| connect(client, server, &shared, is_listening));
            }
        });
        Ok(Self { address, counts })
    }

    /// Returns where clients connect.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns what has gone over it so far.
    pub(super) fn moved(&self) -> Moved {
        self.read(|way| &way.bytes)
    }

    /// Returns the same, and how much of it was contents.
    ///
    /// # Errors
    /// [`Failure`] where something was said that is not understood, or nobody listens.
    pub(super) fn carried(&self) -> Result<Carried, Failure> {
        match *self.counts.lost.lock() {
            None => {
                // In this order, for what is contents was counted as a byte before.
                let contents = self.read(|way| &way.contents);
                Ok(Carried { all: self.moved(), contents })
            }
            Some(NotUnderstood(what)) => {
                Err(Failure(format!("a device or its server has said what is unknown: {what}")))
            }
        }
    }

    fn read(&self, count: impl Fn(&Way) -> &AtomicU64) -> Moved {
        let read = |way| count(way).load(Ordering::Relaxed);
        Moved { up: read(&self.counts.up), down: read(&self.counts.down) }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.counts.is_over.store(true, Ordering::Relaxed);
        // Whoever waits for the next client has one.
        let _ = TcpStream::connect(self.address);
    }
}

/// Begins to hand on what both sides say; it ends when they do.
fn connect(
    client: TcpStream,
    server: SocketAddr,
    counts: &Arc<Counts>,
    is_listening: bool,
) -> io::Result<()> {
    let server = TcpStream::connect(server)?;
    for stream in [&client, &server] {
        stream.set_nodelay(true)?;
    }
    let known = is_listening.then(Arc::<Mutex<Known>>::default);
    let ear = |side, known: &Option<Arc<Mutex<Known>>>| {
        known.clone().map(|known| Ear { listener: Listener::new(side), known })
    };
    let (device_ear, server_ear) = (ear(Side::Device, &known), ear(Side::Server, &known));
    let (from_client, to_server) = (client.try_clone()?, server.try_clone()?);
    let (up, down) = (counts.clone(), counts.clone());
    thread::spawn(move || hand_on(from_client, to_server, &up, &up.up, device_ear));
    thread::spawn(move || hand_on(server, client, &down, &down.down, server_ear));
    Ok(())
}

/// Listens to one side of a connection.
struct Ear {
    listener: Listener,
    known: Arc<Mutex<Known>>,
}

impl Ear {
    /// Counts what is contents. What is not understood ends the listening on all connections.
    fn hear(&mut self, piece: &[u8], counts: &Counts, way: &Way) {
        if counts.lost.lock().is_some() {
            return;
        }
        match self.listener.hear(piece, &mut self.known.lock()) {
            Ok(contents) => drop(way.contents.fetch_add(contents, Ordering::Relaxed)),
            Err(what) => *counts.lost.lock() = Some(what),
        }
    }
}

fn hand_on(
    mut from: TcpStream,
    mut to: TcpStream,
    counts: &Counts,
    way: &Way,
    mut ear: Option<Ear>,
) {
    let mut piece = vec![0; PIECE_BYTES];
    while let Ok(length) = from.read(&mut piece) {
        way.bytes.fetch_add(length as u64, Ordering::Relaxed);
        // Before it is handed on: so a request is known when its answer comes.
        if let Some(ear) = &mut ear {
            ear.hear(&piece[..length], counts, way);
        }
        if length == 0 || to.write_all(&piece[..length]).is_err() {
            break;
        }
    }
    // The other side may have hung up already.
    let _ = to.shutdown(Shutdown::Write);
    let _ = from.shutdown(Shutdown::Read);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_over_it_arrives_unchanged_and_is_counted() {
        let server = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let relay = Relay::start(server.local_addr().unwrap()).unwrap();
        let mut client = TcpStream::connect(relay.address()).unwrap();
        let (mut accepted, _) = server.accept().unwrap();
        let question: Vec<u8> = (0..200_000_u32).map(|number| number as u8).collect();
        let asked = question.clone();
        let asking = thread::spawn(move || {
            client.write_all(&asked).unwrap();
            client.shutdown(Shutdown::Write).unwrap();
            let mut answer = Vec::new();
            client.read_to_end(&mut answer).unwrap();
            answer
        });
        let mut heard = Vec::new();
        accepted.read_to_end(&mut heard).unwrap();
        assert!(heard == question);
        accepted.write_all(b"answer").unwrap();
        drop(accepted);
        assert_eq!(asking.join().unwrap(), b"answer");
        assert_eq!(relay.moved(), Moved { up: 200_000, down: 6 });
    }
}
