//! The desk at which people and programs subscribe: receivers are made, tried before they are kept, changed, given new secrets
//! and taken away, with the checks that the settings file gets and the guard on what was typed.
//!
//! What stands in the settings file is changed there; the desk tests it and nothing else.

use std::sync::Arc;

use plumbline_store::alerting::{Grade, NewRoute, Route};
use plumbline_store::hooks::{Endpoint, Mode, NewEndpoint, Origin, SealedSecret, SecretRole, Subscription};
use plumbline_store::{Error, Store};
use serde::{Deserialize, Serialize};

use crate::courier::{Courier, Tested, Unsaved};
use crate::event_types;
use crate::formats::{Format, FormatError, Sending};
use crate::message_id::Ids;
use crate::payload::{self, Source};
use crate::settings::{BadSetting, RouteSetting, WebhookSetting};
use crate::signature::{BadSecret, Key};
use crate::sync::TOKEN;
use crate::vault::VaultError;
use crate::wire::Answer;
use crate::zones::{Digest, Every, QuietHours};

/// How long the secret before a new one signs as well when nothing else is said, in hours.
pub const USUAL_GRACE_H: i64 = 24;

/// The longest that it may, in hours: a week.
pub const LONGEST_GRACE_H: i64 = 7 * 24;

/// Whether the text of an address may be called, else why not.
pub type Guard = Arc<dyn Fn(&str) -> Result<(), String> + Send + Sync>;

/// Where people and programs subscribe.
#[derive(Clone)]
pub struct Desk {
    /// What brings messages; it also has the store, the vault and the clock.
    pub courier: Courier,
    /// Where this installation is reached.
    pub source: Source,
    /// Gives test messages their ids.
    pub ids: Arc<Ids>,
    /// Judges what was typed as an address; names are judged again when they are called.
    pub guard: Guard,
}

/// A subscription as it is asked for: the receiver, and where it hears of groups the route of its own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Asked {
    /// Its name in addresses and commands; it stays.
    pub name: String,
    /// As shown; empty: the name.
    pub title: String,
    /// Where messages are sent.
    #[serde(skip_serializing)]
    pub url: String,
    /// Which form bodies have.
    pub format: Format,
    /// What it hears; `None`: what suits the format.
    pub mode: Option<Mode>,
    /// Event types, with `*` at the end; empty: all.
    pub types: Vec<String>,
    /// Of whom and what; empty: all, for groups what is notable.
    #[serde(rename = "match")]
    pub matcher: String,
    /// Of groups: less grave alerts are left out.
    pub min_severity: Grade,
    /// First looks too.
    pub include_baseline: bool,
    /// Of groups: what opened because a rule changed too.
    pub include_rule_changes: bool,
    /// Messages a minute at most; `None`: what suits the format.
    pub per_minute: Option<i64>,
    /// Messages are signed with a key pair as well.
    pub ed25519: bool,
    /// The template of the format `template`.
    pub template: String,
    /// A summary as well.
    pub digest: Option<Every>,
    /// The zone of its hour.
    pub digest_zone: String,
    /// Its hour, 0 to 23.
    pub digest_hour: u32,
    /// Of groups: hours in which it hears only what is critical.
    pub quiet_hours: Option<QuietHours>,
    /// Of groups: seconds it waits for others of the same group.
    pub wait_s: i64,
    /// Of groups: least seconds between two messages about one group.
    pub interval_s: i64,
    /// Of groups: after so many seconds without news what still holds is said again.
    pub repeat_s: i64,
    /// A secret that the person brings, `whsec_…`; `None`: one is made, or the one before stays.
    #[serde(skip_serializing)]
    pub secret: Option<String>,
    /// The receiver's own token: a routing key, an access token.
    #[serde(skip_serializing)]
    pub token: Option<String>,
}

impl Default for Asked {
    fn default() -> Self {
        Asked {
            name: String::new(),
            title: String::new(),
            url: String::new(),
            format: Format::Generic,
            mode: None,
            types: Vec::new(),
            matcher: String::new(),
            min_severity: Grade::Warning,
            include_baseline: false,
            include_rule_changes: false,
            per_minute: None,
            ed25519: false,
            template: String::new(),
            digest: None,
            digest_zone: "UTC".to_owned(),
            digest_hour: 8,
            quiet_hours: None,
            wait_s: 60,
            interval_s: 900,
            repeat_s: 86_400,
            secret: None,
            token: None,
        }
    }
}

