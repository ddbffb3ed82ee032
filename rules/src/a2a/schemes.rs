//! Security schemes: how a caller proves who it is.
//!
//! Before 1.0 a scheme is one flat object with a `type`, as in OpenAPI; in 1.0 it holds exactly one wrapper. In a hybrid
//! card a scheme may have either shape, or both at once.

use std::collections::HashSet;

use super::capabilities::{lacks_schemes, unguarded_extended_card};
use super::names::{has_in_snake_case, is_misnamed_mutual_tls};
use super::required::{demand, is_blank};
use super::table::{SINCE_0_2, SINCE_0_3};
use crate::document::{Node, Type};
use crate::judge::{Context, Occurrences};
use crate::kind::Kind;
use crate::rule::{Basis, Check, Class, Impact, Rule, Severity, fires, silent};
use crate::text::{AbsoluteUrl, quote};

pub(super) const RULES: &[&Rule] = &[
    &SECURITY_NOT_DECLARED,
    &SCHEME_NOT_EXACTLY_ONE,
    &SCHEME_OPENAPI_STYLE,
    &SCHEME_TYPE_UNRECOGNISED,
    &MTLS_MISNAMED,
    &SCHEME_MEMBER_REQUIRED,
    &API_KEY_LOCATION,
    &API_KEY_IN_QUERY,
    &HTTP_SCHEME_UNREGISTERED,
    &OAUTH_FLOWS_NOT_ONE,
    &OAUTH_FLOWS_EMPTY,
    &OAUTH_FLOW_DEPRECATED,
    &OAUTH_FLOW_MEMBER_REQUIRED,
    &OAUTH_SCOPES_MISSING,
    &PKCE_NOT_REQUIRED,
    &OIDC_DISCOVERY_SUFFIX,
];

const API_KEY: &str = "apiKeySecurityScheme";
const HTTP: &str = "httpAuthSecurityScheme";
const OAUTH2: &str = "oauth2SecurityScheme";
const OPEN_ID: &str = "openIdConnectSecurityScheme";

/// The wrappers of 1.0.
const WRAPPERS: &[&str] = &[API_KEY, HTTP, OAUTH2, OPEN_ID, "mtlsSecurityScheme"];

/// The types before 1.0.
const TYPES: &[&str] = &["apiKey", "http", "oauth2", "openIdConnect", "mutualTLS"];

/// The flows of 1.0; `deviceCode`, the last one, came with it.
const FLOWS: &[&str] = &["authorizationCode", "clientCredentials", "implicit", "password", "deviceCode"];

/// The declared schemes that are objects.
fn schemes(card: Node<'_>) -> impl Iterator<Item = Node<'_>> {
    let declared = card.get("securitySchemes").into_iter().flat_map(Node::members);
    declared.map(|(_, scheme)| scheme).filter(|scheme| scheme.kind() == Type::Object)
}

/// Whether the card is judged by a release with flat schemes.
fn is_flat(context: &Context<'_>) -> bool {
    context.profile.has("0.2") || context.profile.has("0.3")
}

/// The wrapper of that name in every scheme, for a card that is judged by 1.0.
fn wrapped<'d>(card: Node<'d>, context: &Context<'_>, wrapper: &'static str) -> impl Iterator<Item = Node<'d>> {
    let applies = context.profile.has("1.0");
    schemes(card).filter(move |_| applies).filter_map(move |scheme| scheme.given(wrapper)).filter(is_object)
}

/// Every scheme of that type, for a card that is judged by an older release.
fn flat<'d>(card: Node<'d>, context: &Context<'_>, kind: &'static str) -> impl Iterator<Item = Node<'d>> {
    let applies = is_flat(context);
    schemes(card).filter(move |scheme| applies && scheme.get("type").and_then(Node::text) == Some(kind))
}

fn is_object(node: &Node<'_>) -> bool {
    node.kind() == Type::Object
}

/// How many of these members an object has; null is none, the snake_case form counts.
fn count(object: Node<'_>, members: &[&str]) -> usize {
    members.iter().filter(|member| object.given(member).is_some() || has_in_snake_case(object, member)).count()
}

/// The `flows` of every OAuth scheme: of 1.0 (`true`) and of older releases (`false`).
fn flows<'d>(card: Node<'d>, context: &Context<'_>) -> impl Iterator<Item = (Node<'d>, bool)> {
    let new = wrapped(card, context, OAUTH2).map(|scheme| (scheme, true));
    let old = flat(card, context, "oauth2").map(|scheme| (scheme, false));
    new.chain(old).filter_map(|(scheme, is_new)| Some((scheme.given("flows").filter(is_object)?, is_new)))
}

