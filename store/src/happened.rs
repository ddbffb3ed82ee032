//! An event with everything a reader of it needs: whom it is about, what the rule demands, where it fires.
//!
//! Read when the event is told, not when it happened: an event is a number and some pointers, the rest has one place.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use sqlx::any::AnyRow;
use sqlx::{AssertSqlSafe, Row};

use crate::Store;
use crate::error::{Error, Result};
use crate::events::Event;
use crate::judged::Occurrence;
use crate::rows::{in_statements, places, word, word_or_none};
use crate::words::{
    Basis, Cause, EventKind, FindingState, Headline, Impact, Known, OpenedAs, ReachState, Resolution, Severity,
    SurfaceKind, TargetKind,
};

/// An event and what it is about. What is not there any more, or never was, is `None`.
#[derive(Debug, Clone, PartialEq)]
pub struct Happened {
    /// The event.
    pub event: Event,
    /// The target.
    pub target: Option<AboutTarget>,
    /// The surface.
    pub surface: Option<AboutSurface>,
    /// The rule.
    pub rule: Option<AboutRule>,
    /// The finding.
    pub finding: Option<AboutFinding>,
    /// Where it fires or fired last.
    pub places: Vec<Occurrence>,
    /// Hashes of the documents before and after, in hex, of `document.changed` and of openings by a document.
    pub documents: (Option<String>, Option<String>),
    /// The deploy that it is put down to, or that it is about.
    pub deploy: Option<AboutDeploy>,
    /// The incident that the surface is in, or that it is about.
    pub incident: Option<AboutIncident>,
    /// The receiver that it is about.
    pub webhook: Option<String>,
    /// The crawl that it is about.
    pub crawl: Option<AboutCrawl>,
    /// Rules that fire on the surface now, with what clients do about that; of events about findings.
    pub firing: Vec<(String, Option<Impact>)>,
    /// What matchers read of everybody it is about: of all targets that show the surface, where it is not the one above
    /// alone, or of those that an incident has struck.
    pub shown: Facts,
}

/// A target as messages name it.
#[derive(Debug, Clone, PartialEq)]
pub struct AboutTarget {
    /// Its number.
    pub id: i64,
    /// Registry name, or host and path of the card.
    pub key: String,
    /// As shown.
    pub name: String,
    /// What it is.
    pub kind: TargetKind,
    /// Who stands behind it.
    pub owner: Option<String>,
    /// Its host.
    pub host: Option<String>,
    /// The source it was first seen in.
    pub source: String,
    /// `key=value`, or the key alone.
    pub tags: Vec<String>,
    /// Cohorts it belongs to, everything and the kinds left out.
    pub cohorts: Vec<String>,
    /// Whether it can be reached.
    pub reach: ReachState,
    /// Its word.
    pub headline: Headline,
    /// Since when, in Unix seconds.
    pub headline_since_s: Option<i64>,
}

/// A surface as messages name it.
#[derive(Debug, Clone, PartialEq)]
pub struct AboutSurface {
    /// Its number.
    pub id: i64,
    /// What it is.
    pub kind: SurfaceKind,
    /// Where it is fetched.
    pub url: String,
    /// Its host.
    pub host: Option<String>,
    /// The revision it was judged as.
    pub profile: Option<String>,
    /// How that is known.
    pub known: Option<Known>,
    /// Its word.
    pub headline: Headline,
    /// Open errors.
    pub n_error: i64,
    /// Open warnings.
    pub n_warn: i64,
    /// Whether it can be reached.
    pub reach: ReachState,
    /// Why not.
    pub reach_reason: Option<String>,
    /// Since when, in Unix seconds.
    pub reach_since_s: Option<i64>,
    /// Equal outcomes in a row.
    pub streak: i64,
}

/// A rule as messages name it.
#[derive(Debug, Clone, PartialEq)]
pub struct AboutRule {
    /// Its name.
    pub slug: String,
    /// Its family.
    pub family: String,
    /// Its title.
    pub title: String,
    /// Its version.
    pub version: i64,
    /// Its severity.
    pub severity: Severity,
    /// Its impact.
    pub impact: Option<Impact>,
    /// Tagged security.
    pub is_security: bool,
    /// What it rests on.
    pub basis: Basis,
}

