//! From events to alerts, from alerts to messages: event → route match → alert key → inhibit → maintenance → silence → group →
//! notify → outbox, each step a pure function that also says in a sentence what it decided.
//!
//! The first half ([`take`]) runs once for each event. The second ([`hold`], [`gather`], [`compose`]) looks at what was not
//! told yet whenever something may have changed, so that an alert that was held is told when what held it is over.
//!
//! A storm: when more than [`STORM`] alerts open within a route's interval for one receiver, it is sent at most
//! [`MOST_IN_STORM`] messages in that time, of whatever routes and whether groups are new or known: the gravest by themselves and
//! the rest in one. Ends of groups are not counted: each is owed to whoever heard of the beginning.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use plumbline_store::alerting::{
    Alert, AlertChange, AlertState, ByWhat, EndedAs, Grade, Group, Kept, Maintenance, NewAlert, Route, Silence, Waiver,
};
use plumbline_store::happened::{Facts, Happened};
use plumbline_store::words::{Cause, EventKind, OpenedAs, Resolution};
use plumbline_store::{AlertId, EndpointId, GroupId};

use crate::matcher::Matcher;
use crate::payload::{self, cut};
use crate::quiet::covers;
use crate::zones::{self, QuietHours};

/// Alerts for one receiver within a route's interval beyond which it is a storm.
pub const STORM: i64 = 20;

/// Messages that a receiver is sent within an interval while it is one.
pub const MOST_IN_STORM: i64 = 3;

/// Targets that fail a rule from which on they are told by the rule and not each by itself.
pub const BY_RULE: i64 = 20;

/// The key of the group for all that has no room of its own.
const STORM_KEY: &str = "storm";

/// A route with its matcher read.
#[derive(Debug, Clone)]
pub struct ReadRoute {
    /// The route.
    pub route: Route,
    /// Which alerts.
    pub matcher: Matcher,
    /// Hours in which it says nothing.
    pub quiet: Option<QuietHours>,
}

/// What an event does to the alert with its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// It begins, or is told of again.
    Begins,
    /// It ends.
    Ends(EndedAs),
    /// It ends if there is one, else it begins: something that comes and goes.
    Flaps,
    /// Every alert about the target ends.
    EndsTarget,
    /// What the target still does is told again to whoever took it on before.
    Reminds,
}

/// What alerts are about.
enum Topic {
    Finding,
    Reach,
    Target,
    Deploy,
    Incident,
    Rule,
    Crawl,
    Webhook,
    Disk,
}

/// What an event of that kind is about; `None`: alerts do not hear of it.
fn topic(kind: EventKind) -> Option<Topic> {
    Some(match kind {
        EventKind::FindingOpened
        | EventKind::FindingRegressed
        | EventKind::FindingResolved
        | EventKind::FindingFlappingStarted
        | EventKind::FindingFlappingStopped => Topic::Finding,
        EventKind::TargetDown | EventKind::TargetRecovered => Topic::Reach,
        EventKind::TargetRetired => Topic::Target,
        EventKind::DeployEvaluated => Topic::Deploy,
        EventKind::IncidentOpened | EventKind::IncidentUpdated | EventKind::IncidentResolved => Topic::Incident,
        EventKind::RulePrevalenceJumped => Topic::Rule,
        EventKind::CrawlDegraded | EventKind::CrawlCompleted => Topic::Crawl,
        EventKind::WebhookFailing | EventKind::WebhookDisabled => Topic::Webhook,
        EventKind::DiskFilling | EventKind::DiskFull | EventKind::DiskRelieved => Topic::Disk,
        EventKind::TargetAdded
        | EventKind::TargetHeadlineChanged
        | EventKind::TargetGone
        | EventKind::TargetReturned
        | EventKind::DocumentChanged
        | EventKind::DeployRecorded
        | EventKind::RulesetReleased
        | EventKind::AlertGroupOpened
        | EventKind::AlertGroupUpdated
        | EventKind::AlertGroupResolved
        | EventKind::WebhookMessageDead
        | EventKind::Ping => return None,
    })
}

/// Whether alerts hear of events of that kind.
#[must_use]
pub fn is_heard(kind: EventKind) -> bool {
    topic(kind).is_some()
}

