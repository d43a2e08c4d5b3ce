//! Accounts, devices and workspaces, made through the doors that everybody uses.

use std::sync::Arc;

use anyhow::{Context, Result, bail};
use futures_util::{StreamExt, TryStreamExt, stream};
use model::codec::encode_message;
use model::commit::PackRef;
use model::{DeviceId, Genesis, Head, Mode, PackId, Timestamp, WorkspaceId};
use reqwest::{Client, Method};
use serde_json::{Value, json};

/// The password of all accounts, which protects nothing.
pub const PASSWORD: &str = "a password for loopback only";

/// How many devices an account has, where little is run. The server would connect more of one account, but lets it make only a thousand
/// workspaces, and every run takes new ones.
pub const DEVICES_PER_ACCOUNT: usize = 100;

/// How many devices sign in at once. Each attempt costs the server 19 MiB and a core, and it checks two at a time.
const SIGNING_IN_AT_ONCE: usize = 4;

/// How many workspaces are made at once.
const MAKING_AT_ONCE: usize = 32;

/// How long a pack is that commits name, in bytes.
const PACK_LENGTH: usize = 1024;

/// Returns the names of the accounts of so many devices, so many each.
pub fn account_names(devices: usize, each: usize) -> Vec<String> {
    (0..devices.div_ceil(each)).map(|number| format!("account-{number}")).collect()
}

/// A device that has signed in.
#[derive(Debug, Clone)]
pub struct Enrolled {
    /// Its place among all devices.
    pub number: u32,
    /// The number of its account.
    pub account: usize,
    /// Its id.
    pub id: DeviceId,
    /// What proves it.
    pub token: String,
}

/// A workspace for one run.
#[derive(Debug, Clone, Copy)]
pub struct Workspace {
    /// Its id.
    pub id: WorkspaceId,
    /// Before its first entry.
    pub genesis: Head,
    /// A pack that rests in it, for commits to name.
    pub pack: PackRef,
}

/// All devices.
#[derive(Debug)]
pub struct Population {
    /// The address of the server, or of one of several.
    pub server: String,
    /// Those who have signed in, account after account.
    pub devices: Vec<Arc<Enrolled>>,
    each: usize,
    client: Client,
}

impl Population {
    /// Signs devices in, so many of each account, which takes the server some hundredths of a second each: it stretches a password every time.
    ///
    /// # Errors
    /// Whatever the server says.
    pub async fn enrol(
        server: &str,
        accounts: &[String],
        devices: usize,
        each: usize,
    ) -> Result<Self> {
        // Needed by the client library even where no TLS is spoken; somebody else may have been first.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = Client::builder().no_proxy().build()?;
        let mut population = Self { server: server.to_owned(), devices: Vec::new(), each, client };
        let signing_in = stream::iter(0..devices).map(|number| {
            let account = number / each;
            population.sign_in(number as u32, account, accounts.get(account))
        });
        let signed_in: Vec<_> =
            signing_in.buffered(SIGNING_IN_AT_ONCE).map_ok(Arc::new).try_collect().await?;
        population.devices = signed_in;
        Ok(population)
    }

    async fn sign_in(
        &self,
        number: u32,
        place: usize,
        account: Option<&String>,
    ) -> Result<Enrolled> {
        let account = account.context("there are fewer accounts than the devices need")?;
        let name = format!("device-{number}");
        let body = json!({ "user": account, "password": PASSWORD, "device_name": name });
        let request = self.client.post(format!("{}/api/v1/login", self.server)).json(&body);
        let answer: Value = request.send().await?.error_for_status()?.json().await?;
        let text =
            |field: &str| answer[field].as_str().map(str::to_owned).context("a short answer");
        Ok(Enrolled {
            number,
            account: place,
            id: text("device_id")?.parse()?,
            token: text("token")?,
        })
    }

    /// Returns the devices account after account.
    pub fn accounts(&self) -> impl Iterator<Item = &[Arc<Enrolled>]> {
        self.devices.chunks(self.each)
    }

    /// Reads a page that wants no proof of who asks.
    ///
    /// # Errors
    /// Where it cannot be read.
    pub async fn page(&self, url: &str) -> Result<String> {
        let answer = self.client.get(url).send().await.context(url.to_owned())?;
        Ok(answer.error_for_status()?.text().await?)
    }

    /// Makes a workspace for each of these devices, with a pack in it. The label makes their names unique.
    ///
    /// # Errors
    /// Whatever the server says.
    pub async fn workspaces(
        &self,
        label: &str,
        owners: &[Arc<Enrolled>],
    ) -> Result<Vec<Workspace>> {
        let making = stream::iter(owners).map(|owner| self.workspace(label, owner));
        making.buffered(MAKING_AT_ONCE).try_collect().await
    }

    async fn workspace(&self, label: &str, owner: &Enrolled) -> Result<Workspace> {
        let name = format!("{label}-{}", owner.number);
        let pack_bytes = blake3::hash(name.as_bytes()).as_bytes().repeat(PACK_LENGTH / 32);
        let genesis = Genesis {
            mode: Mode::Plain,
            created: Timestamp::default(),
            content_key: *blake3::hash(owner.token.as_bytes()).as_bytes(),
            name,
        };
        self.ask(owner, Method::POST, "workspaces", encode_message(&genesis)).await?;
        let (id, head) = (genesis.workspace(), genesis.head());
        let pack = PackId::from_bytes(*blake3::hash(&pack_bytes).as_bytes());
        let length = pack_bytes.len() as u64;
        self.ask(owner, Method::PUT, &format!("workspaces/{id}/packs/{pack}"), pack_bytes).await?;
        Ok(Workspace { id, genesis: head, pack: PackRef { id: pack, length } })
    }

    /// Asks for something in the name of a device, and waits for the whole answer.
    ///
    /// # Errors
    /// Whatever the server says.
    pub async fn ask(
        &self,
        owner: &Enrolled,
        method: Method,
        path: &str,
        body: Vec<u8>,
    ) -> Result<()> {
        let request = self.client.request(method, format!("{}/api/v1/{path}", self.server));
        let request = request.bearer_auth(&owner.token).body(body);
        let answer = request.send().await.context(format!("asking for {path}"))?;
        let status = answer.status();
        let said = answer.bytes().await.context(format!("asking for {path}"))?;
        if !status.is_success() {
            bail!("{path}: {status}: {}", String::from_utf8_lossy(&said));
        }
        Ok(())
    }
}
