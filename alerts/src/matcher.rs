//! Which events somebody wants: words and values, such as `owner:harbour severity:error -rule:a2a/*`.
//!
//! All terms must hold; within one, any of the values separated by commas; a minus before it turns it around. A value may
//! end in `*`. `severity`, `impact` and `headline` name the least grave word that counts: `severity:warning` holds for errors.
//! A word without a colon is looked for in the target's name. The language of the target list, with words of events.

use plumbline_store::happened::Facts;

/// Words a matcher may ask about.
pub const WORDS: [&str; 19] = [
    "type",
    "kind",
    "surface",
    "severity",
    "impact",
    "security",
    "family",
    "rule",
    "owner",
    "tag",
    "host",
    "source",
    "target",
    "cause",
    "opened_as",
    "reach",
    "headline",
    "name",
    "notable",
];

/// Words that are ordered, the gravest first.
const ORDERED: [(&str, &[&str]); 3] = [
    ("severity", &["critical", "error", "warning", "info"]),
    ("impact", &["breaks-clients", "degrades", "cosmetic"]),
    ("headline", &["blocked", "deviates", "sound", "not_detected", "not_evaluated"]),
];

/// A matcher that was read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Matcher {
    terms: Vec<Term>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Term {
    word: String,
    values: Vec<String>,
    is_not: bool,
}

/// Why a text is no matcher.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadMatcher {
    /// A word that nobody knows.
    #[error("`{0}` is none of {words}", words = WORDS.join(", "))]
    Word(String),
    /// A word without a value.
    #[error("`{0}` names no value")]
    Empty(String),
    /// A value that an ordered word does not have.
    #[error("{word} is none of {known}, but `{value}`")]
    Value {
        /// The word.
        word: &'static str,
        /// The value.
        value: String,
        /// What it can be.
        known: String,
    },
    /// A quote that does not end.
    #[error("a quotation mark is not closed")]
    Quote,
}

impl Matcher {
    /// Reads a matcher; an empty text matches everything.
    ///
    /// # Errors
    /// What cannot be read.
    pub fn parse(text: &str) -> Result<Matcher, BadMatcher> {
        let terms: Result<Vec<Term>, BadMatcher> = split(text)?.iter().map(|part| term(part)).collect();
        Ok(Matcher { terms: terms? })
    }

    /// Whether it matches everything.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// Whether it can hold for nobody but one owner: one of its terms says so.
    #[must_use]
    pub fn is_within_owner(&self, slug: &str) -> bool {
        let says_so = |term: &Term| {
            !term.is_not && term.word == "owner" && term.values.iter().all(|value| value.eq_ignore_ascii_case(slug))
        };
        self.terms.iter().any(says_so)
    }

    /// Whether these facts match.
    #[must_use]
    pub fn matches(&self, facts: &Facts) -> bool {
        self.refused_by(facts).is_none()
    }

    /// The first term that does not hold, as it is written.
    #[must_use]
    pub fn refused_by(&self, facts: &Facts) -> Option<String> {
        self.terms.iter().find(|term| !term.holds(facts)).map(ToString::to_string)
    }
}

impl Term {
    fn holds(&self, facts: &Facts) -> bool {
        let empty = Vec::new();
        let have = facts.0.get(&self.word).unwrap_or(&empty);
        let any = have.iter().any(|one| self.values.iter().any(|wanted| fits(&self.word, wanted, one)));
        any != self.is_not
    }
}

impl std::fmt::Display for Term {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{}:{}", if self.is_not { "-" } else { "" }, self.word, self.values.join(","))
    }
}

fn fits(word: &str, wanted: &str, have: &str) -> bool {
    if let Some((_, order)) = ORDERED.iter().find(|(ordered, _)| *ordered == word) {
        let rank = |value: &str| order.iter().position(|known| *known == value);
        return rank(have).zip(rank(wanted)).is_some_and(|(have, wanted)| have <= wanted);
    }
    let (wanted, have) = (wanted.to_lowercase(), have.to_lowercase());
    match wanted.strip_suffix('*') {
        Some(start) => have.starts_with(start),
        None if word == "name" => have.contains(&wanted),
        // A tag without a value holds for whatever value it has.
        None if word == "tag" && !wanted.contains('=') => have == wanted || have.starts_with(&format!("{wanted}=")),
        None => have == wanted,
    }
}

