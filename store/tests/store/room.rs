//! Room: the file gives back what it does not need, the log stays short, sizes are measured, and a full disk loses nothing.

use plumbline_store::disk::{DiskState, Space};
use plumbline_store::housekeeping::{Job, LONGEST_WAL, Retention};
use plumbline_store::record::Observation;
use plumbline_store::{Backend, Error, Options, RulesetId, Store, SurfaceId};

use crate::support::{
    DAY, HOUR, NOON, card, domains, events, for_each_database, judged, number, one_card, ruleset, seen,
};

const ROOMY: Space = Space { used: 50, free: 50 };
const FILLING: Space = Space { used: 85, free: 15 };
const FULL: Space = Space { used: 96, free: 4 };

async fn write(store: &Store, sql: &'static str) {
    sqlx::query(sql).execute(store.writer()).await.unwrap();
}

async fn file(folder: &tempfile::TempDir, options: &Options) -> Store {
    Store::open_with(folder.path().join("t.db").to_str().unwrap(), options).await.unwrap()
}

#[tokio::test]
async fn free_pages_are_given_back_in_steps_and_some_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let store = file(&folder, &Options::default()).await;
    assert_eq!(store.vacuum_step().await.unwrap(), 0, "there is nothing to give");
    write(
        &store,
        "CREATE TABLE ballast AS
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1700)
         SELECT randomblob(8000) AS b FROM n",
    )
    .await;
    write(&store, "DROP TABLE ballast").await;
    let before = number(&store, "SELECT page_count FROM pragma_page_count").await;
    let (mut steps, mut left) = (0, 1);
    while left > 0 {
        left = store.vacuum_step().await.unwrap();
        steps += 1;
        assert!(steps < 20, "{left} pages are left after {steps} steps");
    }
    assert!(steps >= 2, "it takes more than one step");
    let after = number(&store, "SELECT page_count FROM pragma_page_count").await;
    assert!(before - after > 500, "{before} pages became {after}");
    let free = number(&store, "SELECT freelist_count FROM pragma_freelist_count").await;
    assert!((700..=1024).contains(&free), "{free}");
}

#[tokio::test]
async fn a_log_that_is_too_long_is_emptied_and_a_short_one_is_only_copied() {
    let folder = tempfile::tempdir().unwrap();
    let store = file(&folder, &Options::default()).await;
    one_card(&store).await;
    let long = store.wal_bytes().unwrap();
    assert!(long > 0);
    let copied = store.checkpoint(LONGEST_WAL).await.unwrap().unwrap();
    assert_eq!((copied.wal_bytes, copied.was_emptied), (long, false));
    assert_eq!(store.wal_bytes(), Some(long));
    assert!(store.checkpoint(long - 1).await.unwrap().unwrap().was_emptied);
    assert_eq!(store.wal_bytes(), Some(0));
    store.optimize().await.unwrap();
}

#[tokio::test]
async fn every_table_is_measured_and_growth_is_the_difference_of_days() {
    for_each_database(async |store| {
        assert_eq!(store.measured_day().await.unwrap(), None);
        let source = domains(&store).await;
        store.measure(NOON).await.unwrap();
        let cards: Vec<_> = (0..300).map(|n| card(&format!("h{n}.example"))).collect();
        store.add_targets(source, &cards, NOON).await.unwrap();
        store.measure(NOON + 10 * DAY).await.unwrap();
        store.measure(NOON + 10 * DAY + HOUR).await.unwrap();
        assert_eq!(store.measured_day().await.unwrap(), Some((NOON + 10 * DAY) / DAY));
        let sizes = store.sizes().await.unwrap();
        let surface = sizes.tables.iter().find(|table| table.name == "surface").unwrap();
        if store.backend() == Backend::Sqlite {
            assert_eq!(surface.rows, Some(300), "rows are counted, not estimated");
            let pages = number(&store, "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size").await;
            // The tables of the schema are measured before the row of the last measurement is written.
            assert!((sizes.bytes - pages).abs() < 200_000, "{} is not {pages}", sizes.bytes);
            assert!(surface.growth.unwrap() > 1_000, "{surface:?}");
            assert!(sizes.tables.iter().any(|table| table.name == "(free)"));
        }
        assert!(surface.bytes >= 8_192);
        assert!(sizes.tables.iter().any(|table| table.name == "finding_span"));
        assert!(store.bytes().await.unwrap() > 100_000);
        let old = store.sweepable(Job::Sizes, &Retention::default(), NOON + 405 * DAY).await.unwrap();
        assert_eq!(old, 1, "a day of sizes is let go after 400 days");
    })
    .await;
}

