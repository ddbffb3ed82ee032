//! One file a page: what it holds, how it is loaded, and a template of the same name.

pub mod about;
pub mod checks;
pub mod clients;
pub mod coverage;
pub mod crawl;
pub mod crawls;
pub mod diff;
pub mod document;
pub mod finding;
pub mod health;
pub mod in_step;
pub mod instance;
pub mod metrics;
pub mod overview;
pub mod rule;
pub mod rules;
pub mod session;
pub mod steer;
pub mod tabs;
pub mod target;
pub mod target_documents;
pub mod target_findings;
pub mod targets;
pub mod theme;
pub mod timeline;

use crate::error::Error;

/// A field of a query that names one word of a closed list; an empty field is none.
fn word<T: std::str::FromStr<Err = String>>(field: &'static str, value: Option<&str>) -> Result<Option<T>, Error> {
    let Some(value) = filled(value) else { return Ok(None) };
    value
        .parse()
        .map(Some)
        .map_err(|reason: String| Error::BadQuery { field, reason: format!("cannot be read: {reason}") })
}

/// A field of a query that holds a whole number; an empty field is none.
fn number(field: &'static str, value: Option<&str>) -> Result<Option<i64>, Error> {
    let Some(value) = filled(value) else { return Ok(None) };
    let wrong =
        |_| Error::BadQuery { field, reason: format!("is no whole number: “{}”", crate::text::visible(value, 40)) };
    value.parse().map(Some).map_err(wrong)
}

/// A field of a query without the space around it; an empty field is none.
fn filled(value: Option<&str>) -> Option<&str> {
    value.map(str::trim).filter(|value| !value.is_empty())
}
