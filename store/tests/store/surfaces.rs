//! What is due, and who has it.

use plumbline_store::surfaces::{Feed, Validators};

use crate::support::{HOUR, NOON, card, domains, for_each_database, judged, number, one_card, ruleset, seen, take};

#[tokio::test]
async fn a_leased_surface_is_given_to_nobody_else() {
    for_each_database(async |store| {
        let source = domains(&store).await;
        let cards: Vec<_> = (0..5).map(|n| card(&format!("h{n}.example"))).collect();
        store.set_targets(source, &cards, NOON).await.unwrap();
        assert_eq!(store.due_surfaces(NOON - 1, take(9, NOON), "a").await.unwrap(), []);
        let first = store.due_surfaces(NOON, take(2, NOON + 60), "a").await.unwrap();
        let second = store.due_surfaces(NOON, take(9, NOON + 60), "b").await.unwrap();
        assert_eq!((first.len(), second.len()), (2, 3));
        assert!(first.iter().all(|surface| !second.contains(surface)));
        assert_eq!(store.due_surfaces(NOON, take(9, NOON + 60), "c").await.unwrap(), []);
        assert_eq!(store.count_due(NOON).await.unwrap(), 5);

        // Given back unlooked at, only by who has it.
        store.release(&[first[0].id], "b").await.unwrap();
        assert_eq!(store.due_surfaces(NOON, take(9, NOON + 60), "c").await.unwrap(), []);
        store.release(&[first[0].id], "a").await.unwrap();
        assert_eq!(store.due_surfaces(NOON, take(9, NOON + 60), "c").await.unwrap().len(), 1);

        // A lease that ran out is free.
        let late = store.due_surfaces(NOON + 60, take(9, NOON + 120), "d").await.unwrap();
        assert_eq!(late.len(), 5);
    })
    .await;
}

#[tokio::test]
async fn recording_ends_the_lease_and_says_when_again() {
    for_each_database(async |store| {
        let rules = ruleset(&store).await;
        let surface = one_card(&store).await;
        let due = store.due_surfaces(NOON, take(9, NOON + HOUR), "a").await.unwrap();
        assert_eq!((due[0].from, due[0].document), (Feed::Fetched, None));
        assert!(due[0].target.is_some());
        store.record(&[seen(surface, NOON + 5, "{}", judged(rules, &[]))]).await.unwrap();
        assert_eq!(number(&store, "SELECT COUNT(*) FROM lease").await, 0);
        assert_eq!(store.next_due().await.unwrap(), Some(NOON + 5 + HOUR));
        assert_eq!(number(&store, "SELECT next_due_s FROM target").await, NOON + 5 + HOUR);
        assert_eq!(store.due_surfaces(NOON + HOUR, take(9, NOON + 2 * HOUR), "a").await.unwrap(), []);
        store.set_due(surface, Some(NOON + 10)).await.unwrap();
        assert_eq!(store.due_surfaces(NOON + 10, take(9, NOON + 2 * HOUR), "a").await.unwrap().len(), 1);
        store.set_due(surface, None).await.unwrap();
        assert_eq!(store.next_due().await.unwrap(), None);
    })
    .await;
}

#[tokio::test]
async fn validators_are_those_of_the_last_200() {
    for_each_database(async |store| {
        let rules = ruleset(&store).await;
        let surface = one_card(&store).await;
        assert_eq!(store.validators(surface).await.unwrap(), Validators::default());
        let validators = Validators { etag: Some("\"a\"".into()), last_modified: None };
        let mut first = seen(surface, NOON, "{}", judged(rules, &[]));
        first.validators = Some(validators.clone());
        store.record(&[first]).await.unwrap();
        let mut second = seen(surface, NOON + 9, "{}", judged(rules, &[]));
        second.served = plumbline_store::record::Served::Unchanged;
        store.record(&[second]).await.unwrap();
        assert_eq!(store.validators(surface).await.unwrap(), validators);
        let document = store.last_document(surface).await.unwrap().unwrap();
        assert_eq!(document.bytes.as_deref(), Some(&b"{}"[..]));
    })
    .await;
}

#[tokio::test]
async fn another_ruleset_makes_what_was_judged_before_due() {
    for_each_database(async |store| {
        let old = ruleset(&store).await;
        let surface = one_card(&store).await;
        store.record(&[seen(surface, NOON, "{}", judged(old, &[]))]).await.unwrap();
        let new = store.ensure_ruleset("2", &crate::support::rules()[..2], NOON).await.unwrap();
        assert_eq!(store.rejudge_under(new, false, NOON + 1).await.unwrap(), 0, "it has to be fetched for that");
        assert_eq!(store.rejudge_under(old, true, NOON + 1).await.unwrap(), 0);
        assert_eq!(store.rejudge_under(new, true, NOON + 1).await.unwrap(), 1);
        assert_eq!(store.next_due().await.unwrap(), Some(NOON + 1));
    })
    .await;
}
