//! What the operator settled about single rules, for the target that is looked at: what the rules are told of it, and
//! which ruleset it is judged with.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use plumbline_rules::catalogue;
use plumbline_rules::judge::{Given, Settings};
use plumbline_rules::rule_settings::{RuleSetting, Say};
use plumbline_store::RulesetId;
use plumbline_store::rulesets::RuleFacts;
use plumbline_store::surfaces::DueSurface;

use crate::{CrawlError, Crawler};

/// The rulesets of targets for which rules are settled otherwise than for all: by what is settled, rule by rule.
pub type Variants = Mutex<HashMap<Vec<(&'static str, Say)>, RulesetId>>;

/// Every rule as it is judged for a target.
#[must_use]
pub fn facts(settings: &Settings, given: &Given) -> Vec<RuleFacts> {
    let settled = |rule: &'static plumbline_rules::rule::Rule| {
        let mut facts = RuleFacts::from(rule);
        match settings.say(rule, given) {
            None => {}
            Some(Say::Off) => facts.is_off = true,
            Some(say) => facts.severity = say.severity().unwrap_or(facts.severity),
        }
        facts
    };
    catalogue::rules().map(settled).collect()
}

impl Crawler {
    /// What settings about rules ask of the target of a surface; nothing where none asks.
    pub(crate) async fn traits_of(&self, surface: &DueSurface) -> Result<Given, CrawlError> {
        let asks = self.judging.rules.iter().any(RuleSetting::is_conditional);
        let Some(target) = surface.target.filter(|_| asks) else { return Ok(Given::default()) };
        let (own, mut tags) = self.store.target_traits(target).await?;
        let is_asked = |tag: &String| self.judging.rules.iter().any(|setting| setting.tag == *tag);
        tags.retain(is_asked);
        let own = own && self.judging.rules.iter().any(|setting| setting.own);
        Ok(Given { own, tags, ..Given::default() })
    }

    /// The ruleset that a target with these traits is judged with.
    pub(crate) async fn ruleset_of(&self, traits: &Given) -> Result<RulesetId, CrawlError> {
        if !traits.own && traits.tags.is_empty() {
            return Ok(self.ruleset);
        }
        let settled: Vec<_> =
            catalogue::rules().filter_map(|rule| Some((rule.id, self.judging.say(rule, traits)?))).collect();
        let lock = || self.variants.lock().unwrap_or_else(PoisonError::into_inner);
        let known = lock().get(&settled).copied();
        if let Some(known) = known {
            return Ok(known);
        }
        let facts = facts(&self.judging, traits);
        let variant = self.store.ruleset_variant(env!("CARGO_PKG_VERSION"), &facts, self.now_s()).await?;
        lock().insert(settled, variant);
        Ok(variant)
    }
}
