//! The line stream of `plumbline check --lines`: one JSON text in, one report out, every line judged anew.
//!
//! The shapes of a line are those of the vectors (catalogue §5); documents count as fetched from a public host
//! (decisions 9) unless their context says otherwise.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::document::Document;
use crate::judge::{Given, Settings, Subject, judge};
use crate::kind::Kind;
use crate::report::{
    CheckedSignature, Detected, Headline, Occurrence, Report, SignatureVerdict, Specification, signature_verdict,
};
use crate::rule::{Impact, Rule, Severity};
use crate::session::{Exchange, Session, Surface};
use crate::session_judge::{judge_session, origin};

#[derive(Deserialize)]
struct Line<'l> {
    kind: &'l str,
    spec_version: Option<std::borrow::Cow<'l, str>>,
    #[serde(default)]
    context: Given,
    #[serde(borrow)]
    document: &'l RawValue,
}

/// A body as bytes, for kind `raw`.
#[derive(Deserialize)]
struct RawBody {
    raw: Option<String>,
    raw_base64: Option<String>,
    raw_repeat: Option<(String, String, usize, String)>,
    raw_nest: Option<(String, usize, String, String)>,
    #[serde(rename = "as")]
    kind: Option<Kind>,
}

/// A card, and what was asked for because of it.
#[derive(Deserialize)]
struct ObservedCard<'l> {
    #[serde(borrow)]
    card: &'l RawValue,
    exchanges: Vec<Exchange>,
}

/// Bodies that a line describes by repetition are built up to this size and no further.
const MAX_DESCRIBED_BYTES: usize = 32 << 20;

/// Judges one line.
///
/// # Errors
/// A sentence when the line is no JSON, lacks a member, or names a kind or setting that does not exist.
pub fn judge_line(line: &str, settings: &Settings) -> Result<Report, String> {
    let line: Line<'_> = serde_json::from_str(line).map_err(|error| error.to_string())?;
    let version = line.spec_version.as_deref().filter(|version| *version != "any");
    let settings = with_own(settings, &line.context)?;
    let settings = settings.as_ref();
    let given = &line.context;
    let subject = |kind| Subject { kind, version, origin: origin(given, None), given, session: None, answer: None };
    match line.kind {
        "any" => Ok(judge(&Document::from_text(line.document.get()), &subject(None), settings)),
        "raw" => {
            let body: RawBody = serde_json::from_str(line.document.get()).map_err(|error| error.to_string())?;
            let kind = body.kind;
            Ok(judge(&Document::read(&described(body)?), &subject(kind), settings))
        }
        "exchange" => {
            let session: Session = serde_json::from_str(line.document.get()).map_err(|error| error.to_string())?;
            let surface = given.surface.as_deref().map_or(Ok(Surface::Any), str::parse)?;
            Ok(judge_session(&session, surface, version, given, settings))
        }
        "a2a-jwks" | "a2a-live" => {
            let observed: ObservedCard<'_> =
                serde_json::from_str(line.document.get()).map_err(|error| error.to_string())?;
            let session = Session::from(observed.exchanges);
            let subject = Subject { session: Some(&session), ..subject(Some(Kind::AgentCard)) };
            let report = judge(&Document::from_text(observed.card.get()), &subject, settings);
            Ok(report.below("/card"))
        }
        kind => {
            let kind: Kind = kind.parse()?;
            Ok(judge(&Document::from_text(line.document.get()), &subject(Some(kind)), settings))
        }
    }
}

fn with_own<'s>(settings: &'s Settings, given: &Given) -> Result<std::borrow::Cow<'s, Settings>, String> {
    let mut own = std::borrow::Cow::Borrowed(settings);
    for (key, value) in &given.settings {
        own.to_mut().set(key, value.clone())?;
    }
    Ok(own)
}

fn described(body: RawBody) -> Result<Vec<u8>, String> {
    if let Some(text) = body.raw {
        return Ok(text.into_bytes());
    }
    if let Some(text) = body.raw_base64 {
        return STANDARD.decode(text).map_err(|error| format!("`raw_base64`: {error}"));
    }
    let (before, middle, times, after) = match (body.raw_repeat, body.raw_nest) {
        (Some((prefix, letter, times, suffix)), _) => (prefix, letter, times, suffix),
        (None, Some((opening, times, middle, closing))) => {
            let room = (opening.len() + closing.len()).saturating_mul(times);
            fits(room)?;
            return Ok([opening.repeat(times), middle, closing.repeat(times)].concat().into_bytes());
        }
        (None, None) => return Err("a raw document has `raw`, `raw_base64`, `raw_repeat` or `raw_nest`".to_owned()),
    };
    fits(middle.len().saturating_mul(times))?;
    Ok([before, middle.repeat(times), after].concat().into_bytes())
}

fn fits(bytes: usize) -> Result<(), String> {
    if bytes <= MAX_DESCRIBED_BYTES {
        Ok(())
    } else {
        Err(format!("the described body has over {MAX_DESCRIBED_BYTES} bytes"))
    }
}

