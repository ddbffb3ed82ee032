//! What changed between two looks at one registry, or differs between two registries.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::entry::stamp;
use super::fields::filled;
use super::revision::API;
use crate::canonical::canonical;
use crate::document::{Node, Type};
use crate::judge::{Context, Occurrences};
use crate::kind::Kind;
use crate::rule::{Basis, Check, Evidence, Impact, Mode, Rule, Severity, fires, silent};
use crate::text::quote;

pub(super) const RULES: &[&Rule] =
    &[&UPDATED_AT_REGRESSED, &VERSION_CONTENT_CHANGED, &PUBLISHED_AT_CHANGED, &ENTRY_VANISHED, &REGISTRIES_DISAGREE];

/// Two looks at one name and version, neighbours in time or in place.
fn pairs<'d>(history: Node<'d>, key: &str) -> impl Iterator<Item = (Node<'d>, Node<'d>)> {
    let looks: Vec<Node<'d>> = history.given(key).into_iter().flat_map(Node::items).collect();
    let pairs: Vec<_> = looks.windows(2).map(|two| (two[0], two[1])).filter(|(a, b)| is_same_key(*a, *b)).collect();
    pairs.into_iter()
}

fn is_same_key(one: Node<'_>, other: Node<'_>) -> bool {
    let key = |entry: Node<'_>| {
        let server = entry.given("server")?;
        Some((filled(server, "name")?.to_owned(), filled(server, "version")?.to_owned()))
    };
    key(one).is_some() && key(one) == key(other)
}

