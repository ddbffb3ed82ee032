//! YAML, as OpenAPI descriptions have it.

#![no_main]

use libfuzzer_sys::fuzz_target;
use plumbline_rules::document::Document;

fuzz_target!(|text: &str| {
    let document = Document::from_text(&format!("openapi: 3.1.0\n{text}"));
    if let Some(root) = document.root() {
        assert!(root.get("openapi").is_some() || !document.is_yaml());
        root.walk().for_each(|node| assert!(document.line_column(node.span().0).0 > 0));
    }
});
