//! References: whether they lead somewhere, and what stands beside them.

use std::collections::HashMap;

use super::parts::{Part, is_extension, visit};
use super::{OPENAPI, V3, is_3_0};
use crate::document::{Node, Type};
use crate::judge::{Context, Occurrences};
use crate::rule::{Basis, Check, Impact, Rule, Severity, fires, silent};
use crate::text::{percent_decoded, quote};

pub(super) const RULES: &[&Rule] = &[&REF_UNRESOLVED, &REF_EXTERNAL, &REF_SIBLINGS];

crate::rule! {
    /// Every local reference leads to something.
    ///
    /// A tool that loads the document stops there, or goes on without the part that was meant.
    static REF_UNRESOLVED = {
        id: "openapi/ref-unresolved",
        severity: Severity::Error,
        impact: Some(Impact::Degrades),
        versions: V3,
        on: OPENAPI,
        place: "/**/$ref",
        spec: "OpenAPI 3.1.1 Reference Object",
        fix: "Fix the reference or add the component.",
        seeds: &["gaip:OPENAPI_REF_UNRESOLVED"],
        examples: &[
            fires(
                &["/components/schemas/TideList/items/$ref"],
                r##"{"components": {"schemas": {"TideList": {"items": {"$ref": "#/components/schemas/Tied"}}}}}"##,
            ),
            fires(
                &["/components/schemas/Loop/$ref", "/components/schemas/TideList/items/$ref"],
                r##"{"components": {"schemas": {
                "TideList": {"items": {"$ref": "#/components/schemas/Loop"}},
                "Loop": {"$ref": "#/components/schemas/Loop"}
                }}}"##,
            ),
            silent(r##"{"components": {"schemas": {"Tide": {"properties": {"at": {"example": {"$ref": "#/no"}}}}}}}"##),
            silent(
                r##"{"components": {"schemas": {
                "Tide": {"properties": {"next": {"$ref": "#/components/schemas/Tide"}, "place": {"$ref": "#place"}}},
                "Place": {"$anchor": "place", "type": "string"}
                }}}"##,
            ),
        ],
        check: Check::Document(ref_unresolved),
    }
}

fn ref_unresolved(root: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    let mut references = References::of(root);
    let mut circles = Circles { siblings_count: !is_3_0(context), known: HashMap::new() };
    each_reference(root, |node, reference, text| {
        if !is_local(text) {
            return;
        }
        if references.target(reference, text).is_none() {
            out.add(reference, format!("{} points at nothing", quote(text)));
        } else if circles.holds(node, &mut references) {
            out.add(reference, format!("{} leads round in a circle", quote(text)));
        }
    });
}

crate::rule! {
    /// The document stands in one file.
    ///
    /// What a reference to another file or address leads to is not fetched, so nothing behind it is judged, and an agent
    /// that was handed the one file cannot follow it either.
    static REF_EXTERNAL = {
        id: "openapi/ref-external",
        severity: Severity::Warning,
        impact: Some(Impact::Degrades),
        basis: Basis::Policy,
        versions: V3,
        on: OPENAPI,
        place: "/**/$ref",
        spec: "crawler policy; Redocly bundle",
        fix: "Bundle the document into one file.",
        seeds: &["gaip:OPENAPI_REF_UNRESOLVED"],
        examples: &[
            fires(
                &["/components/schemas/TideList/items/$ref"],
                r#"{"components": {"schemas": {"TideList": {"items": {"$ref": "./tide.yaml#/Tide"}}}}}"#,
            ),
            silent("{}"),
            silent(
                r#"{"components": {"schemas": {
                "TideList": {"items": {"$ref": "https://tides.plumbtest.dev/tide"}},
                "Tide": {"$id": "https://tides.plumbtest.dev/tide"}
                }}}"#,
            ),
        ],
        check: Check::Document(ref_external),
    }
}

