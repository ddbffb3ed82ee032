//! What a message says: an event, or a group of alerts, as the JSON of the generic format. Pure.
//!
//! The body is `{"type","timestamp","schema","source","data"}`. Lists are cut at 25 with `truncated` and `more_url`; a type's
//! fields only ever grow. Bytes are made once, here, and every attempt sends the same ones.

use chrono::{DateTime, SecondsFormat};
use plumbline_rules::catalogue;
use plumbline_store::alerting::{Alert, Grade, Group, NewRoute};
use plumbline_store::happened::{AboutFinding, AboutRule, AboutSurface, AboutTarget, Facts, Happened};
use plumbline_store::hooks::SCHEMA_DATE;
use plumbline_store::words::{Cause, EventKind, Evidence, Impact, Known, OpenedAs, Resolution, Severity};
use serde_json::{Map, Value, json};

use crate::clients::{self, Client, Fired};

/// Items of a list that a message holds.
pub const MOST_ITEMS: usize = 25;

/// Bytes of a message, at most.
pub const MOST_BYTES: usize = 256 * 1024;

/// Characters of a title, at most.
pub const TITLE: usize = 150;

/// Characters of one stranger's text, at most.
const TEXT: usize = 500;

/// Where this installation is reached, without a slash at the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source(pub String);

impl Source {
    /// The address of a page.
    #[must_use]
    pub fn url(&self, path: &str) -> String {
        format!("{}{path}", self.0)
    }
}

/// The body of a message.
#[must_use]
pub fn body(kind: &str, at_s: i64, source: &Source, data: &Value) -> Vec<u8> {
    let whole = |data: &Value| {
        let value = json!({
            "type": kind, "timestamp": rfc3339(at_s), "schema": SCHEMA_DATE, "source": source.0, "data": data,
        });
        value.to_string().into_bytes()
    };
    let bytes = whole(data);
    if bytes.len() <= MOST_BYTES {
        return bytes;
    }
    whole(&json!({ "truncated": true, "more_url": source.url("/") }))
}

/// What an event says.
#[must_use]
pub fn event_data(happened: &Happened, source: &Source) -> Value {
    let mut data = Map::new();
    let mut put = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            data.insert(name.to_owned(), value);
        }
    };
    let event = &happened.event;
    put("title", Some(json!(title(happened))));
    put("severity", Some(json!(grade(happened).as_str())));
    put("finding", happened.finding.as_ref().map(|finding| finding_json(finding, happened, source)));
    put("rule", happened.rule.as_ref().map(|rule| rule_json(rule, source)));
    put("target", happened.target.as_ref().map(|target| target_json(target, source)));
    put("surface", happened.surface.as_ref().map(|surface| surface_json(surface, happened)));
    if happened.finding.is_some() {
        let places: Vec<Value> = happened
            .places
            .iter()
            .take(MOST_ITEMS)
            .map(|place| json!({ "pointer": plain(&place.pointer, TEXT), "message": plain(&place.message, TEXT) }))
            .collect();
        put("truncated", Some(json!(happened.places.len().saturating_sub(places.len()))));
        put("occurrences", Some(Value::Array(places)));
        put("cause", cause_json(happened, source));
    }
    put("deploy", deploy_json(happened));
    put("incident", incident_json(happened));
    match event.kind {
        EventKind::TargetDown | EventKind::TargetRecovered => put("reach", reach_json(happened)),
        EventKind::TargetHeadlineChanged => {
            put("headline_before", headline_of(event.a));
            put("headline_after", headline_of(event.b));
        }
        EventKind::DocumentChanged => {
            put("document_before", happened.documents.0.as_ref().map(|hash| json!(format!("sha256:{hash}"))));
            put("document_after", happened.documents.1.as_ref().map(|hash| json!(format!("sha256:{hash}"))));
            put("diff_url", diff_url(happened, source).map(|url| json!(url)));
        }
        EventKind::RulePrevalenceJumped => {
            put("failing_before", event.a.map(|n| json!(n)));
            put("failing_after", event.b.map(|n| json!(n)));
            put("cohort", event.note.as_ref().map(|note| json!(plain(note, TEXT))));
        }
        EventKind::RulesetReleased => put("rules", event.a.map(|n| json!(n))),
        EventKind::CrawlCompleted | EventKind::CrawlDegraded => put("crawl", crawl_json(happened, source)),
        EventKind::WebhookFailing | EventKind::WebhookDisabled | EventKind::WebhookMessageDead => {
            put(
                "webhook",
                happened
                    .webhook
                    .as_ref()
                    .map(|slug| json!({ "slug": slug, "url": source.url(&format!("/webhooks/{slug}")) })),
            );
            put("note", event.note.as_ref().map(|note| json!(plain(note, TEXT))));
        }
        EventKind::DiskFilling | EventKind::DiskFull | EventKind::DiskRelieved => {
            put("used_percent", event.a.map(|n| json!(n)));
        }
        EventKind::TargetRetired | EventKind::TargetGone => {
            put("reason", event.note.as_ref().map(|note| json!(plain(note, TEXT))));
        }
        _ => {}
    }
    Value::Object(data)
}

