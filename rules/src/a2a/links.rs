//! The provider, links, media types, and whose hosts a card names.

use std::collections::HashSet;

use super::interfaces::endpoints;
use super::required::{demand, is_blank, skills};
use super::schemes::oauth_urls;
use super::table::{EVERY, SINCE_0_2, SINCE_0_3};
use crate::document::{Node, Type};
use crate::judge::{Context, Occurrences};
use crate::kind::Kind;
use crate::report::NotEvaluated;
use crate::rule::{Basis, Check, Class, Impact, Rule, Severity, fires, silent};
use crate::text::{AbsoluteUrl, host_is_loopback, quote, registrable_domain};

pub(super) const RULES: &[&Rule] = &[
    &PROVIDER_MISSING,
    &PROVIDER_MEMBER_REQUIRED,
    &URL_NOT_ABSOLUTE,
    &LINK_PLAIN_HTTP,
    &OAUTH_URL_PLAIN_HTTP,
    &PROVIDER_DOMAIN_DIFFERS,
    &HOST_DOMAIN_DIFFERS,
    &MEDIA_TYPE_INVALID,
    &MEDIA_TYPE_WILDCARD,
    &MEDIA_TYPE_DUPLICATE,
];

crate::rule! {
    /// The card does not say who runs the agent.
    ///
    /// A provider is optional; people who choose an agent look for one.
    static PROVIDER_MISSING = {
        id: "a2a/provider-missing",
        class: Class::Fact,
        basis: Basis::Hint,
        versions: EVERY,
        on: &[Kind::AgentCard],
        place: "/provider",
        fix: "Add `provider` with organization and url.",
        spec: "A2A 1.0 §4.4.2",
        seeds: &["gaip:A2A_PROVIDER_MISSING"],
        examples: &[
            fires(&["/provider"], r#"{"provider": null}"#),
            silent("{}"),
        ],
        check: Check::Document(provider_missing),
    }
}

fn provider_missing(card: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if card.given("provider").is_none() {
        out.add_missing(card, "provider", "nobody is named as the provider");
    }
}

crate::rule! {
    /// A provider has a name and an address.
    ///
    /// Both are required once there is a provider at all; A2A 0.1 asks for the organization alone.
    static PROVIDER_MEMBER_REQUIRED = {
        id: "a2a/provider-member-required",
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        impact_overrides: &[("0.1", Impact::Cosmetic), ("0.2", Impact::Cosmetic), ("1.0", Impact::Cosmetic)],
        impact_evidence: "a2a-sdk 0.3.26 and 1.3.0, @a2a-js/sdk 1.3.0, 2026-11",
        clients: &["a2a-sdk 0.3.26: refuses (0.3)"],
        versions: EVERY,
        on: &[Kind::AgentCard],
        place: "/provider/organization, /provider/url",
        fix: "Add the missing member.",
        spec: "A2A 1.0 §4.4.2; 0.3 §5.5.1",
        seeds: &["gaip:A2A_PROVIDER_ORGANIZATION_MISSING", "reader:Missing required field"],
        examples: &[
            fires(&["/provider/url"], r#"{"provider": {"url": null}}"#),
            fires(&["/provider/organization"], r#"{"provider": {"organization": null}}"#).over("a2a-0.3"),
            silent(r#"{"provider": null}"#),
        ],
        check: Check::Document(provider_member_required),
    }
}

fn provider_member_required(card: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    if let Some(provider) = card.given("provider") {
        demand(provider, "organization", out);
        // 0.1 asks for the organisation alone.
        if ["0.2", "0.3", "1.0"].iter().any(|version| context.profile.has(version)) {
            demand(provider, "url", out);
        }
    }
}

/// The links for people.
fn links(card: Node<'_>) -> impl Iterator<Item = Node<'_>> {
    let provider = card.get("provider").and_then(|provider| provider.get("url"));
    card.get("documentationUrl").into_iter().chain(card.get("iconUrl")).chain(provider)
}

crate::rule! {
    /// A link is an absolute http or https URL.
    ///
    /// A card has no base address, so a relative one leads nowhere; OAuth and OpenID endpoints have to be URLs anyway.
    static URL_NOT_ABSOLUTE = {
        id: "a2a/url-not-absolute",
        severity: Severity::Error,
        impact: Some(Impact::Degrades),
        versions: EVERY,
        on: &[Kind::AgentCard],
        place: "/documentationUrl, /iconUrl, /provider/url, \
            /securitySchemes/**/{authorizationUrl,tokenUrl,refreshUrl,deviceAuthorizationUrl,openIdConnectUrl,oauth2MetadataUrl}",
        fix: "Write the full URL with https://.",
        spec: "A2A 1.0 §4.4.1, §4.4.2, §4.5",
        seeds: &[
            "reader:Not an absolute URL", "gaip:A2A_URL_FIELD_INVALID", "gaip:A2A_PROVIDER_URL_INVALID",
            "gaip:A2A_SECURITY_SCHEME_URL_INVALID",
        ],
        examples: &[
            fires(&["/documentationUrl"], r#"{"documentationUrl": "/docs"}"#),
            fires(&["/provider/url"], r#"{"provider": {"url": "www.example.com"}}"#),
            fires(
                &["/securitySchemes/key/openIdConnectSecurityScheme/openIdConnectUrl"],
                r#"{"securitySchemes": {"key": {"httpAuthSecurityScheme": null,
                    "openIdConnectSecurityScheme": {"openIdConnectUrl": "id.example.com"}}}}"#,
            ),
            silent(r#"{"iconUrl": "data:image/png;base64,iVBORw0KGgo="}"#),
        ],
        yields_to: &["common/unsafe-url-scheme"],
        check: Check::Document(url_not_absolute),
    }
}

fn url_not_absolute(card: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for node in links(card).chain(oauth_urls(card)) {
        let Some(text) = node.text().filter(|text| !is_blank(text)) else { continue };
        let is_picture = node.key() == Some("iconUrl") && starts_with_ignoring_case(text, "data:image/");
        if !is_picture && AbsoluteUrl::http(text).is_none() {
            out.add(node, format!("{} is no absolute http or https URL", quote(text)));
        }
    }
}

fn starts_with_ignoring_case(text: &str, start: &str) -> bool {
    text.get(..start.len()).is_some_and(|head| head.eq_ignore_ascii_case(start))
}

/// The host of a URL that is called without TLS and not on this machine.
fn is_plain_http(text: &str) -> bool {
    AbsoluteUrl::parse(text).is_some_and(|url| url.is("http") && !host_is_loopback(url.host))
}

crate::rule! {
    /// A link uses https.
    ///
    /// Browsers warn about plain http, and whoever sits on the way can change the page.
    static LINK_PLAIN_HTTP = {
        id: "a2a/link-plain-http",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        basis: Basis::Hint,
        versions: EVERY,
        on: &[Kind::AgentCard],
        place: "/documentationUrl, /iconUrl, /provider/url",
        fix: "Use https.",
        spec: "A2A 1.0 §7.1",
        seeds: &["gaip:A2A_URL_FIELD_INVALID", "gaip:A2A_PROVIDER_URL_INVALID", "reader:Plain HTTP"],
        examples: &[
            fires(&["/documentationUrl"], r#"{"documentationUrl": "http://www.example.com/tides"}"#),
            silent(r#"{"documentationUrl": "https://www.example.com/tides"}"#),
        ],
        yields_to: &["common/unsafe-url-scheme", "a2a/url-not-absolute", "common/url-not-public"],
        check: Check::Document(link_plain_http),
    }
}

fn link_plain_http(card: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for (node, text) in links(card).filter_map(|node| Some((node, node.text()?))) {
        if is_plain_http(text) {
            out.add(node, format!("{} is not over https", quote(text)));
        }
    }
}

crate::rule! {
    /// OAuth and OpenID endpoints use https.
    ///
    /// Codes, tokens and client secrets travel over them.
    static OAUTH_URL_PLAIN_HTTP = {
        id: "a2a/oauth-url-plain-http",
        severity: Severity::Error,
        impact: Some(Impact::Degrades),
        security: true,
        versions: SINCE_0_2,
        on: &[Kind::AgentCard],
        place: "/securitySchemes/**/{authorizationUrl,tokenUrl,refreshUrl,deviceAuthorizationUrl,openIdConnectUrl,oauth2MetadataUrl}",
        fix: "Use https.",
        spec: "A2A 1.0 §4.5.4, §4.5.8; RFC 6749 §3.1, §3.2; OIDC Discovery §4",
        seeds: &["gaip:A2A_SECURITY_SCHEME_URL_INVALID", "reader:Plain HTTP"],
        examples: &[
            fires(
                &["/securitySchemes/key/openIdConnectSecurityScheme/openIdConnectUrl"],
                r#"{"securitySchemes": {"key": {"httpAuthSecurityScheme": null, "openIdConnectSecurityScheme":
                    {"openIdConnectUrl": "http://id.example.com/.well-known/openid-configuration"}}}}"#,
            ),
            silent(
                r#"{"securitySchemes": {"key": {"httpAuthSecurityScheme": null, "openIdConnectSecurityScheme":
                    {"openIdConnectUrl": "https://id.example.com/.well-known/openid-configuration"}}}}"#,
            ),
        ],
        yields_to: &["common/unsafe-url-scheme", "a2a/url-not-absolute", "common/url-not-public"],
        check: Check::Document(oauth_url_plain_http),
    }
}

fn oauth_url_plain_http(card: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for (node, text) in oauth_urls(card).into_iter().filter_map(|node| Some((node, node.text()?))) {
        if is_plain_http(text) {
            out.add(node, format!("{} is not over https", quote(text)));
        }
    }
}

/// The registrable domain of the host that served the card.
fn own_domain(context: &Context<'_>) -> Option<String> {
    context.address().and_then(AbsoluteUrl::parse).and_then(|url| registrable_domain(url.host))
}

/// The registrable domain of a URL, when it is not the card's own.
fn foreign_domain(text: &str, own: &str) -> Option<String> {
    AbsoluteUrl::parse(text).and_then(|url| registrable_domain(url.host)).filter(|domain| domain != own)
}

crate::rule! {
    /// The provider's site is on another domain than the card.
    ///
    /// Common with hosted agents; a reader may want to check that the two belong together.
    static PROVIDER_DOMAIN_DIFFERS = {
        id: "a2a/provider-domain-differs",
        class: Class::Fact,
        basis: Basis::Hint,
        versions: EVERY,
        on: &[Kind::AgentCard],
        place: "/provider/url",
        fix: "Check that the operator is the one the card names.",
        spec: "not in A2A",
        examples: &[
            fires(&["/provider/url"], r#"{"provider": {"url": "https://harbour.example"}}"#)
                .given(r#"{"url": "https://tides.example.com/.well-known/agent-card.json"}"#),
            silent("{}").given(r#"{"url": "https://tides.example.com/.well-known/agent-card.json"}"#),
            silent(r#"{"provider": {"url": "https://harbour.example"}}"#),
        ],
        check: Check::Document(provider_domain_differs),
    }
}

fn provider_domain_differs(card: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    let Some(own) = own_domain(context) else { return out.not_evaluated(NotEvaluated::NoOrigin) };
    if let Some(url) = card.get("provider").and_then(|provider| provider.get("url"))
        && let Some(domain) = url.text().and_then(|text| foreign_domain(text, &own))
    {
        out.add(url, format!("{} served the card, the provider is at {}", quote(&own), quote(&domain)));
    }
}

crate::rule! {
    /// The card names an interface or OAuth endpoint on another domain than its own.
    ///
    /// Normal for hosted agents; a domain that appears later is news.
    static HOST_DOMAIN_DIFFERS = {
        id: "a2a/host-domain-differs",
        class: Class::Fact,
        security: true,
        basis: Basis::Policy,
        versions: EVERY,
        on: &[Kind::AgentCard],
        place: "/supportedInterfaces/*/url, /additionalInterfaces/*/url, /url, \
            /securitySchemes/**/{authorizationUrl,tokenUrl,refreshUrl,deviceAuthorizationUrl,openIdConnectUrl,oauth2MetadataUrl}",
        fix: "None needed if intended.",
        spec: "Plumbline policy",
        examples: &[
            fires(&["/supportedInterfaces/0/url"], r#"{"supportedInterfaces": [{"url": "https://agents.tidewatch.dev/a2a"}]}"#)
                .given(r#"{"url": "https://tides.example.com/.well-known/agent-card.json"}"#),
            silent(r#"{"supportedInterfaces": [{"url": "https://rpc.example.com/a2a"}]}"#)
                .given(r#"{"url": "https://tides.example.com/.well-known/agent-card.json"}"#),
            silent(r#"{"supportedInterfaces": [{"url": "https://agents.tidewatch.dev/a2a"}]}"#),
        ],
        check: Check::Document(host_domain_differs),
    }
}

fn host_domain_differs(card: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    let Some(own) = own_domain(context) else { return out.not_evaluated(NotEvaluated::NoOrigin) };
    let mut hosts = HashSet::new();
    for node in endpoints(card, context).map(|endpoint| endpoint.url).chain(oauth_urls(card)) {
        let Some(text) = node.text() else { continue };
        let host = AbsoluteUrl::parse(text).map_or("", |url| url.host);
        if let Some(domain) = foreign_domain(text, &own)
            && hosts.insert(host)
        {
            out.add(node, format!("{} served the card, this is on {}", quote(&own), quote(&domain)));
        }
    }
}

/// Every list of media types.
fn mode_lists(card: Node<'_>) -> impl Iterator<Item = Node<'_>> {
    let defaults = [card.get("defaultInputModes"), card.get("defaultOutputModes")];
    let of_skills = skills(card).flat_map(|skill| [skill.get("inputModes"), skill.get("outputModes")]);
    defaults.into_iter().chain(of_skills).flatten()
}

fn modes(card: Node<'_>) -> impl Iterator<Item = (Node<'_>, &str)> {
    mode_lists(card).flat_map(Node::items).filter_map(|node| Some((node, node.text()?)))
}

crate::rule! {
    /// A mode is a media type.
    ///
    /// Clients compare modes with the types of what they have; `text` matches nothing. Only 0.1 had it as a default.
    static MEDIA_TYPE_INVALID = {
        id: "a2a/media-type-invalid",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        versions: SINCE_0_3,
        on: &[Kind::AgentCard],
        place: "/defaultInputModes/*, /defaultOutputModes/*, /skills/*/inputModes/*, /skills/*/outputModes/*",
        fix: "Use a media type such as text/plain.",
        spec: "A2A 1.0 §4.4.1, §4.4.5; RFC 6838 §4.2",
        seeds: &["reader:Not a media type", "gaip:A2A_MEDIA_TYPE_UNRECOGNISED"],
        examples: &[
            fires(&["/defaultInputModes/0"], r#"{"defaultInputModes": ["text"]}"#),
            fires(&["/skills/0/outputModes/0"], r#"{"skills": [{"outputModes": ["application / json"]}]}"#),
            silent(r#"{"defaultInputModes": ["application/vnd.tides+json; version=2", "TEXT/HTML"]}"#),
        ],
        check: Check::Document(media_type_invalid),
    }
}

fn media_type_invalid(card: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for (node, text) in modes(card) {
        if mode(text).is_none() {
            out.add(node, format!("{} is no media type", quote(text)));
        }
    }
}

/// Whether a text is a media type (`false`) or a range of them (`true`); `None` when it is neither.
fn mode(text: &str) -> Option<bool> {
    let (essence, parameters) = text.split_once(';').unwrap_or((text, ""));
    let (kind, subtype) = essence.trim_end().split_once('/')?;
    let is_range = subtype == "*" && (kind == "*" || is_restricted_name(kind));
    let is_type = is_restricted_name(kind) && is_restricted_name(subtype);
    ((is_range || is_type) && parameters.split(';').all(is_parameter)).then_some(is_range)
}

/// The form of a type or subtype name in RFC 6838 §4.2.
fn is_restricted_name(text: &str) -> bool {
    text.len() <= 127
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&b))
}

/// `name=value`, or nothing.
fn is_parameter(text: &str) -> bool {
    let text = text.trim();
    text.is_empty() || text.split_once('=').is_some_and(|(name, value)| is_restricted_name(name) && !value.is_empty())
}

crate::rule! {
    /// A mode names one media type, not a range.
    ///
    /// Clients that compare letter by letter never match `image/*`.
    static MEDIA_TYPE_WILDCARD = {
        id: "a2a/media-type-wildcard",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        basis: Basis::Hint,
        versions: SINCE_0_3,
        on: &[Kind::AgentCard],
        place: "/defaultInputModes/*, /defaultOutputModes/*, /skills/*/inputModes/*, /skills/*/outputModes/*",
        fix: "List the concrete media types.",
        spec: "RFC 6838 §4.2; RFC 9110 §12.5.1",
        examples: &[
            fires(&["/defaultInputModes/0"], r#"{"defaultInputModes": ["*/*"]}"#),
            fires(&["/defaultInputModes/1"], r#"{"defaultInputModes": ["image/png", "image/*"]}"#),
            silent(r#"{"defaultInputModes": ["image/png"]}"#),
        ],
        check: Check::Document(media_type_wildcard),
    }
}

fn media_type_wildcard(card: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for (node, text) in modes(card) {
        if text.contains('*') && mode(text) == Some(true) {
            out.add(node, format!("{} is a range of media types", quote(text)));
        }
    }
}

crate::rule! {
    /// A media type stands twice in one list.
    ///
    /// Harmless; one of the two can go.
    static MEDIA_TYPE_DUPLICATE = {
        id: "a2a/media-type-duplicate",
        basis: Basis::Hint,
        versions: SINCE_0_3,
        on: &[Kind::AgentCard],
        place: "/defaultInputModes, /defaultOutputModes, /skills/*/inputModes, /skills/*/outputModes",
        fix: "Remove the repeated entry.",
        spec: "not in A2A",
        examples: &[
            fires(&["/defaultInputModes"], r#"{"defaultInputModes": ["text/plain", "Text/Plain"]}"#),
            silent(r#"{"defaultInputModes": ["text/plain; charset=utf-8", "text/plain"]}"#),
        ],
        check: Check::Document(media_type_duplicate),
    }
}

fn media_type_duplicate(card: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for list in mode_lists(card).filter(|list| list.kind() == Type::Array && list.len().is_some_and(|len| len > 1)) {
        let mut seen = HashSet::new();
        let same = |text: &str| text.to_ascii_lowercase().replace([' ', '\t'], "");
        if let Some(text) = list.items().filter_map(Node::text).find(|text| !seen.insert(same(text))) {
            out.add(list, format!("{} stands twice", quote(text)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_types_are_told_from_words() {
        for text in
            ["text/plain", "TEXT/HTML", "application/vnd.a-b+json; version=2", "text/plain;", "a/b;c=\"d e\";f=g"]
        {
            assert_eq!(mode(text), Some(false), "{text}");
        }
        for text in ["*/*", "image/*", "image/*; q=1"] {
            assert_eq!(mode(text), Some(true), "{text}");
        }
        let long = format!("text/{}", "a".repeat(128));
        for text in
            ["", "text", "a/b/c", "/b", "a/", " a/b", "a /b", "a/ b", "a/.b", "*/b", "a/b;c", "a/b;=d", "ä/b", &long]
        {
            assert_eq!(mode(text), None, "{text}");
        }
    }
}
