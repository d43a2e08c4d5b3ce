//! The one home of what comes from outside: clock, randomness, environment variables, small files of our own.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::future::Future;
use std::io::{self, IsTerminal, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use model::{Clock, Random, Timestamp};

/// The variables that count.
const VARIABLES: &[&str] = &[
    "SYNCLINE_BROKER_PASSWORD_FILE",
    "SYNCLINE_DATABASE_PASSWORD_FILE",
    "SYNCLINE_HOME",
    "SYNCLINE_LOG",
    "SYNCLINE_LOG_FORMAT",
    "SYNCLINE_OIDC_SECRET_FILE",
    "SYNCLINE_PASSPHRASE_FILE",
    "SYNCLINE_STORE_CREDENTIALS_FILE",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
    "HOME",
    "NO_COLOR",
    "TERM",
    "CI",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "LC_ALL",
    "LC_CTYPE",
    "LANG",
];

/// The environment, read once.
#[derive(Debug, Clone, Default)]
pub(crate) struct Variables(BTreeMap<&'static str, OsString>);

impl Variables {
    /// Reads the environment of the process. An empty variable counts as none.
    #[expect(clippy::disallowed_methods, reason = "this is where the environment is read")]
    pub(crate) fn read() -> Self {
        let found = VARIABLES.iter().filter_map(|name| Some((*name, std::env::var_os(name)?)));
        Self(found.filter(|(_, value)| !value.is_empty()).collect())
    }

    /// Returns a variable.
    pub(crate) fn get(&self, name: &str) -> Option<&OsStr> {
        assert!(VARIABLES.contains(&name), "{name} does not count, and would never be there");
        self.0.get(name).map(OsString::as_os_str)
    }

    /// Returns a variable that is a path.
    pub(crate) fn path(&self, name: &str) -> Option<PathBuf> {
        self.get(name).map(PathBuf::from)
    }
}

/// The clock of this computer.
#[derive(Debug)]
pub(crate) struct SystemClock {
    start: Instant,
}

impl SystemClock {
    /// Starts to count.
    #[expect(clippy::disallowed_methods, reason = "this is the real clock")]
    pub(crate) fn new() -> Self {
        Self { start: Instant::now() }
    }
}

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the real clock")]
    fn now(&self) -> Timestamp {
        timestamp(SystemTime::now())
    }

    fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(tokio::time::sleep(duration))
    }
}

/// Returns the time zone of this computer, or the one that the variable `TZ` names; UTC where neither says anything.
pub(crate) fn time_zone() -> jiff::tz::TimeZone {
    jiff::tz::TimeZone::try_system().unwrap_or(jiff::tz::TimeZone::UTC)
}

/// Turns a time of the standard library into ours.
pub(crate) fn timestamp(time: SystemTime) -> Timestamp {
    match time.duration_since(UNIX_EPOCH) {
        Ok(after) => Timestamp {
            seconds: i64::try_from(after.as_secs()).unwrap_or(i64::MAX),
            nanoseconds: after.subsec_nanos(),
        },
        Err(before) => {
            let seconds = i64::try_from(before.duration().as_secs()).unwrap_or(i64::MAX);
            Timestamp { seconds: -seconds, nanoseconds: 0 }
        }
    }
}

/// The randomness of this computer.
#[derive(Debug)]
pub(crate) struct SystemRandom;

impl Random for SystemRandom {
    fn fill(&self, bytes: &mut [u8]) {
        // Without randomness no id is safe to make, and there is no way to go on.
        getrandom::fill(bytes).expect("the system gives randomness");
    }
}

/// Waits between attempts at a store.
#[derive(Debug)]
pub(crate) struct SystemWaiting;

#[async_trait]
impl storage::layers::Waiting for SystemWaiting {
    async fn wait(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }

    fn random(&self) -> u64 {
        u64::from_le_bytes(model::environment::random_bytes(&SystemRandom))
    }
}

/// Returns how this computer calls itself.
pub(crate) fn host_name() -> String {
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let name: String = name.chars().filter(|character| !character.is_control()).take(32).collect();
    if name.is_empty() { "device".to_owned() } else { name }
}

/// Returns text that is equal only for one start of one computer; empty where the system does not say.
pub(crate) fn boot_identity() -> String {
    let read = |path: &str| read_text(Path::new(path)).ok().flatten().unwrap_or_default();
    read("/etc/machine-id") + &read("/proc/sys/kernel/random/boot_id")
}

/// Returns text that is equal only for one computer; empty where the system does not say.
pub(crate) fn machine_identity() -> String {
    read_text(Path::new("/etc/machine-id")).ok().flatten().unwrap_or_default()
}

/// Tells whether somebody reads what is printed.
pub(crate) fn stdout_is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// Tells whether stdin is a terminal.
pub(crate) fn stdin_is_terminal() -> bool {
    io::stdin().is_terminal()
}

/// Reads stdin to its end, without the line break at it.
pub(crate) fn read_stdin_secret() -> io::Result<String> {
    let mut text = String::new();
    io::stdin().take(64 * 1024).read_to_string(&mut text)?;
    Ok(text.trim_end_matches(['\n', '\r']).to_owned())
}

