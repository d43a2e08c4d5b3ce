//! Dovecot: one account, over IMAP with TLS and without.

use std::process::Command;

use super::Service;
use super::place::{Place, free_port, is_root, user, version};
use crate::failure::Result;

const PASSWORD: &str = "a-password-for-loopback-only";

/// An account with the same password that holds little.
pub const SMALL_ACCOUNT: &str = "eve";

/// How much it holds.
const SMALL_ACCOUNT_KIB: u32 = 20 << 10;

pub(super) fn start(place: &Place) -> Result<Service> {
    let (port, tls_port) = (free_port()?, free_port()?);
    let (certificate, key) = place.certificate()?;
    // Dovecot refuses to touch mail as root.
    let (mail_user, own) = if is_root() { ("mail".to_owned(), "") } else { (user()?, "own") };
    let mail = place.make_folder("mail", &mail_user)?;
    let run = place.make_folder("run", "root")?;
    let state = place.make_folder("state", "root")?;
    // The second account is one that is soon full.
    let users = place.write(
        "users",
        &format!(
            "ada:{{PLAIN}}{PASSWORD}::::::\n\
             {SMALL_ACCOUNT}:{{PLAIN}}{PASSWORD}::::::userdb_uid={mail_user} userdb_gid={mail_user} \
             userdb_home={mail}/{SMALL_ACCOUNT} userdb_quota_rule=*:storage={SMALL_ACCOUNT_KIB}K\n"
        ),
    )?;
    // Started by anybody but root, all its processes are that user's.
    let login = match own {
        "own" => format!(
            "default_internal_user = {mail_user}\ndefault_login_user = {mail_user}\n\
             service anvil {{\n chroot =\n}}\n"
        ),
        _ => String::new(),
    };
    let configuration = place.write(
        "dovecot.conf",
        &format!(
            "protocols = imap\nlisten = 127.0.0.1\nbase_dir = {run}\nstate_dir = {state}\n\
             instance_name = syncline-test\nlog_path = /dev/stderr\n{login}\
             ssl = yes\nssl_cert = <{certificate}\nssl_key = <{key}\n\
             disable_plaintext_auth = no\nauth_mechanisms = plain\n\
             mail_location = sdbox:{mail}/%u\nmail_uid = {mail_user}\nmail_gid = {mail_user}\n\
             first_valid_uid = 1\nfirst_valid_gid = 1\nmail_max_userip_connections = 100\n\
             passdb {{\n driver = passwd-file\n args = {users}\n}}\n\
             userdb {{\n driver = prefetch\n}}\n\
             userdb {{\n driver = static\n args = uid={mail_user} gid={mail_user} home={mail}/%u\n}}\n\
             mail_plugins = quota\nmailbox_list_index = yes\n\
             plugin {{\n quota = count:all\n quota_vsizes = yes\n}}\n\
             service imap-login {{\n chroot =\n process_min_avail = 1\n\
             inet_listener imap {{\n  port = {port}\n }}\n\
             inet_listener imaps {{\n  port = {tls_port}\n  ssl = yes\n }}\n}}\n"
        ),
    )?;
    let mut command = Command::new("/usr/sbin/dovecot");
    command.args(["-F", "-c", &configuration]);
    let process = place.serve("dovecot", &command, tls_port)?;
    Ok(Service {
        name: "dovecot".to_owned(),
        version: format!("Dovecot {}", version("/usr/sbin/dovecot", "--version")),
        url: format!("imaps://localhost:{tls_port}/store"),
        credentials: vec![
            ("user".to_owned(), "ada".to_owned()),
            ("password".to_owned(), PASSWORD.to_owned()),
            ("certificate_file".to_owned(), certificate),
        ],
        processes: vec![process],
    })
}