/// What a group says: its state, the gravest of what is new, and the gravest of what still holds.
#[must_use]
pub fn group_data(route: &NewRoute, group: &Group, members: &[&Alert], after: &[String], source: &Source) -> Value {
    let items: Vec<Value> = members.iter().take(MOST_ITEMS).map(|alert| item_json(alert, source)).collect();
    let total = usize::try_from(group.firing + group.resolved).unwrap_or(0).max(members.len());
    let url = source.url(&format!("/alerts/groups/{}", group.id));
    let mut data = json!({
        "group": {
            "id": format!("grp_{}", group.id), "by": group.by.as_str(), "key": group.key, "route": route.slug,
            "revision": group.revision, "severity": group.severity.as_str(), "firing": group.firing,
            "resolved": group.resolved, "opened_at": rfc3339(group.opened_s), "repeat_s": route.repeat_s, "url": url,
        },
        "summary": group.summary,
        "items": items,
        "truncated": total.saturating_sub(items.len()),
    });
    if total > items.len() {
        data["more_url"] = json!(url);
    }
    if !after.is_empty() {
        data["after_silences"] = json!(after);
    }
    data
}

fn item_json(alert: &Alert, source: &Source) -> Value {
    let impact = alert.facts.0.get("impact").and_then(|values| values.first());
    let url = match alert.target {
        Some(target) => source.url(&format!("/targets/{target}")),
        None => source.url("/alerts"),
    };
    json!({
        "alert": alert.key, "state": if alert.ended_s.is_some() { "resolved" } else { "firing" },
        "title": plain(&alert.title, TITLE), "target": alert.target_key.as_deref().map(|key| plain(key, TEXT)),
        "rule": alert.rule, "severity": alert.severity.as_str(), "impact": impact,
        "since": rfc3339(alert.opened_s), "url": url,
    })
}

