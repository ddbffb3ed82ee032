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

/// Members that only cards have: a name, a description, a version and a url alone are any manifest.
const TELLING_MEMBERS: &[&str] = &[
    "capabilities",
    "skills",
    "defaultInputModes",
    "default_input_modes",
    "defaultOutputModes",
    "default_output_modes",
    "supportedInterfaces",
    "supported_interfaces",
    "additionalInterfaces",
    "additional_interfaces",
    "preferredTransport",
    "preferred_transport",
];

/// Whether an object has enough of a card to be judged as one.
pub(crate) fn looks_like_a_card(root: Node<'_>) -> bool {
    let has = |name: &&str| root.get(name).is_some();
    let members = CARD_MEMBERS.iter().filter(|names| names.iter().any(has)).count();
    // Servers of MCP have capabilities too, as an object, and say in it or beside it that they are such.
    let is_of_a_server =
        |capabilities: Node<'_>| capabilities.kind() == Type::Object && crate::mcp::looks_like_a_server(root);
    let tells = |name: &&str| match root.get(name) {
        Some(member) => *name != "capabilities" || !is_of_a_server(member),
        None => false,
    };
    members >= 3 && TELLING_MEMBERS.iter().any(tells)
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
    if is_blank && card.given("authentication").is_some() {
        return (V0_1, Known::Inferred);
    }
    match (release, url) {
        (Some((0, 3)), _) => (V0_3, Known::Declared),
        (Some((major, _)), Some(_)) if major >= 1 => (V0_3, Known::Inferred),
        (_, Some(_)) => (V0_3, Known::Assumed),
        (_, None) => (UNDETERMINED, Known::Undetermined),
    }
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
            (r#"{"protocolVersion": "0.2.6", "authentication": {}}"#, "a2a-0.2", Known::Declared),
            (r#"{"protocolVersion": "", "authentication": {}, "url": "x"}"#, "a2a-0.1", Known::Inferred),
            (r#"{"authentication": {}}"#, "a2a-0.1", Known::Inferred),
            (r#"{"authentication": null, "url": "x"}"#, "a2a-0.3", Known::Assumed),
            (r#"{"protocolVersion": 0.2, "authentication": {}, "url": "x"}"#, "a2a-0.3", Known::Assumed),
            (r#"{"protocolVersion": "0.3", "authentication": {}}"#, "a2a-0.3", Known::Declared),
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
    fn a_stated_version_wins_unless_the_card_shows_more() {
        let of =
            |card: &str, stated| profile(Document::from_text(card).root().expect("it parses"), Some(stated)).0.name;
        assert_eq!(of(r#"{"url": "x"}"#, "1.0"), "a2a-1.0");
        assert_eq!(of(r#"{"url": "x", "supportedInterfaces": []}"#, "1.0"), "a2a-hybrid");
        assert_eq!(of(r#"{"name": "x"}"#, "0.3"), "a2a-0.3");
        assert_eq!(of(r#"{"url": "x"}"#, "7"), "a2a-0.3");
    }
}
