//! Where an interface is served.

use super::{OPENAPI, V3};
use crate::document::{Node, Type};
use crate::judge::{Context, Occurrences};
use crate::report::NotEvaluated;
use crate::rule::{Basis, Check, Impact, Rule, Severity, Stops, fires, silent};
use crate::text::{AbsoluteUrl, Variable, host_is_loopback, quote, variables};

pub(super) const RULES: &[&Rule] =
    &[&SERVER_INVALID, &SERVER_VARIABLE_UNDEFINED, &SERVER_PLACEHOLDER_HOST, &HTTPS_SERVER_REQUIRED];

crate::rule! {
    /// Every server is an object with an address.
    ///
    /// A caller builds each request on it.
    static SERVER_INVALID = {
        id: "openapi/server-invalid",
        severity: Severity::Error,
        impact: Some(Impact::Degrades),
        versions: V3,
        on: OPENAPI,
        place: "/servers | /servers/* | /servers/*/url",
        spec: "OpenAPI 3.1.1 Server Object",
        fix: "Write servers as an array of {url}.",
        seeds: &["gaip:OPENAPI_HTTPS_SERVER_REQUIRED"],
        examples: &[
            fires(&["/servers"], r#"{"servers": "https://api.tides.plumbtest.dev"}"#),
            fires(&["/servers/0/url"], r#"{"servers": [{"url": null}, {}]}"#),
            fires(&["/servers/0/url"], r#"{"servers": [{"url": "https://api tides"}, {}]}"#),
            silent(r#"{"servers": [{"url": "/v2"}, {}]}"#),
        ],
        stops: Stops::Value,
        check: Check::Document(server_invalid),
    }
}

fn server_invalid(root: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let Some(servers) = root.get("servers") else { return };
    if servers.kind() != Type::Array {
        out.add(servers, format!("`servers` is {}, not an array", servers.kind().named()));
    }
    for server in servers.items() {
        if server.kind() != Type::Object {
            out.add(server, format!("a server is {}, not an object", server.kind().named()));
            continue;
        }
        match server.get("url") {
            None => {
                out.add_missing(server, "url", "the server has no `url`");
            }
            Some(url) => match url.text() {
                None => {
                    out.add(url, format!("the `url` is {}, not a string", url.kind().named()));
                }
                Some("") => {
                    out.add(url, "the `url` is empty");
                }
                Some(text) if !is_reference(&substituted(server, text)) => {
                    out.add(url, format!("{} is no address", quote(text)));
                }
                Some(_) => {}
            },
        }
    }
}

/// Whether a text reads as an absolute or relative reference. What a variable would put in is not held against it.
fn is_reference(text: &str) -> bool {
    if text.contains('{') {
        return true;
    }
    let plain = !text.chars().any(|c| c.is_whitespace() || c.is_control());
    plain && (!text.contains("://") || AbsoluteUrl::parse(text).is_some())
}

crate::rule! {
    /// Every variable in a server's address is defined, with a default.
    ///
    /// A caller that is told nothing fills in the default; without one there is no address.
    static SERVER_VARIABLE_UNDEFINED = {
        id: "openapi/server-variable-undefined",
        severity: Severity::Error,
        impact: Some(Impact::Degrades),
        versions: V3,
        on: OPENAPI,
        place: "/servers/*/variables | /servers/*/variables/*",
        spec: "OpenAPI 3.1.1 Server Variable Object; Spectral oas3-server-variables; Redocly no-undefined-server-variable",
        fix: "Define the variable with a default.",
        examples: &[
            fires(&["/servers/0/variables"], r#"{"servers": [{"url": "https://{region}.tides.plumbtest.dev"}]}"#),
            fires(
                &["/servers/0/variables/region"],
                r#"{"servers": [{"url": "https://{region}.tides.plumbtest.dev",
                "variables": {"region": {"enum": ["eu"], "default": "us"}}}]}"#,
            ),
            silent(
                r#"{"servers": [{"url": "https://{region}.tides.plumbtest.dev",
                "variables": {"region": {"enum": ["eu", "us"], "default": "us"}}}]}"#,
            ),
        ],
        check: Check::Each(&["/servers/*"], server_variable_undefined),
    }
}

fn server_variable_undefined(server: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let defined = server.get("variables");
    let undefined = |name: &&str| defined.and_then(|defined| defined.get(name)).is_none();
    if let Some(text) = server.get("url").and_then(Node::text)
        && let Some(name) = variables_of(text).map(|variable| variable.name).find(undefined)
    {
        let message = format!("the variable {} is not defined", quote(name));
        match defined {
            Some(defined) => out.add(defined, message),
            None => out.add_missing(server, "variables", message),
        };
    }
    for (name, variable) in defined.into_iter().flat_map(Node::members) {
        if let Some(what) = fault_of_variable(variable) {
            out.add(variable, format!("the variable {} {what}", quote(name)));
        }
    }
}

fn fault_of_variable(variable: Node<'_>) -> Option<&'static str> {
    let Some(default) = variable.get("default").and_then(Node::text) else { return Some("has no default") };
    let values = variable.get("enum")?;
    if values.items().next().is_none() {
        Some("has an empty `enum`")
    } else if values.items().all(|value| value.text() != Some(default)) {
        Some("has a default that its `enum` lacks")
    } else {
        None
    }
}

/// Variables in one address beyond this many are left alone; real addresses have up to five.
const MOST_VARIABLES: usize = 32;

fn variables_of(address: &str) -> impl Iterator<Item = Variable<'_>> {
    variables(address).take(MOST_VARIABLES)
}

