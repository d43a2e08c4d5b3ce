//! One question to several stores: the fastest first, another when one fails or takes longer than expected.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::{BoxFuture, Either, pending, select};
use futures_util::stream::FuturesUnordered;

use crate::error::{Result, StorageError};

use super::Shared;
use super::member::{Direction, Expectation, Member};
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

type Running<T> = FuturesUnordered<BoxFuture<'static, (Placed, Result<Answer<T>>)>>;

/// A store that was asked, and has not answered.
#[derive(Debug)]
struct Asked {
    placed: Placed,
    began: Duration,
    expectation: Expectation,
    /// When another store is asked, unless that is put off.
    late_at: Duration,
    /// Whether it is so late that another store is asked instead.
    is_given_up: bool,
}

/// A question that is asked.
struct Asking<T> {
    running: Running<T>,
    asked: Vec<Asked>,
    bytes: u64,
}

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
        let mut waiting: VecDeque<Placed> = candidates.iter().copied().collect();
        let mut asking = Asking { running: FuturesUnordered::new(), asked: Vec::new(), bytes };
        let mut found = Vec::new();
        loop {
            while found.len() + asking.waited_for().count() < wanted
                && let Some(placed) = waiting.pop_front()
            {
                self.start(&mut asking, placed, question(placed));
            }
            if found.len() >= wanted || asking.running.is_empty() {
                return found;
            }
            let is_late: BoxFuture<'static, ()> = match asking.next_late() {
                Some(at) if !waiting.is_empty() => {
                    self.clock.sleep(at.saturating_sub(self.clock.elapsed()))
                }
                _ => Box::pin(pending()),
            };
            match select(asking.running.next(), is_late).await {
                Either::Left((answer, _)) => {
                    let (placed, result) = answer.expect("something is running");
                    asking.asked.retain(|asked| asked.placed != placed);
                    match result {
                        Ok(Answer::Found(value)) => found.push((placed, value)),
                        Ok(Answer::Absent) => trail.absent.push(placed),
                        Ok(Answer::Wrong) => trail.wrong.push(placed),
                        Err(error) => trail.failed.push((placed.0, error)),
                    }
                }
                Either::Right(_) => self.give_up_late(&mut asking, &waiting),
            }
        }
    }

    fn start<T: Send + 'static>(
        &self,
        asking: &mut Asking<T>,
        placed: Placed,
        answer: BoxFuture<'static, Result<Answer<T>>>,
    ) {
        let began = self.clock.elapsed();
        let expectation = self.members[placed.0].expectation(asking.bytes);
        let late_at = began + self.patience(placed.0, expectation);
        let asked = Asked { placed, began, expectation, late_at, is_given_up: false };
        asking.asked.push(asked);
        asking.running.push(Box::pin(async move { (placed, answer.await) }));
    }

    /// Goes on without those that are late by what is known of them now, and puts the others off. What they say still counts.
    fn give_up_late<T>(&self, asking: &mut Asking<T>, waiting: &VecDeque<Placed>) {
        let now = self.clock.elapsed();
        let next = waiting.front().map(|(member, _)| &self.members[*member]);
        let next = next.filter(|member| member.is_known());
        let expected = next.map(|member| member.expected(member.expectation(asking.bytes), now));
        for asked in asking.asked.iter_mut().filter(|asked| asked.late_at <= now) {
            let late_at = asked.began + self.patience(asked.placed.0, asked.expectation);
            let took = now - asked.began;
            if late_at > now {
                // The line is thinner than it seemed, and the bytes before are still on it.
                asked.late_at = late_at;
            } else if expected.is_some_and(|expected| expected > took * 2) {
                // Whoever else has it is busier still.
                asked.late_at = now + took;
            } else {
                asked.is_given_up = true;
            }
        }
    }

    /// Returns how long a store is given for an answer before another one is asked, too. Of a store that has never answered
    /// as much is expected as of the slowest that has.
    fn patience(&self, member: usize, expectation: Expectation) -> Duration {
        let now = self.clock.elapsed();
        let expected = |member: &Member| member.expected(expectation, now);
        let own = &self.members[member];
        let of_others = || self.members.iter().filter(|other| other.is_known()).map(expected).max();
        let known = if own.is_known() { None } else { of_others() };
        (known.unwrap_or_else(|| expected(own)) * PATIENCE_FACTOR).max(PATIENCE_MIN)
    }
}

impl<T> Asking<T> {
    fn waited_for(&self) -> impl Iterator<Item = &Asked> {
        self.asked.iter().filter(|asked| !asked.is_given_up)
    }

    fn next_late(&self) -> Option<Duration> {
        self.waited_for().map(|asked| asked.late_at).min()
    }
}

fn is_parity(piece: Piece) -> bool {
    matches!(piece, Piece::Block(name) if name.index >= name.code.data)
}
