//! Webhooks as they are kept: receivers, their secrets, messages, and how far each message came with each receiver.
//!
//! Messages are written by the second transaction of the pipeline (see [`crate::alerting`]); what becomes of them is written
//! here, an attempt at a time. This module knows no HTTP and no format: bodies are bytes, secrets are sealed.

use plumbline_rules::words;
use serde::Serialize;
use sqlx::Row;
use sqlx::any::AnyRow;

use crate::Store;
use crate::alerting::{NewRoute, drop_route, write_route};
use crate::dialect::{Table, Writing};
use crate::error::{Error, Result};
use crate::events::{self, News};
use crate::ids::{EndpointId, GroupId, RouteId};
use crate::rows::{clean, shortened, word};
use crate::words::EventKind;

words! {
    /// What a receiver is sent.
    pub enum Mode {
        /// Every event that matches, for programs.
        Events = "events",
        /// Alerts that belong together, for people.
        Groups = "groups",
    }
}

words! {
    /// Where an object was made.
    pub enum Origin {
        /// In the settings; pages show it and do not change it.
        File = "file",
        /// On a page, by the API or by a command.
        Ui = "ui",
    }
}

words! {
    /// How a receiver does.
    pub enum EndpointState {
        /// It is sent to.
        Active = "active",
        /// It failed ten times in a row; one message at a time tries it.
        Failing = "failing",
        /// It is not sent to.
        Disabled = "disabled",
    }
}

words! {
    /// How far a message came with one receiver.
    pub enum DeliveryState {
        /// It will be tried.
        Pending = "pending",
        /// It was accepted.
        Delivered = "delivered",
        /// It is out of attempts.
        Dead = "dead",
        /// Nobody wants it any more.
        Cancelled = "cancelled",
    }
}

words! {
    /// Which of two secrets.
    pub enum SecretRole {
        /// The newest.
        Current = "current",
        /// The one before, until it expires.
        Previous = "previous",
    }
}

/// A receiver as it is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NewEndpoint {
    /// Its name in settings, addresses and commands.
    pub slug: String,
    /// As shown.
    pub title: String,
    /// Where it is sent.
    pub url: String,
    /// Which form bodies have.
    pub format: String,
    /// What it is sent.
    pub mode: Mode,
    /// Event words, with prefix wildcards such as `finding.*`; empty: all.
    pub types: Vec<String>,
    /// Which targets and findings; empty: all.
    pub matcher: String,
    /// First looks are sent too.
    pub include_baseline: bool,
    /// Messages a minute at most.
    pub per_minute: i64,
    /// JSON object: what its format needs.
    pub options: String,
    /// JSON `{"every","zone","hour"}` of its summary.
    pub digest: Option<String>,
}

/// What somebody subscribes to, written together.
#[derive(Debug, Clone, Copy)]
pub struct Subscription<'s> {
    /// The receiver.
    pub endpoint: &'s NewEndpoint,
    /// Secrets that are put in their place.
    pub secrets: &'s [SealedSecret],
    /// The route of its own, where it hears of groups.
    pub route: Option<&'s NewRoute>,
}

/// A receiver.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Endpoint {
    /// Its number.
    pub id: EndpointId,
    /// As it was asked for.
    #[serde(flatten)]
    pub is: NewEndpoint,
    /// Where it was made.
    pub origin: Origin,
    /// How it does.
    pub state: EndpointState,
    /// Why it is not active.
    pub state_note: Option<String>,
    /// Payload version it is pinned to.
    pub schema_date: String,
    /// Failures in a row.
    pub failures: i64,
    /// First of them, in Unix seconds.
    pub first_failure_s: Option<i64>,
    /// Last of them, in Unix seconds.
    pub last_failure_s: Option<i64>,
    /// Last time it accepted something, in Unix seconds.
    pub last_success_s: Option<i64>,
    /// It is sent to at half its pace until it accepts something.
    pub slowed: bool,
    /// When its next summary is due, in Unix seconds.
    pub digest_due_s: Option<i64>,
    /// Last event that a summary counted.
    pub digest_event: i64,
    /// Until when the last summary told, or since when one is asked for, in Unix seconds; `None`: it is not known.
    pub digest_s: Option<i64>,
    /// In Unix seconds.
    pub created_s: i64,
}

impl Endpoint {
    /// A receiver that is not kept yet: number 0, nothing happened to it.
    #[must_use]
    pub fn unsaved(is: NewEndpoint) -> Endpoint {
        Endpoint {
            id: EndpointId(0),
            is,
            origin: Origin::Ui,
            state: EndpointState::Active,
            state_note: None,
            schema_date: SCHEMA_DATE.to_owned(),
            failures: 0,
            first_failure_s: None,
            last_failure_s: None,
            last_success_s: None,
            slowed: false,
            digest_due_s: None,
            digest_event: 0,
            digest_s: None,
            created_s: 0,
        }
    }
}

/// A sealed secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealedSecret {
    /// Which of the two.
    pub role: SecretRole,
    /// `v1` or `v1a`.
    pub scheme: String,
    /// The key, sealed by the key of the installation.
    pub sealed: Vec<u8>,
    /// In Unix seconds.
    pub created_s: i64,
    /// From then on it does not sign, in Unix seconds.
    pub expires_s: Option<i64>,
    /// Last time it signed something that was accepted, in Unix seconds.
    pub last_used_s: Option<i64>,
}

/// A message to be kept, once however many receive it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewMessage {
    /// `msg_` and a ULID; later messages have greater ones.
    pub id: String,
    /// Event word.
    pub kind: String,
    /// The event it tells.
    pub event: Option<i64>,
    /// The group it tells.
    pub group: Option<i64>,
    /// When it happened, in Unix seconds.
    pub at_s: i64,
    /// JSON as the generic format sends it.
    pub body: Vec<u8>,
    /// Who receives it.
    pub to: Vec<EndpointId>,
}

