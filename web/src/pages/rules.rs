//! `/rules`: what we check, by family, with the share that fails now. Made from the statics, so the page cannot lie.

use std::collections::HashMap;

use askama::Template;
use axum::extract::{Query, State};
use axum::response::Response;
use plumbline_rules::catalogue;
use plumbline_rules::coverage::{self, Source};
use plumbline_rules::rule::{Axis, Class, Impact, Rule, Severity};
use plumbline_store::views::RuleTally;
use serde::{Deserialize, Serialize};

use super::{filled, word};
use crate::WebState;
use crate::cache::Cache;
use crate::error::Error;
use crate::filters;
use crate::page::{Frame, Place, Visit};
use crate::text;
use crate::words;

/// The fields of the form.
#[derive(Debug, Default, Deserialize)]
pub struct Asked {
    q: Option<String>,
    family: Option<String>,
    severity: Option<String>,
    impact: Option<String>,
    security: Option<String>,
    version: Option<String>,
    seed: Option<String>,
}

/// The catalogue.
#[derive(Template, Serialize)]
#[template(path = "rules.html")]
struct RulesPage {
    #[serde(skip)]
    frame: Frame,
    /// The moment the shares hold for, in Unix seconds.
    as_of_s: i64,
    /// The answer in one sentence.
    answer: String,
    /// The revision of the catalogue.
    revision: &'static str,
    /// Rules in all, before any filter.
    all: usize,
    /// The rules that match, by family in catalogue order.
    families: Vec<Family>,
    #[serde(skip)]
    asked: Asked,
}

/// A family and its rules that match.
#[derive(Serialize)]
struct Family {
    /// `a2a`, `common`, …
    slug: &'static str,
    /// Its rules, in the order they run.
    rules: Vec<RuleRow>,
}

/// One rule in the list.
#[derive(Serialize)]
struct RuleRow {
    /// `family/kebab-name`.
    id: &'static str,
    /// What it demands.
    title: String,
    /// `finding`, `fact`, or `state` for rules of axis reach and detection.
    class: &'static str,
    /// Of the rule in general.
    severity: Severity,
    /// What released clients do about a failure.
    impact: Option<Impact>,
    /// Tagged security.
    is_security: bool,
    /// The revisions it is about.
    versions: &'static [&'static str],
    /// The section that asks for it.
    spec: &'static str,
    /// Surfaces where it passed or fired when last looked at; `None`: never judged here.
    evaluated: Option<i64>,
    /// Of these, with an open finding; for a fact, where it is set.
    failing: Option<i64>,
}

/// `GET /rules`
pub async fn show(visit: Visit, State(state): State<WebState>, Query(asked): Query<Asked>) -> Result<Response, Error> {
    // Pages say hint, and so may who asks.
    let severity = match filled(asked.severity.as_deref()) {
        Some("hint") => Some(Severity::Info),
        asked => word::<Severity>("severity", asked)?,
    };
    let impact = word::<Impact>("impact", asked.impact.as_deref())?;
    let seed = word::<Source>("seed", asked.seed.as_deref())?;
    let version = filled(asked.version.as_deref());
    if version.is_some_and(|version| !versions().contains(&version)) {
        return Err(Error::BadQuery { field: "version", reason: format!("is none of {}", versions().join(", ")) });
    }
    let tallies: HashMap<String, RuleTally> =
        state.store.rule_tallies().await?.into_iter().map(|tally| (tally.rule.clone(), tally)).collect();
    let matches = |rule: &&'static Rule| {
        severity.is_none_or(|severity| rule.severity == severity)
            && impact.is_none_or(|impact| rule.impact == Some(impact))
            && filled(asked.family.as_deref()).is_none_or(|family| rule.family() == family)
            && version.is_none_or(|version| rule.versions.contains(&version) || rule.versions.contains(&"all"))
            && seed.is_none_or(|seed| coverage::of(rule).any(|row| row.source == seed))
            && (filled(asked.security.as_deref()).is_none() || rule.security)
            && filled(asked.q.as_deref()).is_none_or(|q| says(rule, q))
    };
    let mut families: Vec<Family> = Vec::new();
    for rule in catalogue::rules().filter(matches) {
        let row = row(rule, tallies.get(rule.id));
        match families.iter_mut().find(|family| family.slug == rule.family()) {
            Some(family) => family.rules.push(row),
            None => families.push(Family { slug: rule.family(), rules: vec![row] }),
        }
    }
    let page = RulesPage {
        frame: visit.framed(Place::Rules),
        as_of_s: visit.now,
        answer: answer(&families),
        revision: catalogue::revision(),
        all: catalogue::rules().count(),
        families,
        asked,
    };
    visit.answer(&page, Cache::Fresh)
}

/// The revisions that rules name, in the order of the catalogue.
fn versions() -> Vec<&'static str> {
    let mut versions = Vec::new();
    for version in catalogue::rules().flat_map(|rule| rule.versions).filter(|version| **version != "all") {
        if !versions.contains(version) {
            versions.push(version);
        }
    }
    versions
}

/// Whether id, documentation, fix or names in published catalogues contain what was asked for.
fn says(rule: &Rule, asked: &str) -> bool {
    let asked = asked.to_lowercase();
    [rule.id, rule.doc, rule.fix, rule.spec].iter().chain(rule.seeds).any(|text| text.to_lowercase().contains(&asked))
}

