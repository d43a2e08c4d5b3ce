//! A server whose packs rest in a store that devices reach, too: bytes go past the server, and by its door where they cannot.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{MutexGuard, PoisonError};

use reqwest::{Client, Method, StatusCode};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use xtask::services::Services;

use crate::stage::{ALONE, noise_of, running};
use crate::support::{Device, PASSWORD, Server};

/// What the secrets of the store have in them; it must be nowhere else.
const SECRET: &str = "loopback-only";

/// A room with what opens the bucket, for one test alone.
struct Place {
    room: TempDir,
    running: Services,
    /// The address of a store of this test.
    store: String,
    credentials: PathBuf,
    _alone: MutexGuard<'static, ()>,
}

impl Place {
    fn take(name: &str) -> Self {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let running = running();
        let room = tempfile::tempdir().unwrap();
        let moto = running.service("moto").unwrap();
        let (bucket, endpoint) = moto.url.split_once('?').unwrap();
        let store = format!("{bucket}/{name}-{}?{endpoint}", std::process::id());
        let credentials = room.path().join("store.toml");
        let lines = moto.credentials.iter().map(|(name, value)| format!("{name} = {value:?}\n"));
        fs::write(&credentials, lines.collect::<String>()).unwrap();
        let only_mine = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        fs::set_permissions(&credentials, only_mine).unwrap();
        Self { room, running, store, credentials, _alone: alone }
    }

    fn device(&self, name: &str) -> Device {
        Device::new(self.room.path(), name)
    }

    /// Where the server says what it does.
    fn log(&self) -> PathBuf {
        self.room.path().join("server.log")
    }

    /// Starts a server over the store; `public` is added to the address of the store.
    fn serve(&self, public: &str, listen: &str) -> Server {
        let operator = self.device("operator");
        let data = self.room.path().join("server");
        let text = data.to_str().unwrap();
        if !data.exists() {
            let words = ["user", "add", "ada", "--password-stdin", "--data", text];
            operator.run_with_input(&words, PASSWORD).ok();
        }
        let store = format!("{}{public}", self.store);
        let words = ["serve", "--listen", listen, "--data", text, "--store", &store];
        let log = fs::File::options().create(true).append(true).open(self.log()).unwrap();
        let mut command = operator.command(&words);
        command.arg("--store-credentials").arg(&self.credentials).env("SYNCLINE_LOG", "debug");
        let mut process = command.stdout(Stdio::piped()).stderr(log).spawn().unwrap();
        let line_of = fs::read(format!("/proc/{}/cmdline", process.id())).unwrap();
        assert!(!String::from_utf8_lossy(&line_of).contains(SECRET));
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let url = line.trim().strip_prefix("listening on ");
        let url = url.unwrap_or_else(|| panic!("{line} {:?}", fs::read_to_string(self.log())));
        Server::around(url.to_owned(), data, process)
    }

    /// How many requests of a method the store has had that somebody else had signed.
    fn signed(&self, method: &str) -> usize {
        let log = fs::read_to_string(self.running.folder().join("moto/moto.log")).unwrap();
        let (_, name) = self.store.split_once(':').unwrap();
        let place = format!("\"{method} /{}/", name.split('?').next().unwrap());
        log.lines().filter(|line| line.contains(&place) && line.contains("X-Amz-Signature")).count()
    }

    fn assert_no_secret_was_said(&self) {
        let said = fs::read_to_string(self.log()).unwrap();
        assert!(said.len() > 1000, "it says what it does: {said}");
        assert!(!said.contains(SECRET) && !said.contains("X-Amz-Signature"), "{said}");
    }
}

#[test]
fn packs_go_between_devices_and_the_store_and_by_the_door_where_they_do_not_reach_it() {
    let place = Place::take("direct");
    let (one, other) = (place.device("one"), place.device("other"));
    let mut server = place.serve("", "127.0.0.1:0");
    let address = server.url.trim_start_matches("http://").to_owned();
    for device in [&one, &other] {
        server.login(device, "laptop");
    }
    one.write("large", noise_of(1, 9 << 20));
    one.run(&["init", "--workspace", "Notes", "--plain"]).ok();
    one.sync().ok();
    assert!(place.signed("PUT") >= 2, "{}", place.signed("PUT"));
    other.run(&["clone", "Notes", "."]).ok();
    assert!(place.signed("GET") >= 2, "{}", place.signed("GET"));
    assert_eq!(one.tree(), other.tree());
    server.stop();

    // The store has another address for devices, at which nobody is: they go by the door, and nobody notices.
    let nobody = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = nobody.local_addr().unwrap().port();
    drop(nobody);
    let before = ["PUT", "GET"].map(|method| place.signed(method));
    for public in [format!("&public=http://127.0.0.1:{port}"), "&public=none".to_owned()] {
        let mut server = place.serve(&public, &address);
        one.write("larger", noise_of(public.len() as u8, 9 << 20));
        one.run(&["sync", "--json"]).ok();
        other.run(&["sync", "--json"]).ok();
        assert_eq!(one.tree(), other.tree());
        server.stop();
    }
    assert_eq!(["PUT", "GET"].map(|method| place.signed(method)), before);
    place.assert_no_secret_was_said();
}

/// A device by hand, which does what ours would not do.
struct Hand {
    http: Client,
    workspace: String,
    token: String,
}

