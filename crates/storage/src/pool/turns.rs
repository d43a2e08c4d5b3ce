//! The turns of the pieces that are written to one store: some at once, the others in a queue that tells how much is before
//! whom.
//!
//! A piece that somebody waits for goes before those that nobody waits for any more. These do not fill the line as long as a
//! write of the pool waits for anything: its next piece may be for this store. From a line on which little would wait long for them
//! they step back for a moment, when a sync has ended: what comes next is the commit (`make_way`).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use model::Clock;
use parking_lot::Mutex;
use tokio::sync::oneshot;

/// How many pieces one store takes at once. Clients and services have eight connections or so for each other, and the log, for
/// which everybody waits, must find one free.
pub(crate) const TURNS_AT_ONCE: usize = 6;

/// How many of them may be pieces that nobody waits for, while somebody waits for others. One would leave the line idle between
/// two of them.
const LATE_AT_ONCE: usize = 2;

/// Who goes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Urgency {
    /// A write waits for it.
    Awaited,
    /// It completes what is durable elsewhere.
    Late,
}

/// Where a piece stands.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Standing {
    /// So many bytes have to go before it is stored, its own included.
    Waits(u64),
    /// It is on the line.
    IsOnLine(Passage),
    /// It is stored, or was given up.
    IsGone,
}

/// The queue of a store; clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Turns {
    state: Arc<Mutex<State>>,
    traffic: Traffic,
}

/// What all stores of a pool have under way together; clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Traffic {
    clock: Arc<dyn Clock>,
    awaited: Arc<AtomicUsize>,
    line: Arc<Mutex<Line>>,
    /// Until when pieces that stepped back leave the line to others.
    held_until: Arc<Mutex<Duration>>,
}

/// How much of a line one of those that share it evenly has got.
#[derive(Debug, Default)]
struct Line {
    pieces: u32,
    changed: Duration,
    /// Seconds that somebody who was always there would have had it alone.
    share: f64,
}

impl Line {
    fn share(&mut self, now: Duration) -> f64 {
        let passed = now.saturating_sub(self.changed).as_secs_f64();
        self.changed = now;
        self.share += passed / f64::from(self.pieces.max(1));
        self.share
    }

    fn begin(&mut self, now: Duration) -> f64 {
        let share = self.share(now);
        self.pieces += 1;
        share
    }

    fn end(&mut self, now: Duration) {
        self.share(now);
        self.pieces = self.pieces.saturating_sub(1);
    }
}

impl Traffic {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        let (awaited, line, held_until) = (Arc::default(), Arc::default(), Arc::default());
        Self { clock, awaited, line, held_until }
    }

    /// Counts a write that waits for something.
    pub(crate) fn begin_wait(&self) {
        self.awaited.fetch_add(1, Ordering::Relaxed);
        self.hold_until(Duration::ZERO);
    }

    /// Lets pieces that nobody waits for begin no earlier than that, unless a write comes before.
    pub(crate) fn hold_until(&self, time: Duration) {
        *self.held_until.lock() = time;
    }

    fn are_late_held(&self) -> bool {
        self.clock.elapsed() < *self.held_until.lock()
    }

    /// Counts it no longer; tells whether it was the last.
    pub(crate) fn end_wait(&self) -> bool {
        self.awaited.fetch_sub(1, Ordering::Relaxed) == 1
    }
}

/// What a piece has had of the lines, or had until it was stored.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Passage {
    /// Seconds since it went onto the line.
    pub(crate) taken: f64,
    /// How many bytes had to go then, its own included.
    pub(crate) to_go: u64,
    /// The same seconds, divided among the pieces that were on the line of its store.
    pub(crate) share: f64,
    /// Divided among all pieces that were on their way to any store.
    pub(crate) share_of_all: f64,
}

#[derive(Debug, Default)]
struct State {
    next: u64,
    waiting: BTreeMap<(Urgency, u64), Waiting>,
    on_line: BTreeMap<u64, OnLine>,
    /// How to call those of them back that nobody waits for.
    called_back: BTreeMap<u64, oneshot::Sender<Left>>,
    line: Line,
}

/// Is dropped when a piece has left the line.
type Left = oneshot::Sender<()>;

#[derive(Debug)]
struct Waiting {
    bytes: u64,
    signal: oneshot::Sender<Turn>,
    has_stepped_back: bool,
}

#[derive(Debug, Clone, Copy)]
struct OnLine {
    bytes: u64,
    /// With those of the pieces that were on the line before.
    to_go: u64,
    since: Duration,
    /// Where the shares stood of its store's line and of all.
    shares: [f64; 2],
    urgency: Urgency,
    has_stepped_back: bool,
}

