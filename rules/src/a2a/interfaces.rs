//! Interfaces: where the agent is called and in which language.

use std::collections::{HashMap, HashSet};

use super::required::{demand, is_blank};
use super::table::{EVERY, SINCE_0_2};
use crate::document::{Node, Type};
use crate::judge::{Context, Occurrences};
use crate::kind::Kind;
use crate::rule::{Basis, Check, Class, Impact, Rule, Severity, fires, silent};
use crate::text::{AbsoluteUrl, host_is_loopback, is_absolute_uri, quote};

pub(super) const RULES: &[&Rule] = &[
    &INTERFACE_URL_REQUIRED,
    &INTERFACE_BINDING_REQUIRED,
    &INTERFACE_VERSION_REQUIRED,
    &INTERFACE_URL_INVALID,
    &PLAIN_HTTP,
    &URL_FRAGMENT,
    &ENDPOINT_PLACEHOLDER,
    &ENDPOINT_NOT_AN_ENDPOINT,
    &GRPC_ADDRESS,
    &GRPC_URL_STYLE,
    &BINDING_MISSPELLED,
    &BINDING_NOT_URI,
    &BINDING_CUSTOM,
    &TRANSPORT_UNRECOGNISED,
    &NO_COMMON_TRANSPORT,
    &TRANSPORT_CONFLICT,
    &MAIN_INTERFACE_MISSING,
    &INTERFACE_DUPLICATE,
];

/// Rules that say that an address cannot be called at all, so that nothing finer is said about it.
const UNREACHABLE: &[&str] = &[
    "common/unsafe-url-scheme",
    "a2a/endpoint-placeholder",
    "a2a/interface-url-invalid",
    "a2a/grpc-address",
    "common/url-not-public",
];

/// The interfaces of 1.0 that are objects, for a card that is judged by 1.0.
pub(super) fn supported<'d>(card: Node<'d>, context: &Context<'_>) -> impl Iterator<Item = Node<'d>> {
    objects_in(card, "supportedInterfaces", context.profile.has("1.0"))
}

/// The further interfaces of 0.2 and 0.3 that are objects, for a card that is judged by them.
fn additional<'d>(card: Node<'d>, context: &Context<'_>) -> impl Iterator<Item = Node<'d>> {
    objects_in(card, "additionalInterfaces", context.profile.has("0.3") || context.profile.has("0.2"))
}

fn objects_in<'d>(card: Node<'d>, member: &str, applies: bool) -> impl Iterator<Item = Node<'d>> {
    let list = card.get(member).filter(|_| applies);
    list.into_iter().flat_map(Node::items).filter(|item| item.kind() == Type::Object)
}

/// The core bindings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Core {
    JsonRpc,
    Grpc,
    HttpJson,
}

impl Core {
    /// The binding that is spelled so.
    fn exact(text: &str) -> Option<Core> {
        match text {
            "JSONRPC" => Some(Core::JsonRpc),
            "GRPC" => Some(Core::Grpc),
            "HTTP+JSON" => Some(Core::HttpJson),
            _ => None,
        }
    }

    /// The binding that is meant, however it is spelled: letter case, signs and a trailing 2 or 2.0 do not count.
    fn meant(text: &str) -> Option<Core> {
        if text.len() > 40 {
            return None;
        }
        let letters: String =
            text.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_uppercase()).collect();
        let name = letters.strip_suffix("20").or(letters.strip_suffix('2')).unwrap_or(&letters);
        match name {
            "JSONRPC" => Some(Core::JsonRpc),
            "GRPC" => Some(Core::Grpc),
            "HTTPJSON" => Some(Core::HttpJson),
            _ => None,
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Core::JsonRpc => "JSONRPC",
            Core::Grpc => "GRPC",
            Core::HttpJson => "HTTP+JSON",
        }
    }
}

/// A declared address.
#[derive(Clone, Copy)]
pub(super) struct Endpoint<'d> {
    /// The value of `url`.
    pub(super) url: Node<'d>,
    /// Its text.
    pub(super) text: &'d str,
    /// The value of `protocolBinding`, `transport` or `preferredTransport`.
    pub(super) binding: Option<Node<'d>>,
    /// Whether it is an entry of `supportedInterfaces`.
    pub(super) is_new: bool,
}

impl Endpoint<'_> {
    /// The core binding it is meant for; one without a binding counts as JSONRPC. `None` for custom ones.
    pub(super) fn core(&self) -> Option<Core> {
        match self.binding.and_then(Node::text) {
            Some(text) if !is_blank(text) => Core::meant(text),
            _ => Some(Core::JsonRpc),
        }
    }

    /// Whether the address has the form that its binding asks for; that of gRPC is looked at elsewhere.
    fn can_be_called(&self) -> bool {
        match self.core() {
            Some(Core::Grpc) => true,
            Some(Core::JsonRpc | Core::HttpJson) => AbsoluteUrl::http(self.text).is_some(),
            None => is_absolute_uri(self.text),
        }
    }
}

/// Every address of an agent that has a text: those of 1.0, the further ones of 0.3, the main `url`.
pub(super) fn endpoints<'d>(card: Node<'d>, context: &Context<'_>) -> impl Iterator<Item = Endpoint<'d>> {
    let endpoint = |object: Node<'d>, binding: &str, is_new| {
        let url = object.get("url")?;
        Some(Endpoint { url, text: url.text()?, binding: object.given(binding), is_new })
    };
    let main = if context.profile.name == "a2a-1.0" { None } else { endpoint(card, "preferredTransport", false) };
    let new = supported(card, context).filter_map(move |object| endpoint(object, "protocolBinding", true));
    let old = additional(card, context).filter_map(move |object| endpoint(object, "transport", false));
    new.chain(old).chain(main)
}

