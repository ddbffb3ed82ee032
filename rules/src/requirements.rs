//! The published requirements of MCP, and what a look at an endpoint says about each.
//!
//! The rows stand in `requirements.tsv`. A requirement is *passed* only where its own rule looked and found nothing;
//! where it could not look, it is said why.

use std::sync::LazyLock;

use serde::Serialize;

use crate::catalogue;
use crate::coverage::{self, Source};
use crate::judge::counts;
use crate::report::{NotEvaluated, Outcome, Report};
use crate::rule::{Mode, Rule};
use crate::session::Session;

crate::words! {
    /// How strongly a requirement is put.
    pub enum Level {
        /// It has to be so.
        Must = "MUST",
        /// It should be so.
        Should = "SHOULD",
        /// It may be so.
        May = "MAY",
        /// It is only said.
        Info = "INFO",
    }
}

crate::words! {
    /// How a requirement can be looked at.
    pub enum Disposition {
        /// On any endpoint.
        Rule = "rule",
        /// On endpoints that the operator marked as own: what they offer has to be used.
        OwnTarget = "active",
        /// On commands that the operator configured.
        OwnCommand = "stdio",
        /// Not on a server: it is about clients.
        Client = "client-side",
    }
}

/// A published requirement.
#[derive(Debug, Clone)]
pub struct Requirement {
    /// Its number, such as `1.3.1.6`.
    pub id: &'static str,
    /// How strongly it is put.
    pub level: Level,
    /// How it can be looked at.
    pub disposition: Disposition,
    /// The rule that decides about it; `None` where it is about clients.
    pub rule: Option<&'static str>,
    /// Further rules that look at a part of it.
    pub beside: Vec<&'static str>,
    /// How it is looked at, or why it is not, in a sentence.
    pub reason: &'static str,
}

impl Requirement {
    /// The section it stands in, such as `1.3`.
    pub fn section(&self) -> &'static str {
        let second = self.id.match_indices('.').nth(1);
        second.map_or(self.id, |(at, _)| &self.id[..at])
    }
}

/// Every requirement, in the order of its number.
pub fn requirements() -> &'static [Requirement] {
    static ROWS: LazyLock<Vec<Requirement>> =
        LazyLock::new(|| include_str!("requirements.tsv").lines().skip(1).filter_map(requirement).collect());
    &ROWS
}

/// A line of the table; `None` for one that has not its form, which a test rules out.
fn requirement(line: &'static str) -> Option<Requirement> {
    let mut fields = line.split('\t');
    let id = fields.next()?;
    let level = fields.next()?.parse().ok()?;
    let disposition = fields.next()?;
    let (disposition, rule) =
        disposition.split_once(':').map_or((disposition, None), |(disposition, rule)| (disposition, Some(rule)));
    let rows = coverage::rows().iter();
    let named = rows.filter(|row| row.source == Source::Requirements && row.name == id).flat_map(|row| &row.rules);
    let beside = named.copied().filter(|name| Some(*name) != rule).collect();
    Some(Requirement { id, level, disposition: disposition.parse().ok()?, rule, beside, reason: fields.next()? })
}

/// What a look says about a requirement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "result", rename_all = "snake_case")]
pub enum Answer {
    /// Its rule looked and found nothing.
    Passed,
    /// These rules fire.
    Failed {
        /// Their ids; the one that decides first, if it is among them.
        rules: Vec<&'static str>,
    },
    /// Nobody could look.
    NotEvaluated {
        /// Why.
        why: Why,
    },
}

crate::words! {
    /// Why nothing is said about a requirement.
    pub enum Why {
        /// It is about clients.
        Client = "client-side",
        /// It is about servers that are started as a command, and this one is called over a network.
        OverNetwork = "over-network",
        /// It is about HTTP, and this server is started as a command.
        OverStdio = "over-stdio",
        /// What the server offers has to be used, and it is not marked as own.
        NotOwn = "not-own",
        /// It is about revisions that the server was not seen to speak.
        Revision = "other-revision",
        /// There is nothing to which it applies: what it asks about is not declared, or did not happen.
        NotApplicable = "not-applicable",
        /// The step was not taken: there was no occasion, or it is switched off.
        NotAsked = "not-asked",
        /// Refused for want of credentials.
        Auth = "auth",
        /// Refused for want of payment.
        Payment = "payment",
        /// The server asked to come back later.
        RateLimited = "rate-limited",
        /// No answer came that could be judged.
        NoAnswer = "no-answer",
        /// Another finding ended the work on what it is about.
        Parent = "parent",
        /// Switched off by the operator.
        Off = "off",
    }
}

impl Why {
    /// In words, as an answer to "why is nothing said?".
    pub fn sentence(self) -> &'static str {
        match self {
            Why::Client => "It is about clients; no server shows it.",
            Why::OverNetwork => "It is about servers that are started as a command.",
            Why::OverStdio => "It is about HTTP; this server is started as a command.",
            Why::NotOwn => "What the server offers has to be used, which is done only on targets marked as own.",
            Why::Revision => "It is about revisions that this server was not seen to speak.",
            Why::NotApplicable => "There is nothing here to which it applies.",
            Why::NotAsked => "It was not asked: there was no occasion, or it is switched off.",
            Why::Auth => "The server wants credentials first.",
            Why::Payment => "The server wants to be paid first.",
            Why::RateLimited => "The server asked to come back later.",
            Why::NoAnswer => "No answer came that could be judged.",
            Why::Parent => "Another finding ended the work on what it is about.",
            Why::Off => "The rule is switched off.",
        }
    }
}

