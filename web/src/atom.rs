//! Feeds as RFC 4287 has them. The template escapes; nothing else writes XML.

use askama::Template;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};

use crate::cache::Cache;
use crate::error::Error;
use crate::filters;
use crate::page::Visit;

/// One feed.
#[derive(Debug, Clone, Template)]
#[template(path = "feed.xml", escape = "html")]
pub struct Feed {
    /// Who publishes it.
    pub instance: String,
    /// What it is about.
    pub title: String,
    /// Its own path; the id is made of it.
    pub path: String,
    /// The page it belongs to.
    pub page: String,
    /// Newest first.
    pub entries: Vec<Entry>,
    /// When anything in it changed last, in Unix seconds.
    pub updated_s: i64,
}

/// One entry.
#[derive(Debug, Clone)]
pub struct Entry {
    /// Unique in this installation, and the same for ever: `event:17`.
    pub id: String,
    /// In few words.
    pub title: String,
    /// Where it is shown, as a path.
    pub path: String,
    /// Unix seconds.
    pub at_s: i64,
    /// In a sentence.
    pub summary: String,
}

impl Feed {
    /// The feed as an answer.
    pub fn answer(mut self, visit: &Visit) -> Result<Response, Error> {
        self.updated_s = self.entries.first().map_or(visit.now - visit.now % 86_400, |entry| entry.at_s);
        let kind = [(header::CONTENT_TYPE, "application/atom+xml; charset=utf-8")];
        Ok(visit.with_headers(StatusCode::OK, (kind, self.render()?).into_response(), Cache::Minute))
    }
}
