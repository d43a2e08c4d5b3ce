//! Azurite: Microsoft's own server that speaks the protocol of Azure Blob Storage, from npm.

use std::path::Path;
use std::process::Command;

use super::Service;
use super::place::{Place, free_port};
use crate::failure::Result;
use crate::{process, repository_root};

const RELEASE: &str = "3.35.0";

/// The account that every Azurite has, and its key, which stand in its documents.
const ACCOUNT: &str = "devstoreaccount1";
const KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

pub(super) fn start(place: &Place) -> Result<Service> {
    let program = program()?;
    let port = free_port()?;
    let mut command = Command::new("node");
    command.arg(program).args(["--blobHost", "127.0.0.1", "--blobPort", &port.to_string()]);
    command.args(["--location", &place.path("data"), "--silent", "--skipApiVersionCheck"]);
    let process = place.serve("azurite", &command, port)?;
    Ok(Service {
        name: "azurite".to_owned(),
        version: format!("Azurite {RELEASE}"),
        url: format!(
            "azblob:cloud/store?account={ACCOUNT}&endpoint=http://127.0.0.1:{port}/{ACCOUNT}"
        ),
        credentials: vec![("secret_key".to_owned(), KEY.to_owned())],
        processes: vec![process],
    })
}

/// The program; it stays from one start to the next, because installing takes a while.
fn program() -> Result<String> {
    let folder = repository_root().join("target").join(format!("azurite-{RELEASE}"));
    let program = folder.join("node_modules/azurite/dist/src/blob/main.js");
    if !Path::new(&program).exists() {
        println!("installing Azurite {RELEASE}");
        let mut install = Command::new("npm");
        install.args(["install", "--no-audit", "--no-fund", "--silent", "--prefix"]);
        process::output(install.arg(&folder).arg(format!("azurite@{RELEASE}")))?;
    }
    Ok(program.display().to_string())
}
