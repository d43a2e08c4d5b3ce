//! OpenSSH: keys of its own, the subsystem `sftp`, the user who runs this.

use std::fs;
use std::process::Command;

use super::Service;
use super::place::{Place, free_port, user, version};
use crate::failure::Result;
use crate::process;

pub(super) fn start(place: &Place) -> Result<Service> {
    let (host_key, user_key) = (place.path("host_key"), place.path("user_key"));
    for key in [&host_key, &user_key] {
        let words = ["-q", "-t", "ed25519", "-N", "", "-f", key];
        process::output(Command::new("ssh-keygen").args(words))?;
    }
    let user_key_public = fs::read_to_string(format!("{user_key}.pub"))?;
    let authorized = place.write("authorized_keys", &user_key_public)?;
    let port = free_port()?;
    let pid = place.path("sshd.pid");
    let configuration = place.write(
        "sshd_config",
        &format!(
            "ListenAddress 127.0.0.1:{port}\n\
             HostKey {host_key}\n\
             PidFile {pid}\n\
             AuthorizedKeysFile {authorized}\n\
             PermitRootLogin prohibit-password\n\
             PasswordAuthentication no\n\
             KbdInteractiveAuthentication no\n\
             UsePAM no\n\
             StrictModes no\n\
             MaxStartups 100\n\
             Subsystem sftp internal-sftp\n"
        ),
    )?;
    // The privilege separation of the server wants this folder; the package's own start script makes it.
    let _exists_or_not_ours = fs::create_dir_all("/run/sshd");
    let mut command = Command::new("/usr/sbin/sshd");
    command.args(["-D", "-e", "-f", &configuration]);
    let process = place.serve("sshd", &command, port)?;
    let data = place.make_folder("data", "root")?;
    let host_key_public = fs::read_to_string(format!("{host_key}.pub"))?;
    Ok(Service {
        name: "openssh".to_owned(),
        version: version("ssh", "-V"),
        url: format!("sftp://{}@127.0.0.1:{port}{data}/store", user()?),
        credentials: vec![
            ("private_key_file".to_owned(), user_key),
            ("host_key".to_owned(), host_key_public.trim().to_owned()),
        ],
        processes: vec![process],
    })
}
