//! `/check` and `/reports/{id}`: what about this address or this JSON, right now? The report keeps its address for thirty days.

use std::sync::{LazyLock, Mutex, PoisonError};

use askama::Template;
use axum::Form as Posted;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Redirect, Response};
use plumbline_alerts::clients::{self, ClientAnswer, Fired};
use plumbline_rules::document::Document;
use plumbline_rules::judge::{Given, Origin, Subject, judge};
use plumbline_rules::kind::Kind;
use plumbline_rules::report::{Headline, Report};
use plumbline_rules::rule::{Impact, Severity};
use plumbline_store::reports::{KEPT_S, ReportState, StoredReport};
use serde::{Deserialize, Serialize};

use super::{filled, word};
use crate::WebState;
use crate::cache::Cache;
use crate::checker::CheckedUrl;
use crate::error::Error;
use crate::filters;
use crate::page::{Frame, Place, Visit};
use crate::text;

/// Addresses that may be asked for in a minute, by everybody together: asking costs strangers, judging costs only us.
const ASKED_A_MINUTE: u32 = 30;

/// Bytes of a document that are kept with its report.
const KEPT: usize = 200_000;

/// Places kept of one finding.
const PLACES: usize = 20;

/// The form.
#[derive(Debug, Default, Deserialize)]
pub struct Wish {
    url: Option<String>,
    text: Option<String>,
    kind: Option<String>,
}

/// The form, with examples.
#[derive(Template, Serialize)]
#[template(path = "check.html")]
struct CheckPage {
    #[serde(skip)]
    frame: Frame,
    /// Whether this process may ask an address.
    asks: bool,
}

/// What is kept of a check.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Kept {
    /// Why there was nothing to judge.
    why_not: Option<String>,
    /// Its word.
    headline: Headline,
    /// What it is.
    kind: String,
    /// The revision it was judged as.
    profile: String,
    /// How that is known.
    known: String,
    /// Rules that passed or fired.
    judged: usize,
    /// Rules that apply and could not look.
    not_evaluated: usize,
    /// What fires, the worst first.
    findings: Vec<KeptFinding>,
    /// What was judged, shortened.
    text: String,
}

/// One rule that fires.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct KeptFinding {
    /// The rule.
    rule: String,
    /// The gravest of its places.
    severity: Severity,
    /// What released clients do.
    impact: Option<Impact>,
    /// Tagged security.
    is_security: bool,
    /// What to do.
    fix: String,
    /// Pointer, line, what is wrong.
    places: Vec<(String, Option<usize>, String)>,
}

/// One report.
#[derive(Template, Serialize)]
#[template(path = "report.html")]
struct ReportPage {
    #[serde(skip)]
    frame: Frame,
    /// When it was asked for, in Unix seconds.
    at_s: i64,
    /// When it is forgotten, in Unix seconds.
    expires_s: i64,
    /// The address, or `pasted`.
    input: String,
    /// The answer in one sentence.
    answer: String,
    /// It is still being asked.
    is_running: bool,
    /// What was found; `None` while it is being asked.
    report: Option<Kept>,
}

/// `GET /check`
pub async fn form(visit: Visit, State(state): State<WebState>) -> Result<Response, Error> {
    let page = CheckPage { frame: visit.framed(Place::Elsewhere), asks: state.checker.ask.is_some() };
    visit.answer(&page, Cache::Fresh)
}

/// `POST /check`
pub async fn begin(visit: Visit, State(state): State<WebState>, Posted(wish): Posted<Wish>) -> Result<Response, Error> {
    let id = format!("{:032x}", rand::random::<u128>());
    match (filled(wish.url.as_deref()), filled(wish.text.as_deref())) {
        (Some(url), None) => ask(&state, &id, url, visit.now).await?,
        (None, Some(pasted)) => {
            let kind: Option<Kind> = word("kind", wish.kind.as_deref())?;
            let checked = judged(&state, pasted, kind);
            keep(&state, &id, "pasted", ReportState::Done, &kept(&checked), visit.now).await?;
        }
        _ => {
            let reason = "is either an address or a document; give one of the two".to_owned();
            return Err(Error::BadQuery { field: "url", reason });
        }
    }
    Ok(Redirect::to(&format!("/reports/{id}")).into_response())
}

