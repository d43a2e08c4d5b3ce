//! `syncline serve`: runs a server until it is told to stop.

use std::io;
use std::net::SocketAddr;

use serde_json::json;
use server::listener::TlsFiles;
use server::oidc::{Newcomers, OidcOptions};
use server::{Broker, Database, Role, ServeOptions, serve};
use storage::Credentials;
use tokio::sync::oneshot;

use crate::arguments::{DataArgument, OidcAccounts, OidcArguments, RoleArgument, ServeArguments};
use crate::context::Context;
use crate::error::{Code, CommandError, Result};
use crate::interrupt::Interrupts;
use crate::text::parse_size;
use crate::{allocator, sealed, ui};

mod supervise;

/// The variable that names the file with the password of the database.
const PASSWORD_FILE: &str = "SYNCLINE_DATABASE_PASSWORD_FILE";

/// The variable that names the file with what opens the store.
const STORE_CREDENTIALS_FILE: &str = "SYNCLINE_STORE_CREDENTIALS_FILE";

/// The variable that names the file with the password of the broker.
const BROKER_PASSWORD_FILE: &str = "SYNCLINE_BROKER_PASSWORD_FILE";

/// The variable that names the file with what proves this server to the provider by which people sign in.
const OIDC_SECRET_FILE: &str = "SYNCLINE_OIDC_SECRET_FILE";

/// Runs the command.
pub(crate) fn run(context: &Context<'_>, arguments: &ServeArguments) -> Result<u8> {
    context.no_dry_run("serve")?;
    if arguments.role == RoleArgument::Supervisor {
        return supervise::run(context, arguments);
    }
    let data = arguments.data.data.clone().unwrap_or_else(|| context.home.server_data());
    let mut options =
        ServeOptions::new(data.clone(), context.clock.clone(), context.random.clone());
    options.listen = arguments.listen;
    options.database = database(context, &arguments.data)?;
    options.store.clone_from(&arguments.store);
    options.store_credentials = store_credentials(context, arguments)?;
    options.role = match arguments.role {
        RoleArgument::All => Role::All,
        RoleArgument::Gateway => Role::Gateway,
        RoleArgument::SyncService | RoleArgument::Supervisor => Role::SyncService,
    };
    options.broker = arguments.broker.as_deref().map(|url| broker(context, url)).transpose()?;
    options.connections_max = arguments.connections;
    options.connections_per_address_max = arguments.connections_per_address;
    options.metrics_listen = arguments.metrics_listen;
    options.tls = match (&arguments.tls_cert, &arguments.tls_key) {
        (Some(certificate), Some(key)) => {
            Some(TlsFiles { certificate: certificate.clone(), key: key.clone() })
        }
        _ => None,
    };
    let scheme = if options.tls.is_some() { "https" } else { "http" };
    options.audit_log.clone_from(&arguments.audit_log);
    options.oidc = oidc(context, &arguments.oidc)?;
    let (is_json, is_open) = (context.ui.is_json(), !arguments.listen.ip().is_loopback());
    if is_open && options.tls.is_none() {
        context.ui.note("no TLS: use it on a network that you trust, or through a tunnel");
    }
    allocator::bound_arenas();
    let threads = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = threads.map_err(|error| {
        CommandError::new(Code::Defect, "no threads can be started").cause(error)
    })?;
    let interrupts = Interrupts::listen(&runtime);
    let ready = move |address| say_ready(is_json, scheme, address);
    let ended = arguments.end_with_stdin.then(end_of_stdin);
    let stop = async move {
        let ended = async {
            match ended {
                Some(ended) => drop(ended.await),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = interrupts.wait() => {}
            () = ended => {}
        }
    };
    runtime.block_on(serve(options, ready, stop))?;
    Ok(0)
}

/// Returns what opens the store of a server.
fn store_credentials(context: &Context<'_>, arguments: &ServeArguments) -> Result<Credentials> {
    let named = arguments.store_credentials.clone();
    let named = named.or_else(|| context.variables.path(STORE_CREDENTIALS_FILE));
    Ok(named.map_or(Ok(Credentials::none()), |file| Credentials::read_file(&file))?)
}

/// Returns the provider by which people sign in, too, if there is one.
fn oidc(context: &Context<'_>, arguments: &OidcArguments) -> Result<Option<OidcOptions>> {
    let (Some(issuer), Some(client)) = (&arguments.oidc_issuer, &arguments.oidc_client) else {
        return Ok(None);
    };
    let file = arguments.oidc_secret_file.clone();
    let file = file.or_else(|| context.variables.path(OIDC_SECRET_FILE));
    let secret = file.map(|file| sealed::read_secret(&file)).transpose()?;
    let secret = secret.as_ref().map(|secret| secret.as_str());
    let addresses = &arguments.oidc_address;
    Ok(Some(OidcOptions::new(issuer, client, secret, addresses, newcomers(arguments)?)?))
}

/// Returns what becomes of people whom a provider knows, and nobody else.
fn newcomers(arguments: &OidcArguments) -> Result<Newcomers> {
    match (arguments.oidc_accounts, &arguments.oidc_quota) {
        (OidcAccounts::Bound, None) => Ok(Newcomers::Refused),
        (OidcAccounts::Bound, Some(_)) => {
            Err(CommandError::usage("--oidc-quota is for accounts that are made")
                .help("--oidc-accounts create", "makes some"))
        }
        (OidcAccounts::Create, quota) => {
            let read = |text: &String| {
                parse_size(text).ok_or_else(|| {
                    CommandError::usage(format!("'{text}' is no size")).help("50GiB", "is one")
                })
            };
            Ok(Newcomers::GetAccounts { quota_bytes: quota.as_ref().map(read).transpose()? })
        }
    }
}

/// Says that requests are answered.
fn say_ready(is_json: bool, scheme: &str, address: SocketAddr) {
    if is_json {
        let line = json!({"schema": "syncline.serve/1", "type": "listening", "url": format!("{scheme}://{address}")});
        ui::print(&line.to_string());
    } else {
        ui::print(&format!("listening on {scheme}://{address}"));
    }
}

/// Reads standard input to its end, which comes with the end of whoever holds the other side, however that ends.
fn end_of_stdin() -> oneshot::Receiver<()> {
    let (ended, is_over) = oneshot::channel();
    std::thread::spawn(move || {
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        let _ = ended.send(());
    });
    is_over
}

/// Returns where a server meets the others on its database.
fn broker(context: &Context<'_>, url: &str) -> Result<Broker> {
    let password = context.variables.path(BROKER_PASSWORD_FILE);
    let password = password.map(|file| sealed::read_secret(&file)).transpose()?;
    let password = password.as_ref().map(|password| password.as_str());
    Broker::from_url(url, password).map_err(|error| {
        CommandError::from(error).help(
            format!("{BROKER_PASSWORD_FILE}=FILE"),
            "names a file with the password, where one is needed",
        )
    })
}

/// Returns where the metadata of a server rest.
///
/// # Errors
/// For an address that is none, and a password that cannot be read.
pub(crate) fn database(context: &Context<'_>, arguments: &DataArgument) -> Result<Database> {
    let Some(url) = &arguments.database else { return Ok(Database::Embedded) };
    let password = context.variables.path(PASSWORD_FILE);
    let password = password.map(|file| sealed::read_secret(&file)).transpose()?;
    let password = password.as_ref().map(|password| password.as_str());
    Database::from_url(url, password).map_err(|error| {
        CommandError::from(error).help(
            format!("{PASSWORD_FILE}=FILE"),
            "names a file with the password, where one is needed",
        )
    })
}
