//! Targets from settings: added, kept, left, back; one surface for many.

use plumbline_store::targets::{Link, NewTarget, TargetsChanged};
use plumbline_store::words::{Role, SurfaceKind, TargetKind};

use crate::support::{
    DAY, NOON, card, domains, events, for_each_database, judged, number, one_card, ruleset, seen, surface_of,
};

fn changed(added: usize, kept: usize, returned: usize, left: usize) -> TargetsChanged {
    TargetsChanged { added, kept, returned, left }
}

#[tokio::test]
async fn naming_the_same_targets_twice_doubles_nothing() {
    for_each_database(async |store| {
        let source = domains(&store).await;
        let cards = [card("a.example"), card("b.example")];
        assert_eq!(store.set_targets(source, &cards, NOON).await.unwrap(), changed(2, 0, 0, 0));
        assert_eq!(store.set_targets(source, &cards, NOON + 1).await.unwrap(), changed(0, 2, 0, 0));
        let totals = store.counts().await.unwrap();
        assert_eq!((totals.targets, totals.surfaces), (2, 2));
        assert_eq!(number(&store, "SELECT targets FROM cohort_day WHERE cohort_id = 1").await, 2);
        assert_eq!(number(&store, "SELECT added FROM cohort_day WHERE cohort_id = 3").await, 2);
        assert_eq!(number(&store, "SELECT COUNT(*) FROM tag").await, 2);
        assert_eq!(number(&store, "SELECT COUNT(*) FROM owner").await, 1);
        assert_eq!(number(&store, "SELECT COUNT(*) FROM target_token WHERE token = 'example'").await, 2);
        assert_eq!(number(&store, "SELECT SUM(n_surfaces) * 1 FROM target").await, 2);
        assert_eq!(events(&store).await, ["target.added", "target.added"]);
    })
    .await;
}

#[tokio::test]
async fn who_leaves_its_source_is_retired_with_its_findings_and_may_come_back() {
    for_each_database(async |store| {
        let rules = ruleset(&store).await;
        let source = domains(&store).await;
        store.set_targets(source, &[card("a.example"), card("b.example")], NOON).await.unwrap();
        let surface = surface_of(&store, "a.example").await;
        store.record(&[seen(surface, NOON, "{}", judged(rules, &[("a2a/e", 'F'), ("a2a/f", 'F')]))]).await.unwrap();

        let left = store.set_targets(source, &[card("b.example")], NOON + 60).await.unwrap();
        assert_eq!(left, changed(0, 1, 0, 1));
        assert_eq!(store.counts().await.unwrap().targets, 1);
        assert_eq!(store.surface(surface).await.unwrap().retired_s, Some(NOON + 60));
        assert_eq!(store.surface(surface).await.unwrap().next_due_s, None);
        assert_eq!(number(&store, "SELECT COUNT(*) FROM finding WHERE state = 'retired'").await, 1);
        assert_eq!(number(&store, "SELECT COUNT(*) FROM finding_span WHERE to_s IS NULL").await, 0);
        assert_eq!(number(&store, "SELECT COUNT(*) FROM fact_span WHERE to_s IS NULL").await, 0);
        assert_eq!(number(&store, "SELECT COUNT(*) FROM rule_day WHERE failing <> 0 OR evaluated <> 0").await, 0);
        for column in [
            "SELECT targets FROM cohort_day WHERE cohort_id = 1",
            "SELECT not_evaluated FROM cohort_day WHERE cohort_id = 3",
            "SELECT unknown FROM cohort_day WHERE cohort_id = 3",
            "SELECT retired FROM cohort_day WHERE cohort_id = 1",
        ] {
            assert_eq!(number(&store, column).await, 1, "{column}");
        }
        assert_eq!(number(&store, "SELECT blocked FROM cohort_day WHERE cohort_id = 1").await, 0);

        let back = store.set_targets(source, &[card("a.example"), card("b.example")], NOON + 90).await.unwrap();
        assert_eq!(back, changed(0, 1, 1, 0));
        let again = store.surface(surface).await.unwrap();
        assert_eq!((again.retired_s, again.next_due_s), (None, Some(NOON + 90)));
        store.record(&[seen(surface, NOON + 95, "{}", judged(rules, &[("a2a/e", 'F')]))]).await.unwrap();
        assert_eq!(
            number(&store, "SELECT COUNT(*) FROM finding WHERE opened_as = 'baseline' AND state = 'open'").await,
            1
        );
        assert_eq!(number(&store, "SELECT blocked FROM cohort_day WHERE cohort_id = 1").await, 1);
        let told = events(&store).await;
        assert_eq!(told.iter().filter(|word| *word == "finding.regressed").count(), 0);
        assert_eq!(told.iter().filter(|word| *word == "target.returned").count(), 1);
    })
    .await;
}

