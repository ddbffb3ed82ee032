//! Every type of message, with its JSON Schema and an example: what `/api/v1/event-types` shows and the documentation holds.

use plumbline_store::alerting::{Alert, AlertState, ByWhat, Grade, Group, NewRoute};
use plumbline_store::events::Event;
use plumbline_store::happened::{
    AboutCrawl, AboutDeploy, AboutFinding, AboutIncident, AboutRule, AboutSurface, AboutTarget, Facts, Happened,
};
use plumbline_store::hooks::SCHEMA_DATE;
use plumbline_store::judged::Occurrence;
use plumbline_store::words::{
    Basis, Cause, EventKind, FindingState, Headline, Impact, Known, OpenedAs, ReachState, Resolution, Severity,
    SurfaceKind, TargetKind,
};
use plumbline_store::{AlertId, EventId, GroupId, RouteId, SurfaceId, TargetId};
use serde::Serialize;
use serde_json::{Value, json};

use crate::payload::{self, Source};

/// The type of a summary, which no event stands behind.
pub const DIGEST: &str = "digest";

/// The moment of all examples: 1 December 2026, 14:02:11 UTC.
const AT_S: i64 = 1_796_133_731;

/// One type of message.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EventType {
    /// Its word.
    pub r#type: String,
    /// When it is sent.
    pub says: &'static str,
    /// JSON Schema (2020-12) of the whole body.
    pub schema: Value,
    /// A whole body.
    pub example: Value,
}

/// Every type, in the order of the documentation.
#[must_use]
pub fn all() -> Vec<EventType> {
    let events = EventKind::ALL.iter().copied();
    let mut types: Vec<EventType> = events.map(event_type).collect();
    types.push(EventType {
        r#type: DIGEST.to_owned(),
        says: "A daily or weekly summary, at the hour and in the zone of the subscription.",
        schema: schema(DIGEST, &["period", "from", "to", "counts", "open_groups", "open_alerts", "url"]),
        example: example_body(DIGEST, &digest_example()),
    });
    types
}

