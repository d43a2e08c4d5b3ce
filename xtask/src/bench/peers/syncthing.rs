//! Two Syncthing instances on the loopback, driven through their REST interface.
//!
//! In the comparison of steps its watcher is off and a scan is asked for instead: with the default delay of 10 s the
//! watcher would start in the middle of preparing a large source, and wait for nothing before a small one.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::{Family, Peer, Room, first_line, free_port};
use crate::bench::sample::Sample;
use crate::failure::{Context, Result, fail};
use crate::process;
use crate::syncline::Background;

const KEY: &str = "benchmark";
const PATIENCE: Duration = Duration::from_mins(20);

struct Instance {
    background: Background,
    gui_port: u16,
    /// On which the other one reaches it.
    port: u16,
    id: String,
}

/// Both instances; the second one's folder is the copy of the source.
#[derive(Default)]
pub(in crate::bench) struct Syncthing {
    instances: Vec<Instance>,
}

impl Peer for Syncthing {
    fn name(&self) -> &'static str {
        "syncthing"
    }

    fn family(&self) -> Family {
        Family::Sync
    }

    fn program(&self) -> (&'static str, Option<&'static str>) {
        ("syncthing", Some("syncthing"))
    }

    fn version(&self) -> String {
        first_line("syncthing", &["--version"])
    }

    fn begin(&mut self, room: &Room) -> Result<()> {
        let folders = ["folder-a", "copy"].map(|name| room.scratch.join(name));
        self.start(&room.scratch, &folders, None)
    }

    fn send(&mut self, room: &Room) -> Result<Sample> {
        // Syncthing wants its folder to hold its marker, which the benchmark's source does not.
        let folder = room.scratch.join("folder-a");
        let mut prepare = Command::new("rsync");
        prepare.args(["--archive", "--delete", "--whole-file", "--exclude=/.stfolder"]);
        prepare.arg(room.source.join("")).arg(folder.join(""));
        process::output(&mut prepare)?;
        let before = self.cpu_seconds()?;
        let wire_before = self.wire()?;
        let (own_before, others_before) = self.sequences()?;
        let start = Instant::now();
        self.instances[0].post("/rest/db/scan?folder=bench")?;
        let changes = self.sequences()?.0.saturating_sub(own_before);
        // The first believes that nothing is needed until the second says what it has: only its
        // sequence, which grows by one for every item it wrote, shows that it has seen the news.
        self.wait_until("the second has everything", || {
            let state = self.instances[1].get("/rest/db/status?folder=bench")?;
            let is_done = state["needTotalItems"] == 0 && state["state"] == "idle";
            Ok(is_done && self.sequences()?.1 >= others_before + changes)
        })?;
        let wall_seconds = start.elapsed().as_secs_f64();
        let wire = self.wire()?;
        let peaks =
            self.instances.iter().map(|instance| process::running(instance.background.id()));
        let peaks = peaks.collect::<Result<Vec<_>>>()?;
        Ok(Sample {
            wall_seconds,
            cpu_seconds: self.cpu_seconds()? - before,
            rss_mib: peaks.iter().map(|peak| peak.peak_mib).fold(0.0, f64::max),
            stored_bytes: None,
            sent_bytes: Some(wire.0.saturating_sub(wire_before.0)),
            received_bytes: Some(wire.1.saturating_sub(wire_before.1)),
        })
    }

    fn restore(&mut self, _room: &Room) -> Result<Option<Sample>> {
        Ok(None)
    }

    fn copy_of_source(&self, room: &Room) -> Option<PathBuf> {
        Some(room.scratch.join("copy"))
    }

    fn end(&mut self) {
        for instance in &self.instances {
            // Asked politely it closes its database; what is left is killed.
            let _it_may_be_gone = instance.post("/rest/system/shutdown");
        }
        std::thread::sleep(Duration::from_millis(500));
        self.instances.clear();
    }
}

impl Syncthing {
    /// Starts two instances that keep two folders equal, with homes in `scratch`. `watch_delay` is how many seconds after a change
    /// the watcher looks; without it nobody looks before a scan is asked for.
    pub(in crate::bench) fn start(
        &mut self,
        scratch: &Path,
        folders: &[PathBuf; 2],
        watch_delay: Option<u64>,
    ) -> Result<()> {
        let homes = ["home-a", "home-b"].map(|name| scratch.join(name));
        for folder in folders {
            fs::create_dir_all(folder)?;
        }
        let ids = [new_identity(&homes[0])?, new_identity(&homes[1])?];
        let ports = [free_port()?, free_port()?];
        for (this, other) in [(0, 1), (1, 0)] {
            let gui_port = free_port()?;
            let text = configuration(
                &folders[this],
                watch_delay,
                gui_port,
                [&ids[this], &ids[other]],
                [ports[this], ports[other]],
            );
            fs::write(homes[this].join("config.xml"), text)?;
            let mut command = Command::new("syncthing");
            command.args(["serve", "--no-browser", "--no-restart"]);
            command.arg(format!("--home={}", homes[this].display()));
            // The name of its inner process: without it, a monitor process stands between us and it.
            command.env("STMONITORED", "yes").env("STNOUPGRADE", "1");
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            let background = Background::new(command.spawn().context("syncthing")?);
            let (id, port) = (ids[this].clone(), ports[this]);
            self.instances.push(Instance { background, gui_port, port, id });
        }
        self.wait_until("the two are connected", || {
            let connections = self.instances[0].get("/rest/system/connections")?;
            Ok(connections["connections"][&self.instances[1].id]["connected"] == true)
        })
    }

