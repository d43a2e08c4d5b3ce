//! Clients that are ready: their workspaces and files are at the server, and what each is to send lies in memory.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use content::delta::{BaseVersion, SessionId};
use futures_util::{StreamExt, TryStreamExt, stream};
use serde_json::{Value, json};

use super::connection::{Answer, Connection};
use super::exchange::{Door, Known, Method, Pair, Request};
use super::files::{Change, Edited};
use crate::population::{Enrolled, Population};
use crate::traffic::Traffic;

/// How many clients of the regular workload are of one account, and work in one workspace. A server lets each account have only so
/// many deltas of the paper under way.
pub const CLIENTS_OF_ACCOUNT: usize = 100;

/// How many workspaces are filled at once.
const FILLING_AT_ONCE: usize = 32;

/// What a body of bytes is.
const BYTES: &str = "Content-Type: application/octet-stream\r\n";

/// What a client does with one file.
#[derive(Debug, Clone, Default)]
pub struct Exchange {
    /// The file, by its place among those of the client.
    pub file: usize,
    /// Requests, one after the other.
    pub requests: Vec<Request>,
}

/// A file of a client.
#[derive(Debug, Clone)]
pub struct File {
    /// Its path.
    pub path: String,
    /// The version that is there.
    pub etag: String,
    /// The hash of its bytes when all exchanges have been made up to each of them, in order.
    pub hashes: Vec<[u8; 32]>,
}

/// A client that is ready.
#[derive(Debug, Clone)]
pub struct Client {
    /// Its place among all.
    pub number: usize,
    /// What proves it.
    pub token: String,
    /// Where it works.
    pub workspace: String,
    /// Its files.
    pub files: Vec<File>,
    /// What it does, in order.
    pub exchanges: Vec<Exchange>,
}

impl Client {
    /// Returns the lines before the body of a request.
    pub fn head(&self, server: SocketAddr, door: Door, file: usize, length: usize) -> String {
        let File { path, etag, .. } = &self.files[file];
        let (method, what) = match door {
            Door::Genesis => ("GET", "genesis".to_owned()),
            Door::Chunks => ("GET", format!("chunks/{path}")),
            Door::Delta => ("POST", format!("delta/{path}")),
            Door::File => ("PUT", format!("files/{path}")),
            Door::Read => ("GET", format!("files/{path}")),
        };
        let condition = match method {
            "GET" => String::new(),
            _ => format!("{BYTES}If-Match: {etag}\r\nX-OC-Mtime: 1600000000.000\r\n"),
        };
        head(
            server,
            (method, &format!("{}/{what}", self.workspace)),
            &self.token,
            length,
            &condition,
        )
    }
}

/// Returns the lines before a body.
fn head(
    server: SocketAddr,
    (method, path): (&str, &str),
    token: &str,
    length: usize,
    more: &str,
) -> String {
    format!(
        "{method} /api/v1/workspaces/{path} HTTP/1.1\r\nHost: {server}\r\nAuthorization: Bearer {token}\r\n\
         Content-Length: {length}\r\n{more}\r\n"
    )
}

/// A workspace that is made and known.
struct Room {
    owner: Arc<Enrolled>,
    workspace: String,
    known: Known,
    connection: Connection,
    server: SocketAddr,
}

impl Room {
    async fn ask(&mut self, door: (&str, &str), body: &[u8], more: &str) -> Result<Answer> {
        let path = format!("{}/{}", self.workspace, door.1);
        let lines = head(self.server, (door.0, &path), &self.owner.token, body.len(), more);
        let answer = self.connection.ask(&lines, body).await?;
        if !(200..300).contains(&answer.status) {
            bail!("{path}: {}: {}", answer.status, String::from_utf8_lossy(&answer.body));
        }
        Ok(answer)
    }

    async fn put(&mut self, path: &str, bytes: &[u8]) -> Result<String> {
        let answer = self.ask(("PUT", &format!("files/{path}")), bytes, BYTES).await?;
        answer.etag.context("a file has a version")
    }

