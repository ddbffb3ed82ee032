//! What programs tell and ask, below `/api/v1`: deploys and what came of them.
//!
//! Whoever writes shows a token (`Authorization: Bearer plb_…`) or sits at this machine (decisions 22).

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{FromRequestParts, Path, Query, State};
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use chrono::DateTime;
use plumbline_store::deploys::{DeployFinding, FailOn, Marker, Outcome, Whose, judged};
use plumbline_store::tokens::Scope;
use plumbline_store::{DeployId, TargetId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::WebState;
use crate::error::Error;
use crate::operator::Actor;

/// The longest that a result is waited for, in seconds.
const LONGEST_WAIT_S: u64 = 300;
/// How often is looked whether a deploy is settled.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Findings written out of each kind.
const MOST_FINDINGS: usize = 200;
/// A marker may be told so long after the deploy, in seconds; and so long before, where clocks differ.
const OLDEST_S: i64 = 7 * 86_400;
const AHEAD_S: i64 = 300;

/// Why a program is not served. The answer is a problem as of RFC 9457.
#[derive(Debug)]
pub enum Refusal {
    /// No token, or one that does not hold.
    Unknown,
    /// The token does not allow that.
    Forbidden(&'static str),
    /// The request cannot be read.
    Bad(String),
    /// There is nothing of that name, or it is somebody else's.
    Missing(String),
    /// We failed.
    Failed(Error),
}

impl From<plumbline_store::Error> for Refusal {
    fn from(error: plumbline_store::Error) -> Self {
        Refusal::Failed(Error::Store(Arc::new(error)))
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let (status, title, detail) = match self {
            Refusal::Failed(error) => return error.into_response(),
            Refusal::Unknown => (
                StatusCode::UNAUTHORIZED,
                "a token is needed",
                "send `Authorization: Bearer plb_…`; `plumbline token create` makes one".to_owned(),
            ),
            Refusal::Forbidden(scope) => {
                (StatusCode::FORBIDDEN, "the token does not allow that", format!("it lacks the scope {scope}"))
            }
            Refusal::Bad(why) => (StatusCode::BAD_REQUEST, "the request cannot be read", why),
            Refusal::Missing(what) => (StatusCode::NOT_FOUND, "nothing is watched under that name", what),
        };
        let problem = serde_json::json!({ "status": status.as_u16(), "title": title, "detail": detail });
        let mut answer = (status, Json(problem)).into_response();
        answer.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/problem+json"));
        if status == StatusCode::UNAUTHORIZED {
            answer.headers_mut().insert(header::WWW_AUTHENTICATE, header::HeaderValue::from_static("Bearer"));
        }
        answer
    }
}

/// Whoever may write: the holder of a token, or the person at this machine.
#[derive(Debug, Clone)]
pub struct Writer(Actor);

impl FromRequestParts<WebState> for Writer {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &WebState) -> Result<Self, Refusal> {
        match Actor::of(parts, None, state).await {
            Ok(actor) => Ok(Writer(actor)),
            Err(Error::NoToken) => Err(Refusal::Unknown),
            Err(error) => Err(Refusal::Failed(error)),
        }
    }
}

impl Writer {
    fn must_allow(&self, scope: Scope) -> Result<(), Refusal> {
        self.0.must_allow(scope).map_err(|_| Refusal::Forbidden(scope.as_str()))
    }
}

/// The body of `POST /api/v1/deploys`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeployBody {
    /// A target by number, key or address.
    target: Option<String>,
    /// Several.
    targets: Option<Vec<String>>,
    /// All of an owner.
    owner: Option<String>,
    /// All on a host.
    host: Option<String>,
    /// What is deployed, as people call it.
    version: Option<String>,
    /// RFC 3339; without it now.
    at: Option<String>,
    /// Such as `production`.
    environment: Option<String>,
    /// The revision of the source.
    commit: Option<String>,
    /// Where the run of the pipeline can be seen.
    url: Option<String>,
    /// The same key again is the same deploy.
    dedupe_key: Option<String>,
    /// Look at them at once.
    #[serde(default)]
    crawl: bool,
}

