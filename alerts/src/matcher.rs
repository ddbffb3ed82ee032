//! Which events somebody wants, in the query language of lists ([`plumbline_store::query`]) with the words of events:
//! `owner:harbour severity:error -rule:a2a/*`.
//!
//! All terms must hold; within one, any of the values separated by commas; a minus before it turns it around. A value may
//! end in `*`. `severity`, `impact` and `headline` name the least grave word that counts: `severity:warning` holds for errors.
//! A word without a colon is looked for in the target's name. So the query of a list can be subscribed to as it stands, but
//! for what only a list can know: attributes, and when something last changed.

use plumbline_store::happened::Facts;
use plumbline_store::query::{self, Field, Piece, QueryError};

/// Words a matcher may ask about.
pub const WORDS: [&str; 23] = [
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
    "cohort",
    "target",
    "cause",
    "opened_as",
    "profile",
    "known",
    "waived",
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

impl Matcher {
    /// Reads a matcher; an empty text matches everything.
    ///
    /// # Errors
    /// What cannot be read.
    pub fn parse(text: &str) -> Result<Matcher, QueryError> {
        let read = |piece: Piece| {
            let (at, length) = (piece.at.start, piece.at.len());
            term(piece).map_err(|says| QueryError { query: text.to_owned(), at, length, says })
        };
        let terms: Result<Vec<Term>, QueryError> = query::pieces(text)?.into_iter().map(read).collect();
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

    /// Whether it is about other targets than these facts are of: a term about who they are does not hold, whatever happened.
    #[must_use]
    pub fn is_about_another(&self, facts: &Facts) -> bool {
        let is_of_target = |term: &&Term| {
            matches!(term.word.as_str(), "owner" | "target" | "name" | "host" | "source" | "kind" | "tag")
        };
        self.terms.iter().filter(is_of_target).any(|term| !term.holds(facts))
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

fn term(piece: Piece) -> Result<Term, String> {
    let Piece { is_not, field, value, .. } = piece;
    let Some(word) = field else {
        return Ok(Term { word: "name".to_owned(), values: vec![value], is_not });
    };
    // Another word for the same in lists.
    let word = if word == "verdict" { "headline".to_owned() } else { word };
    if !WORDS.contains(&word.as_str()) {
        return Err(match Field::named(&word) {
            Some(_) => format!("“{word}:” can be asked of a list and not of an event."),
            None => format!("There is no field “{word}”. There are {}.", WORDS.join(", ")),
        });
    }
    let split = value.split(',').filter(|value| !value.is_empty());
    let values: Vec<String> = match word.as_str() {
        "profile" => split.map(query::whole_profile).collect(),
        _ => split.map(ToOwned::to_owned).collect(),
    };
    if values.is_empty() {
        return Err(format!("“{word}:” has no value."));
    }
    if let Some((word, order)) = ORDERED.iter().find(|(ordered, _)| *ordered == word)
        && let Some(value) = values.iter().find(|value| !order.contains(&value.as_str()))
    {
        return Err(format!("“{value}” is no value of {word}: it is one of {}.", order.join(", ")));
    }
    Ok(Term { word, values, is_not })
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
        for (text, says, at) in [
            ("severity:error onwer:x", "There is no field “onwer”", 15),
            ("owner:", "“owner:” has no value", 0),
            ("severity:loud", "“loud” is no value of severity", 0),
            ("changed:<7d", "can be asked of a list", 0),
            ("owner:x \"y", "quotation marks", 8),
        ] {
            let error = Matcher::parse(text).unwrap_err();
            assert!(error.says.contains(says) && error.at == at, "{text}: {error:?}");
        }
    }

    #[test]
    fn the_query_of_a_list_is_read_as_it_stands() {
        let card = facts(&[("kind", "a2a-agent"), ("profile", "a2a-0.3"), ("headline", "blocked"), ("waived", "no")]);
        for (text, holds) in [
            ("kind:a2a-agent verdict:blocked profile:0.3 -waived:yes", true),
            ("profile:1.0", false),
            ("cohort:a2a-agent", false),
        ] {
            assert_eq!(Matcher::parse(text).unwrap().matches(&card), holds, "{text}");
        }
        for field in Field::ALL {
            let is_of_lists = matches!(field.name(), "fact" | "changed" | "added" | "era" | "access");
            assert_eq!(WORDS.contains(&field.name()), !is_of_lists, "{}", field.name());
        }
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