    /// The ports on which they reach each other.
    pub(in crate::bench) fn ports(&self) -> Vec<u16> {
        self.instances.iter().map(|instance| instance.port).collect()
    }

    /// Which processes they are.
    pub(in crate::bench) fn processes(&self) -> Vec<u32> {
        self.instances.iter().map(|instance| instance.background.id()).collect()
    }

    /// How many changes each of the two has counted.
    fn sequences(&self) -> Result<(u64, u64)> {
        let sequence = |instance: &Instance| -> Result<u64> {
            let state = instance.get("/rest/db/status?folder=bench")?;
            Ok(state["sequence"].as_u64().unwrap_or(0))
        };
        Ok((sequence(&self.instances[0])?, sequence(&self.instances[1])?))
    }

    fn cpu_seconds(&self) -> Result<f64> {
        let spent =
            self.instances.iter().map(|instance| process::running(instance.background.id()));
        Ok(spent.collect::<Result<Vec<_>>>()?.iter().map(|spent| spent.cpu_seconds).sum())
    }

    /// Bytes that the first sent and received on the line, inside TLS.
    fn wire(&self) -> Result<(u64, u64)> {
        let total = &self.instances[0].get("/rest/system/connections")?["total"];
        let number = |key: &str| total[key].as_u64().unwrap_or(0);
        Ok((number("outBytesTotal"), number("inBytesTotal")))
    }

    fn wait_until(&self, what: &str, mut holds: impl FnMut() -> Result<bool>) -> Result<()> {
        let start = Instant::now();
        let mut last = None;
        while start.elapsed() < PATIENCE {
            // It answers errors while it starts.
            match holds() {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                Err(failure) if start.elapsed() > Duration::from_mins(1) => return Err(failure),
                Err(failure) => last = Some(failure),
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        fail(format!("syncthing: waited in vain until {what}; last error: {last:?}"))
    }
}

impl Instance {
    fn get(&self, path: &str) -> Result<Value> {
        Ok(serde_json::from_str(&self.request("GET", path)?)?)
    }

    fn post(&self, path: &str) -> Result<()> {
        self.request("POST", path).map(drop)
    }

    fn request(&self, method: &str, path: &str) -> Result<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.gui_port))?;
        // HTTP/1.0: the answer is not chunked and ends with the connection.
        let head = format!(
            "{method} {path} HTTP/1.0\r\nHost: 127.0.0.1\r\nX-API-Key: {KEY}\r\n\
             Content-Length: 0\r\n\r\n"
        );
        stream.write_all(head.as_bytes())?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        let answer = String::from_utf8_lossy(&answer);
        let Some((head, body)) = answer.split_once("\r\n\r\n") else {
            return fail("syncthing: an answer without a head");
        };
        let status = head.lines().next().unwrap_or_default();
        if status.contains(" 200 ") {
            Ok(body.to_owned())
        } else {
            fail(format!("{path}: {status}"))
        }
    }
}

/// Makes keys in a home and gives the device's id.
fn new_identity(home: &Path) -> Result<String> {
    let mut command = Command::new("syncthing");
    command.arg("generate").arg(format!("--home={}", home.display()));
    command.env("STNODEFAULTFOLDER", "1");
    process::output(&mut command)?;
    let text = fs::read_to_string(home.join("config.xml"))?;
    read_identity(&text)
}

fn read_identity(configuration: &str) -> Result<String> {
    let id = configuration.split("<device id=\"").nth(1).and_then(|rest| rest.split('"').next());
    id.map_or_else(|| fail("syncthing generated no device id"), |id| Ok(id.to_owned()))
}

fn configuration(
    folder: &Path,
    watch_delay: Option<u64>,
    gui_port: u16,
    ids: [&str; 2],
    ports: [u16; 2],
) -> String {
    let watcher = match watch_delay {
        None => r#"fsWatcherEnabled="false""#.to_owned(),
        Some(seconds) => format!(r#"fsWatcherEnabled="true" fsWatcherDelayS="{seconds}""#),
    };
    let [this, other] = ids;
    let [own_port, other_port] = ports;
    let folder = folder.display();
    format!(
        r#"<configuration version="35">
<folder id="bench" label="bench" path="{folder}" type="sendreceive" rescanIntervalS="3600" {watcher}>
<filesystemType>basic</filesystemType><device id="{this}"></device><device id="{other}"></device></folder>
<device id="{this}" name="this" compression="metadata"><address>dynamic</address></device>
<device id="{other}" name="other" compression="metadata"><address>tcp://127.0.0.1:{other_port}</address></device>
<gui enabled="true" tls="false"><address>127.0.0.1:{gui_port}</address><apikey>{KEY}</apikey></gui>
<options><listenAddress>tcp://127.0.0.1:{own_port}</listenAddress>
<globalAnnounceEnabled>false</globalAnnounceEnabled><localAnnounceEnabled>false</localAnnounceEnabled>
<relaysEnabled>false</relaysEnabled><natEnabled>false</natEnabled><urAccepted>-1</urAccepted>
<startBrowser>false</startBrowser><crashReportingEnabled>false</crashReportingEnabled>
<autoUpgradeIntervalH>0</autoUpgradeIntervalH><reconnectionIntervalS>1</reconnectionIntervalS></options>
</configuration>
"#
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_identity_is_the_first_device_of_a_configuration() {
        let text = configuration(Path::new("/f"), None, 1, ["AAA", "BBB"], [2, 3]);
        assert_eq!(read_identity(&text).as_deref(), Ok("AAA"));
        assert!(read_identity("<configuration/>").is_err());
    }
}
