//! `syncline clone --pair`: joins a workspace by the code that another device shows.

use std::collections::BTreeMap;
use std::path::PathBuf;

use content::DeviceKeys;
use content::pairing::{Pairing, PairingCode, PairingGuest};
use model::{Genesis, StoreId};

use super::on_server::OnServer;
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
    let guest = Guest { context, code: &code, wanted: &arguments.workspace };
    let joined = match &backends[..] {
        [] => runtime.block_on(guest.join_on_server()),
        [_, ..] => runtime.block_on(guest.join_in_stores(&backends)),
    };
    let Joined { genesis, place, named, keys, boxes } = joined?;
    let folder = match &arguments.folder {
        Some(folder) => folder.clone(),
        None => PathBuf::from(safe_folder_name(&genesis.name)?),
    };
    let root = prepare_root(context, &folder)?;
    let folder = {
        let _claim = HomeClaim::alone(&context.home)?;
        if let Place::Stored(stored) = &place {
            secrets.keep(&context.home, &stored.pool, &named)?;
        }
        let folder = bind(context, &root, genesis, place)?;
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
    genesis: Genesis,
    place: Place,
    /// The stores that the user named, under which names.
    named: BTreeMap<String, StoreId>,
    keys: DeviceKeys,
    boxes: Boxes,
}

/// This device, which asks to be let in.
struct Guest<'a> {
    context: &'a Context<'a>,
    code: &'a PairingCode,
    /// The workspace that the user means, by name or id.
    wanted: &'a str,
}

impl Guest<'_> {
    async fn join_on_server(&self) -> Result<Joined> {
        let server = OnServer::new(self.context)?;
        for genesis in server.sealed().await? {
            let stores = server.stores(genesis.workspace())?;
            let boxes = Boxes::of(stores.into_iter().map(|(_, store)| store).collect(), self.code);
            let place = Place::Served { server: server.account.server.clone() };
            if let Some(joined) = self.join(genesis, place, boxes).await? {
                return Ok(joined);
            }
        }
        Err(nobody_waits())
    }

    async fn join_in_stores(&self, backends: &OpenedBackends) -> Result<Joined> {
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
            let boxes = Boxes::of(stores.map(|(_, store)| store).collect(), self.code);
            let place = Place::Stored(found.place.clone());
            let joined = self.join(found.genesis.clone(), place, boxes).await?;
            if let Some(joined) = joined {
                found.genesis.name = joined.genesis.name.clone();
                hints::follow(self.context, &mut found).await;
                hints::prefer_known(self.context, &mut found)?;
                hints::tell(self.context, &found);
                let Found { place, named, .. } = found;
                return Ok(Joined { place: Place::Stored(place), named, ..joined });
            }
        }
        Err(failure.unwrap_or_else(nobody_waits))
    }

    /// Asks to be let into a workspace; nothing where nobody waits for the code in it.
    async fn join(&self, genesis: Genesis, place: Place, boxes: Boxes) -> Result<Option<Joined>> {
        let pairing = Pairing::new(self.code, genesis.workspace());
        let open = |bytes: &[u8]| pairing.open_offer(bytes).ok();
        let Some((offer, host)) = boxes.first("offer", open).await else { return Ok(None) };
        let device = {
            let _claim = HomeClaim::alone(&self.context.home)?;
            connect::device(self.context, &place)?
        };
        let asking = PairingGuest::new(pairing, &offer, device, &*self.context.random)?;
        let keys = self.ask(&genesis, &boxes, &asking, &host.device_name).await?;
        if ![keys.name.as_str(), &genesis.workspace().to_string()].contains(&self.wanted) {
            let headline = format!("the code is one of '{}'", keys.name);
            return Err(CommandError::usage(headline).state("nothing was changed here"));
        }
        let genesis = Genesis { name: keys.name.clone(), ..genesis };
        Ok(Some(Joined { genesis, place, named: BTreeMap::new(), keys, boxes }))
    }

    async fn ask(
        &self,
        genesis: &Genesis,
        boxes: &Boxes,
        asking: &PairingGuest,
        host: &str,
    ) -> Result<DeviceKeys> {
        let digits = asking.digits();
        self.context.ui.confirm(&format!(
            "'{host}' lets this device in if it shows {digits}, too. Ask for that?"
        ))?;
        if !boxes.put("request", asking.request()).await? {
            return Err(CommandError::new(Code::WrongKey, "the code was used already")
                .state("nothing was changed")
                .help("syncline pair", "shows another code"));
        }
        let accept = |bytes: &[u8]| asking.accept(genesis, bytes).ok();
        Ok(boxes.wait(self.context, "grant", accept).await?.1)
    }
}

fn nobody_waits() -> CommandError {
    CommandError::new(Code::WrongKey, "no device waits for this code")
        .cause("it may be mistyped, used or too old, or of a workspace that lies elsewhere")
        .state("nothing was changed")
        .help("syncline pair", "shows a code on a device that has the workspace")
}
