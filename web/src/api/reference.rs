//! `/api`: the reference of the API, without script.

use askama::Template;
use axum::response::Response;
use schemars::generate::SchemaSettings;
use serde::Serialize;
use serde_json::Value;

use super::{Body, Does, Endpoint, Where, endpoints, openapi};
use crate::cache::Cache;
use crate::error::Error;
use crate::filters;
use crate::page::{Frame, Place, Visit};

/// The reference.
#[derive(Template, Serialize)]
#[template(path = "api.html")]
struct Reference {
    #[serde(skip)]
    frame: Frame,
    /// How many addresses there are.
    count: i64,
    /// By what they are about.
    groups: Vec<Group>,
    /// What they answer with.
    types: Vec<Type>,
}

#[derive(Serialize)]
struct Group {
    /// What they are about.
    tag: &'static str,
    /// The addresses.
    endpoints: Vec<Described>,
}

#[derive(Serialize)]
struct Described {
    /// `GET` or `POST`.
    method: &'static str,
    /// With parameters in braces.
    path: &'static str,
    /// In a sentence.
    summary: &'static str,
    /// What else is to be known.
    says: &'static str,
    /// Name, whether it stands in the path, what it is.
    params: Vec<(&'static str, bool, &'static str)>,
    /// The name of what comes back.
    answer: String,
}

#[derive(Serialize)]
struct Type {
    /// Its name.
    name: String,
    /// What it is.
    says: String,
    /// Name, kind, what it is.
    fields: Vec<(String, String, String)>,
}

/// `GET /api`
pub async fn show(visit: Visit) -> Result<Response, Error> {
    let mut groups: Vec<Group> = Vec::new();
    for endpoint in endpoints() {
        let described = described(endpoint);
        match groups.iter_mut().find(|group| group.tag == endpoint.tag) {
            Some(group) => group.endpoints.push(described),
            None => groups.push(Group { tag: endpoint.tag, endpoints: vec![described] }),
        }
    }
    let page =
        Reference { frame: visit.framed(Place::Elsewhere), count: endpoints().count() as i64, groups, types: types() };
    visit.answer(&page, Cache::Minute)
}

fn described(endpoint: &Endpoint) -> Described {
    let answer = match endpoint.body {
        Body::Rows => "rows".to_owned(),
        Body::Media(kinds) => kinds.join(" or "),
        Body::Json(schema) | Body::Stream(schema) => {
            let mut generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
            name_of(schema(&mut generator).as_value())
        }
    };
    Described {
        method: match endpoint.does {
            Does::Read => "GET",
            Does::Write(_) | Does::Act { method: "post", .. } => "POST",
            Does::Act { method: "patch", .. } => "PATCH",
            Does::Act { .. } => "DELETE",
        },
        path: endpoint.path,
        summary: endpoint.summary,
        says: endpoint.says,
        params: endpoint.params.iter().map(|param| (param.name, param.place == Where::Path, param.says)).collect(),
        answer,
    }
}

/// The last part of a reference.
fn name_of(schema: &Value) -> String {
    schema["$ref"].as_str().and_then(|reference| reference.rsplit('/').next()).unwrap_or("object").to_owned()
}

fn types() -> Vec<Type> {
    let Some(schemas) = openapi::schemas().as_object() else { return Vec::new() };
    let objects = schemas.iter().filter(|(_, schema)| schema["properties"].is_object());
    objects
        .map(|(name, schema)| Type {
            name: name.clone(),
            says: schema["description"].as_str().unwrap_or_default().to_owned(),
            fields: schema["properties"]
                .as_object()
                .into_iter()
                .flatten()
                .map(|(name, field)| self::field(name, field))
                .collect(),
        })
        .collect()
}

fn field(name: &str, schema: &Value) -> (String, String, String) {
    (name.to_owned(), kind(schema), schema["description"].as_str().unwrap_or_default().to_owned())
}

fn kind(schema: &Value) -> String {
    if schema["$ref"].is_string() {
        return name_of(schema);
    }
    if let Some(any) = schema["anyOf"].as_array() {
        return any.iter().map(kind).collect::<Vec<_>>().join(" or ");
    }
    match (&schema["type"], schema["items"].is_object()) {
        (_, true) => format!("list of {}", kind(&schema["items"])),
        (Value::String(kind), _) => kind.clone(),
        (Value::Array(kinds), _) => kinds.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or "),
        _ => "anything".to_owned(),
    }
}
