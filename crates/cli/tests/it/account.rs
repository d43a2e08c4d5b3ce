//! A person changes the own password.

use crate::support::{Device, PASSWORD, Server};

const PASSWD: [&str; 4] = ["account", "passwd", "--password-stdin", "--json"];

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
