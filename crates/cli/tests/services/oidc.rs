//! Signing in by a real provider of OpenID Connect, with a browser that fills in its forms.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::{MutexGuard, PoisonError};
use std::time::Instant;

use reqwest::header::{COOKIE, LOCATION, SET_COOKIE};
use reqwest::{Client, RequestBuilder, Response, StatusCode, Url};
use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use xtask::services::Services;

use crate::stage::{ALONE, PATIENCE, running};
use crate::support::{Device, PASSWORD, Run, Server, terminate};

const PROVIDER: &str = "oidc-provider";
const NONCE: &str = "a-nonce-of-this-test-0123456789";
/// By RFC 7636, appendix B.
const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";

/// A person at a browser, who lets the provider know a name and says yes to everything, or no.
struct Browser {
    http: Client,
    runtime: Runtime,
    cookies: BTreeMap<String, String>,
    /// Nothing where the person says no.
    name: Option<String>,
}

impl Browser {
    fn of(name: Option<&str>) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let redirect = reqwest::redirect::Policy::none();
        let http = Client::builder().no_proxy().redirect(redirect).build().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        Self { http, runtime, cookies: BTreeMap::new(), name: name.map(str::to_owned) }
    }

    fn send(&mut self, request: RequestBuilder) -> (StatusCode, Option<String>, String) {
        let pairs = self.cookies.iter().map(|(name, value)| format!("{name}={value}"));
        let request = request.header(COOKIE, pairs.collect::<Vec<_>>().join("; "));
        let (response, text) = self.runtime.block_on(async {
            let response = request.send().await.unwrap();
            let head = (response.status(), response.headers().clone());
            (head, response.text().await.unwrap())
        });
        let (status, headers) = response;
        for cookie in headers.get_all(SET_COOKIE) {
            let pair = cookie.to_str().unwrap().split(';').next().unwrap();
            let (name, value) = pair.split_once('=').unwrap();
            self.cookies.insert(name.to_owned(), value.to_owned());
        }
        let location = headers.get(LOCATION).map(|text| text.to_str().unwrap().to_owned());
        (status, location, text)
    }

    /// Goes where an address leads, until it leads back to a device; returns that.
    fn travel(&mut self, address: &str) -> Url {
        let mut url = Url::parse(address).unwrap();
        let mut request = self.http.get(url.clone());
        for _ in 0..20 {
            let (status, location, text) = self.send(request);
            if let Some(location) = location {
                url = url.join(&location).unwrap();
                if url.path().starts_with("/sign-in/oidc/") {
                    return url;
                }
                request = self.http.get(url.clone());
                continue;
            }
            assert_eq!(status, StatusCode::OK, "{url}: {text}");
            let Some(name) = &self.name else {
                url.set_path(&format!("{}/abort", url.path()));
                request = self.http.get(url.clone());
                continue;
            };
            let form = match text.contains("value=\"login\"") {
                true => format!("prompt=login&login={}&password=x", name.replace('/', "%2F")),
                false => "prompt=consent".to_owned(),
            };
            let kind = ("content-type", "application/x-www-form-urlencoded");
            request = self.http.post(url.clone()).header(kind.0, kind.1).body(form);
        }
        panic!("{url} leads nowhere");
    }

    /// Opens an address on the device, and returns what is shown there.
    fn show(&mut self, url: &str) -> (StatusCode, String) {
        let (status, _, text) = self.send(self.http.get(url));
        (status, text)
    }
}

/// A command that waits for a browser.
struct Waiting {
    child: Child,
    stdout: BufReader<ChildStdout>,
    address: String,
}

impl Waiting {
    fn start(device: &Device, words: &[&str], input: Option<&str>) -> Self {
        let mut command = device.command(words);
        command.arg("--json");
        Self::of(command, input)
    }

