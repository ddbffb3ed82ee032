//! Field tables: one row for a field of a specification, and the walk that holds a document against them.
//!
//! A family keeps one table for all its revisions; rows name the revisions that know the field. The rules *wrong type*,
//! *unknown field*, *snake case* and their like are ordinary rules whose function walks the table.

use std::collections::HashMap;

use crate::document::{Node, Type};

/// The JSON types that a field may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holds {
    /// A string.
    Text,
    /// A boolean.
    Flag,
    /// A number.
    Number,
    /// An object with members of its own rows; a `*` row makes it a map with free keys.
    Object,
    /// An array; its items are the row that ends in `/*`.
    Array,
    /// Anything; nothing below is looked at.
    Free,
    /// Anything as far as the table goes: a rule of its own judges the type. Known members below are looked at.
    Open,
}

impl Holds {
    /// Whether a value of that type fits.
    pub fn admits(self, kind: Type) -> bool {
        match self {
            Holds::Text => kind == Type::String,
            Holds::Flag => kind == Type::Bool,
            Holds::Number => kind == Type::Number,
            Holds::Object => kind == Type::Object,
            Holds::Array => kind == Type::Array,
            Holds::Free | Holds::Open => true,
        }
    }

    /// The type with its article, for messages.
    pub fn named(self) -> &'static str {
        match self {
            Holds::Text => "a string",
            Holds::Flag => "true or false",
            Holds::Number => "a number",
            Holds::Object => "an object",
            Holds::Array => "an array",
            Holds::Free | Holds::Open => "any value",
        }
    }
}

/// One field of a specification.
#[derive(Debug, Clone, Copy)]
pub struct Field {
    /// Where it stands: names, and `*` for an item or a map's value.
    pub at: &'static str,
    /// What it holds.
    pub holds: Holds,
    /// The revisions that know it; `all` for every one.
    pub known_in: &'static [&'static str],
    /// The revisions that require it.
    pub required_in: &'static [&'static str],
}

/// A field that every revision knows and none requires.
pub const fn field(at: &'static str, holds: Holds) -> Field {
    Field { at, holds, known_in: &["all"], required_in: &[] }
}

impl Field {
    /// Known in these revisions only.
    pub const fn known(mut self, versions: &'static [&'static str]) -> Field {
        self.known_in = versions;
        self
    }

    /// Required in these revisions.
    pub const fn required(mut self, versions: &'static [&'static str]) -> Field {
        self.required_in = versions;
        self
    }

    /// The same field at another place.
    pub const fn at(mut self, place: &'static str) -> Field {
        self.at = place;
        self
    }

    /// The last segment of its place.
    pub fn name(&self) -> &'static str {
        self.at.rsplit('/').next().unwrap_or_default()
    }

    /// Whether any of these revisions knows it.
    pub fn is_known_in(&self, versions: &[&str]) -> bool {
        self.known_in.contains(&"all") || versions.iter().any(|version| self.known_in.contains(version))
    }

    /// Whether any of these revisions requires it.
    pub fn is_required_in(&self, versions: &[&str]) -> bool {
        versions.iter().any(|version| self.required_in.contains(version))
    }
}

/// A place in a table: the field there, and the places below.
#[derive(Debug, Default)]
pub struct Place {
    /// The field; `None` for the document itself.
    pub field: Option<&'static Field>,
    members: HashMap<&'static str, Place>,
    any: Option<Box<Place>>,
}

impl Place {
    /// Makes the tree of a table. Rows of one place may differ by revision only in separate tables.
    pub fn of(table: &'static [Field]) -> Place {
        let mut root = Place::default();
        root.add(&[], table);
        root
    }

    /// Puts the rows of another table below a place: for objects that occur in several.
    pub fn add(&mut self, at: &[&'static str], table: &'static [Field]) {
        for row in table {
            let segments = at.iter().chain([&row.at]).flat_map(|part| part.split('/').skip(1));
            segments.fold(&mut *self, Place::step).field = Some(row);
        }
    }

    fn step<'p>(place: &'p mut Place, segment: &'static str) -> &'p mut Place {
        match segment {
            "*" => place.any.get_or_insert_default(),
            name => place.members.entry(name).or_default(),
        }
    }

    /// The place of a member, or of an item when asked for `*`.
    pub fn below(&self, key: &str) -> Option<&Place> {
        self.members.get(key).or(self.any.as_deref())
    }

    /// The fields an object at this place may have, map values left out.
    pub fn fields(&self) -> impl Iterator<Item = &'static Field> {
        self.members.values().filter_map(|place| place.field)
    }