/// One line: what, where, and why.
#[must_use]
pub fn title(happened: &Happened) -> String {
    let event = &happened.event;
    let on = happened.target.as_ref().map_or_else(|| "all targets".to_owned(), |target| plain(&target.key, 100));
    let what = happened.rule.as_ref().map_or_else(
        || event.rule.clone().unwrap_or_else(|| "a rule".to_owned()),
        |rule| format!("{} ({})", rule.title.trim_end_matches('.'), rule.slug),
    );
    let why = match (&happened.deploy, happened.finding.as_ref().and_then(|finding| finding.cause)) {
        (Some(deploy), _) => deploy
            .version
            .as_ref()
            .map_or_else(|| " after a deploy".to_owned(), |version| format!(" after {}", plain(version, 40))),
        (None, Some(Cause::Clock)) => " because time went by".to_owned(),
        (None, Some(Cause::Rule | Cause::Joint)) => " because a rule changed".to_owned(),
        _ => String::new(),
    };
    let reason = happened.surface.as_ref().and_then(|surface| surface.reach_reason.as_deref());
    let about = event.note.as_deref().or(reason);
    let line = match event.kind {
        EventKind::FindingOpened => format!("{on}: {what}{why}"),
        EventKind::FindingRegressed => format!("{on} regressed: {what}{why}"),
        EventKind::FindingResolved => format!("{on}: no longer fires: {what}"),
        EventKind::FindingFlappingStarted => format!("{on}: comes and goes: {what}"),
        EventKind::FindingFlappingStopped if event.note.as_deref() == Some("open") => {
            format!("{on}: no longer comes and goes, and stays: {what}")
        }
        EventKind::FindingFlappingStopped => format!("{on}: has calmed down: {what}"),
        EventKind::TargetDown => {
            format!("{on} is down{}", about.map_or_else(String::new, |reason| format!(" ({reason})")))
        }
        EventKind::TargetRecovered => format!("{on} answers again"),
        EventKind::TargetAdded => format!("{on} is new"),
        EventKind::TargetHeadlineChanged => format!("{on} has another headline"),
        EventKind::TargetGone => format!("{on} is gone"),
        EventKind::TargetRetired => format!("{on} is no longer watched"),
        EventKind::TargetReturned => format!("{on} is back"),
        EventKind::DocumentChanged => format!("{on} serves another document"),
        EventKind::IncidentOpened | EventKind::IncidentUpdated | EventKind::IncidentResolved => {
            let shared = happened.incident.as_ref().map_or("something", |incident| incident.shared.as_str());
            let members = happened.incident.as_ref().map_or(0, |incident| incident.members);
            let word = if event.kind == EventKind::IncidentResolved { "answer again" } else { "fail together" };
            format!("{members} surfaces {word}: {}", plain(shared, 80))
        }
        EventKind::RulePrevalenceJumped => format!("{what}: more targets fail it than before"),
        EventKind::RulesetReleased => "Judging goes on with other rules".to_owned(),
        EventKind::CrawlCompleted => "A crawl saw all it was to see".to_owned(),
        EventKind::CrawlDegraded => {
            let note = event.note.as_ref().map_or_else(String::new, |note| format!(": {}", plain(note, 100)));
            format!("A crawl did not see what it should have{note}")
        }
        EventKind::WebhookFailing | EventKind::WebhookDisabled | EventKind::WebhookMessageDead => {
            let slug = happened.webhook.as_deref().unwrap_or("?");
            let word = match event.kind {
                EventKind::WebhookFailing => "fails",
                EventKind::WebhookDisabled => "was switched off",
                _ => "has a message that is out of attempts",
            };
            format!("The webhook {slug} {word}")
        }
        EventKind::DiskFilling => "The disk of the database fills up".to_owned(),
        EventKind::DiskFull => "The disk of the database is full: documents are no longer kept".to_owned(),
        EventKind::DiskRelieved => "The disk of the database has room again".to_owned(),
        EventKind::DeployRecorded => format!("{on} was deployed"),
        EventKind::DeployEvaluated => format!("The deploy of {on} is judged"),
        EventKind::AlertGroupOpened | EventKind::AlertGroupUpdated | EventKind::AlertGroupResolved => {
            event.note.as_ref().map_or_else(|| event.kind.to_string(), |note| plain(note, TITLE))
        }
        EventKind::Ping => "A test message".to_owned(),
    };
    cut(&line, TITLE)
}

