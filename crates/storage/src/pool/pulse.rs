//! Whether a store that does not answer is slow or hangs: after a while it is asked something small, beside the rest.
//!
//! A line that is full of bytes and a service that has stopped look the same to whoever waits for a large answer. A small
//! question tells them apart without giving up the large one.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{Either, join_all, select};

use crate::key::ObjectKey;
use crate::object_store::ObjectStore;

use super::Shared;
use super::member::{Direction, Member};

/// A store that has said nothing for so long is asked something small.
pub(crate) const SUSPICION: Duration = Duration::from_secs(2);

/// How long a small answer may take.
const QUESTION_MAX: Duration = Duration::from_secs(3);

/// How long a store that hangs is waited for by who ends and owes it something.
const LAST_QUESTION_MAX: Duration = Duration::from_millis(700);

/// A store that hangs is asked again after so long, at first and at most.
const ASK_AGAIN_MIN: Duration = Duration::from_secs(4);
const ASK_AGAIN_MAX: Duration = Duration::from_secs(60);

/// Who ends waits so long for a store that hangs since it last said something; it may have been the line.
const GIVE_UP_AFTER: Duration = Duration::from_secs(7);

/// A store that answers again is given what it is owed when nothing is read any more, or after so long.
const PAY_LATER_MAX: Duration = Duration::from_secs(60);

/// How often it is looked at whether only stores that hang are waited for, or anything is read.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// What is known of a store's silence.
#[derive(Debug, Default)]
pub(crate) struct Pulse {
    /// When the calls began that have no answer yet, by number.
    waiting: BTreeMap<u64, Duration>,
    next_call: u64,
    last_answer: Option<Duration>,
    is_being_asked: bool,
    silent: Option<Silence>,
}

/// A store that hangs.
#[derive(Debug, Clone, Copy)]
struct Silence {
    ask_again_at: Duration,
    pause: Duration,
}

impl Pulse {
    /// Counts a call; returns its number.
    pub(crate) fn begin(&mut self, now: Duration) -> u64 {
        let number = self.next_call;
        self.next_call += 1;
        self.waiting.insert(number, now);
        number
    }

    /// Counts a call no longer.
    pub(crate) fn end(&mut self, number: u64) {
        self.waiting.remove(&number);
    }

    /// Takes note of a sign of life.
    pub(crate) fn answered(&mut self, now: Duration) {
        self.last_answer = Some(now);
        self.silent = None;
    }

    /// Returns since when the store is silent though it was asked something.
    pub(crate) fn quiet_since(&self) -> Option<Duration> {
        let asked = self.waiting.values().min().copied()?;
        Some(self.last_answer.map_or(asked, |answer| answer.max(asked)))
    }

    /// Returns the last sign of life after a call began, or its beginning.
    pub(crate) fn alive_since(&self, began: Duration) -> Duration {
        self.last_answer.map_or(began, |answer| answer.max(began))
    }

    /// Returns whether it hangs, as far as is known.
    pub(crate) fn is_silent(&self) -> bool {
        self.silent.is_some()
    }

    /// Takes over from an earlier pool that the store hangs; it is asked at the first opportunity.
    pub(crate) fn recall_silence(&mut self, now: Duration) {
        self.silent = Some(Silence { ask_again_at: now, pause: ASK_AGAIN_MIN });
    }

    /// Returns whether the small question is to be asked now, and takes note that it is.
    fn wants_question(&mut self, now: Duration) -> bool {
        let is_due = match self.silent {
            Some(silence) => now >= silence.ask_again_at,
            None => self.quiet_since().is_some_and(|since| now >= since + SUSPICION),
        };
        let is_wanted = is_due && !self.is_being_asked;
        self.is_being_asked |= is_wanted;
        is_wanted
    }

    /// Takes note of what came of the question that was asked at `asked`.
    fn question_ended(&mut self, asked: Duration, has_answered: bool, now: Duration) {
        self.is_being_asked = false;
        if has_answered {
            self.answered(now);
        } else if self.last_answer.is_none_or(|answer| answer < asked) {
            let pause = self.silent.map_or(ASK_AGAIN_MIN, |silence| silence.pause * 2);
            let pause = pause.min(ASK_AGAIN_MAX);
            self.silent = Some(Silence { ask_again_at: now + pause, pause });
        }
    }
}

impl Shared {
    /// Returns whether a store has failed or hangs; one that hangs is asked beside, when its time has come.
    pub(crate) fn is_failing(&self, member: usize, direction: Direction) -> bool {
        let now = self.clock.elapsed();
        let is_failing = self.members[member].is_failing(direction, now);
        if is_failing {
            self.feel_pulse(member);
        }
        is_failing
    }

