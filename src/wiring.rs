//! Putting the parts together: the database, the rules in it, the sources of the settings, the crawler.

use std::io::IsTerminal;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result};
use plumbline_crawler::net::Client;
use plumbline_crawler::progress::Reporter;
use plumbline_crawler::settings::Registry;
use plumbline_crawler::targets::{self, Named};
use plumbline_crawler::upstream::Upstream;
use plumbline_crawler::walk::RegistrySource;
use plumbline_crawler::witness::Witness;
use plumbline_crawler::{Budget, Clock, Crawler, opt_out};
use plumbline_rules::judge::Given;
use plumbline_rules::rule_settings::RuleSetting;
use plumbline_store::audit::Noted;
use plumbline_store::steering::OptOuts;
use plumbline_store::words::SourceKind;
use plumbline_store::{RulesetId, Store};
use tracing_subscriber::EnvFilter;

use crate::settings::{LogFormat, LogSettings, Options, Settings};

/// `plumbline migrate`.
pub fn migrate(options: &Options) -> Result<ExitCode> {
    let settings = Settings::load(options)?;
    runtime()?.block_on(async {
        let store = open(&settings).await?;
        store.close().await;
        println!("{} is at the schema of plumbline {}.", shown(&settings.database), env!("CARGO_PKG_VERSION"));
        Ok(ExitCode::SUCCESS)
    })
}

/// The runtime of everything that waits.
pub fn runtime() -> Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().context("no runtime")
}

/// Starts the log on standard error.
pub fn start_log(settings: &LogSettings) -> Result<()> {
    let filter = EnvFilter::try_new(&settings.filter).with_context(|| format!("log.filter: `{}`", settings.filter))?;
    let colours = std::io::stderr().is_terminal();
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_ansi(colours).with_writer(std::io::stderr);
    let started = match settings.format {
        LogFormat::Text => log.with_target(false).try_init(),
        LogFormat::Json => log.json().flatten_event(true).try_init(),
    };
    started.map_err(|error| anyhow::anyhow!("the log cannot be started: {error}"))
}

/// Opens the database and brings it to this version.
pub async fn open(settings: &Settings) -> Result<Store> {
    let database = &settings.database;
    Store::open(database).await.with_context(|| format!("database {}", shown(database)))
}

/// Notes in the audit what a command changed.
pub async fn note(store: &Store, action: &'static str, entity: String, after: serde_json::Value) -> Result<()> {
    let who = std::env::var("USER").map_or_else(|_| String::new(), |user| format!(" ({user})"));
    let noted = Noted {
        actor: format!("command line{who}"),
        action,
        entity,
        after: Some(after).filter(|after| !after.is_null()),
        ..Noted::default()
    };
    store.note(&noted, chrono::Utc::now().timestamp()).await.context("the audit")
}

/// An address without its password.
pub fn shown(database: &str) -> String {
    crate::settings::without_password(database)
}

/// Makes surfaces due that were judged with other rules, or with other settings about rules. Those of some targets only
/// have rulesets of their own, so when they change everything is judged again.
async fn judge_again(store: &Store, settings: &Settings, ruleset: RulesetId, now_s: i64) -> Result<u64> {
    let settled = serde_json::to_string(&settings.rules).context("settings can be written")?;
    let mark = format!("{} {settled}", ruleset.0);
    if !store.rules_have_moved(&mark).await? {
        return Ok(0);
    }
    let is_conditional = settings.rules.iter().any(RuleSetting::is_conditional);
    let still_good = if is_conditional { RulesetId(0) } else { ruleset };
    let again = store.rejudge_under(still_good, true, now_s).await?;
    store.rules_are_settled(&mark).await?;
    Ok(again)
}

/// Builds the crawler over an open database: the rules in use and the targets of the settings are in it afterwards.
pub async fn crawler(settings: &Settings, store: Store) -> Result<Arc<Crawler>> {
    let clock = Clock::default();
    let now_s = clock.now_s();
    let holder = holder();
    occupy(&store, &holder, now_s).await?;
    mind_the_clock(&store, settings, now_s).await?;
    let interrupted = store.recover(now_s, |other| is_alive(other, &holder)).await?;
    if interrupted > 0 {
        tracing::info!("{interrupted} crawls were cut short by the end of their process; they go on where they stood");
    }
    let prepared = prepare(settings, None)?;
    let (reporter, witness) = (Reporter::default(), Arc::default());
    let budget = Budget::new(settings.crawl.looks_per_hour);
    let verifications = Budget::new(settings.crawl.verifications_per_hour());
    assemble(prepared, store, Lasting { reporter, holder, witness, clock, budget, verifications }).await
}

/// What the settings ask for: read, and found to be of use, before anything is changed.
pub struct Prepared {
    settings: Settings,
    registries: Vec<(Registry, Option<http::HeaderValue>)>,
    named: Named,
    opt_outs: OptOuts,
    client: Client,
}

/// What a crawler has that outlives a change of settings.
struct Lasting {
    reporter: Reporter,
    holder: String,
    witness: Arc<Witness>,
    clock: Clock,
    budget: Budget,
    verifications: Budget,
}

