//! Opening either database, and the few words in which they differ.
//!
//! SQL here is written once for SQLite and PostgreSQL. What that asks of every statement:
//! - placeholders are `$1`, `$2`; an optional filter is `($1 IS NULL OR column = $1)`;
//! - ids come from [`Writing::next_id`], never from the database, so they are the same everywhere;
//! - sums and averages are cast (`CAST(SUM(x) AS BIGINT)`): PostgreSQL answers `NUMERIC`, which `Any` cannot read;
//! - no boolean expression in a select list: `CASE WHEN … THEN 1 ELSE 0 END`;
//! - `NULLS FIRST` or `NULLS LAST` in every `ORDER BY` on a nullable column: the defaults differ;
//! - no `||` on bytes (text on SQLite), no JSON operators, no `BOOLEAN`, no bare `1.5` in a select list;
//! - a column is either compared with a parameter of its own type or the parameter is cast where nothing tells its type.
//!
//! One transaction writes at a time, over all processes: SQLite begins it with `BEGIN IMMEDIATE`, PostgreSQL with an
//! advisory lock. That makes counting ids on from the greatest one safe, and reading before writing race-free.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sqlx::any::{AnyConnectOptions, AnyPoolOptions, AnyRow};
use sqlx::migrate::{MigrateError, Migrator};
use sqlx::{Any, AnyConnection, AnyPool, AssertSqlSafe, ConnectOptions, Executor, Row, Transaction};

use crate::error::{Error, Result};
use crate::events::{self, Waiting};

/// The schema, embedded.
static MIGRATIONS: Migrator = sqlx::migrate!("../migrations");

/// Serialises writers on PostgreSQL; any number that no other program uses on the same database.
const WRITER_LOCK: &str = "SELECT pg_advisory_xact_lock(7086462541)";

/// How to open a database.
#[derive(Debug, Clone)]
pub struct Options {
    /// Connections that only read. Default 4.
    pub readers: u32,
    /// How long a statement waits for another program's lock, in milliseconds. Default 5000.
    pub busy_ms: u32,
    /// Pages that the file may grow to; `None`: no limit but the disk. It makes a full disk in tests. SQLite only.
    pub max_pages: Option<u32>,
}

impl Default for Options {
    fn default() -> Self {
        Options { readers: 4, busy_ms: 5000, max_pages: None }
    }
}

/// Which of the two databases is in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backend {
    /// A file beside the program.
    Sqlite,
    /// A server.
    Postgres,
}

/// An opened database: the one connection that writes, and those that read.
#[derive(Debug, Clone)]
pub(crate) struct Pools {
    pub(crate) backend: Backend,
    pub(crate) writer: AnyPool,
    pub(crate) reader: AnyPool,
    /// The address as a person is shown it: without password.
    pub(crate) shown: String,
    /// The file, on SQLite.
    pub(crate) file: Option<PathBuf>,
    /// There is room enough to keep the bodies of probed documents.
    pub(crate) keeps_bodies: Arc<AtomicBool>,
    shared: Arc<Mutex<Shared>>,
}

/// Where a database is.
#[derive(Debug, Clone)]
struct Address {
    backend: Backend,
    /// What the driver gets.
    url: String,
    /// What a person is shown: without password.
    shown: String,
    /// The file, on SQLite.
    file: Option<PathBuf>,
}

/// Opens the database, makes it when it is not there, and brings its schema up to date.
pub(crate) async fn open(url: &str, options: &Options) -> Result<Pools> {
    sqlx::any::install_default_drivers();
    let address = address(url)?;
    let writer = connect(&address, options, 1, false).await?;
    migrate(&address, &writer).await?;
    let reader = connect(&address, options, options.readers, true).await?;
    Ok(Pools {
        backend: address.backend,
        writer,
        reader,
        shown: address.shown,
        file: address.file,
        keeps_bodies: Arc::new(AtomicBool::new(true)),
        shared: Arc::default(),
    })
}

