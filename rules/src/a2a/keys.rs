//! Signatures held against their keys: what is wrong with a key set, and what came of checking.
//!
//! Keys are handed in by the operator or were fetched on the way (step `jku`); without either nothing here is judged.

use super::table::SINCE_0_3;
use super::verify::{Entry, KeySet, SetState, Signatures};
use crate::document::{Node, Type};
use crate::judge::{Context, Occurrences};
use crate::kind::Kind;
use crate::report::{NotEvaluated, PayloadForm, SignatureResult};
use crate::rule::{Axis, Basis, Check, Evidence, Impact, Rule, Severity, fires, silent};
use crate::session::Session;
use crate::text::quote;

pub(super) const RULES: &[&Rule] = &[
    &JWKS_UNREACHABLE,
    &JWKS_INVALID,
    &JWKS_KEY_MISSING,
    &JWKS_KID_DUPLICATE,
    &JWKS_PRIVATE_KEY,
    &JWKS_KEY_MISMATCH,
    &JWKS_WEAK_KEY,
    &SIGNATURE_INVALID,
    &SIGNATURE_NONCANONICAL,
    &SIGNATURE_UNCOVERED_MEMBERS,
];

/// The checked signatures of a card that has some, once there was a key set that could be looked into.
fn checked<'c>(card: Node<'_>, context: &Context<'c>, out: &mut Occurrences) -> Option<&'c Signatures> {
    if card.get("signatures").is_none_or(|list| list.kind() != Type::Array || list.is_empty()) {
        out.not_applicable();
        return None;
    }
    let signatures = context.signatures();
    let has_looked = signatures.sets.iter().any(|set| set.state == SetState::WellFormed);
    if !has_looked {
        out.not_evaluated(NotEvaluated::NoKeys);
    }
    has_looked.then_some(signatures)
}

/// Speaks at a member of every signature that came out in this way.
fn at_entries(
    card: Node<'_>,
    entries: &[Entry],
    member: &str,
    out: &mut Occurrences,
    says: impl Fn(&Entry) -> Option<String>,
) {
    for entry in entries {
        if let Some(message) = says(entry)
            && let Some(node) = card.document().pointer(&format!("{}/{member}", entry.pointer))
        {
            out.add(node, message);
        }
    }
}

fn names_key(entry: &Entry) -> String {
    quote(entry.kid.as_deref().unwrap_or_default())
}

crate::rule! {
    /// The key set that a signature names can be fetched.
    ///
    /// Without it nobody can check the signature. Where credentials or patience are asked for, nothing is judged.
    static JWKS_UNREACHABLE = {
        id: "a2a/jwks-unreachable",
        axis: Axis::Reach,
        severity: Severity::Warning,
        impact: Some(Impact::Degrades),
        basis: Basis::Policy,
        versions: SINCE_0_3,
        on: &[Kind::AgentCard],
        evidence: Evidence::Live,
        place: "jku fetch",
        fix: "Publish the key set.",
        spec: "A2A 1.0 §8.4.3",
        examples: &[
            fires(
                &["/exchanges/1"],
                r#"{"exchanges": [{"request": {"method": "GET", "url": "https://tides.example.com/.well-known/agent-card.json"}, "response": {"status": 200, "headers": "headers:card", "body": {"name": "Tide Tables", "description": "Gives the times of high water.", "version": "2.1.0", "capabilities": {}, "supportedInterfaces": [{"url": "https://tides.example.com/a2a", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}], "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"], "skills": [{"id": "tides", "name": "Look up tides", "description": "Gives the next four tides.", "tags": ["tides"]}], "signatures": [{"signature": "3hAa9t4ibGR3V-U6ff3n6Sptj0YdZjUo4F2QkvPs1kIWaVbap3VuKtX9ri4X_OTqLgJK01rfohmf8QIlRuTQDw", "protected": "eyJhbGciOiJFZERTQSIsInR5cCI6IkpPU0UiLCJraWQiOiJrMSIsImprdSI6Imh0dHBzOi8vdGlkZXMuZXhhbXBsZS5jb20vandrcy5qc29uIn0"}]}}}, {"step": "jku", "request": {"method": "GET", "url": "https://tides.example.com/jwks.json"}, "response": {"status": 404}}]}"#,
            ),
            silent(
                r#"{"exchanges": [{"request": {"method": "GET", "url": "https://tides.example.com/.well-known/agent-card.json"}, "response": {"status": 200, "headers": "headers:card", "body": {"name": "Tide Tables", "description": "Gives the times of high water.", "version": "2.1.0", "capabilities": {}, "supportedInterfaces": [{"url": "https://tides.example.com/a2a", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}], "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"], "skills": [{"id": "tides", "name": "Look up tides", "description": "Gives the next four tides.", "tags": ["tides"]}], "signatures": [{"signature": "3hAa9t4ibGR3V-U6ff3n6Sptj0YdZjUo4F2QkvPs1kIWaVbap3VuKtX9ri4X_OTqLgJK01rfohmf8QIlRuTQDw", "protected": "eyJhbGciOiJFZERTQSIsInR5cCI6IkpPU0UiLCJraWQiOiJrMSIsImprdSI6Imh0dHBzOi8vdGlkZXMuZXhhbXBsZS5jb20vandrcy5qc29uIn0"}]}}}, {"step": "jku", "request": {"method": "GET", "url": "https://tides.example.com/jwks.json"}, "response": {"status": 401}}]}"#,
            ),
        ],
        check: Check::Session(jwks_unreachable),
    }
}

