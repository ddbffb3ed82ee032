//! E-mail: plain text over SMTP, the way out that does not depend on webhooks.

use lettre::message::header::ContentType;
use lettre::message::{Mailbox, Message};
use lettre::transport::smtp::authentication::Credentials;
use lettre::{AsyncSmtpTransport, AsyncTransport, Tokio1Executor};

use crate::formats::{Sending, said};
use crate::wire::Answer;

/// How mail leaves.
#[derive(Clone, Default)]
pub struct Mailer(Option<Route>);

#[derive(Clone)]
struct Route {
    transport: AsyncSmtpTransport<Tokio1Executor>,
    from: Mailbox,
}

impl std::fmt::Debug for Mailer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.0.is_some() { "Mailer" } else { "no mailer" })
    }
}

/// Why mail cannot leave.
#[derive(Debug, thiserror::Error)]
pub enum MailError {
    /// The server's address is none.
    #[error("alerts.smtp: `{0}` is no address such as smtps://user@mail.example:465")]
    Server(String),
    /// The sender is no address.
    #[error("alerts.mail_from: `{0}` is no mail address")]
    From(String),
}

impl Mailer {
    /// Mail over this server, from this address; an empty server: none leaves. `smtps://` is TLS from the first byte,
    /// `smtp://…?tls=required` begins plain and switches, `smtp://` without is for a server on this machine.
    ///
    /// # Errors
    /// What cannot be used.
    pub fn new(server: &str, from: &str, password: Option<&str>) -> Result<Mailer, MailError> {
        if server.is_empty() {
            return Ok(Mailer(None));
        }
        let wrong = || MailError::Server(server.to_owned());
        let url = url::Url::parse(server).map_err(|_| wrong())?;
        let mut builder = AsyncSmtpTransport::<Tokio1Executor>::from_url(server).map_err(|_| wrong())?;
        if let Some(password) = password {
            builder = builder.credentials(Credentials::new(url.username().to_owned(), password.to_owned()));
        }
        let from = from.parse().map_err(|_| MailError::From(from.to_owned()))?;
        let transport = builder.timeout(Some(crate::courier::PATIENCE)).build();
        Ok(Mailer(Some(Route { transport, from })))
    }

    /// Sends one message; the receiver's address is `mailto:somebody@example.org`.
    pub async fn send(&self, sending: &Sending<'_>) -> Answer {
        let Some(route) = &self.0 else { return Answer::Ours("no mail server is set: alerts.smtp".to_owned()) };
        let mail = match mail(route.from.clone(), sending) {
            Ok(mail) => mail,
            Err(why) => return Answer::Ours(why),
        };
        match route.transport.send(mail).await {
            Ok(_) => Answer::Heard { status: 250, headers: Vec::new(), body: String::new() },
            Err(error) => Answer::Silent { is_timeout: error.is_timeout(), error: error.to_string() },
        }
    }
}

/// The mail itself.
fn mail(from: Mailbox, sending: &Sending<'_>) -> Result<Message, String> {
    let address = sending.endpoint.url.strip_prefix("mailto:").unwrap_or(&sending.endpoint.url);
    let to: Mailbox = address.parse().map_err(|_| format!("`{address}` is no mail address"))?;
    let said = said(sending.message, sending.kind, sending.body);
    let domain = from.email.domain().to_owned();
    Message::builder()
        .message_id(Some(format!("<{}@{domain}>", sending.message)))
        .from(from)
        .to(to)
        .subject(said.first_line())
        .header(ContentType::TEXT_PLAIN)
        .body(said.plain_text())
        .map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use plumbline_store::hooks::{Mode, NewEndpoint};

    use super::*;
    use crate::event_types;
    use crate::payload::{Source, body};

    #[test]
    fn a_mail_says_first_what_happened_and_keeps_the_messages_id() {
        let endpoint = NewEndpoint {
            slug: "me".to_owned(),
            title: "me".to_owned(),
            url: "mailto:ops@example.org".to_owned(),
            format: "email".to_owned(),
            mode: Mode::Groups,
            types: Vec::new(),
            matcher: String::new(),
            include_baseline: false,
            per_minute: 30,
            options: "{}".to_owned(),
            digest: None,
        };
        let kind = plumbline_store::words::EventKind::AlertGroupOpened;
        let source = Source("https://plumbline.example".to_owned());
        let body = body(kind.as_str(), 1_796_133_731, &source, &event_types::example(kind));
        let sending = Sending {
            endpoint: &endpoint,
            message: "msg_1",
            kind: kind.as_str(),
            body: &body,
            attempt: 1,
            is_replay: false,
            timestamp_s: 1_796_133_731,
            keys: &[],
            token: None,
        };
        let mail = mail("plumbline@example.org".parse().unwrap(), &sending).unwrap().formatted();
        let mail = String::from_utf8(mail).unwrap();
        assert!(mail.contains("Subject: [error] 12 findings regressed on 4 targets after 1.4.0"), "{mail}");
        assert!(mail.contains("Message-ID: <msg_1@example.org>"), "{mail}");
        assert!(mail.contains("and 11 more"), "{mail}");
    }

    #[test]
    fn a_server_that_is_none_is_named() {
        assert!(matches!(Mailer::new("mail.example", "a@b.example", None), Err(MailError::Server(_))));
        assert!(matches!(Mailer::new("smtp://localhost", "nobody", None), Err(MailError::From(_))));
    }
}
