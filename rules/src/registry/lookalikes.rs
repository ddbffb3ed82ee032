//! Names of one registry that can be taken for each other.

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hasher};

use unicode_normalization::UnicodeNormalization;

use super::entry::stamp;
use super::names::parts;
use super::revision::API;
use super::walk::{Listed, account, current};
use crate::document::Node;
use crate::judge::{Context, Occurrences};
use crate::kind::Kind;
use crate::rule::{Basis, Check, Evidence, Impact, Rule, Severity, fires, silent};
use crate::text::quote;

pub(super) const RULES: &[&Rule] = &[&NAME_CASE_COLLISION, &NAME_LOOKALIKE];

crate::rule! {
    /// No two names differ in letter case only.
    ///
    /// People cannot tell them apart, and some tools do not either.
    static NAME_CASE_COLLISION = {
        id: "registry/name-case-collision",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        basis: Basis::Hint,
        versions: API,
        evidence: Evidence::Live,
        place: "/name",
        fix: "Delete one of the two.",
        spec: "hint",
        on: &[Kind::RegistryWalk],
        examples: &[
            fires(
                &["/pages/0/servers/1/server/name"],
                r#"{"pages": [{"servers": [{}, {"server": {"name": "io.github.TideHouse/tides", "remotes": null}}]}]}"#,
            ),
            silent(r#"{"pages": [{"servers": [{}, {"server": {"name": "io.github.tidehouse/tides2"}}]}]}"#),
        ],
        check: Check::Document(name_case_collision),
    }
}

fn name_case_collision(walk: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let mut seen: HashMap<String, &str> = HashMap::new();
    for listed in current(walk) {
        let first = *seen.entry(listed.name.to_lowercase()).or_insert(listed.name);
        if let Some(node) = listed.server.given("name").filter(|_| first != listed.name) {
            out.add(node, format!("{} is listed too", quote(first)));
        }
    }
}

crate::rule! {
    /// A name does not look like somebody else's.
    ///
    /// Equal to the eye or one letter off, with another owner: a mistake or a trap, which only a person can tell.
    static NAME_LOOKALIKE = {
        id: "registry/name-lookalike",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        security: true,
        basis: Basis::Hint,
        versions: API,
        evidence: Evidence::Live,
        place: "/name",
        fix: "Check which of the two is meant.",
        spec: "Unicode TR 39; crawler policy",
        on: &[Kind::RegistryWalk],
        examples: &[
            fires(
                &["/pages/0/servers/1/server/name"],
                r#"{"pages": [{"servers": [{}, {"server": {"name": "io.github.t1dehouse/tides", "repository": {"url": "https://github.com/t1de/tides"}, "remotes": null}}]}]}"#,
            ),
            fires(
                &["/pages/0/servers/1/server/name"],
                r#"{"pages": [{"servers": [{}, {"server": {"name": "io.github.tidehouses/tides", "repository": {"url": "https://github.com/tidehouses/tides"}, "remotes": null}}]}]}"#,
            ),
            silent(r#"{"pages": [{"servers": [{}, {"server": {"name": "io.github.t1dehouse/tides", "remotes": null}}]}]}"#),
            silent(r#"{"pages": [{"servers": [{}, {"server": {"name": "io.github.tidehouse/tide", "remotes": null}}]}]}"#),
        ],
        check: Check::Document(name_lookalike),
    }
}

fn name_lookalike(walk: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let listed = current(walk);
    let mut pairs = same_skeletons(&listed);
    pairs.extend(near_names(&listed));
    pairs.retain(|(a, b)| are_strangers(&listed[*a], &listed[*b]));
    pairs.iter_mut().for_each(|pair| *pair = earlier_first(&listed, *pair));
    pairs.sort_unstable_by_key(|(first, later)| (*later, *first));
    pairs.dedup_by_key(|(_, later)| *later);
    for (first, later) in pairs {
        if let Some(node) = listed[later].server.given("name") {
            out.add(node, format!("looks like {}", quote(listed[first].name)));
        }
    }
}

/// Whether two names are of different owners and not one name in two spellings.
fn are_strangers(one: &Listed<'_>, other: &Listed<'_>) -> bool {
    let (a, b) = (one.namespace(), other.namespace());
    !a.eq_ignore_ascii_case(b) && !one.name.eq_ignore_ascii_case(other.name) && !are_related(one, other)
}

/// Whether one of the two owners lists the other's repository.
fn are_related(one: &Listed<'_>, other: &Listed<'_>) -> bool {
    let (Some(of_one), Some(of_other)) = (account(one.server), account(other.server)) else { return false };
    let is_of = |account: &str, listed: &Listed<'_>| {
        let own = listed.namespace().strip_prefix("io.github.");
        own.is_some_and(|own| account.strip_prefix("github.com/").is_some_and(|name| name.eq_ignore_ascii_case(own)))
    };
    of_one == of_other || is_of(&of_one, other) || is_of(&of_other, one)
}

/// The two in the order published; without stamps in the order listed.
fn earlier_first(listed: &[Listed<'_>], (a, b): (usize, usize)) -> (usize, usize) {
    let published = |n: usize| stamp(listed[n].entry, "publishedAt").map(|(_, instant)| instant);
    match (published(a), published(b)) {
        (Some(first), Some(second)) if first > second => (b, a),
        (Some(first), Some(second)) if first < second => (a, b),
        _ => (a.min(b), a.max(b)),
    }
}

/// What the eye sees of a name: compatibility forms folded, small letters, and what looks alike made one.
fn skeleton(name: &str) -> String {
    let folded: String = name.nfkc().flat_map(char::to_lowercase).map(lookalike).collect();
    folded.replace("rn", "m")
}

fn lookalike(character: char) -> char {
    match character {
        '0' => 'o',
        '1' | 'i' => 'l',
        other => other,
    }
}

/// Every name, paired with the first of the same skeleton.
fn same_skeletons(listed: &[Listed<'_>]) -> Vec<(usize, usize)> {
    let mut first: HashMap<String, usize> = HashMap::new();
    let pairs = listed.iter().enumerate().map(|(n, one)| (*first.entry(skeleton(one.name)).or_insert(n), n));
    pairs.filter(|(a, b)| a != b).collect()
}

/// From this length on a server's own name is compared letter by letter: short ones are near each other by chance.
const LONG_ENOUGH: usize = 5;

/// Pairs whose namespaces are one edit apart and whose own names are equal or one edit apart.
fn near_names(listed: &[Listed<'_>]) -> Vec<(usize, usize)> {
    let mut of_namespace: BTreeMap<&str, Vec<(usize, &str)>> = BTreeMap::new();
    for (n, one) in listed.iter().enumerate() {
        if let Some((namespace, own)) = parts(one.name).filter(|(_, own)| own.len() >= LONG_ENOUGH) {
            of_namespace.entry(namespace).or_default().push((n, own));
        }
    }
    let (namespaces, names): (Vec<&str>, Vec<_>) = of_namespace.into_iter().unzip();
    let mut pairs = Vec::new();
    for (a, b) in within_one_edit(&namespaces, &namespaces).into_iter().filter(|(a, b)| a < b) {
        let own = |n: usize| names[n].iter().map(|(_, own)| *own).collect::<Vec<_>>();
        let near = within_one_edit(&own(a), &own(b));
        pairs.extend(near.into_iter().map(|(x, y)| (names[a][x].0, names[b][y].0)));
    }
    pairs
}

/// More texts than this that become equal by leaving out one character are a numbering, not lookalikes.
const A_SERIES: usize = 100;

/// Pairs of texts that are equal or one edit apart: one character more, less or another.
///
/// Two such texts become equal when at most one character is left out of each, so only those that do are compared.
fn within_one_edit(left: &[&str], right: &[&str]) -> Vec<(usize, usize)> {
    let mut by_rest: HashMap<u64, Vec<usize>> = HashMap::new();
    for (n, text) in right.iter().enumerate() {
        for rest in rests(text) {
            by_rest.entry(rest).or_default().push(n);
        }
    }
    let mut pairs = Vec::new();
    for (n, text) in left.iter().enumerate() {
        let alike = rests(text).into_iter().filter_map(|rest| by_rest.get(&rest)).filter(|all| all.len() <= A_SERIES);
        let mut near: Vec<usize> = alike.flatten().copied().filter(|m| is_one_edit(text, right[*m])).collect();
        near.sort_unstable();
        near.dedup();
        pairs.extend(near.into_iter().map(|m| (n, m)));
    }
    pairs
}

/// Hashes of a text, and of what is left of it without any one character.
fn rests(text: &str) -> Vec<u64> {
    let hash = |before: &str, after: &str| {
        let mut hasher = DefaultHasher::new();
        hasher.write(before.as_bytes());
        hasher.write(after.as_bytes());
        hasher.finish()
    };
    let without = text.char_indices().map(|(at, c)| hash(&text[..at], &text[at + c.len_utf8()..]));
    let mut rests: Vec<u64> = without.chain([hash(text, "")]).collect();
    rests.sort_unstable();
    rests.dedup();
    rests
}

/// Whether two texts are equal or one edit apart.
fn is_one_edit(one: &str, other: &str) -> bool {
    let same_start = one.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count();
    let (one, other) = (&one.as_bytes()[same_start..], &other.as_bytes()[same_start..]);
    let same_end = one.iter().rev().zip(other.iter().rev()).take_while(|(a, b)| a == b).count();
    one.len() - same_end <= 1 && other.len() - same_end <= 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_edit_is_one_letter_more_less_or_another() {
        let texts = ["tides", "tide", "tidess", "tikes", "tieds", "tides"];
        let near: Vec<_> = within_one_edit(&["tides"], &texts).into_iter().map(|(_, n)| n).collect();
        assert_eq!(near, [0, 1, 2, 3, 5]);
        assert!(is_one_edit("", "a") && is_one_edit("aa", "a") && !is_one_edit("ab", "ba"));
    }

    #[test]
    fn what_looks_alike_has_one_skeleton() {
        assert_eq!(skeleton("dev.Plumbtest/w1ndow"), skeleton("dev.p1umbtest/window"));
        assert_eq!(skeleton("c0rner"), skeleton("comer"));
        assert_ne!(skeleton("tides"), skeleton("tites"));
    }
}
