//! How a server presents itself: description, title, web page, icons.

use super::fields::{filled, list, member};
use super::revision::{ALL_REVISIONS, SINCE_2025_10_11};
use crate::document::{Node, Type};
use crate::judge::{Context, Occurrences};
use crate::kind::Kind;
use crate::rule::{Basis, Check, Impact, Rule, Severity, fires, silent};
use crate::text::{AbsoluteUrl, quote};

pub(super) const RULES: &[&Rule] = &[
    &DESCRIPTION_MISSING,
    &DESCRIPTION_TOO_LONG,
    &DESCRIPTION_BOILERPLATE,
    &TITLE_BLANK,
    &TITLE_TOO_LONG,
    &WEBSITE_URL_INVALID,
    &ICON_SRC_INVALID,
    &ICON_ATTRIBUTE_INVALID,
];

crate::rule! {
    /// A server says what it does.
    ///
    /// The description is what people and models choose by.
    static DESCRIPTION_MISSING = {
        id: "registry/description-missing",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: ALL_REVISIONS,
        place: "/description",
        fix: "Say in one line what the server does.",
        spec: "server.json 2025-12-11 schema description",
        seeds: &["gaip:MCP_DESCRIPTION_MISSING"],
        on: &[Kind::ServerJson],
        examples: &[
            fires(&["/description"], r#"{"description": null}"#),
            fires(&["/description"], r#"{"description": "  "}"#),
            silent(r#"{"description": "x"}"#),
        ],
        check: Check::Document(description_missing),
    }
}

fn description_missing(document: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    match document.given("description") {
        None => {
            out.add_missing(document, "description", "no description");
        }
        Some(description) if description.text().is_some_and(|text| text.trim().is_empty()) => {
            out.add(description, "the description is blank");
        }
        Some(_) => {}
    }
}

crate::rule! {
    /// A description has at most 100 characters.
    ///
    /// The registry refuses longer ones, and lists cut them.
    static DESCRIPTION_TOO_LONG = {
        id: "registry/description-too-long",
        severity: Severity::Error,
        impact: Some(Impact::Degrades),
        rank: 39,
        versions: ALL_REVISIONS,
        place: "/description",
        fix: "Shorten it to 100 characters.",
        spec: "server.json 2025-12-11 schema description",
        seeds: &["gaip:MCP_DESCRIPTION_TOO_LONG"],
        on: &[Kind::ServerJson],
        examples: &[
            fires(&["/description"], r#"{"description": "High and low water for every harbour, bay, inlet, river mouth and open beach of the whole northern coast"}"#),
            silent(r#"{"description": "🌊🌊🌊🌊🌊🌊🌊🌊🌊🌊🌊🌊🌊🌊🌊🌊🌊🌊🌊🌊🌊🌊🌊🌊🌊🌊🌊🌊🌊🌊🌊🌊🌊🌊🌊🌊🌊🌊🌊🌊🌊🌊🌊🌊🌊🌊🌊🌊🌊🌊🌊🌊🌊🌊🌊🌊🌊🌊🌊🌊🌊🌊🌊🌊"}"#),
        ],
        check: Check::Document(description_too_long),
    }
}

fn description_too_long(document: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    over_100(document, "description", out);
}

fn over_100(document: Node<'_>, key: &str, out: &mut Occurrences) {
    if let Some(node) = document.given(key)
        && let Some(length @ 101..) = node.text().map(|text| text.chars().count())
    {
        out.add(node, format!("{length} characters"));
    }
}

/// Descriptions that came with a template.
const BOILERPLATE: &[&str] = &[
    "a model context protocol server",
    "an mcp server",
    "mcp server",
    "my mcp server",
    "todo",
    "description",
    "test",
    "a brief description of your server",
    "your server description",
];

crate::rule! {
    /// The description says nothing.
    ///
    /// It repeats the name, or is what a template came with.
    static DESCRIPTION_BOILERPLATE = {
        id: "registry/description-boilerplate",
        basis: Basis::Hint,
        versions: ALL_REVISIONS,
        place: "/description",
        fix: "Describe what the server can do for a caller.",
        spec: "hint; registry issue 1579",
        seeds: &["gaip:MCP_DESCRIPTION_MISSING"],
        on: &[Kind::ServerJson],
        examples: &[
            fires(&["/description"], r#"{"description": "An MCP server."}"#),
            fires(&["/description"], r#"{"description": "tides"}"#),
            fires(&["/description"], r#"{"description": "{{ cookiecutter.description }}"}"#),
            silent(r#"{"description": "An MCP server for tide tables"}"#),
            silent(r#"{"description": "Finds harbours with tides <2 m and > 1 m"}"#),
        ],
        check: Check::Document(description_boilerplate),
    }
}

fn description_boilerplate(document: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let Some(text) = filled(document, "description") else { return };
    let plain = text.trim().to_lowercase();
    let plain = plain.strip_suffix('.').unwrap_or(&plain);
    let name = filled(document, "name").unwrap_or_default().to_lowercase();
    let title = filled(document, "title").unwrap_or_default().to_lowercase();
    let says_nothing = !plain.is_empty()
        && (BOILERPLATE.contains(&plain)
            || plain == name
            || name.rsplit('/').next() == Some(plain)
            || plain == title
            || has_marker(text));
    if let Some(description) = document.given("description")
        && says_nothing
    {
        out.add(description, quote(text));
    }
}

/// Whether a template's `{{…}}` or `<…>` was left in.
fn has_marker(text: &str) -> bool {
    let double = text.split_once("{{").is_some_and(|(_, rest)| rest.contains("}}"));
    let opening = |rest: &str| rest.starts_with(|c: char| c.is_alphabetic()) && inner_end(rest) == Some('>');
    double || text.split('<').skip(1).any(opening)
}

/// The angle bracket that comes next.
fn inner_end(text: &str) -> Option<char> {
    text.chars().find(|c| matches!(c, '<' | '>'))
}

crate::rule! {
    /// A title is not blank.
    ///
    /// Lists show it in place of the name.
    static TITLE_BLANK = {
        id: "registry/title-blank",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        basis: Basis::Policy,
        versions: SINCE_2025_10_11,
        place: "/title",
        fix: "Remove title or fill it.",
        spec: "official registry publish checks: title",
        on: &[Kind::ServerJson],
        examples: &[
            fires(&["/title"], r#"{"title": "   "}"#),
            silent(r#"{"title": "T"}"#),
            silent(r#"{"title": null}"#),
        ],
        check: Check::Document(title_blank),
    }
}

fn title_blank(document: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if let Some(title) = document.given("title")
        && title.text().is_some_and(|text| text.trim().is_empty())
    {
        out.add(title, "the title is blank");
    }
}

crate::rule! {
    /// A title has at most 100 characters.
    ///
    /// The registry refuses longer ones.
    static TITLE_TOO_LONG = {
        id: "registry/title-too-long",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: SINCE_2025_10_11,
        place: "/title",
        fix: "Shorten it.",
        spec: "server.json 2025-12-11 schema title",
        on: &[Kind::ServerJson],
        examples: &[
            fires(&["/title"], r#"{"title": "Tides and currents, high and low water, for harbours, bays and beaches of the entire northern coast now"}"#),
            silent(r#"{"title": "Tides and currents of the northern coast"}"#),
        ],
        check: Check::Document(title_too_long),
    }
}

fn title_too_long(document: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    over_100(document, "title", out);
}

crate::rule! {
    /// The web page is an absolute https address.
    ///
    /// Directories make a link of it.
    static WEBSITE_URL_INVALID = {
        id: "registry/website-url-invalid",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        basis: Basis::Policy,
        versions: ALL_REVISIONS,
        place: "/websiteUrl",
        fix: "Use an absolute https URL.",
        spec: "official registry publish checks: websiteUrl",
        seeds: &["gaip:MCP_URL_FIELD_INVALID"],
        on: &[Kind::ServerJson],
        examples: &[
            fires(&["/websiteUrl"], r#"{"websiteUrl": "http://tidehouse.dev"}"#),
            fires(&["/websiteUrl"], r#"{"websiteUrl": "tidehouse.dev/docs"}"#),
            fires(&["/website_url"], r#"{"website_url": "tidehouse.dev"}"#).over("server-json-2025-07-09"),
            silent(r#"{"websiteUrl": "HTTPS://tidehouse.dev/docs#start"}"#),
            silent(r#"{"websiteUrl": ""}"#),
        ],
        yields_to: &["common/unsafe-url-scheme"],
        check: Check::Document(website_url_invalid),
    }
}

fn website_url_invalid(document: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if let Some(website) = member(document, "websiteUrl")
        && let Some(text) = website.text()
        && !text.is_empty()
        && !is_https(text)
    {
        out.add(website, format!("{} is no absolute https URL", quote(text)));
    }
}

fn is_https(text: &str) -> bool {
    AbsoluteUrl::parse(text).is_some_and(|url| url.is("https"))
}

crate::rule! {
    /// An icon lies at an absolute https address of at most 255 characters.
    ///
    /// Clients load nothing else, and the registry refuses data URIs.
    static ICON_SRC_INVALID = {
        id: "registry/icon-src-invalid",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: SINCE_2025_10_11,
        place: "/icons/*/src",
        fix: "Host the icon under https.",
        spec: "server.json 2025-12-11 schema Icon; official registry publish checks: icons",
        seeds: &["gaip:MCP_URL_FIELD_INVALID"],
        on: &[Kind::ServerJson],
        examples: &[
            fires(&["/icons/0/src"], r#"{"icons": [{"src": "data:image/png;base64,iVBORw0KGgo="}]}"#),
            fires(&["/icons/0/src"], r#"{"icons": [{"mimeType": "image/png"}]}"#),
            fires(&["/icons/0/src"], r#"{"icons": [{"src": "/icon.png"}]}"#),
            silent(r#"{"icons": [{"src": "https://tidehouse.dev/icon.png"}]}"#),
        ],
        yields_to: &["common/unsafe-url-scheme"],
        check: Check::Document(icon_src_invalid),
    }
}

fn icon_src_invalid(document: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for icon in list(document, "icons").filter(|icon| icon.kind() == Type::Object) {
        let Some(src) = icon.given("src") else {
            out.add_missing(icon, "src", "the icon has no address");
            continue;
        };
        match src.text() {
            Some(text) if !is_https(text) => {
                out.add(src, format!("{} is no absolute https URL", quote(text)));
            }
            Some(text) if text.chars().count() > 255 => {
                out.add(src, "the address has over 255 characters");
            }
            Some(_) => {}
            None => {
                out.add(src, format!("{} where an address belongs", src.kind().named()));
            }
        }
    }
}

const ICON_TYPES: &[&str] = &["image/png", "image/jpeg", "image/jpg", "image/svg+xml", "image/webp"];

crate::rule! {
    /// An icon's type, sizes and theme are those that the schema lists.
    ///
    /// Clients pick an icon by them and skip what they do not know.
    static ICON_ATTRIBUTE_INVALID = {
        id: "registry/icon-attribute-invalid",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: SINCE_2025_10_11,
        place: "/icons/*/mimeType, /icons/*/sizes, /icons/*/sizes/*, /icons/*/theme",
        fix: "Use the listed values.",
        spec: "server.json 2025-12-11 schema Icon",
        on: &[Kind::ServerJson],
        examples: &[
            fires(&["/icons/0/mimeType"], r#"{"icons": [{"src": "https://tidehouse.dev/i.ico", "mimeType": "image/x-icon"}]}"#),
            fires(&["/icons/0/sizes"], r#"{"icons": [{"src": "https://tidehouse.dev/i.png", "sizes": "48x48"}]}"#),
            fires(&["/icons/0/sizes/1", "/icons/0/theme"], r#"{"icons": [{"src": "https://tidehouse.dev/i.png", "sizes": ["48x48", "48X48"], "theme": "grey"}]}"#),
            silent(r#"{"icons": [{"src": "https://tidehouse.dev/i.svg", "mimeType": "image/svg+xml", "sizes": ["any", "48x48"], "theme": "dark"}]}"#),
        ],
        check: Check::Document(icon_attribute_invalid),
    }
}

fn icon_attribute_invalid(document: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for icon in list(document, "icons") {
        if let Some(mime_type) = icon.given("mimeType")
            && !mime_type.text().is_some_and(|text| ICON_TYPES.contains(&text))
        {
            out.add(mime_type, format!("{} is no type of icon", shown(mime_type)));
        }
        if let Some(sizes) = icon.given("sizes") {
            odd_sizes(sizes, out);
        }
        if let Some(theme) = icon.given("theme")
            && !matches!(theme.text(), Some("light" | "dark"))
        {
            out.add(theme, format!("{} is neither `light` nor `dark`", shown(theme)));
        }
    }
}

fn odd_sizes(sizes: Node<'_>, out: &mut Occurrences) {
    if sizes.kind() != Type::Array {
        out.add(sizes, format!("{} where an array belongs", sizes.kind().named()));
    }
    for size in sizes.items() {
        if !size.text().is_some_and(is_size) {
            out.add(size, format!("{} is neither WxH nor `any`", shown(size)));
        }
    }
}

fn is_size(text: &str) -> bool {
    let is_digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    text == "any" || text.split_once('x').is_some_and(|(width, height)| is_digits(width) && is_digits(height))
}

/// The value itself when it is text, else its type.
pub(super) fn shown(node: Node<'_>) -> String {
    node.text().map_or_else(|| node.kind().named().to_owned(), quote)
}
