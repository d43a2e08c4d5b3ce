//! fake-gcs-server: a server that speaks the protocol of Google Cloud Storage, built by Go.

use std::process::Command;

use super::Service;
use super::place::{Place, free_port};
use crate::failure::Result;
use crate::{process, repository_root};

/// Its name here.
pub(super) const NAME: &str = "fake-gcs";

const PACKAGE: &str = "github.com/fsouza/fake-gcs-server";
const RELEASE: &str = "v1.56.1";

/// The only bucket: a folder in the folder of data to begin with.
const BUCKET: &str = "cloud";

pub(super) fn start(place: &Place) -> Result<Service> {
    let program = program()?;
    let port = free_port()?;
    let data = place.path("data");
    std::fs::create_dir_all(format!("{data}/{BUCKET}"))?;
    let mut command = Command::new(program);
    command.args(["-scheme", "http", "-host", "127.0.0.1", "-port", &port.to_string()]);
    command.args(["-backend", "memory", "-data", &data, "-log-level", "error"]);
    let process = place.serve(NAME, &command, port)?;
    Ok(Service {
        name: NAME.to_owned(),
        version: format!("fake-gcs-server {RELEASE}"),
        url: format!("gcs:{BUCKET}/store?endpoint=http://127.0.0.1:{port}"),
        credentials: Vec::new(),
        processes: vec![process],
    })
}

/// The program; it stays from one start to the next, because building takes a while.
fn program() -> Result<String> {
    let folder = repository_root().join("target").join(format!("fake-gcs-{RELEASE}"));
    let program = folder.join("fake-gcs-server");
    if !program.exists() {
        println!("building fake-gcs-server {RELEASE}");
        let mut install = Command::new("go");
        install.args(["install", &format!("{PACKAGE}@{RELEASE}")]).env("GOBIN", &folder);
        process::output(&mut install)?;
    }
    Ok(program.display().to_string())
}
