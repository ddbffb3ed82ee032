//! Deploys: changes of a target's software that we were told of or inferred, and what came of them.
//!
//! Whatever tells of a new build is a signal with a weight (dashboard §6). Signals of one target within a quarter of an hour
//! or one crawl are one deploy; signs that may as well be the weather of the network do not make one by themselves. When a
//! finding opens or ends, the deploys between the last look that said otherwise and the first that said so are the ones it
//! may have come with: which, and how sure that is, stands at either end of its span.

use plumbline_rules::words;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sqlx::Row;

use crate::Store;
use crate::dialect::{Table, Writing};
use crate::error::{Error, Result};
use crate::events::{self, News};
use crate::ids::{DeployId, TargetId};
use crate::rows::{shortened, word};
use crate::words::{Cause, EventKind, Headline, Impact, ReachState, Severity, SurfaceKind};

/// Signals so far apart are one deploy, in seconds.
const MERGED_S: i64 = 900;
/// How far outside its window a deploy may lie, in seconds: clocks differ, and a deploy takes a while. At the lower end
/// only for those we were told of: what a look inferred was there at that look, which found nothing wrong.
const SLACK_S: i64 = 300;
/// Below this weight signals make no deploy.
const LEAST: i64 = 3;
/// Targets of one host that are looked at for a deploy. A platform with more has no deploys of its own.
const NEIGHBOURS: i64 = 50;
/// A deploy is settled after so long, in seconds, though not every surface was looked at: some are looked at once a day.
const PATIENCE_S: i64 = 7200;
/// Deploys that are settled in one transaction.
const STEP: i64 = 200;
/// Characters kept of a version, and of what a marker says of itself.
const LONGEST: usize = 200;

words! {
    /// What tells of a deploy.
    pub enum SignalKind {
        /// A marker from a pipeline.
        Marker = "marker",
        /// The registry lists another version.
        Registry = "registry",
        /// The registry says that its entry was updated.
        Listing = "listing",
        /// `serverInfo.version` is another.
        ServerInfo = "server_info",
        /// The card's `version` is another.
        CardVersion = "card_version",
        /// The document says something else under the same version.
        SilentChange = "silent_change",
        /// What an endpoint offers, or the revision it speaks, is another.
        LiveChange = "live_change",
        /// A validator changed, the document did not.
        Touch = "touch",
        /// Address, certificate or server software changed.
        Infra = "infra",
    }
}

words! {
    /// What came of a deploy.
    pub enum Outcome {
        /// Nothing began and nothing ended.
        Clean = "clean",
        /// Only ends.
        Improved = "improved",
        /// Only beginnings.
        Regressed = "regressed",
        /// Both.
        Mixed = "mixed",
        /// Nobody answers since.
        Unreachable = "unreachable",
    }
}

words! {
    /// How sure it is that a finding came with a deploy.
    pub enum Confidence {
        /// We were told of the deploy, it is the only one, and what changed is theirs.
        Certain = "certain",
        /// It is the only one.
        Likely = "likely",
        /// It is one of several.
        Possible = "possible",
        /// No deploy was seen.
        None = "none",
    }
}

words! {
    /// From which beginnings on a deploy is called regressed.
    pub enum FailOn {
        /// Findings that break clients.
        Blocked = "blocked",
        /// These, and errors.
        Error = "error",
        /// These, and warnings.
        Warning = "warning",
    }
}

impl SignalKind {
    /// How much it says (dashboard §6.1).
    #[must_use]
    pub fn weight(self) -> i64 {
        match self {
            SignalKind::Marker => 5,
            SignalKind::Registry | SignalKind::Listing | SignalKind::ServerInfo | SignalKind::CardVersion => 4,
            SignalKind::SilentChange | SignalKind::LiveChange => 3,
            SignalKind::Touch | SignalKind::Infra => 1,
        }
    }
}

/// One sign of a deploy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Signal {
    /// What kind.
    pub kind: SignalKind,
    /// Before; `None`: nothing was known, or there is nothing to show.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// After.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// When it was seen, in Unix seconds.
    pub at_s: i64,
}

impl Signal {
    /// Whether it weighs as much and what it leads to may be called a version; a stamp is none.
    fn is_of_version(&self, least: i64) -> bool {
        self.kind.weight() >= least && self.kind != SignalKind::Listing
    }
}

