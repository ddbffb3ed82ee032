//! The words people read for the words of the closed lists. One place, so that pages agree and a translation has one door.

use plumbline_rules::conversation::Era;
use plumbline_rules::standing::Access;
use plumbline_store::deploys::Outcome;
use plumbline_store::hooks::Origin;
use plumbline_store::query::{Field, Term};
use plumbline_store::reach::OutcomeClass;
use plumbline_store::views::{EventRow, FindingRow, FindingSpan};
use plumbline_store::words::{
    Cause, CrawlKind, CrawlState, EventKind, FindingState, Headline, Impact, Known, OpenedAs, ReachState, Resolution,
    RetireReason, Role, Severity, SourceKind, SurfaceKind, TargetKind, headline_rank,
};

use crate::text;

/// A small value, or a template's reference to one. Templates hand over either, depending on where a value stands, and none of
/// the functions below should care.
pub trait Given<T> {
    /// The value itself.
    fn given(self) -> T;
}

impl<T: Copy> Given<T> for T {
    fn given(self) -> T {
        self
    }
}

impl<T: Copy> Given<T> for &T {
    fn given(self) -> T {
        *self
    }
}

impl<T: Copy> Given<T> for &&T {
    fn given(self) -> T {
        **self
    }
}

/// The headlines in the order of lists.
pub const HEADLINES: [Headline; 5] =
    [Headline::Blocked, Headline::Deviates, Headline::Sound, Headline::NotDetected, Headline::NotEvaluated];

/// `Blocked`.
#[must_use]
pub fn headline(word: impl Given<Headline>) -> &'static str {
    match word.given() {
        Headline::Blocked => "Blocked",
        Headline::Deviates => "Deviates",
        Headline::Sound => "Sound",
        Headline::NotDetected => "Not detected",
        Headline::NotEvaluated => "Not evaluated",
    }
}

/// What the word says, in a sentence.
#[must_use]
pub fn headline_meaning(word: impl Given<Headline>) -> &'static str {
    match word.given() {
        Headline::Blocked => {
            "A released client, named on the page, refuses the document or cannot finish the handshake."
        }
        Headline::Deviates => {
            "It breaks at least one demand of its specification, and no released client we test refuses it for that."
        }
        Headline::Sound => "Everything that could be looked at holds. Warnings and hints may be open.",
        Headline::NotDetected => "Something is there, but it is not what its listing says.",
        Headline::NotEvaluated => {
            "Gated, silent, throttled or new: we could not look. That counts neither as pass nor as failure."
        }
    }
}

/// `3 are blocked`, `1 deviates`: a headline as the predicate of a number.
#[must_use]
pub fn headline_claim(word: Headline, count: i64) -> String {
    let number = text::number(count);
    match (word, count) {
        (Headline::Blocked, 1) => format!("{number} is blocked"),
        (Headline::Blocked, _) => format!("{number} are blocked"),
        (Headline::Deviates, 1) => format!("{number} deviates"),
        (Headline::Deviates, _) => format!("{number} deviate"),
        (Headline::Sound, 1) => format!("{number} is sound"),
        (Headline::Sound, _) => format!("{number} are sound"),
        (Headline::NotDetected, 1) => format!("{number} is not what its listing says"),
        (Headline::NotDetected, _) => format!("{number} are not what their listing says"),
        (Headline::NotEvaluated, 1) => format!("{number} is not evaluated"),
        (Headline::NotEvaluated, _) => format!("{number} are not evaluated"),
    }
}

/// `MCP server`.
#[must_use]
pub fn target_kind(kind: impl Given<TargetKind>) -> &'static str {
    match kind.given() {
        TargetKind::McpServer => "MCP server",
        TargetKind::A2aAgent => "A2A agent",
        TargetKind::OpenapiService => "OpenAPI service",
        TargetKind::OauthService => "OAuth service",
        TargetKind::Other => "other address",
    }
}

/// `133 names in MCP registries`: what the targets of one kind are.
#[must_use]
pub fn counted_kind(kind: TargetKind, count: i64) -> String {
    match kind {
        TargetKind::McpServer => text::counted(count, "name in MCP registries", "names in MCP registries"),
        TargetKind::A2aAgent => text::counted(count, "A2A agent card", "A2A agent cards"),
        TargetKind::OpenapiService => text::counted(count, "OpenAPI service", "OpenAPI services"),
        TargetKind::OauthService => text::counted(count, "OAuth service", "OAuth services"),
        TargetKind::Other => text::counted(count, "other address", "other addresses"),
    }
}