fn ref_external(root: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let mut references = References::of(root);
    each_reference(root, |_, reference, text| {
        if !is_local(text) && !references.is_named(text) {
            out.add(reference, format!("{} leads out of the document", quote(text)));
        }
    });
}

crate::rule! {
    /// Nothing stands beside a reference.
    ///
    /// Up to 3.0 whatever stands beside `$ref` is ignored, so a description or a bound there is lost without a word.
    static REF_SIBLINGS = {
        id: "openapi/ref-siblings",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        versions: &["3.0"],
        on: OPENAPI,
        place: "/**/$ref",
        spec: "Spectral no-$ref-siblings",
        fix: "Wrap the reference in allOf or drop the siblings.",
        examples: &[
            fires(
                &["/components/schemas/TideList/items/$ref"],
                r#"{"components": {"schemas": {"TideList": {"items": {"nullable": true}}}}}"#,
            ),
            silent(r#"{"components": {"schemas": {"TideList": {"items": {"x-note": true}}}}}"#),
            silent(r#"{"components": {"schemas": {"TideList": {"items": {"nullable": true}}}}}"#).over("openapi-3.1"),
        ],
        check: Check::Document(ref_siblings),
    }
}

fn ref_siblings(root: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    visit(root, &mut |node, part| {
        if part.may_refer()
            && part != Part::PathItem
            && let Some((reference, _)) = reference_of(node)
            && let Some((name, _)) = node.members().find(|(name, _)| *name != "$ref" && !is_extension(name))
        {
            out.add(reference, format!("{} beside the reference is ignored", quote(name)));
        }
        true
    });
}

fn each_reference<'d>(root: Node<'d>, mut visitor: impl FnMut(Node<'d>, Node<'d>, &'d str)) {
    visit(root, &mut |node, part| {
        if part.may_refer()
            && let Some((reference, text)) = reference_of(node)
        {
            visitor(node, reference, text);
        }
        true
    });
}

/// The `$ref` of an object, when it is a text.
pub(super) fn reference_of<'d>(node: Node<'d>) -> Option<(Node<'d>, &'d str)> {
    let reference = node.get("$ref")?;
    Some((reference, reference.text()?))
}

fn is_local(reference: &str) -> bool {
    reference.is_empty() || reference.starts_with('#')
}

/// Finds what local references point at. Wide objects and lists are indexed once, so many references into one cost no
/// more than the document is long.
pub(super) struct References<'d> {
    root: Node<'d>,
    wide: HashMap<u32, Index<'d>>,
    /// Schemas by the names they give themselves, once somebody asked for one.
    named: Option<HashMap<&'d str, Node<'d>>>,
}

enum Index<'d> {
    ByName(HashMap<&'d str, Node<'d>>),
    ByPlace(Vec<Node<'d>>),
}

/// Members or items up to this many are looked through one by one.
const FEW: usize = 16;