/// A URL in the form in which two are compared: letter case of scheme and host, default port and dot segments do not
/// matter.
pub(super) fn comparable(text: &str) -> String {
    url::Url::parse(text).map_or_else(|_| text.to_owned(), String::from)
}

crate::rule! {
    /// An interface says where it is.
    ///
    /// Without a `url` there is nothing to call.
    static INTERFACE_URL_REQUIRED = {
        id: "a2a/interface-url-required",
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        impact_evidence: "by analogy, not run",
        versions: SINCE_0_2,
        on: &[Kind::AgentCard],
        place: "/supportedInterfaces/*/url, /additionalInterfaces/*/url",
        fix: "Add `url`.",
        spec: "A2A 1.0 §4.4.6; 0.3 §5.5.5",
        seeds: &["reader:Missing required field"],
        examples: &[
            fires(&["/supportedInterfaces/0/url"], r#"{"supportedInterfaces": [{"url": null}]}"#),
            fires(
                &["/additionalInterfaces/1/url"],
                r#"{"additionalInterfaces":
                    [{"url": "https://tides.example.com/a2a", "transport": "JSONRPC"}, {"transport": "HTTP+JSON"}]}"#,
            ).over("a2a-0.3"),
            silent(r#"{"supportedInterfaces": [{"url": "https://tides.example.com/v1"}]}"#),
        ],
        check: Check::Document(interface_url_required),
    }
}

fn interface_url_required(card: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    supported(card, context).chain(additional(card, context)).for_each(|interface| demand(interface, "url", out));
}

crate::rule! {
    /// An interface says what it speaks.
    ///
    /// Clients drop an interface whose binding they cannot know.
    static INTERFACE_BINDING_REQUIRED = {
        id: "a2a/interface-binding-required",
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        impact_evidence: "a2a-sdk 0.3.26 and 1.3.0, @a2a-js/sdk 1.3.0, 2026-11",
        clients: &["a2a-sdk 1.3.0: refuses (1.0)", "@a2a-js/sdk 1.3.0: refuses (1.0)"],
        rank: 10,
        versions: SINCE_0_2,
        on: &[Kind::AgentCard],
        place: "/supportedInterfaces/*/protocolBinding, /additionalInterfaces/*/transport",
        fix: "Add `protocolBinding` (1.0) or `transport` (0.3).",
        spec: "A2A 1.0 §4.4.6; 0.3 §5.5.5",
        seeds: &["gaip:A2A_INTERFACE_BINDING_MISSING", "reader:Missing required field"],
        examples: &[
            fires(
                &["/supportedInterfaces/0/protocolBinding"],
                r#"{"supportedInterfaces": [{"protocolBinding": null, "transport": "JSONRPC"}]}"#,
            ),
            fires(
                &["/additionalInterfaces/0/transport"],
                r#"{"additionalInterfaces": [{"url": "https://tides.example.com/a2a"}]}"#,
            ).over("a2a-0.3"),
            silent(r#"{"supportedInterfaces": [{"protocolBinding": "HTTP+JSON"}]}"#),
        ],
        check: Check::Document(interface_binding_required),
    }
}

fn interface_binding_required(card: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    supported(card, context).for_each(|interface| demand(interface, "protocolBinding", out));
    additional(card, context).for_each(|interface| demand(interface, "transport", out));
}

crate::rule! {
    /// An interface says which version it speaks.
    ///
    /// SDKs differ in what they take for granted. A version at the top of the card does not count for 1.0.
    static INTERFACE_VERSION_REQUIRED = {
        id: "a2a/interface-version-required",
        severity: Severity::Error,
        impact: Some(Impact::Degrades),
        impact_evidence: "a2a-sdk 0.3.26 and 1.3.0, @a2a-js/sdk 1.3.0, 2026-11",
        clients: &["a2a-sdk 1.3.0: limits (1.0)", "@a2a-js/sdk 1.3.0: limits (1.0)"],
        rank: 10,
        versions: &["1.0"],
        on: &[Kind::AgentCard],
        place: "/supportedInterfaces/*/protocolVersion",
        fix: "Add \"protocolVersion\": \"1.0\" to the interface.",
        spec: "A2A 1.0 §4.4.6, §3.6",
        seeds: &["gaip:A2A_PROTOCOL_VERSION_MISSING", "reader:Missing required field", "inspector:required-fields"],
        examples: &[
            fires(
                &["/supportedInterfaces/0/protocolVersion"],
                r#"{"supportedInterfaces": [{"protocolVersion": null}]}"#,
            ),
            silent(r#"{"supportedInterfaces": [{}, {"url": "https://tides.example.com/old", "protocolVersion": "0.3"}]}"#),
        ],
        check: Check::Document(interface_version_required),
    }
}

fn interface_version_required(card: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    supported(card, context).for_each(|interface| demand(interface, "protocolVersion", out));
}

crate::rule! {
    /// An interface's address is an absolute http or https URL.
    ///
    /// A relative path or a bare host name is no address that a client can call; where another interface has one, clients
    /// can still get in. Custom bindings may use schemes of their own; addresses of gRPC have a form of their own.
    static INTERFACE_URL_INVALID = {
        id: "a2a/interface-url-invalid",
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        impact_evidence: "no client can call it",
        versions: EVERY,
        on: &[Kind::AgentCard],
        place: "/supportedInterfaces/*/url, /additionalInterfaces/*/url, /url",
        fix: "Use the full https URL of the endpoint.",
        spec: "A2A 1.0 §4.4.6; 0.3 §5.5.5",
        seeds: &["gaip:A2A_INTERFACE_URL_INVALID", "reader:Not an absolute URL"],
        examples: &[
            fires(&["/supportedInterfaces/0/url"], r#"{"supportedInterfaces": [{"url": "/a2a"}]}"#),
            fires(&["/url"], r#"{"url": "tides.example.com/a2a"}"#).over("a2a-0.3"),
            fires(&["/url"], r#"{"url": "https://tides.example.com:70000/a2a"}"#).over("a2a-0.3"),
            silent(
                r#"{"supportedInterfaces":
                    [{}, {"url": "wss://tides.example.com/ws", "protocolBinding": "https://tides.example.com/ws/v1"}]}"#,
            ),
        ],
        yields_to: &["common/unsafe-url-scheme", "a2a/endpoint-placeholder", "a2a/no-endpoint-declared"],
        check: Check::Document(interface_url_invalid),
    }
}

fn interface_url_invalid(card: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    let has_way_in = endpoints(card, context).any(|endpoint| endpoint.can_be_called());
    for endpoint in endpoints(card, context).filter(|endpoint| !endpoint.can_be_called()) {
        let is_said_elsewhere = endpoint.is_new && is_blank(endpoint.text);
        if !is_said_elsewhere {
            let message = format!("{} is no absolute URL that can be called", quote(endpoint.text));
            let added = out.add(endpoint.url, message);
            if has_way_in {
                added.impact(Impact::Degrades);
            }
        }
    }
}

crate::rule! {
    /// An interface is called over TLS.
    ///
    /// Over plain http everybody on the way reads and changes what is said, credentials included.
    static PLAIN_HTTP = {
        id: "a2a/plain-http",
        severity: Severity::Error,
        impact: Some(Impact::Degrades),
        security: true,
        rank: 15,
        versions: EVERY,
        on: &[Kind::AgentCard],
        place: "/supportedInterfaces/*/url, /additionalInterfaces/*/url, /url",
        fix: "Use https.",
        spec: "A2A 1.0 §7.1, §4.4.6, §13.4",
        seeds: &["reader:Plain HTTP", "gaip:A2A_INTERFACE_URL_INVALID", "gaip:A2A_HTTPS_ENDPOINT_REQUIRED"],
        examples: &[
            fires(&["/supportedInterfaces/0/url"], r#"{"supportedInterfaces": [{"url": "http://tides.example.com/a2a"}]}"#),
            fires(&["/url"], r#"{"url": "HTTP://tides.example.com/a2a"}"#).over("a2a-0.3"),
            silent(r#"{"supportedInterfaces": [{"url": "https://tides.example.com/http://"}]}"#),
        ],
        yields_to: UNREACHABLE,
        check: Check::Document(plain_http),
    }
}

fn plain_http(card: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    for endpoint in endpoints(card, context) {
        if let Some(url) = AbsoluteUrl::parse(endpoint.text)
            && (url.is("http") || url.is("ws"))
            && !host_is_loopback(url.host)
        {
            out.add(endpoint.url, format!("{} is called without TLS", quote(endpoint.text)));
        }
    }
}

crate::rule! {
    /// An interface's address has no fragment.
    ///
    /// What stands behind `#` is never sent.
    static URL_FRAGMENT = {
        id: "a2a/url-fragment",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        basis: Basis::Hint,
        versions: EVERY,
        on: &[Kind::AgentCard],
        place: "/supportedInterfaces/*/url, /additionalInterfaces/*/url, /url",
        fix: "Remove the fragment.",
        spec: "RFC 3986 §3.5",
        seeds: &["gaip:A2A_INTERFACE_URL_INVALID"],
        examples: &[
            fires(&["/supportedInterfaces/0/url"], r#"{"supportedInterfaces": [{"url": "https://tides.example.com/a2a#"}]}"#),
            silent(r#"{"supportedInterfaces": [{"url": "https://tides.example.com/%23"}]}"#),
        ],
        yields_to: &[
            "common/unsafe-url-scheme", "a2a/endpoint-placeholder", "a2a/interface-url-invalid", "a2a/grpc-address",
        ],
        check: Check::Document(url_fragment),
    }
}

fn url_fragment(card: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    for endpoint in endpoints(card, context) {
        if endpoint.text.contains('#') {
            out.add(endpoint.url, format!("{} has a fragment", quote(endpoint.text)));
        }
    }
}

crate::rule! {
    /// The address was filled in.
    ///
    /// A template's placeholder or a documentation domain was published as it stood: nobody answers there. A name such as
    /// your-company.com can be registered by anybody, so there it is a guess, and a warning.
    static ENDPOINT_PLACEHOLDER = {
        id: "a2a/endpoint-placeholder",
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        impact_evidence: "no client can reach it",
        rank: 14,
        basis: Basis::Policy,
        versions: EVERY,
        on: &[Kind::AgentCard],
        place: "/supportedInterfaces/*/url, /additionalInterfaces/*/url, /url",
        fix: "Publish the real endpoint.",
        spec: "A2A 1.0 §4.4.6; 0.3 §5.5, §5.5.5; RFC 2606",
        seeds: &["gaip:A2A_INTERFACE_URL_INVALID"],
        examples: &[
            fires(&["/supportedInterfaces/0/url"], r#"{"supportedInterfaces": [{"url": "https://YOUR_HOST/a2a"}]}"#),
            fires(&["/url"], r#"{"url": "https://{BASE_URL}/a2a"}"#).over("a2a-0.3"),
            fires(&["/url"], r#"{"url": "https://api.Your-Domain.com/a2a"}"#).over("a2a-0.3"),
            fires(&["/url"], r#"{"url": "https://your-host/a2a"}"#).over("a2a-0.3"),
            fires(&["/supportedInterfaces/0/url"], r#"{"supportedInterfaces": [{"url": "https://tides.example.org/a2a"}]}"#)
                .given(r#"{"settings": {"a2a.example_domains_are_placeholders": true}}"#),
            silent(r#"{"supportedInterfaces": [{"url": "https://find-your-way.dev/a2a"}]}"#)
                .given(r#"{"settings": {"a2a.example_domains_are_placeholders": true}}"#),
            silent(r#"{"supportedInterfaces": [{"url": "https://example.community/todo"}]}"#)
                .given(r#"{"settings": {"a2a.example_domains_are_placeholders": true}}"#),
        ],
        yields_to: &["common/unsafe-url-scheme"],
        check: Check::Document(endpoint_placeholder),
    }
}

fn endpoint_placeholder(card: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    let example_domains = context.settings.a2a.example_domains_are_placeholders;
    for endpoint in endpoints(card, context) {
        match unfilled(endpoint.text, example_domains) {
            Some(Unfilled::Certainly) => {
                out.add(endpoint.url, format!("{} was never filled in", quote(endpoint.text)));
            }
            Some(Unfilled::Perhaps) => {
                out.add(endpoint.url, format!("{} looks as if it was never filled in", quote(endpoint.text)))
                    .severity(Severity::Warning)
                    .impact(Impact::Degrades);
            }
            None => {}
        }
    }
}

/// How sure it is that an address is a template's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unfilled {
    /// Nobody can have that host or write that address.
    Certainly,
    /// It is a name that somebody may have registered.
    Perhaps,
}

/// Words of templates, as they stand there in capitals.
const TEMPLATE_WORDS: &[&str] = &["YOUR", "REPLACE", "TODO", "CHANGEME", "PLACEHOLDER", "INSERT", "VOTRE", "IHRE"];

/// *Your*, in the languages in which templates were seen.
const YOUR: &[&str] = &["your", "votre", "ihre", "deine", "tuo", "tu", "seu"];

/// What is yours.
const THING: &[&str] = &[
    "domain", "domaine", "dominio", "host", "server", "serveur", "agent", "app", "service", "url", "endpoint",
    "company",
];

fn unfilled(text: &str, example_domains: bool) -> Option<Unfilled> {
    let template = text.contains(['{', '}', '<', '>']);
    let word = |word: &str| TEMPLATE_WORDS.contains(&word);
    if template || text.split(|c: char| !c.is_alphabetic()).any(word) {
        return Some(Unfilled::Certainly);
    }
    let host = host_of(text).to_ascii_lowercase();
    let host = host.strip_suffix('.').unwrap_or(&host);
    if is_reserved(host, example_domains) {
        return Some(Unfilled::Certainly);
    }
    // A single label, or one with a letter that names have not, is nobody's.
    let is_registrable = host.contains('.') && !host.contains('_');
    host.split('.').any(is_your_thing).then_some(if is_registrable { Unfilled::Perhaps } else { Unfilled::Certainly })
}

/// The host of a URL, or of `host:port` and `host/path`.
pub(super) fn host_of(text: &str) -> &str {
    match AbsoluteUrl::parse(text) {
        Some(url) => url.host,
        None => text.split(['/', ':', '?', '#']).next().unwrap_or_default(),
    }
}

/// Whether a label of a host is `your-domain` and the like.
fn is_your_thing(label: &str) -> bool {
    YOUR.iter()
        .filter_map(|your| label.strip_prefix(your))
        .any(|thing| THING.contains(&thing.strip_prefix(['-', '_']).unwrap_or(thing)))
}

/// Whether a host belongs to a name that is reserved for documentation or tests.
fn is_reserved(host: &str, example_domains: bool) -> bool {
    let under =
        |domain: &str| host.strip_suffix(domain).is_some_and(|before| before.is_empty() || before.ends_with('.'));
    let ends = |name: &str| host.strip_suffix(name).is_some_and(|before| before.ends_with('.'));
    ends("test")
        || ends("invalid")
        || (example_domains
            && (ends("example") || under("example.com") || under("example.org") || under("example.net")))
}

/// Last path segments that are documents or health pages.
const DOCUMENTS: &[&str] = &[
    "agent-card.json",
    "agent.json",
    "llms.txt",
    "openapi.json",
    "swagger.json",
    "docs",
    "redoc",
    "health",
    "healthz",
];

crate::rule! {
    /// The address is that of an endpoint, not of a document.
    ///
    /// The card itself, a documentation page or a health check takes no A2A request.
    static ENDPOINT_NOT_AN_ENDPOINT = {
        id: "a2a/endpoint-not-an-endpoint",
        severity: Severity::Warning,
        impact: Some(Impact::Degrades),
        impact_evidence: "loads everywhere, no call can succeed",
        basis: Basis::Hint,
        versions: EVERY,
        on: &[Kind::AgentCard],
        place: "/supportedInterfaces/*/url, /additionalInterfaces/*/url, /url",
        fix: "Give the URL that takes A2A requests.",
        spec: "A2A 1.0 §4.4.6",
        examples: &[
            fires(&["/supportedInterfaces/0/url"], r#"{"supportedInterfaces": [{"url": "https://tides.example.com/Docs?x=1"}]}"#),
            fires(&["/url"], r#"{"url": "https://tides.example.com/README.md"}"#).over("a2a-0.3"),
            silent(r#"{"supportedInterfaces": [{"url": "https://tides.example.com/docs/a2a"}]}"#),
        ],
        yields_to: UNREACHABLE,
        check: Check::Document(endpoint_not_an_endpoint),
    }
}

fn endpoint_not_an_endpoint(card: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    for endpoint in endpoints(card, context) {
        let Some(url) = AbsoluteUrl::parse(endpoint.text) else { continue };
        let last = url.path.rsplit('/').next().unwrap_or_default().to_ascii_lowercase();
        let ending = last.rsplit_once('.').map_or("", |(_, ending)| ending);
        if DOCUMENTS.contains(&last.as_str()) || matches!(ending, "md" | "html" | "yaml" | "txt") {
            out.add(endpoint.url, format!("{} is a document or a health page", quote(endpoint.text)));
        }
    }
}

crate::rule! {
    /// A gRPC address is host and port, or an https URL.
    ///
    /// The released text of 1.0 has the URL, its main branch the other form; nothing else can be dialled.
    static GRPC_ADDRESS = {
        id: "a2a/grpc-address",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: &["1.0"],
        on: &[Kind::AgentCard],
        place: "/supportedInterfaces/*/url",
        fix: "Write an absolute https URL (released 1.0 text) or host:port, for example grpc.example.com:443.",
        spec: "A2A 1.0 §4.4.6",
        seeds: &["reader:gRPC address format"],
        examples: &[
            fires(
                &["/supportedInterfaces/1/url"],
                r#"{"supportedInterfaces": [{}, {"url": "tides.example.com", "protocolBinding": "GRPC"}]}"#,
            ),
            fires(
                &["/supportedInterfaces/1/url"],
                r#"{"supportedInterfaces": [{}, {"url": "grpc://tides.example.com:443", "protocolBinding": "GRPC"}]}"#,
            ),
            silent(r#"{"supportedInterfaces": [{}, {"url": "[2001:db8::7]:443", "protocolBinding": "GRPC"}]}"#),
        ],
        yields_to: &["common/unsafe-url-scheme", "a2a/endpoint-placeholder"],
        check: Check::Document(grpc_address),
    }
}

fn grpc_address(card: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    for endpoint in new_grpc(card, context) {
        let text = endpoint.text;
        if !is_blank(text) && !is_https(text) && !is_host_and_port(text) {
            out.add(endpoint.url, format!("{} is neither host:port nor an https URL", quote(text)));
        }
    }
}

fn new_grpc<'d>(card: Node<'d>, context: &Context<'_>) -> impl Iterator<Item = Endpoint<'d>> {
    endpoints(card, context).filter(|endpoint| endpoint.is_new && endpoint.core() == Some(Core::Grpc))
}

fn is_https(text: &str) -> bool {
    AbsoluteUrl::parse(text).is_some_and(|url| url.is("https"))
}

fn is_host_and_port(text: &str) -> bool {
    if text.contains(['/', '\\', '?', '#', '@']) {
        return false;
    }
    AbsoluteUrl::parse(&format!("grpc://{text}")).is_some_and(|url| url.port.is_some_and(|port| port > 0))
}

crate::rule! {
    /// A gRPC address is given as a URL.
    ///
    /// The next text of the specification writes host and port instead.
    static GRPC_URL_STYLE = {
        id: "a2a/grpc-url-style",
        basis: Basis::Hint,
        versions: &["1.0"],
        on: &[Kind::AgentCard],
        place: "/supportedInterfaces/*/url",
        fix: "Write the address as host:port.",
        spec: "A2A 1.0 §4.4.6 (main branch, July 2026)",
        seeds: &["reader:gRPC address format"],
        examples: &[
            fires(
                &["/supportedInterfaces/1/url"],
                r#"{"supportedInterfaces": [{}, {"url": "https://tides.example.com/grpc", "protocolBinding": "GRPC"}]}"#,
            ),
            silent(r#"{"supportedInterfaces": [{}, {"url": "tides.example.com:443", "protocolBinding": "GRPC"}]}"#),
        ],
        yields_to: &["a2a/endpoint-placeholder"],
        check: Check::Document(grpc_url_style),
    }
}

fn grpc_url_style(card: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    for endpoint in new_grpc(card, context).filter(|endpoint| is_https(endpoint.text)) {
        out.add(endpoint.url, format!("{} is a URL, not host:port", quote(endpoint.text)));
    }
}

/// The bindings of the 1.0 interfaces that say something.
fn bindings<'d>(card: Node<'d>, context: &Context<'_>) -> impl Iterator<Item = (Node<'d>, &'d str)> {
    supported(card, context)
        .filter_map(|interface| interface.get("protocolBinding"))
        .filter_map(|node| Some((node, node.text()?)))
        .filter(|(_, text)| !is_blank(text))
}

crate::rule! {
    /// A core binding is spelled exactly.
    ///
    /// Clients compare letter by letter: an interface of `jsonrpc` is of an unknown kind to them.
    static BINDING_MISSPELLED = {
        id: "a2a/binding-misspelled",
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        impact_evidence: "a2a-sdk 0.3.26 and 1.3.0, @a2a-js/sdk 1.3.0, 2026-11",
        clients: &["a2a-sdk 1.3.0: refuses (1.0)"],
        rank: 11,
        versions: &["1.0"],
        on: &[Kind::AgentCard],
        place: "/supportedInterfaces/*/protocolBinding",
        fix: "Use the exact spelling JSONRPC, GRPC or HTTP+JSON.",
        spec: "A2A 1.0 §4.4.6",
        seeds: &["reader:Misspelled core binding", "gaip:A2A_INTERFACE_BINDING_UNRECOGNISED"],
        examples: &[
            fires(
                &["/supportedInterfaces/0/protocolBinding"],
                r#"{"supportedInterfaces": [{"protocolBinding": "JSON-RPC 2.0"}]}"#,
            ),
            fires(&["/supportedInterfaces/0/protocolBinding"], r#"{"supportedInterfaces": [{"protocolBinding": "HTTP-JSON"}]}"#),
            silent(r#"{"supportedInterfaces": [{"protocolBinding": "HTTP+JSON"}]}"#),
        ],
        check: Check::Document(binding_misspelled),
    }
}

fn binding_misspelled(card: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    for (node, text) in bindings(card, context).filter(|(_, text)| Core::exact(text).is_none()) {
        if let Some(core) = Core::meant(text) {
            out.add(node, format!("{} should be `{}`", quote(text), core.as_str()));
        }
    }
}

crate::rule! {
    /// A custom binding is named by a URI.
    ///
    /// A bare word such as `REST` can mean anything; two agents that use it need not understand each other.
    static BINDING_NOT_URI = {
        id: "a2a/binding-not-uri",
        severity: Severity::Warning,
        impact: Some(Impact::Degrades),
        versions: &["1.0"],
        on: &[Kind::AgentCard],
        place: "/supportedInterfaces/*/protocolBinding",
        fix: "Use a URI that identifies the custom binding.",
        spec: "A2A 1.0 §5.8, §12.7",
        seeds: &["reader:Custom binding is not a URI", "gaip:A2A_INTERFACE_BINDING_UNRECOGNISED"],
        examples: &[
            fires(
                &["/supportedInterfaces/1/protocolBinding"],
                r#"{"supportedInterfaces": [{}, {"url": "https://tides.example.com/rest", "protocolBinding": "REST"}]}"#,
            ),
            silent(r#"{"supportedInterfaces": [{}, {"url": "https://tides.example.com/ws", "protocolBinding": "urn:tides:ws:1"}]}"#),
        ],
        check: Check::Document(binding_not_uri),
    }
}

fn binding_not_uri(card: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    let odd = |text: &str| Core::exact(text).or(Core::meant(text)).is_none() && !is_absolute_uri(text);
    let mut strange = bindings(card, context).filter(|(_, text)| odd(text)).peekable();
    if strange.peek().is_some() && !lacks_common_transport(card, context) {
        for (node, text) in strange {
            out.add(node, format!("{} is no core binding and no URI", quote(text)));
        }
    }
}

crate::rule! {
    /// The agent has a binding of its own.
    ///
    /// Only clients made for it can use that interface.
    static BINDING_CUSTOM = {
        id: "a2a/binding-custom",
        class: Class::Fact,
        versions: &["1.0"],
        on: &[Kind::AgentCard],
        place: "/supportedInterfaces/*/protocolBinding",
        fix: "None needed; declare a core binding too for reach.",
        spec: "A2A 1.0 §5.8",
        seeds: &["reader:Custom binding"],
        examples: &[
            fires(
                &["/supportedInterfaces/1/protocolBinding"],
                r#"{"supportedInterfaces": [{}, {"url": "wss://tides.example.com", "protocolBinding": "https://tides.example.com/ws"}]}"#,
            ),
            silent(r#"{"supportedInterfaces": [{"protocolBinding": "HTTP+JSON"}]}"#),
        ],
        check: Check::Document(binding_custom),
    }
}

fn binding_custom(card: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    for (node, text) in bindings(card, context) {
        if Core::meant(text).is_none() && is_absolute_uri(text) {
            out.add(node, format!("{} is a binding of its own", quote(text)));
        }
    }
}

/// The transports of the older half that say something.
fn transports<'d>(card: Node<'d>, context: &Context<'_>) -> impl Iterator<Item = (Node<'d>, &'d str)> {
    let main = card.get("preferredTransport").filter(|_| context.profile.name != "a2a-1.0");
    let main = main.filter(|node| node.text().is_some_and(|text| !is_blank(text)));
    let further = additional(card, context).filter_map(|interface| interface.get("transport"));
    main.into_iter().chain(further).filter_map(|node| Some((node, node.text()?)))
}

crate::rule! {
    /// A transport of 0.3 is one of the three.
    ///
    /// A client skips what it does not know, and looks at letters as they are. A transport named by a URI is an extension
    /// that its author knows to be one.
    static TRANSPORT_UNRECOGNISED = {
        id: "a2a/transport-unrecognised",
        severity: Severity::Warning,
        impact: Some(Impact::Degrades),
        impact_evidence: "a2a-sdk 1.3.0, 2026-11",
        clients: &["a2a-sdk 1.3.0: limits (0.3)"],
        rank: 11,
        versions: &["0.3"],
        on: &[Kind::AgentCard],
        place: "/preferredTransport, /additionalInterfaces/*/transport",
        fix: "Use JSONRPC, GRPC or HTTP+JSON.",
        spec: "A2A 0.3 §5.5.5",
        seeds: &["gaip:A2A_PREFERRED_TRANSPORT_UNRECOGNISED", "gaip:A2A_INTERFACE_BINDING_UNRECOGNISED"],
        examples: &[
            fires(&["/preferredTransport"], r#"{"preferredTransport": "jsonrpc"}"#),
            fires(
                &["/additionalInterfaces/1/transport"],
                r#"{"additionalInterfaces": [{"url": "https://tides.example.com/a2a", "transport": "JSONRPC"},
                    {"url": "https://tides.example.com/rest", "transport": "REST"}]}"#,
            ),
            silent(r#"{"preferredTransport": "HTTP+JSON"}"#),
            silent(
                r#"{"additionalInterfaces": [{"url": "https://tides.example.com/a2a", "transport": "JSONRPC"},
                    {"url": "wss://tides.example.com/ws", "transport": "https://tides.example.com/ext/ws/v1"}]}"#,
            ),
        ],
        yields_to: &["a2a/no-common-transport"],
        check: Check::Document(transport_unrecognised),
    }
}

fn transport_unrecognised(card: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    let is_strange = |text: &str| Core::exact(text).is_none() && !is_absolute_uri(text);
    let mut strange = transports(card, context).filter(|(_, text)| is_strange(text)).peekable();
    if strange.peek().is_some() && !lacks_common_transport(card, context) {
        for (node, text) in strange {
            out.add(node, format!("{} is none of JSONRPC, GRPC and HTTP+JSON", quote(text)));
        }
    }
}

crate::rule! {
    /// At least one interface speaks what clients speak.
    ///
    /// With `REST` or a custom binding alone no released client has a way in. 0.3 says that agents MUST implement one of
    /// the three (§3.1) and, a section on, that they SHOULD and may do with an extension (§3.2): the milder counts.
    static NO_COMMON_TRANSPORT = {
        id: "a2a/no-common-transport",
        severity: Severity::Warning,
        impact: Some(Impact::BreaksClients),
        impact_evidence: "a2a-sdk 1.3.0, @a2a-js/sdk 1.3.0, 2026-11",
        clients: &["a2a-sdk 0.3.26: refuses (0.3)", "a2a-sdk 1.3.0: refuses (0.3, 1.0)", "@a2a-js/sdk 1.3.0: refuses (0.3, 1.0)"],
        versions: SINCE_0_2,
        on: &[Kind::AgentCard],
        place: "/supportedInterfaces, /preferredTransport",
        fix: "Declare JSONRPC, HTTP+JSON or GRPC for at least one interface.",
        spec: "A2A 1.0 §4.4.6, §5.8; 0.3 §3.1, §3.2, §5.5.5, §5.6",
        seeds: &["gaip:A2A_INTERFACE_BINDING_UNRECOGNISED", "gaip:A2A_PREFERRED_TRANSPORT_UNRECOGNISED"],
        examples: &[
            fires(
                &["/supportedInterfaces"],
                r#"{"supportedInterfaces": [{"url": "wss://tides.example.com", "protocolBinding": "urn:tides:ws"}]}"#,
            ),
            fires(&["/preferredTransport"], r#"{"preferredTransport": "REST"}"#).over("a2a-0.3"),
            silent(r#"{"supportedInterfaces": [{}, {"url": "wss://tides.example.com", "protocolBinding": "urn:tides:ws"}]}"#),
        ],
        check: Check::Document(no_common_transport),
    }
}

fn no_common_transport(card: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    if lacks_common_transport(card, context) {
        let message = "no interface speaks JSONRPC, HTTP+JSON or GRPC";
        match card.given("supportedInterfaces") {
            Some(interfaces) => drop(out.add(interfaces, message)),
            None => drop(out.add_missing(card, "preferredTransport", message)),
        }
    }
}

/// Whether interfaces are declared, all say what they speak, and none of it is a core binding in any spelling.
fn lacks_common_transport(card: Node<'_>, context: &Context<'_>) -> bool {
    let of = |object: Node<'_>, member: &str| {
        let text = object.given(member).and_then(Node::text).filter(|text| !is_blank(text));
        text.is_some_and(|text| Core::meant(text).is_none())
    };
    let main = context.profile.name != "a2a-1.0" && card.given("url").is_some();
    let mut interfaces = supported(card, context)
        .map(|interface| of(interface, "protocolBinding"))
        .chain(additional(card, context).map(|interface| of(interface, "transport")))
        .chain(main.then(|| of(card, "preferredTransport")))
        .peekable();
    interfaces.peek().is_some() && interfaces.all(|is_uncommon| is_uncommon)
}

crate::rule! {
    /// An address of 0.3 has one transport.
    ///
    /// Two texts of 0.3 contradict each other about that, and few servers answer both at one address.
    static TRANSPORT_CONFLICT = {
        id: "a2a/transport-conflict",
        severity: Severity::Warning,
        impact: Some(Impact::Degrades),
        versions: &["0.3"],
        on: &[Kind::AgentCard],
        place: "/additionalInterfaces/*/url",
        fix: "Give each transport its own URL, or check that the URL serves both.",
        spec: "A2A 0.3 §5.6.2, §5.6.4",
        examples: &[
            fires(
                &["/additionalInterfaces/1/url"],
                r#"{"additionalInterfaces": [{"url": "https://tides.example.com/a2a", "transport": "JSONRPC"},
                    {"url": "https://tides.example.com:443/a2a", "transport": "GRPC"}]}"#,
            ),
            silent(r#"{"additionalInterfaces": [{"url": "https://tides.example.com/a2a", "transport": "JSONRPC"},
                {"url": "https://tides.example.com/A2A", "transport": "GRPC"}]}"#),
        ],
        check: Check::Document(transport_conflict),
    }
}

fn transport_conflict(card: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    let mut seen = HashMap::new();
    if let (Some(url), Some(transport)) = (card.get("url").and_then(Node::text), main_transport(card)) {
        seen.insert(comparable(url), transport);
    }
    for interface in additional(card, context) {
        let text = |member| interface.get(member).and_then(Node::text);
        let (Some(url), Some(transport)) = (text("url"), text("transport")) else { continue };
        let first = *seen.entry(comparable(url)).or_insert(transport);
        if first != transport
            && let Some(node) = interface.get("url")
        {
            out.add(node, format!("has transport {} here and {} before", quote(transport), quote(first)));
        }
    }
}

/// The transport of the main url: JSONRPC when none is named, `None` when it cannot be read.
fn main_transport(card: Node<'_>) -> Option<&str> {
    match card.given("preferredTransport") {
        Some(node) => node.text().map(|text| if is_blank(text) { "JSONRPC" } else { text }),
        None => Some("JSONRPC"),
    }
}

crate::rule! {
    /// The further interfaces of 0.3 repeat the main one.
    ///
    /// Clients that choose from the list alone would miss it.
    static MAIN_INTERFACE_MISSING = {
        id: "a2a/main-interface-missing",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        versions: &["0.3"],
        on: &[Kind::AgentCard],
        place: "/additionalInterfaces",
        fix: "Add the main endpoint to the list.",
        spec: "A2A 0.3 §5.6.2, §5.6.4",
        examples: &[
            fires(
                &["/additionalInterfaces"],
                r#"{"additionalInterfaces": [{"url": "https://tides.example.com/rest", "transport": "HTTP+JSON"}]}"#,
            ),
            silent(r#"{"additionalInterfaces": [{"url": "https://tides.example.com/rest", "transport": "HTTP+JSON"},
                {"url": "https://TIDES.example.com/a2a", "transport": "JSONRPC"}]}"#),
        ],
        check: Check::Document(main_interface_missing),
    }
}

fn main_interface_missing(card: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    let (Some(list), Some(url), Some(transport)) =
        (card.given("additionalInterfaces"), card.get("url").and_then(Node::text), main_transport(card))
    else {
        return;
    };
    let (main, count) = (comparable(url), list.items().count());
    let says = |interface: Node<'_>, member: &str, wanted: &dyn Fn(&str) -> bool| match interface.given(member) {
        // What has no transport is a2a/interface-binding-required's and counts as the right one.
        None => member == "transport",
        Some(node) => node.text().is_none_or(wanted),
    };
    let is_main = |interface: Node<'_>| {
        says(interface, "url", &|text| comparable(text) == main)
            && says(interface, "transport", &|text| text == transport)
    };
    let all_readable = additional(card, context).count() == count;
    if count > 0 && all_readable && !is_blank(url) && !additional(card, context).any(is_main) {
        out.add(list, "the main url with its transport is not among them");
    }
}

crate::rule! {
    /// An interface is listed twice.
    ///
    /// Harmless, and one of the two can go. Entries for different tenants are different interfaces.
    static INTERFACE_DUPLICATE = {
        id: "a2a/interface-duplicate",
        basis: Basis::Hint,
        versions: SINCE_0_2,
        on: &[Kind::AgentCard],
        place: "/supportedInterfaces/*, /additionalInterfaces/*",
        fix: "Remove the repeated entry.",
        spec: "not in A2A",
        seeds: &["reader:Duplicate interface"],
        examples: &[
            fires(&["/supportedInterfaces/1"], r#"{"supportedInterfaces": [{}, {"url": "https://tides.example.com:443/a2a"}]}"#),
            silent(r#"{"supportedInterfaces": [{}, {"tenant": "north"}]}"#),
        ],
        check: Check::Document(interface_duplicate),
    }
}

fn interface_duplicate(card: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    report_repeated(supported(card, context), &["protocolBinding", "protocolVersion", "tenant"], out);
    report_repeated(additional(card, context), &["transport"], out);
}

fn report_repeated<'d>(interfaces: impl Iterator<Item = Node<'d>>, members: &[&str], out: &mut Occurrences) {
    let interfaces: Vec<_> = interfaces.collect();
    if interfaces.len() < 2 {
        return;
    }
    let mut seen = HashSet::new();
    for interface in interfaces {
        let Some(url) = interface.get("url").and_then(Node::text) else { continue };
        let rest: Vec<_> = members.iter().map(|member| interface.given(member).map(Node::raw)).collect();
        if !seen.insert((comparable(url), rest)) {
            out.add(interface, format!("{} is listed before with the same members", quote(url)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_told_from_names() {
        for text in [
            "https://YOUR_CLOUD_RUN_URL_HERE/a2a",
            "https://{BASE_URL}/api",
            "https://<host>/a2a",
            "https://your-domain/a2a",
            "https://api.your_company.io",
            "https://agent.test/a2a",
            "https://x.invalid./",
            "https://x.dev/CHANGEME",
            "https://your-agent.example.invalid",
        ] {
            assert_eq!(unfilled(text, false), Some(Unfilled::Certainly), "{text}");
        }
        for text in [
            "https://votre-domaine.fr/a2a",
            "https://yourdomain.com",
            "https://youragent.ai/a2a",
            "https://tuapp.com/a2a",
            "https://your-company.com/rpc",
            "https://your-agent.tides.dev/a2a",
            "your-domain.com/a2a",
            "grpc.your-agent.com:443",
        ] {
            assert_eq!(unfilled(text, true), Some(Unfilled::Perhaps), "{text}");
        }
        for text in [
            "https://yourtube.dev/a2a",
            "https://find-your-way.dev/a2a",
            "https://todo.tidewatch.dev/a2a",
            "https://example.community/a2a",
            "https://myexample.com",
            "https://latest.dev/test",
            "https://tides.dev/your-domain",
            "https://YOURS.dev",
            "",
        ] {
            assert_eq!(unfilled(text, true), None, "{text}");
        }
        for text in ["https://tides.EXAMPLE.com/", "https://tides.example"] {
            assert_eq!(unfilled(text, true), Some(Unfilled::Certainly), "{text}");
            assert_eq!(unfilled(text, false), None, "{text}");
        }
    }

    #[test]
    fn bindings_are_known_in_every_spelling() {
        for text in ["jsonrpc", "JSON-RPC", "JSON-RPC 2.0", "JSONRPC2", "HTTP-JSON", "http+json", "gRPC"] {
            assert!(Core::exact(text).is_none() && Core::meant(text).is_some(), "{text}");
        }
        for text in ["REST", "HTTP", "JSON", "websocket", "urn:jsonrpc", "JSONRPC 3.0", ""] {
            assert_eq!(Core::meant(text), None, "{text}");
        }
    }

    #[test]
    fn grpc_addresses_have_a_port() {
        for text in ["tides.example.com:443", "[2001:db8::7]:443", "10.0.0.1:1"] {
            assert!(is_host_and_port(text), "{text}");
        }
        for text in [
            "tides.example.com",
            "tides.example.com:0",
            "tides.example.com:65536",
            "a:b:1",
            "x:443/path",
            ":443",
            "[::1]",
        ] {
            assert!(!is_host_and_port(text), "{text}");
        }
    }
}
