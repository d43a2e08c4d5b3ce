use std::sync::Arc;

use content::pack::DeltaStep;
use content::{PackWriter, Transform, WorkspaceKeys};
use model::testing::commit;
use model::{Commit, OpId};
use tokio::sync::oneshot;

use super::*;
use crate::services::authorisation::Right;
use crate::services::sync_service::CommitRequest;
use crate::testing::{Counter, TestApp};

/// A workspace whose packs travel in its log.
pub(in crate::files) struct World {
    pub(in crate::files) test: TestApp,
    pub(in crate::files) reading: Reading,
    pub(in crate::files) keys: WorkspaceKeys,
    commits: u8,
}

/// Bytes that no other number gives, of which few are needed to store them.
fn bytes_of(number: u32, length: usize) -> Vec<u8> {
    let mut bytes = vec![number as u8; length];
    bytes[..4].copy_from_slice(&number.to_be_bytes());
    bytes
}

impl World {
    pub(in crate::files) async fn start() -> Self {
        let test = TestApp::start();
        let reading = test.app.let_in(test.devices[0], test.home.workspace(), Right::Read).await;
        let reading = reading.unwrap();
        let keys = WorkspaceKeys::open(&test.home, None, Arc::new(Counter::default())).unwrap();
        Self { test, reading, keys, commits: 0 }
    }

    pub(in crate::files) fn chunk(&self, bytes: &[u8]) -> ChunkRef {
        ChunkRef { id: self.keys.content().namer().name(bytes), length: bytes.len() as u32 }
    }

    /// Has the log name a pack.
    pub(in crate::files) async fn add(&mut self, mut writer: PackWriter) {
        let pack = writer.finish().unwrap();
        self.commits += 1;
        let seen = self.test.app.view(self.reading.caller, self.reading.workspace).await.unwrap();
        let commit = Commit {
            op_id: OpId::from_bytes([self.commits; 16]),
            device: self.reading.caller.device,
            seen: seen.head(),
            has_deltas: pack.index.has_deltas(),
            inline_packs: vec![pack.bytes],
            ..commit(1, Vec::new())
        };
        drop(seen);
        let Reading { caller, workspace, .. } = self.reading;
        let (answer, answered) = oneshot::channel();
        let finish = move |head| drop(answer.send(head));
        let request = CommitRequest { caller, workspace, commit };
        self.test.app.committer.commit(request, finish).await.unwrap();
        answered.await.unwrap().unwrap();
        self.reading = self.test.app.let_in(caller, workspace, Right::Read).await.unwrap();
    }

    pub(in crate::files) fn writer(&self) -> PackWriter {
        PackWriter::new(Transform::default(), &self.keys.packs()).unwrap()
    }

    pub(in crate::files) async fn add_whole(&mut self, chunks: &[Vec<u8>]) {
        let mut writer = self.writer();
        for bytes in chunks {
            writer.push(self.chunk(bytes), bytes).unwrap();
        }
        self.add(writer).await;
    }

    /// Packs a chunk with what it is made from: `part` bytes of each base, and what is left.
    fn push_made(&self, writer: &mut PackWriter, bytes: &[u8], bases: &[Vec<u8>], part: u32) {
        let copied =
            |base: &Vec<u8>| DeltaStep::Copy { base: self.chunk(base), offset: 0, length: part };
        let mut steps: Vec<DeltaStep<'_>> = bases.iter().map(copied).collect();
        steps.push(DeltaStep::Literal(&bytes[bases.len() * part as usize..]));
        writer.push_delta(self.chunk(bytes), bytes, &steps).unwrap();
        writer.seal_deltas().unwrap();
    }

    async fn add_made(&mut self, bytes: &[u8], base: &[u8]) {
        let mut writer = self.writer();
        self.push_made(&mut writer, bytes, &[base.to_vec()], PART);
        self.add(writer).await;
    }

    /// Reads a chunk; returns what was held at the end, too.
    async fn read(&self, bytes: &[u8]) -> (Result<Bytes>, Making) {
        let (chunk, mut making) = (self.chunk(bytes), Making::default());
        let packs = self.test.app.locate(self.reading, &[chunk]).await.unwrap().remove(0);
        let (namer, mut open) = (self.keys.content().namer(), OpenRecords::default());
        let wanted = (&chunk, &packs[..], 0);
        let read = self.test.app.make_chunk(self.reading, wanted, &namer, &mut open, &mut making);
        (read.await, making)
    }
}

/// How much of each base is in what is made from it.
const PART: u32 = 100;

/// What is made from `base` and has a number of its own.
fn made_from(base: &[u8], number: u32) -> Vec<u8> {
    [&base[..PART as usize], &number.to_be_bytes()].concat()
}

