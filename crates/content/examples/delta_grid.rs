//! Measures deltas over the grid of the paper on WebR2sync+ (FAST 2018, sections 3.2 and 6.2): `delta_grid [RUNS]`.
//!
//! A file of 1 MB is appended to, inserted into or cut, by 1 B to 100 KB; from 1 KB on, insertions and cuts are dispersed into
//! 1 to 20 sub-edits at random places. Everything follows from seeds, so the bytes are always the same. Times are wall
//! times of one thread, the least of several runs, and say nothing about other machines; both sides run in this process,
//! and no network is between them.
#![expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a program that measures reads a clock, and prints"
)]

use std::env;
use std::error::Error;
use std::sync::Arc;
use std::time::Instant;

use content::delta::{
    BaseVersion, ChunkAssembler, ChunkClient, DeltaError, DeltaPart, MadeChunk, Next, Plain,
    RangedSource, Reconciled, Reconciler, ReverseClient, ReverseServer, RsyncClient, RsyncServer,
    SessionId, Tuning, answer_sums, answer_symbols,
};
use content::keyring::SecretKey;
use content::{
    DeviceKeys, NewWorkspace, PackWriter, Passphrase, Transform, WorkspaceContentKeys,
    WorkspaceKeys,
};
use model::{DeviceId, Genesis, Mode, Random, Timestamp, WorkspaceId};
use zeroize::Zeroizing;

/// Size of the old version in bytes: the mean of the paper's files.
const FILE_SIZE: usize = 1_000_000;

/// Average size of chunks in bytes: that of new files of this size.
const CHUNK_SIZE: u32 = 16 * 1024;

/// How many files are edited for each cell of the grid.
const FILES: u64 = 5;

const SIZE_MAX: u64 = 1 << 30;

/// A small generator of random numbers (SplitMix64).
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut value = self.0;
        value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        value ^ value >> 31
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }

    fn bytes(&mut self, length: usize) -> Vec<u8> {
        (0..length).map(|_| self.next() as u8).collect()
    }
}

/// Dice for keys, which always fall the same.
#[derive(Debug)]
struct Fixed;

impl Random for Fixed {
    fn fill(&self, bytes: &mut [u8]) {
        bytes.fill(7);
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Edit {
    Append,
    Insert,
    Cut,
}

/// Returns a new version: `size` bytes appended, inserted or cut.
fn edited(old: &[u8], edit: Edit, size: usize, dice: &mut Dice) -> Vec<u8> {
    let mut new = old.to_vec();
    if edit == Edit::Append {
        new.extend(dice.bytes(size));
        return new;
    }
    let parts = if size < 1000 { 1 } else { 1 + dice.below(20) };
    for part in 0..parts {
        let length = size / parts + usize::from(part < size % parts);
        let at = dice.below(new.len() - length);
        match edit {
            Edit::Insert => drop(new.splice(at..at, dice.bytes(length))),
            _ => drop(new.drain(at..at + length)),
        }
    }
    new
}

/// What one synchronisation cost.
#[derive(Debug, Clone, Copy, Default)]
struct Cost {
    up: usize,
    down: usize,
    rounds: usize,
    literal: usize,
    client_ms: f64,
    server_ms: f64,
}

/// What every method needs.
struct Scene<'a> {
    genesis: &'a Genesis,
    plain: Plain,
    keys: WorkspaceContentKeys,
    sealed: &'a WorkspaceKeys,
    base: &'a BaseVersion,
    old: &'a [u8],
    new: &'a [u8],
}

impl Scene<'_> {
    fn workspace(&self) -> WorkspaceId {
        self.genesis.workspace()
    }
}

/// Runs something and adds its time.
fn timed<T>(milliseconds: &mut f64, work: impl FnOnce() -> T) -> T {
    let started = Instant::now();
    let result = work();
    *milliseconds += started.elapsed().as_secs_f64() * 1000.0;
    result
}

