//! A copy of everything that was committed, as the bytes of a database of SQLite: the same tables in a form that needs no
//! server to be read.

use tokio_postgres::Row;

use super::{Postgres, Transaction, read_all};
use crate::metadata::tables::{Kind, TABLES, Table, Value};
use crate::metadata::{Metadata, Result, sqlite::Sqlite};

/// How many rows are read at once.
const ROWS_AT_ONCE: usize = 100;

/// Copies all rows as they were at one moment; others go on writing meanwhile.
pub(super) fn take(database: &mut Postgres) -> Result<Vec<u8>> {
    let mut copy = Sqlite::open_in_memory()?;
    copy.begin()?;
    database
        .run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL enable_seqscan = on")?;
    database.transaction.set(Transaction::Open);
    let copied = TABLES.iter().try_for_each(|table| copy_table(database, table, &copy));
    database.rollback();
    copied?;
    copy.commit()?;
    copy.snapshot()
}

fn copy_table(database: &Postgres, table: &Table, copy: &Sqlite) -> Result<()> {
    let (name, columns) = (table.name, table.names(table.columns.len()));
    let order = table.names(table.key_length);
    database.run(&format!(
        "DECLARE rows NO SCROLL CURSOR FOR SELECT {columns} FROM {name} ORDER BY {order}"
    ))?;
    loop {
        // What a cursor returns differs from table to table, so it is not prepared under the same words.
        let sql = format!("FETCH {ROWS_AT_ONCE} FROM rows /* {name} */");
        let rows = database.ask(&sql, &[])?;
        let values = read_all(&sql, &rows, |row| read(table, row))?;
        copy.insert_rows(table, &values)?;
        if rows.len() < ROWS_AT_ONCE {
            return database.run("CLOSE rows");
        }
    }
}

fn read(table: &Table, row: &Row) -> Result<Vec<Value>, tokio_postgres::Error> {
    let kinds = table.columns.iter().enumerate();
    let value = |(column, (_, kind)): (usize, &(&str, Kind))| {
        Ok(match kind {
            Kind::Number => Value::Number(row.try_get(column)?),
            Kind::MaybeNumber => {
                let number: Option<i64> = row.try_get(column)?;
                number.map_or(Value::Nothing, Value::Number)
            }
            Kind::Truth => Value::Number(i64::from(row.try_get::<_, bool>(column)?)),
            Kind::Text => Value::Text(row.try_get(column)?),
            Kind::Bytes => Value::Bytes(row.try_get(column)?),
        })
    };
    kinds.map(value).collect()
}