/// A place in the queue; it is left when this is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    turns: Turns,
    number: u64,
}

/// Comes when it is a piece's turn.
pub(crate) type TurnComes = oneshot::Receiver<Turn>;

/// The turn of a piece, which ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Turn {
    turns: Turns,
    number: u64,
    piece: OnLine,
    is_called_back: oneshot::Receiver<Left>,
}

impl Turns {
    /// Makes the queue of a store of a pool.
    pub(crate) fn new(traffic: Traffic) -> Self {
        Self { state: Arc::default(), traffic }
    }

    /// Takes a place in the queue for a piece of `bytes` bytes.
    pub(crate) fn enter(&self, bytes: u64, urgency: Urgency) -> (Place, TurnComes) {
        let (signal, comes) = oneshot::channel();
        let number = {
            let mut state = self.state.lock();
            let number = state.next;
            state.next += 1;
            let waiting = Waiting { bytes, signal, has_stepped_back: false };
            state.waiting.insert((urgency, number), waiting);
            number
        };
        self.give_turns();
        (Place { turns: self.clone(), number }, comes)
    }

    /// Asks the pieces on the line that nobody waits for, that have more than `bytes_min` bytes, and that have not done so before, to
    /// step back. Returns what comes when they have.
    pub(crate) fn step_back(&self, bytes_min: u64) -> Vec<oneshot::Receiver<()>> {
        let mut state = self.state.lock();
        let is_asked = |piece: &OnLine| {
            piece.urgency == Urgency::Late && piece.bytes > bytes_min && !piece.has_stepped_back
        };
        let asked = state.on_line.iter().filter(|(_, piece)| is_asked(piece));
        let asked: Vec<u64> = asked.map(|(number, _)| *number).collect();
        let calls: Vec<_> =
            asked.iter().filter_map(|number| state.called_back.remove(number)).collect();
        drop(state);
        let call = |sender: oneshot::Sender<Left>| {
            let (left, has_left) = oneshot::channel();
            sender.send(left).ok().map(|()| has_left)
        };
        calls.into_iter().filter_map(call).collect()
    }

    /// Returns how many pieces are on the line.
    pub(crate) fn on_line(&self) -> usize {
        self.state.lock().on_line.len()
    }

    /// Returns how many bytes have to go before an awaited piece of `bytes` bytes is stored that comes now.
    pub(crate) fn to_go(&self, bytes: u64) -> u64 {
        let state = self.state.lock();
        state.before((Urgency::Awaited, state.next)) + bytes
    }

    fn passage(&self, piece: &OnLine) -> Passage {
        let now = self.traffic.clock.elapsed();
        let OnLine { to_go, since, shares: [own, all], .. } = *piece;
        Passage {
            taken: now.saturating_sub(since).as_secs_f64(),
            to_go,
            share: self.state.lock().line.share(now) - own,
            share_of_all: self.traffic.line.lock().share(now) - all,
        }
    }

    /// Gives turns to whoever may have one.
    pub(crate) fn give_turns(&self) {
        loop {
            let late_max = match self.traffic.awaited.load(Ordering::Relaxed) {
                0 if self.traffic.are_late_held() => 0,
                0 => TURNS_AT_ONCE,
                _ => LATE_AT_ONCE,
            };
            let next = self.state.lock().take_first(self, late_max);
            let Some((signal, turn)) = next else { return };
            // Whoever has gone gives it back.
            drop(signal.send(turn));
        }
    }
}

impl State {
    /// Returns the bytes of the pieces that go before a place.
    fn before(&self, place: (Urgency, u64)) -> u64 {
        let on_line: u64 = self.on_line.values().map(|piece| piece.bytes).sum();
        on_line + self.waiting.range(..place).map(|(_, waiting)| waiting.bytes).sum::<u64>()
    }

    fn take_first(
        &mut self,
        turns: &Turns,
        late_max: usize,
    ) -> Option<(oneshot::Sender<Turn>, Turn)> {
        let ((urgency, _), _) = self.waiting.first_key_value()?;
        let most = if *urgency == Urgency::Late { late_max } else { TURNS_AT_ONCE };
        if self.on_line.len() >= most {
            return None;
        }
        let ((urgency, number), waiting) = self.waiting.pop_first()?;
        let Waiting { bytes, signal, has_stepped_back } = waiting;
        let to_go = self.on_line.values().map(|piece| piece.bytes).sum::<u64>() + bytes;
        let since = turns.traffic.clock.elapsed();
        let shares = [self.line.begin(since), turns.traffic.line.lock().begin(since)];
        let piece = OnLine { bytes, to_go, since, shares, urgency, has_stepped_back };
        self.on_line.insert(number, piece);
        let (call, is_called_back) = oneshot::channel();
        self.called_back.insert(number, call);
        Some((signal, Turn { turns: turns.clone(), number, piece, is_called_back }))
    }
}

