//! Words for backups of a server, and for moving it.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::DataArgument;

/// What an administrator does with a whole server.
#[derive(Debug, Subcommand)]
pub(crate) enum AdminCommand {
    /// Print the description of the server's REST door (OpenAPI 3.1).
    ExportOpenapi,
    /// Print the fingerprint of the web app that this program carries.
    WebApp,
    /// Copy a server into another store, whether it runs or not; what is there is not copied again.
    Backup {
        /// Where to.
        #[command(flatten)]
        target: TargetArgument,
        /// Where the accounts are.
        #[command(flatten)]
        data: DataArgument,
        /// Where the packs are.
        #[command(flatten)]
        store: StoreArgument,
    },
    /// Make a server of a backup, in an empty place; --dry-run lists the backups.
    Restore {
        /// Where from.
        #[command(flatten)]
        source: TargetArgument,
        /// The backup; the newest by default.
        #[arg(long, value_name = "BACKUP")]
        at: Option<String>,
        /// Where the accounts go.
        #[command(flatten)]
        data: DataArgument,
        /// Where the packs go.
        #[command(flatten)]
        store: StoreArgument,
    },
    /// Find out whether a server, or a backup, is whole; changes nothing.
    Verify {
        /// A store with backups; the server itself by default.
        #[arg(long, value_name = "URL")]
        backup: Option<String>,
        /// The backup; the newest by default.
        #[arg(long, value_name = "BACKUP", requires = "backup")]
        at: Option<String>,
        /// Read all packs, too, and compare them with their names.
        #[arg(long)]
        read_data: bool,
        /// Where the accounts are.
        #[command(flatten)]
        data: DataArgument,
        /// Where the packs are, and the secrets of the store that is looked at.
        #[command(flatten)]
        store: StoreArgument,
    },
    /// Move accounts and logs from one database to another one, which is empty; packs stay where they are.
    Migrate {
        /// Where they are: sqlite:DIR, the data folder of a server, or postgres://USER@HOST/NAME.
        #[arg(long, value_name = "URL")]
        from: String,
        /// Where they go.
        #[arg(long, value_name = "URL")]
        to: String,
    },
}

/// The store of a server.
#[derive(Debug, Clone, Args)]
pub(crate) struct StoreArgument {
    /// The store for packs; a folder beside the database by default.
    #[arg(long, value_name = "URL")]
    pub(crate) store: Option<String>,
    /// A TOML file with the secrets of that store.
    #[arg(long, value_name = "FILE")]
    pub(crate) store_credentials: Option<PathBuf>,
}

/// A store with backups.
#[derive(Debug, Clone, Args)]
pub(crate) struct TargetArgument {
    /// A store for backups: file:FOLDER, s3:BUCKET and others.
    #[arg(value_name = "STORE")]
    pub(crate) url: String,
    /// A TOML file with its secrets.
    #[arg(long, value_name = "FILE")]
    pub(crate) credentials: Option<PathBuf>,
}
