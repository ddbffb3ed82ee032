//! MCP: what a server says of itself, what it lists and returns, the JSON-RPC around it, server cards and catalogues.
//!
//! The order inside the family: the envelope of a message, then null and types (they end the work on a value), then what
//! is missing, then what the members say. A member that a revision does not define is not judged in it.

mod active;
mod ai_catalog;
mod calls;
mod capabilities;
mod card;
mod card_sep_1649;
mod card_service;
pub(crate) mod endpoint;
mod envelope;
mod eras;
mod fields;
mod handshake;
mod headers;
mod heard;
mod history;
mod icons;
mod listings;
mod metadata;
mod origins;
mod pages;
mod prompts;
mod requests;
mod resources;
mod results;
mod server_info;
mod server_message;
mod sessions;
mod stdio;
mod streams;
mod subschema;
mod subscriptions;
mod tool_header;
mod tool_schema;
mod tools;

pub(crate) use card::{is_whole_older_card, looks_like_a_server};

use crate::document::{Node, Type};
use crate::judge::Context;
use crate::kind::{Kind, Known, Profile};
use crate::rule::Rule;

/// The topics in the order their rules run.
pub(crate) const TOPICS: &[&[&Rule]] = &[
    envelope::RULES,
    server_message::RULES,
    fields::RULES,
    metadata::RULES,
    results::RULES,
    handshake::RULES,
    server_info::RULES,
    capabilities::RULES,
    tools::RULES,
    tool_schema::RULES,
    tool_header::RULES,
    icons::RULES,
    resources::RULES,
    prompts::RULES,
    pages::RULES,
    calls::RULES,
    card::RULES,
    card_sep_1649::RULES,
    ai_catalog::RULES,
    endpoint::RULES,
    eras::RULES,
    headers::RULES,
    requests::RULES,
    origins::RULES,
    sessions::RULES,
    streams::RULES,
    listings::RULES,
    subscriptions::RULES,
    card_service::RULES,
    active::RULES,
    stdio::RULES,
    history::RULES,
];

/// For what is not bound to one revision.
pub(crate) const EVERY_REVISION: Profile = Profile { name: "", versions: ALL, needs_all: false };

