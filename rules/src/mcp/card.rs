//! Server cards of the published form, v1: what a server says of itself before anybody connects.
//!
//! Members that a `server.json` has too are judged by the same tests as there.

use super::{CARDS, SEP_1649, V1};
use crate::document::{Node, Type};
use crate::judge::{Context, Occurrences};
use crate::kind::{Kind, Known, Profile};
use crate::rule::{Basis, Check, Class, Impact, Rule, Severity, Stops, fires, silent};
use crate::text::{AbsoluteUrl, host_is_loopback, is_version_range, quote, variables};

pub(super) const RULES: &[&Rule] = &[
    &CARD_SCHEMA_MISSING,
    &CARD_SCHEMA_UNKNOWN,
    &CARD_REMOTES_INVALID,
    &CARD_REMOTE_NOT_OBJECT,
    &CARD_NAME_MISSING,
    &CARD_VERSION_MISSING,
    &CARD_DESCRIPTION_MISSING,
    &CARD_NAME_FORMAT,
    &CARD_VERSION_RANGE,
    &CARD_DESCRIPTION_LONG,
    &CARD_TITLE_LENGTH,
    &CARD_URL_INVALID,
    &CARD_REPOSITORY_INVALID,
    &CARD_NO_REMOTES,
    &CARD_REMOTE_TYPE,
    &CARD_REMOTE_SSE,
    &CARD_REMOTE_URL,
    &CARD_REMOTE_NOT_HTTPS,
    &CARD_REMOTE_VARIABLE,
    &CARD_REMOTE_VERSIONS,
    &CARD_PRIMITIVES,
];

pub(super) const ON: &[Kind] = &[Kind::McpServerCard];

/// The older form is a proposal that was never adopted: what it asks for binds nobody.
const PROPOSED: &[(&str, Severity)] = &[("sep-1649", Severity::Warning)];

const FORM_V1: Profile = Profile { name: "server-card-v1", versions: V1, needs_all: false };
const FORM_SEP_1649: Profile = Profile { name: "server-card-sep-1649", versions: SEP_1649, needs_all: false };

/// The schema of the published form.
const SCHEMA: &str = "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json";

/// The schema of the older form.
const SCHEMA_SEP_1649: &str = "https://static.modelcontextprotocol.io/schemas/mcp-server-card/v1.json";

/// The form a document is judged as (catalogue §4); [`Profile::NONE`] for one that shows neither form and that nobody
/// presented as a card.
pub(super) fn profile(card: Node<'_>, claimed: bool, stated: Option<&str>) -> (Profile, Known) {
    match stated {
        Some("v1") => return (FORM_V1, Known::Declared),
        Some("sep-1649") => return (FORM_SEP_1649, Known::Declared),
        _ => {}
    }
    match card.get("$schema").map(|schema| schema.text().unwrap_or_default()) {
        Some(SCHEMA) => (FORM_V1, Known::Declared),
        Some(SCHEMA_SEP_1649) => (FORM_SEP_1649, Known::Declared),
        None if is_older_form(card) => (FORM_SEP_1649, Known::Inferred),
        // Whoever names a schema of their own follows it.
        Some(_) if is_older_form(card) && !claimed => (Profile::NONE, Known::Undetermined),
        Some(schema) if speaks_of_cards(schema) => (FORM_V1, Known::Inferred),
        _ if claimed => (FORM_V1, Known::Inferred),
        _ => (Profile::NONE, Known::Undetermined),
    }
}

/// Whether a document says who the server is as only the older form does. A `transport` or a `protocolVersion` alone
/// stands in formats of people's own as well.
fn is_older_form(card: Node<'_>) -> bool {
    card.get("serverInfo").is_some_and(|info| info.kind() == Type::Object)
}

/// Whether a document that nobody named is a card of the older form: it says who the server is and how to connect.
pub(crate) fn is_whole_older_card(root: Node<'_>) -> bool {
    ["serverInfo", "transport"].iter().all(|member| root.get(member).is_some_and(|node| node.kind() == Type::Object))
}

