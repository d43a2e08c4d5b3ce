//! The newest events of one topic, kept once for all devices that listen to it.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::frames::Position;

/// How many events are kept at most.
const EVENTS_MAX: usize = 1024;

/// How many bytes of them.
const BYTES_MAX: usize = 4 << 20;

/// Wakes the writer of one connection, for one listener, as long as that listens.
#[derive(Debug)]
pub(super) struct Waking(pub(super) Arc<Notify>);

/// A bounded row of events.
#[derive(Debug)]
pub(super) struct Ring {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    epoch: u64,
    /// The position of the newest event.
    last: u64,
    events: VecDeque<Bytes>,
    bytes: usize,
    listeners: Vec<Weak<Waking>>,
}

/// What follows a position.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Following {
    /// Nothing yet.
    Nothing,
    /// The next event, and its position.
    Event(Position, Bytes),
    /// Events are missing; what follows this position is there.
    Gap(Position),
}

impl Ring {
    pub(super) fn new(epoch: u64) -> Self {
        let (events, listeners) = (VecDeque::new(), Vec::new());
        Self { state: Mutex::new(State { epoch, last: 0, events, bytes: 0, listeners }) }
    }

    /// Adds an event and wakes who listens.
    pub(super) fn push(&self, event: Bytes) {
        let mut state = self.state.lock();
        state.last += 1;
        state.bytes += event.len();
        state.events.push_back(event);
        while state.events.len() > EVENTS_MAX || state.bytes > BYTES_MAX {
            let Some(oldest) = state.events.pop_front() else { break };
            state.bytes -= oldest.len();
        }
        state.wake();
    }

    /// Begins another count, because events were lost before they came here.
    pub(super) fn begin_again(&self, epoch: u64) {
        let mut state = self.state.lock();
        state.epoch = epoch;
        state.events.clear();
        state.bytes = 0;
        state.wake();
    }

    /// Returns the position of the newest event.
    pub(super) fn newest(&self) -> Position {
        let state = self.state.lock();
        Position { epoch: state.epoch, last: state.last }
    }

    /// Wakes `listener` at every event from now on, as long as it lives.
    pub(super) fn wake(&self, listener: &Arc<Waking>) {
        let mut state = self.state.lock();
        state.listeners.retain(|known| known.strong_count() > 0);
        state.listeners.push(Arc::downgrade(listener));
    }

    /// Says whether anybody listens.
    pub(super) fn has_listeners(&self) -> bool {
        self.state.lock().listeners.iter().any(|listener| listener.strong_count() > 0)
    }

    /// Returns what follows a position.
    pub(super) fn after(&self, position: Position) -> Following {
        let state = self.state.lock();
        let newest = Position { epoch: state.epoch, last: state.last };
        if position == newest {
            return Following::Nothing;
        }
        if position.epoch != state.epoch || position.last > state.last {
            return Following::Gap(newest);
        }
        let behind = usize::try_from(state.last - position.last).unwrap_or(usize::MAX);
        match state.events.len().checked_sub(behind) {
            Some(index) => {
                let next = Position { last: position.last + 1, ..position };
                Following::Event(next, state.events[index].clone())
            }
            None => Following::Gap(newest),
        }
    }
}

impl State {
    fn wake(&mut self) {
        self.listeners.retain(|listener| match listener.upgrade() {
            Some(listener) => {
                listener.0.notify_one();
                true
            }
            None => false,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_follow_each_other_and_what_is_too_old_is_a_gap() {
        let ring = Ring::new(5);
        let mut position = ring.newest();
        assert_eq!(ring.after(position), Following::Nothing);
        for number in 0..10_u8 {
            ring.push(Bytes::from(vec![number]));
        }
        for number in 0..10_u8 {
            let Following::Event(next, event) = ring.after(position) else { panic!("it is there") };
            assert_eq!(event[..], [number]);
            position = next;
        }
        assert_eq!(ring.after(position), Following::Nothing);
        for _ in 0..=EVENTS_MAX {
            ring.push(Bytes::new());
        }
        assert_eq!(ring.after(position), Following::Gap(ring.newest()));
        assert_eq!(ring.after(Position { epoch: 4, last: 1 }), Following::Gap(ring.newest()));
        let future = Position { last: 1 << 40, ..ring.newest() };
        assert_eq!(ring.after(future), Following::Gap(ring.newest()));
        let before = ring.newest();
        ring.begin_again(6);
        assert_eq!(ring.after(before), Following::Gap(ring.newest()));
    }

    #[test]
    fn large_events_push_out_more() {
        let ring = Ring::new(1);
        for _ in 0..10 {
            ring.push(Bytes::from(vec![0; BYTES_MAX / 4]));
        }
        assert_eq!(ring.state.lock().events.len(), 4);
        assert!(!ring.has_listeners());
    }
}
