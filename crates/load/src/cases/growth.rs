//! Whether anything grows with what is there already: the same requests, one after the other, at a server with ever more files in one
//! workspace, then with ever more workspaces, and at last while devices commit in many of them.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, bail};
use model::codec::encode_message;
use model::wire::{Reply, Request};
use model::{
    Action, Change, ChunkId, ChunkRef, Commit, Content, Head, Name, NodeId, NodeKind, NodeRecord,
    Timestamp, WorkspaceId,
};
use reqwest::Method;
use tokio::time::Instant;

use super::{Bench, Options};
use crate::cluster::Cluster;
use crate::device::op_id;
use crate::figures::{Delays, Figures, seats};
use crate::history::Verdict;
use crate::line::Line;
use crate::machine::Usage;
use crate::population::{Enrolled, account_names};
use crate::report::growth::{Growth, Of};
use crate::report::{Report, Run};
use crate::run::{Connected, Load, Pace};
use lab::output::{Output, say};

/// How many files there are, step by step.
const FILES: [u64; 4] = [1_000, 10_000, 100_000, 1_000_000];

/// How many workspaces there are, step by step.
const WORKSPACES: [u64; 4] = [10, 100, 1_000, 10_000];

/// How many files the workspace has in which is asked while workspaces become more.
const FILES_FEW: u64 = 1_000;

/// How often each request is made.
const TIMES: u32 = 200;

/// The same in a quick run, which has the first two steps, each with a tenth.
const TIMES_QUICK: u32 = 5;
const QUICK: usize = 2;

/// How many accounts there are beside the one that asks, and how many devices each account has.
const ACCOUNTS: usize = 20;
const DEVICES_EACH: usize = 10;

/// How many files a folder has.
const FILES_IN_FOLDER: u64 = 1_000;

/// How many changes a commit has that fills a workspace.
const CHANGES_AT_ONCE: u64 = 4_000;

/// What is committed meanwhile, by all devices of the other accounts together, a second.
const RATE_MEANWHILE: f64 = 500.0;

/// How long a small file is that is put over HTTP, in bytes.
const FILE_LENGTH: usize = 1024;

/// Runs the case.
///
/// # Errors
/// Where the server cannot be started, or refuses something.
pub(super) async fn run(
    options: &Options,
    (report, verdict): (Report, Verdict),
    output: &Output,
) -> Result<(Report, Verdict)> {
    say("\ngrowth");
    let devices = (ACCOUNTS + 1) * DEVICES_EACH;
    let accounts = account_names(devices, DEVICES_EACH);
    let cluster = Cluster::alone(&options.binary, &options.work, &accounts)?;
    let population = super::enrol(&cluster, &accounts, devices, DEVICES_EACH).await?;
    let mut bench = Bench { options, cluster, population, report, verdict };
    let subject = grow_files(&mut bench).await?;
    bench.report.write(output)?;
    grow_workspaces(&mut bench).await?;
    bench.report.write(output)?;
    measure_meanwhile(&mut bench, subject).await?;
    bench.report.write(output)?;
    Ok((bench.report, bench.verdict))
}

impl Options {
    fn times(&self) -> u32 {
        if self.quick { TIMES_QUICK } else { TIMES }
    }

    fn steps(&self, all: [u64; 4]) -> Vec<u64> {
        if self.quick { all[..QUICK].iter().map(|total| total / 10).collect() } else { all.into() }
    }
}

async fn grow_files(bench: &mut Bench<'_>) -> Result<Subject> {
    let mut subject = Subject::new(bench, 0).await?;
    for total in bench.options.steps(FILES) {
        subject.fill(total).await?;
        subject = measure(bench, subject, Of::Files, total).await?;
    }
    Ok(subject)
}

async fn grow_workspaces(bench: &mut Bench<'_>) -> Result<()> {
    let mut subject = Subject::new(bench, 1).await?;
    subject.fill(FILES_FEW.min(bench.options.steps(FILES)[QUICK - 1])).await?;
    let mut made = 0;
    for total in bench.options.steps(WORKSPACES) {
        let owners: Vec<_> =
            bench.population.accounts().skip(1).map(|one| one[0].clone()).collect();
        while made < total {
            let count = owners.len().min((total - made) as usize);
            let label = format!("growth-{made}");
            bench.population.workspaces(&label, &owners[..count]).await?;
            made += count as u64;
        }
        subject = measure(bench, subject, Of::Workspaces, total).await?;
    }
    Ok(())
}

