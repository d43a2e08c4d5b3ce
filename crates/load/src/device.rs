//! One device of a run: a WebSocket, a plan when to send, and a note of everything that happened.
//!
//! It behaves as the program does ([`commit_log::served`]): it subscribes, pings, asks for entries after silence, and after a loss comes back
//! and sends again what was not answered. But it has no tasks and channels of its own, so that thousands fit into one process.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::{Context, Result};
use bytes::Bytes;
use commit_log::served::websocket::frames::{self, Ended, FrameSink, FrameStream};
use commit_log::served::websocket::{PING_AFTER, WebSocketOptions};
use commit_log::served::{HEARTBEAT_FIRST, HEARTBEAT_LAST};
use model::wire::{RefusalKind, Reply, Request, RequestFrame, ServerFrame};
use model::{Action, Commit, Entry, EntryHash, Head, Timestamp};
use parking_lot::Mutex;
use tokio::net::TcpSocket;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::mix::Mix;
use crate::notes::{Heard, Noted, NotedCommit};
use crate::run::{Pace, Phase, Seat, Shared};
use crate::traffic::Metered;

use names::read_op_id;
pub(crate) use names::{incarnation, op_id};
use plan::Plan;

mod names;
mod plan;

/// How much a device reads at once. Frames are small, and there are thousands of devices.
const READ_BUFFER_SIZE: usize = 4 * 1024;

/// How long a device waits before it comes back.
const RECONNECT_PAUSE: Duration = Duration::from_millis(100);

/// How long a device waits before it repeats what nobody could answer.
const REPEAT_PAUSE: Duration = Duration::from_millis(200);

/// How long a handshake may take; many devices come at once.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// How many devices share an address of this computer, so that ports last.
const DEVICES_PER_ADDRESS: u32 = 2000;

/// How many bytes of entries are asked for after silence.
const ENTRIES_LENGTH_MAX: u64 = 1024 * 1024;

/// The numbers of requests that are no commits begin here.
const OTHER_NUMBERS: u64 = 1 << 40;

type Sink = FrameSink<Metered>;
type Stream = FrameStream<Metered>;

/// A device at work.
struct Device {
    seat: Seat,
    shared: Arc<Shared>,
    incarnation: u64,
    /// How many devices hear of a commit, this one included.
    ears: u64,
    state: Mutex<State>,
    /// There is room for another commit.
    answered: Notify,
    /// There is something to ask for now.
    wanting: Notify,
}

/// What changes while it works.
struct State {
    noted: Noted,
    /// What was sent and not answered, to be sent again after a loss.
    unanswered: BTreeMap<u64, Bytes>,
    seen: Head,
    last_seq: u64,
    heartbeat: Duration,
    heartbeat_at: Instant,
    /// When anything came from the server.
    last_heard_at: Instant,
    /// When to send again what nobody could answer.
    repeat_at: Option<Instant>,
    /// The number of the request for entries that were missed.
    asking: Option<u64>,
    /// Whether everything of the plan was sent.
    is_finished: bool,
    other_number: u64,
    mix: Mix,
}

impl State {
    /// Returns when to ask for entries, and since when there is silence.
    fn silence(&self) -> (Instant, Instant) {
        (self.heartbeat_at, self.last_heard_at)
    }

    /// Notes that everything up to an entry has come.
    fn go_on_to(&mut self, seq: u64) {
        self.last_seq = seq;
        self.heartbeat = HEARTBEAT_FIRST;
        self.heartbeat_at = Instant::now() + HEARTBEAT_FIRST;
    }
}

