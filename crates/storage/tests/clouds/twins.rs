//! Names that Google Drive has twice, and its bin.

use bytes::Bytes;
use storage::object_store::list_all;
use storage::{ObjectKey, Opening, PutMode};

use crate::google_drive::GoogleDrive;
use crate::server::Cloud;

fn key(text: &str) -> ObjectKey {
    ObjectKey::new(text).unwrap()
}

/// What two devices leave that make one folder and one file at the same moment.
fn make_twins(cloud: &Cloud<GoogleDrive>) {
    let disk = &mut cloud.account().disk;
    let (store, shelf) = {
        let shelf = disk.at("/Syncline/twins/a").unwrap();
        (shelf.parent, shelf.id)
    };
    disk.make(shelf, "x", Some(Bytes::from_static(b"younger")));
    let twin = disk.make(store, "a", None);
    disk.make(twin, "y", Some(Bytes::from_static(b"of the other")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_files_of_one_name_the_older_counts_and_no_folder_is_overlooked() {
    let cloud = Cloud::start(GoogleDrive::default()).await;
    let one = cloud.open("Syncline/twins", Opening::CreateIfMissing);
    one.put(&key("a/x"), "first".into(), PutMode::Overwrite).await.unwrap();
    make_twins(&cloud);
    let two = cloud.open("Syncline/twins", Opening::Existing);
    for store in [&one, &two] {
        assert_eq!(store.get(&key("a/x")).await.unwrap().as_deref(), Some(&b"first"[..]));
        assert_eq!(store.get(&key("a/y")).await.unwrap().as_deref(), Some(&b"of the other"[..]));
        let listed = list_all(store.as_ref(), "a/").await.unwrap();
        let listed: Vec<_> = listed.iter().map(|entry| (entry.key.as_str(), entry.size)).collect();
        assert_eq!(listed, [("a/x", 5), ("a/y", 12)]);
    }
    two.put(&key("a/x"), "second".into(), PutMode::Overwrite).await.unwrap();
    assert_eq!(one.get(&key("a/x")).await.unwrap().as_deref(), Some(&b"second"[..]));
    two.delete(&key("a/x")).await.unwrap();
    for store in [&one, &two] {
        assert_eq!(store.get(&key("a/x")).await.unwrap(), None, "the younger one went first");
        assert_eq!(list_all(store.as_ref(), "a/").await.unwrap().len(), 1);
    }
    cloud.assert_lawful();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_would_lie_in_the_bin_does_not_count_as_stored() {
    let cloud = Cloud::start(GoogleDrive::default()).await;
    let store = cloud.open("Syncline/bin", Opening::CreateIfMissing);
    store.put(&key("a/x"), "first".into(), PutMode::Overwrite).await.unwrap();
    let (shelf, all) = {
        let disk = &mut cloud.account().disk;
        let shelf = disk.at("/Syncline/bin/a").unwrap();
        (shelf.id, shelf.parent)
    };
    let large = || Bytes::from(vec![7; 6 << 20]);
    // Somebody tidies up while the store is in use, and brings back what is in the bin.
    for folder in [shelf, all] {
        cloud.account().disk.bin.insert(folder);
        for (name, bytes) in [("a/y", "second".into()), ("a/z", large())] {
            let error = store.put(&key(name), bytes, PutMode::Overwrite).await.unwrap_err();
            assert!(error.is_retryable() && error.to_string().contains("bin"), "{error}");
        }
        cloud.account().disk.bin.clear();
        store.put(&key("a/y"), "second".into(), PutMode::Overwrite).await.unwrap();
        assert_eq!(store.get(&key("a/x")).await.unwrap().as_deref(), Some(&b"first"[..]));
    }
    cloud.assert_lawful();
}
