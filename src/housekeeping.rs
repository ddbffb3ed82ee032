//! Keeping house while the crawler works: the log of the database each minute, what is old each night.
//!
//! Every step is one short transaction, and between two steps whoever records goes first.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use plumbline_store::Store;
use plumbline_store::doctor::{Checked, Hand};
use plumbline_store::housekeeping::{Job, LONGEST_WAL, Retention};
use plumbline_store::recount::Recount;
use rand::Rng;
use tokio::sync::{Mutex, watch};
use tokio_cron_scheduler::{Job as Cron, JobScheduler};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::settings::{Options, Settings};
use crate::wiring;

/// When the write-ahead log is copied and the disk looked at.
const MINUTE_CRON: &str = "30 * * * * *";

/// When cohorts are counted: a little before each hour, so that the last count of a day sees nearly all of it.
const HOUR_CRON: &str = "0 57 * * * *";

/// When what is old is let go: at night, and not at a full hour, when everybody does something.
const NIGHT_CRON: &str = "0 17 3 * * *";

/// The pause between two steps.
const BREATH: Duration = Duration::from_millis(20);

/// What keeping house needs.
#[derive(Clone)]
pub struct House {
    pub store: Store,
    /// As the settings are now.
    pub retention: watch::Receiver<Retention>,
    pub stop: CancellationToken,
}

impl House {
    /// Plans the jobs, and measures the tables at once where today has no measurement yet.
    pub async fn plan(self, scheduler: &JobScheduler, tasks: &TaskTracker) -> Result<()> {
        let (minutely, hourly, nightly) = (self.clone(), self.clone(), self.clone());
        scheduler.add(alone(MINUTE_CRON, tasks, move || minutely.clone().each_minute())?).await?;
        scheduler.add(alone(HOUR_CRON, tasks, move || hourly.clone().count())?).await?;
        scheduler.add(alone(NIGHT_CRON, tasks, move || nightly.clone().each_night())?).await?;
        tasks.spawn(async move {
            self.watch_disk().await;
            self.measure().await;
            self.clone().count().await;
        });
        Ok(())
    }

    /// What the end of a crawl leaves room for.
    pub async fn after_a_crawl(&self) {
        self.watch_disk().await;
        self.clone().count().await;
        self.sweep().await;
        self.measure().await;
        self.checkpoint().await;
    }

    async fn each_minute(self) {
        self.watch_disk().await;
        self.checkpoint().await;
    }

    async fn each_night(self) {
        self.sweep().await;
        if let Err(error) = self.store.forget_answers(now_s()).await {
            tracing::warn!("answers kept for keys were not let go: {error}");
        }
        self.give_back().await;
        self.measure().await;
        let place = rand::rng().random_range(0.0..1.0);
        recount_one(&self.store, place, now_s()).await;
        if let Err(error) = self.store.optimize().await {
            tracing::warn!("the database could not be optimised: {error}");
        }
    }

    /// Counts every cohort; a database that is a demonstration was counted up to its end.
    async fn count(self) {
        let counted = match self.store.demonstration().await {
            Ok(Some(_)) => return,
            Ok(None) => self.store.count_cohorts(now_s()).await,
            Err(error) => Err(error),
        };
        match counted {
            Ok(counted) if counted.jumps > 0 => {
                tracing::info!(jumps = counted.jumps, "the share of {} failures jumped yesterday", counted.jumps);
            }
            Ok(_) => {}
            Err(error) => tracing::warn!("the cohorts were not counted: {error}"),
        }
    }

    async fn watch_disk(&self) {
        let Some(space) = self.store.disk() else { return };
        if let Err(error) = self.store.note_disk(&space, now_s()).await {
            tracing::warn!("the state of the disk could not be noted: {error}");
        }
    }

    async fn checkpoint(&self) {
        match self.store.checkpoint(LONGEST_WAL).await {
            Ok(Some(done)) if done.was_emptied => {
                tracing::info!(wal_bytes = done.wal_bytes, "the log of the database had grown long and was emptied");
            }
            Ok(_) => {}
            Err(error) => tracing::warn!("the log of the database was not copied: {error}"),
        }
    }

    /// Lets go of what is old, one kind after the other.
    async fn sweep(&self) {
        for job in Job::ALL {
            match self.sweep_one(*job).await {
                Ok(0) => {}
                Ok(rows) => tracing::info!(rows, "{rows} old {job} were let go"),
                Err(error) => tracing::warn!("old {job} were not let go: {error}"),
            }
        }
    }

    async fn sweep_one(&self, job: Job) -> Result<u64, plumbline_store::Error> {
        let retention = self.retention.borrow().clone();
        let mut sweep = self.store.begin_sweep(job, &retention, now_s()).await?;
        while self.store.sweep_step(&mut sweep).await? && !self.stop.is_cancelled() {
            tokio::time::sleep(BREATH).await;
        }
        Ok(sweep.rows())
    }

    /// Gives pages that hold nothing back to the system.
    async fn give_back(&self) {
        loop {
            match self.store.vacuum_step().await {
                Ok(0) => return,
                Ok(_) if self.stop.is_cancelled() => return,
                Ok(_) => tokio::time::sleep(BREATH).await,
                Err(error) => return tracing::warn!("free pages were not given back: {error}"),
            }
        }
    }

    /// Measures the tables, once a day.
    async fn measure(&self) {
        let today = now_s() / 86_400;
        let measured = match self.store.measured_day().await {
            Ok(Some(day)) if day >= today => return,
            Ok(_) => self.store.measure(now_s()).await,
            Err(error) => Err(error),
        };
        if let Err(error) = measured {
            tracing::warn!("the sizes of the tables were not measured: {error}");
        }
    }
}