/// Every published revision of the protocol.
const ALL: &[&str] = &["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];
/// The revisions with `initialize`.
const LEGACY: &[&str] = &["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
/// The revisions with tool annotations, completions and audio.
const SINCE_2025_03: &[&str] = &["2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];
/// The revisions with titles, output schemas and `_meta` on items.
const SINCE_2025_06: &[&str] = &["2025-06-18", "2025-11-25", "2026-07-28"];
/// The revisions with icons.
const SINCE_2025_11: &[&str] = &["2025-11-25", "2026-07-28"];
/// The revisions of Streamable HTTP with sessions.
const SESSIONS: &[&str] = &["2025-03-26", "2025-06-18", "2025-11-25"];
/// The revision without sessions.
const MODERN: &[&str] = &["2026-07-28"];

/// The published form of server cards, and of catalogues.
const V1: &[&str] = &["v1"];
/// The older form of server cards.
const SEP_1649: &[&str] = &["sep-1649"];
/// Both forms of server cards.
const CARDS: &[&str] = &["v1", "sep-1649"];

/// Results that list things.
const LISTS: &[Kind] = &[
    Kind::McpToolsListResult,
    Kind::McpResourcesListResult,
    Kind::McpResourceTemplatesListResult,
    Kind::McpPromptsListResult,
];
/// Results that list things, and that of `server/discover`: what a client may keep for a while.
const CACHEABLE: &[Kind] = &[
    Kind::McpDiscoverResult,
    Kind::McpToolsListResult,
    Kind::McpResourcesListResult,
    Kind::McpResourceTemplatesListResult,
    Kind::McpPromptsListResult,
];
/// The first answer of a server, in either era.
const HANDSHAKES: &[Kind] = &[Kind::McpInitializeResult, Kind::McpDiscoverResult];
/// The first answer and the lists.
const HANDSHAKES_AND_LISTS: &[Kind] = &[
    Kind::McpInitializeResult,
    Kind::McpDiscoverResult,
    Kind::McpToolsListResult,
    Kind::McpResourcesListResult,
    Kind::McpResourceTemplatesListResult,
    Kind::McpPromptsListResult,
];
/// Every result of a request.
const RESULTS: &[Kind] = &[
    Kind::McpInitializeResult,
    Kind::McpDiscoverResult,
    Kind::McpToolsListResult,
    Kind::McpResourcesListResult,
    Kind::McpResourceTemplatesListResult,
    Kind::McpPromptsListResult,
    Kind::McpCallToolResult,
    Kind::McpReadResourceResult,
    Kind::McpGetPromptResult,
    Kind::McpCompleteResult,
    Kind::McpInputRequiredResult,
];

/// Whether documents of this kind were exchanged in one revision of the protocol.
pub(crate) fn is_message(kind: Kind) -> bool {
    RESULTS.contains(&kind)
        || matches!(
            kind,
            Kind::McpListPages
                | Kind::McpToolsListPair
                | Kind::McpElicitationRequest
                | Kind::McpServerMessage
                | Kind::JsonrpcResponse
        )
}

/// Whether this family says which revision documents of this kind are judged as.
pub(crate) fn is_its_kind(kind: Kind) -> bool {
    is_message(kind) || matches!(kind, Kind::McpServerCard | Kind::McpAiCatalog)
}

/// Oldest first.
const REVISIONS: &[Profile] = &[
    revision("mcp-2024-11-05", &["2024-11-05"]),
    revision("mcp-2025-03-26", &["2025-03-26"]),
    revision("mcp-2025-06-18", &["2025-06-18"]),
    revision("mcp-2025-11-25", &["2025-11-25"]),
    revision("mcp-2026-07-28", &["2026-07-28"]),
];

const fn revision(name: &'static str, versions: &'static [&'static str]) -> Profile {
    Profile { name, versions, needs_all: false }
}

/// The newest revision with `initialize`, and the newest of all.
const NEWEST_LEGACY: Profile = REVISIONS[3];
const NEWEST: Profile = REVISIONS[4];

/// The revision a document is judged as (catalogue §4): for a message the one it was exchanged in, which its bearer
/// states; without that what the message shows. Server cards have forms instead, and may be claimed to be such by what led
/// to them.
pub(crate) fn profile(kind: Kind, root: Node<'_>, stated: Option<&str>, claimed: bool) -> (Profile, Known) {
    if let Some(named) = stated.filter(|_| is_message(kind)).and_then(named) {
        return (named, Known::Declared);
    }
    match kind {
        Kind::McpServerCard => card::profile(root, claimed, stated),
        Kind::McpAiCatalog => (Profile { name: "ai-catalog-v1", versions: V1, needs_all: false }, Known::Assumed),
        Kind::McpInitializeResult => match root.get("protocolVersion").and_then(Node::text).and_then(named) {
            Some(NEWEST) => (NEWEST_LEGACY, Known::Inferred),
            Some(named) => (named, Known::Declared),
            None => (NEWEST_LEGACY, Known::Assumed),
        },
        Kind::McpDiscoverResult | Kind::McpInputRequiredResult => (NEWEST, Known::Inferred),
        _ if root.get("resultType").is_some() => (NEWEST, Known::Inferred),
        _ => (NEWEST_LEGACY, Known::Assumed),
    }
}

/// The revision of that date; of an unknown later date the newest that is not later.
fn named(version: &str) -> Option<Profile> {
    if !handshake::is_date(version) {
        return None;
    }
    let not_later = REVISIONS.iter().rev().find(|revision| revision.versions.iter().all(|known| *known <= version));
    Some(*not_later.unwrap_or(&REVISIONS[0]))
}

/// Whether the message was exchanged in the revision without sessions.
fn is_modern(context: &Context<'_>) -> bool {
    context.profile.has("2026-07-28")
}

/// Whether the revision is the named one or a later one.
fn is_since(context: &Context<'_>, date: &str) -> bool {
    context.profile.versions.iter().any(|version| *version >= date)
}

/// Whether a result is the whole answer: not one that asks for input first, or one that only an extension knows.
fn is_complete(result: Node<'_>) -> bool {
    result.get("resultType").and_then(Node::text).is_none_or(|kind| kind == "complete")
}

/// Where modern results carry the server's name.
const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";

/// What a result says about the server: `serverInfo` of an initialize result, a key of `_meta` in modern ones.
fn server_info<'d>(result: Node<'d>, context: &Context<'_>) -> Option<Node<'d>> {
    if context.kind == Kind::McpInitializeResult {
        result.get("serverInfo")
    } else if is_modern(context) {
        result.get("_meta")?.get(SERVER_INFO)
    } else {
        None
    }
}

/// The member of a list result that holds the list.
fn list_of(kind: Kind) -> Option<&'static str> {
    match kind {
        Kind::McpToolsListResult => Some("tools"),
        Kind::McpResourcesListResult => Some("resources"),
        Kind::McpResourceTemplatesListResult => Some("resourceTemplates"),
        Kind::McpPromptsListResult => Some("prompts"),
        _ => None,
    }
}

/// The listed things themselves; for other results nothing.
fn listed<'d>(result: Node<'d>, context: &Context<'_>) -> impl Iterator<Item = Node<'d>> {
    let list = list_of(context.kind).and_then(|member| result.get(member));
    list.into_iter().flat_map(Node::items).filter(|item| item.kind() == Type::Object)
}

/// Whether a value is a string without anything to read in it.
fn is_blank(node: Node<'_>) -> bool {
    node.text().is_some_and(|text| text.trim().is_empty())
}