/// Reads a line from the terminal, and does not show it where it is secret.
pub(crate) fn read_line(is_secret: bool) -> io::Result<String> {
    let stdin = io::stdin();
    let shown = rustix::termios::tcgetattr(&stdin).ok();
    if let (true, Some(mut hidden)) = (is_secret, shown.clone()) {
        hidden.local_modes.remove(rustix::termios::LocalModes::ECHO);
        rustix::termios::tcsetattr(&stdin, rustix::termios::OptionalActions::Now, &hidden)?;
    }
    let mut line = String::new();
    let read = stdin.read_line(&mut line);
    if let (true, Some(shown)) = (is_secret, shown) {
        rustix::termios::tcsetattr(&stdin, rustix::termios::OptionalActions::Now, &shown)?;
    }
    read?;
    Ok(line.trim_end_matches(['\n', '\r']).to_owned())
}

/// Reads a small text file, up to a MiB; nothing where there is none.
pub(crate) fn read_text(path: &Path) -> io::Result<Option<String>> {
    let text = read_small(path)?.map(String::from_utf8).transpose();
    text.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// Reads a small file, up to a MiB; nothing where there is none.
#[expect(clippy::disallowed_methods, reason = "files of our own have their home here")]
pub(crate) fn read_small(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut bytes = Vec::new();
    file.take(1024 * 1024).read_to_end(&mut bytes)?;
    Ok(Some(bytes))
}

/// Writes a small file that only its user may read: whole or not at all, and durable.
#[expect(clippy::disallowed_methods, reason = "files of our own have their home here")]
pub(crate) fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let random: [u8; 8] = model::environment::random_bytes(&SystemRandom);
    let aside = path.with_extension(format!("{:016x}.new", u64::from_le_bytes(random)));
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create_new(true).mode(0o600).open(&aside)?;
    let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
    let placed = written.and_then(|()| fs::rename(&aside, path));
    if placed.is_err() {
        let _ = fs::remove_file(&aside);
    }
    placed?;
    match path.parent() {
        Some(folder) => File::open(folder)?.sync_all(),
        None => Ok(()),
    }
}

/// Writes a small file for others to look at: whole or not at all, and not durable.
#[expect(clippy::disallowed_methods, reason = "files of our own have their home here")]
pub(crate) fn write_for_looking(path: &Path, text: &str) -> io::Result<()> {
    let aside = path.with_extension("new");
    fs::write(&aside, text)?;
    fs::rename(&aside, path)
}

/// Writes a file that anybody may read.
#[expect(clippy::disallowed_methods, reason = "files of our own have their home here")]
pub(crate) fn write_public(path: &Path, bytes: &[u8]) -> io::Result<()> {
    fs::write(path, bytes)
}

/// Moves a file of our own; absent is fine.
#[expect(clippy::disallowed_methods, reason = "files of our own have their home here")]
pub(crate) fn move_file(from: &Path, to: &Path) -> io::Result<()> {
    absent_is_fine(fs::rename(from, to))
}

/// Removes a file of our own; absent is fine.
#[expect(clippy::disallowed_methods, reason = "files of our own have their home here")]
pub(crate) fn remove_file(path: &Path) -> io::Result<()> {
    absent_is_fine(fs::remove_file(path))
}

fn absent_is_fine(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// Makes a folder, with its parents, that only its user may enter.
pub(crate) fn make_private_folder(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// A lock on a file of our own, held until it is dropped or the process ends.
#[derive(Debug)]
pub(crate) struct FileLock {
    _file: File,
}

impl FileLock {
    /// Takes the lock at once; nothing where another process has it.
    pub(crate) fn try_acquire(path: &Path) -> io::Result<Option<Self>> {
        Self::take(path, File::try_lock)
    }

    /// Takes the lock, after those who have it; nobody holds it for longer than a file takes.
    pub(crate) fn acquire(path: &Path) -> io::Result<Self> {
        let lock = Self::take(path, |file| file.lock().map_err(fs::TryLockError::Error))?;
        lock.ok_or_else(|| io::ErrorKind::WouldBlock.into())
    }

    /// Takes the lock at once, together with others who take it so; nothing where another process has it alone.
    pub(crate) fn try_acquire_shared(path: &Path) -> io::Result<Option<Self>> {
        Self::take(path, File::try_lock_shared)
    }

    #[expect(clippy::disallowed_methods, reason = "files of our own have their home here")]
    fn take(
        path: &Path,
        lock: impl FnOnce(&File) -> Result<(), fs::TryLockError>,
    ) -> io::Result<Option<Self>> {
        let mut options = OpenOptions::new();
        let file = options.create(true).truncate(false).write(true).mode(0o600).open(path)?;
        match lock(&file) {
            Ok(()) => Ok(Some(Self { _file: file })),
            Err(fs::TryLockError::WouldBlock) => Ok(None),
            Err(fs::TryLockError::Error(error)) => Err(error),
        }
    }
}

/// Opens a file that grows at its end.
#[expect(clippy::disallowed_methods, reason = "files of our own have their home here")]
pub(crate) fn open_to_append(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).mode(0o600).open(path)
}

/// Lets a defect leave a report behind, and says what it means for the user's data.
pub(crate) fn report_panics(folder: PathBuf) {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        usual(panic);
        let report = format!("syncline {}\n{panic}\n", env!("CARGO_PKG_VERSION"));
        let path = folder.join(format!("panic-{}.txt", std::process::id()));
        let written = make_private_folder(&folder).and_then(|()| write_private(&path, &report));
        let mut stderr = io::stderr().lock();
        let _ = writeln!(stderr, "error[E0901]: this is a defect of Syncline; sorry");
        let _ = writeln!(stderr, "  state: no file was damaged; the next sync continues");
        if written.is_ok() {
            let _ = writeln!(stderr, "   help: please send {}", path.display());
        }
    }));
}