/// How grave an event is, as a pager means it.
#[must_use]
pub fn grade(happened: &Happened) -> Grade {
    let tags = happened.target.iter().flat_map(|target| &target.tags);
    let is_first_tier = tags.chain(happened.shown.0.get("tag").into_iter().flatten()).any(|tag| tag == "tier=1");
    match happened.event.kind {
        // Whoever is struck later is struck as hard as the first.
        EventKind::TargetDown | EventKind::IncidentOpened | EventKind::IncidentUpdated if is_first_tier => {
            Grade::Critical
        }
        EventKind::TargetDown
        | EventKind::IncidentOpened
        | EventKind::IncidentUpdated
        | EventKind::DiskFull
        | EventKind::WebhookDisabled => Grade::Error,
        EventKind::FindingRegressed | EventKind::FindingOpened | EventKind::FindingFlappingStarted => {
            finding_grade(happened)
        }
        // It no longer comes and goes: it stays.
        EventKind::FindingFlappingStopped if happened.event.note.as_deref() == Some("open") => finding_grade(happened),
        EventKind::RulePrevalenceJumped
        | EventKind::CrawlDegraded
        | EventKind::DiskFilling
        | EventKind::WebhookFailing
        | EventKind::WebhookMessageDead
        | EventKind::TargetGone => Grade::Warning,
        _ => Grade::Info,
    }
}

fn finding_grade(happened: &Happened) -> Grade {
    let is_regression = happened.event.kind == EventKind::FindingRegressed;
    let severity = happened.finding.as_ref().map(|finding| finding.severity);
    let breaks = happened.finding.as_ref().and_then(|finding| finding.impact) == Some(Impact::BreaksClients);
    let is_security = happened.rule.as_ref().is_some_and(|rule| rule.is_security);
    match severity {
        Some(Severity::Error) if is_regression && (breaks || is_security) => Grade::Error,
        Some(Severity::Error | Severity::Warning) => Grade::Warning,
        Some(Severity::Info) | None => Grade::Info,
    }
}

/// What matchers read of an event: of all that show the surface, of all that an incident has struck.
#[must_use]
pub fn facts(happened: &Happened) -> Facts {
    let mut facts = Facts::default();
    let mut put = |word: &str, value: &str| facts.0.entry(word.to_owned()).or_default().push(value.to_owned());
    put("type", happened.event.kind.as_str());
    let severity = happened.finding.as_ref().map(|finding| finding.severity.as_str());
    put("severity", severity.unwrap_or(grade(happened).as_str()));
    if let Some(target) = &happened.target {
        put("target", &target.key);
        put("name", &target.name);
        put("kind", target.kind.as_str());
        put("source", &target.source);
        put("reach", target.reach.as_str());
        put("headline", target.headline.as_str());
        target.owner.iter().for_each(|owner| put("owner", owner));
        target.host.iter().for_each(|host| put("host", host));
        target.tags.iter().for_each(|tag| put("tag", tag));
        put("cohort", "all");
        put("cohort", target.kind.as_str());
        target.cohorts.iter().for_each(|cohort| put("cohort", cohort));
    }
    if let Some(surface) = &happened.surface {
        put("surface", surface.kind.as_str());
        surface.profile.iter().for_each(|profile| put("profile", profile));
        surface.known.iter().for_each(|known| put("known", known.as_str()));
    }
    if let Some(rule) = &happened.rule {
        put("rule", &rule.slug);
        put("family", &rule.family);
        if rule.is_security {
            put("security", "yes");
        }
    }
    if let Some(finding) = &happened.finding {
        put("waived", if finding.is_waived { "yes" } else { "no" });
        finding.impact.iter().for_each(|impact| put("impact", impact.as_str()));
        finding.cause.iter().for_each(|cause| put("cause", cause.as_str()));
        finding.opened_as.iter().for_each(|opened| put("opened_as", opened.as_str()));
    }
    for (word, values) in &happened.shown.0 {
        let known = facts.0.entry(word.clone()).or_default();
        let new: Vec<String> = values.iter().filter(|value| !known.contains(*value)).cloned().collect();
        known.extend(new);
    }
    if is_notable(happened) {
        facts.0.insert("notable".to_owned(), vec!["yes".to_owned()]);
    }
    facts
}

/// What a route without a matcher takes: what breaks clients, what is tagged security, drift, and whatever is no finding.
fn is_notable(happened: &Happened) -> bool {
    let Some(finding) = &happened.finding else { return true };
    let is_security = happened.rule.as_ref().is_some_and(|rule| rule.is_security);
    let is_drift = happened
        .rule
        .as_ref()
        .and_then(|rule| catalogue::find(&rule.slug))
        .is_some_and(|rule| rule.evidence == Evidence::History);
    finding.impact == Some(Impact::BreaksClients) || is_security || is_drift
}

