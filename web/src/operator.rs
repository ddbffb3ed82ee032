//! Who may change anything: until there are accounts, whoever sits at this machine or shows a token (decisions 22).
//!
//! A token stands in `Authorization: Bearer plb_…`, or in the field `api_token` of a form: what a person types in for each act,
//! no page of another site can send. A request without one counts as the operator's when it comes from the loopback, was handed
//! on by nobody, is addressed to the loopback by name (a stranger's page that resolves its own name to this machine sends its own
//! name), and was not sent by another site's page.

use std::net::{IpAddr, SocketAddr};

use axum::Form;
use axum::body::{Body, to_bytes};
use axum::extract::{ConnectInfo, FromRequest, FromRequestParts, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use plumbline_alerts::matcher::Matcher;
use plumbline_store::audit::Noted;
use plumbline_store::tokens::{Scope, TokenRow};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::WebState;
use crate::error::Error;

/// Bytes of a form, at most: a template of 32 KiB, escaped.
const LONGEST_FORM: usize = 256 * 1024;

/// The person at this machine, or whoever shows a token that allows everything; taking one as an argument keeps everybody else
/// out of a handler.
#[derive(Debug, Clone)]
pub struct Operator(pub Actor);

impl FromRequestParts<WebState> for Operator {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &WebState) -> Result<Self, Error> {
        if bearer(&parts.headers).is_none() && !is_operator(parts) {
            return Err(Error::NotYours);
        }
        let actor = Actor::of(parts, None, state).await?;
        actor.must_allow(Scope::Admin)?;
        actor.must_be_unlimited()?;
        Ok(Self(actor))
    }
}

/// Whoever acts: the person at this machine, or the holder of a token.
#[derive(Debug, Clone)]
pub struct Actor {
    token: Option<TokenRow>,
    from: Option<IpAddr>,
}

impl FromRequestParts<WebState> for Actor {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &WebState) -> Result<Self, Error> {
        Actor::of(parts, None, state).await
    }
}

impl Actor {
    /// Whoever shows a token is judged by it, wherever they sit.
    pub(crate) async fn of(parts: &Parts, typed: Option<&str>, state: &WebState) -> Result<Actor, Error> {
        let from = peer(parts);
        match bearer(&parts.headers).or(typed) {
            Some(text) => {
                let token = state.store.token(text, (state.now)()).await?.ok_or(Error::NoToken)?;
                Ok(Actor { token: Some(token), from })
            }
            // What is shown and is no token of ours is refused too.
            None if is_operator(parts) && !parts.headers.contains_key(header::AUTHORIZATION) => {
                Ok(Actor { token: None, from })
            }
            None => Err(Error::NoToken),
        }
    }

    /// As the audit names it: a token by its number, title and scopes.
    #[must_use]
    pub fn in_full(&self) -> String {
        let Some(token) = &self.token else { return "operator".to_owned() };
        let scopes = token.scopes.iter().map(|scope| scope.as_str()).collect::<Vec<_>>().join(" ");
        let title = if token.title.is_empty() { String::new() } else { format!(" “{}”", token.title) };
        let owner = token.owner.as_ref().map_or_else(String::new, |owner| format!(", only {owner}"));
        format!("token {}{title} ({scopes}{owner})", token.id)
    }

    /// Notes what was done in the audit: the action, what it was done to, and how that was and is, without secrets.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn note(
        &self,
        state: &WebState,
        action: &'static str,
        entity: String,
        (before, after): (Option<Value>, Option<Value>),
    ) -> Result<(), Error> {
        let ip = self.from.map(|ip| ip.to_canonical().to_string());
        let noted = Noted { actor: self.in_full(), action, entity, before, after, ip };
        Ok(state.store.note(&noted, (state.now)()).await?)
    }

    /// As authors of silences and the like are named.
    #[must_use]
    pub fn name(&self) -> String {
        match &self.token {
            None => "operator".to_owned(),
            Some(token) if token.title.is_empty() => format!("token {}", token.id),
            Some(token) => token.title.clone(),
        }
    }

    /// Who that is for as long as there are tokens, whatever they are called: `operator`, or `token` and its number.
    #[must_use]
    pub fn key(&self) -> String {
        self.token.as_ref().map_or_else(|| "operator".to_owned(), |token| format!("token {}", token.id))
    }

    /// Whether that is allowed.
    ///
    /// # Errors
    /// [`Error::Lacks`].
    pub fn must_allow(&self, scope: Scope) -> Result<(), Error> {
        match &self.token {
            Some(token) if !token.allows(scope) => Err(Error::Lacks(scope.as_str())),
            _ => Ok(()),
        }
    }

    /// The one owner whose targets may be touched; `None`: all.
    #[must_use]
    pub fn owner(&self) -> Option<&str> {
        self.token.as_ref()?.owner.as_deref()
    }

    /// Whether what a matcher covers may be touched: a token of one owner asks for `owner:` of that one.
    ///
    /// # Errors
    /// [`Error::NotTheirs`].
    pub fn must_cover(&self, matcher: &str) -> Result<(), Error> {
        let Some(owner) = self.owner() else { return Ok(()) };
        let is_theirs = Matcher::parse(matcher).is_ok_and(|matcher| matcher.is_within_owner(owner));
        if is_theirs { Ok(()) } else { Err(Error::NotTheirs(owner.to_owned())) }
    }

    fn must_be_unlimited(&self) -> Result<(), Error> {
        self.owner().map_or(Ok(()), |owner| Err(Error::NotTheirs(owner.to_owned())))
    }
}

