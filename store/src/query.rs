//! The one query language of lists, cohorts and matchers: `kind:a2a-agent headline:blocked rule:a2a/* -waived:yes free words`.
//!
//! A query is a row of terms that must all hold. A term is `field:value`, `-field:value` excludes, a value with a space stands in
//! quotation marks, and whatever is no term is a word that some word of the target must begin with. Reading a query is pure; what
//! cannot be read is told with the place of the word that is to blame.

use std::fmt;
use std::ops::Range;

use plumbline_rules::conversation::Era;
use plumbline_rules::kind::Known;
use plumbline_rules::report::Headline;
use plumbline_rules::rule::{Impact, Severity};
use plumbline_rules::standing::Access;
use serde::Serialize;

use crate::views::TargetFilter;
use crate::words::{ReachState, TargetKind};

/// What a term is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Field {
    /// The kind of target.
    Kind,
    /// Its word.
    Headline,
    /// The revision it was judged as.
    Profile,
    /// How that is known.
    Known,
    /// Its reach state.
    Reach,
    /// What released clients do about an open finding.
    Impact,
    /// The severity of an open finding.
    Severity,
    /// Whether a finding tagged security is open.
    Security,
    /// A rule with an open finding, or `family/*`.
    Rule,
    /// A rule of class fact that is set.
    Fact,
    /// Whoever stands behind it.
    Owner,
    /// A host or registrable domain that it is on.
    Host,
    /// A tag, `key` or `key=value`.
    Tag,
    /// The source that lists it.
    Source,
    /// A cohort it belongs to.
    Cohort,
    /// When it last changed: `<7d` within seven days, `>7d` longer ago.
    Changed,
    /// When it was first seen, in the same form.
    Added,
    /// Whether an accepted deviation is among its findings.
    Waived,
    /// What an MCP endpoint of it speaks.
    Era,
    /// Who gets into an MCP endpoint of it.
    Access,
}

impl Field {
    /// Every field, in the order of a query that we write ourselves.
    pub const ALL: [Field; 20] = [
        Field::Kind,
        Field::Headline,
        Field::Profile,
        Field::Known,
        Field::Reach,
        Field::Impact,
        Field::Severity,
        Field::Security,
        Field::Rule,
        Field::Fact,
        Field::Owner,
        Field::Host,
        Field::Tag,
        Field::Source,
        Field::Cohort,
        Field::Changed,
        Field::Added,
        Field::Waived,
        Field::Era,
        Field::Access,
    ];