/// Every flow that is an object, with its name.
fn each_flow<'d>(card: Node<'d>, context: &Context<'_>) -> impl Iterator<Item = (&'static str, Node<'d>, bool)> {
    flows(card, context).flat_map(|(flows, is_new)| {
        let known = if is_new { FLOWS } else { &FLOWS[..4] };
        known.iter().filter_map(move |name| Some((*name, flows.given(name).filter(is_object)?, is_new)))
    })
}

/// Every OAuth or OpenID address, whatever the shape of its scheme.
pub(super) fn oauth_urls(card: Node<'_>) -> Vec<Node<'_>> {
    let mut urls = Vec::new();
    for scheme in schemes(card) {
        let wrappers = scheme.members().filter(|(key, _)| matches!(*key, OAUTH2 | OPEN_ID)).map(|(_, wrapper)| wrapper);
        for holder in std::iter::once(scheme).chain(wrappers) {
            urls.extend(["openIdConnectUrl", "oauth2MetadataUrl"].iter().filter_map(|member| holder.get(member)));
            for (_, flow) in holder.get("flows").into_iter().flat_map(Node::members) {
                let is_url = |key: &str| {
                    matches!(key, "authorizationUrl" | "tokenUrl" | "refreshUrl" | "deviceAuthorizationUrl")
                };
                urls.extend(flow.members().filter(|(key, _)| is_url(key)).map(|(_, url)| url));
            }
        }
    }
    urls
}

/// The scopes that the flows of an OAuth scheme declare, whatever its shape; empty for other schemes.
pub(super) fn offered_scopes(scheme: Node<'_>) -> HashSet<&str> {
    let is_oauth2 = scheme.get("type").and_then(Node::text) == Some("oauth2");
    let holders = scheme.get(OAUTH2).into_iter().chain(is_oauth2.then_some(scheme));
    let flows = holders.filter_map(|holder| holder.get("flows")).flat_map(Node::members);
    flows.filter_map(|(_, flow)| flow.get("scopes")).flat_map(Node::members).map(|(scope, _)| scope).collect()
}

crate::rule! {
    /// The card declares no security scheme.
    ///
    /// Right for an open agent; for any other one clients cannot know what to send.
    static SECURITY_NOT_DECLARED = {
        id: "a2a/security-not-declared",
        class: Class::Fact,
        basis: Basis::Hint,
        versions: SINCE_0_2,
        on: &[Kind::AgentCard],
        place: "/securitySchemes",
        fix: "Declare the scheme if the endpoint needs authentication.",
        spec: "A2A 1.0 §4.5.1, §7.3",
        seeds: &["gaip:A2A_SECURITY_NOT_DECLARED", "inspector:security-scheme-declared"],
        examples: &[
            fires(&["/securitySchemes"], r#"{"securitySchemes": null, "securityRequirements": null}"#),
            silent("{}"),
        ],
        check: Check::Document(security_not_declared),
    }
}

fn security_not_declared(card: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    if lacks_schemes(card) && unguarded_extended_card(card, context).next().is_none() {
        out.add_missing(card, "securitySchemes", "no security scheme is declared");
    }
}

crate::rule! {
    /// A scheme of 1.0 has exactly one wrapper.
    ///
    /// The scheme is a choice of five; with none it says nothing, with two readers take one or refuse the card.
    static SCHEME_NOT_EXACTLY_ONE = {
        id: "a2a/scheme-not-exactly-one",
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        impact_evidence: "a2a-sdk 1.3.0, 2026-11",
        clients: &["a2a-sdk 1.3.0: refuses (1.0)"],
        rank: 16,
        versions: &["1.0"],
        on: &[Kind::AgentCard],
        place: "/securitySchemes/*",
        fix: "Keep exactly one wrapper per scheme.",
        spec: "A2A 1.0 §4.5.1",
        seeds: &["reader:SecurityScheme must hold exactly one scheme", "gaip:A2A_SECURITY_SCHEME_TYPE_UNRECOGNISED"],
        examples: &[
            fires(
                &["/securitySchemes/key"],
                r#"{"securitySchemes": {"key": {"apiKeySecurityScheme": {"location": "header", "name": "X-Key"}}}}"#,
            ),
            fires(&["/securitySchemes/key"], r#"{"securitySchemes": {"key": {"httpAuthSecurityScheme": null}}}"#),
            silent(
                r#"{"securitySchemes": {"key": {"httpAuthSecurityScheme": null,
                    "apiKeySecurityScheme": {"location": "header", "name": "X-Key"}}}}"#,
            ),
        ],
        yields_to: &["a2a/scheme-openapi-style", "a2a/mtls-misnamed"],
        check: Check::Document(scheme_not_exactly_one),
    }
}

