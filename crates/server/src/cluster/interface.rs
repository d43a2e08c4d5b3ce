//! What the servers of a cluster say to each other, declared once.

use std::fmt;
use std::str::FromStr;

use messaging::{Fault, FaultKind};
use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

messaging::interface! {
    /// What all servers tell all others. Hints: the log is the truth.
    #[interface(name = "servers", version = 1, proxy = ServersProxy, dispatcher = ServersDispatcher)]
    pub trait Servers {
        /// Something is new; also said when nothing is, as a sign of life.
        #[event]
        async fn news(&self, bulletin: Bulletin);
    }
}

messaging::interface! {
    /// What sync services tell each other: that the broker carries their words. They have no devices, and so no use for what the
    /// others tell of every commit.
    #[interface(name = "sync-services-alive", version = 1, proxy = SignsProxy, dispatcher = SignsDispatcher)]
    pub trait Signs {
        /// A sign of life.
        #[event]
        async fn alive(&self);
    }
}

/// Some news.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bulletin {
    /// Something else was new, and there was no room for it.
    pub is_incomplete: bool,
    /// What is new, oldest first.
    pub items: Vec<Item>,
}

/// One piece of news. Ids are written as hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Item {
    /// A workspace has a new entry; the frame is what devices are sent of it.
    Entry {
        /// The workspace.
        workspace: String,
        /// The wrapped event.
        frame: Blob,
    },
    /// A workspace may have entries of which nobody was told.
    Moved {
        /// The workspace.
        workspace: String,
    },
    /// A device was signed out.
    SignedOut {
        /// The device.
        device: String,
    },
    /// An account is not a member of a workspace any more.
    Expelled {
        /// Its number in the database that the servers share.
        account: i64,
        /// The workspace.
        workspace: String,
    },
    /// A device has connected.
    Arrived {
        /// The device.
        device: String,
        /// Its incarnation.
        incarnation: u64,
    },
    /// A device that has connected is connected here in another incarnation, which lives.
    Contested {
        /// The device.
        device: String,
        /// The incarnation that came later.
        incarnation: u64,
    },
}

/// Bytes, written as such where the encoding can.
#[derive(Clone, PartialEq, Eq)]
pub struct Blob(pub Vec<u8>);

impl fmt::Debug for Blob {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Blob({} bytes)", self.0.len())
    }
}

impl Serialize for Blob {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for Blob {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_byte_buf(BlobVisitor)
    }
}

struct BlobVisitor;

impl<'de> Visitor<'de> for BlobVisitor {
    type Value = Blob;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("bytes")
    }

    fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Blob, E> {
        Ok(Blob(bytes.to_vec()))
    }

    fn visit_byte_buf<E: Error>(self, bytes: Vec<u8>) -> Result<Blob, E> {
        Ok(Blob(bytes))
    }

    /// JSON has lists of numbers only.
    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Blob, A::Error> {
        let mut bytes = Vec::new();
        while let Some(byte) = items.next_element()? {
            bytes.push(byte);
        }
        Ok(Blob(bytes))
    }
}

/// Reads an id.
pub(super) fn read<T: FromStr<Err: fmt::Display>>(text: &str) -> Result<T, Fault> {
    text.parse().map_err(|error: T::Err| Fault::new(FaultKind::InvalidRequest, error.to_string()))
}

#[cfg(test)]
mod tests {
    use messaging::Encoding;

    use super::*;

    #[test]
    fn bytes_come_back_in_both_encodings_and_take_no_room_in_one() {
        let blob = Blob((0..=255).collect());
        for encoding in [Encoding::MessagePack, Encoding::Json] {
            let bytes = encoding.encode("bytes", &blob).unwrap();
            assert_eq!(encoding.decode::<Blob>("bytes", &bytes).unwrap(), blob);
        }
        assert_eq!(Encoding::MessagePack.encode("bytes", &blob).unwrap().len(), 3 + 256);
    }
}
