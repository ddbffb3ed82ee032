//! One file a page: what it holds, how it is loaded, and a template of the same name.

pub mod about;
pub mod alerts;
pub mod almanac;
pub mod audit;
pub mod badges;
pub mod changes;
pub mod check;
pub mod checks;
pub mod clients;
pub mod cohorts;
pub mod compare;
pub mod coverage;
pub mod crawl;
pub mod crawls;
pub mod deploys;
pub mod diff;
pub mod document;
pub mod feeds;
pub mod finding;
pub mod group;
pub mod health;
pub mod in_step;
pub mod incidents;
pub mod instance;
pub mod methodology;
pub mod metrics;
pub mod onboarding;
pub mod overview;
pub mod prevalence;
pub mod quiet;
pub mod registry;
pub mod regressions;
pub mod requirements;
pub mod rule;
pub mod rules;
pub mod sarif;
pub mod search;
pub mod session;
pub mod snapshots;
pub mod status;
pub mod steer;
pub mod subscribe;
pub mod tabs;
pub mod target;
pub mod target_documents;
pub mod target_findings;
pub mod targets;
pub mod theme;
pub mod timeline;
pub mod webhooks;
pub mod week;

use crate::error::Error;

/// What readers of a chart must know at a date: releases of the rules, changes of method, gaps of ours, and what is noted about
/// `scope`, such as `rule:a2a/name-required`.
async fn notes(state: &crate::WebState, scope: &str, from_s: i64) -> Result<Vec<(i64, String)>, Error> {
    let releases = state.store.releases(50).await?;
    // The first release is the beginning, which no chart reaches behind.
    let later = releases.iter().rev().skip(1).filter(|release| release.released_s >= from_s);
    let mut notes: Vec<(i64, String)> =
        later.map(|release| (release.released_s, format!("Ruleset {} came into force.", release.version))).collect();
    let annotations = state.store.annotations(from_s, scope).await?;
    notes.extend(annotations.into_iter().map(|note| (note.at_s, note.title)));
    Ok(notes)
}

/// A field of a query that names one word of a closed list; an empty field is none.
fn word<T: std::str::FromStr<Err = String>>(field: &'static str, value: Option<&str>) -> Result<Option<T>, Error> {
    let Some(value) = filled(value) else { return Ok(None) };
    value
        .parse()
        .map(Some)
        .map_err(|reason: String| Error::BadQuery { field, reason: format!("cannot be read: {reason}") })
}

/// A field of a query that holds a whole number; an empty field is none.
pub(crate) fn number(field: &'static str, value: Option<&str>) -> Result<Option<i64>, Error> {
    let Some(value) = filled(value) else { return Ok(None) };
    let wrong =
        |_| Error::BadQuery { field, reason: format!("is no whole number: “{}”", crate::text::visible(value, 40)) };
    value.parse().map(Some).map_err(wrong)
}

/// A field of a query without the space around it; an empty field is none.
fn filled(value: Option<&str>) -> Option<&str> {
    value.map(str::trim).filter(|value| !value.is_empty())
}
