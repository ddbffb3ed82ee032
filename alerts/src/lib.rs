//! Reads events and tells those who asked: people in groups, programs event by event, each message signed and until it arrives.
//!
//! It reads the `event` table by its growing number and nothing else: it cannot slow a crawl, and a restart goes on where it
//! stood. It knows neither crawling nor pages; the way out ([`wire`]) is given to it by the binary.
//!
//! Deciding, pure:
//! - [`payload`]: an event or a group as JSON, its title, how grave it is; [`event_types`]: every type with schema and example;
//! - [`matcher`]: which events somebody wants; [`pipeline`]: from events to alerts to groups, and why not;
//! - [`clients`]: what fires to what released clients do;
//! - [`zones`]: windows, quiet hours, summaries; [`quiet`]: silences, waivers and maintenance as they may be asked for;
//!   [`retry`]: what becomes of a message after an answer;
//! - [`formats`]: the request for each kind of receiver; [`signature`]: Standard Webhooks; [`message`]: a line for the log.
//!
//! Doing: [`teller`] turns events into messages, [`courier`] brings them, [`digest`] sums up, [`sync`] reads [`settings`] into
//! the database, [`desk`] is where people and programs subscribe, [`waiving`] brings waivers to findings and [`working`] planned work to surfaces, [`vault`] seals secrets, [`mail`] and [`wire`] are the two
//! ways out.

pub mod clients;
pub mod courier;
pub mod desk;
pub mod digest;
pub mod event_types;
pub mod formats;
pub mod mail;
pub mod matcher;
pub mod message;
pub mod message_id;
pub mod payload;
pub mod pipeline;
pub mod quiet;
pub mod retry;
pub mod settings;
pub mod signature;
pub mod sync;
pub mod teller;
pub mod vault;
pub mod waiving;
pub mod wire;
pub mod working;
pub mod zones;

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
