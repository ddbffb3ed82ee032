//! What an operation takes and gives: request bodies and responses.

use super::parts::{Operation, is_extension, operations};
use super::reference::reference_of;
use super::{OPENAPI, V3, is_3_0, object};
use crate::document::{Node, Type};
use crate::judge::{Context, Occurrences};
use crate::rule::{Basis, Check, Impact, Rule, Severity, fires, silent};
use crate::text::{MediaType, quote};

pub(super) const RULES: &[&Rule] =
    &[&RESPONSES_MISSING, &NO_SUCCESS_RESPONSE, &NO_AUTH_ERROR_RESPONSE, &REQUEST_BODY_INVALID, &GET_WITH_BODY];

crate::rule! {
    /// The operation says what it answers.
    ///
    /// 3.0 requires it; from 3.1 on it may be left out, but not left empty.
    static RESPONSES_MISSING = {
        id: "openapi/responses-missing",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        versions: V3,
        on: OPENAPI,
        place: "/paths/*/*/responses",
        spec: "OpenAPI 3.1.1 Responses Object; OpenAPI 3.0.4 responses is required",
        fix: "Add at least one response.",
        seeds: &["gaip:OPENAPI_RESPONSES_MISSING"],
        examples: &[
            fires(&["/paths/~1tides/get/responses"], r#"{"paths": {"/tides": {"get": {"responses": null}}}}"#)
                .over("openapi-3.0"),
            fires(
                &["/paths/~1tides/get/responses"],
                r#"{"paths": {"/tides": {"get": {"responses": {"200": null, "401": null}}}}}"#,
            ),
            silent(r#"{"paths": {"/tides": {"get": {"responses": null}}}}"#),
        ],
        check: Check::Document(responses_missing),
    }
}

fn responses_missing(root: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    for operation in operations(root) {
        match operation.node.get("responses") {
            Some(responses) if responses.is_empty() => {
                out.add(responses, "the responses are empty");
            }
            Some(responses) if is_3_0(context) && responses.kind() != Type::Object => {
                out.add(responses, format!("`responses` is {}, not an object", responses.kind().named()));
            }
            None if is_3_0(context) => {
                out.add_missing(operation.node, "responses", "the operation has no responses");
            }
            _ => {}
        }
    }
}

crate::rule! {
    /// The operation says what it answers when all went well.
    ///
    /// Without it a caller knows the faults and not the result.
    static NO_SUCCESS_RESPONSE = {
        id: "openapi/no-success-response",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        basis: Basis::Policy,
        versions: V3,
        on: OPENAPI,
        place: "/paths/*/*/responses",
        spec: "Spectral operation-success-response; Redocly operation-2xx-response",
        fix: "Document the success response.",
        examples: &[
            fires(
                &["/paths/~1tides/get/responses"],
                r#"{"paths": {"/tides": {"get": {"responses": {"200": null, "404": {"description": "none"}}}}}}"#,
            ),
            silent(r#"{"paths": {"/tides": {"get": {"responses": {"200": null, "2XX": {"description": "fine"}}}}}}"#),
            silent(r#"{"paths": {"/tides": {"get": {"responses": {"200": null, "303": {"description": "see"}}}}}}"#),
        ],
        check: Check::Document(no_success_response),
    }
}

fn no_success_response(root: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for operation in operations(root) {
        let Some(responses) = object(operation.node, "responses").filter(|responses| !is_bare(*responses)) else {
            continue;
        };
        let switches = |key: &str| key == "101" && operation.method == "get";
        if !responses.members().any(|(key, _)| is_success(key) || switches(key)) {
            out.add(responses, "no response stands for success");
        }
    }
}

/// `2xx`, `3xx`, the two as ranges, and `default`.
fn is_success(key: &str) -> bool {
    let is_status = key.len() == 3 && key.starts_with(['2', '3']);
    key == "default" || (is_status && key[1..].bytes().all(|b| b.is_ascii_digit() || b.eq_ignore_ascii_case(&b'x')))
}

/// Whether an object has no members but extensions. A hidden one counts as such.
fn is_bare(node: Node<'_>) -> bool {
    node.members().all(|(key, _)| is_extension(key))
}

crate::rule! {
    /// A guarded operation says what it answers to the unauthorised.
    ///
    /// A caller can then tell a missing key from a wrong request.
    static NO_AUTH_ERROR_RESPONSE = {
        id: "openapi/no-auth-error-response",
        basis: Basis::Hint,
        versions: V3,
        on: OPENAPI,
        place: "/paths/*/*/responses",
        spec: "OWASP API rulesets define-error-responses-401",
        fix: "Document 401 or 403.",
        examples: &[
            fires(
                &["/paths/~1tides/get/responses"],
                r#"{"paths": {"/tides": {"get": {"responses": {"401": null}}}}}"#,
            ),
            silent(
                r#"{"security": [{}, {"key": null}], "paths": {"/tides": {"get": {"responses": {"401": null}}}}}"#,
            ),
            silent(r#"{"paths": {"/tides": {"get": {"security": [], "responses": {"401": null}}}}}"#),
        ],
        check: Check::Document(no_auth_error_response),
    }
}

fn no_auth_error_response(root: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for operation in operations(root).filter(|operation| is_guarded(root, operation)) {
        let Some(responses) = object(operation.node, "responses").filter(|responses| !is_bare(*responses)) else {
            continue;
        };
        let refuses = |key: &str| matches!(key, "401" | "403" | "4XX" | "4xx" | "default");
        if !responses.members().any(|(key, _)| refuses(key)) {
            out.add(responses, "no response stands for missing or wrong credentials");
        }
    }
}

/// Whether an operation always asks for a security scheme.
fn is_guarded(root: Node<'_>, operation: &Operation<'_>) -> bool {
    let Some(security) = operation.node.get("security").or_else(|| root.get("security")) else { return false };
    security.items().next().is_some() && security.items().all(|alternative| alternative.members().next().is_some())
}

crate::rule! {
    /// A request body has content, by media type.
    ///
    /// A caller has to know in which form to send it.
    static REQUEST_BODY_INVALID = {
        id: "openapi/request-body-invalid",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: V3,
        on: OPENAPI,
        place: "/paths/*/*/requestBody | /paths/*/*/requestBody/content/*",
        spec: "OpenAPI 3.1.1 Request Body Object",
        fix: "Give requestBody a content map.",
        examples: &[
            fires(
                &["/paths/~1tides/post/requestBody"],
                r#"{"paths": {"/tides": {"post": {"operationId": "addTide", "summary": "Add",
                "requestBody": {"schema": {"type": "object"}}}}}}"#,
            ),
            fires(
                &["/paths/~1tides/post/requestBody/content/json"],
                r#"{"paths": {"/tides": {"post": {"operationId": "addTide", "summary": "Add",
                "requestBody": {"content": {"json": {}}}}}}}"#,
            ),
            silent(
                r#"{"paths": {"/tides": {"post": {"operationId": "addTide", "summary": "Add",
                "requestBody": {"content": {"application/*": {}, "text/plain; charset=utf-8": {}}}}}}}"#,
            ),
        ],
        check: Check::Document(request_body_invalid),
    }
}

