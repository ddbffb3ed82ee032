//! `server.json` documents and the registries that list them.

use crate::document::Node;
use crate::kind::{Known, Profile};
use crate::rule::Rule;

/// The topics in the order their rules run.
pub(crate) const TOPICS: &[&[&Rule]] = &[];

/// The revision a server.json is judged as.
pub(crate) fn profile(_root: Node<'_>, _stated: Option<&str>) -> (Profile, Known) {
    (Profile::NONE, Known::Undetermined)
}
