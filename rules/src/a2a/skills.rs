//! Skills: what an agent is looked up and chosen for.

use std::collections::HashSet;

use super::required::{demand, is_blank, skills};
use super::table::{EVERY, SINCE_0_2};
use crate::document::Node;
use crate::judge::{Context, Later, Occurrences};
use crate::kind::Kind;
use crate::rule::{Basis, Check, Class, Impact, Rule, Severity, fires, silent};
use crate::text::quote;

pub(super) const RULES: &[&Rule] = &[
    &SKILL_ID_REQUIRED,
    &SKILL_NAME_REQUIRED,
    &SKILL_DESCRIPTION_REQUIRED,
    &SKILL_TAGS_REQUIRED,
    &SKILL_ID_DUPLICATE,
    &SKILL_TAG_EMPTY,
    &SKILL_DESCRIPTION_THIN,
    &SKILL_EXAMPLES_MISSING,
];

crate::rule! {
    /// A skill has an id.
    ///
    /// It is what a client remembers a skill by.
    static SKILL_ID_REQUIRED = {
        id: "a2a/skill-id-required",
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        impact_overrides: &[("0.1", Impact::Cosmetic), ("0.2", Impact::Cosmetic), ("1.0", Impact::Cosmetic)],
        impact_evidence: "a2a-sdk 0.3.26 and 1.3.0, @a2a-js/sdk 1.3.0, 2026-11",
        clients: &["a2a-sdk 0.3.26: refuses (0.3)"],
        rank: 8,
        versions: EVERY,
        on: &[Kind::AgentCard],
        place: "/skills/*/id",
        fix: "Add `id` to the skill.",
        spec: "A2A 1.0 §4.4.5; 0.3 §5.5.4",
        seeds: &["reader:Missing required field", "gaip:A2A_SKILL_ID_REQUIRED"],
        examples: &[
            fires(&["/skills/0/id"], r#"{"skills": [{"id": null}]}"#),
            fires(&["/skills/0/id"], r#"{"skills": [{"id": null}]}"#).over("a2a-0.3"),
            silent(r#"{"skills": [{"id": "t"}]}"#),
        ],
        check: Check::Document(skill_id_required),
    }
}

fn skill_id_required(card: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    skills(card).for_each(|skill| demand(skill, "id", out));
}

crate::rule! {
    /// A skill has a name.
    ///
    /// It is what people see.
    static SKILL_NAME_REQUIRED = {
        id: "a2a/skill-name-required",
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        impact_overrides: &[("0.1", Impact::Cosmetic), ("0.2", Impact::Cosmetic), ("1.0", Impact::Cosmetic)],
        impact_evidence: "a2a-sdk 0.3.26 and 1.3.0, @a2a-js/sdk 1.3.0, 2026-11",
        clients: &["a2a-sdk 0.3.26: refuses (0.3)"],
        rank: 8,
        versions: EVERY,
        on: &[Kind::AgentCard],
        place: "/skills/*/name",
        fix: "Add `name` to the skill.",
        spec: "A2A 1.0 §4.4.5; 0.3 §5.5.4",
        seeds: &["reader:Missing required field", "gaip:A2A_SKILL_NAME_REQUIRED"],
        examples: &[
            fires(&["/skills/0/name"], r#"{"skills": [{"name": null}]}"#),
            silent(r#"{"skills": [{"name": "Tides"}]}"#),
        ],
        check: Check::Document(skill_name_required),
    }
}

fn skill_name_required(card: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    skills(card).for_each(|skill| demand(skill, "name", out));
}

crate::rule! {
    /// A skill has a description.
    ///
    /// A model that delegates work chooses by it. 0.1 did not ask for one.
    static SKILL_DESCRIPTION_REQUIRED = {
        id: "a2a/skill-description-required",
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        impact_overrides: &[("0.2", Impact::Cosmetic), ("1.0", Impact::Cosmetic)],
        impact_evidence: "a2a-sdk 0.3.26 and 1.3.0, @a2a-js/sdk 1.3.0, 2026-11",
        clients: &["a2a-sdk 0.3.26: refuses (0.3)"],
        rank: 8,
        versions: SINCE_0_2,
        on: &[Kind::AgentCard],
        place: "/skills/*/description",
        fix: "Add `description` to the skill.",
        spec: "A2A 1.0 §4.4.5; 0.3 §5.5.4",
        seeds: &["reader:Missing required field", "gaip:A2A_SKILL_DESCRIPTION_MISSING", "inspector:skill-quality"],
        examples: &[
            fires(&["/skills/0/description"], r#"{"skills": [{"description": null}]}"#),
            silent(r#"{"skills": [{"description": "Looks up tides."}]}"#),
        ],
        check: Check::Document(skill_description_required),
    }
}

fn skill_description_required(card: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    skills(card).for_each(|skill| demand(skill, "description", out));
}

crate::rule! {
    /// A skill has tags.
    ///
    /// Catalogues sort by them. 0.1 did not ask for any.
    static SKILL_TAGS_REQUIRED = {
        id: "a2a/skill-tags-required",
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        impact_overrides: &[("0.2", Impact::Cosmetic), ("1.0", Impact::Cosmetic)],
        impact_evidence: "a2a-sdk 0.3.26 and 1.3.0, @a2a-js/sdk 1.3.0, 2026-11",
        clients: &["a2a-sdk 0.3.26: refuses (0.3)", "@a2a-js/sdk 1.3.0: refuses (0.3)"],
        rank: 8,
        versions: SINCE_0_2,
        on: &[Kind::AgentCard],
        place: "/skills/*/tags",
        fix: "Add `tags` to the skill.",
        spec: "A2A 1.0 §4.4.5; 0.3 §5.5.4",
        seeds: &["reader:Missing required field", "gaip:A2A_SKILL_TAGS_MISSING"],
        examples: &[
            fires(&["/skills/0/tags"], r#"{"skills": [{"tags": null}]}"#),
            silent(r#"{"skills": [{"tags": ["tides"]}]}"#),
        ],
        check: Check::Document(skill_tags_required),
    }
}

fn skill_tags_required(card: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    skills(card).for_each(|skill| demand(skill, "tags", out));
}

crate::rule! {
    /// Skill ids are unique within one card.
    ///
    /// A client picks a skill by its id, so of two skills that share one the second can never be named.
    static SKILL_ID_DUPLICATE = {
        id: "a2a/skill-id-duplicate",
        severity: Severity::Warning,
        impact: Some(Impact::Degrades),
        impact_evidence: "a2a-sdk 0.3.26 and 1.3.0, @a2a-js/sdk 1.3.0, 2026-11",
        versions: EVERY,
        on: &[Kind::AgentCard],
        place: "/skills/*/id",
        fix: "Give every skill its own id.",
        spec: "A2A 1.0 §4.4.5",
        seeds: &["gaip:A2A_SKILL_ID_DUPLICATE", "reader:Duplicate skill id"],
        examples: &[
            fires(&["/skills/1/id"], r#"{"skills": [{"id": "a"}, {"id": "a"}]}"#),
            silent(r#"{"skills": [{"id": "a"}, {"id": "A"}]}"#),
        ],
        check: Check::Document(skill_id_duplicate),
    }
}

fn skill_id_duplicate(card: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let mut seen = HashSet::new();
    for id in skills(card).filter_map(|skill| skill.get("id")) {
        if let Some(text) = id.text()
            && !is_blank(text)
            && !seen.insert(text)
        {
            out.add(id, Later(|| format!("skill id {} is already used", quote(text))));
        }
    }
}

crate::rule! {
    /// A tag says something.
    ///
    /// An empty one is usually what a split at commas left over.
    static SKILL_TAG_EMPTY = {
        id: "a2a/skill-tag-empty",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        basis: Basis::Hint,
        versions: EVERY,
        on: &[Kind::AgentCard],
        place: "/skills/*/tags/*",
        fix: "Remove the empty tag.",
        spec: "A2A 1.0 §4.4.5",
        seeds: &["gaip:A2A_SKILL_TAGS_INVALID"],
        examples: &[
            fires(&["/skills/0/tags/1"], r#"{"skills": [{"tags": ["tides", " "]}]}"#),
            silent(r#"{"skills": [{"tags": ["tides", "-"]}]}"#),
        ],
        check: Check::Document(skill_tag_empty),
    }
}

fn skill_tag_empty(card: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for tag in skills(card).filter_map(|skill| skill.get("tags")).flat_map(Node::items) {
        if tag.text().is_some_and(is_blank) {
            out.add(tag, "the tag is empty");
        }
    }
}

crate::rule! {
    /// A skill's description says more than its name.
    ///
    /// Who chooses by it, a model above all, wants to know what the skill does and what it takes.
    static SKILL_DESCRIPTION_THIN = {
        id: "a2a/skill-description-thin",
        basis: Basis::Hint,
        versions: EVERY,
        on: &[Kind::AgentCard],
        place: "/skills/*/description",
        fix: "Say what the skill does and what input it takes.",
        spec: "A2A 1.0 §4.4.5",
        seeds: &["inspector:skill-quality"],
        examples: &[
            fires(&["/skills/0/description"], r#"{"skills": [{"description": "look up TIDES "}]}"#),
            fires(&["/skills/0/description"], r#"{"skills": [{"description": "Tides."}]}"#),
            silent(r#"{"skills": [{"description": "Looks up tides."}]}"#),
        ],
        check: Check::Document(skill_description_thin),
    }
}

fn skill_description_thin(card: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    /// Fewer characters than a sentence of two short words has.
    const LEAST: usize = 10;
    for skill in skills(card) {
        let Some(description) = skill.get("description") else { continue };
        let Some(text) = description.text().map(str::trim).filter(|text| !text.is_empty()) else { continue };
        let is = |member: &str| {
            let other = skill.get(member).and_then(Node::text).map(str::trim);
            other.is_some_and(|other| {
                text.eq_ignore_ascii_case(other) || (!text.is_ascii() && text.to_lowercase() == other.to_lowercase())
            })
        };
        if is("name") || is("id") {
            out.add(description, Later(|| format!("{} only repeats the skill's name", quote(text))));
        } else if text.chars().take(LEAST).count() < LEAST {
            out.add(description, Later(|| format!("{} hardly says what the skill does", quote(text))));
        }
    }
}

crate::rule! {
    /// A skill has no example.
    ///
    /// Examples are optional; a model that has seen one asks better.
    static SKILL_EXAMPLES_MISSING = {
        id: "a2a/skill-examples-missing",
        class: Class::Fact,
        basis: Basis::Hint,
        versions: EVERY,
        on: &[Kind::AgentCard],
        place: "/skills/*/examples",
        fix: "Add example requests.",
        spec: "A2A 1.0 §4.4.5",
        seeds: &["gaip:A2A_SKILL_EXAMPLES_MISSING"],
        examples: &[
            fires(&["/skills/0/examples"], r#"{"skills": [{"examples": null}]}"#),
            fires(&["/skills/0/examples"], r#"{"skills": [{"examples": []}]}"#),
            silent("{}"),
        ],
        check: Check::Document(skill_examples_missing),
    }
}

fn skill_examples_missing(card: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for skill in skills(card) {
        if skill.given("examples").is_none_or(Node::is_empty) {
            out.add_missing(skill, "examples", "no example of what to ask");
        }
    }
}
