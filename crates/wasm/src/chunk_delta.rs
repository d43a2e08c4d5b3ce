//! Our own delta: what has changed of a file since a version whose chunk list is known.

use content::WorkspaceContentKeys;
use content::delta::{
    BaseVersion, ChunkClient, DeltaError, DeltaPart, Plain, RangedSource, Reconciler, SessionId,
};
use model::Genesis;
use model::codec::decode_message;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::failure::Failure;
use crate::source::{Ranged, Sink, Source};

/// One exchange about one new version of a file in a plain workspace.
///
/// The order of calls: [`survey`](Self::survey), which may ask for sums, and [`take_sums`](Self::take_sums) then; or
/// neither, where a sketch was kept. [`send`](Self::send), then [`take_answer`](Self::take_answer) where chunks are
/// wanted. At the end [`kept`](Self::kept) is what to keep for the next time.
#[wasm_bindgen]
pub struct ChunkDelta {
    plain: Plain,
    keys: WorkspaceContentKeys,
    session: SessionId,
    base: BaseVersion,
    reconciler: Option<Reconciler>,
    client: Option<ChunkClient>,
}

#[wasm_bindgen]
impl ChunkDelta {
    /// Prepares an exchange. `genesis` is the encoded genesis of the workspace, `session` are 16 random bytes, `base` is
    /// an encoded base version: the server's chunk list, or what was kept.
    ///
    /// # Errors
    /// `message` where one of them is none, `is_sealed`, `length`.
    #[wasm_bindgen(constructor)]
    pub fn new(genesis: &[u8], session: &[u8], base: &[u8]) -> Result<Self, Failure> {
        let (plain, keys) = workspace_of(genesis)?;
        let (session, base) = (session_of(session)?, BaseVersion::decode(base)?);
        Ok(Self { plain, keys, session, base, reconciler: None, client: None })
    }

    /// Cuts and names the new version; returns a message that asks for the sums of what has changed, if anything has.
    ///
    /// # Errors
    /// `read`, `too_many_chunks`, `invalid_chunk_size`.
    pub fn survey(&mut self, new: &Source) -> Result<Option<Vec<u8>>, Failure> {
        let chunk_size = self.base.table().chunk_size();
        let survey = ChunkClient::survey(&self.keys, chunk_size, &mut Ranged(new))?;
        let reconciler = Reconciler::of_survey(self.plain.workspace(), self.session, survey);
        let ask = reconciler.ask_sums(self.plain, &self.base);
        self.reconciler = Some(reconciler);
        Ok(ask)
    }

    /// Takes the sums that were asked for.
    ///
    /// # Errors
    /// `length`, `wrong_session` and those of messages; `no_such` where nothing was asked for.
    #[wasm_bindgen(js_name = "takeSums")]
    pub fn take_sums(&mut self, message: &[u8]) -> Result<(), Failure> {
        let reconciler = self.reconciler.as_ref().ok_or_else(out_of_turn)?;
        self.base = reconciler.take_sums(self.base.clone(), message)?;
        Ok(())
    }

    /// Compares the new version with the base, and gives the messages of the delta to `sink`. `old` are the bytes of the
    /// base, where they were kept: then each change is found to the byte.
    ///
    /// # Errors
    /// `read`, `too_many_chunks`.
    pub fn send(&mut self, new: &Source, old: Option<Source>, sink: &Sink) -> Result<(), Failure> {
        let mut client = ChunkClient::new(&self.keys, self.plain.workspace(), self.session);
        if let Some(survey) = self.reconciler.take().and_then(Reconciler::into_survey) {
            client = client.with_survey(survey);
        }
        let plain = self.plain;
        let mut old = old.as_ref().map(Ranged);
        let old = old.as_mut().map(|old| old as &mut dyn RangedSource);
        client.send_delta(&self.base, old, &mut Ranged(new), |part| deliver(part, plain, sink))?;
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