fn scheme_not_exactly_one(card: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    for scheme in schemes(card) {
        let wrappers = count(scheme, WRAPPERS);
        if wrappers > 1 {
            out.add(scheme, format!("{wrappers} schemes in one"));
        } else if wrappers == 0 && !(is_flat(context) && scheme.given("type").is_some()) {
            out.add(scheme, "none of the five schemes is in it").impact(Impact::Degrades);
        }
    }
}

crate::rule! {
    /// A scheme of 1.0 is not written as in OpenAPI.
    ///
    /// `type` belongs to the releases before 1.0. Clients of 1.0 see an empty scheme and send no credentials.
    static SCHEME_OPENAPI_STYLE = {
        id: "a2a/scheme-openapi-style",
        severity: Severity::Error,
        impact: Some(Impact::Degrades),
        impact_evidence: "a2a-sdk 0.3.26 and 1.3.0, @a2a-js/sdk 1.3.0, 2026-11",
        clients: &["@a2a-js/sdk 1.3.0: limits (1.0)"],
        rank: 16,
        versions: &["1.0"],
        on: &[Kind::AgentCard],
        place: "/securitySchemes/*",
        fix: "Wrap the scheme, for example in apiKeySecurityScheme.",
        spec: "A2A 1.0 §4.5.1",
        seeds: &["reader:0.3 field names", "gaip:A2A_SECURITY_SCHEME_TYPE_UNRECOGNISED"],
        examples: &[
            fires(
                &["/securitySchemes/key"],
                r#"{"securitySchemes": {"key": {"httpAuthSecurityScheme": null, "type": "http", "scheme": "Bearer"}}}"#,
            ),
            silent(r#"{"securitySchemes": {"key": {"httpAuthSecurityScheme": null}}}"#).over("a2a-hybrid"),
        ],
        check: Check::Document(scheme_openapi_style),
    }
}

fn scheme_openapi_style(card: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    if context.profile.name != "a2a-1.0" || card.given("url").is_some() {
        return;
    }
    for scheme in schemes(card).filter(|scheme| count(*scheme, WRAPPERS) == 0) {
        if let Some(kind) = scheme.get("type").and_then(Node::text) {
            out.add(scheme, format!("type {} instead of a wrapper", quote(kind)));
        }
    }
}

crate::rule! {
    /// A scheme of 0.3 has one of the five types.
    ///
    /// Readers choose by `type` what else to expect, and refuse what they do not know. In a card for both releases a scheme
    /// may be written for 1.0 alone.
    static SCHEME_TYPE_UNRECOGNISED = {
        id: "a2a/scheme-type-unrecognised",
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        impact_evidence: "a2a-sdk 0.3.26 and 1.3.0, @a2a-js/sdk 1.3.0, 2026-11; a2a-sdk 0.3.26 refuses an unknown type",
        clients: &["a2a-sdk 0.3.26: limits (0.3)", "@a2a-js/sdk 1.3.0: refuses (0.3)"],
        rank: 16,
        versions: &["0.3"],
        on: &[Kind::AgentCard],
        place: "/securitySchemes/*/type",
        fix: "Set `type` to one of the five values.",
        spec: "A2A 0.3 §5.5.3",
        seeds: &["gaip:A2A_SECURITY_SCHEME_TYPE_UNRECOGNISED"],
        examples: &[
            fires(&["/securitySchemes/key/type"], r#"{"securitySchemes": {"key": {"type": "bearer"}}}"#),
            fires(&["/securitySchemes/key/type"], r#"{"securitySchemes": {"key": {"type": null}}}"#),
            silent(r#"{"securitySchemes": {"key": {"type": "mutualTLS"}}}"#),
            silent(r#"{"securitySchemes": {"key": {"type": null}}}"#).over("a2a-hybrid"),
        ],
        yields_to: &["a2a/mtls-misnamed"],
        check: Check::Document(scheme_type_unrecognised),
    }
}

fn scheme_type_unrecognised(card: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    let hybrid = context.profile.has("1.0");
    for scheme in schemes(card) {
        match scheme.given("type") {
            Some(kind) => {
                if let Some(text) = kind.text().filter(|text| !TYPES.contains(text)) {
                    let added = out.add(kind, format!("{} is none of {}", quote(text), TYPES.join(", ")));
                    if hybrid {
                        added.impact(Impact::Degrades);
                    }
                }
            }
            None if hybrid => {}
            None => demand(scheme, "type", out),
        }
    }
}

crate::rule! {
    /// Mutual TLS has the name that the schema gives it.
    ///
    /// The message is called MutualTls and its member `mtlsSecurityScheme`; before 1.0 the type is `mutualTLS`. Everything
    /// else is an unknown scheme.
    static MTLS_MISNAMED = {
        id: "a2a/mtls-misnamed",
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        impact_overrides: &[("1.0", Impact::Degrades)],
        impact_evidence: "a2a-sdk 0.3.26 and 1.3.0, @a2a-js/sdk 1.3.0, 2026-11",
        clients: &[
            "a2a-sdk 0.3.26: refuses (0.3)", "@a2a-js/sdk 1.3.0: refuses (0.3)", "@a2a-js/sdk 1.3.0: limits (1.0)",
        ],
        versions: SINCE_0_2,
        on: &[Kind::AgentCard],
        place: "/securitySchemes/*, /securitySchemes/*/type",
        fix: "Use mtlsSecurityScheme (1.0) or type mutualTLS (0.3).",
        spec: "A2A 1.0 §4.5.1, §4.5.6; 0.3 §5.5.3",
        examples: &[
            fires(
                &["/securitySchemes/key"],
                r#"{"securitySchemes": {"key": {"httpAuthSecurityScheme": null, "mutualTlsSecurityScheme": {}}}}"#,
            ),
            fires(&["/securitySchemes/key/type"], r#"{"securitySchemes": {"key": {"type": "mtls"}}}"#).over("a2a-0.3"),
            silent(r#"{"securitySchemes": {"key": {"httpAuthSecurityScheme": null, "mtlsSecurityScheme": {}}}}"#),
        ],
        check: Check::Document(mtls_misnamed),
    }
}

fn mtls_misnamed(card: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    for scheme in schemes(card) {
        if context.profile.has("1.0")
            && let Some((key, _)) = scheme.members().find(|(key, _)| is_misnamed_mutual_tls(key))
        {
            out.add(scheme, format!("{} should be `mtlsSecurityScheme`", quote(key)));
        }
        if is_flat(context)
            && let Some(kind) = scheme.get("type")
            && let Some(text) = kind.text().filter(|text| is_misnamed_type(text))
        {
            out.add(kind, format!("{} should be `mutualTLS`", quote(text)));
        }
    }
}

fn is_misnamed_type(text: &str) -> bool {
    let letters: String = text.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect();
    text != "mutualTLS" && matches!(letters.as_str(), "mtls" | "mutualtls")
}

crate::rule! {
    /// A scheme says what its kind needs.
    ///
    /// A key without a place, or HTTP authentication without a scheme, tells a client to authenticate and not how.
    static SCHEME_MEMBER_REQUIRED = {
        id: "a2a/scheme-member-required",
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        impact_overrides: &[("0.2", Impact::Cosmetic), ("1.0", Impact::Cosmetic)],
        impact_evidence: "a2a-sdk 0.3.26 and 1.3.0, @a2a-js/sdk 1.3.0, 2026-11",
        clients: &["a2a-sdk 0.3.26: refuses (0.3)"],
        versions: SINCE_0_2,
        on: &[Kind::AgentCard],
        place: "/securitySchemes/*/**",
        fix: "Add the missing member.",
        spec: "A2A 1.0 §4.5.2-§4.5.5; 0.3 §5.5.3",
        seeds: &["gaip:A2A_SECURITY_SCHEME_INCOMPLETE", "reader:Missing required field"],
        examples: &[
            fires(
                &["/securitySchemes/key/apiKeySecurityScheme/location"],
                r#"{"securitySchemes": {"key": {"httpAuthSecurityScheme": null, "apiKeySecurityScheme": {"name": "X-Key"}}}}"#,
            ),
            fires(
                &["/securitySchemes/key/httpAuthSecurityScheme/scheme"],
                r#"{"securitySchemes": {"key": {"httpAuthSecurityScheme": {"scheme": ""}}}}"#,
            ),
            fires(&["/securitySchemes/key/scheme"], r#"{"securitySchemes": {"key": {"scheme": null}}}"#).over("a2a-0.3"),
            silent(
                r#"{"securitySchemes": {"key": {"httpAuthSecurityScheme": null,
                    "apiKeySecurityScheme": {"location": "header", "name": "X-Key"}}}}"#,
            ),
        ],
        check: Check::Document(scheme_member_required),
    }
}

/// What each kind of scheme needs: its wrapper, its type before 1.0, and the members under both.
const NEEDED: &[(&str, &str, &[&str], &[&str])] = &[
    (API_KEY, "apiKey", &["location", "name"], &["in", "name"]),
    (HTTP, "http", &["scheme"], &["scheme"]),
    (OAUTH2, "oauth2", &["flows"], &["flows"]),
    (OPEN_ID, "openIdConnect", &["openIdConnectUrl"], &["openIdConnectUrl"]),
];

fn scheme_member_required(card: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    for (wrapper, kind, members, members_before) in NEEDED {
        for scheme in wrapped(card, context, wrapper) {
            members.iter().for_each(|member| demand_text(scheme, member, out));
        }
        for scheme in flat(card, context, kind) {
            members_before.iter().for_each(|member| demand_text(scheme, member, out));
        }
    }
}

/// Reports a required member that is absent, null or an empty string.
fn demand_text(object: Node<'_>, member: &str, out: &mut Occurrences) {
    match object.get(member) {
        Some(value) if value.text().is_some_and(is_blank) => drop(out.add(value, format!("`{member}` is empty"))),
        _ => demand(object, member, out),
    }
}

/// The places of API keys that say something, each with its scheme.
fn locations<'d>(card: Node<'d>, context: &Context<'_>) -> impl Iterator<Item = (Node<'d>, Node<'d>, &'d str)> {
    let applies = context.profile.has("1.0");
    let new = schemes(card)
        .filter(move |_| applies)
        .filter_map(|scheme| Some((scheme, scheme.given(API_KEY)?.get("location")?)));
    let old = flat(card, context, "apiKey").filter_map(|scheme| Some((scheme, scheme.get("in")?)));
    new.chain(old)
        .filter_map(|(scheme, location)| Some((scheme, location, location.text()?)))
        .filter(|(_, _, text)| !is_blank(text))
}

crate::rule! {
    /// An API key goes into a header, a query or a cookie.
    ///
    /// There is no fourth place, and the three are spelled in small letters.
    static API_KEY_LOCATION = {
        id: "a2a/api-key-location",
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        impact_overrides: &[("0.2", Impact::Cosmetic), ("1.0", Impact::Cosmetic)],
        impact_evidence: "a2a-sdk 0.3.26 and 1.3.0, @a2a-js/sdk 1.3.0, 2026-11",
        clients: &["a2a-sdk 0.3.26: refuses (0.3)"],
        versions: SINCE_0_2,
        on: &[Kind::AgentCard],
        place: "/securitySchemes/*/apiKeySecurityScheme/location, /securitySchemes/*/in",
        fix: "Use query, header or cookie.",
        spec: "A2A 1.0 §4.5.2",
        seeds: &["reader:API key location"],
        examples: &[
            fires(
                &["/securitySchemes/key/apiKeySecurityScheme/location"],
                r#"{"securitySchemes": {"key": {"httpAuthSecurityScheme": null,
                    "apiKeySecurityScheme": {"location": "body", "name": "key"}}}}"#,
            ),
            fires(
                &["/securitySchemes/key/in"],
                r#"{"securitySchemes": {"key": {"type": "apiKey", "in": "Header", "name": "X-Key", "scheme": null}}}"#,
            ).over("a2a-0.3"),
            silent(
                r#"{"securitySchemes": {"key": {"httpAuthSecurityScheme": null,
                    "apiKeySecurityScheme": {"location": "cookie", "name": "key"}}}}"#,
            ),
        ],
        check: Check::Document(api_key_location),
    }
}

