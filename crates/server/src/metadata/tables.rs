//! All tables and their columns, the same in every database, for whoever copies all of them.

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Number,
    MaybeNumber,
    Truth,
    Text,
    Bytes,
}

/// A table, its columns, and how many of the first columns order its rows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Table {
    pub(super) name: &'static str,
    pub(super) columns: &'static [(&'static str, Kind)],
    pub(super) key_length: usize,
}

/// Those that others refer to come first.
pub(super) const TABLES: [Table; 9] = [
    Table {
        name: "accounts",
        columns: &[
            ("id", Kind::Number),
            ("name", Kind::Text),
            ("password_hash", Kind::Text),
            ("is_disabled", Kind::Truth),
            ("quota_bytes", Kind::MaybeNumber),
            ("created", Kind::Number),
        ],
        key_length: 1,
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
    },
    Table {
        name: "node_versions",
        columns: &[("workspace", Kind::Number), ("node", Kind::Bytes), ("version", Kind::Number)],
        key_length: 2,
    },
    Table {
        name: "objects",
        columns: &[("workspace", Kind::Number), ("key", Kind::Text), ("length", Kind::Number)],
        key_length: 2,
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
    },
    Table {
        name: "checkpoints",
        columns: &[("workspace", Kind::Number), ("seq", Kind::Number), ("bytes", Kind::Bytes)],
        key_length: 1,
    },
];

impl Table {
    /// Returns the names of the first `count` columns as SQL lists them.
    pub(super) fn names(&self, count: usize) -> String {
        let names = self.columns.iter().take(count).map(|(name, _)| *name);
        names.collect::<Vec<_>>().join(", ")
    }
}

/// A value of any column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    Nothing,
    Number(i64),
    Text(String),
    Bytes(Vec<u8>),
}
