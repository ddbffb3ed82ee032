//! Security schemes: how credentials are shown.

use super::parts::is_extension;
use super::reference::reference_of;
use super::{OPENAPI, V3, is_3_0, object, says};
use crate::document::{Node, Type};
use crate::judge::{Context, Occurrences};
use crate::rule::{Basis, Check, Impact, Rule, Severity, Stops, fires, silent};
use crate::text::{AbsoluteUrl, quote};

pub(super) const RULES: &[&Rule] = &[
    &SECURITY_SCHEME_TYPE_UNRECOGNISED,
    &SECURITY_SCHEME_INCOMPLETE,
    &SECURITY_URL_NOT_HTTPS,
    &SECURITY_KEY_IN_QUERY,
    &SECURITY_HTTP_BASIC,
    &SECURITY_FLOW_DEPRECATED,
];

const EACH: &[&str] = &["/components/securitySchemes/*"];

crate::rule! {
    /// Every security scheme is of a known type.
    ///
    /// A caller that does not know the type cannot show its credentials. `basic` is of Swagger 2.0; `mutualTLS` came with
    /// 3.1.
    static SECURITY_SCHEME_TYPE_UNRECOGNISED = {
        id: "openapi/security-scheme-type-unrecognised",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: V3,
        on: OPENAPI,
        place: "/components/securitySchemes/* | /components/securitySchemes/*/type",
        spec: "OpenAPI 3.1.1 Security Scheme Object",
        fix: "Set a valid type.",
        seeds: &["gaip:OPENAPI_SECURITY_SCHEME_TYPE_UNRECOGNISED"],
        examples: &[
            fires(
                &["/components/securitySchemes/key/type"],
                r#"{"components": {"securitySchemes": {"key": {"type": "basic"}}}}"#,
            ),
            fires(
                &["/components/securitySchemes/key/type"],
                r#"{"components": {"securitySchemes": {"key": {"type": null}}}}"#,
            ),
            fires(
                &["/components/securitySchemes/key/type"],
                r#"{"components": {"securitySchemes": {"key": {"type": "mutualTLS"}}}}"#,
            )
            .over("openapi-3.0"),
            silent(r#"{"components": {"securitySchemes": {"key": {"type": "mutualTLS"}}}}"#),
        ],
        stops: Stops::Value,
        check: Check::Each(EACH, security_scheme_type_unrecognised),
    }
}

fn security_scheme_type_unrecognised(scheme: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    if scheme.kind() != Type::Object {
        out.add(scheme, format!("a security scheme is {}, not an object", scheme.kind().named()));
        return;
    }
    if reference_of(scheme).is_some() {
        return;
    }
    let Some(kind) = scheme.get("type") else {
        out.add_missing(scheme, "type", "the security scheme has no type");
        return;
    };
    match kind.text() {
        Some("apiKey" | "http" | "oauth2" | "openIdConnect") => {}
        Some("mutualTLS") if !is_3_0(context) => {}
        text => {
            out.add(kind, format!("{} is no type of security scheme", quote(text.unwrap_or(kind.raw()))));
        }
    }
}

crate::rule! {
    /// A security scheme says all that its type needs.
    ///
    /// A key without a name or a flow without its addresses cannot be used.
    static SECURITY_SCHEME_INCOMPLETE = {
        id: "openapi/security-scheme-incomplete",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: V3,
        on: OPENAPI,
        place: "/components/securitySchemes/*/**",
        spec: "OpenAPI 3.1.1 Security Scheme Object, OAuth Flow Object",
        fix: "Complete the scheme.",
        examples: &[
            fires(
                &["/components/securitySchemes/key/in"],
                r#"{"components": {"securitySchemes": {"key": {"in": "body"}}}}"#,
            ),
            fires(
                &["/components/securitySchemes/login/flows/clientCredentials/tokenUrl"],
                r#"{"components": {"securitySchemes": {"login": {"type": "oauth2",
                "flows": {"clientCredentials": {"scopes": {}}}}}}}"#,
            ),
            fires(
                &["/components/securitySchemes/bearer/scheme"],
                r#"{"components": {"securitySchemes": {"bearer": {"type": "http"}}}}"#,
            ),
            silent(
                r#"{"components": {"securitySchemes": {"login": {"type": "oauth2",
                "flows": {"clientCredentials": {"tokenUrl": "https://id.tides.plumbtest.dev/token", "scopes": {}}}}}}}"#,
            ),
        ],
        check: Check::Each(EACH, security_scheme_incomplete),
    }
}