/// One type by its word.
#[must_use]
pub fn named(word: &str) -> Option<EventType> {
    all().into_iter().find(|one| one.r#type == word)
}

fn event_type(kind: EventKind) -> EventType {
    let (says, parts) = about(kind);
    let word = kind.as_str();
    EventType {
        r#type: word.to_owned(),
        says,
        schema: schema(word, parts),
        example: example_body(word, &example(kind)),
    }
}

/// When a type is sent, and the parts that its data always has.
fn about(kind: EventKind) -> (&'static str, &'static [&'static str]) {
    const FINDING: &[&str] = &["finding", "rule", "target", "surface", "occurrences", "truncated", "cause"];
    const REACH: &[&str] = &["target", "surface", "reach"];
    const TARGET: &[&str] = &["target"];
    const GROUP: &[&str] = &["group", "summary", "items", "truncated"];
    match kind {
        EventKind::FindingOpened => ("A finding opened and it is no regression.", FINDING),
        EventKind::FindingRegressed => ("A finding opened on something that had worked.", FINDING),
        EventKind::FindingResolved => ("A finding is over.", FINDING),
        EventKind::FindingFlappingStarted => {
            ("A finding comes and goes; nothing more is said until it calms down.", FINDING)
        }
        EventKind::FindingFlappingStopped => ("A finding that came and went has calmed down.", FINDING),
        EventKind::TargetAdded => ("A target was seen for the first time.", TARGET),
        EventKind::TargetDown => ("A surface is confirmed down.", REACH),
        EventKind::TargetRecovered => ("It answers again.", REACH),
        EventKind::TargetHeadlineChanged => {
            ("A target's headline moved.", &["target", "headline_before", "headline_after"])
        }
        EventKind::TargetGone => ("Nothing has been at its address for three days.", TARGET),
        EventKind::TargetRetired => ("A target left all its sources.", TARGET),
        EventKind::TargetReturned => ("A target that had left is back.", TARGET),
        EventKind::IncidentOpened => ("Several surfaces fail together.", &["incident"]),
        EventKind::IncidentUpdated => ("An incident has other members.", &["incident"]),
        EventKind::IncidentResolved => ("An incident is over.", &["incident"]),
        EventKind::DocumentChanged => ("A surface serves another document.", &["target", "surface", "document_after"]),
        EventKind::DeployRecorded => ("A deploy was told of or inferred.", &["target", "deploy"]),
        EventKind::DeployEvaluated => ("It is known what a deploy did.", &["target", "deploy"]),
        EventKind::RulePrevalenceJumped => {
            ("Many more, or fewer, targets fail a rule.", &["rule", "failing_before", "failing_after"])
        }
        EventKind::RulesetReleased => ("Judging goes on with other rules.", &["rules"]),
        EventKind::CrawlCompleted => ("A crawl saw all it was to see.", &["crawl"]),
        EventKind::CrawlDegraded => ("A crawl did not see what it should have; no target is blamed.", &["crawl"]),
        EventKind::AlertGroupOpened => ("Alerts that belong together began.", GROUP),
        EventKind::AlertGroupUpdated => ("A group has other members, or still holds.", GROUP),
        EventKind::AlertGroupResolved => ("Every alert of a group is over.", GROUP),
        EventKind::WebhookFailing => ("A receiver failed ten times in a row. Sent to the others.", &["webhook"]),
        EventKind::WebhookDisabled => ("A receiver was switched off. Sent to the others.", &["webhook"]),
        EventKind::WebhookMessageDead => ("A message is out of attempts. Sent to the others.", &["webhook"]),
        EventKind::DiskFilling => ("The disk of the database fills up.", &["used_percent"]),
        EventKind::DiskFull => ("So little room is left that documents are no longer kept.", &["used_percent"]),
        EventKind::DiskRelieved => ("The disk of the database has room again.", &["used_percent"]),
        EventKind::Ping => ("A test that somebody asked for.", &["message"]),
    }
}

/// The JSON Schema of a body whose data always has these parts. Unknown members are allowed: types grow.
fn schema(word: &str, parts: &[&str]) -> Value {
    let properties: serde_json::Map<String, Value> =
        PARTS.iter().map(|(name, shape)| ((*name).to_owned(), shape())).collect();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": word,
        "type": "object",
        "required": ["type", "timestamp", "schema", "source", "data"],
        "properties": {
            "type": { "const": word },
            "timestamp": { "type": "string", "format": "date-time", "description": "When it happened." },
            "schema": { "const": SCHEMA_DATE },
            "source": { "type": "string", "description": "Where this installation is reached." },
            "data": { "type": "object", "required": parts, "properties": properties },
        },
    })
}

type Shape = fn() -> Value;

