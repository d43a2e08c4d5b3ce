//! The program `syncline`: one file per verb.
//!
//! It knows the user: words, colours, exit codes, where a device keeps its state. It does not know how folders are kept
//! equal (that is `sync`), nor what a server does (that is `server`): it puts the rooms together and tells what happened.
//!
//! Reading order: `arguments` (the words), `commands` (the verbs), `connect` (from a folder to an engine), `home` and
//! `folder` (what is remembered), `claim` (who may change it), `gateway` (a folder for other programs), `stores` and `server_client` (where workspaces live), `provider` and `browser` (who somebody is elsewhere),
//! `error`, `report`, `ui`, `progress`, `interrupt`, `text`, `context`, `system`, `allocator`.

use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;

use crate::arguments::Arguments;
use crate::context::Context;
use crate::error::{CommandError, Result};
use crate::system::{SystemClock, SystemRandom, Variables};
use crate::ui::Ui;

mod allocator;
mod arguments;
mod attendance;
mod away;
mod browser;
mod claim;
mod commands;
mod connect;
mod context;
mod envelopes;
mod error;
mod folder;
mod gateway;
mod handover;
mod hints;
mod home;
mod identity;
mod interrupt;
mod membership;
mod mounted;
mod ownership;
mod pairing;
mod progress;
mod provider;
mod report;
mod sealed;
mod server_client;
mod store_memory;
mod stores;
mod system;
mod text;
mod ui;
mod workspaces;

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return refuse(&error),
    };
    let variables = Variables::read();
    let ui = Ui::new(&arguments.global, &variables);
    match start(&arguments, &ui, variables) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            ui.error(&error);
            ExitCode::from(error.code.exit())
        }
    }
}

fn start(arguments: &Arguments, ui: &Ui, variables: Variables) -> Result<u8> {
    let home = prepare(arguments, &variables)?;
    let context = Context {
        flags: arguments.global.clone(),
        ui,
        home,
        variables,
        clock: Arc::new(SystemClock::new()),
        zone: system::time_zone(),
        random: Arc::new(SystemRandom),
    };
    commands::run(&context, &arguments.command)
}

fn prepare(arguments: &Arguments, variables: &Variables) -> Result<home::Home> {
    // A relative home is one where the program was started, whatever -C says.
    let home = home::Home::find(variables)?;
    if let Some(directory) = &arguments.global.directory {
        std::env::set_current_dir(directory)
            .map_err(|error| home::file_error(directory, &error))?;
    }
    start_log(variables, arguments.global.verbose);
    system::report_panics(home.reports());
    Ok(home)
}

/// What is never written into a log, whatever is asked for: where libraries say with which secrets they sign requests to stores.
const TALKATIVE: [&str; 2] = ["reqsign_core", "reqsign_core::api"];

/// Turns on what the rooms say of themselves, where somebody wants to read it.
fn start_log(variables: &Variables, verbosity: u8) {
    let filter = match variables.get("SYNCLINE_LOG") {
        Some(filter) => filter.to_string_lossy().into_owned(),
        None if verbosity > 1 => "info".to_owned(),
        None => return,
    };
    let filter = TALKATIVE.iter().fold(filter, |filter, name| format!("{filter},{name}=off"));
    let log = tracing_subscriber::fmt()
        .with_env_filter(tracing_subscriber::EnvFilter::new(filter))
        .with_writer(std::io::stderr);
    match variables.get("SYNCLINE_LOG_FORMAT").is_some_and(|format| format == "json") {
        true => log.json().init(),
        false => log.init(),
    }
}

/// Answers words that make no sense, and those that ask for help.
fn refuse(error: &clap::Error) -> ExitCode {
    let wants_json = std::env::args_os().any(|word| word == "--json");
    if error.use_stderr() && wants_json {
        let text = error.to_string();
        let headline = text.lines().next().unwrap_or_default().trim_start_matches("error: ");
        let error =
            CommandError::usage(headline).help("syncline --help", "lists commands and flags");
        ui::print(&error.json().to_string());
        return ExitCode::from(2);
    }
    // Where not even stderr can be written there is nothing left to do.
    let _ = error.print();
    ExitCode::from(if error.use_stderr() { 2 } else { 0 })
}
