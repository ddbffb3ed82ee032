//! The three ways of keeping quiet that a person asks for, checked the same way wherever they come from: the settings file,
//! a page, the API, a command. Pure.
//!
//! A silence ends within 90 days, a waiver within a year, and none of them covers everything: whoever wants to hear nothing
//! at all says so with a route.

use chrono::DateTime;
use plumbline_rules::catalogue;
use plumbline_store::alerting::{Maintenance, Silence, Waiver};
use plumbline_store::hooks::Origin;
use serde::{Deserialize, Serialize};

use crate::matcher::Matcher;
use crate::settings::BadSetting;
use crate::zones;

/// The longest silence, in seconds: 90 days.
pub const LONGEST_SILENCE_S: i64 = 90 * 86_400;

/// The longest waiver, in seconds: a year, leap years too.
pub const LONGEST_WAIVER_S: i64 = 366 * 86_400;

/// A silence in the settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SilenceSetting {
    /// Its name.
    pub name: String,
    /// What it covers, such as `owner:harbour rule:a2a/*`.
    #[serde(rename = "match")]
    pub matcher: String,
    /// Why.
    pub reason: String,
    /// Whose it is.
    pub author: String,
    /// From when (RFC 3339); without it from when it is first read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Until when (RFC 3339), 90 days later at most.
    pub until: String,
}

/// A waiver in the settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WaiverSetting {
    /// Its name.
    pub name: String,
    /// A rule, or a family such as `openapi/*`.
    pub rule: String,
    /// On whom, such as `target:agent.example.com`.
    #[serde(rename = "match")]
    pub matcher: String,
    /// Why it is accepted.
    pub reason: String,
    /// Who accepted it.
    pub author: String,
    /// Until when (RFC 3339), a year ahead at most.
    pub until: String,
}

/// A maintenance window in the settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MaintenanceSetting {
    /// Its name.
    pub name: String,
    /// As shown; without it the name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub title: String,
    /// What it covers.
    #[serde(rename = "match")]
    pub matcher: String,
    /// Whose it is.
    pub author: String,
    /// The zone of its times, such as `Europe/Berlin`.
    #[serde(default = "utc")]
    pub zone: String,
    /// Once: its beginning (RFC 3339).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub starts: Option<String>,
    /// Again and again: five fields of cron.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cron: Option<String>,
    /// How long, in minutes.
    pub minutes: i64,
}

fn utc() -> String {
    "UTC".to_owned()
}

fn bad(why: impl std::fmt::Display) -> BadSetting {
    BadSetting(why.to_string())
}

/// A moment as people write it.
///
/// # Errors
/// When it is none.
pub fn moment(text: &str) -> Result<i64, BadSetting> {
    let read = DateTime::parse_from_rfc3339(text.trim());
    read.map(|at| at.timestamp()).map_err(|_| bad(format!("`{text}` is no moment such as 2026-12-01T22:00:00+01:00")))
}

/// A matcher that says something.
///
/// # Errors
/// When it cannot be read, or covers everything.
pub fn matcher(text: &str) -> Result<Matcher, BadSetting> {
    let read = Matcher::parse(text).map_err(bad)?;
    if read.is_empty() { Err(bad("the matcher is empty: nothing is kept quiet as a whole")) } else { Ok(read) }
}

fn must_say(what: &str, text: &str) -> Result<(), BadSetting> {
    if text.trim().is_empty() { Err(bad(format!("the {what} is empty"))) } else { Ok(()) }
}

/// Whether a silence can be kept.
///
/// # Errors
/// What is wrong with it.
pub fn check_silence(silence: &Silence) -> Result<(), BadSetting> {
    matcher(&silence.matcher)?;
    must_say("reason", &silence.reason)?;
    must_say("author", &silence.author)?;
    match silence.ends_s - silence.starts_s {
        ..=0 => Err(bad("a silence ends after it begins")),
        1..=LONGEST_SILENCE_S => Ok(()),
        _ => Err(bad("a silence ends within 90 days")),
    }
}

/// Whether a waiver can be kept.
///
/// # Errors
/// What is wrong with it.
pub fn check_waiver(waiver: &Waiver) -> Result<(), BadSetting> {
    matcher(&waiver.matcher)?;
    must_say("reason", &waiver.reason)?;
    must_say("author", &waiver.author)?;
    if !catalogue::rules().any(|rule| covers(&waiver.rule, rule.id)) {
        return Err(bad(format!("`{}` is neither a rule nor a family such as openapi/*", waiver.rule)));
    }
    match waiver.ends_s - waiver.created_s {
        ..=LONGEST_WAIVER_S => Ok(()),
        _ => Err(bad("a waiver ends within a year")),
    }
}