/// A message that is to be sent to one receiver now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Due {
    /// The receiver.
    pub endpoint: EndpointId,
    /// The message.
    pub message: String,
    /// Event word.
    pub kind: String,
    /// JSON as the generic format sends it.
    pub body: Vec<u8>,
    /// Attempts that failed so far.
    pub attempts: i64,
    /// Rows of the log so far.
    pub tries: i64,
    /// First of them, in Unix milliseconds.
    pub first_try_ms: Option<i64>,
    /// It was sent before and is sent again on request.
    pub is_replay: bool,
}

/// One try, as it went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// The receiver.
    pub endpoint: EndpointId,
    /// The message.
    pub message: String,
    /// When it began, in Unix milliseconds.
    pub at_ms: i64,
    /// How long it took, in milliseconds.
    pub took_ms: i64,
    /// HTTP status; `None`: no answer.
    pub status: Option<i64>,
    /// Why there was none.
    pub error: Option<String>,
    /// JSON of the headers as sent.
    pub request: String,
    /// JSON of the headers and the start of the body of the answer.
    pub response: Option<String>,
}

/// What becomes of a message and its receiver after a try.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settled {
    /// The try.
    pub attempt: Attempt,
    /// How far the message came.
    pub state: DeliveryState,
    /// Attempts that count so far.
    pub attempts: i64,
    /// When it is tried next, in Unix seconds.
    pub next_s: Option<i64>,
    /// A word to the person who reads the log.
    pub note: Option<String>,
    /// How the receiver does now.
    pub endpoint: Standing,
    /// Schemes and roles of the secrets that signed it, where it was accepted.
    pub signed_by: Vec<(SecretRole, &'static str)>,
}

/// How a receiver does after a try.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// How it does.
    pub state: EndpointState,
    /// Why it is not active.
    pub note: Option<String>,
    /// Failures in a row.
    pub failures: i64,
    /// First of them, in Unix seconds.
    pub first_failure_s: Option<i64>,
    /// Last of them, in Unix seconds.
    pub last_failure_s: Option<i64>,
    /// Last time it accepted something, in Unix seconds.
    pub last_success_s: Option<i64>,
    /// It is sent to at half its pace.
    pub slowed: bool,
}

/// One message and one receiver, for the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DeliveryRow {
    /// The receiver.
    pub endpoint: EndpointId,
    /// Its name.
    pub endpoint_slug: String,
    /// The message.
    pub message: String,
    /// Event word.
    pub kind: String,
    /// When it happened, in Unix seconds.
    pub at_s: i64,
    /// How far it came.
    pub state: DeliveryState,
    /// Attempts that count.
    pub attempts: i64,
    /// When it is tried next, in Unix seconds.
    pub next_s: Option<i64>,
    /// HTTP status of the last answer.
    pub last_code: Option<i64>,
    /// Why there was none.
    pub last_error: Option<String>,
    /// It was sent again on request.
    pub is_replay: bool,
    /// When it came to an end, in Unix seconds.
    pub done_s: Option<i64>,
    /// A word to the reader.
    pub note: Option<String>,
}

/// One line of the delivery log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AttemptRow {
    /// Which try.
    pub n: i64,
    /// When, in Unix milliseconds.
    pub at_ms: i64,
    /// How long it took, in milliseconds.
    pub took_ms: i64,
    /// HTTP status; `None`: no answer.
    pub status: Option<i64>,
    /// Why there was none.
    pub error: Option<String>,
    /// JSON of the headers as sent, and of the body where it is not the message's own.
    pub request: String,
    /// JSON of the headers and the start of the body of the answer.
    pub response: Option<String>,
}

/// How much waits, and since when.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Backlog {
    /// Messages that will be tried.
    pub pending: i64,
    /// Messages out of attempts.
    pub dead: i64,
    /// The oldest that waits, in Unix seconds of its event.
    pub oldest_s: Option<i64>,
}

macro_rules! select_endpoint {
    ($rest:literal) => {
        concat!(
            "SELECT id, slug, title, url, format, mode, types, matcher, include_baseline, per_minute, options, digest,
                    origin, state, state_note, schema_date, failures, first_failure_s, last_failure_s, last_success_s,
                    slowed, digest_due_s, digest_event, digest_s, created_s
             FROM wh_endpoint
             WHERE removed_s IS NULL ",
            $rest
        )
    };
}

fn endpoint(row: &AnyRow) -> Result<Endpoint> {
    let types: String = row.try_get("types")?;
    Ok(Endpoint {
        id: EndpointId(row.try_get("id")?),
        is: NewEndpoint {
            slug: row.try_get("slug")?,
            title: row.try_get("title")?,
            url: row.try_get("url")?,
            format: row.try_get("format")?,
            mode: word("mode of a webhook", row.try_get("mode")?)?,
            types: serde_json::from_str(&types).map_err(|error| Error::corrupt("list of event types", error))?,
            matcher: row.try_get("matcher")?,
            include_baseline: row.try_get::<i64, _>("include_baseline")? != 0,
            per_minute: row.try_get("per_minute")?,
            options: row.try_get("options")?,
            digest: row.try_get("digest")?,
        },
        origin: word("origin", row.try_get("origin")?)?,
        state: word("state of a webhook", row.try_get("state")?)?,
        state_note: row.try_get("state_note")?,
        schema_date: row.try_get("schema_date")?,
        failures: row.try_get("failures")?,
        first_failure_s: row.try_get("first_failure_s")?,
        last_failure_s: row.try_get("last_failure_s")?,
        last_success_s: row.try_get("last_success_s")?,
        slowed: row.try_get::<i64, _>("slowed")? != 0,
        digest_due_s: row.try_get("digest_due_s")?,
        digest_event: row.try_get("digest_event")?,
        digest_s: row.try_get("digest_s")?,
        created_s: row.try_get("created_s")?,
    })
}

