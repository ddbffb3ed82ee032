//! A pass: one crawl row from its start to its end, whatever happens between.

use std::sync::Arc;
use std::time::Duration;

use plumbline_store::ids::CrawlId;
use plumbline_store::sources::CrawlEnd;
use plumbline_store::words::{CrawlKind, CrawlState};
use tokio_util::sync::CancellationToken;

use crate::progress::Unreached;
use crate::round::{self, Going, RoundEnd};
use crate::walk::{self, RegistrySource, WalkEnd, Wish};
use crate::{CrawlError, Crawler};

/// Walks one registry and plans its next pass.
///
/// # Errors
/// Only when we failed; the crawl row then says so.
pub async fn registry(
    crawler: &Crawler,
    registry: &RegistrySource,
    wish: Wish,
    stop: &CancellationToken,
) -> Result<WalkEnd, CrawlError> {
    let kind = if wish.full || wish.accept_loss { CrawlKind::FullWalk } else { CrawlKind::IncrementalWalk };
    let crawl = start(crawler, kind, Some(registry)).await?;
    let walked = walk::walk(crawler, registry, crawl, wish, stop).await;
    let end = end_of_walk(&walked);
    finish(crawler, crawl, &end).await?;
    let end = walked?;
    let interval_s = registry.settings.interval_s.unwrap_or(crawler.settings.registry_interval_s);
    let interval = i64::try_from(interval_s).unwrap_or(i64::MAX / 2);
    let next_s = crawler.now_s().saturating_add(interval);
    crawler.store.plan_pass(registry.id, next_s).await?;
    match &end.problem {
        Some(why) => crawler.reporter.unreached(Unreached {
            what: registry.settings.name.clone(),
            url: registry.settings.base.clone(),
            why: why.clone(),
            retry_at_s: Some(next_s),
        }),
        None => crawler.reporter.reached(&registry.settings.name),
    }
    Ok(end)
}

/// Looks at everything that is due; no row is written when nothing is.
///
/// # Errors
/// Only when we failed; the crawl row then says so.
pub async fn round(
    crawler: &Arc<Crawler>,
    stop: &CancellationToken,
    going: impl Fn(Duration) -> Going,
) -> Result<Option<RoundEnd>, CrawlError> {
    if going(Duration::ZERO) != Going::On && is_nothing_to_do(crawler).await? {
        return Ok(None);
    }
    let crawl = start(crawler, CrawlKind::Round, None).await?;
    crawler.reporter.note(|progress| (progress.planned, progress.looked_at, progress.answered) = (0, 0, 0));
    let done = round::round(crawler, crawl, stop, going).await;
    let end = end_of_round(&done);
    finish(crawler, crawl, &end).await?;
    done.map(Some)
}

/// Nothing is due, or nothing may be looked at: everything is paused, the hour's budget is used up.
///
/// # Errors
/// When the database fails.
pub async fn is_nothing_to_do(crawler: &Crawler) -> Result<bool, CrawlError> {
    let now_s = crawler.now_s();
    Ok(crawler.budget.left(now_s) == 0 || crawler.is_paused().await? || !crawler.store.is_anything_due(now_s).await?)
}

async fn start(crawler: &Crawler, kind: CrawlKind, registry: Option<&RegistrySource>) -> Result<CrawlId, CrawlError> {
    let source = registry.map(|registry| registry.id);
    Ok(crawler.store.start_crawl(kind, source, Some(crawler.ruleset), &crawler.holder, crawler.now_s()).await?)
}

fn end_of_walk(walked: &Result<WalkEnd, CrawlError>) -> CrawlEnd {
    match walked {
        Ok(end) if end.is_stopped => stopped(end.problem.clone()),
        Ok(end) => ended(end.problem.clone()),
        Err(error) => ended(Some(error.to_string())),
    }
}

fn end_of_round(done: &Result<RoundEnd, CrawlError>) -> CrawlEnd {
    match done {
        Ok(end) if end.given_back > 0 => stopped(Some(format!("stopped; {} surfaces were given back", end.given_back))),
        Ok(end) if end.faults > 0 => ended(Some(format!(
            "{} looks failed and nobody else answered either: our own network or resolver; no target was blamed",
            end.faults
        ))),
        Ok(_) => ended(None),
        Err(error) => ended(Some(error.to_string())),
    }
}

/// It came to its end, with or without a problem.
fn ended(note: Option<String>) -> CrawlEnd {
    let state = if note.is_none() { CrawlState::Complete } else { CrawlState::Incomplete };
    CrawlEnd { state, note }
}

/// We were told to stop: nothing failed, and nobody need be told.
fn stopped(note: Option<String>) -> CrawlEnd {
    CrawlEnd { state: CrawlState::Interrupted, note }
}

async fn finish(crawler: &Crawler, crawl: CrawlId, end: &CrawlEnd) -> Result<(), CrawlError> {
    Ok(crawler.store.finish_crawl(crawl, end, crawler.now_s()).await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_that_is_told_to_stop_is_no_failure() {
        let stopped = RoundEnd { looked_at: 9, given_back: 3, faults: 2, ..RoundEnd::default() };
        let faulty = RoundEnd { looked_at: 9, faults: 2, ..RoundEnd::default() };
        for (end, state, begins) in [
            (RoundEnd::default(), CrawlState::Complete, ""),
            (faulty, CrawlState::Incomplete, "2 looks failed"),
            (stopped, CrawlState::Interrupted, "stopped; 3 surfaces"),
        ] {
            let said = end_of_round(&Ok(end));
            assert_eq!(said.state, state);
            assert!(said.note.unwrap_or_default().starts_with(begins));
        }
    }

    #[test]
    fn a_walk_that_is_told_to_stop_is_no_failure() {
        let walk = |is_stopped, problem: Option<&str>| WalkEnd {
            registry: "official".to_owned(),
            is_complete: problem.is_none(),
            is_stopped,
            is_full: true,
            pages: 1,
            entries: 30,
            problem: problem.map(ToOwned::to_owned),
        };
        for (end, state) in [
            (walk(false, None), CrawlState::Complete),
            (walk(false, Some("the registry went away")), CrawlState::Incomplete),
            (walk(true, Some("interrupted; it goes on from here")), CrawlState::Interrupted),
        ] {
            assert_eq!(end_of_walk(&Ok(end)).state, state);
        }
    }
}
