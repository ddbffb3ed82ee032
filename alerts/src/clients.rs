//! The fourth answer: which released clients work with a card, and which do not (catalogue §9).
//!
//! It follows from the rules' `clients` and the profile alone; no finding is weighed here.

use plumbline_rules::catalogue;
use plumbline_store::words::Impact;
use serde::Serialize;

/// A client we test with.
struct Tested {
    /// As rules name it.
    id: &'static str,
    /// As people call it.
    name: &'static str,
    /// Releases whose sound cards it opens (docs/clients.md), oldest first; of a card with two halves it takes the newer.
    reads: &'static [&'static str],
    /// What a person must know about the test.
    with: &'static str,
}

/// Clients that read agent cards, in the versions the rules' evidence names.
const A2A_CLIENTS: &[Tested] = &[
    Tested { id: "a2a-sdk 0.3.26", name: "a2a Python 0.3.26", reads: &["0.2", "0.3"], with: "" },
    Tested { id: "a2a-sdk 1.3.0", name: "a2a Python 1.3.0", reads: &["0.1", "0.3", "1.0"], with: "" },
    Tested {
        id: "@a2a-js/sdk 1.3.0",
        name: "a2a JavaScript 1.3.0",
        reads: &["0.2", "0.3", "1.0"],
        with: "with its 0.3 compatibility switched on",
    },
];

/// A rule that fires, and how bad what was found is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fired<'f> {
    /// The rule.
    pub rule: &'f str,
    /// What clients do about what was found.
    pub impact: Option<Impact>,
}

/// One client in one of the three lists.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Client {
    /// As people call it.
    pub name: String,
    /// The rules that put it there; empty for "works in" and for a profile it does not know.
    pub because: Vec<String>,
}

/// What clients do with a surface.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ClientAnswer {
    /// They load it and nothing is lost.
    pub works_in: Vec<Client>,
    /// They load it and something is lost.
    pub limited_in: Vec<Client>,
    /// They refuse it because of an open finding.
    pub refused_by: Vec<Client>,
    /// They do not know this revision at all, which is no fault of the document and blocks nothing.
    pub unaware: Vec<Client>,
    /// An open finding breaks clients, but nothing was run to say which.
    pub is_untested: bool,
    /// What a person must know about the tests, as the end of a sentence; empty: nothing.
    pub condition: &'static str,
}

/// The client answer for a judged card of this profile with what fires on it; `None` where no client was tested on its kind.
#[must_use]
pub fn answer(profile: &str, fired: &[Fired<'_>]) -> Option<ClientAnswer> {
    let halves = halves(profile)?;
    let mut answer = ClientAnswer::default();
    for client in A2A_CLIENTS {
        let named = |because| Client { name: client.name.to_owned(), because };
        let Some(half) = client.reads.iter().rev().find(|half| halves.contains(half)) else {
            answer.unaware.push(named(Vec::new()));
            continue;
        };
        // Where what was found is milder than the worst that the rule looks for, the client does not refuse.
        let breaks = |finding: &&Fired<'_>| finding.impact == Some(Impact::BreaksClients);
        let refuses = |finding: &&Fired<'_>| says(finding.rule, client.id, "refuses", half);
        let limits = |finding: &&Fired<'_>| {
            says(finding.rule, client.id, "limits", half)
                || (finding.impact == Some(Impact::Degrades) && refuses(finding))
        };
        let rules =
            |found: Vec<&Fired<'_>>| found.iter().map(|finding| finding.rule.to_owned()).collect::<Vec<String>>();
        let refuses = rules(fired.iter().filter(breaks).filter(refuses).collect());
        let limits = rules(fired.iter().filter(limits).collect());
        if !refuses.is_empty() {
            answer.refused_by.push(named(refuses));
        } else if !limits.is_empty() {
            answer.limited_in.push(named(limits));
        } else {
            answer.works_in.push(named(Vec::new()));
        }
    }
    // A finding that breaks clients, and no run that shows which: then no list may claim that a client works.
    let breaks: Vec<&Fired<'_>> =
        fired.iter().filter(|finding| finding.impact == Some(Impact::BreaksClients)).collect();
    let was_run = |finding: &&Fired<'_>| catalogue::find(finding.rule).is_some_and(|rule| !rule.clients.is_empty());
    answer.is_untested = !breaks.iter().all(was_run) || (!breaks.is_empty() && answer.refused_by.is_empty());
    answer.condition = if halves.contains(&"1.0") { "" } else { A2A_CLIENTS[2].with };
    Some(answer)
}

/// The halves of a profile whose clients are tested.
fn halves(profile: &str) -> Option<&'static [&'static str]> {
    match profile {
        "a2a-1.0" => Some(&["1.0"]),
        "a2a-hybrid" => Some(&["0.3", "1.0"]),
        "a2a-0.3" => Some(&["0.3"]),
        "a2a-0.2" => Some(&["0.2"]),
        "a2a-0.1" => Some(&["0.1"]),
        _ => None,
    }
}

/// Whether a rule's `clients` say that this client refuses or limits this half: `"a2a-sdk 1.3.0: refuses (0.3, 1.0)"`.
fn says(rule: &str, client: &str, effect: &str, half: &str) -> bool {
    let Some(rule) = catalogue::find(rule) else { return false };
    rule.clients.iter().any(|line| line_says(line, client, effect, half))
}

fn line_says(line: &str, client: &str, effect: &str, half: &str) -> bool {
    let Some((named, said)) = line.split_once(": ") else { return false };
    let (said, scope) = said.split_once(" (").unwrap_or((said, ""));
    let scope = scope.trim_end_matches(')');
    let is_in_scope = scope.is_empty() || scope.split(", ").any(|named| named == half);
    named == client && said == effect && is_in_scope
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_about_clients_is_read_with_its_scope() {
        let line = "a2a-sdk 1.3.0: refuses (0.3, 1.0)";
        assert!(line_says(line, "a2a-sdk 1.3.0", "refuses", "1.0"));
        assert!(!line_says(line, "a2a-sdk 1.3.0", "refuses", "0.2"));
        assert!(!line_says(line, "a2a-sdk 1.3.0", "limits", "1.0"));
        assert!(!line_says(line, "a2a-sdk 0.3.26", "refuses", "1.0"));
        assert!(line_says("mcp 1.30.0: refuses", "mcp 1.30.0", "refuses", "1.0"));
        assert!(!line_says("@a2a-js/sdk 1.3.0 with default options: refuses", "@a2a-js/sdk 1.3.0", "refuses", "0.3"));
    }

    #[test]
    fn a_client_that_does_not_know_the_revision_blocks_nothing() {
        let answer = answer("a2a-1.0", &[]).unwrap();
        assert_eq!(answer.unaware.iter().map(|c| c.name.as_str()).collect::<Vec<_>>(), ["a2a Python 0.3.26"]);
        assert_eq!(answer.works_in.len(), 2);
        assert!(answer.refused_by.is_empty());
    }

    #[test]
    fn a_card_older_than_a_client_is_no_fault_and_no_refusal() {
        let answer = answer("a2a-0.1", &[]).unwrap();
        let unaware: Vec<_> = answer.unaware.iter().map(|c| c.name.as_str()).collect();
        assert_eq!(unaware, ["a2a Python 0.3.26", "a2a JavaScript 1.3.0"]);
        assert!(answer.refused_by.is_empty() && !answer.is_untested);
    }

    #[test]
    fn listings_have_no_tested_clients() {
        assert_eq!(answer("server-json-2025-12-11", &[]), None);
    }
}
