//! What changed between two JSON documents: a change for each place, by JSON Pointer. Items of a list are recognised by their
//! name when they have moved, so a reordered list is a move and not a rewrite. Pure, and the same for both readers of a page.

use std::collections::HashMap;

use plumbline_rules::document::Document;
use serde::Serialize;
use serde_json::Value;
use similar::{ChangeTag, TextDiff};

use crate::listing;

/// What happened at one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// It was not there before.
    Added,
    /// It is no longer there.
    Removed,
    /// It has another value.
    Changed,
    /// It is the same at another place of its list.
    Moved,
}

impl What {
    /// In a word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Removed => "removed",
            Self::Changed => "changed",
            Self::Moved => "moved",
        }
    }
}

/// One change.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Change {
    /// What happened.
    pub what: What,
    /// Where in the old document; `None`: it was not there.
    pub before: Option<String>,
    /// Where in the new document; `None`: it is not there.
    pub after: Option<String>,
    /// The old value.
    pub old: Option<Value>,
    /// The new value.
    pub new: Option<Value>,
}

impl Change {
    /// The place as it is called now, or was.
    #[must_use]
    pub fn pointer(&self) -> &str {
        self.after.as_deref().or(self.before.as_deref()).unwrap_or_default()
    }
}

/// Changes told one by one; what goes beyond is another document.
const MOST: usize = 500;

/// Members by whose value an item of a list is known again, the best first.
const NAMES: [&str; 8] = ["id", "name", "identifier", "url", "uri", "key", "kid", "protocolBinding"];

/// Every change from one document to the next, in the order of the new one.
#[must_use]
pub fn changes(old: &Value, new: &Value) -> Vec<Change> {
    let mut found = Vec::new();
    compare(old, new, "", "", &mut found);
    found.truncate(MOST);
    found
}

fn compare(old: &Value, new: &Value, before: &str, after: &str, found: &mut Vec<Change>) {
    match (old, new) {
        _ if old == new => {}
        (Value::Object(a), Value::Object(b)) => {
            for (name, value) in a {
                let (from, to) = (member(before, name), member(after, name));
                match b.get(name) {
                    Some(other) => compare(value, other, &from, &to, found),
                    None => found.push(removed(from, value)),
                }
            }
            for (name, value) in b.iter().filter(|(name, _)| !a.contains_key(*name)) {
                found.push(added(member(after, name), value));
            }
        }
        (Value::Array(a), Value::Array(b)) => lists(a, b, before, after, found),
        _ => found.push(Change {
            what: What::Changed,
            before: Some(before.to_owned()),
            after: Some(after.to_owned()),
            old: Some(old.clone()),
            new: Some(new.clone()),
        }),
    }
}

fn removed(pointer: String, value: &Value) -> Change {
    Change { what: What::Removed, before: Some(pointer), after: None, old: Some(value.clone()), new: None }
}

fn added(pointer: String, value: &Value) -> Change {
    Change { what: What::Added, before: None, after: Some(pointer), old: None, new: Some(value.clone()) }
}

fn member(pointer: &str, name: &str) -> String {
    format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"))
}

/// Items that are known again are compared with themselves; of these, the ones that left the common order have moved.
fn lists(a: &[Value], b: &[Value], before: &str, after: &str, found: &mut Vec<Change>) {
    let pairs = matched(a, b);
    let kept = longest_rise(&pairs.iter().map(|pair| pair.1).collect::<Vec<_>>());
    for (n, &(i, j)) in pairs.iter().enumerate() {
        let (from, to) = (format!("{before}/{i}"), format!("{after}/{j}"));
        if !kept.contains(&n) {
            found.push(Change {
                what: What::Moved,
                before: Some(from.clone()),
                after: Some(to.clone()),
                old: None,
                new: Some(b[j].clone()),
            });
        }
        compare(&a[i], &b[j], &from, &to, found);
    }
    for (i, value) in a.iter().enumerate().filter(|(i, _)| pairs.iter().all(|pair| pair.0 != *i)) {
        found.push(removed(format!("{before}/{i}"), value));
    }
    for (j, value) in b.iter().enumerate().filter(|(j, _)| pairs.iter().all(|pair| pair.1 != *j)) {
        found.push(added(format!("{after}/{j}"), value));
    }
}