/// An address with the defaults of its variables put in. A variable without one stays as it is.
fn substituted(server: Node<'_>, text: &str) -> String {
    let mut address = String::with_capacity(text.len());
    let mut from = 0;
    for variable in variables_of(text) {
        if let Some(default) = default_of(server, variable.name) {
            address.push_str(&text[from..variable.before.len()]);
            address.push_str(default);
            from = text.len() - variable.after.len();
        }
    }
    address.push_str(&text[from..]);
    address
}

fn default_of<'d>(server: Node<'d>, name: &str) -> Option<&'d str> {
    server.get("variables")?.get(name)?.get("default")?.text()
}

crate::rule! {
    /// The server is a real one.
    ///
    /// Names that are set aside for examples answer nobody, or answer for somebody else.
    static SERVER_PLACEHOLDER_HOST = {
        id: "openapi/server-placeholder-host",
        severity: Severity::Warning,
        impact: Some(Impact::Degrades),
        basis: Basis::Hint,
        versions: V3,
        on: OPENAPI,
        place: "/servers/*/url",
        spec: "Spectral oas3-server-not-example.com; Redocly no-server-example.com",
        fix: "Publish the real host.",
        examples: &[
            fires(&["/servers/0/url"], r#"{"servers": [{"url": "https://api.example.com/v1"}]}"#),
            silent(r#"{"servers": [{"url": "http://localhost:8080"}, {}]}"#),
        ],
        check: Check::Each(&["/servers/*"], server_placeholder_host),
    }
}

fn server_placeholder_host(server: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let Some((url, text)) = server.get("url").and_then(|url| Some((url, url.text()?))) else { return };
    let address = substituted(server, text);
    if AbsoluteUrl::parse(&address).is_some_and(|url| is_placeholder(url.host)) {
        out.add(url, format!("{} is a name for examples", quote(text)));
    }
}

fn is_placeholder(host: &str) -> bool {
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    let is_or_below = |name: &str| host.strip_suffix(name).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
    [".example", ".test", ".invalid"].iter().any(|end| host.ends_with(end))
        || ["example.com", "example.org", "example.net"].into_iter().any(is_or_below)
}

crate::rule! {
    /// At least one server is reached over https.
    ///
    /// Credentials and answers pass through it. OpenAPI itself takes any address; this is our demand. Addresses are read with the defaults of their variables, relative ones from
    /// the place the document was fetched from; a server on this machine may do without.
    static HTTPS_SERVER_REQUIRED = {
        id: "openapi/https-server-required",
        severity: Severity::Error,
        impact: Some(Impact::Degrades),
        basis: Basis::Policy,
        versions: V3,
        on: OPENAPI,
        place: "/servers",
        spec: "policy",
        fix: "Declare an https server.",
        seeds: &["gaip:OPENAPI_HTTPS_SERVER_REQUIRED"],
        examples: &[
            fires(&["/servers"], r#"{"servers": [{"url": "http://api.tides.plumbtest.dev"}]}"#),
            fires(&["/servers"], r#"{"servers": null}"#).given(r#"{"url": "http://tides.plumbtest.dev/openapi.json"}"#),
            silent(r#"{"servers": [{"url": "http://localhost:3000"}, {}]}"#),
            silent(r#"{"servers": [{"url": "/v1"}]}"#),
        ],
        check: Check::Document(https_server_required),
    }
}

fn https_server_required(root: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    let from = context.given.url.as_deref().and_then(|url| url::Url::parse(url).ok());
    if from.as_ref().and_then(|url| url.host_str()).is_some_and(host_is_loopback) {
        return;
    }
    let mut addresses: Vec<String> = Vec::new();
    for server in root.get("servers").into_iter().flat_map(Node::items) {
        let Some(text) = server.get("url").and_then(Node::text) else { return };
        addresses.push(substituted(server, text));
    }
    if addresses.is_empty() {
        addresses.push("/".to_owned());
    }
    let resolved: Option<Vec<String>> = addresses
        .iter()
        .map(|address| match (AbsoluteUrl::parse(address), &from) {
            (Some(_), _) => Some(address.clone()),
            (None, Some(from)) => Some(from.join(address).map(String::from).unwrap_or_default()),
            (None, None) => None,
        })
        .collect();
    let is_https = |address: &String| AbsoluteUrl::parse(address).is_some_and(|url| url.is("https"));
    if addresses.iter().any(is_https) {
        return;
    }
    let Some(resolved) = resolved else { return out.not_evaluated(NotEvaluated::NoOrigin) };
    let is_here = |address: &String| AbsoluteUrl::parse(address).is_some_and(|url| host_is_loopback(url.host));
    if resolved.iter().any(is_https) {
        return;
    }
    let Some(plain) = resolved.iter().find(|address| !is_here(address)) else { return };
    let message = format!("no server is reached over https; the first is {}", quote(plain));
    match root.get("servers") {
        Some(servers) => out.add(servers, message),
        None => out.add_missing(root, "servers", message),
    };
}
