//! `/openapi.json`: the API described as OpenAPI 3.1, made of the table of endpoints and of the types they answer with.

use std::sync::LazyLock;

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

use super::{Body, Endpoint, Kind, Where, endpoints};
use crate::WebState;

/// The description, without the name of the installation.
static DESCRIPTION: LazyLock<Value> = LazyLock::new(described);

/// `GET /openapi.json`
pub async fn show(State(state): State<WebState>) -> Response {
    let mut whole = DESCRIPTION.clone();
    whole["info"]["title"] = format!("{} API", state.site().instance_name).into();
    let body = serde_json::to_string_pretty(&whole).unwrap_or_default();
    ([(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "public, max-age=60")], body).into_response()
}

/// The schemas of everything that is answered, by name, as the reference page lists them.
pub(super) fn schemas() -> &'static Value {
    &DESCRIPTION["components"]["schemas"]
}

fn described() -> Value {
    let settings = SchemaSettings::draft2020_12().for_serialize().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    });
    let mut generator = settings.into_generator();
    let mut paths = serde_json::Map::new();
    for endpoint in endpoints() {
        let answer = match endpoint.body {
            Body::Json(schema) => json!({ "application/json": { "schema": schema(&mut generator) } }),
            Body::Rows => json!({
                "text/csv": { "schema": { "type": "string" } },
                "application/jsonl": { "schema": { "type": "string" } },
            }),
        };
        paths.insert(endpoint.path.to_owned(), json!({ "get": operation(endpoint, &answer) }));
    }
    let mut schemas = generator.take_definitions(true);
    schemas.insert("Problem".to_owned(), problem());
    let mut tags: Vec<&str> = endpoints().map(|endpoint| endpoint.tag).collect();
    tags.dedup();
    tags.sort_unstable();
    tags.dedup();
    json!({
        "openapi": "3.1.1",
        "jsonSchemaDialect": "https://json-schema.org/draft/2020-12/schema",
        "info": {
            "title": "Plumbline API",
            "version": env!("CARGO_PKG_VERSION"),
            "summary": "Everything the pages show, as JSON.",
            "description": "Reading needs no token. Lists have pages: give `next` back as `cursor`. Answers carry an `ETag`; a request with `If-None-Match` gets 304 where nothing changed. Errors are problems as RFC 9457 has them.",
            "contact": { "name": "Plumbline", "url": env!("CARGO_PKG_REPOSITORY") },
            "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
        },
        "servers": [{ "url": "/", "description": "This installation." }],
        "security": [{}],
        "tags": tags.iter().map(|tag| json!({ "name": tag, "description": tag_says(tag) })).collect::<Vec<_>>(),
        "paths": paths,
        "components": { "schemas": schemas },
    })
}

fn tag_says(tag: &str) -> &'static str {
    match tag {
        "Targets" => "What is watched: names in registries, agents, services.",
        "Findings" => "What is wrong, since when, and because of what.",
        "Documents" => "What exactly was served.",
        "Rules" => "What is checked, and how common each failure is.",
        "Cohorts" => "Groups of targets, day by day.",
        "Crawls" => "What the crawler did.",
        "Deploys" => "Changes of software, told or inferred.",
        "Incidents" => "Outages that several share.",
        "Exports" => "Whole lists as downloads.",
        _ => "More.",
    }
}

fn operation(endpoint: &Endpoint, answer: &Value) -> Value {
    let params: Vec<Value> = endpoint
        .params
        .iter()
        .map(|param| {
            let schema = match param.schema {
                Kind::Text => json!({ "type": "string" }),
                Kind::Number => json!({ "type": "integer", "format": "int64" }),
            };
            json!({
                "name": param.name,
                "in": if param.place == Where::Path { "path" } else { "query" },
                "required": param.place == Where::Path,
                "description": param.says,
                "schema": schema,
            })
        })
        .collect();
    let problem = |says: &str| {
        json!({
            "description": says,
            "content": { "application/problem+json": { "schema": { "$ref": "#/components/schemas/Problem" } } },
        })
    };
    let mut responses = json!({
        "200": {
            "description": endpoint.summary,
            "headers": {
                "ETag": { "description": "Give it back as `If-None-Match`.", "schema": { "type": "string" } },
                "RateLimit": { "description": "Requests left and seconds to the next window.", "schema": { "type": "string" } },
            },
            "content": answer,
        },
        "400": problem("A parameter cannot be read; `word` points at the word of a query that is to blame."),
        "429": problem("Too many requests; `Retry-After` says when to go on."),
        "500": problem("We failed; the number is in our log."),
    });
    if matches!(endpoint.body, Body::Json(_)) {
        responses["304"] = json!({ "description": "It is as it was." });
    }
    if endpoint.params.iter().any(|param| param.place == Where::Path) {
        responses["404"] = problem("There is no such thing here.");
    }
    json!({
        "operationId": endpoint.id,
        "tags": [endpoint.tag],
        "summary": endpoint.summary,
        "description": endpoint.says,
        "parameters": params,
        "responses": responses,
    })
}

/// A problem as RFC 9457 has it.
fn problem() -> Value {
    json!({
        "type": "object",
        "description": "What went wrong, as RFC 9457 has it.",
        "required": ["status", "title", "detail", "request_id"],
        "properties": {
            "status": { "type": "integer", "description": "The status code." },
            "title": { "type": "string", "description": "What happened, in a sentence." },
            "detail": { "type": "string", "description": "What it means or what to do, in a sentence." },
            "request_id": { "type": "string", "description": "Find this in our log." },
            "word": {
                "type": "object",
                "description": "The query and the word of it that is to blame.",
                "properties": {
                    "query": { "type": "string", "description": "The query as it was read." },
                    "at": { "type": "integer", "description": "Where the word begins, in bytes." },
                    "length": { "type": "integer", "description": "How long it is, in bytes." },
                    "says": { "type": "string", "description": "What is wrong with it." },
                },
            },
        },
    })
}