/// What a look saw change, as far as it may tell of a deploy.
#[derive(Debug, Default)]
pub(crate) struct Changes<'a> {
    /// The document says something else.
    pub(crate) says_otherwise: bool,
    /// What the document calls its own version, before and now.
    pub(crate) version: (Option<&'a str>, Option<&'a str>),
    /// The revision it was judged as, before and now.
    pub(crate) profile: (Option<&'a str>, Option<&'a str>),
    /// The validators changed.
    pub(crate) is_touched: bool,
    /// Address, certificate or server software, before and now.
    pub(crate) infra: Option<(String, String)>,
}

/// The signals in what a look saw change.
pub(crate) fn signals(kind: SurfaceKind, changes: &Changes<'_>, at_s: i64) -> Vec<Signal> {
    let signal = |kind, from: Option<&str>, to: Option<&str>| Signal {
        kind,
        from: from.map(|text| shortened(text, LONGEST)),
        to: to.map(|text| shortened(text, LONGEST)),
        at_s,
    };
    let mut signals = Vec::new();
    let (before, now) = changes.version;
    if before.is_some() && now.is_some() && before != now {
        let kind = match kind {
            SurfaceKind::ServerJson => SignalKind::Registry,
            SurfaceKind::McpEndpoint | SurfaceKind::McpServerCard => SignalKind::ServerInfo,
            _ => SignalKind::CardVersion,
        };
        signals.push(signal(kind, before, now));
    } else if changes.says_otherwise {
        let kind = if kind == SurfaceKind::McpEndpoint { SignalKind::LiveChange } else { SignalKind::SilentChange };
        signals.push(signal(kind, before, now));
    } else if changes.is_touched {
        signals.push(signal(SignalKind::Touch, None, None));
    }
    let (before, now) = changes.profile;
    if kind == SurfaceKind::McpEndpoint && before.is_some() && now.is_some() && before != now {
        signals.push(signal(SignalKind::LiveChange, before, now));
    }
    if let Some((before, now)) = &changes.infra {
        signals.push(signal(SignalKind::Infra, Some(before), Some(now)));
    }
    signals
}

/// Writes the deploy that signals of a target tell of, or adds them to the one they belong to.
pub(crate) async fn record(
    w: &mut Writing,
    target: i64,
    signals: &[Signal],
    crawl: Option<i64>,
    at_s: i64,
) -> Result<()> {
    let Some(weight) = signals.iter().map(|signal| signal.kind.weight()).max() else { return Ok(()) };
    let near = sqlx::query(
        "SELECT id, signals FROM deploy
         WHERE target_id = $1 AND outcome IS NULL
           AND (at_s BETWEEN $2 AND $3 OR (crawl_id = $4 AND at_s <= $3))
         ORDER BY at_s DESC
         LIMIT 1",
    )
    .bind(target)
    .bind(at_s - MERGED_S)
    .bind(at_s + MERGED_S)
    .bind(crawl)
    .fetch_optional(w.on())
    .await?;
    if let Some(row) = near {
        return merge(w, row.try_get(0)?, &parsed(&row.try_get::<String, _>(1)?)?, signals, weight).await;
    }
    if weight < LEAST {
        return Ok(());
    }
    let version = signals.iter().find(|signal| signal.is_of_version(LEAST)).and_then(|signal| signal.to.clone());
    let row = NewDeploy { target, at_s, crawl, version, signals, ..NewDeploy::default() };
    insert(w, &row).await.map(|_| ())
}

async fn merge(w: &mut Writing, deploy: i64, known: &[Signal], more: &[Signal], weight: i64) -> Result<()> {
    let is_new = |signal: &&Signal| !known.iter().any(|known| known.kind == signal.kind && known.to == signal.to);
    let all: Vec<Signal> = known.iter().chain(more.iter().filter(is_new)).cloned().collect();
    let version = more.iter().find(|signal| signal.is_of_version(4)).and_then(|signal| signal.to.as_deref());
    sqlx::query(
        "UPDATE deploy
         SET signals = $2, weight = CASE WHEN weight < $3 THEN $3 ELSE weight END, version = COALESCE(version, $4)
         WHERE id = $1",
    )
    .bind(deploy)
    .bind(written(&all))
    .bind(weight)
    .bind(version)
    .execute(w.on())
    .await?;
    Ok(())
}

fn parsed(signals: &str) -> Result<Vec<Signal>> {
    serde_json::from_str(signals).map_err(|error| Error::corrupt("deploy", error))
}

fn written(signals: &[Signal]) -> String {
    serde_json::to_string(signals).expect("signals are text and numbers")
}

