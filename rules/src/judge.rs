//! Judging one document: the rules of its kind and profile, in order, each once.
//!
//! Order is bytes, detection, names and types, then everything else; a rule that `stops` puts what it spoke about out of
//! sight of those after it. A rule that met something out of sight and found nothing is *not evaluated*, never passed.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};
use std::sync::OnceLock;

use serde::Deserialize;

use crate::a2a::Signatures;
use crate::catalogue;
use crate::conversation::Conversation;
use crate::document::{Document, Node, Trouble, escape};
use crate::kind::{Kind, Known, Profile};
use crate::report::{Detected, NotEvaluated, Occurrence, Outcome, Report, RuleResult};
use crate::rule::{Axis, Check, Impact, Rule, Severity, Stops};
use crate::rule_settings::{RuleSetting, Say, regrade};
use crate::session::{Exchange, Response, Session, Step};
use crate::shape::Placed;

/// What the operator settled about judging. Part of the context hash.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, serde::Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// About agent cards.
    pub a2a: A2aSettings,
    /// About registry documents.
    pub registry: RegistrySettings,
    /// How much is read and said of one document.
    pub limits: LimitSettings,
    /// About single rules.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<RuleSetting>,
}

crate::settings! {
    /// Judging agent cards.
    pub struct A2aSettings {
        /// Whether example.com, example.org, example.net and `.example` hosts are placeholders.
        pub example_domains_are_placeholders: bool = true,
    }
}

crate::settings! {
    /// Judging what registries list.
    pub struct RegistrySettings {
        /// Base addresses of public package registries; a package that names another one is reported. Empty: not judged.
        pub public_package_bases: Vec<String> = Vec::new(),
    }
}

crate::settings! {
    /// How much is read and said of one document.
    pub struct LimitSettings {
        /// Decoded bytes a document may have, whatever its kind. 0: the limit of its kind (256 KiB for an agent card).
        pub bytes: usize = 0,
        /// Places written out for one rule; of more only the number is told.
        pub occurrences: usize = 1000,
    }
}

impl Settings {
    /// Sets one value by its dotted name, as `--set` and the `settings` of a vector do.
    ///
    /// # Errors
    /// A sentence that names the key when it is unknown or the value does not fit.
    pub fn set(&mut self, key: &str, value: serde_json::Value) -> Result<(), String> {
        let wrong = |error: serde_json::Error| format!("`{key}`: {error}");
        match key {
            "a2a.example_domains_are_placeholders" => {
                self.a2a.example_domains_are_placeholders = serde_json::from_value(value).map_err(wrong)?;
            }
            "registry.public_package_bases" => {
                self.registry.public_package_bases = serde_json::from_value(value).map_err(wrong)?;
            }
            "limits.bytes" => self.limits.bytes = serde_json::from_value(value).map_err(wrong)?,
            "limits.occurrences" => self.limits.occurrences = serde_json::from_value(value).map_err(wrong)?,
            "rules" => self.rules = serde_json::from_value(value).map_err(wrong)?,
            _ => return Err(format!("`{key}` is no setting about judging")),
        }
        Ok(())
    }
}

/// Where a document came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// Pasted or read from a file: rules about origin are not evaluated.
    Nowhere,
    /// Fetched from a host whose name is public.
    PublicHost,
    /// Fetched from loopback, a private network or a name without a dot.
    PrivateHost,
}

