//! A pass: one crawl row from its start to its end, whatever happens between.

use std::sync::Arc;

use plumbline_store::ids::CrawlId;
use plumbline_store::sources::CrawlEnd;
use plumbline_store::words::{CrawlKind, CrawlState};
use tokio_util::sync::CancellationToken;

use crate::progress::Unreached;
use crate::round::{self, RoundEnd};
use crate::walk::{self, RegistrySource, WalkEnd};
use crate::{CrawlError, Crawler};

/// Walks one registry and plans its next pass.
///
/// # Errors
/// Only when we failed; the crawl row then says so.
pub async fn registry(
    crawler: &Crawler,
    registry: &RegistrySource,
    wants_full: bool,
    stop: &CancellationToken,
) -> Result<WalkEnd, CrawlError> {
    let kind = if wants_full { CrawlKind::FullWalk } else { CrawlKind::IncrementalWalk };
    let crawl = start(crawler, kind, Some(registry)).await?;
    let walked = walk::walk(crawler, registry, crawl, wants_full, stop).await;
    let note = match &walked {
        Ok(end) => end.problem.clone(),
        Err(error) => Some(error.to_string()),
    };
    finish(crawler, crawl, note).await?;
    let end = walked?;
    let interval = i64::try_from(crawler.settings.registry_interval_s).unwrap_or(i64::MAX / 2);
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
    is_over: impl Fn() -> bool,
) -> Result<Option<RoundEnd>, CrawlError> {
    if is_over() && crawler.store.count_due(crawler.now_s()).await? == 0 {
        return Ok(None);
    }
    let crawl = start(crawler, CrawlKind::Round, None).await?;
    crawler.reporter.note(|progress| (progress.planned, progress.looked_at, progress.answered) = (0, 0, 0));
    let done = round::round(crawler, crawl, stop, is_over).await;
    let note = match &done {
        Ok(end) if end.given_back > 0 => Some(format!("stopped; {} surfaces were given back", end.given_back)),
        Ok(_) => None,
        Err(error) => Some(error.to_string()),
    };
    finish(crawler, crawl, note).await?;
    done.map(Some)
}

async fn start(crawler: &Crawler, kind: CrawlKind, registry: Option<&RegistrySource>) -> Result<CrawlId, CrawlError> {
    let source = registry.map(|registry| registry.id);
    Ok(crawler.store.start_crawl(kind, source, Some(crawler.ruleset), &crawler.holder, crawler.now_s()).await?)
}

async fn finish(crawler: &Crawler, crawl: CrawlId, note: Option<String>) -> Result<(), CrawlError> {
    let state = if note.is_none() { CrawlState::Complete } else { CrawlState::Incomplete };
    Ok(crawler.store.finish_crawl(crawl, &CrawlEnd { state, note }, crawler.now_s()).await?)
}
