//! Telling, put together: the way out, the key, receivers and routes of the settings, and the two loops that tell.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use plumbline_alerts::courier::{self, Courier};
use plumbline_alerts::desk::Desk;
use plumbline_alerts::formats::Format;
use plumbline_alerts::mail::Mailer;
use plumbline_alerts::payload::Source;
use plumbline_alerts::settings::WebhookSetting;
use plumbline_alerts::signature::Key;
use plumbline_alerts::sync::{self, Given};
use plumbline_alerts::teller::Teller;
use plumbline_alerts::vault::Vault;
use plumbline_alerts::wire::{Answer, Wire};
use plumbline_crawler::net::{Client, NetSettings, Networks, TimeLimits, Told};
use plumbline_store::{Error as StoreError, Store};
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use url::Url;

use crate::settings::Settings;
use crate::wiring;

/// For the connection to a receiver, milliseconds.
const CONNECT_MS: u64 = 5_000;

/// How often the turn of telling is renewed, and asked for by whoever waits for it.
const HELD_EVERY: Duration = Duration::from_secs(5);

/// Without a renewal for so long another process may have the turn soon: what is in flight must be over by then.
const HELD_AT_MOST: Duration = Duration::from_secs(45);

/// How long a test waits for an answer: less than a page may take.
const TEST_PATIENCE: Duration = Duration::from_secs(8);

/// Both loops, ready to run.
#[derive(Clone)]
pub struct Telling {
    pub teller: Teller,
    pub courier: Courier,
}

impl Telling {
    /// Puts the parts together; nothing is written.
    pub async fn new(settings: &Settings, store: Store) -> Result<Telling> {
        let bell = Arc::new(Notify::new());
        let clock = courier::system_clock();
        let teller = Teller {
            store: store.clone(),
            source: source(settings),
            clock: clock.clone(),
            bell: bell.clone(),
            ids: Teller::ids(&store).await?,
        };
        let courier = Courier {
            store,
            wire: wire(settings)?,
            mailer: mailer(settings)?,
            vault: vault(settings),
            clock,
            bell,
            patience: courier::PATIENCE,
        };
        Ok(Telling { teller, courier })
    }

    /// Where receivers are made and tried, behind the guard that messages go through.
    pub fn desk(&self, settings: &Settings) -> Result<Desk> {
        let client = client(settings)?;
        let guard = move |address: &str| {
            let url = Url::parse(address).map_err(|error| error.to_string())?;
            client.guard().check_webhook_url(&url).map_err(|refusal| refusal.to_string())
        };
        Ok(Desk {
            courier: Courier { patience: TEST_PATIENCE, ..self.courier.clone() },
            source: self.teller.source.clone(),
            ids: self.teller.ids.clone(),
            guard: Arc::new(guard),
        })
    }

    /// Runs both until told to stop, as long as no other process does on this database, and takes over from one that ended.
    pub async fn run(self, holder: String, stop: CancellationToken) {
        let mut was_refused = false;
        while !stop.is_cancelled() {
            match self.take(&holder).await {
                Ok(()) => {
                    was_refused = false;
                    self.tell_while_held(&holder, stop.child_token()).await;
                }
                Err(StoreError::Occupied { holder: other, .. }) => {
                    if !was_refused {
                        tracing::info!(
                            "{other} tells receivers what happens here; this process does so when that ends"
                        );
                    }
                    was_refused = true;
                }
                Err(error) => tracing::warn!("receivers are told later: {error}"),
            }
            tokio::select! {
                () = stop.cancelled() => {}
                () = tokio::time::sleep(HELD_EVERY) => {}
            }
        }
    }

    async fn take(&self, holder: &str) -> Result<(), StoreError> {
        let now_s = chrono::Utc::now().timestamp();
        let is_alive = |other: &str| wiring::is_alive(other, holder);
        self.teller.store.take_telling(holder, now_s, now_s + wiring::OCCUPIED_S, is_alive).await
    }

    async fn tell_while_held(&self, holder: &str, turn: CancellationToken) {
        let tellers = TaskTracker::new();
        tellers.spawn(self.teller.clone().run(turn.clone()));
        tellers.spawn(self.courier.clone().run(turn.clone()));
        tellers.close();
        let mut held = Instant::now();
        while !turn.is_cancelled() {
            tokio::select! {
                () = turn.cancelled() => {}
                () = tokio::time::sleep(HELD_EVERY) => match self.take(holder).await {
                    Ok(()) => held = Instant::now(),
                    Err(error) => {
                        let is_lost = matches!(error, StoreError::Occupied { .. }) || held.elapsed() > HELD_AT_MOST;
                        tracing::warn!("the turn of telling receivers is not renewed: {error}");
                        if is_lost {
                            turn.cancel();
                        }
                    }
                },
            }
        }
        tellers.wait().await;
    }
}

