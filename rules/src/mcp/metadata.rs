//! `_meta`, where servers and clients keep what the protocol does not define, and the form of its keys, which extensions
//! share.

use super::{ALL, RESULTS, SINCE_2025_06};
use super::{is_since, listed};
use crate::document::{Node, Type};
use crate::judge::{Context, Occurrences};
use crate::rule::{Check, Impact, Rule, Severity, Stops, fires, silent};
use crate::text::quote;

pub(super) const RULES: &[&Rule] = &[&META_NOT_OBJECT, &META_KEY_INVALID, &META_RESERVED_PREFIX];

/// Extensions that the protocol's own working groups published.
pub(super) const OFFICIAL_EXTENSIONS: &[&str] = &[
    "io.modelcontextprotocol/tasks",
    "io.modelcontextprotocol/ui",
    "io.modelcontextprotocol/oauth-client-credentials",
    "io.modelcontextprotocol/enterprise-managed-authorization",
];

/// Keys that some revision of the protocol defines.
const DEFINED: &[&str] = &[
    "io.modelcontextprotocol/protocolVersion",
    "io.modelcontextprotocol/clientInfo",
    "io.modelcontextprotocol/clientCapabilities",
    "io.modelcontextprotocol/serverInfo",
    "io.modelcontextprotocol/logLevel",
    "io.modelcontextprotocol/subscriptionId",
    "io.modelcontextprotocol/related-task",
    "io.modelcontextprotocol/model-immediate-response",
];

/// A key of `_meta`, or the name of an extension.
pub(super) struct Key<'k> {
    /// The reversed domain before the slash.
    pub prefix: Option<&'k str>,
}

