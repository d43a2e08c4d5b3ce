//! The door of WebDAV.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt, stream};
use model::Genesis;
use reqwest::{Method, StatusCode};
use serde_json::json;
use server::Admin;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::support::{Device, PASSWORD, PushedClock, SystemRandom, TestServer, http, noise};

#[path = "dav/stories.rs"]
mod stories;

use stories::Door;

struct Place {
    server: TestServer,
    device: Device,
    genesis: Genesis,
    door: Door,
}

async fn place() -> Place {
    place_at(TestServer::start().await).await
}

async fn place_at(server: TestServer) -> Place {
    let device = server.device("ada").await;
    let genesis = device.create_workspace("my home").await;
    let root = server.url("/dav/my%20home");
    let (user, password) = ("ada".to_owned(), PASSWORD.to_owned());
    let door = Door { client: http(), root, user, password };
    Place { server, device, genesis, door }
}

#[tokio::test]
async fn files_go_in_and_out() {
    stories::files_go_in_and_out(&place().await.door, &noise(3 << 20)).await;
}

#[tokio::test]
async fn who_was_first_wins() {
    stories::who_was_first_wins(&place().await.door).await;
}

#[tokio::test]
async fn properties_are_found_named_and_missing_and_only_times_are_set() {
    let place = place().await;
    stories::properties_are_found_named_and_missing_and_only_times_are_set(&place.door).await;
}

#[tokio::test]
async fn move_and_copy_heed_overwrite() {
    stories::move_and_copy_heed_overwrite(&place().await.door).await;
}

#[tokio::test]
async fn lock_keeps_out_who_does_not_name_it() {
    stories::lock_keeps_out_who_does_not_name_it(&place().await.door).await;
}

/// Begins to put a file, and goes on as soon as the sender says so.
fn putting(door: &Door, header: Option<&str>) -> (oneshot::Sender<Vec<u8>>, JoinHandle<u16>) {
    let (rest, coming) = oneshot::channel::<Vec<u8>>();
    let first = stream::iter([Ok(b"my ".to_vec())]);
    let body = reqwest::Body::wrap_stream(first.chain(stream::once(coming)));
    let request = door.client.request(Method::PUT, door.to("f")).body(body);
    let request = request.basic_auth(&door.user, Some(&door.password));
    let request = header.into_iter().fold(request, |request, value| request.header("if", value));
    (rest, tokio::spawn(async { request.send().await.unwrap().status().as_u16() }))
}

#[tokio::test]
async fn what_others_do_while_a_file_comes_is_heeded() {
    let place = place().await;
    let door = &place.door;
    door.status("PUT", "f", &[], b"one").await;
    let found = door.ask("HEAD", "f", &[], b"").await;
    let named = format!("([{}])", found.headers()["etag"].to_str().unwrap());
    let (rest, answer) = putting(door, Some(&named));
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(door.status("PUT", "f", &[], b"two").await, 204);
    rest.send(b"one".to_vec()).unwrap();
    assert_eq!(answer.await.unwrap(), 412, "another version was named");

    let (rest, answer) = putting(door, None);
    tokio::time::sleep(Duration::from_millis(200)).await;
    let locked = door.ask("LOCK", "f", &[], stories::LOCK).await;
    rest.send(b"one".to_vec()).unwrap();
    assert_eq!(answer.await.unwrap(), 423, "it was promised to somebody else");
    assert_eq!(door.text("f").await, "two");

    // Who has locked it goes on, and so do others when the lock ends while they send.
    let token = locked.headers()["lock-token"].to_str().unwrap().to_owned();
    let (rest, answer) = putting(door, Some(&format!("({token})")));
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(door.status("UNLOCK", "f", &[("lock-token", &token)], b"").await, 204);
    rest.send(b"three".to_vec()).unwrap();
    assert_eq!(answer.await.unwrap(), 204);
    assert_eq!(door.text("f").await, "my three");
}