fn request_body_invalid(root: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for operation in operations(root) {
        let Some(body) = operation.node.get("requestBody").filter(|body| reference_of(*body).is_none()) else {
            continue;
        };
        let Some(content) = object(body, "content").filter(|content| !content.is_empty()) else {
            out.add(body, "the request body has no content");
            continue;
        };
        for (key, media) in content.members().filter(|(key, _)| MediaType::parse(key).is_none() && !is_extension(key)) {
            out.add(media, format!("{} is no media type", quote(key)));
        }
    }
}

/// Methods for which a request body has no meaning.
const BODILESS: &[&str] = &["get", "head", "delete", "trace"];

crate::rule! {
    /// Methods without a body have none.
    ///
    /// Many clients cannot send one with `GET`, `HEAD` or `DELETE`, and servers and caches drop it.
    static GET_WITH_BODY = {
        id: "openapi/get-with-body",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        versions: V3,
        on: OPENAPI,
        place: "/paths/*/*/requestBody",
        spec: "OpenAPI 3.1.1 Operation Object requestBody",
        fix: "Move the data to parameters or use post.",
        examples: &[
            fires(
                &["/paths/~1tides/get/requestBody"],
                r#"{"paths": {"/tides": {"get": {"requestBody": {"content": {"application/json": {}}}}}}}"#,
            ),
            silent(
                r#"{"paths": {"/tides": {"patch": {"operationId": "patchTide", "summary": "Change",
                "requestBody": {"content": {"application/json": {}}}}}}}"#,
            ),
        ],
        check: Check::Document(get_with_body),
    }
}

fn get_with_body(root: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for operation in operations(root).filter(|operation| BODILESS.contains(&operation.method)) {
        if let Some(body) = operation.node.get("requestBody") {
            out.add(body, format!("`{}` has no request body", operation.method));
        }
    }
}
