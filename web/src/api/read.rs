//! What is read through the API. Each handler asks the store one question.

use axum::Json;
use axum::extract::{Path, Query, State};
use plumbline_rules::catalogue;
use plumbline_rules::rule::{Basis, Rule};
use plumbline_store::audit::AuditRow;
use plumbline_store::deploys::{DeployFinding, DeployRow};
use plumbline_store::query::{self, Completion, Field};
use plumbline_store::views as v;
use plumbline_store::views::{Position, TargetOrder};
use plumbline_store::words::{EventKind, Impact, Severity};
use plumbline_store::{DeployId, TargetId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Page;
use crate::WebState;
use crate::error::Error;
use crate::operator::Operator;
use crate::text;

type Listed<T> = Result<Json<Page<T>>, Error>;
type One<T> = Result<Json<T>, Error>;

/// Parameters that lists share.
#[derive(Debug, Default, Deserialize)]
pub struct Asked {
    q: Option<String>,
    sort: Option<String>,
    cursor: Option<String>,
    limit: Option<String>,
    days: Option<String>,
    day: Option<String>,
    cohort: Option<String>,
    entity: Option<String>,
}

/// A rule with its present share.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RuleFacts {
    /// `family/kebab-name`.
    pub rule: String,
    /// What it demands.
    pub title: String,
    /// Why it matters, in paragraphs.
    pub why: Vec<String>,
    /// Of the rule in general.
    pub severity: Severity,
    /// What released clients do; null where that is not known.
    pub impact: Option<Impact>,
    /// Where the demand comes from.
    pub basis: Basis,
    /// Tagged security.
    pub is_security: bool,
    /// The section that asks for it.
    pub spec: String,
    /// What to do.
    pub fix: String,
    /// Raised when its condition changes.
    pub version: u32,
    /// The revisions it is about; `all` is every one.
    pub versions: Vec<String>,
    /// Surfaces where it passed or fired when last looked at; null: it was never judged here.
    pub evaluated: Option<i64>,
    /// Of these, with an open finding; for a fact, where it is set.
    pub failing: Option<i64>,
}

/// A deploy with what it did.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DeployWhole {
    /// The deploy.
    pub deploy: DeployRow,
    /// What it opened and mended.
    pub findings: Vec<DeployFinding>,
}

/// A shared outage with who was in it.
#[derive(Debug, Serialize, JsonSchema)]
pub struct IncidentWhole {
    /// The outage.
    pub incident: v::IncidentRow,
    /// Who was in it.
    pub members: Vec<v::MemberRow>,
}

impl Asked {
    fn limit(&self) -> Result<i64, Error> {
        let limit = crate::pages::number("limit", self.limit.as_deref())?.unwrap_or(50);
        if (1..=200).contains(&limit) {
            Ok(limit)
        } else {
            Err(Error::BadQuery { field: "limit", reason: "is not between 1 and 200".to_owned() })
        }
    }

    fn days(&self) -> Result<i64, Error> {
        let days = crate::pages::number("days", self.days.as_deref())?.unwrap_or(365);
        if (1..=3_660).contains(&days) {
            Ok(days)
        } else {
            Err(Error::BadQuery { field: "days", reason: "is not between 1 and 3660".to_owned() })
        }
    }

    /// A cursor that is one number; without one the end of all numbers.
    fn before(&self) -> Result<i64, Error> {
        before(self.cursor.as_deref())
    }
}

/// The number that a list goes on before; without a cursor it begins with the newest.
pub(super) fn before(cursor: Option<&str>) -> Result<i64, Error> {
    cursor.map_or(Ok(i64::MAX), |cursor| cursor.parse().map_err(|_| bad_cursor()))
}

fn bad_cursor() -> Error {
    Error::BadQuery { field: "cursor", reason: "is none that this list gave out".to_owned() }
}

fn whole<T>(items: Vec<T>) -> Json<Page<T>> {
    Json(Page { items, next: None })
}

/// Cuts a list that was asked for with one more than `limit`.
fn cut<T>(mut items: Vec<T>, limit: i64, cursor: impl Fn(&T) -> String) -> Json<Page<T>> {
    let has_more = items.len() as i64 > limit;
    items.truncate(usize::try_from(limit).unwrap_or(0));
    let next = items.last().filter(|_| has_more).map(cursor);
    Json(Page { items, next })
}

fn missing(what: &'static str, asked: impl std::fmt::Display + Copy) -> Error {
    Error::NotFound { what, asked: asked.to_string() }
}

/// `GET /api/v1/audit`: not for everybody, unlike the rest.
pub async fn audit(_: Operator, State(state): State<WebState>, Query(asked): Query<Asked>) -> Listed<AuditRow> {
    let limit = asked.limit()?;
    let entity = asked.entity.as_deref().filter(|entity| !entity.is_empty());
    let rows = state.store.noted(asked.before()?, entity, limit + 1).await?;
    Ok(cut(rows, limit, |row| row.id.to_string()))
}

