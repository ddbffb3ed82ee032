//! `/webhooks/new` and `/webhooks/{slug}/edit`: a receiver is typed in, tried, and then kept; its secret is changed; it is taken
//! away. One form with three buttons: what it would get, a test, and keeping it. Nothing of it needs script.

use askama::Template;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use plumbline_alerts::desk::{Asked, Made, Previewed, Refused, Tried, USUAL_GRACE_H};
use plumbline_alerts::formats::Format;
use plumbline_alerts::signature::Key;
use plumbline_alerts::zones::QuietHours;
use plumbline_store::alerting::Grade;
use serde::{Deserialize, Serialize};

use super::webhooks::event_words;
use crate::WebState;
use crate::acting;
use crate::cache::Cache;
use crate::error::Error;
use crate::filters;
use crate::operator::{Acted, Actor};
use crate::page::{Frame, Place, Visit};

/// A form as it is sent, field by field.
type Fields = Vec<(String, String)>;

/// The form, with what came of its last button.
#[derive(Template, Serialize)]
#[template(path = "webhook_form.html")]
struct FormPage {
    #[serde(skip)]
    frame: Frame,
    /// As it was typed, less what is secret.
    asked: Asked,
    /// It is not kept yet.
    is_new: bool,
    /// What is wrong with it, in a sentence.
    problem: Option<String>,
    /// What a test brought.
    tried: Option<Tried>,
    /// What it would get.
    previewed: Option<Previewed>,
    /// The type that tests and previews show.
    kind: String,
    #[serde(skip)]
    kinds: Vec<&'static str>,
}

impl FormPage {
    fn new(visit: &Visit, asked: Asked, is_new: bool) -> FormPage {
        FormPage {
            frame: visit.framed(Place::Alerts),
            asked,
            is_new,
            problem: None,
            tried: None,
            previewed: None,
            kind: "ping".to_owned(),
            kinds: event_words(),
        }
    }

    /// Every form of body, in words, and whether it is the one that was chosen.
    fn formats(&self) -> Vec<(&'static str, &'static str, bool)> {
        Format::ALL
            .iter()
            .map(|format| (format.as_str(), format_words(*format), *format == self.asked.format))
            .collect()
    }

    fn grades(&self) -> Vec<(&'static str, bool)> {
        Grade::ALL.iter().map(|grade| (grade.as_str(), *grade == self.asked.min_severity)).collect()
    }

    /// An address as it could be typed.
    fn address(&self) -> &'static str {
        "https://hooks.example.com/plumbline"
    }

    fn mode(&self) -> &'static str {
        self.asked.mode.map_or("", |mode| mode.as_str())
    }

    fn digest(&self) -> &'static str {
        self.asked.digest.map_or("", |every| every.as_str())
    }

    fn quiet(&self) -> QuietHours {
        let none = || QuietHours { zone: "UTC".to_owned(), from: String::new(), to: String::new() };
        self.asked.quiet_hours.clone().unwrap_or_else(none)
    }

    fn answer(&self, visit: &Visit) -> Result<Response, Error> {
        let mut response = visit.answer(self, Cache::Never)?;
        if self.problem.is_some() {
            *response.status_mut() = StatusCode::BAD_REQUEST;
        }
        Ok(response)
    }
}

fn format_words(format: Format) -> &'static str {
    match format {
        Format::Generic => "Any program: signed JSON",
        Format::Template => "Any program: JSON of a template of yours",
        Format::Slack => "Slack: incoming webhook",
        Format::Teams => "Microsoft Teams: Workflows webhook",
        Format::Discord => "Discord: webhook of a channel",
        Format::GoogleChat => "Google Chat: webhook of a space",
        Format::Mattermost => "Mattermost or Rocket.Chat: incoming webhook",
        Format::Pagerduty => "PagerDuty: Events API v2",
        Format::Alertmanager => "Prometheus Alertmanager: /api/v2/alerts",
        Format::Ntfy => "ntfy: a topic",
        Format::Gotify => "Gotify: …/message",
        Format::Email => "E-mail: mailto:somebody@example.org",
    }
}

/// What a link to the form may bring along.
#[derive(Deserialize)]
pub struct Brought {
    r#match: Option<String>,
    format: Option<String>,
}

