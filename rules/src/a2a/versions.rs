//! Which release a card says it is, and what is left over in it from another one.

use super::detect::release;
use super::interfaces::{comparable, supported};
use super::names::has_in_snake_case;
use super::required::{declares_endpoint, is_blank, skills};
use super::table::{EVERY, SINCE_0_3};
use crate::document::Node;
use crate::judge::{Context, Occurrences};
use crate::kind::{Kind, Known};
use crate::rule::{Basis, Check, Class, Impact, Rule, Severity, fires, silent};
use crate::text::quote;

pub(super) const RULES: &[&Rule] = &[
    &VERSION_UNDECLARED,
    &VERSION_EMPTY,
    &PREFERRED_TRANSPORT_REQUIRED,
    &REMOVED_FIELD,
    &LEGACY_SECURITY_IGNORED,
    &LEGACY_CARD,
    &HYBRID_CARD,
    &REFUSED_BY_DEFAULT_CLIENTS,
    &HYBRID_MISMATCH,
    &PRE_03_CARD,
    &AUTHENTICATION_OUTDATED,
    &VERSION_SHAPE_CONFLICT,
    &INTERFACE_VERSION_PRE_03,
    &INTERFACE_VERSION_FORMAT,
    &PROTOCOL_VERSION_DATE,
    &PROTOCOL_VERSION_UNKNOWN,
];

/// The top-level version of a card that has an older half.
fn top_version<'d>(card: Node<'d>, context: &Context<'_>) -> Option<(Node<'d>, &'d str)> {
    if context.profile.name == "a2a-1.0" { None } else { with_text(card, "protocolVersion") }
}

/// The versions of the 1.0 interfaces.
fn interface_versions<'d>(card: Node<'d>, context: &Context<'_>) -> impl Iterator<Item = (Node<'d>, &'d str)> {
    supported(card, context).filter_map(|interface| with_text(interface, "protocolVersion"))
}

fn with_text<'d>(object: Node<'d>, member: &str) -> Option<(Node<'d>, &'d str)> {
    let node = object.get(member)?;
    Some((node, node.text()?))
}