/// Facts from outside the document, in the JSON form of a vector's `context`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, serde::Serialize)]
#[serde(default)]
pub struct Given {
    /// The address the document was fetched from.
    pub url: Option<String>,
    /// The address of the server that served it, where it differs in kind from what it says.
    pub served_from: Option<String>,
    /// The MCP endpoint concerned.
    pub endpoint: Option<String>,
    /// How protected-resource metadata was found: `challenge`, `path-inserted` or `root`.
    pub found_at: Option<String>,
    /// The scopes that the challenge asked for.
    pub challenge_scope: Option<String>,
    /// The issuer that led to authorization-server metadata.
    pub issuer_listed: Option<String>,
    /// What a session was for: `agent-card`, `mcp`, …
    pub surface: Option<String>,
    /// A `server.json` checked before publishing.
    pub unpublished: bool,
    /// Authorization-server metadata that nothing led to.
    pub lone: bool,
    /// The request that was answered.
    pub request: Option<serde_json::Value>,
    /// The HTTP status of the answer.
    pub http_status: Option<u16>,
    /// What the server declared: its `capabilities`.
    pub capabilities: Option<serde_json::Value>,
    /// What we declared as a client.
    pub client_capabilities: Option<serde_json::Value>,
    /// The MCP revision that we asked for.
    pub requested_version: Option<String>,
    /// The `outputSchema` of the tool that was called.
    #[serde(rename = "outputSchema")]
    pub output_schema: Option<serde_json::Value>,
    /// Whether a token was sent.
    pub authenticated: bool,
    /// The id of the `subscriptions/listen` request whose stream carried the message.
    pub listen_id: Option<serde_json::Value>,
    /// What the server is known to be: `legacy`, `modern` or `dual`.
    pub era: Option<String>,
    /// Which of two differing lists a third one was equal to: `first` or `second`.
    pub third_equals: Option<String>,
    /// Whether the server said, between two lists, that the list had changed.
    pub list_changed_seen: bool,
    /// An endpoint whose address was read in a listing or card, which is judged for it there.
    pub listed: bool,
    /// Whether protected-resource metadata was found at a well-known place.
    pub well_known_found: Option<bool>,
    /// What presents a document as a server card: `media-type` or `catalog`.
    pub claimed: Option<String>,
    /// Tags of the target, such as `tier=2`, where a setting about rules asks for one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// The target is the operator's own, where a setting about rules asks for that.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub own: bool,
    /// The key set that the operator trusts for this card.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jwks: Option<serde_json::Value>,
    /// Decoded bytes allowed, in place of the kind's own limit.
    pub limit_bytes: Option<usize>,
    /// Settings for this document alone, by dotted name.
    #[serde(skip_serializing_if = "HashMap::is_empty")]
    pub settings: HashMap<String, serde_json::Value>,
}

/// What a check may know besides the document.
#[derive(Debug, Clone)]
pub struct Context<'c> {
    /// The operator's settings.
    pub settings: &'c Settings,
    /// The kind judged as.
    pub kind: Kind,
    /// Whether somebody asked for that kind; otherwise the document itself or its address showed it.
    pub kind_stated: bool,
    /// The kind that was looked for, where the document is no such thing.
    pub missed: Option<Kind>,
    /// The revision judged as.
    pub profile: Profile,
    /// How that revision is known.
    pub known: Known,
    /// Where the document came from.
    pub origin: Origin,
    /// Facts from outside the document.
    pub given: &'c Given,
    /// The document as it arrived; `None` when none came.
    pub document: Option<&'c Document>,
    /// The conversation; `None` for a file.
    pub session: Option<&'c Session>,
    /// Which of its exchanges brought the document.
    pub answer: Option<usize>,
    /// The signatures of a card, checked when a rule first asks.
    pub(crate) signatures: &'c OnceCell<Signatures>,
    /// The card's values at the places of its field table, found when a rule first asks.
    pub(crate) fields: &'c OnceCell<Placed>,
}

impl<'c> Context<'c> {
    /// The signatures of the card that is judged.
    pub(crate) fn signatures(&self) -> &'c Signatures {
        self.signatures.get_or_init(|| Signatures::check(self))
    }

    /// The answer that brought the document, with its place in the conversation.
    pub fn answer(&self) -> Option<(usize, &'c Response)> {
        let number = self.answer?;
        self.session?.exchanges.get(number)?.response.as_ref().map(|response| (number, response))
    }

    /// The address the document was fetched from, after redirects.
    pub fn address(&self) -> Option<&'c str> {
        let asked = || Some(self.session?.exchanges.get(self.answer?)?.request.url.as_str());
        self.given.url.as_deref().or_else(asked)
    }
}

/// A message that is written when it is kept: of a hundred thousand places most are only counted.
pub struct Later<F>(pub F);

impl<F: FnOnce() -> String> From<Later<F>> for String {
    fn from(later: Later<F>) -> String {
        (later.0)()
    }
}

