//! What a document is: the kinds we judge, and the profile (revision) one is judged as.

use crate::document::{MAX_DEPTH, MAX_READ_DEPTH, Node, Type};

crate::words! {
    /// The kinds of document, spelled as in the vectors and in settings.
    pub enum Kind {
        /// An A2A agent card of any release.
        AgentCard = "a2a-card",
        /// A `server.json` as listed by an MCP registry.
        ServerJson = "server-json",
        /// One entry of a registry's list: a `server.json` and the registry's `_meta`.
        RegistryEntry = "registry-entry",
        /// One answer of a registry's list.
        RegistryPage = "registry-page",
        /// A whole walk through a registry's list, page by page.
        RegistryWalk = "registry-walk",
        /// What a registry, or several, said about one thing at several times.
        RegistryHistory = "registry-history",
        /// An entry of a registry's list, and what was seen of its remotes, repository and packages, oldest first.
        RegistryDrift = "registry-drift",
        /// An MCP server card of either form.
        McpServerCard = "mcp-server-card",
        /// The catalogue at `/.well-known/ai-catalog.json`.
        McpAiCatalog = "mcp-ai-catalog",
        /// The result of `initialize`.
        McpInitializeResult = "mcp-initialize-result",
        /// The result of `server/discover`.
        McpDiscoverResult = "mcp-discover-result",
        /// The result of a whole `tools/list`.
        McpToolsListResult = "mcp-tools-list-result",
        /// The result of `resources/list`.
        McpResourcesListResult = "mcp-resources-list-result",
        /// The result of `resources/templates/list`.
        McpResourceTemplatesListResult = "mcp-resource-templates-list-result",
        /// The result of `prompts/list`.
        McpPromptsListResult = "mcp-prompts-list-result",
        /// The pages of one listing, in order, with the cursors that were sent.
        McpListPages = "mcp-list-pages",
        /// The results of two complete `tools/list` of one run.
        McpToolsListPair = "mcp-tools-list-pair",
        /// The result of `tools/call`.
        McpCallToolResult = "mcp-call-tool-result",
        /// The result of `resources/read`.
        McpReadResourceResult = "mcp-read-resource-result",
        /// The result of `prompts/get`.
        McpGetPromptResult = "mcp-get-prompt-result",
        /// The result of `completion/complete`.
        McpCompleteResult = "mcp-complete-result",
        /// A result that asks for input first.
        McpInputRequiredResult = "mcp-input-required-result",
        /// The parameters of `elicitation/create`.
        McpElicitationRequest = "mcp-elicitation-request",
        /// A message that a server sent on its own, or several in order.
        McpServerMessage = "mcp-server-message",
        /// An answer of JSON-RPC, as parsed.
        JsonrpcResponse = "jsonrpc-response",
        /// What an MCP endpoint said of itself in complete runs, oldest first (`runs`), each with its access class.
        McpHistory = "mcp-history",
        /// An MCP endpoint: what was said with it.
        McpEndpoint = "mcp-endpoint",
        /// RFC 9728 metadata.
        OauthProtectedResource = "oauth-protected-resource",
        /// RFC 8414 metadata.
        OauthAuthorizationServer = "oauth-authorization-server",
        /// OpenID Connect discovery metadata.
        OauthOpenidConfiguration = "oauth-openid-configuration",
        /// The metadata a client publishes at the address that is its client id.
        OauthClientMetadata = "oauth-client-metadata",
        /// A token endpoint's answer.
        OauthTokenResponse = "oauth-token-response",
        /// Documents of one place that were accepted one after the other, oldest first (`crawls`), with what the operator
        /// expects (`pin`), what came of asking (`observations`), the times of the looks (`at`) and the keys of the signer
        /// (`jwks`).
        History = "history",
        /// An OpenAPI description.
        Openapi = "openapi",
        /// A JSON document whose kind nobody stated and nothing shows.
        Unknown = "unknown",
    }
}

