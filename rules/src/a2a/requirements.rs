//! Security requirements: which schemes a caller needs.

use std::collections::HashSet;

use crate::document::Node;

/// The names of the declared security schemes.
pub(super) fn declared(card: Node<'_>) -> HashSet<&str> {
    card.get("securitySchemes").into_iter().flat_map(Node::members).map(|(name, _)| name).collect()
}
