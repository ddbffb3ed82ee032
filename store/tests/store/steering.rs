//! Who is looked at first, and who not at all.

use std::collections::BTreeSet;

use plumbline_store::surfaces::Take;
use plumbline_store::targets::{HostName, NewTarget};
use plumbline_store::words::TargetKind;
use plumbline_store::{Error, Store, TargetId};

use plumbline_store::steering::OptOuts;

use crate::support::{
    DAY, HOUR, NOON, card, domains, for_each_database, judged, number, ruleset, seen, surface_of, take,
};

/// A card under a path of a platform that hosts many.
fn tenant(n: usize) -> NewTarget {
    NewTarget {
        key: format!("platform.example/{n}"),
        url: format!("https://platform.example/{n}/agent-card.json"),
        host: Some(HostName { name: "platform.example".into(), domain: "platform.example".into() }),
        ..card("platform.example")
    }
}

async fn target(store: &Store, key: &str) -> TargetId {
    store.target_named(TargetKind::A2aAgent, key).await.unwrap().unwrap()
}

/// The hosts of what is due, as they are given out.
async fn taken(store: &Store, take: Take) -> Vec<String> {
    let due = store.due_surfaces(NOON, take, "me").await.unwrap();
    due.iter().map(|surface| surface.url.split('/').nth(2).unwrap().to_owned()).collect()
}

#[tokio::test]
async fn the_queue_of_one_host_delays_no_other() {
    for_each_database(async |store| {
        let source = domains(&store).await;
        let tenants: Vec<_> = (0..300).map(tenant).collect();
        store.add_targets(source, &tenants, NOON - HOUR).await.unwrap();
        // The others became due an hour after all of those.
        let others: Vec<_> = (0..20).map(|n| card(&format!("h{n}.example"))).collect();
        store.add_targets(source, &others, NOON).await.unwrap();
        let few = Take { limit: 50, per_host: 4, until_s: NOON + 60 };
        let first = taken(&store, few).await;
        assert_eq!((first.len(), first.iter().filter(|host| *host == "platform.example").count()), (24, 4));
        // What is at work counts: nothing more of that host until some of it is done.
        assert_eq!(taken(&store, few).await, Vec::<String>::new());
        assert!(!store.queue(NOON).await.unwrap().waiting.eq(&0));
        let busy = store.surface_at(tenants[0].surface, &tenants[0].url).await.unwrap().unwrap();
        store.release(&[busy], "me").await.unwrap();
        assert_eq!(taken(&store, few).await, ["platform.example"]);
    })
    .await;
}

#[tokio::test]
async fn the_operators_own_and_what_somebody_asks_for_come_first() {
    for_each_database(async |store| {
        let rules = ruleset(&store).await;
        let source = domains(&store).await;
        let cards: Vec<_> = (0..9).map(|n| card(&format!("h{n}.example"))).collect();
        store.add_targets(source, &cards, NOON - DAY).await.unwrap();
        store.add_targets(source, &[NewTarget { is_own: true, ..card("own.example") }], NOON).await.unwrap();
        assert_eq!(taken(&store, take(1, NOON + 1)).await, ["own.example"]);

        let asked = surface_of(&store, "h8.example").await;
        store.set_due(asked, Some(NOON + DAY)).await.unwrap();
        assert_eq!(store.recheck(target(&store, "h8.example").await, NOON).await.unwrap(), 1);
        assert_eq!(taken(&store, take(1, NOON + 1)).await, ["h8.example"]);
        // Once asked for is once looked at first; the operator's own stay so.
        store.record(&[seen(asked, NOON, "{}", judged(rules, &[]))]).await.unwrap();
        let own = surface_of(&store, "own.example").await;
        store.record(&[seen(own, NOON, "{}", judged(rules, &[]))]).await.unwrap();
        assert_eq!(number(&store, "SELECT COUNT(*) FROM surface WHERE urgent = 1").await, 0);
        assert_eq!(number(&store, "SELECT COUNT(*) FROM surface WHERE urgent = 2").await, 1);
        assert!(matches!(store.recheck(TargetId(999), NOON).await, Err(Error::Missing { .. })));
    })
    .await;
}

