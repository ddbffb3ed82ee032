//! The sample ecosystem of `--sample`: a registry, six agents and four MCP servers on loopback, good and faulty, one that
//! changes every few minutes. The main job runs on it whole, without a network (decisions 20).

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use anyhow::{Context, Result};
use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use plumbline_crawler::settings::{Domains, Registry, Targets};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::settings::Settings;

/// Ports are the same in every run where they are free, so that the sample's history goes on.
const FIRST_PORT: u16 = 41_870;

/// How long the changing agent keeps one face.
const CHANGES_EVERY: Duration = Duration::from_secs(180);

/// The running sample: what to watch.
pub struct Sample {
    registry: SocketAddr,
    agents: Vec<SocketAddr>,
}

impl Sample {
    /// Starts every server of the sample; they end with the token.
    pub async fn start(stop: CancellationToken) -> Result<Sample> {
        let mut agents = Vec::new();
        for (n, agent) in AGENTS.iter().enumerate() {
            let listener = bind(FIRST_PORT + 1 + n as u16).await?;
            let address = listener.local_addr()?;
            agents.push(address);
            serve(listener, agent_router(*agent, address), stop.clone());
        }
        let mut endpoints = Vec::new();
        for n in 0..SERVERS {
            let listener = bind(FIRST_PORT + 11 + n).await?;
            endpoints.push(listener.local_addr()?);
            serve(listener, mcp_router(n), stop.clone());
        }
        let listener = bind(FIRST_PORT).await?;
        let registry = listener.local_addr()?;
        serve(listener, registry_router(entries(&endpoints)), stop);
        Ok(Sample { registry, agents })
    }

    /// Points the settings at the sample and nothing else, at a pace that suits loopback.
    pub fn apply(&self, settings: &mut Settings) {
        let registry = Registry {
            name: "sample".to_owned(),
            base: format!("http://{}", self.registry),
            pace_ms: 0,
            key_env: None,
            interval_s: None,
            full_interval_s: None,
            key_file: None,
            tags: vec!["sample".to_owned()],
        };
        let list = self.agents.iter().map(|agent| format!("http://{agent}/.well-known/agent-card.json")).collect();
        let targets = Targets {
            registries: vec![registry],
            domains: vec![Domains { list, tags: vec!["sample".to_owned()], ..Domains::default() }],
            ..Targets::default()
        };
        settings.registries = targets.registries;
        settings.domains = targets.domains;
        settings.urls.clear();
        settings.files.clear();
        settings.commands.clear();
        settings.net.allow_networks.0.push(loopback());
        settings.net.manners.pace_ms = 0;
        settings.crawl.card_interval_s = 30;
        settings.crawl.registry_interval_s = 60;
        settings.crawl.registry_full_interval_s = 300;
    }
}

fn loopback() -> ipnet::IpNet {
    ipnet::IpNet::from(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST))
}

async fn bind(port: u16) -> Result<TcpListener> {
    match TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await {
        Ok(listener) => Ok(listener),
        Err(_) => TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.context("no free port for the sample"),
    }
}

fn serve(listener: TcpListener, router: Router, stop: CancellationToken) {
    tokio::spawn(async move {
        let ended = axum::serve(listener, router).with_graceful_shutdown(stop.cancelled_owned()).await;
        if let Err(error) = ended {
            tracing::warn!("a sample server ended: {error}");
        }
    });
}

/// The agents of the sample, each with a character.
#[derive(Debug, Clone, Copy)]
enum Agent {
    /// A 1.0 card without fault.
    Sound,
    /// A 0.3 card without fault.
    Older,
    /// A 1.0 card whose two skills share an id, every other time.
    Changing,
    /// A 0.3 card that lacks what clients require.
    Faulty,
    /// HTML in place of a card.
    Page,
    /// A card behind a sign-in.
    Gated,
}

const AGENTS: &[Agent] = &[Agent::Sound, Agent::Older, Agent::Changing, Agent::Faulty, Agent::Page, Agent::Gated];

fn agent_router(agent: Agent, address: SocketAddr) -> Router {
    let started = Instant::now();
    let card = move || async move { card_answer(agent, address, started.elapsed()) };
    Router::new().route("/.well-known/agent-card.json", get(card))
}

