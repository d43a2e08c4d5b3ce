//! Two people and one workspace.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::support::{Device, Run, Server, noise};

/// A server, the devices of `ada` and `bob`, and what `ada` has.
fn people(room: &Path) -> (Server, Device, Device) {
    let server = Server::start(room);
    let (ada, bob) = (Device::new(room, "ada"), Device::new(room, "bob"));
    server.login(&ada, "laptop");
    let data = server.data.to_str().unwrap();
    let add = ["user", "add", "bob", "--password-stdin", "--data", data];
    bob.run_with_input(&add, "bob's password").ok();
    let login = ["login", &server.url, "--user", "bob", "--password-stdin"];
    bob.run_with_input(&login, "bob's password").ok();
    ada.write("a.txt", "of ada\n");
    ada.write("folder/b.txt", "of ada, too\n");
    ada.run(&["init", "--workspace", "Photos"]).ok();
    ada.sync().ok();
    (server, ada, bob)
}

/// The summary of a run that goes on to end with an error.
fn summary(run: &Run) -> Value {
    let line = run.stdout.lines().find(|line| line.contains("\"summary\"")).unwrap();
    serde_json::from_str(line).unwrap()
}

#[test]
fn what_two_people_share_goes_both_ways_until_one_is_shut_out() {
    let room = tempfile::tempdir().unwrap();
    let (_server, ada, bob) = people(room.path());
    bob.run(&["clone", "ada/Photos", ".", "--json"]).ends_with(10);
    ada.run(&["share", "--with", "bob:edit"]).ok();
    bob.run(&["clone", "ada/Photos", "."]).ok();
    assert_eq!(bob.tree(), ada.tree());
    let large = noise(300_000);
    bob.write("of bob.txt", "small\n");
    bob.write("of bob", &large);
    bob.write("a.txt", "of both\n");
    bob.sync().ok();
    ada.sync().ok();
    assert_eq!(ada.read("of bob"), large);
    assert_eq!(ada.read("a.txt"), b"of both\n");
    ada.run(&["conflicts"]).ok();

    let shares = ada.run(&["share", "ls", "--json"]).ok().json();
    let expected = json!([{"user": "ada", "role": "owner"}, {"user": "bob", "role": "edit"}]);
    assert_eq!(shares["members"], expected);
    // What removes history is for the owner, and who is let in.
    assert_eq!(bob.run(&["cleanup", "--json"]).ends_with(4).json()["code"], "E0410");
    assert_eq!(
        bob.run(&["share", "--with", "ada:view", "--json"]).ends_with(4).json()["code"],
        "E0403"
    );
    bob.write("later.txt", "still\n");
    bob.sync().ok();

    ada.run(&["share", "rm", "bob", "--yes"]).ok();
    ada.write("secret.txt", "not for bob\n");
    ada.sync().ok();
    bob.write("a.txt", "alone\n");
    let before = bob.tree();
    assert_eq!(bob.sync().ends_with(10).json()["code"], "E0404");
    assert_eq!(bob.tree(), before);
    ada.sync().ok();
    assert_eq!(ada.read("a.txt"), b"of both\n");
    assert_eq!(ada.read("later.txt"), b"still\n");
}

#[test]
fn who_may_only_read_receives_everything_and_keeps_what_was_changed_here() {
    let room = tempfile::tempdir().unwrap();
    let (_server, ada, bob) = people(room.path());
    ada.run(&["share", "--with", "bob:view"]).ok();
    bob.run(&["clone", "ada/Photos", "."]).ok();
    bob.sync().ok();
    let large = noise(300_000);
    for round in 0..2 {
        let new = format!("new {round}.txt");
        ada.write(&new, "of ada\n");
        ada.sync().ok();
        bob.write("mine.txt", "of bob\n");
        bob.write("large", &large);
        bob.write("a.txt", "changed by bob\n");
        let _ = std::fs::remove_file(bob.folder.join("folder/b.txt"));
        let run = bob.sync().ends_with(4);
        let error = run.json();
        assert_eq!(error["code"], "E0410", "{error}");
        let kept = &summary(&run)["kept_back"];
        assert_eq!(*kept, json!(["a.txt", "folder/b.txt", "large", "mine.txt"]));
        assert_eq!((&summary(&run)["sent"], &summary(&run)["received"]), (&json!(0), &json!(1)));
        assert_eq!(bob.read("mine.txt"), b"of bob\n");
        assert_eq!(bob.read("a.txt"), b"changed by bob\n");
        assert_eq!(bob.read("large"), large);
        assert_eq!(bob.read(&new), b"of ada\n");
    }
    // What both have changed is kept beside, as ever.
    ada.write("a.txt", "changed by ada\n");
    ada.sync().ok();
    bob.sync().ends_with(4);
    assert_eq!(bob.read("a.txt"), b"changed by ada\n");
    let is_copy = |path: &&PathBuf| {
        std::fs::read(bob.folder.join(path)).ok().as_deref() == Some(b"changed by bob\n")
    };
    assert_eq!(bob.tree().keys().filter(is_copy).count(), 1, "{:?}", bob.tree());
    assert!(!ada.has("mine.txt") && !ada.has("large") && ada.has("folder/b.txt"));

    // Once it may be sent, it is.
    ada.run(&["share", "--with", "bob:edit"]).ok();
    assert!([0, 5].contains(&bob.sync().code));
    ada.sync();
    assert_eq!(ada.read("large"), large);
    assert!(ada.has("mine.txt") && !ada.has("folder/b.txt"));
    assert_eq!(ada.tree(), bob.tree());
}

