//! Which version of a name is the current one: what the registry says, else the highest, else the newest. Pure.

use std::cmp::Ordering;

/// One listed version of a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub(crate) listing: i64,
    pub(crate) version: String,
    pub(crate) is_deleted: bool,
    pub(crate) is_latest: bool,
    pub(crate) published_ms: Option<i64>,
    pub(crate) document: i64,
    pub(crate) is_current: bool,
}

/// The place of the current version: flagged latest and not deleted; else the highest semantic version, which beats any
/// other; else the newest published. `None` when all are deleted.
pub(crate) fn current(candidates: &[Candidate]) -> Option<usize> {
    let live = || candidates.iter().enumerate().filter(|(_, candidate)| !candidate.is_deleted);
    let flagged = live().filter(|(_, candidate)| candidate.is_latest).max_by(|a, b| compare(a.1, b.1));
    flagged.or_else(|| live().max_by(|a, b| compare(a.1, b.1))).map(|(place, _)| place)
}

fn compare(a: &Candidate, b: &Candidate) -> Ordering {
    let by_version = match (Semver::parse(&a.version), Semver::parse(&b.version)) {
        (Some(a), Some(b)) => a.cmp(&b),
        (Some(_), None) => Ordering::Greater,
        (None, Some(_)) => Ordering::Less,
        (None, None) => Ordering::Equal,
    };
    by_version.then(a.published_ms.cmp(&b.published_ms)).then(a.listing.cmp(&b.listing))
}

/// A semantic version, as far as its order goes: build metadata is left out.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Semver<'v> {
    numbers: [u64; 3],
    /// A release is above its prereleases.
    is_release: bool,
    prerelease: Vec<Identifier<'v>>,
}

/// Part of a prerelease: numbers are below words.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Identifier<'v> {
    Number(u64),
    Word(&'v str),
}

impl<'v> Semver<'v> {
    fn parse(text: &'v str) -> Option<Semver<'v>> {
        let text = text.split_once('+').map_or(text, |(version, _)| version);
        let (core, prerelease) = match text.split_once('-') {
            Some((core, prerelease)) => (core, Some(prerelease)),
            None => (text, None),
        };
        let mut parts = core.split('.');
        let numbers = [number(parts.next()?)?, number(parts.next()?)?, number(parts.next()?)?];
        if parts.next().is_some() {
            return None;
        }
        let identifiers = prerelease.into_iter().flat_map(|text| text.split('.')).map(identifier);
        Some(Semver { numbers, is_release: prerelease.is_none(), prerelease: identifiers.collect::<Option<_>>()? })
    }
}

/// A number without leading zeros.
fn number(text: &str) -> Option<u64> {
    let is_plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    (is_plain && (text == "0" || !text.starts_with('0'))).then(|| text.parse().ok()).flatten()
}

fn identifier(text: &str) -> Option<Identifier<'_>> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
        return None;
    }
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        return number(text).map(Identifier::Number);
    }
    Some(Identifier::Word(text))
}

/// Where a registry answers for the newest version of a name.
pub(crate) fn latest_url(base: &str, name: &str) -> String {
    let mut url = format!("{}/v0.1/servers/", base.trim_end_matches('/'));
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => url.push(char::from(byte)),
            other => url.push_str(&format!("%{other:02X}")),
        }
    }
    url.push_str("/versions/latest");
    url
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(version: &str, is_latest: bool, is_deleted: bool, published_ms: i64) -> Candidate {
        Candidate {
            listing: published_ms,
            version: version.into(),
            is_deleted,
            is_latest,
            published_ms: Some(published_ms),
            document: 1,
            is_current: false,
        }
    }

    #[test]
    fn the_current_version_is_the_flagged_one_else_the_highest_else_the_newest() {
        type Listed = (&'static str, bool, bool);
        #[rustfmt::skip]
        let table: &[(&[Listed], Option<&str>)] = &[
            (&[("1.0.0", false, false), ("0.9.0", true, false)], Some("0.9.0")),
            (&[("1.0.0", false, false), ("2.0.0", true, true)], Some("1.0.0")),
            (&[("1.9.0", false, false), ("1.10.0", false, false)], Some("1.10.0")),
            (&[("1.0.0-beta.2", false, false), ("1.0.0-beta.10", false, false)], Some("1.0.0-beta.10")),
            (&[("1.0.0-beta", false, false), ("1.0.0", false, false), ("1.0.0-rc.1", false, false)], Some("1.0.0")),
            (&[("0.0.1", false, false), ("2025-06-18", false, false)], Some("0.0.1")),
            (&[("v1.0", false, false), ("2025-06-18", false, false)], Some("2025-06-18")),
            (&[("1.0.0+b", false, false), ("1.0.0+a", false, false)], Some("1.0.0+a")),
            (&[("1.0.0", true, true)], None),
            (&[], None),
        ];
        for (listed, expected) in table {
            let candidates: Vec<_> = (0..).zip(*listed).map(|(n, (v, l, d))| candidate(v, *l, *d, n)).collect();
            let found = current(&candidates).map(|n| candidates[n].version.as_str());
            assert_eq!(found, *expected, "{listed:?}");
        }
    }

    #[test]
    fn what_is_no_semantic_version_is_none() {
        for text in ["1.0", "01.0.0", "1.0.0-", "1.0.0-01", "v1.0.0", "1.0.0.0", "", "1..0", "99999999999999999999.0.0"]
        {
            assert_eq!(Semver::parse(text), None, "{text}");
        }
    }

    #[test]
    fn names_are_one_segment_of_the_address() {
        assert_eq!(
            latest_url("https://registry.example/", "io.github.a/b+c"),
            "https://registry.example/v0.1/servers/io.github.a%2Fb%2Bc/versions/latest"
        );
    }
}
