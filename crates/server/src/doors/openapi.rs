//! The description of `/api/v1` for programs (OpenAPI 3.1). It is committed as `docs/openapi.json`; tests compare that with
//! this, and the addresses in it with those that the doors answer at.

use serde_json::{Map, Value, json};

mod account;
mod operations;
mod public;
mod schemas;

use account::ACCOUNT;
use operations::{ACCOUNTS, FILES, Matter, OBJECTS, Operation, SHARING};
use public::PUBLIC;

/// Returns the document.
pub fn document() -> Value {
    let mut paths = Map::new();
    let all = [ACCOUNTS, ACCOUNT, SHARING, PUBLIC, OBJECTS, FILES];
    for operation in all.into_iter().flatten() {
        let path = paths.entry(operation.path).or_insert_with(|| json!({}));
        path[operation.method] = operation.describe();
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Syncline",
            "version": "1",
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
            "description": "Accounts, devices, workspaces and files at a server. docs/guide/api.md has it in words.",
        },
        "servers": [{ "url": "/api/v1" }],
        "security": [{ "token": [] }],
        "paths": paths,
        "components": {
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
            "parameters": schemas::parameters(),
            "responses": { "Problem": {
                "description": "What went wrong",
                "content": { "application/problem+json": { "schema": reference("Problem") } },
            } },
            "schemas": schemas::schemas(),
        },
    })
}

/// Returns the document as it is committed.
pub fn text() -> String {
    let document = in_order(document());
    let mut text = serde_json::to_string_pretty(&document).expect("a value has a text");
    text.push('\n');
    text
}

/// Sorts the fields of all objects: whether a map does so by itself depends on what else is built with it.
fn in_order(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.into_iter().collect();
            fields.sort_by(|one, other| one.0.cmp(&other.0));
            Value::Object(fields.into_iter().map(|(name, field)| (name, in_order(field))).collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(in_order).collect()),
        other => other,
    }
}

fn reference(schema: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{schema}") })
}

impl Matter {
    fn content(self) -> Option<Value> {
        Some(match self {
            Self::None => return None,
            Self::Json(schema) => json!({ "application/json": { "schema": reference(schema) } }),
            Self::List(schema) => json!({ "application/json": {
                "schema": { "type": "array", "items": reference(schema) },
            } }),
            Self::Bytes => json!({ "application/octet-stream": {} }),
            Self::BytesOr(schema) => json!({
                "application/octet-stream": {},
                "application/json": { "schema": reference(schema) },
            }),
            Self::Zip => json!({ "application/zip": {} }),
            Self::Events => json!({ "text/event-stream": { "schema": { "type": "string" } } }),
        })
    }
}

impl Operation {
    fn describe(&self) -> Value {
        let names = self.path.split(['{', '}']).skip(1).step_by(2);
        let parameters: Vec<Value> = names
            .chain(self.parameters.iter().copied())
            .map(|name| json!({ "$ref": format!("#/components/parameters/{name}") }))
            .collect();
        let mut answers = Map::new();
        for (status, matter) in self.answers {
            let mut answer = json!({ "description": description(*status) });
            if let Some(content) = matter.content() {
                answer["content"] = content;
            }
            answers.insert(status.to_string(), answer);
        }
        answers.insert("default".to_owned(), json!({ "$ref": "#/components/responses/Problem" }));
        let mut operation = json!({
            "operationId": self.name,
            "summary": self.summary,
            "parameters": parameters,
            "responses": answers,
        });
        if let Some(content) = self.body.content() {
            // No bytes are an empty file.
            let is_required = !matches!(self.body, Matter::Bytes);
            operation["requestBody"] = json!({ "required": is_required, "content": content });
        }
        if ["/login", "/login/begin", "/login/finish", "/sign-in/oidc"].contains(&self.path)
            || self.path.starts_with("/join")
            || self.path.starts_with("/public/")
        {
            operation["security"] = json!([]);
        }
        operation
    }
}

fn description(status: u16) -> &'static str {
    match status {
        101 => "The connection is a WebSocket from here on",
        201 => "Made",
        202 => "Nothing was changed yet: go on with this message",
        204 => "Done",
        206 => "A part",
        304 => "You have it",
        _ => "Found or done",
    }
}
