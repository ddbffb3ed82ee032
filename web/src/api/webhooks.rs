//! `/api/v1/webhooks`: receivers for programs that subscribe. Reading is open and shows no address; whoever writes shows a token
//! with `alerts:write` or sits at this machine.

use axum::extract::rejection::JsonRejection;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{patch, post};
use axum::{Json, Router};
use plumbline_alerts::desk::{Asked, Made, USUAL_GRACE_H};
use plumbline_alerts::formats::Format;
use plumbline_store::alerting::Grade;
use plumbline_store::hooks::Endpoint;
use plumbline_store::tokens::Scope;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Page;
use crate::WebState;
use crate::acting;
use crate::error::Error;
use crate::operator::Actor;
use crate::pages::webhooks::{Signing, hidden, signing};

/// A receiver, without what is secret.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Webhook {
    /// Its name.
    name: String,
    /// As shown.
    title: String,
    /// Its address, without path and query, which may be secret.
    url: String,
    /// Which form bodies have.
    format: String,
    /// `events` or `groups`.
    mode: String,
    /// Event types; empty: all.
    types: Vec<String>,
    /// Of whom and what; empty: all.
    r#match: String,
    /// First looks are sent too.
    include_baseline: bool,
    /// Messages a minute at most.
    per_minute: i64,
    /// `file` (changed there only) or `ui`.
    origin: String,
    /// `active`, `failing` or `disabled`.
    state: String,
    /// Why it is not active.
    state_note: Option<String>,
    /// Failures in a row.
    failures: i64,
    /// Last time it accepted something, in Unix seconds.
    last_success_s: Option<i64>,
    /// Messages that wait.
    pending: i64,
    /// Messages out of attempts.
    dead: i64,
    /// Its keys, without what is secret.
    keys: Vec<Signing>,
}

async fn shown(state: &WebState, endpoint: Endpoint) -> Result<Webhook, Error> {
    let backlog = state.store.backlog(Some(endpoint.id)).await?;
    let keys = signing(state, endpoint.id, (state.now)()).await?;
    let Endpoint { is, origin, state, state_note, failures, last_success_s, .. } = hidden(endpoint);
    Ok(Webhook {
        name: is.slug,
        title: is.title,
        url: is.url,
        format: is.format,
        mode: is.mode.to_string(),
        types: is.types,
        r#match: is.matcher,
        include_baseline: is.include_baseline,
        per_minute: is.per_minute,
        origin: origin.to_string(),
        state: state.to_string(),
        state_note,
        failures,
        last_success_s,
        pending: backlog.pending,
        dead: backlog.dead,
        keys,
    })
}

/// What a write may ask for besides.
#[derive(Debug, Default, Deserialize)]
pub struct Wish {
    /// Judge it and keep nothing.
    #[serde(default)]
    pub(super) dry_run: bool,
}

/// A body as JSON, or a sentence why it is none.
pub(super) fn body<T>(sent: Result<Json<T>, JsonRejection>) -> Result<T, Error> {
    sent.map(|Json(body)| body).map_err(|error| Error::BadForm(error.body_text()))
}

/// `GET /api/v1/webhooks`
pub(super) async fn list(State(state): State<WebState>) -> Result<Json<Page<Webhook>>, Error> {
    let mut items = Vec::new();
    for endpoint in state.store.endpoints().await? {
        items.push(shown(&state, endpoint).await?);
    }
    Ok(Json(Page { items, next: None }))
}

/// `GET /api/v1/webhooks/{name}`
pub(super) async fn one(State(state): State<WebState>, Path(name): Path<String>) -> Result<Json<Webhook>, Error> {
    let endpoint = crate::pages::webhooks::receiver(&state, &name).await?;
    Ok(Json(shown(&state, endpoint).await?))
}

/// A receiver with what is seen this once.
async fn revealed(state: &WebState, status: StatusCode, made: Made) -> Result<Response, Error> {
    let name = made.endpoint.is.slug.clone();
    let mut whole = serde_json::to_value(shown(state, made.endpoint).await?)?;
    whole["secret"] = json!(made.secret);
    whole["public_key"] = json!(made.public_key);
    let mut response = (status, Json(whole)).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if status == StatusCode::CREATED {
        let place = format!("/api/v1/webhooks/{name}");
        headers.insert(header::LOCATION, HeaderValue::from_str(&place).expect("a name is letters and hyphens"));
    }
    Ok(response)
}

