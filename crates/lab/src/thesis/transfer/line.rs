//! A line to a far store: so many bytes in a second each way, and so long from one end to the other.
//!
//! What is written is there when all that was written before it has gone through, and the delay after that. A line does not begin slowly and
//! loses nothing, as TCP over a real one does: what is measured over it is what a dialogue costs, not what a network does to it.

use std::io::{self, Read, Write};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::stopwatch::Stopwatch;

/// What a line can do.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Speed {
    /// From us to the store, bytes in a second.
    pub(crate) up: f64,
    /// From the store to us.
    pub(crate) down: f64,
    /// From one end to the other.
    pub(crate) delay: Duration,
}

impl Speed {
    /// The line of the thesis (section 6.1): 75 KB/s up, 1.5 MB/s down. It does not say how far stores were; 35 ms there and back are chosen
    /// here.
    pub(crate) const THESIS: Self =
        Self { up: 75e3, down: 1.5e6, delay: Duration::from_micros(17_500) };
}

/// A line, over which there may be several connections at once.
#[derive(Clone)]
pub(crate) struct Line {
    speed: Speed,
    clock: Arc<Stopwatch>,
    /// Until when each way is taken.
    taken: [Arc<Mutex<Duration>>; 2],
}

/// One end of a connection.
pub(crate) struct End {
    line: Line,
    /// Which way what is written goes: 0 is up.
    way: usize,
    sent: Sender<(Duration, Vec<u8>)>,
    received: Receiver<(Duration, Vec<u8>)>,
    /// What is there and was not read yet, and how much of it was.
    there: (Vec<u8>, usize),
}

impl Line {
    pub(crate) fn new(speed: Speed) -> Self {
        let taken = [(); 2].map(|()| Arc::new(Mutex::new(Duration::ZERO)));
        Self { speed, clock: Arc::new(Stopwatch::start()), taken }
    }

    /// Makes a connection, which takes the time to get there and back: our end and the end of the store.
    pub(crate) fn connect(&self) -> (End, End) {
        std::thread::sleep(2 * self.speed.delay);
        let ((up, from_us), (down, from_store)) = (channel(), channel());
        let end = |way, sent, received| End {
            line: self.clone(),
            way,
            sent,
            received,
            there: Default::default(),
        };
        (end(0, up, from_store), end(1, down, from_us))
    }

    /// Returns when bytes that are written now will be there.
    fn arrival(&self, way: usize, bytes: usize) -> Duration {
        let rate = [self.speed.up, self.speed.down][way];
        let mut taken = self.taken[way].lock().unwrap_or_else(PoisonError::into_inner);
        *taken = (*taken).max(self.clock.wall()) + Duration::from_secs_f64(bytes as f64 / rate);
        *taken + self.speed.delay
    }
}

impl Write for End {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let arrival = self.line.arrival(self.way, bytes.len());
        let sent = self.sent.send((arrival, bytes.to_vec()));
        sent.map_err(|_| io::ErrorKind::BrokenPipe)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Read for End {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.there.1 == self.there.0.len() {
            // Nobody writes any more: the end.
            let Ok((arrival, bytes)) = self.received.recv() else { return Ok(0) };
            std::thread::sleep(arrival.saturating_sub(self.line.clock.wall()));
            self.there = (bytes, 0);
        }
        let (bytes, read) = &mut self.there;
        let length = buffer.len().min(bytes.len() - *read);
        buffer[..length].copy_from_slice(&bytes[*read..*read + length]);
        *read += length;
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_take_the_time_of_the_line_and_its_delay_once() {
        let delay = Duration::from_millis(4);
        let line = Line::new(Speed { up: 1e6, down: 1e9, delay });
        let (mut ours, mut store) = line.connect();
        let start = line.clock.wall();
        for _ in 0..20 {
            ours.write_all(&[7; 1000]).unwrap();
        }
        drop(ours);
        let mut all = Vec::new();
        store.read_to_end(&mut all).unwrap();
        let took = line.clock.wall() - start;
        assert_eq!(all, [7; 20_000]);
        // 20 ms for the bytes, and 4 ms.
        assert!(took >= Duration::from_millis(24), "{took:?}");
        assert!(store.write_all(b"too late").is_err());
    }
}