/// `GET /webhooks/new`: a form with a fresh secret in it, which is nobody's until it is kept.
pub async fn new(visit: Visit, Query(brought): Query<Brought>) -> Result<Response, Error> {
    let format = brought.format.and_then(|word| word.parse().ok()).unwrap_or(Format::Generic);
    let asked = Asked {
        matcher: brought.r#match.unwrap_or_default(),
        secret: Some(fresh_secret()?),
        format,
        ..Asked::default()
    };
    FormPage::new(&visit, asked, true).answer(&visit)
}

fn fresh_secret() -> Result<String, Error> {
    let made = Key::new_shared().and_then(|key| key.for_receiver());
    made.map_err(|error| Error::Ours(error.to_string()))
}

/// `GET /webhooks/{slug}/edit`
pub async fn edit(visit: Visit, State(state): State<WebState>, Path(slug): Path<String>) -> Result<Response, Error> {
    let (_, asked) = state.desk.changeable(&slug).await?;
    FormPage::new(&visit, asked, false).answer(&visit)
}

/// `POST /webhooks`: the form for a new one, by one of its three buttons.
pub async fn create(
    visit: Visit,
    State(state): State<WebState>,
    Acted { by, form }: Acted<Fields>,
) -> Result<Response, Error> {
    let read = read(&form, &Asked::default());
    act(&visit, &state, &by, &form, read, None).await
}

/// `POST /webhooks/{slug}`: the form for one that is kept.
pub async fn change(
    visit: Visit,
    State(state): State<WebState>,
    Path(slug): Path<String>,
    Acted { by, form }: Acted<Fields>,
) -> Result<Response, Error> {
    let (_, before) = state.desk.changeable(&slug).await?;
    by.must_cover(&before.matcher)?;
    let read = read(&form, &before);
    act(&visit, &state, &by, &form, read, Some(&before)).await
}

/// Does what a button asks for; whatever is wrong stands above the form, with everything still in it.
async fn act(
    visit: &Visit,
    state: &WebState,
    by: &Actor,
    form: &Fields,
    (asked, problem): (Asked, Option<String>),
    before: Option<&Asked>,
) -> Result<Response, Error> {
    let mut page = FormPage::new(visit, asked, before.is_none());
    page.kind = field(form, "kind").unwrap_or("ping").to_owned();
    page.problem = problem;
    if page.problem.is_some() {
        return page.answer(visit);
    }
    by.must_cover(&page.asked.matcher)?;
    let done = match field(form, "do") {
        Some("test") => {
            let kept = before.map(|before| before.name.as_str());
            state.desk.try_out(&page.asked, kept, &page.kind).await.map(|tried| page.tried = Some(tried))
        }
        Some("preview") => state.desk.preview(&page.asked, &page.kind).await.map(|made| page.previewed = Some(made)),
        _ => {
            let kept = match before {
                None => acting::add_webhook(state, by, &page.asked).await,
                Some(before) => acting::change_webhook(state, by, before, &page.asked).await,
            };
            match kept {
                Ok(made) => return MadePage::new(visit, made, before.is_none()).answer(visit, &page.asked),
                Err(error) => Err(error),
            }
        }
    };
    match done {
        Ok(()) => {}
        Err(error @ (Refused::Bad(_) | Refused::Taken(_))) => page.problem = Some(Error::from(error).to_string()),
        Err(error) => return Err(error.into()),
    }
    page.answer(visit)
}

/// The last value of a field that was filled in.
fn field<'f>(form: &'f Fields, name: &str) -> Option<&'f str> {
    form.iter().rev().filter(|(known, _)| known == name).map(|(_, value)| value.trim()).find(|value| !value.is_empty())
}