/// The key of the alert that an event is about, and what it does to it; `None`: alerts do not hear of it.
#[must_use]
pub fn effect(happened: &Happened) -> Option<(String, Effect)> {
    let event = &happened.event;
    let subject = event.subject.unwrap_or_default();
    let surface = event.surface.map_or(subject, |surface| surface.0);
    let ended = match happened.finding.as_ref().and_then(|finding| finding.resolution) {
        Some(Resolution::TargetRetired | Resolution::RuleChanged | Resolution::DocumentGone) => EndedAs::Retired,
        Some(Resolution::Fixed) | None => EndedAs::Resolved,
    };
    let key = match topic(event.kind)? {
        Topic::Finding => format!("finding:{subject}"),
        Topic::Reach => format!("reach:{surface}"),
        Topic::Target | Topic::Deploy => String::new(),
        Topic::Incident => format!("incident:{subject}"),
        Topic::Rule => {
            let (rule, cohort) = (event.rule.as_deref().unwrap_or("?"), event.note.as_deref().unwrap_or("all"));
            format!("rule:{rule}:{cohort}")
        }
        Topic::Crawl => crawl_key(happened),
        Topic::Webhook => format!("webhook:{subject}"),
        Topic::Disk => "disk:room".to_owned(),
    };
    let effect = match event.kind {
        EventKind::FindingResolved => Effect::Ends(ended),
        EventKind::FindingFlappingStarted => Effect::Flaps,
        EventKind::FindingFlappingStopped if event.note.as_deref() != Some("open") => Effect::Ends(EndedAs::Resolved),
        EventKind::TargetRecovered
        | EventKind::IncidentResolved
        | EventKind::CrawlCompleted
        | EventKind::DiskRelieved => Effect::Ends(EndedAs::Resolved),
        EventKind::TargetRetired => Effect::EndsTarget,
        EventKind::DeployEvaluated => Effect::Reminds,
        _ => Effect::Begins,
    };
    Some((key, effect))
}

/// The key of the alert about the crawl whose witnesses did not answer: only that one blames nobody.
pub const WITNESS: &str = "crawl:witness";

/// Which trouble of crawling an event is about. Each ends by itself: a walk by the next one of its source that is complete, a
/// round by the next without a fault of ours; what hosts ask for and lists that lost too much are over when the database says so.
fn crawl_key(happened: &Happened) -> String {
    let crawl = happened.crawl.as_ref();
    if let Some(surface) = &happened.surface {
        let host = surface.host.as_deref().or(happened.target.as_ref().and_then(|target| target.host.as_deref()));
        return format!("crawl:throttled:{}", host.unwrap_or("?"));
    }
    match crawl.and_then(|crawl| crawl.source.as_deref()) {
        Some(source) if happened.event.a.is_some() => format!("crawl:loss:{source}"),
        Some(source) => format!("crawl:walk:{source}"),
        None => WITNESS.to_owned(),
    }
}

/// What an event does on every route. `open` are the open alerts with its key, or those of its target where
/// all of them end or are told again.
#[must_use]
pub fn take(happened: &Happened, facts: &Facts, routes: &[ReadRoute], open: &[Alert]) -> Vec<AlertChange> {
    let Some((key, effect)) = effect(happened) else { return Vec::new() };
    let ends = |how| open.iter().map(|alert| end(happened, alert, how)).collect();
    match effect {
        Effect::Ends(how) => ends(how),
        Effect::EndsTarget => ends(EndedAs::Retired),
        Effect::Reminds => open.iter().map(|alert| remind(happened, alert)).collect(),
        Effect::Flaps if !open.is_empty() => ends(EndedAs::Flapping),
        Effect::Begins | Effect::Flaps => routes
            .iter()
            .filter_map(|route| match open.iter().find(|alert| alert.route == route.route.id) {
                Some(alert) => touch(happened, alert),
                None => begin(happened, facts, route, &key),
            })
            .collect(),
    }
}

fn end(happened: &Happened, alert: &Alert, how: EndedAs) -> AlertChange {
    AlertChange::End { alert: alert.id, event: happened.event.id, how, at_s: happened.event.at_s }
}

/// An open alert hears of its subject again; what is graver than before is told again, also where somebody took it on.
fn touch(happened: &Happened, alert: &Alert) -> Option<AlertChange> {
    let now = payload::grade(happened);
    // Grades are in the order of their words, the gravest first.
    let severity = now.min(alert.severity);
    Some(AlertChange::Touch {
        alert: alert.id,
        event: happened.event.id,
        severity,
        tells_again: severity < alert.severity,
    })
}

/// A new deploy has not mended what somebody took on.
fn remind(happened: &Happened, alert: &Alert) -> AlertChange {
    let (event, severity) = (happened.event.id, alert.severity);
    AlertChange::Touch { alert: alert.id, event, severity, tells_again: true }
}

fn begin(happened: &Happened, facts: &Facts, route: &ReadRoute, key: &str) -> Option<AlertChange> {
    if refusal(happened, facts, route).is_some() {
        return None;
    }
    let title = payload::title(happened);
    Some(AlertChange::Begin(Box::new(NewAlert {
        route: route.route.id,
        key: key.to_owned(),
        severity: payload::grade(happened),
        target: happened.target.as_ref().map(|target| target.id),
        surface: happened.surface.as_ref().map(|surface| surface.id),
        rule: happened.rule.as_ref().map(|rule| rule.slug.clone()),
        facts: facts.clone(),
        why: vec![matched(route)],
        by: shared(happened, key),
        event: happened.event.id,
        at_s: happened.event.at_s,
        title,
    })))
}

