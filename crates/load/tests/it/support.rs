//! A server in this process, with accounts for devices.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use load::population::{DEVICES_PER_ACCOUNT, PASSWORD, Population, account_names};
use model::{Clock, Random, Timestamp};
use server::{Admin, ServeOptions, serve};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use tokio::time::Instant;

#[derive(Debug)]
struct RealClock(Instant);

impl Clock for RealClock {
    fn now(&self) -> Timestamp {
        Timestamp { seconds: 1_700_000_000, nanoseconds: 0 }
    }

    fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }

    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(tokio::time::sleep(duration))
    }
}

#[derive(Debug)]
struct RealRandom;

impl Random for RealRandom {
    fn fill(&self, bytes: &mut [u8]) {
        getrandom::fill(bytes).expect("the system has randomness");
    }
}

/// A running server, with a runtime of its own so that it can be killed.
pub(crate) struct TestServer {
    folder: TempDir,
    address: SocketAddr,
    runtime: Option<Runtime>,
}

impl TestServer {
    /// Starts a server with accounts for so many devices.
    pub(crate) async fn start(devices: usize) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let mut admin = Admin::open(folder.path()).expect("a data folder");
        for account in account_names(devices, DEVICES_PER_ACCOUNT) {
            let clock = RealClock(Instant::now());
            admin.add(&account, PASSWORD, &clock, &RealRandom).expect("an account");
        }
        drop(admin);
        let (runtime, address) = run(&folder, 0).await;
        Self { folder, address, runtime: Some(runtime) }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Signs devices in.
    pub(crate) async fn population(&self, devices: usize) -> Population {
        let accounts = account_names(devices, DEVICES_PER_ACCOUNT);
        let signed_in =
            Population::enrol(&self.url(), &accounts, devices, DEVICES_PER_ACCOUNT).await;
        signed_in.expect("they sign in")
    }

    /// Drops every task of the server where it stands, and starts it again at the same address.
    pub(crate) async fn kill_and_restart(&mut self) {
        let runtime = self.runtime.take().expect("it runs");
        let halt = move || runtime.shutdown_timeout(Duration::from_secs(10));
        tokio::task::spawn_blocking(halt).await.expect("it halts");
        let (runtime, address) = run(&self.folder, self.address.port()).await;
        (self.runtime, self.address) = (Some(runtime), address);
    }
}

async fn run(folder: &TempDir, port: u16) -> (Runtime, SocketAddr) {
    let clock = Arc::new(RealClock(Instant::now()));
    let mut options = ServeOptions::new(folder.path().to_owned(), clock, Arc::new(RealRandom));
    options.listen = SocketAddr::from(([127, 0, 0, 1], port));
    let runtime = Runtime::new().expect("threads");
    let (ready, is_ready) = oneshot::channel();
    runtime.spawn(async move {
        let ready = |address| ready.send(address).expect("somebody waits");
        serve(options, ready, std::future::pending()).await.expect("it serves");
    });
    let address = is_ready.await.expect("it starts");
    (runtime, address)
}

impl Drop for TestServer {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