/// Runs a device until the run ends; returns what it noted.
pub(crate) async fn run(
    seat: Seat,
    ears: u64,
    shared: Arc<Shared>,
    phase: watch::Receiver<Phase>,
) -> Noted {
    let number = seat.device.number;
    let state = State {
        noted: Noted::new(number, seat.workspace.id, seat.writes),
        unanswered: BTreeMap::new(),
        seen: Head { seq: 0, hash: EntryHash::NONE },
        last_seq: 0,
        heartbeat: HEARTBEAT_FIRST,
        heartbeat_at: Instant::now() + HEARTBEAT_FIRST,
        last_heard_at: Instant::now(),
        repeat_at: None,
        asking: None,
        is_finished: false,
        other_number: OTHER_NUMBERS,
        mix: Mix::new(shared.load.seed, number),
    };
    let incarnation = incarnation(shared.load.seed, number);
    let device = Device {
        seat,
        shared,
        incarnation,
        ears,
        state: Mutex::new(state),
        answered: Notify::new(),
        wanting: Notify::new(),
    };
    let unsent = device.work(phase).await;
    let mut noted = device.state.into_inner().noted;
    noted.unsent = unsent;
    noted
}

impl Device {
    /// Works until the run ends; returns how many commits were never sent.
    async fn work(&self, mut phase: watch::Receiver<Phase>) -> u64 {
        let mut plan = match self.seat.writes {
            true => Plan::new(&self.shared.load, self.seat.device.number, self.shared.writers),
            false => Plan::listen(),
        };
        self.work_by(&mut plan, &mut phase).await;
        plan.count_left()
    }

    async fn work_by(&self, plan: &mut Plan, phase: &mut watch::Receiver<Phase>) {
        let mut is_first = true;
        loop {
            let lost = match self.connect().await {
                Ok((sink, stream)) => {
                    if std::mem::take(&mut is_first) {
                        self.shared.arrived(None);
                    }
                    tokio::select! {
                        sent = self.send(sink, plan, phase) => match sent {
                            Ok(()) => return,
                            Err(ended) => ended.to_string(),
                        },
                        ended = self.receive(stream) => ended.to_string(),
                    }
                }
                Err(error) => format!("{error:#}"),
            };
            if is_first {
                // A run without all of its devices would not be the one that was asked for.
                return self.shared.arrived(Some(lost));
            }
            self.state.lock().noted.losses.push(lost);
            tokio::select! {
                () = sleep(RECONNECT_PAUSE) => {}
                _ = phase.wait_for(|phase| matches!(phase, Phase::Stop)) => return,
            }
        }
    }

    async fn connect(&self) -> Result<(Sink, Stream)> {
        let _permit = self.shared.connecting.acquire().await?;
        let doors = &self.shared.doors;
        let (server, address) = &doors[self.seat.device.number as usize % doors.len()];
        let address: SocketAddr = *address;
        let opening = async {
            let socket = TcpSocket::new_v4()?;
            if address.ip().is_loopback() {
                // One of the addresses of this computer: each has ports of its own.
                let third = (self.seat.device.number / DEVICES_PER_ADDRESS) as u8;
                socket.bind((Ipv4Addr::new(127, 0, third, 1), 0).into())?;
            }
            let stream = socket.connect(address).await?;
            stream.set_nodelay(true)?;
            let stream = Metered::new(stream, Arc::clone(&self.shared.traffic));
            let token = &self.seat.device.token;
            let options = WebSocketOptions::new(server, token, self.incarnation);
            Ok::<_, anyhow::Error>(frames::open(stream, &options, READ_BUFFER_SIZE).await?)
        };
        let (mut sink, mut stream) =
            timeout(CONNECT_TIMEOUT, opening).await.context("no time")??;
        let since = self.state.lock().last_seq;
        sink.feed(self.other(Request::Subscribe { since }).1).await?;
        // What was missed meanwhile is fetched; before the first entry there is nothing.
        if since > 0 {
            let missed = Request::Entries { since, length_max: ENTRIES_LENGTH_MAX };
            sink.feed(self.other(missed).1).await?;
        }
        sink.flush().await?;
        loop {
            match stream.next().await? {
                Some(ServerFrame::Reply { reply: Reply::Subscribed, .. }) => break,
                Some(ServerFrame::Reply { reply: Reply::Refused(refusal), .. }) => {
                    anyhow::bail!("{:?}: {}", refusal.kind, refusal.message);
                }
                Some(frame) => self.take(frame),
                None => {}
            }
        }
        Ok((sink, stream))
    }

