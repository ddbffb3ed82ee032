//! How much is read and how long is waited: every bound of one exchange, with its reason.

use std::time::Duration;

use plumbline_rules::settings;

/// What a body is expected to be, which decides how much of it is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BodyKind {
    /// An A2A agent card.
    AgentCard,
    /// An MCP server card.
    ServerCard,
    /// One server.json.
    ServerJson,
    /// OAuth or OpenID Connect metadata.
    OauthMetadata,
    /// A set of public keys.
    KeySet,
    /// An OpenAPI document.
    OpenApi,
    /// One page of a registry's list.
    RegistryPage,
    /// One answer of an MCP endpoint.
    McpAnswer,
    /// A page that somebody links to.
    Page,
    /// A robots.txt.
    Robots,
    /// The answer of a webhook's receiver.
    WebhookAnswer,
    /// A document of unknown kind.
    Other,
}

settings! {
    /// Most decoded bytes that are read of a body, by its kind. A body of exactly the limit is whole.
    pub struct ByteLimits {
        /// An agent card, bytes. The largest one known has 23 kB.
        pub agent_card: u64 = 256 * KIB,
        /// An MCP server card, bytes.
        pub server_card: u64 = 256 * KIB,
        /// One server.json, bytes. The largest one known has 62 kB.
        pub server_json: u64 = 128 * KIB,
        /// OAuth or OpenID Connect metadata, bytes.
        pub oauth_metadata: u64 = 64 * KIB,
        /// A set of public keys, bytes.
        pub key_set: u64 = 256 * KIB,
        /// An OpenAPI document, bytes.
        pub openapi: u64 = 4 * MIB,
        /// One page of a registry's list, bytes.
        pub registry_page: u64 = 8 * MIB,
        /// One answer of an MCP endpoint or one event of its stream, bytes.
        pub mcp_answer: u64 = 4 * MIB,
        /// A page that a card links to, bytes: whether it is there is all that is asked.
        pub page: u64 = 8 * KIB,
        /// A robots.txt, bytes. RFC 9309 asks for 500 KiB at least.
        pub robots: u64 = 500 * KIB,
        /// The answer of a webhook's receiver, bytes.
        pub webhook_answer: u64 = 8 * KIB,
        /// A document of unknown kind, bytes.
        pub other: u64 = 4 * MIB,
    }
}

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;

impl ByteLimits {
    /// Most decoded bytes of this kind.
    #[must_use]
    pub fn decoded(&self, kind: BodyKind) -> u64 {
        match kind {
            BodyKind::AgentCard => self.agent_card,
            BodyKind::ServerCard => self.server_card,
            BodyKind::ServerJson => self.server_json,
            BodyKind::OauthMetadata => self.oauth_metadata,
            BodyKind::KeySet => self.key_set,
            BodyKind::OpenApi => self.openapi,
            BodyKind::RegistryPage => self.registry_page,
            BodyKind::McpAnswer => self.mcp_answer,
            BodyKind::Page => self.page,
            BodyKind::Robots => self.robots,
            BodyKind::WebhookAnswer => self.webhook_answer,
            BodyKind::Other => self.other,
        }
    }

    /// Most bytes of this kind that may cross the wire. A coding adds a few percent where it cannot compress; more than
    /// that is padding that never becomes a document.
    #[must_use]
    pub fn raw(&self, kind: BodyKind) -> u64 {
        let decoded = self.decoded(kind);
        decoded.saturating_add(decoded / 8).saturating_add(4 * KIB)
    }
}

settings! {
    /// How long is waited for each part of one exchange. Waiting for our own turn does not count.
    pub struct TimeLimits {
        /// For the name servers, milliseconds.
        pub dns_ms: u64 = 5_000,
        /// For the connection, name lookup and TLS included, milliseconds.
        pub connect_ms: u64 = 10_000,
        /// From sending the request to the end of the answer's headers, milliseconds. Registries were seen to take 25 s.
        pub head_ms: u64 = 40_000,
        /// Between two pieces of the body, milliseconds.
        pub idle_ms: u64 = 20_000,
        /// From sending the request to the end of the body, milliseconds.
        pub total_ms: u64 = 60_000,
    }
}

impl TimeLimits {
    pub(super) fn dns(&self) -> Duration {
        Duration::from_millis(self.dns_ms)
    }

    pub(super) fn connect(&self) -> Duration {
        Duration::from_millis(self.connect_ms)
    }

    pub(super) fn head(&self) -> Duration {
        Duration::from_millis(self.head_ms.min(self.total_ms))
    }

    pub(super) fn idle(&self) -> Duration {
        Duration::from_millis(self.idle_ms)
    }

    pub(super) fn total(&self) -> Duration {
        Duration::from_millis(self.total_ms)
    }
}

/// Most redirects that are followed for one ask (`common/redirect-limit`).
pub const MAX_REDIRECTS: usize = 5;

/// Most header fields of an answer; real answers stay below 60.
pub(super) const MAX_HEADERS: usize = 256;

/// Most bytes of headers over HTTP/2, as the setting that is sent to the server.
pub(super) const MAX_HEADER_BYTES_H2: u32 = 64 * 1024;

/// Most bytes of one recorded header value; what goes beyond is left out of the record.
pub(super) const MAX_RECORDED_VALUE: usize = 8 * 1024;

/// Most bytes of one recorded address; longer ones are refused.
pub(super) const MAX_URL: usize = 8 * 1024;

/// Largest window of a zstd body, as a power of two: the 8 MiB that RFC 9659 allows on the web. Without it a body of a
/// few bytes may ask for 128 MiB of memory.
pub(super) const ZSTD_WINDOW_LOG: u32 = 23;

/// Most content codings laid over one another.
pub(super) const MAX_CODINGS: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_raw_limit_leaves_room_for_a_coding_that_cannot_compress() {
        let limits = ByteLimits::default();
        assert_eq!(limits.decoded(BodyKind::AgentCard), 262_144);
        assert!(limits.raw(BodyKind::AgentCard) > 262_144 + 262_144 / 100);
        assert_eq!(ByteLimits { other: u64::MAX, ..limits }.raw(BodyKind::Other), u64::MAX);
    }

    #[test]
    fn unknown_limits_are_refused() {
        assert!(serde_json::from_str::<ByteLimits>(r#"{"agent_cart": 1}"#).is_err());
        assert!(serde_json::from_str::<TimeLimits>(r#"{"connect": 1}"#).is_err());
        let one: TimeLimits = serde_json::from_str(r#"{"connect_ms": 1}"#).unwrap();
        assert_eq!(one, TimeLimits { connect_ms: 1, ..TimeLimits::default() });
    }
}