macro_rules! select_due {
    ($rest:literal) => {
        concat!(
            "SELECT wh_delivery.message_id, wh_message.type, wh_message.body, wh_delivery.attempts, wh_delivery.tries,
                    wh_delivery.replay, wh_delivery.next_s,
                    (SELECT MIN(wh_attempt.at_ms) FROM wh_attempt
                     WHERE wh_attempt.endpoint_id = wh_delivery.endpoint_id
                       AND wh_attempt.message_id = wh_delivery.message_id) AS first_try_ms
             FROM wh_delivery
             JOIN wh_message ON wh_message.id = wh_delivery.message_id ",
            $rest
        )
    };
}

fn due(endpoint: EndpointId, row: &AnyRow) -> Result<Due> {
    Ok(Due {
        endpoint,
        message: row.try_get("message_id")?,
        kind: row.try_get("type")?,
        body: row.try_get("body")?,
        attempts: row.try_get("attempts")?,
        tries: row.try_get("tries")?,
        first_try_ms: row.try_get("first_try_ms")?,
        is_replay: row.try_get::<i64, _>("replay")? != 0,
    })
}

fn delivery(row: &AnyRow) -> Result<DeliveryRow> {
    Ok(DeliveryRow {
        endpoint: EndpointId(row.try_get("endpoint_id")?),
        endpoint_slug: row.try_get("slug")?,
        message: row.try_get("message_id")?,
        kind: row.try_get("type")?,
        at_s: row.try_get("at_s")?,
        state: word("state of a delivery", row.try_get("state")?)?,
        attempts: row.try_get("attempts")?,
        next_s: row.try_get("next_s")?,
        last_code: row.try_get("last_code")?,
        last_error: row.try_get("last_error")?,
        is_replay: row.try_get::<i64, _>("replay")? != 0,
        done_s: row.try_get("done_s")?,
        note: row.try_get("note")?,
    })
}

/// Payload version that new receivers are pinned to.
pub const SCHEMA_DATE: &str = "2026-12-01";

