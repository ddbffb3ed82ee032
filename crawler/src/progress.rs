//! How far a pass has come, for whoever watches: the progress bar, the home page, the log.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::watch;

/// How far all passes at work have come.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Progress {
    /// Walks at work, by the name of their registry.
    pub walks: BTreeMap<String, Walk>,
    /// Surfaces taken on so far in this pass.
    pub planned: u64,
    /// Of them, looked at.
    pub looked_at: u64,
    /// Of those, answered.
    pub answered: u64,
    /// Whether a round is at work.
    pub is_round_running: bool,
    /// What could not be reached, newest last, at most [`MAX_TROUBLES`].
    pub troubles: Vec<Unreached>,
}

/// A source that gave us nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreached {
    /// Whom we asked.
    pub what: String,
    /// The address we asked.
    pub url: String,
    /// Why there was no answer, in words.
    pub why: String,
    /// When it is asked again, in Unix seconds.
    pub retry_at_s: Option<i64>,
}

/// Troubles remembered for display.
pub const MAX_TROUBLES: usize = 20;

/// How far one walk has come.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Walk {
    /// Pages read.
    pub pages: u64,
    /// Entries read.
    pub entries: u64,
    /// Whether it has ended.
    pub has_ended: bool,
}

/// Writes progress; clones write the same one.
#[derive(Debug, Clone)]
pub struct Reporter(Arc<watch::Sender<Progress>>);

impl Default for Reporter {
    fn default() -> Self {
        Reporter(Arc::new(watch::Sender::new(Progress::default())))
    }
}

impl Reporter {
    /// Changes what is shown.
    pub fn note(&self, change: impl FnOnce(&mut Progress)) {
        self.0.send_modify(change);
    }

    /// Remembers that somebody could not be reached.
    pub fn unreached(&self, who: Unreached) {
        self.note(|progress| {
            progress.troubles.retain(|known| known.what != who.what);
            if progress.troubles.len() == MAX_TROUBLES {
                progress.troubles.remove(0);
            }
            progress.troubles.push(who);
        });
    }

    /// Remembers that somebody answered after all.
    pub fn reached(&self, what: &str) {
        self.note(|progress| progress.troubles.retain(|known| known.what != what));
    }

    /// A view of it that follows every change.
    pub fn watch(&self) -> watch::Receiver<Progress> {
        self.0.subscribe()
    }
}
