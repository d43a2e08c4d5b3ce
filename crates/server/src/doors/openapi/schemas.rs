//! Parameters and bodies by name.

use content::searching::QUERY_LENGTH_MAX;
use model::commit::DEVICE_NAME_LENGTH_MAX;
use model::entry::WORKSPACE_NAME_LENGTH_MAX;
use serde_json::{Value, json};

use crate::limits::OBJECT_LENGTH_MAX;
use crate::services::identities::{LOCKED_LENGTH_MAX, PUBLIC_LENGTH};

/// The largest number that every reader of JSON reads as it is.
const INTEGER_MAX: u64 = (1 << 53) - 1;

/// Returns the parameters.
pub(super) fn parameters() -> Value {
    let hex =
        |length: u32| json!({ "type": "string", "pattern": format!("^[0-9a-f]{{{length}}}$") });
    let like = |pattern: &str| json!({ "type": "string", "pattern": pattern });
    let count = || json!({ "type": "integer", "minimum": 0, "maximum": INTEGER_MAX });
    let etag = r#"("[0-9a-f]{32}\.[0-9]{1,15}")"#;
    json!({
        "device": in_path("device", &hex(32), "The id of a device"),
        "workspace": in_path("workspace", &text(), "The id of a workspace, or the name that you gave it"),
        "seq": in_path("seq", &count(), "The number of an entry"),
        "pack": in_path("pack", &hex(64), "The id of a pack"),
        "key": in_path("key", &like("^(packs|pages)/[0-9a-f]{2}/[0-9a-f]{64}$"), "The key of an object; its slashes may be encoded or not"),
        "path": in_path("path", &text(), "A path; its slashes may be encoded or not"),
        "user": in_path("user", &text(), "The name of an account"),
        "token": in_path("token", &hex(32), "The id of a token"),
        "subject": in_path("subject", &text(), "What the provider calls a person"),
        "link": in_path("link", &hex(32), "The id of a link"),
        "secret": in_path("secret", &like("^[A-Za-z0-9_-]{43}$"), "What stands in the address of a link"),
        "Syncline-Link-Pass": named("header", "Syncline-Link-Pass", &like(r"^[0-9]{1,15}\.[0-9a-f]{64}$"), "What the password of the link was turned into"),
        "upload": in_path("upload", &hex(32), "The id of an upload"),
        "prefix": named("query", "prefix", &text(), "How keys begin"),
        "start_after": named("query", "start_after", &text(), "Where a list goes on: 'next' of the answer before"),
        "since": named("query", "since", &count(), "The last entry that you have; 0 for none"),
        "length_max": named("query", "length_max", &count(), "How many bytes of entries to send at most; one entry is sent in any case"),
        "limit": named("query", "limit", &count(), "How long a list is at most, and 1,000 at most"),
        "version": named("query", "version", &count(), "A version of the node that is at the path now"),
        "deleted_cursor": named("query", "cursor", &like("^[0-9]{1,15}-[0-9a-f]{32}$"), "Where a list goes on: 'next' of the answer before"),
        "q": required("query", "q", &json!({ "type": "string", "minLength": 1, "maxLength": QUERY_LENGTH_MAX }), "Words with space between them; case and accents do not count"),
        "search_cursor": named("query", "cursor", &like("^[0-3]-[0-9a-f]{32}-([0-9a-f]{2}){0,128}$"), "Where a list goes on: 'next' of the answer before"),
        "activity_cursor": named("query", "cursor", &like("^[0-9]{1,9}$"), "Only what is older: 'next' of the answer before"),
        "cursor": named("query", "cursor", &like("^[0-9]{1,15}-[0-9]{1,15}-[0-9]{1,15}$"), "Where a list goes on: 'next' of the answer before"),
        "If-Match": named("header", "If-Match", &like(&format!(r"^(\*|{etag}(, ?{etag})*)$")), "Only if one of these versions is there, or anything"),
        "If-Absent": named("header", "If-None-Match", &like(r"^\*$"), "Only if nothing is there"),
        "If-None-Match": named("header", "If-None-Match", &text(), "The version that you have, or '*'"),
        "Range": named("header", "Range", &text(), "One range of bytes"),
        "If-Range": named("header", "If-Range", &text(), "A range only of this version, else all of it"),
        "X-OC-Mtime": named("header", "X-OC-Mtime", &like(r"^-?[0-9]{1,15}(\.[0-9]{1,9})?$"), "When the file was modified, in seconds since 1970, perhaps with a fraction"),
        "OC-Checksum": named("header", "OC-Checksum", &like("^(SHA1:[0-9a-f]{40}|MD5:[0-9a-f]{32}|SHA256:[0-9a-f]{64})$"), "SHA1, MD5 or SHA256 of the body, for example SHA1:da39a3ee5e6b4b0d3255bfef95601890afd80709"),
        "Upload-Offset": required("header", "Upload-Offset", &count(), "Where the piece begins"),
        "syncline-incarnation": required("header", "syncline-incarnation", &hex(16), "The life of the device"),
    })
}

