//! Registries: pages, cursors, current versions, absence.

use plumbline_rules::listing::ListFinding;
use plumbline_store::deploys::SignalKind;
use plumbline_store::surfaces::Feed;
use plumbline_store::walk_findings::Coming;
use plumbline_store::walks::{Entry, Walk, WalkEnd, WalkFinished};
use plumbline_store::words::{CrawlKind, Impact, Severity, SurfaceKind};
use plumbline_store::{Error, SourceId, Store};
use sqlx::Row;

use crate::support::{HOUR, NOON, entry, events, for_each_database, judged, number, registry, ruleset, seen, take};

async fn begin(store: &Store, source: SourceId, now_s: i64) -> Walk {
    let crawl = store.start_crawl(CrawlKind::FullWalk, Some(source), None, "me", now_s).await.unwrap();
    store.begin_walk(source, crawl, None, now_s).await.unwrap()
}

/// A whole walk over one page.
async fn walk(store: &Store, source: SourceId, entries: &[Entry], now_s: i64) -> WalkFinished {
    let walk = begin(store, source, now_s).await;
    store.store_page(walk.id, entries, None, now_s).await.unwrap();
    store.finish_walk(walk.id, &WalkEnd::Complete, now_s).await.unwrap()
}

/// The current version of each name, as `name version`, and `-` where it has none.
async fn current(store: &Store) -> Vec<String> {
    let rows = sqlx::query(
        "SELECT target.key, COALESCE(listing.version, '-')
         FROM target
         LEFT JOIN listing ON listing.target_id = target.id AND listing.is_current = 1
         ORDER BY target.key",
    )
    .fetch_all(store.reader())
    .await
    .unwrap();
    rows.iter().map(|row| format!("{} {}", row.get::<String, _>(0), row.get::<String, _>(1))).collect()
}

