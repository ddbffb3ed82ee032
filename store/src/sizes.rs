//! How much room each table takes, how fast that grows, and when the disk will be full at this pace.
//!
//! Measured once a day and when the program starts, because on SQLite every page of the file is looked at for it. What
//! pages and metrics show is the last measurement.

use std::collections::BTreeMap;

use serde::Serialize;
use sqlx::Row;

use crate::Store;
use crate::dialect::Backend;
use crate::error::Result;
use crate::rows::DAY_S;

/// Days over which growth is told.
const GROWTH_DAYS: i64 = 30;
/// What the free pages of the file are called among the tables.
const FREE: &str = "(free)";

/// One table at its last measurement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TableSize {
    /// The table; `(free)`: pages of the file that hold nothing.
    pub name: String,
    /// With its indices.
    pub bytes: i64,
    /// Rows, on PostgreSQL as its statistics estimate them; `None`: not known.
    pub rows: Option<i64>,
    /// Bytes a day over the last 30 days at most; `None` before a second day was measured.
    pub growth: Option<i64>,
}

/// All tables at their last measurement.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Sizes {
    /// The day measured, in days since 1970; `None`: never.
    pub day: Option<i64>,
    /// The largest first.
    pub tables: Vec<TableSize>,
    /// All of them together.
    pub bytes: i64,
    /// Bytes a day, all of them together; `None` before a second day was measured.
    pub growth: Option<i64>,
}

impl Sizes {
    /// Days until so many bytes are used up at the present pace; `None`: never, or the pace is not known.
    #[must_use]
    pub fn days_until_full(&self, free: u64) -> Option<i64> {
        let growth = self.growth.filter(|growth| *growth > 0)?;
        Some(i64::try_from(free).unwrap_or(i64::MAX) / growth)
    }
}

/// A measured table on one day.
struct Measured {
    day: i64,
    name: String,
    bytes: i64,
    rows: Option<i64>,
}

impl Store {
    /// Measures every table and keeps the result as that of today, in place of an earlier one.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn measure(&self, now_s: i64) -> Result<()> {
        let day = now_s / DAY_S;
        let measured = match self.pools.backend {
            Backend::Sqlite => self.measure_sqlite(day).await?,
            Backend::Postgres => self.measure_postgres(day).await?,
        };
        let mut w = self.pools.write().await?;
        sqlx::query("DELETE FROM table_size WHERE day = $1").bind(day).execute(w.on()).await?;
        for table in measured {
            sqlx::query("INSERT INTO table_size (day, name, bytes, row_count) VALUES ($1, $2, $3, $4)")
                .bind(table.day)
                .bind(table.name)
                .bind(table.bytes)
                .bind(table.rows)
                .execute(w.on())
                .await?;
        }
        w.commit().await
    }

    /// Looks at every page of the file: the cells on the leaves of a table's own tree are its rows.
    async fn measure_sqlite(&self, day: i64) -> Result<Vec<Measured>> {
        let rows = sqlx::query(
            "SELECT COALESCE(thing.tbl_name, pages.name), SUM(pages.bytes),
                    SUM(CASE WHEN COALESCE(thing.type, 'table') = 'table' THEN pages.cells ELSE 0 END)
             FROM (SELECT name, SUM(pgsize) AS bytes,
                          SUM(CASE WHEN pagetype = 'leaf' THEN ncell ELSE 0 END) AS cells
                   FROM dbstat
                   GROUP BY name) pages
             LEFT JOIN sqlite_master thing ON thing.name = pages.name
             GROUP BY 1",
        )
        .fetch_all(&self.pools.reader)
        .await?;
        let mut measured = rows
            .iter()
            .map(|row| Ok(Measured { day, name: row.try_get(0)?, bytes: row.try_get(1)?, rows: row.try_get(2)? }))
            .collect::<Result<Vec<_>>>()?;
        let free = sqlx::query_scalar("SELECT freelist_count * page_size FROM pragma_freelist_count, pragma_page_size")
            .fetch_one(&self.pools.reader)
            .await?;
        measured.push(Measured { day, name: FREE.to_owned(), bytes: free, rows: None });
        Ok(measured)
    }

    async fn measure_postgres(&self, day: i64) -> Result<Vec<Measured>> {
        let rows = sqlx::query(
            "SELECT CAST(relname AS TEXT), pg_total_relation_size(relid), n_live_tup
             FROM pg_stat_user_tables
             WHERE schemaname = current_schema()",
        )
        .fetch_all(&self.pools.reader)
        .await?;
        rows.iter()
            .map(|row| Ok(Measured { day, name: row.try_get(0)?, bytes: row.try_get(1)?, rows: row.try_get(2)? }))
            .collect()
    }

    /// The day of the last measurement, in days since 1970; `None`: there was none.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn measured_day(&self) -> Result<Option<i64>> {
        Ok(sqlx::query_scalar("SELECT MAX(day) FROM table_size").fetch_one(&self.pools.reader).await?)
    }

    /// The last measurement, and how it compares with those before.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn sizes(&self) -> Result<Sizes> {
        let rows = sqlx::query(
            "SELECT day, name, bytes, row_count
             FROM table_size
             WHERE day >= (SELECT MAX(day) FROM table_size) - $1
             ORDER BY day, name",
        )
        .bind(GROWTH_DAYS)
        .fetch_all(&self.pools.reader)
        .await?;
        let measured = rows.iter().map(|row| {
            Ok(Measured { day: row.try_get(0)?, name: row.try_get(1)?, bytes: row.try_get(2)?, rows: row.try_get(3)? })
        });
        Ok(summed_up(&measured.collect::<Result<Vec<_>>>()?))
    }

    /// Bytes of the database as it is now: the file with its log, or what the server says.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn bytes(&self) -> Result<i64> {
        let statement = match self.pools.backend {
            Backend::Sqlite => "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size",
            Backend::Postgres => {
                "SELECT CAST(SUM(pg_total_relation_size(relid)) AS BIGINT)
                 FROM pg_stat_user_tables
                 WHERE schemaname = current_schema()"
            }
        };
        let bytes: i64 = sqlx::query_scalar(statement).fetch_one(&self.pools.reader).await?;
        Ok(bytes + i64::try_from(self.wal_bytes().unwrap_or(0)).unwrap_or(0))
    }
}

