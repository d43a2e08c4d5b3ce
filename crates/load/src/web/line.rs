//! What the emulated line is really like on this machine: a small thing there and back, and a large one in one go.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;

use crate::proxy::{Conditions, Proxy};
use lab::output::median;

/// How often a byte goes there and back.
const TIMES: usize = 20;

/// How much goes at once, in bytes.
const LARGE: usize = 4_000_000;

/// A line as it was found.
#[derive(Debug, Clone, Copy)]
pub struct Measured {
    /// The middle of some round trips, in milliseconds.
    pub round_trip_ms: f64,
    /// Bytes a second in one direction, the time under way left out.
    pub bytes_per_second: f64,
}

impl Measured {
    /// Tells it in words.
    pub fn describe(&self) -> String {
        let megabits = self.bytes_per_second * 8.0 / 1e6;
        format!("a byte there and back {:.1} ms; {megabits:.0} Mb/s", self.round_trip_ms)
    }
}

/// Measures a line to a program that sends back what it gets; without conditions nothing stands between.
///
/// # Errors
/// Where no port can be opened, or a connection breaks.
pub async fn measure(conditions: Option<Conditions>) -> io::Result<Measured> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let address = listener.local_addr()?;
    let echo = tokio::spawn(echo(listener));
    let proxy = match conditions {
        Some(conditions) => Some(Proxy::start(address, conditions).await?),
        None => None,
    };
    let found = over(proxy.as_ref().map_or(address, Proxy::address)).await;
    echo.abort();
    found
}

async fn over(address: SocketAddr) -> io::Result<Measured> {
    let mut stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let mut times = Vec::new();
    for _ in 0..TIMES {
        times.push(there_and_back(&mut stream, 1).await?);
    }
    let round_trip = median(&times);
    // There and back at once: both directions have a rate of their own.
    let large = there_and_back(&mut stream, LARGE).await?.as_secs_f64() - round_trip;
    Ok(Measured {
        round_trip_ms: round_trip * 1000.0,
        bytes_per_second: LARGE as f64 / large.max(1e-9),
    })
}

async fn there_and_back(stream: &mut TcpStream, length: usize) -> io::Result<Duration> {
    let (sent, mut got) = (vec![7; length], vec![0; length]);
    let (mut reads, mut writes) = stream.split();
    let began = Instant::now();
    tokio::try_join!(writes.write_all(&sent), reads.read_exact(&mut got))?;
    Ok(began.elapsed())
}

/// Sends back what comes, on one connection after the other.
async fn echo(listener: TcpListener) {
    while let Ok((mut stream, _)) = listener.accept().await {
        // Whoever measures ends when they have what they want.
        let _ = stream.set_nodelay(true);
        let (mut reads, mut writes) = stream.split();
        let _ = tokio::io::copy(&mut reads, &mut writes).await;
    }
}
