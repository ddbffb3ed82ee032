//! A database is broken by hand; the doctor sees each fault, mends what is derived and leaves history alone.

use plumbline_store::Store;
use plumbline_store::doctor::{Diagnosis, Hand};
use plumbline_store::recount::Recount;
use plumbline_store::sources::CrawlEnd;
use plumbline_store::walks::WalkEnd;
use plumbline_store::words::{CrawlKind, CrawlState};

use crate::support::{
    DAY, HOUR, NOON, card, domains, entry, for_each_database, judged, number, one_card, registry, ruleset, seen,
    surface_of, take, unseen,
};

async fn write(store: &Store, sql: &'static str) {
    let done = sqlx::query(sql).execute(store.writer()).await.unwrap();
    assert!(done.rows_affected() > 0, "nothing was broken by {sql}");
}

async fn examine(store: &Store, hand: Hand) -> Diagnosis {
    store.examine(hand, NOON + DAY, |holder| holder == "alive").await.unwrap()
}

/// Checks with a fault: what, how many, how many mended.
fn faults(diagnosis: &Diagnosis) -> Vec<(&'static str, i64, i64)> {
    let wrong = diagnosis.checks.iter().filter(|check| check.wrong > 0);
    wrong.map(|check| (check.what, check.wrong, check.mended)).collect()
}

/// Cards that were looked at, that broke, went silent, left; a registry with versions.
async fn life(store: &Store) {
    let rules = ruleset(store).await;
    let source = domains(store).await;
    let hosts = ["a.example", "b.example", "c.example", "d.example"];
    store.add_targets(source, &hosts.map(card), NOON).await.unwrap();
    for (hour, letters) in [(0, "PPFP"), (1, "FPFP"), (2, "FPPP"), (3, "2PFP")] {
        for (host, letter) in hosts.iter().zip(letters.chars()) {
            let said = judged(rules, &[("a2a/e", letter), ("a2a/w", letter), ("a2a/f", letter), ("common/json", 'P')]);
            let look = seen(surface_of(store, host).await, NOON + hour * HOUR, &format!("{{\"{letter}\":1}}"), said);
            store.record(&[look]).await.unwrap();
        }
    }
    let silent = surface_of(store, "b.example").await;
    for hour in 4..9 {
        store.record(&[unseen(silent, NOON + hour * HOUR, "unreachable:refused")]).await.unwrap();
    }
    store
        .set_targets(source, &[card("a.example"), card("b.example"), card("c.example")], NOON + 10 * HOUR)
        .await
        .unwrap();
    let registry = registry(store).await;
    let crawl = store.start_crawl(CrawlKind::FullWalk, Some(registry), None, "alive", NOON).await.unwrap();
    let walk = store.begin_walk(registry, crawl, None, NOON).await.unwrap();
    let entries = [entry("io.example/a", "1.0.0"), entry("io.example/a", "1.1.0"), entry("io.example/b", "2.0.0")];
    store.store_page(walk.id, &entries, None, NOON).await.unwrap();
    store.finish_walk(walk.id, &WalkEnd::Complete, NOON).await.unwrap();
    store.finish_crawl(crawl, &CrawlEnd { state: CrawlState::Complete, note: None }, NOON).await.unwrap();
}

#[tokio::test]
async fn a_database_that_only_plumbline_wrote_is_sound() {
    for_each_database(async |store| {
        assert_eq!(faults(&examine(&store, Hand::Look).await), [], "an empty one");
        life(&store).await;
        let diagnosis = examine(&store, Hand::Look).await;
        assert_eq!(faults(&diagnosis), [], "{diagnosis:#?}");
        assert!(diagnosis.checks.iter().filter(|check| check.looked_at > 0).count() >= 9, "{diagnosis:#?}");
    })
    .await;
}