/// Whether a document shows that it is about an MCP server, though not what kind of document it is.
pub(crate) fn looks_like_a_server(root: Node<'_>) -> bool {
    const MEMBERS: &[&str] = &["serverInfo", "transport", "remotes", "tools", "mcpServers"];
    const CAPABILITIES: &[&str] = &["tools", "resources", "prompts", "logging"];
    let is_capable = |capabilities: Node<'_>| CAPABILITIES.iter().any(|name| capabilities.get(name).is_some());
    MEMBERS.iter().any(|member| root.get(member).is_some())
        || root.get("capabilities").is_some_and(is_capable)
        || root.get("protocolVersion").and_then(Node::text).is_some_and(super::handshake::is_date)
}

fn speaks_of_cards(schema: &str) -> bool {
    schema.contains("server-card")
}

/// The object that has name and version: the card itself, or `serverInfo` in the older form.
fn identity<'d>(card: Node<'d>, context: &Context<'_>) -> Result<Node<'d>, (Node<'d>, &'static str)> {
    if context.profile.has("sep-1649") { card.get("serverInfo").ok_or((card, "serverInfo")) } else { Ok(card) }
}

crate::rule! {
    /// A server card names its schema.
    ///
    /// A document that is served or linked as a server card has `$schema`; readers tell by it what they have before them.
    static CARD_SCHEMA_MISSING = {
        id: "mcp/card-schema-missing",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: V1,
        on: ON,
        place: "/$schema",
        fix: "Add the v1 server-card schema URL.",
        spec: "SEP-2127 schema ServerCard",
        examples: &[
            fires(&["/$schema"], r#"{"$schema": null}"#).given(r#"{"claimed": "media-type"}"#),
            silent(r#"{"$schema": null}"#),
        ],
        check: Check::Document(card_schema_missing),
    }
}

fn card_schema_missing(card: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    if context.given.claimed.is_some() && card.get("$schema").is_none() && !is_older_form(card) {
        out.add_missing(card, "$schema", "`$schema` is missing");
    }
}

crate::rule! {
    /// A server card's schema is the published one.
    ///
    /// Readers know the one of v1. Dates and drafts in its place are other schemas.
    static CARD_SCHEMA_UNKNOWN = {
        id: "mcp/card-schema-unknown",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: V1,
        on: ON,
        place: "/$schema",
        fix: "Use the v1 URL.",
        spec: "SEP-2127 schema ServerCard",
        examples: &[
            fires(
                &["/$schema"],
                r#"{"$schema": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server-card.schema.json"}"#,
            ),
            fires(&["/$schema"], r#"{"$schema": "https://schemas.example.org/tool.json"}"#).given(r#"{"claimed": "catalog"}"#),
            silent(r#"{"$schema": "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json"}"#),
            silent(r#"{"$schema": "https://static.modelcontextprotocol.io/schemas/mcp-server-card/v1.json"}"#)
                .over("server-card-sep-1649"),
            silent(r#"{"$schema": "https://schemas.example.org/server-card.json"}"#).over("server-card-sep-1649"),
        ],
        check: Check::Document(card_schema_unknown),
    }
}

fn card_schema_unknown(card: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    let Some(schema) = card.get("$schema").filter(|schema| schema.text() != Some(SCHEMA)) else { return };
    if context.given.claimed.is_some() || schema.text().is_some_and(speaks_of_cards) {
        out.add(schema, format!("{} is not the schema of v1", quote(schema.text().unwrap_or(schema.raw()))));
    }
}

crate::rule! {
    /// A card's remotes are a list.
    ///
    /// Readers look through it for an address to connect to.
    static CARD_REMOTES_INVALID = {
        id: "mcp/card-remotes-invalid",
        severity: Severity::Error,
        impact: Some(Impact::Degrades),
        versions: V1,
        on: ON,
        place: "/remotes",
        fix: "Use an array.",
        spec: "SEP-2127 schema ServerCard",
        seeds: &["gaip:MCP_REMOTES_INVALID"],
        examples: &[
            fires(&["/remotes"], r#"{"remotes": {"type": "streamable-http", "url": "https://tides.example.org/mcp"}}"#),
            silent(r#"{"remotes": []}"#),
        ],
        stops: Stops::Value,
        check: Check::Document(card_remotes_invalid),
    }
}

fn card_remotes_invalid(card: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if let Some(remotes) = card.given("remotes")
        && remotes.kind() != Type::Array
    {
        out.add(remotes, format!("`remotes` is {}, not a list", remotes.kind().named()));
    }
}

crate::rule! {
    /// A remote is an object.
    ///
    /// A bare address does not say how to speak to it.
    static CARD_REMOTE_NOT_OBJECT = {
        id: "mcp/card-remote-not-object",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: V1,
        on: ON,
        place: "/remotes/*",
        fix: "Use objects.",
        spec: "SEP-2127 schema Remote",
        seeds: &["gaip:MCP_REMOTE_OBJECT_REQUIRED"],
        examples: &[
            fires(&["/remotes/0"], r#"{"remotes": ["https://tides.example.org/mcp"]}"#),
            silent(r#"{"remotes": [{}]}"#),
        ],
        stops: Stops::Value,
        check: Check::Each(&["/remotes/*"], card_remote_not_object),
    }
}

fn card_remote_not_object(remote: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    super::tools::demand_object(remote, "a remote", out);
}

crate::rule! {
    /// A server card names the server.
    ///
    /// In `name`, in the older form in `serverInfo.name`.
    static CARD_NAME_MISSING = {
        id: "mcp/card-name-missing",
        severity: Severity::Error,
        severity_overrides: PROPOSED,
        impact: Some(Impact::Cosmetic),
        versions: CARDS,
        on: ON,
        place: "/name | /serverInfo/name",
        fix: "Add `name`; a card of SEP-1649 has it in `serverInfo`.",
        spec: "SEP-2127 schema ServerCard; SEP-1649",
        seeds: &["gaip:MCP_NAME_MISSING"],
        examples: &[
            fires(&["/name"], r#"{"name": null}"#),
            fires(&["/serverInfo/name"], r#"{"serverInfo": {"name": null}}"#).over("server-card-sep-1649"),
            silent(r#"{"title": null}"#),
        ],
        check: Check::Document(card_name_missing),
    }
}

fn card_name_missing(card: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    demand_text(identity(card, context), "name", out);
}

/// Reports a required text that is missing or no string.
fn demand_text(identity: Result<Node<'_>, (Node<'_>, &str)>, member: &str, out: &mut Occurrences) {
    match identity.map(|object| (object, object.get(member))) {
        Err((card, parent)) => {
            out.add_missing(card, parent, format!("`{parent}` is missing, and `{member}` with it"));
        }
        Ok((object, _)) if object.kind() != Type::Object => {
            let name = object.key().unwrap_or_default();
            out.add(object, format!("`{name}` is {}, not an object", object.kind().named()));
        }
        Ok((object, None)) => {
            out.add_missing(object, member, format!("`{}` is missing", path(object, member)));
        }
        Ok((object, Some(value))) if value.kind() != Type::String => {
            out.add(value, format!("`{}` is {}, not a string", path(object, member), value.kind().named()));
        }
        Ok(_) => {}
    }
}

/// How a member is called from the card's top.
fn path(object: Node<'_>, member: &str) -> String {
    object.key().map_or_else(|| member.to_owned(), |parent| format!("{parent}.{member}"))
}

/// The longest version that the schema takes.
const LONGEST_VERSION: usize = 255;

crate::rule! {
    /// A server card has a version.
    ///
    /// A string of at most 255 characters, in the older form in `serverInfo.version`.
    static CARD_VERSION_MISSING = {
        id: "mcp/card-version-missing",
        severity: Severity::Error,
        severity_overrides: PROPOSED,
        impact: Some(Impact::Cosmetic),
        versions: CARDS,
        on: ON,
        place: "/version | /serverInfo/version",
        fix: "Add `version`; a card of SEP-1649 has it in `serverInfo`.",
        spec: "SEP-2127 schema ServerCard",
        seeds: &["gaip:MCP_SERVER_VERSION_MISSING"],
        examples: &[fires(&["/version"], r#"{"version": 2.3}"#), silent(r#"{"version": "2026w30"}"#)],
        yields_to: &["mcp/card-name-missing"],
        check: Check::Document(card_version_missing),
    }
}

fn card_version_missing(card: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    let identity = identity(card, context);
    demand_text(identity, "version", out);
    if let Some(version) = identity.ok().and_then(|object| object.get("version"))
        && let Some(length) = version.text().and_then(|text| super::handshake::longer_than(text, LONGEST_VERSION))
    {
        out.add(version, format!("the version has {length} characters"));
    }
}

crate::rule! {
    /// A server card says what the server does.
    ///
    /// It is what people and models choose a server by.
    static CARD_DESCRIPTION_MISSING = {
        id: "mcp/card-description-missing",
        severity: Severity::Error,
        severity_overrides: &[("sep-1649", Severity::Info)],
        impact: Some(Impact::Cosmetic),
        versions: CARDS,
        on: ON,
        place: "/description",
        fix: "Add a description.",
        spec: "SEP-2127 schema ServerCard; SEP-1649",
        seeds: &["gaip:MCP_DESCRIPTION_MISSING"],
        examples: &[
            fires(&["/description"], r#"{"description": null}"#),
            fires(&["/description"], r#"{"description": null}"#).over("server-card-sep-1649"),
            silent(r#"{"description": "T"}"#),
            silent(r#"{"description": null, "serverInfo": {"description": "T"}}"#).over("server-card-sep-1649"),
        ],
        check: Check::Document(card_description_missing),
    }
}

fn card_description_missing(card: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    let in_info =
        || card.get("serverInfo").and_then(|info| info.get("description")).is_some_and(|text| !super::is_blank(text));
    if context.profile.has("sep-1649") && in_info() {
        return;
    }
    match card.get("description") {
        None => drop(out.add_missing(card, "description", "`description` is missing")),
        Some(text) if super::is_blank(text) => drop(out.add(text, "the description is blank")),
        Some(text) if text.kind() != Type::String => {
            out.add(text, format!("`description` is {}, not a string", text.kind().named()));
        }
        Some(_) => {}
    }
}

crate::rule! {
    /// A server's name is a namespace, a slash and a name.
    ///
    /// 3 to 200 characters. The namespace is a reversed domain, so that names of different owners never meet.
    static CARD_NAME_FORMAT = {
        id: "mcp/card-name-format",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: V1,
        on: ON,
        place: "/name",
        fix: "Use reverse-DNS/name.",
        spec: "SEP-2127 schema ServerCard",
        examples: &[
            fires(&["/name"], r#"{"name": "harbour-tides"}"#),
            fires(&["/name"], r#"{"name": "org.example/tides/harbour"}"#),
            silent(r#"{"name": "Org.Example-1/Harbour_tides.v2"}"#),
        ],
        check: Check::Document(card_name_format),
    }
}

fn card_name_format(card: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let Some(name) = card.get("name") else { return };
    let Some(text) = name.text() else { return };
    let has = |part: &str, also: &[u8]| {
        !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || also.contains(&b))
    };
    let is_name = text.split_once('/').is_some_and(|(space, name)| has(space, b".-") && has(name, b"._-"));
    if !is_name || text.len() > 200 {
        out.add(name, format!("{} is no name of the form namespace/name", quote(text)));
    }
}

crate::rule! {
    /// A card is of one version.
    ///
    /// A range such as `^1.2` or `1.x` says which versions would do, not which this is.
    static CARD_VERSION_RANGE = {
        id: "mcp/card-version-range",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: V1,
        on: ON,
        place: "/version",
        fix: "Give one version.",
        spec: "SEP-2127 schema ServerCard",
        examples: &[
            fires(&["/version"], r#"{"version": "^2.3.0"}"#),
            fires(&["/version"], r#"{"version": "2.x"}"#),
            silent(r#"{"version": "2.3.1-x"}"#),
        ],
        check: Check::Document(card_version_range),
    }
}

fn card_version_range(card: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if let Some(version) = card.get("version")
        && let Some(text) = version.text().filter(|text| is_version_range(text))
    {
        out.add(version, format!("{} is a range", quote(text)));
    }
}

/// The longest description, and the longest title, in characters.
const LONGEST_TEXT: usize = 100;

crate::rule! {
    /// A card's description is one line.
    ///
    /// At most 100 characters, so that lists can show it whole.
    static CARD_DESCRIPTION_LONG = {
        id: "mcp/card-description-long",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: V1,
        on: ON,
        place: "/description",
        fix: "Shorten to 100.",
        spec: "SEP-2127 schema ServerCard",
        seeds: &["gaip:MCP_DESCRIPTION_TOO_LONG"],
        examples: &[
            fires(&["/description"], r#"{"description": {"$repeat": ["d", 101]}}"#),
            silent(r#"{"description": {"$repeat": ["ä", 100]}}"#),
        ],
        check: Check::Document(card_description_long),
    }
}

fn card_description_long(card: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if let Some(description) = card.get("description")
        && let Some(length) = description.text().and_then(|text| super::handshake::longer_than(text, LONGEST_TEXT))
    {
        out.add(description, format!("the description has {length} characters"));
    }
}

crate::rule! {
    /// A card's title is 1 to 100 characters.
    ///
    /// An empty one shows nothing; without a title the name is shown.
    static CARD_TITLE_LENGTH = {
        id: "mcp/card-title-length",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        versions: V1,
        on: ON,
        place: "/title",
        fix: "Use 1-100 characters.",
        spec: "SEP-2127 schema ServerCard",
        examples: &[fires(&["/title"], r#"{"title": ""}"#), silent(r#"{"title": null}"#)],
        check: Check::Document(card_title_length),
    }
}

fn card_title_length(card: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let Some(title) = card.given("title") else { return };
    match title.text() {
        None => drop(out.add(title, format!("`title` is {}, not a string", title.kind().named()))),
        Some("") => drop(out.add(title, "the title is empty")),
        Some(text) => {
            if let Some(length) = super::handshake::longer_than(text, LONGEST_TEXT) {
                out.add(title, format!("the title has {length} characters"));
            }
        }
    }
}

crate::rule! {
    /// Addresses in a card are web addresses.
    ///
    /// Absolute and http or https: they are read away from the site they came from.
    static CARD_URL_INVALID = {
        id: "mcp/card-url-invalid",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        versions: CARDS,
        on: ON,
        place: "/websiteUrl | /documentationUrl | /iconUrl | /repository/url",
        fix: "Give absolute https URLs.",
        spec: "SEP-2127 schema ServerCard",
        seeds: &["gaip:MCP_URL_FIELD_INVALID"],
        examples: &[
            fires(&["/websiteUrl"], r#"{"websiteUrl": "/about"}"#),
            silent(r#"{"websiteUrl": null}"#),
        ],
        check: Check::Each(&["/websiteUrl", "/documentationUrl", "/iconUrl", "/repository/url"], card_url_invalid),
    }
}

fn card_url_invalid(url: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    // A repository's address of another type is card-repository-invalid's.
    let is_wrong_type = url.kind() != Type::String && url.key() != Some("url") && !url.is_null();
    if is_wrong_type || url.text().is_some_and(|text| AbsoluteUrl::http(text).is_none()) {
        out.add(url, format!("{} is no absolute http or https URL", quote(url.text().unwrap_or(url.raw()))));
    }
}

crate::rule! {
    /// A card's repository has an address and says where it is hosted.
    ///
    /// `url` and `source`; with one of them alone readers cannot find the code.
    static CARD_REPOSITORY_INVALID = {
        id: "mcp/card-repository-invalid",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        versions: V1,
        on: ON,
        place: "/repository | /repository/url | /repository/source",
        fix: "Give url and source.",
        spec: "SEP-2127 schema Repository",
        seeds: &["gaip:MCP_REPOSITORY_INVALID"],
        examples: &[
            fires(&["/repository"], r#"{"repository": "https://git.example.org/x"}"#),
            fires(&["/repository/source"], r#"{"repository": {"source": null}}"#),
            silent(r#"{"repository": null}"#),
        ],
        check: Check::Document(card_repository_invalid),
    }
}

fn card_repository_invalid(card: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let Some(repository) = card.given("repository") else { return };
    if repository.kind() != Type::Object {
        out.add(repository, format!("`repository` is {}, not an object", repository.kind().named()));
        return;
    }
    demand_text(Ok(repository), "url", out);
    demand_text(Ok(repository), "source", out);
}

crate::rule! {
    /// A card says where to connect.
    ///
    /// Without remotes it describes a server that nobody can reach by it.
    static CARD_NO_REMOTES = {
        id: "mcp/card-no-remotes",
        basis: Basis::Policy,
        versions: V1,
        on: ON,
        place: "/remotes",
        fix: "Add remotes.",
        spec: "SEP-2127 schema ServerCard",
        examples: &[fires(&["/remotes"], r#"{"remotes": []}"#), silent(r#"{"remotes": [{}]}"#)],
        check: Check::Document(card_no_remotes),
    }
}

fn card_no_remotes(card: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    match card.get("remotes") {
        None => drop(out.add_missing(card, "remotes", "no remotes")),
        Some(remotes) if remotes.kind() == Type::Array && remotes.is_empty() => drop(out.add(remotes, "no remotes")),
        Some(_) => {}
    }
}

crate::rule! {
    /// A remote says how to speak to it.
    ///
    /// `streamable-http` or `sse`, exactly so written.
    static CARD_REMOTE_TYPE = {
        id: "mcp/card-remote-type",
        severity: Severity::Error,
        impact: Some(Impact::Degrades),
        versions: V1,
        on: ON,
        place: "/remotes/*/type",
        fix: "Use streamable-http.",
        spec: "SEP-2127 schema Remote",
        seeds: &["gaip:MCP_REMOTE_TRANSPORT_UNRECOGNISED"],
        examples: &[
            fires(&["/remotes/0/type"], r#"{"remotes": [{"type": "http"}]}"#),
            silent(r#"{"remotes": [{"type": "sse"}]}"#),
        ],
        check: Check::Each(&["/remotes/*"], card_remote_type),
    }
}

fn card_remote_type(remote: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    match remote.get("type") {
        None if remote.kind() == Type::Object => drop(out.add_missing(remote, "type", "`type` is missing")),
        Some(kind) if !matches!(kind.text(), Some("streamable-http" | "sse")) => {
            out.add(
                kind,
                format!("{} is neither `streamable-http` nor `sse`", quote(kind.text().unwrap_or(kind.raw()))),
            );
        }
        _ => {}
    }
}

crate::rule! {
    /// A remote speaks the transport of 2024-11-05.
    ///
    /// It is deprecated; newer clients need not know it.
    static CARD_REMOTE_SSE = {
        id: "mcp/card-remote-sse",
        class: Class::Fact,
        versions: V1,
        on: ON,
        place: "/remotes/*/type",
        fix: "Use streamable-http.",
        spec: "2026-07-28 deprecated",
        seeds: &["gaip:MCP_SSE_TRANSPORT_DEPRECATED"],
        examples: &[
            fires(&["/remotes/0/type"], r#"{"remotes": [{"type": "sse"}]}"#),
            silent(r#"{"remotes": [{"type": "streamable-http"}]}"#),
        ],
        check: Check::Each(&["/remotes/*/type"], card_remote_sse),
    }
}

fn card_remote_sse(kind: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if kind.text() == Some("sse") {
        out.add(kind, "sse");
    }
}

crate::rule! {
    /// A remote has an address to connect to.
    ///
    /// It begins with http://, https:// or a variable, and has neither white space nor a fragment.
    static CARD_REMOTE_URL = {
        id: "mcp/card-remote-url",
        severity: Severity::Error,
        impact: Some(Impact::Degrades),
        versions: V1,
        on: ON,
        place: "/remotes/*/url",
        fix: "Give an absolute URL or template.",
        spec: "SEP-2127 schema Remote",
        seeds: &["gaip:MCP_ENDPOINT_URL_INVALID"],
        examples: &[
            fires(&["/remotes/0/url"], r#"{"remotes": [{"url": "/mcp"}]}"#),
            silent(r#"{"remotes": [{"url": "{base}/mcp", "variables": {"base": {"isRequired": true}}}]}"#),
        ],
        check: Check::Each(&["/remotes/*"], card_remote_url),
    }
}

fn card_remote_url(remote: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let Some(url) = remote.get("url") else {
        if remote.kind() == Type::Object {
            out.add_missing(remote, "url", "`url` is missing");
        }
        return;
    };
    let is_address = |text: &str| {
        let begins = ["http://", "https://"].iter().any(|scheme| starts_with_ignoring_case(text, scheme));
        let is_clean = !text.contains(['#']) && !text.chars().any(char::is_whitespace);
        is_clean && (begins || (text.starts_with('{') && text.contains('}')))
    };
    match url.text() {
        Some(text) if is_address(text) => {}
        Some(text) => drop(out.add(url, format!("{} is no address to connect to", quote(text)))),
        None => drop(out.add(url, format!("`url` is {}, not a string", url.kind().named()))),
    }
}

fn starts_with_ignoring_case(text: &str, prefix: &str) -> bool {
    text.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix))
}

crate::rule! {
    /// A remote is reached over https.
    ///
    /// Over http everybody on the way reads tokens and results, and can change them.
    static CARD_REMOTE_NOT_HTTPS = {
        id: "mcp/card-remote-not-https",
        severity: Severity::Error,
        impact: Some(Impact::Degrades),
        security: true,
        basis: Basis::Policy,
        versions: V1,
        on: ON,
        place: "/remotes/*/url",
        fix: "Use https.",
        spec: "SEP-2127 discovery, Transport Security",
        seeds: &["gaip:MCP_HTTPS_ENDPOINT_REQUIRED"],
        examples: &[
            fires(&["/remotes/0/url"], r#"{"remotes": [{"url": "http://tides.example.org/mcp"}]}"#),
            silent(r#"{"remotes": [{"url": "http://127.0.0.1:8080/mcp"}]}"#).beside(&["common/url-not-public"]),
        ],
        check: Check::Each(&["/remotes/*/url"], card_remote_not_https),
    }
}

fn card_remote_not_https(url: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if let Some(text) = url.text().filter(|text| starts_with_ignoring_case(text, "http://"))
        && !AbsoluteUrl::parse(text).is_some_and(|url| host_is_loopback(url.host))
    {
        out.add(url, format!("{} is not https", quote(text)));
    }
}

crate::rule! {
    /// What stands in braces is defined.
    ///
    /// A client asks the user for every variable before it connects; one that nobody describes it cannot ask for.
    static CARD_REMOTE_VARIABLE = {
        id: "mcp/card-remote-variable",
        severity: Severity::Error,
        impact: Some(Impact::Degrades),
        versions: V1,
        on: ON,
        place: "/remotes/*/url | /remotes/*/headers/*/value",
        fix: "Define the variable.",
        spec: "SEP-2127 schema Remote",
        examples: &[
            fires(&["/remotes/0/url"], r#"{"remotes": [{"url": "https://{tenant}.example.org/mcp"}]}"#),
            silent(
                r#"{"remotes": [{"url": "https://{tenant}.example.org/mcp", "variables": {"tenant": {"isRequired": true}}}]}"#,
            ),
        ],
        check: Check::Each(&["/remotes/*"], card_remote_variable),
    }
}

fn card_remote_variable(remote: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let defined = remote.get("variables");
    if let Some(url) = remote.get("url") {
        demand_variables(url, &[defined], out);
    }
    for header in remote.get("headers").into_iter().flat_map(Node::items) {
        if let Some(value) = header.get("value") {
            demand_variables(value, &[defined, header.get("variables")], out);
        }
    }
}

fn demand_variables(template: Node<'_>, defined: &[Option<Node<'_>>], out: &mut Occurrences) {
    let Some(text) = template.text() else { return };
    let is_defined = |name: &str| defined.iter().flatten().any(|variables| variables.get(name).is_some());
    if let Some(variable) = variables(text).find(|variable| variable.is_identifier() && !is_defined(variable.name)) {
        out.add(template, format!("{} is not among the variables", quote(variable.name)));
    }
}

crate::rule! {
    /// The revisions of a remote are a list of dates.
    ///
    /// Clients compare them as strings with those they speak.
    static CARD_REMOTE_VERSIONS = {
        id: "mcp/card-remote-versions",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        versions: V1,
        on: ON,
        place: "/remotes/*/supportedProtocolVersions | /remotes/*/supportedProtocolVersions/*",
        fix: "List revision dates.",
        spec: "SEP-2127 schema Remote",
        seeds: &["gaip:MCP_PROTOCOL_VERSION_UNRECOGNISED"],
        examples: &[
            fires(&["/remotes/0/supportedProtocolVersions/0"], r#"{"remotes": [{"supportedProtocolVersions": ["1.0"]}]}"#),
            silent(r#"{"remotes": [{"supportedProtocolVersions": null}]}"#),
        ],
        check: Check::Each(&["/remotes/*/supportedProtocolVersions"], card_remote_versions),
    }
}

fn card_remote_versions(versions: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if !matches!(versions.kind(), Type::Array | Type::Null) {
        out.add(versions, format!("the versions are {}, not a list", versions.kind().named()));
    }
    for version in versions.items().filter(|version| !version.text().is_some_and(super::handshake::is_date)) {
        out.add(
            version,
            format!("{} is no date of the form YYYY-MM-DD", quote(version.text().unwrap_or(version.raw()))),
        );
    }
}

crate::rule! {
    /// A card leaves tools, resources and prompts to the server.
    ///
    /// They are listed live, where they are true. In the card they grow old.
    static CARD_PRIMITIVES = {
        id: "mcp/card-primitives",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        versions: V1,
        on: ON,
        place: "/tools | /resources | /prompts | /capabilities",
        fix: "Remove them; clients call the list methods.",
        spec: "SEP-2127 schema ServerCard",
        examples: &[
            fires(&["/tools"], r#"{"tools": []}"#),
            silent(r#"{"_meta": {"org.example/tools": []}}"#),
        ],
        check: Check::Document(card_primitives),
    }
}

fn card_primitives(card: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for member in ["tools", "resources", "prompts", "capabilities"] {
        if let Some(listed) = card.get(member) {
            out.add(listed, format!("`{member}` does not belong into a card"));
        }
    }
}