fn matched(route: &ReadRoute) -> String {
    match route.route.is.matcher.as_str() {
        "" => format!("Route {}: takes everything of at least {}.", route.route.is.slug, route.route.is.min_severity),
        matcher => format!("Route {}: matched {matcher}.", route.route.is.slug),
    }
}

/// Why a route does not take an event, in words; `None`: it does.
#[must_use]
pub fn refusal(happened: &Happened, facts: &Facts, route: &ReadRoute) -> Option<String> {
    let is = &route.route.is;
    let finding = happened.finding.as_ref();
    let is_rule_change = finding.is_some_and(|finding| {
        finding.opened_as == Some(OpenedAs::Rule) || matches!(finding.cause, Some(Cause::Rule | Cause::Joint))
    });
    let grade = payload::grade(happened);
    if payload::is_baseline(happened) && !is.include_baseline {
        return Some("a first look is a baseline".to_owned());
    }
    if is_rule_change && !is.include_rule_changes {
        return Some("a rule changed, not the target".to_owned());
    }
    if grade > is.min_severity {
        return Some(format!("{grade} is less than {}", is.min_severity));
    }
    route.matcher.refused_by(facts).map(|term| format!("{term} does not hold"))
}

/// What an alert shares with others: the first that applies.
fn shared(happened: &Happened, key: &str) -> (ByWhat, String) {
    let finding = happened.finding.as_ref();
    let is_rule_change = finding.is_some_and(|finding| finding.opened_as == Some(OpenedAs::Rule));
    if let Some(incident) = &happened.incident {
        return (ByWhat::Incident, format!("inc_{}", incident.id));
    }
    if let Some(deploy) = &happened.deploy {
        return (ByWhat::Deploy, format!("dep_{}", deploy.id));
    }
    if is_rule_change {
        return (ByWhat::Ruleset, "rules".to_owned());
    }
    match &happened.target {
        Some(target) => (ByWhat::Target, format!("tgt_{}", target.id)),
        None => (ByWhat::Target, key.to_owned()),
    }
}

/// What keeps quiet, with matchers read.
#[derive(Debug, Clone, Default)]
pub struct Quiet {
    /// Silences, those that ended lately too.
    pub silences: Vec<(Silence, Matcher)>,
    /// Maintenance windows.
    pub maintenances: Vec<(Maintenance, Matcher)>,
    /// Waivers in force.
    pub waivers: Vec<(Waiver, Matcher)>,
    /// Routes on which it is known that crawling does not work.
    pub degraded: BTreeSet<i64>,
    /// Routes and incidents that are told there.
    pub incidents: BTreeSet<(i64, i64)>,
}

/// What keeps one alert from being told, in the order of the pipeline; `None`: nothing.
#[must_use]
pub fn hold(alert: &Alert, route: &ReadRoute, quiet: &Quiet, now_s: i64) -> Option<Kept> {
    let kept = |state, held_by: String, said: String| Kept {
        alert: alert.id,
        state,
        held_by: Some(held_by),
        why: said_so_far(alert).into_iter().chain([said]).collect(),
    };
    if alert.state == AlertState::Acknowledged {
        let by = alert.ack_by.as_deref().unwrap_or("somebody");
        let said = format!("Taken on by {by}: {}", cut(alert.ack_note.as_deref().unwrap_or_default(), 200));
        return Some(kept(AlertState::Acknowledged, "acknowledged".to_owned(), said));
    }
    if let Some((by, said)) = inhibitor(alert, quiet) {
        return Some(kept(AlertState::Inhibited, by, said));
    }
    if let Some((window, said)) = quiet.maintenances.iter().find_map(|(window, matcher)| {
        matcher.matches(&alert.facts).then(|| in_maintenance(alert, window, now_s)).flatten().map(|said| (window, said))
    }) {
        return Some(kept(AlertState::Held, format!("maintenance:{}", window.id), said));
    }
    if let Some((silence, _)) =
        quiet.silences.iter().find(|(silence, matcher)| silence.holds(now_s) && matcher.matches(&alert.facts))
    {
        let said = format!("Silence {} of {}: {}", silence.id, silence.author, cut(&silence.reason, 200));
        return Some(kept(AlertState::Silenced, format!("silence:{}", silence.id), said));
    }
    if route.quiet.as_ref().is_some_and(|hours| hours.hold(now_s)) && alert.severity > Grade::Critical {
        return Some(kept(AlertState::Held, "quiet".to_owned(), "Quiet hours of the route.".to_owned()));
    }
    None
}

