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

/// Finds the server of this name in the file that `cargo xtask services` wrote.
pub(crate) fn server(name: &str) -> Server {
    let path = std::env::var("SYNCLINE_SERVICES").expect(
        "SYNCLINE_SERVICES is not set: `cargo xtask services start`, then `cargo xtask services env`",
    );
    let text = std::fs::read_to_string(&path).unwrap();
    let state: serde_json::Value = serde_json::from_str(&text).unwrap();
    let services = state["services"].as_array().unwrap();
    let service = services.iter().find(|service| service["name"] == name);
    let service = service.unwrap_or_else(|| panic!("{path} names no service '{name}'"));
    let mut credentials = Credentials::none();
    for (name, value) in service["credentials"].as_object().unwrap() {
        credentials.set(name, value.as_str().unwrap()).unwrap();
    }
    Server { url: service["url"].as_str().unwrap().to_owned(), credentials }
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
