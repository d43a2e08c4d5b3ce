//! `LOCK` and `UNLOCK`, and who may change what is locked.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::time::Duration;

use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use model::RelativePath;
use model::environment::random_bytes;

use super::if_header::IfHeader;
use super::properties::{Depth, XML};
use super::xml::{Element, escape, write};
use super::{Dav, Refused, address};
use crate::doors::tree::{Condition, FileTree, Promises, Put};
use crate::error::{Result, ServerError};
use crate::files::Spool;
use crate::services::locks::{Lock, NoLock, TIMEOUT_MAX};

/// The longest text about the owner of a lock, in bytes.
const OWNER_LENGTH_MAX: usize = 4096;

/// Returns the header `If`.
pub(super) fn if_of(headers: &HeaderMap) -> Result<IfHeader> {
    let text = headers.get("if").map(HeaderValue::to_str);
    match text {
        None => Ok(IfHeader::default()),
        Some(Ok(text)) => IfHeader::parse(text),
        Some(Err(_)) => {
            Err(ServerError::Invalid { what: "If", reason: "it is no text".to_owned() })
        }
    }
}

/// Checks the header `If`, and that nobody else has locked what is to be changed: a path, with everything below where
/// `is_deep`, and the folder whose list changes where `changes_list`. Returns the version that is there.
pub(super) async fn check<T: FileTree>(
    dav: &Dav<T>,
    conditions: &IfHeader,
    paths: &[(&RelativePath, bool, bool)],
) -> Result<Option<String>, Refused> {
    let etag = check_conditions(dav, conditions).await?;
    check_free(dav, conditions, paths)?;
    Ok(etag)
}

/// Checks only that nobody else has locked what is to be changed, as [`check`] does.
pub(super) fn check_free<T: FileTree>(
    dav: &Dav<T>,
    conditions: &IfHeader,
    paths: &[(&RelativePath, bool, bool)],
) -> Result<(), Refused> {
    let Promises { locks, workspace, account } = dav.tree.promises();
    let now = dav.tree.clock().elapsed();
    let tokens = conditions.tokens();
    let own = (account, tokens.as_slice());
    for (path, is_deep, changes_list) in paths {
        let parent = path.split_last().filter(|_| *changes_list).map(|(parent, _)| parent);
        let is_free = locks.allow(workspace, now, (path, *is_deep), own)
            && parent.is_none_or(|parent| locks.allow(workspace, now, (&parent, false), own));
        if !is_free {
            return Err(Refused::Locked);
        }
    }
    Ok(())
}

async fn check_conditions<T: FileTree>(
    dav: &Dav<T>,
    conditions: &IfHeader,
) -> Result<Option<String>> {
    // Who may not see the tree hears nothing of its locks, either.
    let current = etag_at(dav, &dav.path).await?;
    if conditions.is_empty() {
        return Ok(current);
    }
    let path_of = |address: &str| super::path_in(&dav.root, address).ok();
    let mut etags = HashMap::from([(dav.path.clone(), current)]);
    for path in conditions.addresses().filter_map(path_of) {
        if let Entry::Vacant(unknown) = etags.entry(path) {
            let etag = etag_at(dav, unknown.key()).await?;
            unknown.insert(etag);
        }
    }
    let Promises { locks, workspace, .. } = dav.tree.promises();
    let now = dav.tree.clock().elapsed();
    let has_lock = |path: &RelativePath, token: &str| {
        locks.of(workspace, now, path).iter().any(|lock| lock.token == token)
    };
    let etag_of = |path: &RelativePath| etags.get(path).cloned().flatten();
    match conditions.holds(&dav.path, path_of, has_lock, etag_of) {
        true => Ok(etag_of(&dav.path)),
        false => Err(precondition_failed(&dav.path, etag_of(&dav.path))),
    }
}

async fn etag_at<T: FileTree>(dav: &Dav<T>, path: &RelativePath) -> Result<Option<String>> {
    Ok(dav.tree.find(path).await?.map(|item| item.etag))
}

