//! A provider of OpenID Connect: the npm package oidc-provider, which the OpenID Foundation has certified.

use std::process::Command;

use super::Service;
use super::place::{Place, free_port};
use crate::failure::Result;
use crate::{process, repository_root};

pub(super) const NAME: &str = "oidc-provider";

const RELEASE: &str = "8.8.1";

/// What it does.
const SCRIPT: &str = include_str!("oidc_provider.mjs");

pub(super) fn start(place: &Place) -> Result<Service> {
    let library = library()?;
    let port = free_port()?;
    let script = place.write("provider.mjs", SCRIPT)?;
    let mut command = Command::new("node");
    command.args([script, library, port.to_string()]);
    let process = place.serve(NAME, &command, port)?;
    Ok(Service {
        name: NAME.to_owned(),
        version: format!("{NAME} {RELEASE}"),
        url: format!("http://127.0.0.1:{port}"),
        credentials: vec![("client_secret".to_owned(), "a secret of this server/1".to_owned())],
        processes: vec![process],
    })
}

/// The library; it stays from one start to the next, because installing takes a while.
fn library() -> Result<String> {
    let folder = repository_root().join("target").join(format!("{NAME}-{RELEASE}"));
    let library = folder.join("node_modules/oidc-provider/lib/index.js");
    if !library.exists() {
        println!("installing {NAME} {RELEASE}");
        let mut install = Command::new("npm");
        install.args(["install", "--no-audit", "--no-fund", "--silent", "--prefix"]);
        process::output(install.arg(&folder).arg(format!("{NAME}@{RELEASE}")))?;
    }
    Ok(library.display().to_string())
}
