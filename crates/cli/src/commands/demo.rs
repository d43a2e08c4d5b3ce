//! `syncline demo`: a server and two devices at work on real files, in a temporary folder, as child processes of this
//! very program. Everything that is claimed is checked: trees are compared byte for byte, with modes, times and links.

use std::path::Path;
use std::time::Duration;

use model::environment::random_bytes;
use model::{Clock, Random};
use serde_json::{Value, json};

use crate::arguments::DemoArguments;
use crate::commands::children::{ACCOUNT, Child, Device};
use crate::context::Context;
use crate::error::{Code, CommandError, Result};
use crate::text::{count, counted, size, span};
use crate::ui::{Paint, Symbol};

mod scene;
mod source;
mod tree;

use scene::Scene;

/// How many files are written to see how long one takes to the other device.
const PROBES: usize = 20;

/// How long to wait for one.
const PROBE_TIMEOUT: Duration = Duration::from_secs(10);

/// The name of the workspace.
const WORKSPACE: &str = "Demo";

/// Runs the command.
pub(crate) fn run(context: &Context<'_>, arguments: &DemoArguments) -> Result<u8> {
    context.no_dry_run("demo")?;
    let token = u32::from_le_bytes(random_bytes(&*context.random));
    let room = std::env::temp_dir().join(format!("syncline-demo-{token:08x}"));
    scene::make_folder(&room)?;
    let start = context.clock.elapsed();
    let mut demo = Demo { context, scene: Scene::new(room.clone())?, steps: Vec::new() };
    let played = demo.play(arguments.source.as_deref());
    let steps = std::mem::take(&mut demo.steps);
    drop(demo);
    if arguments.keep {
        context.ui.note(format!("the folders are kept in {}", room.display()));
    } else {
        scene::remove_folder(&room)?;
    }
    played?;
    let time = context.clock.elapsed().saturating_sub(start);
    context.ui.json(&json!({"schema": "syncline.demo/1", "type": "summary", "steps": steps, "seconds": time.as_secs_f64()}));
    let cleaned = if arguments.keep { "" } else { "; nothing is left behind" };
    context.ui.say(Symbol::Done, format!("all checks passed in {}{cleaned}", span(time)));
    Ok(0)
}

/// The demo as it plays.
struct Demo<'a> {
    context: &'a Context<'a>,
    scene: Scene,
    steps: Vec<Value>,
}

