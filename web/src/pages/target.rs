//! `/targets/{id}`: is this one fine, and if not, what to mend first? Verdict, one next action, four answers, findings, history.

use askama::Template;
use axum::extract::{Path, State};
use axum::response::Response;
use plumbline_rules::catalogue;
use plumbline_rules::rule::Rule;
use plumbline_store::judged::Occurrence;
use plumbline_store::probes;
use plumbline_store::reach::OutcomeClass;
use plumbline_store::views::{EventRow, FactRow, FindingRow, ListingRow, Strip as Recorded, SurfaceRow, TargetDetail};
use plumbline_store::words::{FindingState, Headline, Impact, ReachState, Severity, TargetKind};
use serde::Serialize;

use super::tabs::{Tab, Tabs};
use crate::WebState;
use crate::cache::Cache;
use crate::chart::{self, Day, Strip};
use crate::clients::{self, ClientAnswer};
use crate::error::Error;
use crate::filters;
use crate::page::{Frame, Place, Visit};
use crate::text;
use crate::words;

/// Versions and events shown on the page; the JSON has as many.
const LISTINGS: i64 = 50;
const EVENTS: i64 = 40;

/// One target whole.
#[derive(Template, Serialize)]
#[template(path = "target.html")]
struct TargetPage {
    #[serde(skip)]
    frame: Frame,
    #[serde(skip)]
    tabs: Tabs,
    /// The moment the page holds for, in Unix seconds.
    as_of_s: i64,
    /// Everything kept on its own row.
    target: TargetDetail,
    /// The answer in one sentence, after the verdict.
    answer: String,
    /// Its faces.
    surfaces: Vec<SurfaceRow>,
    /// What is wrong now, unconfirmed findings included, the worst first.
    findings: Vec<FindingRow>,
    /// How many findings are over.
    past_findings: i64,
    /// What clients do with its main document; `None`: none was tested, or it was not judged.
    clients: Option<ClientAnswer>,
    /// Attributes that are set.
    facts: Vec<FactRow>,
    /// Versions of its name in registries, newest first.
    listings: Vec<ListingRow>,
    /// How many there are.
    listing_count: i64,
    /// What happened, newest first.
    events: Vec<EventRow>,
    #[serde(skip)]
    next: Option<NextAction>,
    #[serde(skip)]
    groups: Vec<Group>,
    #[serde(skip)]
    hints: Vec<Shown>,
    #[serde(skip)]
    days: Vec<SurfaceDays>,
    #[serde(skip)]
    unlooked: Vec<(String, String)>,
}

/// The one thing to do first.
struct NextAction {
    class: &'static str,
    fix: String,
    place: Option<PlaceLink>,
}

/// A place in a document and where it is shown.
struct PlaceLink {
    url: String,
    pointer: String,
}

/// Findings of one impact.
struct Group {
    title: &'static str,
    findings: Vec<Shown>,
}

/// A finding as the page shows it.
struct Shown {
    rule: String,
    severity: Severity,
    impact: String,
    is_security: bool,
    title: String,
    messages: Vec<String>,
    fix: String,
    places: Vec<PlaceLink>,
    more: i64,
    history: String,
    surface: Option<String>,
}

/// Ninety days of one surface.
struct SurfaceDays {
    name: &'static str,
    below: String,
    strip: Strip,
    took: String,
    answered: String,
    counts: [usize; 7],
}

