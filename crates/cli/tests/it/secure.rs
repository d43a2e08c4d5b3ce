//! A server behind TLS, whose certificate the system of the device trusts.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::support::{Device, Run, terminate};

const PASSWORD: &str = "correct horse";

/// Certificates of the server's own tests.
fn certificate(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../server/tests/it/tls").join(name)
}

/// Runs a command where the system trusts one certificate.
fn run(device: &Device, trusted: &str, words: &[&str]) -> Run {
    let mut command = device.command(words);
    Run::of(command.env("SSL_CERT_FILE", certificate(trusted)).output().unwrap())
}

#[test]
fn devices_reach_a_server_over_tls_and_tell_a_stranger_nothing() {
    let room = tempfile::tempdir().unwrap();
    let (operator, one, other) = (
        Device::new(room.path(), "operator"),
        Device::new(room.path(), "one"),
        Device::new(room.path(), "other"),
    );
    let password = room.path().join("password");
    std::fs::write(&password, PASSWORD).unwrap();
    let data = room.path().join("server");
    let data = data.to_str().unwrap();
    operator
        .run_with_input(&["user", "add", "ada", "--password-stdin", "--data", data], PASSWORD)
        .ok();
    let (certificate, key) = (certificate("one.pem"), certificate("one.key.pem"));
    let mut server = operator.command(&["serve", "--listen", "127.0.0.1:0", "--data", data]);
    server.arg("--tls-cert").arg(&certificate).arg("--tls-key").arg(&key);
    let mut server = server.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let url = line.trim().strip_prefix("listening on ").unwrap().to_owned();
    assert!(url.starts_with("https://127.0.0.1:"), "{url}");

    let login = |device: &Device, trusted: &str, url: &str| {
        let words = ["login", url, "--user", "ada", "--password-stdin"];
        let mut command = device.command(&words);
        command.env("SSL_CERT_FILE", crate::secure::certificate(trusted));
        command.stdin(std::fs::File::open(&password).unwrap());
        Run::of(command.output().unwrap())
    };
    let stranger = login(&one, "two.pem", &url).ends_with(6);
    assert!(stranger.stderr.contains("certificate"), "{}", stranger.stderr);
    login(&one, "one.pem", &url.replace("https:", "http:")).ends_with(6);
    // By name and by number.
    login(&one, "one.pem", &url.replace("127.0.0.1", "localhost")).ok();
    login(&other, "one.pem", &url).ok();
    one.write("a.txt", "over tls\n");
    one.write("large.bin", crate::support::noise(3 << 20));
    run(&one, "one.pem", &["init", "--workspace", "Notes", "--plain"]).ok();
    run(&one, "one.pem", &["sync"]).ok();
    run(&other, "one.pem", &["clone", "Notes", other.folder.to_str().unwrap()]).ok();
    assert_eq!(one.tree(), other.tree());
    other.write("a.txt", "and back\n");
    run(&other, "one.pem", &["sync"]).ok();
    let stranger = run(&one, "two.pem", &["sync"]).ends_with(6);
    assert!(stranger.stderr.contains("certificate"), "{}", stranger.stderr);
    run(&one, "one.pem", &["sync"]).ok();
    assert_eq!(one.read("a.txt"), b"and back\n");
    terminate(&mut server, rustix::process::Signal::TERM);
}
