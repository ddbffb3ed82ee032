//! One target whole: its surfaces, what is open on them and what could not be looked at, its versions and what happened to it.

use std::collections::BTreeMap;

use plumbline_rules::conversation::Era;
use plumbline_rules::standing::Access;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sqlx::Row;
use sqlx::any::AnyRow;

use super::{Strip, first_month, hex, maybe_word, places, word};
use crate::Store;
use crate::error::{Error, Result};
use crate::judged::Occurrence;
use crate::rows::{count, unpack};
use crate::words::{
    Cause, EventKind, FindingState, Headline, Impact, Known, OpenedAs, ReachState, RetireReason, Role, Severity,
    SourceKind, SurfaceKind, TargetKind,
};

/// What was not looked at for so many of its own intervals is stale.
const STALE_INTERVALS: i64 = 3;

/// A target and everything kept on its own row.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct TargetDetail {
    /// Its number here.
    pub id: i64,
    /// `mcp-server`, `a2a-agent`, …
    pub kind: TargetKind,
    /// The registry's name for it, or host and path of its card.
    pub key: String,
    /// As shown.
    pub name: String,
    /// One line of its own description.
    pub summary: Option<String>,
    /// Its main address.
    pub url: Option<String>,
    /// What it calls its own version.
    pub declared_version: Option<String>,
    /// Who stands behind it.
    pub owner: Option<String>,
    /// The same as addresses name them: `/owners/{slug}`.
    pub owner_slug: Option<String>,
    /// Its host.
    pub host: Option<String>,
    /// The source it was first seen in.
    pub source: String,
    /// What kind of source that is.
    pub source_kind: SourceKind,
    /// The operator says it is theirs.
    pub is_own: bool,
    /// Nobody looks at it until it is let go on.
    pub is_paused: bool,
    /// Unix seconds.
    pub first_seen_s: i64,
    /// Last time a source named it, in Unix seconds.
    pub last_seen_s: i64,
    /// Left all its sources, in Unix seconds.
    pub retired_s: Option<i64>,
    /// Why.
    pub retire_reason: Option<RetireReason>,
    /// The worst word of its surfaces.
    pub headline: Headline,
    /// Since when, in Unix seconds.
    pub headline_since_s: Option<i64>,
    /// Whether it can be reached.
    pub reach: ReachState,
    /// Since when, in Unix seconds.
    pub reach_since_s: Option<i64>,
    /// The revision of its main surface.
    pub profile: Option<String>,
    /// How that is known.
    pub known: Option<Known>,
    /// Open findings that break clients.
    pub n_blocking: i64,
    /// Open errors.
    pub n_error: i64,
    /// Open warnings.
    pub n_warn: i64,
    /// Open hints; they count for nothing.
    pub n_info: i64,
    /// Open findings tagged security.
    pub n_security: i64,
    /// Last answer of any surface, in Unix seconds.
    pub last_ok_s: Option<i64>,
    /// Last look at any surface, in Unix seconds.
    pub last_attempt_s: Option<i64>,
    /// Next look, in Unix seconds.
    pub next_due_s: Option<i64>,
    /// Last change, in Unix seconds.
    pub changed_s: i64,
    /// What is said of it is stale from then on, in Unix seconds: three intervals after the last look at a surface or the last
    /// pass over its list. Null: nobody looked yet.
    pub stale_from_s: Option<i64>,
}

