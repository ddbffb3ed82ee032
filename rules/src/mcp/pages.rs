//! One listing over several pages, and one list fetched twice.

use std::collections::{HashMap, HashSet};

use super::{ALL, MODERN, is_modern};
use crate::canonical::canonical;
use crate::document::{Node, Type};
use crate::judge::{Context, Occurrences};
use crate::kind::Kind;
use crate::rule::{Basis, Check, Evidence, Impact, Rule, Severity, fires, silent};
use crate::text::quote;

pub(super) const RULES: &[&Rule] = &[
    &PAGINATION_ENDLESS,
    &PAGINATION_DUPLICATE_ITEMS,
    &PAGINATION_EMPTY_PAGE,
    &CACHE_SCOPE_INCONSISTENT,
    &TOOLS_ORDER_UNSTABLE,
    &LIST_ORDER_UNSTABLE,
    &TOOLS_SET_UNSTABLE,
    &TOOL_DEFINITION_UNSTABLE,
];

const PAGES: &[Kind] = &[Kind::McpListPages];
const PAIR: &[Kind] = &[Kind::McpToolsListPair];

/// What a listing method lists, and what its items are known by.
fn listing(method: &str) -> Option<(&'static str, &'static str)> {
    match method {
        "tools/list" => Some(("tools", "name")),
        "resources/list" => Some(("resources", "uri")),
        "resources/templates/list" => Some(("resourceTemplates", "uriTemplate")),
        "prompts/list" => Some(("prompts", "name")),
        _ => None,
    }
}

fn listing_of(root: Node<'_>) -> Option<(&'static str, &'static str)> {
    listing(root.get("method")?.text()?)
}

/// The results of the pages, in order.
fn results<'d>(root: Node<'d>) -> impl Iterator<Item = Node<'d>> {
    root.get("pages").into_iter().flat_map(Node::items).filter_map(|page| page.get("result"))
}

/// A crawl of one listing ends after this many pages or items.
const MOST_PAGES: usize = 200;
const MOST_ITEMS: usize = 20_000;

crate::rule! {
    /// A listing comes to an end.
    ///
    /// A cursor that was there before leads round in a circle; some clients follow it for ever.
    static PAGINATION_ENDLESS = {
        id: "mcp/pagination-endless",
        severity: Severity::Error,
        impact: Some(Impact::Degrades),
        versions: ALL,
        on: PAGES,
        place: "step:list | /pages/*/result/nextCursor",
        fix: "End the listing by omitting nextCursor.",
        spec: "2026-07-28 utilities/pagination",
        seeds: &["validator:4.6.1.3"],
        examples: &[
            fires(
                &["/pages/1/result/nextCursor"],
                r#"{"pages": [{}, {"cursor": "c1", "result": {"tools": [{"name": "b"}], "nextCursor": "c1"}}]}"#,
            ),
            silent(r#"{"pages": [{}, {"cursor": "c1", "result": {"tools": [{"name": "b"}], "nextCursor": null}}]}"#),
        ],
        check: Check::Document(pagination_endless),
    }
}

fn pagination_endless(root: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let list = listing_of(root).map(|(list, _)| list);
    let mut seen = HashSet::new();
    let mut items = 0;
    for (n, result) in results(root).enumerate() {
        items += list.and_then(|list| result.get(list)).and_then(Node::len).unwrap_or(0);
        let Some(cursor) = result.get("nextCursor").filter(|cursor| cursor.kind() == Type::String) else { continue };
        let text = cursor.text().unwrap_or_default();
        if !seen.insert(text) {
            out.add(cursor, format!("the cursor {} was given before", quote(text)));
            return;
        }
        if n + 1 >= MOST_PAGES || items >= MOST_ITEMS {
            out.add(cursor, format!("no end after {} pages and {items} items", n + 1));
            return;
        }
    }
}

crate::rule! {
    /// An item is on one page.
    ///
    /// What comes twice was shifted while pages were fetched, and something else then came never.
    static PAGINATION_DUPLICATE_ITEMS = {
        id: "mcp/pagination-duplicate-items",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        basis: Basis::Hint,
        versions: ALL,
        on: PAGES,
        place: "step:list | /pages/*/result/*/*/name | /pages/*/result/*/*/uri | /pages/*/result/*/*/uriTemplate",
        fix: "Do not repeat items across pages.",
        spec: "2026-07-28 utilities/pagination",
        seeds: &["validator:4.6.1.2"],
        examples: &[
            fires(
                &["/pages/1/result/tools/0/name"],
                r#"{"pages": [{}, {"cursor": "c1", "result": {"tools": [{}], "nextCursor": null}}]}"#,
            ),
            silent(r#"{"pages": [{}, {"cursor": "c1", "result": {"tools": [{"name": "b"}], "nextCursor": null}}]}"#),
        ],
        check: Check::Document(pagination_duplicate_items),
    }
}

fn pagination_duplicate_items(root: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let Some((list, key)) = listing_of(root) else { return };
    let mut page_of: HashMap<&str, usize> = HashMap::new();
    for (page, result) in results(root).enumerate() {
        for item in result.get(list).into_iter().flat_map(Node::items) {
            if let Some(at) = item.get(key)
                && let Some(text) = at.text()
                && *page_of.entry(text).or_insert(page) != page
            {
                out.add(at, format!("{} is on an earlier page too", quote(text)));
            }
        }
    }
}

crate::rule! {
    /// A page has something on it.
    ///
    /// An empty one with a cursor costs a request and brings nothing.
    static PAGINATION_EMPTY_PAGE = {
        id: "mcp/pagination-empty-page",
        basis: Basis::Hint,
        versions: ALL,
        on: PAGES,
        place: "step:list | /pages/*/result/*",
        fix: "Omit nextCursor when nothing follows.",
        spec: "2026-07-28 utilities/pagination",
        examples: &[
            fires(
                &["/pages/0/result/tools"],
                r#"{"pages": [{"result": {"tools": []}}, {"cursor": "c1", "result": {"nextCursor": null}}]}"#,
            ),
            silent(r#"{"pages": [{}, {"cursor": "c1", "result": {"tools": [], "nextCursor": null}}]}"#),
        ],
        check: Check::Document(pagination_empty_page),
    }
}

fn pagination_empty_page(root: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let Some((list, _)) = listing_of(root) else { return };
    for result in results(root).filter(|result| result.given("nextCursor").is_some()) {
        if let Some(items) = result.get(list).filter(|items| items.kind() == Type::Array && items.is_empty()) {
            out.add(items, "no items, but a cursor");
        }
    }
}

crate::rule! {
    /// All pages of a listing may be kept by the same people.
    ///
    /// A shared cache that took one page for public mixes it with what is private.
    static CACHE_SCOPE_INCONSISTENT = {
        id: "mcp/cache-scope-inconsistent",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: MODERN,
        on: PAGES,
        place: "/cacheScope",
        fix: "Use one scope for all pages.",
        spec: "2026-07-28 utilities/caching, Pagination",
        seeds: &["inspector:cache-metadata"],
        examples: &[
            fires(
                &["/pages/1/result/cacheScope"],
                r#"{"pages": [{}, {"cursor": "c1",
                    "result": {"tools": [{"name": "b"}], "nextCursor": null, "cacheScope": "private"}}]}"#,
            ),
            silent(
                r#"{"pages": [{}, {"cursor": "c1", "result": {"tools": [{"name": "b"}], "nextCursor": null, "ttlMs": 1}}]}"#,
            ),
        ],
        check: Check::Document(cache_scope_inconsistent),
    }
}

