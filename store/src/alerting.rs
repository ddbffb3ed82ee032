//! Alerts as they are kept: routes, alerts, groups, and the four ways of keeping quiet.
//!
//! Two functions write what the pipeline decided, each in one transaction: [`Store::take_events`] turns events into alerts and
//! messages for programs, together with the cursor; [`Store::tell_groups`] turns waiting alerts into groups and messages for
//! people. Everything else here reads, or is what a person asks for.

use std::collections::{BTreeMap, BTreeSet};

use plumbline_rules::words;
use serde::Serialize;
use sqlx::Row;
use sqlx::any::AnyRow;

use crate::Store;
use crate::dialect::{Table, Writing};
use crate::error::{Error, Result};
use crate::events::{self, News};
use crate::happened::Facts;
use crate::hooks::{NewMessage, Origin, keep_message};
use crate::ids::{AlertId, EndpointId, EventId, GroupId, RouteId};
use crate::rows::{clean, shortened, word};
use crate::taken_on;
use crate::words::EventKind;

/// The reader of events whose cursor this is.
pub const READER: &str = "alerts";

words! {
    /// How grave an alert is, as a pager means it; the gravest first.
    pub enum Grade {
        /// Wakes somebody.
        Critical = "critical",
        /// Somebody should act today.
        Error = "error",
        /// Somebody should look.
        Warning = "warning",
        /// Good to know; never paged.
        Info = "info",
    }
}

words! {
    /// Where an alert stands.
    pub enum AlertState {
        /// Told, or about to be.
        Firing = "firing",
        /// Not told for now: maintenance, quiet hours, the storm brake.
        Held = "held",
        /// Not told because something greater explains it.
        Inhibited = "inhibited",
        /// Not told because somebody asked for silence.
        Silenced = "silenced",
        /// Somebody has taken it on; it is not repeated.
        Acknowledged = "acknowledged",
        /// Over.
        Resolved = "resolved",
    }
}

words! {
    /// How an alert ended.
    pub enum EndedAs {
        /// What it was about is over.
        Resolved = "resolved",
        /// It comes and goes; no more is said until it calms down.
        Flapping = "flapping",
        /// Its target or rule is no longer there.
        Retired = "retired",
    }
}

words! {
    /// What alerts of one group share.
    pub enum ByWhat {
        /// An incident.
        Incident = "incident",
        /// A deploy.
        Deploy = "deploy",
        /// A change of the rules.
        Ruleset = "ruleset",
        /// A rule, on many targets.
        Rule = "rule",
        /// A target.
        Target = "target",
        /// Only that there are too many to speak of each.
        Storm = "storm",
    }
}

/// A route as it is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NewRoute {
    /// Its name in settings and addresses.
    pub slug: String,
    /// As shown.
    pub title: String,
    /// Which alerts.
    pub matcher: String,
    /// Less grave ones are left out.
    pub min_severity: Grade,
    /// First looks too.
    pub include_baseline: bool,
    /// What opened because a rule changed too.
    pub include_rule_changes: bool,
    /// How long it waits for others of the same group, in seconds.
    pub wait_s: i64,
    /// Least time between two messages about one group, in seconds.
    pub interval_s: i64,
    /// After this long without news what still holds is said again, in seconds.
    pub repeat_s: i64,
    /// JSON `{"zone","from","to"}`: nothing is told in between; `None`: at all hours.
    pub quiet_hours: Option<String>,
}

/// A route.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Route {
    /// Its number.
    pub id: RouteId,
    /// As it was asked for.
    #[serde(flatten)]
    pub is: NewRoute,
    /// Where it was made.
    pub origin: Origin,
    /// Where it leads.
    pub endpoints: Vec<EndpointId>,
}

/// An alert that begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewAlert {
    /// The route.
    pub route: RouteId,
    /// What it is about: `finding:48211`.
    pub key: String,
    /// One line.
    pub title: String,
    /// How grave.
    pub severity: Grade,
    /// The target.
    pub target: Option<i64>,
    /// The surface.
    pub surface: Option<i64>,
    /// The rule.
    pub rule: Option<String>,
    /// What matchers read.
    pub facts: Facts,
    /// One sentence for each step so far.
    pub why: Vec<String>,
    /// What it shares with others, the rule aside, which is known only when many are.
    pub by: (ByWhat, String),
    /// The event.
    pub event: EventId,
    /// When it happened, in Unix seconds.
    pub at_s: i64,
}

/// What events do to alerts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AlertChange {
    /// One begins, unless its key has an open one on that route.
    Begin(Box<NewAlert>),
    /// One is graver than it was, or was told of again.
    Touch {
        /// Which.
        alert: AlertId,
        /// The event.
        event: EventId,
        /// How grave it is now.
        severity: Grade,
        /// It is graver than before, or deployed anew and still there: it is told again, also where somebody took it on.
        tells_again: bool,
    },
    /// One ends.
    End {
        /// Which.
        alert: AlertId,
        /// The event.
        event: EventId,
        /// How.
        how: EndedAs,
        /// When, in Unix seconds.
        at_s: i64,
    },
}

/// An alert that is not over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Alert {
    /// Its number.
    pub id: AlertId,
    /// The route.
    pub route: RouteId,
    /// The group it was told in.
    pub group: Option<GroupId>,
    /// What it is about.
    pub key: String,
    /// One line.
    pub title: String,
    /// Where it stands.
    pub state: AlertState,
    /// How grave.
    pub severity: Grade,
    /// The target.
    pub target: Option<i64>,
    /// Its key.
    pub target_key: Option<String>,
    /// The surface.
    pub surface: Option<i64>,
    /// The rule.
    pub rule: Option<String>,
    /// What matchers read.
    pub facts: Facts,
    /// One sentence for each step.
    pub why: Vec<String>,
    /// What it shares with others.
    pub by: (ByWhat, String),
    /// The event that opened it.
    pub opened_event: EventId,
    /// The newest event about it.
    pub last_event: EventId,
    /// When it opened, in Unix seconds.
    pub opened_s: i64,
    /// When it was first told, in Unix seconds; `None`: never.
    pub notified_s: Option<i64>,
    /// When it ended, in Unix seconds.
    pub ended_s: Option<i64>,
    /// How.
    pub ended_as: Option<EndedAs>,
    /// When that was told, in Unix seconds.
    pub end_told_s: Option<i64>,
    /// What keeps it from being told: `silence:3`, `maintenance:1`, `storm`, …
    pub held_by: Option<String>,
    /// The silence that kept it quiet last, whatever has kept it since.
    pub silenced_by: Option<i64>,
    /// Who took it on.
    pub ack_by: Option<String>,
    /// With which words.
    pub ack_note: Option<String>,
    /// Until when, in Unix seconds; `None`: until it ends.
    pub ack_until_s: Option<i64>,
    /// Its surface is down.
    pub is_surface_down: bool,
    /// Some surface of its host asks us to come back later.
    pub is_host_throttled: bool,
    /// An open incident holds its surface.
    pub incident: Option<i64>,
    /// Last look at its surface, in Unix seconds.
    pub looked_s: Option<i64>,
}

/// A group that is not over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Group {
    /// Its number.
    pub id: GroupId,
    /// The route.
    pub route: RouteId,
    /// What its members share.
    pub by: ByWhat,
    /// Which one of those.
    pub key: String,
    /// Began, in Unix seconds.
    pub opened_s: i64,
    /// Ended, in Unix seconds.
    pub ended_s: Option<i64>,
    /// Next time it may be told, in Unix seconds.
    pub due_s: Option<i64>,
    /// Last told, in Unix seconds.
    pub told_s: Option<i64>,
    /// Grows with every message.
    pub revision: i64,
    /// Of its gravest member.
    pub severity: Grade,
    /// Members that hold.
    pub firing: i64,
    /// Members that are over.
    pub resolved: i64,
    /// Its last message in one line.
    pub summary: String,
}