/// Reads what the settings point at. The client goes on, with its manners, unless its own settings have changed.
pub fn prepare(settings: &Settings, before: Option<(&Settings, &Crawler)>) -> Result<Prepared> {
    let watched = settings.targets();
    let opt_outs = opt_out::read(&settings.crawl)?;
    let mut named = targets::named(&watched, &|name| std::env::var(name).ok())?;
    named.leave_alone(&opt_outs);
    let keyed = watched.registries.into_iter().map(|registry| Ok((registry.clone(), key_of(&registry)?)));
    let registries = keyed.collect::<Result<Vec<_>>>()?;
    let client = match before {
        Some((before, crawler)) if before.net == settings.net => crawler.client.clone(),
        _ => Client::new(settings.net.clone())?,
    };
    Ok(Prepared { settings: settings.clone(), registries, named, opt_outs, client })
}

/// A crawler under changed settings that goes on where the one before stands.
pub async fn again(prepared: Prepared, before: &Crawler) -> Result<Arc<Crawler>> {
    let lasting = Lasting {
        reporter: before.reporter.clone(),
        holder: before.holder.clone(),
        witness: before.witness.clone(),
        clock: before.clock.clone(),
        budget: before.budget.resized(prepared.settings.crawl.looks_per_hour),
        verifications: before.verifications.resized(prepared.settings.crawl.verifications_per_hour()),
    };
    assemble(prepared, before.store.clone(), lasting).await
}

/// The rules as the settings grade them, in the database; what was judged by others is judged again.
async fn use_rules(store: &Store, settings: &Settings, now_s: i64) -> Result<RulesetId> {
    let rules = plumbline_crawler::rule_settings::facts(&settings.judging(), &Given::default());
    let ruleset = store.ensure_ruleset(env!("CARGO_PKG_VERSION"), &rules, now_s).await?;
    let again = judge_again(store, settings, ruleset, now_s).await?;
    if again > 0 {
        tracing::info!("the rules have changed: {again} surfaces are judged again");
    }
    Ok(ruleset)
}

/// Brings rules and what is watched to the settings and puts the crawler together.
async fn assemble(prepared: Prepared, store: Store, lasting: Lasting) -> Result<Arc<Crawler>> {
    let Prepared { settings, registries, named, opt_outs, client } = prepared;
    let now_s = lasting.clock.now_s();
    for problem in &named.problems {
        tracing::warn!("{problem}");
    }
    let ruleset = use_rules(&store, &settings, now_s).await?;
    let registries = match store.demonstration().await? {
        Some(made_of) => {
            tracing::info!("this database is a demonstration ({made_of}): nothing is crawled");
            Vec::new()
        }
        None => watch(&store, &named, registries, now_s).await?,
    };
    let left_alone = store.honour(&opt_outs, now_s).await?;
    if left_alone > 0 {
        tracing::info!("{left_alone} targets asked to be left alone and are no longer watched");
    }
    client.set_opt_outs(opt_outs.clone());
    if settings.upstream.is_on() {
        store.look_behind_listings(now_s).await?;
    }
    Ok(Arc::new(Crawler {
        client,
        store,
        judging: settings.judging(),
        settings: settings.crawl,
        probing: settings.probe,
        ruleset,
        variants: Default::default(),
        registries,
        headers: named.headers,
        active: named.active,
        commands: named.commands,
        stdio: settings.stdio,
        reporter: lasting.reporter,
        holder: lasting.holder,
        witness: lasting.witness,
        opt_outs,
        key_sets: Default::default(),
        upstream: Upstream::new(settings.upstream),
        clock: lasting.clock,
        budget: lasting.budget,
        verifications: lasting.verifications,
    }))
}

/// How long this process has the database for itself, in seconds; renewed at a third of it.
pub const OCCUPIED_S: i64 = 90;

/// A clock that is behind what the database has seen by more than this was set back, in seconds.
const SET_BACK_S: i64 = 60;

/// Makes this process the one that works on the database, or renews that.
pub async fn occupy(store: &Store, holder: &str, now_s: i64) -> Result<()> {
    Ok(store.occupy(holder, now_s, now_s + OCCUPIED_S, |other| is_alive(other, holder)).await?)
}

/// After a clock that ran ahead the schedule lies in the future; it is brought back.
pub async fn mind_the_clock(store: &Store, settings: &Settings, now_s: i64) -> Result<()> {
    let Some(newest) = store.newest_moment().await?.filter(|newest| newest - now_s > SET_BACK_S) else {
        return Ok(());
    };
    let behind = newest - now_s;
    let brought_back = store.rein_in(now_s, behind, spread_s(settings)).await?;
    tracing::warn!(
        "the clock is {behind} s behind what this database has seen: {brought_back} plans were brought back; \
         what is seen from now on is kept in its order"
    );
    Ok(())
}

/// Over how long what is brought back is spread, in seconds: one interval, at most a quarter of an hour.
pub fn spread_s(settings: &Settings) -> i64 {
    let crawl = &settings.crawl;
    i64::try_from(crawl.card_interval_s.min(crawl.url_interval_s).min(900)).unwrap_or(900)
}