/// `GET /targets/{id}`
pub async fn show(visit: Visit, State(state): State<WebState>, Path(asked): Path<String>) -> Result<Response, Error> {
    let unknown = || Error::NotFound { what: "target", asked: asked.clone() };
    let id: i64 = asked.parse().map_err(|_| unknown())?;
    let store = &state.store;
    let target = store.target(id).await?.ok_or_else(unknown)?;
    let surfaces = store.target_surfaces(id).await?;
    let mut findings = store.target_findings(id).await?;
    findings.sort_by_key(|finding| std::cmp::Reverse((finding.impact, finding.severity, finding.opened_s)));
    let days = store.target_days(id, visit.now / 86_400).await?;
    let (listings, listing_count) = store.target_listings(id, LISTINGS).await?;
    let (groups, hints) = grouped(&findings, &surfaces, visit.now);
    let page = TargetPage {
        frame: visit.framed(Place::Targets),
        tabs: Tabs::of(id, Tab::Verdict),
        as_of_s: visit.now,
        answer: answer(&target, &findings, &surfaces, visit.now),
        clients: client_answer(&surfaces, &findings),
        next: next_action(&target, &findings, &surfaces),
        days: surface_days(&surfaces, &days, visit.now / 86_400),
        unlooked: unlooked(&surfaces),
        past_findings: store.target_past_findings(id).await?,
        facts: store.target_facts(id).await?,
        events: store.target_events(id, EVENTS).await?,
        target,
        surfaces,
        findings,
        listings,
        listing_count,
        groups,
        hints,
    };
    visit.answer(&page, Cache::Fresh)
}

impl TargetPage {
    /// The first face: its own document.
    fn main(&self) -> Option<&SurfaceRow> {
        main_surface(&self.surfaces)
    }

    /// Whether it was judged as what it is.
    fn is_judged(&self) -> bool {
        !matches!(self.target.headline, Headline::NotEvaluated | Headline::NotDetected)
    }

    /// Whether it does not answer now, so that what was judged is of an earlier look.
    fn is_silent(&self) -> bool {
        is_silent(self.target.reach)
    }

    /// Why it does not answer, where that is proved.
    fn silent_because(&self) -> Option<String> {
        match self.target.reach {
            ReachState::Absent => Some("there is nothing at its address".to_owned()),
            ReachState::Down => {
                let reason = main_surface(&self.surfaces).and_then(|surface| surface.reach_reason.as_deref());
                Some(reason.map_or_else(|| "our witnesses answer, and it does not".to_owned(), words::reach_reason))
            }
            _ => None,
        }
    }

    /// Rules that passed or fired, over all surfaces.
    fn judged_count(&self) -> i64 {
        self.surfaces.iter().filter_map(|surface| surface.judged.as_ref()).map(|judged| judged.judged).sum()
    }

    /// Rules that apply and could not look, over all surfaces.
    fn unevaluated_count(&self) -> i64 {
        let judged = self.surfaces.iter().filter_map(|surface| surface.judged.as_ref());
        judged.flat_map(|judged| &judged.not_evaluated).map(|rules| rules.rules).sum()
    }

    /// `2 errors and 1 warning.`
    fn specification(&self) -> String {
        match (self.target.headline, self.target.n_error, self.target.n_warn) {
            (Headline::NotEvaluated, _, _) => "Not evaluated.".to_owned(),
            (Headline::NotDetected, _, _) => "Not judged: it is not what was looked for.".to_owned(),
            (_, 0, 0) => "Conformant.".to_owned(),
            (_, errors, 0) => format!("{}.", text::counted(errors, "error", "errors")),
            (_, 0, warnings) => format!("{}, no error.", text::counted(warnings, "warning", "warnings")),
            (_, errors, warnings) => {
                format!(
                    "{} and {}.",
                    text::counted(errors, "error", "errors"),
                    text::counted(warnings, "warning", "warnings")
                )
            }
        }
    }

    /// How many of the rules that could look hold.
    fn passing(&self) -> String {
        let judged = self.judged_count();
        if judged == 0 {
            return String::new();
        }
        let fired = self.findings.iter().filter(|finding| finding.state != FindingState::Pending).count() as i64;
        format!(
            "{} of {} hold.",
            text::number((judged - fired).max(0)),
            text::counted(judged, "rule that could look", "rules that could look")
        )
    }

