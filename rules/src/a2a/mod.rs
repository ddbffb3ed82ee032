//! Agent cards of A2A 0.1 to 1.0.
//!
//! The order inside the family: whether it is a card at all, then types (they end the work on a value), then names and
//! presence, then what the members say. Which rule gives way to which is on the rules themselves (`yields_to`).

mod detect;
mod names;
mod required;
mod requirements;
mod table;
mod types;

pub(crate) use detect::{looks_like_a_card, profile};

use crate::rule::Rule;

/// The topics in the order their rules run.
pub(crate) const TOPICS: &[&[&Rule]] = &[detect::RULES, required::RULES, types::RULES, names::RULES];
