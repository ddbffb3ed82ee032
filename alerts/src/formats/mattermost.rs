//! Mattermost and Rocket.Chat: an incoming webhook with one attachment.

use serde_json::{Value, json};

use super::Said;
use super::discord::escaped;

pub(super) fn body(said: &Said) -> Value {
    let mut lines: Vec<String> = said
        .items
        .iter()
        .map(|item| {
            let word = if item.is_over { "resolved" } else { &item.severity };
            format!("- {word}: {}", escaped(&item.title))
        })
        .collect();
    if said.more > 0 {
        lines.push(format!("- and {} more", said.more));
    }
    json!({
        "username": "Plumbline",
        "attachments": [{
            "fallback": escaped(&said.first_line()), "color": colour(said), "title": escaped(&said.first_line()),
            "title_link": said.url, "text": lines.join("\n"),
        }],
    })
}

fn colour(said: &Said) -> &'static str {
    match said.severity.as_str() {
        _ if said.is_over => "#007a52",
        "critical" | "error" => "#84150d",
        "warning" => "#9a6700",
        _ => "#0b57d0",
    }
}
