//! What credentials look like: one row for each kind that announces itself by its form, and what speaks for a sample.

use std::collections::HashSet;
use std::sync::LazyLock;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use regex::{Match, Regex, RegexSet};

use super::strings::snake;
use crate::document::Document;
use crate::text::is_placeholder;

/// A kind of credential.
struct Credential {
    /// How a person calls it, with its article.
    name: &'static str,
    /// Its form. No look-around, so that searching stays linear.
    pattern: &'static str,
    /// What every one of them begins with; the secret is what follows.
    begins: &'static [&'static str],
    /// What the pattern cannot say.
    really: fn(&Candidate<'_>) -> bool,
}

/// A text that has the form of a credential, and what stands around it.
struct Candidate<'t> {
    /// The text that was searched.
    text: &'t str,
    /// Where the candidate begins in it.
    from: usize,
    /// The candidate.
    found: &'t str,
    /// The name of the value.
    name: &'t str,
}

/// A credential in a text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Hit<'t> {
    /// How a person calls it, with its article.
    pub name: &'static str,
    /// All of it: never repeated to anybody.
    pub found: &'t str,
}

impl Hit<'_> {
    /// What may be said about it: its first four characters and its length.
    pub fn masked(&self) -> String {
        let shown: String = self.found.chars().take(4).collect();
        format!("`{shown}…`, {} characters", self.found.chars().count())
    }
}

const TABLE: &[Credential] = &[
    Credential {
        name: "an AWS access key",
        pattern: r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}\b",
        begins: &["AKIA", "ASIA", "ABIA", "ACCA"],
        really: always,
    },
    Credential { name: "an AWS secret key", pattern: r"\b[A-Za-z0-9/+]{40}\b", begins: &[], really: is_aws_secret },
    Credential {
        name: "a GitHub token",
        pattern: r"\bgh[pousr]_[A-Za-z0-9]{36,251}\b",
        begins: &["ghp_", "gho_", "ghu_", "ghs_", "ghr_"],
        really: always,
    },
    Credential {
        name: "a fine-grained GitHub token",
        pattern: r"\bgithub_pat_[A-Za-z0-9_]{70,}",
        begins: &["github_pat_"],
        really: always,
    },
    Credential { name: "a GitLab token", pattern: r"\bglpat-[A-Za-z0-9_-]{20,}", begins: &["glpat-"], really: always },
    Credential {
        name: "a Slack token",
        pattern: r"\b(?:xox[abeoprs]|xapp)-[A-Za-z0-9-]{20,}",
        begins: &["xoxa-", "xoxb-", "xoxe-", "xoxo-", "xoxp-", "xoxr-", "xoxs-", "xapp-"],
        really: always,
    },
    Credential {
        name: "a Slack webhook",
        pattern: r"hooks\.slack\.com/services/T[A-Z0-9]{8,}/B[A-Z0-9]{8,}/[A-Za-z0-9]{20,}",
        begins: &["hooks.slack.com/services/"],
        really: always,
    },
    Credential { name: "a Google API key", pattern: r"\bAIza[A-Za-z0-9_-]{35}", begins: &["AIza"], really: always },
    Credential {
        name: "a Google access token",
        pattern: r"\bya29\.[A-Za-z0-9_-]{20,}",
        begins: &["ya29."],
        really: always,
    },
    Credential {
        name: "an API key of the OpenAI form",
        pattern: r"(?:^|[^A-Za-z0-9_-])(?P<it>sk-(?:proj-|svcacct-|admin-|ant-[a-z0-9]+-|or-v1-)?[A-Za-z0-9_-]{32,})",
        begins: &["sk-"],
        really: is_no_chain_of_words,
    },
    Credential {
        name: "a Stripe secret key",
        pattern: r"\b(?:sk|rk)_live_[A-Za-z0-9]{16,}",
        begins: &["sk_live_", "rk_live_"],
        really: always,
    },
    Credential { name: "an npm token", pattern: r"\bnpm_[A-Za-z0-9]{36}\b", begins: &["npm_"], really: always },
    Credential {
        name: "a PyPI token",
        pattern: r"\bpypi-AgE[A-Za-z0-9_-]{50,}",
        begins: &["pypi-AgE"],
        really: always,
    },
    Credential { name: "a Hugging Face token", pattern: r"\bhf_[A-Za-z]{34}\b", begins: &["hf_"], really: always },
    Credential {
        name: "a SendGrid key",
        pattern: r"\bSG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}",
        begins: &["SG."],
        really: always,
    },
    Credential { name: "a Twilio key", pattern: r"\bSK[0-9a-f]{32}\b", begins: &["SK"], really: always },
    Credential {
        name: "a Telegram bot token",
        pattern: r"\b[0-9]{8,10}:AA[A-Za-z0-9_-]{33}",
        begins: &[],
        really: always,
    },
    Credential {
        name: "a Discord webhook",
        pattern: r"discord(?:app)?\.com/api/webhooks/[0-9]{15,}/[A-Za-z0-9_-]{60,}",
        begins: &["discord.com/api/webhooks/", "discordapp.com/api/webhooks/"],
        really: always,
    },
    Credential {
        name: "a JWT",
        pattern: r"\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{16,}",
        begins: &[],
        really: is_jwt,
    },
    Credential {
        name: "a private key",
        pattern: r"-----BEGIN (?:RSA |EC |DSA |OPENSSH |ENCRYPTED |PGP )?PRIVATE KEY(?: BLOCK)?-----",
        begins: &[],
        really: always,
    },
    Credential {
        name: "a Google service account",
        pattern: r#""type"\s*:\s*"service_account""#,
        begins: &[],
        really: |candidate| candidate.text.contains("private_key"),
    },
    Credential {
        name: "a literal Bearer or Basic credential",
        pattern: r"\b(?:Bearer|Basic) [A-Za-z0-9._~+/=-]{20,}",
        begins: &["Bearer ", "Basic "],
        really: |candidate| has_letter_and_digit(secret_of(candidate.found, &["Bearer ", "Basic "])),
    },
];

