//! What judging means: documents and sessions go in, reports come out.
//!
//! Nothing here does input or output, asks the clock, waits or panics, whatever the input.

pub mod reach;
pub mod session;
