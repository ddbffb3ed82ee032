//! Versions: semantic ones, and ranges of them.

/// Whether a text is a version of Semantic Versioning 2.0.0, with numbers of any length.
pub fn is_semver(text: &str) -> bool {
    let (text, build) = divided(text, '+');
    let (core, prerelease) = divided(text, '-');
    let mut numbers = core.split('.');
    let three = (0..3).all(|_| numbers.next().is_some_and(is_number)) && numbers.next().is_none();
    three && prerelease.is_none_or(is_prerelease) && build.is_none_or(|build| build.split('.').all(is_identifier))
}

/// A version without leading `v` and, where it is a semantic one, without prerelease and build metadata.
pub fn version_core(text: &str) -> &str {
    let plain = text.strip_prefix('v').unwrap_or(text);
    if is_semver(plain) { plain.split(['-', '+']).next().unwrap_or(plain) } else { plain }
}

/// Whether a text names a set of versions: a comparator before a number, alternatives, a hyphen between spaces, or a
/// part that is `x` or `*`. A lone `x` or `*` is no dotted version and none of these.
pub fn is_version_range(text: &str) -> bool {
    let text = text.trim();
    is_comparison(text) || text.contains("||") || is_hyphen_range(text) || is_wildcard(text)
}

fn is_comparison(text: &str) -> bool {
    let rest = text.trim_start_matches(['^', '~', '>', '<', '=']);
    rest.len() < text.len() && begins_with_number(rest.trim_start())
}

fn is_hyphen_range(text: &str) -> bool {
    text.split_once(" - ").is_some_and(|(low, high)| begins_with_number(low) && begins_with_number(high.trim_start()))
}

fn begins_with_number(text: &str) -> bool {
    text.strip_prefix(['v', 'V']).unwrap_or(text).starts_with(|c: char| c.is_ascii_digit())
}

fn is_wildcard(text: &str) -> bool {
    let text = text.strip_prefix(['v', 'V']).unwrap_or(text);
    let core = text.split(['-', '+']).next().unwrap_or(text);
    let parts = core.split('.').count();
    let is_any = |part: &str| matches!(part, "x" | "X" | "*");
    let is_digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    (2..=3).contains(&parts)
        && core.split('.').all(|part| is_any(part) || is_digits(part))
        && core.split('.').any(is_any)
}

fn divided(text: &str, at: char) -> (&str, Option<&str>) {
    text.split_once(at).map_or((text, None), |(before, after)| (before, Some(after)))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) && (text == "0" || !text.starts_with('0'))
}

fn is_prerelease(text: &str) -> bool {
    text.split('.').all(|part| is_identifier(part) && (is_number(part) || !part.bytes().all(|b| b.is_ascii_digit())))
}

fn is_identifier(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn semantic_versions_have_three_numbers() {
        for text in [
            "0.0.0",
            "1.4.2",
            "2025.11.25",
            "1.4.2-rc.1+build.007",
            "1.0.0--",
            "1.0.0-x-y.0",
            "99999999999999999999.0.0",
        ] {
            assert!(is_semver(text), "{text}");
        }
        for text in [
            "",
            "1",
            "1.4",
            "1.4.2.1",
            "v1.4.2",
            "01.4.2",
            "1.4.2-",
            "1.4.2+",
            "1.4.2-01",
            "1.4.2-a..b",
            " 1.4.2",
            "1.4.x",
        ] {
            assert!(!is_semver(text), "{text}");
        }
    }

    #[test]
    fn ranges_are_told_from_odd_versions() {
        let ranges = [
            "^1.2.3",
            "~1",
            ">=1.2",
            "<= 2",
            "> v1",
            "=1.0.0",
            "==1.0",
            "~=1.4",
            "1.2 - 2.0",
            "1.2.3 || 1.3",
            "1.x",
            "v1.2.X",
            "1.*",
            "1.2.x-beta",
            " 1.x ",
            "*.1",
        ];
        for text in ranges {
            assert!(is_version_range(text), "{text}");
        }
        for text in
            ["1.2.3-x1", "2025-06-18", "v1.0", "*", "x", "latest", "1.2.3-x", "1.2.3.x", "a - b", "", "1.xx", "^beta"]
        {
            assert!(!is_version_range(text), "{text}");
        }
    }

    #[test]
    fn the_core_is_what_two_releases_share() {
        for (text, core) in
            [("v1.4.2", "1.4.2"), ("1.4.2-1", "1.4.2"), ("1.4.2+b", "1.4.2"), ("2025-06-18", "2025-06-18")]
        {
            assert_eq!(version_core(text), core);
        }
    }
}
