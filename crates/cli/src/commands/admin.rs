//! `syncline admin`: copies of a server, whether it is whole, and from one database to another.

use serde_json::{Value, json};
use server::admin::{self, Copied, Report, Scratch, Shelf};
use server::data_folder::DataFolder;
use server::{Database, ServerError};
use storage::{Credentials, Opening};

use super::{openapi, web_app};
use crate::arguments::{AdminCommand, DataArgument, StoreArgument, TargetArgument};
use crate::context::Context;
use crate::error::Result;
use crate::text::{counted, size};
use crate::ui::Symbol;

/// Exit code of a server or backup in which something is damaged.
pub(super) const DAMAGED: u8 = 8;

/// Runs the command.
pub(crate) fn run(context: &Context<'_>, command: &AdminCommand) -> Result<u8> {
    match command {
        AdminCommand::ExportOpenapi => Ok(openapi::run(context)),
        AdminCommand::WebApp => web_app::run(context),
        AdminCommand::Backup { target, data, store } => backup(context, target, data, store),
        AdminCommand::Restore { source, at, data, store } => {
            restore(context, (source, at.as_deref()), data, store)
        }
        AdminCommand::Verify { backup, at, read_data, data, store } => match backup {
            Some(url) => {
                let credentials = store.store_credentials.clone();
                let source = TargetArgument { url: url.clone(), credentials };
                verify_backup(context, (&source, at.as_deref()), data, *read_data)
            }
            None => verify(context, data, store, *read_data),
        },
        AdminCommand::Migrate { from, to } => migrate(context, from, to),
    }
}

/// A server, as a command sees it.
struct Place {
    folder: DataFolder,
    database: Database,
    scratch: Scratch,
}

impl Place {
    /// Opens a server that is there.
    fn existing(context: &Context<'_>, data: &DataArgument) -> Result<Self> {
        let path = data.data.clone().unwrap_or_else(|| context.home.server_data());
        let database = super::serve::database(context, data)?;
        let folder = match database {
            Database::Embedded => DataFolder::open_existing(&path)?,
            _ => DataFolder::open(&path)?,
        };
        let scratch = Scratch::take(&folder)?;
        Ok(Self { folder, database, scratch })
    }

    /// Opens a place where a server may come to be.
    fn new(context: &Context<'_>, data: &DataArgument) -> Result<Self> {
        let path = data.data.clone().unwrap_or_else(|| context.home.server_data());
        let database = super::serve::database(context, data)?;
        let folder = DataFolder::open(&path)?;
        let scratch = Scratch::take(&folder)?;
        Ok(Self { folder, database, scratch })
    }

    fn store(&self, argument: &StoreArgument, opening: Opening) -> Result<Shelf> {
        let url = argument.store.clone().unwrap_or_else(|| self.folder.default_store());
        let credentials = credentials(argument.store_credentials.as_deref())?;
        Ok(Shelf::open(&url, &credentials, opening)?)
    }
}

fn credentials(file: Option<&std::path::Path>) -> Result<Credentials> {
    Ok(file.map_or(Ok(Credentials::none()), Credentials::read_file)?)
}

fn open(target: &TargetArgument, opening: Opening) -> Result<Shelf> {
    let credentials = credentials(target.credentials.as_deref())?;
    Ok(Shelf::open(&target.url, &credentials, opening)?)
}

fn backup(
    context: &Context<'_>,
    target: &TargetArgument,
    data: &DataArgument,
    store: &StoreArgument,
) -> Result<u8> {
    context.no_dry_run("admin backup")?;
    let place = Place::existing(context, data)?;
    let mut live = place.database.open(&place.folder)?;
    let opening = if live.has_objects().map_err(ServerError::from)? {
        Opening::Existing
    } else {
        Opening::CreateIfMissing
    };
    let source = place.store(store, opening)?;
    let target = open(target, Opening::CreateIfMissing)?;
    let made = admin::backup(&mut *live, (&source, &target), &place.scratch, &*context.clock)?;
    Ok(tell_copied(context, "backup", &made, "Backup made"))
}

fn restore(
    context: &Context<'_>,
    (source, at): (&TargetArgument, Option<&str>),
    data: &DataArgument,
    store: &StoreArgument,
) -> Result<u8> {
    let source = open(source, Opening::Existing)?;
    if context.flags.dry_run {
        let backups = admin::backups(&source)?;
        context.ui.json(&json!({"schema": "syncline.admin-backups/1", "backups": backups}));
        for name in &backups {
            context.ui.answer(name);
        }
        return Ok(0);
    }
    let place = Place::new(context, data)?;
    let target = place.store(store, Opening::CreateIfMissing)?;
    let there = (&place.folder, &place.database);
    let made = admin::restore((&source, at), there, &target, &place.scratch)?;
    let code = tell_copied(context, "restore", &made, "Server restored from backup");
    context.ui.note(
        "devices that have seen more than the backup send it again at their next sync; those that signed in since must sign in again",
    );
    Ok(code)
}