/// A row of `deploy` about to be written.
#[derive(Default)]
struct NewDeploy<'a> {
    target: i64,
    at_s: i64,
    crawl: Option<i64>,
    version: Option<String>,
    signals: &'a [Signal],
    is_told: bool,
    dedupe_key: Option<&'a str>,
    url: Option<&'a str>,
    environment: Option<&'a str>,
    commit: Option<&'a str>,
}

async fn insert(w: &mut Writing, row: &NewDeploy<'_>) -> Result<i64> {
    let id = w.next_id(Table::Deploy).await?;
    let weight = row.signals.iter().map(|signal| signal.kind.weight()).max().unwrap_or(0);
    sqlx::query(
        "INSERT INTO deploy (id, target_id, at_s, told, dedupe_key, version, weight, signals, url, crawl_id,
                             environment, commit_id)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)",
    )
    .bind(id)
    .bind(row.target)
    .bind(row.at_s)
    .bind(i64::from(row.is_told))
    .bind(row.dedupe_key)
    .bind(row.version.as_deref())
    .bind(weight)
    .bind(written(row.signals))
    .bind(row.url)
    .bind(row.crawl)
    .bind(row.environment)
    .bind(row.commit)
    .execute(w.on())
    .await?;
    tell(w, row.target, id, EventKind::DeployRecorded, None, row.at_s).await?;
    Ok(id)
}

async fn tell(
    w: &mut Writing,
    target: i64,
    deploy: i64,
    kind: EventKind,
    note: Option<String>,
    at_s: i64,
) -> Result<()> {
    events::append(w, at_s, News { target: Some(target), subject: Some(deploy), note, ..News::of(kind) }).await
}

/// Between which looks a finding began or ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Window {
    /// The last look that said otherwise; `None`: there was none, so no deploy can be meant.
    pub(crate) after_s: Option<i64>,
    /// The first look that said so.
    pub(crate) until_s: i64,
}

/// A deploy within a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Candidate {
    id: i64,
    weight: i64,
    is_told: bool,
}

/// The deploy that a beginning or an end came with, and how sure that is.
pub(crate) async fn attribute(
    w: &mut Writing,
    target: Option<i64>,
    window: Window,
    cause: Cause,
) -> Result<(Option<i64>, Confidence)> {
    let (Some(target), Some(after_s)) = (target, window.after_s) else { return Ok((None, Confidence::None)) };
    let is_theirs = matches!(cause, Cause::Document | Cause::Behaviour | Cause::Unknown);
    if !is_theirs {
        return Ok((None, Confidence::None));
    }
    let mut candidates = within(w, OF_TARGET, target, after_s, window.until_s).await?;
    for others in [OF_HOST, OF_ISSUER] {
        if candidates.is_empty() {
            candidates = within(w, others, target, after_s, window.until_s).await?;
        }
    }
    Ok(chosen(&candidates, cause))
}

const OF_TARGET: &str = "
SELECT id, weight, told FROM deploy
WHERE target_id = $1 AND at_s > CASE WHEN told = 1 THEN $2 - 300 ELSE $2 END AND at_s <= $3
ORDER BY weight DESC, at_s DESC
LIMIT $4";

/// Those of the target's neighbours on its host.
const OF_HOST: &str = "
SELECT id, weight, told FROM deploy
WHERE target_id IN (
        SELECT target.id FROM target
        WHERE target.host_id = (SELECT host_id FROM target own WHERE own.id = $1) AND target.id <> $1
        ORDER BY target.id
        LIMIT $4)
  AND at_s > CASE WHEN told = 1 THEN $2 - 300 ELSE $2 END AND at_s <= $3
ORDER BY weight DESC, at_s DESC
LIMIT $4";

/// Those of the authorization servers it names: of the targets whose own metadata theirs is, and of their hosts.
const OF_ISSUER: &str = "
SELECT id, weight, told FROM deploy
WHERE target_id IN (
        SELECT issuer.id FROM target issuer
        WHERE issuer.kind = 'oauth-service' AND issuer.id <> $1
          AND (EXISTS (
                 SELECT 1 FROM target_surface named
                 JOIN surface ON surface.id = named.surface_id
                 JOIN target_surface own ON own.surface_id = named.surface_id AND own.role = 'main'
                 WHERE named.target_id = $1 AND named.removed_s IS NULL AND own.removed_s IS NULL
                   AND own.target_id = issuer.id
                   AND surface.kind IN ('oauth-authorization-server', 'oauth-openid-configuration'))
               OR issuer.host_id IN (
                 SELECT surface.host_id FROM target_surface named
                 JOIN surface ON surface.id = named.surface_id
                 WHERE named.target_id = $1 AND named.removed_s IS NULL
                   AND surface.kind IN ('oauth-authorization-server', 'oauth-openid-configuration')))
        ORDER BY issuer.id
        LIMIT $4)
  AND at_s > CASE WHEN told = 1 THEN $2 - 300 ELSE $2 END AND at_s <= $3