/// What the report about an endpoint, and the conversation it rests on, say about each requirement.
pub fn answers(report: &Report, session: &Session) -> Vec<(&'static Requirement, Answer)> {
    requirements().iter().map(|requirement| (requirement, answer(requirement, report, session))).collect()
}

fn answer(requirement: &Requirement, report: &Report, session: &Session) -> Answer {
    let Some(own) = requirement.rule else { return Answer::NotEvaluated { why: Why::Client } };
    let outcome = |id: &str| report.results.iter().find(|result| result.rule.id == id).map(|result| &result.outcome);
    let fires = |id: &&'static str| {
        let is_finding = *id == own || catalogue::find(id).is_some_and(counts);
        is_finding && matches!(outcome(id), Some(Outcome::Fires(_)))
    };
    let rules: Vec<&'static str> =
        std::iter::once(own).chain(requirement.beside.iter().copied()).filter(|id| fires(id)).collect();
    if !rules.is_empty() {
        return Answer::Failed { rules };
    }
    let is_stdio = session.stdio.is_some();
    let why = match (outcome(own), requirement.disposition) {
        (_, Disposition::OwnCommand) if !is_stdio => Why::OverNetwork,
        (Some(Outcome::Passes), _) => return Answer::Passed,
        (Some(Outcome::NotEvaluated(NotEvaluated::NotAsked)) | None, Disposition::OwnTarget) => Why::NotOwn,
        (Some(Outcome::NotEvaluated(reason)), _) => because(*reason),
        (Some(Outcome::NotApplicable | Outcome::Fires(_)), _) => Why::NotApplicable,
        (None, _) if is_stdio => Why::OverStdio,
        (None, _) => absent(catalogue::find(own)),
    };
    Answer::NotEvaluated { why }
}

/// Why a rule is not in a report at all.
fn absent(rule: Option<&'static Rule>) -> Why {
    match rule {
        Some(rule) if rule.mode == Mode::Read => Why::Revision,
        _ => Why::NotAsked,
    }
}

fn because(reason: NotEvaluated) -> Why {
    match reason {
        NotEvaluated::Auth => Why::Auth,
        NotEvaluated::Payment => Why::Payment,
        NotEvaluated::RateLimited => Why::RateLimited,
        NotEvaluated::NotAsked | NotEvaluated::NoKeys | NotEvaluated::NoOrigin => Why::NotAsked,
        NotEvaluated::NoDocument | NotEvaluated::NoSession | NotEvaluated::Cut => Why::NoAnswer,
        NotEvaluated::Parent => Why::Parent,
        NotEvaluated::Off => Why::Off,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::{Given, Settings};
    use crate::session::Surface;
    use crate::session_judge::judge_session;

    fn judged(session: &str) -> (Report, Session) {
        let session: Session = serde_json::from_str(session).expect("it is a session");
        (judge_session(&session, Surface::Mcp, None, &Given::default(), &Settings::default()), session)
    }

    fn said(session: &str, id: &str) -> Answer {
        let (report, session) = judged(session);
        let all = answers(&report, &session);
        all.into_iter().find(|(requirement, _)| requirement.id == id).expect("the requirement exists").1
    }

    const OPEN: &str = r#"{"exchanges": [{"step": "initialize",
        "request": {"method": "POST", "url": "https://tides.example.com/mcp", "headers": {"content-type": "application/json"},
            "body": {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "plumbline", "version": "0.1.0"}}}},
        "response": {"status": 200, "headers": {"content-type": "application/json"},
            "body": {"jsonrpc": "2.0", "id": 1, "result": {"protocolVersion": "2025-11-25", "capabilities": {}}}}}]}"#;

    #[test]
    fn every_requirement_is_read_and_its_rule_exists() {
        assert_eq!(requirements().len(), 133);
        for requirement in requirements() {
            assert_eq!(
                requirement.rule.is_none(),
                requirement.disposition == Disposition::Client,
                "{}",
                requirement.id
            );
            for rule in requirement.rule.iter().chain(&requirement.beside) {
                assert!(catalogue::find(rule).is_some(), "{}: there is no {rule}", requirement.id);
            }
            assert!(!requirement.reason.is_empty() && requirement.section().matches('.').count() == 1);
        }
    }

    #[test]
    fn what_fails_passes_and_cannot_be_told_is_told_apart() {
        let rows = [
            ("1.3.1.6", Answer::Passed),
            ("1.3.1.7", Answer::Failed { rules: vec!["mcp/server-info-missing"] }),
            ("1.5.1.1", Answer::NotEvaluated { why: Why::Client }),
            ("1.2.1.5", Answer::NotEvaluated { why: Why::OverNetwork }),
            ("2.3.3.1", Answer::NotEvaluated { why: Why::NotOwn }),
            ("1.3.2.3", Answer::NotEvaluated { why: Why::NotAsked }),
        ];
        for (id, answer) in rows {
            assert_eq!(said(OPEN, id), answer, "{id}");
        }
    }

    #[test]
    fn a_refused_server_passes_nothing() {
        let refused = r#"{"exchanges": [{"step": "initialize", "request": {"method": "POST", "url": "https://tides.example.com/mcp",
            "body": {"jsonrpc": "2.0", "id": 1, "method": "initialize"}}, "response": {"status": 401, "headers": {"www-authenticate": "Bearer"}}}]}"#;
        let (report, session) = judged(refused);
        let of_answers = ["1.3.1.5", "1.3.1.6", "1.3.1.7", "2.3.2.1", "2.3.2.2", "4.1.1.1"];
        for (requirement, answer) in answers(&report, &session) {
            if of_answers.contains(&requirement.id) {
                assert!(matches!(answer, Answer::NotEvaluated { .. }), "{}: {answer:?}", requirement.id);
            }
        }
    }
}
