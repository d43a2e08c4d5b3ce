//! Our own delta: what has changed of a file since a version whose chunk list is known.

use content::WorkspaceContentKeys;
use content::delta::{
    BaseVersion, ChunkClient, DeltaError, DeltaPart, Plain, RangedSource, Reconciled, Reconciler,
    SessionId,
};
use model::Genesis;
use model::codec::decode_message;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::failure::Failure;
use crate::source::{Ranged, Sink, Source};

/// One exchange about one new version of a file in a plain workspace.
///
/// The order of calls: [`question`](Self::question), and [`take_told`](Self::take_told) as long as there is another one;
/// [`take_list`](Self::take_list) where there are too many; or none of them, where a sketch was kept. [`send`](Self::send), then [`take_answer`](Self::take_answer) where chunks are
/// wanted. At the end [`kept`](Self::kept) is what to keep for the next time.
#[wasm_bindgen]
pub struct ChunkDelta {
    plain: Plain,
    keys: WorkspaceContentKeys,
    session: SessionId,
    /// What is there, as soon as it is known.
    base: Option<BaseVersion>,
    reconciler: Option<Reconciler>,
    client: Option<ChunkClient>,
}

#[wasm_bindgen]
impl ChunkDelta {
    /// Prepares an exchange. `genesis` is the encoded genesis of the workspace, `session` are 16 random bytes, `base` is
    /// an encoded base version: the server's chunk list, or what was kept. Without it the chunk lists are reconciled.
    ///
    /// # Errors
    /// `message` where one of them is none, `is_sealed`, `length`.
    #[wasm_bindgen(constructor)]
    pub fn new(genesis: &[u8], session: &[u8], base: Option<Vec<u8>>) -> Result<Self, Failure> {
        let (plain, keys) = workspace_of(genesis)?;
        let session = session_of(session)?;
        let base = base.map(|base| BaseVersion::decode(&base)).transpose()?;
        Ok(Self { plain, keys, session, base, reconciler: None, client: None })
    }

    /// Returns the first question to the server, if there is one: for symbols of the chunk list of what is there; or, where that is
    /// known, for the sums of what has changed, for which the new version is cut and named.
    ///
    /// # Errors
    /// `read`, `too_many_chunks`, `invalid_chunk_size`.
    pub fn question(&mut self, new: &Source) -> Result<Option<Vec<u8>>, Failure> {
        let workspace = self.plain.workspace();
        let (reconciler, question) = match &self.base {
            None => {
                let (reconciler, symbols) = Reconciler::begin_session(workspace, self.session);
                (reconciler, Some(symbols))
            }
            Some(base) => {
                let chunk_size = base.table().chunk_size();
                let survey = ChunkClient::survey(&self.keys, chunk_size, &mut Ranged(new))?;
                let reconciler = Reconciler::of_survey(workspace, self.session, survey);
                let sums = reconciler.ask_sums(self.plain, base);
                (reconciler, sums)
            }
        };
        self.reconciler = Some(reconciler);
        Ok(question)
    }

    /// Takes the answer to a question; returns the next question, if there is one. The new version is cut and named once.
    ///
    /// # Errors
    /// `too_different` where fetching the chunk list costs less than to go on; `read`, `too_many_chunks`, `unverified`,
    /// `length`, `wrong_session` and those of messages; `no_such` where nothing was asked.
    #[wasm_bindgen(js_name = "takeTold")]
    pub fn take_told(&mut self, message: &[u8], new: &Source) -> Result<Option<Vec<u8>>, Failure> {
        self.take_told_of(message, &mut Ranged(new))
    }

    /// Takes the chunk list of what is there, where it was not learnt by questions (`too_different`); returns the next question, if there is one,
    /// for sums. The new version was cut for the questions, and is not cut again.
    ///
    /// # Errors
    /// `message`; `no_such` where nothing was asked.
    #[wasm_bindgen(js_name = "takeList")]
    pub fn take_list(&mut self, list: &[u8]) -> Result<Option<Vec<u8>>, Failure> {
        let base = BaseVersion::decode(list)?;
        let reconciler = self.reconciler.as_ref().ok_or_else(out_of_turn)?;
        let sums = reconciler.ask_sums(self.plain, &base);
        self.base = Some(base);
        Ok(sums)
    }