const SESSION: SessionId = SessionId::from_bytes([3; 16]);

fn rsync(scene: &Scene<'_>, tuning: Tuning) -> Result<Cost, DeltaError> {
    let mut cost = Cost { rounds: 2, ..Cost::default() };
    let (mut old, mut new) = (scene.old, scene.new);
    let (mut client, open) = RsyncClient::begin(scene.plain, SESSION, tuning);
    let (mut server, sums) =
        timed(&mut cost.server_ms, || RsyncServer::begin(scene.plain, &open, &mut old, SIZE_MAX))?;
    let mut parts = Vec::new();
    timed(&mut cost.client_ms, || {
        client.take_sums(&sums, &mut new, |part| {
            parts.push(part);
            Ok::<_, DeltaError>(())
        })
    })?;
    cost.literal = client.literal_length() as usize;
    cost.up = open.len() + parts.iter().map(Vec::len).sum::<usize>();
    let mut out = Vec::with_capacity(scene.new.len());
    let mut finished = None;
    for part in &parts {
        finished = timed(&mut cost.server_ms, || server.take(part, &mut old, &mut out))?;
    }
    let answer = finished.expect("the last part ends the session").answer;
    cost.down = sums.len() + answer.len();
    assert!(client.take_answer(&answer)? == Next::Done && out == scene.new);
    Ok(cost)
}

fn reverse(scene: &Scene<'_>, tuning: Tuning) -> Result<Cost, DeltaError> {
    let mut cost = Cost { rounds: 2, ..Cost::default() };
    let (mut old, mut new) = (scene.old, scene.new);
    let (mut client, sums) = timed(&mut cost.client_ms, || {
        ReverseClient::begin(scene.plain, SESSION, tuning, &mut new)
    })?;
    let (mut server, matches) = timed(&mut cost.server_ms, || {
        ReverseServer::begin(scene.plain, &sums, &mut old, SIZE_MAX)
    })?;
    let mut parts = Vec::new();
    timed(&mut cost.client_ms, || {
        client.take_matches(&matches, &mut new, |part| {
            parts.push(part);
            Ok::<_, DeltaError>(())
        })
    })?;
    cost.literal = client.literal_length() as usize;
    cost.up = sums.len() + parts.iter().map(Vec::len).sum::<usize>();
    let mut out = Vec::with_capacity(scene.new.len());
    let mut finished = None;
    for part in &parts {
        finished = timed(&mut cost.server_ms, || server.take(part, &mut old, &mut out))?;
    }
    let answer = finished.expect("the last part ends the session").answer;
    cost.down = matches.len() + answer.len();
    assert!(client.take_answer(&answer)? == Next::Done && out == scene.new);
    Ok(cost)
}

/// Sends a delta against a base; `has_old` says that the client still has the old bytes, `survey` is what it knows of the new
/// version already.
fn chunk_list(
    scene: &Scene<'_>,
    base: &BaseVersion,
    has_old: bool,
    survey: Option<BaseVersion>,
) -> Result<Cost, DeltaError> {
    let mut cost = Cost { rounds: 1, ..Cost::default() };
    let (mut old, mut new) = (scene.old, scene.new);
    let mut parts: Vec<DeltaPart> = Vec::new();
    let mut client = ChunkClient::new(&scene.keys, scene.workspace(), SESSION);
    if let Some(survey) = survey {
        client = client.with_survey(survey);
    }
    timed(&mut cost.client_ms, || {
        let mut at_client = scene.old;
        let at_client = has_old.then_some(&mut at_client as &mut dyn RangedSource);
        client.send_delta(base, at_client, &mut new, |part| {
            parts.push(part);
            Ok::<_, DeltaError>(())
        })
    })?;
    let table = scene.base.table().clone();
    let mut server = ChunkAssembler::new(scene.workspace(), scene.keys.namer(), table, SIZE_MAX);
    let mut assembled = None;
    for part in parts {
        cost.literal += part.literal_length();
        let message = part.into_message(scene.plain)?;
        cost.up += message.len();
        let sink = |_: MadeChunk<'_>| Ok::<_, DeltaError>(());
        assembled = timed(&mut cost.server_ms, || server.take(&message, &mut old, sink))?;
    }
    let assembled = assembled.expect("the last part ends the delta");
    cost.down += assembled.answer.len();
    assert!(assembled.table.as_ref() == Some(client.into_base().table()));
    Ok(cost)
}

