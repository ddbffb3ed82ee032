//! JUnit XML: a suite for each document, a case for each rule that applies to it.
//!
//! A rule that could not look is skipped, never passed; what does not count as failure stands in the output of its case.

use std::fmt::Write as _;
use std::io::{Result, Write};

use plumbline_rules::report::Outcome as Said;

use super::{FailOn, Finding, One, Outcome};
use crate::check::text::{shown, why};

/// One case of a suite.
struct Case {
    name: String,
    body: Body,
}

enum Body {
    Passed,
    Noted(String),
    Skipped(String),
    Failed { kind: &'static str, message: String, text: String },
    Broken(String),
}

/// The whole report.
pub fn write(out: &mut impl Write, all: &[One], fail_on: FailOn) -> Result<()> {
    let suites: Vec<_> = all.iter().map(|one| (one, cases(one, fail_on))).collect();
    let every = || suites.iter().flat_map(|(_, cases)| cases);
    writeln!(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>")?;
    writeln!(out, "<testsuites name=\"plumbline\" {}>", counts(every()))?;
    for (one, cases) in &suites {
        writeln!(out, "  <testsuite name=\"{}\" {}>", escaped(&one.name), counts(cases.iter()))?;
        for case in cases {
            write_case(out, &one.name, case)?;
        }
        writeln!(out, "  </testsuite>")?;
    }
    writeln!(out, "</testsuites>")
}

fn counts<'c>(cases: impl Iterator<Item = &'c Case>) -> String {
    let (mut tests, mut failures, mut errors, mut skipped) = (0, 0, 0, 0);
    for case in cases {
        tests += 1;
        match case.body {
            Body::Passed | Body::Noted(_) => {}
            Body::Skipped(_) => skipped += 1,
            Body::Failed { .. } => failures += 1,
            Body::Broken(_) => errors += 1,
        }
    }
    format!("tests=\"{tests}\" failures=\"{failures}\" errors=\"{errors}\" skipped=\"{skipped}\"")
}

fn cases(one: &One, fail_on: FailOn) -> Vec<Case> {
    let checked = match &one.outcome {
        Outcome::Judged(checked) => checked,
        Outcome::Failed(error) => return vec![Case { name: "read".to_owned(), body: Body::Broken(error.clone()) }],
        Outcome::PassedOver(_) => return Vec::new(),
    };
    let findings: Vec<_> = one.findings().collect();
    let mut cases = Vec::new();
    if one.is_mistaken() {
        let body = Body::Failed {
            kind: "not-detected",
            message: "it is not what it was taken for".to_owned(),
            text: String::new(),
        };
        cases.push(Case { name: "kind".to_owned(), body });
    }
    for result in checked.report.results.iter().filter(|result| plumbline_rules::judge::counts(result.rule)) {
        let body = match &result.outcome {
            Said::Passes => Body::Passed,
            Said::NotApplicable => continue,
            Said::NotEvaluated(reason) => Body::Skipped(why(*reason).to_owned()),
            Said::Fires(_) => {
                let found: Vec<_> = findings.iter().filter(|finding| finding.rule.id == result.rule.id).collect();
                fired(one, &found, fail_on)
            }
        };
        cases.push(Case { name: result.rule.id.to_owned(), body });
    }
    cases
}

fn fired(one: &One, found: &[&Finding<'_>], fail_on: FailOn) -> Body {
    let mut text = String::new();
    for finding in found.iter().filter(|finding| !finding.is_known) {
        let occurrence = finding.occurrence;
        let line = occurrence.line.map_or_else(String::new, |line| format!(":{line}"));
        let _ = writeln!(text, "{}{line} {} {}", one.name, occurrence.pointer, shown(&occurrence.message));
    }
    let Some(worst) =
        found.iter().filter(|finding| one.counts(finding, fail_on)).max_by_key(|it| it.occurrence.severity)
    else {
        let all_known = found.iter().all(|finding| finding.is_known);
        return if all_known { Body::Skipped("known by the baseline".to_owned()) } else { Body::Noted(text) };
    };
    let _ = writeln!(text, "fix: {} ({})", worst.rule.fix, worst.rule.spec);
    Body::Failed { kind: worst.occurrence.severity.as_str(), message: shown(&worst.occurrence.message), text }
}

fn write_case(out: &mut impl Write, suite: &str, case: &Case) -> Result<()> {
    let head = format!("    <testcase classname=\"{}\" name=\"{}\"", escaped(suite), escaped(&case.name));
    match &case.body {
        Body::Passed => writeln!(out, "{head}/>"),
        Body::Noted(text) => writeln!(out, "{head}><system-out>{}</system-out></testcase>", escaped(text)),
        Body::Skipped(reason) => writeln!(out, "{head}><skipped message=\"{}\"/></testcase>", escaped(reason)),
        Body::Broken(error) => writeln!(out, "{head}><error message=\"{}\"/></testcase>", escaped(error)),
        Body::Failed { kind, message, text } => writeln!(
            out,
            "{head}><failure type=\"{kind}\" message=\"{}\">{}</failure></testcase>",
            escaped(message),
            escaped(text)
        ),
    }
}

/// XML 1.0 has no way to write most control characters, so they are replaced.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' => escaped.push_str("&#10;"),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_xml_cannot_hold_is_replaced() {
        assert_eq!(escaped("a<b>&\"\u{1b}\n"), "a&lt;b&gt;&amp;&quot;\u{fffd}&#10;");
    }
}