/// One face of a target.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct SurfaceRow {
    /// Its number here.
    pub id: i64,
    /// `a2a-card`, `server-json`, …
    pub kind: SurfaceKind,
    /// As what the target shows it.
    pub role: Role,
    /// Where it is fetched, or where it would be if it stood alone.
    pub url: String,
    /// It came inside a registry's list.
    pub is_listed: bool,
    /// Hash of what it served last, in hex.
    pub document: Option<String>,
    /// Bytes of that.
    pub raw_len: Option<i64>,
    /// Its word.
    pub headline: Headline,
    /// Whether it can be reached.
    pub reach: ReachState,
    /// Why not, in the word of its outcome.
    pub reach_reason: Option<String>,
    /// Since when, in Unix seconds.
    pub reach_since_s: Option<i64>,
    /// The revision it was judged as.
    pub profile: Option<String>,
    /// How that is known.
    pub known: Option<Known>,
    /// Open findings that break clients.
    pub n_blocking: i64,
    /// Open errors.
    pub n_error: i64,
    /// Open warnings.
    pub n_warn: i64,
    /// Last judgement, in Unix seconds.
    pub last_evaluated_s: Option<i64>,
    /// Last answer, in Unix seconds.
    pub last_ok_s: Option<i64>,
    /// Last look, in Unix seconds.
    pub last_attempt_s: Option<i64>,
    /// HTTP status of the last answer.
    pub last_status: Option<i64>,
    /// How long that took, in milliseconds.
    pub last_took_ms: Option<i64>,
    /// Next look, in Unix seconds.
    pub next_due_s: Option<i64>,
    /// How many other targets show this surface too.
    pub shared_with: i64,
    /// Which rules were looked at in its last judgement; `None`: never judged.
    pub judged: Option<JudgedRules>,
    /// What an MCP endpoint speaks, where a look has shown it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub era: Option<Era>,
    /// Who gets in there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access: Option<Access>,
    /// All that was shown about the endpoint: its revisions, and each protocol with how sure it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub standing: Option<serde_json::Value>,
}

/// Which rules one judgement looked at, and which not.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct JudgedRules {
    /// The ruleset it was made with.
    pub ruleset: String,
    /// Rules that passed or fired.
    pub judged: i64,
    /// Rules for other revisions or kinds.
    pub not_applicable: i64,
    /// Rules that apply and could not look, by reason.
    pub not_evaluated: Vec<UnevaluatedRules>,
}

/// Rules that could not look for one reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct UnevaluatedRules {
    /// `parent`, `no-origin`, `no-session`, `cut`, `off`.
    pub reason: String,
    /// How many rules.
    pub rules: i64,
}

/// Something that is wrong, now or until a while ago.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct FindingRow {
    /// Its number here.
    pub id: i64,
    /// The surface it is on.
    pub surface_id: i64,
    /// `family/kebab-name`.
    pub rule: String,
    /// A skill id, a scheme name; empty where the rule has one finding per surface.
    pub instance: String,
    /// Where its machine stands.
    pub state: FindingState,
    /// As what it opened.
    pub opened_as: Option<OpenedAs>,
    /// What moved when it opened.
    pub cause: Option<Cause>,
    /// Of its worst occurrence.
    pub severity: Severity,
    /// What released clients do about it.
    pub impact: Option<Impact>,
    /// Tagged security.
    pub is_security: bool,
    /// First time it fired, in Unix seconds.
    pub first_seen_s: i64,
    /// Start of its present span, in Unix seconds.
    pub opened_s: Option<i64>,
    /// The newest judgement did not reach this rule since then, in Unix seconds.
    pub unjudged_since_s: Option<i64>,
    /// The newest judgement that reached this rule, in Unix seconds.
    pub last_evaluated_s: Option<i64>,
    /// It is stale from then on, in Unix seconds: three intervals of its surface after the newest judgement that reached the
    /// rule. Null: it is over, or holds for as long as its list shows the same entry.
    pub stale_from_s: Option<i64>,
    /// The number of the waiver that covers it; null: none does.
    pub waiver: Option<i64>,
    /// How often it opened.
    pub opens: i64,
    /// At how many places.
    pub occurrences: i64,
    /// The places, at most a hundred.
    pub places: Vec<Occurrence>,
}

/// An attribute that is set at present.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FactRow {
    /// The surface it is on.
    pub surface_id: i64,
    /// The rule of class fact.
    pub rule: String,
    /// What the rule says of it; it may quote the document.
    pub value: String,
    /// Where.
    pub pointer: String,
    /// Since when, in Unix seconds.
    pub from_s: i64,
}