    /// As it is written before the colon.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Field::Kind => "kind",
            Field::Headline => "headline",
            Field::Profile => "profile",
            Field::Known => "known",
            Field::Reach => "reach",
            Field::Impact => "impact",
            Field::Severity => "severity",
            Field::Security => "security",
            Field::Rule => "rule",
            Field::Fact => "fact",
            Field::Owner => "owner",
            Field::Host => "host",
            Field::Tag => "tag",
            Field::Source => "source",
            Field::Cohort => "cohort",
            Field::Changed => "changed",
            Field::Added => "added",
            Field::Waived => "waived",
            Field::Era => "era",
            Field::Access => "access",
        }
    }

    /// The field of that name; `verdict` is another word for the headline.
    #[must_use]
    pub fn named(name: &str) -> Option<Field> {
        match name {
            "verdict" => Some(Field::Headline),
            _ => Field::ALL.into_iter().find(|field| field.name() == name),
        }
    }

    /// The values it may have, where they are a closed list.
    #[must_use]
    pub fn values(self) -> Vec<&'static str> {
        match self {
            Field::Kind => TargetKind::ALL.iter().map(|word| word.as_str()).collect(),
            Field::Headline => Headline::ALL.iter().map(|word| word.as_str()).collect(),
            Field::Known => Known::ALL.iter().map(|word| word.as_str()).collect(),
            Field::Reach => ReachState::ALL.iter().map(|word| word.as_str()).collect(),
            Field::Impact => Impact::ALL.iter().map(|word| word.as_str()).collect(),
            Field::Severity => Severity::ALL.iter().map(|word| word.as_str()).collect(),
            Field::Security | Field::Waived => vec!["yes", "no"],
            Field::Era => Era::ALL.iter().map(|word| word.as_str()).collect(),
            Field::Access => Access::ALL.iter().map(|word| word.as_str()).collect(),
            Field::Changed | Field::Added => vec!["<24h", "<7d", "<30d", ">30d", ">90d"],
            Field::Profile
            | Field::Rule
            | Field::Fact
            | Field::Owner
            | Field::Host
            | Field::Tag
            | Field::Source
            | Field::Cohort => Vec::new(),
        }
    }

    /// What it asks, in few words.
    #[must_use]
    pub fn says(self) -> &'static str {
        match self {
            Field::Kind => "the kind of target",
            Field::Headline => "its verdict",
            Field::Profile => "the revision it was judged as, such as a2a-1.0",
            Field::Known => "how that revision is known",
            Field::Reach => "whether it can be reached",
            Field::Impact => "what clients do about an open finding",
            Field::Severity => "the severity of an open finding",
            Field::Security => "whether a finding tagged security is open",
            Field::Rule => "a rule it fails, or family/*",
            Field::Fact => "an attribute that is set",
            Field::Owner => "who stands behind it",
            Field::Host => "a host or registrable domain that it is on, itself or with what is asked for it",
            Field::Tag => "a tag, key or key=value",
            Field::Source => "the source that lists it",
            Field::Cohort => "a cohort it belongs to",
            Field::Changed => "when it last changed: <7d within, >7d longer ago",
            Field::Added => "when it was first seen: <7d within, >7d longer ago",
            Field::Waived => "whether an accepted deviation is among its findings",
            Field::Era => "which revisions an MCP endpoint of it speaks: those with a handshake, that without, or both",
            Field::Access => "who gets into an MCP endpoint of it",
        }
    }
}

/// One `field:value`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Term {
    /// It must not hold.
    pub is_not: bool,
    /// What it is about.
    pub field: Field,
    /// Without quotation marks.
    pub value: String,
    /// Where it stands in the text that was read, in bytes.
    #[serde(skip)]
    pub at: Range<usize>,
}

/// A query that could be read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Query {
    /// Terms in the order they were written.
    pub terms: Vec<Term>,
    /// What is no term, as it was written.
    pub words: Vec<String>,
}

/// Why a query cannot be read, and which word is to blame.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("{says}")]
pub struct QueryError {
    /// The whole query.
    pub query: String,
    /// Where the word begins, in bytes.
    pub at: usize,
    /// How long it is, in bytes.
    pub length: usize,
    /// What is wrong with it, as a sentence.
    pub says: String,
}

impl QueryError {
    /// The query in three pieces: before the word, the word, after it.
    #[must_use]
    pub fn pieces(&self) -> [&str; 3] {
        let (start, end) = (self.at, self.at + self.length);
        [&self.query[..start], &self.query[start..end], &self.query[end..]]
    }
}

/// One piece of a query as it is written, before anybody asks what its field means: lists and matchers of events read the same
/// language with words of their own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// Where it stands, in bytes.
    pub at: Range<usize>,
    /// A minus stands before it.
    pub is_not: bool,
    /// What stands before the colon; `None`: it is a word.
    pub field: Option<String>,
    /// What stands after it, or the word, without quotation marks.
    pub value: String,
}

/// The pieces of a query.
///
/// # Errors
/// For quotation marks that do not end.
pub fn pieces(text: &str) -> Result<Vec<Piece>, QueryError> {
    let piece = |at: Range<usize>| {
        let token = &text[at.clone()];
        let (is_not, rest) = token.strip_prefix('-').map_or((false, token), |rest| (true, rest));
        let named = rest.split_once(':').filter(|(name, value)| is_field_name(name) && !value.starts_with("//"));
        match named {
            None => Piece { at, is_not, field: None, value: unquoted(if is_not { rest } else { token }) },
            Some((name, value)) => Piece { at, is_not, field: Some(name.to_owned()), value: unquoted(value) },
        }
    };
    Ok(tokens(text)?.into_iter().map(piece).collect())
}

