//! The envelope: what travels, whatever carries it.
//!
//! *Participants*: the messenger that sends, the one that receives, and gateways between them, which read the header
//! alone. *Goals*: a receiver knows from the first bytes whether it understands the rest; two programs of different
//! versions never guess. *Non-goals*: integrity and secrecy, which belong to the transport and to what is inside.
//! *Invariants*: one envelope has one encoding as bytes; outside bytes give an error, never a panic, and never more memory
//! than they are long. Field by field in `docs/design/messaging.md`.

use bytes::{BufMut, Bytes, BytesMut};

use crate::body::{BODY_SIZE_MAX, Encoding, PackedBody};
use crate::error::MessagingError;
use crate::names::{InstanceId, Name, OperationId, ReplyAddress};

/// The version that this program writes and reads.
pub const ENVELOPE_VERSION: u8 = 1;

/// Largest envelope in bytes. NATS takes a mebibyte unless it is told otherwise.
pub const ENVELOPE_SIZE_MAX: usize = 1_000_000;

/// Longest name of a method in bytes.
pub const METHOD_LENGTH_MAX: usize = 64;

const MAGIC: [u8; 2] = *b"SM";
const HEADER_LENGTH: usize = 104;

/// How many bytes a body may have when it travels, whatever its target and method are called.
pub(crate) const BODY_ROOM: usize =
    ENVELOPE_SIZE_MAX - HEADER_LENGTH - crate::names::NAME_LENGTH_MAX - METHOD_LENGTH_MAX;

/// What a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// One of a service shall answer.
    Call,
    /// One of a service shall do it; nobody waits.
    Cast,
    /// Something happened, for all who listen.
    Event,
    /// All of a service shall answer.
    Multi,
    /// The result of a call or multi.
    Answer,
    /// The fault that a call or multi ended with.
    Fault,
}

impl Kind {
    const ALL: [Self; 6] =
        [Self::Call, Self::Cast, Self::Event, Self::Multi, Self::Answer, Self::Fault];

    fn code(self) -> u8 {
        match self {
            Self::Call => 1,
            Self::Cast => 2,
            Self::Event => 3,
            Self::Multi => 4,
            Self::Answer => 5,
            Self::Fault => 6,
        }
    }
}

/// A message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Envelope {
    /// What it is.
    pub kind: Kind,
    /// How the body is written.
    pub encoding: Encoding,
    /// The version of the interface that the sender speaks.
    pub interface_version: u16,
    /// How often this operation was sent before, plus one.
    pub attempt: u32,
    /// What it is about; an answer carries the id of its request.
    pub operation: OperationId,
    /// Who sent it.
    pub sender: InstanceId,
    /// When it is of no use any more, in milliseconds since 1970.
    pub deadline_ms: Option<u64>,
    /// For events, the place among all events of the sender; else 0.
    pub sequence: u64,
    /// For events, the place of the sender's event before this one in the same topic; 0 where the sender does not know one.
    pub previous: u64,
    /// Who waits for an answer.
    pub reply_to: Option<ReplyAddress>,
    /// The service or topic it is for.
    pub target: Name,
    /// The method, or the name of the event. Empty in answers.
    pub method: String,
    /// Arguments or result.
    pub body: PackedBody,
}

impl Envelope {
    /// Writes the envelope.
    ///
    /// # Errors
    /// [`MessagingError::TooLarge`].
    pub fn encode(&self) -> Result<Bytes, MessagingError> {
        assert!(self.method.len() <= METHOD_LENGTH_MAX, "methods have short names");
        let target = self.target.as_str();
        let size = HEADER_LENGTH + target.len() + self.method.len() + self.body.bytes.len();
        if size > ENVELOPE_SIZE_MAX {
            return Err(MessagingError::TooLarge { size, max: ENVELOPE_SIZE_MAX });
        }
        let mut buffer = BytesMut::with_capacity(size);
        buffer.put_slice(&MAGIC);
        buffer.put_u8(ENVELOPE_VERSION);
        buffer.put_u8(self.kind.code());
        buffer.put_u8(match self.encoding {
            Encoding::MessagePack => 1,
            Encoding::Json => 2,
        });
        buffer.put_u8(u8::from(self.body.is_compressed));
        buffer.put_u16_le(self.interface_version);
        buffer.put_u32_le(self.attempt);
        buffer.put_u32_le(length(self.body.size));
        buffer.put_slice(self.operation.as_bytes());
        buffer.put_slice(self.sender.as_bytes());
        buffer.put_u64_le(self.deadline_ms.unwrap_or_default());
        buffer.put_u64_le(self.sequence);
        buffer.put_u64_le(self.previous);
        let reply_to = self.reply_to.unwrap_or(NOBODY);
        buffer.put_slice(reply_to.instance.as_bytes());
        buffer.put_u64_le(reply_to.channel);
        buffer.put_u16_le(u16::try_from(target.len()).expect("names are short"));
        buffer.put_u16_le(u16::try_from(self.method.len()).expect("methods have short names"));
        buffer.put_u32_le(length(self.body.bytes.len()));
        debug_assert_eq!(buffer.len(), HEADER_LENGTH);
        buffer.put_slice(target.as_bytes());
        buffer.put_slice(self.method.as_bytes());
        buffer.put_slice(&self.body.bytes);
        Ok(buffer.freeze())
    }

