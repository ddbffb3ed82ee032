//! Signatures, as far as the card alone tells: the entries and their protected headers. `keys` verifies them.

use std::collections::HashSet;

use super::interfaces::endpoints;
use super::required::is_blank;
use super::table::SINCE_0_3;
use crate::document::{Node, Type};
use crate::jose::{Algorithm, protected_header};
use crate::judge::{Context, Occurrences};
use crate::kind::Kind;
use crate::rule::{Basis, Check, Class, Impact, Rule, Severity, Stops, fires, silent};
use crate::text::{AbsoluteUrl, host_is_loopback, quote, same_site};

/// These end the work on an entry or on its header, so they stand before all others.
pub(super) const SHAPES: &[&Rule] = &[&SIGNATURES_INVALID, &SIGNATURE_PROTECTED_UNREADABLE];

pub(super) const RULES: &[&Rule] = &[
    &SIGNATURE_ABSENT,
    &SIGNATURE_HEADER_INCOMPLETE,
    &SIGNATURE_TYP,
    &SIGNATURE_ALG_NONE,
    &SIGNATURE_ALG_SYMMETRIC,
    &SIGNATURE_ALG_UNSUPPORTED,
    &SIGNATURE_CRIT_UNKNOWN,
    &SIGNATURE_HEADER_OVERLAP,
    &SIGNATURE_JKU_HTTP,
    &SIGNATURE_JKU_FOREIGN,
    &SIGNATURE_JKU_MISSING,
];

/// The entries that are objects.
pub(super) fn entries(card: Node<'_>) -> impl Iterator<Item = Node<'_>> {
    card.get("signatures").into_iter().flat_map(Node::items).filter(|entry| entry.kind() == Type::Object)
}

pub(super) fn has_odd_header(entry: Node<'_>) -> bool {
    entry.given("header").is_some_and(|header| header.kind() != Type::Object)
}

/// Looks at every readable protected header, with its place in the card.
fn each_header<'d>(card: Node<'d>, mut f: impl FnMut(Node<'d>, Node<'_>)) {
    for entry in entries(card).filter(|entry| !has_odd_header(*entry)) {
        let Some(protected) = entry.get("protected") else { continue };
        if let Some(header) = protected.text().and_then(protected_header)
            && let Some(root) = header.root()
        {
            f(protected, root);
        }
    }
}

pub(super) fn algorithm<'h>(header: Node<'h>) -> Option<&'h str> {
    header.get("alg").and_then(Node::text).filter(|text| !is_blank(text))
}

