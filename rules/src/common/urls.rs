//! Addresses in a document that nobody should call, and credentials inside addresses.

use url::Url;

use crate::document::{Document, Node};
use crate::judge::{Context, Occurrences, Origin};
use crate::kind::Kind;
use crate::report::NotEvaluated;
use crate::rule::{Basis, Check, Impact, Rule, Severity, fires, silent};
use crate::session::Session;
use crate::text::{AbsoluteUrl, host_is_loopback, is_placeholder, is_public_host, quote};

use super::strings::{name, names_above, says, strings};

pub(super) const RULES: &[&Rule] = &[&UNSAFE_URL_SCHEME, &CREDENTIAL_IN_URL, &URL_NOT_PUBLIC];

crate::rule! {
    /// A link runs code or leads into the reader's own machine.
    ///
    /// `javascript:` and its like run where the link is opened, `data:` carries a page of its own, `file:` points at the
    /// reader's disk: whoever shows the link becomes the tool of whoever wrote it.
    static UNSAFE_URL_SCHEME = {
        id: "common/unsafe-url-scheme",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        security: true,
        basis: Basis::Policy,
        place: "/**",
        fix: "Use a public https URL.",
        spec: "crawler policy; WHATWG URL",
        seeds: &["gaip:EVIDENCE_POISONING_BLOCKED"],
        examples: &[
            fires(&["/capabilities/extensions/0/params/helpUrl"], in_params!(r#"{"helpUrl": " JaVa\tScRiPt:alert(1)"}"#)),
            fires(&["/capabilities/extensions/0/params/evidence_urls/1"], in_params!(r#"{"evidence_urls": ["https://x.example.com", "file:///etc/passwd"]}"#)),
            fires(&["/capabilities/extensions/0/params/icon_uri"], in_params!(r#"{"icon_uri": "data:image/svg+xml;base64,PHN2Zy8+"}"#)),
            fires(&["/capabilities/extensions/0/params/href"], in_params!(r#"{"href": "data:image/png;base64,iVBORw0KGgo="}"#)),
            silent(in_params!(r#"{"icon_uri": "data:image/png;base64,iVBORw0KGgo=", "icons": [{"src": "data:image/webp;base64,UklGRg=="}]}"#)),
            silent(in_params!(r#"{"url": "https://docs.example.com/data:sheet", "uri": "urn:tides:1", "link": "about: our harbour"}"#)),
            silent(in_params!(r#"{"resources": [{"uri": "file:///tides.csv"}], "note": "javascript: a language"}"#)),
        ],
        check: Check::Document(unsafe_url_scheme),
    }
}

/// Schemes whose links are never what a public document is about.
const UNSAFE_SCHEMES: &[&str] = &["javascript", "data", "vbscript", "file", "blob", "about"];

fn unsafe_url_scheme(root: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    for (node, text) in strings(root) {
        let Some(scheme) = unsafe_scheme(text) else { continue };
        if !names_a_reference(name(node)) || is_allowed(scheme, text, node, context) {
            continue;
        }
        out.add(node, format!("{} has the scheme `{scheme}:`", quote(text)));
    }
}

/// The unsafe scheme that a browser would see: it drops control characters and the space around.
fn unsafe_scheme(text: &str) -> Option<&'static str> {
    let seen = || text.bytes().filter(|b| !b.is_ascii_control()).skip_while(|b| *b == b' ');
    let begins = |scheme: &&&str| {
        let mut seen = seen();
        scheme.bytes().all(|letter| seen.next().is_some_and(|b| b.eq_ignore_ascii_case(&letter)))
            && seen.next() == Some(b':')
    };
    UNSAFE_SCHEMES.iter().find(begins).copied()
}

/// Whether a field of that name holds an address, or a list of that name holds addresses.
fn names_a_reference(name: &str) -> bool {
    const ENDS: &[&str] = &["url", "uri", "src", "href", "link", "iri", "reference"];
    let lower = name.to_ascii_lowercase();
    ENDS.iter().any(|end| lower.ends_with(end) || lower.strip_suffix('s').is_some_and(|one| one.ends_with(end)))
}

fn is_allowed(scheme: &str, text: &str, node: Node<'_>, context: &Context<'_>) -> bool {
    match scheme {
        "data" => is_picture(text) && is_icon(node),
        "file" => is_resource(node, context),
        // `about: us` is a heading.
        "about" => text.split_once(':').is_some_and(|(_, rest)| rest.starts_with(' ')),
        _ => false,
    }
}

/// A picture that cannot run anything: an SVG can.
fn is_picture(text: &str) -> bool {
    let lower = text.trim_start().get(..32.min(text.trim_start().len())).unwrap_or_default().to_ascii_lowercase();
    ["png", "jpeg", "jpg", "gif", "webp"].iter().any(|kind| lower.starts_with(&format!("data:image/{kind};base64")))
}

fn is_icon(node: Node<'_>) -> bool {
    let is_named = |name: &str| {
        let name = name.to_ascii_lowercase();
        name.contains("icon") || name.contains("logo")
    };
    is_named(name(node)) || names_above(node).next().is_some_and(is_named)
}

/// The address of an MCP resource names a file of the server, not of the reader.
fn is_resource(node: Node<'_>, context: &Context<'_>) -> bool {
    let is_of_mcp = context.kind.as_str().starts_with("mcp-") || context.kind == Kind::JsonrpcResponse;
    let is_in_list = || names_above(node).any(|above| matches!(above, "resources" | "resourceTemplates" | "resource"));
    matches!(name(node), "uri" | "uriTemplate") && (is_of_mcp || is_in_list())
}

crate::rule! {
    /// A credential stands inside a URL.
    ///
    /// A user name with a password, or a key in the query: everybody who reads the document can use it, and servers on
    /// the way write it into their logs.
    static CREDENTIAL_IN_URL = {
        id: "common/credential-in-url",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        security: true,
        basis: Basis::Policy,
        place: "/**",
        fix: "Publish the URL without credentials.",
        spec: "RFC 3986 3.2.1; crawler policy",
        seeds: &["gaip:SECRET_BEARING_FIELD_BLOCKED", "gaip:A2A_INTERFACE_URL_INVALID", "inspector:embedded-secrets"],
        examples: &[
            fires(&["/documentationUrl"], r#"{"documentationUrl": "https://harbour:Wint3r@docs.example.com/"}"#),
            fires(&["/documentationUrl"], r#"{"documentationUrl": "https://docs.example.com/?lang=en&API_KEY=9Zk2LmXv81Tt"}"#),
            fires(&["/description"], r#"{"description": "Tides from mysql://tides:Spr1ng@db.example.com/tides, hourly."}"#),
            silent(r#"{"documentationUrl": "https://docs.example.com/?api_key={api_key}&token=%7Btoken%7D&key=YOUR_KEY_HERE"}"#),
            silent(r#"{"documentationUrl": "https://docs.example.com/@team?key=weather&code=getting-started"}"#),
            silent(r#"{"description": "Give the database as db://username:password@db.example.com or db://postgres:password@localhost:5432/tides."}"#),
            silent(r#"{"description": "Ask mailto:tides@example.com or clone ssh://git@git.example.com/tides or git@example.com:tides."}"#),
            silent(r#"{"description": "See https://swap.example.com/?token=0xD8E6798331265b46136198b1ECf492Cb84797acD for tides."}"#),
        ],
        yields_to: &["registry/input-secret-static", "common/secret-pattern", "common/secret-in-field"],
        check: Check::Document(credential_in_url),
    }
}

fn credential_in_url(root: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let document = root.document();
    if !says(document, |text| text.contains('@')) && !says(document, |text| text.contains('=')) {
        return;
    }
    for (node, text) in strings(root) {
        if let Some(what) = credential_in(text) {
            out.add(node, what);
        }
    }
}

/// What gives access in any URL of a text, in words that do not repeat it.
pub(super) fn credential_in(text: &str) -> Option<String> {
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, after) = (&rest[..at], &rest[at + 3..]);
        let end = after.find(|c: char| c.is_whitespace() || c.is_control() || "\"'`<>\\|^".contains(c));
        let url = &after[..end.unwrap_or(after.len())];
        if let Some(what) = user_in(scheme_before(before), url).or_else(|| key_in(url)) {
            return Some(what);
        }
        rest = after;
    }
    None
}

fn scheme_before(text: &str) -> &str {
    let start = text.rfind(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.')));
    &text[start.map_or(0, |at| at + text[at..].chars().next().map_or(1, char::len_utf8))..]
}

/// A user with a password, or on the web a user alone, which then is a token.
fn user_in(scheme: &str, url: &str) -> Option<String> {
    let authority = &url[..url.find(['/', '?', '#']).unwrap_or(url.len())];
    let (user, host) = authority.rsplit_once('@')?;
    let (name, password) = user.split_once(':').map_or((user, None), |(name, password)| (name, Some(password)));
    let is_web = ["http", "https", "ws", "wss"].iter().any(|web| scheme.eq_ignore_ascii_case(web));
    let gives_access = password.is_some_and(|password| !password.is_empty()) || (is_web && !name.is_empty());
    if scheme.is_empty() || !gives_access || is_to_be_filled_in(user) || are_placeholder_words(name, password, host) {
        return None;
    }
    let what = if password.is_some() { "a user and a password" } else { "a user" };
    Some(format!("a URL on {} carries {what}", quote(host)))
}

/// `username:password`, and `postgres:password` for a database on the reader's own machine: how to write it.
fn are_placeholder_words(name: &str, password: Option<&str>, host: &str) -> bool {
    const NAMES: &[&str] = &["user", "username", "login", "name", "myuser", "dbuser", "db_user"];
    const PASSWORDS: &[&str] =
        &["password", "passwd", "pass", "pwd", "mypassword", "secret", "token", "api_key", "apikey"];
    let is_one_of = |words: &[&str], text: &str| {
        let text = text.trim_matches(['[', ']', '(', ')', '%']);
        words.iter().any(|word| text.eq_ignore_ascii_case(word))
    };
    let host = host.rsplit_once(':').map_or(host, |(host, _)| host);
    (is_one_of(NAMES, name) || !is_public_host(host)) && password.is_none_or(|password| is_one_of(PASSWORDS, password))
}

/// A query parameter that gives access, with a value long enough for a secret.
fn key_in(url: &str) -> Option<String> {
    const NAMES: &[&str] = &[
        "key",
        "api_key",
        "apikey",
        "access_token",
        "token",
        "auth",
        "secret",
        "password",
        "sig",
        "signature",
        "code",
        "x-amz-signature",
    ];
    let (_, query) = url.split_once('?')?;
    let query = query.split('#').next().unwrap_or_default();
    let (name, value) = query.split('&').filter_map(|pair| pair.split_once('=')).find(|(name, value)| {
        NAMES.iter().any(|known| name.eq_ignore_ascii_case(known)) && !is_harmless_in_query(value)
    })?;
    Some(format!("the query of a URL carries {} with a value of {} characters", quote(name), value.chars().count()))
}

fn is_harmless_in_query(value: &str) -> bool {
    let words = value.chars().all(|c| c.is_alphabetic() || matches!(c, '-' | '_' | '+' | '.' | ',' | ')'));
    let on_a_chain = value.starts_with("0x") && value.len() >= 42;
    value.chars().count() < 8 || words || on_a_chain || value.starts_with([':', '[']) || is_to_be_filled_in(value)
}

/// A placeholder, also one whose braces, brackets or dollar sign are escaped.
fn is_to_be_filled_in(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    is_placeholder(text) || ["%7b", "%3c", "%24"].iter().any(|sign| lower.contains(sign))
}

crate::rule! {
    /// An address that only its own network can reach is published.
    ///
    /// A loopback or private address, or a name that no public name server knows: to everybody else it leads nowhere, or
    /// to a machine of their own. It is not called.
    static URL_NOT_PUBLIC = {
        id: "common/url-not-public",
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        impact_evidence: "no client outside that network can reach it",
        security: true,
        rank: 40,
        basis: Basis::Policy,
        place: "/**",
        fix: "Publish a public address.",
        spec: "crawler policy: SSRF guard",
        seeds: &["gaip:A2A_HTTPS_ENDPOINT_REQUIRED", "gaip:MCP_HTTPS_ENDPOINT_REQUIRED"],
        examples: &[
            fires(&["/supportedInterfaces/0/url"], r#"{"supportedInterfaces": [{"url": "https://0x7f000001/a2a"}]}"#),
            fires(
                &["/securitySchemes/sign-in/openIdConnectSecurityScheme/openIdConnectUrl"],
                r#"{"securitySchemes": {"sign-in": {"openIdConnectSecurityScheme": {"openIdConnectUrl": "https://id.tides.internal/.well-known/openid-configuration"}}}}"#,
            ),
            silent(r#"{"supportedInterfaces": [{"url": "https://localhost.example.com/a2a"}]}"#),
            silent(r#"{"supportedInterfaces": [{"url": "https://127.0.0.1:9999/a2a"}]}"#).given(r#"{"served_from": "http://127.0.0.1:9999"}"#),
            silent(r#"{"documentationUrl": "https://10.example.com/docs"}"#),
        ],
        yields_to: &[
            "a2a/endpoint-placeholder",
            "a2a/interface-url-invalid",
            "a2a/grpc-address",
            "a2a/url-not-absolute",
            "registry/remote-placeholder-host",
        ],
        check: Check::Observation(url_not_public),
    }
}

fn url_not_public(context: &Context<'_>, out: &mut Occurrences) {
    if let Some(session) = context.session {
        redirects_inwards(session, out);
    }
    let Some(root) = context.document.and_then(Document::root) else { return };
    match context.origin {
        Origin::Nowhere => out.not_evaluated(NotEvaluated::NoOrigin),
        Origin::PrivateHost => {}
        Origin::PublicHost => addresses_inwards(root, context.kind, out),
    }
}

/// Redirects from a public host to one that is not: they are not followed.
fn redirects_inwards(session: &Session, out: &mut Occurrences) {
    for (number, exchange) in session.exchanges.iter().enumerate() {
        let target = exchange.redirect();
        let Some(host) = target.as_ref().and_then(Url::host_str).filter(|host| !is_public_host(host)) else { continue };
        if AbsoluteUrl::parse(&exchange.request.url).is_some_and(|url| url.is_public()) {
            let place = format!("/exchanges/{number}/response/headers/location");
            out.add_at(place, format!("the redirect leads to {}, which is not public", quote(host)));
        }
    }
}

/// Where a kind of document names endpoints, issuers and metadata. Pages that people read are not among them.
fn places(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::AgentCard => &[
            "/url",
            "/supportedInterfaces/*/url",
            "/supported_interfaces/*/url",
            "/additionalInterfaces/*/url",
            "/additional_interfaces/*/url",
            "/securitySchemes/**",
            "/security_schemes/**",
        ],
        Kind::ServerJson => &["/remotes/*/url"],
        Kind::RegistryEntry => &["/server/remotes/*/url"],
        Kind::RegistryPage => &["/servers/*/server/remotes/*/url"],
        Kind::McpServerCard => &["/remotes/*/url", "/transport/endpoint", "/transport/url"],
        Kind::OauthProtectedResource => &["/authorization_servers/*", "/jwks_uri"],
        Kind::OauthAuthorizationServer | Kind::OauthOpenidConfiguration => &["/*", "/mtls_endpoint_aliases/*"],
        Kind::Openapi => &["/servers/*/url"],
        _ => &[],
    }
}

fn addresses_inwards(root: Node<'_>, kind: Kind, out: &mut Occurrences) {
    let beside_a_public_one = kind == Kind::Openapi && has_public_server(root);
    for node in places(kind).iter().flat_map(|pattern| root.select(pattern)) {
        let Some(host) = node.text().and_then(|text| host_of(text, node)) else { continue };
        if is_public_host(host) || !is_endpoint(kind, node) || (beside_a_public_one && host_is_loopback(host)) {
            continue;
        }
        out.add(node, format!("{} is no public host", quote(host)));
    }
}

/// The host of an address; an interface for gRPC may be written `host:port`.
fn host_of<'t>(text: &'t str, node: Node<'_>) -> Option<&'t str> {
    if let Some(url) = AbsoluteUrl::parse(text.trim()) {
        return Some(url.host);
    }
    let interface = node.parent()?;
    let binding =
        ["protocolBinding", "protocol_binding", "transport"].iter().find_map(|key| interface.get(key)?.text());
    let (host, port) = text.rsplit_once(':')?;
    let is_address = !host.is_empty() && !host.contains(['/', ' ']) && port.parse::<u16>().is_ok();
    (is_address && binding.is_some_and(|binding| binding.eq_ignore_ascii_case("grpc"))).then_some(host)
}

/// Whether a text at one of the places is an address that clients call.
fn is_endpoint(kind: Kind, node: Node<'_>) -> bool {
    let key = name(node);
    match kind {
        Kind::AgentCard => key == "url" || is_of_a_scheme(key),
        Kind::OauthAuthorizationServer | Kind::OauthOpenidConfiguration => {
            matches!(key, "issuer" | "jwks_uri") || key.ends_with("_endpoint")
        }
        _ => true,
    }
}

fn is_of_a_scheme(key: &str) -> bool {
    const KEYS: &[&str] = &[
        "authorizationUrl",
        "authorization_url",
        "tokenUrl",
        "token_url",
        "refreshUrl",
        "refresh_url",
        "deviceAuthorizationUrl",
        "device_authorization_url",
        "openIdConnectUrl",
        "open_id_connect_url",
        "oauth2MetadataUrl",
        "oauth2_metadata_url",
    ];
    KEYS.contains(&key)
}

fn has_public_server(root: Node<'_>) -> bool {
    let is_public = |text: &str| AbsoluteUrl::parse(text).map_or(!text.is_empty(), |url| url.is_public());
    root.select("/servers/*/url").into_iter().filter_map(Node::text).any(is_public)
}
