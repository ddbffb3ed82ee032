//! `/webhooks`: receivers and how they do; one receiver with its log; one message with its exact bytes; what is out of attempts.

use askama::Template;
use axum::extract::{Path, Query, State};
use axum::http::header;
use axum::response::{IntoResponse, Redirect, Response};
use plumbline_store::EndpointId;
use plumbline_store::hooks::{AttemptRow, Backlog, DeliveryRow, DeliveryState, Endpoint, EndpointState, Origin};
use plumbline_store::words::EventKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::WebState;
use crate::acting;
use crate::cache::Cache;
use crate::error::Error;
use crate::filters;
use crate::operator::Acted;
use crate::page::{Frame, Place, Visit};
use crate::pages::quiet::Nothing;
use crate::text;

/// Messages on one page.
const SHOWN: i64 = 100;

/// A receiver and what waits for it.
#[derive(Serialize)]
struct Served {
    /// The receiver.
    #[serde(flatten)]
    endpoint: Endpoint,
    /// What waits.
    backlog: Backlog,
}

/// All receivers.
#[derive(Template, Serialize)]
#[template(path = "webhooks.html")]
struct WebhooksPage {
    #[serde(skip)]
    frame: Frame,
    /// The moment the page holds for, in Unix seconds.
    as_of_s: i64,
    /// The answer in one sentence.
    answer: String,
    /// By name.
    webhooks: Vec<Served>,
}

/// A receiver without what may be a secret in it.
pub(crate) fn hidden(mut endpoint: Endpoint) -> Endpoint {
    endpoint.is.url = host_only(&endpoint.is.url);
    endpoint.is.options = "{}".to_owned();
    endpoint
}

/// An address without its path and query, which may be secret.
pub(crate) fn host_only(url: &str) -> String {
    let end = url.find("://").and_then(|at| url[at + 3..].find(['/', '?']).map(|end| at + 3 + end));
    end.map_or_else(|| url.to_owned(), |end| format!("{}/…", &url[..end]))
}

/// `GET /webhooks`
pub async fn list(visit: Visit, State(state): State<WebState>) -> Result<Response, Error> {
    let mut webhooks = Vec::new();
    for endpoint in state.store.endpoints().await? {
        let backlog = state.store.backlog(Some(endpoint.id)).await?;
        webhooks.push(Served { endpoint: hidden(endpoint), backlog });
    }
    let answer = answer(&webhooks);
    let page = WebhooksPage { frame: visit.framed(Place::Alerts), as_of_s: visit.now, answer, webhooks };
    visit.answer(&page, Cache::Fresh)
}

/// Who accepts what it is sent, as far as anything was sent.
fn answer(webhooks: &[Served]) -> String {
    let count = |is: fn(&Endpoint) -> bool| webhooks.iter().filter(|one| is(&one.endpoint)).count() as i64;
    let paused = count(|one| one.state == EndpointState::Disabled);
    let ill =
        count(|one| one.state == EndpointState::Failing || (one.state == EndpointState::Active && one.failures > 0));
    let untried = count(|one| one.state == EndpointState::Active && one.failures == 0 && one.last_success_s.is_none());
    let all = webhooks.len() as i64;
    let well = all - paused - ill - untried;
    match (all, untried == all) {
        (0, _) => return "Nobody is told anything yet.".to_owned(),
        (1, true) => return "1 receiver, and nothing was sent to it yet.".to_owned(),
        (n, true) => return format!("{} receivers, and nothing was sent to them yet.", text::number(n)),
        (_, false) => {}
    }
    let receivers = text::counted(all, "receiver", "receivers");
    let said: Vec<String> = [
        (well, "accepts what it is sent", "accept what they are sent"),
        (ill, "does not accept what it is sent", "do not accept what they are sent"),
        (untried, "has been sent nothing yet", "have been sent nothing yet"),
        (paused, "is switched off", "are switched off"),
    ]
    .into_iter()
    .filter(|(n, ..)| *n > 0)
    .map(|(n, one, many)| match n == all {
        true if all == 1 => format!("and it {one}"),
        true => format!("and all of them {many}"),
        false => text::counted(n, one, many),
    })
    .collect();
    if said.len() == 1 { format!("{receivers} {}.", said[0]) } else { format!("{receivers}: {}.", text::listed(&said)) }
}