/// One version of a name in a registry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ListingRow {
    /// The registry, as the settings call it.
    pub source: String,
    /// Any text.
    pub version: String,
    /// `active`, `deprecated`, `deleted`, or whatever was said.
    pub status: Option<String>,
    /// The registry's own stamp, in Unix milliseconds.
    pub published_ms: Option<i64>,
    /// The registry's own stamp, in Unix milliseconds.
    pub updated_ms: Option<i64>,
    /// The registry says so.
    pub is_latest: bool,
    /// Its document is the one judged here.
    pub is_current: bool,
    /// Hash of its document, in hex.
    pub document: String,
    /// First time we saw it, in Unix seconds.
    pub first_seen_s: i64,
    /// No longer listed, in Unix seconds.
    pub gone_s: Option<i64>,
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct EventRow {
    /// Grows with time.
    pub id: i64,
    /// Unix seconds.
    pub at_s: i64,
    /// What.
    pub kind: EventKind,
    /// The rule concerned.
    pub rule: Option<String>,
    /// More words, as the store noted them.
    pub note: Option<String>,
    /// As the kind says.
    pub a: Option<i64>,
    /// As the kind says.
    pub b: Option<i64>,
}

pub(super) const TARGET: &str = "
SELECT t.*, o.name AS owner, o.slug AS owner_slug, h.name AS host, s.name AS source, s.kind AS source_kind,
       (SELECT MAX(CASE WHEN u.listing_id IS NULL THEN u.last_attempt_s + 3 * COALESCE(u.every_s, u.interval_s)
                        ELSE s.last_pass_s + 3 * (s.next_pass_s - s.last_pass_s) END)
        FROM target_surface ts
        JOIN surface u ON u.id = ts.surface_id
        WHERE ts.target_id = t.id AND ts.removed_s IS NULL) AS stale_from_s
FROM target t
JOIN source s ON s.id = t.source_id
LEFT JOIN owner o ON o.id = t.owner_id
LEFT JOIN host h ON h.id = t.host_id
WHERE t.id = $1";

pub(super) const SURFACES: &str = "
SELECT s.*, ts.role, d.hash, d.raw_len, r.version AS ruleset, j.body AS judged_set,
       (SELECT COUNT(*) FROM target_surface o WHERE o.surface_id = s.id AND o.target_id <> $1 AND o.removed_s IS NULL)
           AS shared_with
FROM target_surface ts
JOIN surface s ON s.id = ts.surface_id
LEFT JOIN document d ON d.id = s.document_id
LEFT JOIN eval e ON e.id = s.eval_id
LEFT JOIN ruleset r ON r.id = e.ruleset_id
LEFT JOIN judged_set j ON j.id = e.judged_set_id
WHERE ts.target_id = $1 AND ts.removed_s IS NULL
ORDER BY s.id
LIMIT 50";

pub(super) const OPEN_FINDINGS: &str = "
SELECT f.*, r.slug, o.body AS occ_body, s.last_evaluated_s, s.every_s, s.listing_id
FROM target_surface ts
JOIN surface s ON s.id = ts.surface_id
JOIN finding f ON f.surface_id = ts.surface_id
JOIN rule r ON r.id = f.rule_id
LEFT JOIN occ_set o ON o.id = f.occ_set_id
WHERE ts.target_id = $1 AND ts.removed_s IS NULL
  AND f.state IN ('pending', 'open', 'clearing', 'flapping')
ORDER BY f.id
LIMIT 1000";

pub(super) const PAST_FINDINGS: &str = "
SELECT COUNT(*) AS findings
FROM target_surface ts
JOIN finding f ON f.surface_id = ts.surface_id
WHERE ts.target_id = $1 AND ts.removed_s IS NULL
  AND f.state IN ('resolved', 'retired') AND f.opens > 0";

pub(super) const FACTS: &str = "
SELECT f.surface_id, r.slug, f.value, f.pointer, f.from_s
FROM target_surface ts
JOIN fact_span f ON f.surface_id = ts.surface_id
JOIN rule r ON r.id = f.rule_id
WHERE ts.target_id = $1 AND ts.removed_s IS NULL AND f.to_s IS NULL
ORDER BY r.id
LIMIT 200";

pub(super) const LISTINGS: &str = "
SELECT s.name AS source, l.version, l.status, l.published_ms, l.updated_ms, l.is_latest, l.is_current, l.first_seen_s,
       l.gone_s, d.hash
FROM listing l
JOIN source s ON s.id = l.source_id
JOIN document d ON d.id = l.document_id
WHERE l.target_id = $1
ORDER BY l.id DESC
LIMIT $2";

pub(super) const LISTING_COUNT: &str = "
SELECT COUNT(*) AS listings
FROM listing
WHERE target_id = $1";

