//! A listing against what answers: the remotes it names, the repository, the packages.
//!
//! The document is an entry and what was seen live, oldest first. Of two looks at one thing the later one counts, and one
//! that was refused, throttled or failed says nothing.

use std::collections::BTreeSet;

use serde_json::Value;
use url::Url;

use super::entry::{is_deleted, is_latest};
use super::fields::filled;
use super::metadata::OFFICIAL;
use super::revision::API;
use crate::catalogue;
use crate::conversation::NEWEST_LEGACY;
use crate::document::{Document, Node, Type, escape};
use crate::judge::{Context, Occurrences, ask};
use crate::kind::Kind;
use crate::report::{NotEvaluated, RuleResult};
use crate::rule::{Basis, Check, Class, Evidence, Impact, Rule, Severity, fires, silent};
use crate::sse;
use crate::text::{quote, same_site};

pub(super) const RULES: &[&Rule] = &[
    &REMOTE_TRANSPORT_MISMATCH,
    &REMOTE_REDIRECTED,
    &REMOTE_AUTH_NOT_ENFORCED,
    &LIVE_NAME_DIFFERS,
    &LIVE_VERSION_DIFFERS,
    &LISTING_OUT_OF_STEP,
    &DELETED_BUT_LIVE,
    &LIVE_BUT_UNLISTED_REMOTE,
    &REPOSITORY_UNREACHABLE,
    &PACKAGE_OWNERSHIP_MISMATCH,
    &PACKAGE_NOT_FOUND,
];

const ON: &[Kind] = &[Kind::RegistryDrift];

/// An entry and what was seen live.
struct Drift<'d> {
    entry: Node<'d>,
    server: Node<'d>,
    observations: Vec<Observation<'d>>,
}

/// One look at something that an entry names.
#[derive(Clone, Copy)]
struct Observation<'d>(Node<'d>);

impl<'d> Drift<'d> {
    /// `None` where there is no entry to speak of.
    fn of(document: Node<'d>, out: &mut Occurrences) -> Option<Drift<'d>> {
        let entry = document.given("entry");
        let server = entry.and_then(|entry| entry.given("server"));
        let (Some(entry), Some(server)) = (entry, server) else {
            out.not_applicable();
            return None;
        };
        let observations = document.given("observations").into_iter().flat_map(Node::items).map(Observation).collect();
        Some(Drift { entry, server, observations })
    }

    fn remotes(&self) -> Vec<Node<'d>> {
        let remotes = self.server.given("remotes").into_iter().flat_map(Node::items);
        remotes.filter(|remote| remote.kind() == Type::Object).collect()
    }

    /// What was seen at a remote, oldest first.
    fn at(&self, remote: Node<'d>) -> Vec<Observation<'d>> {
        let is_first = self.remotes().first().is_some_and(|first| first.pointer() == remote.pointer());
        let url = remote.given("url").and_then(Node::text);
        let is_here = |seen: &&Observation<'d>| {
            seen.target().is_none()
                && !seen.is_found_elsewhere()
                && seen.url().map_or(is_first, |asked| url == Some(asked))
        };
        self.observations.iter().filter(is_here).copied().collect()
    }

    /// What the server says it is, by the last answer of a remote.
    fn live(&self) -> Option<Value> {
        let seen = self.remotes().into_iter().flat_map(|remote| self.at(remote));
        seen.filter_map(Observation::server_info).last()
    }

    /// The looks at what stands behind something that is no remote.
    fn of_target(&self, target: &str) -> impl Iterator<Item = Observation<'d>> {
        self.observations.iter().copied().filter(move |seen| seen.target() == Some(target))
    }

    /// The package that a look was about: the one whose identifier, type and version it names, as far as it names them. One
    /// server has the same name in several registries.
    fn package_of(&self, seen: Observation<'d>) -> Option<Node<'d>> {
        let is_named = |package: &Node<'d>, member: &str| {
            let named = seen.0.given(member).and_then(Node::text);
            named.is_none_or(|named| filled(*package, member) == Some(named))
        };
        let mut packages = self.server.given("packages").into_iter().flat_map(Node::items);
        packages
            .find(|package| ["identifier", "registryType", "version"].iter().all(|member| is_named(package, member)))
    }
}

