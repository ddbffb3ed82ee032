//! Sources, crawls and rulesets.

use plumbline_store::Error;
use plumbline_store::rulesets::RuleFacts;
use plumbline_store::sources::{CrawlCounts, CrawlEnd, Fault, MOST_FAULTS};
use plumbline_store::words::{CrawlKind, CrawlState, SourceKind};

use crate::support::{HOUR, NOON, events, for_each_database, number, registry, rule, rules, ruleset, take};

#[tokio::test]
async fn a_source_is_known_by_kind_and_name() {
    for_each_database(async |store| {
        let first = registry(&store).await;
        let again =
            store.ensure_source(SourceKind::McpRegistry, "test", Some("https://moved.example"), 9).await.unwrap();
        let other = store.ensure_source(SourceKind::File, "test", None, 9).await.unwrap();
        assert_eq!(first, again);
        assert_ne!(first, other);
        assert_eq!(store.source(first).await.unwrap().base.as_deref(), Some("https://moved.example"));
        store.plan_pass(first, 77).await.unwrap();
        store.retire_source(other, 9).await.unwrap();
        let sources = store.sources().await.unwrap();
        assert_eq!(sources.len(), 1);
        assert_eq!(sources[0].next_pass_s, Some(77));
        assert!(matches!(store.source(plumbline_store::SourceId(99)).await, Err(Error::Missing { .. })));
    })
    .await;
}

#[tokio::test]
async fn a_crawl_counts_and_ends() {
    for_each_database(async |store| {
        let source = registry(&store).await;
        let crawl = store.start_crawl(CrawlKind::FullWalk, Some(source), None, "me", NOON).await.unwrap();
        store.add_to_crawl(crawl, &CrawlCounts { planned: 3, ..CrawlCounts::default() }).await.unwrap();
        store.add_to_crawl(crawl, &CrawlCounts { planned: 2, ..CrawlCounts::default() }).await.unwrap();
        for n in 0..MOST_FAULTS + 2 {
            let fault = Fault { code: "cursor-repeated".into(), subject: Some(n.to_string()), note: None };
            store.crawl_fault(crawl, &fault, NOON).await.unwrap();
        }
        let end = CrawlEnd { state: CrawlState::Incomplete, note: Some("the registry went away".into()) };
        store.finish_crawl(crawl, &end, NOON + 9).await.unwrap();

        let crawl = store.crawl(crawl).await.unwrap();
        assert_eq!((crawl.state, crawl.finished_s), (CrawlState::Incomplete, Some(NOON + 9)));
        assert_eq!((crawl.counts.planned, crawl.counts.faults), (5, MOST_FAULTS + 2));
        assert_eq!(crawl.note.as_deref(), Some("the registry went away"));
        let faults = store.crawl_faults(crawl.id).await.unwrap();
        assert_eq!(i64::try_from(faults.len()).unwrap(), MOST_FAULTS);
        assert_eq!(faults[1].subject.as_deref(), Some("1"));
        assert_eq!(store.source(source).await.unwrap().last_tried_s, Some(NOON));
        assert_eq!(events(&store).await, ["crawl.degraded"]);

        let round = store.start_crawl(CrawlKind::Round, None, None, "me", NOON + 10).await.unwrap();
        let end = CrawlEnd { state: CrawlState::Interrupted, note: Some("stopped".into()) };
        store.finish_crawl(round, &end, NOON + 11).await.unwrap();
        assert_eq!(store.crawl(round).await.unwrap().finished_s, Some(NOON + 11));
        assert_eq!(events(&store).await, ["crawl.degraded"], "a stop is no degradation");
    })
    .await;
}

#[tokio::test]
async fn what_a_dead_process_left_open_is_marked_interrupted() {
    for_each_database(async |store| {
        let source = registry(&store).await;
        let dead = store.start_crawl(CrawlKind::FullWalk, Some(source), None, "dead", NOON).await.unwrap();
        let alive = store.start_crawl(CrawlKind::Round, None, None, "alive", NOON).await.unwrap();
        store.begin_walk(source, dead, None, NOON).await.unwrap();
        let surface = crate::support::one_card(&store).await;
        assert_eq!(store.due_surfaces(NOON, take(9, NOON + HOUR), "dead").await.unwrap().len(), 1);
        assert_eq!(store.due_surfaces(NOON, take(9, NOON + HOUR), "alive").await.unwrap().len(), 0);

        assert_eq!(store.recover(NOON + 60, |holder| holder == "alive").await.unwrap(), 1);

        assert_eq!(store.crawl(dead).await.unwrap().state, CrawlState::Interrupted);
        assert_eq!(store.crawl(dead).await.unwrap().finished_s, Some(NOON + 60));
        assert_eq!(store.crawl(alive).await.unwrap().state, CrawlState::Running);
        assert_eq!(number(&store, "SELECT COUNT(*) FROM walk WHERE state = 'interrupted'").await, 1);
        let due = store.due_surfaces(NOON + 60, take(9, NOON + HOUR), "alive").await.unwrap();
        assert_eq!(due[0].id, surface);
    })
    .await;
}

#[tokio::test]
async fn the_same_rules_are_one_ruleset() {
    for_each_database(async |store| {
        let first = ruleset(&store).await;
        let mut shuffled = rules();
        shuffled.reverse();
        assert_eq!(store.ensure_ruleset("again", &shuffled, NOON).await.unwrap(), first);
        assert_eq!(events(&store).await, ["ruleset.released"]);

        let mut changed = rules();
        changed[0].version = 2;
        changed.truncate(3);
        changed.push(RuleFacts { severity: plumbline_store::words::Severity::Info, ..rule("a2a/new") });
        let second = store.ensure_ruleset("2", &changed, NOON).await.unwrap();
        assert_ne!(first, second);
        assert_eq!(number(&store, "SELECT version_s FROM rule WHERE slug = 'a2a/e'").await, NOON);
        assert_ne!(number(&store, "SELECT version_s FROM rule WHERE slug = 'a2a/w'").await, NOON);
        assert_eq!(number(&store, "SELECT withdrawn_s FROM rule WHERE slug = 'common/json'").await, NOON);
        assert_eq!(number(&store, "SELECT COUNT(*) FROM ruleset_rule").await, 8);
        assert!(store.rule_row("a2a/new").is_some());
        assert_eq!(store.rule_row("a2a/never"), None);
    })
    .await;
}

#[tokio::test]
async fn a_rule_that_is_off_is_known_and_in_no_ruleset() {
    for_each_database(async |store| {
        let first = ruleset(&store).await;
        let mut some = rules();
        some[0].is_off = true;
        let variant = store.ruleset_variant("1", &some, NOON).await.unwrap();
        assert_ne!(first, variant);
        assert_eq!(store.ruleset_variant("1", &some, NOON).await.unwrap(), variant);
        assert_eq!(number(&store, "SELECT COUNT(*) FROM rule WHERE withdrawn_s IS NOT NULL").await, 0);
        assert!(store.ruleset_variant("1", &[rule("a2a/never")], NOON).await.is_err());
        assert_eq!(store.ensure_ruleset("1", &some, NOON).await.unwrap(), variant);
        assert_eq!(number(&store, "SELECT COUNT(*) FROM rule WHERE withdrawn_s IS NOT NULL").await, 0);
    })
    .await;
}