    /// Copies a file inside of the server, which moves no bytes.
    async fn copy(&mut self, from: &str, to: &str) -> Result<String> {
        let body = json!({ "from": from, "to": to, "overwrite": false }).to_string();
        let answer =
            self.ask(("POST", "copy"), body.as_bytes(), "Content-Type: application/json\r\n");
        let node: Value = serde_json::from_slice(&answer.await?.body)?;
        Ok(node["etag"].as_str().context("a copy has a version")?.to_owned())
    }

    /// Returns what a client keeps of a file that is there.
    async fn survey(&mut self, path: &str, bytes: &[u8]) -> Result<BaseVersion> {
        let list = self.ask(("GET", &format!("chunks/{path}")), &[], "").await?.body;
        self.known.survey(&list, bytes)
    }
}

/// What is to be made ready.
#[derive(Debug, Clone, Copy)]
pub struct Preparation<'lab> {
    /// Who takes part.
    pub population: &'lab Population,
    /// Where the server listens.
    pub server: SocketAddr,
    /// Makes the names of workspaces unique.
    pub label: &'lab str,
    /// Whence all chance comes.
    pub seed: u64,
    /// How files are sent.
    pub method: Method,
    /// How many clients.
    pub clients: usize,
}

impl Preparation<'_> {
    /// Makes clients ready that have one file each, all the same one at first, and make so many edits of so many bytes.
    ///
    /// # Errors
    /// Whatever the server says.
    pub async fn regular(&self, base: &Edited, size: usize, edits: usize) -> Result<Vec<Client>> {
        let rooms = self.clients.div_ceil(CLIENTS_OF_ACCOUNT);
        let owners: Vec<_> = self.population.devices.iter().take(rooms).cloned().collect();
        ensure!(owners.len() == rooms, "{rooms} accounts are needed");
        let rooms = self.rooms(self.label, &owners).await?;
        let filling =
            stream::iter(rooms.into_iter().enumerate()).map(|(place, mut room)| async move {
                let first = place * CLIENTS_OF_ACCOUNT;
                let count = CLIENTS_OF_ACCOUNT.min(self.clients - first);
                room.put("base", base.bytes()).await?;
                let known = match self.method.wants_base() {
                    true => Some(room.survey("base", base.bytes()).await?),
                    false => None,
                };
                let mut clients = Vec::new();
                for number in first..first + count {
                    let path = format!("file-{number}");
                    let etag = room.copy("base", &path).await?;
                    let files = vec![File { path, etag, hashes: Vec::new() }];
                    clients.push(room.client(number, files));
                }
                Ok::<_, anyhow::Error>((room.known, known, clients))
            });
        let filled: Vec<_> = filling.buffered(FILLING_AT_ONCE).try_collect().await?;
        let mut all = Vec::new();
        for (known, kept, clients) in filled {
            all.extend(clients.into_iter().map(|client| (known.clone(), kept.clone(), client)));
        }
        spread(all, |(known, mut kept, mut client)| {
            let mut file = base.clone();
            for edit in 0..edits {
                // An edit takes the seed behind its own, too.
                let seed = self.seed + 2 * (edit * self.clients + client.number) as u64;
                let old = file.edit(size, seed);
                let pair = Pair { old: &old, new: file.bytes(), base: kept.as_ref() };
                let (requests, next) = known.prepare(self.method, pair, session(seed))?;
                kept = next;
                client.exchanges.push(Exchange { file: 0, requests });
                client.files[0].hashes.push(*blake3::hash(file.bytes()).as_bytes());
            }
            Ok(client)
        })
    }

    /// Makes clients ready that send so many changes from release to release, each beginning somewhere else, in a workspace of its own.
    ///
    /// # Errors
    /// Whatever the server says.
    pub async fn intensive(&self, changes: &[Change], count: usize) -> Result<Vec<Client>> {
        let owners = &self.population.devices;
        let mut rooms = Vec::new();
        // An account has only one workspace of a name.
        for (round, first) in (0..self.clients).step_by(owners.len().max(1)).enumerate() {
            let some = &owners[..owners.len().min(self.clients - first)];
            rooms.extend(self.rooms(&format!("{}-{round}", self.label), some).await?);
        }
        let count = count.min(changes.len());
        let filling =
            stream::iter(rooms.into_iter().enumerate()).map(|(number, mut room)| async move {
                let first = number * 7919 % (changes.len() - count + 1);
                let own = &changes[first..first + count];
                let mut places: HashMap<usize, usize> = HashMap::new();
                let (mut files, mut known) = (Vec::new(), Vec::new());
                for change in own {
                    if places.contains_key(&change.file) {
                        continue;
                    }
                    let path = format!("file-{}", change.file);
                    let etag = room.put(&path, &change.old).await?;
                    places.insert(change.file, files.len());
                    known.push(match self.method.wants_base() {
                        true => Some(room.survey(&path, &change.old).await?),
                        false => None,
                    });
                    files.push(File { path, etag, hashes: Vec::new() });
                }
                let client = room.client(number, files);
                Ok::<_, anyhow::Error>((room.known, known, places, own, client))
            });
        let filled: Vec<_> = filling.buffered(FILLING_AT_ONCE).try_collect().await?;
        spread(filled, |(known, mut kept, places, own, mut client)| {
            // A file that is not there in one release may come back in a later one, as another.
            let mut now: HashMap<usize, &[u8]> = HashMap::new();
            for (change, place) in own.iter().zip(0_u64..) {
                let file = places[&change.file];
                let old: &[u8] = now.get(&file).copied().unwrap_or(&change.old);
                let seed = self.seed + client.number as u64 * 1_000_003 + place;
                let pair = Pair { old, new: &change.new, base: kept[file].as_ref() };
                let (requests, next) = known.prepare(self.method, pair, session(seed))?;
                kept[file] = next;
                now.insert(file, &change.new);
                client.exchanges.push(Exchange { file, requests });
                client.files[file].hashes.push(*blake3::hash(&change.new).as_bytes());
            }
            Ok(client)
        })
    }

    async fn rooms(&self, label: &str, owners: &[Arc<Enrolled>]) -> Result<Vec<Room>> {
        let made = self.population.workspaces(label, owners).await?;
        let opening =
            made.into_iter().zip(owners).enumerate().map(|(place, (made, owner))| async move {
                let (server, workspace) = (self.server, made.id.to_string());
                let mut connection = Connection::new(server, place, Arc::new(Traffic::default()));
                let lines =
                    head(server, ("GET", &format!("{workspace}/genesis")), &owner.token, 0, "");
                let answer = connection.ask(&lines, &[]).await?;
                ensure!(answer.status == 200, "the genesis: {}", answer.status);
                let known = Known::of(&answer.body)?;
                Ok::<_, anyhow::Error>(Room {
                    owner: Arc::clone(owner),
                    workspace,
                    known,
                    connection,
                    server,
                })
            });
        stream::iter(opening).buffered(FILLING_AT_ONCE).try_collect().await
    }
}