impl Store {
    /// Every receiver, those that were taken away left out, by name.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn endpoints(&self) -> Result<Vec<Endpoint>> {
        let rows = sqlx::query(select_endpoint!("ORDER BY slug")).fetch_all(&self.pools.reader).await?;
        rows.iter().map(endpoint).collect()
    }

    /// The receiver of that name.
    ///
    /// # Errors
    /// When there is none, or the database fails.
    pub async fn endpoint(&self, slug: &str) -> Result<Endpoint> {
        let row = sqlx::query(select_endpoint!("AND slug = $1")).bind(slug).fetch_optional(&self.pools.reader).await?;
        endpoint(&row.ok_or_else(|| Error::Missing { what: "webhook", id: slug.to_owned() })?)
    }

    /// The receiver of that number, as it is now; `None`: it was removed.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn endpoint_of(&self, id: EndpointId) -> Result<Option<Endpoint>> {
        let row = sqlx::query(select_endpoint!("AND id = $1")).bind(id.0).fetch_optional(&self.pools.reader).await?;
        row.as_ref().map(endpoint).transpose()
    }

    /// Makes or changes the receiver of that name; how it does and what waits for it stays. With a changed address a
    /// disabled one is tried again.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn put_endpoint(&self, new: &NewEndpoint, origin: Origin, now_s: i64) -> Result<EndpointId> {
        let mut w = self.pools.write().await?;
        let id = write_endpoint(&mut w, new, origin, now_s).await?;
        w.commit().await?;
        Ok(id)
    }

    /// Makes a receiver, its secrets and the route that leads to it, together. Gives `None`, and keeps nothing, when a
    /// receiver or route has that name.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn subscribe(&self, new: &Subscription<'_>, now_s: i64) -> Result<Option<EndpointId>> {
        let mut w = self.pools.write().await?;
        let taken: i64 = sqlx::query_scalar(
            "SELECT (SELECT COUNT(*) FROM wh_endpoint WHERE slug = $1 AND removed_s IS NULL)
                  + (SELECT COUNT(*) FROM route WHERE slug = $1 AND removed_s IS NULL)",
        )
        .bind(&new.endpoint.slug)
        .fetch_one(w.on())
        .await?;
        if taken > 0 {
            return Ok(None);
        }
        let id = write_endpoint(&mut w, new.endpoint, Origin::Ui, now_s).await?;
        equip(&mut w, id, new, now_s).await?;
        w.commit().await?;
        Ok(Some(id))
    }

    /// Changes a receiver that was made on a page, its secrets where new ones are given, and its own route.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn resubscribe(&self, id: EndpointId, new: &Subscription<'_>, now_s: i64) -> Result<()> {
        let mut w = self.pools.write().await?;
        write_endpoint(&mut w, new.endpoint, Origin::Ui, now_s).await?;
        equip(&mut w, id, new, now_s).await?;
        w.commit().await
    }

    /// Takes a receiver that was made on a page away, with its own route.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn unsubscribe(&self, id: EndpointId, slug: &str, now_s: i64) -> Result<()> {
        let mut w = self.pools.write().await?;
        drop_endpoint(&mut w, id, now_s).await?;
        drop_own_route(&mut w, slug, now_s).await?;
        w.commit().await
    }

    /// Puts a new secret in the place of the current one, which signs as the previous one until `until_s`; `None`: it is
    /// forgotten at once.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn rotate_secret(&self, id: EndpointId, new: &SealedSecret, until_s: Option<i64>) -> Result<()> {
        let mut w = self.pools.write().await?;
        sqlx::query("DELETE FROM wh_secret WHERE endpoint_id = $1 AND role = 'previous' AND scheme = $2")
            .bind(id.0)
            .bind(&new.scheme)
            .execute(w.on())
            .await?;
        if until_s.is_some() {
            sqlx::query(
                "UPDATE wh_secret SET role = 'previous', expires_s = $3
                 WHERE endpoint_id = $1 AND role = 'current' AND scheme = $2",
            )
            .bind(id.0)
            .bind(&new.scheme)
            .bind(until_s)
            .execute(w.on())
            .await?;
        }
        put_secret(&mut w, id, new).await?;
        w.commit().await
    }

    /// Forgets the secrets of one scheme.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn drop_secrets(&self, id: EndpointId, scheme: &str) -> Result<()> {
        let mut w = self.pools.write().await?;
        sqlx::query("DELETE FROM wh_secret WHERE endpoint_id = $1 AND scheme = $2")
            .bind(id.0)
            .bind(scheme)
            .execute(w.on())
            .await?;
        w.commit().await
    }

    /// The body of the newest message of a type, for previews.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn newest_body(&self, kind: &str) -> Result<Option<Vec<u8>>> {
        Ok(sqlx::query_scalar("SELECT body FROM wh_message WHERE type = $1 ORDER BY id DESC LIMIT 1")
            .bind(kind)
            .fetch_optional(&self.pools.reader)
            .await?)
    }

    /// Takes a receiver away. What waits for it is cancelled; its log stays.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn remove_endpoint(&self, id: EndpointId, now_s: i64) -> Result<()> {
        let mut w = self.pools.write().await?;
        drop_endpoint(&mut w, id, now_s).await?;
        w.commit().await
    }

    /// Gives a receiver another name, and with it the route of its own, unless a route has had that name.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn rename_endpoint(&self, id: EndpointId, from: &str, to: &str, has_own_route: bool) -> Result<()> {
        let mut w = self.pools.write().await?;
        sqlx::query("UPDATE wh_endpoint SET slug = $2 WHERE id = $1").bind(id.0).bind(to).execute(w.on()).await?;
        if has_own_route {
            sqlx::query(
                "UPDATE route SET slug = $2
                 WHERE slug = $1 AND origin = 'file' AND removed_s IS NULL
                   AND NOT EXISTS (SELECT 1 FROM route other WHERE other.slug = $2)",
            )
            .bind(from)
            .bind(to)
            .execute(w.on())
            .await?;
        }
        w.commit().await
    }

    /// Switches a receiver on or off. Switched on it begins anew, and what waits for it is tried at once.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn enable_endpoint(&self, id: EndpointId, is_on: bool, note: &str, now_s: i64) -> Result<()> {
        let mut w = self.pools.write().await?;
        if is_on {
            sqlx::query(
                "UPDATE wh_endpoint
                 SET state = 'active', state_note = NULL, failures = 0, first_failure_s = NULL, last_failure_s = NULL, slowed = 0
                 WHERE id = $1",
            )
            .bind(id.0)
            .execute(w.on())
            .await?;
            sqlx::query("UPDATE wh_delivery SET next_s = $2 WHERE endpoint_id = $1 AND state = 'pending'")
                .bind(id.0)
                .bind(now_s)
                .execute(w.on())
                .await?;
        } else {
            sqlx::query("UPDATE wh_endpoint SET state = 'disabled', state_note = $2 WHERE id = $1")
                .bind(id.0)
                .bind(clean(note))
                .execute(w.on())
                .await?;
        }
        w.commit().await
    }

    /// The secrets of a receiver that still sign, the newest first.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn secrets(&self, id: EndpointId, now_s: i64) -> Result<Vec<SealedSecret>> {
        let rows = sqlx::query(
            "SELECT role, scheme, key_enc, created_s, expires_s, last_used_s
             FROM wh_secret
             WHERE endpoint_id = $1 AND (expires_s IS NULL OR expires_s > $2)
             ORDER BY role, scheme",
        )
        .bind(id.0)
        .bind(now_s)
        .fetch_all(&self.pools.reader)
        .await?;
        rows.iter()
            .map(|row| {
                Ok(SealedSecret {
                    role: word("role of a secret", row.try_get(0)?)?,
                    scheme: row.try_get(1)?,
                    sealed: row.try_get(2)?,
                    created_s: row.try_get(3)?,
                    expires_s: row.try_get(4)?,
                    last_used_s: row.try_get(5)?,
                })
            })
            .collect()
    }

    /// Puts one secret in its place, whatever was there.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn put_secret(&self, id: EndpointId, secret: &SealedSecret) -> Result<()> {
        let mut w = self.pools.write().await?;
        put_secret(&mut w, id, secret).await?;
        w.commit().await
    }

    /// Drops the secret before the current one.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn drop_previous_secret(&self, id: EndpointId) -> Result<()> {
        let mut w = self.pools.write().await?;
        sqlx::query("DELETE FROM wh_secret WHERE endpoint_id = $1 AND role = 'previous' AND scheme = 'v1'")
            .bind(id.0)
            .execute(w.on())
            .await?;
        w.commit().await
    }

    /// What is to be sent to one receiver now, the oldest message first. Bodies come with it.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn due_deliveries(&self, id: EndpointId, now_s: i64, limit: i64) -> Result<Vec<Due>> {
        let rows = sqlx::query(select_due!(
            "WHERE wh_delivery.endpoint_id = $1 AND wh_delivery.state = 'pending' AND wh_delivery.next_s <= $2
                 ORDER BY wh_delivery.next_s, wh_delivery.message_id
                 LIMIT $3"
        ))
        .bind(id.0)
        .bind(now_s)
        .bind(limit)
        .fetch_all(&self.pools.reader)
        .await?;
        rows.iter().map(|row| due(id, row)).collect()
    }

    /// The one message that tries a failing receiver, once its own time has come: of those tried least the oldest, so that one
    /// that will never be accepted does not stand for all.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn probe_delivery(&self, id: EndpointId, now_s: i64) -> Result<Option<Due>> {
        let row = sqlx::query(select_due!(
            "WHERE wh_delivery.endpoint_id = $1 AND wh_delivery.state = 'pending' AND wh_delivery.next_s <= $2
             ORDER BY wh_delivery.tries, wh_delivery.message_id
             LIMIT 1"
        ))
        .bind(id.0)
        .bind(now_s)
        .fetch_optional(&self.pools.reader)
        .await?;
        row.map(|row| due(id, &row)).transpose()
    }

    /// Receivers with something to send now.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn endpoints_due(&self, now_s: i64) -> Result<Vec<EndpointId>> {
        let ids: Vec<i64> = sqlx::query_scalar(
            "SELECT wh_endpoint.id
             FROM wh_endpoint
             WHERE wh_endpoint.state <> 'disabled'
               AND EXISTS (SELECT 1 FROM wh_delivery
                           WHERE wh_delivery.endpoint_id = wh_endpoint.id AND wh_delivery.state = 'pending'
                             AND wh_delivery.next_s <= $1)
             ORDER BY wh_endpoint.id",
        )
        .bind(now_s)
        .fetch_all(&self.pools.reader)
        .await?;
        Ok(ids.into_iter().map(EndpointId).collect())
    }

    /// Keeps how tries went, many in one transaction, and the events that follow from them.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn settle(&self, settled: &[Settled], now_s: i64) -> Result<()> {
        let mut w = self.pools.write().await?;
        for one in settled {
            settle(&mut w, one, now_s).await?;
        }
        w.commit().await
    }

    /// Queues a message again for one receiver under its old id. Gives whether there is such a message.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn replay(&self, id: EndpointId, message: &str, now_s: i64) -> Result<bool> {
        let mut w = self.pools.write().await?;
        let done = sqlx::query(
            "UPDATE wh_delivery
             SET state = 'pending', attempts = 0, next_s = $3, replay = 1, done_s = NULL, note = NULL
             WHERE endpoint_id = $1 AND message_id = $2",
        )
        .bind(id.0)
        .bind(message)
        .bind(now_s)
        .execute(w.on())
        .await?;
        w.commit().await?;
        Ok(done.rows_affected() > 0)
    }

    /// Queues again what was not delivered to one receiver since a moment: what is dead or was cancelled. Gives how many.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn replay_since(&self, id: EndpointId, since_s: i64, now_s: i64) -> Result<u64> {
        let mut w = self.pools.write().await?;
        let done = sqlx::query(
            "UPDATE wh_delivery
             SET state = 'pending', attempts = 0, next_s = $3, replay = 1, done_s = NULL, note = NULL
             WHERE endpoint_id = $1 AND state IN ('dead', 'cancelled')
               AND message_id IN (SELECT id FROM wh_message WHERE at_s >= $2)",
        )
        .bind(id.0)
        .bind(since_s)
        .bind(now_s)
        .execute(w.on())
        .await?;
        w.commit().await?;
        Ok(done.rows_affected())
    }

    /// Sends what a message says as a new message with an id of its own. Gives whether there was such a message.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn send_as_new(&self, id: EndpointId, message: &str, new_id: &str, now_s: i64) -> Result<bool> {
        let mut w = self.pools.write().await?;
        let row = sqlx::query("SELECT type, event_id, group_id, at_s, body FROM wh_message WHERE id = $1")
            .bind(message)
            .fetch_optional(w.on())
            .await?;
        let Some(row) = row else { return Ok(false) };
        let new = NewMessage {
            id: new_id.to_owned(),
            kind: row.try_get(0)?,
            event: row.try_get(1)?,
            group: row.try_get(2)?,
            at_s: row.try_get(3)?,
            body: row.try_get(4)?,
            to: vec![id],
        };
        keep_message(&mut w, &new, now_s).await?;
        w.commit().await?;
        Ok(true)
    }

    /// Keeps a message that no event asked for, such as a summary.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn queue_message(&self, new: &NewMessage, now_s: i64) -> Result<()> {
        let mut w = self.pools.write().await?;
        keep_message(&mut w, new, now_s).await?;
        w.commit().await
    }

    /// Keeps a summary, until when it tells, and when the next one is due, together. Gives `false`, and keeps nothing, when
    /// another was kept since the receiver was read.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn queue_digest(
        &self,
        endpoint: &Endpoint,
        new: Option<&NewMessage>,
        last_event: i64,
        until_s: Option<i64>,
        next_s: i64,
        now_s: i64,
    ) -> Result<bool> {
        let mut w = self.pools.write().await?;
        let done = sqlx::query(
            "UPDATE wh_endpoint SET digest_due_s = $2, digest_event = $3, digest_s = $4
             WHERE id = $1 AND (digest_due_s = $5 OR (digest_due_s IS NULL AND $5 IS NULL))",
        )
        .bind(endpoint.id.0)
        .bind(next_s)
        .bind(last_event)
        .bind(until_s)
        .bind(endpoint.digest_due_s)
        .execute(w.on())
        .await?;
        if done.rows_affected() == 0 {
            return Ok(false);
        }
        if let Some(new) = new {
            keep_message(&mut w, new, now_s).await?;
        }
        w.commit().await?;
        Ok(true)
    }

    /// When a receiver was last sent something about a group, in Unix seconds.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn last_about(&self, group: GroupId, to: EndpointId) -> Result<Option<i64>> {
        Ok(sqlx::query_scalar(
            "SELECT MAX(wh_message.at_s)
             FROM wh_message
             JOIN wh_delivery ON wh_delivery.message_id = wh_message.id
             WHERE wh_message.group_id = $1 AND wh_delivery.endpoint_id = $2",
        )
        .bind(group.0)
        .bind(to.0)
        .fetch_one(&self.pools.reader)
        .await?)
    }

    /// Groups and alerts that are open on the routes that lead to a receiver; `None`: none does.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn open_counts_of(&self, to: EndpointId) -> Result<Option<(i64, i64)>> {
        let row = sqlx::query(
            "SELECT (SELECT COUNT(*) FROM route_endpoint WHERE endpoint_id = $1),
                    (SELECT COUNT(*) FROM alert_group
                     WHERE ended_s IS NULL AND route_id IN (SELECT route_id FROM route_endpoint WHERE endpoint_id = $1)),
                    (SELECT COUNT(DISTINCT key) FROM alert
                     WHERE ended_s IS NULL AND route_id IN (SELECT route_id FROM route_endpoint WHERE endpoint_id = $1))",
        )
        .bind(to.0)
        .fetch_one(&self.pools.reader)
        .await?;
        let routes: i64 = row.try_get(0)?;
        Ok((routes > 0).then_some((row.try_get(1)?, row.try_get(2)?)))
    }

    /// The newest message id, so that new ones are greater.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn newest_message(&self) -> Result<Option<String>> {
        Ok(sqlx::query_scalar("SELECT MAX(id) FROM wh_message").fetch_one(&self.pools.reader).await?)
    }

    /// The newest messages of one receiver, or of all, in a state or in any; `before` is the id of the last one shown.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn deliveries(
        &self,
        endpoint: Option<EndpointId>,
        state: Option<DeliveryState>,
        before: Option<&str>,
        limit: i64,
    ) -> Result<Vec<DeliveryRow>> {
        let rows = sqlx::query(
            "SELECT wh_delivery.endpoint_id, wh_endpoint.slug, wh_delivery.message_id, wh_message.type, wh_message.at_s,
                    wh_delivery.state, wh_delivery.attempts, wh_delivery.next_s, wh_delivery.last_code,
                    wh_delivery.last_error, wh_delivery.replay, wh_delivery.done_s, wh_delivery.note
             FROM wh_delivery
             JOIN wh_message ON wh_message.id = wh_delivery.message_id
             JOIN wh_endpoint ON wh_endpoint.id = wh_delivery.endpoint_id
             WHERE ($1 IS NULL OR wh_delivery.endpoint_id = $1)
               AND ($2 IS NULL OR wh_delivery.state = $2)
               AND ($3 IS NULL OR wh_delivery.message_id < $3)
             ORDER BY wh_delivery.message_id DESC, wh_delivery.endpoint_id
             LIMIT $4",
        )
        .bind(endpoint.map(|id| id.0))
        .bind(state.map(|state| state.as_str().to_owned()))
        .bind(before.map(ToOwned::to_owned))
        .bind(limit)
        .fetch_all(&self.pools.reader)
        .await?;
        rows.iter().map(delivery).collect()
    }

    /// One message and one receiver: the row, the message's body, and every try.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn delivery(
        &self,
        endpoint: EndpointId,
        message: &str,
    ) -> Result<Option<(DeliveryRow, Vec<u8>, Vec<AttemptRow>)>> {
        let row = sqlx::query(
            "SELECT wh_delivery.endpoint_id, wh_endpoint.slug, wh_delivery.message_id, wh_message.type, wh_message.at_s,
                    wh_delivery.state, wh_delivery.attempts, wh_delivery.next_s, wh_delivery.last_code,
                    wh_delivery.last_error, wh_delivery.replay, wh_delivery.done_s, wh_delivery.note, wh_message.body
             FROM wh_delivery
             JOIN wh_message ON wh_message.id = wh_delivery.message_id
             JOIN wh_endpoint ON wh_endpoint.id = wh_delivery.endpoint_id
             WHERE wh_delivery.endpoint_id = $1 AND wh_delivery.message_id = $2",
        )
        .bind(endpoint.0)
        .bind(message)
        .fetch_optional(&self.pools.reader)
        .await?;
        let Some(row) = row else { return Ok(None) };
        let tries = sqlx::query(
            "SELECT n, at_ms, took_ms, status, error, request, response
             FROM wh_attempt WHERE endpoint_id = $1 AND message_id = $2 ORDER BY n",
        )
        .bind(endpoint.0)
        .bind(message)
        .fetch_all(&self.pools.reader)
        .await?;
        let tries: Result<Vec<AttemptRow>> = tries
            .iter()
            .map(|row| {
                Ok(AttemptRow {
                    n: row.try_get(0)?,
                    at_ms: row.try_get(1)?,
                    took_ms: row.try_get(2)?,
                    status: row.try_get(3)?,
                    error: row.try_get(4)?,
                    request: row.try_get(5)?,
                    response: row.try_get(6)?,
                })
            })
            .collect();
        Ok(Some((delivery(&row)?, row.try_get("body")?, tries?)))
    }

    /// How much waits for one receiver, or for all.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn backlog(&self, endpoint: Option<EndpointId>) -> Result<Backlog> {
        let row = sqlx::query(
            "SELECT (SELECT COUNT(*) FROM wh_delivery WHERE state = 'pending' AND ($1 IS NULL OR endpoint_id = $1)),
                    (SELECT COUNT(*) FROM wh_delivery WHERE state = 'dead' AND ($1 IS NULL OR endpoint_id = $1)),
                    (SELECT MIN(at_s) FROM wh_message
                     WHERE id IN (SELECT message_id FROM wh_delivery
                                  WHERE state = 'pending' AND ($1 IS NULL OR endpoint_id = $1)))",
        )
        .bind(endpoint.map(|id| id.0))
        .fetch_one(&self.pools.reader)
        .await?;
        Ok(Backlog { pending: row.try_get(0)?, dead: row.try_get(1)?, oldest_s: row.try_get(2)? })
    }

    /// Lets go of messages that are done since before a moment, with their tries. Gives how many messages went.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn forget_messages(&self, before_s: i64) -> Result<u64> {
        let mut w = self.pools.write().await?;
        for statement in [
            "DELETE FROM wh_attempt WHERE message_id IN
                 (SELECT id FROM wh_message WHERE at_s < $1 AND NOT EXISTS (SELECT 1 FROM wh_delivery
                     WHERE wh_delivery.message_id = wh_message.id AND wh_delivery.state = 'pending'))",
            "DELETE FROM wh_delivery WHERE message_id IN
                 (SELECT id FROM wh_message WHERE at_s < $1 AND NOT EXISTS (SELECT 1 FROM wh_delivery AS other
                     WHERE other.message_id = wh_message.id AND other.state = 'pending'))",
        ] {
            sqlx::query(statement).bind(before_s).execute(w.on()).await?;
        }
        let gone = sqlx::query(
            "DELETE FROM wh_message
             WHERE at_s < $1 AND NOT EXISTS (SELECT 1 FROM wh_delivery WHERE wh_delivery.message_id = wh_message.id)",
        )
        .bind(before_s)
        .execute(w.on())
        .await?;
        w.commit().await?;
        Ok(gone.rows_affected())
    }
}

