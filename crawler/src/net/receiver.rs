//! One message to a receiver of webhooks: a POST whose answer is read as far as the log keeps it.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use http::Method;
use http::header::{HeaderName, HeaderValue};
use plumbline_rules::session::WireError;

use super::NetError;
use super::ask::{Ask, Header, Patience, Way, Wire};
use super::client::Client;
use super::limits::BodyKind;
use crate::words::wire_error;

/// What a receiver said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Told {
    /// An answer; redirects are one.
    Answer {
        /// HTTP status.
        status: u16,
        /// Headers by name, in lower case.
        headers: BTreeMap<String, String>,
        /// The start of the body.
        body: String,
    },
    /// None.
    Silence {
        /// They took too long.
        is_timeout: bool,
        /// Why, in words.
        why: &'static str,
    },
    /// Nothing left this machine, and that is our fault.
    Ours(&'static str),
}

impl Client {
    /// Sends a message to a receiver, as the guard allows.
    ///
    /// # Errors
    /// Only when we failed.
    pub async fn tell(
        &self,
        url: &str,
        headers: &[(String, String)],
        body: Vec<u8>,
        patience: Duration,
    ) -> Result<Told, NetError> {
        let sent = headers.iter().filter_map(|(name, value)| {
            let name = HeaderName::try_from(name.as_str()).ok()?;
            let value = HeaderValue::try_from(value.as_str()).ok()?;
            Some(Header::new(name, value))
        });
        let ask = Ask {
            method: Method::POST,
            headers: sent.collect(),
            body: Some(Bytes::from(body)),
            way: Way::Webhook,
            patience: Some(Patience { head: patience, total: patience }),
            wire: Wire::Usual,
            ..Ask::get(url, BodyKind::WebhookAnswer)
        };
        let fetched = self.fetch(ask).await?;
        let last = fetched.last();
        Ok(match (&last.response, last.error) {
            (Some(response), _) => Told::Answer {
                status: response.status,
                headers: response.headers.clone(),
                body: fetched
                    .body
                    .as_deref()
                    .map(|bytes| String::from_utf8_lossy(bytes).into_owned())
                    .unwrap_or_default(),
            },
            (None, Some(error @ (WireError::DnsUnavailable | WireError::NoRoute))) => Told::Ours(wire_error(error)),
            (None, Some(error)) => Told::Silence {
                is_timeout: matches!(error, WireError::ConnectTimeout | WireError::Timeout | WireError::DnsTimeout),
                why: match error {
                    WireError::AddressGuard => {
                        "its address is not one we may call (alerts.allow_networks, alerts.ports)"
                    }
                    other => wire_error(other),
                },
            },
            (None, None) => Told::Ours("the address was not asked"),
        })
    }
}