/// What is told of one group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupNews {
    /// As it is afterwards.
    pub group: Group,
    /// It is a new one.
    pub is_new: bool,
    /// Alerts told for the first time.
    pub opens: Vec<AlertId>,
    /// Alerts whose end is told.
    pub ends: Vec<AlertId>,
    /// Sentences to keep with the alerts told for the first time, and with those that may be repeated again.
    pub why: Vec<(AlertId, Vec<String>)>,
    /// What is sent; empty: nobody hears of it.
    pub messages: Vec<Share>,
    /// The event that feeds tell.
    pub kind: EventKind,
    /// Silences that had kept a member quiet and are over: this says so.
    pub after_silences: Vec<i64>,
}

/// What one receiver of a group, or several alike, are told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Share {
    /// What is sent.
    pub message: NewMessage,
    /// Alerts of which they hear for the first time.
    pub opens: Vec<AlertId>,
    /// Alerts of whose end they hear.
    pub ends: Vec<AlertId>,
}

/// What becomes of an alert that is not told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// Which.
    pub alert: AlertId,
    /// Where it stands.
    pub state: AlertState,
    /// What keeps it.
    pub held_by: Option<String>,
    /// One sentence for each step.
    pub why: Vec<String>,
}

impl Kept {
    /// The silence that keeps it, if it is one.
    #[must_use]
    pub fn silence(&self) -> Option<i64> {
        self.held_by.as_deref()?.strip_prefix("silence:")?.parse().ok()
    }
}

/// For a while nobody wants to hear of what matches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Silence {
    /// Its number.
    pub id: i64,
    /// What it covers.
    pub matcher: String,
    /// Why.
    pub reason: String,
    /// Whose it is.
    pub author: String,
    /// Where it was made.
    pub origin: Origin,
    /// In Unix seconds.
    pub created_s: i64,
    /// In Unix seconds.
    pub starts_s: i64,
    /// In Unix seconds.
    pub ends_s: i64,
    /// It ends early after so many seconds without a match.
    pub calm_s: Option<i64>,
    /// Last match, in Unix seconds.
    pub matched_s: Option<i64>,
    /// It ended, in Unix seconds.
    pub ended_s: Option<i64>,
    /// The first message after its end has said so.
    pub is_told: bool,
}

impl Silence {
    /// Whether it holds at a moment.
    #[must_use]
    pub fn holds(&self, now_s: i64) -> bool {
        self.ended_s.is_none() && self.starts_s <= now_s && now_s < self.ends_s
    }
}

/// Planned work on somebody's side.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Maintenance {
    /// Its number.
    pub id: i64,
    /// As shown.
    pub title: String,
    /// What it covers.
    pub matcher: String,
    /// Whose it is.
    pub author: String,
    /// Where it was made.
    pub origin: Origin,
    /// The zone of its times.
    pub zone: String,
    /// Once, in Unix seconds.
    pub starts_s: Option<i64>,
    /// Again and again: five fields of cron.
    pub cron: Option<String>,
    /// How long, in seconds.
    pub duration_s: i64,
    /// In Unix seconds.
    pub created_s: i64,
    /// Called off, in Unix seconds.
    pub ended_s: Option<i64>,
}

/// An accepted deviation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Waiver {
    /// Its number.
    pub id: i64,
    /// A rule, or a family with `/*`.
    pub rule: String,
    /// On whom.
    pub matcher: String,
    /// Why.
    pub reason: String,
    /// Who accepted it.
    pub author: String,
    /// Where it was made.
    pub origin: Origin,
    /// In Unix seconds.
    pub created_s: i64,
    /// In Unix seconds.
    pub ends_s: i64,
    /// Taken back, in Unix seconds.
    pub ended_s: Option<i64>,
}

macro_rules! select_alert {
    ($rest:literal) => {
        concat!(
            "SELECT alert.id, alert.route_id, alert.group_id, alert.key, alert.title, alert.state, alert.severity,
                    alert.target_id, target.key AS target_key, alert.surface_id, alert.rule, alert.facts, alert.why,
                    alert.by_what, alert.by_key, alert.opened_event, alert.last_event, alert.opened_s, alert.notified_s,
                    alert.ended_s, alert.ended_as, alert.end_told_s, alert.held_by, alert.silenced_by, alert.ack_by, alert.ack_note,
                    alert.ack_until_s, surface.reach, surface.last_attempt_s,
                    CASE WHEN EXISTS (SELECT 1 FROM surface other
                                      WHERE other.host_id = surface.host_id AND other.reach = 'throttled')
                         THEN 1 ELSE 0 END AS is_throttled,
                    (SELECT MAX(incident.id) FROM incident_member
                     JOIN incident ON incident.id = incident_member.incident_id
                     WHERE incident_member.surface_id = alert.surface_id AND incident_member.left_s IS NULL
                       AND incident.closed_s IS NULL) AS incident_id
             FROM alert
             LEFT JOIN target ON target.id = alert.target_id
             LEFT JOIN surface ON surface.id = alert.surface_id ",
            $rest
        )
    };
}

fn alert(row: &AnyRow) -> Result<Alert> {
    let (facts, why): (String, String) = (row.try_get("facts")?, row.try_get("why")?);
    let ended_as: Option<String> = row.try_get("ended_as")?;
    Ok(Alert {
        id: AlertId(row.try_get("id")?),
        route: RouteId(row.try_get("route_id")?),
        group: row.try_get::<Option<i64>, _>("group_id")?.map(GroupId),
        key: row.try_get("key")?,
        title: row.try_get("title")?,
        state: word("alert", row.try_get("state")?)?,
        severity: word("alert", row.try_get("severity")?)?,
        target: row.try_get("target_id")?,
        target_key: row.try_get("target_key")?,
        surface: row.try_get("surface_id")?,
        rule: row.try_get("rule")?,
        facts: serde_json::from_str(&facts).map_err(|error| Error::corrupt("alert", error))?,
        why: serde_json::from_str(&why).map_err(|error| Error::corrupt("alert", error))?,
        by: (word("alert", row.try_get("by_what")?)?, row.try_get("by_key")?),
        opened_event: EventId(row.try_get("opened_event")?),
        last_event: EventId(row.try_get("last_event")?),
        opened_s: row.try_get("opened_s")?,
        notified_s: row.try_get("notified_s")?,
        ended_s: row.try_get("ended_s")?,
        ended_as: ended_as.map(|text| word("alert", &text)).transpose()?,
        end_told_s: row.try_get("end_told_s")?,
        held_by: row.try_get("held_by")?,
        silenced_by: row.try_get("silenced_by")?,
        ack_by: row.try_get("ack_by")?,
        ack_note: row.try_get("ack_note")?,
        ack_until_s: row.try_get("ack_until_s")?,
        is_host_throttled: row.try_get::<i64, _>("is_throttled")? != 0,
        is_surface_down: row.try_get::<Option<String>, _>("reach")?.as_deref() == Some("down"),
        incident: row.try_get("incident_id")?,
        looked_s: row.try_get("last_attempt_s")?,
    })
}

macro_rules! select_group {
    ($rest:literal) => {
        concat!(
            "SELECT id, route_id, by_what, key, opened_s, ended_s, due_s, told_s, revision, severity, firing, resolved, summary
             FROM alert_group ",
            $rest
        )
    };
}

fn group(row: &AnyRow) -> Result<Group> {
    Ok(Group {
        id: GroupId(row.try_get("id")?),
        route: RouteId(row.try_get("route_id")?),
        by: word("group", row.try_get("by_what")?)?,
        key: row.try_get("key")?,
        opened_s: row.try_get("opened_s")?,
        ended_s: row.try_get("ended_s")?,
        due_s: row.try_get("due_s")?,
        told_s: row.try_get("told_s")?,
        revision: row.try_get("revision")?,
        severity: word("group", row.try_get("severity")?)?,
        firing: row.try_get("firing")?,
        resolved: row.try_get("resolved")?,
        summary: row.try_get("summary")?,
    })
}