/// `Agent card`.
#[must_use]
pub fn surface_kind(kind: impl Given<SurfaceKind>) -> &'static str {
    match kind.given() {
        SurfaceKind::AgentCard => "Agent card",
        SurfaceKind::ServerJson => "Registry entry",
        SurfaceKind::McpEndpoint => "MCP endpoint",
        SurfaceKind::A2aInterface => "A2A interface",
        SurfaceKind::McpServerCard => "MCP server card",
        SurfaceKind::OauthProtectedResource => "Protected resource metadata",
        SurfaceKind::OauthAuthorizationServer => "Authorization server metadata",
        SurfaceKind::OauthOpenidConfiguration => "OpenID configuration",
        SurfaceKind::Openapi => "OpenAPI document",
        SurfaceKind::Jwks => "Key set",
        SurfaceKind::Unknown => "Document",
    }
}

/// How a target shows a surface.
#[must_use]
pub fn role(role: impl Given<Role>) -> &'static str {
    match role.given() {
        Role::Main => "its own document",
        Role::Endpoint => "where clients connect",
        Role::Interface => "named by its card",
        Role::Metadata => "metadata it leads to",
    }
}

/// A profile as a person calls it: `A2A 1.0`, `server.json 2025-12-11`.
#[must_use]
pub fn profile(name: &str) -> String {
    match name {
        "a2a-undetermined" => "A2A, release unknown".to_owned(),
        "a2a-hybrid" => "A2A 1.0 and 0.3".to_owned(),
        "mcp-dual" => "MCP of both eras".to_owned(),
        _ => [("a2a-", "A2A "), ("server-json-", "server.json "), ("mcp-", "MCP "), ("openapi-", "OpenAPI ")]
            .iter()
            .find_map(|(prefix, word)| name.strip_prefix(prefix).map(|revision| format!("{word}{revision}")))
            .unwrap_or_else(|| text::visible(name, 40)),
    }
}

/// How a revision is known.
#[must_use]
pub fn known(known: impl Given<Known>) -> &'static str {
    match known.given() {
        Known::Declared => "declared",
        Known::Inferred => "inferred",
        Known::Assumed => "assumed",
        Known::Undetermined => "undetermined",
    }
}

/// What "how known" means.
#[must_use]
pub fn known_meaning(known: impl Given<Known>) -> &'static str {
    match known.given() {
        Known::Declared => "It says so itself.",
        Known::Inferred => "It does not say so, but its shape leaves no other.",
        Known::Assumed => "Nothing tells; this is what its specification takes when nothing is said.",
        Known::Undetermined => "Nothing tells, so only rules that hold for every revision were applied.",
    }
}

/// `up`, `does not answer`.
#[must_use]
pub fn reach(state: impl Given<ReachState>) -> &'static str {
    match state.given() {
        ReachState::Unknown => "not tried",
        ReachState::Up => "up",
        ReachState::Gated => "gated",
        ReachState::Suspect => "suspect",
        ReachState::Down => "down",
        ReachState::Absent => "absent",
        ReachState::Throttled => "throttled",
        ReachState::Flapping => "comes and goes",
        ReachState::Retired => "retired",
    }
}

/// The filling of the reach mark: `yes`, `part` or `no`.
#[must_use]
pub fn reach_class(state: impl Given<ReachState>) -> &'static str {
    match state.given() {
        ReachState::Up | ReachState::Gated => "yes",
        ReachState::Suspect | ReachState::Throttled | ReachState::Flapping => "part",
        ReachState::Unknown | ReachState::Down | ReachState::Absent | ReachState::Retired => "no",
    }
}

/// What a reach state means, in a sentence.
#[must_use]
pub fn reach_meaning(state: impl Given<ReachState>) -> &'static str {
    match state.given() {
        ReachState::Unknown => "We have not tried it yet.",
        ReachState::Up => "It answers.",
        ReachState::Gated => "It answers and asks for credentials or payment first.",
        ReachState::Suspect => "It has just failed to answer. We ask again before we call it down.",
        ReachState::Down => "It does not answer, and our witnesses do.",
        ReachState::Absent => "There is nothing at its address.",
        ReachState::Throttled => "It asks us to come back later, so we come less often.",
        ReachState::Flapping => "It comes and goes.",
        ReachState::Retired => "It has left its sources and is no longer watched.",
    }
}