/// Makes or changes the receiver of that name.
async fn write_endpoint(w: &mut Writing, new: &NewEndpoint, origin: Origin, now_s: i64) -> Result<EndpointId> {
    let types = serde_json::to_string(&new.types).map_err(|error| Error::corrupt("list of event types", error))?;
    let known: Option<i64> = sqlx::query_scalar("SELECT id FROM wh_endpoint WHERE slug = $1 AND removed_s IS NULL")
        .bind(&new.slug)
        .fetch_optional(w.on())
        .await?;
    let newest: Option<i64> = sqlx::query_scalar("SELECT MAX(id) FROM event").fetch_one(w.on()).await?;
    let id = match known {
        Some(id) => {
            // A summary that is asked for otherwise is planned anew and loses nothing; a new one begins with what comes.
            sqlx::query(
                "UPDATE wh_endpoint
                 SET state = CASE WHEN url <> $3 AND state = 'disabled' THEN 'active' ELSE state END,
                     title = $2, url = $3, format = $4, mode = $5, types = $6, matcher = $7, include_baseline = $8,
                     per_minute = $9, options = $10, digest = $11, origin = $12,
                     digest_due_s = CASE WHEN digest = $11 THEN digest_due_s ELSE NULL END,
                     digest_event = CASE WHEN digest IS NULL THEN $13 ELSE digest_event END,
                     digest_s = CASE WHEN digest IS NULL THEN $14 ELSE digest_s END
                 WHERE id = $1",
            )
            .bind(id)
            .bind(clean(&new.title))
            .bind(&new.url)
            .bind(&new.format)
            .bind(new.mode.as_str())
            .bind(&types)
            .bind(clean(&new.matcher))
            .bind(i64::from(new.include_baseline))
            .bind(new.per_minute)
            .bind(&new.options)
            .bind(&new.digest)
            .bind(origin.as_str())
            .bind(newest.unwrap_or(0))
            .bind(now_s)
            .execute(w.on())
            .await?;
            id
        }
        None => {
            let id = w.next_id(Table::WhEndpoint).await?;
            sqlx::query(
                "INSERT INTO wh_endpoint (id, slug, title, url, format, mode, types, matcher, include_baseline,
                                          per_minute, options, digest, origin, state, schema_date, created_s,
                                          digest_event, digest_s)
                 VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, 'active', $14, $15, $16, $15)",
            )
            .bind(id)
            .bind(&new.slug)
            .bind(clean(&new.title))
            .bind(&new.url)
            .bind(&new.format)
            .bind(new.mode.as_str())
            .bind(&types)
            .bind(clean(&new.matcher))
            .bind(i64::from(new.include_baseline))
            .bind(new.per_minute)
            .bind(&new.options)
            .bind(&new.digest)
            .bind(origin.as_str())
            .bind(SCHEMA_DATE)
            .bind(now_s)
            .bind(newest.unwrap_or(0))
            .execute(w.on())
            .await?;
            id
        }
    };
    Ok(EndpointId(id))
}

