//! The words of `key`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::FolderArgument;

/// What to do with the keys of a workspace.
#[derive(Debug, Subcommand)]
pub(crate) enum KeyCommand {
    /// Show the recovery key; asks for the passphrase.
    ShowRecovery(FolderArgument),
    /// Set another passphrase. Devices that have the keys go on as before.
    ChangePassphrase(ChangePassphraseArguments),
    /// Make a new key, which seals everything from now on.
    Rotate(FolderArgument),
    /// Ask for the passphrase and keep the newest keys on this device.
    Unlock(FolderArgument),
    /// Show who this account is to others, who let it into encrypted workspaces; makes that the first time.
    Fingerprint,
}

/// Arguments of `key change-passphrase`.
#[derive(Debug, Args)]
pub(crate) struct ChangePassphraseArguments {
    /// The folder.
    #[command(flatten)]
    pub(crate) folder: FolderArgument,
    /// Read the new passphrase from this file.
    #[arg(long, value_name = "FILE")]
    pub(crate) new_passphrase_file: Option<PathBuf>,
}
