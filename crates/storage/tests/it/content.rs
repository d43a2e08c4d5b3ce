//! The content store: nothing wrong goes in, nothing wrong comes out.

use storage::faulty::{Call, Fault, Faulty, Operation};
use storage::{ContentStore, ObjectKey, StorageError};

use crate::support::{file_store, memory, pack};

#[tokio::test]
async fn packs_come_back_whole_in_parts_and_by_their_tail() {
    let content = ContentStore::new(memory());
    let (id, bytes) = pack(1, 200_000);
    assert!(!content.has_pack(id).await.unwrap());
    content.put_pack(id, bytes.clone()).await.unwrap();
    content.put_pack(id, bytes.clone()).await.unwrap();
    assert!(content.has_pack(id).await.unwrap());
    assert_eq!(content.pack_size(id).await.unwrap(), Some(200_000));
    assert_eq!(content.read_pack(id).await.unwrap(), bytes);
    assert_eq!(content.read_pack_range(id, 10..20).await.unwrap(), bytes[10..20]);
    assert_eq!(content.read_pack_tail(id, 64).await.unwrap(), bytes[200_000 - 64..]);
}

#[tokio::test]
async fn bytes_under_a_foreign_name_are_refused_before_they_are_sent() {
    let content = ContentStore::new(memory());
    let (id, _) = pack(1, 1000);
    let (_, other) = pack(2, 1000);
    for result in [
        content.put_pack(id, other.clone()).await,
        content.put_pack_deferred(id, other.clone()).await,
        content.repair_pack(id, other.clone()).await,
    ] {
        assert!(matches!(result, Err(StorageError::WrongContent { .. })), "{result:?}");
    }
    content.sync().await.unwrap();
    assert!(!content.has_pack(id).await.unwrap());
}

#[tokio::test]
async fn a_missing_pack_is_named() {
    let content = ContentStore::new(memory());
    let (id, _) = pack(1, 10);
    for error in [
        content.read_pack(id).await.unwrap_err(),
        content.read_pack_range(id, 0..3).await.unwrap_err(),
        content.read_pack_tail(id, 3).await.unwrap_err(),
    ] {
        assert!(error.is_damage() && !error.is_retryable());
        assert!(error.to_string().contains(&id.to_string()), "{error}");
    }
}

#[tokio::test]
async fn a_truncated_or_flipped_pack_file_is_named_and_never_served() {
    let folder = tempfile::tempdir().unwrap();
    let content = ContentStore::new(file_store(folder.path()));
    let (id, bytes) = pack(1, 100_000);
    let file = folder.path().join(ObjectKey::pack(id).as_str());
    for damage in 0..3 {
        content.repair_pack(id, bytes.clone()).await.unwrap();
        let mut damaged = bytes.to_vec();
        match damage {
            0 => damaged.truncate(99_999),
            1 => damaged[50_000] ^= 1,
            _ => damaged.clear(),
        }
        std::fs::write(&file, damaged).unwrap();
        let error = content.read_pack(id).await.unwrap_err();
        assert!(matches!(error, StorageError::Damaged { .. }), "{error}");
        assert!(error.to_string().contains(&id.to_string()), "{error}");
    }
}

#[tokio::test]
async fn putting_a_pack_again_heals_a_truncated_one() {
    let folder = tempfile::tempdir().unwrap();
    let content = ContentStore::new(file_store(folder.path()));
    let (id, bytes) = pack(1, 100_000);
    content.put_pack(id, bytes.clone()).await.unwrap();
    std::fs::write(folder.path().join(ObjectKey::pack(id).as_str()), "torn").unwrap();
    content.put_pack(id, bytes.clone()).await.unwrap();
    assert_eq!(content.read_pack(id).await.unwrap(), bytes);
}

#[tokio::test]
async fn a_bit_that_flips_on_the_way_is_noticed() {
    let plan = |call: &Call<'_>| match call.operation {
        Operation::Get => Fault::FlippedByte { offset: 7 },
        _ => Fault::None,
    };
    let content = ContentStore::new(std::sync::Arc::new(Faulty::new(memory(), plan)));
    let (id, bytes) = pack(1, 1000);
    content.put_pack(id, bytes).await.unwrap();
    let error = content.read_pack(id).await.unwrap_err();
    assert!(matches!(error, StorageError::Damaged { .. }), "{error}");
}

#[tokio::test]
async fn a_torn_write_of_a_store_is_an_error_and_is_healed_by_the_next_put() {
    let plan = |call: &Call<'_>| match (call.operation, call.number) {
        (Operation::Put, 0) => Fault::TornWrite { length: 10 },
        _ => Fault::None,
    };
    let content = ContentStore::new(std::sync::Arc::new(Faulty::new(memory(), plan)));
    let (id, bytes) = pack(1, 1000);
    assert!(content.put_pack(id, bytes.clone()).await.unwrap_err().is_retryable());
    assert!(matches!(content.read_pack(id).await, Err(StorageError::Damaged { .. })));
    content.put_pack(id, bytes.clone()).await.unwrap();
    assert_eq!(content.read_pack(id).await.unwrap(), bytes);
}

#[tokio::test]
async fn pages_are_checked_as_packs_are() {
    let content = ContentStore::new(memory());
    let (id, bytes) = pack(1, 500);
    let page = model::PageId::from_bytes(*id.as_bytes());
    content.put_page(page, bytes.clone()).await.unwrap();
    assert_eq!(content.read_page(page).await.unwrap(), bytes);
    let other = model::PageId::from_bytes([1; 32]);
    assert!(content.put_page(other, bytes).await.is_err());
    assert!(matches!(content.read_page(other).await, Err(StorageError::Missing { .. })));
}
