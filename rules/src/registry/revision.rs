//! The revisions of the server.json schema, and which one a document is judged as.

use crate::document::Node;
use crate::kind::{Known, Profile};

/// Every published revision and the draft.
pub(super) const ALL_REVISIONS: &[&str] =
    &["2025-07-09", "2025-09-16", "2025-09-29", "2025-10-11", "2025-10-17", "2025-12-11", "draft"];
/// Before 2025-09-29 a document could carry its own status.
pub(super) const WITH_STATUS: &[&str] = &["2025-07-09", "2025-09-16"];
/// Published, and superseded since.
pub(super) const OLDER_REVISIONS: &[&str] = &["2025-07-09", "2025-09-16", "2025-09-29", "2025-10-11", "2025-10-17"];
/// Since names are written in camelCase.
pub(super) const SINCE_2025_09_16: &[&str] =
    &["2025-09-16", "2025-09-29", "2025-10-11", "2025-10-17", "2025-12-11", "draft"];
/// Since the status belongs to the registry.
pub(super) const SINCE_2025_09_29: &[&str] = &["2025-09-29", "2025-10-11", "2025-10-17", "2025-12-11", "draft"];
/// Since there are titles and icons, and packages are open.
pub(super) const SINCE_2025_10_11: &[&str] = &["2025-10-11", "2025-10-17", "2025-12-11", "draft"];
/// Since remotes have variables.
pub(super) const SINCE_2025_12_11: &[&str] = &["2025-12-11", "draft"];
/// Up to 2025-09-29 a package may have no members of its own and needs a version.
pub(super) const CLOSED_PACKAGE: &[&str] = &["2025-07-09", "2025-09-16", "2025-09-29"];
/// The versions of the registry's API.
pub(super) const API: &[&str] = &["v0", "v0.1"];

/// The published revisions, oldest first.
const PUBLISHED: &[Profile] = &[
    Profile { name: "server-json-2025-07-09", versions: &["2025-07-09"], needs_all: false },
    Profile { name: "server-json-2025-09-16", versions: &["2025-09-16"], needs_all: false },
    Profile { name: "server-json-2025-09-29", versions: &["2025-09-29"], needs_all: false },
    Profile { name: "server-json-2025-10-11", versions: &["2025-10-11"], needs_all: false },
    Profile { name: "server-json-2025-10-17", versions: &["2025-10-17"], needs_all: false },
    NEWEST,
];
const NEWEST: Profile = Profile { name: "server-json-2025-12-11", versions: &["2025-12-11"], needs_all: false };
const DRAFT: Profile = Profile { name: "server-json-draft", versions: &["draft"], needs_all: false };
const API_V0: Profile = Profile { name: "registry-v0", versions: &["v0"], needs_all: false };
const API_V0_1: Profile = Profile { name: "registry-v0.1", versions: &["v0.1"], needs_all: false };

/// The host that publishes the schemas.
const OFFICIAL: &str = "static.modelcontextprotocol.io";

/// What a `$schema` names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Schema<'d> {
    /// A dated schema under its exact address.
    Dated(&'d str),
    /// The draft, published or in the repository.
    Draft,
    /// The official host, but not one of its addresses.
    Official,
    /// Anything else.
    Foreign,
}