#[tokio::test]
async fn pack_is_asked_for_a_chunk_though_others_are_broken_deep_down() {
    let mut world = World::start().await;
    let good = bytes_of(1, 300);
    let wanted = made_from(&good, 2);
    world.add_whole(std::slice::from_ref(&good)).await;
    // In each of these packs the chunk is made from what is made, by ten deltas in a row, from what is nowhere.
    for branch in 0..5_u32 {
        let mut chain = vec![made_from(&good, 100 + branch)];
        for depth in 1..=10 {
            chain.push(made_from(&good, 1000 * (branch + 1) + depth));
        }
        for pair in chain.windows(2) {
            world.add_made(&pair[1], &pair[0]).await;
        }
        world.add_made(&wanted, &chain[10]).await;
        let (read, making) = world.read(&wanted).await;
        assert!(read.unwrap_err().to_string().contains("is in no pack"));
        assert_eq!((making.begun.len(), making.made.len(), making.length), (0, 0, 0));
    }
    world.add_made(&wanted, &good).await;
    assert_eq!(world.read(&wanted).await.0.unwrap(), wanted);
}

#[tokio::test]
async fn chunks_that_are_made_from_each_other_end_and_come_out_where_one_is_to_be_had() {
    let mut world = World::start().await;
    let good = bytes_of(1, 300);
    let (one, two) = (made_from(&good, 2), made_from(&good, 3));
    world.add_made(&one, &two).await;
    world.add_made(&two, &one).await;
    for bytes in [&one, &two] {
        let error = world.read(bytes).await.0.unwrap_err();
        assert!(error.to_string().contains("is made from too many others"), "{error}");
    }
    world.add_whole(std::slice::from_ref(&good)).await;
    world.add_made(&two, &good).await;
    for bytes in [&one, &two] {
        assert_eq!(world.read(bytes).await.0.unwrap(), *bytes);
    }
}

/// What has `PART` bytes of each of these.
fn concat(bases: &[Vec<u8>]) -> Vec<u8> {
    bases.iter().flat_map(|base| base[..PART as usize].to_vec()).collect()
}

impl World {
    /// Packs what is made from each group of so many, 16 groups in a pack; returns these.
    async fn add_made_of_groups(&mut self, bases: &[Vec<u8>], count: usize) -> Vec<Vec<u8>> {
        let mut made = Vec::new();
        for bases in bases.chunks(16 * count) {
            let mut writer = self.writer();
            for bases in bases.chunks(count) {
                made.push(concat(bases));
                self.push_made(&mut writer, &made[made.len() - 1], bases, PART);
            }
            self.add(writer).await;
        }
        made
    }

    /// Reads what is made from these, which is too much or not.
    async fn check(&mut self, bases: &[Vec<u8>], is_read: bool) -> Making {
        let wanted = self.add_made_of_groups(bases, bases.len()).await.remove(0);
        let (read, making) = self.read(&wanted).await;
        match is_read {
            true => assert_eq!(read.unwrap(), wanted),
            false => {
                let error = read.unwrap_err();
                assert!(error.to_string().contains("is made from too many others"), "{error}");
            }
        }
        making
    }
}

#[tokio::test]
async fn chunk_of_more_others_than_a_reader_takes_is_given_up() {
    let mut world = World::start().await;
    let parts: Vec<Vec<u8>> = (0..8 * 256).map(|number| bytes_of(number, 120)).collect();
    for parts in parts.chunks(512) {
        world.add_whole(parts).await;
    }
    let middle = world.add_made_of_groups(&parts, 16).await;
    let upper = world.add_made_of_groups(&middle, 16).await;
    // From 7 + 112 + 1792 chunks, and from 8 + 128 + 2048.
    for (count, is_read) in [(7, true), (8, false)] {
        let Making { made, begun, .. } = world.check(&upper[..count], is_read).await;
        let held = Ancestry { depth: 3, chunks: made.len().max(begun.len()), length: 0 };
        assert!(held.is_readable() && (held.chunks > 1900) == is_read, "{held:?}");
    }
}

#[tokio::test]
async fn chunk_of_longer_others_than_a_reader_takes_is_given_up() {
    let mut world = World::start().await;
    let mut middle = Vec::new();
    for number in 0..17 {
        let large = vec![bytes_of(number, 8 << 20)];
        world.add_whole(&large).await;
        middle.push(large[0][..300].to_vec());
        let mut writer = world.writer();
        world.push_made(&mut writer, &middle[number as usize], &large, 300);
        world.add(writer).await;
    }
    world.check(&middle[..15], true).await;
    let halves = world.add_made_of_groups(&middle, 9).await;
    let making = world.check(&halves, false).await;
    let length = making.made.values().map(|bytes| bytes.len() as u64).sum();
    assert!((Ancestry { depth: 2, chunks: 0, length }).is_readable());
}

#[test]
fn what_was_tried_in_vain_again_and_again_comes_to_an_end() {
    let chunk = ChunkRef { id: ChunkId::from_bytes([1; 32]), length: 1 << 20 };
    let mut making = Making::default();
    let tried = (0..100_000).take_while(|_| making.try_once_more(&chunk).is_ok()).count();
    // More than once what may be held, so that one pack does not spoil it for the next one.
    assert!((256..=1024).contains(&tried), "{tried}");
    assert!(making.try_once_more(&chunk).is_err());
}
