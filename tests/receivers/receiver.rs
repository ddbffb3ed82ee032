//! A whole receiver: believes a message when its signature is right and it is new. Crates: axum, tokio, serde_json, standardwebhooks.

use std::{collections::HashSet, sync::{Arc, Mutex}};

use axum::{Router, body::Bytes, extract::State, http::{HeaderMap, StatusCode}, routing::post};
use standardwebhooks::Webhook;

type Receiver = Arc<(Webhook, Mutex<HashSet<String>>)>;

async fn arrived(State(receiver): State<Receiver>, headers: HeaderMap, body: Bytes) -> StatusCode {
    if receiver.0.verify(&body, &headers).is_err() {
        return StatusCode::BAD_REQUEST;
    }
    let id = headers["webhook-id"].to_str().unwrap_or_default().to_owned();
    if receiver.1.lock().expect("nobody panics with it").insert(id) {
        let message: serde_json::Value = serde_json::from_slice(&body).unwrap_or_default();
        println!("{} {}", message["type"], message["data"]["title"].as_str().unwrap_or_default());
    }
    StatusCode::NO_CONTENT
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let webhook = Webhook::new(&std::env::var("PLUMBLINE_WEBHOOK_SECRET")?)?;
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", std::env::var("PORT").map_or(Ok(9000), |port| port.parse())?)).await?;
    axum::serve(listener, Router::new().fallback(post(arrived)).with_state(Arc::new((webhook, Mutex::default())))).await?;
    Ok(())
}