impl<'d> Observation<'d> {
    /// `package` or `repository`; `None` for a remote.
    fn target(self) -> Option<&'d str> {
        self.0.given("target").and_then(Node::text)
    }

    /// An endpoint that the entry does not lead to.
    fn is_found_elsewhere(self) -> bool {
        self.0.given("found_in").is_some()
    }

    fn url(self) -> Option<&'d str> {
        self.0.given("request")?.given("url")?.text()
    }

    fn is_post(self) -> bool {
        let method = self.0.given("request").and_then(|request| request.given("method")?.text());
        method.is_none_or(|method| method == "POST")
    }

    fn status(self) -> Option<i64> {
        self.0.given("response")?.given("status")?.integer()
    }

    fn header(self, name: &str) -> Option<&'d str> {
        self.0.given("response")?.given("headers")?.given(name)?.text()
    }

    /// The first event of the stream that was opened.
    fn first_event(self) -> Option<sse::Event> {
        let is_stream = self.header("content-type").is_some_and(|label| label.starts_with("text/event-stream"));
        let raw = self.0.given("response")?.given("raw")?.text().filter(|_| is_stream)?;
        sse::read(raw.as_bytes()).events.into_iter().next()
    }

    /// The result of a handshake, when the answer has one.
    fn result(self) -> Option<Value> {
        self.status().filter(|status| (200..300).contains(status))?;
        let response = self.0.given("response")?;
        let result = |message: Value| message.get("result").filter(|result| result.is_object()).cloned();
        if let Some(body) = response.given("body") {
            return result(body.to_value());
        }
        let raw = response.given("raw")?.text()?;
        match serde_json::from_str(raw) {
            Ok(message) => result(message),
            Err(_) => {
                let events = sse::read(raw.as_bytes()).events;
                events.iter().filter_map(|event| result(serde_json::from_str(&event.data).ok()?)).next()
            }
        }
    }

    /// Whether a handshake is answered with a whole body that is no message of the protocol.
    fn is_no_mcp(self) -> bool {
        let says_nothing = matches!(self.status(), None | Some(300..=399 | 401..=405 | 407 | 410 | 429 | 500..));
        if says_nothing || self.header("www-authenticate").is_some() {
            return false;
        }
        let Some(response) = self.0.given("response") else { return false };
        if let Some(body) = response.given("body") {
            return body.get("jsonrpc").and_then(Node::text) != Some("2.0");
        }
        let Some(raw) = response.given("raw").and_then(Node::text).filter(|raw| !raw.trim().is_empty()) else {
            return false;
        };
        let is_stream = self.header("content-type").is_some_and(|label| label.starts_with("text/event-stream"));
        let message = Document::from_text(raw);
        !is_stream && message.root().and_then(|root| root.get("jsonrpc")).and_then(Node::text) != Some("2.0")
    }

    fn server_info(self) -> Option<Value> {
        let result = self.result()?;
        let modern = || result.pointer("/_meta/io.modelcontextprotocol~1serverInfo");
        result.get("serverInfo").or_else(modern).cloned()
    }

    /// Whether it wants credentials, in the way of MCP.
    fn asks_for_credentials(self) -> bool {
        self.status() == Some(401) && self.header("www-authenticate").is_some()
    }
}

/// Why a look at something other than an endpoint says nothing.
fn unsaid(seen: Observation<'_>) -> Option<NotEvaluated> {
    match seen.status() {
        None => Some(NotEvaluated::NoDocument),
        Some(401 | 403 | 407) => Some(NotEvaluated::Auth),
        Some(402) => Some(NotEvaluated::Payment),
        Some(429) => Some(NotEvaluated::RateLimited),
        Some(500..) => Some(NotEvaluated::NoDocument),
        Some(_) => None,
    }
}

