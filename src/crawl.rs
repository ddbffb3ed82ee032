//! `plumbline crawl`: one round over everything, with progress, then a summary.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use indicatif::{ProgressBar, ProgressStyle};
use plumbline_crawler::progress::Progress;
use plumbline_crawler::round::{Going, RoundEnd};
use plumbline_crawler::walk::{WalkEnd, Wish};
use plumbline_crawler::{Crawler, pass};
use plumbline_store::Store;
use serde::Serialize;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::housekeeping::House;
use crate::sample::Sample;
use crate::settings::{LogSettings, Options, Settings};
use crate::{serve, wiring};

/// How long `--verify` stays, in seconds: the first look out of turn comes after a minute, a fifth earlier or later.
const VERIFY_S: u64 = 90;

/// How often a line of progress is printed where there is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(5);

#[derive(clap::Args)]
#[command(after_help = "Examples:
  plumbline crawl                          what is due, registries by what moved in them
  plumbline crawl --verify                 and stay a minute and a half to look again at what has changed
  plumbline crawl --full                   every registry walked completely
  plumbline crawl --accept-loss official   after a registry really dropped a fifth of its entries
  plumbline crawl --sample                 the sample ecosystem, without a network
  plumbline crawl --format json > run.json the summary for programs

Exit status: 0 when every source was read to its end, 1 when one was not, 2 when something went wrong with Plumbline.")]
pub struct Arguments {
    /// Walk every registry completely, not only what moved since the last pass.
    #[arg(long)]
    full: bool,
    /// Walk this registry completely and believe what is missing from it: after a walk was held back because so much was.
    #[arg(long, value_name = "REGISTRY")]
    accept_loss: Option<String>,
    /// Look again, after a minute, at what has changed since the crawl before: a change is believed when it is seen twice.
    /// Without it the next crawl confirms what this one saw.
    #[arg(long)]
    verify: bool,
    /// Crawl the sample ecosystem that runs inside this process.
    #[arg(long)]
    sample: bool,
    /// How to print the summary.
    #[arg(long, default_value = "text")]
    format: Format,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Format {
    Text,
    Json,
}

/// What one crawl came to.
#[derive(Serialize)]
struct Summary {
    seconds: f64,
    registries: Vec<RegistrySummary>,
    looked_at: u64,
    opened: i64,
    resolved: i64,
    regressed: i64,
    /// Findings that were seen once and are told when they are seen again.
    unconfirmed: i64,
    headlines: Headlines,
}

#[derive(Serialize)]
struct RegistrySummary {
    name: String,
    complete: bool,
    full: bool,
    pages: u64,
    entries: u64,
    problem: Option<String>,
}

/// Targets by their word.
#[derive(Serialize, Default)]
struct Headlines {
    targets: i64,
    blocked: i64,
    deviates: i64,
    sound: i64,
    not_detected: i64,
    not_evaluated: i64,
}

pub fn run(options: &Options, arguments: &Arguments) -> Result<ExitCode> {
    let mut settings = Settings::load(options)?;
    let is_terminal = std::io::stderr().is_terminal();
    if is_terminal && settings.log == LogSettings::default() {
        // The bar tells the same; lines between would tear it.
        "warn".clone_into(&mut settings.log.filter);
    }
    wiring::start_log(&settings.log)?;
    wiring::runtime()?.block_on(async {
        let stop = CancellationToken::new();
        if arguments.sample {
            serve::use_sample(&mut settings, options, &Sample::start(stop.clone()).await?);
        }
        let store = wiring::open(&settings).await?;
        let crawler = wiring::crawler(&settings, store.clone()).await?;
        let interrupted = serve::on_signal(stop.clone());
        let started = Instant::now();
        plumbline_alerts::working::apply(&store, crawler.now_s()).await?;
        let (walks, mut round) = crawl_all(&crawler, arguments, &stop, is_terminal).await?;
        let stay_s = settings.crawl.verify_in_run_s.max(if arguments.verify { VERIFY_S } else { 0 });
        verify(&crawler, &stop, Duration::from_secs(stay_s), &mut round).await?;
        let summary = summary(&store, started.elapsed(), walks, round).await?;
        print(&summary, arguments.format)?;
        House { store: store.clone(), retention: watch::channel(settings.retention.clone()).1, stop: stop.clone() }
            .after_a_crawl()
            .await;
        interrupted.abort();
        store.leave(&crawler.holder).await?;
        store.close().await;
        let is_whole = summary.registries.iter().all(|registry| registry.complete);
        Ok(ExitCode::from(u8::from(!is_whole)))
    })
}

/// Walks every registry while looking at what is due, until both are done.
async fn crawl_all(
    crawler: &Arc<Crawler>,
    arguments: &Arguments,
    stop: &CancellationToken,
    is_terminal: bool,
) -> Result<(Vec<WalkEnd>, RoundEnd)> {
    if crawler.is_paused().await? {
        bail!("everything is paused; go on with `plumbline resume`");
    }
    let walking = Arc::new(AtomicUsize::new(crawler.registries.len()));
    let mut walks = JoinSet::new();
    for (n, wish) in wishes(crawler, arguments)?.into_iter().enumerate() {
        let (crawler, stop, walking) = (crawler.clone(), stop.clone(), walking.clone());
        walks.spawn(async move {
            let end = pass::registry(&crawler, &crawler.registries[n], wish, &stop).await;
            walking.fetch_sub(1, Ordering::Release);
            (n, end)
        });
    }
    let shown = tokio::spawn(show_progress(crawler.clone(), is_terminal));
    let going = |_| if walking.load(Ordering::Acquire) == 0 { Going::UntilDry } else { Going::On };
    let round = pass::round(crawler, stop, going).await;
    let mut ends = Vec::new();
    while let Some(walked) = walks.join_next().await {
        let (n, end) = walked?;
        ends.push((n, end?));
    }
    shown.abort();
    ends.sort_by_key(|(n, _)| *n);
    Ok((ends.into_iter().map(|(_, end)| end).collect(), round?.unwrap_or_default()))
}

/// Looks again at what has changed, for as long as we may stay.
async fn verify(crawler: &Arc<Crawler>, stop: &CancellationToken, stay: Duration, round: &mut RoundEnd) -> Result<()> {
    let until_s = crawler.now_s() + i64::try_from(stay.as_secs()).unwrap_or(i64::MAX / 2);
    while let Some(next_s) = crawler.store.count_unconfirmed().await?.next_look_s.filter(|next_s| *next_s <= until_s) {
        let wait_s = u64::try_from(next_s - crawler.now_s()).unwrap_or(0);
        if wait_s > 0 {
            eprintln!("something has changed: looking again in {wait_s} s");
        }
        tokio::select! {
            () = tokio::time::sleep(Duration::from_secs(wait_s)) => {}
            () = stop.cancelled() => return Ok(()),
        }
        match pass::round(crawler, stop, |_| Going::UntilDry).await? {
            Some(more) => round.add_up(&more),
            // Paused meanwhile, or the budget of the hour is used up.
            None => return Ok(()),
        }
    }
    Ok(())
}

/// How each registry is to be walked.
fn wishes(crawler: &Crawler, arguments: &Arguments) -> Result<Vec<Wish>> {
    let accepts = |name: &str| arguments.accept_loss.as_deref() == Some(name);
    let names: Vec<&str> = crawler.registries.iter().map(|registry| registry.settings.name.as_str()).collect();
    if let Some(name) = arguments.accept_loss.as_deref().filter(|name| !names.contains(name)) {
        bail!("--accept-loss {name}: there is no registry of that name; there are: {}", names.join(", "));
    }
    Ok(names.iter().map(|name| Wish { full: arguments.full, accept_loss: accepts(name) }).collect())
}

async fn show_progress(crawler: Arc<Crawler>, is_terminal: bool) {
    let mut watch = crawler.reporter.watch();
    if is_terminal {
        let bar = ProgressBar::no_length().with_style(bar_style());
        while watch.changed().await.is_ok() {
            let progress = watch.borrow_and_update().clone();
            bar.set_length(progress.planned);
            bar.set_position(progress.looked_at);
            bar.set_message(walks_line(&progress));
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    } else {
        let started = Instant::now();
        loop {
            tokio::time::sleep(LINE_EVERY).await;
            let progress = watch.borrow_and_update().clone();
            let rate = progress.looked_at as f64 / started.elapsed().as_secs_f64();
            eprintln!(
                "{:>5.0} s  looked at {} of {} ({rate:.0}/s){}{}",
                started.elapsed().as_secs_f64(),
                progress.looked_at,
                progress.planned,
                if progress.walks.is_empty() { "" } else { "; " },
                walks_line(&progress)
            );
        }
    }
}

fn bar_style() -> ProgressStyle {
    ProgressStyle::with_template("{bar:30} {pos} of {len} looked at, {per_sec}, {eta} to go; {msg}")
        .unwrap_or_else(|_| ProgressStyle::default_bar())
}

fn walks_line(progress: &Progress) -> String {
    let line = |(name, walk): (&String, &plumbline_crawler::progress::Walk)| {
        let end = if walk.has_ended { "" } else { " …" };
        format!("{name}: {} pages, {} entries{end}", walk.pages, walk.entries)
    };
    progress.walks.iter().map(line).collect::<Vec<_>>().join("; ")
}

async fn summary(store: &Store, took: Duration, walks: Vec<WalkEnd>, round: RoundEnd) -> Result<Summary> {
    let registries = walks
        .into_iter()
        .map(|end| RegistrySummary {
            name: end.registry,
            complete: end.is_complete,
            full: end.is_full,
            pages: end.pages,
            entries: end.entries,
            problem: end.problem,
        })
        .collect();
    Ok(Summary {
        seconds: (took.as_secs_f64() * 10.0).round() / 10.0,
        registries,
        looked_at: round.looked_at,
        opened: round.opened,
        resolved: round.resolved,
        regressed: round.regressed,
        unconfirmed: store.count_unconfirmed().await?.pending,
        headlines: headlines(store).await?,
    })
}

fn print(summary: &Summary, format: Format) -> Result<()> {
    let mut out = std::io::stdout().lock();
    if let Format::Json = format {
        serde_json::to_writer_pretty(&mut out, summary)?;
        writeln!(out)?;
        return Ok(());
    }
    for registry in &summary.registries {
        let kind = if registry.full { "walked whole" } else { "what moved" };
        let end = registry.problem.as_ref().map_or(String::new(), |why| format!("; incomplete: {why}"));
        let RegistrySummary { name, pages, entries, .. } = registry;
        writeln!(out, "Registry {name:24} {entries:>7} entries on {pages} pages, {kind}{end}")?;
    }
    let h = &summary.headlines;
    writeln!(out, "Looked at {:>30} surfaces in {} s", summary.looked_at, summary.seconds)?;
    writeln!(
        out,
        "Findings  {:>30} opened, {} resolved, {} regressed",
        summary.opened, summary.resolved, summary.regressed
    )?;
    if summary.unconfirmed > 0 {
        writeln!(
            out,
            "          {:>30} seen once and not told yet: the next crawl confirms them, or this one with --verify",
            summary.unconfirmed
        )?;
    }
    writeln!(out)?;
    let rows = [
        ("Blocked", h.blocked),
        ("Deviates", h.deviates),
        ("Sound", h.sound),
        ("Not detected", h.not_detected),
        ("Not evaluated", h.not_evaluated),
    ];
    for (word, n) in rows {
        writeln!(out, "{word:14} {n:>7}")?;
    }
    writeln!(out, "{:14} {:>7}", "Targets", h.targets)?;
    Ok(())
}

/// The newest day of the cohort of all targets.
async fn headlines(store: &Store) -> Result<Headlines> {
    let days = store.cohort_days(0).await?;
    let Some(today) = days.last() else { return Ok(Headlines::default()) };
    Ok(Headlines {
        targets: today.targets,
        blocked: today.blocked,
        deviates: today.deviates,
        sound: today.sound,
        not_detected: today.not_detected,
        not_evaluated: today.not_evaluated,
    })
}
