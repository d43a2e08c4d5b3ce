//! Signing in, and staying signed in.

use std::os::unix::fs::PermissionsExt;
use std::pin::Pin;
use std::time::Duration;

use futures_util::future::join_all;
use model::Timestamp;
use model::environment::{Clock, Random};
use parking_lot::Mutex;
use storage::sign_in::{Login, Way};
use storage::{Credentials, ObjectKey, Opening, PutMode, StorageError, open_with};

use crate::baidu::Baidu;
use crate::dropbox::Dropbox;
use crate::google_drive::GoogleDrive;
use crate::onedrive::OneDrive;
use crate::server::{CLIENT_ID, CLIENT_SECRET, Cloud, Person, Service};

/// Time that passes when somebody waits.
#[derive(Debug, Default)]
struct Time(Mutex<Duration>);

impl Clock for Time {
    fn now(&self) -> Timestamp {
        Timestamp { seconds: 1_700_000_000, nanoseconds: 0 }
    }

    fn elapsed(&self) -> Duration {
        *self.0.lock()
    }

    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        *self.0.lock() += duration;
        Box::pin(async {})
    }
}

#[derive(Debug)]
struct Dice(u8);

impl Random for Dice {
    fn fill(&self, bytes: &mut [u8]) {
        bytes.fill(self.0);
    }
}

fn registered() -> Credentials {
    let credentials = Credentials::none().with(storage::credentials::CLIENT_ID, CLIENT_ID);
    credentials.unwrap().with(storage::credentials::CLIENT_SECRET, CLIENT_SECRET).unwrap()
}

#[tokio::test]
async fn a_browser_comes_back_with_a_code_and_a_proof() {
    let cloud = Cloud::start(Dropbox::default()).await;
    let login = Login::new(&cloud.url("Syncline"), &registered()).unwrap();
    assert_eq!((login.service(), login.way()), ("Dropbox", Way::Browser));
    let visit = login.visit("http://localhost:7/", &Dice(3)).unwrap();
    let address = url::Url::parse(&visit.address).unwrap();
    let asked: std::collections::BTreeMap<String, String> =
        address.query_pairs().into_owned().collect();
    assert_eq!(address.path(), "/oauth2/authorize");
    assert_eq!((&*asked["response_type"], &*asked["code_challenge_method"]), ("code", "S256"));
    assert_eq!(asked["token_access_type"], "offline");
    assert!(!visit.address.contains(CLIENT_SECRET));
    let state = asked["state"].clone();
    cloud.account().codes.insert("c0de".to_owned(), asked);
    let (file, time) = (cloud.folder.path().join("new.toml"), Time::default());
    for wrong in [
        "code=c0de&state=other".to_owned(),
        "code=c0de".to_owned(),
        format!("error=access_denied&state={state}"),
    ] {
        let error = login.come_back(&visit, &wrong, &time, &file).await.unwrap_err();
        assert!(matches!(error, StorageError::PermissionDenied { .. }), "{wrong}: {error:?}");
    }
    let other = login.visit("http://localhost:7/", &Dice(4)).unwrap();
    assert_ne!(other.address, visit.address);
    let query = format!("code=c0de&state={state}");
    login.come_back(&visit, &query, &time, &file).await.unwrap();
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    // A code is good once.
    assert!(login.come_back(&visit, &query, &time, &file).await.is_err());
    let credentials =
        Credentials::none().with(storage::credentials::TOKEN_FILE, file.to_str().unwrap());
    let store =
        open_with(&cloud.url("Syncline"), &credentials.unwrap(), Opening::CreateIfMissing).unwrap();
    store.put(&ObjectKey::genesis(), "x".into(), PutMode::IfAbsent).await.unwrap();
    cloud.assert_lawful();
}