    /// Since when it is in its reach state, and the shares of ninety days.
    fn reach_words(&self) -> String {
        let target = &self.target;
        let since =
            target.reach_since_s.map_or_else(String::new, |at| format!(" for {}", text::span(self.as_of_s - at)));
        let reason = main_surface(&self.surfaces)
            .and_then(|surface| surface.reach_reason.as_deref())
            .filter(|_| !matches!(target.reach, ReachState::Up))
            .map_or_else(String::new, |reason| format!(", because {}", words::reach_reason(reason)));
        format!("{since}{reason}. {}", words::reach_meaning(target.reach))
    }

    fn is_registry_name(&self) -> bool {
        self.target.kind == TargetKind::McpServer && self.listing_count > 0
    }

    fn event_words(&self, event: &EventRow) -> String {
        words::event(event)
    }
}

/// Whether nothing usable comes from there now.
fn is_silent(reach: ReachState) -> bool {
    matches!(reach, ReachState::Down | ReachState::Absent | ReachState::Suspect)
}

fn main_surface(surfaces: &[SurfaceRow]) -> Option<&SurfaceRow> {
    surfaces.iter().find(|surface| surface.role == plumbline_store::words::Role::Main).or_else(|| surfaces.first())
}

/// What stands after the verdict: since when, how much, and who minds.
fn answer(target: &TargetDetail, findings: &[FindingRow], surfaces: &[SurfaceRow], now: i64) -> String {
    let since = target.headline_since_s.map_or_else(String::new, |at| format!(" since {}", text::brief(at, now)));
    let is_judged = !matches!(target.headline, Headline::NotEvaluated | Headline::NotDetected);
    let as_of = match (target.reach, target.last_ok_s.filter(|_| is_judged)) {
        (ReachState::Absent, Some(at)) => {
            format!(" There is nothing at its address now; this is as of {}.", text::ago(at, now))
        }
        (ReachState::Down | ReachState::Suspect, Some(at)) => {
            format!(" It does not answer now; this is as of {}.", text::ago(at, now))
        }
        _ => String::new(),
    };
    let sentence = match target.headline {
        Headline::Blocked => format!("{since}: {}.", blocked_because(target, findings, surfaces)),
        Headline::Deviates => format!("{since}: {}, and no tested client refuses it for that.", found(target)),
        Headline::Sound if target.n_warn > 0 => {
            format!("{since}: no error, {}.", text::counted(target.n_warn, "warning", "warnings"))
        }
        Headline::Sound => format!("{since}: everything that could be looked at holds."),
        Headline::NotDetected => {
            " because what is there is not what its listing says. Nothing is said against it.".to_owned()
        }
        Headline::NotEvaluated => format!(" because {}", unevaluated_because(target)),
    };
    format!("{sentence}{as_of}")
}

fn found(target: &TargetDetail) -> String {
    let errors = text::counted(target.n_error, "error", "errors");
    if target.n_warn == 0 {
        errors
    } else {
        format!("{errors} and {}", text::counted(target.n_warn, "warning", "warnings"))
    }
}

fn blocked_because(target: &TargetDetail, findings: &[FindingRow], surfaces: &[SurfaceRow]) -> String {
    let refused = client_answer(surfaces, findings).map(|answer| answer.refused_by).unwrap_or_default();
    let names: Vec<String> = refused.into_iter().map(|client| client.name).collect();
    let by = match names.len() {
        0 => "a client that reads it as the specification says cannot use it".to_owned(),
        1 => format!("{} refuses it", names[0]),
        _ => format!("{} refuse it", text::listed(&names)),
    };
    match target.n_blocking {
        1 => format!("{by}, because of one finding"),
        n => format!("{by}, because of {} findings", text::number(n)),
    }
}

fn unevaluated_because(target: &TargetDetail) -> String {
    match target.reach {
        ReachState::Unknown => "it is new, and we have not looked at it yet.",
        ReachState::Gated => "it asks for credentials or payment, so there was nothing to judge.",
        ReachState::Throttled => "it asks us to come back later, so there was nothing to judge yet.",
        ReachState::Suspect | ReachState::Down | ReachState::Flapping => {
            "it has not answered yet, so there was nothing to judge."
        }
        ReachState::Absent => "there is nothing at its address, so there was nothing to judge.",
        ReachState::Retired => "it left its sources before we could look at it.",
        ReachState::Up => "it answers, and no document could be judged yet.",
    }
    .to_owned()
}

