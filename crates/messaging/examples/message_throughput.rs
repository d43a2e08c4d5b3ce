//! How many calls and casts go through each transport, and how long a call takes, all in one run.
//!
//! `cargo xtask services start rabbitmq nats`, then with what `cargo xtask services env` prints:
//! `cargo run --release -p messaging --features amqp,nats,testing,websocket --example message_throughput -- SECONDS`. Without running services
//! it measures memory and the WebSocket only, and says so.

#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a program for the console")]
#![expect(clippy::disallowed_methods, reason = "it is told by a variable where the brokers are")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use axum::Router;
use axum::extract::WebSocketUpgrade;
use axum::routing::get;
use axum::serve::ListenerExt;
use messaging::amqp::{AmqpOptions, AmqpTransport};
use messaging::conformance::world::{Dice, RealClock, fresh_name, messenger};
use messaging::envelope::Kind;
use messaging::nats::{NatsOptions, NatsTransport};
use messaging::websocket::{Gateway, Guard, WebSocketOptions, WebSocketTransport};
use messaging::{
    Context, Fault, InProcessTransport, MessengerOptions, Name, ServeOptions, Transport,
};
use tokio::time::Instant;

messaging::interface! {
    /// What is measured.
    #[interface(name = "echo", version = 1, proxy = EchoProxy, dispatcher = EchoDispatcher)]
    pub trait Echo {
        /// Returns what it gets.
        #[call]
        async fn echo(&self, bytes: Vec<u8>) -> Vec<u8>;
        /// Counts.
        #[cast(timeout_ms = 60_000)]
        async fn count(&self, bytes: Vec<u8>);
    }
}

struct Server {
    counted: Arc<AtomicU64>,
}

impl Echo for Server {
    async fn echo(&self, _context: &Context, bytes: Vec<u8>) -> Result<Vec<u8>, Fault> {
        Ok(bytes)
    }