fn security_scheme_incomplete(scheme: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    match type_of(scheme) {
        Some("apiKey") => {
            need_text(scheme, "name", out);
            let place = scheme.get("in");
            let known = |place: Node<'_>| matches!(place.text(), Some("query" | "header" | "cookie"));
            match place {
                None => need_text(scheme, "in", out),
                Some(place) if !known(place) => {
                    let text = place.text().unwrap_or(place.raw());
                    out.add(place, format!("a key cannot stand in {}", quote(text)));
                }
                Some(_) => {}
            }
        }
        Some("http") => need_text(scheme, "scheme", out),
        Some("openIdConnect") => need_text(scheme, "openIdConnectUrl", out),
        Some("oauth2") => flows_incomplete(scheme, out),
        _ => {}
    }
}

fn flows_incomplete(scheme: Node<'_>, out: &mut Occurrences) {
    let flows = scheme.get("flows");
    let Some(flows) = flows.filter(|flows| flows.kind() == Type::Object && !flows.is_empty()) else {
        match flows {
            Some(flows) => out.add(flows, "the scheme has no flow"),
            None => out.add_missing(scheme, "flows", "the scheme has no flow"),
        };
        return;
    };
    for (name, flow) in flows.members() {
        let addresses: &[&str] = match name {
            "implicit" => &["authorizationUrl"],
            "password" | "clientCredentials" => &["tokenUrl"],
            "authorizationCode" => &["authorizationUrl", "tokenUrl"],
            _ => continue,
        };
        if flow.kind() != Type::Object {
            out.add(flow, format!("the flow `{name}` is {}, not an object", flow.kind().named()));
            continue;
        }
        addresses.iter().for_each(|address| need_text(flow, address, out));
        match flow.get("scopes") {
            None => {
                out.add_missing(flow, "scopes", format!("the flow `{name}` lists no scopes"));
            }
            Some(scopes) if scopes.kind() != Type::Object => {
                out.add(scopes, format!("the scopes are {}, not an object", scopes.kind().named()));
            }
            Some(_) => {}
        }
    }
}

fn need_text(node: Node<'_>, name: &str, out: &mut Occurrences) {
    if !says(node, name) {
        match node.get(name) {
            Some(member) => out.add(member, format!("`{name}` is blank or no string")),
            None => out.add_missing(node, name, format!("there is no `{name}`")),
        };
    }
}

/// The type of a scheme that stands here itself.
fn type_of<'d>(scheme: Node<'d>) -> Option<&'d str> {
    if reference_of(scheme).is_some() { None } else { scheme.get("type")?.text() }
}

/// The flows of an OAuth scheme.
fn flows_of<'d>(scheme: Node<'d>) -> impl Iterator<Item = (&'d str, Node<'d>)> {
    let flows = if type_of(scheme) == Some("oauth2") { object(scheme, "flows") } else { None };
    flows.into_iter().flat_map(Node::members).filter(|(name, _)| !is_extension(name))
}

crate::rule! {
    /// Codes and tokens are asked for over https.
    ///
    /// They can be read on the way otherwise.
    static SECURITY_URL_NOT_HTTPS = {
        id: "openapi/security-url-not-https",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        security: true,
        basis: Basis::Policy,
        versions: V3,
        on: OPENAPI,
        place: "/components/securitySchemes/*/**",
        spec: "RFC 6749 3.1, 3.2; OpenID Connect Discovery 4",
        fix: "Use https.",
        seeds: &["inspector:oidc-url-resolution"],
        examples: &[
            fires(
                &["/components/securitySchemes/login/openIdConnectUrl"],
                r#"{"components": {"securitySchemes": {"login": {"type": "openIdConnect",
                "openIdConnectUrl": "http://id.tides.plumbtest.dev/.well-known/openid-configuration"}}}}"#,
            ),
            silent(
                r#"{"components": {"securitySchemes": {"login": {"type": "openIdConnect",
                "openIdConnectUrl": "/.well-known/openid-configuration"}}}}"#,
            ),
        ],
        check: Check::Each(EACH, security_url_not_https),
    }
}

fn security_url_not_https(scheme: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    let own = scheme.get("openIdConnectUrl").filter(|_| type_of(scheme) == Some("openIdConnect"));
    let of_flows = flows_of(scheme).flat_map(|(_, flow)| {
        ["authorizationUrl", "tokenUrl", "refreshUrl"].into_iter().filter_map(move |name| flow.get(name))
    });
    for address in own.into_iter().chain(of_flows) {
        if let Some(text) = address.text()
            && is_plain(text, context.given.url.as_deref())
        {
            out.add(address, format!("{} is not reached over https", quote(text)));
        }
    }
}