    fn of(mut command: Command, input: Option<&str>) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        if let Some(input) = input {
            child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        }
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        let told: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("it said: {line}"));
        assert_eq!(told["type"], "visit", "{told}");
        let address = told["address"].as_str().unwrap().to_owned();
        Self { child, stdout, address }
    }

    /// Where the browser comes back to.
    fn redirect_uri(&self) -> String {
        let url = Url::parse(&self.address).unwrap();
        url.query_pairs().find(|(name, _)| name == "redirect_uri").unwrap().1.into_owned()
    }

    fn end(mut self) -> Run {
        use std::io::Read;
        let mut stdout = Vec::new();
        self.stdout.read_to_end(&mut stdout).unwrap();
        let status = self.child.wait().unwrap();
        Run::of(std::process::Output { status, stdout, stderr: Vec::new() })
    }

    /// Lets somebody go to the provider, and come back.
    fn by(self, browser: &mut Browser) -> Run {
        let back = browser.travel(&self.address);
        let (status, page) = browser.show(back.as_str());
        assert_eq!(status, StatusCode::OK, "{page}");
        self.end()
    }
}

struct Stage {
    running: Services,
    server: Server,
    room: tempfile::TempDir,
    _alone: MutexGuard<'static, ()>,
}

impl Drop for Stage {
    fn drop(&mut self) {
        let _ = self.running.revive(PROVIDER);
    }
}

impl Stage {
    /// A server with the account `ada`.
    fn set(client: &str, accounts: &str) -> Self {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let running = running();
        let provider = running.service(PROVIDER).unwrap();
        let room = tempfile::tempdir().unwrap();
        let (operator, data) = (Device::new(room.path(), "operator"), room.path().join("server"));
        let at = ["--data", data.to_str().unwrap()];
        let add = ["user", "add", "ada", "--password-stdin"];
        operator.run_with_input(&[&add[..], &at].concat(), PASSWORD).ok();
        // Where browsers come back to is named after the address of the server, so that is known before it starts.
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let listen = free.local_addr().unwrap().to_string();
        drop(free);
        let own = format!("http://{listen}");
        let serve = ["serve", "--listen", &listen, "--oidc-issuer", &provider.url];
        let mut command = operator.command(&[&serve[..], &at].concat());
        command.args(["--oidc-client", client, "--oidc-accounts", accounts]);
        command.args(["--oidc-address", &own]);
        if client == "syncline-es256" {
            operator.write("secret", provider.credential("client_secret").unwrap());
            command.env("SYNCLINE_OIDC_SECRET_FILE", operator.folder.join("secret"));
        }
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let url = line.trim().strip_prefix("listening on ");
        let url = url.unwrap_or_else(|| panic!("it said: {line}")).to_owned();
        Self { running, server: Server::around(url, data, child), room, _alone: alone }
    }

    fn device(&self, name: &str) -> Device {
        Device::new(self.room.path(), name)
    }

    /// Lets a new device wait for a browser.
    fn login(&self, device: &Device) -> Waiting {
        Waiting::start(device, &["login", &self.server.url, "--oidc"], None)
    }

    fn login_as(&self, device: &str, name: &str) -> Run {
        self.login(&self.device(device)).by(&mut Browser::of(Some(name)))
    }

    fn operator(&self, words: &[&str]) -> Run {
        let data = self.server.data.to_str().unwrap();
        self.device("operator").run(&[words, &["--data", data, "--json"]].concat())
    }

    fn bind(&self, subject: &str) {
        let issuer = &self.running.service(PROVIDER).unwrap().url;
        self.operator(&["user", "oidc", "link", "ada", subject, "--issuer", issuer]).ok();
    }

    /// Where a browser of somebody comes back to who signs in at a server.
    fn place(&self, port: u16, server: &str) -> String {
        let path = server::oidc::redirect_path(&Url::parse(server).unwrap());
        format!("http://127.0.0.1:{port}{path}")
    }

