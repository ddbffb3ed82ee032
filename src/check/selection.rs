//! `--rule` and `--ignore`: which rules may say something.
//!
//! Every rule still runs, so that one fault keeps one finding; what was not asked for is not evaluated, never passed.

use anyhow::{Result, bail};
use plumbline_rules::catalogue;
use plumbline_rules::report::{NotEvaluated, Outcome, Report};
use plumbline_rules::rule::{Axis, Rule};

/// The rules that were asked for.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    only: Vec<String>,
    ignored: Vec<String>,
}

impl Selection {
    /// From patterns such as `a2a/*` or `*/secret-*`.
    ///
    /// # Errors
    /// When a pattern names no rule: a misspelled one would otherwise silence what it should not, or nothing.
    pub fn new(only: &[String], ignored: &[String]) -> Result<Selection> {
        for pattern in only.iter().chain(ignored) {
            if !catalogue::rules().any(|rule| matches(pattern, rule.id)) {
                bail!("`{pattern}` names no rule; `plumbline rules` lists them all");
            }
        }
        Ok(Selection { only: only.to_vec(), ignored: ignored.to_vec() })
    }

    /// The report without what was not asked for. What a document is, and whether it came, is always said.
    pub fn apply(&self, report: &mut Report) {
        if self.only.is_empty() && self.ignored.is_empty() {
            return;
        }
        for result in report.results.iter_mut().filter(|result| !self.has(result.rule)) {
            result.outcome = Outcome::NotEvaluated(NotEvaluated::Off);
        }
        report.more.retain(|(id, _)| catalogue::find(id).is_some_and(|rule| self.has(rule)));
    }

    fn has(&self, rule: &Rule) -> bool {
        let is_asked_for = self.only.is_empty()
            || rule.axis != Axis::Conformity
            || self.only.iter().any(|pattern| matches(pattern, rule.id));
        is_asked_for && !self.ignored.iter().any(|pattern| matches(pattern, rule.id))
    }
}

/// Whether the text is the pattern, in which `*` stands for anything.
fn matches(pattern: &str, text: &str) -> bool {
    let Some((before, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(text) = text.strip_prefix(before) else { return false };
    (0..=text.len()).filter(|&at| text.is_char_boundary(at)).any(|at| matches(rest, &text[at..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_anything() {
        for (pattern, text, said) in [
            ("a2a/*", "a2a/name-required", true),
            ("*/name-*", "a2a/name-required", true),
            ("*", "a2a/name-required", true),
            ("a2a/name-required", "a2a/name-required", true),
            ("a2a/name", "a2a/name-required", false),
            ("mcp/*", "a2a/name-required", false),
            ("*-require", "a2a/name-required", false),
        ] {
            assert_eq!(matches(pattern, text), said, "{pattern} {text}");
        }
    }

    #[test]
    fn a_pattern_that_names_no_rule_is_an_error() {
        assert!(Selection::new(&["a2a/no-such-rule".to_owned()], &[]).is_err());
        assert!(Selection::new(&[], &["b2b/*".to_owned()]).is_err());
        assert!(Selection::new(&["a2a/*".to_owned()], &["a2a/skill-*".to_owned()]).is_ok());
    }
}