fn card_answer(agent: Agent, address: SocketAddr, age: Duration) -> Response {
    let endpoint = format!("http://{address}/a2a");
    let card = match agent {
        Agent::Sound => new_card("Tide tables", &endpoint, &[("tides", "Look up tides")]),
        Agent::Changing => {
            let turn = age.as_secs() / CHANGES_EVERY.as_secs();
            let second = if turn % 2 == 1 { "forecast" } else { "warnings" };
            new_card("Harbour weather", &endpoint, &[("forecast", "Forecast"), (second, "Storm warnings")])
        }
        Agent::Older => old_card("Lock keeper", &endpoint),
        Agent::Faulty => {
            let mut card = old_card("Ferry desk", &endpoint);
            card["capabilities"] = json!(["streaming"]);
            card["skills"][0]["tags"] = Value::Null;
            card
        }
        Agent::Page => {
            return ([(header::CONTENT_TYPE, "text/html")], "<!doctype html><title>Moved in</title>").into_response();
        }
        Agent::Gated => {
            return (StatusCode::UNAUTHORIZED, [(header::WWW_AUTHENTICATE, "Bearer realm=\"harbour\"")])
                .into_response();
        }
    };
    let tag = format!("\"{}\"", card["version"].as_str().unwrap_or_default());
    ([(header::ETAG, tag), (header::CACHE_CONTROL, "max-age=60".to_owned())], Json(card)).into_response()
}

fn skill(id: &str, name: &str) -> Value {
    json!({
        "id": id, "name": name, "description": format!("{name} for one harbour by its name."),
        "tags": ["harbour"], "examples": [format!("{name} at Ardglass, please.")]
    })
}

fn new_card(name: &str, endpoint: &str, skills: &[(&str, &str)]) -> Value {
    let unique = skills.iter().map(|(id, _)| id).collect::<std::collections::HashSet<_>>().len() == skills.len();
    json!({
        "name": name, "description": format!("{name} of the sample harbour."),
        "version": if unique { "1.4.0" } else { "1.4.1" },
        "supportedInterfaces": [{ "url": endpoint, "protocolBinding": "JSONRPC", "protocolVersion": "1.0" }],
        "provider": { "organization": "Sample harbour", "url": "https://www.iana.org" },
        "capabilities": { "streaming": false },
        "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
        "skills": skills.iter().map(|(id, name)| skill(id, name)).collect::<Vec<_>>()
    })
}

fn old_card(name: &str, endpoint: &str) -> Value {
    json!({
        "protocolVersion": "0.3.0", "name": name, "description": format!("{name} of the sample harbour."),
        "url": endpoint, "preferredTransport": "JSONRPC", "version": "0.9.2",
        "provider": { "organization": "Sample harbour", "url": "https://www.iana.org" },
        "capabilities": {}, "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
        "skills": [skill("berths", "Berth planning")]
    })
}

/// MCP servers of the sample.
const SERVERS: u16 = 4;

fn mcp_router(n: u16) -> Router {
    let answer = move |headers: HeaderMap, Json(message): Json<Value>| async move {
        if is_from_elsewhere(&headers) {
            return StatusCode::FORBIDDEN.into_response();
        }
        mcp_answer(n, &message)
    };
    Router::new().route("/mcp", post(answer))
}

/// Whether a page of another site asks: a server on this machine must not answer it (MCP transports, Security Warning).
fn is_from_elsewhere(headers: &HeaderMap) -> bool {
    let origin = headers.get(header::ORIGIN).and_then(|origin| origin.to_str().ok());
    origin.is_some_and(|origin| !["http://127.0.0.1", "http://localhost"].iter().any(|own| origin.starts_with(own)))
}

/// Answers `initialize`, `ping` and `tools/list`. The third names no server version, the fourth lists a tool without a
/// schema.
fn mcp_answer(n: u16, message: &Value) -> Response {
    let refused = |code: i32, why: &str| {
        Json(json!({ "jsonrpc": "2.0", "id": message["id"], "error": { "code": code, "message": why } }))
            .into_response()
    };
    let result = match message["method"].as_str() {
        Some("initialize") => {
            let mut info = json!({ "name": format!("sample-{n}"), "version": "1.0.0" });
            if n == 2
                && let Some(info) = info.as_object_mut()
            {
                info.remove("version");
            }
            json!({ "protocolVersion": "2025-11-25", "capabilities": { "tools": {} }, "serverInfo": info })
        }
        Some("ping") => json!({}),
        Some("tools/list") if message["params"]["cursor"].is_string() => {
            return refused(-32602, "no such cursor: everything is on one page");
        }
        Some("tools/list") if n == 3 => json!({ "tools": [{ "name": "depth", "description": "Depth of water." }] }),
        Some("tools/list") => json!({ "tools": [{
            "name": "depth", "description": "Depth of water at a berth.",
            "inputSchema": { "type": "object", "properties": { "berth": { "type": "string" } }, "required": ["berth"] }
        }] }),
        Some(method) if method.starts_with("notifications/") => return StatusCode::ACCEPTED.into_response(),
        Some(_) => return refused(-32601, "no such method"),
        None => return refused(-32600, "a request has a method"),
    };
    Json(json!({ "jsonrpc": "2.0", "id": message["id"], "result": result })).into_response()
}

