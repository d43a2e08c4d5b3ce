//! A line between a server and its database, which can be cut, and on which everything can stand still.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

/// How often a line looks what became of it.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// It carries.
const OPEN: u8 = 0;
/// It carries nothing, and nobody hears why.
const STILL: u8 = 1;
/// Connections on it are closed, and so are new ones.
const CUT: u8 = 2;
/// Nobody needs it any more.
const GONE: u8 = 3;

/// Carries bytes from a port of its own to another one, until it is dropped.
pub(crate) struct Relay {
    port: u16,
    line: Arc<AtomicU8>,
}

impl Relay {
    pub(crate) fn to(target: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let line = Arc::<AtomicU8>::default();
        let state = Arc::clone(&line);
        std::thread::spawn(move || {
            for near in listener.incoming().flatten() {
                match state.load(Ordering::Acquire) {
                    GONE => return,
                    CUT => continue,
                    _ => {}
                }
                let Ok(far) = TcpStream::connect(("127.0.0.1", target)) else { continue };
                let ways = [(near.try_clone(), far.try_clone()), (Ok(far), Ok(near))];
                for (from, to) in ways {
                    let (from, to, state) = (from.unwrap(), to.unwrap(), Arc::clone(&state));
                    std::thread::spawn(move || carry(from, to, &state));
                }
            }
        });
        Self { port, line }
    }

    /// The port by which the other one is reached.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Closes all connections, and new ones.
    pub(crate) fn cut(&self) {
        self.line.store(CUT, Ordering::Release);
    }

    /// Carries nothing any more, and closes nothing.
    pub(crate) fn stand_still(&self) {
        self.line.store(STILL, Ordering::Release);
    }

    /// Carries again, also what was kept while it stood still.
    pub(crate) fn mend(&self) {
        self.line.store(OPEN, Ordering::Release);
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.line.store(GONE, Ordering::Release);
        // Wakes the thread that listens.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

/// Carries one way, until one side ends or the line is cut.
fn carry(mut from: TcpStream, mut to: TcpStream, state: &AtomicU8) {
    from.set_read_timeout(Some(LOOK_EVERY)).unwrap();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let read = from.read(&mut buffer);
        // What was read as the line came to a stand goes on when it does.
        while state.load(Ordering::Acquire) == STILL {
            std::thread::sleep(LOOK_EVERY);
        }
        let is_over = match read {
            _ if state.load(Ordering::Acquire) >= CUT => true,
            Ok(0) => true,
            Ok(length) => to.write_all(&buffer[..length]).is_err(),
            Err(error) => !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut),
        };
        if is_over {
            break;
        }
    }
    for stream in [from, to] {
        let _already_closed = stream.shutdown(Shutdown::Both);
    }
}
