//! Where a server can be called.

use std::borrow::Cow;
use std::collections::HashSet;

use super::fields::{filled, list};
use super::names::parts;
use super::packages::text_member;
use super::presentation::shown;
use super::revision::{ALL_REVISIONS, SINCE_2025_12_11};
use crate::document::{Node, Type};
use crate::judge::{Context, Occurrences};
use crate::kind::Kind;
use crate::rule::{Basis, Check, Class, Impact, Rule, Severity, fires, silent};
use crate::text::{AbsoluteUrl, quote, registrable_domain, variables, with_samples};

pub(super) const RULES: &[&Rule] = &[
    &REMOTE_TRANSPORT_UNRECOGNISED,
    &REMOTE_SSE_ONLY,
    &REMOTE_URL_MISSING,
    &REMOTE_URL_INVALID,
    &REMOTE_URL_NOT_HTTPS,
    &REMOTE_URL_VARIABLE_UNDEFINED,
    &REMOTE_URL_TEMPLATE_BASE,
    &REMOTE_VARIABLE_UNUSED,
    &REMOTE_DUPLICATE,
    &REMOTE_TUNNEL_HOST,
    &REMOTE_PLACEHOLDER_HOST,
    &REMOTE_DOMAIN_DIFFERS,
];

fn remotes(document: Node<'_>) -> impl Iterator<Item = Node<'_>> {
    list(document, "remotes").filter(|remote| remote.kind() == Type::Object)
}

crate::rule! {
    /// A remote's type is `streamable-http` or `sse`.
    ///
    /// Clients choose how to connect by it and skip a remote of another type.
    static REMOTE_TRANSPORT_UNRECOGNISED = {
        id: "registry/remote-transport-unrecognised",
        severity: Severity::Error,
        impact: Some(Impact::Degrades),
        versions: ALL_REVISIONS,
        place: "/remotes/*/type",
        fix: "Set type to streamable-http.",
        spec: "server.json 2025-12-11 schema RemoteTransport; official registry publish checks",
        seeds: &["gaip:MCP_REMOTE_TRANSPORT_UNRECOGNISED", "gaip:MCP_TRANSPORT_TYPE_UNRECOGNISED"],
        on: &[Kind::ServerJson],
        examples: &[
            fires(&["/remotes/0/type"], r#"{"remotes": [{"type": "http"}]}"#),
            fires(&["/remotes/0/type"], r#"{"remotes": [{"type": null}]}"#),
            fires(&["/remotes/0/type"], r#"{"remotes": [{"type": "stdio"}]}"#),
            silent(r#"{"remotes": [{}, {"type": "sse", "url": "https://mcp.tidehouse.dev/sse"}]}"#),
        ],
        check: Check::Document(remote_transport_unrecognised),
    }
}

fn remote_transport_unrecognised(document: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for remote in remotes(document) {
        match remote.given("type") {
            None => {
                out.add_missing(remote, "type", "no transport is named");
            }
            Some(node) if !matches!(node.text(), Some("streamable-http" | "sse")) => {
                out.add(node, format!("{} is no transport of a remote", shown(node)));
            }
            Some(_) => {}
        }
    }
}

crate::rule! {
    /// The server offers the old SSE transport only.
    ///
    /// The protocol deprecated it; beside a streamable-http remote it serves old clients.
    static REMOTE_SSE_ONLY = {
        id: "registry/remote-sse-only",
        class: Class::Fact,
        versions: ALL_REVISIONS,
        place: "/remotes/*/type",
        fix: "Offer a streamable-http remote too.",
        spec: "MCP Registry docs: remote-servers; MCP transports: HTTP+SSE is deprecated",
        seeds: &["gaip:MCP_SSE_TRANSPORT_DEPRECATED"],
        on: &[Kind::ServerJson],
        examples: &[
            fires(&["/remotes/0/type"], r#"{"remotes": [{"type": "sse"}]}"#),
            silent(r#"{"remotes": [{}, {"type": "sse", "url": "https://mcp.tidehouse.dev/sse"}]}"#),
        ],
        check: Check::Document(remote_sse_only),
    }
}

fn remote_sse_only(document: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if remotes(document).any(|remote| filled(remote, "type") == Some("streamable-http")) {
        return;
    }
    for remote in remotes(document) {
        if let Some((node, "sse")) = text_member(remote, "type") {
            out.add(node, "SSE and nothing newer");
        }
    }
}

crate::rule! {
    /// A remote has a URL.
    ///
    /// Nobody can call it without.
    static REMOTE_URL_MISSING = {
        id: "registry/remote-url-missing",
        severity: Severity::Error,
        impact: Some(Impact::Degrades),
        versions: ALL_REVISIONS,
        place: "/remotes/*/url",
        fix: "Add the public endpoint URL.",
        spec: "server.json 2025-12-11 schema RemoteTransport",
        seeds: &["gaip:MCP_HTTPS_ENDPOINT_REQUIRED"],
        on: &[Kind::ServerJson],
        examples: &[
            fires(&["/remotes/0/url"], r#"{"remotes": [{"url": null}]}"#),
            fires(&["/remotes/0/url"], r#"{"remotes": [{"url": ""}]}"#),
            silent("{}"),
        ],
        check: Check::Document(remote_url_missing),
    }
}

fn remote_url_missing(document: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for remote in remotes(document) {
        match remote.given("url") {
            None => {
                out.add_missing(remote, "url", "no URL");
            }
            Some(url) if url.text().is_none() => {
                out.add(url, format!("{} where a URL belongs", url.kind().named()));
            }
            Some(url) if url.text() == Some("") => {
                out.add(url, "the URL is empty");
            }
            Some(_) => {}
        }
    }
}

/// Every remote with a URL.
fn urls(document: Node<'_>) -> impl Iterator<Item = (Node<'_>, Node<'_>, &str)> {
    remotes(document).filter_map(|remote| text_member(remote, "url").map(|(node, url)| (remote, node, url)))
}

/// Whether a URL's scheme and host are left to a variable.
fn begins_with_variable(url: &str) -> bool {
    variables(url).next().is_some_and(|variable| variable.before.is_empty())
}

crate::rule! {
    /// A remote's URL is an absolute http address without fragment.
    ///
    /// Variables count as filled in. Clients connect to it as it stands.
    static REMOTE_URL_INVALID = {
        id: "registry/remote-url-invalid",
        severity: Severity::Error,
        impact: Some(Impact::Degrades),
        versions: ALL_REVISIONS,
        place: "/remotes/*/url",
        fix: "Write an absolute https URL without credentials or fragment.",
        spec: "server.json 2025-12-11 schema StreamableHttpTransport url; official registry publish checks",
        seeds: &["gaip:MCP_ENDPOINT_URL_INVALID", "gaip:MCP_ENDPOINT_RELATIVE"],
        on: &[Kind::ServerJson],
        examples: &[
            fires(&["/remotes/0/url"], r#"{"remotes": [{"url": "/mcp"}]}"#),
            fires(&["/remotes/0/url"], r#"{"remotes": [{"url": "wss://mcp.tidehouse.dev/mcp"}]}"#),
            fires(&["/remotes/0/url"], r#"{"remotes": [{"url": "https://mcp.tidehouse.dev/mcp#tools"}]}"#),
            fires(&["/remotes/0/url"], r#"{"remotes": [{"url": "https:// mcp.tidehouse.dev/mcp"}]}"#),
            silent(r#"{"remotes": [{"url": "https://{tenant}.tidehouse.dev:{port}/mcp?v=2", "variables": {"tenant": {}, "port": {}}}]}"#),
        ],
        yields_to: &["common/unsafe-url-scheme", "common/unsafe-url-scheme", "registry/remote-placeholder-host"],
        check: Check::Document(remote_url_invalid),
    }
}

fn remote_url_invalid(document: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for (_, node, url) in urls(document) {
        if !begins_with_variable(url)
            && let Some(fault) = fault_of(url)
        {
            out.add(node, format!("{} {fault}", quote(url)));
        }
    }
}

fn fault_of(url: &str) -> Option<&'static str> {
    if url.contains(|c: char| c.is_whitespace() || c == '\\') {
        return Some("has white space or a backslash");
    }
    let filled = with_samples(url);
    match AbsoluteUrl::parse(&filled) {
        None => Some("is no absolute URL"),
        Some(url) if !(url.is("http") || url.is("https")) => Some("is no http address"),
        Some(url) if url.fragment.is_some() => Some("has a fragment"),
        Some(_) => None,
    }
}

/// What the host of a remote is, lower case and without a final dot; a variable stands as it is written.
fn host_of(url: &str) -> Option<String> {
    let host = AbsoluteUrl::parse(url).map(|url| url.host)?.to_ascii_lowercase();
    Some(host.strip_suffix('.').map_or_else(|| host.clone(), str::to_owned))
}

crate::rule! {
    /// A public remote is served over https.
    ///
    /// Credentials and answers go over the open network; the registry refuses plain http.
    static REMOTE_URL_NOT_HTTPS = {
        id: "registry/remote-url-not-https",
        severity: Severity::Error,
        impact: Some(Impact::Degrades),
        security: true,
        basis: Basis::Policy,
        versions: ALL_REVISIONS,
        place: "/remotes/*/url",
        fix: "Serve the endpoint over https.",
        spec: "official registry publish checks: remotes must be https",
        seeds: &["gaip:MCP_HTTPS_ENDPOINT_REQUIRED", "gaip:MCP_ENDPOINT_URL_INVALID"],
        on: &[Kind::ServerJson],
        examples: &[
            fires(&["/remotes/0/url"], r#"{"remotes": [{"url": "http://mcp.tidehouse.dev/mcp"}]}"#),
            silent(r#"{"remotes": [{"url": "HTTPS://MCP.TIDEHOUSE.DEV/mcp"}]}"#),
        ],
        yields_to: &["registry/remote-placeholder-host", "registry/remote-url-invalid"],
        check: Check::Document(remote_url_not_https),
    }
}

fn remote_url_not_https(document: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for (_, node, url) in urls(document) {
        let filled = with_samples(url);
        if AbsoluteUrl::parse(&filled).is_some_and(|filled| filled.is("http"))
            && AbsoluteUrl::parse(url).is_none_or(|url| url.is_public())
        {
            out.add(node, format!("{} is plain http", quote(url)));
        }
    }
}

crate::rule! {
    /// Every variable in a remote's URL is defined.
    ///
    /// No client can fill in what nobody describes. Before 2025-12-11 remotes had no variables at all.
    static REMOTE_URL_VARIABLE_UNDEFINED = {
        id: "registry/remote-url-variable-undefined",
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        impact_evidence: "no client can fill the variable; not run per SDK",
        rank: 38,
        basis: Basis::Policy,
        versions: ALL_REVISIONS,
        place: "/remotes/*/url",
        fix: "Define the variable under variables, or publish the real URL.",
        spec: "server-json CHANGELOG 2025-12-11; official registry publish checks",
        on: &[Kind::ServerJson],
        examples: &[
            fires(&["/remotes/0/url"], r#"{"remotes": [{"url": "https://mcp.tidehouse.dev/{token}/mcp"}]}"#),
            fires(&["/remotes/0/url"], r#"{"remotes": [{"url": "https://{tide}.tidehouse.dev/mcp", "variables": {"Tide": {}}}]}"#),
            fires(&["/remotes/0/url"], r#"{"remotes": [{"url": "https://{tide}.tidehouse.dev/mcp", "variables": {"tide": {}}}]}"#).over("server-json-2025-09-29"),
            silent(r#"{"remotes": [{"url": "https://{tide}.tidehouse.dev/mcp", "variables": {"tide": {"isRequired": true}}}]}"#),
        ],
        check: Check::Document(remote_url_variable_undefined),
    }
}

fn remote_url_variable_undefined(document: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    let has_variables = SINCE_2025_12_11.iter().any(|version| context.profile.has(version));
    for (remote, node, url) in urls(document) {
        let mut names = variables(url).map(|variable| variable.name).peekable();
        if names.peek().is_none() {
            continue;
        }
        let defined = if has_variables { keys(remote.given("variables")) } else { HashSet::new() };
        if let Some(name) = names.find(|name| !defined.contains(name)) {
            out.add(node, format!("nothing says what {} is", quote(name)));
        }
    }
}

/// The keys of a map that may not be there.
pub(super) fn keys(map: Option<Node<'_>>) -> HashSet<&str> {
    map.into_iter().flat_map(Node::members).map(|(key, _)| key).collect()
}

crate::rule! {
    /// A remote's URL has its scheme and host written out.
    ///
    /// The schema of 2025-12-11 refuses a URL that begins with a variable; the draft allows it.
    static REMOTE_URL_TEMPLATE_BASE = {
        id: "registry/remote-url-template-base",
        severity: Severity::Error,
        impact: Some(Impact::Degrades),
        versions: &["2025-12-11"],
        place: "/remotes/*/url",
        fix: "Put the scheme and host in the URL, or wait for the next revision.",
        spec: "server-json CHANGELOG, Draft section",
        on: &[Kind::ServerJson],
        examples: &[
            fires(&["/remotes/0/url"], r#"{"remotes": [{"url": "{base}/mcp", "variables": {"base": {"isRequired": true}}}]}"#),
            silent(r#"{"remotes": [{"url": "{base}/mcp", "variables": {"base": {"isRequired": true}}}]}"#).over("server-json-draft"),
        ],
        check: Check::Document(remote_url_template_base),
    }
}

fn remote_url_template_base(document: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for (_, node, url) in urls(document).filter(|(_, _, url)| begins_with_variable(url)) {
        out.add(node, format!("{} begins with a variable", quote(url)));
    }
}

crate::rule! {
    /// A remote defines a variable that nothing uses.
    ///
    /// Users are asked for a value that goes nowhere.
    static REMOTE_VARIABLE_UNUSED = {
        id: "registry/remote-variable-unused",
        basis: Basis::Hint,
        versions: SINCE_2025_12_11,
        place: "/remotes/*/variables/*",
        fix: "Remove the variable or use it.",
        spec: "hint",
        on: &[Kind::ServerJson],
        examples: &[
            fires(&["/remotes/0/variables/tide"], r#"{"remotes": [{"variables": {"tide": {}}}]}"#),
            silent(r#"{"remotes": [{"variables": {"tide": {}}, "headers": [{"name": "X-Tide", "value": "{tide}"}]}]}"#),
        ],
        check: Check::Document(remote_variable_unused),
    }
}

fn remote_variable_unused(document: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for remote in remotes(document) {
        let Some(defined) = remote.given("variables") else { continue };
        let values = list(remote, "headers").filter_map(|header| filled(header, "value"));
        let texts = values.chain(filled(remote, "url"));
        let used: HashSet<&str> = texts.flat_map(variables).map(|variable| variable.name).collect();
        for (key, variable) in defined.members().filter(|(key, _)| !used.contains(key)) {
            out.add(variable, format!("{} occurs in no URL and no header", quote(key)));
        }
    }
}

crate::rule! {
    /// No remote stands twice.
    ///
    /// Clients show both, and both are the same. With other headers or variables it is another way in.
    static REMOTE_DUPLICATE = {
        id: "registry/remote-duplicate",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        basis: Basis::Hint,
        versions: ALL_REVISIONS,
        place: "/remotes/*",
        fix: "Remove the repeated remote.",
        spec: "hint",
        on: &[Kind::ServerJson],
        examples: &[
            fires(&["/remotes/1"], r#"{"remotes": [{}, {"url": "https://MCP.tidehouse.dev:443/mcp/"}]}"#),
            silent(r#"{"remotes": [{}, {"url": "https://mcp.tidehouse.dev/MCP"}]}"#),
            silent(r#"{"remotes": [{}, {"headers": [{"name": "X-Tide-Key", "isSecret": true}]}]}"#),
        ],
        check: Check::Document(remote_duplicate),
    }
}

fn remote_duplicate(document: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let mut seen = HashSet::new();
    for (remote, _, url) in urls(document) {
        let told = |member| remote.given(member).filter(|node| !node.is_empty()).map(Node::raw);
        if !seen.insert((filled(remote, "type"), normal_form(url), told("headers"), told("variables"))) {
            out.add(remote, format!("{} stands here again", quote(url)));
        }
    }
}

/// A URL with scheme and host in lower case, without default port and one final slash.
pub(super) fn normal_form(url: &str) -> Cow<'_, str> {
    let Some(parts) = AbsoluteUrl::parse(url) else { return Cow::Borrowed(url) };
    let authority = url.len() - parts.scheme.len() - 3;
    let behind = authority
        - parts.path.len()
        - parts.query.map_or(0, |q| q.len() + 1)
        - parts.fragment.map_or(0, |f| f.len() + 1);
    let tail = &url[parts.scheme.len() + 3 + behind..];
    let port = match parts.effective_port() {
        Some(80) if parts.is("http") => String::new(),
        Some(443) if parts.is("https") => String::new(),
        _ => parts.port.map_or_else(String::new, |port| format!(":{port}")),
    };
    let user = parts.user_information.map_or_else(String::new, |user| format!("{user}@"));
    let host = parts.host.to_ascii_lowercase();
    Cow::Owned(format!(
        "{}://{user}{host}{port}{}",
        parts.scheme.to_ascii_lowercase(),
        tail.strip_suffix('/').unwrap_or(tail)
    ))
}

/// Domains under which development tunnels live.
const TUNNELS: &[&str] = &[
    "ngrok.io",
    "ngrok.app",
    "ngrok-free.app",
    "ngrok-free.dev",
    "trycloudflare.com",
    "loca.lt",
    "localhost.run",
    "lhr.life",
    "serveo.net",
    "devtunnels.ms",
    "app.github.dev",
    "gitpod.io",
    "pinggy.link",
];

crate::rule! {
    /// A remote does not live in a development tunnel.
    ///
    /// Its address changes or vanishes with the laptop behind it.
    static REMOTE_TUNNEL_HOST = {
        id: "registry/remote-tunnel-host",
        severity: Severity::Warning,
        impact: Some(Impact::Degrades),
        basis: Basis::Hint,
        versions: ALL_REVISIONS,
        place: "/remotes/*/url",
        fix: "Publish a stable address.",
        spec: "hint; seen in the July 2026 endpoint census",
        on: &[Kind::ServerJson],
        examples: &[
            fires(&["/remotes/0/url"], r#"{"remotes": [{"url": "https://2c08-203-0-113-4.ngrok-free.app/mcp"}]}"#),
            silent(r#"{"remotes": [{"url": "https://ngrok.tidehouse.dev/mcp"}]}"#),
        ],
        yields_to: &["registry/remote-url-invalid", "registry/remote-url-not-https"],
        check: Check::Document(remote_tunnel_host),
    }
}

fn remote_tunnel_host(document: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for (_, node, url) in urls(document) {
        if let Some(host) = host_of(url)
            && TUNNELS.iter().any(|tunnel| is_within(&host, tunnel))
        {
            out.add(node, format!("{} is a tunnel", quote(&host)));
        }
    }
}

/// Whether a host is a domain or lies below it.
fn is_within(host: &str, domain: &str) -> bool {
    host.strip_suffix(domain).is_some_and(|before| before.is_empty() || before.ends_with('.'))
}

crate::rule! {
    /// A remote's host is that of an example.
    ///
    /// Nothing answers there, and nothing ever will.
    static REMOTE_PLACEHOLDER_HOST = {
        id: "registry/remote-placeholder-host",
        severity: Severity::Warning,
        impact: Some(Impact::Degrades),
        basis: Basis::Hint,
        versions: ALL_REVISIONS,
        place: "/remotes/*/url",
        fix: "Publish the real address.",
        spec: "hint; RFC 2606, RFC 6761",
        on: &[Kind::ServerJson],
        examples: &[
            fires(&["/remotes/0/url"], r#"{"remotes": [{"url": "https://api.example.com/mcp"}]}"#),
            fires(&["/remotes/0/url"], r#"{"remotes": [{"url": "https://mcp.your-domain.io/mcp"}]}"#),
            silent(r#"{"remotes": [{"url": "https://example.tidehouse.dev/mcp"}]}"#),
        ],
        check: Check::Document(remote_placeholder_host),
    }
}

fn remote_placeholder_host(document: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for (_, node, url) in urls(document) {
        if let Some(host) = host_of(url)
            && is_placeholder(&host)
        {
            out.add(node, format!("{} is a placeholder", quote(&host)));
        }
    }
}

fn is_placeholder(host: &str) -> bool {
    ["example.com", "example.org", "example.net"].iter().any(|domain| is_within(host, domain))
        || [".example", ".test", ".invalid"].iter().any(|ending| host.ends_with(ending))
        || ["your-domain", "yourdomain", "your-server", "my-server-url"].iter().any(|word| host.contains(word))
        || host == "domain.com"
}

crate::rule! {
    /// A remote lies on another domain than the name's.
    ///
    /// Hosting platforms make that normal; who looks for impostors wants to know all the same.
    static REMOTE_DOMAIN_DIFFERS = {
        id: "registry/remote-domain-differs",
        class: Class::Fact,
        basis: Basis::Policy,
        versions: ALL_REVISIONS,
        place: "/remotes/*/url",
        fix: "None needed if intended.",
        spec: "MCP Registry docs: authentication, namespaces",
        on: &[Kind::ServerJson],
        examples: &[
            fires(&["/remotes/0/url"], r#"{"name": "dev.lighthouse/tides"}"#),
            silent(r#"{"name": "dev.tidehouse.coast/tides"}"#),
            silent("{}"),
        ],
        check: Check::Document(remote_domain_differs),
    }
}

fn remote_domain_differs(document: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let Some(own) = filled(document, "name").and_then(domain_of_name) else { return };
    for (_, node, url) in urls(document) {
        let public = AbsoluteUrl::parse(url).filter(|url| url.is_public() && !url.host.contains('{'));
        if let Some(other) = public.and_then(|url| registrable_domain(url.host))
            && other != own
        {
            out.add(node, format!("{} lies outside {}", quote(&other), quote(&own)));
        }
    }
}

/// The registrable domain that a namespace is the reverse of; accounts at GitHub have none.
fn domain_of_name(name: &str) -> Option<String> {
    let (namespace, _) = parts(name)?;
    if namespace.starts_with("io.github.") {
        return None;
    }
    registrable_domain(&namespace.rsplit('.').collect::<Vec<_>>().join("."))
}
