//! The closed lists of this crate, each with its one spelling for SQL, JSON, addresses and style sheets.

pub use plumbline_rules::kind::Known;
pub use plumbline_rules::report::Headline;
pub use plumbline_rules::rule::{Axis, Basis, Class, Evidence, Impact, Severity};
use plumbline_rules::words;

/// The headline as a number for ordering lists: the worst is 0 and comes first.
#[must_use]
pub fn headline_rank(headline: Headline) -> i64 {
    match headline {
        Headline::Blocked => 0,
        Headline::Deviates => 1,
        Headline::Sound => 2,
        Headline::NotDetected => 3,
        Headline::NotEvaluated => 4,
    }
}

words! {
    /// What kind of thing a person watches.
    pub enum TargetKind {
        /// A server listed in an MCP registry, or an MCP endpoint by itself.
        McpServer = "mcp-server",
        /// An A2A agent, by its card.
        A2aAgent = "a2a-agent",
        /// An HTTP API, by its OpenAPI description.
        OpenapiService = "openapi-service",
        /// An authorization server or protected resource, by its metadata.
        OauthService = "oauth-service",
        /// Any other address.
        Other = "other",
    }
}

words! {
    /// A fetchable face of a target. Documents are spelled as the kinds of the rules crate.
    pub enum SurfaceKind {
        /// An agent card.
        AgentCard = "a2a-card",
        /// A `server.json`, by itself or as an entry of a registry.
        ServerJson = "server-json",
        /// An MCP endpoint.
        McpEndpoint = "mcp-endpoint",
        /// An interface named by an agent card.
        A2aInterface = "a2a-interface",
        /// An MCP server card.
        McpServerCard = "mcp-server-card",
        /// RFC 9728 metadata.
        OauthProtectedResource = "oauth-protected-resource",
        /// RFC 8414 metadata.
        OauthAuthorizationServer = "oauth-authorization-server",
        /// OpenID Connect discovery metadata.
        OauthOpenidConfiguration = "oauth-openid-configuration",
        /// An OpenAPI description.
        Openapi = "openapi",
        /// A key set.
        Jwks = "jwks",
        /// A document whose kind is to be detected.
        Unknown = "unknown",
    }
}

words! {
    /// As what a target shows a surface.
    pub enum Role {
        /// Its own document: the card, the listing, the description.
        Main = "main",
        /// Where an MCP client connects.
        Endpoint = "endpoint",
        /// An interface of its card.
        Interface = "interface",
        /// Metadata it leads to.
        Metadata = "metadata",
    }
}

words! {
    /// Where targets come from.
    pub enum SourceKind {
        /// An MCP registry.
        McpRegistry = "mcp-registry",
        /// A list of A2A domains.
        Domains = "domains",
        /// A file of addresses.
        File = "file",
        /// Single targets in the settings.
        Settings = "settings",
        /// The command line.
        CommandLine = "command-line",
    }
}

words! {
    /// What one crawl is.
    pub enum CrawlKind {
        /// A whole registry.
        FullWalk = "full-walk",
        /// What a registry says has moved.
        IncrementalWalk = "incremental-walk",
        /// Whatever was due.
        Round = "round",
        /// One thing a person asked for.
        Check = "check",
    }
}

words! {
    /// How far a crawl or walk came.
    pub enum CrawlState {
        /// At work.
        Running = "running",
        /// All that was to be looked at was looked at.
        Complete = "complete",
        /// It ended, but not all was seen.
        Incomplete = "incomplete",
        /// It was stopped, or its process ended, before it did.
        Interrupted = "interrupted",
    }
}

words! {
    /// The stored state of a finding (see [`crate::machine`]).
    pub enum FindingState {
        /// Fired, not yet confirmed.
        Pending = "pending",
        /// Holds.
        Open = "open",
        /// Stopped firing, not yet confirmed.
        Clearing = "clearing",
        /// Over.
        Resolved = "resolved",
        /// Comes and goes too often to speak of each time.
        Flapping = "flapping",
        /// Its target or rule is no longer there.
        Retired = "retired",
    }
}

impl FindingState {
    /// Counts as failing.
    #[must_use]
    pub fn is_open(self) -> bool {
        matches!(self, FindingState::Open | FindingState::Clearing | FindingState::Flapping)
    }
}

words! {
    /// As what a finding opened.
    pub enum OpenedAs {
        /// At the surface's first complete evaluation.
        Baseline = "baseline",
        /// New, on a surface without a track record.
        First = "first",
        /// Never seen before, on a surface that had passed this rule for a day or more.
        Broke = "broke",
        /// Had been resolved as fixed before.
        Again = "again",
        /// Because a rule changed.
        Rule = "rule",
    }
}

words! {
    /// What moved when a finding opened.
    pub enum Cause {
        /// Nothing: it was there at the first look.
        Baseline = "baseline",
        /// The document.
        Document = "document",
        /// The endpoint's behaviour.
        Behaviour = "behaviour",
        /// Time went by.
        Clock = "clock",
        /// Our rule.
        Rule = "rule",
        /// Our rule and the document; neither alone would have done it.
        Joint = "joint",
        /// Cannot be proved.
        Unknown = "unknown",
    }
}