const PARTS: [(&str, Shape); 28] = [
    ("title", text),
    ("severity", || words(&["critical", "error", "warning", "info"])),
    ("finding", || {
        object(
            &["id", "state", "severity", "revision", "first_seen", "occurrences"],
            &[
                ("id", text()),
                ("state", text()),
                ("opened_as", maybe_text()),
                ("baseline", json!({ "type": "boolean" })),
                ("resolution", maybe_text()),
                ("severity", text()),
                ("impact", maybe_text()),
                ("revision", number()),
                ("first_seen", text()),
                ("opened_at", maybe_text()),
                ("closed_at", maybe_text()),
                ("previously_resolved_at", maybe_text()),
                ("occurrences", number()),
                ("url", maybe_text()),
            ],
        )
    }),
    ("rule", || {
        object(
            &["id", "version", "severity", "basis", "url"],
            &[
                ("id", text()),
                ("title", text()),
                ("version", number()),
                ("severity", text()),
                ("impact", maybe_text()),
                ("tags", list(&text())),
                ("basis", text()),
                ("spec", maybe_text()),
                ("fix", maybe_text()),
                ("url", text()),
            ],
        )
    }),
    ("target", || {
        object(
            &["id", "key", "kind", "reach", "headline", "url"],
            &[
                ("id", text()),
                ("key", text()),
                ("name", text()),
                ("kind", text()),
                ("owner", maybe_text()),
                ("tags", list(&text())),
                ("reach", text()),
                ("headline", text()),
                ("headline_as_of", maybe_text()),
                ("url", text()),
            ],
        )
    }),
    ("surface", || {
        object(
            &["id", "kind", "url", "detected", "specification"],
            &[
                ("id", text()),
                ("kind", text()),
                ("url", text()),
                ("detected", object(&[], &[("profile", maybe_text()), ("known", maybe_text())])),
                (
                    "specification",
                    object(
                        &["state", "errors", "warnings"],
                        &[
                            ("state", words(&["conformant", "warnings", "deviates", "not_evaluated"])),
                            ("errors", number()),
                            ("warnings", number()),
                        ],
                    ),
                ),
            ],
        )
    }),
    ("occurrences", || list(&object(&["pointer", "message"], &[("pointer", text()), ("message", text())]))),
    ("truncated", || json!({ "description": "Items left out.", "type": "integer", "minimum": 0 })),
    ("more_url", text),
    ("cause", || {
        object(
            &[],
            &[
                ("kind", maybe_text()),
                ("confidence", maybe_text()),
                ("document_before", maybe_text()),
                ("document_after", maybe_text()),
            ],
        )
    }),
    ("deploy", || {
        object(
            &["id", "at", "signals"],
            &[
                ("id", text()),
                ("at", text()),
                ("version", maybe_text()),
                ("confidence", maybe_text()),
                ("outcome", maybe_text()),
            ],
        )
    }),
    ("incident", || {
        object(
            &["id", "cause", "shared", "members", "opened_at"],
            &[
                ("id", text()),
                ("cause", text()),
                ("shared", text()),
                ("members", number()),
                ("opened_at", text()),
                ("closed_at", maybe_text()),
            ],
        )
    }),
    ("reach", || {
        object(
            &["state"],
            &[
                ("state", text()),
                ("reason", maybe_text()),
                ("since", maybe_text()),
                ("failed_probes", number()),
                ("down_since", maybe_text()),
                ("downtime_s", maybe_number()),
            ],
        )
    }),
    ("headline_before", text),
    ("headline_after", text),
    ("document_before", text),
    ("document_after", text),
    ("failing_before", number),
    ("failing_after", number),
    ("rules", number),
    ("crawl", || {
        object(
            &["id", "kind", "planned", "done", "faults"],
            &[
                ("id", text()),
                ("kind", text()),
                ("planned", number()),
                ("done", number()),
                ("faults", number()),
                ("opened", number()),
                ("resolved", number()),
                ("regressed", number()),
                ("note", maybe_text()),
                ("url", text()),
            ],
        )
    }),
    ("webhook", || object(&["slug", "url"], &[("slug", text()), ("url", text())])),
    ("used_percent", number),
    ("group", || {
        object(
            &["id", "by", "key", "route", "revision", "severity", "firing", "resolved", "opened_at", "url"],
            &[
                ("id", text()),
                ("by", words(&["incident", "deploy", "ruleset", "rule", "target", "storm"])),
                ("key", text()),
                ("route", text()),
                ("revision", number()),
                ("severity", text()),
                ("firing", number()),
                ("resolved", number()),
                ("opened_at", text()),
                ("repeat_s", number()),
                ("url", text()),
            ],
        )
    }),
    ("summary", text),
    ("items", || {
        list(&object(
            &["alert", "state", "title", "severity", "since", "url"],
            &[
                ("alert", text()),
                ("state", words(&["firing", "resolved"])),
                ("title", text()),
                ("target", maybe_text()),
                ("rule", maybe_text()),
                ("severity", text()),
                ("impact", maybe_text()),
                ("since", text()),
                ("url", text()),
            ],
        ))
    }),
    ("message", text),
    ("counts", || json!({ "type": "object", "additionalProperties": { "type": "integer" } })),
];