ORDER BY weight DESC, at_s DESC
LIMIT $4";

async fn within(
    w: &mut Writing,
    statement: &'static str,
    target: i64,
    after_s: i64,
    until_s: i64,
) -> Result<Vec<Candidate>> {
    let rows = sqlx::query(statement)
        .bind(target)
        .bind(after_s)
        .bind(until_s + SLACK_S)
        .bind(NEIGHBOURS)
        .fetch_all(w.on())
        .await?;
    let candidate = |row: &sqlx::any::AnyRow| {
        Ok(Candidate { id: row.try_get(0)?, weight: row.try_get(1)?, is_told: row.try_get::<i64, _>(2)? != 0 })
    };
    rows.iter().map(candidate).collect()
}

/// The heaviest, and the latest of these; they come in this order.
fn chosen(candidates: &[Candidate], cause: Cause) -> (Option<i64>, Confidence) {
    let Some(first) = candidates.first() else { return (None, Confidence::None) };
    let is_proved = matches!(cause, Cause::Document | Cause::Behaviour);
    let confidence = match candidates.len() {
        1 if first.is_told && is_proved => Confidence::Certain,
        1 if first.weight >= LEAST => Confidence::Likely,
        _ => Confidence::Possible,
    };
    (Some(first.id), confidence)
}

/// A deploy as a pipeline tells of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Marker {
    /// The new version.
    pub version: Option<String>,
    /// When it was made, in Unix seconds.
    pub at_s: i64,
    /// The same deploy told again has the same key.
    pub dedupe_key: Option<String>,
    /// Where it is described.
    pub url: Option<String>,
    /// `production`, `staging`.
    pub environment: Option<String>,
    /// The commit that was deployed.
    pub commit: Option<String>,
}

/// Whose deploy it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Whose {
    /// Targets by number, key, name or address.
    Targets(Vec<String>),
    /// All of an owner.
    Owner(String),
    /// All on a host.
    Host(String),
}

/// Targets that one marker may name.
const MOST_TARGETS: i64 = 1000;