/// Understands `postgres://…`, `sqlite://path`, `sqlite:path` and plain paths.
fn address(text: &str) -> Result<Address> {
    if text.starts_with("postgres://") || text.starts_with("postgresql://") {
        let options = AnyConnectOptions::from_str(text).map_err(|_| Error::Url(text.to_owned()))?;
        let mut shown = options.database_url;
        // A URL that cannot have a password has none to hide.
        let _ = shown.set_password(None);
        let shown = shown.to_string();
        return Ok(Address { backend: Backend::Postgres, url: text.to_owned(), shown, file: None });
    }
    let path = text.strip_prefix("sqlite://").or_else(|| text.strip_prefix("sqlite:")).unwrap_or(text);
    let is_other_scheme = path.split_once("://").is_some_and(|(scheme, _)| !scheme.contains('/'));
    if path.is_empty() || is_other_scheme || path.starts_with(":memory:") {
        return Err(Error::Url(text.to_owned()));
    }
    let absolute = std::path::absolute(path).map_err(|_| Error::Url(text.to_owned()))?;
    Ok(Address {
        backend: Backend::Sqlite,
        url: format!("sqlite://{}?mode=rwc", percent_encoded(&absolute)),
        shown: format!("sqlite:{path}"),
        file: Some(absolute),
    })
}

/// The file of a SQLite database; `None` for one on a server.
pub(crate) fn file_of(url: &str) -> Result<Option<PathBuf>> {
    Ok(address(url)?.file)
}

/// How a file is opened only to be read.
pub(crate) fn read_only_url(file: &Path) -> Result<String> {
    let absolute = std::path::absolute(file).map_err(|_| Error::Url(file.display().to_string()))?;
    Ok(format!("sqlite://{}?mode=ro", percent_encoded(&absolute)))
}

/// The schema that this program brings databases to.
pub(crate) fn newest_schema() -> i64 {
    MIGRATIONS.iter().map(|migration| migration.version).max().unwrap_or(0)
}

/// A path as the part of a URL after its scheme.
fn percent_encoded(path: &Path) -> String {
    let mut text = String::new();
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' | b'~' => text.push(char::from(*byte)),
            other => text.push_str(&format!("%{other:02X}")),
        }
    }
    text
}

async fn connect(address: &Address, options: &Options, connections: u32, read_only: bool) -> Result<AnyPool> {
    let how = AnyConnectOptions::from_str(&address.url).map_err(|_| Error::Url(address.shown.clone()))?;
    let (busy_ms, max_pages) = (options.busy_ms, options.max_pages.filter(|_| !read_only));
    // One connection is opened by hand: the pool would try a failing one again and again until its time is up.
    let mut first = how.connect().await.map_err(|error| Error::opening(&address.shown, error))?;
    prepare(&mut first, read_only, busy_ms, max_pages).await.map_err(|error| Error::opening(&address.shown, error))?;
    drop(first);
    let pool =
        AnyPoolOptions::new().max_connections(connections).acquire_timeout(Duration::from_secs(60)).after_connect(
            move |connection, _| Box::pin(async move { prepare(connection, read_only, busy_ms, max_pages).await }),
        );
    Ok(pool.connect_lazy_with(how))
}

/// What every connection is told first.
async fn prepare(
    connection: &mut AnyConnection,
    read_only: bool,
    busy_ms: u32,
    max_pages: Option<u32>,
) -> sqlx::Result<()> {
    if connection.backend_name() == "PostgreSQL" {
        if read_only {
            connection.execute("SET default_transaction_read_only = on").await?;
        }
        return Ok(());
    }
    // A pragma takes no parameters; the text is ours and a number.
    connection.execute(AssertSqlSafe(format!("PRAGMA busy_timeout = {busy_ms}"))).await?;
    // Page size and vacuum mode only take hold on a file that is still empty, and before WAL is on.
    connection
        .execute(
            "PRAGMA page_size = 8192;
             PRAGMA auto_vacuum = INCREMENTAL;
             PRAGMA journal_mode = WAL;
             PRAGMA synchronous = NORMAL;
             PRAGMA foreign_keys = ON;
             PRAGMA temp_store = MEMORY;
             PRAGMA journal_size_limit = 67108864",
        )
        .await?;
    if let Some(pages) = max_pages {
        connection.execute(AssertSqlSafe(format!("PRAGMA max_page_count = {pages}"))).await?;
    }
    // The writer keeps its pages in a cache; readers see the file through the memory map, where a cache for each of them
    // would hold the same pages again. With 20,000 targets this is 80 MB less than both for all.
    connection
        .execute(if read_only {
            "PRAGMA query_only = ON; PRAGMA cache_size = -4096; PRAGMA mmap_size = 268435456"
        } else {
            "PRAGMA cache_size = -32768"
        })
        .await?;
    Ok(())
}