/// Why the desk does not do what it was asked for.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// Something in it is wrong.
    #[error("{0}")]
    Bad(String),
    /// The name belongs to another receiver or route.
    #[error("a webhook or route of the name `{0}` is there already")]
    Taken(String),
    /// There is none of that name.
    #[error("there is no webhook `{0}`")]
    Missing(String),
    /// It stands in the settings file.
    #[error("the webhook `{0}` stands in the settings file and is changed there")]
    ReadOnly(String),
    /// The secret before the current one still signs.
    #[error("the secret before this one signs until {0}; a third one now would lock out whoever has not changed yet")]
    Rotating(String),
    /// The database failed.
    #[error(transparent)]
    Store(Error),
    /// The key of the installation.
    #[error(transparent)]
    Vault(#[from] VaultError),
    /// A key could not be made.
    #[error(transparent)]
    Key(#[from] BadSecret),
}

impl From<BadSetting> for Refused {
    fn from(error: BadSetting) -> Self {
        Refused::Bad(error.to_string())
    }
}

impl From<Error> for Refused {
    fn from(error: Error) -> Self {
        match error {
            Error::Missing { what: "webhook", id } => Refused::Missing(id),
            other => Refused::Store(other),
        }
    }
}

/// A receiver that was made or given a new secret. What is secret is seen here and never again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Made {
    /// The receiver.
    pub endpoint: Endpoint,
    /// Its new shared secret.
    pub secret: Option<String>,
    /// The public half of its key pair.
    pub public_key: Option<String>,
}

/// A test, as it is shown to whoever asked for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Tried {
    /// The id of the message.
    pub message: String,
    /// Its type.
    pub kind: String,
    /// Headers as sent.
    pub request_headers: Vec<(String, String)>,
    /// The exact bytes of the body.
    pub request_body: String,
    /// The bytes that were signed.
    pub signed: Option<String>,
    /// A command that makes the signature again, given `SECRET`.
    pub verify: Option<String>,
    /// HTTP status; `None`: no answer.
    pub status: Option<u16>,
    /// Why there was none.
    pub error: Option<String>,
    /// Headers of the answer.
    pub response_headers: Vec<(String, String)>,
    /// The start of its body.
    pub response_body: String,
    /// How long it took, in milliseconds.
    pub took_ms: i64,
    /// It counts as delivered.
    pub is_accepted: bool,
}

/// What would be sent, made of the newest real message of a type where there is one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Previewed {
    /// Its type.
    pub kind: String,
    /// It was made of a real message, not of the example.
    pub is_real: bool,
    /// The body as the receiver would get it.
    pub body: String,
}

impl Asked {
    /// A kept receiver as it was asked for; what is secret is left out.
    #[must_use]
    pub fn of(endpoint: &Endpoint, route: Option<&Route>) -> Asked {
        let is = &endpoint.is;
        let options: serde_json::Value = serde_json::from_str(&is.options).unwrap_or_default();
        let digest = is.digest.as_deref().and_then(|text| serde_json::from_str::<Digest>(text).ok());
        let usual = Asked::default();
        let mut asked = Asked {
            name: is.slug.clone(),
            title: is.title.clone(),
            url: is.url.clone(),
            format: is.format.parse().unwrap_or(Format::Generic),
            mode: Some(is.mode),
            types: is.types.clone(),
            matcher: is.matcher.clone(),
            include_baseline: is.include_baseline,
            per_minute: Some(is.per_minute),
            template: options["template"].as_str().unwrap_or_default().to_owned(),
            digest_zone: digest.as_ref().map_or(usual.digest_zone.clone(), |digest| digest.zone.clone()),
            digest_hour: digest.as_ref().map_or(usual.digest_hour, |digest| digest.hour),
            digest: digest.map(|digest| digest.every),
            ..usual
        };
        if let Some(route) = route {
            asked.min_severity = route.is.min_severity;
            asked.include_rule_changes = route.is.include_rule_changes;
            asked.quiet_hours = route.is.quiet_hours.as_deref().and_then(|text| serde_json::from_str(text).ok());
            asked.wait_s = route.is.wait_s;
            asked.interval_s = route.is.interval_s;
            asked.repeat_s = route.is.repeat_s;
        }
        asked
    }

