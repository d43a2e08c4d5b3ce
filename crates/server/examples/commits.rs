//! How many commits a second the metadata take: groups of commits into one, a hundred and ten thousand workspaces, each
//! group durable before the next one of its writer begins. The doors and the network are not in it.
//!
//! ```text
//! cargo run --release -p server --example commits -- [SECONDS] [GROUP] [WRITERS]
//! ```
//!
//! By itself it measures SQLite with one writer. With a number of writers it measures PostgreSQL, at which each of them
//! is a server: `cargo xtask services start postgresql` starts one, and the line of `cargo xtask services env` names it.

#![expect(clippy::print_stdout, reason = "what was measured is printed")]
#![expect(clippy::disallowed_methods, reason = "real time is what is measured")]
#![expect(clippy::unwrap_used, reason = "a measurement that cannot go on has failed")]

use std::path::Path;
use std::time::{Duration, Instant};

use model::testing::commit;
use model::{Action, Change, Commit, Genesis, Mode, NodeId, OpId, Random, Timestamp, WorkspaceId};
use server::metadata::Metadata;
use server::metadata::conformance::Database;
use server::metadata::postgres::Config;
use server::metadata::postgres::testing::ThrowAway;
use server::services::sync_service::commit_all;
use server::services::{accounts, workspaces};
use server::{Caller, CommitRequest, Sqlite};
use xtask::services::{Services, VARIABLE};

/// How many bytes the payload of a change has: a name and a short list of chunks.
const PAYLOAD_LENGTH: usize = 160;

/// Bytes that look random and are the same in every run.
#[derive(Debug, Default)]
struct Numbers(std::sync::atomic::AtomicU64);

impl Numbers {
    fn next(&self) -> u64 {
        self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed)
    }
}

impl Random for Numbers {
    fn fill(&self, bytes: &mut [u8]) {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.next().to_le_bytes()).finalize_xof().fill(bytes);
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1).map(|word| word.parse::<u64>().unwrap());
    let seconds = arguments.next().unwrap_or(5);
    let group = arguments.next().unwrap_or(1024) as usize;
    let writers = arguments.next();
    for count in [1, 100, 10_000] {
        let duration = Duration::from_secs(seconds);
        match writers {
            None => {
                let folder = tempfile::tempdir_in("target").unwrap();
                let database = Sqlite::open(&folder.path().join("metadata.sqlite")).unwrap();
                measure(count, duration, group, vec![Box::new(database)]);
            }
            Some(writers) => {
                let database = ThrowAway::create(&server()).unwrap();
                let writers = (0..writers).map(|_| database.open()).collect();
                measure(count, duration, group, writers);
            }
        }
    }
}

/// Finds the PostgreSQL that runs.
fn server() -> Config {
    let path = std::env::var(VARIABLE).expect("`cargo xtask services env` says how to set it");
    let running = Services::read(Path::new(&path)).unwrap();
    let service = running.service("postgresql").unwrap();
    let mut config: Config = service.url.parse().unwrap();
    let password = service.credentials.iter().find(|(name, _)| name == "password");
    config.password(&password.unwrap().1);
    config
}

fn measure(count: usize, duration: Duration, group: usize, mut writers: Vec<Box<dyn Metadata>>) {
    let random = Numbers::default();
    let places = furnish(&mut *writers[0], &random, count);
    let (start, number) = (Instant::now(), writers.len());
    let write = |mut metadata: Box<dyn Metadata>| {
        let mut done = 0;
        while start.elapsed() < duration {
            let place = || places[random.next() as usize * 7919 % count];
            let requests = (0..group).map(|_| request(&place(), &random)).collect();
            let outcomes = commit_all(&mut *metadata, requests);
            assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
            done += group;
        }
        done
    };
    let done: usize = std::thread::scope(|scope| {
        let write = &write;
        let threads: Vec<_> =
            writers.into_iter().map(|metadata| scope.spawn(move || write(metadata))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    let rate = done as f64 / start.elapsed().as_secs_f64();
    println!("{count} workspaces, {number} writers, groups of {group}: {rate:.0} commits/s");
}

type Place = (Caller, WorkspaceId);

fn furnish(metadata: &mut dyn Metadata, random: &Numbers, count: usize) -> Vec<Place> {
    metadata.begin().unwrap();
    let mut places = Vec::with_capacity(count);
    for number in 0..count {
        // An account owns a thousand workspaces at most.
        if number % 100 == 0 {
            let name = format!("account{number}");
            let account = accounts::create_account(metadata, &name, "!", 0).unwrap();
            let enrolled = accounts::enrol_device(metadata, random, account, "d", 0).unwrap();
            places.push((enrolled.0, WorkspaceId::from_bytes([0; 16])));
        } else {
            places.push(places[number - 1]);
        }
        let genesis = Genesis {
            name: format!("workspace{number}"),
            mode: Mode::Plain,
            created: Timestamp::default(),
            content_key: [7; 32],
        };
        let caller = places[number].0;
        places[number].1 = workspaces::create(metadata, &caller, &genesis).unwrap().0.id;
    }
    metadata.commit().unwrap();
    places
}

fn request((caller, workspace): &Place, random: &Numbers) -> CommitRequest {
    let mut payload = vec![0; PAYLOAD_LENGTH];
    random.fill(&mut payload);
    let id: [u8; 16] = model::environment::random_bytes(random);
    let change = Change { node: NodeId::from_bytes(id), base: 0, action: Action::Put(payload) };
    let op_id = OpId::from_bytes(model::environment::random_bytes(random));
    let commit = Commit { op_id, device: caller.device, ..commit(1, vec![change]) };
    CommitRequest { caller: *caller, workspace: *workspace, commit }
}
