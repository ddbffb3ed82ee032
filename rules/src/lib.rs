//! What judging means: documents and sessions go in, reports come out.
//!
//! Nothing here does input or output, asks the clock, waits or panics, whatever the input.
//!
//! - [`document`] reads a body into a flat tree whose values know where they stand;
//! - [`kind`] says what it is, [`catalogue`] which rules apply, [`judge`] runs them, [`report`] is what they said;
//! - [`clients`] is which released clients refuse which fault;
//! - [`coverage`] says what became of the rules of four published catalogues;
//! - [`rule`] is the shape of one rule; `common`, `a2a`, `registry`, `oauth`, `openapi` hold them by topic;
//! - [`text`] holds the small grammars they share, [`json_schema`] holds schemas inside documents against their dialect;
//! - [`listing`] judges the lists of registries while they are walked;
//! - [`session`] is what was said on the wire ([`sse`] reads its event streams, [`conversation`] what was said with an
//!   MCP endpoint, [`authorization`] what that led to, [`standing`] what it shows as a whole), [`session_judge`] judges it, [`reach`] says how far an observation came;
//! - [`canonical`] is the canonical form that hashes and signatures use, [`jose`] checks signatures with keys handed in.

mod a2a;
/// What the words of closed lists need to tell their schema.
#[doc(hidden)]
pub use schemars;

pub mod authorization;
pub mod canonical;
pub mod catalogue;
pub mod clients;
mod common;
pub mod conversation;
pub mod coverage;
pub mod document;
mod endpoint_judge;
#[cfg(test)]
mod examples;
pub mod in_step;
pub mod jose;
pub mod json_schema;
pub mod judge;
pub mod kind;
pub mod line;
pub mod listing;
mod mcp;
mod oauth;
mod openapi;
pub mod past;
pub mod reach;
mod registry;
pub mod report;
pub mod requirements;
pub mod rule;
pub mod rule_settings;
pub mod session;
pub mod session_judge;
pub mod settings;
pub mod shape;
pub mod sse;
pub mod standing;
pub mod text;
mod yaml;
