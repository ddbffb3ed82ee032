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
use crate::judge::{Context, Occurrences, Origin};
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

/// The well-known names of metadata documents, and what lies there.
const WELL_KNOWN: &[(&str, Kind)] = &[
    ("/.well-known/openid-configuration", Kind::OauthOpenidConfiguration),
    ("/.well-known/oauth-authorization-server", Kind::OauthAuthorizationServer),
    ("/.well-known/oauth-protected-resource", Kind::OauthProtectedResource),
];

/// A well-known address taken apart.
struct WellKnown<'a> {
    kind: Kind,
    /// Scheme and authority.
    origin: &'a str,
    /// The path before the well-known part.
    before: &'a str,
    /// The path behind it.
    after: &'a str,
}

impl WellKnown<'_> {
    fn read(address: &str) -> Option<WellKnown<'_>> {
        let start = address.find("://")? + "://".len();
        let end = address[start..].find(['/', '?', '#']).map(|at| start + at)?;
        let (origin, rest) = address.split_at(end);
        let path = rest.split(['?', '#']).next().unwrap_or_default();
        WELL_KNOWN.iter().find_map(|(name, kind)| {
            let (before, after) = path.split_once(name)?;
            let after = if after == "/" { "" } else { after };
            let is_whole = after.is_empty() || after.starts_with('/');
            is_whole.then_some(WellKnown { kind: *kind, origin, before, after })
        })
    }

    /// The identifier that the address was made from: the well-known part inserted between host and path (RFC 8414 §3.1,
    /// RFC 9728 §3.1), or behind the path, as OpenID has it (Discovery §4.1).
    fn identifier(&self) -> Option<String> {
        let path = match (self.before, self.after) {
            ("", after) => after,
            (before, "") if self.kind == Kind::OauthOpenidConfiguration => before,
            _ => return None,
        };
        Some(format!("{}{path}", self.origin))
    }
}

/// What lies at a well-known address of this family.
pub(crate) fn kind_at(address: &str) -> Option<Kind> {
    WellKnown::read(address).map(|place| place.kind)
}

/// The identifier that a document has to name, by the well-known address it came from; `None` where that is not known.
fn identifier_by_address(context: &Context<'_>) -> Option<String> {
    let address = context.given.url.as_deref().filter(|_| context.origin != Origin::Nowhere)?;
    WellKnown::read(address)?.identifier()
}

/// Whether two identifiers are one: letter case of the host, a default port and a slash at the end make no other.
fn are_one(one: &str, other: &str) -> bool {
    let plain = |text: &str| url::Url::parse(text).map_or_else(|_| text.to_owned(), String::from);
    plain(one).trim_end_matches('/') == plain(other).trim_end_matches('/')
}

/// Whether nobody led to an authorization server's document and nobody asked for it as one. Workload identity issuers
/// publish such documents without endpoints, so what an MCP client needs is not asked of them: the rule does not apply.
fn is_lone(context: &Context<'_>, out: &mut Occurrences) -> bool {
    let lone = came_alone(context);
    if lone {
        out.not_applicable();
    }
    lone
}

fn came_alone(context: &Context<'_>) -> bool {
    context.given.lone || (!context.kind_stated && context.given.issuer_listed.is_none())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_made_from_one_identifier() {
        let of = |address: &str| WellKnown::read(address).and_then(|place| place.identifier());
        let rows = [
            ("https://t.example/.well-known/oauth-authorization-server", Some("https://t.example")),
            ("https://t.example/.well-known/oauth-authorization-server/a/b", Some("https://t.example/a/b")),
            ("https://t.example/a/.well-known/openid-configuration", Some("https://t.example/a")),
            ("https://t.example/.well-known/openid-configuration/a?x=1", Some("https://t.example/a")),
            ("https://t.example:8443/.well-known/oauth-protected-resource/", Some("https://t.example:8443")),
            ("https://t.example/a/.well-known/oauth-protected-resource", None),
            ("https://t.example/.well-known/oauth-protected-resources", None),
            ("https://t.example", None),
        ];
        for (address, identifier) in rows {
            assert_eq!(of(address).as_deref(), identifier, "{address}");
        }
    }
}
