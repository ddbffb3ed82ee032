//! The key sets that signatures name, each kept for as long as it says: between five minutes and a day.
//!
//! A set in which a named key is missing is asked for once more before anybody says so: keys change before caches do.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use plumbline_rules::document::Document;
use plumbline_rules::session::{Exchange, Step};
use serde_json::Value;

use super::PATIENCE;
use crate::net::{Ask, BodyKind, Client, NetError};

/// The shortest time for which a key set is kept.
const LEAST: Duration = Duration::from_secs(5 * 60);
/// The longest.
const MOST: Duration = Duration::from_secs(24 * 3600);
/// Key sets that are kept at a time; beyond, the one that runs out first goes.
const MOST_KEPT: usize = 1_000;
/// Redirects that are followed to a key set: its address was chosen by a stranger.
const MOST_REDIRECTS: usize = 3;

/// Key sets by address. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct KeySets(Arc<Mutex<HashMap<String, Kept>>>);

#[derive(Debug, Clone)]
struct Kept {
    /// How it was come by.
    exchanges: Vec<Exchange>,
    until: Instant,
}

impl KeySets {
    /// What was said to get the key set at an address: just now, or before where that still holds and has the keys that the
    /// card names.
    ///
    /// # Errors
    /// Only when we failed.
    pub(super) async fn at(&self, client: &Client, wanted: &Wanted) -> Result<Vec<Exchange>, NetError> {
        let address = &wanted.address;
        if let Some(kept) = self.kept(address, Instant::now()).filter(|kept| wanted.is_served_by(kept)) {
            return Ok(kept);
        }
        let ask = Ask {
            step: Some(Step::Jku),
            accept: Some("application/jwk-set+json, application/json"),
            patience: Some(PATIENCE),
            ..Ask::get(address.clone(), BodyKind::KeySet)
        };
        let mut exchanges = client.fetch(ask).await?.exchanges;
        exchanges.retain(|exchange| exchange.step == Some(Step::Jku));
        let is_near = exchanges.len() <= MOST_REDIRECTS + 1 && is_safe(&exchanges);
        if !is_near {
            // Where it led in the end is not taken for its key set; the redirect stays for all to see.
            exchanges.truncate(MOST_REDIRECTS + 1);
            exchanges.retain(|exchange| exchange.redirect().is_some());
            return Ok(exchanges);
        }
        if let Some(response) = exchanges.last().and_then(|last| last.response.as_ref()).filter(|r| r.status == 200) {
            let until = Instant::now() + lifetime(response.header("cache-control"));
            self.keep(address, Kept { exchanges: exchanges.clone(), until });
        }
        Ok(exchanges)
    }

    fn kept(&self, address: &str, now: Instant) -> Option<Vec<Exchange>> {
        let sets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sets.get(address).filter(|kept| kept.until > now).map(|kept| kept.exchanges.clone())
    }

    fn keep(&self, address: &str, kept: Kept) {
        let mut sets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if sets.len() >= MOST_KEPT
            && let Some(first) = sets.iter().min_by_key(|(_, kept)| kept.until).map(|(address, _)| address.clone())
        {
            sets.remove(&first);
        }
        sets.insert(address.to_owned(), kept);
    }
}

/// A key set that is named, and the keys that are looked for in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wanted {
    address: String,
    kids: Vec<String>,
}

/// For how long a key set holds, by its `Cache-Control`.
fn lifetime(cache_control: Option<&str>) -> Duration {
    let directive = |text: &str| {
        let (name, value) = text.split_once('=')?;
        name.trim().eq_ignore_ascii_case("max-age").then(|| value.trim().trim_matches('"').parse::<u64>().ok())?
    };
    let max_age = cache_control.and_then(|text| text.split(',').find_map(directive));
    max_age.map_or(LEAST, Duration::from_secs).clamp(LEAST, MOST)
}

/// Whether every step of the way was as safe as the first.
fn is_safe(exchanges: &[Exchange]) -> bool {
    let is_https = |exchange: &Exchange| exchange.request.url.starts_with("https:");
    exchanges.first().is_none_or(|first| !is_https(first)) || exchanges.iter().all(is_https)
}

impl Wanted {
    /// Whether what was come by has every key that the card names.
    fn is_served_by(&self, exchanges: &[Exchange]) -> bool {
        let set = exchanges.last().and_then(|last| last.response.as_ref());
        let set: Value = set.and_then(|response| serde_json::from_slice(&response.body()).ok()).unwrap_or_default();
        let kids: Vec<&str> =
            set["keys"].as_array().into_iter().flatten().filter_map(|key| key["kid"].as_str()).collect();
        self.kids.iter().all(|kid| kids.contains(&kid.as_str()))
    }
}

/// The key sets that a card's signatures name, as far as they may be fetched.
pub(super) fn wanted(card: &Document) -> Vec<Wanted> {
    let addresses = plumbline_rules::session_judge::key_addresses(card);
    addresses.into_iter().map(|address| Wanted { kids: named_keys(card, &address), address }).collect()
}

/// The names of the keys that a card's signatures look for at an address.
fn named_keys(card: &Document, address: &str) -> Vec<String> {
    let signatures = card.root().and_then(|root| root.get("signatures"));
    let header = |entry: plumbline_rules::document::Node<'_>| -> Option<Value> {
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(entry.get("protected")?.text()?).ok()?).ok()
    };
    let headers = signatures.into_iter().flat_map(plumbline_rules::document::Node::items).filter_map(header);
    headers.filter(|header| header["jku"] == address).filter_map(|h| h["kid"].as_str().map(str::to_owned)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_set_holds_as_long_as_it_says_within_bounds() {
        for (said, seconds) in [
            (None, 300),
            (Some("no-store"), 300),
            (Some("public, max-age=3600"), 3_600),
            (Some("Max-Age=\"7200\""), 7_200),
            (Some("max-age=5"), 300),
            (Some("max-age=31536000"), 86_400),
            (Some("max-age=soon"), 300),
        ] {
            assert_eq!(lifetime(said).as_secs(), seconds, "{said:?}");
        }
    }

    fn card(kid: &str) -> Document {
        let header = format!(r#"{{"alg":"ES256","kid":"{kid}","jku":"https://t.example/keys"}}"#);
        let protected = URL_SAFE_NO_PAD.encode(header);
        Document::from_text(&format!(r#"{{"signatures": [{{"protected": "{protected}", "signature": "AA"}}]}}"#))
    }

    #[test]
    fn a_set_without_the_named_key_is_not_good_enough() {
        let text = r#"{"step": "jku", "request": {"method": "GET", "url": "https://t.example/keys"}, "response": {"status": 200, "body": {"keys": [{"kty": "EC", "kid": "k1"}]}}}"#;
        let set = [serde_json::from_str::<Exchange>(text).expect("an exchange")];
        let is_served =
            |kid: &str| wanted(&card(kid)).iter().map(|wanted| wanted.is_served_by(&set)).collect::<Vec<_>>();
        assert_eq!(is_served("k1"), [true]);
        assert_eq!(is_served("k2"), [false]);
    }

    #[test]
    fn a_kept_set_runs_out() {
        let (sets, now) = (KeySets::default(), Instant::now());
        sets.keep("https://t.example/keys", Kept { exchanges: Vec::new(), until: now + LEAST });
        assert!(sets.kept("https://t.example/keys", now).is_some());
        assert!(sets.kept("https://t.example/keys", now + LEAST).is_none());
        assert!(sets.kept("https://t.example/other", now).is_none());
    }
}