/// A form and who sent it: alerts, receivers and the like may be acted on.
#[derive(Debug, Clone)]
pub struct Acted<T> {
    /// Whoever sent it; it holds `alerts:write` or sits here.
    pub by: Actor,
    /// The form.
    pub form: T,
}

/// The token, where it stands in the form.
#[derive(Deserialize)]
struct Typed {
    api_token: Option<String>,
}

impl<T: DeserializeOwned> FromRequest<WebState> for Acted<T> {
    type Rejection = Error;

    async fn from_request(request: Request, state: &WebState) -> Result<Self, Error> {
        let (parts, body) = request.into_parts();
        let bytes =
            to_bytes(body, LONGEST_FORM).await.map_err(|_| Error::BadForm("The form is too long.".to_owned()))?;
        let again = || Request::from_parts(parts.clone(), Body::from(bytes.clone()));
        let typed = Form::<Typed>::from_request(again(), state).await.ok().and_then(|Form(typed)| typed.api_token);
        let typed = typed.as_deref().map(str::trim).filter(|text| !text.is_empty());
        let by = Actor::of(&parts, typed, state).await?;
        by.must_allow(Scope::AlertsWrite)?;
        let Form(form) =
            Form::<T>::from_request(again(), state).await.map_err(|error| Error::BadForm(error.body_text()))?;
        Ok(Acted { by, form })
    }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let shown = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, text) = shown.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| text.trim())
}

/// Whether a request is the operator's.
pub fn is_operator(parts: &Parts) -> bool {
    is_from_here(peer(parts), &parts.headers)
}

/// Who is at the other end of the connection.
fn peer(parts: &Parts) -> Option<IpAddr> {
    parts.extensions.get::<ConnectInfo<SocketAddr>>().map(|info| info.0.ip())
}

fn is_from_here(peer: Option<IpAddr>, headers: &HeaderMap) -> bool {
    let text = |name: header::HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let is_handed_on =
        ["forwarded", "x-forwarded-for", "x-real-ip", "via"].iter().any(|name| headers.contains_key(*name));
    let host = text(header::HOST).unwrap_or_default();
    let has_own_origin =
        text(header::ORIGIN).is_none_or(|origin| origin.split_once("://").is_some_and(|o| o.1 == host));
    let site = headers.get("sec-fetch-site").and_then(|value| value.to_str().ok());
    let is_own_page = site.is_none_or(|site| matches!(site, "same-origin" | "none"));
    peer.is_some_and(|ip| ip.to_canonical().is_loopback())
        && !is_handed_on
        && names_the_loopback(host)
        && has_own_origin
        && is_own_page
}

fn names_the_loopback(host: &str) -> bool {
    let Ok(authority) = host.parse::<axum::http::uri::Authority>() else { return false };
    let name = authority.host().trim_matches(['[', ']']);
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(peer: &str, headers: &[(&str, &str)]) -> bool {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(header::HeaderName::try_from(*name).unwrap(), value.parse().unwrap());
        }
        is_from_here(Some(peer.parse().unwrap()), &map)
    }

    #[test]
    fn a_bearer_is_read_whatever_its_case() {
        let bearer_of = |text: &'static str| {
            let headers = HeaderMap::from_iter([(header::AUTHORIZATION, header::HeaderValue::from_static(text))]);
            bearer(&headers).map(str::to_owned)
        };
        assert_eq!(bearer_of("Bearer plb_1").as_deref(), Some("plb_1"));
        assert_eq!(bearer_of("bearer  plb_1 ").as_deref(), Some("plb_1"));
        assert_eq!(bearer_of("Basic plb_1"), None);
        assert_eq!(bearer_of("plb_1"), None);
    }

    #[test]
    fn only_the_person_at_this_machine_may_change_anything() {
        let here = ("host", "127.0.0.1:8080");
        assert!(asked("127.0.0.1", &[here]));
        assert!(asked("::ffff:127.0.0.1", &[("host", "localhost:8080"), ("origin", "http://localhost:8080")]));
        assert!(asked("::1", &[("host", "[::1]:8080"), ("sec-fetch-site", "same-origin")]));
        for (why, peer, headers) in [
            ("from elsewhere", "192.0.2.7", vec![here]),
            ("handed on by a proxy", "127.0.0.1", vec![here, ("x-forwarded-for", "192.0.2.7")]),
            ("a name that was made to lead here", "127.0.0.1", vec![("host", "evil.example:8080")]),
            ("another site's page", "127.0.0.1", vec![here, ("origin", "https://evil.example")]),
            ("another site's form", "127.0.0.1", vec![here, ("sec-fetch-site", "cross-site")]),
            ("no name at all", "127.0.0.1", vec![]),
        ] {
            assert!(!asked(peer, &headers), "{why}");
        }
        assert!(!is_from_here(None, &HeaderMap::from_iter([(header::HOST, "127.0.0.1".parse().unwrap())])));
    }
}
