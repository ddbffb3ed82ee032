//! Words that stand where a reader is to put something of their own.

/// What a placeholder holds, in lower case.
const SIGNS: &[&str] = &[
    "example",
    "xxxx",
    "0000000",
    "1234567890",
    "abcdefgh",
    "changeme",
    "your",
    "placeholder",
    "<",
    "{",
    "$",
    "...",
    "***",
];

/// Whether a value is there to be replaced (`YOUR_API_KEY`, `{{token}}`, `${TOKEN}`, `<token>`, `sk-xxxx…`), in any
/// letter case.
pub fn is_placeholder(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    SIGNS.iter().any(|sign| lower.contains(sign))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_known_by_what_they_hold() {
        for text in
            ["YOUR_API_KEY", "{{token}}", "${TOKEN}", "<token>", "sk-XXXXXXXX", "AKIAIOSFODNN7EXAMPLE", "abc..."]
        {
            assert!(is_placeholder(text), "{text}");
        }
        for text in ["q8Zt31LmPo", "", "hunter2hunter2"] {
            assert!(!is_placeholder(text), "{text}");
        }
    }
}
