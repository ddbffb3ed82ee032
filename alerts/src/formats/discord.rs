//! Discord: an embed in a channel's webhook; nobody is mentioned.

use serde_json::{Value, json};

use super::Said;

/// Characters that a description may have.
const DESCRIPTION: usize = 4000;

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
        "allowed_mentions": { "parse": [] },
        "embeds": [{
            "title": crate::payload::cut(&escaped(&said.first_line()), 256), "url": said.url, "timestamp": said.at,
            "color": colour(said), "description": crate::payload::cut(&lines.join("\n"), DESCRIPTION),
        }],
    })
}

fn colour(said: &Said) -> u32 {
    match said.severity.as_str() {
        _ if said.is_over => 0x00_7a_52,
        "critical" | "error" => 0x84_15_0d,
        "warning" => 0x9a_67_00,
        _ => 0x0b_57_d0,
    }
}

/// Markdown is shown as it stands, and so are mentions.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::new();
    for letter in text.chars() {
        match letter {
            '[' | ']' | '(' | ')' | '*' | '_' | '`' | '~' | '|' | '\\' | '#' | '<' | '>' => out.extend(['\\', letter]),
            '@' => out.push('＠'),
            letter => out.push(letter),
        }
    }
    out
}
