//! `syncline pair`: lets a new device into an end-to-end encrypted workspace, which `syncline clone --pair` is run on.

use content::pairing::{Offer, Pairing, PairingCode};
use serde_json::json;

use crate::arguments::FolderArgument;
use crate::commands::key::Opened;
use crate::connect::{self, Driver};
use crate::context::Context;
use crate::error::Result;
use crate::folder::{Folder, Place};
use crate::interrupt::stopped;
use crate::pairing::{Boxes, PATIENCE};
use crate::ui::{self, Symbol};

/// Runs the command.
pub(crate) fn run(context: &Context<'_>, argument: &FolderArgument) -> Result<u8> {
    context.no_dry_run("pair")?;
    let opened = Opened::ask(context, argument)?;
    let code = PairingCode::random(&*context.random);
    let boxes = Boxes::of(opened.stores.clone(), &code);
    let driver = Driver::start(context)?;
    let done = driver.run(async {
        tokio::select! {
            done = pair(context, &opened, &code, &boxes) => done,
            signal = driver.interrupts().wait() => Err(stopped(signal, "syncline pair")),
        }
    });
    // Whatever has come of it, nobody else gets in by this code.
    driver.run(boxes.remove());
    let name = done?;
    context.ui.json(&json!({
        "schema": "syncline.pair/1",
        "type": "summary",
        "workspace": opened.folder.genesis.name,
        "device": name,
    }));
    context.ui.say(Symbol::Done, format!("'{name}' is a device of this workspace now"));
    Ok(0)
}

/// Shows the code, waits for a device that has it, and lets that one in. Returns how it calls itself.
async fn pair(
    context: &Context<'_>,
    opened: &Opened,
    code: &PairingCode,
    boxes: &Boxes,
) -> Result<String> {
    let genesis = &opened.folder.genesis;
    let pairing = Pairing::new(code, genesis.workspace());
    let (_, device_name) = connect::device(context, &opened.folder.place)?;
    let offer = pairing.seal_offer(&Offer { device_name }, &*context.random);
    boxes.put("offer", &offer).await?;
    show(context, &opened.folder, code);
    let open = |bytes: &[u8]| pairing.open_request(&offer, bytes).ok();
    let (sealed, request) = boxes.wait(context, "request", open).await?;
    let name = request.device_name.clone();
    let digits = pairing.digits(&offer, &sealed);
    context.ui.confirm(&format!(
        "'{name}' asks to be let in, and shows {digits} if it is yours. Let it in?"
    ))?;
    let grant = pairing.grant(genesis, &opened.unlocked, (&request, &sealed), &*context.random)?;
    boxes.put("grant", &grant).await?;
    boxes.wait(context, "done", |_| Some(())).await?;
    Ok(name)
}

/// Shows the code, which is a secret for ten minutes.
fn show(context: &Context<'_>, folder: &Folder, code: &PairingCode) {
    let workspace = &folder.genesis.name;
    let text = code.to_text();
    if context.ui.is_json() {
        let line = json!({
            "schema": "syncline.pair/1",
            "type": "code",
            "workspace": workspace,
            "code": *text,
            "seconds": PATIENCE.as_secs(),
        });
        ui::print(&line.to_string());
        return;
    }
    ui::print(&text);
    let workspace = crate::text::quoted(workspace);
    let place = match &folder.place {
        Place::Served { .. } => "",
        Place::Stored(_) => " --backend NAME=URL",
    };
    context.ui.note(format!(
        "type it on the new device: syncline clone {workspace} --pair{place}; it serves one device, for ten minutes, as long as this command runs"
    ));
}
