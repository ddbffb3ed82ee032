//! Capabilities: extensions and the extended card.

use std::collections::HashSet;

use super::names::has_in_snake_case;
use super::required::{demand, is_blank};
use super::table::SINCE_0_2;
use crate::document::{Node, Type};
use crate::judge::{Context, Occurrences};
use crate::kind::Kind;
use crate::rule::{Basis, Check, Class, Impact, Rule, Severity, fires, silent};
use crate::text::{is_absolute_uri, quote};

pub(super) const RULES: &[&Rule] = &[
    &EXTENSION_URI_REQUIRED,
    &EXTENSION_URI_INVALID,
    &EXTENSION_DUPLICATE,
    &EXTENSION_UNVERSIONED,
    &EXTENSION_REQUIRED,
    &EXTENDED_CARD_NO_SCHEME,
];

/// The extensions that are objects.
fn extensions(card: Node<'_>) -> impl Iterator<Item = Node<'_>> {
    let list = card.get("capabilities").and_then(|capabilities| capabilities.get("extensions"));
    list.into_iter().flat_map(Node::items).filter(|extension| extension.kind() == Type::Object)
}

/// The URIs of extensions that say something.
fn uris(card: Node<'_>) -> impl Iterator<Item = (Node<'_>, &str)> {
    extensions(card)
        .filter_map(|extension| extension.get("uri"))
        .filter_map(|uri| Some((uri, uri.text()?)))
        .filter(|(_, text)| !is_blank(text))
}

crate::rule! {
    /// An extension has a URI.
    ///
    /// It is the name by which clients ask for it.
    static EXTENSION_URI_REQUIRED = {
        id: "a2a/extension-uri-required",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: SINCE_0_2,
        on: &[Kind::AgentCard],
        place: "/capabilities/extensions/*/uri",
        fix: "Add the extension's URI.",
        spec: "A2A 0.3 §5.5.2.1; 1.0 §4.4.4, §4.6.1",
        seeds: &["gaip:A2A_EXTENSION_URI_MISSING"],
        examples: &[
            fires(&["/capabilities/extensions/0/uri"], r#"{"capabilities": {"extensions": [{"description": "Units"}]}}"#),
            fires(&["/capabilities/extensions/0/uri"], r#"{"capabilities": {"extensions": [{"uri": ""}]}}"#).over("a2a-0.3"),
            silent(r#"{"capabilities": {"extensions": [{"uri": "https://tides.example.com/units/v1"}]}}"#),
        ],
        check: Check::Document(extension_uri_required),
    }
}

fn extension_uri_required(card: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for extension in extensions(card) {
        match extension.get("uri") {
            Some(uri) if uri.text().is_some_and(is_blank) => drop(out.add(uri, "`uri` is empty")),
            _ => demand(extension, "uri", out),
        }
    }
}

crate::rule! {
    /// An extension's name is an absolute URI.
    ///
    /// A bare word may be anybody's.
    static EXTENSION_URI_INVALID = {
        id: "a2a/extension-uri-invalid",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        versions: SINCE_0_2,
        on: &[Kind::AgentCard],
        place: "/capabilities/extensions/*/uri",
        fix: "Use an absolute, versioned URI.",
        spec: "A2A 1.0 §4.4.4, §4.6.3",
        examples: &[
            fires(&["/capabilities/extensions/0/uri"], r#"{"capabilities": {"extensions": [{"uri": "units-v1"}]}}"#),
            silent(r#"{"capabilities": {"extensions": [{"uri": "urn:tides:units:1.0"}]}}"#),
        ],
        check: Check::Document(extension_uri_invalid),
    }
}

fn extension_uri_invalid(card: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for (node, text) in uris(card).filter(|(_, text)| !is_absolute_uri(text)) {
        out.add(node, format!("{} is no absolute URI", quote(text)));
    }
}

crate::rule! {
    /// An extension is declared once.
    ///
    /// Of two declarations with different parameters nobody can say which one counts.
    static EXTENSION_DUPLICATE = {
        id: "a2a/extension-duplicate",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        versions: SINCE_0_2,
        on: &[Kind::AgentCard],
        place: "/capabilities/extensions/*/uri",
        fix: "Declare each extension once.",
        spec: "A2A 1.0 §4.4.4",
        examples: &[
            fires(
                &["/capabilities/extensions/1/uri"],
                r#"{"capabilities": {"extensions": [{"uri": "urn:tides:units:v1"}, {"uri": "urn:tides:units:v1"}]}}"#,
            ),
            silent(r#"{"capabilities": {"extensions": [{"uri": "urn:tides:units:v1"}, {"uri": "urn:tides:units:v2"}]}}"#),
        ],
        check: Check::Document(extension_duplicate),
    }
}

fn extension_duplicate(card: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let mut seen = HashSet::new();
    for (node, text) in uris(card) {
        if !seen.insert(text) {
            out.add(node, format!("extension {} is declared before", quote(text)));
        }
    }
}

crate::rule! {
    /// An extension's URI has a version in it.
    ///
    /// A breaking change asks for a new URI, and a version in it says that one was planned for.
    static EXTENSION_UNVERSIONED = {
        id: "a2a/extension-unversioned",
        basis: Basis::Hint,
        versions: SINCE_0_2,
        on: &[Kind::AgentCard],
        place: "/capabilities/extensions/*/uri",
        fix: "Put a version into the URI.",
        spec: "A2A 1.0 §4.6.3",
        examples: &[
            fires(
                &["/capabilities/extensions/0/uri"],
                r#"{"capabilities": {"extensions": [{"uri": "https://tides.example.com/units"}]}}"#,
            ),
            silent(r#"{"capabilities": {"extensions": [{"uri": "https://tides.example.com/units/2025-06-18"}]}}"#),
        ],
        yields_to: &["a2a/extension-uri-invalid"],
        check: Check::Document(extension_unversioned),
    }
}

fn extension_unversioned(card: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for (node, text) in uris(card).filter(|(_, text)| !has_version(text)) {
        out.add(node, format!("{} names no version", quote(text)));
    }
}

/// Whether a part between separators is `v1`, `1.0`, a date or the like.
fn has_version(uri: &str) -> bool {
    uri.split(|c: char| !c.is_alphanumeric() && c != '.').any(|part| {
        let numbers = part.strip_prefix(['v', 'V']).unwrap_or(part);
        let is_number = |number: &str| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
        numbers.split('.').all(is_number) || part.split('.').any(|p| p.strip_prefix(['v', 'V']).is_some_and(is_number))
    })
}

crate::rule! {
    /// An extension is demanded.
    ///
    /// A client that does not know it will be refused.
    static EXTENSION_REQUIRED = {
        id: "a2a/extension-required",
        class: Class::Fact,
        versions: SINCE_0_2,
        on: &[Kind::AgentCard],
        place: "/capabilities/extensions/*/required",
        fix: "Offer the extension as optional where possible.",
        spec: "A2A 1.0 §3.3.4, §4.4.4",
        examples: &[
            fires(
                &["/capabilities/extensions/0/required"],
                r#"{"capabilities": {"extensions": [{"uri": "urn:tides:units:v1", "required": true}]}}"#,
            ),
            silent(r#"{"capabilities": {"extensions": [{"uri": "urn:tides:units:v1", "required": false}]}}"#),
        ],
        check: Check::Document(extension_required),
    }
}

fn extension_required(card: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for required in extensions(card).filter_map(|extension| extension.get("required")) {
        if required.flag() == Some(true) {
            out.add(required, "clients without this extension are refused");
        }
    }
}

crate::rule! {
    /// Who announces an extended card says how to authenticate.
    ///
    /// The extended card is for authenticated callers only; without a scheme nobody can become one.
    static EXTENDED_CARD_NO_SCHEME = {
        id: "a2a/extended-card-no-scheme",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        security: true,
        versions: SINCE_0_2,
        on: &[Kind::AgentCard],
        place: "/capabilities/extendedAgentCard, /supportsAuthenticatedExtendedCard",
        fix: "Declare the scheme that guards the extended card.",
        spec: "A2A 1.0 §3.1.11, §13.3; 0.3 §7.10",
        examples: &[
            fires(
                &["/capabilities/extendedAgentCard"],
                r#"{"capabilities": {"extendedAgentCard": true}, "securitySchemes": null, "securityRequirements": null}"#,
            ),
            fires(
                &["/supportsAuthenticatedExtendedCard"],
                r#"{"supportsAuthenticatedExtendedCard": true, "securitySchemes": null, "security": null}"#,
            ).over("a2a-0.3"),
            silent(r#"{"capabilities": {"extendedAgentCard": true}}"#),
            silent(
                r#"{"capabilities": {"extendedAgentCard": true}, "securitySchemes": null, "securityRequirements": null,
                "authentication": {"schemes": ["bearer"]}}"#,
            )
            .beside(&["a2a/authentication-outdated"]),
        ],
        check: Check::Document(extended_card_no_scheme),
    }
}

fn extended_card_no_scheme(card: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    // The scheme is there, in the member of an older release, and that is what is said.
    if super::versions::has_outdated_authentication(card, context) {
        return;
    }
    for flag in unguarded_extended_card(card, context) {
        out.add(flag, "an extended card is announced, and no scheme to authenticate with");
    }
}

/// Flags that announce an extended card in a card without security schemes.
pub(super) fn unguarded_extended_card<'d>(
    card: Node<'d>,
    context: &Context<'_>,
) -> impl Iterator<Item = Node<'d>> + use<'d> {
    let new = card.get("capabilities").and_then(|capabilities| capabilities.get("extendedAgentCard"));
    let old = card.get("supportsAuthenticatedExtendedCard");
    let of_1_0 = new.filter(|_| context.profile.has("1.0"));
    let before = old.filter(|_| context.profile.has("0.3") || context.profile.has("0.2"));
    let lacks_schemes = lacks_schemes(card);
    of_1_0.into_iter().chain(before).filter(move |flag| lacks_schemes && flag.flag() == Some(true))
}

/// Whether no security scheme is declared.
pub(super) fn lacks_schemes(card: Node<'_>) -> bool {
    card.given("securitySchemes").is_none_or(Node::is_empty) && !has_in_snake_case(card, "securitySchemes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_seen_in_uris() {
        for uri in [
            "https://x.example/v1",
            "urn:x:1.0",
            "https://x.example/2025-06-18",
            "https://x.example/units-v2",
            "urn:a.v3",
        ] {
            assert!(has_version(uri), "{uri}");
        }
        for uri in ["https://x.example/units", "urn:x:vector", "https://ext1.example.com/"] {
            assert!(!has_version(uri), "{uri}");
        }
    }
}