/// `POST /api/v1/webhooks`: 201, with the secret this once.
async fn create(
    actor: Actor,
    State(state): State<WebState>,
    Query(wish): Query<Wish>,
    sent: Result<Json<Asked>, JsonRejection>,
) -> Result<Response, Error> {
    actor.must_allow(Scope::AlertsWrite)?;
    let asked = body(sent)?;
    actor.must_cover(&asked.matcher)?;
    if wish.dry_run {
        asked.plan(&state.desk.guard)?;
        return Ok(Json(json!({ "dry_run": true, "webhook": asked })).into_response());
    }
    let made = acting::add_webhook(&state, &actor, &asked).await?;
    revealed(&state, StatusCode::CREATED, made).await
}

/// `PATCH /api/v1/webhooks/{name}`: a merge patch (RFC 7396).
async fn change(
    actor: Actor,
    State(state): State<WebState>,
    Path(name): Path<String>,
    Query(wish): Query<Wish>,
    sent: Result<Json<Value>, JsonRejection>,
) -> Result<Response, Error> {
    actor.must_allow(Scope::AlertsWrite)?;
    let patch = body(sent)?;
    let (_, before) = state.desk.changeable(&name).await?;
    let asked = before.patched(&patch)?;
    actor.must_cover(&before.matcher)?;
    actor.must_cover(&asked.matcher)?;
    if wish.dry_run {
        asked.plan(&state.desk.guard)?;
        return Ok(Json(json!({ "dry_run": true, "webhook": asked })).into_response());
    }
    let made = acting::change_webhook(&state, &actor, &before, &asked).await?;
    revealed(&state, StatusCode::OK, made).await
}

/// `DELETE /api/v1/webhooks/{name}`
async fn remove(actor: Actor, State(state): State<WebState>, Path(name): Path<String>) -> Result<StatusCode, Error> {
    actor.must_allow(Scope::AlertsWrite)?;
    acting::remove_webhook(&state, &actor, &name).await.map(|()| StatusCode::NO_CONTENT)
}

/// How a secret is changed.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Rotation {
    /// The secret before signs as well for so many hours; 0: it is out at once.
    grace_hours: Option<i64>,
    /// Also while one before that still signs.
    force: bool,
}

/// `POST /api/v1/webhooks/{name}/rotate`
async fn rotate(
    actor: Actor,
    State(state): State<WebState>,
    Path(name): Path<String>,
    sent: Result<Json<Rotation>, JsonRejection>,
) -> Result<Response, Error> {
    actor.must_allow(Scope::AlertsWrite)?;
    let asked = body(sent)?;
    let grace_h = asked.grace_hours.unwrap_or(USUAL_GRACE_H);
    let made = acting::rotate_secret(&state, &actor, &name, grace_h, asked.force).await?;
    revealed(&state, StatusCode::OK, made).await
}

/// Which type of message a test sends.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Kind {
    /// Such as `ping`, which is the usual one.
    r#type: Option<String>,
}

/// `POST /api/v1/webhooks/{name}/test`
async fn test(
    actor: Actor,
    State(state): State<WebState>,
    Path(name): Path<String>,
    sent: Result<Json<Kind>, JsonRejection>,
) -> Result<Response, Error> {
    actor.must_allow(Scope::AlertsWrite)?;
    acting::may_touch(&state, &actor, &name).await?;
    let kind = body(sent)?.r#type;
    Ok(Json(state.desk.test(&name, kind.as_deref().unwrap_or("ping")).await?).into_response())
}

