//! `syncline man`: the manual, made from the very words that the program understands.

use std::io::Write;

use clap::CommandFactory;
use serde_json::json;

use crate::arguments::{Arguments, ManArguments};
use crate::context::Context;
use crate::error::{CommandError, Result};
use crate::home::file_error;
use crate::system;
use crate::text::counted;
use crate::ui::Symbol;

/// Runs the command.
pub(crate) fn run(context: &Context<'_>, arguments: &ManArguments) -> Result<u8> {
    let mut program = Arguments::command();
    program.build();
    if let Some(folder) = &arguments.out {
        std::fs::create_dir_all(folder).map_err(|error| file_error(folder, &error))?;
        let pages = pages(&program, "syncline")?;
        for (name, page) in &pages {
            let path = folder.join(format!("{name}.1"));
            system::write_public(&path, page).map_err(|error| file_error(&path, &error))?;
        }
        let count = counted(pages.len() as u64, "page", "pages");
        context
            .ui
            .json(&json!({"schema": "syncline.man/1", "type": "summary", "pages": pages.len()}));
        context.ui.say(Symbol::Done, format!("{count} written to {}", folder.display()));
        return Ok(0);
    }
    let command = match &arguments.page {
        None => &program,
        Some(name) => program.find_subcommand(name).ok_or_else(|| {
            CommandError::usage(format!("there is no page '{name}'"))
                .help("syncline man", "lists all commands")
        })?,
    };
    // A reader that has gone is no error.
    let _ = std::io::stdout().lock().write_all(&page(command)?);
    Ok(0)
}

fn page(command: &clap::Command) -> Result<Vec<u8>> {
    let mut text = Vec::new();
    let rendered = clap_mangen::Man::new(command.clone()).render(&mut text);
    rendered.map_err(|error| CommandError::usage("the page cannot be written").cause(error))?;
    Ok(text)
}

fn pages(command: &clap::Command, name: &str) -> Result<Vec<(String, Vec<u8>)>> {
    let mut found = vec![(name.to_owned(), page(command)?)];
    for below in
        command.get_subcommands().filter(|below| below.get_name() != "help" && !below.is_hide_set())
    {
        found.extend(pages(below, &format!("{name}-{}", below.get_name()))?);
    }
    Ok(found)
}