/// Which item became which: by name where all items have one of their own, else equal ones, else those left at the same place.
fn matched(a: &[Value], b: &[Value]) -> Vec<(usize, usize)> {
    let name = NAMES.iter().find(|name| has_own_names(a, name) && has_own_names(b, name));
    if let Some(name) = name {
        let places: HashMap<String, usize> =
            b.iter().enumerate().map(|(j, item)| (item[*name].to_string(), j)).collect();
        return a
            .iter()
            .enumerate()
            .filter_map(|(i, item)| Some((i, *places.get(&item[*name].to_string())?)))
            .collect();
    }
    let mut free: HashMap<String, Vec<usize>> = HashMap::new();
    for (j, item) in b.iter().enumerate().rev() {
        free.entry(item.to_string()).or_default().push(j);
    }
    let mut pairs: Vec<(usize, usize)> = Vec::new();
    for (i, item) in a.iter().enumerate() {
        if let Some(j) = free.get_mut(&item.to_string()).and_then(Vec::pop) {
            pairs.push((i, j));
        }
    }
    // What is equal to nothing, but a list or object like the one at its place, was edited there.
    for i in 0..a.len().min(b.len()) {
        let is_free = pairs.iter().all(|pair| pair.0 != i && pair.1 != i);
        let is_alike = a[i].is_object() == b[i].is_object() && a[i].is_array() == b[i].is_array();
        if is_free && is_alike {
            pairs.push((i, i));
        }
    }
    pairs.sort_unstable();
    pairs
}

/// Whether every item is an object with this member, no two with the same value.
fn has_own_names(items: &[Value], name: &str) -> bool {
    let mut names: Vec<String> = items.iter().filter_map(|item| item.get(name)).map(Value::to_string).collect();
    names.sort_unstable();
    names.dedup();
    !items.is_empty() && names.len() == items.len()
}

/// The places of a longest rising subsequence: the items that stayed in order.
fn longest_rise(values: &[usize]) -> Vec<usize> {
    let mut ends: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = vec![None; values.len()];
    for n in 0..values.len() {
        let place = ends.partition_point(|end| values[*end] < values[n]);
        before[n] = place.checked_sub(1).map(|last| ends[last]);
        if place == ends.len() {
            ends.push(n);
        } else {
            ends[place] = n;
        }
    }
    let mut kept = Vec::new();
    let mut at = ends.last().copied();
    while let Some(n) = at {
        kept.push(n);
        at = before[n];
    }
    kept
}

/// Whether a finding at one pointer is about a change at another: one lies within the other.
#[must_use]
pub fn is_about(change: &str, finding: &str) -> bool {
    let within = |outer: &str, inner: &str| {
        inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    !finding.is_empty() && (within(change, finding) || within(finding, change))
}

/// One line of the text form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Line {
    /// `+`, `-` or a space.
    pub mark: char,
    /// Its number in the old text.
    pub before: Option<usize>,
    /// Its number in the new text.
    pub after: Option<usize>,
    /// As shown.
    pub text: String,
}

/// The difference of two texts, line by line.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TextForm {
    /// Lines that lie together around changes.
    pub groups: Vec<Vec<Line>>,
    /// Lines of the new text.
    pub length: usize,
}

/// Lines around a change that are shown with it.
const AROUND: usize = 3;

/// The difference of the two as they are laid out on their pages, in groups of lines that lie together.
#[must_use]
pub fn text(old: &Document, new: &Document) -> TextForm {
    let (old, new) = (plain(old), plain(new));
    let length = new.lines().count();
    let diff = TextDiff::from_lines(&old, &new);
    let groups = diff.grouped_ops(AROUND);
    let groups = groups
        .iter()
        .map(|group| {
            let changes = group.iter().flat_map(|op| diff.iter_changes(op));
            changes
                .map(|change| Line {
                    mark: match change.tag() {
                        ChangeTag::Delete => '-',
                        ChangeTag::Insert => '+',
                        ChangeTag::Equal => ' ',
                    },
                    before: change.old_index().map(|n| n + 1),
                    after: change.new_index().map(|n| n + 1),
                    text: change.value().trim_end_matches('\n').to_owned(),
                })
                .collect()
        })
        .collect();
    TextForm { groups, length }
}