/// What is answered to a marker.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Accepted {
    /// The deploy of the first target.
    id: i64,
    /// Where its result is.
    result_url: String,
    /// All of them, in the order of their targets.
    deploys: Vec<AcceptedDeploy>,
    /// Surfaces that are looked at now.
    surfaces_due: u64,
}

/// The deploy of one target.
#[derive(Debug, Serialize, JsonSchema)]
struct AcceptedDeploy {
    /// Its number.
    id: i64,
    /// The target.
    target: i64,
    /// Where its result is.
    result_url: String,
}

/// `POST /api/v1/deploys`
pub async fn tell_deploy(
    writer: Writer,
    State(state): State<WebState>,
    body: Result<Json<DeployBody>, JsonRejection>,
) -> Result<(StatusCode, Json<Accepted>), Refusal> {
    writer.must_allow(Scope::DeploysWrite)?;
    let Json(body) = body.map_err(|error| Refusal::Bad(error.body_text()))?;
    let now_s = (state.now)();
    let marker = marker(&body, now_s)?;
    let targets = targets(&state, &body, writer.0.owner()).await?;
    let (mut deploys, mut surfaces_due) = (Vec::with_capacity(targets.len()), 0);
    for target in targets {
        let id = state.store.mark_deploy(target, &marker).await?;
        if body.crawl {
            surfaces_due += state.store.recheck(target, now_s).await?;
        }
        deploys.push(AcceptedDeploy { id: id.0, target: target.0, result_url: result_url(id) });
    }
    let first = deploys.first().ok_or_else(|| Refusal::Missing("no target is meant".to_owned()))?;
    let told = serde_json::json!({
        "targets": deploys.iter().take(25).map(|deploy| deploy.target).collect::<Vec<_>>(),
        "deploys": deploys.len(),
        "version": marker.version,
        "environment": marker.environment,
        "commit": marker.commit,
    });
    let noted = writer.0.note(&state, "deploy.tell", format!("deploy:{}", first.id), (None, Some(told))).await;
    noted.map_err(Refusal::Failed)?;
    let accepted = Accepted { id: first.id, result_url: first.result_url.clone(), deploys, surfaces_due };
    Ok((StatusCode::ACCEPTED, Json(accepted)))
}

fn result_url(deploy: DeployId) -> String {
    format!("/api/v1/deploys/{}/result", deploy.0)
}

fn marker(body: &DeployBody, now_s: i64) -> Result<Marker, Refusal> {
    let at_s = match &body.at {
        None => now_s,
        Some(text) => DateTime::parse_from_rfc3339(text)
            .map_err(|error| Refusal::Bad(format!("`at` is no RFC 3339 time: {error}")))?
            .timestamp(),
    };
    if !(now_s - OLDEST_S..=now_s + AHEAD_S).contains(&at_s) {
        return Err(Refusal::Bad("`at` is more than a week ago, or in the future".to_owned()));
    }
    let is_web = |url: &str| url.starts_with("https://") || url.starts_with("http://");
    if body.url.as_deref().is_some_and(|url| !is_web(url)) {
        return Err(Refusal::Bad("`url` is no web address".to_owned()));
    }
    Ok(Marker {
        version: body.version.clone(),
        at_s,
        dedupe_key: body.dedupe_key.clone(),
        url: body.url.clone(),
        environment: body.environment.clone(),
        commit: body.commit.clone(),
    })
}