impl<'d> References<'d> {
    pub fn of(root: Node<'d>) -> References<'d> {
        References { root, wide: HashMap::new(), named: None }
    }

    /// The object itself, or what its chain of references ends at; `None` when that is not in the document.
    pub fn followed(&mut self, node: Node<'d>) -> Option<Node<'d>> {
        // Long chains are left alone: no document that a person wrote has one.
        let mut node = node;
        for _ in 0..8 {
            let Some((reference, text)) = reference_of(node) else { return Some(node) };
            node = self.target(reference, text)?;
        }
        None
    }

    /// What a reference points at, by JSON Pointer or by name. Hidden values count.
    fn target(&mut self, reference: Node<'d>, text: &'d str) -> Option<Node<'d>> {
        if !is_local(text) {
            return self.names().get(text.trim_end_matches('#')).copied();
        }
        let fragment = text.trim_start_matches('#');
        if !fragment.is_empty() && !fragment.starts_with('/') {
            return self.names().get(fragment).copied();
        }
        let pointer = percent_decoded(fragment);
        self.at(self.root, &pointer).or_else(|| {
            // Inside a schema with an address of its own, references are meant from there.
            let resource = resource_of(reference)?;
            self.at(resource, &pointer)
        })
    }

    fn at(&mut self, from: Node<'d>, pointer: &str) -> Option<Node<'d>> {
        let segments = pointer.strip_prefix('/').into_iter().flat_map(|rest| rest.split('/'));
        let mut node = from;
        for segment in segments {
            node = if segment.contains('~') {
                self.step(node, &segment.replace("~1", "/").replace("~0", "~"))?
            } else {
                self.step(node, segment)?
            };
        }
        Some(node)
    }

    fn step(&mut self, node: Node<'d>, name: &str) -> Option<Node<'d>> {
        let place = || name.parse::<usize>().ok();
        let wide = match node.kind() {
            Type::Object if node.below().nth(FEW).is_none() => {
                return node.below().find(|member| member.key() == Some(name));
            }
            Type::Array if node.below().nth(FEW).is_none() => return node.below().nth(place()?),
            Type::Object | Type::Array => self.wide.entry(node.entry_number()).or_insert_with(|| Index::of(node)),
            _ => return None,
        };
        match wide {
            Index::ByName(members) => members.get(name).copied(),
            Index::ByPlace(items) => items.get(place()?).copied(),
        }
    }

    /// Whether a schema of the document gives itself that address.
    fn is_named(&mut self, address: &str) -> bool {
        let whole = address.strip_suffix('#').unwrap_or(address);
        let resource = address.split_once('#').map_or(address, |(resource, _)| resource);
        let names = self.names();
        names.contains_key(whole) || names.contains_key(resource)
    }

    fn names(&mut self) -> &HashMap<&'d str, Node<'d>> {
        self.named.get_or_insert_with(|| {
            let mut names = HashMap::new();
            visit(self.root, &mut |node, part| {
                if part.is_schema() {
                    for keyword in ["$id", "$anchor", "$dynamicAnchor"] {
                        if let Some(name) = node.get(keyword).and_then(Node::text) {
                            names.insert(name.trim_matches('#'), node);
                        }
                    }
                }
                true
            });
            names
        })
    }
}

impl<'d> Index<'d> {
    fn of(node: Node<'d>) -> Index<'d> {
        if node.kind() == Type::Array {
            Index::ByPlace(node.below().collect())
        } else {
            Index::ByName(node.below().filter_map(|member| Some((member.key()?, member))).collect())
        }
    }
}

/// The nearest schema around a value that gives itself an address.
fn resource_of(node: Node<'_>) -> Option<Node<'_>> {
    let mut around = node.parent();
    while let Some(node) = around {
        if node.get("$id").is_some_and(|id| id.kind() == Type::String) {
            return Some(node);
        }
        around = node.parent();
    }
    None
}

/// Tells chains of references that only lead round. Every object is followed once.
struct Circles {
    /// Whether an object with more than a reference has content of its own.
    siblings_count: bool,
    known: HashMap<u32, bool>,
}

impl Circles {
    fn holds<'d>(&mut self, node: Node<'d>, references: &mut References<'d>) -> bool {
        let mut chain = Vec::new();
        let mut next = Some(node);
        let mut circles = false;
        while let Some(node) = next {
            let entry = node.entry_number();
            if let Some(known) = self.known.get(&entry) {
                circles = *known;
                break;
            }
            let bare = reference_of(node).filter(|_| !(self.siblings_count && has_content(node)));
            // Until the end of the chain is known, what is on it leads back to it.
            self.known.insert(entry, true);
            chain.push(entry);
            next = bare.filter(|(_, text)| is_local(text)).and_then(|(at, text)| references.target(at, text));
        }
        for entry in chain {
            self.known.insert(entry, circles);
        }
        circles
    }
}

/// Whether an object says something besides its reference.
fn has_content(node: Node<'_>) -> bool {
    node.members().any(|(name, _)| !matches!(name, "$ref" | "summary" | "description") && !is_extension(name))
}
