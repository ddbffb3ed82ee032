//! What can go wrong with the store itself. Whatever is wrong with a target is data, never one of these.

use crate::words::CrawlState;

/// A failure of ours: the database cannot be used, or does not hold what it should.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address of the database is none.
    #[error("`{0}` is no database: give a path, sqlite://path or postgres://user@host/name")]
    Url(String),
    /// The file cannot be opened or made.
    #[error("cannot open the database {0}: the file or its folder is missing or must not be read")]
    Unreadable(String),
    /// The file, its folder or the whole medium cannot be written.
    #[error("the database {0} is read-only: Plumbline has to write to it and to its folder")]
    ReadOnly(String),
    /// The file is something else.
    #[error("{0} is not a database: it exists and holds something else, so it was left alone")]
    NotADatabase(String),
    /// Another program holds the file.
    #[error("the database {0} is locked by another program")]
    Locked(String),
    /// No connection to the server.
    #[error("cannot connect to the database {url}: {reason}")]
    Unreachable {
        /// The address, without its password.
        url: String,
        /// What the driver said.
        reason: String,
    },
    /// A later Plumbline has been at work here.
    #[error(
        "the database {url} is from a newer version of Plumbline (schema {found}, this program knows {known}): \
         use that version, or restore the copy that was made before the upgrade"
    )]
    Newer {
        /// Which database.
        url: String,
        /// The newest migration it has had.
        found: i64,
        /// The newest one of this program.
        known: i64,
    },
    /// The schema could not be brought up to date.
    #[error("cannot bring the schema of {url} up to date: {source}")]
    Migrate {
        /// Which database.
        url: String,
        /// What the migrator said.
        source: sqlx::migrate::MigrateError,
    },
    /// Another process works on this file.
    #[error(
        "another Plumbline ({holder}) works on this database since {}: stop it, or name another one with --database",
        chrono::DateTime::from_timestamp(*since_s, 0).map_or_else(String::new, |at| at.to_rfc3339())
    )]
    Occupied {
        /// Host, process number and start of the other.
        holder: String,
        /// Since when, in Unix seconds.
        since_s: i64,
    },
    /// There is no room left to write. Nothing of what was being written is there.
    #[error("the disk of the database is full: nothing can be written until there is room ({0})")]
    Full(String),
    /// A walk is asked to go on that has ended.
    #[error("walk {walk} is {state} and takes no more pages")]
    WalkOver {
        /// The walk.
        walk: i64,
        /// How it ended.
        state: CrawlState,
    },
    /// Something that this kind of database does by other means.
    #[error("{0}")]
    NotHere(&'static str),
    /// A copy of a database cannot be made or used.
    #[error("{file}: {why}")]
    Copy {
        /// Which file.
        file: String,
        /// What is the matter with it.
        why: String,
    },
    /// Looks that were said to have moved nothing would have moved something.
    #[error("the looks at surface {surface} from {at_s} on are no quiet stretch: {why}")]
    NoStretch {
        /// What was looked at.
        surface: i64,
        /// When the first look was, in Unix seconds.
        at_s: i64,
        /// What they would have moved.
        why: String,
    },
    /// A row that was named is not there.
    #[error("there is no {what} {id}")]
    Missing {
        /// The table, as a person calls it.
        what: &'static str,
        /// What was asked for.
        id: String,
    },
    /// Judged with a rule that the ruleset does not hold.
    #[error("rule `{0}` is not in the ruleset that was judged with")]
    UnknownRule(String),
    /// A row holds what nobody could have written.
    #[error("the database holds a {what} that cannot be read: {detail}")]
    Corrupt {
        /// Where.
        what: &'static str,
        /// What is wrong with it.
        detail: String,
    },
    /// The database refused a statement.
    #[error("the database failed: {0}")]
    Sql(#[source] sqlx::Error),
}

impl From<sqlx::Error> for Error {
    fn from(error: sqlx::Error) -> Error {
        if is_full(&error) { Error::Full(error.to_string()) } else { Error::Sql(error) }
    }
}

/// What functions of this crate return.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The SQLite result codes that a person can do something about.
const SQLITE_BUSY: i64 = 5;
const SQLITE_LOCKED: i64 = 6;
const SQLITE_READONLY: i64 = 8;
const SQLITE_FULL: i64 = 13;
const SQLITE_CANTOPEN: i64 = 14;
const SQLITE_NOTADB: i64 = 26;

/// What PostgreSQL says when its disk is full (class 53, insufficient resources).
const POSTGRES_DISK_FULL: &str = "53100";

impl Error {
    /// Names the well-known reasons why opening fails, for the database with this address.
    pub(crate) fn opening(url: &str, error: sqlx::Error) -> Error {
        match sqlite_code(&error).filter(|_| url.starts_with("sqlite:")) {
            Some(SQLITE_BUSY | SQLITE_LOCKED) => return Error::Locked(url.to_owned()),
            Some(SQLITE_READONLY) => return Error::ReadOnly(url.to_owned()),
            Some(SQLITE_CANTOPEN) => return Error::Unreadable(url.to_owned()),
            Some(SQLITE_NOTADB) => return Error::NotADatabase(url.to_owned()),
            _ => {}
        }
        match error {
            sqlx::Error::Io(_) | sqlx::Error::Tls(_) | sqlx::Error::PoolTimedOut => {
                Error::Unreachable { url: url.to_owned(), reason: error.to_string() }
            }
            sqlx::Error::Database(refusal) if !url.starts_with("sqlite:") => {
                Error::Unreachable { url: url.to_owned(), reason: refusal.message().to_owned() }
            }
            sqlx::Error::Configuration(_) => Error::Url(url.to_owned()),
            other => other.into(),
        }
    }

    /// Whether the same statement may go through later: the database is locked, full or away for a while. Nothing of a
    /// failed transaction was kept.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        match self {
            Error::Locked(_) | Error::Unreachable { .. } | Error::Full(_) => true,
            Error::Sql(error) => {
                let is_full = |code: &str| code.starts_with("53") || code.starts_with("57P");
                let server = error.as_database_error().and_then(|refusal| refusal.code().map(|code| is_full(&code)));
                matches!(sqlite_code(error), Some(SQLITE_BUSY | SQLITE_LOCKED))
                    || server == Some(true)
                    || matches!(error, sqlx::Error::PoolTimedOut | sqlx::Error::Io(_))
            }
            _ => false,
        }
    }

    /// A row that cannot be read back.
    #[expect(clippy::needless_pass_by_value, reason = "callers are done with the errors they hand over")]
    pub(crate) fn corrupt(what: &'static str, detail: impl ToString) -> Error {
        Error::Corrupt { what, detail: detail.to_string() }
    }
}

/// Whether a statement failed for want of room.
fn is_full(error: &sqlx::Error) -> bool {
    let is_postgres_full = error
        .as_database_error()
        .and_then(sqlx::error::DatabaseError::code)
        .is_some_and(|code| code == POSTGRES_DISK_FULL);
    is_postgres_full || sqlite_code(error) == Some(SQLITE_FULL)
}

/// The primary result code of an SQLite failure; `None` for any other.
fn sqlite_code(error: &sqlx::Error) -> Option<i64> {
    let code = error.as_database_error()?.code()?;
    // PostgreSQL's have five characters. Extended codes of SQLite carry the primary one in the low byte.
    let code = Some(code).filter(|code| code.len() < 5)?.parse::<i64>().ok()?;
    Some(code & 0xff)
}