impl Place {
    /// Tells where the piece stands now.
    pub(crate) fn standing(&self) -> Standing {
        let on_line = self.turns.state.lock().on_line.get(&self.number).copied();
        if let Some(piece) = on_line {
            return Standing::IsOnLine(self.turns.passage(&piece));
        }
        let state = self.turns.state.lock();
        for urgency in [Urgency::Awaited, Urgency::Late] {
            if let Some(waiting) = state.waiting.get(&(urgency, self.number)) {
                return Standing::Waits(state.before((urgency, self.number)) + waiting.bytes);
            }
        }
        Standing::IsGone
    }

    /// Moves the piece among those that are, or are not, waited for.
    pub(crate) fn set_urgency(&self, urgency: Urgency) {
        let mut state = self.turns.state.lock();
        if let Some(piece) = state.on_line.get_mut(&self.number) {
            piece.urgency = urgency;
        }
        for before in [Urgency::Awaited, Urgency::Late] {
            if let Some(waiting) = state.waiting.remove(&(before, self.number)) {
                state.waiting.insert((urgency, self.number), waiting);
                break;
            }
        }
        drop(state);
        self.turns.give_turns();
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut state = self.turns.state.lock();
        for urgency in [Urgency::Awaited, Urgency::Late] {
            state.waiting.remove(&(urgency, self.number));
        }
    }
}

impl Turn {
    /// Returns what the piece has had of the lines until now.
    pub(crate) fn passage(&self) -> Passage {
        self.turns.passage(&self.piece)
    }

    /// Comes when the piece is asked to step back, if ever.
    pub(crate) async fn called_back(&mut self) -> Left {
        match (&mut self.is_called_back).await {
            Ok(left) => left,
            Err(_) => std::future::pending().await,
        }
    }

