//! What templates may do with a value: show a stranger's words safely, write numbers and times in our hand.
//!
//! Each filter is one line around a pure function of [`crate::text`].

use std::fmt::Display;

use askama::{Template, Values, filters::HtmlSafe};

use crate::text;
use crate::words::Given;

/// A stranger's words, shortened, with nothing unseen, and isolated so that their direction does not reach the line around.
#[derive(Template)]
#[template(ext = "html", source = r#"<bdi>{{ shown }}</bdi>"#)]
pub struct Foreign {
    shown: String,
}

impl HtmlSafe for Foreign {}

impl Foreign {
    /// At most `limit` characters of `words`.
    #[must_use]
    pub fn new(words: &str, limit: usize) -> Self {
        Self { shown: text::visible(words, limit) }
    }
}

/// A stranger's words in the text of a page.
#[askama::filter_fn]
pub fn foreign(words: impl Display, _: &dyn Values, limit: usize) -> askama::Result<Foreign> {
    Ok(Foreign::new(&words.to_string(), limit))
}

/// A stranger's words in an attribute or a title, where there is no markup: shortened, with nothing unseen.
#[askama::filter_fn]
pub fn plain(words: impl Display, _: &dyn Values, limit: usize) -> askama::Result<String> {
    Ok(text::visible(&words.to_string(), limit))
}

/// The beginning of our own letters, with nothing that announces what was cut off: for an address, or where the page says so.
#[askama::filter_fn]
pub fn begin(letters: impl Display, _: &dyn Values, limit: usize) -> askama::Result<String> {
    Ok(letters.to_string().chars().take(limit).collect())
}

/// Letters shown of a sentence. Ours are shorter; what goes beyond is a stranger's value in it.
const PROSE: usize = 600;

/// Our own words with `code` in backticks, as rules write them; the values they quote may be a stranger's.
#[askama::filter_fn]
pub fn prose(words: impl Display, _: &dyn Values) -> askama::Result<Prose> {
    Ok(Prose::new(&words.to_string(), PROSE))
}

/// A sentence cut into words and code.
#[derive(Template)]
#[template(
    ext = "html",
    source = r#"{% for part in parts %}{% if part.is_code %}<code><bdi>{{ part.words }}</bdi></code>{% else %}{{ part.words }}{% endif %}{% endfor %}"#
)]
pub struct Prose {
    parts: Vec<Part>,
}

struct Part {
    is_code: bool,
    words: String,
}

impl HtmlSafe for Prose {}

impl Prose {
    /// Every second piece between backticks is code; a lone backtick is a backtick, unless its partner was cut off.
    #[must_use]
    pub fn new(words: &str, limit: usize) -> Self {
        let shown = text::visible(words, limit);
        let pieces: Vec<&str> = shown.split('`').collect();
        let is_paired = pieces.len() % 2 == 1 || words.chars().nth(limit).is_some();
        let paired = if is_paired { pieces.len() } else { pieces.len() - 1 };
        let mut parts: Vec<Part> = pieces[..paired]
            .iter()
            .enumerate()
            .map(|(n, piece)| Part { is_code: n % 2 == 1, words: (*piece).to_owned() })
            .collect();
        if let Some(rest) = pieces.get(paired) {
            parts.push(Part { is_code: false, words: format!("`{rest}") });
        }
        parts.retain(|part| !part.words.is_empty());
        Self { parts }
    }
}

/// A name of ours in capitals and underscores, which may be broken after each of them.
#[askama::filter_fn]
pub fn breakable(name: impl Display, _: &dyn Values) -> askama::Result<Breakable> {
    Ok(Breakable { parts: name.to_string().split_inclusive('_').map(str::to_owned).collect() })
}

/// A name cut where a line may break.
#[derive(Template)]
#[template(ext = "html", source = "{% for part in parts %}{{ part }}{% if !loop.last %}<wbr>{% endif %}{% endfor %}")]
pub struct Breakable {
    parts: Vec<String>,
}

impl HtmlSafe for Breakable {}

/// `10,327`.
#[askama::filter_fn]
pub fn number(value: impl Given<i64>, _: &dyn Values) -> askama::Result<String> {
    Ok(text::number(value.given()))
}

/// `1 target`, `10,327 targets`.
#[askama::filter_fn]
pub fn counted(value: impl Given<i64>, _: &dyn Values, one: &str, many: &str) -> askama::Result<String> {
    Ok(text::counted(value.given(), one, many))
}

/// `3.3 %` of a whole.
#[askama::filter_fn]
pub fn share(part: impl Given<i64>, _: &dyn Values, whole: &i64) -> askama::Result<String> {
    Ok(text::share(part.given(), *whole))
}

/// `5.1 kB`.
#[askama::filter_fn]
pub fn bytes(value: impl Given<i64>, _: &dyn Values) -> askama::Result<String> {
    Ok(text::bytes(value.given()))
}

/// `29 Nov 2026, 18:07 UTC`.
#[askama::filter_fn]
pub fn moment(at: impl Given<i64>, _: &dyn Values) -> askama::Result<String> {
    Ok(text::moment(at.given()))
}

/// `2026-11-29T18:07:00Z`.
#[askama::filter_fn]
pub fn rfc3339(at: impl Given<i64>, _: &dyn Values) -> askama::Result<String> {
    Ok(text::rfc3339(at.given()))
}

/// `18:07` today, `28 Nov, 18:07` this year.
#[askama::filter_fn]
pub fn brief(at: impl Given<i64>, _: &dyn Values, now: &i64) -> askama::Result<String> {
    Ok(text::brief(at.given(), *now))
}

/// `7 min ago`.
#[askama::filter_fn]
pub fn ago(at: impl Given<i64>, _: &dyn Values, now: &i64) -> askama::Result<String> {
    Ok(text::ago(at.given(), *now))
}

/// `29 Nov`, of days since 1970.
#[askama::filter_fn]
pub fn day(number: impl Given<i64>, _: &dyn Values) -> askama::Result<String> {
    Ok(text::day(number.given()))
}

/// A value inside a query string.
#[askama::filter_fn]
pub fn query(value: impl Display, _: &dyn Values) -> askama::Result<String> {
    Ok(text::query_escaped(&value.to_string()))
}

/// A coordinate with at most two decimals.
#[askama::filter_fn]
pub fn decimal(value: impl Given<f64>, _: &dyn Values) -> askama::Result<String> {
    Ok(format!("{}", (value.given() * 100.0).round() / 100.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_words_are_escaped_isolated_and_visible() {
        let shown = Foreign::new("<script>\u{202e}x", 80).render().unwrap();
        assert_eq!(shown, "<bdi>&#60;script&#62;⟨U+202E⟩x</bdi>");
    }

    #[test]
    fn a_long_name_breaks_after_its_underscores() {
        let name = Breakable { parts: "A2A_<B>_C".split_inclusive('_').map(str::to_owned).collect() };
        assert_eq!(name.render().unwrap(), "A2A_<wbr>&#60;B&#62;_<wbr>C");
    }

    #[test]
    fn backticks_become_code_and_a_lone_one_stays() {
        assert_eq!(Prose::new("use `a<b` here", 80).render().unwrap(), "use <code><bdi>a&#60;b</bdi></code> here");
        assert_eq!(Prose::new("a ` b", 80).render().unwrap(), "a ` b");
        assert_eq!(Prose::new("a `bcdef`", 5).render().unwrap(), "a <code><bdi>bc…</bdi></code>");
    }
}