impl Hand {
    async fn ask(&self, method: Method, path: &str, body: Vec<u8>) -> (StatusCode, Value) {
        let url = format!("{}{path}", self.workspace);
        let request = self.http.request(method, url).bearer_auth(&self.token);
        let answer = request.header("content-type", "application/json").body(body);
        let answer = answer.send().await.unwrap();
        (answer.status(), answer.json().await.unwrap_or_default())
    }

    /// Sends what the server has signed.
    async fn send(&self, way: &Value, body: Vec<u8>) -> StatusCode {
        let request = &way["request"];
        let mut put = self.http.put(request["url"].as_str().unwrap());
        for header in request["headers"].as_array().unwrap() {
            put = put.header(header["name"].as_str().unwrap(), header["value"].as_str().unwrap());
        }
        put.body(body).send().await.unwrap().status()
    }
}

#[test]
fn what_was_brought_past_the_server_counts_once_it_was_found_right() {
    let place = Place::take("checked");
    let server = place.serve("", "127.0.0.1:0");
    let one = place.device("one");
    server.login(&one, "laptop");
    one.run(&["init", "--workspace", "Notes", "--plain"]).ok();
    one.sync().ok();
    Runtime::new().unwrap().block_on(async {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = Client::builder().no_proxy().build().unwrap();
        let body = json!({ "user": "ada", "password": PASSWORD, "device_name": "hand" });
        let login = http.post(format!("{}/api/v1/login", server.url)).json(&body);
        let said: Value = login.send().await.unwrap().json().await.unwrap();
        let token = said["token"].as_str().unwrap_or_else(|| panic!("{said}")).to_owned();
        let mine = http.get(format!("{}/api/v1/workspaces", server.url)).bearer_auth(&token);
        let mine: Value = mine.send().await.unwrap().json().await.unwrap();
        let id = mine[0]["id"].as_str().unwrap();
        let workspace = format!("{}/api/v1/workspaces/{id}", server.url);
        let hand = Hand { http, workspace, token };

        let right = noise_of(7, 100_000);
        let direct = format!("/packs/{}/direct", blake3::hash(&right));
        let announced = || json!({ "length": right.len() }).to_string().into_bytes();
        let told = || hand.ask(Method::PUT, &direct, announced());
        let (status, _) = told().await;
        assert_eq!(status, StatusCode::NOT_FOUND, "nothing is there");
        let (status, _) = hand.ask(Method::GET, &direct, Vec::new()).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "nor is it to be read");
        let (status, way) = hand.ask(Method::POST, &direct, announced()).await;
        assert_eq!((status, &way["is_stored"]), (StatusCode::OK, &json!(false)));

        // Other bytes, and as many of them.
        let mut wrong = right.clone();
        wrong[5] ^= 1;
        assert_eq!(hand.send(&way, wrong).await, StatusCode::OK);
        let (status, said) = told().await;
        assert_eq!(
            (status, &said["code"]),
            (StatusCode::UNPROCESSABLE_ENTITY, &json!("wrong_content"))
        );
        let (status, _) = hand.ask(Method::GET, &direct, Vec::new()).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "what is wrong is not there");
        let short = json!({ "length": right.len() - 1 }).to_string().into_bytes();
        let (status, _) = hand.ask(Method::PUT, &direct, short).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);

        // The door heals it, and then nothing replaces it: not even who still has the request.
        let pack = format!("/packs/{}", blake3::hash(&right));
        let (status, _) = hand.ask(Method::PUT, &pack, right.clone()).await;
        assert_eq!(status, StatusCode::CREATED);
        assert_eq!(hand.send(&way, b"other".to_vec()).await, StatusCode::PRECONDITION_FAILED);
        let (status, _) = told().await;
        assert_eq!(status, StatusCode::OK, "it is there already");
        let (_, way) = hand.ask(Method::GET, &direct, Vec::new()).await;
        let read = hand.http.get(way["request"]["url"].as_str().unwrap()).send().await.unwrap();
        assert_eq!(read.bytes().await.unwrap(), right);
        let (status, way) = hand.ask(Method::POST, &direct, announced()).await;
        assert_eq!((status, way), (StatusCode::OK, json!({ "is_stored": true, "request": null })));
    });
    place.assert_no_secret_was_said();
}

/// What is wrong with a store is said at the start, and without a secret.
#[test]
fn a_store_without_its_secrets_is_refused_by_name() {
    let place = Place::take("refused");
    let operator = place.device("operator");
    let data = place.room.path().join("server");
    let run = |command: &mut Command| crate::support::Run::of(command.output().unwrap());
    let words = ["serve", "--listen", "127.0.0.1:0", "--data", data.to_str().unwrap()];
    let said = run(operator.command(&words).args(["--store", &place.store])).ends_with(2);
    assert!(said.stderr.contains("access_key"), "{said:?}");
    // The file may be named by the environment, too, and nobody else may read it.
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    fs::set_permissions(&place.credentials, open).unwrap();
    let mut command = operator.command(&words);
    command.args(["--store", &place.store]);
    command.env("SYNCLINE_STORE_CREDENTIALS_FILE", &place.credentials);
    let said = run(&mut command).ends_with(4);
    assert!(said.stderr.contains("chmod 600") && !said.stderr.contains(SECRET), "{said:?}");
}
