//! From a message to the request that one kind of receiver understands. Every format is a pure function of the message.
//!
//! All of them say on the first line what, where, since when and why; severity as a word; strangers' texts without anything
//! the receiver would obey.

mod alertmanager;
mod discord;
mod generic;
mod google_chat;
mod gotify;
mod mattermost;
mod ntfy;
mod pagerduty;
mod slack;
mod teams;
pub mod template;
mod text;

use plumbline_rules::words;
use plumbline_store::hooks::NewEndpoint;
use serde_json::Value;

use crate::signature::Key;
use crate::wire::Post;

pub use text::{Item, Said, said};

words! {
    /// Which form bodies have.
    pub enum Format {
        /// The contract: signed JSON.
        Generic = "generic",
        /// An incoming webhook of Slack.
        Slack = "slack",
        /// A Workflows webhook of Microsoft Teams.
        Teams = "teams",
        /// A webhook of a Discord channel.
        Discord = "discord",
        /// A webhook of a Google Chat space.
        GoogleChat = "google-chat",
        /// An incoming webhook of Mattermost or Rocket.Chat.
        Mattermost = "mattermost",
        /// PagerDuty Events API v2.
        Pagerduty = "pagerduty",
        /// The alerts API of a Prometheus Alertmanager.
        Alertmanager = "alertmanager",
        /// A topic of ntfy.
        Ntfy = "ntfy",
        /// An application of Gotify.
        Gotify = "gotify",
        /// Plain text by e-mail; the address is `mailto:…`.
        Email = "email",
        /// JSON from a template of one's own.
        Template = "template",
    }
}

/// A message on its way to one receiver.
#[derive(Debug, Clone, Copy)]
pub struct Sending<'s> {
    /// The receiver.
    pub endpoint: &'s NewEndpoint,
    /// The id of the message.
    pub message: &'s str,
    /// Its type.
    pub kind: &'s str,
    /// Its body as the generic format sends it.
    pub body: &'s [u8],
    /// Which attempt this is, from 1.
    pub attempt: i64,
    /// It is sent again on request.
    pub is_replay: bool,
    /// The moment of this attempt, in Unix seconds.
    pub timestamp_s: i64,
    /// What signs it, the newest first.
    pub keys: &'s [Key],
    /// A token the receiver asks for: a routing key, an access token.
    pub token: Option<&'s str>,
}

/// Why a message cannot be put into a form. The fault is in our settings.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    /// A key cannot sign.
    #[error(transparent)]
    Key(#[from] crate::signature::BadSecret),
    /// The receiver wants a token and none is set.
    #[error("{0} needs a token: set token_file or token_env")]
    NoToken(Format),
    /// The template cannot be filled.
    #[error("the template: {0}")]
    Template(String),
    /// This form does not go over HTTP.
    #[error("{0} does not go over HTTP")]
    Way(Format),
    /// The address of the receiver is none.
    #[error("`{0}` is no address for this format")]
    Url(String),
}

impl Format {
    /// The request that this kind of receiver understands.
    ///
    /// # Errors
    /// When our settings do not suffice.
    pub fn request(self, sending: &Sending<'_>) -> Result<Post, FormatError> {
        match self {
            Format::Generic => generic::request(sending, sending.body.to_vec()),
            Format::Slack => Ok(json_post(&sending.endpoint.url, &slack::body(&said_of(sending)))),
            Format::Teams => Ok(json_post(&sending.endpoint.url, &teams::body(&said_of(sending)))),
            Format::Discord => Ok(json_post(&sending.endpoint.url, &discord::body(&said_of(sending)))),
            Format::GoogleChat => Ok(json_post(&sending.endpoint.url, &google_chat::body(&said_of(sending)))),
            Format::Mattermost => Ok(json_post(&sending.endpoint.url, &mattermost::body(&said_of(sending)))),
            Format::Pagerduty => {
                let key = sending.token.ok_or(FormatError::NoToken(self))?;
                Ok(json_post(&sending.endpoint.url, &pagerduty::body(&said_of(sending), key)))
            }
            Format::Alertmanager => {
                let mut post =
                    json_post(&sending.endpoint.url, &alertmanager::body(&said_of(sending), sending.timestamp_s));
                bearer(&mut post, sending.token);
                Ok(post)
            }
            Format::Ntfy => ntfy::request(sending, &said_of(sending)),
            Format::Gotify => gotify::request(sending, &said_of(sending)),
            Format::Template => generic::request(sending, template::fill(sending)?),
            Format::Email => Err(FormatError::Way(self)),
        }
    }

    /// What it is sent when nothing else is said: chats and pagers hear of groups, programs of events.
    #[must_use]
    pub fn usual_mode(self) -> plumbline_store::hooks::Mode {
        match self {
            Format::Generic | Format::Template => plumbline_store::hooks::Mode::Events,
            _ => plumbline_store::hooks::Mode::Groups,
        }
    }

    /// Messages a minute when nothing else is said.
    #[must_use]
    pub fn usual_pace(self) -> i64 {
        match self {
            Format::Generic | Format::Template | Format::Pagerduty | Format::Alertmanager => 300,
            _ => 30,
        }
    }

    /// Whether nobody should be woken by it for what is only good to know.
    #[must_use]
    pub fn is_pager(self) -> bool {
        self == Format::Pagerduty
    }