    /// Returns a request that is no commit, and its number.
    fn other(&self, request: Request) -> (u64, Bytes) {
        let mut state = self.state.lock();
        state.other_number += 1;
        let (number, workspace) = (state.other_number, self.seat.workspace.id);
        (number, frames::encode(&RequestFrame { number, workspace, request }))
    }

    /// Sends what is due, when it is due; returns when the run ends.
    async fn send(
        &self,
        mut sink: Sink,
        plan: &mut Plan,
        phase: &mut watch::Receiver<Phase>,
    ) -> Result<(), Ended> {
        for frame in self.unanswered() {
            sink.feed(frame).await?;
        }
        let mut pinged_at = Instant::now();
        loop {
            let current = *phase.borrow_and_update();
            let start = match current {
                Phase::Stop => {
                    let _ = sink.close().await;
                    return Ok(());
                }
                Phase::Connect => None,
                Phase::Go(start) => Some(start),
            };
            while let Some(frame) = start.and_then(|start| self.due(plan, start)) {
                sink.feed(frame).await?;
            }
            sink.flush().await?;
            let next = self.next_moment(plan).and_then(|moment| Some(start? + moment));
            let (heartbeat_at, last_heard_at) = self.state.lock().silence();
            let ping_at = last_heard_at.max(pinged_at) + PING_AFTER;
            let repeat_at = self.state.lock().repeat_at.unwrap_or(ping_at);
            let wake_at = next.unwrap_or(ping_at).min(ping_at).min(heartbeat_at).min(repeat_at);
            tokio::select! {
                () = sleep_until(wake_at) => {}
                () = self.answered.notified(), if plan.waits_for_answers() => {}
                () = self.wanting.notified() => {}
                _ = phase.changed() => {}
            }
            let now = Instant::now();
            if now >= ping_at && self.state.lock().last_heard_at <= last_heard_at {
                sink.feed_ping().await?;
                pinged_at = now;
            }
            if self.state.lock().repeat_at.take_if(|at| *at <= now).is_some() {
                for frame in self.unanswered() {
                    sink.feed(frame).await?;
                }
            }
            if now >= heartbeat_at
                && let Some(frame) = self.ask_after_silence(now)
            {
                sink.feed(frame).await?;
            }
        }
    }

    /// Returns what was sent and not answered, oldest first.
    fn unanswered(&self) -> Vec<Bytes> {
        self.state.lock().unanswered.values().cloned().collect()
    }

    /// Returns when there is something to send next; notes where nothing ever will be.
    fn next_moment(&self, plan: &mut Plan) -> Option<Duration> {
        let next = plan.next_moment(self.shared.since_start());
        let finished = self.seat.writes && next.is_none();
        if finished && !std::mem::replace(&mut self.state.lock().is_finished, true) {
            self.shared.finished.fetch_add(1, Ordering::Release);
        }
        next
    }

    fn ask_after_silence(&self, now: Instant) -> Option<Bytes> {
        let mut state = self.state.lock();
        if now < state.heartbeat_at {
            return None;
        }
        state.heartbeat = (state.heartbeat * 2).min(HEARTBEAT_LAST);
        state.heartbeat_at = now + state.heartbeat;
        let since = state.last_seq;
        drop(state);
        let (number, frame) =
            self.other(Request::Entries { since, length_max: ENTRIES_LENGTH_MAX });
        self.state.lock().asking = Some(number);
        Some(frame)
    }

    /// Returns the next commit, if it is due.
    fn due(&self, plan: &mut Plan, start: Instant) -> Option<Bytes> {
        let mut state = self.state.lock();
        let now = start.elapsed();
        let intended = plan.take_due(now, state.unanswered.len())?;
        let number = state.noted.commits.len() as u32;
        let (_, change) = state.mix.next_change();
        let is_put = matches!(change.action, Action::Put(_));
        let commit = Commit {
            op_id: op_id(intended, self.seat.device.number, number),
            device: self.seat.device.id,
            device_name: "device".to_owned(),
            time: Timestamp { seconds: 1_400_000_000, nanoseconds: 0 },
            seen: state.seen,
            changes: vec![change],
            packs: if is_put { vec![self.seat.workspace.pack] } else { Vec::new() },
            inline_packs: Vec::new(),
            has_deltas: false,
            seal: None,
        };
        let (number, workspace) = (u64::from(number), self.seat.workspace.id);
        let frame =
            frames::encode(&RequestFrame { number, workspace, request: Request::Commit(commit) });
        state.unanswered.insert(number, frame.clone());
        state.noted.commits.push(NotedCommit::new(intended, start.elapsed()));
        self.shared.sent.fetch_add(1, Ordering::Relaxed);
        Some(frame)
    }

