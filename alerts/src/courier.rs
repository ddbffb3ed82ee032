//! Brings messages to receivers: each receiver at its own pace, so that a dead one delays nobody.
//!
//! One worker a receiver, for as long as something is due there. A receiver that keeps up with its pace gets one message after
//! the other, in the order of their events; one that answers too slowly for that has several in flight, four at most, because
//! otherwise it would fall behind for good. How tries went is kept by
//! one writer, many in a transaction. A try that was not kept is made again under the same id: nothing is lost, and a
//! receiver that remembers ids hears nothing twice.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use plumbline_store::hooks::{Attempt, Due, Endpoint, EndpointState, NewEndpoint, SecretRole, Settled, Standing};
use plumbline_store::{EndpointId, Error, Store};
use rand::Rng as _;
use serde_json::json;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::formats::{Format, Sending};
use crate::mail::Mailer;
use crate::retry::{self, Try};
use crate::signature::Key;
use crate::sync::TOKEN;
use crate::vault::Vault;
use crate::wire::{Answer, Post, Wire};

/// Messages in flight to one receiver, at most.
const IN_FLIGHT: usize = 4;

/// Messages read at a time for one receiver, at most and at least. Bodies come with them, 256 KiB each at most.
const BATCH: (i64, i64) = (32, 4);

/// How often the queue is looked at when nobody says that something came.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// How long one request may take, the guard's own limits apart.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// Tries kept in one transaction.
const MOST_KEPT: usize = 200;

/// Messages that may be sent at once after a pause, at a pace for people.
const BURST: f64 = 5.0;

/// For programs, as many as come in so many seconds: what a start or a busy database cost is made up for, or the pace would be
/// missed for good.
const BURST_S: f64 = 2.0;

/// The clock, in Unix milliseconds.
pub type Clock = Arc<dyn Fn() -> i64 + Send + Sync>;

/// The clock of the system.
#[must_use]
pub fn system_clock() -> Clock {
    Arc::new(|| chrono::Utc::now().timestamp_millis())
}

/// What delivering needs.
#[derive(Clone)]
pub struct Courier {
    /// Where messages are kept.
    pub store: Store,
    /// The way out for HTTP.
    pub wire: Wire,
    /// The way out for e-mail.
    pub mailer: Mailer,
    /// Opens secrets.
    pub vault: Vault,
    /// The clock.
    pub clock: Clock,
    /// Rung when something came.
    pub bell: Arc<Notify>,
    /// How long one request may take; [`PATIENCE`] but in tests.
    pub patience: Duration,
}

/// A try to be kept, and who waits for that.
type Keeping = (Settled, oneshot::Sender<()>);

impl Courier {
    /// Delivers until told to stop. What is in flight then may finish.
    pub async fn run(self, stop: CancellationToken) {
        let (keep, kept) = mpsc::channel(1_024);
        let writer = tokio::spawn(write(self.store.clone(), self.clock.clone(), kept));
        let busy: Arc<Mutex<HashSet<EndpointId>>> = Arc::default();
        let mut workers = JoinSet::new();
        while !stop.is_cancelled() {
            match self.store.endpoints_due(self.now_s()).await {
                Ok(due) => {
                    for id in due {
                        if !lock(&busy).insert(id) {
                            continue;
                        }
                        let (courier, keep, stop, busy) = (self.clone(), keep.clone(), stop.clone(), busy.clone());
                        workers.spawn(async move {
                            if let Err(error) = courier.serve(id, &keep, &stop).await {
                                tracing::error!("messages for receiver {id} wait: {error}");
                                tokio::time::sleep(LOOK_EVERY).await;
                            }
                            lock(&busy).remove(&id);
                        });
                    }
                }
                Err(error) => tracing::error!("messages wait: {error}"),
            }
            while workers.try_join_next().is_some() {}
            tokio::select! {
                () = stop.cancelled() => break,
                () = self.bell.notified() => {}
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
        }
        while workers.join_next().await.is_some() {}
        drop(keep);
        if writer.await.is_err() {
            tracing::error!("how tries went could not be kept");
        }
    }

    /// Sends everything that is due now, and returns when that is done.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn once(&self) -> Result<(), Error> {
        let (keep, kept) = mpsc::channel(1_024);
        let writer = tokio::spawn(write(self.store.clone(), self.clock.clone(), kept));
        let stop = CancellationToken::new();
        let due = self.store.endpoints_due(self.now_s()).await?;
        let mut workers: JoinSet<Result<(), Error>> = JoinSet::new();
        for id in due {
            let (courier, keep, stop) = (self.clone(), keep.clone(), stop.clone());
            workers.spawn(async move { courier.serve(id, &keep, &stop).await });
        }
        drop(keep);
        while let Some(served) = workers.join_next().await {
            if let Ok(served) = served {
                served?;
            }
        }
        if writer.await.is_err() {
            tracing::error!("how tries went could not be kept");
        }
        Ok(())
    }

