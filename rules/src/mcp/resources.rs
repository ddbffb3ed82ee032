//! Lists of resources and of resource templates.

use std::sync::LazyLock;

use regex::Regex;

use super::listed;
use super::tools::{demand_list, demand_object, demand_text, report_repeated};
use super::{ALL, SINCE_2025_06, is_since};
use crate::document::{Node, Type};
use crate::judge::{Context, Occurrences};
use crate::kind::Kind;
use crate::rule::{Basis, Check, Class, Impact, Rule, Severity, Stops, fires, silent};
use crate::text::{MediaType, is_absolute_uri, quote};

pub(super) const RULES: &[&Rule] = &[
    &RESOURCES_ARRAY_MISSING,
    &TEMPLATES_ARRAY_MISSING,
    &RESOURCE_NOT_OBJECT,
    &ANNOTATIONS_INVALID,
    &RESOURCE_URI_MISSING,
    &TEMPLATE_URI_MISSING,
    &RESOURCE_NAME_MISSING,
    &RESOURCE_URI_INVALID,
    &TEMPLATE_URI_INVALID,
    &RESOURCE_URI_DUPLICATE,
    &RESOURCE_TITLE_MISSING,
    &RESOURCE_MIME_INVALID,
    &RESOURCE_SIZE_INVALID,
];

const RESOURCES: &[Kind] = &[Kind::McpResourcesListResult];
const TEMPLATES: &[Kind] = &[Kind::McpResourceTemplatesListResult];
const BOTH: &[Kind] = &[Kind::McpResourcesListResult, Kind::McpResourceTemplatesListResult];