/// Reads a query.
///
/// # Errors
/// For a field that there is not, a term without a value, and quotation marks that do not end.
pub fn parse(text: &str) -> Result<Query, QueryError> {
    let mut query = Query::default();
    for Piece { at, is_not, field: named, value } in pieces(text)? {
        let token = &text[at.clone()];
        let wrong = |says: String| QueryError { query: text.to_owned(), at: at.start, length: at.len(), says };
        match named {
            None if is_not => {
                return Err(wrong(format!("“{token}” excludes a word, and only a field can be excluded, as -tag:x.")));
            }
            None => query.words.push(value),
            Some(name) => {
                let field = Field::named(&name).ok_or_else(|| wrong(unknown_field(&name)))?;
                if value.is_empty() {
                    return Err(wrong(format!("“{name}:” has no value; it asks for {}.", field.says())));
                }
                query.terms.push(Term { is_not, field, value, at });
            }
        }
    }
    Ok(query)
}

fn is_field_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|letter| letter.is_ascii_lowercase() || letter == b'_')
}

fn unquoted(value: &str) -> String {
    value.replace('"', "")
}

fn unknown_field(name: &str) -> String {
    let near = Field::ALL.into_iter().min_by_key(|field| distance(name, field.name()));
    match near.filter(|field| distance(name, field.name()) <= 2) {
        Some(near) => format!("There is no field “{name}”. Did you mean “{}:”?", near.name()),
        None => {
            let names: Vec<&str> = Field::ALL.iter().map(|field| field.name()).collect();
            format!("There is no field “{name}”. There are {}.", names.join(", "))
        }
    }
}

/// How many letters have to be changed, added or left out.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut before = row[0];
        row[0] = i + 1;
        for (j, y) in b.bytes().enumerate() {
            let changed = before + usize::from(x != y);
            before = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(before + 1);
        }
    }
    row[b.len()]
}

/// The pieces between white space; white space within quotation marks parts nothing.
fn tokens(text: &str) -> Result<Vec<Range<usize>>, QueryError> {
    let mut found = Vec::new();
    let mut start = None;
    let mut quoted_at = None;
    for (at, letter) in text.char_indices() {
        if letter == '"' {
            quoted_at = if quoted_at.is_some() { None } else { Some(at) };
        }
        match (letter.is_whitespace() && quoted_at.is_none(), start) {
            (false, None) => start = Some(at),
            (true, Some(from)) => {
                found.push(from..at);
                start = None;
            }
            _ => {}
        }
    }
    if let Some(at) = quoted_at {
        let says = "These quotation marks do not end.".to_owned();
        return Err(QueryError { query: text.to_owned(), at, length: text.len() - at, says });
    }
    found.extend(start.map(|from| from..text.len()));
    Ok(found)
}

impl Term {
    /// As it is written.
    #[must_use]
    pub fn text(&self) -> String {
        let mark = if self.is_not { "-" } else { "" };
        let needs_marks = self.value.chars().any(char::is_whitespace);
        let value = if needs_marks { format!("\"{}\"", self.value) } else { self.value.clone() };
        format!("{mark}{}:{value}", self.field.name())
    }
}

impl fmt::Display for Query {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = self
            .words
            .iter()
            .map(|word| if word.chars().any(char::is_whitespace) { format!("\"{word}\"") } else { word.clone() });
        let parts: Vec<String> = self.terms.iter().map(Term::text).chain(words).collect();
        f.write_str(&parts.join(" "))
    }
}

impl Query {
    /// The value that a field must have; `None`: it may have any.
    #[must_use]
    pub fn value(&self, field: Field) -> Option<&str> {
        self.terms.iter().find(|term| term.field == field && !term.is_not).map(|term| term.value.as_str())
    }

    /// The same query with one field set to a value, or to any.
    #[must_use]
    pub fn with(&self, field: Field, value: Option<&str>) -> Query {
        let mut query = self.clone();
        query.terms.retain(|term| term.field != field || term.is_not);
        if let Some(value) = value {
            query.terms.push(Term { is_not: false, field, value: value.to_owned(), at: 0..0 });
        }
        query
    }

