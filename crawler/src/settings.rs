//! What the crawler is told: which targets, how often, how politely.

use std::collections::BTreeMap;

use plumbline_rules::kind::Kind;
use plumbline_rules::settings;
use serde::{Deserialize, Serialize};

/// Where the official MCP registry answers (decisions 18).
pub const OFFICIAL_REGISTRY: &str = "https://registry.modelcontextprotocol.io";

settings! {
    /// How the crawler goes about its rounds. Times are in the unit that ends the name.
    pub struct CrawlSettings {
        /// Seconds between two looks at one agent card.
        pub card_interval_s: u64 = 3600,
        /// Seconds between two looks at one MCP endpoint.
        pub endpoint_interval_s: u64 = 21_600,
        /// Seconds between two looks at any other single address.
        pub url_interval_s: u64 = 3600,
        /// Seconds between two incremental passes over a registry.
        pub registry_interval_s: u64 = 3600,
        /// Seconds between two full walks of a registry; only a full walk can show that something is gone.
        pub registry_full_interval_s: u64 = 86_400,
        /// Seconds between two readings of a file target.
        pub file_interval_s: u64 = 300,
        /// The longest wait, in seconds, before a failing surface is asked again.
        pub backoff_ceiling_s: u64 = 86_400,
        /// Pages of one registry after which a walk is given up as endless.
        pub max_walk_pages: u32 = 20_000,
        /// Entries of one registry after which a walk is given up as endless.
        pub max_walk_entries: u64 = 2_000_000,
        /// Seconds that a lease on a surface lasts; work whose process died is taken up again after it.
        pub lease_s: u64 = 300,
        /// Seconds that what is in flight may take to finish at shutdown.
        pub drain_s: u64 = 10,
        /// Looks an hour at most, urgent ones first; what is left over waits for the next hour. 0: no such budget.
        pub looks_per_hour: u64 = 0,
        /// Looks out of turn that confirm a change, one, five and fifteen minutes after it, in percent of what could be
        /// looked at in an hour: `looks_per_hour`, or 72,000 without one. Beyond it, and with 0, a change is confirmed by the
        /// next regular look.
        pub verification_percent: u64 = 5,
        /// Seconds that `plumbline crawl` stays to look again at what has changed; `--verify` is 90. With 0 it only says how
        /// much is not confirmed.
        pub verify_in_run_s: u64 = 0,
        /// Who is left alone because they asked: `host:agent.example.com`, `domain:example.com` (with all below it) or
        /// `name:io.github.somebody/server`. Never called and never shown; listed on `/about/crawler`.
        pub opt_out: Vec<String> = Vec::new(),
        /// A file with more of these, one a line; `#` begins a comment. Empty: none.
        pub opt_out_file: String = String::new(),
        /// Addresses that are asked whether the network works before a silence is taken for theirs. Any answer counts.
        pub canaries: Vec<String> = default_canaries(),
        /// How many surfaces are worked on at the same time.
        pub workers: usize = 32,
    }
}

/// What two cores can look at in an hour, about, where `looks_per_hour` sets no bound.
const LOOKS_PER_HOUR: u64 = 72_000;

impl CrawlSettings {
    /// Looks out of turn in an hour, at most; 0: none at all.
    #[must_use]
    pub fn verifications_per_hour(&self) -> u64 {
        let looks = if self.looks_per_hour == 0 { LOOKS_PER_HOUR } else { self.looks_per_hour };
        looks.saturating_mul(self.verification_percent.min(100)) / 100
    }
}

/// Two addresses that exist for such purposes, and the registry that is asked anyway.
fn default_canaries() -> Vec<String> {
    ["https://registry.modelcontextprotocol.io/v0.1/ping", "https://www.iana.org/", "https://example.com/"]
        .map(str::to_owned)
        .to_vec()
}

/// An MCP registry to walk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Registry {
    /// The name shown for it, unique among registries.
    pub name: String,
    /// Its base address, without `/v0.1`.
    pub base: String,
    /// Milliseconds between two requests to it. Default 1000.
    #[serde(default = "registry_pace_ms")]
    pub pace_ms: u64,
    /// Seconds between two passes over it; without it `crawl.registry_interval_s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval_s: Option<u64>,
    /// Seconds between two full walks of it; without it `crawl.registry_full_interval_s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub full_interval_s: Option<u64>,
    /// The environment variable that holds its API key, sent as `X-API-Key`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_env: Option<String>,
    /// The file that holds its API key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_file: Option<String>,
    /// Tags for every target it lists, such as `tier=1`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
}

