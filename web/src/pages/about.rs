//! `/about/crawler`: who we are, how the crawler behaves, and how an owner opts out. It is where the User-Agent points.

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use serde::Serialize;

use crate::WebState;
use crate::cache::Cache;
use crate::error::Error;
use crate::filters;
use crate::page::{Frame, Place, Visit};
use crate::text;

/// Who crawls, and how.
#[derive(Template, Serialize)]
#[template(path = "about.html")]
struct About {
    #[serde(skip)]
    frame: Frame,
    /// The name of this installation.
    instance: String,
    /// The User-Agent the crawler sends.
    user_agent: String,
    /// Whom to write to; empty: none is given.
    contact: String,
    /// The gap between two requests to one host.
    gap: String,
    /// Who asked to be left alone.
    opt_outs: Vec<String>,
    #[serde(skip)]
    contact_url: Option<String>,
}

/// `GET /about/crawler`
pub async fn show(visit: Visit, State(state): State<WebState>) -> Result<Response, Error> {
    let settings = state.site();
    let page = About {
        frame: visit.framed(Place::About),
        instance: settings.instance_name.clone(),
        user_agent: settings.user_agent.clone(),
        contact: settings.contact.clone(),
        gap: text::duration_ms(i64::try_from(settings.pace_ms).unwrap_or(i64::MAX)),
        opt_outs: settings.opt_outs.clone(),
        contact_url: contact_url(&settings.contact),
    };
    visit.answer(&page, Cache::Fresh)
}

/// A link for a contact that is a mail address or a web address.
fn contact_url(contact: &str) -> Option<String> {
    if ["https://", "http://", "mailto:"].iter().any(|scheme| contact.starts_with(scheme)) {
        Some(contact.to_owned())
    } else if contact.contains('@') && !contact.contains([' ', '/', ':']) {
        Some(format!("mailto:{contact}"))
    } else {
        None
    }
}
