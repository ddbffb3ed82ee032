//! Reads events and says in words what a person on call would want to know.
//!
//! It reads the `event` table by its growing number and nothing else: it cannot slow a crawl, and a restart goes on where
//! it stood. At present `serve` writes what it says to the log; subscriptions, groups and webhooks build on it.
//!
//! - [`message`]: one event in words; pure.

pub mod message;

use plumbline_store::ids::EventId;
use plumbline_store::{Error, Store};

pub use message::{Message, Weight};

/// Events read at a time.
const BATCH: u32 = 500;

/// What is worth telling of the events after one, and the number of the last event that was read.
///
/// # Errors
/// When the database fails.
pub async fn news(store: &Store, mut after: EventId) -> Result<(Vec<Message>, EventId), Error> {
    let mut messages = Vec::new();
    loop {
        let events = store.events_after(after, BATCH).await?;
        for event in &events {
            if message::is_worth_telling(event) {
                messages.push(message::message(event, &name_of(store, event).await?));
            }
        }
        match events.last() {
            Some(last) => after = last.id,
            None => return Ok((messages, after)),
        }
    }
}

async fn name_of(store: &Store, event: &plumbline_store::events::Event) -> Result<String, Error> {
    let Some(target) = event.target else { return Ok("all targets".to_owned()) };
    let detail = store.target(target.0).await?;
    Ok(detail.map_or_else(|| format!("target {target}"), |detail| detail.name))
}
