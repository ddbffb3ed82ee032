//! All families together: the rules in order, lookup by id, the revision of the catalogue.

use std::collections::HashMap;
use std::sync::OnceLock;

use sha2::{Digest, Sha256};

use crate::document::Node;
use crate::kind::{Kind, Known, Profile};
use crate::rule::Rule;

/// The rule that runs only where nobody stated the kind.
pub(crate) const KIND_UNRECOGNISED: &str = "common/kind-unrecognised";

/// The families in the order their rules run.
const FAMILIES: &[&[&[&Rule]]] = &[crate::common::TOPICS, crate::a2a::TOPICS, crate::registry::TOPICS];

/// Every rule, in catalogue order.
pub fn rules() -> impl Iterator<Item = &'static Rule> {
    FAMILIES.iter().flat_map(|topics| topics.iter()).flat_map(|topic| topic.iter().copied())
}

/// The rule of that id.
pub fn find(id: &str) -> Option<&'static Rule> {
    static BY_ID: OnceLock<HashMap<&'static str, &'static Rule>> = OnceLock::new();
    BY_ID.get_or_init(|| rules().map(|rule| (rule.id, rule)).collect()).get(id).copied()
}

/// The revision of the catalogue: a hash over id, version, severity and impact of every rule (decisions 5), 16 hex digits.
pub fn revision() -> &'static str {
    static REVISION: OnceLock<String> = OnceLock::new();
    REVISION.get_or_init(|| {
        let mut hash = Sha256::new();
        for rule in rules() {
            hash.update(format!(
                "{} {} {} {:?} {:?} {:?}\n",
                rule.id, rule.version, rule.severity, rule.severity_overrides, rule.impact, rule.impact_overrides
            ));
        }
        hash.finalize()[..8].iter().map(|byte| format!("{byte:02x}")).collect()
    })
}

/// The revision a document is judged as, and how that is known (catalogue §4). A stated version overrides what the
/// document shows, unless the two agree.
pub(crate) fn profile(kind: Kind, root: Node<'_>, stated: Option<&str>) -> (Profile, Known) {
    match kind {
        Kind::AgentCard => crate::a2a::profile(root, stated),
        Kind::ServerJson => crate::registry::profile(root, stated),
        _ => (Profile::NONE, Known::Undetermined),
    }
}