impl Room {
    fn client(&self, number: usize, files: Vec<File>) -> Client {
        let (token, workspace) = (self.owner.token.clone(), self.workspace.clone());
        Client { number, token, workspace, files, exchanges: Vec::new() }
    }
}

fn session(seed: u64) -> SessionId {
    let mut bytes = [0; SessionId::LENGTH];
    fastrand::Rng::with_seed(seed).fill(&mut bytes);
    SessionId::from_bytes(bytes)
}

/// Does something with all of them on all cores, while the server has nothing to do.
fn spread<T: Send, R: Send>(all: Vec<T>, deed: impl Fn(T) -> Result<R> + Sync) -> Result<Vec<R>> {
    let share = all.len().div_ceil(crate::machine::cores()).max(1);
    let mut shares = Vec::new();
    let mut rest = all;
    while !rest.is_empty() {
        let behind = rest.split_off(share.min(rest.len()));
        shares.push(std::mem::replace(&mut rest, behind));
    }
    let deed = &deed;
    std::thread::scope(|scope| {
        let threads: Vec<_> = shares
            .into_iter()
            .map(|share| {
                scope.spawn(move || share.into_iter().map(deed).collect::<Result<Vec<_>>>())
            })
            .collect();
        let mut done = Vec::new();
        for thread in threads {
            match thread.join() {
                Ok(some) => done.extend(some?),
                Err(_) => bail!("a thread that prepares has failed"),
            }
        }
        Ok(done)
    })
}
