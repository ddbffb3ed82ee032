//! Reports for programs.

use std::io::Write;

use anyhow::Result;
use plumbline_rules::line::ReportJson;
use plumbline_rules::standing::Standing;
use serde_json::{Value, json};

use super::{One, Outcome};

#[derive(serde::Serialize)]
struct Named<'r> {
    file: &'r str,
    #[serde(skip_serializing_if = "Option::is_none")]
    endpoint: Option<&'r Standing>,
    #[serde(flatten)]
    report: ReportJson<'r>,
}

/// One report as an object, several as an array; each names its file.
pub fn write(out: &mut impl Write, all: &[One], is_one: bool, has_baseline: bool) -> Result<()> {
    let rows = all.iter().map(|one| row(one, has_baseline)).collect::<Result<Vec<_>>>()?;
    match rows.as_slice() {
        [row] if is_one => serde_json::to_writer_pretty(&mut *out, row)?,
        rows => serde_json::to_writer_pretty(&mut *out, rows)?,
    }
    writeln!(out)?;
    Ok(())
}

/// One report a line.
pub fn write_lines(out: &mut impl Write, all: &[One], has_baseline: bool) -> Result<()> {
    for one in all {
        serde_json::to_writer(&mut *out, &row(one, has_baseline)?)?;
        writeln!(out)?;
    }
    Ok(())
}

fn row(one: &One, has_baseline: bool) -> Result<Value> {
    let checked = match &one.outcome {
        Outcome::Judged(checked) => checked,
        Outcome::Failed(error) => return Ok(json!({ "file": one.name, "error": error })),
        Outcome::PassedOver(why) => return Ok(json!({ "file": one.name, "error": why })),
    };
    let report = ReportJson::from(&checked.report);
    let mut row = serde_json::to_value(Named { file: &one.name, endpoint: checked.standing.as_ref(), report })?;
    if let (true, Some(findings)) = (has_baseline, row["findings"].as_array_mut()) {
        for (finding, is_known) in findings.iter_mut().zip(&one.known) {
            finding["known"] = (*is_known).into();
        }
    }
    Ok(row)
}
