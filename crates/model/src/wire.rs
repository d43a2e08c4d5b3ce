//! What a device and a server say to each other over the live connection (`docs/design/commit-log.md`, "Served").
//!
//! A frame is one encoded message. The device sends [`Request`]s, each with a number of its choice; the server
//! answers each with a [`Reply`] of the same number, in any order, and sends [`ServerFrame::Event`]s in between.

use crate::checkpoint::Checkpoint;
use crate::codec::{Decode, DecodeError, Decoder, Encode, Encoder, Message};
use crate::commit::{Commit, Head, decode_text};
use crate::entry::{Entry, Genesis};
use crate::ids::WorkspaceId;

/// The longest frame, in bytes.
pub const FRAME_LENGTH_MAX: usize = 20 * 1024 * 1024;

/// The longest error text, in bytes.
const ERROR_LENGTH_MAX: usize = 1024;

/// What a device asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// Put the commit into the log. Asking again with the same `op_id` returns the first entry.
    Commit(Commit),
    /// Which entry is the newest?
    Head,
    /// Entries after `since`, oldest first, as many as fit into `length_max` bytes but at least one.
    Entries {
        /// The last entry that the device has.
        since: u64,
        /// How many bytes of entries to send at most.
        length_max: u64,
    },
    /// Send every entry after `since` as an event, from now on.
    Subscribe {
        /// The last entry that the device has.
        since: u64,
    },
    /// The newest checkpoint.
    Checkpoint,
    /// Keep this checkpoint, if it is newer.
    PublishCheckpoint(Checkpoint),
    /// The genesis of the workspace.
    Genesis,
    /// Note that this device has everything of the workspace now, and that the log has everything of the device.
    InSync,
}

/// A request for one workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestFrame {
    /// Chosen by the device; the reply carries it.
    pub number: u64,
    /// The workspace.
    pub workspace: WorkspaceId,
    /// What is asked.
    pub request: Request,
}

/// What the server answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// The commit stands in the log, as this entry.
    Committed(Head),
    /// The newest entry.
    Head(Head),
    /// Entries, oldest first.
    Entries(Vec<Entry>),
    /// Events will follow.
    Subscribed,
    /// The newest checkpoint, if there is one.
    Checkpoint(Option<Checkpoint>),
    /// The checkpoint was taken or is older than the one there.
    Published,
    /// The genesis.
    Genesis(Genesis),
    /// The request was refused.
    Refused(Refusal),
    /// It was noted.
    Noted,
}

/// Why a request was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The kind, for programs.
    pub kind: RefusalKind,
    /// The text, for people.
    pub message: String,
}

/// The kinds of refusals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusalKind {
    /// Not signed in.
    Forbidden,
    /// No such workspace.
    NotFound,
    /// The request breaks a limit or makes no sense.
    Invalid,
    /// A pack that the commit names is not stored.
    PackMissing,
    /// The device has seen entries that this log does not have: the server was restored from an older copy.
    HistoryLost,
    /// No space, or over quota.
    NoSpace,
    /// The server cannot answer now; asking again may help.
    Unavailable,
    /// The same operation id with another commit.
    OperationReused,
    /// Two installations use one device id.
    DeviceCloned,
    /// Signed in, but not allowed to do this: a member who may only read, say.
    NotAllowed,
}

/// What the server sends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerFrame {
    /// The answer to a request.
    Reply {
        /// The number of the request.
        number: u64,
        /// The answer.
        reply: Reply,
    },
    /// A new entry in a workspace that the device has subscribed to.
    Event {
        /// The workspace.
        workspace: WorkspaceId,
        /// The entry.
        entry: Entry,
    },
}

impl Encode for RequestFrame {
    fn encode(&self, encoder: &mut Encoder) {
        encoder.unsigned(self.number);
        self.workspace.encode(encoder);
        match &self.request {
            Request::Commit(commit) => {
                encoder.unsigned(0);
                commit.encode(encoder);
            }
            Request::Head => encoder.unsigned(1),
            Request::Entries { since, length_max } => {
                encoder.unsigned(2);
                encoder.unsigned(*since);
                encoder.unsigned(*length_max);
            }
            Request::Subscribe { since } => {
                encoder.unsigned(3);
                encoder.unsigned(*since);
            }
            Request::Checkpoint => encoder.unsigned(4),
            Request::PublishCheckpoint(checkpoint) => {
                encoder.unsigned(5);
                checkpoint.encode(encoder);
            }
            Request::Genesis => encoder.unsigned(6),
            Request::InSync => encoder.unsigned(7),
        }
    }
}