    async fn count(&self, _context: &Context, _bytes: Vec<u8>) -> Result<(), Fault> {
        self.counted.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

struct Anything;

#[async_trait]
impl Guard for Anything {
    async fn may_send(&self, _kind: Kind, _target: &Name, _method: &str) -> bool {
        true
    }

    async fn may_listen(&self, _topic: &Name) -> bool {
        true
    }
}

/// One transport, with an end that asks and an end that serves.
struct Measured {
    name: &'static str,
    client: Arc<dyn Transport>,
    server: Arc<dyn Transport>,
}

async fn websocket() -> Measured {
    let behind = InProcessTransport::default();
    let clock = Arc::new(RealClock::default());
    let gateway =
        Gateway::start(Arc::new(behind.clone()), clock.clone(), Arc::new(Dice::default()));
    let gateway = gateway.await.unwrap();
    let upgrade =
        async move |upgrade: WebSocketUpgrade| gateway.upgrade(upgrade, Arc::new(Anything));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("ws://{}/", listener.local_addr().unwrap());
    let app = Router::new().route("/", get(upgrade));
    // Small messages one after the other: without this, each waits for the acknowledgement of the one before.
    let listener = listener.tap_io(|socket| socket.set_nodelay(true).unwrap());
    tokio::spawn(async move { axum::serve(listener, app).await });
    let options = WebSocketOptions { url, authorization: None };
    let device = WebSocketTransport::new(options, clock, Arc::new(Dice::default())).unwrap();
    Measured { name: "websocket", client: Arc::new(device), server: Arc::new(behind) }
}

/// Returns the transports of the brokers that run as services.
async fn brokers() -> Vec<Measured> {
    let Ok(path) = std::env::var("SYNCLINE_SERVICES") else {
        println!("no brokers: SYNCLINE_SERVICES names no file");
        return Vec::new();
    };
    let state: serde_json::Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let mut measured = Vec::new();
    for service in state["services"].as_array().unwrap() {
        let url = service["url"].as_str().unwrap();
        match service["name"].as_str().unwrap() {
            "rabbitmq" => {
                let options = AmqpOptions::new(url, "guest", "guest");
                let open = || {
                    let transport = AmqpTransport::new(options.clone(), Arc::new(Dice::default()));
                    Arc::new(transport.unwrap()) as Arc<dyn Transport>
                };
                measured.push(Measured { name: "rabbitmq", client: open(), server: open() });
            }
            "nats" => {
                let mut ends: Vec<Arc<dyn Transport>> = Vec::new();
                for _ in 0..2 {
                    let dice = Arc::new(Dice::default());
                    let transport = NatsTransport::new(NatsOptions::new(url), dice).await;
                    ends.push(Arc::new(transport.unwrap()));
                }
                let (client, server) = (ends.remove(0), ends.remove(0));
                measured.push(Measured { name: "nats", client, server });
            }
            _ => {}
        }
    }
    measured
}

/// Runs `callers` that do one thing after another for a time, and returns how long each took, sorted.
async fn repeat(callers: u64, time: Duration, proxy: &EchoProxy, is_cast: bool) -> Vec<Duration> {
    let is_over = Arc::new(AtomicBool::new(false));
    let running: Vec<_> = (0..callers)
        .map(|_| {
            let (proxy, is_over) = (proxy.clone(), Arc::clone(&is_over));
            tokio::spawn(async move {
                let mut took = Vec::new();
                while !is_over.load(Ordering::Relaxed) {
                    let (start, bytes) = (Instant::now(), vec![7; 200]);
                    if is_cast {
                        proxy.count(bytes).await.unwrap();
                    } else {
                        proxy.echo(bytes).await.unwrap();
                    }
                    took.push(start.elapsed());
                }
                took
            })
        })
        .collect();
    tokio::time::sleep(time).await;
    is_over.store(true, Ordering::Relaxed);
    let mut took = Vec::new();
    for caller in running {
        took.extend(caller.await.unwrap());
    }
    took.sort_unstable();
    took
}

async fn measure(measured: Measured, time: Duration) {
    let service = fresh_name("throughput");
    let server = messenger(measured.server, MessengerOptions::default()).await;
    let counted = Arc::new(AtomicU64::new(0));
    let handler = Arc::new(EchoDispatcher(Server { counted: Arc::clone(&counted) }));
    let options = ServeOptions { concurrency: 64, ..ServeOptions::default() };
    let _serving = server.serve(&service, handler, options).await.unwrap();
    let client = messenger(measured.client, MessengerOptions::default()).await;
    let proxy = EchoProxy::at(Arc::new(client), service);
    for (what, callers, is_cast) in [("call", 1, false), ("call", 64, false), ("cast", 64, true)] {
        let start = Instant::now();
        let took = repeat(callers, time, &proxy, is_cast).await;
        let sent = u64::try_from(took.len()).unwrap();
        // A cast counts when it is done, not when it is sent.
        while is_cast && counted.load(Ordering::Relaxed) < sent {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let seconds = start.elapsed().as_secs_f64();
        let at = |share: usize| took[(took.len() - 1) * share / 1000].as_secs_f64() * 1e3;
        println!(
            "{},{what},{callers},{sent},{:.0},{:.3},{:.3},{:.3}",
            measured.name,
            f64::from(u32::try_from(sent).unwrap()) / seconds,
            at(500),
            at(990),
            at(999)
        );
    }
}

#[tokio::main]
async fn main() {
    let seconds = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(3);
    let time = Duration::from_secs(seconds);
    let memory = Arc::new(InProcessTransport::default());
    let memory = Measured { name: "in-process", client: memory.clone(), server: memory };
    let mut all = vec![memory, websocket().await];
    all.extend(brokers().await);
    println!("transport,call,callers,number,per_second,p50_ms,p99_ms,p999_ms");
    for measured in all {
        measure(measured, time).await;
    }
}