pub(super) const EVENTS: &str = "
SELECT e.id, e.at_s, e.kind, r.slug, e.note, e.a, e.b
FROM event e
LEFT JOIN rule r ON r.id = e.rule_id
WHERE e.target_id = $1 AND e.id < $2
ORDER BY e.id DESC
LIMIT $3";

pub(super) const MONTHS: &str = "
SELECT f.id AS surface_id, m.month, m.days, f.headline, f.headline_since_s,
       CASE WHEN f.listing_id IS NULL THEN 0 ELSE 1 END AS is_listed
FROM target_surface ts
JOIN surface f ON f.id = ts.surface_id
LEFT JOIN surface_month m ON m.surface_id = f.id AND m.month >= $2
WHERE ts.target_id = $1 AND ts.removed_s IS NULL";

/// Places shown of one finding.
const PLACES: usize = 100;

impl Store {
    /// The target of that number.
    pub async fn target(&self, id: i64) -> Result<Option<TargetDetail>> {
        let row = sqlx::query(TARGET).bind(id).fetch_optional(&self.pools.reader).await?;
        row.as_ref().map(target_detail).transpose()
    }

    /// The faces it shows at present.
    pub async fn target_surfaces(&self, id: i64) -> Result<Vec<SurfaceRow>> {
        let rows = sqlx::query(SURFACES).bind(id).fetch_all(&self.pools.reader).await?;
        rows.iter().map(surface_row).collect()
    }

    /// What is wrong on them now, unconfirmed findings included.
    pub async fn target_findings(&self, id: i64) -> Result<Vec<FindingRow>> {
        let rows = sqlx::query(OPEN_FINDINGS).bind(id).fetch_all(&self.pools.reader).await?;
        rows.iter().map(finding_row).collect()
    }

    /// How many findings are over.
    pub async fn target_past_findings(&self, id: i64) -> Result<i64> {
        let row = sqlx::query(PAST_FINDINGS).bind(id).fetch_one(&self.pools.reader).await?;
        Ok(row.try_get("findings")?)
    }

    /// Attributes that are set on them now.
    pub async fn target_facts(&self, id: i64) -> Result<Vec<FactRow>> {
        let rows = sqlx::query(FACTS).bind(id).fetch_all(&self.pools.reader).await?;
        let facts = rows.iter().map(|row| {
            Ok(FactRow {
                surface_id: row.try_get("surface_id")?,
                rule: row.try_get("slug")?,
                value: row.try_get("value")?,
                pointer: row.try_get("pointer")?,
                from_s: row.try_get("from_s")?,
            })
        });
        facts.collect()
    }

    /// Its versions in registries, newest here first, at most `limit`, and how many there are.
    pub async fn target_listings(&self, id: i64, limit: i64) -> Result<(Vec<ListingRow>, i64)> {
        let rows = sqlx::query(LISTINGS).bind(id).bind(limit).fetch_all(&self.pools.reader).await?;
        let listings = rows.iter().map(listing_row).collect::<Result<_>>()?;
        let count = sqlx::query(LISTING_COUNT).bind(id).fetch_one(&self.pools.reader).await?;
        Ok((listings, count.try_get("listings")?))
    }

    /// What happened to it, newest first, at most `limit`.
    pub async fn target_events(&self, id: i64, limit: i64) -> Result<Vec<EventRow>> {
        self.target_events_before(id, i64::MAX, limit).await
    }

    /// What happened to it before the event of that number, newest first, at most `limit`.
    pub async fn target_events_before(&self, id: i64, before: i64, limit: i64) -> Result<Vec<EventRow>> {
        let rows = sqlx::query(EVENTS).bind(id).bind(before).bind(limit).fetch_all(&self.pools.reader).await?;
        rows.iter()
            .map(event_row)
            .collect::<Result<Vec<Option<EventRow>>>>()
            .map(|events| events.into_iter().flatten().collect())
    }

    /// Ninety days up to `today` of each of its surfaces of which any are recorded.
    pub async fn target_days(&self, id: i64, today: i64) -> Result<Vec<Strip>> {
        let rows = sqlx::query(MONTHS).bind(id).bind(first_month(today)).fetch_all(&self.pools.reader).await?;
        super::strips(&rows, "surface_id", today)
    }
}

