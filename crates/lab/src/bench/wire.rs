//! What goes over the wire during a benchmark, where its file wants it captured.

use std::path::Path;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

use super::driver::Failure;
use crate::capture::{Capture, Counts, Way};
use crate::error::LabError;
use crate::page::Page;

/// The name of the file with the packets, beside the results.
pub const PACKETS: &str = "benchmark.pcap";

/// How long `tcpdump` may be behind.
const PATIENCE: Duration = Duration::from_secs(10);

/// What is captured.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wanted {
    ports: Vec<Port>,
}

/// A port of a server under test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "i64")]
struct Port(u16);

impl TryFrom<i64> for Port {
    type Error = String;

    fn try_from(number: i64) -> Result<Self, String> {
        let port = u16::try_from(number).ok().filter(|port| *port > 0);
        let port = port.map(Self);
        port.ok_or_else(|| format!("capture.ports: {number} is no port: they go from 1 to 65535"))
    }
}

impl Wanted {
    /// Wants what comes from or goes to these ports.
    pub fn of_ports(ports: &[u16]) -> Self {
        Self { ports: ports.iter().copied().map(Port).collect() }
    }

    /// Looks whether anything can be captured.
    pub(super) fn check(&self) -> Result<(), LabError> {
        let what = "capture.ports names the port of a server at least".to_owned();
        if self.ports.is_empty() { Err(LabError::Benchmark { what }) } else { Ok(()) }
    }

    /// Begins to capture, into a file that nobody else may read: it has all that is sent.
    ///
    /// # Errors
    /// [`LabError::Capture`], [`LabError::Write`].
    pub fn start(&self, file: &Path) -> Result<Tap, LabError> {
        let ports: Vec<u16> = self.ports.iter().map(|port| port.0).collect();
        Ok(Tap { capture: Capture::start(&ports, &[], file)?, ports })
    }
}

/// Packets that are being captured.
#[derive(Debug)]
pub struct Tap {
    capture: Capture,
    ports: Vec<u16>,
}

impl Tap {
    /// Counts from now on.
    ///
    /// # Errors
    /// [`LabError::Capture`].
    pub(super) fn begin(&self) -> Result<(), LabError> {
        self.capture.now(PATIENCE)?;
        self.capture.take();
        Ok(())
    }

    /// Counts until now, and ends. What goes wrong here takes nothing away from what was measured by the clock: it is said. Where
    /// `has_moved`, something must have gone by.
    pub(super) fn end(self, has_moved: bool) -> Wire {
        let late = match self.capture.now(PATIENCE) {
            Ok(Some(_)) => None,
            Ok(None) => Some(Failure("tcpdump was behind: the last packets may miss".to_owned())),
            Err(error) => Some(error.into()),
        };
        let counts = self.capture.take();
        let (missed, broken) = match self.capture.stop() {
            Ok(missed) => (missed, None),
            Err(error) => (0, Some(Failure::from(error))),
        };
        let fault = late.or(broken).map(|Failure(why)| why);
        let mut wire = Wire { ports: self.ports, counts, missed, fault };
        if has_moved && wire.is_silent() && wire.fault.is_none() {
            let ports = wire.ports_in_words();
            wire.fault =
                Some(format!("operations came to a good end, and nothing went over port {ports}"));
        }
        wire
    }
}

/// What went over the wire while operations were done, those before the first that counts among them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wire {
    /// Of the servers under test.
    pub ports: Vec<u16>,
    /// By direction.
    pub counts: Counts,
    /// Packets that the kernel has seen and nobody counted.
    pub missed: u64,
    /// Why the counts are not to be believed.
    pub fault: Option<String>,
}

impl Wire {
    fn is_silent(&self) -> bool {
        self.counts.up.packets + self.counts.down.packets == 0
    }

    fn ports_in_words(&self) -> String {
        let ports: Vec<String> = self.ports.iter().map(u16::to_string).collect();
        ports.join(", ")
    }

    /// Returns what programs read of it.
    pub(super) fn json(&self) -> Value {
        let way = |way: &Way| json!({"bytes": way.wire, "payload_bytes": way.payload, "packets": way.packets});
        let Self { ports, counts, missed, fault } = self;
        json!({
            "ports": ports, "up": way(&counts.up), "down": way(&counts.down),
            "connections": counts.connections, "turns": counts.turns, "missed_packets": missed,
            "fault": fault, "packets": PACKETS,
        })
    }

    /// Adds what people read of it to a page.
    pub(super) fn section(&self, page: Page) -> Page {
        let mut page = page.heading("What went over the wire");
        if let Some(fault) = &self.fault {
            page = page.bad(format!("These counts are not to be believed: {fault}."));
        }
        if self.missed > 0 {
            let missed = self.missed;
            page =
                page.bad(format!("{missed} packets were not counted: the machine was too busy."));
        }
        let row = |name: &str, way: &Way| {
            let numbers = [way.wire, way.packets, way.payload];
            std::iter::once(name.to_owned()).chain(numbers.map(|it| it.to_string())).collect()
        };
        let Counts { up, down, connections, turns, .. } = &self.counts;
        let rows = vec![row("up", up), row("down", down)];
        page.table(&["", "bytes", "packets", "without headers, bytes"], rows).text(format!(
            "To and from port {}, as IP packets that this machine hands to the network. Connections that were begun: {connections}; turns: {turns}. All packets are in {PACKETS}.",
            self.ports_in_words()
        ))
    }
}