/// Whether an opening is only what a first look found.
#[must_use]
pub fn is_baseline(happened: &Happened) -> bool {
    let opened_as = happened.finding.as_ref().and_then(|finding| finding.opened_as);
    happened.event.kind == EventKind::FindingOpened
        && (happened.event.a == Some(1) || opened_as == Some(OpenedAs::Baseline))
}

fn finding_json(finding: &AboutFinding, happened: &Happened, source: &Source) -> Value {
    let url = source.url(&format!("/findings/{}", finding.id));
    json!({
        "id": format!("fnd_{}", finding.id), "state": finding.state.as_str(),
        "opened_as": finding.opened_as.map(OpenedAs::as_str), "baseline": is_baseline(happened),
        "resolution": finding.resolution.map(Resolution::as_str),
        "severity": finding.severity.as_str(), "impact": finding.impact.map(Impact::as_str),
        "revision": finding.revision, "first_seen": rfc3339(finding.first_seen_s),
        "opened_at": finding.opened_s.map(rfc3339), "closed_at": finding.closed_s.map(rfc3339),
        "previously_resolved_at": finding.previously_resolved_s.map(rfc3339),
        "occurrences": finding.occurrences, "waived": finding.is_waived, "url": url,
    })
}

fn rule_json(rule: &AboutRule, source: &Source) -> Value {
    let known = catalogue::find(&rule.slug);
    let tags: Vec<&str> = if rule.is_security { vec!["security"] } else { Vec::new() };
    json!({
        "id": rule.slug, "title": rule.title, "version": rule.version, "severity": rule.severity.as_str(),
        "impact": rule.impact.map(Impact::as_str), "tags": tags, "basis": rule.basis.as_str(),
        "spec": known.map(|rule| rule.spec), "fix": known.map(|rule| rule.fix),
        "url": source.url(&format!("/rules/{}", rule.slug)),
    })
}

fn target_json(target: &AboutTarget, source: &Source) -> Value {
    json!({
        "id": format!("tgt_{}", target.id), "key": plain(&target.key, TEXT), "name": plain(&target.name, TEXT),
        "kind": target.kind.as_str(), "owner": target.owner.as_deref().map(|owner| plain(owner, TEXT)),
        "tags": target.tags, "reach": target.reach.as_str(), "headline": target.headline.as_str(),
        "headline_as_of": target.headline_since_s.map(rfc3339),
        "url": source.url(&format!("/targets/{}", target.id)),
    })
}

fn surface_json(surface: &AboutSurface, happened: &Happened) -> Value {
    let word = match (surface.n_error, surface.n_warn) {
        (0, 0) => "conformant",
        (0, _) => "warnings",
        _ => "deviates",
    };
    let is_judged = surface.profile.is_some();
    // Of events about findings it is known what fires, and so what clients do.
    let clients = surface.profile.as_deref().filter(|_| happened.finding.is_some()).and_then(|profile| {
        let firing: Vec<Fired<'_>> =
            happened.firing.iter().map(|(rule, impact)| Fired { rule, impact: *impact }).collect();
        clients::answer(profile, &firing)
    });
    let mut json = json!({
        "id": format!("srf_{}", surface.id), "kind": surface.kind.as_str(), "url": plain(&surface.url, TEXT),
        "detected": { "profile": surface.profile, "known": surface.known.map(Known::as_str) },
        "specification": {
            "state": if is_judged { word } else { "not_evaluated" },
            "errors": surface.n_error, "warnings": surface.n_warn,
        },
    });
    if let Some(answer) = clients {
        let names = |list: &[Client]| list.iter().map(|client| client.name.clone()).collect::<Vec<String>>();
        json["clients"] = json!({
            "works_in": names(&answer.works_in), "limited_in": names(&answer.limited_in),
            "refused_by": names(&answer.refused_by), "unaware": names(&answer.unaware),
            "untested": answer.is_untested,
        });
    }
    json
}