    /// Lets somebody get a code that a program of ours did not ask for.
    fn code_for(&self, client: &str, name: &str) -> String {
        self.code_at(client, name, &self.place(4711, &self.server.url))
    }

    fn code_at(&self, client: &str, name: &str, place: &str) -> String {
        let issuer = &self.running.service(PROVIDER).unwrap().url;
        let address = format!(
            "{issuer}/auth?response_type=code&client_id={client}&scope=openid&state=x&nonce={NONCE}\
             &redirect_uri={place}&code_challenge={CHALLENGE}&code_challenge_method=S256"
        );
        let back = Browser::of(Some(name)).travel(&address);
        let code = back.query_pairs().find(|(name, _)| name == "code");
        code.unwrap_or_else(|| panic!("{back}")).1.into_owned()
    }

    /// Hands a code over as a program would.
    fn hand_over(&self, code: &str, changed: &Value) -> (StatusCode, Value) {
        let mut body = json!({
            "authorization_code": code, "redirect_uri": self.place(4711, &self.server.url),
            "code_verifier": VERIFIER, "nonce": NONCE, "device_name": "new",
        });
        for (name, value) in changed.as_object().unwrap() {
            body[name.as_str()] = value.clone();
        }
        let browser = Browser::of(None);
        let url = format!("{}/api/v1/sign-in/oidc", self.server.url);
        browser.runtime.block_on(async {
            let answer: Response = browser.http.post(url).json(&body).send().await.unwrap();
            (answer.status(), answer.json().await.unwrap())
        })
    }
}

#[test]
fn a_person_links_the_own_account_signs_in_by_it_and_unlinks_it() {
    let stage = Stage::set("syncline", "bound");
    let unknown = stage.login_as("unknown", "people/ada").ends_with(4).json();
    assert_eq!(unknown["code"], "E0417");
    assert!(unknown["cause"].as_str().unwrap().contains("'people/ada'"), "{unknown}");

    let first = stage.device("first");
    stage.server.login(&first, "first");
    let words = ["account", "oidc", "link", "--password-stdin"];
    let link = |password| Waiting::start(&first, &words, Some(password));
    let wrong = link("wrong").by(&mut Browser::of(Some("people/ada"))).ends_with(4).json();
    assert_eq!(wrong["code"], "E0402");
    let linked = link(PASSWORD).by(&mut Browser::of(Some("people/ada"))).ok().json();
    assert_eq!(linked["subject"], "people/ada");
    let list = first.run(&["account", "oidc", "ls", "--json"]).ok().json();
    assert_eq!(list["subjects"][0]["issuer"], linked["issuer"], "{list}");
    assert_eq!(stage.operator(&["user", "oidc", "ls", "ada"]).ok().json(), list);

    let second = stage.device("second");
    let signed_in = stage.login(&second).by(&mut Browser::of(Some("people/ada"))).ok().json();
    assert_eq!((&signed_in["user"], &signed_in["type"]), (&json!("ada"), &json!("summary")));
    assert_eq!(second.run(&["whoami", "--json"]).ok().json()["user"], "ada");
    stage.login_as("other", "people/eve").ends_with(4);
    second.run(&["account", "oidc", "unlink", "people/eve"]).ends_with(1);
    second.run(&["account", "oidc", "unlink", "people/ada"]).ok();
    stage.login_as("third", "people/ada").ends_with(4);
    second.run(&["whoami"]).ok();
}

#[test]
fn newcomers_get_accounts_and_tokens_by_every_algorithm_count() {
    for client in ["syncline", "syncline-es256", "syncline-eddsa"] {
        let stage = Stage::set(client, "create");
        let taken = stage.login_as("taken", "people/ada").ends_with(1).json();
        assert_eq!(taken["code"], "E0406", "{client}");
        let eve = stage.login_as("one", "people/eve").ok().json();
        let again = stage.login_as("two", "people/eve").ok().json();
        assert_eq!((&eve["user"], &again["user"]), (&json!("eve"), &json!("eve")));
        assert_ne!(eve["device_id"], again["device_id"]);
        let device = stage.device("three");
        let login = ["login", &stage.server.url, "--user", "eve", "--password-stdin"];
        device.run_with_input(&login, "!").ends_with(4);
        stage.operator(&["user", "disable", "eve"]).ok();
        assert_eq!(stage.login_as("four", "people/eve").ends_with(4).json()["code"], "E0403");
    }
}

