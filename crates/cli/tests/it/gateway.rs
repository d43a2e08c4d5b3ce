//! `gateway webdav`: a sealed workspace for programs that speak WebDAV, and what must not happen to files meanwhile.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::Duration;

use reqwest::{Client, StatusCode};
use rustix::process::Signal;
use serde_json::Value;
use tokio::runtime::Runtime;

use crate::background::{start_watch, wait_until};
use crate::sealed_on_server::{CONTENT, NAME, has, pair, stored_by};
use crate::support::{Device, noise, terminate};

#[path = "../../../server/tests/it/dav/stories.rs"]
mod stories;

use stories::Door;

/// A gateway that runs; it is killed when this value goes.
struct Gateway {
    child: Child,
    url: String,
    password: String,
    runtime: Runtime,
}

impl Gateway {
    fn start(device: &Device) -> Self {
        Self::start_with(device, &[])
    }

    fn start_with(device: &Device, flags: &[&str]) -> Self {
        let mut words = vec!["gateway", "webdav", "--listen", "127.0.0.1:0", "--json"];
        words.extend(flags);
        let mut command = device.command(&words);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let line: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        assert_eq!(
            (&line["schema"], &line["type"]),
            (&"syncline.gateway/1".into(), &"listening".into())
        );
        std::thread::spawn(move || lines.for_each(drop));
        let file = PathBuf::from(line["password_file"].as_str().unwrap());
        let password = fs::read_to_string(&file).unwrap().trim().to_owned();
        let url = line["url"].as_str().unwrap().to_owned();
        // Needed by the client library even where no TLS is spoken; somebody else may have been first.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        Self { child, url, password, runtime }
    }

    fn door(&self) -> Door {
        Door {
            client: Client::builder().no_proxy().build().unwrap(),
            root: self.url.clone(),
            user: "syncline".to_owned(),
            password: self.password.clone(),
        }
    }

    /// Asks for something and returns status, version and body.
    fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        self.runtime.block_on(async {
            let response = self.door().ask(method, path, headers, body).await;
            let etag = response.headers().get("etag");
            let etag = etag.map(|etag| etag.to_str().unwrap().to_owned()).unwrap_or_default();
            let status = response.status().as_u16();
            Answer { status, etag, body: response.bytes().await.unwrap_or_default().to_vec() }
        })
    }

    #[track_caller]
    fn put(&self, path: &str, body: &[u8]) {
        let status = self.ask("PUT", path, &[], body).status;
        assert!([201, 204].contains(&status), "{path}: {status}");
    }

    fn get(&self, path: &str) -> Vec<u8> {
        self.ask("GET", path, &[], b"").body
    }
}

struct Answer {
    status: u16,
    etag: String,
    body: Vec<u8>,
}