fn cause_json(happened: &Happened, source: &Source) -> Option<Value> {
    let finding = happened.finding.as_ref()?;
    let hash = |hash: &Option<String>| hash.as_ref().map(|hash| format!("sha256:{hash}"));
    Some(json!({
        "kind": finding.cause.map(Cause::as_str), "confidence": finding.confidence,
        "document_before": hash(&happened.documents.0), "document_after": hash(&happened.documents.1),
        "diff_url": diff_url(happened, source),
    }))
}

/// Where both documents stand beside each other.
fn diff_url(happened: &Happened, source: &Source) -> Option<String> {
    let short = |hash: &Option<String>| hash.as_deref().map(|hash| hash.chars().take(16).collect::<String>());
    let (target, from, to) = (happened.target.as_ref()?, short(&happened.documents.0)?, short(&happened.documents.1)?);
    Some(source.url(&format!("/targets/{}/diff?from={from}&to={to}", target.id)))
}

fn deploy_json(happened: &Happened) -> Option<Value> {
    let deploy = happened.deploy.as_ref()?;
    let signals: Value = serde_json::from_str(&deploy.signals).unwrap_or(Value::Null);
    Some(json!({
        "id": format!("dep_{}", deploy.id), "at": rfc3339(deploy.at_s),
        "version": deploy.version.as_deref().map(|version| plain(version, TEXT)), "signals": signals,
        "confidence": happened.finding.as_ref().and_then(|finding| finding.confidence.clone()),
        "outcome": deploy.outcome,
    }))
}

fn incident_json(happened: &Happened) -> Option<Value> {
    let incident = happened.incident.as_ref()?;
    Some(json!({
        "id": format!("inc_{}", incident.id), "cause": incident.cause, "shared": plain(&incident.shared, TEXT),
        "members": incident.members, "opened_at": rfc3339(incident.opened_s),
        "closed_at": incident.closed_s.map(rfc3339),
    }))
}

fn reach_json(happened: &Happened) -> Option<Value> {
    let surface = happened.surface.as_ref()?;
    let is_down = happened.event.kind == EventKind::TargetDown;
    let since = happened.event.a.map(rfc3339);
    Some(if is_down {
        json!({ "state": "down", "reason": happened.event.note, "since": since, "failed_probes": surface.streak })
    } else {
        let downtime = happened.event.a.map(|since| happened.event.at_s - since);
        json!({ "state": "up", "reason": null, "down_since": since, "downtime_s": downtime })
    })
}

fn crawl_json(happened: &Happened, source: &Source) -> Option<Value> {
    let crawl = happened.crawl.as_ref()?;
    Some(json!({
        "id": format!("crl_{}", crawl.id), "kind": crawl.kind, "planned": crawl.planned, "done": crawl.done,
        "faults": crawl.faults, "opened": crawl.opened, "resolved": crawl.resolved, "regressed": crawl.regressed,
        "note": happened.event.note.as_deref().map(|note| plain(note, TEXT)),
        "url": source.url(&format!("/crawls/{}", crawl.id)),
    }))
}

fn headline_of(rank: Option<i64>) -> Option<Value> {
    let words = ["blocked", "deviates", "sound", "not_detected", "not_evaluated"];
    let rank = usize::try_from(rank?).ok()?;
    words.get(rank).map(|word| json!(word))
}

/// A moment as messages write it.
#[must_use]
pub fn rfc3339(at_s: i64) -> String {
    DateTime::from_timestamp(at_s, 0)
        .map_or_else(|| "1970-01-01T00:00:00Z".to_owned(), |at| at.to_rfc3339_opts(SecondsFormat::Secs, true))
}

/// A stranger's text without what a terminal, a chat or a log would obey.
#[must_use]
pub fn plain(text: &str, most: usize) -> String {
    let is_hidden =
        |c: char| matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}');
    let kept: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).filter(|c| !is_hidden(*c)).collect();
    cut(&kept, most)
}

/// At most so many characters, with an ellipsis for what was cut.
#[must_use]
pub fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}
