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
    let process_id = place.spawn("azurite", &mut command)?;
    place.wait_for(process_id, port)?;
    Ok(Service {
        name: "azurite",
        version: format!("Azurite {RELEASE}"),
        url: format!(
            "azblob:cloud/store?account={ACCOUNT}&endpoint=http://127.0.0.1:{port}/{ACCOUNT}"
        ),
        credentials: vec![("secret_key", KEY.to_owned())],
        process_ids: vec![process_id],
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
