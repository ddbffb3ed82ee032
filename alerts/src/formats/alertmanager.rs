//! Prometheus Alertmanager, `POST /api/v2/alerts`: an existing routing tree takes over. Labels are few, so that groups stay whole.

use chrono::{DateTime, SecondsFormat};
use serde_json::{Value, json};

use super::Said;

/// What still holds is said again after this long, where nothing else is said; three times that without a word means it is over.
const REPEAT_S: i64 = 86_400;

pub(super) fn body(said: &Said, now_s: i64) -> Value {
    let ends_s = if said.is_over { now_s } else { now_s + 3 * said.repeat_s.unwrap_or(REPEAT_S) };
    let ends = DateTime::from_timestamp(ends_s, 0).map(|at| at.to_rfc3339_opts(SecondsFormat::Secs, true));
    let starts = if said.is_over { ends.clone() } else { Some(said.at.clone()) };
    let severity = &said.severity;
    let mut alert = json!({
        "labels": { "alertname": "Plumbline", "plumbline": said.key },
        "annotations": {
            "summary": said.line, "severity": severity, "class": said.class,
            "description": said.plain_text(),
        },
        "endsAt": ends,
        "generatorURL": said.url,
    });
    // The end of an alert that Alertmanager knows keeps its own beginning.
    if !said.is_over {
        alert["startsAt"] = json!(starts);
    }
    json!([alert])
}
