//! Throw-away databases on a real server, for the stories.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio_postgres::Config;

use super::Postgres;
use crate::metadata::conformance::{Damage, Database};
use crate::metadata::{Metadata, Result};

/// Counts the databases of this process.
static NUMBER: AtomicU64 = AtomicU64::new(0);

/// A database that is removed with this value.
#[derive(Debug)]
pub struct ThrowAway {
    server: Config,
    config: Config,
    name: String,
}

impl ThrowAway {
    /// Makes one on the server that this configuration leads to.
    ///
    /// # Errors
    /// [`crate::metadata::MetadataError`].
    pub fn create(server: &Config) -> Result<Arc<Self>> {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("story_{}_{number}", std::process::id());
        Postgres::open_reader(server)?.run(&format!("CREATE DATABASE {name}"))?;
        let mut config = server.clone();
        config.dbname(&name);
        Ok(Arc::new(Self { server: server.clone(), config, name }))
    }

    /// Returns what leads to it.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Returns its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Runs SQL on it.
    ///
    /// # Errors
    /// [`crate::metadata::MetadataError`].
    pub fn run(&self, sql: &str) -> Result<()> {
        Postgres::open_reader(&self.config)?.run(sql)
    }
}

impl Drop for ThrowAway {
    fn drop(&mut self) {
        let sql = format!("DROP DATABASE {} WITH (FORCE)", self.name);
        let dropped = Postgres::open_reader(&self.server).and_then(|server| server.run(&sql));
        if let Err(error) = dropped {
            tracing::warn!(%error, "a database of a test is left");
        }
    }
}

impl Database for ThrowAway {
    fn open(&self) -> Box<dyn Metadata> {
        Box::new(Postgres::open(&self.config).expect("the server of the tests runs"))
    }

    fn sibling(&self) -> Arc<dyn Database> {
        Self::create(&self.server).expect("the server of the tests runs")
    }

    fn columns(&self) -> BTreeSet<String> {
        let sql = "SELECT table_name || '.' || column_name FROM information_schema.columns
                   WHERE table_schema = current_schema() AND table_name <> 'syncline_schema'";
        let database = Postgres::open_reader(&self.config).expect("the server of the tests runs");
        let columns = database.all(sql, &[], |row| row.try_get(0));
        columns.expect("the server of the tests runs").into_iter().collect()
    }

    fn damage(&self, damage: Damage) {
        let sql = match damage {
            Damage::Entries { seq } => {
                format!("UPDATE entries SET bytes = '\\xff00'::bytea WHERE seq = {seq}")
            }
            Damage::Head { workspace } => format!(
                "UPDATE workspaces SET head_hash = '\\x00'::bytea WHERE name = '{workspace}'"
            ),
        };
        self.run(&sql).expect("the server of the tests runs");
    }

    fn cut_connections(&self) -> bool {
        let sql = format!(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{}'",
            self.name
        );
        let server = Postgres::open_reader(&self.server).expect("the server of the tests runs");
        server.ask(&sql, &[]).expect("the server of the tests runs");
        true
    }
}
