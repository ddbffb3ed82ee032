//! Google Chat: a card in a space's webhook.

use serde_json::{Value, json};

use super::Said;

pub(super) fn body(said: &Said) -> Value {
    let mut widgets: Vec<Value> = said
        .items
        .iter()
        .map(|item| {
            let word = if item.is_over { "resolved" } else { &item.severity };
            json!({ "decoratedText": {
                "topLabel": word, "text": escaped(&item.title), "wrapText": true,
                "onClick": { "openLink": { "url": item.url } },
            } })
        })
        .collect();
    if said.more > 0 {
        widgets.push(json!({ "textParagraph": { "text": format!("and {} more", said.more) } }));
    }
    widgets.push(json!({ "buttonList": { "buttons": [
        { "text": "Open in Plumbline", "onClick": { "openLink": { "url": said.url } } },
    ] } }));
    json!({
        "fallbackText": escaped(&said.first_line()),
        "cardsV2": [{ "cardId": said.key, "card": {
            "header": { "title": escaped(&said.first_line()), "subtitle": said.at },
            "sections": [{ "widgets": widgets }],
        } }],
    })
}

/// Cards read a little HTML.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
