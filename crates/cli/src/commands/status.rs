//! `syncline status`: what is new, waiting or in conflict. It looks at this device only.

use model::tree::path_of;
use serde_json::{Value, json};
use sync::engine::scrub_status;
use sync::file_system::native::NativeFileSystem;
use sync::ignore_rules::IgnoreRules;
use sync::overlay::Overlay;
use sync::scan::{LocalChanges, Scope, read_rules, scan};
use sync::state::State;

use crate::arguments::FolderArgument;
use crate::context::Context;
use crate::error::Result;
use crate::folder::{Folder, path_text as os_path_text};
use crate::mounted;
use crate::report::{EXIT_CONFLICTS, problem_json, problem_line, scrub_json, scrub_line};
use crate::text::{counted, path_text};
use crate::ui::{Paint, Symbol};

/// How many lines of one kind are shown without `-v`.
const LINES_MAX: usize = 20;

/// What differs, in words.
#[derive(Debug, Default)]
struct Differences {
    new: Vec<String>,
    changed: Vec<String>,
    deleted: Vec<String>,
}

/// Runs the command.
pub(crate) fn run(context: &Context<'_>, arguments: &FolderArgument) -> Result<u8> {
    let folder = Folder::locate(&context.home, &arguments.folder)?;
    let (mut status, mut code) = look(context, &folder)?;
    let mut inner = Vec::new();
    for mounted in mounted::of(&folder)? {
        let path = path_text(&mounted.path);
        let id = mounted.mount.workspace.to_string();
        let found = match mounted.folder(context, &folder)? {
            Some(found) => {
                context.ui.answer(format!("{path} is a workspace of its own:"));
                let (status, of_inner) = look(context, &found)?;
                code = if code == 0 { of_inner } else { code };
                status
            }
            None => {
                let line = "is a workspace of its own, which the next sync connects";
                context.ui.answer(format!("{path} {line}"));
                json!(null)
            }
        };
        inner.push(json!({"path": path, "workspace_id": id, "status": found}));
    }
    status["shared_folders"] = json!(inner);
    context.ui.json(&status);
    Ok(code)
}

/// Looks at one folder, and says what it finds. Returns it for programs, too, and the exit code.
fn look(context: &Context<'_>, folder: &Folder) -> Result<(Value, u8)> {
    let state = folder.state()?;
    let file_system = NativeFileSystem::open(&folder.root)?;
    let text = read_rules(&file_system, &model::RelativePath::ROOT)?;
    let (mut rules, _) = IgnoreRules::parse(&text.unwrap_or_default());
    let (random, known) = (&*context.random, Overlay::default());
    let changes = scan(&file_system, &state, &mut rules, random, &Scope::Everything, &known)?;
    let differences = differences(&state, &changes)?;
    let (outbox, unsynced) = (state.outbox()?.len() as u64, state.unsynced()?.len() as u64);
    let conflicts = state.remote_conflicts()?;
    let head = state.head()?.map_or(0, |head| head.seq);
    let scrub = scrub_status(&state)?;
    let ui = context.ui;
    let status = json!({
        "schema": "syncline.status/1",
        "workspace": folder.genesis.name,
        "workspace_id": folder.genesis.workspace().to_string(),
        "folder": os_path_text(&folder.root)?,
        "place": folder.place.to_string(),
        "version": head,
        "new": differences.new,
        "changed": differences.changed,
        "deleted": differences.deleted,
        "waiting_to_be_sent": outbox,
        "waiting_to_be_applied": unsynced,
        "conflicts": conflicts.len(),
        "problems": changes.problems.iter().map(problem_json).collect::<Vec<_>>(),
        "scrub": scrub_json(scrub.as_ref()),
    });
    ui.answer(format!(
        "{}  v{head}, {}",
        ui.paint(Paint::Word, &folder.genesis.name),
        folder.place
    ));
    let lists = [
        ("new", &differences.new),
        ("changed", &differences.changed),
        ("deleted", &differences.deleted),
    ];
    for (word, paths) in lists {
        show(context, word, paths);
    }
    if outbox > 0 {
        ui.answer(format!("{} to be sent", counted(outbox, "commit waits", "commits wait")));
    }
    if unsynced > 0 {
        ui.answer(format!("{} to be applied", counted(unsynced, "change waits", "changes wait")));
    }
    for problem in changes.problems.iter().take(LINES_MAX) {
        ui.note(problem_line(problem));
    }
    let waiting = differences.new.len() + differences.changed.len() + differences.deleted.len();
    if waiting as u64 + outbox + unsynced == 0 {
        ui.answer("nothing to send, nothing to apply");
    }
    if let Some(scrub) = scrub.filter(|scrub| scrub.position.lost > 0) {
        ui.note(scrub_line(context, &scrub));
    }
    if conflicts.is_empty() {
        return Ok((status, 0));
    }
    let line = counted(conflicts.len() as u64, "conflict waits", "conflicts wait");
    ui.answer(format!(
        "{} {line} for a decision: syncline conflicts",
        ui.symbol(Symbol::Attention)
    ));
    Ok((status, EXIT_CONFLICTS))
}

fn show(context: &Context<'_>, word: &str, paths: &[String]) {
    let shown = if context.ui.verbosity() > 0 { usize::MAX } else { LINES_MAX };
    for path in paths.iter().take(shown) {
        let path: String =
            path.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
        context.ui.answer(format!("  {word:8} {path}"));
    }
    if paths.len() > shown {
        context.ui.answer(format!("  {word:8} and {} more", paths.len() - shown));
    }
}

fn differences(state: &State, changes: &LocalChanges) -> Result<Differences> {
    let mut found = Differences::default();
    for (node, local) in &changes.present {
        let is_known = state.synced(node)?.is_some();
        let list = if is_known { &mut found.changed } else { &mut found.new };
        list.push(path_text(&local.path));
    }
    for node in &changes.absent {
        let path = path_of(state, node).ok().flatten();
        found
            .deleted
            .push(path.map_or_else(|| format!("(node {})", node.short()), |path| path_text(&path)));
    }
    for list in [&mut found.new, &mut found.changed, &mut found.deleted] {
        list.sort();
    }
    Ok(found)
}
