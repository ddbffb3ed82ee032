//! `plumbline snapshot`: what is public of one month, as tables with their schema and their checksums. The tables are the exports
//! of the dashboard, asked of the same router, so that a file of a snapshot and a download are the same bytes.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use axum::Router;
use axum::body::Body;
use chrono::{Datelike, Months, NaiveDate, Utc};
use plumbline_store::Store;
use plumbline_web::{CrawlStatus, ExportTable, SiteSettings, WebState, export_forms, export_tables};
use serde::Serialize;
use sha2::{Digest, Sha256};
use tokio::io::AsyncWriteExt;
use tokio::sync::watch;
use tower::ServiceExt;

use crate::settings::{Options, Settings};
use crate::telling::Telling;
use crate::wiring;

/// Under which terms the tables may be used: they state facts, and whoever uses them owes nobody anything.
const LICENCE: &str = "CC0-1.0";

#[derive(clap::Args)]
#[command(after_help = "Examples:
  plumbline snapshot --out /srv/snapshots                   the month that ended last
  plumbline snapshot --out /srv/snapshots --month 2026-11   another one

Writes FOLDER/2026-11/ with targets, findings, rules, prevalence and days, each as CSV and JSON Lines (and as Parquet in a
build with that feature), schema.json with what every column means, and SHA256SUMS, which `sha256sum -c` reads. Targets,
findings and rules are as they stand when it is taken. A month that is there already is not written over. With
`web.snapshots` in the settings the dashboard hands the folder out at /snapshots, and `serve` takes each month by itself.")]
pub struct Arguments {
    /// The folder in which the month gets one of its own [default: web.snapshots of the settings].
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// The month, such as 2026-11 [default: the one that ended last].
    #[arg(long, value_name = "YYYY-MM")]
    month: Option<String>,
}

/// What a snapshot holds, as it is written into it.
#[derive(Debug, Serialize)]
struct Schema {
    month: String,
    taken_at: String,
    made_by: &'static str,
    licence: &'static str,
    tables: Vec<Table>,
}

#[derive(Debug, Serialize)]
struct Table {
    name: &'static str,
    says: &'static str,
    rows: u64,
    columns: Vec<plumbline_web::Column>,
    files: Vec<File>,
}

#[derive(Debug, Serialize)]
struct File {
    name: String,
    bytes: u64,
    sha256: String,
}

pub fn run(options: &Options, arguments: &Arguments) -> Result<ExitCode> {
    let settings = Settings::load(options)?;
    wiring::start_log(&settings.log)?;
    let today = Utc::now().date_naive();
    let month = arguments.month.clone().unwrap_or_else(|| last_month(today));
    if NaiveDate::parse_from_str(&format!("{month}-01"), "%Y-%m-%d").is_err() || month.len() != 7 {
        bail!("`{month}` is no month; write it as 2026-11");
    }
    let set = Some(&settings.web.snapshots).filter(|folder| !folder.is_empty()).map(PathBuf::from);
    let Some(out) = arguments.out.clone().or(set) else { bail!("name a folder with --out, or as web.snapshots") };
    let folder = out.join(&month);
    let schema = wiring::runtime()?.block_on(async {
        let store = wiring::open(&settings).await?;
        let router = plumbline_web::router(state(store.clone(), &settings).await?);
        let taken = take(&router, &out, &month).await;
        store.close().await;
        taken
    })?;
    let rows = schema.tables.iter().map(|table| format!("{} {}", table.rows, table.name)).collect::<Vec<_>>();
    println!("{}: {}.", folder.display(), rows.join(", "));
    Ok(ExitCode::SUCCESS)
}

/// Takes the snapshot of a month. It gets its name when it is whole and on the disk; until then it stands beside, under a name that
/// begins with a dot and is this process's own, so that two who take the same month do not write into each other's files.
async fn take(router: &Router, out: &Path, month: &str) -> Result<Schema> {
    let folder = out.join(month);
    if folder.exists() {
        bail!("{} is there already; a snapshot is never written over", folder.display());
    }
    // In containers every process has the same number.
    let began = Utc::now().timestamp_nanos_opt().unwrap_or_default();
    let unfinished = out.join(format!(".{month}.{}-{began}.unfinished", std::process::id()));
    let written = write(router, &unfinished, month).await;
    let named = written.and_then(|schema| {
        std::fs::rename(&unfinished, &folder).with_context(|| format!("{} gets its name", folder.display()))?;
        std::fs::File::open(out)?.sync_all()?;
        Ok(schema)
    });
    if named.is_err() {
        // What is left of it is of no use to anybody; that it cannot be taken away either is not the first failure.
        let _ = std::fs::remove_dir_all(&unfinished);
    }
    named
}

