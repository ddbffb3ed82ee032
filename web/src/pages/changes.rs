//! `/changes`: what changed in how we judge. Every release of the rules with what it added, changed and withdrew.

use std::collections::BTreeMap;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use plumbline_store::views::{AnnotationRow, ReleaseRow, ReleasedRule};
use serde::Serialize;

use crate::WebState;
use crate::cache::Cache;
use crate::error::Error;
use crate::filters;
use crate::page::{Frame, Place, Visit};
use crate::text;

/// Releases on the page.
const RELEASES: i64 = 20;

/// Releases, newest first.
#[derive(Template, Serialize)]
#[template(path = "changes.html")]
struct Changes {
    #[serde(skip)]
    frame: Frame,
    /// The moment the page holds for, in Unix seconds.
    as_of_s: i64,
    /// The answer in one sentence.
    answer: String,
    /// What each release changed.
    releases: Vec<Release>,
    /// Changes of method and gaps of ours, newest first.
    notes: Vec<AnnotationRow>,
}

/// One release beside the one before.
#[derive(Serialize)]
struct Release {
    /// The release.
    #[serde(flatten)]
    row: ReleaseRow,
    /// There is one before it to compare with.
    has_before: bool,
    /// Rules that were not there before.
    added: Vec<String>,
    /// Rules whose condition, severity or effect is another.
    changed: Vec<(String, String)>,
    /// Rules that are no longer there.
    withdrawn: Vec<String>,
}

/// `GET /changes`
pub async fn show(visit: Visit, State(state): State<WebState>) -> Result<Response, Error> {
    let rows = state.store.releases(RELEASES + 1).await?;
    let mut held = Vec::with_capacity(rows.len());
    for row in &rows {
        held.push(state.store.released_rules(row.id).await?);
    }
    let releases: Vec<Release> = rows
        .iter()
        .take(RELEASES as usize)
        .enumerate()
        .map(|(n, row)| release(row, &held[n], held.get(n + 1)))
        .collect();
    let page = Changes {
        frame: visit.framed(Place::Elsewhere),
        as_of_s: visit.now,
        answer: answer(&releases),
        notes: state.store.annotations(visit.now - 366 * 86_400, "all").await?,
        releases,
    };
    visit.answer(&page, Cache::Fresh)
}

fn release(row: &ReleaseRow, now: &[ReleasedRule], before: Option<&Vec<ReleasedRule>>) -> Release {
    let has_before = before.is_some();
    let old: BTreeMap<&str, &ReleasedRule> =
        before.into_iter().flatten().map(|rule| (rule.rule.as_str(), rule)).collect();
    let new: BTreeMap<&str, &ReleasedRule> = now.iter().map(|rule| (rule.rule.as_str(), rule)).collect();
    let changed = new.iter().filter_map(|(name, rule)| {
        let was = old.get(name)?;
        let mut said = Vec::new();
        if was.version != rule.version {
            said.push(format!("condition, version {} → {}", was.version, rule.version));
        }
        if was.severity != rule.severity {
            said.push(format!("severity {} → {}", was.severity, rule.severity));
        }
        if was.impact != rule.impact {
            said.push("effect on clients".to_owned());
        }
        (!said.is_empty()).then(|| ((*name).to_owned(), said.join(", ")))
    });
    Release {
        row: row.clone(),
        has_before,
        added: new
            .keys()
            .filter(|name| has_before && !old.contains_key(**name))
            .map(|name| (*name).to_owned())
            .collect(),
        changed: changed.collect(),
        withdrawn: old.keys().filter(|name| !new.contains_key(**name)).map(|name| (*name).to_owned()).collect(),
    }
}

fn answer(releases: &[Release]) -> String {
    match releases {
        [] => "Nothing has been judged yet, so no rules are in force.".to_owned(),
        [first] => format!(
            "Ruleset {} with {} has been in force since the beginning.",
            text::visible(&first.row.version, 40),
            text::counted(first.row.rules, "rule", "rules")
        ),
        [newest, ..] => format!(
            "Ruleset {} is in force since {}: {} added, {} changed, {} withdrawn.",
            text::visible(&newest.row.version, 40),
            text::date(newest.row.released_s),
            text::number(newest.added.len() as i64),
            text::number(newest.changed.len() as i64),
            text::number(newest.withdrawn.len() as i64)
        ),
    }
}