fn precondition_failed(path: &RelativePath, current: Option<String>) -> ServerError {
    ServerError::PreconditionFailed { path: path.to_string(), current }
}

/// Returns how long a client wants to have a lock.
fn timeout_of(headers: &HeaderMap) -> Duration {
    let text = headers.get("timeout").and_then(|value| value.to_str().ok()).unwrap_or_default();
    let wishes = text.split(',').filter_map(|wish| wish.trim().strip_prefix("Second-"));
    let seconds = wishes.filter_map(|seconds| seconds.parse().ok()).next();
    seconds.map_or(TIMEOUT_MAX, Duration::from_secs).min(TIMEOUT_MAX)
}

/// Answers LOCK.
pub(super) async fn lock<T: FileTree>(
    dav: &Dav<T>,
    headers: &HeaderMap,
    body: Option<Element>,
) -> Result<Response, Refused> {
    let (tree, path) = (&dav.tree, &dav.path);
    let Promises { locks, workspace, account } = tree.promises();
    let (conditions, timeout) = (if_of(headers)?, timeout_of(headers));
    // Who may not change anything keeps nobody else from it.
    tree.check_may_write().await?;
    let found = tree.find(path).await?;
    let Some(body) = body else {
        let now = tree.clock().elapsed();
        let tokens = conditions.tokens();
        let renew = |token: &String| locks.renew(workspace, now, (token, path), (account, timeout));
        let gone = || precondition_failed(path, found.map(|item| item.etag));
        let lock = tokens.iter().find_map(renew).ok_or_else(gone)?;
        return Ok(describe(&dav.root, StatusCode::OK, &lock));
    };
    let is_exclusive = scope_of(&body)?;
    let is_deep = match Depth::of(headers)? {
        Depth::Zero => false,
        Depth::Infinity => true,
        Depth::One => {
            return Err(ServerError::Invalid {
                what: "Depth",
                reason: "a lock takes 0 or infinity".to_owned(),
            }
            .into());
        }
    };
    if !conditions.is_empty() || found.is_none() {
        let changes: &[(&RelativePath, bool, bool)] =
            if found.is_none() { &[(path, false, true)] } else { &[] };
        check(dav, &conditions, changes).await?;
    }
    let owner = owner_of(&body)?;
    let now = tree.clock().elapsed();
    let lock = Lock {
        token: new_token(tree.random()),
        path: path.clone(),
        is_deep,
        is_exclusive,
        owner,
        account,
        timeout,
        ends: now + timeout,
    };
    match locks.add(workspace, now, lock.clone()) {
        Ok(()) => {}
        Err(NoLock::Locked) => return Err(Refused::Locked),
        Err(NoLock::TooMany) => {
            return Err(ServerError::Unavailable { reason: "keeps too many locks" }.into());
        }
    }
    let status = match found {
        Some(_) => StatusCode::OK,
        None => match make_empty(dav).await {
            Ok(()) => StatusCode::CREATED,
            Err(error) => {
                locks.remove(workspace, now, (&lock.token, path), account);
                return Err(error.into());
            }
        },
    };
    Ok(describe(&dav.root, status, &lock))
}

/// Returns what a client says of the owner of a lock, written anew.
fn owner_of(body: &Element) -> Result<String> {
    let write_owner = |owner: &Element| {
        let children: String = owner.children.iter().map(write).collect();
        format!("{}{children}", escape(owner.text.trim()))
    };
    let owner = body.child("owner").map(write_owner).unwrap_or_default();
    match owner.len() > OWNER_LENGTH_MAX {
        true => Err(ServerError::TooLarge { what: "owner", length_max: OWNER_LENGTH_MAX as u64 }),
        false => Ok(owner),
    }
}

