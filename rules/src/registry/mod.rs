//! `server.json` documents and the registries that list them.

mod arguments;
mod artefacts;
mod containers;
mod detect;
mod drift;
mod entry;
mod fields;
mod history;
mod inputs;
mod lookalikes;
mod metadata;
mod names;
mod package_transports;
mod packages;
mod page;
mod presentation;
mod remotes;
mod repository;
mod revision;
mod schema;
mod types;
mod versions;
mod walk;

pub(crate) use drift::judge_remotes;
pub(crate) use metadata::OFFICIAL;
pub(crate) use revision::{api_profile, profile};

use crate::rule::Rule;

/// The topics in the order their rules run.
pub(crate) const TOPICS: &[&[&Rule]] = &[
    detect::RULES,
    schema::RULES,
    containers::RULES,
    types::RULES,
    names::RULES,
    versions::RULES,
    presentation::RULES,
    repository::RULES,
    packages::RULES,
    artefacts::RULES,
    package_transports::RULES,
    remotes::RULES,
    inputs::RULES,
    arguments::RULES,
    metadata::RULES,
    page::RULES,
    walk::RULES,
    lookalikes::RULES,
    entry::RULES,
    history::RULES,
    drift::RULES,
];
