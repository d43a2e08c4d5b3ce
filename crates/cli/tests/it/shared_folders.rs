//! A folder of a workspace that other people get, and nothing beside it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use reqwest::Client;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::background::{start_watch, wait_until};
use crate::support::{Device, Server, noise, terminate, tree};

/// A server; two devices of `ada`, with one workspace; those of `bob` and `carol`.
struct Scene {
    room: TempDir,
    server: Server,
    ada: Device,
    desktop: Device,
    bob: Device,
    carol: Device,
}

impl Scene {
    fn new() -> Self {
        let room = tempfile::tempdir().unwrap();
        let server = Server::start(room.path());
        let [ada, desktop, bob, carol] =
            ["ada", "desktop", "bob", "carol"].map(|name| Device::new(room.path(), name));
        server.login(&ada, "laptop");
        server.login(&desktop, "desktop");
        let data = server.data.to_str().unwrap();
        for (device, user) in [(&bob, "bob"), (&carol, "carol")] {
            let add = ["user", "add", user, "--password-stdin", "--data", data];
            device.run_with_input(&add, "a password").ok();
            let login = ["login", &server.url, "--user", user, "--password-stdin"];
            device.run_with_input(&login, "a password").ok();
        }
        ada.write("diary.txt", "of ada alone\n");
        ada.write("trip/plan.txt", "to the sea\n");
        ada.write("trip/photos/large", noise(300_000));
        ada.write("other/notes.txt", "of ada alone, too\n");
        ada.run(&["init", "--workspace", "Home"]).ok();
        ada.sync().ok();
        desktop.run(&["clone", "Home", "."]).ok();
        Self { room, server, ada, desktop, bob, carol }
    }

    /// One in which bob has the folder.
    fn shared() -> Self {
        let scene = Self::new();
        scene.ada.run(&["share", "trip", "--with", "bob:edit"]).ok();
        scene.bob.run(&["clone", "ada/trip", "."]).ok();
        scene.desktop.sync().ok();
        scene
    }

    /// Asks the server as the account of a device.
    fn get(&self, device: &Device, path: &str) -> (u16, Value) {
        self.ask(reqwest::Method::GET, device, path)
    }

    fn ask(&self, method: reqwest::Method, device: &Device, path: &str) -> (u16, Value) {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let runtime = Runtime::new().unwrap();
        let client = Client::builder().no_proxy().build().unwrap();
        let url = format!("{}{path}", self.server.url);
        runtime.block_on(async {
            let request = client.request(method, url).bearer_auth(token(device)).body("text");
            let answer = request.send().await.unwrap();
            let status = answer.status().as_u16();
            (status, serde_json::from_slice(&answer.bytes().await.unwrap()).unwrap_or_default())
        })
    }
}

fn token(device: &Device) -> String {
    let account = std::fs::read_to_string(find(&device.home, "account.toml")).unwrap();
    let line = account.lines().find_map(|line| line.strip_prefix("token = ")).unwrap();
    line.trim_matches('"').to_owned()
}

fn find(folder: &Path, name: &str) -> PathBuf {
    seek(folder, name).unwrap_or_else(|| panic!("there is no {name}"))
}

fn seek(folder: &Path, name: &str) -> Option<PathBuf> {
    let mut waiting = vec![folder.to_owned()];
    while let Some(folder) = waiting.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            match entry.path() {
                path if path.ends_with(name) => return Some(path),
                path if path.is_dir() => waiting.push(path),
                _ => {}
            }
        }
    }
    None
}

/// What a device has in a folder.
fn inside(device: &Device, path: &str) -> BTreeMap<PathBuf, String> {
    tree(&device.folder.join(path))
}