fn jwks_unreachable(_: &Session, context: &Context<'_>, out: &mut Occurrences) {
    let signatures = context.signatures();
    if signatures.entries.is_empty() {
        out.not_applicable();
    } else if signatures.sets.is_empty() || signatures.sets.iter().any(|set| set.state == SetState::Refused) {
        out.not_evaluated(NotEvaluated::NoKeys);
    }
    for set in &signatures.sets {
        if let SetState::Unreachable(status) = set.state {
            let came = status.map_or_else(|| "no answer".to_owned(), |status| format!("status {status}"));
            out.add_at(set.place.as_str(), format!("the key set gave {came}"));
        }
    }
}

crate::rule! {
    /// The key set is a JWK Set.
    ///
    /// It is an object with an array `keys`, and every key says its `kty`. A map from names to PEM texts is something else, and
    /// verifiers find no key in it.
    static JWKS_INVALID = {
        id: "a2a/jwks-invalid",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: SINCE_0_3,
        on: &[Kind::AgentCard],
        evidence: Evidence::Live,
        place: "jku fetch",
        fix: "Publish a JWK Set.",
        spec: "RFC 7517 §5; A2A 1.0 §8.4.2",
        examples: &[
            fires(&["/jwks"], r#"{"signatures": [{"signature": "3hAa9t4ibGR3V-U6ff3n6Sptj0YdZjUo4F2QkvPs1kIWaVbap3VuKtX9ri4X_OTqLgJK01rfohmf8QIlRuTQDw", "protected": "eyJhbGciOiJFZERTQSIsInR5cCI6IkpPU0UiLCJraWQiOiJrMSIsImprdSI6Imh0dHBzOi8vdGlkZXMuZXhhbXBsZS5jb20vandrcy5qc29uIn0"}]}"#).given(r#"{"jwks": {"k1": "-----BEGIN PUBLIC KEY-----"}}"#),
            silent(r#"{"signatures": [{"signature": "3hAa9t4ibGR3V-U6ff3n6Sptj0YdZjUo4F2QkvPs1kIWaVbap3VuKtX9ri4X_OTqLgJK01rfohmf8QIlRuTQDw", "protected": "eyJhbGciOiJFZERTQSIsInR5cCI6IkpPU0UiLCJraWQiOiJrMSIsImprdSI6Imh0dHBzOi8vdGlkZXMuZXhhbXBsZS5jb20vandrcy5qc29uIn0"}]}"#).given(r#"{"jwks": {"keys": [{"kty": "OKP", "crv": "Ed25519", "x": "6kpsY-KcUgq-9VB7Ey7F-ZVHdq6-vnuSQh7qaRRG0iw", "kid": "k1"}]}}"#),
        ],
        check: Check::Document(jwks_invalid),
    }
}

fn jwks_invalid(card: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    each_set(card, context, out, |set, out| {
        if set.state == SetState::Malformed {
            out.add_at(set.place.as_str(), "it is no object with an array `keys` of objects that say their `kty`");
        }
    });
}

/// Looks at every key set that came.
fn each_set(card: Node<'_>, context: &Context<'_>, out: &mut Occurrences, look: impl Fn(&KeySet, &mut Occurrences)) {
    if card.get("signatures").is_none_or(|list| list.kind() != Type::Array || list.is_empty()) {
        return out.not_applicable();
    }
    let sets = &context.signatures().sets;
    if !sets.iter().any(|set| matches!(set.state, SetState::WellFormed | SetState::Malformed)) {
        out.not_evaluated(NotEvaluated::NoKeys);
    }
    sets.iter().for_each(|set| look(set, out));
}

crate::rule! {
    /// The key that a signature names is in the key set.
    ///
    /// A key that was taken out leaves every card signed with it unverifiable. That is not the same as a wrong signature.
    static JWKS_KEY_MISSING = {
        id: "a2a/jwks-key-missing",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        versions: SINCE_0_3,
        on: &[Kind::AgentCard],
        evidence: Evidence::Live,
        place: "jku fetch",
        fix: "Keep retired keys published until no card uses them.",
        spec: "A2A 1.0 §8.4.3",
        examples: &[
            fires(&["/signatures/0/protected"], r#"{"signatures": [{"signature": "3hAa9t4ibGR3V-U6ff3n6Sptj0YdZjUo4F2QkvPs1kIWaVbap3VuKtX9ri4X_OTqLgJK01rfohmf8QIlRuTQDw", "protected": "eyJhbGciOiJFZERTQSIsInR5cCI6IkpPU0UiLCJraWQiOiJrMSIsImprdSI6Imh0dHBzOi8vdGlkZXMuZXhhbXBsZS5jb20vandrcy5qc29uIn0"}]}"#).given(r#"{"jwks": {"keys": [{"kty": "OKP", "crv": "Ed25519", "x": "6kpsY-KcUgq-9VB7Ey7F-ZVHdq6-vnuSQh7qaRRG0iw", "kid": "k2"}]}}"#),
            silent(r#"{"signatures": [{"signature": "3hAa9t4ibGR3V-U6ff3n6Sptj0YdZjUo4F2QkvPs1kIWaVbap3VuKtX9ri4X_OTqLgJK01rfohmf8QIlRuTQDw", "protected": "eyJhbGciOiJFZERTQSIsInR5cCI6IkpPU0UiLCJraWQiOiJrMSIsImprdSI6Imh0dHBzOi8vdGlkZXMuZXhhbXBsZS5jb20vandrcy5qc29uIn0"}]}"#).given(r#"{"jwks": {"keys": [{"kty": "OKP", "crv": "Ed25519", "x": "6kpsY-KcUgq-9VB7Ey7F-ZVHdq6-vnuSQh7qaRRG0iw", "kid": "k1"}, {"kty": "OKP", "crv": "Ed25519", "x": "6kpsY-KcUgq-9VB7Ey7F-ZVHdq6-vnuSQh7qaRRG0iw", "kid": "k2"}]}}"#),
        ],
        check: Check::Document(jwks_key_missing),
    }
}

fn jwks_key_missing(card: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    let Some(signatures) = checked(card, context, out) else { return };
    at_entries(card, &signatures.entries, "protected", out, |entry| {
        let is_missing = entry.result == SignatureResult::KeyNotFound && entry.kid.is_some();
        is_missing.then(|| format!("no key is named {}: the signature was not checked", names_key(entry)))
    });
}

crate::rule! {
    /// A key set has one key of each name.
    ///
    /// Of two keys with one name verifiers may try only the first.
    static JWKS_KID_DUPLICATE = {
        id: "a2a/jwks-kid-duplicate",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        versions: SINCE_0_3,
        on: &[Kind::AgentCard],
        evidence: Evidence::Live,
        place: "jku fetch",
        fix: "Give each key its own kid.",
        spec: "RFC 7517 §4.5",
        examples: &[
            fires(&["/jwks/keys/1"], r#"{"signatures": [{"signature": "3hAa9t4ibGR3V-U6ff3n6Sptj0YdZjUo4F2QkvPs1kIWaVbap3VuKtX9ri4X_OTqLgJK01rfohmf8QIlRuTQDw", "protected": "eyJhbGciOiJFZERTQSIsInR5cCI6IkpPU0UiLCJraWQiOiJrMSIsImprdSI6Imh0dHBzOi8vdGlkZXMuZXhhbXBsZS5jb20vandrcy5qc29uIn0"}]}"#).given(r#"{"jwks": {"keys": [{"kty": "OKP", "crv": "Ed25519", "x": "E5j2LG0aRXxRumpLXz29L2n8qTIWIY3ImX5Ba9F9k8o", "kid": "k1"}, {"kty": "OKP", "crv": "Ed25519", "x": "6kpsY-KcUgq-9VB7Ey7F-ZVHdq6-vnuSQh7qaRRG0iw", "kid": "k1"}]}}"#),
            silent(r#"{"signatures": [{"signature": "3hAa9t4ibGR3V-U6ff3n6Sptj0YdZjUo4F2QkvPs1kIWaVbap3VuKtX9ri4X_OTqLgJK01rfohmf8QIlRuTQDw", "protected": "eyJhbGciOiJFZERTQSIsInR5cCI6IkpPU0UiLCJraWQiOiJrMSIsImprdSI6Imh0dHBzOi8vdGlkZXMuZXhhbXBsZS5jb20vandrcy5qc29uIn0"}]}"#).given(r#"{"jwks": {"keys": [{"kty": "OKP", "crv": "Ed25519", "x": "6kpsY-KcUgq-9VB7Ey7F-ZVHdq6-vnuSQh7qaRRG0iw", "kid": "k1"}, {"kty": "OKP", "crv": "Ed25519", "x": "6kpsY-KcUgq-9VB7Ey7F-ZVHdq6-vnuSQh7qaRRG0iw", "kid": "k2"}]}}"#),
        ],
        check: Check::Document(jwks_kid_duplicate),
    }
}

fn jwks_kid_duplicate(card: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    each_set(card, context, out, |set, out| {
        for place in &set.duplicates {
            out.add_at(place.as_str(), "a key before it has the same `kid` and `kty`");
        }
    });
}

crate::rule! {
    /// A key set holds public keys only.
    ///
    /// Who has the private part, or a symmetric key, can sign any card in this agent's name.
    static JWKS_PRIVATE_KEY = {
        id: "a2a/jwks-private-key",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        security: true,
        basis: Basis::Policy,
        versions: SINCE_0_3,
        on: &[Kind::AgentCard],
        evidence: Evidence::Live,
        place: "jku fetch",
        fix: "Replace the key at once and publish only public members.",
        spec: "RFC 7517 §9.2; RFC 7518 §6",
        examples: &[
            fires(&["/jwks/keys/0"], r#"{"signatures": [{"signature": "3hAa9t4ibGR3V-U6ff3n6Sptj0YdZjUo4F2QkvPs1kIWaVbap3VuKtX9ri4X_OTqLgJK01rfohmf8QIlRuTQDw", "protected": "eyJhbGciOiJFZERTQSIsInR5cCI6IkpPU0UiLCJraWQiOiJrMSIsImprdSI6Imh0dHBzOi8vdGlkZXMuZXhhbXBsZS5jb20vandrcy5qc29uIn0"}]}"#).given(r#"{"jwks": {"keys": [{"kty": "OKP", "crv": "Ed25519", "x": "6kpsY-KcUgq-9VB7Ey7F-ZVHdq6-vnuSQh7qaRRG0iw", "d": "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8", "kid": "k1"}]}}"#),
            silent(r#"{"signatures": [{"signature": "3hAa9t4ibGR3V-U6ff3n6Sptj0YdZjUo4F2QkvPs1kIWaVbap3VuKtX9ri4X_OTqLgJK01rfohmf8QIlRuTQDw", "protected": "eyJhbGciOiJFZERTQSIsInR5cCI6IkpPU0UiLCJraWQiOiJrMSIsImprdSI6Imh0dHBzOi8vdGlkZXMuZXhhbXBsZS5jb20vandrcy5qc29uIn0"}]}"#).given(r#"{"jwks": {"keys": [{"kty": "OKP", "crv": "Ed25519", "x": "6kpsY-KcUgq-9VB7Ey7F-ZVHdq6-vnuSQh7qaRRG0iw", "kid": "k1"}]}}"#),
        ],
        check: Check::Document(jwks_private_key),
    }
}

fn jwks_private_key(card: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    each_set(card, context, out, |set, out| {
        for (place, members) in &set.private {
            out.add_at(place.as_str(), format!("the key is published with `{}`", members.join("`, `")));
        }
    });
}

crate::rule! {
    /// The key that a signature names is for this algorithm and for signing.
    ///
    /// Verifiers refuse a key of another type, curve or use.
    static JWKS_KEY_MISMATCH = {
        id: "a2a/jwks-key-mismatch",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: SINCE_0_3,
        on: &[Kind::AgentCard],
        evidence: Evidence::Live,
        place: "jku fetch",
        fix: "Publish the right key under this kid.",
        spec: "RFC 7517 §4.2-§4.4; RFC 7518 §3.1",
        examples: &[
            fires(&["/signatures/0/protected"], r#"{"signatures": [{"signature": "3hAa9t4ibGR3V-U6ff3n6Sptj0YdZjUo4F2QkvPs1kIWaVbap3VuKtX9ri4X_OTqLgJK01rfohmf8QIlRuTQDw", "protected": "eyJhbGciOiJFZERTQSIsInR5cCI6IkpPU0UiLCJraWQiOiJrMSIsImprdSI6Imh0dHBzOi8vdGlkZXMuZXhhbXBsZS5jb20vandrcy5qc29uIn0"}]}"#).given(r#"{"jwks": {"keys": [{"kty": "OKP", "crv": "Ed25519", "x": "6kpsY-KcUgq-9VB7Ey7F-ZVHdq6-vnuSQh7qaRRG0iw", "use": "enc", "kid": "k1"}]}}"#),
            silent(r#"{"signatures": [{"signature": "3hAa9t4ibGR3V-U6ff3n6Sptj0YdZjUo4F2QkvPs1kIWaVbap3VuKtX9ri4X_OTqLgJK01rfohmf8QIlRuTQDw", "protected": "eyJhbGciOiJFZERTQSIsInR5cCI6IkpPU0UiLCJraWQiOiJrMSIsImprdSI6Imh0dHBzOi8vdGlkZXMuZXhhbXBsZS5jb20vandrcy5qc29uIn0"}]}"#).given(r#"{"jwks": {"keys": [{"kty": "OKP", "crv": "Ed25519", "x": "6kpsY-KcUgq-9VB7Ey7F-ZVHdq6-vnuSQh7qaRRG0iw", "kid": "k1"}]}}"#),
        ],
        check: Check::Document(jwks_key_mismatch),
    }
}

fn jwks_key_mismatch(card: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    let Some(signatures) = checked(card, context, out) else { return };
    at_entries(card, &signatures.entries, "protected", out, |entry| {
        let alg = entry.alg.as_deref().unwrap_or_default();
        (entry.result == SignatureResult::KeyMismatch)
            .then(|| format!("the key {} is not one for {}", names_key(entry), quote(alg)))
    });
}

crate::rule! {
    /// An RSA key has at least 2048 bits.
    ///
    /// Shorter keys can be broken, and verifiers refuse them.
    static JWKS_WEAK_KEY = {
        id: "a2a/jwks-weak-key",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        security: true,
        versions: SINCE_0_3,
        on: &[Kind::AgentCard],
        evidence: Evidence::Live,
        place: "jku fetch",
        fix: "Use at least 2048 bits.",
        spec: "RFC 7518 §3.3",
        examples: &[
            fires(&["/signatures/0/protected"], r#"{"signatures": [{"signature": "3hAa9t4ibGR3V-U6ff3n6Sptj0YdZjUo4F2QkvPs1kIWaVbap3VuKtX9ri4X_OTqLgJK01rfohmf8QIlRuTQDw", "protected": "eyJhbGciOiJSUzI1NiIsInR5cCI6IkpPU0UiLCJraWQiOiJrMSIsImprdSI6Imh0dHBzOi8vdGlkZXMuZXhhbXBsZS5jb20vandrcy5qc29uIn0"}]}"#).given(r#"{"jwks": {"keys": [{"kty": "RSA", "n": "wVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVU", "e": "AQAB", "kid": "k1"}]}}"#),
            silent(r#"{"signatures": [{"signature": "3hAa9t4ibGR3V-U6ff3n6Sptj0YdZjUo4F2QkvPs1kIWaVbap3VuKtX9ri4X_OTqLgJK01rfohmf8QIlRuTQDw", "protected": "eyJhbGciOiJFZERTQSIsInR5cCI6IkpPU0UiLCJraWQiOiJrMSIsImprdSI6Imh0dHBzOi8vdGlkZXMuZXhhbXBsZS5jb20vandrcy5qc29uIn0"}]}"#).given(r#"{"jwks": {"keys": [{"kty": "OKP", "crv": "Ed25519", "x": "6kpsY-KcUgq-9VB7Ey7F-ZVHdq6-vnuSQh7qaRRG0iw", "kid": "k1"}]}}"#),
        ],
        check: Check::Document(jwks_weak_key),
    }
}

fn jwks_weak_key(card: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    let Some(signatures) = checked(card, context, out) else { return };
    at_entries(card, &signatures.entries, "protected", out, |entry| {
        entry.weak_bits.map(|bits| format!("the key {} has {bits} bits", names_key(entry)))
    });
}

crate::rule! {
    /// A signature is over the card as it is served.
    ///
    /// Either the card was changed after it was signed, or the signature never belonged to it. It is held against every form
    /// that released software signs, not only against that of the specification.
    static SIGNATURE_INVALID = {
        id: "a2a/signature-invalid",
        severity: Severity::Error,
        impact: Some(Impact::Degrades),
        security: true,
        rank: 19,
        versions: SINCE_0_3,
        on: &[Kind::AgentCard],
        evidence: Evidence::Live,
        place: "/signatures/*/signature",
        fix: "Sign the card again after every change.",
        spec: "A2A 1.0 §8.4.1, §8.4.3",
        seeds: &["reader:Invalid signature"],
        examples: &[
            fires(&["/signatures/0/signature"], r#"{"signatures": [{"signature": "3hAa9t4ibGR3V-U6ff3n6Sptj0YdZjUo4F2QkvPs1kIWaVbap3VuKtX9ri4X_OTqLgJK01rfohmf8QIlRuTQDw", "protected": "eyJhbGciOiJFZERTQSIsInR5cCI6IkpPU0UiLCJraWQiOiJrMSIsImprdSI6Imh0dHBzOi8vdGlkZXMuZXhhbXBsZS5jb20vandrcy5qc29uIn0"}]}"#).given(r#"{"jwks": {"keys": [{"kty": "OKP", "crv": "Ed25519", "x": "E5j2LG0aRXxRumpLXz29L2n8qTIWIY3ImX5Ba9F9k8o", "kid": "k1"}]}}"#),
            fires(&["/signatures/0/signature"], r#"{"version": "2.1.1", "signatures": [{"signature": "3hAa9t4ibGR3V-U6ff3n6Sptj0YdZjUo4F2QkvPs1kIWaVbap3VuKtX9ri4X_OTqLgJK01rfohmf8QIlRuTQDw", "protected": "eyJhbGciOiJFZERTQSIsInR5cCI6IkpPU0UiLCJraWQiOiJrMSIsImprdSI6Imh0dHBzOi8vdGlkZXMuZXhhbXBsZS5jb20vandrcy5qc29uIn0"}]}"#).given(r#"{"jwks": {"keys": [{"kty": "OKP", "crv": "Ed25519", "x": "6kpsY-KcUgq-9VB7Ey7F-ZVHdq6-vnuSQh7qaRRG0iw", "kid": "k1"}]}}"#),
            silent(r#"{"signatures": [{"signature": "3hAa9t4ibGR3V-U6ff3n6Sptj0YdZjUo4F2QkvPs1kIWaVbap3VuKtX9ri4X_OTqLgJK01rfohmf8QIlRuTQDw", "protected": "eyJhbGciOiJFZERTQSIsInR5cCI6IkpPU0UiLCJraWQiOiJrMSIsImprdSI6Imh0dHBzOi8vdGlkZXMuZXhhbXBsZS5jb20vandrcy5qc29uIn0"}]}"#).given(r#"{"jwks": {"keys": [{"kty": "OKP", "crv": "Ed25519", "x": "6kpsY-KcUgq-9VB7Ey7F-ZVHdq6-vnuSQh7qaRRG0iw", "kid": "k1"}]}}"#),
            silent(r#"{"signatures": [{"signature": "3hAa9t4ibGR3V-U6ff3n6Sptj0YdZjUo4F2QkvPs1kIWaVbap3VuKtX9ri4X_OTqLgJK01rfohmf8QIlRuTQDw", "protected": "eyJhbGciOiJFZERTQSIsInR5cCI6IkpPU0UiLCJraWQiOiJrMSIsImprdSI6Imh0dHBzOi8vdGlkZXMuZXhhbXBsZS5jb20vandrcy5qc29uIn0"}]}"#).given(r#"{"jwks": {"keys": [{"kty": "OKP", "crv": "Ed25519", "x": "6kpsY-KcUgq-9VB7Ey7F-ZVHdq6-vnuSQh7qaRRG0iw", "kid": "k2"}]}}"#).beside(&["a2a/jwks-key-missing"]),
        ],
        check: Check::Document(signature_invalid),
    }
}

fn signature_invalid(card: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    let Some(signatures) = verified(card, context, out) else { return };
    at_entries(card, &signatures.entries, "signature", out, |entry| {
        // A header that forbids to accept it has a rule of its own.
        (entry.result == SignatureResult::Invalid && entry.was_held_against_key)
            .then(|| format!("the key {} did not sign this card, in no known form", names_key(entry)))
    });
}

/// The checked signatures, once one of them was held against its key.
fn verified<'c>(card: Node<'_>, context: &Context<'c>, out: &mut Occurrences) -> Option<&'c Signatures> {
    let signatures = checked(card, context, out)?;
    if !signatures.entries.iter().any(|entry| entry.was_held_against_key) {
        out.not_evaluated(NotEvaluated::NoKeys);
    }
    Some(signatures)
}

crate::rule! {
    /// A signature is over the form that the specification prints.
    ///
    /// This one is valid, but over a form that some software uses instead. Verifiers that follow the specification reject it, and
    /// some of these forms leave out members that matter, such as a requirement without scopes.
    static SIGNATURE_NONCANONICAL = {
        id: "a2a/signature-noncanonical",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        basis: Basis::Policy,
        versions: SINCE_0_3,
        on: &[Kind::AgentCard],
        evidence: Evidence::Live,
        place: "/signatures/*/signature",
        fix: "Sign over the form of §8.4.1.",
        spec: "A2A 1.0 §8.4.1",
        seeds: &["reader:Invalid signature"],
        examples: &[
            fires(&["/signatures/0/signature"], r#"{"signatures": [{"signature": "2tpYxczVhCywEQGeb8b9SL8QV5rVKiNwcew_ZzCaRkj4iwqINKOOYKxxnFXdA_xqqBvxY1n0FIPUP14GUyR9DQ", "protected": "eyJhbGciOiJFZERTQSIsInR5cCI6IkpPU0UiLCJraWQiOiJrMSIsImprdSI6Imh0dHBzOi8vdGlkZXMuZXhhbXBsZS5jb20vandrcy5qc29uIn0"}]}"#).given(r#"{"jwks": {"keys": [{"kty": "OKP", "crv": "Ed25519", "x": "6kpsY-KcUgq-9VB7Ey7F-ZVHdq6-vnuSQh7qaRRG0iw", "kid": "k1"}]}}"#),
            silent(r#"{"signatures": [{"signature": "3hAa9t4ibGR3V-U6ff3n6Sptj0YdZjUo4F2QkvPs1kIWaVbap3VuKtX9ri4X_OTqLgJK01rfohmf8QIlRuTQDw", "protected": "eyJhbGciOiJFZERTQSIsInR5cCI6IkpPU0UiLCJraWQiOiJrMSIsImprdSI6Imh0dHBzOi8vdGlkZXMuZXhhbXBsZS5jb20vandrcy5qc29uIn0"}]}"#).given(r#"{"jwks": {"keys": [{"kty": "OKP", "crv": "Ed25519", "x": "6kpsY-KcUgq-9VB7Ey7F-ZVHdq6-vnuSQh7qaRRG0iw", "kid": "k1"}]}}"#),
        ],
        check: Check::Document(signature_noncanonical),
    }
}

fn signature_noncanonical(card: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    let Some(signatures) = verified(card, context, out) else { return };
    at_entries(card, &signatures.entries, "signature", out, |entry| {
        let form = entry.form.filter(|form| *form != PayloadForm::Spec)?;
        Some(format!("it is over form {form}, {}", described(form)))
    });
}

fn described(form: PayloadForm) -> &'static str {
    match form {
        PayloadForm::Spec => "the one of A2A 1.0 §8.4.1",
        PayloadForm::Sdk => "which leaves out everything empty",
        PayloadForm::Raw => "the card as served",
        PayloadForm::PyEscaped => "which escapes all but ASCII",
        PayloadForm::Sdk03 => "the one of the Python SDK for 0.3",
    }
}

crate::rule! {
    /// A valid signature covers the whole card.
    ///
    /// Whoever serves the card can change these members without anybody noticing.
    static SIGNATURE_UNCOVERED_MEMBERS = {
        id: "a2a/signature-uncovered-members",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        security: true,
        basis: Basis::Policy,
        versions: SINCE_0_3,
        on: &[Kind::AgentCard],
        evidence: Evidence::Live,
        place: "/**",
        fix: "Remove the members or sign a form that has them.",
        spec: "A2A 1.0 §8.4.1",
        examples: &[
            fires(&["/motto"], r#"{"motto": "On time and tide", "signatures": [{"signature": "3hAa9t4ibGR3V-U6ff3n6Sptj0YdZjUo4F2QkvPs1kIWaVbap3VuKtX9ri4X_OTqLgJK01rfohmf8QIlRuTQDw", "protected": "eyJhbGciOiJFZERTQSIsInR5cCI6IkpPU0UiLCJraWQiOiJrMSIsImprdSI6Imh0dHBzOi8vdGlkZXMuZXhhbXBsZS5jb20vandrcy5qc29uIn0"}]}"#).given(r#"{"jwks": {"keys": [{"kty": "OKP", "crv": "Ed25519", "x": "6kpsY-KcUgq-9VB7Ey7F-ZVHdq6-vnuSQh7qaRRG0iw", "kid": "k1"}]}}"#),
            silent(r#"{"signatures": [{"signature": "2tpYxczVhCywEQGeb8b9SL8QV5rVKiNwcew_ZzCaRkj4iwqINKOOYKxxnFXdA_xqqBvxY1n0FIPUP14GUyR9DQ", "protected": "eyJhbGciOiJFZERTQSIsInR5cCI6IkpPU0UiLCJraWQiOiJrMSIsImprdSI6Imh0dHBzOi8vdGlkZXMuZXhhbXBsZS5jb20vandrcy5qc29uIn0"}]}"#).given(r#"{"jwks": {"keys": [{"kty": "OKP", "crv": "Ed25519", "x": "6kpsY-KcUgq-9VB7Ey7F-ZVHdq6-vnuSQh7qaRRG0iw", "kid": "k1"}]}}"#).beside(&["a2a/signature-noncanonical"]),
        ],
        check: Check::Document(signature_uncovered_members),
    }
}

fn signature_uncovered_members(card: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    let Some(signatures) = verified(card, context, out) else { return };
    let valid: Vec<_> = signatures.entries.iter().filter(|entry| entry.form.is_some()).collect();
    // One good signature is enough, so what one of them covers is covered.
    let Some((first, others)) = valid.split_first() else { return };
    for pointer in &first.left_out {
        if others.iter().all(|entry| entry.left_out.contains(pointer))
            && let Some(node) = card.document().pointer(pointer)
        {
            out.add(node, "no signature covers it");
        }
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    use ring::signature::Ed25519KeyPair;

    use super::*;
    use crate::document::Document;

    const CARD: &str = include_str!("../../examples/a2a-1.0.json");

    /// The examples are signed with the Ed25519 key whose seed is 32 times 7. When the base document changes, the two
    /// signatures that this prints take the place of those in the examples.
    #[test]
    fn the_examples_are_signed_over_the_base_document() {
        let key = Ed25519KeyPair::from_seed_unchecked(&[7; 32]).expect("a seed has 32 bytes");
        let header = r#"{"alg":"EdDSA","typ":"JOSE","kid":"k1","jku":"https://tides.example.com/jwks.json"}"#;
        let protected = URL_SAFE_NO_PAD.encode(header);
        let card = Document::from_text(CARD);
        let card = card.root().expect("the base document parses");
        for (form, rule) in [(PayloadForm::Spec, &SIGNATURE_INVALID), (PayloadForm::Raw, &SIGNATURE_NONCANONICAL)] {
            let payload = super::super::payload::payload(card, form);
            let input = crate::jose::signing_input(&protected, &payload.text);
            let signature = URL_SAFE_NO_PAD.encode(key.sign(input.as_bytes()));
            assert!(rule.examples[0].text.contains(&signature), "{form}: {signature}");
        }
    }
}
