//! For those who watch the watcher: `/healthz` says that the process answers, `/readyz` that it can read its database, and
//! `/readyz?strict` that it does its work: passes are fresh, writing goes on, the disk has room.

use axum::extract::{RawQuery, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use plumbline_store::disk::Space;
use plumbline_store::views::SourceRow;

use crate::cache::Cache;
use crate::error::Error;
use crate::{SiteSettings, WebState, text, words};

/// Intervals after which a source without a good pass is too old.
const PATIENCE: i64 = 3;
/// Percent of the disk in use from which the strict answer is no.
const FULL_PERCENT: u64 = 95;

/// `GET /healthz`
pub async fn alive() -> Response {
    plain(StatusCode::OK, "alive\n".to_owned())
}

/// `GET /readyz`, `GET /readyz?strict`
pub async fn ready(State(state): State<WebState>, RawQuery(query): RawQuery) -> Response {
    if let Err(error) = state.store.answers().await {
        tracing::warn!("not ready: {error}");
        return plain(StatusCode::SERVICE_UNAVAILABLE, "the database does not answer\n".to_owned());
    }
    let is_strict = query.unwrap_or_default().split('&').any(|pair| pair == "strict" || pair.starts_with("strict="));
    if !is_strict {
        return plain(StatusCode::OK, "ready\n".to_owned());
    }
    match troubles(&state).await {
        Ok(troubles) if troubles.is_empty() => plain(StatusCode::OK, "ready\n".to_owned()),
        Ok(troubles) => plain(StatusCode::SERVICE_UNAVAILABLE, troubles.join("\n") + "\n"),
        Err(error) => {
            tracing::warn!("not ready: {error}");
            plain(StatusCode::SERVICE_UNAVAILABLE, "the database does not answer\n".to_owned())
        }
    }
}

/// Everything that keeps this installation from doing its work, one line each.
async fn troubles(state: &WebState) -> Result<Vec<String>, Error> {
    let (now, site) = ((state.now)(), state.site());
    let mut troubles = stale(&state.store.sources_in_use().await?, &site, state.started_at, now);
    troubles.extend(overdue(state.store.queue(now).await?.oldest_due_s, &site, state.started_at, now));
    if !state.store.can_write().await {
        troubles.push("writing to the database does not go on".to_owned());
    }
    troubles.extend(state.store.disk().as_ref().and_then(full));
    Ok(troubles)
}

/// Sources that are walked and whose last good pass is too old. One that never had any is given time from the start of the
/// process on.
fn stale(sources: &[SourceRow], site: &SiteSettings, started_at: i64, now: i64) -> Vec<String> {
    let is_old = |since: i64| now - since > PATIENCE * site.registry_interval_s;
    let walked = sources.iter().filter(|source| words::is_walked(source.kind));
    let stale = walked.filter(|source| is_old(source.last_pass_s.unwrap_or(started_at)));
    let said = stale.map(|source| {
        let name = text::visible(&source.name, 60);
        match source.last_pass_s {
            Some(at) => format!("the last complete pass over {name} began {}", text::ago(at, now)),
            None => format!("{name} has never been read to its end"),
        }
    });
    said.collect()
}

/// Surfaces that should have been looked at long ago. A process that has just begun is given time to catch up.
fn overdue(oldest_due_s: Option<i64>, site: &SiteSettings, started_at: i64, now: i64) -> Option<String> {
    let due = oldest_due_s?.max(started_at);
    let is_old = now - due > PATIENCE * site.surface_interval_s;
    is_old.then(|| format!("surfaces have been waiting to be looked at for {}", text::span(now - due)))
}

fn full(disk: &Space) -> Option<String> {
    let percent = disk.used_percent();
    (percent >= FULL_PERCENT).then(|| format!("{percent} % of the disk is in use"))
}

fn plain(status: StatusCode, body: String) -> Response {
    (status, [(header::CACHE_CONTROL, Cache::Never.header())], body).into_response()
}

#[cfg(test)]
mod tests {
    use plumbline_store::words::SourceKind;

    use super::*;

    fn source(kind: SourceKind, last_pass_s: Option<i64>) -> SourceRow {
        SourceRow {
            kind,
            name: "official".to_owned(),
            base: None,
            last_pass_s,
            last_tried_s: None,
            next_pass_s: None,
            problem: None,
            full_crawl: None,
            list_findings: 0,
        }
    }

    #[test]
    fn a_source_is_too_old_after_three_intervals_without_a_good_pass() {
        let site = SiteSettings { registry_interval_s: 3_600, ..SiteSettings::default() };
        let now = 1_796_062_020;
        for (kind, last_pass_s, started_at, troubles) in [
            (SourceKind::McpRegistry, Some(now - 3 * 3_600), now, 0),
            (SourceKind::McpRegistry, Some(now - 3 * 3_600 - 1), now, 1),
            (SourceKind::McpRegistry, None, now - 3_600, 0),
            (SourceKind::McpRegistry, None, now - 4 * 3_600, 1),
            (SourceKind::Domains, None, now - 4 * 3_600, 0),
        ] {
            let said = stale(&[source(kind, last_pass_s)], &site, started_at, now);
            assert_eq!(said.len(), troubles, "{kind} {last_pass_s:?}: {said:?}");
        }
    }

    #[test]
    fn what_waits_too_long_or_has_no_room_is_said() {
        let site = SiteSettings { surface_interval_s: 600, ..SiteSettings::default() };
        assert_eq!(overdue(None, &site, 0, 10_000), None);
        assert_eq!(overdue(Some(8_200), &site, 0, 10_000), None);
        assert!(overdue(Some(8_199), &site, 0, 10_000).is_some());
        assert_eq!(overdue(Some(100), &site, 9_000, 10_000), None, "it has just begun");
        assert_eq!(full(&Space { used: 94, free: 6 }), None);
        assert_eq!(full(&Space { used: 95, free: 5 }).as_deref(), Some("95 % of the disk is in use"));
    }
}