fn text() -> Value {
    json!({ "type": "string" })
}

fn maybe_text() -> Value {
    json!({ "type": ["string", "null"] })
}

fn number() -> Value {
    json!({ "type": "integer" })
}

fn maybe_number() -> Value {
    json!({ "type": ["integer", "null"] })
}

fn words(words: &[&str]) -> Value {
    json!({ "enum": words })
}

fn list(of: &Value) -> Value {
    json!({ "type": "array", "items": of })
}

fn object(required: &[&str], properties: &[(&str, Value)]) -> Value {
    let properties: serde_json::Map<String, Value> =
        properties.iter().map(|(name, shape)| ((*name).to_owned(), shape.clone())).collect();
    json!({ "type": "object", "required": required, "properties": properties })
}

fn source() -> Source {
    Source("https://plumbline.example".to_owned())
}

fn example_body(word: &str, data: &Value) -> Value {
    let bytes = payload::body(word, AT_S, &source(), data);
    serde_json::from_slice(&bytes).expect("a body is JSON")
}

/// The data of an example.
#[must_use]
pub fn example(kind: EventKind) -> Value {
    match kind {
        EventKind::Ping => json!({ "message": "hello" }),
        EventKind::AlertGroupOpened => group_example(1, 12, 0),
        EventKind::AlertGroupUpdated => group_example(2, 9, 3),
        EventKind::AlertGroupResolved => group_example(3, 0, 12),
        _ => payload::event_data(&happened(kind), &source()),
    }
}

fn digest_example() -> Value {
    json!({
        "period": "daily", "from": payload::rfc3339(AT_S - 86_400), "to": payload::rfc3339(AT_S),
        "counts": { "finding.regressed": 3, "finding.resolved": 5, "target.down": 1 },
        "open_groups": 2, "open_alerts": 7, "url": "https://plumbline.example/alerts",
    })
}

fn group_example(revision: i64, firing: i64, resolved: i64) -> Value {
    let words = if firing == 0 { "resolved" } else { "regressed" };
    let group = Group {
        id: GroupId(55),
        route: RouteId(1),
        by: ByWhat::Deploy,
        key: "dep_771".to_owned(),
        opened_s: AT_S,
        ended_s: None,
        due_s: None,
        told_s: None,
        revision,
        severity: Grade::Error,
        firing,
        resolved,
        summary: format!("12 findings {words} on 4 targets after 1.4.0"),
    };
    let alert = example_alert(firing == 0);
    let route = NewRoute {
        slug: "on-call".to_owned(),
        title: "On call".to_owned(),
        matcher: String::new(),
        min_severity: Grade::Warning,
        include_baseline: false,
        include_rule_changes: false,
        wait_s: 60,
        interval_s: 900,
        repeat_s: 86_400,
        quiet_hours: None,
    };
    payload::group_data(&route, &group, &[&alert], &[], &source())
}

fn example_alert(is_over: bool) -> Alert {
    Alert {
        id: AlertId(901),
        route: RouteId(1),
        group: Some(GroupId(55)),
        key: "finding:48211".to_owned(),
        title: "agent.example.com regressed: Skills have tags (a2a/skill-tags-required) after 1.4.0".to_owned(),
        state: if is_over { AlertState::Resolved } else { AlertState::Firing },
        severity: Grade::Error,
        target: Some(9012),
        target_key: Some("agent.example.com".to_owned()),
        surface: Some(15),
        rule: Some("a2a/skill-tags-required".to_owned()),
        facts: Facts([("impact".to_owned(), vec!["breaks-clients".to_owned()])].into()),
        why: Vec::new(),
        by: (ByWhat::Deploy, "dep_771".to_owned()),
        opened_event: EventId(1),
        last_event: EventId(1),
        opened_s: AT_S,
        notified_s: None,
        ended_s: is_over.then_some(AT_S + 600),
        ended_as: None,
        end_told_s: None,
        held_by: None,
        silenced_by: None,
        ack_by: None,
        ack_note: None,
        ack_until_s: None,
        is_surface_down: false,
        is_host_throttled: false,
        incident: None,
        looked_s: None,
    }
}

