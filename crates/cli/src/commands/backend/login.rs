//! `syncline backend login`: signs this device in to the service of a store.

use std::time::Duration;

use serde_json::json;
use storage::Credentials;
use storage::credentials::CLIENT_ID;
use storage::sign_in::{BrowserVisit, Login, Way};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::arguments::BackendLoginArguments;
use crate::claim::HomeClaim;
use crate::context::Context;
use crate::error::{Code, CommandError, Result};
use crate::folder::Folder;
use crate::system;
use crate::ui::Symbol;

/// How long a person has for the browser.
const VISIT_MAX: Duration = Duration::from_secs(900);
/// How long a browser has for one request, and how much it may say.
const REQUEST_MAX: Duration = Duration::from_secs(10);
const REQUEST_SIZE_MAX: usize = 16 << 10;

/// Runs the command.
pub(super) fn run(context: &Context<'_>, arguments: &BackendLoginArguments) -> Result<u8> {
    context.no_dry_run("backend login")?;
    let (url, kept) = meant(context, &arguments.store)?;
    let credentials = match &arguments.credentials {
        Some(file) => Credentials::read_file(file)?,
        None => kept,
    };
    if credentials.get(CLIENT_ID).is_none() {
        return Err(CommandError::usage("which program signs in is not known").help(
            format!("syncline backend login {} --credentials FILE", arguments.store),
            "a TOML file with client_id and client_secret, as the service gave them to you",
        ));
    }
    let login = Login::new(&url, &credentials)?;
    let path = context.home.sign_in_path(&url);
    let _claim = HomeClaim::beside_watches(&context.home)?;
    let folder = path.parent().unwrap_or(&path);
    system::make_private_folder(folder).map_err(|error| crate::home::file_error(folder, &error))?;
    context.runtime()?.block_on(async {
        match login.way() {
            Way::Device => {
                let visit = login.ask_for_code().await?;
                tell(context, &visit.address, Some(&visit.user_code));
                Ok(login.wait_for_person(&visit, &*context.clock, &path).await?)
            }
            Way::Browser => {
                let listener = listen(arguments.port).await?;
                let port = listener.local_addr().map_or(arguments.port, |address| address.port());
                let visit = login.visit(&format!("http://127.0.0.1:{port}/"), &*context.random)?;
                tell(context, &visit.address, None);
                let back = come_back(context, &login, &visit, &listener, &path);
                tokio::time::timeout(VISIT_MAX, back).await.unwrap_or_else(|_| Err(too_late()))
            }
        }
    })?;
    context.ui.json(&json!({
        "schema": "syncline.backend-login/1",
        "type": "summary",
        "service": login.service(),
    }));
    context.ui.say(Symbol::Done, format!("this device is signed in to {}", login.service()));
    Ok(0)
}

/// Returns the URL that is meant, and the secrets that are known of it.
fn meant(context: &Context<'_>, store: &str) -> Result<(String, Credentials)> {
    if store.contains(':') {
        return Ok((store.to_owned(), Credentials::none()));
    }
    let folder = Folder::locate(&context.home, std::path::Path::new("."))?;
    let stored = super::stored_place(&folder)?;
    let store = super::find(&stored.pool, store)?;
    Ok((stored.url(store).to_owned(), context.home.credentials(store.id)?))
}

/// Tells the person where to go.
fn tell(context: &Context<'_>, address: &str, code: Option<&str>) {
    context.ui.json(&json!({
        "schema": "syncline.backend-login/1",
        "type": "visit",
        "address": address,
        "code": code,
    }));
    if context.ui.is_json() {
        return;
    }
    match code {
        Some(code) => {
            context.ui.answer(format!("Open {address} on any device, and type the code {code}"));
        }
        None => context.ui.answer(format!("Open in a browser of this device:\n{address}")),
    }
}

async fn listen(port: u16) -> Result<TcpListener> {
    TcpListener::bind(("127.0.0.1", port)).await.map_err(|error| {
        CommandError::usage(format!("port {port} of this device cannot be used"))
            .cause(error)
            .help("--port PORT", "another one; register it with the service, too")
    })
}

/// Waits for the browser.
async fn come_back(
    context: &Context<'_>,
    login: &Login,
    visit: &BrowserVisit,
    listener: &TcpListener,
    path: &std::path::Path,
) -> Result<()> {
    loop {
        let Ok((mut stream, _)) = listener.accept().await else { continue };
        let read = tokio::time::timeout(REQUEST_MAX, read_query(&mut stream));
        // Browsers also ask for icons.
        let Ok(Some(query)) = read.await else {
            reply(&mut stream, "404 Not Found", "There is nothing here.").await;
            continue;
        };
        let outcome = login.come_back(visit, &query, &*context.clock, path).await;
        match &outcome {
            Ok(()) => reply(&mut stream, "200 OK", "Signed in. You can close this page.").await,
            Err(_) => reply(&mut stream, "400 Bad Request", "This did not work.").await,
        }
        return Ok(outcome?);
    }
}

/// Reads what a browser asks for; nothing where it is not the answer of the service.
async fn read_query(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    let mut part = [0; 1024];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let length = stream.read(&mut part).await.ok().filter(|length| *length > 0)?;
        head.extend_from_slice(&part[..length]);
        if head.len() > REQUEST_SIZE_MAX {
            return None;
        }
    }
    let text = String::from_utf8(head).ok()?;
    let target = text.strip_prefix("GET /?")?.split(' ').next()?;
    Some(target.to_owned())
}

/// Says something in the browser; if it is gone, nobody misses it.
async fn reply(stream: &mut TcpStream, status: &str, text: &str) {
    let answer = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/plain\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{text}",
        text.len()
    );
    if stream.write_all(answer.as_bytes()).await.is_ok() {
        let _already_gone = stream.shutdown().await;
    }
}

fn too_late() -> CommandError {
    CommandError::new(Code::Refused, "nobody came back from the browser in time")
        .state("nothing was changed")
}
