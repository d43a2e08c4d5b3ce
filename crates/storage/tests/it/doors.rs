//! The driver of the server's pack door, against a small honest server and against hostile ones.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use storage::server_door::ServerDoor;
use storage::{ObjectKey, ObjectStore, PutMode, StorageError, conformance};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

use crate::support::{key, memory};

const TOKEN: &str = "device-token";

#[derive(Debug)]
struct Request {
    method: String,
    path: String,
    headers: HashMap<String, String>,
    body: Bytes,
}

async fn read_request(stream: &mut BufReader<TcpStream>) -> Option<Request> {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await.ok()? == 0 {
            return None;
        }
        if line.trim().is_empty() {
            break;
        }
        lines.push(line.trim().to_owned());
    }
    let mut first = lines[0].split(' ');
    let (method, path) = (first.next()?.to_owned(), first.next()?.to_owned());
    let headers: HashMap<String, String> = lines[1..]
        .iter()
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
        .collect();
    let length = headers.get("content-length").map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    Some(Request { method, path, headers, body: body.into() })
}

/// Serves raw answers; `answer` gives the bytes of each, and the connection closes after it.
async fn serve<F, A>(answer: F) -> ServerDoor
where
    F: Fn(Request) -> A + Send + Sync + 'static,
    A: Future<Output = Vec<u8>> + Send,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let answer = Arc::new(answer);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let answer = Arc::clone(&answer);
            tokio::spawn(async move {
                let mut stream = BufReader::new(stream);
                if let Some(request) = read_request(&mut stream).await {
                    let _ = stream.get_mut().write_all(&answer(request).await).await;
                    let _ = stream.get_mut().shutdown().await;
                }
            });
        }
    });
    door(&format!("http://{address}/v1/workspaces/w"))
}

fn door(base: &str) -> ServerDoor {
    // Other tests may have installed it before.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = ServerDoor::client_builder().build().unwrap();
    ServerDoor::new(client, base, TOKEN).unwrap()
}

fn plain(status: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let mut answer = format!(
        "HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n{headers}\r\n"
    )
    .into_bytes();
    answer.extend_from_slice(body);
    answer
}

/// An honest door over a store.
async fn honest(store: Arc<dyn ObjectStore>, request: Request) -> Vec<u8> {
    if request.headers.get("authorization") != Some(&format!("Bearer {TOKEN}")) {
        return plain("401 Unauthorized", "", b"");
    }
    let path = request.path.strip_prefix("/v1/workspaces/w/").expect("the base is kept");
    if let Some(query) = path.strip_prefix("objects?") {
        return honest_list(store.as_ref(), query).await;
    }
    let key = match path.strip_prefix("packs/") {
        Some(hex) => ObjectKey::pack(hex.parse().unwrap()),
        None => ObjectKey::new(path.strip_prefix("objects/").unwrap()).unwrap(),
    };
    match request.method.as_str() {
        "PUT" => {
            let if_absent = request.headers.get("if-none-match").is_some_and(|value| value == "*");
            let mode = if if_absent { PutMode::IfAbsent } else { PutMode::Overwrite };
            match store.put(&key, request.body, mode).await.unwrap() {
                storage::PutOutcome::Written => plain("201 Created", "", b""),
                storage::PutOutcome::Exists => plain("412 Precondition Failed", "", b""),
            }
        }
        "DELETE" => {
            store.delete(&key).await.unwrap();
            plain("204 No Content", "", b"")
        }
        method => match store.get(&key).await.unwrap() {
            None => plain("404 Not Found", "", b""),
            Some(bytes) if method == "HEAD" => format!(
                "HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                bytes.len()
            )
            .into_bytes(),
            Some(bytes) => honest_part(&bytes, request.headers.get("range")),
        },
    }
}

fn honest_part(bytes: &Bytes, range: Option<&String>) -> Vec<u8> {
    let Some(range) = range else { return plain("200 OK", "", bytes) };
    let (start, end) = range.strip_prefix("bytes=").unwrap().split_once('-').unwrap();
    let (start, end) = match start {
        "" => (bytes.len().saturating_sub(end.parse().unwrap_or(usize::MAX)), bytes.len()),
        _ => {
            let end = end.parse().unwrap_or(usize::MAX).saturating_add(1).min(bytes.len());
            (start.parse().unwrap_or(usize::MAX), end)
        }
    };
    if start >= end {
        return plain("416 Range Not Satisfiable", "", b"");
    }
    let header = format!("content-range: bytes {start}-{}/{}\r\n", end - 1, bytes.len());
    plain("206 Partial Content", &header, &bytes[start..end])
}

