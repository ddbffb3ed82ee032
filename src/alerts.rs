//! `plumbline alerts`: what holds and why it was told or not; taking one on, and the three ways of keeping quiet.

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Subcommand;
use plumbline_alerts::payload::{plain, rfc3339};
use plumbline_alerts::quiet::{self, moment};
use plumbline_alerts::{waiving, working, zones};
use plumbline_store::alerting::{Alert, Maintenance, Silence, Waiver};
use plumbline_store::hooks::Origin;
use plumbline_store::taken_on::TakenOn;
use plumbline_store::{AlertId, Store};
use serde_json::{Value, json};

use crate::settings::{Options, Settings};
use crate::{telling, wiring};

/// Alerts read at once.
const MOST: i64 = 5_000;

/// Lines of a preview.
const SHOWN: usize = 25;

#[derive(clap::Args)]
#[command(after_help = "Examples:
  plumbline alerts list                                          what holds, and why it was told or not
  plumbline alerts list --match 'owner:harbour severity:error' --json
  plumbline alerts ack 17 --note 'rolling back' --hours 4        it is not repeated until then
  plumbline alerts silence 'owner:harbour' --hours 2 --reason 'moving the pier'
  plumbline alerts silence 'owner:harbour' --hours 2 --reason 'moving the pier' --dry-run
  plumbline alerts waive 'a2a/*' --on 'target:agent.example.com' --days 90 --reason 'old client, gone in spring'
  plumbline alerts maintenance 'host:example.com' --title Backups --cron '0 3 * * 0' --zone Europe/Berlin --minutes 60
  plumbline alerts end silence 3

