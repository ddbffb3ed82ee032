//! `/openapi.json`: the API described as OpenAPI 3.1, made of the table of endpoints and of the types they answer with.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use schemars::generate::SchemaSettings;
use schemars::{Schema, SchemaGenerator};
use serde_json::{Value, json};

use super::{Body, Does, Endpoint, FIELDS, Kind, Where, endpoints};
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
            Body::Stream(schema) => json!({
                "application/json": { "schema": schema(&mut generator) },
                "text/event-stream": { "schema": { "type": "string" } },
            }),
            Body::Rows => of_media(&["text/csv", "application/jsonl", "application/vnd.apache.parquet"]),
            Body::Media(kinds) => of_media(kinds),
        };
        let (method, operation) = match endpoint.does {
            Does::Read => ("get", operation(endpoint, &answer)),
            Does::Write(schema) => ("post", repeatable(writing(endpoint, &answer, Some(schema), "202"))),
            Does::Act { method: "post", takes, status } => {
                ("post", repeatable(writing(endpoint, &answer, takes, status)))
            }
            Does::Act { method, takes, status } => (method, writing(endpoint, &answer, takes, status)),
        };
        let path = paths.entry(endpoint.path).or_insert_with(|| json!({}));
        path[method] = operation;
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
        "security": [],
        "tags": tags.iter().map(|tag| json!({ "name": tag, "description": tag_says(tag) })).collect::<Vec<_>>(),
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "`plumbline token create` makes one. Whoever sits at the machine itself needs none.",
                },
            },
        },
    })
}

/// Content in one of these media types, of any shape.
fn of_media(kinds: &[&str]) -> Value {
    let schema =
        |kind: &str| if kind.ends_with("/json") { json!({ "type": "object" }) } else { json!({ "type": "string" }) };
    kinds
        .iter()
        .map(|kind| ((*kind).to_owned(), json!({ "schema": schema(kind) })))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

/// The members of what an address answers, or of the items where it answers with a list.
pub(super) fn members(endpoint: &Endpoint) -> BTreeSet<String> {
    let schema = |reference: &Value| {
        let name = reference["$ref"].as_str().and_then(|reference| reference.rsplit('/').next()).unwrap_or_default();
        &schemas()[name]
    };
    let answer = schema(
        &DESCRIPTION["paths"][endpoint.path]["get"]["responses"]["200"]["content"]["application/json"]["schema"],
    );
    let items = &answer["properties"]["items"]["items"];
    let whole = if items.is_object() { schema(items) } else { answer };
    whole["properties"].as_object().map(|members| members.keys().cloned().collect()).unwrap_or_default()
}

/// An operation that takes JSON from whoever shows a token.
fn writing(
    endpoint: &Endpoint,
    answer: &Value,
    taken: Option<fn(&mut SchemaGenerator) -> Schema>,
    status: &str,
) -> Value {
    // What is taken may leave out what an answer always has, so it has schemas of its own.
    let settings = SchemaSettings::draft2020_12().for_deserialize().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut operation = operation(endpoint, answer);
    if let Some(schema) = taken {
        let taken = schema(&mut settings.into_generator());
        operation["requestBody"] = json!({ "required": true, "content": { "application/json": { "schema": taken } } });
    }
    operation["security"] = json!([{ "token": [] }, {}]);
    let responses = operation["responses"].as_object_mut().expect("an operation has responses");
    let done = responses.remove("200").expect("an operation has an answer");
    responses.insert(status.to_owned(), done);
    responses.insert("401".to_owned(), problem_answer("A token is needed."));
    responses.insert("403".to_owned(), problem_answer("The token does not allow that."));
    responses.insert("404".to_owned(), problem_answer("What is named is not there, or is somebody else's."));
    operation
}

/// The same for one that is done once however often it is asked for with one key.
fn repeatable(mut operation: Value) -> Value {
    let key = json!({
        "name": "Idempotency-Key",
        "in": "header",
        "required": false,
        "description": "Of your choosing: for a day the same key with the same body is answered as the first time, and done once.",
        "schema": { "type": "string", "minLength": 1, "maxLength": 255 },
    });
    operation["parameters"].as_array_mut().expect("an operation has parameters").push(key);
    operation["responses"]["409"] = problem_answer("It contradicts what is there, or is being answered just now.");
    operation["responses"]["422"] = problem_answer("The `Idempotency-Key` was that of another request.");
    operation
}

fn problem_answer(says: &str) -> Value {
    json!({
        "description": says,
        "content": { "application/problem+json": { "schema": { "$ref": "#/components/schemas/Problem" } } },
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
        "Events" => "What happened, page by page or as it happens.",
        "Registry" => "A registry of MCP servers that tells how they conform.",
        "Feeds" => "What happened, as Atom.",
        "Badges" => "How things stand, small enough for a README.",
        "Alerts" => "What holds, why it was told or not, and what keeps quiet.",
        "Webhooks" => "Who is told, and how that goes.",
        "Watching" => "For those who watch this installation.",
        _ => "More.",
    }
}

fn operation(endpoint: &Endpoint, answer: &Value) -> Value {
    let fields = endpoint.has_fields().then_some(&FIELDS);
    let params: Vec<Value> = endpoint
        .params
        .iter()
        .chain(fields)
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
    let mut responses = json!({
        "200": { "description": endpoint.summary, "content": answer },
        "400": problem_answer("Something of the request cannot be read; `word` points at the word of a query that is to blame."),
        "500": problem_answer("We failed; the number is in our log."),
    });
    if endpoint.route.is_some() {
        responses["200"]["headers"] = json!({
            "RateLimit": { "description": "Requests left and seconds to the next window.", "schema": { "type": "string" } },
        });
        responses["429"] = problem_answer("Too many requests; `Retry-After` says when to go on.");
    }
    if endpoint.route.is_some() && matches!(endpoint.body, Body::Json(_)) {
        responses["200"]["headers"]["ETag"] =
            json!({ "description": "Give it back as `If-None-Match`.", "schema": { "type": "string" } });
        responses["304"] = json!({ "description": "It is as it was." });
    }
    if endpoint.params.iter().any(|param| param.place == Where::Path) {
        responses["404"] = problem_answer("There is no such thing here.");
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
