//! Whether a document is an OpenAPI description of a version that is judged.

use super::{OPENAPI, is_release};
use crate::document::Node;
use crate::judge::{Context, Occurrences};
use crate::rule::{Basis, Check, Impact, Rule, Severity, Stops, fires, silent};
use crate::text::quote;

pub(super) const RULES: &[&Rule] = &[&V3_REQUIRED];

crate::rule! {
    /// The document is OpenAPI 3.0 or 3.1.
    ///
    /// Tools for agents read these. Swagger 2.0 has other places for almost everything, and a version that is a number
    /// instead of a text is the mark of YAML that lost its quotes.
    static V3_REQUIRED = {
        id: "openapi/v3-required",
        severity: Severity::Error,
        impact: Some(Impact::Degrades),
        basis: Basis::Policy,
        versions: &["2.0", "3.0", "3.1"],
        on: OPENAPI,
        place: "/openapi | /swagger",
        spec: "OpenAPI 3.1.1 4.8.1 OpenAPI Object",
        fix: "Convert to OpenAPI 3.1 and set openapi to a full version string.",
        seeds: &["gaip:OPENAPI_V3_REQUIRED", "gaip:SUPPORTED_PROTOCOL_REQUIRED"],
        examples: &[
            fires(&["/swagger"], r#"{"openapi": null, "swagger": "2.0"}"#),
            fires(&["/openapi"], r#"{"openapi": 3.1}"#),
            fires(&["/openapi"], r#"{"openapi": null}"#),
            fires(&["/openapi"], r#"{"openapi": "4.0.0"}"#),
            silent(r#"{"openapi": "3.2.0"}"#),
        ],
        stops: Stops::Document,
        check: Check::Document(v3_required),
    }
}

fn v3_required(root: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let version = root.get("openapi");
    if let Some(swagger) = root.get("swagger")
        && (version.is_none() || swagger.text() == Some("2.0"))
    {
        out.add(swagger, format!("the document is Swagger {}", quote(swagger.text().unwrap_or(swagger.raw()))));
        return;
    }
    match version.map(|node| (node, node.text())) {
        None => {
            out.add_missing(root, "openapi", "there is no `openapi`");
        }
        Some((node, None)) => {
            out.add(node, format!("`openapi` is {}, not a string", node.kind().named()));
        }
        Some((node, Some(text))) if !["3.0", "3.1", "3.2"].iter().any(|release| is_release(text, release)) => {
            out.add(node, format!("the version {} is not judged here", quote(text)));
        }
        Some(_) => {}
    }
}