#[test]
fn share_says_what_it_cannot_share_and_with_whom() {
    let room = tempfile::tempdir().unwrap();
    let (_server, ada, bob) = people(room.path());
    for (words, exit, code) in [
        (&["share", "--with", "nobody:view"][..], 1, "E0407"),
        (&["share", "--with", "bob:owner"], 2, "E0201"),
        (&["share", "--with", "bob"], 2, "E0201"),
        (&["share"], 2, "E0201"),
        (&["share", "ls", "folder"], 2, "E0201"),
        (&["share", "Nothing", "--with", "bob:view"], 10, "E0404"),
        (&["share", "rm", "bob", "--yes"], 1, "E0407"),
        (&["share", "rm", "ada", "--yes"], 4, "E0403"),
    ] {
        let words: Vec<_> = words.iter().copied().chain(["--json"]).collect();
        let run = ada.run(&words).ends_with(exit);
        if exit != 2 {
            assert_eq!(run.json()["code"], code, "{words:?}");
        }
    }
    let inside = ada.run(&["share", "ls", "folder"]).ends_with(2);
    assert!(inside.stderr.contains("workspace of its own"), "{}", inside.stderr);
    ada.run(&["share", "Photos", "--with", "bob:view", "--dry-run"]).ok();
    bob.run(&["clone", "ada/Photos", "."]).ends_with(10);
    // By name, from anywhere.
    ada.run(&["share", "Photos", "--with", "bob:view"]).ok();
    bob.run(&["clone", "ada/Photos", "."]).ok();
    ada.run(&["share", "rm", "bob"]).ends_with(2);
    bob.run(&["share", "rm", "bob", "ada/Photos", "--yes"]).ok();
    bob.sync().ends_with(10);
    assert!(bob.has("a.txt"));
}

#[test]
fn a_token_for_a_program_is_shown_once_and_does_what_it_is_for() {
    let room = tempfile::tempdir().unwrap();
    let (server, ada, _) = people(room.path());
    let add = ["token", "add", "rclone", "--scope", "read", "--expires", "30d"];
    let made = ada.run(&add).ok();
    let secret = made.stdout.trim();
    assert_eq!(secret.len(), 64, "{}", made.stdout);
    let listed = ada.run(&["token", "ls", "--json"]).ok();
    assert!(!listed.stdout.contains(secret));
    let listed = listed.json();
    assert_eq!(
        (&listed["tokens"][0]["name"], &listed["tokens"][0]["scope"]),
        (&json!("rclone"), &json!("read"))
    );
    ada.run(&["token", "add", "x", "--scope", "read", "--expires", "soon"]).ends_with(2);
    ada.run(&["token", "add", "x", "--scope", "all"]).ends_with(2);
    let elsewhere = ["token", "add", "x", "--scope", "read", "--workspace", "Nothing", "--json"];
    assert_eq!(ada.run(&elsewhere).ends_with(1).json()["code"], "E0407");
    ada.run(&["token", "rm", "rclone"]).ends_with(2);
    ada.run(&["token", "rm", "rclone", "--yes"]).ok();
    ada.run(&["token", "rm", "rclone", "--yes"]).ends_with(1);

    let data = server.data.to_str().unwrap();
    ada.run(&["user", "disable", "ada", "--data", data]).ok();
    assert_eq!(ada.sync().ends_with(4).json()["code"], "E0401");
    ada.run(&["user", "enable", "ada", "--data", data]).ok();
    ada.sync().ok();
}

