//! RabbitMQ.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::StreamExt;
use messaging::amqp::{AmqpOptions, AmqpTransport};
use messaging::conformance::harsh::{self, Broker};
use messaging::conformance::world::{Dice, fresh_name, within};
use messaging::conformance::{self, Fixture, WAITING_MAX};
use messaging::transport::{Incoming, Notice, Parcel, Route, Source, Verdict};
use messaging::{MessagingError, Name, OperationId, Transport};
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

/// Casts so many messages one after the other, and returns the numbers of those that the broker says it keeps.
async fn send(
    client: Arc<dyn Transport>,
    service: Name,
    numbers: std::ops::Range<u64>,
) -> BTreeSet<u64> {
    let route = Route::Cast(service);
    let mut kept = BTreeSet::new();
    for number in numbers {
        let bytes = Bytes::copy_from_slice(&number.to_le_bytes());
        let operation = OperationId::from_bytes(u128::from(number).to_le_bytes());
        match client.send(&route, Parcel { bytes, operation, expires_in: None }).await {
            Ok(()) => assert!(kept.insert(number)),
            Err(MessagingError::Full { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
    kept
}

/// Takes what is in a queue until nothing more comes for two seconds and `is_over` says that nobody sends.
async fn take(incoming: &mut Incoming, is_over: impl Fn() -> bool) -> BTreeSet<u64> {
    let mut taken = BTreeSet::new();
    loop {
        let was_over = is_over();
        match tokio::time::timeout(Duration::from_secs(2), incoming.next()).await {
            Ok(Some(Notice::Delivery(delivery))) => {
                taken.insert(u64::from_le_bytes(delivery.bytes[..].try_into().unwrap()));
                delivery.settle(Verdict::Done).await.unwrap();
            }
            Ok(notice) => panic!("its channel broke: {notice:?}"),
            Err(_) if was_over => return taken,
            Err(_) => {}
        }
    }
}

/// Several threads send on one connection more than the queue has room for, which takes some and refuses some as it is emptied.
async fn whoever_is_refused_hears_of_it_and_nobody_else(rabbit: &Rabbit) {
    const SENDERS: u64 = 32;
    const SENT_BY_EACH: u64 = 100;
    let service = fresh_name("own");
    let (client, server) = (rabbit.client().await, rabbit.server().await);
    let source = Source::Casts(service.clone());
    let connecting = async {
        loop {
            match server.receive(&source, 16).await {
                Ok(incoming) => break incoming,
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
    };
    let mut incoming = within(60, "connecting", connecting).await;
    let sending = (0..SENDERS).map(|sender| {
        let numbers = sender * SENT_BY_EACH..(sender + 1) * SENT_BY_EACH;
        tokio::spawn(send(Arc::clone(&client), service.clone(), numbers))
    });
    let sending: Vec<_> = sending.collect();
    let is_over = || sending.iter().all(tokio::task::JoinHandle::is_finished);
    let taken = within(180, "taking all", take(&mut incoming, is_over)).await;
    let mut kept = BTreeSet::new();
    for sender in sending {
        kept.append(&mut sender.await.unwrap());
    }
    assert!((kept.len() as u64) < SENDERS * SENT_BY_EACH, "nothing was refused");
    let differences: Vec<_> = kept.symmetric_difference(&taken).take(10).collect();
    assert!(kept == taken, "{differences:?}");
}

/// One broker for all: to start it takes longer than to ask it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rabbitmq_conforms_and_keeps_what_it_accepted() {
    let rabbit = Rabbit::start();
    conformance::run_all(&rabbit).await;
    whoever_is_refused_hears_of_it_and_nobody_else(&rabbit).await;
    harsh::what_waits_survives_the_death_of_the_broker(&rabbit).await;
    harsh::what_was_accepted_survives_the_death_of_the_broker(&rabbit).await;
    harsh::what_was_accepted_survives_a_broker_that_stands_still(&rabbit).await;
    harsh::a_broker_that_has_lost_its_data_is_used_again(&rabbit).await;
}