#[derive(Deserialize)]
struct Page {
    cursor: Option<usize>,
    limit: Option<usize>,
}

fn registry_router(entries: Vec<Value>) -> Router {
    Router::new().route("/v0.1/servers", get(list)).with_state(std::sync::Arc::new(entries))
}

async fn list(State(entries): State<std::sync::Arc<Vec<Value>>>, Query(page): Query<Page>) -> Json<Value> {
    let from = page.cursor.unwrap_or(0).min(entries.len());
    let to = (from + page.limit.unwrap_or(30).min(100)).min(entries.len());
    let mut metadata = json!({ "count": to - from });
    if to < entries.len() {
        metadata["nextCursor"] = json!(to.to_string());
    }
    Json(json!({ "servers": &entries[from..to], "metadata": metadata }))
}

/// A dozen entries of eleven names: sound ones, old revisions, and faults that real listings have.
fn entries(endpoints: &[SocketAddr]) -> Vec<Value> {
    const CURRENT: &str = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json";
    const OLDER: &str = "https://static.modelcontextprotocol.io/schemas/2025-09-29/server.schema.json";
    let remote = |n: usize| json!([{ "type": "streamable-http", "url": format!("http://{}/mcp", endpoints[n]) }]);
    let package = |identifier: &str, version: &str| json!([{ "registryType": "npm", "identifier": identifier, "version": version, "transport": { "type": "stdio" } }]);
    let server = |schema: &str, name: &str, version: &str, about: &str| json!({ "$schema": schema, "name": format!("io.github.sample-harbour/{name}"), "version": version, "description": about });
    let with = |mut server: Value, key: &str, value: Value| {
        server[key] = value;
        server
    };
    let servers = [
        with(server(CURRENT, "tides", "1.0.0", "High and low water for any harbour"), "remotes", remote(0)),
        with(server(CURRENT, "tides", "1.1.0", "High and low water for any harbour"), "remotes", remote(0)),
        with(server(CURRENT, "berths", "2.0.1", "Which berth is free, and until when"), "remotes", remote(1)),
        with(server(CURRENT, "locks", "0.3.0", "Opening times of locks"), "remotes", remote(2)),
        with(server(CURRENT, "depths", "0.9.0", "Depth of water at every berth"), "remotes", remote(3)),
        with(
            server(CURRENT, "charts", "3.2.0", "Sea charts as tiles"),
            "packages",
            package("@sample-harbour/charts", "3.2.0"),
        ),
        with(
            server(OLDER, "buoys", "1.2.0", "Where buoys lie today"),
            "packages",
            package("@sample-harbour/buoys", "1.2.0"),
        ),
        with(
            server(CURRENT, "pilots", "1.0.0", "Which pilot is on duty"),
            "packages",
            package("@sample-harbour/pilots", "latest"),
        ),
        server(CURRENT, "radio", "1.0.0", "Channels in use around the harbour"),
        with(
            server(CURRENT, "ice", "1.0.0", &"Ice reports for every bay, sound and strait. ".repeat(4)),
            "remotes",
            remote(0),
        ),
        with(
            server(CURRENT, "ferries", "2025-11", "Ferries and their delays"),
            "remotes",
            json!([{ "type": "streamable-http", "url": "https://ferries.example/{line}/mcp" }]),
        ),
        with(
            server(CURRENT, "customs", "1.0.0", "What may be landed where"),
            "packages",
            json!([{ "registryType": "npm" }]),
        ),
    ];
    let latest = |n: usize| n != 0;
    servers
        .into_iter()
        .enumerate()
        .map(|(n, server)| {
            let stamp = format!("2026-10-{:02}T08:00:00Z", n + 1);
            json!({ "server": server, "_meta": { "io.modelcontextprotocol.registry/official": {
                "status": "active", "publishedAt": stamp, "updatedAt": stamp, "isLatest": latest(n)
            } } })
        })
        .collect()
}
