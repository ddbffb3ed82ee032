//! From sources to recorded observations, politely and behind the guard.
//!
//! - [`settings`]: which targets, how often; [`targets`]: what each is called and where it is looked at;
//! - [`sources`]: what a registry or a list of domains says exists; [`walk`]: reading a registry page by page;
//! - [`pass`]: one crawl row from start to end; [`round`]: taking what is due, probing, judging, recording; [`schedule`]: when a surface is due next;
//! - [`probe`]: asking one surface, and what came of it;
//! - [`net`]: the only way out of the process;
//! - [`progress`]: how far a pass has come, for whoever watches.
//!
//! It knows protocols and the network, never SQL and pages.

pub mod net;
pub mod pass;
pub mod probe;
pub mod progress;
pub mod round;
pub mod schedule;
pub mod settings;
pub mod sources;
pub mod targets;
pub mod walk;
pub mod words;

use std::collections::HashMap;
use std::sync::atomic::AtomicI64;

use plumbline_rules::judge;
use plumbline_store::Store;
use plumbline_store::ids::RulesetId;

use crate::net::{Client, Header, NetError};
use crate::progress::Reporter;
use crate::settings::CrawlSettings;
use crate::walk::RegistrySource;

/// Everything a pass works with.
pub struct Crawler {
    /// Where everything is kept.
    pub store: Store,
    /// The only way out.
    pub client: Client,
    /// How often, how long.
    pub settings: CrawlSettings,
    /// What the rules are told.
    pub judging: judge::Settings,
    /// The rules in use.
    pub ruleset: RulesetId,
    /// The registries to walk.
    pub registries: Vec<RegistrySource>,
    /// The operator's headers by the address they go to.
    pub headers: HashMap<String, Vec<Header>>,
    /// Who watches.
    pub reporter: Reporter,
    /// The name of this process on leases and crawls.
    pub holder: String,
    /// When anybody last answered, in Unix seconds: while somebody does, a silence is not ours.
    pub last_answer_s: AtomicI64,
}

impl Crawler {
    /// The clock, in Unix seconds.
    pub fn now_s(&self) -> i64 {
        chrono::Utc::now().timestamp()
    }
}

/// Why a pass could not go on. What targets do is never among it.
#[derive(Debug, thiserror::Error)]
pub enum CrawlError {
    /// The database failed.
    #[error(transparent)]
    Store(#[from] plumbline_store::Error),
    /// The client failed.
    #[error(transparent)]
    Net(#[from] NetError),
    /// A registry's base is no absolute address.
    #[error("registries.base: `{0}` is no absolute address")]
    Base(String),
}
