//! `/settings/audit`: who changed what, from where, and what that was before; for the person at this machine, and for tokens that
//! allow everything.

use askama::Template;
use axum::extract::{Query, State};
use axum::response::Response;
use plumbline_store::audit::AuditRow;
use plumbline_store::hooks::Origin;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::WebState;
use crate::cache::Cache;
use crate::error::Error;
use crate::filters;
use crate::operator::Operator;
use crate::page::{Form, Frame, Place, Visit};
use crate::pages::filled;
use crate::text;
use crate::words;

/// Rows on a page; of a table to take away, as many as ten pages.
const SHOWN: i64 = 100;
const TAKEN: i64 = 10 * SHOWN;

/// Who changed what.
#[derive(Template, Serialize)]
#[template(path = "audit.html")]
struct AuditPage {
    #[serde(skip)]
    frame: Frame,
    /// The moment the page holds for, in Unix seconds.
    as_of_s: i64,
    /// The answer in one sentence.
    answer: String,
    /// The one thing that is shown; empty: everything.
    entity: String,
    /// The newest first.
    rows: Vec<AuditRow>,
    /// The number to go on before.
    next: Option<i64>,
    /// How long it is kept, in days.
    kept_days: u32,
}

/// Where to go on, and of what.
#[derive(Deserialize)]
pub struct Asked {
    before: Option<String>,
    entity: Option<String>,
}

/// `GET /settings/audit`
pub async fn show(
    _: Operator,
    visit: Visit,
    State(state): State<WebState>,
    Query(asked): Query<Asked>,
) -> Result<Response, Error> {
    let before = super::number("before", asked.before.as_deref())?.unwrap_or(i64::MAX);
    let entity = filled(asked.entity.as_deref());
    let most = if matches!(visit.form, Form::Csv | Form::JsonLines) { TAKEN } else { SHOWN };
    let rows = state.store.noted(before, entity, most).await?;
    let is_full = i64::try_from(rows.len()).is_ok_and(|n| n == most);
    let page = AuditPage {
        frame: visit.framed(Place::Settings),
        as_of_s: visit.now,
        answer: answer(rows.first(), entity, visit.now),
        entity: entity.unwrap_or_default().to_owned(),
        next: rows.last().filter(|_| is_full).map(|row| row.id),
        kept_days: state.site().retention.audit_days,
        rows,
    };
    visit.answer_rows(&page, &page.rows, Cache::Never)
}

fn answer(newest: Option<&AuditRow>, entity: Option<&str>, now_s: i64) -> String {
    let what = entity.map_or_else(|| "anything".to_owned(), |entity| text::visible(entity, 80));
    match newest {
        None => format!("Nobody has changed {what} yet."),
        Some(row) => {
            let who = text::visible(&row.actor, 80);
            format!("The last to change {what} was {who}, {} ago.", text::span(now_s - row.at_s))
        }
    }
}

impl AuditPage {
    /// What differs, member by member: how it was and how it is.
    fn changes(&self, row: &AuditRow) -> Vec<(String, String, String)> {
        changes(row.before.as_ref(), row.after.as_ref())
    }

    fn url(&self, before: &i64) -> String {
        let of = if self.entity.is_empty() {
            String::new()
        } else {
            format!("&entity={}", text::query_escaped(&self.entity))
        };
        format!("/settings/audit?before={before}{of}")
    }
}

/// A field as people say it: its unit is told with its value.
fn called(name: &str) -> String {
    name.strip_suffix("_s").unwrap_or(name).replace('_', " ")
}

/// A number of seconds as a moment or as a length of time; `None`: it is none.
fn seconds(name: &str, value: &Value) -> Option<String> {
    /// No length of time that is set anywhere is this long, and no moment that is noted is so early.
    const MOMENT: i64 = 1_000_000_000;
    let seconds = value.as_i64().filter(|_| name.ends_with("_s"))?;
    Some(if seconds < MOMENT { text::span(seconds) } else { text::moment(seconds) })
}

fn changes(before: Option<&Value>, after: Option<&Value>) -> Vec<(String, String, String)> {
    let members = |value: Option<&Value>| value.and_then(Value::as_object).cloned().unwrap_or_default();
    let (was, is) = (members(before), members(after));
    let said = |name: &str, value: Option<&Value>| match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) if name == "origin" => {
            text.parse().map_or_else(|_| text.clone(), |origin: Origin| words::made_in(origin).to_owned())
        }
        Some(Value::String(text)) => text.clone(),
        Some(other) => seconds(name, other).unwrap_or_else(|| other.to_string()),
    };
    let names = was.keys().chain(is.keys().filter(|name| !was.contains_key(*name)));
    let both = names.map(|name| (called(name), said(name, was.get(name)), said(name, is.get(name))));
    both.filter(|(_, was, is)| was != is).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_differs_is_shown() {
        let pair = |name: &str, was: &str, is: &str| (name.to_owned(), was.to_owned(), is.to_owned());
        let (was, is) = (json!({ "a": 1, "b": "x", "c": null }), json!({ "a": 1, "b": "y", "d": [2] }));
        assert_eq!(changes(Some(&was), Some(&is)), [pair("b", "x", "y"), pair("d", "", "[2]")]);
        assert_eq!(changes(None, Some(&json!({ "a": null, "b": true }))), [pair("b", "", "true")]);
        assert!(changes(None, None).is_empty());
        let times = json!({ "created_s": 1_796_062_020, "origin": "ui", "wait_s": 30, "per_minute": 30 });
        let said = [
            pair("created", "", "30 Nov 2026, 18:07 UTC"),
            pair("origin", "", "a page, the API or a command"),
            pair("per minute", "", "30"),
            pair("wait", "", "30\u{a0}s"),
        ];
        assert_eq!(changes(None, Some(&times)), said, "no raw seconds");
    }
}