/// Collects what one rule has to say about one document.
pub struct Occurrences {
    rule: &'static Rule,
    severity: Severity,
    impact: Option<Impact>,
    found: Vec<Found>,
    most: usize,
    over: Vec<Place>,
    more: usize,
    met_hidden: bool,
    not_evaluated: Option<NotEvaluated>,
    applies: bool,
}

struct Found {
    /// The value it is about, or the object that lacks a member.
    place: Option<Place>,
    occurrence: Occurrence,
}

#[derive(Clone, Copy)]
struct Place {
    entry: u32,
    from: usize,
    /// Whether the occurrence is about the value itself, not about a member it lacks.
    is_value: bool,
}

impl Place {
    fn of(node: Node<'_>) -> Place {
        Place { entry: node.entry_number(), from: node.span().0, is_value: true }
    }
}

/// The occurrence just added, to give it a grade of its own.
pub struct Added<'o>(Option<&'o mut Occurrence>);

impl Added<'_> {
    /// This occurrence has another severity than the rule.
    pub fn severity(mut self, severity: Severity) -> Self {
        if let Some(occurrence) = &mut self.0 {
            occurrence.severity = severity;
        }
        self
    }

    /// This occurrence has another impact than the rule.
    pub fn impact(mut self, impact: Impact) -> Self {
        if let Some(occurrence) = &mut self.0 {
            occurrence.impact = Some(impact);
        }
        self
    }
}

impl Occurrences {
    fn new(planned: &Planned) -> Self {
        Occurrences {
            rule: planned.rule,
            severity: planned.severity,
            impact: planned.impact,
            found: Vec::new(),
            most: LimitSettings::default().occurrences,
            over: Vec::new(),
            more: 0,
            met_hidden: false,
            not_evaluated: None,
            applies: true,
        }
    }

    /// Writes out so many occurrences and counts the rest.
    fn at_most(mut self, most: usize) -> Self {
        self.most = most.max(1);
        self
    }

    /// The rule fires at this value. Left unsaid when the value is out of sight.
    pub fn add(&mut self, node: Node<'_>, message: impl Into<String>) -> Added<'_> {
        if !node.in_sight() {
            self.met_hidden = true;
            return Added(None);
        }
        self.push(Some(Place::of(node)), || node.pointer(), message)
    }

    /// The rule fires at a member that is not there. Left unsaid when the object is out of sight.
    pub fn add_missing(&mut self, object: Node<'_>, member: &str, message: impl Into<String>) -> Added<'_> {
        if !object.in_sight() {
            self.met_hidden = true;
            return Added(None);
        }
        let pointer = || format!("{}/{}", object.pointer(), escape(member));
        self.push(Some(Place { is_value: false, ..Place::of(object) }), pointer, message)
    }

    /// The rule fires at a place that is no value of the document: a header, a step, the whole body.
    pub fn add_at(&mut self, pointer: impl Into<String>, message: impl Into<String>) -> Added<'_> {
        self.push(None, || pointer.into(), message)
    }

    /// Of what is only counted no pointer is made.
    fn push(
        &mut self,
        place: Option<Place>,
        pointer: impl FnOnce() -> String,
        message: impl Into<String>,
    ) -> Added<'_> {
        if self.found.len() >= self.most {
            self.more += 1;
            self.over.extend(place);
            return Added(None);
        }
        let (severity, impact) = (self.severity, self.impact);
        let (pointer, message) = (pointer(), message.into());
        let occurrence = Occurrence { pointer, message, severity, impact, line: None, column: None };
        self.found.push(Found { place, occurrence });
        Added(self.found.last_mut().map(|found| &mut found.occurrence))
    }

