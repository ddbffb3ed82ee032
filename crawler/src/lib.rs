//! From sources to recorded observations, politely and behind the guard.
//!
//! - [`settings`]: which targets, how often;
//! - [`sources`]: what a registry or a list of domains says exists;
//! - [`probe`]: asking one surface, and what came of it;
//! - [`net`]: the only way out of the process.
//!
//! It knows protocols and the network, never SQL and pages.

pub mod net;
pub mod probe;
pub mod settings;
pub mod sources;
