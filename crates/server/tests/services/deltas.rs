//! New versions that come as what has changed in them, to a server whose database is PostgreSQL.

use std::sync::Arc;

use commit_log::CommitLog;
use content::WorkspaceKeys;
use content::delta::{BaseVersion, ChunkClient, DeltaError, DeltaPart, Plain, SessionId, body_of};
use reqwest::{Method, StatusCode};

use crate::cluster::{Shared, run};
use crate::place::Place;
use crate::support::{SystemRandom, noise, random};

/// How long files are that travel in the log.
const LENGTH: usize = 60_000;

/// More of them than a server keeps in memory, which is 1 MiB.
const OTHERS: usize = 24;

#[test]
fn old_version_that_only_the_log_has_is_read_from_there() {
    let place = Place::take();
    let shared = Shared::new(&place);
    run(async {
        let server = shared.server(|_| {}).await;
        let device = server.device("ada").await;
        let genesis = device.create_workspace("home").await;
        let at = |rest: &str| format!("/workspaces/{}/{rest}", genesis.workspace());
        let mut bytes = noise(LENGTH);
        let put = async |name: &str, bytes: Vec<u8>| {
            device.status(Method::PUT, &at(&format!("files/{name}")), bytes).await
        };
        assert_eq!(put("a", bytes.clone()).await, StatusCode::CREATED);
        for number in 0..OTHERS {
            assert_eq!(put(&format!("{number}"), noise(LENGTH)).await, StatusCode::CREATED);
        }
        let log = device.log(&genesis).await;
        let entries = log.entries(0, u64::MAX).await.unwrap();
        assert!(entries.iter().all(|entry| entry.commit.packs.is_empty()), "all is in the log");

        let list = device.request(Method::GET, &at("chunks/a")).send().await.unwrap();
        let list = BaseVersion::decode(&list.bytes().await.unwrap()).unwrap();
        let keys = WorkspaceKeys::open(&genesis, None, Arc::new(SystemRandom)).unwrap();
        let (keys, plain) = (keys.content(), Plain::of(&genesis).unwrap());
        let size = list.table().chunk_size();
        let base = ChunkClient::survey(keys, size, &mut &bytes[..]).unwrap();
        bytes[LENGTH / 2] ^= 1;
        let session = SessionId::from_bytes(random());
        let mut client = ChunkClient::new(keys, genesis.workspace(), session);
        let mut parts = Vec::new();
        let mut take = |part: DeltaPart| -> Result<(), DeltaError> {
            parts.push(part.into_message(plain)?);
            Ok(())
        };
        client.send_delta(&base, None, &mut &bytes[..], &mut take).unwrap();
        let body = body_of(&parts);
        assert!(body.len() < LENGTH / 10, "{}", body.len());
        let sent = device.status(Method::POST, &at("delta/a"), body).await;
        assert_eq!(sent, StatusCode::OK);
        let read = device.request(Method::GET, &at("files/a")).send().await.unwrap();
        assert!(read.bytes().await.unwrap() == bytes);
    });
}
