//! The ways within one target, on each of its pages.

use askama::Template;
use axum::extract::FromRequestParts;
use axum::extract::Path;
use axum::http::request::Parts;
use plumbline_store::views::TargetDetail;

use crate::WebState;
use crate::error::Error;

/// One of the pages of a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tab {
    /// Its verdict.
    Verdict,
    /// What happened when.
    Timeline,
    /// Every finding.
    Findings,
    /// What it served.
    Documents,
    /// What changed.
    Diff,
    /// Its probes.
    Checks,
    /// What was said.
    Session,
}

/// The row of ways.
#[derive(Debug, Clone, Template)]
#[template(path = "tabs.html")]
pub struct Tabs {
    target: i64,
    here: Tab,
}

impl askama::filters::HtmlSafe for Tabs {}

impl Tabs {
    /// The ways of a target, seen from one of them.
    #[must_use]
    pub fn of(target: i64, here: Tab) -> Self {
        Self { target, here }
    }

    fn ways(&self) -> [(String, &'static str, bool); 7] {
        [
            (Tab::Verdict, "", "Verdict"),
            (Tab::Timeline, "/timeline", "Timeline"),
            (Tab::Findings, "/findings", "Findings"),
            (Tab::Documents, "/documents", "Documents"),
            (Tab::Diff, "/diff", "Changes"),
            (Tab::Checks, "/checks", "Checks"),
            (Tab::Session, "/session", "Conversation"),
        ]
        .map(|(tab, path, word)| (format!("/targets/{}{path}", self.target), word, tab == self.here))
    }
}

/// The target that an address names; whoever takes one answers only for targets that exist.
pub struct Asked(pub TargetDetail);

impl FromRequestParts<WebState> for Asked {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &WebState) -> Result<Self, Error> {
        let Path(asked) = Path::<String>::from_request_parts(parts, state)
            .await
            .map_err(|_| Error::NotFound { what: "target", asked: parts.uri.path().to_owned() })?;
        let unknown = || Error::NotFound { what: "target", asked: asked.clone() };
        let id: i64 = asked.parse().map_err(|_| unknown())?;
        Ok(Self(state.store.target(id).await?.ok_or_else(unknown)?))
    }
}