/// The sentence of the route; the others are said anew each time.
fn said_so_far(alert: &Alert) -> Vec<String> {
    alert.why.iter().take(1).cloned().collect()
}

fn inhibitor(alert: &Alert, quiet: &Quiet) -> Option<(String, String)> {
    let is_finding = alert.key.starts_with("finding:");
    let is_reach = alert.key.starts_with("reach:");
    if is_reach && quiet.degraded.contains(&alert.route.0) {
        return Some((WITNESS.to_owned(), "Inhibited: crawling itself does not work, nobody is blamed.".to_owned()));
    }
    // A route that does not hear of the incident hears of its members.
    let is_told = |incident: &i64| quiet.incidents.contains(&(alert.route.0, *incident));
    if let Some(incident) = alert.incident.filter(is_told).filter(|_| is_finding || is_reach) {
        return Some((format!("incident:{incident}"), format!("Inhibited by incident {incident}, which lists it.")));
    }
    if is_reach && alert.is_host_throttled {
        let said = "Inhibited: its host asks us to come back later, so that it is silent to us proves nothing.";
        return Some(("throttled".to_owned(), said.to_owned()));
    }
    if let Some(waiver) = waiver_of(alert, quiet).filter(|_| is_finding) {
        let said = format!("Accepted by waiver {} of {}: {}", waiver.id, waiver.author, cut(&waiver.reason, 200));
        return Some((format!("waiver:{}", waiver.id), said));
    }
    let surface = alert.surface.filter(|_| is_finding && alert.is_surface_down)?;
    Some((format!("reach:{surface}"), "Inhibited: its surface is down.".to_owned()))
}

/// The waiver that covers a finding.
fn waiver_of<'q>(alert: &Alert, quiet: &'q Quiet) -> Option<&'q Waiver> {
    let rule = alert.rule.as_deref()?;
    let covers = |(waiver, matcher): &&(Waiver, Matcher)| covers(&waiver.rule, rule) && matcher.matches(&alert.facts);
    quiet.waivers.iter().find(covers).map(|(waiver, _)| waiver)
}

/// Why a window keeps an alert: it holds, or it held when the alert opened and nobody has looked since.
fn in_maintenance(alert: &Alert, window: &Maintenance, now_s: i64) -> Option<String> {
    if window.ended_s.is_some() {
        return None;
    }
    let (began, end) = zones::last_window(window, now_s)?;
    if now_s < end {
        return Some(format!("Maintenance {}: {}.", window.id, cut(&window.title, 150)));
    }
    let is_of_then = alert.opened_s >= began && alert.opened_s < end;
    let is_unseen = alert.surface.is_some() && alert.looked_s.is_none_or(|looked| looked <= end);
    (is_of_then && is_unseen).then(|| format!("Maintenance {} is over; it waits for a look after its end.", window.id))
}

/// Silences that end early because nothing matched for as long as they say.
#[must_use]
pub fn calm_silences(silences: &[(Silence, Matcher)], now_s: i64) -> Vec<i64> {
    let is_calm = |silence: &Silence| {
        let last = silence.matched_s.unwrap_or(silence.starts_s).max(silence.starts_s);
        silence.holds(now_s) && silence.calm_s.is_some_and(|calm_s| now_s - last >= calm_s)
    };
    silences.iter().filter(|(silence, _)| is_calm(silence)).map(|(silence, _)| silence.id).collect()
}

/// What is known of a route's last minutes.
#[derive(Debug, Clone, Default)]
pub struct Bustle {
    /// Alerts that opened within its interval, those that wait included, on it and on all that lead to the same receivers.
    pub opened: i64,
    /// Messages that its busiest receiver may still be sent within its interval, if this is a storm.
    pub room: i64,
    /// Targets with an open alert, by rule.
    pub by_rule: HashMap<String, i64>,
    /// Open groups of the route.
    pub groups: HashMap<(ByWhat, String), Group>,
}

/// Alerts that are told together now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    /// What they share.
    pub by: ByWhat,
    /// Which one of those.
    pub key: String,
    /// The alerts, the gravest first.
    pub alerts: Vec<Alert>,
}

