//! A document in numbered lines: as it was served where people can read that, else laid out by us, one member a line.
//!
//! Nothing of the document is changed: keys, strings and numbers stand as written, doubled members too. Only white space between
//! them is ours when we lay out, and characters that act unseen are shown by their number.

use std::ops::Range;

use plumbline_rules::document::Document;
use serde::Serialize;

use crate::text;

/// Lines on one page of a document.
pub const LINES: usize = 1_000;
/// Letters shown of one piece; more would make a single line a page.
const PIECE: usize = 2_000;
/// A served line longer than this is not for people, and the document is laid out.
const READABLE: usize = 1_000;
/// An array or object of plain values up to this long stays on one line.
const INLINE: usize = 72;

/// A run of text of one colour.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Piece {
    /// What it is.
    pub class: PieceClass,
    /// As shown.
    pub text: String,
}

/// What a piece of a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PieceClass {
    /// The name of a member.
    Key,
    /// A string.
    Text,
    /// Anything else.
    Other,
}

/// One line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Line {
    /// From 1.
    pub number: usize,
    /// Left to right.
    pub pieces: Vec<Piece>,
    /// Byte position in the text of the first thing on it that is not white space.
    #[serde(skip)]
    start: usize,
}

/// A document as lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    /// All lines.
    pub lines: Vec<Line>,
    /// The line breaks are ours.
    pub is_laid_out: bool,
}

/// Numbers the lines of a document.
#[must_use]
pub fn listed(document: &Document) -> Listing {
    let text = document.text();
    let is_readable = text.trim().contains('\n') && text.lines().all(|line| line.len() <= READABLE);
    if document.root().is_none() {
        return Listing { lines: plain_lines(text), is_laid_out: false };
    }
    let tokens = tokens(text);
    if is_readable || tokens.len() <= 1 {
        Listing { lines: served_lines(text, &tokens), is_laid_out: false }
    } else {
        Listing { lines: laid_out(text, &tokens), is_laid_out: true }
    }
}

/// A body that is no text at all: the byte values, sixteen a line, as far as a page goes.
#[must_use]
pub fn bytes_listed(bytes: &[u8]) -> Listing {
    let lines = bytes.chunks(16).enumerate().map(|(n, row)| {
        let hex: Vec<String> = row.iter().map(|byte| format!("{byte:02x}")).collect();
        let shown: String =
            row.iter().map(|&b| if b.is_ascii_graphic() || b == b' ' { char::from(b) } else { '·' }).collect();
        Line { number: n + 1, pieces: vec![other(&format!("{:<47}  {shown}", hex.join(" ")))], start: n * 16 }
    });
    Listing { lines: lines.collect(), is_laid_out: true }
}

impl Listing {
    /// The line that a JSON Pointer leads to, or the nearest thing above it that exists; `None` where the document has no tree.
    #[must_use]
    pub fn line_of(&self, document: &Document, pointer: &str) -> Option<usize> {
        let mut rest = pointer;
        loop {
            if let Some(node) = document.pointer(rest) {
                return Some(self.line_at(node.span().0));
            }
            rest = &rest[..rest.rfind('/')?];
        }
    }

    fn line_at(&self, position: usize) -> usize {
        self.lines.partition_point(|line| line.start <= position).max(1)
    }
}

/// One token of valid JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Token {
    span: Range<usize>,
    class: PieceClass,
    /// The punctuation it is, or 0.
    mark: u8,
}

