//! Summaries: what happened since the last one, at the hour and in the zone of whoever asked.

use plumbline_store::Error;
use plumbline_store::hooks::{EndpointState, NewMessage};
use plumbline_store::words::EventKind;
use serde_json::{Map, json};

use crate::event_types::DIGEST;
use crate::payload::{self, rfc3339};
use crate::teller::Teller;
use crate::zones::Digest;

/// Sends every summary whose time has come. A first look at a receiver only plans its first one.
///
/// # Errors
/// When the database fails.
pub async fn send_due(teller: &Teller) -> Result<bool, Error> {
    let now_s = teller.now_s();
    let mut sent = false;
    for endpoint in teller.store.endpoints().await? {
        let digest = endpoint.is.digest.as_deref().and_then(|text| serde_json::from_str::<Digest>(text).ok());
        let Some(next_s) = digest.as_ref().and_then(|digest| digest.next(now_s)) else { continue };
        let newest = teller.store.newest_event().await?.0;
        match endpoint.digest_due_s {
            Some(due_s) if due_s > now_s => continue,
            None => teller.store.queue_digest(endpoint.id, None, newest, next_s, now_s).await?,
            Some(_) if endpoint.state == EndpointState::Disabled => {
                teller.store.queue_digest(endpoint.id, None, newest, next_s, now_s).await?;
            }
            Some(due_s) => {
                let every = digest.map(|digest| digest.every.to_string()).unwrap_or_default();
                let counts = teller.store.count_events(endpoint.digest_event, newest).await?;
                let counts: Map<String, serde_json::Value> = counts
                    .into_iter()
                    .filter(|(kind, _)| is_told(*kind))
                    .map(|(kind, n)| (kind.as_str().to_owned(), json!(n)))
                    .collect();
                let (groups, alerts) = teller.store.open_counts().await?;
                let span_s = if every == "weekly" { 7 * 86_400 } else { 86_400 };
                let data = json!({
                    "period": every, "from": rfc3339(due_s - span_s), "to": rfc3339(due_s), "counts": counts,
                    "open_groups": groups, "open_alerts": alerts, "url": teller.source.url("/alerts"),
                });
                let message = NewMessage {
                    id: teller.ids.next((teller.clock)()),
                    kind: DIGEST.to_owned(),
                    event: None,
                    group: None,
                    at_s: now_s,
                    body: payload::body(DIGEST, now_s, &teller.source, &data),
                    to: vec![endpoint.id],
                };
                teller.store.queue_digest(endpoint.id, Some(&message), newest, next_s, now_s).await?;
                sent = true;
            }
        }
    }
    Ok(sent)
}

/// What a summary counts: what a reader would want to know, not our own messages.
fn is_told(kind: EventKind) -> bool {
    !matches!(
        kind,
        EventKind::AlertGroupOpened
            | EventKind::AlertGroupUpdated
            | EventKind::AlertGroupResolved
            | EventKind::CrawlCompleted
            | EventKind::Ping
    )
}