    /// Leaves the line, and waits for another turn in the old place.
    pub(crate) fn step_back(self) -> TurnComes {
        let (signal, comes) = oneshot::channel();
        let waiting = Waiting { bytes: self.piece.bytes, signal, has_stepped_back: true };
        self.turns.state.lock().waiting.insert((Urgency::Late, self.number), waiting);
        comes
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let now = self.turns.traffic.clock.elapsed();
        {
            let mut state = self.turns.state.lock();
            state.on_line.remove(&self.number);
            state.called_back.remove(&self.number);
            state.line.end(now);
            self.turns.traffic.line.lock().end(now);
        }
        self.turns.give_turns();
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A clock that is set by hand.
    #[derive(Debug, Default)]
    pub(crate) struct ByHand(Mutex<Duration>);

    impl Clock for ByHand {
        fn now(&self) -> model::Timestamp {
            model::Timestamp { seconds: 0, nanoseconds: 0 }
        }

        fn elapsed(&self) -> Duration {
            *self.0.lock()
        }

        fn sleep(&self, _: Duration) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send>> {
            Box::pin(std::future::pending())
        }
    }

    fn turns() -> Turns {
        Turns::new(Traffic::new(Arc::new(ByHand::default())))
    }

    fn enter(turns: &Turns, urgency: Urgency) -> (Place, TurnComes) {
        turns.enter(10, urgency)
    }

    #[test]
    fn six_go_at_once_and_the_awaited_ones_before_the_others() {
        let turns = turns();
        let mut on_line: Vec<_> = (0..6).map(|_| enter(&turns, Urgency::Late)).collect();
        let mut running: Vec<Turn> =
            on_line.iter_mut().map(|(_, comes)| comes.try_recv().expect("there is room")).collect();
        let (late, mut late_comes) = enter(&turns, Urgency::Late);
        let (awaited, mut awaited_comes) = enter(&turns, Urgency::Awaited);
        assert_eq!(late.standing(), Standing::Waits(80));
        assert_eq!(awaited.standing(), Standing::Waits(70));
        assert_eq!(turns.to_go(10), 80, "nobody waits for one of the two");
        running.pop();
        assert!(late_comes.try_recv().is_err());
        let turn = awaited_comes.try_recv().expect("it is its turn");
        assert_eq!(turn.passage().to_go, 60);
        assert_eq!(awaited.standing(), Standing::IsOnLine(turn.passage()));
        drop(turn);
        assert_eq!(awaited.standing(), Standing::IsGone);
        assert!(late_comes.try_recv().is_ok());
    }

    #[test]
    fn who_is_not_waited_for_any_more_lets_the_others_go_first() {
        let turns = turns();
        let mut places: Vec<_> = (0..8).map(|_| enter(&turns, Urgency::Awaited)).collect();
        places[6].0.set_urgency(Urgency::Late);
        assert_eq!(places[7].0.standing(), Standing::Waits(70));
        places[6].0.set_urgency(Urgency::Awaited);
        assert_eq!(places[7].0.standing(), Standing::Waits(80));
        places[6].0.set_urgency(Urgency::Late);
        drop(places.remove(0));
        let turn = places[6].1.try_recv();
        assert!(turn.is_ok(), "a turn that nobody takes is given to the next");
        assert!(places[5].1.try_recv().is_err());
    }

    #[test]
    fn those_that_nobody_waits_for_leave_room_while_somebody_waits() {
        let turns = turns();
        turns.traffic.begin_wait();
        let mut late: Vec<_> = (0..4).map(|_| enter(&turns, Urgency::Late)).collect();
        let mut first = enter(&turns, Urgency::Awaited);
        let mut comes = |number: usize| late[number].1.try_recv().ok();
        let turns_of_two = [comes(0), comes(1)];
        assert!(turns_of_two.iter().all(Option::is_some) && comes(2).is_none());
        assert!(first.1.try_recv().is_ok());
        assert!(turns.traffic.end_wait());
        turns.give_turns();
        assert!(comes(2).is_some() && comes(3).is_some());
    }

    #[test]
    fn passage_tells_how_much_of_the_lines_a_piece_has_had() {
        let clock = Arc::new(ByHand::default());
        let traffic = Traffic::new(clock.clone());
        let (one, other) = (Turns::new(traffic.clone()), Turns::new(traffic));
        let mut first = enter(&one, Urgency::Awaited);
        let turn = first.1.try_recv().expect("there is room");
        *clock.0.lock() = Duration::from_secs(6);
        let second = enter(&one, Urgency::Awaited);
        let third = enter(&other, Urgency::Awaited);
        *clock.0.lock() = Duration::from_secs(12);
        let passage = turn.passage();
        assert_eq!((passage.taken, passage.to_go), (12.0, 10));
        assert_eq!((passage.share, passage.share_of_all), (9.0, 8.0));
        drop((second, third));
        *clock.0.lock() = Duration::from_secs(14);
        let passage = turn.passage();
        assert_eq!((passage.share, passage.share_of_all), (11.0, 10.0));
    }

    #[tokio::test]
    async fn piece_that_nobody_waits_for_steps_back_once_and_keeps_its_place() {
        let clock = Arc::new(ByHand::default());
        let traffic = Traffic::new(clock.clone());
        let turns = Turns::new(traffic.clone());
        let (awaited, mut awaited_comes) = enter(&turns, Urgency::Awaited);
        let (late, mut late_comes) = enter(&turns, Urgency::Awaited);
        late.set_urgency(Urgency::Late);
        let _running = awaited_comes.try_recv().expect("there is room");
        let mut turn = late_comes.try_recv().expect("there is room");
        assert!(turns.step_back(10).is_empty(), "it is too small");
        let mut left = turns.step_back(9);
        assert_eq!(left.len(), 1, "only one is late");
        traffic.hold_until(Duration::from_secs(5));
        let told = turn.called_back().await;
        let mut comes = turn.step_back();
        drop(told);
        assert!(left[0].try_recv().is_err(), "whoever asked is told");
        assert_eq!(turns.on_line(), 1);
        assert_eq!(late.standing(), Standing::Waits(20));
        assert!(comes.try_recv().is_err(), "it is held");
        *clock.0.lock() = Duration::from_secs(5);
        turns.give_turns();
        let _turn = comes.try_recv().expect("its time has come");
        assert!(turns.step_back(9).is_empty(), "once is enough");
        drop(awaited);
    }

    #[test]
    fn place_that_is_left_is_taken_by_the_next() {
        let turns = turns();
        let held: Vec<_> = (0..6).map(|_| enter(&turns, Urgency::Awaited)).collect();
        let left = enter(&turns, Urgency::Awaited);
        let (place, _comes) = enter(&turns, Urgency::Awaited);
        assert_eq!(place.standing(), Standing::Waits(80));
        drop(left);
        assert_eq!(place.standing(), Standing::Waits(70));
        drop(held);
        assert_eq!(turns.to_go(0), 10);
    }
}
