//! Samba: one share, and a list of passwords that belongs to this server alone.

use std::io::Write;
use std::process::{Command, Stdio};

use super::Service;
use super::place::{Place, free_port, user, version};
use crate::failure::{Result, fail};

const PASSWORD: &str = "a-password-for-loopback-only";

pub(super) fn start(place: &Place) -> Result<Service> {
    let port = free_port()?;
    let user = user()?;
    let share = place.make_folder("share", "root")?;
    let mut folders = String::new();
    for option in ["private dir", "lock directory", "state directory", "cache directory"] {
        let path = place.make_folder(&option.replace(' ', "-"), "root")?;
        folders += &format!("{option} = {path}\n");
    }
    let run = place.make_folder("run", "root")?;
    let rpc = place.make_folder("rpc", "root")?;
    let configuration = place.write(
        "smb.conf",
        &format!(
            "[global]\n\
             interfaces = 127.0.0.1/8\nbind interfaces only = yes\nsmb ports = {port}\n\
             disable netbios = yes\nserver role = standalone server\nmap to guest = never\n\
             passdb backend = tdbsam\nload printers = no\nprinting = bsd\n\
             disable spoolss = yes\nlog level = 1\nlogging = file\nlog file = {run}/smbd.log\n\
             pid directory = {run}\nncalrpc dir = {rpc}\n{folders}\
             [cloud]\npath = {share}\nread only = no\n"
        ),
    )?;
    set_password(&configuration, &user)?;
    let mut command = Command::new("/usr/sbin/smbd");
    command.args(["--foreground", "--no-process-group", "--debug-stdout", "--configfile"]);
    command.arg(&configuration);
    let process = place.serve("smbd", &command, port)?;
    Ok(Service {
        name: "samba".to_owned(),
        version: version("/usr/sbin/smbd", "--version"),
        url: format!("smb://127.0.0.1:{port}/cloud/store"),
        credentials: vec![("user".to_owned(), user), ("password".to_owned(), PASSWORD.to_owned())],
        processes: vec![process],
    })
}

fn set_password(configuration: &str, user: &str) -> Result<()> {
    let mut command = Command::new("smbpasswd");
    command.args(["-c", configuration, "-s", "-a", user]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        write!(stdin, "{PASSWORD}\n{PASSWORD}\n")?;
    }
    let output = child.wait_with_output()?;
    if output.status.success() {
        return Ok(());
    }
    fail(format!("smbpasswd: {}", String::from_utf8_lossy(&output.stderr).trim()))
}