/// The header of a private key says what it is, whatever stands around it.
const PRIVATE_KEY: &str = "a private key";

/// Pieces without which no row of the table can match: one search for all of them decides whether a document is looked
/// at any closer.
const TRACES: &str = r"AKIA|ASIA|ABIA|ACCA|aws|Aws|AWS|_access_key|AccessKey|-access-key|_ACCESS_KEY|ghp_|gho_|ghu_|ghs_|ghr_|github_pat_|glpat-|xoxa-|xoxb-|xoxe-|xoxo-|xoxp-|xoxr-|xoxs-|xapp-|hooks\.slack|AIza|ya29\.|sk-|k_live_|npm_|pypi-AgE|hf_|SG\.|SK|:AA|/api/webhooks|eyJ|PRIVATE KEY|service_account|Bearer |Basic ";

static ANY_TRACE: LazyLock<Regex> = LazyLock::new(|| Regex::new(TRACES).expect("the pattern is a literal"));
static FORMS: LazyLock<RegexSet> =
    LazyLock::new(|| RegexSet::new(TABLE.iter().map(|row| row.pattern)).expect("the patterns are literals"));
static EACH: LazyLock<Vec<Regex>> =
    LazyLock::new(|| TABLE.iter().map(|row| Regex::new(row.pattern).expect("the patterns are literals")).collect());

/// Whether a text holds anything that a credential must have.
pub(super) fn has_trace(text: &str) -> bool {
    ANY_TRACE.is_match(text)
}

/// The first credential in a text, of a value with that name. Samples and placeholders are none.
pub(super) fn find<'t>(text: &'t str, name: &str) -> Option<Hit<'t>> {
    FORMS.matches(text).iter().find_map(|row| first_of(row, text, name))
}

