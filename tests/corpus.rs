//! Real documents of strangers, served on loopback and crawled: counts match what was served, and every sound server of
//! released software gets no error.
//!
//! Skipped with a printed reason where the material is not beside the project; in CI it has to be there.

mod support;

use std::path::PathBuf;

use support::{crawl, fake_registry, ok_answer, server, settings, shared, status_answer};

/// Serves every card of the corpus under a path of its own.
fn card_addresses(folder: PathBuf) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(&folder)
        .expect("the cards")
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.chars().next().is_some_and(|c| c.is_ascii_digit()))
        .collect();
    names.sort();
    let address = server(move |asked| match std::fs::read_to_string(folder.join(asked.path.trim_start_matches('/'))) {
        Ok(text) => ok_answer("application/json", &text),
        Err(_) => status_answer(404),
    });
    names.iter().map(|name| format!("http://{address}/{name}")).collect()
}

#[test]
fn real_entries_and_real_cards_are_counted_as_they_were_served() {
    let (Some(folder), Some((_registry, base))) = (shared("corpus/agent-cards"), fake_registry(&[])) else { return };
    let cards = card_addresses(folder);
    assert_eq!(cards.len(), 150);
    let home = tempfile::tempdir().expect("a folder");
    settings(home.path(), Some(&base), &cards);
    let (summary, output) = crawl(home.path(), &["--full"]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(summary["registries"][0]["entries"], 159, "{summary}");
    assert_eq!(summary["headlines"]["targets"], 133 + 150, "{summary}");
    assert_eq!(summary["headlines"]["not_evaluated"], 0, "every document was judged: {summary}");
    let (again, _) = crawl(home.path(), &["--full"]);
    assert_eq!(
        (&again["headlines"], &again["opened"]),
        (&summary["headlines"], &0.into()),
        "a second crawl moves nothing"
    );
}
