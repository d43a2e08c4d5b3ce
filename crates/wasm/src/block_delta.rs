//! The deltas of the paper, to compare with ours: WebRsync and WebR2sync, with and without what it adds to them.

use content::delta::{DeltaError, Next, Plain, ReverseClient, RsyncClient, SessionId, Tuning};
use wasm_bindgen::prelude::wasm_bindgen;

use crate::chunk_delta::{out_of_turn, session_of, workspace_of};
use crate::failure::Failure;
use crate::source::{Ranged, Sink, Source};

/// Who searches.
enum Side {
    /// The client: WebRsync.
    Client(RsyncClient),
    /// The server: WebR2sync.
    Server(ReverseClient),
}

/// One exchange about one new version of a file in a plain workspace.
///
/// The order of calls: [`begin`](Self::begin), whose message goes to the server; [`reply`](Self::reply) to what comes back;
/// [`take_answer`](Self::take_answer) where the server has not verified what it put together.
#[wasm_bindgen]
pub struct BlockDelta {
    plain: Plain,
    session: SessionId,
    tuning: Tuning,
    is_reversed: bool,
    side: Option<Side>,
}

#[wasm_bindgen]
impl BlockDelta {
    /// Prepares an exchange, as [`crate::ChunkDelta::new`] does. `tuning` is `classic`, `plus` (WebRsync+, WebR2sync+) or
    /// `careful`; `is_reversed` says that the server searches.
    ///
    /// # Errors
    /// `message`, `is_sealed`, `length`; `no_such` for another tuning.
    #[wasm_bindgen(constructor)]
    pub fn new(
        genesis: &[u8],
        session: &[u8],
        tuning: &str,
        is_reversed: bool,
    ) -> Result<Self, Failure> {
        let (plain, _) = workspace_of(genesis)?;
        let session = session_of(session)?;
        let tuning = match tuning {
            "classic" => Tuning::Classic,
            "plus" => Tuning::Plus,
            "careful" => Tuning::Careful,
            _ => return Err(DeltaError::NoSuch { what: "tuning", index: 0, count: 3 }.into()),
        };
        Ok(Self { plain, session, tuning, is_reversed, side: None })
    }

    /// Returns the first message. Where the server searches, the new version is read for it.
    ///
    /// # Errors
    /// `too_large`, `read`.
    pub fn begin(&mut self, new: &Source) -> Result<Vec<u8>, Failure> {
        let (side, message) = match self.is_reversed {
            false => {
                let (client, message) = RsyncClient::begin(self.plain, self.session, self.tuning);
                (Side::Client(client), message)
            }
            true => {
                let new = &mut Ranged(new);
                let (client, message) =
                    ReverseClient::begin(self.plain, self.session, self.tuning, new)?;
                (Side::Server(client), message)
            }
        };
        self.side = Some(side);
        Ok(message)
    }

    /// Takes what the server said to the first message, and gives the messages that follow to `sink`.
    ///
    /// # Errors
    /// `wrong_session`, `length`, `read` and those of messages; `no_such` before [`Self::begin`].
    pub fn reply(&mut self, message: &[u8], new: &Source, sink: &Sink) -> Result<(), Failure> {
        let new = &mut Ranged(new);
        let send = |message: Vec<u8>| {
            sink.take(&message, 0);
            Ok::<_, Failure>(())
        };
        match self.side.as_mut().ok_or_else(out_of_turn)? {
            Side::Client(client) => client.take_sums(message, new, send),
            Side::Server(client) => client.take_matches(message, new, send),
        }
    }

    /// Returns how many bytes of the file were sent.
    #[wasm_bindgen(js_name = "literalLength")]
    pub fn literal_length(&self) -> f64 {
        match &self.side {
            Some(Side::Client(client)) => client.literal_length() as f64,
            Some(Side::Server(client)) => client.literal_length() as f64,
            None => 0.0,
        }
    }

    /// Takes the answer; returns whether the new version is there. Where it is not, the exchange begins again with `careful`.
    ///
    /// # Errors
    /// `unverified`, where it was careful already; `wrong_session` and those of messages.
    #[wasm_bindgen(js_name = "takeAnswer")]
    pub fn take_answer(&mut self, message: &[u8]) -> Result<bool, Failure> {
        let next = match self.side.take().ok_or_else(out_of_turn)? {
            Side::Client(client) => client.take_answer(message)?,
            Side::Server(client) => client.take_answer(message)?,
        };
        Ok(next == Next::Done)
    }
}

#[cfg(test)]
mod tests;