#[test]
fn members_get_the_folder_and_hear_of_nothing_beside_it() {
    let scene = Scene::new();
    let Scene { ada, desktop, bob, carol, .. } = &scene;
    let before = ada.tree();
    let shared = ada.run(&["share", "trip", "--with", "bob:edit", "--json"]).ok().json();
    assert_eq!((&shared["workspace"], &shared["user"]), (&json!("trip"), &json!("bob")));
    assert_eq!(ada.tree(), before, "nothing changes for who shares");
    ada.run(&["share", "trip", "--with", "carol:view"]).ok();
    bob.run(&["clone", "ada/trip", "."]).ok();
    carol.run(&["clone", "ada/trip", "from ada/our trip"]).ok();
    assert_eq!(inside(bob, "."), inside(ada, "trip"));
    assert_eq!(inside(carol, "from ada/our trip"), inside(ada, "trip"));
    // On the other device nothing is transferred, and nothing changes.
    let report = desktop.sync().ok();
    assert_eq!(desktop.tree(), ada.tree());
    assert!(report.json()["received_bytes"].as_u64().unwrap() < 100_000, "{}", report.stdout);

    let home = ada.run(&["status", "--json"]).ok().json();
    let id = home["workspace_id"].as_str().unwrap();
    assert_eq!(home["shared_folders"][0]["path"], "trip");
    assert_eq!(home["shared_folders"][0]["status"]["workspace"], "trip");
    for member in [bob, carol] {
        member.run(&["clone", "ada/Home", "elsewhere", "--json"]).ends_with(10);
        let (status, listed) = scene.get(member, "/api/v1/workspaces");
        assert_eq!((status, listed.as_array().unwrap().len()), (200, 1), "{listed}");
        for path in [
            "",
            "/nodes",
            "/nodes/diary.txt",
            "/files/diary.txt",
            "/folders",
            "/members",
            "/events",
            "/objects",
        ] {
            let (status, answer) = scene.get(member, &format!("/api/v1/workspaces/{id}{path}"));
            assert_eq!(status, 404, "{path}: {answer}");
        }
        assert_eq!(scene.get(member, "/dav/ada/Home/diary.txt").0, 404);
        let log = member
            .run(&["log", "--json", if member.has("plan.txt") { "." } else { "from ada/our trip" }])
            .ok();
        for word in ["diary", "notes", "other", "\"trip\""] {
            assert!(!log.stdout.contains(word), "{word}: {}", log.stdout);
        }
    }

    // Both ways, to all devices.
    bob.write("of bob.txt", "by train\n");
    bob.write("plan.txt", "to the mountains\n");
    bob.sync().ok();
    ada.write("trip/of ada", "by bus\n");
    ada.write("diary.txt", "still alone\n");
    ada.sync().ok();
    desktop.sync().ok();
    bob.sync().ok();
    assert_eq!(desktop.tree(), ada.tree());
    assert_eq!(inside(bob, "."), inside(ada, "trip"));
    assert_eq!(ada.read("trip/plan.txt"), b"to the mountains\n");
    assert_eq!(bob.read("of ada"), b"by bus\n");
    // A new device gets everything at once.
    let third = Device::new(scene.room.path(), "third");
    scene.server.login(&third, "third");
    third.run(&["clone", "Home", "."]).ok();
    assert_eq!(third.tree(), ada.tree());
}

#[test]
fn who_is_shut_out_gets_nothing_more_and_everybody_else_goes_on() {
    let scene = Scene::shared();
    let Scene { ada, desktop, bob, .. } = &scene;
    let shares = ada.run(&["share", "ls", "trip", "--json"]).ok().json();
    let expected = json!([{"user": "ada", "role": "owner"}, {"user": "bob", "role": "edit"}]);
    assert_eq!(shares["members"], expected);
    let shares = ada.run(&["share", "ls", "--json"]).ok().json();
    assert_eq!(shares["members"], json!([{"user": "ada", "role": "owner"}]));
    ada.run(&["share", "rm", "bob", "trip", "--yes"]).ok();
    ada.write("trip/later", "without bob\n");
    ada.sync().ok();
    desktop.sync().ok();
    assert_eq!(desktop.tree(), ada.tree());
    let before = bob.tree();
    assert_eq!(bob.sync().ends_with(10).json()["code"], "E0404");
    assert_eq!(bob.tree(), before);
}

