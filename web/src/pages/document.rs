//! `/documents/{hash}`: what exactly was served. Numbered lines, each finding beside its line; the raw bytes behind a link.

use askama::Template;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use plumbline_rules::catalogue;
use plumbline_rules::document::Document;
use plumbline_rules::rule::{Axis, Class, Rule};
use plumbline_store::judged::Occurrence;
use plumbline_store::views::{DocumentRow, ServedBy};
use plumbline_store::words::{Headline, Severity};
use serde::{Deserialize, Serialize};

use super::filled;
use crate::WebState;
use crate::cache::Cache;
use crate::error::Error;
use crate::filters;
use crate::listing::{self, LINES, Line, Listing};
use crate::page::{Frame, Place, Visit};
use crate::text;
use crate::words;

/// Targets named as serving the same bytes; the rest is a number.
const SERVED_BY: i64 = 20;
/// Lines a note is high at least, and letters on each: a note that would reach into the next shares its cell, so that the lines
/// of the document never stretch.
const NOTE_LINES: usize = 5;
const NOTE_LETTERS: usize = 50;

/// Which part of the document, and which place in it.
#[derive(Debug, Default, Deserialize)]
pub struct Asked {
    /// The first line of the window.
    from: Option<String>,
    /// A pointer whose line is to be marked.
    at: Option<String>,
}

/// A document, what was judged of it, and its lines.
#[derive(Template, Serialize)]
#[template(path = "document.html")]
struct DocumentPage {
    #[serde(skip)]
    frame: Frame,
    /// The moment the page holds for, in Unix seconds.
    as_of_s: i64,
    /// The answer in one sentence.
    answer: String,
    /// Hash, size, kind and the newest judgement.
    document: DocumentRow,
    /// Who serves it now.
    served_by: Vec<ServedBy>,
    /// What is said about it, with lines where they are known.
    findings: Vec<Note>,
    /// The lines of this window.
    lines: Vec<Row>,
    /// Lines in all.
    line_count: usize,
    /// The line breaks are ours; the bytes have none a person could read.
    is_laid_out: bool,
    /// Address of the next window.
    next: Option<String>,
    /// Address of the window before.
    previous: Option<String>,
    #[serde(skip)]
    is_kept: bool,
}

/// A finding, fact or state at one place.
#[derive(Debug, Clone, Serialize)]
struct Note {
    /// The rule.
    rule: String,
    /// Of this occurrence.
    severity: Severity,
    /// `finding`, `fact` or `state`.
    class: &'static str,
    /// Tagged security.
    is_security: bool,
    /// What released clients do.
    impact: &'static str,
    /// Where.
    pointer: String,
    /// Its line here; `None`: it is about the answer as a whole.
    line: Option<usize>,
    /// What is wrong with this value.
    message: String,
    /// What to do.
    fix: &'static str,
}

/// A line and what stands beside it.
#[derive(Debug, Serialize)]
struct Row {
    /// The line itself.
    #[serde(flatten)]
    line: Line,
    /// The worst of what is said about this very line.
    severity: Option<Severity>,
    /// Marked by the address.
    is_asked: bool,
    /// Notes that begin here; several lines near each other share them.
    #[serde(skip)]
    notes: Vec<Note>,
    /// Lines their cell covers; 0: it is covered by one above.
    #[serde(skip)]
    covers: usize,
}

/// `GET /documents/{hash}`
pub async fn show(
    visit: Visit,
    State(state): State<WebState>,
    Path(hash): Path<String>,
    Query(asked): Query<Asked>,
) -> Result<Response, Error> {
    let document = found(&state, &hash).await?;
    let bytes = state.store.document_bytes(&document).await?;
    let served_by = state.store.document_served_by(&document, SERVED_BY).await?;
    let shown = bytes.as_deref().map(|bytes| shown(bytes, &document, &asked));
    let is_kept = shown.is_some();
    let shown = shown.unwrap_or_else(|| Shown { notes: notes(&document, |_| None), ..Shown::default() });
    let window = |from: usize| format!("/documents/{}?from={from}", document.hash);
    let page = DocumentPage {
        frame: visit.framed(Place::Targets),
        as_of_s: visit.now,
        answer: answer(&document, &shown.notes),
        next: (shown.first + LINES <= shown.line_count).then(|| window(shown.first + LINES)),
        previous: (shown.first > 1).then(|| window(shown.first.saturating_sub(LINES).max(1))),
        findings: shown.notes,
        lines: shown.rows,
        line_count: shown.line_count,
        is_laid_out: shown.is_laid_out,
        served_by,
        document,
        is_kept,
    };
    visit.answer(&page, Cache::Minute)
}

/// `GET /documents/{hash}/raw`: the bytes as they came, to be saved and never to be shown as a page of ours.
pub async fn raw(visit: Visit, State(state): State<WebState>, Path(hash): Path<String>) -> Result<Response, Error> {
    let document = found(&state, &hash).await?;
    let unkept = || Error::NotFound { what: "body of the document", asked: hash.clone() };
    let bytes = state.store.document_bytes(&document).await?.ok_or_else(unkept)?;
    let name = format!("attachment; filename=\"{}.bin\"", &document.hash[..12]);
    let mut response = bytes.into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static("default-src 'none'; sandbox"));
    headers.insert(header::CONTENT_DISPOSITION, HeaderValue::from_str(&name).expect("a hash is hex"));
    Ok(visit.with_headers(axum::http::StatusCode::OK, response, Cache::Minute))
}

