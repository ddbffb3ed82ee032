//! A message in words that every chat and pager has room for: one line, some items, how grave, where to look.

use serde_json::Value;

use crate::payload::{TITLE, cut, plain};

/// A message in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    /// What tells this trouble from others: the same for its beginning and its end.
    pub key: String,
    /// What, where, since when, and why.
    pub line: String,
    /// `critical`, `error`, `warning`, `info`.
    pub severity: String,
    /// It is over, or good news.
    pub is_over: bool,
    /// What belongs to it.
    pub items: Vec<Item>,
    /// Items left out.
    pub more: u64,
    /// Where to look.
    pub url: String,
    /// When, as RFC 3339.
    pub at: String,
    /// The name of the rule or of what they share.
    pub class: String,
    /// The target, where it is one.
    pub target: String,
    /// After so many seconds without news it is said again; `None`: it is said once.
    pub repeat_s: Option<i64>,
}

/// One thing of several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// Its line.
    pub title: String,
    /// `error`, …
    pub severity: String,
    /// It is over.
    pub is_over: bool,
    /// Where to look.
    pub url: String,
}

impl Said {
    /// Severity and line, as a person reads it first.
    #[must_use]
    pub fn first_line(&self) -> String {
        let word = if self.is_over { "resolved" } else { &self.severity };
        cut(&format!("[{word}] {}", self.line), TITLE)
    }

    /// All of it as plain text.
    #[must_use]
    pub fn plain_text(&self) -> String {
        let mut text = format!("{}\n", self.first_line());
        for item in &self.items {
            let word = if item.is_over { "resolved" } else { &item.severity };
            text += &format!("- [{word}] {}\n  {}\n", item.title, item.url);
        }
        if self.more > 0 {
            text += &format!("- and {} more\n", self.more);
        }
        if !self.url.is_empty() {
            text += &format!("\n{}\n", self.url);
        }
        text
    }
}

/// A message in words, from its body.
#[must_use]
pub fn said(message: &str, kind: &str, body: &[u8]) -> Said {
    let whole: Value = serde_json::from_slice(body).unwrap_or_default();
    let data = &whole["data"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let group = &data["group"];
    let is_group = group.is_object();
    let is_over = match kind {
        // It has calmed down either way, and may well still be there.
        "finding.flapping_stopped" => !matches!(data["finding"]["state"].as_str(), Some("open" | "clearing")),
        "alert_group.resolved" | "finding.resolved" | "target.recovered" | "incident.resolved" | "disk.relieved" => {
            true
        }
        _ => false,
    };
    let items = data["items"].as_array().map(Vec::as_slice).unwrap_or_default().iter().map(item).collect();
    let since = if is_group { text(&group["opened_at"]) } else { String::new() };
    let line = [&data["summary"], &data["title"], &data["message"]]
        .iter()
        .find_map(|value| value.as_str())
        .map_or_else(|| digest_line(kind, data), |line| plain(line, 300));
    let urls = [
        &group["url"],
        &data["target"]["url"],
        &data["crawl"]["url"],
        &data["webhook"]["url"],
        &data["rule"]["url"],
        &data["url"],
        &whole["source"],
    ];
    Said {
        key: key(message, kind, data),
        line: if since.is_empty() || is_over { line } else { format!("{line}, since {}", clock(&since)) },
        severity: [&group["severity"], &data["severity"]]
            .iter()
            .find_map(|value| value.as_str())
            .unwrap_or("info")
            .to_owned(),
        is_over,
        items,
        more: data["truncated"].as_u64().filter(|_| is_group).unwrap_or(0),
        url: urls.iter().find_map(|value| value.as_str()).unwrap_or_default().to_owned(),
        at: text(&whole["timestamp"]),
        class: [&data["rule"]["id"], &group["key"]].iter().find_map(|value| value.as_str()).unwrap_or(kind).to_owned(),
        target: text(&data["target"]["key"]),
        repeat_s: group["repeat_s"].as_i64(),
    }
}

/// `14:02 UTC, 1 Dec` of an RFC 3339 moment, shorter to read on a telephone.
fn clock(at: &str) -> String {
    chrono::DateTime::parse_from_rfc3339(at)
        .map_or_else(|_| at.to_owned(), |at| at.to_utc().format("%-d %b %H:%M UTC").to_string())
}

fn digest_line(kind: &str, data: &Value) -> String {
    let Some(counts) = data["counts"].as_object() else { return kind.to_owned() };
    let said: Vec<String> = counts.iter().map(|(word, n)| format!("{n} {word}")).collect();
    let said = if said.is_empty() { "nothing happened".to_owned() } else { said.join(", ") };
    format!("{} summary: {said}; {} alerts open", data["period"].as_str().unwrap_or("The"), data["open_alerts"])
}

fn item(value: &Value) -> Item {
    Item {
        title: plain(value["title"].as_str().unwrap_or_default(), TITLE),
        severity: value["severity"].as_str().unwrap_or("info").to_owned(),
        is_over: value["state"].as_str() == Some("resolved"),
        url: value["url"].as_str().unwrap_or_default().to_owned(),
    }
}

/// The same for everything that is said about one trouble.
fn key(message: &str, kind: &str, data: &Value) -> String {
    let family = kind.split('.').next().unwrap_or_default();
    let id = match family {
        "alert_group" => data["group"]["id"].as_str(),
        "finding" => data["finding"]["id"].as_str(),
        "target" => data["surface"]["id"].as_str().or(data["target"]["id"].as_str()),
        "incident" => data["incident"]["id"].as_str(),
        "webhook" => data["webhook"]["slug"].as_str(),
        "disk" => Some("disk"),
        _ => None,
    };
    format!("plumbline:{}", id.unwrap_or(message))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::formats::alertmanager;

    #[test]
    fn an_alertmanager_waits_three_repeats_of_the_route() {
        for (data, ends) in [
            (json!({ "group": { "id": "grp_1", "repeat_s": 3_600 } }), "1970-01-01T03:00:00Z"),
            (json!({ "finding": { "id": "fnd_1" } }), "1970-01-04T00:00:00Z"),
        ] {
            let body = json!({ "data": data }).to_string();
            let alert = alertmanager::body(&said("msg_1", "alert_group.updated", body.as_bytes()), 0);
            assert_eq!(alert[0]["endsAt"], ends);
        }
    }

    #[test]
    fn what_has_calmed_down_is_over_only_where_it_is_no_longer_there() {
        for (kind, state, is_over) in [
            ("finding.flapping_stopped", "open", false),
            ("finding.flapping_stopped", "clearing", false),
            ("finding.flapping_stopped", "resolved", true),
            ("finding.resolved", "resolved", true),
            ("finding.regressed", "open", false),
        ] {
            let body = json!({ "data": { "finding": { "id": "fnd_1", "state": state } } }).to_string();
            assert_eq!(said("msg_1", kind, body.as_bytes()).is_over, is_over, "{kind} {state}");
        }
    }
}
