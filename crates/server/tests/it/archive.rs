//! Folders behind links as archives.

use reqwest::{Method, StatusCode};
use serde_json::json;

use crate::links::Place;
use crate::support::{TestServer, http, noise};

#[tokio::test]
async fn a_folder_comes_as_an_archive_of_what_is_below_it_and_is_one_download() {
    let place = Place::new(TestServer::start().await).await;
    let long = noise(3 << 20);
    place.make(Method::PUT, "files/Attic/Photos/trip/long", &long).await;
    place.make(Method::PUT, "files/Attic/Photos/empty", b"").await;
    let request = json!({ "path": "Attic/Photos", "downloads_max": 2 });
    let (_, secret) = place.link(request).await;
    let url = place.server.url(&format!("/api/v1/public/{secret}/archive"));
    let head = http().head(&url).send().await.unwrap();
    let answer = http().get(&url).send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    let length = answer.headers()["content-length"].clone();
    assert_eq!(head.headers()["content-length"], length);
    let name = answer.headers()["content-disposition"].to_str().unwrap().to_owned();
    assert_eq!(name, "attachment; filename*=UTF-8''Photos.zip");
    let bytes = answer.bytes().await.unwrap();
    assert_eq!(length, bytes.len().to_string().as_str());
    let files = unpack(&bytes);
    let named = |name: &str| &files.iter().find(|file| file.0 == name).unwrap().1;
    let names: Vec<&str> = files.iter().map(|file| file.0.as_str()).collect();
    let wanted = ["empty", "one.jpg", "trip/", "trip/long", "trip/two.jpg"];
    let wanted: Vec<String> = wanted.iter().map(|name| format!("Photos/{name}")).collect();
    assert_eq!(names[0], "Photos/");
    assert_eq!(names[1..], wanted);
    assert!(*named("Photos/trip/long") == long && named("Photos/empty").is_empty());
    assert_eq!(named("Photos/one.jpg"), b"the first picture");
    assert!(!String::from_utf8_lossy(&bytes).contains("sibling"));

    let part = place.ask(&format!("{secret}/archive/trip"), &[]).await;
    let part = part.bytes().await.unwrap();
    assert_eq!(unpack(&part).last().unwrap().0, "trip/two.jpg");
    place.assert_gone(&secret).await;
    let (_, file) = place.link(json!({ "path": "Attic/Photos/one.jpg" })).await;
    assert_eq!(place.json(&format!("{file}/archive")).await.0, StatusCode::CONFLICT);
}

#[tokio::test]
async fn who_is_signed_in_gets_any_folder_as_an_archive() {
    let server = TestServer::start().await;
    let device = server.device("ada").await;
    let genesis = device.create_workspace("home").await;
    let at = |rest: &str| format!("/workspaces/{}/{rest}", genesis.workspace());
    for folder in ["folders/a", "folders/a/b"] {
        assert_eq!(device.status(Method::PUT, &at(folder), vec![]).await, StatusCode::CREATED);
    }
    let long = noise(2 << 20);
    for (path, body) in [("files/a/b/long", &long[..]), ("files/a/one", b"1"), ("files/top", b"2")]
    {
        assert_eq!(device.status(Method::PUT, &at(path), body.to_vec()).await, StatusCode::CREATED);
    }
    let get = async |path: &str| {
        let head = device.request(Method::HEAD, &at(path)).send().await.unwrap();
        let answer = device.request(Method::GET, &at(path)).send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::OK);
        assert_eq!(head.headers()["content-length"], answer.headers()["content-length"]);
        let name = answer.headers()["content-disposition"].to_str().unwrap().to_owned();
        (name, unpack(&answer.bytes().await.unwrap()))
    };
    let (name, files) = get("archive/a").await;
    assert_eq!(name, "attachment; filename*=UTF-8''a.zip");
    let names: Vec<&str> = files.iter().map(|file| file.0.as_str()).collect();
    assert_eq!(names, ["a/", "a/b/", "a/b/long", "a/one"]);
    assert!(files[2].1 == long && files[3].1 == b"1");
    let (name, files) = get("archive").await;
    assert_eq!((&*name, files.len()), ("attachment; filename*=UTF-8''files.zip", 5));
    let (status, problem) = device.get(&at("archive/top")).await;
    assert_eq!((status, &problem["code"]), (StatusCode::CONFLICT, &json!("conflict")));
    assert_eq!(device.get(&at("archive/none")).await.0, StatusCode::NOT_FOUND);
    let bob = server.device("bob").await;
    assert_eq!(bob.get(&at("archive/a")).await.0, StatusCode::NOT_FOUND);
}

/// Reads an archive by its directory, as programs do, and compares checksums.
fn unpack(bytes: &[u8]) -> Vec<(String, Vec<u8>)> {
    let number = |at: usize, length: usize| {
        let bytes = bytes[at..at + length].iter().rev();
        bytes.fold(0, |number, byte| number << 8 | usize::from(*byte))
    };
    let end = bytes.len() - 22;
    assert_eq!(number(end, 4), 0x0605_4b50);
    let (count, mut at) = (number(end + 10, 2), number(end + 16, 4));
    let mut files = Vec::new();
    for _ in 0..count {
        assert_eq!(number(at, 4), 0x0201_4b50);
        let [name, extra] = [28, 30].map(|place| number(at + place, 2));
        let path = String::from_utf8(bytes[at + 46..at + 46 + name].to_vec()).unwrap();
        let (size, header) = (number(at + 24, 4), number(at + 42, 4));
        assert_eq!(number(header, 4), 0x0403_4b50);
        let begin = header + 30 + number(header + 26, 2) + number(header + 28, 2);
        let content = bytes[begin..begin + size].to_vec();
        assert_eq!(number(at + 16, 4), crc32(&content) as usize, "{path}");
        files.push((path, content));
        at += 46 + name + extra;
    }
    assert_eq!(at, end);
    files
}

/// The checksum of ZIP files, bit by bit.
fn crc32(bytes: &[u8]) -> u32 {
    let step = |sum: u32, _| (sum >> 1) ^ (0xedb8_8320 & (sum & 1).wrapping_neg());
    !bytes.iter().fold(!0, |sum, byte| (0..8).fold(sum ^ u32::from(*byte), step))
}