#[tokio::test]
async fn names_are_targets_and_versions_are_listings() {
    for_each_database(async |store| {
        let source = registry(&store).await;
        let old = Entry { is_latest: Some(false), ..entry("a/x", "1.0.0") };
        let finished = walk(&store, source, &[old, entry("a/x", "1.1.0"), entry("b/y", "v1")], NOON).await;
        assert_eq!(finished, WalkFinished { names: 2, ..WalkFinished::default() });
        let totals = store.counts().await.unwrap();
        assert_eq!((totals.targets, totals.entries, totals.surfaces, totals.documents), (2, 3, 2, 3));
        assert_eq!(current(&store).await, ["a/x 1.1.0", "b/y v1"]);
        assert_eq!(number(&store, "SELECT entries FROM cohort_day WHERE cohort_id = 1").await, 3);
        assert_eq!(number(&store, "SELECT targets FROM cohort_day WHERE cohort_id = 2").await, 2);
        assert_eq!(number(&store, "SELECT COUNT(*) FROM target_token WHERE token = 'things'").await, 2);
        assert_eq!(number(&store, "SELECT COUNT(*) FROM owner WHERE slug = 'a'").await, 1);
        assert_eq!(number(&store, "SELECT COUNT(*) FROM target WHERE declared_version = '1.1.0'").await, 1);

        let due = store.due_surfaces(NOON, take(9, NOON + HOUR), "me").await.unwrap();
        assert_eq!(due.len(), 2);
        assert_eq!(due[0].url, "https://registry.example/v0.1/servers/a%2Fx/versions/latest");
        let Feed::Listed(document) = due[0].from else { panic!("it is listed") };
        let document = store.document(document).await.unwrap();
        assert_eq!(document.bytes.as_deref(), Some(&br#"{"name":"a/x","version":"1.1.0"}"#[..]));
        assert_eq!(document.kind, SurfaceKind::ServerJson);
        let counts = store.crawl(plumbline_store::CrawlId(1)).await.unwrap().counts;
        assert_eq!((counts.pages, counts.entries, counts.names, counts.added), (1, 3, 2, 2));
        assert_eq!(store.source(source).await.unwrap().last_full_s, Some(NOON));
    })
    .await;
}

#[tokio::test]
async fn an_entry_that_its_registry_stamps_anew_is_a_deploy_unless_it_stamps_many() {
    for_each_database(async |store| {
        let source = registry(&store).await;
        let stamped = |entry: Entry, seconds: i64| Entry { updated_ms: Some(seconds * 1000), ..entry };
        let old = |seconds| Entry { is_latest: Some(false), ..stamped(entry("a/x", "1.0.0"), seconds) };
        let new = |seconds| stamped(entry("a/x", "1.1.0"), seconds);
        walk(&store, source, &[old(NOON), new(NOON)], NOON).await;
        assert!(store.deploys(None, None, 9).await.unwrap().is_empty(), "a first sight is none");
        walk(&store, source, &[old(NOON + 60), new(NOON)], NOON + HOUR).await;
        assert!(store.deploys(None, None, 9).await.unwrap().is_empty(), "nobody is served the old version");
        walk(&store, source, &[old(NOON + 60), new(NOON - 60)], NOON + 2 * HOUR).await;
        assert!(store.deploys(None, None, 9).await.unwrap().is_empty(), "a stamp that goes back says nothing");
        walk(&store, source, &[old(NOON + 60), new(NOON + 3 * HOUR - 5)], NOON + 3 * HOUR).await;
        let deploys = store.deploys(None, None, 9).await.unwrap();
        assert_eq!(deploys.len(), 1);
        let signal = &deploys[0].signals[0];
        assert_eq!((signal.kind, signal.kind.weight()), (SignalKind::Listing, 4));
        let stamps = (signal.from.as_deref(), signal.to.as_deref());
        assert_eq!((deploys[0].version.as_deref(), signal.to.as_deref().map(str::len)), (None, Some(20)), "{stamps:?}");
        let deleted = Entry { status: Some("deleted".into()), ..new(NOON + 4 * HOUR) };
        walk(&store, source, &[old(NOON + 60), deleted], NOON + 5 * HOUR).await;
        let many =
            |seconds| (0..21).map(|n| stamped(entry(&format!("b/{n:02}"), "1.0.0"), seconds)).collect::<Vec<_>>();
        walk(&store, source, &many(NOON), NOON + 6 * HOUR).await;
        walk(&store, source, &many(NOON + 1), NOON + 7 * HOUR).await;
        assert_eq!(store.deploys(None, None, 9).await.unwrap().len(), 1, "neither an end nor a tidying up is one");
        walk(&store, source, &many(NOON + 2)[..20], NOON + 8 * HOUR).await;
        assert_eq!(store.deploys(None, None, 99).await.unwrap().len(), 21);
    })
    .await;
}

#[tokio::test]
async fn the_same_page_twice_doubles_nothing() {
    for_each_database(async |store| {
        let source = registry(&store).await;
        let walk = begin(&store, source, NOON).await;
        let page = [entry("a/x", "1.0.0"), entry("b/y", "1.0.0"), entry("b/y", "1.0.0")];
        let first = store.store_page(walk.id, &page, Some("b/y:1.0.0"), NOON).await.unwrap();
        assert_eq!((first.new_listings, first.new_targets, first.due), (2, 2, 2));
        let again = store.store_page(walk.id, &page, Some("b/y:1.0.0"), NOON + 1).await.unwrap();
        assert_eq!((again.new_listings, again.new_targets, again.changed, again.due), (0, 0, 0, 0));
        assert_eq!(number(&store, "SELECT pages FROM walk").await, 1);
        assert_eq!(number(&store, "SELECT entries FROM crawl").await, 3);
        let totals = store.counts().await.unwrap();
        assert_eq!((totals.targets, totals.entries, totals.documents, totals.events), (2, 2, 2, 2));
        assert_eq!(number(&store, "SELECT COUNT(*) FROM target_surface").await, 2);
    })
    .await;
}

#[tokio::test]
async fn a_walk_goes_on_where_it_was_cut_short() {
    for_each_database(async |store| {
        let source = registry(&store).await;
        let cut = begin(&store, source, NOON).await;
        store.store_page(cut.id, &[entry("a/x", "1")], Some("cursor+1"), NOON + 1).await.unwrap();
        store.recover(NOON + 2, |_| false).await.unwrap();

        let crawl = store.start_crawl(CrawlKind::FullWalk, Some(source), None, "me", NOON + 3).await.unwrap();
        let on = store.resume_walk(source, crawl, NOON + 3).await.unwrap().unwrap();
        assert_eq!((on.id, on.cursor.as_deref(), on.pages, on.started_s), (cut.id, Some("cursor+1"), 1, NOON));
        store.store_page(on.id, &[entry("b/y", "1")], None, NOON + 4).await.unwrap();
        let finished = store.finish_walk(on.id, &WalkEnd::Complete, NOON + 5).await.unwrap();
        assert_eq!(finished.names, 2);
        assert_eq!(store.source(source).await.unwrap().last_pass_s, Some(NOON), "the walk's start, not its end");

        // A walk that has ended takes no more pages, and none is gone on with.
        let late = store.store_page(on.id, &[], None, NOON + 6).await.unwrap_err();
        assert!(matches!(late, Error::WalkOver { .. }), "{late}");
        assert_eq!(store.resume_walk(source, crawl, NOON + 6).await.unwrap(), None);

        let old = begin(&store, source, NOON + 10).await;
        store.store_page(old.id, &[], Some("x"), NOON + 10).await.unwrap();
        assert_eq!(store.resume_walk(source, crawl, NOON + 10 + HOUR).await.unwrap(), None, "the cursor is too old");
    })
    .await;
}

#[tokio::test]
async fn the_flag_moves_though_the_registry_does_not_say_so() {
    for_each_database(async |store| {
        let rules = ruleset(&store).await;
        let source = registry(&store).await;
        walk(&store, source, &[entry("a/x", "1.0.0")], NOON).await;
        let surface = store.due_surfaces(NOON, take(9, NOON + HOUR), "me").await.unwrap()[0].clone();
        let Feed::Listed(document) = surface.from else { panic!("it is listed") };
        let mut look = seen(surface.id, NOON, "", judged(rules, &[("a2a/e", 'F')]));
        look.served = plumbline_store::record::Served::Kept(document);
        look.next_due_s = None;
        store.record(&[look]).await.unwrap();
        assert_eq!(store.next_due().await.unwrap(), None);

        // An incremental walk brings only the new version.
        let crawl = store.start_crawl(CrawlKind::IncrementalWalk, Some(source), None, "me", NOON).await.unwrap();
        let on = store.begin_walk(source, crawl, Some(NOON - 300), NOON + 9).await.unwrap();
        let page = store.store_page(on.id, &[entry("a/x", "2.0.0")], None, NOON + 9).await.unwrap();
        assert_eq!((page.new_listings, page.new_targets, page.due), (1, 0, 1));
        store.finish_walk(on.id, &WalkEnd::Complete, NOON + 9).await.unwrap();
        assert_eq!(current(&store).await, ["a/x 2.0.0"]);
        assert_eq!(number(&store, "SELECT COUNT(*) FROM listing WHERE is_latest = 1").await, 1);
        assert_eq!(number(&store, "SELECT missed FROM listing WHERE version = '1.0.0'").await, 0);
        assert_eq!(store.next_due().await.unwrap(), Some(NOON + 9));
        assert_eq!(store.source(source).await.unwrap().last_full_s, Some(NOON));

        // The same again makes nothing due once it was judged.
        let mut look = seen(surface.id, NOON + 10, "", judged(rules, &[("a2a/e", 'P')]));
        look.served = match store.due_surfaces(NOON + 10, take(9, NOON + HOUR), "me").await.unwrap()[0].from {
            Feed::Listed(document) => plumbline_store::record::Served::Kept(document),
            Feed::Fetched => panic!("it is listed"),
        };
        look.next_due_s = None;
        store.record(&[look]).await.unwrap();
        let page = walk(&store, source, &[entry("a/x", "2.0.0")], NOON + 11).await;
        assert_eq!(page.gone, 0);
        assert_eq!(store.next_due().await.unwrap(), None);
    })
    .await;
}

#[tokio::test]
async fn a_document_that_changes_without_a_version_is_due() {
    for_each_database(async |store| {
        let source = registry(&store).await;
        walk(&store, source, &[entry("a/x", "1.0.0")], NOON).await;
        let surface = store.due_surfaces(NOON, take(9, NOON + HOUR), "me").await.unwrap()[0].id;
        store.set_due(surface, None).await.unwrap();
        let edited = Entry { server: b"{}".to_vec(), ..entry("a/x", "1.0.0") };
        let on = begin(&store, source, NOON + 1).await;
        let page = store.store_page(on.id, &[edited], None, NOON + 1).await.unwrap();
        assert_eq!((page.changed, page.due), (1, 1));
    })
    .await;
}

#[tokio::test]
async fn a_deleted_name_retires_and_a_returning_one_comes_back() {
    for_each_database(async |store| {
        let source = registry(&store).await;
        walk(&store, source, &[entry("a/x", "1.0.0"), entry("b/y", "1.0.0")], NOON).await;
        let deleted = Entry { status: Some("deleted".into()), ..entry("a/x", "1.0.0") };
        walk(&store, source, &[deleted, entry("b/y", "1.0.0")], NOON + 1).await;
        assert_eq!(store.counts().await.unwrap().targets, 1);
        assert_eq!(current(&store).await, ["a/x -", "b/y 1.0.0"]);
        assert_eq!(number(&store, "SELECT COUNT(*) FROM target WHERE retire_reason = 'deleted'").await, 1);
        walk(&store, source, &[entry("a/x", "1.0.1"), entry("b/y", "1.0.0")], NOON + 2).await;
        assert_eq!(store.counts().await.unwrap().targets, 2);
        assert_eq!(current(&store).await, ["a/x 1.0.1", "b/y 1.0.0"]);
        let told = events(&store).await;
        assert!(told.contains(&"target.retired".into()) && told.contains(&"target.returned".into()));
        assert_eq!(number(&store, "SELECT targets FROM cohort_day WHERE cohort_id = 2").await, 2);
    })
    .await;
}

#[tokio::test]
async fn absence_counts_after_two_complete_full_walks_in_a_row() {
    for_each_database(async |store| {
        let source = registry(&store).await;
        let all: Vec<_> = (0..10).map(|n| entry(&format!("a/{n}"), "1")).collect();
        walk(&store, source, &all, NOON).await;
        assert_eq!(walk(&store, source, &all[1..], NOON + 1).await.gone, 0);
        // An incomplete one in between says nothing.
        let cut = begin(&store, source, NOON + 2).await;
        store.store_page(cut.id, &all[5..], Some("x"), NOON + 2).await.unwrap();
        let end = WalkEnd::Incomplete("timeout".into());
        assert_eq!(store.finish_walk(cut.id, &end, NOON + 2).await.unwrap().gone, 0);
        assert_eq!(store.source(source).await.unwrap().problem.as_deref(), Some("timeout"));
        assert_eq!(number(&store, "SELECT missed FROM listing WHERE name = 'a/1'").await, 0);

        assert_eq!(walk(&store, source, &all[1..], NOON + 3).await.gone, 1);
        assert_eq!(number(&store, "SELECT gone_s FROM listing WHERE name = 'a/0'").await, NOON + 3);
        assert_eq!(store.counts().await.unwrap().targets, 9);
        assert_eq!(store.counts().await.unwrap().entries, 9);
        assert_eq!(number(&store, "SELECT entries FROM cohort_day WHERE cohort_id = 1").await, 9);
        assert_eq!(store.source(source).await.unwrap().problem, None);

        // It comes back with its history.
        walk(&store, source, &all, NOON + 4).await;
        assert_eq!(store.counts().await.unwrap().targets, 10);
        assert_eq!(number(&store, "SELECT COUNT(*) FROM listing").await, 10);
        assert_eq!(number(&store, "SELECT first_seen_s FROM listing WHERE name = 'a/0'").await, NOON);
    })
    .await;
}

#[tokio::test]
async fn one_absence_then_a_sighting_begins_anew() {
    for_each_database(async |store| {
        let source = registry(&store).await;
        let all: Vec<_> = (0..10).map(|n| entry(&format!("a/{n}"), "1")).collect();
        walk(&store, source, &all, NOON).await;
        walk(&store, source, &all[1..], NOON + 1).await;
        walk(&store, source, &all, NOON + 2).await;
        assert_eq!(walk(&store, source, &all[1..], NOON + 3).await.gone, 0);
    })
    .await;
}

#[tokio::test]
async fn too_much_gone_at_once_is_held_back() {
    for_each_database(async |store| {
        let source = registry(&store).await;
        let all: Vec<_> = (0..30).map(|n| entry(&format!("a/{n}"), "1")).collect();
        walk(&store, source, &all, NOON).await;
        // However often the list is that short.
        for again in 1..4 {
            let held = walk(&store, source, &all[..23], NOON + again).await;
            assert_eq!((held.gone, held.held_back), (0, 7));
        }
        assert_eq!(store.counts().await.unwrap().targets, 30);
        let crawl = store.crawl(plumbline_store::CrawlId(3)).await.unwrap();
        assert_eq!(crawl.counts.held_back, 7);
        let note = crawl.note.unwrap();
        assert!(note.starts_with("7 of 30 listings are missing") && note.contains("--accept-loss test"), "{note}");
        assert!(events(&store).await.contains(&"crawl.degraded".into()));
        // Six is a fifth, which is still believed, after two walks of its own.
        assert_eq!(walk(&store, source, &all[..24], NOON + 5).await.gone, 0);
        let few = walk(&store, source, &all[..24], NOON + 6).await;
        assert_eq!((few.gone, few.held_back), (6, 0));
    })
    .await;
}

#[tokio::test]
async fn a_list_without_anything_known_is_never_believed_until_a_person_says_so() {
    for_each_database(async |store| {
        let source = registry(&store).await;
        let all: Vec<_> = (0..3).map(|n| entry(&format!("a/{n}"), "1")).collect();
        walk(&store, source, &all, NOON).await;
        for again in 1..4 {
            assert_eq!(walk(&store, source, &[], NOON + again).await.held_back, 3);
        }
        let accepted = begin(&store, source, NOON + 9).await;
        store.store_page(accepted.id, &all[..1], None, NOON + 9).await.unwrap();
        let finished = store.finish_walk(accepted.id, &WalkEnd::CompleteLossAccepted, NOON + 9).await.unwrap();
        assert_eq!((finished.gone, finished.held_back), (2, 0));
        assert_eq!(store.counts().await.unwrap().targets, 1);
        assert_eq!(number(&store, "SELECT COUNT(*) FROM listing").await, 3, "the rows stay");
    })
    .await;
}

#[tokio::test]
async fn a_version_that_vanishes_gives_way_to_the_next() {
    for_each_database(async |store| {
        let source = registry(&store).await;
        let old = Entry { is_latest: None, ..entry("a/x", "1.0.0") };
        let new = Entry { is_latest: None, ..entry("a/x", "2.0.0") };
        let others: Vec<_> = (0..8).map(|n| entry(&format!("b/{n}"), "1")).collect();
        let page = |first: Vec<Entry>| [first, others.clone()].concat();
        walk(&store, source, &page(vec![old.clone(), new]), NOON).await;
        assert_eq!(current(&store).await[0], "a/x 2.0.0");
        walk(&store, source, &page(vec![old.clone()]), NOON + 1).await;
        assert_eq!(current(&store).await[0], "a/x 2.0.0");
        walk(&store, source, &page(vec![old]), NOON + 2).await;
        assert_eq!(current(&store).await[0], "a/x 1.0.0");
        let due = store.due_surfaces(NOON + 2, take(99, NOON + HOUR), "me").await.unwrap();
        assert!(due.iter().any(|surface| surface.due_s == NOON + 2));
    })
    .await;
}

#[tokio::test]
async fn one_name_in_two_registries_is_one_target_with_two_surfaces() {
    for_each_database(async |store| {
        let first = registry(&store).await;
        let kind = plumbline_store::words::SourceKind::McpRegistry;
        let second = store.ensure_source(kind, "other", Some("https://other.example/api/"), NOON).await.unwrap();
        walk(&store, first, &[entry("a/x", "1")], NOON).await;
        walk(&store, second, &[entry("a/x", "1")], NOON).await;
        let totals = store.counts().await.unwrap();
        assert_eq!((totals.targets, totals.surfaces, totals.entries, totals.documents), (1, 2, 2, 1));
        assert_eq!(number(&store, "SELECT n_surfaces FROM target").await, 2);
        // Gone from one, still in the other.
        let deleted = Entry { status: Some("deleted".into()), ..entry("a/x", "1") };
        walk(&store, second, &[deleted], NOON + 1).await;
        assert_eq!(store.counts().await.unwrap().targets, 1);
        assert_eq!(number(&store, "SELECT n_surfaces FROM target").await, 1);
    })
    .await;
}

#[tokio::test]
async fn hostile_names_and_texts_do_no_harm() {
    for_each_database(async |store| {
        let source = registry(&store).await;
        let long = "\u{202e}x\0'\"<b>".repeat(10_000);
        let hostile = |name: String| Entry {
            version: long.clone(),
            status: Some(long.clone()),
            status_message: Some(long.clone()),
            meta: Some(long.clone()),
            title: Some(long.clone()),
            description: Some(long.clone()),
            server: long.clone().into_bytes(),
            ..entry(&name, "1")
        };
        let page = [hostile(long.clone()), hostile(format!("{long}2")), hostile("\0".into()), hostile(String::new())];
        for at in [NOON, NOON + 1] {
            walk(&store, source, &page, at).await;
            let totals = store.counts().await.unwrap();
            assert_eq!((totals.targets, totals.entries, totals.documents), (4, 4, 1));
        }
        let longest = number(&store, "SELECT MAX(length(name)) FROM target").await;
        assert!(longest <= 200, "{longest}");
    })
    .await;
}

#[tokio::test]
async fn older_versions_are_judged_once_too() {
    for_each_database(async |store| {
        let rules = ruleset(&store).await;
        let source = registry(&store).await;
        let old = Entry { is_latest: Some(false), ..entry("a/x", "1.0.0") };
        walk(&store, source, &[old, entry("a/x", "1.1.0")], NOON).await;
        let from = plumbline_store::DocumentId(0);
        let unjudged = store.unjudged_listings(rules, from, 9).await.unwrap();
        assert_eq!(unjudged.len(), 2);
        store.remember(unjudged[0], &judged(rules, &[("a2a/e", 'F')]), NOON).await.unwrap();
        assert_eq!(store.unjudged_listings(rules, from, 9).await.unwrap(), unjudged[1..]);
        assert_eq!(store.unjudged_listings(rules, unjudged[1], 9).await.unwrap(), unjudged[1..]);
        assert_eq!(number(&store, "SELECT COUNT(*) FROM finding").await, 0, "only what is served has findings");
    })
    .await;
}

#[tokio::test]
async fn the_recorded_registry_comes_out_as_it_is() {
    let shared = std::env::var_os("PLUMBLINE_SHARED").map_or_else(
        || std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared"),
        std::path::PathBuf::from,
    );
    let path = shared.join("corpus/registry-pages/servers.json");
    let Ok(text) = std::fs::read_to_string(&path) else {
        assert!(std::env::var_os("CI").is_none(), "CI must have {}", path.display());
        eprintln!("skipped: {} cannot be read", path.display());
        return;
    };
    let page: serde_json::Value = serde_json::from_str(&text).unwrap();
    let text = |value: &serde_json::Value| value.as_str().map(ToOwned::to_owned);
    let entries: Vec<_> = page
        .as_array()
        .unwrap()
        .iter()
        .map(|listed| Entry {
            name: text(&listed["server"]["name"]).unwrap(),
            version: text(&listed["server"]["version"]).unwrap(),
            is_latest: None,
            server: listed["server"].to_string().into_bytes(),
            ..entry("", "")
        })
        .collect();
    for_each_database(async |store| {
        let source = registry(&store).await;
        let walk = begin(&store, source, NOON).await;
        for (n, page) in entries.chunks(30).enumerate() {
            store.store_page(walk.id, page, Some(&n.to_string()), NOON).await.unwrap();
        }
        let finished = store.finish_walk(walk.id, &WalkEnd::Complete, NOON).await.unwrap();
        let totals = store.counts().await.unwrap();
        assert_eq!((finished.names, totals.targets, totals.entries), (133, 133, 159));
        assert_eq!(number(&store, "SELECT COUNT(*) FROM listing WHERE is_current = 1").await, 133);
        assert_eq!(store.count_due(NOON).await.unwrap(), 133);
    })
    .await;
}

#[tokio::test]
async fn what_the_rules_say_of_a_list_stands_with_its_walk() {
    for_each_database(async |store| {
        let source = registry(&store).await;
        let all: Vec<_> = ["a/x", "b/y", "c/1", "c/2", "c/3", "c/4"].map(|name| entry(name, "1.0.0")).into();
        walk(&store, source, &all, NOON).await;
        let on = begin(&store, source, NOON + 1).await;
        let edited =
            Entry { server: br#"{"name":"a/x","version":"1.0.0","title":"X"}"#.to_vec(), ..entry("a/x", "1.0.0") };
        let entries = [entry("c/z", "1"), edited, entry("b/y", "1.0.0")];
        let coming: Vec<_> = entries
            .iter()
            .map(|e| Coming { name: &e.name, version: &e.version, server: &e.server, meta: e.meta.as_deref() })
            .collect();
        let before = store.listed_before(source, &coming).await.unwrap();
        assert_eq!(before.is_same, [false, false, true]);
        assert_eq!((before.changed.len(), before.changed[0].entry), (1, 1));
        assert_eq!(before.changed[0].server, entry("a/x", "1.0.0").server);

        store.store_page(on.id, &all[..1], Some("a"), NOON + 1).await.unwrap();
        assert_eq!(store.missing_keys(on.id, 9).await.unwrap(), (vec![], vec![]), "too much is missing to tell");
        store.store_page(on.id, &all[2..], None, NOON + 1).await.unwrap();
        let (missing, seen) = store.missing_keys(on.id, 9).await.unwrap();
        assert_eq!((missing, seen.len()), (vec![("b/y".to_owned(), "1.0.0".to_owned())], 5));

        let finding = |rule, severity, occurrences| ListFinding {
            rule,
            severity,
            impact: (severity != Severity::Info).then_some(Impact::Degrades),
            occurrences,
            places: vec![("page 1 /metadata".to_owned(), "it is wrong".to_owned())],
        };
        let first = [finding("registry/b", Severity::Info, 1), finding("registry/c", Severity::Error, 1)];
        store.keep_walk_findings(on.id, first.iter()).await.unwrap();
        store.keep_walk_findings(on.id, [finding("registry/c", Severity::Error, 7)].iter()).await.unwrap();
        store.finish_walk(on.id, &WalkEnd::Complete, NOON + 2).await.unwrap();
        let crawl = number(&store, "SELECT MAX(id) FROM crawl").await;
        let kept = store.walk_findings(crawl).await.unwrap();
        let said: Vec<_> = kept.iter().map(|f| (f.rule.as_str(), f.impact, f.occurrences)).collect();
        assert_eq!(said, [("registry/c", Some(Impact::Degrades), 7), ("registry/b", None, 1)]);
        assert_eq!(kept[0].places, first[1].places);
        let sources = store.sources_in_use().await.unwrap();
        assert_eq!((sources[0].full_crawl, sources[0].list_findings), (Some(crawl), 1));
    })
    .await;
}

#[tokio::test]
async fn a_registry_that_is_named_again_is_walked_whole_and_brings_everything_back() {
    for_each_database(async |store| {
        let source = registry(&store).await;
        let entries = [entry("io.example/a", "1.0.0"), entry("io.example/b", "2.0.0")];
        let walk_at = async |at_s: i64| {
            let crawl = store.start_crawl(CrawlKind::FullWalk, Some(source), None, "test", at_s).await.unwrap();
            let walk = store.begin_walk(source, crawl, None, at_s).await.unwrap();
            store.store_page(walk.id, &entries, None, at_s).await.unwrap();
            store.finish_walk(walk.id, &WalkEnd::Complete, at_s).await.unwrap();
        };
        let counted = async || {
            let day = store.cohort_days(0).await.unwrap().pop().unwrap();
            (day.targets, day.entries)
        };
        walk_at(NOON).await;
        assert_eq!(counted().await, (2, 2));
        store.set_targets(source, &[], NOON + 10).await.unwrap();
        store.retire_source(source, NOON + 10).await.unwrap();
        assert_eq!(counted().await, (0, 0));
        assert_eq!(registry(&store).await, source, "it is the same as before");
        assert_eq!(store.source(source).await.unwrap().last_full_s, None, "so the next walk is a full one");
        walk_at(NOON + 20).await;
        assert_eq!(counted().await, (2, 2));
        let diagnosis = store.examine(plumbline_store::doctor::Hand::Look, NOON + 30, |_| true).await.unwrap();
        assert_eq!(diagnosis.left(), 0, "{diagnosis:#?}");
    })
    .await;
}
