//! A copy of the database that is known to be good, and the way back.
//!
//! A copy is made while others work: SQLite writes a consistent image into a new file, which is then read from end to end
//! and counted. What it holds stands in a manifest beside it, so that a copy can be told from a damaged one for as long as
//! it is kept. On PostgreSQL that is the server's business.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use sqlx::any::AnyConnectOptions;
use sqlx::{AnyConnection, AssertSqlSafe, ConnectOptions, Connection, Row};

use crate::Store;
use crate::dialect::{self, Backend};
use crate::error::{Error, Result};

/// What a copy holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// When it was made, in Unix seconds.
    pub made_s: i64,
    /// The schema it has.
    pub schema: i64,
    /// Bytes of the file.
    pub bytes: u64,
    /// SHA-256 of the file, in hexadecimal.
    pub sha256: String,
    /// Rows by table.
    pub rows: BTreeMap<String, i64>,
}

/// Where the manifest of a copy stands: beside it.
#[must_use]
pub fn manifest_path(copy: &Path) -> PathBuf {
    let mut path = copy.as_os_str().to_owned();
    path.push(".manifest.json");
    PathBuf::from(path)
}

impl Store {
    /// Makes a copy of the database, checks it and writes its manifest beside it. Nobody who reads or writes has to stop.
    ///
    /// # Errors
    /// When this is PostgreSQL, the file is there already, there is no room, or the copy is not what it should be; then no
    /// file is left.
    pub async fn backup(&self, copy: &Path, now_s: i64) -> Result<Manifest> {
        if self.backend() == Backend::Postgres {
            return Err(Error::NotHere("a copy of a PostgreSQL database is made with `pg_dump --format=custom`"));
        }
        if copy.exists() {
            return Err(Error::Copy { file: shown(copy), why: "it exists already".to_owned() });
        }
        let made = self.make(copy, now_s).await;
        if made.is_err() {
            // What is left of a copy that failed is of no use to anybody.
            let _ = std::fs::remove_file(copy);
        }
        made
    }

    async fn make(&self, copy: &Path, now_s: i64) -> Result<Manifest> {
        sqlx::query("VACUUM INTO $1").bind(copy.to_string_lossy().into_owned()).execute(self.writer()).await?;
        let manifest = examined(copy, now_s).await?;
        let text = serde_json::to_string_pretty(&manifest).expect("numbers and words always have a JSON form");
        std::fs::write(manifest_path(copy), text + "\n").map_err(|error| failed(copy, &error))?;
        Ok(manifest)
    }
}

/// Checks a copy: that it is whole, of a schema that this program knows, and what its manifest says, where there is one.
///
/// # Errors
/// When it is not.
pub async fn verify(copy: &Path) -> Result<Manifest> {
    let known = dialect::newest_schema();
    let written: Option<Manifest> = match std::fs::read(manifest_path(copy)) {
        Ok(text) => Some(serde_json::from_slice(&text).map_err(|error| failed(&manifest_path(copy), &error))?),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => return Err(failed(&manifest_path(copy), &error)),
    };
    if let Some(written) = &written
        && hash(copy)? != (written.bytes, written.sha256.clone())
    {
        return Err(Error::Copy { file: shown(copy), why: "it is not the file that its manifest tells of".to_owned() });
    }
    let found = examined(copy, written.as_ref().map_or(0, |written| written.made_s)).await?;
    if found.schema > known {
        return Err(Error::Newer { url: shown(copy), found: found.schema, known });
    }
    match written {
        Some(written) if written.rows != found.rows => {
            Err(Error::Copy { file: shown(copy), why: "it holds other rows than its manifest tells of".to_owned() })
        }
        _ => Ok(found),
    }
}

/// Puts a checked copy in the place of a database that nobody uses. What was there is kept as `NAME.before-restore`.
///
/// # Errors
/// When the copy is not good, or files cannot be moved; then the database is as it was.
pub async fn restore(copy: &Path, database: &str) -> Result<Manifest> {
    let place = dialect::file_of(database)?
        .ok_or(Error::NotHere("a copy of a PostgreSQL database is brought back with `pg_restore`"))?;
    let manifest = verify(copy).await?;
    let arriving = beside(&place, ".arriving");
    std::fs::copy(copy, &arriving).map_err(|error| failed(&arriving, &error))?;
    if hash(&arriving)? != (manifest.bytes, manifest.sha256.clone()) {
        let _ = std::fs::remove_file(&arriving);
        return Err(Error::Copy { file: shown(&place), why: "the copy did not arrive whole".to_owned() });
    }
    if place.exists() {
        let aside = beside(&place, ".before-restore");
        std::fs::rename(&place, &aside).map_err(|error| failed(&aside, &error))?;
        for end in ["-wal", "-shm"] {
            let (log, aside) = (beside(&place, end), beside(&aside, end));
            if log.exists() {
                std::fs::rename(&log, &aside).map_err(|error| failed(&aside, &error))?;
            }
        }
    }
    std::fs::rename(&arriving, &place).map_err(|error| failed(&place, &error))?;
    Ok(manifest)
}

/// Reads a copy from end to end: its pages, its rows, its bytes.
async fn examined(copy: &Path, made_s: i64) -> Result<Manifest> {
    let mut on = open_to_read(copy).await?;
    let problems = sqlx::query("SELECT integrity_check FROM pragma_integrity_check").fetch_all(&mut on).await?;
    for problem in &problems {
        let says: String = problem.try_get(0)?;
        if says != "ok" {
            return Err(Error::Copy { file: shown(copy), why: says });
        }
    }
    let schema: Option<i64> =
        sqlx::query_scalar("SELECT MAX(version) FROM _sqlx_migrations").fetch_one(&mut on).await?;
    let tables =
        sqlx::query("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").fetch_all(&mut on).await?;
    let mut rows = BTreeMap::new();
    for table in &tables {
        let name: String = table.try_get(0)?;
        // The names are those of the file's own list; quotes in them are doubled.
        let statement = format!("SELECT COUNT(*) FROM \"{}\"", name.replace('"', "\"\""));
        let n: i64 = sqlx::query_scalar(AssertSqlSafe(statement)).fetch_one(&mut on).await?;
        rows.insert(name, n);
    }
    on.close().await?;
    let (bytes, sha256) = hash(copy)?;
    Ok(Manifest { made_s, schema: schema.unwrap_or(0), bytes, sha256, rows })
}

async fn open_to_read(copy: &Path) -> Result<AnyConnection> {
    sqlx::any::install_default_drivers();
    let url = dialect::read_only_url(copy)?;
    let how = AnyConnectOptions::from_str(&url).map_err(|_| Error::Url(shown(copy)))?;
    how.connect().await.map_err(|error| Error::opening(&shown(copy), error))
}

/// Length and SHA-256 of a file.
fn hash(file: &Path) -> Result<(u64, String)> {
    let mut reader = std::fs::File::open(file).map_err(|error| failed(file, &error))?;
    let mut hasher = Sha256::new();
    let bytes = std::io::copy(&mut reader, &mut hasher).map_err(|error| failed(file, &error))?;
    Ok((bytes, plumbline_rules::canonical::hex(&hasher.finalize())))
}

fn beside(file: &Path, end: &str) -> PathBuf {
    let mut path = file.as_os_str().to_owned();
    path.push(end);
    PathBuf::from(path)
}

fn shown(file: &Path) -> String {
    file.display().to_string()
}

fn failed(file: &Path, error: &dyn std::error::Error) -> Error {
    Error::Copy { file: shown(file), why: error.to_string() }
}