/// Why there was no usable answer, after "because".
#[must_use]
pub fn reach_reason(reason: &str) -> String {
    let words = match reason {
        "auth" => "it asks for credentials",
        "payment" => "it asks for payment",
        "dns_servfail" => "the name servers of its name failed",
        "dns_timeout" => "the name servers of its name did not answer in time",
        "refused" => "nobody listens at its address",
        "connect_timeout" => "no connection came about in time",
        "tls_handshake" => "TLS could not be agreed",
        "tls_expired" => "its certificate is not valid today",
        "tls_name" => "its certificate is for another name",
        "tls_issuer" => "its certificate leads to no known root",
        "reset" => "the connection broke before an answer",
        "read_timeout" => "the answer did not end in time",
        "http_5xx" => "the server says that it failed",
        "truncated" => "the answer ended before its end",
        "bad_encoding" => "its content coding could not be undone",
        "not_http" => "what answers does not speak HTTP",
        "paused" => "it is paused",
        "maintenance" => "it is in a maintenance window",
        "budget" => "the budget of the pass was used up",
        "circuit_open" => "its host failed too often just now",
        "address_guard" => "it lives at an address that must not be called",
        "robots" => "its robots.txt asks us not to",
        "bad_url" => "its address cannot be called",
        other => return format!("of “{}”", text::visible(other, 60)),
    };
    words.to_owned()
}

/// `Error`.
#[must_use]
pub fn severity(severity: impl Given<Severity>) -> &'static str {
    match severity.given() {
        Severity::Error => "Error",
        Severity::Warning => "Warning",
        Severity::Info => "Hint",
    }
}

/// The mark that goes with a severity.
#[must_use]
pub fn severity_mark(severity: impl Given<Severity>) -> &'static str {
    match severity.given() {
        Severity::Error => "blocked",
        Severity::Warning => "deviates",
        Severity::Info => "info",
    }
}

/// What released clients do about a finding, in few words.
#[must_use]
pub fn impact(impact: impl Given<Impact>) -> &'static str {
    match impact.given() {
        Impact::BreaksClients => "stops clients",
        Impact::Degrades => "loses meaning",
        Impact::Cosmetic => "no client minds",
    }
}

/// The same as a sentence.
#[must_use]
pub fn impact_meaning(impact: impl Given<Option<Impact>>) -> &'static str {
    match impact.given() {
        Some(Impact::BreaksClients) => {
            "A released client refuses the document, drops the interface or cannot finish the handshake."
        }
        Some(Impact::Degrades) => "It loads, but meaning is lost or differs between clients.",
        Some(Impact::Cosmetic) => "No released client behaves differently, as far as is known.",
        None => "It counts for nothing.",
    }
}

/// Since when a finding is open and how it came, as the end of a line.
#[must_use]
pub fn finding_history(finding: &FindingRow, now: i64) -> String {
    let since = text::brief(finding.opened_s.unwrap_or(finding.first_seen_s), now);
    let came = match (finding.state, finding.opened_as) {
        (FindingState::Pending, _) => format!("seen {}, not confirmed yet", text::brief(finding.first_seen_s, now)),
        (FindingState::Flapping, _) => format!("comes and goes since {since}"),
        (_, Some(OpenedAs::Baseline) | None) => format!("since {since}, at the first look"),
        (_, Some(OpenedAs::First)) => format!("new, {since}"),
        (_, Some(OpenedAs::Broke)) => format!("regressed {since}"),
        (_, Some(OpenedAs::Again)) => format!("regressed {since}, open for the {} time", ordinal(finding.opens)),
        (_, Some(OpenedAs::Rule)) => format!("since {since}, because our rule changed"),
    };
    let cause = match finding.cause {
        Some(Cause::Document) => ", by a new document",
        Some(Cause::Behaviour) => ", by new behaviour",
        Some(Cause::Clock) => ", by the clock",
        Some(Cause::Joint) => ", by a new document and a new rule together",
        Some(Cause::Baseline | Cause::Rule | Cause::Unknown) | None => "",
    };
    let stale = stale(finding, now);
    let clearing =
        if finding.state == FindingState::Clearing { "; gone from the last look, not confirmed yet" } else { "" };
    let accepted = if finding.waiver.is_some() { "; accepted for now" } else { "" };
    format!("{came}{cause}{clearing}{stale}{accepted}")
}

