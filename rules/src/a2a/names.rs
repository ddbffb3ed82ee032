//! Members that no release knows at their place: misspelled, misplaced, or somebody's own.

use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};

use super::table::{EVERY, is_interface, is_requirement, unknown};
use crate::document::Node;
use crate::judge::{Context, Occurrences};
use crate::kind::Kind;
use crate::rule::{Basis, Check, Class, Impact, Rule, Severity, fires, silent};
use crate::shape::{Field, Place};
use crate::text::{AbsoluteUrl, quote};

pub(super) const RULES: &[&Rule] =
    &[&SNAKE_CASE_FIELD, &FIELD_NAME_TYPO, &UNKNOWN_FIELD, &ENDPOINT_FIELD_NONSTANDARD, &OTHER_PROTOCOL_ADDRESS];

/// What a member is that stands in no schema at its place. The first that fits, so that one rule speaks about it.
enum Stranger {
    /// The snake_case form of this member.
    SnakeCase(&'static Field),
    /// Another name for the wrapper of mutual TLS: a2a/mtls-misnamed.
    MutualTls,
    /// A scheme name where `schemes` was due: a2a/requirement-shape.
    FlatRequirement,
    /// A member that 1.0 dropped before its release: a2a/removed-field.
    Removed,
    /// A top-level `endpoint`.
    Endpoint,
    /// Nearly this member.
    Typo(&'static str),
    /// The address of something that speaks another protocol.
    OtherProtocol,
    /// Somebody's own.
    Private,
}

/// Visits every member that no schema knows at its place, with what it is.
fn strangers<'d>(card: Node<'d>, context: &Context<'_>, mut f: impl FnMut(Node<'d>, Stranger)) {
    let schemes = OnceCell::new();
    let mut present = OnceCell::new();
    let mut of = card;
    unknown(card, context, |member, place| {
        let (Some(object), Some(key)) = (member.parent(), member.key()) else { return };
        if object != of {
            (of, present) = (object, OnceCell::new());
        }
        let around = Around { card, object, place, context, present: &present, schemes: &schemes };
        f(member, around.stranger(key, member));
    });
}

/// Where a stranger stands; the two sets are made when first asked for.
struct Around<'a, 'd> {
    card: Node<'d>,
    object: Node<'d>,
    place: &'a Place,
    context: &'a Context<'a>,
    present: &'a OnceCell<HashSet<&'d str>>,
    schemes: &'a OnceCell<HashMap<&'d str, Node<'d>>>,
}

impl<'d> Around<'_, 'd> {
    fn stranger(&self, key: &str, member: Node<'d>) -> Stranger {
        if let Some(field) = self.snake_case_of(key) {
            return Stranger::SnakeCase(field);
        }
        let at = self.place.field.map_or("", |field| field.at);
        let top = at.is_empty();
        if at == "/securitySchemes/*" && self.context.profile.has("1.0") && is_misnamed_mutual_tls(key) {
            Stranger::MutualTls
        } else if is_requirement(at) && self.is_flat(key) {
            Stranger::FlatRequirement
        } else if top
            && key == "supportsExtendedAgentCard"
            && !member.is_null()
            && self.context.profile.name == "a2a-1.0"
        {
            Stranger::Removed
        } else if top && key == "endpoint" && !member.is_null() {
            Stranger::Endpoint
        } else if let Some(name) = self.typo_of(key) {
            Stranger::Typo(name)
        } else if !is_interface(at) && leads_elsewhere(key, member) {
            Stranger::OtherProtocol
        } else {
            Stranger::Private
        }
    }

    /// Fields that the judged releases know in this object.
    fn fields(&self) -> impl Iterator<Item = &'static Field> {
        let versions = self.context.profile.versions;
        self.place.fields().filter(|field| field.is_known_in(versions))
    }

    fn snake_case_of(&self, key: &str) -> Option<&'static Field> {
        if key.contains('_') { self.fields().find(|field| is_snake_case_of(key, field.name())) } else { None }
    }

    fn typo_of(&self, key: &str) -> Option<&'static str> {
        let present = || self.present.get_or_init(|| self.object.members().map(|(key, _)| key).collect());
        let mut near =
            self.fields().map(Field::name).filter(|name| is_near(key, name)).filter(|name| !present().contains(name));
        let first = near.next()?;
        near.next().is_none().then_some(first)
    }

    fn is_flat(&self, key: &str) -> bool {
        let declared = self.schemes.get_or_init(|| super::requirements::declared(self.card));
        super::requirements::is_flat_member(self.object, key, declared)
    }
}

/// Whether a key is the snake_case form of a camelCase name.
pub(super) fn is_snake_case_of(key: &str, name: &str) -> bool {
    let mut written = key.chars();
    let as_expected = name.chars().all(|c| {
        if c.is_ascii_uppercase() {
            written.next() == Some('_') && written.next() == Some(c.to_ascii_lowercase())
        } else {
            written.next() == Some(c)
        }
    });
    as_expected && written.next().is_none() && key.contains('_')
}

