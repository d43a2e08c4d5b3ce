//! `bench probe`: what programs do, by experiment: ours and others, each between two places on the loopback, and their answers side by side.
//!
//! `syncline bench probe` asks and judges; here programs are started, and told what it needs to know of them.

use std::any::Any;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::latency::start_devices;
use super::peers::{Syncthing, first_line, free_port, start_daemon, wait_for_port};
use super::place::WorkFolder;
use super::{Options, environment};
use crate::arguments::Arguments;
use crate::failure::{Context, Result, fail};
use crate::process;
use crate::syncline::{
    Background, Device, PASSWORD, Place, SYNC_DONE, Server, add_account_of, checked, device,
};

/// The programs: their names in tables, what has to be installed for them and how it says its version, and how they begin.
const PROGRAMS: [(&str, &[&str], Begin); 6] = [
    ("syncline", &[], ours),
    ("syncline encrypted", &[], ours_sealed),
    ("syncthing", &["syncthing", "--version"], syncthing),
    ("rsync", &["rsync", "--version"], rsync),
    ("unison", &["unison", "-version"], unison),
    ("rclone to SFTP", &["rclone", "version"], rclone),
];

/// Names the file that has the passphrase.
const PASSPHRASE_FILE: &str = "SYNCLINE_PASSPHRASE_FILE";

/// Somebody else, with the same server.
const OTHER_ACCOUNT: &str = "bob";

type Begin = fn(&Path, &Path) -> Result<Running>;

/// A program that keeps a folder, or does so when it is told.
struct Running {
    folder: PathBuf,
    seen_in: PathBuf,
    ports: Vec<u16>,
    /// What tells it that something has changed.
    command: Option<String>,
    /// Where its server keeps what it gets.
    stored: Option<PathBuf>,
    /// What another account keeps with the same server.
    elsewhere: Option<PathBuf>,
    /// It ends with this.
    _processes: Box<dyn Any>,
}

pub(super) fn run(what: String, mut arguments: Arguments) -> Result<()> {
    let only = arguments.value("--only")?;
    let appends = arguments.value("--appends")?;
    let options = Options::take(&what, &mut arguments)?;
    arguments.finish()?;
    let binary = options.our_binary()?;
    if !process::is_installed("tcpdump") {
        return fail("tcpdump is not installed: apt-get install tcpdump");
    }
    let is_wanted =
        |name: &str| only.as_ref().is_none_or(|only| only.split(',').any(|it| it == name));
    let (mut versions, mut results) = (Vec::new(), Vec::new());
    for (name, words, begin) in PROGRAMS.into_iter().filter(|(name, ..)| is_wanted(name)) {
        if let [program, words @ ..] = words {
            if !process::is_installed(program) {
                println!("{name}: left out, {program} is not installed");
                continue;
            }
            versions.push((name.to_owned(), first_line(program, words)));
        }
        let place = WorkFolder::new(options.file_systems[0], &options.work)?;
        let running = begin(binary, place.path())?;
        println!("{name}");
        results.push(one(binary, name, &running, &options, appends.as_deref())?);
    }
    if results.is_empty() {
        return fail("no program is left to be probed");
    }
    let mut tables = Command::new(binary);
    tables.args(["bench", "tables", "--no-input", "--out"]).arg(&options.out).args(&results);
    println!("{}", process::output(&mut tables)?.trim());
    environment::write(&options.out, &versions, &[])
}

