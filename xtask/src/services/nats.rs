//! NATS with JetStream, for everybody on loopback.

use std::process::Command;

use super::Service;
use super::place::{Place, free_port, version};
use crate::failure::Result;

pub(super) fn start(place: &Place) -> Result<Service> {
    let port = free_port()?;
    let data = place.make_folder("data", "root")?;
    let mut command = Command::new("nats-server");
    command.args(["--addr", "127.0.0.1", "--port", &port.to_string(), "--jetstream"]);
    command.args(["--store_dir", &data]);
    let (certificate, key) = place.certificate()?;
    // Whoever does not ask for TLS is served, too.
    let tls = format!(
        "tls {{ cert_file: \"{certificate}\", key_file: \"{key}\" }}\nallow_non_tls: true\n"
    );
    command.args(["--config", &place.write("nats.conf", &tls)?]);
    let process = place.serve("nats", &command, port)?;
    Ok(Service {
        name: "nats".to_owned(),
        version: version("nats-server", "--version"),
        url: format!("nats://127.0.0.1:{port}"),
        credentials: vec![
            ("tls_url".to_owned(), format!("tls://localhost:{port}")),
            ("certificate_file".to_owned(), certificate),
        ],
        processes: vec![process],
    })
}
