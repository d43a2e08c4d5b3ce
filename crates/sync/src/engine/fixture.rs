//! An engine for tests of single steps: no time passes, and nothing is random; and what tests of more steps put in the place
//! of that.

pub(super) mod room;

use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use commit_log::serverless::slot_log::SlotCommitLog;
use content::{DeviceKeys, Transform};
use futures_util::FutureExt;
use model::entry::Mode;
use model::{
    ChunkId, ChunkRef, Clock, Content, DeviceId, Genesis, Name, NodeId, NodeKind, NodeRecord,
    Random, Timestamp,
};
use storage::{ContentStore, ObjectStore};

use crate::engine::{Engine, EngineOptions, Environment};
use crate::file_system::native::NativeFileSystem;
use crate::prepare::DeltaBudget;
use crate::scan::Scope;
use crate::state::State;
use crate::workers::Workers;

/// A clock that stands still, and dice that always fall the same.
#[derive(Debug)]
pub(super) struct Stopped;

impl Clock for Stopped {
    fn now(&self) -> Timestamp {
        Timestamp::default()
    }

    fn elapsed(&self) -> Duration {
        Duration::ZERO
    }

    fn sleep(&self, _: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(std::future::ready(()))
    }
}

impl Random for Stopped {
    fn fill(&self, bytes: &mut [u8]) {
        bytes.fill(7);
    }
}

/// Dice that never fall the same twice.
#[derive(Debug, Default)]
pub(super) struct Counting(AtomicU64);

impl Counting {
    /// Begins at a throw, so that several of them can be kept apart.
    pub(super) fn from(number: u64) -> Self {
        Self(number.into())
    }
}

impl Random for Counting {
    fn fill(&self, bytes: &mut [u8]) {
        let number = self.0.fetch_add(1, Ordering::Relaxed);
        blake3::Hasher::new().update(&number.to_le_bytes()).finalize_xof().fill(bytes);
    }
}

/// The time of a runtime that is paused: it stands still while there is something to do and leaps when there is not.
#[derive(Debug)]
pub(super) struct Leaping(tokio::time::Instant);

impl Default for Leaping {
    fn default() -> Self {
        Self(tokio::time::Instant::now())
    }
}

impl Clock for Leaping {
    fn now(&self) -> Timestamp {
        let seconds = self.elapsed().as_secs() as i64;
        Timestamp { seconds: 1_800_000_000 + seconds, nanoseconds: 0 }
    }

    fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }

    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(tokio::time::sleep(duration))
    }
}

/// The first entry of a plain workspace.
pub(super) fn genesis() -> Genesis {
    Genesis {
        name: "notes".to_owned(),
        mode: Mode::Plain,
        created: Timestamp::default(),
        content_key: [1; 32],
    }
}

/// Makes an engine over a folder, and over a log that nobody has asked yet.
pub(super) fn engine(folder: &Path, store: &Path, state: State) -> Engine {
    let store = storage::open(&format!("file:{}", store.display())).expect("opens");
    engine_over(folder, store, state)
}

/// Makes an engine over a folder and any store.
pub(super) fn engine_over(folder: &Path, store: Arc<dyn ObjectStore>, state: State) -> Engine {
    engine_of(folder, store, state, genesis(), None)
}

/// Makes the engine of a workspace, as the device that has these keys or else device 2.
pub(super) fn engine_of(
    folder: &Path,
    store: Arc<dyn ObjectStore>,
    state: State,
    genesis: Genesis,
    keys: Option<DeviceKeys>,
) -> Engine {
    let environment = Environment {
        file_system: Arc::new(NativeFileSystem::open(folder).expect("opens")),
        log: Arc::new(SlotCommitLog::with_genesis(store.clone(), Arc::new(Stopped), genesis)),
        store: Arc::new(ContentStore::new(store)),
        clock: Arc::new(Stopped),
        random: Arc::new(Stopped),
        workers: Workers::inline(),
    };
    let options = EngineOptions {
        device: keys.as_ref().map_or(DeviceId::from_bytes([2; 16]), |keys| keys.identity.device),
        device_name: "laptop".to_owned(),
        allow_mass_delete: false,
        transform: Transform::Zstd { level: 1 },
        deltas: DeltaBudget::default(),
        keys,
    };
    Engine::open(environment, state, options).expect("opens")
}

/// Makes the record of a file in the root.
pub(super) fn record(name: &str, size: u32) -> NodeRecord {
    let chunk = ChunkRef { id: ChunkId::from_bytes([3; 32]), length: size };
    let content = Content { size: size.into(), chunk_size: 16_384, depth: 0, chunks: vec![chunk] };
    NodeRecord {
        parent: NodeId::ROOT,
        name: Name::new(name).expect("a valid name"),
        mode: 0o644,
        modified: Timestamp::default(),
        kind: NodeKind::File(content),
        conflict: None,
    }
}

/// Scans the folder.
pub(super) fn look(engine: &mut Engine, scope: &Scope) {
    engine.look(scope).now_or_never().expect("nothing to wait for").expect("looks");
}
