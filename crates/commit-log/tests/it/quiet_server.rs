//! A log that a server keeps, where nothing happens, in virtual time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use commit_log::served::{Connection, ServedCommitLog};
use commit_log::{CommitLog, CommitLogError};
use futures_util::StreamExt;
use futures_util::stream::{BoxStream, pending};
use model::testing::put;
use model::wire::{Reply, Request};
use model::{Entry, WorkspaceId};
use parking_lot::Mutex;
use tokio::time::{Instant, timeout};

use super::slot_log::genesis;
use super::stores::TokioClock;

/// A server whose pushes are all lost.
#[derive(Debug, Default)]
struct Mute {
    asked: AtomicU32,
    entries: Mutex<Vec<Entry>>,
}

#[async_trait]
impl Connection for Mute {
    fn describe(&self) -> String {
        "a server without a voice".to_owned()
    }

    async fn call(&self, _: WorkspaceId, request: Request) -> Result<Reply, CommitLogError> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        Ok(match request {
            Request::Entries { since, .. } => {
                let entries = self.entries.lock();
                Reply::Entries(entries.iter().filter(|entry| entry.seq > since).cloned().collect())
            }
            _ => Reply::Subscribed,
        })
    }

    fn events(&self, _: WorkspaceId) -> BoxStream<'static, Entry> {
        pending().boxed()
    }
}

#[tokio::test(start_paused = true)]
async fn quiet_server_is_asked_twice_in_a_minute_and_a_lost_push_costs_half_a_minute() {
    let server = Arc::new(Mute::default());
    let clock = Arc::new(TokioClock::default());
    let log = ServedCommitLog::with_genesis(server.clone(), clock, genesis());
    let mut stream = log.subscribe(0).await.expect("subscribes");
    let mut previous = genesis().head();
    for op in 1..4 {
        server.asked.store(0, Ordering::Relaxed);
        let hour = Duration::from_secs(3600);
        timeout(hour, stream.next()).await.expect_err("nothing was said");
        let asked = server.asked.load(Ordering::Relaxed);
        assert!((100..125).contains(&asked), "{asked}");
        let commit = model::testing::commit(op, vec![put(op, 0, "a name")]);
        let entry = Entry { seq: previous.seq + 1, previous: previous.hash, commit };
        previous = entry.head();
        server.entries.lock().push(entry);
        let start = Instant::now();
        let heard = stream.next().await.expect("no end").expect("an entry");
        assert_eq!(heard.head(), previous);
        assert!(start.elapsed() <= Duration::from_secs(30), "{:?}", start.elapsed());
    }
}
