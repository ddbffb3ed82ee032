//! A JSON document as a flat tree whose values know where they stand in the bytes.
//!
//! Reading never fails: what could not be read is the document's [`Trouble`], which rules report. The reader is our own
//! because no JSON crate gives byte positions, duplicate keys and bounded depth together; a test holds it against
//! `serde_json` on generated input.

use std::cell::{Cell, OnceCell};
use std::collections::HashMap;
use std::fmt;

use crate::yaml::{self, Place};

/// Nesting beyond this many levels is not judged (`common/too-deep`), lists of tools apart; the top value is level 1.
pub const MAX_DEPTH: usize = 64;

/// Nesting beyond this many levels gives no tree. Lists of tools may go so far: they hold schemas, whose depth has a rule of
/// its own, and every level of a schema is two of the document.
pub const MAX_READ_DEPTH: usize = 2 * MAX_DEPTH;

/// Values beyond this many are not read: 8 MiB of `[0,0,…` would otherwise cost 40 times its size.
pub const MAX_VALUES: usize = 1_000_000;

/// Why a body gave no tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trouble {
    /// The bytes are not UTF-8; where decoding stopped.
    NotUtf8 {
        /// Bytes before the first wrong one.
        at: usize,
    },
    /// Not one JSON text (RFC 8259).
    Invalid {
        /// Bytes before the place where reading stopped.
        at: usize,
        /// What was expected or found there.
        what: &'static str,
    },
    /// Valid, but nested deeper than [`MAX_READ_DEPTH`].
    TooDeep,
    /// Valid so far, but more than [`MAX_VALUES`] values.
    TooMany,
}

/// The JSON type of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Type {
    /// `null`
    Null,
    /// `true` or `false`
    Bool,
    /// A number, kept as written.
    Number,
    /// A string.
    String,
    /// A list.
    Array,
    /// An object.
    Object,
}

impl Type {
    /// The type with its article, for messages: `a string`, `an object`, `null`.
    pub fn named(self) -> &'static str {
        match self {
            Type::Null => "null",
            Type::Bool => "a boolean",
            Type::Number => "a number",
            Type::String => "a string",
            Type::Array => "an array",
            Type::Object => "an object",
        }
    }
}

/// A run of text, in the source or, where it had escapes, in the buffer of unescaped text.
#[derive(Debug, Clone, Copy, Default)]
struct Run {
    start: u32,
    len: u32,
    unescaped: bool,
}

#[derive(Debug, Clone)]
struct Entry {
    kind: Type,
    /// A later member of the same object has the same key.
    shadowed: bool,
    /// A rule with `stops: Value` spoke about this value or one above it.
    hidden: Cell<bool>,
    /// The member's name; unused for items and the top value.
    key: Run,
    /// The position within an array; `u32::MAX` for members and the top value.
    index: u32,
    /// The content of a string.
    text: Run,
    parent: u32,
    /// The entry after the last descendant.
    end: u32,
    /// Bytes of the value in the source.
    from: u32,
    to: u32,
}

const NO_INDEX: u32 = u32::MAX;

/// A body and the tree read from it.
#[derive(Debug, Clone)]
pub struct Document {
    text: String,
    unescaped: String,
    entries: Vec<Entry>,
    duplicates: Vec<u32>,
    trouble: Option<Trouble>,
    byte_order_mark: bool,
    length: usize,
    more_behind: bool,
    depth: usize,
    met_hidden: Cell<bool>,
    lines: OnceCell<Lines>,
    /// The YAML that the text was made from.
    yaml: Option<Yaml>,
}

/// A document as it was written, and where its values stand there.
#[derive(Debug, Clone)]
struct Yaml {
    text: String,
    places: Vec<Place>,
}

/// Where lines begin, and how many characters stand before every so many bytes: a document with thousands of findings is
/// counted through once, not once for each.
#[derive(Debug, Clone)]
struct Lines {
    starts: Vec<usize>,
    characters: Vec<usize>,
}

impl Lines {
    const BLOCK: usize = 256;

    fn of(text: &str) -> Lines {
        let newlines = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
        let counts = text.as_bytes().chunks(Self::BLOCK).scan(0, |sum, block| {
            let before = *sum;
            *sum += characters(block);
            Some(before)
        });
        Lines { starts: std::iter::once(0).chain(newlines).collect(), characters: counts.collect() }
    }

    fn line_column(&self, text: &str, at: usize) -> (usize, usize) {
        let line = self.starts.partition_point(|start| *start <= at);
        let start = self.starts[line - 1];
        (line, self.characters_before(text, at) - self.characters_before(text, start) + 1)
    }

    fn characters_before(&self, text: &str, at: usize) -> usize {
        let block = at / Self::BLOCK;
        let whole = self.characters.get(block).copied();
        let from = if whole.is_some() { block } else { block.saturating_sub(1) } * Self::BLOCK;
        self.characters.get(from / Self::BLOCK).copied().unwrap_or(0) + characters(&text.as_bytes()[from..at])
    }
}

