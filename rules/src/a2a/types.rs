//! JSON types: what a card holds against what the schema of its release gives. These rules end the work on a value.

use super::names::is_snake_case_of;
use super::table::{EVERY, is_item, known, members_at};
use crate::document::{Node, Type};
use crate::judge::{Context, Occurrences};
use crate::kind::Kind;
use crate::rule::{Basis, Check, Impact, Rule, Severity, Stops, fires, silent};
use crate::shape::{Field, Holds};
use crate::text::quote;

pub(super) const RULES: &[&Rule] = &[&WRONG_TYPE, &FLAG_NOT_BOOLEAN, &ITEM_TYPE, &NULL_VALUE];

crate::rule! {
    /// A member has the JSON type that the schema gives.
    ///
    /// Clients that read cards into typed structures refuse the whole card for one wrong type. Numbers and booleans never
    /// stand for strings: `1.0` and `"1.0"` are different values.
    static WRONG_TYPE = {
        id: "a2a/wrong-type",
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        impact_evidence: "a2a-sdk 0.3.26 and 1.3.0, @a2a-js/sdk 1.3.0, 2026-11",
        clients: &["a2a-sdk 0.3.26: refuses (0.3)", "a2a-sdk 1.3.0: refuses (0.3, 1.0)"],
        rank: 7,
        versions: EVERY,
        on: &[Kind::AgentCard],
        place: "/**",
        fix: "Use the JSON type of the schema.",
        spec: "A2A 1.0 §4.4, §4.5, §5.5; 0.3 §5.5",
        seeds: &[
            "reader:Wrong type", "gaip:A2A_CAPABILITIES_INVALID", "gaip:A2A_DEFAULT_MODES_INVALID",
            "gaip:A2A_DESCRIPTION_INVALID", "gaip:A2A_VERSION_INVALID", "gaip:A2A_EXTENSIONS_INVALID",
            "gaip:A2A_PROTOCOL_VERSION_INVALID", "gaip:A2A_PROVIDER_INVALID", "gaip:A2A_SECURITY_REQUIREMENTS_INVALID",
            "gaip:A2A_SECURITY_SCHEMES_INVALID", "gaip:A2A_SKILLS_ARRAY_REQUIRED", "gaip:A2A_SKILL_DESCRIPTION_INVALID",
            "gaip:A2A_SKILL_EXAMPLES_INVALID", "gaip:A2A_SKILL_MODES_INVALID", "gaip:A2A_SKILL_TAGS_INVALID",
            "gaip:A2A_SUPPORTED_INTERFACES_INVALID", "gaip:A2A_NAME_REQUIRED", "gaip:A2A_SKILL_ID_REQUIRED",
            "gaip:A2A_SKILL_NAME_REQUIRED",
        ],
        examples: &[
            fires(&["/version"], r#"{"version": 2.1}"#),
            fires(&["/capabilities"], r#"{"capabilities": ["streaming"]}"#),
            fires(&["/securitySchemes"], r#"{"securitySchemes": [{"type": "http"}]}"#).over("a2a-0.3"),
            fires(&["/provider"], r#"{"provider": "Harbour Office"}"#),
            silent(r#"{"capabilities": {"extensions": [{"uri": "urn:tides:v1", "params": {"name": 1}}]}}"#),
        ],
        stops: Stops::Value,
        check: Check::Document(wrong_type),
    }
}

fn wrong_type(card: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    known(card, context, |node, field| {
        let is_ours = field.holds != Holds::Flag && !is_item(field) && field.at != "/signatures";
        if is_ours && !node.is_null() && !field.holds.admits(node.kind()) {
            let added = out.add(node, misfit(node, field));
            if context.profile.name == "a2a-1.0" && is_read_as_empty(node, field) {
                added.impact(Impact::Degrades);
            }
        }
    });
}

/// Whether readers made from protocol buffers take a value for an empty message: they look for the names of its members
/// in a text or a list of texts as they would in an object, find none, and read on.
fn is_read_as_empty(node: Node<'_>, field: &Field) -> bool {
    const MAPS: &[&str] = &["/securitySchemes", "/scopes", "/schemes"];
    let is_message = field.holds == Holds::Object && !MAPS.iter().any(|map| field.at.ends_with(map));
    let names_no_member = |item: Node<'_>| item.text().is_some_and(|text| !names_a_member(text, field));
    is_message
        && match node.kind() {
            Type::String => true,
            Type::Array => node.items().all(names_no_member),
            Type::Null | Type::Bool | Type::Number | Type::Object => false,
        }
}

/// Whether a text is the name of a member of that message, in either spelling.
fn names_a_member(text: &str, field: &Field) -> bool {
    members_at(field.at).any(|name| text == name || is_snake_case_of(text, name))
}

fn misfit(node: Node<'_>, field: &Field) -> String {
    let is = node.kind().named();
    match node.key() {
        Some(key) => format!("{} is {is}, not {}", quote(key), field.holds.named()),
        None => format!("this item is {is}, not {}", field.holds.named()),
    }
}

crate::rule! {
    /// A flag is `true` or `false`.
    ///
    /// `"true"` and `1` are no booleans: strict readers refuse the card, and lenient ones take `"false"` for true.
    static FLAG_NOT_BOOLEAN = {
        id: "a2a/flag-not-boolean",
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        impact_evidence: "a2a-sdk 0.3.26 and 1.3.0, @a2a-js/sdk 1.3.0, 2026-11",
        clients: &["a2a-sdk 1.3.0: refuses (0.3, 1.0)"],
        versions: EVERY,
        on: &[Kind::AgentCard],
        place: "/capabilities/streaming, /capabilities/pushNotifications, /capabilities/extendedAgentCard, \
            /capabilities/stateTransitionHistory, /capabilities/extensions/*/required, \
            /supportsAuthenticatedExtendedCard, /securitySchemes/*/**/pkceRequired",
        fix: "Write true or false without quotes.",
        spec: "A2A 1.0 §4.4.3, §4.4.4; 0.3 §5.5, §5.5.2",
        seeds: &["reader:Wrong type", "gaip:A2A_CAPABILITY_FLAG_INVALID", "gaip:A2A_FLAG_INVALID"],
        examples: &[
            fires(&["/capabilities/streaming"], r#"{"capabilities": {"streaming": "true"}}"#),
            fires(&["/supportsAuthenticatedExtendedCard"], r#"{"supportsAuthenticatedExtendedCard": 1}"#).over("a2a-0.3"),
            silent(r#"{"capabilities": {"streaming": true, "pushNotifications": false}}"#),
        ],
        stops: Stops::Value,
        check: Check::Document(flag_not_boolean),
    }
}

fn flag_not_boolean(card: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    known(card, context, |node, field| {
        if field.holds == Holds::Flag && !node.is_null() && !field.holds.admits(node.kind()) {
            out.add(node, misfit(node, field));
        }
    });
}

crate::rule! {
    /// Items of an array and values of a map have the type that the schema gives.
    ///
    /// One stray string among the skills is enough for a typed reader to refuse the card. `null` is no item either.
    static ITEM_TYPE = {
        id: "a2a/item-type",
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        impact_evidence: "a2a-sdk 0.3.26 and 1.3.0, @a2a-js/sdk 1.3.0, 2026-11",
        clients: &[
            "a2a-sdk 0.3.26: refuses (0.3)", "a2a-sdk 1.3.0: refuses (0.3, 1.0)", "@a2a-js/sdk 1.3.0: refuses (0.3)",
        ],
        rank: 7,
        versions: EVERY,
        on: &[Kind::AgentCard],
        place: "/supportedInterfaces/*, /additionalInterfaces/*, /skills/*, /skills/*/tags/*, /skills/*/examples/*, \
            /defaultInputModes/*, /defaultOutputModes/*, /skills/*/inputModes/*, /skills/*/outputModes/*, \
            /capabilities/extensions/*, /securitySchemes/*, /securityRequirements/*, /security/*, /signatures/*",
        fix: "Replace the element by one of the right type.",
        spec: "A2A 1.0 §4.4, §4.5; 0.3 §5.5",
        seeds: &[
            "reader:Wrong type", "gaip:A2A_INTERFACE_OBJECT_REQUIRED", "gaip:A2A_SKILL_OBJECT_REQUIRED",
            "gaip:A2A_SECURITY_SCHEME_INVALID", "gaip:A2A_DEFAULT_MODES_INVALID", "gaip:A2A_SKILL_MODES_INVALID",
            "gaip:A2A_SKILL_TAGS_INVALID", "gaip:A2A_SKILL_EXAMPLES_INVALID", "gaip:A2A_EXTENSIONS_INVALID",
            "gaip:A2A_SECURITY_REQUIREMENTS_INVALID",
        ],
        examples: &[
            fires(&["/skills/0/tags/1"], r#"{"skills": [{"tags": ["tides", 7]}]}"#),
            fires(&["/skills/0"], r#"{"skills": ["tides"]}"#),
            fires(&["/securitySchemes/spare"], r#"{"securitySchemes": {"spare": "bearer"}}"#),
            silent(r#"{"skills": [{"tags": ["7"]}]}"#),
        ],
        stops: Stops::Value,
        check: Check::Document(item_type),
    }
}

fn item_type(card: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    known(card, context, |node, field| {
        if is_item(field) && !field.holds.admits(node.kind()) {
            out.add(node, misfit(node, field));
        }
    });
}

crate::rule! {
    /// An optional member is left out rather than `null`.
    ///
    /// Protocol buffers read `null` as unset, but schema validators of 0.3 and hand-written readers may refuse it.
    static NULL_VALUE = {
        id: "a2a/null-value",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        basis: Basis::Hint,
        versions: EVERY,
        on: &[Kind::AgentCard],
        place: "/** optional members",
        fix: "Leave the member out.",
        spec: "A2A 1.0 §5.7; 0.3 §5.5; ProtoJSON",
        examples: &[
            fires(
                &["/iconUrl"],
                r#"{"name": "Tides", "description": "Tide tables.", "version": "1", "iconUrl": null, "capabilities": {},
                    "supportedInterfaces":
                        [{"url": "https://tides.example.com/a2a", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
                    "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
                    "skills": [{"id": "a", "name": "A", "description": "Looks up tides.", "tags": ["a"]}]}"#,
            ).whole(),
            silent(r#"{"capabilities": {"extensions": [{"uri": "urn:tides:v1", "params": {"a": [null]}}]}}"#),
        ],
        stops: Stops::Value,
        yields_to: &["a2a/version-undeclared", "a2a/preferred-transport-required"],
        check: Check::Document(null_value),
    }
}

fn null_value(card: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    known(card, context, |node, field| {
        if node.is_null() && !is_item(field) && !field.is_required_in(context.profile.versions) {
            out.add(node, format!("{} is null", quote(field.name())));
        }
    });
}
