//! `/search?q`: jump to a target, a rule, an owner, a host, a tag or a document.

use askama::Template;
use axum::extract::{Query, State};
use axum::response::{IntoResponse, Redirect, Response};
use plumbline_rules::catalogue;
use plumbline_rules::rule::Severity;
use plumbline_store::query;
use plumbline_store::views::{GroupRow, Position, TargetOrder, TargetRow};
use serde::{Deserialize, Serialize};

use super::filled;
use crate::WebState;
use crate::cache::Cache;
use crate::error::Error;
use crate::filters;
use crate::page::{Frame, Place, Visit};
use crate::text;

/// Hits of each group.
const HITS: usize = 10;

/// What is searched for.
#[derive(Debug, Default, Deserialize)]
pub struct Asked {
    q: Option<String>,
}

impl Asked {
    /// What is searched for, without the space around it.
    pub fn text(&self) -> &str {
        filled(self.q.as_deref()).unwrap_or_default()
    }
}

/// Hits by what they are.
#[derive(Template, Serialize)]
#[template(path = "search.html")]
struct Search {
    #[serde(skip)]
    frame: Frame,
    /// The moment the page holds for, in Unix seconds.
    as_of_s: i64,
    /// The answer in one sentence.
    answer: String,
    /// What was searched for.
    query: String,
    /// Targets, blocked first.
    targets: Vec<TargetRow>,
    /// How many targets match in all.
    matching: i64,
    /// Rules whose id or title holds every word.
    rules: Vec<RuleHit>,
    /// Owners whose slug begins so.
    owners: Vec<GroupRow>,
    /// Hosts whose name begins so.
    hosts: Vec<GroupRow>,
    /// Tags whose key begins so.
    tags: Vec<GroupRow>,
}

/// A rule that was found.
#[derive(Serialize)]
struct RuleHit {
    /// `family/kebab-name`.
    rule: &'static str,
    /// What it demands.
    title: String,
    /// Of the rule in general.
    severity: Severity,
}

/// `GET /search`
pub async fn show(visit: Visit, State(state): State<WebState>, Query(asked): Query<Asked>) -> Result<Response, Error> {
    let text = asked.text().to_owned();
    if let Some(url) = jump(&state, &text).await? {
        return Ok(Redirect::to(&url).into_response());
    }
    let query = query::parse(&text)?;
    if !query.terms.is_empty() {
        return Ok(Redirect::to(&format!("/targets?q={}", text::query_escaped(&text))).into_response());
    }
    let store = &state.store;
    let prefix = text.to_lowercase();
    let is_long = prefix.chars().count() >= 2;
    let filter = query.filter(visit.now)?;
    let counts = if is_long { store.target_counts(&filter).await? } else { Vec::new() };
    let matching: i64 = counts.iter().map(|count| count.targets).sum();
    let (order, limit) = (TargetOrder::Headline, HITS as i64);
    let targets = if matching > 0 {
        store.targets_page(&filter, order, &Position::start(), matching, limit).await?
    } else {
        Vec::new()
    };
    let (mut owners, mut hosts, mut tags) = Default::default();
    if is_long {
        let found: Vec<i64> = targets.iter().map(|target| target.id).collect();
        owners = joined(store.owners_like(&prefix, limit).await?, store.owners_of(&found).await?, &prefix);
        hosts = joined(store.hosts_like(&prefix, limit).await?, store.hosts_of(&found).await?, &prefix);
        tags = store.tags_like(&prefix, limit).await?;
    }
    let rules = if is_long { rules(&prefix) } else { Vec::new() };
    let mut frame = visit.framed(Place::Elsewhere);
    frame.search = text.clone();
    let page = Search {
        frame,
        as_of_s: visit.now,
        answer: answer(&text, matching, &rules, owners.len() + hosts.len() + tags.len()),
        query: text,
        targets,
        matching,
        rules,
        owners,
        hosts,
        tags,
    };
    visit.answer(&page, Cache::Fresh)
}

/// What is meant by itself: a rule's id, a document's hash, the number of a target.
async fn jump(state: &WebState, text: &str) -> Result<Option<String>, Error> {
    if catalogue::find(text).is_some() {
        return Ok(Some(format!("/rules/{text}")));
    }
    let is_hash = text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_hash && state.store.document_of_hash(&text.to_ascii_lowercase()).await?.is_some() {
        return Ok(Some(format!("/documents/{}", text.to_ascii_lowercase())));
    }
    Ok(None)
}

/// What begins with the text itself, then of what is behind the targets that were found whatever has a word that begins so:
/// `acme` leads to `io.github.acme`.
fn joined(begins: Vec<GroupRow>, behind: Vec<GroupRow>, text: &str) -> Vec<GroupRow> {
    let has_word = |row: &GroupRow| {
        row.slug.to_lowercase().split(|c: char| !c.is_alphanumeric()).any(|word| word.starts_with(text))
    };
    let more = behind.into_iter().filter(|row| has_word(row) && !begins.contains(row)).collect::<Vec<_>>();
    begins.into_iter().chain(more).take(HITS).collect()
}

fn rules(text: &str) -> Vec<RuleHit> {
    let words: Vec<&str> = text.split_whitespace().collect();
    catalogue::rules()
        .filter(|rule| {
            let title = rule.title().to_lowercase();
            !words.is_empty() && words.iter().all(|word| rule.id.contains(word) || title.contains(word))
        })
        .take(HITS)
        .map(|rule| RuleHit { rule: rule.id, title: rule.title(), severity: rule.severity })
        .collect()
}

fn answer(text: &str, matching: i64, rules: &[RuleHit], groups: usize) -> String {
    let shown = text::visible(text, 60);
    if text.chars().count() < 2 {
        return "Search for a name, a host, an owner or a rule.".to_owned();
    }
    if matching == 0 && rules.is_empty() && groups == 0 {
        return format!("Nothing begins with “{shown}”.");
    }
    let mut parts = Vec::new();
    if matching > 0 {
        parts.push(text::counted(matching, "target", "targets"));
    }
    if !rules.is_empty() {
        parts.push(text::counted(rules.len() as i64, "rule", "rules"));
    }
    if groups > 0 {
        parts.push(text::counted(groups as i64, "owner, host or tag", "owners, hosts and tags"));
    }
    format!("“{shown}” leads to {}.", text::listed(&parts))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_is_found_by_any_word_of_its_name() {
        let group = |slug: &str| GroupRow { slug: slug.to_owned(), name: slug.to_owned() };
        let behind = vec![group("io.github.acme"), group("io.github.other"), group("acme-tides")];
        let found = joined(vec![group("acme-tides")], behind, "acme");
        assert_eq!(found, [group("acme-tides"), group("io.github.acme")]);
    }
}