/// A route, without where it leads.
fn route(row: &AnyRow) -> Result<Route> {
    Ok(Route {
        id: RouteId(row.try_get(0)?),
        is: NewRoute {
            slug: row.try_get(1)?,
            title: row.try_get(2)?,
            matcher: row.try_get(4)?,
            min_severity: word("route", row.try_get(5)?)?,
            include_baseline: row.try_get::<i64, _>(6)? != 0,
            include_rule_changes: row.try_get::<i64, _>(7)? != 0,
            wait_s: row.try_get(8)?,
            interval_s: row.try_get(9)?,
            repeat_s: row.try_get(10)?,
            quiet_hours: row.try_get(11)?,
        },
        origin: word("route", row.try_get(3)?)?,
        endpoints: Vec::new(),
    })
}

fn json(value: &impl Serialize) -> Result<String> {
    serde_json::to_string(value).map_err(|error| Error::corrupt("list", error))
}

impl Store {
    /// Where the reading of events begins: a reader that never read begins with what comes, not with the past.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn begin_reading(&self) -> Result<EventId> {
        let at: Option<i64> = sqlx::query_scalar("SELECT event_id FROM event_cursor WHERE reader = $1")
            .bind(READER)
            .fetch_optional(&self.pools.reader)
            .await?;
        if let Some(at) = at {
            return Ok(EventId(at));
        }
        let mut w = self.pools.write().await?;
        let newest: i64 = sqlx::query_scalar("SELECT COALESCE(MAX(id), 0) FROM event").fetch_one(w.on()).await?;
        sqlx::query("INSERT INTO event_cursor (reader, event_id) VALUES ($1, $2) ON CONFLICT (reader) DO NOTHING")
            .bind(READER)
            .bind(newest)
            .execute(w.on())
            .await?;
        w.commit().await?;
        Ok(EventId(newest))
    }

    /// Ends alerts that no event ends: jumps that are a day old, receivers that accept messages again, hosts that no longer
    /// ask to be left alone, and lists that a whole walk has believed since.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn expire_alerts(&self, now_s: i64) -> Result<()> {
        let rows: Vec<i64> = sqlx::query_scalar(
            "SELECT id FROM alert
             WHERE ended_s IS NULL
               AND ((key LIKE 'rule:%' AND opened_s <= $1)
                    OR (key LIKE 'webhook:%' AND NOT EXISTS (
                        SELECT 1 FROM wh_endpoint
                        WHERE alert.key = 'webhook:' || CAST(wh_endpoint.id AS TEXT)
                          AND wh_endpoint.state <> 'active' AND wh_endpoint.removed_s IS NULL))
                    OR (key LIKE 'crawl:throttled:%' AND NOT EXISTS (
                        SELECT 1 FROM surface asked
                        JOIN surface other ON other.host_id = asked.host_id OR other.id = asked.id
                        WHERE asked.id = alert.surface_id AND other.reach = 'throttled' AND other.retired_s IS NULL))
                    OR (key LIKE 'crawl:loss:%' AND EXISTS (
                        SELECT 1 FROM crawl
                        JOIN source ON source.id = crawl.source_id
                        WHERE alert.key = 'crawl:loss:' || source.name AND crawl.kind = 'full-walk'
                          AND crawl.state = 'complete' AND crawl.held_back = 0 AND crawl.started_s >= alert.opened_s)))",
        )
        .bind(now_s - 86_400)
        .fetch_all(&self.pools.reader)
        .await?;
        if rows.is_empty() {
            return Ok(());
        }
        let mut w = self.pools.write().await?;
        for id in rows {
            let event = EventId(0);
            apply(&mut w, &AlertChange::End { alert: AlertId(id), event, how: EndedAs::Resolved, at_s: now_s }, now_s)
                .await?;
        }
        w.commit().await
    }

    /// The routes in force, by name.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn routes(&self) -> Result<Vec<Route>> {
        let rows = sqlx::query(
            "SELECT id, slug, title, origin, matcher, min_severity, include_baseline, include_rule_changes, wait_s,
                    interval_s, repeat_s, quiet_hours
             FROM route WHERE enabled = 1 AND removed_s IS NULL ORDER BY slug",
        )
        .fetch_all(&self.pools.reader)
        .await?;
        let leads = sqlx::query(
            "SELECT route_endpoint.route_id, route_endpoint.endpoint_id
             FROM route_endpoint
             JOIN wh_endpoint ON wh_endpoint.id = route_endpoint.endpoint_id
             WHERE wh_endpoint.removed_s IS NULL
             ORDER BY route_endpoint.route_id, route_endpoint.endpoint_id",
        )
        .fetch_all(&self.pools.reader)
        .await?;
        let mut routes = Vec::with_capacity(rows.len());
        for row in &rows {
            let mut found = route(row)?;
            for lead in &leads {
                if lead.try_get::<i64, _>(0)? == found.id.0 {
                    found.endpoints.push(EndpointId(lead.try_get(1)?));
                }
            }
            routes.push(found);
        }
        Ok(routes)
    }

    /// A route that was taken away: it leads nowhere any more. `None`: there is none, or it is in force.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn removed_route(&self, id: RouteId) -> Result<Option<Route>> {
        let row = sqlx::query(
            "SELECT id, slug, title, origin, matcher, min_severity, include_baseline, include_rule_changes, wait_s,
                    interval_s, repeat_s, quiet_hours
             FROM route WHERE id = $1 AND removed_s IS NOT NULL",
        )
        .bind(id.0)
        .fetch_optional(&self.pools.reader)
        .await?;
        row.as_ref().map(route).transpose()
    }

    /// Makes or changes the route of that name, and where it leads.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn put_route(&self, new: &NewRoute, to: &[EndpointId], origin: Origin, now_s: i64) -> Result<RouteId> {
        let mut w = self.pools.write().await?;
        let id = write_route(&mut w, new, to, origin, now_s).await?;
        w.commit().await?;
        Ok(id)
    }

    /// Takes a route away: its open alerts end, and whoever was told of them is told so.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn remove_route(&self, id: RouteId, now_s: i64) -> Result<()> {
        let mut w = self.pools.write().await?;
        drop_route(&mut w, id, now_s).await?;
        w.commit().await
    }

    /// The open alerts with this key, at most one a route.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn open_alerts(&self, key: &str) -> Result<Vec<Alert>> {
        let rows = sqlx::query(select_alert!("WHERE alert.key = $1 AND alert.ended_s IS NULL"))
            .bind(key)
            .fetch_all(&self.pools.reader)
            .await?;
        rows.iter().map(alert).collect()
    }

    /// The open alerts that explain others: about incidents, and the one with this key; each with its route.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn open_explanations(&self, key: &str) -> Result<Vec<(RouteId, String)>> {
        let rows = sqlx::query(
            "SELECT route_id, key FROM alert WHERE ended_s IS NULL AND (key = $1 OR key LIKE 'incident:%')",
        )
        .bind(key)
        .fetch_all(&self.pools.reader)
        .await?;
        rows.iter().map(|row| Ok((RouteId(row.try_get(0)?), row.try_get(1)?))).collect()
    }

    /// The open alerts that end when a target is no longer watched: those about it and about surfaces it showed, but for
    /// surfaces that another target shows.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn open_alerts_of(&self, target: i64) -> Result<Vec<Alert>> {
        let rows = sqlx::query(select_alert!(
            "WHERE alert.id IN (SELECT id FROM alert WHERE target_id = $1 AND ended_s IS NULL
                                UNION
                                SELECT id FROM alert
                                WHERE ended_s IS NULL
                                  AND surface_id IN (SELECT surface_id FROM target_surface WHERE target_id = $1))
               AND NOT EXISTS (SELECT 1 FROM target_surface shown
                               JOIN target other ON other.id = shown.target_id AND other.retired_s IS NULL
                               WHERE shown.surface_id = alert.surface_id AND shown.removed_s IS NULL
                                 AND shown.target_id <> $1)"
        ))
        .bind(target)
        .fetch_all(&self.pools.reader)
        .await?;
        rows.iter().map(alert).collect()
    }

    /// Keeps what events did, in one transaction with the cursor: alerts that begin, change and end, and messages for
    /// programs. Gives `false`, and keeps nothing, when somebody else has moved the cursor since.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn take_events(
        &self,
        from: EventId,
        to: EventId,
        changes: &[AlertChange],
        messages: &[NewMessage],
        now_s: i64,
    ) -> Result<bool> {
        let mut w = self.pools.write().await?;
        if !move_cursor(&mut w, from, to).await? {
            return Ok(false);
        }
        for change in changes {
            apply(&mut w, change, now_s).await?;
        }
        for message in messages {
            keep_message(&mut w, message, now_s).await?;
        }
        w.commit().await?;
        Ok(true)
    }

    /// Alerts that are open and were never told, the oldest first.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn waiting_alerts(&self, limit: i64) -> Result<Vec<Alert>> {
        let rows = sqlx::query(select_alert!(
            "WHERE alert.ended_s IS NULL AND alert.notified_s IS NULL ORDER BY alert.opened_s, alert.id LIMIT $1"
        ))
        .bind(limit)
        .fetch_all(&self.pools.reader)
        .await?;
        rows.iter().map(alert).collect()
    }

    /// Routes with alerts that were never told, and when the oldest of each opened.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn oldest_waiting(&self) -> Result<BTreeMap<RouteId, i64>> {
        let rows = sqlx::query(
            "SELECT route_id, MIN(opened_s) FROM alert WHERE ended_s IS NULL AND notified_s IS NULL GROUP BY route_id",
        )
        .fetch_all(&self.pools.reader)
        .await?;
        rows.iter().map(|row| Ok((RouteId(row.try_get(0)?), row.try_get(1)?))).collect()
    }

    /// Alerts of a route that are open and were never told, after one, in the order of their numbers.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn waiting_alerts_of(&self, route: RouteId, after: AlertId, limit: i64) -> Result<Vec<Alert>> {
        let rows = sqlx::query(select_alert!(
            "WHERE alert.route_id = $1 AND alert.id > $2 AND alert.ended_s IS NULL AND alert.notified_s IS NULL
             ORDER BY alert.id
             LIMIT $3"
        ))
        .bind(route.0)
        .bind(after.0)
        .bind(limit)
        .fetch_all(&self.pools.reader)
        .await?;
        rows.iter().map(alert).collect()
    }

    /// Alerts about findings on what a target shows that somebody took on before a moment, and that are still open.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn taken_on_before(&self, target: i64, at_s: i64) -> Result<Vec<Alert>> {
        let rows = sqlx::query(select_alert!(
            "WHERE alert.state = 'acknowledged' AND alert.ended_s IS NULL AND alert.ack_s < $2
               AND alert.key LIKE 'finding:%'
               AND (alert.target_id = $1
                    OR alert.surface_id IN (SELECT surface_id FROM target_surface
                                            WHERE target_id = $1 AND removed_s IS NULL))"
        ))
        .bind(target)
        .bind(at_s)
        .fetch_all(&self.pools.reader)
        .await?;
        rows.iter().map(alert).collect()
    }

    /// Groups that may be told now.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn due_groups(&self, now_s: i64) -> Result<Vec<Group>> {
        let rows = sqlx::query(select_group!("WHERE ended_s IS NULL AND due_s <= $1 ORDER BY id"))
            .bind(now_s)
            .fetch_all(&self.pools.reader)
            .await?;
        rows.iter().map(group).collect()
    }

    /// The open group of that kind on a route.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn open_group(&self, route: RouteId, by: ByWhat, key: &str) -> Result<Option<Group>> {
        let row = sqlx::query(select_group!("WHERE route_id = $1 AND by_what = $2 AND key = $3 AND ended_s IS NULL"))
            .bind(route.0)
            .bind(by.as_str())
            .bind(key)
            .fetch_optional(&self.pools.reader)
            .await?;
        row.as_ref().map(group).transpose()
    }

    /// One group.
    ///
    /// # Errors
    /// When there is none, or the database fails.
    pub async fn alert_group(&self, id: GroupId) -> Result<Group> {
        let row = sqlx::query(select_group!("WHERE id = $1")).bind(id.0).fetch_optional(&self.pools.reader).await?;
        group(&row.ok_or_else(|| Error::Missing { what: "alert group", id: id.to_string() })?)
    }

    /// The groups that are open, the gravest and newest first.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn open_groups(&self, limit: i64) -> Result<Vec<Group>> {
        let rows = sqlx::query(select_group!(
            "WHERE ended_s IS NULL
             ORDER BY CASE severity WHEN 'critical' THEN 0 WHEN 'error' THEN 1 WHEN 'warning' THEN 2 ELSE 3 END, id DESC
             LIMIT $1"
        ))
        .bind(limit)
        .fetch_all(&self.pools.reader)
        .await?;
        rows.iter().map(group).collect()
    }

    /// Members of a group: those that hold and those whose end is not told, the gravest first; then the others.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn members(&self, id: GroupId) -> Result<Vec<Alert>> {
        let rows = sqlx::query(select_alert!(
            "WHERE alert.group_id = $1
             ORDER BY CASE WHEN alert.ended_s IS NULL THEN 0 WHEN alert.end_told_s IS NULL THEN 1 ELSE 2 END,
                      CASE alert.severity WHEN 'critical' THEN 0 WHEN 'error' THEN 1 WHEN 'warning' THEN 2 ELSE 3 END,
                      alert.id"
        ))
        .bind(id.0)
        .fetch_all(&self.pools.reader)
        .await?;
        rows.iter().map(alert).collect()
    }

    /// The newest alerts, told or not.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn newest_alerts(&self, before: i64, limit: i64) -> Result<Vec<Alert>> {
        let rows = sqlx::query(select_alert!("WHERE alert.id < $1 ORDER BY alert.id DESC LIMIT $2"))
            .bind(before)
            .bind(limit)
            .fetch_all(&self.pools.reader)
            .await?;
        rows.iter().map(alert).collect()
    }

    /// One alert, open or not; `None`: there is none.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn alert(&self, id: AlertId) -> Result<Option<Alert>> {
        let row =
            sqlx::query(select_alert!("WHERE alert.id = $1")).bind(id.0).fetch_optional(&self.pools.reader).await?;
        row.as_ref().map(alert).transpose()
    }

    /// Every open alert, for previews of silences.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn all_open_alerts(&self, limit: i64) -> Result<Vec<Alert>> {
        let rows = sqlx::query(select_alert!("WHERE alert.ended_s IS NULL ORDER BY alert.id DESC LIMIT $1"))
            .bind(limit)
            .fetch_all(&self.pools.reader)
            .await?;
        rows.iter().map(alert).collect()
    }

    /// How many groups and alerts are open.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn open_counts(&self) -> Result<(i64, i64)> {
        let row = sqlx::query(
            "SELECT (SELECT COUNT(*) FROM alert_group WHERE ended_s IS NULL),
                    (SELECT COUNT(*) FROM alert WHERE ended_s IS NULL)",
        )
        .fetch_one(&self.pools.reader)
        .await?;
        Ok((row.try_get(0)?, row.try_get(1)?))
    }

    /// Who was told the opening of a group's members.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn told_of(&self, id: GroupId) -> Result<Vec<EndpointId>> {
        let ids: Vec<i64> = sqlx::query_scalar(
            "SELECT DISTINCT alert_told.endpoint_id
             FROM alert_told
             JOIN alert ON alert.id = alert_told.alert_id
             JOIN wh_endpoint ON wh_endpoint.id = alert_told.endpoint_id
             WHERE alert.group_id = $1 AND wh_endpoint.removed_s IS NULL
             ORDER BY alert_told.endpoint_id",
        )
        .bind(id.0)
        .fetch_all(&self.pools.reader)
        .await?;
        Ok(ids.into_iter().map(EndpointId).collect())
    }

    /// Which receiver was told of which members of a group.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn told_each(&self, id: GroupId) -> Result<BTreeMap<EndpointId, BTreeSet<AlertId>>> {
        let rows = sqlx::query(
            "SELECT alert_told.endpoint_id, alert_told.alert_id
             FROM alert_told
             JOIN alert ON alert.id = alert_told.alert_id
             JOIN wh_endpoint ON wh_endpoint.id = alert_told.endpoint_id
             WHERE alert.group_id = $1 AND wh_endpoint.removed_s IS NULL",
        )
        .bind(id.0)
        .fetch_all(&self.pools.reader)
        .await?;
        let mut told: BTreeMap<EndpointId, BTreeSet<AlertId>> = BTreeMap::new();
        for row in &rows {
            told.entry(EndpointId(row.try_get(0)?)).or_default().insert(AlertId(row.try_get(1)?));
        }
        Ok(told)
    }

    /// Alerts that opened since a moment on a route, and on all that lead where it leads.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn bustle(&self, route: RouteId, since_s: i64, now_s: i64) -> Result<i64> {
        Ok(sqlx::query_scalar(
            "SELECT COUNT(*) FROM alert
             WHERE opened_s > $2 AND opened_s <= $3
               AND route_id IN (SELECT id FROM route WHERE id = $1
                                UNION
                                SELECT other.route_id
                                FROM route_endpoint mine
                                JOIN route_endpoint other ON other.endpoint_id = mine.endpoint_id
                                WHERE mine.route_id = $1)",
        )
        .bind(route.0)
        .bind(since_s)
        .bind(now_s)
        .fetch_one(&self.pools.reader)
        .await?)
    }

    /// Messages about groups that each receiver was sent since a moment, ends of groups left out.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn sent_lately(&self, since_s: i64, now_s: i64) -> Result<BTreeMap<EndpointId, i64>> {
        let rows = sqlx::query(
            "SELECT wh_delivery.endpoint_id, COUNT(*)
             FROM wh_message
             JOIN wh_delivery ON wh_delivery.message_id = wh_message.id
             WHERE wh_message.at_s > $1 AND wh_message.at_s <= $2
               AND wh_message.type IN ('alert_group.opened', 'alert_group.updated')
             GROUP BY wh_delivery.endpoint_id",
        )
        .bind(since_s)
        .bind(now_s)
        .fetch_all(&self.pools.reader)
        .await?;
        rows.iter().map(|row| Ok((EndpointId(row.try_get(0)?), row.try_get(1)?))).collect()
    }

    /// How many targets have an open alert about a rule on a route.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn targets_alerting(&self, route: RouteId, rule: &str) -> Result<i64> {
        Ok(sqlx::query_scalar(
            "SELECT COUNT(DISTINCT target_id) FROM alert WHERE route_id = $1 AND rule = $2 AND ended_s IS NULL",
        )
        .bind(route.0)
        .bind(rule)
        .fetch_one(&self.pools.reader)
        .await?)
    }

    /// The number that the next group will have. One process tells groups, so nobody takes it meanwhile.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn next_group(&self) -> Result<GroupId> {
        let last: i64 =
            sqlx::query_scalar("SELECT COALESCE(MAX(id), 0) FROM alert_group").fetch_one(&self.pools.reader).await?;
        Ok(GroupId(last + 1))
    }

    /// Keeps what is told of groups, in one transaction: groups, who was told what, messages, events; and why the other
    /// alerts were not told. Gives `false`, and keeps nothing, when a group or an alert has moved since it was read.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn tell_groups(&self, news: &[GroupNews], kept: &[Kept], now_s: i64) -> Result<bool> {
        let mut w = self.pools.write().await?;
        for one in news {
            if !tell(&mut w, one, now_s).await? {
                return Ok(false);
            }
        }
        for one in kept {
            sqlx::query(
                "UPDATE alert SET state = $2, held_by = $3, why = $4, silenced_by = COALESCE($5, silenced_by)
                 WHERE id = $1 AND notified_s IS NULL AND ended_s IS NULL
                   AND (state <> 'acknowledged' OR $2 = 'acknowledged')",
            )
            .bind(one.alert.0)
            .bind(one.state.as_str())
            .bind(one.held_by.clone())
            .bind(json(&one.why)?)
            .bind(one.silence())
            .execute(w.on())
            .await?;
        }
        w.commit().await?;
        Ok(true)
    }

    /// Notes why alerts that were told are not repeated.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn hush_alerts(&self, kept: &[Kept]) -> Result<()> {
        let mut w = self.pools.write().await?;
        for one in kept {
            sqlx::query(
                "UPDATE alert SET held_by = $2, why = $3, silenced_by = COALESCE($4, silenced_by)
                 WHERE id = $1 AND notified_s IS NOT NULL AND ended_s IS NULL",
            )
            .bind(one.alert.0)
            .bind(one.held_by.clone())
            .bind(json(&one.why)?)
            .bind(one.silence())
            .execute(w.on())
            .await?;
        }
        w.commit().await
    }

    /// Lets a group be told when its interval allows it.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn postpone_group(&self, id: GroupId, due_s: Option<i64>) -> Result<()> {
        let mut w = self.pools.write().await?;
        sqlx::query("UPDATE alert_group SET due_s = $2 WHERE id = $1").bind(id.0).bind(due_s).execute(w.on()).await?;
        w.commit().await
    }

    /// Acknowledgements that were for a while and are over. Gives how many.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn end_acknowledgements(&self, now_s: i64) -> Result<u64> {
        let waiting: i64 = sqlx::query_scalar(
            "SELECT COUNT(*) FROM alert WHERE state = 'acknowledged' AND ended_s IS NULL AND ack_until_s <= $1",
        )
        .bind(now_s)
        .fetch_one(&self.pools.reader)
        .await?;
        if waiting == 0 {
            return Ok(0);
        }
        let mut w = self.pools.write().await?;
        let done = sqlx::query(
            "UPDATE alert SET state = 'firing', ack_until_s = NULL
             WHERE state = 'acknowledged' AND ended_s IS NULL AND ack_until_s <= $1",
        )
        .bind(now_s)
        .execute(w.on())
        .await?;
        w.commit().await?;
        Ok(done.rows_affected())
    }

    /// Silences, those that hold first; those that ended long ago are left out.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn silences(&self, now_s: i64) -> Result<Vec<Silence>> {
        let rows = sqlx::query(
            "SELECT id, matcher, reason, author, origin, created_s, starts_s, ends_s, calm_s, matched_s, ended_s, told
             FROM silence
             WHERE ends_s > $1 OR ended_s > $1
             ORDER BY ends_s, id",
        )
        .bind(now_s - 7 * 86_400)
        .fetch_all(&self.pools.reader)
        .await?;
        rows.iter()
            .map(|row| {
                Ok(Silence {
                    id: row.try_get(0)?,
                    matcher: row.try_get(1)?,
                    reason: row.try_get(2)?,
                    author: row.try_get(3)?,
                    origin: word("silence", row.try_get(4)?)?,
                    created_s: row.try_get(5)?,
                    starts_s: row.try_get(6)?,
                    ends_s: row.try_get(7)?,
                    calm_s: row.try_get(8)?,
                    matched_s: row.try_get(9)?,
                    ended_s: row.try_get(10)?,
                    is_told: row.try_get::<i64, _>(11)? != 0,
                })
            })
            .collect()
    }

    /// Keeps a silence; its number is in the answer.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn add_silence(&self, new: &Silence) -> Result<i64> {
        let mut w = self.pools.write().await?;
        let id = write_silence(&mut w, new).await?;
        w.commit().await?;
        Ok(id)
    }

    /// Ends a silence now. Gives whether it held.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn end_silence(&self, id: i64, now_s: i64) -> Result<bool> {
        let mut w = self.pools.write().await?;
        let done = sqlx::query("UPDATE silence SET ended_s = $2 WHERE id = $1 AND ended_s IS NULL AND ends_s > $2")
            .bind(id)
            .bind(now_s)
            .execute(w.on())
            .await?;
        w.commit().await?;
        Ok(done.rows_affected() > 0)
    }

    /// Notes that silences matched now.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn silences_matched(&self, ids: &[i64], now_s: i64) -> Result<()> {
        let mut w = self.pools.write().await?;
        for id in ids {
            sqlx::query("UPDATE silence SET matched_s = $2 WHERE id = $1").bind(id).bind(now_s).execute(w.on()).await?;
        }
        w.commit().await
    }

    /// Maintenance windows that are not over for good.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn maintenances(&self, now_s: i64) -> Result<Vec<Maintenance>> {
        let rows = sqlx::query(
            "SELECT id, title, matcher, author, origin, zone, starts_s, cron, duration_s, created_s, ended_s
             FROM maintenance
             WHERE ended_s IS NULL AND (cron IS NOT NULL OR starts_s + duration_s > $1)
             ORDER BY id",
        )
        .bind(now_s - 86_400)
        .fetch_all(&self.pools.reader)
        .await?;
        rows.iter()
            .map(|row| {
                Ok(Maintenance {
                    id: row.try_get(0)?,
                    title: row.try_get(1)?,
                    matcher: row.try_get(2)?,
                    author: row.try_get(3)?,
                    origin: word("maintenance", row.try_get(4)?)?,
                    zone: row.try_get(5)?,
                    starts_s: row.try_get(6)?,
                    cron: row.try_get(7)?,
                    duration_s: row.try_get(8)?,
                    created_s: row.try_get(9)?,
                    ended_s: row.try_get(10)?,
                })
            })
            .collect()
    }

    /// Keeps a maintenance window; its number is in the answer.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn add_maintenance(&self, new: &Maintenance) -> Result<i64> {
        let mut w = self.pools.write().await?;
        let id = write_maintenance(&mut w, new).await?;
        w.commit().await?;
        Ok(id)
    }

    /// Calls a maintenance window off. Gives whether there was one.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn end_maintenance(&self, id: i64, now_s: i64) -> Result<bool> {
        let mut w = self.pools.write().await?;
        let done = sqlx::query("UPDATE maintenance SET ended_s = $2 WHERE id = $1 AND ended_s IS NULL")
            .bind(id)
            .bind(now_s)
            .execute(w.on())
            .await?;
        w.commit().await?;
        Ok(done.rows_affected() > 0)
    }

    /// Brings silences, waivers and maintenance windows of the settings, each with its name, to what they say there. What is no
    /// longer named ends.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn file_quiet(
        &self,
        silences: &[(String, Silence)],
        waivers: &[(String, Waiver)],
        windows: &[(String, Maintenance)],
        now_s: i64,
    ) -> Result<()> {
        let mut w = self.pools.write().await?;
        end_unnamed(&mut w, silences, waivers, windows, now_s).await?;
        for (slug, new) in silences {
            let known: Option<i64> =
                sqlx::query_scalar("SELECT id FROM silence WHERE slug = $1").bind(slug).fetch_optional(w.on()).await?;
            let id = match known {
                Some(id) => {
                    // One that ended early because nothing matched is not begun again by a restart.
                    sqlx::query(
                        "UPDATE silence
                         SET ended_s = CASE WHEN matcher = $2 AND ends_s = $5 THEN ended_s ELSE NULL END,
                             matcher = $2, reason = $3, author = $4, ends_s = $5
                         WHERE id = $1",
                    )
                    .bind(id)
                    .bind(clean(&new.matcher))
                    .bind(clean(&new.reason))
                    .bind(clean(&new.author))
                    .bind(new.ends_s)
                    .execute(w.on())
                    .await?;
                    id
                }
                None => write_silence(&mut w, new).await?,
            };
            sqlx::query("UPDATE silence SET slug = $2 WHERE id = $1").bind(id).bind(slug).execute(w.on()).await?;
        }
        for (slug, new) in waivers {
            let known: Option<i64> =
                sqlx::query_scalar("SELECT id FROM waiver WHERE slug = $1").bind(slug).fetch_optional(w.on()).await?;
            let id = match known {
                Some(id) => {
                    sqlx::query(
                        "UPDATE waiver SET rule = $2, matcher = $3, reason = $4, author = $5, ends_s = $6 WHERE id = $1",
                    )
                    .bind(id)
                    .bind(&new.rule)
                    .bind(clean(&new.matcher))
                    .bind(clean(&new.reason))
                    .bind(clean(&new.author))
                    .bind(new.ends_s)
                    .execute(w.on())
                    .await?;
                    id
                }
                None => write_waiver(&mut w, new).await?,
            };
            sqlx::query("UPDATE waiver SET slug = $2 WHERE id = $1").bind(id).bind(slug).execute(w.on()).await?;
        }
        for (slug, new) in windows {
            let known: Option<i64> = sqlx::query_scalar("SELECT id FROM maintenance WHERE slug = $1")
                .bind(slug)
                .fetch_optional(w.on())
                .await?;
            let id = match known {
                Some(id) => {
                    sqlx::query(
                        "UPDATE maintenance
                         SET title = $2, matcher = $3, author = $4, zone = $5, starts_s = $6, cron = $7, duration_s = $8
                         WHERE id = $1",
                    )
                    .bind(id)
                    .bind(clean(&new.title))
                    .bind(clean(&new.matcher))
                    .bind(clean(&new.author))
                    .bind(&new.zone)
                    .bind(new.starts_s)
                    .bind(&new.cron)
                    .bind(new.duration_s)
                    .execute(w.on())
                    .await?;
                    id
                }
                None => write_maintenance(&mut w, new).await?,
            };
            sqlx::query("UPDATE maintenance SET slug = $2 WHERE id = $1").bind(id).bind(slug).execute(w.on()).await?;
        }
        w.commit().await
    }

    /// One waiver, whether it is in force or not; `None`: there is none.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn waiver(&self, id: i64) -> Result<Option<Waiver>> {
        let row = sqlx::query(
            "SELECT id, rule, matcher, reason, author, origin, created_s, ends_s, ended_s FROM waiver WHERE id = $1",
        )
        .bind(id)
        .fetch_optional(&self.pools.reader)
        .await?;
        row.as_ref().map(waiver).transpose()
    }

    /// Waivers in force, those that end first.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn waivers(&self, now_s: i64) -> Result<Vec<Waiver>> {
        let rows = sqlx::query(
            "SELECT id, rule, matcher, reason, author, origin, created_s, ends_s, ended_s
             FROM waiver WHERE ended_s IS NULL AND ends_s > $1 ORDER BY ends_s, id",
        )
        .bind(now_s)
        .fetch_all(&self.pools.reader)
        .await?;
        rows.iter().map(waiver).collect()
    }

    /// Keeps a waiver; its number is in the answer.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn add_waiver(&self, new: &Waiver) -> Result<i64> {
        let mut w = self.pools.write().await?;
        let id = write_waiver(&mut w, new).await?;
        w.commit().await?;
        Ok(id)
    }

    /// Takes a waiver back. Gives whether there was one.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn end_waiver(&self, id: i64, now_s: i64) -> Result<bool> {
        let mut w = self.pools.write().await?;
        let done = sqlx::query("UPDATE waiver SET ended_s = $2 WHERE id = $1 AND ended_s IS NULL")
            .bind(id)
            .bind(now_s)
            .execute(w.on())
            .await?;
        w.commit().await?;
        Ok(done.rows_affected() > 0)
    }
}