impl Store {
    /// The targets that are meant and watched, in the order of their numbers; `owner` leaves out those of others.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn targets_of(&self, whose: &Whose, owner: Option<&str>) -> Result<Vec<TargetId>> {
        let mut found = Vec::new();
        match whose {
            Whose::Targets(asked) => {
                for one in asked {
                    let number: i64 = one.parse().unwrap_or(0);
                    let statement = "SELECT target.id FROM target
                         LEFT JOIN owner ON owner.id = target.owner_id
                         WHERE (target.id = $1 OR target.key = $2 OR target.url = $2)
                           AND target.retired_s IS NULL AND ($3 IS NULL OR owner.slug = $3)
                         ORDER BY target.id
                         LIMIT $4";
                    let query = sqlx::query(statement).bind(number).bind(one.as_str()).bind(owner).bind(MOST_TARGETS);
                    found.extend(query.fetch_all(&self.pools.reader).await?);
                }
            }
            Whose::Owner(slug) => {
                let statement = "SELECT target.id FROM target
                     JOIN owner ON owner.id = target.owner_id
                     WHERE owner.slug = $1 AND target.retired_s IS NULL AND ($2 IS NULL OR owner.slug = $2)
                     ORDER BY target.id
                     LIMIT $3";
                let query = sqlx::query(statement).bind(slug.as_str()).bind(owner).bind(MOST_TARGETS);
                found.extend(query.fetch_all(&self.pools.reader).await?);
            }
            Whose::Host(name) => {
                let statement = "SELECT target.id FROM target
                     JOIN host ON host.id = target.host_id
                     LEFT JOIN owner ON owner.id = target.owner_id
                     WHERE host.name = $1 AND target.retired_s IS NULL AND ($2 IS NULL OR owner.slug = $2)
                     ORDER BY target.id
                     LIMIT $3";
                let query = sqlx::query(statement).bind(name.as_str()).bind(owner).bind(MOST_TARGETS);
                found.extend(query.fetch_all(&self.pools.reader).await?);
            }
        }
        let mut ids = found.iter().map(|row| Ok(TargetId(row.try_get(0)?))).collect::<Result<Vec<_>>>()?;
        ids.sort_unstable();
        ids.dedup();
        Ok(ids)
    }

    /// Takes in that a target was deployed. Told again under the same key it is the same deploy; one that was inferred
    /// within a quarter of an hour of it and is not settled becomes this one.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn mark_deploy(&self, target: TargetId, marker: &Marker) -> Result<DeployId> {
        let mut w = self.pools.write().await?;
        let key = marker.dedupe_key.as_deref().map(|key| shortened(key, LONGEST));
        let known: Option<i64> = sqlx::query_scalar("SELECT id FROM deploy WHERE target_id = $1 AND dedupe_key = $2")
            .bind(target.0)
            .bind(key.as_deref())
            .fetch_optional(w.on())
            .await?;
        if let Some(id) = known {
            return Ok(DeployId(id));
        }
        let signal = Signal { kind: SignalKind::Marker, from: None, to: marker.version.clone(), at_s: marker.at_s };
        let text = |text: &Option<String>| text.as_deref().map(|text| shortened(text, 1000));
        let (url, environment, commit) = (text(&marker.url), text(&marker.environment), text(&marker.commit));
        let version = marker.version.as_deref().map(|version| shortened(version, LONGEST));
        let near = sqlx::query(
            "SELECT id, signals FROM deploy
             WHERE target_id = $1 AND outcome IS NULL AND told = 0 AND at_s BETWEEN $2 AND $3
             ORDER BY at_s DESC
             LIMIT 1",
        )
        .bind(target.0)
        .bind(marker.at_s - MERGED_S)
        .bind(marker.at_s + MERGED_S)
        .fetch_optional(w.on())
        .await?;
        let id = match near {
            Some(row) => {
                let id: i64 = row.try_get(0)?;
                merge(&mut w, id, &parsed(&row.try_get::<String, _>(1)?)?, &[signal], 5).await?;
                sqlx::query(
                    "UPDATE deploy
                     SET told = 1, dedupe_key = $2, version = COALESCE($3, version), url = $4, environment = $5,
                         commit_id = $6
                     WHERE id = $1",
                )
                .bind(id)
                .bind(key.as_deref())
                .bind(version.as_deref())
                .bind(url.as_deref())
                .bind(environment.as_deref())
                .bind(commit.as_deref())
                .execute(w.on())
                .await?;
                id
            }
            None => {
                let row = NewDeploy {
                    target: target.0,
                    at_s: marker.at_s,
                    crawl: None,
                    version,
                    signals: &[signal],
                    is_told: true,
                    dedupe_key: key.as_deref(),
                    url: url.as_deref(),
                    environment: environment.as_deref(),
                    commit: commit.as_deref(),
                };
                insert(&mut w, &row).await?
            }
        };
        w.commit().await?;
        Ok(DeployId(id))
    }

    /// Settles what came of deploys: once every surface of the target was looked at since and nothing waits to be
    /// confirmed, or two hours later by what was seen until then. Gives how many were settled.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn settle_deploys(&self, now_s: i64) -> Result<u64> {
        let waiting = sqlx::query(UNSETTLED).bind(STEP).fetch_all(&self.pools.reader).await?;
        if waiting.is_empty() {
            return Ok(0);
        }
        let mut w = self.pools.write().await?;
        let mut settled = 0;
        for row in waiting {
            let (id, target, at_s): (i64, i64, i64) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
            let Some(outcome) = outcome(&mut w, id, target, at_s, now_s).await? else { continue };
            let done = sqlx::query("UPDATE deploy SET outcome = $2, settled_s = $3 WHERE id = $1 AND outcome IS NULL")
                .bind(id)
                .bind(outcome.as_str())
                .bind(now_s)
                .execute(w.on())
                .await?;
            if done.rows_affected() > 0 {
                tell(&mut w, target, id, EventKind::DeployEvaluated, Some(outcome.to_string()), now_s).await?;
                settled += 1;
            }
        }
        w.commit().await?;
        Ok(settled)
    }
}

/// The newest first: they are the ones that somebody waits for.
const UNSETTLED: &str = "SELECT id, target_id, at_s FROM deploy WHERE outcome IS NULL ORDER BY id DESC LIMIT $1";