/// One receiver, or what is dead of all.
#[derive(Template, Serialize)]
#[template(path = "webhook.html")]
struct WebhookPage {
    #[serde(skip)]
    frame: Frame,
    /// The moment the page holds for, in Unix seconds.
    as_of_s: i64,
    /// The receiver; `None`: all of them.
    webhook: Option<Endpoint>,
    /// Its secrets by role and scheme; never what they are.
    secrets: Vec<Signing>,
    /// What waits for it.
    backlog: Backlog,
    /// Its messages, the newest first.
    deliveries: Vec<DeliveryRow>,
    /// The id to go on from.
    next: Option<String>,
    #[serde(skip)]
    kinds: Vec<&'static str>,
}

impl WebhookPage {
    fn is_signed(&self) -> bool {
        self.secrets.iter().any(|key| key.scheme == "v1")
    }

    fn is_changeable(&self) -> bool {
        self.webhook.as_ref().is_some_and(|one| one.origin == Origin::Ui)
    }
}

/// A secret without what is secret.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct Signing {
    /// `current` or `previous`.
    pub role: String,
    /// `v1`, `v1a`; `token` is the receiver's own and signs nothing.
    pub scheme: String,
    /// When it was made, in Unix seconds.
    pub created_s: i64,
    /// Until when it signs, in Unix seconds; null: until it is changed.
    pub expires_s: Option<i64>,
    /// When it last signed something that was accepted, in Unix seconds.
    pub last_used_s: Option<i64>,
}

/// The secrets of a receiver, the newest first, without what is secret.
pub(crate) async fn signing(state: &WebState, id: EndpointId, now_s: i64) -> Result<Vec<Signing>, Error> {
    let secrets = state.store.secrets(id, now_s).await?.into_iter().map(|secret| Signing {
        role: secret.role.to_string(),
        scheme: secret.scheme,
        created_s: secret.created_s,
        expires_s: secret.expires_s,
        last_used_s: secret.last_used_s,
    });
    Ok(secrets.collect())
}

/// Every type of message, `ping` first.
pub(super) fn event_words() -> Vec<&'static str> {
    let words = EventKind::ALL.iter().map(|kind| kind.as_str()).filter(|word| *word != "ping");
    std::iter::once("ping").chain(words).collect()
}

/// Where to go on.
#[derive(Deserialize)]
pub struct Paged {
    before: Option<String>,
}

/// `GET /webhooks/{slug}`; the name `dead` is what is out of attempts, of all receivers.
pub async fn show(
    visit: Visit,
    State(state): State<WebState>,
    Path(slug): Path<String>,
    Query(paged): Query<Paged>,
) -> Result<Response, Error> {
    let (webhook, only) = match slug.as_str() {
        "dead" => (None, Some(DeliveryState::Dead)),
        _ => (Some(receiver(&state, &slug).await?), None),
    };
    let id = webhook.as_ref().map(|endpoint| endpoint.id);
    let deliveries = state.store.deliveries(id, only, paged.before.as_deref(), SHOWN).await?;
    let is_full = i64::try_from(deliveries.len()).is_ok_and(|n| n == SHOWN);
    let page = WebhookPage {
        frame: visit.framed(Place::Alerts),
        as_of_s: visit.now,
        secrets: match id {
            Some(id) => signing(&state, id, visit.now).await?,
            None => Vec::new(),
        },
        kinds: event_words(),
        webhook: webhook.map(hidden),
        backlog: state.store.backlog(id).await?,
        next: deliveries.last().filter(|_| is_full).map(|row| row.message.clone()),
        deliveries,
    };
    visit.answer(&page, Cache::Fresh)
}

