//! Rows as they are, for whoever copies all of them.

use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::migrations::USERS_LOCK;
use super::{Parameters, Postgres, Transaction, read_all};
use crate::metadata::copy::RowTables;
use crate::metadata::tables::{Kind, TABLES, Table, Value};
use crate::metadata::{MetadataError, Result};

/// How many rows are read at once.
const ROWS_AT_ONCE: usize = 100;

/// A transaction that reads for long: it sees one moment, locks nothing, and may rest while its rows are written elsewhere.
const BEGIN_READING: &str = "
    BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;
    SET LOCAL enable_seqscan = on;
    SET LOCAL idle_in_transaction_session_timeout = '10min';
    SELECT 1";

impl RowTables for Postgres {
    fn begin_reading(&mut self) -> Result<()> {
        self.run(BEGIN_READING)?;
        self.transaction.set(Transaction::Open);
        Ok(())
    }

    fn begin_reading_alone(&mut self) -> Result<()> {
        // Every other session has the shared form of this lock. It goes with the connection.
        let alone = "SELECT pg_try_advisory_lock($1)";
        match self.first(alone, &[&USERS_LOCK], |row| row.try_get(0))? {
            Some(true) => self.begin_reading(),
            _ => Err(MetadataError::InUse {
                detail: "servers or other commands are connected to it".to_owned(),
            }),
        }
    }

    fn each_rows(
        &self,
        table: &Table,
        show: &mut dyn FnMut(&[Vec<Value>]) -> Result<()>,
    ) -> Result<()> {
        let (name, columns) = (table.name, table.names(table.columns.len()));
        let order = table.names(table.key_length);
        self.run(&format!(
            "DECLARE rows NO SCROLL CURSOR FOR SELECT {columns} FROM {name} ORDER BY {order}"
        ))?;
        loop {
            // What a cursor returns differs from table to table, so it is not prepared under the same words.
            let sql = format!("FETCH {ROWS_AT_ONCE} FROM rows /* {name} */");
            let rows = self.ask(&sql, &[])?;
            let values = read_all(&sql, &rows, |row| read(table, row))?;
            if !values.is_empty() {
                show(&values)?;
            }
            if rows.len() < ROWS_AT_ONCE {
                return self.run("CLOSE rows");
            }
        }
    }

    fn insert_rows(&mut self, table: &Table, rows: &[Vec<Value>]) -> Result<()> {
        let columns: Vec<Column<'_>> = table
            .columns
            .iter()
            .enumerate()
            .map(|(place, (name, kind))| {
                let values = rows.iter().filter_map(|row| row.get(place));
                Column::of(*kind, values).ok_or_else(|| MetadataError::Damaged {
                    what: format!("column {name} of table {}", table.name),
                    detail: "a value in it is of another kind".to_owned(),
                })
            })
            .collect::<Result<_>>()?;
        let parameters: Vec<&(dyn ToSql + Sync)> = columns.iter().map(Column::as_sql).collect();
        let arrays: Vec<String> = table
            .columns
            .iter()
            .enumerate()
            .map(|(place, (_, kind))| format!("${}::{}[]", place + 1, type_of(*kind)))
            .collect();
        let (name, names) = (table.name, table.names(table.columns.len()));
        let sql = format!(
            "INSERT INTO {name} ({names}) OVERRIDING SYSTEM VALUE SELECT * FROM unnest({})",
            arrays.join(", ")
        );
        let parameters: Parameters<'_> = &parameters;
        self.execute(&sql, parameters).map(drop)
    }

    fn number_on(&mut self) -> Result<()> {
        for table in TABLES.iter().filter(|table| table.is_numbered) {
            let (name, column) = (table.name, table.names(1));
            self.run(&format!(
                "SELECT setval(pg_get_serial_sequence('{name}', '{column}'),
                               (SELECT coalesce(max({column}), 0) + 1 FROM {name}), false)"
            ))?;
        }
        Ok(())
    }
}

/// The values of one column.
enum Column<'a> {
    Numbers(Vec<Option<i64>>),
    Truths(Vec<Option<bool>>),
    Texts(Vec<Option<&'a str>>),
    Bytes(Vec<Option<&'a [u8]>>),
}

impl<'a> Column<'a> {
    /// Collects values of one kind; nothing where one is of another.
    fn of(kind: Kind, values: impl Iterator<Item = &'a Value>) -> Option<Self> {
        fn all<'a, T>(
            values: impl Iterator<Item = &'a Value>,
            read: impl Fn(&'a Value) -> Option<T>,
        ) -> Option<Vec<Option<T>>> {
            values
                .map(|value| match value {
                    Value::Nothing => Some(None),
                    value => read(value).map(Some),
                })
                .collect()
        }
        let number = |value: &Value| match value {
            Value::Number(number) => Some(*number),
            _ => None,
        };
        Some(match kind {
            Kind::Number => Self::Numbers(all(values, number)?),
            Kind::Truth => Self::Truths(all(values, |value| number(value).map(|one| one != 0))?),
            Kind::Text => Self::Texts(all(values, |value| match value {
                Value::Text(text) => Some(text.as_str()),
                _ => None,
            })?),
            Kind::Bytes => Self::Bytes(all(values, |value| match value {
                Value::Bytes(bytes) => Some(bytes.as_slice()),
                _ => None,
            })?),
        })
    }

    fn as_sql(&self) -> &(dyn ToSql + Sync) {
        match self {
            Self::Numbers(values) => values,
            Self::Truths(values) => values,
            Self::Texts(values) => values,
            Self::Bytes(values) => values,
        }
    }
}

fn type_of(kind: Kind) -> &'static str {
    match kind {
        Kind::Number => "bigint",
        Kind::Truth => "boolean",
        Kind::Text => "text",
        Kind::Bytes => "bytea",
    }
}

fn read(table: &Table, row: &Row) -> Result<Vec<Value>, tokio_postgres::Error> {
    let kinds = table.columns.iter().enumerate();
    let value = |(column, (_, kind)): (usize, &(&str, Kind))| {
        let value = match kind {
            Kind::Number => row.try_get::<_, Option<i64>>(column)?.map(Value::Number),
            Kind::Truth => {
                let truth: Option<bool> = row.try_get(column)?;
                truth.map(|truth| Value::Number(i64::from(truth)))
            }
            Kind::Text => row.try_get::<_, Option<String>>(column)?.map(Value::Text),
            Kind::Bytes => row.try_get::<_, Option<Vec<u8>>>(column)?.map(Value::Bytes),
        };
        Ok(value.unwrap_or(Value::Nothing))
    };
    kinds.map(value).collect()
}