    /// The rule fires at a place of a conversation where this revision was spoken, with the grades of that revision.
    pub fn add_in(&mut self, revision: &str, pointer: impl Into<String>, message: impl Into<String>) -> Added<'_> {
        self.severity = self.rule.severity_in(&[revision]);
        self.impact = self.rule.impact_in(&[revision]);
        self.add_at(pointer, message)
    }

    /// The rule that is running.
    pub fn rule(&self) -> &'static Rule {
        self.rule
    }

    /// The rule could not be judged, and why. Ignored when it fires somewhere.
    pub fn not_evaluated(&mut self, reason: NotEvaluated) {
        self.not_evaluated = Some(reason);
    }

    /// The rule does not concern this document. Ignored when it fires somewhere.
    pub fn not_applicable(&mut self) {
        self.applies = false;
    }

    /// Whether it has fired so far.
    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }
}

/// A rule as it applies to one kind and profile.
struct Planned {
    rule: &'static Rule,
    severity: Severity,
    impact: Option<Impact>,
}

/// The rules for a kind and profile, in the order they run. Computed once for each pair.
fn plan(kind: Kind, profile: Profile) -> &'static [Planned] {
    type Plans = std::sync::Mutex<HashMap<(Kind, Profile), &'static [Planned]>>;
    static PLANS: OnceLock<Plans> = OnceLock::new();
    let mut plans = PLANS.get_or_init(Plans::default).lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    // Leaked on purpose: there are as many plans as kinds and profiles, and they live as long as the process.
    plans.entry((kind, profile)).or_insert_with(|| Box::leak(make_plan(kind, profile).into_boxed_slice()))
}

/// Whether a rule for every kind concerns this one: the documents in a history, and the entry beside what answers, were
/// judged when they came.
fn looks_inside(rule: &Rule, kind: Kind) -> bool {
    !matches!(kind, Kind::History | Kind::RegistryDrift | Kind::McpHistory) || matches!(rule.check, Check::Body(_))
}

fn make_plan(kind: Kind, profile: Profile) -> Vec<Planned> {
    let mut rules: Vec<&'static Rule> = catalogue::rules()
        .filter(|rule| rule.on.contains(&kind) || (rule.on.is_empty() && looks_inside(rule, kind)))
        .filter(|rule| profile.admits(rule.versions))
        .collect();
    rules.sort_by_key(|rule| turn(rule));
    rules
        .into_iter()
        .map(|rule| Planned {
            rule,
            severity: rule.severity_in(profile.versions),
            impact: rule.impact_in(profile.versions),
        })
        .collect()
}

/// When a rule's turn comes: the way there, bytes, then detection, then what ends the work on a value, then the rest.
fn turn(rule: &Rule) -> u8 {
    match (&rule.check, rule.stops) {
        (Check::Way(_), _) => 0,
        (Check::Body(_), _) => 1,
        (_, Stops::Document) => 2,
        (_, Stops::Value) => 3,
        (_, Stops::Nothing) => 4,
    }
}

/// What is to be judged, and all that is known about it from outside.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'s> {
    /// The kind that was stated; `None` to find out.
    pub kind: Option<Kind>,
    /// The specification version to judge by; `None` to find out.
    pub version: Option<&'s str>,
    /// Where the document came from.
    pub origin: Origin,
    /// Facts from outside.
    pub given: &'s Given,
    /// The conversation in which it was obtained; `None` for a file.
    pub session: Option<&'s Session>,
    /// Which exchange of the conversation brought the document.
    pub answer: Option<usize>,
}

/// Judges a document.
pub fn judge(document: &Document, subject: &Subject<'_>, settings: &Settings) -> Report {
    document.reveal_all();
    judge_observed(Some(document), subject, settings)
}

/// Judges a conversation that brought no document.
pub fn judge_without_document(subject: &Subject<'_>, settings: &Settings) -> Report {
    judge_observed(None, subject, settings)
}

