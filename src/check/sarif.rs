//! SARIF 2.1.0, as code scanning services read it.

use std::collections::HashMap;
use std::io::Write;

use anyhow::Result;
use plumbline_rules::rule::{Rule, Severity};
use serde_json::{Value, json};

use super::baseline::{Mark, short_hash};
use super::inputs::is_address;
use super::{Finding, One, Outcome};
use crate::check::text::shown;

/// The schema that the report says it follows.
const SCHEMA: &str = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";

/// Writes one run.
pub fn write(out: &mut impl Write, all: &[One], has_baseline: bool) -> Result<()> {
    let mut rules: Vec<&'static Rule> = Vec::new();
    let mut place_of: HashMap<&'static str, usize> = HashMap::new();
    let mut results = Vec::new();
    let mut seen: HashMap<&Mark, usize> = HashMap::new();
    for (one, finding) in all.iter().flat_map(|one| one.findings().map(move |finding| (one, finding))) {
        let index = *place_of.entry(finding.rule.id).or_insert_with(|| {
            rules.push(finding.rule);
            rules.len() - 1
        });
        let times = seen.entry(finding.mark).or_default();
        results.push(result(one, &finding, index, *times, has_baseline));
        *times += 1;
    }
    let failures: Vec<Value> = all.iter().filter_map(notification).collect();
    let report = json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "plumbline",
                "version": env!("CARGO_PKG_VERSION"),
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "informationUri": env!("CARGO_PKG_REPOSITORY"),
                "rules": rules.iter().map(|rule| described(rule)).collect::<Vec<_>>(),
            } },
            "columnKind": "unicodeCodePoints",
            "invocations": [{
                "executionSuccessful": failures.is_empty(),
                "toolExecutionNotifications": failures,
            }],
            "results": results,
        }],
    });
    serde_json::to_writer_pretty(&mut *out, &report)?;
    writeln!(out)?;
    Ok(())
}

fn described(rule: &Rule) -> Value {
    let mut tags = vec![rule.family().to_owned()];
    tags.extend(rule.security.then(|| "security".to_owned()));
    tags.extend(rule.impact.map(|impact| impact.as_str().to_owned()));
    let why = rule.why().join("\n\n");
    let help = format!("{why}\n\nFix: {} ({})", rule.fix, rule.spec);
    json!({
        "id": rule.id,
        "shortDescription": { "text": rule.title() },
        "fullDescription": { "text": if why.is_empty() { rule.title() } else { why } },
        "help": { "text": help.trim_start() },
        "defaultConfiguration": { "level": level(rule.severity) },
        "properties": { "tags": tags, "spec": rule.spec, "version": rule.version },
    })
}

fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Info => "note",
    }
}

fn result(one: &One, finding: &Finding<'_>, index: usize, times: usize, has_baseline: bool) -> Value {
    let occurrence = finding.occurrence;
    let region = json!({ "startLine": occurrence.line.unwrap_or(1), "startColumn": occurrence.column.unwrap_or(1) });
    let mut result = json!({
        "ruleId": finding.rule.id,
        "ruleIndex": index,
        "level": level(occurrence.severity),
        "message": { "text": format!("{}. {}", shown(&occurrence.message), finding.rule.fix) },
        "locations": [{
            "physicalLocation": { "artifactLocation": { "uri": uri(&one.name) }, "region": region },
            "logicalLocations": [{ "fullyQualifiedName": occurrence.pointer, "kind": "value" }],
        }],
        "partialFingerprints": { "plumblinePlace/v1": fingerprint(finding.mark, times) },
        "properties": { "impact": occurrence.impact, "security": finding.rule.security },
    });
    if has_baseline {
        result["baselineState"] = if finding.is_known { "unchanged" } else { "new" }.into();
    }
    result
}

/// The same for the same finding after its document was moved or reordered; `times` tells findings apart that are alike.
fn fingerprint(mark: &Mark, times: usize) -> String {
    short_hash(&format!("{}\n{}\n{}\n{times}", mark.rule, mark.kind, mark.place))
}

/// What kept a thing from being judged.
fn notification(one: &One) -> Option<Value> {
    let text = match &one.outcome {
        Outcome::Failed(error) => error.as_str(),
        Outcome::Judged(_) if one.is_mistaken() => "It is not what it was taken for.",
        Outcome::Judged(_) | Outcome::PassedOver(_) => return None,
    };
    let location = json!({ "physicalLocation": { "artifactLocation": { "uri": uri(&one.name) } } });
    Some(json!({ "level": "error", "message": { "text": text }, "locations": [location] }))
}

/// A path as a relative reference (RFC 3986 §4.2); an address as it is.
fn uri(name: &str) -> String {
    if is_address(name) {
        return url::Url::parse(name).map_or_else(|_| name.to_owned(), |url| url.to_string());
    }
    if name == "-" {
        return "stdin".to_owned();
    }
    let mut uri = String::new();
    for byte in name.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => uri.push(char::from(byte)),
            byte => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    if name.starts_with('/') { format!("file://{uri}") } else { uri }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_becomes_a_reference() {
        assert_eq!(uri("a b/c:d.json"), "a%20b/c%3Ad.json");
        assert_eq!(uri("/tmp/c.json"), "file:///tmp/c.json");
        assert_eq!(uri("https://tides.dev"), "https://tides.dev/");
    }
}
