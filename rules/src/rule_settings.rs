//! What the operator settled about single rules: silence, or another severity, for all targets or for some.

use crate::catalogue;
use crate::judge::{Given, Settings};
use crate::report::Occurrence;
use crate::rule::{Rule, Severity};

crate::words! {
    /// What becomes of a rule. Later is louder.
    pub enum Say {
        /// It is not evaluated.
        Off = "off",
        /// It is a hint.
        Info = "info",
        /// It is a warning.
        Warning = "warning",
        /// It is an error.
        Error = "error",
    }
}

crate::settings! {
    /// A rule that is judged otherwise here than by its specification.
    pub struct RuleSetting {
        /// Its id, or a whole family such as `openapi/*`.
        pub rule: String = String::new(),
        /// What it is here: `off`, `info`, `warning` or `error`.
        pub say: Say = Say::Off,
        /// Only for targets with this tag, such as `tier=2`. Empty: for all.
        pub tag: String = String::new(),
        /// Only for your own targets.
        pub own: bool = false,
    }
}

impl RuleSetting {
    /// Whether it is about some targets only.
    pub fn is_conditional(&self) -> bool {
        self.own || !self.tag.is_empty()
    }

    fn is_about(&self, rule: &Rule) -> bool {
        match self.rule.strip_suffix("/*") {
            Some(family) => rule.family() == family,
            None => rule.id == self.rule,
        }
    }

    fn holds_for(&self, given: &Given) -> bool {
        (!self.own || given.own) && (self.tag.is_empty() || given.tags.contains(&self.tag))
    }

    /// Whether the rule or family it names exists.
    pub fn names_something(&self) -> bool {
        catalogue::rules().any(|rule| self.is_about(rule))
    }
}

impl Say {
    /// The severity it gives; `None` for silence.
    pub fn severity(self) -> Option<Severity> {
        match self {
            Say::Off => None,
            Say::Info => Some(Severity::Info),
            Say::Warning => Some(Severity::Warning),
            Say::Error => Some(Severity::Error),
        }
    }
}

impl Settings {
    /// What is settled about a rule for a target; of several settings the last.
    pub fn say(&self, rule: &Rule, given: &Given) -> Option<Say> {
        self.rules.iter().rev().find(|setting| setting.is_about(rule) && setting.holds_for(given)).map(|it| it.say)
    }
}

/// Gives an occurrence the settled severity and says so. A hint breaks no client.
pub(crate) fn regrade(occurrence: &mut Occurrence, severity: Severity) {
    if occurrence.severity == severity {
        return;
    }
    let own = occurrence.severity;
    occurrence.message.push_str(&format!(" ({severity} by the settings, {own} by the rule)"));
    occurrence.severity = severity;
    if severity == Severity::Info {
        occurrence.impact = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Document;
    use crate::judge::{Origin, Subject, judge};
    use crate::kind::Kind;
    use crate::report::{NotEvaluated, Report};

    fn judged(settings: &[RuleSetting], given: &Given) -> Report {
        let card = include_str!("../examples/a2a-1.0.json").replace("example.com", "tides.dev").replacen(
            "\"Tide Tables\"",
            "\"\"",
            1,
        );
        let subject = Subject {
            kind: Some(Kind::AgentCard),
            version: None,
            origin: Origin::PublicHost,
            given,
            session: None,
            answer: None,
        };
        let settings = Settings { rules: settings.to_vec(), ..Settings::default() };
        judge(&Document::from_text(&card), &subject, &settings)
    }

    const RULE: &str = "a2a/empty-required-string";

    fn about(rule: &str, say: Say) -> RuleSetting {
        RuleSetting { rule: rule.to_owned(), say, ..RuleSetting::default() }
    }

    fn severity(report: &Report) -> Option<(Severity, String)> {
        let fired = report.fired().find(|(rule, _)| rule.id == RULE);
        fired.map(|(_, found)| (found[0].severity, found[0].message.clone()))
    }

    #[test]
    fn a_rule_is_silent_or_graded_otherwise_and_says_so() {
        let given = Given::default();
        assert_eq!(severity(&judged(&[], &given)).map(|(severity, _)| severity), Some(Severity::Error));
        let off = judged(&[about(RULE, Say::Off)], &given);
        assert_eq!(severity(&off), None);
        assert!(off.not_evaluated().any(|(rule, reason)| rule.id == RULE && reason == NotEvaluated::Off));
        let (severity_now, message) = severity(&judged(&[about("a2a/*", Say::Info)], &given)).expect("it fires");
        assert_eq!(severity_now, Severity::Info);
        assert!(message.ends_with("(info by the settings, error by the rule)"), "{message}");
        let last = judged(&[about("a2a/*", Say::Off), about(RULE, Say::Error)], &given);
        assert!(severity(&last).is_some_and(|(_, message)| !message.contains("settings")));
    }

    #[test]
    fn a_setting_may_be_about_some_targets_only() {
        let own = RuleSetting { own: true, ..about(RULE, Say::Off) };
        let tagged = RuleSetting { tag: "tier=2".to_owned(), ..about(RULE, Say::Off) };
        let others = Given::default();
        let mine = Given { own: true, tags: vec!["tier=2".to_owned()], ..Given::default() };
        for setting in [own, tagged] {
            assert!(severity(&judged(std::slice::from_ref(&setting), &others)).is_some());
            assert!(severity(&judged(&[setting], &mine)).is_none());
        }
    }

    #[test]
    fn a_setting_names_a_rule_or_a_family() {
        assert!(about(RULE, Say::Off).names_something() && about("openapi/*", Say::Off).names_something());
        assert!(!about("a2a/no-such-rule", Say::Off).names_something() && !about("a2b/*", Say::Off).names_something());
    }
}