impl Answer {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What the trash of a folder holds of what came by the gateway.
fn trash(device: &Device) -> PathBuf {
    device.folder.join(".syncline/trash/gateway")
}

#[test]
fn door_over_a_folder_tells_the_stories_of_the_server() {
    let (_room, one, _) = pair(|_| {});
    let gateway = Gateway::start(&one);
    gateway.runtime.block_on(async {
        let story = async |name: &str| {
            let door = gateway.door();
            assert_eq!(door.status("MKCOL", name, &[], b"").await, 201);
            Door { root: format!("{}/{name}", door.root), ..door }
        };
        stories::files_go_in_and_out(&story("files").await, &noise(3 << 20)).await;
        stories::who_was_first_wins(&story("first").await).await;
        let door = story("properties").await;
        stories::properties_are_found_named_and_missing_and_only_times_are_set(&door).await;
        stories::move_and_copy_heed_overwrite(&story("moves").await).await;
        stories::lock_keeps_out_who_does_not_name_it(&story("locks").await).await;
    });
}

#[test]
fn files_go_both_ways_and_the_server_reads_none_of_them() {
    let (mut room, one, other) = pair(|device| device.write("old", "from before"));
    let gateway = Gateway::start(&one);
    let mut watch = start_watch(&other);
    assert_eq!(gateway.get("old"), b"from before");
    let big = noise(1_234_567);
    assert_eq!(gateway.ask("MKCOL", "folder", &[], b"").status, 201);
    gateway.put(&format!("folder/{NAME}"), CONTENT.as_bytes());
    gateway.put("folder/big", &big);
    wait_until("the files at the other device", || {
        other.has(&format!("folder/{NAME}")) && other.has("folder/big")
    });
    assert_eq!(other.read(&format!("folder/{NAME}")), CONTENT.as_bytes());
    assert!(other.read("folder/big") == big);
    other.write("back.txt", "to the gateway");
    wait_until("a file from the other device", || gateway.get("back.txt") == b"to the gateway");
    assert_eq!(gateway.ask("MOVE", "folder", &[("destination", "/renamed")], b"").status, 201);
    wait_until("a renamed folder", || other.has("renamed/big") && !other.has("folder"));
    assert_eq!(gateway.ask("DELETE", "old", &[], b"").status, 204);
    wait_until("a deletion", || !other.has("old"));
    assert_eq!(terminate(&mut watch, Signal::TERM), Some(143));
    drop(gateway);
    room.server.stop();
    for (place, bytes) in &stored_by(&room.server.data) {
        for canary in [NAME, CONTENT] {
            let is_told = has(bytes, canary.as_bytes()) || has(place.as_bytes(), canary.as_bytes());
            assert!(!is_told, "'{canary}' is in {place}");
        }
    }
}

#[test]
fn what_was_answered_survives_a_kill_at_that_moment_and_reaches_others() {
    let (_room, one, other) = pair(|device| device.write("file", "before"));
    for round in 0..3 {
        let mut gateway = Gateway::start(&one);
        let body = noise(100_000 + round);
        gateway.put("file", &body);
        gateway.put(&format!("new-{round}"), &body);
        gateway.child.kill().unwrap();
        gateway.child.wait().unwrap();
        assert!(one.read("file") == body && one.read(&format!("new-{round}")) == body);
        one.sync().ok();
        other.sync().ok();
        assert!(other.read("file") == body && other.read(&format!("new-{round}")) == body);
    }
    assert_eq!(one.tree(), other.tree());
}

#[test]
fn a_body_that_breaks_off_leaves_nothing_under_its_name() {
    let (_room, one, _) = pair(|device| device.write("file", "before"));
    let mut gateway = Gateway::start(&one);
    let address = gateway.url.strip_prefix("http://").unwrap();
    let authorization = {
        use base64::Engine;
        let pair = format!("syncline:{}", gateway.password);
        base64::engine::general_purpose::STANDARD.encode(pair)
    };
    let head = format!(
        "PUT /file HTTP/1.1\r\nHost: {address}\r\nAuthorization: Basic {authorization}\r\nContent-Length: 4000000\r\n\r\n"
    );
    // One sender goes away in the middle, and beside the other the gateway is killed.
    for kills in [false, true] {
        use std::io::Write;
        let mut stream = std::net::TcpStream::connect(address).unwrap();
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(&noise(2_000_000)).unwrap();
        if kills {
            gateway.child.kill().unwrap();
            gateway.child.wait().unwrap();
        }
        drop(stream);
        assert_eq!(one.read("file"), b"before");
    }
    one.sync().ok();
    assert_eq!(one.read("file"), b"before");
    let left = fs::read_dir(one.folder.join(".syncline/tmp")).map_or(0, Iterator::count);
    assert_eq!(left, 0, "nothing is left aside");
}

#[test]
fn edits_on_both_sides_are_both_kept() {
    let (mut room, one, other) = pair(|device| device.write("file", "before"));
    let gateway = Gateway::start(&one);
    let etag = gateway.ask("HEAD", "file", &[], b"").etag;
    // Away from the server both are edited; the door goes on.
    room.server.stop();
    gateway.put("file", b"by the gateway");
    assert_eq!(gateway.get("file"), b"by the gateway");
    other.write("file", "by the other");
    other.sync().ends_with(6);
    drop(gateway);
    room.restart();
    other.sync().ok();
    one.sync().ends_with(5);
    other.sync().ends_with(5);
    assert_eq!(one.tree(), other.tree());
    let listed = one.run(&["conflicts", "--json"]).ends_with(5).json();
    let copy = listed["conflicts"][0]["copy"].as_str().unwrap();
    let mut both = [one.read("file"), one.read(copy)];
    both.sort();
    assert_eq!(both, [b"by the gateway".to_vec(), b"by the other".to_vec()]);
    // Who rests on the version from before is told.
    let gateway = Gateway::start(&one);
    assert_eq!(gateway.ask("PUT", "file", &[("if-match", &etag)], b"late").status, 412);
    let etag = gateway.ask("HEAD", "file", &[], b"").etag;
    one.write("file", "by a program beside the gateway");
    assert_eq!(gateway.ask("PUT", "file", &[("if-match", &etag)], b"late").status, 412);
    assert_eq!(one.read("file"), b"by a program beside the gateway");
}

#[test]
fn what_is_displaced_and_not_in_the_history_goes_to_the_trash() {
    let (mut room, one, _) = pair(|device| {
        device.write("synced", "in the history");
        device.write("folder/deleted", "by the gateway");
    });
    // What is read as soon as it is written is in the history for certain only after another look, once a change would show.
    let written = fs::metadata(one.folder.join("synced")).unwrap().modified().unwrap();
    wait_until("a change that would show", || {
        written.elapsed().is_ok_and(|age| age > Duration::from_millis(500))
    });
    one.sync().ok();
    // Nothing is sent meanwhile.
    room.server.stop();
    let gateway = Gateway::start(&one);
    gateway.put("synced", b"new");
    gateway.put("synced", b"newer");
    assert!(!trash(&one).join("synced").exists(), "the history has it, or it was put here");
    one.write("local", "only here");
    gateway.put("local", b"over it");
    assert_eq!(fs::read(trash(&one).join("local")).unwrap(), b"only here");
    one.write("folder/ignored.swp", "of an editor");
    assert_eq!(gateway.ask("DELETE", "folder", &[], b"").status, 204);
    assert!(!one.has("folder"));
    assert_eq!(fs::read(trash(&one).join("folder/deleted")).unwrap(), b"by the gateway");
    assert_eq!(fs::read(trash(&one).join("folder/ignored.swp")).unwrap(), b"of an editor");
    gateway.put("draft", b"saved");
    assert_eq!(gateway.ask("MOVE", "draft", &[("destination", "/local")], b"").status, 204);
    assert_eq!(one.read("local"), b"saved");
    assert_eq!(fs::read(trash(&one).join("local.~1~")).unwrap(), b"over it");
}

#[test]
fn what_is_not_synced_is_not_shown_and_nothing_leads_out_of_the_folder() {
    let (room, one, _) = pair(|device| {
        device.write(".synclineignore", "*.log\n!kept.swp\n");
        device.write("folder/.synclineignore", "secret/\n");
        device.write("folder/file", "x");
    });
    one.write("folder/secret/file", "x");
    one.write("a.log", "x");
    let outside = room.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("file"), "not yours").unwrap();
    symlink(&outside, one.folder.join("way-out")).unwrap();
    symlink(outside.join("file"), one.folder.join("link")).unwrap();
    let gateway = Gateway::start(&one);
    let list = gateway.ask("PROPFIND", "", &[("depth", "1")], b"").text();
    assert!(list.contains("<D:href>/folder/</D:href>"), "{list}");
    for name in ["way-out", "link", "a.log", ".syncline/", ".syncline<"] {
        assert!(!list.contains(name), "{name} in {list}");
    }
    for path in ["way-out/file", "link", "a.log", "folder/secret/file"] {
        assert!([404, 409].contains(&gateway.ask("GET", path, &[], b"").status), "{path}");
    }
    for (path, status) in [
        ("way-out/new", 409),
        ("way-out", 409),
        ("link", 409),
        ("b.log", 403),
        ("folder/secret/new", 409),
        ("x.swp", 403),
        (".syncline-parked-x", 403),
        (".syncline/root", 400),
        ("kept.swp", 201),
    ] {
        let answer = gateway.ask("PUT", path, &[], b"mine");
        assert_eq!(answer.status, status, "{path}: {}", answer.text());
    }
    let refused = gateway.ask("PUT", "b.log", &[], b"mine").text();
    assert!(refused.contains("not synced") && refused.contains("forbidden"), "{refused}");
    assert_eq!(gateway.ask("MKCOL", "lost+found", &[], b"").status, 403);
    assert_eq!(gateway.ask("MOVE", "kept.swp", &[("destination", "/c.log")], b"").status, 403);
    for (method, to) in [("COPY", "/way-out/new"), ("MOVE", "/way-out/new")] {
        let status = gateway.ask(method, "folder/file", &[("destination", to)], b"").status;
        assert_eq!(status, 409, "{method}");
    }
    assert_eq!(gateway.ask("DELETE", "way-out", &[], b"").status, 204, "the link alone");
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
    assert_eq!(fs::read(outside.join("file")).unwrap(), b"not yours");
    // New rules hold at once.
    one.write(".synclineignore", "");
    gateway.put("b.log", b"mine");
}

