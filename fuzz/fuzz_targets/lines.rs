//! The line stream: sessions, stored pairs, described bodies.

#![no_main]

use libfuzzer_sys::fuzz_target;
use plumbline_rules::judge::Settings;
use plumbline_rules::line::judge_line;

fuzz_target!(|line: &str| drop(judge_line(line, &Settings::default())));
