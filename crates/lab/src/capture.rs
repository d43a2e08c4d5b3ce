//! What goes over the wire while something is measured, as `tcpdump` sees it: counts by direction, and a PCAP file that Wireshark opens.
//!
//! Only packets from or to ports that are named are looked at, so that nothing else on the machine is counted. `tcpdump` does what needs a
//! privilege; this program needs none. Packets come later than they went, on a busy machine much later; to know what there was until now, a
//! number is sent as a datagram to a port of this program's own, and waited for: all that went before it has come before it.

mod traffic;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, UdpSocket};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::error::LabError;
use crate::files;
use crate::stopwatch::Stopwatch;

use traffic::Found;
pub use traffic::{Counts, Mark, Way};

/// Bytes at the beginning of a PCAP file.
const HEADER: usize = 24;

/// Bytes in front of each packet: when, how much of it was kept, how long it was.
const RECORD: usize = 16;

/// As much as `tcpdump` keeps of a packet.
const PACKET_MAX: usize = 256 * 1024;

/// KiB that the kernel keeps for `tcpdump`, which loses packets where it is slower than they come.
const BUFFER_KIB: &str = "65536";

/// How long `tcpdump` may take to begin.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long packets may rest in the kernel until `tcpdump` gets them, and more.
const LATE: Duration = Duration::from_secs(3);

/// How often is looked whether a number has come.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Packets that are being captured, until it is dropped.
#[derive(Debug)]
pub struct Capture {
    dump: Child,
    reader: Option<JoinHandle<Result<(), LabError>>>,
    words: Receiver<String>,
    shared: Arc<Mutex<Shared>>,
    /// Where numbers are sent to, which is where they come from.
    echo: UdpSocket,
    sent: AtomicU64,
}

#[derive(Debug)]
struct Shared {
    traffic: traffic::Traffic,
    /// When the last packet with something in it went by, by the clock of the capture.
    last_payload: Duration,
    /// The number that was last sent to ourselves and has come, and when it went by.
    last_echo: (u64, Duration),
}