#[test]
fn nobody_comes_in_without_the_password_or_by_a_name_that_leads_here() {
    let (_room, one, _) = pair(|device| device.write("file", "x"));
    let gateway = Gateway::start_with(&one, &["--host", "nas.home"]);
    let file = one.memory().join("gateway-password");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let door = gateway.door();
    gateway.runtime.block_on(async {
        for (user, password, status) in [
            ("syncline", gateway.password.as_str(), 200),
            ("syncline", "wrong", 401),
            ("other", gateway.password.as_str(), 401),
            ("syncline", "", 401),
        ] {
            let response = door.ask_as((user, password), "GET", "file", &[], b"").await;
            assert_eq!(response.status().as_u16(), status, "{user} {password}");
        }
        let asked = door.client.get(door.to("file")).send().await.unwrap();
        assert_eq!(asked.status(), StatusCode::UNAUTHORIZED);
        assert!(asked.headers()["www-authenticate"].to_str().unwrap().starts_with("Basic"));
        for (host, status) in [
            ("evil.example", 403),
            ("localhost.evil.example", 403),
            ("nas.home:1", 200),
            ("[::1]:5", 200),
        ] {
            assert_eq!(door.status("GET", "file", &[("host", host)], b"").await, status, "{host}");
            let options = door.client.request(reqwest::Method::OPTIONS, door.to(""));
            let options = options.header("host", host).send().await.unwrap();
            assert_eq!(options.status().as_u16(), status, "{host}");
        }
    });
    drop(gateway);
    let run = |words: &[&str]| one.run(&[&["gateway", "webdav", "--listen"], words].concat());
    let refused = run(&["0.0.0.0:0"]).ends_with(2);
    assert!(refused.stderr.contains("--no-tls"), "{}", refused.stderr);
    let short = one.home.join("short");
    fs::write(&short, "short\n").unwrap();
    run(&["127.0.0.1:0", "--password-file", short.to_str().unwrap()]).ends_with(2);
}

