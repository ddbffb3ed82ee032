//! `/v0.1/servers`: the MCP Registry API over what was crawled, so that a client of the official registry works unchanged. Each entry
//! carries how it conforms, under a key of our own.

use axum::Json;
use axum::extract::{Path, Query, State};
use chrono::DateTime;
use plumbline_rules::conversation::Era;
use plumbline_store::views::{EntryFilter, Position, ServerEntry, TargetFilter, TargetOrder};
use plumbline_store::words::{Headline, ReachState, TargetKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{filled, number, word};
use crate::WebState;
use crate::error::Error;
use crate::page::Visit;
use crate::text;

/// The key of the registry's own stamps.
const OFFICIAL: &str = "io.modelcontextprotocol.registry/official";

/// The key of what we add.
const OURS: &str = "example.plumbline/conformance";

/// What can be asked of the list.
#[derive(Debug, Default, Deserialize)]
pub struct Asked {
    cursor: Option<String>,
    limit: Option<String>,
    updated_since: Option<String>,
    search: Option<String>,
    version: Option<String>,
    verdict: Option<String>,
    era: Option<String>,
    reach: Option<String>,
}

/// A page of entries, as the MCP Registry has it.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ServerList {
    /// The entries.
    servers: Vec<ServerAnswer>,
    /// How the list goes on.
    metadata: ListMetadata,
}

/// How a list goes on.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ListMetadata {
    /// Entries on this page.
    count: usize,
    /// To be given back as `cursor`; absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// An entry as it was listed, with what we know of it.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ServerAnswer {
    /// The `server.json` as it was listed.
    server: Value,
    /// The stamps of the registry, and how the entry conforms.
    #[serde(rename = "_meta")]
    meta: Map<String, Value>,
}

/// What is asked of how a server stands.
#[derive(Debug, Clone, Copy)]
struct Standing {
    headline: Option<Headline>,
    era: Option<Era>,
    reach: Option<ReachState>,
}

/// `GET /v0.1/servers`
pub async fn list(
    visit: Visit,
    State(state): State<WebState>,
    Query(asked): Query<Asked>,
) -> Result<Json<ServerList>, Error> {
    let limit = number("limit", asked.limit.as_deref())?.unwrap_or(30);
    if !(1..=100).contains(&limit) {
        return Err(Error::BadQuery { field: "limit", reason: "is not between 1 and 100".to_owned() });
    }
    let standing = Standing {
        headline: word("verdict", asked.verdict.as_deref())?,
        era: word("era", asked.era.as_deref())?,
        reach: word("reach", asked.reach.as_deref())?,
    };
    if let Some(search) = filled(asked.search.as_deref()) {
        return found(&visit, &state, search, standing, asked.cursor.as_deref(), limit).await;
    }
    let (since, after) = asked.start()?;
    let filter = EntryFilter {
        updated_since_s: since,
        current_only: filled(asked.version.as_deref()) == Some("latest"),
        headline: standing.headline,
        era: standing.era,
        reach: standing.reach,
    };
    let mut entries = state.store.server_entries(after, &filter, limit + 1).await?;
    let has_more = entries.len() as i64 > limit;
    entries.truncate(limit as usize);
    let next = entries.last().filter(|_| has_more).map(|last| match since {
        Some(_) => format!("{}~{}", last.changed_s, last.id),
        None => last.id.to_string(),
    });
    Ok(Json(page(&entries, next, &visit.frame.origin)))
}

impl Asked {
    /// Since when, and after which entry.
    fn start(&self) -> Result<(Option<i64>, i64), Error> {
        let bad_cursor = || Error::BadQuery { field: "cursor", reason: "is none that this list gave out".to_owned() };
        let since = filled(self.updated_since.as_deref()).map(moment).transpose()?;
        match (filled(self.cursor.as_deref()), since) {
            (None, since) => Ok((since, if since.is_some() { -1 } else { 0 })),
            (Some(cursor), None) => Ok((None, cursor.parse().map_err(|_| bad_cursor())?)),
            (Some(cursor), Some(_)) => {
                let (changed, id) = cursor.split_once('~').ok_or_else(bad_cursor)?;
                Ok((Some(changed.parse().map_err(|_| bad_cursor())?), id.parse().map_err(|_| bad_cursor())?))
            }
        }
    }
}

fn moment(given: &str) -> Result<i64, Error> {
    let wrong = |_| Error::BadQuery { field: "updated_since", reason: "is no RFC 3339 date and time".to_owned() };
    Ok(DateTime::parse_from_rfc3339(given).map_err(wrong)?.timestamp())
}

