//! Words from strangers, made harmless, and numbers and times in our own hand.
//!
//! Escaping of markup is the template's work and always happens. This module is about what escaping leaves: letters that turn
//! the line around, letters nobody sees, and names of ten thousand letters. Everything here is a pure function.

use chrono::{DateTime, Datelike, Timelike, Utc};

/// A stranger's words as they may stand on a page: every character can be seen, and there are at most `limit` of them.
///
/// Control, direction and zero-width characters become `⟨U+202E⟩`; a fifth combining mark in a row does too, because piled
/// marks climb into the lines above. What was cut off is announced by an ellipsis.
#[must_use]
pub fn visible(words: &str, limit: usize) -> String {
    let mut shown = String::with_capacity(words.len().min(limit * 2));
    let mut marks = 0;
    for (count, letter) in words.chars().enumerate() {
        if count == limit {
            shown.push('…');
            break;
        }
        marks = if is_combining(letter) { marks + 1 } else { 0 };
        if is_unseen(letter) || marks > 4 {
            shown.push_str(&format!("⟨U+{:04X}⟩", letter as u32));
        } else {
            shown.push(letter);
        }
    }
    shown
}

/// Whether a character would act on the page without being seen on it.
fn is_unseen(letter: char) -> bool {
    matches!(letter,
        '\0'..='\x1f' | '\x7f'..='\u{9f}'
        | '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}'
        | '\u{fff0}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

fn is_combining(letter: char) -> bool {
    matches!(letter,
        '\u{300}'..='\u{36f}' | '\u{483}'..='\u{489}' | '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}'
        | '\u{20d0}'..='\u{20ff}' | '\u{fe20}'..='\u{fe2f}')
}

/// `10,327`.
#[must_use]
pub fn number(value: i64) -> String {
    let digits = value.unsigned_abs().to_string();
    let mut grouped = String::with_capacity(digits.len() + 6);
    if value < 0 {
        grouped.push('−');
    }
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// `1 target`, `10,327 targets`.
#[must_use]
pub fn counted(value: i64, one: &str, many: &str) -> String {
    format!("{} {}", number(value), if value == 1 { one } else { many })
}

/// A share of a whole with as many decimals as it bears: `60 %`, `3.3 %`, `under 0.1 %`. A share of nothing is a dash.
#[must_use]
pub fn share(part: i64, whole: i64) -> String {
    if whole <= 0 {
        return "–".to_owned();
    }
    let per_mille = (part as f64) * 1000.0 / (whole as f64);
    if part > 0 && per_mille < 0.5 {
        "under 0.1\u{a0}%".to_owned()
    } else if part < whole && per_mille >= 999.5 {
        "over 99.9\u{a0}%".to_owned()
    } else if per_mille < 99.5 && per_mille.round() % 10.0 != 0.0 {
        format!("{:.1}\u{a0}%", per_mille / 10.0)
    } else {
        format!("{:.0}\u{a0}%", per_mille / 10.0)
    }
}

/// `812 B`, `5.1 kB`, `1.2 MB`.
#[must_use]
pub fn bytes(size: i64) -> String {
    match size {
        ..1_000 => format!("{size}\u{a0}B"),
        1_000..1_000_000 => format!("{:.1}\u{a0}kB", size as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1}\u{a0}MB", size as f64 / 1e6),
        1_000_000_000..1_000_000_000_000 => format!("{:.1}\u{a0}GB", size as f64 / 1e9),
        _ => format!("{:.1}\u{a0}TB", size as f64 / 1e12),
    }
}

/// `84 ms`, `2.4 s`.
#[must_use]
pub fn duration_ms(ms: i64) -> String {
    match ms {
        ..1_000 => format!("{ms}\u{a0}ms"),
        1_000..60_000 => format!("{:.1}\u{a0}s", ms as f64 / 1e3),
        _ => span(ms / 1000),
    }
}

/// A length of time in its largest unit: `40 s`, `7 min`, `3 h`, `62 days`.
#[must_use]
pub fn span(seconds: i64) -> String {
    match seconds.max(0) {
        s @ ..60 => format!("{s}\u{a0}s"),
        s @ 60..3_600 => format!("{}\u{a0}min", s / 60),
        s @ 3_600..172_800 => format!("{}\u{a0}h", s / 3_600),
        s => format!("{}\u{a0}days", s / 86_400),
    }
}

/// `29 Nov 2026, 18:07 UTC`.
#[must_use]
pub fn moment(at: i64) -> String {
    let Some(t) = DateTime::<Utc>::from_timestamp(at, 0) else { return "at an unknown time".to_owned() };
    format!("{}, {:02}:{:02} UTC", date(at), t.hour(), t.minute())
}

/// `29 Nov 2026`.
#[must_use]
pub fn date(at: i64) -> String {
    let Some(t) = DateTime::<Utc>::from_timestamp(at, 0) else { return "an unknown day".to_owned() };
    format!("{} {} {}", t.day(), month(t.month()), t.year())
}

/// A time as short as it can be beside an as-of time: `18:07` today, `28 Nov, 18:07` this year, else the whole date.
#[must_use]
pub fn brief(at: i64, now: i64) -> String {
    let (Some(t), Some(n)) = (DateTime::<Utc>::from_timestamp(at, 0), DateTime::<Utc>::from_timestamp(now, 0)) else {
        return "at an unknown time".to_owned();
    };
    if t.date_naive() == n.date_naive() {
        format!("{:02}:{:02}", t.hour(), t.minute())
    } else if t.year() == n.year() {
        format!("{}\u{a0}{}, {:02}:{:02}", t.day(), month(t.month()), t.hour(), t.minute())
    } else {
        date(at)
    }
}

/// How long ago, for lists: `just now`, `7 min ago`, `3 days ago`.
#[must_use]
pub fn ago(at: i64, now: i64) -> String {
    if now - at < 60 { "just now".to_owned() } else { format!("{} ago", span(now - at)) }
}

/// A day given as days since 1970: `29 Nov`.
#[must_use]
pub fn day(number: i64) -> String {
    let Some(t) = DateTime::<Utc>::from_timestamp(number * 86_400, 0) else { return String::new() };
    format!("{}\u{a0}{}", t.day(), month(t.month()))
}

/// RFC 3339 for `datetime` attributes and machines.
#[must_use]
pub fn rfc3339(at: i64) -> String {
    DateTime::<Utc>::from_timestamp(at, 0).map(|t| t.format("%Y-%m-%dT%H:%M:%SZ").to_string()).unwrap_or_default()
}

fn month(number: u32) -> &'static str {
    const NAMES: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    NAMES[(number as usize - 1) % 12]
}

/// `a`, `a and b`, `a, b and c`.
#[must_use]
pub fn listed(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [one] => one.clone(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}

/// A value as it stands in a query string: everything but letters, digits and a few marks is percent-encoded.
#[must_use]
pub fn query_escaped(value: &str) -> String {
    let mut escaped = String::with_capacity(value.len());
    for byte in value.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                escaped.push(char::from(byte));
            }
            other => escaped.push_str(&format!("%{other:02X}")),
        }
    }
    escaped
}