/// Brings what is watched to the settings.
async fn watch(
    store: &Store,
    named: &Named,
    registries: Vec<(Registry, Option<http::HeaderValue>)>,
    now_s: i64,
) -> Result<Vec<RegistrySource>> {
    set_sources(store, named, now_s).await?;
    let registries = set_registries(store, registries, now_s).await?;
    retire_others(store, named, &registries, now_s).await?;
    Ok(registries)
}

async fn set_sources(store: &Store, named: &Named, now_s: i64) -> Result<()> {
    for (kind, name, targets) in &named.sources {
        let is_known = store.sources().await?.iter().any(|source| source.kind == *kind && source.name == *name);
        if targets.is_empty() && !is_known {
            continue;
        }
        let source = store.ensure_source(*kind, name, None, now_s).await?;
        store.set_targets(source, targets, now_s).await?;
    }
    Ok(())
}

async fn set_registries(
    store: &Store,
    registries: Vec<(Registry, Option<http::HeaderValue>)>,
    now_s: i64,
) -> Result<Vec<RegistrySource>> {
    let mut sources = Vec::with_capacity(registries.len());
    for (settings, key) in registries {
        let id = store.ensure_source(SourceKind::McpRegistry, &settings.name, Some(&settings.base), now_s).await?;
        sources.push(RegistrySource { id, settings, key });
    }
    Ok(sources)
}

/// Registries that the settings no longer name leave the watch; their history stays.
async fn retire_others(store: &Store, named: &Named, registries: &[RegistrySource], now_s: i64) -> Result<()> {
    for source in store.sources().await? {
        let is_registry = source.kind == SourceKind::McpRegistry;
        let is_named = registries.iter().any(|registry| registry.id == source.id)
            || named.sources.iter().any(|(kind, name, _)| source.kind == *kind && source.name == *name);
        if is_registry && !is_named {
            tracing::info!("registry {} is no longer in the settings; its targets are retired", source.name);
            store.set_targets(source.id, &[], now_s).await?;
            store.retire_source(source.id, now_s).await?;
        }
    }
    Ok(())
}

/// The key of a registry, from the environment or a file.
fn key_of(registry: &Registry) -> Result<Option<http::HeaderValue>> {
    let key = match (&registry.key_env, &registry.key_file) {
        (Some(variable), _) => Some(std::env::var(variable).with_context(|| {
            format!("registries.key_env: registry {} is to be asked with the variable {variable}", registry.name)
        })?),
        (None, Some(path)) => {
            Some(std::fs::read_to_string(path).with_context(|| format!("registries.key_file: {path}"))?)
        }
        (None, None) => None,
    };
    let value = key.map(|key| http::HeaderValue::try_from(key.trim()));
    let mut value =
        value.transpose().with_context(|| format!("the key of registry {} fits no header", registry.name))?;
    if let Some(value) = &mut value {
        value.set_sensitive(true);
    }
    Ok(value)
}

/// The name of this process on leases and crawls: host, process number and when the process began, since numbers are
/// used again (in a container every process has the same one).
pub fn holder() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let process = std::process::id();
    format!("{}/{process}.{}", host.trim(), began(process).unwrap_or(0))
}

/// Whether the process of that name still runs. What runs on another host cannot be seen from here; its leases run out by
/// themselves.
pub fn is_alive(other: &str, own: &str) -> bool {
    let (Some((host, process)), Some((own_host, _))) = (other.rsplit_once('/'), own.rsplit_once('/')) else {
        return false;
    };
    if host != own_host {
        return true;
    }
    let named = process.split_once('.').and_then(|(number, at)| Some((number.parse().ok()?, at.parse().ok()?)));
    named.is_some_and(|(number, at): (u32, u64)| began(number) == Some(at))
}

/// When a process began, in ticks since the system did; `None` when it does not run, or has ended and only waits for its
/// parent to notice.
fn began(process: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name in brackets may hold anything; state and start are counted from behind it.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let is_over = matches!(fields.first(), Some(&("Z" | "X")));
    fields.get(19).filter(|_| !is_over)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dead_holder_is_told_from_a_living_one() {
        let own = holder();
        let (host, process) = own.rsplit_once('/').expect("host and process");
        let (number, _) = process.split_once('.').expect("number and start");
        assert!(is_alive(&own, &own), "we run");
        assert!(!is_alive(&format!("{host}/{number}.1"), &own), "the same number, but begun at another time");
        assert!(!is_alive(&format!("{host}/0.0"), &own));
        assert!(is_alive("elsewhere/1.1", &own));
        assert!(!is_alive("nonsense", &own));
    }

    #[test]
    fn a_process_that_ended_is_dead_before_its_parent_notices() {
        let mut child = std::process::Command::new("true").spawn().expect("it starts");
        let ended = (0..200).any(|_| {
            std::thread::park_timeout(std::time::Duration::from_millis(20));
            began(child.id()).is_none()
        });
        assert!(ended, "a zombie counts as dead");
        child.wait().expect("it is noticed at last");
    }
}
