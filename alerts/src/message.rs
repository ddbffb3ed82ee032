//! One event in words: what, where, and how grave.

use plumbline_store::events::Event;
use plumbline_store::ids::EventId;
use plumbline_store::words::EventKind;

/// How much a message asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    /// Good to know, or good news.
    Notice,
    /// Somebody should look.
    Look,
}

/// What is told of one event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// The event it is about.
    pub event: EventId,
    /// When it happened, in Unix seconds.
    pub at_s: i64,
    /// How much it asks for.
    pub weight: Weight,
    /// One sentence.
    pub text: String,
}

/// Whether a person would want to hear of it. What a first look finds is a baseline and wakes nobody.
#[must_use]
pub fn is_worth_telling(event: &Event) -> bool {
    matches!(
        event.kind,
        EventKind::FindingRegressed
            | EventKind::FindingResolved
            | EventKind::TargetDown
            | EventKind::TargetRecovered
            | EventKind::TargetGone
            | EventKind::DiskFilling
            | EventKind::DiskFull
            | EventKind::DiskRelieved
    )
}

/// The message of an event about a target of that name.
#[must_use]
pub fn message(event: &Event, target: &str) -> Message {
    let target = plain(target);
    let rule = event.rule.as_deref().unwrap_or("a rule");
    let (weight, text) = match event.kind {
        EventKind::FindingRegressed => (Weight::Look, format!("{target} regressed: {rule} fires")),
        EventKind::FindingResolved => (Weight::Notice, format!("{target}: {rule} no longer fires")),
        EventKind::TargetDown => (Weight::Look, format!("{target} is down")),
        EventKind::TargetRecovered => (Weight::Notice, format!("{target} answers again")),
        EventKind::TargetGone => (Weight::Look, format!("{target} is gone")),
        EventKind::DiskFilling => (Weight::Look, format!("the disk of the database is {} full", percent(event))),
        EventKind::DiskFull => (
            Weight::Look,
            format!("the disk of the database is {} full: documents are no longer kept, findings are", percent(event)),
        ),
        EventKind::DiskRelieved => {
            (Weight::Notice, format!("the disk of the database has room again ({} used)", percent(event)))
        }
        other => (Weight::Notice, format!("{target}: {other}")),
    };
    Message { event: event.id, at_s: event.at_s, weight, text }
}

/// What an event about the disk carries.
fn percent(event: &Event) -> String {
    event.a.map_or_else(|| "nearly".to_owned(), |percent| format!("{percent} %"))
}

/// A stranger's name without what a terminal or a log would obey, at most 100 characters of it.
fn plain(name: &str) -> String {
    name.chars().filter(|c| !c.is_control()).take(100).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(kind: EventKind) -> Event {
        Event {
            id: EventId(7),
            at_s: 1_796_000_000,
            kind,
            target: None,
            surface: None,
            rule: Some("a2a/skill-id-duplicate".to_owned()),
            subject: None,
            a: None,
            b: None,
            note: None,
        }
    }

    #[test]
    fn a_first_look_wakes_nobody_and_a_regression_does() {
        assert!(!is_worth_telling(&event(EventKind::FindingOpened)));
        assert!(!is_worth_telling(&event(EventKind::TargetAdded)));
        assert!(is_worth_telling(&event(EventKind::FindingRegressed)));
        assert_eq!(message(&event(EventKind::FindingRegressed), "x").weight, Weight::Look);
        assert_eq!(message(&event(EventKind::TargetRecovered), "x").weight, Weight::Notice);
    }

    #[test]
    fn a_disk_that_fills_up_is_said_with_how_much() {
        let said = |kind| message(&Event { a: Some(96), ..event(kind) }, "").text;
        assert_eq!(said(EventKind::DiskFilling), "the disk of the database is 96 % full");
        assert!(said(EventKind::DiskFull).contains("findings are"));
        assert!(is_worth_telling(&event(EventKind::DiskFull)));
    }

    #[test]
    fn the_sentence_names_target_and_rule_and_obeys_nothing() {
        let said = message(&event(EventKind::FindingResolved), "Harbour\u{1b}[2J weather");
        assert_eq!(said.text, "Harbour[2J weather: a2a/skill-id-duplicate no longer fires");
    }
}
