//! Real servers that let others wait.

use std::time::Duration;

use futures_util::future::join;
use storage::{ObjectKey, Opening, PutMode, Waited};

use crate::place::{server, started};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_waits_at_a_mailbox_hears_of_what_another_puts_there() {
    for name in started(&["dovecot"]) {
        let server = server(name);
        let url = server.fresh_url();
        let open = || server.open(&url, Opening::CreateIfMissing).unwrap();
        let (store, other) = (open(), open());
        for slot in 1..5 {
            let key = ObjectKey::log_slot(slot, 0);
            assert_eq!(store.wait_for(&key, Duration::ZERO).await.unwrap(), Waited::InVain);
            let put = async { other.put(&key, "x".into(), PutMode::IfAbsent).await.unwrap() };
            let (waited, _) = join(store.wait_for(&key, Duration::from_secs(300)), put).await;
            assert_eq!(waited.unwrap(), Waited::Come, "slot {slot}");
            assert_eq!(store.wait_for(&key, Duration::ZERO).await.unwrap(), Waited::Come);
        }
        let patience = Duration::from_millis(100);
        for _ in 0..2 {
            let waited = store.wait_for(&ObjectKey::log_slot(9, 0), patience).await.unwrap();
            assert_eq!(waited, Waited::InVain, "nothing has come");
        }
    }
}
