//! What became of every rule of four published catalogues: the rules here that look for the same, or why nothing can.
//!
//! The rows stand in `coverage.tsv`; whether a rule that a row names exists is asked of the catalogue, never written down.

use std::sync::LazyLock;

use crate::catalogue;
use crate::rule::Rule;

crate::words! {
    /// The published catalogues.
    pub enum Source {
        /// The code catalogue of a metadata checker: 128 codes for cards, listings, tools and descriptions.
        Codes = "gaip",
        /// What a reader of agent cards complains about.
        Reader = "reader",
        /// The requirements that a validator of MCP servers draws from the specification.
        Requirements = "validator",
        /// What a protocol inspector looks at.
        Inspector = "inspector",
    }
}

impl Source {
    /// How a person calls it.
    pub fn named(self) -> &'static str {
        match self {
            Source::Codes => "the code catalogue",
            Source::Reader => "the card reader's list",
            Source::Requirements => "the MCP requirements",
            Source::Inspector => "the protocol inspector's checks",
        }
    }
}

crate::words! {
    /// How the thing that a row asks for is looked at.
    pub enum How {
        /// By rules, on any target.
        Rule = "rule",
        /// By rules that use what a server offers, so only on targets that the operator marks as own.
        OwnTarget = "own-target",
        /// By rules about servers that are started as a command, so only on commands that the operator configured.
        OwnCommand = "own-command",
        /// Not at all: it is about clients.
        Client = "client",
        /// Where settings and requests are read; it is about no document.
        Settings = "settings",
        /// As a state beside the headline.
        State = "state",
    }
}

crate::words! {
    /// What a row comes to.
    pub enum Standing {
        /// At least one rule of the catalogue looks for it.
        Covered = "covered",
        /// It is shown or checked in another way; the reason says how.
        Elsewhere = "elsewhere",
        /// Nothing that a monitor sees shows it; the reason says why.
        NotObservable = "not-observable",
        /// It can be looked for, and no rule does yet.
        NotYet = "not-yet",
    }
}

/// One rule of a published catalogue.
#[derive(Debug, Clone)]
pub struct Row {
    /// Its catalogue.
    pub source: Source,
    /// Its name there.
    pub name: &'static str,
    /// How it is looked at.
    pub how: How,
    /// The rules that look for it, and are in the catalogue.
    pub rules: Vec<&'static str>,
    /// Rules that would also look for it, and are not in the catalogue yet.
    pub awaited: Vec<&'static str>,
    /// In one sentence why there is no rule; empty where there is.
    pub reason: &'static str,
}

impl Row {
    /// Catalogue and name, as rules name their seeds: `reader:Wrong type`.
    pub fn seed(&self) -> String {
        format!("{}:{}", self.source, self.name)
    }

    /// What it comes to.
    pub fn standing(&self) -> Standing {
        match self.how {
            How::Client => Standing::NotObservable,
            How::Settings | How::State => Standing::Elsewhere,
            How::Rule | How::OwnTarget | How::OwnCommand if self.rules.is_empty() => Standing::NotYet,
            How::Rule | How::OwnTarget | How::OwnCommand => Standing::Covered,
        }
    }

    /// Why no rule fires on every target, in one sentence; empty where one does.
    pub fn why(&self) -> &'static str {
        match (self.standing(), self.how) {
            (Standing::NotYet, How::OwnTarget) => "Needs a target that is marked as your own; no rule looks yet.",
            (Standing::NotYet, How::OwnCommand) => "Needs a command that you configure; no rule looks yet.",
            (_, How::OwnTarget) => {
                "Only on targets that are marked as your own: what the server offers has to be used."
            }
            (_, How::OwnCommand) => "Only on commands that you configure: the server has to be started.",
            (Standing::NotYet, _) => "It could be seen on the wire, and no rule looks yet.",
            (Standing::Covered | Standing::Elsewhere | Standing::NotObservable, _) => self.reason,
        }
    }
}

/// Every row, catalogue by catalogue.
pub fn rows() -> &'static [Row] {
    static ROWS: LazyLock<Vec<Row>> =
        LazyLock::new(|| include_str!("coverage.tsv").lines().skip(1).filter_map(row).collect());
    &ROWS
}

/// A line of the table; `None` for one that has not its form, which a test rules out.
fn row(line: &'static str) -> Option<Row> {
    let mut fields = line.split('\t');
    let (source, name) = fields.next()?.split_once(':')?;
    let how = fields.next()?.parse().ok()?;
    let exists = |rule: &&str| catalogue::find(rule).is_some();
    let (rules, awaited) = fields.next()?.split(' ').filter(|rule| !rule.is_empty()).partition(exists);
    Some(Row { source: source.parse().ok()?, name, how, rules, awaited, reason: fields.next()? })
}

/// The rows that a rule covers.
pub fn of(rule: &Rule) -> impl Iterator<Item = &'static Row> {
    let id = rule.id;
    rows().iter().filter(move |row| row.rules.contains(&id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_read_and_has_a_disposition() {
        assert_eq!(rows().len(), include_str!("coverage.tsv").lines().count() - 1);
        for row in rows() {
            let has_reason = !row.why().is_empty();
            assert!(!row.rules.is_empty() || has_reason, "{} has neither a rule nor a reason", row.seed());
            let is_without_rules = row.rules.is_empty() && row.awaited.is_empty();
            let needs_rules = matches!(row.how, How::Rule | How::OwnTarget | How::OwnCommand);
            assert!(!(needs_rules && is_without_rules), "{} names no rule", row.seed());
        }
        let of = |source| rows().iter().filter(|row| row.source == source).count();
        assert_eq!(Source::ALL.iter().map(|source| of(*source)).collect::<Vec<_>>(), [128, 30, 133, 25]);
    }

    #[test]
    fn rules_and_rows_name_each_other() {
        for rule in catalogue::rules() {
            let mut named: Vec<String> = of(rule).map(Row::seed).collect();
            let mut names: Vec<&str> = rule.seeds.to_vec();
            named.sort();
            names.sort_unstable();
            assert_eq!(named, names, "{}", rule.id);
        }
    }
}