async fn drop_endpoint(w: &mut Writing, id: EndpointId, now_s: i64) -> Result<()> {
    sqlx::query("UPDATE wh_endpoint SET removed_s = $2, state = 'disabled' WHERE id = $1")
        .bind(id.0)
        .bind(now_s)
        .execute(w.on())
        .await?;
    sqlx::query(
        "UPDATE wh_delivery SET state = 'cancelled', next_s = NULL, done_s = $2
         WHERE endpoint_id = $1 AND state = 'pending'",
    )
    .bind(id.0)
    .bind(now_s)
    .execute(w.on())
    .await?;
    sqlx::query("DELETE FROM wh_secret WHERE endpoint_id = $1").bind(id.0).execute(w.on()).await?;
    Ok(())
}

/// Secrets and the own route of a receiver.
async fn equip(w: &mut Writing, id: EndpointId, new: &Subscription<'_>, now_s: i64) -> Result<()> {
    for secret in new.secrets {
        put_secret(w, id, secret).await?;
    }
    match new.route {
        Some(route) => write_route(w, route, &[id], Origin::Ui, now_s).await.map(|_| ()),
        None => drop_own_route(w, &new.endpoint.slug, now_s).await,
    }
}

/// A route that was made on a page with the receiver of the same name.
async fn drop_own_route(w: &mut Writing, slug: &str, now_s: i64) -> Result<()> {
    let own: Option<i64> =
        sqlx::query_scalar("SELECT id FROM route WHERE slug = $1 AND origin = 'ui' AND removed_s IS NULL")
            .bind(slug)
            .fetch_optional(w.on())
            .await?;
    match own {
        Some(id) => drop_route(w, RouteId(id), now_s).await,
        None => Ok(()),
    }
}