/// The tokens of a text that is known to be JSON; white space is left out.
fn tokens(text: &str) -> Vec<Token> {
    let bytes = text.as_bytes();
    let mut found: Vec<Token> = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let start = at;
        match bytes[at] {
            b' ' | b'\t' | b'\n' | b'\r' => {
                at += 1;
                continue;
            }
            b'"' => {
                at += 1;
                while at < bytes.len() && bytes[at] != b'"' {
                    at += if bytes[at] == b'\\' { 2 } else { 1 };
                }
                at = (at + 1).min(bytes.len());
                found.push(Token { span: start..at, class: PieceClass::Text, mark: 0 });
            }
            mark @ (b'{' | b'}' | b'[' | b']' | b',' | b':') => {
                at += 1;
                if mark == b':'
                    && let Some(key) = found.last_mut()
                {
                    key.class = PieceClass::Key;
                }
                found.push(Token { span: start..at, class: PieceClass::Other, mark });
            }
            _ => {
                while at < bytes.len()
                    && !matches!(bytes[at], b' ' | b'\t' | b'\n' | b'\r' | b'{' | b'}' | b'[' | b']' | b',' | b':')
                {
                    at += 1;
                }
                found.push(Token { span: start..at, class: PieceClass::Other, mark: 0 });
            }
        }
    }
    found
}

fn plain_lines(text: &str) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let shown = line.trim_end_matches(['\n', '\r']);
        lines.push(Line { number: lines.len() + 1, pieces: vec![other(shown)], start });
        start += line.len();
    }
    lines
}

/// The lines as they came, with their strings and keys told apart.
fn served_lines(text: &str, tokens: &[Token]) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut start = 0;
    let mut next = 0;
    for line in text.split_inclusive('\n') {
        let end = start + line.trim_end_matches(['\n', '\r']).len();
        let mut pieces = Vec::new();
        let mut at = start;
        let mut first = None;
        while let Some(token) = tokens.get(next).filter(|token| token.span.start < start + line.len()) {
            push(&mut pieces, PieceClass::Other, &text[at..token.span.start]);
            push(&mut pieces, token.class, &text[token.span.clone()]);
            first.get_or_insert(token.span.start);
            at = token.span.end;
            next += 1;
        }
        push(&mut pieces, PieceClass::Other, text.get(at..end).unwrap_or_default());
        lines.push(Line { number: lines.len() + 1, pieces, start: first.unwrap_or(start) });
        start += line.len();
    }
    lines
}

/// One member or item a line, two spaces a level.
fn laid_out(text: &str, tokens: &[Token]) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    let mut depth = 0_usize;
    let mut line = Line { number: 1, pieces: Vec::new(), start: 0 };
    let mut inline_until = 0;
    for (n, token) in tokens.iter().enumerate() {
        let is_inline = n < inline_until;
        if matches!(token.mark, b'}' | b']') && !is_inline {
            depth = depth.saturating_sub(1);
            break_line(&mut lines, &mut line, depth, token.span.start);
        }
        if line.pieces.is_empty() {
            line.start = token.span.start;
        }
        push(&mut line.pieces, token.class, &text[token.span.clone()]);
        match token.mark {
            b'{' | b'[' if !is_inline => match inline_end(text, tokens, n) {
                Some(end) => inline_until = end,
                None => {
                    depth += 1;
                    break_line(&mut lines, &mut line, depth, next_start(tokens, n));
                }
            },
            b',' if is_inline => push(&mut line.pieces, PieceClass::Other, " "),
            b',' => break_line(&mut lines, &mut line, depth, next_start(tokens, n)),
            b':' => push(&mut line.pieces, PieceClass::Other, " "),
            _ => {}
        }
    }
    lines.push(line);
    lines
}

/// The token after the bracket that closes the one at `open`, when all between is plain and short.
fn inline_end(text: &str, tokens: &[Token], open: usize) -> Option<usize> {
    let inner = &tokens[open + 1..];
    let close = inner.iter().position(|token| matches!(token.mark, b'{' | b'}' | b'[' | b']'))?;
    let is_plain = matches!(inner[close].mark, b'}' | b']');
    let length: usize = inner[..close].iter().map(|token| text[token.span.clone()].chars().count() + 1).sum();
    let has_members = tokens[open].mark == b'{' && close > 0;
    (is_plain && length <= INLINE && !has_members).then_some(open + close + 2)
}

fn next_start(tokens: &[Token], n: usize) -> usize {
    tokens.get(n + 1).map_or(usize::MAX, |token| token.span.start)
}