    /// Whether it asks for anything.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty() && self.words.is_empty()
    }

    /// Beginnings of words that are searched for: letters and digits, in lower case, the first three.
    #[must_use]
    pub fn search_words(&self) -> Vec<String> {
        self.words
            .join(" ")
            .to_lowercase()
            .split(|letter: char| !letter.is_alphanumeric())
            .filter(|word| !word.is_empty())
            .take(3)
            .map(|word| word.chars().take(60).collect())
            .collect()
    }

    /// Which targets it means, now.
    ///
    /// # Errors
    /// For a value that its field cannot have, and a field that is asked for twice.
    pub fn filter(&self, now_s: i64) -> Result<TargetFilter, QueryError> {
        let text = self.to_string();
        let mut filter = TargetFilter { words: self.search_words(), ..TargetFilter::default() };
        let mut seen = Vec::new();
        for term in &self.terms {
            let wrong = |says: String| {
                let at = text.find(&term.text()).unwrap_or(0);
                QueryError { query: text.clone(), at, length: term.text().len(), says }
            };
            if seen.contains(&(term.field, term.is_not)) {
                let mark = if term.is_not { "-" } else { "" };
                return Err(wrong(format!(
                    "“{mark}{}:” stands twice; a field can be asked for once.",
                    term.field.name()
                )));
            }
            seen.push((term.field, term.is_not));
            add(&mut filter, term, now_s).map_err(wrong)?;
        }
        Ok(filter)
    }
}

/// Puts one term into a filter.
fn add(filter: &mut TargetFilter, term: &Term, now_s: i64) -> Result<(), String> {
    let value = &term.value;
    let text = || Some(value.clone());
    let (only, not) = (&mut *filter, term.is_not);
    match term.field {
        Field::Kind => *pick(not, &mut only.kind, &mut only.not.kind) = Some(word(term)?),
        Field::Headline => *pick(not, &mut only.headline, &mut only.not.headline) = Some(word(term)?),
        Field::Reach => *pick(not, &mut only.reach, &mut only.not.reach) = Some(word(term)?),
        Field::Known => *pick(not, &mut only.known, &mut only.not.known) = Some(word(term)?),
        Field::Impact => *pick(not, &mut only.impact, &mut only.not.impact) = Some(word(term)?),
        Field::Severity => *pick(not, &mut only.severity, &mut only.not.severity) = Some(word(term)?),
        Field::Profile => *pick(not, &mut only.profile, &mut only.not.profile) = Some(whole_profile(value)),
        Field::Rule => match value.strip_suffix("/*") {
            Some(family) => *pick(not, &mut only.family, &mut only.not.family) = Some(family.to_owned()),
            None => *pick(not, &mut only.rule, &mut only.not.rule) = text(),
        },
        Field::Fact => *pick(not, &mut only.fact, &mut only.not.fact) = text(),
        Field::Owner => *pick(not, &mut only.owner, &mut only.not.owner) = text(),
        Field::Host => *pick(not, &mut only.host, &mut only.not.host) = text(),
        Field::Source => *pick(not, &mut only.source, &mut only.not.source) = text(),
        // The cohorts that everything starts with are everything and the kinds.
        Field::Cohort if value == "all" => {}
        Field::Cohort => match value.parse() {
            Ok(kind) => *pick(not, &mut only.kind, &mut only.not.kind) = Some(kind),
            Err(_) => *pick(not, &mut only.cohort, &mut only.not.cohort) = text(),
        },
        Field::Tag => {
            let (key, given) = value.split_once('=').map_or((value.as_str(), None), |(key, given)| (key, Some(given)));
            *pick(not, &mut only.tag, &mut only.not.tag) = Some((key.to_owned(), given.map(str::to_owned)));
        }
        Field::Security => only.security = Some(yes_or_no(term)? != not),
        Field::Waived => only.waived = Some(yes_or_no(term)? != not),
        Field::Era => *pick(not, &mut only.era, &mut only.not.era) = Some(word(term)?),
        Field::Access => *pick(not, &mut only.access, &mut only.not.access) = Some(word(term)?),
        Field::Changed => {
            let (is_within, span_s) = age(term)?;
            *pick(is_within != not, &mut only.changed_before_s, &mut only.changed_after_s) = Some(now_s - span_s);
        }
        Field::Added => {
            let (is_within, span_s) = age(term)?;
            *pick(is_within != not, &mut only.added_before_s, &mut only.added_after_s) = Some(now_s - span_s);
        }
    }
    Ok(())
}