fn api_key_location(card: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    for (_, location, text) in locations(card, context) {
        if !matches!(text, "query" | "header" | "cookie") {
            out.add(location, format!("{} is none of query, header and cookie", quote(text)));
        }
    }
}

crate::rule! {
    /// An API key does not travel in the query.
    ///
    /// Query strings end up in logs, histories and referrer headers, and the key with them.
    static API_KEY_IN_QUERY = {
        id: "a2a/api-key-in-query",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        security: true,
        basis: Basis::Hint,
        versions: SINCE_0_2,
        on: &[Kind::AgentCard],
        place: "/securitySchemes/*",
        fix: "Use a header.",
        spec: "RFC 9700 §4.3.2 by analogy",
        examples: &[
            fires(
                &["/securitySchemes/key"],
                r#"{"securitySchemes": {"key": {"httpAuthSecurityScheme": null,
                    "apiKeySecurityScheme": {"location": "query", "name": "key"}}}}"#,
            ),
            silent(
                r#"{"securitySchemes": {"key": {"httpAuthSecurityScheme": null,
                    "apiKeySecurityScheme": {"location": "header", "name": "query"}}}}"#,
            ),
        ],
        check: Check::Document(api_key_in_query),
    }
}

fn api_key_in_query(card: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    for (scheme, _, text) in locations(card, context) {
        if text == "query" {
            out.add(scheme, "the key travels in the query string");
        }
    }
}

