//! For those who watch the watcher: `/healthz` says that the process answers, `/readyz` that it can read its database.

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};

use crate::WebState;
use crate::cache::Cache;

/// `GET /healthz`
pub async fn alive() -> Response {
    plain(StatusCode::OK, "alive\n")
}

/// `GET /readyz`
pub async fn ready(State(state): State<WebState>) -> Response {
    match state.store.answers().await {
        Ok(()) => plain(StatusCode::OK, "ready\n"),
        Err(error) => {
            tracing::warn!("not ready: {error}");
            plain(StatusCode::SERVICE_UNAVAILABLE, "the database does not answer\n")
        }
    }
}

fn plain(status: StatusCode, body: &'static str) -> Response {
    (status, [(header::CACHE_CONTROL, Cache::Never.header())], body).into_response()
}
