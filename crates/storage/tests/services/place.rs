//! Where the servers are.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use storage::{Credentials, ObjectStore, Opening, open_with};

/// A server, and how to sign in to it.
#[derive(Debug, Clone)]
pub(crate) struct Server {
    pub(crate) url: String,
    pub(crate) credentials: Credentials,
}

/// What takes Go to build, so that the test run does without it; `cargo xtask services test` has it.
const ON_DEMAND: &str = "fake-gcs";

/// The servers of these names, without the one that is started on demand only, where it was not.
pub(crate) fn started<'a>(names: &[&'a str]) -> Vec<&'a str> {
    let is_started = |name: &&&str| **name != ON_DEMAND || find(name).is_some();
    let (started, rest): (Vec<&str>, Vec<&str>) = names.iter().partition(is_started);
    for name in rest {
        eprintln!("NOT TESTED: {name}, which was not started");
    }
    started
}

/// Finds the server of this name in the file that `cargo xtask services` wrote.
pub(crate) fn server(name: &str) -> Server {
    find(name).unwrap_or_else(|| panic!("no service '{name}' was started"))
}

fn find(name: &str) -> Option<Server> {
    let path = std::env::var("SYNCLINE_SERVICES").expect(
        "SYNCLINE_SERVICES is not set: `cargo xtask services start`, then `cargo xtask services env`",
    );
    let text = std::fs::read_to_string(&path).unwrap();
    let state: serde_json::Value = serde_json::from_str(&text).unwrap();
    let services = state["services"].as_array().unwrap();
    let service = services.iter().find(|service| service["name"] == name)?;
    let mut credentials = Credentials::none();
    for (name, value) in service["credentials"].as_object().unwrap() {
        credentials.set(name, value.as_str().unwrap()).unwrap();
    }
    Some(Server { url: service["url"].as_str().unwrap().to_owned(), credentials })
}

impl Server {
    /// The address of a store that no other test uses.
    pub(crate) fn fresh_url(&self) -> String {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}-{number}", std::process::id());
        match self.url.split_once('?') {
            Some((path, query)) => format!("{path}/{name}?{query}"),
            None => format!("{}/{name}", self.url),
        }
    }

    /// Opens a store that no other test uses.
    pub(crate) fn fresh(&self) -> Arc<dyn ObjectStore> {
        self.open(&self.fresh_url(), Opening::CreateIfMissing).unwrap()
    }

    pub(crate) fn open(
        &self,
        url: &str,
        opening: Opening,
    ) -> storage::Result<Arc<dyn ObjectStore>> {
        open_with(url, &self.credentials, opening)
    }
}
