//! Writing: to all homes at once, to the next store where a home fails or is far behind, answered when enough is durable.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::future::{BoxFuture, Either, pending, select};
use futures_util::stream::FuturesUnordered;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use crate::blocking::off_runtime;
use crate::error::{Result, StorageError};
use crate::key::ObjectKey;
use crate::object_store::{ObjectStore, PutMode, PutOutcome};

use super::Shared;
use super::block::encode;
use super::deferred::{DeferredObject, EndWrite};
use super::member::{Direction, Member};
use super::piece::Piece;
use super::turns::{Place, Standing, TURNS_AT_ONCE, TurnComes, Urgency};

/// A home is awaited at least so long before a substitute is given its piece.
const PATIENCE_MIN: Duration = Duration::from_secs(2);

/// A home may take so many times as long as expected before that.
const PATIENCE_FACTOR: u32 = 4;

/// How often it is looked at after that.
const PATIENCE_STEP: Duration = Duration::from_millis(500);

/// A piece that is alone on its line takes so many times as long as another one of the object, before a substitute is given it of
/// which nothing is known.
const LONGER_THAN_OTHERS: u32 = 2;

/// How a piece is handed to its store.
#[derive(Debug, Clone)]
pub(crate) enum Way {
    /// Durable on return.
    Put(PutMode),
    /// Durable after the next sync.
    Defer(Arc<DeferredObject>),
}

/// A piece and its bytes.
#[derive(Debug, Clone)]
pub(crate) struct Cut {
    pub(crate) piece: Piece,
    pub(crate) key: ObjectKey,
    pub(crate) bytes: Bytes,
}

impl Shared {
    pub(crate) async fn put(
        self: &Arc<Self>,
        key: &ObjectKey,
        bytes: Bytes,
        mode: PutMode,
    ) -> Result<PutOutcome> {
        self.write(key, bytes, Way::Put(mode)).await
    }

    /// Writes an object; what is still under way when enough is durable goes on in the background.
    pub(crate) async fn write(
        self: &Arc<Self>,
        key: &ObjectKey,
        bytes: Bytes,
        way: Way,
    ) -> Result<PutOutcome> {
        let hash = self.object(key)?;
        let order = self.order(&hash);
        let cuts = self.cut(key, hash, bytes).await?;
        let homes: Vec<usize> = order.homes().to_vec();
        // The cuts in the order of the homes.
        let cuts = homes.iter().map(|&home| match order.index_of(home) {
            None => cuts[0].clone(),
            Some(index) => cuts[usize::from(index)].clone(),
        });
        let (signal, answer) = oneshot::channel();
        self.traffic.begin_wait();
        let write = Write {
            key: key.clone(),
            cuts: cuts.collect(),
            substitutes: order.substitutes().iter().copied().collect(),
            signal: Some(signal),
            end: way.end(),
            way,
            early: None,
            waits: Some(Waits(Arc::clone(self))),
            stored: BTreeSet::new(),
            relieved: BTreeSet::new(),
            longest: None,
            is_written: false,
            failed: Vec::new(),
            is_owed: false,
            started: Vec::new(),
            running: FuturesUnordered::new(),
            shared: Arc::clone(self),
        };
        let work: BoxFuture<'static, ()> = Box::pin(write.run(homes));
        match select(answer, work).await {
            Either::Left((result, work)) => {
                self.backlog.keep(Some(key.clone()), work);
                result
            }
            Either::Right(((), answer)) => answer.await,
        }
        .expect("a write answers before it ends")
    }

    /// Returns the pieces of an object: one copy, or all blocks.
    pub(crate) async fn cut(
        &self,
        key: &ObjectKey,
        hash: [u8; 32],
        bytes: Bytes,
    ) -> Result<Vec<Cut>> {
        let Some(code) = self.code() else {
            return Ok(vec![Cut { piece: Piece::Copy, key: key.clone(), bytes }]);
        };
        let blocks = off_runtime(move || Ok(encode(code, hash, &bytes))).await?;
        let cut = |(name, bytes)| {
            let piece = Piece::Block(name);
            Cut { piece, key: piece.key(key), bytes }
        };
        Ok(code.names().zip(blocks).map(cut).collect())
    }

    /// Gives a store a piece that no write waits for.
    pub(crate) async fn put_piece(&self, member: usize, cut: &Cut, way: Way) -> Result<PutOutcome> {
        let length = cut.bytes.len() as u64;
        let (_place, comes) = self.members[member].turns.enter(length, Urgency::Late);
        self.put_in_turn(member, cut, way, comes).await
    }

