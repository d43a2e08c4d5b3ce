//! What each store of a workspace says about all of them.
//!
//! A hint is the message at `pool/<version>` in a store. Its version is that of the settings, and stands in its name only. Of a
//! sealed workspace it has a seal: which device has written it, and that device's signature. What is signed, and who checks
//! it, is the business of `content`; here is what the bytes are.

use super::PoolConfig;
use crate::codec::{Decode, DecodeError, Decoder, Encode, Encoder, Message};
use crate::ids::DeviceId;

/// What each store of a workspace says about all of them, so that any one leads to the others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolHint {
    /// The stores.
    pub pool: PoolConfig,
    /// The entry of the log with which those that agree took over; what was decided before lies there, too, as settled.
    pub since: u64,
    /// Who says so; nothing in a plain workspace.
    pub seal: Option<Box<HintSeal>>,
}

/// What proves which device of a sealed workspace has written a hint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HintSeal {
    /// The device.
    pub device: DeviceId,
    /// Its public key.
    pub device_key: [u8; 32],
    /// The account's signature of both.
    pub certificate: [u8; 64],
    /// The device's signature of the workspace, the version and the hint.
    pub signature: [u8; 64],
}

impl PoolHint {
    /// Makes a hint that nobody has signed.
    pub fn plain(pool: PoolConfig, since: u64) -> Self {
        Self { pool, since, seal: None }
    }
}

impl Encode for PoolHint {
    fn encode(&self, encoder: &mut Encoder) {
        encoder.unsigned(self.since);
        self.pool.encode(encoder);
        if let Some(seal) = &self.seal {
            assert!(encoder.is_sealed(), "a message with a sealed hint has the sealed version");
            seal.device.encode(encoder);
            encoder.raw(&seal.device_key);
            encoder.raw(&seal.certificate);
            encoder.raw(&seal.signature);
        }
    }
}

impl Decode for PoolHint {
    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let (since, pool) = (decoder.unsigned()?, PoolConfig::decode(decoder)?);
        let seal = match decoder.is_sealed() {
            true => Some(Box::new(HintSeal {
                device: DeviceId::decode(decoder)?,
                device_key: decoder.array()?,
                certificate: decoder.array()?,
                signature: decoder.array()?,
            })),
            false => None,
        };
        Ok(Self { pool, since, seal })
    }
}

impl Message for PoolHint {
    const MAGIC: u8 = b'H';
    const KIND: &'static str = "hint at a pool";

    fn is_sealed(&self) -> bool {
        self.seal.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::{decode_message, encode_message};
    use crate::{Redundancy, StoreId, StoreRecord};

    fn hint(seal: Option<HintSeal>) -> PoolHint {
        let store = StoreRecord::new(
            StoreId::from_bytes([1; 16]),
            "disk".to_owned(),
            "file:/mnt/disk".to_owned(),
            10,
        );
        let pool = PoolConfig::new(Redundancy::Replicas(1), vec![store]).expect("a pool");
        PoolHint { pool, since: 300, seal: seal.map(Box::new) }
    }

    fn seal() -> HintSeal {
        HintSeal {
            device: DeviceId::from_bytes([2; 16]),
            device_key: [3; 32],
            certificate: [4; 64],
            signature: [5; 64],
        }
    }

    #[test]
    fn decoding_gives_the_hint_back_with_and_without_a_seal() {
        for (seal, version) in [(None, 1), (Some(seal()), 2)] {
            let hint = hint(seal);
            let bytes = encode_message(&hint);
            assert_eq!(bytes[..2], [b'H', version]);
            assert_eq!(decode_message::<PoolHint>(&bytes).expect("decodes"), hint);
        }
    }

    #[test]
    fn hint_cut_short_or_dressed_up_as_the_other_kind_is_refused() {
        for seal in [None, Some(seal())] {
            let bytes = encode_message(&hint(seal));
            for at in 0..bytes.len() {
                let _ = decode_message::<PoolHint>(&bytes[..at]).expect_err("cut off");
            }
            let mut other = bytes.clone();
            other[1] = 3 - other[1];
            let _ = decode_message::<PoolHint>(&other).expect_err("of the other version");
            let longer = [&bytes[..], &[0]].concat();
            let _ = decode_message::<PoolHint>(&longer).expect_err("something follows");
        }
    }
}