crate::rule! {
    /// `updatedAt` does not go back.
    ///
    /// Readers that ask for what changed since their last visit miss what is dated before it.
    static UPDATED_AT_REGRESSED = {
        id: "registry/updated-at-regressed",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        basis: Basis::Policy,
        versions: API,
        mode: Mode::History,
        evidence: Evidence::History,
        place: "/_meta/io.modelcontextprotocol.registry~1official/updatedAt",
        fix: "Report it: incremental readers will miss changes.",
        spec: "crawler policy",
        on: &[Kind::RegistryHistory],
        examples: &[
            fires(
                &["/crawls/1/_meta/io.modelcontextprotocol.registry~1official/updatedAt"],
                r#"{"crawls": [{}, {"_meta": {"io.modelcontextprotocol.registry/official": {"updatedAt": "2026-04-30T10:00:00Z"}}}]}"#,
            ),
            silent(r#"{"crawls": [{}, {"_meta": {"io.modelcontextprotocol.registry/official": {"updatedAt": "2026-05-02T12:00:00+02:00"}}}]}"#),
        ],
        check: Check::Document(updated_at_regressed),
    }
}

fn updated_at_regressed(history: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for (before, after) in pairs(history, "crawls") {
        if let Some((old, earlier)) = stamp(before, "updatedAt")
            && let Some((node, later)) = stamp(after, "updatedAt")
            && later < earlier
        {
            out.add(node, format!("it was {} before", quote(old.text().unwrap_or_default())));
        }
    }
}

crate::rule! {
    /// A published version does not change.
    ///
    /// Whoever checked it once relies on what it said; an edit in place passes unseen.
    static VERSION_CONTENT_CHANGED = {
        id: "registry/version-content-changed",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        security: true,
        basis: Basis::Policy,
        versions: API,
        mode: Mode::History,
        evidence: Evidence::History,
        place: "/server",
        fix: "Publish a new version in place of editing one.",
        spec: "MCP Registry docs: versioning, registry-aggregators",
        on: &[Kind::RegistryHistory],
        examples: &[
            fires(&["/crawls/1/server/description"], r#"{"crawls": [{}, {"server": {"description": "Something else"}}]}"#),
            fires(&["/crawls/1/server/remotes/0/headers"], r#"{"crawls": [{}, {"server": {"remotes": [{"headers": [{"name": "X-Key"}]}]}}]}"#),
            silent(r#"{"crawls": [{}, {"_meta": {"io.modelcontextprotocol.registry/official": {"status": "deprecated", "statusMessage": "Use tides2"}}}]}"#),
            silent(r#"{"crawls": [{"server": {"$schema": null, "repository": null}}, {"server": {"repository": {"url": null, "source": null}}}]}"#),
        ],
        check: Check::Document(version_content_changed),
    }
}

fn version_content_changed(history: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for (before, after) in pairs(history, "crawls") {
        let schema_added = |key: &str, old: Option<Node<'_>>| key == "$schema" && old.is_none();
        report_differences(before, after, "was changed", schema_added, out);
    }
}

crate::rule! {
    /// `publishedAt` does not change.
    ///
    /// The version was taken away and published anew, or the registry lost its data.
    static PUBLISHED_AT_CHANGED = {
        id: "registry/published-at-changed",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        basis: Basis::Policy,
        versions: API,
        mode: Mode::History,
        evidence: Evidence::History,
        place: "/_meta/io.modelcontextprotocol.registry~1official/publishedAt",
        fix: "Report it: the version was deleted and published again, or data was reset.",
        spec: "crawler policy",
        on: &[Kind::RegistryHistory],
        examples: &[
            fires(
                &["/crawls/1/_meta/io.modelcontextprotocol.registry~1official/publishedAt"],
                r#"{"crawls": [{}, {"_meta": {"io.modelcontextprotocol.registry/official": {"publishedAt": "2026-05-03T10:00:00Z", "updatedAt": "2026-05-03T10:00:00Z"}}}]}"#,
            ),
            silent(r#"{"crawls": [{}, {"_meta": {"io.modelcontextprotocol.registry/official": {"updatedAt": "2026-06-03T10:00:00Z"}}}]}"#),
        ],
        check: Check::Document(published_at_changed),
    }
}

fn published_at_changed(history: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for (before, after) in pairs(history, "crawls") {
        if let Some((old, earlier)) = stamp(before, "publishedAt")
            && let Some((node, later)) = stamp(after, "publishedAt")
            && later != earlier
        {
            out.add(node, format!("it was {} before", quote(old.text().unwrap_or_default())));
        }
    }
}

crate::rule! {
    /// What was listed stays listed.
    ///
    /// Registries keep deleted entries and say so; one that is gone without a trace cannot be told from one that never was.
    /// When more than a fifth is gone at once, the walk is doubted and not the registry.
    static ENTRY_VANISHED = {
        id: "registry/entry-vanished",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        basis: Basis::Policy,
        versions: API,
        mode: Mode::History,
        evidence: Evidence::History,
        place: "",
        fix: "Treat the entry as withdrawn; registries are meant to keep deleted entries.",
        spec: "MCP Registry docs: moderation-policy",
        on: &[Kind::RegistryHistory],
        examples: &[
            fires(
                &["/walks/1"],
                r#"{"walks": [{"complete": true, "keys": [["a.b/c1", "1"], ["a.b/c2", "1"], ["a.b/c3", "1"], ["a.b/c4", "1"], ["a.b/c5", "1"]]},
                    {"complete": true, "keys": [["a.b/c1", "1"], ["a.b/c2", "1"], ["a.b/c3", "1"], ["a.b/c4", "1"]]}]}"#,
            ),
            silent(r#"{"walks": [{"complete": true, "keys": [["a.b/c1", "1"], ["a.b/c2", "1"]]}, {"complete": false, "keys": []}]}"#),
            silent(r#"{"walks": [{"complete": true, "keys": [["a.b/c1", "1"], ["a.b/c2", "1"]]}, {"complete": true, "keys": [["a.b/c1", "1"]]}]}"#),
        ],
        check: Check::Document(entry_vanished),
    }
}

fn entry_vanished(history: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let walks: Vec<_> = history.given("walks").into_iter().flat_map(Node::items).collect();
    let Some((last, earlier)) = walks.split_last() else { return };
    if !is_complete(*last) || last.given("include_deleted").and_then(Node::flag) == Some(false) {
        return;
    }
    let known: BTreeSet<_> = earlier.iter().filter(|walk| is_complete(**walk)).flat_map(|walk| keys(*walk)).collect();
    let now: BTreeSet<_> = keys(*last).collect();
    let gone: Vec<_> = known.difference(&now).collect();
    if let Some((name, version)) = gone.first()
        && gone.len() * 5 <= known.len()
    {
        let more = if gone.len() > 1 { format!(" and {} more", gone.len() - 1) } else { String::new() };
        out.add(*last, format!("{} {}{more} of {} entries", quote(name), quote(version), known.len()));
    }
}

fn is_complete(walk: Node<'_>) -> bool {
    walk.given("complete").and_then(Node::flag) == Some(true)
}

/// The names and versions that a walk saw.
fn keys(walk: Node<'_>) -> impl Iterator<Item = (&str, &str)> {
    let keys = walk.given("keys").into_iter().flat_map(Node::items);
    keys.filter_map(|key| {
        let mut parts = key.items().map(Node::text);
        Some((parts.next()??, parts.next()??))
    })
}

crate::rule! {
    /// Two registries list a version differently.
    ///
    /// One of them is behind, or was changed.
    static REGISTRIES_DISAGREE = {
        id: "registry/registries-disagree",
        basis: Basis::Policy,
        versions: API,
        place: "/server",
        fix: "Check which registry is stale.",
        spec: "crawler policy",
        on: &[Kind::RegistryHistory],
        examples: &[
            fires(
                &["/registries/1/server/remotes/0/url"],
                r#"{"registries": [{}, {"server": {"remotes": [{"url": "https://old.tidehouse.dev/mcp"}]}}]}"#,
            ),
            silent(r#"{"registries": [{}, {"server": {"$schema": null, "_meta": {"dev.tidehouse/build": 1}}, "_meta": null}]}"#),
        ],
        check: Check::Document(registries_disagree),
    }
}

fn registries_disagree(history: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for (one, other) in pairs(history, "registries") {
        let apart = |key: &str, _: Option<Node<'_>>| matches!(key, "$schema" | "_meta");
        report_differences(one, other, "differs", apart, out);
    }
}

/// Reports, for every member of the document that differs, the deepest place that holds the whole difference.
fn report_differences(
    before: Node<'_>,
    after: Node<'_>,
    word: &str,
    is_apart: impl Fn(&str, Option<Node<'_>>) -> bool,
    out: &mut Occurrences,
) {
    let (Some(before), Some(after)) = (before.given("server"), after.given("server")) else { return };
    for (key, new) in after.members().filter(|(key, new)| !is_nothing(key, *new)) {
        let old = before.given(key).filter(|old| !is_nothing(key, *old));
        if is_apart(key, old) {
            continue;
        }
        match old.map_or(Some(Difference::At(new)), |old| difference(old, new)) {
            Some(Difference::At(node)) => {
                out.add(node, format!("{} {word}", quote(node.key().unwrap_or(key))));
            }
            Some(Difference::Lacks(object, member)) => {
                out.add_missing(object, member, format!("{} is gone", quote(member)));
            }
            None => {}
        }
    }
    for (key, old) in before.members().filter(|(key, old)| !is_nothing(key, *old)) {
        let gone = after.given(key).is_none_or(|new| is_nothing(key, new));
        if gone && !is_apart(key, Some(old)) {
            out.add_missing(after, key, format!("{} is gone", quote(key)));
        }
    }
}

/// How an encoder writes that there is nothing: `null`, or a repository without content.
fn is_nothing(key: &str, node: Node<'_>) -> bool {
    let blank = |(_, member): (&str, Node<'_>)| member.is_null() || member.text() == Some("");
    node.is_null() || (key == "repository" && node.kind() == Type::Object && node.members().all(blank))
}

/// Where two values differ.
enum Difference<'d> {
    /// Here, or below in more than one place.
    At(Node<'d>),
    /// This object has lost that member.
    Lacks(Node<'d>, &'d str),
}

/// The deepest place of the later value that holds all differences. Recursion is bounded by the depth of a document.
fn difference<'d>(old: Node<'d>, new: Node<'d>) -> Option<Difference<'d>> {
    if old.raw() == new.raw() {
        return None;
    }
    let mut found = match (old.kind(), new.kind()) {
        (Type::Object, Type::Object) => in_members(old, new),
        (Type::Array, Type::Array) if old.len() == new.len() => {
            old.items().zip(new.items()).filter_map(|(old, new)| difference(old, new)).collect()
        }
        _ if canonical(old) == canonical(new) => return None,
        _ => return Some(Difference::At(new)),
    };
    match found.len() {
        0 => None,
        1 => found.pop(),
        _ => Some(Difference::At(new)),
    }
}

fn in_members<'d>(old: Node<'d>, new: Node<'d>) -> Vec<Difference<'d>> {
    let earlier: HashMap<&str, Node<'d>> = old.members().collect();
    let mut later: HashSet<&str> = HashSet::new();
    let mut found = Vec::new();
    for (key, new) in new.members() {
        later.insert(key);
        found.extend(earlier.get(key).map_or(Some(Difference::At(new)), |old| difference(*old, new)));
    }
    let gone = old.members().filter(|(key, _)| !later.contains(key));
    found.extend(gone.map(|(key, _)| Difference::Lacks(new, key)));
    found
}