/// What clients do with the main document, when it was judged.
fn client_answer(surfaces: &[SurfaceRow], findings: &[FindingRow]) -> Option<ClientAnswer> {
    let main = main_surface(surfaces)?;
    if matches!(main.headline, Headline::NotEvaluated | Headline::NotDetected) {
        return None;
    }
    let on_main: Vec<FindingRow> = findings.iter().filter(|finding| finding.surface_id == main.id).cloned().collect();
    clients::answer(main.profile.as_deref()?, &on_main)
}

/// The worst finding that counts, as something to do.
fn next_action(target: &TargetDetail, findings: &[FindingRow], surfaces: &[SurfaceRow]) -> Option<NextAction> {
    let counts = |f: &&FindingRow| f.state != FindingState::Pending && f.severity != Severity::Info && !is_guess(f);
    let worst = findings.iter().find(counts)?;
    let class = match target.headline {
        Headline::Blocked => "blocked",
        Headline::Deviates => "deviates",
        Headline::Sound | Headline::NotDetected | Headline::NotEvaluated => "",
    };
    let fix = catalogue::find(&worst.rule).map(|rule| rule.fix.to_owned()).filter(|fix| !fix.is_empty())?;
    let place = worst.places.first().and_then(|place| link(place, worst.surface_id, surfaces));
    Some(NextAction { class, fix, place })
}

/// Where a place is shown: its document, at its line.
fn link(place: &Occurrence, surface: i64, surfaces: &[SurfaceRow]) -> Option<PlaceLink> {
    let document = surfaces.iter().find(|one| one.id == surface)?.document.as_ref()?;
    if place.pointer.is_empty() && place.line.is_none() {
        return None;
    }
    let pointer = if place.pointer.is_empty() { "the whole document".to_owned() } else { place.pointer.clone() };
    Some(PlaceLink { url: document_url(document, &place.pointer), pointer })
}

/// The page of a document, opened at a pointer.
pub(super) fn document_url(hash: &str, pointer: &str) -> String {
    format!("/documents/{hash}?at={}#at", text::query_escaped(pointer))
}

/// Whether a finding is a guess by name: shown for review, left out of verdict and counts.
fn is_guess(finding: &FindingRow) -> bool {
    catalogue::find(&finding.rule).is_some_and(|rule| rule.guess)
}

/// Findings by impact, the worst first, then guesses for review; hints apart, because they count for nothing.
fn grouped(findings: &[FindingRow], surfaces: &[SurfaceRow], now: i64) -> (Vec<Group>, Vec<Shown>) {
    let (hints, counted): (Vec<&FindingRow>, Vec<&FindingRow>) =
        findings.iter().partition(|f| f.severity == Severity::Info);
    let (guesses, counted): (Vec<&FindingRow>, Vec<&FindingRow>) = counted.into_iter().partition(|f| is_guess(f));
    let mut groups: Vec<Group> = [Some(Impact::BreaksClients), Some(Impact::Degrades), Some(Impact::Cosmetic), None]
        .into_iter()
        .filter_map(|impact| {
            let of_impact: Vec<Shown> =
                counted.iter().filter(|f| f.impact == impact).map(|finding| shown(finding, surfaces, now)).collect();
            let title = match impact {
                Some(Impact::BreaksClients) => "Stops clients: a released client refuses it",
                Some(Impact::Degrades) => "Loses meaning: it loads, and something is lost or differs",
                Some(Impact::Cosmetic) => "Changes nothing in the clients we test",
                None => "Effect on clients not known",
            };
            (!of_impact.is_empty()).then_some(Group { title, findings: of_impact })
        })
        .collect();
    if !guesses.is_empty() {
        let findings = guesses.into_iter().map(|finding| shown(finding, surfaces, now)).collect();
        groups.push(Group { title: "For review: guesses by a name, left out of the verdict", findings });
    }
    (groups, hints.into_iter().map(|finding| shown(finding, surfaces, now)).collect())
}

