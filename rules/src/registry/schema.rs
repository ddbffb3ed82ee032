//! What `$schema` says.

use super::revision::{ALL_REVISIONS, OLDER_REVISIONS, Schema, is_newest, published};
use crate::document::Node;
use crate::judge::{Context, Occurrences, Origin};
use crate::kind::Kind;
use crate::rule::{Basis, Check, Class, Impact, Rule, Severity, fires, silent};
use crate::text::quote;

pub(super) const RULES: &[&Rule] = &[
    &SCHEMA_MISSING,
    &SCHEMA_URL_UNRECOGNISED,
    &SCHEMA_REVISION_UNKNOWN,
    &SCHEMA_OUTDATED,
    &SCHEMA_DRAFT,
    &SCHEMA_REFUSED_AT_PUBLISH,
];

crate::rule! {
    /// A server.json names its schema.
    ///
    /// Names of members and what is required changed between revisions; without `$schema` a reader has to guess which of
    /// them the file follows.
    static SCHEMA_MISSING = {
        id: "registry/schema-missing",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        versions: ALL_REVISIONS,
        place: "/$schema",
        fix: "Add the dated server.json schema URL the file was written for.",
        spec: "server.json 2025-12-11 schema $schema; official registry publish checks",
        seeds: &["gaip:MCP_REGISTRY_SCHEMA_MISSING"],
        on: &[Kind::ServerJson],
        examples: &[
            fires(&["/$schema"], r#"{"$schema": null}"#),
            fires(&["/$schema"], r#"{"$schema": ""}"#),
            silent(r#"{"$schema": "https://static.modelcontextprotocol.io/schemas/2025-10-17/server.schema.json"}"#),
        ],
        check: Check::Document(schema_missing),
    }
}

fn schema_missing(document: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    match document.given("$schema") {
        None => {
            out.add_missing(document, "$schema", "no schema is named");
        }
        Some(schema) if schema.text() == Some("") => {
            out.add(schema, "the schema's address is empty");
        }
        Some(_) => {}
    }
}

crate::rule! {
    /// `$schema` is the exact address of a published schema.
    ///
    /// Tools look the address up in a list of known ones; a fragment, another scheme or another path is none of them.
    /// A subregistry may publish a schema of its own, so a foreign host is only pointed out.
    static SCHEMA_URL_UNRECOGNISED = {
        id: "registry/schema-url-unrecognised",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        versions: ALL_REVISIONS,
        place: "/$schema",
        fix: "Use the published dated URL without a fragment.",
        spec: "server.json 2025-12-11 schema $schema",
        seeds: &["gaip:MCP_REGISTRY_SCHEMA_MISSING"],
        on: &[Kind::ServerJson],
        examples: &[
            fires(&["/$schema"], r#"{"$schema": "http://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"}"#),
            fires(&["/$schema"], r#"{"$schema": "https://schemas.tidehouse.dev/2025-12-11/server.schema.json"}"#),
            fires(&["/$schema"], r#"{"$schema": 20251211}"#),
            silent(r#"{"$schema": "https://raw.githubusercontent.com/modelcontextprotocol/registry/main/docs/reference/server-json/draft/server.schema.json"}"#),
        ],
        check: Check::Document(schema_url_unrecognised),
    }
}

fn schema_url_unrecognised(document: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let Some(schema) = document.given("$schema") else { return };
    let Some(text) = schema.text() else {
        out.add(schema, format!("the schema's address is {}", schema.kind().named()));
        return;
    };
    match Schema::read(text) {
        _ if text.is_empty() => {}
        Schema::Dated(_) | Schema::Draft => {}
        Schema::Official => {
            out.add(schema, format!("{} is no address of a published schema", quote(text)));
        }
        Schema::Foreign => {
            out.add(schema, format!("{} is a schema of somebody else", quote(text))).severity(Severity::Info);
        }
    }
}

crate::rule! {
    /// The schema's date is one that was published.
    ///
    /// Often it is the date of a protocol revision. The document is judged by the newest schema that is not later.
    static SCHEMA_REVISION_UNKNOWN = {
        id: "registry/schema-revision-unknown",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        versions: ALL_REVISIONS,
        place: "/$schema",
        fix: "Use a published schema date.",
        spec: "server.json 2025-12-11 schema $schema",
        seeds: &["gaip:MCP_REGISTRY_SCHEMA_MISSING"],
        on: &[Kind::ServerJson],
        examples: &[
            fires(&["/$schema"], r#"{"$schema": "https://static.modelcontextprotocol.io/schemas/2025-11-25/server.schema.json"}"#),
            silent(r#"{"$schema": "https://static.modelcontextprotocol.io/schemas/2025-10-11/server.schema.json"}"#),
        ],
        check: Check::Document(schema_revision_unknown),
    }
}

fn schema_revision_unknown(document: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    if let Some((schema, Schema::Dated(date))) = read(document)
        && published(date).is_none()
    {
        let judged = context.profile.versions.first().copied().unwrap_or_default();
        out.add(schema, format!("no schema was published on {date}; judged by {judged}"));
    }
}

fn read(document: Node<'_>) -> Option<(Node<'_>, Schema<'_>)> {
    let schema = document.given("$schema")?;
    Some((schema, Schema::read(schema.text()?)))
}

/// Whether a published schema was superseded since.
fn is_older(date: &str) -> bool {
    published(date).is_some() && !is_newest(date)
}

/// Whether the document stands in a registry, as opposed to a file that is still to be published.
fn is_listed(document: Node<'_>, context: &Context<'_>) -> bool {
    let in_an_entry = document.parent().is_some();
    in_an_entry || !(context.given.unpublished || context.origin == Origin::Nowhere)
}

crate::rule! {
    /// The schema is an older published one.
    ///
    /// What is listed cannot be changed, so this says nothing against the entry.
    static SCHEMA_OUTDATED = {
        id: "registry/schema-outdated",
        class: Class::Fact,
        versions: OLDER_REVISIONS,
        place: "/$schema",
        fix: "Move to the newest dated schema when you next publish.",
        spec: "server-json CHANGELOG",
        on: &[Kind::ServerJson],
        examples: &[
            fires(&["/$schema"], "{}"),
            silent(r#"{"$schema": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"}"#),
        ],
        check: Check::Document(schema_outdated),
    }
}

fn schema_outdated(document: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    if let Some((schema, Schema::Dated(date))) = read(document)
        && is_older(date)
        && is_listed(document, context)
    {
        out.add(schema, format!("the schema of {date}"));
    }
}

crate::rule! {
    /// The schema is the draft.
    ///
    /// The draft may change while the document stays as it is.
    static SCHEMA_DRAFT = {
        id: "registry/schema-draft",
        class: Class::Fact,
        basis: Basis::Policy,
        versions: &["draft"],
        place: "/$schema",
        fix: "Publish against a dated schema.",
        spec: "server-json CHANGELOG, Draft section",
        on: &[Kind::ServerJson],
        examples: &[
            fires(&["/$schema"], "{}"),
            silent("{}").given(r#"{"unpublished": true}"#).over("server-json-2025-12-11"),
        ],
        check: Check::Document(schema_draft),
    }
}

fn schema_draft(document: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    if let Some((schema, Schema::Draft)) = read(document)
        && is_listed(document, context)
    {
        out.add(schema, "the draft schema");
    }
}

crate::rule! {
    /// A file that is to be published names the newest schema.
    ///
    /// The official publisher refuses older schemas and the draft, though entries listed with them stay valid.
    static SCHEMA_REFUSED_AT_PUBLISH = {
        id: "registry/schema-refused-at-publish",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        impact_evidence: "official publisher refuses it; no MCP client reads $schema",
        basis: Basis::Policy,
        versions: ALL_REVISIONS,
        place: "/$schema",
        fix: "Use the newest dated schema.",
        spec: "server-json CHANGELOG; official registry publish checks",
        on: &[Kind::ServerJson],
        examples: &[
            fires(&["/$schema"], "{}").given(r#"{"unpublished": true}"#).over("server-json-2025-09-29"),
            fires(&["/$schema"], "{}").given(r#"{"unpublished": true}"#).over("server-json-draft"),
            silent("{}").given(r#"{"unpublished": true}"#),
            silent("{}").over("server-json-2025-09-29"),
        ],
        check: Check::Document(schema_refused_at_publish),
    }
}

fn schema_refused_at_publish(document: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    if is_listed(document, context) {
        return;
    }
    match read(document) {
        Some((schema, Schema::Dated(date))) if is_older(date) => {
            out.add(schema, format!("the schema of {date} is no longer taken"));
        }
        Some((schema, Schema::Draft)) => {
            out.add(schema, "the draft is not taken");
        }
        _ => {}
    }
}
