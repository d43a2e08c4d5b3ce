//! Small things for the tests of this room.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use model::{Clock, Genesis, Mode, Random, Timestamp};
use tempfile::TempDir;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use crate::app::App;
use crate::audit::Audit;
use crate::auth::{Caller, hash_password};
use crate::data_folder::DataFolder;
use crate::database::Database;
use crate::files::Files;
use crate::metadata::Metadata;
use crate::services::events::Hub;
use crate::services::news::News;
use crate::services::readers::Readers;
use crate::services::writer::Writer;
use crate::services::{accounts, batch, workspaces};

/// The password of every account.
pub(crate) const PASSWORD: &str = "correct horse battery staple";

/// A source of bytes that never repeats, which is all that tests need of randomness.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Random for Counter {
    fn fill(&self, bytes: &mut [u8]) {
        let number = self.0.fetch_add(1, Ordering::Relaxed);
        let mut reader = blake3::Hasher::new().update(&number.to_le_bytes()).finalize_xof();
        reader.fill(bytes);
    }
}

/// The time of the runtime, which passes when everybody waits where a test says so.
#[derive(Debug)]
pub(crate) struct TokioClock(pub(crate) Instant);

impl Clock for TokioClock {
    fn now(&self) -> Timestamp {
        let elapsed = self.0.elapsed();
        Timestamp { seconds: elapsed.as_secs() as i64, nanoseconds: elapsed.subsec_nanos() }
    }

    fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }

    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(tokio::time::sleep(duration))
    }
}

/// A server without an address, with an audit log: two devices of `ada`, and her plain workspace `home`.
pub(crate) struct TestApp {
    pub(crate) app: Arc<App>,
    pub(crate) devices: [Caller; 2],
    pub(crate) home: Genesis,
    folder: TempDir,
    unused: mpsc::Receiver<()>,
}

impl TestApp {
    pub(crate) fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let data = DataFolder::open(folder.path()).unwrap();
        let mut metadata = Database::Embedded.open(&data).unwrap();
        let (name, created) = ("home".to_owned(), Timestamp::default());
        let home = Genesis { name, mode: Mode::Plain, created, content_key: [7; 32] };
        let random = Arc::new(Counter::default());
        let hash = hash_password(PASSWORD, &*random).unwrap();
        let begin = |metadata: &mut dyn Metadata| {
            let ada = accounts::create_account(metadata, "ada", &hash, 0)?;
            let mut enrol = || accounts::enrol_device(metadata, &*random, ada, "laptop", 0);
            let devices = [enrol()?.0, enrol()?.0];
            workspaces::create(metadata, &devices[0], &home).map(|_| devices)
        };
        let devices = batch::run(&mut *metadata, vec![Box::new(begin)]).pop().unwrap().unwrap();
        let (writer, _) = Writer::start(metadata).unwrap();
        let readers = Readers::open(|| Database::Embedded.open_reader(&data)).unwrap();
        let store = storage::open(&data.default_store()).unwrap();
        let (hub, sending) = Hub::new(News::default());
        tokio::spawn(sending);
        let (in_use, unused) = mpsc::channel(1);
        let clock: Arc<dyn Clock> = Arc::new(TokioClock(Instant::now()));
        let files = Files::new(data.aside().unwrap());
        let told = (hub, News::default());
        let mut app = App::new((clock, random), (readers, writer), store, told, files, in_use);
        app.audit = Audit::to(folder.path().join("audit.log")).unwrap();
        Self { app: Arc::new(app), devices, home, folder, unused }
    }

    /// Lets nothing be written until what this returns is dropped.
    pub(crate) async fn hold_writer(&self) -> std::sync::mpsc::Sender<()> {
        let (held, dropped) = std::sync::mpsc::channel();
        let (begun, has_begun) = oneshot::channel();
        let mut begun = Some(begun);
        let wait = move |_: &mut dyn Metadata| {
            begun.take().map(|begun| begun.send(()));
            let _ = dropped.recv();
            Ok(())
        };
        self.app.writer.submit(wait, drop).await.unwrap();
        has_begun.await.unwrap();
        held
    }

    /// Lets others go on until so much waits to be written.
    pub(crate) async fn until_waiting(&self, count: usize) {
        while self.app.writer.waiting() < count {
            tokio::task::yield_now().await;
        }
    }

    /// Waits until nothing is under way any more, and returns the audit log.
    pub(crate) async fn end(self) -> String {
        let Self { app, folder, mut unused, .. } = self;
        drop(app);
        assert!(unused.recv().await.is_none(), "nothing is ever sent");
        std::fs::read_to_string(folder.path().join("audit.log")).unwrap()
    }
}