/// Sorts what may be told into groups, and says of the rest what it waits for.
#[must_use]
pub fn gather(route: &Route, waiting: Vec<Alert>, bustle: &Bustle, now_s: i64) -> (Vec<Batch>, Vec<Kept>) {
    // What a storm left over is still one, after the storm as well.
    let is_storm = is_storm(bustle, waiting.len());
    let mut batches: BTreeMap<(ByWhat, String), Vec<Alert>> = BTreeMap::new();
    for alert in waiting {
        batches.entry(key_of(&alert, bustle)).or_default().push(alert);
    }
    let mut batches: Vec<Batch> =
        batches.into_iter().map(|((by, key), alerts)| Batch { by, key, alerts: sorted(alerts) }).collect();
    batches.sort_by_key(|batch| (batch.alerts[0].severity, std::cmp::Reverse(batch.alerts.len()), batch.alerts[0].id));
    let (mut ready, mut kept) = (Vec::new(), Vec::new());
    for batch in batches {
        match waits_until(route, &batch, bustle, now_s) {
            None => ready.push(batch),
            Some(until_s) => kept.extend(wait(
                &batch,
                &format!("Group {} {}: told at {} with what joins it.", batch.by, batch.key, payload::rfc3339(until_s)),
            )),
        }
    }
    if is_storm {
        let (told, held) = brake(route, ready, bustle, now_s);
        kept.extend(held);
        ready = told;
    }
    (ready, kept)
}

/// Whether so many alerts at once are a storm.
#[must_use]
pub fn is_storm(bustle: &Bustle, waiting: usize) -> bool {
    bustle.opened.max(i64::try_from(waiting).unwrap_or(i64::MAX)) > STORM
}

fn key_of(alert: &Alert, bustle: &Bustle) -> (ByWhat, String) {
    let (by, key) = alert.by.clone();
    match &alert.rule {
        Some(rule) if by == ByWhat::Target && bustle.by_rule.get(rule).copied().unwrap_or(0) >= BY_RULE => {
            (ByWhat::Rule, rule.clone())
        }
        _ => (by, key),
    }
}

fn sorted(mut alerts: Vec<Alert>) -> Vec<Alert> {
    alerts.sort_by_key(|alert| (alert.severity, alert.id));
    alerts
}

/// Until when a batch waits; `None`: it is told now.
fn waits_until(route: &Route, batch: &Batch, bustle: &Bustle, now_s: i64) -> Option<i64> {
    let until_s = match bustle.groups.get(&(batch.by, batch.key.clone())) {
        Some(group) => group.told_s.map_or(now_s, |told_s| told_s + route.is.interval_s),
        None => batch.alerts.iter().map(|alert| alert.opened_s).min().unwrap_or(now_s) + route.is.wait_s,
    };
    // A clock that was set back must not hold an alert for longer than its wait.
    let longest = now_s + route.is.wait_s.max(route.is.interval_s);
    (until_s > now_s).then_some(until_s.min(longest))
}

/// Keeps a storm to a few messages: the gravest groups by themselves, known or not, the rest in one.
fn brake(route: &Route, ready: Vec<Batch>, bustle: &Bustle, now_s: i64) -> (Vec<Batch>, Vec<Kept>) {
    let room = usize::try_from(bustle.room).unwrap_or(0);
    if ready.len() <= room {
        return (ready, Vec::new());
    }
    let storm = Batch { by: ByWhat::Storm, key: STORM_KEY.to_owned(), alerts: Vec::new() };
    let may_join = waits_until(route, &storm, bustle, now_s).is_none();
    let is_known = bustle.groups.contains_key(&(ByWhat::Storm, STORM_KEY.to_owned()));
    let is_told = room > 0 && (may_join || !is_known);
    let mut ready = ready.into_iter();
    let mut told: Vec<Batch> = ready.by_ref().take(room - usize::from(is_told)).collect();
    let storm = Batch { alerts: sorted(ready.flat_map(|batch| batch.alerts).collect()), ..storm };
    if is_told {
        told.push(storm);
        return (told, Vec::new());
    }
    let kept = storm.alerts.iter().map(|alert| Kept {
        alert: alert.id,
        state: AlertState::Held,
        held_by: Some("storm".to_owned()),
        why: said_so_far(alert)
            .into_iter()
            .chain([format!(
                "Storm: {} alerts within {} s; it waits for the next message.",
                bustle.opened, route.is.interval_s
            )])
            .collect(),
    });
    (told, kept.collect())
}

fn wait(batch: &Batch, said: &str) -> Vec<Kept> {
    let kept = |alert: &Alert| Kept {
        alert: alert.id,
        state: AlertState::Firing,
        held_by: None,
        why: said_so_far(alert).into_iter().chain([said.to_owned()]).collect(),
    };
    batch.alerts.iter().map(kept).collect()
}

/// What is said of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Telling {
    /// The group afterwards.
    pub group: Group,
    /// It is a new one.
    pub is_new: bool,
    /// Alerts told for the first time.
    pub opens: Vec<AlertId>,
    /// Alerts whose end is told.
    pub ends: Vec<AlertId>,
    /// Alerts told before that were kept from being repeated and are no more.
    pub freed: Vec<AlertId>,
    /// What the message lists, the gravest that hold first.
    pub lists: Vec<Alert>,
    /// Opened, updated or resolved.
    pub kind: EventKind,
}