    /// A body as the log may hold it.
    #[must_use]
    pub fn logged_body(self, body: &[u8]) -> String {
        let text = String::from_utf8_lossy(body).into_owned();
        if self != Format::Pagerduty {
            return text;
        }
        match serde_json::from_slice::<Value>(body) {
            Ok(mut json) => {
                json["routing_key"] = "***".into();
                json.to_string()
            }
            Err(_) => "***".to_owned(),
        }
    }
}

fn said_of(sending: &Sending<'_>) -> Said {
    said(sending.message, sending.kind, sending.body)
}

fn json_post(url: &str, body: &Value) -> Post {
    Post {
        url: url.to_owned(),
        headers: vec![
            ("content-type".to_owned(), "application/json".to_owned()),
            ("user-agent".to_owned(), generic::USER_AGENT.to_owned()),
        ],
        body: body.to_string().into_bytes(),
    }
}

fn bearer(post: &mut Post, token: Option<&str>) {
    if let Some(token) = token {
        post.headers.push(("authorization".to_owned(), format!("Bearer {token}")));
    }
}

#[cfg(test)]
mod tests {
    use plumbline_store::hooks::{Mode, NewEndpoint};
    use plumbline_store::words::EventKind;
    use serde_json::json;

    use super::*;
    use crate::event_types;
    use crate::payload::{self, Source};

    fn endpoint(format: Format, url: &str) -> NewEndpoint {
        NewEndpoint {
            slug: "x".to_owned(),
            title: "x".to_owned(),
            url: url.to_owned(),
            format: format.to_string(),
            mode: Mode::Groups,
            types: Vec::new(),
            matcher: String::new(),
            include_baseline: false,
            per_minute: 30,
            options: json!({ "template": r#"{"text": {{ (data.summary or data.title or data.message) | tojson }}}"# })
                .to_string(),
            digest: None,
        }
    }

    fn sent(format: Format, kind: &str, data: &Value) -> Post {
        let source = Source("https://plumbline.example".to_owned());
        let body = payload::body(kind, 1_796_133_731, &source, data);
        let url = if format == Format::Ntfy { "https://ntfy.example/alarms" } else { "https://hooks.example/x" };
        let endpoint = endpoint(format, url);
        let sending = Sending {
            endpoint: &endpoint,
            message: "msg_01K0PLUMB1NE00000000000000",
            kind,
            body: &body,
            attempt: 1,
            is_replay: false,
            timestamp_s: 1_796_133_740,
            keys: &[Key::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap()],
            token: Some("R0UT1NG"),
        };
        format.request(&sending).unwrap()
    }

    #[test]
    fn each_format_says_a_group_and_an_event_in_its_own_form() {
        for format in Format::ALL.iter().copied().filter(|format| *format != Format::Email) {
            let mut shown = String::new();
            for kind in
                [EventKind::AlertGroupOpened, EventKind::AlertGroupResolved, EventKind::TargetDown, EventKind::Ping]
            {
                let post = sent(format, kind.as_str(), &event_types::example(kind));
                let body: Value = serde_json::from_slice(&post.body).unwrap();
                let headers: Vec<String> =
                    post.headers.iter().map(|(name, value)| format!("{name}: {value}")).collect();
                shown += &format!(
                    "== {kind}\n{}\n{}\n{}\n",
                    post.url,
                    headers.join("\n"),
                    serde_json::to_string_pretty(&body).unwrap()
                );
            }
            insta::with_settings!({ snapshot_path => "../../tests/snapshots", prepend_module_to_snapshot => false }, {
                insta::assert_snapshot!(format!("format_{format}"), shown);
            });
        }
    }

    #[test]
    fn no_format_obeys_what_a_stranger_wrote() {
        let hostile =
            "<!channel> @everyone [x](https://evil.example) *b* <script>alert(1)</script> \u{202e}\u{1b}[2J `c`";
        let mut data = event_types::example(EventKind::AlertGroupOpened);
        data["summary"] = json!(payload::plain(hostile, 400));
        data["items"][0]["title"] = json!(payload::plain(hostile, 400));
        for format in Format::ALL
            .iter()
            .copied()
            .filter(|format| !matches!(format, Format::Email | Format::Generic | Format::Template))
        {
            let body = String::from_utf8(sent(format, "alert_group.opened", &data).body).unwrap();
            assert!(!body.contains('\u{202e}') && !body.contains('\u{1b}'), "{format}: {body}");
            match format {
                // These show text as it is: there is nothing to obey.
                Format::Pagerduty | Format::Alertmanager | Format::Ntfy | Format::Gotify => {}
                // Blocks hold plain and rich text elements, which interpret nothing; the fallback does.
                Format::Slack => {
                    let fallback = serde_json::from_str::<Value>(&body).unwrap()["text"].to_string();
                    assert!(!fallback.contains("<!channel>"), "{body}");
                }
                Format::GoogleChat => assert!(!body.contains("<script>"), "{body}"),
                _ => assert!(!body.contains("[x](") && !body.contains(" @everyone"), "{format}: {body}"),
            }
        }
    }

    #[test]
    fn a_routing_key_is_not_logged() {
        let post = sent(Format::Pagerduty, "ping", &json!({ "message": "hello" }));
        assert!(String::from_utf8_lossy(&post.body).contains("R0UT1NG"));
        assert!(!Format::Pagerduty.logged_body(&post.body).contains("R0UT1NG"));
    }
}
