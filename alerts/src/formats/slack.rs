//! Slack: Block Kit in an incoming webhook. Texts are plain and rich text elements, which interpret nothing.

use serde_json::{Value, json};

use super::Said;

pub(super) fn body(said: &Said) -> Value {
    let escaped = said.first_line().replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let mut blocks = vec![json!({
        "type": "header", "text": { "type": "plain_text", "text": said.first_line(), "emoji": false },
    })];
    if !said.items.is_empty() {
        let items: Vec<Value> = said
            .items
            .iter()
            .map(|item| {
                let word = if item.is_over { "resolved" } else { &item.severity };
                json!({ "type": "rich_text_section", "elements": [
                { "type": "text", "text": format!("{word} ") },
                { "type": "link", "url": item.url, "text": item.title },
            ] })
            })
            .collect();
        blocks.push(json!({ "type": "rich_text", "elements": [
            { "type": "rich_text_list", "style": "bullet", "elements": items },
        ] }));
    }
    let mut closing = vec![json!({ "type": "link", "url": said.url, "text": "Open in Plumbline" })];
    if said.more > 0 {
        closing.insert(0, json!({ "type": "text", "text": format!("and {} more. ", said.more) }));
    }
    blocks.push(json!({ "type": "rich_text", "elements": [{ "type": "rich_text_section", "elements": closing }] }));
    json!({ "text": escaped, "mrkdwn": false, "blocks": blocks })
}