    /// The same with what a merge patch (RFC 7396) says; the name stays.
    ///
    /// # Errors
    /// What cannot be read.
    pub fn patched(&self, patch: &serde_json::Value) -> Result<Asked, Refused> {
        let bad = |error: serde_json::Error| Refused::Bad(error.to_string());
        let serde_json::Value::Object(patch) = patch else {
            return Err(Refused::Bad("the change is no JSON object".to_owned()));
        };
        let usual = serde_json::to_value(Asked::default()).map_err(bad)?;
        let mut whole = serde_json::to_value(self).map_err(bad)?;
        whole["url"] = self.url.clone().into();
        for (name, value) in patch {
            whole[name] = if value.is_null() { usual[name].clone() } else { value.clone() };
        }
        let patched: Asked = serde_json::from_value(whole).map_err(bad)?;
        if patched.name != self.name {
            return Err(Refused::Bad("the name of a webhook stays".to_owned()));
        }
        Ok(patched)
    }

    /// The receiver and its route, checked as the settings file is; nothing is kept.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn plan(&self, guard: &Guard) -> Result<(NewEndpoint, Option<NewRoute>), Refused> {
        let setting = WebhookSetting {
            name: self.name.trim().to_owned(),
            title: self.title.trim().to_owned(),
            url: self.url.trim().to_owned(),
            format: self.format,
            mode: self.mode,
            types: self.types.clone(),
            matcher: self.matcher.trim().to_owned(),
            include_baseline: self.include_baseline,
            per_minute: self.per_minute,
            ed25519: self.ed25519,
            template: self.template.clone(),
            digest: self.digest,
            digest_zone: self.digest_zone.clone(),
            digest_hour: self.digest_hour,
            ..WebhookSetting::default()
        };
        let endpoint = setting.endpoint(&setting.url, &self.template)?;
        if self.format != Format::Email {
            guard(&endpoint.url).map_err(|why| Refused::Bad(format!("the address cannot be used: {why}")))?;
        }
        if self.format == Format::Template {
            check_template(&self.template)?;
        }
        let route = match endpoint.mode {
            Mode::Events => None,
            Mode::Groups => Some(self.route(&endpoint).route()?),
        };
        Ok((endpoint, route))
    }

    fn route(&self, endpoint: &NewEndpoint) -> RouteSetting {
        RouteSetting {
            min_severity: self.min_severity,
            include_rule_changes: self.include_rule_changes,
            quiet_hours: self.quiet_hours.clone(),
            wait_s: self.wait_s,
            interval_s: self.interval_s,
            repeat_s: self.repeat_s,
            ..RouteSetting::of(endpoint)
        }
    }

    /// Whether its form is signed by us, so that a receiver can know us.
    #[must_use]
    pub fn is_signed(&self) -> bool {
        matches!(self.format, Format::Generic | Format::Template)
    }
}

