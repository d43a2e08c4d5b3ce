//! Moves the bytes of one connection.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};

use super::{Conditions, Direction, Fault, Lane, Shared, Way};

/// How many bytes are moved at once: small enough that a narrow way flows evenly.
const PIECE_LENGTH: usize = 16 << 10;

/// How many pieces may be under way: a second of 100 MB/s.
const PIECES_UNDER_WAY: usize = 6400;

/// How long the queue before a narrow way may become until nothing more is taken in. Timers wake up a millisecond or two late: for so long
/// the way goes on with what waits, so that it is as wide as it says.
const QUEUE: Duration = Duration::from_millis(10);

/// How a connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    /// Both sides had said all, or one had failed.
    Finished,
    /// It was closed by a fault.
    Closed,
    /// It was reset by a fault.
    Reset,
}

/// Spaces out the bytes of all connections in one direction.
#[derive(Debug, Default)]
pub(super) struct Pace(Mutex<Option<Instant>>);

impl Pace {
    /// Returns when a piece of this length has passed that came at `now`, behind all that came before it.
    fn pass(&self, now: Instant, length: usize, way: &Way) -> Instant {
        let Some(rate) = way.bytes_per_second else { return now };
        let takes = Duration::from_secs_f64(length as f64 / rate.max(1) as f64);
        let mut busy_until = self.0.lock();
        let passed = busy_until.map_or(now, |until| until.max(now)) + takes;
        *busy_until = Some(passed);
        passed
    }
}

/// Bytes under way.
struct Piece {
    arrives: Instant,
    bytes: Bytes,
}

/// One direction of one connection.
struct Flow<'connection> {
    direction: Direction,
    conditions: watch::Receiver<Conditions>,
    lane: &'connection Lane,
    /// How many bytes have passed, both directions together.
    passed: &'connection AtomicU64,
}

/// Moves bytes both ways until both sides have said all or a fault ends it.
pub(super) async fn exchange(
    client: &mut TcpStream,
    server: &mut TcpStream,
    conditions: watch::Receiver<Conditions>,
    shared: &Shared,
) -> Ended {
    let passed = AtomicU64::new(0);
    let (client_reads, client_writes) = client.split();
    let (server_reads, server_writes) = server.split();
    let flow =
        |direction, lane| Flow { direction, conditions: conditions.clone(), lane, passed: &passed };
    let up = flow(Direction::Up, &shared.up).run(client_reads, server_writes);
    let down = flow(Direction::Down, &shared.down).run(server_reads, client_writes);
    tokio::select! {
        ended = async { tokio::try_join!(up, down) } => match ended {
            Ok(_) => Ended::Finished,
            Err(ended) => ended,
        },
        () = closed(conditions.clone()) => Ended::Closed,
    }
}

/// Waits until connections are to be closed.
async fn closed(mut conditions: watch::Receiver<Conditions>) {
    let is_closed = |conditions: &Conditions| conditions.fault == Some(Fault::Close);
    // A proxy that is gone ends its connections by itself.
    if conditions.wait_for(is_closed).await.is_err() {
        std::future::pending::<()>().await;
    }
}

impl Flow<'_> {
    /// Moves bytes one way until they end.
    async fn run(self, source: ReadHalf<'_>, target: WriteHalf<'_>) -> Result<(), Ended> {
        let (sender, receiver) = mpsc::channel(PIECES_UNDER_WAY);
        let conditions = self.conditions.clone();
        let (passed, lane) = (self.passed, self.lane);
        tokio::try_join!(
            self.read(source, sender),
            write(receiver, target, conditions, (passed, lane))
        )?;
        Ok(())
    }

    /// Takes bytes in, and decides when they arrive.
    async fn read(
        mut self,
        mut source: ReadHalf<'_>,
        sender: mpsc::Sender<Piece>,
    ) -> Result<(), Ended> {
        let mut offset = 0;
        loop {
            let mut bytes = BytesMut::with_capacity(PIECE_LENGTH);
            let length = source.read_buf(&mut bytes).await.map_err(broken)?;
            if length == 0 {
                return Ok(());
            }
            let conditions = *self.conditions.borrow_and_update();
            if let Some(Fault::Corrupt { direction, offset: at }) = conditions.fault
                && direction == self.direction
                && (offset..offset + length as u64).contains(&at)
            {
                bytes[(at - offset) as usize] ^= 1;
            }
            offset += length as u64;
            let way = match self.direction {
                Direction::Up => conditions.up,
                Direction::Down => conditions.down,
            };
            let passed = self.lane.pace.pass(Instant::now(), length, &way);
            if let Some(room) = passed.checked_sub(QUEUE) {
                sleep_until(room).await;
            }
            let piece = Piece { arrives: passed + way.latency, bytes: bytes.freeze() };
            // The writer is gone only where the connection has ended.
            sender.send(piece).await.map_err(|_| Ended::Finished)?;
        }
    }
}

/// Hands bytes out when they arrive.
async fn write(
    mut pieces: mpsc::Receiver<Piece>,
    mut target: WriteHalf<'_>,
    mut conditions: watch::Receiver<Conditions>,
    (passed, lane): (&AtomicU64, &Lane),
) -> Result<(), Ended> {
    while let Some(piece) = pieces.recv().await {
        sleep_until(piece.arrives).await;
        let flows = |conditions: &Conditions| conditions.fault != Some(Fault::Stall);
        let fault = conditions.wait_for(flows).await.map_err(|_| Ended::Finished)?.fault;
        let mut bytes = piece.bytes;
        let before = passed.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        let mut is_last = false;
        if let Some(Fault::ResetAfter(limit)) = fault {
            let left = limit.saturating_sub(before);
            is_last = left <= bytes.len() as u64;
            bytes.truncate(left.min(bytes.len() as u64) as usize);
        }
        target.write_all(&bytes).await.map_err(broken)?;
        lane.bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        if is_last {
            return Err(Ended::Reset);
        }
    }
    // One side has said all; the other may still speak.
    target.shutdown().await.map_err(broken)
}

/// A side that fails resets the other one, as it would without a proxy.
fn broken(_: io::Error) -> Ended {
    Ended::Reset
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 100 Mb/s.
    const WAY: Way = Way { latency: Duration::from_millis(15), bytes_per_second: Some(12_500_000) };

    #[test]
    fn a_narrow_way_is_as_wide_as_it_says_though_timers_are_late() {
        let (pace, began) = (Pace::default(), Instant::now());
        let (mut now, mut passed) = (began, began);
        for _ in 0..1000 {
            passed = pace.pass(now, 12_500, &WAY);
            // Whoever takes bytes in waits for room, and wakes up too late.
            if passed - QUEUE > now {
                now = passed - QUEUE + Duration::from_millis(2);
            }
        }
        // A thousand times a millisecond: not less, and not more.
        assert_eq!(passed - began, Duration::from_secs(1));
    }

    #[test]
    fn what_was_not_used_is_not_saved_up() {
        let (pace, began) = (Pace::default(), Instant::now());
        let takes = Duration::from_millis(1);
        assert_eq!(pace.pass(began, 12_500, &WAY), began + takes);
        let later = began + Duration::from_secs(5);
        assert_eq!(pace.pass(later, 12_500, &WAY), later + takes);
        assert_eq!(pace.pass(later, 12_500, &WAY), later + 2 * takes);
    }

    #[test]
    fn a_wide_way_takes_no_time() {
        let (pace, now) = (Pace::default(), Instant::now());
        assert_eq!(pace.pass(now, 1 << 30, &Way::default()), now);
    }
}
