//! Confirmation as the database keeps it: what waits, what is looked at again and when, what flaps, what is settled at once.

use plumbline_store::record::{Observation, Served};
use plumbline_store::words::{Evidence, Headline};
use plumbline_store::{EventId, Store, SurfaceId};

use crate::support::{
    DAY, HOUR, NOON, events, for_each_database, judged, number, one_card, record_confirmed, rules, ruleset, seen, take,
    unseen,
};

/// When a surface is due, and as which look out of turn.
async fn due(store: &Store, surface: SurfaceId) -> (i64, i64) {
    let verifying = number(store, "SELECT verifying FROM surface WHERE id = 1").await;
    (store.surface(surface).await.unwrap().next_due_s.unwrap(), verifying)
}

async fn findings_told(store: &Store) -> Vec<String> {
    events(store).await.into_iter().filter(|word| word.starts_with("finding")).collect()
}

#[tokio::test]
async fn what_was_seen_once_is_looked_at_again_within_minutes_and_counts_for_nothing_until_then() {
    for_each_database(async |store| {
        let rules = ruleset(&store).await;
        let surface = one_card(&store).await;
        let look = |at, text: &str, letter| seen(surface, at, text, judged(rules, &[("a2a/e", letter)]));
        store.record(&[look(NOON, "{}", 'P')]).await.unwrap();
        let recorded = store.record_and_verify(&[look(NOON + HOUR, "[]", 'F')], 9).await.unwrap();
        assert_eq!((recorded.opened, recorded.verifications), (0, 1));
        let (at, verifying) = due(&store, surface).await;
        assert!((48..=72).contains(&(at - NOON - HOUR)) && verifying == 1, "{at} {verifying}");
        let now = store.surface(surface).await.unwrap();
        assert_eq!((now.headline, now.n_blocking), (Headline::Sound, 0));
        let waiting = store.count_unconfirmed().await.unwrap();
        assert_eq!((waiting.pending, waiting.clearing, waiting.next_look_s), (1, 0, Some(at)));

        let taken = store.due_surfaces(at, take(9, at + 60), "me").await.unwrap();
        assert!(taken[0].is_verification && taken[0].ruleset == Some(rules));
        // Nobody answers: it is neither confirmed nor refuted, and asked again.
        store.record_and_verify(&[unseen(surface, at, "unreachable:reset")], 9).await.unwrap();
        let (again, verifying) = due(&store, surface).await;
        assert!((240..=360).contains(&(again - NOON - HOUR)) && verifying == 2, "{again}");
        let second = Observation { is_verification: true, ..look(again, "[]", 'F') };
        let recorded = store.record_and_verify(&[second], 9).await.unwrap();
        assert_eq!((recorded.opened, recorded.verifications), (1, 0));
        assert_eq!(due(&store, surface).await, (again + HOUR, 0), "all is settled");
        assert_eq!(number(&store, "SELECT from_s FROM finding_span").await, NOON + HOUR);
        assert_eq!(store.count_unconfirmed().await.unwrap().next_look_s, None);
    })
    .await;
}

#[tokio::test]
async fn without_room_what_was_seen_once_waits_for_its_turn() {
    for_each_database(async |store| {
        let rules = ruleset(&store).await;
        let surface = one_card(&store).await;
        let look = |at, text: &str, letter| seen(surface, at, text, judged(rules, &[("a2a/e", letter)]));
        store.record(&[look(NOON, "{}", 'P')]).await.unwrap();
        let recorded = store.record_and_verify(&[look(NOON + HOUR, "[]", 'F')], 0).await.unwrap();
        assert_eq!(recorded.verifications, 0);
        assert_eq!(due(&store, surface).await, (NOON + 2 * HOUR, 0));
        store.record(&[look(NOON + 2 * HOUR, "[]", 'F')]).await.unwrap();
        assert_eq!(findings_told(&store).await, ["finding.opened"]);
    })
    .await;
}

#[tokio::test]
async fn what_is_refuted_leaves_no_trace_but_its_flips() {
    for_each_database(async |store| {
        let rules = ruleset(&store).await;
        let surface = one_card(&store).await;
        let look = |at, text: &str, letter| seen(surface, at, text, judged(rules, &[("a2a/e", letter)]));
        store.record(&[look(NOON, "{}", 'P'), look(NOON + HOUR, "[]", 'F')]).await.unwrap();
        let refuting = Observation { is_verification: true, ..look(NOON + HOUR + 60, "{}", 'P') };
        store.record(&[refuting]).await.unwrap();
        assert_eq!(findings_told(&store).await, [""; 0]);
        assert_eq!(number(&store, "SELECT COUNT(*) FROM finding_span").await, 0);
        assert_eq!(number(&store, "SELECT refuted FROM finding").await, 1);
        assert_eq!(number(&store, "SELECT COUNT(*) FROM finding WHERE state = 'resolved' AND opens = 0").await, 1);
        assert_eq!(store.count_unconfirmed().await.unwrap().pending, 0);
    })
    .await;
}

