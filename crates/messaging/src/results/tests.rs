use std::sync::atomic::{AtomicU32, Ordering};

use super::*;
use crate::error::FaultKind;

fn operation(number: u8) -> Operation {
    let id = OperationId::from_bytes([number; 16]);
    Operation { service: Name::new("service").unwrap(), method: "do".to_owned(), id }
}

async fn ok(results: &RememberedResults, number: u8, done: &AtomicU32) -> Result<Bytes, Fault> {
    let work = async {
        tokio::task::yield_now().await;
        let count = done.fetch_add(1, Ordering::Relaxed);
        Ok(Bytes::from(vec![u8::try_from(count).unwrap(); 10]))
    };
    results.once(&operation(number), Box::pin(work)).await
}

#[tokio::test]
async fn the_same_operation_at_the_same_time_is_done_once() {
    let (results, done) = (RememberedResults::new(10, 1000), AtomicU32::new(0));
    let (one, two, three) =
        tokio::join!(ok(&results, 1, &done), ok(&results, 1, &done), ok(&results, 1, &done));
    assert_eq!(done.load(Ordering::Relaxed), 1);
    assert!(one == two && two == three);
    ok(&results, 2, &done).await.unwrap();
    assert_eq!(done.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn a_final_fault_is_remembered_and_a_transient_one_is_not() {
    let results = RememberedResults::new(10, 1000);
    for (number, kind, expected) in [(1, FaultKind::Service, 1), (2, FaultKind::Unavailable, 2)] {
        let done = AtomicU32::new(0);
        for _ in 0..2 {
            let work = async {
                done.fetch_add(1, Ordering::Relaxed);
                Err(Fault::new(kind, "no"))
            };
            results.once(&operation(number), Box::pin(work)).await.unwrap_err();
        }
        assert_eq!(done.load(Ordering::Relaxed), expected);
    }
    assert_eq!(results.len(), 1);
    assert_eq!(results.state.lock().cells.len(), 1);
}

#[tokio::test]
async fn memory_is_bounded_by_number_and_by_bytes() {
    let done = AtomicU32::new(0);
    for results in [RememberedResults::new(3, 1000), RememberedResults::new(100, 35)] {
        for number in 0..20 {
            ok(&results, number, &done).await.unwrap();
        }
        assert_eq!(results.len(), 3);
        assert_eq!(results.state.lock().cells.len(), 3);
        assert_eq!(results.state.lock().bytes, 30);
    }
}

#[tokio::test]
async fn work_that_is_broken_off_leaves_nothing_and_is_done_by_the_next() {
    let (results, done) = (RememberedResults::new(10, 1000), AtomicU32::new(0));
    let first = operation(1);
    let broken = results.once(&first, Box::pin(std::future::pending()));
    assert!(tokio::time::timeout(std::time::Duration::ZERO, broken).await.is_err());
    assert_eq!(results.state.lock().cells.len(), 0);
    ok(&results, 1, &done).await.unwrap();
    assert_eq!(done.load(Ordering::Relaxed), 1);
}