impl Kind {
    /// How a person calls it.
    pub fn named(self) -> &'static str {
        match self {
            Kind::AgentCard => "agent card",
            Kind::ServerJson => "server.json",
            Kind::RegistryEntry => "registry entry",
            Kind::RegistryPage => "registry page",
            Kind::RegistryWalk => "registry walk",
            Kind::RegistryHistory => "registry history",
            Kind::RegistryDrift => "registry entry and what answers",
            Kind::McpServerCard => "MCP server card",
            Kind::McpAiCatalog => "AI catalogue",
            Kind::McpInitializeResult => "initialize result",
            Kind::McpDiscoverResult => "discover result",
            Kind::McpToolsListResult => "tool list",
            Kind::McpResourcesListResult => "resource list",
            Kind::McpResourceTemplatesListResult => "resource template list",
            Kind::McpPromptsListResult => "prompt list",
            Kind::McpListPages => "paginated listing",
            Kind::McpToolsListPair => "pair of tool lists",
            Kind::McpCallToolResult => "tool result",
            Kind::McpReadResourceResult => "resource content",
            Kind::McpGetPromptResult => "prompt",
            Kind::McpCompleteResult => "completion",
            Kind::McpInputRequiredResult => "request for input",
            Kind::McpElicitationRequest => "elicitation request",
            Kind::McpServerMessage => "server message",
            Kind::JsonrpcResponse => "JSON-RPC answer",
            Kind::McpHistory => "history of an MCP endpoint",
            Kind::McpEndpoint => "MCP endpoint",
            Kind::OauthProtectedResource => "protected resource metadata",
            Kind::OauthAuthorizationServer => "authorization server metadata",
            Kind::OauthOpenidConfiguration => "OpenID configuration",
            Kind::OauthClientMetadata => "OAuth client metadata",
            Kind::OauthTokenResponse => "token response",
            Kind::History => "history",
            Kind::Openapi => "OpenAPI document",
            Kind::Unknown => "document of unknown kind",
        }
    }

    /// How many decoded bytes one of its kind may have (`common/too-large`).
    pub fn limit_bytes(self) -> usize {
        const KIB: usize = 1024;
        match self {
            Kind::AgentCard | Kind::McpServerCard | Kind::McpAiCatalog | Kind::Unknown => 256 * KIB,
            Kind::ServerJson | Kind::RegistryEntry => 128 * KIB,
            Kind::OauthProtectedResource
            | Kind::OauthAuthorizationServer
            | Kind::OauthOpenidConfiguration
            | Kind::OauthClientMetadata
            | Kind::OauthTokenResponse => 64 * KIB,
            Kind::RegistryPage
            | Kind::RegistryWalk
            | Kind::RegistryHistory
            | Kind::RegistryDrift
            | Kind::McpHistory
            | Kind::History => 8 * KIB * KIB,
            Kind::Openapi
            | Kind::McpInitializeResult
            | Kind::McpDiscoverResult
            | Kind::McpToolsListResult
            | Kind::McpResourcesListResult
            | Kind::McpResourceTemplatesListResult
            | Kind::McpPromptsListResult
            | Kind::McpListPages
            | Kind::McpToolsListPair
            | Kind::McpCallToolResult
            | Kind::McpReadResourceResult
            | Kind::McpGetPromptResult
            | Kind::McpCompleteResult
            | Kind::McpInputRequiredResult
            | Kind::McpElicitationRequest
            | Kind::McpServerMessage
            | Kind::McpEndpoint
            | Kind::JsonrpcResponse => 4 * KIB * KIB,
        }
    }

    /// How many levels of arrays and objects one of its kind may nest (`common/too-deep`).
    pub fn limit_depth(self) -> usize {
        if self == Kind::McpToolsListResult { MAX_READ_DEPTH } else { MAX_DEPTH }
    }

    /// The kind that is due at a well-known address, where the document has a member of it: an address alone makes nothing
    /// of an error page.
    pub fn at_address(address: &str, root: Node<'_>) -> Option<Kind> {
        let kind = crate::oauth::kind_at(address)?;
        let has = |name: &str| root.get(name).is_some();
        let fits = match kind {
            Kind::OauthProtectedResource => has("resource") || has("authorization_servers"),
            _ => has("issuer") || has("jwks_uri") || root.members().any(|(key, _)| key.ends_with("_endpoint")),
        };
        fits.then_some(kind)
    }

    /// The kind of a document that nobody named, by the signs of `common/kind-unrecognised` in their order.
    pub fn detect(root: Node<'_>) -> Kind {
        let text = |key: &str| root.get(key).and_then(Node::text).unwrap_or_default();
        if let Some(kind) = kind_of_schema(text("$schema")) {
            return kind;
        }
        if ["openapi", "swagger"].iter().any(|member| root.get(member).is_some_and(is_release)) {
            return Kind::Openapi;
        }
        if root.get("issuer").is_some() && root.members().any(|(key, _)| key.ends_with("_endpoint")) {
            return Kind::OauthAuthorizationServer;
        }
        if root.get("resource").is_some() && root.get("authorization_servers").is_some() {
            return Kind::OauthProtectedResource;
        }
        let wrapped = |entry: Node<'_>| entry.get("server").is_some_and(|server| server.get("name").is_some());
        if root.get("servers").is_some_and(|servers| servers.items().next().is_some_and(wrapped)) {
            return Kind::RegistryPage;
        }
        if crate::mcp::is_whole_older_card(root) {
            Kind::McpServerCard
        } else if crate::a2a::looks_like_a_card(root) {
            Kind::AgentCard
        } else {
            Kind::Unknown
        }
    }
}