fn named(place: &str, name: &str, schema: &Value, description: &str) -> Value {
    json!({ "name": name, "in": place, "schema": schema, "description": description })
}

fn required(place: &str, name: &str, schema: &Value, description: &str) -> Value {
    let mut parameter = named(place, name, schema, description);
    parameter["required"] = json!(true);
    parameter
}

fn in_path(name: &str, schema: &Value, description: &str) -> Value {
    required("path", name, schema, description)
}

/// Returns an object all of whose fields are there.
fn object(fields: Value) -> Value {
    let names: Vec<&String> = fields.as_object().into_iter().flat_map(|it| it.keys()).collect();
    json!({ "type": "object", "required": names, "properties": fields })
}

/// Returns a type, or null.
fn or_null(name: &str) -> Value {
    json!({ "type": [name, "null"] })
}

fn text() -> Value {
    json!({ "type": "string" })
}

/// Bytes in base64, as there is one way to write them.
fn in_base64() -> Value {
    const GROUPS: &str = "([A-Za-z0-9+/]{4})*";
    const END: &str = "([A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=|[A-Za-z0-9+/][AQgw]==)?";
    json!({ "type": "string", "contentEncoding": "base64", "pattern": format!("^{GROUPS}{END}$") })
}

fn number() -> Value {
    json!({ "type": "integer" })
}

fn boolean() -> Value {
    json!({ "type": "boolean" })
}

/// Returns a number of 1 and more, or null.
fn count_or_null() -> Value {
    json!({ "type": ["integer", "null"], "minimum": 1, "maximum": INTEGER_MAX })
}

/// Returns the name of a device, or of what counts as one. Its limit is in bytes, of which a letter may have four.
fn device_name() -> Value {
    json!({ "type": "string", "minLength": 1, "maxLength": DEVICE_NAME_LENGTH_MAX })
}

/// Returns what others may know of an account.
fn hexadecimal(kind: impl Into<Value>) -> Value {
    json!({ "type": kind.into(), "pattern": format!("^[0-9a-f]{{{}}}$", 2 * PUBLIC_LENGTH) })
}

/// Returns the bodies.
pub(super) fn schemas() -> Value {
    let mut all = of_accounts();
    let more = [
        of_passwords(),
        of_providers(),
        of_links(),
        of_files(),
        of_conflicts(),
        of_activity(),
        of_usage(),
    ];
    for more in more {
        for (name, schema) in more.as_object().into_iter().flatten() {
            all[name.as_str()] = schema.clone();
        }
    }
    all
}

fn of_links() -> Value {
    let list = |schema: &str| json!({ "type": "array", "items": super::reference(schema) });
    let kind = || json!({ "enum": ["file", "folder", null] });
    json!({
        "Link": {
            "type": "object",
            "required": ["id", "path", "maker", "created", "expires", "has_password", "downloads_max", "downloads", "state"],
            "properties": {
                "id": text(), "path": or_null("string"), "maker": text(), "created": number(),
                "expires": or_null("integer"), "has_password": boolean(),
                "downloads_max": or_null("integer"), "downloads": number(),
                "state": { "enum": ["open", "expired", "used_up", "suspended"] }, "secret": text(),
            },
        },
        "NewLink": {
            "type": "object",
            "properties": {
                "path": text(), "expires_in_seconds": count_or_null(),
                "password": { "type": ["string", "null"], "minLength": 1 },
                "downloads_max": count_or_null(),
            },
        },
        "PublicLink": object(json!({
            "needs_password": boolean(), "is_limited": boolean(), "expires": or_null("integer"),
            "kind": kind(),
            "name": or_null("string"), "size": or_null("integer"), "modified": or_null("integer"),
        })),
        "LinkPassword": object(json!({ "password": text() })),
        "LinkPass": object(json!({ "pass": text(), "expires_in": number() })),
        "PublicLine": object(json!({
            "path": text(), "kind": kind(), "name": or_null("string"), "size": or_null("integer"),
            "modified": or_null("integer"),
        })),
        "PublicPage": object(json!({ "nodes": list("PublicLine"), "next": or_null("string") })),
    })
}

