//! Who may do what, as a table: every endpoint, asked without a token, with a false one, by another account, by a
//! revoked device, and by the owner.

use model::codec::encode_message;
use reqwest::{Method, StatusCode};

use crate::support::{Device, TestServer, genesis, http, noise, pack_id, pack_path};

const UNAUTHORIZED: StatusCode = StatusCode::UNAUTHORIZED;

#[tokio::test]
async fn every_endpoint_answers_only_whom_it_may() {
    let server = TestServer::start().await;
    let (owner, other) = (server.device("ada").await, server.device("bob").await);
    let revoked = server.device("ada").await;
    let path = format!("/devices/{}", revoked.id);
    assert_eq!(owner.status(Method::DELETE, &path, vec![]).await, StatusCode::NO_CONTENT);
    let stranger = Device { token: "ab".repeat(32), ..owner.clone() };

    let home = owner.create_workspace("home").await;
    let id = home.workspace();
    let (pack, page) = (noise(100), noise(100));
    assert_eq!(owner.put_pack(&home, &pack).await, StatusCode::CREATED);
    let (pack_at, page_hex) = (pack_path(&home, &pack), pack_id(&page).to_string());
    let page_at = format!("/workspaces/{id}/objects/pages/{}/{page_hex}", &page_hex[..2]);
    let device_at = format!("/devices/{}", owner.id);
    let new = encode_message(&genesis("new"));
    let rename = br#"{"name": "new name"}"#.to_vec();

    let (ok, created, gone) = (StatusCode::OK, StatusCode::CREATED, StatusCode::NO_CONTENT);
    let absent = StatusCode::NOT_FOUND;
    // Method, address, body, what another account gets, what the owner gets.
    let table = [
        (Method::GET, "/whoami".to_owned(), vec![], ok, ok),
        (Method::GET, "/devices".to_owned(), vec![], ok, ok),
        (Method::PATCH, device_at.clone(), rename, absent, ok),
        (Method::GET, "/workspaces".to_owned(), vec![], ok, ok),
        (Method::POST, "/workspaces".to_owned(), new, created, StatusCode::CONFLICT),
        (Method::GET, "/workspaces/home".to_owned(), vec![], absent, ok),
        (Method::GET, format!("/workspaces/{id}"), vec![], absent, ok),
        (Method::PUT, pack_at.clone(), pack.clone(), absent, ok),
        (Method::GET, pack_at.clone(), vec![], absent, ok),
        (Method::HEAD, pack_at.clone(), vec![], absent, ok),
        (Method::DELETE, pack_at, vec![], absent, StatusCode::FORBIDDEN),
        (Method::PUT, page_at.clone(), page, absent, created),
        (Method::GET, page_at.clone(), vec![], absent, ok),
        (Method::HEAD, page_at.clone(), vec![], absent, ok),
        (Method::GET, format!("/workspaces/{id}/objects"), vec![], absent, ok),
        (Method::DELETE, page_at, vec![], absent, gone),
        (Method::DELETE, device_at, vec![], absent, gone),
    ];
    for (method, path, body, to_other, to_owner) in table {
        let ask = async |device: &Device| {
            let request = device.request(method.clone(), &path).body(body.clone());
            let request = request.header("content-type", "application/json");
            request.send().await.unwrap().status()
        };
        let url = server.url(&format!("/api/v1{path}"));
        let anonymous =
            http().request(method.clone(), url).body(body.clone()).send().await.unwrap();
        let at = format!("{method} {path}");
        assert_eq!(anonymous.status(), UNAUTHORIZED, "{at} without a token");
        assert_eq!(ask(&stranger).await, UNAUTHORIZED, "{at} with a false token");
        assert_eq!(ask(&revoked).await, UNAUTHORIZED, "{at} by a revoked device");
        assert_eq!(ask(&other).await, to_other, "{at} by another account");
        assert_eq!(ask(&owner).await, to_owner, "{at} by the owner");
    }
    assert_eq!(owner.get("/whoami").await.0, UNAUTHORIZED, "the owner revoked its own device");
}

#[tokio::test]
async fn live_door_answers_only_whom_it_may() {
    let server = TestServer::start().await;
    let (owner, other) = (server.device("ada").await, server.device("bob").await);
    let home = owner.create_workspace("home").await;
    let stranger = Device { token: "ab".repeat(32), ..owner.clone() };
    use model::wire::RefusalKind::{Forbidden, NotFound};
    for (device, kind) in [(&stranger, Forbidden), (&other, NotFound)] {
        let error = device.open_log(home.workspace()).await.unwrap_err();
        assert!(error.is_refusal(kind), "{error:?}");
    }
    owner.open_log(home.workspace()).await.unwrap();
}

#[tokio::test]
async fn health_is_public_and_unknown_addresses_are_problems() {
    let server = TestServer::start().await;
    let health = http().get(server.url("/healthz")).send().await.unwrap();
    assert_eq!(health.status(), StatusCode::OK);
    for path in ["/", "/api/v1", "/api/v2/whoami", "/api/v1/workspaces/a/b/c"] {
        let response = http().get(server.url(path)).send().await.unwrap();
        assert_eq!(response.status(), StatusCode::NOT_FOUND, "{path}");
        assert_eq!(response.headers()["content-type"], "application/problem+json");
        assert_eq!(response.headers()["x-content-type-options"], "nosniff");
    }
    let long = format!("/api/v1/workspaces/{}", "x".repeat(9000));
    let response = http().get(server.url(&long)).send().await.unwrap();
    assert_eq!(response.status(), StatusCode::URI_TOO_LONG);
    let request = http().get(server.url("/healthz")).header("x-long", "y".repeat(17_000));
    let response = request.send().await.unwrap();
    assert_eq!(response.status(), StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);
}