pub async fn targets(State(state): State<WebState>, Query(asked): Query<Asked>) -> Listed<v::TargetRow> {
    let filter = query::parse(asked.q.as_deref().unwrap_or_default())?.filter((state.now)())?;
    let order = match asked.sort.as_deref().unwrap_or("headline") {
        "headline" => TargetOrder::Headline,
        "changed" => TargetOrder::Changed,
        "name" => TargetOrder::Name,
        other => {
            let reason = format!("is none of headline, changed, name: “{}”", text::visible(other, 40));
            return Err(Error::BadQuery { field: "sort", reason });
        }
    };
    let limit = asked.limit()?;
    let after = asked.cursor.as_deref().map_or(Ok(Position::start()), position)?;
    let counts = state.store.target_counts(&filter).await?;
    let matching = counts.iter().map(|count| count.targets).sum();
    let rows = state.store.targets_page(&filter, order, &after, matching, limit + 1).await?;
    Ok(cut(rows, limit, |row| {
        let last = row.position();
        format!("{}~{}~{}~{}", last.rank, last.changed_s, last.id, last.name)
    }))
}

fn position(cursor: &str) -> Result<Position, Error> {
    let parts: Vec<&str> = cursor.splitn(4, '~').collect();
    let number = |n: usize| parts.get(n).and_then(|part| part.parse::<i64>().ok()).ok_or_else(bad_cursor);
    let name = parts.get(3).ok_or_else(bad_cursor)?;
    Ok(Position { rank: number(0)?, changed_s: number(1)?, id: number(2)?, name: (*name).to_owned() })
}

pub async fn target(State(state): State<WebState>, Path(id): Path<i64>) -> One<v::TargetDetail> {
    state.store.target(id).await?.map(Json).ok_or_else(|| missing("target", id))
}

async fn known(state: &WebState, id: i64) -> Result<(), Error> {
    state.store.target(id).await?.map(|_| ()).ok_or_else(|| missing("target", id))
}

pub async fn surfaces(State(state): State<WebState>, Path(id): Path<i64>) -> Listed<v::SurfaceRow> {
    known(&state, id).await?;
    Ok(whole(state.store.target_surfaces(id).await?))
}

pub async fn target_findings(State(state): State<WebState>, Path(id): Path<i64>) -> Listed<v::FindingRow> {
    known(&state, id).await?;
    Ok(whole(state.store.target_findings(id).await?))
}

pub async fn spans(State(state): State<WebState>, Path(id): Path<i64>) -> Listed<v::FindingSpan> {
    known(&state, id).await?;
    Ok(whole(state.store.target_finding_spans(id, 1_000).await?))
}

pub async fn documents(State(state): State<WebState>, Path(id): Path<i64>) -> Listed<v::DocumentSpan> {
    known(&state, id).await?;
    Ok(whole(state.store.target_document_spans(id, 500).await?))
}

pub async fn reach(State(state): State<WebState>, Path(id): Path<i64>) -> Listed<v::ReachSpan> {
    known(&state, id).await?;
    Ok(whole(state.store.target_reach_spans(id, 500).await?))
}

pub async fn facts(State(state): State<WebState>, Path(id): Path<i64>) -> Listed<v::FactRow> {
    known(&state, id).await?;
    Ok(whole(state.store.target_facts(id).await?))
}

pub async fn listings(State(state): State<WebState>, Path(id): Path<i64>) -> Listed<v::ListingRow> {
    known(&state, id).await?;
    Ok(whole(state.store.target_listings(id, 200).await?.0))
}

pub async fn target_deploys(State(state): State<WebState>, Path(id): Path<i64>) -> Listed<DeployRow> {
    known(&state, id).await?;
    Ok(whole(state.store.deploys(Some(TargetId(id)), None, 200).await?))
}

pub async fn finding(State(state): State<WebState>, Path(id): Path<i64>) -> One<v::FindingDetail> {
    state.store.finding(id).await?.map(Json).ok_or_else(|| missing("finding", id))
}

pub async fn regressions(State(state): State<WebState>, Query(asked): Query<Asked>) -> Listed<v::FeedRow> {
    let limit = asked.limit()?;
    let rows = state.store.finding_feed(EventKind::FindingRegressed, 0, asked.before()?, limit + 1).await?;
    Ok(cut(rows, limit, |row| row.event.to_string()))
}

async fn found(state: &WebState, hash: &str) -> Result<v::DocumentRow, Error> {
    state.store.document_of_hash(&hash.to_ascii_lowercase()).await?.ok_or_else(|| missing("document", hash))
}