pub(crate) async fn receiver(state: &WebState, slug: &str) -> Result<Endpoint, Error> {
    state.store.endpoint(slug).await.map_err(|error| match error {
        plumbline_store::Error::Missing { .. } => Error::NotFound { what: "webhook", asked: slug.to_owned() },
        other => other.into(),
    })
}

/// One message to one receiver.
#[derive(Template, Serialize)]
#[template(path = "delivery.html")]
struct DeliveryPage {
    #[serde(skip)]
    frame: Frame,
    /// The moment the page holds for, in Unix seconds.
    as_of_s: i64,
    /// How far it came.
    delivery: DeliveryRow,
    /// The message's bytes as text.
    body: String,
    /// Every try; answers are for the person at this machine.
    tries: Vec<AttemptRow>,
}

/// `GET /webhooks/{slug}/deliveries/{message}`
pub async fn delivery(
    visit: Visit,
    State(state): State<WebState>,
    Path((slug, message)): Path<(String, String)>,
) -> Result<Response, Error> {
    let endpoint = receiver(&state, &slug).await?;
    let found = state.store.delivery(endpoint.id, &message).await?;
    let (delivery, body, mut tries) = found.ok_or(Error::NotFound { what: "message", asked: message })?;
    if !visit.frame.is_operator {
        tries.iter_mut().for_each(|one| {
            one.response = None;
            one.request = "{}".to_owned();
        });
    }
    let page = DeliveryPage {
        frame: visit.framed(Place::Alerts),
        as_of_s: visit.now,
        delivery,
        body: String::from_utf8_lossy(&body).into_owned(),
        tries,
    };
    visit.answer(&page, Cache::Never)
}

/// `POST /webhooks/{slug}/deliveries/{message}/replay`
pub async fn replay(
    visit: Visit,
    State(state): State<WebState>,
    Path((slug, message)): Path<(String, String)>,
    Acted { by, .. }: Acted<Nothing>,
) -> Result<Response, Error> {
    let endpoint = acting::may_touch(&state, &by, &slug).await?;
    if !state.store.replay(endpoint.id, &message, visit.now).await? {
        return Err(Error::NotFound { what: "message", asked: message });
    }
    by.note(&state, "webhook.replay", format!("webhook:{slug}"), (None, Some(json!({ "message": message })))).await?;
    Ok(Redirect::to(&format!("/webhooks/{slug}/deliveries/{message}")).into_response())
}

/// What to do with a receiver.
#[derive(Deserialize)]
pub struct Switch {
    /// Sends again what did not arrive since the first failure.
    replay: Option<String>,
}

/// `POST /webhooks/{slug}/enable`
pub async fn enable(
    visit: Visit,
    State(state): State<WebState>,
    Path(slug): Path<String>,
    Acted { by, form: switch }: Acted<Switch>,
) -> Result<Response, Error> {
    let before = acting::may_touch(&state, &by, &slug).await?;
    acting::pause_webhook(&state, &by, &slug, false).await?;
    if switch.replay.is_some() {
        let since_s = before.first_failure_s.unwrap_or(0);
        let messages = state.store.replay_since(before.id, since_s, visit.now).await?;
        let what = json!({ "since_s": since_s, "messages": messages });
        by.note(&state, "webhook.replay", format!("webhook:{slug}"), (None, Some(what))).await?;
    }
    Ok(Redirect::to(&format!("/webhooks/{slug}")).into_response())
}

/// `POST /webhooks/{slug}/disable`
pub async fn disable(
    State(state): State<WebState>,
    Path(slug): Path<String>,
    Acted { by, .. }: Acted<Nothing>,
) -> Result<Response, Error> {
    acting::pause_webhook(&state, &by, &slug, true).await?;
    Ok(Redirect::to(&format!("/webhooks/{slug}")).into_response())
}

/// `GET /api/v1/event-types`
pub async fn event_types() -> Response {
    ([(header::CACHE_CONTROL, "no-cache")], axum::Json(plumbline_alerts::event_types::all())).into_response()
}
