//! What every door of WebDAV must do, whatever tree stands behind it: a workspace of a server, or a folder of a device. Both
//! rooms tell these stories to a real door.

use reqwest::{Client, Method, Response, StatusCode};

/// A door, and a folder behind it that has nothing in it.
#[derive(Clone)]
pub(crate) struct Door {
    pub(crate) client: Client,
    /// The address of the folder, without a slash at its end.
    pub(crate) root: String,
    pub(crate) user: String,
    pub(crate) password: String,
}

pub(crate) const LOCK: &[u8] = b"<lockinfo xmlns=\"DAV:\"><lockscope><exclusive/></lockscope>\
    <locktype><write/></locktype><owner>me &amp; you</owner></lockinfo>";

impl Door {
    pub(crate) async fn ask_as(
        &self,
        (user, password): (&str, &str),
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Response {
        let request =
            self.client.request(Method::from_bytes(method.as_bytes()).unwrap(), self.to(path));
        let request =
            headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        request.basic_auth(user, Some(password)).body(body.to_vec()).send().await.unwrap()
    }

    pub(crate) async fn ask(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Response {
        self.ask_as((&self.user, &self.password), method, path, headers, body).await
    }

    pub(crate) async fn status(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> u16 {
        self.ask(method, path, headers, body).await.status().as_u16()
    }

    pub(crate) async fn text(&self, path: &str) -> String {
        self.ask("GET", path, &[], b"").await.text().await.unwrap()
    }

    pub(crate) async fn list(&self, path: &str, depth: &str, body: &str) -> String {
        let response = self.ask("PROPFIND", path, &[("depth", depth)], body.as_bytes()).await;
        assert_eq!(response.status(), StatusCode::MULTI_STATUS);
        response.text().await.unwrap()
    }

    /// Gives a path in an address as the header `Destination` has it.
    pub(crate) fn to(&self, path: &str) -> String {
        format!("{}/{path}", self.root)
    }

    /// Gives it as a list has it.
    fn href(&self, path: &str) -> String {
        let (_, rest) = self.root.split_once("://").unwrap();
        format!(
            "{}/{path}",
            rest.split_once('/').map_or(String::new(), |(_, rest)| format!("/{rest}"))
        )
    }
}

pub(crate) async fn files_go_in_and_out(door: &Door, noise: &[u8]) {
    assert_eq!(noise.len(), 3 << 20);
    assert_eq!(door.status("MKCOL", "d", &[], b"").await, 201);
    assert_eq!(door.status("MKCOL", "d", &[], b"").await, 405);
    assert_eq!(door.status("MKCOL", "x/y", &[], b"").await, 409);
    assert_eq!(door.status("MKCOL", "e", &[], b"<x/>").await, 415);
    let time = [("x-oc-mtime", "1500000000")];
    let response = door.ask("PUT", "d/a%20%26%20b", &time, noise).await;
    assert_eq!(response.status(), StatusCode::CREATED);
    assert_eq!(response.headers()["x-oc-mtime"], "accepted");
    assert_eq!(door.status("PUT", "d/a%20%26%20b", &time, noise).await, 204);
    assert_eq!(door.status("PUT", "x/y", &[], b"1").await, 409);
    assert_eq!(door.status("PUT", "d", &[], b"1").await, 409);
    let got = door.ask("GET", "d/a%20%26%20b", &[("range", "bytes=1000000-1999999")], b"").await;
    assert_eq!(got.status(), StatusCode::PARTIAL_CONTENT);
    assert!(got.bytes().await.unwrap() == noise[1_000_000..2_000_000]);
    let whole = door.ask("GET", "d/a%20%26%20b", &[], b"").await;
    assert!(whole.bytes().await.unwrap() == noise);
    assert_eq!(door.status("GET", "d/a%20%26%20b", &[("range", "bytes=3145728-")], b"").await, 416);

    let text = door.list("d/", "1", "").await;
    for part in [
        &format!("<D:href>{}</D:href>", door.href("d/")),
        &format!("<D:href>{}</D:href>", door.href("d/a%20%26%20b")),
        "<D:displayname>a &amp; b</D:displayname>",
        "<D:getcontentlength>3145728</D:getcontentlength>",
        "<D:getlastmodified>Fri, 14 Jul 2017 02:40:00 GMT</D:getlastmodified>",
        "<D:resourcetype><D:collection/></D:resourcetype>",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert_eq!(door.status("GET", "d", &[], b"").await, 409);
    assert_eq!(door.status("DELETE", "d", &[], b"").await, 204);
    assert_eq!(door.status("GET", "d/a%20%26%20b", &[], b"").await, 404);
    assert_eq!(door.status("DELETE", "d", &[], b"").await, 404);
    for path in [".syncline/x", "d/.syncline", "%00"] {
        assert_eq!(door.status("PUT", path, &[], b"1").await, 400, "{path}");
    }
}

pub(crate) async fn who_was_first_wins(door: &Door) {
    let first = door.ask("PUT", "f", &[("if-none-match", "*")], b"one").await;
    assert_eq!(first.status(), StatusCode::CREATED);
    let etag = first.headers()["etag"].to_str().unwrap().to_owned();
    assert_eq!(door.status("PUT", "f", &[("if-none-match", "*")], b"x").await, 412);
    assert_eq!(door.status("GET", "f", &[("if-none-match", &etag)], b"").await, 304);
    let second = door.ask("PUT", "f", &[("if-match", &etag)], b"two").await;
    assert_eq!(second.status(), StatusCode::NO_CONTENT);
    assert_ne!(second.headers()["etag"], etag.as_str());
    assert_eq!(door.status("PUT", "f", &[("if-match", &etag)], b"late").await, 412);
    assert_eq!(door.status("DELETE", "f", &[("if-match", &etag)], b"").await, 412);
    let resource = format!("<{}> ([{etag}])", door.to("f"));
    assert_eq!(door.status("PUT", "g", &[("if", &resource)], b"x").await, 412);
    let now = second.headers()["etag"].to_str().unwrap();
    let resource = format!("<{}> ([{now}])", door.to("f"));
    assert_eq!(door.status("PUT", "g", &[("if", &resource)], b"x").await, 201);
    assert_eq!(door.text("f").await, "two");
    let wrong = [("oc-checksum", "SHA1:0000000000000000000000000000000000000000")];
    assert_eq!(door.status("PUT", "f", &wrong, b"three").await, 400);
    assert_eq!(door.status("PUT", "f", &[("content-range", "bytes 0-0/9")], b"x").await, 400);
    assert_eq!(door.text("f").await, "two");
}

pub(crate) async fn properties_are_found_named_and_missing_and_only_times_are_set(door: &Door) {
    door.status("PUT", "f", &[("x-oc-mtime", "1")], b"abc").await;
    let body = "<d:propfind xmlns:d=\"DAV:\" xmlns:o=\"http://owncloud.org/ns\"><d:prop>\
        <d:getetag/><o:checksums/><d:nothing/><x xmlns=\"urn:x\"/></d:prop></d:propfind>";
    let text = door.list("f", "0", body).await;
    let sum = "SHA1:a9993e364706816aba3e25717850c26c9cd0d89d MD5:900150983cd24fb0d6963f7d28e17f72";
    assert!(text.contains(sum) && text.contains("404 Not Found"), "{text}");
    assert!(text.contains("<x xmlns=\"urn:x\"></x>"), "{text}");
    assert_eq!(door.status("PROPFIND", "", &[], b"").await, 403);
    assert_eq!(door.status("PROPFIND", "", &[("depth", "1")], b"<propfind").await, 400);
    assert_eq!(door.status("PROPFIND", "none", &[("depth", "0")], b"").await, 404);

    let update = |property: &str| {
        format!(
            "<propertyupdate xmlns=\"DAV:\"><set><prop>{property}</prop></set></propertyupdate>"
        )
    };
    let time = "<getlastmodified>Sun, 06 Nov 1994 08:49:37 GMT</getlastmodified>";
    let both = update(&format!("{time}<x xmlns=\"urn:x\">1</x>"));
    let text = door.ask("PROPPATCH", "f", &[], both.as_bytes()).await.text().await.unwrap();
    assert!(text.contains("403 Forbidden") && text.contains("424 Failed Dependency"), "{text}");
    let unchanged = door.ask("HEAD", "f", &[], b"").await;
    assert_eq!(unchanged.headers()["last-modified"], "Thu, 01 Jan 1970 00:00:01 GMT");
    let text = door.ask("PROPPATCH", "f", &[], update(time).as_bytes()).await.text().await.unwrap();
    assert!(text.contains("200 OK") && !text.contains("403"), "{text}");
    let changed = door.ask("HEAD", "f", &[], b"").await;
    assert_eq!(changed.headers()["last-modified"], "Sun, 06 Nov 1994 08:49:37 GMT");
    assert_eq!(door.text("f").await, "abc");
    assert!(door.list("f", "0", body).await.contains(sum), "a new time is no new content");
}

pub(crate) async fn move_and_copy_heed_overwrite(door: &Door) {
    for name in ["a", "b"] {
        door.status("PUT", name, &[], name.as_bytes()).await;
    }
    let (b, c) = (door.to("b"), door.to("c"));
    let kept = [("destination", b.as_str()), ("overwrite", "F")];
    assert_eq!(door.status("MOVE", "a", &kept, b"").await, 412);
    assert_eq!(door.status("COPY", "a", &kept, b"").await, 412);
    assert_eq!(door.status("COPY", "a", &[("destination", &c)], b"").await, 201);
    assert_eq!(door.status("MOVE", "a", &[("destination", &b)], b"").await, 204);
    assert_eq!(door.text("b").await, "a");
    assert_eq!(door.status("GET", "a", &[], b"").await, 404);
    assert_eq!(door.status("MOVE", "b", &[("destination", &b)], b"").await, 403);
    assert_eq!(door.status("COPY", "b", &[("destination", &door.to("x/y"))], b"").await, 409);
    assert_eq!(door.status("MOVE", "none", &[("destination", &b)], b"").await, 404);

    assert_eq!(door.status("MKCOL", "d", &[], b"").await, 201);
    assert_eq!(door.status("MKCOL", "d/e", &[], b"").await, 201);
    assert_eq!(door.status("PUT", "d/e/f", &[("x-oc-mtime", "1500000000")], b"deep").await, 201);
    assert_eq!(door.status("MOVE", "d", &[("destination", &door.to("d/e/in"))], b"").await, 409);
    assert_eq!(door.status("COPY", "d", &[("destination", &door.to("copy"))], b"").await, 201);
    assert_eq!(door.text("copy/e/f").await, "deep");
    let copied = door.ask("HEAD", "copy/e/f", &[], b"").await;
    assert_eq!(copied.headers()["last-modified"], "Fri, 14 Jul 2017 02:40:00 GMT");
    let flat = [("destination", &*door.to("flat")), ("depth", "0")];
    assert_eq!(door.status("COPY", "d", &flat, b"").await, 201);
    assert_eq!(door.status("GET", "flat/e/f", &[], b"").await, 404);
    // What was there is gone with everything in it.
    assert_eq!(door.status("PUT", "flat/old", &[], b"old").await, 201);
    assert_eq!(door.status("MOVE", "d", &[("destination", &door.to("flat"))], b"").await, 204);
    assert_eq!(door.text("flat/e/f").await, "deep");
    assert_eq!(door.status("GET", "flat/old", &[], b"").await, 404);
    assert_eq!(door.status("GET", "d/e/f", &[], b"").await, 404);
    assert_eq!(door.status("COPY", "flat/e/f", &[("destination", &c)], b"").await, 204);
    assert_eq!(door.text("c").await, "deep");
    assert_eq!(door.status("COPY", "c", &[("destination", &door.to("flat"))], b"").await, 204);
    assert_eq!(door.text("flat").await, "deep");
}

pub(crate) async fn lock_keeps_out_who_does_not_name_it(door: &Door) {
    door.status("PUT", "f", &[], b"one").await;
    let locked = door.ask("LOCK", "f", &[("timeout", "Second-100")], LOCK).await;
    assert_eq!(locked.status(), StatusCode::OK);
    let token = locked.headers()["lock-token"].to_str().unwrap().to_owned();
    let text = locked.text().await.unwrap();
    assert!(
        text.contains("<D:owner>me &amp; you</D:owner>") && text.contains("Second-100"),
        "{text}"
    );
    let (own, to) = (format!("({token})"), door.to("g"));
    for (method, headers) in [
        ("PUT", vec![]),
        ("DELETE", vec![]),
        ("MOVE", vec![("destination", to.as_str())]),
        ("LOCK", vec![]),
    ] {
        assert_eq!(door.status(method, "f", &headers, LOCK).await, 423, "{method}");
    }
    assert_eq!(door.status("DELETE", "", &[], b"").await, 423);
    assert_eq!(door.status("PUT", "f", &[("if", &own)], b"two").await, 204);
    assert_eq!(door.status("PUT", "f", &[("if", "(<urn:uuid:none>)")], b"x").await, 412);
    assert_eq!(door.status("LOCK", "f", &[("if", &own)], b"").await, 200);
    assert!(door.list("f", "0", "").await.contains(token.trim_matches(['<', '>'])));
    assert_eq!(door.status("UNLOCK", "f", &[("lock-token", "<urn:uuid:none>")], b"").await, 409);
    assert_eq!(door.status("UNLOCK", "f", &[("lock-token", &token)], b"").await, 204);
    assert_eq!(door.status("PUT", "f", &[], b"three").await, 204);
    assert_eq!(door.status("LOCK", "new", &[], LOCK).await, 201);
    assert_eq!(door.text("new").await, "");
}