/// An event of that kind with everything that it can have.
#[must_use]
pub fn happened(kind: EventKind) -> Happened {
    let word = kind.as_str();
    let is_about = |prefix: &str| word.starts_with(prefix);
    let is_finding = is_about("finding.");
    let is_over = kind == EventKind::FindingResolved;
    let names_target = is_finding || is_about("target.") || is_about("document.") || is_about("deploy.");
    let names_surface = is_finding
        || is_about("document.")
        || matches!(kind, EventKind::TargetDown | EventKind::TargetRecovered | EventKind::TargetGone);
    let (a, b) = match kind {
        EventKind::TargetDown => (Some(AT_S - 689), None),
        EventKind::TargetRecovered => (Some(AT_S - 3_600), None),
        EventKind::TargetHeadlineChanged => (Some(2), Some(0)),
        EventKind::RulePrevalenceJumped => (Some(120), Some(4_812)),
        EventKind::RulesetReleased => (Some(812), None),
        EventKind::DiskFilling | EventKind::DiskFull | EventKind::DiskRelieved => (Some(96), None),
        _ => (None, None),
    };
    let note = match kind {
        EventKind::TargetDown => Some("connect_timeout"),
        EventKind::TargetRetired => Some("source"),
        EventKind::RulePrevalenceJumped => Some("all"),
        EventKind::CrawlDegraded => Some("the witnesses did not answer"),
        EventKind::WebhookFailing => Some("10 failures in a row; the last: status 500"),
        EventKind::WebhookDisabled => Some("it answered 410 Gone"),
        EventKind::WebhookMessageDead => Some("msg_01K0PLUMB1NE00000000000000"),
        _ => None,
    };
    Happened {
        event: Event {
            id: EventId(70_211),
            at_s: AT_S,
            kind,
            target: names_target.then_some(TargetId(9012)),
            surface: names_surface.then_some(SurfaceId(15)),
            rule: (is_finding || is_about("rule.")).then(|| "a2a/skill-tags-required".to_owned()),
            subject: Some(48_211),
            a,
            b,
            note: note.map(ToOwned::to_owned),
        },
        target: names_target.then(example_target),
        surface: names_surface.then(example_surface),
        rule: (is_finding || is_about("rule.")).then(example_rule),
        finding: is_finding.then(|| example_finding(is_over)),
        firing: if is_finding && !is_over {
            vec![("a2a/skill-tags-required".to_owned(), Some(Impact::BreaksClients))]
        } else {
            Vec::new()
        },
        places: if is_finding { example_places() } else { Vec::new() },
        documents: if is_finding || is_about("document.") {
            (Some("ab12".repeat(16)), Some("cd34".repeat(16)))
        } else {
            (None, None)
        },
        deploy: (is_finding || is_about("deploy.")).then(example_deploy),
        incident: is_about("incident.").then(|| AboutIncident {
            id: 31,
            cause: "host".to_owned(),
            shared: "agents.example.com".to_owned(),
            members: 14,
            opened_s: AT_S - 120,
            closed_s: (kind == EventKind::IncidentResolved).then_some(AT_S),
        }),
        webhook: is_about("webhook.").then(|| "on-call".to_owned()),
        crawl: is_about("crawl.").then(|| AboutCrawl {
            id: 412,
            kind: "round".to_owned(),
            source: None,
            planned: 5_120,
            done: 5_120,
            faults: 0,
            opened: 4,
            resolved: 2,
            regressed: 1,
        }),
        shown: Facts::default(),
    }
}