/// Starts the server again, so that nothing is in its memory, and asks.
async fn measure(bench: &mut Bench<'_>, subject: Subject, of: Of, total: u64) -> Result<Subject> {
    bench.cluster.restart()?;
    let mut subject = subject.again(bench).await?;
    let begun = Instant::now();
    subject.get(bench, "nodes").await?;
    let first = [("first look at files", Delays::from_iter([begun.elapsed()]))];
    let asked = subject.ask_all(bench).await?;
    note(bench, of, total, first.into_iter().chain(asked))?;
    Ok(subject)
}

/// Asks while devices commit in many workspaces.
async fn measure_meanwhile(bench: &mut Bench<'_>, subject: Subject) -> Result<()> {
    let writers: Vec<_> = bench.population.devices[DEVICES_EACH..].to_vec();
    let workspaces = bench.population.workspaces("meanwhile", &writers).await?;
    let groups = workspaces.into_iter().zip(writers.into_iter().map(|device| vec![device]));
    let seats = seats(groups);
    let load = Load {
        seed: bench.options.seed,
        pace: Pace::Open { rate: RATE_MEANWHILE },
        length: bench.options.length,
        patience: Duration::from_secs(60),
    };
    let connected = Connected::connect(&bench.cluster.urls(), load, seats.clone()).await?;
    let going = tokio::spawn(connected.go(bench.cluster.parts()));
    let mut subject = subject.again(bench).await?;
    let asked = subject.ask_all(bench).await?;
    let outcome = going.await??;
    note(bench, Of::FilesMeanwhile, subject.files, asked)?;
    let run = Run::new(
        "growth-meanwhile".to_owned(),
        Some(RATE_MEANWHILE),
        seats.len(),
        bench.options.length,
        Figures::of(&outcome),
    );
    say(&run.describe());
    bench.report.runs.push(run);
    bench.judge(&seats, &outcome).await
}

