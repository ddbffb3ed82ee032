//! What judges an address on the spot. The binary gives it, because asking goes through the crawler and its guard; this crate never
//! calls anything outside.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use plumbline_rules::judge;
use plumbline_rules::report::Report;

/// What came of one address.
#[derive(Clone)]
pub struct CheckedUrl {
    /// What was judged, as text; empty for a conversation.
    pub text: String,
    /// What the rules say.
    pub report: Report,
}

/// Asks an address once, as the crawler asks, and judges what came; else why there was nothing to judge.
pub type Ask = dyn Fn(String) -> Pin<Box<dyn Future<Output = Result<CheckedUrl, String>> + Send>> + Send + Sync;

/// Judges what people bring.
#[derive(Clone)]
pub struct Checker {
    /// What the rules are told now.
    pub judging: Arc<dyn Fn() -> judge::Settings + Send + Sync>,
    /// How an address is asked; `None`: this process asks nobody.
    pub ask: Option<Arc<Ask>>,
}

impl Default for Checker {
    /// Judges as delivered and asks nobody.
    fn default() -> Self {
        Self { judging: Arc::new(judge::Settings::default), ask: None }
    }
}