/// Whether an object has a member under the snake_case form of that name.
pub(super) fn has_in_snake_case(object: Node<'_>, name: &str) -> bool {
    name.contains(|c: char| c.is_ascii_uppercase()) && object.members().any(|(key, _)| is_snake_case_of(key, name))
}

/// Whether a key differs from a name only by letter case and hyphens, by a plural s, or by one edit.
pub(super) fn is_near(key: &str, name: &str) -> bool {
    if key.len().abs_diff(name.len()) > 4 {
        return false;
    }
    let letters = |text: &str| text.bytes().filter(|&b| b != b'-').map(|b| b.to_ascii_lowercase()).collect::<Vec<_>>();
    is_one_edit_away(key.as_bytes(), name.as_bytes()) || letters(key) == letters(name)
}

/// Whether one letter put in, taken out or replaced makes one text the other.
fn is_one_edit_away(one: &[u8], other: &[u8]) -> bool {
    if one.len().abs_diff(other.len()) > 1 {
        return false;
    }
    let same_start = one.iter().zip(other).take_while(|(a, b)| a == b).count();
    let (one, other) = (&one[same_start..], &other[same_start..]);
    match one.len().cmp(&other.len()) {
        std::cmp::Ordering::Less => one == &other[1..],
        std::cmp::Ordering::Greater => &one[1..] == other,
        std::cmp::Ordering::Equal => !one.is_empty() && one[1..] == other[1..],
    }
}

/// Whether a member of a 1.0 scheme names mutual TLS otherwise than `mtlsSecurityScheme`.
pub(super) fn is_misnamed_mutual_tls(key: &str) -> bool {
    let letters = || key.bytes().filter(u8::is_ascii_alphanumeric).map(|b| b.to_ascii_lowercase());
    let is = |name: &str| letters().eq(name.bytes());
    key != "mtlsSecurityScheme"
        && key != "mtls_security_scheme"
        && (is("mtlssecurityscheme") || is("mutualtlssecurityscheme"))
}

/// Whether the words of a name tell of MCP or of an OpenAPI description.
fn names_other_protocol(key: &str) -> bool {
    let lower = key.to_ascii_lowercase();
    if !["mcp", "api", "swagger"].iter().any(|word| lower.contains(word)) {
        return false;
    }
    let words = words(key);
    words.iter().any(|word| matches!(word.as_str(), "mcp" | "openapi" | "swagger"))
        || words.windows(2).any(|pair| pair[0] == "open" && pair[1] == "api")
}

/// The words of a name in camelCase, snake_case or kebab-case, in small letters.
fn words(name: &str) -> Vec<String> {
    let characters: Vec<char> = name.chars().collect();
    let mut words = vec![String::new()];
    for (n, &c) in characters.iter().enumerate() {
        let after_small = n > 0 && !characters[n - 1].is_uppercase();
        let before_small = characters.get(n + 1).is_some_and(|next| next.is_lowercase());
        if !c.is_alphanumeric() || (c.is_uppercase() && (after_small || before_small)) {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| c.is_alphanumeric()) {
            word.extend(c.to_lowercase());
        }
    }
    words
}

/// Whether a member of that name holds the public address of something that speaks another protocol.
fn leads_elsewhere(key: &str, member: Node<'_>) -> bool {
    names_other_protocol(key) && holds_public_address(member)
}

fn holds_public_address(member: Node<'_>) -> bool {
    let is_address =
        |node: Node<'_>| node.text().and_then(AbsoluteUrl::parse).is_some_and(|url| url.is("https") && url.is_public());
    is_address(member) || ["url", "endpoint", "href"].iter().any(|key| member.get(key).is_some_and(is_address))
}