impl TextForm {
    /// The lines that are equal before a group, the first and the last by their numbers in the new text; after the last group for
    /// the number of groups.
    #[must_use]
    pub fn equal_before(&self, group: usize) -> Option<(usize, usize)> {
        let numbers = |group: &Vec<Line>| group.iter().filter_map(|line| line.after).collect::<Vec<_>>();
        let earlier = group.checked_sub(1).and_then(|before| self.groups.get(before));
        let from = earlier.and_then(|lines| numbers(lines).last().copied()).unwrap_or(0) + 1;
        let to = match self.groups.get(group) {
            Some(lines) => numbers(lines).first()?.checked_sub(1)?,
            None => self.length,
        };
        (from <= to && !self.groups.is_empty()).then_some((from, to))
    }
}

fn plain(document: &Document) -> String {
    listing::listed(document)
        .lines
        .iter()
        .map(|line| line.pieces.iter().map(|piece| piece.text.as_str()).collect::<String>() + "\n")
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn told(old: &Value, new: &Value) -> Vec<String> {
        changes(old, new).iter().map(|change| format!("{} {}", change.what.word(), change.pointer())).collect()
    }

    #[test]
    fn each_place_that_differs_is_one_change() {
        let old = json!({"name": "a", "gone": 1, "deep": {"x": [1, 2], "same": true}, "a/b": 1});
        let new = json!({"name": "b", "deep": {"x": [1, 2, 3], "same": true}, "new": {}, "a/b": 2});
        let expected = ["changed /a~1b", "added /deep/x/2", "removed /gone", "changed /name", "added /new"];
        let mut found = told(&old, &new);
        found.sort_by_key(|one| one.split(' ').nth(1).map(str::to_owned));
        assert_eq!(found, expected);
        assert!(changes(&old, &old).is_empty());
    }

    #[test]
    fn an_item_that_moved_is_moved_and_not_rewritten() {
        let old = json!({"skills": [{"id": "a", "t": 1}, {"id": "b", "t": 1}, {"id": "c", "t": 1}]});
        let new = json!({"skills": [{"id": "c", "t": 1}, {"id": "a", "t": 2}, {"id": "b", "t": 1}]});
        assert_eq!(told(&old, &new), ["changed /skills/1/t", "moved /skills/0"]);
        let moved = &changes(&old, &new)[1];
        assert_eq!((moved.before.as_deref(), moved.after.as_deref()), (Some("/skills/2"), Some("/skills/0")));
    }

    #[test]
    fn items_without_a_name_are_known_by_their_value_or_their_place() {
        assert_eq!(told(&json!(["a", "b", "c"]), &json!(["c", "a", "b"])), ["moved /0"]);
        assert_eq!(told(&json!(["a", "b"]), &json!(["a", "x"])), ["changed /1"]);
        assert_eq!(told(&json!([{"t": 1}, {"t": 1}]), &json!([{"t": 1}, {"t": 2}])), ["changed /1/t"]);
        assert_eq!(told(&json!([1, 2, 3]), &json!([1, 3])), ["removed /1"]);
        assert_eq!(told(&json!({"a": []}), &json!({"a": {}})), ["changed /a"]);
    }

    #[test]
    fn a_finding_belongs_to_the_change_it_lies_in_or_around() {
        for (change, finding, expected) in [
            ("/skills/1", "/skills/1/tags", true),
            ("/skills/1/tags/0", "/skills/1/tags", true),
            ("/skills/1", "/skills/10", false),
            ("/name", "", false),
            ("", "/name", true),
        ] {
            assert_eq!(is_about(change, finding), expected, "{change} {finding}");
        }
    }

    #[test]
    fn the_text_form_shows_the_lines_around_a_change() {
        let lines =
            |n: i32| (0..20).map(move |k| if k == 10 { format!("  \"m{k}\": {n}") } else { format!("  \"m{k}\": 0") });
        let text_of = |n| format!("{{\n{}\n}}", lines(n).collect::<Vec<_>>().join(",\n"));
        let form = text(&Document::from_text(&text_of(1)), &Document::from_text(&text_of(2)));
        assert_eq!((form.equal_before(0), form.equal_before(1)), (Some((1, 8)), Some((16, 22))));
        let same = text(&Document::from_text(&text_of(1)), &Document::from_text(&text_of(1)));
        assert_eq!(same.equal_before(0), None, "where no line differs that is said in another way");
        let groups = form.groups;
        assert_eq!(groups.len(), 1);
        let marks: String = groups[0].iter().map(|line| line.mark).collect();
        assert_eq!(marks, "   -+   ");
        assert_eq!(groups[0][3].before, Some(12));
    }
}
