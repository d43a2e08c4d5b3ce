//! Carrying out plans.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt};
use futures_util::stream::{self, StreamExt};
use parking_lot::Mutex;

use crate::error::{Result, StorageError};
use crate::key::ObjectKey;
use crate::object_store::ObjectStore;
use crate::pool::ask::Trail;
use crate::pool::member::Direction;
use crate::pool::piece::{Placed, arrange};
use crate::pool::{Pool, Shared};

use super::plan::{Plan, Step};
use super::{OnProgress, Progress};

/// How many objects are worked on at once.
const OBJECTS_AT_ONCE: usize = 4;

/// Says whether pieces may still be removed; see the invariants of [`super`].
pub type MayRemove<'a> = &'a (dyn Fn() -> BoxFuture<'static, bool> + Send + Sync);

/// How to carry a plan out.
#[derive(Clone, Copy, Default)]
pub struct CarryOut<'a> {
    /// How many bytes a second are moved at most.
    pub bytes_per_second: Option<u64>,
    /// Hears of each object.
    pub progress: OnProgress<'a>,
    /// Asked before every removal; without it nothing is removed.
    pub may_remove: Option<MayRemove<'a>>,
}

impl std::fmt::Debug for CarryOut<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_tuple("CarryOut").field(&self.bytes_per_second).finish()
    }
}

/// What was done.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RepairOutcome {
    /// How many pieces were written.
    pub written: u64,
    /// How many pieces were removed.
    pub removed: u64,
    /// How many bytes were read and written.
    pub bytes: u64,
    /// Objects that are not as the plan wants them, and why.
    pub failed: Vec<(ObjectKey, String)>,
}

/// What was done with one object.
#[derive(Debug, Default)]
struct Done {
    written: u64,
    removed: u64,
    bytes: u64,
}

impl Pool {
    /// Carries a plan out. What fails is told, and does not keep the rest from being done.
    pub async fn carry_out(&self, plan: &Plan, options: CarryOut<'_>) -> RepairOutcome {
        let pace = Pace::new(&self.shared, options.bytes_per_second);
        let (done_objects, all_bytes) = (&AtomicU64::new(0), &AtomicU64::new(0));
        let pace = &pace;
        let mut steps: Vec<BoxFuture<'_, (&Step, Done, Result<()>)>> =
            Vec::with_capacity(plan.steps.len());
        for step in &plan.steps {
            let work = async move {
                let mut done = Done::default();
                let result = self.shared.carry_out_step(step, options.may_remove, &mut done).await;
                pace.spend(done.bytes).await;
                let progress = Progress {
                    objects_done: done_objects.fetch_add(1, Ordering::Relaxed) + 1,
                    objects: plan.steps.len() as u64,
                    bytes: all_bytes.fetch_add(done.bytes, Ordering::Relaxed) + done.bytes,
                };
                if let Some(on_progress) = options.progress {
                    on_progress(progress);
                }
                (step, done, result)
            };
            steps.push(work.boxed());
        }
        let mut steps = stream::iter(steps).buffer_unordered(OBJECTS_AT_ONCE);
        let mut outcome = RepairOutcome::default();
        while let Some((step, done, result)) = steps.next().await {
            outcome.written += done.written;
            outcome.removed += done.removed;
            outcome.bytes += done.bytes;
            if let Err(error) = result {
                outcome.failed.push((step.object.clone(), error.to_string()));
            }
        }
        outcome.failed.sort_unstable();
        outcome
    }
}

impl Shared {
    async fn carry_out_step(
        self: &Arc<Self>,
        step: &Step,
        may_remove: Option<MayRemove<'_>>,
        done: &mut Done,
    ) -> Result<()> {
        let hash = self.object(&step.object)?;
        self.known.lock().forget(&step.object);
        if !step.write.is_empty() {
            let mut trail = Trail::default();
            let Some(bytes) = self.find(&step.object, &mut trail).await? else {
                return Err(self.not_there(&step.object));
            };
            done.bytes += bytes.len() as u64 * (1 + step.write.len() as u64);
            let failed = self.write_pieces(&step.object, hash, bytes, &step.write).await;
            done.written += (step.write.len() - failed) as u64;
            if failed > 0 {
                let detail = format!("{failed} of its homes did not take {}", step.object);
                return Err(StorageError::NotReachable { store: self.describe(), detail });
            }
        }
        let (Some(may_remove), false) = (may_remove, step.remove.is_empty()) else {
            return Ok(());
        };
        self.confirm_homes(&step.object, hash, &step.remove, done).await?;
        for &(member, piece) in &step.remove {
            if !may_remove().await {
                let detail = "the configuration has changed".to_owned();
                return Err(StorageError::Busy { store: self.describe(), detail });
            }
            let (store, key) = (Arc::clone(&self.members[member].store), piece.key(&step.object));
            let delete = async move { store.delete(&key).await };
            self.call(member, Direction::Write, 0, delete, |()| 0).await?;
            done.removed += 1;
        }
        Ok(())
    }

    /// Reads all homes of an object and makes sure that they have it whole without the pieces that are to go.
    async fn confirm_homes(
        self: &Arc<Self>,
        object: &ObjectKey,
        hash: [u8; 32],
        remove: &[Placed],
        done: &mut Done,
    ) -> Result<()> {
        let order = self.order(&hash);
        let located = self.locate(object, &mut Trail::default()).await;
        let present = located.into_iter().map(|(placed, _)| placed);
        let staying: Vec<Placed> = present.filter(|placed| !remove.contains(placed)).collect();
        let kept = arrange(&order, self.code(), &staying).kept;
        let found = self.inspect(object, hash, &kept).await;
        done.bytes += found.bytes_read;
        if found.good.len() == order.homes().len() && found.bytes.is_some() {
            return Ok(());
        }
        let detail = format!(
            "only {} of {} homes have their piece of {object} undamaged, so nothing of it is removed",
            found.good.len(),
            order.homes().len()
        );
        Err(StorageError::NotReachable { store: self.describe(), detail })
    }

    fn not_there(&self, object: &ObjectKey) -> StorageError {
        StorageError::Missing { key: object.clone(), store: self.describe() }
    }
}

/// Keeps work from taking all bandwidth.
#[derive(Debug)]
pub(crate) struct Pace<'a> {
    shared: &'a Shared,
    bytes_per_second: Option<u64>,
    /// Until when what was spent so far takes.
    free_at: Mutex<Duration>,
}

impl<'a> Pace<'a> {
    pub(crate) fn new(shared: &'a Shared, bytes_per_second: Option<u64>) -> Self {
        let free_at = Mutex::new(shared.clock.elapsed());
        Self { shared, bytes_per_second, free_at }
    }

    /// Waits as long as `bytes` bytes should have taken.
    pub(crate) async fn spend(&self, bytes: u64) {
        let Some(rate) = self.bytes_per_second else { return };
        let now = self.shared.clock.elapsed();
        let wait = {
            let mut free_at = self.free_at.lock();
            *free_at =
                (*free_at).max(now) + Duration::from_secs_f64(bytes as f64 / rate.max(1) as f64);
            free_at.saturating_sub(now)
        };
        if !wait.is_zero() {
            self.shared.clock.sleep(wait).await;
        }
    }
}