fn waiver(row: &AnyRow) -> Result<Waiver> {
    Ok(Waiver {
        id: row.try_get(0)?,
        rule: row.try_get(1)?,
        matcher: row.try_get(2)?,
        reason: row.try_get(3)?,
        author: row.try_get(4)?,
        origin: word("waiver", row.try_get(5)?)?,
        created_s: row.try_get(6)?,
        ends_s: row.try_get(7)?,
        ended_s: row.try_get(8)?,
    })
}

/// Ends what stood in the settings and is not named there any more; its name is free again.
async fn end_unnamed(
    w: &mut Writing,
    silences: &[(String, Silence)],
    waivers: &[(String, Waiver)],
    windows: &[(String, Maintenance)],
    now_s: i64,
) -> Result<()> {
    let silences: Vec<&str> = silences.iter().map(|(slug, _)| slug.as_str()).collect();
    let waivers: Vec<&str> = waivers.iter().map(|(slug, _)| slug.as_str()).collect();
    let windows: Vec<&str> = windows.iter().map(|(slug, _)| slug.as_str()).collect();
    for (list, end, named) in [
        (
            "SELECT id, slug FROM silence WHERE slug IS NOT NULL",
            "UPDATE silence SET slug = NULL, ended_s = COALESCE(ended_s, $2) WHERE id = $1",
            silences,
        ),
        (
            "SELECT id, slug FROM waiver WHERE slug IS NOT NULL",
            "UPDATE waiver SET slug = NULL, ended_s = COALESCE(ended_s, $2) WHERE id = $1",
            waivers,
        ),
        (
            "SELECT id, slug FROM maintenance WHERE slug IS NOT NULL",
            "UPDATE maintenance SET slug = NULL, ended_s = COALESCE(ended_s, $2) WHERE id = $1",
            windows,
        ),
    ] {
        for row in sqlx::query(list).fetch_all(w.on()).await? {
            let (id, slug): (i64, String) = (row.try_get(0)?, row.try_get(1)?);
            if !named.contains(&slug.as_str()) {
                sqlx::query(end).bind(id).bind(now_s).execute(w.on()).await?;
            }
        }
    }
    Ok(())
}

