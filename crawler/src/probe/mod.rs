//! Asking one surface, and what came of it.

pub mod a2a;
pub mod document;

use bytes::Bytes;
use plumbline_rules::reach::Outcome;
use plumbline_rules::session::{Exchange, Response, Session};

use crate::net::Validators;

/// What one probe brought home.
#[derive(Debug, Clone)]
pub struct Observed {
    /// Everything said on the wire.
    pub session: Session,
    /// How far we came.
    pub outcome: Outcome,
    /// The document of record, when one arrived.
    pub body: Body,
}

/// The document of record.
#[derive(Debug, Clone)]
pub enum Body {
    /// Nothing that could be judged.
    None,
    /// The same as last time: the server said so (304).
    Unchanged,
    /// These bytes.
    Bytes(Served),
}

/// A document as it was served.
#[derive(Debug, Clone)]
pub struct Served {
    /// The decoded bytes, cut at the limit of its kind.
    pub bytes: Bytes,
    /// The address it came from, after redirects.
    pub url: String,
    /// `Content-Type` as sent.
    pub media_type: Option<String>,
    /// What to send next time.
    pub validators: Option<Validators>,
}

impl Observed {
    /// Status of the last answer, if there was one.
    pub fn status(&self) -> Option<u16> {
        self.session.exchanges.iter().rev().find_map(|exchange| exchange.response.as_ref()).map(|r| r.status)
    }

    /// How long the asking took, in milliseconds.
    pub fn took_ms(&self) -> u64 {
        self.session.exchanges.iter().map(|exchange| exchange.took_ms).sum()
    }
}

/// Whether an exchange ended in a document: a 2xx answer.
fn is_success(response: &Response) -> bool {
    (200..300).contains(&response.status)
}

/// The answer of a fetch as a document, when it is one.
fn served(fetched: &crate::net::Fetched) -> Option<Served> {
    let response = fetched.response().filter(|response| is_success(response))?;
    let bytes = fetched.body.clone()?;
    Some(Served {
        bytes,
        url: fetched.final_url.clone(),
        media_type: response.headers.get("content-type").cloned(),
        validators: fetched.validators(),
    })
}

/// Whether nobody answered because of us or the way there, so that a further path would fail alike.
fn came_to_nothing(exchanges: &[Exchange]) -> bool {
    exchanges.last().is_none_or(|exchange| exchange.response.is_none())
}