    /// Whether keys are free here.
    pub fn is_map(&self) -> bool {
        self.any.is_some()
    }
}

/// The values of a document that stand at the places of a table, found in one walk so that every rule about fields can
/// visit them without another.
#[derive(Debug)]
pub struct Placed {
    steps: Vec<Step>,
}

#[derive(Debug)]
struct Step {
    ordinal: u32,
    place: Option<&'static Place>,
    parent: &'static Place,
}

impl Placed {
    /// Holds a value and all below it against a table, whatever rules hide.
    pub fn of(root: Node<'_>, table: &'static Place) -> Placed {
        let mut placed = Placed { steps: Vec::new() };
        placed.enter(root, table);
        placed
    }

    fn enter(&mut self, node: Node<'_>, place: &'static Place) {
        let kind = node.kind();
        if place.field.is_some_and(|field| field.holds == Holds::Free || !field.holds.admits(kind)) {
            return;
        }
        let any = place.any.as_deref();
        let is_list = kind == Type::Array;
        for child in node.below().take_while(|_| !is_list || any.is_some()) {
            let below = if is_list { any } else { place.below(child.key().unwrap_or_default()) };
            self.steps.push(Step { ordinal: child.ordinal(), place: below, parent: place });
            if let Some(below) = below {
                self.enter(child, below);
            }
        }
    }

    /// Visits every value below the root with its place and the one around it: `None` for a member that the table does
    /// not know, which is not entered, and neither is what [`Holds::Free`] holds or what has another type than its field.
    /// Hidden values are visited but not entered.
    pub fn visit<'d>(&self, root: Node<'d>, mut f: impl FnMut(Node<'d>, Option<&'static Place>, &'static Place)) {
        let mut out_of_sight = if root.is_hidden() { root.end() } else { root.ordinal() };
        for step in &self.steps {
            if step.ordinal < out_of_sight {
                continue;
            }
            let node = root.in_document(step.ordinal);
            if node.is_hidden() {
                out_of_sight = node.end();
            }
            f(node, step.place, step.parent);
        }
    }
}

/// Visits every value below the root with its place, as [`Placed::visit`] does, where one rule alone asks.
pub fn visit<'d>(
    root: Node<'d>,
    table: &'static Place,
    f: &mut impl FnMut(Node<'d>, Option<&'static Place>, &'static Place),
) {
    Placed::of(root, table).visit(root, f);
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use super::*;
    use crate::document::Document;

    static TABLE: &[Field] = &[
        field("/name", Holds::Text).required(&["1"]),
        field("/tags", Holds::Array),
        field("/tags/*", Holds::Text),
        field("/schemes", Holds::Object),
        field("/schemes/*", Holds::Object),
        field("/schemes/*/type", Holds::Text),
        field("/params", Holds::Free),
    ];

    #[test]
    fn every_value_is_visited_with_its_place() {
        static PLACES: LazyLock<Place> = LazyLock::new(|| Place::of(TABLE));
        let text = r#"{"name": 1, "tags": ["a"], "schemes": {"x": {"type": "t", "odd": 2}}, "params": {"a": 1}, "zip": {"b": 1}}"#;
        let document = Document::from_text(text);
        let root = document.root().expect("it parses");
        let placed = Placed::of(root, &PLACES);
        let seen = || {
            let mut seen = Vec::new();
            placed.visit(root, |node, place, _| {
                seen.push(format!("{} {}", node.pointer(), place.and_then(|p| p.field).map_or("?", |f| f.at)));
            });
            seen
        };
        let expected = [
            "/name /name",
            "/tags /tags",
            "/tags/0 /tags/*",
            "/schemes /schemes",
            "/schemes/x /schemes/*",
            "/schemes/x/type /schemes/*/type",
            "/schemes/x/odd ?",
            "/params /params",
            "/zip ?",
        ];
        assert_eq!(seen(), expected);
        // What a rule has hidden since the walk is visited, and what lies below it is not.
        let scheme = root.get("schemes").and_then(|schemes| schemes.get("x")).expect("it is there");
        document.hide(scheme.ordinal());
        let below = |line: &&str| !line.starts_with("/schemes/x/");
        assert_eq!(seen(), expected.iter().filter(|line| below(line)).copied().collect::<Vec<_>>());
        document.hide(root.ordinal());
        assert!(seen().is_empty());
    }
}
