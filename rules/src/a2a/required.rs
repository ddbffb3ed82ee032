//! Members that a release requires: there at all, and with something in them.

use super::names::has_in_snake_case;
use super::table::{EVERY, SINCE_0_2, is_item, known};
use crate::document::{Node, Type};
use crate::judge::{Context, Later, Occurrences};
use crate::kind::Kind;
use crate::rule::{Basis, Check, Impact, Rule, Severity, fires, silent};
use crate::shape::Holds;
use crate::text::quote;

pub(super) const RULES: &[&Rule] = &[
    &NAME_REQUIRED,
    &DESCRIPTION_REQUIRED,
    &VERSION_REQUIRED,
    &CAPABILITIES_REQUIRED,
    &DEFAULT_INPUT_MODES_REQUIRED,
    &DEFAULT_OUTPUT_MODES_REQUIRED,
    &SKILLS_REQUIRED,
    &NO_ENDPOINT_DECLARED,
    &EMPTY_REQUIRED_STRING,
    &EMPTY_OPTIONAL_STRING,
    &REQUIRED_ARRAY_EMPTY,
    &SKILLS_EMPTY,
    &MODES_EMPTY,
];

/// Reports a required member that is absent or null. Its snake_case form is a2a/snake-case-field's.
pub(super) fn demand(object: Node<'_>, member: &str, out: &mut Occurrences) {
    if object.kind() != Type::Object {
        return;
    }
    match object.get(member) {
        Some(value) if !value.is_null() => {}
        Some(_) => drop(out.add_missing(object, member, Later(|| format!("`{member}` is null")))),
        None if has_in_snake_case(object, member) => {}
        None => drop(out.add_missing(object, member, Later(|| format!("`{member}` is missing")))),
    }
}

/// Whether a text says nothing.
pub(super) fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}