#[test]
fn codes_of_others_and_codes_that_were_used_let_nobody_in() {
    let stage = Stage::set("syncline", "bound");
    stage.bind("ada");
    let refused = (StatusCode::UNAUTHORIZED, json!("oidc_refused"));
    let hand_over = |code: &str, changed: Value| {
        let (status, answer) = stage.hand_over(code, &changed);
        (status, answer["code"].clone())
    };
    let code = stage.code_for("syncline", "ada");
    assert_eq!(hand_over(&code, json!({})).0, StatusCode::OK);
    assert_eq!(hand_over(&code, json!({})), refused);
    for changed in [
        json!({ "nonce": "a-nonce-of-somebody-else-012345" }),
        json!({ "code_verifier": "v".repeat(43) }),
        json!({ "redirect_uri": stage.place(4712, &stage.server.url) }),
    ] {
        let code = stage.code_for("syncline", "ada");
        assert_eq!(hand_over(&code, changed.clone()), refused, "{changed}");
    }
    assert_eq!(hand_over(&stage.code_for("syncline-eddsa", "ada"), json!({})), refused);
    assert_eq!(hand_over("no-code-of-anybody", json!({})), refused);
    // Somebody signs in at a server of a stranger, which asks the same provider, and would get in here by that.
    let place = stage.place(4711, "https://stranger.example.org");
    let (status, answer) = stage
        .hand_over(&stage.code_at("syncline", "ada", &place), &json!({ "redirect_uri": place }));
    assert_eq!((status, &answer["code"]), (StatusCode::BAD_REQUEST, &json!("invalid")), "{answer}");
    let kept = json!({});
    assert_eq!(hand_over(&stage.code_at("syncline", "ada", &place), kept), refused);
}

#[test]
fn a_provider_goes_and_comes_back_with_other_keys() {
    let mut stage = Stage::set("syncline", "bound");
    stage.bind("ada");
    stage.login_as("one", "ada").ok();
    stage.running.kill(PROVIDER).unwrap();
    let device = stage.device("two");
    // Where the browser goes is still known; who comes back from nowhere is refused.
    let waiting = stage.login(&device);
    let state = Url::parse(&waiting.address).unwrap();
    let state = state.query_pairs().find(|(name, _)| name == "state").unwrap().1.into_owned();
    let back = format!("{}?code=x&state={state}", waiting.redirect_uri());
    assert_eq!(Browser::of(None).show(&back).0, StatusCode::OK);
    assert_eq!(waiting.end().ends_with(6).json()["code"], "E0412");
    stage.server.login(&device, "by password");
    stage.running.revive(PROVIDER).unwrap();
    stage.login_as("three", "ada").ok();
}