impl Decode for RequestFrame {
    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let number = decoder.unsigned()?;
        let workspace = WorkspaceId::decode(decoder)?;
        let request = match decoder.unsigned_max(7)? {
            0 => Request::Commit(Commit::decode(decoder)?),
            1 => Request::Head,
            2 => Request::Entries { since: decoder.unsigned()?, length_max: decoder.unsigned()? },
            3 => Request::Subscribe { since: decoder.unsigned()? },
            4 => Request::Checkpoint,
            5 => Request::PublishCheckpoint(Checkpoint::decode(decoder)?),
            6 => Request::Genesis,
            _ => Request::InSync,
        };
        Ok(Self { number, workspace, request })
    }
}

impl Message for RequestFrame {
    const MAGIC: u8 = b'Q';
    const KIND: &'static str = "request";

    fn is_sealed(&self) -> bool {
        self.says(Message::is_sealed, Message::is_sealed)
    }

    fn is_of_cleanup(&self) -> bool {
        self.says(Message::is_of_cleanup, Message::is_of_cleanup)
    }

    fn is_of_mounts(&self) -> bool {
        self.says(Message::is_of_mounts, Message::is_of_mounts)
    }

    fn is_of_deltas(&self) -> bool {
        self.says(Message::is_of_deltas, Message::is_of_deltas)
    }
}

impl RequestFrame {
    /// Tells what the commit or the checkpoint in it says of itself; nothing else that is asked has versions of its own.
    fn says(&self, commit: fn(&Commit) -> bool, checkpoint: fn(&Checkpoint) -> bool) -> bool {
        match &self.request {
            Request::Commit(it) => commit(it),
            Request::PublishCheckpoint(it) => checkpoint(it),
            _ => false,
        }
    }
}

impl Encode for Reply {
    fn encode(&self, encoder: &mut Encoder) {
        match self {
            Self::Committed(head) => {
                encoder.unsigned(0);
                head.encode(encoder);
            }
            Self::Head(head) => {
                encoder.unsigned(1);
                head.encode(encoder);
            }
            Self::Entries(entries) => {
                encoder.unsigned(2);
                encoder.list(entries);
            }
            Self::Subscribed => encoder.unsigned(3),
            Self::Checkpoint(checkpoint) => {
                encoder.unsigned(4);
                encoder.option(checkpoint.as_ref());
            }
            Self::Published => encoder.unsigned(5),
            Self::Genesis(genesis) => {
                encoder.unsigned(6);
                genesis.encode(encoder);
            }
            Self::Refused(refusal) => {
                encoder.unsigned(7);
                encoder.unsigned(refusal.kind as u64);
                encoder.byte_string(refusal.message.as_bytes());
            }
            Self::Noted => encoder.unsigned(8),
        }
    }
}

impl Decode for Reply {
    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        Ok(match decoder.unsigned_max(8)? {
            0 => Self::Committed(Head::decode(decoder)?),
            1 => Self::Head(Head::decode(decoder)?),
            2 => Self::Entries(decoder.list()?),
            3 => Self::Subscribed,
            4 => Self::Checkpoint(decoder.option()?),
            5 => Self::Published,
            6 => Self::Genesis(Genesis::decode(decoder)?),
            7 => {
                let kind = RefusalKind::decode(decoder)?;
                Self::Refused(Refusal { kind, message: decode_text(decoder, ERROR_LENGTH_MAX)? })
            }
            _ => Self::Noted,
        })
    }
}

impl Decode for RefusalKind {
    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        const KINDS: [RefusalKind; 10] = [
            RefusalKind::Forbidden,
            RefusalKind::NotFound,
            RefusalKind::Invalid,
            RefusalKind::PackMissing,
            RefusalKind::HistoryLost,
            RefusalKind::NoSpace,
            RefusalKind::Unavailable,
            RefusalKind::OperationReused,
            RefusalKind::DeviceCloned,
            RefusalKind::NotAllowed,
        ];
        let number = decoder.unsigned_max(KINDS.len() as u64 - 1)?;
        Ok(KINDS[number as usize])
    }
}

