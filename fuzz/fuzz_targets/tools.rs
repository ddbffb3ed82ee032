//! Lists of tools and their schemas.

#![no_main]

use libfuzzer_sys::fuzz_target;
use plumbline_fuzz::judged;
use plumbline_rules::kind::Kind;

fuzz_target!(|bytes: &[u8]| judged(bytes, Kind::McpToolsListResult));
