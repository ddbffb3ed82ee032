//! `plumbline backup` and `plumbline restore`: a copy that is known to be good, and the way back.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use plumbline_store::backup::{self, Manifest};

use crate::settings::{Options, Settings};
use crate::wiring;

#[derive(clap::Args)]
#[command(after_help = "Examples:
  plumbline backup /backups/plumbline-$(date +%F).db
  plumbline backup copy.db --database /var/lib/plumbline/plumbline.db

Works while `plumbline serve` runs. The copy is read from end to end (integrity check) and its rows are counted; what it
holds stands beside it in FILE.manifest.json. A file that exists is not written over. For PostgreSQL use pg_dump.")]
pub struct BackupArguments {
    /// The new file.
    file: PathBuf,
}

#[derive(clap::Args)]
#[command(after_help = "Examples:
  plumbline restore /backups/plumbline-2026-11-30.db
  plumbline restore copy.db --check                only check the copy

The copy is checked first: its manifest, every page, its schema. One of a newer schema is refused. The database that is
replaced is kept as NAME.before-restore. Stop `plumbline serve` before. For PostgreSQL use pg_restore.")]
pub struct RestoreArguments {
    /// A file made with `plumbline backup`.
    file: PathBuf,
    /// Only check the copy; change nothing.
    #[arg(long)]
    check: bool,
}

pub fn back_up(options: &Options, arguments: &BackupArguments) -> Result<ExitCode> {
    let settings = Settings::load(options)?;
    wiring::start_log(&settings.log)?;
    let manifest = wiring::runtime()?.block_on(async {
        let store = wiring::open(&settings).await?;
        let made = store.backup(&arguments.file, chrono::Utc::now().timestamp()).await;
        store.close().await;
        made.with_context(|| format!("copy of {}", wiring::shown(&settings.database)))
    })?;
    println!("{}: {}.", arguments.file.display(), told(&manifest));
    Ok(ExitCode::SUCCESS)
}

pub fn restore(options: &Options, arguments: &RestoreArguments) -> Result<ExitCode> {
    let settings = Settings::load(options)?;
    wiring::start_log(&settings.log)?;
    let database = wiring::shown(&settings.database);
    let manifest = wiring::runtime()?.block_on(async {
        if arguments.check {
            return Ok(backup::verify(&arguments.file).await?);
        }
        if std::path::Path::new(&settings.database).exists() {
            must_be_free(&settings).await?;
        }
        backup::restore(&arguments.file, &settings.database).await.with_context(|| format!("database {database}"))
    })?;
    let done = if arguments.check { "is good".to_owned() } else { format!("is {database} now") };
    println!("{} {done}: {}.", arguments.file.display(), told(&manifest));
    Ok(ExitCode::SUCCESS)
}

/// Nobody may work on a database while it is replaced. One that cannot even be opened is replaced all the same.
async fn must_be_free(settings: &Settings) -> Result<()> {
    let Ok(store) = wiring::open(settings).await else { return Ok(()) };
    let (holder, now_s) = (wiring::holder(), chrono::Utc::now().timestamp());
    let free = wiring::occupy(&store, &holder, now_s).await;
    if free.is_ok() {
        store.leave(&holder).await?;
    }
    store.close().await;
    if let Err(error) = free {
        bail!("{error:#}");
    }
    Ok(())
}

fn told(manifest: &Manifest) -> String {
    let rows = |table: &str| manifest.rows.get(table).copied().unwrap_or(0);
    format!(
        "{} bytes, schema {}, {} targets, {} documents, {} findings, {} events",
        manifest.bytes,
        manifest.schema,
        rows("target"),
        rows("document"),
        rows("finding"),
        rows("event")
    )
}