/// Asks for a code, and waits until the person has typed it.
async fn typed<S: Service>(cloud: &Cloud<S>) {
    let login = Login::new(&cloud.url("Syncline"), &registered()).unwrap();
    assert_eq!(login.way(), Way::Device);
    assert!(login.visit("http://localhost:7/", &Dice(3)).is_err());
    let visit = login.ask_for_code().await.unwrap();
    assert_eq!((&*visit.user_code, visit.validity.as_secs()), ("WDJB-MJHT", 1800));
    assert!(!format!("{visit:?} {login:?}").contains("device-0"));
    let (file, time) = (cloud.folder.path().join("new.toml"), Time::default());
    login.wait_for_person(&visit, &time, &file).await.unwrap();
    // Three times nobody had typed it yet, and once the service found us too quick.
    assert_eq!(time.elapsed().as_secs(), 5 + 5 + 10 + 10);
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let visit = login.ask_for_code().await.unwrap();
    cloud.account().pending.insert("device-0".to_owned(), Person::SaysNo);
    let error = login.wait_for_person(&visit, &time, &file).await.unwrap_err();
    assert!(error.to_string().contains("access_denied"), "{error}");
    cloud.account().pending.clear();
    let visit = login.ask_for_code().await.unwrap();
    cloud.account().pending.insert("device-0".to_owned(), Person::Types(10_000));
    let error = login.wait_for_person(&visit, &time, &file).await.unwrap_err();
    assert!(error.to_string().contains("in time"), "{error}");
    cloud.assert_lawful();
}

#[tokio::test]
async fn a_code_is_typed_at_google_microsoft_and_baidu() {
    typed(&Cloud::start(Baidu::default()).await).await;
    typed(&Cloud::start(GoogleDrive::default()).await).await;
    typed(&Cloud::start(OneDrive::default()).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_handles_renew_a_token_once_and_the_new_one_outlives_them() {
    let cloud = Cloud::start(Dropbox::default()).await;
    let open = || cloud.open("Syncline", Opening::CreateIfMissing);
    open().put(&ObjectKey::genesis(), "x".into(), PutMode::Overwrite).await.unwrap();
    assert_eq!(cloud.account().renewals, 1, "the file had no token");
    let handles: Vec<_> = (0..8).map(|_| open()).collect();
    // The service forgets every token.
    cloud.account().token_life = 1;
    let genesis = ObjectKey::genesis();
    handles[0].get(&genesis).await.unwrap();
    cloud.account().token_life = 0;
    let before = cloud.account().renewals;
    for found in join_all(handles.iter().map(|handle| handle.get(&genesis))).await {
        assert_eq!(found.unwrap().as_deref(), Some(&b"x"[..]));
    }
    let renewals = cloud.account().renewals - before;
    assert!(renewals <= 1, "each refresh token is good once: {renewals}");
    assert!(open().get(&genesis).await.unwrap().is_some());
    assert_eq!(cloud.account().renewals - before, renewals, "the file is up to date");
    cloud.assert_lawful();
}

#[tokio::test]
async fn a_caller_that_gives_up_does_not_lose_the_new_refresh_token() {
    let cloud = Cloud::start(Dropbox::default()).await;
    let genesis = ObjectKey::genesis();
    for _ in 0..20 {
        cloud.account().token_life = 1;
        let store = cloud.open("Syncline", Opening::CreateIfMissing);
        // Given up at any moment: after so many turns.
        let mut call = Box::pin(store.get(&genesis));
        for _ in 0..40 {
            let turn = futures_util::future::poll_immediate(&mut call).await;
            if turn.is_some() {
                break;
            }
            tokio::task::yield_now().await;
        }
        drop(call);
    }
    cloud.account().token_life = 0;
    let store = cloud.open("Syncline", Opening::CreateIfMissing);
    store.put(&genesis, "x".into(), PutMode::Overwrite).await.unwrap();
    cloud.assert_lawful();
}

#[tokio::test]
async fn a_sign_in_that_was_withdrawn_says_so_and_shows_nothing() {
    let cloud = Cloud::start(Dropbox::default()).await;
    let text = std::fs::read_to_string(cloud.token_file()).unwrap();
    std::fs::write(cloud.token_file(), text.replace("refresh-1", "refresh-old")).unwrap();
    let store = cloud.open("Syncline", Opening::Existing);
    let error = store.get(&ObjectKey::genesis()).await.unwrap_err();
    assert!(matches!(error, StorageError::PermissionDenied { .. }), "{error:?}");
    let shown = format!("{error} {error:?} {store:?}");
    assert!(shown.contains("invalid_grant") && shown.contains("sign in again"), "{shown}");
    assert!(!shown.contains("refresh-old") && !shown.contains(CLIENT_SECRET), "{shown}");
    for missing in [Credentials::none(), registered()] {
        let error = open_with(&cloud.url("Syncline"), &missing, Opening::Existing).unwrap_err();
        assert!(error.to_string().contains("nobody has signed in"), "{error}");
    }
}
