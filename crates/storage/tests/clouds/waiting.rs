//! Dropbox lets others wait: what that costs, and that it hides nothing.

use std::time::Duration;

use futures_util::future::join;
use storage::{ObjectKey, ObjectStore, Opening, PutMode, Waited};

use crate::dropbox::Dropbox;
use crate::server::Cloud;

const LONG: Duration = Duration::from_secs(300);

/// Returns how often calls of these names were made since it was asked last.
fn calls(cloud: &Cloud<Dropbox>, names: [&str; 3]) -> [usize; 3] {
    let asked = std::mem::take(&mut cloud.account().asked);
    names.map(|name| asked.iter().filter(|asked| asked.path.ends_with(name)).count())
}

const CALLS: [&str; 3] = ["/get_metadata", "/get_latest_cursor", "/longpoll"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_waits_at_a_dropbox_hears_of_what_another_puts_there() {
    let cloud = Cloud::start(Dropbox::default()).await;
    let store = cloud.open("Syncline/waiting", Opening::CreateIfMissing);
    let other = cloud.open("Syncline/waiting", Opening::CreateIfMissing);
    let elsewhere = cloud.open("Syncline/elsewhere", Opening::CreateIfMissing);
    for slot in 1..5 {
        let key = ObjectKey::log_slot(slot, 0);
        assert_eq!(store.wait_for(&key, Duration::ZERO).await.unwrap(), Waited::InVain);
        let put = async {
            // What happens elsewhere in the account wakes nobody.
            elsewhere.put(&key, "x".into(), PutMode::IfAbsent).await.unwrap();
            other.put(&key, "x".into(), PutMode::IfAbsent).await.unwrap();
        };
        let (waited, ()) = join(store.wait_for(&key, LONG), put).await;
        assert_eq!(waited.unwrap(), Waited::Come, "slot {slot}");
        assert_eq!(store.wait_for(&key, LONG).await.unwrap(), Waited::Come, "it is there");
    }
    cloud.assert_lawful();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wait_in_vain_costs_one_request_after_the_first() {
    let cloud = Cloud::start(Dropbox::default()).await;
    let store = cloud.open("Syncline/waiting", Opening::CreateIfMissing);
    store.put(&ObjectKey::genesis(), "x".into(), PutMode::IfAbsent).await.unwrap();
    cloud.account().never_waits = true;
    calls(&cloud, CALLS);
    let key = ObjectKey::log_slot(1, 0);
    for expected in [[1, 1, 1], [0, 0, 1], [0, 0, 1]] {
        assert_eq!(store.wait_for(&key, LONG).await.unwrap(), Waited::InVain);
        assert_eq!(calls(&cloud, CALLS), expected);
    }
    // Something else has changed: it is looked, and the next wait begins anew.
    store.put(&ObjectKey::log_slot(7, 0), "x".into(), PutMode::IfAbsent).await.unwrap();
    for expected in [[1, 0, 1], [1, 1, 1], [0, 0, 1]] {
        assert_eq!(store.wait_for(&key, LONG).await.unwrap(), Waited::InVain);
        assert_eq!(calls(&cloud, CALLS), expected);
    }
    cloud.assert_lawful();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dropbox_that_wants_to_be_left_alone_or_forgets_a_cursor_is_looked_at() {
    let cloud = Cloud::start(Dropbox::default()).await;
    let store = cloud.open("Syncline/waiting", Opening::CreateIfMissing);
    store.put(&ObjectKey::genesis(), "x".into(), PutMode::IfAbsent).await.unwrap();
    let key = ObjectKey::log_slot(1, 0);
    cloud.service().forgets = true;
    calls(&cloud, CALLS);
    for _ in 0..2 {
        assert_eq!(store.wait_for(&key, LONG).await.unwrap(), Waited::InVain);
        assert_eq!(calls(&cloud, CALLS), [2, 1, 1], "what is useless is not kept");
    }
    cloud.service().forgets = false;
    (cloud.account().never_waits, cloud.account().stay_away_s) = (true, Some(3600));
    assert_eq!(store.wait_for(&key, LONG).await.unwrap(), Waited::InVain);
    calls(&cloud, CALLS);
    assert_eq!(store.wait_for(&key, LONG).await.unwrap(), Waited::Unable);
    assert_eq!(calls(&cloud, CALLS), [1, 0, 0], "it is not waited at for an hour");
    cloud.assert_lawful();
}