/// The schema of a receiver as it is asked for.
pub(super) fn asked_schema(_: &mut SchemaGenerator) -> Schema {
    let text = |says: &str| json!({ "type": "string", "description": says });
    let number = |says: &str| json!({ "type": "integer", "description": says });
    let flag = |says: &str| json!({ "type": "boolean", "description": says });
    let formats: Vec<&str> = Format::ALL.iter().map(|format| format.as_str()).collect();
    let grades: Vec<&str> = Grade::ALL.iter().map(|grade| grade.as_str()).collect();
    json_schema!({
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "name": text("Its name in addresses: lower-case letters, digits and hyphens; it stays."),
            "title": text("As shown."),
            "url": text("Where messages are sent: https, or `mailto:` for e-mail."),
            "format": { "enum": formats, "description": "Which form bodies have; `generic` where it is not given." },
            "mode": { "enum": ["events", "groups", null], "description": "What it hears; null: what suits the form." },
            "types": { "type": "array", "items": { "type": "string" }, "description": "Event types, with `*` at the end; empty: all." },
            "match": text("Of whom and what, in the language of lists; empty: all."),
            "min_severity": { "enum": grades, "description": "Of groups: less grave alerts are left out." },
            "include_baseline": flag("First looks too."),
            "include_rule_changes": flag("Of groups: what opened because a rule changed too."),
            "per_minute": number("Messages a minute at most."),
            "ed25519": flag("Messages are signed with a key pair as well."),
            "template": text("The template of the form `template`."),
            "digest": { "enum": ["daily", "weekly", null], "description": "A summary as well." },
            "digest_zone": text("The zone of its hour."),
            "digest_hour": number("Its hour, 0 to 23."),
            "quiet_hours": {
                "type": ["object", "null"],
                "description": "Of groups: hours in which it hears only what is critical.",
                "properties": { "zone": { "type": "string" }, "from": { "type": "string" }, "to": { "type": "string" } },
            },
            "wait_s": number("Of groups: seconds it waits for others of the same group."),
            "interval_s": number("Of groups: least seconds between two messages about one group."),
            "repeat_s": number("Of groups: after so many seconds without news what still holds is said again."),
            "secret": text("A secret of yours, `whsec_…`; without it one is made and answered this once."),
            "token": text("The receiver's own: a routing key, an access token."),
        },
    })
}

/// The same where it is tried before it is kept.
pub(super) fn unkept_schema(generator: &mut SchemaGenerator) -> Schema {
    let webhook = asked_schema(generator);
    json_schema!({
        "type": "object",
        "required": ["webhook"],
        "properties": { "webhook": webhook, "type": { "type": "string", "description": "Such as `ping`, the usual one." } },
    })
}

/// Nothing is taken.
pub(super) fn nothing_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object" })
}

/// A receiver that is tried before it is kept.
#[derive(Deserialize)]
struct Unkept {
    webhook: Asked,
    r#type: Option<String>,
}

/// `POST /api/v1/webhook-tests`: a test of what is not kept.
async fn test_unkept(
    actor: Actor,
    State(state): State<WebState>,
    sent: Result<Json<Unkept>, JsonRejection>,
) -> Result<Response, Error> {
    actor.must_allow(Scope::AlertsWrite)?;
    let Unkept { webhook, r#type } = body(sent)?;
    actor.must_cover(&webhook.matcher)?;
    Ok(Json(state.desk.try_out(&webhook, None, r#type.as_deref().unwrap_or("ping")).await?).into_response())
}

async fn switched(actor: Actor, state: WebState, name: String, is_paused: bool) -> Result<Response, Error> {
    actor.must_allow(Scope::AlertsWrite)?;
    let endpoint = acting::pause_webhook(&state, &actor, &name, is_paused).await?;
    Ok(Json(shown(&state, endpoint).await?).into_response())
}

/// `POST /api/v1/webhooks/{name}/pause`
async fn pause(actor: Actor, State(state): State<WebState>, Path(name): Path<String>) -> Result<Response, Error> {
    switched(actor, state, name, true).await
}

/// `POST /api/v1/webhooks/{name}/resume`
async fn resume(actor: Actor, State(state): State<WebState>, Path(name): Path<String>) -> Result<Response, Error> {
    switched(actor, state, name, false).await
}

/// What is written; what is read stands in the table.
pub(super) fn router() -> Router<WebState> {
    Router::new()
        .route("/api/v1/webhooks", post(create))
        .route("/api/v1/webhooks/{name}", patch(change).delete(remove))
        .route("/api/v1/webhooks/{name}/rotate", post(rotate))
        .route("/api/v1/webhooks/{name}/test", post(test))
        .route("/api/v1/webhooks/{name}/pause", post(pause))
        .route("/api/v1/webhooks/{name}/resume", post(resume))
        .route("/api/v1/webhook-tests", post(test_unkept))
}