/// A report as `check` prints it.
#[derive(Serialize)]
pub struct ReportJson<'r> {
    /// What it was judged as.
    pub detected: Detected,
    /// The one word.
    pub headline: Headline,
    /// The specification answer.
    pub specification: Specification,
    /// Every occurrence of a finding.
    pub findings: Vec<FindingJson<'r>>,
    /// Facts that are set.
    pub facts: Vec<PlaceJson<'r>>,
    /// Reach and detection rules that hold.
    pub states: Vec<PlaceJson<'r>>,
    /// Rules that could not look.
    pub not_evaluated: Vec<UnsaidJson>,
    /// Rules that fire at more places than are listed, and at how many more.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub more: BTreeMap<&'static str, usize>,
    /// The signatures of a card, where keys were at hand.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signatures: Option<SignaturesJson<'r>>,
}

/// The signatures of a card.
#[derive(Serialize)]
pub struct SignaturesJson<'r> {
    /// What they are worth together.
    pub verdict: SignatureVerdict,
    /// Each of them.
    pub per_signature: &'r [CheckedSignature],
}

/// One occurrence of a finding.
#[derive(Serialize)]
pub struct FindingJson<'r> {
    /// The rule's id.
    pub rule: &'static str,
    /// This occurrence's severity.
    pub severity: Severity,
    /// This occurrence's impact.
    pub impact: Option<Impact>,
    /// Whether it is tagged security.
    pub security: bool,
    /// Where.
    pub pointer: &'r str,
    /// Line in the document, from 1.
    pub line: Option<usize>,
    /// Column, from 1.
    pub column: Option<usize>,
    /// What is wrong with this value.
    pub message: &'r str,
    /// What to do.
    pub fix: &'static str,
    /// The section that asks for it.
    pub spec: &'static str,
}

/// A place at which a fact or state holds.
#[derive(Serialize)]
pub struct PlaceJson<'r> {
    /// The rule's id.
    pub rule: &'static str,
    /// Where.
    pub pointer: &'r str,
    /// The value, in words.
    pub message: &'r str,
}

/// A rule that could not look.
#[derive(Serialize)]
pub struct UnsaidJson {
    /// The rule's id.
    pub rule: &'static str,
    /// Why.
    pub reason: crate::report::NotEvaluated,
}

impl<'r> From<&'r Report> for ReportJson<'r> {
    fn from(report: &'r Report) -> Self {
        ReportJson {
            detected: report.detected,
            headline: report.headline(),
            specification: report.specification(),
            findings: report.findings().flat_map(|(rule, found)| found.iter().map(move |o| finding(rule, o))).collect(),
            facts: places(report.facts()),
            states: places(report.states()),
            not_evaluated: report.not_evaluated().map(|(rule, reason)| UnsaidJson { rule: rule.id, reason }).collect(),
            more: report.more.iter().copied().collect(),
            signatures: signature_verdict(&report.signatures)
                .map(|verdict| SignaturesJson { verdict, per_signature: &report.signatures }),
        }
    }
}

fn finding<'r>(rule: &'static Rule, occurrence: &'r Occurrence) -> FindingJson<'r> {
    FindingJson {
        rule: rule.id,
        severity: occurrence.severity,
        impact: occurrence.impact,
        security: rule.security,
        pointer: &occurrence.pointer,
        line: occurrence.line,
        column: occurrence.column,
        message: &occurrence.message,
        fix: rule.fix,
        spec: rule.spec,
    }
}

fn places<'r>(rows: impl Iterator<Item = (&'static Rule, &'r [Occurrence])>) -> Vec<PlaceJson<'r>> {
    rows.flat_map(|(rule, found)| {
        found.iter().map(move |o| PlaceJson { rule: rule.id, pointer: &o.pointer, message: &o.message })
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_names_its_kind_or_asks_to_find_out() {
        let judged = |line: &str| judge_line(line, &Settings::default()).map(|report| report.detected.kind);
        assert_eq!(judged(r#"{"kind": "any", "document": {"openapi": "3.1.0"}}"#), Ok(Kind::Openapi));
        assert_eq!(judged(r#"{"kind": "a2a-card", "spec_version": "1.0", "document": {}}"#), Ok(Kind::AgentCard));
        assert_eq!(judged(r#"{"kind": "raw", "document": {"raw": "{\"openapi\": 1}"}}"#), Ok(Kind::Openapi));
    }

    #[test]
    fn a_wrong_line_says_what_is_wrong() {
        let error = |line: &str| judge_line(line, &Settings::default()).err().unwrap_or_default();
        assert!(error("{").contains("EOF"));
        assert!(error(r#"{"kind": "nonsense", "document": {}}"#).contains("`nonsense` is none of"));
        assert!(error(r#"{"kind": "any"}"#).contains("document"));
        assert!(error(r#"{"kind": "raw", "document": {"raw_repeat": ["", "x", 99999999999, ""]}}"#).contains("over"));
        assert!(error(r#"{"kind": "any", "context": {"settings": {"a.b": 1}}, "document": {}}"#).contains("`a.b`"));
    }
}