/// What came of a deploy; `None`: that cannot be told yet.
async fn outcome(w: &mut Writing, deploy: i64, target: i64, at_s: i64, now_s: i64) -> Result<Option<Outcome>> {
    let surfaces = sqlx::query(
        "SELECT surface.last_attempt_s, surface.last_ok_s, surface.verifying, surface.reach,
                (SELECT COUNT(*) FROM finding
                 WHERE finding.surface_id = surface.id AND finding.state IN ('pending', 'clearing')),
                surface.urgent
         FROM target_surface
         JOIN surface ON surface.id = target_surface.surface_id
         WHERE target_surface.target_id = $1 AND target_surface.removed_s IS NULL AND surface.retired_s IS NULL
           AND surface.paused = 0",
    )
    .bind(target)
    .fetch_all(w.on())
    .await?;
    let (mut is_quiet, mut looked, mut answered) = (true, 0, 0);
    for row in &surfaces {
        let since = |s: Option<i64>| s.is_some_and(|s| s >= at_s);
        // A look in the very second of the deploy may have come before it; whoever asked for one waits for that.
        let is_asked_for = row.try_get::<i64, _>(5)? == 1;
        let is_looked_at = since(row.try_get(0)?) && !is_asked_for;
        let reach: ReachState = word("surface", row.try_get(3)?)?;
        let waits = row.try_get::<i64, _>(2)? + row.try_get::<i64, _>(4)? > 0 || reach == ReachState::Suspect;
        is_quiet &= is_looked_at && !waits;
        looked += i64::from(is_looked_at);
        answered += i64::from(since(row.try_get(1)?));
    }
    if looked == 0 || !is_quiet && now_s < at_s + PATIENCE_S {
        return Ok(None);
    }
    if answered == 0 {
        return Ok(Some(Outcome::Unreachable));
    }
    let rows = sqlx::query(FINDINGS_OF).bind(deploy).fetch_all(w.on()).await?;
    let spans = rows.iter().map(span).collect::<Result<Vec<_>>>()?;
    Ok(Some(judged(&spans, FailOn::Error)))
}

/// Findings that began or ended with a deploy. One that did both stands in it twice.
pub(crate) const FINDINGS_OF: &str = "
SELECT 1, finding.id, rule.slug, rule.title, finding.severity, finding.impact, finding_span.from_s, finding.surface_id,
       finding_span.confidence, finding.occurrences, rule.guess
FROM finding_span
JOIN finding ON finding.id = finding_span.finding_id
JOIN rule ON rule.id = finding.rule_id
WHERE finding_span.open_deploy = $1
UNION ALL
SELECT 0, finding.id, rule.slug, rule.title, finding.severity, finding.impact, finding_span.to_s, finding.surface_id,
       finding_span.close_confidence, finding.occurrences, rule.guess
FROM finding_span
JOIN finding ON finding.id = finding_span.finding_id
JOIN rule ON rule.id = finding.rule_id
WHERE finding_span.close_deploy = $1
ORDER BY 1 DESC, 2";

/// A finding that began or ended with a deploy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DeployFinding {
    /// The finding.
    pub finding_id: i64,
    /// The rule.
    pub rule: String,
    /// What that demands.
    pub title: String,
    /// Of its worst occurrence.
    pub severity: Severity,
    /// What released clients do about it.
    pub impact: Option<Impact>,
    /// When it began or ended, in Unix seconds.
    pub at_s: i64,
    /// The surface it is on.
    pub surface_id: i64,
    /// How sure it is that it came with this deploy.
    pub confidence: Confidence,
    /// At how many places it fires, or fired last.
    pub occurrences: i64,
    /// It began; otherwise it ended.
    pub is_beginning: bool,
    /// A guess by name, which counts for nothing.
    pub is_guess: bool,
}

fn span(row: &sqlx::any::AnyRow) -> Result<DeployFinding> {
    Ok(DeployFinding {
        is_beginning: row.try_get::<i64, _>(0)? != 0,
        finding_id: row.try_get(1)?,
        rule: row.try_get(2)?,
        title: row.try_get(3)?,
        severity: word("finding", row.try_get(4)?)?,
        impact: crate::rows::word_or_none("finding", row.try_get(5)?)?,
        at_s: row.try_get(6)?,
        surface_id: row.try_get(7)?,
        confidence: crate::rows::word_or_none("finding_span", row.try_get(8)?)?.unwrap_or(Confidence::None),
        occurrences: row.try_get(9)?,
        is_guess: row.try_get::<i64, _>(10)? != 0,
    })
}