/// Whether a maintenance window can be kept.
///
/// # Errors
/// What is wrong with it.
pub fn check_maintenance(window: &Maintenance) -> Result<(), BadSetting> {
    matcher(&window.matcher)?;
    must_say("title", &window.title)?;
    must_say("author", &window.author)?;
    zones::check(window).map_err(bad)
}

/// Whether a rule is the one that is named, or of the family.
#[must_use]
pub fn covers(named: &str, rule: &str) -> bool {
    match named.strip_suffix("/*") {
        Some(family) => rule.split('/').next() == Some(family),
        None => named == rule,
    }
}

impl SilenceSetting {
    /// The silence that is asked for.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn silence(&self, now_s: i64) -> Result<Silence, BadSetting> {
        let silence = Silence {
            id: 0,
            matcher: self.matcher.trim().to_owned(),
            reason: self.reason.trim().to_owned(),
            author: self.author.trim().to_owned(),
            origin: Origin::File,
            created_s: now_s,
            starts_s: self.from.as_deref().map_or(Ok(now_s), moment)?,
            ends_s: moment(&self.until)?,
            calm_s: None,
            matched_s: None,
            ended_s: None,
            is_told: false,
        };
        // One that is over stays in the file until somebody tidies up.
        if silence.ends_s > now_s {
            check_silence(&silence)?;
        }
        Ok(silence)
    }
}

impl WaiverSetting {
    /// The waiver that is asked for.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn waiver(&self, now_s: i64) -> Result<Waiver, BadSetting> {
        let waiver = Waiver {
            id: 0,
            rule: self.rule.trim().to_owned(),
            matcher: self.matcher.trim().to_owned(),
            reason: self.reason.trim().to_owned(),
            author: self.author.trim().to_owned(),
            origin: Origin::File,
            created_s: now_s,
            ends_s: moment(&self.until)?,
            ended_s: None,
        };
        check_waiver(&waiver)?;
        Ok(waiver)
    }
}

impl MaintenanceSetting {
    /// The window that is asked for.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn maintenance(&self, now_s: i64) -> Result<Maintenance, BadSetting> {
        let window = Maintenance {
            id: 0,
            title: if self.title.trim().is_empty() { self.name.clone() } else { self.title.trim().to_owned() },
            matcher: self.matcher.trim().to_owned(),
            author: self.author.trim().to_owned(),
            origin: Origin::File,
            zone: self.zone.trim().to_owned(),
            starts_s: self.starts.as_deref().map(moment).transpose()?,
            cron: self.cron.clone(),
            duration_s: self.minutes.saturating_mul(60),
            created_s: now_s,
            ended_s: None,
        };
        check_maintenance(&window)?;
        Ok(window)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_796_083_200;

    fn silence(matcher: &str, until: &str) -> Result<Silence, String> {
        let setting = SilenceSetting {
            name: "move".into(),
            matcher: matcher.into(),
            reason: "moving".into(),
            author: "Ada".into(),
            from: None,
            until: until.into(),
        };
        setting.silence(NOW).map_err(|error| error.to_string())
    }

    #[test]
    fn a_silence_ends_and_covers_something() {
        assert_eq!(silence("owner:harbour", "2026-12-02T00:00:00Z").map(|one| one.ends_s), Ok(NOW + 86_400));
        for (matcher, until, says) in [
            ("", "2026-12-02T00:00:00Z", "empty"),
            ("onwer:x", "2026-12-02T00:00:00Z", "onwer"),
            ("owner:x", "2027-06-01T00:00:00Z", "90 days"),
            ("owner:x", "tomorrow", "no moment"),
        ] {
            let said = silence(matcher, until).unwrap_err();
            assert!(said.contains(says), "{said}");
        }
    }

    #[test]
    fn a_waiver_names_a_rule_that_there_is_and_ends_within_a_year() {
        let setting = |rule: &str, until: &str| WaiverSetting {
            name: "w".into(),
            rule: rule.into(),
            matcher: "owner:harbour".into(),
            reason: "known".into(),
            author: "Ada".into(),
            until: until.into(),
        };
        assert!(setting("a2a/*", "2027-11-30T00:00:00Z").waiver(NOW).is_ok());
        assert!(setting("a2a/no-such", "2027-01-01T00:00:00Z").waiver(NOW).is_err());
        assert!(setting("a2a/*", "2028-01-01T00:00:00Z").waiver(NOW).is_err());
        assert!(covers("a2a/*", "a2a/skill-id-duplicate") && !covers("a2a/*", "mcp/x") && covers("mcp/x", "mcp/x"));
    }
}
