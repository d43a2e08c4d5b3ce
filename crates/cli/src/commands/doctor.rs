//! `syncline doctor`: looks at everything that a sync stands on, and prints a report that can be pasted.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use model::Clock;
use serde_json::json;
use storage::ObjectStore;
use sync::file_system::native::{FolderLock, LockError};

use crate::arguments::FolderArgument;
use crate::connect::coordinator;
use crate::context::Context;
use crate::error::{Code, CommandError, Result};
use crate::folder::{Folder, Place};
use crate::sealed;
use crate::server_client::ServerClient;
use crate::stores;
use crate::system;
use crate::text::{count, counted, size};
use crate::ui::{Paint, Symbol};

/// Below this many free bytes there is a warning.
const SPACE_MIN: u64 = 1 << 30;

/// From this many seconds on a clock is called wrong. Nothing depends on it but what people read.
const CLOCK_DIFFERENCE_MAX: i64 = 60;

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Good,
    Warning,
    Bad,
}

/// What was found.
#[derive(Debug)]
struct Finding {
    what: &'static str,
    verdict: Verdict,
    words: String,
}

#[derive(Debug, Default)]
struct Report {
    findings: Vec<Finding>,
}

impl Report {
    fn add(&mut self, what: &'static str, verdict: Verdict, words: impl Into<String>) {
        self.findings.push(Finding { what, verdict, words: words.into() });
    }

    fn good(&mut self, what: &'static str, words: impl Into<String>) {
        self.add(what, Verdict::Good, words);
    }

    fn bad(&mut self, what: &'static str, words: impl Into<String>) {
        self.add(what, Verdict::Bad, words);
    }

    fn failed(&mut self, what: &'static str, error: &CommandError) {
        let cause = error.cause.as_ref().map(|cause| format!(": {cause}")).unwrap_or_default();
        self.bad(what, format!("{} [{}]{cause}", error.headline, error.code.text()));
    }
}

/// Runs the command.
pub(crate) fn run(context: &Context<'_>, arguments: &FolderArgument) -> Result<u8> {
    let mut report = Report::default();
    let system = rustix::system::uname();
    let words = format!(
        "syncline {} on {} {}",
        env!("CARGO_PKG_VERSION"),
        system.sysname().to_string_lossy(),
        system.release().to_string_lossy()
    );
    report.good("program", words);
    look_at_home(context, &mut report);
    match Folder::locate(&context.home, &arguments.folder) {
        Ok(folder) => look_at_folder(context, &folder, &mut report),
        Err(error) if error.code == Code::NotSynced => {
            report.add(
                "folder",
                Verdict::Good,
                format!("{}; only this device was looked at", error.headline),
            );
        }
        Err(error) => report.failed("folder", &error),
    }
    tell(context, &report);
    let is_bad = report.findings.iter().any(|finding| finding.verdict == Verdict::Bad);
    Ok(u8::from(is_bad))
}

fn tell(context: &Context<'_>, report: &Report) {
    let word = |verdict| match verdict {
        Verdict::Good => "good",
        Verdict::Warning => "warning",
        Verdict::Bad => "bad",
    };
    let findings: Vec<_> = report
        .findings
        .iter()
        .map(|finding| json!({"what": finding.what, "verdict": word(finding.verdict), "words": finding.words}))
        .collect();
    context.ui.json(&json!({"schema": "syncline.doctor/1", "findings": findings}));
    for finding in &report.findings {
        let mark = match finding.verdict {
            Verdict::Good => context.ui.symbol(Symbol::Done),
            Verdict::Warning => context.ui.symbol(Symbol::Attention),
            Verdict::Bad => context.ui.paint(Paint::Bad, "x"),
        };
        context.ui.answer(format!("{mark} {:10} {}", finding.what, finding.words));
    }
}

fn look_at_home(context: &Context<'_>, report: &mut Report) {
    match context.home.config() {
        Ok(_) => report.good("config", context.home.config_path().display().to_string()),
        Err(error) => report.failed("config", &error),
    }
    match Folder::all(&context.home) {
        Ok(folders) => {
            report
                .good("folders", counted(folders.len() as u64, "synced folder", "synced folders"));
        }
        Err(error) => report.failed("folders", &error),
    }
    match context.home.account() {
        Ok(Some(account)) => {
            let path = context.home.account_path();
            let mode = path.metadata().map_or(0o600, |data| data.permissions().mode() & 0o777);
            if mode & 0o077 != 0 {
                report.bad(
                    "secrets",
                    format!("others may read the token: chmod 600 {}", path.display()),
                );
            }
            look_at_server(context, &account, report);
        }
        Ok(None) => report.good("server", "not signed in"),
        Err(error) => report.failed("server", &error),
    }
}

fn look_at_server(context: &Context<'_>, account: &crate::home::Account, report: &mut Report) {
    let asked = || {
        let client = ServerClient::of_account(account)?;
        context.runtime()?.block_on(async { Ok((client.health().await?, client.whoami().await?)) })
    };
    let (date, who) = match asked() {
        Ok(answers) => answers,
        Err(error) => return report.failed("server", &error),
    };
    report.good(
        "server",
        format!(
            "{} is well; signed in as {} on device \"{}\"",
            account.server, who.account, who.device_name
        ),
    );
    if let Ok(theirs) = jiff::fmt::rfc2822::parse(&date) {
        let difference = context.clock.now().seconds - theirs.timestamp().as_second();
        let words = format!("differs from the server's by {difference} s");
        let is_wrong = difference.abs() > CLOCK_DIFFERENCE_MAX;
        let advice = if is_wrong { "; times in lists are wrong, nothing else" } else { "" };
        let verdict = if is_wrong { Verdict::Warning } else { Verdict::Good };
        report.add("clock", verdict, format!("{words}{advice}"));
    }
}