fn verify(
    context: &Context<'_>,
    data: &DataArgument,
    store: &StoreArgument,
    read_data: bool,
) -> Result<u8> {
    let place = Place::existing(context, data)?;
    let mut live = place.database.open(&place.folder)?;
    let shelf = place.store(store, Opening::Existing)?;
    let report = admin::verify_live(&mut *live, &shelf, &place.scratch, read_data)?;
    Ok(tell(context, "syncline.admin-verify/1", json!({}), &report, "Server looked at".to_owned()))
}

fn verify_backup(
    context: &Context<'_>,
    (source, at): (&TargetArgument, Option<&str>),
    data: &DataArgument,
    read_data: bool,
) -> Result<u8> {
    let place = Place::new(context, data)?;
    let source = open(source, Opening::Existing)?;
    let (name, report) = admin::verify_backup(&source, at, &place.scratch, read_data)?;
    let words = format!("Backup {name} looked at");
    Ok(tell(context, "syncline.admin-verify/1", json!({"backup": name}), &report, words))
}

fn migrate(context: &Context<'_>, from: &str, to: &str) -> Result<u8> {
    context.no_dry_run("admin migrate")?;
    let place = |url: &str| -> Result<(DataFolder, Database)> {
        let path = url.strip_prefix("sqlite:").map(std::path::PathBuf::from);
        match path {
            Some(path) => Ok((DataFolder::open(&path)?, Database::Embedded)),
            None => {
                let argument = DataArgument { data: None, database: Some(url.to_owned()) };
                let database = super::serve::database(context, &argument)?;
                Ok((DataFolder::open(&context.home.server_data())?, database))
            }
        }
    };
    if let Some(path) = from.strip_prefix("sqlite:") {
        DataFolder::open_existing(std::path::Path::new(path))?;
    }
    let ((from_folder, from), (to_folder, to)) = (place(from)?, place(to)?);
    let tables = admin::migrate((&from_folder, &from), (&to_folder, &to))?;
    let rows = tables.iter().map(|table| table.rows).sum::<u64>();
    let lines: Vec<Value> =
        tables.iter().map(|table| json!({"table": table.table, "rows": table.rows})).collect();
    context
        .ui
        .json(&json!({"schema": "syncline.admin-migrate/1", "type": "summary", "tables": lines}));
    let words = format!("{} moved, and both are equal", counted(rows, "row", "rows"));
    context.ui.say(Symbol::Done, words);
    context.ui.note("packs stay where they are: give the server its store with --store");
    Ok(0)
}

fn tell_copied(context: &Context<'_>, name: &str, made: &Copied, words: &str) -> u8 {
    let fields = json!({
        "type": "summary",
        "backup": made.backup,
        "copied_objects": made.objects,
        "copied_bytes": made.object_bytes,
        "metadata_bytes": made.metadata_bytes,
    });
    let words = format!(
        "{words}: {} ({}, {} copied now)",
        made.backup,
        counted(made.report.objects, "object", "objects"),
        size(made.object_bytes),
    );
    tell(context, &format!("syncline.admin-{name}/1"), fields, &made.report, words)
}

/// Says what was found; returns the exit code.
fn tell(context: &Context<'_>, schema: &str, fields: Value, report: &Report, words: String) -> u8 {
    let damage: Vec<Value> = report
        .damage
        .iter()
        .map(|one| {
            json!({"workspace": one.workspace.to_string(), "what": one.what, "reason": one.reason})
        })
        .collect();
    let mut object = json!({
        "schema": schema,
        "workspaces": report.workspaces,
        "entries": report.entries,
        "objects": report.objects,
        "object_bytes": report.object_bytes,
        "read_bytes": report.read_bytes,
        "unknown_objects": report.strangers,
        "unknown_bytes": report.stranger_bytes,
        "damage": damage,
        "damage_not_listed": report.damage_not_listed,
    });
    if let (Some(object), Value::Object(fields)) = (object.as_object_mut(), fields) {
        object.extend(fields);
    }
    context.ui.json(&object);
    for one in &report.damage {
        context.ui.answer(format!("{}: {}: {}", one.workspace, one.what, one.reason));
    }
    let found = format!(
        "{}, {}, {}",
        counted(report.workspaces, "workspace", "workspaces"),
        counted(report.entries, "entry", "entries"),
        counted(report.objects, "object", "objects"),
    );
    if report.is_well() {
        context.ui.say(Symbol::Done, words);
        context.ui.say(Symbol::Done, format!("All is whole: {found}"));
        return 0;
    }
    let count = report.damage.len() as u64 + report.damage_not_listed;
    context.ui.say(Symbol::Attention, words);
    context.ui.say(
        Symbol::Attention,
        format!("{} found in {found}", counted(count, "damage", "damages")),
    );
    DAMAGED
}