/// The bytes that begin a character, so that a position inside one does no harm.
fn characters(bytes: &[u8]) -> usize {
    bytes.iter().filter(|&&byte| byte & 0xC0 != 0x80).count()
}

impl Document {
    /// Reads a body as bytes.
    pub fn read(bytes: &[u8]) -> Document {
        let length = bytes.len();
        let mut document = match std::str::from_utf8(bytes) {
            Ok(text) => Document::from_text(text),
            Err(error) => Document::not_utf8(bytes, error.valid_up_to()),
        };
        document.length = length;
        document
    }

    /// Reads a body that is text already: JSON, or an OpenAPI description in YAML.
    pub fn from_text(text: &str) -> Document {
        let document = Document::from_json(text);
        let may_be_yaml = matches!(document.trouble, Some(Trouble::Invalid { .. }));
        if may_be_yaml && yaml::looks_like_openapi(&document.text) {
            return Document::from_yaml(&document.text).unwrap_or(document);
        }
        document
    }

    /// `None` when it is no YAML, or means more than is read.
    fn from_yaml(text: &str) -> Option<Document> {
        let json = yaml::to_json(text)?;
        let mut document = Document::from_json(&json.text);
        document.length = text.len();
        document.yaml = Some(Yaml { text: text.to_owned(), places: json.places });
        document.root().is_some().then_some(document)
    }

    fn from_json(text: &str) -> Document {
        let stripped = text.strip_prefix('\u{feff}');
        let mut document = Document::empty(Trouble::TooMany);
        document.byte_order_mark = stripped.is_some();
        document.text = stripped.unwrap_or(text).to_owned();
        document.length = text.len();
        let mut reader = Reader::new(&document.text);
        document.trouble = reader.document().err();
        if document.trouble.is_none() {
            document.depth = reader.deepest;
            document.entries = reader.entries;
            document.unescaped = reader.unescaped;
            document.duplicates = reader.duplicates;
        }
        document
    }

    fn not_utf8(bytes: &[u8], at: usize) -> Document {
        let readable = String::from_utf8_lossy(&bytes[..at]).into_owned();
        Document { text: readable, ..Document::empty(Trouble::NotUtf8 { at }) }
    }

    fn empty(trouble: Trouble) -> Document {
        Document {
            text: String::new(),
            unescaped: String::new(),
            entries: Vec::new(),
            duplicates: Vec::new(),
            trouble: Some(trouble),
            byte_order_mark: false,
            length: 0,
            depth: 0,
            more_behind: false,
            met_hidden: Cell::new(false),
            lines: OnceCell::new(),
            yaml: None,
        }
    }

    /// Why there is no tree, when there is none.
    pub fn trouble(&self) -> Option<&Trouble> {
        self.trouble.as_ref()
    }

    /// Whether the body began with a UTF-8 byte order mark (dropped before reading).
    pub fn has_byte_order_mark(&self) -> bool {
        self.byte_order_mark
    }

    /// The length of the body in bytes, as received.
    pub fn length(&self) -> usize {
        self.length
    }

    /// The same document, known to be only the beginning of a body that was longer than is read.
    pub fn with_more_behind(mut self) -> Document {
        self.more_behind = true;
        self
    }

    /// Whether the body went on where reading stopped at the limit for its size.
    pub fn has_more_behind(&self) -> bool {
        self.more_behind
    }

    /// How many levels of arrays and objects its tree has.
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// What strings and keys with escapes say, one behind another: together with [`Document::text`] everything that a
    /// reader of the document can see, for rules that look whether a word occurs at all.
    pub(crate) fn unescaped(&self) -> &str {
        &self.unescaped
    }

    /// The text that was read, without a byte order mark; of a body that is not UTF-8 what stands before the first wrong
    /// byte.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The text as it was written, which [`Document::line_column`] speaks of.
    pub fn source(&self) -> &str {
        self.yaml.as_ref().map_or(&self.text, |yaml| &yaml.text)
    }

    /// Whether it is written in YAML; its text is the JSON that it stands for.
    pub fn is_yaml(&self) -> bool {
        self.yaml.is_some()
    }

