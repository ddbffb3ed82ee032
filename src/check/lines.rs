//! `check --lines`: a stream of documents in, a stream of reports out, in order, on all cores, in constant memory.
//!
//! Lines are judged in rounds of bounded size: a round is read, judged on every core and written before the next begins.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::ExitCode;

use anyhow::{Context, Result};
use plumbline_rules::judge::Settings;
use plumbline_rules::line::{ReportJson, judge_line};
use serde::Serialize;

use super::FailOn;
use super::cores::on_all_cores;

/// Lines read before they are judged.
const ROUND_LINES: usize = 2048;
/// Bytes read before they are judged, whatever the number of lines.
const ROUND_BYTES: usize = 16 << 20;
/// A longer line is not judged: it is reported as such, and reading goes on behind it.
const MAX_LINE: usize = 64 << 20;

#[derive(Serialize)]
struct LineReport<'r> {
    line: usize,
    #[serde(flatten)]
    report: ReportJson<'r>,
}

#[derive(Serialize)]
struct LineError<'e> {
    line: usize,
    error: &'e str,
}

/// What became of one line.
struct Judged {
    text: String,
    outcome: Ending,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Ending {
    Clean,
    Failing,
    Unreadable,
}

pub fn run(path: &str, settings: &Settings, fail_on: FailOn) -> Result<ExitCode> {
    let mut input: Box<dyn BufRead> = if path == "-" {
        Box::new(BufReader::with_capacity(1 << 18, std::io::stdin()))
    } else {
        let file = std::fs::File::open(path).with_context(|| format!("cannot read {path}"))?;
        Box::new(BufReader::with_capacity(1 << 18, file))
    };
    let mut out = std::io::BufWriter::with_capacity(1 << 18, std::io::stdout().lock());
    let mut worst = Ending::Clean;
    let mut number = 0;
    loop {
        let round = read_round(&mut input, &mut number).with_context(|| format!("cannot read {path}"))?;
        if round.is_empty() {
            break;
        }
        for judged in judge_round(&round, settings, fail_on) {
            worst = worst.max(judged.outcome);
            out.write_all(judged.text.as_bytes())?;
        }
    }
    out.flush()?;
    Ok(ExitCode::from(worst as u8))
}

/// A line and its number; `Err` says why it could not be read.
type Numbered = (usize, Result<String, String>);

fn read_round(input: &mut impl BufRead, number: &mut usize) -> std::io::Result<Vec<Numbered>> {
    let mut round = Vec::new();
    let mut bytes = 0;
    while round.len() < ROUND_LINES && bytes < ROUND_BYTES {
        let mut line = Vec::new();
        let read = input.by_ref().take(MAX_LINE as u64 + 1).read_until(b'\n', &mut line)?;
        if read == 0 {
            break;
        }
        *number += 1;
        bytes += read;
        let too_long = read > MAX_LINE;
        if too_long {
            skip_line(input)?;
        }
        let text = if too_long {
            Err(format!("the line has more than {} MiB", MAX_LINE >> 20))
        } else {
            String::from_utf8(line).map_err(|error| format!("the line is not UTF-8: {error}"))
        };
        if !text.as_ref().is_ok_and(|text| text.trim().is_empty()) {
            round.push((*number, text));
        }
    }
    Ok(round)
}

fn skip_line(input: &mut impl BufRead) -> std::io::Result<()> {
    loop {
        let buffer = input.fill_buf()?;
        if buffer.is_empty() {
            return Ok(());
        }
        let end = buffer.iter().position(|&b| b == b'\n');
        let used = end.map_or(buffer.len(), |at| at + 1);
        input.consume(used);
        if end.is_some() {
            return Ok(());
        }
    }
}

fn judge_round(round: &[Numbered], settings: &Settings, fail_on: FailOn) -> Vec<Judged> {
    on_all_cores(round, 16, |line| judge_one(line, settings, fail_on))
}

fn judge_one((number, line): &Numbered, settings: &Settings, fail_on: FailOn) -> Judged {
    let line = line.as_ref().map_err(String::clone);
    let report = match line.and_then(|line| judge_line(line, settings)) {
        Ok(report) => report,
        Err(error) => {
            return Judged { text: written(&LineError { line: *number, error: &error }), outcome: Ending::Unreadable };
        }
    };
    let outcome = if fail_on.holds(&report) { Ending::Failing } else { Ending::Clean };
    Judged { text: written(&LineReport { line: *number, report: ReportJson::from(&report) }), outcome }
}

fn written(row: &impl Serialize) -> String {
    let mut text = serde_json::to_string(row).expect("a report has only strings as keys");
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_come_in_the_order_of_the_lines() {
        let mut input: Vec<u8> = Vec::new();
        for n in 0..100 {
            input.extend(format!("{{\"kind\": \"any\", \"document\": {{\"openapi\": \"{n}\"}}}}\n\n").bytes());
        }
        let mut number = 0;
        let round = read_round(&mut input.as_slice(), &mut number).expect("it reads");
        let judged = judge_round(&round, &Settings::default(), FailOn::Error);
        let lines: Vec<usize> = judged
            .iter()
            .map(|j| {
                serde_json::from_str::<serde_json::Value>(&j.text).expect("JSON")["line"].as_u64().unwrap_or(0) as usize
            })
            .collect();
        assert_eq!(lines, (0..100).map(|n| 2 * n + 1).collect::<Vec<_>>());
    }

    #[test]
    fn a_wrong_line_is_reported_and_the_next_is_judged() {
        let input = b"{oops\n\xff\n{\"kind\": \"any\", \"document\": {}}\n".as_slice();
        let mut number = 0;
        let round = read_round(&mut &*input, &mut number).expect("it reads");
        let judged = judge_round(&round, &Settings::default(), FailOn::Error);
        let endings: Vec<bool> = judged.iter().map(|j| j.outcome == Ending::Unreadable).collect();
        assert_eq!(endings, [true, true, false]);
        assert!(judged[1].text.contains("not UTF-8"));
    }
}
