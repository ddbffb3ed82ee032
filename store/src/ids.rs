//! Numbers that must not be mixed up.

/// Declares one newtype per table whose rows are named by number.
macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident,)+) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub i64);

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.fmt(f)
            }
        }
    )+};
}

ids! {
    /// A row of `source`.
    SourceId,
    /// A row of `crawl`.
    CrawlId,
    /// A row of `walk`.
    WalkId,
    /// A row of `target`.
    TargetId,
    /// A row of `surface`.
    SurfaceId,
    /// A row of `listing`.
    ListingId,
    /// A row of `document`.
    DocumentId,
    /// A row of `eval`.
    EvalId,
    /// A row of `rule`.
    RuleRow,
    /// A row of `ruleset`.
    RulesetId,
    /// A row of `finding`.
    FindingId,
    /// A row of `event`.
    EventId,
    /// A row of `wh_endpoint`.
    EndpointId,
    /// A row of `route`.
    RouteId,
    /// A row of `alert`.
    AlertId,
    /// A row of `alert_group`.
    GroupId,
    /// A row of `deploy`.
    DeployId,
}
