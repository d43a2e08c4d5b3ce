//! `syncline completion`: what a shell needs to complete our words.

use std::io::Write;

use clap::CommandFactory;

use crate::arguments::{Arguments, CompletionArguments};
use crate::error::Result;

/// Runs the command.
pub(crate) fn run(arguments: &CompletionArguments) -> Result<u8> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Arguments::command(), "syncline", &mut script);
    // A reader that has gone is no error.
    let _ = std::io::stdout().lock().write_all(&script);
    Ok(0)
}
