//! `plumbline serve`: scheduler, crawler and dashboard in one process.
//!
//! Shutdown: a signal cancels the token; walks stop after their page with the cursor stored, rounds let what is in flight
//! finish for `crawl.drain_s` and give the rest back, the web server answers what it has begun.

use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use axum::Router;
use plumbline_alerts::Weight;
use plumbline_alerts::desk::Desk;
use plumbline_crawler::progress::Progress;
use plumbline_crawler::round::{Going, RoundEnd};
use plumbline_crawler::walk::Wish;
use plumbline_crawler::{CrawlError, Crawler, pass, schedule};
use plumbline_store::{SourceId, Store};
use plumbline_web::{CrawlStatus, RunningPass, SiteSettings, Unreached, WebState};
use tokio::net::TcpListener;
use tokio::sync::{Mutex, watch};
use tokio::task::JoinHandle;
use tokio_cron_scheduler::{Job, JobScheduler};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::housekeeping::House;
use crate::ping::Pinger;
use crate::reload::{Now, Origin, Present, Reload, Walks};
use crate::sample::Sample;
use crate::settings::{Options, Settings};
use crate::telling::{self, Telling};
use crate::wiring;

/// The database of `--sample`, so that made-up targets never mix with real ones.
const SAMPLE_DATABASE: &str = "plumbline-sample.db";

/// How often events are read for the log.
const NEWS_EVERY: Duration = Duration::from_secs(2);

/// When due surfaces are looked for.
const ROUND_CRON: &str = "*/5 * * * * *";

/// When is looked whether the snapshot of last month is there: each hour, so that a restart in the night loses no month.
const SNAPSHOT_CRON: &str = "0 15 * * * *";

/// When registries are looked at whose pass is due.
const REGISTRY_CRON: &str = "*/10 * * * * *";

#[derive(Clone, Copy, clap::Args)]
#[command(after_help = "Examples:
  plumbline serve                                      crawl and show, on http://127.0.0.1:8080
  plumbline serve --sample                             the sample ecosystem, without a network
  plumbline serve --listen 0.0.0.0:80 --database postgres://plumbline@db/plumbline
  plumbline serve --config fleet.toml --set crawl.workers=8")]
pub struct Arguments {
    /// Address and port of the dashboard [default: 127.0.0.1:8080].
    #[arg(long, value_name = "ADDR")]
    listen: Option<SocketAddr>,
    /// Watch the sample ecosystem that runs inside this process.
    #[arg(long)]
    sample: bool,
}

pub fn run(options: &Options, arguments: Arguments) -> Result<ExitCode> {
    let origin = Origin { options: options.clone(), listen: arguments.listen, sample: None };
    let settings = origin.read()?;
    wiring::start_log(&settings.log)?;
    wiring::runtime()?.block_on(serve(origin, settings.listen()?, arguments.sample))
}