/// Takes the snapshot of the month that ended last, unless it is there, or nothing was counted in that month. Gives its folder
/// where it was taken now.
pub async fn take_last(store: &Store, router: &Router, out: &Path, today: NaiveDate) -> Result<Option<PathBuf>> {
    let month = last_month(today);
    let folder = out.join(&month);
    if folder.exists() || !was_counted(store, &month).await? {
        return Ok(None);
    }
    clear_away(out)?;
    take(router, out, &month).await?;
    Ok(Some(folder))
}

/// Whether any day of a month was counted.
async fn was_counted(store: &Store, month: &str) -> Result<bool> {
    let first = NaiveDate::parse_from_str(&format!("{month}-01"), "%Y-%m-%d")?;
    let next = first.checked_add_months(Months::new(1)).unwrap_or(first);
    let (first, next) = (i64::from(first.to_epoch_days()), i64::from(next.to_epoch_days()));
    let days = store.cohort_days(first).await?;
    Ok(days.iter().any(|day| (first..next).contains(&day.day)))
}

/// Takes away what a process that was killed left unfinished a day ago or earlier.
fn clear_away(out: &Path) -> Result<()> {
    if !out.exists() {
        return Ok(());
    }
    for entry in std::fs::read_dir(out)?.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let changed = entry.metadata().and_then(|about| about.modified());
        let is_old = changed.is_ok_and(|at| at.elapsed().is_ok_and(|age| age.as_secs() > 86_400));
        if name.starts_with('.')
            && name.ends_with(".unfinished")
            && is_old
            && let Err(error) = std::fs::remove_dir_all(entry.path())
        {
            tracing::warn!("{} is left lying: {error}", entry.path().display());
        }
    }
    Ok(())
}

/// The month before the one of a day.
fn last_month(day: NaiveDate) -> String {
    let first = day.with_day(1).and_then(|first| first.checked_sub_months(Months::new(1))).unwrap_or(day);
    first.format("%Y-%m").to_string()
}

/// Enough of a dashboard to ask it for its exports.
async fn state(store: Store, settings: &Settings) -> Result<WebState> {
    let site = SiteSettings { instance_name: settings.web.name.clone(), ..SiteSettings::default() };
    Ok(WebState {
        desk: Telling::new(settings, store.clone()).await?.desk(settings)?,
        store,
        settings: watch::channel(Arc::new(site)).1,
        status: watch::channel(CrawlStatus::default()).1,
        checker: plumbline_web::Checker::default(),
        now: plumbline_web::system_now,
        started_at: plumbline_web::system_now(),
        numbers: crate::numbers::since_start,
    })
}

async fn write(router: &Router, folder: &Path, month: &str) -> Result<Schema> {
    if folder.exists() {
        std::fs::remove_dir_all(folder).with_context(|| format!("what is left in {}", folder.display()))?;
    }
    std::fs::create_dir_all(folder).with_context(|| format!("folder {}", folder.display()))?;
    let taken_at = Utc::now().format("%Y-%m-%dT%H:%M:%SZ").to_string();
    let mut tables = Vec::new();
    for table in export_tables() {
        tables.push(write_table(router, folder, &table, month).await.with_context(|| format!("table {}", table.name))?);
    }
    let made_by = concat!("plumbline ", env!("CARGO_PKG_VERSION"));
    let schema = Schema { month: month.to_owned(), taken_at, made_by, licence: LICENCE, tables };
    let text = serde_json::to_vec_pretty(&schema)?;
    put(&folder.join("schema.json"), &text)?;
    let mut sums = format!("{}  schema.json\n", hex(&Sha256::digest(&text)));
    for file in schema.tables.iter().flat_map(|table| &table.files) {
        sums.push_str(&format!("{}  {}\n", file.sha256, file.name));
    }
    put(&folder.join("SHA256SUMS"), sums.as_bytes())?;
    std::fs::File::open(folder)?.sync_all()?;
    Ok(schema)
}

