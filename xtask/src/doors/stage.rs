//! What the tools knock at: a server with accounts, a plain workspace and a link into it, and the gateway of a device with an
//! encrypted workspace.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;

use super::http::Client;
use super::tree::Tree;
use crate::failure::{Context, Failure, Result, fail};
use crate::process::write_secret;
use crate::syncline::{
    self, ACCOUNT, Device, GATEWAY_USER, Gateway, PASSWORD, Place, SYNC_DONE, Server, checked,
};

/// The plain workspace, which the server shows.
pub(super) const PLAIN: &str = "home";

/// The encrypted one, which the gateway shows.
const SEALED: &str = "notes";

/// A second person, whom the owner knows.
pub(super) const OTHER_ACCOUNT: &str = "bob";

/// The name of the door of a server.
pub(super) const SERVER: &str = "server";

/// The name of the door of a device.
const GATEWAY: &str = "gateway";

/// How often a device is asked whether it has what was written at a door, and how long it waits in between, in milliseconds.
const LOOKS: (u32, u64) = (60, 500);

/// A door of WebDAV.
#[derive(Debug)]
pub(super) struct Door {
    pub(super) name: &'static str,
    /// The address of the folder, with a slash at its end.
    pub(super) url: String,
    pub(super) user: String,
    pub(super) password: String,
    /// What is shown in place of the password by programs that take no spaces; the password where there is nothing else.
    pub(super) token: String,
    /// Another device of the workspace that is shown.
    reader: Device,
}

/// All that stands while the tools run. It ends with this value.
#[derive(Debug)]
pub(super) struct Stage {
    /// The doors of WebDAV.
    pub(super) doors: Vec<Door>,
    /// The door of REST, as a device that is signed in.
    pub(super) device: Client,
    /// What stands in the address of a link to the plain workspace.
    pub(super) link: String,
    /// Where results go.
    pub(super) out: PathBuf,
    folder: PathBuf,
    _gateway: Gateway,
    _server: Server,
}

impl Stage {
    /// Puts everything up below a folder that exists.
    pub(super) fn put_up(binary: &Path, folder: &Path, out: &Path) -> Result<Self> {
        let data = folder.join("server");
        syncline::add_account_of(OTHER_ACCOUNT, binary, &data)?;
        let server = Server::start(binary, &data)?;
        let passphrase = folder.join("passphrase");
        write_secret(&passphrase, "a passphrase for loopback only")?;
        let owner = device(binary, folder, "owner", PLAIN);
        owner.login(&server.url(), "owner")?;
        owner.init()?;
        owner.sync()?;
        let writer =
            Device { folder: folder.join("sealed"), workspace: SEALED.to_owned(), ..owner };
        let mut init = writer.command(&["init", "--workspace", SEALED, "--sealed"]);
        init.arg(&writer.folder).env("SYNCLINE_PASSPHRASE_FILE", &passphrase);
        checked(&mut init, &[0])?;
        fill(&writer)?;
        let secret = folder.join("gateway-password");
        let gateway_password = "a-password-of-the-gateway";
        write_secret(&secret, gateway_password)?;
        let gateway = Gateway::start(&writer, &secret)?;
        let mut readers = Vec::new();
        for workspace in [PLAIN, SEALED] {
            let reader = device(binary, folder, &format!("reader-{workspace}"), workspace);
            reader.login(&server.url(), &format!("reader of {workspace}"))?;
            let mut clone = reader.clone_command();
            checked(clone.env("SYNCLINE_PASSPHRASE_FILE", &passphrase), &SYNC_DONE)?;
            readers.push(reader);
        }
        let api = Client { base: format!("{}/api/v1", server.url()), token: None };
        let (client, link) = sign_in(&api)?;
        let token = client.token.clone().unwrap_or_default();
        let doors = [
            (SERVER, format!("{}/dav/{PLAIN}/", server.url()), (ACCOUNT, PASSWORD, token.as_str())),
            (
                GATEWAY,
                format!("{}/", gateway.url()),
                (GATEWAY_USER, gateway_password, gateway_password),
            ),
        ];
        let doors = doors.into_iter().zip(readers).map(|((name, url, secrets), reader)| {
            let (user, password, token) = secrets;
            let [user, password, token] = [user, password, token].map(str::to_owned);
            Door { name, url, user, password, token, reader }
        });
        Ok(Self {
            doors: doors.collect(),
            device: client,
            link,
            out: out.to_owned(),
            folder: folder.to_owned(),
            _gateway: gateway,
            _server: server,
        })
    }

    /// A new folder for what a tool writes at a door.
    pub(super) fn room(&self, tool: &str, door: &str) -> Result<PathBuf> {
        let room = self.folder.join(format!("{tool}-{door}"));
        fs::create_dir_all(&room).context(room.display())?;
        Ok(room)
    }
}

impl Door {
    /// Waits until another device has exactly this in a folder of the workspace.
    pub(super) fn wait_for_device(&self, folder: &str, wanted: &Tree) -> Result<()> {
        let (looks, milliseconds) = LOOKS;
        let mut last = String::new();
        for _ in 0..looks {
            self.reader.sync()?;
            match wanted.compare(&Tree::read(&self.reader.folder.join(folder))?) {
                Ok(()) => return Ok(()),
                Err(difference) => last = difference.to_string(),
            }
            std::thread::sleep(std::time::Duration::from_millis(milliseconds));
        }
        fail(format!("on another device, {last}"))
    }
}

/// Files that nobody touches in the folder of the gateway.
const OTHERS: u32 = 1_000;

/// Puts files into the folder of a device. In one that has hardly any, tools would delete so great a part of them that the device stops and
/// asks, as it should.
fn fill(device: &Device) -> Result<()> {
    for number in 0..OTHERS {
        let (path, text) = (format!("other/{}/{number}", number % 10), number.to_string());
        super::tree::write(&device.folder, &path, text.as_bytes(), 1_500_000_000)?;
    }
    device.sync().map(drop)
}

fn device(binary: &Path, folder: &Path, name: &str, workspace: &str) -> Device {
    let device = syncline::device(binary, folder, name, Place::Served);
    Device { workspace: workspace.to_owned(), ..device }
}

/// Signs a device in, and lets it prepare what requests can find: a folder with a file, a member, and a link.
fn sign_in(api: &Client) -> Result<(Client, String)> {
    let who = json!({ "user": ACCOUNT, "password": PASSWORD, "device_name": "tools" });
    let session = api.ask("POST", "/login", Some(&who))?;
    let text = |value: &serde_json::Value, name: &str| {
        let text = value[name].as_str().map(str::to_owned);
        text.ok_or_else(|| Failure::new(format!("an answer without '{name}': {value}")))
    };
    let client = Client { base: api.base.clone(), token: Some(text(&session, "token")?) };
    let found = client.ask("GET", &format!("/workspaces/{PLAIN}"), None)?;
    let workspace = format!("/workspaces/{}", text(&found, "id")?);
    client.ask("PUT", &format!("{workspace}/folders/letters"), None)?;
    client.put(&format!("{workspace}/files/letters/first.txt"), "Dear reader,\n")?;
    let view = json!({ "role": "view" });
    client.ask("PUT", &format!("{workspace}/members/{OTHER_ACCOUNT}"), Some(&view))?;
    let link = client.ask("POST", &format!("{workspace}/links"), Some(&json!({})))?;
    let secret = text(&link, "secret")?;
    Ok((client, secret))
}
