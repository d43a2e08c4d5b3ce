//! One question to several stores: the fastest first, another when one fails or takes longer than expected.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::{BoxFuture, Either, pending, select};
use futures_util::stream::FuturesUnordered;

use crate::error::{Result, StorageError};

use super::Shared;
use super::member::Direction;
use super::piece::{Piece, Placed};

/// An answer is awaited at least so long before another store is asked.
const PATIENCE_MIN: Duration = Duration::from_millis(20);

/// A store may take so many times as long as expected before another is asked.
const PATIENCE_FACTOR: u32 = 2;

/// How many bytes a second are decoded where an object's own bytes are not had.
const DECODED_PER_SECOND: f64 = 500e6;

/// What a store says.
#[derive(Debug)]
pub(crate) enum Answer<T> {
    /// It has it, and it is right as far as can be told.
    Found(T),
    /// It has looked, and has nothing.
    Absent,
    /// It has something that is not what it should be.
    Wrong,
}

/// What went wrong on the way to an answer.
#[derive(Debug, Default)]
pub(crate) struct Trail {
    pub(crate) failed: Vec<(usize, StorageError)>,
    pub(crate) absent: Vec<Placed>,
    pub(crate) wrong: Vec<Placed>,
}

impl Trail {
    /// Returns whether some store has not what it was expected to have.
    pub(crate) fn found_damage(&self) -> bool {
        !self.absent.is_empty() || !self.wrong.is_empty()
    }
}

type Running<T> = FuturesUnordered<BoxFuture<'static, (Placed, Result<Answer<T>>)>>;

impl Shared {
    /// Brings stores into the order in which they are to be asked for `bytes` bytes; of equal ones it stays.
    pub(crate) fn rank(&self, candidates: &mut [Placed], bytes: u64) {
        let now = self.clock.elapsed();
        let decoding = Duration::from_secs_f64(self.size_guess() as f64 / DECODED_PER_SECOND);
        candidates.sort_by_cached_key(|(member, piece)| {
            let after = if is_parity(*piece) { decoding } else { Duration::ZERO };
            let hoped = self.members[*member].hoped(bytes, now) + after;
            (self.is_failing(*member, Direction::Read), hoped)
        });
    }

    /// Asks the candidates in turn until `wanted` of them have found it.
    pub(crate) async fn ask<T: Send + 'static>(
        self: &Arc<Self>,
        candidates: &[Placed],
        wanted: usize,
        bytes: u64,
        question: impl Fn(Placed) -> BoxFuture<'static, Result<Answer<T>>>,
        trail: &mut Trail,
    ) -> Vec<(Placed, T)> {
        let mut waiting = candidates.iter().copied();
        let mut running: Running<T> = FuturesUnordered::new();
        let mut found = Vec::new();
        let mut is_late: BoxFuture<'static, ()> = Box::pin(pending());
        loop {
            let mut is_new = false;
            while found.len() + running.len() < wanted
                && let Some(placed) = waiting.next()
            {
                start(&running, placed, &question);
                is_new = true;
            }
            if found.len() >= wanted || running.is_empty() {
                return found;
            }
            if is_new {
                is_late = self.patience(candidates, bytes);
            }
            match select(running.next(), is_late).await {
                Either::Left((answer, rest)) => {
                    is_late = rest;
                    let (placed, result) = answer.expect("something is running");
                    match result {
                        Ok(Answer::Found(value)) => found.push((placed, value)),
                        Ok(Answer::Absent) => trail.absent.push(placed),
                        Ok(Answer::Wrong) => trail.wrong.push(placed),
                        Err(error) => trail.failed.push((placed.0, error)),
                    }
                }
                Either::Right(_) => match waiting.next() {
                    Some(placed) => {
                        start(&running, placed, &question);
                        is_late = self.patience(candidates, bytes);
                    }
                    None => is_late = Box::pin(pending()),
                },
            }
        }
    }

    /// Waits as long as the answer of a good candidate should take.
    fn patience(&self, candidates: &[Placed], bytes: u64) -> BoxFuture<'static, ()> {
        let now = self.clock.elapsed();
        let expected =
            candidates.iter().map(|(member, _)| self.members[*member].expected(bytes, now));
        let expected = expected.min().unwrap_or_default();
        self.clock.sleep((expected * PATIENCE_FACTOR).max(PATIENCE_MIN))
    }
}

fn start<T: Send + 'static>(
    running: &Running<T>,
    placed: Placed,
    question: &impl Fn(Placed) -> BoxFuture<'static, Result<Answer<T>>>,
) {
    let answer = question(placed);
    running.push(Box::pin(async move { (placed, answer.await) }));
}

fn is_parity(piece: Piece) -> bool {
    matches!(piece, Piece::Block(name) if name.index >= name.code.data)
}
