//! `/settings/about`: what runs here, how much room it takes, and how long it keeps what.

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use plumbline_rules::settings::Described;
use plumbline_store::Backend;
use plumbline_store::disk::Space;
use plumbline_store::housekeeping::Retention;
use plumbline_store::sizes::{Sizes, TableSize};
use plumbline_store::vitals::RulesetInUse;
use serde::Serialize;

use crate::WebState;
use crate::cache::Cache;
use crate::error::Error;
use crate::filters;
use crate::page::{Frame, Place, Visit};
use crate::text;

/// Tables that are named; those below are summed up.
const NAMED: usize = 15;

/// What runs here.
#[derive(Template, Serialize)]
#[template(path = "instance.html")]
struct Instance {
    #[serde(skip)]
    frame: Frame,
    /// The moment the page holds for, in Unix seconds.
    as_of_s: i64,
    /// The answer in one sentence.
    answer: String,
    /// Version of the program.
    version: &'static str,
    /// When the process began, in Unix seconds.
    started_s: i64,
    /// The rules in use.
    ruleset: Option<RulesetInUse>,
    /// `sqlite` or `postgres`.
    database: &'static str,
    /// The address of the database, without password.
    address: String,
    /// The database as it is now, in bytes.
    bytes: i64,
    /// Its write-ahead log; `None` on PostgreSQL.
    wal_bytes: Option<u64>,
    /// The disk it lies on; `None` where that cannot be seen.
    disk: Option<Space>,
    /// Days until that is full at the present pace; `None`: never, or the pace is not known.
    days_until_full: Option<i64>,
    /// Every table, as last measured.
    sizes: Sizes,
    /// How long things are kept.
    retention: Retention,
}

/// A setting of the retention, for people.
struct Kept {
    what: String,
    days: i64,
    about: &'static str,
}

/// `GET /settings/about`
pub async fn show(visit: Visit, State(state): State<WebState>) -> Result<Response, Error> {
    let store = &state.store;
    let (sizes, bytes, disk) = (store.sizes().await?, store.bytes().await?, store.disk());
    let page = Instance {
        frame: visit.framed(Place::Settings),
        as_of_s: visit.now,
        answer: answer(bytes, &sizes, visit.now - state.started_at),
        version: env!("CARGO_PKG_VERSION"),
        started_s: state.started_at,
        ruleset: store.ruleset_in_use().await?,
        database: match store.backend() {
            Backend::Sqlite => "sqlite",
            Backend::Postgres => "postgres",
        },
        address: store.address().to_owned(),
        bytes,
        wal_bytes: store.wal_bytes(),
        disk,
        days_until_full: disk.and_then(|disk| sizes.days_until_full(disk.free)),
        sizes,
        retention: state.site().retention.clone(),
    };
    visit.answer(&page, Cache::Fresh)
}

fn answer(bytes: i64, sizes: &Sizes, uptime: i64) -> String {
    let size = text::bytes(bytes);
    let pace = match sizes.growth {
        None => "how fast that grows is known after a second day".to_owned(),
        Some(growth) if growth > 0 => format!("{} more each day", text::bytes(growth)),
        Some(_) => "it does not grow".to_owned(),
    };
    format!("Plumbline has run for {} and keeps {size}; {pace}.", text::span(uptime))
}

impl Instance {
    fn largest(&self) -> &[TableSize] {
        &self.sizes.tables[..self.sizes.tables.len().min(NAMED)]
    }

    /// How many more there are, and their size together.
    fn smaller(&self) -> Option<(i64, i64)> {
        let smaller = self.sizes.tables.get(NAMED..).filter(|tables| !tables.is_empty())?;
        Some((smaller.len() as i64, smaller.iter().map(|table| table.bytes).sum()))
    }

    fn kept(&self) -> Vec<Kept> {
        let values = serde_json::to_value(&self.retention).unwrap_or_default();
        let kept = |(name, about): &(&'static str, &'static str)| Kept {
            what: text::opened(&name.trim_end_matches("_days").replace('_', " ")),
            days: values[*name].as_i64().unwrap_or(0),
            about: about.trim(),
        };
        Retention::FIELDS.iter().map(kept).collect()
    }

    fn growth(&self, table: &TableSize) -> String {
        table.growth.map_or_else(|| "–".to_owned(), grown)
    }

    fn measured(&self) -> String {
        self.sizes.day.map_or_else(|| "Not measured yet".to_owned(), |day| format!("Measured {}", text::day(day)))
    }
}

/// A change of size with its sign.
fn grown(bytes: i64) -> String {
    let sign = if bytes < 0 { "−" } else { "+" };
    if bytes == 0 { "0".to_owned() } else { format!("{sign}{}", text::bytes(bytes.abs())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_says_as_much_as_is_known_of_the_pace() {
        let sizes = |growth| Sizes { growth, ..Sizes::default() };
        assert_eq!(
            answer(64_600_000, &sizes(Some(1_200_000)), 7_300),
            "Plumbline has run for 2\u{a0}h and keeps 64.6\u{a0}MB; 1.2\u{a0}MB more each day."
        );
        assert!(answer(1, &sizes(None), 0).ends_with("known after a second day."));
        assert!(answer(1, &sizes(Some(-5)), 0).ends_with("; it does not grow."));
    }

    #[test]
    fn growth_has_its_sign() {
        assert_eq!(
            (grown(0).as_str(), grown(1_500).as_str(), grown(-20).as_str()),
            ("0", "+1.5\u{a0}kB", "−20\u{a0}B")
        );
    }
}