impl Demo<'_> {
    fn play(&mut self, source: Option<&Path>) -> Result<()> {
        let start = self.now();
        let (files, bytes) = self.scene.prepare(source)?;
        let origin = source
            .map_or_else(|| "a generated project".to_owned(), |path| path.display().to_string());
        self.tell(
            "prepare",
            &format!("{origin}: {}, {}", counted(files, "file", "files"), size(bytes)),
            start,
        );
        let server = self.start_server()?;
        let (laptop, desktop) = self.first_sync()?;
        self.edit_both_sides(&laptop, &desktop)?;
        self.look_back(&laptop, &desktop)?;
        self.watch_both(&laptop, &desktop)?;
        server.stop()?;
        self.without_a_server(&laptop)
    }

    fn now(&self) -> Duration {
        self.context.clock.elapsed()
    }

    /// Prints a line of the table.
    fn tell(&mut self, step: &str, words: &str, start: Duration) {
        let time = self.now().saturating_sub(start);
        let ui = self.context.ui;
        let shown = format!("{step:22}");
        ui.answer(format!("{} {:>8}  {words}", ui.paint(Paint::Word, &shown), span(time)));
        self.steps.push(json!({"step": step, "words": words, "seconds": time.as_secs_f64()}));
    }

    fn start_server(&mut self) -> Result<Child> {
        let start = self.now();
        let (server, url) = self.scene.start_server()?;
        self.tell("serve", &format!("{url}, with the account {ACCOUNT}"), start);
        Ok(server)
    }

    fn first_sync(&mut self) -> Result<(Device, Device)> {
        let start = self.now();
        let (laptop, desktop) = (self.scene.device("laptop"), self.scene.device("desktop"));
        for device in [&laptop, &desktop] {
            self.scene.login(device)?;
        }
        laptop.run(&["init", &laptop.folder_text()?, "--workspace", WORKSPACE])?;
        self.tell("login, init", "two devices, one workspace", start);
        let start = self.now();
        let done = laptop.exchange(&["sync", &laptop.folder_text()?])?;
        self.tell(
            "laptop: first sync",
            &format!("{} sent, {}", counted(done.sent, "entry", "entries"), size(done.sent_bytes)),
            start,
        );
        let start = self.now();
        let done = desktop.exchange(&["clone", WORKSPACE, &desktop.folder_text()?])?;
        self.tell(
            "desktop: clone",
            &format!(
                "{} received, {}",
                counted(done.received, "entry", "entries"),
                size(done.received_bytes)
            ),
            start,
        );
        self.check_equal(&laptop, &desktop)?;
        let start = self.now();
        let done = laptop.exchange(&["sync", &laptop.folder_text()?])?;
        expect(done.sent + done.received == 0, "a second sync does nothing")?;
        self.tell("laptop: sync again", "nothing to do", start);
        Ok((laptop, desktop))
    }

    fn edit_both_sides(&mut self, laptop: &Device, desktop: &Device) -> Result<()> {
        let start = self.now();
        let edits = self.scene.edit(laptop, desktop)?;
        self.tell("both: change files", &edits, start);
        let start = self.now();
        let first = laptop.exchange(&["sync", &laptop.folder_text()?])?;
        let second = desktop.exchange(&["sync", &desktop.folder_text()?])?;
        laptop.exchange(&["sync", &laptop.folder_text()?])?;
        let bytes = first.sent_bytes + second.sent_bytes;
        self.tell(
            "both: sync",
            &format!("{} changes, {} sent", count(first.sent + second.sent), size(bytes)),
            start,
        );
        self.check_equal(laptop, desktop)?;
        let start = self.now();
        let conflicts = laptop.json(&["conflicts", &laptop.folder_text()?], &[5])?;
        let copy = conflicts["conflicts"][0]["copy"].as_str().unwrap_or_default().to_owned();
        let path = conflicts["conflicts"][0]["path"].as_str().unwrap_or_default().to_owned();
        expect(!copy.is_empty(), "the conflict is known, and both versions are kept")?;
        self.tell("conflict", &format!("{path}: both are kept, the other as '{copy}'"), start);
        let start = self.now();
        laptop.run_in_folder(&["resolve", &path, "--keep", "mine"])?;
        desktop.exchange(&["sync", &desktop.folder_text()?])?;
        self.tell("resolve --keep mine", "decided on the laptop, for both", start);
        self.check_equal(laptop, desktop)
    }

    fn look_back(&mut self, laptop: &Device, desktop: &Device) -> Result<()> {
        let start = self.now();
        let path = self.scene.restore(laptop)?;
        laptop.exchange(&["sync", &laptop.folder_text()?])?;
        desktop.exchange(&["sync", &desktop.folder_text()?])?;
        self.tell("restore", &format!("{path} as it was in v1, byte for byte"), start);
        self.check_equal(laptop, desktop)
    }

    fn watch_both(&mut self, laptop: &Device, desktop: &Device) -> Result<()> {
        let watches = [laptop.watch()?, desktop.watch()?];
        let start = self.now();
        let mut times = Vec::with_capacity(PROBES);
        for number in 0..PROBES {
            times.push(self.probe(laptop, desktop, number)?);
        }
        times.sort_unstable();
        let (middle, last) = (times[PROBES / 2], times[PROBES - 1]);
        let words = format!(
            "a file is on the other device after {} (median), {} (slowest of {PROBES})",
            span(middle),
            span(last)
        );
        self.tell("watch", &words, start);
        for watch in watches {
            watch.stop()?;
        }
        self.check_equal(laptop, desktop)
    }

    /// Writes a file on one device and waits for it on the other.
    fn probe(&self, laptop: &Device, desktop: &Device, number: usize) -> Result<Duration> {
        let name = format!("probe-{number}.txt");
        let mut bytes = [0; 64];
        self.context.random.fill(&mut bytes);
        scene::write(&laptop.folder.join(&name), &bytes)?;
        let start = self.now();
        let target = desktop.folder.join(&name);
        while !target.exists() {
            let waited = self.now().saturating_sub(start);
            expect(waited < PROBE_TIMEOUT, "a watched file arrives within seconds")?;
            std::thread::sleep(Duration::from_micros(200));
        }
        let time = self.now().saturating_sub(start);
        expect(scene::read(&target)? == bytes, "a file that is seen is complete")?;
        std::thread::sleep(Duration::from_millis(30));
        Ok(time)
    }

    /// The same files once more, with nothing but a folder as the cloud.
    fn without_a_server(&mut self, laptop: &Device) -> Result<()> {
        let (first, second) = (self.scene.device("usb-laptop"), self.scene.device("usb-desktop"));
        let backend = format!("disk=file:{}", self.scene.store_text()?);
        self.scene.write_passphrase()?;
        scene::copy_folder(&laptop.folder, &first.folder)?;
        let start = self.now();
        first.run(&[
            "init",
            &first.folder_text()?,
            "--workspace",
            WORKSPACE,
            "--backend",
            &backend,
        ])?;
        first.exchange(&["sync", &first.folder_text()?])?;
        second.exchange(&["clone", WORKSPACE, &second.folder_text()?, "--backend", &backend])?;
        self.tell(
            "no server",
            "the same through a folder, end-to-end encrypted: init, sync, clone",
            start,
        );
        self.check_equal(&first, &second)
    }

    fn check_equal(&mut self, one: &Device, other: &Device) -> Result<()> {
        let start = self.now();
        let (one, other) = (tree::read(&one.folder)?, tree::read(&other.folder)?);
        if let Some(difference) = tree::difference(&one, &other) {
            return Err(failed(&format!("the folders are equal, but for {difference}")));
        }
        self.tell(
            "  check",
            &format!(
                "both folders are equal: {} entries, bytes, modes, times and links",
                count(one.len() as u64)
            ),
            start,
        );
        Ok(())
    }
}

/// Fails where something that was promised is not so.
fn expect(is_so: bool, promise: &str) -> Result<()> {
    if is_so { Ok(()) } else { Err(failed(promise)) }
}

fn failed(promise: &str) -> CommandError {
    CommandError::new(Code::Defect, format!("the demo failed; this should be so: {promise}"))
        .help("syncline demo --keep", "keeps the folders, to look at them")
}

/// Returns where a demo may put its folders.
pub(super) fn text(path: &Path) -> Result<String> {
    crate::folder::path_text(path)
}