/// Brings the schema up to date, after a copy of what was there.
async fn migrate(address: &Address, writer: &AnyPool) -> Result<()> {
    let known = newest_schema();
    let found = applied(address.backend, writer).await.map_err(|error| Error::opening(&address.shown, error))?;
    if let Some(found) = found.filter(|found| *found > known) {
        return Err(Error::Newer { url: address.shown.clone(), found, known });
    }
    if let (Some(found), Some(file)) = (found.filter(|found| *found < known), &address.file) {
        copy_aside(writer, file, found).await?;
    }
    MIGRATIONS.run(writer).await.map_err(|error| match error {
        MigrateError::Execute(error) => Error::opening(&address.shown, error),
        MigrateError::VersionMissing(found) => Error::Newer { url: address.shown.clone(), found, known },
        source => Error::Migrate { url: address.shown.clone(), source },
    })
}

/// The newest migration this database has had; `None` for one that had none.
async fn applied(backend: Backend, writer: &AnyPool) -> sqlx::Result<Option<i64>> {
    let is_there = match backend {
        Backend::Sqlite => "SELECT COUNT(*) AS n FROM sqlite_master WHERE type = 'table' AND name = '_sqlx_migrations'",
        Backend::Postgres => {
            "SELECT COUNT(*) AS n FROM pg_tables WHERE schemaname = current_schema() AND tablename = '_sqlx_migrations'"
        }
    };
    if sqlx::query_scalar::<_, i64>(is_there).fetch_one(writer).await? == 0 {
        return Ok(None);
    }
    sqlx::query_scalar("SELECT MAX(version) FROM _sqlx_migrations").fetch_one(writer).await
}

/// Keeps the file as it was, as `NAME.before-N` beside it, N being the schema it had.
async fn copy_aside(writer: &AnyPool, file: &Path, found: i64) -> Result<()> {
    let mut copy = file.as_os_str().to_owned();
    copy.push(format!(".before-{found}"));
    let copy = PathBuf::from(copy);
    if copy.exists() {
        return Ok(());
    }
    tracing::info!("copying the database to {} before its schema is changed", copy.display());
    sqlx::query("VACUUM INTO $1").bind(copy.to_string_lossy().into_owned()).execute(writer).await?;
    Ok(())
}

/// Tables whose rows are counted, and the statement that finds the greatest id.
macro_rules! tables {
    ($($variant:ident = $name:literal,)+) => {
        /// A table whose rows are named by a number that the writer hands out.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub(crate) enum Table { $($variant,)+ }

        impl Table {
            fn greatest_id(self) -> &'static str {
                match self { $(Table::$variant => concat!("SELECT COALESCE(MAX(id), 0) AS id FROM ", $name),)+ }
            }
        }
    };
}

tables! {
    Rule = "rule",
    Ruleset = "ruleset",
    Document = "document",
    OccSet = "occ_set",
    JudgedSet = "judged_set",
    Eval = "eval",
    Source = "source",
    Crawl = "crawl",
    Walk = "walk",
    Owner = "owner",
    Host = "host",
    Target = "target",
    Surface = "surface",
    Listing = "listing",
    ProbeSession = "probe_session",
    Finding = "finding",
    Incident = "incident",
    Deploy = "deploy",
    ApiToken = "api_token",
    Event = "event",
    WhEndpoint = "wh_endpoint",
    Route = "route",
    Alert = "alert",
    Silence = "silence",
    Waiver = "waiver",
    Maintenance = "maintenance",
    Audit = "audit",
    FindingNote = "finding_note",
}

/// The one writing transaction. Dropping it without [`Writing::commit`] undoes everything.
pub(crate) struct Writing {
    tx: Transaction<'static, Any>,
    ids: HashMap<Table, i64>,
    shared: Arc<Mutex<Shared>>,
    fresh: Shared,
    /// Bodies of probed documents are kept.
    pub(crate) keeps_bodies: bool,
    /// Events to be written at the end.
    pub(crate) news: Vec<Waiting>,
}

/// Where small shared bodies stand, by table and hash. Only rows that were committed get in.
pub(crate) type Shared = HashMap<(Table, [u8; 16]), i64>;

/// Beyond this many the memory of shared bodies begins anew; an entry takes some fifty bytes.
const MOST_SHARED: usize = 50_000;