fn judged(state: &WebState, pasted: &str, kind: Option<Kind>) -> CheckedUrl {
    let given = Given::default();
    let subject = Subject { kind, version: None, origin: Origin::Nowhere, given: &given, session: None, answer: None };
    let settings = (state.checker.judging)();
    CheckedUrl { text: pasted.to_owned(), report: judge(&Document::from_text(pasted), &subject, &settings) }
}

/// Asks in the background; the page of the report looks again by itself.
async fn ask(state: &WebState, id: &str, url: &str, now: i64) -> Result<(), Error> {
    let Some(ask) = state.checker.ask.clone() else {
        let reason = "cannot be asked from here; this process calls nobody. Paste the document".to_owned();
        return Err(Error::BadQuery { field: "url", reason });
    };
    if !may_ask(now) {
        return Err(Error::TooMany);
    }
    let input = url.to_owned();
    keep(state, id, &input, ReportState::Running, &nothing("It is being asked."), now).await?;
    let (state, id) = (state.clone(), id.to_owned());
    tokio::spawn(async move {
        let (end, kept) = match ask(input.clone()).await {
            Ok(checked) => (ReportState::Done, kept(&checked)),
            Err(why) => (ReportState::Failed, nothing(&why)),
        };
        if let Err(error) = keep(&state, &id, &input, end, &kept, now).await {
            tracing::error!("the report {id} could not be kept: {error}");
        }
    });
    Ok(())
}

/// Whether one more address may be asked in this minute.
fn may_ask(now: i64) -> bool {
    static ASKED: LazyLock<Mutex<(i64, u32)>> = LazyLock::new(|| Mutex::new((0, 0)));
    let mut asked = ASKED.lock().unwrap_or_else(PoisonError::into_inner);
    if asked.0 != now / 60 {
        *asked = (now / 60, 0);
    }
    asked.1 += 1;
    asked.1 <= ASKED_A_MINUTE
}

async fn keep(state: &WebState, id: &str, input: &str, end: ReportState, kept: &Kept, now: i64) -> Result<(), Error> {
    let input: String = input.chars().take(2_000).collect();
    let body = serde_json::to_vec(kept)?;
    let report = StoredReport { at_s: now, expires_s: now + KEPT_S, input, state: end, body };
    Ok(state.store.keep_report(id, &report).await?)
}

fn nothing(why: &str) -> Kept {
    Kept {
        why_not: Some(why.to_owned()),
        headline: Headline::NotEvaluated,
        kind: String::new(),
        profile: String::new(),
        known: String::new(),
        judged: 0,
        not_evaluated: 0,
        findings: Vec::new(),
        text: String::new(),
    }
}

fn kept(checked: &CheckedUrl) -> Kept {
    let report = &checked.report;
    let mut findings: Vec<KeptFinding> = report
        .findings()
        .map(|(rule, places)| {
            let (severity, impact) = plumbline_rules::report::worst(places);
            KeptFinding {
                rule: rule.id.to_owned(),
                severity,
                impact,
                is_security: rule.security,
                fix: rule.fix.to_owned(),
                places: places
                    .iter()
                    .take(PLACES)
                    .map(|place| (place.pointer.clone(), place.line, place.message.clone()))
                    .collect(),
            }
        })
        .collect();
    findings.sort_by_key(|one| std::cmp::Reverse((one.impact, one.severity)));
    let not_evaluated = report.not_evaluated().count();
    Kept {
        why_not: None,
        headline: report.headline(),
        kind: report.detected.kind.to_string(),
        profile: report.detected.profile.to_owned(),
        known: report.detected.known.to_string(),
        judged: looked(report),
        not_evaluated,
        findings,
        text: checked.text.chars().take(KEPT).collect(),
    }
}

/// Rules that passed or fired.
fn looked(report: &Report) -> usize {
    use plumbline_rules::report::Outcome;
    report.results.iter().filter(|result| matches!(result.outcome, Outcome::Fires(_) | Outcome::Passes)).count()
}