#[test]
fn what_another_device_had_not_sent_is_lost_by_nobody() {
    let scene = Scene::new();
    let Scene { ada, desktop, bob, .. } = &scene;
    desktop.write("trip/plan.txt", "edited on the desktop\n");
    desktop.write("trip/new/of desktop", "never sent\n");
    desktop.write("diary.txt", "edited, too\n");
    std::fs::remove_file(desktop.folder.join("trip/photos/large")).unwrap();
    // Some of it waits in the outbox, the rest only in the folder.
    desktop.run(&["checkin"]).ok();
    desktop.write("trip/photos/small", "after that\n");
    ada.run(&["share", "trip", "--with", "bob:edit"]).ok();
    bob.run(&["clone", "ada/trip", "."]).ok();
    bob.write("plan.txt", "edited by bob\n");
    bob.sync().ok();
    desktop.sync().ends_with(5);
    let has = |device: &Device, path: &str, text: &str| {
        let mut files =
            inside(device, path).into_keys().map(|file| device.folder.join(path).join(file));
        let is_it = |file: PathBuf| std::fs::read(file).is_ok_and(|bytes| bytes == text.as_bytes());
        assert!(files.any(is_it), "{text:?}: {:?}", inside(device, path));
    };
    for (device, path) in [(desktop, "trip"), (bob, "."), (ada, "trip")] {
        let code = device.sync().code;
        assert!([0, 5].contains(&code), "{code}");
        for text in ["edited on the desktop\n", "edited by bob\n", "never sent\n", "after that\n"] {
            has(device, path, text);
        }
    }
    assert_eq!(ada.read("diary.txt"), b"edited, too\n");
    // What was deleted and not sent comes back: a deletion without a merge base is none.
    assert_eq!(desktop.read("trip/photos/large"), noise(300_000));
    desktop.sync();
    assert_eq!(inside(desktop, "trip"), inside(ada, "trip"));
    assert_eq!(inside(bob, "."), inside(ada, "trip"));
}

#[test]
fn a_shared_folder_moves_with_its_owner_and_comes_back_where_it_was_deleted() {
    let scene = Scene::shared();
    let Scene { ada, desktop, bob, .. } = &scene;
    std::fs::rename(ada.folder.join("trip"), ada.folder.join("other/journey")).unwrap();
    ada.sync().ok();
    desktop.sync().ok();
    assert_eq!(desktop.tree(), ada.tree());
    desktop.write("other/journey/from there", "still one\n");
    desktop.sync().ok();
    bob.sync().ok();
    assert_eq!(bob.read("from there"), b"still one\n");
    let before = bob.tree();
    std::fs::remove_dir_all(desktop.folder.join("other")).unwrap();
    desktop.sync().ok();
    bob.sync().ok();
    assert_eq!(bob.tree(), before, "nobody else loses anything");
    ada.sync().ok();
    desktop.sync().ok();
    assert_eq!(inside(desktop, "other/journey"), inside(bob, "."));
    assert_eq!(inside(ada, "other/journey"), inside(bob, "."));
}