/// Places shown of one finding; the rest is a number.
const PLACES: usize = 4;

fn shown(finding: &FindingRow, surfaces: &[SurfaceRow], now: i64) -> Shown {
    let rule = catalogue::find(&finding.rule);
    let mut messages: Vec<String> = Vec::new();
    for place in finding.places.iter().take(PLACES) {
        if !messages.contains(&place.message) {
            messages.push(place.message.clone());
        }
    }
    let places: Vec<PlaceLink> =
        finding.places.iter().take(PLACES).filter_map(|place| link(place, finding.surface_id, surfaces)).collect();
    let is_elsewhere = main_surface(surfaces).is_none_or(|main| main.id != finding.surface_id);
    let surface = surfaces.iter().find(|one| one.id == finding.surface_id && is_elsewhere);
    Shown {
        rule: finding.rule.clone(),
        severity: finding.severity,
        impact: impact_words(finding, rule),
        is_security: finding.is_security,
        title: rule.map(Rule::title).unwrap_or_default(),
        messages,
        fix: rule.map(|rule| rule.fix.to_owned()).unwrap_or_default(),
        more: (finding.occurrences - PLACES as i64).max(0),
        places,
        history: words::finding_history(finding, now),
        surface: surface.map(|surface| format!("{} {}", words::surface_kind(surface.kind), surface.url)),
    }
}

/// Which clients mind, in few words.
fn impact_words(finding: &FindingRow, rule: Option<&'static Rule>) -> String {
    let clients = rule.map_or(&[][..], |rule| rule.clients);
    match (finding.impact, clients.is_empty()) {
        (Some(Impact::BreaksClients), true) => "stops clients; which ones was not tested".to_owned(),
        (Some(impact), _) => words::impact(impact).to_owned(),
        (None, _) => String::new(),
    }
}

/// The worst of a day in the shape strips draw. A day without an answer shows that and no verdict; what the list of a registry
/// says of an entry needs no answer of its own.
pub(super) fn day_of(day: &Option<probes::Day>) -> Day {
    let Some(day) = day else { return Day::Blank };
    match (day.headline, day.answered, day.unreachable) {
        (_, 0, 1..) => Day::Silent,
        (_, 0, 0) if counts_neither_way(day) => Day::Apart,
        (Some(Headline::Blocked), ..) => Day::Blocked,
        (Some(Headline::Deviates), ..) => Day::Deviates,
        (Some(Headline::Sound), ..) => Day::Sound,
        (Some(Headline::NotDetected | Headline::NotEvaluated) | None, ..) => Day::Unseen,
    }
}

/// Whether all that was seen of a day says nothing about it: planned work, throttled, or our own fault.
fn counts_neither_way(day: &probes::Day) -> bool {
    matches!(day.worst, OutcomeClass::Throttled | OutcomeClass::Skipped | OutcomeClass::CrawlerFault)
}

fn surface_days(surfaces: &[SurfaceRow], recorded: &[Recorded], today: i64) -> Vec<SurfaceDays> {
    surfaces
        .iter()
        .map(|surface| {
            let none = vec![None; 90];
            let days = recorded.iter().find(|(id, _)| *id == surface.id).map_or(&none, |(_, days)| days);
            let drawn: Vec<Day> = days.iter().map(day_of).collect();
            let count = |state| drawn.iter().filter(|day| **day == state).count();
            let answered: i64 = days.iter().flatten().map(|day| i64::from(day.answered)).sum();
            let silent: i64 = days.iter().flatten().map(|day| i64::from(day.unreachable)).sum();
            SurfaceDays {
                name: words::surface_kind(surface.kind),
                below: below(surface),
                took: surface
                    .last_took_ms
                    .filter(|_| !is_silent(surface.reach))
                    .map_or_else(|| "–".to_owned(), text::duration_ms),
                answered: if surface.is_listed { "–".to_owned() } else { text::share(answered, answered + silent) },
                counts: [Day::Sound, Day::Deviates, Day::Blocked, Day::Silent, Day::Unseen, Day::Apart, Day::Blank]
                    .map(count),
                strip: chart::strip(&drawn, today - 89, false),
            }
        })
        .collect()
}

