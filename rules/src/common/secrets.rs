//! Credentials that stand in a public document: those that show by their form, and those that a name gives away.
//!
//! No message, pointer or log repeats one: a hit is shown by its first four characters and its length.

use crate::document::{Node, Type};
use crate::judge::{Context, Occurrences};
use crate::rule::{Basis, Check, Impact, Rule, Severity, fires, silent};
use crate::text::{AbsoluteUrl, MediaType, is_placeholder, quote};

use super::credentials;
use super::strings::{keys, name, names_above, says, snake, strings};
use super::urls::credential_in;

pub(super) const RULES: &[&Rule] = &[&SECRET_PATTERN, &SECRET_IN_FIELD, &SECRET_HIGH_ENTROPY];

crate::rule! {
    /// A credential stands in the document.
    ///
    /// Its form leaves little doubt, and whoever reads the document can use it. It is worthless only once it is revoked:
    /// copies of a public document stay where they are.
    static SECRET_PATTERN = {
        id: "common/secret-pattern",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        security: true,
        rank: 40,
        basis: Basis::Policy,
        place: "/**",
        fix: "Remove the credential from the public document and revoke it.",
        spec: "crawler policy",
        seeds: &["gaip:SECRET_BEARING_FIELD_BLOCKED", "inspector:embedded-secrets", "validator:4.4.2.2"],
        examples: &[
            fires(&["/description"], r#"{"description": "Tides. Send Bearer q7Zk29LmXv81TtRw03PbNc55 along."}"#),
            fires(
                &["/skills/0/examples/1"],
                r#"{"skills": [{"examples": ["When is high water?", "-----BEGIN EC PRIVATE KEY-----\nMHcCAQEEIB"]}]}"#,
            ),
            fires(
                &["/capabilities/extensions/0/params/private_key"],
                in_params!(r#"{"type": "service_account", "private_key": "MIIEvQIBADANBgkq"}"#),
            ),
            fires(
                &["/capabilities/extensions/0/params"],
                in_params!(r#"{"-----BEGIN PRIVATE KEY-----": "for the tide gauge"}"#),
            ),
            silent(r#"{"description": "Send `Authorization: Bearer <token>` or Bearer {access_token} along."}"#),
            silent(r#"{"description": "Keys look like AKIAIOSFODNN7EXAMPLE or sk-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx."}"#),
            silent(r#"{"description": "Ask for a risk-assessment-of-harbours-at-low-water-and-spring-tide, please."}"#),
            silent(in_params!(r#"{"cert": "-----BEGIN PUBLIC KEY-----\nMFkwEwYH"}"#)),
            silent(in_params!(r#"{"type": "service_account", "key_location": "vault"}"#)),
            silent(in_params!(r#"{"aws": {"sha256": "9aK2mZx7Qw4Lr8Tn3Vb6Yc1Hd5Jf0Gs2Pe4U9aK2"}}"#)),
        ],
        yields_to: &["registry/input-secret-static"],
        check: Check::Document(secret_pattern),
    }
}

fn secret_pattern(root: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if !says(root.document(), credentials::has_trace) {
        return;
    }
    for (node, key) in keys(root) {
        if let (Some(hit), Some(object)) = (traced(key, ""), node.parent()) {
            // The pointer of the member would repeat it.
            out.add(object, format!("a key holds {}: {}", hit.name, hit.masked()));
        }
    }
    for (node, text) in strings(root) {
        let name = name(node);
        if let Some(hit) = traced(text, name).filter(|_| !is_known_to_be_harmless(node, text, name)) {
            out.add(node, format!("holds {}: {}", hit.name, hit.masked()));
        } else if text == "service_account" && node.key() == Some("type") {
            service_account(node, out);
        }
    }
}

fn traced<'t>(text: &'t str, name: &str) -> Option<credentials::Hit<'t>> {
    let is_named = || name.len() >= "secretAccessKey".len() && snake(name).contains("secret_access_key");
    if credentials::has_trace(text) || is_named() { credentials::find(text, name) } else { None }
}

/// The key file of a Google service account, taken over as a whole.
fn service_account(kind: Node<'_>, out: &mut Occurrences) {
    let key = kind.parent().and_then(|account| account.given("private_key"));
    if let Some(key) = key.filter(|key| key.text().is_none_or(|text| credentials::find(text, "").is_none())) {
        out.add(key, "the private key of a Google service account");
    }
}

/// Names whose values are digests and ids: long, random and public.
const DIGEST_NAMES: &[&str] = &[
    "sha256",
    "file_sha256",
    "digest",
    "checksum",
    "hash",
    "commit",
    "etag",
    "kid",
    "x5t",
    "thumbprint",
    "fingerprint",
    "$schema",
    "$id",
];

/// Values that look random and are meant for everybody: digests, signatures of cards, public keys, pictures.
fn is_known_to_be_harmless(node: Node<'_>, text: &str, name: &str) -> bool {
    let snake = snake(name);
    DIGEST_NAMES.contains(&snake.as_str())
        || text.contains("@sha256:")
        || text.starts_with("data:image/")
        || is_of_a_signature(node, name)
        || is_of_a_jwk(node, name)
}

fn is_of_a_signature(node: Node<'_>, name: &str) -> bool {
    matches!(name, "protected" | "signature") && names_above(node).any(|above| above == "signatures")
}

fn is_of_a_jwk(node: Node<'_>, name: &str) -> bool {
    matches!(name, "n" | "e" | "x" | "y" | "kid") && node.parent().is_some_and(|jwk| jwk.get("kty").is_some())
}

crate::rule! {
    /// A field that is named like a secret has a value.
    ///
    /// A guess by the name, for a person to look at: on real documents most such values turned out to be harmless, so it
    /// counts in no verdict.
    static SECRET_IN_FIELD = {
        id: "common/secret-in-field",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        security: true,
        basis: Basis::Policy,
        place: "/**",
        fix: "Remove the value, rotate it if real, and declare the scheme in place of it.",
        spec: "crawler policy; GAIP request policy",
        seeds: &["gaip:SECRET_BEARING_FIELD_BLOCKED", "inspector:embedded-secrets"],
        examples: &[
            fires(&["/capabilities/extensions/0/params/apiKey"], in_params!(r#"{"apiKey": "q8Zt31LmPo"}"#)),
            fires(&["/capabilities/extensions/0/params/client-secret"], in_params!(r#"{"client-secret": "c0rrect-h0rse-9"}"#)),
            fires(&["/capabilities/extensions/0/params/x/DB Password"], in_params!(r#"{"x": {"DB Password": "Tr0ub4dor&3"}}"#)),
            fires(
                &["/capabilities/extensions/0/params/private_key"],
                in_params!(r#"{"private_key": "0x9f3ac1d29f3ac1d29f3ac1d29f3ac1d29f3ac1d29f3ac1d29f3ac1d29f3ac1d2"}"#),
            ),
            silent(in_params!(r#"{"apiKey": "YOUR_API_KEY", "token": "{{token}}", "password": "${TIDE_PASSWORD}"}"#)),
            silent(in_params!(r#"{"apiKey": "q8Zt31L", "authorization": "none required", "token": "TIDE_TOKEN"}"#)),
            silent(in_params!(r#"{"authorization": "see section 4.2 of the guide, v3", "token": "application/jwt"}"#)),
            silent(in_params!(r#"{"token": "0xD8E6798331265b46136198b1ECf492Cb84797acD", "x": {"token": "vitrine2.tides.eth"}}"#)),
            silent(in_params!(r#"{"token": "https://id.example.com/v2/token", "bearer": "Bearer"}"#)),
            silent(in_params!(r#"{"x402": {"token": "EPjF9k2LmX81TtRw03PbNc55"}}"#)),
            silent(in_params!(r#"{"price": {"network": "solana", "token": "EPjF9k2LmX81TtRw03PbNc55"}, "token": "USDC-ERC20"}"#)),
            silent(in_params!(r#"{"authorization": "OAuth 2.0", "bearer": "Bearer JWT (RS256)", "token": "eip155:8453"}"#)),
            silent(in_params!(r#"{"schema": {"properties": {"password": {"type": "string"}, "token": "see RFC6750"}}}"#)),
            silent(in_params!(r#"{"scopes": {"token": "Issue tokens v2"}, "token_type": "Bearer-v2", "max_tokens": "4096 tokens"}"#)),
        ],
        yields_to: &["registry/input-secret-static", "common/secret-pattern"],
        guess: true,
        check: Check::Document(secret_in_field),
    }
}

fn secret_in_field(root: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for (node, key) in keys(root) {
        if node.kind() != Type::String || !names_a_secret(key) {
            continue;
        }
        let Some(text) = node.text() else { continue };
        if !is_harmless_value(text, key) && !stands_where_names_are_not_fields(node) && !is_about_a_chain(node) {
            out.add(node, format!("{} has a value of {} characters", quote(key), text.chars().count()));
        }
    }
}

/// The last words of names of secrets.
const SECRET_WORDS: &[&str] = &[
    "token",
    "apikey",
    "api_key",
    "secret",
    "password",
    "passwd",
    "private_key",
    "credential",
    "credentials",
    "bearer",
    "authorization",
];

fn names_a_secret(key: &str) -> bool {
    // Of the last letters of these words only `d`, `l`, `n`, `r`, `s`, `t` and `y` exist: most keys end here.
    if !key.ends_with(['d', 'l', 'n', 'r', 's', 't', 'y', 'D', 'L', 'N', 'R', 'S', 'T', 'Y']) || key.len() < 5 {
        return false;
    }
    let ending = |word: &&str| ends_with_ignoring_case(key, &word[word.len() - 3..]);
    if !SECRET_WORDS.iter().any(ending) {
        return false;
    }
    let key = snake(key);
    let is_word = |before: &str| before.is_empty() || before.ends_with('_');
    SECRET_WORDS.iter().any(|word| key.strip_suffix(word).is_some_and(is_word))
}

fn ends_with_ignoring_case(text: &str, ending: &str) -> bool {
    let (text, ending) = (text.as_bytes(), ending.as_bytes());
    text.len() >= ending.len() && text[text.len() - ending.len()..].eq_ignore_ascii_case(ending)
}

/// Values that are no secret whatever their name: too short, a placeholder, words, an address on a chain or on the web,
/// a media type, the name itself.
fn is_harmless_value(text: &str, key: &str) -> bool {
    let credential = text.strip_prefix("Bearer ").or_else(|| text.strip_prefix("Basic ")).unwrap_or(text);
    text.chars().count() < 8
        || is_placeholder(text)
        || text.chars().all(|c| c.is_alphabetic() || matches!(c, ' ' | '_' | '-'))
        || credential.contains(' ')
        || (is_on_a_chain(text) && !(text.len() == 66 && snake(key).ends_with("private_key")))
        || is_ticker(text, key)
        || AbsoluteUrl::parse(text).is_some_and(|_| credential_in(text).is_none())
        || is_media_type(text)
        || text.eq_ignore_ascii_case(key)
}

/// A token that is traded goes by a short name in capitals: `USDC-ERC20`.
fn is_ticker(text: &str, key: &str) -> bool {
    let is_letter = |b: u8| b.is_ascii_uppercase() || b.is_ascii_digit() || matches!(b, b'-' | b'.' | b'/' | b':');
    ends_with_ignoring_case(key, "token") && text.len() <= 16 && text.bytes().all(is_letter)
}

fn is_media_type(text: &str) -> bool {
    const KINDS: &[&str] = &["application", "audio", "font", "image", "message", "model", "multipart", "text", "video"];
    MediaType::parse(text).is_some_and(|media_type| KINDS.contains(&media_type.kind))
}

/// An address or hash on a chain (`0x` and 40 or 64 hexadecimal digits), an ENS name, or an id that names its chain.
fn is_on_a_chain(text: &str) -> bool {
    const CHAINS: &[&str] = &["eip155:", "solana:", "bip122:", "cosmos:"];
    if let Some(digits) = text.strip_prefix("0x") {
        return matches!(digits.len(), 40 | 64) && digits.bytes().all(|b| b.is_ascii_hexdigit());
    }
    let is_label = |label: &str| {
        !label.is_empty() && label.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
    };
    text.strip_suffix(".eth").is_some_and(|labels| labels.split('.').all(is_label))
        || CHAINS.iter().any(|chain| text.starts_with(chain))
}

/// Names of schema properties, scopes and tags are words to explain, not fields that hold something.
fn stands_where_names_are_not_fields(node: Node<'_>) -> bool {
    let above = names_above(node).next().unwrap_or_default();
    matches!(above, "properties" | "patternProperties" | "$defs" | "definitions")
        || names_above(node).any(|above| matches!(above, "scopes" | "tags" | "required"))
}

/// Tokens of a chain stand in objects that are named after it, or that name it.
fn is_about_a_chain(node: Node<'_>) -> bool {
    const SIBLINGS: &[&str] = &["network", "chain", "chainId", "chain_id", "blockchain", "decimals", "symbol", "asset"];
    let above = names_above(node).next().unwrap_or_default();
    matches!(snake(above).as_str(), "contracts" | "chain" | "payment" | "x402" | "token_address")
        || node.parent().is_some_and(|object| SIBLINGS.iter().any(|key| object.get(key).is_some()))
}

crate::rule! {
    /// A value looks random and its name speaks of keys.
    ///
    /// A guess by letters and digits, for a person to look at; it counts in no verdict.
    static SECRET_HIGH_ENTROPY = {
        id: "common/secret-high-entropy",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        security: true,
        basis: Basis::Hint,
        place: "/**",
        fix: "Check whether this is a credential.",
        spec: "crawler policy",
        seeds: &["inspector:embedded-secrets"],
        examples: &[
            fires(
                &["/capabilities/extensions/0/params/signingKeyValue"],
                in_params!(r#"{"signingKeyValue": "Zk29LmXv81TtRw03PbNc55Yd7Hq2Jf0G"}"#),
            ),
            fires(
                &["/capabilities/extensions/0/params/auth_seed"],
                in_params!(r#"{"auth_seed": "0a1b2c3d4e5f60718293a4b5c6d7e8f9"}"#),
            ),
            silent(in_params!(r#"{"signingKeyId": "Zk29LmXv81TtRw03PbNc55Yd7Hq2Jf0G", "keyword": "supercalifragilisticexpialidocious"}"#)),
            silent(in_params!(r#"{"public_key_der_base64": "MCowBQYDK2VwAyEAmkSQNeLBAltBCfq3rT0vJ8hZ5xWcYd1uPoGi7sKmEw4"}"#)),
            silent(in_params!(r#"{"keySignature": "Zk29LmXv81TtRw03PbNc55Yd7Hq2Jf0G", "tokenHash": "Zk29LmXv81TtRw03PbNc55Yd7Hq2Jf0G"}"#)),
            silent(in_params!(r#"{"tokenContract": "0xD8E6798331265b46136198b1ECf492Cb84797acD", "auth": "550e8400-e29b-41d4-a716-446655440000"}"#)),
            silent(in_params!(r#"{"key": "EXAMPLE9LmXv81TtRw03PbNc55Yd7Hq2Jf0G", "chain": {"key": "Zk29LmXv81TtRw03PbNc55Yd7Hq2Jf0G"}}"#)),
        ],
        yields_to: &[
            "registry/input-secret-static",
            "common/secret-pattern",
            "common/secret-in-field",
            "common/credential-in-url",
        ],
        guess: true,
        check: Check::Document(secret_high_entropy),
    }
}

fn secret_high_entropy(root: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for (node, text) in strings(root) {
        if !(24..=256).contains(&text.len()) || !looks_random(text) {
            continue;
        }
        let name = name(node);
        let excluded = || {
            is_placeholder(text)
                || is_on_a_chain(text)
                || is_uuid(text)
                || is_known_to_be_harmless(node, text, name)
                || stands_where_names_are_not_fields(node)
                || is_about_a_chain(node)
        };
        if speaks_of_keys(&snake(name)) && !excluded() {
            let bits = entropy(text);
            out.add(node, format!("{} holds {} random characters ({bits:.1} bits each)", quote(name), text.len()));
        }
    }
}

fn speaks_of_keys(name: &str) -> bool {
    const WORDS: &[&str] = &["key", "token", "secret", "auth", "cred", "pass"];
    const PUBLIC_WORDS: &[&str] = &[
        "public_key",
        "pubkey",
        "pub_key",
        "publishable",
        "signature",
        "digest",
        "hash",
        "sha256",
        "checksum",
        "fingerprint",
        "thumbprint",
    ];
    const PUBLIC_ENDS: &[&str] = &["_id", "_name", "_url", "kid", "_address", "_mint", "_contract", "_wallet"];
    WORDS.iter().any(|word| name.contains(word))
        && !PUBLIC_WORDS.iter().any(|word| name.contains(word))
        && !PUBLIC_ENDS.iter().any(|end| name.ends_with(end))
}

fn looks_random(text: &str) -> bool {
    let is_letter = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'=' | b'-' | b'_');
    let least = || if text.bytes().all(|b| b.is_ascii_hexdigit()) { 3.0 } else { 4.0 };
    text.bytes().all(is_letter)
        && text.bytes().any(|b| b.is_ascii_digit())
        && text.bytes().any(|b| b.is_ascii_alphabetic())
        && entropy(text) >= least()
}

/// Shannon entropy in bits a byte.
fn entropy(text: &str) -> f64 {
    let mut counts = [0u32; 256];
    text.bytes().for_each(|b| counts[usize::from(b)] += 1);
    let length = text.len() as f64;
    let share = |&count: &u32| f64::from(count) / length;
    -counts.iter().filter(|count| **count > 0).map(|count| share(count) * share(count).log2()).sum::<f64>()
}

fn is_uuid(text: &str) -> bool {
    let groups: Vec<usize> = text.split('-').map(str::len).collect();
    groups == [8, 4, 4, 4, 12] && text.bytes().all(|b| b == b'-' || b.is_ascii_hexdigit())
}