#[tokio::test]
async fn files_are_those_of_the_other_door_and_their_workspace_has_a_quota() {
    let place = place().await;
    place.device.create_workspace("other").await;
    assert_eq!(place.door.status("PUT", "a%20%26%20b", &[], b"one").await, 201);
    let path = format!("/workspaces/{}/nodes/a%20%26%20b", place.genesis.workspace());
    assert_eq!(place.device.get(&path).await.1["size"], json!(3));
    Admin::open(place.server.data()).unwrap().set_quota("ada", Some(1 << 20)).unwrap();
    let quota = "<propfind xmlns=\"DAV:\"><prop><quota-used-bytes/><quota-available-bytes/><displayname/></prop></propfind>";
    let text = place.door.list("", "0", quota).await;
    assert!(text.contains("quota-available-bytes>10"), "{text}");
    assert!(text.contains("<D:displayname>my home</D:displayname>"), "{text}");
    let far = place.server.url("/dav/other/b");
    let status = place.door.status("MOVE", "a%20%26%20b", &[("destination", &far)], b"").await;
    assert_eq!(status, 403, "nothing moves to another workspace");
}

#[tokio::test]
async fn password_and_token_let_in_and_nothing_else_does() {
    let place = place().await;
    let status = async |user: &str, password: &str| {
        place
            .door
            .ask_as((user, password), "PROPFIND", "", &[("depth", "0")], b"")
            .await
            .status()
            .as_u16()
    };
    let token = place.device.token.clone();
    assert_eq!(status("ada", PASSWORD).await, 207);
    assert_eq!(status("ada", &token).await, 207);
    assert_eq!(status("bob", &token).await, 401);
    assert_eq!(status("ada", "wrong").await, 401);
    assert_eq!(status("bob", PASSWORD).await, 404);
    let refused = http().get(place.server.url("/dav/my%20home/")).send().await.unwrap();
    assert_eq!(refused.status(), StatusCode::UNAUTHORIZED);
    assert!(refused.headers()["www-authenticate"].to_str().unwrap().starts_with("Basic"));
    // All programs that come with the password are one device, which its owner sees.
    let (_, devices) = place.device.get("/devices").await;
    let mut names: Vec<_> =
        devices.as_array().unwrap().iter().map(|one| one["name"].to_string()).collect();
    names.sort();
    assert_eq!(names, ["\"WebDAV\"", "\"laptop\""]);
    // A password that was right is remembered, but not beyond its change.
    Admin::open(place.server.data())
        .unwrap()
        .set_password("ada", "another one", &SystemRandom)
        .unwrap();
    assert_eq!(status("ada", PASSWORD).await, 401);
    assert_eq!(status("ada", "another one").await, 207);

    for _ in 0..20 {
        status("ada", "guess").await;
    }
    assert_eq!(status("ada", "guess").await, 429);
    assert_eq!(status("ada", "another one").await, 207, "who is known is let in nevertheless");
}

