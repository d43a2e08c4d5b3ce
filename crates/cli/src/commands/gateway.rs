//! `syncline gateway webdav`: shows a synced folder to programs that speak WebDAV, and keeps it in sync meanwhile.
//!
//! Where another process of the device keeps it in sync already, this one shows it only, and takes over when that ends.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::json;
use server::listener::TlsFiles;
use server::{LoneDoor, serve_tree};
use tokio::sync::oneshot;

use crate::arguments::{GatewayArguments, GatewayCommand};
use crate::commands::watch;
use crate::connect::Driver;
use crate::context::Context;
use crate::error::{Code, CommandError, Result};
use crate::folder::Folder;
use crate::gateway::password::Password;
use crate::gateway::{FolderTree, GatewayOptions};
use crate::text::quoted;
use crate::{system, ui};

/// The name that programs give.
const USER: &str = "syncline";

/// How often it is looked whether the folder is free to be kept in sync.
const TAKE_OVER_EVERY: Duration = Duration::from_secs(2);

/// Runs the command.
pub(crate) fn run(context: &Context<'_>, command: &GatewayCommand) -> Result<u8> {
    context.no_dry_run("gateway webdav")?;
    let GatewayCommand::Webdav(arguments) = command;
    check_exposure(arguments)?;
    let folder = Folder::locate(&context.home, &arguments.folder.folder)?;
    let password = match &arguments.password_file {
        Some(file) => Password::chosen(file)?,
        None => Password::of_folder(&folder, &*context.random, arguments.new_password)?,
    };
    let tree = FolderTree::open(GatewayOptions {
        root: folder.root.clone(),
        workspace: folder.genesis.workspace(),
        is_read_only: arguments.read_only,
        // Without it everything that is displaced is kept.
        state: folder.state().ok(),
        clock: context.clock.clone(),
        random: context.random.clone(),
    })?;
    let door = door(context, arguments, &folder, &password);
    let scheme = if door.tls.is_some() { "https" } else { "http" };

    let driver = Driver::start(context)?;
    let interrupts = driver.interrupts().clone();
    let stop = async move {
        interrupts.wait().await;
    };
    let (opened, is_open) = oneshot::channel();
    let ready = move |address| {
        let _ = opened.send(address);
    };
    let mut serving = driver.within(|| tokio::spawn(serve_tree(tree, door, ready, stop)));
    let address = driver.run(async {
        tokio::select! {
            Ok(address) = is_open => Ok(address),
            ended = &mut serving => Err(match ended {
                Ok(Err(error)) => error.into(),
                _ => CommandError::new(Code::Defect, "the gateway ended before it was open"),
            }),
        }
    })?;
    say_ready(context, arguments, (scheme, address), &password);
    keep_in_sync(context, &driver, &folder)?;
    // It ends by the same signal, in bounded time.
    let _ = driver.run(serving);
    Ok(driver.interrupts().received().map_or(0, Code::exit))
}

/// Refuses to let strangers listen unless somebody has said so.
fn check_exposure(arguments: &GatewayArguments) -> Result<()> {
    let is_safe = arguments.listen.ip().is_loopback() || arguments.tls_cert.is_some();
    if is_safe || arguments.no_tls {
        return Ok(());
    }
    let headline = format!("{} can be reached from other computers", arguments.listen);
    Err(CommandError::usage(headline)
        .cause("without TLS whoever is on the way reads the password and all files")
        .state("nothing was opened")
        .help("--tls-cert FILE --tls-key FILE", "speaks TLS")
        .help("--no-tls", "does without, on a network that you trust"))
}

fn door(
    context: &Context<'_>,
    arguments: &GatewayArguments,
    folder: &Folder,
    password: &Password,
) -> LoneDoor {
    let tls = arguments.tls_cert.clone().zip(arguments.tls_key.clone());
    LoneDoor {
        listen: arguments.listen,
        title: folder.genesis.name.clone(),
        hosts: arguments.hosts.clone(),
        user: USER.to_owned(),
        password: password.text.clone(),
        tls: tls.map(|(certificate, key)| TlsFiles { certificate, key }),
        clock: context.clock.clone(),
    }
}

/// Says that requests are answered, and what opens the door.
fn say_ready(
    context: &Context<'_>,
    arguments: &GatewayArguments,
    (scheme, address): (&str, SocketAddr),
    password: &Password,
) {
    let url = format!("{scheme}://{address}");
    let file = password.file.display();
    if context.ui.is_json() {
        // The last line of a job is for logs, too: the password is in the file.
        let line = json!({
            "schema": "syncline.gateway/1",
            "type": "listening",
            "url": url,
            "user": USER,
            "password_file": file.to_string(),
            "is_read_only": arguments.read_only,
        });
        ui::print(&line.to_string());
        return;
    }
    ui::print(&format!("listening on {url}"));
    // What is no terminal may be a log, which others read.
    if password.is_new && system::stdout_is_terminal() {
        ui::print(&format!("user {USER}, password {}", password.text));
        ui::print(&format!("  the password is shown this once; it is kept in {file}"));
    } else {
        ui::print(&format!("user {USER}, password in {file}"));
    }
    if arguments.no_tls && !arguments.listen.ip().is_loopback() {
        context.ui.note("no TLS: whoever is on the way reads the password and all files");
    }
}

/// Keeps the folder in sync until a signal comes, or waits until it may.
fn keep_in_sync(context: &Context<'_>, driver: &Driver, folder: &Folder) -> Result<()> {
    let mut is_told = false;
    loop {
        match watch::keep(context, driver, folder) {
            Err(error) if error.code == Code::Locked => {
                if !is_told {
                    let root = quoted(&folder.root.to_string_lossy());
                    context.ui.note(format!(
                        "another process of this device works on the folder; what comes in here is sent by it, or when it ends (see `syncline daemon status {root}`)"
                    ));
                    is_told = true;
                }
                driver.run(async {
                    tokio::select! {
                        () = tokio::time::sleep(TAKE_OVER_EVERY) => {}
                        _ = driver.interrupts().wait() => {}
                    }
                });
                if driver.interrupts().received().is_some() {
                    return Ok(());
                }
            }
            done => return done,
        }
    }
}
