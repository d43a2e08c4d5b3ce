//! `syncline daemon`: `watch` in the background, as a process of its own for each folder.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use sync::file_system::native::{FolderLock, LockError};

use crate::arguments::{DaemonCommand, FolderArgument};
use crate::claim::HomeClaim;
use crate::commands::watch::WatchState;
use crate::context::Context;
use crate::error::{Code, CommandError, Result};
use crate::folder::{Folder, path_text};
use crate::home::file_error;
use crate::system::{self, FileLock};
use crate::text::{of_rfc3339, quoted};
use crate::ui::Symbol;

/// How long a start or stop may take.
const PATIENCE: Duration = Duration::from_secs(15);

/// How often is looked.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// From this length on a log is put aside at the next start.
const LOG_LENGTH_MAX: u64 = 4 << 20;

/// Runs the command.
pub(crate) fn run(context: &Context<'_>, command: &DaemonCommand) -> Result<u8> {
    let (DaemonCommand::Start(arguments)
    | DaemonCommand::Stop(arguments)
    | DaemonCommand::Status(arguments)
    | DaemonCommand::Install(arguments)) = command;
    let FolderArgument { folder } = arguments;
    let folder = Folder::locate(&context.home, folder)?;
    match command {
        DaemonCommand::Start(_) => start(context, &folder),
        DaemonCommand::Stop(_) => stop(context, &folder),
        DaemonCommand::Status(_) => status(context, &folder),
        DaemonCommand::Install(_) => install(context, &folder),
    }
}

/// Returns what the watch of a folder says of itself, if one runs.
///
/// # Errors
/// [`Code::File`].
pub(crate) fn running(folder: &Folder) -> Result<Option<WatchState>> {
    let path = folder.memory_file("lock");
    if FileLock::try_acquire(&path).map_err(|error| file_error(&path, &error))?.is_some() {
        return Ok(None);
    }
    let text = system::read_text(&folder.memory_file("watch.json")).ok().flatten();
    let state = text.and_then(|text| serde_json::from_str::<WatchState>(&text).ok());
    // The number counts only where the lock has it, too: numbers are used again.
    let holder = match FolderLock::acquire(&folder.root) {
        Err(LockError::Held { holder }) => holder,
        _ => None,
    };
    Ok(state.filter(|state| Some(state.pid) == holder))
}

fn start(context: &Context<'_>, folder: &Folder) -> Result<u8> {
    context.no_dry_run("daemon start")?;
    if let Some(state) = running(folder)? {
        context.ui.say(Symbol::Done, format!("it runs already, as process {}", state.pid));
        context.ui.json(&json!({"schema": "syncline.daemon/1", "type": "summary", "is_running": true, "pid": state.pid}));
        return Ok(0);
    }
    // Whoever has the home alone is named here and now, not in the log of a process that ends at once.
    drop(HomeClaim::beside_watches(&context.home)?);
    let log = folder.memory_file("watch.log");
    if log.metadata().is_ok_and(|data| data.len() > LOG_LENGTH_MAX) {
        system::move_file(&log, &folder.memory_file("watch.log.old"))
            .map_err(|error| file_error(&log, &error))?;
    }
    let open = || system::open_to_append(&log).map_err(|error| file_error(&log, &error));
    let mut command = Command::new(program()?);
    command.args(["watch", "--detached", "--no-input", "--color", "never"]).arg(&folder.root);
    command.stdin(Stdio::null()).stdout(open()?).stderr(open()?).current_dir("/");
    if let Some(home) = context.home.as_variable() {
        command.env("SYNCLINE_HOME", home);
    }
    let spawned = command.spawn();
    let mut child = spawned.map_err(|error| {
        CommandError::new(Code::Defect, "the process cannot be started").cause(error)
    })?;
    for _ in 0..PATIENCE.as_millis() / LOOK_EVERY.as_millis() {
        if running(folder)?.is_some_and(|state| state.pid == child.id()) {
            context.ui.json(&json!({"schema": "syncline.daemon/1", "type": "summary", "is_running": true, "pid": child.id()}));
            context.ui.say(
                Symbol::Done,
                format!("{} is kept in sync, by process {}", folder.root.display(), child.id()),
            );
            return Ok(0);
        }
        if let Ok(Some(status)) = child.try_wait() {
            let said = system::read_text(&log).ok().flatten().unwrap_or_default();
            let said: Vec<_> = said.lines().rev().take(4).collect();
            let said = said.into_iter().rev().collect::<Vec<_>>().join("; ");
            return Err(CommandError::new(
                Code::Defect,
                format!("the process ended at once, with {status}"),
            )
            .cause(said)
            .help(
                format!("syncline watch {}", quoted(&path_text(&folder.root)?)),
                "shows what is wrong",
            ));
        }
        std::thread::sleep(LOOK_EVERY);
    }
    Err(CommandError::new(Code::Defect, "the process does not say that it watches")
        .cause(format!("its log is {}", log.display())))
}

