//! What a slot may be filled with, and how the messages about it rest in a store.
//!
//! *Participants*: every device that writes or reads slots, of this and of later versions. *Goals*: a slot of one store
//! holds an entry and nothing else, as it did before there were several; nothing is believed before its checksum fits,
//! and in a group with liars, its signature. *Invariants*: the encoding is that of `model::codec`, in an envelope at rest.
//!
//! The format in words: `docs/design/agreement.md`, "Objects".

use std::sync::Arc;

use bytes::Bytes;
use model::codec::{self, Decode, DecodeError, Decoder, Encode, Encoder, Message as Encoded};
use model::commit::COMMIT_LENGTH_MAX;
use model::{Entry, EntryHash, WorkspaceId};

use super::certifier::{Certificate, Certifier};
use super::disk_paxos::Block;
use super::rounds::{Message, ProposerId, Round, Value};
use crate::envelope;

/// An entry is a commit and a few bytes more, and so is a message about it.
const MESSAGE_LENGTH_MAX: usize = COMMIT_LENGTH_MAX + 1024;

/// An entry that somebody proposes for a slot.
#[derive(Debug, Clone)]
pub struct Candidate {
    entry: Arc<Entry>,
    hash: EntryHash,
    session: ProposerId,
    is_owners: bool,
}

impl Candidate {
    /// What stands in a slot of a group of one store: an entry, whoever proposed it.
    pub fn anonymous(entry: Entry) -> Self {
        Self::new(entry, ProposerId(0), false)
    }

    /// What a session of a device proposes, and whether as the owner of the slot.
    pub fn new(entry: Entry, session: ProposerId, is_owners: bool) -> Self {
        let hash = entry.hash();
        Self { entry: Arc::new(entry), hash, session, is_owners }
    }

    /// Returns the entry.
    pub fn entry(&self) -> &Entry {
        &self.entry
    }

    /// Returns the entry, to be kept.
    pub fn shared_entry(&self) -> Arc<Entry> {
        self.entry.clone()
    }

    /// Returns the session that proposed it; the owner of the next slot if this one is filled with it.
    pub fn session(&self) -> ProposerId {
        self.session
    }
}

impl PartialEq for Candidate {
    fn eq(&self, other: &Self) -> bool {
        (self.hash, self.session, self.is_owners) == (other.hash, other.session, other.is_owners)
    }
}

impl Eq for Candidate {}

impl Value for Candidate {
    fn is_owners(&self) -> bool {
        self.is_owners
    }
}

/// Where messages belong, and who vouches for them.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    /// The workspace.
    pub workspace: WorkspaceId,
    /// The slot.
    pub slot: u64,
    /// Signs and checks, in a group with liars.
    pub certifier: Option<&'a dyn Certifier>,
    /// Whether the group has one store, whose slots hold entries as they are.
    pub is_single: bool,
}

impl Context<'_> {
    /// Encodes a message as an object.
    pub fn encode(&self, message: &Message<Candidate>) -> Bytes {
        let bytes = match (message, self.certifier) {
            (Message::Vote(candidate), None) if self.is_single => {
                envelope::wrap_at_rest(candidate.entry())
            }
            (message, None) => envelope::wrap_at_rest(&SlotMessage(message.clone())),
            (message, Some(certifier)) => {
                let mut encoder = Encoder::default();
                encode_message(message, &mut encoder);
                let body = encoder.into_bytes();
                let certificate = certifier.sign(&self.signed_text(&body));
                envelope::wrap_at_rest(&SignedMessage { body, certificate })
            }
        };
        bytes.into()
    }

    /// Decodes an object.
    ///
    /// In a group with liars, what nobody vouches for is [`Message::Noise`].
    ///
    /// # Errors
    /// [`DecodeError`] where there are no liars and the bytes are no message about this slot.
    pub fn decode(&self, bytes: &[u8]) -> Result<Message<Candidate>, DecodeError> {
        let Some(certifier) = self.certifier else {
            let message = match envelope::unwrap_at_rest::<Entry>(bytes, MESSAGE_LENGTH_MAX) {
                Ok(entry) => Message::Vote(Candidate::anonymous(entry)),
                Err(DecodeError::WrongKind { .. }) => {
                    envelope::unwrap_at_rest::<SlotMessage>(bytes, MESSAGE_LENGTH_MAX)?.0
                }
                Err(error) => return Err(error),
            };
            return self.check_slot(message);
        };
        let signed = envelope::unwrap_at_rest::<SignedMessage>(bytes, MESSAGE_LENGTH_MAX);
        let vouched = signed.ok().filter(|signed| {
            certifier.verify(&self.signed_text(&signed.body), &signed.certificate)
        });
        let message = vouched.and_then(|signed| {
            let mut decoder = Decoder::new(&signed.body);
            let message = decode_message(&mut decoder).ok()?;
            decoder.finish().ok()?;
            self.check_slot(message).ok()
        });
        Ok(message.unwrap_or(Message::Noise))
    }

    fn check_slot(&self, message: Message<Candidate>) -> Result<Message<Candidate>, DecodeError> {
        match &message {
            Message::Vote(candidate)
            | Message::Accept(_, candidate)
            | Message::Decided(candidate)
                if candidate.entry.seq != self.slot =>
            {
                let reason = "its slot holds another entry".to_owned();
                Err(DecodeError::InvalidValue { what: "sequence number", offset: 0, reason })
            }
            _ => Ok(message),
        }
    }

    /// What is signed: a message of one slot cannot be shown in another.
    fn signed_text(&self, body: &[u8]) -> Vec<u8> {
        let mut encoder = Encoder::default();
        encoder.byte_string(b"syncline slot message 1");
        self.workspace.encode(&mut encoder);
        encoder.unsigned(self.slot);
        encoder.byte_string(body);
        encoder.into_bytes()
    }
}