    /// Asks a store that is suspiciously quiet something small, in the background. Without a runtime nothing goes on in the
    /// background, and no store counts as one that hangs.
    pub(crate) fn feel_pulse(&self, member: usize) {
        let now = self.clock.elapsed();
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let Some(shared) = self.this.upgrade() else { return };
        if self.members[member].with_pulse(|pulse| pulse.wants_question(now)) {
            runtime.spawn(async move { shared.ask_for_life(member, now).await });
        }
    }

    async fn ask_for_life(self: Arc<Self>, number: usize, asked: Duration) {
        let member: &Member = &self.members[number];
        let key = ObjectKey::genesis();
        let mut question = member.store.size(&key);
        // An error is an answer, too: what hangs says nothing.
        let answer = select(&mut question, self.clock.sleep(QUESTION_MAX)).await;
        let has_answered = matches!(answer, Either::Left(_));
        let now = self.clock.elapsed();
        let was_silent = member.with_pulse(|pulse| {
            let was_silent = pulse.is_silent();
            pulse.question_ended(asked, has_answered, now);
            was_silent
        });
        if has_answered && was_silent {
            self.is_back(member);
        }
        if !has_answered {
            tracing::debug!(store = member.name, "a store of the pool hangs");
            // It may be that slow.
            let answer = select(question, self.clock.sleep(self.options.time_limit)).await;
            if matches!(answer, Either::Left(_)) {
                member.with_pulse(|pulse| pulse.answered(self.clock.elapsed()));
                self.is_back(member);
            }
        }
    }

    fn is_back(&self, member: &Member) {
        tracing::debug!(store = member.name, "a store of the pool answers again");
        let Some(shared) = self.this.upgrade() else { return };
        let pay = async move {
            // Who reads is not kept waiting for what is owed, but not for ever.
            let until = shared.clock.elapsed() + PAY_LATER_MAX;
            while shared.members.iter().any(Member::is_read) && shared.clock.elapsed() < until {
                shared.clock.sleep(LOOK_EVERY).await;
            }
            shared.pay_owed().await;
        };
        self.backlog.keep(None, Box::pin(pay));
    }

    /// Asks the stores that hang once more, for a moment.
    pub(crate) async fn ask_silent(&self) {
        let key = ObjectKey::genesis();
        let silent =
            self.members.iter().filter(|member| member.with_pulse(|pulse| pulse.is_silent()));
        let asked = silent.map(|member| async {
            let question = member.store.size(&key);
            let answer = select(question, self.clock.sleep(LAST_QUESTION_MAX)).await;
            if matches!(answer, Either::Left(_)) {
                member.with_pulse(|pulse| pulse.answered(self.clock.elapsed()));
            }
        });
        join_all(asked).await;
    }

    /// Waits for the background, but not for stores that hang.
    pub(crate) async fn drain_answering(&self) {
        let drained = std::pin::pin!(self.backlog.drain());
        let given_up = std::pin::pin!(self.only_silent_are_left());
        select(drained, given_up).await;
    }

    async fn only_silent_are_left(&self) {
        loop {
            self.clock.sleep(LOOK_EVERY).await;
            let now = self.clock.elapsed();
            let look = |member: &Member| {
                member.with_pulse(|pulse| {
                    let since = pulse.quiet_since()?;
                    Some(pulse.is_silent() && now >= since + GIVE_UP_AFTER)
                })
            };
            let waited_for: Vec<bool> = self.members.iter().filter_map(look).collect();
            if !waited_for.is_empty() && waited_for.iter().all(|is_hopeless| *is_hopeless) {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn quiet_store_is_asked_once_and_hangs_when_it_says_nothing() {
        let mut pulse = Pulse::default();
        assert!(!pulse.wants_question(at(9)), "nobody waits for it");
        let call = pulse.begin(at(10));
        assert!(!pulse.wants_question(at(11)));
        assert!(pulse.wants_question(at(12)));
        assert!(!pulse.wants_question(at(13)), "it is being asked");
        pulse.question_ended(at(12), false, at(16));
        assert!(pulse.is_silent());
        assert!(!pulse.wants_question(at(19)));
        assert!(pulse.wants_question(at(20)));
        pulse.question_ended(at(20), false, at(24));
        assert!(!pulse.wants_question(at(31)), "each time later");
        assert!(pulse.wants_question(at(32)));
        pulse.question_ended(at(32), true, at(33));
        assert!(!pulse.is_silent());
        pulse.end(call);
        assert_eq!(pulse.quiet_since(), None);
    }

    #[test]
    fn slow_store_that_answers_meanwhile_does_not_hang() {
        let mut pulse = Pulse::default();
        pulse.begin(at(0));
        pulse.begin(at(0));
        assert!(pulse.wants_question(at(2)));
        pulse.answered(at(3));
        pulse.question_ended(at(2), false, at(5));
        assert!(!pulse.is_silent());
        assert_eq!(pulse.quiet_since(), Some(at(3)));
    }
}
