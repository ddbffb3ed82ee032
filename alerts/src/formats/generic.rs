//! The contract: the message's own bytes, signed as Standard Webhooks 1.0.0 has it.

use super::{FormatError, Sending};
use crate::signature;
use crate::wire::Post;

/// How requests say who sends them.
pub const USER_AGENT: &str = concat!("Plumbline-Webhooks/", env!("CARGO_PKG_VERSION"));

pub(super) fn request(sending: &Sending<'_>, body: Vec<u8>) -> Result<Post, FormatError> {
    let mut headers = vec![
        ("content-type".to_owned(), "application/json".to_owned()),
        ("user-agent".to_owned(), USER_AGENT.to_owned()),
        ("webhook-id".to_owned(), sending.message.to_owned()),
        ("webhook-timestamp".to_owned(), sending.timestamp_s.to_string()),
    ];
    if !sending.keys.is_empty() {
        let signatures = signature::header(sending.keys, sending.message, sending.timestamp_s, &body)?;
        headers.push(("webhook-signature".to_owned(), signatures));
    }
    headers.push(("plumbline-attempt".to_owned(), sending.attempt.to_string()));
    if sending.is_replay {
        headers.push(("plumbline-replay".to_owned(), "true".to_owned()));
    }
    Ok(Post { url: sending.endpoint.url.clone(), headers, body })
}
