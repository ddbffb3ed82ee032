//! Sessions of Streamable HTTP: their ids, how they end, and what is answered outside of them.

use std::collections::HashMap;

use super::SESSIONS;
use super::heard::{ON, answered, answered_or_failed, heard, is_refused};
use crate::conversation::{Conversation, Turn};
use crate::judge::{Context, Occurrences};
use crate::report::NotEvaluated;
use crate::rule::{Check, Evidence, Impact, Mode, Rule, Severity, fires, silent};
use crate::session::{MaskedId, Step};
use crate::text::quote;

pub(super) const RULES: &[&Rule] = &[
    &SESSION_ID_CHARSET,
    &SESSION_ID_WEAK,
    &SESSION_ID_REUSED,
    &SESSION_MISSING_STATUS,
    &SESSION_UNKNOWN_STATUS,
    &SESSION_TERMINATED_ACCEPTED,
    &SESSION_DELETE_STATUS,
];

/// The session ids that handshakes without a session were given, in order.
fn issued<'c>(conversation: &'c Conversation<'_>) -> Vec<(&'c Turn<'c>, &'c str)> {
    let asks = |turn: &&Turn<'_>| {
        matches!(turn.step, Some(Step::Initialize | Step::SessionSample))
            && !turn.exchange.request.headers.contains_key("mcp-session-id")
            && turn.result().is_some()
    };
    let with_id = |turn: &'c Turn<'c>| Some((turn, turn.response()?.header("mcp-session-id")?));
    conversation.turns.iter().filter(asks).filter_map(with_id).collect()
}

/// How many characters an id has, also one of which the record keeps only length, classes and hash.
fn length(id: &str) -> usize {
    MaskedId::parse(id).map_or(id.len(), |masked| masked.length)
}

/// Whether an id is visible ASCII; `None` where the record does not say.
fn is_visible(id: &str) -> Option<bool> {
    match MaskedId::parse(id) {
        Some(masked) => masked.is_visible,
        None => Some(!id.is_empty() && id.bytes().all(|byte| (0x21..=0x7e).contains(&byte))),
    }
}

/// An id that is a number: the number, or how far it is from the first.
fn number(id: &str) -> Option<i128> {
    match MaskedId::parse(id) {
        Some(masked) => masked.apart,
        None => id.parse().ok(),
    }
}