/// A finding as messages name it.
#[derive(Debug, Clone, PartialEq)]
pub struct AboutFinding {
    /// Its number.
    pub id: i64,
    /// Its state now.
    pub state: FindingState,
    /// As what it opened last.
    pub opened_as: Option<OpenedAs>,
    /// What moved.
    pub cause: Option<Cause>,
    /// How it ended last.
    pub resolution: Option<Resolution>,
    /// Of its worst occurrence.
    pub severity: Severity,
    /// What clients do.
    pub impact: Option<Impact>,
    /// First time it fired, in Unix seconds.
    pub first_seen_s: i64,
    /// Start of its last span, in Unix seconds.
    pub opened_s: Option<i64>,
    /// End of its last span, in Unix seconds.
    pub closed_s: Option<i64>,
    /// End of the span before, in Unix seconds.
    pub previously_resolved_s: Option<i64>,
    /// How many places.
    pub occurrences: i64,
    /// Grows with every change.
    pub revision: i64,
    /// A waiver covers it.
    pub is_waived: bool,
    /// How sure the deploy is.
    pub confidence: Option<String>,
}

/// A deploy as messages name it.
#[derive(Debug, Clone, PartialEq)]
pub struct AboutDeploy {
    /// Its number.
    pub id: i64,
    /// When, in Unix seconds.
    pub at_s: i64,
    /// What it calls itself.
    pub version: Option<String>,
    /// JSON list of what gave it away.
    pub signals: String,
    /// How it went.
    pub outcome: Option<String>,
}

/// An incident as messages name it.
#[derive(Debug, Clone, PartialEq)]
pub struct AboutIncident {
    /// Its number.
    pub id: i64,
    /// `host`, `prefix`, `certificate`, `ours`.
    pub cause: String,
    /// What its members share.
    pub shared: String,
    /// How many surfaces.
    pub members: i64,
    /// Began, in Unix seconds.
    pub opened_s: i64,
    /// Ended, in Unix seconds.
    pub closed_s: Option<i64>,
}

/// A crawl as messages name it.
#[derive(Debug, Clone, PartialEq)]
pub struct AboutCrawl {
    /// Its number.
    pub id: i64,
    /// What it was.
    pub kind: String,
    /// The source that was walked, by name.
    pub source: Option<String>,
    /// Surfaces that were to be looked at.
    pub planned: i64,
    /// Of these, looked at.
    pub done: i64,
    /// Failures of ours.
    pub faults: i64,
    /// Findings that opened.
    pub opened: i64,
    /// Findings that ended.
    pub resolved: i64,
    /// Of those that opened: worked before.
    pub regressed: i64,
}

