//! Documents that differ at every fetch and say nothing new.

use crate::support::{HOUR, NOON, for_each_database, judged, number, one_card, ruleset, seen};

/// A card with a time stamp, so many looks after the first.
fn stamped(n: i64, version: &str) -> String {
    format!(r#"{{"name":"a","version":"{version}","meta":{{"generated":"2026-11-30T10:00:{n:02}Z"}}}}"#)
}

#[tokio::test]
async fn what_differs_at_every_fetch_is_no_change_after_five() {
    for_each_database(async |store| {
        let rules = ruleset(&store).await;
        let surface = one_card(&store).await;
        let look = async |n: i64, document: &str| {
            let look = seen(surface, NOON + n * HOUR, document, judged(rules, &[("a2a/e", 'P')]));
            store.record(&[look]).await.unwrap();
        };
        for n in 0..=5 {
            assert!(store.volatile_places(surface).await.unwrap().is_empty(), "not before the fifth that differs");
            look(n, &stamped(n, "1")).await;
        }
        assert_eq!(store.volatile_places(surface).await.unwrap(), [("/meta/generated".to_owned(), NOON + 5 * HOUR)]);
        let shown = store.target_volatile_places(plumbline_store::TargetId(1)).await.unwrap();
        let shown: Vec<_> = shown.iter().map(|one| (one.surface_id, one.pointer.as_str(), one.marked_s)).collect();
        assert_eq!(shown, [(surface.0, "/meta/generated", NOON + 5 * HOUR)]);
        assert_eq!(store.target_volatile_places(plumbline_store::TargetId(9)).await.unwrap(), []);
        let spans = "SELECT COUNT(*) FROM doc_span";
        assert_eq!(number(&store, spans).await, 6);
        for n in 6..=20 {
            look(n, &stamped(n, "1")).await;
        }
        assert_eq!(number(&store, spans).await, 6, "what differs only there is the document before");
        look(21, &stamped(21, "2")).await;
        assert_eq!(number(&store, spans).await, 7, "another version is a change all the same");
        assert!(store.count_place_again(surface, "/meta/generated").await.unwrap());
        look(22, &stamped(22, "2")).await;
        assert_eq!(number(&store, spans).await, 8, "and so is the time once somebody says that it counts");
    })
    .await;
}

#[tokio::test]
async fn a_fetch_without_a_difference_and_two_builds_in_turn_make_nothing_volatile() {
    for_each_database(async |store| {
        let rules = ruleset(&store).await;
        let surface = one_card(&store).await;
        let mut at = NOON;
        let mut look = async |n: i64| {
            at += HOUR;
            let look = seen(surface, at, &stamped(n, "1"), judged(rules, &[("a2a/e", 'P')]));
            store.record(&[look]).await.unwrap();
        };
        for n in 0..12 {
            look(n).await;
            look(n).await;
        }
        for n in 0..12 {
            look(20 + n % 2).await;
        }
        assert!(store.volatile_places(surface).await.unwrap().is_empty());
    })
    .await;
}

#[tokio::test]
async fn of_the_twenty_fifth_document_in_a_day_only_the_hash_is_kept() {
    for_each_database(async |store| {
        let rules = ruleset(&store).await;
        let surface = one_card(&store).await;
        for n in 0..30 {
            let document = format!(r#"{{"skills":[{}]}}"#, vec!["1"; n + 1].join(","));
            let at = NOON + i64::try_from(n).unwrap() * 600;
            store.record(&[seen(surface, at, &document, judged(rules, &[("a2a/e", 'P')]))]).await.unwrap();
        }
        assert_eq!(number(&store, "SELECT COUNT(*) FROM doc_span").await, 30, "that it was served is told");
        assert_eq!(number(&store, "SELECT COUNT(*) FROM document WHERE body IS NOT NULL").await, 24);
        assert_eq!(
            number(&store, "SELECT CASE WHEN etag IS NULL THEN 1 ELSE 0 END FROM surface").await,
            1,
            "and it is asked for whole the next time"
        );
    })
    .await;
}
