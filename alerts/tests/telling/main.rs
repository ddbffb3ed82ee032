//! Telling end to end: a store, the two loops, and receivers on loopback that misbehave on purpose.

mod digests;
mod hushed;
mod invariants;
mod kill;
mod late;
mod outages;
mod receivers;
mod storm;
mod support;
mod throughput;
