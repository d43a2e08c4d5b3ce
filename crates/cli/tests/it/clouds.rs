//! Workspaces at services that people sign in to. The services are the test servers of the storage room.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Stdio;

use serde_json::Value;

use crate::dropbox::Dropbox;
use crate::onedrive::OneDrive;
use crate::server::{CLIENT_ID, CLIENT_SECRET, Cloud, Service};
use crate::support::Device;

/// Writes down which program was registered.
fn registered(room: &Path) -> String {
    use std::os::unix::fs::PermissionsExt;
    let path = room.join("registered.toml");
    let text = format!("client_id = \"{CLIENT_ID}\"\nclient_secret = \"{CLIENT_SECRET}\"\n");
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Signs a device in, as a person with a browser does.
fn sign_in<S: Service>(cloud: &Cloud<S>, device: &Device, url: &str, file: &str) {
    let words = ["backend", "login", url, "--credentials", file, "--port", "0", "--json"];
    let mut command = device.command(&words);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let visit: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
    if visit["code"].is_null() {
        let address = url::Url::parse(visit["address"].as_str().unwrap()).unwrap();
        let asked: std::collections::BTreeMap<String, String> =
            address.query_pairs().into_owned().collect();
        let redirect = url::Url::parse(&asked["redirect_uri"]).unwrap();
        let state = asked["state"].clone();
        cloud.account().codes.insert("c0de".to_owned(), asked);
        let get = |target: &str| {
            let mut stream = TcpStream::connect(("127.0.0.1", redirect.port().unwrap())).unwrap();
            write!(stream, "GET {target} HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            answer
        };
        assert!(get("/favicon.ico").starts_with("HTTP/1.1 404"));
        let answer = get(&format!("/?code=c0de&state={state}"));
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    let summary: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
    assert_eq!(summary["type"], "summary");
    assert!(child.wait().unwrap().success());
}

/// Two devices keep a folder at a service; tokens end all the time.
async fn two_devices_at<S: Service + Default>() {
    let cloud = Cloud::start(S::default()).await;
    {
        let mut account = cloud.account();
        (account.person_types, account.interval_s, account.token_life) = (0, 1, 25);
    }
    let (room, url) = (tempfile::tempdir().unwrap(), cloud.url("Syncline/notes"));
    let room_path = room.path().to_owned();
    let work = move |cloud: &Cloud<S>| {
        let file = registered(&room_path);
        let (one, two) = (Device::new(&room_path, "one"), Device::new(&room_path, "two"));
        let backend = format!("cloud={url}");
        let init = ["init", ".", "--workspace", "Notes", "--plain", "--backend", &backend];
        let run = one.run(&init).ends_with(4);
        assert!(run.stderr.contains("syncline backend login"), "{}", run.stderr);
        let run = one.run(&["backend", "login", &url]).ends_with(2);
        assert!(run.stderr.contains("client_id"), "{}", run.stderr);
        sign_in(cloud, &one, &url, &file);
        one.write("a/hello.txt", "hello\n");
        one.write("big", vec![7; 5_000_000]);
        one.run(&init).ok();
        one.sync().ok();
        sign_in(cloud, &two, &url, &file);
        let two_path = two.folder.to_str().unwrap().to_owned();
        two.run(&["clone", "Notes", &two_path, "--backend", &backend]).ok();
        two.write("b.txt", "from the other\n");
        two.sync().ok();
        one.sync().ok();
        assert_eq!(one.tree(), two.tree());
        // By its name, too.
        sign_in(cloud, &one, "cloud", &file);
        let checked = one.run(&["backend", "check", "cloud", "--json"]).ok().json();
        assert_eq!(checked["stores"][0]["is_well"], true);
        for device in [&one, &two] {
            for file in std::fs::read_dir(device.home.join("sign-ins")).unwrap() {
                use std::os::unix::fs::PermissionsExt;
                let mode = file.unwrap().metadata().unwrap().permissions().mode();
                assert_eq!(mode & 0o777, 0o600);
            }
        }
    };
    let cloud = std::sync::Arc::new(cloud);
    let shared = std::sync::Arc::clone(&cloud);
    tokio::task::spawn_blocking(move || work(&shared)).await.unwrap();
    cloud.assert_lawful();
    assert!(cloud.account().renewals > 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_devices_keep_a_folder_at_dropbox() {
    two_devices_at::<Dropbox>().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_devices_keep_a_folder_at_onedrive() {
    two_devices_at::<OneDrive>().await;
}
