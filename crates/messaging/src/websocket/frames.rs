//! What travels over the socket: binary messages of a short head and, where there is one, an envelope.
//!
//! A message is the length of its head (two bytes, little-endian), the head in MessagePack, and the envelope.

use bytes::{BufMut, Bytes, BytesMut};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::body::Encoding;
use crate::envelope::{ENVELOPE_SIZE_MAX, Kind};
use crate::error::MessagingError;

/// The version of this protocol.
pub(super) const VERSION: u8 = 1;

/// Longest head in bytes.
const HEAD_MAX: usize = 1024;

/// Largest message in bytes.
pub(super) const FRAME_SIZE_MAX: usize = 2 + HEAD_MAX + ENVELOPE_SIZE_MAX;

/// How a device may send.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Way {
    Call,
    Cast,
    Multi,
    Event,
}

impl Way {
    pub(super) fn kind(self) -> Kind {
        match self {
            Self::Call => Kind::Call,
            Self::Cast => Kind::Cast,
            Self::Multi => Kind::Multi,
            Self::Event => Kind::Event,
        }
    }
}

/// A place in the events of a topic at one gateway. Another epoch is another count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Position {
    pub(super) epoch: u64,
    pub(super) last: u64,
}

/// What a device shows to go on with its session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SessionKey {
    /// Which session.
    pub(super) channel: u64,
    /// What nobody else knows.
    pub(super) secret: [u8; 16],
}

/// What a device says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Up {
    /// The first message. A session that is named goes on.
    Hello { version: u8, session: Option<SessionKey> },
    /// Send the envelope behind this.
    Send { number: u64, way: Way, expires_ms: Option<u64> },
    /// Tell the events of a topic from a position on, or from now.
    Listen { listener: u32, topic: String, from: Option<Position> },
    /// Tell them no more.
    Unlisten { listener: u32 },
}

/// What a gateway says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Down {
    /// The answer to the first message.
    Welcome { version: u8, session: SessionKey },
    /// What became of a message to be sent.
    Sent { number: u64, outcome: Outcome },
    /// Events of a topic are told from here on, or refused.
    Listening { listener: u32, position: Option<Position> },
    /// The envelope behind this is an event.
    Event { listener: u32, position: Position },
    /// Events are missing before this position.
    Gap { listener: u32, position: Position },
    /// The envelope behind this is an answer.
    Answer,
}

/// What became of a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Outcome {
    Done,
    NoReceiver,
    Full,
    Unreachable(String),
    Refused(String),
}

/// Writes a message.
pub(super) fn encode<T: Serialize>(head: &T, envelope: &[u8]) -> Bytes {
    let head = Encoding::MessagePack.encode("a head", head).expect("heads are plain");
    let length = u16::try_from(head.len()).expect("heads are short");
    let mut buffer = BytesMut::with_capacity(2 + head.len() + envelope.len());
    buffer.put_u16_le(length);
    buffer.put_slice(&head);
    buffer.put_slice(envelope);
    buffer.freeze()
}

/// Reads a message.
pub(super) fn decode<T: DeserializeOwned>(bytes: &Bytes) -> Result<(T, Bytes), MessagingError> {
    let what = "a message on a socket";
    let cut = || MessagingError::undecodable(what, "it is cut off");
    let length: [u8; 2] = bytes.get(..2).and_then(|it| it.try_into().ok()).ok_or_else(cut)?;
    let length = usize::from(u16::from_le_bytes(length));
    if length > HEAD_MAX {
        return Err(MessagingError::undecodable(what, "its head is too long"));
    }
    let head = bytes.get(2..2 + length).ok_or_else(cut)?;
    Ok((Encoding::MessagePack.decode(what, head)?, bytes.slice(2 + length..)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop, proptest};

    use super::*;

    #[test]
    fn messages_come_back() {
        let position = Position { epoch: 3, last: 9 };
        let head = Up::Listen { listener: 7, topic: "a.b".to_owned(), from: Some(position) };
        let bytes = encode(&head, b"tail");
        assert_eq!(decode::<Up>(&bytes).unwrap(), (head, Bytes::from_static(b"tail")));
        for cut in 0..bytes.len() - 4 {
            decode::<Up>(&bytes.slice(..cut)).unwrap_err();
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let bytes = Bytes::from(bytes);
            if let Ok((head, tail)) = decode::<Up>(&bytes) {
                assert_eq!(decode::<Up>(&encode(&head, &tail)).unwrap(), (head, tail));
            }
            if let Ok((head, tail)) = decode::<Down>(&bytes) {
                assert_eq!(decode::<Down>(&encode(&head, &tail)).unwrap(), (head, tail));
            }
        }
    }
}
