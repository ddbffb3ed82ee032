//! Metadata whose address an agent card names: whether it is there, and whether it is that issuer's.
//!
//! Nothing else is asked of it: how agents use it no specification says.

use url::Url;

use crate::authorization::{OPENID, RFC8414};
use crate::catalogue;
use crate::document::{Document, Node, Type};
use crate::judge::ask;
use crate::report::{NotEvaluated, RuleResult};
use crate::session::{Exchange, Session};
use crate::session_judge::document_of;
use crate::text::quote;

/// The newest revision, which metadata named by a card is judged as.
const REVISION: &str = "2026-07-28";

/// What the rules say about the metadata that a card names and that was asked for.
pub(crate) fn judge_named(session: &Session, card: Node<'_>, document: &Document) -> Vec<RuleResult> {
    let named = ["/securitySchemes/**/openIdConnectUrl", "/securitySchemes/**/oauth2MetadataUrl"];
    let named: Vec<Node<'_>> = named.into_iter().flat_map(|pattern| card.select(pattern)).collect();
    let asked: Vec<(Node<'_>, &Exchange)> =
        named.into_iter().filter_map(|node| Some((node, answer_to(session, node.text()?)?))).collect();
    if asked.is_empty() {
        return Vec::new();
    }
    let rule = |id: &str| catalogue::find(id).expect("the rule is in the catalogue");
    let not_found = ask(rule("oauth/as-metadata-not-found"), REVISION, Some(document), |out| {
        for (node, exchange) in &asked {
            match metadata(exchange) {
                Metadata::Other => {
                    let what = format!("no metadata at {}", quote(node.text().unwrap_or_default()));
                    out.add(*node, what);
                }
                Metadata::Unknown => out.not_evaluated(NotEvaluated::NoDocument),
                Metadata::Issuer(_) | Metadata::NoIssuer => {}
            }
        }
    });
    let mismatch = ask(rule("oauth/as-issuer-mismatch"), REVISION, Some(document), |out| {
        for (node, exchange) in &asked {
            let Metadata::Issuer(issuer) = metadata(exchange) else { continue };
            let expected = node.text().and_then(issuer_of);
            if expected.is_some_and(|expected| expected.trim_end_matches('/') != issuer.trim_end_matches('/')) {
                let what = format!("the metadata there is that of {}", quote(&issuer));
                out.add(*node, what);
            }
        }
    });
    vec![not_found, mismatch]
}

/// The last answer to a request for that address.
pub(crate) fn answer_to<'s>(session: &'s Session, url: &str) -> Option<&'s Exchange> {
    let first = session.exchanges.iter().position(|exchange| exchange.request.url == url)?;
    let mut last = &session.exchanges[first];
    for next in &session.exchanges[first + 1..] {
        if last.redirect().is_none_or(|to| to.as_str() != next.request.url) {
            break;
        }
        last = next;
    }
    Some(last)
}

enum Metadata {
    /// It names this issuer.
    Issuer(String),
    /// It has an endpoint and no issuer.
    NoIssuer,
    /// Something else is there, or nothing.
    Other,
    /// Nobody can tell.
    Unknown,
}

fn metadata(exchange: &Exchange) -> Metadata {
    let Some(response) = exchange.response.as_ref().filter(|response| response.cut.is_none()) else {
        return Metadata::Unknown;
    };
    if matches!(response.status, 401..=403 | 407 | 429 | 500..) {
        return Metadata::Unknown;
    }
    let document = document_of(response);
    let root = document.root().filter(|root| response.status == 200 && root.kind() == Type::Object);
    let text = |name: &str| root.and_then(|root| root.get(name)).and_then(Node::text);
    match (text("issuer"), text("authorization_endpoint")) {
        (Some(issuer), _) => Metadata::Issuer(issuer.to_owned()),
        (None, Some(_)) => Metadata::NoIssuer,
        (None, None) => Metadata::Other,
    }
}

/// The issuer whose metadata lies at an address, where the address is a well-known one.
fn issuer_of(address: &str) -> Option<String> {
    if let Some(issuer) = address.strip_suffix(OPENID) {
        return Some(issuer.to_owned());
    }
    let url = Url::parse(address).ok()?;
    let path = url.path().strip_prefix(RFC8414).or_else(|| url.path().strip_prefix(OPENID))?;
    Some(format!("{}{path}", url.origin().ascii_serialization()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_well_known_address_shows_its_issuer() {
        let rows = [
            ("https://id.example/t/.well-known/openid-configuration", Some("https://id.example/t")),
            ("https://id.example/.well-known/openid-configuration/t", Some("https://id.example/t")),
            ("https://id.example/.well-known/oauth-authorization-server", Some("https://id.example")),
            ("https://id.example/metadata.json", None),
        ];
        for (address, issuer) in rows {
            assert_eq!(issuer_of(address).as_deref(), issuer, "{address}");
        }
    }
}
