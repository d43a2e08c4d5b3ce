//! RabbitMQ.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use async_trait::async_trait;
use messaging::Transport;
use messaging::amqp::{AmqpOptions, AmqpTransport};
use messaging::conformance::harsh::{self, Broker};
use messaging::conformance::world::Dice;
use messaging::conformance::{self, Fixture, WAITING_MAX};
use rustix::process::Signal;

use crate::place::BrokerProcess;

/// A broker, and beside it the small program that its runtime asks for the ports of its nodes.
struct Rabbit {
    process: BrokerProcess,
    _names: BrokerProcess,
}

/// Runs the registry of names in the foreground, so that it ends with the test.
fn names_command(_folder: &Path, ports: &[u16]) -> Command {
    let mut command = Command::new("epmd");
    command.args(["-address", "127.0.0.1", "-port", &ports[0].to_string()]);
    command
}

fn rabbit_command(folder: &Path, ports: &[u16]) -> Command {
    let configuration = folder.join("rabbitmq.conf");
    // Nothing is asked of a disk that others fill.
    let text = "listeners.tcp.local = 127.0.0.1:PORT\ndisk_free_limit.absolute = 50MB\n";
    std::fs::write(&configuration, text.replace("PORT", &ports[0].to_string())).unwrap();
    std::fs::write(folder.join("plugins"), "[].\n").unwrap();
    // The wrapper in the path changes to another user, which owns another folder.
    let mut command = Command::new("/usr/lib/rabbitmq/bin/rabbitmq-server");
    command
        .env("HOME", folder)
        .env("ERL_EPMD_PORT", ports[2].to_string())
        .env("ERL_EPMD_ADDRESS", "127.0.0.1")
        .env("RABBITMQ_CONFIG_FILE", configuration)
        .env("RABBITMQ_CONF_ENV_FILE", "/dev/null")
        .env("RABBITMQ_DIST_PORT", ports[1].to_string())
        .env("RABBITMQ_ENABLED_PLUGINS_FILE", folder.join("plugins"))
        .env("RABBITMQ_LOGS", "-")
        .env("RABBITMQ_MNESIA_BASE", folder.join("data"))
        .env("RABBITMQ_NODENAME", format!("syncline{}@localhost", ports[0]))
        .env("RABBITMQ_PID_FILE", folder.join("process-id"));
    command
}

impl Rabbit {
    fn start() -> Self {
        let names = BrokerProcess::start(&[], 1, names_command);
        let process = BrokerProcess::start(&[names.port], 2, rabbit_command);
        Self { process, _names: names }
    }
}

#[async_trait]
impl Fixture for Rabbit {
    async fn client(&self) -> Arc<dyn Transport> {
        let url = format!("amqp://127.0.0.1:{}/%2f", self.process.port);
        let mut options = AmqpOptions::new(url, "guest", "guest");
        options.waiting_max = WAITING_MAX;
        Arc::new(AmqpTransport::new(options, Arc::new(Dice::default())).unwrap())
    }

    async fn server(&self) -> Arc<dyn Transport> {
        self.client().await
    }
}

#[async_trait]
impl Broker for Rabbit {
    async fn kill(&self) {
        self.process.kill();
    }

    async fn wipe(&self) {
        self.process.wipe();
    }

    async fn start(&self) {
        tokio::task::block_in_place(|| self.process.run());
    }

    async fn pause(&self) {
        self.process.signal(Signal::STOP);
    }

    async fn go_on(&self) {
        self.process.signal(Signal::CONT);
    }
}

/// One broker for all: to start it takes longer than to ask it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rabbitmq_conforms_and_keeps_what_it_accepted() {
    let rabbit = Rabbit::start();
    conformance::run_all(&rabbit).await;
    harsh::what_waits_survives_the_death_of_the_broker(&rabbit).await;
    harsh::what_was_accepted_survives_the_death_of_the_broker(&rabbit).await;
    harsh::what_was_accepted_survives_a_broker_that_stands_still(&rabbit).await;
    harsh::a_broker_that_has_lost_its_data_is_used_again(&rabbit).await;
}