async fn serve(mut origin: Origin, address: SocketAddr, is_sample: bool) -> Result<ExitCode> {
    let listener = listen(address).await?;
    let address = listener.local_addr()?;
    let stop = CancellationToken::new();
    if is_sample {
        origin.sample = Some(Sample::start(stop.clone()).await?);
    }
    let settings = origin.read()?;
    let store = wiring::open(&settings).await?;
    let crawler = wiring::crawler(&settings, store.clone()).await?;
    on_signal(stop.clone());

    let holder = crawler.holder.clone();
    let (site, sites) = watch::channel(Arc::new(site(&settings, &crawler, is_sample)));
    let (retention, retentions) = watch::channel(settings.retention.clone());
    let (now, present) = watch::channel(Arc::new(Now { settings, crawler }));
    let (status, watched) = watch::channel(CrawlStatus::default());
    let (tasks, walks) = (TaskTracker::new(), Walks::default());
    tasks.spawn(follow(present.clone(), status, stop.clone()));
    tasks.spawn(tell(store.clone(), stop.clone()));
    tasks.spawn(hold(present.clone(), stop.clone()));
    let desk = tell_others(&present, &store, &tasks, &stop).await?;
    let scheduler = schedule(&present, &walks, &tasks, &stop).await?;
    House { store: store.clone(), retention: retentions, stop: stop.clone() }.plan(&scheduler, &tasks).await?;
    tasks.spawn(Reload { origin, now, site, retention, walks }.at_every_hangup(stop.clone()));
    let state = WebState {
        store: store.clone(),
        settings: sites,
        status: watched,
        checker: crate::checker::checker(present.clone()),
        desk,
        now: plumbline_web::system_now,
        started_at: plumbline_web::system_now(),
        numbers: crate::numbers::since_start,
    };
    tracing::info!("the dashboard is on http://{address}");
    let router = plumbline_web::router(state);
    let snapshots =
        Snapshots { present: present.clone(), store: store.clone(), router: router.clone(), busy: Arc::default() };
    let beside = tasks.clone();
    scheduler.add(job(SNAPSHOT_CRON, move || drop(beside.spawn(snapshots.clone().take())))?).await?;
    let served = axum::serve(listener, router.into_make_service_with_connect_info::<SocketAddr>())
        .with_graceful_shutdown(stop.clone().cancelled_owned());
    let web = tokio::spawn(served.into_future());

    stop.cancelled().await;
    let drain_s = present.borrow().settings.crawl.drain_s;
    tracing::info!("stopping: what is in flight may finish for {drain_s} s");
    wind_down(scheduler, tasks, web, Duration::from_secs(drain_s)).await;
    store.leave(&holder).await?;
    store.close().await;
    Ok(ExitCode::SUCCESS)
}

/// Starts telling, where it is wished, and gives the desk at which people subscribe.
async fn tell_others(present: &Present, store: &Store, tasks: &TaskTracker, stop: &CancellationToken) -> Result<Desk> {
    let settings = present.borrow().settings.clone();
    let telling = Telling::new(&settings, store.clone()).await?;
    let desk = telling.desk(&settings)?;
    if settings.alerts.enabled {
        telling::apply(&settings, store, plumbline_web::system_now()).await?;
        tasks.spawn(telling.run(present.borrow().crawler.holder.clone(), stop.clone()));
    } else {
        // Whoever tells brings planned work to surfaces; where nobody does it is done all the same.
        tasks.spawn(plan_work(store.clone(), stop.clone()));
    }
    Ok(desk)
}

/// Brings planned work to surfaces every minute.
async fn plan_work(store: Store, stop: CancellationToken) {
    while !stop.is_cancelled() {
        if let Err(error) = plumbline_alerts::working::apply(&store, plumbline_web::system_now()).await {
            tracing::warn!("planned work is brought to surfaces later: {error}");
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(Duration::from_secs(60)) => {}
        }
    }
}

/// Ends scheduler, passes and web server, in that order, within a little more than the time for what is in flight.
async fn wind_down(
    mut scheduler: JobScheduler,
    tasks: TaskTracker,
    web: JoinHandle<std::io::Result<()>>,
    patience: Duration,
) {
    if let Err(error) = scheduler.shutdown().await {
        tracing::warn!("the scheduler did not stop: {error}");
    }
    tasks.close();
    if tokio::time::timeout(patience + Duration::from_secs(2), tasks.wait()).await.is_err() {
        tracing::warn!("a pass did not stop in time; its leases run out by themselves");
    }
    if tokio::time::timeout(Duration::from_secs(2), web).await.is_err() {
        tracing::info!("connections that were still open are cut");
    }
}

async fn listen(address: SocketAddr) -> Result<TcpListener> {
    match TcpListener::bind(address).await {
        Ok(listener) => Ok(listener),
        Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => bail!(
            "{address} is in use: another Plumbline may be running; choose another port with --listen {}:{}",
            address.ip(),
            address.port().wrapping_add(1)
        ),
        Err(error) => Err(error).with_context(|| format!("cannot listen on {address}")),
    }
}

/// Points the settings at the sample, in a database of its own unless one was named.
pub fn use_sample(settings: &mut Settings, options: &Options, sample: &Sample) {
    sample.apply(settings);
    if options.database.is_none() && settings.database == Settings::default().database {
        SAMPLE_DATABASE.clone_into(&mut settings.database);
    }
}

