//! OpenStack Swift: proxy, account, container and object server, one replica, TempAuth.

use std::process::Command;

use super::Service;
use super::place::{Place, free_port, is_root, user};
use super::processes::Process;
use crate::failure::Result;
use crate::install::package_version;
use crate::process;

const PASSWORD: &str = "a-password-for-loopback-only";
const KINDS: [&str; 3] = ["account", "container", "object"];

pub(super) fn start(place: &Place) -> Result<Service> {
    let owner = if is_root() { "swift".to_owned() } else { user()? };
    let configuration = place.make_folder("etc", &owner)?;
    place.write(
        "etc/swift.conf",
        "[swift-hash]\nswift_hash_path_prefix = syncline\nswift_hash_path_suffix = test\n\
         [storage-policy:0]\nname = one\ndefault = yes\n",
    )?;
    let devices = place.make_folder("devices/disk", &owner)?;
    let devices = devices.trim_end_matches("/disk").to_owned();
    let cache = place.make_folder("cache", &owner)?;
    let mut processes = Vec::new();
    for kind in KINDS {
        let port = free_port()?;
        let builder = place.path(&format!("etc/{kind}.builder"));
        let device = format!("r1z1-127.0.0.1:{port}/disk");
        for words in [vec!["create", "6", "1", "1"], vec!["add", &device, "1"], vec!["rebalance"]] {
            process::output(Command::new("swift-ring-builder").arg(&builder).args(words))?;
        }
        let pipeline = if kind == "object" { "object-server" } else { &format!("{kind}-server") };
        let text = format!(
            "[DEFAULT]\nbind_ip = 127.0.0.1\nbind_port = {port}\nworkers = 0\nuser = {owner}\n\
             swift_dir = {configuration}\ndevices = {devices}\nmount_check = false\n\
             log_address = {cache}/none\n\
             [pipeline:main]\npipeline = {pipeline}\n\
             [app:{pipeline}]\nuse = egg:swift#{kind}\nrecon_cache_path = {cache}\n\
             conn_timeout = 5\n"
        );
        processes.push(start_server(place, kind, &text, port)?);
    }
    let (cache_process, cache_port) = start_cache(place, &owner)?;
    processes.push(cache_process);
    let port = free_port()?;
    let text = format!(
        "[DEFAULT]\nbind_ip = 127.0.0.1\nbind_port = {port}\nworkers = 0\nuser = {owner}\n\
         swift_dir = {configuration}\nlog_address = {cache}/none\n\
         [pipeline:main]\npipeline = catch_errors proxy-logging cache tempauth proxy-server\n\
         [app:proxy-server]\nuse = egg:swift#proxy\naccount_autocreate = true\nconn_timeout = 5\n\
         [filter:tempauth]\nuse = egg:swift#tempauth\n\
         user_test_ada = {PASSWORD} .admin http://127.0.0.1:{port}/v1/AUTH_test\n\
         [filter:cache]\nuse = egg:swift#memcache\nmemcache_servers = 127.0.0.1:{cache_port}\n\
         [filter:catch_errors]\nuse = egg:swift#catch_errors\n\
         [filter:proxy-logging]\nuse = egg:swift#proxy_logging\n"
    );
    processes.push(start_server(place, "proxy", &text, port)?);
    Ok(Service {
        name: "swift".to_owned(),
        version: format!("OpenStack Swift {}", package_version("swift-proxy")),
        url: format!("swift:cloud/store?auth=http://127.0.0.1:{port}/auth/v1.0"),
        credentials: vec![
            ("user".to_owned(), "test:ada".to_owned()),
            ("password".to_owned(), PASSWORD.to_owned()),
        ],
        processes,
    })
}

fn start_server(place: &Place, kind: &str, text: &str, port: u16) -> Result<Process> {
    let configuration = place.write(&format!("etc/{kind}-server.conf"), text)?;
    let mut command = Command::new(format!("/usr/bin/swift-{kind}-server"));
    // The packages of Debian want Debian's Python, whatever else is on the path.
    command.args([&configuration, "verbose"]).env("PATH", "/usr/bin:/bin:/usr/sbin:/sbin");
    place.serve(kind, &command, port)
}

/// Where TempAuth keeps the tokens that it gave.
fn start_cache(place: &Place, owner: &str) -> Result<(Process, u16)> {
    let port = free_port()?;
    let pid = place.path("cache/memcached.pid");
    let mut command = Command::new("memcached");
    command.args(["-l", "127.0.0.1", "-p", &port.to_string(), "-u", owner, "-P", &pid]);
    Ok((place.serve("memcached", &command, port)?, port))
}