#[test]
fn read_only_gateway_changes_nothing() {
    let (_room, one, _) = pair(|device| device.write("file", "x"));
    let gateway = Gateway::start_with(&one, &["--read-only"]);
    let before = one.tree();
    assert_eq!(gateway.get("file"), b"x");
    let to = [("destination", "/other")];
    for (method, path, headers) in [
        ("PUT", "file", &[][..]),
        ("PUT", "new", &[]),
        ("MKCOL", "new", &[]),
        ("DELETE", "file", &[]),
        ("MOVE", "file", &to),
        ("COPY", "file", &to),
    ] {
        assert_eq!(gateway.ask(method, path, headers, b"").status, 403, "{method}");
    }
    assert_eq!(one.tree(), before);
}

#[test]
fn gateway_stands_beside_a_watch_and_takes_over_when_that_ends() {
    let (_room, one, other) = pair(|device| device.write("file", "x"));
    let mut watch = start_watch(&one);
    let mut gateway = Gateway::start(&one);
    gateway.put("first", b"sent by the watch");
    wait_until("the watch sends it", || {
        other.sync().ok();
        other.has("first")
    });
    assert_eq!(terminate(&mut watch, Signal::TERM), Some(143));
    gateway.put("second", b"sent by the gateway");
    wait_until("the gateway sends it", || {
        other.sync().ok();
        other.has("second")
    });
    // Other commands ask it to step aside, as they ask a watch.
    one.run(&["restore", "file", "--at", "v1", "--overwrite"]).ok();
    gateway.put("third", b"after that");
    assert_eq!(terminate(&mut gateway.child, Signal::TERM), Some(143));
    one.sync().ok();
    other.sync().ok();
    assert_eq!(one.tree(), other.tree());
}
