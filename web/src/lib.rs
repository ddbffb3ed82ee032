//! The pages, their JSON and their charts: what people see of the store, and nothing else.
//!
//! This crate reads the store, the rule catalogue and a small status of the crawler. It never calls anything outside and never
//! decides what a finding is.
//!
//! - [`routes`] every address on one screen;
//! - [`page`] the visit, the frame around pages, HTML or JSON by what was asked for;
//! - [`pages`] one file a page: struct, handler, and a template of the same name;
//! - [`chart`] series to geometry, [`lanes`] what lasted to bars, [`diff`] what changed between two documents,
//!   [`listing`] a document to numbered lines, [`clients`] findings to what clients do;
//! - [`api`] the same for programs, and what they tell, [`export`] rows as tables, [`atom`] feeds, [`openmetrics`] numbers, [`week`] weeks,
//!   [`events`] what happened, as it happens;
//! - [`words`] the words people read, [`text`] strangers' words made harmless, numbers and times, [`filters`] both for templates;
//! - [`checker`] what judges an address on the spot, given by the binary; [`operator`] who may change anything, [`acting`] what they do and that it is noted;
//! - [`error`] what is shown when there is no page, [`cache`] how long answers keep, [`assets`] stylesheet and icon;
//! - [`status`] what the crawler is doing, filled by the binary.

mod acting;
mod api;
mod assets;
mod atom;
mod cache;
mod chart;
mod checker;
mod clients;
mod diff;
mod error;
mod events;
mod export;
mod filters;
mod lanes;
mod listing;
mod openmetrics;
mod operator;
mod page;
mod pages;
#[cfg(feature = "parquet")]
mod parquet;
mod routes;
mod status;
mod text;
mod week;
mod words;

use std::path::PathBuf;
use std::sync::Arc;

use plumbline_alerts::desk::Desk;
use plumbline_store::Store;
use plumbline_store::housekeeping::Retention;
use tokio::sync::watch;

pub use api::{ExportTable, forms as export_forms, tables as export_tables};
pub use checker::{Ask, CheckedUrl, Checker};
pub use export::{Column, ColumnKind};
pub use openmetrics::Distribution;
pub use pages::onboarding::SAMPLE_SETTINGS;
pub use routes::router;
pub use status::{CrawlStatus, ProcessNumbers, RunningPass, Unreached};

/// What handlers share.
#[derive(Clone)]
pub struct WebState {
    /// Where everything is read from.
    pub store: Store,
    /// What pages say about this installation; it may change while the process runs.
    pub settings: watch::Receiver<Arc<SiteSettings>>,
    /// What the crawler is doing.
    pub status: watch::Receiver<CrawlStatus>,
    /// What judges on the spot what people bring.
    pub checker: Checker,
    /// Where receivers of messages are made and tried.
    pub desk: Desk,
    /// The clock, in Unix seconds; a fixed one in tests.
    pub now: fn() -> i64,
    /// When the process began, in Unix seconds.
    pub started_at: i64,
    /// What the process has counted since then.
    pub numbers: fn() -> ProcessNumbers,
}

impl WebState {
    /// What pages say about this installation now.
    #[must_use]
    pub fn site(&self) -> Arc<SiteSettings> {
        self.settings.borrow().clone()
    }
}

/// What pages say about this installation.
#[derive(Debug, Clone, PartialEq)]
pub struct SiteSettings {
    /// The name in the corner and in titles.
    pub instance_name: String,
    /// Where the owners of targets can write to: an address or a URL. Empty: none is given.
    pub contact: String,
    /// The User-Agent the crawler sends.
    pub user_agent: String,
    /// The gap between two requests to one host, in milliseconds.
    pub pace_ms: u64,
    /// Who asked to be left alone, as `host:…`, `domain:…` or `name:…`.
    pub opt_outs: Vec<String>,
    /// Whether the targets are the built-in sample ecosystem.
    pub is_sample: bool,
    /// Seconds between two passes over a registry.
    pub registry_interval_s: i64,
    /// Seconds between two looks at a surface, the longest of all kinds.
    pub surface_interval_s: i64,
    /// How long things are kept.
    pub retention: Retention,
    /// The address people reach it at, without a slash at its end. Empty: the one that a request names.
    pub public_url: String,
    /// The folder of the monthly snapshots that are handed out; `None`: there are none.
    pub snapshots: Option<PathBuf>,
}

impl Default for SiteSettings {
    fn default() -> Self {
        Self {
            instance_name: "Plumbline".to_owned(),
            contact: String::new(),
            user_agent: concat!("Plumbline/", env!("CARGO_PKG_VERSION")).to_owned(),
            pace_ms: 600,
            opt_outs: Vec::new(),
            is_sample: false,
            registry_interval_s: 3_600,
            surface_interval_s: 3_600,
            retention: Retention::default(),
            public_url: String::new(),
            snapshots: None,
        }
    }
}

/// The clock of the system, in Unix seconds.
#[must_use]
pub fn system_now() -> i64 {
    chrono::Utc::now().timestamp()
}
