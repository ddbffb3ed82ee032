//! Members of handshakes and lists: which there are in which revision, null where a member may be left out, and titles and
//! descriptions that are no text.

use std::sync::LazyLock;

use super::is_modern;
use super::{ALL, HANDSHAKES_AND_LISTS, LEGACY, MODERN, SERVER_INFO, SINCE_2025_03, SINCE_2025_06, SINCE_2025_11};
use crate::document::{Node, Type};
use crate::judge::{Context, Occurrences};
use crate::rule::{Check, Impact, Rule, Severity, Stops, fires, silent};
use crate::shape::{Field, Holds, Place, field, visit};

pub(super) const RULES: &[&Rule] = &[&NULL_FOR_OPTIONAL, &TOOL_FIELD_TYPE];

const NAME: Field = field("", Holds::Text).required(ALL);
const TITLE: Field = field("", Holds::Text).known(SINCE_2025_06);
const TEXT: Field = field("", Holds::Text);
const ICONS: Field = field("", Holds::Free).known(SINCE_2025_11);
const META: Field = field("", Holds::Free).known(SINCE_2025_06);

/// One table for all handshakes and lists, since no name means two things in them. What a rule of its own looks into is
/// [`Holds::Free`] here.
static TABLE: &[Field] = &[
    field("/_meta", Holds::Free),
    field("/resultType", Holds::Text).known(MODERN).required(MODERN),
    field("/ttlMs", Holds::Number).known(MODERN).required(MODERN),
    field("/cacheScope", Holds::Text).known(MODERN).required(MODERN),
    field("/nextCursor", Holds::Text),
    field("/instructions", Holds::Text),
    field("/protocolVersion", Holds::Text).known(LEGACY).required(LEGACY),
    field("/supportedVersions", Holds::Free).known(MODERN).required(MODERN),
    field("/serverInfo", Holds::Object).known(LEGACY).required(LEGACY),
    NAME.at("/serverInfo/name"),
    NAME.at("/serverInfo/version"),
    TITLE.at("/serverInfo/title"),
    TEXT.at("/serverInfo/description").known(SINCE_2025_11),
    TEXT.at("/serverInfo/websiteUrl").known(SINCE_2025_11),
    ICONS.at("/serverInfo/icons"),
    field("/capabilities", Holds::Object).required(ALL),
    field("/capabilities/experimental", Holds::Free),
    field("/capabilities/extensions", Holds::Free).known(MODERN),
    field("/capabilities/logging", Holds::Free),
    field("/capabilities/completions", Holds::Free).known(SINCE_2025_03),
    field("/capabilities/tasks", Holds::Free).known(&["2025-11-25"]),
    field("/capabilities/prompts", Holds::Object),
    field("/capabilities/prompts/listChanged", Holds::Flag),
    field("/capabilities/resources", Holds::Object),
    field("/capabilities/resources/listChanged", Holds::Flag),
    field("/capabilities/resources/subscribe", Holds::Flag),
    field("/capabilities/tools", Holds::Object),
    field("/capabilities/tools/listChanged", Holds::Flag),
    field("/tools", Holds::Array).required(ALL),
    field("/tools/*", Holds::Object),
    NAME.at("/tools/*/name"),
    TITLE.at("/tools/*/title"),
    TEXT.at("/tools/*/description"),
    field("/tools/*/inputSchema", Holds::Free).required(ALL),
    field("/tools/*/outputSchema", Holds::Free).known(SINCE_2025_06),
    field("/tools/*/annotations", Holds::Object).known(SINCE_2025_03),
    TEXT.at("/tools/*/annotations/title"),
    field("/tools/*/annotations/readOnlyHint", Holds::Flag),
    field("/tools/*/annotations/destructiveHint", Holds::Flag),
    field("/tools/*/annotations/idempotentHint", Holds::Flag),
    field("/tools/*/annotations/openWorldHint", Holds::Flag),
    field("/tools/*/execution", Holds::Object).known(&["2025-11-25"]),
    field("/tools/*/execution/taskSupport", Holds::Text),
    ICONS.at("/tools/*/icons"),
    META.at("/tools/*/_meta"),
    field("/resources", Holds::Array).required(ALL),
    field("/resources/*", Holds::Object),
    NAME.at("/resources/*/uri"),
    NAME.at("/resources/*/name"),
    TITLE.at("/resources/*/title"),
    TEXT.at("/resources/*/description"),
    TEXT.at("/resources/*/mimeType"),
    field("/resources/*/size", Holds::Number),
    field("/resources/*/annotations", Holds::Object),
    field("/resources/*/annotations/audience", Holds::Array),
    field("/resources/*/annotations/priority", Holds::Number),
    TEXT.at("/resources/*/annotations/lastModified").known(SINCE_2025_06),
    ICONS.at("/resources/*/icons"),
    META.at("/resources/*/_meta"),
    field("/resourceTemplates", Holds::Array).required(ALL),
    field("/resourceTemplates/*", Holds::Object),
    NAME.at("/resourceTemplates/*/uriTemplate"),
    NAME.at("/resourceTemplates/*/name"),
    TITLE.at("/resourceTemplates/*/title"),
    TEXT.at("/resourceTemplates/*/description"),
    TEXT.at("/resourceTemplates/*/mimeType"),
    field("/resourceTemplates/*/annotations", Holds::Object),
    field("/resourceTemplates/*/annotations/audience", Holds::Array),
    field("/resourceTemplates/*/annotations/priority", Holds::Number),
    TEXT.at("/resourceTemplates/*/annotations/lastModified").known(SINCE_2025_06),
    ICONS.at("/resourceTemplates/*/icons"),
    META.at("/resourceTemplates/*/_meta"),
    field("/prompts", Holds::Array).required(ALL),
    field("/prompts/*", Holds::Object),
    NAME.at("/prompts/*/name"),
    TITLE.at("/prompts/*/title"),
    TEXT.at("/prompts/*/description"),
    field("/prompts/*/arguments", Holds::Array),
    field("/prompts/*/arguments/*", Holds::Object),
    NAME.at("/prompts/*/arguments/*/name"),
    TITLE.at("/prompts/*/arguments/*/title"),
    TEXT.at("/prompts/*/arguments/*/description"),
    field("/prompts/*/arguments/*/required", Holds::Flag),
    ICONS.at("/prompts/*/icons"),
    META.at("/prompts/*/_meta"),
];