/// Cancels the token at the first SIGTERM or Ctrl-C; ends the process at the second.
pub fn on_signal(stop: CancellationToken) -> JoinHandle<()> {
    tokio::spawn(async move {
        signal().await;
        stop.cancel();
        signal().await;
        tracing::warn!("told to stop twice: ending at once");
        std::process::exit(130);
    })
}

async fn signal() {
    let mut terminate = match tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
        Ok(terminate) => terminate,
        Err(error) => {
            tracing::warn!("SIGTERM is not heard: {error}");
            let _ = tokio::signal::ctrl_c().await;
            return;
        }
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminate.recv() => {}
    }
}

/// How long one round of the service lasts at most, and how long it waits when it has nothing to do: a row of its history
/// for each moment that something is due would be too many to read.
const ROUND_LASTS: Duration = Duration::from_secs(15 * 60);
const ROUND_WAITS: Duration = Duration::from_secs(30);

/// A round as long as there is work, up to its time, or until the settings change.
async fn round_of_a_while(present: &Present, stop: &CancellationToken) -> Result<Option<RoundEnd>, CrawlError> {
    let crawler = present.borrow().crawler.clone();
    if pass::is_nothing_to_do(&crawler).await? {
        return Ok(None);
    }
    let began = Instant::now();
    let going = |idle| match () {
        () if began.elapsed() > ROUND_LASTS => Going::Closing,
        () if !Arc::ptr_eq(&present.borrow().crawler, &crawler) => Going::Closing,
        () if idle > ROUND_WAITS => Going::UntilDry,
        () => Going::On,
    };
    pass::round(&crawler, stop, going).await
}

/// Plans the passes. A pass that is still at work when its turn comes again is not begun twice.
async fn schedule(
    present: &Present,
    walks: &Walks,
    tasks: &TaskTracker,
    stop: &CancellationToken,
) -> Result<JobScheduler> {
    let scheduler = JobScheduler::new().await?;
    let turn = Turn {
        present: present.clone(),
        tasks: tasks.clone(),
        stop: stop.clone(),
        busy: Arc::default(),
        walks: walks.clone(),
        pinger: Arc::default(),
    };
    let (round, walk) = (turn.clone(), turn);
    scheduler.add(job(ROUND_CRON, move || round.clone().look_around())?).await?;
    scheduler.add(job(REGISTRY_CRON, move || walk.walk_all())?).await?;
    scheduler.start().await?;
    Ok(scheduler)
}

/// Takes the month that ended last.
#[derive(Clone)]
struct Snapshots {
    present: Present,
    store: Store,
    router: Router,
    busy: Arc<Mutex<()>>,
}

impl Snapshots {
    /// Where there is a folder, it is wished, and the month is not there yet.
    async fn take(self) {
        let Ok(_busy) = self.busy.try_lock() else { return };
        let web = self.present.borrow().settings.web.clone();
        if web.snapshots.is_empty() || !web.take_snapshots {
            return;
        }
        let today = chrono::Utc::now().date_naive();
        match crate::snapshot::take_last(&self.store, &self.router, Path::new(&web.snapshots), today).await {
            Ok(None) => {}
            Ok(Some(folder)) => tracing::info!("the snapshot {} was taken", folder.display()),
            Err(error) => tracing::error!("the snapshot of last month was not taken: {error:#}"),
        }
    }
}

fn job(cron: &str, turn: impl Fn() + Send + Sync + Clone + 'static) -> Result<Job> {
    Ok(Job::new_async(cron, move |_, _| {
        let turn = turn.clone();
        Box::pin(async move { turn() })
    })?)
}

/// The passes: one round at a time, and each registry by itself.
#[derive(Clone)]
struct Turn {
    present: Present,
    tasks: TaskTracker,
    stop: CancellationToken,
    busy: Arc<Mutex<()>>,
    walks: Walks,
    pinger: Arc<Pinger>,
}