impl Store {
    /// Everything that a reader of this event needs.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn happened(&self, event: Event) -> Result<Happened> {
        let word = event.kind.as_str();
        let subject_of = |prefix: &str| event.subject.filter(|_| word.starts_with(prefix));
        let finding = match subject_of("finding.") {
            Some(id) => self.about_finding(id).await?,
            None => None,
        };
        let span = match &finding {
            Some(found) => self.last_span(found.id).await?,
            None => Span::default(),
        };
        let deploy = subject_of("deploy.").or(span.deploy);
        let documents = match word {
            "document.changed" => (event.a, event.b),
            _ => (span.before, span.document),
        };
        let mut happened = Happened {
            target: self.about_target(event.target.map(|id| id.0)).await?,
            surface: self.about_surface(event.surface.map(|id| id.0)).await?,
            rule: self.about_rule(event.rule.as_deref()).await?,
            places: match span.occ_set {
                Some(set) => self.occurrences(set).await?,
                None => Vec::new(),
            },
            documents: (self.hash_of(documents.0).await?, self.hash_of(documents.1).await?),
            deploy: self.about_deploy(deploy).await?,
            incident: self.about_incident(subject_of("incident."), event.surface.map(|id| id.0)).await?,
            webhook: self.webhook_slug(subject_of("webhook.")).await?,
            crawl: self.about_crawl(subject_of("crawl.")).await?,
            firing: match (&finding, event.surface) {
                (Some(_), Some(surface)) => self.firing_on(surface.0).await?,
                _ => Vec::new(),
            },
            shown: self.shown(&event).await?,
            finding,
            event,
        };
        if let Some(found) = &mut happened.finding {
            found.confidence = span.confidence;
            found.previously_resolved_s = span.previously_resolved_s;
        }
        Ok(happened)
    }

    /// What matchers read of everybody an event is about. Nothing where that is the one target it names.
    async fn shown(&self, event: &Event) -> Result<Facts> {
        let incident = event.subject.filter(|_| event.kind.as_str().starts_with("incident."));
        let Some(incident) = incident else {
            let Some(surface) = event.surface else { return Ok(Facts::default()) };
            let targets: Vec<i64> = sqlx::query_scalar(
                "SELECT target.id
                 FROM target_surface
                 JOIN target ON target.id = target_surface.target_id AND target.retired_s IS NULL
                 WHERE target_surface.surface_id = $1 AND target_surface.removed_s IS NULL
                 ORDER BY target.id",
            )
            .bind(surface.0)
            .fetch_all(&self.pools.reader)
            .await?;
            let is_alone = targets.iter().all(|target| event.target.is_some_and(|named| named.0 == *target));
            return if is_alone { Ok(Facts::default()) } else { self.facts_of_targets(&targets).await };
        };
        // Whoever has left it does not hear of it anew, but hears of its end.
        let with_those_who_left = i64::from(event.kind != EventKind::IncidentUpdated);
        let targets: Vec<i64> = sqlx::query_scalar(
            "SELECT DISTINCT target.id
             FROM incident_member
             JOIN target_surface ON target_surface.surface_id = incident_member.surface_id
                                AND target_surface.removed_s IS NULL
             JOIN target ON target.id = target_surface.target_id
             WHERE incident_member.incident_id = $1 AND ($2 = 1 OR incident_member.left_s IS NULL)
             ORDER BY target.id",
        )
        .bind(incident)
        .bind(with_those_who_left)
        .fetch_all(&self.pools.reader)
        .await?;
        let kinds: Vec<String> = sqlx::query_scalar(
            "SELECT DISTINCT surface.kind
             FROM incident_member
             JOIN surface ON surface.id = incident_member.surface_id
             WHERE incident_member.incident_id = $1 AND ($2 = 1 OR incident_member.left_s IS NULL)
             ORDER BY surface.kind",
        )
        .bind(incident)
        .bind(with_those_who_left)
        .fetch_all(&self.pools.reader)
        .await?;
        let mut facts = self.facts_of_targets(&targets).await?;
        facts.0.insert("surface".to_owned(), kinds);
        Ok(facts)
    }

    /// What matchers read of any of these targets, each word with all its values.
    async fn facts_of_targets(&self, targets: &[i64]) -> Result<Facts> {
        let mut words: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
        let mut put = |word, value: Option<String>| words.entry(word).or_default().extend(value);
        for some in in_statements(targets) {
            let places = places(1, some.len());
            let about = format!(
                "SELECT target.key, target.name, target.kind, target.reach, target.headline, owner.slug, host.name,
                        source.name
                 FROM target
                 JOIN source ON source.id = target.source_id
                 LEFT JOIN owner ON owner.id = target.owner_id
                 LEFT JOIN host ON host.id = target.host_id
                 WHERE target.id IN {places}"
            );
            for row in &self.rows_of(about, some).await? {
                let fields = ["target", "name", "kind", "reach", "headline", "owner", "host", "source"];
                for (n, field) in fields.into_iter().enumerate() {
                    put(field, row.try_get(n)?);
                }
                put("cohort", Some("all".to_owned()));
                put("cohort", row.try_get(2)?);
            }
            let tags = format!("SELECT DISTINCT key, value FROM tag WHERE target_id IN {places}");
            for row in &self.rows_of(tags, some).await? {
                put("tag", Some(tag(row)?));
            }
            let cohorts = format!(
                "SELECT DISTINCT cohort.slug
                 FROM cohort_member
                 JOIN cohort ON cohort.id = cohort_member.cohort_id
                 WHERE cohort_member.target_id IN {places}"
            );
            for row in &self.rows_of(cohorts, some).await? {
                put("cohort", row.try_get(0)?);
            }
        }
        let facts = words.into_iter().map(|(word, values)| (word.to_owned(), values.into_iter().collect()));
        Ok(Facts(facts.collect()))
    }

    async fn rows_of(&self, statement: String, ids: &[i64]) -> Result<Vec<AnyRow>> {
        let query = ids.iter().fold(sqlx::query(AssertSqlSafe(statement)), |query, id| query.bind(*id));
        Ok(query.fetch_all(&self.pools.reader).await?)
    }

    async fn about_target(&self, id: Option<i64>) -> Result<Option<AboutTarget>> {
        let Some(id) = id else { return Ok(None) };
        let row = sqlx::query(
            "SELECT target.id, target.key, target.name, target.kind, owner.slug, host.name, source.name, target.reach,
                    target.headline, target.headline_since_s
             FROM target
             JOIN source ON source.id = target.source_id
             LEFT JOIN owner ON owner.id = target.owner_id
             LEFT JOIN host ON host.id = target.host_id
             WHERE target.id = $1",
        )
        .bind(id)
        .fetch_optional(&self.pools.reader)
        .await?;
        let Some(row) = row else { return Ok(None) };
        let tags = sqlx::query("SELECT key, value FROM tag WHERE target_id = $1 ORDER BY key, value")
            .bind(id)
            .fetch_all(&self.pools.reader)
            .await?;
        let tags: Result<Vec<String>> = tags.iter().map(tag).collect();
        let cohorts: Vec<String> = sqlx::query_scalar(
            "SELECT cohort.slug FROM cohort_member JOIN cohort ON cohort.id = cohort_member.cohort_id
             WHERE cohort_member.target_id = $1 ORDER BY cohort.slug",
        )
        .bind(id)
        .fetch_all(&self.pools.reader)
        .await?;
        Ok(Some(AboutTarget {
            id: row.try_get(0)?,
            key: row.try_get(1)?,
            name: row.try_get(2)?,
            kind: word("target", row.try_get(3)?)?,
            owner: row.try_get(4)?,
            host: row.try_get(5)?,
            source: row.try_get(6)?,
            tags: tags?,
            cohorts,
            reach: word("target", row.try_get(7)?)?,
            headline: word("target", row.try_get(8)?)?,
            headline_since_s: row.try_get(9)?,
        }))
    }

    async fn about_surface(&self, id: Option<i64>) -> Result<Option<AboutSurface>> {
        let Some(id) = id else { return Ok(None) };
        let row = sqlx::query(
            "SELECT surface.id, kind, url, profile, known, headline, n_error, n_warn, reach, reach_reason, reach_since_s,
                    streak, host.name
             FROM surface
             LEFT JOIN host ON host.id = surface.host_id
             WHERE surface.id = $1",
        )
        .bind(id)
        .fetch_optional(&self.pools.reader)
        .await?;
        let Some(row) = row else { return Ok(None) };
        Ok(Some(AboutSurface {
            id: row.try_get(0)?,
            kind: word("surface", row.try_get(1)?)?,
            url: row.try_get(2)?,
            host: row.try_get(12)?,
            profile: row.try_get(3)?,
            known: word_or_none("surface", row.try_get(4)?)?,
            headline: word("surface", row.try_get(5)?)?,
            n_error: row.try_get(6)?,
            n_warn: row.try_get(7)?,
            reach: word("surface", row.try_get(8)?)?,
            reach_reason: row.try_get(9)?,
            reach_since_s: row.try_get(10)?,
            streak: row.try_get(11)?,
        }))
    }

    async fn about_rule(&self, slug: Option<&str>) -> Result<Option<AboutRule>> {
        let Some(slug) = slug else { return Ok(None) };
        let row = sqlx::query(
            "SELECT slug, family, title, version, severity, impact, security, basis FROM rule WHERE slug = $1",
        )
        .bind(slug)
        .fetch_optional(&self.pools.reader)
        .await?;
        let Some(row) = row else { return Ok(None) };
        Ok(Some(AboutRule {
            slug: row.try_get(0)?,
            family: row.try_get(1)?,
            title: row.try_get(2)?,
            version: row.try_get(3)?,
            severity: word("rule", row.try_get(4)?)?,
            impact: word_or_none("rule", row.try_get(5)?)?,
            is_security: row.try_get::<i64, _>(6)? != 0,
            basis: word("rule", row.try_get(7)?)?,
        }))
    }

    /// Rules that fire on a surface, confirmed, with the impact of what was found.
    async fn firing_on(&self, surface: i64) -> Result<Vec<(String, Option<Impact>)>> {
        let rows = sqlx::query(
            "SELECT rule.slug, finding.impact
             FROM finding
             JOIN rule ON rule.id = finding.rule_id
             WHERE finding.surface_id = $1 AND finding.state IN ('open', 'clearing', 'flapping')
             ORDER BY rule.slug",
        )
        .bind(surface)
        .fetch_all(&self.pools.reader)
        .await?;
        rows.iter().map(|row| Ok((row.try_get(0)?, word_or_none("finding", row.try_get(1)?)?))).collect()
    }

    async fn about_finding(&self, id: i64) -> Result<Option<AboutFinding>> {
        let row = sqlx::query(
            "SELECT id, state, opened_as, cause, resolution, severity, impact, first_seen_s, opened_s, closed_s,
                    occurrences, revision, waiver_id
             FROM finding WHERE id = $1",
        )
        .bind(id)
        .fetch_optional(&self.pools.reader)
        .await?;
        let Some(row) = row else { return Ok(None) };
        Ok(Some(AboutFinding {
            id: row.try_get(0)?,
            state: word("finding", row.try_get(1)?)?,
            opened_as: word_or_none("finding", row.try_get(2)?)?,
            cause: word_or_none("finding", row.try_get(3)?)?,
            resolution: word_or_none("finding", row.try_get(4)?)?,
            severity: word("finding", row.try_get(5)?)?,
            impact: word_or_none("finding", row.try_get(6)?)?,
            first_seen_s: row.try_get(7)?,
            opened_s: row.try_get(8)?,
            closed_s: row.try_get(9)?,
            previously_resolved_s: None,
            occurrences: row.try_get(10)?,
            revision: row.try_get(11)?,
            is_waived: row.try_get::<Option<i64>, _>(12)?.is_some(),
            confidence: None,
        }))
    }

    /// The newest span of a finding, and what the one before it served.
    async fn last_span(&self, finding: i64) -> Result<Span> {
        let rows = sqlx::query(
            "SELECT open_doc, open_deploy, confidence, occ_set_id, to_s, close_doc
             FROM finding_span WHERE finding_id = $1 ORDER BY from_s DESC LIMIT 2",
        )
        .bind(finding)
        .fetch_all(&self.pools.reader)
        .await?;
        let Some(newest) = rows.first() else { return Ok(Span::default()) };
        let before = rows.get(1);
        let document: Option<i64> = newest.try_get(0)?;
        let served_before = self.served_before(finding, document).await?;
        Ok(Span {
            document,
            deploy: newest.try_get(1)?,
            confidence: newest.try_get(2)?,
            occ_set: newest.try_get(3)?,
            before: match served_before {
                Some(document) => Some(document),
                None => before.map(|row| row.try_get(5)).transpose()?.flatten(),
            },
            previously_resolved_s: before.map(|row| row.try_get(4)).transpose()?.flatten(),
        })
    }

    /// The document that the surface of a finding served before this one.
    async fn served_before(&self, finding: i64, document: Option<i64>) -> Result<Option<i64>> {
        let Some(document) = document else { return Ok(None) };
        Ok(sqlx::query_scalar(
            "SELECT document_id
             FROM doc_span
             WHERE surface_id = (SELECT surface_id FROM finding WHERE id = $1)
               AND from_s < (SELECT MAX(began.from_s) FROM doc_span began
                             WHERE began.document_id = $2
                               AND began.surface_id = (SELECT surface_id FROM finding WHERE id = $1))
             ORDER BY from_s DESC
             LIMIT 1",
        )
        .bind(finding)
        .bind(document)
        .fetch_optional(&self.pools.reader)
        .await?)
    }

    async fn hash_of(&self, document: Option<i64>) -> Result<Option<String>> {
        let Some(document) = document else { return Ok(None) };
        let hash: Option<Vec<u8>> = sqlx::query_scalar("SELECT hash FROM document WHERE id = $1")
            .bind(document)
            .fetch_optional(&self.pools.reader)
            .await?;
        Ok(hash.map(|bytes| plumbline_rules::canonical::hex(&bytes)))
    }

    async fn about_deploy(&self, id: Option<i64>) -> Result<Option<AboutDeploy>> {
        let Some(id) = id else { return Ok(None) };
        let row = sqlx::query("SELECT id, at_s, version, signals, outcome FROM deploy WHERE id = $1")
            .bind(id)
            .fetch_optional(&self.pools.reader)
            .await?;
        let Some(row) = row else { return Ok(None) };
        Ok(Some(AboutDeploy {
            id: row.try_get(0)?,
            at_s: row.try_get(1)?,
            version: row.try_get(2)?,
            signals: row.try_get(3)?,
            outcome: row.try_get(4)?,
        }))
    }

    async fn about_incident(&self, id: Option<i64>, surface: Option<i64>) -> Result<Option<AboutIncident>> {
        if id.is_none() && surface.is_none() {
            return Ok(None);
        }
        let row = sqlx::query(
            "SELECT id, cause, shared, n_members, opened_s, closed_s
             FROM incident
             WHERE id = $1
                OR ($1 IS NULL AND closed_s IS NULL
                    AND id IN (SELECT incident_id FROM incident_member WHERE surface_id = $2 AND left_s IS NULL))
             ORDER BY id DESC
             LIMIT 1",
        )
        .bind(id)
        .bind(surface)
        .fetch_optional(&self.pools.reader)
        .await?;
        let Some(row) = row else { return Ok(None) };
        Ok(Some(AboutIncident {
            id: row.try_get(0)?,
            cause: row.try_get(1)?,
            shared: row.try_get(2)?,
            members: row.try_get(3)?,
            opened_s: row.try_get(4)?,
            closed_s: row.try_get(5)?,
        }))
    }

    async fn webhook_slug(&self, id: Option<i64>) -> Result<Option<String>> {
        let Some(id) = id else { return Ok(None) };
        Ok(sqlx::query_scalar("SELECT slug FROM wh_endpoint WHERE id = $1")
            .bind(id)
            .fetch_optional(&self.pools.reader)
            .await?)
    }

    async fn about_crawl(&self, id: Option<i64>) -> Result<Option<AboutCrawl>> {
        let Some(id) = id else { return Ok(None) };
        let row = sqlx::query(
            "SELECT crawl.id, crawl.kind, planned, done, faults, opened, resolved, regressed, source.name
             FROM crawl
             LEFT JOIN source ON source.id = crawl.source_id
             WHERE crawl.id = $1",
        )
        .bind(id)
        .fetch_optional(&self.pools.reader)
        .await?;
        let Some(row) = row else { return Ok(None) };
        Ok(Some(AboutCrawl {
            id: row.try_get(0)?,
            kind: row.try_get(1)?,
            source: row.try_get(8)?,
            planned: row.try_get(2)?,
            done: row.try_get(3)?,
            faults: row.try_get(4)?,
            opened: row.try_get(5)?,
            resolved: row.try_get(6)?,
            regressed: row.try_get(7)?,
        }))
    }

    /// The events of some kinds after one, up to another, with everything a reader needs; the newest at most.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn count_events(&self, after: i64, until: i64) -> Result<Vec<(EventKind, i64)>> {
        let rows =
            sqlx::query("SELECT kind, COUNT(*) FROM event WHERE id > $1 AND id <= $2 GROUP BY kind ORDER BY kind")
                .bind(after)
                .bind(until)
                .fetch_all(&self.pools.reader)
                .await?;
        rows.iter()
            .map(|row| {
                let kind: i64 = row.try_get(0)?;
                let kind = EventKind::numbered(kind);
                Ok((kind.ok_or_else(|| Error::corrupt("event", "kind"))?, row.try_get(1)?))
            })
            .collect()
    }
}

#[derive(Debug, Default)]
struct Span {
    document: Option<i64>,
    before: Option<i64>,
    deploy: Option<i64>,
    confidence: Option<String>,
    occ_set: Option<i64>,
    previously_resolved_s: Option<i64>,
}

fn tag(row: &AnyRow) -> Result<String> {
    let (key, value): (String, String) = (row.try_get(0)?, row.try_get(1)?);
    Ok(if value.is_empty() { key } else { format!("{key}={value}") })
}

/// What matchers read: words by name, such as `owner` and `tag`. Kept with an alert as it was when the alert opened.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Facts(pub BTreeMap<String, Vec<String>>);
