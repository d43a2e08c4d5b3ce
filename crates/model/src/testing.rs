//! Small values for tests, of this room and of those above it.

use crate::codec::encode_message;
use crate::commit::{Action, Change, Commit, Head};
use crate::ids::{DeviceId, EntryHash, NodeId, OpId};
use crate::node::{NodeKind, NodeRecord, Timestamp};
use crate::path::Name;

/// Returns the node id whose last byte is `number`; 0 is the root.
pub fn node(number: u8) -> NodeId {
    let mut bytes = [0; 16];
    bytes[15] = number;
    NodeId::from_bytes(bytes)
}

/// Returns a change that puts node `id` with an encoded record.
pub fn put_record(id: u8, base: u64, record: &NodeRecord) -> Change {
    Change { node: node(id), base, action: Action::Put(encode_message(record)) }
}

/// Returns a change that puts node `id` as a symbolic link to `name`, called `name`, in the root.
pub fn put(id: u8, base: u64, name: &str) -> Change {
    let record = NodeRecord {
        parent: NodeId::ROOT,
        name: Name::new(name).expect("a test gives a valid name"),
        mode: 0,
        modified: Timestamp::default(),
        kind: NodeKind::Symlink(name.into()),
        conflict: None,
    };
    put_record(id, base, &record)
}

/// Returns a commit of device 1 whose operation id is `number`.
pub fn commit(number: u8, changes: Vec<Change>) -> Commit {
    Commit {
        op_id: OpId::from_bytes([number; 16]),
        device: DeviceId::from_bytes([1; 16]),
        device_name: "laptop".to_owned(),
        time: Timestamp::default(),
        seen: Head { seq: 0, hash: EntryHash::NONE },
        changes,
        packs: Vec::new(),
        inline_packs: Vec::new(),
        has_deltas: false,
        seal: None,
    }
}
