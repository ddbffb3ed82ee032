//! What the targets share.

use plumbline_rules::document::Document;
use plumbline_rules::judge::{Given, Origin, Settings, Subject, judge};
use plumbline_rules::kind::Kind;

/// Judges a body twice; it has to get the same, and places that are places.
///
/// # Panics
/// When it does not.
pub fn judged(bytes: &[u8], kind: Kind) {
    let document = Document::read(bytes);
    let given = Given::default();
    let subject = Subject {
        kind: Some(kind),
        version: None,
        origin: Origin::PublicHost,
        given: &given,
        session: None,
        answer: None,
    };
    let settings = Settings::default();
    let (one, other) = (judge(&document, &subject, &settings), judge(&document, &subject, &settings));
    for (one, other) in one.results.iter().zip(&other.results) {
        assert_eq!(one.outcome, other.outcome, "{}", one.rule.id);
    }
    for (_, found) in one.fired() {
        assert!(found.iter().all(|o| o.pointer.is_empty() || o.pointer.starts_with('/')));
    }
}