/// Why a target is retired, as the rest of a sentence.
#[must_use]
pub fn retire_reason(reason: impl Given<Option<RetireReason>>) -> &'static str {
    match reason.given() {
        Some(RetireReason::Source) | None => "it left its sources and is no longer watched",
        Some(RetireReason::Deleted) => "its registry marks it as deleted",
        Some(RetireReason::Absent) => {
            "nothing was at its address for a month. It is asked once a day, and an answer brings it back"
        }
        Some(RetireReason::OptedOut) => "whoever stands behind it asked to be left alone",
    }
}

/// That nobody looked for long, or that the newest look did not reach the rule, as the end of a line.
#[must_use]
pub fn stale(finding: &FindingRow, now: i64) -> String {
    match finding.last_evaluated_s {
        Some(at) if finding.is_stale(now) => format!("; stale, last looked at {}", text::brief(at, now)),
        _ if finding.unjudged_since_s.is_some() => "; the newest look did not reach this rule".to_owned(),
        _ => String::new(),
    }
}

fn ordinal(n: i64) -> String {
    match n {
        2 => "second".to_owned(),
        3 => "third".to_owned(),
        n => format!("{}th", text::number(n)),
    }
}

/// Why rules could not look, as the rest of a sentence that begins with how many. A stored word of an older or newer program
/// is shown as it stands.
#[must_use]
pub fn not_evaluated(reason: &str, rules: i64) -> String {
    let of = |one: &'static str, many: &'static str| if rules == 1 { one } else { many };
    let (need, are) = (of("needs", "need"), of("is", "are"));
    match reason {
        "parent" => of(
            "could not look, because a rule before it ended the work on what it looks at.",
            "could not look, because a rule before them ended the work on what they look at.",
        )
        .to_owned(),
        "no-origin" => format!("{need} to know where the document came from."),
        "no-session" => format!("{need} the conversation in which the document was obtained."),
        "no-document" => format!("{need} the document, and there was none."),
        "no-keys" => format!("{need} the public keys of the signer."),
        "cut" => "could not look, because only the beginning of the body was kept.".to_owned(),
        "off" => format!("{are} switched off in the settings."),
        "not-asked" => format!("{are} about what we had no occasion to ask."),
        other => format!("could not look, because {}.", reach_reason(other)),
    }
}

/// What an event says, as a sentence without its time. Rule ids stand in backticks.
#[must_use]
pub fn event(event: &EventRow) -> String {
    let rule = event.rule.as_deref().map_or_else(|| "a finding".to_owned(), |rule| format!("`{rule}`"));
    let note = event.note.as_deref().unwrap_or_default();
    match event.kind {
        EventKind::FindingOpened if event.a == Some(1) => format!("{rule} fires, at the first look"),
        EventKind::FindingOpened if note.starts_with("rule") => format!("{rule} fires, because our rule changed"),
        EventKind::FindingOpened => format!("{rule} opened"),
        EventKind::FindingRegressed => format!("{rule} regressed"),
        EventKind::FindingResolved => match note.parse::<Resolution>() {
            Ok(Resolution::Fixed) => format!("{rule} is mended"),
            Ok(Resolution::DocumentGone) => format!("{rule} is over, because the document is gone"),
            Ok(Resolution::TargetRetired) => format!("{rule} is over, because the target is retired"),
            Ok(Resolution::RuleChanged) => format!("{rule} is over, because our rule changed"),
            Err(_) => format!("{rule} is over"),
        },
        EventKind::FindingFlappingStarted => format!("{rule} comes and goes; we stop counting each time"),
        EventKind::FindingFlappingStopped => format!("{rule} has calmed down"),
        EventKind::TargetAdded => "Seen for the first time".to_owned(),
        EventKind::TargetDown => format!("Down, because {}", reach_reason(note)),
        EventKind::TargetRecovered => "Answers again".to_owned(),
        EventKind::TargetHeadlineChanged => {
            let named =
                |rank: Option<i64>| HEADLINES.into_iter().find(|h| Some(headline_rank(*h)) == rank).map(headline);
            format!("{} → {}", named(event.a).unwrap_or("New"), named(event.b).unwrap_or("unknown"))
        }
        EventKind::TargetGone => "Nothing has been at its address for three days".to_owned(),
        EventKind::TargetRetired => "Left all its sources and is no longer watched".to_owned(),
        EventKind::TargetReturned => "Is back in a source".to_owned(),
        EventKind::DocumentChanged => "Serves another document".to_owned(),
        EventKind::DeployRecorded => "A deploy was noticed".to_owned(),
        EventKind::DeployEvaluated => {
            format!("The deploy {}", note.parse().map_or("is settled", |outcome: Outcome| deploy_did(outcome)))
        }
        EventKind::IncidentOpened => "An outage shared with others began".to_owned(),
        EventKind::IncidentUpdated => "The shared outage changed".to_owned(),
        EventKind::IncidentResolved => "The shared outage is over".to_owned(),
        EventKind::RulePrevalenceJumped
        | EventKind::RulesetReleased
        | EventKind::CrawlCompleted
        | EventKind::CrawlDegraded
        | EventKind::AlertGroupOpened
        | EventKind::AlertGroupUpdated
        | EventKind::AlertGroupResolved
        | EventKind::WebhookFailing
        | EventKind::WebhookDisabled
        | EventKind::WebhookMessageDead
        | EventKind::DiskFilling
        | EventKind::DiskFull
        | EventKind::DiskRelieved
        | EventKind::Ping => text::opened(&event.kind.as_str().replace(['.', '_'], " ")),
    }
}