#[tokio::test]
async fn numbers_that_do_not_add_up_are_found_and_mended() {
    for_each_database(async |store| {
        life(&store).await;
        let state = "SELECT CAST(SUM(n_error * 1000 + n_warn * 100 + headline_rank)
                            + (SELECT SUM(n_error * 7 + n_security * 3) FROM surface)
                            + (SELECT SUM(targets * 5 + blocked * 3 + up + entries) FROM cohort_day)
                            + (SELECT SUM(evaluated * 5 + failing * 3 + occurrences) FROM rule_day) AS BIGINT)
                     FROM target";
        let before = number(&store, state).await;
        let history = "SELECT (SELECT COUNT(*) FROM event) * 100 + (SELECT COUNT(*) FROM finding_span)";
        let history_before = number(&store, history).await;
        let (surface, target) = ("the numbers and words of surfaces", "the numbers and words of targets");
        let (cohort, rule) = ("the newest day of the cohorts", "the newest day of the rules");
        // What is folded from a fault is a fault too, until that is mended, which comes first.
        for (broken, looked, mended) in [
            (
                "UPDATE surface SET n_error = 9, n_security = 4 WHERE id = 1",
                &[(surface, 1), (target, 1)][..],
                &[(surface, 1)][..],
            ),
            ("UPDATE surface SET headline = 'sound' WHERE id = 1", &[(surface, 1), (target, 1)], &[(surface, 1)]),
            ("UPDATE target SET n_warn = 7 WHERE id = 1", &[(target, 1)], &[(target, 1)]),
            ("UPDATE target SET n_surfaces = 3 WHERE id = 3", &[(target, 1)], &[(target, 1)]),
            (
                "UPDATE target SET headline = 'sound', headline_rank = 2, reach = 'down' WHERE id = 1",
                &[(target, 1), (cohort, 2)],
                &[(target, 1)],
            ),
            (
                "UPDATE cohort_day SET blocked = blocked + 1
                 WHERE cohort_id = 3 AND day = (SELECT MAX(day) FROM cohort_day)",
                &[(cohort, 1)],
                &[(cohort, 1)],
            ),
            (
                "UPDATE cohort_day SET entries = 0 WHERE cohort_id = 2 AND day = (SELECT MAX(day) FROM cohort_day)",
                &[(cohort, 1)],
                &[(cohort, 1)],
            ),
            (
                "UPDATE rule_day SET failing = failing + 1, evaluated = 0
                 WHERE rule_id = 1 AND day = (SELECT MAX(day) FROM rule_day)",
                &[(rule, 1)],
                &[(rule, 1)],
            ),
        ] {
            write(&store, broken).await;
            let found: Vec<_> = looked.iter().map(|(what, wrong)| (*what, *wrong, 0)).collect();
            assert_eq!(faults(&examine(&store, Hand::Look).await), found, "{broken}");
            let found: Vec<_> = mended.iter().map(|(what, wrong)| (*what, *wrong, *wrong)).collect();
            assert_eq!(faults(&examine(&store, Hand::Mend).await), found, "{broken}");
            assert_eq!(faults(&examine(&store, Hand::Look).await), [], "{broken}: nothing is left");
            assert_eq!(number(&store, state).await, before, "{broken}: it is as it was");
        }
        assert_eq!(number(&store, history).await, history_before, "history was not touched");
        assert_eq!(
            number(&store, "SELECT COUNT(*) FROM annotation WHERE kind = 'note'").await,
            3,
            "corrections are noted"
        );
    })
    .await;
}

#[tokio::test]
async fn what_is_wrong_in_history_is_told_and_left_to_a_person() {
    for_each_database(async |store| {
        life(&store).await;
        for (broken, undone, expected, says) in [
            (
                "UPDATE reach_span SET to_s = from_s - 5 WHERE surface_id = 2 AND to_s IS NOT NULL AND state = 'up'",
                "UPDATE reach_span
                 SET to_s = (SELECT MIN(r.from_s) FROM reach_span r WHERE r.surface_id = 2 AND r.from_s > reach_span.from_s)
                 WHERE surface_id = 2 AND state = 'up'",
                "spans of reach",
                "ends before",
            ),
            (
                "UPDATE doc_span SET to_s = to_s + 7201
                 WHERE surface_id = 1 AND from_s = (SELECT MIN(from_s) FROM doc_span WHERE surface_id = 1)",
                "UPDATE doc_span SET to_s = to_s - 7201
                 WHERE surface_id = 1 AND from_s = (SELECT MIN(from_s) FROM doc_span WHERE surface_id = 1)",
                "spans of documents",
                "after the next began",
            ),
            (
                "UPDATE fact_span SET to_s = to_s - 7201 WHERE surface_id = 3 AND to_s IS NOT NULL",
                "UPDATE fact_span SET to_s = to_s + 7201 WHERE surface_id = 3 AND to_s IS NOT NULL",
                "spans of facts",
                "ends before",
            ),
            (
                "UPDATE listing SET is_current = 1 WHERE name = 'io.example/a'",
                "UPDATE listing SET is_current = 0 WHERE name = 'io.example/a' AND version = '1.0.0'",
                "the versions of names",
                "has 2 current versions",
            ),
            (
                "INSERT INTO event_cursor (reader, event_id) VALUES ('alerts', 999999)",
                "DELETE FROM event_cursor",
                "readers of events",
                "event 999999, which is not there",
            ),
        ] {
            write(&store, broken).await;
            for hand in [Hand::Look, Hand::Mend] {
                let diagnosis = examine(&store, hand).await;
                let check = diagnosis.checks.iter().find(|check| check.what == expected).unwrap();
                assert!(check.wrong > 0 && check.mended == 0, "{broken}: {check:?}");
                assert!(check.examples[0].contains(says), "{broken}: {:?}", check.examples);
                assert!(diagnosis.left() > 0);
            }
            write(&store, undone).await;
            assert_eq!(faults(&examine(&store, Hand::Look).await), [], "{undone}");
        }
    })
    .await;
}

