//! What whoever carries messages must know of one: what it is, and of which session.

use model::WorkspaceId;
use model::codec::{Decode, Decoder, Message};

use super::error::DeltaError;
use super::message::DeltaMessage;
use super::plain::SessionId;

/// What a client's message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageKind {
    /// It opens a session of WebRsync.
    Open,
    /// A part of a recipe, of WebRsync.
    Recipe,
    /// It opens a session of WebR2sync.
    NewSums,
    /// A part of the missing bytes, of WebR2sync.
    Literals,
    /// A part of a delta of our own method.
    Chunks,
    /// It asks for symbols of a chunk list.
    AskSymbols,
    /// It asks for the sums of chunks.
    AskSums,
}

/// The beginning of a client's message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Envelope {
    /// What it is.
    pub kind: MessageKind,
    /// Of which session.
    pub session: SessionId,
}

impl Envelope {
    /// Reads the beginning of a message; whether the rest of it is one, is seen by who takes it.
    ///
    /// # Errors
    /// [`DeltaError::Message`] where no message of a client begins like this.
    pub fn of(message: &[u8]) -> Result<Self, DeltaError> {
        let mut decoder = Decoder::new(message);
        let [magic, _version, tag] = decoder.array()?;
        let (kind, has_workspace) = match tag {
            0 => (MessageKind::Open, true),
            2 => (MessageKind::Recipe, false),
            3 => (MessageKind::NewSums, true),
            5 => (MessageKind::Literals, false),
            7 => (MessageKind::Chunks, false),
            8 => (MessageKind::AskSymbols, true),
            10 => (MessageKind::AskSums, true),
            _ => return Err(decoder.invalid("delta message", format!("kind {tag}")).into()),
        };
        if magic != DeltaMessage::MAGIC {
            return Err(decoder.invalid("delta message", "it is none").into());
        }
        if has_workspace {
            WorkspaceId::decode(&mut decoder)?;
        }
        Ok(Self { kind, session: SessionId::decode(&mut decoder)? })
    }
}

/// Returns the body of a request with these messages, each behind its length in four bytes, little-endian.
pub fn body_of(messages: &[Vec<u8>]) -> Vec<u8> {
    let mut body = Vec::with_capacity(messages.iter().map(|message| message.len() + 4).sum());
    for message in messages {
        body.extend_from_slice(&(message.len() as u32).to_le_bytes());
        body.extend_from_slice(message);
    }
    body
}

#[cfg(test)]
mod tests {
    use model::Genesis;

    use super::*;
    use crate::delta::{Plain, ReverseClient, RsyncClient, Tuning};

    #[test]
    fn envelope_tells_kind_and_session_of_what_clients_send() {
        let genesis = Genesis {
            name: "home".to_owned(),
            mode: model::Mode::Plain,
            created: model::Timestamp::default(),
            content_key: [3; 32],
        };
        let plain = Plain::of(&genesis).unwrap();
        let session = SessionId::from_bytes([7; 16]);
        let (_, open) = RsyncClient::begin(plain, session, Tuning::Plus);
        assert_eq!(Envelope::of(&open).unwrap(), Envelope { kind: MessageKind::Open, session });
        let (_, sums) =
            ReverseClient::begin(plain, session, Tuning::Plus, &mut &b"bytes"[..]).unwrap();
        assert_eq!(Envelope::of(&sums).unwrap(), Envelope { kind: MessageKind::NewSums, session });
    }

    #[test]
    fn what_no_client_sends_has_no_envelope() {
        for bytes in [&b""[..], b"d", b"d\x01", b"d\x01\x06", b"x\x01\x02", b"d\x01\x02short"] {
            assert!(Envelope::of(bytes).is_err(), "{bytes:?}");
        }
    }
}
