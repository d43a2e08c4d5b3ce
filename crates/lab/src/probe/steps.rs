//! The changes of a probe, one after the other.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};

use super::{Row, Step, Subject};
use crate::capture::{Capture, Counts};
use crate::error::LabError;
use crate::files;
use crate::random::Random;
use crate::stopwatch::Stopwatch;
use crate::trace::data::{self, Kind};

/// Of a small file, in bytes; as much is put in front of a large one, and behind it.
const SMALL: u64 = 1024;

/// How often the mark stands in the marked file: some of it may lie across two packets.
const MARKS: u64 = 16;

/// How many files are half alike: as many as in Figure 4.9 of BenchCloud.
const HALVES: u64 = 5;

/// How often one byte is changed somewhere: parts of many sizes have a middle one.
const ONE_BYTES: u64 = 5;

/// How long to wait until something is looked for again.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// How long is listened to what a command has said that has ended.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// The name of what is as the large file was when it came.
const COPY: &str = "copy";

/// A name that a step changes, and what is to be there; nothing for a file that goes.
type Change = (String, Option<Vec<u8>>);

/// What goes over the wire meanwhile; as [`Capture`] has it.
pub(super) trait Wire {
    fn now(&self, patience: Duration) -> Result<Option<Duration>, LabError>;

    fn wait_for_payload(&self, since: Duration, patience: Duration) -> Result<bool, LabError>;

    fn wait_for_silence(&self, silence: Duration, patience: Duration) -> Result<bool, LabError>;

    fn take(&self) -> Counts;
}

impl Wire for Capture {
    fn now(&self, patience: Duration) -> Result<Option<Duration>, LabError> {
        Self::now(self, patience)
    }

    fn wait_for_payload(&self, since: Duration, patience: Duration) -> Result<bool, LabError> {
        Self::wait_for_payload(self, since, patience)
    }

    fn wait_for_silence(&self, silence: Duration, patience: Duration) -> Result<bool, LabError> {
        Self::wait_for_silence(self, silence, patience)
    }

    fn take(&self) -> Counts {
        Self::take(self)
    }
}

/// Does the steps.
pub(super) struct Steps<'a> {
    subject: &'a Subject,
    /// The folder of this probe, in the subject's.
    name: &'a str,
    wire: &'a dyn Wire,
    random: Random,
    rows: Vec<Row>,
}

impl<'a> Steps<'a> {
    pub(super) fn new(
        subject: &'a Subject,
        name: &'a str,
        wire: &'a dyn Wire,
        random: Random,
    ) -> Result<Self, LabError> {
        files::make_folder(&subject.folder.join(name))?;
        Ok(Self { subject, name, wire, random, rows: Vec::new() })
    }

    pub(super) fn into_rows(self) -> Vec<Row> {
        self.rows
    }

