//! `/targets/{id}/diff?from&to`: what changed between two documents, and what that change opened or mended.

use askama::Template;
use axum::extract::{Query, State};
use axum::response::Response;
use plumbline_rules::catalogue;
use plumbline_rules::document::Document;
use plumbline_rules::rule::{Axis, Class};
use plumbline_store::judged::Occurrence;
use plumbline_store::views::{DocumentRow, DocumentSpan, TargetDetail};
use plumbline_store::words::Severity;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::filled;
use super::tabs::{self, Tab, Tabs};
use crate::WebState;
use crate::cache::Cache;
use crate::diff::{self, Change, TextForm, What};
use crate::error::Error;
use crate::filters;
use crate::page::{Frame, Place, Visit};
use crate::text;

/// Versions to choose from.
const MOST: i64 = 300;
/// Letters of a value that are shown.
const VALUE: usize = 600;

/// Which two, and in which form.
#[derive(Debug, Default, Deserialize)]
pub struct Choice {
    from: Option<String>,
    to: Option<String>,
    view: Option<String>,
}

/// What changed from one document to another.
#[derive(Template, Serialize)]
#[template(path = "diff.html")]
struct DiffPage {
    #[serde(skip)]
    frame: Frame,
    #[serde(skip)]
    tabs: Tabs,
    /// The moment the page holds for, in Unix seconds.
    as_of_s: i64,
    /// The answer in one sentence.
    answer: String,
    /// The target.
    target: TargetDetail,
    /// The old document and when it was served; `None`: only one was ever served.
    from: Option<DocumentSpan>,
    /// The new document.
    to: Option<DocumentSpan>,
    /// Each place that changed.
    changes: Vec<Hunk>,
    /// What the new document opened or mended and no single place is to blame for.
    elsewhere: Vec<Moved>,
    /// The unified text form, in groups of lines.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    lines: Vec<Vec<diff::Line>>,
    #[serde(skip)]
    equal: Vec<Option<String>>,
    #[serde(skip)]
    is_text: bool,
    #[serde(skip)]
    previous: Option<String>,
    #[serde(skip)]
    next: Option<String>,
    #[serde(skip)]
    versions: Vec<DocumentSpan>,
    #[serde(skip)]
    missing: Option<String>,
}

/// A change and what it did.
#[derive(Serialize)]
struct Hunk {
    /// What changed.
    #[serde(flatten)]
    change: Change,
    /// What it opened or mended.
    findings: Vec<Moved>,
}

/// A rule that fires on one of the two and not on the other.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Moved {
    /// The rule.
    rule: String,
    /// It fires on the new one; else it fired on the old one only.
    opened: bool,
    /// Of its first place.
    severity: Severity,
    /// What it says there.
    message: String,
    /// Its places.
    pointers: Vec<String>,
}

/// `GET /targets/{id}/diff`
pub async fn show(
    visit: Visit,
    State(state): State<WebState>,
    tabs::Asked(target): tabs::Asked,
    Query(choice): Query<Choice>,
) -> Result<Response, Error> {
    let versions = state.store.target_document_spans(target.id, MOST).await?;
    let (from, to) = chosen(&versions, &choice)?;
    let is_text = filled(choice.view.as_deref()) == Some("text");
    let compared = match (&from, &to) {
        (Some(from), Some(to)) => compared(&state, from, to, is_text).await?,
        _ => Compared::default(),
    };
    let url = |pair: Option<(DocumentSpan, DocumentSpan)>| {
        pair.map(|(from, to)| {
            let view = if is_text { "&view=text" } else { "" };
            format!("/targets/{}/diff?from={}&to={}{view}", target.id, &from.document[..16], &to.document[..16])
        })
    };
    let page = DiffPage {
        frame: visit.framed(Place::Targets),
        tabs: Tabs::of(target.id, Tab::Diff),
        as_of_s: visit.now,
        answer: answer(from.as_ref(), to.as_ref(), &compared),
        previous: url(from.as_ref().and_then(|from| older(&versions, from).map(|before| (before, from.clone())))),
        next: url(to.as_ref().and_then(|to| newer(&versions, to).map(|after| (to.clone(), after)))),
        target,
        from,
        to,
        changes: compared.hunks,
        elsewhere: compared.elsewhere,
        equal: equal(&compared.lines),
        lines: compared.lines.groups,
        missing: compared.missing,
        versions,
        is_text,
    };
    visit.answer(&page, Cache::Fresh)
}