/// What is decided about a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// It is told.
    Tell(Box<Telling>),
    /// It is looked at again then.
    Later(i64),
    /// All of it that holds is kept quiet or taken on: it is not repeated, and looked at again then.
    Quiet(i64, Vec<Kept>),
}

/// Seconds after which a group that is kept quiet is looked at again, if its interval is not shorter: what keeps it may be
/// taken back at any time.
const QUIET_LOOK_S: i64 = 900;

/// How the sentence begins that says why an alert that was told is not repeated.
const NOT_REPEATED: &str = "Not repeated. ";

/// What is said of a group now. `group` is `None` for a new one; `members` are those told before; `fresh` are told now.
#[must_use]
pub fn compose(
    route: &ReadRoute,
    group: Option<&Group>,
    new: (GroupId, ByWhat, &str),
    members: Vec<Alert>,
    fresh: &[Alert],
    quiet: &Quiet,
    now_s: i64,
) -> Option<Decision> {
    let is = &route.route.is;
    let ended: Vec<Alert> = members.iter().filter(|a| a.ended_s.is_some() && a.end_told_s.is_none()).cloned().collect();
    let over = members.iter().filter(|a| a.end_told_s.is_some()).count() + ended.len();
    let firing: Vec<Alert> =
        sorted(members.into_iter().filter(|a| a.ended_s.is_none()).chain(fresh.iter().cloned()).collect());
    let told_s = group.and_then(|group| group.told_s);
    let is_resolved = firing.is_empty();
    if group.is_none() && fresh.is_empty() {
        return None;
    }
    if !is_resolved && let Some(told_s) = told_s {
        // A clock that was set back must not silence a group for longer than its interval.
        let next_s = (told_s + is.interval_s).min(now_s + is.interval_s);
        let has_news = !ended.is_empty() || !fresh.is_empty();
        let repeat_s = told_s + is.repeat_s;
        if has_news && next_s > now_s && fresh.is_empty() {
            return Some(Decision::Later(next_s));
        }
        if !has_news && repeat_s > now_s {
            return Some(Decision::Later(repeat_s));
        }
        if !has_news && let Some(hushed) = hushed(&firing, route, quiet, now_s) {
            return Some(hushed);
        }
    }
    let severity = firing.iter().chain(&ended).map(|alert| alert.severity).min().unwrap_or(Grade::Info);
    let (id, by, key) = group.map_or((new.0, new.1, new.2), |group| (group.id, group.by, group.key.as_str()));
    let lists: Vec<Alert> = firing.iter().chain(&ended).cloned().collect();
    let was_hushed = |alert: &&Alert| alert.why.iter().any(|said| said.starts_with(NOT_REPEATED));
    let freed = firing.iter().filter(was_hushed).filter(|alert| hold(alert, route, quiet, now_s).is_none());
    let freed = freed.map(|alert| alert.id).collect();
    let summary = summary(by, key, &firing, &ended, is_resolved);
    Some(Decision::Tell(Box::new(Telling {
        group: Group {
            id,
            route: route.route.id,
            by,
            key: key.to_owned(),
            opened_s: group.map_or(now_s, |group| group.opened_s),
            ended_s: is_resolved.then_some(now_s),
            due_s: (!is_resolved).then_some(now_s + is.repeat_s),
            told_s: Some(now_s),
            revision: group.map_or(1, |group| group.revision + 1),
            severity,
            firing: firing.len() as i64,
            resolved: over as i64,
            summary,
        },
        is_new: group.is_none(),
        opens: fresh.iter().map(|alert| alert.id).collect(),
        ends: ended.iter().map(|alert| alert.id).collect(),
        freed,
        lists,
        kind: match (group.is_none(), is_resolved) {
            (true, _) => EventKind::AlertGroupOpened,
            (false, false) => EventKind::AlertGroupUpdated,
            (false, true) => EventKind::AlertGroupResolved,
        },
    })))
}

/// What one receiver of a group, or several alike, are told of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Who.
    pub to: Vec<EndpointId>,
    /// Opened, updated or resolved, as they see it.
    pub kind: EventKind,
    /// Alerts of which they hear for the first time.
    pub opens: Vec<AlertId>,
    /// Alerts of whose end they hear.
    pub ends: Vec<AlertId>,
    /// What their message lists.
    pub lists: Vec<Alert>,
}

/// Who is told what of a group: whoever hears of it now, also late, hears of all that holds; of an end hears whoever was told of
/// its beginning, and nobody else. `told` is what each was told before, `hears` who may be told of something new.
#[must_use]
pub fn parts(telling: &Telling, told: &BTreeMap<EndpointId, BTreeSet<AlertId>>, hears: &[EndpointId]) -> Vec<Part> {
    let everybody: BTreeSet<EndpointId> = told.keys().chain(hears).copied().collect();
    let mut parts: Vec<Part> = Vec::new();
    for to in everybody {
        let Some(part) = part(telling, to, told.get(&to), hears.contains(&to)) else { continue };
        match parts.iter_mut().find(|one| one.kind == part.kind && one.opens == part.opens && one.lists == part.lists) {
            Some(alike) => alike.to.push(to),
            None => parts.push(part),
        }
    }
    parts
}

