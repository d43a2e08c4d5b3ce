//! A package for Debian and its relatives: the program, its manual, and what runs it as a server.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::arguments::Arguments;
use crate::failure::{Context, Result, fail};
use crate::{demo, process, repository_root};

const USAGE: &str = "\
usage: cargo xtask deb [--profile NAME] [--out DIR]

  Builds the program (profile dist, unless another is named) and packs it.";

/// Where shells look for completions, by shell.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "usr/share/bash-completion/completions/syncline"),
    ("fish", "usr/share/fish/vendor_completions.d/syncline.fish"),
    ("zsh", "usr/share/zsh/vendor-completions/_syncline"),
];

/// What lies in the repository, where the package puts it, and with which permissions.
const FILES: [(&str, &str, u32); 9] = [
    ("packaging/syncline.service", "lib/systemd/system/syncline.service", 0o644),
    ("packaging/server.env", "etc/syncline/server.env", 0o640),
    ("packaging/grafana-dashboard.json", "usr/share/syncline/grafana-dashboard.json", 0o644),
    ("LICENSE", "usr/share/doc/syncline/copyright", 0o644),
    ("CHANGELOG.md", "usr/share/doc/syncline/changelog", 0o644),
    ("docs/guide/server.md", "usr/share/doc/syncline/server.md", 0o644),
    ("packaging/debian/postinst", "DEBIAN/postinst", 0o755),
    ("packaging/debian/prerm", "DEBIAN/prerm", 0o755),
    ("packaging/debian/postrm", "DEBIAN/postrm", 0o755),
];

/// Builds the program and packs it.
pub fn run(mut arguments: Arguments) -> Result<()> {
    if arguments.flag("--help") {
        println!("{USAGE}");
        return arguments.finish();
    }
    let profile = arguments.value("--profile")?.unwrap_or_else(|| "dist".to_owned());
    let out = arguments.value("--out")?.map(PathBuf::from);
    arguments.finish()?;
    let program = demo::program(&profile)?;
    let out = out.unwrap_or_else(|| repository_root().join("target").join("deb"));
    println!("{}", pack(&program, &out, "xz")?.display());
    Ok(())
}

/// Packs a program that was built, and returns the package. `compression` is one that `dpkg-deb` knows.
pub fn pack(program: &Path, out: &Path, compression: &str) -> Result<PathBuf> {
    fs::create_dir_all(out).context(out.display())?;
    let room = out.join("contents");
    if room.exists() {
        fs::remove_dir_all(&room).context(room.display())?;
    }
    place(&room, program, "usr/bin/syncline", 0o755)?;
    for (from, to, mode) in FILES {
        place(&room, &repository_root().join(from), to, mode)?;
    }
    for (shell, to) in COMPLETIONS {
        let text = process::output(Command::new(program).args(["completion", shell]))?;
        write(&room, to, text.as_bytes())?;
    }
    let manual = room.join("usr/share/man/man1");
    process::output(Command::new(program).args(["man", "--out"]).arg(&manual))?;
    for page in fs::read_dir(&manual).context(manual.display())? {
        process::output(Command::new("gzip").args(["-9n"]).arg(page?.path()))?;
    }
    write(&room, "DEBIAN/conffiles", b"/etc/syncline/server.env\n")?;
    let architecture = process::output(Command::new("dpkg").arg("--print-architecture"))?;
    let (version, architecture) = (env!("CARGO_PKG_VERSION"), architecture.trim());
    let control = control(version, architecture, &libraries(out, program)?);
    write(&room, "DEBIAN/control", control.as_bytes())?;
    let package = out.join(format!("syncline_{version}_{architecture}.deb"));
    let mut building = Command::new("dpkg-deb");
    building.args(["--root-owner-group", &format!("-Z{compression}"), "--build"]);
    process::output(building.arg(&room).arg(&package))?;
    Ok(package)
}

fn place(room: &Path, from: &Path, to: &str, mode: u32) -> Result<()> {
    write(room, to, &fs::read(from).context(from.display())?)?;
    let to = room.join(to);
    fs::set_permissions(&to, fs::Permissions::from_mode(mode)).context(to.display())
}

fn write(room: &Path, to: &str, bytes: &[u8]) -> Result<()> {
    let to = room.join(to);
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder).context(folder.display())?;
    }
    fs::write(&to, bytes).context(to.display())
}

/// Asks which packages have the libraries that the program is linked to.
fn libraries(out: &Path, program: &Path) -> Result<String> {
    // The tool works only where sources of a package lie.
    write(out, "debian/control", b"Source: syncline\n\nPackage: syncline\nArchitecture: any\n")?;
    let mut asking = Command::new("dpkg-shlibdeps");
    asking.current_dir(out).arg("-O").arg(program);
    let said = process::output(&mut asking)?;
    match said.trim().strip_prefix("shlibs:Depends=") {
        Some(libraries) => Ok(libraries.to_owned()),
        None => fail(format!("dpkg-shlibdeps says '{}'", said.trim())),
    }
}

fn control(version: &str, architecture: &str, libraries: &str) -> String {
    format!(
        "Package: syncline\n\
         Version: {version}\n\
         Architecture: {architecture}\n\
         Maintainer: The Syncline authors <authors@syncline.invalid>\n\
         Depends: {libraries}, adduser, ca-certificates\n\
         Section: net\n\
         Priority: optional\n\
         Description: personal cloud: folders synchronised, stored and shared\n \
         Keeps people's folders equal on all their devices, over a server of theirs\n \
         or over several clouds that need not be trusted. This package has the\n \
         program, which is client, daemon and server, and a service that runs it\n \
         as a server; that is not started before somebody asks for it.\n"
    )
}
