//! The metadata document that a client publishes at the URL which is its client id.

use super::SINCE_2025_11;
use crate::document::{Node, Type};
use crate::judge::{Context, Occurrences};
use crate::kind::Kind;
use crate::report::NotEvaluated;
use crate::rule::{Check, Impact, Rule, Severity, fires, silent};
use crate::text::{AbsoluteUrl, host_is_loopback, quote};

pub(super) const RULES: &[&Rule] = &[&CIMD_CLIENT_ID, &CIMD_URL, &CIMD_REQUIRED, &CIMD_REDIRECT, &CIMD_SECRET];

const ADDRESS: &str = r#"{"url": "https://agent.tides.example.com/oauth/client.json"}"#;

crate::rule! {
    /// The client id is the address of the document, character by character.
    ///
    /// An authorization server compares the two as texts and refuses the client when they differ.
    static CIMD_CLIENT_ID = {
        id: "oauth/cimd-client-id",
        severity: Severity::Error,
        impact: Some(Impact::Degrades),
        versions: SINCE_2025_11,
        on: &[Kind::OauthClientMetadata],
        place: "/client_id",
        spec: "2026-07-28 client-registration, Implementation Requirements",
        fix: "Set client_id to the URL.",
        examples: &[
            fires(&["/client_id"], r#"{"client_id": "https://agent.tides.example.com/oauth/client.json/"}"#)
                .given(ADDRESS),
            fires(&["/client_id"], r#"{"client_id": null}"#),
            silent("{}").given(ADDRESS),
        ],
        check: Check::Document(cimd_client_id),
    }
}

fn cimd_client_id(client: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    let Some(id) = client.get("client_id") else {
        out.add_missing(client, "client_id", "there is no `client_id`");
        return;
    };
    match (id.text(), context.given.url.as_deref()) {
        (None, _) if id.kind() != Type::String => {
            out.add(id, format!("`client_id` is {}, not a string", id.kind().named()));
        }
        (Some(text), Some(url)) if text != url => {
            out.add(id, format!("the client id is {}, the document's address {}", quote(text), quote(url)));
        }
        (_, None) => out.not_evaluated(NotEvaluated::NoOrigin),
        _ => {}
    }
}

crate::rule! {
    /// The address of the document is a plain https URL with a path.
    ///
    /// It is an identifier: with a fragment, user information or dot segments in it, servers would disagree which client it
    /// names; without https anybody on the way could be that client.
    static CIMD_URL = {
        id: "oauth/cimd-url",
        severity: Severity::Error,
        impact: Some(Impact::Degrades),
        versions: SINCE_2025_11,
        on: &[Kind::OauthClientMetadata],
        place: "/client_id",
        spec: "CIMD draft §3",
        fix: "Host it at an https URL with a path.",
        examples: &[
            fires(&["/client_id"], r#"{"client_id": "https://agent.tides.example.com"}"#),
            fires(&["/client_id"], r#"{"client_id": "https://agent.tides.example.com/a/../client.json"}"#),
            fires(&["/client_id"], r#"{"client_id": "http://agent.tides.example.com/client.json"}"#),
            silent("{}"),
        ],
        check: Check::Document(cimd_url),
    }
}

fn cimd_url(client: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    let id = client.get("client_id");
    let Some(text) = context.given.url.as_deref().or_else(|| id.and_then(Node::text)) else { return };
    let Some(what) = fault_of_address(text) else { return };
    let message = format!("the client's address {} {what}", quote(text));
    match id {
        Some(id) => out.add(id, message),
        None => out.add_missing(client, "client_id", message),
    };
}

fn fault_of_address(text: &str) -> Option<&'static str> {
    let Some(url) = AbsoluteUrl::parse(text).filter(|url| url.is("https")) else { return Some("is no https URL") };
    if url.path.is_empty() {
        Some("has no path")
    } else if url.path.split('/').any(|segment| segment == "." || segment == "..") {
        Some("has dot segments")
    } else if url.fragment.is_some() {
        Some("has a fragment")
    } else if url.user_information.is_some() {
        Some("has user information")
    } else {
        None
    }
}

crate::rule! {
    /// The document names the client and where to send people back to.
    ///
    /// The name is what a person reads before agreeing; without redirect addresses no code can be delivered.
    static CIMD_REQUIRED = {
        id: "oauth/cimd-required",
        severity: Severity::Error,
        impact: Some(Impact::Degrades),
        versions: SINCE_2025_11,
        on: &[Kind::OauthClientMetadata],
        place: "/client_name | /redirect_uris",
        spec: "2026-07-28 client-registration, Implementation Requirements",
        fix: "Add them.",
        examples: &[
            fires(&["/redirect_uris"], r#"{"redirect_uris": []}"#),
            fires(&["/client_name"], r#"{"client_name": " "}"#),
            silent(r#"{"logo_uri": null}"#),
        ],
        check: Check::Document(cimd_required),
    }
}

fn cimd_required(client: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    match client.get("client_name") {
        None => {
            out.add_missing(client, "client_name", "there is no `client_name`");
        }
        Some(name) if name.text().is_none_or(|text| text.trim().is_empty()) => {
            out.add(name, "`client_name` is blank or no string");
        }
        Some(_) => {}
    }
    match client.get("redirect_uris") {
        None => {
            out.add_missing(client, "redirect_uris", "there are no `redirect_uris`");
        }
        Some(uris) if uris.items().next().is_none() => {
            out.add(uris, "`redirect_uris` is empty or no array");
        }
        Some(_) => {}
    }
}

crate::rule! {
    /// Codes are delivered over https, to this machine, or to an app's own scheme.
    ///
    /// Anything else can be read on the way, and a fragment swallows what the server appends.
    static CIMD_REDIRECT = {
        id: "oauth/cimd-redirect",
        severity: Severity::Error,
        impact: Some(Impact::Degrades),
        security: true,
        versions: SINCE_2025_11,
        on: &[Kind::OauthClientMetadata],
        place: "/redirect_uris/*",
        spec: "2026-07-28 authorization security, Communication Security",
        fix: "Use https or loopback.",
        examples: &[
            fires(&["/redirect_uris/0"], r#"{"redirect_uris": ["http://agent.tides.example.com/cb"]}"#),
            fires(&["/redirect_uris/0"], r#"{"redirect_uris": ["tides:/cb"]}"#),
            fires(&["/redirect_uris/0"], r##"{"redirect_uris": ["https://agent.tides.example.com/cb#x"]}"##),
            silent(r#"{"redirect_uris": ["com.example.tides:/cb", "http://[::1]:3000/cb"]}"#),
        ],
        check: Check::Each(&["/redirect_uris/*"], cimd_redirect),
    }
}

fn cimd_redirect(uri: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let Some(text) = uri.text() else {
        out.add(uri, format!("a redirect address is {}, not a string", uri.kind().named()));
        return;
    };
    if text.contains('#') {
        out.add(uri, format!("the redirect address {} has a fragment", quote(text)));
    } else if !is_safe_redirect(text) {
        out.add(uri, format!("{} is neither https, nor this machine, nor an app's own scheme", quote(text)));
    }
}

fn is_safe_redirect(text: &str) -> bool {
    match AbsoluteUrl::http(text) {
        Some(url) => url.is("https") || host_is_loopback(url.host),
        None => is_private_scheme(text),
    }
}

/// A scheme that is a reversed domain name, as apps use them (RFC 8252 §7.1).
fn is_private_scheme(text: &str) -> bool {
    text.split_once(':').is_some_and(|(scheme, _)| scheme.contains('.')) && crate::text::is_absolute_uri(text)
}

crate::rule! {
    /// The document holds no secret and promises none.
    ///
    /// Everybody can read it. A client that publishes its metadata authenticates with a key of its own, or not at all.
    static CIMD_SECRET = {
        id: "oauth/cimd-secret",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        security: true,
        versions: SINCE_2025_11,
        on: &[Kind::OauthClientMetadata],
        place: "/client_secret | /token_endpoint_auth_method",
        spec: "CIMD draft §4.1",
        fix: "Use none or private_key_jwt.",
        examples: &[
            fires(&["/token_endpoint_auth_method"], r#"{"token_endpoint_auth_method": "client_secret_basic"}"#),
            fires(&["/client_secret_expires_at"], r#"{"client_secret_expires_at": 0}"#),
            silent(
                r#"{"token_endpoint_auth_method": "private_key_jwt",
                "jwks_uri": "https://agent.tides.example.com/jwks"}"#,
            ),
        ],
        check: Check::Document(cimd_secret),
    }
}

fn cimd_secret(client: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for name in ["client_secret", "client_secret_expires_at"] {
        if let Some(secret) = client.get(name) {
            out.add(secret, format!("`{name}` stands in a public document"));
        }
    }
    let method = client.get("token_endpoint_auth_method");
    if let Some((node, text)) = method.and_then(|node| Some((node, node.text()?)))
        && matches!(text, "client_secret_basic" | "client_secret_post" | "client_secret_jwt")
    {
        out.add(node, format!("`{text}` needs a secret"));
    }
}