/// The targets that are meant; one that is named and is not there, or is somebody else's, is an error.
async fn targets(state: &WebState, body: &DeployBody, owner: Option<&str>) -> Result<Vec<TargetId>, Refusal> {
    let named: Vec<String> = body.target.iter().chain(body.targets.iter().flatten()).cloned().collect();
    let ways = [!named.is_empty(), body.owner.is_some(), body.host.is_some()];
    if ways.iter().filter(|way| **way).count() != 1 {
        return Err(Refusal::Bad("name exactly one of `target`, `targets`, `owner`, `host`".to_owned()));
    }
    if let Some(slug) = &body.owner {
        let found = state.store.targets_of(&Whose::Owner(slug.clone()), owner).await?;
        return if found.is_empty() { Err(Refusal::Missing(slug.clone())) } else { Ok(found) };
    }
    if let Some(host) = &body.host {
        let found = state.store.targets_of(&Whose::Host(host.clone()), owner).await?;
        return if found.is_empty() { Err(Refusal::Missing(host.clone())) } else { Ok(found) };
    }
    let mut all = Vec::new();
    for name in named {
        let found = state.store.targets_of(&Whose::Targets(vec![name.clone()]), owner).await?;
        if found.is_empty() {
            return Err(Refusal::Missing(name));
        }
        all.extend(found);
    }
    all.sort_unstable();
    all.dedup();
    Ok(all)
}

/// How long a result is waited for, and what counts.
#[derive(Debug, Default, Deserialize)]
pub struct Wanted {
    /// Seconds.
    wait: Option<u64>,
    /// `blocked`, `error` (the default), `warning`.
    fail_on: Option<String>,
}

/// The answer of `GET /api/v1/deploys/{id}/result`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DeployResult {
    /// The deploy.
    id: i64,
    /// `settled` or `pending`.
    status: &'static str,
    /// `clean`, `improved`, `regressed`, `mixed`, `unreachable`; null while pending.
    outcome: Option<Outcome>,
    /// The version, where it is known.
    version: Option<String>,
    /// Findings that began with it, at most 200.
    opened: Vec<DeployFinding>,
    /// Findings that ended with it, at most 200.
    resolved: Vec<DeployFinding>,
}

/// `GET /api/v1/deploys/{id}/result?wait=120&fail_on=warning`
pub async fn deploy_result(
    State(state): State<WebState>,
    Path(id): Path<i64>,
    Query(wanted): Query<Wanted>,
) -> Result<Json<DeployResult>, Refusal> {
    let fail_on: FailOn = match wanted.fail_on.as_deref() {
        None => FailOn::Error,
        Some(text) => text.parse().map_err(Refusal::Bad)?,
    };
    let until = tokio::time::Instant::now() + Duration::from_secs(wanted.wait.unwrap_or(0).min(LONGEST_WAIT_S));
    loop {
        state.store.settle_deploys((state.now)()).await?;
        let found = state.store.deploy(DeployId(id)).await?;
        let (deploy, findings) = found.ok_or_else(|| Refusal::Missing(format!("deploy {id}")))?;
        if deploy.outcome.is_none() && tokio::time::Instant::now() < until {
            tokio::time::sleep(LOOK_EVERY).await;
            continue;
        }
        let outcome = deploy.outcome.map(|outcome| match outcome {
            Outcome::Unreachable => outcome,
            Outcome::Clean | Outcome::Improved | Outcome::Regressed | Outcome::Mixed => judged(&findings, fail_on),
        });
        let (opened, resolved): (Vec<_>, Vec<_>) = findings.into_iter().partition(|finding| finding.is_beginning);
        return Ok(Json(DeployResult {
            id,
            status: if outcome.is_some() { "settled" } else { "pending" },
            outcome,
            version: deploy.version,
            opened: opened.into_iter().take(MOST_FINDINGS).collect(),
            resolved: resolved.into_iter().take(MOST_FINDINGS).collect(),
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marker_is_of_now_or_of_the_last_week() {
        let at = |text: &str| {
            let body = DeployBody { at: Some(text.to_owned()), ..DeployBody::default() };
            marker(&body, 1_796_083_200).map(|marker| marker.at_s).ok()
        };
        assert_eq!(marker(&DeployBody::default(), 77).unwrap().at_s, 77);
        assert_eq!(at("2026-12-01T01:00:00+01:00"), Some(1_796_083_200));
        for bad in ["2026-11-20T00:00:00Z", "2026-12-01T01:00:00Z", "yesterday"] {
            assert_eq!(at(bad), None, "{bad}");
        }
        let script = DeployBody { url: Some("javascript:alert(1)".to_owned()), ..DeployBody::default() };
        assert!(marker(&script, 0).is_err());
    }
}