fn of_conflicts() -> Value {
    let node = || super::reference("Node");
    let version = || json!({ "type": "integer", "minimum": 0, "maximum": INTEGER_MAX });
    json!({
        "Conflict": object(json!({
            "copy": node(), "original_id": text(),
            "original": { "anyOf": [{ "type": "null" }, node()] }, "base": number(), "seq": or_null("integer"), "time": or_null("integer"), "device_id": or_null("string"),
            "device_name": or_null("string"),
        })),
        "ConflictPage": object(json!({
            "conflicts": { "type": "array", "items": super::reference("Conflict") },
            "count": number(), "next": or_null("string"),
        })),
        "Marking": object(json!({
            "node": text(), "version": version(), "original": text(), "base": version(),
        })),
        "Resolution": {
            "type": "object",
            "required": ["node", "version", "keep"],
            "properties": {
                "node": text(), "version": version(),
                "original_version": { "type": ["integer", "null"], "minimum": 0, "maximum": INTEGER_MAX },
                "keep": { "enum": ["copy", "original", "both"] },
                "name": { "type": ["string", "null"], "pattern": "^[^/]+$" },
            },
        },
    })
}

fn of_activity() -> Value {
    let happened =
        ["made", "changed", "renamed", "moved", "deleted", "restored", "kept_beside", "decided"];
    let list = |schema: &str| json!({ "type": "array", "items": super::reference(schema) });
    json!({
        "ActivityChange": {
            "type": "object",
            "required": ["id", "version", "happened", "name", "old_name", "path"],
            "properties": {
                "id": text(), "version": number(), "happened": { "enum": happened }, "name": text(),
                "old_name": or_null("string"), "path": or_null("string"),
                "kind": { "enum": ["file", "folder", "link"] }, "size": or_null("integer"),
                "modified": or_null("integer"), "modified_ns": or_null("integer"),
                "mode": or_null("integer"), "target": or_null("string"),
            },
        },
        "Activity": object(json!({
            "seq": number(), "time": number(), "device_id": text(), "device_name": text(),
            "count": number(), "changes": list("ActivityChange"),
        })),
        "ActivityPage": object(json!({ "activity": list("Activity"), "next": or_null("string") })),
    })
}

fn of_usage() -> Value {
    let kinds = ["image", "video", "audio", "document", "archive", "text", "other"];
    let list = |schema: &str| json!({ "type": "array", "items": super::reference(schema) });
    json!({
        "UsageOfKind": object(json!({
            "kind": { "enum": kinds }, "files": number(), "bytes": number(),
        })),
        "UsageOfFiles": object(json!({ "files": number(), "bytes": number() })),
        "UsageOfPacks": object(json!({
            "count": number(), "stored_bytes": number(), "content_bytes": or_null("integer"),
        })),
        "UsageContent": object(json!({
            "kinds": list("UsageOfKind"), "deleted": super::reference("UsageOfFiles"),
            "packs": super::reference("UsageOfPacks"),
        })),
        "UsageOfDay": object(json!({ "day": number(), "stored_bytes": number() })),
        "Usage": object(json!({
            "seq": number(), "used_bytes": number(),
            "content": { "anyOf": [super::reference("UsageContent"), { "type": "null" }] },
            "days": list("UsageOfDay"), "days_since": or_null("integer"),
        })),
    })
}

