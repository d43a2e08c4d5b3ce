//! What a client sends of one edit, by each method: requests that are made before anything is measured.
//!
//! A browser works for its own user, and thousands of browsers are thousands of machines; here one process plays them all. So what a browser
//! computes is computed ahead, and what the server would answer to its first message, too. While something is measured, each answer
//! is compared with the one that was foreseen: a client whose server says something else has failed.

use anyhow::{Context, Result, bail, ensure};
use content::WorkspaceContentKeys;
use content::delta::{
    BaseVersion, ChunkClient, DeltaError, Plain, RangedSource, Reconciler, ReverseClient,
    ReverseServer, SessionId, Tuning, answer_sums, body_of,
};
use model::codec::decode_message;
use model::{Genesis, WorkspaceId};

/// How large a new version may be for a server whose part is played here.
const SIZE_MAX: u64 = 1 << 40;

/// The app keeps the bytes of files up to this length (`web/app/src/transfers/sketches.ts`).
const OLD_LENGTH_MAX: usize = 8 * 1024 * 1024;

/// How a client sends what has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Method {
    /// Ours, against a version that the client has sent itself: one request.
    Ours,
    /// Ours as the app sends a file that somebody picks: it asks for genesis, chunk list and sums first.
    OursPicked,
    /// WebR2sync+.
    WebR2syncPlus,
    /// WebR2sync.
    WebR2sync,
    /// The whole file, the paper's NoWebRsync.
    Whole,
}

impl Method {
    /// All methods.
    pub const ALL: [Self; 5] =
        [Self::Ours, Self::OursPicked, Self::WebR2syncPlus, Self::WebR2sync, Self::Whole];

    /// The name on the command line and in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ours => "ours",
            Self::OursPicked => "ours-picked",
            Self::WebR2syncPlus => "webr2sync+",
            Self::WebR2sync => "webr2sync",
            Self::Whole => "whole",
        }
    }

    /// The name for people.
    pub fn title(self) -> &'static str {
        match self {
            Self::Ours => "ours",
            Self::OursPicked => "ours, a picked file",
            Self::WebR2syncPlus => "WebR2sync+",
            Self::WebR2sync => "WebR2sync",
            Self::Whole => "whole file",
        }
    }

    /// Tells whether the server remembers something between two requests.
    pub fn has_session(self) -> bool {
        matches!(self, Self::WebR2syncPlus | Self::WebR2sync)
    }

    /// Tells whether the client has to know what a version consists of.
    pub fn wants_base(self) -> bool {
        matches!(self, Self::Ours | Self::OursPicked)
    }
}

/// What is to be asked, of which door.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Door {
    /// `GET /genesis`.
    Genesis,
    /// `GET /chunks/PATH`.
    Chunks,
    /// `POST /delta/PATH`.
    Delta,
    /// `PUT /files/PATH`.
    File,
    /// `GET /files/PATH`.
    Read,
}

/// What the server is to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// Something, with the status 200.
    Something,
    /// A message whose bytes have this hash, with the status 202.
    Message([u8; 32]),
    /// That the new version is there.
    Stored,
}

/// One request of an exchange.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Where it goes.
    pub door: Door,
    /// Its body.
    pub body: Vec<u8>,
    /// What is to come back.
    pub expected: Expected,
}

/// A workspace as its clients know it.
#[derive(Debug, Clone)]
pub struct Known {
    plain: Plain,
    keys: WorkspaceContentKeys,
}

/// An old and a new version, and what the client knows of the old one.
#[derive(Debug, Clone, Copy)]
pub struct Pair<'files> {
    /// What the server has.
    pub old: &'files [u8],
    /// What the client has.
    pub new: &'files [u8],
    /// What the client has kept of the old version, where it keeps anything.
    pub base: Option<&'files BaseVersion>,
}

impl Known {
    /// Reads the genesis of a workspace.
    ///
    /// # Errors
    /// Where it is none, or sealed.
    pub fn of(genesis: &[u8]) -> Result<Self> {
        let genesis: Genesis = decode_message(genesis).context("no genesis")?;
        let plain = Plain::of(&genesis)?;
        Ok(Self { plain, keys: WorkspaceContentKeys::derive(&genesis.content_key) })
    }

    /// Returns the workspace.
    pub fn workspace(&self) -> WorkspaceId {
        self.plain.workspace()
    }