crate::rule! {
    /// A card of 0.3 does not say its version.
    ///
    /// The schema has a default and every SDK takes 0.3, so nothing is wrong; only a reader has to guess.
    static VERSION_UNDECLARED = {
        id: "a2a/version-undeclared",
        impact: Some(Impact::Cosmetic),
        impact_evidence: "a2a-sdk 0.3.26 and 1.3.0, @a2a-js/sdk 1.3.0, 2026-11",
        versions: &["0.3"],
        on: &[Kind::AgentCard],
        place: "/protocolVersion",
        fix: "Add \"protocolVersion\": \"0.3.0\".",
        spec: "A2A 0.3 §5.5",
        seeds: &["gaip:A2A_PROTOCOL_VERSION_MISSING", "inspector:required-fields"],
        examples: &[
            fires(&["/protocolVersion"], r#"{"protocolVersion": null}"#),
            silent(r#"{"protocolVersion": "0.3.1"}"#),
        ],
        check: Check::Document(version_undeclared),
    }
}

fn version_undeclared(card: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    let in_snake_case = has_in_snake_case(card, "protocolVersion");
    if context.profile.name == "a2a-0.3" && card.given("protocolVersion").is_none() && !in_snake_case {
        out.add_missing(card, "protocolVersion", "no version is declared, so 0.3 is assumed");
    }
}

crate::rule! {
    /// A declared version says something.
    ///
    /// An empty one is worse than none: some SDKs then speak 1.0 and others 0.3.
    static VERSION_EMPTY = {
        id: "a2a/version-empty",
        severity: Severity::Error,
        impact: Some(Impact::Degrades),
        impact_evidence: "a2a-sdk 0.3.26 and 1.3.0, @a2a-js/sdk 1.3.0, 2026-11",
        clients: &["a2a-sdk 1.3.0: limits (0.3, 1.0)", "@a2a-js/sdk 1.3.0: limits (0.3, 1.0)"],
        versions: SINCE_0_3,
        on: &[Kind::AgentCard],
        place: "/protocolVersion, /supportedInterfaces/*/protocolVersion",
        fix: "Write \"0.3.0\" at the top or \"1.0\" on the interface.",
        spec: "A2A 1.0 §3.6.2, §5.7; 0.3 §5.5",
        seeds: &["gaip:A2A_PROTOCOL_VERSION_MISSING"],
        examples: &[
            fires(&["/supportedInterfaces/0/protocolVersion"], r#"{"supportedInterfaces": [{"protocolVersion": ""}]}"#),
            fires(&["/protocolVersion"], r#"{"protocolVersion": " "}"#).over("a2a-0.3"),
            silent(r#"{"supportedInterfaces": [{"protocolVersion": "1.0"}]}"#),
        ],
        check: Check::Document(version_empty),
    }
}

fn version_empty(card: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    let versions = top_version(card, context).into_iter().chain(interface_versions(card, context));
    for (node, _) in versions.filter(|(_, text)| is_blank(text)) {
        out.add(node, "`protocolVersion` is empty");
    }
}

crate::rule! {
    /// A card that declares 0.3 names the transport of its url.
    ///
    /// The text of 0.3 asks for it and its schema has a default, JSONRPC, which every SDK takes.
    static PREFERRED_TRANSPORT_REQUIRED = {
        id: "a2a/preferred-transport-required",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        impact_evidence: "a2a-sdk 0.3.26 and 1.3.0, @a2a-js/sdk 1.3.0, 2026-11",
        versions: &["0.3"],
        on: &[Kind::AgentCard],
        place: "/preferredTransport",
        fix: "Add `preferredTransport`.",
        spec: "A2A 0.3 §5.6.1, §5.6.4",
        examples: &[
            fires(&["/preferredTransport"], r#"{"preferredTransport": null}"#),
            fires(&["/preferredTransport"], r#"{"preferredTransport": ""}"#),
            silent(r#"{"preferredTransport": null, "protocolVersion": null}"#),
        ],
        check: Check::Document(preferred_transport_required),
    }
}

fn preferred_transport_required(card: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    if top_version(card, context).is_none_or(|(_, text)| release(text.trim()) != Some((0, 3))) {
        return;
    }
    let named = card.given("preferredTransport").is_some_and(|node| node.text().is_none_or(|text| !is_blank(text)));
    if !named && !has_in_snake_case(card, "preferredTransport") {
        out.add_missing(card, "preferredTransport", "0.3 is declared and `preferredTransport` is missing or empty");
    }
}

/// Members of older cards that 1.0 removed or moved elsewhere.
const REMOVED: &[&str] = &[
    "preferredTransport",
    "additionalInterfaces",
    "protocolVersion",
    "supportsAuthenticatedExtendedCard",
    "supportsExtendedAgentCard",
];

crate::rule! {
    /// A card of 1.0 carries no members that 1.0 removed.
    ///
    /// Its clients do not read them. A hybrid card keeps the older half on purpose and is left alone.
    static REMOVED_FIELD = {
        id: "a2a/removed-field",
        versions: &["1.0"],
        on: &[Kind::AgentCard],
        place: "/preferredTransport, /additionalInterfaces, /protocolVersion, /supportsAuthenticatedExtendedCard, \
            /supportsExtendedAgentCard, /capabilities/stateTransitionHistory",
        fix: "Drop it or use its 1.0 successor.",
        spec: "A2A 1.0 Appendix A.2, whats-new-v1",
        seeds: &["reader:0.3 field names"],
        examples: &[
            fires(&["/preferredTransport"], r#"{"preferredTransport": "JSONRPC"}"#),
            fires(
                &["/capabilities/stateTransitionHistory"],
                r#"{"capabilities": {"stateTransitionHistory": false}}"#,
            ),
            silent(r#"{"preferredTransport": "JSONRPC"}"#).over("a2a-hybrid"),
        ],
        check: Check::Document(removed_field),
    }
}

fn removed_field(card: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    if context.profile.name != "a2a-1.0" || card.given("url").is_some() || card.given("supportedInterfaces").is_none() {
        return;
    }
    let history = card.get("capabilities").and_then(|capabilities| capabilities.given("stateTransitionHistory"));
    for node in REMOVED.iter().filter_map(|member| card.given(member)).chain(history) {
        out.add(node, format!("1.0 has no {} here", quote(node.key().unwrap_or_default())));
    }
}

crate::rule! {
    /// Security requirements stand where clients of 1.0 look for them.
    ///
    /// `security` is the older member: a client of 1.0 passes it over, sees no requirement and calls without credentials.
    /// A sample in the specification's own text once had it.
    static LEGACY_SECURITY_IGNORED = {
        id: "a2a/legacy-security-ignored",
        severity: Severity::Warning,
        impact: Some(Impact::Degrades),
        impact_evidence: "a2a-sdk 0.3.26 and 1.3.0, @a2a-js/sdk 1.3.0, 2026-11",
        clients: &["@a2a-js/sdk 1.3.0: limits (1.0)"],
        security: true,
        rank: 17,
        versions: &["1.0"],
        on: &[Kind::AgentCard],
        place: "/security, /skills/*/security",
        fix: "Add `securityRequirements` in the 1.0 shape.",
        spec: "A2A 1.0 §4.4.1",
        seeds: &["reader:0.3 field names"],
        examples: &[
            fires(&["/security"], r#"{"security": [{"key": []}], "securityRequirements": null}"#),
            fires(&["/skills/0/security"], r#"{"skills": [{"security": [{"key": []}]}]}"#),
            silent(r#"{"security": [{"key": []}]}"#),
        ],
        check: Check::Document(legacy_security_ignored),
    }
}

fn legacy_security_ignored(card: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for place in std::iter::once(card).chain(skills(card)) {
        if let Some(security) = ignored_security(place) {
            out.add(security, "clients of 1.0 read `securityRequirements`, which is not there");
        }
    }
}

/// A `security` with content and nothing of 1.0 beside it.
pub(super) fn ignored_security(place: Node<'_>) -> Option<Node<'_>> {
    let security = place.given("security").filter(|security| security.len().is_some_and(|len| len > 0))?;
    let of_1_0 = place.given("securityRequirements").is_some_and(|list| !list.is_empty());
    (!of_1_0 && !has_in_snake_case(place, "securityRequirements")).then_some(security)
}

crate::rule! {
    /// The card has the shape from before 1.0.
    ///
    /// Its endpoint is the top-level `url`; clients of 1.0 find it only where they know the older shape too.
    static LEGACY_CARD = {
        id: "a2a/legacy-card",
        class: Class::Fact,
        versions: &["0.1", "0.2", "0.3"],
        on: &[Kind::AgentCard],
        place: "/url",
        fix: "Add `supportedInterfaces` for 1.0 clients.",
        spec: "A2A 1.0 Appendix A.2",
        seeds: &["reader:0.3 field names"],
        examples: &[
            fires(&["/url"], "{}"),
            silent("{}").over("a2a-1.0"),
        ],
        check: Check::Document(legacy_card),
    }
}

fn legacy_card(card: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    if card.given("url").is_some() && !context.profile.has("1.0") {
        out.add_missing(card, "url", "the endpoint is the top-level url of the releases before 1.0");
    }
}

crate::rule! {
    /// The card is of 1.0 and of an older release at once.
    ///
    /// Each half is judged by its own release.
    static HYBRID_CARD = {
        id: "a2a/hybrid-card",
        class: Class::Fact,
        basis: Basis::Hint,
        versions: &["1.0"],
        on: &[Kind::AgentCard],
        place: "/url",
        fix: "None needed; keep both halves in step.",
        spec: "A2A 1.0 Appendix A.2",
        seeds: &["reader:0.3 field names"],
        examples: &[
            fires(&["/url"], "{}").over("a2a-hybrid"),
            silent("{}"),
        ],
        check: Check::Document(hybrid_card),
    }
}

fn hybrid_card(card: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    if context.profile.name == "a2a-hybrid" {
        out.add_missing(card, "url", "there is a top-level url beside the interfaces of 1.0");
    }
}

crate::rule! {
    /// A tested client opens no connection from this card by default.
    ///
    /// The JavaScript SDK 1.x speaks 1.0 unless told otherwise, and here every endpoint is of an older release.
    static REFUSED_BY_DEFAULT_CLIENTS = {
        id: "a2a/refused-by-default-clients",
        class: Class::Fact,
        impact_evidence: "@a2a-js/sdk 1.3.0, 2026-11",
        clients: &["@a2a-js/sdk 1.3.0 with default options: refuses"],
        basis: Basis::Policy,
        versions: EVERY,
        on: &[Kind::AgentCard],
        fix: "Add an interface with protocolVersion 1.0.",
        spec: "A2A 1.0 §3.6, §8.3.1",
        examples: &[
            fires(&[""], r#"{"supportedInterfaces": [{"protocolVersion": "0.3"}]}"#),
            fires(&[""], "{}").over("a2a-0.3"),
            silent(r#"{"supportedInterfaces": [{"protocolVersion": "0.3"}, {"url": "https://tides.example.com/1"}]}"#),
        ],
        check: Check::Document(refused_by_default_clients),
    }
}

fn refused_by_default_clients(card: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    let is_old = |interface: Node<'_>| {
        with_text(interface, "protocolVersion").is_some_and(|(_, text)| text.trim().starts_with("0."))
    };
    let only_old = if context.profile.has("1.0") {
        let mut interfaces = supported(card, context).peekable();
        interfaces.peek().is_some() && interfaces.all(is_old)
    } else {
        card.given("url").is_some() && declares_endpoint(card)
    };
    if only_old {
        out.add(card, "no endpoint of 1.0 is declared");
    }
}

crate::rule! {
    /// Both halves of a hybrid card lead to the same agent.
    ///
    /// Otherwise clients of 0.3 and of 1.0 talk to different places; often `url` is only the home page.
    static HYBRID_MISMATCH = {
        id: "a2a/hybrid-mismatch",
        severity: Severity::Warning,
        impact: Some(Impact::Degrades),
        basis: Basis::Policy,
        versions: &["1.0"],
        on: &[Kind::AgentCard],
        place: "/url",
        fix: "Point both halves at the same endpoints, or declare the 0.3 endpoint as an interface with \
            protocolVersion 0.3; often `url` holds the home page, which is not an endpoint.",
        spec: "A2A 1.0 §8.3.1",
        examples: &[
            fires(&["/url"], r#"{"url": "https://old.example.com/a2a"}"#).over("a2a-hybrid"),
            silent(r#"{"url": "https://TIDES.example.com:443/a2a"}"#).over("a2a-hybrid"),
        ],
        check: Check::Document(hybrid_mismatch),
    }
}

fn hybrid_mismatch(card: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    let Some((url, text)) = with_text(card, "url").filter(|(_, text)| !is_blank(text)) else { return };
    let new: Vec<_> =
        supported(card, context).filter_map(|i| with_text(i, "url")).map(|(_, text)| comparable(text)).collect();
    let additional = card.get("additionalInterfaces").into_iter().flat_map(Node::items);
    let mut old = std::iter::once(text).chain(additional.filter_map(|i| with_text(i, "url")).map(|(_, text)| text));
    if context.profile.name == "a2a-hybrid" && !new.is_empty() && !old.any(|text| new.contains(&comparable(text))) {
        out.add(url, format!("{} is the address of no interface of 1.0", quote(text)));
    }
}

crate::rule! {
    /// The card is from before 0.3.
    ///
    /// Only what its own release required is held against it. Clients of later releases read it as a card of 0.3 or not
    /// at all: that is a property of its age and no fault of the card, so it never counts as broken by this alone.
    static PRE_03_CARD = {
        id: "a2a/pre-03-card",
        severity: Severity::Warning,
        impact: Some(Impact::Degrades),
        impact_evidence: "a2a-sdk 0.3.26 and 1.3.0, @a2a-js/sdk 1.3.0, 2026-11: none knows both releases",
        rank: 12,
        versions: &["0.1", "0.2"],
        on: &[Kind::AgentCard],
        place: "/protocolVersion, /authentication",
        fix: "Migrate to the current card format.",
        spec: "A2A 0.3 §5.5",
        examples: &[
            fires(&["/protocolVersion"], "{}").over("a2a-0.2"),
            fires(&["/authentication"], "{}").over("a2a-0.1"),
            silent(r#"{"protocolVersion": "0.3.0"}"#).over("a2a-0.3"),
        ],
        check: Check::Document(pre_03_card),
    }
}

fn pre_03_card(card: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let declared = with_text(card, "protocolVersion").filter(|(_, text)| !is_blank(text));
    if let Some((version, text)) = declared {
        out.add(version, format!("A2A {} is from before 0.3", quote(text)));
    } else if let Some(authentication) = card.given("authentication") {
        let asks = match asked_for_since(card) {
            members if members.is_empty() => String::new(),
            members => format!("; clients of 0.3 ask for {} too", members.join(", ")),
        };
        out.add(authentication, format!("`authentication` with `schemes` belongs to A2A 0.1{asks}"));
    }
}

/// What 0.3 requires and 0.1 did not, where a card lacks it.
fn asked_for_since(card: Node<'_>) -> Vec<&'static str> {
    let lacks = |object: Node<'_>, name: &str| object.given(name).is_none() && !has_in_snake_case(object, name);
    let of_the_card = [
        ("description", "`description`"),
        ("defaultInputModes", "`defaultInputModes`"),
        ("defaultOutputModes", "`defaultOutputModes`"),
    ];
    let of_a_skill = [("description", "a description of each skill"), ("tags", "tags of each skill")];
    let in_some_skill = |name: &str| skills(card).any(|skill| lacks(skill, name));
    let of_the_card = of_the_card.into_iter().filter(|(name, _)| lacks(card, name));
    let of_a_skill = of_a_skill.into_iter().filter(|(name, _)| in_some_skill(name));
    of_the_card.chain(of_a_skill).map(|(_, words)| words).collect()
}

crate::rule! {
    /// A card of 0.3 or later has no `authentication`.
    ///
    /// It is the member of 0.1, and no client of a later release reads it.
    static AUTHENTICATION_OUTDATED = {
        id: "a2a/authentication-outdated",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        impact_evidence: "a2a-sdk 0.3.26 and 1.3.0, @a2a-js/sdk 1.3.0, 2026-11",
        versions: SINCE_0_3,
        on: &[Kind::AgentCard],
        place: "/authentication",
        fix: "Use `securitySchemes` with `security` (0.3) or `securityRequirements` (1.0).",
        spec: "A2A 0.3 §5.5.3; 1.0 §4.5.1",
        examples: &[
            fires(&["/authentication"], r#"{"authentication": {"schemes": ["bearer"]}}"#),
            fires(&["/authentication"], r#"{"authentication": {}}"#).over("a2a-0.3"),
            fires(&["/authentication"], r#"{"authentication": {"type": "none"}, "protocolVersion": null}"#).over("a2a-0.3"),
            silent("{}"),
        ],
        check: Check::Document(authentication_outdated),
    }
}

fn authentication_outdated(card: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    if let Some(authentication) = card.given("authentication")
        && has_outdated_authentication(card, context)
    {
        out.add(authentication, "no client of this release reads `authentication`");
    }
}

/// Whether a card that is judged as 0.3 or later says how to sign in as one of 0.1 would, or in a way of its own.
pub(super) fn has_outdated_authentication(card: Node<'_>, context: &Context<'_>) -> bool {
    card.given("authentication").is_some()
        && !context.profile.needs_all
        && (context.profile.has("1.0") || context.profile.has("0.3"))
}

crate::rule! {
    /// A card that says 1.0 has the shape of 1.0.
    ///
    /// With a top-level `url` and no `supportedInterfaces` it is a card of 0.3 whatever its version says, and clients
    /// differ in what they make of it.
    static VERSION_SHAPE_CONFLICT = {
        id: "a2a/version-shape-conflict",
        severity: Severity::Warning,
        impact: Some(Impact::Degrades),
        impact_evidence: "a2a-sdk 0.3.26 and 1.3.0, 2026-11",
        clients: &["a2a-sdk 1.3.0: limits (0.3)", "@a2a-js/sdk 1.3.0: limits (0.3)"],
        rank: 13,
        versions: &["0.3"],
        on: &[Kind::AgentCard],
        place: "/protocolVersion",
        fix: "Say \"0.3.0\", or move the endpoint into `supportedInterfaces` with protocolVersion 1.0.",
        spec: "A2A 1.0 §3.6, §8.3.1",
        examples: &[
            fires(&["/protocolVersion"], r#"{"protocolVersion": "1.0.0"}"#),
            silent(r#"{"protocolVersion": "0.3.0"}"#),
        ],
        check: Check::Document(version_shape_conflict),
    }
}

fn version_shape_conflict(card: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    if context.profile.name == "a2a-0.3"
        && context.known == Known::Inferred
        && let Some((version, text)) = with_text(card, "protocolVersion")
    {
        out.add(version, format!("says {}, and the card has the shape of 0.3", quote(text)));
    }
}

crate::rule! {
    /// An interface speaks 0.3 or later.
    ///
    /// SDKs of 1.0 refuse a card with an interface of 0.1 or 0.2.
    static INTERFACE_VERSION_PRE_03 = {
        id: "a2a/interface-version-pre-03",
        severity: Severity::Warning,
        impact: Some(Impact::BreaksClients),
        impact_evidence: "a2a-sdk 1.3.0, 2026-11",
        clients: &["a2a-sdk 1.3.0: refuses (1.0)"],
        versions: &["1.0"],
        on: &[Kind::AgentCard],
        place: "/supportedInterfaces/*/protocolVersion",
        fix: "Declare the version that the endpoint speaks, 0.3 or 1.0.",
        spec: "A2A 1.0 §3.6",
        examples: &[
            fires(
                &["/supportedInterfaces/1/protocolVersion"],
                r#"{"supportedInterfaces": [{}, {"url": "https://tides.example.com/old", "protocolVersion": "0.2.5"}]}"#,
            ),
            silent(r#"{"supportedInterfaces": [{}, {"url": "https://tides.example.com/old", "protocolVersion": "0.3"}]}"#),
        ],
        check: Check::Document(interface_version_pre_03),
    }
}

fn interface_version_pre_03(card: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    for (node, text) in interface_versions(card, context) {
        if matches!(release(text), Some((0, 1 | 2))) {
            out.add(node, format!("A2A {} is from before 0.3", quote(text)));
        }
    }
}

crate::rule! {
    /// A version has the form of its release.
    ///
    /// 1.0 compares major and minor number only, so an interface says `1.0`; 0.3 says `0.3.0` at the top.
    static INTERFACE_VERSION_FORMAT = {
        id: "a2a/interface-version-format",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        versions: SINCE_0_3,
        on: &[Kind::AgentCard],
        place: "/supportedInterfaces/*/protocolVersion, /protocolVersion",
        fix: "Write \"1.0\" (or \"0.3.0\" at the top of a 0.3 card).",
        spec: "A2A 1.0 §3.6, §14.2.1",
        seeds: &["reader:protocolVersion format"],
        examples: &[
            fires(
                &["/supportedInterfaces/0/protocolVersion"],
                r#"{"supportedInterfaces": [{"protocolVersion": "1.0.0"}]}"#,
            ),
            fires(&["/protocolVersion"], r#"{"protocolVersion": "v0.3"}"#).over("a2a-0.3"),
            silent(r#"{"protocolVersion": "0.3"}"#).over("a2a-0.3"),
        ],
        yields_to: &["a2a/protocol-version-date", "a2a/interface-version-pre-03"],
        check: Check::Document(interface_version_format),
    }
}

fn interface_version_format(card: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    if let Some((node, text)) = top_version(card, context)
        && !is_blank(text)
        && !matches!(numbers(text), Some(2 | 3))
    {
        out.add(node, format!("{} is not of the form 0.3.0", quote(text)));
    }
    for (node, text) in interface_versions(card, context) {
        if !is_blank(text) && numbers(text) != Some(2) {
            out.add(node, format!("{} is not of the form 1.0", quote(text)));
        }
    }
}

/// How many numbers with dots between them a text is; `None` when it is something else.
fn numbers(text: &str) -> Option<usize> {
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    text.split('.').all(is_number).then(|| text.split('.').count())
}

crate::rule! {
    /// A version is no date.
    ///
    /// Dates are the versions of MCP; SDKs of A2A refuse them.
    static PROTOCOL_VERSION_DATE = {
        id: "a2a/protocol-version-date",
        severity: Severity::Warning,
        impact: Some(Impact::BreaksClients),
        impact_evidence: "a2a-sdk 0.3.26 and 1.3.0, @a2a-js/sdk 1.3.0, 2026-11",
        clients: &["a2a-sdk 1.3.0: refuses (0.3, 1.0)"],
        versions: SINCE_0_3,
        on: &[Kind::AgentCard],
        place: "/supportedInterfaces/*/protocolVersion, /protocolVersion",
        fix: "Use an A2A version such as \"1.0\".",
        spec: "A2A 1.0 §3.6",
        seeds: &["gaip:A2A_PROTOCOL_VERSION_UNRECOGNISED", "reader:protocolVersion format"],
        examples: &[
            fires(
                &["/supportedInterfaces/0/protocolVersion"],
                r#"{"supportedInterfaces": [{"protocolVersion": "2025-06-18"}]}"#,
            ),
            fires(&["/protocolVersion"], r#"{"protocolVersion": "2025-03-26"}"#).over("a2a-0.3"),
            silent(r#"{"supportedInterfaces": [{"protocolVersion": "1.0"}]}"#),
        ],
        check: Check::Document(protocol_version_date),
    }
}

fn protocol_version_date(card: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    for (node, text) in top_version(card, context).into_iter().chain(interface_versions(card, context)) {
        if is_date(text) {
            out.add(node, format!("{} is a date, as MCP has them", quote(text)));
        }
    }
}

fn is_date(text: &str) -> bool {
    text.len() == 10
        && text.bytes().enumerate().all(|(n, b)| if matches!(n, 4 | 7) { b == b'-' } else { b.is_ascii_digit() })
}

crate::rule! {
    /// A version is a published one.
    ///
    /// No client can know what another number stands for.
    static PROTOCOL_VERSION_UNKNOWN = {
        id: "a2a/protocol-version-unknown",
        basis: Basis::Hint,
        versions: SINCE_0_3,
        on: &[Kind::AgentCard],
        place: "/supportedInterfaces/*/protocolVersion, /protocolVersion",
        fix: "Use a published A2A version.",
        spec: "A2A 1.0 §3.6",
        examples: &[
            fires(
                &["/supportedInterfaces/0/protocolVersion"],
                r#"{"supportedInterfaces": [{"protocolVersion": "2.0"}]}"#,
            ),
            fires(&["/protocolVersion"], r#"{"protocolVersion": "0.4.0"}"#).over("a2a-0.3"),
            silent(r#"{"supportedInterfaces": [{}, {"url": "https://tides.example.com/old", "protocolVersion": "0.3"}]}"#),
        ],
        yields_to: &["a2a/version-shape-conflict", "a2a/interface-version-pre-03"],
        check: Check::Document(protocol_version_unknown),
    }
}

fn protocol_version_unknown(card: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    let top = top_version(card, context).filter(|(_, text)| matches!(numbers(text), Some(2 | 3)));
    let of_interfaces = interface_versions(card, context).filter(|(_, text)| numbers(text) == Some(2));
    for (node, text) in top.into_iter().chain(of_interfaces) {
        if !matches!(release(text), Some((0, 1..=3) | (1, 0))) {
            out.add(node, format!("{} is no published version", quote(text)));
        }
    }
}
