//! A report for people: the words first, then every finding with the place it stands at.

use std::io::{Result, Write};

use plumbline_rules::document::Document;
use plumbline_rules::kind::Known;
use plumbline_rules::report::{CheckedSignature, Headline, NotEvaluated, Occurrence, Report};
use plumbline_rules::rule::{Impact, Rule, Severity};
use plumbline_rules::standing::{Detection, Standing};

use super::{Checked, One, Outcome};

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
        let code = match headline {
            Headline::Blocked => "31;1",
            Headline::Deviates => "33;1",
            Headline::Sound => "32;1",
            Headline::NotDetected | Headline::NotEvaluated => "1",
        };
        self.paint(code, headline_words(headline))
    }
}

/// The word as people read it.
pub fn headline_words(headline: Headline) -> &'static str {
    match headline {
        Headline::Blocked => "Blocked",
        Headline::Deviates => "Deviates",
        Headline::Sound => "Sound",
        Headline::NotDetected => "Not detected",
        Headline::NotEvaluated => "Not evaluated",
    }
}

/// All reports; of several also how many there are of each word.
pub fn write_all(out: &mut impl Write, all: &[One], terminal: bool) -> Result<()> {
    let ink = Ink(terminal && std::env::var_os("NO_COLOR").is_none());
    for one in all {
        if let Some(checked) = one.checked() {
            write(out, one, checked, &ink)?;
        }
    }
    if all.len() != 1 {
        writeln!(out, "{}", totals(all))?;
    }
    Ok(())
}

/// How many documents there are of each word, and what is known of them.
pub fn totals(all: &[One]) -> String {
    let judged: Vec<Headline> = all.iter().filter_map(One::checked).map(|it| it.report.headline()).collect();
    let words: Vec<_> = Headline::ALL
        .iter()
        .rev()
        .map(|word| (judged.iter().filter(|headline| *headline == word).count(), *word))
        .filter(|(n, _)| *n > 0)
        .map(|(n, word)| format!("{n} {}", headline_words(word).to_lowercase()))
        .collect();
    let mut said = match judged.len() {
        0 => "No document was found.".to_owned(),
        n => format!("{}: {}.", plural(n, "document"), words.join(", ")),
    };
    let failed = all.iter().filter(|one| matches!(one.outcome, Outcome::Failed(_))).count();
    if failed > 0 {
        said.push_str(&format!(" {failed} could not be read."));
    }
    let known = all.iter().flat_map(|one| &one.known).filter(|known| **known).count();
    if known > 0 {
        said.push_str(&format!(" The baseline knows {}.", plural(known, "finding")));
    }
    said
}

fn write(out: &mut impl Write, one: &One, checked: &Checked, ink: &Ink) -> Result<()> {
    let Checked { document, report, standing } = checked;
    let name = one.name.as_str();
    writeln!(out, "{}: {}", shown(name), judged_as(report))?;
    writeln!(out, "{}", summary(report, ink))?;
    if let Some(standing) = standing {
        write_standing(out, standing)?;
    }
    for (rule, found) in report.states() {
        writeln!(out, "\n{}  {}", rule.id, found.first().map_or("", |o| o.message.as_str()))?;
    }
    for (rule, found) in new_findings(one) {
        let more = report.more.iter().find(|(id, _)| *id == rule.id).map_or(0, |(_, more)| *more);
        write_finding(out, document, rule, (&found, more), ink)?;
    }
    let known = one.known.iter().filter(|known| **known).count();
    if known > 0 {
        writeln!(out, "\n{}", ink.paint("2", &format!("Known by the baseline: {}", plural(known, "finding"))))?;
    }
    let facts: Vec<_> = report.facts().map(|(rule, _)| rule.id).collect();
    if !facts.is_empty() {
        writeln!(out, "\n{}", ink.paint("2", &format!("Facts: {}", facts.join(", "))))?;
    }
    for signature in &report.signatures {
        writeln!(out, "{}", signed(signature))?;
    }
    if let Some(line) = not_evaluated(report, one.has_origin) {
        writeln!(out, "{}", ink.paint("2", &line))?;
    }
    writeln!(out)
}

