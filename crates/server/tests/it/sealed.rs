//! Encrypted workspaces at the doors: what the server keeps without being able to read it, and what it refuses.

use model::codec::encode_message;
use model::{Genesis, Mode, SealedGenesis};
use reqwest::{Method, StatusCode};
use server::Admin;
use storage::server_door::ServerDoor;
use storage::{ObjectKey, ObjectStore, PutMode, PutOutcome};

use crate::support::{Device, PASSWORD, SystemClock, SystemRandom, TestServer, genesis, random};

fn sealed_genesis() -> Genesis {
    let (account, salt) = (random(), random());
    let sealed = SealedGenesis { account, salt, header: vec![3; 232] };
    Genesis { mode: Mode::Sealed(sealed), name: String::new(), ..genesis("") }
}

async fn make(device: &Device) -> Genesis {
    let genesis = sealed_genesis();
    let body = encode_message(&genesis);
    assert_eq!(device.status(Method::POST, "/workspaces", body).await, StatusCode::CREATED);
    genesis
}

fn door(device: &Device, genesis: &Genesis) -> ServerDoor {
    let base = format!("{}/api/v1/workspaces/{}", device.server, genesis.workspace());
    ServerDoor::new(device.http.clone(), &base, &device.token).unwrap()
}

#[tokio::test]
async fn what_needs_plaintext_is_refused_by_name() {
    let server = TestServer::start().await;
    let device = server.device("ada").await;
    let genesis = make(&device).await;
    assert_eq!(device.get("/workspaces").await.1[0]["mode"], "sealed");
    let calls = [
        ("GET", "files/a", ""),
        ("HEAD", "files/a", ""),
        ("PUT", "files/a", "text"),
        ("DELETE", "files/a", ""),
        ("GET", "nodes", ""),
        ("GET", "nodes/a", ""),
        ("GET", "folders", ""),
        ("GET", "folders/a", ""),
        ("PUT", "folders/a", ""),
        ("GET", "versions/a", ""),
        ("POST", "move", r#"{"from": "a", "to": "b"}"#),
        ("POST", "copy", r#"{"from": "a", "to": "b"}"#),
        ("POST", "restore", r#"{"node": "00000000000000000000000000000001", "version": 1}"#),
        ("GET", "archive", ""),
        ("GET", "archive/a", ""),
        ("GET", "deleted", ""),
        ("GET", "search?q=a", ""),
        ("GET", "chunks/a", ""),
        ("POST", "delta/a", "text"),
        ("POST", "uploads", r#"{"path": "a"}"#),
    ];
    for (method, path, body) in calls {
        let path = format!("/workspaces/{}/{path}", genesis.workspace());
        let request = device.request(method.parse().unwrap(), &path);
        let request = request.header("content-type", "application/json").body(body);
        let answer = request.send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::FORBIDDEN, "{method} {path}");
        if method != "HEAD" {
            let text = answer.text().await.unwrap();
            assert!(text.contains("sealed_workspace"), "{method} {path}: {text}");
        }
    }
    for method in ["PROPFIND", "GET", "PUT", "MKCOL", "DELETE"] {
        let url = server.url(&format!("/dav/{}/a", genesis.workspace()));
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        let request = device.http.request(method.clone(), url).bearer_auth(&device.token);
        let answer = request.header("depth", "0").send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::FORBIDDEN, "{method}");
    }
}

#[tokio::test]
async fn keys_and_boxes_are_put_once_and_read_by_devices_of_the_owner() {
    let server = TestServer::start().await;
    let (one, other) = (server.device("ada").await, server.device("ada").await);
    let genesis = make(&one).await;
    let (one, other) = (door(&one, &genesis), door(&other, &genesis));
    let stranger = door(&server.device("bob").await, &genesis);
    let offer = ObjectKey::pairing("00112233445566778899aabbccddeeff", "offer").unwrap();
    for key in [ObjectKey::keys(1), offer.clone()] {
        let put = |door: ServerDoor, text: &'static str| {
            let key = key.clone();
            async move { door.put(&key, text.into(), PutMode::IfAbsent).await.unwrap() }
        };
        assert_eq!(put(one.clone(), "mine").await, PutOutcome::Written);
        assert_eq!(put(other.clone(), "yours").await, PutOutcome::Exists);
        assert_eq!(other.get(&key).await.unwrap().unwrap(), "mine");
        assert_eq!(other.size(&key).await.unwrap(), Some(4));
        assert!(one.put(&key, "anew".into(), PutMode::Overwrite).await.is_err());
        assert_eq!(stranger.get(&key).await.unwrap(), None);
        let prefix = key.as_str().split_inclusive('/').next().unwrap();
        let listed = one.list(prefix, None, 10).await.unwrap();
        assert_eq!(listed.len(), 1);
        assert_eq!((&listed[0].key, listed[0].size), (&key, 4));
    }
    let next = ObjectKey::keys(2);
    let (one_first, other_first) = tokio::join!(
        one.put(&next, "mine".into(), PutMode::IfAbsent),
        other.put(&next, "yours".into(), PutMode::IfAbsent),
    );
    let outcomes = [one_first.unwrap(), other_first.unwrap()];
    assert!(outcomes.contains(&PutOutcome::Written) && outcomes.contains(&PutOutcome::Exists));
    assert_eq!(one.get(&ObjectKey::keys(1)).await.unwrap(), None);
    assert!(one.delete(&ObjectKey::keys(2)).await.is_err());
    one.delete(&offer).await.unwrap();
    assert_eq!(other.get(&offer).await.unwrap(), None);
    let long = vec![0; 512 * 1024 + 1];
    assert!(one.put(&ObjectKey::keys(3), long.into(), PutMode::IfAbsent).await.is_err());
    assert!(one.get(&ObjectKey::keys(2)).await.unwrap().is_some());
}

#[tokio::test]
async fn an_envelope_is_put_anew_at_will_and_read_by_its_member_only() {
    let server = TestServer::start().await;
    let mut admin = Admin::open_existing(server.data()).unwrap();
    admin.add("eve", PASSWORD, &*SystemClock::start(), &SystemRandom).unwrap();
    let (ada, bob, eve) =
        (server.device("ada").await, server.device("bob").await, server.device("eve").await);
    let genesis = make(&ada).await;
    let key = ObjectKey::envelope("bob").unwrap();
    let [of_ada, of_bob, of_eve] = [&ada, &bob, &eve].map(|device| door(device, &genesis));
    let put = |text: &'static str| of_ada.put(&key, text.into(), PutMode::Overwrite);
    assert!(put("early").await.is_err(), "he is no member yet");
    for user in ["bob", "eve"] {
        let path = format!("/workspaces/{}/members/{user}", genesis.workspace());
        let body = br#"{"role": "edit"}"#.to_vec();
        let request = ada.request(Method::PUT, &path).header("content-type", "application/json");
        assert_eq!(request.body(body).send().await.unwrap().status(), StatusCode::CREATED);
    }
    for text in ["one", "two"] {
        assert_eq!(put(text).await.unwrap(), PutOutcome::Written);
        assert_eq!(of_bob.get(&key).await.unwrap().unwrap(), text);
    }
    assert!(of_eve.get(&key).await.is_err() && of_bob.delete(&key).await.is_err());
    assert!(of_bob.put(&key, "mine".into(), PutMode::Overwrite).await.is_err());
    assert!(of_ada.put(&key, vec![0; 512 * 1024 + 1].into(), PutMode::Overwrite).await.is_err());
    assert_eq!(of_bob.get(&key).await.unwrap().unwrap(), "two");
}
