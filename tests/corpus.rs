//! Real documents of strangers, served on loopback and crawled: counts match what was served, and every sound server of
//! released software gets no error.
//!
//! Skipped with a printed reason where the material is not beside the project; in CI it has to be there.

mod support;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use support::{Running, crawl, ok_answer, server, settings, status_answer};

/// The material beside the project, or a reason why the test cannot run.
fn shared(part: &str) -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared");
    let path = std::env::var_os("PLUMBLINE_SHARED").map_or(beside, PathBuf::from).join(part);
    if path.exists() {
        return Some(path);
    }
    assert!(std::env::var_os("CI").is_none(), "{} has to be there in CI", path.display());
    println!("skipped: {} is not there", path.display());
    None
}

/// Starts the stand-in registry over the real entries.
fn fake_registry() -> Option<(Running, String)> {
    let script = shared("fleet/fake_registry.py")?;
    let mut child = Command::new("python3")
        .arg(script)
        .args(["--port", "0"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("python3 is there");
    let mut first = String::new();
    BufReader::new(child.stdout.take().expect("it has an output"))
        .read_line(&mut first)
        .expect("it says where it listens");
    let address = first.split(' ').nth(1).expect("listening ADDRESS").to_owned();
    Some((Running(child), format!("http://{address}")))
}

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
    let (Some(folder), Some((_registry, base))) = (shared("corpus/agent-cards"), fake_registry()) else { return };
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