/// Learns the list of the old version first; `asks` says that it asks for sums, too.
fn reconciled(scene: &Scene<'_>, asks: bool) -> Result<Cost, DeltaError> {
    let mut cost = Cost::default();
    let mut new = scene.new;
    let (mut client, mut ask) = Reconciler::begin(scene.workspace(), &Fixed);
    let mut base = loop {
        let symbols = timed(&mut cost.server_ms, || {
            answer_symbols(scene.workspace(), scene.base.table(), &ask)
        })?;
        cost.up += ask.len();
        cost.down += symbols.len();
        cost.rounds += 1;
        let step = timed(&mut cost.client_ms, || client.take(&symbols, &scene.keys, &mut new))?;
        match step {
            Reconciled::Base(base) => break base,
            Reconciled::More(more) => ask = more,
        }
    };
    if asks && let Some(ask) = client.ask_sums(scene.plain, &base) {
        let mut old = scene.old;
        let sums = timed(&mut cost.server_ms, || {
            answer_sums(scene.plain, &scene.keys, scene.base.table(), &ask, &mut old)
        })?;
        cost.up += ask.len();
        cost.down += sums.len();
        cost.rounds += 1;
        base = timed(&mut cost.client_ms, || client.take_sums(base, &sums))?;
    }
    let sent = chunk_list(scene, &base, false, client.into_survey())?;
    Ok(Cost {
        up: cost.up + sent.up,
        down: cost.down + sent.down,
        rounds: cost.rounds + sent.rounds,
        literal: sent.literal,
        client_ms: cost.client_ms + sent.client_ms,
        server_ms: cost.server_ms + sent.server_ms,
    })
}

/// Sends the same delta of a sealed workspace, in a sealed pack: the server stores it and has nothing to do.
fn sealed(scene: &Scene<'_>) -> Result<Cost, DeltaError> {
    let mut cost = Cost { rounds: 1, ..Cost::default() };
    let mut new = scene.new;
    let (keys, workspace) = (scene.sealed.content(), scene.workspace());
    let base = ChunkClient::survey(keys, CHUNK_SIZE, &mut { scene.old })?;
    let mut writer = PackWriter::new(Transform::None, &scene.sealed.packs())?;
    timed(&mut cost.client_ms, || {
        let mut client = ChunkClient::new(keys, workspace, SESSION);
        client.send_delta(&base, None, &mut new, |part| {
            cost.literal += part.literal_length();
            part.into_pack(&keys.namer(), &mut writer)?;
            Ok::<_, DeltaError>(())
        })?;
        cost.up = writer.finish()?.bytes.len();
        Ok::<_, DeltaError>(())
    })?;
    Ok(cost)
}

const METHODS: [&str; 10] = [
    "WebRsync",
    "WebRsync+",
    "WebR2sync",
    "WebR2sync+",
    "ours, sketch",
    "ours, old bytes",
    "ours, whole chunks",
    "ours, nothing known",
    "ours, sums asked for",
    "ours, sketch, sealed",
];