#[tokio::test]
async fn every_day_that_events_are_kept_of_is_counted_again_and_mended() {
    for_each_database(async |store| {
        life(&store).await;
        let surface = surface_of(&store, "a.example").await;
        let rules = ruleset(&store).await;
        let look = |at, text: &str, letter| seen(surface, at, text, judged(rules, &[("a2a/e", letter)]));
        let midnight = (NOON / DAY + 3) * DAY;
        // One batch on both sides of midnight, and one that comes late: each number stands on the day of its event.
        store.record(&[look(midnight - 60, "[1]", 'F'), look(midnight - 30, "[1]", 'F')]).await.unwrap();
        store.record(&[look(midnight - 20, "[2]", 'P'), look(midnight + 20, "[3]", 'F'), look(midnight + 40, "[3]", 'F')]).await.unwrap();
        let other = surface_of(&store, "c.example").await;
        let late = |at| seen(other, at, "[9]", judged(rules, &[("a2a/e", 'F')]));
        store.record(&[late(midnight - 9), late(midnight - 8)]).await.unwrap();
        let days = store.recountable_days().await.unwrap();
        assert_eq!(days, [NOON / DAY, midnight / DAY - 1, midnight / DAY]);
        let all = async |hand| {
            let mut told = Vec::new();
            let checked = store.recount_days(hand, NOON + 9 * DAY, |done, of| told.push((done, of))).await.unwrap();
            assert_eq!(told, [(0, 3), (1, 3), (2, 3), (3, 3)]);
            checked
        };
        let fine = all(Hand::Look).await;
        assert_eq!((fine.wrong, fine.looked_at > 20), (0, true), "{fine:#?}");
        let notes = "SELECT COUNT(*) FROM annotation WHERE title = 'Corrected by counting again'";
        let sum = "SELECT CAST(SUM(opened * 3 + failing) AS BIGINT) FROM rule_day";
        let before = number(&store, sum).await;
        for broken in [
            "UPDATE rule_day SET opened = opened + 1 WHERE rule_id = 1 AND cohort_id = 1 AND day = (SELECT MIN(day) FROM rule_day)",
            "UPDATE rule_day SET failing = failing + 2 WHERE rule_id = 1 AND cohort_id = 1 AND day = (SELECT MIN(day) FROM rule_day)",
            "UPDATE cohort_day SET added = 0, targets = targets - 1 WHERE cohort_id = 3 AND day = (SELECT MIN(day) FROM rule_day)",
            "DELETE FROM rule_day WHERE rule_id = 1 AND cohort_id = 1 AND day = (SELECT MAX(day) FROM rule_day) AND opened > 0",
        ] {
            write(&store, broken).await;
            let found = all(Hand::Look).await;
            assert!(found.wrong > 0 && found.mended == 0 && !found.examples.is_empty(), "{broken}: {found:#?}");
            let noted = number(&store, notes).await;
            let mended = all(Hand::Mend).await;
            assert!(mended.wrong > 0 && mended.mended == mended.wrong, "{broken}: {mended:#?}");
            assert!(number(&store, notes).await > noted, "a correction is noted");
            assert_eq!(all(Hand::Look).await.wrong, 0, "{broken}");
            store.examine(Hand::Mend, NOON + DAY, |_| true).await.unwrap();
        }
        assert_eq!(number(&store, sum).await, before, "it is as it was");
        assert_eq!(store.last_recount().await.unwrap(), None);
        let noted = Recount { day: days[0], at_s: NOON, wrong: 3 };
        store.note_recount(Recount { day: 1, at_s: 1, wrong: 1 }).await.unwrap();
        store.note_recount(noted).await.unwrap();
        assert_eq!(store.last_recount().await.unwrap(), Some(noted));
        // Days of which events were let go stay as they were published.
        write(&store, "DELETE FROM event WHERE id < 5").await;
        assert_eq!(store.recountable_days().await.unwrap(), days[1..]);
    })
    .await;
}