/// Findings that the baseline does not know, by rule, the gravest first.
fn new_findings(one: &One) -> Vec<(&'static Rule, Vec<Occurrence>)> {
    let mut findings: Vec<(&'static Rule, Vec<Occurrence>)> = Vec::new();
    for finding in one.findings().filter(|finding| !finding.is_known) {
        match findings.last_mut().filter(|(rule, _)| rule.id == finding.rule.id) {
            Some((_, found)) => found.push(finding.occurrence.clone()),
            None => findings.push((finding.rule, vec![finding.occurrence.clone()])),
        }
    }
    findings.sort_by_key(|(_, found)| std::cmp::Reverse(plumbline_rules::report::worst(found)));
    findings
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

/// What it was judged as, and how that is known.
pub fn judged_as(report: &Report) -> String {
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
    let headline = report.headline();
    match (headline, said.as_slice()) {
        (Headline::NotDetected, []) => ink.headline(headline),
        (_, []) => format!("{}: nothing to report", ink.headline(headline)),
        (_, said) => format!("{}: {}", ink.headline(headline), said.join(", ")),
    }
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
    let worst @ (severity, impact) = plumbline_rules::report::worst(found);
    let impact = consequence(impact).map(|says| format!("  {says}")).unwrap_or_default();
    let security = if rule.security { "  security" } else { "" };
    writeln!(out, "\n{} {}{impact}{security}", ink.severity(severity), ink.paint("1", rule.id))?;
    for occurrence in found.iter().take(SHOWN) {
        let place = if occurrence.pointer.is_empty() { "the document" } else { &occurrence.pointer };
        let milder = if (occurrence.severity, occurrence.impact) == worst { String::new() } else { milder(occurrence) };
        writeln!(out, "  {}{milder}", shown(&occurrence.message))?;
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

/// What an impact does to clients, where it does something.
fn consequence(impact: Option<Impact>) -> Option<&'static str> {
    match impact? {
        Impact::BreaksClients => Some("breaks clients"),
        Impact::Degrades => Some("degrades"),
        Impact::Cosmetic => None,
    }
}

/// The grade of a place that weighs less than its finding's heading.
fn milder(occurrence: &Occurrence) -> String {
    let says = consequence(occurrence.impact).map(|says| format!(", {says}")).unwrap_or_default();
    format!(" ({}{says})", occurrence.severity)
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
fn not_evaluated(report: &Report, has_origin: bool) -> Option<String> {
    // Where the address was told, what is missing is the document or server that named it.
    let why = |reason| match reason {
        NotEvaluated::NoOrigin if has_origin => "need to know what led there",
        reason => why(reason),
    };
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

/// Why a rule could not look.
pub fn why(reason: NotEvaluated) -> &'static str {
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
pub fn shown(text: &str) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;
    use plumbline_rules::judge::{Given, Origin, Settings, Subject, judge};
    use plumbline_rules::kind::Kind;

    #[test]
    fn a_place_milder_than_its_findings_heading_says_so() {
        let document = Document::from_text(
            r#"{"name": "Tides", "url": "https://tides.example.com/a2a", "protocolVersion": "0.3.0", "skills": [],
               "default_input_modes": ["text/plain"], "capabilities": {"push_notifications": false}}"#,
        );
        let given = Given::default();
        let kind = Some(Kind::AgentCard);
        let subject =
            Subject { kind, version: None, origin: Origin::PublicHost, given: &given, session: None, answer: None };
        let report = judge(&document, &subject, &Settings::default());
        let (rule, found) = report.findings().find(|(rule, _)| rule.id == "a2a/snake-case-field").unwrap();
        let mut out = Vec::new();
        write_finding(&mut out, &document, rule, (found, 0), &Ink(false)).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.contains("\nerror a2a/snake-case-field  breaks clients\n"), "{text}");
        assert!(text.contains("`defaultInputModes`\n"), "{text}");
        assert!(text.contains("`pushNotifications` (warning, degrades)\n"), "{text}");
    }

    #[test]
    fn nobody_is_asked_for_an_address_that_was_given() {
        let given = Given::default();
        let kind = Some(Kind::OauthAuthorizationServer);
        let subject =
            Subject { kind, version: None, origin: Origin::PublicHost, given: &given, session: None, answer: None };
        let document = Document::from_text(r#"{"issuer": "https://login.tides.example.com"}"#);
        let report = judge(&document, &subject, &Settings::default());
        let said = |has_origin| not_evaluated(&report, has_origin).unwrap();
        assert!(said(true).contains("need to know what led there") && !said(true).contains("--from"));
        assert!(said(false).contains("--from URL"));
    }
}
