//! A whole walk through a registry's list: its course, and what only all entries together show.

use std::collections::{HashMap, HashSet};

use super::entry::{is_deleted, is_latest, official};
use super::fields::filled;
use super::names::{owner_of, parts};
use super::page::{entries, next_cursor};
use super::revision::API;
use crate::document::Node;
use crate::judge::{Context, Occurrences};
use crate::kind::Kind;
use crate::rule::{Basis, Check, Class, Evidence, Impact, Rule, Severity, fires, silent};
use crate::text::{AbsoluteUrl, quote, variables};

pub(super) const RULES: &[&Rule] = &[
    &CURSOR_REPEATED,
    &WALK_TOO_LONG,
    &ENTRY_DUPLICATE_IN_WALK,
    &LATEST_FLAG_COUNT,
    &LATEST_FLAG_NOT_NEWEST,
    &REMOTE_URL_SHARED,
    &REMOTE_HOST_MANY_NAMESPACES,
    &OWNER_MANY_NAMESPACES,
];

fn pages(walk: Node<'_>) -> impl Iterator<Item = Node<'_>> {
    walk.given("pages").into_iter().flat_map(Node::items)
}

/// Every entry of a walk, in the order listed.
fn all_entries(walk: Node<'_>) -> impl Iterator<Item = Node<'_>> {
    pages(walk).flat_map(entries)
}

/// Whether a walk says something of itself.
fn says(walk: Node<'_>, key: &str) -> bool {
    walk.given(key).and_then(Node::flag) == Some(true)
}

/// The document of an entry; before 2025-09-29 the entry itself.
fn server(entry: Node<'_>) -> Node<'_> {
    entry.given("server").unwrap_or(entry)
}

/// One version of a name, as a walk lists it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Listed<'d> {
    /// The entry.
    pub entry: Node<'d>,
    /// Its document.
    pub server: Node<'d>,
    /// The name.
    pub name: &'d str,
    /// The version.
    pub version: &'d str,
}

impl<'d> Listed<'d> {
    fn of(entry: Node<'d>) -> Option<Listed<'d>> {
        let server = server(entry);
        Some(Listed { entry, server, name: filled(server, "name")?, version: filled(server, "version")? })
    }

    /// The part of the name that says whose it is.
    pub fn namespace(&self) -> &'d str {
        parts(self.name).map_or(self.name, |(namespace, _)| namespace)
    }

    fn semver(&self) -> Option<semver::Version> {
        semver::Version::parse(self.version).ok()
    }
}

/// The versions of every name, names in the order in which they first occur.
fn by_name(walk: Node<'_>) -> Vec<Vec<Listed<'_>>> {
    let mut places: HashMap<&str, usize> = HashMap::new();
    let mut names: Vec<Vec<Listed<'_>>> = Vec::new();
    for listed in all_entries(walk).filter_map(Listed::of) {
        let place = *places.entry(listed.name).or_insert_with(|| {
            names.push(Vec::new());
            names.len() - 1
        });
        names[place].push(listed);
    }
    names
}

/// What stands for each name: the version that is flagged as latest and not deleted, or without the official block
/// the highest one.
pub(super) fn current(walk: Node<'_>) -> Vec<Listed<'_>> {
    by_name(walk).into_iter().filter_map(current_of).collect()
}

fn current_of(versions: Vec<Listed<'_>>) -> Option<Listed<'_>> {
    if versions.iter().any(|listed| official(listed.entry).is_some()) {
        return versions.into_iter().find(|listed| is_latest(listed.entry) && !is_deleted(listed.entry));
    }
    let order = |listed: &Listed<'_>| listed.semver();
    versions.into_iter().max_by(|a, b| match (order(a), order(b)) {
        (Some(a), Some(b)) => a.cmp_precedence(&b),
        (a, b) => a.is_some().cmp(&b.is_some()),
    })
}

crate::rule! {
    /// A cursor leads forward.
    ///
    /// One that was used before sends the reader round in circles; the walk stops there and counts as incomplete.
    static CURSOR_REPEATED = {
        id: "registry/cursor-repeated",
        severity: Severity::Error,
        impact: Some(Impact::Degrades),
        basis: Basis::Policy,
        versions: API,
        evidence: Evidence::Live,
        place: "/metadata/nextCursor",
        fix: "Return a cursor that moves forward.",
        spec: "Registry API v0.1 nextCursor",
        on: &[Kind::RegistryWalk],
        examples: &[
            fires(
                &["/pages/1/metadata/nextCursor"],
                r#"{"pages": [{"metadata": {"nextCursor": "a:1"}}, {"servers": [], "metadata": {"nextCursor": "a:1"}}]}"#,
            ),
            silent(r#"{"pages": [{"metadata": {"nextCursor": "a:1"}}, {"servers": [], "metadata": {"nextCursor": "A:1"}}, {"servers": []}]}"#),
        ],
        check: Check::Document(cursor_repeated),
    }
}

fn cursor_repeated(walk: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let mut seen = HashSet::new();
    for (node, cursor) in pages(walk).filter_map(next_cursor) {
        if !seen.insert(cursor) {
            out.add(node, format!("{} was given before", quote(cursor)));
        }
    }
}

/// Pages and entries at which a walk is given up, unless its `policy` says otherwise.
const MOST_PAGES: usize = 20_000;
const MOST_ENTRIES: usize = 2_000_000;

crate::rule! {
    /// A walk comes to an end.
    ///
    /// Far beyond any registry that exists, a list is taken for endless.
    static WALK_TOO_LONG = {
        id: "registry/walk-too-long",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        basis: Basis::Policy,
        versions: API,
        evidence: Evidence::Live,
        place: "",
        fix: "Check the registry for an endless listing.",
        spec: "crawler policy",
        on: &[Kind::RegistryWalk],
        examples: &[
            fires(
                &["/pages/2"],
                r#"{"policy": {"max_pages": 2}, "pages": [{"metadata": {"nextCursor": "a:1"}}, {"servers": [], "metadata": {"nextCursor": "b:1"}}, {"servers": []}]}"#,
            ),
            silent(r#"{"policy": {"max_pages": 2}, "pages": [{"metadata": {"nextCursor": "a:1"}}, {"servers": []}]}"#),
        ],
        check: Check::Document(walk_too_long),
    }
}

fn walk_too_long(walk: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let policy = walk.given("policy").and_then(|policy| policy.given("max_pages")?.integer());
    let most = policy.and_then(|pages| usize::try_from(pages).ok()).unwrap_or(MOST_PAGES);
    let mut read = 0;
    for (number, page) in pages(walk).enumerate() {
        read += entries(page).count();
        if number >= most || read > MOST_ENTRIES {
            out.add(page, format!("no end after {number} pages"));
            return;
        }
    }
}

crate::rule! {
    /// A version is listed once.
    ///
    /// Name and version are the key; of two entries with one key the later counts.
    static ENTRY_DUPLICATE_IN_WALK = {
        id: "registry/entry-duplicate-in-walk",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        basis: Basis::Policy,
        versions: API,
        evidence: Evidence::Live,
        place: "/servers/*",
        fix: "List each version once.",
        spec: "Registry API v0.1: name and version are the key",
        on: &[Kind::RegistryWalk],
        examples: &[
            fires(&["/pages/0/servers/1"], r#"{"include_deleted": false, "pages": [{"servers": [{}, {}]}]}"#),
            silent(r#"{"pages": [{"servers": [{}, {"server": {"version": "2.2.0"}, "_meta": {"io.modelcontextprotocol.registry/official": {"isLatest": false}}}]}]}"#),
        ],
        check: Check::Document(entry_duplicate_in_walk),
    }
}

fn entry_duplicate_in_walk(walk: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let mut seen = HashSet::new();
    for listed in all_entries(walk).filter_map(Listed::of) {
        if !seen.insert((listed.name, listed.version)) {
            out.add(listed.entry, format!("{} {} was listed before", quote(listed.name), quote(listed.version)));
        }
    }
}

crate::rule! {
    /// Of every name exactly one version is flagged as latest.
    ///
    /// Readers take the flagged one; with none or two they take none or any. Seen in complete walks only, deleted entries
    /// included, since the latest may be one of those.
    static LATEST_FLAG_COUNT = {
        id: "registry/latest-flag-count",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        basis: Basis::Policy,
        versions: API,
        evidence: Evidence::Live,
        place: "",
        fix: "Report it to the registry.",
        spec: "Registry API isLatest; MCP Registry docs: versioning",
        on: &[Kind::RegistryWalk],
        examples: &[
            fires(&["/pages/0/servers/0"], r#"{"pages": [{"servers": [{}, {"server": {"version": "2.2.0"}}]}]}"#),
            fires(&["/pages/0/servers/0"], r#"{"pages": [{"servers": [{"_meta": {"io.modelcontextprotocol.registry/official": {"isLatest": false}}}]}]}"#),
            silent(r#"{"include_deleted": false, "pages": [{"servers": [{"_meta": {"io.modelcontextprotocol.registry/official": {"isLatest": false}}}]}]}"#),
            silent(r#"{"pages": [{"servers": [{"_meta": {"io.modelcontextprotocol.registry/official": {"isLatest": false, "status": "deleted"}}}]}]}"#),
        ],
        check: Check::Document(latest_flag_count),
    }
}

fn latest_flag_count(walk: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if !(says(walk, "complete") && says(walk, "include_deleted")) {
        return;
    }
    for versions in by_name(walk) {
        let stated: Vec<_> = versions.iter().filter(|listed| official(listed.entry).is_some()).collect();
        let flagged = stated.iter().filter(|listed| is_latest(listed.entry)).count();
        if let Some(first) = stated.first()
            && flagged != 1
            && !stated.iter().all(|listed| is_deleted(listed.entry))
        {
            out.add(first.entry, format!("{flagged} of {} versions of {} are latest", stated.len(), quote(first.name)));
        }
    }
}

crate::rule! {
    /// The version flagged as latest is the highest one.
    ///
    /// Told only where every version is a semantic one.
    static LATEST_FLAG_NOT_NEWEST = {
        id: "registry/latest-flag-not-newest",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        basis: Basis::Policy,
        versions: API,
        evidence: Evidence::Live,
        place: "",
        fix: "Report it to the registry, or publish semver versions.",
        spec: "MCP Registry docs: versioning, aggregator recommendations",
        on: &[Kind::RegistryWalk],
        examples: &[
            fires(
                &["/pages/0/servers/0"],
                r#"{"pages": [{"servers": [{}, {"server": {"version": "2.10.0"}, "_meta": {"io.modelcontextprotocol.registry/official": {"isLatest": false}}}]}]}"#,
            ),
            silent(r#"{"pages": [{"servers": [{}, {"server": {"version": "2.3.0-1"}, "_meta": {"io.modelcontextprotocol.registry/official": {"isLatest": false}}}]}]}"#),
            silent(r#"{"pages": [{"servers": [{}, {"server": {"version": "10"}, "_meta": {"io.modelcontextprotocol.registry/official": {"isLatest": false}}}]}]}"#),
        ],
        check: Check::Document(latest_flag_not_newest),
    }
}

fn latest_flag_not_newest(walk: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for versions in by_name(walk) {
        let left: Vec<_> = versions.into_iter().filter(|listed| !is_deleted(listed.entry)).collect();
        let mut flagged = left.iter().filter(|listed| is_latest(listed.entry));
        let (Some(latest), None) = (flagged.next(), flagged.next()) else { continue };
        let Some(numbers) = left.iter().map(Listed::semver).collect::<Option<Vec<_>>>() else { continue };
        if let Some(own) = latest.semver()
            && let Some(higher) = numbers.iter().filter(|version| version.cmp_precedence(&own).is_gt()).max()
        {
            out.add(
                latest.entry,
                format!("{} is latest, {} is higher", quote(latest.version), quote(&higher.to_string())),
            );
        }
    }
}

/// The remotes of what stands for each name, with their URLs.
fn current_urls<'d>(walk: Node<'d>) -> impl Iterator<Item = (Listed<'d>, Node<'d>, &'d str)> {
    current(walk).into_iter().flat_map(|listed| {
        let remotes = listed.server.given("remotes").into_iter().flat_map(Node::items);
        remotes.filter_map(move |remote| {
            let node = remote.given("url")?;
            Some((listed, node, node.text().filter(|text| !text.is_empty())?))
        })
    })
}

crate::rule! {
    /// An endpoint is listed by one owner.
    ///
    /// Of two owners that list the same URL, at most one runs it.
    static REMOTE_URL_SHARED = {
        id: "registry/remote-url-shared",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        basis: Basis::Policy,
        versions: API,
        evidence: Evidence::Live,
        place: "/remotes/*/url",
        fix: "Keep one listing per endpoint.",
        spec: "official registry publish checks: no duplicate remote URLs; moderation policy",
        on: &[Kind::RegistryWalk],
        examples: &[
            fires(
                &["/pages/0/servers/0/server/remotes/0/url", "/pages/0/servers/1/server/remotes/0/url"],
                r#"{"pages": [{"servers": [{}, {"server": {"name": "dev.lighthouse/tides-too"}}]}]}"#,
            ),
            silent(r#"{"pages": [{"servers": [{}, {"server": {"name": "io.github.tidehouse/currents"}}]}]}"#),
        ],
        check: Check::Document(remote_url_shared),
    }
}

fn remote_url_shared(walk: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let whole = current_urls(walk).filter(|(_, _, url)| variables(url).next().is_none());
    let listings: Vec<_> = whole.collect();
    let mut owners: HashMap<&str, Vec<&str>> = HashMap::new();
    for (listed, _, url) in &listings {
        let of_url = owners.entry(url).or_default();
        // Two owners are enough to know; more of them are not kept.
        if of_url.len() < 2 && !of_url.contains(&listed.namespace()) {
            of_url.push(listed.namespace());
        }
    }
    for (listed, node, url) in listings {
        let other = owners[url].iter().find(|owner| **owner != listed.namespace());
        if let Some(other) = other {
            out.add(node, format!("{} lists it too", quote(other)));
        }
    }
}

/// From how many namespaces on a host or an owner is worth a note.
const MANY: usize = 5;

/// The first place of every key that at least [`MANY`] namespaces share, and their number.
fn shared_by_many<'d>(rows: impl Iterator<Item = (String, &'d str, Node<'d>)>) -> Vec<(String, usize, Node<'d>)> {
    let mut order: Vec<(String, Node<'d>)> = Vec::new();
    let mut namespaces: HashMap<String, HashSet<&str>> = HashMap::new();
    for (key, namespace, node) in rows {
        let of_key = namespaces.entry(key).or_insert_with_key(|key| {
            order.push((key.clone(), node));
            HashSet::new()
        });
        of_key.insert(namespace);
    }
    let counted = order.into_iter().map(|(key, node)| {
        let count = namespaces.get(&key).map_or(0, HashSet::len);
        (key, count, node)
    });
    counted.filter(|(_, count, _)| *count >= MANY).collect()
}

crate::rule! {
    /// One host serves the remotes of many namespaces.
    ///
    /// Mostly a hosting platform: what happens to it happens to all of them.
    static REMOTE_HOST_MANY_NAMESPACES = {
        id: "registry/remote-host-many-namespaces",
        class: Class::Fact,
        basis: Basis::Policy,
        versions: API,
        evidence: Evidence::Live,
        place: "/remotes/*/url",
        fix: "None needed.",
        spec: "Plumbline policy",
        on: &[Kind::RegistryWalk],
        examples: &[
            fires(
                &["/pages/0/servers/0/server/remotes/0/url"],
                r#"{"pages": [{"servers": [
                    {"server": {"name": "io.github.house-north/tides", "remotes": [{"url": "https://mcp.tidehouse.dev/a"}]}},
                    {"server": {"name": "io.github.lighthouse/lamps", "remotes": [{"url": "https://mcp.tidehouse.dev/b"}]}},
                    {"server": {"name": "io.github.boatyard/berths", "remotes": [{"url": "https://mcp.tidehouse.dev/c"}]}},
                    {"server": {"name": "io.github.harbourmaster/fees", "remotes": [{"url": "https://mcp.tidehouse.dev/d"}]}},
                    {"server": {"name": "io.github.pilot/charts", "remotes": [{"url": "https://MCP.tidehouse.dev/e"}]}}
                ]}]}"#,
            ),
            silent("{}"),
        ],
        check: Check::Document(remote_host_many_namespaces),
    }
}

fn remote_host_many_namespaces(walk: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if !says(walk, "complete") {
        return;
    }
    let rows = current_urls(walk).filter_map(|(listed, node, url)| {
        let host = AbsoluteUrl::http(url)?.host;
        (!host.contains('{')).then(|| (host.to_ascii_lowercase(), listed.namespace(), node))
    });
    for (host, count, node) in shared_by_many(rows) {
        out.add(node, format!("{count} namespaces on {}", quote(&host)));
    }
}

crate::rule! {
    /// One account stands behind many namespaces.
    ///
    /// Their repositories all belong to it.
    static OWNER_MANY_NAMESPACES = {
        id: "registry/owner-many-namespaces",
        class: Class::Fact,
        basis: Basis::Policy,
        versions: API,
        evidence: Evidence::Live,
        place: "/name",
        fix: "None needed.",
        spec: "Plumbline policy",
        on: &[Kind::RegistryWalk],
        examples: &[
            fires(
                &["/pages/0/servers/0/server/name"],
                r#"{"pages": [{"servers": [
                    {"server": {"name": "dev.house-north/tides", "remotes": [{"url": "https://mcp.house-north.dev/a"}]}},
                    {"server": {"name": "dev.lighthouse/lamps", "remotes": [{"url": "https://mcp.lighthouse.dev/b"}]}},
                    {"server": {"name": "dev.boatyard/berths", "remotes": [{"url": "https://mcp.boatyard.dev/c"}]}},
                    {"server": {"name": "dev.harbourmaster/fees", "remotes": [{"url": "https://mcp.harbourmaster.dev/d"}]}},
                    {"server": {"name": "dev.pilot/charts", "remotes": [{"url": "https://mcp.pilot.dev/e"}]}}
                ]}]}"#,
            ),
            silent("{}"),
        ],
        check: Check::Document(owner_many_namespaces),
    }
}

fn owner_many_namespaces(walk: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if !says(walk, "complete") {
        return;
    }
    let rows = current(walk)
        .into_iter()
        .filter_map(|listed| Some((account(listed.server)?, listed.namespace(), listed.server.given("name")?)));
    for (account, count, node) in shared_by_many(rows) {
        out.add(node, format!("{count} namespaces of {}", quote(&account)));
    }
}

/// The account that a document's repository belongs to, with its host: `github.com/tidehouse`.
pub(super) fn account(server: Node<'_>) -> Option<String> {
    let url = filled(server.given("repository")?, "url")?;
    let host = AbsoluteUrl::http(url)?.host.to_ascii_lowercase();
    let owner = owner_of(url)?.to_ascii_lowercase();
    Some(format!("{}/{owner}", host.strip_prefix("www.").unwrap_or(&host)))
}