impl Capture {
    /// Begins to capture what comes from or goes to `ports`, which are those of servers, and writes it into `file`. `marks` are looked for in
    /// what goes by.
    ///
    /// # Errors
    /// [`LabError::Capture`] where `tcpdump` is not there, or may not do it; [`LabError::Write`].
    pub fn start(ports: &[u16], marks: &[Mark], file: &Path) -> Result<Self, LabError> {
        let fails = |what: String| LabError::Capture { what };
        let echo = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0));
        let echo = echo.and_then(|echo| Ok((echo.local_addr()?, echo)));
        let (address, echo) = echo.map_err(|error| fails(format!("no socket: {error}")))?;
        let mut copy = files::create_private(file)?;
        let mut filter: Vec<String> = ports.iter().map(|port| format!("port {port}")).collect();
        filter.push(format!("udp dst port {}", address.port()));
        let mut command = Command::new("tcpdump");
        // Packets of all interfaces have the same short header: the one of Linux's "cooked" captures.
        // Not its "immediate mode": that has a place as large as the largest packet for each one, and loses small ones that come in flocks.
        command.args(["-i", "any", "-y", "LINUX_SLL", "-U", "-n"]);
        command.args(["-s", &PACKET_MAX.to_string(), "-B", BUFFER_KIB, "-w", "-"]);
        command.arg(filter.join(" or "));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // Ctrl-C is for this program, which ends it when its own work is done.
        command.process_group(0);
        let mut dump = command.spawn().map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => fails("the program tcpdump is not installed".into()),
            _ => fails(format!("tcpdump does not start: {error}")),
        })?;
        let (Some(packets), Some(said)) = (dump.stdout.take(), dump.stderr.take()) else {
            return Err(fails("tcpdump has no output".into()));
        };
        let (sender, words) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(said).lines().map_while(Result::ok) {
                // Nobody hears it once the capture has ended.
                let _ = sender.send(line);
            }
        });
        let traffic = traffic::Traffic::new(ports, address.port(), marks);
        let (last_payload, last_echo) = (Duration::ZERO, (0, Duration::ZERO));
        let shared = Arc::new(Mutex::new(Shared { traffic, last_payload, last_echo }));
        let reader = std::thread::spawn({
            let (shared, path) = (Arc::clone(&shared), file.to_owned());
            move || {
                let mut write = |bytes: &[u8]| {
                    let written = copy.write_all(bytes);
                    written.map_err(|source| LabError::Write { path: path.clone(), source })
                };
                read(packets, &mut write, &mut |at, packet| {
                    let mut shared = lock(&shared);
                    match shared.traffic.add(packet) {
                        Found::Payload => shared.last_payload = at,
                        Found::Echo(number) => shared.last_echo = (number, at),
                        Found::Nothing => {}
                    }
                })?;
                copy.flush().map_err(|source| LabError::Write { path, source })
            }
        });
        let (reader, sent) = (Some(reader), AtomicU64::new(0));
        let capture = Self { dump, reader, words, shared, echo, sent };
        capture.wait_for_begin()?;
        match capture.now(PATIENCE)? {
            Some(_) => Ok(capture),
            None => Err(fails("tcpdump does not see what this program itself sends".into())),
        }
    }

    fn wait_for_begin(&self) -> Result<(), LabError> {
        let mut said = Vec::new();
        loop {
            match self.words.recv_timeout(PATIENCE) {
                Ok(line) if line.contains("listening on") => return Ok(()),
                Ok(line) => said.push(line),
                Err(_) => {
                    let what = format!("tcpdump captures nothing: {}", said.join("; "));
                    return Err(LabError::Capture { what });
                }
            }
        }
    }

    /// Waits until nothing has gone over the wire for `silence`, but no longer than `patience`. Returns whether it was silent.
    ///
    /// # Errors
    /// [`LabError::Capture`] when `tcpdump` has ended, as for all that follow.
    pub fn wait_for_silence(
        &self,
        silence: Duration,
        patience: Duration,
    ) -> Result<bool, LabError> {
        let watch = Stopwatch::start();
        loop {
            let left = patience.saturating_sub(watch.read().wall);
            let Some(now) = self.now(left)? else { return Ok(false) };
            let silent_for = now.saturating_sub(lock(&self.shared).last_payload);
            match silence.checked_sub(silent_for) {
                None | Some(Duration::ZERO) => return Ok(true),
                Some(_) if left.is_zero() => return Ok(false),
                Some(more) => std::thread::sleep(more.min(left)),
            }
        }
    }

    /// Waits until something goes over the wire that is newer than `since`, a time of [`Self::now`], but no longer than `patience`. Returns whether
    /// something did.
    ///
    /// # Errors
    /// [`LabError::Capture`].
    pub fn wait_for_payload(&self, since: Duration, patience: Duration) -> Result<bool, LabError> {
        let watch = Stopwatch::start();
        while lock(&self.shared).last_payload <= since {
            self.demand_life()?;
            if watch.read().wall >= patience {
                return Ok(false);
            }
            std::thread::sleep(LOOK_EVERY);
        }
        Ok(true)
    }

    /// Waits until everything is counted that has gone over the wire until now, and returns the time by the clock of the capture; nothing, if it
    /// does not come in time.
    ///
    /// # Errors
    /// [`LabError::Capture`].
    pub fn now(&self, patience: Duration) -> Result<Option<Duration>, LabError> {
        let number = self.sent.fetch_add(1, Ordering::Relaxed) + 1;
        let fails = |error| LabError::Capture { what: format!("nothing can be sent: {error}") };
        let address = self.echo.local_addr().map_err(fails)?;
        self.echo.send_to(&number.to_le_bytes(), address).map_err(fails)?;
        let watch = Stopwatch::start();
        loop {
            let (seen, at) = lock(&self.shared).last_echo;
            if seen >= number {
                return Ok(Some(at));
            }
            self.demand_life()?;
            if watch.read().wall >= patience.max(LATE) {
                return Ok(None);
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }

    fn demand_life(&self) -> Result<(), LabError> {
        let has_ended = self.reader.as_ref().is_none_or(JoinHandle::is_finished);
        let what = "tcpdump has ended before the end".to_owned();
        if has_ended { Err(LabError::Capture { what }) } else { Ok(()) }
    }

    /// Returns what was counted since the last time.
    pub fn take(&self) -> Counts {
        lock(&self.shared).traffic.take()
    }

    /// Ends it, and returns how many packets the kernel has seen that `tcpdump` has not.
    ///
    /// # Errors
    /// [`LabError::Write`], [`LabError::Capture`].
    pub fn stop(mut self) -> Result<u64, LabError> {
        self.end();
        if let Some(reader) = self.reader.take() {
            reader.join().unwrap_or_else(|_| {
                Err(LabError::Capture { what: "the capture broke off".into() })
            })?;
        }
        self.words.iter().find_map(|line| dropped(&line)).ok_or_else(|| LabError::Capture {
            what: "tcpdump does not say how many packets it has missed".into(),
        })
    }

    /// Asks tcpdump to end, which writes what it still has, and kills it if it does not.
    fn end(&mut self) {
        let watch = Stopwatch::start();
        let mut is_asked = false;
        // Who has ended is asked nothing: its number may be that of another process by now.
        while let Ok(None) = self.dump.try_wait() {
            if watch.read().wall >= PATIENCE {
                let _ = self.dump.kill();
                let _ = self.dump.wait();
                return;
            }
            let pid = i32::try_from(self.dump.id()).ok().and_then(Pid::from_raw);
            if let Some(pid) = pid.filter(|_| !is_asked) {
                let _ = kill_process(pid, Signal::TERM);
                is_asked = true;
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        self.end();
    }
}

/// Reads a PCAP file as it comes: `write` gets every byte, `each` every packet and when it went by, since 1970.
fn read(
    mut stream: impl Read,
    write: &mut dyn FnMut(&[u8]) -> Result<(), LabError>,
    each: &mut dyn FnMut(Duration, &[u8]),
) -> Result<(), LabError> {
    let broken = |what: &str| LabError::Capture { what: what.to_owned() };
    let mut header = [0; HEADER];
    if !fill(&mut stream, &mut header)? {
        // It ended before it began, and has said why.
        return Ok(());
    }
    // Microseconds, in the order of bytes of this machine, as tcpdump writes it.
    if header[..4] != 0xa1b2_c3d4_u32.to_ne_bytes() {
        return Err(broken("what tcpdump writes is no PCAP of microseconds"));
    }
    write(&header)?;
    let (mut record, mut packet) = ([0; RECORD], Vec::new());
    while fill(&mut stream, &mut record)? {
        let number = |at: usize| record[at..at + 4].try_into().map_or(0, u32::from_ne_bytes);
        let seconds = Duration::from_secs(number(0).into());
        let at = seconds + Duration::from_micros(number(4).into());
        let kept = number(8) as usize;
        if kept > PACKET_MAX {
            return Err(broken("a packet is longer than packets are"));
        }
        packet.resize(kept, 0);
        if !fill(&mut stream, &mut packet)? {
            return Ok(());
        }
        write(&record)?;
        write(&packet)?;
        each(at, &packet);
    }
    Ok(())
}

/// Reads as many bytes as there is room for; not, if the stream ends before.
fn fill(stream: &mut impl Read, bytes: &mut [u8]) -> Result<bool, LabError> {
    match stream.read_exact(bytes) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => {
            Err(LabError::Capture { what: format!("tcpdump is not understood: {error}") })
        }
    }
}

/// Reads how many packets `tcpdump` says it has missed.
fn dropped(line: &str) -> Option<u64> {
    let (number, rest) = line.split_once(' ')?;
    let is_it = matches!(rest, "packet dropped by kernel" | "packets dropped by kernel");
    number.parse().ok().filter(|_| is_it)
}

/// A thread that panicked ends the run anyway.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_that_tcpdump_has_missed_are_read_in_any_number() {
        assert_eq!(dropped("0 packets dropped by kernel"), Some(0));
        assert_eq!(dropped("1 packet dropped by kernel"), Some(1));
        assert_eq!(dropped("17 packets dropped by kernel"), Some(17));
        for other in ["3 packets captured", "2 packets dropped by interface", "packets", ""] {
            assert_eq!(dropped(other), None, "{other}");
        }
    }

    /// Reads a stream, and returns what was copied of it and the packets.
    /// How many bytes were copied, and the packets with when they came.
    type Replayed = (usize, Vec<(Duration, Vec<u8>)>);

    fn replay(stream: &[u8]) -> Result<Replayed, LabError> {
        let (mut copied, mut packets) = (0, Vec::new());
        let mut write = |bytes: &[u8]| {
            copied += bytes.len();
            Ok(())
        };
        read(stream, &mut write, &mut |at, packet| packets.push((at, packet.to_owned())))?;
        Ok((copied, packets))
    }

    #[test]
    fn a_stream_of_packets_is_read_until_it_ends_wherever_it_does() {
        let mut stream = [0; HEADER];
        stream[..4].copy_from_slice(&0xa1b2_c3d4_u32.to_ne_bytes());
        let mut stream = stream.to_vec();
        for (seconds, packet) in [(5_u32, b"one".as_slice()), (6, b"other")] {
            for number in [seconds, 250_000, packet.len() as u32, 9] {
                stream.extend(number.to_ne_bytes());
            }
            stream.extend(packet);
        }
        let (copied, packets) = replay(&stream).unwrap();
        assert_eq!((copied, packets.len()), (stream.len(), 2));
        assert_eq!(packets[1], (Duration::from_micros(6_250_000), b"other".to_vec()));
        for end in 0..stream.len() {
            let whole = [0, HEADER, HEADER + RECORD + 3].into_iter().rfind(|at| *at <= end);
            assert_eq!(replay(&stream[..end]).unwrap().0, whole.unwrap(), "{end}");
        }
        stream[HEADER + 8..HEADER + 12].copy_from_slice(&u32::MAX.to_ne_bytes());
        assert!(replay(&stream).is_err(), "no packet is as long as that");
        assert!(replay(&[7; 30]).is_err(), "this is no PCAP");
    }
}
