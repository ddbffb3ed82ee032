//! Who watches the watcher: an address of the operator's that is called after a good pass. When the calls stop, somebody
//! there notices, whatever became of us.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use plumbline_crawler::net::{Ask, BodyKind, Client, Way};
use plumbline_crawler::words::wire_error;
use tokio::sync::Mutex;

/// Good passes that follow one another faster than this are told as one: a service that expects a call every few minutes
/// needs no more, and a round may be short.
const GAP: Duration = Duration::from_secs(60);

/// Calls the address, at most once a minute.
#[derive(Default)]
pub struct Pinger {
    last: Mutex<Option<Instant>>,
}

impl Pinger {
    /// A pass was good. Nothing happens where no address is set; a failure is logged, and the next pass tries again.
    pub async fn good_pass(&self, client: &Client, url: &str) {
        if url.is_empty() {
            return;
        }
        let mut last = self.last.lock().await;
        if last.is_some_and(|last| last.elapsed() < GAP) {
            return;
        }
        match call(client, url).await {
            Ok(()) => *last = Some(Instant::now()),
            Err(error) => tracing::warn!("watch.ping_url: {error:#}"),
        }
    }
}

/// The address may hold a secret, so it is never told.
async fn call(client: &Client, url: &str) -> Result<()> {
    let ask = Ask { way: Way::Listed, ..Ask::get(url, BodyKind::WebhookAnswer) };
    let fetched = client.fetch(ask).await?;
    match fetched.exchanges.last().map(|last| (&last.response, &last.error)) {
        Some((Some(response), _)) if (200..300).contains(&response.status) => Ok(()),
        Some((Some(response), _)) => bail!("the address answered with status {}", response.status),
        Some((None, Some(error))) => bail!("{}", wire_error(*error)),
        Some((None, None)) | None => bail!("the address was not asked"),
    }
}
