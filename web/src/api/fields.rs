//! `fields=`: only the members that a program wants, of the answer or of the items of a list.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use axum::body::{Body, to_bytes};
use axum::extract::{MatchedPath, Request};
use axum::http::{StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde_json::Value;

use super::{endpoints, openapi};
use crate::error::Error;

/// The largest answer that is cut down.
const MOST: usize = 16 << 20;

/// The names that can be chosen, by address.
static MEMBERS: LazyLock<BTreeMap<&'static str, BTreeSet<String>>> = LazyLock::new(|| {
    let with_fields = endpoints().filter(|endpoint| endpoint.has_fields());
    with_fields.map(|endpoint| (endpoint.path, openapi::members(endpoint))).collect()
});

/// Leaves out of an answer what `fields` does not name.
pub async fn chosen(request: Request, next: Next) -> Response {
    let query = request.uri().query().unwrap_or_default().to_owned();
    let Some(list) = query.split('&').find_map(|pair| pair.strip_prefix("fields=")) else {
        return next.run(request).await;
    };
    let path = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned()).unwrap_or_default();
    let wanted = match named(&path, list) {
        Ok(wanted) => wanted,
        Err(error) => return error.into_response(),
    };
    let response = next.run(request).await;
    let is_json = response.headers().get(header::CONTENT_TYPE).is_some_and(|kind| kind == "application/json");
    if response.status() != StatusCode::OK || !is_json || wanted.is_empty() {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    let cut = async {
        let mut whole: Value = serde_json::from_slice(&to_bytes(body, MOST).await.ok()?).ok()?;
        keep(&mut whole, &wanted);
        serde_json::to_vec(&whole).ok()
    };
    let Some(bytes) = cut.await else { return StatusCode::INTERNAL_SERVER_ERROR.into_response() };
    parts.headers.remove(header::CONTENT_LENGTH);
    Response::from_parts(parts, Body::from(bytes))
}

/// The names of a list, each of which the answers of that address have.
fn named(path: &str, list: &str) -> Result<BTreeSet<String>, Error> {
    let refused = |reason: String| Error::BadQuery { field: "fields", reason };
    let Some(known) = MEMBERS.get(path) else { return Err(refused("is not for this address".to_owned())) };
    let list = list.replace("%2C", ",").replace("%2c", ",");
    let wanted: BTreeSet<String> =
        list.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect();
    match wanted.iter().find(|name| !known.contains(*name)) {
        Some(unknown) => {
            let names = known.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
            Err(refused(format!("names no member: “{}”; there are {names}", crate::text::visible(unknown, 40))))
        }
        None => Ok(wanted),
    }
}

/// Keeps these members of an object, or of every item where it is a page of a list.
fn keep(whole: &mut Value, wanted: &BTreeSet<String>) {
    match whole.get_mut("items") {
        Some(Value::Array(items)) => items.iter_mut().for_each(|item| keep(item, wanted)),
        _ => {
            if let Some(members) = whole.as_object_mut() {
                members.retain(|name, _| wanted.contains(name));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn members_of_items_are_kept_and_the_next_page_too() {
        let wanted = BTreeSet::from(["id".to_owned()]);
        let mut page = json!({ "items": [{ "id": 1, "name": "x" }, { "name": "y" }], "next": "2" });
        keep(&mut page, &wanted);
        assert_eq!(page, json!({ "items": [{ "id": 1 }, {}], "next": "2" }));
        let mut one = json!({ "id": 1, "name": "x" });
        keep(&mut one, &wanted);
        assert_eq!(one, json!({ "id": 1 }));
    }

    #[test]
    fn every_address_with_members_names_them_and_refuses_others() {
        assert!(MEMBERS.len() > 25 && MEMBERS.values().all(|names| !names.is_empty()), "{MEMBERS:?}");
        assert_eq!(named("/api/v1/targets", "id%2Cname").unwrap().len(), 2);
        assert!(named("/api/v1/targets", "nothing").is_err() && named("/api/v1/events", "id").is_err());
    }
}