words! {
    /// Why a finding is over.
    pub enum Resolution {
        /// It was looked at and no longer fires.
        Fixed = "fixed",
        /// The document is no longer there.
        DocumentGone = "document_gone",
        /// The target left its sources.
        TargetRetired = "target_retired",
        /// The rule changed or was withdrawn.
        RuleChanged = "rule_changed",
    }
}

words! {
    /// Whether a surface can be reached, over several observations (see [`crate::reach`]).
    pub enum ReachState {
        /// Never looked at.
        Unknown = "unknown",
        /// Answers.
        Up = "up",
        /// Answers, and wants credentials or payment first.
        Gated = "gated",
        /// Failed to answer, not yet confirmed.
        Suspect = "suspect",
        /// Does not answer.
        Down = "down",
        /// There is nothing at its address.
        Absent = "absent",
        /// Asks us to come back later, again and again.
        Throttled = "throttled",
        /// Comes and goes.
        Flapping = "flapping",
        /// No longer watched.
        Retired = "retired",
    }
}

words! {
    /// Why a target is no longer watched.
    pub enum RetireReason {
        /// It left its sources.
        Source = "source",
        /// Its registry marks it deleted.
        Deleted = "deleted",
        /// Nothing was at its address for a month.
        Absent = "absent",
        /// Whoever stands behind it asked to be left alone.
        OptedOut = "opted_out",
    }
}

/// Declares event kinds with the number each has in `event.kind`.
macro_rules! event_kinds {
    ($($(#[$doc:meta])* $variant:ident = $number:literal $word:literal,)+) => {
        words! {
            /// What an event says happened. The numbers and words are those of the table `event_kind`.
            pub enum EventKind { $($(#[$doc])* $variant = $word,)+ }
        }

        impl EventKind {
            /// The number in `event.kind`.
            #[must_use]
            pub fn number(self) -> i64 {
                match self { $(EventKind::$variant => $number,)+ }
            }

            /// The kind with this number.
            #[must_use]
            pub fn numbered(number: i64) -> Option<EventKind> {
                match number { $($number => Some(EventKind::$variant),)+ _ => None }
            }
        }
    };
}

event_kinds! {
    /// A finding opened and it is no regression.
    FindingOpened = 1 "finding.opened",
    /// A finding opened on something that had worked.
    FindingRegressed = 2 "finding.regressed",
    /// A finding is over.
    FindingResolved = 3 "finding.resolved",
    /// A finding comes and goes.
    FindingFlappingStarted = 4 "finding.flapping_started",
    /// It has calmed down.
    FindingFlappingStopped = 5 "finding.flapping_stopped",
    /// A target was seen for the first time.
    TargetAdded = 10 "target.added",
    /// A surface is confirmed down.
    TargetDown = 11 "target.down",
    /// It answers again.
    TargetRecovered = 12 "target.recovered",
    /// A target's headline moved.
    TargetHeadlineChanged = 13 "target.headline_changed",
    /// A document has been absent for three days.
    TargetGone = 14 "target.gone",
    /// A target left all its sources.
    TargetRetired = 15 "target.retired",
    /// A retired target is back.
    TargetReturned = 16 "target.returned",
    /// Several surfaces fail together.
    IncidentOpened = 20 "incident.opened",
    /// Its members changed.
    IncidentUpdated = 21 "incident.updated",
    /// It is over.
    IncidentResolved = 22 "incident.resolved",
    /// A surface serves another document.
    DocumentChanged = 30 "document.changed",
    /// A deploy was told of or inferred.
    DeployRecorded = 31 "deploy.recorded",
    /// Its outcome is settled.
    DeployEvaluated = 32 "deploy.evaluated",
    /// A cohort's failing share of a rule moved.
    RulePrevalenceJumped = 40 "rule.prevalence_jumped",
    /// Judging began with another set of rules.
    RulesetReleased = 41 "ruleset.released",
    /// A crawl ended complete.
    CrawlCompleted = 50 "crawl.completed",
    /// A crawl did not see what it should have.
    CrawlDegraded = 51 "crawl.degraded",
    /// A group of alerts opened.
    AlertGroupOpened = 60 "alert_group.opened",
    /// Its members changed.
    AlertGroupUpdated = 61 "alert_group.updated",
    /// It is over.
    AlertGroupResolved = 62 "alert_group.resolved",
    /// A receiver fails.
    WebhookFailing = 70 "webhook.failing",
    /// A receiver was switched off.
    WebhookDisabled = 71 "webhook.disabled",
    /// A message is out of attempts.
    WebhookMessageDead = 72 "webhook.message_dead",
    /// The disk of the database fills up.
    DiskFilling = 80 "disk.filling",
    /// So little room is left that bodies are no longer kept.
    DiskFull = 81 "disk.full",
    /// There is room again.
    DiskRelieved = 82 "disk.relieved",
    /// A test.
    Ping = 90 "ping",
}
