//! What the settings file says about telling: `[alerts]`, `[[webhooks]]`, `[[routes]]`. What keeps quiet is read in
//! [`crate::quiet`].

use plumbline_rules::settings;
use plumbline_store::alerting::{Grade, NewRoute};
use plumbline_store::hooks::{Mode, NewEndpoint};
use serde::{Deserialize, Serialize};

use crate::formats::Format;
use crate::matcher::Matcher;
use crate::zones::{Digest, Every, QuietHours, zone};

settings! {
    /// Telling people and programs.
    pub struct AlertSettings {
        /// Whether events are told to receivers.
        pub enabled: bool = true,
        /// Networks that receivers may be in although they are not public, such as `10.0.0.0/8`. An address there, or
        /// `localhost`, may also be called by plain http and at any port.
        pub allow_networks: Vec<String> = Vec::new(),
        /// Ports at which receivers by name may listen.
        pub ports: Vec<u16> = vec![443, 8443],
        /// The key that secrets in the database are sealed with; made when it is not there. Keep it with the database.
        pub key_file: String = "plumbline.key".to_owned(),
        /// The mail server for e-mail, such as `smtps://user@mail.example:465`. Empty: no e-mail.
        pub smtp: String = String::new(),
        /// The file that holds its password. Empty: none.
        pub smtp_password_file: String = String::new(),
        /// The address that e-mail comes from.
        pub mail_from: String = String::new(),
    }
}

/// A receiver.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WebhookSetting {
    /// Its name: letters, digits and hyphens.
    pub name: String,
    /// As shown; without it the name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub title: String,
    /// Where it is sent: https, or `mailto:` for e-mail.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub url: String,
    /// The environment variable that holds the address, where that is a secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url_env: Option<String>,
    /// The file that holds the address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url_file: Option<String>,
    /// Which form bodies have. Default `generic`.
    #[serde(default = "generic")]
    pub format: Format,
    /// `events` or `groups`; without it what suits the format.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// Event types, with prefix wildcards such as `finding.*`. Empty: all. For the mode `events`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub types: Vec<String>,
    /// Which targets and findings, such as `owner:harbour severity:error`. Empty: all.
    #[serde(default, rename = "match", skip_serializing_if = "String::is_empty")]
    pub matcher: String,
    /// Whether first looks are sent too.
    #[serde(default)]
    pub include_baseline: bool,
    /// Messages a minute at most; without it what suits the format.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_minute: Option<i64>,
    /// The environment variable that holds the secret, `whsec_…`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_env: Option<String>,
    /// The file that holds the secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_file: Option<String>,
    /// The file that holds the secret before it, which signs too for as long as it is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous_secret_file: Option<String>,
    /// The environment variable that holds the token of the receiver's own: a routing key, an access token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_env: Option<String>,
    /// The file that holds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_file: Option<String>,
    /// Whether messages are signed with a key pair as well; `plumbline webhooks key NAME` prints the public half.
    #[serde(default)]
    pub ed25519: bool,
    /// The template of the format `template`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub template: String,
    /// The file that holds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template_file: Option<String>,
    /// `daily` or `weekly`: a summary as well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<Every>,
    /// The zone of the summary's hour.
    #[serde(default = "utc")]
    pub digest_zone: String,
    /// Its hour, 0 to 23.
    #[serde(default = "eight")]
    pub digest_hour: u32,
}

/// A route to receivers of groups.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RouteSetting {
    /// Its name.
    pub name: String,
    /// As shown; without it the name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub title: String,
    /// Which alerts.
    #[serde(default, rename = "match", skip_serializing_if = "String::is_empty")]
    pub matcher: String,
    /// The names of its receivers.
    pub webhooks: Vec<String>,
    /// Less grave alerts are left out. Default `warning`.
    #[serde(default = "warning")]
    pub min_severity: Grade,
    /// First looks too.
    #[serde(default)]
    pub include_baseline: bool,
    /// What opened because a rule changed too.
    #[serde(default)]
    pub include_rule_changes: bool,
    /// Seconds it waits for others of the same group.
    #[serde(default = "wait_s")]
    pub wait_s: i64,
    /// Least seconds between two messages about one group.
    #[serde(default = "interval_s")]
    pub interval_s: i64,
    /// After so many seconds without news what still holds is said again.
    #[serde(default = "repeat_s")]
    pub repeat_s: i64,
    /// Hours in which it says nothing but what is critical.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quiet_hours: Option<QuietHours>,
}

fn generic() -> Format {
    Format::Generic
}

fn utc() -> String {
    "UTC".to_owned()
}

fn eight() -> u32 {
    8
}

fn warning() -> Grade {
    Grade::Warning
}

fn wait_s() -> i64 {
    60
}

fn interval_s() -> i64 {
    900
}

fn repeat_s() -> i64 {
    86_400
}

impl Default for WebhookSetting {
    /// As a table in the settings is read in which nothing stands.
    fn default() -> Self {
        WebhookSetting {
            name: String::new(),
            title: String::new(),
            url: String::new(),
            url_env: None,
            url_file: None,
            format: generic(),
            mode: None,
            types: Vec::new(),
            matcher: String::new(),
            include_baseline: false,
            per_minute: None,
            secret_env: None,
            secret_file: None,
            previous_secret_file: None,
            token_env: None,
            token_file: None,
            ed25519: false,
            template: String::new(),
            template_file: None,
            digest: None,
            digest_zone: utc(),
            digest_hour: eight(),
        }
    }
}

/// What a route without a matcher of its own takes: what breaks clients, what is tagged security, drift, and what is no
/// finding at all. The rest is for summaries.
pub const NOTABLE: &str = "notable:yes";

