//! Copies of whole databases, row by row, from any kind to any kind, and whether two are equal.
//!
//! *Goals*: a copy holds what was committed at one moment, others write on meanwhile, and memory does not grow with the
//! tables. *Invariant*: a copy is made in one transaction of the target, so half of one is never seen.

use std::path::Path;

use super::sqlite::Sqlite;
use super::tables::{TABLES, Table, Value};
use super::{Metadata, MetadataError, Result};

/// Rows, whatever they mean.
pub trait RowTables {
    /// Begins a transaction that sees one moment and writes nothing.
    fn begin_reading(&mut self) -> Result<()>;
    /// The same, while nobody else writes until its end: [`MetadataError::InUse`] or [`MetadataError::Busy`] where others are there.
    fn begin_reading_alone(&mut self) -> Result<()>;
    /// Shows all rows of a table in the order of its key, some at a time. Needs a transaction.
    fn each_rows(
        &self,
        table: &Table,
        show: &mut dyn FnMut(&[Vec<Value>]) -> Result<()>,
    ) -> Result<()>;
    /// Adds rows as they are. Needs a transaction.
    fn insert_rows(&mut self, table: &Table, rows: &[Vec<Value>]) -> Result<()>;
    /// Lets the numbers that the database gives go on behind those of the rows that were added. Needs a transaction.
    fn number_on(&mut self) -> Result<()>;
}

/// What a table holds, in a form that can be compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableSum {
    /// Its name.
    pub table: &'static str,
    /// How many rows it has.
    pub rows: u64,
    /// The BLAKE3 of all of them, in the order of its key.
    pub hash: [u8; 32],
}

struct Summing {
    rows: u64,
    hasher: blake3::Hasher,
}

impl Summing {
    fn new() -> Self {
        Self { rows: 0, hasher: blake3::Hasher::new() }
    }

    fn add(&mut self, rows: &[Vec<Value>]) {
        self.rows += rows.len() as u64;
        for value in rows.iter().flatten() {
            match value {
                Value::Nothing => self.hasher.update(&[0]),
                Value::Number(number) => self.hasher.update(&[1]).update(&number.to_le_bytes()),
                Value::Text(text) => self.add_bytes(2, text.as_bytes()),
                Value::Bytes(bytes) => self.add_bytes(3, bytes),
            };
        }
    }

    fn add_bytes(&mut self, tag: u8, bytes: &[u8]) -> &mut blake3::Hasher {
        let length = (bytes.len() as u64).to_le_bytes();
        self.hasher.update(&[tag]).update(&length).update(bytes)
    }

    fn finish(self, table: &Table) -> TableSum {
        TableSum { table: table.name, rows: self.rows, hash: *self.hasher.finalize().as_bytes() }
    }
}

/// Reads all tables. Needs a transaction.
///
/// # Errors
/// [`MetadataError`].
pub fn sums(metadata: &dyn Metadata) -> Result<Vec<TableSum>> {
    let sum = |table| {
        let mut summing = Summing::new();
        metadata.each_rows(table, &mut |rows| {
            summing.add(rows);
            Ok(())
        })?;
        Ok(summing.finish(table))
    };
    TABLES.iter().map(sum).collect()
}

/// Tells whether nobody ever wrote anything here. Needs a transaction.
///
/// # Errors
/// [`MetadataError`].
pub fn is_empty(metadata: &dyn Metadata) -> Result<bool> {
    Ok(sums(metadata)?.iter().all(|table| table.rows == 0))
}

/// Copies all rows of one database, which is in a transaction, into another one, which is empty, and makes sure that both are
/// equal. Then the copy is durable.
///
/// # Errors
/// [`MetadataError`], after which the target is as it was; [`MetadataError::InUse`] where it is not empty.
pub fn copy_all(source: &dyn Metadata, target: &mut dyn Metadata) -> Result<Vec<TableSum>> {
    target.begin()?;
    let copied = copy_rows(source, target).and_then(|sums| target.commit().map(|()| sums));
    if copied.is_err() {
        target.rollback();
    }
    copied
}

fn copy_rows(source: &dyn Metadata, target: &mut dyn Metadata) -> Result<Vec<TableSum>> {
    if !is_empty(target)? {
        return Err(MetadataError::InUse { detail: "it holds accounts already".to_owned() });
    }
    let copy = |table| {
        let mut summing = Summing::new();
        source.each_rows(table, &mut |rows| {
            summing.add(rows);
            target.insert_rows(table, rows)
        })?;
        Ok(summing.finish(table))
    };
    let copied: Vec<TableSum> = TABLES.iter().map(copy).collect::<Result<_>>()?;
    target.number_on()?;
    let found = sums(target)?;
    match copied.iter().zip(&found).find(|(one, other)| one != other) {
        None => Ok(copied),
        Some((one, _)) => Err(MetadataError::Damaged {
            what: format!("the copy of table {}", one.table),
            detail: "it is not equal to what was copied".to_owned(),
        }),
    }
}

/// Writes everything that was committed into a new file of SQLite; others go on writing meanwhile.
///
/// # Errors
/// [`MetadataError`]; the file may then be there in part.
pub fn copy_to_file(source: &mut dyn Metadata, path: &Path) -> Result<Vec<TableSum>> {
    let mut target = Sqlite::open(path)?;
    source.begin_reading()?;
    let copied = copy_all(source, &mut target);
    source.rollback();
    let copied = copied?;
    target.flush()?;
    Ok(copied)
}
