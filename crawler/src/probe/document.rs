//! Any single document at an address of its own, or in a file.

use std::path::Path;

use bytes::Bytes;
use plumbline_rules::kind::Kind;
use plumbline_rules::reach::Outcome;
use plumbline_rules::session::{Session, Step, Surface};
use plumbline_rules::session_judge::document_of_record;
use tokio::io::AsyncReadExt;

use super::{Body, Observed, apart, served};
use crate::net::{Ask, Asked, BodyKind, Client, Header, NetError, Validators, Way, outcome};

/// Asks for a document that the settings name.
///
/// # Errors
/// Only when we failed.
pub async fn observe(
    client: &Client,
    url: &str,
    kind: Kind,
    headers: &[Header],
    validators: Option<Validators>,
) -> Result<Observed, NetError> {
    let ask = Ask {
        step: Some(Step::Document),
        accept: Some("application/json, */*;q=0.5"),
        headers: headers.to_vec(),
        validators,
        way: Way::Listed,
        ..Ask::get(url, body_kind(kind))
    };
    let fetched = client.fetch(ask).await?;
    let outcome = outcome(&fetched.exchanges, Asked::Document);
    let unchanged = fetched.is_not_modified();
    let (session, robots) = apart(fetched.exchanges);
    let body = if unchanged { Body::Unchanged } else { served(&session, document_of_record(&session, Surface::Any)) };
    Ok(Observed { session, robots, outcome, body })
}

/// Reads a document from disk. A file that is not there is absent; one that cannot be read is our own fault.
pub async fn observe_file(path: &str, kind: Kind) -> Observed {
    // One byte more than the limit tells a body that is too large from one that just fits.
    let limit = kind.limit_bytes() as u64 + 1;
    let (outcome, body) = match read_file(Path::new(path), limit).await {
        Ok(bytes) => (Outcome::Ok, Body::File(bytes)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => (Outcome::Absent(None), Body::None),
        Err(error) => {
            tracing::warn!("cannot read {path}: {error}");
            (Outcome::CrawlerFault, Body::None)
        }
    };
    Observed { session: Session::default(), robots: Vec::new(), outcome, body }
}

async fn read_file(path: &Path, limit: u64) -> std::io::Result<Bytes> {
    let mut bytes = Vec::new();
    tokio::fs::File::open(path).await?.take(limit).read_to_end(&mut bytes).await?;
    Ok(bytes.into())
}

fn body_kind(kind: Kind) -> BodyKind {
    match kind {
        Kind::AgentCard => BodyKind::AgentCard,
        Kind::McpServerCard | Kind::McpAiCatalog => BodyKind::ServerCard,
        Kind::ServerJson | Kind::RegistryEntry => BodyKind::ServerJson,
        Kind::OauthProtectedResource | Kind::OauthAuthorizationServer | Kind::OauthOpenidConfiguration => {
            BodyKind::OauthMetadata
        }
        Kind::Openapi => BodyKind::OpenApi,
        Kind::RegistryPage => BodyKind::RegistryPage,
        _ => BodyKind::Other,
    }
}