/// The two that are asked for; without a wish the newest change.
fn chosen(versions: &[DocumentSpan], choice: &Choice) -> Result<(Option<DocumentSpan>, Option<DocumentSpan>), Error> {
    let named = |field: &'static str, hash: Option<&str>| -> Result<Option<DocumentSpan>, Error> {
        let Some(hash) = filled(hash) else { return Ok(None) };
        let found = versions.iter().find(|span| hash.len() >= 6 && span.document.starts_with(&hash.to_lowercase()));
        found.cloned().map(Some).ok_or_else(|| Error::BadQuery {
            field,
            reason: format!("is no document of this target: “{}”", text::visible(hash, 64)),
        })
    };
    let (from, to) = (named("from", choice.from.as_deref())?, named("to", choice.to.as_deref())?);
    Ok(match (from, to) {
        (Some(from), Some(to)) => (Some(from), Some(to)),
        (Some(from), None) => {
            let to = newer(versions, &from);
            (Some(from), to)
        }
        (None, Some(to)) => (older(versions, &to), Some(to)),
        (None, None) => {
            let changed = versions.iter().find_map(|to| older(versions, to).map(|from| (from, to.clone())));
            changed.map_or((None, None), |(from, to)| (Some(from), Some(to)))
        }
    })
}

/// The document that the same surface served before.
fn older(versions: &[DocumentSpan], one: &DocumentSpan) -> Option<DocumentSpan> {
    versions.iter().find(|span| span.surface_id == one.surface_id && span.from_s < one.from_s).cloned()
}

/// The document that the same surface served next.
fn newer(versions: &[DocumentSpan], one: &DocumentSpan) -> Option<DocumentSpan> {
    versions.iter().rev().find(|span| span.surface_id == one.surface_id && span.from_s > one.from_s).cloned()
}

/// What the two have to say together.
#[derive(Default)]
struct Compared {
    hunks: Vec<Hunk>,
    elsewhere: Vec<Moved>,
    lines: TextForm,
    missing: Option<String>,
}

/// What is left out before each group of lines, and after the last.
fn equal(form: &TextForm) -> Vec<Option<String>> {
    let said = |(from, to): (usize, usize)| match to - from {
        0 => format!("Line {from} is equal."),
        _ => format!("Lines {from} to {to} are equal."),
    };
    (0..=form.groups.len()).map(|group| form.equal_before(group).map(said)).collect()
}

async fn compared(state: &WebState, from: &DocumentSpan, to: &DocumentSpan, is_text: bool) -> Result<Compared, Error> {
    let (old, new) = (read(state, &from.document).await?, read(state, &to.document).await?);
    let moved = moved(&old.0, &new.0);
    let (Some(old), Some(new)) = (old.1, new.1) else {
        let missing = "The bytes of one of the two are no longer kept, so only what was judged can be compared.";
        return Ok(Compared { elsewhere: moved, missing: Some(missing.to_owned()), ..Compared::default() });
    };
    let lines = if is_text { diff::text(&old, &new) } else { TextForm::default() };
    let values = |document: &Document| serde_json::from_str::<Value>(document.text()).ok();
    let (Some(a), Some(b)) = (values(&old), values(&new)) else {
        let missing = "One of the two is no JSON, so places cannot be compared; the text form can.";
        return Ok(Compared { elsewhere: moved, lines, missing: Some(missing.to_owned()), ..Compared::default() });
    };
    let (hunks, elsewhere) = hunks(diff::changes(&a, &b), &moved);
    Ok(Compared { hunks, elsewhere, lines, missing: None })
}

async fn read(state: &WebState, hash: &str) -> Result<(DocumentRow, Option<Document>), Error> {
    let unknown = || Error::NotFound { what: "document", asked: hash.to_owned() };
    let row = state.store.document_of_hash(hash).await?.ok_or_else(unknown)?;
    let bytes = state.store.document_bytes(&row).await?;
    Ok((row, bytes.map(|bytes| Document::read(&bytes))))
}

/// The rules that fire on one of the two only, by the newest judgement of each.
fn moved(old: &DocumentRow, new: &DocumentRow) -> Vec<Moved> {
    let fired = |document: &DocumentRow| -> Vec<(String, Vec<Occurrence>)> {
        let all = document.judged.as_ref().map(|judged| judged.fired.clone()).unwrap_or_default();
        all.into_iter().filter(|(rule, _)| is_finding(rule)).collect()
    };
    if old.judged.is_none() || new.judged.is_none() {
        return Vec::new();
    }
    let (before, after) = (fired(old), fired(new));
    let only = |these: &[(String, Vec<Occurrence>)], those: &[(String, Vec<Occurrence>)], opened: bool| {
        these
            .iter()
            .filter(|(rule, _)| those.iter().all(|(other, _)| other != rule))
            .map(|(rule, places)| Moved {
                rule: rule.clone(),
                opened,
                severity: places.first().map_or(Severity::Info, |place| place.severity),
                message: places.first().map(|place| place.message.clone()).unwrap_or_default(),
                pointers: places.iter().map(|place| place.pointer.clone()).collect(),
            })
            .collect::<Vec<_>>()
    };
    let mut moved = only(&after, &before, true);
    moved.extend(only(&before, &after, false));
    moved
}

