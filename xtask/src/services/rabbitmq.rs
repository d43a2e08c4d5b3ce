//! RabbitMQ: a node of its own, with throw-away data.

use std::os::unix::fs::symlink;
use std::process::Command;

use super::Service;
use super::place::{Place, free_port};
use crate::failure::{Context, Result};
use crate::install::package_version;

/// The program itself: what stands in the path changes to another user first, which owns another folder.
pub(super) const PROGRAM: &str = "/usr/lib/rabbitmq/bin/rabbitmq-server";

pub(super) fn start(place: &Place) -> Result<Service> {
    let (port, tls_port) = (free_port()?, free_port()?);
    let (nodes_port, names_port) = (free_port()?, free_port()?);
    // The registry of nodes would start by itself, but outlive everything. By this name it is known as ours.
    let names = place.path("epmd");
    symlink("/usr/bin/epmd", &names).context(&names)?;
    let mut command = Command::new(&names);
    command.args(["-address", "127.0.0.1", "-port", &names_port.to_string()]);
    let names_process = place.serve("names", &command, names_port)?;
    let home = place.make_folder("home", "root")?;
    let (certificate, key) = place.certificate()?;
    let configuration = place.write(
        "rabbitmq.conf",
        &format!(
            "listeners.tcp.local = 127.0.0.1:{port}\nlisteners.ssl.local = 127.0.0.1:{tls_port}\n\
             ssl_options.certfile = {certificate}\nssl_options.keyfile = {key}\n\
             ssl_options.verify = verify_none\ndisk_free_limit.absolute = 50MB\n"
        ),
    )?;
    let plugins = place.write("plugins", "[].\n")?;
    let mut command = Command::new(PROGRAM);
    // It does not mean anything but that this process is ours.
    command.args(["-syncline", &home]);
    command
        .env("HOME", &home)
        .env("ERL_EPMD_PORT", names_port.to_string())
        .env("ERL_EPMD_ADDRESS", "127.0.0.1")
        .env("RABBITMQ_CONFIG_FILE", configuration)
        .env("RABBITMQ_CONF_ENV_FILE", "/dev/null")
        .env("RABBITMQ_DIST_PORT", nodes_port.to_string())
        .env("RABBITMQ_ENABLED_PLUGINS_FILE", plugins)
        .env("RABBITMQ_LOGS", "-")
        .env("RABBITMQ_MNESIA_BASE", place.path("data"))
        .env("RABBITMQ_NODENAME", format!("syncline{port}@localhost"))
        .env("RABBITMQ_PID_FILE", place.path("process-id"));
    let process = place.serve("rabbitmq", &command, port)?;
    Ok(Service {
        name: "rabbitmq".to_owned(),
        version: format!("RabbitMQ {}", package_version("rabbitmq-server")),
        url: format!("amqp://127.0.0.1:{port}/%2f"),
        credentials: vec![
            ("user".to_owned(), "guest".to_owned()),
            ("password".to_owned(), "guest".to_owned()),
            ("tls_url".to_owned(), format!("amqps://localhost:{tls_port}/%2f")),
            ("certificate_file".to_owned(), certificate),
        ],
        // In the order in which they start again: a node without a registry would start one that outlives everything.
        processes: vec![names_process, process],
    })
}
