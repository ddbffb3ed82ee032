//! Incidents: surfaces that go down together for one reason are told of once, with what they share.
//!
//! When a surface goes down, those are counted that began to fail in the same way within ten minutes of it and share its
//! host, its certificate or its network (dashboard §5). Three of them, or half a host, are one incident; whoever goes down
//! later for the same reason joins it, and it is over when the last of them answers again.

use std::collections::BTreeSet;
use std::net::IpAddr;

use plumbline_rules::words;
use sqlx::Row;

use crate::dialect::{Table, Writing};
use crate::error::Result;
use crate::events::{self, News};
use crate::words::EventKind;

/// How far apart the failures may have begun, in seconds.
const TOGETHER_S: i64 = 600;
/// So many surfaces are no coincidence.
const SEVERAL: usize = 3;
/// Surfaces that join when an incident opens; the rest joins as it goes down.
const MOST_AT_ONCE: i64 = 1000;

words! {
    /// What members of an incident share.
    pub enum Shared {
        /// The host.
        Host = "host",
        /// Issuer and end of their certificate.
        Certificate = "certificate",
        /// The network of their address.
        Prefix = "prefix",
    }
}

/// A surface that has just gone down.
pub(crate) struct Down<'a> {
    pub(crate) surface: i64,
    pub(crate) host: Option<i64>,
    pub(crate) prefix: Option<&'a str>,
    pub(crate) certificate: Option<&'a str>,
    /// Why, as in `surface.reach_reason`.
    pub(crate) reason: &'a str,
    /// Its first failure.
    pub(crate) since_s: i64,
    pub(crate) at_s: i64,
}

/// Failures of one class have one cause, though each may be told in another word.
#[must_use]
pub fn reason_class(reason: &str) -> &'static str {
    match reason {
        "dns_servfail" | "dns_timeout" => "dns",
        "refused" | "connect_timeout" | "reset" => "connect",
        "http_5xx" => "http",
        reason if reason.starts_with("tls_") => "tls",
        _ => "answer",
    }
}

/// The network of an address; `None` where neighbours share nothing, as on loopback and in private networks.
#[must_use]
pub fn prefix_of(address: &str) -> Option<String> {
    match address.parse().ok()? {
        IpAddr::V4(ip) if !(ip.is_loopback() || ip.is_private() || ip.is_link_local()) => {
            let [a, b, c, _] = ip.octets();
            Some(format!("{a}.{b}.{c}.0/24"))
        }
        IpAddr::V6(ip) if !(ip.is_loopback() || ip.is_unique_local() || ip.is_unicast_link_local()) => {
            let [a, b, c, ..] = ip.segments();
            Some(format!("{a:x}:{b:x}:{c:x}::/48"))
        }
        IpAddr::V4(_) | IpAddr::V6(_) => None,
    }
}

/// Takes a surface that went down into the incident it belongs to, and opens one where it is the last that was missing.
/// Gives the incident, if there is one; `grown` gathers those that were there before.
pub(crate) async fn join(w: &mut Writing, grown: &mut BTreeSet<i64>, down: &Down<'_>) -> Result<Option<i64>> {
    for shared in Shared::ALL {
        let Some(what) = shared_by(w, down, *shared).await? else { continue };
        let class = reason_class(down.reason);
        if let Some(open) = open_incident(w, *shared, &what, class).await? {
            if add(w, open, down.surface, down.at_s).await? {
                grown.insert(open);
            }
            return Ok(Some(open));
        }
        let others = failing_with(w, down, *shared, class).await?;
        if is_incident(*shared, others.len() + 1, surfaces_of(w, down, *shared).await?) {
            return open(w, down, *shared, &what, class, &others).await.map(Some);
        }
    }
    Ok(None)
}

/// Three together, or half of a host that has more than one.
fn is_incident(shared: Shared, together: usize, of_host: usize) -> bool {
    together >= SEVERAL || shared == Shared::Host && together >= 2 && together * 2 >= of_host
}

