//! The canonical form of a JSON value (RFC 8785) and the hashes made of it.

use sha2::{Digest, Sha256};

use crate::document::{Node, Type};

/// A SHA-256 hash.
pub type Hash = [u8; 32];

/// The hash of bytes as they are: two documents with the same content hash are one.
pub fn content_hash(bytes: &[u8]) -> Hash {
    Sha256::digest(bytes).into()
}

/// The hash of the canonical form: equal for documents that differ in spacing, order of members and escapes only.
pub fn semantic_hash(root: Node<'_>) -> Hash {
    content_hash(canonical(root).as_bytes())
}

/// A hash in lower-case hexadecimal.
pub fn hex(hash: &[u8]) -> String {
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The canonical form: members sorted by UTF-16 code units, numbers as ECMAScript writes them, no spaces.
pub fn canonical(root: Node<'_>) -> String {
    let mut out = String::with_capacity(root.raw().len());
    write(root, &mut out);
    out
}

/// Recursion is bounded: a document that has a tree nests at most [`crate::document::MAX_READ_DEPTH`] levels.
fn write(node: Node<'_>, out: &mut String) {
    match node.kind() {
        Type::Null => out.push_str("null"),
        Type::Bool => out.push_str(node.raw()),
        Type::Number => out.push_str(&number(node.raw())),
        Type::String => string(node.text().unwrap_or_default(), out),
        Type::Array => {
            out.push('[');
            for (n, item) in node.items().enumerate() {
                if n > 0 {
                    out.push(',');
                }
                write(item, out);
            }
            out.push(']');
        }
        Type::Object => {
            let mut members: Vec<_> = node.members().collect();
            members.sort_by(|(a, _), (b, _)| order(a, b));
            out.push('{');
            for (n, (key, value)) in members.into_iter().enumerate() {
                if n > 0 {
                    out.push(',');
                }
                string(key, out);
                out.push(':');
                write(value, out);
            }
            out.push('}');
        }
    }
}

/// The order of two names: by UTF-16 code units.
pub(crate) fn order(one: &str, other: &str) -> std::cmp::Ordering {
    one.encode_utf16().cmp(other.encode_utf16())
}

/// Writes a text in quotes.
pub(crate) fn string(text: &str, out: &mut String) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\u{9}' => out.push_str("\\t"),
            '\u{a}' => out.push_str("\\n"),
            '\u{c}' => out.push_str("\\f"),
            '\u{d}' => out.push_str("\\r"),
            control if control < ' ' => out.push_str(&format!("\\u{:04x}", control as u32)),
            other => out.push(other),
        }
    }
    out.push('"');
}

/// A number as ECMAScript's `Number::toString` writes it. One that no finite double holds stays as it was written.
pub(crate) fn number(raw: &str) -> String {
    let Some(value) = raw.parse::<f64>().ok().filter(|v| v.is_finite()) else { return raw.to_owned() };
    if value == 0.0 {
        return "0".to_owned();
    }
    // Rust's `{:e}` gives the shortest digits that read back, as ECMAScript asks.
    let shortest = format!("{:e}", value.abs());
    let (mantissa, exponent) = shortest.split_once('e').unwrap_or((&shortest, "0"));
    let digits = mantissa.replace('.', "");
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let count = digits.len() as i32;
    let point = exponent + 1;
    let body = if (1..=21).contains(&point) {
        if count <= point {
            format!("{digits}{}", "0".repeat((point - count) as usize))
        } else {
            format!("{}.{}", &digits[..point as usize], &digits[point as usize..])
        }
    } else if (-5..=0).contains(&point) {
        format!("0.{}{digits}", "0".repeat((-point) as usize))
    } else {
        let sign = if exponent < 0 { '-' } else { '+' };
        let fraction = if count > 1 { format!(".{}", &digits[1..]) } else { String::new() };
        format!("{}{fraction}e{sign}{}", &digits[..1], exponent.abs())
    };
    if value < 0.0 { format!("-{body}") } else { body }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Document;

    fn canon(text: &str) -> String {
        canonical(Document::from_text(text).root().expect("it parses"))
    }

    #[test]
    fn numbers_are_written_as_ecmascript_writes_them() {
        let rows = [
            ("333333333.33333329", "333333333.3333333"),
            ("1E30", "1e+30"),
            ("4.50", "4.5"),
            ("2e-3", "0.002"),
            ("0.000000000000000000000000001", "1e-27"),
            ("-0", "0"),
            ("100000000000000000000", "100000000000000000000"),
            ("1e21", "1e+21"),
            ("0.000001", "0.000001"),
            ("0.0000001", "1e-7"),
            ("-1.5", "-1.5"),
            ("9007199254740993", "9007199254740992"),
        ];
        for (raw, written) in rows {
            assert_eq!(number(raw), written, "{raw}");
        }
    }

    #[test]
    fn members_are_sorted_by_utf16_and_strings_barely_escaped() {
        assert_eq!(canon("{\"b\":1, \"a\":[ ]}"), "{\"a\":[],\"b\":1}");
        assert_eq!(canon("{\"\\ud83d\\ude00\":1,\"\\ufb33\":2}"), "{\"\u{1f600}\":1,\"\u{fb33}\":2}");
        assert_eq!(canon("[\"\\u000f\\n\\/\\u20ac\"]"), "[\"\\u000f\\n/\u{20ac}\"]");
    }

    #[test]
    fn order_and_spacing_do_not_change_the_semantic_hash() {
        let hash = |text: &str| semantic_hash(Document::from_text(text).root().expect("it parses"));
        assert_eq!(hash("{\"a\":1.0,\"b\":\"\\u0041\"}"), hash("{ \"b\": \"A\", \"a\": 1 }"));
        assert_ne!(hash("[1,2]"), hash("[2,1]"));
    }
}
