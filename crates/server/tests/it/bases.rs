//! Files whose chunks are stored as what makes them from others, read without a device.

use std::collections::HashSet;
use std::sync::Arc;

use commit_log::CommitLog;
use content::delta::VersionSketch;
use content::pack::{Ancestry, PACK_STORED_TARGET};
use content::{
    ContentError, FilePacker, FinishedPack, PackSettings, PackSink, Transform, WorkspaceKeys,
};
use model::{
    Change, ChunkId, ChunkRef, Commit, Content, Genesis, Name, NodeId, NodeKind, NodeRecord,
    PackRef, Timestamp,
};
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

    fn ancestry(&mut self, _: &ChunkRef) -> Result<Option<Ancestry>, ContentError> {
        Ok(Some(Ancestry::default()))
    }

    fn emit(&mut self, pack: FinishedPack) -> Result<(), ContentError> {
        self.packs.push(pack);
        Ok(())
    }
}

/// Packs what makes `new` from `old`, or all of it where there is nothing before.
fn pack(genesis: &Genesis, old: Option<&[u8]>, new: &[u8]) -> (Vec<FinishedPack>, Content) {
    let keys = WorkspaceKeys::open(genesis, None, Arc::new(SystemRandom)).unwrap();
    let (transform, target) = (Transform::default(), PACK_STORED_TARGET);
    let settings = PackSettings { transform, guard: keys.packs(), target };
    let mut packer = FilePacker::new(keys.content(), &settings, Packs::default()).unwrap();
    let content = match old {
        None => packer.pack_bytes(new, Some(16 << 10)).unwrap(),
        Some(mut old) => {
            let base = VersionSketch::survey(keys.content(), 16 << 10, &mut old).unwrap();
            packer.pack_edited(&base, &mut &new[..]).unwrap().0
        }
    };
    let packs = packer.finish().unwrap().packs;
    assert!(packs.iter().all(|pack| pack.index.has_deltas() == old.is_some()));
    (packs, content)
}

/// Commits packs, and a version of a file if there is one.
async fn commit(device: &Device, genesis: &Genesis, packs: Vec<FinishedPack>, put: Option<Change>) {
    let log = device.log(genesis).await;
    let mut named = Vec::new();
    let has_deltas = packs.iter().any(|pack| pack.index.has_deltas());
    for pack in packs {
        assert!(device.put_pack(genesis, &pack.bytes).await.is_success());
        named.push(PackRef { id: pack.id, length: pack.bytes.len() as u64 });
    }
    let seen = log.head().await.unwrap();
    let changes = put.into_iter().collect();
    log.commit(&Commit { changes, packs: named, has_deltas, ..device.commit(1, seen) })
        .await
        .unwrap();
}

#[tokio::test]
async fn versions_that_are_made_from_each_other_are_read_over_http() {
    let server = TestServer::start().await;
    let device = server.device("ada").await;
    let genesis = device.create_workspace("home").await;
    let path = format!("/workspaces/{}/files/report", genesis.workspace());
    let mut old: Option<Vec<u8>> = None;
    for version in 0..5_u64 {
        let mut new = old.clone().unwrap_or_else(|| noise(200_000));
        // In every chunk, and never where it was.
        for at in (100 + version as usize * 100..new.len()).step_by(4096) {
            new[at] ^= 0xff;
        }
        let (packs, content) = pack(&genesis, old.as_deref(), &new);
        let record = NodeRecord {
            parent: NodeId::ROOT,
            name: Name::new("report").unwrap(),
            mode: 0o644,
            modified: Timestamp::default(),
            kind: NodeKind::File(content),
            conflict: None,
        };
        let put = model::testing::put_record(50, version, &record);
        commit(&device, &genesis, packs, Some(put)).await;
        let answer = device.request(Method::GET, &path).send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::OK);
        assert!(answer.bytes().await.unwrap() == new[..], "version {version}");
        let part = device.request(Method::GET, &path).header("range", "bytes=150000-150999");
        let part = part.send().await.unwrap().bytes().await.unwrap();
        assert!(part == new[150_000..151_000]);
        old = Some(new);
    }
    let (_, usage) = device.get(&format!("/workspaces/{}/usage", genesis.workspace())).await;
    let stored = usage["content"]["packs"]["stored_bytes"].as_u64().unwrap();
    // Whole chunks would be a million.
    assert!(stored < 300_000, "{stored} bytes for five versions");
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
        commit(&device, &genesis, pack(&genesis, Some(old), new).0, None).await;
    }
    // Each is made from the other, and neither is there.
    let put = device.status(Method::PUT, &path, one.clone()).await;
    assert!(put.is_success(), "{put}");
    let answer = device.request(Method::GET, &path).send().await.unwrap();
    assert!(answer.bytes().await.unwrap() == one);
}

/// As after a cleanup, which has made it whole, and removed what it was made from.
#[tokio::test]
async fn chunk_is_read_at_once_that_is_whole_in_a_pack_which_nobody_has_looked_into() {
    let server = TestServer::start().await;
    let device = server.device("ada").await;
    let genesis = device.create_workspace("home").await;
    let path = format!("/workspaces/{}/files/report", genesis.workspace());
    let one = noise(10_000);
    let mut two = one.clone();
    two[5000] ^= 0xff;
    let (made, content) = pack(&genesis, Some(&one), &two);
    let record = NodeRecord {
        parent: NodeId::ROOT,
        name: Name::new("report").unwrap(),
        mode: 0o644,
        modified: Timestamp::default(),
        kind: NodeKind::File(content),
        conflict: None,
    };
    let put = model::testing::put_record(50, 0, &record);
    commit(&device, &genesis, made, Some(put)).await;
    let read = async || {
        let answer = device.request(Method::GET, &path).send().await.ok()?;
        answer.bytes().await.ok()
    };
    assert!(read().await.is_none_or(|bytes| bytes != two[..]), "what it is made from is nowhere");
    commit(&device, &genesis, pack(&genesis, None, &two).0, None).await;
    assert!(read().await.is_some_and(|bytes| bytes == two[..]));
}