fn look_at_folder(context: &Context<'_>, folder: &Folder, report: &mut Report) {
    report.good(
        "folder",
        format!("{} is '{}' on {}", folder.root.display(), folder.genesis.name, folder.place),
    );
    match FolderLock::acquire(&folder.root) {
        Ok(_) => report.good("lock", "nobody works on the folder"),
        Err(error @ LockError::Held { .. }) => report.good("lock", error.to_string()),
        Err(LockError::File(error)) => report.failed("lock", &error.into()),
    }
    look_at_database(folder, report);
    look_at_space("disk", &folder.root, report);
    if let Some(home) = folder.database().parent() {
        look_at_space("home disk", home, report);
    }
    look_at_watching(folder, report);
    look_at_log(context, folder, report);
    if let Place::Stored(stored) = &folder.place {
        for store in &stored.pool.stores {
            let opened = stores::open_store(&context.home, stored, store);
            look_at_store(context, &store.name, &opened, report);
        }
    }
}

fn look_at_database(folder: &Folder, report: &mut Report) {
    let looked = || {
        let state = folder.state()?;
        let damage = state.damage()?;
        Ok::<_, sync::SyncError>((
            damage,
            state.synced_count()?,
            state.head()?.map_or(0, |head| head.seq),
            state.outbox()?.len(),
        ))
    };
    match looked() {
        Ok((damage, entries, head, outbox)) if damage.is_empty() => {
            let words =
                format!("whole, {} entries, v{head}, {outbox} waiting to be sent", count(entries));
            report.good("database", words);
        }
        Ok((damage, ..)) => report.bad(
            "database",
            format!("damaged ({}); the next sync makes it anew", damage.join("; ")),
        ),
        Err(error) if crate::error::is_damaged_database(&error) => {
            report.bad("database", format!("damaged ({error}); the next sync makes it anew"));
        }
        Err(error) => report.failed("database", &error.into()),
    }
}

fn look_at_space(what: &'static str, path: &Path, report: &mut Report) {
    let Ok(stat) = rustix::fs::statvfs(path) else { return };
    let free = stat.f_bavail.saturating_mul(stat.f_frsize);
    let verdict = if free < SPACE_MIN { Verdict::Warning } else { Verdict::Good };
    report.add(what, verdict, format!("{} free", size(free)));
}

fn look_at_watching(folder: &Folder, report: &mut Report) {
    let limit =
        system::read_text(Path::new("/proc/sys/fs/inotify/max_user_watches")).ok().flatten();
    let Some(limit) = limit.and_then(|text| text.trim().parse::<u64>().ok()) else { return };
    // Every entry counts as a directory: an upper bound that costs nothing.
    let entries = folder.state().and_then(|state| state.synced_count()).unwrap_or(0);
    if entries > limit {
        let words = format!(
            "the system watches at most {} directories; with more, changes are found late: sysctl fs.inotify.max_user_watches={}",
            count(limit),
            limit.saturating_mul(4)
        );
        report.add("watching", Verdict::Warning, words);
    } else {
        report.good("watching", format!("the system watches up to {} directories", count(limit)));
    }
}

fn look_at_log(context: &Context<'_>, folder: &Folder, report: &mut Report) {
    let asked = || {
        let runtime = context.runtime()?;
        let _guard = runtime.enter();
        let keys = sealed::kept_keys(folder)?;
        let reached = coordinator(context, folder, keys.as_ref())?;
        Ok::<_, CommandError>(runtime.block_on(reached.log.head())?)
    };
    let known = folder.state().and_then(|state| state.head()).ok().flatten();
    match asked() {
        Ok(head) => match known {
            Some(known)
                if known.seq > head.seq || (known.seq == head.seq && known.hash != head.hash) =>
            {
                let words = format!(
                    "it is at v{}, and this device has seen v{}: it was restored from an older copy; \
                     the next sync brings back what is missing",
                    head.seq, known.seq
                );
                report.bad("log", words);
            }
            Some(known) => {
                report.good("log", format!("at v{}, this device has v{}", head.seq, known.seq));
            }
            None => report.good("log", format!("at v{}, nothing was synced here yet", head.seq)),
        },
        Err(error) => report.failed("log", &error),
    }
}

fn look_at_store(
    context: &Context<'_>,
    name: &str,
    store: &Arc<dyn ObjectStore>,
    report: &mut Report,
) {
    match context.runtime().and_then(|runtime| runtime.block_on(stores::abilities(store))) {
        Ok(abilities) => {
            let verdict = if abilities.may_hold_data() { Verdict::Good } else { Verdict::Bad };
            report.add("store", verdict, format!("{name}: {}", abilities.words().join("; ")));
        }
        Err(error) => report.failed("store", &error),
    }
}