fn judge_observed(document: Option<&Document>, subject: &Subject<'_>, settings: &Settings) -> Report {
    let limit = subject.kind.unwrap_or(Kind::Unknown).limit_depth();
    let root = document.filter(|document| document.depth() <= limit).and_then(Document::root);
    let at_address = || Kind::at_address(subject.given.url.as_deref()?, root?);
    let kind = subject.kind.or_else(at_address).or_else(|| root.map(Kind::detect)).unwrap_or(Kind::Unknown);
    let (profile, known) = match root {
        Some(root) => catalogue::profile(kind, root, subject.version, subject.given),
        None if kind == Kind::AgentCard && document.is_none() => (crate::a2a::ABSENT, Known::Undetermined),
        None => (Profile::NONE, Known::Undetermined),
    };
    let Subject { origin, given, session, answer, .. } = *subject;
    // At a place for server cards lies many another thing: without a sign of one it is nothing that we know.
    let is_stranger = kind == Kind::McpServerCard && root.is_some() && profile == Profile::NONE;
    let (kind, missed) = if is_stranger { (Kind::Unknown, Some(kind)) } else { (kind, None) };
    let kind_stated = subject.kind.is_some() && !is_stranger;
    let signatures = &OnceCell::new();
    let fields = &OnceCell::new();
    let context = Context {
        settings,
        kind,
        kind_stated,
        missed,
        profile,
        known,
        origin,
        given,
        document,
        session,
        answer,
        signatures,
        fields,
    };
    // Of a card that did not come the way to it is judged, as every release has it.
    let came = document.is_some();
    let can_look = |planned: &&Planned| came || !planned.rule.on.contains(&kind) || is_about_the_way(planned.rule);
    let mut results = run_all(plan(kind, profile).iter().filter(can_look), root, &context);
    let part = root.filter(|_| !is_stopped(&results)).and_then(|root| catalogue::part(kind, root));
    if let Some((part_kind, part)) = part {
        let (profile, known) = catalogue::profile(part_kind, part, None, given);
        // A rule that looks at the whole document as well has looked at the part already.
        let looks_at = |kind: &Kind, planned: &Planned| planned.rule.on.contains(kind);
        let own = plan(part_kind, profile).iter().filter(|p| looks_at(&part_kind, p) && !looks_at(&kind, p));
        let context = Context { kind: part_kind, kind_stated: true, profile, known, ..context.clone() };
        results.extend(run_all(own, Some(part), &context));
    }
    yield_to_others(&mut results);
    // What is not what was looked for has no revision either.
    let is_other = results.iter().any(|judged| judged.rule.axis == Axis::Detection && !judged.found.is_empty());
    let (profile, known) = if is_other { ("", Known::Undetermined) } else { (profile.name, known) };
    let detected = Detected { kind, profile, known };
    let more = results.iter().filter(|judged| judged.more > 0).map(|judged| (judged.rule.id, judged.more)).collect();
    let mut results: Vec<RuleResult> = results.into_iter().map(|judged| judged.finish(document)).collect();
    if let (Kind::AgentCard, Some(session), Some(document), Some(card)) = (kind, session, document, root) {
        results.extend(crate::oauth::named::judge_named(session, card, document));
    }
    if let (Kind::RegistryDrift, Some(document), Some(root)) = (kind, document, root) {
        results.push(crate::registry::judge_remotes(document, root));
    }
    let signatures = signatures.get().map(Signatures::reported).unwrap_or_default();
    Report { detected, results, has_document: document.is_some(), signatures, more }
}

/// Whether a rule looks at the conversation in which a document is asked for.
fn is_about_the_way(rule: &Rule) -> bool {
    matches!(rule.check, Check::Way(_) | Check::Session(_))
}

/// Runs rules in their order over a document, or over a part of one that is a document of its own.
fn run_all<'p>(plan: impl Iterator<Item = &'p Planned>, root: Option<Node<'_>>, context: &Context<'_>) -> Vec<Judged> {
    let mut results = Vec::with_capacity(plan.size_hint().1.unwrap_or_default());
    let mut stopped = false;
    for planned in plan {
        let result = if planned.rule.id == catalogue::KIND_UNRECOGNISED && context.kind_stated {
            continue;
        } else {
            match (context.settings.say(planned.rule, context.given), stopped) {
                (Some(Say::Off), _) => Judged::unsaid(planned.rule, NotEvaluated::Off),
                (_, true) => Judged::unsaid(planned.rule, NotEvaluated::Parent),
                (say, false) => run(planned, root, context).regraded(say),
            }
        };
        if !result.found.is_empty() {
            stopped |= planned.rule.stops == Stops::Document;
            if let (Stops::Value, Some(document)) = (planned.rule.stops, context.document) {
                let places = result.found.iter().filter_map(|found| found.place).chain(result.over.iter().copied());
                places.filter(|place| place.is_value).for_each(|place| document.hide(place.entry));
            }
        }
        results.push(result);
    }
    results
}