/// The current entries of names that hold words which begin so.
async fn found(
    visit: &Visit,
    state: &WebState,
    search: &str,
    standing: Standing,
    cursor: Option<&str>,
    limit: i64,
) -> Result<Json<ServerList>, Error> {
    let words = plumbline_store::query::Query { terms: Vec::new(), words: vec![search.to_owned()] }.search_words();
    let filter = TargetFilter {
        kind: Some(TargetKind::McpServer),
        words,
        headline: standing.headline,
        era: standing.era,
        reach: standing.reach,
        ..TargetFilter::default()
    };
    let matching = state.store.some_targets(&filter).await?;
    let after = match cursor.and_then(|cursor| cursor.split_once('~')) {
        Some((id, name)) => Position { name: name.to_owned(), id: id.parse().unwrap_or(-1), ..Position::start() },
        None => Position::start(),
    };
    let mut targets = state.store.targets_page(&filter, TargetOrder::Name, &after, matching, limit + 1).await?;
    let has_more = targets.len() as i64 > limit;
    targets.truncate(limit as usize);
    let entries = state.store.latest_entries(&targets.iter().map(|target| target.id).collect::<Vec<_>>()).await?;
    let next = targets.last().filter(|_| has_more).map(|last| format!("{}~{}", last.id, last.name));
    Ok(Json(page(&entries, next, &visit.frame.origin)))
}

/// `GET /v0.1/servers/{name}/versions`
pub async fn versions(
    visit: Visit,
    State(state): State<WebState>,
    Path(name): Path<String>,
) -> Result<Json<ServerList>, Error> {
    let entries = state.store.server_versions(&name).await?;
    if entries.is_empty() {
        return Err(Error::NotFound { what: "server", asked: name });
    }
    Ok(Json(page(&entries, None, &visit.frame.origin)))
}

/// `GET /v0.1/servers/{name}/versions/{version}`
pub async fn version(
    visit: Visit,
    State(state): State<WebState>,
    Path((name, version)): Path<(String, String)>,
) -> Result<Json<ServerAnswer>, Error> {
    let entries = state.store.server_versions(&name).await?;
    let wanted = |entry: &&ServerEntry| if version == "latest" { entry.is_latest } else { entry.version == version };
    let entry = entries.iter().find(wanted);
    entry
        .map(|entry| Json(told(entry, &visit.frame.origin)))
        .ok_or_else(|| Error::NotFound { what: "version", asked: format!("{name} {version}") })
}

fn page(entries: &[ServerEntry], next_cursor: Option<String>, origin: &str) -> ServerList {
    let servers: Vec<ServerAnswer> = entries.iter().map(|entry| told(entry, origin)).collect();
    ServerList { metadata: ListMetadata { count: servers.len(), next_cursor }, servers }
}

fn told(entry: &ServerEntry, origin: &str) -> ServerAnswer {
    let read = |text: &[u8]| serde_json::from_slice::<Value>(text).ok();
    let server =
        entry.body.as_deref().and_then(read).unwrap_or_else(|| json!({ "name": entry.name, "version": entry.version }));
    let listed = entry.meta.as_deref().and_then(|meta| read(meta.as_bytes()));
    let mut meta: Map<String, Value> = listed.and_then(|meta| meta.as_object().cloned()).unwrap_or_default();
    meta.entry(OFFICIAL).or_insert_with(|| official(entry));
    meta.insert(OURS.to_owned(), conformance(entry, origin));
    ServerAnswer { server, meta }
}

fn official(entry: &ServerEntry) -> Value {
    let stamp = |ms: Option<i64>| text::rfc3339(ms.map_or(entry.changed_s, |ms| ms / 1_000));
    json!({
        "status": entry.status.as_deref().unwrap_or("active"),
        "publishedAt": stamp(entry.published_ms),
        "updatedAt": stamp(entry.updated_ms.or(entry.published_ms)),
        "isLatest": entry.is_latest,
    })
}

fn conformance(entry: &ServerEntry, origin: &str) -> Value {
    json!({
        "verdict": entry.headline.as_str(),
        "era": entry.era.map(Era::as_str),
        "reach": entry.reach.as_str(),
        "profile": entry.profile,
        "known": entry.known.map(plumbline_store::words::Known::as_str),
        "openErrors": entry.n_error,
        "openWarnings": entry.n_warn,
        "lastLooked": entry.last_attempt_s.map(text::rfc3339),
        "document": format!("sha256:{}", entry.document),
        "report": format!("{origin}/targets/{}", entry.target_id),
    })
}