/// What a deploy is called by what began and ended with it.
#[must_use]
pub fn judged(findings: &[DeployFinding], fail_on: FailOn) -> Outcome {
    let counts = |finding: &&DeployFinding| {
        let breaks = finding.impact == Some(Impact::BreaksClients);
        !finding.is_guess
            && match fail_on {
                FailOn::Blocked => breaks,
                FailOn::Error => breaks || finding.severity == Severity::Error,
                FailOn::Warning => breaks || finding.severity != Severity::Info,
            }
    };
    let began = findings.iter().filter(|finding| finding.is_beginning).any(|finding| counts(&finding));
    let ended = findings.iter().filter(|finding| !finding.is_beginning).any(|finding| !finding.is_guess);
    match (began, ended) {
        (true, true) => Outcome::Mixed,
        (true, false) => Outcome::Regressed,
        (false, true) => Outcome::Improved,
        (false, false) => Outcome::Clean,
    }
}

/// A deploy, for lists and for itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DeployRow {
    /// Its number.
    pub id: i64,
    /// Whose.
    pub target_id: i64,
    /// What that is called.
    pub target: String,
    /// Its word now.
    pub headline: Headline,
    /// When, in Unix seconds: as told, or when the first signal was seen.
    pub at_s: i64,
    /// We were told of it.
    pub is_told: bool,
    /// The version it brought, where that is known.
    pub version: Option<String>,
    /// What told of it, in the order it was seen.
    pub signals: Vec<Signal>,
    /// What came of it; `None`: not settled yet.
    pub outcome: Option<Outcome>,
    /// When that was settled, in Unix seconds.
    pub settled_s: Option<i64>,
    /// Findings that began with it.
    pub opened: i64,
    /// Findings that ended with it.
    pub resolved: i64,
    /// Where it is described.
    pub url: Option<String>,
    /// `production`, `staging`.
    pub environment: Option<String>,
    /// The commit.
    pub commit: Option<String>,
}

/// The row of a deploy, in the one order that [`deploy_row`] reads.
macro_rules! deploy_sql {
    ($which:literal) => {
        concat!(
            "SELECT deploy.id, deploy.target_id, target.name, deploy.at_s, deploy.told, deploy.version, deploy.signals,
                    deploy.outcome, deploy.settled_s, deploy.url, deploy.environment, deploy.commit_id, target.headline,
                    (SELECT COUNT(*) FROM finding_span WHERE open_deploy = deploy.id),
                    (SELECT COUNT(*) FROM finding_span WHERE close_deploy = deploy.id)
             FROM deploy
             JOIN target ON target.id = deploy.target_id ",
            $which
        )
    };
}

/// The statements that pages run.
pub(crate) const DEPLOYS: &str = deploy_sql!("WHERE deploy.id < $1 ORDER BY deploy.id DESC LIMIT $2");
pub(crate) const DEPLOYS_OF_TARGET: &str =
    deploy_sql!("WHERE deploy.target_id = $1 AND deploy.id < $2 ORDER BY deploy.at_s DESC LIMIT $3");
pub(crate) const DEPLOY: &str = deploy_sql!("WHERE deploy.id = $1");

impl Store {
    /// Deploys, the newest first, before one of them (`None`: from the newest on); of one target, if it is given.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn deploys(&self, target: Option<TargetId>, before: Option<i64>, limit: i64) -> Result<Vec<DeployRow>> {
        let before = before.unwrap_or(i64::from(i32::MAX));
        let query = match target {
            None => sqlx::query(DEPLOYS),
            Some(target) => sqlx::query(DEPLOYS_OF_TARGET).bind(target.0),
        };
        let rows = query.bind(before).bind(limit).fetch_all(&self.pools.reader).await?;
        rows.iter().map(deploy_row).collect()
    }

    /// A deploy with what began and what ended with it; `None`: there is none of that number.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn deploy(&self, id: DeployId) -> Result<Option<(DeployRow, Vec<DeployFinding>)>> {
        let Some(row) = sqlx::query(DEPLOY).bind(id.0).fetch_optional(&self.pools.reader).await? else {
            return Ok(None);
        };
        let findings = sqlx::query(FINDINGS_OF).bind(id.0).fetch_all(&self.pools.reader).await?;
        Ok(Some((deploy_row(&row)?, findings.iter().map(span).collect::<Result<_>>()?)))
    }
}

