//! A way to a server, on this machine, on which bytes are counted.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use lab::targets::Moved;

const PIECE_BYTES: usize = 64 << 10;

/// What all connections share.
#[derive(Debug, Default)]
struct Counts {
    up: AtomicU64,
    down: AtomicU64,
    is_over: AtomicBool,
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
                let _ = client.and_then(|client| connect(client, server, &shared));
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
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
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
fn connect(client: TcpStream, server: SocketAddr, counts: &Arc<Counts>) -> io::Result<()> {
    let server = TcpStream::connect(server)?;
    for stream in [&client, &server] {
        stream.set_nodelay(true)?;
    }
    let (from_client, to_server) = (client.try_clone()?, server.try_clone()?);
    let (up, down) = (counts.clone(), counts.clone());
    thread::spawn(move || hand_on(from_client, to_server, &up.up));
    thread::spawn(move || hand_on(server, client, &down.down));
    Ok(())
}

fn hand_on(mut from: TcpStream, mut to: TcpStream, count: &AtomicU64) {
    let mut piece = vec![0; PIECE_BYTES];
    while let Ok(length) = from.read(&mut piece) {
        count.fetch_add(length as u64, Ordering::Relaxed);
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