fn row(rule: &'static Rule, tally: Option<&RuleTally>) -> RuleRow {
    RuleRow {
        id: rule.id,
        title: rule.title(),
        class: class(rule),
        severity: rule.severity,
        impact: rule.impact,
        is_security: rule.security,
        versions: rule.versions,
        spec: rule.spec,
        evaluated: tally.map(|tally| tally.evaluated),
        failing: tally.map(|tally| tally.failing),
    }
}

/// Whether a rule accuses, describes, or says how far we came.
pub(super) fn class(rule: &Rule) -> &'static str {
    match (rule.axis, rule.class) {
        (Axis::Reach | Axis::Detection, _) => "state",
        (Axis::Conformity, Class::Fact) => "fact",
        (Axis::Conformity, Class::Finding) => "finding",
    }
}

/// How a family is called.
pub(super) fn family_words(slug: &str) -> &str {
    match slug {
        "a2a" => "A2A",
        "mcp" => "MCP",
        "oauth" => "OAuth",
        "openapi" => "OpenAPI",
        "registry" => "MCP registry",
        "common" => "Every document",
        other => other,
    }
}

fn answer(families: &[Family]) -> String {
    let rules = || families.iter().flat_map(|family| &family.rules);
    let count = |severity| rules().filter(|rule| rule.class == "finding" && rule.severity == severity).count() as i64;
    let facts = rules().filter(|rule| rule.class == "fact").count() as i64;
    let states = rules().filter(|rule| rule.class == "state").count() as i64;
    let all = rules().count() as i64;
    if all == 0 {
        return "No rule matches.".to_owned();
    }
    let parts: Vec<String> = [
        (count(Severity::Error), "error", "errors"),
        (count(Severity::Warning), "warning", "warnings"),
        (count(Severity::Info), "hint", "hints"),
        (facts, "attribute", "attributes"),
        (states, "state", "states"),
    ]
    .into_iter()
    .filter(|(n, ..)| *n > 0)
    .map(|(n, one, many)| text::counted(n, one, many))
    .collect();
    format!("{}: {}.", text::counted(all, "rule", "rules"), text::listed(&parts))
}

impl RulesPage {
    fn value<'a>(&'a self, field: &'a Option<String>) -> &'a str {
        filled(field.as_deref()).unwrap_or_default()
    }

    /// Families on offer: slug, words, whether it is the chosen one.
    fn family_choices(&self) -> Vec<(&'static str, &'static str, bool)> {
        let mut slugs: Vec<&'static str> = Vec::new();
        for rule in catalogue::rules() {
            if !slugs.contains(&rule.family()) {
                slugs.push(rule.family());
            }
        }
        slugs.into_iter().map(|slug| (slug, family_words(slug), self.asked.family.as_deref() == Some(slug))).collect()
    }

    fn severities(&self) -> Vec<(&'static str, &'static str, bool)> {
        let all = [Severity::Error, Severity::Warning, Severity::Info];
        all.map(|s| (s.as_str(), words::severity(s), self.is_severity(s))).to_vec()
    }

    /// Whether fewer than all rules are asked for, so that nobody has to look for them in a family.
    fn is_narrowed(&self) -> bool {
        self.families.iter().map(|family| family.rules.len()).sum::<usize>() < self.all
    }

    fn is_severity(&self, severity: Severity) -> bool {
        let asked = self.asked.severity.as_deref().map(|word| if word == "hint" { "info" } else { word });
        asked == Some(severity.as_str())
    }

    fn impacts(&self) -> Vec<(&'static str, &'static str, bool)> {
        let all = [Impact::BreaksClients, Impact::Degrades, Impact::Cosmetic];
        all.map(|i| (i.as_str(), words::impact(i), self.asked.impact.as_deref() == Some(i.as_str()))).to_vec()
    }

    /// Revisions on offer, and whether each is the chosen one.
    fn version_choices(&self) -> Vec<(&'static str, bool)> {
        let chosen = self.asked.version.as_deref();
        versions().into_iter().map(|version| (version, chosen == Some(version))).collect()
    }

    /// Published catalogues on offer: word, name, whether it is the chosen one.
    fn seed_choices(&self) -> Vec<(&'static str, &'static str, bool)> {
        let chosen = self.asked.seed.as_deref();
        Source::ALL.iter().map(|one| (one.as_str(), one.named(), chosen == Some(one.as_str()))).collect()
    }

    fn is_security(&self) -> bool {
        filled(self.asked.security.as_deref()).is_some()
    }

    fn family(&self, slug: &str) -> String {
        family_words(slug).to_owned()
    }
}

impl RuleRow {
    /// The failing share, or why there is none.
    fn share(&self) -> String {
        match (self.evaluated, self.failing) {
            (None | Some(0), _) => "not judged yet".to_owned(),
            (Some(evaluated), failing) => text::share(failing.unwrap_or(0), evaluated),
        }
    }

    fn of(&self) -> String {
        match (self.failing, self.evaluated) {
            (Some(failing), Some(evaluated)) if evaluated > 0 => {
                format!("{} of {}", text::number(failing), text::number(evaluated))
            }
            _ => String::new(),
        }
    }

    fn versions(&self) -> String {
        if self.versions == ["all"] { "every".to_owned() } else { self.versions.join(", ") }
    }
}
