//! The table of published catalogues against the list it was drawn from.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use plumbline_rules::catalogue;
use plumbline_rules::coverage::{self, How};

fn seeds() -> Option<String> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared");
    let shared = std::env::var_os("PLUMBLINE_SHARED").map_or(beside, PathBuf::from);
    let text = std::fs::read_to_string(shared.join("rules/seeds.tsv"));
    if text.is_err() {
        assert!(std::env::var_os("CI").is_none(), "there is no seeds.tsv in {}", shared.display());
        eprintln!("skipped: there is no seeds.tsv in {}", shared.display());
    }
    text.ok()
}

#[test]
fn no_row_of_the_published_catalogues_is_without_a_disposition() {
    let Some(text) = seeds() else { return };
    let mut ours: BTreeMap<String, &coverage::Row> = coverage::rows().iter().map(|row| (row.seed(), row)).collect();
    for line in text.lines().skip(1) {
        let fields: Vec<&str> = line.split('\t').collect();
        let row = ours.remove(fields[0]).unwrap_or_else(|| panic!("{} is missing", fields[0]));
        let how = match fields[1] {
            "rule" => How::Rule,
            "active" => How::OwnTarget,
            "stdio" => How::OwnCommand,
            "client-side" => How::Client,
            "settings" => How::Settings,
            "state" => How::State,
            other => panic!("{}: `{other}` is no disposition", fields[0]),
        };
        assert_eq!(row.how, how, "{}", fields[0]);
        let mut named: Vec<&str> = row.rules.iter().chain(&row.awaited).copied().collect();
        let mut asked: Vec<&str> = fields[2].split_whitespace().collect();
        named.sort_unstable();
        asked.sort_unstable();
        assert_eq!(named, asked, "{}", fields[0]);
        for rule in &row.rules {
            let rule = catalogue::find(rule).expect("it is in the catalogue");
            assert!(rule.seeds.contains(&fields[0]), "{} does not name {}", rule.id, fields[0]);
        }
    }
    assert!(ours.is_empty(), "more than was published: {:?}", ours.keys());
}