    /// The top value, when there is a tree.
    pub fn root(&self) -> Option<Node<'_>> {
        (!self.entries.is_empty()).then_some(Node { document: self, at: 0 })
    }

    /// Members whose key stands twice in their object: the last of each, the one that counts.
    pub fn duplicate_members(&self) -> impl Iterator<Item = Node<'_>> {
        self.duplicates.iter().map(|&at| Node { document: self, at })
    }

    /// The value at a JSON Pointer (RFC 6901), looked up without regard to what rules hide.
    pub fn pointer(&self, pointer: &str) -> Option<Node<'_>> {
        let mut node = self.root()?;
        if pointer.is_empty() {
            return Some(node);
        }
        for segment in pointer.strip_prefix('/')?.split('/') {
            let segment = segment.replace("~1", "/").replace("~0", "~");
            node = match node.kind() {
                Type::Object => node.member(&segment)?,
                Type::Array => node.children().nth(segment.parse().ok()?)?,
                _ => return None,
            };
        }
        Some(node)
    }

    /// Line and column of a byte position, both from 1; columns count characters. In YAML those of the value that begins
    /// there, or last before.
    pub fn line_column(&self, at: usize) -> (usize, usize) {
        if let Some(yaml) = &self.yaml {
            let after = yaml.places.partition_point(|place| place.at as usize <= at);
            let place = after.checked_sub(1).and_then(|before| yaml.places.get(before));
            return place.map_or((1, 1), |place| (place.line as usize, place.column as usize));
        }
        self.lines.get_or_init(|| Lines::of(&self.text)).line_column(&self.text, at.min(self.text.len()))
    }

    /// Puts a value and all below it out of sight of later rules.
    pub(crate) fn hide(&self, entry: u32) {
        let Some(end) = self.entries.get(entry as usize).map(|e| e.end) else { return };
        for entry in &self.entries[entry as usize..end as usize] {
            entry.hidden.set(true);
        }
    }

    /// Puts everything back into sight, so that the document can be judged once more.
    pub(crate) fn reveal_all(&self) {
        for entry in &self.entries {
            entry.hidden.set(false);
        }
        self.met_hidden.set(false);
    }

    /// Whether somebody looked at a hidden value since the last call.
    pub(crate) fn take_met_hidden(&self) -> bool {
        self.met_hidden.replace(false)
    }

    fn run(&self, run: Run) -> &str {
        let from = if run.unescaped { &self.unescaped } else { &self.text };
        &from[run.start as usize..(run.start + run.len) as usize]
    }
}

/// One value in a document: a handle that is copied freely and knows its pointer.
#[derive(Clone, Copy)]
pub struct Node<'d> {
    document: &'d Document,
    at: u32,
}

impl fmt::Debug for Node<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} = {}", self.pointer(), self.raw())
    }
}

impl PartialEq for Node<'_> {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.document, other.document) && self.at == other.at
    }
}