async fn put_secret(w: &mut Writing, id: EndpointId, secret: &SealedSecret) -> Result<()> {
    sqlx::query(
        "INSERT INTO wh_secret (endpoint_id, role, scheme, key_enc, created_s, expires_s)
         VALUES ($1, $2, $3, $4, $5, $6)
         ON CONFLICT (endpoint_id, role, scheme) DO UPDATE SET
             key_enc = excluded.key_enc, created_s = excluded.created_s, expires_s = excluded.expires_s, last_used_s = NULL",
    )
    .bind(id.0)
    .bind(secret.role.as_str())
    .bind(&secret.scheme)
    .bind(&secret.sealed)
    .bind(secret.created_s)
    .bind(secret.expires_s)
    .execute(w.on())
    .await?;
    Ok(())
}

/// Writes a message and a delivery for everybody who receives it.
pub(crate) async fn keep_message(w: &mut Writing, new: &NewMessage, now_s: i64) -> Result<()> {
    sqlx::query("INSERT INTO wh_message (id, type, event_id, group_id, at_s, body) VALUES ($1, $2, $3, $4, $5, $6)")
        .bind(&new.id)
        .bind(&new.kind)
        .bind(new.event)
        .bind(new.group)
        .bind(new.at_s)
        .bind(&new.body)
        .execute(w.on())
        .await?;
    for endpoint in &new.to {
        sqlx::query(
            "INSERT INTO wh_delivery (endpoint_id, message_id, state, next_s) VALUES ($1, $2, 'pending', $3)
             ON CONFLICT (endpoint_id, message_id) DO NOTHING",
        )
        .bind(endpoint.0)
        .bind(&new.id)
        .bind(now_s)
        .execute(w.on())
        .await?;
    }
    Ok(())
}

