//! The suites of the rooms below, over a real server.

use std::sync::Arc;

use async_trait::async_trait;
use commit_log::CommitLog;
use commit_log::conformance::{Fixture, cases};
use model::{DeviceId, Genesis};
use storage::server_door::ServerDoor;

use crate::support::{Device, TestServer, http};

struct Served {
    devices: Vec<Device>,
    genesis: Genesis,
}

impl std::fmt::Debug for Served {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Served")
    }
}

#[async_trait]
impl Fixture for Served {
    async fn open(&self, number: u8) -> Arc<dyn CommitLog> {
        Arc::new(self.devices[usize::from(number)].log(&self.genesis).await)
    }

    fn device(&self, number: u8) -> DeviceId {
        self.devices[usize::from(number)].id
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn served_log_over_websocket_passes_the_suite_of_logs() {
    let server = TestServer::start().await;
    let mut devices = Vec::new();
    for _ in 0..8 {
        devices.push(server.device("ada").await);
    }
    for (name, case) in cases() {
        println!("{name}");
        let genesis = devices[0].create_workspace(name).await;
        case(&Served { devices: devices.clone(), genesis }).await;
    }
}

/// The cases of the suite of stores that put only what a device may put: objects under the hash of their bytes.
const STORE_CASES: [&str; 7] = [
    "a_pack_of_eight_mebibytes_is_kept",
    "ranges_of_a_large_object_are_exact",
    "deferred_objects_are_there_after_sync",
    "deferring_an_existing_object_keeps_it_readable",
    "sync_without_anything_deferred_succeeds",
    "nothing_is_an_empty_list",
    "an_impossible_prefix_is_an_error",
];

#[tokio::test(flavor = "multi_thread")]
async fn pack_door_passes_the_suite_of_stores_as_far_as_it_lets_devices() {
    let server = TestServer::start().await;
    let device = server.device("ada").await;
    let mut done = 0;
    for case in storage::conformance::cases() {
        if !STORE_CASES.iter().any(|name| case.name.ends_with(name)) {
            continue;
        }
        println!("{}", case.name);
        let genesis = device.create_workspace(case.name).await;
        let base = server.url(&format!("/api/v1/workspaces/{}", genesis.workspace()));
        let door = ServerDoor::new(http(), &base, &device.token).unwrap();
        (case.run)(Arc::new(door)).await;
        done += 1;
    }
    assert_eq!(done, STORE_CASES.len());
}
