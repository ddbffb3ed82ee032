//! The JSON reader: what is read is what `serde_json` reads, and every value knows its place.

#![no_main]

use libfuzzer_sys::fuzz_target;
use plumbline_rules::document::Document;

fuzz_target!(|bytes: &[u8]| {
    let document = Document::read(bytes);
    if let Some(root) = document.root() {
        for node in root.walk() {
            assert_eq!(document.pointer(&node.pointer()), Some(node));
            document.line_column(node.span().0);
        }
        if !document.is_yaml() && document.duplicate_members().next().is_none() {
            let read: Result<serde_json::Value, _> = serde_json::from_str(document.text());
            // What JSON allows and a float cannot hold, such as 1e999, only serde_json refuses.
            let is_too_great = read.as_ref().is_err_and(|error| error.to_string().starts_with("number out of range"));
            assert!(read.is_ok() || is_too_great || document.depth() >= 127, "read here and not by serde_json");
        }
    }
});
