//! Files whose chunks are stored as what makes them from others, read without a device.

use std::collections::HashSet;
use std::sync::Arc;

use commit_log::CommitLog;
use content::delta::ChunkClient;
use content::pack::PACK_STORED_TARGET;
use content::{
    ContentError, FilePacker, FinishedPack, PackSettings, PackSink, Transform, WorkspaceKeys,
};
use model::{ChunkId, ChunkRef, Commit, Genesis, PackRef};
use reqwest::{Method, StatusCode};

use crate::support::{Device, SystemRandom, TestServer, noise};

/// Hands packs out, and lets every chunk be a base.
#[derive(Default)]
struct Packs {
    known: HashSet<ChunkId>,
    packs: Vec<FinishedPack>,
}

impl PackSink for Packs {
    type Error = ContentError;

    fn claim(&mut self, chunk: &ChunkRef) -> Result<bool, ContentError> {
        Ok(self.known.insert(chunk.id))
    }

    fn may_be_base(&mut self, _: &ChunkRef) -> Result<bool, ContentError> {
        Ok(true)
    }

    fn emit(&mut self, pack: FinishedPack) -> Result<(), ContentError> {
        self.packs.push(pack);
        Ok(())
    }
}

/// Packs what makes `new` from `old`.
fn deltas(genesis: &Genesis, old: &[u8], new: &[u8]) -> Vec<FinishedPack> {
    let keys = WorkspaceKeys::open(genesis, None, Arc::new(SystemRandom)).unwrap();
    let base = ChunkClient::survey(keys.content(), 16 << 10, &mut &old[..]).unwrap();
    let (transform, target) = (Transform::default(), PACK_STORED_TARGET);
    let settings = PackSettings { transform, guard: keys.packs(), target };
    let mut packer = FilePacker::new(keys.content(), &settings, Packs::default()).unwrap();
    packer.pack_edited(&base, None, &mut &new[..]).unwrap();
    let packs = packer.finish().unwrap().packs;
    assert!(packs.iter().any(|pack| pack.index.has_deltas()));
    packs
}

async fn name_packs(device: &Device, genesis: &Genesis, packs: Vec<FinishedPack>) {
    let log = device.log(genesis).await;
    for pack in packs {
        assert!(device.put_pack(genesis, &pack.bytes).await.is_success());
        let named = vec![PackRef { id: pack.id, length: pack.bytes.len() as u64 }];
        let seen = log.head().await.unwrap();
        let commit = Commit { changes: Vec::new(), packs: named, ..device.commit(1, seen) };
        log.commit(&commit).await.unwrap();
    }
}

#[tokio::test]
async fn versions_that_are_made_from_each_other_are_read_over_http() {
    let server = TestServer::start().await;
    let device = server.device("ada").await;
    let genesis = device.create_workspace("home").await;
    let path = format!("/workspaces/{}/files/report", genesis.workspace());
    let mut versions = vec![noise(200_000)];
    let put = device.status(Method::PUT, &path, versions[0].clone()).await;
    assert!(put.is_success(), "{put}");
    for round in 1..5 {
        let old = versions.last().unwrap().clone();
        let mut new = old.clone();
        // In every chunk, and never where it was.
        for at in (round * 100..new.len()).step_by(4096) {
            new[at] ^= 0xff;
        }
        name_packs(&device, &genesis, deltas(&genesis, &old, &new)).await;
        // The server keeps its chunks whole, too, and finds them in the packs that came first.
        let put = device.status(Method::PUT, &path, new.clone()).await;
        assert!(put.is_success(), "{put}");
        versions.push(new);
    }
    let Some(last) = versions.last() else { return };
    let answer = device.request(Method::GET, &path).send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    assert!(answer.bytes().await.unwrap() == last[..]);
    let part = device.request(Method::GET, &path).header("range", "bytes=150000-150999");
    let part = part.send().await.unwrap().bytes().await.unwrap();
    assert!(part == last[150_000..151_000]);
}

#[tokio::test]
async fn what_is_made_from_what_is_not_there_is_not_taken_for_stored() {
    let server = TestServer::start().await;
    let device = server.device("ada").await;
    let genesis = device.create_workspace("home").await;
    let path = format!("/workspaces/{}/files/report", genesis.workspace());
    let one = noise(100_000);
    let mut two = one.clone();
    for at in (100..two.len()).step_by(4096) {
        two[at] ^= 0xff;
    }
    for (old, new) in [(&one, &two), (&two, &one)] {
        name_packs(&device, &genesis, deltas(&genesis, old, new)).await;
    }
    // Each is made from the other, and neither is there.
    let put = device.status(Method::PUT, &path, one.clone()).await;
    assert!(put.is_success(), "{put}");
    let answer = device.request(Method::GET, &path).send().await.unwrap();
    assert!(answer.bytes().await.unwrap() == one);
}
