//! `/snapshots`: what `plumbline snapshot` wrote, month by month, to be taken away whole.

use std::path::{Path as FilePath, PathBuf};

use askama::Template;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use tokio_util::io::ReaderStream;

use super::almanac;
use crate::WebState;
use crate::cache::Cache;
use crate::error::Error;
use crate::filters;
use crate::page::{Frame, Place, Visit};
use crate::text;

/// The file that says what a snapshot holds.
const SCHEMA: &str = "schema.json";

/// Every snapshot there is.
#[derive(Template, Serialize)]
#[template(path = "snapshots.html")]
struct Snapshots {
    #[serde(skip)]
    frame: Frame,
    /// The answer in one sentence.
    answer: String,
    /// Newest first.
    snapshots: Vec<Snapshot>,
}

/// One snapshot, as its schema says.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Snapshot {
    /// `2026-11`
    month: String,
    /// When it was taken, RFC 3339.
    taken_at: String,
    /// Under which licence.
    licence: String,
    /// What it holds.
    tables: Vec<Table>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Table {
    /// Its name.
    name: String,
    /// What a row is.
    says: String,
    /// How many there are.
    rows: u64,
    /// In every form.
    files: Vec<File>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct File {
    /// Its name.
    name: String,
    /// How long it is.
    bytes: i64,
    /// Of its bytes, in hex.
    sha256: String,
}

/// `GET /snapshots`
pub async fn list(visit: Visit, State(state): State<WebState>) -> Result<Response, Error> {
    let snapshots = match &state.site().snapshots {
        Some(folder) => found(folder).await?,
        None => Vec::new(),
    };
    let answer = match snapshots.first() {
        None => "No month was written yet.".to_owned(),
        Some(newest) => format!(
            "{} to take away, the newest of {}.",
            text::opened(&text::counted(snapshots.len() as i64, "month", "months")),
            newest.month
        ),
    };
    visit.answer(&Snapshots { frame: visit.framed(Place::Elsewhere), answer, snapshots }, Cache::Minute)
}

/// The snapshots of a folder, the newest first. What cannot be read is none.
async fn found(folder: &FilePath) -> Result<Vec<Snapshot>, Error> {
    let mut found = Vec::new();
    let mut entries = match tokio::fs::read_dir(folder).await {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(found),
        Err(error) => return Err(error.into()),
    };
    while let Some(entry) = entries.next_entry().await? {
        let is_month = entry.file_name().to_str().is_some_and(|name| almanac::days_of(name).is_some());
        let Ok(schema) = tokio::fs::read(entry.path().join(SCHEMA)).await else { continue };
        found.extend(serde_json::from_slice::<Snapshot>(&schema).ok().filter(|_| is_month));
    }
    found.sort_by(|a, b| b.month.cmp(&a.month));
    Ok(found)
}

/// `GET /snapshots/{month}/{file}`
pub async fn file(
    State(state): State<WebState>,
    Path((month, file)): Path<(String, String)>,
) -> Result<Response, Error> {
    let unknown = || Error::NotFound { what: "file of a snapshot", asked: format!("{month}/{file}") };
    let path = state.site().snapshots.as_deref().and_then(|folder| path(folder, &month, &file)).ok_or_else(unknown)?;
    let opened = match tokio::fs::File::open(&path).await {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Err(unknown()),
        opened => opened?,
    };
    let length = opened.metadata().await?.len();
    let mut response = Body::from_stream(ReaderStream::new(opened)).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind(&file)));
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    headers.insert(header::CACHE_CONTROL, Cache::Minute.header());
    Ok(response)
}

/// Where a file lies; `None`: no snapshot has one of that name.
fn path(folder: &FilePath, month: &str, file: &str) -> Option<PathBuf> {
    almanac::days_of(month)?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    let is_name = !file.starts_with('.') && file.chars().all(is_plain);
    is_name.then(|| folder.join(month).join(file))
}

fn kind(file: &str) -> &'static str {
    match file.rsplit('.').next() {
        Some("json") => "application/json",
        Some("jsonl") => "application/jsonl",
        Some("csv") => "text/csv; charset=utf-8; header=present",
        Some("parquet") => "application/vnd.apache.parquet",
        _ => "text/plain; charset=utf-8",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_leads_out_of_the_folder() {
        let folder = FilePath::new("/s");
        assert_eq!(path(folder, "2026-11", "days.csv"), Some("/s/2026-11/days.csv".into()));
        for (month, file) in [
            ("2026-11", ".."),
            ("2026-11", "../x"),
            ("..", "x"),
            ("2026-11", ".x"),
            ("2026-11", "a/b"),
            ("2026-11", "a\\b"),
        ] {
            assert_eq!(path(folder, month, file), None, "{month} {file}");
        }
    }
}