    /// Returns what a client keeps of a version that the server cut as in this list.
    ///
    /// # Errors
    /// Where the list is none, or is not that of these bytes.
    pub fn survey(&self, list: &[u8], bytes: &[u8]) -> Result<BaseVersion> {
        let table = BaseVersion::decode(list)?.table().clone();
        let base = ChunkClient::survey(&self.keys, table.chunk_size(), &mut &*bytes)?;
        ensure!(*base.table() == table, "the server has cut a file in another way");
        Ok(base)
    }

    /// Makes the requests of an edit; returns with them what the client keeps of the new version.
    ///
    /// # Errors
    /// Where the method cannot do it.
    pub fn prepare(
        &self,
        method: Method,
        pair: Pair<'_>,
        session: SessionId,
    ) -> Result<(Vec<Request>, Option<BaseVersion>)> {
        match method {
            Method::Ours => self.chunks(pair, session, false),
            Method::OursPicked => self.chunks(pair, session, true),
            Method::WebR2syncPlus => Ok((self.blocks(Tuning::Plus, pair, session)?, None)),
            Method::WebR2sync => Ok((self.blocks(Tuning::Classic, pair, session)?, None)),
            Method::Whole => {
                let body = pair.new.to_vec();
                Ok((vec![Request { door: Door::File, body, expected: Expected::Stored }], None))
            }
        }
    }

    fn chunks(
        &self,
        pair: Pair<'_>,
        session: SessionId,
        is_picked: bool,
    ) -> Result<(Vec<Request>, Option<BaseVersion>)> {
        let kept = pair.base.context("ours wants to know the old version")?;
        let (mut base, mut new) = (kept.clone(), pair.new);
        let mut client = ChunkClient::new(&self.keys, self.workspace(), session);
        let mut requests = Vec::new();
        if is_picked {
            base = BaseVersion::without_sketch(kept.table().clone());
            let get = |door| Request { door, body: Vec::new(), expected: Expected::Something };
            requests.extend([get(Door::Genesis), get(Door::Chunks)]);
            let survey = ChunkClient::survey(&self.keys, base.table().chunk_size(), &mut new)?;
            let reconciler = Reconciler::of_survey(self.workspace(), session, survey);
            if let Some(question) = reconciler.ask_sums(self.plain, &base) {
                let (plain, table) = (self.plain, kept.table());
                let sums = answer_sums(plain, &self.keys, table, &question, &mut { pair.old })?;
                base = reconciler.take_sums(base, &sums)?;
                requests.push(message(body_of(&[question]), &sums));
            }
            let survey = reconciler.into_survey().context("it was of a survey")?;
            client = client.with_survey(survey);
        }
        let mut parts = Vec::new();
        // Whoever has kept a sketch of a short file has kept its bytes, too.
        let mut old = pair.old;
        let is_kept = !is_picked && old.len() <= OLD_LENGTH_MAX;
        let old = is_kept.then_some(&mut old as &mut dyn RangedSource);
        client.send_delta(&base, old, &mut new, |part| {
            parts.push(part.into_message(self.plain)?);
            Ok::<_, DeltaError>(())
        })?;
        let (door, expected) = (Door::Delta, Expected::Stored);
        requests.push(Request { door, body: body_of(&parts), expected });
        Ok((requests, Some(client.into_base())))
    }

    fn blocks(&self, tuning: Tuning, pair: Pair<'_>, session: SessionId) -> Result<Vec<Request>> {
        let mut new = pair.new;
        let (mut client, opening) = ReverseClient::begin(self.plain, session, tuning, &mut new)?;
        let (_, matches) = ReverseServer::begin(self.plain, &opening, &mut { pair.old }, SIZE_MAX)?;
        let mut parts = Vec::new();
        client.take_matches(&matches, &mut new, |part| {
            parts.push(part);
            Ok::<_, DeltaError>(())
        })?;
        if parts.is_empty() {
            bail!("a delta has at least one message");
        }
        let (door, body, expected) = (Door::Delta, body_of(&parts), Expected::Stored);
        Ok(vec![message(body_of(&[opening]), &matches), Request { door, body, expected }])
    }
}

fn message(body: Vec<u8>, answer: &[u8]) -> Request {
    let expected = Expected::Message(*blake3::hash(answer).as_bytes());
    Request { door: Door::Delta, body, expected }
}