/// Whether a member says which release of OpenAPI it is, such as `3.1.0`. Other documents have an address there.
fn is_release(version: Node<'_>) -> bool {
    let text = version.text().unwrap_or_else(|| if version.kind() == Type::Number { version.raw() } else { "" });
    let digits = text.trim().trim_start_matches('v');
    digits.split_once('.').map_or(digits, |(major, _)| major).parse::<u8>().is_ok()
}

fn kind_of_schema(schema: &str) -> Option<Kind> {
    if schema.contains("server.schema.json") {
        Some(Kind::ServerJson)
    } else if schema.contains("server-card.schema.json") || schema.contains("mcp-server-card") {
        Some(Kind::McpServerCard)
    } else {
        None
    }
}

crate::words! {
    /// How it is known which revision a document is judged as (catalogue §4).
    pub enum Known {
        /// It says so.
        Declared = "declared",
        /// Its shape leaves no other.
        Inferred = "inferred",
        /// Nothing tells, and the specification has a default.
        Assumed = "assumed",
        /// Nothing tells.
        Undetermined = "undetermined",
    }
}

/// The revision a document is judged as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Profile {
    /// Its name in reports: `a2a-hybrid`, `server-json-2025-12-11`.
    pub name: &'static str,
    /// The specification versions whose rules apply.
    pub versions: &'static [&'static str],
    /// Only rules that name every one of `versions` apply, as for a card that shows no version.
    pub needs_all: bool,
}

impl Profile {
    /// For kinds without revisions of their own.
    pub const NONE: Profile = Profile { name: "", versions: &[], needs_all: false };

    /// Whether rules of that version apply.
    pub fn has(&self, version: &str) -> bool {
        self.versions.contains(&version)
    }

