//! `syncline backend login`: signs this device in to the service of a store.

use serde_json::json;
use storage::Credentials;
use storage::credentials::CLIENT_ID;
use storage::sign_in::{BrowserVisit, Login, Way};
use tokio::net::TcpListener;

use crate::arguments::BackendLoginArguments;
use crate::browser::{self, VISIT_MAX, Visitors};
use crate::claim::HomeClaim;
use crate::context::Context;
use crate::error::{CommandError, Result};
use crate::folder::Folder;
use crate::system;
use crate::ui::Symbol;

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
                let (listener, port) = browser::listen(arguments.port).await?;
                let visit = login.visit(&format!("http://127.0.0.1:{port}/"), &*context.random)?;
                tell(context, &visit.address, None);
                let back = come_back(context, &login, &visit, listener, &path);
                let back = tokio::time::timeout(VISIT_MAX, back).await;
                back.unwrap_or_else(|_| Err(browser::too_late()))
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

/// Waits for the browser.
async fn come_back(
    context: &Context<'_>,
    login: &Login,
    visit: &BrowserVisit,
    listener: TcpListener,
    path: &std::path::Path,
) -> Result<()> {
    let mut visitors = Visitors::listen(listener);
    while let Some(visitor) = visitors.next().await {
        // Browsers also ask for icons.
        let Some(query) = visitor.target.strip_prefix("/?").map(str::to_owned) else {
            visitor.answer("404 Not Found", "There is nothing here.").await;
            continue;
        };
        let outcome = login.come_back(visit, &query, &*context.clock, path).await;
        match &outcome {
            Ok(()) => visitor.answer("200 OK", "Signed in. You can close this page.").await,
            Err(_) => visitor.answer("400 Bad Request", "This did not work.").await,
        }
        return Ok(outcome?);
    }
    Err(browser::too_late())
}