crate::rule! {
    /// A list of resources has its list.
    ///
    /// Strict clients refuse the answer when `resources` is absent or something else than a list.
    static RESOURCES_ARRAY_MISSING = {
        id: "mcp/resources-array-missing",
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        impact_evidence: "mcp 1.30.0, @modelcontextprotocol/sdk 1.32.2, 2026-11",
        clients: &["mcp 1.30.0: refuses", "@modelcontextprotocol/sdk 1.32.2: refuses"],
        versions: ALL,
        on: RESOURCES,
        place: "/resources",
        fix: "Return resources.",
        spec: "schema ListResourcesResult",
        seeds: &["validator:2.1.2.1"],
        examples: &[fires(&["/resources"], r#"{"resources": null}"#), silent(r#"{"resources": []}"#)],
        stops: Stops::Value,
        check: Check::Document(resources_array_missing),
    }
}

fn resources_array_missing(result: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    demand_list(result, "resources", out);
}

crate::rule! {
    /// A list of resource templates has its list.
    ///
    /// It is called `resourceTemplates`; strict clients refuse the answer without it.
    static TEMPLATES_ARRAY_MISSING = {
        id: "mcp/templates-array-missing",
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        impact_evidence: "mcp 1.30.0, @modelcontextprotocol/sdk 1.32.2, 2026-11",
        clients: &["mcp 1.30.0: refuses", "@modelcontextprotocol/sdk 1.32.2: refuses"],
        versions: ALL,
        on: TEMPLATES,
        place: "/resourceTemplates",
        fix: "Return resourceTemplates.",
        spec: "schema ListResourceTemplatesResult",
        seeds: &["validator:2.1.4.1"],
        examples: &[
            fires(&["/resourceTemplates"], r#"{"resourceTemplates": null, "templates": []}"#),
            silent(r#"{"resourceTemplates": []}"#),
        ],
        stops: Stops::Value,
        check: Check::Document(templates_array_missing),
    }
}

fn templates_array_missing(result: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    demand_list(result, "resourceTemplates", out);
}

crate::rule! {
    /// What a list holds are objects.
    ///
    /// A bare address or name makes strict clients refuse the whole list.
    static RESOURCE_NOT_OBJECT = {
        id: "mcp/resource-not-object",
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        impact_evidence: "mcp 1.30.0, @modelcontextprotocol/sdk 1.32.2, 2026-11",
        clients: &["mcp 1.30.0: refuses", "@modelcontextprotocol/sdk 1.32.2: refuses"],
        versions: ALL,
        on: &[Kind::McpResourcesListResult, Kind::McpResourceTemplatesListResult, Kind::McpPromptsListResult],
        place: "/resources/* | /resourceTemplates/* | /prompts/*",
        fix: "Use objects.",
        spec: "schema",
        examples: &[
            fires(&["/resources/1"], r#"{"resources": [{}, "tides://harbour/HAN"]}"#),
            silent(r#"{"resources": [{}]}"#),
        ],
        stops: Stops::Value,
        check: Check::Each(&["/resources/*", "/resourceTemplates/*", "/prompts/*"], resource_not_object),
    }
}

fn resource_not_object(item: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    demand_object(item, "an item of the list", out);
}

crate::rule! {
    /// Annotations say for whom a resource is, how important it is and when it changed.
    ///
    /// `audience` lists `user` and `assistant`, `priority` is a number from 0 to 1, `lastModified` an ISO 8601 time.
    static ANNOTATIONS_INVALID = {
        id: "mcp/annotations-invalid",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: ALL,
        on: BOTH,
        place: "/resources/*/annotations | /resources/*/annotations/* | /resourceTemplates/*/annotations | /resourceTemplates/*/annotations/*",
        fix: "Follow the Annotations schema.",
        spec: "schema Annotations",
        examples: &[
            fires(&["/resources/0/annotations/priority"], r#"{"resources": [{"annotations": {"priority": 1.5}}]}"#),
            fires(&["/resources/0/annotations/audience"], r#"{"resources": [{"annotations": {"audience": "user"}}]}"#),
            silent(
                r#"{"resources": [{"annotations":
                    {"audience": ["user", "assistant"], "priority": 1, "lastModified": "2025-01-12T15:00:58Z"}}]}"#,
            ),
        ],
        stops: Stops::Value,
        check: Check::Each(&["/resources/*/annotations", "/resourceTemplates/*/annotations"], annotations_invalid),
    }
}

fn annotations_invalid(annotations: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    if annotations.is_null() {
        return;
    }
    demand_object(annotations, "`annotations`", out);
    if let Some(audience) = annotations.given("audience")
        && !is_audience(audience)
    {
        out.add(audience, "`audience` is no list of `user` and `assistant`");
    }
    if let Some(priority) = annotations.given("priority")
        && !priority.number().is_some_and(|number| (0.0..=1.0).contains(&number))
    {
        out.add(priority, format!("{} is no number from 0 to 1", quote(priority.raw())));
    }
    if let Some(modified) = annotations.given("lastModified").filter(|_| is_since(context, "2025-06-18"))
        && !modified.text().is_some_and(is_time)
    {
        out.add(modified, format!("{} is no ISO 8601 time", quote(modified.raw())));
    }
}

fn is_audience(audience: Node<'_>) -> bool {
    audience.kind() == Type::Array && audience.items().all(|who| matches!(who.text(), Some("user" | "assistant")))
}

/// Whether a text is a date or a date and time of ISO 8601, in its long or its short form.
fn is_time(text: &str) -> bool {
    static TIME: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(concat!(
            r"^\d{4}-?(?:\d{2}(?:-?\d{2})?|W\d{2}(?:-?\d)?|\d{3})",
            r"(?:[T ]\d{2}(?::?\d{2}(?::?\d{2}(?:[.,]\d+)?)?)?(?:Z|[+-]\d{2}(?::?\d{2})?)?)?$"
        ))
        .expect("the pattern is a literal")
    });
    TIME.is_match(text)
}

crate::rule! {
    /// A resource has an address.
    ///
    /// It is what a resource is read by; strict clients refuse the whole list for one without.
    static RESOURCE_URI_MISSING = {
        id: "mcp/resource-uri-missing",
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        impact_evidence: "mcp 1.30.0, @modelcontextprotocol/sdk 1.32.2, 2026-11",
        clients: &["mcp 1.30.0: refuses", "@modelcontextprotocol/sdk 1.32.2: refuses"],
        versions: ALL,
        on: RESOURCES,
        place: "/resources/*/uri",
        fix: "Add uri.",
        spec: "schema Resource",
        seeds: &["validator:2.1.2.2"],
        examples: &[
            fires(&["/resources/0/uri"], r#"{"resources": [{"uri": null}]}"#),
            silent(r#"{"resources": [{"uri": "urn:tides:HEL"}]}"#),
        ],
        check: Check::Document(resource_uri_missing),
    }
}

fn resource_uri_missing(result: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    listed(result, context).for_each(|resource| demand_text(resource, "uri", out));
}

crate::rule! {
    /// A resource template has a template of addresses.
    ///
    /// `uriTemplate`, not `uri`: without it nothing can be read.
    static TEMPLATE_URI_MISSING = {
        id: "mcp/template-uri-missing",
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        impact_evidence: "mcp 1.30.0, @modelcontextprotocol/sdk 1.32.2, 2026-11",
        clients: &["mcp 1.30.0: refuses", "@modelcontextprotocol/sdk 1.32.2: refuses"],
        versions: ALL,
        on: TEMPLATES,
        place: "/resourceTemplates/*/uriTemplate",
        fix: "Add uriTemplate.",
        spec: "schema ResourceTemplate",
        seeds: &["validator:2.1.4.2"],
        examples: &[
            fires(&["/resourceTemplates/0/uriTemplate"], r#"{"resourceTemplates": [{"uriTemplate": null, "uri": "tides://x"}]}"#),
            silent(r#"{"resourceTemplates": [{"uriTemplate": "tides://all"}]}"#),
        ],
        check: Check::Document(template_uri_missing),
    }
}

fn template_uri_missing(result: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    listed(result, context).for_each(|template| demand_text(template, "uriTemplate", out));
}

crate::rule! {
    /// A resource has a name.
    ///
    /// Strict clients refuse the whole list for one without; a title does not stand in for it.
    static RESOURCE_NAME_MISSING = {
        id: "mcp/resource-name-missing",
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        impact_evidence: "mcp 1.30.0, @modelcontextprotocol/sdk 1.32.2, 2026-11",
        clients: &["mcp 1.30.0: refuses", "@modelcontextprotocol/sdk 1.32.2: refuses"],
        versions: ALL,
        on: BOTH,
        place: "/resources/*/name | /resourceTemplates/*/name",
        fix: "Add name.",
        spec: "schema Resource",
        seeds: &["validator:2.1.2.2"],
        examples: &[
            fires(&["/resources/0/name"], r#"{"resources": [{"name": null}]}"#),
            silent(r#"{"resources": [{"name": "HEL", "title": null}]}"#),
        ],
        check: Check::Document(resource_name_missing),
    }
}

fn resource_name_missing(result: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    for item in listed(result, context) {
        match item.get("name") {
            None => drop(out.add_missing(item, "name", "`name` is missing")),
            Some(name) if name.kind() != Type::String => {
                out.add(name, format!("`name` is {}, not a string", name.kind().named()));
            }
            Some(_) => {}
        }
    }
}

crate::rule! {
    /// A resource's address is an absolute URI.
    ///
    /// Any scheme will do, but there is one, and spaces and the like are escaped: some clients parse the address before they
    /// send it back.
    static RESOURCE_URI_INVALID = {
        id: "mcp/resource-uri-invalid",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: ALL,
        on: RESOURCES,
        place: "/resources/*/uri",
        fix: "Use a valid URI.",
        spec: "2026-07-28 server/resources, Common URI Schemes",
        seeds: &["validator:2.1.2.2"],
        examples: &[
            fires(&["/resources/0/uri"], r#"{"resources": [{"uri": "/harbour/HEL"}]}"#),
            fires(&["/resources/0/uri"], r#"{"resources": [{"uri": "tides://harbour/HEL 2"}]}"#),
            silent(r#"{"resources": [{"uri": "urn:tides:HEL"}]}"#),
        ],
        check: Check::Each(&["/resources/*/uri"], resource_uri_invalid),
    }
}

fn resource_uri_invalid(uri: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let Some(text) = uri.text().filter(|text| !text.is_empty()) else { return };
    if !is_absolute_uri(text) || !has_uri_characters(text) {
        out.add(uri, format!("{} is no absolute URI", quote(text)));
    }
}

/// Whether every character is one that a URI may have (RFC 3986 §2), and every percent sign begins an escape.
fn has_uri_characters(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.iter().enumerate().all(|(n, b)| match b {
        b'%' => bytes.get(n + 1..n + 3).is_some_and(|hex| hex.iter().all(u8::is_ascii_hexdigit)),
        _ => b.is_ascii_alphanumeric() || b"-._~:/?#[]@!$&'()*+,;=".contains(b),
    })
}

crate::rule! {
    /// A template of addresses keeps to RFC 6570.
    ///
    /// Clients fill in what stands in braces; a brace left open or a name with other letters stops them.
    static TEMPLATE_URI_INVALID = {
        id: "mcp/template-uri-invalid",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: ALL,
        on: TEMPLATES,
        place: "/resourceTemplates/*/uriTemplate",
        fix: "Write a valid URI template.",
        spec: "RFC 6570",
        seeds: &["validator:2.1.4.2"],
        examples: &[
            fires(
                &["/resourceTemplates/0/uriTemplate"],
                r#"{"resourceTemplates": [{"uriTemplate": "tides://harbour/{code"}]}"#,
            ),
            fires(&["/resourceTemplates/0/uriTemplate"], r#"{"resourceTemplates": [{"uriTemplate": "tides://{}"}]}"#),
            silent(r#"{"resourceTemplates": [{"uriTemplate": "file:///{+path}{?q*,lang:2}"}]}"#),
        ],
        check: Check::Each(&["/resourceTemplates/*/uriTemplate"], template_uri_invalid),
    }
}

fn template_uri_invalid(template: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if let Some(text) = template.text()
        && let Err(what) = check_template(text)
    {
        out.add(template, format!("{}: {what}", quote(text)));
    }
}

fn check_template(text: &str) -> Result<(), &'static str> {
    let mut rest = text;
    while let Some(at) = rest.find(['{', '}']) {
        let inside = rest[at..].strip_prefix('{').ok_or("a brace closes that was not opened")?;
        let end = inside.find(['{', '}']).ok_or("a brace is not closed")?;
        if inside[end..].starts_with('{') {
            return Err("braces stand in braces");
        }
        check_expression(&inside[..end])?;
        rest = &inside[end + 1..];
    }
    Ok(())
}

fn check_expression(expression: &str) -> Result<(), &'static str> {
    let names = expression.strip_prefix(['+', '#', '.', '/', ';', '?', '&']).unwrap_or(expression);
    if names.is_empty() {
        return Err("an expression is empty");
    }
    if names.split(',').all(is_variable) { Ok(()) } else { Err("a variable's name is none") }
}

/// A name of letters, digits, `_` and escapes with dots between, and `*` or a length behind it.
fn is_variable(text: &str) -> bool {
    let name = match text.split_once(':') {
        Some((name, length)) if is_length(length) => name,
        Some(_) => return false,
        None => text.strip_suffix('*').unwrap_or(text),
    };
    let is_part = |part: &str| {
        let bytes = part.as_bytes();
        !bytes.is_empty()
            && bytes.iter().enumerate().all(|(n, b)| match b {
                b'%' => bytes.get(n + 1..n + 3).is_some_and(|hex| hex.iter().all(u8::is_ascii_hexdigit)),
                _ => b.is_ascii_alphanumeric() || *b == b'_',
            })
    };
    name.split('.').all(is_part)
}

fn is_length(text: &str) -> bool {
    (1..=4).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit()) && !text.starts_with('0')
}

crate::rule! {
    /// No two resources have the same address.
    ///
    /// Reading it gives one of them; which, the list does not say.
    static RESOURCE_URI_DUPLICATE = {
        id: "mcp/resource-uri-duplicate",
        severity: Severity::Warning,
        impact: Some(Impact::Degrades),
        basis: Basis::Hint,
        versions: ALL,
        on: RESOURCES,
        place: "/resources/*/uri",
        fix: "List each resource once.",
        spec: "schema Resource",
        examples: &[
            fires(&["/resources/1/uri"], r#"{"resources": [{"name": "a"}, {"name": "b"}]}"#),
            silent(r#"{"resources": [{}, {"uri": "tides://harbour/HAN"}]}"#),
        ],
        check: Check::Document(resource_uri_duplicate),
    }
}

fn resource_uri_duplicate(result: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    report_repeated(listed(result, context), "uri", out);
}

crate::rule! {
    /// A resource has no title.
    ///
    /// People then see its technical name.
    static RESOURCE_TITLE_MISSING = {
        id: "mcp/resource-title-missing",
        class: Class::Fact,
        basis: Basis::Hint,
        versions: SINCE_2025_06,
        on: RESOURCES,
        place: "/resources/*/title",
        fix: "Add title.",
        spec: "schema Resource",
        seeds: &["validator:2.1.2.3"],
        examples: &[
            fires(&["/resources/0/title"], r#"{"resources": [{"title": null}]}"#),
            silent(r#"{"resources": [{"title": "Helsinki"}]}"#),
        ],
        check: Check::Document(resource_title_missing),
    }
}

fn resource_title_missing(result: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    for item in listed(result, context).filter(|item| item.get("title").is_none()) {
        out.add_missing(item, "title", "no title");
    }
}

crate::rule! {
    /// A resource's type is a media type.
    ///
    /// `type/subtype`. Clients choose by it how to show the content.
    static RESOURCE_MIME_INVALID = {
        id: "mcp/resource-mime-invalid",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        basis: Basis::Hint,
        versions: ALL,
        on: BOTH,
        place: "/resources/*/mimeType | /resourceTemplates/*/mimeType",
        fix: "Use a media type.",
        spec: "RFC 6838 §4.2",
        seeds: &["validator:2.1.3.3"],
        examples: &[
            fires(&["/resources/0/mimeType"], r#"{"resources": [{"mimeType": "json"}]}"#),
            silent(r#"{"resources": [{"mimeType": "application/geo+json; charset=utf-8"}]}"#),
        ],
        check: Check::Each(&["/resources/*/mimeType", "/resourceTemplates/*/mimeType"], resource_mime_invalid),
    }
}

fn resource_mime_invalid(media_type: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if !media_type.is_null() && media_type.text().and_then(MediaType::parse).is_none() {
        out.add(media_type, format!("{} is no media type", quote(media_type.text().unwrap_or(media_type.raw()))));
    }
}

crate::rule! {
    /// A resource's size is a number of bytes.
    ///
    /// Clients reckon with it before they read.
    static RESOURCE_SIZE_INVALID = {
        id: "mcp/resource-size-invalid",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: ALL,
        on: RESOURCES,
        place: "/resources/*/size",
        fix: "Give bytes as an integer.",
        spec: "schema Resource",
        examples: &[
            fires(&["/resources/0/size"], r#"{"resources": [{"size": "512"}]}"#),
            fires(&["/resources/0/size"], r#"{"resources": [{"size": -1}]}"#),
            silent(r#"{"resources": [{"size": 0}]}"#),
        ],
        check: Check::Each(&["/resources/*/size"], resource_size_invalid),
    }
}

fn resource_size_invalid(size: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let is_count = size.number().is_some_and(|number| number >= 0.0 && number.fract() == 0.0);
    if !size.is_null() && !is_count {
        out.add(size, format!("{} is no number of bytes", quote(size.raw())));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_keep_to_the_grammar() {
        for text in ["", "tides://all", "x{a}", "{+p.a%20b}{?q*,l:2}{&x}", "{;a,b}", "{x_1:9999}"] {
            assert_eq!(check_template(text), Ok(()), "{text}");
        }
        for text in [
            "{",
            "}",
            "{a",
            "a}",
            "{{a}}",
            "{}",
            "{?}",
            "{a-b}",
            "{a:0}",
            "{a:12345}",
            "{a,}",
            "{=a}",
            "{a b}",
            "{a..b}",
        ] {
            assert!(check_template(text).is_err(), "{text}");
        }
    }

    #[test]
    fn times_have_a_long_and_a_short_form() {
        for text in [
            "2025-01-12",
            "2025-01-12T15:00:58Z",
            "20250112T150058+0100",
            "2025-01-12T15:00:58.123-05:00",
            "2025-W03-2",
        ] {
            assert!(is_time(text), "{text}");
        }
        for text in ["", "yesterday", "12.01.2025", "2025-01-12T", "1736694058", "2025-01-12T15:00:58 UTC"] {
            assert!(!is_time(text), "{text}");
        }
    }
}
