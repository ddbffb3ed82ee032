//! `/deploys` and `/deploys/{id}`: did this release break or mend anything?

use askama::Template;
use axum::extract::{Path, Query, State};
use axum::response::Response;
use plumbline_store::DeployId;
use plumbline_store::deploys::{DeployFinding, DeployRow, Outcome, SignalKind};
use plumbline_store::views::DocumentSpan;
use serde::{Deserialize, Serialize};

use crate::WebState;
use crate::cache::Cache;
use crate::error::Error;
use crate::filters;
use crate::page::{Frame, Place, Visit};
use crate::text;
use crate::words;

/// Deploys on one page.
const PAGE: i64 = 50;
/// Findings shown of one.
const FINDINGS: usize = 500;

/// Where the list goes on.
#[derive(Debug, Default, Deserialize)]
pub struct Asked {
    before: Option<String>,
}

/// Deploys, newest first.
#[derive(Template, Serialize)]
#[template(path = "deploys.html")]
struct Deploys {
    #[serde(skip)]
    frame: Frame,
    /// The moment the page holds for, in Unix seconds.
    as_of_s: i64,
    /// The answer in one sentence.
    answer: String,
    /// The deploys of this page.
    deploys: Vec<DeployRow>,
    /// Address of older ones.
    next: Option<String>,
}

/// One deploy.
#[derive(Template, Serialize)]
#[template(path = "deploy.html")]
struct Deploy {
    #[serde(skip)]
    frame: Frame,
    /// The moment the page holds for, in Unix seconds.
    as_of_s: i64,
    /// The answer in one sentence.
    answer: String,
    /// The deploy.
    deploy: DeployRow,
    /// What it opened and mended.
    findings: Vec<DeployFinding>,
    /// The document that came with it, where one did.
    document: Option<DocumentSpan>,
}

/// `GET /deploys`
pub async fn list(visit: Visit, State(state): State<WebState>, Query(asked): Query<Asked>) -> Result<Response, Error> {
    let before = super::number("before", asked.before.as_deref())?.unwrap_or(i64::MAX);
    let mut deploys = state.store.deploys(None, Some(before), PAGE + 1).await?;
    let has_more = deploys.len() as i64 > PAGE;
    deploys.truncate(PAGE as usize);
    let page = Deploys {
        frame: visit.framed(Place::Elsewhere),
        as_of_s: visit.now,
        answer: list_answer(&deploys, visit.now),
        next: deploys.last().filter(|_| has_more).map(|last| format!("/deploys?before={}", last.id)),
        deploys,
    };
    visit.answer_rows(&page, &page.deploys, Cache::Fresh)
}

fn list_answer(deploys: &[DeployRow], now: i64) -> String {
    let Some(newest) = deploys.first() else { return "No sign of a deploy has been seen.".to_owned() };
    let bad =
        deploys.iter().filter(|deploy| matches!(deploy.outcome, Some(Outcome::Regressed | Outcome::Mixed))).count();
    format!(
        "The newest deploy was {}, at {}; {} of the newest {} broke something.",
        text::ago(newest.at_s, now),
        text::visible(&newest.target, 60),
        text::number(bad as i64),
        text::number(deploys.len() as i64)
    )
}

/// `GET /deploys/{id}`
pub async fn show(visit: Visit, State(state): State<WebState>, Path(asked): Path<String>) -> Result<Response, Error> {
    let unknown = || Error::NotFound { what: "deploy", asked: asked.clone() };
    let id: i64 = asked.trim_start_matches("dep_").parse().map_err(|_| unknown())?;
    let (deploy, mut findings) = state.store.deploy(DeployId(id)).await?.ok_or_else(unknown)?;
    let answer = answer(&deploy);
    findings.truncate(FINDINGS);
    let documents = state.store.target_document_spans(deploy.target_id, 200).await?;
    let near = documents.into_iter().filter(|span| (span.from_s - deploy.at_s).abs() <= 3_600);
    let page = Deploy {
        frame: visit.framed(Place::Elsewhere),
        as_of_s: visit.now,
        answer,
        document: near.min_by_key(|span| (span.from_s - deploy.at_s).abs()),
        deploy,
        findings,
    };
    visit.answer(&page, Cache::Fresh)
}

fn answer(deploy: &DeployRow) -> String {
    let version =
        deploy.version.as_ref().map_or_else(String::new, |version| format!(" of {}", text::visible(version, 40)));
    let did = match (deploy.opened, deploy.resolved) {
        (0, 0) => "opened and mended nothing".to_owned(),
        (opened, 0) => format!("opened {}", text::counted(opened, "finding", "findings")),
        (0, mended) => format!("mended {}", text::counted(mended, "finding", "findings")),
        (opened, mended) => {
            format!("opened {} and mended {}", text::counted(opened, "finding", "findings"), text::number(mended))
        }
    };
    let settled = match deploy.outcome {
        None => " It is not settled yet.".to_owned(),
        Some(Outcome::Unreachable) => " The target could not be reached afterwards, so nothing is said.".to_owned(),
        Some(outcome) => format!(" It {}.", words::deploy_did(outcome)),
    };
    format!("The deploy{version} at {} {did}.{settled}", text::visible(&deploy.target, 60))
}

/// What was seen, in words.
fn signals(deploy: &DeployRow) -> Vec<(&'static str, String)> {
    let shown = |side: &Option<String>| side.as_ref().map_or_else(|| "–".to_owned(), |side| text::visible(side, 60));
    let said = deploy.signals.iter().map(|signal| {
        let said = match signal.kind {
            SignalKind::Marker => "their pipeline told us",
            SignalKind::Registry => "the registry lists another version",
            SignalKind::Listing => "the registry says that its entry was updated",
            SignalKind::ServerInfo => "the server calls itself another version",
            SignalKind::CardVersion => "the card calls itself another version",
            SignalKind::SilentChange => "the document changed and its version did not",
            SignalKind::LiveChange => "its tools or its protocol changed",
            SignalKind::Touch => "it was touched, and nothing in it changed",
            SignalKind::Infra => "its certificate, addresses or server software changed",
        };
        let is_silent = signal.from.is_none() && signal.to.is_none();
        let moved = match (&signal.from, &signal.to) {
            _ if is_silent => String::new(),
            (Some(from), Some(to)) if from == to => format!("{} as before", text::visible(to, 60)),
            (from, to) => format!("{} → {}", shown(from), shown(to)),
        };
        (said, moved)
    });
    said.collect()
}

impl Deploy {
    /// Its document says something else under the version it had.
    fn is_silent(&self) -> bool {
        self.deploy.signals.iter().any(|signal| signal.kind == SignalKind::SilentChange)
    }

    fn signals(&self) -> Vec<(&'static str, String)> {
        signals(&self.deploy)
    }
}

impl Deploys {
    fn seen(&self, deploy: &DeployRow) -> String {
        signals(deploy).into_iter().next().map_or_else(String::new, |(said, moved)| {
            if moved.is_empty() { said.to_owned() } else { format!("{said}: {moved}") }
        })
    }
}
