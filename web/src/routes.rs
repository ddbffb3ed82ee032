//! Every address on one screen, and the layers around all of them.

use std::time::Duration;

use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware;
use axum::response::Response;
use axum::routing::{get, post};
use axum::{Extension, Router};
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::compression::CompressionLayer;
use tower_http::timeout::TimeoutLayer;

use crate::events::Readers;
use crate::pages::{
    about, audit, checks, clients, coverage, crawl, crawls, diff, document, finding, health, in_step, instance,
    metrics, overview, requirements, rule, rules, session, steer, target, target_documents, target_findings, targets,
    theme, timeline,
};
use crate::pages::{alerts, quiet, subscribe, webhooks};
use crate::pages::{
    almanac, badges, changes, check, cohorts, compare, deploys, feeds, group, incidents, methodology, onboarding,
    prevalence, registry, regressions, sarif, search, snapshots, status, week,
};
use crate::{WebState, api, assets, error, events};

/// No page does work that grows with the number of targets; one that takes this long hangs on something else.
const TIME_LIMIT: Duration = Duration::from_secs(10);

/// Nothing but our own stylesheet, script, images and forms, and our own events; no frame, nobody else.
const CONTENT_POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self' data:; form-action 'self'; \
                              base-uri 'none'; frame-ancestors 'none'";

