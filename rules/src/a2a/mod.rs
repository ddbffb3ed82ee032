//! Agent cards of A2A 0.1 to 1.0.

mod detect;

pub(crate) use detect::{looks_like_a_card, profile};

use crate::rule::Rule;

/// The topics in the order their rules run.
pub(crate) const TOPICS: &[&[&Rule]] = &[detect::RULES];
