//! Everything Plumbline remembers.

pub mod dialect;
pub mod error;
pub mod ids;
pub mod machine;
pub mod probes;
pub mod reach;
pub mod words;