static PLACES: LazyLock<Place> = LazyLock::new(|| Place::of(TABLE));

/// Visits every member that the revision defines.
fn visit_known<'d>(result: Node<'d>, context: &Context<'_>, f: &mut impl FnMut(Node<'d>, &Field)) {
    visit(result, &PLACES, &mut |node, place, _| {
        if let Some(field) = place.and_then(|place| place.field)
            && field.is_known_in(context.profile.versions)
        {
            f(node, field);
        }
    });
}

crate::rule! {
    /// A member that may be left out is left out, not null.
    ///
    /// The schemas of the protocol know absence but no null, and strict clients refuse the whole answer for one null in one
    /// tool. Values inside JSON Schemas, `_meta`, `experimental` and `extensions` are free.
    static NULL_FOR_OPTIONAL = {
        id: "mcp/null-for-optional",
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        impact_evidence: "@modelcontextprotocol/sdk 1.32.2, 2026-11",
        clients: &["@modelcontextprotocol/sdk 1.32.2: refuses"],
        rank: 26,
        versions: ALL,
        on: HANDSHAKES_AND_LISTS,
        place: "/**",
        fix: "Leave the member out.",
        spec: "schema.ts of each revision, optional members",
        examples: &[
            fires(&["/tools/0/description"], r#"{"tools": [{"name": "a", "description": null, "inputSchema": {"type": "object"}}],
                "resultType": "complete", "ttlMs": 0, "cacheScope": "public",
                "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "n", "version": "1"}}}"#).over("mcp-tools-2026-07-28").whole(),
            silent(r#"{"tools": [{"inputSchema": {"properties": {"day": {"default": [null]}}}}]}"#).over("mcp-tools-2026-07-28"),
        ],
        stops: Stops::Value,
        check: Check::Document(null_for_optional),
    }
}

fn null_for_optional(result: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    visit_known(result, context, &mut |node, field| {
        let is_item = node.key().is_none();
        if node.is_null() && !is_item && !field.is_required_in(context.profile.versions) {
            out.add(node, format!("`{}` is null", field.name()));
        }
    });
}

crate::rule! {
    /// Titles and descriptions are strings.
    ///
    /// One number or list in their place makes strict clients refuse the whole list or handshake, not only the one item.
    static TOOL_FIELD_TYPE = {
        id: "mcp/tool-field-type",
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        impact_evidence: "mcp 1.30.0, @modelcontextprotocol/sdk 1.32.2, 2026-11",
        clients: &["mcp 1.30.0: refuses", "@modelcontextprotocol/sdk 1.32.2: refuses"],
        rank: 26,
        versions: ALL,
        on: HANDSHAKES_AND_LISTS,
        place: "/tools/*/title | /tools/*/description | /resources/*/title | /resources/*/description | /resourceTemplates/*/title | /resourceTemplates/*/description | /prompts/*/title | /prompts/*/description | /prompts/*/arguments/*/title | /prompts/*/arguments/*/description | /serverInfo/title | /serverInfo/description | /_meta/io.modelcontextprotocol~1serverInfo/*",
        fix: "Use the schema's types.",
        spec: "schema Tool",
        examples: &[
            fires(&["/tools/0/title"], r#"{"tools": [{"title": 5}]}"#).over("mcp-tools-2026-07-28"),
            fires(&["/serverInfo/title"], r#"{"serverInfo": {"title": ["Harbour"]}}"#).over("mcp-initialize-2025-11-25"),
            silent(r#"{"tools": [{"title": "5"}]}"#).over("mcp-tools-2026-07-28"),
        ],
        stops: Stops::Value,
        check: Check::Document(tool_field_type),
    }
}

fn tool_field_type(result: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    visit_known(result, context, &mut |node, field| {
        if matches!(field.name(), "title" | "description") && !field.at.contains("/annotations/") {
            demand_text(node, out);
        }
    });
    if is_modern(context)
        && let Some(info) = result.get("_meta").and_then(|meta| meta.get(SERVER_INFO))
    {
        ["title", "description"]
            .into_iter()
            .filter_map(|member| info.get(member))
            .for_each(|node| demand_text(node, out));
    }
}

fn demand_text(node: Node<'_>, out: &mut Occurrences) {
    if !matches!(node.kind(), Type::String | Type::Null) {
        out.add(node, format!("`{}` is {}, not a string", node.key().unwrap_or_default(), node.kind().named()));
    }
}