fn part(telling: &Telling, to: EndpointId, told: Option<&BTreeSet<AlertId>>, hears: bool) -> Option<Part> {
    let knows = |alert: &Alert| told.is_some_and(|told| told.contains(&alert.id));
    let is_said = |alert: &&Alert| knows(alert) || hears && alert.ended_s.is_none();
    let lists: Vec<Alert> = telling.lists.iter().filter(is_said).cloned().collect();
    let opens: Vec<AlertId> = lists.iter().filter(|alert| !knows(alert)).map(|alert| alert.id).collect();
    let ends: Vec<AlertId> = lists.iter().filter(|alert| alert.ended_s.is_some()).map(|alert| alert.id).collect();
    let is_resolved = telling.kind == EventKind::AlertGroupResolved;
    let is_repeat = hears && telling.opens.is_empty() && telling.ends.is_empty();
    let has_news = !opens.is_empty() || !ends.is_empty() || is_repeat && !lists.is_empty();
    if !(has_news || is_resolved && told.is_some()) {
        return None;
    }
    let kind = match (told.is_some(), is_resolved) {
        (false, _) => EventKind::AlertGroupOpened,
        (true, false) => EventKind::AlertGroupUpdated,
        (true, true) => EventKind::AlertGroupResolved,
    };
    Some(Part { to: vec![to], kind, opens, ends, lists })
}

/// Why a group that was told is not repeated: each of its alerts is taken on, or would be kept if it had not been told yet.
/// `None`: at least one is neither.
fn hushed(firing: &[Alert], route: &ReadRoute, quiet: &Quiet, now_s: i64) -> Option<Decision> {
    let is = &route.route.is;
    let (mut kept, mut due_s) = (Vec::new(), now_s + is.repeat_s);
    for alert in firing {
        if alert.state == AlertState::Acknowledged {
            due_s = due_s.min(alert.ack_until_s.unwrap_or(due_s));
            continue;
        }
        let held = hold(alert, route, quiet, now_s)?;
        due_s = due_s.min(now_s + is.interval_s.clamp(1, QUIET_LOOK_S));
        let said = held.why.last().map(|said| format!("{NOT_REPEATED}{said}"));
        kept.push(Kept { why: told_so_far(alert).into_iter().chain(said).collect(), ..held });
    }
    Some(Decision::Quiet(due_s.max(now_s + 1), kept))
}

/// The sentences of the route and of the telling, without why it was not repeated.
#[must_use]
pub fn told_so_far(alert: &Alert) -> Vec<String> {
    alert.why.iter().filter(|said| !said.starts_with(NOT_REPEATED)).cloned().collect()
}

/// A group in one line.
fn summary(by: ByWhat, key: &str, firing: &[Alert], ended: &[Alert], is_resolved: bool) -> String {
    let about = if is_resolved { ended } else { firing };
    let targets: BTreeSet<i64> = about.iter().filter_map(|alert| alert.target).collect();
    let on = match (targets.len(), about.first().and_then(|alert| alert.target_key.as_deref())) {
        (0, _) => String::new(),
        (1, Some(key)) => format!(" on {}", payload::plain(key, 80)),
        (n, _) => format!(" on {n} targets"),
    };
    let what = match about {
        [] => "Nothing is left of it".to_owned(),
        [one] => one.title.clone(),
        many => {
            let counted = format!("{} alerts{on}", many.len());
            match by {
                ByWhat::Rule => format!("{key} fails{on}"),
                ByWhat::Incident => format!("{counted} in incident {}", key.trim_start_matches("inc_")),
                ByWhat::Deploy => format!("{counted} after a deploy"),
                ByWhat::Ruleset => format!("{counted} because rules changed"),
                ByWhat::Target => counted,
                ByWhat::Storm => format!("{counted}, too many to speak of each"),
            }
        }
    };
    let over = match (is_resolved, ended.len()) {
        (true, _) => return cut(&format!("Resolved: {what}"), 300),
        (false, 0) => String::new(),
        (false, n) => format!("; {n} resolved"),
    };
    cut(&format!("{what}{over}"), 300)
}

#[cfg(test)]
mod tests {
    use plumbline_store::alerting::NewRoute;
    use plumbline_store::hooks::Origin;
    use plumbline_store::{EventId, RouteId};

    use super::*;

    const NOW: i64 = 1_796_083_200;