/// The HTTP authentication schemes that IANA has registered, in small letters.
const REGISTERED: &[&str] = &[
    "basic",
    "bearer",
    "concealed",
    "digest",
    "dpop",
    "gnap",
    "hoba",
    "mutual",
    "negotiate",
    "oauth",
    "privatetoken",
    "scram-sha-1",
    "scram-sha-256",
    "vapid",
];

crate::rule! {
    /// An HTTP scheme is a registered one.
    ///
    /// The name goes into the Authorization header; one that nobody registered is no scheme that a library speaks.
    static HTTP_SCHEME_UNREGISTERED = {
        id: "a2a/http-scheme-unregistered",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        versions: SINCE_0_2,
        on: &[Kind::AgentCard],
        place: "/securitySchemes/*/httpAuthSecurityScheme/scheme, /securitySchemes/*/scheme",
        fix: "Use a registered scheme name such as Bearer.",
        spec: "A2A 1.0 §4.5.3",
        examples: &[
            fires(
                &["/securitySchemes/key/httpAuthSecurityScheme/scheme"],
                r#"{"securitySchemes": {"key": {"httpAuthSecurityScheme": {"scheme": "JWT"}}}}"#,
            ),
            silent(r#"{"securitySchemes": {"key": {"httpAuthSecurityScheme": {"scheme": "dpop"}}}}"#),
        ],
        check: Check::Document(http_scheme_unregistered),
    }
}

fn http_scheme_unregistered(card: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    let named =
        wrapped(card, context, HTTP).chain(flat(card, context, "http")).filter_map(|holder| holder.get("scheme"));
    for (node, text) in named.filter_map(|node| Some((node, node.text()?))).filter(|(_, text)| !is_blank(text)) {
        if !REGISTERED.iter().any(|registered| text.eq_ignore_ascii_case(registered)) {
            out.add(node, format!("{} is no registered HTTP authentication scheme", quote(text)));
        }
    }
}

crate::rule! {
    /// An OAuth scheme of 1.0 has exactly one flow.
    ///
    /// Since 1.0 the flows are a choice; an agent that takes several declares a scheme for each.
    static OAUTH_FLOWS_NOT_ONE = {
        id: "a2a/oauth-flows-not-one",
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        impact_evidence: "a2a-sdk 1.3.0, 2026-11",
        clients: &["a2a-sdk 1.3.0: refuses (1.0)"],
        versions: &["1.0"],
        on: &[Kind::AgentCard],
        place: "/securitySchemes/*/oauth2SecurityScheme/flows",
        fix: "Keep one flow per scheme and declare further schemes for the others.",
        spec: "A2A 1.0 §4.5.7",
        seeds: &["reader:OAuthFlows must hold exactly one flow"],
        examples: &[
            fires(
                &["/securitySchemes/key/oauth2SecurityScheme/flows"],
                r#"{"securitySchemes": {"key": {"httpAuthSecurityScheme": null, "oauth2SecurityScheme": {"flows": {}}}}}"#,
            ),
            fires(
                &["/securitySchemes/key/oauth2SecurityScheme/flows"],
                r#"{"securitySchemes": {"key": {"httpAuthSecurityScheme": null, "oauth2SecurityScheme": {"flows": {
                    "clientCredentials": {"tokenUrl": "https://id.example.com/token", "scopes": {}},
                    "deviceCode": {"deviceAuthorizationUrl": "https://id.example.com/device",
                        "tokenUrl": "https://id.example.com/token", "scopes": {}}}}}}}"#,
            ),
            silent(
                r#"{"securitySchemes": {"key": {"httpAuthSecurityScheme": null, "oauth2SecurityScheme": {"flows": {
                    "clientCredentials": {"tokenUrl": "https://id.example.com/token", "scopes": {}}}}}}}"#,
            ),
        ],
        check: Check::Document(oauth_flows_not_one),
    }
}