impl Refusal {
    /// Makes a refusal; a text that is too long is cut.
    pub fn new(kind: RefusalKind, message: impl ToString) -> Self {
        let mut message = message.to_string();
        let end = (0..=ERROR_LENGTH_MAX).rev().find(|&end| message.is_char_boundary(end));
        message.truncate(end.unwrap_or(0));
        Self { kind, message }
    }
}

impl Encode for ServerFrame {
    fn encode(&self, encoder: &mut Encoder) {
        match self {
            Self::Reply { number, reply } => {
                encoder.unsigned(0);
                encoder.unsigned(*number);
                reply.encode(encoder);
            }
            Self::Event { workspace, entry } => {
                encoder.unsigned(1);
                workspace.encode(encoder);
                entry.encode(encoder);
            }
        }
    }
}

impl Decode for ServerFrame {
    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        Ok(match decoder.unsigned_max(1)? {
            0 => Self::Reply { number: decoder.unsigned()?, reply: Reply::decode(decoder)? },
            _ => Self::Event {
                workspace: WorkspaceId::decode(decoder)?,
                entry: Entry::decode(decoder)?,
            },
        })
    }
}

impl Message for ServerFrame {
    const MAGIC: u8 = b'S';
    const KIND: &'static str = "server frame";

    fn is_sealed(&self) -> bool {
        match self {
            Self::Reply { reply: Reply::Genesis(genesis), .. } => genesis.is_sealed(),
            _ => self.says(Message::is_sealed, Message::is_sealed),
        }
    }

    fn is_of_cleanup(&self) -> bool {
        self.says(Message::is_of_cleanup, Message::is_of_cleanup)
    }

    fn is_of_mounts(&self) -> bool {
        self.says(Message::is_of_mounts, Message::is_of_mounts)
    }

    fn is_of_deltas(&self) -> bool {
        self.says(Message::is_of_deltas, Message::is_of_deltas)
    }
}

impl ServerFrame {
    /// Tells whether any entry or the checkpoint in it says something of itself.
    fn says(&self, entry: fn(&Entry) -> bool, checkpoint: fn(&Checkpoint) -> bool) -> bool {
        match self {
            Self::Event { entry: it, .. } => entry(it),
            Self::Reply { reply: Reply::Entries(entries), .. } => entries.iter().any(entry),
            Self::Reply { reply: Reply::Checkpoint(Some(it)), .. } => checkpoint(it),
            Self::Reply { .. } => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::{decode_message, encode_message};
    use crate::ids::EntryHash;
    use crate::testing::{commit, put};

    #[test]
    fn frames_return_from_their_encoding() {
        let commit = commit(1, vec![put(1, 0, "a")]);
        let entry = Entry { seq: 1, previous: EntryHash::NONE, commit: commit.clone() };
        let workspace = WorkspaceId::from_bytes([9; 16]);
        let requests = [
            Request::Commit(commit),
            Request::Head,
            Request::Entries { since: 3, length_max: 1 << 20 },
            Request::Subscribe { since: 0 },
            Request::Checkpoint,
            Request::Genesis,
            Request::InSync,
        ];
        for (number, request) in (0..).zip(requests) {
            let frame = RequestFrame { number, workspace, request };
            assert_eq!(decode_message(&encode_message(&frame)), Ok(frame));
        }
        let refused = Reply::Refused(Refusal::new(RefusalKind::NotAllowed, "é".repeat(2000)));
        let entries = Reply::Entries(vec![entry.clone()]);
        for reply in [Reply::Committed(entry.head()), entries, refused, Reply::Noted] {
            let frame = ServerFrame::Reply { number: 7, reply };
            assert_eq!(decode_message(&encode_message(&frame)), Ok(frame));
        }
        let event = ServerFrame::Event { workspace, entry };
        assert_eq!(decode_message(&encode_message(&event)), Ok(event));
    }
}