crate::rule! {
    /// A session id consists of visible ASCII.
    ///
    /// Clients send it back as a header; other bytes do not survive that.
    static SESSION_ID_CHARSET = {
        id: "mcp/session-id-charset",
        severity: Severity::Error,
        impact: Some(Impact::Degrades),
        versions: SESSIONS,
        evidence: Evidence::Live,
        on: ON,
        place: "response header Mcp-Session-Id",
        fix: "Use visible ASCII only.",
        spec: "2025-11-25 transports, Session Management §1",
        seeds: &["validator:1.5.3.1", "inspector:session-header"],
        examples: &[
                fires(&["/exchanges/0/response/headers/mcp-session-id"], r#"{"exchanges": [{"step": "initialize", "response": {"headers": {"mcp-session-id": "session 12 of tides"}}}]}"#),
                silent(r#"{"exchanges": [{"step": "initialize", "response": {"headers": {"mcp-session-id": "v1:~aZ9!/+=|0123456789abcdef"}}}]}"#),
        ],
        check: Check::Conversation(session_id_charset),
    }
}

fn session_id_charset(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let mut seen = false;
    for (turn, id) in issued(conversation) {
        let Some(is_visible) = is_visible(id) else { continue };
        seen = true;
        if !is_visible {
            let what = if length(id) == 0 {
                "the session id is empty".to_owned()
            } else {
                format!("the session id {} is not visible ASCII", quote(id))
            };
            out.add_in(turn.revision, turn.header_place("mcp-session-id"), what);
            return;
        }
    }
    if !seen && !issued(conversation).is_empty() {
        out.not_evaluated(NotEvaluated::Cut);
    }
}

crate::rule! {
    /// A session id cannot be guessed.
    ///
    /// Whoever guesses it speaks in the other's name. These are short, or count up.
    static SESSION_ID_WEAK = {
        id: "mcp/session-id-weak",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        security: true,
        versions: SESSIONS,
        mode: Mode::Probe,
        evidence: Evidence::Live,
        on: ON,
        place: "step:session-sample",
        fix: "Use at least 122 random bits.",
        spec: "2025-11-25 transports, Session Management §1",
        seeds: &["validator:1.5.3.1"],
        examples: &[
                fires(&["/exchanges/0/response/headers/mcp-session-id"], r#"{"exchanges": [{"step": "initialize", "response": {"headers": {"mcp-session-id": "0b9c6a4e"}}}]}"#),
                fires(
                    &["/exchanges/1/response/headers/mcp-session-id"],
                    r#"{"exchanges": [{"step": "initialize", "response": {"headers": {"mcp-session-id": "1732900000000000101"}}}, {"step": "session-sample", "request": {"body": {"method": "initialize"}}, "response": {"headers": {"mcp-session-id": "1732900000000000102"}}}]}"#,
                ),
                silent(r#"{"exchanges": [{"step": "initialize"}]}"#),
        ],
        check: Check::Conversation(session_id_weak),
    }
}

fn session_id_weak(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let issued = issued(conversation);
    if issued.is_empty() {
        return out.not_evaluated(NotEvaluated::NotAsked);
    }
    if let Some((turn, id)) = issued.iter().find(|(_, id)| !id.is_empty() && length(id) < 16) {
        let what = format!("the session id has {} characters", length(id));
        out.add_in(turn.revision, turn.header_place("mcp-session-id"), what);
        return;
    }
    // A record of before says nothing of what its ids are made of.
    if issued.iter().all(|(_, id)| is_visible(id).is_none()) {
        return out.not_evaluated(NotEvaluated::Cut);
    }
    let numbers: Vec<(&Turn<'_>, i128)> = issued.iter().filter_map(|(turn, id)| Some((*turn, number(id)?))).collect();
    for pair in numbers.windows(2) {
        let apart = (pair[0].1 - pair[1].1).abs();
        if apart > 0 && apart < 1000 {
            let turn = pair[1].0;
            out.add_in(
                turn.revision,
                turn.header_place("mcp-session-id"),
                format!("two session ids are {apart} apart"),
            );
            return;
        }
    }
}

crate::rule! {
    /// Every session has an id of its own.
    ///
    /// Two clients in one session read each other's answers.
    static SESSION_ID_REUSED = {
        id: "mcp/session-id-reused",
        severity: Severity::Error,
        impact: Some(Impact::Degrades),
        security: true,
        versions: SESSIONS,
        mode: Mode::Probe,
        evidence: Evidence::Live,
        on: ON,
        place: "step:session-sample",
        fix: "Mint a new id for each session.",
        spec: "2025-11-25 transports, Session Management §1",
        seeds: &["validator:1.5.3.1"],
        examples: &[
                fires(&["/exchanges/1/response/headers/mcp-session-id"], r#"{"exchanges": [{"step": "initialize"}, {"step": "initialize"}]}"#),
                silent(r#"{"exchanges": [{"step": "initialize"}, {"step": "initialize", "response": {"headers": {"mcp-session-id": "0c2d8a1f-3b55-4d2e-8e1f-803b3c7d9ea1"}}}]}"#),
        ],
        check: Check::Conversation(session_id_reused),
    }
}

fn session_id_reused(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let issued = issued(conversation);
    if issued.len() < 2 {
        return out.not_evaluated(NotEvaluated::NotAsked);
    }
    let mut seen = HashMap::new();
    for (turn, id) in issued {
        if let Some(before) = seen.insert(id, turn.number) {
            let what = format!("the session of exchange {before} has the same id");
            out.add_in(turn.revision, turn.header_place("mcp-session-id"), what);
            return;
        }
    }
}

/// Whether the server gave a session id at all.
fn keeps_sessions(conversation: &Conversation<'_>, out: &mut Occurrences) -> bool {
    let keeps = !issued(conversation).is_empty();
    if !keeps {
        out.not_applicable();
    }
    keeps
}

crate::rule! {
    /// A request without its session is refused with 400.
    ///
    /// By the status a client knows that it has to send the id.
    static SESSION_MISSING_STATUS = {
        id: "mcp/session-missing-status",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        versions: SESSIONS,
        mode: Mode::Probe,
        evidence: Evidence::Live,
        on: ON,
        place: "step:session-missing",
        fix: "Answer 400.",
        spec: "2025-11-25 transports, Session Management §2",
        examples: &[
                fires(&["/exchanges/1/response/status"], r#"{"exchanges": [{"step": "initialize"}, {"step": "session-missing", "response": {"status": 500, "body": null}}]}"#),
                silent(r#"{"exchanges": [{"step": "initialize"}, {"step": "session-missing", "response": {"status": 400, "body": null}}]}"#),
                silent(r#"{"exchanges": [{"step": "initialize"}, {"step": "session-missing"}]}"#),
        ],
        check: Check::Conversation(session_missing_status),
    }
}

fn session_missing_status(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if !keeps_sessions(conversation, out) {
        return;
    }
    for turn in answered_or_failed(conversation, &[Step::SessionMissing], out) {
        if let Some(status) = turn.status().filter(|status| *status != 400 && is_refused(turn)) {
            out.add_in(
                turn.revision,
                format!("{}/status", turn.place()),
                format!("a request without session id is refused with {status}"),
            );
        }
    }
}

crate::rule! {
    /// A session that is not known is refused with 404.
    ///
    /// By the status a client knows that it has to begin a new one; after another it gives up, or tries the old id for ever.
    static SESSION_UNKNOWN_STATUS = {
        id: "mcp/session-unknown-status",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        versions: SESSIONS,
        mode: Mode::Probe,
        evidence: Evidence::Live,
        on: ON,
        place: "step:session-unknown",
        fix: "Answer 404.",
        spec: "2025-11-25 transports, Session Management §3",
        examples: &[
                fires(&["/exchanges/1/response/status"], r#"{"exchanges": [{"step": "initialize"}, {"step": "session-unknown", "response": {"status": 400, "body": null}}]}"#),
                silent(r#"{"exchanges": [{"step": "initialize"}, {"step": "session-unknown", "response": {"status": 404, "body": null}}]}"#),
                silent(r#"{"exchanges": [{"step": "initialize"}, {"step": "session-unknown"}]}"#),
        ],
        check: Check::Conversation(session_unknown_status),
    }
}

fn session_unknown_status(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if !keeps_sessions(conversation, out) {
        return;
    }
    for turn in heard(conversation, &[Step::SessionUnknown], out) {
        if let Some(status) = turn.status().filter(|status| *status != 404 && is_refused(turn)) {
            out.add_in(
                turn.revision,
                format!("{}/status", turn.place()),
                format!("a made-up session id is refused with {status}"),
            );
        }
    }
}

crate::rule! {
    /// A session that was ended is over.
    ///
    /// Its id is answered with 404 from then on; a client that ended it relies on that.
    static SESSION_TERMINATED_ACCEPTED = {
        id: "mcp/session-terminated-accepted",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        security: true,
        versions: SESSIONS,
        mode: Mode::Probe,
        evidence: Evidence::Live,
        on: ON,
        place: "step:session-terminated",
        fix: "Answer 404 for ended sessions.",
        spec: "2025-11-25 transports, Session Management §3",
        examples: &[
                fires(&["/exchanges/2/response/status"], r#"{"exchanges": [{"step": "initialize"}, {"step": "session-delete"}, {"step": "session-terminated"}]}"#),
                silent(r#"{"exchanges": [{"step": "initialize"}, {"step": "session-delete"}, {"step": "session-terminated", "response": {"status": 404, "body": null}}]}"#),
                silent(r#"{"exchanges": [{"step": "initialize"}, {"step": "session-delete", "response": {"status": 405}}, {"step": "session-terminated"}]}"#),
        ],
        check: Check::Conversation(session_terminated_accepted),
    }
}

fn session_terminated_accepted(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let ended = conversation.of(Step::SessionDelete).any(|turn| turn.exchange.success().is_some());
    for turn in answered(conversation, &[Step::SessionTerminated], out) {
        if let Some(status) = turn.status().filter(|status| ended && *status != 404 && turn.gate().is_none()) {
            out.add_in(
                turn.revision,
                format!("{}/status", turn.place()),
                format!("after DELETE, `ping` in the session is answered {status}"),
            );
        }
    }
}

crate::rule! {
    /// A session can be ended, or the server says that it cannot.
    ///
    /// DELETE is answered with success or with 405.
    static SESSION_DELETE_STATUS = {
        id: "mcp/session-delete-status",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        versions: SESSIONS,
        evidence: Evidence::Live,
        on: ON,
        place: "step:session-delete",
        fix: "Answer 2xx or 405.",
        spec: "2025-11-25 transports, Session Management §5",
        seeds: &["validator:1.3.4.2"],
        examples: &[
                fires(&["/exchanges/1/response/status"], r#"{"exchanges": [{"step": "initialize"}, {"step": "session-delete", "response": {"status": 500}}]}"#),
                silent(r#"{"exchanges": [{"step": "initialize"}, {"step": "session-delete", "response": {"status": 405}}]}"#),
        ],
        check: Check::Conversation(session_delete_status),
    }
}

fn session_delete_status(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for turn in answered_or_failed(conversation, &[Step::SessionDelete], out) {
        if let Some(status) = turn.status().filter(|status| !matches!(status, 200..=299 | 404 | 405)) {
            out.add_in(turn.revision, format!("{}/status", turn.place()), format!("DELETE is answered {status}"));
            return;
        }
    }
}
