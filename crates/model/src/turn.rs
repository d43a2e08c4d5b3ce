//! Whose turn it is to remove pieces of objects from stores.
//!
//! *Participants*: the devices of a workspace over several stores. *Goals*: two devices that disagree on where an object belongs
//! never each remove what the other one keeps. *Non-goals*: a lock that ends by itself: no clock is trusted. *Invariants*: between
//! a turn that has begun and its end no other device begins one, since the log decides of two proposals for one version.
//!
//! The record is the payload of the settings node [`crate::NodeId::TURN`]. The format: `docs/design/commit-log.md`, "Settings".

use crate::codec::{Decode, DecodeError, Decoder, Encode, Encoder, Message};
use crate::ids::DeviceId;

/// The turn to remove.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    /// Whose it is or was.
    pub device: DeviceId,
    /// Whether it is over.
    pub is_over: bool,
}

impl Encode for Turn {
    fn encode(&self, encoder: &mut Encoder) {
        self.device.encode(encoder);
        encoder.unsigned(u64::from(self.is_over));
    }
}

impl Decode for Turn {
    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        Ok(Self { device: DeviceId::decode(decoder)?, is_over: decoder.unsigned_max(1)? == 1 })
    }
}

impl Message for Turn {
    const MAGIC: u8 = b'R';
    const KIND: &'static str = "turn";
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::{decode_message, encode_message};

    #[test]
    fn turn_is_read_back_as_it_was_written() {
        for is_over in [false, true] {
            let turn = Turn { device: DeviceId::from_bytes([7; 16]), is_over };
            assert_eq!(decode_message(&encode_message(&turn)), Ok(turn));
        }
        let mut bytes =
            encode_message(&Turn { device: DeviceId::from_bytes([7; 16]), is_over: true });
        *bytes.last_mut().expect("not empty") = 2;
        assert!(decode_message::<Turn>(&bytes).is_err());
    }
}
