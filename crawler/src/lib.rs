//! From sources to recorded observations.