/// Probes one program, and returns where the results are.
fn one(
    binary: &Path,
    name: &str,
    running: &Running,
    options: &Options,
    appends: Option<&str>,
) -> Result<PathBuf> {
    let out = options.out.join(name.replace([',', ' '], "-"));
    let before = entries(&out)?;
    let mut probe = Command::new(binary);
    probe.args(["bench", "probe", "--name", name, "--no-input"]).arg(&running.folder);
    probe.arg("--seen-in").arg(&running.seen_in).arg("--out").arg(&out);
    for port in &running.ports {
        probe.args(["--port", &port.to_string()]);
    }
    if let Some(command) = &running.command {
        probe.args(["--command", command]);
    }
    if let Some(stored) = &running.stored {
        probe.arg("--stored").arg(stored);
    }
    if let Some(elsewhere) = &running.elsewhere {
        probe.arg("--elsewhere").arg(elsewhere);
    }
    if options.quick {
        probe.arg("--quick");
    }
    if let Some(appends) = appends {
        probe.args(["--appends", appends]);
    }
    let status = probe.stdin(Stdio::null()).status().context("syncline bench probe")?;
    if !status.success() {
        return fail(format!("{name} cannot be probed: {status}"));
    }
    let Some(results) = entries(&out)?.into_iter().find(|path| !before.contains(path)) else {
        return fail(format!("{} has no results", out.display()));
    };
    // Many times as large as all figures that come of it.
    fs::remove_file(results.join("probe.pcap"))?;
    Ok(results)
}

/// What is in a folder, which need not be there.
fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    if !folder.exists() {
        return Ok(Vec::new());
    }
    let paths = fs::read_dir(folder)?.map(|entry| Ok(entry?.path()));
    paths.collect::<std::io::Result<_>>().context(folder.display())
}

fn ours(binary: &Path, room: &Path) -> Result<Running> {
    let server = Server::start(binary, &room.join("server"))?;
    let devices = start_devices(binary, room, &server, 2)?;
    let elsewhere = other_account(binary, room, &server, |device| {
        fs::create_dir_all(&device.folder)?;
        device.init()
    })?;
    between(server, devices, elsewhere)
}

fn ours_sealed(binary: &Path, room: &Path) -> Result<Running> {
    let server = Server::start(binary, &room.join("server"))?;
    let passphrase = room.join("passphrase");
    process::write_secret(&passphrase, "a passphrase for loopback only")?;
    let mut devices = Vec::new();
    for name in ["one", "other"] {
        let device = device(binary, room, name, Place::Served);
        device.login(&server.url(), name)?;
        if devices.is_empty() {
            init_sealed(&device, &passphrase)?;
            device.sync()?;
        } else {
            checked(device.clone_command().env(PASSPHRASE_FILE, &passphrase), &SYNC_DONE)?;
        }
        let watch = device.watch()?;
        devices.push((device, watch));
    }
    let elsewhere =
        other_account(binary, room, &server, |device| init_sealed(device, &passphrase))?;
    between(server, devices, elsewhere)
}

fn init_sealed(device: &Device, passphrase: &Path) -> Result<()> {
    let mut init = device.command(&["init", "--sealed", "--workspace", &device.workspace]);
    checked(init.arg(&device.folder).env(PASSPHRASE_FILE, passphrase), &[0]).map(drop)
}

/// A device of another account, with a workspace of its own.
fn other_account(
    binary: &Path,
    room: &Path,
    server: &Server,
    init: impl FnOnce(&Device) -> Result<()>,
) -> Result<(Device, Background)> {
    add_account_of(OTHER_ACCOUNT, binary, server.data())?;
    let device = device(binary, room, "elsewhere", Place::Served);
    device.login_as(OTHER_ACCOUNT, &server.url(), "elsewhere")?;
    init(&device)?;
    device.sync()?;
    let watch = device.watch()?;
    Ok((device, watch))
}

/// Two devices of ours, the server between them, and somebody else's device.
fn between(
    server: Server,
    devices: Vec<(Device, Background)>,
    other: (Device, Background),
) -> Result<Running> {
    let [folder, seen_in] = [0, 1].map(|number: usize| devices[number].0.folder.clone());
    let Some(port) = server.port() else { return fail("the server has no port") };
    let (stored, elsewhere) = (Some(server.data().to_owned()), Some(other.0.folder.clone()));
    let _processes = Box::new((server, devices, other));
    Ok(Running { folder, seen_in, ports: vec![port], command: None, stored, elsewhere, _processes })
}

