//! Whether a document is an agent card, and which release of A2A it is judged as.

use crate::document::{Node, Type};
use crate::judge::{Context, Occurrences};
use crate::kind::{Kind, Known, Profile};
use crate::rule::{Axis, Basis, Check, Rule, Stops, fires, silent};

pub(super) const RULES: &[&Rule] = &[&NOT_A_CARD];

/// Members that most cards have, with their spelling before camelCase.
const CARD_MEMBERS: &[&[&str]] = &[
    &["name"],
    &["description"],
    &["version"],
    &["capabilities"],
    &["skills"],
    &["defaultInputModes", "default_input_modes"],
    &["defaultOutputModes", "default_output_modes"],
    &["supportedInterfaces", "supported_interfaces", "url"],
];

/// Whether a value is what one of a card would be.
type Fits = fn(Node<'_>) -> bool;

/// Members that only cards have, with what one of a card holds there: a name, a description, a version and a url alone
/// are any manifest.
const TELLING_MEMBERS: &[(&str, Fits)] = &[
    ("capabilities", has_a_capability_of_cards),
    ("skills", is_list_of_objects),
    ("defaultInputModes", is_list),
    ("default_input_modes", is_list),
    ("defaultOutputModes", is_list),
    ("default_output_modes", is_list),
    ("supportedInterfaces", is_list),
    ("supported_interfaces", is_list),
    ("additionalInterfaces", is_list),
    ("additional_interfaces", is_list),
    ("preferredTransport", is_text),
    ("preferred_transport", is_text),
];

/// What cards say under `capabilities`.
const CAPABILITIES: &[&str] = &[
    "streaming",
    "pushNotifications",
    "push_notifications",
    "stateTransitionHistory",
    "state_transition_history",
    "extensions",
    "extendedAgentCard",
    "extended_agent_card",
];

fn has_a_capability_of_cards(capabilities: Node<'_>) -> bool {
    capabilities.kind() == Type::Object
        && (capabilities.members().next().is_none() || CAPABILITIES.iter().any(|name| capabilities.get(name).is_some()))
}

fn is_list_of_objects(skills: Node<'_>) -> bool {
    skills.kind() == Type::Array && skills.items().all(|skill| skill.kind() == Type::Object)
}

fn is_list(node: Node<'_>) -> bool {
    node.kind() == Type::Array
}

fn is_text(node: Node<'_>) -> bool {
    node.kind() == Type::String
}

/// Members in which a document says what it is.
const SELF_NAMES: &[&str] =
    &["$schema", "@context", "@type", "type", "schema", "schemaVersion", "schema_version", "protocol"];

/// What a document says it is: the texts under [`SELF_NAMES`], and those one level down (`"protocol": {"type": "a2a"}`).
fn self_names<'d>(root: Node<'d>) -> impl Iterator<Item = &'d str> {
    SELF_NAMES.iter().filter_map(move |name| root.get(name)).flat_map(|node| {
        let below = ["type", "name"].into_iter().filter_map(move |name| node.get(name));
        std::iter::once(node).chain(below).filter_map(Node::text)
    })
}

/// Whether a document says in so many words that it is an agent card of A2A.
fn says_a2a(root: Node<'_>) -> bool {
    self_names(root).any(|text| text == "AgentCard" || text.to_ascii_lowercase().contains("a2a"))
}

/// Standards that lay their own document where agents are looked for, as they stand in its names for itself.
const OTHER_STANDARDS: &[&str] = &["eip-8004", "erc-8004", "erc8004", "x402"];

/// Members with the version of another standard: Agent Handshake Protocol, x402.
const VERSIONS_OF_OTHERS: &[&str] = &["ahp", "x402Version"];

/// Whether a document says that it follows another standard.
fn says_another_standard(root: Node<'_>) -> bool {
    VERSIONS_OF_OTHERS.iter().any(|name| root.get(name).is_some())
        || self_names(root).any(|text| {
            let text = text.to_ascii_lowercase();
            OTHER_STANDARDS.iter().any(|standard| text.contains(standard))
        })
}

/// Members that tell how an agent is spoken to, which no manifest of another protocol has.
const WAYS_TO_SPEAK: &[&str] = &[
    "protocolVersion",
    "protocol_version",
    "preferredTransport",
    "preferred_transport",
    "supportedInterfaces",
    "supported_interfaces",
    "additionalInterfaces",
    "additional_interfaces",
    "defaultInputModes",
    "default_input_modes",
];

