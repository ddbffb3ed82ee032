//! What the rules about text ask of a document: its strings, the names they have, and whether a word occurs at all.

use crate::document::{Document, Node};

/// Whether something is found anywhere in what a document says, escapes undone: rules ask this once, before they look at
/// every string.
pub(super) fn says(document: &Document, found: impl Fn(&str) -> bool) -> bool {
    found(document.text()) || found(document.unescaped())
}

/// Every string value with its text, in the order written.
pub(super) fn strings(root: Node<'_>) -> impl Iterator<Item = (Node<'_>, &str)> {
    root.walk().filter_map(|node| node.text().map(|text| (node, text)))
}

/// Every member with its key, in the order written.
pub(super) fn keys(root: Node<'_>) -> impl Iterator<Item = (Node<'_>, &str)> {
    root.walk().filter_map(|node| node.key().map(|key| (node, key)))
}

/// The name a value goes by: its key, or the key of the list it stands in; empty for the top value.
pub(super) fn name(node: Node<'_>) -> &str {
    let mut node = node;
    loop {
        match (node.key(), node.parent()) {
            (Some(key), _) => return key,
            (None, Some(parent)) => node = parent,
            (None, None) => return "",
        }
    }
}

/// The names a value stands under, the nearest first: `["properties", "inputSchema", "tools"]`.
pub(super) fn names_above(node: Node<'_>) -> impl Iterator<Item = &str> {
    std::iter::successors(node.parent(), |above| above.parent()).filter_map(Node::key)
}

/// A name in lower case with `_` between its words: `clientSecret`, `client-secret` and `Client Secret` are one.
pub(super) fn snake(name: &str) -> String {
    let mut snake = String::with_capacity(name.len() + 4);
    let mut characters = name.chars().peekable();
    let mut before = '_';
    while let Some(character) = characters.next() {
        let next_is_lower = characters.peek().is_some_and(|next| next.is_lowercase());
        let begins_word = character.is_uppercase()
            && (before.is_lowercase() || before.is_ascii_digit() || (before.is_uppercase() && next_is_lower));
        if begins_word && !snake.ends_with('_') {
            snake.push('_');
        }
        match character {
            '-' | ' ' if snake.ends_with('_') => {}
            '-' | ' ' => snake.push('_'),
            _ => snake.extend(character.to_lowercase()),
        }
        before = character;
    }
    snake
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fall_into_their_words() {
        let rows = [
            ("apiKey", "api_key"),
            ("APIKey", "api_key"),
            ("client-secret", "client_secret"),
            ("Client Secret", "client_secret"),
            ("API_KEY", "api_key"),
            ("x402Token", "x402_token"),
            ("token", "token"),
            ("Überschrift", "überschrift"),
        ];
        for (name, words) in rows {
            assert_eq!(snake(name), words, "{name}");
        }
    }

    #[test]
    fn an_item_goes_by_the_name_of_its_list() {
        let document = Document::from_text(r#"{"skills": [{"tags": [["a"]]}]}"#);
        let item = document.pointer("/skills/0/tags/0/0").expect("it is there");
        assert_eq!(name(item), "tags");
        assert_eq!(names_above(item).collect::<Vec<_>>(), ["tags", "skills"]);
        assert_eq!(document.root().map(name), Some(""));
    }

    #[test]
    fn escapes_hide_no_word() {
        let document = Document::from_text(r#"{"a": "\u0069gnore", "b": "x"}"#);
        assert!(says(&document, |text| text.contains("ignore")));
        assert!(!says(&document, |text| text.contains("reveal")));
    }
}
