//! Agent cards of A2A 0.1 to 1.0.
//!
//! The order inside the family: whether it is a card at all, then types (they end the work on a value), then names and
//! presence, then what the members say. Which rule gives way to which is on the rules themselves (`yields_to`).

mod capabilities;
mod detect;
mod drift;
mod fetch;
mod interfaces;
mod keys;
mod links;
mod live;
mod names;
mod payload;
mod required;
mod requirements;
mod schemes;
mod signatures;
mod skills;
mod table;
mod types;
mod verify;
mod versions;

pub(crate) use detect::{ABSENT, looks_like_a_card, profile};
pub(crate) use drift::{change_is_named, loosened_and_added};
pub(crate) use verify::{Signatures, key_addresses};

use crate::rule::Rule;

/// The topics in the order their rules run.
pub(crate) const TOPICS: &[&[&Rule]] = &[
    fetch::RULES,
    detect::RULES,
    required::RULES,
    types::RULES,
    names::RULES,
    versions::RULES,
    interfaces::RULES,
    links::RULES,
    capabilities::RULES,
    skills::RULES,
    schemes::RULES,
    requirements::RULES,
    signatures::SHAPES,
    signatures::RULES,
    keys::RULES,
    live::RULES,
    drift::RULES,
];