    /// Reads an envelope. The body is not opened.
    ///
    /// # Errors
    /// [`MessagingError::Undecodable`] and [`MessagingError::TooLarge`].
    pub fn decode(bytes: &Bytes) -> Result<Self, MessagingError> {
        let size = bytes.len();
        if size > ENVELOPE_SIZE_MAX {
            return Err(MessagingError::TooLarge { size, max: ENVELOPE_SIZE_MAX });
        }
        let mut reader = Reader { bytes: bytes.clone(), at: 0 };
        if reader.array::<2>()? != MAGIC {
            return Err(invalid("it does not begin as one"));
        }
        let version = reader.byte()?;
        if version != ENVELOPE_VERSION {
            return Err(invalid(format!("its version is {version}, not {ENVELOPE_VERSION}")));
        }
        let code = reader.byte()?;
        let kind = Kind::ALL.into_iter().find(|kind| kind.code() == code);
        let kind = kind.ok_or_else(|| invalid(format!("it is of an unknown kind {code}")))?;
        let encoding = match reader.byte()? {
            1 => Encoding::MessagePack,
            2 => Encoding::Json,
            other => return Err(invalid(format!("its encoding {other} is unknown"))),
        };
        let is_compressed = match reader.byte()? {
            0 => false,
            1 => true,
            other => return Err(invalid(format!("its compression {other} is unknown"))),
        };
        let interface_version = u16::from_le_bytes(reader.array()?);
        let attempt = u32::from_le_bytes(reader.array()?);
        let body_size = reader.length()?;
        let operation = OperationId::from_bytes(reader.array()?);
        let sender = InstanceId::from_bytes(reader.array()?);
        let deadline_ms = Some(reader.number()?).filter(|deadline| *deadline > 0);
        let (sequence, previous) = (reader.number()?, reader.number()?);
        let instance = InstanceId::from_bytes(reader.array()?);
        let reply_to = ReplyAddress { instance, channel: reader.number()? };
        let reply_to = Some(reply_to).filter(|address| *address != NOBODY);
        let target_length = usize::from(u16::from_le_bytes(reader.array()?));
        let method_length = usize::from(u16::from_le_bytes(reader.array()?));
        let body_length = reader.length()?;
        if body_size > BODY_SIZE_MAX || method_length > METHOD_LENGTH_MAX {
            return Err(invalid("a length in it is out of bounds"));
        }
        let target = reader.text(target_length)?;
        let target = Name::new(&target).map_err(|_| invalid("its target is no name"))?;
        let method = reader.text(method_length)?;
        let bytes = reader.take(body_length)?;
        if reader.at != size {
            return Err(invalid("bytes follow it"));
        }
        let body = PackedBody { is_compressed, size: body_size, bytes };
        Ok(Self {
            kind,
            encoding,
            interface_version,
            attempt,
            operation,
            sender,
            deadline_ms,
            sequence,
            previous,
            reply_to,
            target,
            method,
            body,
        })
    }

    /// Says whether the deadline has passed.
    pub fn is_expired(&self, now_ms: u64) -> bool {
        self.deadline_ms.is_some_and(|deadline| deadline <= now_ms)
    }
}

/// The address that stands where nobody waits.
const NOBODY: ReplyAddress = ReplyAddress { instance: InstanceId::from_bytes([0; 16]), channel: 0 };

fn length(length: usize) -> u32 {
    u32::try_from(length).expect("bodies are far smaller")
}

fn invalid(reason: impl ToString) -> MessagingError {
    MessagingError::undecodable("an envelope", reason)
}

struct Reader {
    bytes: Bytes,
    at: usize,
}

impl Reader {
    fn take(&mut self, length: usize) -> Result<Bytes, MessagingError> {
        let end = self.at.checked_add(length).filter(|end| *end <= self.bytes.len());
        let end = end.ok_or_else(|| invalid("it is cut off"))?;
        let taken = self.bytes.slice(self.at..end);
        self.at = end;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], MessagingError> {
        let taken = self.take(N)?;
        Ok(taken[..].try_into().expect("it has just been cut to this length"))
    }

    fn byte(&mut self) -> Result<u8, MessagingError> {
        Ok(self.array::<1>()?[0])
    }

    fn number(&mut self) -> Result<u64, MessagingError> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    fn length(&mut self) -> Result<usize, MessagingError> {
        let length = u32::from_le_bytes(self.array()?);
        usize::try_from(length).map_err(|_| invalid("a length in it is out of bounds"))
    }

    fn text(&mut self, length: usize) -> Result<String, MessagingError> {
        let taken = self.take(length)?;
        String::from_utf8(taken.into()).map_err(|_| invalid("a text in it is not UTF-8"))
    }
}

#[cfg(test)]
mod tests;