impl<'d> Schema<'d> {
    /// Reads a `$schema`.
    pub(super) fn read(text: &'d str) -> Schema<'d> {
        let place = text.strip_prefix("https://").and_then(|rest| rest.strip_prefix(OFFICIAL));
        let version = place.and_then(|path| path.strip_prefix("/schemas/")?.strip_suffix("/server.schema.json"));
        match version {
            Some("draft") => Schema::Draft,
            Some(date) if is_date(date) => Schema::Dated(date),
            _ if is_draft_in_repository(text) => Schema::Draft,
            _ if crate::text::AbsoluteUrl::parse(text).is_none_or(|url| url.host.eq_ignore_ascii_case(OFFICIAL)) => {
                Schema::Official
            }
            _ => Schema::Foreign,
        }
    }
}

fn is_draft_in_repository(text: &str) -> bool {
    text.starts_with("https://raw.githubusercontent.com/modelcontextprotocol/registry/")
        && text.ends_with("/docs/reference/server-json/draft/server.schema.json")
}

/// `YYYY-MM-DD`, whether or not there is such a day.
fn is_date(text: &str) -> bool {
    let digit_or_dash = |(n, byte): (usize, u8)| if n == 4 || n == 7 { byte == b'-' } else { byte.is_ascii_digit() };
    text.len() == 10 && text.bytes().enumerate().all(digit_or_dash)
}

/// The published revision of that date.
pub(super) fn published(date: &str) -> Option<Profile> {
    PUBLISHED.iter().find(|profile| profile.versions == [date]).copied()
}

/// Whether a date is that of the newest published revision.
pub(super) fn is_newest(date: &str) -> bool {
    NEWEST.versions == [date]
}

/// The revision a server.json is judged as (catalogue §4): the one stated, else the date in `$schema`.
pub(crate) fn profile(root: Node<'_>, stated: Option<&str>) -> (Profile, Known) {
    if let Some(profile) = stated.and_then(named) {
        return (profile, Known::Declared);
    }
    match root.get("$schema").and_then(Node::text) {
        Some(text) => of_schema(text),
        None => (NEWEST, Known::Assumed),
    }
}

fn named(version: &str) -> Option<Profile> {
    if version == "draft" { Some(DRAFT) } else { published(version) }
}

fn of_schema(text: &str) -> (Profile, Known) {
    match Schema::read(text) {
        Schema::Draft => (DRAFT, Known::Declared),
        Schema::Dated(date) => of_date(date),
        Schema::Official => date_inside(text).map_or((NEWEST, Known::Assumed), of_date),
        // Whoever copied or extended a schema mostly left its date in the address.
        Schema::Foreign => match date_inside(text).and_then(published) {
            Some(profile) => (profile, Known::Inferred),
            None => (NEWEST, Known::Assumed),
        },
    }
}

/// A date that nobody published stands for the newest revision not later than it.
fn of_date(date: &str) -> (Profile, Known) {
    if let Some(profile) = published(date) {
        return (profile, Known::Declared);
    }
    let earlier = PUBLISHED.iter().rev().find(|profile| profile.versions.iter().all(|version| *version <= date));
    earlier.map_or((NEWEST, Known::Assumed), |profile| (*profile, Known::Inferred))
}

/// The date between the slashes of an address that is not quite one of the official ones.
fn date_inside(text: &str) -> Option<&str> {
    text.split('/').find(|segment| is_date(segment))
}

/// The API version that a registry's answer is judged as.
pub(crate) fn api_profile(stated: Option<&str>) -> (Profile, Known) {
    match stated {
        Some("v0") => (API_V0, Known::Declared),
        Some("v0.1") => (API_V0_1, Known::Declared),
        _ => (API_V0_1, Known::Assumed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Document;

    fn judged_as(schema: &str) -> (&'static str, Known) {
        let document = Document::from_text(&serde_json::json!({ "$schema": schema }).to_string());
        let (profile, known) = profile(document.root().expect("it parses"), None);
        (profile.name, known)
    }

    #[test]
    fn the_schema_says_which_revision_it_is() {
        let official =
            |version: &str| format!("https://static.modelcontextprotocol.io/schemas/{version}/server.schema.json");
        let rows = [
            (official("2025-07-09"), "server-json-2025-07-09", Known::Declared),
            (official("2025-12-11"), "server-json-2025-12-11", Known::Declared),
            (official("draft"), "server-json-draft", Known::Declared),
            (official("2025-11-25"), "server-json-2025-10-17", Known::Inferred),
            (official("2027-01-01"), "server-json-2025-12-11", Known::Inferred),
            (official("2024-11-05"), "server-json-2025-12-11", Known::Assumed),
            (official("2025-09-29") + "#/definitions/ServerDetail", "server-json-2025-09-29", Known::Declared),
            (official("2025-09-29").replace("https", "http"), "server-json-2025-09-29", Known::Declared),
            ("https://x.example/2025-09-29/server.schema.json".to_owned(), "server-json-2025-09-29", Known::Inferred),
            ("https://x.example/2025-01-01/server.schema.json".to_owned(), "server-json-2025-12-11", Known::Assumed),
            ("".to_owned(), "server-json-2025-12-11", Known::Assumed),
        ];
        for (schema, name, known) in rows {
            assert_eq!(judged_as(&schema), (name, known), "{schema}");
        }
        let raw = "https://raw.githubusercontent.com/modelcontextprotocol/registry/main/docs/reference/server-json/draft/server.schema.json";
        assert_eq!(judged_as(raw), ("server-json-draft", Known::Declared));
    }
}
