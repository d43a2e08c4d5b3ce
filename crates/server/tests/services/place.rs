//! The PostgreSQL and the brokers of these tests.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use server::Broker;
use server::metadata::postgres::{Config, Postgres};
use xtask::services::{Services, VARIABLE};

/// The tests share a server, and some do terrible things to it, so one goes after the other.
static ALONE: Mutex<()> = Mutex::new(());

/// How long anything here may take that does come about.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// How the service is called.
pub(crate) const NAME: &str = "postgresql";

/// The server, for one test alone; left to the next one as it was.
pub(crate) struct Place {
    pub(crate) running: Services,
    _alone: MutexGuard<'static, ()>,
}

impl Place {
    #[expect(clippy::disallowed_methods, reason = "the variable is how tests find servers")]
    pub(crate) fn take() -> Self {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let path = std::env::var(VARIABLE)
            .expect("SYNCLINE_SERVICES is not set: `cargo xtask services test` sets it");
        let running = Services::read(Path::new(&path)).unwrap();
        let mut place = Self { running, _alone: alone };
        for name in ["rabbitmq", "nats"] {
            place.running.revive(name).unwrap();
        }
        place.wait_until_it_answers();
        place
    }

    /// A server that was killed listens before it has read its log again.
    #[expect(clippy::disallowed_methods, reason = "the server is real, and so is the time")]
    pub(crate) fn wait_until_it_answers(&self) {
        let start = Instant::now();
        while let Err(error) = Postgres::open_reader(&self.config()) {
            assert!(start.elapsed() < PATIENCE, "{error}");
        }
    }

    /// What leads to the server.
    pub(crate) fn config(&self) -> Config {
        let service = self.running.service(NAME).unwrap();
        let mut config: Config = service.url.parse().unwrap();
        config.password(service.credential("password").unwrap());
        config
    }

    /// The brokers that run, each with its name and what leads to it.
    pub(crate) fn brokers(&self) -> [(&'static str, Broker); 2] {
        ["rabbitmq", "nats"].map(|name| {
            let service = self.running.service(name).unwrap();
            (name, Broker::from_url(&service.url, None).unwrap())
        })
    }

    pub(crate) fn freeze(&self) {
        self.running.freeze(NAME).unwrap();
    }

    pub(crate) fn thaw(&self) {
        self.running.thaw(NAME).unwrap();
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        for name in [NAME, "rabbitmq", "nats"] {
            let _ = self.running.thaw(name);
            let _ = self.running.revive(name);
        }
    }
}