impl<'d> Node<'d> {
    fn entry(self) -> &'d Entry {
        &self.document.entries[self.at as usize]
    }

    /// Its number in the document, in the order written: a value comes before those below it, and these before its next
    /// sibling.
    pub(crate) fn ordinal(self) -> u32 {
        self.at
    }

    /// The ordinal behind the last one below it.
    pub(crate) fn end(self) -> u32 {
        self.entry().end
    }

    /// The value with that ordinal in the same document.
    pub(crate) fn in_document(self, ordinal: u32) -> Node<'d> {
        Node { document: self.document, at: ordinal }
    }

    /// The document it belongs to.
    pub fn document(self) -> &'d Document {
        self.document
    }

    /// Its JSON type, visible even when its content is hidden.
    pub fn kind(self) -> Type {
        self.entry().kind
    }

    /// Whether it is `null`.
    pub fn is_null(self) -> bool {
        self.kind() == Type::Null
    }

    /// Whether an earlier rule spoke about it, so that its content is out of sight.
    pub fn is_hidden(self) -> bool {
        self.entry().hidden.get()
    }

    /// Its place in the flat tree, for [`Document::hide`].
    pub(crate) fn entry_number(self) -> u32 {
        self.at
    }

    /// Whether its content may be looked at; notes the attempt when not.
    pub(crate) fn in_sight(self) -> bool {
        let hidden = self.is_hidden();
        if hidden {
            self.document.met_hidden.set(true);
        }
        !hidden
    }

    fn seen_as(self, kind: Type) -> bool {
        self.kind() == kind && self.in_sight()
    }

    /// The text of a string.
    pub fn text(self) -> Option<&'d str> {
        self.seen_as(Type::String).then(|| self.document.run(self.entry().text))
    }

    /// The value of a boolean.
    pub fn flag(self) -> Option<bool> {
        self.seen_as(Type::Bool).then(|| self.raw() == "true")
    }

    /// The value of a number, as near as a double comes.
    pub fn number(self) -> Option<f64> {
        if self.seen_as(Type::Number) { self.raw().parse().ok() } else { None }
    }

    /// The value of a number that is a whole one.
    pub fn integer(self) -> Option<i64> {
        if self.seen_as(Type::Number) { self.raw().parse().ok() } else { None }
    }

    /// The member of that name; of several the last. A hidden member is found, its content is not.
    pub fn get(self, key: &str) -> Option<Node<'d>> {
        if self.seen_as(Type::Object) { self.member(key) } else { None }
    }

    /// The member of that name unless it is `null`.
    pub fn given(self, key: &str) -> Option<Node<'d>> {
        self.get(key).filter(|node| !node.is_null())
    }

    fn member(self, key: &str) -> Option<Node<'d>> {
        self.children().find(|child| !child.entry().shadowed && child.key() == Some(key))
    }

    /// The members of an object, in the order written, shadowed ones left out.
    pub fn members(self) -> impl Iterator<Item = (&'d str, Node<'d>)> {
        let seen = self.seen_as(Type::Object);
        self.children()
            .take_while(move |_| seen)
            .filter(|child| !child.entry().shadowed)
            .map(|child| (child.key().unwrap_or_default(), child))
    }

    /// The items of an array.
    pub fn items(self) -> impl Iterator<Item = Node<'d>> {
        let seen = self.seen_as(Type::Array);
        self.children().take_while(move |_| seen)
    }

    /// How many members or items it has; `None` for other types.
    pub fn len(self) -> Option<usize> {
        match self.kind() {
            Type::Object => self.in_sight().then(|| self.members().count()),
            Type::Array => self.in_sight().then(|| self.children().count()),
            _ => None,
        }
    }

    /// Whether it is an array or object without content.
    pub fn is_empty(self) -> bool {
        self.len() == Some(0)
    }

    fn children(self) -> Children<'d> {
        let entry = self.entry();
        Children { document: self.document, next: self.at + 1, end: entry.end }
    }

    /// It and everything below that is in sight, in the order written.
    pub fn walk(self) -> Walk<'d> {
        Walk { document: self.document, next: self.at, end: self.entry().end }
    }

    /// The name it has in its object.
    pub fn key(self) -> Option<&'d str> {
        let entry = self.entry();
        (self.at != 0 && entry.index == NO_INDEX).then(|| self.document.run(entry.key))
    }

    /// The place it has in its array, from 0.
    pub fn index(self) -> Option<usize> {
        let index = self.entry().index;
        (index != NO_INDEX).then_some(index as usize)
    }

    /// The array or object it stands in.
    pub fn parent(self) -> Option<Node<'d>> {
        (self.at != 0).then(|| Node { document: self.document, at: self.entry().parent })
    }

    /// Its members or items, whatever rules hide: for looking up what references point at.
    pub(crate) fn below(self) -> impl Iterator<Item = Node<'d>> {
        self.children().filter(|child| !child.entry().shadowed)
    }

    /// It and everything below as a value without places, hidden content included; of members with one key the last. A
    /// number beyond a double becomes the largest one.
    pub fn to_value(self) -> serde_json::Value {
        use serde_json::Value;
        match self.kind() {
            Type::Null => Value::Null,
            Type::Bool => Value::Bool(self.raw() == "true"),
            Type::Number => {
                let widest = if self.raw().starts_with('-') { f64::MIN } else { f64::MAX };
                self.raw().parse().map_or_else(|_| widest.into(), Value::Number)
            }
            Type::String => self.document.run(self.entry().text).into(),
            Type::Array => self.children().map(Node::to_value).collect(),
            Type::Object => Value::Object(
                self.children()
                    .filter(|child| !child.entry().shadowed)
                    .map(|child| (child.key().unwrap_or_default().to_owned(), child.to_value()))
                    .collect(),
            ),
        }
    }

    /// Its source text, exactly as written.
    pub fn raw(self) -> &'d str {
        let entry = self.entry();
        &self.document.text[entry.from as usize..entry.to as usize]
    }

    /// Where its source text begins and ends, in bytes of [`Document::text`].
    pub fn span(self) -> (usize, usize) {
        let entry = self.entry();
        (entry.from as usize, entry.to as usize)
    }

    /// Its JSON Pointer (RFC 6901).
    pub fn pointer(self) -> String {
        let mut path = Vec::new();
        let mut node = self;
        while let Some(parent) = node.parent() {
            path.push(node);
            node = parent;
        }
        let mut pointer = String::new();
        for node in path.into_iter().rev() {
            pointer.push('/');
            match node.index() {
                Some(index) => pointer.push_str(&index.to_string()),
                None => pointer.push_str(&escape(node.key().unwrap_or_default())),
            }
        }
        pointer
    }

    /// Every value the pattern reaches below this one: segments are names or positions, `*` is any one, `**` any number.
    /// Hidden values are passed over, and noted as met.
    pub fn select(self, pattern: &str) -> Vec<Node<'d>> {
        let mut found = Vec::new();
        self.select_into(pattern.strip_prefix('/').unwrap_or(pattern), &mut found);
        found
    }

    fn select_into(self, pattern: &str, found: &mut Vec<Node<'d>>) {
        if pattern.is_empty() {
            found.push(self);
            return;
        }
        let (segment, rest) = pattern.split_once('/').unwrap_or((pattern, ""));
        match segment {
            "**" if rest.is_empty() => found.extend(self.walk()),
            "**" => self.walk().for_each(|node| node.select_into(rest, found)),
            "*" => {
                if self.in_sight() {
                    self.children().filter(|c| !c.entry().shadowed).for_each(|child| child.select_into(rest, found));
                }
            }
            name => {
                if let Some(child) = self.get(name) {
                    child.select_into(rest, found);
                }
            }
        }
    }
}

/// Escapes a name for use as one segment of a JSON Pointer.
pub fn escape(segment: &str) -> String {
    if segment.contains(['~', '/']) { segment.replace('~', "~0").replace('/', "~1") } else { segment.to_owned() }
}

struct Children<'d> {
    document: &'d Document,
    next: u32,
    end: u32,
}

impl<'d> Iterator for Children<'d> {
    type Item = Node<'d>;

