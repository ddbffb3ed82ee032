//! Signed cards and key sets: the first line is the card, the rest the keys.

#![no_main]

use libfuzzer_sys::fuzz_target;
use plumbline_rules::document::Document;
use plumbline_rules::jose::{Algorithm, base64url, key_set, protected_header};
use plumbline_rules::judge::{Given, Origin, Settings, Subject, judge};
use plumbline_rules::kind::Kind;

fuzz_target!(|text: &str| {
    let (card, keys) = text.split_once('\n').unwrap_or((text, ""));
    protected_header(card);
    let set = Document::from_text(keys);
    for key in set.root().and_then(key_set).into_iter().flatten() {
        key.thumbprint();
        for algorithm in Algorithm::ALL.iter().filter(|algorithm| key.fits(**algorithm)) {
            assert!(!key.verifies(*algorithm, card, &base64url(keys).unwrap_or_default()));
        }
    }
    let given = Given { jwks: serde_json::from_str(keys).ok(), ..Given::default() };
    let subject = Subject {
        kind: Some(Kind::AgentCard),
        version: None,
        origin: Origin::PublicHost,
        given: &given,
        session: None,
        answer: None,
    };
    judge(&Document::from_text(card), &subject, &Settings::default());
});