    /// Does all steps, or those until somebody wants it to end; returns whether it was all.
    pub(super) fn all(
        &mut self,
        content: &[u8],
        secret: &str,
        tell: &mut dyn FnMut(&Row) -> bool,
    ) -> Result<bool, LabError> {
        let sizes = self.subject.sizes;
        let mut file = self.bytes(Kind::Random, sizes.large);
        let mut shifted = file.clone();
        shifted.insert(0, 0x5c);
        let text = self.bytes(Kind::Text, sizes.large);
        let twin = self.bytes(Kind::Random, sizes.large / 2);
        let mut marked = Vec::new();
        for _ in 0..MARKS {
            marked.extend(self.bytes(Kind::Random, SMALL / MARKS));
            marked.extend_from_slice(content);
        }
        let mut plan = vec![
            (Step::Idle, Vec::new()),
            (Step::Small, vec![self.new_small("small")]),
            (Step::Secret, vec![(secret.to_owned(), Some(marked))]),
            (Step::Large, put("large", &file)),
            (Step::Text, put("text", &text)),
            (Step::Copy, put(COPY, &file)),
            (Step::Shifted, put("shifted", &shifted)),
            (Step::Twins, [put("twin-1", &twin), put("twin-2", &twin)].concat()),
            (Step::Rename, vec![("text".into(), None), ("text-2".into(), Some(text))]),
        ];
        let elsewhere =
            self.subject.elsewhere.as_ref().map(|_| (Step::Elsewhere, put(COPY, &file)));
        for _ in 0..ONE_BYTES {
            let at = self.random.below(file.len() as u64) as usize;
            file[at] ^= 0xff;
            plan.push((Step::OneByte, put("large", &file)));
        }
        let more = self.bytes(Kind::Random, SMALL);
        file.splice(0..0, more);
        plan.push((Step::Insert, put("large", &file)));
        file.extend(self.bytes(Kind::Random, SMALL));
        plan.push((Step::Append, put("large", &file)));
        plan.push((Step::Remove, vec![("twin-1".into(), None), ("twin-2".into(), None)]));
        plan.push((Step::Again, put("twin-3", &twin)));
        plan.push((Step::Halves, self.halves(sizes.large)));
        let grown = self.bytes(Kind::Random, sizes.appends * SMALL);
        plan.push((Step::Growing, put("growing", &grown)));
        let many = |steps: &mut Self, name: &str, count: u64| {
            (0..count).map(|number| steps.new_small(&format!("{name}-{number}"))).collect()
        };
        plan.push((Step::Bundle, many(self, "bundle", sizes.bundle)));
        plan.push((Step::Load, many(self, "load", sizes.load)));
        plan.extend(elsewhere);
        for (step, changes) in plan {
            let row = self.step(step, changes)?;
            let goes_on = tell(&row);
            self.rows.push(row);
            if !goes_on {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn bytes(&mut self, kind: Kind, size: u64) -> Vec<u8> {
        data::bytes(kind, size, self.random.next())
    }

    fn new_small(&mut self, name: &str) -> Change {
        (name.to_owned(), Some(self.bytes(Kind::Random, SMALL)))
    }

    /// Returns files that have one half in common, and of which nothing else is alike.
    fn halves(&mut self, size: u64) -> Vec<Change> {
        let common = self.bytes(Kind::Random, size / 2);
        let one = |number| {
            let own = self.bytes(Kind::Random, size - size / 2);
            (format!("half-{number}"), Some([&common[..], &own].concat()))
        };
        (1..=HALVES).map(one).collect()
    }

    fn step(&mut self, step: Step, changes: Vec<Change>) -> Result<Row, LabError> {
        let Subject { silence, patience, .. } = *self.subject;
        self.wire.wait_for_silence(silence, patience)?;
        drop(self.wire.take());
        if step == Step::Idle {
            return self.idle();
        }
        let bytes = changes.iter().filter_map(|(_, bytes)| bytes.as_ref());
        let bytes = bytes.map(|bytes| bytes.len() as u64).sum();
        let files = changes.iter().filter(|(_, bytes)| bytes.is_some()).count() as u64;
        let (since, watch) = match (step, &changes[..]) {
            (Step::Growing, [(name, Some(bytes))]) => self.grow(name, bytes)?,
            _ => self.during(|| self.change(step, &changes))?,
        };
        let (missing, took) = match &self.subject.seen_in {
            Some(other) if step != Step::Elsewhere => {
                let missing = self.wait(other, changes, &watch)?;
                (missing, (missing == 0).then(|| watch.read().wall))
            }
            // The silence of before the change is none of what it does.
            _ => {
                let has_come = self.wire.wait_for_payload(since, patience)?;
                (if has_come { 0 } else { changes.len() as u64 }, None)
            }
        };
        let is_silent = self.wire.wait_for_silence(silence, patience)?;
        let counts = self.wire.take();
        Ok(Row { step, files, bytes, took, missing, counts, is_silent })
    }

    /// Does nothing, for a time that is measured.
    fn idle(&self) -> Result<Row, LabError> {
        let watch = Stopwatch::start();
        std::thread::sleep(self.subject.sizes.idle);
        let is_silent = self.wire.now(self.subject.patience)?.is_some();
        let (took, counts) = (Some(watch.read().wall), self.wire.take());
        Ok(Row { step: Step::Idle, files: 0, bytes: 0, took, missing: 0, counts, is_silent })
    }

    /// Lets a file grow, and returns as [`Self::during`] of the last time.
    fn grow(&self, name: &str, bytes: &[u8]) -> Result<(Duration, Stopwatch), LabError> {
        let path = self.subject.folder.join(self.name).join(name);
        let (begun, mut last) = (Stopwatch::start(), None);
        for (due, piece) in bytes.chunks(SMALL as usize).enumerate() {
            let due = self.subject.sizes.append_every * due as u32;
            std::thread::sleep(due.saturating_sub(begun.read().wall));
            last = Some(self.during(|| files::append(&path, piece))?);
        }
        last.map_or_else(|| self.during(|| Ok(())), Ok)
    }

    /// Changes something, and tells the program if it has to be told. Returns since when, by the clock of the wire and by one that is read later.
    fn during(
        &self,
        change: impl FnOnce() -> Result<(), LabError>,
    ) -> Result<(Duration, Stopwatch), LabError> {
        let patience = self.subject.patience;
        let since = self.wire.now(patience)?.unwrap_or_default();
        let watch = Stopwatch::start();
        change()?;
        if let Some(command) = &self.subject.command {
            run(command, patience)?;
        }
        Ok((since, watch))
    }

    /// Does what a user does.
    fn change(&self, step: Step, changes: &[Change]) -> Result<(), LabError> {
        let folder = match (&self.subject.elsewhere, step) {
            (Some(elsewhere), Step::Elsewhere) => elsewhere,
            _ => &self.subject.folder,
        };
        let folder = folder.join(self.name);
        if let (Step::Rename, [(from, _), (to, _)]) = (step, changes) {
            return files::rename(&folder.join(from), &folder.join(to));
        }
        for (name, bytes) in changes {
            let path = folder.join(name);
            match bytes {
                None => files::remove(&path)?,
                Some(bytes) if files::look(&path)?.is_none() => files::write_new(&path, bytes)?,
                Some(bytes) => files::write_in_place(&path, bytes)?,
            }
        }
        Ok(())
    }

    /// Waits until everything is in the other folder as it should be, and returns how many files never are.
    fn wait(&self, other: &Path, changes: Vec<Change>, watch: &Stopwatch) -> Result<u64, LabError> {
        let mut waiting: BTreeMap<PathBuf, Option<Vec<u8>>> = changes
            .into_iter()
            .map(|(name, bytes)| (other.join(self.name).join(name), bytes))
            .collect();
        loop {
            let looking = Stopwatch::start();
            waiting.retain(|path, bytes| !is_there(path, bytes.as_deref()));
            if waiting.is_empty() || watch.read().wall >= self.subject.patience {
                return Ok(waiting.len() as u64);
            }
            // Who reads large files again and again has no processor left for the program.
            std::thread::sleep(LOOK_EVERY.max(looking.read().wall * 3));
        }
    }
}

fn put(name: &str, bytes: &[u8]) -> Vec<Change> {
    vec![(name.to_owned(), Some(bytes.to_owned()))]
}

/// Whether a file has exactly these bytes, or, without them, is not there. What cannot be read is not there yet.
fn is_there(path: &Path, bytes: Option<&[u8]>) -> bool {
    let Ok(found) = files::identity(path) else { return false };
    if found.map(files::Identity::size) != bytes.map(|bytes| bytes.len() as u64) {
        return false;
    }
    bytes.is_none_or(|bytes| files::read(path).is_ok_and(|read| read == bytes))
}

/// Runs what somebody wants run after each change. What it leaves running in the background is not waited for.
fn run(command: &str, patience: Duration) -> Result<(), LabError> {
    let failed = |what: String| LabError::Command { command: command.to_owned(), what };
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    // Ctrl-C is for this program, which lets the step come to its end.
    shell.process_group(0);
    let no_shell = |error| failed(format!("no shell starts: {error}"));
    let mut shell = shell.spawn().map_err(no_shell)?;
    let (sender, said) = mpsc::channel();
    if let Some(stderr) = shell.stderr.take() {
        std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                // Nobody hears it once the command has ended.
                let _ = sender.send(line);
            }
        });
    }
    let watch = Stopwatch::start();
    let status = loop {
        let ended = shell.try_wait();
        if let Some(status) = ended.map_err(|error| failed(format!("it is lost: {error}")))? {
            break status;
        }
        if watch.read().wall >= patience {
            let group = i32::try_from(shell.id()).ok().and_then(Pid::from_raw);
            let _ = group.map(|group| kill_process_group(group, Signal::KILL));
            let _ = shell.wait();
            return Err(failed(format!("it has not ended after {} s", patience.as_secs_f64())));
        }
        std::thread::sleep(LOOK_EVERY);
    };
    if status.success() {
        return Ok(());
    }
    let mut lines = Vec::new();
    while let Ok(line) = said.recv_timeout(LAST_WORDS) {
        lines.push(line);
    }
    Err(failed(format!("{status}: {}", lines.join("; "))))
}