crate::rule! {
    /// A remote speaks the transport that the listing says.
    ///
    /// A client that follows the listing opens the wrong kind of conversation and never gets an answer.
    static REMOTE_TRANSPORT_MISMATCH = {
        id: "registry/remote-transport-mismatch",
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        impact_evidence: "a client that follows the listing cannot connect; not run per SDK",
        rank: 37,
        basis: Basis::Policy,
        versions: API,
        evidence: Evidence::Live,
        on: ON,
        place: "/remotes/*/type",
        fix: "Correct the remote's type.",
        spec: "MCP Registry docs: remote-servers; MCP transports",
        examples: &[
            fires(&["/entry/server/remotes/0/type"], r#"{"entry": {"server": {"remotes": [{"type": "sse"}]}}, "observations": [{}, {"request": {"method": "GET"}, "response": {"status": 405, "body": null}}]}"#),
            fires(&["/entry/server/remotes/0/type"], r#"{"observations": [{"response": {"status": 404, "body": null}}, {"request": {"method": "GET"}, "response": {"headers": {"content-type": "text/event-stream"}, "body": null, "raw": "event: endpoint\ndata: /messages?s=1\n\n"}}]}"#),
            silent(r#"{"observations": [{"response": {"status": 404, "body": null}}, {"request": {"method": "GET"}, "response": {"headers": {"content-type": "text/event-stream"}, "body": null, "raw": "data: {}\n\n"}}]}"#),
        ],
        check: Check::Document(remote_transport_mismatch),
    }
}

fn remote_transport_mismatch(document: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let Some(drift) = Drift::of(document, out) else { return };
    for remote in drift.remotes() {
        let Some(declared) = remote.given("type") else { continue };
        let seen = drift.at(remote);
        let (posts, gets): (Vec<_>, Vec<_>) = seen.into_iter().partition(|seen| seen.is_post());
        let (Some(post), Some(get)) = (posts.last(), gets.last()) else { continue };
        let opens = get.first_event().is_some_and(|event| event.name.as_deref() == Some("endpoint"));
        let is_stream = get.header("content-type").is_some_and(|label| label.starts_with("text/event-stream"));
        let what = match declared.text() {
            Some("streamable-http") if matches!(post.status(), Some(404 | 405 | 415)) && opens => {
                "it speaks HTTP+SSE alone"
            }
            Some("sse")
                if (get.status() == Some(405) || (get.status() == Some(200) && !is_stream))
                    && post.result().is_some() =>
            {
                "it speaks Streamable HTTP alone"
            }
            _ => continue,
        };
        out.add(declared, what);
    }
}

crate::rule! {
    /// A remote is where the listing says.
    ///
    /// It sends on for good. Clients that do not follow are lost, and the listing vouches for another place.
    static REMOTE_REDIRECTED = {
        id: "registry/remote-redirected",
        severity: Severity::Warning,
        impact: Some(Impact::Degrades),
        rank: 37,
        basis: Basis::Policy,
        versions: API,
        evidence: Evidence::Live,
        on: ON,
        place: "/remotes/*/url",
        fix: "Publish the final URL.",
        spec: "crawler policy",
        examples: &[
            fires(&["/entry/server/remotes/0/url"], r#"{"observations": [{"response": {"status": 308, "headers": {"location": "/v2/mcp"}, "body": null}}]}"#),
            silent(r#"{"observations": [{"response": {"status": 308, "headers": {"location": "/mcp/"}, "body": null}}]}"#),
            silent(r#"{"observations": [{"response": {"status": 301, "headers": {"location": "/v2/mcp"}, "body": null}}]}"#),
        ],
        check: Check::Document(remote_redirected),
    }
}

fn remote_redirected(document: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let Some(drift) = Drift::of(document, out) else { return };
    for remote in drift.remotes() {
        let Some(url) = remote.given("url") else { continue };
        let Some(from) = url.text().and_then(|text| Url::parse(text).ok()) else { continue };
        let Some(last) = drift.at(remote).into_iter().next_back() else { continue };
        // Of a POST that is answered 301 `mcp/redirect-method-change` speaks, at the endpoint.
        let is_for_good = last.status() == Some(308) || (last.status() == Some(301) && !last.is_post());
        let Some(to) = last.header("location").filter(|_| is_for_good).and_then(|to| from.join(to).ok()) else {
            continue;
        };
        let place = |url: &Url| {
            let path = url.path().trim_end_matches('/').to_owned();
            (url.host_str().map(str::to_owned), url.port_or_known_default(), path)
        };
        let is_only_safer = from.scheme() == "http" && to.scheme() == "https" && from.host_str() == to.host_str();
        if place(&from) != place(&to) && !(is_only_safer && place(&from).2 == place(&to).2) {
            out.add(url, format!("it sends on to {}", quote(to.as_str())));
        }
    }
}

crate::rule! {
    /// The listing asks for a secret that the server does without.
    ///
    /// Users are made to hand over a key for nothing; or the server forgets to look at it.
    static REMOTE_AUTH_NOT_ENFORCED = {
        id: "registry/remote-auth-not-enforced",
        security: true,
        basis: Basis::Hint,
        versions: API,
        evidence: Evidence::Live,
        on: ON,
        place: "/remotes/*/headers",
        fix: "Drop the header or make the server require it.",
        spec: "hint",
        examples: &[
            fires(&["/entry/server/remotes/0/headers/0"], r#"{"entry": {"server": {"remotes": [{"headers": [{"name": "X-Key", "isRequired": true, "isSecret": true}]}]}}, "observations": [{"tools_list": true}]}"#),
            silent(r#"{"entry": {"server": {"remotes": [{"headers": [{"name": "X-Key", "isRequired": true, "isSecret": true}]}]}}, "observations": [{}]}"#),
            silent(r#"{"entry": {"server": {"remotes": [{"headers": [{"name": "X-Key", "isRequired": true, "isSecret": true}]}]}}, "observations": [{"tools_list": true, "request": {"headers": {"x-key": "***"}}}]}"#),
        ],
        check: Check::Document(remote_auth_not_enforced),
    }
}

fn remote_auth_not_enforced(document: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let Some(drift) = Drift::of(document, out) else { return };
    for remote in drift.remotes() {
        let Some(last) = drift.at(remote).into_iter().rfind(|seen| seen.result().is_some()) else {
            continue;
        };
        if last.0.given("tools_list").and_then(Node::flag) != Some(true) {
            continue;
        }
        let sent = last.0.given("request").and_then(|request| request.given("headers"));
        for header in remote.given("headers").into_iter().flat_map(Node::items) {
            let is_on = |member: &str| header.given(member).and_then(Node::flag) == Some(true);
            let name = filled(header, "name").unwrap_or_default().to_ascii_lowercase();
            let was_sent = sent.is_some_and(|sent| sent.get(&name).is_some());
            if is_on("isRequired") && is_on("isSecret") && !was_sent {
                out.add(header, "the tools are listed without it");
            }
        }
    }
}

crate::rule! {
    /// Another product answers than the one that is listed.
    ///
    /// The name that the server gives itself has nothing in common with the entry.
    static LIVE_NAME_DIFFERS = {
        id: "registry/live-name-differs",
        basis: Basis::Hint,
        versions: API,
        evidence: Evidence::Live,
        on: ON,
        place: "/name",
        fix: "Align serverInfo.name or title with the entry.",
        spec: "hint",
        seeds: &["gaip:IDENTITY_BINDING_MISMATCH"],
        examples: &[
            fires(&["/entry/server/name"], r#"{"observations": [{"response": {"body": {"result": {"serverInfo": {"name": "billing-gateway"}}}}}]}"#),
            silent(r#"{"observations": [{"response": {"body": {"result": {"serverInfo": {"name": "TIDES Server (MCP)"}}}}}]}"#),
        ],
        check: Check::Document(live_name_differs),
    }
}

/// A name without letter case, signs, and the words that say nothing.
fn bare(name: &str) -> String {
    let letters: String = name.to_lowercase().chars().filter(|c| c.is_alphanumeric()).collect();
    letters.replace("mcp", "").replace("server", "")
}

fn live_name_differs(document: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let Some(drift) = Drift::of(document, out) else { return };
    let Some(live) = drift.live() else { return out.not_evaluated(NotEvaluated::NoDocument) };
    let live_names: Vec<String> = ["name", "title"]
        .iter()
        .filter_map(|member| live.get(*member)?.as_str())
        .map(bare)
        .filter(|n| !n.is_empty())
        .collect();
    let Some(name) = drift.server.given("name") else { return };
    let full = name.text().unwrap_or_default();
    let packages = drift.server.given("packages").into_iter().flat_map(Node::items);
    let identifiers = packages.filter_map(|package| filled(package, "identifier"));
    let listed = [Some(full), full.rsplit('/').next(), filled(drift.server, "title")];
    let listed: BTreeSet<String> =
        listed.into_iter().flatten().chain(identifiers).map(bare).filter(|name| !name.is_empty()).collect();
    let is_kin = |live: &String| listed.iter().any(|name| name.contains(live.as_str()) || live.contains(name.as_str()));
    if !live_names.is_empty() && !listed.is_empty() && !live_names.iter().any(is_kin) {
        let said = live.get("name").and_then(Value::as_str).unwrap_or_default();
        out.add(name, format!("the server calls itself {}", quote(said)));
    }
}

/// A version without a leading `v` and without build metadata.
fn plain(version: &str) -> &str {
    let version = version.trim();
    let version = version.strip_prefix(['v', 'V']).unwrap_or(version);
    version.split_once('+').map_or(version, |(plain, _)| plain)
}

/// The version that the server says it has, and that of the entry, when the entry is the newest that is not withdrawn.
fn versions<'d>(drift: &Drift<'d>, out: &mut Occurrences) -> Option<(Node<'d>, Option<String>)> {
    if is_deleted(drift.entry) || !is_latest(drift.entry) {
        out.not_applicable();
        return None;
    }
    let live = drift.live().and_then(|live| Some(live.get("version")?.as_str()?.to_owned()));
    Some((drift.server.given("version").filter(|version| version.text().is_some())?, live))
}

crate::rule! {
    /// The server that runs has another version than the entry.
    ///
    /// Many report that of their SDK.
    static LIVE_VERSION_DIFFERS = {
        id: "registry/live-version-differs",
        class: Class::Fact,
        basis: Basis::Policy,
        versions: API,
        evidence: Evidence::Live,
        on: ON,
        place: "/version",
        fix: "Publish the running version.",
        spec: "MCP Registry docs: versioning: align with the remote",
        examples: &[
            fires(&["/entry/server/version"], r#"{"observations": [{"response": {"body": {"result": {"serverInfo": {"version": "3.0.0"}}}}}]}"#),
            silent(r#"{"observations": [{"response": {"body": {"result": {"serverInfo": {"version": "v2.3.0+deploy.9"}}}}}]}"#),
        ],
        check: Check::Document(live_version_differs),
    }
}

fn live_version_differs(document: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let Some(drift) = Drift::of(document, out) else { return };
    let Some((listed, live)) = versions(&drift, out) else { return };
    let Some(live) = live else { return out.not_evaluated(NotEvaluated::NoDocument) };
    if plain(listed.text().unwrap_or_default()) != plain(&live) {
        out.add(listed, format!("the server that runs says {}", quote(&live)));
    }
}

/// Whether a version is one that servers report when nobody told them theirs: those of the Python SDK.
fn is_of_an_sdk(version: &str) -> bool {
    let mut numbers = plain(version).split('.').map(|number| number.parse::<u32>().ok());
    let three = (numbers.next().flatten(), numbers.next().flatten(), numbers.next().flatten(), numbers.next());
    matches!(three, (Some(1), Some(6..=30), Some(0..=4), None))
}

crate::rule! {
    /// Listing, package, release and server say different versions.
    ///
    /// What users install, and what they call, is not what they read about.
    static LISTING_OUT_OF_STEP = {
        id: "registry/listing-out-of-step",
        class: Class::Fact,
        basis: Basis::Policy,
        versions: API,
        evidence: Evidence::Live,
        on: ON,
        place: "/version",
        fix: "Publish the running version everywhere.",
        spec: "MCP Registry docs: versioning",
        examples: &[
            fires(&["/entry/server/version"], r#"{"observations": [{}, {"target": "package", "response": {"body": null}, "package": {"mcpName": "io.github.tidehouse/tides", "version": "2.4.0"}}]}"#),
            silent(r#"{"observations": [{"response": {"body": {"result": {"serverInfo": {"version": "1.13.1"}}}}}]}"#),
            silent(r#"{"observations": [{"target": "package", "response": {"body": null}, "package": {"mcpName": "io.github.tidehouse/tides", "version": "v2.3.0"}}]}"#),
        ],
        check: Check::Document(listing_out_of_step),
    }
}

fn listing_out_of_step(document: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let Some(drift) = Drift::of(document, out) else { return };
    let Some((listed, live)) = versions(&drift, out) else { return };
    let text = |node: Option<Node<'_>>| node.and_then(Node::text).map(str::to_owned);
    let package = drift.of_target("package").filter_map(|seen| text(seen.0.given("package")?.given("version"))).last();
    let release = drift.of_target("repository").filter_map(|seen| text(seen.0.given("release"))).last();
    let live = live.filter(|live| !is_of_an_sdk(live));
    let known: Vec<(&str, String)> =
        [("listing", text(Some(listed))), ("package", package), ("release", release), ("server", live)]
            .into_iter()
            .filter_map(|(who, version)| Some((who, version?)))
            .collect();
    let distinct: BTreeSet<&str> = known.iter().map(|(_, version)| plain(version)).collect();
    if known.len() < 2 {
        return out.not_evaluated(NotEvaluated::NoDocument);
    }
    if distinct.len() > 1 {
        let all: Vec<String> = known.iter().map(|(who, version)| format!("{who} {}", quote(version))).collect();
        out.add(listed, all.join(", "));
    }
}

crate::rule! {
    /// A server that was withdrawn from the registry runs on.
    ///
    /// Whoever has it configured goes on calling something that was taken away for a reason.
    static DELETED_BUT_LIVE = {
        id: "registry/deleted-but-live",
        severity: Severity::Warning,
        impact: Some(Impact::Degrades),
        basis: Basis::Policy,
        versions: API,
        evidence: Evidence::Live,
        on: ON,
        place: "/_meta/io.modelcontextprotocol.registry~1official/status",
        fix: "Users should not rely on it; find out why it was withdrawn.",
        spec: "MCP Registry docs: moderation-policy",
        examples: &[
            fires(&["/entry/_meta/io.modelcontextprotocol.registry~1official/status"], r#"{"entry": {"_meta": {"io.modelcontextprotocol.registry/official": {"status": "deleted"}}}}"#),
            silent(r#"{"entry": {"_meta": {"io.modelcontextprotocol.registry/official": {"status": "deleted"}}}, "observations": [{"response": {"status": 403, "body": null}}]}"#),
            silent(r#"{"entry": {"_meta": {"io.modelcontextprotocol.registry/official": {"status": "deprecated"}}}}"#),
        ],
        check: Check::Document(deleted_but_live),
    }
}

fn deleted_but_live(document: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let Some(drift) = Drift::of(document, out) else { return };
    let status = drift.entry.given("_meta").and_then(|meta| meta.given(OFFICIAL)?.given("status"));
    let Some(status) = status.filter(|_| is_deleted(drift.entry)) else { return out.not_applicable() };
    let mut seen = drift.remotes().into_iter().filter_map(|remote| drift.at(remote).into_iter().next_back());
    if seen.any(|seen| seen.result().is_some() || seen.asks_for_credentials()) {
        out.add(status, "withdrawn, and its remote still answers");
    }
}

crate::rule! {
    /// A live endpoint of the server is not in its entry.
    ///
    /// Its own card, or another registry, names one that the entry could name too.
    static LIVE_BUT_UNLISTED_REMOTE = {
        id: "registry/live-but-unlisted-remote",
        basis: Basis::Hint,
        versions: API,
        evidence: Evidence::Live,
        on: ON,
        place: "/remotes",
        fix: "Add the endpoint to remotes.",
        spec: "hint",
        examples: &[
            fires(&["/entry/server/remotes"], r#"{"observations": [{"found_in": "server-card", "request": {"url": "https://eu.tidehouse.dev/mcp"}}]}"#),
            silent(r#"{"observations": [{"found_in": "server-card", "request": {"url": "https://mcp.tidehouse.dev/mcp/"}}]}"#),
            silent(r#"{"observations": [{"found_in": "registry", "request": {"url": "https://mcp.others.dev/mcp"}}]}"#),
        ],
        check: Check::Document(live_but_unlisted_remote),
    }
}

fn live_but_unlisted_remote(document: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let Some(drift) = Drift::of(document, out) else { return };
    let listed: Vec<Url> = drift
        .remotes()
        .into_iter()
        .filter_map(|remote| remote.given("url").and_then(Node::text).and_then(|url| Url::parse(url).ok()))
        .collect();
    let is_listed = |url: &Url| {
        let bare = |url: &Url| url.as_str().trim_end_matches('/').to_owned();
        listed.iter().any(|other| bare(other) == bare(url))
    };
    // Without a remote, or the place of the card, there is no domain to compare with.
    let is_akin = |url: &Url, seen: Observation<'_>| {
        let host = url.host_str().unwrap_or_default();
        let place = seen.0.given("found_at").and_then(Node::text).and_then(|place| Url::parse(place).ok());
        let mut hosts = listed.iter().chain(&place).filter_map(Url::host_str).peekable();
        hosts.peek().is_none() || hosts.any(|other| same_site(other, host))
    };
    for seen in drift.observations.iter().copied().filter(|seen| seen.is_found_elsewhere()) {
        let Some(url) = seen.url().and_then(|url| Url::parse(url).ok()) else { continue };
        if url.scheme() == "https" && seen.result().is_some() && !is_listed(&url) && is_akin(&url, seen) {
            let what = format!("{} answers and is not listed", quote(url.as_str()));
            match drift.server.given("remotes") {
                Some(remotes) => out.add(remotes, what),
                None => out.add(drift.server, what),
            };
        }
    }
}

crate::rule! {
    /// The repository that the entry names is there.
    ///
    /// Users look at the source before they trust a server.
    static REPOSITORY_UNREACHABLE = {
        id: "registry/repository-unreachable",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        basis: Basis::Policy,
        versions: API,
        evidence: Evidence::Live,
        on: ON,
        place: "/repository/url",
        fix: "Fix the link or make the repository public.",
        spec: "official registry publish checks: repository reachability (2026)",
        seeds: &["gaip:MCP_REPOSITORY_INVALID"],
        examples: &[
            fires(&["/entry/server/repository/url"], r#"{"observations": [{"target": "repository", "response": {"status": 404, "body": null}}]}"#),
            silent(r#"{"observations": [{"target": "repository", "response": {"status": 404, "body": null}}, {"target": "repository", "response": {"status": 200, "body": null}}]}"#),
        ],
        check: Check::Document(repository_unreachable),
    }
}

fn repository_unreachable(document: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let Some(drift) = Drift::of(document, out) else { return };
    let Some(last) = drift.of_target("repository").last() else { return out.not_evaluated(NotEvaluated::NotAsked) };
    if let Some(why) = unsaid(last) {
        return out.not_evaluated(why);
    }
    let url = drift.server.given("repository").and_then(|repository| repository.given("url"));
    if let (Some(url), Some(status @ (404 | 410))) = (url, last.status()) {
        out.add(url, format!("answers {status}"));
    }
}

crate::rule! {
    /// A package names the server that lists it.
    ///
    /// Otherwise anybody can list a package of somebody else's under a name of their own.
    static PACKAGE_OWNERSHIP_MISMATCH = {
        id: "registry/package-ownership-mismatch",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        security: true,
        basis: Basis::Policy,
        versions: API,
        evidence: Evidence::Live,
        on: ON,
        place: "/packages/*/identifier",
        fix: "Add the proof to the package.",
        spec: "MCP Registry docs: package-types",
        examples: &[
            fires(&["/entry/server/packages/0/identifier"], r#"{"observations": [{"target": "package", "response": {"body": null}, "package": {"mcpName": "io.github.Tidehouse/tides"}}]}"#),
            fires(&["/entry/server/packages/0/identifier"], r#"{"entry": {"server": {"packages": [{"registryType": "pypi", "identifier": "tides"}]}}, "observations": [{"target": "package", "response": {"body": null}, "package": {"readme": "mcp-name: io.github.tidehouse/tides2"}}]}"#),
            silent(r#"{"entry": {"server": {"packages": [{"registryType": "mcpb", "identifier": "https://github.com/tidehouse/tides/releases/download/v1/tides.mcpb"}]}}, "observations": [{"target": "package", "response": {"body": null}, "package": {}}]}"#),
            silent(r#"{"entry": {"server": {"packages": [{"registryType": "pypi", "identifier": "tides"}]}}, "observations": [{"target": "package", "response": {"body": null}, "package": {"readme": "<!-- mcp-name: io.github.tidehouse/tides -->"}}]}"#),
        ],
        check: Check::Document(package_ownership_mismatch),
    }
}

fn package_ownership_mismatch(document: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let Some(drift) = Drift::of(document, out) else { return };
    let Some(name) = filled(drift.server, "name") else { return };
    let (mut has_looked, mut has_missed) = (false, false);
    for seen in drift.of_target("package") {
        let Some(package) = drift.package_of(seen) else { continue };
        let Some(upstream) = seen.0.given("package") else {
            // What is not there has nothing to say of itself.
            has_missed |= seen.status() != Some(404);
            continue;
        };
        has_looked = true;
        let text = |path: &[&str]| path.iter().try_fold(upstream, |node, key| node.given(key)).and_then(Node::text);
        let said = match filled(package, "registryType") {
            Some("npm") => text(&["mcpName"]).map(str::to_owned),
            Some("pypi" | "nuget") => text(&["readme"]).map(|readme| named_in(readme, name)),
            Some("oci") => text(&["labels", "io.modelcontextprotocol.server.name"]).map(str::to_owned),
            _ => continue,
        };
        if said.as_deref() == Some(name) {
            continue;
        }
        let what = match said.filter(|said| !said.is_empty()) {
            Some(said) => format!("the package names the server {}", quote(&said)),
            None => "the package names no server".to_owned(),
        };
        out.add(package.given("identifier").unwrap_or(package), what);
    }
    unless_all_were_seen(has_looked, has_missed, out);
}

/// That one package is in order says nothing of another that nobody saw.
fn unless_all_were_seen(has_looked: bool, has_missed: bool, out: &mut Occurrences) {
    if has_missed || !has_looked {
        out.not_evaluated(NotEvaluated::NotAsked);
    }
}

/// The server that a readme names: the one that is looked for when it is among them, else the first; empty for none.
fn named_in(readme: &str, name: &str) -> String {
    let named: Vec<&str> = readme
        .split("mcp-name:")
        .skip(1)
        .map(|rest| rest.trim_start().split(|c: char| c.is_whitespace() || c == '<').next().unwrap_or_default())
        .collect();
    named.iter().find(|said| **said == name).or_else(|| named.first()).copied().unwrap_or_default().to_owned()
}

crate::rule! {
    /// A package that is listed can be installed.
    ///
    /// Its own registry knows neither it nor that version.
    static PACKAGE_NOT_FOUND = {
        id: "registry/package-not-found",
        severity: Severity::Warning,
        impact: Some(Impact::Degrades),
        basis: Basis::Policy,
        versions: API,
        evidence: Evidence::Live,
        on: ON,
        place: "/packages/*/version",
        fix: "Publish the package or correct the version.",
        spec: "MCP Registry docs: package-types",
        examples: &[
            fires(&["/entry/server/packages/0/version"], r#"{"observations": [{"target": "package", "response": {"status": 404, "body": null}}]}"#),
            silent(r#"{"observations": [{"target": "package", "response": {"status": 503, "body": null}}]}"#),
        ],
        check: Check::Document(package_not_found),
    }
}

fn package_not_found(document: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let Some(drift) = Drift::of(document, out) else { return };
    let (mut has_looked, mut has_missed) = (false, false);
    for seen in drift.of_target("package") {
        let Some(package) = drift.package_of(seen) else { continue };
        match unsaid(seen) {
            None => has_looked = true,
            Some(_) => has_missed = true,
        }
        if seen.status() == Some(404) {
            let what = "its registry answers 404";
            match package.given("version") {
                Some(version) => out.add(version, what),
                None => out.add_at(format!("{}/{}", package.pointer(), escape("version")), what),
            };
        }
    }
    unless_all_were_seen(has_looked, has_missed, out);
}

/// What a rule about endpoints says of the remotes of an entry, where a listing and what answers are all there is. In a
/// crawl the endpoint is judged by itself.
pub(crate) fn judge_remotes(document: &Document, root: Node<'_>) -> RuleResult {
    let rule = catalogue::find("mcp/endpoint-not-mcp").expect("the rule is in the catalogue");
    ask(rule, NEWEST_LEGACY, Some(document), |out| {
        let Some(drift) = Drift::of(root, out) else { return };
        for remote in drift.remotes() {
            let handshakes: Vec<_> = drift.at(remote).into_iter().filter(|seen| seen.is_post()).collect();
            if let Some(url) = remote.given("url").filter(|_| !handshakes.is_empty())
                && handshakes.iter().all(|seen| seen.is_no_mcp())
            {
                out.add(url, "every handshake is answered with something else");
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_the_sdk_are_not_the_server_s() {
        for version in ["1.13.1", "v1.30.0", "1.9.4"] {
            assert!(is_of_an_sdk(version), "{version}");
        }
        for version in ["1.0.0", "2.0.0", "1.4.2", "1.13", "1.13.1.0", "1.13.9"] {
            assert!(!is_of_an_sdk(version), "{version}");
        }
    }
}