fn pick<'a, T>(second: bool, first: &'a mut T, other: &'a mut T) -> &'a mut T {
    if second { other } else { first }
}

fn word<T: std::str::FromStr>(term: &Term) -> Result<T, String> {
    term.value.parse().map_err(|_| {
        let known = term.field.values();
        format!("“{}” is no value of {}: it is one of {}.", term.value, term.field.name(), known.join(", "))
    })
}

fn yes_or_no(term: &Term) -> Result<bool, String> {
    match term.value.as_str() {
        "yes" => Ok(true),
        "no" => Ok(false),
        other => Err(format!("“{other}” is neither yes nor no.")),
    }
}

/// `<7d`: within so many seconds; `>7d`: longer ago.
fn age(term: &Term) -> Result<(bool, i64), String> {
    let wrong =
        || format!("“{}” is no age: write <7d for within seven days, >30d for longer ago (h, d, w).", term.value);
    let (is_within, rest) = match term.value.split_at_checked(1) {
        Some(("<", rest)) => (true, rest),
        Some((">", rest)) => (false, rest),
        _ => return Err(wrong()),
    };
    let unit = rest.chars().last().ok_or_else(wrong)?;
    let seconds = match unit {
        'h' => 3_600,
        'd' => 86_400,
        'w' => 7 * 86_400,
        _ => return Err(wrong()),
    };
    let count: i64 = rest[..rest.len() - 1].parse().map_err(|_| wrong())?;
    if !(1..=100_000).contains(&count) {
        return Err(wrong());
    }
    Ok((is_within, count * seconds))
}

/// `0.3` is the release of A2A, `2025-11-25` the revision of MCP, `3.1` the version of OpenAPI.
/// The profile that is meant: `0.3` is `a2a-0.3`.
#[must_use]
pub fn whole_profile(value: &str) -> String {
    let is_date = value.len() == 10 && value.bytes().all(|letter| letter.is_ascii_digit() || letter == b'-');
    match value {
        "0.1" | "0.2" | "0.3" | "1.0" => format!("a2a-{value}"),
        "2.0" | "3.0" | "3.1" | "3.2" => format!("openapi-{value}"),
        _ if is_date => format!("mcp-{value}"),
        _ => value.to_owned(),
    }
}

/// How a query could go on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Completion {
    /// The whole query with its last word completed.
    pub query: String,
    /// What that word means.
    pub says: String,
}