crate::rule! {
    /// A card has a name.
    ///
    /// It is what people and registries call the agent by.
    static NAME_REQUIRED = {
        id: "a2a/name-required",
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        impact_overrides: &[("0.1", Impact::Cosmetic), ("0.2", Impact::Cosmetic), ("1.0", Impact::Cosmetic)],
        impact_evidence: "a2a-sdk 0.3.26 and 1.3.0, @a2a-js/sdk 1.3.0, 2026-11",
        clients: &["a2a-sdk 0.3.26: refuses (0.3)"],
        rank: 9,
        versions: EVERY,
        on: &[Kind::AgentCard],
        place: "/name",
        fix: "Add `name`.",
        spec: "A2A 1.0 §4.4.1, §5.7; 0.3 §5.5",
        seeds: &["gaip:A2A_NAME_REQUIRED", "reader:Missing required field"],
        examples: &[
            fires(&["/name"], r#"{"name": null}"#),
            fires(&["/name"], r#"{"name": null}"#).over("a2a-0.3"),
            silent(r#"{"name": "T"}"#),
        ],
        check: Check::Document(name_required),
    }
}

fn name_required(card: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    demand(card, "name", out);
}

crate::rule! {
    /// A card has a description.
    ///
    /// People and models choose an agent by it. 0.1 did not ask for one.
    static DESCRIPTION_REQUIRED = {
        id: "a2a/description-required",
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        impact_overrides: &[("0.2", Impact::Cosmetic), ("1.0", Impact::Cosmetic)],
        impact_evidence: "a2a-sdk 0.3.26 and 1.3.0, @a2a-js/sdk 1.3.0, 2026-11",
        clients: &["a2a-sdk 0.3.26: refuses (0.3)"],
        versions: SINCE_0_2,
        on: &[Kind::AgentCard],
        place: "/description",
        fix: "Add `description`.",
        spec: "A2A 1.0 §4.4.1, §5.7; 0.3 §5.5",
        seeds: &["gaip:A2A_DESCRIPTION_MISSING", "reader:Missing required field", "inspector:required-fields"],
        examples: &[
            fires(&["/description"], r#"{"description": null}"#),
            silent(r#"{"description": "Tides."}"#),
        ],
        check: Check::Document(description_required),
    }
}

fn description_required(card: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    demand(card, "description", out);
}

crate::rule! {
    /// A card has the agent's own version.
    ///
    /// Without it nobody can tell that the agent behind the card has changed.
    static VERSION_REQUIRED = {
        id: "a2a/version-required",
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        impact_overrides: &[("0.1", Impact::Cosmetic), ("0.2", Impact::Cosmetic), ("1.0", Impact::Cosmetic)],
        impact_evidence: "a2a-sdk 0.3.26 and 1.3.0, @a2a-js/sdk 1.3.0, 2026-11",
        clients: &["a2a-sdk 0.3.26: refuses (0.3)"],
        rank: 9,
        versions: EVERY,
        on: &[Kind::AgentCard],
        place: "/version",
        fix: "Add `version`.",
        spec: "A2A 1.0 §4.4.1, §5.7; 0.3 §5.5",
        seeds: &["gaip:A2A_VERSION_MISSING", "reader:Missing required field", "inspector:required-fields"],
        examples: &[
            fires(&["/version"], r#"{"version": null}"#),
            silent(r#"{"version": "2026-11-03"}"#),
        ],
        check: Check::Document(version_required),
    }
}

fn version_required(card: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    demand(card, "version", out);
}

crate::rule! {
    /// A card says what the agent can do.
    ///
    /// Clients decide by `capabilities` whether to stream. An empty object is a plain no to everything.
    static CAPABILITIES_REQUIRED = {
        id: "a2a/capabilities-required",
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        impact_overrides: &[("0.1", Impact::Cosmetic), ("0.2", Impact::Cosmetic), ("1.0", Impact::Cosmetic)],
        impact_evidence: "a2a-sdk 0.3.26 and 1.3.0, @a2a-js/sdk 1.3.0, 2026-11",
        clients: &["a2a-sdk 0.3.26: refuses (0.3)", "@a2a-js/sdk 1.3.0: refuses (0.3)"],
        rank: 9,
        versions: EVERY,
        on: &[Kind::AgentCard],
        place: "/capabilities",
        fix: "Add `capabilities`.",
        spec: "A2A 1.0 §4.4.1, §5.7; 0.3 §5.5",
        seeds: &["gaip:A2A_CAPABILITIES_MISSING", "reader:Missing required field"],
        examples: &[
            fires(&["/capabilities"], r#"{"capabilities": null}"#),
            silent(
                r#"{"name": "Tides", "description": "Tide tables.", "version": "1", "capabilities": {},
                    "supportedInterfaces":
                        [{"url": "https://tides.example.com/a2a", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
                    "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
                    "skills": [{"id": "a", "name": "A", "description": "Looks up tides.", "tags": ["a"]}]}"#,
            ).whole(),
        ],
        check: Check::Document(capabilities_required),
    }
}

fn capabilities_required(card: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    demand(card, "capabilities", out);
}

crate::rule! {
    /// A card says what media types the agent takes.
    ///
    /// Since 0.2 there is no default: a client that finds none does not know what to send.
    static DEFAULT_INPUT_MODES_REQUIRED = {
        id: "a2a/default-input-modes-required",
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        impact_overrides: &[("0.2", Impact::Cosmetic), ("1.0", Impact::Cosmetic)],
        impact_evidence: "a2a-sdk 0.3.26 and 1.3.0, @a2a-js/sdk 1.3.0, 2026-11",
        clients: &["a2a-sdk 0.3.26: refuses (0.3)", "@a2a-js/sdk 1.3.0: refuses (0.3)"],
        rank: 6,
        versions: SINCE_0_2,
        on: &[Kind::AgentCard],
        place: "/defaultInputModes",
        fix: "Add `defaultInputModes`.",
        spec: "A2A 1.0 §4.4.1, §5.7; 0.3 §5.5",
        seeds: &["gaip:A2A_DEFAULT_INPUT_MODES_MISSING", "inspector:io-modes", "reader:Missing required field"],
        examples: &[
            fires(&["/defaultInputModes"], r#"{"defaultInputModes": null}"#),
            silent(r#"{"defaultInputModes": ["image/png"]}"#),
        ],
        check: Check::Document(default_input_modes_required),
    }
}

fn default_input_modes_required(card: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    demand(card, "defaultInputModes", out);
}

crate::rule! {
    /// A card says what media types the agent gives.
    ///
    /// Since 0.2 there is no default: a client that finds none does not know what it will get.
    static DEFAULT_OUTPUT_MODES_REQUIRED = {
        id: "a2a/default-output-modes-required",
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        impact_overrides: &[("0.2", Impact::Cosmetic), ("1.0", Impact::Cosmetic)],
        impact_evidence: "a2a-sdk 0.3.26 and 1.3.0, @a2a-js/sdk 1.3.0, 2026-11",
        clients: &["a2a-sdk 0.3.26: refuses (0.3)", "@a2a-js/sdk 1.3.0: refuses (0.3)"],
        rank: 6,
        versions: SINCE_0_2,
        on: &[Kind::AgentCard],
        place: "/defaultOutputModes",
        fix: "Add `defaultOutputModes`.",
        spec: "A2A 1.0 §4.4.1, §5.7; 0.3 §5.5",
        seeds: &["gaip:A2A_DEFAULT_OUTPUT_MODES_MISSING", "inspector:io-modes", "reader:Missing required field"],
        examples: &[
            fires(&["/defaultOutputModes"], r#"{"defaultOutputModes": null}"#),
            silent(r#"{"defaultOutputModes": ["image/png"]}"#),
        ],
        check: Check::Document(default_output_modes_required),
    }
}

fn default_output_modes_required(card: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    demand(card, "defaultOutputModes", out);
}

crate::rule! {
    /// A card lists the agent's skills.
    ///
    /// They are what the agent is looked up and chosen for.
    static SKILLS_REQUIRED = {
        id: "a2a/skills-required",
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        impact_overrides: &[("0.1", Impact::Cosmetic), ("0.2", Impact::Cosmetic), ("1.0", Impact::Cosmetic)],
        impact_evidence: "a2a-sdk 0.3.26 and 1.3.0, @a2a-js/sdk 1.3.0, 2026-11",
        clients: &["a2a-sdk 0.3.26: refuses (0.3)", "@a2a-js/sdk 1.3.0: refuses (0.3)"],
        rank: 8,
        versions: EVERY,
        on: &[Kind::AgentCard],
        place: "/skills",
        fix: "Add `skills`.",
        spec: "A2A 1.0 §4.4.1, §5.7; 0.3 §5.5",
        seeds: &["gaip:A2A_SKILLS_ARRAY_REQUIRED", "inspector:skill-quality", "reader:Missing required field"],
        examples: &[
            fires(&["/skills"], r#"{"skills": null}"#),
            silent(r#"{"skills": [{"id": "only"}]}"#),
        ],
        check: Check::Document(skills_required),
    }
}

fn skills_required(card: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    demand(card, "skills", out);
}

crate::rule! {
    /// A card says where the agent is.
    ///
    /// The endpoint is `url` in the releases before 1.0 and an entry of `supportedInterfaces` since. With neither, nobody
    /// can call the agent, whatever else the card says.
    static NO_ENDPOINT_DECLARED = {
        id: "a2a/no-endpoint-declared",
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        impact_evidence: "a2a-sdk 0.3.26 and 1.3.0, @a2a-js/sdk 1.3.0, 2026-11",
        clients: &[
            "a2a-sdk 0.3.26: refuses (0.3)", "a2a-sdk 1.3.0: refuses (0.3, 1.0)", "@a2a-js/sdk 1.3.0: refuses (1.0)",
            "@a2a-js/sdk 1.3.0: limits (0.3)",
        ],
        rank: 3,
        versions: EVERY,
        on: &[Kind::AgentCard],
        place: "/supportedInterfaces, /url",
        fix: "Declare the endpoint: `supportedInterfaces` with url, protocolBinding and protocolVersion (1.0), or \
            `url` (0.3).",
        spec: "A2A 1.0 §4.4.1, §8.3.1; 0.3 §5.5, §5.6.1",
        seeds: &["reader:Missing required field", "inspector:required-fields"],
        examples: &[
            fires(&["/supportedInterfaces"], r#"{"supportedInterfaces": []}"#),
            fires(&["/url"], r#"{"url": " "}"#).over("a2a-0.3"),
            fires(&[""], r#"{"supportedInterfaces": null}"#),
            silent(r#"{"url": "https://tides.example.com/"}"#).over("a2a-0.3"),
        ],
        check: Check::Document(no_endpoint_declared),
    }
}

fn no_endpoint_declared(card: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if declares_endpoint(card) {
        return;
    }
    let empty = ["url", "supportedInterfaces"].into_iter().find(|member| card.get(member).is_some());
    let message = "the card names no address to call";
    match empty {
        Some(member) => drop(out.add_missing(card, member, message)),
        None => drop(out.add(card, message)),
    }
}

/// Whether there is something to call. What has a wrong type or name counts: other rules speak about that.
pub(super) fn declares_endpoint(card: Node<'_>) -> bool {
    let by_url = card.given("url").is_some_and(|url| url.text().is_none_or(|text| !is_blank(text)));
    let by_interface = card.given("supportedInterfaces").is_some_and(|list| !list.is_empty());
    by_url || by_interface || has_in_snake_case(card, "supportedInterfaces")
}

/// Required strings that may not be empty; versions, schemes and extensions have rules of their own.
const MEANINGFUL: &[&str] = &[
    "/name",
    "/description",
    "/version",
    "/skills/*/id",
    "/skills/*/name",
    "/skills/*/description",
    "/provider/organization",
    "/provider/url",
    "/supportedInterfaces/*/url",
    "/supportedInterfaces/*/protocolBinding",
];

crate::rule! {
    /// A required string says something.
    ///
    /// In the protocol buffers of 1.0 an empty string is the same as none at all. Earlier schemas set no least length.
    static EMPTY_REQUIRED_STRING = {
        id: "a2a/empty-required-string",
        severity: Severity::Error,
        severity_overrides: &[("0.1", Severity::Warning), ("0.2", Severity::Warning), ("0.3", Severity::Warning)],
        impact: Some(Impact::Cosmetic),
        versions: EVERY,
        on: &[Kind::AgentCard],
        place: "/name, /description, /version, /skills/*/id, /skills/*/name, /skills/*/description, \
            /provider/organization, /provider/url, /supportedInterfaces/*/url, \
            /supportedInterfaces/*/protocolBinding",
        fix: "Give the member a value.",
        spec: "A2A 1.0 §5.7",
        seeds: &[
            "gaip:A2A_DESCRIPTION_INVALID", "gaip:A2A_VERSION_INVALID", "gaip:A2A_NAME_REQUIRED",
            "gaip:A2A_SKILL_ID_REQUIRED", "gaip:A2A_SKILL_NAME_REQUIRED", "gaip:A2A_SKILL_DESCRIPTION_INVALID",
            "reader:Empty string",
        ],
        examples: &[
            fires(&["/skills/0/description"], r#"{"skills": [{"description": "  "}]}"#),
            fires(&["/name"], r#"{"name": ""}"#).over("a2a-0.3"),
            silent(r#"{"name": "T"}"#),
        ],
        check: Check::Document(empty_required_string),
    }
}

fn empty_required_string(card: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    known(card, context, |node, field| {
        if field.holds == Holds::Text
            && node.kind() == Type::String
            && node.text().is_some_and(is_blank)
            && field.is_required_in(context.profile.versions)
            && MEANINGFUL.contains(&field.at)
        {
            out.add(node, format!("{} is empty", quote(field.name())));
        }
    });
}

crate::rule! {
    /// An optional string is left out rather than empty.
    ///
    /// An empty link or description tells a reader nothing, and some readers take it for a value.
    static EMPTY_OPTIONAL_STRING = {
        id: "a2a/empty-optional-string",
        basis: Basis::Hint,
        versions: EVERY,
        on: &[Kind::AgentCard],
        place: "/** optional string members",
        fix: "Drop the member or give it a value.",
        spec: "not in A2A",
        seeds: &["reader:Empty string"],
        examples: &[
            fires(&["/documentationUrl"], r#"{"documentationUrl": ""}"#),
            fires(&["/supportedInterfaces/0/tenant"], r#"{"supportedInterfaces": [{"tenant": " "}]}"#),
            silent(r#"{"capabilities": {"extensions": [{"uri": "urn:tides:v1", "params": {"a": ""}}]}}"#),
        ],
        yields_to: &["a2a/version-empty", "a2a/preferred-transport-required"],
        check: Check::Document(empty_optional_string),
    }
}

fn empty_optional_string(card: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    known(card, context, |node, field| {
        if field.holds == Holds::Text
            && node.kind() == Type::String
            && node.text().is_some_and(is_blank)
            && !is_item(field)
            && !field.is_required_in(context.profile.versions)
        {
            out.add(node, format!("{} is empty", quote(field.name())));
        }
    });
}

crate::rule! {
    /// A required array has at least one element.
    ///
    /// 1.0 asks that required members are present *and set*, and an empty list is an unset one.
    static REQUIRED_ARRAY_EMPTY = {
        id: "a2a/required-array-empty",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: &["1.0"],
        on: &[Kind::AgentCard],
        place: "/supportedInterfaces, /defaultInputModes, /defaultOutputModes, /skills, /skills/*/tags",
        fix: "Add at least one element.",
        spec: "A2A 1.0 §5.7",
        seeds: &["reader:Required array is empty", "gaip:A2A_NO_SKILLS_DECLARED", "inspector:skill-quality"],
        examples: &[
            fires(&["/defaultInputModes"], r#"{"defaultInputModes": []}"#),
            fires(&["/skills/0/tags"], r#"{"skills": [{"tags": []}]}"#),
            fires(&["/supportedInterfaces"], r#"{"supportedInterfaces": []}"#).over("a2a-hybrid"),
            silent(r#"{"skills": [{"inputModes": []}]}"#),
        ],
        check: Check::Document(required_array_empty),
    }
}

fn required_array_empty(card: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if declares_endpoint(card) {
        report_empty(card, "supportedInterfaces", out);
    }
    for member in ["defaultInputModes", "defaultOutputModes", "skills"] {
        report_empty(card, member, out);
    }
    for skill in skills(card) {
        report_empty(skill, "tags", out);
    }
}

fn report_empty(object: Node<'_>, member: &str, out: &mut Occurrences) {
    if let Some(array) = object.get(member)
        && array.kind() == Type::Array
        && array.is_empty()
    {
        out.add(array, format!("`{member}` has no element"));
    }
}

/// The skills that are objects.
pub(super) fn skills(card: Node<'_>) -> impl Iterator<Item = Node<'_>> {
    card.get("skills").into_iter().flat_map(Node::items).filter(|skill| skill.kind() == Type::Object)
}

crate::rule! {
    /// An older card lists at least one skill.
    ///
    /// The schemas before 1.0 set no least length, but an agent without skills cannot be chosen for anything.
    static SKILLS_EMPTY = {
        id: "a2a/skills-empty",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        versions: &["0.1", "0.2", "0.3"],
        on: &[Kind::AgentCard],
        place: "/skills",
        fix: "Declare at least one skill.",
        spec: "A2A 0.3 §5.5.4",
        seeds: &["gaip:A2A_NO_SKILLS_DECLARED", "inspector:skill-quality"],
        examples: &[
            fires(&["/skills"], r#"{"skills": []}"#),
            silent(r#"{"skills": [{"id": "only"}]}"#),
        ],
        check: Check::Document(skills_empty),
    }
}

fn skills_empty(card: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    if !context.profile.has("1.0") {
        report_empty(card, "skills", out);
    }
}

crate::rule! {
    /// An older card's required arrays are not empty.
    ///
    /// An empty list of media types or tags passes the schema and tells a client nothing.
    static MODES_EMPTY = {
        id: "a2a/modes-empty",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        basis: Basis::Hint,
        versions: &["0.2", "0.3"],
        on: &[Kind::AgentCard],
        place: "/defaultInputModes, /defaultOutputModes, /skills/*/tags",
        fix: "List at least one value.",
        spec: "A2A 0.3 §5.5",
        examples: &[
            fires(&["/defaultInputModes"], r#"{"defaultInputModes": []}"#),
            fires(&["/skills/0/tags"], r#"{"skills": [{"tags": []}]}"#),
            silent(r#"{"skills": [{"inputModes": []}]}"#),
        ],
        check: Check::Document(modes_empty),
    }
}

fn modes_empty(card: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    if context.profile.has("1.0") {
        return;
    }
    report_empty(card, "defaultInputModes", out);
    report_empty(card, "defaultOutputModes", out);
    for skill in skills(card) {
        report_empty(skill, "tags", out);
    }
}
