//! Annotations of GitHub Actions: each new finding stands beside its line in the change.

use std::io::{Result, Write};

use plumbline_rules::rule::Severity;

use super::{One, Outcome};
use crate::check::text::shown;

/// One workflow command a line.
pub fn write(out: &mut impl Write, all: &[One]) -> Result<()> {
    for one in all {
        let file = property(&one.name);
        if let Outcome::Failed(error) = &one.outcome {
            writeln!(out, "::error file={file},title=plumbline::{}", data(error))?;
        }
        if one.is_mistaken() {
            writeln!(out, "::error file={file},title=plumbline::Not what it was taken for")?;
        }
        for finding in one.findings().filter(|finding| !finding.is_known) {
            let command = match finding.occurrence.severity {
                Severity::Error => "error",
                Severity::Warning => "warning",
                Severity::Info => "notice",
            };
            let (line, column) = (finding.occurrence.line.unwrap_or(1), finding.occurrence.column.unwrap_or(1));
            let said = format!("{}. {}", shown(&finding.occurrence.message), finding.rule.fix);
            let title = property(finding.rule.id);
            writeln!(out, "::{command} file={file},line={line},col={column},title={title}::{}", data(&said))?;
        }
    }
    Ok(())
}

/// What the runner would read as its own is escaped the way it reads back.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_document_can_give_the_runner_a_command() {
        assert_eq!(data("a\n::set-env name=x::y"), "a%0A::set-env name=x::y");
        assert_eq!(property("a,b:c%\r"), "a%2Cb%3Ac%25%0D");
    }
}