fn is_stopped(results: &[Judged]) -> bool {
    results.iter().any(|judged| judged.rule.stops == Stops::Document && !judged.found.is_empty())
}

struct Judged {
    rule: &'static Rule,
    found: Vec<Found>,
    /// Values beyond the most that are written out.
    over: Vec<Place>,
    /// How many occurrences are not written out.
    more: usize,
    otherwise: Outcome,
}

impl Judged {
    fn said(rule: &'static Rule, out: Occurrences, otherwise: Outcome) -> Self {
        Judged { rule, found: out.found, over: out.over, more: out.more, otherwise }
    }

    fn unsaid(rule: &'static Rule, reason: NotEvaluated) -> Self {
        Judged { rule, found: Vec::new(), over: Vec::new(), more: 0, otherwise: Outcome::NotEvaluated(reason) }
    }

    fn regraded(mut self, say: Option<Say>) -> Self {
        if let Some(severity) = say.and_then(Say::severity) {
            self.found.iter_mut().for_each(|found| regrade(&mut found.occurrence, severity));
        }
        self
    }

    fn finish(self, document: Option<&Document>) -> RuleResult {
        if self.found.is_empty() {
            return RuleResult { rule: self.rule, outcome: self.otherwise };
        }
        let occurrences = self.found.into_iter().map(|found| found.placed(document)).collect();
        RuleResult { rule: self.rule, outcome: Outcome::Fires(occurrences) }
    }
}

impl Found {
    fn placed(mut self, document: Option<&Document>) -> Occurrence {
        let Some(document) = document else { return self.occurrence };
        let at = match (self.place, document.trouble()) {
            (Some(place), _) => Some(place.from),
            (None, Some(Trouble::Invalid { at, .. })) => Some(*at),
            (None, _) => None,
        };
        if let Some(at) = at {
            let (line, column) = document.line_column(at);
            self.occurrence.line = Some(line);
            self.occurrence.column = Some(column);
        }
        self.occurrence
    }
}

/// The way to the document: what it leads to was asked for behind it, and each has a way of its own.
fn way_in(session: &Session) -> Cow<'_, Session> {
    let is_beside = |exchange: &Exchange| exchange.step.is_some_and(|step| step != Step::Jku && step.is_beside());
    match session.exchanges.iter().position(is_beside) {
        Some(end) => Cow::Owned(Session::from(session.exchanges[..end].to_vec())),
        None => Cow::Borrowed(session),
    }
}

fn run(planned: &Planned, root: Option<Node<'_>>, context: &Context<'_>) -> Judged {
    let mut out = Occurrences::new(planned).at_most(context.settings.limits.occurrences);
    let document = context.document;
    take_met_hidden(document);
    match (planned.rule.check, root) {
        (Check::Observation(check), _) => check(context, &mut out),
        (Check::Body(check), _) => match document {
            Some(document) => check(document, context, &mut out),
            None => out.not_evaluated(NotEvaluated::NoDocument),
        },
        (Check::Way(check), _) => match context.session {
            Some(session) => check(&way_in(session), context, &mut out),
            None => out.not_evaluated(NotEvaluated::NoSession),
        },
        (Check::Session(check), _) => match context.session {
            Some(session) => check(session, context, &mut out),
            None => out.not_evaluated(NotEvaluated::NoSession),
        },
        (Check::Document(check), Some(root)) => check(root, context, &mut out),
        (Check::Each(patterns, check), Some(root)) => {
            for pattern in patterns {
                for node in root.select(pattern) {
                    check(node, context, &mut out);
                }
            }
        }
        (Check::Conversation(_), _) => out.not_evaluated(NotEvaluated::NoSession),
        (Check::Document(_) | Check::Each(..), None) => {
            out.not_evaluated(if document.is_some() { NotEvaluated::Parent } else { NotEvaluated::NoDocument });
        }
    }
    let met_hidden = take_met_hidden(document) || out.met_hidden;
    let otherwise = match out.not_evaluated {
        Some(reason) => Outcome::NotEvaluated(reason),
        None if met_hidden => Outcome::NotEvaluated(NotEvaluated::Parent),
        None if !out.applies => Outcome::NotApplicable,
        None => Outcome::Passes,
    };
    Judged::said(out.rule, out, otherwise)
}

