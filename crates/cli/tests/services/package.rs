//! The package for Debian: what is in it runs.

use std::path::Path;
use std::process::Command;

const VERSION: &str = env!("CARGO_PKG_VERSION");

fn output(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {said}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_package_has_a_program_that_runs_its_manual_and_its_service() {
    let room = tempfile::tempdir().unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_syncline"));
    let package = xtask::deb::pack(program, room.path(), "none").unwrap();
    let field = |name: &str| {
        output(Command::new("dpkg-deb").arg("--field").arg(&package).arg(name)).trim().to_owned()
    };
    assert_eq!((field("Package"), field("Version")), ("syncline".into(), VERSION.into()));
    assert!(field("Depends").contains("libc6"), "{}", field("Depends"));
    let contents = output(Command::new("dpkg-deb").arg("--contents").arg(&package));
    let is_roots = |line: &str| line.contains("root/root");
    assert!(contents.lines().all(is_roots), "{contents}");
    let unpacked = room.path().join("unpacked");
    output(Command::new("dpkg-deb").arg("--raw-extract").arg(&package).arg(&unpacked));
    let version = output(Command::new(unpacked.join("usr/bin/syncline")).arg("version"));
    assert!(version.contains(VERSION), "{version}");
    for file in [
        "usr/share/man/man1/syncline.1.gz",
        "usr/share/man/man1/syncline-serve.1.gz",
        "usr/share/bash-completion/completions/syncline",
        "lib/systemd/system/syncline.service",
        "etc/syncline/server.env",
    ] {
        assert!(unpacked.join(file).exists(), "{file}\n{contents}");
    }
    for script in ["postinst", "prerm", "postrm"] {
        output(Command::new("sh").arg("-n").arg(unpacked.join("DEBIAN").join(script)));
    }
}