async fn write_silence(w: &mut Writing, new: &Silence) -> Result<i64> {
    let id = w.next_id(Table::Silence).await?;
    sqlx::query(
        "INSERT INTO silence (id, matcher, reason, author, origin, created_s, starts_s, ends_s, calm_s)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
    )
    .bind(id)
    .bind(clean(&new.matcher))
    .bind(clean(&new.reason))
    .bind(clean(&new.author))
    .bind(new.origin.as_str())
    .bind(new.created_s)
    .bind(new.starts_s)
    .bind(new.ends_s)
    .bind(new.calm_s)
    .execute(w.on())
    .await?;
    Ok(id)
}

async fn write_maintenance(w: &mut Writing, new: &Maintenance) -> Result<i64> {
    let id = w.next_id(Table::Maintenance).await?;
    sqlx::query(
        "INSERT INTO maintenance (id, title, matcher, author, origin, zone, starts_s, cron, duration_s, created_s)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
    )
    .bind(id)
    .bind(clean(&new.title))
    .bind(clean(&new.matcher))
    .bind(clean(&new.author))
    .bind(new.origin.as_str())
    .bind(&new.zone)
    .bind(new.starts_s)
    .bind(&new.cron)
    .bind(new.duration_s)
    .bind(new.created_s)
    .execute(w.on())
    .await?;
    Ok(id)
}