/// Why a receiver or route cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadSetting(pub String);

impl BadSetting {
    /// The same with what it is about in front.
    #[must_use]
    pub fn of(&self, what: &str, name: &str) -> BadSetting {
        bad(what, name, &self.0)
    }
}

fn bad(what: &str, name: &str, why: impl std::fmt::Display) -> BadSetting {
    BadSetting(format!("{what} {name}: {why}"))
}

/// Whether a name can stand in addresses.
fn check_name(what: &str, name: &str) -> Result<(), BadSetting> {
    let is_plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    let is_good = (1..=60).contains(&name.len()) && name.bytes().all(is_plain) && name != "dead" && name != "new";
    if is_good { Ok(()) } else { Err(bad(what, name, "a name is lower-case letters, digits and hyphens")) }
}

impl WebhookSetting {
    /// The receiver that is asked for; its address and template come from where the settings say.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn endpoint(&self, url: &str, template: &str) -> Result<NewEndpoint, BadSetting> {
        check_new(&self.name, url, self.format, &self.matcher, &self.types)?;
        let wrong = |why: String| bad("webhook", &self.name, why);
        let digest = match self.digest {
            None => None,
            Some(every) => {
                zone(&self.digest_zone).map_err(|error| wrong(error.to_string()))?;
                let digest = Digest { every, zone: self.digest_zone.clone(), hour: self.digest_hour };
                Some(serde_json::to_string(&digest).map_err(|error| wrong(error.to_string()))?)
            }
        };
        if self.format == Format::Template && template.is_empty() {
            return Err(wrong("the format `template` needs one".to_owned()));
        }
        Ok(NewEndpoint {
            slug: self.name.clone(),
            title: if self.title.is_empty() { self.name.clone() } else { self.title.clone() },
            url: url.to_owned(),
            format: self.format.to_string(),
            mode: self.mode.unwrap_or(self.format.usual_mode()),
            types: self.types.clone(),
            matcher: self.matcher.clone(),
            include_baseline: self.include_baseline,
            per_minute: self.per_minute.unwrap_or(self.format.usual_pace()).clamp(1, 6_000),
            options: if template.is_empty() {
                "{}".to_owned()
            } else {
                serde_json::json!({ "template": template }).to_string()
            },
            digest,
        })
    }
}

/// Whether a receiver can be made like this.
///
/// # Errors
/// What is wrong with it.
pub fn check_new(name: &str, url: &str, format: Format, matcher: &str, types: &[String]) -> Result<(), BadSetting> {
    check_name("webhook", name)?;
    let wrong = |why: String| bad("webhook", name, why);
    let parsed = url::Url::parse(url).map_err(|error| wrong(format!("the address: {error}")))?;
    let is_mail = parsed.scheme() == "mailto";
    if is_mail != (format == Format::Email) {
        return Err(wrong("the format `email` goes to a mailto: address, all others to https".to_owned()));
    }
    if !is_mail && (!matches!(parsed.scheme(), "http" | "https") || parsed.host().is_none()) {
        return Err(wrong("the address is no https address".to_owned()));
    }
    if !parsed.username().is_empty() && !is_mail || parsed.password().is_some() {
        return Err(wrong("the address carries a user name or password".to_owned()));
    }
    Matcher::parse(matcher).map_err(|error| wrong(error.to_string()))?;
    let known: Vec<String> = crate::event_types::all().into_iter().map(|one| one.r#type).collect();
    for wanted in types {
        let is_known = known.iter().any(|word| crate::matcher::wants_type(std::slice::from_ref(wanted), word));
        if !is_known {
            return Err(wrong(format!("`{wanted}` is no event type")));
        }
    }
    Ok(())
}

impl RouteSetting {
    /// The route that is asked for.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn route(&self) -> Result<NewRoute, BadSetting> {
        check_name("route", &self.name)?;
        let wrong = |why: String| bad("route", &self.name, why);
        Matcher::parse(&self.matcher).map_err(|error| wrong(error.to_string()))?;
        if self.wait_s < 0 || self.interval_s < 60 || self.repeat_s < 300 {
            return Err(wrong("wait_s is at least 0, interval_s 60, repeat_s 300".to_owned()));
        }
        let quiet_hours = match &self.quiet_hours {
            None => None,
            Some(hours) => {
                hours.check().map_err(|error| wrong(error.to_string()))?;
                Some(serde_json::to_string(hours).map_err(|error| wrong(error.to_string()))?)
            }
        };
        Ok(NewRoute {
            slug: self.name.clone(),
            title: if self.title.is_empty() { self.name.clone() } else { self.title.clone() },
            matcher: if self.matcher.is_empty() { NOTABLE.to_owned() } else { self.matcher.clone() },
            min_severity: self.min_severity,
            include_baseline: self.include_baseline,
            include_rule_changes: self.include_rule_changes,
            wait_s: self.wait_s,
            interval_s: self.interval_s,
            repeat_s: self.repeat_s,
            quiet_hours,
        })
    }

    /// The route of a receiver of groups that no route names.
    #[must_use]
    pub fn of(endpoint: &NewEndpoint) -> RouteSetting {
        RouteSetting {
            name: endpoint.slug.clone(),
            title: endpoint.title.clone(),
            matcher: endpoint.matcher.clone(),
            webhooks: vec![endpoint.slug.clone()],
            min_severity: warning(),
            include_baseline: endpoint.include_baseline,
            include_rule_changes: false,
            wait_s: wait_s(),
            interval_s: interval_s(),
            repeat_s: repeat_s(),
            quiet_hours: None,
        }
    }
}