/// What came of a deploy, after its name.
#[must_use]
pub fn deploy_did(outcome: impl Given<Outcome>) -> &'static str {
    match outcome.given() {
        Outcome::Clean => "broke nothing and mended nothing",
        Outcome::Improved => "mended something and broke nothing",
        Outcome::Regressed => "broke something",
        Outcome::Mixed => "broke something and mended something else",
        Outcome::Unreachable => "could not be judged, because nobody answers since",
    }
}

/// Where something was made that can be made in more than one place.
#[must_use]
pub fn made_in(origin: impl Given<Origin>) -> &'static str {
    match origin.given() {
        Origin::File => "the settings file",
        Origin::Ui => "a page, the API or a command",
    }
}

/// `Walk of a registry`.
#[must_use]
pub fn crawl_kind(kind: impl Given<CrawlKind>) -> &'static str {
    match kind.given() {
        CrawlKind::FullWalk => "full walk",
        CrawlKind::IncrementalWalk => "walk of what moved",
        CrawlKind::Round => "round",
        CrawlKind::Check => "single check",
    }
}

/// How a crawl ended.
#[must_use]
pub fn crawl_state(state: impl Given<CrawlState>) -> &'static str {
    match state.given() {
        CrawlState::Running => "running",
        CrawlState::Complete => "complete",
        CrawlState::Incomplete => "incomplete",
        CrawlState::Interrupted => "interrupted",
    }
}

/// The class that colours how a crawl ended.
#[must_use]
pub fn crawl_mark(state: impl Given<CrawlState>) -> &'static str {
    match state.given() {
        CrawlState::Running => "not_evaluated",
        CrawlState::Complete => "sound",
        CrawlState::Incomplete | CrawlState::Interrupted => "deviates",
    }
}

/// Whether a source is walked in passes; the targets of the others are looked at one by one.
#[must_use]
pub fn is_walked(kind: impl Given<SourceKind>) -> bool {
    kind.given() == SourceKind::McpRegistry
}

/// `MCP registry`.
#[must_use]
pub fn source_kind(kind: impl Given<SourceKind>) -> &'static str {
    match kind.given() {
        SourceKind::McpRegistry => "MCP registry",
        SourceKind::Domains => "list of A2A domains",
        SourceKind::File => "file",
        SourceKind::Settings => "settings",
        SourceKind::CommandLine => "command line",
    }
}

/// Who gets into an endpoint.
#[must_use]
pub fn access(access: impl Given<Access>) -> &'static str {
    match access.given() {
        Access::Open => "open to everybody",
        Access::AuthRequired => "for whoever has a token; that is no failure",
        Access::AuthPartial => "open, but for some of its lists a token is wanted",
        Access::PaymentRequired => "for whoever pays; that is no failure",
        Access::NotMcp => "nobody speaks MCP there",
        Access::Unreachable => "nobody answers",
        Access::RateLimited => "asks to come back later",
    }
}