crate::rule! {
    /// Members are spelled in camelCase.
    ///
    /// The JSON form of a card has camelCase names. Readers made from protocol buffers take both spellings, all others
    /// miss a member in snake_case, so the card means different things to different clients. 1.0 says so in words; before
    /// it only the schema does, so that an optional member in another spelling is a mistake there and breaks nothing.
    static SNAKE_CASE_FIELD = {
        id: "a2a/snake-case-field",
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        impact_overrides: &[("0.1", Impact::Cosmetic), ("0.2", Impact::Cosmetic), ("1.0", Impact::Cosmetic)],
        impact_evidence: "a2a-sdk 0.3.26 and 1.3.0, @a2a-js/sdk 1.3.0, 2026-11",
        clients: &["@a2a-js/sdk 1.3.0: refuses (0.3)"],
        versions: EVERY,
        on: &[Kind::AgentCard],
        place: "/**",
        fix: "Rename the member to camelCase.",
        spec: "A2A 1.0 §5.5; 0.3 §5.5",
        seeds: &["reader:snake_case field name", "gaip:A2A_FIELD_NAME_CASE"],
        examples: &[
            fires(&["/default_input_modes"], r#"{"defaultInputModes": null, "default_input_modes": ["text/plain"]}"#),
            fires(&["/capabilities/push_notifications"], r#"{"capabilities": {"push_notifications": true}}"#),
            fires(&["/default_input_modes"], r#"{"defaultInputModes": null, "default_input_modes": ["text/plain"]}"#)
                .over("a2a-0.3"),
            fires(&["/documentation_url"], r#"{"documentation_url": "https://tides.example.com/help"}"#).over("a2a-0.3"),
            silent(r#"{"capabilities": {"extensions": [{"uri": "urn:tides:v1", "params": {"input_modes": 1}}]}}"#),
        ],
        check: Check::Document(snake_case_field),
    }
}

/// Members without which the JavaScript SDK refuses a card of 0.3, and whose names have two spellings.
const ASKED_FOR_BY_CLIENTS: &[&str] = &["/defaultInputModes", "/defaultOutputModes"];

fn snake_case_field(card: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    let profile = context.profile;
    strangers(card, context, |member, stranger| {
        let Stranger::SnakeCase(field) = stranger else { return };
        let name = field.name();
        let added = out.add(member, format!("{} should be `{name}`", quote(member.key().unwrap_or_default())));
        let is_bound = profile.has("1.0") && !profile.needs_all && field.is_known_in(&["1.0"]);
        let added =
            if is_bound || field.is_required_in(profile.versions) { added } else { added.severity(Severity::Warning) };
        // A card with both halves is read as one of 1.0 by whoever knows it, and the rest take both spellings.
        let is_asked_for = ASKED_FOR_BY_CLIENTS.contains(&field.at) && !profile.has("1.0");
        if profile.has("0.3") && !is_asked_for {
            added.impact(Impact::Degrades);
        }
    });
}

crate::rule! {
    /// A member is nearly the name of one that is missing.
    ///
    /// Readers ignore names they do not know, so a slip of one letter silently drops what was meant.
    static FIELD_NAME_TYPO = {
        id: "a2a/field-name-typo",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        basis: Basis::Hint,
        versions: EVERY,
        on: &[Kind::AgentCard],
        place: "/**",
        fix: "Use the exact member name.",
        spec: "A2A 1.0 §5.5",
        examples: &[
            fires(&["/documentationURL"], r#"{"documentationURL": "https://www.example.com/tides"}"#),
            fires(&["/skills/0/outputMode"], r#"{"skills": [{"outputMode": ["text/plain"]}]}"#),
            silent(r#"{"documentation": "https://www.example.com/tides"}"#),
            silent(r#"{"documentationUrl": "https://www.example.com", "documentationURL": "https://www.example.com"}"#),
        ],
        check: Check::Document(field_name_typo),
    }
}

fn field_name_typo(card: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    strangers(card, context, |member, stranger| {
        if let Stranger::Typo(name) = stranger {
            out.add(member, format!("{} is probably `{name}`", quote(member.key().unwrap_or_default())));
        }
    });
}

crate::rule! {
    /// A member is in no A2A schema.
    ///
    /// That is allowed, and readers ignore it. What is meant for agents belongs into the parameters of an extension.
    static UNKNOWN_FIELD = {
        id: "a2a/unknown-field",
        class: Class::Fact,
        versions: EVERY,
        on: &[Kind::AgentCard],
        place: "/**",
        fix: "Move private data to an extension's params.",
        spec: "A2A 1.0 §5.7",
        seeds: &["reader:Unknown field"],
        examples: &[
            fires(&["/x-harbour"], r#"{"x-harbour": "Ardglass"}"#),
            fires(&["/supportedInterfaces/0/priority"], r#"{"supportedInterfaces": [{"priority": 1}]}"#),
            silent(r#"{"supportedInterfaces": [{"tenant": "north"}]}"#),
        ],
        check: Check::Document(unknown_field),
    }
}

fn unknown_field(card: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    strangers(card, context, |member, stranger| {
        if let Stranger::Private = stranger {
            out.add(member, format!("{} is in no A2A schema here", quote(member.key().unwrap_or_default())));
        }
    });
}

crate::rule! {
    /// The endpoint stands in the member that clients read.
    ///
    /// No release has a top-level `endpoint`; whoever looks for the address does not look there.
    static ENDPOINT_FIELD_NONSTANDARD = {
        id: "a2a/endpoint-field-nonstandard",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        versions: EVERY,
        on: &[Kind::AgentCard],
        place: "/endpoint",
        fix: "Declare the endpoint in `supportedInterfaces` (1.0) or `url` (0.3).",
        spec: "A2A 1.0 §4.4.6",
        seeds: &["gaip:A2A_ENDPOINT_FIELD_NONSTANDARD"],
        examples: &[
            fires(&["/endpoint"], r#"{"endpoint": "https://tides.example.com/rpc"}"#),
            silent(r#"{"capabilities": {"extensions": [{"uri": "urn:tides:v1", "params": {"endpoint": "x"}}]}}"#),
        ],
        check: Check::Document(endpoint_field_nonstandard),
    }
}

fn endpoint_field_nonstandard(card: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let Some(endpoint) = card.given("endpoint") else { return };
    if endpoint.text().is_some_and(|address| declares(card, address)) {
        out.add(endpoint, "the address stands in its place too; no client reads `endpoint`").severity(Severity::Info);
    } else {
        out.add(endpoint, "no client looks for the address in `endpoint`");
    }
}

/// Whether an address stands where clients of some release look for it.
fn declares(card: Node<'_>, address: &str) -> bool {
    let listed = ["supportedInterfaces", "supported_interfaces", "additionalInterfaces", "additional_interfaces"];
    let interfaces = listed.iter().filter_map(|name| card.get(name)).flat_map(Node::items);
    let urls = interfaces.chain([card]).filter_map(|holder| holder.get("url"));
    urls.filter_map(Node::text).any(|url| url.trim_end_matches('/') == address.trim_end_matches('/'))
}

crate::rule! {
    /// The card names the address of another protocol.
    ///
    /// A public MCP endpoint or OpenAPI description in a member of the author's own is a lead: it is looked at as a
    /// surface of its own kind.
    static OTHER_PROTOCOL_ADDRESS = {
        id: "a2a/other-protocol-address",
        class: Class::Fact,
        basis: Basis::Policy,
        versions: EVERY,
        on: &[Kind::AgentCard],
        place: "/**",
        fix: "None needed.",
        spec: "A2A 1.0 §5.7",
        examples: &[
            fires(&["/mcpEndpoint"], r#"{"mcpEndpoint": "https://tides.example.com/mcp"}"#),
            fires(&["/openapi"], r#"{"openapi": {"url": "https://tides.example.com/openapi.json"}}"#),
            fires(&["/services/mcp"], r#"{"services": {"mcp": {"url": "https://tides.example.com/mcp"}}}"#),
            silent(r#"{"mcp": true, "apiNotes": "https://tides.example.com"}"#),
            silent(r#"{"mcpUrl": "https://localhost:3000/mcp"}"#),
        ],
        check: Check::Document(other_protocol_address),
    }
}

fn other_protocol_address(card: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    strangers(card, context, |member, stranger| match stranger {
        Stranger::OtherProtocol => report_lead(member, out),
        Stranger::Private => {
            let leads = |node: &Node<'_>| node.key().is_some_and(|key| leads_elsewhere(key, *node));
            member.walk().skip(1).filter(leads).for_each(|node| report_lead(node, out));
        }
        Stranger::SnakeCase(_)
        | Stranger::MutualTls
        | Stranger::FlatRequirement
        | Stranger::Removed
        | Stranger::Endpoint
        | Stranger::Typo(_) => {}
    });
}

fn report_lead(node: Node<'_>, out: &mut Occurrences) {
    out.add(node, format!("{} holds an address of another protocol", quote(node.key().unwrap_or_default())));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn snake_case_is_the_exact_other_spelling() {
        assert!(is_snake_case_of("default_input_modes", "defaultInputModes"));
        assert!(is_snake_case_of("oauth2_security_scheme", "oauth2SecurityScheme"));
        for key in ["defaultInputModes", "default_input_mode", "default_input_modes_", "Default_input_modes", "name"] {
            assert!(!is_snake_case_of(key, "defaultInputModes"), "{key}");
        }
        assert!(!is_snake_case_of("name", "name"));
    }

    #[test]
    fn a_near_name_is_one_slip_away() {
        for key in ["documentationURL", "documentation-url", "documentationUrls", "documentatioUrl", "documantationUrl"]
        {
            assert!(is_near(key, "documentationUrl"), "{key}");
        }
        for key in ["documentation", "docUrl", "documentatiUrl", "documentationUri2"] {
            assert!(!is_near(key, "documentationUrl"), "{key}");
        }
    }

    #[test]
    fn names_fall_into_words() {
        for key in ["mcp", "mcpUrl", "mcp_endpoint", "x-mcp", "MCPServer", "openapiUrl", "openApi", "swagger_url"] {
            assert!(names_other_protocol(key), "{key}");
        }
        for key in ["mcpherson", "api", "openapis", "apiUrl", "lamcp", ""] {
            assert!(!names_other_protocol(key), "{key}");
        }
    }
}
