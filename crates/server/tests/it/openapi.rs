//! The description of the REST door, and what the doors answer at.

use std::collections::BTreeSet;
use std::path::Path;

use reqwest::Method;
use serde_json::Value;
use server::doors::openapi;

use crate::support::{TestServer, noise, pack_id};

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn committed_document_is_that_of_the_program() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/openapi.json");
    let help = "run: syncline admin export-openapi > docs/openapi.json";
    assert!(read(&path) == openapi::text(), "{help}");
}

/// Addresses in the sources of the doors of `/api/v1`.
fn routes() -> BTreeSet<String> {
    let doors = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/doors");
    // WebDAV, and what browsers show.
    let of_others = ["doors/dav/workspaces.rs", "doors/page.rs", "doors/web.rs"];
    let (mut found, mut waiting) = (BTreeSet::new(), vec![doors]);
    while let Some(folder) = waiting.pop() {
        for entry in folder.read_dir().unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                waiting.push(path);
            } else if !of_others.iter().any(|other| path.ends_with(other)) {
                let text = read(&path);
                let routes =
                    text.split(".route(").skip(1).filter_map(|rest| rest.split('"').nth(1));
                found.extend(routes.map(|route| route.replace("{*", "{")));
            }
        }
    }
    found
}

#[test]
fn document_has_every_route_and_no_other() {
    let document = openapi::document();
    let described: BTreeSet<_> = document["paths"].as_object().unwrap().keys().cloned().collect();
    assert_eq!(described, routes());
}

#[tokio::test]
async fn document_has_every_method_and_no_other() {
    let server = TestServer::start().await;
    let device = server.device("ada").await;
    let genesis = device.create_workspace("home").await;
    let document = openapi::document();
    for (path, described) in document["paths"].as_object().unwrap() {
        let described: BTreeSet<_> =
            described.as_object().unwrap().keys().map(|method| method.to_uppercase()).collect();
        let workspace = genesis.workspace().to_string();
        let address = path.replace("{workspace}", &workspace).replace(['{', '}'], "");
        let answer = device.request(Method::TRACE, &address).send().await.unwrap();
        assert_eq!(answer.status(), 405, "{path}");
        let allowed: BTreeSet<_> =
            answer.headers()["allow"].to_str().unwrap().split(',').map(str::to_owned).collect();
        // Where something can be got, HEAD is answered, too, and need not be described.
        let without_head = |methods: &BTreeSet<String>| {
            methods.iter().filter(|method| *method != "HEAD").cloned().collect::<Vec<_>>()
        };
        assert_eq!(without_head(&described), without_head(&allowed), "{path}");
    }
}

#[tokio::test]
async fn workspace_is_found_by_its_name_wherever_it_is_by_its_id() {
    let server = TestServer::start().await;
    let device = server.device("ada").await;
    let genesis = device.create_workspace("home").await;
    let pack = noise(1000);
    device.put_pack(&genesis, &pack).await;
    let (id, pack) = (genesis.workspace().to_string(), pack_id(&pack).to_string());
    let key = format!("packs/{}/{pack}", &pack[..2]);
    let document = openapi::document();
    let mut found = 0;
    for (path, methods) in document["paths"].as_object().unwrap() {
        let is_asked = path.contains("{workspace}") && !path.ends_with("/events");
        if !is_asked || methods.get("get").is_none() {
            continue;
        }
        let ask = async |workspace: &str| {
            let address = path.replace("{workspace}", workspace).replace("{pack}", &pack);
            let address = address.replace("{key}", &key).replace(['{', '}'], "");
            device.request(Method::GET, &address).send().await.unwrap().status()
        };
        let by_id = ask(&id).await;
        assert_eq!(ask("home").await, by_id, "{path}");
        found += usize::from(by_id.is_success());
    }
    assert!(found >= 7, "{found}");
}

#[test]
fn everything_that_the_document_refers_to_is_in_it() {
    let document = openapi::document();
    let mut waiting = vec![&document];
    let mut count = 0;
    while let Some(value) = waiting.pop() {
        match value {
            Value::Object(fields) => {
                if let Some(Value::String(reference)) = fields.get("$ref") {
                    let pointer = reference.strip_prefix('#').unwrap();
                    assert!(document.pointer(pointer).is_some(), "{reference}");
                    count += 1;
                }
                waiting.extend(fields.values());
            }
            Value::Array(items) => waiting.extend(items),
            _ => {}
        }
    }
    assert!(count > 100, "{count}");
}