#[tokio::test]
async fn a_paused_target_is_not_looked_at_even_when_a_look_was_under_way() {
    for_each_database(async |store| {
        let rules = ruleset(&store).await;
        let source = domains(&store).await;
        store.add_targets(source, &[card("a.example"), card("b.example")], NOON).await.unwrap();
        let a = target(&store, "a.example").await;
        let surface = surface_of(&store, "a.example").await;
        store.set_paused(a, true, NOON).await.unwrap();
        store.record(&[seen(surface, NOON, "{}", judged(rules, &[]))]).await.unwrap();
        assert_eq!(taken(&store, take(9, NOON + 1)).await, ["b.example"]);
        assert_eq!(store.surface(surface).await.unwrap().next_due_s, None);
        assert_eq!(store.queue(NOON).await.unwrap().paused, 1);
        store.set_paused(a, false, NOON + 5).await.unwrap();
        assert_eq!(store.surface(surface).await.unwrap().next_due_s, Some(NOON + 5));
    })
    .await;
}

#[tokio::test]
async fn everything_can_be_paused_over_restarts() {
    for_each_database(async |store| {
        assert_eq!(store.paused_since().await.unwrap(), None);
        store.pause_all(true, NOON).await.unwrap();
        store.pause_all(true, NOON).await.unwrap();
        assert_eq!(store.paused_since().await.unwrap(), Some(NOON));
        store.pause_all(false, NOON).await.unwrap();
        assert_eq!(store.paused_since().await.unwrap(), None);
    })
    .await;
}

#[tokio::test]
async fn whoever_opts_out_is_retired_and_comes_back_when_they_wish() {
    for_each_database(async |store| {
        let source = domains(&store).await;
        let cards = [card("a.example"), card("b.example"), tenant(1), tenant(2)];
        store.set_targets(source, &cards, NOON).await.unwrap();
        let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
        let opt_outs = OptOuts { names: set(&["a.example"]), hosts: set(&["platform.example"]), ..OptOuts::default() };
        assert_eq!(store.honour(&opt_outs, NOON + 1).await.unwrap(), 3);
        assert_eq!(store.honour(&opt_outs, NOON + 2).await.unwrap(), 0);
        assert_eq!(taken(&store, take(9, NOON + 1)).await, ["b.example"]);
        assert_eq!(number(&store, "SELECT COUNT(*) FROM target WHERE retire_reason = 'opted_out'").await, 3);

        assert_eq!(store.honour(&OptOuts::default(), NOON + 3).await.unwrap(), 0);
        let back = store.set_targets(source, &cards, NOON + 3).await.unwrap();
        assert_eq!((back.returned, back.added), (3, 0));
        assert_eq!(number(&store, "SELECT COUNT(*) FROM surface WHERE next_due_s IS NULL").await, 0);
    })
    .await;
}