fn cache_scope_inconsistent(root: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let mut first = None;
    for scope in results(root).filter_map(|result| result.get("cacheScope")) {
        let Some(text) = scope.text() else { continue };
        let expected = *first.get_or_insert(text);
        if text != expected {
            out.add(scope, format!("{} after {}", quote(text), quote(expected)));
            return;
        }
    }
}

/// The list that both answers of a pair have under that name, and the names of its items.
fn pair<'d>(root: Node<'d>, list: &str, key: &'static str) -> Option<[(Node<'d>, Vec<&'d str>); 2]> {
    let side = |name: &str| {
        let list = root.get(name)?.get(list).filter(|list| list.kind() == Type::Array)?;
        Some((list, list.items().filter_map(|item| item.get(key)?.text()).collect()))
    };
    Some([side("first")?, side("second")?])
}

fn sorted<'n>(names: &[&'n str]) -> Vec<&'n str> {
    let mut names = names.to_vec();
    names.sort_unstable();
    names
}

/// Reports a list that holds the same in another order.
fn demand_order<'o>(
    root: Node<'_>,
    list: &str,
    key: &'static str,
    out: &'o mut Occurrences,
) -> Option<crate::judge::Added<'o>> {
    let [(_, first), (at, second)] = pair(root, list, key)?;
    (first != second && sorted(&first) == sorted(&second)).then(|| out.add(at, "the same items in another order"))
}

crate::rule! {
    /// A list of tools keeps its order.
    ///
    /// Models read it from top to bottom, and what they read before they need not read again.
    static TOOLS_ORDER_UNSTABLE = {
        id: "mcp/tools-order-unstable",
        severity: Severity::Warning,
        severity_overrides: &[("2024-11-05", Severity::Info), ("2025-03-26", Severity::Info), ("2025-06-18", Severity::Info), ("2025-11-25", Severity::Info)],
        impact: Some(Impact::Cosmetic),
        versions: ALL,
        evidence: Evidence::Timing,
        on: PAIR,
        place: "step:tools/list twice | /second/tools",
        fix: "Return tools in one fixed order.",
        spec: "2026-07-28 server/tools, Capabilities",
        seeds: &["inspector:tool-list-stability"],
        examples: &[
            fires(&["/second/tools"], r#"{"second": {"tools": [{"name": "list_harbours"}, {}]}}"#),
            silent(r#"{"second": {"tools": [{}]}}"#),
        ],
        check: Check::Document(tools_order_unstable),
    }
}

fn tools_order_unstable(root: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    if let Some(added) = demand_order(root, "tools", "name", out)
        && !is_modern(context)
    {
        added.severity(Severity::Info);
    }
}

crate::rule! {
    /// Lists of resources and prompts keep their order.
    ///
    /// What is fetched page by page is fetched whole only then.
    static LIST_ORDER_UNSTABLE = {
        id: "mcp/list-order-unstable",
        basis: Basis::Hint,
        versions: ALL,
        evidence: Evidence::Timing,
        on: PAIR,
        place: "step:resources|prompts twice | /second/*",
        fix: "Return a fixed order.",
        spec: "hint: caching",
        examples: &[
            fires(
                &["/second/prompts"],
                r#"{"first": {"tools": null, "prompts": [{"name": "a"}, {"name": "b"}]},
                    "second": {"tools": null, "prompts": [{"name": "b"}, {"name": "a"}]}}"#,
            ),
            silent(
                r#"{"first": {"tools": null, "prompts": [{"name": "a"}, {"name": "b"}]},
                    "second": {"tools": null, "prompts": [{"name": "a"}, {"name": "b"}]}}"#,
            ),
        ],
        check: Check::Document(list_order_unstable),
    }
}

