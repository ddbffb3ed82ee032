//! `/metrics`: the numbers of this installation for a program that watches it, in the text form of OpenMetrics.
//!
//! Labels are words of closed lists, names of the operator's own sources and of our own tables; never hosts, targets or
//! rules, of which there may be any number.

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use plumbline_store::Store;
use plumbline_store::disk::Space;
use plumbline_store::recount::Recount;
use plumbline_store::sizes::Sizes;
use plumbline_store::steering::Queue;
use plumbline_store::views::SourceRow;
use plumbline_store::vitals::{FindingsAlike, RulesetInUse, TargetsAlike};

use crate::WebState;
use crate::cache::Cache;
use crate::error::Error;
use crate::openmetrics::{Exposition, MEDIA_TYPE};
use crate::status::ProcessNumbers;

/// Everything that is told.
struct Vitals {
    targets: Vec<TargetsAlike>,
    findings: Vec<FindingsAlike>,
    queue: Queue,
    sources: Vec<SourceRow>,
    sizes: Sizes,
    bytes: i64,
    wal_bytes: Option<u64>,
    disk: Option<Space>,
    newest_event: i64,
    ruleset: Option<RulesetInUse>,
    recount: Option<Recount>,
}

/// `GET /metrics`
pub async fn show(State(state): State<WebState>) -> Result<Response, Error> {
    let now = (state.now)();
    let vitals = load(&state.store, now).await?;
    let body = written(&vitals, &(state.numbers)(), state.started_at, now);
    let headers = [(header::CONTENT_TYPE, MEDIA_TYPE.parse()), (header::CACHE_CONTROL, Ok(Cache::Never.header()))];
    let headers = headers.map(|(name, value)| (name, value.expect("the media type is a literal")));
    Ok((headers, body).into_response())
}

async fn load(store: &Store, now: i64) -> Result<Vitals, Error> {
    Ok(Vitals {
        targets: store.targets_alike().await?,
        findings: store.findings_alike().await?,
        queue: store.queue(now).await?,
        sources: store.sources_in_use().await?,
        sizes: store.sizes().await?,
        bytes: store.bytes().await?,
        wal_bytes: store.wal_bytes(),
        disk: store.disk(),
        newest_event: store.newest_event().await?.0,
        ruleset: store.ruleset_in_use().await?,
        recount: store.last_recount().await?,
    })
}

fn written(vitals: &Vitals, process: &ProcessNumbers, started_at: i64, now: i64) -> String {
    let mut text = Exposition::default();
    write_build(&mut text, vitals, started_at);
    write_targets(&mut text, vitals);
    write_crawler(&mut text, vitals, process, now);
    write_room(&mut text, vitals);
    text.end()
}

fn write_build(text: &mut Exposition, vitals: &Vitals, started_at: i64) {
    let ruleset = vitals.ruleset.as_ref().map_or_else(String::new, |ruleset| ruleset.version.clone());
    let labels = [("version", env!("CARGO_PKG_VERSION").to_owned()), ("ruleset", ruleset)];
    text.info("plumbline_build", "Version of the program and of the rules in use.", &labels);
    let help = "When the process began, in Unix seconds.";
    text.gauge("process_start_time_seconds", help, [(Vec::new(), started_at)]);
}

fn write_targets(text: &mut Exposition, vitals: &Vitals) {
    let targets = vitals.targets.iter().map(|alike| {
        let labels = vec![
            ("headline", alike.headline.to_string()),
            ("reach", alike.reach.to_string()),
            ("kind", alike.kind.to_string()),
        ];
        (labels, alike.targets)
    });
    text.gauge("plumbline_targets", "Watched targets by word, reach and kind.", targets);
    let findings = vitals.findings.iter().map(|alike| {
        let labels = vec![
            ("severity", alike.severity.to_string()),
            ("impact", alike.impact.map_or_else(|| "none".to_owned(), |impact| impact.to_string())),
            ("family", alike.family.clone()),
        ];
        (labels, alike.findings)
    });
    text.gauge("plumbline_findings_open", "Open findings by severity, impact and family of their rules.", findings);
    text.gauge("plumbline_event_id", "Number of the newest event.", [(Vec::new(), vitals.newest_event)]);
}

