//! `plumbline recheck`: what is stored is judged again by the rules as they are now, without a network.
//!
//! It is a release of rules, not a crawl: nobody is asked, no look is counted, and what opens or ends says that the rules did
//! it. Of rules that are the same as before the stored result stays, whatever this program would say today, so that nothing
//! that opens here can pass for a regression. Every batch is one transaction and takes up where the last one ended, so it may
//! be stopped at any time and goes on the next time.

use std::collections::HashSet;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Result;
use plumbline_crawler::targets::{document_kind, host_name};
use plumbline_rules::document::Document;
use plumbline_rules::judge::{self, Given, Origin, Subject};
use plumbline_rules::reach::{Outcome, Skip};
use plumbline_rules::report::Report;
use plumbline_rules::session::{Session, Surface};
use plumbline_rules::session_judge::judge_session;
use plumbline_store::judged::{Judged, RuleOutcome, Said};
use plumbline_store::record::{Observation, Served};
use plumbline_store::surfaces::JudgedOtherwise;
use plumbline_store::words::SurfaceKind;
use plumbline_store::{DocumentId, RulesetId, Store, SurfaceId};

use crate::settings::{Options, Settings};
use crate::wiring;

/// Surfaces judged and recorded together.
const BATCH: u32 = 200;
/// How often a line of progress is printed.
const LINE_EVERY: Duration = Duration::from_secs(5);

#[derive(clap::Args)]
#[command(after_help = "Examples:
  plumbline recheck              after an update, without waiting for the next crawl
  plumbline recheck --dry-run    how much there is to judge again

Documents whose bytes are no longer kept, or were cut, wait for their next look. It may be stopped and goes on the next
time. What opens or ends by it is our doing and says so; none of it is a regression.")]
pub struct Arguments {
    /// Only count what there is to judge again.
    #[arg(long)]
    dry_run: bool,
}

/// What judging again came to.
#[derive(Debug, Default)]
struct Done {
    judged: u64,
    left: u64,
    opened: i64,
    resolved: i64,
    regressed: i64,
}

pub fn run(options: &Options, arguments: &Arguments) -> Result<ExitCode> {
    let settings = Settings::load(options)?;
    wiring::start_log(&settings.log)?;
    wiring::runtime()?.block_on(async {
        let store = wiring::open(&settings).await?;
        let done = judge_again(&store, &settings, arguments.dry_run).await;
        store.close().await;
        done
    })
}

async fn judge_again(store: &Store, settings: &Settings, is_dry: bool) -> Result<ExitCode> {
    let now_s = chrono::Utc::now().timestamp();
    let rules = plumbline_crawler::rule_settings::facts(&settings.judging(), &Given::default());
    let ruleset = store.ensure_ruleset(env!("CARGO_PKG_VERSION"), &rules, now_s).await?;
    let all = store.count_judged_otherwise(ruleset).await?;
    if is_dry {
        println!("{all} surfaces were judged by other rules than these.");
        return Ok(ExitCode::SUCCESS);
    }
    let (mut done, mut after) = (Done::default(), SurfaceId(0));
    let (began, mut told) = (Instant::now(), Instant::now());
    loop {
        let surfaces = store.judged_otherwise(ruleset, after, BATCH).await?;
        let Some(last) = surfaces.last() else { break };
        after = last.id;
        let mut looks = Vec::with_capacity(surfaces.len());
        for surface in &surfaces {
            match look(store, &settings.judging(), surface, ruleset, now_s).await? {
                Some(look) => looks.push(look),
                None => done.left += 1,
            }
        }
        let recorded = store.record(&looks).await?;
        done.judged += recorded.observations as u64;
        done.opened += recorded.opened;
        done.resolved += recorded.resolved;
        done.regressed += recorded.regressed;
        if told.elapsed() > LINE_EVERY {
            told = Instant::now();
            eprintln!("{:>5.0} s  {} of {all} judged again", began.elapsed().as_secs_f64(), done.judged);
        }
    }
    remember_listings(store, settings, ruleset, now_s).await?;
    store.count_cohorts(now_s).await?;
    let Done { judged, left, opened, resolved, regressed } = done;
    println!(
        "{judged} surfaces judged again, {left} left to their next look: {opened} findings opened, {resolved} ended, \
         {regressed} of them regressions."
    );
    Ok(ExitCode::SUCCESS)
}

/// One surface judged by what is stored of it; `None` where not enough is.
async fn look(
    store: &Store,
    judging: &judge::Settings,
    surface: &JudgedOtherwise,
    ruleset: RulesetId,
    now_s: i64,
) -> Result<Option<Observation>> {
    let Some((report, served)) = report(store, judging, surface).await? else { return Ok(None) };
    let before = store.judged(surface.eval).await?;
    let moved = store.moved_rules(before.ruleset, ruleset);
    Ok(Some(Observation {
        surface: surface.id,
        crawl: None,
        at_s: now_s,
        outcome: Outcome::Skipped(Skip::Paused),
        status: None,
        took_ms: 0,
        is_verification: true,
        witness_good: true,
        served,
        declared_version: None,
        name: None,
        summary: None,
        validators: None,
        judged: Some(mixed(before, &report, ruleset, &moved)),
        fires_on_old: None,
        session: None,
        links: None,
        next_due_s: surface.next_due_s,
        every_s: None,
        place: None,
        standing: None,
    }))
}

