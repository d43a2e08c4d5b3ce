//! What goes wrong in a network, and what it is called.

use std::sync::Arc;

use storage::credentials::{HOST_KEY, PASSWORD, SECRET_KEY};
use storage::object_store::list_all;
use storage::{ObjectKey, ObjectStore, Opening, PutMode, StorageError};

use crate::place::{server, started};

fn key(text: &str) -> ObjectKey {
    ObjectKey::new(text).unwrap()
}

#[tokio::test]
async fn a_wrong_password_is_a_refusal_that_does_not_show_it() {
    let wrong = "0penSesame";
    for name in ["vsftpd", "samba", "apache", "dovecot", "swift"] {
        let mut server = server(name);
        server.credentials.set(PASSWORD, wrong).unwrap();
        let store = server.fresh();
        let error = store.get(&key("genesis")).await.unwrap_err();
        assert!(matches!(error, StorageError::PermissionDenied { .. }), "{name}: {error:?}");
        assert!(!format!("{error} {error:?} {store:?}").contains(wrong), "{name}: {error:?}");
    }
}

#[tokio::test]
async fn a_server_with_another_key_than_the_trusted_one_is_told_nothing() {
    let mut server = server("openssh");
    let trusted = server.credentials.get(HOST_KEY).unwrap().to_owned();
    let other = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f";
    server.credentials.set(HOST_KEY, other).unwrap();
    let error = server.fresh().get(&key("genesis")).await.unwrap_err();
    assert!(matches!(error, StorageError::PermissionDenied { .. }), "{error:?}");
    let shown = trusted.split_whitespace().nth(1).unwrap();
    assert!(error.to_string().contains(shown), "the user can compare: {error}");
}

#[tokio::test]
async fn a_store_that_was_never_written_is_not_reachable_and_stays_so() {
    for name in started(&[
        "openssh", "vsftpd", "samba", "apache", "dovecot", "moto", "swift", "fake-gcs", "azurite",
    ]) {
        let server = server(name);
        let url = server.fresh_url();
        for _ in 0..2 {
            let store = server.open(&url, Opening::Existing).unwrap();
            let error = store.get(&key("genesis")).await.expect_err(name);
            assert!(matches!(error, StorageError::NoStore { .. }), "{name}: {error:?}");
            assert!(store.list("", None, 10).await.is_err(), "{name}");
            let put = store.put(&key("genesis"), "x".into(), PutMode::Overwrite).await;
            assert!(put.is_err(), "{name}");
        }
        let store = server.open(&url, Opening::CreateIfMissing).unwrap();
        store.put(&key("genesis"), "x".into(), PutMode::Overwrite).await.unwrap();
        let again = server.open(&url, Opening::Existing).unwrap();
        assert_eq!(again.get(&key("genesis")).await.unwrap().as_deref(), Some(&b"x"[..]), "{name}");
    }
}

#[tokio::test]
async fn a_server_that_is_gone_is_not_an_empty_store() {
    for name in started(&[
        "openssh", "vsftpd", "samba", "apache", "dovecot", "moto", "swift", "fake-gcs", "azurite",
    ]) {
        let server = server(name);
        let (before, after) = server.url.rsplit_once(':').unwrap();
        let digits = after.chars().take_while(char::is_ascii_digit).count();
        let url = format!("{before}:1{}", &after[digits..]);
        let store = server.open(&url, Opening::Existing).unwrap();
        let error = store.get(&key("genesis")).await.unwrap_err();
        assert!(error.is_retryable(), "{name}: {error:?}");
        assert!(store.list("", None, 10).await.is_err(), "{name}");
    }
}

#[tokio::test]
async fn a_wrong_secret_key_is_not_shown() {
    let mut server = server("moto");
    server.credentials.set(SECRET_KEY, "0penSesame").unwrap();
    let store = server.fresh();
    // This server checks no signatures; what is tested is that nothing shows the secret.
    let _any = store.get(&key("genesis")).await;
    assert!(!format!("{store:?}").contains("0penSesame"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_devices_see_one_store() {
    for name in started(&[
        "openssh", "vsftpd", "samba", "apache", "dovecot", "moto", "swift", "fake-gcs", "azurite",
    ]) {
        let server = server(name);
        let url = server.fresh_url();
        let open = || server.open(&url, Opening::CreateIfMissing).unwrap();
        let (one, two): (Arc<dyn ObjectStore>, Arc<dyn ObjectStore>) = (open(), open());
        for number in 0..5 {
            let (key, bytes) = (key(&format!("log/{number}/r0")), format!("entry {number}"));
            one.put(&key, bytes.clone().into(), PutMode::Overwrite).await.unwrap();
            let found = two.get(&key).await.unwrap();
            assert_eq!(found.as_deref(), Some(bytes.as_bytes()), "{name}");
            let listed = list_all(two.as_ref(), "log/").await.unwrap();
            assert_eq!(listed.len(), number + 1, "{name}");
        }
        one.delete(&key("log/3/r0")).await.unwrap();
        assert_eq!(two.get(&key("log/3/r0")).await.unwrap(), None, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_devices_that_create_at_once_one_wins() {
    for name in
        started(&["openssh", "vsftpd", "samba", "apache", "dovecot", "moto", "fake-gcs", "azurite"])
    {
        let server = server(name);
        let url = server.fresh_url();
        let open = || server.open(&url, Opening::CreateIfMissing).unwrap();
        let devices: Vec<Arc<dyn ObjectStore>> = (0..4).map(|_| open()).collect();
        for slot in 0..10 {
            let key = ObjectKey::log_slot(slot, 0);
            let puts = devices.iter().enumerate().map(|(number, device)| {
                // Long enough that the puts are on their way at the same time.
                let bytes = vec![u8::try_from(number).unwrap(); 200_000];
                device.put(&key, bytes.into(), PutMode::IfAbsent)
            });
            let outcomes = futures_util::future::join_all(puts).await;
            let winners: Vec<usize> = outcomes
                .iter()
                .enumerate()
                .filter(|(_, outcome)| matches!(outcome, Ok(storage::PutOutcome::Written)))
                .map(|(number, _)| number)
                .collect();
            assert_eq!(winners.len(), 1, "{name}, slot {slot}: {outcomes:?}");
            for device in &devices {
                let bytes = device.get(&key).await.unwrap().unwrap();
                assert_eq!(bytes.len(), 200_000, "{name}");
                assert!(bytes.iter().all(|byte| usize::from(*byte) == winners[0]), "{name}");
            }
        }
    }
}