async fn write_waiver(w: &mut Writing, new: &Waiver) -> Result<i64> {
    let id = w.next_id(Table::Waiver).await?;
    sqlx::query(
        "INSERT INTO waiver (id, rule, matcher, reason, author, origin, created_s, ends_s)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
    )
    .bind(id)
    .bind(&new.rule)
    .bind(clean(&new.matcher))
    .bind(clean(&new.reason))
    .bind(clean(&new.author))
    .bind(new.origin.as_str())
    .bind(new.created_s)
    .bind(new.ends_s)
    .execute(w.on())
    .await?;
    Ok(id)
}

/// Makes or changes the route of that name, and where it leads.
pub(crate) async fn write_route(
    w: &mut Writing,
    new: &NewRoute,
    to: &[EndpointId],
    origin: Origin,
    now_s: i64,
) -> Result<RouteId> {
    let known: Option<i64> =
        sqlx::query_scalar("SELECT id FROM route WHERE slug = $1").bind(&new.slug).fetch_optional(w.on()).await?;
    let id = match known {
        Some(id) => id,
        None => w.next_id(Table::Route).await?,
    };
    sqlx::query(
        "INSERT INTO route (id, slug, title, origin, matcher, min_severity, include_baseline, include_rule_changes,
                            wait_s, interval_s, repeat_s, quiet_hours, enabled, created_s)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, 1, $13)
         ON CONFLICT (id) DO UPDATE SET
             title = excluded.title, origin = excluded.origin, matcher = excluded.matcher,
             min_severity = excluded.min_severity, include_baseline = excluded.include_baseline,
             include_rule_changes = excluded.include_rule_changes, wait_s = excluded.wait_s,
             interval_s = excluded.interval_s, repeat_s = excluded.repeat_s, quiet_hours = excluded.quiet_hours,
             enabled = 1, removed_s = NULL",
    )
    .bind(id)
    .bind(&new.slug)
    .bind(clean(&new.title))
    .bind(origin.as_str())
    .bind(clean(&new.matcher))
    .bind(new.min_severity.as_str())
    .bind(i64::from(new.include_baseline))
    .bind(i64::from(new.include_rule_changes))
    .bind(new.wait_s)
    .bind(new.interval_s)
    .bind(new.repeat_s)
    .bind(&new.quiet_hours)
    .bind(now_s)
    .execute(w.on())
    .await?;
    sqlx::query("DELETE FROM route_endpoint WHERE route_id = $1").bind(id).execute(w.on()).await?;
    for endpoint in to {
        sqlx::query("INSERT INTO route_endpoint (route_id, endpoint_id) VALUES ($1, $2)")
            .bind(id)
            .bind(endpoint.0)
            .execute(w.on())
            .await?;
    }
    Ok(RouteId(id))
}