#[test]
fn what_cannot_be_shared_by_itself_is_refused_and_left_as_it_is() {
    let scene = Scene::shared();
    let Scene { ada, bob, carol, .. } = &scene;
    let refused = |device: &Device, words: &[&str], part: &str| {
        let words: Vec<_> = words.iter().copied().chain(["--json"]).collect();
        let error = device.run(&words).ends_with(1).json();
        assert_eq!(error["code"], "E0216", "{error}");
        assert!(error["cause"].as_str().unwrap().contains(part), "{error}");
    };
    refused(ada, &["share", "diary.txt", "--with", "carol:view"], "no folder");
    ada.write("around/ignored/x", "x");
    ada.write(".synclineignore", "ignored\n");
    refused(ada, &["share", "around/ignored", "--with", "carol:view"], "rules");
    refused(ada, &["share", "trip/photos", "--with", "carol:view"], "lies in a folder");
    std::fs::create_dir_all(ada.folder.join("box")).unwrap();
    std::fs::rename(ada.folder.join("trip"), ada.folder.join("box/trip")).unwrap();
    ada.sync().ok();
    refused(ada, &["share", "box", "--with", "carol:view"], "in it is shared");
    refused(bob, &["share", "photos", "--with", "carol:view"], "only the owner");
    ada.run(&["share", "--with", "carol:view"]).ok();
    refused(ada, &["share", "other", "--with", "bob:view"], "others may open");
    // Whoever gets the rest of it does not get the folder.
    carol.run(&["clone", "ada/Home", "."]).ok();
    assert!(carol.has("diary.txt") && !carol.has("box/trip/plan.txt"));
    let told = carol.sync().ok().json();
    assert_eq!((&told["type"], &told["path"]), (&json!("closed"), &json!("box/trip")));
    assert!(carol.run(&["sync"]).ok().stderr.contains("may not open"));
    ada.run(&["share", "rm", "carol", "--yes"]).ok();
    // The name of a workspace is taken once.
    ada.write("more/trip/x", "x");
    let taken = ada.run(&["share", "more/trip", "--with", "bob:view", "--json"]).ends_with(1);
    assert_eq!(taken.json()["code"], "E0406", "{}", taken.stdout);
    let named = ["share", "more/trip", "--with", "bob:view", "--workspace", "Another"];
    ada.run(&[&named[..], &["--dry-run"]].concat()).ok();
    ada.run(&named).ok();
    bob.run(&["clone", "ada/Another", "../bobs other"]).ok();
    // Into a folder of their own members do not put it.
    let nested = bob.run(&["clone", "ada/Another", "nested", "--json"]).ends_with(1).json();
    assert_eq!(nested["code"], "E0202");
}

#[test]
fn what_rules_around_a_folder_leave_out_is_not_given_away_with_it() {
    let scene = Scene::new();
    let Scene { ada, desktop, bob, .. } = &scene;
    ada.write(".synclineignore", "*.env\n");
    ada.write("trip/.env", "of this device alone\n");
    ada.sync().ok();
    let share = ["share", "trip", "--with", "bob:edit", "--json"];
    let refused = ada.run(&share).ends_with(1).json();
    assert_eq!(refused["code"], "E0216");
    assert!(refused["cause"].as_str().unwrap().contains("'.env'"), "{refused}");
    assert!(!ada.has("trip/.syncline"));
    assert_eq!(scene.get(ada, "/api/v1/workspaces").1.as_array().unwrap().len(), 1);
    // What such a rule takes in would be in no workspace.
    ada.write(".synclineignore", "!*.part\n");
    std::fs::remove_file(ada.folder.join("trip/.env")).unwrap();
    ada.write("trip/half.part", "synced\n");
    let refused = ada.run(&share).ends_with(1).json();
    assert!(refused["cause"].as_str().unwrap().contains("'half.part'"), "{refused}");
    std::fs::remove_file(ada.folder.join("trip/half.part")).unwrap();

    // On another device of the owner's the same holds.
    ada.write(".synclineignore", "*.env\n");
    ada.sync().ok();
    desktop.sync().ok();
    desktop.write("trip/.env", "of the desktop alone\n");
    ada.run(&share).ok();
    bob.run(&["clone", "ada/trip", "."]).ok();
    let before = desktop.tree();
    let refused = desktop.run(&["sync", "--json"]).ends_with(1);
    assert!(refused.stdout.contains("E0216"), "{}", refused.stdout);
    assert_eq!(desktop.tree(), before);
    bob.sync().ok();
    assert!(!bob.has(".env") && bob.has("plan.txt"));
    desktop.write("trip/.synclineignore", "*.env\n");
    desktop.sync().ok();
    bob.sync().ok();
    assert!(!bob.has(".env") && bob.has(".synclineignore"));
    assert_eq!(desktop.read("trip/.env"), b"of the desktop alone\n");
}

