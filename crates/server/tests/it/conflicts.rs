//! What two sides changed, as it waits for a decision, and the decision.

use model::Genesis;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::{Device, TestServer, read_json};

struct Side<'a> {
    device: &'a Device,
    genesis: &'a Genesis,
}

impl Side<'_> {
    fn at(&self, rest: &str) -> String {
        format!("/workspaces/{}/{rest}", self.genesis.workspace())
    }

    async fn put(&self, path: &str, body: &str) -> Value {
        let path = self.at(&format!("files/{path}"));
        let request = self.device.request(Method::PUT, &path).body(body.to_owned());
        let (status, node) = read_json(request.send().await.unwrap()).await;
        assert!(status.is_success(), "{node}");
        node
    }

    async fn post(&self, what: &str, body: Value) -> (StatusCode, Value) {
        let request = self.device.request(Method::POST, &self.at(what)).json(&body);
        read_json(request.send().await.unwrap()).await
    }

    /// Returns what is in a file, or how it is refused.
    async fn read(&self, path: &str) -> String {
        let path = self.at(&format!("files/{path}"));
        let answer = self.device.request(Method::GET, &path).send().await.unwrap();
        match answer.status() {
            StatusCode::OK => answer.text().await.unwrap(),
            status => status.to_string(),
        }
    }

    /// Returns all conflicts, asked for one by one.
    async fn conflicts(&self) -> Vec<Value> {
        let (mut found, mut cursor) = (Vec::new(), String::new());
        loop {
            let (status, page) =
                self.device.get(&self.at(&format!("conflicts?limit=1{cursor}"))).await;
            assert_eq!(status, StatusCode::OK, "{page}");
            found.extend(page["conflicts"].as_array().unwrap().iter().cloned());
            match page["next"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => {
                    assert_eq!(page["count"], json!(found.len()));
                    return found;
                }
            }
        }
    }

    /// Puts a file that two sides changed, and the copy of one of them, marked.
    async fn quarrel(&self, name: &str) -> (Value, Value) {
        self.put(name, "first").await;
        let original = self.put(name, "theirs").await;
        let copy = self.put(&format!("{name}%20(conflict%20laptop)"), "mine").await;
        let mark = json!({
            "node": copy["id"], "version": 1, "original": original["id"], "base": 1,
        });
        let (status, copy) = self.post("conflicts", mark.clone()).await;
        assert_eq!((status, &copy["is_conflict"]), (StatusCode::OK, &json!(true)), "{copy}");
        let (status, again) = self.post("conflicts", mark).await;
        assert_eq!(status, StatusCode::PRECONDITION_FAILED, "{again}");
        (original, copy)
    }

    async fn decide(&self, sides: &(Value, Value), keep: &str) -> (StatusCode, Value) {
        let (original, copy) = sides;
        self.post(
            "resolve",
            json!({
                "node": copy["id"], "version": copy["version"],
                "original_version": original["version"], "keep": keep,
            }),
        )
        .await
    }
}

#[tokio::test]
async fn conflicts_are_listed_and_decided_and_nothing_is_lost() {
    let server = TestServer::start().await;
    let device = server.device("ada").await;
    let genesis = device.create_workspace("home").await;
    let side = Side { device: &device, genesis: &genesis };
    assert!(side.conflicts().await.is_empty());
    let (a, b, c) = (side.quarrel("a").await, side.quarrel("b").await, side.quarrel("c").await);
    let listed = side.conflicts().await;
    let copies: Vec<_> = listed.iter().map(|line| &line["copy"]).collect();
    assert_eq!(copies, [&c.1, &b.1, &a.1], "the newest first");
    assert_eq!((&listed[2]["original"], &listed[2]["base"]), (&a.0, &json!(1)));
    assert_eq!(listed[2]["device_name"], json!("laptop"));
    assert_eq!(listed[2]["time"], json!(1_700_000_000));

    // The original stays, and the copy is where deleted things are.
    let (status, kept) = side.decide(&a, "original").await;
    assert_eq!((status, &kept), (StatusCode::OK, &a.0), "{kept}");
    assert_eq!(side.read("a").await, "theirs");
    assert_eq!(side.read("a%20(conflict%20laptop)").await, "404 Not Found");
    let (status, back) = side.post("restore", json!({ "node": a.1["id"] })).await;
    assert_eq!((status, &back["is_conflict"]), (StatusCode::CREATED, &json!(false)));
    assert_eq!(side.read("a%20(conflict%20laptop)").await, "mine");

    // The copy is the next version of the original, whose versions stay.
    let (status, kept) = side.decide(&b, "copy").await;
    assert_eq!((status, &kept["id"], &kept["path"]), (StatusCode::OK, &b.0["id"], &json!("b")));
    assert_eq!(
        (side.read("b").await, side.read("b?version=2").await),
        ("mine".into(), "theirs".into())
    );
    assert_eq!(side.read("b%20(conflict%20laptop)").await, "404 Not Found");

    // Both, under a name that nobody has.
    let (original, copy) = &c;
    let both = |name: &str| {
        json!({
            "node": copy["id"], "version": 2, "original_version": original["version"],
            "keep": "both", "name": name,
        })
    };
    for (name, expected) in [
        ("b", StatusCode::PRECONDITION_FAILED),
        ("x/y", StatusCode::BAD_REQUEST),
        (".syncline", StatusCode::BAD_REQUEST),
        ("", StatusCode::BAD_REQUEST),
    ] {
        let (status, refused) = side.post("resolve", both(name)).await;
        assert_eq!(status, expected, "{name}: {refused}");
    }
    let (status, kept) = side.post("resolve", both("c%20of%20mine")).await;
    assert_eq!(
        (status, &kept["id"], &kept["name"]),
        (StatusCode::OK, &copy["id"], &json!("c of mine"))
    );
    assert_eq!(
        (side.read("c").await, side.read("c%20of%20mine").await),
        ("theirs".into(), "mine".into())
    );
    assert!(side.conflicts().await.is_empty());
    for cursor in ["x", "1", "1-x"] {
        let (status, _) = device.get(&side.at(&format!("conflicts?cursor={cursor}"))).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{cursor}");
    }
}

