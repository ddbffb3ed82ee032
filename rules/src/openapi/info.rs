//! What a document says about itself.

use super::{OPENAPI, V3, object, says};
use crate::document::{Node, Type};
use crate::judge::{Context, Occurrences};
use crate::rule::{Check, Impact, Rule, Severity, Stops, fires, silent};

pub(super) const RULES: &[&Rule] = &[&INFO_INVALID, &INFO_MISSING, &INFO_TITLE_MISSING, &INFO_VERSION_MISSING];

crate::rule! {
    /// The info is an object.
    ///
    /// Title and version stand in it.
    static INFO_INVALID = {
        id: "openapi/info-invalid",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: V3,
        on: OPENAPI,
        place: "/info",
        spec: "OpenAPI 3.1.1 Info Object",
        fix: "Make info an object with title and version.",
        seeds: &["gaip:OPENAPI_INFO_INVALID"],
        examples: &[fires(&["/info"], r#"{"info": "Tides"}"#), silent("{}")],
        stops: Stops::Value,
        check: Check::Each(&["/info"], info_invalid),
    }
}

fn info_invalid(info: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if !matches!(info.kind(), Type::Object | Type::Null) {
        out.add(info, format!("`info` is {}, not an object", info.kind().named()));
    }
}

crate::rule! {
    /// The document has an info.
    ///
    /// Without it nobody can tell what the interface is, or which version of it.
    static INFO_MISSING = {
        id: "openapi/info-missing",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: V3,
        on: OPENAPI,
        place: "/info",
        spec: "OpenAPI 3.1.1 Info Object",
        fix: "Add info with title and version.",
        seeds: &["gaip:OPENAPI_INFO_MISSING"],
        examples: &[fires(&["/info"], r#"{"info": null}"#), silent("{}")],
        check: Check::Document(info_missing),
    }
}

fn info_missing(root: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    match root.get("info") {
        None => {
            out.add_missing(root, "info", "there is no `info`");
        }
        Some(info) if info.is_null() => {
            out.add(info, "`info` is null");
        }
        Some(_) => {}
    }
}

crate::rule! {
    /// The interface has a title.
    ///
    /// It is the name under which people and agents find it.
    static INFO_TITLE_MISSING = {
        id: "openapi/info-title-missing",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: V3,
        on: OPENAPI,
        place: "/info/title",
        spec: "OpenAPI 3.1.1 Info Object",
        fix: "Add info.title.",
        seeds: &["gaip:OPENAPI_INFO_TITLE_MISSING"],
        examples: &[
            fires(&["/info/title"], r#"{"info": {"title": null}}"#),
            fires(&["/info/title"], r#"{"info": {"title": " "}}"#),
            silent(r#"{"info": {"title": "T"}}"#),
        ],
        check: Check::Document(info_title_missing),
    }
}

fn info_title_missing(root: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    text_missing(root, "title", out);
}

crate::rule! {
    /// The interface has a version, as a text.
    ///
    /// It tells one state of the document from the next. A number is what is left of a version that YAML read without quotes.
    static INFO_VERSION_MISSING = {
        id: "openapi/info-version-missing",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: V3,
        on: OPENAPI,
        place: "/info/version",
        spec: "OpenAPI 3.1.1 Info Object",
        fix: "Add info.version as a string.",
        seeds: &["gaip:OPENAPI_INFO_VERSION_MISSING"],
        examples: &[
            fires(&["/info/version"], r#"{"info": {"version": null}}"#),
            fires(&["/info/version"], r#"{"info": {"version": 1.0}}"#),
            silent(r#"{"info": {"version": "latest"}}"#),
        ],
        check: Check::Document(info_version_missing),
    }
}

fn info_version_missing(root: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    text_missing(root, "version", out);
}

fn text_missing(root: Node<'_>, name: &str, out: &mut Occurrences) {
    let Some(info) = object(root, "info") else { return };
    if !says(info, name) {
        match info.get(name) {
            None => out.add_missing(info, name, format!("the info has no `{name}`")),
            Some(text) if text.kind() == Type::String => out.add(text, format!("the `{name}` is blank")),
            Some(other) => out.add(other, format!("the `{name}` is {}, not a string", other.kind().named())),
        };
    }
}