pub async fn document(State(state): State<WebState>, Path(hash): Path<String>) -> One<v::DocumentRow> {
    Ok(Json(found(&state, &hash).await?))
}

pub async fn served_by(State(state): State<WebState>, Path(hash): Path<String>) -> Listed<v::ServedBy> {
    let document = found(&state, &hash).await?;
    Ok(whole(state.store.document_served_by(&document, 200).await?))
}

fn facts_of(rule: &Rule, tallies: &[v::RuleTally]) -> RuleFacts {
    let tally = tallies.iter().find(|tally| tally.rule == rule.id);
    RuleFacts {
        rule: rule.id.to_owned(),
        title: rule.title(),
        why: rule.why(),
        severity: rule.severity,
        impact: rule.impact,
        basis: rule.basis,
        is_security: rule.security,
        spec: rule.spec.to_owned(),
        fix: rule.fix.to_owned(),
        version: rule.version,
        versions: rule.versions.iter().map(|version| (*version).to_owned()).collect(),
        evaluated: tally.map(|tally| tally.evaluated),
        failing: tally.map(|tally| tally.failing),
    }
}

pub async fn rules(State(state): State<WebState>) -> Listed<RuleFacts> {
    Ok(whole(all_rules(&state).await?))
}

/// Every rule with its present share.
pub(super) async fn all_rules(state: &WebState) -> Result<Vec<RuleFacts>, Error> {
    let tallies = state.store.rule_tallies().await?;
    Ok(catalogue::rules().map(|rule| facts_of(rule, &tallies)).collect())
}

pub async fn rule(State(state): State<WebState>, Path((family, name)): Path<(String, String)>) -> One<RuleFacts> {
    let id = format!("{family}/{name}");
    let rule = catalogue::find(&id).ok_or_else(|| missing("rule", id.as_str()))?;
    Ok(Json(facts_of(rule, &state.store.rule_tallies().await?)))
}

async fn cohort(state: &WebState, slug: &str) -> Result<i64, Error> {
    let cohorts = state.store.cohorts().await?;
    cohorts.iter().find(|one| one.slug == slug).map(|one| one.id).ok_or_else(|| missing("cohort", slug))
}

fn today(state: &WebState) -> i64 {
    (state.now)() / 86_400
}

pub async fn rule_days(
    State(state): State<WebState>,
    Path((family, name)): Path<(String, String)>,
    Query(asked): Query<Asked>,
) -> Listed<v::RuleDay> {
    let cohort = cohort(&state, asked.cohort.as_deref().unwrap_or("all")).await?;
    let from = today(&state) - asked.days()? + 1;
    Ok(whole(state.store.rule_in_cohort(cohort, &format!("{family}/{name}"), from).await?))
}

pub async fn failing(
    State(state): State<WebState>,
    Path((family, name)): Path<(String, String)>,
    Query(asked): Query<Asked>,
) -> Listed<v::FailingRow> {
    let id = format!("{family}/{name}");
    let limit = asked.limit()?;
    let Some(record) = state.store.rule_record(&id).await? else {
        return catalogue::find(&id).map(|_| whole(Vec::new())).ok_or_else(|| missing("rule", id.as_str()));
    };
    let after = match asked.cursor.as_deref() {
        None => (i64::MAX, 0),
        Some(cursor) => {
            let (surface, target) = cursor.split_once('~').ok_or_else(bad_cursor)?;
            (surface.parse().map_err(|_| bad_cursor())?, target.parse().map_err(|_| bad_cursor())?)
        }
    };
    let rows = state.store.failing(record.id, after, limit + 1).await?;
    Ok(cut(rows, limit, |row| format!("{}~{}", row.surface_id, row.target_id)))
}

pub async fn rulesets(State(state): State<WebState>) -> Listed<v::ReleaseRow> {
    Ok(whole(state.store.releases(200).await?))
}

pub async fn cohorts(State(state): State<WebState>) -> Listed<v::CohortRow> {
    Ok(whole(state.store.cohorts().await?))
}

pub async fn cohort_days(
    State(state): State<WebState>,
    Path(slug): Path<String>,
    Query(asked): Query<Asked>,
) -> Listed<v::CohortDay> {
    let cohort = cohort(&state, &slug).await?;
    Ok(whole(state.store.days_of_cohort(cohort, today(&state) - asked.days()? + 1).await?))
}

pub async fn prevalence(
    State(state): State<WebState>,
    Path(slug): Path<String>,
    Query(asked): Query<Asked>,
) -> Listed<v::Prevalence> {
    let cohort = cohort(&state, &slug).await?;
    let day = crate::pages::number("day", asked.day.as_deref())?.unwrap_or_else(|| today(&state));
    Ok(whole(state.store.prevalence(cohort, day).await?.map(|(_, rules)| rules).unwrap_or_default()))
}

