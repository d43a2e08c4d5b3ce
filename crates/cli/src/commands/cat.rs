//! `syncline cat`: prints a version of a file, every byte checked against its hash.

use std::io::{self, Write};

use sync::SyncError;

use crate::arguments::CatArguments;
use crate::connect::{SessionOptions, with_engine};
use crate::context::Context;
use crate::error::{CommandError, Result};
use crate::folder::Folder;
use crate::text::parse_at;

/// Runs the command.
pub(crate) fn run(context: &Context<'_>, arguments: &CatArguments) -> Result<u8> {
    if context.ui.is_json() {
        return Err(CommandError::usage("'cat' prints bytes, not JSON")
            .help("syncline log PATH --json", "describes the versions"));
    }
    let (folder, path) = Folder::locate_path(&context.home, &arguments.path)?;
    let at = arguments.at.as_deref().map(|at| parse_at(at, &context.zone)).transpose()?;
    let mut out = Stdout::default();
    let read = with_engine(context, &folder, SessionOptions::LOOK, None, async |engine| {
        match engine.read_version(&path, at, &mut out).await {
            // Somebody like `head` has read enough.
            Err(SyncError::File(_)) if out.is_closed => Ok(()),
            other => other.map(drop),
        }
    });
    read?;
    Ok(0)
}

/// Stdout, which remembers whether its reader has gone.
#[derive(Default)]
struct Stdout {
    is_closed: bool,
}

impl Write for Stdout {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let written = io::stdout().lock().write(buffer);
        self.is_closed |=
            matches!(&written, Err(error) if error.kind() == io::ErrorKind::BrokenPipe);
        written
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stdout().lock().flush()
    }
}