fn first_of<'t>(row: usize, text: &'t str, name: &str) -> Option<Hit<'t>> {
    let credential = &TABLE[row];
    let mut candidates = EACH[row].captures_iter(text).filter_map(|groups| groups.name("it").or_else(|| groups.get(0)));
    candidates
        .find(|found| is_real(credential, text, found, name))
        .map(|found| Hit { name: credential.name, found: found.as_str() })
}

fn is_real(credential: &Credential, text: &str, found: &Match<'_>, name: &str) -> bool {
    let candidate = Candidate { text, from: found.start(), found: found.as_str(), name };
    let sample = || is_placeholder(candidate.found) || is_monotonous(secret_of(candidate.found, credential.begins));
    (credential.name == PRIVATE_KEY || !sample()) && (credential.really)(&candidate)
}

/// What of a credential is secret.
fn secret_of<'t>(found: &'t str, begins: &[&str]) -> &'t str {
    begins.iter().find_map(|beginning| found.strip_prefix(beginning)).unwrap_or(found)
}

/// Fewer than six different characters: typed in to fill the place.
fn is_monotonous(secret: &str) -> bool {
    let mut seen = HashSet::new();
    !secret.chars().any(|character| seen.insert(character) && seen.len() >= 6)
}

fn always(_: &Candidate<'_>) -> bool {
    true
}

fn has_letter_and_digit(text: &str) -> bool {
    text.bytes().any(|b| b.is_ascii_digit()) && text.bytes().any(|b| b.is_ascii_alphabetic())
}

/// Forty characters are an AWS secret only where the name says so, or `aws` stands within the forty characters before.
fn is_aws_secret(candidate: &Candidate<'_>) -> bool {
    let found = candidate.found.as_bytes();
    let mixed = found.iter().any(u8::is_ascii_digit)
        && found.iter().any(u8::is_ascii_uppercase)
        && found.iter().any(u8::is_ascii_lowercase);
    let before =
        candidate.text[..candidate.from].char_indices().rev().take(40).last().map_or(candidate.from, |(at, _)| at);
    let said = || candidate.text[before..candidate.from].to_ascii_lowercase().contains("aws");
    mixed && (snake(candidate.name).contains("secret_access_key") || said())
}

/// Words joined by dashes read like such a key and are none: `sk-learn-pipeline-for-weather-and-tides`.
fn is_no_chain_of_words(candidate: &Candidate<'_>) -> bool {
    let secret = secret_of(candidate.found, &["sk-"]);
    let mut words = secret.split('-');
    let only_words = words.clone().count() >= 2 && words.all(|word| word.bytes().all(|b| b.is_ascii_lowercase()));
    has_letter_and_digit(secret) && !only_words
}

/// The first part is a JOSE header, and neither part reads like a sample.
fn is_jwt(candidate: &Candidate<'_>) -> bool {
    let decoded = |part: Option<&str>| part.and_then(|part| URL_SAFE_NO_PAD.decode(part).ok());
    let mut parts = candidate.found.split('.');
    let Some(header) = decoded(parts.next()) else { return false };
    let has_algorithm = Document::read(&header).root().is_some_and(|root| root.get("alg").is_some());
    let claims = decoded(parts.next()).unwrap_or_default();
    has_algorithm && !reads_like_a_sample(&header) && !reads_like_a_sample(&claims)
}

