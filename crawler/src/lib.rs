//! From sources to recorded observations, politely and behind the guard.
//!
//! - [`settings`]: which targets, how often; [`targets`]: what each is called and where it is looked at;
//! - [`sources`]: what a registry or a list of domains says exists; [`walk`]: reading a registry page by page;
//! - [`pass`]: one crawl row from start to end; [`round`]: taking what is due, probing, judging, recording; [`schedule`]: when a surface is due next;
//! - [`probe`]: asking one surface, and what came of it; [`upstream`]: what stands behind a listing besides its remotes;
//! - [`witness`]: whether a silence is theirs or ours; [`opt_out`]: whom to leave alone;
//! - [`net`]: the only way out of the process;
//! - [`counters`]: what was done since the process began, for whoever watches it;
//! - [`progress`]: how far a pass has come, for whoever watches.
//!
//! It knows protocols and the network, never SQL and pages.

pub mod counters;
pub mod endpoint;
pub mod net;
pub mod opt_out;
pub mod pass;
pub mod probe;
pub mod progress;
pub mod round;
pub mod rule_settings;
pub mod schedule;
pub mod settings;
pub mod sources;
pub mod targets;
pub mod upstream;
pub mod walk;
pub mod witness;
pub mod words;

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use plumbline_rules::judge;
use plumbline_store::Store;
use plumbline_store::ids::RulesetId;
use plumbline_store::steering::OptOuts;

use crate::net::{Client, Header, NetError};
use crate::probe::a2a::keys::KeySets;
use crate::probe::mcp::ProbeSettings;
use crate::probe::mcp::active::Active;
use crate::probe::stdio::{CommandAsk, StdioSettings};
use crate::progress::Reporter;
use crate::settings::CrawlSettings;
use crate::upstream::Upstream;
use crate::walk::RegistrySource;
use crate::witness::Witness;

/// Everything a pass works with.
pub struct Crawler {
    /// Where everything is kept.
    pub store: Store,
    /// The only way out.
    pub client: Client,
    /// How often, how long.
    pub settings: CrawlSettings,
    /// What endpoints are asked.
    pub probing: ProbeSettings,
    /// What the rules are told.
    pub judging: judge::Settings,
    /// The rules in use.
    pub ruleset: RulesetId,
    /// The rules in use for targets for which some are settled otherwise.
    pub variants: rule_settings::Variants,
    /// The registries to walk.
    pub registries: Vec<RegistrySource>,
    /// The operator's headers by the address they go to.
    pub headers: HashMap<String, Vec<Header>>,
    /// What may be done to the operator's own servers, by their addresses.
    pub active: HashMap<String, Active>,
    /// The operator's commands by the address they are kept under.
    pub commands: HashMap<String, CommandAsk>,
    /// What commands may cost.
    pub stdio: StdioSettings,
    /// Who watches.
    pub reporter: Reporter,
    /// The name of this process on leases and crawls.
    pub holder: String,
    /// Whether a silence is theirs.
    pub witness: Arc<Witness>,
    /// Whom to leave alone.
    pub opt_outs: OptOuts,
    /// The keys of those who sign their cards.
    pub key_sets: KeySets,
    /// Repositories and packages behind listings.
    pub upstream: Upstream,
    /// The clock.
    pub clock: Clock,
    /// How many looks are left in this hour.
    pub budget: Budget,
    /// How many of these may be made out of turn, to confirm a change.
    pub verifications: Budget,
}

/// Looks by the hour, bounded by the settings.
#[derive(Debug)]
pub struct Budget {
    per_hour: u64,
    /// The hour, counted from 1970, and the looks in it.
    spent: Mutex<(i64, u64)>,
}

impl Budget {
    /// A budget of so many looks an hour; 0 is no bound.
    #[must_use]
    pub fn new(per_hour: u64) -> Self {
        Budget { per_hour, spent: Mutex::default() }
    }

    /// A budget of another size, of which as much is spent.
    #[must_use]
    pub fn resized(&self, per_hour: u64) -> Self {
        let spent = *self.spent.lock().unwrap_or_else(PoisonError::into_inner);
        Budget { per_hour, spent: Mutex::new(spent) }
    }

    /// Looks that are left in the hour of `now_s`.
    pub fn left(&self, now_s: i64) -> u64 {
        if self.per_hour == 0 {
            return u64::MAX;
        }
        let mut spent = self.spent.lock().unwrap_or_else(PoisonError::into_inner);
        if spent.0 != now_s.div_euclid(3600) {
            *spent = (now_s.div_euclid(3600), 0);
        }
        self.per_hour.saturating_sub(spent.1)
    }

    /// So many looks were begun.
    pub fn spend(&self, looks: u64) {
        self.spent.lock().unwrap_or_else(PoisonError::into_inner).1 += looks;
    }
}

/// The clock of the crawler: that of the system, moved by as much as a test says.
#[derive(Debug, Clone, Default)]
pub struct Clock(Arc<Hands>);

#[derive(Debug, Default)]
struct Hands {
    shift_s: AtomicI64,
    /// The latest moment that anybody was told.
    latest_s: AtomicI64,
}

impl Clock {
    /// Unix seconds.
    #[must_use]
    pub fn now_s(&self) -> i64 {
        let now_s = chrono::Utc::now().timestamp() + self.0.shift_s.load(Ordering::Relaxed);
        self.0.latest_s.fetch_max(now_s, Ordering::Relaxed);
        now_s
    }

    /// By how many seconds the clock is behind what it has told before, when that is more than `least_s`; told once.
    #[must_use]
    pub fn was_set_back(&self, least_s: i64) -> Option<i64> {
        let now_s = self.now_s();
        let behind_s = self.0.latest_s.load(Ordering::Relaxed) - now_s;
        if behind_s <= least_s {
            return None;
        }
        self.0.latest_s.store(now_s, Ordering::Relaxed);
        Some(behind_s)
    }

    /// Moves the clock by so many seconds, forward or back.
    pub fn shift(&self, seconds: i64) {
        self.0.shift_s.fetch_add(seconds, Ordering::Relaxed);
    }
}

impl Crawler {
    /// The clock, in Unix seconds.
    pub fn now_s(&self) -> i64 {
        self.clock.now_s()
    }

    /// Whether somebody paused everything.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn is_paused(&self) -> Result<bool, CrawlError> {
        Ok(self.store.paused_since().await?.is_some())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_ran_ahead_for_a_moment_is_noticed_when_it_is_back() {
        let clock = Clock::default();
        let before = clock.now_s();
        clock.shift(86_400);
        assert!(clock.now_s() >= before + 86_400);
        assert_eq!(clock.was_set_back(60), None, "ahead is not back");
        clock.shift(-86_400);
        assert!(clock.was_set_back(60).is_some_and(|behind| (86_390..=86_400).contains(&behind)));
        assert_eq!(clock.was_set_back(60), None, "told once");
        clock.shift(-30);
        assert_eq!(clock.was_set_back(60), None, "a small correction");
    }

    #[test]
    fn a_budget_ends_with_its_hour() {
        let budget = Budget::new(10);
        budget.spend(7);
        assert_eq!(budget.left(0), 3);
        budget.spend(9);
        assert_eq!((budget.left(3599), budget.left(3600)), (0, 10));
        assert_eq!(Budget::new(0).left(0), u64::MAX);
    }
}