    async fn receive(&self, mut stream: Stream) -> Ended {
        loop {
            match stream.next().await {
                Ok(frame) => {
                    self.state.lock().last_heard_at = Instant::now();
                    if let Some(frame) = frame {
                        self.take(frame);
                    }
                }
                Err(ended) => return ended,
            }
        }
    }

    fn take(&self, frame: ServerFrame) {
        let now = self.shared.since_start();
        match frame {
            ServerFrame::Event { entry, .. } => self.hear(&entry, now),
            ServerFrame::Reply { number, reply: Reply::Entries(entries) } => {
                self.state.lock().asking.take_if(|asked| *asked == number);
                for entry in &entries {
                    self.hear(entry, now);
                }
            }
            ServerFrame::Reply { number, reply } => self.answer(number, reply, now),
        }
    }

    fn answer(&self, number: u64, reply: Reply, now: Duration) {
        let mut state = self.state.lock();
        // With one commit under way, to send it again later keeps the order.
        let repeats = matches!(self.shared.load.pace, Pace::Counted { .. });
        if repeats && is_unavailable(&reply) && state.unanswered.contains_key(&number) {
            state.repeat_at.get_or_insert(Instant::now() + REPEAT_PAUSE);
            self.shared.repeated.fetch_add(1, Ordering::Relaxed);
            drop(state);
            return self.wanting.notify_one();
        }
        if state.unanswered.remove(&number).is_none() {
            return;
        }
        match reply {
            Reply::Committed(head) => {
                if let Some(commit) = state.noted.commits.get_mut(number as usize) {
                    commit.answer(head, now);
                }
                if head.seq > state.seen.seq {
                    state.seen = head;
                }
                // Where nothing is missing before it, it does not come back.
                if head.seq == state.last_seq + 1 {
                    state.go_on_to(head.seq);
                    if let Some(commit) = state.noted.commits.get_mut(number as usize) {
                        commit.hear(head.seq, now);
                    }
                    self.shared.heard.fetch_add(1, Ordering::Relaxed);
                }
                self.shared.to_be_heard.fetch_add(self.ears, Ordering::Relaxed);
                self.shared.answered.fetch_add(1, Ordering::Relaxed);
            }
            Reply::Refused(refusal) => {
                self.shared.refused.fetch_add(1, Ordering::Relaxed);
                state.noted.refused.push((number as u32, refusal));
            }
            _ => state.noted.losses.push("the server answered another question".to_owned()),
        }
        drop(state);
        self.answered.notify_one();
    }

    fn hear(&self, entry: &Entry, now: Duration) {
        let (intended, device, number) = read_op_id(&entry.commit.op_id);
        let mut state = self.state.lock();
        if entry.seq <= state.last_seq {
            return;
        }
        if entry.seq > state.last_seq + 1 {
            // An event was lost. What came counts only once it is its turn.
            if state.asking.is_none() {
                state.noted.gaps += 1;
                state.heartbeat_at = Instant::now();
                drop(state);
                self.wanting.notify_one();
            }
            return;
        }
        state.go_on_to(entry.seq);
        if device == self.seat.device.number {
            if let Some(commit) = state.noted.commits.get_mut(number as usize) {
                commit.hear(entry.seq, now);
            }
        } else {
            let late = now.saturating_sub(intended);
            state.noted.heard.push(Heard { device, number, seq: entry.seq, late });
        }
        self.shared.heard.fetch_add(1, Ordering::Relaxed);
    }
}

fn is_unavailable(reply: &Reply) -> bool {
    matches!(reply, Reply::Refused(refusal) if refusal.kind == RefusalKind::Unavailable)
}