/// Counts one day of the trends again, the one at that place among all that can be (0 the oldest, 1 beyond the newest), and
/// tells where it differs from what was published. It mends nothing: that `plumbline doctor --rebuild` does, with a note.
pub async fn recount_one(store: &Store, place: f64, now_s: i64) {
    match recounted(store, place, now_s).await {
        Ok(None) => {}
        Ok(Some((day, checked))) if checked.wrong == 0 => {
            tracing::info!(
                day,
                numbers = checked.looked_at,
                "a day of the trends was counted again and is as published"
            );
        }
        Ok(Some((day, checked))) => tracing::error!(
            day,
            wrong = checked.wrong,
            "{} numbers of day {day} differ when they are counted again: {}; `plumbline doctor --rebuild` mends them",
            checked.wrong,
            checked.examples.join("; ")
        ),
        Err(error) => tracing::warn!("no day of the trends could be counted again: {error}"),
    }
}

async fn recounted(store: &Store, place: f64, now_s: i64) -> Result<Option<(i64, Checked)>, plumbline_store::Error> {
    let days = store.recountable_days().await?;
    let Some(day) = days.get((days.len() as f64 * place) as usize).copied() else { return Ok(None) };
    let checked = store.recount_day(day, Hand::Look, now_s).await?;
    store.note_recount(Recount { day, at_s: now_s, wrong: checked.wrong }).await?;
    Ok(Some((day, checked)))
}

#[derive(clap::Args)]
#[command(after_help = "Examples:
  plumbline housekeeping --dry-run     how much would go now, kind by kind
  plumbline housekeeping               let go of it now; `plumbline serve` does this each night

What is let go and what never is stands under [retention] in `plumbline config`.")]
pub struct Arguments {
    /// Only tell how much would go.
    #[arg(long)]
    dry_run: bool,
}

/// `plumbline housekeeping`
pub fn run(options: &Options, arguments: &Arguments) -> Result<ExitCode> {
    let settings = Settings::load(options)?;
    wiring::start_log(&settings.log)?;
    wiring::runtime()?.block_on(async {
        let store = wiring::open(&settings).await?;
        let kept = keep_house(&store, &settings.retention, arguments.dry_run).await;
        store.close().await;
        kept
    })?;
    Ok(ExitCode::SUCCESS)
}

async fn keep_house(store: &Store, retention: &Retention, is_dry: bool) -> Result<()> {
    for job in Job::ALL {
        let rows = if is_dry {
            store.sweepable(*job, retention, now_s()).await?
        } else {
            let mut sweep = store.begin_sweep(*job, retention, now_s()).await?;
            let mut told = std::time::Instant::now();
            while store.sweep_step(&mut sweep).await? {
                if told.elapsed() > PROGRESS_EVERY {
                    told = std::time::Instant::now();
                    eprintln!("{job}: {} so far", sweep.rows());
                }
            }
            sweep.rows()
        };
        println!("{job:22} {rows:>9} {}", if is_dry { "would go" } else { "gone" });
    }
    if is_dry {
        return Ok(());
    }
    while store.vacuum_step().await? > 0 {}
    store.optimize().await?;
    Ok(store.measure(now_s()).await?)
}

/// How often a long job tells how far it is.
const PROGRESS_EVERY: Duration = Duration::from_secs(5);

/// A job that is not begun again while it is still at work.
fn alone<F>(cron: &str, tasks: &TaskTracker, work: impl Fn() -> F + Send + Sync + Clone + 'static) -> Result<Cron>
where
    F: Future<Output = ()> + Send + 'static,
{
    let (busy, tasks) = (Arc::new(Mutex::new(())), tasks.clone());
    Ok(Cron::new_async(cron, move |_, _| {
        let (busy, tasks, work) = (busy.clone(), tasks.clone(), work.clone());
        Box::pin(async move {
            let Ok(busy) = busy.try_lock_owned() else { return };
            tasks.spawn(async move {
                work().await;
                drop(busy);
            });
        })
    })?)
}

fn now_s() -> i64 {
    chrono::Utc::now().timestamp()
}

#[cfg(test)]
mod tests {
    use plumbline_store::targets::NewTarget;
    use plumbline_store::words::{Role, SourceKind, SurfaceKind, TargetKind};

    use super::*;

    #[tokio::test]
    async fn a_day_taken_by_chance_is_counted_again_and_what_came_of_it_is_remembered() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path().join("a.db").to_str().unwrap()).await.unwrap();
        assert!(recounted(&store, 0.5, 9).await.unwrap().is_none(), "there is no day yet");
        let source = store.ensure_source(SourceKind::Domains, "domains", None, 0).await.unwrap();
        for (day, host) in [(3, "a.example"), (5, "b.example")] {
            let target = NewTarget {
                kind: TargetKind::A2aAgent,
                key: host.to_owned(),
                name: None,
                url: format!("https://{host}/.well-known/agent-card.json"),
                surface: SurfaceKind::AgentCard,
                role: Role::Main,
                host: None,
                owner: None,
                tags: Vec::new(),
                is_own: false,
                interval_s: None,
            };
            store.add_targets(source, &[target], day * 86_400).await.unwrap();
        }
        for (place, expected) in [(0.0, 3), (0.499, 3), (0.5, 5), (0.999, 5)] {
            let (day, checked) = recounted(&store, place, 777).await.unwrap().unwrap();
            assert_eq!((day, checked.wrong, checked.mended), (expected, 0, 0), "{checked:?}");
            assert_eq!(store.last_recount().await.unwrap(), Some(Recount { day, at_s: 777, wrong: 0 }));
        }
    }
}
