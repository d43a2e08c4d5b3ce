//! What a server does of the work, how many do it, and by whom people sign in beside it.

use std::ops::RangeInclusive;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::DataArgument;

/// What a server does of the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RoleArgument {
    /// Everything.
    All,
    /// Lets devices in, and leaves their commits to sync services.
    Gateway,
    /// Takes commits from the queue, and lets no device in.
    SyncService,
    /// Starts and ends sync services on this computer, by how long commits wait.
    Supervisor,
}

/// Reads how many there are at least and at most.
pub(super) fn instances(text: &str) -> Result<RangeInclusive<usize>, String> {
    let range = text.split_once("..").and_then(|(from, to)| {
        let (from, to) = (from.parse::<usize>().ok()?, to.parse::<usize>().ok()?);
        (1..=INSTANCES_MAX).contains(&from).then_some(from..=to)
    });
    let is_range =
        |range: &RangeInclusive<usize>| !range.is_empty() && *range.end() <= INSTANCES_MAX;
    range
        .filter(is_range)
        .ok_or_else(|| format!("two numbers from 1 to {INSTANCES_MAX}, such as 1..8"))
}

/// How many sync services one supervisor runs at most.
const INSTANCES_MAX: usize = 1000;

/// The provider of OpenID Connect by which people sign in to a server, too.
#[derive(Debug, Clone, Args)]
pub(crate) struct OidcArguments {
    /// Let people sign in by a provider of OpenID Connect, too: how it calls itself.
    #[arg(long, value_name = "URL", requires = "oidc_client", requires = "oidc_address")]
    pub(crate) oidc_issuer: Option<String>,
    /// With --oidc-issuer: under which addresses people sign in to this server, so that nobody signs in here by what they have shown to
    /// another one; several are repeated or separated by commas.
    #[arg(long, value_name = "URL", value_delimiter = ',', requires = "oidc_issuer")]
    pub(crate) oidc_address: Vec<String>,
    /// By which id the provider knows this server.
    #[arg(long, value_name = "ID", requires = "oidc_issuer")]
    pub(crate) oidc_client: Option<String>,
    /// A file with the secret that belongs to the id, where there is one.
    #[arg(long, value_name = "FILE", requires = "oidc_issuer")]
    pub(crate) oidc_secret_file: Option<PathBuf>,
    /// Who signs in by it: those who are bound to an account, or everybody, who gets an account then.
    #[arg(long, value_name = "WHO", value_enum, default_value_t = OidcAccounts::Bound, requires = "oidc_issuer")]
    pub(crate) oidc_accounts: OidcAccounts,
    /// With --oidc-accounts create: how much such an account may store, such as 50GiB; any amount unless this is given.
    #[arg(long, value_name = "SIZE", requires = "oidc_issuer")]
    pub(crate) oidc_quota: Option<String>,
}

/// What becomes of people whom a provider knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OidcAccounts {
    /// Who is bound to an account signs in, and nobody else.
    Bound,
    /// Who is not gets an account.
    Create,
}

/// What to do with who accounts are at providers.
#[derive(Debug, Subcommand)]
pub(crate) enum UserOidcCommand {
    /// Let a person at a provider sign in to an account.
    Link(SubjectArguments),
    /// End that; devices that are signed in stay so.
    Unlink(SubjectArguments),
    /// List who signs in to an account by a provider.
    Ls {
        /// The account.
        name: String,
        /// Where the accounts are.
        #[command(flatten)]
        data: DataArgument,
    },
}

/// An account, and a person at a provider.
#[derive(Debug, Args)]
pub(crate) struct SubjectArguments {
    /// The account.
    pub(crate) name: String,
    /// What the provider calls the person (`sub`).
    pub(crate) subject: String,
    /// The provider, as in `serve --oidc-issuer`.
    #[arg(long, value_name = "URL")]
    pub(crate) issuer: String,
    /// Where the accounts are.
    #[command(flatten)]
    pub(crate) data: DataArgument,
}
