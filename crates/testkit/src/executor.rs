//! Runs tasks one at a time, in an order that is a function of the seed, in virtual time.
//!
//! *Goals*: one thread, no real time, no hidden order: the same seed gives the same run. A process inside a task can be
//! killed at any await ([`run_process`] drops it) and at any call of the file system ([`kill_here`] unwinds it).

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use parking_lot::Mutex;

use crate::clock::VirtualTime;
use crate::random::Dice;
use crate::record::Record;

type Task = Pin<Box<dyn Future<Output = ()>>>;

/// How many polls a run may take, so that a livelock is found.
const POLLS_MAX: u64 = 2_000_000;

/// An executor and its tasks.
pub struct Executor {
    time: VirtualTime,
    dice: Dice,
    record: Record,
    ready: Arc<Mutex<Vec<u64>>>,
    tasks: BTreeMap<u64, Task>,
    count: u64,
}

struct TaskWaker {
    task: u64,
    ready: Arc<Mutex<Vec<u64>>>,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        let mut ready = self.ready.lock();
        if !ready.contains(&self.task) {
            ready.push(self.task);
        }
    }
}

impl Executor {
    /// Makes an executor without tasks.
    pub fn new(time: VirtualTime, dice: Dice, record: Record) -> Self {
        Self { time, dice, record, ready: Arc::default(), tasks: BTreeMap::new(), count: 0 }
    }

    /// Adds a task.
    pub fn spawn(&mut self, task: impl Future<Output = ()> + 'static) {
        self.count += 1;
        self.tasks.insert(self.count, Box::pin(task));
        self.ready.lock().push(self.count);
    }

    /// Runs until every task has ended.
    ///
    /// # Errors
    /// A text where tasks wait for nothing, or run without end.
    pub fn run(&mut self) -> Result<(), String> {
        for _ in 0..POLLS_MAX {
            if self.tasks.is_empty() {
                return Ok(());
            }
            let next = {
                let mut ready = self.ready.lock();
                if ready.is_empty() {
                    None
                } else {
                    Some(self.dice.index(ready.len())).map(|n| ready.swap_remove(n))
                }
            };
            match next {
                Some(task) => self.poll(task),
                None if self.time.jump() => {}
                None => return Err(format!("{} tasks wait for nothing", self.tasks.len())),
            }
        }
        Err("the tasks do not come to an end".to_owned())
    }

    /// Runs one future to its end, with nothing beside it.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn block_on<T: 'static>(
        &mut self,
        future: impl Future<Output = T> + 'static,
    ) -> Result<T, String> {
        let slot = Rc::new(RefCell::new(None));
        let filled = slot.clone();
        self.spawn(async move {
            let value = future.await;
            *filled.borrow_mut() = Some(value);
        });
        self.run()?;
        slot.borrow_mut().take().ok_or_else(|| "the future has not ended".to_owned())
    }

    fn poll(&mut self, number: u64) {
        let Some(mut task) = self.tasks.remove(&number) else { return };
        self.record.mix(number);
        let waker = Waker::from(Arc::new(TaskWaker { task: number, ready: self.ready.clone() }));
        if task.as_mut().poll(&mut Context::from_waker(&waker)).is_pending() {
            self.tasks.insert(number, task);
        }
    }
}

/// The process was killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Killed;

/// Kills the process that is running: nothing of it is executed any more, not even what handles errors.
pub fn kill_here() -> ! {
    // Unlike a panic, this calls no hook and prints nothing.
    resume_unwind(Box::new(Killed))
}

/// Runs a process until it ends, or until `deadline` does, or until it is killed by [`kill_here`].
///
/// # Errors
/// [`Killed`].
pub async fn run_process<T>(
    process: impl Future<Output = T>,
    deadline: impl Future<Output = ()>,
) -> Result<T, Killed> {
    let (mut process, mut deadline) = (pin!(process), pin!(deadline));
    std::future::poll_fn(|context| {
        if deadline.as_mut().poll(context).is_ready() {
            return Poll::Ready(Err(Killed));
        }
        match catch_unwind(AssertUnwindSafe(|| process.as_mut().poll(context))) {
            Ok(poll) => poll.map(Ok),
            Err(payload) if payload.is::<Killed>() => Poll::Ready(Err(Killed)),
            Err(payload) => resume_unwind(payload),
        }
    })
    .await
}
