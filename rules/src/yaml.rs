//! YAML read as the JSON it stands for, each value with its line and column.
//!
//! OpenAPI descriptions are written in YAML as often as in JSON. The parser is `saphyr-parser`; this module takes its events,
//! by the core schema of YAML 1.2, and writes JSON. What aliases repeat is bounded, and an alias inside what it names is
//! refused.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::HashMap;

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, Tag};

use crate::canonical;
use crate::document::{MAX_READ_DEPTH, MAX_VALUES};

/// JSON written out for one document: aliases may repeat much.
const MOST_BYTES: usize = 4 << 20;

/// The JSON that a YAML document stands for.
#[derive(Debug)]
pub(crate) struct Json {
    /// One JSON text.
    pub(crate) text: String,
    /// For every value, in the order written, where it begins in the JSON and its line and column in the YAML, from 1.
    pub(crate) places: Vec<Place>,
}

/// Where a value stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    /// Bytes before it in the JSON.
    pub(crate) at: u32,
    /// Line in the YAML, from 1.
    pub(crate) line: u32,
    /// Column in characters, from 1.
    pub(crate) column: u32,
}

/// Whether a text that is no JSON has the look of an OpenAPI description in YAML.
pub(crate) fn looks_like_openapi(text: &str) -> bool {
    let is_version = |line: &str| {
        let line = line.trim_start_matches(['"', '\'']);
        let key = line.strip_prefix("openapi").or_else(|| line.strip_prefix("swagger"));
        key.is_some_and(|rest| rest.trim_start_matches(['"', '\'']).trim_start().starts_with(':'))
    };
    !text.trim_start().starts_with(['{', '[', '<']) && text.lines().any(is_version)
}

/// Reads the first document of a YAML stream; `None` when it is no YAML, or means more than is read.
pub(crate) fn to_json(text: &str) -> Option<Json> {
    let mut reader = Reader::default();
    for event in Parser::new_from_str(text) {
        let (event, span) = event.ok()?;
        if let Event::DocumentEnd = event {
            break;
        }
        reader.take(event, span.start)?;
    }
    let root = reader.root?;
    let json = Json { text: String::new(), places: Vec::new() };
    let mut writer = Writer { nodes: &reader.nodes, json, merged: Cell::new(0) };
    writer.write(root, 0)?;
    Some(writer.json)
}

/// A value as parsed; aliases are numbers of values that were there before.
struct Value<'t> {
    line: u32,
    column: u32,
    content: Content<'t>,
}

enum Content<'t> {
    Scalar {
        text: Cow<'t, str>,
        is_text: bool,
    },
    List(Vec<usize>),
    /// Keys and values by turns.
    Map(Vec<usize>),
}

#[derive(Default)]
struct Reader<'t> {
    nodes: Vec<Value<'t>>,
    open: Vec<usize>,
    anchors: HashMap<usize, usize>,
    root: Option<usize>,
}

impl<'t> Reader<'t> {
    fn take(&mut self, event: Event<'t>, at: Marker) -> Option<()> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let is_text = style != ScalarStyle::Plain || is_string(tag.as_deref());
                let number = self.add(Content::Scalar { text, is_text }, anchor, at)?;
                self.place(number);
            }
            Event::SequenceStart(anchor, _) => self.enter(Content::List(Vec::new()), anchor, at)?,
            Event::MappingStart(anchor, _) => self.enter(Content::Map(Vec::new()), anchor, at)?,
            Event::SequenceEnd | Event::MappingEnd => drop(self.open.pop()),
            Event::Alias(anchor) => {
                let number = *self.anchors.get(&anchor)?;
                if self.open.contains(&number) {
                    return None;
                }
                self.place(number);
            }
            _ => {}
        }
        Some(())
    }

    fn add(&mut self, content: Content<'t>, anchor: usize, at: Marker) -> Option<usize> {
        if self.nodes.len() >= MAX_VALUES {
            return None;
        }
        let small = |number: usize| u32::try_from(number).ok();
        self.nodes.push(Value { line: small(at.line())?, column: small(at.col() + 1)?, content });
        let number = self.nodes.len() - 1;
        if anchor > 0 {
            self.anchors.insert(anchor, number);
        }
        Some(number)
    }

    fn enter(&mut self, content: Content<'t>, anchor: usize, at: Marker) -> Option<()> {
        let number = self.add(content, anchor, at)?;
        self.place(number);
        self.open.push(number);
        (self.open.len() <= MAX_READ_DEPTH).then_some(())
    }

    fn place(&mut self, number: usize) {
        match self.open.last().map(|open| &mut self.nodes[*open].content) {
            Some(Content::List(items) | Content::Map(items)) => items.push(number),
            _ => self.root = self.root.or(Some(number)),
        }
    }
}