fn below(surface: &SurfaceRow) -> String {
    let size = surface.raw_len.map_or_else(String::new, |size| format!(", {}", text::bytes(size)));
    if surface.is_listed {
        format!("from a registry's list{size}")
    } else {
        format!("{}{size}", words::role(surface.role))
    }
}

/// What was not looked at, and why: how many, and the rest of the sentence.
fn unlooked(surfaces: &[SurfaceRow]) -> Vec<(String, String)> {
    let mut reasons: Vec<(String, i64)> = Vec::new();
    let mut not_applicable = 0;
    for judged in surfaces.iter().filter_map(|surface| surface.judged.as_ref()) {
        not_applicable += judged.not_applicable;
        for rules in &judged.not_evaluated {
            match reasons.iter_mut().find(|(reason, _)| *reason == rules.reason) {
                Some((_, count)) => *count += rules.rules,
                None => reasons.push((rules.reason.clone(), rules.rules)),
            }
        }
    }
    let mut said: Vec<(String, String)> = reasons
        .iter()
        .map(|(reason, count)| (text::counted(*count, "rule", "rules"), words::not_evaluated(reason, *count)))
        .collect();
    if not_applicable > 0 {
        said.push((
            text::counted(not_applicable, "rule", "rules"),
            if not_applicable == 1 {
                "does not apply: it is about another revision or another kind of document.".to_owned()
            } else {
                "do not apply: they are about another revision or another kind of document.".to_owned()
            },
        ));
    }
    for surface in surfaces.iter().filter(|surface| surface.judged.is_none()) {
        let why = match &surface.reach_reason {
            Some(reason) => format!("was never judged, because {}.", words::reach_reason(reason)),
            None if surface.last_attempt_s.is_none() => "was not looked at yet.".to_owned(),
            None => format!("was never judged. {}", words::reach_meaning(surface.reach)),
        };
        said.push((words::surface_kind(surface.kind).to_owned(), why));
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silent_day_is_no_verdict_and_what_counts_neither_way_is_a_gap() {
        let none = probes::Day {
            answered: 0,
            unreachable: 0,
            neither: 0,
            median_ms: 0,
            p95_ms: 0,
            headline: None,
            worst: OutcomeClass::Ok,
            crawler_fault: false,
            document_changed: false,
            in_maintenance: false,
        };
        let planned = probes::Day { neither: 2, in_maintenance: true, worst: OutcomeClass::Skipped, ..none };
        let fault = probes::Day { neither: 2, crawler_fault: true, worst: OutcomeClass::CrawlerFault, ..none };
        let throttled = probes::Day { neither: 2, worst: OutcomeClass::Throttled, ..none };
        let rows = [
            (Some(probes::Day { unreachable: 3, headline: Some(Headline::Blocked), ..none }), Day::Silent),
            (Some(probes::Day { answered: 3, unreachable: 1, headline: Some(Headline::Sound), ..none }), Day::Sound),
            (Some(fault), Day::Apart),
            (Some(probes::Day { headline: Some(Headline::Sound), ..planned }), Day::Apart),
            (Some(probes::Day { headline: Some(Headline::Sound), ..throttled }), Day::Apart),
            (Some(probes::Day { answered: 1, headline: Some(Headline::Sound), ..planned }), Day::Sound),
            (Some(probes::Day { neither: 2, ..none }), Day::Unseen),
            (Some(probes::Day { answered: 1, headline: Some(Headline::Deviates), ..none }), Day::Deviates),
            (None, Day::Blank),
        ];
        for (day, drawn) in rows {
            assert_eq!(day_of(&day), drawn, "{day:?}");
        }
    }
}
