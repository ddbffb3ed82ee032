//! All families together: the rules in order, lookup by id, the revision of the catalogue.

use std::collections::{BTreeMap, HashMap};
use std::sync::OnceLock;

use sha2::{Digest, Sha256};

use crate::document::Node;
use crate::judge::Given;
use crate::kind::{Kind, Known, Profile};
use crate::rule::{Axis, Basis, Class, Evidence, Impact, Mode, Rule, Severity};

/// The rule that runs only where nobody stated the kind.
pub(crate) const KIND_UNRECOGNISED: &str = "common/kind-unrecognised";

/// The families in the order their rules run.
const FAMILIES: &[&[&[&Rule]]] = &[
    crate::common::TOPICS,
    crate::a2a::TOPICS,
    crate::registry::TOPICS,
    crate::mcp::TOPICS,
    crate::oauth::TOPICS,
    crate::openapi::TOPICS,
];

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
        crate::canonical::hex(&hash.finalize()[..8])
    })
}

/// The revision a document is judged as, and how that is known (catalogue §4). A stated version overrides what the
/// document shows, unless the two agree.
pub(crate) fn profile(kind: Kind, root: Node<'_>, stated: Option<&str>, given: &Given) -> (Profile, Known) {
    match kind {
        Kind::AgentCard => crate::a2a::profile(root, stated),
        Kind::ServerJson => crate::registry::profile(root, stated),
        kind if crate::oauth::is_metadata(kind) => crate::oauth::profile(stated),
        Kind::Openapi => crate::openapi::profile(root, stated),
        Kind::RegistryEntry | Kind::RegistryPage | Kind::RegistryWalk | Kind::RegistryHistory | Kind::RegistryDrift => {
            crate::registry::api_profile(stated)
        }
        Kind::McpHistory => (crate::mcp::EVERY_REVISION, Known::Undetermined),
        Kind::History => {
            let last = crate::common::drift::crawls(root).pop().filter(|last| crate::a2a::looks_like_a_card(*last));
            last.map_or((Profile::NONE, Known::Undetermined), |card| crate::a2a::profile(card, stated))
        }
        _ if crate::mcp::is_its_kind(kind) => crate::mcp::profile(kind, root, stated, given.claimed.is_some()),
        _ => (Profile::NONE, Known::Undetermined),
    }
}

/// The part of a document that is judged as a document of its own: the server.json in an entry of a registry.
pub(crate) fn part(kind: Kind, root: Node<'_>) -> Option<(Kind, Node<'_>)> {
    match kind {
        Kind::RegistryEntry => root.given("server").map(|server| (Kind::ServerJson, server)),
        _ => None,
    }
}

/// A rule as programs read it: `plumbline rules --format json` and the JSON of the rule pages.
#[derive(Debug, Clone, serde::Serialize)]
pub struct Entry {
    /// `family/kebab-name`.
    pub id: &'static str,
    /// Raised when the condition changes.
    pub version: u32,
    /// The part of the id before the slash.
    pub family: &'static str,
    /// What it demands, one sentence.
    pub title: String,
    /// Why, in paragraphs.
    pub why: Vec<String>,
    /// What it says something about.
    pub axis: Axis,
    /// Whether it accuses or describes.
    pub class: Class,
    /// What the specification says.
    pub severity: Severity,
    /// Where a specification version differs.
    pub severity_overrides: BTreeMap<&'static str, Severity>,
    /// What released clients do.
    pub impact: Option<Impact>,
    /// Where a specification version differs.
    pub impact_overrides: BTreeMap<&'static str, Impact>,
    /// Which clients were tried, and when.
    pub impact_evidence: &'static str,
    /// What each affected client does.
    pub clients: &'static [&'static str],
    /// Tagged security.
    pub security: bool,
    /// A guess by name, left out of headline and specification answer.
    pub guess: bool,
    /// Place in the first release; 0 for none.
    pub rank: u8,
    /// Where the demand comes from.
    pub basis: Basis,
    /// The specification versions it applies to.
    pub versions: &'static [&'static str],
    /// What has to be done to look.
    pub mode: Mode,
    /// What can prove it.
    pub evidence: Evidence,
    /// The kinds of document it looks at; empty for every kind.
    pub kinds: &'static [Kind],
    /// Where it looks.
    #[serde(rename = "where")]
    pub place: &'static str,
    /// What to do about it.
    pub fix: &'static str,
    /// The section that asks for it.
    pub spec: &'static str,
    /// Rules of published catalogues that it covers.
    pub seeds: &'static [&'static str],
}

impl From<&Rule> for Entry {
    fn from(rule: &Rule) -> Entry {
        Entry {
            id: rule.id,
            version: rule.version,
            family: rule.family(),
            title: rule.title(),
            why: rule.why(),
            axis: rule.axis,
            class: rule.class,
            severity: rule.severity,
            severity_overrides: rule.severity_overrides.iter().copied().collect(),
            impact: rule.impact,
            impact_overrides: rule.impact_overrides.iter().copied().collect(),
            impact_evidence: rule.impact_evidence,
            clients: rule.clients,
            security: rule.security,
            guess: rule.guess,
            rank: rule.rank,
            basis: rule.basis,
            versions: rule.versions,
            mode: rule.mode,
            evidence: rule.evidence,
            kinds: rule.on,
            place: rule.place,
            fix: rule.fix,
            spec: rule.spec,
            seeds: rule.seeds,
        }
    }
}