fn stop(context: &Context<'_>, folder: &Folder) -> Result<u8> {
    context.no_dry_run("daemon stop")?;
    let done = |was_running: bool, words: &str| {
        context.ui.json(&json!({"schema": "syncline.daemon/1", "type": "summary", "is_running": false, "was_running": was_running}));
        context.ui.say(Symbol::Done, words);
        Ok(0)
    };
    let Some(state) = running(folder)? else { return done(false, "it does not run") };
    let pid = i32::try_from(state.pid).ok().and_then(Pid::from_raw);
    if let Some(pid) = pid {
        // One that has just ended is what was wanted.
        let _ = kill_process(pid, Signal::TERM);
    }
    for _ in 0..PATIENCE.as_millis() / LOOK_EVERY.as_millis() {
        if running(folder)?.is_none() {
            return done(true, "stopped");
        }
        std::thread::sleep(LOOK_EVERY);
    }
    Err(CommandError::new(Code::Locked, format!("process {} does not end", state.pid))
        .help(format!("kill -9 {}", state.pid), "ends it at once; nothing is lost"))
}

fn status(context: &Context<'_>, folder: &Folder) -> Result<u8> {
    let state = running(folder)?;
    let log = folder.memory_file("watch.log");
    context.ui.json(&json!({
        "schema": "syncline.daemon/1",
        "type": "summary",
        "is_running": state.is_some(),
        "watch": state,
        "log": path_text(&log)?,
    }));
    let Some(state) = state else {
        context.ui.answer(format!(
            "{} is not kept in sync in the background: syncline daemon start",
            folder.root.display()
        ));
        return Ok(1);
    };
    context.ui.answer(format!(
        "{} is kept in sync by process {}, since {}",
        folder.root.display(),
        state.pid,
        of_rfc3339(&state.started, &context.zone)
    ));
    let last = state.last_sync.as_deref().map(|last| of_rfc3339(last, &context.zone));
    let last = last.as_deref().unwrap_or("never yet");
    context.ui.answer(format!("  last exchange  {last}, v{}", state.version));
    if let Some(error) = &state.last_error {
        context.ui.answer(format!("  {} waiting: {error}", context.ui.symbol(Symbol::Attention)));
    }
    if state.problems > 0 {
        context.ui.answer(format!(
            "  {} not synced: {} (syncline status)",
            context.ui.symbol(Symbol::Attention),
            state.problems
        ));
    }
    if state.kept_back > 0 {
        context.ui.answer(format!(
            "  {} kept back: {}, because this account may only read the workspace",
            context.ui.symbol(Symbol::Attention),
            state.kept_back
        ));
    }
    context.ui.answer(format!("  log            {}", log.display()));
    Ok(0)
}

fn install(context: &Context<'_>, folder: &Folder) -> Result<u8> {
    let name = format!("syncline-{}.service", &folder.identity()[..8]);
    let unit = unit(context, folder)?;
    let place = context
        .variables
        .path("XDG_CONFIG_HOME")
        .or_else(|| Some(context.variables.path("HOME")?.join(".config")))
        .ok_or_else(|| CommandError::usage("there is no home folder for the unit"))?
        .join("systemd/user");
    let path = place.join(&name);
    if context.flags.dry_run {
        context.ui.answer(format!("would write {}:\n{unit}", path.display()));
        return Ok(0);
    }
    let written =
        std::fs::create_dir_all(&place).and_then(|()| system::write_public(&path, unit.as_bytes()));
    written.map_err(|error| file_error(&path, &error))?;
    let next = format!("systemctl --user daemon-reload && systemctl --user enable --now {name}");
    context.ui.json(&json!({"schema": "syncline.daemon/1", "type": "summary", "unit": path_text(&path)?, "next": next}));
    context.ui.say(Symbol::Done, format!("{} written", path.display()));
    context.ui.answer(format!("  Next: {next}"));
    Ok(0)
}

fn unit(context: &Context<'_>, folder: &Folder) -> Result<String> {
    let word = |path: &Path| Ok::<_, CommandError>(unit_word(&path_text(path)?));
    let home = match context.home.as_variable() {
        Some(home) => {
            format!("Environment={}\n", unit_word(&format!("SYNCLINE_HOME={}", path_text(home)?)))
        }
        None => String::new(),
    };
    Ok(format!(
        "[Unit]\nDescription=Syncline keeps {} in sync\nAfter=network-online.target\n\n[Service]\n{home}\
         ExecStart={} watch --no-input {}\nRestart=on-failure\nRestartSec=10\nSuccessExitStatus=130 143\n\n\
         [Install]\nWantedBy=default.target\n",
        folder.genesis.name.replace('%', "%%"),
        word(&program()?)?,
        word(&folder.root)?
    ))
}

/// Returns a word as units take it.
fn unit_word(word: &str) -> String {
    let escaped =
        word.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%").replace('$', "$$");
    format!("\"{escaped}\"")
}

/// Returns this very program.
pub(crate) fn program() -> Result<PathBuf> {
    std::env::current_exe().map_err(|error| {
        CommandError::new(Code::Defect, "the program does not find itself").cause(error)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_unit_mean_themselves() {
        assert_eq!(unit_word("/a b/50%\"$x\\"), r#""/a b/50%%\"$$x\\""#);
    }
}
