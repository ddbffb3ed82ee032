//! ntfy: JSON to the server, the topic being the last part of the address.

use serde_json::json;

use super::{FormatError, Said, Sending, bearer, json_post};
use crate::wire::Post;

pub(super) fn request(sending: &Sending<'_>, said: &Said) -> Result<Post, FormatError> {
    let url = &sending.endpoint.url;
    let parts = url
        .trim_end_matches('/')
        .rsplit_once('/')
        .filter(|(server, topic)| server.contains("://") && !server.ends_with('/') && !topic.is_empty());
    let (server, topic) = parts.ok_or_else(|| FormatError::Url(url.clone()))?;
    let priority = match said.severity.as_str() {
        _ if said.is_over => 2,
        "critical" => 5,
        "error" => 4,
        "warning" => 3,
        _ => 2,
    };
    let body = json!({
        "topic": topic, "title": said.first_line(), "message": said.plain_text(), "priority": priority, "click": said.url,
    });
    let mut post = json_post(&format!("{server}/"), &body);
    bearer(&mut post, sending.token);
    Ok(post)
}