/// A message about a slot, as an object.
#[derive(Debug, Clone, PartialEq)]
struct SlotMessage(Message<Candidate>);

const VOTE: u64 = 0;
const PREPARE: u64 = 1;
const ACCEPT: u64 = 2;
const DECIDED: u64 = 3;
const KIND_MAX: u64 = DECIDED;

fn encode_message(message: &Message<Candidate>, encoder: &mut Encoder) {
    match message {
        Message::Vote(candidate) => {
            encoder.unsigned(VOTE);
            candidate.encode(encoder);
        }
        Message::Prepare(round) => {
            encoder.unsigned(PREPARE);
            encode_round(*round, encoder);
        }
        Message::Accept(round, candidate) => {
            encoder.unsigned(ACCEPT);
            encode_round(*round, encoder);
            candidate.encode(encoder);
        }
        Message::Decided(candidate) => {
            encoder.unsigned(DECIDED);
            candidate.encode(encoder);
        }
        Message::Noise => unreachable!("noise is read, and never written"),
    }
}

fn decode_message(decoder: &mut Decoder<'_>) -> Result<Message<Candidate>, DecodeError> {
    Ok(match decoder.unsigned_max(KIND_MAX)? {
        VOTE => Message::Vote(Candidate::decode(decoder)?),
        PREPARE => Message::Prepare(decode_round(decoder)?),
        ACCEPT => {
            let round = decode_round(decoder)?;
            Message::Accept(round, Candidate::decode(decoder)?)
        }
        _ => Message::Decided(Candidate::decode(decoder)?),
    })
}

fn encode_round(round: Round, encoder: &mut Encoder) {
    encoder.unsigned(round.counter);
    encoder.raw(&round.proposer.0.to_be_bytes());
}

fn decode_round(decoder: &mut Decoder<'_>) -> Result<Round, DecodeError> {
    let counter = decoder.unsigned()?;
    if counter == u64::MAX {
        return Err(decoder.invalid("round", "there is none after it"));
    }
    Ok(Round { counter, proposer: ProposerId(u128::from_be_bytes(decoder.array()?)) })
}

impl Encode for Candidate {
    fn encode(&self, encoder: &mut Encoder) {
        encoder.raw(&self.session.0.to_be_bytes());
        encoder.unsigned(u64::from(self.is_owners));
        // A message in the message, because the version of an entry says whether it is sealed.
        encoder.byte_string(&codec::encode_message(&*self.entry));
    }
}

impl Decode for Candidate {
    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let session = ProposerId(u128::from_be_bytes(decoder.array()?));
        let is_owners = decoder.unsigned_max(1)? == 1;
        let entry = codec::decode_message(decoder.byte_string(MESSAGE_LENGTH_MAX)?)?;
        Ok(Self::new(entry, session, is_owners))
    }
}

impl Encode for SlotMessage {
    fn encode(&self, encoder: &mut Encoder) {
        encode_message(&self.0, encoder);
    }
}

impl Decode for SlotMessage {
    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        decode_message(decoder).map(Self)
    }
}

impl Encoded for SlotMessage {
    const MAGIC: u8 = b'L';
    const KIND: &'static str = "slot message";
}

/// A block of [`super::disk_paxos`], as an object.
#[derive(Debug, Clone, PartialEq)]
struct BlockMessage(Block<Candidate>);

impl Encode for BlockMessage {
    fn encode(&self, encoder: &mut Encoder) {
        encode_round(self.0.begun, encoder);
        encoder.unsigned(u64::from(self.0.proposed.is_some()));
        if let Some((round, candidate)) = &self.0.proposed {
            encode_round(*round, encoder);
            candidate.encode(encoder);
        }
    }
}

impl Decode for BlockMessage {
    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let begun = decode_round(decoder)?;
        let proposed = match decoder.unsigned_max(1)? {
            0 => None,
            _ => Some((decode_round(decoder)?, Candidate::decode(decoder)?)),
        };
        Ok(Self(Block { begun, proposed }))
    }
}

impl Encoded for BlockMessage {
    const MAGIC: u8 = b'B';
    const KIND: &'static str = "block of a client";
}

/// Encodes a block of Disk Paxos as an object.
pub(super) fn encode_block(block: &Block<Candidate>) -> Bytes {
    envelope::wrap_at_rest(&BlockMessage(block.clone())).into()
}

/// Decodes it.
pub(super) fn decode_block(bytes: &[u8]) -> Result<Block<Candidate>, DecodeError> {
    envelope::unwrap_at_rest::<BlockMessage>(bytes, MESSAGE_LENGTH_MAX).map(|message| message.0)
}

/// A message about a slot with the signature of whoever wrote it.
#[derive(Debug, Clone, PartialEq)]
struct SignedMessage {
    body: Vec<u8>,
    certificate: Certificate,
}

impl Encode for SignedMessage {
    fn encode(&self, encoder: &mut Encoder) {
        encoder.byte_string(&self.body);
        encoder.raw(&self.certificate.signer);
        encoder.raw(&self.certificate.signature);
    }
}

impl Decode for SignedMessage {
    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let body = decoder.byte_string(MESSAGE_LENGTH_MAX)?.to_vec();
        let certificate = Certificate { signer: decoder.array()?, signature: decoder.array()? };
        Ok(Self { body, certificate })
    }
}

impl Encoded for SignedMessage {
    const MAGIC: u8 = b'Z';
    const KIND: &'static str = "signed slot message";
}

#[cfg(test)]
mod tests;
