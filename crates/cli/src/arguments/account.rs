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
    #[arg(long, value_name = "NAME")]
    pub(crate) user: String,
    /// Read the password from stdin.
    #[arg(long)]
    pub(crate) password_stdin: bool,
    /// What the second factor of the account wants, where it has one.
    #[command(flatten)]
    pub(crate) code: CodeArgument,
    /// How this device is called; the name of the computer by default.
    #[arg(long, value_name = "NAME")]
    pub(crate) device: Option<String>,
}

/// What to do with the own account.
#[derive(Debug, Subcommand)]
pub(crate) enum AccountCommand {
    /// Want a code from an app beside the password, whenever a device signs in.
    #[command(subcommand)]
    Totp(TotpCommand),
    /// Change the password. Who is signed in stays so, unless --sign-out-others is given.
    Passwd(PasswdArguments),
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