/// The first letter in upper case, for a word that opens a sentence.
#[must_use]
pub fn opened(words: &str) -> String {
    let mut letters = words.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_that_act_unseen_are_shown_by_their_number() {
        assert_eq!(visible("a\u{202e}b\u{200b}c\u{1b}[0m", 80), "a⟨U+202E⟩b⟨U+200B⟩c⟨U+001B⟩[0m");
        assert_eq!(visible("Zürich 東京 ქართული", 80), "Zürich 東京 ქართული");
    }

    #[test]
    fn ten_thousand_letters_are_cut_and_the_cut_is_shown() {
        assert_eq!(visible(&"x".repeat(10_000), 5), "xxxxx…");
        assert_eq!(visible("xxxxx", 5), "xxxxx");
    }

    #[test]
    fn piled_up_combining_marks_stop_at_four() {
        let piled = format!("a{}", "\u{301}".repeat(6));
        assert_eq!(visible(&piled, 80), format!("a{}⟨U+0301⟩⟨U+0301⟩", "\u{301}".repeat(4)));
    }

    #[test]
    fn shares_say_as_much_as_they_know() {
        for (part, whole, said) in [
            (0, 0, "–"),
            (0, 10, "0\u{a0}%"),
            (1, 20_000, "under 0.1\u{a0}%"),
            (96, 2_871, "3.3\u{a0}%"),
            (3, 100, "3\u{a0}%"),
            (10_327, 17_236, "60\u{a0}%"),
            (19_999, 20_000, "over 99.9\u{a0}%"),
            (7, 7, "100\u{a0}%"),
        ] {
            assert_eq!(share(part, whole), said, "{part} of {whole}");
        }
    }

    #[test]
    fn sizes_are_told_in_the_unit_they_fill() {
        for (size, said) in
            [(812, "812\u{a0}B"), (5_100, "5.1\u{a0}kB"), (1_200_000, "1.2\u{a0}MB"), (2_500_000_000, "2.5\u{a0}GB")]
        {
            assert_eq!(bytes(size), said);
        }
        assert_eq!(bytes(3_000_000_000_000), "3.0\u{a0}TB");
    }

    #[test]
    fn numbers_are_grouped_by_threes() {
        for (value, said) in [(0, "0"), (999, "999"), (1_000, "1,000"), (10_327, "10,327"), (-1_234_567, "−1,234,567")]
        {
            assert_eq!(number(value), said);
        }
    }

    #[test]
    fn times_are_as_short_as_the_as_of_time_allows() {
        let now = 1_796_062_020; // 30 Nov 2026, 18:07 UTC
        assert_eq!(moment(now), "30 Nov 2026, 18:07 UTC");
        assert_eq!(brief(now - 3_600, now), "17:07");
        assert_eq!(brief(now - 86_400, now), "29\u{a0}Nov, 18:07");
        assert_eq!(brief(now - 400 * 86_400, now), "26 Oct 2025");
        assert_eq!(ago(now - 420, now), "7\u{a0}min ago");
        assert_eq!(ago(now + 5, now), "just now");
    }
}