fn run(method: &str, scene: &Scene<'_>) -> Result<Cost, DeltaError> {
    match method {
        "WebRsync" => rsync(scene, Tuning::Classic),
        "WebRsync+" => rsync(scene, Tuning::Plus),
        "WebR2sync" => reverse(scene, Tuning::Classic),
        "WebR2sync+" => reverse(scene, Tuning::Plus),
        "ours, sketch" => chunk_list(scene, scene.base, false, None),
        "ours, old bytes" => chunk_list(scene, scene.base, true, None),
        "ours, whole chunks" => {
            let base = BaseVersion::without_sketch(scene.base.table().clone());
            chunk_list(scene, &base, false, None)
        }
        "ours, nothing known" => reconciled(scene, false),
        "ours, sums asked for" => reconciled(scene, true),
        _ => sealed(scene),
    }
}

/// Returns the mean bytes of all files of a cell, and the least times.
fn cell(
    method: &str,
    (edit, size): (Edit, usize),
    (genesis, sealed): (&Genesis, &WorkspaceKeys),
    runs: usize,
) -> Result<Cost, Box<dyn Error>> {
    let (mut sum, mut rounds) = (Cost::default(), 0);
    for file in 0..FILES {
        let mut dice = Dice(file * 1000 + size as u64 * 3 + edit as u64);
        let old = dice.bytes(FILE_SIZE);
        let new = edited(&old, edit, size, &mut dice);
        let keys = WorkspaceContentKeys::derive(&genesis.content_key);
        let base = ChunkClient::survey(&keys, CHUNK_SIZE, &mut &old[..])?;
        let (old, new) = (&old[..], &new[..]);
        let plain = Plain::of(genesis)?;
        let scene = Scene { genesis, plain, keys, sealed, base: &base, old, new };
        let mut best = run(method, &scene)?;
        for _ in 1..runs {
            let again = run(method, &scene)?;
            best.client_ms = best.client_ms.min(again.client_ms);
            best.server_ms = best.server_ms.min(again.server_ms);
        }
        sum.up += best.up;
        sum.down += best.down;
        sum.literal += best.literal;
        sum.client_ms += best.client_ms;
        sum.server_ms += best.server_ms;
        rounds = best.rounds.max(rounds);
    }
    let files = FILES as usize;
    Ok(Cost {
        up: sum.up / files,
        down: sum.down / files,
        literal: sum.literal / files,
        rounds,
        client_ms: sum.client_ms / FILES as f64,
        server_ms: sum.server_ms / FILES as f64,
    })
}

fn sealed_keys() -> Result<WorkspaceKeys, Box<dyn Error>> {
    let passphrase = Passphrase::new(Zeroizing::new("to measure".to_owned()));
    let made = NewWorkspace::create("grid", Timestamp::default(), &passphrase, &Fixed)?;
    let (device, seed) = (DeviceId::from_bytes([1; 16]), SecretKey::random(&Fixed));
    let device = DeviceKeys::enroll(&made.genesis, &made.unlocked, device, seed)?;
    Ok(WorkspaceKeys::open(&made.genesis, Some(device), Arc::new(Fixed))?)
}

fn main() -> Result<(), Box<dyn Error>> {
    let runs = env::args().nth(1).map_or(Ok(5), |runs| runs.parse())?;
    let (name, created) = ("grid".to_owned(), Timestamp::default());
    let genesis = Genesis { name, mode: Mode::Plain, created, content_key: [7; 32] };
    let sealed = sealed_keys()?;
    println!(
        "| edit | method | up, B | down, B | round trips | literal, B | client, ms | server, ms |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for edit in [Edit::Append, Edit::Insert, Edit::Cut] {
        for size in [1, 10, 100, 1000, 10_000, 100_000] {
            for method in METHODS {
                let cost = cell(method, (edit, size), (&genesis, &sealed), runs)?;
                let name = format!("{edit:?}").to_lowercase();
                println!(
                    "| {name} {size} | {method} | {} | {} | {} | {} | {:.2} | {:.2} |",
                    cost.up, cost.down, cost.rounds, cost.literal, cost.client_ms, cost.server_ms
                );
            }
        }
    }
    Ok(())
}