async fn found(state: &WebState, hash: &str) -> Result<DocumentRow, Error> {
    let unknown = || Error::NotFound { what: "document", asked: hash.to_owned() };
    state.store.document_of_hash(&hash.to_ascii_lowercase()).await?.ok_or_else(unknown)
}

/// The window of lines that was asked for, notes beside them.
#[derive(Default)]
struct Shown {
    notes: Vec<Note>,
    rows: Vec<Row>,
    first: usize,
    line_count: usize,
    is_laid_out: bool,
}

fn shown(bytes: &[u8], row: &DocumentRow, asked: &Asked) -> Shown {
    let document = Document::read(bytes);
    let is_text = !document.text().is_empty() || bytes.is_empty();
    let listing = if is_text { listing::listed(&document) } else { listing::bytes_listed(bytes) };
    let notes = notes(row, |pointer| listing.line_of(&document, pointer));
    let marked = asked.at.as_deref().and_then(|pointer| listing.line_of(&document, pointer));
    let line_count = listing.lines.len();
    let wished = filled(asked.from.as_deref()).and_then(|from| from.parse::<usize>().ok());
    let first = wished.unwrap_or_else(|| window_of(marked.unwrap_or(1))).clamp(1, line_count.max(1));
    let is_laid_out = listing.is_laid_out;
    Shown { rows: rows(listing, first, marked, &notes), notes, first, line_count, is_laid_out }
}

/// The first line of the window that holds a line.
fn window_of(line: usize) -> usize {
    (line - 1) / LINES * LINES + 1
}

/// Everything the judgement says, by line, then by severity.
fn notes(document: &DocumentRow, line_of: impl Fn(&str) -> Option<usize>) -> Vec<Note> {
    let fired = document.judged.iter().flat_map(|judged| &judged.fired);
    let mut notes: Vec<Note> = fired
        .flat_map(|(rule, places)| {
            let known = catalogue::find(rule);
            let line_of = &line_of;
            places.iter().map(move |place| note(rule, known, place, line_of))
        })
        .collect();
    notes.sort_by_key(|note| (note.line, std::cmp::Reverse(note.severity)));
    notes
}

fn note(
    rule: &str,
    known: Option<&'static Rule>,
    place: &Occurrence,
    line_of: &impl Fn(&str) -> Option<usize>,
) -> Note {
    let class = match known {
        Some(rule) if rule.axis != Axis::Conformity => "state",
        Some(rule) if rule.class == Class::Fact => "fact",
        _ => "finding",
    };
    // A finding about the whole answer has the empty pointer; beside line 1 it would seem to be about a bracket.
    let line = if place.pointer.is_empty() { None } else { line_of(&place.pointer) };
    Note {
        rule: rule.to_owned(),
        severity: place.severity,
        class,
        is_security: known.is_some_and(|rule| rule.security),
        impact: place.impact.map(words::impact).unwrap_or_default(),
        pointer: place.pointer.clone(),
        line,
        message: place.message.clone(),
        fix: known.map(|rule| rule.fix).unwrap_or_default(),
    }
}

/// Lines with their notes. A note's cell reaches down to the next one; near ones are put together in the upper cell.
fn rows(listing: Listing, first: usize, marked: Option<usize>, notes: &[Note]) -> Vec<Row> {
    let mut rows: Vec<Row> = listing
        .lines
        .into_iter()
        .skip(first - 1)
        .take(LINES)
        .map(|line| Row { is_asked: marked == Some(line.number), severity: None, notes: Vec::new(), covers: 0, line })
        .collect();
    let beside: Vec<&Note> = notes.iter().filter(|note| note.class == "finding").collect();
    let mut anchor = 0;
    for note in beside {
        let Some(place) = note.line.and_then(|line| line.checked_sub(first)).filter(|place| *place < rows.len()) else {
            continue;
        };
        if place >= anchor + height(&rows[anchor].notes) {
            anchor = place;
        }
        rows[anchor].notes.push(note.clone());
        rows[place].severity = rows[place].severity.max(Some(note.severity));
    }
    cover(&mut rows);
    rows
}

/// About how many lines these notes are high, one below the other.
fn height(notes: &[Note]) -> usize {
    notes.iter().map(|note| NOTE_LINES + (note.message.len() + note.fix.len()) / NOTE_LETTERS).sum()
}

/// Each cell of notes covers the lines down to the next; the lines before the first have an empty one.
fn cover(rows: &mut [Row]) {
    let mut starts: Vec<usize> = (0..rows.len()).filter(|n| *n == 0 || !rows[*n].notes.is_empty()).collect();
    starts.push(rows.len());
    for pair in starts.windows(2) {
        rows[pair[0]].covers = pair[1] - pair[0];
    }
}