/// Placeholder words in decoded JSON, whose own braces are no sign.
fn reads_like_a_sample(json: &[u8]) -> bool {
    is_placeholder(&String::from_utf8_lossy(json).replace(['{', '}'], ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A token with so many letters and digits behind its beginning. Put together here, so that no scanner of source
    /// code takes this file for a leak.
    fn made_up(beginning: &str, length: usize) -> String {
        let letters = "9aK2mZx7Qw4Lr8Tn3Vb6Yc1Hd5Jf0Gs".chars().cycle().take(length);
        beginning.chars().chain(letters).collect()
    }

    #[test]
    fn every_form_is_known_and_no_row_matches_without_a_trace() {
        let jwt = format!(
            "{}.{}.{}",
            URL_SAFE_NO_PAD.encode(r#"{"alg":"HS256"}"#),
            URL_SAFE_NO_PAD.encode(r#"{"sub":"tides"}"#),
            made_up("", 22)
        );
        let rows = [
            ("an AWS access key", format!("AKIA{}", "2Q7ZJ4W6YB3KXN5T")),
            ("an AWS secret key", format!("aws secret: {}", made_up("", 40))),
            ("a GitHub token", made_up("ghp_", 36)),
            ("a fine-grained GitHub token", made_up("github_pat_", 70)),
            ("a GitLab token", made_up("glpat-", 20)),
            ("a Slack token", made_up("xoxb-", 24)),
            (
                "a Slack webhook",
                format!("https://hooks.slack.com/services/T{}/B{}/{}", "A1B2C3D4", "A1B2C3D4", made_up("", 24)),
            ),
            ("a Google API key", made_up("AIza", 35)),
            ("a Google access token", made_up("ya29.", 24)),
            ("an API key of the OpenAI form", made_up("sk-proj-", 32)),
            ("a Stripe secret key", made_up("sk_live_", 16)),
            ("an npm token", made_up("npm_", 36)),
            ("a PyPI token", made_up("pypi-AgE", 50)),
            ("a Hugging Face token", format!("hf_{}", "aKmZxQwLrTnVbYcHdJfGsAkMzXqWlRtNvB")),
            ("a SendGrid key", format!("{}.{}", made_up("SG.", 22), made_up("", 43))),
            ("a Twilio key", format!("SK{}", "0a1b2c3d4e5f6a7b8c9d0e1f2a3b4c5d")),
            ("a Telegram bot token", made_up("123456789:AA", 33)),
            ("a Discord webhook", format!("discord.com/api/webhooks/739201845512907/{}", made_up("", 60))),
            ("a JWT", jwt),
            ("a private key", format!("-----BEGIN EC {} KEY-----", "PRIVATE")),
            ("a Google service account", r#"{"type": "service_account", "private_key": "…"}"#.to_owned()),
            ("a literal Bearer or Basic credential", made_up("Bearer ", 24)),
        ];
        assert_eq!(
            rows.iter().map(|(name, _)| *name).collect::<Vec<_>>(),
            TABLE.iter().map(|row| row.name).collect::<Vec<_>>()
        );
        for (name, text) in &rows {
            for around in [text.clone(), format!("Use ({text}), please.")] {
                assert_eq!(find(&around, "").map(|hit| hit.name), Some(*name), "{around}");
                assert!(has_trace(&around), "{around}");
            }
        }
    }

    #[test]
    fn samples_and_look_alikes_are_no_credentials() {
        let texts = [
            "AKIAIOSFODNN7EXAMPLE".to_owned(),
            "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx".to_owned(),
            "ghp_aaaaaaaaaaaabbbbbbbbbbbbccccccccccccc".to_owned(),
            "Bearer YOUR_TOKEN_GOES_RIGHT_HERE".to_owned(),
            "Basic authentication-and-authorization".to_owned(),
            "the ask-for-weather-forecast-and-more-details-today skill".to_owned(),
            "sk-learn-pipeline-for-weather-and-tide-tables-today".to_owned(),
            made_up("pk_live_", 24),
            made_up("sk_test_", 24),
            "-----BEGIN PUBLIC KEY-----".to_owned(),
            made_up("a digest: ", 40),
            "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.c2lnbmF0dXJlLWJ5dGVzLWhlcmU".to_owned(),
            "eyJub3QiOiJhIGp3dCJ9.eyJzdWIiOiJ0aWRlcyJ9.c2lnbmF0dXJlLWJ5dGVzLWhlcmU".to_owned(),
        ];
        for text in texts {
            assert_eq!(find(&text, ""), None, "{text}");
        }
    }

    #[test]
    fn a_hit_shows_four_characters_and_a_length() {
        let token = made_up("ghp_", 36);
        assert_eq!(find(&token, "").map(|hit| hit.masked()).as_deref(), Some("`ghp_…`, 40 characters"));
    }
}