/// Whether a document says that it describes an MCP server, and nothing of how an agent is spoken to.
fn is_of_mcp(root: Node<'_>) -> bool {
    let names_mcp =
        |text: &str| text.eq_ignore_ascii_case("mcp") || text.to_ascii_lowercase().contains("modelcontextprotocol");
    self_names(root).any(names_mcp) && !says_a2a(root) && !WAYS_TO_SPEAK.iter().any(|name| root.given(name).is_some())
}

/// Whether an object has enough of a card to be judged as one.
///
/// With an address where clients look for one, any member that only cards have tells, whatever it holds. Without one it
/// has to hold what it holds in cards, unless the document calls itself an agent card, and a document that follows
/// another standard is none: lists called `capabilities` and texts called `skills` stand in many manifests.
pub(crate) fn looks_like_a_card(root: Node<'_>) -> bool {
    let has = |name: &&str| root.get(name).is_some();
    let members = CARD_MEMBERS.iter().filter(|names| names.iter().any(has)).count();
    if members < 3 {
        return false;
    }
    // Servers of MCP have capabilities too, as an object, and say in it or beside it that they are such.
    let is_of_a_server =
        |capabilities: Node<'_>| capabilities.kind() == Type::Object && crate::mcp::looks_like_a_server(root);
    let telling = || {
        TELLING_MEMBERS.iter().filter_map(|(name, fits)| {
            let member = root.get(name)?;
            (*name != "capabilities" || !is_of_a_server(member)).then_some((member, fits))
        })
    };
    let has_address =
        ["url", "supportedInterfaces", "supported_interfaces"].iter().any(|name| root.given(name).is_some());
    if has_address {
        return telling().next().is_some() && !is_of_mcp(root);
    }
    if says_another_standard(root) {
        return false;
    }
    telling().any(|(member, fits)| fits(member)) || (telling().next().is_some() && says_a2a(root))
}