impl DocumentPage {
    /// Findings about the answer as a whole.
    fn whole(&self) -> Vec<&Note> {
        self.findings.iter().filter(|note| note.line.is_none() && note.class == "finding").collect()
    }

    /// Lines with errors or warnings, each once with its worst: notes are in this order already.
    fn jumps(&self) -> Vec<&Note> {
        let counted = |note: &&Note| note.class == "finding" && note.severity != Severity::Info && note.line.is_some();
        let mut jumps: Vec<&Note> = self.findings.iter().filter(counted).collect();
        jumps.dedup_by_key(|note| note.line);
        jumps.truncate(12);
        jumps
    }

    fn facts(&self) -> Vec<&Note> {
        self.findings.iter().filter(|note| note.class == "fact").collect()
    }

    /// Where a line is shown: in this window by its anchor, else in its own window.
    fn line_url(&self, line: &usize) -> String {
        let is_here = self.lines.iter().any(|row| row.line.number == *line);
        if is_here {
            format!("#L{line}")
        } else {
            format!("/documents/{}?from={}#L{line}", self.document.hash, window_of(*line))
        }
    }

    fn count_lines(&self) -> i64 {
        i64::try_from(self.line_count).unwrap_or(i64::MAX)
    }

    /// Who serves it, as the end of a sentence.
    fn origin(&self) -> String {
        match self.served_by.len() {
            0 => "No target serves it now.".to_owned(),
            1 => "One target serves it now.".to_owned(),
            n if n as i64 == SERVED_BY => format!("{n} or more targets serve the same bytes now."),
            n => format!("{n} targets serve the same bytes now."),
        }
    }

    /// The hash in groups, as people compare it.
    fn short_hash(&self) -> String {
        self.document
            .hash
            .as_bytes()
            .chunks(4)
            .take(4)
            .map(|four| String::from_utf8_lossy(four).into_owned())
            .collect::<Vec<_>>()
            .join(" ")
    }

    fn kind_words(&self) -> &'static str {
        self.document.kind.map_or("Document", words::surface_kind)
    }
}

fn answer(document: &DocumentRow, notes: &[Note]) -> String {
    let what = document.kind.map_or("document", words::surface_kind).to_lowercase();
    let Some(judged) = &document.judged else { return format!("This {what} has not been judged.") };
    if judged.headline == Headline::NotDetected {
        return format!("This is not the {what} it was taken for, so nothing is said against it.");
    }
    if judged.headline == Headline::NotEvaluated {
        return format!("This {what} could not be judged.");
    }
    let rules_of = |severity| {
        let mut rules: Vec<&str> =
            notes.iter().filter(|n| n.class == "finding" && n.severity == severity).map(|n| n.rule.as_str()).collect();
        rules.sort_unstable();
        rules.dedup();
        rules.len() as i64
    };
    let (errors, warnings) = (rules_of(Severity::Error), rules_of(Severity::Warning));
    let broken = text::counted(errors, "rule", "rules");
    let drawn = text::counted(warnings, "warning", "warnings");
    let refused = if judged.headline == Headline::Blocked { " A released client refuses it." } else { "" };
    match (errors, warnings) {
        (0, 0) => format!("This {what} breaks no rule that could look at it."),
        (0, _) => format!("This {what} breaks no rule and draws {drawn}.{refused}"),
        (_, 0) => format!("This {what} breaks {broken}.{refused}"),
        _ => format!("This {what} breaks {broken} and draws {drawn}.{refused}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(line: usize, severity: Severity) -> Note {
        Note {
            rule: "a2a/x".to_owned(),
            severity,
            class: "finding",
            is_security: false,
            impact: "",
            pointer: "/x".to_owned(),
            line: Some(line),
            message: String::new(),
            fix: "",
        }
    }

    fn listing(lines: usize) -> Listing {
        listing::listed(&Document::from_text(&"x\n".repeat(lines)))
    }

    #[test]
    fn notes_near_each_other_share_a_cell_and_cells_cover_all_lines() {
        let notes = [note(3, Severity::Error), note(5, Severity::Info), note(12, Severity::Warning)];
        let rows = rows(listing(20), 1, None, &notes);
        let covers: Vec<usize> = rows.iter().map(|row| row.covers).filter(|n| *n > 0).collect();
        assert_eq!(covers, [2, 18]);
        assert_eq!(rows[2].notes.len(), 3);
        assert_eq!(rows[4].severity, Some(Severity::Info));
        assert_eq!(covers.iter().sum::<usize>(), 20);
    }

    #[test]
    fn a_long_document_is_shown_in_windows() {
        assert_eq!((window_of(1), window_of(1_000), window_of(1_001)), (1, 1, 1_001));
        let rows = rows(listing(1_500), 1_001, Some(1_200), &[note(1_200, Severity::Error), note(3, Severity::Error)]);
        assert_eq!(rows.len(), 500);
        assert!(rows[199].is_asked);
        assert_eq!(rows.iter().map(|row| row.notes.len()).sum::<usize>(), 1);
    }
}
