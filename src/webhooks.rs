//! `plumbline webhooks`: what receivers there are, whether they hear us, what did not arrive, and a receiver of our own.

use std::io::Write as _;
use std::net::SocketAddr;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use clap::Subcommand;
use plumbline_alerts::courier::Tested;
use plumbline_alerts::payload;
use plumbline_alerts::retry;
use plumbline_alerts::signature::{self, Key};
use plumbline_alerts::wire::Answer;
use plumbline_store::hooks::{DeliveryState, Endpoint};
use serde_json::{Value, json};

use crate::settings::{Options, Settings};
use crate::telling::{self, Telling};
use crate::wiring;

#[derive(clap::Args)]
#[command(after_help = "Examples:
  plumbline webhooks listen --secret whsec_…     print and verify what arrives on http://127.0.0.1:9000
  plumbline webhooks ping on-call                send a signed test message now
  plumbline webhooks dead                        what is out of attempts
  plumbline webhooks replay on-call msg_01K…     send it again under the same id")]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Receivers, how they do, and what waits for them.
    List,
    /// Print what arrives, and whether its signature is right.
    Listen {
        /// Address and port.
        #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:9000")]
        address: SocketAddr,
        /// The shared secret, whsec_…
        #[arg(long, value_name = "SECRET", env = "PLUMBLINE_WEBHOOK_SECRET", hide_env_values = true)]
        secret: Option<String>,
        /// Answer with this status.
        #[arg(long, value_name = "STATUS", default_value_t = 204)]
        answer: u16,
    },
    /// Send a signed test message, or an example of any type, without retries.
    Ping {
        /// The receiver's name.
        name: String,
        /// The type of the example.
        #[arg(long = "type", value_name = "TYPE", default_value = "ping")]
        kind: String,
    },
    /// Send a message again.
    Replay {
        /// The receiver's name.
        name: String,
        /// The message; without it everything that is dead or was cancelled.
        message: Option<String>,
        /// Only what happened at or after this moment (RFC 3339).
        #[arg(long, value_name = "TIME", conflicts_with = "message")]
        since: Option<String>,
        /// Under a new id, so that a receiver that remembers ids takes it as new.
        #[arg(long, requires = "message")]
        as_new: bool,
    },
    /// Messages that are out of attempts.
    Dead,
    /// Switch a receiver on after it was switched off; what waits for it is tried at once.
    Enable {
        /// The receiver's name.
        name: String,
    },
    /// Make a secret for a receiver and print it.
    Secret,
    /// Print the public half of the key pair that messages to a receiver are signed with (`ed25519 = true`).
    Key {
        /// The receiver's name.
        name: String,
    },
}

pub fn run(options: &Options, arguments: &Arguments) -> Result<ExitCode> {
    match &arguments.command {
        Command::Secret => {
            println!("{}", Key::new_shared()?.for_receiver()?);
            return Ok(ExitCode::SUCCESS);
        }
        Command::Listen { address, secret, answer } => {
            let secret = secret.as_deref().map(Key::parse).transpose().context("--secret")?;
            let answer = StatusCode::from_u16(*answer).context("--answer")?;
            return wiring::runtime()?.block_on(listen(*address, secret, answer));
        }
        _ => {}
    }
    let settings = Settings::load(options)?;
    wiring::runtime()?.block_on(async {
        let store = wiring::open(&settings).await?;
        let now_s = chrono::Utc::now().timestamp();
        let code = match &arguments.command {
            Command::List => list(&store).await?,
            Command::Ping { name, kind } => ping(&settings, &store, name, kind, now_s).await?,
            Command::Replay { name, message, since, as_new } => {
                replay(&store, name, message.as_deref(), since.as_deref(), *as_new, now_s).await?
            }
            Command::Dead => dead(&store).await?,
            Command::Enable { name } => {
                let endpoint = store.endpoint(name).await?;
                store.enable_endpoint(endpoint.id, true, "", now_s).await?;
                wiring::note(&store, "webhook.resume", format!("webhook:{name}"), Value::Null).await?;
                println!("{name} is sent to again.");
                ExitCode::SUCCESS
            }
            Command::Key { name } => key(&settings, &store, name, now_s).await?,
            Command::Listen { .. } | Command::Secret => ExitCode::SUCCESS,
        };
        store.close().await;
        Ok(code)
    })
}

