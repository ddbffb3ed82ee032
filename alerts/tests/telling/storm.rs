//! Many at once: people get a few messages, the gravest first, and each alert is told once.

use std::collections::HashSet;

use plumbline_store::hooks::Mode;
use plumbline_store::words::EventKind;
use sqlx::AnyPool;

use crate::support::{NOW, World};

const TARGETS: i64 = 5_000;

/// Targets with a surface each and, where a rule is named, a finding that just opened; every tenth breaks clients.
async fn targets(world: &World, rules: i64) {
    let pool: &AnyPool = world.store.writer();
    let statements = [
        "INSERT INTO source (id, kind, name, added_s) VALUES (1, 'domains', 'storm', 1)",
        "INSERT INTO target (id, kind, key, name, source_id, first_seen_s, last_seen_s, changed_s)
         WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)
         SELECT i, 'a2a-agent', 'agent-' || i || '.example.com', 'Agent ' || i, 1, 1, 1, 1 FROM n",
        "INSERT INTO surface (id, kind, url, added_s)
         SELECT id, 'a2a-card', 'https://' || key || '/card', 1 FROM target",
    ];
    for statement in statements {
        sqlx::query(statement).execute(pool).await.unwrap();
    }
    for rule in 1..=rules {
        sqlx::query(
            "INSERT INTO rule (id, slug, family, axis, class, severity, impact, basis, evidence, version, version_s, title)
             VALUES ($1, $2, 'a2a', 'conformity', 'finding', 'error', 'breaks-clients', 'spec', 'document', 1, 1, 'A rule.')",
        )
        .bind(rule)
        .bind(format!("a2a/rule-{rule}"))
        .execute(pool)
        .await
        .unwrap();
    }
    sqlx::query(
        "INSERT INTO finding (id, surface_id, rule_id, state, opened_as, cause, severity, impact, first_seen_s, last_fired_s,
                              changed_s, rule_version)
         SELECT id, id, id % $1 + 1, 'open', 'broke', 'document', CASE WHEN id % 10 = 0 THEN 'error' ELSE 'warning' END,
                'breaks-clients', 1, 1, 1, 1 FROM surface",
    )
    .bind(rules)
    .execute(pool)
    .await
    .unwrap();
}

async fn regress(world: &World, from: i64, to: i64, rules: i64) {
    sqlx::query(
        "INSERT INTO event (id, at_s, kind, target_id, surface_id, rule_id, subject_id, note)
         SELECT (SELECT COALESCE(MAX(id), 0) FROM event) + id, $1, $2, id, id, id % $5 + 1, id, 'broke document'
         FROM target WHERE id >= $3 AND id < $4",
    )
    .bind(world.now_s())
    .bind(EventKind::FindingRegressed.number())
    .bind(from)
    .bind(to)
    .bind(rules)
    .execute(world.store.writer())
    .await
    .unwrap();
}

/// So many of the targets have had a group of their own for days: another of their findings is open.
async fn open_groups(world: &World, many: i64) {
    for statement in [
        "INSERT INTO alert_group (id, route_id, by_what, key, opened_s, due_s, told_s, severity, firing, summary)
         SELECT id, 1, 'target', 'tgt_' || id, $1, $2, $1, 'warning', 1, 'Something old' FROM target WHERE id <= $3",
        "INSERT INTO alert (id, route_id, group_id, key, state, severity, target_id, opened_event, last_event, opened_s,
                            notified_s, title, surface_id, why, by_what, by_key)
         SELECT id, 1, id, 'finding:' || (id + 900000), 'firing', 'warning', id, 0, 0, $1, $1, 'Something old', id,
                '[\"Route all.\"]', 'target', 'tgt_' || id
         FROM target WHERE id <= $3 AND $2 > 0",
        "INSERT INTO alert_told (alert_id, endpoint_id, message_id) SELECT id, 1, 'msg_old' FROM alert WHERE id <= $3 AND $1 < $2",
    ] {
        sqlx::query(statement)
            .bind(NOW - 3 * 86_400)
            .bind(NOW + 80_000)
            .bind(many)
            .execute(world.store.writer())
            .await
            .unwrap();
    }
}

/// A quarter of an hour of a crawl that finds more broken all the time. Gives the messages sent in it.
async fn storm(rules: i64) -> (World, Vec<serde_json::Value>) {
    let world = World::new().await;
    targets(&world, rules).await;
    let people = world.endpoint("people", "http://127.0.0.1:1/", Mode::Groups).await;
    world.route("all", &[people]).await;
    let sent = crawl(&world, rules, TARGETS).await;
    (world, sent)
}