fn write_crawler(text: &mut Exposition, vitals: &Vitals, process: &ProcessNumbers, now: i64) {
    let Queue { waiting, urgent, at_work, next_hour, .. } = vitals.queue;
    let queues = [("due", waiting), ("urgent", urgent), ("at_work", at_work), ("next_hour", next_hour)];
    let queues = queues.map(|(queue, n)| (vec![("queue", queue.to_owned())], n));
    text.gauge("plumbline_queue_depth", "Surfaces that wait, by queue.", queues);
    let overdue = vitals.queue.oldest_due_s.map_or(0, |due| (now - due).max(0));
    text.gauge(
        "plumbline_overdue_seconds",
        "How long the longest waiting surface has been due.",
        [(Vec::new(), overdue)],
    );
    let ages = vitals
        .sources
        .iter()
        .filter_map(|source| Some((vec![("source", source.name.clone())], (now - source.last_pass_s?).max(0))));
    text.gauge("plumbline_crawl_age_seconds", "Since the start of the last complete pass over a source.", ages);
    let looks = process
        .looks
        .iter()
        .map(|(kind, outcome, n)| (vec![("outcome", (*outcome).to_owned()), ("kind", (*kind).to_owned())], n));
    text.counter("plumbline_probe", "Looks at surfaces by what came of them.", looks);
    text.histogram("plumbline_probe_seconds", "How long a look took at the other end.", &process.look_seconds);
    text.counter("plumbline_judged", "Judgements made.", [(Vec::new(), process.judged)]);
    let requests = process.requests.iter().map(|(class, n)| (vec![("class", (*class).to_owned())], n));
    text.counter("plumbline_requests", "Requests of the crawler by class of the answer.", requests);
    text.counter("plumbline_throttles", "Answers that asked us to come back later.", [(Vec::new(), process.throttles)]);
    text.histogram("plumbline_record_seconds", "How long it took to record a batch.", &process.record_seconds);
}

fn write_room(text: &mut Exposition, vitals: &Vitals) {
    text.gauge("plumbline_database_bytes", "The database as it is now.", [(Vec::new(), vitals.bytes)]);
    let tables = vitals.sizes.tables.iter().map(|table| (vec![("table", table.name.clone())], table.bytes));
    text.gauge("plumbline_db_bytes", "Each table with its indices, as last measured.", tables);
    let wal = vitals.wal_bytes.map(|bytes| (Vec::new(), bytes));
    text.gauge("plumbline_wal_bytes", "The write-ahead log.", wal);
    let recount = |of: fn(&Recount) -> i64| vitals.recount.as_ref().map(|recount| (Vec::new(), of(recount)));
    let help = "Numbers of the day of the trends that was counted again last which differ from what was published.";
    text.gauge("plumbline_recount_differences", help, recount(|recount| recount.wrong));
    let help = "When a day of the trends was counted again last, in Unix seconds.";
    text.gauge("plumbline_recount_time_seconds", help, recount(|recount| recount.at_s));
    let free = vitals.disk.map(|disk| (Vec::new(), disk.free));
    text.gauge("plumbline_disk_free_bytes", "Room left on the disk of the database.", free);
    let used = vitals.disk.map(|disk| (Vec::new(), disk.used_percent()));
    text.gauge("plumbline_disk_used_percent", "Share of that disk in use.", used);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_stands_in_the_manual() {
        let vitals = Vitals {
            targets: Vec::new(),
            findings: Vec::new(),
            queue: Queue::default(),
            sources: Vec::new(),
            sizes: Sizes::default(),
            bytes: 0,
            wal_bytes: None,
            disk: None,
            newest_event: 0,
            ruleset: None,
            recount: None,
        };
        let text = written(&vitals, &ProcessNumbers::default(), 0, 0);
        let manual = include_str!("../../../docs/operations.md");
        let mut metrics = 0;
        for line in text.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
            let (name, kind) = line.split_once(' ').expect("a name and a type");
            let suffix = match kind {
                "counter" => "_total",
                "info" => "_info",
                _ => "",
            };
            assert!(manual.contains(&format!("`{name}{suffix}`")), "{name}{suffix} is not in docs/operations.md");
            metrics += 1;
        }
        let told = manual.matches("`plumbline_").count() + manual.matches("`process_").count();
        assert_eq!(metrics, told, "the manual tells of no other");
    }
}