fn of_passwords() -> Value {
    json!({
        "Login": {
            "type": "object",
            "required": ["user", "password", "device_name"],
            "properties": {
                "user": text(), "password": text(), "device_name": device_name(),
                "code": or_null("string"),
            },
        },
        "LoginBegin": object(json!({ "user": text(), "message": in_base64() })),
        "LoginBegun": object(json!({ "message": in_base64(), "session": in_base64() })),
        "LoginProof": {
            "type": "object",
            "required": ["session", "message", "device_name"],
            "properties": {
                "session": in_base64(), "message": in_base64(), "device_name": device_name(),
                "code": or_null("string"),
            },
        },
        "InvitationSecret": object(json!({ "secret": text() })),
        "Invitation": object(json!({
            "name": or_null("string"), "quota_bytes": or_null("integer"), "expires": number(),
        })),
        "JoinBegin": object(json!({ "secret": text(), "user": text(), "message": in_base64() })),
        "JoinBegun": object(json!({ "message": in_base64() })),
        "JoinProof": object(json!({
            "secret": text(), "user": text(), "message": in_base64(), "device_name": device_name(),
        })),
        "PasswordBegin": object(json!({ "message": in_base64(), "new_message": in_base64() })),
        "PasswordBegun": object(json!({
            "message": in_base64(), "new_message": in_base64(), "session": in_base64(),
        })),
        "PasswordProof": {
            "type": "object",
            "required": ["session", "message", "new_message"],
            "properties": {
                "session": in_base64(), "message": in_base64(), "new_message": in_base64(),
                "sign_out_others": boolean(),
            },
        },
        "SecondFactor": object(json!({
            "state": { "enum": ["off", "waiting", "on"] }, "since": or_null("integer"),
            "recovery_codes_left": number(),
        })),
        "NewPassword": {
            "type": "object",
            "required": ["password", "new_password"],
            "properties": {
                "password": text(), "new_password": text(), "sign_out_others": boolean(),
            },
        },
        "PasswordChanged": object(json!({ "signed_out": number(), "identities": number() })),
        "OwnPassword": object(json!({ "password": text() })),
        "TotpOffer": object(json!({ "secret": text(), "uri": text() })),
        "Code": object(json!({ "code": text() })),
        "RecoveryCodes": object(json!({
            "recovery_codes": { "type": "array", "items": text() },
        })),
    })
}

fn of_providers() -> Value {
    let grant = || {
        json!({
            "authorization_code": text(), "redirect_uri": text(), "code_verifier": text(), "nonce": text(),
        })
    };
    let mut login = object(grant());
    login["required"].as_array_mut().into_iter().for_each(|names| names.push(json!("device_name")));
    login["properties"]["device_name"] = text();
    login["properties"]["code"] = or_null("string");
    let mut bound = grant();
    bound["password"] = text();
    json!({
        "Provider": object(json!({
            "issuer": text(), "authorization_endpoint": text(), "client_id": text(), "scope": text(),
        })),
        "ProviderLogin": login,
        "Subject": object(json!({ "issuer": text(), "subject": text(), "since": number() })),
        "NewSubject": object(bound),
    })
}

fn of_accounts() -> Value {
    json!({
        "Problem": object(json!({
            "type": text(), "title": text(), "status": number(), "code": text(), "detail": text(),
        })),
        "Session": object(json!({ "token": text(), "device_id": text(), "account": text() })),
        "WhoAmI": object(json!({
            "account": text(), "device_id": text(), "device_name": text(),
            "quota_bytes": or_null("integer"), "used_bytes": number(),
        })),
        "Device": object(json!({
            "id": text(), "name": text(), "created": number(), "last_seen": number(),
            "last_in_sync": or_null("integer"), "is_this": boolean(),
        })),
        "Renaming": object(json!({ "name": device_name() })),
        "Workspace": object(json!({
            "id": text(), "name": text(), "owner": text(), "role": { "enum": ["owner", "edit", "view"] },
            "mode": { "enum": ["plain", "sealed"] }, "head_seq": number(), "head_hash": text(),
            "used_bytes": number(),
        })),
        "EntryHash": object(json!({ "seq": number(), "hash": text() })),
        "NewWorkspace": object(json!({ "name": { "type": "string", "minLength": 1, "maxLength": WORKSPACE_NAME_LENGTH_MAX } })),
        "Member": object(json!({
            "user": text(), "role": { "enum": ["owner", "edit", "view"] }, "added": or_null("integer"),
        })),
        "MemberRole": object(json!({ "role": { "enum": ["edit", "view"] } })),
        "Identity": {
            "type": "object",
            "required": ["public"],
            "properties": { "public": text(), "locked": text() },
        },
        "NewIdentity": {
            "type": "object",
            "required": ["public", "locked"],
            "properties": {
                "public": hexadecimal("string"),
                "locked": {
                    "type": "string", "pattern": "^([0-9a-f]{2})+$", "maxLength": 2 * LOCKED_LENGTH_MAX,
                },
                "replaces": hexadecimal(["string", "null"]),
            },
        },
        "Token": {
            "type": "object",
            "required": ["id", "name", "scope", "workspace", "created", "last_used", "expires"],
            "properties": {
                "id": text(), "name": text(), "scope": { "enum": ["read", "write"] },
                "workspace": or_null("string"), "created": number(), "last_used": number(),
                "expires": or_null("integer"), "token": text(),
            },
        },
        "NewToken": {
            "type": "object",
            "required": ["name", "scope"],
            "properties": {
                "name": device_name(), "scope": { "enum": ["read", "write"] },
                "workspace": or_null("string"), "expires_in_seconds": count_or_null(),
            },
        },
    })
}