/// What was typed, and what of it cannot be read. What is secret and was left empty stays as it is.
fn read(form: &Fields, before: &Asked) -> (Asked, Option<String>) {
    let mut problem = None;
    let mut wrong = |name: &str, why: &str| {
        problem.get_or_insert_with(|| format!("The field “{name}” {why}."));
    };
    let text = |name: &str| field(form, name).unwrap_or_default().to_owned();
    let mut number = |name: &str| -> Option<i64> {
        let read = field(form, name)?.parse().ok();
        if read.is_none() {
            wrong(name, "is no whole number");
        }
        read
    };
    let (per_minute, hour) = (number("per_minute"), number("digest_hour"));
    let seconds = ["wait_s", "interval_s", "repeat_s"].map(&mut number);
    let mut word = |name: &str, is_known: bool| {
        if field(form, name).is_some() && !is_known {
            wrong(name, "is none of its words");
        }
    };
    let format: Option<Format> = field(form, "format").and_then(|word| word.parse().ok());
    word("format", format.is_some());
    let mode = field(form, "mode").and_then(|word| word.parse().ok());
    word("mode", mode.is_some());
    let digest = field(form, "digest").and_then(|word| word.parse().ok());
    word("digest", digest.is_some());
    let grade: Option<Grade> = field(form, "min_severity").and_then(|word| word.parse().ok());
    word("min_severity", grade.is_some());
    let quiet_hours = match (field(form, "quiet_from"), field(form, "quiet_to")) {
        (None, None) => None,
        (from, to) => Some(QuietHours {
            zone: field(form, "quiet_zone").unwrap_or("UTC").to_owned(),
            from: from.unwrap_or_default().to_owned(),
            to: to.unwrap_or_default().to_owned(),
        }),
    };
    let asked = Asked {
        name: if before.name.is_empty() { text("name") } else { before.name.clone() },
        title: text("title"),
        url: field(form, "url").unwrap_or(&before.url).to_owned(),
        format: format.unwrap_or(before.format),
        mode,
        types: text("types")
            .split([' ', ',', '\r', '\n', '\t'])
            .filter(|one| !one.is_empty())
            .map(Into::into)
            .collect(),
        matcher: text("match"),
        min_severity: grade.unwrap_or(before.min_severity),
        include_baseline: field(form, "include_baseline").is_some(),
        include_rule_changes: field(form, "include_rule_changes").is_some(),
        per_minute,
        ed25519: field(form, "ed25519").is_some(),
        template: text("template"),
        digest,
        digest_zone: field(form, "digest_zone").unwrap_or("UTC").to_owned(),
        digest_hour: hour.and_then(|hour| u32::try_from(hour).ok()).unwrap_or(before.digest_hour),
        quiet_hours,
        wait_s: seconds[0].unwrap_or(before.wait_s),
        interval_s: seconds[1].unwrap_or(before.interval_s),
        repeat_s: seconds[2].unwrap_or(before.repeat_s),
        secret: field(form, "secret").map(ToOwned::to_owned),
        token: field(form, "token").map(ToOwned::to_owned),
    };
    (asked, problem)
}

/// What was made, with the secret, this once.
#[derive(Template, Serialize)]
#[template(path = "webhook_made.html")]
struct MadePage {
    #[serde(skip)]
    frame: Frame,
    /// Its name.
    name: String,
    /// It is new.
    is_new: bool,
    /// Its secret was typed by the person or made here.
    secret: Option<String>,
    /// The public half of its key pair.
    public_key: Option<String>,
}

impl MadePage {
    fn new(visit: &Visit, made: Made, is_new: bool) -> MadePage {
        MadePage {
            frame: visit.framed(Place::Alerts),
            name: made.endpoint.is.slug,
            is_new,
            secret: made.secret,
            public_key: made.public_key,
        }
    }

    /// A page where there is something to be taken down, else back to the receiver.
    fn answer(&self, visit: &Visit, asked: &Asked) -> Result<Response, Error> {
        let shows_secret = self.secret.is_some() && (asked.is_signed() || !self.is_new);
        if shows_secret || self.public_key.is_some() {
            return visit.answer(self, Cache::Never);
        }
        Ok(Redirect::to(&format!("/webhooks/{}", self.name)).into_response())
    }
}

/// What to send as a test.
#[derive(Deserialize)]
pub struct Test {
    kind: Option<String>,
}

/// A test of a kept receiver.
#[derive(Template, Serialize)]
#[template(path = "webhook_tried.html")]
struct TriedPage {
    #[serde(skip)]
    frame: Frame,
    /// The receiver.
    name: String,
    /// What came of it.
    tried: Tried,
}

impl TriedPage {
    /// The answer in one sentence.
    fn answer(&self) -> String {
        tried_answer(&self.name, &self.tried)
    }
}

/// What came of a test. Whoever gives no answer says nothing about what it would accept.
fn tried_answer(name: &str, tried: &Tried) -> String {
    let kind = &tried.kind;
    match tried.status {
        Some(_) if tried.is_accepted => format!("{name} accepts {kind}."),
        Some(status) => format!("{name} refuses {kind} with status {status}."),
        None => format!("{name} does not answer, so nobody knows whether it accepts {kind}."),
    }
}

