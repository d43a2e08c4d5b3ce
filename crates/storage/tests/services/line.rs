//! A line to a server that breaks.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

use crate::place::Server;

/// Goes between a store and its server, and cuts each connection after a number of bytes.
#[derive(Debug)]
pub(crate) struct Line {
    address: SocketAddr,
    connections: Arc<AtomicUsize>,
}

impl Line {
    /// Cuts each connection after one of these numbers of bytes of both directions. Which one follows no pattern, but is the same each
    /// time: taken in turn, a store that opens as many connections at each attempt as there are numbers would meet the
    /// same ones for ever.
    pub(crate) async fn to(server: SocketAddr, budgets: Vec<u64>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let connections = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&connections);
        tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                let budget = budgets[mixed(count.fetch_add(1, Ordering::Relaxed)) % budgets.len()];
                if let Ok(far) = TcpStream::connect(server).await {
                    tokio::spawn(carry(near, far, budget));
                }
            }
        });
        Self { address, connections }
    }

    /// How many connections were made.
    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }
}

/// Spreads a counter over all numbers, as splitmix64 does.
fn mixed(number: usize) -> usize {
    let mut mixed = (number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    usize::try_from(mixed >> 33).expect("31 bits fit")
}

async fn carry(near: TcpStream, far: TcpStream, budget: u64) {
    let (near_read, near_write) = near.into_split();
    let (far_read, far_write) = far.into_split();
    let left = Arc::new(tokio::sync::Mutex::new(budget));
    let cut = Arc::new(Notify::new());
    let up = one_way(near_read, far_write, Arc::clone(&left), Arc::clone(&cut));
    let down = one_way(far_read, near_write, left, Arc::clone(&cut));
    tokio::select! {
        _ = async { tokio::join!(up, down) } => {}
        () = cut.notified() => {}
    }
}

async fn one_way(
    mut from: tokio::net::tcp::OwnedReadHalf,
    mut to: tokio::net::tcp::OwnedWriteHalf,
    left: Arc<tokio::sync::Mutex<u64>>,
    cut: Arc<Notify>,
) {
    let mut buffer = vec![0; 16 << 10];
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        let carried = {
            let mut left = left.lock().await;
            let carried = (*left).min(length as u64);
            *left -= carried;
            usize::try_from(carried).unwrap()
        };
        if to.write_all(&buffer[..carried]).await.is_err() {
            return;
        }
        if carried < length {
            cut.notify_one();
            return;
        }
    }
    // The other direction may still have something to say.
    let _already_gone = to.shutdown().await;
}

impl Server {
    /// Where the server listens.
    pub(crate) fn address(&self) -> SocketAddr {
        let (before, after) = self.url.rsplit_once(':').unwrap();
        let digits: String = after.chars().take_while(char::is_ascii_digit).collect();
        assert!(before.ends_with("127.0.0.1") || before.ends_with("localhost"), "{before}");
        SocketAddr::from(([127, 0, 0, 1], digits.parse().unwrap()))
    }

    /// The same server at the end of a line.
    pub(crate) fn behind(&self, line: &Line) -> Self {
        let port = |address: SocketAddr| format!(":{}", address.port());
        let url = self.url.replacen(&port(self.address()), &port(line.address), 1);
        Self { url, credentials: self.credentials.clone() }
    }
}
