//! Icons of servers, tools, resources and prompts.

use super::{HANDSHAKES_AND_LISTS, SINCE_2025_11};
use super::{listed, server_info};
use crate::document::{Node, Type};
use crate::judge::{Context, Occurrences};
use crate::report::NotEvaluated;
use crate::rule::{Basis, Check, Impact, Rule, Severity, Stops, fires, silent};
use crate::text::{AbsoluteUrl, host_is_loopback, quote, same_site};

pub(super) const RULES: &[&Rule] = &[&ICON_INVALID, &ICON_SCHEME, &ICON_CROSS_ORIGIN];

/// Every `icons` member of a result.
fn icon_lists<'d>(result: Node<'d>, context: &Context<'_>) -> impl Iterator<Item = Node<'d>> {
    let bearers = server_info(result, context).into_iter().chain(listed(result, context));
    bearers.filter_map(|bearer| bearer.given("icons"))
}

/// The addresses of all icons.
fn sources<'d>(result: Node<'d>, context: &Context<'_>) -> impl Iterator<Item = (Node<'d>, &'d str)> {
    icon_lists(result, context)
        .flat_map(Node::items)
        .filter_map(|icon| icon.get("src"))
        .filter_map(|source| Some((source, source.text()?)))
}

crate::rule! {
    /// Icons are a list of objects with an address, known sizes and a known theme.
    ///
    /// Strict clients refuse the whole list or handshake for one icon that is not.
    static ICON_INVALID = {
        id: "mcp/icon-invalid",
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        impact_evidence: "mcp 1.30.0, @modelcontextprotocol/sdk 1.32.2, 2026-11",
        clients: &["mcp 1.30.0: refuses", "@modelcontextprotocol/sdk 1.32.2: refuses"],
        versions: SINCE_2025_11,
        on: HANDSHAKES_AND_LISTS,
        place: "/**/icons | /**/icons/* | /**/icons/*/src | /**/icons/*/theme | /**/icons/*/sizes | /**/icons/*/sizes/*",
        fix: "Follow the Icon schema.",
        spec: "2025-11-25 schema Icon; SEP-973",
        examples: &[
            fires(&["/tools/0/icons/0/src"], r#"{"tools": [{"icons": [{"mimeType": "image/png"}]}]}"#).over("mcp-tools-2026-07-28"),
            fires(
                &["/tools/0/icons/0/theme"],
                r#"{"tools": [{"icons": [{"src": "https://tides.example.org/i.png", "theme": "blue"}]}]}"#,
            )
            .over("mcp-tools-2026-07-28"),
            silent(r#"{"tools": [{"icons": [{"src": "https://tides.example.org/i.svg", "sizes": ["any", "48x48"], "theme": "dark"}]}]}"#)
                .over("mcp-tools-2026-07-28"),
        ],
        stops: Stops::Value,
        check: Check::Document(icon_invalid),
    }
}

fn icon_invalid(result: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    for icons in icon_lists(result, context) {
        if icons.kind() != Type::Array {
            out.add(icons, format!("`icons` is {}, not a list", icons.kind().named()));
        }
        icons.items().for_each(|icon| check_icon(icon, out));
    }
}

fn check_icon(icon: Node<'_>, out: &mut Occurrences) {
    if icon.kind() != Type::Object {
        out.add(icon, format!("an icon is {}, not an object", icon.kind().named()));
        return;
    }
    match icon.get("src") {
        None => drop(out.add_missing(icon, "src", "`src` is missing")),
        Some(source) if source.kind() != Type::String => {
            out.add(source, format!("`src` is {}, not a string", source.kind().named()));
        }
        Some(_) => {}
    }
    if let Some(theme) = icon.given("theme")
        && !matches!(theme.text(), Some("light" | "dark"))
    {
        out.add(theme, format!("{} is neither `light` nor `dark`", quote(theme.raw())));
    }
    if let Some(sizes) = icon.given("sizes") {
        if sizes.kind() != Type::Array {
            out.add(sizes, format!("`sizes` is {}, not a list", sizes.kind().named()));
        }
        for size in sizes.items().filter(|size| !size.text().is_some_and(is_size)) {
            out.add(size, format!("{} is neither `any` nor a size such as `48x48`", quote(size.raw())));
        }
    }
}

fn is_size(text: &str) -> bool {
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    text == "any" || text.split_once('x').is_some_and(|(width, height)| is_number(width) && is_number(height))
}

crate::rule! {
    /// An icon is fetched over https, or stands in the document itself.
    ///
    /// Clients have to refuse other schemes, so the icon is not shown. On this machine http will do.
    static ICON_SCHEME = {
        id: "mcp/icon-scheme",
        severity: Severity::Warning,
        impact: Some(Impact::Degrades),
        versions: SINCE_2025_11,
        on: HANDSHAKES_AND_LISTS,
        place: "/**/icons/*/src",
        fix: "Use https or data.",
        spec: "2026-07-28 basic, icons",
        examples: &[
            fires(&["/tools/0/icons/0/src"], r#"{"tools": [{"icons": [{"src": "http://tides.example.org/i.png"}]}]}"#)
                .over("mcp-tools-2026-07-28"),
            silent(r#"{"tools": [{"icons": [{"src": "data:image/png;base64,iVBORw0KGgo="}]}]}"#).over("mcp-tools-2026-07-28"),
        ],
        check: Check::Document(icon_scheme),
    }
}

fn icon_scheme(result: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    for (source, text) in sources(result, context) {
        let is_data = text.get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case("data:"));
        let is_web = AbsoluteUrl::http(text).is_some_and(|url| url.is("https") || host_is_loopback(url.host));
        if !is_data && !is_web {
            out.add(source, format!("{} is neither an https URL nor a data: URI", quote(text)));
        }
    }
}

crate::rule! {
    /// An icon comes from the server's own domain.
    ///
    /// Another domain learns who looks at the server, and clients advise against fetching from it.
    static ICON_CROSS_ORIGIN = {
        id: "mcp/icon-cross-origin",
        basis: Basis::Hint,
        versions: SINCE_2025_11,
        on: HANDSHAKES_AND_LISTS,
        place: "/**/icons/*/src",
        fix: "Host icons beside the server.",
        spec: "2026-07-28 basic, icons",
        examples: &[
            fires(&["/tools/0/icons/0/src"], r#"{"tools": [{"icons": [{"src": "https://cdn.example.com/i.png"}]}]}"#)
                .over("mcp-tools-2026-07-28")
                .given(r#"{"endpoint": "https://tides.example.org/mcp"}"#),
            silent(r#"{"tools": [{"icons": [{"src": "https://static.example.org/i.png"}]}]}"#)
                .over("mcp-tools-2026-07-28")
                .given(r#"{"endpoint": "https://tides.example.org/mcp"}"#),
        ],
        check: Check::Document(icon_cross_origin),
    }
}

fn icon_cross_origin(result: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    let Some(endpoint) = context.given.endpoint.as_deref().and_then(AbsoluteUrl::http) else {
        out.not_evaluated(NotEvaluated::NoOrigin);
        return;
    };
    for (source, text) in sources(result, context) {
        if let Some(url) = AbsoluteUrl::parse(text).filter(|url| url.is("https"))
            && !same_site(url.host, endpoint.host)
        {
            out.add(source, format!("{} is not of the domain of {}", quote(url.host), quote(endpoint.host)));
        }
    }
}
