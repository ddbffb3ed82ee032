//! What changed between accepted documents of one place, whatever their kind.

use crate::document::{Node, Type};
use crate::judge::{Context, Occurrences};
use crate::kind::Kind;
use crate::report::NotEvaluated;
use crate::rule::{Axis, Basis, Check, Evidence, Impact, Mode, Rule, Severity, fires, silent};
use crate::text::{AbsoluteUrl, Instant, quote, same_site};

pub(super) const RULES: &[&Rule] = &[
    &ENDPOINT_DRIFT,
    &IDENTITY_DRIFT,
    &VERSION_WENT_BACK,
    &CHANGED_WITHOUT_VERSION,
    &ADDED_WHILE_AUTH_LOOSENED,
    &DOCUMENT_VANISHED,
];

/// The documents that were accepted, oldest first.
pub(crate) fn crawls(history: Node<'_>) -> Vec<Node<'_>> {
    history.given("crawls").into_iter().flat_map(Node::items).filter(|look| look.kind() == Type::Object).collect()
}

/// The address that clients call first: of a card the first https interface, else `url`; of a server.json the first
/// remote; of an OpenAPI document the first https server.
fn primary_endpoint(document: Node<'_>) -> Option<Node<'_>> {
    let is_https = |url: &&Node<'_>| url.text().and_then(AbsoluteUrl::parse).is_some_and(|url| url.is("https"));
    let listed = |key: &str| urls_in(document, key);
    let interfaces = listed("supportedInterfaces");
    let servers = listed("servers");
    interfaces
        .iter()
        .find(is_https)
        .copied()
        .or_else(|| document.given("url"))
        .or_else(|| interfaces.first().copied())
        .or_else(|| listed("remotes").first().copied())
        .or_else(|| servers.iter().find(is_https).copied())
}

fn every_endpoint(document: Node<'_>) -> Vec<Node<'_>> {
    let lists = ["supportedInterfaces", "additionalInterfaces", "remotes", "servers"];
    lists.iter().flat_map(|key| urls_in(document, key)).chain(document.given("url")).collect()
}

fn urls_in<'d>(document: Node<'d>, key: &str) -> Vec<Node<'d>> {
    document.given(key).into_iter().flat_map(Node::items).filter_map(|item| item.given("url")).collect()
}

/// Whether two addresses are one: letter case of scheme and host, default port and one slash at the end do not matter.
fn same_address(one: &str, other: &str) -> bool {
    let normal = |text: &str| {
        let text = url::Url::parse(text).map_or_else(|_| text.to_owned(), String::from);
        text.strip_suffix('/').map_or(text.clone(), str::to_owned)
    };
    normal(one) == normal(other)
}

crate::rule! {
    /// The endpoint stays where it was.
    ///
    /// Calls, with whatever they carry, go to another place from now on. Where the operator named the endpoint, or the domain
    /// itself changed, it is an error.
    static ENDPOINT_DRIFT = {
        id: "common/endpoint-drift",
        severity: Severity::Warning,
        impact: Some(Impact::Degrades),
        security: true,
        rank: 19,
        basis: Basis::Policy,
        on: &[Kind::History],
        mode: Mode::History,
        evidence: Evidence::History,
        place: "/url",
        fix: "Confirm the change with the operator before calling the new endpoint.",
        spec: "GAIP request policy",
        seeds: &["gaip:ENDPOINT_DRIFT"],
        examples: &[
            fires(&["/crawls/1/supportedInterfaces/0/url"], r#"{"crawls": [{}, {"supportedInterfaces": [{"url": "https://tides.example.net/a2a", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}]}]}"#),
            fires(&["/crawls/1/supportedInterfaces/0/url"], r#"{"crawls": [{}, {}], "pin": {"endpoint": "https://tides.example.com/v2"}}"#),
            silent(r#"{"crawls": [{}, {"supportedInterfaces": [{"url": "https://Tides.example.com:443/a2a/", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}]}]}"#),
        ],
        check: Check::Document(endpoint_drift),
    }
}

fn endpoint_drift(history: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let looks = crawls(history);
    let Some(now) = looks.last() else { return out.not_applicable() };
    if is_another_party(history, &looks) {
        return out.not_evaluated(NotEvaluated::Parent);
    }
    let Some(endpoint) = primary_endpoint(*now) else { return };
    let Some(address) = endpoint.text() else { return };
    let pinned = history.given("pin").and_then(|pin| pin.given("endpoint")?.text());
    let before = looks.len().checked_sub(2).and_then(|at| looks.get(at)).and_then(|card| primary_endpoint(*card));
    let Some(expected) = pinned.or_else(|| before.and_then(Node::text)) else { return };
    let is_declared =
        || every_endpoint(*now).iter().any(|url| url.text().is_some_and(|url| same_address(url, expected)));
    if same_address(address, expected) || (pinned.is_none() && is_declared()) {
        return;
    }
    let host = |url| AbsoluteUrl::parse(url).map(|url| url.host).unwrap_or_default();
    let moved = !same_site(host(address), host(expected));
    let added = out.add(endpoint, format!("it was {}", quote(expected)));
    if pinned.is_some() || moved {
        added.severity(Severity::Error);
    }
}

crate::rule! {
    /// One address speaks for one agent.
    ///
    /// The name is another than the operator expects, or than the last two looks agreed on, and so is the provider. Perhaps the
    /// domain has a new owner, or the wrong document is served.
    static IDENTITY_DRIFT = {
        id: "common/identity-drift",
        severity: Severity::Error,
        impact: Some(Impact::Degrades),
        security: true,
        basis: Basis::Policy,
        on: &[Kind::History],
        mode: Mode::History,
        evidence: Evidence::History,
        place: "/name",
        fix: "Check that the right document is served, or update the watch list.",
        spec: "GAIP request policy",
        seeds: &["gaip:IDENTITY_BINDING_MISMATCH"],
        examples: &[
            fires(&["/crawls/2/name"], r#"{"crawls": [{}, {}, {"name": "Coin Helper", "provider": {"organization": "Others"}}]}"#),
            fires(&["/crawls/1/name"], r#"{"crawls": [{}, {}], "pin": {"identity": "Wind Tables"}}"#),
            silent(r#"{"crawls": [{}, {}, {"name": "Tide Tables 2"}]}"#),
            silent(r#"{"crawls": [{}, {}], "pin": {"identity": " tide  tables "}}"#),
        ],
        check: Check::Document(identity_drift),
    }
}

fn identity_drift(history: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let looks = crawls(history);
    let has_pin = pinned_identity(history).is_some();
    if looks.is_empty() || (looks.len() < 3 && !has_pin) {
        return out.not_applicable();
    }
    if let Some((name, expected)) = other_name(history, &looks) {
        out.add(name, format!("it was {}", quote(expected)));
    }
}

/// Whether another party answers now than the one that was expected.
pub(crate) fn is_another_party(history: Node<'_>, looks: &[Node<'_>]) -> bool {
    other_name(history, looks).is_some()
}

fn pinned_identity(history: Node<'_>) -> Option<&str> {
    history.given("pin")?.given("identity")?.text()
}

/// The name of the last document and the one expected, where they differ.
fn other_name<'d>(history: Node<'d>, looks: &[Node<'d>]) -> Option<(Node<'d>, &'d str)> {
    let now = *looks.last()?;
    let name = name_of(now)?;
    if let Some(pinned) = pinned_identity(history) {
        return (plain(name.text()?) != plain(pinned)).then_some((name, pinned));
    }
    let [.., before_last, last, _] = looks else { return None };
    let expected = name_of(*last)?.text()?;
    let is_common = plain(name_of(*before_last)?.text()?) == plain(expected);
    let same_provider = match (organization(*last), organization(now)) {
        (Some(one), Some(other)) => plain(one) == plain(other),
        _ => false,
    };
    (is_common && plain(name.text()?) != plain(expected) && !same_provider).then_some((name, expected))
}

fn name_of(document: Node<'_>) -> Option<Node<'_>> {
    let titled = || document.given("info")?.given("title");
    document.given("name").or_else(titled).or_else(|| document.given("id")).filter(|name| name.kind() == Type::String)
}

fn organization(document: Node<'_>) -> Option<&str> {
    document.given("provider")?.given("organization")?.text()
}

/// A name without regard to letter case, surrounding space and runs of white space.
fn plain(name: &str) -> String {
    name.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()
}

crate::rule! {
    /// The version of a document does not go back.
    ///
    /// An old copy is served again: from a cache, after a rollback, or by a second server that was forgotten.
    static VERSION_WENT_BACK = {
        id: "common/version-went-back",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        basis: Basis::Policy,
        on: &[Kind::History],
        mode: Mode::History,
        evidence: Evidence::History,
        place: "/version",
        fix: "Check for a stale cache or a rollback.",
        spec: "crawler policy",
        examples: &[
            fires(&["/crawls/1/version"], r#"{"crawls": [{"version": "2.10.0"}, {"version": "2.9.0"}]}"#),
            silent(r#"{"crawls": [{"version": "2.9.0"}, {"version": "2.10.0"}]}"#),
            silent(r#"{"crawls": [{"version": "2026-01"}, {"version": "2025-12"}]}"#),
        ],
        check: Check::Document(version_went_back),
    }
}

fn version_went_back(history: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let looks = crawls(history);
    let [.., before, now] = looks.as_slice() else { return out.not_applicable() };
    if is_another_party(history, &looks) {
        return out.not_evaluated(NotEvaluated::Parent);
    }
    let version = |document: Node<'_>| semver::Version::parse(version_of(document)?.text()?).ok();
    let (Some(was), Some(is)) = (version(*before), version(*now)) else { return };
    let Some(node) = version_of(*now).filter(|_| is.cmp_precedence(&was).is_lt()) else { return };
    let added = out.add(node, format!("it was {was}"));
    if is_rollback(history, &looks, &is) {
        added.severity(Severity::Info);
    }
}

/// Whether the version is the one before last again, within a day of it; the times of the looks stand in `at`.
fn is_rollback(history: Node<'_>, looks: &[Node<'_>], is: &semver::Version) -> bool {
    let Some(before_last) = looks.len().checked_sub(3) else { return false };
    let earlier = version_of(looks[before_last]).and_then(|node| semver::Version::parse(node.text()?).ok());
    let times: Vec<_> = history.given("at").into_iter().flat_map(Node::items).collect();
    let at = |number: usize| times.get(number).and_then(|time| Instant::parse(time.text()?));
    match (at(before_last + 1), at(looks.len() - 1)) {
        (Some(left), Some(back)) => earlier.as_ref() == Some(is) && back.seconds - left.seconds <= 24 * 3600,
        _ => false,
    }
}

fn version_of(document: Node<'_>) -> Option<Node<'_>> {
    document.given("version").or_else(|| document.given("info")?.given("version"))
}

crate::rule! {
    /// A document that changes says so by its version.
    ///
    /// Readers that compare versions miss the change.
    static CHANGED_WITHOUT_VERSION = {
        id: "common/changed-without-version",
        basis: Basis::Policy,
        on: &[Kind::History],
        mode: Mode::History,
        evidence: Evidence::History,
        place: "/version",
        fix: "Raise version when the document changes.",
        spec: "crawler policy; A2A 1.0 4.4.1 version",
        examples: &[
            fires(&["/crawls/1/version"], r#"{"crawls": [{}, {"description": "Gives the times of high water."}]}"#),
            silent(r#"{"crawls": [{}, {"version": "2.2.0", "description": "Gives the times of high water."}]}"#),
            silent(r#"{"crawls": [{}, {"capabilities": {"pushNotifications": false}, "lastUpdated": "2026-05-02"}]}"#),
        ],
        check: Check::Document(changed_without_version),
    }
}

fn changed_without_version(history: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    let looks = crawls(history);
    let [.., before, now] = looks.as_slice() else { return out.not_applicable() };
    if is_another_party(history, &looks) {
        return out.not_evaluated(NotEvaluated::Parent);
    }
    let (Some(was), Some(is)) = (version_of(*before), version_of(*now)) else { return };
    let is_card = |document: Node<'_>| crate::a2a::looks_like_a_card(document);
    let is_named = || is_card(*now) && crate::a2a::change_is_named(*before, *now, context);
    if was.text().is_some() && was.text() == is.text() && !same_content(*before, *now) && !is_named() {
        out.add(is, "the document changed and its version did not");
    }
}

/// Members that change by themselves.
const VOLATILE: &[&str] = &["lastUpdated", "last_updated", "updatedAt", "generatedAt", "timestamp"];

/// Whether two documents say the same, without regard to order, signatures, members that change by themselves and
/// members that hold the default of their type.
pub(crate) fn same_content(one: Node<'_>, other: Node<'_>) -> bool {
    let content = |document: Node<'_>| {
        let mut value = document.to_value();
        if let Some(members) = value.as_object_mut() {
            members.retain(|name, _| name != "signatures" && !VOLATILE.contains(&name.as_str()));
            let is_default = members.get("preferredTransport").is_some_and(|transport| transport == "JSONRPC");
            if is_default {
                members.remove("preferredTransport");
            }
        }
        without_defaults(&mut value);
        value
    };
    content(one) == content(other)
}

/// Recursion is bounded: what has a tree nests at most [`crate::document::MAX_READ_DEPTH`] levels.
fn without_defaults(value: &mut serde_json::Value) {
    use serde_json::Value;
    let is_default = |value: &Value| match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::Bool(true) | Value::Number(_) => false,
    };
    match value {
        Value::Array(items) => items.iter_mut().for_each(without_defaults),
        Value::Object(members) => {
            members.values_mut().for_each(without_defaults);
            members.retain(|_, member| !is_default(member));
        }
        _ => {}
    }
}

crate::rule! {
    /// Nothing is added while less is asked for.
    ///
    /// A new skill that everybody may call, in the same change that lets everybody call, is what somebody does who took over.
    static ADDED_WHILE_AUTH_LOOSENED = {
        id: "common/added-while-auth-loosened",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        security: true,
        basis: Basis::Policy,
        on: &[Kind::History],
        mode: Mode::History,
        evidence: Evidence::History,
        place: "/",
        fix: "Confirm the change with the operator.",
        spec: "Plumbline policy",
        examples: &[
            fires(&["/crawls/1"], r#"{"crawls": [{}, {"securityRequirements": null, "skills": [{}, {"id": "pay"}]}]}"#).beside(&["a2a/security-weakened"]),
            silent(r#"{"crawls": [{}, {"skills": [{}, {"id": "pay"}]}]}"#),
        ],
        check: Check::Document(added_while_auth_loosened),
    }
}

fn added_while_auth_loosened(history: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    let looks = crawls(history);
    let [.., before, now] = looks.as_slice() else { return out.not_applicable() };
    if !crate::a2a::looks_like_a_card(*before) || !crate::a2a::looks_like_a_card(*now) {
        return out.not_applicable();
    }
    if let (true, true) = crate::a2a::loosened_and_added(*before, *now, context) {
        out.add(*now, "a skill was added, and less is asked for before it can be called");
    }
}

crate::rule! {
    /// A document that was there stays.
    ///
    /// Its address answers that there is nothing, or its host has no address any more.
    static DOCUMENT_VANISHED = {
        id: "common/document-vanished",
        axis: Axis::Reach,
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        basis: Basis::Policy,
        on: &[Kind::History],
        mode: Mode::History,
        evidence: Evidence::History,
        place: "/",
        fix: "Restore the document or redirect to its new place.",
        spec: "crawler policy",
        examples: &[
            fires(&["/observations/1"], r#"{"crawls": [{}], "observations": [{"status": 200, "ok": true}, {"status": 404}]}"#),
            fires(&["/observations/0"], r#"{"crawls": [{}], "observations": [{"error": "dns-nxdomain"}]}"#),
            silent(r#"{"crawls": [{}], "observations": [{"status": 404}, {"status": 503}]}"#),
        ],
        check: Check::Document(document_vanished),
    }
}

fn document_vanished(history: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let observations: Vec<_> = history.given("observations").into_iter().flat_map(Node::items).collect();
    let Some(last) = observations.last() else { return out.not_applicable() };
    let was_there = !crawls(history).is_empty()
        || observations.iter().any(|one| one.given("ok").and_then(Node::flag) == Some(true));
    let status = last.given("status").and_then(Node::integer);
    let is_gone = matches!(status, Some(404 | 410));
    let has_no_host = last.given("error").and_then(Node::text) == Some("dns-nxdomain");
    if was_there && (is_gone || has_no_host) {
        let says =
            status.map_or_else(|| "the host has no address".to_owned(), |status| format!("the answer is {status}"));
        out.add(*last, says);
    }
}