fn target_detail(row: &AnyRow) -> Result<TargetDetail> {
    Ok(TargetDetail {
        id: row.try_get("id")?,
        kind: word(row, "kind")?,
        key: row.try_get("key")?,
        name: row.try_get("name")?,
        summary: row.try_get("summary")?,
        url: row.try_get("url")?,
        declared_version: row.try_get("declared_version")?,
        owner: row.try_get("owner")?,
        owner_slug: row.try_get("owner_slug")?,
        host: row.try_get("host")?,
        source: row.try_get("source")?,
        source_kind: word(row, "source_kind")?,
        is_own: row.try_get::<i64, _>("is_own")? == 1,
        is_paused: row.try_get::<i64, _>("paused")? == 1,
        first_seen_s: row.try_get("first_seen_s")?,
        last_seen_s: row.try_get("last_seen_s")?,
        retired_s: row.try_get("retired_s")?,
        retire_reason: maybe_word(row, "retire_reason")?,
        headline: word(row, "headline")?,
        headline_since_s: row.try_get("headline_since_s")?,
        reach: word(row, "reach")?,
        reach_since_s: row.try_get("reach_since_s")?,
        profile: row.try_get("profile")?,
        known: maybe_word(row, "known")?,
        n_blocking: row.try_get("n_blocking")?,
        n_error: row.try_get("n_error")?,
        n_warn: row.try_get("n_warn")?,
        n_info: row.try_get("n_info")?,
        n_security: row.try_get("n_security")?,
        last_ok_s: row.try_get("last_ok_s")?,
        last_attempt_s: row.try_get("last_attempt_s")?,
        next_due_s: row.try_get("next_due_s")?,
        changed_s: row.try_get("changed_s")?,
        stale_from_s: row.try_get("stale_from_s")?,
    })
}

fn surface_row(row: &AnyRow) -> Result<SurfaceRow> {
    let judged: Option<Vec<u8>> = row.try_get("judged_set")?;
    let ruleset: Option<String> = row.try_get("ruleset")?;
    Ok(SurfaceRow {
        id: row.try_get("id")?,
        kind: word(row, "kind")?,
        role: word(row, "role")?,
        url: row.try_get("url")?,
        is_listed: row.try_get::<Option<i64>, _>("listing_id")?.is_some(),
        document: row.try_get::<Option<Vec<u8>>, _>("hash")?.as_deref().map(hex),
        raw_len: row.try_get("raw_len")?,
        headline: word(row, "headline")?,
        reach: word(row, "reach")?,
        reach_reason: row.try_get("reach_reason")?,
        reach_since_s: row.try_get("reach_since_s")?,
        profile: row.try_get("profile")?,
        known: maybe_word(row, "known")?,
        n_blocking: row.try_get("n_blocking")?,
        n_error: row.try_get("n_error")?,
        n_warn: row.try_get("n_warn")?,
        last_evaluated_s: row.try_get("last_evaluated_s")?,
        last_ok_s: row.try_get("last_ok_s")?,
        last_attempt_s: row.try_get("last_attempt_s")?,
        last_status: row.try_get("last_status")?,
        last_took_ms: row.try_get("last_took_ms")?,
        next_due_s: row.try_get("next_due_s")?,
        shared_with: row.try_get("shared_with")?,
        judged: judged.map(|body| judged_rules(&body, ruleset.unwrap_or_default())).transpose()?,
        era: maybe_word(row, "era")?,
        access: maybe_word(row, "access")?,
        standing: row.try_get::<Option<String>, _>("standing")?.and_then(|text| serde_json::from_str(&text).ok()),
    })
}

pub(super) fn finding_row(row: &AnyRow) -> Result<FindingRow> {
    let body: Option<Vec<u8>> = row.try_get("occ_body")?;
    let mut places = places(body.as_deref())?;
    places.truncate(PLACES);
    let state = word(row, "state")?;
    let looked = looked(row)?;
    Ok(FindingRow {
        id: row.try_get("id")?,
        surface_id: row.try_get("surface_id")?,
        rule: row.try_get("slug")?,
        instance: row.try_get("instance")?,
        state,
        opened_as: maybe_word(row, "opened_as")?,
        cause: maybe_word(row, "cause")?,
        severity: word(row, "severity")?,
        impact: maybe_word(row, "impact")?,
        is_security: row.try_get::<i64, _>("security")? == 1,
        first_seen_s: row.try_get("first_seen_s")?,
        opened_s: row.try_get("opened_s")?,
        unjudged_since_s: looked.unjudged_since_s,
        last_evaluated_s: looked.last_evaluated_s(),
        stale_from_s: looked.stale_from_s(state),
        waiver: row.try_get("waiver_id")?,
        opens: row.try_get("opens")?,
        occurrences: row.try_get("occurrences")?,
        places,
    })
}