    fn next(&mut self) -> Option<Node<'d>> {
        if self.next >= self.end {
            return None;
        }
        let node = Node { document: self.document, at: self.next };
        self.next = node.entry().end;
        Some(node)
    }
}

/// What [`Node::walk`] gives.
pub struct Walk<'d> {
    document: &'d Document,
    next: u32,
    end: u32,
}

impl<'d> Iterator for Walk<'d> {
    type Item = Node<'d>;

    fn next(&mut self) -> Option<Node<'d>> {
        while self.next < self.end {
            let node = Node { document: self.document, at: self.next };
            if node.entry().shadowed || !node.in_sight() {
                self.next = node.entry().end;
                continue;
            }
            self.next += 1;
            return Some(node);
        }
        None
    }
}

struct Reader<'t> {
    text: &'t str,
    bytes: &'t [u8],
    at: usize,
    entries: Vec<Entry>,
    unescaped: String,
    duplicates: Vec<u32>,
    open: Vec<u32>,
    deepest: usize,
}

impl<'t> Reader<'t> {
    fn new(text: &'t str) -> Reader<'t> {
        Reader {
            text,
            bytes: text.as_bytes(),
            at: 0,
            entries: Vec::with_capacity(text.len() / 24 + 8),
            unescaped: String::new(),
            duplicates: Vec::new(),
            open: Vec::new(),
            deepest: 0,
        }
    }

    /// Reads the whole text without recursion: `open` is the stack, so depth costs heap and never the call stack.
    fn document(&mut self) -> Result<(), Trouble> {
        if self.bytes.len() > u32::MAX as usize {
            return Err(Trouble::TooMany);
        }
        let mut key = Run::default();
        let mut index = NO_INDEX;
        loop {
            let opened = self.value(key, index)?;
            let Some(next) = (if opened { self.first()? } else { self.after_value()? }) else { break };
            (key, index) = next;
        }
        self.space();
        if self.at < self.bytes.len() {
            return Err(self.wrong("text after the value"));
        }
        if self.deepest > MAX_READ_DEPTH { Err(Trouble::TooDeep) } else { Ok(()) }
    }

    /// Reads a scalar whole, or the opening of a container; says whether it opened one.
    fn value(&mut self, key: Run, index: u32) -> Result<bool, Trouble> {
        self.space();
        if self.entries.len() >= MAX_VALUES {
            return Err(Trouble::TooMany);
        }
        let from = self.at;
        let mut text = Run::default();
        let kind = match self.bytes.get(self.at) {
            Some(b'{') => Type::Object,
            Some(b'[') => Type::Array,
            Some(b'"') => {
                text = self.string()?;
                Type::String
            }
            Some(b't') => self.word("true", Type::Bool)?,
            Some(b'f') => self.word("false", Type::Bool)?,
            Some(b'n') => self.word("null", Type::Null)?,
            Some(b'-' | b'0'..=b'9') => self.number()?,
            Some(_) => return Err(self.wrong("a value was expected")),
            None => return Err(self.wrong("the text ends where a value was expected")),
        };
        let opens = matches!(kind, Type::Object | Type::Array);
        if opens {
            self.at += 1;
        }
        let at = self.entries.len() as u32;
        self.entries.push(Entry {
            kind,
            shadowed: false,
            hidden: Cell::new(false),
            key,
            index,
            text,
            parent: self.open.last().copied().unwrap_or(0),
            end: at + 1,
            from: from as u32,
            to: self.at as u32,
        });
        if opens {
            self.open.push(at);
            self.deepest = self.deepest.max(self.open.len());
        }
        Ok(opens)
    }

    /// After an opening bracket: the first member or item, or the end.
    fn first(&mut self) -> Result<Option<(Run, u32)>, Trouble> {
        self.space();
        let closing = if self.in_object() { b'}' } else { b']' };
        if self.bytes.get(self.at) == Some(&closing) {
            self.at += 1;
            self.close();
            return self.after_value();
        }
        self.next_place(0).map(Some)
    }

    /// After a whole value: the place of the next one, or `None` at the end of the text.
    fn after_value(&mut self) -> Result<Option<(Run, u32)>, Trouble> {
        loop {
            if self.open.is_empty() {
                return Ok(None);
            }
            self.space();
            let object = self.in_object();
            match self.bytes.get(self.at) {
                Some(b',') => {
                    self.at += 1;
                    let position = self.position_after_newest();
                    return self.next_place(position).map(Some);
                }
                Some(b'}') if object => self.at += 1,
                Some(b']') if !object => self.at += 1,
                Some(_) => {
                    return Err(self.wrong(if object { "`,` or `}` was expected" } else { "`,` or `]` was expected" }));
                }
                None => return Err(self.wrong("the text ends inside an array or object")),
            }
            self.close();
        }
    }

    fn in_object(&self) -> bool {
        self.open.last().is_some_and(|&at| self.entries[at as usize].kind == Type::Object)
    }

    /// The place of the item after the newest one. While a container is open its `to` holds its newest child.
    fn position_after_newest(&self) -> u32 {
        let open = *self.open.last().unwrap_or(&0);
        let newest = self.entries[open as usize].to;
        self.entries[newest as usize].index.wrapping_add(1)
    }

    fn next_place(&mut self, index: u32) -> Result<(Run, u32), Trouble> {
        let place = if self.in_object() {
            self.space();
            if self.bytes.get(self.at) != Some(&b'"') {
                return Err(self.wrong("a member name in double quotes was expected"));
            }
            let key = self.string()?;
            self.space();
            if self.bytes.get(self.at) != Some(&b':') {
                return Err(self.wrong("`:` was expected"));
            }
            self.at += 1;
            (key, NO_INDEX)
        } else {
            (Run::default(), index)
        };
        let child = self.entries.len() as u32;
        if let Some(&open) = self.open.last() {
            self.entries[open as usize].to = child;
        }
        Ok(place)
    }

    fn close(&mut self) {
        let Some(at) = self.open.pop() else { return };
        let end = self.entries.len() as u32;
        let entry = &mut self.entries[at as usize];
        entry.end = end;
        entry.to = self.at as u32;
        if entry.kind == Type::Object {
            self.note_duplicates(at);
        }
    }

    fn note_duplicates(&mut self, object: u32) {
        let mut members = Vec::new();
        let mut at = object + 1;
        while at < self.entries[object as usize].end {
            members.push(at);
            at = self.entries[at as usize].end;
        }
        let few = members.len() <= 16;
        let mut latest = HashMap::new();
        let mut shadowed = Vec::new();
        for (n, &member) in members.iter().enumerate().rev() {
            let key = self.key_of(member);
            let last = if few {
                members[n + 1..].iter().rev().find(|&&later| self.key_of(later) == key).copied()
            } else {
                let last = *latest.entry(key).or_insert(member);
                (last != member).then_some(last)
            };
            shadowed.extend(last.map(|last| (last, member)));
        }
        shadowed.sort_unstable();
        for (last, member) in shadowed {
            self.entries[member as usize].shadowed = true;
            if self.duplicates.last() != Some(&last) {
                self.duplicates.push(last);
            }
        }
    }

    fn key_of(&self, at: u32) -> &str {
        let run = self.entries[at as usize].key;
        let from = if run.unescaped { self.unescaped.as_str() } else { self.text };
        &from[run.start as usize..(run.start + run.len) as usize]
    }

    fn space(&mut self) {
        while matches!(self.bytes.get(self.at), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn wrong(&self, what: &'static str) -> Trouble {
        Trouble::Invalid { at: self.at, what }
    }

    fn word(&mut self, word: &'static str, kind: Type) -> Result<Type, Trouble> {
        if !self.bytes[self.at..].starts_with(word.as_bytes()) {
            return Err(self.wrong("a value was expected"));
        }
        self.at += word.len();
        Ok(kind)
    }

    fn number(&mut self) -> Result<Type, Trouble> {
        if self.bytes[self.at] == b'-' {
            self.at += 1;
        }
        match self.bytes.get(self.at) {
            Some(b'0') => self.at += 1,
            Some(b'1'..=b'9') => self.digits(),
            _ => return Err(self.wrong("a digit was expected")),
        }
        if self.bytes.get(self.at) == Some(&b'.') {
            self.at += 1;
            self.some_digits()?;
        }
        if matches!(self.bytes.get(self.at), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.bytes.get(self.at), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.some_digits()?;
        }
        Ok(Type::Number)
    }

    fn digits(&mut self) {
        while matches!(self.bytes.get(self.at), Some(b'0'..=b'9')) {
            self.at += 1;
        }
    }

    fn some_digits(&mut self) -> Result<(), Trouble> {
        if !matches!(self.bytes.get(self.at), Some(b'0'..=b'9')) {
            return Err(self.wrong("a digit was expected"));
        }
        self.digits();
        Ok(())
    }

    /// Reads a string from its opening quote; text without escapes stays where it is.
    fn string(&mut self) -> Result<Run, Trouble> {
        self.at += 1;
        let start = self.at;
        loop {
            match self.bytes.get(self.at) {
                Some(b'"') => {
                    let run = Run { start: start as u32, len: (self.at - start) as u32, unescaped: false };
                    self.at += 1;
                    return Ok(run);
                }
                Some(b'\\') => return self.escaped_string(start),
                Some(0..=0x1f) => return Err(self.wrong("a control character inside a string")),
                Some(_) => self.at += 1,
                None => return Err(self.wrong("the text ends inside a string")),
            }
        }
    }

    fn escaped_string(&mut self, start: usize) -> Result<Run, Trouble> {
        let from = self.unescaped.len();
        self.unescaped.push_str(&self.text[start..self.at]);
        loop {
            let plain = self.at;
            while !matches!(self.bytes.get(self.at), Some(b'"' | b'\\' | 0..=0x1f) | None) {
                self.at += 1;
            }
            self.unescaped.push_str(&self.text[plain..self.at]);
            match self.bytes.get(self.at) {
                Some(b'"') => {
                    self.at += 1;
                    let len = self.unescaped.len() - from;
                    return Ok(Run { start: from as u32, len: len as u32, unescaped: true });
                }
                Some(b'\\') => {
                    self.at += 1;
                    let character = self.escape()?;
                    self.unescaped.push(character);
                }
                Some(_) => return Err(self.wrong("a control character inside a string")),
                None => return Err(self.wrong("the text ends inside a string")),
            }
        }
    }

    fn escape(&mut self) -> Result<char, Trouble> {
        let Some(&letter) = self.bytes.get(self.at) else { return Err(self.wrong("the text ends inside a string")) };
        self.at += 1;
        Ok(match letter {
            b'"' => '"',
            b'\\' => '\\',
            b'/' => '/',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => return self.unicode_escape(),
            _ => {
                self.at -= 1;
                return Err(self.wrong("an escape that JSON does not know"));
            }
        })
    }

    fn unicode_escape(&mut self) -> Result<char, Trouble> {
        let first = self.four_hex()?;
        let code = match first {
            0xD800..=0xDBFF => {
                if !self.bytes[self.at..].starts_with(b"\\u") {
                    return Err(self.wrong("half of a surrogate pair"));
                }
                self.at += 2;
                let second = self.four_hex()?;
                if !(0xDC00..=0xDFFF).contains(&second) {
                    return Err(self.wrong("half of a surrogate pair"));
                }
                0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00)
            }
            other => other,
        };
        char::from_u32(code).ok_or_else(|| self.wrong("half of a surrogate pair"))
    }

    fn four_hex(&mut self) -> Result<u32, Trouble> {
        let digits = self.bytes.get(self.at..self.at + 4).filter(|d| d.iter().all(u8::is_ascii_hexdigit));
        let Some(digits) = digits else { return Err(self.wrong("four hexadecimal digits were expected")) };
        self.at += 4;
        Ok(digits.iter().fold(0, |code, &d| code * 16 + (d as char).to_digit(16).unwrap_or(0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> Document {
        Document::from_text(text)
    }

    #[test]
    fn a_value_knows_its_pointer_and_its_line() {
        let document = read("{\n  \"a/b\": [1, {\"c~\": \"x\"}]\n}");
        let node = document.pointer("/a~1b/1/c~0").expect("it is there");
        assert_eq!(node.text(), Some("x"));
        assert_eq!(node.pointer(), "/a~1b/1/c~0");
        assert_eq!(document.line_column(node.span().0), (2, 21));
    }

    #[test]
    fn a_value_without_places_is_what_serde_json_reads() {
        let text = r#"{"a": [1, -2.5, "\u0041", null, true, {}], "b": 1, "b": 18446744073709551615}"#;
        let document = read(text);
        let value = document.root().expect("it parses").to_value();
        assert_eq!(Some(value), serde_json::from_str(text).ok());
        let vast = read("[1e999, -1e999]");
        assert_eq!(vast.root().map(Node::to_value), Some(serde_json::json!([f64::MAX, f64::MIN])));
    }

    #[test]
    fn items_are_counted_behind_nested_containers() {
        let document = read("[[1,2],{\"x\":[3]},[],4]");
        let root = document.root().expect("it parses");
        let pointers: Vec<_> = root.walk().map(Node::pointer).collect();
        assert_eq!(pointers, ["", "/0", "/0/0", "/0/1", "/1", "/1/x", "/1/x/0", "/2", "/3"]);
    }

    #[test]
    fn of_a_key_that_stands_twice_the_last_counts() {
        let document = read(r#"{"a": 1, "b": 2, "\u0061": 3}"#);
        let root = document.root().expect("it parses");
        assert_eq!(root.get("a").and_then(Node::integer), Some(3));
        assert_eq!(root.members().map(|(key, _)| key).collect::<Vec<_>>(), ["b", "a"]);
        assert_eq!(document.duplicate_members().map(Node::pointer).collect::<Vec<_>>(), ["/a"]);
    }

    #[test]
    fn many_members_are_held_against_each_other_too() {
        let members: Vec<_> = (0..40).map(|n| format!("\"k{}\": {n}", n % 39)).collect();
        let document = read(&format!("{{{}}}", members.join(",")));
        assert_eq!(document.duplicate_members().map(Node::pointer).collect::<Vec<_>>(), ["/k0"]);
        assert_eq!(document.root().and_then(|r| r.get("k0")).and_then(Node::integer), Some(39));
    }

    #[test]
    fn an_object_of_nothing_but_duplicates_is_read_in_time() {
        let members: Vec<_> = (0..200_000).map(|n| format!("\"{:x}\":0", n % 100_000)).collect();
        let document = read(&format!("{{{}}}", members.join(",")));
        assert_eq!(document.duplicate_members().count(), 100_000);
    }

    #[test]
    fn a_hidden_value_is_there_but_its_content_is_not() {
        let document = read(r#"{"a": {"b": "x"}, "c": "y"}"#);
        let root = document.root().expect("it parses");
        document.hide(root.get("a").expect("it is there").entry_number());
        assert!(!document.take_met_hidden());
        assert!(root.get("a").is_some());
        assert!(!document.take_met_hidden(), "presence is no look inside");
        assert!(root.get("a").and_then(|a| a.get("b")).is_none());
        assert!(document.take_met_hidden());
        assert_eq!(root.select("/**").len(), 2);
        assert!(document.take_met_hidden());
        document.reveal_all();
        assert_eq!(root.select("/**").len(), 4);
    }

    #[test]
    fn patterns_reach_names_items_and_any_depth() {
        let document = read(r#"{"skills": [{"id": "a"}, {"id": "b"}], "x": {"id": "c"}}"#);
        let root = document.root().expect("it parses");
        let at = |pattern: &str| root.select(pattern).into_iter().map(Node::pointer).collect::<Vec<_>>();
        assert_eq!(at("/skills/*/id"), ["/skills/0/id", "/skills/1/id"]);
        assert_eq!(at("/**/id"), ["/skills/0/id", "/skills/1/id", "/x/id"]);
        assert_eq!(at(""), [""]);
    }

    #[test]
    fn what_is_not_json_says_where_it_stops() {
        let rows = [
            ("", 0),
            ("{\"a\":1,}", 7),
            ("{\"n\":NaN}", 5),
            ("{'a':1}", 1),
            ("[1 2]", 3),
            ("[01]", 2),
            ("\"\\ud800\"", 7),
            ("\"\\x\"", 2),
            ("{}x", 2),
            ("\"\n\"", 1),
            ("[-]", 2),
            ("nul", 0),
            ("[\"a\"", 4),
        ];
        for (text, place) in rows {
            match read(text).trouble() {
                Some(Trouble::Invalid { at, .. }) => assert_eq!(*at, place, "{text}"),
                other => panic!("{text}: {other:?}"),
            }
        }
    }

    #[test]
    fn depth_is_counted_and_never_recursed() {
        let nested = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
        assert_eq!((read(&nested(64)).depth(), read("0").depth()), (64, 0));
        assert_eq!(read(&nested(128)).trouble(), None);
        assert_eq!(read(&nested(129)).trouble(), Some(&Trouble::TooDeep));
        assert_eq!(read(&nested(500_000)).trouble(), Some(&Trouble::TooDeep));
        assert!(matches!(read(&"[".repeat(500_000)).trouble(), Some(Trouble::Invalid { .. })));
    }

    #[test]
    fn a_byte_order_mark_is_noted_and_dropped() {
        let document = Document::read("\u{feff}{}".as_bytes());
        assert!(document.has_byte_order_mark() && document.trouble().is_none());
        assert_eq!(Document::read(b"\xff\xfe{").trouble(), Some(&Trouble::NotUtf8 { at: 0 }));
    }

    fn same(node: Node<'_>, value: &serde_json::Value) -> bool {
        use serde_json::Value;
        match value {
            Value::Null => node.is_null(),
            Value::Bool(flag) => node.flag() == Some(*flag),
            Value::Number(number) => node.number() == number.as_f64(),
            Value::String(text) => node.text() == Some(text),
            Value::Array(items) => node.len() == Some(items.len()) && node.items().zip(items).all(|(n, v)| same(n, v)),
            Value::Object(map) => {
                node.len() == Some(map.len()) && node.members().all(|(key, n)| map.get(key).is_some_and(|v| same(n, v)))
            }
        }
    }

    fn agrees(text: &str) {
        let document = read(text);
        match serde_json::from_str::<serde_json::Value>(text) {
            Ok(value) => {
                let root = document.root().unwrap_or_else(|| panic!("{text:?}: {:?}", document.trouble()));
                assert!(same(root, &value), "{text:?}");
            }
            Err(error) => assert!(document.root().is_none(), "{text:?} was read, serde says {error}"),
        }
    }

    proptest! {
        #[test]
        fn lines_and_columns_are_those_that_counting_gives(text in "[aä🌊\\n]{0,700}", at in 0usize..3000) {
            let at = at.min(text.len());
            let before = &text.as_bytes()[..at];
            let start = before.iter().rposition(|&b| b == b'\n').map_or(0, |p| p + 1);
            let counted = (before.iter().filter(|&&b| b == b'\n').count() + 1, characters(&before[start..]) + 1);
            prop_assert_eq!(Lines::of(&text).line_column(&text, at), counted);
        }

        #[test]
        fn reads_what_serde_json_reads(text in r#"[\[\]{}",:\\a-f0-9eE.+\-u \ntrfalsn]{0,40}"#) {
            agrees(&text);
        }

        #[test]
        fn reads_what_serde_json_writes(text in "\\PC{0,20}", number in any::<i64>(), flag in any::<bool>()) {
            let value = serde_json::json!({ text.clone(): [number, flag, null, { "x": text }], "y": { "z": [] } });
            agrees(&value.to_string());
            agrees(&serde_json::to_string_pretty(&value).expect("it is a value"));
        }
    }
}
