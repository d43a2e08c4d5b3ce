//! A supervisor over a real broker: load rises and falls, instances come and go, and no commit fails.

use std::path::Path;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use load::cluster::{Cluster, Ground, Shape};
use load::figures::{Figures, judge, seats};
use load::population::{Population, account_names};
use load::run::{Connected, Load, Pace, Seat};
use load::server_process::ServerProcess;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use xtask::process::children_of;

use crate::stage::{ALONE, running_file};

/// How many devices commit.
const DEVICES: usize = 30;

/// The limits of the supervisor.
const LEAST: u64 = 1;
const MOST: u64 = 3;

/// How long anything here may take that does come about.
const PATIENCE: Duration = Duration::from_secs(90);

/// Gateways, a supervisor, and devices.
struct Scene {
    supervisor: ServerProcess,
    cluster: Cluster,
    population: Population,
    words: Vec<String>,
    ground: Ground,
}

impl Scene {
    async fn set(broker: &'static str, folder: &Path) -> Self {
        let binary = Path::new(env!("CARGO_BIN_EXE_syncline"));
        let ground = Ground::prepare(binary, folder, &running_file()).unwrap();
        let accounts = account_names(DEVICES, DEVICES);
        ground.setting.add_accounts(&accounts).unwrap();
        let shape = Shape { broker, gateways: 2, sync_services: 0 };
        let cluster = Cluster::scaled(&ground, shape).unwrap();
        let url = &ground.services.service(broker).unwrap().url;
        let store = format!("file:{}", ground.setting.folder().join("store").display());
        let instances = format!("{LEAST}..{MOST}");
        let words = ["--role", "supervisor", "--broker", url, "--store", &store, "--instances"];
        let words = words.into_iter().chain([instances.as_str(), "--calm", "3"]);
        let words: Vec<String> = words.map(str::to_owned).collect();
        let supervisor = ServerProcess::start(&ground.setting, "supervisor", &words).unwrap();
        let population =
            Population::enrol(&cluster.url(), &accounts, DEVICES, DEVICES).await.unwrap();
        Self { supervisor, cluster, population, words, ground }
    }

    /// Returns how many sync services the supervisor says that there are.
    async fn count(&self) -> u64 {
        let page = self.population.page(&format!("{}/healthz", self.supervisor.url())).await;
        let said: Value = serde_json::from_str(&page.unwrap()).unwrap();
        said["sync_services"].as_u64().unwrap()
    }

    async fn until_count(&self, wanted: u64) {
        let start = Instant::now();
        while self.count().await != wanted {
            assert!(start.elapsed() < PATIENCE, "there are {}, not {wanted}", self.count().await);
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Gives each device a workspace.
    async fn seats(&self, label: &str) -> Vec<Seat> {
        let devices = &self.population.devices;
        let workspaces = self.population.workspaces(label, devices).await.unwrap();
        seats(workspaces.into_iter().zip(devices.iter().map(|device| vec![device.clone()])))
    }

    /// Lets devices work while something is awaited; no commit fails, and all of them are in the log once.
    async fn work(&self, label: &str, pace: Pace, length: Duration, meanwhile: impl Future) {
        let seats = self.seats(label).await;
        let load = Load { seed: 7, pace, length, patience: PATIENCE };
        let connected =
            Connected::connect(&self.cluster.urls(), load, seats.clone()).await.unwrap();
        let (outcome, _) = tokio::join!(connected.go(Vec::new()), meanwhile);
        let outcome = outcome.unwrap();
        let figures = Figures::of(&outcome);
        assert!(figures.sent > 0);
        assert_eq!((figures.answered, figures.refused), (figures.sent, 0), "{label}");
        let verdict = judge(&self.cluster.url(), &seats, &outcome).await.unwrap();
        assert_eq!(verdict.violations, [], "{label}: {}", verdict.describe());
    }
}

/// Tells whether a process runs, and does not only wait for somebody to ask how it ended.
fn is_there(process: &u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

fn until_gone(processes: &[u32]) {
    let start = Instant::now();
    while processes.iter().any(is_there) {
        assert!(start.elapsed() < PATIENCE, "{processes:?} outlive their supervisor");
        std::thread::sleep(Duration::from_millis(20));
    }
}

async fn instances_follow_the_load(broker: &'static str) {
    let folder = tempfile::tempdir().unwrap();
    let mut scene = Scene::set(broker, folder.path()).await;
    let little = Pace::Open { rate: 10.0 };
    scene.work("little", little, Duration::from_secs(3), async {}).await;
    assert_eq!(scene.count().await, LEAST);

    // As much as they can do; then one of them dies, and comes back.
    let much = Pace::Closed { in_flight: 64 };
    let meanwhile = async {
        scene.until_count(MOST).await;
        let child = children_of(scene.supervisor.id())[0];
        let child = Pid::from_raw(i32::try_from(child).unwrap()).unwrap();
        kill_process(child, Signal::KILL).unwrap();
    };
    scene.work("much", much, Duration::from_secs(25), meanwhile).await;
    scene.until_count(LEAST).await;
    scene.work("little-again", little, Duration::from_secs(3), async {}).await;

    // All end with the supervisor, in good order and otherwise.
    let children = children_of(scene.supervisor.id());
    assert_eq!(children.len() as u64, LEAST);
    scene.supervisor.stop().unwrap();
    assert!(!children.iter().any(is_there));
    scene.supervisor =
        ServerProcess::start(&scene.ground.setting, "supervisor", &scene.words).unwrap();
    scene.until_count(LEAST).await;
    let children = children_of(scene.supervisor.id());
    scene.supervisor.kill().unwrap();
    until_gone(&children);
}

fn run(broker: &'static str) {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    tokio::runtime::Runtime::new().unwrap().block_on(instances_follow_the_load(broker));
}

#[test]
fn instances_follow_the_load_over_rabbitmq() {
    run("rabbitmq");
}

#[test]
fn instances_follow_the_load_over_nats() {
    run("nats");
}