fn syncthing(_binary: &Path, room: &Path) -> Result<Running> {
    let folders = ["one", "other"].map(|name| room.join(name));
    let mut both = Syncthing::default();
    both.start(room, &folders, Some(1))?;
    let ([folder, seen_in], ports) = (folders, both.ports());
    // What the other device has is the folder itself: there is no server that could read something.
    let (command, stored, elsewhere) = (None, None, None);
    Ok(Running { folder, seen_in, ports, command, stored, elsewhere, _processes: Box::new(both) })
}

/// Makes the two folders of a program that copies when it is told.
fn two_folders(room: &Path) -> Result<[PathBuf; 2]> {
    let folders = ["folder", "copy"].map(|name| room.join(name));
    for folder in &folders {
        fs::create_dir_all(folder)?;
    }
    Ok(folders)
}

/// A program that is told by a command; what its server keeps is the copy.
fn told([folder, copy]: [PathBuf; 2], port: u16, command: String, server: Background) -> Running {
    let stored = Some(copy.clone());
    let (ports, command, elsewhere) = (vec![port], Some(command), None);
    Running {
        folder,
        seen_in: copy,
        ports,
        command,
        stored,
        elsewhere,
        _processes: Box::new(server),
    }
}

fn rsync(_binary: &Path, room: &Path) -> Result<Running> {
    let folders = two_folders(room)?;
    let (daemon, port) = start_daemon(room, &folders[1])?;
    let folder = folders[0].display();
    let command = format!("rsync --archive --delete '{folder}/' rsync://127.0.0.1:{port}/room/");
    Ok(told(folders, port, command, daemon))
}

fn unison(_binary: &Path, room: &Path) -> Result<Running> {
    let folders = two_folders(room)?;
    let port = free_port()?;
    let state = room.join("unison");
    for side in ["server", "client"] {
        fs::create_dir_all(state.join(side))?;
    }
    let mut server = Command::new("unison");
    server.args(["-socket", &port.to_string()]).env("UNISON", state.join("server"));
    let server = background(&mut server, port)?;
    let [folder, copy] = [&folders[0], &folders[1]].map(|it| it.display());
    let command = format!(
        "UNISON='{}' unison '{folder}' 'socket://127.0.0.1:{port}/{copy}' -batch -auto -times -log=false -silent \
         -confirmbigdel=false -ui text",
        state.join("client").display()
    );
    Ok(told(folders, port, command, server))
}

fn rclone(_binary: &Path, room: &Path) -> Result<Running> {
    let folders = two_folders(room)?;
    let port = free_port()?;
    let configuration = room.join("rclone.conf");
    fs::write(&configuration, "")?;
    // Over WebDAV it would see no change that keeps the size of a file.
    let mut server = Command::new("rclone");
    server.args(["serve", "sftp", "--addr", &format!("127.0.0.1:{port}"), "--user", "bench"]);
    server.args(["--pass", PASSWORD, "--config"]).arg(&configuration).arg(&folders[1]);
    let server = background(server.env("RCLONE_CACHE_DIR", room.join("cache")), port)?;
    let obscured = process::output(Command::new("rclone").args(["obscure", PASSWORD]))?;
    let command = format!(
        "rclone sync '{}' :sftp: --sftp-host 127.0.0.1 --sftp-port {port} --sftp-user bench --sftp-pass '{}' --quiet --config '{}'",
        folders[0].display(),
        obscured.trim(),
        configuration.display()
    );
    Ok(told(folders, port, command, server))
}

/// Starts a server, and waits until it listens.
fn background(command: &mut Command, port: u16) -> Result<Background> {
    let command = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let server = Background::new(command.spawn().context("a server does not start")?);
    wait_for_port(port)?;
    Ok(server)
}