async fn shared_by(w: &mut Writing, down: &Down<'_>, shared: Shared) -> Result<Option<String>> {
    match shared {
        Shared::Certificate => Ok(down.certificate.map(str::to_owned)),
        Shared::Prefix => Ok(down.prefix.map(str::to_owned)),
        Shared::Host => {
            Ok(sqlx::query_scalar("SELECT name FROM host WHERE id = $1").bind(down.host).fetch_optional(w.on()).await?)
        }
    }
}

async fn open_incident(w: &mut Writing, shared: Shared, what: &str, class: &str) -> Result<Option<i64>> {
    Ok(sqlx::query_scalar(
        "SELECT id FROM incident
         WHERE closed_s IS NULL AND cause = $1 AND shared = $2 AND reason = $3
         ORDER BY id DESC
         LIMIT 1",
    )
    .bind(shared.as_str())
    .bind(what)
    .bind(class)
    .fetch_optional(w.on())
    .await?)
}

/// Other surfaces that share it and began to fail in the same way at about the same time.
async fn failing_with(w: &mut Writing, down: &Down<'_>, shared: Shared, class: &str) -> Result<Vec<i64>> {
    let statement = match shared {
        Shared::Host => {
            "SELECT id, reach_reason FROM surface
             WHERE host_id = $1 AND id <> $2 AND reach IN ('suspect', 'down') AND retired_s IS NULL
               AND streak_since_s BETWEEN $3 AND $4
             ORDER BY id
             LIMIT $5"
        }
        Shared::Certificate => {
            "SELECT id, reach_reason FROM surface
             WHERE certificate = $1 AND id <> $2 AND reach IN ('suspect', 'down') AND retired_s IS NULL
               AND streak_since_s BETWEEN $3 AND $4
             ORDER BY id
             LIMIT $5"
        }
        Shared::Prefix => {
            "SELECT id, reach_reason FROM surface
             WHERE prefix = $1 AND id <> $2 AND reach IN ('suspect', 'down') AND retired_s IS NULL
               AND streak_since_s BETWEEN $3 AND $4
             ORDER BY id
             LIMIT $5"
        }
    };
    let query = sqlx::query(statement);
    let query = match shared {
        Shared::Host => query.bind(down.host),
        Shared::Certificate => query.bind(down.certificate),
        Shared::Prefix => query.bind(down.prefix),
    };
    let rows = query
        .bind(down.surface)
        .bind(down.since_s - TOGETHER_S)
        .bind(down.since_s + TOGETHER_S)
        .bind(MOST_AT_ONCE)
        .fetch_all(w.on())
        .await?;
    let mut others = Vec::new();
    for row in rows {
        let reason: Option<String> = row.try_get(1)?;
        if reason.is_some_and(|reason| reason_class(&reason) == class) {
            others.push(row.try_get(0)?);
        }
    }
    Ok(others)
}

/// How many surfaces the host has that are watched.
async fn surfaces_of(w: &mut Writing, down: &Down<'_>, shared: Shared) -> Result<usize> {
    if shared != Shared::Host {
        return Ok(usize::MAX);
    }
    let n: i64 = sqlx::query_scalar(
        "SELECT COUNT(*) FROM surface WHERE host_id = $1 AND retired_s IS NULL AND next_due_s IS NOT NULL",
    )
    .bind(down.host)
    .fetch_one(w.on())
    .await?;
    Ok(usize::try_from(n).unwrap_or(usize::MAX))
}

async fn open(
    w: &mut Writing,
    down: &Down<'_>,
    shared: Shared,
    what: &str,
    class: &str,
    others: &[i64],
) -> Result<i64> {
    let id = w.next_id(Table::Incident).await?;
    sqlx::query("INSERT INTO incident (id, opened_s, cause, shared, reason) VALUES ($1, $2, $3, $4, $5)")
        .bind(id)
        .bind(down.at_s)
        .bind(shared.as_str())
        .bind(what)
        .bind(class)
        .execute(w.on())
        .await?;
    for surface in others.iter().chain([&down.surface]) {
        add(w, id, *surface, down.at_s).await?;
    }
    tell(w, id, EventKind::IncidentOpened, down.at_s).await?;
    Ok(id)
}