fn is_finding(rule: &str) -> bool {
    catalogue::find(rule).is_none_or(|rule| rule.axis == Axis::Conformity && rule.class == Class::Finding)
}

/// Each change with the findings it opened or mended; what belongs to no change stands apart.
fn hunks(changes: Vec<Change>, moved: &[Moved]) -> (Vec<Hunk>, Vec<Moved>) {
    let mut placed = vec![false; moved.len()];
    let hunks = changes
        .into_iter()
        .map(|change| {
            let mut findings = Vec::new();
            for (n, one) in moved.iter().enumerate() {
                let place = if one.opened { &change.after } else { &change.before };
                // A member that is missing is reported where it should stand, so a removal opens at its object.
                let place = place.as_deref().unwrap_or_else(|| parent(change.pointer()));
                if one.pointers.iter().any(|pointer| diff::is_about(place, pointer) || pointer == change.pointer()) {
                    placed[n] = true;
                    findings.push(one.clone());
                }
            }
            Hunk { change, findings }
        })
        .collect();
    let elsewhere = moved.iter().zip(placed).filter(|(_, placed)| !placed).map(|(one, _)| one.clone()).collect();
    (hunks, elsewhere)
}

fn parent(pointer: &str) -> &str {
    pointer.rfind('/').map_or("", |at| &pointer[..at])
}

fn answer(from: Option<&DocumentSpan>, to: Option<&DocumentSpan>, compared: &Compared) -> String {
    let (Some(from), Some(to)) = (from, to) else {
        return "It has served one document so far, so there is no change to show.".to_owned();
    };
    if from.document == to.document {
        return "Both are the same bytes.".to_owned();
    }
    let rules = |opened: bool| {
        let here = compared.hunks.iter().flat_map(|hunk| &hunk.findings).chain(&compared.elsewhere);
        let mut rules: Vec<&str> = here.filter(|one| one.opened == opened).map(|one| one.rule.as_str()).collect();
        rules.sort_unstable();
        rules.dedup();
        rules.len() as i64
    };
    let (opened, mended) = (rules(true), rules(false));
    let did = match (opened, mended) {
        (0, 0) => "that opened and mended nothing".to_owned(),
        (opened, 0) => format!("that opened {}", text::counted(opened, "finding", "findings")),
        (0, mended) => format!("that mended {}", text::counted(mended, "finding", "findings")),
        _ => {
            format!("that opened {} and mended {}", text::counted(opened, "finding", "findings"), text::number(mended))
        }
    };
    match (compared.hunks.len() as i64, &compared.missing) {
        (_, Some(missing)) => missing.clone(),
        (0, None) => "The bytes differ and the meaning does not: only order or white space changed.".to_owned(),
        (places, None) => format!("{} changed; {did}.", text::opened(&text::counted(places, "place", "places"))),
    }
}

impl Hunk {
    fn word(&self) -> &'static str {
        self.change.what.word()
    }

    fn value(value: &Value) -> String {
        let laid_out = serde_json::to_string_pretty(value).unwrap_or_default();
        text::visible(&laid_out.replace('\n', "\u{2424}"), VALUE).replace('\u{2424}', "\n")
    }

    fn value_before(&self) -> Option<String> {
        self.change.old.as_ref().map(Self::value)
    }

    fn value_after(&self) -> Option<String> {
        self.change.new.as_ref().filter(|_| self.change.what != What::Moved).map(Self::value)
    }

    fn place(&self) -> &str {
        match self.change.pointer() {
            "" => "the whole document",
            pointer => pointer,
        }
    }
}

impl DiffPage {
    fn url(&self, is_text: bool) -> String {
        let pair = match (&self.from, &self.to) {
            (Some(from), Some(to)) => format!("?from={}&to={}", &from.document[..16], &to.document[..16]),
            _ => "?".to_owned(),
        };
        format!("/targets/{}/diff{pair}{}", self.target.id, if is_text { "&view=text" } else { "" })
    }

    fn equal_before(&self, group: &usize) -> Option<&str> {
        self.equal.get(*group)?.as_deref()
    }

    fn equal_after(&self) -> Option<&str> {
        self.equal.last()?.as_deref()
    }

    fn is_from(&self, hash: &str) -> bool {
        self.from.as_ref().is_some_and(|span| span.document == hash)
    }

    fn is_to(&self, hash: &str) -> bool {
        self.to.as_ref().is_some_and(|span| span.document == hash)
    }
}
