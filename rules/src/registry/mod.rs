//! `server.json` documents and the registries that list them.

mod containers;
mod detect;
mod fields;
mod names;
mod revision;
mod schema;
mod types;

pub(crate) use revision::{api_profile, profile};

use crate::rule::Rule;

/// The topics in the order their rules run.
pub(crate) const TOPICS: &[&[&Rule]] = &[detect::RULES, schema::RULES, containers::RULES, types::RULES, names::RULES];
