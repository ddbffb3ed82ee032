//! Everything Plumbline remembers: targets and their surfaces, documents, judgements, findings, numbers by day, events.
//!
//! [`Store`] is the one door. It opens a database by its address (a file, or a PostgreSQL server), brings its schema up to
//! date and answers questions; nobody else writes SQL. It knows no HTTP, no HTML and no rule: what a judgement is about is
//! words and numbers here. Times are parameters, in Unix seconds.
//!
//! Writing, in the order of the pipeline:
//! - [`rulesets`]: which rules judging is about to use;
//! - [`sources`]: where targets come from, and a row for each crawl;
//! - [`walks`]: a registry, page by page; [`targets`]: cards, addresses and files from the settings;
//! - [`surfaces`]: what is due, leased to one worker at a time;
//! - [`record`]: what was seen and what the rules said of it, a batch in one transaction; [`stretches`]: many looks in which
//!   nothing moved; [`planned`]: which surfaces are under planned work.
//!
//! Deciding, pure: [`machine`] for the states of findings, [`reach`] for the states of surfaces, [`probes`] for packed days.
//!
//! Counting, besides what recording counts: [`cohorts`].
//!
//! Keeping house: [`housekeeping`] lets go of what is old, [`sizes`] measures, [`disk`] watches the room that is left,
//! [`doctor`] counts everything again, [`backup`] makes copies.
//!
//! Telling: [`happened`] is an event with all a reader needs, [`alerting`] keeps alerts and groups, [`hooks`] receivers and
//! how far each message came. [`repeats`] keeps answers for whoever asks twice, [`audit`] who changed what,
//! [`taken_on`] who has taken which finding on.
//!
//! Reading: [`documents`], [`judged`] (also the memo), [`events`], and [`views`] for what pages show.
//!
//! How one dialect serves two databases, and its traps, is told in [`dialect`]; what each table and column means, in the
//! migrations.

mod ahead;
pub mod alerting;
pub mod attributes;
pub mod audit;
pub mod backup;
pub mod cohorts;
pub mod conversations;
pub mod demonstration;
pub mod deploys;
pub mod dialect;
pub mod disk;
pub mod doctor;
pub mod documents;
pub mod error;
pub mod events;
mod facts;
mod findings;
pub mod happened;
pub mod hooks;
pub mod housekeeping;
pub mod ids;
pub mod incidents;
pub mod judged;
pub mod machine;
pub mod planned;
pub mod probes;
pub mod query;
pub mod reach;
pub mod record;
pub mod recount;
pub mod repeats;
pub mod reports;
mod rows;
pub mod rulesets;
pub mod sizes;
pub mod sources;
pub mod steering;
pub mod stretches;
pub mod surfaces;
pub mod taken_on;
pub mod targets;
pub mod tokens;
pub mod trends;
mod verify;
mod versions;
pub mod views;
pub mod vitals;
pub mod volatile;
pub mod waived;
pub mod walk_findings;
pub mod walks;
pub mod words;

pub use dialect::{Backend, Options};
pub use error::{Error, Result};
pub use ids::*;
pub use rows::Bits;

use sqlx::Row;

/// The database. Clones share one set of connections.
#[derive(Debug, Clone)]
pub struct Store {
    pub(crate) pools: dialect::Pools,
    catalogue: rulesets::SharedCatalogue,
    crowds: views::Crowds,
    fixed: views::FixedKept,
}

/// How much there is of everything.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct Totals {
    /// Targets that are watched.
    pub targets: i64,
    /// Surfaces that are watched.
    pub surfaces: i64,
    /// Entries of registries that are listed: versions, never added to targets.
    pub entries: i64,
    /// Distinct documents.
    pub documents: i64,
    /// Findings that are open.
    pub findings_open: i64,
    /// Events.
    pub events: i64,
}

impl Store {
    /// Opens a database: a path, `sqlite://path`, or `postgres://…`. A file that is not there is made; an older schema is
    /// brought up to date after a copy of the file was kept beside it; a newer one is refused.
    ///
    /// # Errors
    /// When the database cannot be opened, is not one, is read-only, is locked, or is from a newer version.
    pub async fn open(url: &str) -> Result<Store> {
        Store::open_with(url, &Options::default()).await
    }

    /// Opens a database in a certain way.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub async fn open_with(url: &str, options: &Options) -> Result<Store> {
        let pools = dialect::open(url, options).await?;
        let store = Store {
            pools,
            catalogue: rulesets::SharedCatalogue::default(),
            crowds: views::Crowds::default(),
            fixed: views::FixedKept::default(),
        };
        store.read_catalogue().await?;
        Ok(store)
    }

    /// Which database this is.
    #[must_use]
    pub fn backend(&self) -> Backend {
        self.pools.backend
    }

    /// The address of the database as a person is shown it: without password.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.pools.shown
    }

    /// The connection that writes, for tests that break what was written.
    #[doc(hidden)]
    #[must_use]
    pub fn writer(&self) -> &sqlx::AnyPool {
        &self.pools.writer
    }

    /// The connections that only read, for tests of what was written.
    #[doc(hidden)]
    #[must_use]
    pub fn reader(&self) -> &sqlx::AnyPool {
        &self.pools.reader
    }

    /// Ends all connections; whoever still waits for one gets an error.
    pub async fn close(&self) {
        self.pools.reader.close().await;
        self.pools.writer.close().await;
    }

    /// Counts everything. This reads whole tables, so pages take their numbers from the days instead (see [`trends`]).
    ///
    /// # Errors
    /// When the database fails.
    pub async fn counts(&self) -> Result<Totals> {
        let row = sqlx::query(
            "SELECT (SELECT COUNT(*) FROM target WHERE retired_s IS NULL),
                    (SELECT COUNT(*) FROM surface WHERE retired_s IS NULL),
                    (SELECT COUNT(*) FROM listing WHERE gone_s IS NULL),
                    (SELECT COUNT(*) FROM document),
                    (SELECT COUNT(*) FROM finding WHERE state IN ('open', 'clearing', 'flapping')),
                    (SELECT COUNT(*) FROM event)",
        )
        .fetch_one(&self.pools.reader)
        .await?;
        Ok(Totals {
            targets: row.try_get(0)?,
            surfaces: row.try_get(1)?,
            entries: row.try_get(2)?,
            documents: row.try_get(3)?,
            findings_open: row.try_get(4)?,
            events: row.try_get(5)?,
        })
    }
}