async fn crawl(world: &World, rules: i64, most: i64) -> Vec<serde_json::Value> {
    let per_minute = most / 10;
    for minute in 0..15 {
        let from = 1 + minute * per_minute;
        regress(world, from, (from + per_minute).min(most + 1), rules).await;
        for _ in 0..2 {
            world.teller.events().await.unwrap();
            world.teller.groups().await.unwrap();
            world.later(30);
        }
    }
    let sent =
        world.messages("alert_group.opened").await.into_iter().chain(world.messages("alert_group.updated").await);
    sent.collect()
}

#[tokio::test]
async fn targets_that_have_a_group_already_are_counted_and_so_are_other_routes_and_recoveries() {
    let world = World::new().await;
    targets(&world, 700).await;
    let people = world.endpoint("people", "http://127.0.0.1:1/", Mode::Groups).await;
    world.route("all", &[people]).await;
    world.route("also", &[people]).await;
    open_groups(&world, 400).await;
    let sent = crawl(&world, 700, 600).await;
    assert!((1..=3).contains(&sent.len()), "{} messages", sent.len());
    assert!(sent.iter().any(|one| one["data"]["group"]["by"] == "storm"));
    // What waited is told in further quarters of an hour, a few messages in each.
    let count =
        async || world.messages("alert_group.opened").await.len() + world.messages("alert_group.updated").await.len();
    for _ in 0..6 {
        let before = count().await;
        for _ in 0..3 {
            world.later(300);
            world.teller.groups().await.unwrap();
        }
        assert!(count().await <= before + 3);
    }
    let waiting: i64 = sqlx::query_scalar("SELECT COUNT(*) FROM alert WHERE notified_s IS NULL")
        .fetch_one(world.store.reader())
        .await
        .unwrap();
    assert_eq!(waiting, 0);
    let before = count().await;
    recover(&world, 600).await;
    for _ in 0..3 {
        world.teller.events().await.unwrap();
        world.teller.groups().await.unwrap();
        world.later(290);
    }
    // Only the few groups that were told of it by themselves have something to say.
    assert!(count().await <= before + 6, "{before} and then {}", count().await);
}

#[tokio::test]
async fn when_one_of_two_findings_of_many_ends_that_is_a_few_messages() {
    let world = World::new().await;
    targets(&world, 1).await;
    let people = world.endpoint("people", "http://127.0.0.1:1/", Mode::Groups).await;
    world.route("all", &[people]).await;
    open_groups(&world, 100).await;
    sqlx::query(
        "INSERT INTO alert (id, route_id, group_id, key, state, severity, target_id, opened_event, last_event, opened_s,
                            notified_s, title, surface_id, why, by_what, by_key)
         SELECT id + 1000, 1, id, 'finding:' || id, 'firing', 'warning', id, 0, 0, 1, 1, 'Another', id, '[]', 'target', ''
         FROM target WHERE id <= 100",
    )
    .execute(world.store.writer())
    .await
    .unwrap();
    sqlx::query(
        "INSERT INTO alert_told (alert_id, endpoint_id, message_id) SELECT id, 1, 'msg_old' FROM alert WHERE id > 1000",
    )
    .execute(world.store.writer())
    .await
    .unwrap();
    recover(&world, 100).await;
    for _ in 0..3 {
        world.teller.events().await.unwrap();
        world.teller.groups().await.unwrap();
        world.later(290);
    }
    let said = world.messages("alert_group.updated").await.len();
    assert!((1..=3).contains(&said), "{said} messages");
}

async fn recover(world: &World, most: i64) {
    sqlx::query(
        "INSERT INTO event (id, at_s, kind, target_id, surface_id, rule_id, subject_id, note)
         SELECT (SELECT COALESCE(MAX(id), 0) FROM event) + id, $1, $2, id, id, 1, id, 'fixed' FROM target WHERE id <= $3",
    )
    .bind(world.now_s())
    .bind(EventKind::FindingResolved.number())
    .bind(most)
    .execute(world.store.writer())
    .await
    .unwrap();
}

