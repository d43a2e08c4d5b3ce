//! What shows how far a long job is, only to somebody who looks: a line after half a second, or several that are drawn anew in place.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use parking_lot::Mutex;
use sync::engine::{Event, Observer};

use crate::text;
use crate::ui::Ui;

/// Shorter jobs need no progress.
const QUIET_TIME: Duration = Duration::from_millis(500);

/// A line of progress that goes away by itself.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// Prepares the line; nothing is shown where nobody looks.
    pub(crate) fn new(ui: &Ui) -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        if ui.shows_progress() {
            bar.set_style(
                ProgressStyle::with_template("{spinner} {msg}  {elapsed}")
                    .unwrap_or_else(|_| ProgressStyle::default_spinner()),
            );
            let shown = bar.clone();
            std::thread::spawn(move || {
                std::thread::sleep(QUIET_TIME);
                if !shown.is_finished() {
                    shown.set_draw_target(ProgressDrawTarget::stderr());
                    shown.enable_steady_tick(Duration::from_millis(100));
                }
            });
        }
        Self { bar }
    }

    /// Returns what follows an engine, and passes every event on to `also`.
    pub(crate) fn observer(&self, also: impl Fn(&Event) + Send + Sync + 'static) -> Observer {
        let bar = self.bar.clone();
        let sent = Mutex::new((0_u64, 0_u64));
        std::sync::Arc::new(move |event: Event| {
            also(&event);
            let mut counts = sent.lock();
            let line = match &event {
                Event::Step("scan") => "looking for changes".to_owned(),
                Event::Step("fetch") => "learning what others did".to_owned(),
                Event::Step("push") => "sending".to_owned(),
                Event::Step("survey") => "finding out what is needed".to_owned(),
                Event::Step("repack") => "writing packs anew without what is not needed".to_owned(),
                Event::Step(step) => (*step).to_owned(),
                Event::Cleaned { packs, total } => {
                    let total = text::counted(*total, "pack", "packs");
                    format!("removing {} of {total}", text::count(*packs))
                }
                Event::Read { files, total } => progress("reading", *files, *total),
                Event::Written { files, total } => progress("writing", *files, *total),
                Event::Sent(_) => {
                    counts.0 += 1;
                    if !counts.0.is_multiple_of(64) {
                        return;
                    }
                    format!("sent {}", text::counted(counts.0, "change", "changes"))
                }
                Event::Received(_) | Event::Removed(_) => {
                    counts.1 += 1;
                    if !counts.1.is_multiple_of(64) {
                        return;
                    }
                    format!("received {}", text::counted(counts.1, "change", "changes"))
                }
                Event::KeptCopy(path) => format!("kept a copy of {path}"),
                Event::Scrubbed { .. } => "repaired what is stored".to_owned(),
                Event::CleanupDue | Event::Filled => return,
                Event::MountsChanged => "other folders are shared now".to_owned(),
                Event::SettingsChanged => "the workspace has other stores now".to_owned(),
            };
            bar.set_message(line);
        })
    }
}

fn progress(verb: &str, files: u64, total: u64) -> String {
    format!("{verb} {} of {}", text::count(files), text::counted(total, "file", "files"))
}

/// Some lines of progress that go away by themselves.
#[derive(Debug)]
pub(crate) struct Panel {
    bar: ProgressBar,
}

impl Panel {
    /// Prepares the lines; nothing where nobody looks, or a program reads.
    pub(crate) fn new(ui: &Ui) -> Option<Self> {
        if !ui.shows_progress() || ui.is_json() {
            return None;
        }
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        bar.set_style(
            ProgressStyle::with_template("{msg}")
                .unwrap_or_else(|_| ProgressStyle::default_spinner()),
        );
        Some(Self { bar })
    }

    /// Draws them anew.
    pub(crate) fn show(&self, lines: &[String]) {
        self.bar.set_message(lines.join("\n"));
    }
}

impl Drop for Panel {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