fn term(part: &str) -> Result<Term, BadMatcher> {
    let (is_not, part) = part.strip_prefix('-').map_or((false, part), |rest| (true, rest));
    let Some((word, values)) = part.split_once(':') else {
        return Ok(Term { word: "name".to_owned(), values: vec![part.to_owned()], is_not });
    };
    if !WORDS.contains(&word) {
        return Err(BadMatcher::Word(word.to_owned()));
    }
    let values: Vec<String> = values.split(',').filter(|value| !value.is_empty()).map(ToOwned::to_owned).collect();
    if values.is_empty() {
        return Err(BadMatcher::Empty(word.to_owned()));
    }
    if let Some((word, order)) = ORDERED.iter().find(|(ordered, _)| *ordered == word)
        && let Some(value) = values.iter().find(|value| !order.contains(&value.as_str()))
    {
        return Err(BadMatcher::Value { word, value: value.clone(), known: order.join(", ") });
    }
    Ok(Term { word: word.to_owned(), values, is_not })
}

/// Splits at spaces outside of quotation marks.
fn split(text: &str) -> Result<Vec<String>, BadMatcher> {
    let (mut parts, mut part, mut is_quoted) = (Vec::new(), String::new(), false);
    for letter in text.chars() {
        match letter {
            '"' => is_quoted = !is_quoted,
            letter if letter.is_whitespace() && !is_quoted => parts.push(std::mem::take(&mut part)),
            letter => part.push(letter),
        }
    }
    parts.push(part);
    if is_quoted {
        return Err(BadMatcher::Quote);
    }
    Ok(parts.into_iter().filter(|part| !part.is_empty()).collect())
}

/// Whether an event word is among those wanted: empty is all, `finding.*` all that begin so.
#[must_use]
pub fn wants_type(types: &[String], word: &str) -> bool {
    types.is_empty()
        || types.iter().any(|wanted| match wanted.strip_suffix('*') {
            Some(start) => word.starts_with(start),
            None => wanted == word,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(pairs: &[(&str, &str)]) -> Facts {
        let mut facts = Facts::default();
        for (word, value) in pairs {
            facts.0.entry((*word).to_owned()).or_default().push((*value).to_owned());
        }
        facts
    }

    #[test]
    fn terms_hold_together_and_values_apart() {
        let card = facts(&[
            ("owner", "harbour"),
            ("tag", "tier=1"),
            ("tag", "eu"),
            ("severity", "error"),
            ("rule", "a2a/skill-id-duplicate"),
            ("name", "Harbour weather"),
        ]);
        for (text, holds) in [
            ("", true),
            ("owner:harbour", true),
            ("owner:HARBOUR,pier", true),
            ("owner:pier", false),
            ("-owner:pier", true),
            ("-owner:harbour", false),
            ("tag:tier", true),
            ("tag:tier=1", true),
            ("tag:tier=2", false),
            ("tag:eu owner:harbour", true),
            ("severity:warning", true),
            ("severity:error", true),
            ("severity:critical", false),
            ("impact:degrades", false),
            ("-impact:degrades", true),
            ("rule:a2a/*", true),
            ("-rule:a2a/*", false),
            ("weather", true),
            ("\"harbour weather\"", true),
            ("storm", false),
        ] {
            assert_eq!(Matcher::parse(text).unwrap().matches(&card), holds, "{text}");
        }
        let refused = Matcher::parse("owner:harbour -tag:eu").unwrap().refused_by(&card);
        assert_eq!(refused.as_deref(), Some("-tag:eu"));
    }

    #[test]
    fn a_matcher_stays_within_an_owner_when_a_term_says_so() {
        for (text, is_within) in [
            ("owner:harbour", true),
            ("severity:error owner:Harbour", true),
            ("", false),
            ("owner:harbour,pier", false),
            ("owner:harb*", false),
            ("-owner:harbour", false),
            ("harbour", false),
        ] {
            assert_eq!(Matcher::parse(text).unwrap().is_within_owner("harbour"), is_within, "{text}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        assert_eq!(Matcher::parse("onwer:x"), Err(BadMatcher::Word("onwer".to_owned())));
        assert_eq!(Matcher::parse("owner:"), Err(BadMatcher::Empty("owner".to_owned())));
        assert!(matches!(Matcher::parse("severity:loud"), Err(BadMatcher::Value { .. })));
        assert_eq!(Matcher::parse("\"x"), Err(BadMatcher::Quote));
    }

    #[test]
    fn types_are_named_whole_or_by_their_beginning() {
        let types = ["finding.*".to_owned(), "target.down".to_owned()];
        for (word, wanted) in [("finding.opened", true), ("target.down", true), ("target.gone", false)] {
            assert_eq!(wants_type(&types, word), wanted, "{word}");
        }
        assert!(wants_type(&[], "ping"));
    }
}