/// `GET /api/v1/cohorts/{slug}/fixed-prevalence`
pub async fn fixed_prevalence(
    State(state): State<WebState>,
    Path(slug): Path<String>,
    Query(asked): Query<Asked>,
) -> Listed<v::FixedShare> {
    let cohort = cohort(&state, &slug).await?;
    let days = if asked.days.is_some() { asked.days()? } else { 30 };
    let shares = state.store.fixed_prevalence(cohort, today(&state) - days, (state.now)()).await?;
    Ok(whole(shares.to_vec()))
}

pub async fn conformance(
    State(state): State<WebState>,
    Path(slug): Path<String>,
    Query(asked): Query<Asked>,
) -> Listed<v::MustDay> {
    let cohort = cohort(&state, &slug).await?;
    Ok(whole(state.store.must_days(cohort, today(&state) - asked.days()? + 1).await?))
}

pub async fn crawls(State(state): State<WebState>, Query(asked): Query<Asked>) -> Listed<v::CrawlRow> {
    let limit = asked.limit()?;
    Ok(cut(state.store.crawls(asked.before()?, limit + 1).await?, limit, |row| row.id.to_string()))
}

pub async fn crawl(State(state): State<WebState>, Path(id): Path<i64>) -> One<v::CrawlRow> {
    state.store.crawl_row(id).await?.map(Json).ok_or_else(|| missing("crawl", id))
}

pub async fn sources(State(state): State<WebState>) -> Listed<v::SourceRow> {
    Ok(whole(state.store.sources_in_use().await?))
}

pub async fn deploys(State(state): State<WebState>, Query(asked): Query<Asked>) -> Listed<DeployRow> {
    let limit = asked.limit()?;
    let deploys = state.store.deploys(None, Some(asked.before()?), limit + 1).await?;
    Ok(cut(deploys, limit, |row| row.id.to_string()))
}

pub async fn deploy(State(state): State<WebState>, Path(id): Path<i64>) -> One<DeployWhole> {
    let (deploy, findings) = state.store.deploy(DeployId(id)).await?.ok_or_else(|| missing("deploy", id))?;
    Ok(Json(DeployWhole { deploy, findings }))
}

pub async fn incidents(State(state): State<WebState>, Query(asked): Query<Asked>) -> Listed<v::IncidentRow> {
    let limit = asked.limit()?;
    let incidents = state.store.incidents(Some(asked.before()?), limit + 1).await?;
    Ok(cut(incidents, limit, |row| row.id.to_string()))
}

pub async fn incident(State(state): State<WebState>, Path(id): Path<i64>) -> One<IncidentWhole> {
    let (incident, members) = state.store.incident(id).await?.ok_or_else(|| missing("incident", id))?;
    Ok(Json(IncidentWhole { incident, members }))
}

pub async fn annotations(State(state): State<WebState>) -> Listed<v::AnnotationRow> {
    Ok(whole(state.store.annotations((state.now)() - 366 * 86_400, "all").await?))
}

pub async fn completions(State(state): State<WebState>, Query(asked): Query<Asked>) -> Listed<Completion> {
    let text = asked.q.unwrap_or_default();
    let typed = text.rsplit(char::is_whitespace).next().unwrap_or_default().trim_start_matches('-');
    let prefix = typed.split_once(':').map(|(_, value)| value.to_lowercase()).unwrap_or_default();
    let groups = match typed.split_once(':').and_then(|(name, _)| Field::named(name)) {
        Some(Field::Owner) => state.store.owners_like(&prefix, 50).await?,
        Some(Field::Host) => state.store.hosts_like(&prefix, 50).await?,
        Some(Field::Tag) => state.store.tags_like(&prefix, 50).await?,
        _ => Vec::new(),
    };
    let cohorts = state.store.cohorts().await?;
    let mut items = query::complete(&text, |field, typed| match field {
        Field::Rule | Field::Fact => {
            let is_fact = field == Field::Fact;
            let rules = catalogue::rules().filter(|rule| (rule.class == plumbline_rules::rule::Class::Fact) == is_fact);
            rules.map(|rule| rule.id.to_owned()).filter(|id| id.starts_with(typed)).collect()
        }
        Field::Cohort => cohorts.iter().map(|cohort| cohort.slug.clone()).collect(),
        Field::Tag => groups
            .iter()
            .map(|one| if one.name.is_empty() { one.slug.clone() } else { format!("{}={}", one.slug, one.name) })
            .collect(),
        _ => groups.iter().map(|one| one.slug.clone()).collect(),
    });
    items.truncate(50);
    Ok(whole(items))
}
