//! The WebDAV gateway of a device as a child process.

use std::path::Path;

use super::server::start_listening;
use super::{Background, Device};
use crate::failure::Result;

/// The name under which programs come in.
pub const USER: &str = "syncline";

/// A running `syncline gateway webdav`; it is killed when this value goes.
#[derive(Debug)]
pub struct Gateway {
    address: String,
    _process: Background,
}

impl Gateway {
    /// Shows the folder of a device on a free port, and waits until it listens. The file has the password.
    pub fn start(device: &Device, password_file: &Path) -> Result<Self> {
        let mut command = device.command(&["gateway", "webdav", "--listen", "127.0.0.1:0"]);
        command.arg(&device.folder).arg("--password-file").arg(password_file);
        let (child, address) = start_listening(&mut command)?;
        Ok(Self { address, _process: Background::new(child) })
    }

    /// Where it answers.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}