async fn list(store: &plumbline_store::Store) -> Result<ExitCode> {
    let endpoints = store.endpoints().await?;
    if endpoints.is_empty() {
        println!("No receivers. Name one in the settings under [[webhooks]], or make one at /webhooks.");
    }
    let mut out = std::io::stdout().lock();
    for endpoint in endpoints {
        let waits = store.backlog(Some(endpoint.id)).await?;
        let note = endpoint.state_note.as_deref().map_or_else(String::new, |note| format!(" ({note})"));
        writeln!(
            out,
            "{:<20} {:<13} {:<7} {}{note}; {} wait, {} dead; last success {}",
            endpoint.is.slug,
            endpoint.is.format,
            endpoint.is.mode,
            endpoint.state,
            waits.pending,
            waits.dead,
            endpoint.last_success_s.map_or_else(|| "never".to_owned(), payload::rfc3339)
        )?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Public halves only: a shared secret is never printed again.
async fn key(settings: &Settings, store: &plumbline_store::Store, name: &str, now_s: i64) -> Result<ExitCode> {
    telling::apply(settings, store, now_s).await?;
    let endpoint = store.endpoint(name).await?;
    let vault = telling::vault(settings);
    let own = store.secrets(endpoint.id, now_s).await?.into_iter().filter(|secret| secret.scheme == "v1a");
    let mut printed = false;
    for secret in own {
        println!("{}", Key::of(&secret.scheme, vault.unseal(&secret.sealed)?).for_receiver()?);
        printed = true;
    }
    if !printed {
        bail!("{name} has no key pair: set `ed25519 = true` under its [[webhooks]]");
    }
    Ok(ExitCode::SUCCESS)
}

async fn ping(
    settings: &Settings,
    store: &plumbline_store::Store,
    name: &str,
    kind: &str,
    now_s: i64,
) -> Result<ExitCode> {
    telling::apply(settings, store, now_s).await?;
    let endpoint: Endpoint = store.endpoint(name).await?;
    let telling = Telling::new(settings, store.clone()).await?;
    let example = plumbline_alerts::event_types::named(kind).with_context(|| format!("`{kind}` is no event type"))?;
    let body = payload::body(kind, now_s, &telling.teller.source, &example.example["data"]);
    let message = telling.teller.ids.next(now_s * 1000);
    let Tested { sent, answer, took_ms } = telling.courier.test(endpoint, &message, kind, body).await?;
    println!("{message} {kind}, sent:\n{sent:#}\n");
    match &answer {
        Answer::Heard { status, body, .. } => println!("answered {status} after {took_ms} ms:\n{body}"),
        Answer::Silent { .. } | Answer::Ours(_) => println!("no answer: {}", retry::said(&answer)),
    }
    let is_accepted = matches!(answer, Answer::Heard { status: 200..=299, .. });
    Ok(ExitCode::from(u8::from(!is_accepted)))
}

async fn replay(
    store: &plumbline_store::Store,
    name: &str,
    message: Option<&str>,
    since: Option<&str>,
    as_new: bool,
    now_s: i64,
) -> Result<ExitCode> {
    let endpoint = store.endpoint(name).await?;
    let Some(message) = message else {
        let since_s = since.map(chrono::DateTime::parse_from_rfc3339).transpose().context("--since")?;
        let since_s = since_s.map_or(0, |at| at.timestamp());
        let many = store.replay_since(endpoint.id, since_s, now_s).await?;
        let what = json!({ "since_s": since_s, "messages": many });
        wiring::note(store, "webhook.replay", format!("webhook:{name}"), what).await?;
        println!("{many} messages are sent to {name} again.");
        return Ok(ExitCode::SUCCESS);
    };
    let found = if as_new {
        let ids = plumbline_alerts::teller::Teller::ids(store).await?;
        let new = ids.next(now_s * 1000);
        let found = store.send_as_new(endpoint.id, message, &new, now_s).await?;
        if found {
            println!("{message} is sent to {name} as {new}.");
        }
        found
    } else {
        let found = store.replay(endpoint.id, message, now_s).await?;
        if found {
            println!("{message} is sent to {name} again.");
        }
        found
    };
    if !found {
        bail!("there is no message {message} for {name}");
    }
    let what = json!({ "message": message, "as_new": as_new });
    wiring::note(store, "webhook.replay", format!("webhook:{name}"), what).await?;
    Ok(ExitCode::SUCCESS)
}

async fn dead(store: &plumbline_store::Store) -> Result<ExitCode> {
    let rows = store.deliveries(None, Some(DeliveryState::Dead), None, 1_000).await?;
    let mut out = std::io::stdout().lock();
    for row in &rows {
        let last =
            row.last_code.map_or_else(|| row.last_error.clone().unwrap_or_default(), |code| format!("status {code}"));
        writeln!(out, "{} {} {} {}: {last}", row.message, row.endpoint_slug, row.kind, payload::rfc3339(row.at_s))?;
    }
    writeln!(out, "{} messages are out of attempts.", rows.len())?;
    Ok(ExitCode::SUCCESS)
}

/// A receiver for whoever writes one: says what came and whether it may be believed.
async fn listen(address: SocketAddr, secret: Option<Key>, answer: StatusCode) -> Result<ExitCode> {
    let listener =
        tokio::net::TcpListener::bind(address).await.with_context(|| format!("cannot listen on {address}"))?;
    println!("Listening on http://{}; end with Ctrl-C.", listener.local_addr()?);
    if secret.is_none() {
        println!("No secret is given, so signatures are not checked.");
    }
    let app = Router::new().fallback(arrived).with_state((secret, answer));
    axum::serve(listener, app)
        .with_graceful_shutdown(async {
            // Whatever ends the wait ends the listening.
            let _ = tokio::signal::ctrl_c().await;
        })
        .await?;
    Ok(ExitCode::SUCCESS)
}

async fn arrived(
    State((secret, answer)): State<(Option<Key>, StatusCode)>,
    headers: HeaderMap,
    body: Bytes,
) -> StatusCode {
    let verdict = verdict(secret.as_ref(), &headers, &body, chrono::Utc::now().timestamp());
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or("-").to_owned();
    let shown = match serde_json::from_slice::<serde_json::Value>(&body) {
        Ok(json) => format!("{json:#}"),
        Err(_) => payload::plain(&String::from_utf8_lossy(&body), 2_000),
    };
    println!("\n{} attempt {}: {verdict}\n{shown}", text("webhook-id"), text("plumbline-attempt"));
    answer
}

/// Whether a message may be believed, in words.
fn verdict(secret: Option<&Key>, headers: &HeaderMap, body: &[u8], now_s: i64) -> &'static str {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let (Some(id), Some(at), Some(signatures)) =
        (text("webhook-id"), text("webhook-timestamp"), text("webhook-signature"))
    else {
        return "not signed";
    };
    let Some(at_s) = at.parse::<i64>().ok() else { return "its timestamp is no number" };
    let Some(secret) = secret else { return "signed, not checked" };
    if (now_s - at_s).abs() > signature::TOLERANCE_S {
        return "too old or from the future: drop it";
    }
    if signature::is_signed_by(secret, id, at_s, body, signatures) {
        "the signature is right"
    } else {
        "the signature is WRONG"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_arrives_is_believed_only_when_it_is_signed_and_fresh() {
        let key = Key::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").expect("a secret");
        let (id, at_s, body) = ("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, br#"{"test": 2432232314}"#);
        let mut headers = HeaderMap::new();
        assert_eq!(verdict(Some(&key), &headers, body, at_s), "not signed");
        headers.insert("webhook-id", id.parse().expect("plain"));
        headers.insert("webhook-timestamp", at_s.to_string().parse().expect("plain"));
        headers.insert("webhook-signature", "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=".parse().expect("plain"));
        assert_eq!(verdict(Some(&key), &headers, body, at_s), "the signature is right");
        assert_eq!(verdict(Some(&key), &headers, b"{}", at_s), "the signature is WRONG");
        assert_eq!(verdict(Some(&key), &headers, body, at_s + 301), "too old or from the future: drop it");
        assert_eq!(verdict(None, &headers, body, at_s), "signed, not checked");
    }
}