/// Characters of an error that are kept.
const ERROR: usize = 500;

async fn settle(w: &mut Writing, one: &Settled, now_s: i64) -> Result<()> {
    let attempt = &one.attempt;
    let (id, message) = (attempt.endpoint.0, attempt.message.as_str());
    let n: i64 =
        sqlx::query_scalar("SELECT COALESCE(MAX(n), 0) FROM wh_attempt WHERE endpoint_id = $1 AND message_id = $2")
            .bind(id)
            .bind(message)
            .fetch_one(w.on())
            .await?;
    sqlx::query(
        "INSERT INTO wh_attempt (endpoint_id, message_id, n, at_ms, took_ms, status, error, request, response)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
    )
    .bind(id)
    .bind(message)
    .bind(n + 1)
    .bind(attempt.at_ms)
    .bind(attempt.took_ms)
    .bind(attempt.status)
    .bind(attempt.error.as_deref().map(|error| shortened(error, ERROR)))
    .bind(clean(&attempt.request))
    .bind(attempt.response.as_deref().map(clean))
    .execute(w.on())
    .await?;
    let done_s = (one.state != DeliveryState::Pending).then_some(now_s);
    sqlx::query(
        "UPDATE wh_delivery
         SET state = $3, attempts = $4, tries = $5, next_s = $6, last_code = $7, last_error = $8, done_s = $9, note = $10
         WHERE endpoint_id = $1 AND message_id = $2 AND state = 'pending'",
    )
    .bind(id)
    .bind(message)
    .bind(one.state.as_str())
    .bind(one.attempts)
    .bind(n + 1)
    .bind(one.next_s)
    .bind(attempt.status)
    .bind(attempt.error.as_deref().map(|error| shortened(error, ERROR)))
    .bind(done_s)
    .bind(one.note.clone())
    .execute(w.on())
    .await?;
    for (role, scheme) in &one.signed_by {
        sqlx::query("UPDATE wh_secret SET last_used_s = $4 WHERE endpoint_id = $1 AND role = $2 AND scheme = $3")
            .bind(id)
            .bind(role.as_str())
            .bind(*scheme)
            .bind(now_s)
            .execute(w.on())
            .await?;
    }
    stand(w, one, now_s).await
}

/// What waits for a receiver is due by then.
async fn bring_forward(w: &mut Writing, endpoint: i64, by_s: i64) -> Result<()> {
    sqlx::query("UPDATE wh_delivery SET next_s = $2 WHERE endpoint_id = $1 AND state = 'pending' AND next_s > $2")
        .bind(endpoint)
        .bind(by_s)
        .execute(w.on())
        .await?;
    Ok(())
}

/// Keeps how the receiver does, and tells when that changed for the worse.
async fn stand(w: &mut Writing, one: &Settled, now_s: i64) -> Result<()> {
    let (id, standing) = (one.attempt.endpoint.0, &one.endpoint);
    let before: Option<String> =
        sqlx::query_scalar("SELECT state FROM wh_endpoint WHERE id = $1").bind(id).fetch_optional(w.on()).await?;
    let before: EndpointState = word("state of a webhook", before.as_deref().unwrap_or("disabled"))?;
    sqlx::query(
        "UPDATE wh_endpoint
         SET state = $2, state_note = $3, failures = $4, first_failure_s = $5, last_failure_s = $6, last_success_s = $7,
             slowed = $8
         WHERE id = $1 AND state <> 'disabled'",
    )
    .bind(id)
    .bind(standing.state.as_str())
    .bind(standing.note.clone())
    .bind(standing.failures)
    .bind(standing.first_failure_s)
    .bind(standing.last_failure_s)
    .bind(standing.last_success_s)
    .bind(i64::from(standing.slowed))
    .execute(w.on())
    .await?;
    let news = |kind, note: Option<String>| News { subject: Some(id), note, ..News::of(kind) };
    match (before, standing.state) {
        (EndpointState::Active, EndpointState::Failing) => {
            // Whatever waits stands for the receiver from now on, not for its own next attempt.
            let probe_s = one.next_s.unwrap_or(now_s);
            bring_forward(w, id, probe_s).await?;
            events::append(w, now_s, news(EventKind::WebhookFailing, standing.note.clone())).await?;
        }
        (EndpointState::Active | EndpointState::Failing, EndpointState::Disabled) => {
            events::append(w, now_s, news(EventKind::WebhookDisabled, standing.note.clone())).await?;
        }
        // It hears again.
        (EndpointState::Failing, EndpointState::Active) => bring_forward(w, id, now_s).await?,
        _ => {}
    }
    if one.state == DeliveryState::Dead {
        let note = Some(one.attempt.message.clone());
        events::append(w, now_s, news(EventKind::WebhookMessageDead, note)).await?;
    }
    Ok(())
}