    fn now_s(&self) -> i64 {
        (self.clock)().div_euclid(1000)
    }

    /// Sends what is due to one receiver, in order, until nothing is. The receiver is read again for every batch: an address, a
    /// secret or a pause that somebody changed holds for the very next messages.
    async fn serve(&self, id: EndpointId, keep: &mpsc::Sender<Keeping>, stop: &CancellationToken) -> Result<(), Error> {
        let (mut pace, usual_ms) = (Pace::default(), Arc::<Mutex<i64>>::default());
        while !stop.is_cancelled() {
            let Some(endpoint) = self.store.endpoint_of(id).await? else { return Ok(()) };
            let (now_s, per_minute) = (self.now_s(), endpoint.is.per_minute);
            let (batch, is_probe) = match endpoint.state {
                EndpointState::Disabled => return Ok(()),
                EndpointState::Active => (self.store.due_deliveries(id, now_s, batch(per_minute)).await?, false),
                EndpointState::Failing if retry::probe_due_s(&standing_of(&endpoint)) > now_s => return Ok(()),
                EndpointState::Failing => (self.store.probe_delivery(id, now_s).await?.into_iter().collect(), true),
            };
            if batch.is_empty() {
                return Ok(());
            }
            let receiver = Arc::new(Receiver { usual_ms: usual_ms.clone(), ..self.receiver(endpoint).await? });
            let mut flights = JoinSet::new();
            for due in batch {
                let now = receiver.standing();
                if stop.is_cancelled() || now.state == EndpointState::Disabled {
                    break;
                }
                // It became a failing one meanwhile: the rest waits for the probe.
                if now.state == EndpointState::Failing && !is_probe {
                    break;
                }
                pace.wait(per_minute, now.slowed).await;
                while flights.len() >= in_flight(receiver.usual_ms(), per_minute) {
                    flights.join_next().await;
                }
                let (courier, receiver, keep) = (self.clone(), receiver.clone(), keep.clone());
                flights.spawn(async move { courier.deliver(&receiver, &due, &keep).await });
            }
            while flights.join_next().await.is_some() {}
        }
        Ok(())
    }

    async fn receiver(&self, endpoint: Endpoint) -> Result<Receiver, Error> {
        let (mut keys, mut token) = (Vec::new(), None);
        for sealed in self.store.secrets(endpoint.id, self.now_s()).await? {
            match self.vault.unseal(&sealed.sealed) {
                Ok(bytes) if sealed.scheme == TOKEN => token = String::from_utf8(bytes).ok(),
                Ok(bytes) => keys.push((sealed.role, Key::of(&sealed.scheme, bytes))),
                Err(error) => tracing::error!("webhook {}: {error}", endpoint.is.slug),
            }
        }
        let format = endpoint.is.format.parse().unwrap_or(Format::Generic);
        let standing = Mutex::new(standing_of(&endpoint));
        Ok(Receiver { endpoint, format, keys, token, standing, usual_ms: Arc::default() })
    }