crate::rule! {
    /// The document is not an agent card.
    ///
    /// Nobody claimed that it is one, so nothing is held against it: the place is reported as *not detected*.
    static NOT_A_CARD = {
        id: "a2a/not-a-card",
        axis: Axis::Detection,
        rank: 2,
        basis: Basis::Policy,
        versions: &["0.1", "0.2", "0.3", "1.0"],
        on: &[Kind::AgentCard],
        place: "",
        spec: "A2A 1.0 §4.4.1",
        fix: "Publish an agent card at this path.",
        seeds: &["reader:Not an agent card"],
        examples: &[
            fires(&[""], r#"{"name": "x", "description": "y", "version": "1", "url": "https://x.example"}"#).whole(),
            fires(&[""], r#"{"name": "x", "description": "y", "version": "1", "capabilities": {"tools": {}}}"#).whole(),
            // A manifest with a list of its own, one with a path, a registration of another standard.
            fires(&[""], r#"{"name": "x", "description": "y", "version": "1", "capabilities": ["handoff", "repro"]}"#).whole(),
            fires(&[""], r#"{"name": "x", "description": "y", "version": "1", "skills": "/skills/x.md"}"#).whole(),
            fires(
                &[""],
                r#"{"type": "https://eips.ethereum.org/EIPS/eip-8004#registration-v1", "name": "x", "description": "y",
                    "capabilities": {"streaming": true}, "skills": [{"id": "a", "name": "A"}]}"#,
            ).whole(),
            fires(&[""], r#"{"protocol": "MCP", "name": "x", "description": "y", "url": "https://tides.dev", "version": "1", "capabilities": ["tools"]}"#).whole(),
            fires(&[""], r#"{"ahp": "0.1", "name": "x", "description": "y", "capabilities": {}, "skills": []}"#).whole(),
            silent(r#"{"skills": [{"name": "Locate"}]}"#),
        ],
        stops: Stops::Document,
        check: Check::Document(not_a_card),
    }
}

fn not_a_card(card: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if !looks_like_a_card(card) {
        out.add(card, "too few members of an agent card, or none that only cards have");
    }
}

const V1_0: Profile = Profile { name: "a2a-1.0", versions: &["1.0"], needs_all: false };
const HYBRID: Profile = Profile { name: "a2a-hybrid", versions: &["1.0", "0.3"], needs_all: false };
const V0_3: Profile = Profile { name: "a2a-0.3", versions: &["0.3"], needs_all: false };
const V0_2: Profile = Profile { name: "a2a-0.2", versions: &["0.2"], needs_all: false };
const V0_1: Profile = Profile { name: "a2a-0.1", versions: &["0.1"], needs_all: false };
const UNDETERMINED: Profile =
    Profile { name: "a2a-undetermined", versions: &["0.1", "0.2", "0.3", "1.0"], needs_all: true };

/// Of a card that did not come: what holds for every release.
pub(crate) const ABSENT: Profile = Profile { name: "", ..UNDETERMINED };

/// The release a card is judged as (catalogue §4): the shape decides, not the claim.
pub(crate) fn profile(card: Node<'_>, stated: Option<&str>) -> (Profile, Known) {
    let (shown, known) = shown(card);
    match stated {
        Some(version) if !shown.has(version) || shown.needs_all => (named(version).unwrap_or(shown), Known::Declared),
        _ => (shown, known),
    }
}

fn named(version: &str) -> Option<Profile> {
    [V1_0, V0_3, V0_2, V0_1].into_iter().find(|profile| profile.versions == [version])
}

fn shown(card: Node<'_>) -> (Profile, Known) {
    let given = |camel: &str, snake: &str| card.given(camel).or_else(|| card.given(snake));
    let interfaces = given("supportedInterfaces", "supported_interfaces");
    let url = card.given("url");
    if let Some(interfaces) = interfaces {
        let says = |interface: Node<'_>| {
            let version = interface.given("protocolVersion").or_else(|| interface.given("protocol_version"));
            version.and_then(Node::text).is_some_and(|text| !text.trim().is_empty())
        };
        let known = if interfaces.items().any(says) { Known::Declared } else { Known::Inferred };
        return (if url.is_some() { HYBRID } else { V1_0 }, known);
    }
    let declared = given("protocolVersion", "protocol_version");
    let version = declared.and_then(Node::text).map(str::trim).filter(|text| !text.is_empty());
    let is_blank = declared.is_none_or(|node| node.kind() == Type::String && version.is_none());
    let release = version.and_then(release);
    match release {
        Some((0, 1)) => return (V0_1, Known::Declared),
        Some((0, 2)) => return (V0_2, Known::Declared),
        _ => {}
    }
    if is_blank && shows_0_1(card) {
        return (V0_1, Known::Inferred);
    }
    match (release, url) {
        (Some((0, 3)), _) => (V0_3, Known::Declared),
        (Some((major, _)), Some(_)) if major >= 1 => (V0_3, Known::Inferred),
        (_, Some(_)) => (V0_3, Known::Assumed),
        (_, None) => (UNDETERMINED, Known::Undetermined),
    }
}

/// Members that came after 0.1.
const LATER_THAN_0_1: &[&str] = &[
    "securitySchemes",
    "security_schemes",
    "security",
    "preferredTransport",
    "preferred_transport",
    "additionalInterfaces",
    "additional_interfaces",
    "supportsAuthenticatedExtendedCard",
    "supports_authenticated_extended_card",
    "signatures",
    "securityRequirements",
    "security_requirements",
];

/// Whether a card without a version has the shape of 0.1: `authentication` as 0.1 has it, a list of `schemes`, and no
/// member that came later. Any other `authentication` is the author's own and tells nothing of a release.
fn shows_0_1(card: Node<'_>) -> bool {
    card.given("authentication").and_then(|own| own.get("schemes")).is_some_and(is_list)
        && !LATER_THAN_0_1.iter().any(|name| card.given(name).is_some())
}

/// Major and minor number of a version such as `0.3`, `0.3.0` or `1.0.1`; a date is none.
pub(super) fn release(version: &str) -> Option<(u32, u32)> {
    let mut numbers = version.split('.');
    let major: u32 = numbers.next()?.parse().ok()?;
    let minor: u32 = numbers.next().unwrap_or("0").parse().ok()?;
    (numbers.next().is_none_or(|patch| patch.parse::<u32>().is_ok()) && numbers.next().is_none() && major < 1000)
        .then_some((major, minor))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Document;

    #[test]
    fn the_shape_decides_and_the_claim_comes_second() {
        let rows = [
            (r#"{"supportedInterfaces": [{"protocolVersion": "1.0"}], "url": "x"}"#, "a2a-hybrid", Known::Declared),
            (r#"{"supported_interfaces": [{"protocol_version": "1.0"}], "url": "x"}"#, "a2a-hybrid", Known::Declared),
            (r#"{"supportedInterfaces": [{"protocolVersion": " "}], "url": null}"#, "a2a-1.0", Known::Inferred),
            (r#"{"supportedInterfaces": [], "protocolVersion": "0.2"}"#, "a2a-1.0", Known::Inferred),
            (r#"{"protocolVersion": "0.1.0"}"#, "a2a-0.1", Known::Declared),
            (r#"{"protocolVersion": "0.2.6", "url": "x"}"#, "a2a-0.2", Known::Declared),
            (r#"{"protocolVersion": "0.2.6", "authentication": {"schemes": []}}"#, "a2a-0.2", Known::Declared),
            (r#"{"protocolVersion": "", "authentication": {"schemes": []}, "url": "x"}"#, "a2a-0.1", Known::Inferred),
            (r#"{"authentication": {"schemes": ["bearer"]}}"#, "a2a-0.1", Known::Inferred),
            (r#"{"authentication": {"type": "none"}, "url": "x"}"#, "a2a-0.3", Known::Assumed),
            (r#"{"authentication": "none", "url": "x"}"#, "a2a-0.3", Known::Assumed),
            (r#"{"authentication": {"schemes": []}, "securitySchemes": {}, "url": "x"}"#, "a2a-0.3", Known::Assumed),
            (r#"{"authentication": null, "url": "x"}"#, "a2a-0.3", Known::Assumed),
            (r#"{"protocolVersion": 0.2, "authentication": {"schemes": []}, "url": "x"}"#, "a2a-0.3", Known::Assumed),
            (r#"{"protocolVersion": "0.3", "authentication": {"schemes": []}}"#, "a2a-0.3", Known::Declared),
            (r#"{"protocolVersion": "1.0.0", "url": "x"}"#, "a2a-0.3", Known::Inferred),
            (r#"{"protocolVersion": "2025-06-18", "url": "x"}"#, "a2a-0.3", Known::Assumed),
            (r#"{"protocolVersion": "v0.3", "url": "x"}"#, "a2a-0.3", Known::Assumed),
            (r#"{"protocolVersion": "1.0.0"}"#, "a2a-undetermined", Known::Undetermined),
            (r#"{"supportedInterfaces": null}"#, "a2a-undetermined", Known::Undetermined),
        ];
        for (card, name, known) in rows {
            let document = Document::from_text(card);
            let (profile, how) = profile(document.root().expect("it parses"), None);
            assert_eq!((profile.name, how), (name, known), "{card}");
        }
    }

    #[test]
    fn without_an_address_only_what_cards_hold_tells() {
        let is_card = |members: &str| {
            let text = format!(r#"{{"name": "x", "description": "y", "version": "1", {members}}}"#);
            looks_like_a_card(Document::from_text(&text).root().expect("it parses"))
        };
        for members in [
            r#""capabilities": {}"#,
            r#""capabilities": {"push_notifications": false}"#,
            r#""capabilities": ["pay"], "skills": [{"id": "pay"}]"#,
            r#""capabilities": ["pay"], "url": "https://x.example""#,
            r#""capabilities": ["pay"], "@type": "AgentCard""#,
            r#""capabilities": ["pay"], "protocol": {"type": "a2a"}"#,
            r#""skills": [{"id": "pay"}], "registrations": [{"standard": "ERC-8004"}]"#,
            r#""type": "eip-8004", "skills": [], "url": "https://x.example""#,
        ] {
            assert!(is_card(members), "{members}");
        }
        for members in [
            r#""capabilities": ["pay"]"#,
            r#""capabilities": [{"id": "analyze", "kind": "cli"}]"#,
            r#""capabilities": {"web_development": ["APIs"]}"#,
            r#""capabilities": "pay", "skills": "/skills.md""#,
            r#""skills": ["pay"]"#,
            r#""capabilities": ["pay"], "url": null"#,
            r#""$schema": "https://erc8004.org/agent.json", "skills": [{"id": "pay"}]"#,
            r#""x402Version": 1, "skills": [{"id": "pay"}]"#,
        ] {
            assert!(!is_card(members), "{members}");
        }
    }

    #[test]
    fn a_stated_version_wins_unless_the_card_shows_more() {
        let of =
            |card: &str, stated| profile(Document::from_text(card).root().expect("it parses"), Some(stated)).0.name;
        assert_eq!(of(r#"{"url": "x"}"#, "1.0"), "a2a-1.0");
        assert_eq!(of(r#"{"url": "x", "supportedInterfaces": []}"#, "1.0"), "a2a-hybrid");
        assert_eq!(of(r#"{"name": "x"}"#, "0.3"), "a2a-0.3");
        assert_eq!(of(r#"{"url": "x"}"#, "7"), "a2a-0.3");
    }
}
