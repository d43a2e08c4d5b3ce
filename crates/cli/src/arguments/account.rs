//! Words for who signs in, and for what a person does with the own account.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Arguments of `login`.
#[derive(Debug, Args)]
pub(crate) struct LoginArguments {
    /// Address of the server, for example http://127.0.0.1:8470.
    #[arg(value_name = "URL")]
    pub(crate) server: String,
    /// Name of the account.
    #[arg(long, value_name = "NAME", required_unless_present = "oidc", conflicts_with = "oidc")]
    pub(crate) user: Option<String>,
    /// Read the password from stdin.
    #[arg(long, conflicts_with = "oidc")]
    pub(crate) password_stdin: bool,
    /// Send the password to the server, which is wanted once where the server has kept it in an older form.
    #[arg(long, conflicts_with = "oidc")]
    pub(crate) send_password: bool,
    /// Sign in at the provider of the server (OpenID Connect), by a browser.
    #[arg(long)]
    pub(crate) oidc: bool,
    /// How the browser comes back.
    #[command(flatten)]
    pub(crate) browser: BrowserArguments,
    /// What the second factor of the account wants, where it has one.
    #[command(flatten)]
    pub(crate) code: CodeArgument,
    /// How this device is called; the name of the computer by default.
    #[arg(long, value_name = "NAME")]
    pub(crate) device: Option<String>,
}

/// How a browser is sent to a provider and comes back.
#[derive(Debug, Args)]
pub(crate) struct BrowserArguments {
    /// With a browser on another computer: open the address there, and paste here the one at which it ends.
    #[arg(long)]
    pub(crate) no_browser: bool,
    /// Where the browser comes back to on this device, for providers that know one port only; a free one by default.
    #[arg(long, value_name = "PORT", default_value_t = 0, hide_default_value = true)]
    pub(crate) port: u16,
}

/// What to do with the own account.
#[derive(Debug, Subcommand)]
pub(crate) enum AccountCommand {
    /// Want a code from an app beside the password, whenever a device signs in.
    #[command(subcommand)]
    Totp(TotpCommand),
    /// Sign in to this account by the provider of the server (OpenID Connect), too.
    #[command(subcommand)]
    Oidc(OidcCommand),
    /// Change the password. Who is signed in stays so, unless --sign-out-others is given.
    Passwd(PasswdArguments),
}

/// What to do with who the own account is at providers.
#[derive(Debug, Subcommand)]
pub(crate) enum OidcCommand {
    /// Sign in at the provider, and let that sign in to this account from now on; wants the password.
    Link {
        /// Read the password from stdin.
        #[arg(long, conflicts_with = "no_browser")]
        password_stdin: bool,
        /// How the browser comes back.
        #[command(flatten)]
        browser: BrowserArguments,
    },
    /// End that; devices that are signed in stay so.
    Unlink {
        /// What the provider calls you, as `ls` shows it.
        subject: String,
    },
    /// List who signs in to this account by a provider.
    Ls,
}

/// Arguments of `account passwd`.
#[derive(Debug, Args)]
pub(crate) struct PasswdArguments {
    /// Read the password from stdin, as it is now.
    #[arg(long)]
    pub(crate) password_stdin: bool,
    /// Read the new password from this file.
    #[arg(long, value_name = "FILE")]
    pub(crate) new_password_file: Option<PathBuf>,
    /// Sign out all other devices, and take back all tokens of other programs.
    #[arg(long)]
    pub(crate) sign_out_others: bool,
}

/// What to do with the second factor of the own account.
#[derive(Debug, Subcommand)]
pub(crate) enum TotpCommand {
    /// Show what the app is to know, ask for its first code, and show recovery codes once.
    Enable {
        /// Read the password from stdin.
        #[arg(long)]
        password_stdin: bool,
    },
    /// Give the first code, where `enable` had nobody to ask for it.
    Confirm(CodeArgument),
    /// Go back to the password alone; wants a code or a recovery code.
    Disable(CodeArgument),
    /// Say whether it is on, and how many recovery codes are left.
    Status,
}

/// A code of a second factor.
#[derive(Debug, Args)]
pub(crate) struct CodeArgument {
    /// Read the code of the app, or a recovery code, from this file.
    #[arg(long, value_name = "FILE")]
    pub(crate) code_file: Option<PathBuf>,
}