#[tokio::test]
async fn a_finding_that_disagrees_with_its_spans_is_told() {
    for_each_database(async |store| {
        life(&store).await;
        let what = "that findings agree with their spans";
        write(&store, "UPDATE finding_span SET to_s = from_s WHERE to_s IS NULL").await;
        let open = number(&store, "SELECT COUNT(*) FROM finding WHERE state = 'open'").await;
        let diagnosis = examine(&store, Hand::Mend).await;
        assert_eq!(faults(&diagnosis), [(what, open, 0)]);
        assert!(
            diagnosis
                .checks
                .iter()
                .any(|check| check.examples.iter().any(|says| says.ends_with("is open and has 0 open spans")))
        );
    })
    .await;
}

#[tokio::test]
async fn a_surface_that_disagrees_with_its_spans_is_told() {
    for_each_database(async |store| {
        life(&store).await;
        write(&store, "UPDATE surface SET document_id = NULL WHERE id = 1").await;
        let diagnosis = examine(&store, Hand::Mend).await;
        assert_eq!(faults(&diagnosis), [("that surfaces agree with their spans", 1, 0)]);
    })
    .await;
}

#[tokio::test]
async fn what_the_dead_left_behind_is_taken_from_them_and_the_living_keep_theirs() {
    for_each_database(async |store| {
        one_card(&store).await;
        store.add_targets(domains(&store).await, &[card("b.example")], NOON).await.unwrap();
        store.due_surfaces(NOON, take(1, NOON + 300), "dead").await.unwrap();
        store.due_surfaces(NOON, take(1, NOON + 300), "alive").await.unwrap();
        for holder in ["dead", "alive"] {
            store.start_crawl(CrawlKind::Round, None, None, holder, NOON).await.unwrap();
        }
        let what = "crawls and leases of processes";
        assert_eq!(faults(&examine(&store, Hand::Look).await), [(what, 2, 0)]);
        assert_eq!(faults(&examine(&store, Hand::Mend).await), [(what, 2, 2)]);
        assert_eq!(faults(&examine(&store, Hand::Look).await), []);
        assert_eq!(number(&store, "SELECT COUNT(*) FROM lease").await, 1);
        assert_eq!(number(&store, "SELECT COUNT(*) FROM crawl WHERE state = 'running'").await, 1);
    })
    .await;
}

#[tokio::test]
async fn a_damaged_file_is_told_and_not_written_to() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.db");
    let store = Store::open(path.to_str().unwrap()).await.unwrap();
    life(&store).await;
    // A row that points nowhere, as no program with its references on could write it.
    let mut raw = store.writer().acquire().await.unwrap();
    sqlx::query("PRAGMA foreign_keys = OFF").execute(&mut *raw).await.unwrap();
    sqlx::query("UPDATE surface SET host_id = 4711, n_error = 9 WHERE id = 1").execute(&mut *raw).await.unwrap();
    sqlx::query("PRAGMA foreign_keys = ON").execute(&mut *raw).await.unwrap();
    drop(raw);
    let diagnosis = examine(&store, Hand::Mend).await;
    let references = &diagnosis.checks[1];
    assert_eq!((references.wrong, references.examples[0].as_str()), (1, "1 rows of surface point at no host"));
    assert_eq!(diagnosis.checks.iter().map(|check| check.mended).sum::<i64>(), 0);
    store.checkpoint(0).await.unwrap();
    store.close().await;

    // An index page overwritten with zeros.
    let mut bytes = std::fs::read(&path).unwrap();
    let page = bytes.len() / 8192 / 2 * 8192;
    bytes[page..page + 8192].fill(0);
    std::fs::write(&path, bytes).unwrap();
    let store = Store::open(path.to_str().unwrap()).await.unwrap();
    match store.examine(Hand::Look, NOON, |_| true).await {
        Ok(diagnosis) => assert!(diagnosis.checks[0].wrong > 0, "{diagnosis:#?}"),
        Err(error) => assert!(error.to_string().contains("malformed"), "{error}"),
    }
    store.close().await;
}