/// Whether an address, read from where the document was fetched, is none of https. Of a relative one without a place it
/// cannot be told.
fn is_plain(address: &str, from: Option<&str>) -> bool {
    if let Some(url) = AbsoluteUrl::parse(address) {
        return !url.is("https");
    }
    let from = from.and_then(|from| url::Url::parse(from).ok());
    from.and_then(|from| from.join(address).ok()).is_some_and(|url| url.scheme() != "https")
}

crate::rule! {
    /// A key is not sent in the query.
    ///
    /// Addresses end in logs, histories and referrers, and the key in them with it.
    static SECURITY_KEY_IN_QUERY = {
        id: "openapi/security-key-in-query",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        security: true,
        basis: Basis::Policy,
        versions: V3,
        on: OPENAPI,
        place: "/components/securitySchemes/*/in",
        spec: "OWASP API rulesets no-api-keys-in-url",
        fix: "Use a header.",
        examples: &[
            fires(
                &["/components/securitySchemes/key/in"],
                r#"{"components": {"securitySchemes": {"key": {"in": "query"}}}}"#,
            ),
            silent(r#"{"components": {"securitySchemes": {"key": {"in": "cookie"}}}}"#),
        ],
        check: Check::Each(EACH, security_key_in_query),
    }
}

fn security_key_in_query(scheme: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if type_of(scheme) == Some("apiKey")
        && let Some(place) = scheme.get("in").filter(|place| place.text() == Some("query"))
    {
        out.add(place, "the key is sent in the query");
    }
}

crate::rule! {
    /// Credentials are not sent as name and password.
    ///
    /// They go out with every request, live long, and cannot be narrowed to a task as tokens can.
    static SECURITY_HTTP_BASIC = {
        id: "openapi/security-http-basic",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        security: true,
        basis: Basis::Policy,
        versions: V3,
        on: OPENAPI,
        place: "/components/securitySchemes/*/scheme",
        spec: "OWASP API rulesets no-http-basic",
        fix: "Use bearer tokens.",
        examples: &[
            fires(
                &["/components/securitySchemes/login/scheme"],
                r#"{"components": {"securitySchemes": {"login": {"type": "http", "scheme": "Basic"}}}}"#,
            ),
            silent(r#"{"components": {"securitySchemes": {"login": {"type": "http", "scheme": "Bearer"}}}}"#),
        ],
        check: Check::Each(EACH, security_http_basic),
    }
}

fn security_http_basic(scheme: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if type_of(scheme) != Some("http") {
        return;
    }
    let Some((node, text)) = scheme.get("scheme").and_then(|node| Some((node, node.text()?))) else { return };
    if ["basic", "negotiate", "oauth"].iter().any(|weak| text.eq_ignore_ascii_case(weak)) {
        out.add(node, format!("the scheme is {}", quote(text)));
    }
}

crate::rule! {
    /// Beside a flow that is given up, a present one is offered.
    ///
    /// The implicit flow puts tokens into addresses, the password flow hands a person's password to the caller.
    static SECURITY_FLOW_DEPRECATED = {
        id: "openapi/security-flow-deprecated",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        security: true,
        basis: Basis::Policy,
        versions: V3,
        on: OPENAPI,
        place: "/components/securitySchemes/*/flows/*",
        spec: "RFC 9700 2.1.2, 2.4",
        fix: "Offer authorizationCode with PKCE.",
        seeds: &["reader:Deprecated OAuth flow"],
        examples: &[
            fires(
                &["/components/securitySchemes/login/flows/implicit"],
                r#"{"components": {"securitySchemes": {"login": {"type": "oauth2",
                "flows": {"implicit": {"authorizationUrl": "https://id.tides.plumbtest.dev/a", "scopes": {}}}}}}}"#,
            ),
            silent(
                r#"{"components": {"securitySchemes": {"login": {"type": "oauth2", "flows": {
                "password": {"tokenUrl": "https://id.tides.plumbtest.dev/t", "scopes": {}},
                "clientCredentials": {"tokenUrl": "https://id.tides.plumbtest.dev/t", "scopes": {}}}}}}}"#,
            ),
        ],
        check: Check::Each(EACH, security_flow_deprecated),
    }
}

fn security_flow_deprecated(scheme: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let present = |name: &str| matches!(name, "authorizationCode" | "clientCredentials");
    if flows_of(scheme).any(|(name, _)| present(name)) {
        return;
    }
    for (name, flow) in flows_of(scheme).filter(|(name, _)| matches!(*name, "implicit" | "password")) {
        out.add(flow, format!("the flow `{name}` is the only way offered"));
    }
}
