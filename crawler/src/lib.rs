//! From sources to recorded observations.

pub mod net;