    /// One try of one message, kept before it returns.
    async fn deliver(&self, receiver: &Receiver, due: &Due, keep: &mpsc::Sender<Keeping>) {
        let began_ms = (self.clock)();
        let (sent, answer) = self.send(receiver, due, began_ms).await;
        let ended_ms = (self.clock)();
        receiver.took(ended_ms - began_ms);
        let verdict = {
            let mut standing = lock(&receiver.standing);
            let tried = Try {
                due,
                first_try_s: due.first_try_ms.map(|at| at / 1000),
                now_s: ended_ms.div_euclid(1000),
                jitter: 0.8 + 0.4 * rand::rng().random::<f64>(),
            };
            let verdict = retry::decide(tried, &answer, &standing);
            *standing = verdict.standing.clone();
            verdict
        };
        let is_accepted = matches!(answer, Answer::Heard { status: 200..=299, .. });
        let settled = Settled {
            attempt: attempt(due, began_ms, ended_ms, &sent, &answer),
            state: verdict.state,
            attempts: verdict.attempts,
            next_s: verdict.next_s,
            note: verdict.note,
            endpoint: verdict.standing,
            signed_by: if is_accepted { receiver.signers() } else { Vec::new() },
        };
        let (done, kept) = oneshot::channel();
        if keep.send((settled, done)).await.is_err() || kept.await.is_err() {
            // It is tried again, under the same id.
            tracing::error!("how message {} went could not be kept", due.message);
        }
    }

    /// Sends one message in the receiver's form. Gives the request as it is logged, and the answer.
    async fn send(&self, receiver: &Receiver, due: &Due, now_ms: i64) -> (serde_json::Value, Answer) {
        let sending = Sending {
            endpoint: &receiver.endpoint.is,
            message: &due.message,
            kind: &due.kind,
            body: &due.body,
            attempt: due.attempts + 1,
            is_replay: due.is_replay,
            timestamp_s: now_ms.div_euclid(1000),
            keys: &receiver.keys.iter().map(|(_, key)| key.clone()).collect::<Vec<_>>(),
            token: receiver.token.as_deref(),
        };
        if receiver.format == Format::Email {
            let answer = self.mailer.send(&sending).await;
            return (json!({ "to": receiver.endpoint.is.url }), answer);
        }
        match receiver.format.request(&sending) {
            Ok(post) => (logged(receiver.format, &post), self.post(post).await),
            Err(error) => (json!({}), Answer::Ours(error.to_string())),
        }
    }

    async fn post(&self, post: Post) -> Answer {
        match tokio::time::timeout(self.patience, self.wire.send(post)).await {
            Ok(answer) => answer,
            Err(_) => {
                Answer::Silent { is_timeout: true, error: format!("no answer within {} s", self.patience.as_secs()) }
            }
        }
    }

    /// Sends one message now, without a queue and without retries: a test.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn test(&self, endpoint: Endpoint, message: &str, kind: &str, body: Vec<u8>) -> Result<Tested, Error> {
        let receiver = self.receiver(endpoint).await?;
        Ok(self.test_receiver(&receiver, message, kind, body).await)
    }

    /// The same to a receiver that is not kept yet.
    pub async fn test_unsaved(&self, unsaved: Unsaved, message: &str, kind: &str, body: Vec<u8>) -> Tested {
        let endpoint = Endpoint::unsaved(unsaved.endpoint);
        let format = endpoint.is.format.parse().unwrap_or(Format::Generic);
        let standing = Mutex::new(standing_of(&endpoint));
        let keys = unsaved.keys.into_iter().map(|key| (SecretRole::Current, key)).collect();
        let receiver = Receiver { endpoint, format, keys, token: unsaved.token, standing, usual_ms: Arc::default() };
        self.test_receiver(&receiver, message, kind, body).await
    }

    async fn test_receiver(&self, receiver: &Receiver, message: &str, kind: &str, body: Vec<u8>) -> Tested {
        let due = Due {
            endpoint: receiver.endpoint.id,
            message: message.to_owned(),
            kind: kind.to_owned(),
            body,
            attempts: 0,
            tries: 0,
            first_try_ms: None,
            is_replay: false,
        };
        let began_ms = (self.clock)();
        let (sent, answer) = self.send(receiver, &due, began_ms).await;
        Tested { sent, answer, took_ms: (self.clock)() - began_ms }
    }
}

