//! `/rules/mcp-requirements`: every published requirement of MCP, how it is looked at, and what a look at one endpoint says.

use askama::Template;
use axum::extract::{Query, State};
use axum::response::Response;
use plumbline_rules::catalogue;
use plumbline_rules::judge::{Given, Settings};
use plumbline_rules::requirements::{Answer, Disposition, Level, Requirement, answers, requirements};
use plumbline_rules::rule::Rule;
use plumbline_rules::session::{Session, Surface};
use plumbline_rules::session_judge::judge_session;
use plumbline_store::ids::SurfaceId;
use plumbline_store::words::SurfaceKind;
use serde::{Deserialize, Serialize};

use crate::WebState;
use crate::cache::Cache;
use crate::error::Error;
use crate::filters;
use crate::page::{Frame, Place, Visit};
use crate::text;

/// The fields of the form.
#[derive(Debug, Default, Deserialize)]
pub struct Asked {
    /// The number of a target whose results are to stand beside.
    target: Option<String>,
}

/// The table.
#[derive(Template, Serialize)]
#[template(path = "requirements.html")]
struct RequirementsPage {
    #[serde(skip)]
    frame: Frame,
    /// The answer in one sentence.
    answer: String,
    /// Whose results stand beside.
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<Chosen>,
    /// By section of the publication.
    sections: Vec<Section>,
}

/// The target whose results are shown.
#[derive(Serialize)]
struct Chosen {
    /// Its number here.
    id: i64,
    /// What it is called.
    name: String,
    /// The endpoint that was asked; `None`: it has none, or none was talked to yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    endpoint: Option<String>,
}

/// One section.
#[derive(Serialize)]
struct Section {
    /// Its number, such as `1.3`.
    number: &'static str,
    /// Its requirements, in order.
    rows: Vec<Row>,
}

/// One requirement.
#[derive(Serialize)]
struct Row {
    /// Its number, such as `1.3.1.6`.
    id: &'static str,
    /// How strongly it is put.
    level: Level,
    /// How it can be looked at.
    disposition: Disposition,
    /// The rules that look at it, the one that decides first.
    rules: Vec<&'static str>,
    /// How it is looked at, or why it is not.
    reason: &'static str,
    /// What the last look at the target says; `None` where no target was talked to.
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Answer>,
}

/// `GET /rules/mcp-requirements`
pub async fn show(visit: Visit, State(state): State<WebState>, Query(asked): Query<Asked>) -> Result<Response, Error> {
    let asked = asked.target.as_deref().filter(|target| !target.is_empty());
    let (target, results) = match asked {
        Some(target) => {
            let (chosen, results) = looked(&state, target).await?;
            (Some(chosen), results)
        }
        None => (None, None),
    };
    let page = RequirementsPage {
        frame: visit.framed(Place::Rules),
        answer: answer(results.as_deref()),
        target,
        sections: sections(results.as_deref()),
    };
    visit.answer(&page, Cache::Fresh)
}

/// What was kept of the last conversation with an endpoint of the target says, and of what was not asked there the last
/// one in which odd requests were made.
async fn looked(state: &WebState, asked: &str) -> Result<(Chosen, Option<Vec<Answer>>), Error> {
    let unknown = || Error::NotFound { what: "target", asked: asked.to_owned() };
    let id: i64 = asked.parse().map_err(|_| unknown())?;
    let target = state.store.target(id).await?.ok_or_else(unknown)?;
    let mut chosen = Chosen { id, name: target.name, endpoint: None };
    let surfaces = state.store.target_surfaces(id).await?;
    for surface in surfaces.into_iter().filter(|surface| surface.kind == SurfaceKind::McpEndpoint) {
        let surface_id = SurfaceId(surface.id);
        let read = |bytes: Option<Vec<u8>>| bytes.and_then(|bytes| serde_json::from_slice::<Session>(&bytes).ok());
        if let Some(session) = read(state.store.last_session(surface_id).await?) {
            chosen.endpoint = Some(surface.url);
            let odd = match state.store.last_odd_conversation(surface_id).await? {
                Some(odd) => read(state.store.session(surface_id, odd.id).await?),
                None => None,
            };
            return Ok((chosen, Some(of_both(results(&session), odd.as_ref().map(results)))));
        }
    }
    Ok((chosen, None))
}

/// The answers of the newest conversation; what it did not evaluate is as the one with odd requests has it.
fn of_both(newest: Vec<Answer>, odd: Option<Vec<Answer>>) -> Vec<Answer> {
    let Some(odd) = odd else { return newest };
    let is_open = |answer: &Answer| matches!(answer, Answer::NotEvaluated { .. });
    newest.into_iter().zip(odd).map(|(new, odd)| if is_open(&new) { odd } else { new }).collect()
}

