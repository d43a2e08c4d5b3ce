//! A second factor on the command line, with the clock of this computer.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use ::server::auth::totp::{TotpSecret, step_at};
use serde_json::Value;

use crate::support::{Device, PASSWORD, Server};

const ENABLE: [&str; 5] = ["account", "totp", "enable", "--password-stdin", "--json"];

/// The step of time that this computer is in.
#[expect(clippy::disallowed_methods, reason = "app and server have the clock of this computer")]
fn step() -> i64 {
    step_at(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() as i64)
}

struct Place {
    room: tempfile::TempDir,
    server: Server,
    device: Device,
}

impl Place {
    fn new() -> Self {
        let room = tempfile::tempdir().unwrap();
        let server = Server::start(room.path());
        let device = Device::new(room.path(), "laptop");
        server.login(&device, "laptop");
        Self { room, server, device }
    }

    /// Turns the second factor of `ada` on, and returns it, the step that was used, and the recovery codes.
    fn enable(&self) -> (TotpSecret, i64, Vec<String>) {
        let offer = self.device.run_with_input(&ENABLE, PASSWORD).ok().json();
        assert_eq!(
            (offer["type"].as_str(), offer["state"].as_str()),
            (Some("summary"), Some("waiting"))
        );
        let secret = TotpSecret::from_text(offer["secret"].as_str().unwrap()).unwrap();
        let used = step();
        let words =
            self.with_code(&["account", "totp", "confirm", "--json"], &secret.code(used).to_text());
        let on = words.ok().json();
        assert_eq!(
            (on["schema"].as_str(), on["state"].as_str()),
            (Some("syncline.totp/1"), Some("on"))
        );
        (secret, used, serde_json::from_value(on["recovery_codes"].clone()).unwrap())
    }

    /// Runs a command of the device that is signed in, with a file that has a code in it.
    fn with_code(&self, words: &[&str], code: &str) -> crate::support::Run {
        self.device.write("code", format!("{code}\n"));
        self.device.run(&[words, &["--code-file", "code"]].concat())
    }

    /// Signs a new device in, with a code or without.
    fn sign_in(&self, name: &str, code: Option<&str>) -> crate::support::Run {
        let device = Device::new(self.room.path(), name);
        let mut words =
            vec!["login", &self.server.url, "--user", "ada", "--password-stdin", "--json"];
        if let Some(code) = code {
            device.write("code", code);
            words.extend(["--code-file", "code"]);
        }
        device.run_with_input(&words, PASSWORD)
    }

    fn status(&self) -> Value {
        self.device.run(&["account", "totp", "status", "--json"]).ok().json()
    }
}

#[test]
fn a_new_device_is_asked_for_a_code_and_the_old_one_goes_on() {
    let place = Place::new();
    assert_eq!(place.status()["state"], "off");
    let (secret, used, codes) = place.enable();
    assert_eq!((codes.len(), place.status()["recovery_codes_left"].as_u64()), (10, Some(10)));
    place.device.run(&["whoami"]).ok();

    let refused = place.sign_in("without", None).ends_with(4).json();
    assert_eq!(refused["code"], "E0411");
    assert_eq!(refused["help"][0], "--code-file FILE");
    // The code that was shown before is used up, and the one of the next step counts already.
    let refused = place.sign_in("again", Some(&secret.code(used).to_text())).ends_with(4).json();
    assert_eq!(refused["code"], "E0415");
    let next = step().max(used + 1);
    place.sign_in("right", Some(&secret.code(next).to_text())).ok();
    place.sign_in("twice", Some(&secret.code(next).to_text())).ends_with(4);
    place.sign_in("recovered", Some(&codes[0])).ok();
    place.sign_in("recovered again", Some(&codes[0])).ends_with(4);
    assert_eq!(place.status()["recovery_codes_left"], 9);
    let missing = ["login", &place.server.url, "--user", "ada", "--password-stdin"];
    let missing = [&missing[..], &["--code-file", "nothing"]].concat();
    place.device.run_with_input(&missing, PASSWORD).ends_with(2);
}

#[test]
fn it_is_turned_off_by_a_code_and_by_nothing_else() {
    let place = Place::new();
    let disable = ["account", "totp", "disable", "--json"];
    let none = place.with_code(&disable, "123456").ends_with(1).json();
    assert_eq!(none["code"], "E0408");
    let (_, _, codes) = place.enable();
    let again = place.device.run_with_input(&ENABLE, PASSWORD).ends_with(1).json();
    assert_eq!(again["code"], "E0408");
    let nobody = place.device.run(&disable).ends_with(2).json();
    assert_eq!(
        (nobody["code"].as_str(), nobody["help"][0].as_str()),
        (Some("E0102"), Some("--code-file FILE"))
    );
    let wrong = place.with_code(&disable, "ABCD-EFGH-IJKL-MNOP").ends_with(4).json();
    assert_eq!(wrong["code"], "E0415");
    assert_eq!(place.status()["state"], "on");
    place.with_code(&disable, &codes[9]).ok();
    assert_eq!(place.status()["state"], "off");
    place.sign_in("afterwards", None).ok();
}

#[test]
fn what_the_app_is_to_know_is_told_and_drawn() {
    let place = Place::new();
    let enable = ["account", "totp", "enable", "--password-stdin"];
    let wrong = place.device.run_with_input(&enable, "wrong").ends_with(4);
    assert!(wrong.stderr.contains("E0402"), "{}", wrong.stderr);
    let told = place.device.run_with_input(&enable, PASSWORD).ok();
    assert!(told.stdout.starts_with("otpauth://totp/Syncline%20127.0.0.1:ada?secret="), "{told:?}");
    assert!(told.stderr.contains("account totp confirm --code-file FILE"), "{}", told.stderr);
    let drawn = [&enable[..], &["--color", "always"]].concat();
    let drawn = place.device.run_with_input(&drawn, PASSWORD).ok();
    assert!(drawn.stdout.lines().filter(|line| line.contains('█')).count() > 10, "{drawn:?}");
    assert_eq!(place.status()["state"], "waiting");
    place.sign_in("still", None).ok();
}

#[test]
fn the_operator_helps_who_has_lost_everything_and_it_is_written_down() {
    let place = Place::new();
    place.enable();
    let operator = Device::new(place.room.path(), "operator");
    let data = place.server.data.to_str().unwrap();
    let users = operator.run(&["user", "ls", "--data", data, "--json"]).ok().json();
    assert_eq!(users["users"][0]["has_second_factor"], true);
    let words = ["user", "passwd", "ada", "--password-stdin", "--data", data];
    operator.run_with_input(&words, PASSWORD).ok();
    assert_eq!(place.sign_in("before", None).ends_with(4).json()["code"], "E0411");

    let off = ["user", "totp-off", "ada", "--audit-log", "audit.log", "--data", data];
    operator.run(&off).ends_with(2);
    operator.run(&[&off[..], &["--dry-run"]].concat()).ok();
    assert!(!operator.has("audit.log"));
    assert_eq!(place.status()["state"], "on");
    operator.run(&[&off[..], &["--yes"]].concat()).ok();
    place.sign_in("afterwards", None).ok();
    let line = std::fs::read_to_string(Path::new(&operator.folder).join("audit.log")).unwrap();
    let line: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(
        (&line["event"], &line["account"]),
        (&"second_factor_removed".into(), &"ada".into())
    );
    let again = operator.run(&[&off[..], &["--yes", "--json"]].concat()).ok().json();
    assert_eq!(again["done"], "ada has no second factor");
    operator.run(&["user", "totp-off", "eve", "--data", data, "--yes"]).ends_with(1);
}
