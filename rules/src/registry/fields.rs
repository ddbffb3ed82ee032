//! The members of a server.json in every revision, in both spellings, and how rules read them.
//!
//! The first revision wrote snake_case, all later ones camelCase. A rule asks for a member by its present name and gets
//! the other spelling too: that it is spelled wrongly is the business of one rule, not of all.

use std::sync::LazyLock;

use super::revision::{SINCE_2025_09_16 as CAMEL, SINCE_2025_10_11, SINCE_2025_12_11, WITH_STATUS};
use crate::document::Node;
use crate::shape::Holds::{Array, Flag, Free, Object, Text};
use crate::shape::{Field, Place, field};

const SNAKE: &[&str] = &["2025-07-09"];
const DRAFT: &[&str] = &["draft"];

/// The document, down to the lists of inputs.
static SERVER: &[Field] = &[
    field("/$schema", Text),
    field("/name", Text),
    field("/title", Text).known(SINCE_2025_10_11),
    field("/description", Text),
    field("/version", Text),
    field("/status", Text).known(WITH_STATUS),
    field("/websiteUrl", Text).known(CAMEL),
    field("/website_url", Text).known(SNAKE),
    field("/icons", Array).known(SINCE_2025_10_11),
    field("/icons/*", Object),
    field("/icons/*/src", Text),
    field("/icons/*/mimeType", Text),
    field("/icons/*/sizes", Array),
    field("/icons/*/sizes/*", Text),
    field("/icons/*/theme", Text),
    field("/repository", Object),
    field("/repository/url", Text),
    field("/repository/source", Text),
    field("/repository/id", Text),
    field("/repository/subfolder", Text),
    field("/packages", Array),
    field("/packages/*", Object),
    field("/packages/*/registryType", Text).known(CAMEL),
    field("/packages/*/registry_type", Text).known(SNAKE),
    field("/packages/*/registryBaseUrl", Text).known(CAMEL),
    field("/packages/*/registry_base_url", Text).known(SNAKE),
    field("/packages/*/identifier", Text),
    field("/packages/*/version", Text),
    field("/packages/*/fileSha256", Text).known(CAMEL),
    field("/packages/*/file_sha256", Text).known(SNAKE),
    field("/packages/*/runtimeHint", Text).known(CAMEL),
    field("/packages/*/runtime_hint", Text).known(SNAKE),
    field("/packages/*/transport", Object),
    field("/packages/*/transport/type", Text),
    field("/packages/*/transport/url", Text),
    field("/packages/*/transport/headers", Array),
    field("/packages/*/runtimeArguments", Array).known(CAMEL),
    field("/packages/*/runtime_arguments", Array).known(SNAKE),
    field("/packages/*/packageArguments", Array).known(CAMEL),
    field("/packages/*/package_arguments", Array).known(SNAKE),
    field("/packages/*/environmentVariables", Array).known(CAMEL),
    field("/packages/*/environment_variables", Array).known(SNAKE),
    field("/packages/*/postInstallInstructions", Array).known(DRAFT),
    field("/packages/*/postInstallInstructions/*", Free),
    field("/remotes", Array),
    field("/remotes/*", Object),
    field("/remotes/*/type", Text),
    field("/remotes/*/url", Text),
    field("/remotes/*/headers", Array),
    field("/remotes/*/variables", Object).known(SINCE_2025_12_11),
    field("/_meta", Object),
    field("/_meta/*", Free),
];

/// What a person or client fills in.
static INPUT: &[Field] = &[
    field("", Object),
    field("/description", Text),
    field("/isRequired", Flag).known(CAMEL),
    field("/is_required", Flag).known(SNAKE),
    field("/format", Text),
    field("/value", Text),
    field("/isSecret", Flag).known(CAMEL),
    field("/is_secret", Flag).known(SNAKE),
    field("/default", Text),
    field("/placeholder", Text).known(SINCE_2025_10_11),
    field("/choices", Array),
    field("/choices/*", Text),
];

