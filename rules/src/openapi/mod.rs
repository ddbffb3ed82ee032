//! OpenAPI 3.0 and 3.1 documents that agents may call.

mod info;
mod operations;
mod parameters;
mod parts;
mod paths;
mod reference;
mod requirements;
mod responses;
mod schemas;
mod schemes;
mod servers;
mod version;

use crate::document::{Node, Type};
use crate::judge::Context;
use crate::kind::{Kind, Known, Profile};
use crate::rule::Rule;

/// The topics in the order their rules run.
pub(crate) const TOPICS: &[&[&Rule]] = &[
    version::RULES,
    info::RULES,
    servers::RULES,
    paths::RULES,
    operations::RULES,
    parameters::RULES,
    responses::RULES,
    reference::RULES,
    schemas::RULES,
    requirements::RULES,
    schemes::RULES,
];

const V3: &[&str] = &["3.0", "3.1"];

const OPENAPI: &[Kind] = &[Kind::Openapi];

const V3_1: Profile = Profile { name: "openapi-3.1", versions: &["3.1"], needs_all: false };
const V3_0: Profile = Profile { name: "openapi-3.0", versions: &["3.0"], needs_all: false };
const V2_0: Profile = Profile { name: "openapi-2.0", versions: &["2.0"], needs_all: false };

/// The version a document is judged as: the first two numbers of `openapi`, 3.2 read as 3.1.
pub(crate) fn profile(root: Node<'_>, stated: Option<&str>) -> (Profile, Known) {
    let named = stated.and_then(|version| [V3_1, V3_0, V2_0].into_iter().find(|profile| profile.has(version)));
    if let Some(profile) = named {
        return (profile, Known::Declared);
    }
    match root.get("openapi").and_then(Node::text) {
        Some(text) if is_release(text, "3.0") => (V3_0, Known::Declared),
        Some(text) if is_release(text, "3.1") || is_release(text, "3.2") => (V3_1, Known::Declared),
        None if root.get("swagger").is_some() => (V2_0, Known::Declared),
        _ => (V3_1, Known::Undetermined),
    }
}

/// Whether a version is that release or a patch of it: `3.1`, `3.1.0`, `3.1.0-rc1`, and not `3.10`.
fn is_release(version: &str, release: &str) -> bool {
    version.strip_prefix(release).is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_digit()))
}

fn is_3_0(context: &Context<'_>) -> bool {
    context.profile.has("3.0")
}

/// The member of that name, when it is an object.
fn object<'d>(node: Node<'d>, name: &str) -> Option<Node<'d>> {
    node.get(name).filter(|member| member.kind() == Type::Object)
}

/// Whether the member of that name is a text that says something.
fn says(node: Node<'_>, name: &str) -> bool {
    node.get(name).and_then(Node::text).is_some_and(|text| !text.trim().is_empty())
}