fn looked(row: &AnyRow) -> Result<Looked> {
    Ok(Looked {
        unjudged_since_s: row.try_get("unjudged_since_s")?,
        judged_s: row.try_get("judged_s")?,
        surface_s: row.try_get("last_evaluated_s")?,
        every_s: row.try_get("every_s")?,
        is_listed: row.try_get::<Option<i64>, _>("listing_id")?.is_some(),
    })
}

/// When a finding was looked at, and how often that should be.
#[derive(Debug, Clone, Copy, Default)]
struct Looked {
    unjudged_since_s: Option<i64>,
    /// The last judgement that reached its rule, where the newest did not.
    judged_s: Option<i64>,
    /// The newest judgement of its surface.
    surface_s: Option<i64>,
    every_s: Option<i64>,
    /// Its surface is an entry of a list, judged again when the entry changes.
    is_listed: bool,
}

impl FindingRow {
    /// Whether it was not looked at for so long that it may no longer hold.
    #[must_use]
    pub fn is_stale(&self, now_s: i64) -> bool {
        self.stale_from_s.is_some_and(|from_s| now_s > from_s)
    }
}

impl Looked {
    fn last_evaluated_s(&self) -> Option<i64> {
        match self.unjudged_since_s {
            Some(since_s) => self.judged_s.or(Some(since_s)),
            None => self.surface_s,
        }
    }

    fn stale_from_s(&self, state: FindingState) -> Option<i64> {
        let holds = self.is_listed && self.unjudged_since_s.is_none();
        let every_s = self.every_s.filter(|_| state.is_open() && !holds)?;
        Some(self.last_evaluated_s()?.saturating_add(STALE_INTERVALS * every_s))
    }
}

fn listing_row(row: &AnyRow) -> Result<ListingRow> {
    Ok(ListingRow {
        source: row.try_get("source")?,
        version: row.try_get("version")?,
        status: row.try_get("status")?,
        published_ms: row.try_get("published_ms")?,
        updated_ms: row.try_get("updated_ms")?,
        is_latest: row.try_get::<i64, _>("is_latest")? == 1,
        is_current: row.try_get::<i64, _>("is_current")? == 1,
        document: hex(&row.try_get::<Vec<u8>, _>("hash")?),
        first_seen_s: row.try_get("first_seen_s")?,
        gone_s: row.try_get("gone_s")?,
    })
}

/// `None` for a kind this program does not know: a newer one wrote it.
fn event_row(row: &AnyRow) -> Result<Option<EventRow>> {
    let Some(kind) = EventKind::numbered(row.try_get("kind")?) else { return Ok(None) };
    Ok(Some(EventRow {
        id: row.try_get("id")?,
        at_s: row.try_get("at_s")?,
        kind,
        rule: row.try_get("slug")?,
        note: row.try_get("note")?,
        a: row.try_get("a")?,
        b: row.try_get("b")?,
    }))
}

fn judged_rules(body: &[u8], ruleset: String) -> Result<JudgedRules> {
    #[derive(Deserialize)]
    struct Stored {
        judged: Vec<i64>,
        #[serde(default)]
        not_applicable: Vec<i64>,
        #[serde(default)]
        not_evaluated: BTreeMap<String, Vec<i64>>,
    }
    let json = unpack("set of judged rules", body)?;
    let stored: Stored = serde_json::from_slice(&json).map_err(|error| Error::corrupt("set of judged rules", error))?;
    let not_evaluated = stored
        .not_evaluated
        .into_iter()
        .map(|(reason, rules)| UnevaluatedRules { reason, rules: count(rules.len()) })
        .collect();
    Ok(JudgedRules {
        ruleset,
        judged: count(stored.judged.len()),
        not_applicable: count(stored.not_applicable.len()),
        not_evaluated,
    })
}