fn list_order_unstable(root: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for (list, key) in [("resources", "uri"), ("resourceTemplates", "uriTemplate"), ("prompts", "name")] {
        demand_order(root, list, key, out);
    }
}

crate::rule! {
    /// Asked twice, a server lists the same tools.
    ///
    /// When a third answer agrees with the first again, several servers stand behind one address and do not agree. Different
    /// versions of the server are a rollout and no fault.
    static TOOLS_SET_UNSTABLE = {
        id: "mcp/tools-set-unstable",
        severity: Severity::Error,
        severity_overrides: &[("2024-11-05", Severity::Warning), ("2025-03-26", Severity::Warning), ("2025-06-18", Severity::Warning), ("2025-11-25", Severity::Warning)],
        impact: Some(Impact::Degrades),
        versions: ALL,
        evidence: Evidence::Timing,
        on: PAIR,
        place: "step:tools/list twice | /second/tools",
        fix: "Do not vary the list by connection.",
        spec: "2026-07-28 server/tools, Capabilities; SEP-2567",
        seeds: &["inspector:tool-list-stability"],
        examples: &[
            fires(&["/second/tools"], r#"{"second": {"tools": [{}]}}"#).given(r#"{"third_equals": "first"}"#),
            silent(r#"{"second": {"tools": [{}]}}"#).given(r#"{"third_equals": "second"}"#),
        ],
        check: Check::Document(tools_set_unstable),
    }
}

fn tools_set_unstable(root: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    let is_back = context.given.third_equals.as_deref() == Some("first") && !context.given.list_changed_seen;
    let version = |side: &str| root.get(side)?.get("_meta")?.get(super::SERVER_INFO)?.get("version")?.text();
    if !is_back || version("first") != version("second") {
        return;
    }
    let Some([(_, first), (at, second)]) = pair(root, "tools", "name") else { return };
    let (first, second): (HashSet<_>, HashSet<_>) = (first.into_iter().collect(), second.into_iter().collect());
    if first != second {
        let differing: Vec<_> = first.symmetric_difference(&second).take(5).map(|name| quote(name)).collect();
        let added = out.add(at, format!("only one of two answers has {}", differing.join(", ")));
        if !is_modern(context) {
            added.severity(Severity::Warning);
        }
    }
}

crate::rule! {
    /// Asked twice, a server describes a tool the same way.
    ///
    /// A description that changes by itself, with a clock in it for example, defeats every cache and every review.
    static TOOL_DEFINITION_UNSTABLE = {
        id: "mcp/tool-definition-unstable",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        basis: Basis::Hint,
        versions: ALL,
        evidence: Evidence::Timing,
        on: PAIR,
        place: "step:tools/list twice | /second/tools/*",
        fix: "Serve identical definitions.",
        spec: "hint: caching",
        seeds: &["inspector:tool-list-stability"],
        examples: &[
            fires(
                &["/second/tools/0"],
                r#"{"second": {"tools": [{"description": "Tides at 12:01:07."}, {"name": "list_harbours"}]}}"#,
            ),
            silent(
                r#"{"first": {"tools": [{"annotations": {"readOnlyHint": true, "openWorldHint": false}}]},
                    "second": {"tools": [{"annotations": {"openWorldHint": false, "readOnlyHint": true}}]}}"#,
            ),
        ],
        check: Check::Document(tool_definition_unstable),
    }
}

fn tool_definition_unstable(root: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let tools = |side: &str| {
        let tools = root.get(side).and_then(|result| result.get("tools")).into_iter().flat_map(Node::items);
        tools.filter_map(|tool| Some((tool.get("name")?.text()?, tool)))
    };
    let first: HashMap<&str, Node<'_>> = tools("first").collect();
    for (name, tool) in tools("second") {
        if let Some(before) = first.get(name)
            && before.raw() != tool.raw()
            && canonical(*before) != canonical(tool)
        {
            out.add(tool, format!("{} was described otherwise before", quote(name)));
        }
    }
}