async fn report(
    store: &Store,
    judging: &judge::Settings,
    surface: &JudgedOtherwise,
) -> Result<Option<(Report, Served)>> {
    if surface.kind == SurfaceKind::McpEndpoint {
        let Some(session) = store.last_session(surface.id).await? else { return Ok(None) };
        let Ok(session) = serde_json::from_slice::<Session>(&session) else { return Ok(None) };
        let given = Given { listed: !store.is_named_itself(surface.id).await?, ..Given::default() };
        let report = judge_session(&session, Surface::Mcp, None, &given, judging);
        let served = if surface.document.is_some() { Served::Unchanged } else { Served::Nothing };
        return Ok(Some((report, served)));
    }
    let Some(document) = surface.document else { return Ok(None) };
    let report = of_document(store, judging, document, surface.kind, &surface.url).await?;
    Ok(report.map(|report| (report, Served::Unchanged)))
}

async fn of_document(
    store: &Store,
    judging: &judge::Settings,
    document: DocumentId,
    kind: SurfaceKind,
    url: &str,
) -> Result<Option<Report>> {
    let kept = store.document(document).await?;
    let Some(bytes) = kept.bytes.filter(|_| !kept.is_cut) else { return Ok(None) };
    let given = Given { url: (!url.is_empty()).then(|| url.to_owned()), ..Given::default() };
    let origin = match host_name(url) {
        None => Origin::Nowhere,
        Some(host) if plumbline_rules::text::is_public_host(&host) => Origin::PublicHost,
        Some(_) => Origin::PrivateHost,
    };
    let subject =
        Subject { kind: document_kind(kind), version: None, origin, given: &given, session: None, answer: None };
    Ok(Some(judge::judge(&Document::read(&bytes), &subject, judging)))
}

/// The stored results, with those of the rules that moved in their place. Where a rule that did not move fires both times
/// its places are those of today.
fn mixed(before: Judged, report: &Report, ruleset: RulesetId, moved: &HashSet<String>) -> Judged {
    let now = Judged::of(report, ruleset, before.context_hash);
    let fires = |outcome: &RuleOutcome| matches!(outcome.said, Said::Fires(_));
    let mut outcomes: Vec<RuleOutcome> = Vec::with_capacity(now.outcomes.len());
    for outcome in before.outcomes.into_iter().filter(|outcome| !moved.contains(outcome.rule.as_ref())) {
        let again = now.outcomes.iter().find(|now| now.rule == outcome.rule && fires(now) && fires(&outcome));
        outcomes.push(again.cloned().unwrap_or(outcome));
    }
    outcomes.extend(now.outcomes.iter().filter(|outcome| moved.contains(outcome.rule.as_ref())).cloned());
    Judged { outcomes, is_complete: before.is_complete, ..now }
}

/// Versions that registries list and nobody serves are judged too, so that their pages tell what the rules say now.
async fn remember_listings(store: &Store, settings: &Settings, ruleset: RulesetId, now_s: i64) -> Result<()> {
    let judging = settings.judging();
    let mut from = DocumentId(0);
    loop {
        let documents = store.unjudged_listings(ruleset, from, BATCH).await?;
        let Some(last) = documents.last() else { return Ok(()) };
        from = DocumentId(last.0 + 1);
        for document in documents {
            if let Some(report) = of_document(store, &judging, document, SurfaceKind::ServerJson, "").await? {
                let context = plumbline_rules::canonical::content_hash(b"recheck");
                store.remember(document, &Judged::of(&report, ruleset, context), now_s).await?;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plumbline_store::judged::Occurrence;
    use plumbline_store::words::{Headline, Severity};

    fn outcome(rule: &'static str, fires: bool) -> RuleOutcome {
        let place = Occurrence {
            pointer: String::new(),
            message: "stored".to_owned(),
            severity: Severity::Error,
            impact: None,
            line: None,
            column: None,
        };
        RuleOutcome { rule: rule.into(), said: if fires { Said::Fires(vec![place]) } else { Said::Passes } }
    }

    #[test]
    fn only_rules_that_moved_say_something_new() {
        let before = Judged {
            ruleset: RulesetId(1),
            context_hash: [7; 32],
            profile: None,
            known: None,
            headline: Headline::Sound,
            is_complete: true,
            outcomes: vec![outcome("common/secret-pattern", false), outcome("common/invalid-json", false)],
        };
        let settings = judge::Settings::default();
        let given = Given::default();
        let subject =
            Subject { kind: None, version: None, origin: Origin::Nowhere, given: &given, session: None, answer: None };
        let report = judge::judge(&Document::from_text("{ not json"), &subject, &settings);
        let says = |moved: &[&str]| {
            let moved = moved.iter().map(|rule| (*rule).to_owned()).collect();
            let judged = mixed(before.clone(), &report, RulesetId(2), &moved);
            let found = judged.outcomes.iter().find(|outcome| outcome.rule == "common/invalid-json").cloned();
            matches!(found.map(|outcome| outcome.said), Some(Said::Fires(_)))
        };
        assert!(says(&["common/invalid-json"]));
        assert!(!says(&["common/secret-pattern"]), "the rule is the same, so the stored result stays");
    }
}