/// Asks for an address as somebody without an account, and returns status and body.
fn fetch(url: &str) -> (u16, String) {
    let (host, path) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    let request = format!("GET /{path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
    (status, answer.split_once("\r\n\r\n").unwrap().1.to_owned())
}

#[test]
fn a_link_shows_people_without_an_account_one_file_until_it_is_taken_back() {
    let room = tempfile::tempdir().unwrap();
    let (server, ada, bob) = people(room.path());
    let made = ada.run(&["share", "folder/b.txt", "--link", "--max-downloads", "2"]).ok();
    let url = made.stdout.trim();
    assert!(url.starts_with(&format!("{}/s/", server.url)), "{url}");
    let (status, page) = fetch(url);
    assert!(status == 200 && page.contains("b.txt"), "{page}");
    assert_eq!(fetch(&format!("{url}/content")), (200, "of ada, too\n".to_owned()));
    let words = ["share", "--link", "--expires", "7d", "--password-stdin", "--json"];
    let made = ada.run_with_input(&words, "sesame").ok().json();
    assert_eq!((&made["path"], &made["has_password"]), (&json!(""), &json!(true)));
    assert!(made["expires"].is_string(), "{made}");
    let (status, page) = fetch(made["url"].as_str().unwrap());
    assert!(status == 200 && page.contains("<form") && !page.contains("a.txt"), "{page}");

    let listed = ada.run(&["share", "ls", "--json"]).ok();
    assert!(!listed.stdout.contains("/s/"), "{}", listed.stdout);
    // Those of one second come in the order of their ids, which are random.
    let links = listed.json()["links"].as_array().unwrap().clone();
    let to = |path: &str| links.iter().find(|link| link["path"] == path).unwrap();
    let line = |field: &str| to("folder/b.txt")[field].clone();
    assert_eq!((links.len(), &to("")["has_password"]), (2, &json!(true)));
    assert_eq!([line("downloads"), line("max_downloads")], [json!(1), json!(2)]);
    let shown = ada.run(&["share", "ls"]).ok().stdout;
    assert!(shown.contains("link to folder/b.txt by ada, 1 of 2 downloads"), "{shown}");
    let id = line("id");
    let id = &id.as_str().unwrap()[..10];
    ada.run(&["share", "rm", id]).ends_with(2);
    ada.run(&["share", "rm", id, "--dry-run"]).ok();
    assert_eq!(fetch(url).0, 200);
    let removed = ada.run(&["share", "rm", id, "--yes", "--json"]).ok().json();
    assert_eq!((&removed["is_revoked"], &removed["id"]), (&json!(true), &line("id")));
    assert_eq!(fetch(url).0, 404);

    // Who may only view makes none, and who may edit sees the own ones.
    ada.run(&["share", "--with", "bob:view"]).ok();
    let of_bob = ["share", "ada/Photos", "--link", "--json"];
    assert_eq!(bob.run(&of_bob).ends_with(4).json()["code"], "E0403");
    assert_eq!(bob.run(&["share", "ls", "ada/Photos", "--json"]).ok().json()["links"], json!([]));
    ada.run(&["share", "--with", "bob:edit"]).ok();
    let url = bob.run(&of_bob).ok().json()["url"].as_str().unwrap().to_owned();
    assert_eq!(fetch(&url).0, 200);
    let links = bob.run(&["share", "ls", "ada/Photos", "--json"]).ok().json()["links"].clone();
    assert_eq!(links.as_array().unwrap().len(), 1, "{links}");
    ada.run(&["share", "rm", "bob", "--yes"]).ok();
    assert_eq!(fetch(&url).0, 404);

    for words in [
        &["share", "--link", "--with", "bob:view"][..],
        &["share", "--expires", "7d"],
        &["share", "--link", "--max-downloads", "0"],
        &["share", "--link", "--expires", "never"],
    ] {
        ada.run(words).ends_with(2);
    }
    let new = ada.folder.join("not yet.txt");
    ada.write("not yet.txt", "x");
    let unknown = ada.run(&["share", new.to_str().unwrap(), "--link"]).ends_with(1);
    assert!(unknown.stderr.contains("syncline sync"), "{}", unknown.stderr);
}
