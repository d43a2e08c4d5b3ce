//! `syncline serve`: runs a server until it is told to stop.

use serde_json::json;
use server::{ServeOptions, serve};

use crate::arguments::ServeArguments;
use crate::context::Context;
use crate::error::{Code, CommandError, Result};
use crate::interrupt::Interrupts;
use crate::ui;

/// Runs the command.
pub(crate) fn run(context: &Context<'_>, arguments: &ServeArguments) -> Result<u8> {
    context.no_dry_run("serve")?;
    for (flag, value) in [("--database", &arguments.database), ("--broker", &arguments.broker)] {
        if value.is_some() {
            return Err(CommandError::new(
                Code::NotInThisRelease,
                format!("another {} than the embedded one is not in this release", &flag[2..]),
            )
            .help("syncline serve --data DIR", "keeps everything in one folder"));
        }
    }
    let data = arguments.data.data.clone().unwrap_or_else(|| context.home.server_data());
    let mut options =
        ServeOptions::new(data.clone(), context.clock.clone(), context.random.clone());
    options.listen = arguments.listen;
    options.store.clone_from(&arguments.store);
    let (is_json, is_open) = (context.ui.is_json(), !arguments.listen.ip().is_loopback());
    if is_open {
        context.ui.note("no TLS: use it on a network that you trust, or through a tunnel");
    }
    let threads = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = threads.map_err(|error| {
        CommandError::new(Code::Defect, "no threads can be started").cause(error)
    })?;
    let interrupts = Interrupts::listen(&runtime);
    let ready = move |address| {
        if is_json {
            let line = json!({"schema": "syncline.serve/1", "type": "listening", "url": format!("http://{address}")});
            ui::print(&line.to_string());
        } else {
            ui::print(&format!("listening on http://{address}"));
        }
    };
    let stop = async move {
        interrupts.wait().await;
    };
    runtime.block_on(serve(options, ready, stop))?;
    Ok(0)
}