/// Makes the empty file that a lock on nothing makes.
async fn make_empty<T: FileTree>(dav: &Dav<T>) -> Result<()> {
    let body = Spool::begin_file(dav.tree.spools()).await?.finish().await?;
    let modified = dav.tree.clock().now();
    let put = Put { path: dav.path.clone(), condition: Condition::Absent, modified, upload: None };
    dav.tree.put(&put, &body).await.map(drop)
}

/// Tells whether a lock is to be exclusive.
fn scope_of(body: &Element) -> Result<bool> {
    let invalid = || ServerError::Invalid {
        what: "XML body",
        reason: "a 'lockinfo' of a write lock is expected".to_owned(),
    };
    let body = Some(body).filter(|body| body.is("lockinfo")).ok_or_else(invalid)?;
    body.child("locktype").and_then(|kind| kind.child("write")).ok_or_else(invalid)?;
    let scope = body.child("lockscope").ok_or_else(invalid)?;
    match (scope.child("exclusive"), scope.child("shared")) {
        (Some(_), None) => Ok(true),
        (None, Some(_)) => Ok(false),
        _ => Err(invalid()),
    }
}

fn new_token(random: &dyn model::Random) -> String {
    let mut bytes: [u8; 16] = random_bytes(random);
    // A UUID of version 4.
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex = model::NodeId::from_bytes(bytes).to_string();
    let (a, b, c, d, e) = (&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]);
    format!("urn:uuid:{a}-{b}-{c}-{d}-{e}")
}

/// Answers UNLOCK.
pub(super) async fn unlock<T: FileTree>(
    dav: &Dav<T>,
    headers: &HeaderMap,
) -> Result<Response, Refused> {
    dav.tree.check_may_write().await?;
    let path = &dav.path;
    let Promises { locks, workspace, account } = dav.tree.promises();
    let text = headers.get("lock-token").and_then(|value| value.to_str().ok());
    let token = text.and_then(|text| text.trim().strip_prefix('<')?.strip_suffix('>'));
    let token = token.ok_or_else(|| ServerError::Invalid {
        what: "Lock-Token",
        reason: "a token in '<' and '>' is expected".to_owned(),
    })?;
    let now = dav.tree.clock().elapsed();
    match locks.remove(workspace, now, (token, path), account) {
        true => Ok(StatusCode::NO_CONTENT.into_response()),
        false => Err(ServerError::Conflict {
            what: format!("'{path}'"),
            reason: "has no such lock of yours",
        }
        .into()),
    }
}

/// Writes the property `lockdiscovery`.
pub(super) fn describe_locks(root: &str, locks: &[Lock]) -> String {
    locks.iter().map(|lock| active_lock(root, lock)).collect()
}

fn active_lock(root: &str, lock: &Lock) -> String {
    let scope = if lock.is_exclusive { "exclusive" } else { "shared" };
    let depth = if lock.is_deep { "infinity" } else { "0" };
    let (seconds, token) = (lock.timeout.as_secs(), escape(&lock.token));
    let href = escape(&address(root, &lock.path, false));
    let owner = &lock.owner;
    format!(
        "<D:activelock><D:locktype><D:write/></D:locktype><D:lockscope><D:{scope}/></D:lockscope>\
         <D:depth>{depth}</D:depth><D:owner>{owner}</D:owner><D:timeout>Second-{seconds}</D:timeout>\
         <D:locktoken><D:href>{token}</D:href></D:locktoken>\
         <D:lockroot><D:href>{href}</D:href></D:lockroot></D:activelock>"
    )
}

fn describe(root: &str, status: StatusCode, lock: &Lock) -> Response {
    let body = format!(
        "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<D:prop xmlns:D=\"DAV:\"><D:lockdiscovery>{}\
         </D:lockdiscovery></D:prop>\n",
        active_lock(root, lock)
    );
    let mut response = (status, [(CONTENT_TYPE, XML)], body).into_response();
    if let Ok(token) = format!("<{}>", lock.token).parse() {
        response.headers_mut().insert("lock-token", token);
    }
    response
}
