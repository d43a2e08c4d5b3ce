//! The conformance suite over every driver, on good days and on bad ones.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use bytes::Bytes;
use storage::conformance::{self, Case};
use storage::layers::{Retrying, Waiting};
use storage::object_store::list_all;
use storage::probe::{ProbeOptions, probe};
use storage::{ObjectKey, ObjectStore, Opening, PutMode, PutOutcome, StorageError};

use crate::baidu::Baidu;
use crate::box_service::BoxService;
use crate::dropbox::Dropbox;
use crate::google_drive::GoogleDrive;
use crate::onedrive::OneDrive;
use crate::server::{Cloud, Service};

/// Tries again at once.
#[derive(Debug)]
pub(crate) struct NoWaiting;

#[async_trait::async_trait]
impl Waiting for NoWaiting {
    async fn wait(&self, _duration: Duration) {}

    fn random(&self) -> u64 {
        0
    }
}

/// What a driver says of itself.
struct Driver<S> {
    service: fn() -> S,
    creates: bool,
    /// Whether long files go up in parts.
    has_parts: bool,
}

const BAIDU: Driver<Baidu> = Driver { service: Baidu::default, creates: false, has_parts: true };
const BOX: Driver<BoxService> =
    Driver { service: BoxService::default, creates: true, has_parts: true };
const DROPBOX: Driver<Dropbox> =
    Driver { service: Dropbox::default, creates: true, has_parts: false };
const GOOGLE_DRIVE: Driver<GoogleDrive> =
    Driver { service: GoogleDrive::default, creates: false, has_parts: true };
const ONEDRIVE: Driver<OneDrive> =
    Driver { service: OneDrive::default, creates: true, has_parts: true };

impl<S: Service> Driver<S> {
    fn cases(&self) -> Vec<Case> {
        if self.creates { conformance::cases() } else { conformance::data_cases() }
    }
}

fn fresh<S: Service>(cloud: &Cloud<S>) -> Arc<dyn ObjectStore> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let folder = format!("Syncline/store-{}", NUMBER.fetch_add(1, Ordering::Relaxed));
    cloud.open(&folder, Opening::CreateIfMissing)
}

async fn conforms<S: Service>(driver: Driver<S>) {
    let cloud = Cloud::start((driver.service)()).await;
    // Small pages are for the bad days: some cases have hundreds of objects.
    cloud.account().page = 200;
    conformance::run_cases(&driver.cases(), || fresh(&cloud)).await;
    cloud.assert_lawful();
}

/// Tokens end all the time, lists know of changes later, every eighth request is one too many, and every second part of an
/// upload breaks off.
async fn conforms_on_bad_days<S: Service>(driver: Driver<S>) {
    let cloud = Cloud::start((driver.service)()).await;
    {
        let mut account = cloud.account();
        (account.token_life, account.too_many, account.broken_part) = (50, 8, 2);
        account.disk.lag = 2;
    }
    let left_out = [
        // A retry cannot tell its own object from an equal one of somebody else.
        "put_if_absent_of_equal_bytes_is_told_that_they_exist",
        // Three hundred objects take long, and break no other way than ten.
        "deferred_objects_are_there_after_sync",
    ];
    let mut cases = driver.cases();
    cases.retain(|case| !left_out.contains(&case.name));
    conformance::run_cases(&cases, || {
        Arc::new(Retrying::new(fresh(&cloud), Arc::new(NoWaiting)).with_attempts_max(50))
    })
    .await;
    // As long as no pack is, so that every service takes it in parts; 251 has no length of a part in common with any.
    let long = Bytes::from((0..251).collect::<Vec<u8>>().repeat(96_000));
    let retrying = Retrying::new(fresh(&cloud), Arc::new(NoWaiting)).with_attempts_max(50);
    for mode in [PutMode::Overwrite, PutMode::Overwrite] {
        let key = ObjectKey::genesis();
        assert_eq!(retrying.put(&key, long.clone(), mode).await.unwrap(), PutOutcome::Written);
        assert!(retrying.get(&key).await.unwrap() == Some(long.clone()), "other bytes");
    }
    cloud.assert_lawful();
    let account = cloud.account();
    assert!(account.renewals > 5 && account.refusals > 10, "nothing was tested");
    assert_eq!(account.breaks > 0, driver.has_parts, "{} breaks", account.breaks);
}

#[expect(clippy::print_stdout, reason = "the guide to the stores quotes these words")]
fn show(store: &dyn ObjectStore, words: &[String]) {
    println!("{}:\n  {}", store.describe(), words.join("\n  "));
}

/// What the probe says, and what is true of two devices.
async fn serves_two_devices<S: Service>(driver: Driver<S>) {
    let cloud = Cloud::start((driver.service)()).await;
    let existing = cloud.open("Syncline/two", Opening::Existing);
    let error = existing.get(&ObjectKey::genesis()).await.unwrap_err();
    assert!(matches!(error, StorageError::NoStore { .. }), "{error:?}");
    assert!(existing.list("", None, 10).await.is_err(), "no store is not an empty store");
    let one = cloud.open("Syncline/two", Opening::CreateIfMissing);
    let options = ProbeOptions { token: "t0ken".to_owned(), object_size_max: 8 << 20 };
    let report = probe(one.clone(), &options).await.unwrap();
    show(one.as_ref(), &report.words());
    assert!(report.may_hold_data() && report.lists_in_order && report.deletes, "{report:?}");
    assert_eq!(report.may_take_part_in_agreement(), driver.creates, "{report:?}");
    assert!(list_all(one.as_ref(), "").await.unwrap().is_empty(), "it is left clean");
    let two = cloud.open("Syncline/two", Opening::Existing);
    for slot in 0..7 {
        let key = ObjectKey::log_slot(slot, 0);
        let bytes = Bytes::from(format!("entry {slot}"));
        one.put(&key, bytes.clone(), PutMode::Overwrite).await.unwrap();
        assert_eq!(two.get(&key).await.unwrap(), Some(bytes));
        assert_eq!(list_all(two.as_ref(), "log/").await.unwrap().len() as u64, slot + 1);
        if driver.creates {
            let outcome = two.put(&key, "late".into(), PutMode::IfAbsent).await.unwrap();
            assert_eq!(outcome, PutOutcome::Exists);
        }
    }
    two.delete(&ObjectKey::log_slot(3, 0)).await.unwrap();
    assert_eq!(one.get(&ObjectKey::log_slot(3, 0)).await.unwrap(), None);
    assert_eq!(list_all(one.as_ref(), "log/").await.unwrap().len(), 6);
    cloud.assert_lawful();
}

macro_rules! drivers {
    ($($driver:ident: $conforms:ident, $bad_days:ident, $two:ident;)*) => {$(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $conforms() {
            conforms($driver).await;
        }

        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $bad_days() {
            conforms_on_bad_days($driver).await;
        }

        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $two() {
            serves_two_devices($driver).await;
        }
    )*};
}

drivers! {
    BAIDU: baidu_conforms, baidu_conforms_on_bad_days, baidu_serves_two_devices;
    BOX: box_conforms, box_conforms_on_bad_days, box_serves_two_devices;
    GOOGLE_DRIVE: google_drive_conforms, google_drive_conforms_on_bad_days, google_drive_serves_two_devices;
    ONEDRIVE: onedrive_conforms, onedrive_conforms_on_bad_days, onedrive_serves_two_devices;
    DROPBOX: dropbox_conforms, dropbox_conforms_on_bad_days, dropbox_serves_two_devices;
}