fn example_target() -> AboutTarget {
    AboutTarget {
        id: 9012,
        key: "agent.example.com".to_owned(),
        name: "Example agent".to_owned(),
        kind: TargetKind::A2aAgent,
        owner: Some("example".to_owned()),
        host: Some("agent.example.com".to_owned()),
        source: "domains".to_owned(),
        tags: vec!["tier=1".to_owned()],
        cohorts: Vec::new(),
        reach: ReachState::Up,
        headline: Headline::Blocked,
        headline_since_s: Some(AT_S - 73),
    }
}

fn example_surface() -> AboutSurface {
    AboutSurface {
        id: 15,
        kind: SurfaceKind::AgentCard,
        url: "https://agent.example.com/.well-known/agent-card.json".to_owned(),
        host: Some("agent.example.com".to_owned()),
        profile: Some("a2a-0.3".to_owned()),
        known: Some(Known::Declared),
        headline: Headline::Blocked,
        n_error: 1,
        n_warn: 0,
        reach: ReachState::Up,
        reach_reason: None,
        reach_since_s: Some(AT_S - 864_000),
        streak: 4,
    }
}

fn example_rule() -> AboutRule {
    AboutRule {
        slug: "a2a/skill-tags-required".to_owned(),
        family: "a2a".to_owned(),
        title: "Skills have tags.".to_owned(),
        version: 1,
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        is_security: false,
        basis: Basis::Spec,
    }
}

fn example_finding(is_over: bool) -> AboutFinding {
    AboutFinding {
        id: 48_211,
        state: if is_over { FindingState::Resolved } else { FindingState::Open },
        opened_as: Some(OpenedAs::Again),
        cause: Some(Cause::Document),
        resolution: is_over.then_some(Resolution::Fixed),
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        first_seen_s: AT_S - 7_800_000,
        opened_s: Some(AT_S - 73),
        closed_s: is_over.then_some(AT_S),
        previously_resolved_s: Some(AT_S - 4_400_000),
        occurrences: 2,
        revision: 7,
        is_waived: false,
        confidence: Some("likely".to_owned()),
    }
}

fn example_places() -> Vec<Occurrence> {
    ["/skills/3/tags", "/skills/4/tags"]
        .map(|pointer| Occurrence {
            pointer: pointer.to_owned(),
            message: "`tags` is missing".to_owned(),
            severity: Severity::Error,
            impact: Some(Impact::BreaksClients),
            line: None,
            column: None,
        })
        .to_vec()
}

fn example_deploy() -> AboutDeploy {
    AboutDeploy {
        id: 771,
        at_s: AT_S - 400,
        version: Some("1.4.0".to_owned()),
        signals: r#"[{"kind":"card_version","from":"1.3.0","to":"1.4.0"}]"#.to_owned(),
        outcome: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_example_fits_its_schema_and_a_wrong_one_does_not() {
        for one in all() {
            let validator = jsonschema::validator_for(&one.schema).unwrap();
            let errors: Vec<String> = validator.iter_errors(&one.example).map(|error| error.to_string()).collect();
            assert!(errors.is_empty(), "{}: {errors:?}", one.r#type);
            assert!(one.example.to_string().len() <= 20 * 1024, "{} is large", one.r#type);
            let mut wrong = one.example.clone();
            wrong["type"] = json!("other");
            assert!(!validator.is_valid(&wrong), "{}", one.r#type);
        }
    }

    #[test]
    fn every_type_has_its_file() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/event-types.json");
        let mut printed = serde_json::to_string_pretty(&all()).unwrap();
        printed.push('\n');
        if std::env::var_os("PLUMBLINE_BLESS").is_some() {
            std::fs::write(&path, &printed).unwrap();
        }
        let kept = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(kept == printed, "docs/event-types.json: run the tests once with PLUMBLINE_BLESS=1");
    }
}
