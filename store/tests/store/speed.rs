//! How fast a whole registry goes in: `cargo test -p plumbline-store --release speed -- --ignored --nocapture`.

use std::borrow::Cow;
use std::time::Instant;

use plumbline_store::judged::{RuleOutcome, Said};
use plumbline_store::record::{BATCH, Observation, Served};
use plumbline_store::surfaces::Feed;
use plumbline_store::walks::{Entry, WalkEnd};
use plumbline_store::words::{Class, CrawlKind};
use plumbline_store::{DocumentId, Store, SurfaceId};

use crate::support::{HOUR, NOON, entry, judged, registry, rule, said, seen, take};

/// Entries of the registry.
const ENTRIES: usize = 20_000;
/// Rules that are judged; three of them fire, one of them is a fact that is set.
const RULES: [&str; 120] = {
    let mut names = ["registry/r"; 120];
    names[0] = "registry/a";
    names[1] = "registry/b";
    names[2] = "registry/c";
    names[3] = "registry/d";
    names
};

fn names() -> Vec<&'static str> {
    RULES.iter().enumerate().map(|(n, name)| &*Box::leak(format!("{name}{n}").into_boxed_str())).collect()
}

async fn walk(store: &Store, entries: &[Entry]) {
    let source = registry(store).await;
    let crawl = store.start_crawl(CrawlKind::FullWalk, Some(source), None, "me", NOON).await.unwrap();
    let walk = store.begin_walk(source, crawl, None, NOON).await.unwrap();
    for page in entries.chunks(100) {
        let next = page.last().map(|entry| format!("{}:{}", entry.name, entry.version));
        store.store_page(walk.id, page, next.as_deref(), NOON).await.unwrap();
    }
    store.finish_walk(walk.id, &WalkEnd::Complete, NOON).await.unwrap();
}

fn rate(what: &str, looks: usize, start: Instant) {
    let seconds = start.elapsed().as_secs_f64();
    println!("{what}: {looks} in {seconds:.1} s, {:.0} a second", looks as f64 / seconds);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes a while and asserts little: a measurement"]
async fn speed_of_a_registry_of_twenty_thousand() {
    let names = names();
    let rules: Vec<_> = names
        .iter()
        .enumerate()
        .map(|(n, name)| {
            let mut rule = rule(name);
            rule.class = if n == 3 { Class::Fact } else { Class::Finding };
            rule
        })
        .collect();
    let folder = tempfile::tempdir().unwrap();
    let url = std::env::var("PLUMBLINE_SPEED_DATABASE")
        .unwrap_or_else(|_| folder.path().join("speed.db").to_str().unwrap().to_owned());
    let store = Store::open(&url).await.unwrap();
    let ruleset = store.ensure_ruleset("1", &rules, NOON).await.unwrap();
    let entries: Vec<_> = (0..ENTRIES)
        .map(|n| {
            let mut entry = entry(&format!("io.github.maker{}/server-{n}", n % 4000), "1.0.0");
            entry.description = Some(format!("Server number {n} answers questions about the weather in town {n}"));
            entry.server =
                format!("{{\"name\":\"{}\",\"filler\":\"{}\"}}", entry.name, "lorem ipsum ".repeat(60)).into_bytes();
            entry.meta = Some(r#"{"io.modelcontextprotocol.registry/official":{"status":"active"}}"#.repeat(3));
            entry
        })
        .collect();

    let start = Instant::now();
    walk(&store, &entries).await;
    println!("first walk: {:?}", start.elapsed());

    let say = |surface: i64, n: usize, fires: [usize; 4]| {
        let mut all = judged(ruleset, &[]);
        let outcome = |(k, name): (usize, &&'static str)| {
            let mut said = said(if fires.contains(&k) { 'F' } else { 'P' });
            if let (2, Said::Fires(places)) = (k, &mut said) {
                places[0].message = format!("value {n} of surface {surface} is wrong");
            }
            RuleOutcome { rule: Cow::Borrowed(*name), said }
        };
        all.outcomes = names.iter().enumerate().map(outcome).collect();
        all
    };
    let start = Instant::now();
    let mut recorded = 0;
    let mut known = Vec::with_capacity(ENTRIES);
    loop {
        let due = store.due_surfaces(NOON, take(u32::try_from(BATCH).unwrap(), NOON + HOUR), "me").await.unwrap();
        if due.is_empty() {
            break;
        }
        let batch: Vec<Observation> = due
            .iter()
            .enumerate()
            .map(|(n, surface)| {
                let Feed::Listed(document) = surface.from else { panic!("it is listed") };
                known.push((surface.id, n, document));
                let look = seen(surface.id, NOON, "", say(surface.id.0, n, [0, 1, 2, 3]));
                Observation { served: Served::Kept(document), next_due_s: None, ..look }
            })
            .collect();
        recorded += store.record(&batch).await.unwrap().observations;
    }
    rate("first looks", recorded, start);
    assert_eq!(recorded, ENTRIES);

    let mut unchanged = Vec::new();
    for some in known.chunks(BATCH) {
        let look = |(surface, n, document): &(SurfaceId, usize, DocumentId)| Observation {
            served: Served::Kept(*document),
            ..seen(*surface, NOON + HOUR, "", say(surface.0, *n, [0, 1, 2, 3]))
        };
        unchanged.push(some.iter().map(look).collect::<Vec<_>>());
    }
    let start = Instant::now();
    for batch in &unchanged {
        store.record(batch).await.unwrap();
    }
    rate("looks that change nothing", ENTRIES, start);
    drop(unchanged);

    let mut changed = Vec::new();
    for some in known.chunks(BATCH) {
        let look = |(surface, n, _): &(SurfaceId, usize, DocumentId)| {
            let document = format!("{{\"n\":{n},\"filler\":\"{}\"}}", format!("{surface} ").repeat(120));
            seen(*surface, NOON + 2 * HOUR, &document, say(surface.0, *n + 1, [0, 2, 3, 5]))
        };
        changed.push(some.iter().map(look).collect::<Vec<_>>());
    }
    let start = Instant::now();
    for batch in &changed {
        store.record(batch).await.unwrap();
    }
    rate("looks that change the document and three findings", ENTRIES, start);
    drop(changed);

    let start = Instant::now();
    walk(&store, &entries).await;
    println!("second walk, nothing new: {:?}", start.elapsed());
    println!("{:?}", store.counts().await.unwrap());
    if let Ok(file) = std::fs::metadata(&url) {
        println!("{} MB", file.len() >> 20);
    }
    store.close().await;
}
