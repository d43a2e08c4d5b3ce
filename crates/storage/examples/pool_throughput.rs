//! Prints what a pool costs beside its stores, which are memory here: writing, reading, checking, healing, placing.
//!
//!     cargo run --release -p storage --example pool_throughput

#![expect(clippy::print_stdout, reason = "the table is what this program is for")]
#![expect(clippy::disallowed_methods, reason = "it measures time")]

use std::collections::{BTreeMap, BTreeSet};
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use model::ids::{PackId, StoreId};
use model::pool::{PoolConfig, Redundancy, StoreRecord};
use model::{Clock, Timestamp};
use storage::object_store::list_all;
use storage::opendal_store::OpendalStore;
use storage::placement::Placement;
use storage::pool::repair::{CarryOut, CheckOptions, Depth};
use storage::pool::{Pool, PoolOptions};
use storage::{ObjectKey, ObjectStore, PutMode};

const OBJECTS: u64 = 64;
const LENGTH: usize = 4 << 20;
const AT_ONCE: usize = 4;

type Failure = Box<dyn std::error::Error>;

#[derive(Debug)]
struct RealClock(Instant);

impl Clock for RealClock {
    fn now(&self) -> Timestamp {
        Timestamp::default()
    }

    fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }

    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(tokio::time::sleep(duration))
    }
}

fn config(redundancy: Redundancy) -> Result<PoolConfig, Failure> {
    let record = |number: u8| {
        let id = StoreId::from_bytes([number; 16]);
        StoreRecord::new(id, format!("s{number}"), format!("memory:s{number}"), 10)
    };
    Ok(PoolConfig::new(redundancy, (0..5).map(record).collect())?)
}

fn main() -> Result<(), Failure> {
    let runtime = tokio::runtime::Runtime::new()?;
    println!("redundancy,step,mb_per_s");
    for redundancy in [
        Redundancy::Replicas(1),
        Redundancy::Replicas(2),
        Redundancy::Erasure { data: 3, total: 5 },
    ] {
        runtime.block_on(measure(redundancy))?;
    }
    let placement = Placement::new(&config(Redundancy::Replicas(2))?);
    let started = Instant::now();
    let mut sum = 0;
    for number in 0..1_000_000u64 {
        let mut object = [0; 32];
        object[..8].copy_from_slice(&number.to_le_bytes());
        sum += placement.order(&object).homes()[0];
    }
    println!(
        "any,order of 5 stores in ns (check {sum}),{}",
        started.elapsed().as_nanos() / 1_000_000
    );
    Ok(())
}

async fn measure(redundancy: Redundancy) -> Result<(), Failure> {
    let config = config(redundancy)?;
    let stores: BTreeMap<StoreId, Arc<dyn ObjectStore>> = config
        .stores
        .iter()
        .map(|record| (record.id, Arc::new(OpendalStore::memory(&record.name)) as _))
        .collect();
    let clock = Arc::new(RealClock(Instant::now()));
    let pool = Pool::new(&config, stores.clone(), clock, PoolOptions::default());
    let objects: Vec<(ObjectKey, Bytes)> = (0..OBJECTS)
        .map(|seed| {
            let mut bytes = vec![0; LENGTH];
            blake3::Hasher::new().update(&seed.to_le_bytes()).finalize_xof().fill(&mut bytes);
            let id = PackId::from_bytes(*blake3::hash(&bytes).as_bytes());
            (ObjectKey::pack(id), bytes.into())
        })
        .collect();
    let megabytes = (OBJECTS as usize * LENGTH) as f64 / 1e6;
    let print = |step: &str, megabytes: f64, started: Instant| {
        println!("{redundancy},{step},{:.0}", megabytes / started.elapsed().as_secs_f64());
    };

    let started = Instant::now();
    let puts = stream::iter(&objects)
        .map(|(key, bytes)| pool.put(key, bytes.clone(), PutMode::IfAbsent))
        .buffer_unordered(AT_ONCE);
    let results: Vec<_> = puts.collect().await;
    results.into_iter().collect::<Result<Vec<_>, _>>()?;
    pool.settle().await;
    print("put", megabytes, started);

    let started = Instant::now();
    let gets = stream::iter(&objects).map(|(key, _)| pool.get(key)).buffer_unordered(AT_ONCE);
    let results: Vec<_> = gets.collect().await;
    results.into_iter().collect::<Result<Vec<_>, _>>()?;
    print("get verified", megabytes, started);

    let started = Instant::now();
    let options = CheckOptions { depth: Depth::Deep, ..CheckOptions::default() };
    let report = pool.check(&pool.inventory().await, &BTreeSet::new(), options).await;
    print("deep check (stored bytes)", report.bytes_read as f64 / 1e6, started);

    if redundancy.losses() > 0 {
        let wiped = &stores[&StoreId::from_bytes([2; 16])];
        let lost = list_all(wiped.as_ref(), "").await?;
        for entry in &lost {
            wiped.delete(&entry.key).await?;
        }
        let started = Instant::now();
        let options = CheckOptions::default();
        let report = pool.check(&pool.inventory().await, &BTreeSet::new(), options).await;
        let plan = pool.plan_repair(&report);
        let outcome = pool.carry_out(&plan, CarryOut::default()).await;
        assert_eq!(outcome.written, lost.len() as u64, "all that was lost is back");
        let back = lost.iter().map(|entry| entry.size).sum::<u64>() as f64 / 1e6;
        print("heal a wiped store (its bytes)", back, started);
    }
    Ok(())
}