A matcher is words and values that must all hold: owner:harbour severity:error -rule:a2a/* (docs/webhooks.md).")]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Alerts that are open, the newest first, each with why it was told or not.
    List {
        /// Only those that a matcher covers.
        #[arg(long = "match", value_name = "MATCHER", default_value = "")]
        matcher: String,
        /// For programs.
        #[arg(long)]
        json: bool,
    },
    /// Take an alert on: it is not repeated until it ends, or becomes graver.
    Ack {
        /// Its number.
        id: i64,
        /// What you will do.
        #[arg(long)]
        note: String,
        /// For so many hours; without it until it ends.
        #[arg(long, value_parser = clap::value_parser!(i64).range(1..=8_760))]
        hours: Option<i64>,
        #[command(flatten)]
        by: By,
    },
    /// For a while, tell nobody of what matches.
    Silence {
        /// What it covers.
        matcher: String,
        /// Why.
        #[arg(long)]
        reason: String,
        /// For how many hours, 2160 at most.
        #[arg(long)]
        hours: i64,
        /// End it early after so many hours without a match.
        #[arg(long)]
        calm_hours: Option<i64>,
        #[command(flatten)]
        by: By,
        /// Show what it would cover, and keep nothing.
        #[arg(long)]
        dry_run: bool,
    },
    /// Accept a deviation: shown on its findings, counted apart, told to nobody.
    Waive {
        /// A rule, or a family such as 'openapi/*'.
        rule: String,
        /// On whom.
        #[arg(long, value_name = "MATCHER")]
        on: String,
        /// Why.
        #[arg(long)]
        reason: String,
        /// For how many days, 365 at most.
        #[arg(long, value_parser = clap::value_parser!(i64).range(1..=365))]
        days: i64,
        #[command(flatten)]
        by: By,
        /// Show what it would cover, and keep nothing.
        #[arg(long)]
        dry_run: bool,
    },
    /// Plan work, once or again and again: alerts are held until somebody has looked after its end.
    Maintenance {
        /// What it covers.
        matcher: String,
        /// What is done.
        #[arg(long)]
        title: String,
        /// Once: when it begins (RFC 3339).
        #[arg(long, conflicts_with = "cron", required_unless_present = "cron")]
        starts: Option<String>,
        /// Again and again: five fields of cron, in the zone.
        #[arg(long)]
        cron: Option<String>,
        /// The zone of its times.
        #[arg(long, default_value = "UTC")]
        zone: String,
        /// How long, in minutes.
        #[arg(long)]
        minutes: i64,
        #[command(flatten)]
        by: By,
        /// Show what it would cover and when, and keep nothing.
        #[arg(long)]
        dry_run: bool,
    },
    /// What is kept quiet now: silences, maintenance, waivers.
    Quiet,
    /// End a silence, a maintenance window or a waiver.
    End {
        /// Which sort.
        #[arg(value_parser = ["silence", "maintenance", "waiver"])]
        what: String,
        /// Its number.
        id: i64,
    },
}

#[derive(clap::Args)]
struct By {
    /// Who you are.
    #[arg(long, env = "USER", default_value = "command line", hide_env = true)]
    by: String,
}

pub fn run(options: &Options, arguments: &Arguments) -> Result<ExitCode> {
    let settings = Settings::load(options)?;
    wiring::runtime()?.block_on(async {
        let store = wiring::open(&settings).await?;
        let now_s = chrono::Utc::now().timestamp();
        let done = act(&settings, &store, &arguments.command, now_s).await;
        store.close().await;
        done.map(|()| ExitCode::SUCCESS)
    })
}

async fn act(settings: &Settings, store: &Store, command: &Command, now_s: i64) -> Result<()> {
    match command {
        Command::List { matcher, json } => list(settings, store, matcher, *json).await,
        Command::Ack { id, note, hours, by } => {
            let until_s = hours.map(|hours| now_s + hours * 3_600);
            if note.trim().is_empty() {
                bail!("--note is empty");
            }
            let taken = TakenOn { by: by.by.clone(), note: note.clone(), at_s: now_s, until_s };
            if !store.acknowledge(AlertId(*id), &taken).await? {
                bail!("no alert of number {id} is open");
            }
            wiring::note(store, "alert.acknowledge", format!("alert:{id}"), taken.told()).await?;
            println!("Alert {id} is taken on by {}.", by.by);
            Ok(())
        }
        Command::Silence { matcher, reason, hours, calm_hours, by, dry_run } => {
            let silence = Silence {
                id: 0,
                matcher: matcher.trim().to_owned(),
                reason: reason.trim().to_owned(),
                author: by.by.clone(),
                origin: Origin::Ui,
                created_s: now_s,
                starts_s: now_s,
                ends_s: now_s.saturating_add(hours.saturating_mul(3_600)),
                calm_s: calm_hours.map(|hours| hours.saturating_mul(3_600)),
                matched_s: None,
                ended_s: None,
                is_told: false,
            };
            quiet::check_silence(&silence)?;
            preview(store, matcher).await?;
            if !dry_run {
                let id = store.add_silence(&silence).await?;
                wiring::note(store, "silence.add", format!("silence:{id}"), json!(silence)).await?;
                println!("Silence {id} holds until {}.", rfc3339(silence.ends_s));
            }
            Ok(())
        }
        Command::Waive { rule, on, reason, days, by, dry_run } => {
            let waiver = Waiver {
                id: 0,
                rule: rule.trim().to_owned(),
                matcher: on.trim().to_owned(),
                reason: reason.trim().to_owned(),
                author: by.by.clone(),
                origin: Origin::Ui,
                created_s: now_s,
                ends_s: now_s + days * 86_400,
                ended_s: None,
            };
            waive(store, &waiver, *dry_run, now_s).await
        }
        Command::Maintenance { matcher, title, starts, cron, zone, minutes, by, dry_run } => {
            let window = Maintenance {
                id: 0,
                title: title.trim().to_owned(),
                matcher: matcher.trim().to_owned(),
                author: by.by.clone(),
                origin: Origin::Ui,
                zone: zone.clone(),
                starts_s: starts.as_deref().map(moment).transpose().context("--starts")?,
                cron: cron.clone(),
                duration_s: minutes.saturating_mul(60),
                created_s: now_s,
                ended_s: None,
            };
            quiet::check_maintenance(&window)?;
            preview(store, matcher).await?;
            for (began, end) in zones::next_windows(&window, now_s, 3) {
                println!("  {} to {}", rfc3339(began), rfc3339(end));
            }
            if !dry_run {
                let id = store.add_maintenance(&window).await?;
                working::apply(store, now_s).await?;
                wiring::note(store, "maintenance.add", format!("maintenance:{id}"), json!(window)).await?;
                println!("Maintenance {id} is planned.");
            }
            Ok(())
        }
        Command::Quiet => quieted(store, now_s).await,
        Command::End { what, id } => end(store, what, *id, now_s).await,
    }
}

async fn list(settings: &Settings, store: &Store, matcher: &str, is_json: bool) -> Result<()> {
    let matcher = plumbline_alerts::matcher::Matcher::parse(matcher)?;
    let alerts: Vec<Alert> =
        store.all_open_alerts(MOST).await?.into_iter().filter(|alert| matcher.matches(&alert.facts)).collect();
    let mut out = std::io::stdout().lock();
    if is_json {
        serde_json::to_writer_pretty(&mut out, &alerts)?;
        writeln!(out)?;
        return Ok(());
    }
    if alerts.is_empty() {
        writeln!(out, "No alert is open.")?;
    }
    for alert in &alerts {
        let since = rfc3339(alert.opened_s);
        writeln!(
            out,
            "{:>6}  {:<8} {:<12} {since}  {}",
            alert.id,
            alert.severity,
            alert.state,
            plain(&alert.title, 200)
        )?;
        for said in &alert.why {
            writeln!(out, "        {}", plain(said, 300))?;
        }
        if let Some(by) = &alert.ack_by {
            let note = alert.ack_note.as_deref().unwrap_or_default();
            writeln!(out, "        Taken on by {}: {}", plain(by, 60), plain(note, 300))?;
        }
        if let Some(group) = alert.group {
            let url = telling::source(settings).url(&format!("/alerts/groups/{group}"));
            writeln!(out, "        {url}")?;
        }
    }
    Ok(())
}

/// Says which open alerts a matcher covers.
async fn preview(store: &Store, matcher: &str) -> Result<()> {
    let matcher = quiet::matcher(matcher)?;
    let open = store.all_open_alerts(MOST).await?;
    let covered: Vec<&Alert> = open.iter().filter(|alert| matcher.matches(&alert.facts)).collect();
    println!("It covers {} of {} open alerts now.", covered.len(), open.len());
    for alert in covered.iter().take(SHOWN) {
        println!("  {:>6}  {}", alert.id, plain(&alert.title, 160));
    }
    Ok(())
}

async fn waive(store: &Store, waiver: &Waiver, is_dry: bool, now_s: i64) -> Result<()> {
    quiet::check_waiver(waiver)?;
    let matcher = quiet::matcher(&waiver.matcher)?;
    let findings = store.waivable(&waiver.rule, 0, MOST).await?;
    let covered: Vec<_> = findings.iter().filter(|finding| matcher.matches(&finding.facts)).collect();
    println!("It covers {} of {} open findings of {} now.", covered.len(), findings.len(), waiver.rule);
    for finding in covered.iter().take(SHOWN) {
        let target = finding.facts.0.get("target").and_then(|keys| keys.first()).map_or("?", String::as_str);
        println!("  {:>6}  {} at {}", finding.id, finding.rule, plain(target, 120));
    }
    if !is_dry {
        let id = store.add_waiver(waiver).await?;
        waiving::apply(store, now_s).await?;
        wiring::note(store, "waiver.add", format!("waiver:{id}"), json!(waiver)).await?;
        println!("Waiver {id} holds until {}.", rfc3339(waiver.ends_s));
    }
    Ok(())
}

async fn quieted(store: &Store, now_s: i64) -> Result<()> {
    let mut out = std::io::stdout().lock();
    for one in store.silences(now_s).await?.iter().filter(|one| one.holds(now_s)) {
        let (until, who) = (rfc3339(one.ends_s), plain(&one.author, 60));
        writeln!(out, "silence {:<5} {}  until {until}, by {who}: {}", one.id, one.matcher, plain(&one.reason, 200))?;
    }
    for one in store.maintenances(now_s).await? {
        let holds = if zones::holds(&one, now_s) { "holds now" } else { "planned" };
        let next: Vec<String> = zones::next_windows(&one, now_s, 3).iter().map(|(began, _)| rfc3339(*began)).collect();
        let title = plain(&one.title, 120);
        writeln!(out, "maintenance {:<5} {}  {holds}, {title}; next {}", one.id, one.matcher, next.join(", "))?;
    }
    let covered = store.waived_findings().await?;
    for one in store.waivers(now_s).await? {
        let many = covered.values().filter(|id| **id == one.id).count();
        let (until, who) = (rfc3339(one.ends_s), plain(&one.author, 60));
        let reason = plain(&one.reason, 200);
        writeln!(
            out,
            "waiver {:<5} {} on {}  until {until}, {many} findings, by {who}: {reason}",
            one.id, one.rule, one.matcher
        )?;
    }
    Ok(())
}

async fn end(store: &Store, what: &str, id: i64, now_s: i64) -> Result<()> {
    let origin = match what {
        "silence" => store.silences(now_s).await?.iter().find(|one| one.id == id).map(|one| one.origin),
        "maintenance" => store.maintenances(now_s).await?.iter().find(|one| one.id == id).map(|one| one.origin),
        _ => store.waivers(now_s).await?.iter().find(|one| one.id == id).map(|one| one.origin),
    };
    if origin == Some(Origin::File) {
        bail!("{what} {id} stands in the settings file and is ended there");
    }
    let (ended, action) = match what {
        "silence" => (store.end_silence(id, now_s).await?, "silence.end"),
        "maintenance" => (store.end_maintenance(id, now_s).await?, "maintenance.end"),
        _ => (store.end_waiver(id, now_s).await?, "waiver.end"),
    };
    if !ended {
        bail!("no {what} of number {id} holds");
    }
    waiving::apply(store, now_s).await?;
    working::apply(store, now_s).await?;
    wiring::note(store, action, format!("{what}:{id}"), Value::Null).await?;
    println!("The {what} {id} is over.");
    Ok(())
}
