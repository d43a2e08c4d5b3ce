//! NATS with JetStream.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use async_trait::async_trait;
use messaging::Transport;
use messaging::conformance::harsh::{self, Broker};
use messaging::conformance::world::Dice;
use messaging::conformance::{self, Fixture, WAITING_MAX};
use messaging::nats::{NatsOptions, NatsTransport};
use rustix::process::Signal;

use crate::place::BrokerProcess;

struct Nats(BrokerProcess);

fn nats_command(folder: &Path, ports: &[u16]) -> Command {
    let mut command = Command::new("nats-server");
    command.args(["--addr", "127.0.0.1", "--port", &ports[0].to_string(), "--jetstream"]);
    command.arg("--store_dir").arg(folder.join("data"));
    command
}

#[async_trait]
impl Fixture for Nats {
    async fn client(&self) -> Arc<dyn Transport> {
        let mut options = NatsOptions::new(format!("nats://127.0.0.1:{}", self.0.port));
        options.waiting_max = WAITING_MAX;
        Arc::new(NatsTransport::new(options, Arc::new(Dice::default())).await.unwrap())
    }

    async fn server(&self) -> Arc<dyn Transport> {
        self.client().await
    }
}

#[async_trait]
impl Broker for Nats {
    async fn kill(&self) {
        self.0.kill();
    }

    async fn wipe(&self) {
        self.0.wipe();
    }

    async fn start(&self) {
        tokio::task::block_in_place(|| self.0.run());
    }

    async fn pause(&self) {
        self.0.signal(Signal::STOP);
    }

    async fn go_on(&self) {
        self.0.signal(Signal::CONT);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nats_conforms_and_keeps_what_it_accepted() {
    let nats = Nats(BrokerProcess::start(&[], 1, nats_command));
    conformance::run_all(&nats).await;
    harsh::what_waits_survives_the_death_of_the_broker(&nats).await;
    harsh::what_was_accepted_survives_the_death_of_the_broker(&nats).await;
    harsh::what_was_accepted_survives_a_broker_that_stands_still(&nats).await;
    harsh::a_broker_that_has_lost_its_data_is_used_again(&nats).await;
}