#[tokio::test]
async fn a_program_that_goes_on_is_not_held_up_by_who_tries_passwords() {
    let stopped = TestServer::start().await.stop().await;
    let clock = Arc::new(PushedClock::default());
    let pushed = Arc::clone(&clock);
    let server = TestServer::start_again(&stopped, |options| options.clock = pushed);
    let place = place_at(server.await.unwrap()).await;
    let list = async || place.door.status("PROPFIND", "", &[("depth", "0")], b"").await;
    for _ in 0..2 {
        assert_eq!(list().await, 207);
        clock.push(Duration::from_secs(200));
    }
    // More than 300 seconds after its first use, and fewer after its last one.
    for _ in 0..10 {
        assert_eq!(place.server.login("ada", "wrong").await.0, StatusCode::UNAUTHORIZED);
    }
    let (held_up, _) = place.server.login("ada", PASSWORD).await;
    assert_eq!(held_up, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(list().await, 207);

    // What is remembered on is looked at each time: once the password is another one, this is one more of too many attempts.
    let mut admin = Admin::open(place.server.data()).unwrap();
    admin.set_password("ada", "another one", &SystemRandom).unwrap();
    assert_eq!(list().await, 429);
    // Who does not go on is forgotten.
    admin.set_password("ada", PASSWORD, &SystemRandom).unwrap();
    clock.push(Duration::from_secs(60));
    assert_eq!(list().await, 207);
    clock.push(Duration::from_secs(300));
    for _ in 0..10 {
        assert_eq!(place.server.login("ada", "wrong").await.0, StatusCode::UNAUTHORIZED);
    }
    assert_eq!(list().await, 429);
}

#[tokio::test]
async fn token_of_that_name_is_not_taken_for_the_device_of_programs() {
    let place = place().await;
    let body = json!({ "name": "WebDAV", "scope": "read" });
    let added = place.device.request(Method::POST, "/tokens").json(&body).send().await.unwrap();
    assert_eq!(added.status(), StatusCode::CREATED);
    assert_eq!(place.door.status("PUT", "a", &[], b"one").await, 201);
}

#[tokio::test]
async fn folder_that_is_a_workspace_of_its_own_is_there_with_what_that_one_has() {
    let Place { server, device, genesis, door } = place().await;
    assert_eq!(door.status("MKCOL", "Letters", &[], b"").await, 201);
    assert_eq!(door.status("PUT", "Letters/a", &[], b"as it was").await, 201);
    assert_eq!(door.status("PUT", "beside", &[], b"beside").await, 201);
    let inner = device.create_workspace("Letters (shared)").await;
    let there = Door { root: server.url("/dav/Letters%20(shared)"), ..door.clone() };
    assert_eq!(there.status("MKCOL", "in", &[], b"").await, 201);
    assert_eq!(there.status("PUT", "in/b", &[], b"as it is").await, 201);
    device.mount(&genesis, "Letters", &inner).await;

    let all = "<propfind xmlns=\"DAV:\"><allprop/></propfind>";
    let text = door.list("Letters/", "1", all).await;
    assert!(text.contains("<D:href>/dav/my%20home/Letters/in/</D:href>"), "{text}");
    assert!(text.contains("<D:displayname>Letters</D:displayname>"), "{text}");
    assert!(
        !text.contains("Letters/a"),
        "what was in it when it was shared is in the other one: {text}"
    );
    assert_eq!(door.text("Letters/in/b").await, "as it is");
    assert_eq!(door.status("PUT", "Letters/in/c", &[], b"new").await, 201);
    assert_eq!(there.text("in/c").await, "new");
    let to = door.to("Letters/d");
    assert_eq!(door.status("MOVE", "Letters/in/c", &[("destination", &to)], b"").await, 201);
    assert_eq!(there.text("d").await, "new");
    // A lock holds whichever way it is looked at.
    let locked = door.ask("LOCK", "Letters/d", &[], stories::LOCK).await;
    let named = format!("({})", locked.headers()["lock-token"].to_str().unwrap());
    assert_eq!(there.status("PUT", "d", &[], b"other").await, 423);
    assert_eq!(door.status("PUT", "Letters/d", &[("if", &named)], b"mine").await, 204);

    // Between the two nothing moves, and what the folder is called is a matter of the one around it.
    for (from, to) in [("Letters/d", "d"), ("beside", "Letters/beside")] {
        let destination = door.to(to);
        let status = door.status("MOVE", from, &[("destination", &destination)], b"").await;
        assert!(status == 403 || status == 409, "{from}: {status}");
    }
    assert_eq!(door.status("DELETE", "Letters", &[], b"").await, 409);
    let to = door.to("Post");
    assert_eq!(door.status("MOVE", "Letters/", &[("destination", &to)], b"").await, 201);
    assert_eq!(door.text("Post/d").await, "mine");

    // Who may see the one around it only is not told that the folder is empty, nor that it is gone.
    let let_in = format!("/workspaces/{}/members/bob", genesis.workspace());
    let request = device.request(Method::PUT, &let_in).json(&json!({ "role": "view" }));
    assert!(request.send().await.unwrap().status().is_success());
    let root = server.url(&format!("/dav/{}", genesis.workspace()));
    let bob = Door { root, user: "bob".to_owned(), ..door };
    assert!(bob.list("", "1", all).await.contains("/Post/"));
    for path in ["Post/", "Post/in/", "Post/in/b"] {
        let status = bob.status("PROPFIND", path, &[("depth", "1")], b"").await;
        assert_eq!(status, 403, "{path}");
    }
}

#[tokio::test]
async fn folder_that_is_a_workspace_of_its_own_is_not_shown_empty() {
    let place = place().await;
    let Place { device, genesis, door, .. } = &place;
    assert_eq!(door.status("MKCOL", "Letters", &[], b"").await, 201);
    let inner = device.create_workspace("inner").await;
    device.mount(genesis, "Letters", &inner).await;
    let at = |rest: &str| format!("/workspaces/{}/{rest}/Letters", genesis.workspace());
    let (_, node) = device.get(&at("nodes")).await;
    assert_eq!(node["mounted"], json!(inner.workspace().to_string()));
    for listed in ["folders", "archive"] {
        let (status, problem) = device.get(&at(listed)).await;
        assert_eq!(
            (status, &problem["code"]),
            (StatusCode::CONFLICT, &json!("conflict")),
            "{listed}"
        );
    }
}
