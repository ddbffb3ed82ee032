//! Summaries: what happened since the last one, at the hour and in the zone of whoever asked.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use plumbline_store::hooks::{Endpoint, EndpointState, NewMessage};
use plumbline_store::words::EventKind;
use plumbline_store::{Error, EventId};
use serde_json::json;

use crate::event_types::DIGEST;
use crate::matcher::Matcher;
use crate::payload::{self, rfc3339};
use crate::teller::{MOST_OPEN, Teller};
use crate::zones::{Digest, Every};

/// Events that are read whole for one summary, at most: the loop that tells must not stand still for minutes.
const MOST_READ: usize = 5_000;

/// Events read at a time.
const BATCH: u32 = 500;

/// Sends every summary whose time has come. A first look at a receiver only plans its first one.
///
/// # Errors
/// When the database fails.
pub async fn send_due(teller: &Teller) -> Result<bool, Error> {
    let now_s = teller.now_s();
    let mut sent = false;
    for endpoint in teller.store.endpoints().await? {
        let digest = endpoint.is.digest.as_deref().and_then(|text| serde_json::from_str::<Digest>(text).ok());
        let Some(digest) = digest else { continue };
        let Some(next_s) = digest.next(now_s) else { continue };
        if endpoint.digest_due_s.is_some_and(|due_s| due_s > now_s) {
            continue;
        }
        let newest = teller.store.newest_event().await?.0;
        let (until, until_s, message) = match endpoint.digest_due_s {
            None => (endpoint.digest_event, endpoint.digest_s, None),
            // Whoever is switched off hears nothing of what happens meanwhile.
            Some(_) if endpoint.state == EndpointState::Disabled => (newest, Some(now_s), None),
            Some(due_s) => {
                let message = summary(teller, &endpoint, &digest, newest, due_s, now_s).await?;
                (newest, Some(now_s), Some(message))
            }
        };
        let is_kept = teller.store.queue_digest(&endpoint, message.as_ref(), until, until_s, next_s, now_s).await?;
        sent |= is_kept && message.is_some();
    }
    Ok(sent)
}

async fn summary(
    teller: &Teller,
    endpoint: &Endpoint,
    digest: &Digest,
    newest: i64,
    due_s: i64,
    now_s: i64,
) -> Result<NewMessage, Error> {
    let usual_s = if digest.every == Every::Weekly { 7 * 86_400 } else { 86_400 };
    let (counts, unread) = counted(teller, endpoint, newest).await?;
    let (groups, alerts) = open(teller, endpoint).await?;
    let mut data = json!({
        "period": digest.every.as_str(), "from": rfc3339(endpoint.digest_s.unwrap_or(due_s - usual_s)),
        "to": rfc3339(now_s), "counts": counts, "open_groups": groups, "open_alerts": alerts,
        "url": teller.source.url("/alerts"),
    });
    if unread > 0 {
        data["truncated"] = json!(unread);
    }
    Ok(NewMessage {
        id: teller.ids.next((teller.clock)()),
        kind: DIGEST.to_owned(),
        event: None,
        group: None,
        at_s: now_s,
        body: payload::body(DIGEST, now_s, &teller.source, &data),
        to: vec![endpoint.id],
    })
}

/// What happened since the last summary to whom the subscription is about, by kind; and how much was too much to read.
async fn counted(teller: &Teller, endpoint: &Endpoint, until: i64) -> Result<(BTreeMap<String, i64>, i64), Error> {
    let mut counts: BTreeMap<String, i64> = BTreeMap::new();
    let matcher = Matcher::parse(&endpoint.is.matcher).unwrap_or_default();
    if matcher.is_empty() {
        let all = teller.store.count_events(endpoint.digest_event, until).await?;
        let told = all.into_iter().filter(|(kind, _)| is_told(*kind));
        counts.extend(told.map(|(kind, n)| (kind.as_str().to_owned(), n)));
        return Ok((counts, 0));
    }
    let (mut after, mut read, mut unread) = (EventId(endpoint.digest_event), 0, 0);
    // Most events are about somebody else, which is known of a target once.
    let mut strangers: HashMap<(Option<i64>, Option<i64>), bool> = HashMap::new();
    loop {
        let events = teller.store.events_after(after, BATCH).await?;
        let Some(last) = events.last() else { break };
        after = last.id;
        for event in events.into_iter().filter(|event| event.id.0 <= until && is_told(event.kind)) {
            let whom = (event.target.map(|id| id.0), event.surface.map(|id| id.0));
            let is_known = whom.0.is_some();
            if is_known && strangers.get(&whom) == Some(&true) {
                continue;
            }
            if read == MOST_READ {
                unread += 1;
                continue;
            }
            read += 1;
            let kind = event.kind;
            let facts = payload::facts(&teller.store.happened(event).await?);
            if is_known && !strangers.contains_key(&whom) {
                strangers.insert(whom, matcher.is_about_another(&facts));
            }
            if matcher.matches(&facts) {
                *counts.entry(kind.as_str().to_owned()).or_default() += 1;
            }
        }
        if after.0 >= until {
            break;
        }
    }
    Ok((counts, unread))
}

/// Groups and alerts that are open and that a subscription is about.
async fn open(teller: &Teller, endpoint: &Endpoint) -> Result<(i64, i64), Error> {
    if let Some(counts) = teller.store.open_counts_of(endpoint.id).await? {
        return Ok(counts);
    }
    let matcher = Matcher::parse(&endpoint.is.matcher).unwrap_or_default();
    if matcher.is_empty() {
        return teller.store.open_counts().await;
    }
    let open = teller.store.all_open_alerts(MOST_OPEN).await?;
    let mine = open.iter().filter(|alert| matcher.matches(&alert.facts));
    let (keys, groups): (BTreeSet<&str>, BTreeSet<_>) = mine.map(|alert| (alert.key.as_str(), alert.group)).unzip();
    let groups = groups.into_iter().flatten().count();
    Ok((i64::try_from(groups).unwrap_or(i64::MAX), i64::try_from(keys.len()).unwrap_or(i64::MAX)))
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
