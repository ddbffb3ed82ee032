//! Members that should be something else: another type, another name, or not there.

use super::fields::{PLACES, camel_case, snake_case};
use super::revision::{ALL_REVISIONS, CLOSED_PACKAGE, SINCE_2025_09_16};
use crate::document::Node;
use crate::judge::{Context, Occurrences};
use crate::kind::Kind;
use crate::rule::{Basis, Check, Impact, Rule, Severity, Stops, fires, silent};
use crate::shape::visit;
use crate::text::quote;

pub(super) const RULES: &[&Rule] = &[&WRONG_TYPE, &UNKNOWN_FIELD, &SNAKE_CASE_FIELD, &CAMEL_CASE_IN_OLD_REVISION];

/// Places whose own rules say what is wrong when the type is.
const SPOKEN_FOR: &[&str] = &[
    "/$schema",
    "/name",
    "/status",
    "/icons/*/src",
    "/icons/*/mimeType",
    "/icons/*/sizes",
    "/icons/*/sizes/*",
    "/icons/*/theme",
    "/repository",
    "/repository/url",
    "/repository/source",
    "/packages",
    "/packages/*",
    "/packages/*/registryType",
    "/packages/*/registry_type",
    "/packages/*/identifier",
    "/packages/*/transport",
    "/packages/*/transport/type",
    "/remotes",
    "/remotes/*",
    "/remotes/*/type",
    "/remotes/*/url",
    // Of inputs; their elements of lists likewise.
    "/format",
    "/type",
];