    fn alert(key: &str, rule: Option<&str>) -> Alert {
        let facts = Facts([("owner".to_owned(), vec!["harbour".to_owned()])].into());
        Alert {
            id: AlertId(1),
            route: RouteId(1),
            group: None,
            key: key.to_owned(),
            title: "x".to_owned(),
            state: AlertState::Firing,
            severity: Grade::Error,
            target: Some(1),
            target_key: None,
            surface: Some(1),
            rule: rule.map(str::to_owned),
            facts,
            why: vec!["Route r takes it.".to_owned()],
            by: (ByWhat::Target, "tgt_1".to_owned()),
            opened_event: EventId(1),
            last_event: EventId(1),
            opened_s: NOW,
            notified_s: None,
            ended_s: None,
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

    fn route() -> ReadRoute {
        let is = NewRoute {
            slug: "r".to_owned(),
            title: "r".to_owned(),
            matcher: String::new(),
            min_severity: Grade::Warning,
            include_baseline: false,
            include_rule_changes: false,
            wait_s: 60,
            interval_s: 900,
            repeat_s: 86_400,
            quiet_hours: None,
        };
        let route = Route { id: RouteId(1), is, origin: Origin::Ui, endpoints: Vec::new() };
        ReadRoute { route, matcher: Matcher::default(), quiet: None }
    }

    fn accepted(rule: &str, matcher: &str) -> Quiet {
        let waiver = Waiver {
            id: 4,
            rule: rule.to_owned(),
            matcher: matcher.to_owned(),
            reason: "gone in spring".to_owned(),
            author: "Ada".to_owned(),
            origin: Origin::Ui,
            created_s: NOW,
            ends_s: NOW + 86_400,
            ended_s: None,
        };
        Quiet { waivers: vec![(waiver, Matcher::parse(matcher).unwrap())], ..Quiet::default() }
    }

    #[test]
    fn an_accepted_deviation_is_told_to_nobody_and_says_whose_it_is() {
        let finding = alert("finding:7", Some("a2a/skill-id-duplicate"));
        let held = hold(&finding, &route(), &accepted("a2a/*", "owner:harbour"), NOW).unwrap();
        assert_eq!((held.state, held.held_by.as_deref()), (AlertState::Inhibited, Some("waiver:4")));
        assert_eq!(held.why[1], "Accepted by waiver 4 of Ada: gone in spring");
        for (rule, matcher) in [("mcp/*", "owner:harbour"), ("a2a/*", "owner:pier")] {
            assert_eq!(hold(&finding, &route(), &accepted(rule, matcher), NOW), None, "{rule} {matcher}");
        }
    }

    #[test]
    fn what_flapped_and_stays_begins_anew_and_what_flapped_and_went_does_not() {
        let mut happened = crate::event_types::happened(EventKind::FindingFlappingStopped);
        for (note, begins) in [("open", true), ("resolved", false)] {
            happened.event.note = Some(note.to_owned());
            let changes = take(&happened, &payload::facts(&happened), &[route()], &[]);
            let titles: Vec<&str> = changes
                .iter()
                .filter_map(|change| match change {
                    AlertChange::Begin(new) => Some(new.title.as_str()),
                    AlertChange::Touch { .. } | AlertChange::End { .. } => None,
                })
                .collect();
            assert_eq!(titles.len(), usize::from(begins), "{note}");
            assert!(titles.iter().all(|title| title.contains("and stays")), "{titles:?}");
        }
    }

    #[test]
    fn each_trouble_of_crawling_has_its_key() {
        let mut happened = crate::event_types::happened(EventKind::CrawlDegraded);
        let key = |happened: &Happened| effect(happened).map(|(key, _)| key).unwrap_or_default();
        assert_eq!(key(&happened), "crawl:witness");
        if let Some(crawl) = &mut happened.crawl {
            crawl.source = Some("official".to_owned());
        }
        assert_eq!(key(&happened), "crawl:walk:official");
        happened.event.a = Some(900);
        assert_eq!(key(&happened), "crawl:loss:official");
        happened.surface = crate::event_types::happened(EventKind::TargetDown).surface;
        assert_eq!(key(&happened), "crawl:throttled:agent.example.com");
    }

    #[test]
    fn a_host_that_asks_us_to_wait_is_not_called_down() {
        let down = Alert { is_host_throttled: true, ..alert("reach:1", None) };
        let held = hold(&down, &route(), &Quiet::default(), NOW).unwrap();
        assert_eq!((held.state, held.held_by.as_deref()), (AlertState::Inhibited, Some("throttled")));
        let finding = Alert { is_host_throttled: true, ..alert("finding:7", Some("a2a/skill-id-duplicate")) };
        assert_eq!(hold(&finding, &route(), &Quiet::default(), NOW), None, "what was judged stays judged");
    }
}