fn of_files() -> Value {
    let relocation = json!({
        "type": "object",
        "required": ["from", "to"],
        "properties": { "from": text(), "to": text(), "overwrite": boolean() },
    });
    let list = |schema: &str| json!({ "type": "array", "items": super::reference(schema) });
    json!({
        "Object": object(json!({ "key": text(), "size": number() })),
        "Announced": object(json!({ "length": { "type": "integer", "minimum": 0, "maximum": OBJECT_LENGTH_MAX } })),
        "Way": object(json!({
            "is_stored": boolean(),
            "request": { "anyOf": [{ "type": "null" }, object(json!({
                "url": text(), "expires_in_seconds": number(),
                "headers": { "type": "array", "items": object(json!({ "name": text(), "value": text() })) },
            }))] },
        })),
        "Node": object(json!({
            "id": text(), "version": number(), "etag": text(), "path": text(), "name": text(),
            "kind": { "enum": ["file", "folder", "link"] }, "size": or_null("integer"),
            "modified": or_null("integer"), "modified_ns": or_null("integer"), "mode": or_null("integer"),
            "target": or_null("string"), "is_conflict": boolean(), "mounted": or_null("string"),
        })),
        "FolderPage": object(json!({ "nodes": list("Node"), "next": or_null("string") })),
        "Version": {
            "type": "object",
            "required": ["version", "seq", "time", "device_id", "device_name", "is_deleted"],
            "properties": {
                "version": number(), "seq": number(), "time": number(), "device_id": text(),
                "device_name": text(), "is_deleted": boolean(), "kind": text(),
                "size": or_null("integer"), "modified": or_null("integer"),
                "modified_ns": or_null("integer"), "mode": or_null("integer"),
                "target": or_null("string"),
            },
        },
        "Versions": object(json!({ "node": text(), "versions": list("Version"), "next": or_null("string") })),
        "Relocation": relocation,
        "DeletedNode": object(json!({
            "id": text(), "version": number(), "last_version": number(), "path": text(), "name": text(),
            "kind": { "enum": ["file", "folder", "link"] }, "size": or_null("integer"),
            "modified": or_null("integer"), "modified_ns": or_null("integer"), "mode": or_null("integer"),
            "target": or_null("string"), "is_in_deleted": boolean(), "seq": or_null("integer"),
            "time": or_null("integer"), "device_id": or_null("string"), "device_name": or_null("string"),
        })),
        "DeletedPage": object(json!({ "nodes": list("DeletedNode"), "next": or_null("string") })),
        "Mark": object(json!({ "start": number(), "end": number() })),
        "FoundNode": object(json!({
            "id": text(), "version": number(), "etag": text(), "path": text(), "name": text(),
            "kind": { "enum": ["file", "folder", "link"] }, "size": or_null("integer"),
            "modified": or_null("integer"), "modified_ns": or_null("integer"), "mode": or_null("integer"),
            "target": or_null("string"), "is_conflict": boolean(), "mounted": or_null("string"), "marks": list("Mark"),
        })),
        "SearchPage": object(json!({ "nodes": list("FoundNode"), "next": or_null("string") })),
        "Restoration": {
            "type": "object",
            "required": ["node"],
            "properties": {
                "node": text(),
                "version": { "type": ["integer", "null"], "minimum": 0, "maximum": INTEGER_MAX },
            },
        },
        "Beginning": object(json!({ "path": text() })),
        "Upload": object(json!({
            "id": text(), "path": text(), "offset": number(), "expires_in": number(),
        })),
    })
}
