//! Rows that come from another database.

use rusqlite::ToSql;
use rusqlite::types::{Null, ToSqlOutput, ValueRef};

use super::{Sqlite, failed};
use crate::metadata::Result;
use crate::metadata::tables::{Table, Value};

impl ToSql for Value {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        match self {
            Self::Nothing => Null.to_sql(),
            Self::Number(number) => Ok(ToSqlOutput::from(*number)),
            Self::Text(text) => Ok(ToSqlOutput::from(text.as_str())),
            Self::Bytes(bytes) => Ok(ToSqlOutput::Borrowed(ValueRef::Blob(bytes))),
        }
    }
}

impl Sqlite {
    /// Adds rows to a table as they are.
    pub(in crate::metadata) fn insert_rows(
        &self,
        table: &Table,
        rows: &[Vec<Value>],
    ) -> Result<()> {
        let count = table.columns.len();
        let marks: Vec<String> = (1..=count).map(|place| format!("?{place}")).collect();
        let (name, columns) = (table.name, table.names(count));
        let sql = format!("INSERT INTO {name} ({columns}) VALUES ({})", marks.join(", "));
        let insert = || {
            let mut statement = self.connection.prepare_cached(&sql)?;
            rows.iter()
                .try_for_each(|row| statement.execute(rusqlite::params_from_iter(row)).map(drop))
        };
        insert().map_err(|error| failed(&sql, &error))
    }
}
