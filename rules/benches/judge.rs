//! Judging beside plain parsing, over the shared corpus of agent cards or else over our own base documents.
//!
//! One iteration is all cards, so a time divided by the number of cards (printed first) is the time for one. The aim is
//! that reading and judging take no more than four times the parsing and 40 µs on top.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use divan::{Bencher, black_box};
use plumbline_rules::document::Document;
use plumbline_rules::judge::{Given, Origin, Settings, Subject, judge};
use plumbline_rules::kind::Kind;
use plumbline_rules::report::Report;

static CARDS: LazyLock<Vec<Vec<u8>>> = LazyLock::new(cards);

fn main() {
    let bytes: usize = CARDS.iter().map(Vec::len).sum();
    println!("{} cards of {} bytes on average", CARDS.len(), bytes / CARDS.len());
    divan::main();
    report_aim();
}

/// The corpus where it lies beside the project, our base documents elsewhere.
fn cards() -> Vec<Vec<u8>> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let shared = std::env::var_os("PLUMBLINE_SHARED").map_or_else(|| here.join("../../shared"), PathBuf::from);
    let of_corpus = json_files(&shared.join("corpus/agent-cards"));
    let files = if of_corpus.is_empty() { json_files(&here.join("examples")) } else { of_corpus };
    files.iter().map(|file| std::fs::read(file).expect("a listed file is there")).collect()
}

fn json_files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut files: Vec<_> = entries.filter(|path| path.extension().is_some_and(|end| end == "json")).collect();
    files.sort();
    files
}

#[divan::bench]
fn parse() {
    for card in CARDS.iter() {
        // Two of the corpus are no JSON; failing is part of the work there.
        drop(black_box(serde_json::from_slice::<serde_json::Value>(black_box(card))));
    }
}

#[divan::bench]
fn read() {
    for card in CARDS.iter() {
        black_box(Document::read(black_box(card)));
    }
}

#[divan::bench]
fn read_and_judge(bencher: Bencher<'_, '_>) {
    let settings = Settings::default();
    bencher.bench(|| {
        for card in CARDS.iter() {
            black_box(judged(black_box(card), &settings));
        }
    });
}

/// Documents made to be a burden, with the limit of their size raised: the aim is 100 ms each.
fn hostile() -> Vec<(&'static str, Vec<u8>)> {
    let skill = r#"{"id":"s","name":"S","description":"Answers.","tags":["t"]}"#;
    let skills = vec![skill; 100_000].join(",");
    let half = 1 << 19;
    vec![
        ("1 MiB of nested arrays", [vec![b'['; half], vec![b']'; half]].concat()),
        ("1 MiB of empty arrays", format!("[{}0]", "[],".repeat((1 << 20) / 3)).into_bytes()),
        (
            "100,000 duplicate skills",
            format!("{{\"name\":\"T\",\"capabilities\":{{}},\"skills\":[{skills}]}}").into_bytes(),
        ),
    ]
}

#[divan::bench(args = [0, 1, 2], sample_count = 10)]
fn hostile_documents(bencher: Bencher<'_, '_>, number: usize) {
    let (_, body) = hostile().swap_remove(number);
    let mut settings = Settings::default();
    settings.limits.bytes = 64 << 20;
    bencher.bench(|| black_box(judged(black_box(&body), &settings)));
}

fn judged(card: &[u8], settings: &Settings) -> Report {
    let given = Given::default();
    let subject = Subject {
        kind: Some(Kind::AgentCard),
        version: None,
        origin: Origin::PublicHost,
        given: &given,
        session: None,
        answer: None,
    };
    judge(&Document::read(card), &subject, settings)
}

/// Prints both per card, and how they stand to the aim.
fn report_aim() {
    let settings = Settings::default();
    let parsing = per_card(|card| drop(black_box(serde_json::from_slice::<serde_json::Value>(card))));
    let reading = per_card(|card| drop(black_box(Document::read(card))));
    let judging = per_card(|card| drop(black_box(judged(card, &settings))));
    let aim = parsing * 4 + Duration::from_micros(40);
    let word = if judging <= aim { "within" } else { "beyond" };
    println!(
        "per card: parse {parsing:.1?}, read {reading:.1?}, read and judge {judging:.1?}, {word} the aim of {aim:.1?}"
    );
}

/// The average over all cards of the fastest of many rounds: what else runs on the machine only makes slower, and is
/// seldom in the way of a single card every time.
fn per_card(work: impl Fn(&[u8])) -> Duration {
    let timed = |card: &[u8]| {
        let start = Instant::now();
        work(black_box(card));
        start.elapsed()
    };
    let fastest = |card: &Vec<u8>| (0..40).map(|_| timed(card)).min().expect("there are rounds");
    let cards = u32::try_from(CARDS.len()).expect("there are few cards");
    CARDS.iter().map(fastest).sum::<Duration>() / cards
}
