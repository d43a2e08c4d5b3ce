//! The door of WebDAV.

use model::Genesis;
use reqwest::{Method, Response, StatusCode};
use serde_json::json;
use server::Admin;

use crate::support::{Device, PASSWORD, SystemRandom, TestServer, http, noise};

struct Place {
    server: TestServer,
    device: Device,
    genesis: Genesis,
}

async fn place() -> Place {
    let server = TestServer::start().await;
    let device = server.device("ada").await;
    let genesis = device.create_workspace("my home").await;
    Place { server, device, genesis }
}

impl Place {
    async fn ask_as(
        &self,
        (user, password): (&str, &str),
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Response {
        let url = self.server.url(&format!("/dav/my%20home/{path}"));
        let request = http().request(Method::from_bytes(method.as_bytes()).unwrap(), url);
        let request =
            headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        request.basic_auth(user, Some(password)).body(body.to_vec()).send().await.unwrap()
    }

    async fn ask(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Response {
        self.ask_as(("ada", PASSWORD), method, path, headers, body).await
    }

    async fn status(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> u16 {
        self.ask(method, path, headers, body).await.status().as_u16()
    }

    async fn list(&self, path: &str, depth: &str, body: &str) -> String {
        let response = self.ask("PROPFIND", path, &[("depth", depth)], body.as_bytes()).await;
        assert_eq!(response.status(), StatusCode::MULTI_STATUS);
        response.text().await.unwrap()
    }

    /// Gives a path in an address as the header `Destination` has it.
    fn to(&self, path: &str) -> String {
        self.server.url(&format!("/dav/my%20home/{path}"))
    }
}

const LOCK: &[u8] = b"<lockinfo xmlns=\"DAV:\"><lockscope><exclusive/></lockscope>\
    <locktype><write/></locktype><owner>me &amp; you</owner></lockinfo>";

#[tokio::test]
async fn files_go_in_and_out_and_are_those_of_the_other_door() {
    let place = place().await;
    assert_eq!(place.status("MKCOL", "d", &[], b"").await, 201);
    assert_eq!(place.status("MKCOL", "d", &[], b"").await, 405);
    assert_eq!(place.status("MKCOL", "x/y", &[], b"").await, 409);
    assert_eq!(place.status("MKCOL", "e", &[], b"<x/>").await, 415);
    let long = noise(3 << 20);
    let response = place.ask("PUT", "d/a%20%26%20b", &[("x-oc-mtime", "1500000000")], &long).await;
    assert_eq!(response.status(), StatusCode::CREATED);
    assert_eq!(response.headers()["x-oc-mtime"], "accepted");
    assert_eq!(
        place.status("PUT", "d/a%20%26%20b", &[("x-oc-mtime", "1500000000")], &long).await,
        204
    );
    let got = place.ask("GET", "d/a%20%26%20b", &[("range", "bytes=1000000-1999999")], b"").await;
    assert_eq!(got.status(), StatusCode::PARTIAL_CONTENT);
    assert!(got.bytes().await.unwrap() == long[1_000_000..2_000_000]);

    let text = place.list("d/", "1", "").await;
    for part in [
        "<D:href>/dav/my%20home/d/</D:href>",
        "<D:href>/dav/my%20home/d/a%20%26%20b</D:href>",
        "<D:displayname>a &amp; b</D:displayname>",
        "<D:getcontentlength>3145728</D:getcontentlength>",
        "<D:getlastmodified>Fri, 14 Jul 2017 02:40:00 GMT</D:getlastmodified>",
        "<D:resourcetype><D:collection/></D:resourcetype>",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    let path = format!("/workspaces/{}/nodes/d/a%20%26%20b", place.genesis.workspace());
    assert_eq!(place.device.get(&path).await.1["size"], json!(3 << 20));
    assert_eq!(place.status("DELETE", "d", &[], b"").await, 204);
    assert_eq!(place.status("GET", "d/a%20%26%20b", &[], b"").await, 404);
}

#[tokio::test]
async fn properties_are_found_named_and_missing_and_only_times_are_set() {
    let place = place().await;
    place.status("PUT", "f", &[("x-oc-mtime", "1")], b"abc").await;
    Admin::open(place.server.data()).unwrap().set_quota("ada", Some(1 << 20)).unwrap();
    let body = "<d:propfind xmlns:d=\"DAV:\" xmlns:o=\"http://owncloud.org/ns\"><d:prop>\
        <d:getetag/><o:checksums/><d:nothing/><x xmlns=\"urn:x\"/></d:prop></d:propfind>";
    let text = place.list("f", "0", body).await;
    let sum = "SHA1:a9993e364706816aba3e25717850c26c9cd0d89d MD5:900150983cd24fb0d6963f7d28e17f72";
    assert!(text.contains(sum) && text.contains("404 Not Found"), "{text}");
    assert!(text.contains("<x xmlns=\"urn:x\"></x>"), "{text}");
    let quota = "<propfind xmlns=\"DAV:\"><prop><quota-used-bytes/><quota-available-bytes/></prop></propfind>";
    let text = place.list("", "0", quota).await;
    assert!(text.contains("quota-available-bytes>10"), "{text}");
    assert_eq!(place.status("PROPFIND", "", &[], b"").await, 403);
    assert_eq!(place.status("PROPFIND", "", &[("depth", "1")], b"<propfind").await, 400);
    assert_eq!(place.status("PROPFIND", "none", &[("depth", "0")], b"").await, 404);

    let update = |property: &str| {
        format!(
            "<propertyupdate xmlns=\"DAV:\"><set><prop>{property}</prop></set></propertyupdate>"
        )
    };
    let time = "<getlastmodified>Sun, 06 Nov 1994 08:49:37 GMT</getlastmodified>";
    let both = update(&format!("{time}<x xmlns=\"urn:x\">1</x>"));
    let text = place.ask("PROPPATCH", "f", &[], both.as_bytes()).await.text().await.unwrap();
    assert!(text.contains("403 Forbidden") && text.contains("424 Failed Dependency"), "{text}");
    let unchanged = place.ask("HEAD", "f", &[], b"").await;
    assert_eq!(unchanged.headers()["last-modified"], "Thu, 01 Jan 1970 00:00:01 GMT");
    let text =
        place.ask("PROPPATCH", "f", &[], update(time).as_bytes()).await.text().await.unwrap();
    assert!(text.contains("200 OK") && !text.contains("403"), "{text}");
    let changed = place.ask("HEAD", "f", &[], b"").await;
    assert_eq!(changed.headers()["last-modified"], "Sun, 06 Nov 1994 08:49:37 GMT");
    assert_eq!(place.ask("GET", "f", &[], b"").await.text().await.unwrap(), "abc");
}

#[tokio::test]
async fn move_and_copy_heed_overwrite_and_stay_in_the_workspace() {
    let place = place().await;
    place.device.create_workspace("other").await;
    for name in ["a", "b"] {
        place.status("PUT", name, &[], name.as_bytes()).await;
    }
    let (b, c) = (place.to("b"), place.to("c"));
    assert_eq!(
        place.status("MOVE", "a", &[("destination", &b), ("overwrite", "F")], b"").await,
        412
    );
    assert_eq!(place.status("COPY", "a", &[("destination", &c)], b"").await, 201);
    assert_eq!(place.status("MOVE", "a", &[("destination", &b)], b"").await, 204);
    assert_eq!(place.ask("GET", "b", &[], b"").await.text().await.unwrap(), "a");
    assert_eq!(place.status("GET", "a", &[], b"").await, 404);
    assert_eq!(place.status("MOVE", "b", &[("destination", &b)], b"").await, 403);
    let far = place.server.url("/dav/other/b");
    assert_eq!(place.status("MOVE", "b", &[("destination", &far)], b"").await, 403);
    assert_eq!(place.status("COPY", "b", &[("destination", &place.to("x/y"))], b"").await, 409);
}

#[tokio::test]
async fn lock_keeps_out_who_does_not_name_it() {
    let place = place().await;
    place.status("PUT", "f", &[], b"one").await;
    let locked = place.ask("LOCK", "f", &[("timeout", "Second-100")], LOCK).await;
    assert_eq!(locked.status(), StatusCode::OK);
    let token = locked.headers()["lock-token"].to_str().unwrap().to_owned();
    let text = locked.text().await.unwrap();
    assert!(
        text.contains("<D:owner>me &amp; you</D:owner>") && text.contains("Second-100"),
        "{text}"
    );
    let (own, to) = (format!("({token})"), place.to("g"));
    for (method, headers) in [
        ("PUT", vec![]),
        ("DELETE", vec![]),
        ("MOVE", vec![("destination", to.as_str())]),
        ("LOCK", vec![]),
    ] {
        assert_eq!(place.status(method, "f", &headers, LOCK).await, 423, "{method}");
    }
    assert_eq!(place.status("DELETE", "", &[], b"").await, 423);
    assert_eq!(place.status("PUT", "f", &[("if", &own)], b"two").await, 204);
    assert_eq!(place.status("PUT", "f", &[("if", "(<urn:uuid:none>)")], b"x").await, 412);
    assert_eq!(place.status("LOCK", "f", &[("if", &own)], b"").await, 200);
    assert!(place.list("f", "0", "").await.contains(token.trim_matches(['<', '>'])));
    assert_eq!(place.status("UNLOCK", "f", &[("lock-token", "<urn:uuid:none>")], b"").await, 409);
    assert_eq!(place.status("UNLOCK", "f", &[("lock-token", &token)], b"").await, 204);
    assert_eq!(place.status("PUT", "f", &[], b"three").await, 204);
    assert_eq!(place.status("LOCK", "new", &[], LOCK).await, 201);
    assert_eq!(place.ask("GET", "new", &[], b"").await.text().await.unwrap(), "");
}

#[tokio::test]
async fn password_and_token_let_in_and_nothing_else_does() {
    let place = place().await;
    let status = async |user: &str, password: &str| {
        place
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