crate::rule! {
    /// `signatures` is a list of signatures.
    ///
    /// Each has a `protected` header and a `signature`, both strings, and may have a `header` object.
    static SIGNATURES_INVALID = {
        id: "a2a/signatures-invalid",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: SINCE_0_3,
        on: &[Kind::AgentCard],
        place: "/signatures, /signatures/*, /signatures/*/header",
        fix: "Use an array of {protected, signature}.",
        spec: "A2A 1.0 §4.4.7, §8.4.2",
        seeds: &["gaip:A2A_SIGNATURES_INVALID"],
        examples: &[
            fires(&["/signatures"], r#"{"signatures": {"protected": "e30", "signature": "AA"}}"#),
            fires(&["/signatures/0"], r#"{"signatures": [{"protected": "e30"}]}"#),
            fires(&["/signatures/0/header"], r#"{"signatures": [{"protected": "e30", "signature": "AA", "header": "x"}]}"#),
            silent(SIGNED),
        ],
        stops: Stops::Value,
        check: Check::Document(signatures_invalid),
    }
}

fn signatures_invalid(card: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if let Some(signatures) = card.given("signatures")
        && signatures.kind() != Type::Array
    {
        out.add(signatures, format!("`signatures` is {}, not an array", signatures.kind().named()));
    }
    for entry in entries(card) {
        let has_text = |member: &str| entry.get(member).is_some_and(|node| node.kind() == Type::String);
        if !has_text("protected") || !has_text("signature") {
            out.add(entry, "a signature needs the strings `protected` and `signature`");
        } else if let Some(header) = entry.given("header").filter(|_| has_odd_header(entry)) {
            out.add(header, format!("`header` is {}, not an object", header.kind().named()));
        }
    }
}

/// A card with one readable signature: ES256, JOSE, key k1 at tides.example.com.
const SIGNED: &str = r#"{"signatures": [{"signature": "c2lnbmF0dXJl", "protected": "eyJhbGciOiJFUzI1NiIsInR5cCI6IkpPU0UiLCJraWQiOiJrMSIsImprdSI6Imh0dHBzOi8vdGlkZXMuZXhhbXBsZS5jb20vandrcy5qc29uIn0"}]}"#;

crate::rule! {
    /// A protected header can be read.
    ///
    /// It is unpadded base64url of one JSON object in which no name stands twice. Otherwise nobody can check the signature.
    static SIGNATURE_PROTECTED_UNREADABLE = {
        id: "a2a/signature-protected-unreadable",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: SINCE_0_3,
        on: &[Kind::AgentCard],
        place: "/signatures/*/protected",
        fix: "Encode the header as base64url without padding.",
        spec: "A2A 1.0 §8.4.2; RFC 7515 §2, §4",
        seeds: &["reader:Unreadable protected header"],
        examples: &[
            fires(&["/signatures/0/protected"], r#"{"signatures": [{"protected": "e30=", "signature": "AA"}]}"#),
            fires(&["/signatures/0/protected"], r#"{"signatures": [{"protected": "W10", "signature": "AA"}]}"#),
            fires(&["/signatures/0/protected"], r#"{"signatures": [{"protected": "{}", "signature": "AA"}]}"#),
            silent(SIGNED),
        ],
        stops: Stops::Value,
        check: Check::Document(signature_protected_unreadable),
    }
}

fn signature_protected_unreadable(card: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for entry in entries(card).filter(|entry| !has_odd_header(*entry)) {
        if let Some(protected) = entry.get("protected")
            && let Some(text) = protected.text()
            && protected_header(text).is_none()
        {
            out.add(protected, format!("{} is not base64url of a JSON object", quote(text)));
        }
    }
}

crate::rule! {
    /// The card is not signed.
    ///
    /// A signature is optional; without one nobody can tell whether the card was changed on its way.
    static SIGNATURE_ABSENT = {
        id: "a2a/signature-absent",
        class: Class::Fact,
        basis: Basis::Hint,
        versions: &["1.0"],
        on: &[Kind::AgentCard],
        place: "/signatures",
        fix: "Sign the card.",
        spec: "A2A 1.0 §8.4",
        examples: &[
            fires(&["/signatures"], "{}"),
            fires(&["/signatures"], r#"{"signatures": []}"#),
            silent(SIGNED),
        ],
        check: Check::Document(signature_absent),
    }
}

fn signature_absent(card: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if card.given("signatures").is_none_or(|list| list.kind() == Type::Array && list.is_empty()) {
        out.add_missing(card, "signatures", "the card is not signed");
    }
}

crate::rule! {
    /// A protected header names its algorithm and its key.
    ///
    /// Only what is protected counts: a key named outside can be exchanged by anybody.
    static SIGNATURE_HEADER_INCOMPLETE = {
        id: "a2a/signature-header-incomplete",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: SINCE_0_3,
        on: &[Kind::AgentCard],
        place: "/signatures/*/protected",
        fix: "Put alg and kid into the protected header.",
        spec: "A2A 1.0 §8.4.2",
        seeds: &["reader:Header lacks alg or kid"],
        examples: &[
            fires(
                &["/signatures/0/protected"],
                // {"alg":"ES256","typ":"JOSE","jku":"https://tides.example.com/jwks.json"}
                r#"{"signatures": [{"signature": "AA", "header": {"kid": "k1"}, "protected": "eyJhbGciOiJFUzI1NiIsInR5cCI6IkpPU0UiLCJqa3UiOiJodHRwczovL3RpZGVzLmV4YW1wbGUuY29tL2p3a3MuanNvbiJ9"}]}"#,
            ),
            silent(SIGNED),
        ],
        check: Check::Document(signature_header_incomplete),
    }
}

fn signature_header_incomplete(card: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    each_header(card, |protected, header| {
        let says = |member: &&str| header.get(member).and_then(Node::text).is_some_and(|text| !text.is_empty());
        let missing: Vec<_> = ["alg", "kid"].into_iter().filter(|member| !says(member)).collect();
        if !missing.is_empty() {
            out.add(protected, format!("the header has no `{}`", missing.join("` and no `")));
        }
    });
}

crate::rule! {
    /// A protected header says what it belongs to.
    ///
    /// `typ` should be `JOSE`; it keeps a signature from being taken for a token.
    static SIGNATURE_TYP = {
        id: "a2a/signature-typ",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        versions: SINCE_0_3,
        on: &[Kind::AgentCard],
        place: "/signatures/*/protected",
        fix: "Set \"typ\": \"JOSE\".",
        spec: "A2A 1.0 §8.4.2; RFC 7515 §4.1.9",
        seeds: &["reader:typ is not JOSE"],
        examples: &[
            fires(
                &["/signatures/0/protected"],
                // {"alg":"ES256","typ":"JWT","kid":"k1","jku":"https://tides.example.com/jwks.json"}
                r#"{"signatures": [{"signature": "AA", "protected": "eyJhbGciOiJFUzI1NiIsInR5cCI6IkpXVCIsImtpZCI6ImsxIiwiamt1IjoiaHR0cHM6Ly90aWRlcy5leGFtcGxlLmNvbS9qd2tzLmpzb24ifQ"}]}"#,
            ),
            silent(SIGNED),
        ],
        check: Check::Document(signature_typ),
    }
}

fn signature_typ(card: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    each_header(card, |protected, header| {
        let kind = header.get("typ").and_then(Node::text).unwrap_or_default().to_ascii_lowercase();
        match kind.strip_prefix("application/").unwrap_or(&kind) {
            "jose" => {}
            "" => drop(out.add(protected, "the header has no `typ`")),
            other => drop(out.add(protected, format!("`typ` is {}, not JOSE", quote(other)))),
        }
    });
}

crate::rule! {
    /// A signature is one.
    ///
    /// `alg` none means that nothing was signed at all, and verifiers that take it accept every change.
    static SIGNATURE_ALG_NONE = {
        id: "a2a/signature-alg-none",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        security: true,
        versions: SINCE_0_3,
        on: &[Kind::AgentCard],
        place: "/signatures/*/protected",
        fix: "Sign with ES256, RS256 or EdDSA.",
        spec: "A2A 1.0 §8.4; RFC 8725 §3.2",
        seeds: &["reader:alg \"none\""],
        examples: &[
            fires(
                &["/signatures/0/protected"],
                // {"alg":"None","typ":"JOSE","kid":"k1","jku":"https://tides.example.com/jwks.json"}
                r#"{"signatures": [{"signature": "", "protected": "eyJhbGciOiJOb25lIiwidHlwIjoiSk9TRSIsImtpZCI6ImsxIiwiamt1IjoiaHR0cHM6Ly90aWRlcy5leGFtcGxlLmNvbS9qd2tzLmpzb24ifQ"}]}"#,
            ),
            silent(SIGNED),
        ],
        check: Check::Document(signature_alg_none),
    }
}

fn signature_alg_none(card: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    each_header(card, |protected, header| {
        if algorithm(header).is_some_and(is_none) {
            out.add(protected, "`alg` is none: nothing is signed");
        }
    });
}

pub(super) fn is_none(algorithm: &str) -> bool {
    algorithm.eq_ignore_ascii_case("none")
}

crate::rule! {
    /// A card is signed with a key pair.
    ///
    /// Who can check an HMAC can also make one, so a shared secret proves nothing to the public.
    static SIGNATURE_ALG_SYMMETRIC = {
        id: "a2a/signature-alg-symmetric",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        security: true,
        basis: Basis::Policy,
        versions: SINCE_0_3,
        on: &[Kind::AgentCard],
        place: "/signatures/*/protected",
        fix: "Use an asymmetric algorithm.",
        spec: "RFC 8725 §3.1, §3.2",
        examples: &[
            fires(
                &["/signatures/0/protected"],
                // {"alg":"HS256","typ":"JOSE","kid":"k1","jku":"https://tides.example.com/jwks.json"}
                r#"{"signatures": [{"signature": "AA", "protected": "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpPU0UiLCJraWQiOiJrMSIsImprdSI6Imh0dHBzOi8vdGlkZXMuZXhhbXBsZS5jb20vandrcy5qc29uIn0"}]}"#,
            ),
            silent(SIGNED),
        ],
        check: Check::Document(signature_alg_symmetric),
    }
}

fn signature_alg_symmetric(card: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    each_header(card, |protected, header| {
        if let Some(name @ ("HS256" | "HS384" | "HS512")) = algorithm(header) {
            out.add(protected, format!("`alg` is {name}, which needs a shared secret"));
        }
    });
}

crate::rule! {
    /// A signature uses an algorithm that is commonly known.
    ///
    /// This one is not checked here, and many verifiers will not either.
    static SIGNATURE_ALG_UNSUPPORTED = {
        id: "a2a/signature-alg-unsupported",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        basis: Basis::Policy,
        versions: SINCE_0_3,
        on: &[Kind::AgentCard],
        place: "/signatures/*/protected",
        fix: "Use a common algorithm.",
        spec: "RFC 7518 §3.1; A2A 1.0 §8.4.2",
        examples: &[
            fires(
                &["/signatures/0/protected"],
                // {"alg":"ES256K","typ":"JOSE","kid":"k1","jku":"https://tides.example.com/jwks.json"}
                r#"{"signatures": [{"signature": "AA", "protected": "eyJhbGciOiJFUzI1NksiLCJ0eXAiOiJKT1NFIiwia2lkIjoiazEiLCJqa3UiOiJodHRwczovL3RpZGVzLmV4YW1wbGUuY29tL2p3a3MuanNvbiJ9"}]}"#,
            ),
            silent(SIGNED),
        ],
        check: Check::Document(signature_alg_unsupported),
    }
}

fn signature_alg_unsupported(card: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    each_header(card, |protected, header| {
        if let Some(name) = algorithm(header)
            && !is_none(name)
            && !name.starts_with("HS")
            && name.parse::<Algorithm>().is_err()
        {
            out.add(protected, format!("`alg` {} is not checked", quote(name)));
        }
    });
}

crate::rule! {
    /// A protected header demands nothing that verifiers cannot know.
    ///
    /// Who does not understand a name in `crit` has to reject the signature, whatever the mathematics say.
    static SIGNATURE_CRIT_UNKNOWN = {
        id: "a2a/signature-crit-unknown",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: SINCE_0_3,
        on: &[Kind::AgentCard],
        place: "/signatures/*/protected",
        fix: "Remove crit.",
        spec: "RFC 7515 §4.1.11",
        examples: &[
            fires(
                &["/signatures/0/protected"],
                // {"alg":"ES256","typ":"JOSE","kid":"k1","jku":"https://tides.example.com/jwks.json","crit":["exp"],"exp":1}
                r#"{"signatures": [{"signature": "AA", "protected": "eyJhbGciOiJFUzI1NiIsInR5cCI6IkpPU0UiLCJraWQiOiJrMSIsImprdSI6Imh0dHBzOi8vdGlkZXMuZXhhbXBsZS5jb20vandrcy5qc29uIiwiY3JpdCI6WyJleHAiXSwiZXhwIjoxfQ"}]}"#,
            ),
            silent(SIGNED),
        ],
        check: Check::Document(signature_crit_unknown),
    }
}

fn signature_crit_unknown(card: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    each_header(card, |protected, header| {
        // No extension of JWS is processed here, so every `crit` demands too much, an empty or misshapen one too.
        if let Some(critical) = header.get("crit") {
            out.add(protected, format!("`crit` is {}", quote(critical.raw())));
        }
    });
}

crate::rule! {
    /// The two headers of a signature share no name.
    ///
    /// JWS forbids it: of a parameter with two values nobody can say which one counts.
    static SIGNATURE_HEADER_OVERLAP = {
        id: "a2a/signature-header-overlap",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: SINCE_0_3,
        on: &[Kind::AgentCard],
        place: "/signatures/*/header",
        fix: "Keep each parameter in one of the two headers.",
        spec: "RFC 7515 §4, §7.2.1",
        examples: &[
            fires(
                &["/signatures/0/header"],
                r#"{"signatures": [{"signature": "AA", "header": {"alg": "ES256"}, "protected": "eyJhbGciOiJFUzI1NiIsInR5cCI6IkpPU0UiLCJraWQiOiJrMSIsImprdSI6Imh0dHBzOi8vdGlkZXMuZXhhbXBsZS5jb20vandrcy5qc29uIn0"}]}"#,
            ),
            silent(SIGNED),
        ],
        check: Check::Document(signature_header_overlap),
    }
}

fn signature_header_overlap(card: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    each_header(card, |protected, header| {
        let Some(open) = protected.parent().and_then(|entry| entry.given("header")) else { return };
        let names: HashSet<_> = header.members().map(|(name, _)| name).collect();
        if let Some((name, _)) = open.members().find(|(name, _)| names.contains(name)) {
            out.add(open, format!("{} stands in the protected header too", quote(name)));
        }
    });
}

crate::rule! {
    /// The key set is fetched over TLS.
    ///
    /// Over plain http everybody on the way can put a key of their own in its place. It is not fetched.
    static SIGNATURE_JKU_HTTP = {
        id: "a2a/signature-jku-http",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        security: true,
        versions: SINCE_0_3,
        on: &[Kind::AgentCard],
        place: "/signatures/*/protected",
        fix: "Serve the key set over https.",
        spec: "A2A 1.0 §8.4.3; RFC 7515 §4.1.2",
        seeds: &["reader:jku over plain HTTP"],
        examples: &[
            fires(
                &["/signatures/0/protected"],
                // {"alg":"ES256","typ":"JOSE","kid":"k1","jku":"http://tides.example.com/jwks.json"}
                r#"{"signatures": [{"signature": "AA", "protected": "eyJhbGciOiJFUzI1NiIsInR5cCI6IkpPU0UiLCJraWQiOiJrMSIsImprdSI6Imh0dHA6Ly90aWRlcy5leGFtcGxlLmNvbS9qd2tzLmpzb24ifQ"}]}"#,
            ),
            silent(SIGNED),
        ],
        check: Check::Document(signature_jku_http),
    }
}

fn signature_jku_http(card: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    each_header(card, |protected, header| {
        if let Some(address) = header.given("jku") {
            let url = address.text().and_then(AbsoluteUrl::http);
            if !url.is_some_and(|url| url.is("https") || host_is_loopback(url.host)) {
                out.add(protected, format!("`jku` is {}", quote(address.raw())));
            }
        }
    });
}

crate::rule! {
    /// The key set is at home with the agent or its provider.
    ///
    /// A key from elsewhere shows that the card is whole, not who signed it.
    static SIGNATURE_JKU_FOREIGN = {
        id: "a2a/signature-jku-foreign",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        security: true,
        basis: Basis::Policy,
        versions: SINCE_0_3,
        on: &[Kind::AgentCard],
        place: "/signatures/*/protected",
        fix: "Host the key set on the agent's or provider's domain.",
        spec: "A2A 1.0 §8.4.3; upstream issue 2096",
        examples: &[
            fires(
                &["/signatures/0/protected"],
                // {"alg":"ES256","typ":"JOSE","kid":"k1","jku":"https://keys.example.net/jwks.json"}
                r#"{"signatures": [{"signature": "AA", "protected": "eyJhbGciOiJFUzI1NiIsInR5cCI6IkpPU0UiLCJraWQiOiJrMSIsImprdSI6Imh0dHBzOi8va2V5cy5leGFtcGxlLm5ldC9qd2tzLmpzb24ifQ"}]}"#,
            ),
            silent(SIGNED),
        ],
        check: Check::Document(signature_jku_foreign),
    }
}

fn signature_jku_foreign(card: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    each_header(card, |protected, header| {
        let Some(address) = header.get("jku").and_then(Node::text) else { return };
        if let Some(url) = AbsoluteUrl::parse(address)
            && !host_is_loopback(url.host)
            && !is_at_home(url.host, card, context)
        {
            out.add(protected, format!("`jku` {} is neither the agent's nor its provider's", quote(address)));
        }
    });
}

/// Whether a host belongs to the domain of the card, of an interface or of the provider.
fn is_at_home(host: &str, card: Node<'_>, context: &Context<'_>) -> bool {
    let provider = card.get("provider").and_then(|provider| provider.get("url")).and_then(Node::text);
    let own = context.address().into_iter().chain(provider);
    own.chain(endpoints(card, context).map(|endpoint| endpoint.text))
        .any(|text| same_site(super::interfaces::host_of(text), host))
}

crate::rule! {
    /// A signature does not say where its key is.
    ///
    /// Who has not got the key already cannot check it.
    static SIGNATURE_JKU_MISSING = {
        id: "a2a/signature-jku-missing",
        basis: Basis::Policy,
        versions: SINCE_0_3,
        on: &[Kind::AgentCard],
        place: "/signatures/*/protected",
        fix: "Add jku or give the key to your verifiers.",
        spec: "A2A 1.0 §8.4.2",
        examples: &[
            fires(
                &["/signatures/0/protected"],
                // {"alg":"ES256","typ":"JOSE","kid":"k1"}
                r#"{"signatures": [{"signature": "AA", "protected": "eyJhbGciOiJFUzI1NiIsInR5cCI6IkpPU0UiLCJraWQiOiJrMSJ9"}]}"#,
            ),
            silent(SIGNED),
        ],
        check: Check::Document(signature_jku_missing),
    }
}

fn signature_jku_missing(card: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    if context.given.jwks.is_some() {
        return;
    }
    each_header(card, |protected, header| {
        if header.given("jku").is_none() {
            out.add(protected, "the header has no `jku`");
        }
    });
}
