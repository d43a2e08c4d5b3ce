//! Devices that are connected and have nothing to do: what each costs in memory and bytes, and how fast one event reaches all.

use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use tokio::time::sleep;

use super::Bench;
use crate::figures::Figures;
use crate::machine::Usage;
use crate::population::{DEVICES_PER_ACCOUNT, Enrolled};
use crate::report::{Idle, Run};
use crate::run::{Connected, Load, Pace};
use lab::output::say;

/// How long the server rests before its memory is looked at.
const REST: Duration = Duration::from_secs(10);

/// How long bytes are counted: a whole number of the silences after which a device asks (30 s) and is pinged (20 s).
const WINDOW: Duration = Duration::from_secs(120);

/// The same in a quick run, which says nothing about a minute.
const QUICK: Duration = Duration::from_secs(2);

/// How long after the window something is changed.
const CHANGE_AFTER: Duration = Duration::from_millis(500);

/// How many bytes of headers TCP and IP add to each segment: 20 of IP, 20 of TCP, 12 of its time stamps.
const SEGMENT_HEADERS: u64 = 52;

/// Runs the case for each number of devices.
pub(super) async fn run(bench: &mut Bench<'_>) -> Result<()> {
    for count in bench.options.idle.clone() {
        run_one(bench, count).await?;
    }
    Ok(())
}

async fn run_one(bench: &mut Bench<'_>, count: usize) -> Result<()> {
    // A workspace has the devices of one account, so there are as many changes as accounts.
    let devices = &bench.population.devices[..count];
    let groups: Vec<Vec<Arc<Enrolled>>> =
        devices.chunks(DEVICES_PER_ACCOUNT).map(<[_]>::to_vec).collect();
    let people = groups.len();
    let seats = bench.prepare(&format!("idle-{count}"), groups).await?;
    let (rest, window) = if bench.options.quick { (QUICK, QUICK) } else { (REST, WINDOW) };
    let process = bench.cluster.doors[0].id();
    let before = Usage::of(process)?;
    let load = Load {
        seed: bench.options.seed,
        pace: Pace::Once { after: CHANGE_AFTER },
        length: 2 * CHANGE_AFTER,
        patience: Duration::from_secs(60),
    };
    let server = bench.cluster.url();
    let connected = Connected::connect(&bench.cluster.urls(), load, seats.clone()).await?;
    sleep(rest).await;
    let rested = Usage::of(process)?;
    let traffic = connected.traffic();
    let (bytes_before, wire_before) = (traffic.so_far(), Wire::read(&server));
    sleep(window).await;
    let (bytes_after, wire_after) = (traffic.so_far(), Wire::read(&server));
    let watched = Usage::of(process)?;
    let outcome = connected.go(bench.cluster.parts()).await?;
    bench.judge(&seats, &outcome).await?;
    let figures = Figures::of(&outcome);
    let minutes = count as f64 * window.as_secs_f64() / 60.0;
    let bytes = bytes_after.0 + bytes_after.1 - bytes_before.0 - bytes_before.1;
    let wire = wire_before.zip(wire_after).map(|(before, after)| after.bytes - before.bytes);
    let idle = Idle {
        devices: count,
        memory_per_device: (watched.resident_bytes as f64 - before.resident_bytes as f64)
            / count as f64,
        bytes_per_minute: bytes as f64 / minutes,
        wire_bytes_per_minute: wire.map(|bytes| bytes as f64 / minutes),
        server_cores: (watched.cpu_seconds - rested.cpu_seconds) / window.as_secs_f64(),
        people,
        all_heard_ms: figures.other_events.longest().unwrap_or(f64::NAN),
        heard_p50_ms: figures.other_events.percentile(50.0).unwrap_or(f64::NAN),
        unheard: figures.unheard,
    };
    say(&idle.describe());
    bench.report.idle.push(idle);
    let name = format!("idle-{count}");
    bench.report.runs.push(Run::new(name, None, count, 2 * CHANGE_AFTER, figures));
    Ok(())
}

/// What the connections to a server have moved, with the headers of TCP and IP.
#[derive(Debug, Clone, Copy)]
struct Wire {
    bytes: u64,
}

impl Wire {
    /// Asks the kernel through `ss`; nothing where that is not there.
    fn read(server: &str) -> Option<Self> {
        let (_, port) = server.rsplit_once(':')?;
        let filter = format!("( dport = :{port} )");
        let output = Command::new("ss").args(["-tinH", "state", "established", &filter]).output();
        let output = output.ok().filter(|output| output.status.success())?;
        Some(Self::of(&String::from_utf8_lossy(&output.stdout)))
    }

    fn of(text: &str) -> Self {
        let sum = |key: &str| {
            let words = text.split_whitespace();
            let values = words.filter_map(|word| word.strip_prefix(key)?.parse::<u64>().ok());
            values.sum::<u64>()
        };
        let segments = sum("segs_out:") + sum("segs_in:");
        Self { bytes: sum("bytes_sent:") + sum("bytes_received:") + segments * SEGMENT_HEADERS }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_segments_of_all_connections_are_summed() {
        let text = "0 0 127.0.0.1:40000 127.0.0.1:8470\n\t cubic bytes_sent:100 bytes_acked:100 \
                    bytes_received:50 segs_out:3 segs_in:2 send 1Mbps\n\
                    0 0 127.0.0.1:40001 127.0.0.1:8470\n\t bytes_sent:1 segs_out:1 segs_in:1\n";
        assert_eq!(Wire::of(text).bytes, 151 + 7 * 52);
    }
}
