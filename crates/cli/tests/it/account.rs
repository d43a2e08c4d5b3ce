//! A person changes the own password.

use serde_json::json;

use crate::support::{Device, PASSWORD, Server};

const PASSWD: [&str; 4] = ["account", "passwd", "--password-stdin", "--json"];

#[test]
fn who_signs_in_by_a_provider_hears_where_there_is_none() {
    let room = tempfile::tempdir().unwrap();
    let server = Server::start(room.path());
    let device = Device::new(room.path(), "one");
    let none = device.run(&["login", &server.url, "--oidc", "--json"]).ends_with(1).json();
    assert_eq!(none["code"], "E0407");
    device.run(&["account", "oidc", "ls"]).ends_with(4);
    server.login(&device, "one");
    assert_eq!(device.run(&["account", "oidc", "ls", "--json"]).ok().json()["subjects"], json!([]));
    let data = server.data.to_str().unwrap();
    let user = |words: &[&str]| {
        let operator = Device::new(room.path(), "operator");
        operator.run(&[&["user", "oidc"], words, &["--data", data, "--json"]].concat())
    };
    let issuer = ["--issuer", "https://id.example.org"];
    for (word, done) in [("link", "signs in"), ("unlink", "no more"), ("unlink", "was not bound")] {
        let run = user(&[&[word, "ada", "1"][..], &issuer].concat()).ok().json();
        assert!(run["done"].as_str().unwrap().contains(done), "{run}");
    }
    user(&[&["link", "eve", "1"][..], &issuer].concat()).ends_with(1);
    user(&["link", "ada", "1", "--issuer", ""]).ends_with(2);
    user(&[&["link", "ada", "a/1"][..], &issuer].concat()).ok();
    let listed = user(&["ls", "ada"]).ok().json();
    assert_eq!(listed["subjects"][0]["subject"], "a/1");
    let own = device.run(&["account", "oidc", "ls", "--json"]).ok().json();
    assert_eq!(own, listed);
    device.run(&["account", "oidc", "unlink", "a/1"]).ok();
    device.run(&["account", "oidc", "unlink", "a/1"]).ends_with(1);
}

#[test]
fn a_password_is_changed_by_who_knows_it_and_signs_out_others_where_that_is_wanted() {
    let room = tempfile::tempdir().unwrap();
    let server = Server::start(room.path());
    let (one, other) = (Device::new(room.path(), "one"), Device::new(room.path(), "other"));
    one.run_with_input(&PASSWD, PASSWORD).ends_with(4);
    server.login(&one, "one");
    server.login(&other, "other");
    one.write("new", "a new password\n");
    let from_file = [&PASSWD[..], &["--new-password-file", "new"]].concat();
    let nobody = one.run_with_input(&PASSWD, PASSWORD).ends_with(2).json();
    assert_eq!(nobody["help"][0], "--new-password-file FILE");
    let wrong = one.run_with_input(&from_file, "wrong").ends_with(4).json();
    assert_eq!(wrong["code"], "E0402");
    let changed = one.run_with_input(&from_file, PASSWORD).ok().json();
    assert_eq!((changed["user"].as_str(), changed["signed_out"].as_u64()), (Some("ada"), Some(0)));
    other.run(&["whoami"]).ok();
    let login = ["login", &server.url, "--user", "ada", "--password-stdin"];
    Device::new(room.path(), "third").run_with_input(&login, PASSWORD).ends_with(4);

    one.write("new", "the newest\n");
    let alone = [&from_file[..], &["--sign-out-others"]].concat();
    let changed = one.run_with_input(&alone, "a new password").ok().json();
    assert_eq!(changed["signed_out"], 1);
    one.run(&["whoami"]).ok();
    other.run(&["whoami"]).ends_with(4);
    other.run_with_input(&login, "the newest").ok();
    other.run(&["whoami"]).ok();
}

#[derive(Debug)]
struct Zeros;

impl model::Random for Zeros {
    fn fill(&self, bytes: &mut [u8]) {
        bytes.fill(0);
    }
}

#[test]
fn a_password_that_a_server_kept_before_is_sent_where_that_is_said_and_once() {
    let room = tempfile::tempdir().unwrap();
    let server = Server::start(room.path());
    let database = rusqlite::Connection::open(server.data.join("metadata.sqlite")).unwrap();
    let hash = server::auth::hash_password("an old one", &Zeros).unwrap();
    database.execute("UPDATE accounts SET password_hash = ?1 WHERE name = 'ada'", [hash]).unwrap();
    let device = Device::new(room.path(), "one");
    let proved = ["login", &server.url, "--user", "ada", "--password-stdin", "--json"];
    let sent = [&proved[..], &["--send-password"]].concat();

    let refused = device.run_with_input(&proved, "an old one").ends_with(1).json();
    assert_eq!(
        (&refused["code"], &refused["help"][0]),
        (&json!("E0408"), &json!("--send-password"))
    );
    device.run_with_input(&sent, "another").ends_with(4);
    device.run_with_input(&sent, "an old one").ok();
    device.run(&["logout"]).ok();
    device.run_with_input(&proved, "an old one").ok();
    device.run(&["whoami"]).ok();
}