/// What inputs in lists have besides: a name, and values for what their own value leaves open.
static LISTED_INPUT: &[Field] = &[field("/name", Text), field("/variables", Object)];

/// What arguments have besides.
static ARGUMENT: &[Field] = &[
    field("/type", Text),
    field("/valueHint", Text).known(CAMEL),
    field("/value_hint", Text).known(SNAKE),
    field("/isRepeated", Flag).known(CAMEL),
    field("/is_repeated", Flag).known(SNAKE),
];

const ARGUMENT_LISTS: &[&str] = &[
    "/packages/*/runtimeArguments/*",
    "/packages/*/runtime_arguments/*",
    "/packages/*/packageArguments/*",
    "/packages/*/package_arguments/*",
];

const NAMED_LISTS: &[&str] = &[
    "/packages/*/environmentVariables/*",
    "/packages/*/environment_variables/*",
    "/packages/*/transport/headers/*",
    "/remotes/*/headers/*",
];

/// The places of every revision.
pub(super) static PLACES: LazyLock<Place> = LazyLock::new(|| {
    let mut places = Place::of(SERVER);
    places.add(&["/remotes/*/variables/*"], INPUT);
    for list in ARGUMENT_LISTS.iter().chain(NAMED_LISTS) {
        places.add(&[list], INPUT);
        places.add(&[list], LISTED_INPUT);
        places.add(&[list, "/variables/*"], INPUT);
    }
    for list in ARGUMENT_LISTS {
        places.add(&[list], ARGUMENT);
    }
    places
});

/// Names since 2025-09-16, and as the first revision wrote them.
const SPELLINGS: &[(&str, &str)] = &[
    ("registryType", "registry_type"),
    ("registryBaseUrl", "registry_base_url"),
    ("fileSha256", "file_sha256"),
    ("runtimeHint", "runtime_hint"),
    ("runtimeArguments", "runtime_arguments"),
    ("packageArguments", "package_arguments"),
    ("environmentVariables", "environment_variables"),
    ("isRequired", "is_required"),
    ("isSecret", "is_secret"),
    ("valueHint", "value_hint"),
    ("isRepeated", "is_repeated"),
    ("websiteUrl", "website_url"),
];

/// The present name for a name of the first revision.
pub(super) fn camel_case(snake: &str) -> Option<&'static str> {
    SPELLINGS.iter().find(|(_, old)| *old == snake).map(|(new, _)| *new)
}

/// The first revision's name for a present name.
pub(super) fn snake_case(camel: &str) -> Option<&'static str> {
    SPELLINGS.iter().find(|(new, _)| *new == camel).map(|(_, old)| *old)
}

/// The name that the judged revision gives a member.
pub(super) fn spelled<'n>(camel: &'n str, versions: &[&str]) -> &'n str {
    if versions == SNAKE { snake_case(camel).unwrap_or(camel) } else { camel }
}

/// A member that is there and not `null`, in either spelling.
pub(super) fn member<'d>(object: Node<'d>, camel: &str) -> Option<Node<'d>> {
    object.given(camel).or_else(|| object.given(snake_case(camel)?))
}

/// The text of a member that is a string and not empty.
pub(super) fn filled<'d>(object: Node<'d>, camel: &str) -> Option<&'d str> {
    member(object, camel)?.text().filter(|text| !text.is_empty())
}

/// Whether a member is not there, is `null`, or is the empty string. Out of sight counts as there.
pub(super) fn is_blank(object: Node<'_>, camel: &str) -> bool {
    member(object, camel).is_none_or(|node| node.text() == Some(""))
}

/// The items of a member that is a list.
pub(super) fn list<'d>(object: Node<'d>, camel: &str) -> impl Iterator<Item = Node<'d>> {
    member(object, camel).into_iter().flat_map(Node::items)
}
