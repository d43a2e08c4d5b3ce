//! Apache with mod_dav: a WebDAV folder behind a password.

use std::process::Command;

use super::Service;
use super::place::{Place, free_port, is_root, user, version};
use crate::failure::Result;
use crate::process;

const PASSWORD: &str = "a-password-for-loopback-only";
const MODULES: [&str; 9] = [
    "mpm_event",
    "authn_core",
    "authn_file",
    "authz_core",
    "authz_user",
    "auth_basic",
    "dav",
    "dav_fs",
    "dav_lock",
];

pub(super) fn start(place: &Place) -> Result<Service> {
    let port = free_port()?;
    let owner = if is_root() { "www-data".to_owned() } else { user()? };
    let root = place.make_folder("root", &owner)?;
    let run = place.make_folder("run", &owner)?;
    let hash = process::output(Command::new("openssl").args(["passwd", "-apr1", PASSWORD]))?;
    let users = place.write("users", &format!("ada:{hash}"))?;
    let modules: String = MODULES
        .iter()
        .map(|name| format!("LoadModule {name}_module /usr/lib/apache2/modules/mod_{name}.so\n"))
        .collect();
    let configuration = place.write(
        "apache.conf",
        &format!(
            "{modules}\
             Listen 127.0.0.1:{port}\nServerName localhost\nUser {owner}\nGroup {owner}\n\
             PidFile {run}/apache.pid\nErrorLog {run}/error.log\nDefaultRuntimeDir {run}\n\
             DocumentRoot {root}\nDavLockDB {run}/locks\n\
             <Directory {root}>\n Dav on\n AuthType Basic\n AuthName syncline\n\
             AuthUserFile {users}\n Require valid-user\n</Directory>\n"
        ),
    )?;
    let mut command = Command::new("/usr/sbin/apache2");
    command.args(["-D", "FOREGROUND", "-f", &configuration]);
    let process = place.serve("apache", &command, port)?;
    let version = version("/usr/sbin/apache2", "-v");
    Ok(Service {
        name: "apache".to_owned(),
        version: format!("mod_dav of {}", version.trim_start_matches("Server version: ")),
        url: format!("webdav:http://127.0.0.1:{port}/store"),
        credentials: vec![
            ("user".to_owned(), "ada".to_owned()),
            ("password".to_owned(), PASSWORD.to_owned()),
        ],
        processes: vec![process],
    })
}