/// Writes a file that is on the disk when this returns.
fn put(path: &Path, text: &[u8]) -> Result<()> {
    let mut file = std::fs::File::create(path)?;
    file.write_all(text)?;
    Ok(file.sync_all()?)
}

async fn write_table(router: &Router, folder: &Path, table: &ExportTable, month: &str) -> Result<Table> {
    let (mut files, mut rows) = (Vec::new(), 0);
    for form in export_forms() {
        let name = format!("{}.{form}", table.name);
        let request = axum::http::Request::get(table.path(form, month)).body(Body::empty())?;
        let answer = router.clone().oneshot(request).await?;
        if !answer.status().is_success() {
            bail!("{name} was answered with {}", answer.status());
        }
        let mut file = tokio::fs::File::create(folder.join(&name)).await?;
        let (mut hash, mut bytes, mut lines) = (Sha256::new(), 0, 0);
        let mut body = answer.into_body().into_data_stream();
        while let Some(part) = futures_util::StreamExt::next(&mut body).await {
            let part = part?;
            hash.update(&part);
            bytes += part.len() as u64;
            lines += part.iter().filter(|byte| **byte == b'\n').count() as u64;
            file.write_all(&part).await?;
        }
        file.flush().await?;
        file.sync_all().await?;
        if *form == "jsonl" {
            rows = lines;
        }
        files.push(File { name, bytes, sha256: hex(&hash.finalize()) });
    }
    Ok(Table { name: table.name, says: table.says, rows, columns: table.columns.clone(), files })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::*;

    fn day_of(text: &str) -> NaiveDate {
        text.parse().unwrap()
    }

    #[tokio::test]
    async fn the_month_that_ended_is_taken_once_whole_and_only_where_something_was_counted() {
        let folder = tempfile::tempdir().unwrap();
        let (database, out) = (folder.path().join("plumbline.db"), folder.path().join("snapshots"));
        let settings = Settings { database: database.to_str().unwrap().to_owned(), ..Settings::default() };
        let store = wiring::open(&settings).await.unwrap();
        let router = plumbline_web::router(state(store.clone(), &settings).await.unwrap());
        let today = day_of("2026-12-01");
        assert_eq!(take_last(&store, &router, &out, today).await.unwrap(), None, "nothing was counted");
        assert!(!out.exists());

        let november = i64::from(day_of("2026-11-17").to_epoch_days());
        sqlx::query("INSERT INTO cohort_day (cohort_id, day, targets) VALUES (1, $1, 3)")
            .bind(november)
            .execute(store.writer())
            .await
            .unwrap();
        std::fs::create_dir_all(out.join(".2026-10.1.unfinished")).unwrap();
        let left = std::fs::File::open(out.join(".2026-10.1.unfinished")).unwrap();
        left.set_modified(SystemTime::now() - Duration::from_secs(2 * 86_400)).unwrap();
        let taken = take_last(&store, &router, &out, today).await.unwrap().expect("it is taken");
        assert_eq!(taken, out.join("2026-11"));
        let sums = std::fs::read_to_string(taken.join("SHA256SUMS")).unwrap();
        for line in sums.lines() {
            let (sum, name) = line.split_once("  ").unwrap();
            let bytes = std::fs::read(taken.join(name)).unwrap();
            assert_eq!(hex(&Sha256::digest(&bytes)), sum, "{name}");
        }
        assert!(sums.lines().count() > 10 && sums.contains("schema.json") && sums.contains("days.csv"), "{sums}");
        let names =
            |out: &Path| std::fs::read_dir(out).unwrap().map(|one| one.unwrap().file_name()).collect::<Vec<_>>();
        assert_eq!(names(&out), ["2026-11"], "what a killed process left is gone");
        assert_eq!(take_last(&store, &router, &out, today).await.unwrap(), None, "it is there");
        assert_eq!(take_last(&store, &router, &out, day_of("2027-01-01")).await.unwrap(), None, "nothing in December");
        store.close().await;
    }

    #[tokio::test]
    async fn a_snapshot_that_fails_leaves_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        let deaf = Router::new();
        assert!(take(&deaf, folder.path(), "2026-11").await.is_err());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn the_month_that_ended_last_is_before_the_one_of_the_day() {
        let day = |text: &str| text.parse::<NaiveDate>().unwrap();
        assert_eq!(last_month(day("2026-12-31")), "2026-11");
        assert_eq!(last_month(day("2027-01-01")), "2026-12");
    }
}