impl Turn {
    fn look_around(self) {
        let Ok(busy) = self.busy.clone().try_lock_owned() else { return };
        self.tasks.clone().spawn(async move {
            match round_of_a_while(&self.present, &self.stop).await {
                Ok(Some(end)) => {
                    tracing::info!(
                        "looked at {}: {} findings opened, {} resolved, {} regressed",
                        end.looked_at,
                        end.opened,
                        end.resolved,
                        end.regressed
                    );
                    if end.given_back == 0 && end.faults == 0 {
                        self.ping().await;
                    }
                }
                Ok(None) => {}
                Err(error) => tracing::error!("the round failed: {error:#}"),
            }
            drop(busy);
        });
    }

    /// Walks every registry whose pass is due and that is not being walked.
    fn walk_all(&self) {
        for registry in &self.present.borrow().crawler.registries {
            let Some(walk) = self.walks.begin(registry.id, &self.stop) else { continue };
            let (turn, source) = (self.clone(), registry.id);
            self.tasks.spawn(async move { turn.walk(source, &walk.stop).await });
        }
    }

    async fn walk(&self, source: SourceId, stop: &CancellationToken) {
        let crawler = self.present.borrow().crawler.clone();
        let Some(registry) = crawler.registries.iter().find(|registry| registry.id == source) else { return };
        let is_due = match crawler.store.source(registry.id).await {
            Ok(source) => {
                let usual_s = crawler.settings.registry_interval_s;
                let interval_s = registry.settings.interval_s.unwrap_or(usual_s);
                schedule::is_due(source.next_pass_s, crawler.now_s(), interval_s)
            }
            Err(error) => {
                tracing::error!("registry {}: {error}", registry.settings.name);
                false
            }
        };
        let is_paused = crawler.is_paused().await.unwrap_or(false);
        if is_due && !is_paused && !stop.is_cancelled() {
            let walked = pass::registry(&crawler, registry, Wish::default(), stop).await;
            let is_good = walked.as_ref().is_ok_and(|end| end.problem.is_none());
            report_walk(&registry.settings.name, walked);
            if is_good {
                self.ping().await;
            }
        }
    }

    /// Tells whoever watches us that a pass was good.
    async fn ping(&self) {
        let now = self.present.borrow().clone();
        self.pinger.good_pass(&now.crawler.client, &now.settings.watch.ping_url).await;
    }
}

fn report_walk(name: &str, walked: Result<plumbline_crawler::walk::WalkEnd, plumbline_crawler::CrawlError>) {
    match walked {
        Ok(end) => match &end.problem {
            None => tracing::info!("registry {name}: {} entries on {} pages", end.entries, end.pages),
            Some(why) => tracing::warn!("registry {name}: incomplete after {} pages: {why}", end.pages),
        },
        Err(error) => tracing::error!("registry {name}: {error:#}"),
    }
}

/// Tells in the log what a person on call would want to know, from the events of this run on.
async fn tell(store: Store, stop: CancellationToken) {
    let mut told = match store.newest_event().await {
        Ok(newest) => newest,
        Err(error) => return tracing::error!("events cannot be read: {error}"),
    };
    while !stop.is_cancelled() {
        match plumbline_alerts::news(&store, told).await {
            Ok((messages, last)) => {
                told = last;
                for message in messages {
                    match message.weight {
                        Weight::Look => tracing::warn!(event.id = message.event.0, "{}", message.text),
                        Weight::Notice => tracing::info!(event.id = message.event.0, "{}", message.text),
                    }
                }
            }
            Err(error) => tracing::error!("events cannot be read: {error}"),
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(NEWS_EVERY) => {}
        }
    }
}

/// How often the hold on the database is renewed and the clock is looked at.
const HOLD_EVERY: Duration = Duration::from_secs(5);

/// A step back of the clock that is none of its small corrections, in seconds.
const SET_BACK_S: i64 = 60;