/// A template has to make JSON of an event and of a group.
fn check_template(template: &str) -> Result<(), Refused> {
    for one in event_types::all() {
        crate::formats::template::preview(template, &one.example)
            .map_err(|error| Refused::Bad(format!("of the example of {}, {error}", one.r#type)))?;
    }
    Ok(())
}

impl Desk {
    fn store(&self) -> &Store {
        &self.courier.store
    }

    fn now_s(&self) -> i64 {
        (self.courier.clock)().div_euclid(1000)
    }

    /// A receiver and its own route as they were asked for.
    ///
    /// # Errors
    /// When there is none, or the database fails.
    pub async fn asked(&self, name: &str) -> Result<(Endpoint, Asked), Refused> {
        let endpoint = self.store().endpoint(name).await?;
        let routes = self.store().routes().await?;
        let own = routes.iter().find(|route| route.is.slug == name && route.endpoints == [endpoint.id]);
        let mut asked = Asked::of(&endpoint, own);
        let secrets = self.store().secrets(endpoint.id, self.now_s()).await?;
        asked.ed25519 = secrets.iter().any(|secret| secret.scheme == "v1a");
        Ok((endpoint, asked))
    }

    /// The same where it may be changed: it was not made in the settings file.
    ///
    /// # Errors
    /// [`Refused::ReadOnly`] besides those of [`Desk::asked`].
    pub async fn changeable(&self, name: &str) -> Result<(Endpoint, Asked), Refused> {
        let (endpoint, asked) = self.asked(name).await?;
        if endpoint.origin == Origin::File { Err(Refused::ReadOnly(name.to_owned())) } else { Ok((endpoint, asked)) }
    }

    /// Makes a receiver. Its secret is in the answer, this once.
    ///
    /// # Errors
    /// What is wrong with it, or when we fail.
    pub async fn create(&self, asked: &Asked) -> Result<Made, Refused> {
        let (endpoint, route) = asked.plan(&self.guard)?;
        must_have_token(asked)?;
        let keys = keys(asked)?;
        let mut secrets = self.sealed(&keys)?;
        secrets.extend(self.sealed_token(asked)?);
        let new = Subscription { endpoint: &endpoint, secrets: &secrets, route: route.as_ref() };
        if self.store().subscribe(&new, self.now_s()).await?.is_none() {
            return Err(Refused::Taken(endpoint.slug));
        }
        self.made(&endpoint.slug, &keys).await
    }

    /// Changes a receiver. Secrets stay unless new ones are given.
    ///
    /// # Errors
    /// What is wrong with it, or when we fail.
    pub async fn change(&self, name: &str, asked: &Asked) -> Result<Made, Refused> {
        let (kept, before) = self.changeable(name).await?;
        let (endpoint, route) = asked.plan(&self.guard)?;
        let known = self.store().secrets(kept.id, self.now_s()).await?;
        let has = |scheme: &str| known.iter().any(|secret| secret.scheme == scheme);
        match asked.token {
            None if has(TOKEN) => must_be_there_still(&before, asked)?,
            _ => must_have_token(asked)?,
        }
        let mut new = Vec::new();
        match &asked.secret {
            Some(text) => new.push(Key::parse(text).map_err(|error| Refused::Bad(error.to_string()))?),
            None if asked.is_signed() && !has("v1") => new.push(Key::new_shared()?),
            None => {}
        }
        if asked.ed25519 && !before.ed25519 {
            new.push(Key::new_own()?);
        }
        let mut secrets = self.sealed(&new)?;
        secrets.extend(self.sealed_token(asked)?);
        let subscription = Subscription { endpoint: &endpoint, secrets: &secrets, route: route.as_ref() };
        self.store().resubscribe(kept.id, &subscription, self.now_s()).await?;
        if !asked.ed25519 && before.ed25519 {
            self.store().drop_secrets(kept.id, "v1a").await?;
        }
        self.courier.bell.notify_one();
        self.made(name, &new).await
    }

    async fn made(&self, name: &str, new: &[Key]) -> Result<Made, Refused> {
        let shown = |scheme: &str| new.iter().find(|key| key.scheme() == scheme).map(Key::for_receiver).transpose();
        Ok(Made { endpoint: self.store().endpoint(name).await?, secret: shown("v1")?, public_key: shown("v1a")? })
    }

    /// Takes a receiver away: what waits for it is cancelled, its log stays.
    ///
    /// # Errors
    /// When it is not there or not to be changed here, or when we fail.
    pub async fn remove(&self, name: &str) -> Result<(), Refused> {
        let (endpoint, _) = self.changeable(name).await?;
        Ok(self.store().unsubscribe(endpoint.id, name, self.now_s()).await?)
    }

    /// Gives a receiver a new shared secret. The one before signs as well for so many hours; none means that it is out at
    /// once. While one before that still signs, a third is refused unless it is forced.
    ///
    /// # Errors
    /// When it is not there or not to be changed here, too early, or when we fail.
    pub async fn rotate(&self, name: &str, grace_h: i64, is_forced: bool) -> Result<Made, Refused> {
        let (endpoint, asked) = self.changeable(name).await?;
        if !(0..=LONGEST_GRACE_H).contains(&grace_h) {
            return Err(Refused::Bad(format!("the secret before signs for 0 to {LONGEST_GRACE_H} hours")));
        }
        if !asked.is_signed() {
            return Err(Refused::Bad(format!("what goes to {} is not signed", asked.format)));
        }
        let now_s = self.now_s();
        let known = self.store().secrets(endpoint.id, now_s).await?;
        let previous = known.iter().find(|secret| secret.role == SecretRole::Previous && secret.scheme == "v1");
        if let Some(previous) = previous.filter(|_| !is_forced && grace_h > 0) {
            let until = previous.expires_s.map_or_else(|| "it is taken out".to_owned(), payload::rfc3339);
            return Err(Refused::Rotating(until));
        }
        let key = Key::new_shared()?;
        let sealed = self.sealed(std::slice::from_ref(&key))?;
        let until_s = (grace_h > 0).then_some(now_s + grace_h * 3_600);
        self.store().rotate_secret(endpoint.id, &sealed[0], until_s).await?;
        self.made(name, &[key]).await
    }

    /// Stops sending to a receiver, or goes on. What happens meanwhile is not sent afterwards; what waited is.
    ///
    /// # Errors
    /// When it is not there, or when we fail.
    pub async fn pause(&self, name: &str, is_paused: bool, who: &str) -> Result<Endpoint, Refused> {
        let endpoint = self.store().endpoint(name).await?;
        let note = format!("paused by {who}");
        self.store().enable_endpoint(endpoint.id, !is_paused, &note, self.now_s()).await?;
        if !is_paused {
            self.courier.bell.notify_one();
        }
        Ok(self.store().endpoint(name).await?)
    }

    /// Sends one message to a receiver as it was typed, before anything is kept. `kept` names the one that is changed: its
    /// keys sign unless others were typed.
    ///
    /// # Errors
    /// What is wrong with it, or when we fail.
    pub async fn try_out(&self, asked: &Asked, kept: Option<&str>, kind: &str) -> Result<Tried, Refused> {
        let (endpoint, _) = asked.plan(&self.guard)?;
        let mut unsaved = Unsaved { endpoint, keys: Vec::new(), token: asked.token.clone() };
        if let Some(text) = &asked.secret {
            unsaved.keys.push(Key::parse(text).map_err(|error| Refused::Bad(error.to_string()))?);
        }
        if let Some(name) = kept {
            let (kept, before) = self.asked(name).await?;
            for sealed in self.store().secrets(kept.id, self.now_s()).await? {
                let bytes = self.courier.vault.unseal(&sealed.sealed)?;
                match sealed.scheme.as_str() {
                    TOKEN if asked.token.is_some() => {}
                    TOKEN => {
                        must_be_there_still(&before, asked)?;
                        unsaved.token = String::from_utf8(bytes).ok();
                    }
                    "v1" if asked.secret.is_some() => {}
                    scheme => unsaved.keys.push(Key::of(scheme, bytes)),
                }
            }
        }
        let (body, _) = self.sample(kind, false).await?;
        let message = self.ids.next((self.courier.clock)());
        let tested = self.courier.test_unsaved(unsaved, &message, kind, body.clone()).await;
        Ok(tried(message, kind, &body, tested))
    }

    /// Sends one message to a kept receiver, signed, without retries.
    ///
    /// # Errors
    /// When there is none or no such type, or when we fail.
    pub async fn test(&self, name: &str, kind: &str) -> Result<Tried, Refused> {
        let endpoint = self.store().endpoint(name).await?;
        let (body, _) = self.sample(kind, false).await?;
        let message = self.ids.next((self.courier.clock)());
        let tested = self.courier.test(endpoint, &message, kind, body.clone()).await?;
        Ok(tried(message, kind, &body, tested))
    }

    /// What a receiver would get, of the newest real message of that type where there is one.
    ///
    /// # Errors
    /// What is wrong with it, or when we fail.
    pub async fn preview(&self, asked: &Asked, kind: &str) -> Result<Previewed, Refused> {
        let (endpoint, _) = asked.plan(&self.guard)?;
        let (body, is_real) = self.sample(kind, true).await?;
        let sending = Sending {
            endpoint: &endpoint,
            message: "msg_00000000000000000000000000",
            kind,
            body: &body,
            attempt: 1,
            is_replay: false,
            timestamp_s: self.now_s(),
            keys: &[],
            token: Some("***"),
        };
        let made = match asked.format.request(&sending) {
            Ok(post) => String::from_utf8_lossy(&post.body).into_owned(),
            Err(FormatError::Way(_)) => crate::formats::said(sending.message, kind, &body).plain_text(),
            Err(error) => return Err(Refused::Bad(error.to_string())),
        };
        Ok(Previewed { kind: kind.to_owned(), is_real, body: made })
    }

    /// A message of a type: the newest real one where that is wished and there is one, else the example as of now.
    async fn sample(&self, kind: &str, wants_real: bool) -> Result<(Vec<u8>, bool), Refused> {
        let example = event_types::named(kind).ok_or_else(|| Refused::Bad(format!("`{kind}` is no event type")))?;
        if wants_real && let Some(body) = self.store().newest_body(kind).await? {
            return Ok((body, true));
        }
        Ok((payload::body(kind, self.now_s(), &self.source, &example.example["data"]), false))
    }

    fn sealed(&self, keys: &[Key]) -> Result<Vec<SealedSecret>, Refused> {
        keys.iter().map(|key| self.seal(key.scheme(), key.bytes())).collect()
    }

    fn sealed_token(&self, asked: &Asked) -> Result<Option<SealedSecret>, Refused> {
        asked.token.as_ref().map(|token| self.seal(TOKEN, token.as_bytes())).transpose()
    }

    fn seal(&self, scheme: &str, bytes: &[u8]) -> Result<SealedSecret, Refused> {
        Ok(SealedSecret {
            role: SecretRole::Current,
            scheme: scheme.to_owned(),
            sealed: self.courier.vault.seal(bytes)?,
            created_s: self.now_s(),
            expires_s: None,
            last_used_s: None,
        })
    }
}

/// What signs for a new receiver: the secret it brings or a new one, and a key pair where that is wished.
fn keys(asked: &Asked) -> Result<Vec<Key>, Refused> {
    let mut keys = Vec::new();
    match &asked.secret {
        Some(text) => keys.push(Key::parse(text).map_err(|error| Refused::Bad(error.to_string()))?),
        None if asked.is_signed() => keys.push(Key::new_shared()?),
        None => {}
    }
    if asked.ed25519 {
        keys.push(Key::new_own()?);
    }
    Ok(keys)
}

fn must_have_token(asked: &Asked) -> Result<(), Refused> {
    match asked.format {
        Format::Pagerduty if asked.token.is_none() => {
            Err(Refused::Bad("pagerduty needs its routing key as the token".to_owned()))
        }
        _ => Ok(()),
    }
}

/// A token that was given for one place is not sent to another.
fn must_be_there_still(before: &Asked, now: &Asked) -> Result<(), Refused> {
    let place = |text: &str| url::Url::parse(text.trim()).map(|url| url.origin());
    match (place(&before.url), place(&now.url)) {
        (Ok(before), Ok(now)) if before == now => Ok(()),
        _ => Err(Refused::Bad("the address is another one: its token has to be given again".to_owned())),
    }
}

fn tried(message: String, kind: &str, body: &[u8], tested: Tested) -> Tried {
    let Tested { sent, answer, took_ms } = tested;
    let request_headers: Vec<(String, String)> = sent["headers"].as_object().map_or_else(Vec::new, |headers| {
        headers.iter().map(|(name, value)| (name.clone(), value.as_str().unwrap_or_default().to_owned())).collect()
    });
    let request_body = match sent["body"].as_str() {
        Some(body) => body.to_owned(),
        None => String::from_utf8_lossy(body).into_owned(),
    };
    let header = |name: &str| request_headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
    let signed = header("webhook-signature")
        .and_then(|_| header("webhook-timestamp"))
        .map(|at| format!("{message}.{at}.{request_body}"));
    let verify = signed.as_deref().map(verify_command);
    let (status, error, response_headers, response_body) = match answer {
        Answer::Heard { status, headers, body } => (Some(status), None, headers, body),
        Answer::Silent { error, .. } | Answer::Ours(error) => (None, Some(error), Vec::new(), String::new()),
    };
    Tried {
        is_accepted: status.is_some_and(|status| (200..=299).contains(&status)),
        message,
        kind: kind.to_owned(),
        request_headers,
        request_body,
        signed,
        verify,
        status,
        error,
        response_headers,
        response_body,
        took_ms,
    }
}

/// A line for a shell that signs the same bytes, given the secret in `SECRET`.
fn verify_command(signed: &str) -> String {
    let quoted = signed.replace('\'', r"'\''");
    format!(
        "printf %s '{quoted}' | openssl dgst -sha256 -mac HMAC -macopt \
         hexkey:\"$(printf %s \"${{SECRET#whsec_}}\" | base64 -d | od -An -tx1 | tr -d ' \\n')\" -binary | base64"
    )
}