impl Pools {
    /// Begins to read everything as it is at one moment, whoever writes meanwhile.
    pub(crate) async fn read_at_once(&self) -> Result<sqlx::Transaction<'static, sqlx::Any>> {
        let begin = match self.backend {
            Backend::Sqlite => "BEGIN",
            Backend::Postgres => "BEGIN ISOLATION LEVEL REPEATABLE READ",
        };
        Ok(self.reader.begin_with(begin).await?)
    }

    /// Begins to write, waiting for whoever is writing now.
    pub(crate) async fn write(&self) -> Result<Writing> {
        let tx = match self.backend {
            Backend::Sqlite => match self.writer.begin_with("BEGIN IMMEDIATE").await {
                Err(sqlx::Error::InvalidSavePointStatement) => {
                    self.renew_writer().await?;
                    self.writer.begin_with("BEGIN IMMEDIATE").await?
                }
                begun => begun?,
            },
            Backend::Postgres => {
                let mut tx = self.writer.begin().await?;
                (&mut *tx).execute(WRITER_LOCK).await?;
                tx
            }
        };
        Ok(Writing {
            tx,
            ids: HashMap::new(),
            shared: self.shared.clone(),
            fresh: Shared::new(),
            keeps_bodies: self.keeps_bodies.load(Ordering::Relaxed),
            news: Vec::new(),
        })
    }

    /// Closes the connection that writes; the next use opens another. When the disk is full SQLite undoes the transaction
    /// by itself, and the driver, which is not told, believes for ever that one is open.
    async fn renew_writer(&self) -> Result<()> {
        Ok(self.writer.acquire().await?.close().await?)
    }
}

impl Writing {
    /// The connection, for statements.
    pub(crate) fn on(&mut self) -> &mut AnyConnection {
        &mut self.tx
    }

    /// The rows of a statement made of our own words, with these numbers for its parameters.
    pub(crate) async fn rows_of(&mut self, statement: String, numbers: &[i64]) -> Result<Vec<AnyRow>> {
        let query = numbers.iter().fold(sqlx::query(AssertSqlSafe(statement)), |query, number| query.bind(*number));
        Ok(query.fetch_all(&mut *self.tx).await?)
    }

    /// A number no row of the table has had.
    pub(crate) async fn next_id(&mut self, table: Table) -> Result<i64> {
        let last = match self.ids.get(&table) {
            Some(last) => *last,
            None => sqlx::query(table.greatest_id()).fetch_one(&mut *self.tx).await?.try_get(0)?,
        };
        self.ids.insert(table, last + 1);
        Ok(last + 1)
    }

    /// Where a shared body stands, if that is remembered.
    pub(crate) fn remembered(&self, table: Table, hash: &[u8; 16]) -> Option<i64> {
        let key = (table, *hash);
        let before = || self.shared.lock().unwrap_or_else(PoisonError::into_inner).get(&key).copied();
        self.fresh.get(&key).copied().or_else(before)
    }

    /// Remembers where a shared body stands, for good once this transaction is.
    pub(crate) fn remember(&mut self, table: Table, hash: [u8; 16], id: i64) {
        self.fresh.insert((table, hash), id);
    }

    /// Makes everything written so far true.
    pub(crate) async fn commit(mut self) -> Result<()> {
        events::flush(&mut self).await?;
        self.tx.commit().await?;
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        if shared.len() + self.fresh.len() > MOST_SHARED {
            shared.clear();
        }
        shared.extend(self.fresh);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_and_urls_name_the_same_file() {
        let here = std::path::absolute("plumbline.db").unwrap();
        for text in ["plumbline.db", "sqlite://plumbline.db", "sqlite:plumbline.db"] {
            assert_eq!(address(text).unwrap().file.as_deref(), Some(here.as_path()), "{text}");
        }
        let odd = address("/tmp/a b%?#.db").unwrap();
        assert_eq!(odd.url, "sqlite:///tmp/a%20b%25%3F%23.db?mode=rwc");
    }

    #[test]
    fn what_is_no_database_is_said_to_be_none() {
        for text in ["", "sqlite://", "mysql://host/db", "sqlite::memory:", "https://example.org/x"] {
            assert!(matches!(address(text), Err(Error::Url(_))), "{text}");
        }
    }

    #[test]
    fn a_password_is_never_shown() {
        let address = address("postgres://me:secret@localhost/db").unwrap();
        assert!(!address.shown.contains("secret"));
        assert!(address.url.contains("secret"));
    }
}