fn is_string(tag: Option<&Tag>) -> bool {
    tag.is_some_and(|tag| tag.suffix == "str")
}

struct Writer<'n, 't> {
    nodes: &'n [Value<'t>],
    json: Json,
    /// Members looked at for merging: merges of merges double.
    merged: Cell<usize>,
}

impl Writer<'_, '_> {
    /// Recursion is bounded; `None` when there is more than is read.
    fn write(&mut self, number: usize, depth: usize) -> Option<()> {
        if depth > MAX_READ_DEPTH || self.json.text.len() > MOST_BYTES || self.json.places.len() >= MAX_VALUES {
            return None;
        }
        let value = &self.nodes[number];
        let at = u32::try_from(self.json.text.len()).ok()?;
        self.json.places.push(Place { at, line: value.line, column: value.column });
        match &value.content {
            Content::Scalar { text, is_text: true } => canonical::string(text, &mut self.json.text),
            Content::Scalar { text, is_text: false } => plain(text, &mut self.json.text),
            Content::List(items) => {
                self.json.text.push('[');
                for (n, item) in items.iter().enumerate() {
                    if n > 0 {
                        self.json.text.push(',');
                    }
                    self.write(*item, depth + 1)?;
                }
                self.json.text.push(']');
            }
            Content::Map(members) => {
                self.json.text.push('{');
                let mut is_first = true;
                for (key, member) in self.members(members, 0)? {
                    if !is_first {
                        self.json.text.push(',');
                    }
                    is_first = false;
                    canonical::string(&key, &mut self.json.text);
                    self.json.text.push(':');
                    self.write(member, depth + 1)?;
                }
                self.json.text.push('}');
            }
        }
        Some(())
    }

    /// The members of a map, with those that `<<` merges in and the map has not got itself.
    fn members(&self, members: &[usize], depth: usize) -> Option<Vec<(String, usize)>> {
        self.merged.set(self.merged.get() + members.len());
        if depth > MAX_READ_DEPTH || self.merged.get() > MAX_VALUES / 4 {
            return None;
        }
        let (mut own, mut merged) = (Vec::new(), Vec::new());
        for pair in members.chunks_exact(2) {
            let Content::Scalar { text, is_text } = &self.nodes[pair[0]].content else { return None };
            match &self.nodes[pair[1]].content {
                Content::Map(others) if text == "<<" && !is_text => merged.extend(self.members(others, depth + 1)?),
                Content::List(items) if text == "<<" && !is_text => {
                    for item in items {
                        let Content::Map(others) = &self.nodes[*item].content else { return None };
                        merged.extend(self.members(others, depth + 1)?);
                    }
                }
                _ => own.push((text.to_string(), pair[1])),
            }
        }
        if !merged.is_empty() {
            let mut known: std::collections::HashSet<String> = own.iter().map(|(key, _)| key.clone()).collect();
            merged.retain(|(key, _)| known.insert(key.clone()));
            own.extend(merged);
        }
        Some(own)
    }
}

/// A plain scalar by the core schema: null, a boolean, a number, else text.
fn plain(text: &str, out: &mut String) {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => out.push_str("null"),
        "true" | "True" | "TRUE" => out.push_str("true"),
        "false" | "False" | "FALSE" => out.push_str("false"),
        _ => match number(text) {
            Some(number) => out.push_str(&number),
            None => canonical::string(text, out),
        },
    }
}

