//! Metadata from one kind of database into the other.
//!
//! *Invariants*: nobody writes to the source meanwhile; the target was empty, and is equal to the source when it is there; until then it
//! is empty. Packs stay where they are.

use super::backup::{check_database_is_empty, fill_database};
use crate::data_folder::DataFolder;
use crate::database::Database;
use crate::error::Result;
use crate::metadata::copy::TableSum;

/// Copies all accounts and logs; returns what was copied.
///
/// # Errors
/// [`crate::ServerError::Locked`] and [`crate::metadata::MetadataError::InUse`] where a server uses either of them,
/// [`crate::ServerError::Taken`] where the target is not empty.
pub fn migrate(
    (from_folder, from): (&DataFolder, &Database),
    (to_folder, to): (&DataFolder, &Database),
) -> Result<Vec<TableSum>> {
    // The folder of a database elsewhere holds nothing of it.
    let lock = |folder: &DataFolder, database: &Database| match database {
        Database::Embedded => folder.lock().map(Some),
        #[cfg(feature = "postgres")]
        Database::Postgres(_) => Ok(None),
    };
    let _locks = (lock(from_folder, from)?, lock(to_folder, to)?);
    check_database_is_empty(to_folder, to)?;
    let mut source = from.open(from_folder)?;
    source.begin_reading_alone()?;
    let copied = fill_database(&*source, to_folder, to);
    source.rollback();
    copied
}