/// What an MCP endpoint speaks.
pub fn era(era: impl Given<Era>) -> &'static str {
    match era.given() {
        Era::Legacy => "revisions with a handshake",
        Era::Modern => "2026-07-28 only",
        Era::Dual => "2026-07-28 and older revisions",
        Era::Unknown => "not shown",
    }
}

/// What moved when a finding opened, as the end of a sentence.
#[must_use]
pub fn cause_clause(cause: Cause) -> &'static str {
    match cause {
        Cause::Document => ", by a new document",
        Cause::Behaviour => ", by new behaviour",
        Cause::Clock => ", by the clock",
        Cause::Rule => ", because our rule changed",
        Cause::Joint => ", by a new document and a new rule together",
        Cause::Unknown => "; the cause cannot be proved",
        Cause::Baseline => "",
    }
}

/// `open`, `over`.
#[must_use]
pub fn finding_state(state: impl Given<FindingState>) -> &'static str {
    match state.given() {
        FindingState::Pending => "not confirmed",
        FindingState::Open => "open",
        FindingState::Clearing => "clearing",
        FindingState::Flapping => "comes and goes",
        FindingState::Resolved => "mended",
        FindingState::Retired => "retired",
    }
}

/// Why a finding is over, after the time.
#[must_use]
pub fn resolution(resolution: Resolution) -> &'static str {
    match resolution {
        Resolution::Fixed => ": it was looked at and no longer fires",
        Resolution::DocumentGone => ", because the document is gone",
        Resolution::TargetRetired => ", because the target left its sources",
        Resolution::RuleChanged => ", because our rule changed",
    }
}

/// What came of a look.
#[must_use]
pub fn outcome(outcome: OutcomeClass) -> &'static str {
    match outcome {
        OutcomeClass::Ok => "answered",
        OutcomeClass::Gated => "gated",
        OutcomeClass::Absent => "absent",
        OutcomeClass::Unreachable => "no usable answer",
        OutcomeClass::Throttled => "asked to come back later",
        OutcomeClass::Skipped => "not called, on purpose",
        OutcomeClass::CrawlerFault => "our fault",
    }
}

/// How a span of a finding began and ended, as a sentence.
#[must_use]
pub fn span_history(span: &FindingSpan) -> String {
    let came = match span.opened_as {
        OpenedAs::Baseline => "There at the first look",
        OpenedAs::First => "New",
        OpenedAs::Broke => "Regressed",
        OpenedAs::Again => "Regressed again",
        OpenedAs::Rule => "Opened",
    };
    let went = span.resolution.map_or("", resolution);
    let over = if span.to_s.is_some() { format!("; over{went}") } else { String::new() };
    format!("{came}{}{over}.", cause_clause(span.cause))
}

/// One term of a query, as a person says it.
#[must_use]
pub fn term(term: &Term) -> String {
    let value = term.value.as_str();
    let said = match term.field {
        Field::Kind => value.parse().map_or_else(|_| value.to_owned(), |kind: TargetKind| target_kind(kind).to_owned()),
        Field::Headline => value.parse().map_or_else(|_| value.to_owned(), |word: Headline| headline(word).to_owned()),
        Field::Reach => value.parse().map_or_else(|_| value.to_owned(), |state: ReachState| reach(state).to_owned()),
        Field::Profile => profile(value),
        Field::Era => value.parse().map_or_else(|_| value.to_owned(), |word: Era| era(word).to_owned()),
        Field::Access => value.parse().map_or_else(|_| value.to_owned(), |word: Access| access(word).to_owned()),
        _ => text::visible(value, 80),
    };
    let name = match term.field {
        Field::Headline => "verdict",
        Field::Profile => "judged as",
        Field::Rule => "fails",
        field => field.name(),
    };
    format!("{}{name} {said}", if term.is_not { "not " } else { "" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_rule_is_spoken_of_as_one() {
        for (reason, rules, said) in [
            ("off", 1, "is switched off in the settings."),
            ("off", 2, "are switched off in the settings."),
            ("no-keys", 1, "needs the public keys of the signer."),
            ("parent", 1, "could not look, because a rule before it ended the work on what it looks at."),
            ("auth", 3, "could not look, because it asks for credentials."),
            ("of-tomorrow", 3, "could not look, because of “of-tomorrow”."),
        ] {
            assert_eq!(not_evaluated(reason, rules), said);
        }
    }
}