/// `GET /reports/{id}`
pub async fn show(visit: Visit, State(state): State<WebState>, Path(id): Path<String>) -> Result<Response, Error> {
    let unknown = || Error::NotFound { what: "report", asked: id.clone() };
    let stored = state.store.kept_report(&id, visit.now).await?.ok_or_else(unknown)?;
    let kept: Kept = serde_json::from_slice(&stored.body)?;
    let is_running = stored.state == ReportState::Running;
    let page = ReportPage {
        frame: visit.framed(Place::Elsewhere),
        at_s: stored.at_s,
        expires_s: stored.expires_s,
        answer: answer(&stored, &kept),
        input: stored.input,
        is_running,
        report: (!is_running).then_some(kept),
    };
    visit.answer(&page, Cache::Fresh)
}

fn answer(stored: &StoredReport, kept: &Kept) -> String {
    match stored.state {
        ReportState::Running => return "It is being asked; this page looks again by itself.".to_owned(),
        ReportState::Failed => {
            return format!(
                "Nothing could be judged: {}",
                text::visible(kept.why_not.as_deref().unwrap_or_default(), 300)
            );
        }
        ReportState::Done => {}
    }
    let count = |severity| kept.findings.iter().filter(|one| one.severity == severity).count() as i64;
    let (errors, warnings) = (count(Severity::Error), count(Severity::Warning));
    let found = match (errors, warnings) {
        (0, 0) => "no error and no warning".to_owned(),
        (errors, 0) => text::counted(errors, "error", "errors"),
        (0, warnings) => format!("no error and {}", text::counted(warnings, "warning", "warnings")),
        _ => format!(
            "{} and {}",
            text::counted(errors, "error", "errors"),
            text::counted(warnings, "warning", "warnings")
        ),
    };
    match kept.headline {
        Headline::NotDetected => "This is nothing that we know how to judge, so nothing is said against it.".to_owned(),
        Headline::NotEvaluated => "This could not be judged.".to_owned(),
        Headline::Blocked => {
            let refused = kept.clients().map(|answer| answer.refused_by);
            let by = match refused.as_deref() {
                Some([]) => "a client that reads it as the specification says cannot use it".to_owned(),
                Some([one]) => format!("{} refuses it", one.name),
                Some(_) | None => "released clients refuse it".to_owned(),
            };
            format!("Blocked: {found}, and {by}.")
        }
        Headline::Deviates => format!("Deviates: {found}, and no tested client refuses it for that."),
        Headline::Sound => format!(
            "Sound: {found}, of {}.",
            text::counted(kept.judged as i64, "rule that could look", "rules that could look")
        ),
    }
}

/// Kinds that can be named in the form, and what each is called.
const KINDS: [(&str, &str); 6] = [
    ("a2a-card", "agent card"),
    ("server-json", "server.json"),
    ("openapi", "OpenAPI document"),
    ("mcp-server-card", "MCP server card"),
    ("oauth-protected-resource", "protected resource metadata"),
    ("oauth-authorization-server", "authorization server metadata"),
];

/// What a kind of document is called in a sentence.
fn kind_words(kind: &str) -> String {
    let known = KINDS.iter().find(|(word, _)| *word == kind).map(|(_, said)| text::opened(said));
    known.unwrap_or_else(|| match kind {
        "server-json" => "server.json".to_owned(),
        other => text::opened(&other.replace('-', " ")),
    })
}

impl CheckPage {
    fn kinds(&self) -> [(&'static str, &'static str); 6] {
        KINDS
    }
}

impl Kept {
    fn kind_words(&self) -> String {
        kind_words(&self.kind)
    }

    /// What released clients do with it; `None`: none was tested on its kind, or it was not judged.
    fn clients(&self) -> Option<ClientAnswer> {
        if matches!(self.headline, Headline::NotEvaluated | Headline::NotDetected) {
            return None;
        }
        let fired: Vec<Fired<'_>> =
            self.findings.iter().map(|one| Fired { rule: &one.rule, impact: one.impact }).collect();
        clients::answer(&self.profile, &fired)
    }
}