fn registry_pace_ms() -> u64 {
    1000
}

/// A group of A2A agents: each a host, or the full address of a card that lives under a path of its own.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Domains {
    /// The list that comes with Plumbline.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub builtin: bool,
    /// A file with one host or card address a line; `#` begins a comment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Hosts or card addresses.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub list: Vec<String>,
    /// Tags for every target of the group, such as `tier=1`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Who stands behind them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// Seconds between two looks at a card; without it `crawl.card_interval_s`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval_s: Option<u64>,
    /// Whether they are the operator's own.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub own: bool,
    /// Headers sent to them: a name, and the environment variable that holds the value.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers_env: BTreeMap<String, String>,
}

/// One address of a stated kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SingleUrl {
    /// The address.
    pub url: String,
    /// What stands there: `a2a-card`, `server-json`, `openapi`, …
    pub kind: Kind,
    /// Tags, such as `tier=1`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Who stands behind it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// Seconds between two looks; without it the one of `[crawl]` for this kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval_s: Option<u64>,
    /// Whether it is the operator's own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub own: bool,
    /// Headers sent to it: a name, and the environment variable that holds the value.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers_env: BTreeMap<String, String>,
    /// What may be done to it besides asking; only for an MCP endpoint that is the operator's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active: Option<OwnServer>,
}

/// What may be done to an own MCP server, besides what everybody's are asked. Tokens are named by the variables that hold the
/// whole value of an `Authorization` header.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OwnServer {
    /// Tools that may be called, with their arguments. No other is.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<OwnTool>,
    /// A tool that takes some seconds: it is called and cancelled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slow_tool: Option<OwnTool>,
    /// An address that, when posted to, makes the server change what it offers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub change_hook: Option<String>,
    /// A token that lacks a scope which the tools or their list need.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub low_scope_env: Option<String>,
    /// A token that the same issuer gave for another resource.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub other_audience_env: Option<String>,
    /// A token of another user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub other_user_env: Option<String>,
}

/// A document on disk, read again in every round.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileTarget {
    /// Where it lies.
    pub path: String,
    /// What it is.
    pub kind: Kind,
    /// Tags, such as `tier=1`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Who stands behind it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// Seconds between two looks; without it the one of `[crawl]` for this kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval_s: Option<u64>,
    /// Whether it is the operator's own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub own: bool,
}

/// An MCP server that is a command, talked to over its standard streams. Only commands named here are ever started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommandTarget {
    /// The name shown for it, unique among commands.
    pub name: String,
    /// The program and its arguments. No shell reads them.
    pub command: Vec<String>,
    /// Names of the variables that it gets; its environment holds nothing else.
    #[serde(default = "usual_variables")]
    pub env: Vec<String>,
    /// Where it is started; without it in an empty folder that is removed afterwards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// Tools that may be called, with their arguments. No other is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<OwnTool>,
    /// Tags, such as `tier=1`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Who stands behind it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// Seconds between two runs; without it `crawl.endpoint_interval_s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval_s: Option<u64>,
}

fn usual_variables() -> Vec<String> {
    vec!["PATH".to_owned()]
}

/// A tool of the operator's own server that may be called.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OwnTool {
    /// Its name.
    pub name: String,
    /// What it is called with.
    #[serde(default = "no_arguments")]
    pub arguments: serde_json::Value,
}

fn no_arguments() -> serde_json::Value {
    serde_json::json!({})
}

/// Everything that is watched.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Targets {
    /// MCP registries.
    pub registries: Vec<Registry>,
    /// Groups of A2A agents.
    pub domains: Vec<Domains>,
    /// Single addresses.
    pub urls: Vec<SingleUrl>,
    /// Files.
    pub files: Vec<FileTarget>,
    /// Commands.
    pub commands: Vec<CommandTarget>,
}

impl Targets {
    /// What is watched when nothing is configured: the official registry and the built-in list of domains.
    pub fn builtin() -> Targets {
        let official = Registry {
            name: "official".to_owned(),
            base: OFFICIAL_REGISTRY.to_owned(),
            pace_ms: registry_pace_ms(),
            interval_s: None,
            full_interval_s: None,
            key_env: None,
            key_file: None,
            tags: Vec::new(),
        };
        Targets {
            registries: vec![official],
            domains: vec![Domains { builtin: true, ..Domains::default() }],
            ..Targets::default()
        }
    }
}