#[tokio::test]
async fn entries_of_a_list_and_changes_of_rules_need_no_second_look() {
    for_each_database(async |store| {
        let rules_now = ruleset(&store).await;
        let surface = one_card(&store).await;
        let look = |at, text: &str, letter| seen(surface, at, text, judged(rules_now, &[("a2a/e", letter)]));
        store.record(&[look(NOON, "{}", 'P'), look(NOON + 60, "[]", 'P')]).await.unwrap();
        let listed = store.last_document(surface).await.unwrap().unwrap().id;
        store.record(&[look(NOON + 120, "{}", 'P')]).await.unwrap();
        let mut entry = look(NOON + HOUR, "[]", 'F');
        entry.served = Served::Kept(listed);
        assert_eq!(store.record(&[entry]).await.unwrap().opened, 1, "a list has one copy");

        let mut more = rules();
        more[1].version = 2;
        let changed = store.ensure_ruleset("2", &more, NOON + HOUR).await.unwrap();
        let after = seen(surface, NOON + 2 * HOUR, "[]", judged(changed, &[("a2a/e", 'F'), ("a2a/w", 'F')]));
        assert_eq!(store.record(&[after]).await.unwrap().opened, 1, "the document was seen before");
        assert_eq!(findings_told(&store).await, ["finding.opened", "finding.opened"]);
    })
    .await;
}

#[tokio::test]
async fn two_versions_in_turn_flap_and_are_said_to() {
    for_each_database(async |store| {
        let rules = ruleset(&store).await;
        let surface = one_card(&store).await;
        let look =
            |n: i64, text: &str, letter| seen(surface, NOON + n * HOUR, text, judged(rules, &[("a2a/e", letter)]));
        assert_eq!(store.two_versions(surface).await.unwrap(), None);
        for n in 0..7 {
            let (text, letter) = if n % 2 == 0 { ("{\"v\":1}", 'P') } else { ("{\"v\":2}", 'F') };
            record_confirmed(&store, look(n, text, letter)).await;
        }
        let told = findings_told(&store).await;
        assert_eq!(told.iter().filter(|word| *word == "finding.flapping_started").count(), 1, "{told:?}");
        assert_eq!(told.last().map(String::as_str), Some("finding.flapping_started"), "and then there is silence");
        assert_eq!(number(&store, "SELECT COUNT(*) FROM finding_span WHERE to_s IS NULL").await, 1);
        assert_eq!(store.surface(surface).await.unwrap().n_blocking, 1, "it counts as failing");
        let versions = store.two_versions(surface).await.unwrap().unwrap();
        assert_ne!(versions.0, versions.1);
        // Twelve equal looks, and it is over.
        for n in 7..20 {
            store.record(&[look(n, "{\"v\":1}", 'P')]).await.unwrap();
        }
        let last = store.events_after(EventId(0), 1000).await.unwrap().pop().unwrap();
        assert_eq!(last.kind.as_str(), "target.headline_changed");
        let told = findings_told(&store).await;
        assert_eq!(told.last().map(String::as_str), Some("finding.flapping_stopped"), "{told:?}");
        assert_eq!(number(&store, "SELECT to_s FROM finding_span ORDER BY from_s DESC LIMIT 1").await, NOON + 6 * HOUR);
        assert_eq!(store.two_versions(surface).await.unwrap(), None);
    })
    .await;
}

#[tokio::test]
async fn how_a_change_came_is_told_by_the_look_that_saw_it_first() {
    for_each_database(async |store| {
        let mut live = rules();
        live[0].evidence = Evidence::Live;
        let rules = store.ensure_ruleset("1", &live, NOON - 100 * DAY).await.unwrap();
        let surface = one_card(&store).await;
        let look = |at, text: &str, letter| seen(surface, at, text, judged(rules, &[("a2a/e", letter)]));
        store.record(&[look(NOON, "{}", 'P'), look(NOON + DAY, "{}", 'P')]).await.unwrap();
        // The document changes with the first look; those that confirm see it unchanged.
        record_confirmed(&store, look(NOON + DAY + HOUR, "[]", 'F')).await;
        let told = store.events_after(EventId(0), 100).await.unwrap();
        let news = told.iter().find(|event| event.kind.as_str() == "finding.regressed").unwrap();
        assert_eq!(news.note.as_deref(), Some("broke document"));
        assert_eq!(
            number(&store, "SELECT open_doc FROM finding_span").await,
            number(&store, "SELECT document_id FROM surface").await
        );
        // One that passes does not end it, two do, from the first of them.
        store.record(&[look(NOON + DAY + 2 * HOUR, "[]", 'P')]).await.unwrap();
        assert_eq!(store.count_unconfirmed().await.unwrap().clearing, 1);
        assert_eq!(store.surface(surface).await.unwrap().n_blocking, 1);
        store.record(&[look(NOON + DAY + 3 * HOUR, "[]", 'P')]).await.unwrap();
        assert_eq!(number(&store, "SELECT to_s FROM finding_span").await, NOON + DAY + 2 * HOUR);
    })
    .await;
}
