//! Rows as they are, for whoever copies all of them.

use rusqlite::ToSql;
use rusqlite::types::{Null, ToSqlOutput, ValueRef};

use super::{Sqlite, failed};
use crate::metadata::copy::RowTables;
use crate::metadata::tables::{Table, Value};
use crate::metadata::{Metadata, Result};

/// How many rows are shown at once.
const ROWS_AT_ONCE: usize = 100;

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

fn value(of: ValueRef<'_>) -> rusqlite::Result<Value> {
    Ok(match of {
        ValueRef::Null => Value::Nothing,
        ValueRef::Integer(number) => Value::Number(number),
        ValueRef::Real(number) => {
            return Err(rusqlite::Error::IntegralValueOutOfRange(0, number as i64));
        }
        ValueRef::Text(_) => Value::Text(of.as_str()?.to_owned()),
        ValueRef::Blob(bytes) => Value::Bytes(bytes.to_owned()),
    })
}

impl RowTables for Sqlite {
    fn begin_reading(&mut self) -> Result<()> {
        self.execute("BEGIN DEFERRED", [])?;
        // The moment is that of the first read.
        self.check()
    }

    fn begin_reading_alone(&mut self) -> Result<()> {
        // Whoever writes waits for the end of this transaction, and gives up before.
        self.begin()
    }

    fn each_rows(
        &self,
        table: &Table,
        show: &mut dyn FnMut(&[Vec<Value>]) -> Result<()>,
    ) -> Result<()> {
        let (name, count) = (table.name, table.columns.len());
        let (columns, order) = (table.names(count), table.names(table.key_length));
        let sql = format!("SELECT {columns} FROM {name} ORDER BY {order}");
        let fail = |error| failed(&sql, &error);
        let mut statement = self.connection.prepare(&sql).map_err(fail)?;
        let mut rows = statement.query([]).map_err(fail)?;
        let mut shown = Vec::with_capacity(ROWS_AT_ONCE);
        while let Some(row) = rows.next().map_err(fail)? {
            let values = (0..count).map(|column| value(row.get_ref(column)?));
            let read: rusqlite::Result<Vec<Value>> = values.collect();
            shown.push(read.map_err(fail)?);
            if shown.len() == ROWS_AT_ONCE {
                show(&shown)?;
                shown.clear();
            }
        }
        match shown.is_empty() {
            true => Ok(()),
            false => show(&shown),
        }
    }

    fn insert_rows(&mut self, table: &Table, rows: &[Vec<Value>]) -> Result<()> {
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

    fn number_on(&mut self) -> Result<()> {
        // Its next number is always the one behind the greatest.
        Ok(())
    }
}