async fn honest_list(store: &dyn ObjectStore, query: &str) -> Vec<u8> {
    let fields: HashMap<_, _> =
        query.split('&').filter_map(|field| field.split_once('=')).collect();
    let decode = |name: &str| fields[name].replace("%2F", "/");
    let limit = fields["limit"].parse().unwrap();
    let found = store.list(&decode("prefix"), Some(&decode("start_after")), limit).await.unwrap();
    let lines: Vec<_> = found
        .iter()
        .map(|entry| format!(r#"{{"key":"{}","size":{}}}"#, entry.key, entry.size))
        .collect();
    plain(
        "200 OK",
        "content-type: application/json\r\n",
        format!("[{}]", lines.join(",")).as_bytes(),
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn server_door_conforms() {
    for case in conformance::cases() {
        let store = memory();
        let door = serve(move |request| honest(Arc::clone(&store), request)).await;
        println!("{}", case.name);
        (case.run)(Arc::new(door)).await;
    }
}

#[tokio::test]
async fn statuses_become_errors_that_say_what_to_do() {
    type Expected = fn(&StorageError) -> bool;
    let expected: [(&str, Expected); 9] = [
        ("401 Unauthorized", |e| matches!(e, StorageError::PermissionDenied { .. })),
        ("403 Forbidden", |e| {
            matches!(e, StorageError::PermissionDenied { .. } | StorageError::MayOnlyRead { .. })
        }),
        ("413 Payload Too Large", |e| matches!(e, StorageError::TooLarge { .. })),
        ("429 Too Many Requests", |e| matches!(e, StorageError::Busy { .. })),
        ("507 Insufficient Storage", |e| matches!(e, StorageError::NoSpace { .. })),
        ("500 Internal Server Error", StorageError::is_retryable),
        ("503 Service Unavailable", StorageError::is_retryable),
        ("302 Found", |e| matches!(e, StorageError::InvalidAnswer { .. })),
        ("400 Bad Request", |e| matches!(e, StorageError::InvalidAnswer { .. })),
    ];
    for (status, is_expected) in expected {
        let door = serve(move |_| async move {
            plain(status, "location: http://127.0.0.1:1/elsewhere\r\n", b"")
        })
        .await;
        let put = door.put(&key("a"), "x".into(), PutMode::IfAbsent).await.unwrap_err();
        let get = door.get(&key("a")).await.unwrap_err();
        assert!(is_expected(&put) && is_expected(&get), "{status}: {put} / {get}");
        let may_read = matches!(put, StorageError::MayOnlyRead { .. });
        assert_eq!(may_read, status.starts_with("403"), "{status}: {put}");
        assert!(!matches!(get, StorageError::MayOnlyRead { .. }), "{status}: {get}");
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_is_not_reachable_and_the_token_is_not_shown() {
    let door = door("http://127.0.0.1:1/base");
    let error = door.get(&key("a")).await.unwrap_err();
    assert!(error.is_retryable(), "{error}");
    assert!(!format!("{error} {error:?} {door:?}").contains(TOKEN));
}

#[tokio::test]
async fn a_failed_list_is_an_error_and_not_an_empty_list() {
    let door = serve(|_| async { plain("404 Not Found", "", b"") }).await;
    assert!(door.list("", None, 10).await.is_err());
}

#[tokio::test]
async fn hostile_lists_are_refused() {
    for body in [
        r#"[{"key":"../../etc/passwd","size":1}]"#,
        r#"[{"key":"/abs","size":1}]"#,
        r#"[{"key":"log/b","size":1},{"key":"log/a","size":1}]"#,
        r#"[{"key":"packs/x","size":1}]"#,
        r#"[{"key":"log/a","size":1},{"key":"log/b","size":1},{"key":"log/c","size":1}]"#,
        r#"[{"key":"log/a","size":-1}]"#,
        r#"<html>"#,
    ] {
        let door = serve(move |_| async move { plain("200 OK", "", body.as_bytes()) }).await;
        let error = door.list("log/", None, 2).await.unwrap_err();
        assert!(matches!(error, StorageError::InvalidAnswer { .. }), "{body}: {error}");
    }
}

#[tokio::test]
async fn an_endless_body_is_cut_off() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let door = door(&format!("http://{}", listener.local_addr().unwrap()));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut stream = BufReader::new(stream);
                read_request(&mut stream).await;
                let stream = stream.get_mut();
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n").await;
                let block = vec![b'['; 1 << 20];
                while stream.write_all(&block).await.is_ok() {}
            });
        }
    });
    for error in [
        door.get(&key("a")).await.unwrap_err(),
        door.get_range(&key("a"), 0..10).await.unwrap_err(),
        door.list("", None, 10).await.unwrap_err(),
    ] {
        assert!(matches!(error, StorageError::InvalidAnswer { .. }), "{error}");
    }
}

#[tokio::test]
async fn announced_giants_other_parts_and_short_bodies_are_refused() {
    let answers: [&[u8]; 5] = [
        b"HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\nx",
        b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\nconnection: close\r\n\r\nshort",
        b"HTTP/1.1 206 Partial Content\r\ncontent-length: 3\r\ncontent-range: bytes 5-7/20\r\n\r\nabc",
        b"HTTP/1.1 206 Partial Content\r\ncontent-length: 3\r\nconnection: close\r\n\r\nabc",
        b"HTTP/1.1 206 Partial Content\r\ncontent-length: 9\r\ncontent-range: bytes 3-11/20\r\n\r\nabcabcabc",
    ];
    for answer in answers {
        let door = serve(move |_| async move { answer.to_vec() }).await;
        let text = String::from_utf8_lossy(answer);
        assert!(door.get_range(&key("a"), 3..6).await.is_err(), "{text}");
        assert!(door.get(&key("a")).await.is_err(), "{text}");
    }
}

#[tokio::test]
async fn a_silent_server_is_given_up() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let door = door(&format!("http://{}", listener.local_addr().unwrap()))
        .with_request_timeout(Duration::from_millis(50));
    assert!(door.get(&key("a")).await.unwrap_err().is_retryable());
}

#[tokio::test]
async fn bases_that_are_no_servers_are_refused() {
    let client = || ServerDoor::client_builder().build().unwrap();
    let _ = rustls::crypto::ring::default_provider().install_default();
    for (base, token) in [("file:/x", TOKEN), ("nonsense", TOKEN), ("http://host", "with\nnewline")]
    {
        assert!(ServerDoor::new(client(), base, token).is_err(), "{base}");
    }
}