/// Takes a route away: its open alerts end. Its groups are due, so that whoever was told of them is told of their end.
pub(crate) async fn drop_route(w: &mut Writing, id: RouteId, now_s: i64) -> Result<()> {
    sqlx::query("UPDATE route SET removed_s = $2, enabled = 0 WHERE id = $1")
        .bind(id.0)
        .bind(now_s)
        .execute(w.on())
        .await?;
    sqlx::query(
        "UPDATE alert SET state = 'resolved', ended_as = 'retired', ended_s = $2
         WHERE route_id = $1 AND ended_s IS NULL",
    )
    .bind(id.0)
    .bind(now_s)
    .execute(w.on())
    .await?;
    sqlx::query("UPDATE alert_group SET due_s = $2 WHERE route_id = $1 AND ended_s IS NULL")
        .bind(id.0)
        .bind(now_s)
        .execute(w.on())
        .await?;
    Ok(())
}

/// Moves the cursor, unless it is not where it was read.
async fn move_cursor(w: &mut Writing, from: EventId, to: EventId) -> Result<bool> {
    let at: Option<i64> = sqlx::query_scalar("SELECT event_id FROM event_cursor WHERE reader = $1")
        .bind(READER)
        .fetch_optional(w.on())
        .await?;
    if at.unwrap_or(0) != from.0 {
        return Ok(false);
    }
    sqlx::query(
        "INSERT INTO event_cursor (reader, event_id) VALUES ($1, $2)
         ON CONFLICT (reader) DO UPDATE SET event_id = excluded.event_id",
    )
    .bind(READER)
    .bind(to.0)
    .execute(w.on())
    .await?;
    Ok(true)
}