fn oauth_flows_not_one(card: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    for (flows, _) in flows(card, context).filter(|(_, is_new)| *is_new) {
        match count(flows, FLOWS) {
            0 => drop(out.add(flows, "none of the five flows is in it").impact(Impact::Degrades)),
            1 => {}
            several => drop(out.add(flows, format!("{several} flows in one scheme"))),
        }
    }
}

crate::rule! {
    /// An OAuth scheme of 0.3 has a flow.
    ///
    /// Without one a client knows that it needs a token and not where from.
    static OAUTH_FLOWS_EMPTY = {
        id: "a2a/oauth-flows-empty",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        versions: &["0.3"],
        on: &[Kind::AgentCard],
        place: "/securitySchemes/*/flows",
        fix: "Declare a flow.",
        spec: "A2A 0.3 §5.5.3",
        examples: &[
            fires(
                &["/securitySchemes/key/flows"],
                r#"{"securitySchemes": {"key": {"type": "oauth2", "scheme": null, "flows": {}}}}"#,
            ),
            silent(
                r#"{"securitySchemes": {"key": {"type": "oauth2", "scheme": null, "flows": {
                    "clientCredentials": {"tokenUrl": "https://id.example.com/token", "scopes": {}}}}}}"#,
            ),
        ],
        check: Check::Document(oauth_flows_empty),
    }
}

fn oauth_flows_empty(card: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    for (flows, _) in flows(card, context).filter(|(_, is_new)| !is_new) {
        if count(flows, &FLOWS[..4]) == 0 {
            out.add(flows, "none of the four flows is in it");
        }
    }
}

