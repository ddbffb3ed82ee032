//! Microsoft Teams: an Adaptive Card for a Workflows webhook. The older connector form is not offered.

use serde_json::{Value, json};

use super::Said;

pub(super) fn body(said: &Said) -> Value {
    let mut lines = vec![json!({
        "type": "TextBlock", "text": escaped(&said.first_line()), "wrap": true, "weight": "Bolder", "size": "Medium",
        "color": colour(said),
    })];
    for item in &said.items {
        let word = if item.is_over { "resolved" } else { &item.severity };
        lines.push(json!({ "type": "TextBlock", "text": format!("{word}: {}", escaped(&item.title)), "wrap": true, "spacing": "Small" }));
    }
    if said.more > 0 {
        lines.push(
            json!({ "type": "TextBlock", "text": format!("and {} more", said.more), "wrap": true, "isSubtle": true }),
        );
    }
    json!({
        "type": "message",
        "attachments": [{
            "contentType": "application/vnd.microsoft.card.adaptive",
            "content": {
                "$schema": "http://adaptivecards.io/schemas/adaptive-card.json", "type": "AdaptiveCard", "version": "1.4",
                "fallbackText": escaped(&said.first_line()),
                "body": lines,
                "actions": [{ "type": "Action.OpenUrl", "title": "Open in Plumbline", "url": said.url }],
            },
        }],
    })
}

fn colour(said: &Said) -> &'static str {
    match said.severity.as_str() {
        _ if said.is_over => "Good",
        "critical" | "error" => "Attention",
        "warning" => "Warning",
        _ => "Default",
    }
}

/// Text blocks read a little Markdown, and `<at>` mentions somebody.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for letter in text.chars() {
        match letter {
            '[' | ']' | '(' | ')' | '*' | '_' | '`' | '\\' | '#' => out.extend(['\\', letter]),
            '<' => out.push('‹'),
            '>' => out.push('›'),
            '@' => out.extend(['@', '\u{2060}']),
            letter => out.push(letter),
        }
    }
    out.replace(" @", " ＠")
}
