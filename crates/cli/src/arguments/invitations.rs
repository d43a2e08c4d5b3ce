//! Words for invitations to a server.

use clap::Subcommand;

use super::DataArgument;
use super::sharing::Span;

/// What to do with invitations.
#[derive(Debug, Subcommand)]
pub(crate) enum InvitationCommand {
    /// Make one, and show its address once: who opens it in a browser makes one account.
    Add {
        /// Under which address people reach the server, such as https://cloud.example.org.
        #[arg(value_name = "SERVER")]
        server: String,
        /// The name that is proposed to them; they may choose another one.
        #[arg(long, value_name = "NAME")]
        name: Option<String>,
        /// How much the account may store, for example 50GiB; without this, any amount.
        #[arg(long, value_name = "SIZE")]
        quota: Option<String>,
        /// After how long it ends, such as 12h or 30d, and 90d at most.
        #[arg(long, value_name = "TIME", default_value = "7d")]
        expires: Span,
        /// Where the accounts are.
        #[command(flatten)]
        data: DataArgument,
    },
    /// List them, also those that have ended lately.
    Ls {
        /// Where the accounts are.
        #[command(flatten)]
        data: DataArgument,
    },
    /// Take one back, which nobody has used yet.
    Rm {
        /// Its number in the list.
        number: u32,
        /// Where the accounts are.
        #[command(flatten)]
        data: DataArgument,
    },
}