crate::rule! {
    /// OAuth runs over a flow that is still advised.
    ///
    /// The implicit flow shows tokens to the browser, the password flow shows passwords to the client; 1.0 has both only
    /// as deprecated.
    static OAUTH_FLOW_DEPRECATED = {
        id: "a2a/oauth-flow-deprecated",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        security: true,
        versions: &["1.0"],
        on: &[Kind::AgentCard],
        place: "/securitySchemes/*/oauth2SecurityScheme/flows/{implicit,password}",
        fix: "Use authorizationCode with PKCE, or deviceCode.",
        spec: "A2A 1.0 §4.5.7",
        seeds: &["reader:Deprecated OAuth flow"],
        examples: &[
            fires(
                &["/securitySchemes/key/oauth2SecurityScheme/flows/password"],
                r#"{"securitySchemes": {"key": {"httpAuthSecurityScheme": null, "oauth2SecurityScheme": {"flows": {
                    "password": {"tokenUrl": "https://id.example.com/token", "scopes": {}}}}}}}"#,
            ),
            silent(
                r#"{"securitySchemes": {"key": {"httpAuthSecurityScheme": null, "oauth2SecurityScheme": {"flows": {
                    "clientCredentials": {"tokenUrl": "https://id.example.com/token", "scopes": {}}}}}}}"#,
            ),
        ],
        check: Check::Document(oauth_flow_deprecated),
    }
}

fn oauth_flow_deprecated(card: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    for (name, flow, _) in each_flow(card, context).filter(|(_, _, is_new)| *is_new) {
        if matches!(name, "implicit" | "password") {
            out.add(flow, format!("the {name} flow is deprecated"));
        }
    }
}

/// The URLs that a flow needs: since 1.0 (`true`) and before.
fn needed_urls(flow: &str, is_new: bool) -> &'static [&'static str] {
    match (flow, is_new) {
        ("authorizationCode", _) => &["authorizationUrl", "tokenUrl"],
        ("clientCredentials", _) | ("password", false) => &["tokenUrl"],
        ("deviceCode", true) => &["deviceAuthorizationUrl", "tokenUrl"],
        ("implicit", false) => &["authorizationUrl"],
        _ => &[],
    }
}

crate::rule! {
    /// An OAuth flow names its endpoints.
    ///
    /// A client cannot run a flow whose addresses it has to guess.
    static OAUTH_FLOW_MEMBER_REQUIRED = {
        id: "a2a/oauth-flow-member-required",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: SINCE_0_2,
        on: &[Kind::AgentCard],
        place: "/securitySchemes/*/**/flows/*/{authorizationUrl,tokenUrl,deviceAuthorizationUrl}",
        fix: "Add the URL.",
        spec: "A2A 1.0 §4.5.8-§4.5.10; 0.3 §5.5.3",
        seeds: &["reader:Missing required field"],
        examples: &[
            fires(
                &["/securitySchemes/key/oauth2SecurityScheme/flows/deviceCode/deviceAuthorizationUrl"],
                r#"{"securitySchemes": {"key": {"httpAuthSecurityScheme": null, "oauth2SecurityScheme": {"flows": {
                    "deviceCode": {"tokenUrl": "https://id.example.com/token", "scopes": {}}}}}}}"#,
            ),
            fires(
                &["/securitySchemes/key/flows/implicit/authorizationUrl"],
                r#"{"securitySchemes": {"key": {"type": "oauth2", "scheme": null,
                    "flows": {"implicit": {"authorizationUrl": "", "scopes": {}}}}}}"#,
            ).over("a2a-0.3"),
            silent(
                r#"{"securitySchemes": {"key": {"httpAuthSecurityScheme": null, "oauth2SecurityScheme": {"flows": {
                    "clientCredentials": {"tokenUrl": "https://id.example.com/token", "scopes": {}}}}}}}"#,
            ),
        ],
        check: Check::Document(oauth_flow_member_required),
    }
}

fn oauth_flow_member_required(card: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    for (name, flow, is_new) in each_flow(card, context) {
        needed_urls(name, is_new).iter().for_each(|member| demand_text(flow, member, out));
    }
}