#[tokio::test]
async fn five_thousand_targets_that_fail_one_rule_are_one_trouble() {
    let (world, sent) = storm(1).await;
    assert!((1..=3).contains(&sent.len()), "{} messages", sent.len());
    let first = &sent[0]["data"];
    assert_eq!(first["group"]["by"], "rule");
    let severities: Vec<&str> =
        first["items"].as_array().unwrap().iter().map(|item| item["severity"].as_str().unwrap()).collect();
    assert_eq!(severities.len(), 25);
    assert!(severities.is_sorted_by_key(|word| *word != "error"), "the gravest first: {severities:?}");
    everybody_is_told_once(world).await;
}

#[tokio::test]
async fn five_thousand_targets_that_fail_each_in_its_own_way_are_three_messages_at_most() {
    let (world, sent) = storm(700).await;
    assert!((1..=3).contains(&sent.len()), "{} messages", sent.len());
    assert!(sent.iter().any(|one| one["data"]["group"]["by"] == "storm"));
    everybody_is_told_once(world).await;
}

/// What waited is told later, once each; and each end once, to those who heard of the beginning.
async fn everybody_is_told_once(world: World) {
    for _ in 0..4 {
        world.later(900);
        world.teller.groups().await.unwrap();
    }
    let (told, distinct): (i64, i64) = sqlx::query_as("SELECT COUNT(*), COUNT(DISTINCT alert_id) FROM alert_told")
        .fetch_one(world.store.reader())
        .await
        .unwrap();
    assert_eq!((told, distinct), (TARGETS, TARGETS));
    recover(&world, TARGETS).await;
    let before = world.messages("alert_group.resolved").await.len();
    world.teller.events().await.unwrap();
    world.teller.groups().await.unwrap();
    let resolved = world.messages("alert_group.resolved").await.len() - before;
    let open = world.store.open_groups(10).await.unwrap();
    assert!((1..=5).contains(&resolved) && open.is_empty(), "{resolved} resolved, {open:?} open");
    let unended: i64 = sqlx::query_scalar("SELECT COUNT(*) FROM alert_told WHERE end_message IS NULL")
        .fetch_one(world.store.reader())
        .await
        .unwrap();
    assert_eq!(unended, 0);
}

#[tokio::test]
async fn what_a_change_of_the_rules_opens_wakes_nobody() {
    let world = World::new().await;
    targets(&world, 1).await;
    sqlx::query("UPDATE finding SET opened_as = 'rule', cause = 'rule'").execute(world.store.writer()).await.unwrap();
    let people = world.endpoint("people", "http://127.0.0.1:1/", Mode::Groups).await;
    world.route("all", &[people]).await;
    sqlx::query("INSERT INTO event (id, at_s, kind, target_id, surface_id, rule_id, subject_id, note) SELECT id, $1, 1, id, id, 1, id, 'rule rule' FROM target")
        .bind(NOW)
        .execute(world.store.writer())
        .await
        .unwrap();
    world.teller.events().await.unwrap();
    world.later(3_600);
    world.teller.groups().await.unwrap();
    assert_eq!(world.store.open_counts().await.unwrap(), (0, 0));
    assert_eq!(world.store.backlog(None).await.unwrap().pending, 0);
}

#[tokio::test]
async fn while_crawling_does_not_work_nobody_is_said_to_be_down() {
    let world = World::new().await;
    targets(&world, 1).await;
    let people = world.endpoint("people", "http://127.0.0.1:1/", Mode::Groups).await;
    world.route("all", &[people]).await;
    world.event(EventKind::CrawlDegraded, None, 1, Some("the witnesses did not answer")).await;
    for target in 1..=300 {
        world.event(EventKind::TargetDown, Some(target), target, Some("connect_timeout")).await;
    }
    for _ in 0..3 {
        world.teller.events().await.unwrap();
        world.teller.groups().await.unwrap();
        world.later(120);
    }
    let sent = world.messages("alert_group.opened").await;
    assert_eq!(sent.len(), 1, "one message: {sent:?}");
    assert_eq!(sent[0]["data"]["items"][0]["alert"], "crawl:witness");
    let waiting = world.store.waiting_alerts(1_000).await.unwrap();
    assert_eq!(waiting.len(), 300);
    let keepers: HashSet<Option<String>> = waiting.iter().map(|alert| alert.held_by.clone()).collect();
    assert_eq!(keepers, HashSet::from([Some("crawl:witness".to_owned())]));
    assert!(waiting[0].why[1].contains("nobody is blamed"), "{:?}", waiting[0].why);
}
