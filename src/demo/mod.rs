//! `plumbline demo`: a database with the history of a synthetic ecosystem, so that every page can be seen in a minute.
//!
//! Nobody is called: who there is, what they serve and when it breaks is made up from a seed ([`world`], [`documents`]),
//! looked at and judged by the real rules ([`looks`]), and recorded through the doors of the store that the crawler uses
//! ([`fill`]). Stretches in which nothing moves are written packed. The same seed and end give the same history.

mod dice;
mod documents;
mod fill;
mod looks;
mod world;

use std::io::IsTerminal;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use indicatif::{ProgressBar, ProgressStyle};
use plumbline_store::Store;

use crate::settings::{LogSettings, Options, Settings};
use crate::wiring;
use fill::{Filling, Progress};
use world::{DAY_S, Extent, World};

/// The database of `plumbline demo`, so that made-up targets never mix with real ones.
const DEMO_DATABASE: &str = "plumbline-demo.db";

/// How often a line of progress is printed where there is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(5);

#[derive(clap::Args)]
#[command(after_help = "Examples:
  plumbline demo                                        300 targets, 90 days, in plumbline-demo.db
  plumbline serve --database plumbline-demo.db          look at it: nothing is crawled
  plumbline demo --targets 20000 --days 365 --database big.db
  plumbline demo --seed 7 --until 2026-12-01            another ecosystem, and the same whenever it is made

Every host ends in .demo, which is no domain of the real network: nobody is named and nobody is called.
The same seed, targets, days and end give the same history.")]
pub struct Arguments {
    /// How many targets there are in the end.
    #[arg(long, default_value_t = 300, value_name = "N")]
    targets: usize,
    /// How many days they have been watched.
    #[arg(long, default_value_t = 90, value_name = "D")]
    days: u32,
    /// What everything is made up from.
    #[arg(long, default_value_t = 1, value_name = "S")]
    seed: u64,
    /// The day (or moment, RFC 3339) at which the history ends [default: now].
    #[arg(long, value_name = "WHEN", value_parser = moment)]
    until: Option<i64>,
    /// Fill a database that holds something already; what it holds stays, and is a demonstration from then on.
    #[arg(long)]
    into_full: bool,
}

/// Unix seconds of a day or a moment.
fn moment(text: &str) -> Result<i64, String> {
    let day = text.parse::<chrono::NaiveDate>().ok().and_then(|day| day.and_hms_opt(0, 0, 0));
    let moment = chrono::DateTime::parse_from_rfc3339(text).map(|moment| moment.timestamp());
    day.map(|day| day.and_utc().timestamp()).map_or(moment, Ok).map_err(|_| "no day and no moment".to_owned())
}

pub fn run(options: &Options, arguments: &Arguments) -> Result<ExitCode> {
    let mut settings = Settings::load(options)?;
    if settings.log == LogSettings::default() {
        "warn".clone_into(&mut settings.log.filter);
    }
    if options.database.is_none() && settings.database == Settings::default().database {
        DEMO_DATABASE.clone_into(&mut settings.database);
    }
    wiring::start_log(&settings.log)?;
    if arguments.targets == 0 || arguments.days == 0 {
        bail!("there is nothing to show without targets and days");
    }
    let end_s = arguments.until.unwrap_or_else(|| chrono::Utc::now().timestamp() / 60 * 60);
    let extent = Extent {
        targets: arguments.targets,
        seed: arguments.seed,
        start_s: ((end_s - 1) / DAY_S - i64::from(arguments.days) + 1) * DAY_S + 6 * 3600,
        end_s,
    };
    wiring::runtime()?.block_on(async {
        let store = wiring::open(&settings).await?;
        let filled = fill(&store, &settings, extent, arguments.into_full).await;
        store.close().await;
        filled
    })
}

async fn fill(store: &Store, settings: &Settings, extent: Extent, into_full: bool) -> Result<ExitCode> {
    let shown = wiring::shown(&settings.database);
    if !into_full && store.is_unfinished_demonstration().await? {
        bail!("{shown} holds a demonstration that was broken off: delete the file, or name another with --database");
    }
    if !into_full && !store.holds_nothing().await? {
        bail!("{shown} holds something already: name another file with --database, or say --into-full");
    }
    let began = Instant::now();
    let made_of = format!(
        "{} synthetic targets over {} days, seed {}",
        extent.targets,
        (extent.end_s - extent.start_s + 6 * 3600 - 1) / DAY_S + 1,
        extent.seed
    );
    store.is_demonstration(&made_of).await?;
    store.pause_all(true, extent.end_s).await?;
    if !into_full {
        store.write_fast().await?;
    }
    let filling = Filling::begin(store, World::new(extent), settings).await?;
    let progress = filling.run(shown_progress(began)).await?;
    store.ends_demonstration(&made_of).await?;
    eprintln!(
        "{shown}: {made_of}; {}; {:.1} s. Look at it with `plumbline serve --database {shown}`.",
        fill::rate(&progress, began),
        began.elapsed().as_secs_f64()
    );
    Ok(ExitCode::SUCCESS)
}

/// Shows how far it has come: a bar on a terminal, a line now and then elsewhere.
fn shown_progress(began: Instant) -> impl FnMut(Progress) {
    let style = ProgressStyle::with_template("{bar:30} day {pos} of {len}, {eta} to go; {msg}");
    let bar = std::io::stderr()
        .is_terminal()
        .then(|| ProgressBar::no_length().with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar())));
    let mut last = began;
    move |progress| {
        let rate = fill::rate(&progress, began);
        match &bar {
            Some(bar) => {
                bar.set_length(progress.of.unsigned_abs());
                bar.set_position(progress.days.unsigned_abs());
                bar.set_message(rate);
            }
            None if last.elapsed() >= LINE_EVERY => {
                last = Instant::now();
                let seconds = began.elapsed().as_secs_f64();
                let left = seconds / progress.days.max(1) as f64 * (progress.of - progress.days) as f64;
                eprintln!(
                    "{seconds:>5.0} s  day {} of {}, about {left:.0} s to go; {rate}",
                    progress.days, progress.of
                );
            }
            None => {}
        }
    }
}
