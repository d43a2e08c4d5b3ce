//! Thousands of connections that ask for nothing or only begin to, beside a device that works.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::support::{Device, Server, fill, noise};

/// How many connections there are where files may be open for them.
const CONNECTIONS: u64 = 10_000;

/// What is left of the limit for files to everything else.
const OTHER_FILES: u64 = 200;

/// How much memory of the server such a connection takes at most, in bytes. A debug build took 10,000 where it was measured.
const MEMORY_MAX: u64 = 32 * 1024;

/// How long the server may take for an answer meanwhile, and a device for a first sync: much more than on a good day.
const ANSWER_MAX: Duration = Duration::from_secs(5);
const SYNC_MAX: Duration = Duration::from_secs(30);

/// What strangers begin with, and do not end: nothing, a request, a body, what is not HTTP, a request of which bytes trickle in.
const BEGINNINGS: [&[u8]; 5] = [
    b"",
    b"GET /readyz HTTP/1.1\r\nHost: cloud\r\nX-",
    b"POST /api/v1/login HTTP/1.1\r\nHost: cloud\r\nContent-Type: application/json\r\nContent-Length: 9000\r\n\r\n{\"user\":",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    b"GET /livez HT",
];

/// Lets this process, and the server that it starts, open as many files as they may, and returns for how many connections that is
/// enough on either side.
fn connections() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, ..limit };
    setrlimit(Resource::Nofile, raised).unwrap();
    let files = raised.current.unwrap_or(u64::MAX);
    assert!(files > 2 * OTHER_FILES, "only {files} files may be open");
    CONNECTIONS.min(files - OTHER_FILES)
}

/// The resident memory of a process in bytes.
fn memory(process: &Child) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", process.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.split_whitespace().next().unwrap().parse::<u64>().unwrap() * 1024
}

/// Asks whether the server is ready, and returns after what time it says so.
fn ask(address: &str) -> Duration {
    let start = Instant::now();
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(SYNC_MAX)).unwrap();
    let request = b"GET /readyz HTTP/1.1\r\nHost: cloud\r\nConnection: close\r\n\r\n";
    stream.write_all(request).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    start.elapsed()
}

#[test]
fn ten_thousand_half_open_connections_keep_no_device_from_its_server() {
    let count = connections();
    let room = tempfile::tempdir().unwrap();
    // Its account is made by a server that ends at once.
    let data = Server::start(room.path()).data.clone();
    let places = (count + OTHER_FILES / 2).to_string();
    let (one, other) = (Device::new(room.path(), "one"), Device::new(room.path(), "other"));
    let words = ["serve", "--listen", "127.0.0.1:0", "--data", data.to_str().unwrap()];
    let mut command = one.command(&words);
    command.args(["--connections", &places, "--connections-per-address", &places]);
    let mut process = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let url = line.trim().strip_prefix("listening on ").unwrap().to_owned();
    let server = Server::around(url, data, process);
    let address = server.url.strip_prefix("http://").unwrap();
    ask(address);

    let before = memory(server.process());
    let mut strangers: Vec<TcpStream> = (0..count)
        .map(|number| {
            let mut stranger = TcpStream::connect(address).unwrap();
            stranger.write_all(BEGINNINGS[number as usize % BEGINNINGS.len()]).unwrap();
            stranger
        })
        .collect();
    // The server comes to them in their order, so it has seen all when it answers.
    let waited = ask(address);
    assert!(waited < ANSWER_MAX, "{waited:?}");
    let took = memory(server.process()).saturating_sub(before) / count;
    assert!(took < MEMORY_MAX, "each takes {took} bytes");

    // Two devices get to work meanwhile, and bytes go on trickling in.
    for device in [&one, &other] {
        server.login(device, "laptop");
    }
    for stranger in strangers.iter_mut().skip(4).step_by(BEGINNINGS.len()) {
        stranger.write_all(b"T").unwrap();
    }
    let start = Instant::now();
    fill(&one);
    one.write("larger", noise(8 << 20));
    one.run(&["init", "--workspace", "Notes", "--plain"]).ok();
    one.sync().ok();
    other.run(&["clone", "Notes", "."]).ok();
    assert!(start.elapsed() < SYNC_MAX, "{:?}", start.elapsed());
    assert_eq!(one.tree(), other.tree());
    let waited = ask(address);
    assert!(waited < ANSWER_MAX, "{waited:?}");
    assert_eq!(strangers.len() as u64, count);
}
