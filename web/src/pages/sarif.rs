//! `/targets/{id}/sarif`: what is open on one target as SARIF 2.1.0, for code scanning.

use axum::Json;
use axum::extract::State;
use plumbline_rules::catalogue;
use plumbline_rules::rule::Severity;
use plumbline_store::views::{FindingRow, SurfaceRow};
use serde_json::{Value, json};

use super::tabs;
use crate::WebState;
use crate::error::Error;
use crate::text;

/// `GET /targets/{id}/sarif`
pub async fn show(State(state): State<WebState>, tabs::Asked(target): tabs::Asked) -> Result<Json<Value>, Error> {
    let findings = state.store.target_findings(target.id).await?;
    let surfaces = state.store.target_surfaces(target.id).await?;
    let mut rules: Vec<&str> = findings.iter().map(|finding| finding.rule.as_str()).collect();
    rules.sort_unstable();
    rules.dedup();
    let results: Vec<Value> = findings.iter().flat_map(|finding| results(finding, &surfaces, &rules)).collect();
    Ok(Json(json!({
        "$schema": "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "plumbline",
                "version": env!("CARGO_PKG_VERSION"),
                "informationUri": env!("CARGO_PKG_REPOSITORY"),
                "rules": rules.iter().map(|rule| described(rule)).collect::<Vec<_>>(),
            } },
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    })))
}

fn described(id: &str) -> Value {
    let Some(rule) = catalogue::find(id) else { return json!({ "id": id }) };
    json!({
        "id": rule.id,
        "shortDescription": { "text": rule.title() },
        "help": { "text": format!("{} Fix: {} ({})", rule.why().join(" "), rule.fix, rule.spec) },
        "defaultConfiguration": { "level": level(rule.severity) },
    })
}

fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Info => "note",
    }
}

/// One result for each place.
fn results(finding: &FindingRow, surfaces: &[SurfaceRow], rules: &[&str]) -> Vec<Value> {
    let uri = surfaces.iter().find(|one| one.id == finding.surface_id).map_or("unknown:", |one| one.url.as_str());
    let index = rules.binary_search(&finding.rule.as_str()).unwrap_or(0);
    let result = |place: &plumbline_store::judged::Occurrence| {
        json!({
            "ruleId": finding.rule,
            "ruleIndex": index,
            "level": level(place.severity),
            "message": { "text": text::visible(&place.message, 1_000) },
            "locations": [{
                "physicalLocation": {
                    "artifactLocation": { "uri": uri },
                    "region": { "startLine": place.line.unwrap_or(1), "startColumn": place.column.unwrap_or(1) },
                },
                "logicalLocations": [{ "fullyQualifiedName": place.pointer, "kind": "value" }],
            }],
            "partialFingerprints": { "plumblineFinding/v1": format!("{}:{}", finding.id, place.pointer) },
        })
    };
    finding.places.iter().map(result).collect()
}