fn break_line(lines: &mut Vec<Line>, line: &mut Line, depth: usize, start: usize) {
    let number = line.number + 1;
    let indent = if depth == 0 { Vec::new() } else { vec![other(&"  ".repeat(depth))] };
    lines.push(std::mem::replace(line, Line { number, pieces: indent, start }));
}

fn push(pieces: &mut Vec<Piece>, class: PieceClass, shown: &str) {
    if shown.is_empty() {
        return;
    }
    let shown = spaced(shown);
    match pieces.last_mut() {
        Some(last) if last.class == class => last.text.push_str(&shown),
        _ => pieces.push(Piece { class, text: shown }),
    }
}

fn other(shown: &str) -> Piece {
    Piece { class: PieceClass::Other, text: spaced(shown) }
}

/// A tab in a served line is indentation, not a character to be shown by its number.
fn spaced(shown: &str) -> String {
    text::visible(&shown.replace('\t', "  "), PIECE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        let listing = listed(&Document::from_text(text));
        listing.lines.iter().map(|line| line.pieces.iter().map(|piece| piece.text.as_str()).collect()).collect()
    }

    #[test]
    fn one_long_line_is_laid_out_and_short_lists_stay_together() {
        let text = r#"{"a":1,"tags":["x","y"],"deep":[{"b":{}}],"a":2}"#;
        assert_eq!(
            lines(text),
            [
                "{",
                r#"  "a": 1,"#,
                r#"  "tags": ["x", "y"],"#,
                r#"  "deep": ["#,
                "    {",
                r#"      "b": {}"#,
                "    }",
                "  ],",
                r#"  "a": 2"#,
                "}"
            ]
        );
    }

    #[test]
    fn readable_lines_stay_as_they_were_served() {
        let text = "{\n\t\"a\" : 1,\r\n\n    \"b\": [ \"x\" ]\n}\n";
        assert_eq!(lines(text), ["{", "  \"a\" : 1,", "", "    \"b\": [ \"x\" ]", "}"]);
    }

    #[test]
    fn what_is_no_json_stands_line_by_line() {
        assert_eq!(lines("<html>\n<body>{"), ["<html>", "<body>{"]);
        assert_eq!(lines(""), Vec::<String>::new());
    }

    #[test]
    fn a_pointer_leads_to_its_line_and_a_missing_member_to_its_object() {
        for text in [r#"{"a":1,"deep":[{"b":{}},{"c":1}]}"#, "{\n\"a\":1,\n\"deep\":[\n{\"b\":{}},\n{\"c\":1}\n]}"] {
            let document = Document::from_text(text);
            let listing = listed(&document);
            let shown = |pointer: &str| {
                let line = listing.line_of(&document, pointer).unwrap();
                let pieces = &listing.lines[line - 1].pieces;
                pieces.iter().map(|piece| piece.text.as_str()).collect::<String>().trim().to_owned()
            };
            assert!(shown("/a").starts_with("\"a\""), "{text}");
            assert!(shown("/deep/0").starts_with('{'), "{text}");
            assert!(shown("/deep/1/c").contains("\"c\""), "{text}");
            assert_eq!(shown("/deep/1/missing/far"), shown("/deep/1"), "{text}");
            assert_eq!(listing.line_of(&document, ""), Some(1));
        }
    }

    #[test]
    fn keys_and_strings_are_told_apart() {
        let listing = listed(&Document::from_text(r#"{"a":"b:","c":[1]}"#));
        let classes: Vec<PieceClass> = listing.lines[1].pieces.iter().map(|piece| piece.class).collect();
        assert_eq!(
            classes,
            [PieceClass::Other, PieceClass::Key, PieceClass::Other, PieceClass::Text, PieceClass::Other]
        );
    }

    #[test]
    fn unseen_characters_in_a_document_are_shown() {
        assert_eq!(lines("{\"a\":\"x\u{202e}y\"}")[1], "  \"a\": \"x⟨U+202E⟩y\"");
    }
}