    /// Gives a store a piece when its turn comes; whoever calls keeps its place.
    async fn put_in_turn(
        &self,
        number: usize,
        cut: &Cut,
        way: Way,
        mut comes: TurnComes,
    ) -> Result<PutOutcome> {
        let member = &self.members[number];
        let length = cut.bytes.len() as u64;
        let put = async {
            loop {
                let mut turn = comes.await.expect("its place is kept");
                let put = Box::pin(self.put_now(number, cut, &way));
                let ended = match select(put, Box::pin(turn.called_back())).await {
                    Either::Left((outcome, _)) => Ok(outcome?),
                    Either::Right((left, _)) => Err(left),
                };
                let outcome = match ended {
                    Ok(outcome) => outcome,
                    Err(left) => {
                        member.took_longer(length, turn.passage(), self.clock.elapsed());
                        comes = turn.step_back();
                        // The request has ended: whoever has asked for that may go on.
                        drop(left);
                        continue;
                    }
                };
                // What was there already says nothing about the line.
                if outcome == PutOutcome::Written {
                    member.wrote(length, turn.passage(), self.clock.elapsed());
                }
                return Ok(outcome);
            }
        };
        let result = self.call(number, Direction::Write, length, put, |_| length).await;
        self.news.notify_waiters();
        result
    }
}

impl Shared {
    async fn put_now(&self, number: usize, cut: &Cut, way: &Way) -> Result<PutOutcome> {
        let store = &self.members[number].store;
        match way {
            Way::Put(mode) => put_whole(store.as_ref(), cut, *mode).await,
            Way::Defer(object) => {
                store.put_deferred(&cut.key, cut.bytes.clone()).await?;
                self.note_deferred(object, number, cut.piece);
                Ok(PutOutcome::Written)
            }
        }
    }
}

impl Way {
    /// Returns what says that a deferred write is done, or given up, when it is dropped.
    fn end(&self) -> Option<EndWrite> {
        match self {
            Self::Put(_) => None,
            Self::Defer(object) => Some(EndWrite(Arc::clone(object))),
        }
    }
}

