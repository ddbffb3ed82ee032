//! Gotify: `POST …/message` with the token of an application.

use serde_json::json;

use super::{Format, FormatError, Said, Sending, json_post};
use crate::wire::Post;

pub(super) fn request(sending: &Sending<'_>, said: &Said) -> Result<Post, FormatError> {
    let token = sending.token.ok_or(FormatError::NoToken(Format::Gotify))?;
    let priority = match said.severity.as_str() {
        _ if said.is_over => 3,
        "critical" => 10,
        "error" => 8,
        "warning" => 5,
        _ => 3,
    };
    let body = json!({
        "title": said.first_line(), "message": said.plain_text(), "priority": priority,
        "extras": { "client::notification": { "click": { "url": said.url } } },
    });
    let mut post = json_post(&sending.endpoint.url, &body);
    post.headers.push(("authorization".to_owned(), format!("Bearer {token}")));
    Ok(post)
}
