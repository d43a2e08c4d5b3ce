//! Makes changes durable, many of them together.

use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

/// Who waits for what. Those who ask while the disk is busy share the next turn.
#[derive(Debug, Default)]
pub(super) struct Durability {
    /// How many have asked.
    asked: AtomicU64,
    /// Of how many of them everything is durable.
    done: Mutex<u64>,
}

impl Durability {
    /// Makes everything durable that was done before, by `work` unless somebody else has begun that since. It blocks.
    ///
    /// # Errors
    /// That of `work`; then whoever comes next works again.
    pub(super) fn ask<E>(&self, work: impl FnOnce() -> Result<(), E>) -> Result<(), E> {
        let turn = self.asked.fetch_add(1, Ordering::SeqCst) + 1;
        let mut done = self.done.lock();
        if *done >= turn {
            return Ok(());
        }
        // Whoever has asked by now had done his part before.
        let covered = self.asked.load(Ordering::SeqCst);
        work()?;
        *done = covered;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_who_ask_meanwhile_share_the_next_turn_and_no_earlier_one() {
        let (durability, turns) = (Durability::default(), AtomicU64::new(0));
        let work = || {
            turns.fetch_add(1, Ordering::SeqCst);
            Ok::<_, ()>(())
        };
        std::thread::scope(|scope| {
            durability
                .ask(|| {
                    for _ in 0..5 {
                        scope.spawn(|| durability.ask(work));
                    }
                    while durability.asked.load(Ordering::SeqCst) < 6 {
                        std::thread::yield_now();
                    }
                    work()
                })
                .unwrap();
        });
        assert_eq!(turns.load(Ordering::SeqCst), 2);
    }

    #[test]
    fn turn_that_failed_counts_for_nobody() {
        let durability = Durability::default();
        durability.ask(|| Err(())).unwrap_err();
        assert_eq!(*durability.done.lock(), 0);
        durability.ask(|| Ok::<_, ()>(())).unwrap();
        assert_eq!(*durability.done.lock(), 2);
    }
}
