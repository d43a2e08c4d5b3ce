//! vsftpd: its anonymous user, let in by a password alone, because other users would be users of this machine. TLS is
//! offered and not demanded.

use std::process::Command;

use super::Service;
use super::place::{Place, free_port};
use crate::failure::Result;
use crate::install::package_version;

const PASSWORD: &str = "a-password-for-loopback-only";

pub(super) fn start(place: &Place) -> Result<Service> {
    let port = free_port()?;
    let root = place.make_folder("root", "root")?;
    place.make_folder("root/data", "ftp")?;
    let passwords = place.write("passwords", &format!("{PASSWORD}\n"))?;
    let (certificate, key) = place.certificate()?;
    let log = place.path("transfers.log");
    let configuration = place.write(
        "vsftpd.conf",
        &format!(
            "listen=YES\nlisten_address=127.0.0.1\nlisten_port={port}\nbackground=NO\n\
             anonymous_enable=YES\nlocal_enable=NO\nwrite_enable=YES\n\
             anon_root={root}\nanon_upload_enable=YES\nanon_mkdir_write_enable=YES\n\
             anon_other_write_enable=YES\nanon_world_readable_only=NO\nanon_umask=022\n\
             secure_email_list_enable=YES\nemail_password_file={passwords}\n\
             ssl_enable=YES\nallow_anon_ssl=YES\nrequire_ssl_reuse=NO\nssl_ciphers=HIGH\n\
             rsa_cert_file={certificate}\nrsa_private_key_file={key}\n\
             xferlog_enable=YES\nxferlog_file={log}\nvsftpd_log_file={log}.more\n\
             pasv_address=127.0.0.1\nseccomp_sandbox=NO\nmax_clients=200\nmax_per_ip=200\n"
        ),
    )?;
    let mut command = Command::new("/usr/sbin/vsftpd");
    command.arg(&configuration);
    let process = place.serve("vsftpd", &command, port)?;
    Ok(Service {
        name: "vsftpd".to_owned(),
        version: format!("vsftpd {}", package_version("vsftpd")),
        url: format!("ftp://127.0.0.1:{port}/data/store"),
        credentials: vec![
            ("user".to_owned(), "anonymous".to_owned()),
            ("password".to_owned(), PASSWORD.to_owned()),
            ("certificate_file".to_owned(), certificate),
        ],
        processes: vec![process],
    })
}