#[test]
fn a_folder_that_is_said_to_be_the_workspace_of_somebody_else_is_not_connected() {
    let mut scene = Scene::new();
    scene.ada.run(&["share", "trip", "--with", "bob:edit"]).ok();
    scene.bob.run(&["clone", "ada/trip", "."]).ok();
    scene.desktop.write("trip/mine.txt", "of ada\n");
    // The record in the log names a workspace that bob owns, and ada may edit.
    scene.server.stop();
    let database = rusqlite::Connection::open(scene.server.data.join("metadata.sqlite")).unwrap();
    let account = "(SELECT id FROM accounts WHERE name = 'bob')";
    let trip = "(SELECT number FROM workspaces WHERE name = 'trip')";
    let changed = database
        .execute(&format!("UPDATE members SET account = workspaces.owner FROM workspaces WHERE number = workspace AND number = {trip}"), [])
        .unwrap();
    assert_eq!(changed, 1);
    database
        .execute(&format!("UPDATE workspaces SET owner = {account} WHERE number = {trip}"), [])
        .unwrap();
    drop(database);
    let listen = scene.server.url.strip_prefix("http://").unwrap().to_owned();
    let operator = Device::new(scene.room.path(), "operator");
    scene.server = Server::start_at(&operator, scene.server.data.clone(), &listen);
    let Scene { desktop, bob, .. } = &scene;
    let before = desktop.tree();
    let refused = desktop.run(&["sync", "--json"]).ends_with(1);
    assert!(refused.stdout.contains("E0216"), "{}", refused.stdout);
    assert!(refused.stdout.contains("belongs to bob"), "{}", refused.stdout);
    assert_eq!(desktop.tree(), before);
    bob.sync().ok();
    assert!(!bob.has("mine.txt") && bob.has("plan.txt"));
}

#[test]
fn a_server_shows_the_folder_at_its_own_workspace_and_nowhere_else() {
    let scene = Scene::shared();
    let Scene { ada, .. } = &scene;
    let at = |path: &str| format!("/api/v1/workspaces/Home/{path}");
    let (status, refused) = scene.get(ada, &at("folders/trip"));
    assert_eq!((status, &refused["code"]), (409, &json!("conflict")), "{refused}");
    let (_, node) = scene.get(ada, &at("nodes/trip"));
    let (_, trip) = scene.get(ada, "/api/v1/workspaces/trip");
    assert!(trip["id"].is_string() && node["mounted"] == trip["id"], "{node} {trip}");
    assert_eq!(scene.get(ada, &at("files/trip/plan.txt")).0, 404);
    let put = |path: &str| scene.ask(reqwest::Method::PUT, ada, &at(path)).0;
    assert_eq!(put("files/trip/new.txt"), 409);
    assert_eq!(put("folders/trip/new"), 409);
    let delete = |path: &str| scene.ask(reqwest::Method::DELETE, ada, &at(path)).0;
    assert_eq!(delete("files/trip"), 409);
    assert_eq!(delete("files/diary.txt"), 204);
    let before = inside(ada, "trip");
    ada.sync().ok();
    assert!(!ada.has("diary.txt"));
    assert_eq!(inside(ada, "trip"), before);
    let inner = scene.get(ada, "/api/v1/workspaces/trip/nodes/plan.txt");
    assert_eq!(inner.0, 200, "{}", inner.1);
}

/// Whenever the program is killed, the same command goes on, and what anybody has is there.
#[test]
fn sharing_is_cut_off_at_any_moment_and_goes_on() {
    let scene = Scene::new();
    let Scene { ada, desktop, bob, .. } = &scene;
    for number in 0..40 {
        ada.write(&format!("trip/many/{number}"), format!("file {number}\n"));
    }
    ada.sync().ok();
    let before = ada.tree();
    let (mut killed, mut delay) = (0, Duration::from_millis(1));
    let mut has_forgotten = false;
    loop {
        let mut command = ada.command(&["share", "trip", "--with", "bob:edit"]);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(delay);
        if let Some(status) = child.try_wait().unwrap() {
            assert!(status.success(), "it goes on whenever it was killed, and not after {delay:?}");
            break;
        }
        child.kill().unwrap();
        child.wait().unwrap();
        killed += 1;
        delay += Duration::from_millis(15);
        assert!(delay < Duration::from_secs(30), "it never comes to its end");
        assert_eq!(ada.tree(), before, "killed after {delay:?}");
        // Once it is as if it had been killed between giving the folder its identity and noting that in the home.
        if !has_forgotten && is_begun(ada) && ada.has("trip/.syncline/root") {
            let identity = ada.read("trip/.syncline/root");
            let identity = String::from_utf8(identity).unwrap();
            // It may just have been killed there in truth.
            if let Some(memory) = seek(&ada.home, identity.trim()) {
                std::fs::remove_dir_all(memory).unwrap();
            }
            has_forgotten = true;
        }
        // Until it is done nobody else gets in; the other device goes on with whatever it meets.
        if killed % 4 == 0 {
            let name = format!("trip/of desktop {killed}");
            desktop.write(&name, "meanwhile\n");
            desktop.sync().ok();
            ada.sync().ok();
            assert_eq!(ada.read(&name), b"meanwhile\n");
            assert_eq!(desktop.tree(), ada.tree());
            return_before(&scene, &name);
        }
    }
    assert!(killed > 3 && has_forgotten, "it was too quick to be killed");
    ada.run(&["share", "trip", "--with", "bob:edit"]).ok();
    bob.run(&["clone", "ada/trip", "."]).ok();
    desktop.sync().ok();
    assert_eq!(ada.tree(), before);
    assert_eq!(desktop.tree(), before);
    assert_eq!(inside(bob, "."), inside(ada, "trip"));
}

