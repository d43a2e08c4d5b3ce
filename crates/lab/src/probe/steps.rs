//! The changes of a probe, one after the other.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use super::{Row, Step, Subject};
use crate::capture::{Capture, Counts};
use crate::error::LabError;
use crate::files;
use crate::random::Random;
use crate::stopwatch::Stopwatch;
use crate::trace::data::{self, Kind};

/// Of a small file, in bytes; as much is put in front of a large one, and behind it.
const SMALL: u64 = 1024;

/// How often one byte is changed somewhere: parts of many sizes have a middle one.
const ONE_BYTES: u64 = 5;

/// How long to wait until something is looked for again.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// A name that a step changes, and what is to be there; nothing for a file that goes.
type Change = (String, Option<Vec<u8>>);

/// What goes over the wire meanwhile.
pub(super) trait Wire {
    /// Waits until it is silent for a time; returns whether it was within another one.
    fn wait_for_silence(&self, silence: Duration, patience: Duration) -> bool;

    /// Returns what was counted since the last time.
    fn take(&self) -> Counts;
}

impl Wire for Capture {
    fn wait_for_silence(&self, silence: Duration, patience: Duration) -> bool {
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

    /// Does all steps, or those until somebody wants it to end.
    pub(super) fn all(
        &mut self,
        content: &[u8],
        secret: &str,
        tell: &mut dyn FnMut(&Row) -> bool,
    ) -> Result<(), LabError> {
        let sizes = self.subject.sizes;
        let mut file = self.bytes(Kind::Random, sizes.large);
        let mut shifted = file.clone();
        shifted.insert(0, 0x5c);
        let text = self.bytes(Kind::Text, sizes.large);
        let twin = self.bytes(Kind::Random, sizes.large / 2);
        let mut marked = self.bytes(Kind::Random, SMALL);
        marked.extend_from_slice(content);
        let mut plan = vec![
            (Step::Idle, Vec::new()),
            (Step::Small, vec![self.new_small("small")]),
            (Step::Secret, vec![(secret.to_owned(), Some(marked))]),
            (Step::Large, put("large", &file)),
            (Step::Text, put("text", &text)),
            (Step::Copy, put("copy", &file)),
            (Step::Shifted, put("shifted", &shifted)),
            (Step::Twins, [put("twin-1", &twin), put("twin-2", &twin)].concat()),
            (Step::Rename, vec![("text".into(), None), ("text-2".into(), Some(text))]),
        ];
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
        let many = |steps: &mut Self, name: &str, count: u64| {
            (0..count).map(|number| steps.new_small(&format!("{name}-{number}"))).collect()
        };
        plan.push((Step::Bundle, many(self, "bundle", sizes.bundle)));
        plan.push((Step::Load, many(self, "load", sizes.load)));
        for (step, changes) in plan {
            let row = self.step(step, changes)?;
            let goes_on = tell(&row);
            self.rows.push(row);
            if !goes_on {
                break;
            }
        }
        Ok(())
    }

    fn bytes(&mut self, kind: Kind, size: u64) -> Vec<u8> {
        data::bytes(kind, size, self.random.next())
    }

    fn new_small(&mut self, name: &str) -> Change {
        (name.to_owned(), Some(self.bytes(Kind::Random, SMALL)))
    }

    fn step(&mut self, step: Step, changes: Vec<Change>) -> Result<Row, LabError> {
        let Subject { silence, patience, .. } = *self.subject;
        self.wire.wait_for_silence(silence, patience);
        drop(self.wire.take());
        let bytes = changes.iter().filter_map(|(_, bytes)| bytes.as_ref());
        let bytes = bytes.map(|bytes| bytes.len() as u64).sum();
        let files = changes.iter().filter(|(_, bytes)| bytes.is_some()).count() as u64;
        let watch = Stopwatch::start();
        if step == Step::Idle {
            std::thread::sleep(self.subject.sizes.idle);
        }
        self.change(step, &changes)?;
        if let Some(command) = self.subject.command.as_ref().filter(|_| step != Step::Idle) {
            run(command)?;
        }
        let missing = self.wait(changes, &watch)?;
        let elapsed = watch.read().wall;
        let is_visible = self.subject.seen_in.is_some() || self.subject.command.is_some();
        let took = (is_visible && missing == 0).then_some(elapsed);
        let is_silent = self.wire.wait_for_silence(silence, patience);
        let counts = self.wire.take();
        Ok(Row { step, files, bytes, took, missing, counts, is_silent })
    }

    /// Does what a user does.
    fn change(&self, step: Step, changes: &[Change]) -> Result<(), LabError> {
        let folder = self.subject.folder.join(self.name);
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
    fn wait(&self, changes: Vec<Change>, watch: &Stopwatch) -> Result<u64, LabError> {
        let Some(other) = &self.subject.seen_in else { return Ok(0) };
        let mut waiting: BTreeMap<PathBuf, Option<Vec<u8>>> = changes
            .into_iter()
            .map(|(name, bytes)| (other.join(self.name).join(name), bytes))
            .collect();
        loop {
            let mut failure = None;
            waiting.retain(|path, bytes| match is_there(path, bytes.as_deref()) {
                Ok(is_there) => !is_there,
                Err(error) => {
                    failure = Some(error);
                    true
                }
            });
            if let Some(error) = failure {
                return Err(error);
            }
            if waiting.is_empty() || watch.read().wall >= self.subject.patience {
                return Ok(waiting.len() as u64);
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }
}

fn put(name: &str, bytes: &[u8]) -> Vec<Change> {
    vec![(name.to_owned(), Some(bytes.to_owned()))]
}

/// Whether a file has exactly these bytes, or, without them, is not there.
fn is_there(path: &Path, bytes: Option<&[u8]>) -> Result<bool, LabError> {
    let (found, wanted) = (files::identity(path)?, bytes.map(|bytes| bytes.len() as u64));
    if found.map(files::Identity::size) != wanted {
        return Ok(false);
    }
    match (bytes, files::read(path)) {
        (None, _) => Ok(true),
        (Some(bytes), Ok(read)) => Ok(read == bytes),
        (_, Err(LabError::Read { source, .. })) if files::is_gone(&source) => Ok(false),
        (_, Err(error)) => Err(error),
    }
}

/// Runs what somebody wants run after each change.
fn run(command: &str) -> Result<(), LabError> {
    let failed = |what: String| LabError::Command { command: command.to_owned(), what };
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).stdin(Stdio::null());
    let output = shell.output().map_err(|error| failed(format!("no shell starts: {error}")))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(failed(format!("{}: {}", output.status, said.trim())))
}