fn take_met_hidden(document: Option<&Document>) -> bool {
    document.is_some_and(Document::take_met_hidden)
}

/// Takes back what another rule says better about the same place.
fn yield_to_others(results: &mut [Judged]) {
    let modest: Vec<usize> = (0..results.len()).filter(|&n| is_modest(&results[n])).collect();
    if modest.is_empty() {
        return;
    }
    let heard: HashSet<&str> = modest.iter().flat_map(|&n| results[n].rule.yields_to.iter().copied()).collect();
    let mut said: HashMap<&'static str, HashSet<String>> = HashMap::new();
    for judged in results.iter().filter(|judged| heard.contains(judged.rule.id)) {
        let pointers = judged.found.iter().map(|found| found.occurrence.pointer.clone());
        said.entry(judged.rule.id).or_default().extend(pointers);
    }
    for n in modest {
        let judged = &mut results[n];
        let better: Vec<_> = judged.rule.yields_to.iter().filter_map(|id| said.get(id)).collect();
        judged.found.retain(|found| !better.iter().any(|pointers| pointers.contains(&found.occurrence.pointer)));
        if judged.found.is_empty() {
            judged.otherwise = Outcome::NotEvaluated(NotEvaluated::Parent);
        }
    }
}

fn is_modest(judged: &Judged) -> bool {
    !judged.found.is_empty() && !judged.rule.yields_to.is_empty()
}

/// Asks one rule, in one revision, by a check of the caller's; `document` is what its places lie in.
pub(crate) fn ask(
    rule: &'static Rule,
    revision: &str,
    document: Option<&Document>,
    check: impl FnOnce(&mut Occurrences),
) -> RuleResult {
    let planned = Planned { rule, severity: rule.severity_in(&[revision]), impact: rule.impact_in(&[revision]) };
    let mut out = Occurrences::new(&planned);
    check(&mut out);
    let otherwise = out.not_evaluated.map_or(Outcome::Passes, Outcome::NotEvaluated);
    Judged::said(rule, out, otherwise).finish(document)
}

/// Runs the rules about a conversation with an MCP endpoint, of the revisions that were spoken in it.
pub(crate) fn judge_conversation(conversation: &Conversation<'_>, context: &Context<'_>) -> Vec<RuleResult> {
    let revisions = conversation.revisions();
    // The forms of server cards are no revisions of the protocol.
    // Where nothing could be asked in any of them, how far we came is all there is to say.
    let applies = |rule: &&Rule| {
        let is_reach = revisions.is_empty() && rule.axis == Axis::Reach;
        is_reach || rule.versions.contains(&"v1") || revisions.iter().any(|revision| rule.versions.contains(revision))
    };
    let mut results = Vec::new();
    for rule in catalogue::rules().filter(applies) {
        let Check::Conversation(check) = rule.check else { continue };
        let say = context.settings.say(rule, context.given);
        if let Some(Say::Off) = say {
            results.push(Judged::unsaid(rule, NotEvaluated::Off));
            continue;
        }
        let planned = Planned { rule, severity: rule.severity_in(&revisions), impact: rule.impact_in(&revisions) };
        let mut out = Occurrences::new(&planned);
        check(conversation, context, &mut out);
        let otherwise = match out.not_evaluated {
            Some(reason) => Outcome::NotEvaluated(reason),
            None if !out.applies => Outcome::NotApplicable,
            None => Outcome::Passes,
        };
        results.push(Judged::said(rule, out, otherwise).regraded(say));
    }
    yield_to_others(&mut results);
    results.into_iter().map(|judged| judged.finish(None)).collect()
}

/// Whether a rule can be part of a verdict at all.
pub fn counts(rule: &Rule) -> bool {
    rule.axis == Axis::Conformity && rule.class == crate::rule::Class::Finding
}