/// Tells whether a device is about to share a folder.
fn is_begun(device: &Device) -> bool {
    let listed = tree(&device.home);
    listed.keys().any(|path| {
        let name = path.file_name().unwrap().to_string_lossy();
        name.starts_with("sharing-")
    })
}

/// Takes a file away again, by the device that had not made it.
fn return_before(scene: &Scene, name: &str) {
    std::fs::remove_file(scene.ada.folder.join(name)).unwrap();
    scene.ada.sync().ok();
    scene.desktop.sync().ok();
    assert!(!scene.desktop.has(name));
}

#[test]
fn a_watch_takes_the_folder_along_and_ends_with_it() {
    let scene = Scene::new();
    let Scene { ada, desktop, bob, .. } = &scene;
    let mut watches = [start_watch(ada), start_watch(desktop)];
    ada.run(&["share", "trip", "--with", "bob:edit"]).ok();
    bob.run(&["clone", "ada/trip", "."]).ok();
    bob.write("of bob.txt", "hello\n");
    bob.sync().ok();
    wait_until("a file of bob", || ada.has("trip/of bob.txt") && desktop.has("trip/of bob.txt"));
    ada.write("trip/of ada.txt", "hello\n");
    wait_until("a file of ada", || desktop.has("trip/of ada.txt"));
    bob.sync().ok();
    assert_eq!(bob.read("of ada.txt"), b"hello\n");
    // A move takes the watch along.
    std::fs::rename(ada.folder.join("trip"), ada.folder.join("other/trip")).unwrap();
    wait_until("a moved folder", || desktop.has("other/trip/plan.txt"));
    desktop.write("other/trip/after", "x");
    wait_until("a file after the move", || ada.has("other/trip/after"));
    desktop.write("diary.txt", "beside it\n");
    wait_until("a file beside it", || ada.read("diary.txt") == b"beside it\n");
    // Where the process that watches the folder comes to an end, another one takes its place.
    let watched = || {
        let run = ada.run(&["daemon", "status", "other/trip", "--json"]);
        (run.code == 0).then(|| run.json()["watch"]["pid"].as_i64().unwrap())
    };
    let first = watched().unwrap();
    kill_process(Pid::from_raw(first as i32).unwrap(), Signal::KILL).unwrap();
    wait_until("another watch", || watched().is_some_and(|pid| pid != first));
    ada.write("other/trip/after the kill", "x");
    wait_until("a file after the kill", || desktop.has("other/trip/after the kill"));
    // However the watch ends, that of the folder ends, too.
    assert_eq!(terminate(&mut watches[0], Signal::TERM), Some(143));
    watches[1].kill().unwrap();
    watches[1].wait().unwrap();
    for device in [ada, desktop] {
        wait_until("the end of all watches", || {
            let folder = device.folder.join("other/trip");
            let status = ["daemon", "status", folder.to_str().unwrap()];
            device.run(&status).code == 1
        });
        device.sync().ok();
    }
    assert_eq!(desktop.tree(), ada.tree());
}
