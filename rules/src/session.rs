//! What was said on the wire, as plain data: the crawler fills it, rules read it, a bug report is one of these in a file.
//!
//! The JSON form is the one of the vectors: header names in lower case, bodies as text where they are text, exchanges in
//! the order they were made, redirects hop by hop.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Everything said to observe one surface once, redirects and second tries included.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Session {
    /// In the order they were made.
    pub exchanges: Vec<Exchange>,
}

/// What an exchange was made for. Rules ask for exchanges by step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Step {
    /// `/.well-known/agent-card.json` (or the card's own address) asked with `A2A-Version: 1.0`.
    Card,
    /// The same address asked without the version header.
    CardPlain,
    /// `/.well-known/agent.json`, the path before A2A 0.3.
    CardLegacy,
    /// `robots.txt` of the host.
    Robots,
    /// One page of a registry's list.
    RegistryPage,
    /// Any other single document, asked for by its address.
    Document,
}

/// One request and what came back: an answer, or the error in its place.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Exchange {
    /// Why it was made.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub step: Option<Step>,
    /// What was sent.
    pub request: Request,
    /// What came back; `None` when `error` says why nothing did.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub response: Option<Response>,
    /// Why there is no answer.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub error: Option<WireError>,
    /// When the request left, in milliseconds since 1970 UTC; 0 where nobody noted it.
    #[serde(default)]
    pub at_ms: i64,
    /// From the first byte sent to the last byte read, in milliseconds.
    #[serde(default)]
    pub took_ms: u64,
}

/// A request as sent, credentials masked.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// `GET`, `POST`, …
    pub method: String,
    /// The absolute address.
    pub url: String,
    /// Lower-case names; a value that was a secret reads `***`.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
}

/// An answer as received.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Response {
    /// The HTTP status.
    pub status: u16,
    /// Lower-case names; several fields of one name are joined by `, `.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// The decoded body as text; `None` when it is no UTF-8 (then `raw_base64` holds it).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub raw: Option<String>,
    /// The decoded body where it is no text.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub raw_base64: Option<String>,
    /// Bytes that crossed the wire, before content decoding.
    #[serde(default)]
    pub wire_bytes: u64,
    /// Why the body is not whole, when it is not.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cut: Option<Cut>,
}

/// Why a body ends before its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cut {
    /// The limit for decoded bytes of this kind was reached (`common/too-large`).
    Limit,
    /// The connection ended early, or `Content-Length` promised more.
    Truncated,
    /// The time for the whole answer ran out.
    Timeout,
    /// The content coding could not be undone.
    BadEncoding,
}

/// Why there was no answer. The spelling is that of the vectors; dashboard.md §3 maps them to reach reasons.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WireError {
    /// The resolver failed (SERVFAIL, no answer).
    Dns,
    /// The name does not exist.
    DnsNxdomain,
    /// The resolver did not answer in time.
    DnsTimeout,
    /// No name server of ours could be asked: our fault, not the target's.
    DnsUnavailable,
    /// Nobody listens.
    Refused,
    /// This machine has no way to that network (IPv6 without IPv6, cable unplugged): our fault, not the target's.
    NoRoute,
    /// No connection in time.
    ConnectTimeout,
    /// Connected, but no answer in time.
    Timeout,
    /// The connection broke.
    Reset,
    /// TLS could not be agreed.
    Tls,
    /// The certificate has ended.
    TlsCertificateExpired,
    /// The certificate is for another name.
    TlsCertificateName,
    /// The certificate leads to no known root.
    TlsCertificateUnknownIssuer,
    /// Not called: the address is not one we may reach.
    AddressGuard,
    /// Not called: the address itself cannot be used (no host, another scheme).
    BadUrl,
    /// Not called: robots.txt asks us not to.
    Robots,
    /// More redirects than allowed.
    RedirectLimit,
    /// Not HTTP, or broken HTTP.
    Protocol,
}