    /// Compares the new version with the base, and gives the messages of the delta to `sink`. `old` are the bytes of the
    /// base, where they were kept: then each change is found to the byte.
    ///
    /// # Errors
    /// `read`, `too_many_chunks`; `no_such` where no base is known.
    pub fn send(&mut self, new: &Source, old: Option<Source>, sink: &Sink) -> Result<(), Failure> {
        let mut client = ChunkClient::new(&self.keys, self.plain.workspace(), self.session);
        if let Some(survey) = self.reconciler.take().and_then(Reconciler::into_survey) {
            client = client.with_survey(survey);
        }
        let plain = self.plain;
        let mut old = old.as_ref().map(Ranged);
        let old = old.as_mut().map(|old| old as &mut dyn RangedSource);
        let base = self.base.as_ref().ok_or_else(out_of_turn)?;
        client.send_delta(base, old, &mut Ranged(new), |part| deliver(part, plain, sink))?;
        self.client = Some(client);
        Ok(())
    }

    /// Takes an answer; returns whether the new version is there. Where it is not, chunks were wanted, whose messages
    /// go to `sink`.
    ///
    /// # Errors
    /// `unverified`, `no_such`, `read`, `wrong_session` and those of messages.
    #[wasm_bindgen(js_name = "takeAnswer")]
    pub fn take_answer(
        &mut self,
        message: &[u8],
        new: &Source,
        sink: &Sink,
    ) -> Result<bool, Failure> {
        let client = self.client.as_mut().ok_or_else(out_of_turn)?;
        let plain = self.plain;
        client.take_answer(message, &mut Ranged(new), |part| deliver(part, plain, sink))
    }

    /// Returns what to keep of the new version, so that the next delta against it needs one request.
    pub fn kept(&mut self) -> Option<Vec<u8>> {
        self.client.take().map(|client| client.into_base().encode())
    }
}

impl ChunkDelta {
    fn take_told_of(
        &mut self,
        message: &[u8],
        new: &mut dyn RangedSource,
    ) -> Result<Option<Vec<u8>>, Failure> {
        let reconciler = self.reconciler.as_mut().ok_or_else(out_of_turn)?;
        if let Some(base) = &self.base {
            self.base = Some(reconciler.take_sums(base.clone(), message)?);
            return Ok(None);
        }
        match reconciler.take(message, &self.keys, new)? {
            Reconciled::Base(base) => {
                let sums = reconciler.ask_sums(self.plain, &base);
                self.base = Some(base);
                Ok(sums)
            }
            Reconciled::More(symbols) => {
                reconciler.check_shorter_than_list()?;
                Ok(Some(symbols))
            }
        }
    }
}

fn deliver(part: DeltaPart, plain: Plain, sink: &Sink) -> Result<(), Failure> {
    let literal_length = part.literal_length() as u32;
    sink.take(&part.into_message(plain)?, literal_length);
    Ok(())
}

/// A call that does not follow what was called before.
pub(crate) fn out_of_turn() -> Failure {
    DeltaError::NoSuch { what: "call before this one", index: 0, count: 0 }.into()
}

/// Reads the genesis of a plain workspace: its witness, and the keys that cut and name.
pub(crate) fn workspace_of(genesis: &[u8]) -> Result<(Plain, WorkspaceContentKeys), Failure> {
    let genesis: Genesis = decode_message(genesis).map_err(DeltaError::from)?;
    let plain = Plain::of(&genesis)?;
    Ok((plain, WorkspaceContentKeys::derive(&genesis.content_key)))
}

pub(crate) fn session_of(session: &[u8]) -> Result<SessionId, Failure> {
    let (expected, actual) = (SessionId::LENGTH as u64, session.len() as u64);
    let bytes =
        session.try_into().map_err(|_| DeltaError::Length { what: "session", expected, actual })?;
    Ok(SessionId::from_bytes(bytes))
}

#[cfg(test)]
mod tests;