    /// Whether a rule of these versions applies.
    pub fn admits(&self, versions: &[&str]) -> bool {
        if versions.contains(&"all") {
            return true;
        }
        let named = |version: &&str| versions.contains(version);
        if self.needs_all { self.versions.iter().all(named) } else { self.versions.iter().any(named) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Document;

    fn kind_of(text: &str) -> Kind {
        Kind::detect(Document::from_text(text).root().expect("it parses"))
    }

    #[test]
    fn manifests_of_mcp_are_no_agent_cards() {
        let bare =
            r#"{"name": "Tides", "description": "Tide tables", "version": "1.0.0", "url": "https://tides.example.com""#;
        for sign in [
            r#""capabilities": {"tools": {}}"#,
            r#""capabilities": {"resources": true}"#,
            r#""capabilities": {"prompts": ["today"]}"#,
            r#""capabilities": {"logging": {}}"#,
            r#""capabilities": {}, "serverInfo": {"name": "tides"}"#,
            r#""capabilities": {}, "transport": "streamable-http""#,
            r#""capabilities": {}, "remotes": [{"type": "sse", "url": "https://tides.example.com/sse"}]"#,
            r#""capabilities": {}, "tools": [{"name": "today"}]"#,
            r#""capabilities": {}, "mcpServers": {"tides": {"command": "tides"}}"#,
            r#""capabilities": {}, "protocolVersion": "2025-06-18""#,
        ] {
            assert_eq!(kind_of(&format!("{bare}, {sign}}}")), Kind::Unknown, "{sign}");
        }
        assert_eq!(kind_of(&format!("{bare}, \"capabilities\": {{}}}}")), Kind::AgentCard);
        assert_eq!(kind_of(&format!("{bare}, \"tools\": [], \"skills\": []}}")), Kind::AgentCard);
        // A list of what it can do is no object of MCP.
        assert_eq!(kind_of(&format!("{bare}, \"tools\": [], \"capabilities\": [\"search\"]}}")), Kind::AgentCard);
        let dated = r#""capabilities": {"streaming": true}, "protocolVersion": "0.3.0""#;
        assert_eq!(kind_of(&format!("{bare}, {dated}}}")), Kind::AgentCard);
    }

    #[test]
    fn a_whole_card_of_the_older_form_needs_no_schema() {
        let card = r#"{"serverInfo": {"name": "tides", "version": "1"}, "transport": {"type": "sse", "endpoint": "/sse"},
            "protocolVersion": "2025-06-18", "capabilities": {"tools": {}}}"#;
        assert_eq!(kind_of(card), Kind::McpServerCard);
        let answer = r#"{"serverInfo": {"name": "tides"}, "protocolVersion": "2025-06-18", "capabilities": {}}"#;
        assert_eq!(kind_of(answer), Kind::Unknown);
    }

    #[test]
    fn a_well_known_address_tells_which_metadata_it_is() {
        let at =
            |address: &str, text: &str| Kind::at_address(address, Document::from_text(text).root().expect("it parses"));
        let issuer =
            r#"{"issuer": "https://login.tides.example.com", "jwks_uri": "https://login.tides.example.com/keys"}"#;
        let openid = "https://login.tides.example.com/tenant/.well-known/openid-configuration";
        let server = "https://login.tides.example.com/.well-known/oauth-authorization-server/tenant";
        let resource = "https://tides.example.com/.well-known/oauth-protected-resource";
        assert_eq!(at(openid, issuer), Some(Kind::OauthOpenidConfiguration));
        assert_eq!(at(server, issuer), Some(Kind::OauthAuthorizationServer));
        assert_eq!(at(resource, r#"{"resource": "https://tides.example.com"}"#), Some(Kind::OauthProtectedResource));
        assert_eq!(at(openid, r#"{"error": "not found"}"#), None);
        assert_eq!(at("https://tides.example.com/openid-configuration", issuer), None);
    }

    #[test]
    fn openapi_is_a_release_and_not_an_address() {
        for member in [r#""openapi": "3.1.0""#, r#""swagger": "2.0""#, r#""openapi": 3.1"#, r#""openapi": "4""#] {
            assert_eq!(kind_of(&format!("{{{member}}}")), Kind::Openapi, "{member}");
        }
        for member in [r#""openapi": "https://tides.example.com/openapi.json""#, r#""openapi": {"url": "3.1"}"#] {
            assert_eq!(kind_of(&format!("{{{member}}}")), Kind::Unknown, "{member}");
        }
    }
}