/// Brings receivers and routes in the database to the settings.
pub async fn apply(settings: &Settings, store: &Store, now_s: i64) -> Result<()> {
    sync::sync(store, &vault(settings), &given(settings)?, &settings.routes, now_s).await.context("webhooks")?;
    let Settings { silences, waivers, maintenance, .. } = settings;
    sync::quiet(store, silences, waivers, maintenance, now_s).await.context("what keeps quiet")
}

/// The key of the installation; a name without a folder is beside the database.
pub fn vault(settings: &Settings) -> Vault {
    let path = Path::new(&settings.alerts.key_file);
    let file = settings.database.strip_prefix("sqlite://").or_else(|| settings.database.strip_prefix("sqlite:"));
    let database = Path::new(file.unwrap_or(&settings.database));
    let is_beside = path.components().count() == 1 && !settings.database.contains("://");
    let beside = database.parent().filter(|_| is_beside || file.is_some()).map(|folder| folder.join(path));
    Vault::at(beside.as_deref().unwrap_or(path))
}

/// Where this installation is reached.
pub fn source(settings: &Settings) -> Source {
    let url = settings.web.public_url.trim_end_matches('/');
    Source(if url.is_empty() { format!("http://{}", settings.web.listen) } else { url.to_owned() })
}

fn mailer(settings: &Settings) -> Result<Mailer> {
    let alerts = &settings.alerts;
    let password = match alerts.smtp_password_file.as_str() {
        "" => None,
        path => Some(read(path).context("alerts.smtp_password_file")?),
    };
    Ok(Mailer::new(&alerts.smtp, &alerts.mail_from, password.as_deref())?)
}

/// A client of its own, behind the guard for receivers.
fn client(settings: &Settings) -> Result<Client> {
    let networks = Networks::try_from(settings.alerts.allow_networks.clone()).context("alerts.allow_networks")?;
    let net = NetSettings {
        allow_networks: networks,
        robots: false,
        time: TimeLimits { connect_ms: CONNECT_MS, ..settings.net.time.clone() },
        ..settings.net.clone()
    };
    Ok(Client::for_receivers(net, settings.alerts.ports.clone())?)
}

/// The way out.
fn wire(settings: &Settings) -> Result<Wire> {
    let client = client(settings)?;
    Ok(Wire::new(move |post| {
        let client = client.clone();
        async move {
            match client.tell(&post.url, &post.headers, post.body, courier::PATIENCE).await {
                Ok(Told::Answer { status, headers, body }) => {
                    Answer::Heard { status, headers: headers.into_iter().collect(), body }
                }
                Ok(Told::Silence { is_timeout, why }) => Answer::Silent { is_timeout, error: why.to_owned() },
                Ok(Told::Ours(why)) => Answer::Ours(why.to_owned()),
                Err(error) => Answer::Ours(error.to_string()),
            }
        }
    }))
}

/// The receivers of the settings, with what they point at read.
pub fn given(settings: &Settings) -> Result<Vec<Given>> {
    settings.webhooks.iter().map(|one| given_of(one).with_context(|| format!("webhook {}", one.name))).collect()
}

fn given_of(one: &WebhookSetting) -> Result<Given> {
    let url = match (&one.url_env, &one.url_file) {
        (Some(variable), _) => env(variable).context("url_env")?,
        (None, Some(path)) => read(path).context("url_file")?,
        (None, None) => one.url.clone(),
    };
    let template = match &one.template_file {
        Some(path) => std::fs::read_to_string(path).with_context(|| format!("template_file {path}"))?,
        None => one.template.clone(),
    };
    let secret = match (&one.secret_env, &one.secret_file) {
        (Some(variable), _) => Some(env(variable).context("secret_env")?),
        (None, Some(path)) => Some(read(path).context("secret_file")?),
        (None, None) => None,
    };
    let previous =
        one.previous_secret_file.as_ref().map(|path| read(path).context("previous_secret_file")).transpose()?;
    let secrets: Result<Vec<Key>, _> = secret.iter().chain(&previous).map(|text| Key::parse(text)).collect();
    let token = match (&one.token_env, &one.token_file) {
        (Some(variable), _) => Some(env(variable).context("token_env")?),
        (None, Some(path)) => Some(read(path).context("token_file")?),
        (None, None) => None,
    };
    let secrets = secrets.context("the secret")?;
    if secrets.is_empty() && !one.ed25519 && matches!(one.format, Format::Generic | Format::Template) {
        anyhow::bail!("a receiver needs a secret to know us by: set secret_file or secret_env");
    }
    Ok(Given { endpoint: one.endpoint(&url, &template)?, secrets, token, ed25519: one.ed25519 })
}

fn env(variable: &str) -> Result<String> {
    std::env::var(variable).with_context(|| format!("the variable {variable}"))
}

fn read(path: &str) -> Result<String> {
    Ok(std::fs::read_to_string(path).with_context(|| path.to_owned())?.trim().to_owned())
}