/// A number in the form of JSON; `None` for text, and for infinities, which JSON has not.
fn number(text: &str) -> Option<String> {
    if let Some(digits) = text.strip_prefix("0x") {
        return u64::from_str_radix(digits, 16).ok().map(|number| number.to_string());
    }
    if let Some(digits) = text.strip_prefix("0o") {
        return u64::from_str_radix(digits, 8).ok().map(|number| number.to_string());
    }
    let (sign, digits) = match text.as_bytes().first()? {
        b'-' => ("-", &text[1..]),
        b'+' => ("", &text[1..]),
        _ => ("", text),
    };
    let (mantissa, exponent) = match digits.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (digits, None),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let are_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let has_exponent = |text: &str| {
        let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
        !digits.is_empty() && are_digits(digits)
    };
    let is_number = !(whole.is_empty() && fraction.is_empty())
        && are_digits(whole)
        && are_digits(fraction)
        && exponent.is_none_or(has_exponent);
    is_number.then(|| {
        let whole = whole.trim_start_matches('0');
        let whole = if whole.is_empty() { "0" } else { whole };
        let fraction = if fraction.is_empty() { String::new() } else { format!(".{fraction}") };
        let exponent = exponent.map_or_else(String::new, |exponent| format!("e{exponent}"));
        format!("{sign}{whole}{fraction}{exponent}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> Option<String> {
        to_json(text).map(|json| json.text)
    }

    #[test]
    fn scalars_are_read_by_the_core_schema() {
        let rows = [
            ("a: 1", r#"{"a":1}"#),
            ("a: 007", r#"{"a":7}"#),
            ("a: 0x1F\nb: 0o17", r#"{"a":31,"b":15}"#),
            ("a: +1.50e3\nb: -.5\nc: 3.", r#"{"a":1.50e3,"b":-0.5,"c":3}"#),
            ("a: 3.1.0\nb: 2026-05-02\nc: 1e\nd: .inf", r#"{"a":"3.1.0","b":"2026-05-02","c":"1e","d":".inf"}"#),
            ("a: yes\nb: True\nc: ~\nd:\ne: ''", r#"{"a":"yes","b":true,"c":null,"d":null,"e":""}"#),
            ("200: x\n\"y\": '1'\nz: !!str 5", r#"{"200":"x","y":"1","z":"5"}"#),
            ("- [a, {b: c}]\n- |\n  two\n  lines\n", r#"[["a",{"b":"c"}],"two\nlines\n"]"#),
        ];
        for (text, expected) in rows {
            assert_eq!(json(text).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn aliases_are_written_out_and_merged() {
        assert_eq!(json("a: &x {b: 1}\nc: *x").as_deref(), Some(r#"{"a":{"b":1},"c":{"b":1}}"#));
        let merged = "base: &x {b: 1, c: 2}\nd:\n  <<: *x\n  c: 3";
        assert_eq!(json(merged).as_deref(), Some(r#"{"base":{"b":1,"c":2},"d":{"c":3,"b":1}}"#));
    }

    #[test]
    fn bombs_circles_and_depth_are_refused() {
        let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for n in 1..12 {
            let below = format!("*a{}", n - 1);
            bomb.push_str(&format!("a{n}: &a{n} [{}]\n", vec![below; 10].join(", ")));
        }
        assert_eq!(json(&bomb), None);
        let mut merges = "m0: &m0 {a: 1}\n".to_owned();
        for n in 1..40 {
            merges.push_str(&format!("m{n}: &m{n}\n  <<: [*m{}, *m{}]\n", n - 1, n - 1));
        }
        assert_eq!(json(&merges), None);
        assert_eq!(json("a: &a [*a]"), None);
        assert_eq!(json(&"[".repeat(100_000)), None);
        assert_eq!(json(&format!("{}x{}", "[".repeat(300), "]".repeat(300))), None);
        assert_eq!(json("? [a, b]\n: c"), None);
        assert_eq!(json("a: [1"), None);
        assert_eq!(json(""), None);
    }

    #[test]
    fn an_openapi_description_is_told_from_other_texts() {
        for text in ["openapi: 3.1.0\n", "# x\n---\n'openapi' : 3.0.0", "info: {}\nswagger: '2.0'"] {
            assert!(looks_like_openapi(text), "{text}");
        }
        for text in ["{\nopenapi: 1", "<p>\nopenapi: 1", "  openapi: 3.1.0", "name: x", ""] {
            assert!(!looks_like_openapi(text), "{text}");
        }
    }
}