/// `POST /webhooks/{slug}/test`
pub async fn test(
    visit: Visit,
    State(state): State<WebState>,
    Path(slug): Path<String>,
    Acted { by, form }: Acted<Test>,
) -> Result<Response, Error> {
    acting::may_touch(&state, &by, &slug).await?;
    let tried = state.desk.test(&slug, form.kind.as_deref().unwrap_or("ping")).await?;
    visit.answer(&TriedPage { frame: visit.framed(Place::Alerts), name: slug, tried }, Cache::Never)
}

/// How long the secret before signs as well.
#[derive(Deserialize)]
pub struct Rotation {
    hours: Option<String>,
    force: Option<String>,
}

/// `POST /webhooks/{slug}/rotate`
pub async fn rotate(
    visit: Visit,
    State(state): State<WebState>,
    Path(slug): Path<String>,
    Acted { by, form }: Acted<Rotation>,
) -> Result<Response, Error> {
    let hours = super::number("hours", form.hours.as_deref())?.unwrap_or(USUAL_GRACE_H);
    let made = acting::rotate_secret(&state, &by, &slug, hours, form.force.is_some()).await?;
    visit.answer(&MadePage::new(&visit, made, false), Cache::Never)
}

/// What must be typed before a receiver is taken away.
#[derive(Deserialize)]
pub struct Removal {
    name: String,
}

/// `POST /webhooks/{slug}/remove`: its name is typed again, so that no slip of the hand does it.
pub async fn remove(
    State(state): State<WebState>,
    Path(slug): Path<String>,
    Acted { by, form }: Acted<Removal>,
) -> Result<Response, Error> {
    acting::may_touch(&state, &by, &slug).await?;
    if form.name.trim() != slug {
        return Err(Error::BadForm("The name that was typed is another one.".to_owned()));
    }
    acting::remove_webhook(&state, &by, &slug).await?;
    Ok(Redirect::to("/webhooks").into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(pairs: &[(&str, &str)]) -> Fields {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn a_form_is_read_whole_and_what_was_left_empty_stays_secret() {
        let before = Asked { name: "team".into(), url: "https://hooks.example.com/SECRET".into(), ..Asked::default() };
        let form = fields(&[
            ("name", "other"),
            ("url", ""),
            ("format", "slack"),
            ("types", "finding.* target.down,\r\nping"),
            ("match", " owner:harbour "),
            ("quiet_from", "22:00"),
            ("quiet_to", "07:00"),
            ("quiet_zone", "Europe/Berlin"),
            ("wait_s", "30"),
        ]);
        let (asked, problem) = read(&form, &before);
        assert_eq!(problem, None);
        assert_eq!((asked.name.as_str(), asked.url.as_str()), ("team", "https://hooks.example.com/SECRET"));
        assert_eq!(asked.types, ["finding.*", "target.down", "ping"]);
        assert_eq!((asked.matcher.as_str(), asked.wait_s, asked.repeat_s), ("owner:harbour", 30, 86_400));
        assert_eq!(asked.quiet_hours.map(|hours| hours.zone).as_deref(), Some("Europe/Berlin"));
    }

    #[test]
    fn what_cannot_be_read_is_said_and_kept_in_the_form() {
        let (asked, problem) = read(&fields(&[("per_minute", "many"), ("title", "Team")]), &Asked::default());
        assert_eq!(problem.as_deref(), Some("The field “per_minute” is no whole number."));
        assert_eq!(asked.title, "Team");
        let (_, problem) = read(&fields(&[("format", "fax")]), &Asked::default());
        assert_eq!(problem.as_deref(), Some("The field “format” is none of its words."));
    }

    #[test]
    fn a_test_is_accepted_refused_or_not_answered() {
        for (status, said) in [
            (Some(204), "team accepts ping."),
            (Some(410), "team refuses ping with status 410."),
            (None, "team does not answer, so nobody knows whether it accepts ping."),
        ] {
            let tried = Tried {
                message: String::new(),
                kind: "ping".to_owned(),
                request_headers: Vec::new(),
                request_body: String::new(),
                signed: None,
                verify: None,
                status,
                error: None,
                response_headers: Vec::new(),
                response_body: String::new(),
                took_ms: 1,
                is_accepted: status == Some(204),
            };
            assert_eq!(tried_answer("team", &tried), said);
        }
    }
}