/// Keeps the database for this process, and notices when the clock is set.
async fn hold(present: Present, stop: CancellationToken) {
    while !stop.is_cancelled() {
        let now = present.borrow().clone();
        let (crawler, spread_s) = (&now.crawler, wiring::spread_s(&now.settings));
        let now_s = crawler.now_s();
        if let Err(error) = wiring::occupy(&crawler.store, &crawler.holder, now_s).await {
            match error.downcast_ref() {
                // Locked for a moment: the hold lasts longer than that.
                Some(store_error) if plumbline_store::Error::may_pass(store_error) => {
                    tracing::warn!("the hold on the database is renewed later: {error:#}");
                }
                _ => tracing::error!("the database is not held: {error:#}"),
            }
        }
        if let Some(behind_s) = crawler.clock.was_set_back(SET_BACK_S) {
            tracing::warn!("the clock was set back by {behind_s} s");
            match crawler.store.rein_in(now_s, behind_s, spread_s).await {
                Ok(0) => {}
                Ok(plans) => tracing::warn!("{plans} plans lay in a future that the old clock made up; brought back"),
                Err(error) => tracing::error!("plans could not be brought back: {error}"),
            }
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(HOLD_EVERY) => {}
        }
    }
}

/// Keeps what the pages say about the crawler up to date.
async fn follow(present: Present, status: watch::Sender<CrawlStatus>, stop: CancellationToken) {
    let mut progress = present.borrow().crawler.reporter.watch();
    let mut started_at = None;
    loop {
        let crawler = present.borrow().crawler.clone();
        let now = progress.borrow_and_update().clone();
        let is_running = now.is_round_running || now.walks.values().any(|walk| !walk.has_ended);
        started_at = is_running.then(|| started_at.unwrap_or_else(|| crawler.now_s()));
        let next_pass_at = crawler.store.next_due().await.ok().flatten();
        let has_budget = crawler.settings.looks_per_hour > 0;
        let budget_left = has_budget.then(|| i64::try_from(crawler.budget.left(crawler.now_s())).unwrap_or(i64::MAX));
        status.send_replace(CrawlStatus { budget_left, ..status_of(&now, started_at, next_pass_at) });
        tokio::select! {
            () = stop.cancelled() => return,
            changed = progress.changed() => if changed.is_err() { return },
            () = tokio::time::sleep(Duration::from_secs(10)) => {}
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

fn status_of(progress: &Progress, started_at: Option<i64>, next_pass_at: Option<i64>) -> CrawlStatus {
    let walking: Vec<_> =
        progress.walks.iter().filter(|(_, walk)| !walk.has_ended).map(|(name, _)| name.as_str()).collect();
    let activity = if walking.is_empty() {
        "looking at what is due".to_owned()
    } else {
        format!("walking the registry {}", walking.join(", "))
    };
    let running = started_at.map(|started_at| RunningPass {
        started_at,
        activity,
        listed: progress.walks.values().map(|walk| walk.entries as i64).sum(),
        planned: progress.planned as i64,
        done: progress.looked_at as i64,
    });
    let unreached = progress.troubles.iter().map(|trouble| Unreached {
        what: trouble.what.clone(),
        url: trouble.url.clone(),
        why: trouble.why.clone(),
        retry_at: trouble.retry_at_s,
    });
    CrawlStatus { running, next_pass_at, budget_left: None, unreached: unreached.collect() }
}

/// What pages say about this installation.
pub fn site(settings: &Settings, crawler: &Crawler, is_sample: bool) -> SiteSettings {
    let contact = settings.net.contact.clone();
    SiteSettings {
        instance_name: settings.web.name.clone(),
        user_agent: format!("Plumbline/{} (+{contact})", env!("CARGO_PKG_VERSION")),
        contact,
        pace_ms: settings.net.manners.pace_ms,
        opt_outs: plumbline_crawler::opt_out::entries(&crawler.opt_outs),
        is_sample,
        registry_interval_s: seconds(settings.crawl.registry_interval_s),
        surface_interval_s: seconds(settings.crawl.card_interval_s.max(settings.crawl.url_interval_s)),
        retention: settings.retention.clone(),
        public_url: settings.web.public_url.trim_end_matches('/').to_owned(),
        snapshots: (!settings.web.snapshots.is_empty()).then(|| settings.web.snapshots.clone().into()),
    }
}

fn seconds(interval: u64) -> i64 {
    i64::try_from(interval).unwrap_or(i64::MAX / 4)
}