fn deploy_row(row: &sqlx::any::AnyRow) -> Result<DeployRow> {
    Ok(DeployRow {
        id: row.try_get(0)?,
        target_id: row.try_get(1)?,
        target: row.try_get(2)?,
        at_s: row.try_get(3)?,
        is_told: row.try_get::<i64, _>(4)? != 0,
        version: row.try_get(5)?,
        signals: parsed(&row.try_get::<String, _>(6)?)?,
        outcome: crate::rows::word_or_none("deploy", row.try_get(7)?)?,
        settled_s: row.try_get(8)?,
        url: row.try_get(9)?,
        environment: row.try_get(10)?,
        commit: row.try_get(11)?,
        headline: word("target", row.try_get(12)?)?,
        opened: row.try_get(13)?,
        resolved: row.try_get(14)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(kind: SurfaceKind, changes: &Changes<'_>) -> Vec<SignalKind> {
        signals(kind, changes, 0).into_iter().map(|signal| signal.kind).collect()
    }

    #[test]
    fn what_changed_tells_what_kind_of_deploy_it_was() {
        use SignalKind as K;
        let version = Changes { says_otherwise: true, version: (Some("1"), Some("2")), ..Changes::default() };
        assert_eq!(kinds(SurfaceKind::AgentCard, &version), [K::CardVersion]);
        assert_eq!(kinds(SurfaceKind::ServerJson, &version), [K::Registry]);
        assert_eq!(kinds(SurfaceKind::McpEndpoint, &version), [K::ServerInfo]);
        let silent =
            Changes { version: (Some("1"), Some("1")), ..Changes { says_otherwise: true, ..Changes::default() } };
        assert_eq!(kinds(SurfaceKind::AgentCard, &silent), [K::SilentChange]);
        let revision = Changes { profile: (Some("mcp-2025-06-18"), Some("mcp-2025-11-25")), ..Changes::default() };
        assert_eq!(kinds(SurfaceKind::McpEndpoint, &revision), [K::LiveChange]);
        assert_eq!(kinds(SurfaceKind::AgentCard, &revision), [], "there it is told by the document");
        let infra = Some(("192.0.2.1".to_owned(), "192.0.2.2".to_owned()));
        let quiet = Changes { is_touched: true, infra, ..Changes::default() };
        assert_eq!(kinds(SurfaceKind::AgentCard, &quiet), [K::Touch, K::Infra]);
        assert_eq!(kinds(SurfaceKind::AgentCard, &Changes::default()), []);
    }

    #[test]
    fn the_heaviest_deploy_is_chosen_and_how_sure_it_is_told() {
        let of = |id, weight, is_told| Candidate { id, weight, is_told };
        assert_eq!(chosen(&[], Cause::Document), (None, Confidence::None));
        assert_eq!(chosen(&[of(1, 5, true)], Cause::Document), (Some(1), Confidence::Certain));
        assert_eq!(chosen(&[of(1, 5, true)], Cause::Unknown), (Some(1), Confidence::Likely));
        assert_eq!(chosen(&[of(1, 3, false)], Cause::Behaviour), (Some(1), Confidence::Likely));
        assert_eq!(chosen(&[of(2, 5, true), of(1, 4, false)], Cause::Document), (Some(2), Confidence::Possible));
    }

    #[test]
    fn a_deploy_is_called_by_what_began_and_ended() {
        let finding = |is_beginning, severity, impact| DeployFinding {
            finding_id: 1,
            rule: "a2a/e".into(),
            title: String::new(),
            severity,
            impact,
            at_s: 0,
            surface_id: 1,
            confidence: Confidence::Likely,
            occurrences: 1,
            is_beginning,
            is_guess: false,
        };
        let error = finding(true, Severity::Error, None);
        let breaks = finding(true, Severity::Warning, Some(Impact::BreaksClients));
        let warning = finding(true, Severity::Warning, None);
        let ended = finding(false, Severity::Warning, None);
        use FailOn::{Blocked, Error, Warning};
        for (findings, fail_on, expected) in [
            (vec![], Error, Outcome::Clean),
            (vec![error.clone()], Error, Outcome::Regressed),
            (vec![error.clone()], Blocked, Outcome::Clean),
            (vec![breaks.clone()], Blocked, Outcome::Regressed),
            (vec![warning.clone()], Error, Outcome::Clean),
            (vec![warning.clone()], Warning, Outcome::Regressed),
            (vec![warning.clone(), ended.clone()], Error, Outcome::Improved),
            (vec![error, ended.clone()], Error, Outcome::Mixed),
            (vec![ended], Error, Outcome::Improved),
        ] {
            assert_eq!(judged(&findings, fail_on), expected, "{findings:?} {fail_on}");
        }
        let guess = DeployFinding { is_guess: true, ..breaks };
        assert_eq!(judged(&[guess], Warning), Outcome::Clean);
    }
}