impl<'k> Key<'k> {
    /// Reads a key: labels with dots between and a slash behind them, or none of that; then a name.
    pub(super) fn parse(text: &'k str) -> Option<Key<'k>> {
        let (prefix, name) = match text.split_once('/') {
            Some((prefix, name)) => (Some(prefix), name),
            None => (None, text),
        };
        let is_prefix = prefix.is_none_or(|prefix| prefix.split('.').all(is_label));
        (is_prefix && is_name(name)).then_some(Key { prefix })
    }

    /// Whether its prefix is kept for the protocol itself.
    pub(super) fn is_reserved(&self, context: &Context<'_>) -> bool {
        let Some(prefix) = self.prefix else { return false };
        // 2025-06-18 counted from the end: any domain, then such a label, then one more.
        let deciding =
            if is_since(context, "2025-11-25") { prefix.split('.').nth(1) } else { prefix.rsplit('.').nth(1) };
        matches!(deciding, Some("modelcontextprotocol" | "mcp"))
    }
}

/// A letter first, a letter or digit last, hyphens between.
fn is_label(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.ends_with(|c: char| c.is_ascii_alphanumeric())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
}

/// Empty, or letters and digits with hyphens, underscores and dots inside.
fn is_name(text: &str) -> bool {
    let outside = |c: char| c.is_ascii_alphanumeric();
    text.is_empty()
        || (text.starts_with(outside)
            && text.ends_with(outside)
            && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.')))
}

/// Every `_meta` of a result: its own, and those of what it lists or contains, where the revision knows them.
fn metas<'d>(result: Node<'d>, context: &Context<'_>) -> Vec<Node<'d>> {
    let mut metas: Vec<_> = result.get("_meta").into_iter().collect();
    if is_since(context, "2025-06-18") {
        let contained = ["content", "contents"].into_iter().filter_map(|member| result.get(member));
        let messages = result.get("messages").into_iter().flat_map(Node::items).filter_map(|m| m.get("content"));
        let parts = listed(result, context).chain(contained.flat_map(Node::items)).chain(messages);
        metas.extend(parts.filter_map(|part| part.get("_meta")));
    }
    metas
}

crate::rule! {
    /// `_meta` is an object.
    ///
    /// Anything else makes strict clients refuse the whole result.
    static META_NOT_OBJECT = {
        id: "mcp/meta-not-object",
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        impact_evidence: "mcp 1.30.0, @modelcontextprotocol/sdk 1.32.2, 2026-11",
        clients: &["mcp 1.30.0: refuses", "@modelcontextprotocol/sdk 1.32.2: refuses"],
        versions: ALL,
        on: RESULTS,
        place: "/**/_meta",
        fix: "Use an object.",
        spec: "2026-07-28 basic, _meta",
        seeds: &["validator:5.1.1.1"],
        examples: &[
            fires(&["/tools/0/_meta"], r#"{"tools": [{"_meta": "v1"}]}"#).over("mcp-tools-2026-07-28"),
            silent(r#"{"tools": [{"_meta": {}}]}"#).over("mcp-tools-2026-07-28"),
        ],
        stops: Stops::Value,
        check: Check::Document(meta_not_object),
    }
}

fn meta_not_object(result: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    for meta in metas(result, context) {
        if !matches!(meta.kind(), Type::Object | Type::Null) {
            out.add(meta, format!("`_meta` is {}, not an object", meta.kind().named()));
        }
    }
}

crate::rule! {
    /// Keys of `_meta` keep to their form.
    ///
    /// A name, or a reversed domain, a slash and a name. Clients that split keys at the slash stumble over others.
    static META_KEY_INVALID = {
        id: "mcp/meta-key-invalid",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        versions: SINCE_2025_06,
        on: RESULTS,
        place: "/**/_meta/*",
        fix: "Rename the key.",
        spec: "2026-07-28 basic, _meta",
        seeds: &["validator:5.1.1.1"],
        examples: &[
            fires(&["/tools/0/_meta/-bad"], r#"{"tools": [{"_meta": {"-bad": 1}}]}"#).over("mcp-tools-2026-07-28"),
            fires(&["/tools/0/_meta/1com.example~1x"], r#"{"tools": [{"_meta": {"1com.example/x": 1}}]}"#)
                .over("mcp-tools-2026-07-28"),
            silent(r#"{"tools": [{"_meta": {"revision": 3, "traceparent": "00-0-0-01", "ui/resourceUri": "ui://x"}}]}"#)
                .over("mcp-tools-2026-07-28"),
        ],
        check: Check::Document(meta_key_invalid),
    }
}

fn meta_key_invalid(result: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    for (key, value) in metas(result, context).into_iter().flat_map(Node::members) {
        if Key::parse(key).is_none() {
            out.add(value, format!("{} has not the form of a key", quote(key)));
        }
    }
}

crate::rule! {
    /// Keys of others leave the protocol's own prefixes alone.
    ///
    /// A later revision may give such a key a meaning. Under 2025-06-18 the last label but one of the prefix decides, from
    /// 2025-11-25 the second.
    static META_RESERVED_PREFIX = {
        id: "mcp/meta-reserved-prefix",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        versions: SINCE_2025_06,
        on: RESULTS,
        place: "/**/_meta/*",
        fix: "Use your own domain as prefix.",
        spec: "2026-07-28 basic, _meta",
        seeds: &["validator:5.1.1.2"],
        examples: &[
            fires(&["/tools/0/_meta/com.mcp.tools~1x"], r#"{"tools": [{"_meta": {"com.mcp.tools/x": 1}}]}"#)
                .over("mcp-tools-2026-07-28"),
            silent(r#"{"tools": [{"_meta": {"com.example.mcp/x": 1, "io.modelcontextprotocol/ui": {}}}]}"#)
                .over("mcp-tools-2026-07-28"),
        ],
        check: Check::Document(meta_reserved_prefix),
    }
}

fn meta_reserved_prefix(result: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    for (key, value) in metas(result, context).into_iter().flat_map(Node::members) {
        let is_known = DEFINED.contains(&key) || OFFICIAL_EXTENSIONS.contains(&key);
        if !is_known && Key::parse(key).is_some_and(|key| key.is_reserved(context)) {
            out.add(value, format!("{} has a prefix of the protocol itself", quote(key)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_a_name_or_a_prefix_and_a_name() {
        for (text, prefix) in
            [("a", None), ("", None), ("a.b_c-d", None), ("com.ex-1/", Some("com.ex-1")), ("x/y", Some("x"))]
        {
            assert_eq!(Key::parse(text).map(|key| key.prefix), Some(prefix), "{text}");
        }
        for text in ["-a", "a-", "$ref", "1x/y", "x./y", ".x/y", "x/y/z", "/y", "x-/y", "ä"] {
            assert!(Key::parse(text).is_none(), "{text}");
        }
    }
}