/// The newest day of measurements, and the growth since the oldest. A table that was not there then has grown from nothing.
fn summed_up(measured: &[Measured]) -> Sizes {
    let days = || measured.iter().map(|table| table.day);
    let (Some(first), Some(last)) = (days().min(), days().max()) else { return Sizes::default() };
    let before: BTreeMap<&str, i64> =
        measured.iter().filter(|table| table.day == first).map(|table| (table.name.as_str(), table.bytes)).collect();
    let per_day = |bytes: i64| (last > first).then(|| bytes / (last - first));
    let grown = |table: &Measured| table.bytes - before.get(table.name.as_str()).unwrap_or(&0);
    let mut tables: Vec<TableSize> = measured
        .iter()
        .filter(|table| table.day == last)
        .map(|table| TableSize {
            name: table.name.clone(),
            bytes: table.bytes,
            rows: table.rows,
            growth: per_day(grown(table)),
        })
        .collect();
    tables.sort_by(|a, b| b.bytes.cmp(&a.bytes).then(a.name.cmp(&b.name)));
    let bytes = tables.iter().map(|table| table.bytes).sum();
    Sizes { day: Some(last), bytes, growth: per_day(bytes - before.values().sum::<i64>()), tables }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(day: i64, name: &str, bytes: i64) -> Measured {
        Measured { day, name: name.to_owned(), bytes, rows: Some(1) }
    }

    #[test]
    fn growth_is_told_between_days_and_not_before_there_are_two() {
        assert_eq!(summed_up(&[]), Sizes::default());
        let one = summed_up(&[measured(10, "event", 500), measured(10, "document", 900)]);
        assert_eq!((one.day, one.bytes, one.growth), (Some(10), 1400, None));
        assert_eq!(one.tables[0].name, "document", "the largest comes first");
        assert_eq!(one.days_until_full(1 << 40), None);
        let two = summed_up(&[measured(10, "event", 500), measured(14, "event", 900), measured(14, "deploy", 80)]);
        assert_eq!((two.bytes, two.growth), (980, Some(120)));
        assert_eq!(two.tables.iter().map(|table| table.growth).collect::<Vec<_>>(), [Some(100), Some(20)]);
        assert_eq!(two.days_until_full(1_300), Some(10));
        let shrunk = summed_up(&[measured(10, "event", 500), measured(11, "event", 400)]);
        assert_eq!((shrunk.growth, shrunk.days_until_full(1_000)), (Some(-100), None));
    }
}
