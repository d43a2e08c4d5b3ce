//! `syncline clone --pair`: joins a workspace by the code that another device shows.

use std::path::PathBuf;

use content::DeviceKeys;
use content::keyring::SecretKey;
use content::pairing::{Pairing, PairingCode, PairingRequest};
use content::signing::SigningKey;
use model::DeviceId;

use super::unlock::{OpenedBackends, named_stores, strangers};
use super::{opened, safe_folder_name};
use crate::arguments::CloneArguments;
use crate::claim::HomeClaim;
use crate::commands::init::{bind, prepare_root};
use crate::commands::sync;
use crate::connect::{self, SessionOptions};
use crate::context::Context;
use crate::error::{Code, CommandError, Result};
use crate::folder::Place;
use crate::hints;
use crate::pairing::Boxes;
use crate::sealed;
use crate::stores::{Backend, Secrets};
use crate::workspaces::{self, Found};

/// Runs the command.
pub(super) fn run(context: &Context<'_>, arguments: &CloneArguments) -> Result<u8> {
    context.no_dry_run("clone --pair")?;
    let secrets = Secrets::of_flags(&arguments.credentials)?;
    let backends = opened(&Backend::of_flags(&arguments.backends, &secrets, &context.home)?)?;
    let text = sealed::typed(context, "Code that `syncline pair` shows on the other device")?;
    let code = PairingCode::from_text(&text)
        .map_err(|error| CommandError::usage(error.to_string()).state("nothing was changed"))?;
    let runtime = context.runtime()?;
    let joined = runtime.block_on(join(context, &backends, &code))?;
    let Joined { mut found, keys, boxes } = joined;
    let workspace = found.genesis.workspace().to_string();
    if ![&keys.name, &workspace].contains(&&arguments.workspace) {
        let headline = format!("the code is one of '{}'", keys.name);
        return Err(CommandError::usage(headline).state("nothing was changed here"));
    }
    found.genesis.name = keys.name.clone();
    hints::prefer_known(context, &mut found)?;
    hints::tell(context, &found);
    let folder = match &arguments.folder {
        Some(folder) => folder.clone(),
        None => PathBuf::from(safe_folder_name(&keys.name)?),
    };
    let root = prepare_root(context, &folder)?;
    let folder = {
        let _claim = HomeClaim::alone(&context.home)?;
        secrets.keep(&context.home, &found.place.pool, &found.named)?;
        let folder = bind(context, &root, found.genesis, Place::Stored(found.place))?;
        sealed::keep(&folder, &keys)?;
        folder
    };
    // The other device waits for this; without it, it only waits longer.
    let _ = runtime.block_on(boxes.put("done", b"done"));
    drop(runtime);
    sync::exchange(context, "clone", &folder, SessionOptions::CHANGE)
}

/// What a device has after it was let in.
struct Joined {
    found: Found,
    keys: DeviceKeys,
    boxes: Boxes,
}

async fn join(
    context: &Context<'_>,
    backends: &OpenedBackends,
    code: &PairingCode,
) -> Result<Joined> {
    let mut failure = None;
    for genesis in workspaces::sealed_workspaces(backends).await? {
        let id = genesis.workspace();
        let mut found = match workspaces::find_workspace(backends, &id.to_string()).await {
            Ok(found) => found,
            Err(error) => {
                failure = Some(error);
                continue;
            }
        };
        // The code tells whose workspace it is; before, no other store gets anything that this device has.
        let stores = named_stores(backends, id).into_iter().chain(strangers(&found));
        let boxes = Boxes::of(stores.map(|(_, store)| store).collect(), code);
        let pairing = Pairing::new(code, id);
        let open = |bytes: &[u8]| pairing.open_offer(bytes).ok();
        if let Some((offer, host)) = boxes.first("offer", open).await {
            let place = Place::Stored(found.place.clone());
            let (device, device_name) = {
                let _claim = HomeClaim::alone(&context.home)?;
                connect::device(context, &place)?
            };
            let guest = Guest { context, pairing, boxes, device, device_name };
            let keys = guest.ask(&found, &offer, &host.device_name).await?;
            let boxes = guest.boxes;
            hints::follow(context, &mut found).await;
            return Ok(Joined { found, keys, boxes });
        }
    }
    Err(failure.unwrap_or_else(|| {
        CommandError::new(Code::WrongKey, "no device waits for this code")
            .cause("it may be mistyped, used or too old, or of a workspace in other stores")
            .state("nothing was changed")
            .help("syncline pair", "shows a code on a device that has the workspace")
    }))
}

/// This device, which asks to be let in.
struct Guest<'a> {
    context: &'a Context<'a>,
    pairing: Pairing,
    boxes: Boxes,
    device: DeviceId,
    device_name: String,
}

impl Guest<'_> {
    async fn ask(&self, found: &Found, offer: &[u8], host: &str) -> Result<DeviceKeys> {
        let seed = SecretKey::random(&*self.context.random);
        let request = PairingRequest {
            device: self.device,
            public: *SigningKey::from_seed(seed.clone())?.public(),
            device_name: self.device_name.clone(),
        };
        let sealed = self.pairing.seal_request(offer, &request, &*self.context.random);
        let digits = self.pairing.digits(offer, &sealed);
        self.context.ui.confirm(&format!(
            "'{host}' lets this device in if it shows {digits}, too. Ask for that?"
        ))?;
        if !self.boxes.put("request", &sealed).await? {
            return Err(CommandError::new(Code::WrongKey, "the code was used already")
                .state("nothing was changed")
                .help("syncline pair", "shows another code"));
        }
        let genesis = &found.genesis;
        let accept = |bytes: &[u8]| {
            let me = (self.device, seed.clone());
            self.pairing.accept(genesis, me, &sealed, bytes).ok()
        };
        Ok(self.boxes.wait(self.context, "grant", accept).await?.1)
    }
}