/// Completes the last word of a query; `known` gives the values of a field whose list is not closed, for what was typed of one.
#[must_use]
pub fn complete(text: &str, known: impl Fn(Field, &str) -> Vec<String>) -> Vec<Completion> {
    let start = text.rfind(char::is_whitespace).map_or(0, |at| at + 1);
    let (before, last) = text.split_at(start);
    let (mark, last) = last.strip_prefix('-').map_or(("", last), |rest| ("-", rest));
    let whole = |field: Field, value: &str| Completion {
        query: format!("{before}{mark}{}:{value}", field.name()),
        says: field.says().to_owned(),
    };
    match last.split_once(':') {
        None => Field::ALL
            .into_iter()
            .filter(|field| field.name().starts_with(last))
            .map(|field| whole(field, ""))
            .collect(),
        Some((name, typed)) => {
            let Some(field) = Field::named(name) else { return Vec::new() };
            let closed = field.values();
            let values =
                if closed.is_empty() { known(field, typed) } else { closed.into_iter().map(str::to_owned).collect() };
            values.iter().filter(|value| value.starts_with(typed)).map(|value| whole(field, value)).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_796_000_000;

    fn filter(text: &str) -> Result<TargetFilter, QueryError> {
        parse(text)?.filter(NOW)
    }

    #[test]
    fn every_field_of_the_language_is_read() {
        let text = "kind:a2a-agent headline:blocked profile:0.3 known:assumed impact:breaks-clients fact:a2a/legacy-card \
                    security:yes rule:a2a/* owner:example tag:tier=1 reach:down changed:<7d -waived:yes free text";
        let read = filter(text).unwrap();
        assert_eq!(read.kind, Some(TargetKind::A2aAgent));
        assert_eq!(read.headline, Some(Headline::Blocked));
        assert_eq!(read.profile.as_deref(), Some("a2a-0.3"));
        assert_eq!(read.known, Some(Known::Assumed));
        assert_eq!(read.impact, Some(Impact::BreaksClients));
        assert_eq!(read.fact.as_deref(), Some("a2a/legacy-card"));
        assert_eq!((read.security, read.waived), (Some(true), Some(false)));
        assert_eq!((read.family.as_deref(), read.rule), (Some("a2a"), None));
        assert_eq!(read.tag, Some(("tier".to_owned(), Some("1".to_owned()))));
        assert_eq!(read.changed_after_s, Some(NOW - 7 * 86_400));
        assert_eq!(read.words, ["free", "text"]);
    }

    #[test]
    fn what_is_excluded_stands_apart() {
        let read = filter("-kind:other -tag:tier -changed:<2w -added:>30d").unwrap();
        assert_eq!((read.kind, read.not.kind), (None, Some(TargetKind::Other)));
        assert_eq!(read.not.tag, Some(("tier".to_owned(), None)));
        assert_eq!((read.changed_before_s, read.changed_after_s), (Some(NOW - 14 * 86_400), None));
        assert_eq!((read.added_before_s, read.added_after_s), (None, Some(NOW - 30 * 86_400)));
    }

    #[test]
    fn an_error_points_at_the_word() {
        for (text, word, says) in [
            ("headline:blocked knd:a2a-agent x", "knd:a2a-agent", "Did you mean “kind:”?"),
            ("zzzzzzz:1", "zzzzzzz:1", "There are kind, headline"),
            ("tag: x", "tag:", "has no value"),
            ("x kind:agent", "kind:agent", "one of mcp-server, a2a-agent"),
            ("changed:7d", "changed:7d", "is no age"),
            ("changed:<0d", "changed:<0d", "is no age"),
            ("security:maybe", "security:maybe", "neither yes nor no"),
            ("rule:a/b rule:c/d", "rule:c/d", "stands twice"),
            ("-halden", "-halden", "only a field can be excluded"),
            ("owner:\"Halden Freight", "\"Halden Freight", "do not end"),
            ("müller reach:weg", "reach:weg", "one of unknown, up"),
        ] {
            let error = filter(text).unwrap_err();
            assert_eq!(error.pieces()[1], word, "{text}");
            assert!(error.says.contains(says), "{text}: {}", error.says);
        }
    }

    #[test]
    fn words_addresses_and_quotation_marks_are_kept() {
        let query = parse("https://a.example/x owner:\"Halden Freight\" io.github/Acme").unwrap();
        assert_eq!(query.words, ["https://a.example/x", "io.github/Acme"]);
        assert_eq!(query.value(Field::Owner), Some("Halden Freight"));
        assert_eq!(parse(&query.to_string()).unwrap().to_string(), query.to_string());
        assert_eq!(parse("io.github/Acme weather-tiles").unwrap().search_words(), ["io", "github", "acme"]);
        assert!(parse(" ").unwrap().is_empty());
    }

    #[test]
    fn a_form_field_writes_the_same_query() {
        let query = parse("headline:blocked -kind:other tide").unwrap();
        assert_eq!(query.with(Field::Headline, Some("sound")).to_string(), "-kind:other headline:sound tide");
        assert_eq!(query.with(Field::Headline, None).to_string(), "-kind:other tide");
        assert_eq!(
            query.with(Field::Kind, Some("a2a-agent")).to_string(),
            "headline:blocked -kind:other kind:a2a-agent tide"
        );
    }

    #[test]
    fn the_last_word_is_completed() {
        let queries = |text: &str| -> Vec<String> {
            let known = |_: Field, typed: &str| vec![format!("{typed}-required")];
            complete(text, known).into_iter().map(|completion| completion.query).collect()
        };
        assert_eq!(queries("x k"), ["x kind:", "x known:"]);
        assert_eq!(queries("headline:not_"), ["headline:not_evaluated", "headline:not_detected"]);
        assert_eq!(queries("-rule:a2a/name"), ["-rule:a2a/name-required"]);
        assert!(queries("nothing:x").is_empty());
    }
}
