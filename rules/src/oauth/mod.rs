//! OAuth and OpenID documents of the MCP authorization chain, and those that an agent card names.
//!
//! Their revisions are those of MCP: what the specification asks of a metadata document grew with each.

mod challenge;
mod client;
mod discovery;
mod endpoints;
mod flows;
mod issuer;
mod metadata;
pub(crate) mod named;
mod openid;
mod pkce;
mod protected;
mod refusal;
mod registration;
mod resource;
mod service;
mod token;
mod tokens;

use crate::document::{Node, Type};
use crate::judge::{Context, Occurrences};
use crate::kind::{Kind, Known, Profile};
use crate::rule::Rule;
use crate::text::{AbsoluteUrl, host_is_loopback};

/// The topics in the order their rules run.
pub(crate) const TOPICS: &[&[&Rule]] = &[
    resource::RULES,
    protected::RULES,
    metadata::RULES,
    issuer::RULES,
    endpoints::RULES,
    flows::RULES,
    pkce::RULES,
    registration::RULES,
    openid::RULES,
    client::RULES,
    token::RULES,
    refusal::RULES,
    tokens::RULES,
    challenge::RULES,
    discovery::RULES,
    service::RULES,
];

const SINCE_2025_03: &[&str] = &["2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];
const SINCE_2025_06: &[&str] = &["2025-06-18", "2025-11-25", "2026-07-28"];
const SINCE_2025_11: &[&str] = &["2025-11-25", "2026-07-28"];

/// What describes an authorization server.
const SERVER: &[Kind] = &[Kind::OauthAuthorizationServer, Kind::OauthOpenidConfiguration];

/// Whether documents of this kind are judged by this family.
pub(crate) fn is_metadata(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::OauthProtectedResource
            | Kind::OauthAuthorizationServer
            | Kind::OauthOpenidConfiguration
            | Kind::OauthClientMetadata
            | Kind::OauthTokenResponse
    )
}

const REVISIONS: &[Profile] = &[
    revision("mcp-2026-07-28", &["2026-07-28"]),
    revision("mcp-2025-11-25", &["2025-11-25"]),
    revision("mcp-2025-06-18", &["2025-06-18"]),
    revision("mcp-2025-03-26", &["2025-03-26"]),
];

const fn revision(name: &'static str, versions: &'static [&'static str]) -> Profile {
    Profile { name, versions, needs_all: false }
}

/// The revision a metadata document is judged as: that of the request that led to it, else the newest.
pub(crate) fn profile(stated: Option<&str>) -> (Profile, Known) {
    let named = stated.and_then(|version| REVISIONS.iter().find(|profile| profile.has(version)));
    named.map_or((REVISIONS[0], Known::Assumed), |profile| (*profile, Known::Declared))
}

/// Whether nobody led to an authorization server's document and nobody asked for it as one. Workload identity issuers
/// publish such documents without endpoints, so what an MCP client needs is not asked of them: the rule does not apply.
fn is_lone(context: &Context<'_>, out: &mut Occurrences) -> bool {
    let lone = context.given.lone || (!context.kind_stated && context.given.issuer_listed.is_none());
    if lone {
        out.not_applicable();
    }
    lone
}

/// A URL that credentials may be sent to: `https`, or `http` on this machine.
fn secure_url(text: &str) -> Option<AbsoluteUrl<'_>> {
    AbsoluteUrl::parse(text).filter(|url| url.is("https") || (url.is("http") && host_is_loopback(url.host)))
}

/// The list of that name, when it is one.
fn list<'d>(object: Node<'d>, name: &str) -> Option<Node<'d>> {
    object.get(name).filter(|node| node.kind() == Type::Array)
}

/// Whether a list has exactly that text among its items.
fn lists(list: Node<'_>, text: &str) -> bool {
    list.items().any(|item| item.text() == Some(text))
}

/// Whether no code is given out: the grants lack `authorization_code` or, where none are listed, no response type has
/// `code` in it. Without grants the default holds, which has it.
fn is_without_code(metadata: Node<'_>) -> bool {
    let filled = |name| list(metadata, name).filter(|list| !list.is_empty());
    match filled("grant_types_supported") {
        Some(grants) => !lists(grants, "authorization_code"),
        None => filled("response_types_supported").is_some_and(|types| !types.items().any(has_code)),
    }
}

/// Whether a response type is `code` or a combination with it.
fn has_code(response_type: Node<'_>) -> bool {
    response_type.text().is_some_and(|text| text.split(' ').any(|part| part == "code"))
}

/// Whether a flag is present and true.
fn is_set(object: Node<'_>, name: &str) -> bool {
    object.get(name).and_then(Node::flag) == Some(true)
}
