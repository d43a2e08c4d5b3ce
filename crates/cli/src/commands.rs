//! The verbs, each in a file of its own. A verb takes what was typed and returns an exit code or an error.

use crate::arguments::Command;
use crate::context::Context;
use crate::error::Result;

mod account;
mod admin;
mod backend;
mod bench;
mod by_name;
mod cat;
mod check;
mod children;
mod cleanup;
pub(crate) mod clone;
mod completion;
mod conflicts;
pub(crate) mod daemon;
mod demo;
mod device;
mod doctor;
mod experiments;
mod gateway;
pub(crate) mod init;
mod key;
mod log;
mod login;
mod logout;
mod ls;
mod man;
mod openapi;
mod pair;
mod resolve;
mod restore;
mod serve;
mod share;
mod status;
mod steps;
pub(crate) mod sync;
mod token;
mod trace;
mod user;
mod version;
mod watch;
mod web_app;
mod whoami;

/// Runs a command. Returns the exit code.
pub(crate) fn run(context: &Context<'_>, command: &Command) -> Result<u8> {
    match command {
        Command::Init(arguments) => init::run(context, arguments),
        Command::Clone(arguments) => clone::run(context, arguments),
        Command::Sync(arguments) => sync::run(context, arguments),
        Command::Watch(arguments) => watch::run(context, arguments),
        Command::Daemon(command) => daemon::run(context, command),
        Command::Status(arguments) => status::run(context, arguments),
        Command::Ls(arguments) => ls::run(context, arguments),
        Command::Log(arguments) => log::run(context, arguments),
        Command::Cat(arguments) => cat::run(context, arguments),
        Command::Restore(arguments) => restore::run(context, arguments),
        Command::Conflicts(arguments) => conflicts::run(context, arguments),
        Command::Resolve(arguments) => resolve::run(context, arguments),
        Command::Checkin(arguments) => steps::checkin(context, arguments),
        Command::Fetch(arguments) => steps::fetch(context, arguments),
        Command::Merge(arguments) => steps::merge(context, arguments),
        Command::Push(arguments) => steps::push(context, arguments),
        Command::Up(arguments) => steps::up(context, arguments),
        Command::Down(arguments) => steps::down(context, arguments),
        Command::Login(arguments) => login::run(context, arguments),
        Command::Logout => logout::run(context),
        Command::Whoami => whoami::run(context),
        Command::Account(command) => account::run(context, command),
        Command::Device(command) => device::run(context, command),
        Command::Token(command) => token::run(context, command),
        Command::Share(arguments) => share::run(context, arguments),
        Command::Backend(command) => backend::run(context, command),
        Command::Key(command) => key::run(context, command),
        Command::Pair(arguments) => pair::run(context, arguments),
        Command::Check(arguments) => check::run(context, arguments),
        Command::Cleanup(arguments) => cleanup::run(context, arguments),
        Command::Gateway(command) => gateway::run(context, command),
        Command::Serve(arguments) => serve::run(context, arguments),
        Command::Admin(command) => admin::run(context, command),
        Command::User(command) => user::run(context, command),
        Command::Doctor(arguments) => doctor::run(context, arguments),
        Command::Demo(arguments) => demo::run(context, arguments),
        Command::Lab(command) => experiments::run(context, command),
        Command::Bench(command) => bench::run(context, command),
        Command::Trace(command) => trace::run(context, command),
        Command::Completion(arguments) => completion::run(arguments),
        Command::Man(arguments) => man::run(context, arguments),
        Command::Version => version::run(context),
    }
}
