//! A report for a comment or a job summary.

use std::io::{Result, Write};

use plumbline_rules::rule::Impact;

use super::text::{self, shown};
use super::{One, Outcome};

/// Rows shown of one document.
const ROWS: usize = 50;

/// One heading for each thing that something is said about, and a line that counts the rest.
pub fn write(out: &mut impl Write, all: &[One]) -> Result<()> {
    writeln!(out, "## Plumbline\n\n{}\n", text::totals(all))?;
    for one in all {
        match &one.outcome {
            Outcome::Failed(error) => writeln!(out, "### {}\n\n{}\n", plain(&one.name), plain(error))?,
            Outcome::Judged(_) => write_one(out, one)?,
            Outcome::PassedOver(_) => {}
        }
    }
    Ok(())
}

fn write_one(out: &mut impl Write, one: &One) -> Result<()> {
    let Some(checked) = one.checked() else { return Ok(()) };
    let new: Vec<_> = one.findings().filter(|finding| !finding.is_known).collect();
    if new.is_empty() && !one.is_mistaken() {
        return Ok(());
    }
    writeln!(out, "### {}: {}\n", plain(&one.name), text::headline_words(checked.report.headline()))?;
    writeln!(out, "{}\n", plain(&text::judged_as(&checked.report)))?;
    if new.is_empty() {
        return Ok(());
    }
    writeln!(out, "| | rule | clients | where | what | fix |\n| --- | --- | --- | --- | --- | --- |")?;
    for finding in new.iter().take(ROWS) {
        let occurrence = finding.occurrence;
        let clients = match occurrence.impact {
            Some(Impact::BreaksClients) => "**breaks**",
            Some(Impact::Degrades) => "degrades",
            Some(Impact::Cosmetic) | None => "",
        };
        let line = occurrence.line.map_or_else(String::new, |line| format!("line {line} "));
        writeln!(
            out,
            "| {} | `{}` | {clients} | {line}{} | {} | {} |",
            occurrence.severity,
            finding.rule.id,
            plain(&occurrence.pointer),
            plain(&occurrence.message),
            plain(finding.rule.fix)
        )?;
    }
    if new.len() > ROWS {
        writeln!(out, "\nand {} more.", new.len() - ROWS)?;
    }
    writeln!(out)
}

/// Text that means nothing to Markdown or HTML.
fn plain(text: &str) -> String {
    let mut plain = String::new();
    for c in shown(text).chars() {
        match c {
            '<' => plain.push_str("&lt;"),
            '&' => plain.push_str("&amp;"),
            // A mention would call a person, a mark would format.
            '@' => plain.push_str("&#64;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' | '!' | '~' => {
                plain.push('\\');
                plain.push(c);
            }
            c => plain.push(c),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_a_document_stays_text() {
        assert_eq!(plain("<b>|@who [x](y)\n"), r"&lt;b>\|&#64;who \[x\](y)\\u{a}");
    }
}