fn results(session: &Session) -> Vec<Answer> {
    let report = judge_session(session, Surface::Mcp, None, &Given::default(), &Settings::default());
    answers(&report, session).into_iter().map(|(_, answer)| answer).collect()
}

fn sections(results: Option<&[Answer]>) -> Vec<Section> {
    let mut sections: Vec<Section> = Vec::new();
    for (n, requirement) in requirements().iter().enumerate() {
        let row = row(requirement, results.and_then(|results| results.get(n)).cloned());
        match sections.last_mut() {
            Some(section) if section.number == requirement.section() => section.rows.push(row),
            _ => sections.push(Section { number: requirement.section(), rows: vec![row] }),
        }
    }
    sections
}

fn row(requirement: &Requirement, result: Option<Answer>) -> Row {
    Row {
        id: requirement.id,
        level: requirement.level,
        disposition: requirement.disposition,
        rules: requirement.rule.into_iter().chain(requirement.beside.iter().copied()).collect(),
        reason: requirement.reason,
        result,
    }
}

/// The page in one sentence. What could not be looked at is never counted as passed.
fn answer(results: Option<&[Answer]>) -> String {
    let all = text::number(requirements().len() as i64);
    let Some(results) = results else {
        let number = |disposition: Disposition| {
            text::number(requirements().iter().filter(|one| one.disposition == disposition).count() as i64)
        };
        return format!(
            "Of {all} published requirements of MCP {} can be seen on any endpoint, {} on your own, {} on commands, and {} are about clients.",
            number(Disposition::Rule),
            number(Disposition::OwnTarget),
            number(Disposition::OwnCommand),
            number(Disposition::Client)
        );
    };
    let count = |is: fn(&Answer) -> bool| text::number(results.iter().filter(|answer| is(answer)).count() as i64);
    format!(
        "Of {all} published requirements of MCP {} passed, {} failed, and {} could not be looked at.",
        count(|answer| *answer == Answer::Passed),
        count(|answer| matches!(answer, Answer::Failed { .. })),
        count(|answer| matches!(answer, Answer::NotEvaluated { .. }))
    )
}

impl Row {
    /// What is demanded, as the rule says it that decides; `None`: no rule does.
    fn demand(&self) -> Option<String> {
        self.rules.first().and_then(|rule| catalogue::find(rule)).map(Rule::title)
    }

    fn disposition_words(&self) -> &'static str {
        match self.disposition {
            Disposition::Rule => "any endpoint",
            Disposition::OwnTarget => "your own endpoints",
            Disposition::OwnCommand => "your own commands",
            Disposition::Client => "not on a server",
        }
    }

    fn result_words(&self) -> &'static str {
        match self.result {
            Some(Answer::Passed) => "passed",
            Some(Answer::Failed { .. }) => "failed",
            Some(Answer::NotEvaluated { .. }) => "not evaluated",
            None => "",
        }
    }

    /// The rules that fire.
    fn fired(&self) -> &[&'static str] {
        match &self.result {
            Some(Answer::Failed { rules }) => rules,
            Some(Answer::Passed | Answer::NotEvaluated { .. }) | None => &[],
        }
    }

    /// Why nobody could look.
    fn why(&self) -> &'static str {
        match &self.result {
            Some(Answer::NotEvaluated { why }) => why.sentence(),
            Some(Answer::Passed | Answer::Failed { .. }) | None => "",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(exchanges: &str) -> Vec<Answer> {
        results(&serde_json::from_str(&format!("{{\"exchanges\": [{exchanges}]}}")).expect("it is a session"))
    }

    #[test]
    fn what_the_newest_conversation_did_not_ask_is_as_the_one_with_odd_requests_has_it() {
        let asked = |step: &str, method: &str, result: &str| {
            format!(
                r#"{{"step": "{step}", "request": {{"method": "POST", "url": "https://t.example/mcp", "body": {{"jsonrpc": "2.0", "id": 1, "method": "{method}", "params": {{"protocolVersion": "2025-11-25"}}}}}}, "response": {{"status": 200, "headers": {{"content-type": "application/json"}}, "body": {{"jsonrpc": "2.0", "id": 1, "result": {result}}}}}}}"#
            )
        };
        let agreed =
            r#"{"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "t", "version": "1"}}"#;
        let newest = asked("initialize", "initialize", agreed);
        let odd = [newest.clone(), asked("unknown-method", "plumbline/does-not-exist", "{}")].join(",");
        let (newest, odd) = (said(&newest), said(&odd));
        let judged =
            |answers: &[Answer]| answers.iter().filter(|one| !matches!(one, Answer::NotEvaluated { .. })).count();
        let both = of_both(newest.clone(), Some(odd.clone()));
        assert!(judged(&odd) > judged(&newest), "more was asked");
        assert_eq!(judged(&both), judged(&odd), "and is known still");
        assert_eq!(of_both(newest.clone(), None), newest);
    }
}