crate::rule! {
    /// Members have the JSON type that the schema gives them.
    ///
    /// Typed clients drop the member or refuse the whole entry; a number in place of a string default is the usual case.
    static WRONG_TYPE = {
        id: "registry/wrong-type",
        severity: Severity::Error,
        impact: Some(Impact::Degrades),
        versions: ALL_REVISIONS,
        place: "/**",
        fix: "Give the field the type the schema states.",
        spec: "server.json 2025-12-11 schema",
        on: &[Kind::ServerJson],
        examples: &[
            fires(&["/version"], r#"{"version": 1.4}"#),
            fires(
                &["/packages/0/environmentVariables/0/default", "/packages/0/environmentVariables/0/isRequired"],
                r#"{"packages": [{"environmentVariables": [{"name": "PORT", "default": 8080, "isRequired": "true"}]}]}"#,
            ),
            fires(&["/remotes/0/variables/tide"], r#"{"remotes": [{"url": "https://mcp.tidehouse.dev/{tide}", "variables": {"tide": "ebb"}}]}"#),
            silent(r#"{"packages": [{"environmentVariables": [{"name": "PORT", "default": "8080", "format": "number"}]}]}"#),
        ],
        stops: Stops::Value,
        check: Check::Document(wrong_type),
    }
}

fn wrong_type(document: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    visit(document, &PLACES, &mut |node, place, _| {
        let Some(field) = place.and_then(|place| place.field) else { return };
        let in_list = node.index().is_some();
        let absent = node.is_null() && !in_list;
        let spoken_for = SPOKEN_FOR.contains(&field.at) || (field.at.is_empty() && in_list);
        let wrong = !absent && !field.holds.admits(node.kind());
        if wrong && !spoken_for && field.is_known_in(context.profile.versions) {
            out.add(node, format!("{} where {} belongs", node.kind().named(), field.holds.named()));
        }
    });
}

crate::rule! {
    /// A member is not in the schema.
    ///
    /// Readers ignore it, so a misspelled member is as good as absent. Data of one's own has a place under `_meta`. Up to
    /// 2025-09-29 the schema closed packages: an unknown member there makes the document invalid.
    static UNKNOWN_FIELD = {
        id: "registry/unknown-field",
        basis: Basis::Hint,
        versions: ALL_REVISIONS,
        place: "/**",
        fix: "Move private data under _meta.",
        spec: "server.json 2025-12-11 schema",
        on: &[Kind::ServerJson],
        examples: &[
            fires(&["/license"], r#"{"license": "MIT"}"#),
            fires(&["/packages/0/registry"], r#"{"packages": [{"registry": "npm"}]}"#),
            fires(&["/packages/0/registry"], r#"{"packages": [{"registry": "npm"}]}"#).over("server-json-2025-09-29"),
            silent(r#"{"$comment": "a", "x-build": 1, "_meta": {"io.modelcontextprotocol.registry/publisher-provided": {"license": "MIT"}}}"#),
            silent(r#"{"remotes": [{"url": "https://mcp.tidehouse.dev/{tide}", "variables": {"tide": {"default": "ebb"}}}]}"#),
        ],
        check: Check::Document(unknown_field),
    }
}

fn unknown_field(document: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    let versions = context.profile.versions;
    visit(document, &PLACES, &mut |node, place, parent| {
        let Some(key) = node.key() else { return };
        let known = parent.is_map() || place.and_then(|p| p.field).is_some_and(|field| field.is_known_in(versions));
        if known || key.starts_with('$') || key.starts_with("x-") || is_other_spelling(key, versions) {
            return;
        }
        let in_package = parent.field.is_some_and(|field| field.at == "/packages/*");
        let added = out.add(node, format!("{} is not in the schema", quote(key)));
        if in_package && versions.iter().any(|version| CLOSED_PACKAGE.contains(version)) {
            added.severity(Severity::Error).impact(Impact::Cosmetic);
        }
    });
}

/// Whether a rule about spelling speaks of that name, or about the status.
fn is_other_spelling(key: &str, versions: &[&str]) -> bool {
    match versions {
        ["2025-07-09"] => key != "websiteUrl" && snake_case(key).is_some(),
        _ => is_snake_case(key) || key == "status",
    }
}

fn is_snake_case(key: &str) -> bool {
    camel_case(key).is_some() || key == "transport_type"
}

crate::rule! {
    /// Names are written in camelCase.
    ///
    /// The first revision wrote `registry_type`; since 2025-09-16 it is `registryType`, and readers of today do not see the
    /// old spelling.
    static SNAKE_CASE_FIELD = {
        id: "registry/snake-case-field",
        severity: Severity::Error,
        impact: Some(Impact::Degrades),
        versions: SINCE_2025_09_16,
        place: "/**",
        fix: "Rename to camelCase.",
        spec: "server-json CHANGELOG 2025-09-16",
        on: &[Kind::ServerJson],
        examples: &[
            fires(&["/website_url"], r#"{"website_url": "https://tidehouse.dev"}"#),
            fires(
                &["/packages/0/environment_variables", "/packages/0/environment_variables/0/is_required"],
                r#"{"packages": [{"environment_variables": [{"name": "REGION", "is_required": true}]}]}"#,
            ),
            silent(r#"{"_meta": {"io.modelcontextprotocol.registry/publisher-provided": {"registry_type": "npm"}}}"#),
            silent(r#"{"remotes": [{"url": "https://mcp.tidehouse.dev/{is_secret}", "variables": {"is_secret": {}}}]}"#),
        ],
        check: Check::Document(snake_case_field),
    }
}

fn snake_case_field(document: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    visit(document, &PLACES, &mut |node, _, parent| {
        if let Some(key) = node.key()
            && !parent.is_map()
            && is_snake_case(key)
        {
            let now = camel_case(key).unwrap_or("transport");
            out.add(node, format!("{} is `{now}` since 2025-09-16", quote(key)));
        }
    });
}

crate::rule! {
    /// The first revision knows no camelCase names.
    ///
    /// The document follows a later revision than the one it names.
    static CAMEL_CASE_IN_OLD_REVISION = {
        id: "registry/camel-case-in-old-revision",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        versions: &["2025-07-09"],
        place: "/**",
        fix: "Declare the revision the field names belong to.",
        spec: "server-json CHANGELOG 2025-09-16",
        on: &[Kind::ServerJson],
        examples: &[
            fires(&["/packages/0/registryType"], r#"{"packages": [{"registry_type": null, "registryType": "npm"}]}"#),
            silent("{}"),
            silent("{}").over("server-json-2025-09-16"),
        ],
        check: Check::Document(camel_case_in_old_revision),
    }
}

fn camel_case_in_old_revision(document: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    visit(document, &PLACES, &mut |node, _, parent| {
        if let Some(key) = node.key()
            && parent.field.is_some()
            && !parent.is_map()
            && let Some(then) = snake_case(key)
        {
            out.add(node, format!("{} was `{then}` in 2025-07-09", quote(key)));
        }
    });
}
