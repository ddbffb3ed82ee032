//! Values as messages repeat them.

/// The most characters that a message repeats of a value.
const MOST: usize = 80;

/// A value in backticks: shortened, and without characters that do not show as themselves.
pub fn quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len().min(MOST) + 5);
    quoted.push('`');
    let mut characters = text.chars();
    quoted.extend(characters.by_ref().take(MOST).map(|c| if is_visible(c) { c } else { '\u{fffd}' }));
    if characters.next().is_some() {
        quoted.push('…');
    }
    quoted.push('`');
    quoted
}

/// No control character, direction mark, or mark of zero width.
fn is_visible(character: char) -> bool {
    let unseen = matches!(
        character,
        '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}'
    );
    !unseen && !character.is_control()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quoted_value_is_short_and_clean() {
        assert_eq!(quote("1.x"), "`1.x`");
        assert_eq!(quote("a\nb\u{202e}c"), "`a\u{fffd}b\u{fffd}c`");
        assert_eq!(quote(&"ä".repeat(MOST)), format!("`{}`", "ä".repeat(MOST)));
        assert_eq!(quote(&"ä".repeat(MOST + 1)), format!("`{}…`", "ä".repeat(MOST)));
    }
}