#[tokio::test]
async fn nobody_decides_about_what_they_have_not_seen() {
    let server = TestServer::start().await;
    let device = server.device("ada").await;
    let genesis = device.create_workspace("home").await;
    let side = Side { device: &device, genesis: &genesis };
    let seen = side.quarrel("a").await;
    side.put("a", "newer").await;
    for keep in ["copy", "original", "both"] {
        let (status, refused) = side.decide(&seen, keep).await;
        assert_eq!(status, StatusCode::PRECONDITION_FAILED, "{keep}: {refused}");
    }
    let copy = side.put("a%20(conflict%20laptop)", "mine too").await;
    assert_eq!(copy["is_conflict"], json!(true), "an edit of a copy decides nothing");
    let original = side.conflicts().await[0]["original"].clone();
    let (status, _) = side.decide(&(original.clone(), seen.1), "copy").await;
    assert_eq!(status, StatusCode::PRECONDITION_FAILED);

    // Where the original is gone, the copy can only be kept.
    let path = side.at("files/a");
    assert_eq!(device.status(Method::DELETE, &path, vec![]).await, StatusCode::NO_CONTENT);
    assert_eq!(side.conflicts().await[0]["original"], Value::Null);
    let alone = (Value::Null, copy);
    for keep in ["copy", "original"] {
        let (status, refused) = side.decide(&alone, keep).await;
        assert_eq!((status, &refused["code"]), (StatusCode::CONFLICT, &json!("conflict")));
    }
    // The list is there after a new start, too.
    let server = server.stop().await.start().await;
    assert_eq!(side.conflicts().await.len(), 1);
    let (status, _) = side.decide(&alone, "both").await;
    assert_eq!(status, StatusCode::OK);
    let (status, refused) = side.decide(&alone, "both").await;
    assert_eq!(status, StatusCode::PRECONDITION_FAILED, "{refused}");
    assert_eq!(side.read("a%20(conflict%20laptop)").await, "mine too");
    assert!(side.conflicts().await.is_empty());
    let bob = server.device("bob").await;
    let bobs = Side { device: &bob, genesis: &genesis };
    assert_eq!(bob.get(&bobs.at("conflicts")).await.0, StatusCode::NOT_FOUND);
    assert_eq!(bobs.decide(&alone, "both").await.0, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn only_a_file_beside_something_that_was_there_is_marked() {
    let server = TestServer::start().await;
    let device = server.device("ada").await;
    let genesis = device.create_workspace("home").await;
    let side = Side { device: &device, genesis: &genesis };
    let (original, copy) = side.quarrel("a").await;
    let other = side.put("other", "other").await;
    let folder = side.at("folders/f");
    assert_eq!(device.status(Method::PUT, &folder, vec![]).await, StatusCode::CREATED);
    let (_, folder) = device.get(&side.at("nodes/f")).await;
    let nobody = json!("ab".repeat(16));
    let mark = |node: &Value, version: u64, original: &Value, base: u64| json!({ "node": node, "version": version, "original": original, "base": base });
    for (mark, expected) in [
        (mark(&copy["id"], 2, &original["id"], 1), StatusCode::CONFLICT),
        (mark(&other["id"], 1, &other["id"], 1), StatusCode::NOT_FOUND),
        (mark(&other["id"], 1, &nobody, 0), StatusCode::NOT_FOUND),
        (mark(&other["id"], 1, &original["id"], 3), StatusCode::NOT_FOUND),
        (mark(&nobody, 1, &original["id"], 1), StatusCode::NOT_FOUND),
        (mark(&json!("x"), 1, &original["id"], 1), StatusCode::NOT_FOUND),
        (mark(&folder["id"], 2, &original["id"], 1), StatusCode::PRECONDITION_FAILED),
    ] {
        let (status, refused) = side.post("conflicts", mark.clone()).await;
        assert_eq!(status, expected, "{mark}: {refused}");
    }
    let (status, refused) = side.decide(&(Value::Null, other), "both").await;
    assert_eq!((status, &refused["code"]), (StatusCode::CONFLICT, &json!("conflict")));
    assert_eq!(side.conflicts().await.len(), 1);
}