/// A receiver that is not kept yet.
#[derive(Debug, Clone)]
pub struct Unsaved {
    /// As it is asked for.
    pub endpoint: NewEndpoint,
    /// What signs.
    pub keys: Vec<Key>,
    /// The receiver's own token.
    pub token: Option<String>,
}

/// What came of a test.
#[derive(Debug, Clone)]
pub struct Tested {
    /// The request as the log would keep it.
    pub sent: serde_json::Value,
    /// What came back.
    pub answer: Answer,
    /// How long it took, in milliseconds.
    pub took_ms: i64,
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A receiver for as long as one worker serves it.
struct Receiver {
    endpoint: Endpoint,
    format: Format,
    keys: Vec<(SecretRole, Key)>,
    token: Option<String>,
    standing: Mutex<Standing>,
    /// How long it takes to answer, in milliseconds: a mean in which the last answers weigh most.
    usual_ms: Arc<Mutex<i64>>,
}

/// Messages read at a time: some six seconds of a pace, because what is in a batch goes to where the receiver was when it was
/// read.
fn batch(per_minute: i64) -> i64 {
    (per_minute / 10).clamp(BATCH.1, BATCH.0)
}

/// Messages in flight to a receiver that takes so long to answer: as few as keep its pace.
fn in_flight(usual_ms: i64, per_minute: i64) -> usize {
    let gap_ms = 60_000 / per_minute.max(1);
    let needed = usual_ms.max(0) / gap_ms.max(1) + 1;
    usize::try_from(needed).unwrap_or(IN_FLIGHT).min(IN_FLIGHT)
}

impl Receiver {
    fn standing(&self) -> Standing {
        lock(&self.standing).clone()
    }

    fn usual_ms(&self) -> i64 {
        *lock(&self.usual_ms)
    }

    fn took(&self, took_ms: i64) {
        let mut usual_ms = lock(&self.usual_ms);
        *usual_ms = if *usual_ms == 0 { took_ms } else { (*usual_ms * 3 + took_ms) / 4 };
    }