#[tokio::test]
async fn a_disk_that_fills_up_is_told_once_until_it_clears() {
    for_each_database(async |store| {
        for (space, state) in [
            (ROOMY, DiskState::Roomy),
            (FILLING, DiskState::Filling),
            (FILLING, DiskState::Filling),
            (FULL, DiskState::Full),
            (FULL, DiskState::Full),
            (ROOMY, DiskState::Roomy),
            (ROOMY, DiskState::Roomy),
        ] {
            assert_eq!(store.note_disk(&space, NOON).await.unwrap(), state);
        }
        assert_eq!(events(&store).await, ["disk.filling", "disk.full", "disk.relieved"]);
    })
    .await;
}

#[tokio::test]
async fn without_room_bodies_are_let_go_and_findings_are_not() {
    for_each_database(async |store| {
        let surface = one_card(&store).await;
        let rules = ruleset(&store).await;
        let look = |hour: i64, text: &str, letter: char| {
            let mut look = seen(surface, NOON + hour * HOUR, text, judged(rules, &[("a2a/e", letter)]));
            look.validators =
                Some(plumbline_store::surfaces::Validators { etag: Some("e".into()), last_modified: None });
            look
        };
        store.record(&[look(0, "{\"kept\":1}", 'P')]).await.unwrap();
        store.note_disk(&FULL, NOON).await.unwrap();
        crate::support::record_confirmed(&store, look(1, "{\"let\":\"go\"}", 'F')).await;
        let document = store.last_document(surface).await.unwrap().unwrap();
        assert_eq!((document.bytes, document.raw_len, document.is_cut), (None, 12, false));
        assert_eq!(number(&store, "SELECT COUNT(*) FROM finding WHERE state = 'open'").await, 1);
        assert_eq!(store.validators(surface).await.unwrap().etag, None, "it is asked for whole again");
        store.record(&[look(2, "{\"kept\":1}", 'P')]).await.unwrap();
        assert!(
            store.last_document(surface).await.unwrap().unwrap().bytes.is_some(),
            "what was kept is not thrown away"
        );

        store.record(&[look(3, "{\"let\":\"go\"}", 'F')]).await.unwrap();
        store.note_disk(&ROOMY, NOON).await.unwrap();
        store.record(&[look(4, "{\"let\":\"go\"}", 'F')]).await.unwrap();
        let document = store.last_document(surface).await.unwrap().unwrap();
        assert_eq!(document.bytes.as_deref(), Some(b"{\"let\":\"go\"}".as_slice()), "once there is room it is kept");
        assert_eq!(store.validators(surface).await.unwrap().etag.as_deref(), Some("e"));
    })
    .await;
}

/// A look that brings a document of some fifty thousand bytes which cannot be made smaller.
fn heavy(surface: SurfaceId, rules: RulesetId, n: i64) -> Observation {
    let mut state = n.unsigned_abs() + 1;
    let noise: String = (0..50_000)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            char::from(b'!' + u8::try_from((state >> 33) % 90).unwrap())
        })
        .collect();
    seen(surface, NOON + n * HOUR, &noise, judged(rules, &[("a2a/e", if n % 2 == 0 { 'F' } else { 'P' })]))
}

#[tokio::test]
async fn a_full_disk_loses_nothing_leaves_nothing_half_and_is_gone_on_from() {
    let everything = "SELECT (SELECT COUNT(*) FROM document) + 1000 * (SELECT COUNT(*) FROM doc_span)
                           + 1000000 * (SELECT COUNT(*) FROM event)
                           + 1000000000 * (SELECT CAST(SUM(opened + resolved) AS BIGINT) FROM rule_day)";
    let folder = tempfile::tempdir().unwrap();
    let store = file(&folder, &Options { max_pages: Some(280), ..Options::default() }).await;
    let surface = one_card(&store).await;
    let rules = ruleset(&store).await;
    let mut done = 0;
    let error = loop {
        match store.record(&[heavy(surface, rules, done), heavy(surface, rules, done + 1)]).await {
            Ok(_) => done += 2,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, Error::Full(_)), "{error:?}");
    assert!(error.to_string().starts_with("the disk of the database is full"), "{error}");
    assert!(done >= 4, "{done}");
    let before = number(&store, everything).await;
    for _ in 0..3 {
        let again = store.record(&[heavy(surface, rules, done), heavy(surface, rules, done + 1)]).await;
        assert!(matches!(again, Err(Error::Full(_))), "it stays full: {again:?}");
        assert_eq!(number(&store, everything).await, before, "nothing is half written");
    }
    // Less than a document still fits, on the same connection.
    store.note_disk(&FULL, NOON).await.unwrap();
    store.record(&[heavy(surface, rules, done), heavy(surface, rules, done + 1)]).await.unwrap();
    store.close().await;

    let store = file(&folder, &Options::default()).await;
    let recorded = store.record(&[heavy(surface, rules, done + 2)]).await.unwrap();
    assert_eq!((recorded.observations, recorded.documents_changed), (1, 1));
    assert_eq!(number(&store, "SELECT COUNT(*) FROM doc_span").await, done + 3);
    assert_eq!(number(&store, "SELECT COUNT(*) FROM pragma_integrity_check WHERE integrity_check <> 'ok'").await, 0);
    store.close().await;
}
