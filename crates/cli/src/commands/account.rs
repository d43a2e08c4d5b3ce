//! `syncline account`: what a person does with the own account at a server.

use crate::arguments::AccountCommand;
use crate::context::Context;
use crate::error::Result;

pub(super) mod oidc;
mod passwd;
mod picture;
mod totp;

/// Runs the command.
pub(crate) fn run(context: &Context<'_>, command: &AccountCommand) -> Result<u8> {
    match command {
        AccountCommand::Totp(command) => totp::run(context, command),
        AccountCommand::Oidc(command) => oidc::run(context, command),
        AccountCommand::Passwd(arguments) => passwd::run(context, arguments),
    }
}