/// Tells whether it is a new member.
async fn add(w: &mut Writing, incident: i64, surface: i64, at_s: i64) -> Result<bool> {
    let done = sqlx::query(
        "INSERT INTO incident_member (incident_id, surface_id, joined_s) VALUES ($1, $2, $3)
         ON CONFLICT (incident_id, surface_id) DO UPDATE SET left_s = NULL WHERE incident_member.left_s IS NOT NULL",
    )
    .bind(incident)
    .bind(surface)
    .bind(at_s)
    .execute(w.on())
    .await?;
    if done.rows_affected() == 0 {
        return Ok(false);
    }
    sqlx::query(
        "UPDATE incident
         SET n_members = (SELECT COUNT(*) FROM incident_member WHERE incident_id = $1)
         WHERE id = $1",
    )
    .bind(incident)
    .execute(w.on())
    .await?;
    Ok(true)
}

/// A surface answers again, or is no longer watched: it leaves its incidents, and those nobody is left in are over.
pub(crate) async fn leave(w: &mut Writing, grown: &mut BTreeSet<i64>, surface: i64, at_s: i64) -> Result<()> {
    let rows = sqlx::query(
        "SELECT incident_member.incident_id
         FROM incident_member
         JOIN incident ON incident.id = incident_member.incident_id
         WHERE incident_member.surface_id = $1 AND incident_member.left_s IS NULL AND incident.closed_s IS NULL",
    )
    .bind(surface)
    .fetch_all(w.on())
    .await?;
    for row in rows {
        let incident: i64 = row.try_get(0)?;
        sqlx::query("UPDATE incident_member SET left_s = $3 WHERE incident_id = $1 AND surface_id = $2")
            .bind(incident)
            .bind(surface)
            .bind(at_s)
            .execute(w.on())
            .await?;
        let left: i64 =
            sqlx::query_scalar("SELECT COUNT(*) FROM incident_member WHERE incident_id = $1 AND left_s IS NULL")
                .bind(incident)
                .fetch_one(w.on())
                .await?;
        if left > 0 {
            grown.insert(incident);
            continue;
        }
        grown.remove(&incident);
        sqlx::query("UPDATE incident SET closed_s = $2 WHERE id = $1")
            .bind(incident)
            .bind(at_s)
            .execute(w.on())
            .await?;
        tell(w, incident, EventKind::IncidentResolved, at_s).await?;
    }
    Ok(())
}

/// Members of these changed: told once for all changes of a transaction.
pub(crate) async fn tell_grown(w: &mut Writing, grown: &BTreeSet<i64>, at_s: i64) -> Result<()> {
    for incident in grown {
        tell(w, *incident, EventKind::IncidentUpdated, at_s).await?;
    }
    Ok(())
}

async fn tell(w: &mut Writing, incident: i64, kind: EventKind, at_s: i64) -> Result<()> {
    events::append(w, at_s, News { subject: Some(incident), ..News::of(kind) }).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_share_a_network_and_private_addresses_do_not() {
        assert_eq!(prefix_of("203.0.113.9").as_deref(), Some("203.0.113.0/24"));
        assert_eq!(prefix_of("2a01:4f8:1:2::3").as_deref(), Some("2a01:4f8:1::/48"));
        for none in ["127.0.0.1", "10.1.2.3", "::1", "fd00::1", "a.example", ""] {
            assert_eq!(prefix_of(none), None, "{none}");
        }
    }

    #[test]
    fn three_of_anything_or_half_a_host_fail_together() {
        use Shared::{Certificate, Host, Prefix};
        for (shared, together, of_host, expected) in [
            (Host, 1, 1, false),
            (Host, 2, 2, true),
            (Host, 2, 4, true),
            (Host, 2, 5, false),
            (Host, 3, 500, true),
            (Prefix, 2, 2, false),
            (Certificate, 3, usize::MAX, true),
        ] {
            assert_eq!(is_incident(shared, together, of_host), expected, "{shared} {together} of {of_host}");
        }
    }

    #[test]
    fn reasons_of_one_class_are_one_cause() {
        assert_eq!(reason_class("dns_timeout"), reason_class("dns_servfail"));
        assert_eq!(reason_class("tls_expired"), "tls");
        assert_ne!(reason_class("refused"), reason_class("http_5xx"));
        assert_eq!(reason_class("read_timeout"), "answer");
    }
}