crate::rule! {
    /// An OAuth flow lists its scopes, be it none.
    ///
    /// The schema requires the member; tools that drop empty maps leave it out, and clients load the card all the same.
    static OAUTH_SCOPES_MISSING = {
        id: "a2a/oauth-scopes-missing",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: SINCE_0_2,
        on: &[Kind::AgentCard],
        place: "/securitySchemes/*/**/flows/*/scopes",
        fix: "Add `scopes`, as an empty object if there are none.",
        spec: "A2A 1.0 §4.5.8-§4.5.10; 0.3 §5.5.3",
        seeds: &["reader:Missing required field"],
        examples: &[
            fires(
                &["/securitySchemes/key/oauth2SecurityScheme/flows/clientCredentials/scopes"],
                r#"{"securitySchemes": {"key": {"httpAuthSecurityScheme": null, "oauth2SecurityScheme": {"flows": {
                    "clientCredentials": {"tokenUrl": "https://id.example.com/token"}}}}}}"#,
            ),
            fires(
                &["/securitySchemes/key/flows/password/scopes"],
                r#"{"securitySchemes": {"key": {"type": "oauth2", "scheme": null,
                    "flows": {"password": {"tokenUrl": "https://id.example.com/token"}}}}}"#,
            ).over("a2a-0.3"),
            silent(
                r#"{"securitySchemes": {"key": {"httpAuthSecurityScheme": null, "oauth2SecurityScheme": {"flows": {
                    "clientCredentials": {"tokenUrl": "https://id.example.com/token", "scopes": {}}}}}}}"#,
            ),
        ],
        check: Check::Document(oauth_scopes_missing),
    }
}

fn oauth_scopes_missing(card: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    for (name, flow, is_new) in each_flow(card, context) {
        if !(is_new && matches!(name, "implicit" | "password")) {
            demand(flow, "scopes", out);
        }
    }
}

crate::rule! {
    /// The authorization code flow does not ask for PKCE.
    ///
    /// Without it, who catches a code on its way can turn it into a token.
    static PKCE_NOT_REQUIRED = {
        id: "a2a/pkce-not-required",
        security: true,
        basis: Basis::Hint,
        versions: &["1.0"],
        on: &[Kind::AgentCard],
        place: "/securitySchemes/*/oauth2SecurityScheme/flows/authorizationCode/pkceRequired",
        fix: "Require PKCE and say so.",
        spec: "A2A 1.0 §4.5.8; RFC 9700 §2.1.1",
        examples: &[
            fires(
                &["/securitySchemes/key/oauth2SecurityScheme/flows/authorizationCode/pkceRequired"],
                r#"{"securitySchemes": {"key": {"httpAuthSecurityScheme": null, "oauth2SecurityScheme": {"flows": {
                    "authorizationCode": {"authorizationUrl": "https://id.example.com/authorize",
                        "tokenUrl": "https://id.example.com/token", "scopes": {}}}}}}}"#,
            ),
            silent(
                r#"{"securitySchemes": {"key": {"httpAuthSecurityScheme": null, "oauth2SecurityScheme": {"flows": {
                    "authorizationCode": {"authorizationUrl": "https://id.example.com/authorize",
                        "tokenUrl": "https://id.example.com/token", "scopes": {}, "pkceRequired": true}}}}}}"#,
            ),
        ],
        check: Check::Document(pkce_not_required),
    }
}

fn pkce_not_required(card: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    for (name, flow, is_new) in each_flow(card, context) {
        let message = "a code can be redeemed without PKCE";
        match flow.given("pkceRequired") {
            _ if name != "authorizationCode" || !is_new => {}
            Some(flag) if flag.flag() == Some(false) => drop(out.add(flag, message)),
            Some(_) => {}
            None if has_in_snake_case(flow, "pkceRequired") => {}
            None => drop(out.add_missing(flow, "pkceRequired", message)),
        }
    }
}

crate::rule! {
    /// An OpenID URL leads to the discovery document.
    ///
    /// The issuer's own address is not enough: a client fetches what stands there and expects the metadata.
    static OIDC_DISCOVERY_SUFFIX = {
        id: "a2a/oidc-discovery-suffix",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        versions: SINCE_0_3,
        on: &[Kind::AgentCard],
        place: "/securitySchemes/*/**/openIdConnectUrl",
        fix: "Give the discovery document's URL, not the issuer.",
        spec: "A2A 1.0 §4.5.5; OIDC Discovery §4",
        examples: &[
            fires(
                &["/securitySchemes/key/openIdConnectSecurityScheme/openIdConnectUrl"],
                r#"{"securitySchemes": {"key": {"httpAuthSecurityScheme": null,
                    "openIdConnectSecurityScheme": {"openIdConnectUrl": "https://id.example.com"}}}}"#,
            ),
            silent(
                r#"{"securitySchemes": {"key": {"httpAuthSecurityScheme": null, "openIdConnectSecurityScheme":
                    {"openIdConnectUrl": "https://id.example.com/a/.well-known/openid-configuration"}}}}"#,
            ),
        ],
        check: Check::Document(oidc_discovery_suffix),
    }
}

fn oidc_discovery_suffix(card: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for node in oauth_urls(card).into_iter().filter(|node| node.key() == Some("openIdConnectUrl")) {
        if let Some(text) = node.text()
            && AbsoluteUrl::http(text).is_some_and(|url| !url.path.ends_with("/.well-known/openid-configuration"))
        {
            out.add(node, format!("{} is not the discovery document", quote(text)));
        }
    }
}