fn note(
    bench: &mut Bench<'_>,
    of: Of,
    total: u64,
    asked: impl IntoIterator<Item = (&'static str, Delays)>,
) -> Result<()> {
    let resident_bytes = Usage::of(bench.cluster.doors[0].id())?.resident_bytes;
    for (request, delays) in asked {
        let growth = Growth { of, total, request, delays, resident_bytes };
        say(&growth.describe());
        bench.report.growth.push(growth);
    }
    Ok(())
}

/// The workspace in which is asked.
struct Subject {
    device: Arc<Enrolled>,
    workspace: WorkspaceId,
    line: Line,
    head: Head,
    /// How many files were committed.
    files: u64,
    /// The version of the file that is committed again and again.
    version: u64,
    commits: u32,
}

impl Subject {
    /// Makes an empty workspace for a device of the first account.
    async fn new(bench: &Bench<'_>, device: usize) -> Result<Self> {
        let device = Arc::clone(&bench.population.devices[device]);
        let made = bench.population.workspaces("growth-subject", &[Arc::clone(&device)]).await?;
        let line = Line::open(&bench.cluster.url(), &device, bench.options.seed).await?;
        let (workspace, head) = (made[0].id, made[0].genesis);
        Ok(Self { device, workspace, line, head, files: 0, version: 1, commits: 0 })
    }

    /// Connects again.
    async fn again(self, bench: &Bench<'_>) -> Result<Self> {
        self.line.close().await;
        let line = Line::open(&bench.cluster.url(), &self.device, bench.options.seed).await?;
        Ok(Self { line, ..self })
    }

    /// Adds files until there are so many, a thousand in a folder.
    async fn fill(&mut self, total: u64) -> Result<()> {
        while self.files < total {
            let mut changes = Vec::new();
            for number in self.files..total.min(self.files + CHANGES_AT_ONCE) {
                if number % FILES_IN_FOLDER == 0 {
                    changes.push(folder(number / FILES_IN_FOLDER));
                }
                changes.push(file(number, 0));
                self.files += 1;
            }
            self.commit(changes).await?;
        }
        Ok(())
    }

    async fn commit(&mut self, changes: Vec<Change>) -> Result<()> {
        self.commits += 1;
        let commit = Commit {
            op_id: op_id(Duration::ZERO, self.device.number, self.commits),
            device: self.device.id,
            device_name: "device".to_owned(),
            time: Timestamp::default(),
            seen: self.head,
            changes,
            packs: Vec::new(),
            inline_packs: Vec::new(),
            has_deltas: false,
            seal: None,
        };
        match self.line.ask(self.workspace, Request::Commit(commit)).await? {
            Reply::Committed(head) => self.head = head,
            other => bail!("a commit was answered by {other:?}"),
        }
        Ok(())
    }

    /// Asks over HTTP for something of the workspace.
    async fn get(&self, bench: &Bench<'_>, path: &str) -> Result<()> {
        self.over_http(bench, Method::GET, path, Vec::new()).await
    }

    async fn over_http(
        &self,
        bench: &Bench<'_>,
        method: Method,
        path: &str,
        body: Vec<u8>,
    ) -> Result<()> {
        let path = format!("workspaces/{}/{path}", self.workspace);
        bench.population.ask(&self.device, method, &path, body).await
    }

    /// Makes every kind of request many times.
    async fn ask_all(&mut self, bench: &Bench<'_>) -> Result<Vec<(&'static str, Delays)>> {
        let mut asked = Vec::new();
        for request in Ask::ALL {
            let mut delays = Delays::default();
            for number in 0..bench.options.times() {
                let begun = Instant::now();
                self.ask(bench, request, number).await?;
                delays.add(begun.elapsed());
            }
            asked.push((request.name(), delays));
        }
        Ok(asked)
    }

    async fn ask(&mut self, bench: &Bench<'_>, request: Ask, number: u32) -> Result<()> {
        match request {
            Ask::Commit => {
                self.version += 1;
                self.commit(vec![file(0, self.version - 1)]).await
            }
            Ask::Head => self.line.ask(self.workspace, Request::Head).await.map(drop),
            Ask::Entries => {
                let since = self.head.seq.saturating_sub(10);
                let request = Request::Entries { since, length_max: 64 * 1024 };
                self.line.ask(self.workspace, request).await.map(drop)
            }
            Ask::Workspaces => {
                bench.population.ask(&self.device, Method::GET, "workspaces", Vec::new()).await
            }
            Ask::Pack => {
                let seed = format!("{} {} {number}", self.workspace, self.commits);
                let bytes = blake3::hash(seed.as_bytes()).as_bytes().repeat(FILE_LENGTH / 32);
                let path = format!("packs/{}", blake3::hash(&bytes));
                self.over_http(bench, Method::PUT, &path, bytes).await
            }
            Ask::Put => {
                let bytes = vec![number as u8; FILE_LENGTH];
                self.over_http(bench, Method::PUT, "files/folder-0/put", bytes).await
            }
            Ask::Get => self.get(bench, "files/folder-0/put").await,
            Ask::Describe => self.get(bench, "nodes/folder-0/file-7").await,
            Ask::List => self.get(bench, "folders/folder-0?limit=100").await,
            Ask::Search => self.get(bench, "search?q=file%20777&limit=50").await,
        }
    }
}

/// What is asked.
#[derive(Debug, Clone, Copy)]
enum Ask {
    Commit,
    Head,
    Entries,
    Workspaces,
    Pack,
    Put,
    Get,
    Describe,
    List,
    /// The only one that looks at all files.
    Search,
}

impl Ask {
    const ALL: [Self; 10] = [
        Self::Commit,
        Self::Head,
        Self::Entries,
        Self::Workspaces,
        Self::Pack,
        Self::Put,
        Self::Get,
        Self::Describe,
        Self::List,
        Self::Search,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Commit => "commit a change",
            Self::Head => "head",
            Self::Entries => "last ten entries",
            Self::Workspaces => "list workspaces",
            Self::Pack => "store a pack",
            Self::Put => "put a file",
            Self::Get => "get a file",
            Self::Describe => "describe a file",
            Self::List => "list a folder",
            Self::Search => "find names",
        }
    }
}

fn node(kind: &str, number: u64) -> NodeId {
    let hash = blake3::hash(format!("{kind} {number}").as_bytes());
    let mut id = [0; NodeId::LENGTH];
    id.copy_from_slice(&hash.as_bytes()[..NodeId::LENGTH]);
    NodeId::from_bytes(id)
}

fn put(node: NodeId, base: u64, parent: NodeId, name: &str, kind: NodeKind) -> Change {
    let record = NodeRecord {
        parent,
        name: Name::new(name).expect("letters and digits make a name"),
        mode: 0o644,
        modified: Timestamp { seconds: base as i64, nanoseconds: 0 },
        kind,
        conflict: None,
    };
    Change { node, base, action: Action::Put(encode_message(&record)) }
}

fn folder(number: u64) -> Change {
    let name = format!("folder-{number}");
    put(node("folder", number), 0, NodeId::ROOT, &name, NodeKind::Directory)
}

fn file(number: u64, base: u64) -> Change {
    let chunk = blake3::hash(format!("chunk {number} {base}").as_bytes());
    let chunk = ChunkRef { id: ChunkId::from_bytes(*chunk.as_bytes()), length: 4096 };
    let content = Content { size: 4096, chunk_size: 4096, depth: 0, chunks: vec![chunk] };
    let folder = node("folder", number / FILES_IN_FOLDER);
    let name = format!("file-{number}");
    put(node("file", number), base, folder, &name, NodeKind::File(content))
}
