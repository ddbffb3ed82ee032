//! A report for people: the words first, then every finding with the place it stands at.

use std::io::{Result, Write};

use plumbline_rules::document::Document;
use plumbline_rules::kind::Known;
use plumbline_rules::report::{CheckedSignature, Headline, NotEvaluated, Occurrence, Report};
use plumbline_rules::rule::{Impact, Rule, Severity};
use plumbline_rules::standing::{Detection, Standing};

use super::Checked;

/// Columns of an excerpt, so that a card written in one line stays readable.
const EXCERPT: usize = 100;

/// Occurrences of one rule shown before the rest is counted.
const SHOWN: usize = 10;

/// Escape sequences, or nothing where the output is no terminal.
struct Ink(bool);

impl Ink {
    fn paint(&self, code: &str, text: &str) -> String {
        if self.0 { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    fn severity(&self, severity: Severity) -> String {
        let code = match severity {
            Severity::Error => "31;1",
            Severity::Warning => "33;1",
            Severity::Info => "34",
        };
        self.paint(code, severity.as_str())
    }

    fn headline(&self, headline: Headline) -> String {
        let (code, word) = match headline {
            Headline::Blocked => ("31;1", "Blocked"),
            Headline::Deviates => ("33;1", "Deviates"),
            Headline::Sound => ("32;1", "Sound"),
            Headline::NotDetected => ("1", "Not detected"),
            Headline::NotEvaluated => ("1", "Not evaluated"),
        };
        self.paint(code, word)
    }
}

pub fn write(out: &mut impl Write, name: &str, checked: &Checked, terminal: bool) -> Result<()> {
    let Checked { document, report, standing } = checked;
    let ink = Ink(terminal && std::env::var_os("NO_COLOR").is_none());
    writeln!(out, "{}: {}", shown(name), judged_as(report))?;
    writeln!(out, "{}", summary(report, &ink))?;
    if let Some(standing) = standing {
        write_standing(out, standing)?;
    }
    for (rule, found) in report.states() {
        writeln!(out, "\n{}  {}", rule.id, found.first().map_or("", |o| o.message.as_str()))?;
    }
    let mut findings: Vec<_> = report.findings().collect();
    findings.sort_by_key(|(_, found)| std::cmp::Reverse(plumbline_rules::report::worst(found)));
    for (rule, found) in findings {
        let more = report.more.iter().find(|(id, _)| *id == rule.id).map_or(0, |(_, more)| *more);
        write_finding(out, document, rule, (found, more), &ink)?;
    }
    let facts: Vec<_> = report.facts().map(|(rule, _)| rule.id).collect();
    if !facts.is_empty() {
        writeln!(out, "\n{}", ink.paint("2", &format!("Facts: {}", facts.join(", "))))?;
    }
    for signature in &report.signatures {
        writeln!(out, "{}", signed(signature))?;
    }
    if let Some(line) = not_evaluated(report) {
        writeln!(out, "{}", ink.paint("2", &line))?;
    }
    writeln!(out)
}

fn write_standing(out: &mut impl Write, standing: &Standing) -> Result<()> {
    let revisions: Vec<_> = standing.revisions.iter().map(|revision| shown(revision)).collect();
    let revisions = if revisions.is_empty() { "none shown".to_owned() } else { revisions.join(", ") };
    writeln!(out, "Era: {}; revisions: {revisions}; access: {}", standing.era, standing.access)?;
    for state in [Detection::Confirmed, Detection::Indicated, Detection::NotDetected] {
        let named = standing.detected.iter().filter(|detected| detected.state == state);
        let named: Vec<_> = named.map(|detected| detected.protocol.as_str()).collect();
        if !named.is_empty() {
            writeln!(out, "{}: {}", state.as_str().replace('_', " "), named.join(", "))?;
        }
    }
    if let Some(registration) = standing.registration {
        writeln!(out, "client registration: {registration}")?;
    }
    if standing.is_incomplete {
        writeln!(out, "incomplete: the server asked to come back later")?;
    }
    Ok(())
}

fn signed(signature: &CheckedSignature) -> String {
    let form = signature.canonical_form.map_or_else(String::new, |form| format!(" over form {form}"));
    let key = signature.kid.as_ref().map_or_else(String::new, |kid| format!(", key {}", shown(kid)));
    let from = signature.key_from.as_ref().map_or_else(String::new, |host| format!(" from {}", shown(host)));
    format!("Signature {}: {}{form}{key}{from}", signature.pointer, signature.result)
}

fn judged_as(report: &Report) -> String {
    let detected = report.detected;
    let how = match detected.known {
        Known::Declared => ", as it declares",
        Known::Inferred => ", inferred from its shape",
        Known::Assumed => ", assumed since nothing tells",
        Known::Undetermined => "",
    };
    if detected.profile.is_empty() {
        detected.kind.named().to_owned()
    } else {
        format!("{}, judged as {}{how}", detected.kind.named(), detected.profile)
    }
}

fn summary(report: &Report, ink: &Ink) -> String {
    let specification = report.specification();
    let hints = report.findings().filter(|(_, found)| found.iter().all(|o| o.severity == Severity::Info)).count();
    let counts = [(specification.errors, "error"), (specification.warnings, "warning"), (hints, "hint")];
    let said: Vec<_> = counts.iter().filter(|(n, _)| *n > 0).map(|(n, word)| plural(*n, word)).collect();
    let said = if said.is_empty() { "nothing to report".to_owned() } else { said.join(", ") };
    format!("{}: {said}", ink.headline(report.headline()))
}

fn plural(n: usize, word: &str) -> String {
    if n == 1 { format!("1 {word}") } else { format!("{n} {word}s") }
}

fn write_finding(
    out: &mut impl Write,
    document: &Document,
    rule: &Rule,
    (found, more): (&[Occurrence], usize),
    ink: &Ink,
) -> Result<()> {
    let (severity, impact) = plumbline_rules::report::worst(found);
    let impact = match impact {
        Some(Impact::BreaksClients) => "  breaks clients",
        Some(Impact::Degrades) => "  degrades",
        Some(Impact::Cosmetic) | None => "",
    };
    let security = if rule.security { "  security" } else { "" };
    writeln!(out, "\n{} {}{impact}{security}", ink.severity(severity), ink.paint("1", rule.id))?;
    for occurrence in found.iter().take(SHOWN) {
        let place = if occurrence.pointer.is_empty() { "the document" } else { &occurrence.pointer };
        writeln!(out, "  {}", shown(&occurrence.message))?;
        if let (Some(line), Some(column)) = (occurrence.line, occurrence.column) {
            write_excerpt(out, document, line, column, ink)?;
        }
        writeln!(out, "  {}", ink.paint("2", &format!("at {}", shown(place))))?;
    }
    if found.len() + more > SHOWN {
        writeln!(out, "  and {} more", plural(found.len().saturating_sub(SHOWN) + more, "place"))?;
    }
    writeln!(out, "  fix: {} ({})", rule.fix, rule.spec)
}

fn write_excerpt(out: &mut impl Write, document: &Document, line: usize, column: usize, ink: &Ink) -> Result<()> {
    let Some(text) = document.source().lines().nth(line - 1) else { return Ok(()) };
    let at = column - 1;
    let from = if at > EXCERPT * 2 / 3 { at - EXCERPT / 3 } else { 0 };
    let cut: String = text.chars().skip(from).take(EXCERPT).collect();
    let number = line.to_string();
    let before = if from > 0 { "…" } else { "" };
    writeln!(out, "  {} | {before}{}", number, shown(&cut))?;
    let indent = at - from + before.chars().count();
    writeln!(out, "  {} | {}{}", " ".repeat(number.len()), " ".repeat(indent), ink.paint("31", "^"))
}

/// Rules that could not look, by reason.
fn not_evaluated(report: &Report) -> Option<String> {
    let mut reasons: Vec<(NotEvaluated, usize)> = Vec::new();
    for (_, reason) in report.not_evaluated() {
        match reasons.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, n)) => *n += 1,
            None => reasons.push((reason, 1)),
        }
    }
    let said: Vec<_> = reasons.iter().map(|(reason, n)| format!("{} {}", plural(*n, "rule"), why(*reason))).collect();
    (!said.is_empty()).then(|| format!("Not evaluated: {}", said.join("; ")))
}

fn why(reason: NotEvaluated) -> &'static str {
    match reason {
        NotEvaluated::Parent => "behind another finding",
        NotEvaluated::NoOrigin => "need to know where the document came from (--from URL)",
        NotEvaluated::NoDocument => "had no document to look at",
        NotEvaluated::NoSession => "need the live endpoint",
        NotEvaluated::NoKeys => "need the public keys (--jwks FILE)",
        NotEvaluated::Cut => "need the whole body",
        NotEvaluated::Auth => "behind a refusal for want of credentials",
        NotEvaluated::Payment => "behind a demand for payment",
        NotEvaluated::RateLimited => "put off, because the server asked to come back later",
        NotEvaluated::NotAsked => "had no occasion",
        NotEvaluated::Off => "switched off",
    }
}

/// Text from a document with its control characters made visible: a terminal must not obey it.
fn shown(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '\t' => ' '.to_string(),
            c if c.is_control() || is_invisible(c) => format!("\\u{{{:x}}}", c as u32),
            c => c.to_string(),
        })
        .collect()
}

fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}
