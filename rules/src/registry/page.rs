//! One answer of a registry's list.

use url::Url;

use super::entry::{is_deleted, stamp};
use super::revision::API;
use crate::document::{Node, Type};
use crate::judge::{Context, Occurrences};
use crate::kind::Kind;
use crate::rule::{Basis, Check, Evidence, Impact, Rule, Severity, fires, silent};
use crate::session::Session;
use crate::text::{Instant, quote};

pub(super) const RULES: &[&Rule] = &[
    &PAGE_NOT_A_LIST,
    &ENTRY_NOT_WRAPPED,
    &PAGE_COUNT_MISMATCH,
    &PAGE_EMPTY_WITH_CURSOR,
    &CURSOR_LEGACY_NAME,
    &PAGE_OVER_LIMIT,
    &DELETED_ENTRY_LISTED,
    &UPDATED_SINCE_IGNORED,
];

/// The cursor that leads to the page after this one, in either spelling; an empty one ends the walk.
pub(super) fn next_cursor(page: Node<'_>) -> Option<(Node<'_>, &str)> {
    let metadata = page.given("metadata")?;
    let node = metadata.given("nextCursor").or_else(|| metadata.given("next_cursor"))?;
    Some((node, node.text().filter(|text| !text.is_empty())?))
}

/// The entries of a page.
pub(super) fn entries(page: Node<'_>) -> impl Iterator<Item = Node<'_>> {
    page.given("servers").into_iter().flat_map(Node::items)
}

crate::rule! {
    /// A registry's list is an object with an array `servers`.
    ///
    /// Nothing can be read from another answer, so the walk stays incomplete.
    static PAGE_NOT_A_LIST = {
        id: "registry/page-not-a-list",
        severity: Severity::Error,
        impact: Some(Impact::Degrades),
        versions: API,
        evidence: Evidence::Live,
        place: "/servers",
        fix: "Serve the ServerList shape.",
        spec: "Registry API v0.1 ServerList",
        on: &[Kind::RegistryPage],
        examples: &[
            fires(&[""], r#"{"data": [], "metadata": {"count": 0}}"#).whole(),
            fires(&["/servers"], r#"{"servers": {"a": 1}}"#).whole(),
            fires(&["/servers"], r#"{"servers": null, "metadata": {"count": 3}}"#).whole(),
            silent(r#"{"servers": null, "metadata": {"count": 0}}"#).whole(),
        ],
        check: Check::Document(page_not_a_list),
    }
}

fn page_not_a_list(page: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if page.kind() != Type::Object {
        return;
    }
    let count = page.given("metadata").and_then(|metadata| metadata.given("count")?.number());
    match page.get("servers") {
        None => {
            out.add(page, "no `servers`");
        }
        Some(servers) if servers.is_null() && count.is_none_or(|count| count == 0.0) => {}
        Some(servers) if servers.kind() != Type::Array => {
            out.add(servers, format!("{} where an array belongs", servers.kind().named()));
        }
        Some(_) => {}
    }
}

crate::rule! {
    /// Every entry wraps its document.
    ///
    /// Before 2025-09-29 the document stood there itself, with nowhere to put what the registry says about it.
    static ENTRY_NOT_WRAPPED = {
        id: "registry/entry-not-wrapped",
        severity: Severity::Warning,
        impact: Some(Impact::Degrades),
        versions: API,
        evidence: Evidence::Live,
        place: "/servers/*",
        fix: "Wrap each document as {server, _meta}.",
        spec: "Registry API CHANGELOG 2025-09-29",
        on: &[Kind::RegistryPage],
        examples: &[
            fires(&["/servers/0"], r#"{"servers": [{"server": null, "name": "io.github.tidehouse/tides"}]}"#),
            fires(&["/servers/0"], r#"{"servers": ["io.github.tidehouse/tides"]}"#),
            silent("{}"),
        ],
        check: Check::Document(entry_not_wrapped),
    }
}

fn entry_not_wrapped(page: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for entry in entries(page) {
        if entry.given("server").is_some_and(|server| server.kind() == Type::Object) {
            continue;
        }
        if entry.given("name").is_some() {
            out.add(entry, "the document stands here itself");
        } else {
            out.add(entry, "neither an entry nor a document").severity(Severity::Error);
        }
    }
}

crate::rule! {
    /// `count` is the number of entries on the page.
    ///
    /// Readers use it to tell a cut answer from a whole one.
    static PAGE_COUNT_MISMATCH = {
        id: "registry/page-count-mismatch",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        versions: API,
        evidence: Evidence::Live,
        place: "/metadata/count",
        fix: "Set count to the page's length.",
        spec: "Registry API v0.1 ServerList.metadata.count",
        on: &[Kind::RegistryPage],
        examples: &[
            fires(&["/metadata/count"], r#"{"metadata": {"count": 30}}"#),
            silent(r#"{"metadata": {"count": null}}"#),
        ],
        check: Check::Document(page_count_mismatch),
    }
}

fn page_count_mismatch(page: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let Some(count) = page.given("metadata").and_then(|metadata| metadata.given("count")) else { return };
    let Some(servers) = page.given("servers").filter(|servers| servers.kind() == Type::Array) else { return };
    if let Some(number) = count.number()
        && let Some(length) = servers.len()
        && number != length as f64
    {
        out.add(count, format!("{} for {length} entries", quote(count.raw())));
    }
}

crate::rule! {
    /// An empty page ends the list.
    ///
    /// With a cursor it leads on, perhaps for ever; a crawler follows a few of them and gives up.
    static PAGE_EMPTY_WITH_CURSOR = {
        id: "registry/page-empty-with-cursor",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        basis: Basis::Policy,
        versions: API,
        evidence: Evidence::Live,
        place: "/metadata/nextCursor",
        fix: "End the walk with a page that has no cursor.",
        spec: "Registry API v0.1 nextCursor",
        on: &[Kind::RegistryPage],
        examples: &[
            fires(&["/metadata/nextCursor"], r#"{"servers": [], "metadata": {"count": 0, "nextCursor": "io.github.tidehouse/tides:2.3.0"}}"#),
            silent(r#"{"servers": [], "metadata": {"count": 0, "nextCursor": ""}}"#),
        ],
        check: Check::Document(page_empty_with_cursor),
    }
}

fn page_empty_with_cursor(page: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if page.given("servers").is_some_and(Node::is_empty)
        && let Some((node, cursor)) = next_cursor(page)
    {
        out.add(node, format!("{} behind no entry", quote(cursor)));
    }
}

crate::rule! {
    /// The cursor has its name of before 2025-09-16.
    ///
    /// It is followed all the same.
    static CURSOR_LEGACY_NAME = {
        id: "registry/cursor-legacy-name",
        versions: API,
        evidence: Evidence::Live,
        place: "/metadata/next_cursor",
        fix: "Rename to nextCursor.",
        spec: "Registry API CHANGELOG 2025-09-16",
        on: &[Kind::RegistryPage],
        examples: &[
            fires(&["/metadata/next_cursor"], r#"{"metadata": {"next_cursor": "550e8400-e29b-41d4-a716-446655440000"}}"#),
            silent(r#"{"metadata": {"nextCursor": "io.github.tidehouse/tides:2.3.0"}}"#),
        ],
        check: Check::Document(cursor_legacy_name),
    }
}

fn cursor_legacy_name(page: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let Some(metadata) = page.given("metadata") else { return };
    if let Some(cursor) = metadata.get("next_cursor").filter(|_| metadata.get("nextCursor").is_none()) {
        out.add(cursor, "`nextCursor` since 2025-09-16");
    }
}

/// The page that a conversation brought, and what was asked for with this parameter.
fn answered<'c>(session: &Session, context: &Context<'c>, parameter: &str) -> Option<(Node<'c>, Option<String>)> {
    let page = context.document?.root()?;
    let asked = Url::parse(&session.exchanges.get(context.answer?)?.request.url).ok()?;
    let value = asked.query_pairs().find(|(key, _)| key == parameter).map(|(_, value)| value.into_owned());
    Some((page, value))
}

crate::rule! {
    /// A page holds no more entries than were asked for.
    ///
    /// Readers size their memory and their patience by `limit`.
    static PAGE_OVER_LIMIT = {
        id: "registry/page-over-limit",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        versions: API,
        evidence: Evidence::Live,
        place: "/servers",
        fix: "Honour limit.",
        spec: "Registry API v0.1 limit",
        on: &[Kind::RegistryPage],
        examples: &[
            fires(
                &["/exchanges/0/response/body/servers"],
                r#"{"exchanges": [{"request": {"method": "GET", "url": "https://registry.tidehouse.dev/v0.1/servers?limit=0"}, "response": {"status": 200, "headers": {"content-type": "application/json"}, "body": "base:registry-page"}}]}"#,
            )
            .given(r#"{"surface": "registry"}"#),
            silent(
                r#"{"exchanges": [{"request": {"method": "GET", "url": "https://registry.tidehouse.dev/v0.1/servers?limit=1"}, "response": {"status": 200, "headers": {"content-type": "application/json"}, "body": "base:registry-page"}}]}"#,
            )
            .given(r#"{"surface": "registry"}"#),
        ],
        check: Check::Session(page_over_limit),
    }
}

fn page_over_limit(session: &Session, context: &Context<'_>, out: &mut Occurrences) {
    let Some((page, Some(limit))) = answered(session, context, "limit") else { return };
    if let Ok(limit) = limit.parse::<usize>()
        && let Some(servers) = page.given("servers").filter(|servers| servers.kind() == Type::Array)
        && let Some(length) = servers.len()
        && length > limit
    {
        out.add(servers, format!("{length} entries, {limit} were asked for"));
    }
}

crate::rule! {
    /// Deleted entries are listed to those who ask for them.
    ///
    /// A reader that did not ask takes them for live ones.
    static DELETED_ENTRY_LISTED = {
        id: "registry/deleted-entry-listed",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        versions: API,
        evidence: Evidence::Live,
        place: "/servers/*",
        fix: "Hide deleted entries by default.",
        spec: "Registry API include_deleted",
        on: &[Kind::RegistryPage],
        examples: &[
            fires(
                &["/exchanges/0/response/body/servers/0"],
                r#"{"exchanges": [{"request": {"method": "GET", "url": "https://registry.tidehouse.dev/v0.1/servers?include_deleted=false"}, "response": {"status": 200, "headers": {"content-type": "application/json"},
                    "body": {"servers": [{"server": {"name": "a.b/cd"}, "_meta": {"io.modelcontextprotocol.registry/official": {"status": "deleted"}}}]}}}]}"#,
            )
            .given(r#"{"surface": "registry"}"#),
            silent(
                r#"{"exchanges": [{"request": {"method": "GET", "url": "https://registry.tidehouse.dev/v0.1/servers?include_deleted=true"}, "response": {"status": 200, "headers": {"content-type": "application/json"},
                    "body": {"servers": [{"server": {"name": "a.b/cd"}, "_meta": {"io.modelcontextprotocol.registry/official": {"status": "deleted"}}}]}}}]}"#,
            )
            .given(r#"{"surface": "registry"}"#),
        ],
        check: Check::Session(deleted_entry_listed),
    }
}

fn deleted_entry_listed(session: &Session, context: &Context<'_>, out: &mut Occurrences) {
    let Some((page, since)) = answered(session, context, "updated_since") else { return };
    let wanted =
        answered(session, context, "include_deleted").is_some_and(|(_, value)| value.as_deref() == Some("true"));
    if wanted || since.is_some() {
        return;
    }
    for entry in entries(page).filter(|entry| is_deleted(*entry)) {
        out.add(entry, "it is deleted");
    }
}

crate::rule! {
    /// `updated_since` leaves out what is older.
    ///
    /// Otherwise every look at the news is a walk through everything.
    static UPDATED_SINCE_IGNORED = {
        id: "registry/updated-since-ignored",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        versions: API,
        evidence: Evidence::Live,
        place: "/servers/*",
        fix: "Filter by updatedAt.",
        spec: "Registry API updated_since",
        on: &[Kind::RegistryPage],
        examples: &[
            fires(
                &["/exchanges/0/response/body/servers/0"],
                r#"{"exchanges": [{"request": {"method": "GET", "url": "https://registry.tidehouse.dev/v0.1/servers?updated_since=2026-05-02T10%3A00%3A00Z"}, "response": {"status": 200, "headers": {"content-type": "application/json"}, "body": "base:registry-page"}}]}"#,
            )
            .given(r#"{"surface": "registry"}"#),
            silent(
                r#"{"exchanges": [{"request": {"method": "GET", "url": "https://registry.tidehouse.dev/v0.1/servers?updated_since=2026-05-02T09%3A59%3A59.999Z"}, "response": {"status": 200, "headers": {"content-type": "application/json"}, "body": "base:registry-page"}}]}"#,
            )
            .given(r#"{"surface": "registry"}"#),
        ],
        check: Check::Session(updated_since_ignored),
    }
}

fn updated_since_ignored(session: &Session, context: &Context<'_>, out: &mut Occurrences) {
    let Some((page, Some(since))) = answered(session, context, "updated_since") else { return };
    let Some(asked) = Instant::parse(&since) else { return };
    for entry in entries(page) {
        if let Some((stamp, updated)) = stamp(entry, "updatedAt")
            && updated <= asked
        {
            out.add(entry, format!("updated {}, asked for later than {}", stamp.raw(), quote(&since)));
        }
    }
}