/// Puts a piece; one that is there with another length was torn, and is replaced.
async fn put_whole(store: &dyn ObjectStore, cut: &Cut, mode: PutMode) -> Result<PutOutcome> {
    if mode == PutMode::IfAbsent {
        match store.put(&cut.key, cut.bytes.clone(), mode).await {
            Ok(PutOutcome::Written) => return Ok(PutOutcome::Written),
            Ok(PutOutcome::Exists) => {
                if store.size(&cut.key).await? == Some(cut.bytes.len() as u64) {
                    return Ok(PutOutcome::Exists);
                }
            }
            Err(StorageError::Unsupported { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    store.put(&cut.key, cut.bytes.clone(), PutMode::Overwrite).await
}

/// A write that is under way.
struct Write {
    shared: Arc<Shared>,
    key: ObjectKey,
    /// One for each home.
    cuts: Vec<Cut>,
    way: Way,
    /// Who takes what a home does not; last those homes that were left out at first.
    substitutes: VecDeque<usize>,
    signal: Option<oneshot::Sender<Result<PutOutcome>>>,
    end: Option<EndWrite>,
    /// The room that the bytes take of a deferred write that was answered before there was enough.
    early: Option<OwnedSemaphorePermit>,
    /// As long as enough is not durable.
    waits: Option<Waits>,
    /// Which of the cuts are durable somewhere.
    stored: BTreeSet<usize>,
    /// Which of them a substitute was given, too, because the home is far behind.
    relieved: BTreeSet<usize>,
    /// How long the slowest piece took that is stored.
    longest: Option<Duration>,
    is_written: bool,
    failed: Vec<(usize, StorageError)>,
    /// Whether a home was left without its piece.
    is_owed: bool,
    started: Vec<Started>,
    running: FuturesUnordered<BoxFuture<'static, (usize, usize, Result<PutOutcome>)>>,
}

/// A write that somebody waits for.
struct Waits(Arc<Shared>);

impl Drop for Waits {
    fn drop(&mut self) {
        if self.0.traffic.end_wait() {
            self.0.members.iter().for_each(|member| member.turns.give_turns());
        }
    }
}

/// A cut that a store was given.
struct Started {
    number: usize,
    member: usize,
    place: Arc<Place>,
    began: Duration,
    /// How many bytes had to go before it was stored, its own included.
    to_go: u64,
}

impl Write {
    async fn run(mut self, homes: Vec<usize>) {
        self.start_all(&homes);
        let mut is_late = self.shared.clock.sleep(PATIENCE_MIN);
        loop {
            let mut news = self.news();
            self.relieve();
            self.answer_early();
            match select(self.running.next(), select(&mut is_late, &mut news)).await {
                Either::Left((None, _)) => break,
                Either::Left((Some((number, member, result)), _)) => {
                    self.ended(number, member, result);
                }
                Either::Right((Either::Left(_), _)) => {
                    self.replace_late();
                    is_late = self.shared.clock.sleep(PATIENCE_STEP);
                }
                Either::Right((Either::Right(_), _)) => {}
            }
        }
        // No store is left that has not been asked. What there is must do, if it gives the object back.
        if self.stored.len() >= self.shared.least() {
            self.answer();
        }
        if let Some(signal) = self.signal.take() {
            // The writer may have gone.
            let _ = signal.send(Err(self.shared.combine(std::mem::take(&mut self.failed))));
        }
        if self.is_owed {
            self.shared.backlog.owe(&self.key);
        }
    }

    /// Starts with the homes that can be expected to take it, and with substitutes for those that fail lately or are far behind.
    fn start_all(&mut self, homes: &[usize]) {
        let (mut spared, mut replaced) = (Vec::new(), Vec::new());
        for (number, &home) in homes.iter().enumerate() {
            let member = &self.shared.members[home];
            let is_failing = self.shared.is_failing(home, Direction::Write);
            if !is_failing && member.written_under_way() <= self.shared.options.under_way_max {
                let urgency = match self.start_relief(number, home, None) {
                    true => Urgency::Late,
                    false => Urgency::Awaited,
                };
                self.start(number, home, urgency);
                continue;
            }
            self.is_owed = true;
            if is_failing && self.start_substitute(number) {
                replaced.push(home);
            } else {
                spared.push((number, home));
            }
        }
        // Of those that hang nobody expects more than what cannot be done without.
        let shared = Arc::clone(&self.shared);
        let is_silent = |home: usize| shared.members[home].with_pulse(|pulse| pulse.is_silent());
        spared.sort_by_key(|(_, home)| !is_silent(*home));
        while let Some(&(number, home)) = spared.last()
            && self.running.len() < if is_silent(home) { shared.least() } else { shared.enough() }
        {
            spared.pop();
            if !self.start_relief(number, home, None) {
                self.start(number, home, Urgency::Awaited);
            }
        }
        self.substitutes.extend(replaced);
        self.substitutes.extend(spared.into_iter().map(|(_, home)| home));
    }

    fn start(&mut self, number: usize, member: usize, urgency: Urgency) {
        let (shared, way) = (Arc::clone(&self.shared), self.way.clone());
        let cut = self.cuts[number].clone();
        let length = cut.bytes.len() as u64;
        let turns = &shared.members[member].turns;
        let to_go = turns.to_go(length);
        let (place, comes) = turns.enter(length, urgency);
        let (place, began) = (Arc::new(place), shared.clock.elapsed());
        let started = Started { number, member, place: Arc::clone(&place), began, to_go };
        self.started.push(started);
        self.running.push(Box::pin(async move {
            let result = shared.put_in_turn(member, &cut, way, comes).await;
            drop(place);
            (number, member, result)
        }));
    }

    fn start_substitute(&mut self, number: usize) -> bool {
        let Some(member) = self.substitutes.pop_front() else { return false };
        self.start(number, member, Urgency::Awaited);
        true
    }

    /// Gives a substitute a cut that would take far longer at a home where it stands so, or comes now.
    fn start_relief(&mut self, number: usize, home: usize, standing: Option<Standing>) -> bool {
        let bytes = self.cuts[number].bytes.len() as u64;
        let standing = standing
            .unwrap_or_else(|| Standing::Waits(self.shared.members[home].turns.to_go(bytes)));
        let relief = self.shared.relief(home, standing, bytes, &self.substitutes);
        let Some(member) = relief.and_then(|place| self.substitutes.remove(place)) else {
            return false;
        };
        self.relieved.insert(number);
        self.start(number, member, Urgency::Awaited);
        true
    }

    /// Gives substitutes what homes are far behind with. The homes go on, behind what somebody waits for.
    fn relieve(&mut self) {
        if self.waits.is_none() {
            return;
        }
        for number in 0..self.cuts.len() {
            if self.stored.contains(&number) || self.relieved.contains(&number) {
                continue;
            }
            let Some(Started { member, place, .. }) = self.started_of(number).next() else {
                continue;
            };
            let (member, place) = (*member, Arc::clone(place));
            if self.start_relief(number, member, Some(place.standing()))
                || self.start_relief_unmeasured(number, &place)
            {
                place.set_urgency(Urgency::Late);
            }
        }
    }

    /// Gives a substitute of which nothing is known a cut that is alone on the line of its home, and takes far longer there than
    /// another cut of the object took: where a single object is written, nothing else is measured.
    fn start_relief_unmeasured(&mut self, number: usize, place: &Place) -> bool {
        let bytes = self.cuts[number].bytes.len() as u64;
        let (Standing::IsOnLine(passage), Some(longest)) = (place.standing(), self.longest) else {
            return false;
        };
        let least = PATIENCE_MIN.max(longest * LONGER_THAN_OTHERS).as_secs_f64();
        if passage.to_go > bytes || passage.share <= least {
            return false;
        }
        let is_free = |&member: &usize| {
            let store = &self.shared.members[member];
            !self.shared.is_failing(member, Direction::Write) && store.turns.to_go(bytes) == bytes
        };
        let free = self.substitutes.iter().position(is_free);
        let Some(member) = free.and_then(|place| self.substitutes.remove(place)) else {
            return false;
        };
        self.relieved.insert(number);
        self.start(number, member, Urgency::Awaited);
        true
    }

    /// Gives a substitute what is not stored though it should be long since.
    fn replace_late(&mut self) {
        // Once there is enough, a slow home has all the time it wants.
        let late = (0..self.cuts.len()).find(|number| !self.stored.contains(number));
        let (Some(number), true) = (late, self.waits.is_some()) else { return };
        if !self.started_of(number).all(|started| self.is_late(started))
            || self.start_substitute(number)
        {
            return;
        }
        self.set_urgency(number, Urgency::Awaited);
        if self.stored.len() >= self.shared.least() {
            // Nobody else is left to be asked, and who is silent may be so for long.
            self.is_owed = true;
            self.answer();
        }
    }

    /// Tells whether a store takes too long, or hangs. Others may have come onto its line since. Of one that was not measured as
    /// much is expected as of the quickest that was: a first guess sends nothing twice.
    fn is_late(&self, started: &Started) -> bool {
        let now = self.shared.clock.elapsed();
        let members = &self.shared.members;
        let Started { number, member, began, to_go, .. } = *started;
        if members[member].with_pulse(|pulse| pulse.is_silent()) {
            return true;
        }
        let shared_line = self.cuts[number].bytes.len() as u64 * TURNS_AT_ONCE as u64;
        let expected = |of: &Member| of.expected_write(to_go.max(shared_line), now);
        let own = expected(&members[member]);
        let of_others = || members.iter().filter_map(expected).min();
        let patience = own.or_else(of_others).map(|expected| expected * PATIENCE_FACTOR);
        patience.is_some_and(|patience| now >= began + patience.max(PATIENCE_MIN))
    }

    fn started_of(&self, number: usize) -> impl Iterator<Item = &Started> {
        self.started.iter().filter(move |started| started.number == number)
    }

    fn ended(&mut self, number: usize, member: usize, result: Result<PutOutcome>) {
        let is_it = |started: &mut Started| (started.number, started.member) == (number, member);
        let began = self.started.extract_if(.., is_it).map(|started| started.began).max();
        match result {
            Ok(outcome) => {
                let took = began.map(|began| self.shared.clock.elapsed().saturating_sub(began));
                self.longest = self.longest.max(took);
                self.stored.insert(number);
                self.is_written |= outcome == PutOutcome::Written;
                if self.stored.len() >= self.shared.enough() {
                    self.answer();
                }
            }
            Err(error) => {
                self.failed.push((member, error));
                self.is_owed = true;
                if !self.stored.contains(&number) && !self.start_substitute(number) {
                    self.set_urgency(number, Urgency::Awaited);
                }
            }
        }
    }

    fn set_urgency(&self, number: usize, urgency: Urgency) {
        self.started_of(number).for_each(|started| started.place.set_urgency(urgency));
    }

    /// Tells the writer that the object is stored, unless that was done; what is left is in no hurry.
    fn answer(&mut self) {
        self.send_answer();
        self.waits = None;
        self.end = None;
        if self.early.take().is_some() {
            self.shared.news.notify_waiters();
        }
        (0..self.cuts.len()).for_each(|number| self.set_urgency(number, Urgency::Late));
    }

    /// Answers a deferred write with what gives the object back, as long as there is room: a sync waits for the rest.
    fn answer_early(&mut self) {
        let is_deferred = matches!(self.way, Way::Defer(_));
        if !is_deferred
            || self.waits.is_none()
            || self.signal.is_none()
            || self.stored.len() < self.shared.least()
        {
            return;
        }
        let bytes = self.cuts.iter().map(|cut| cut.bytes.len()).max().unwrap_or_default();
        self.early = self.shared.early_room(bytes);
        if self.early.is_some() {
            self.send_answer();
        }
    }

    fn send_answer(&mut self) {
        let Some(signal) = self.signal.take() else { return };
        let outcome = if self.is_written { PutOutcome::Written } else { PutOutcome::Exists };
        // The writer may have gone.
        let _ = signal.send(Ok(outcome));
    }

    /// Waits for something that may change where the pieces should go.
    fn news(&self) -> BoxFuture<'static, ()> {
        match self.waits {
            None => Box::pin(pending()),
            Some(_) => Box::pin(Arc::clone(&self.shared.news).notified_owned()),
        }
    }
}