/// All pages over one state.
pub fn router(state: WebState) -> Router {
    Router::new()
        // Reading
        .route("/", get(overview::show))
        .route("/targets", get(targets::show))
        .route("/targets/{id}", get(target::show))
        .route("/targets/{id}/timeline", get(timeline::show))
        .route("/targets/{id}/findings", get(target_findings::show))
        .route("/targets/{id}/documents", get(target_documents::show))
        .route("/targets/{id}/diff", get(diff::show))
        .route("/targets/{id}/checks", get(checks::show))
        .route("/targets/{id}/session", get(session::show))
        .route("/targets/{id}/listing", get(in_step::show))
        .route("/targets/{id}/sarif", get(sarif::show))
        .route("/findings/{id}", get(finding::show))
        .route("/regressions", get(regressions::show))
        .route("/regressions/{week}", get(week::show))
        .route("/regressions/acknowledge", post(regressions::acknowledge))
        .route("/prevalence", get(prevalence::show))
        .route("/cohorts", get(cohorts::list))
        .route("/cohorts/{slug}", get(cohorts::show))
        .route("/owners/{o}", get(group::owner))
        .route("/hosts/{h}", get(group::host))
        .route("/tags/{tag}", get(group::tag))
        .route("/search", get(search::show))
        .route("/deploys", get(deploys::list))
        .route("/deploys/{id}", get(deploys::show))
        .route("/incidents", get(incidents::list))
        .route("/incidents/{id}", get(incidents::show))
        .route("/compare", get(compare::show))
        .route("/changes", get(changes::show))
        .route("/methodology", get(methodology::show))
        .route("/check", get(check::form).post(check::begin))
        .route("/reports/{id}", get(check::show))
        .route("/almanac", get(almanac::newest))
        .route("/almanac/{month}", get(almanac::show))
        .route("/snapshots", get(snapshots::list))
        .route("/snapshots/{month}/{file}", get(snapshots::file))
        .route("/status", get(status::all))
        .route("/status/{slug}", get(status::one))
        .route("/onboarding", get(onboarding::show))
        .route("/surfaces/{id}/session", get(session::download))
        .route("/documents/{hash}", get(document::show))
        .route("/documents/{hash}/raw", get(document::raw))
        .route("/rules", get(rules::show))
        .route("/clients", get(clients::show))
        .route("/rules/coverage", get(coverage::show))
        .route("/rules/mcp-requirements", get(requirements::show))
        .route("/rules/{family}/{name}", get(rule::show))
        .route("/crawls", get(crawls::show))
        .route("/crawls/{id}", get(crawl::show))
        .route("/about/crawler", get(about::show))
        .route("/settings/about", get(instance::show))
        .route("/settings/audit", get(audit::show))
        // Alerts and whom they are told to
        .route("/alerts", get(alerts::show))
        .route("/alerts/groups/{id}", get(alerts::group))
        .route("/alerts/{id}/acknowledge", post(alerts::acknowledge))
        .route("/routes", get(alerts::routes))
        .route("/silences", get(quiet::silences).post(quiet::add_silence))
        .route("/silences/{id}/end", post(quiet::end_silence))
        .route("/maintenance", get(quiet::maintenance).post(quiet::add_maintenance))
        .route("/maintenance/{id}/end", post(quiet::end_maintenance))
        .route("/waivers", get(quiet::waivers).post(quiet::add_waiver))
        .route("/waivers/{id}/end", post(quiet::end_waiver))
        .route("/webhooks", get(webhooks::list).post(subscribe::create))
        .route("/webhooks/new", get(subscribe::new))
        .route("/webhooks/{slug}", get(webhooks::show).post(subscribe::change))
        .route("/webhooks/{slug}/edit", get(subscribe::edit))
        .route("/webhooks/{slug}/test", post(subscribe::test))
        .route("/webhooks/{slug}/rotate", post(subscribe::rotate))
        .route("/webhooks/{slug}/remove", post(subscribe::remove))
        .route("/webhooks/{slug}/enable", post(webhooks::enable))
        .route("/webhooks/{slug}/disable", post(webhooks::disable))
        .route("/webhooks/{slug}/deliveries/{message}", get(webhooks::delivery))
        .route("/webhooks/{slug}/deliveries/{message}/replay", post(webhooks::replay))
        .route("/api/v1/event-types", get(webhooks::event_types))
        // Choosing
        .route("/theme", post(theme::choose))
        // Steering, for the person at this machine
        .route("/targets/{id}/recheck", post(steer::recheck))
        .route("/targets/{id}/pause", post(steer::pause))
        .route("/targets/{id}/resume", post(steer::resume))
        .route("/targets/{id}/documents/count", post(steer::count_again))
        .route("/crawls/pause", post(steer::pause_all))
        .route("/crawls/resume", post(steer::resume_all))
        // Programs
        .route("/api/v1/deploys", post(api::tell_deploy))
        // Leaving: feeds, badges, a registry
        .route("/feeds/regressions.atom", get(feeds::regressions))
        .route("/feeds/incidents.atom", get(feeds::incidents))
        .route("/feeds/releases.atom", get(feeds::releases))
        .route("/feeds/views.atom", get(feeds::view))
        .route("/feeds/targets/{file}", get(feeds::target))
        .route("/feeds/owners/{file}", get(feeds::owner))
        .route("/feeds/hosts/{file}", get(feeds::host))
        .route("/feeds/tags/{file}", get(feeds::tag))
        .route("/feeds/cohorts/{file}", get(feeds::cohort))
        .route("/badges/target/{file}", get(badges::target))
        .route("/badges/owner/{file}", get(badges::owner))
        .route("/badges/host/{file}", get(badges::host))
        .route("/badges/tag/{file}", get(badges::tag))
        .route("/v0.1/servers", get(registry::list))
        .route("/v0.1/servers/{name}/versions", get(registry::versions))
        .route("/v0.1/servers/{name}/versions/{version}", get(registry::version))
        .merge(api::router())
        // Watching
        .route("/healthz", get(health::alive))
        .route("/readyz", get(health::ready))
        .route("/metrics", get(metrics::show))
        // Programs
        .route("/api/v1/events", get(events::list))
        // Ours
        .route("/static/{file}", get(assets::file))
        .route("/favicon.ico", get(assets::icon))
        // Around all of them, the outermost last
        .layer(middleware::from_fn_with_state(state.clone(), api::once))
        .layer(Extension(Readers::over(state.store.clone())))
        .layer(CatchPanicLayer::new())
        .layer(TimeoutLayer::with_status_code(StatusCode::SERVICE_UNAVAILABLE, TIME_LIMIT))
        // It waits for as long as it is asked to, so it stands outside the time limit.
        .route("/api/v1/deploys/{id}/result", get(api::deploy_result))
        .layer(middleware::from_fn_with_state(state.clone(), error::explain))
        .layer(CompressionLayer::new())
        .layer(middleware::map_response(harden))
        .with_state(state)
}

/// What a browser must know to keep strangers' words from doing anything.
async fn harden(mut response: Response) -> Response {
    let headers = response.headers_mut();
    if !headers.contains_key(header::CONTENT_SECURITY_POLICY) {
        headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(CONTENT_POLICY));
    }
    for (name, value) in [
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (header::HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (header::HeaderName::from_static("permissions-policy"), "camera=(), geolocation=(), microphone=()"),
    ] {
        if !headers.contains_key(&name) {
            headers.insert(name, HeaderValue::from_static(value));
        }
    }
    response
}
