//! PagerDuty Events API v2. The deduplication key is the group's: one page for one cause, resolved when all of it is over.

use serde_json::{Value, json};

use super::Said;
use crate::payload::cut;

/// Characters of a summary that PagerDuty takes.
const SUMMARY: usize = 1024;

pub(super) fn body(said: &Said, routing_key: &str) -> Value {
    if said.is_over {
        return json!({ "routing_key": routing_key, "event_action": "resolve", "dedup_key": said.key });
    }
    json!({
        "routing_key": routing_key,
        "event_action": "trigger",
        "dedup_key": said.key,
        "client": "Plumbline",
        "client_url": said.url,
        "links": [{ "href": said.url, "text": "Open in Plumbline" }],
        "payload": {
            "summary": cut(&said.line, SUMMARY),
            "source": if said.target.is_empty() { "plumbline" } else { &said.target },
            "severity": said.severity,
            "timestamp": said.at,
            "class": said.class,
            "custom_details": { "items": said.items.iter().map(|item| &item.title).collect::<Vec<_>>(), "more": said.more },
        },
    })
}