#[tokio::test]
async fn one_process_works_on_a_file_and_several_on_a_server() {
    for_each_database(async |store| {
        let alive = |_: &str| true;
        // Of those that work together one tells, and after it another.
        store.take_telling("host/1.1", NOON, NOON + 90, alive).await.unwrap();
        assert!(matches!(
            store.take_telling("host/2.2", NOON + 40, NOON + 130, alive).await,
            Err(Error::Occupied { since_s: NOON, .. })
        ));
        store.take_telling("host/1.1", NOON + 40, NOON + 130, alive).await.unwrap();
        store.take_telling("host/2.2", NOON + 131, NOON + 200, alive).await.unwrap();
        store.occupy("host/1.1", NOON, NOON + 90, alive).await.unwrap();
        store.occupy("host/1.1", NOON + 30, NOON + 120, alive).await.unwrap();
        let second = store.occupy("host/2.2", NOON + 40, NOON + 130, alive).await;
        if store.backend() == plumbline_store::Backend::Postgres {
            return second.unwrap();
        }
        let Err(error @ Error::Occupied { since_s: NOON, .. }) = second else { panic!("{second:?}") };
        assert!(error.to_string().contains("host/1.1") && error.to_string().contains("--database"), "{error}");
        // Dead, or silent for too long: the next may.
        store.occupy("host/2.2", NOON + 40, NOON + 130, |_| false).await.unwrap();
        store.occupy("host/3.3", NOON + 131, NOON + 200, alive).await.unwrap();
        store.leave("host/3.3").await.unwrap();
        store.occupy("host/4.4", NOON + 132, NOON + 200, alive).await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn plans_of_a_clock_that_ran_ahead_are_brought_back() {
    for_each_database(async |store| {
        let source = domains(&store).await;
        store.add_targets(source, &[card("a.example"), card("b.example"), card("c.example")], NOON).await.unwrap();
        let plans = [("a.example", DAY + HOUR), ("b.example", HOUR), ("c.example", -5)];
        for (host, after_s) in plans {
            store.set_due(surface_of(&store, host).await, Some(NOON + after_s)).await.unwrap();
        }
        store.plan_pass(source, NOON + 2 * DAY).await.unwrap();
        for statement in [
            "INSERT INTO wh_endpoint (id, slug, title, url, format, mode, types, state, origin, per_minute, schema_date,
                                      created_s, digest_due_s)
             VALUES (1, 'x', 'x', 'https://x.example', 'generic', 'groups', '[]', 'active', 'ui', 1, 'x', 1, $1)",
            "INSERT INTO wh_message (id, type, at_s, body) VALUES ('msg_1', 'ping', $1, $2)",
            "INSERT INTO wh_delivery (endpoint_id, message_id, state, next_s) VALUES (1, 'msg_1', 'pending', $1)",
            "INSERT INTO route (id, slug, title, origin, matcher, created_s) VALUES (1, 'x', 'x', 'ui', '', $1)",
            "INSERT INTO alert_group (id, route_id, by_what, key, opened_s, due_s, severity)
             VALUES (1, 1, 'target', 'tgt_1', 1, $1, 'error')",
        ] {
            let query = sqlx::query(statement).bind(NOON + DAY + 60);
            let query = if statement.contains("$2") { query.bind(b"{}".to_vec()) } else { query };
            query.execute(store.writer()).await.unwrap();
        }
        // The clock was a day ahead while these plans were made.
        assert_eq!(store.rein_in(NOON, DAY, 900).await.unwrap(), 3);
        let due = async |host| store.surface(surface_of(&store, host).await).await.unwrap().next_due_s.unwrap() - NOON;
        assert_eq!((due("a.example").await, due("c.example").await), (HOUR, -5));
        assert!((0..900).contains(&due("b.example").await), "what would be in the past is spread");
        assert_eq!(store.source(source).await.unwrap().next_pass_s, Some(NOON + DAY));
        for (told, due_s) in [
            ("SELECT next_s FROM wh_delivery", Some(NOON + 60)),
            ("SELECT due_s FROM alert_group", Some(NOON + 60)),
            ("SELECT digest_due_s FROM wh_endpoint", None),
        ] {
            let found: Option<i64> = sqlx::query_scalar(told).fetch_one(store.reader()).await.unwrap();
            assert_eq!(found, due_s, "{told}");
        }
        store.rein_in(NOON + 30, DAY, 900).await.unwrap();
        let next_s: i64 = sqlx::query_scalar("SELECT next_s FROM wh_delivery").fetch_one(store.reader()).await.unwrap();
        assert_eq!(next_s, NOON + 30, "never in the past");
    })
    .await;
}

#[tokio::test]
async fn the_usual_share_of_failures_is_the_median_of_other_days() {
    for_each_database(async |store| {
        assert_eq!(store.usual_failures(NOON).await.unwrap(), None);
        for (days_ago, unreachable) in [(1, 10), (2, 20), (3, 90), (0, 100)] {
            let at_s = NOON - days_ago * DAY;
            let kind = plumbline_store::words::CrawlKind::Round;
            let crawl = store.start_crawl(kind, None, None, "me", at_s).await.unwrap();
            let counts = plumbline_store::sources::CrawlCounts {
                ok: 100 - unreachable,
                unreachable,
                ..plumbline_store::sources::CrawlCounts::default()
            };
            store.add_to_crawl(crawl, &counts).await.unwrap();
        }
        assert_eq!(store.usual_failures(NOON).await.unwrap(), Some(0.2));
    })
    .await;
}
