//! `syncline device`: the devices of the account.

use model::Timestamp;
use serde_json::json;

use super::by_name::{Named, find};
use crate::arguments::DeviceCommand;
use crate::claim::HomeClaim;
use crate::context::Context;
use crate::error::{Result, not_signed_in};
use crate::home::Account;
use crate::server_client::{DeviceLine, ServerClient};
use crate::text::{day_and_time, rfc3339};
use crate::ui::{Paint, Symbol};

/// Runs the command.
pub(crate) fn run(context: &Context<'_>, command: &DeviceCommand) -> Result<u8> {
    let account = context.home.account()?.ok_or_else(not_signed_in)?;
    let client = ServerClient::of_account(&account)?;
    let runtime = context.runtime()?;
    let devices = runtime.block_on(client.devices())?;
    match command {
        DeviceCommand::Ls => list(context, &devices),
        DeviceCommand::Rename { device, name } => {
            context.no_dry_run("device rename")?;
            let _claim = HomeClaim::alone(&context.home)?;
            let found = find(&devices, device)?;
            runtime.block_on(client.rename_device(&found.id, name))?;
            if found.is_this {
                context.home.set_account(&Account { device_name: name.clone(), ..account })?;
            }
            context.ui.say(Symbol::Done, format!("\"{}\" is called \"{name}\" now", found.name));
            context.ui.json(&json!({"schema": "syncline.device/1", "type": "summary", "id": found.id, "name": name}));
        }
        DeviceCommand::Revoke { device } => {
            let found = find(&devices, device)?;
            if context.flags.dry_run {
                context.ui.answer(format!("would sign \"{}\" out", found.name));
                return Ok(0);
            }
            context.ui.confirm(&format!("Sign the device \"{}\" out?", found.name))?;
            runtime.block_on(client.revoke_device(&found.id))?;
            context.ui.say(
                Symbol::Done,
                format!("\"{}\" is signed out; files that it has stay there", found.name),
            );
            context.ui.json(&json!({
                "schema": "syncline.device/1",
                "type": "summary",
                "id": found.id,
                "name": found.name,
                "is_revoked": true,
            }));
        }
    }
    Ok(0)
}

fn at(seconds: i64) -> Timestamp {
    Timestamp { seconds, nanoseconds: 0 }
}

fn list(context: &Context<'_>, devices: &[DeviceLine]) {
    let lines: Vec<_> = devices
        .iter()
        .map(|device| {
            json!({
                "id": device.id,
                "name": device.name,
                "created": rfc3339(at(device.created)),
                "last_seen": rfc3339(at(device.last_seen)),
                "last_in_sync": device.last_in_sync.map(|seconds| rfc3339(at(seconds))),
                "is_this": device.is_this,
            })
        })
        .collect();
    context.ui.json(&json!({"schema": "syncline.devices/1", "devices": lines}));
    for device in devices {
        let this = if device.is_this { "  (this one)" } else { "" };
        let in_sync = match device.last_in_sync {
            Some(seconds) => format!("in sync {}", day_and_time(at(seconds), &context.zone)),
            None => "never in sync".to_owned(),
        };
        context.ui.answer(format!(
            "{}  {:20}  last seen {}, {in_sync}{this}",
            context.ui.paint(Paint::Dim, &device.id[..8.min(device.id.len())]),
            device.name,
            day_and_time(at(device.last_seen), &context.zone)
        ));
    }
}

impl Named for DeviceLine {
    const KINDS: &'static str = "devices";
    const LIST: &'static str = "syncline device ls";

    fn name_and_id(&self) -> (&str, &str) {
        (&self.name, &self.id)
    }
}
