//! All tables and their columns, the same in every database, for whoever copies all of them. A story compares them with the
//! tables that there are.

/// What a column holds, or nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// 64 bits.
    Number,
    /// 0 or 1 where the database has no type of its own for it.
    Truth,
    /// Text, ordered by its bytes.
    Text,
    /// An id, a hash, a message.
    Bytes,
}

/// A table.
#[derive(Debug, Clone, Copy)]
pub struct Table {
    /// Its name.
    pub name: &'static str,
    /// Its columns.
    pub columns: &'static [(&'static str, Kind)],
    /// How many of the first columns order its rows.
    pub key_length: usize,
    /// Tells whether the database gives the numbers in the first column.
    pub is_numbered: bool,
}

/// Those that others refer to come first.
pub const TABLES: [Table; 21] = [
    Table {
        name: "accounts",
        columns: &[
            ("id", Kind::Number),
            ("name", Kind::Text),
            ("password_hash", Kind::Text),
            ("is_disabled", Kind::Truth),
            ("quota_bytes", Kind::Number),
            ("created", Kind::Number),
        ],
        key_length: 1,
        is_numbered: true,
    },
    Table {
        name: "devices",
        columns: &[
            ("id", Kind::Bytes),
            ("account", Kind::Number),
            ("name", Kind::Text),
            ("token_hash", Kind::Bytes),
            ("created", Kind::Number),
            ("last_seen", Kind::Number),
            ("is_revoked", Kind::Truth),
        ],
        key_length: 1,
        is_numbered: false,
    },
    Table {
        name: "tokens",
        columns: &[
            ("device", Kind::Bytes),
            ("scope", Kind::Number),
            ("workspace", Kind::Bytes),
            ("expires", Kind::Number),
        ],
        key_length: 1,
        is_numbered: false,
    },
    Table {
        name: "second_factors",
        columns: &[
            ("account", Kind::Number),
            ("secret", Kind::Bytes),
            ("is_on", Kind::Truth),
            ("used_step", Kind::Number),
            ("since", Kind::Number),
        ],
        key_length: 1,
        is_numbered: false,
    },
    Table {
        name: "recovery_codes",
        columns: &[("account", Kind::Number), ("hash", Kind::Bytes)],
        key_length: 2,
        is_numbered: false,
    },
    Table {
        name: "subjects",
        columns: &[
            ("issuer", Kind::Text),
            ("subject", Kind::Text),
            ("account", Kind::Number),
            ("since", Kind::Number),
        ],
        key_length: 2,
        is_numbered: false,
    },
    Table {
        name: "workspaces",
        columns: &[
            ("number", Kind::Number),
            ("id", Kind::Bytes),
            ("owner", Kind::Number),
            ("name", Kind::Text),
            ("head_seq", Kind::Number),
            ("head_hash", Kind::Bytes),
            ("used_bytes", Kind::Number),
            ("genesis", Kind::Bytes),
        ],
        key_length: 1,
        is_numbered: true,
    },
    Table {
        name: "members",
        columns: &[
            ("workspace", Kind::Number),
            ("account", Kind::Number),
            ("role", Kind::Number),
            ("added", Kind::Number),
        ],
        key_length: 2,
        is_numbered: false,
    },
    Table {
        name: "device_syncs",
        columns: &[("device", Kind::Bytes), ("workspace", Kind::Number), ("synced", Kind::Number)],
        key_length: 2,
        is_numbered: false,
    },
    Table {
        name: "identities",
        columns: &[
            ("account", Kind::Number),
            ("public_keys", Kind::Bytes),
            ("locked", Kind::Bytes),
        ],
        key_length: 1,
        is_numbered: false,
    },
    Table {
        name: "envelopes",
        columns: &[("workspace", Kind::Number), ("account", Kind::Number), ("bytes", Kind::Bytes)],
        key_length: 2,
        is_numbered: false,
    },
    Table {
        name: "links",
        columns: &[
            ("device", Kind::Bytes),
            ("workspace", Kind::Number),
            ("node", Kind::Bytes),
            ("password_hash", Kind::Text),
            ("downloads_max", Kind::Number),
            ("downloads", Kind::Number),
        ],
        key_length: 1,
        is_numbered: false,
    },
    Table {
        name: "entries",
        columns: &[
            ("workspace", Kind::Number),
            ("seq", Kind::Number),
            ("op_id", Kind::Bytes),
            ("device", Kind::Bytes),
            ("hash", Kind::Bytes),
            ("bytes", Kind::Bytes),
        ],
        key_length: 2,
        is_numbered: false,
    },
    Table {
        name: "node_versions",
        columns: &[("workspace", Kind::Number), ("node", Kind::Bytes), ("version", Kind::Number)],
        key_length: 2,
        is_numbered: false,
    },
    Table {
        name: "objects",
        columns: &[("workspace", Kind::Number), ("key", Kind::Text), ("length", Kind::Number)],
        key_length: 2,
        is_numbered: false,
    },
    Table {
        name: "reservations",
        columns: &[
            ("workspace", Kind::Number),
            ("key", Kind::Text),
            ("length", Kind::Number),
            ("made", Kind::Number),
        ],
        key_length: 2,
        is_numbered: false,
    },
    Table {
        name: "checkpoints",
        columns: &[("workspace", Kind::Number), ("seq", Kind::Number), ("bytes", Kind::Bytes)],
        key_length: 1,
        is_numbered: false,
    },
    Table {
        name: "locked_keys",
        columns: &[
            ("workspace", Kind::Number),
            ("generation", Kind::Number),
            ("bytes", Kind::Bytes),
        ],
        key_length: 1,
        is_numbered: false,
    },
    Table {
        name: "pairing_boxes",
        columns: &[
            ("workspace", Kind::Number),
            ("key", Kind::Text),
            ("bytes", Kind::Bytes),
            ("made", Kind::Number),
        ],
        key_length: 2,
        is_numbered: false,
    },
    Table {
        name: "secrets",
        columns: &[("name", Kind::Text), ("bytes", Kind::Bytes)],
        key_length: 1,
        is_numbered: false,
    },
    Table {
        name: "invitations",
        columns: &[
            ("id", Kind::Number),
            ("secret_hash", Kind::Bytes),
            ("name", Kind::Text),
            ("quota_bytes", Kind::Number),
            ("made", Kind::Number),
            ("expires", Kind::Number),
            ("ended", Kind::Number),
            ("account", Kind::Text),
        ],
        key_length: 1,
        is_numbered: true,
    },
];

impl Table {
    /// Returns the names of the first `count` columns as SQL lists them.
    pub fn names(&self, count: usize) -> String {
        let names = self.columns.iter().take(count).map(|(name, _)| *name);
        names.collect::<Vec<_>>().join(", ")
    }
}

/// A value of any column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// No value.
    Nothing,
    /// A number, or whether something is true.
    Number(i64),
    /// Text.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
}