async fn apply(w: &mut Writing, change: &AlertChange, now_s: i64) -> Result<()> {
    match change {
        AlertChange::Begin(new) => begin(w, new).await,
        AlertChange::Touch { alert, event, severity, tells_again } => {
            if *tells_again {
                put_down(w, *alert, now_s).await?;
            }
            sqlx::query("UPDATE alert SET last_event = $2, severity = $3 WHERE id = $1")
                .bind(alert.0)
                .bind(event.0)
                .bind(severity.as_str())
                .execute(w.on())
                .await?;
            Ok(())
        }
        AlertChange::End { alert, event, how, at_s } => {
            sqlx::query(
                "UPDATE alert SET last_event = CASE WHEN $2 = 0 THEN last_event ELSE $2 END, state = 'resolved', ended_as = $3, ended_s = $4
                 WHERE id = $1 AND ended_s IS NULL",
            )
            .bind(alert.0)
            .bind(event.0)
            .bind(how.as_str())
            .bind(at_s)
            .execute(w.on())
            .await?;
            sqlx::query(
                "UPDATE alert_group SET due_s = $2
                 WHERE ended_s IS NULL AND id IN (SELECT group_id FROM alert WHERE id = $1 AND notified_s IS NOT NULL)",
            )
            .bind(alert.0)
            .bind(now_s)
            .execute(w.on())
            .await?;
            Ok(())
        }
    }
}

/// An alert is told again, however long ago it was told. Whoever took it on, and the finding with it, has it no more.
async fn put_down(w: &mut Writing, alert: AlertId, now_s: i64) -> Result<()> {
    let key: Option<String> = sqlx::query_scalar(
        "UPDATE alert SET state = 'firing' WHERE id = $1 AND state = 'acknowledged' AND ended_s IS NULL RETURNING key",
    )
    .bind(alert.0)
    .fetch_optional(w.on())
    .await?;
    if let Some(finding) = key.as_deref().and_then(taken_on::finding_of) {
        taken_on::put_down(w, finding, now_s).await?;
    }
    sqlx::query(
        "UPDATE alert_group SET due_s = $2, told_s = 0
         WHERE ended_s IS NULL AND id IN (SELECT group_id FROM alert WHERE id = $1 AND notified_s IS NOT NULL)",
    )
    .bind(alert.0)
    .bind(now_s)
    .execute(w.on())
    .await?;
    Ok(())
}

async fn begin(w: &mut Writing, new: &NewAlert) -> Result<()> {
    let open: i64 =
        sqlx::query_scalar("SELECT COUNT(*) FROM alert WHERE route_id = $1 AND key = $2 AND ended_s IS NULL")
            .bind(new.route.0)
            .bind(&new.key)
            .fetch_one(w.on())
            .await?;
    if open > 0 {
        return Ok(());
    }
    let id = w.next_id(Table::Alert).await?;
    sqlx::query(
        "INSERT INTO alert (id, route_id, key, state, severity, target_id, opened_event, last_event, opened_s, title,
                            surface_id, rule, facts, why, by_what, by_key)
         VALUES ($1, $2, $3, 'firing', $4, $5, $6, $6, $7, $8, $9, $10, $11, $12, $13, $14)",
    )
    .bind(id)
    .bind(new.route.0)
    .bind(&new.key)
    .bind(new.severity.as_str())
    .bind(new.target)
    .bind(new.event.0)
    .bind(new.at_s)
    .bind(shortened(&new.title, 300))
    .bind(new.surface)
    .bind(&new.rule)
    .bind(clean(&json(&new.facts)?))
    .bind(json(&new.why)?)
    .bind(new.by.0.as_str())
    .bind(&new.by.1)
    .execute(w.on())
    .await?;
    Ok(())
}

/// Keeps what is told of one group. Gives `false` when the group or one of its alerts is not as it was when this was composed:
/// somebody else has told of it, or it has ended.
async fn tell(w: &mut Writing, one: &GroupNews, now_s: i64) -> Result<bool> {
    if !write_group(w, one).await? {
        return Ok(false);
    }
    let group = &one.group;
    let told = format!("told in group {}", group.id);
    for alert in &one.opens {
        let done = sqlx::query(
            "UPDATE alert SET group_id = $2, notified_s = $3,
                              state = CASE WHEN state = 'acknowledged' THEN state ELSE 'firing' END
             WHERE id = $1 AND notified_s IS NULL AND ended_s IS NULL",
        )
        .bind(alert.0)
        .bind(group.id.0)
        .bind(now_s)
        .execute(w.on())
        .await?;
        if done.rows_affected() == 0 {
            return Ok(false);
        }
    }
    for (alert, why) in &one.why {
        sqlx::query("UPDATE alert SET why = $2, held_by = $3 WHERE id = $1")
            .bind(alert.0)
            .bind(json(why)?)
            .bind(told.clone())
            .execute(w.on())
            .await?;
    }
    for alert in &one.ends {
        sqlx::query("UPDATE alert SET end_told_s = $2 WHERE id = $1").bind(alert.0).bind(now_s).execute(w.on()).await?;
    }
    for share in &one.messages {
        tell_share(w, share, now_s).await?;
    }
    for silence in &one.after_silences {
        sqlx::query("UPDATE silence SET told = 1 WHERE id = $1").bind(silence).execute(w.on()).await?;
    }
    let note = Some(shortened(&group.summary, 300));
    events::append(w, now_s, News { subject: Some(group.id.0), note, ..News::of(one.kind) }).await?;
    Ok(true)
}

/// Writes a group, if it is still as it was: none of that kind is open yet, or its last message is the one before this.
async fn write_group(w: &mut Writing, one: &GroupNews) -> Result<bool> {
    let group = &one.group;
    let done = if one.is_new {
        sqlx::query(
            "INSERT INTO alert_group (id, route_id, by_what, key, opened_s, due_s, told_s, revision, severity, firing,
                                      resolved, summary, ended_s)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
             ON CONFLICT DO NOTHING",
        )
    } else {
        sqlx::query(
            "UPDATE alert_group
             SET route_id = $2, by_what = $3, key = $4, opened_s = $5, due_s = $6, told_s = $7, revision = $8,
                 severity = $9, firing = $10, resolved = $11, summary = $12, ended_s = $13
             WHERE id = $1 AND ended_s IS NULL AND revision = $8 - 1",
        )
    }
    .bind(group.id.0)
    .bind(group.route.0)
    .bind(group.by.as_str())
    .bind(&group.key)
    .bind(group.opened_s)
    .bind(group.due_s)
    .bind(group.told_s)
    .bind(group.revision)
    .bind(group.severity.as_str())
    .bind(group.firing)
    .bind(group.resolved)
    .bind(shortened(&group.summary, 500))
    .bind(group.ended_s)
    .execute(w.on())
    .await?;
    Ok(done.rows_affected() > 0)
}

/// Writes a message, and of what those who receive it know now.
async fn tell_share(w: &mut Writing, share: &Share, now_s: i64) -> Result<()> {
    keep_message(w, &share.message, now_s).await?;
    for endpoint in &share.message.to {
        for alert in &share.opens {
            sqlx::query(
                "INSERT INTO alert_told (alert_id, endpoint_id, message_id) VALUES ($1, $2, $3)
                 ON CONFLICT (alert_id, endpoint_id) DO NOTHING",
            )
            .bind(alert.0)
            .bind(endpoint.0)
            .bind(&share.message.id)
            .execute(w.on())
            .await?;
        }
        for alert in &share.ends {
            sqlx::query(
                "UPDATE alert_told SET end_message = $3
                 WHERE alert_id = $1 AND endpoint_id = $2 AND end_message IS NULL",
            )
            .bind(alert.0)
            .bind(endpoint.0)
            .bind(&share.message.id)
            .execute(w.on())
            .await?;
        }
    }
    Ok(())
}