#[tokio::test]
async fn a_target_of_two_sources_stays_while_one_lists_it() {
    for_each_database(async |store| {
        let source = domains(&store).await;
        let other =
            store.ensure_source(plumbline_store::words::SourceKind::Settings, "mine", None, NOON).await.unwrap();
        store.set_targets(source, &[card("a.example")], NOON).await.unwrap();
        store.add_targets(other, &[card("a.example")], NOON).await.unwrap();
        store.set_targets(source, &[], NOON + 1).await.unwrap();
        assert_eq!(store.counts().await.unwrap().targets, 1);
        store.set_targets(other, &[], NOON + 2).await.unwrap();
        assert_eq!(store.counts().await.unwrap().targets, 0);
    })
    .await;
}

#[tokio::test]
async fn an_address_named_by_two_targets_is_one_surface_judged_once() {
    for_each_database(async |store| {
        let rules = ruleset(&store).await;
        let source = domains(&store).await;
        let shared = NewTarget { key: "second".into(), ..card("a.example") };
        store.set_targets(source, &[card("a.example"), shared], NOON).await.unwrap();
        let totals = store.counts().await.unwrap();
        assert_eq!((totals.targets, totals.surfaces), (2, 1));
        let surface = surface_of(&store, "a.example").await;
        store.record(&[seen(surface, NOON, "{}", judged(rules, &[("a2a/e", 'F')]))]).await.unwrap();
        assert_eq!(number(&store, "SELECT COUNT(*) FROM finding").await, 1);
        assert_eq!(
            number(&store, "SELECT COUNT(*) FROM target WHERE headline = 'blocked' AND n_blocking = 1").await,
            2
        );
        assert_eq!(number(&store, "SELECT blocked FROM cohort_day WHERE cohort_id = 1").await, 2);
        assert_eq!(
            number(&store, "SELECT failing FROM rule_day JOIN rule ON rule.id = rule_day.rule_id WHERE slug = 'a2a/e'")
                .await,
            1
        );
        // One of the two leaves; the surface is still shown by the other.
        store.set_targets(source, &[card("a.example")], NOON + 5).await.unwrap();
        assert_eq!(store.surface(surface).await.unwrap().retired_s, None);
        assert_eq!(number(&store, "SELECT COUNT(*) FROM finding WHERE state = 'open'").await, 1);
    })
    .await;
}

#[tokio::test]
async fn links_of_a_document_come_and_go() {
    for_each_database(async |store| {
        let rules = ruleset(&store).await;
        let surface = one_card(&store).await;
        let target = store.target_named(TargetKind::A2aAgent, "a.example").await.unwrap().unwrap();
        let link =
            |url: &str| Link { kind: SurfaceKind::A2aInterface, url: url.into(), role: Role::Interface, host: None };
        store.set_links(target, &[link("https://a.example/1"), link("https://a.example/2")], NOON).await.unwrap();
        assert_eq!(number(&store, "SELECT n_surfaces FROM target").await, 3);
        let second = store.surface_at(SurfaceKind::A2aInterface, "https://a.example/2").await.unwrap().unwrap();
        store.record(&[seen(surface, NOON, "{}", judged(rules, &[("a2a/e", 'P')]))]).await.unwrap();
        store.record(&[seen(second, NOON, "[]", judged(rules, &[("a2a/e", 'F')]))]).await.unwrap();
        assert_eq!(number(&store, "SELECT headline_rank FROM target").await, 0, "the worst surface speaks");
        store.set_links(target, &[link("https://a.example/1")], NOON + 9).await.unwrap();
        assert_eq!(number(&store, "SELECT n_surfaces FROM target").await, 2);
        assert_eq!(number(&store, "SELECT headline_rank FROM target").await, 2);
        assert_eq!(store.surface(second).await.unwrap().retired_s, Some(NOON + 9));
    })
    .await;
}

#[tokio::test]
async fn a_day_begins_with_what_the_day_before_ended_with() {
    for_each_database(async |store| {
        let rules = ruleset(&store).await;
        let surface = one_card(&store).await;
        store.record(&[seen(surface, NOON, "{}", judged(rules, &[("a2a/e", 'F')]))]).await.unwrap();
        store.record(&[seen(surface, NOON + 3 * DAY, "{}", judged(rules, &[("a2a/e", 'F')]))]).await.unwrap();
        assert_eq!(number(&store, "SELECT COUNT(DISTINCT day) FROM cohort_day").await, 2);
        let later = number(&store, "SELECT blocked FROM cohort_day WHERE cohort_id = 1 AND day = 20789").await;
        assert_eq!(later, 1);
        assert_eq!(number(&store, "SELECT added FROM cohort_day WHERE cohort_id = 1 AND day = 20789").await, 0);
        assert_eq!(number(&store, "SELECT failing FROM rule_day WHERE day = 20789").await, 1);
        assert_eq!(number(&store, "SELECT baseline FROM rule_day WHERE day = 20789").await, 0);
    })
    .await;
}