#[test]
fn only_the_browser_that_was_sent_out_is_let_in() {
    let stage = Stage::set("syncline", "bound");
    stage.bind("ada");
    let device = stage.device("one");
    let waiting = stage.login(&device);
    let mut stranger = Browser::of(None);
    let place = waiting.redirect_uri();
    for (url, status) in [
        (place.replace("/sign-in/oidc/", "/"), StatusCode::NOT_FOUND),
        (place.replace("/sign-in/oidc/", "/sign-in/start?"), StatusCode::NOT_FOUND),
        (place.clone(), StatusCode::NOT_FOUND),
        (format!("{place}?code=x"), StatusCode::BAD_REQUEST),
        (format!("{place}?code=x&state=y"), StatusCode::BAD_REQUEST),
        (format!("{place}?error=x&state=y"), StatusCode::BAD_REQUEST),
    ] {
        assert_eq!(stranger.show(&url).0, status, "{url}");
    }
    // Somebody connects and says nothing; nobody waits for that.
    let host = Url::parse(&place).unwrap();
    let address = (host.host_str().unwrap().to_owned(), host.port().unwrap());
    let _silent = std::net::TcpStream::connect(address).unwrap();
    let start = Instant::now();
    waiting.by(&mut Browser::of(Some("ada"))).ok();
    assert!(start.elapsed() < PATIENCE);
    // Who says no is told so, and a signal ends the wait (not that of Ctrl-C, which whoever runs this may let nobody hear).
    let no = stage.login(&stage.device("two")).by(&mut Browser::of(None)).ends_with(4).json();
    assert_eq!((&no["code"], &no["cause"]), (&json!("E0416"), &json!("access_denied")));
    let mut waiting = stage.login(&stage.device("three"));
    assert_ne!(terminate(&mut waiting.child, Signal::TERM), Some(0));
    stage.device("three").run(&["whoami"]).ends_with(4);
}

#[test]
fn a_browser_on_another_computer_will_do() {
    let stage = Stage::set("syncline", "bound");
    stage.bind("ada");
    let device = stage.device("one");
    let words = ["login", &stage.server.url, "--oidc", "--no-browser"];
    let mut waiting = Waiting::start(&device, &words, None);
    let back = Browser::of(Some("ada")).travel(&waiting.address);
    let stdin = waiting.child.stdin.as_mut().unwrap();
    stdin.write_all(format!("{back}\n").as_bytes()).unwrap();
    assert_eq!(waiting.end().ok().json()["user"], "ada");
    let wrong = Waiting::start(&device, &words, Some("http://127.0.0.1:1/sign-in/oidc?code=x\n"));
    assert_eq!(wrong.end().ends_with(2).json()["code"], "E0101");
}

#[test]
fn the_browser_of_whoever_sits_here_is_opened() {
    let stage = Stage::set("syncline", "bound");
    let (device, opened) = (stage.device("one"), stage.room.path().join("opened"));
    let program = device.folder.join("xdg-open");
    let script = format!("#!/bin/sh\necho \"$1\" > {}\n", opened.display());
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o700)).unwrap();
    for (variable, is_opened) in [("CI", false), ("DISPLAY", true)] {
        let mut command = device.command(&["login", &stage.server.url, "--oidc", "--json"]);
        command.env("PATH", &device.folder).env("WAYLAND_DISPLAY", "x").env(variable, "x");
        command.env("HOME", stage.room.path());
        let mut waiting = Waiting::of(command, None);
        let start = Instant::now();
        let read = || std::fs::read_to_string(&opened).unwrap_or_default();
        while is_opened && !read().ends_with('\n') {
            assert!(start.elapsed() < PATIENCE, "nothing was opened");
        }
        if !is_opened {
            assert_eq!(read(), "");
            terminate(&mut waiting.child, Signal::TERM);
            continue;
        }
        // What everybody can read in the list of processes is the name of a file that nobody else can read.
        let lead = std::path::PathBuf::from(read().trim_end());
        assert_eq!(std::fs::metadata(&lead).unwrap().permissions().mode() & 0o777, 0o600);
        let page = std::fs::read_to_string(&lead).unwrap();
        let (_, address) = page.split_once("0;url=").unwrap();
        let (address, _) = address.split_once('"').unwrap();
        let mut browser = Browser::of(Some("ada"));
        let (status, location, _) = browser.send(browser.http.get(address));
        assert_eq!((status, location.as_deref()), (StatusCode::FOUND, Some(&*waiting.address)));
        assert!(!lead.exists());
        waiting.by(&mut browser).ends_with(4);
    }
}
