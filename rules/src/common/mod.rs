//! Every kind of document: its bytes, its URLs, secrets and hostile text in it.

mod body;

use crate::rule::Rule;

/// The topics in the order their rules run.
pub(crate) const TOPICS: &[&[&Rule]] = &[body::RULES];
