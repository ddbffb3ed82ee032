//! `/clients`: which released clients refuse which fault, as they were run.

use askama::Template;
use axum::extract::Query;
use axum::response::Response;
use plumbline_rules::clients::{Does, Row, table};
use serde::{Deserialize, Serialize};

use super::filled;
use crate::cache::Cache;
use crate::error::Error;
use crate::filters;
use crate::page::{Frame, Place, Visit};
use crate::text;
use crate::words::Given;

/// The fields of the form.
#[derive(Debug, Default, Deserialize)]
pub struct Asked {
    rule: Option<String>,
}

/// The table.
#[derive(Template, Serialize)]
#[template(path = "clients.html")]
struct ClientsPage {
    #[serde(skip)]
    frame: Frame,
    /// The answer in one sentence.
    answer: String,
    /// Agent cards, then MCP servers.
    kinds: Vec<KindRows>,
    #[serde(skip)]
    rule: String,
}

/// Faults of one kind of document, and the clients that were run on it.
#[derive(Serialize)]
struct KindRows {
    /// `a2a` or `mcp`.
    kind: &'static str,
    /// The clients, each with its version.
    clients: Vec<&'static str>,
    /// The faults.
    rows: Vec<&'static Row>,
}

/// `GET /clients`
pub async fn show(visit: Visit, Query(asked): Query<Asked>) -> Result<Response, Error> {
    let rule = filled(asked.rule.as_deref()).unwrap_or_default().to_owned();
    let kinds = ["a2a", "mcp"].map(|kind| kind_rows(kind, &rule)).into_iter().filter(|kind| !kind.rows.is_empty());
    let page = ClientsPage { frame: visit.framed(Place::Rules), answer: answer(), kinds: kinds.collect(), rule };
    visit.answer(&page, Cache::Fresh)
}

fn kind_rows(kind: &'static str, rule: &str) -> KindRows {
    let is_of_kind = |row: &&'static Row| row.over.starts_with(kind);
    let ran = |client: &str| table().rows.iter().filter(is_of_kind).any(|row| row.clients.contains_key(client));
    KindRows {
        kind,
        clients: table().clients.iter().map(String::as_str).filter(|client| ran(client)).collect(),
        rows: table().rows.iter().filter(is_of_kind).filter(|row| rule.is_empty() || row.rule == rule).collect(),
    }
}

fn answer() -> String {
    let refused =
        table().rows.iter().filter(|row| row.clients.values().any(|one| one.outcome == Does::Refuses)).count();
    format!(
        "{} of {} faults make one of {} released clients refuse.",
        text::number(refused as i64),
        text::number(table().rows.len() as i64),
        text::number(table().clients.len() as i64)
    )
}

/// What a client does, as people read it.
#[must_use]
pub fn does_words(does: impl Given<Does>) -> &'static str {
    match does.given() {
        Does::Opens => "opens it",
        Does::Refuses => "refuses it",
        Does::Unaware => "does not know the revision",
    }
}

impl KindRows {
    fn name(&self) -> &'static str {
        if self.kind == "a2a" { "Agent cards" } else { "MCP servers" }
    }

    /// What each client does with a row, in the order of the head.
    fn outcomes(&self, row: &Row) -> Vec<(&'static str, &'static str, String)> {
        let cell = |client: &&'static str| {
            let outcome = row.clients.get(*client)?;
            Some((*client, does_words(outcome.outcome), outcome.says.clone().unwrap_or_default()))
        };
        self.clients.iter().map(|client| cell(client).unwrap_or((client, "was not run", String::new()))).collect()
    }
}
