//! Words for opening a synced folder to other programs.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::FolderArgument;

/// How to open it.
#[derive(Debug, Subcommand)]
pub(crate) enum GatewayCommand {
    /// Show it as a WebDAV folder, and keep it in sync meanwhile.
    Webdav(GatewayArguments),
}

/// Arguments of `gateway webdav`.
#[derive(Debug, Args)]
pub(crate) struct GatewayArguments {
    /// The folder.
    #[command(flatten)]
    pub(crate) folder: FolderArgument,
    /// Where to listen; port 0 picks one. Beyond this computer it wants --tls-cert or --no-tls.
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:8480")]
    pub(crate) listen: SocketAddr,
    /// Let nobody change anything.
    #[arg(long)]
    pub(crate) read_only: bool,
    /// Read the password from this file; else one is made, shown once and kept in the home.
    #[arg(long, value_name = "FILE", conflicts_with = "new_password")]
    pub(crate) password_file: Option<PathBuf>,
    /// Make a new password; the one before ends.
    #[arg(long)]
    pub(crate) new_password: bool,
    /// A name under which programs reach this computer, beside its addresses and localhost; several times.
    #[arg(long = "host", value_name = "NAME")]
    pub(crate) hosts: Vec<String>,
    /// Speak TLS: the certificate, and those that lead to its authority (PEM); read anew when it changes.
    #[arg(long, value_name = "FILE", requires = "tls_key", conflicts_with = "no_tls")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// The private key of the certificate (PEM).
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
    /// Listen beyond this computer without TLS: whoever is on the way reads password and files.
    #[arg(long)]
    pub(crate) no_tls: bool,
}