    fn signers(&self) -> Vec<(SecretRole, &'static str)> {
        self.keys.iter().map(|(role, key)| (*role, key.scheme())).collect()
    }
}

fn standing_of(endpoint: &Endpoint) -> Standing {
    Standing {
        state: endpoint.state,
        note: endpoint.state_note.clone(),
        failures: endpoint.failures,
        first_failure_s: endpoint.first_failure_s,
        last_failure_s: endpoint.last_failure_s,
        last_success_s: endpoint.last_success_s,
        slowed: endpoint.slowed,
    }
}

/// Spreads messages over the minute.
#[derive(Default)]
struct Pace {
    tokens: f64,
    last: Option<Instant>,
}

impl Pace {
    async fn wait(&mut self, per_minute: i64, is_slowed: bool) {
        let per_second = per_minute.max(1) as f64 / 60.0 / if is_slowed { 2.0 } else { 1.0 };
        let burst = BURST.max(per_second * BURST_S);
        let now = Instant::now();
        let earned = self.last.map_or(burst, |last| (now - last).as_secs_f64() * per_second);
        self.tokens = (self.tokens + earned).min(burst);
        self.last = Some(now);
        if self.tokens < 1.0 {
            let missing = Duration::from_secs_f64((1.0 - self.tokens) / per_second);
            tokio::time::sleep(missing).await;
            // A sleep lasts a little longer than asked for; what is earned meanwhile counts, or the pace would be missed.
            let woke = Instant::now();
            self.tokens += (woke - now).as_secs_f64() * per_second;
            self.last = Some(woke);
        }
        self.tokens -= 1.0;
    }
}

/// The request as the log keeps it: headers, and the body where it is not the message's own.
fn logged(format: Format, post: &Post) -> serde_json::Value {
    let headers: serde_json::Map<String, serde_json::Value> = post
        .headers
        .iter()
        .filter(|(name, _)| name != "authorization")
        .map(|(name, value)| (name.clone(), json!(value)))
        .collect();
    if format == Format::Generic {
        return json!({ "headers": headers });
    }
    json!({ "headers": headers, "body": format.logged_body(&post.body) })
}

fn attempt(due: &Due, began_ms: i64, ended_ms: i64, sent: &serde_json::Value, answer: &Answer) -> Attempt {
    let (status, error, response) = match answer {
        Answer::Heard { status, headers, body } => {
            let headers: serde_json::Map<String, serde_json::Value> =
                headers.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
            (Some(i64::from(*status)), None, Some(json!({ "headers": headers, "body": body }).to_string()))
        }
        Answer::Silent { error, .. } | Answer::Ours(error) => (None, Some(error.clone()), None),
    };
    Attempt {
        endpoint: due.endpoint,
        message: due.message.clone(),
        at_ms: began_ms,
        took_ms: (ended_ms - began_ms).max(0),
        status,
        error,
        request: sent.to_string(),
        response,
    }
}

/// Keeps tries, many in one transaction. While the database does not take them they wait, and so do their receivers.
async fn write(store: Store, clock: Clock, mut kept: mpsc::Receiver<Keeping>) {
    let mut waiting: Vec<Keeping> = Vec::new();
    loop {
        let room = MOST_KEPT - waiting.len();
        if waiting.is_empty() && kept.recv_many(&mut waiting, room).await == 0 {
            return;
        }
        let settled: Vec<Settled> = waiting.iter().map(|(settled, _)| settled.clone()).collect();
        match store.settle(&settled, clock().div_euclid(1000)).await {
            Ok(()) => waiting.drain(..).for_each(|(_, done)| {
                // Whoever waited may be gone.
                let _ = done.send(());
            }),
            Err(error) if error.may_pass() => {
                tracing::warn!("how tries went is kept later: {error}");
                tokio::time::sleep(LOOK_EVERY).await;
            }
            // One of them is to blame, and the others must not be sent again and again for it.
            Err(_) if waiting.len() > 1 => {
                for (one, done) in waiting.drain(..) {
                    match store.settle(&[one], clock().div_euclid(1000)).await {
                        Ok(()) => drop(done.send(())),
                        Err(error) => tracing::error!("how a try went could not be kept: {error}"),
                    }
                }
            }
            Err(error) => {
                tracing::error!("how a try went could not be kept: {error}");
                waiting.clear();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How long so many messages take at a pace, in seconds.
    async fn takes(messages: usize, per_minute: i64) -> f64 {
        let (mut pace, began) = (Pace::default(), Instant::now());
        for _ in 0..messages {
            pace.wait(per_minute, false).await;
        }
        began.elapsed().as_secs_f64()
    }

    #[tokio::test(start_paused = true)]
    async fn a_pace_leaves_room_for_a_start_and_chats_are_not_flooded() {
        let took = takes(200, 300).await;
        assert!((37.9..38.5).contains(&took), "300 a minute and two seconds for the start: {took}");
        assert!(takes(5, 30).await < 0.01);
        let sixth = takes(6, 30).await;
        assert!((1.9..2.2).contains(&sixth), "{sixth}");
    }

    #[test]
    fn only_who_is_too_slow_for_its_pace_has_several_in_flight() {
        for (usual_ms, per_minute, wanted) in
            [(0, 300, 1), (150, 300, 1), (200, 300, 2), (450, 300, 3), (20_000, 300, 4), (900, 30, 1), (-5, 0, 1)]
        {
            assert_eq!(in_flight(usual_ms, per_minute), wanted, "{usual_ms} ms at {per_minute} a minute");
        }
    }
}
