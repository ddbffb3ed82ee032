//! A group that was told, and then accepted, silenced, taken on or put under maintenance: it is not repeated, and its one end is
//! still said.

use plumbline_store::alerting::{Maintenance, Silence, Waiver};
use plumbline_store::hooks::{Mode, Origin};
use plumbline_store::taken_on::TakenOn;
use plumbline_store::words::EventKind;

use crate::support::World;

const DAY: i64 = 86_400;

/// Two findings of one target were told to a receiver.
async fn told() -> World {
    let world = untold().await;
    happens(&world, EventKind::FindingRegressed, 1, "broke document").await;
    happens(&world, EventKind::FindingRegressed, 2, "broke document").await;
    look(&world, 61).await;
    assert_eq!(world.messages("alert_group.opened").await.len(), 1);
    assert_eq!(world.messages("alert_group.opened").await[0]["data"]["group"]["firing"], 2);
    world
}

/// Two findings of one target, a receiver, and nothing told yet.
async fn untold() -> World {
    let world = World::new().await;
    let statements = [
        "INSERT INTO source (id, kind, name, added_s) VALUES (1, 'domains', 'harbour', 1)",
        "INSERT INTO target (id, kind, key, name, source_id, first_seen_s, last_seen_s, changed_s)
         VALUES (1, 'a2a-agent', 'agent.example.com', 'Agent', 1, 1, 1, 1)",
        "INSERT INTO surface (id, kind, url, added_s) VALUES (1, 'a2a-card', 'https://agent.example.com/card', 1)",
        "INSERT INTO rule (id, slug, family, axis, class, severity, impact, basis, evidence, version, version_s, title)
         VALUES (1, 'a2a/one', 'a2a', 'conformity', 'finding', 'error', 'breaks-clients', 'spec', 'document', 1, 1, 'One.'),
                (2, 'a2a/two', 'a2a', 'conformity', 'finding', 'error', 'breaks-clients', 'spec', 'document', 1, 1, 'Two.')",
        "INSERT INTO finding (id, surface_id, rule_id, state, opened_as, cause, severity, impact, first_seen_s,
                              last_fired_s, changed_s, rule_version)
         SELECT id, 1, id, 'open', 'broke', 'document', 'error', 'breaks-clients', 1, 1, 1, 1 FROM rule",
    ];
    for statement in statements {
        sqlx::query(statement).execute(world.store.writer()).await.unwrap();
    }
    let people = world.endpoint("people", "http://127.0.0.1:1/", Mode::Groups).await;
    world.route("all", &[people]).await;
    world
}

async fn happens(world: &World, kind: EventKind, finding: i64, note: &str) {
    sqlx::query(
        "INSERT INTO event (id, at_s, kind, target_id, surface_id, rule_id, subject_id, note)
         SELECT COALESCE(MAX(id), 0) + 1, $1, $2, 1, 1, $3, $3, $4 FROM event",
    )
    .bind(world.now_s())
    .bind(kind.number())
    .bind(finding)
    .bind(note)
    .execute(world.store.writer())
    .await
    .unwrap();
    world.teller.events().await.unwrap();
}

/// Time goes by, in steps of ten minutes, with a look after each.
async fn look(world: &World, seconds: i64) {
    for step in 0..(seconds / 600).max(1) {
        world.later(if step == 0 { seconds - (seconds / 600).max(1) * 600 + 600 } else { 600 });
        world.store.end_acknowledgements(world.now_s()).await.unwrap();
        world.teller.end_calm_silences().await.unwrap();
        world.teller.groups().await.unwrap();
    }
}

async fn silence(world: &World, matcher: &str, calm_s: Option<i64>) -> i64 {
    let silence = Silence {
        id: 0,
        matcher: matcher.to_owned(),
        reason: "moving".to_owned(),
        author: "Ada".to_owned(),
        origin: Origin::Ui,
        created_s: world.now_s(),
        starts_s: world.now_s(),
        ends_s: world.now_s() + 30 * DAY,
        calm_s,
        matched_s: None,
        ended_s: None,
        is_told: false,
    };
    world.store.add_silence(&silence).await.unwrap()
}

async fn waiver(world: &World, rule: &str) -> i64 {
    let waiver = Waiver {
        id: 0,
        rule: rule.to_owned(),
        matcher: "kind:a2a-agent".to_owned(),
        reason: "gone in spring".to_owned(),
        author: "Grace".to_owned(),
        origin: Origin::Ui,
        created_s: world.now_s(),
        ends_s: world.now_s() + 300 * DAY,
        ended_s: None,
    };
    world.store.add_waiver(&waiver).await.unwrap()
}

async fn maintenance(world: &World) {
    let window = Maintenance {
        id: 0,
        title: "Backups".to_owned(),
        matcher: "kind:a2a-agent".to_owned(),
        author: "Ada".to_owned(),
        origin: Origin::Ui,
        zone: "UTC".to_owned(),
        starts_s: Some(world.now_s()),
        cron: None,
        duration_s: 3 * DAY,
        created_s: world.now_s(),
        ended_s: None,
    };
    world.store.add_maintenance(&window).await.unwrap();
}

async fn take_on(world: &World, until_s: Option<i64>) {
    for alert in world.store.all_open_alerts(10).await.unwrap() {
        let taken = TakenOn { by: "Lin".into(), note: "mine".into(), at_s: world.now_s(), until_s };
        world.store.acknowledge(alert.id, &taken).await.unwrap();
    }
}

async fn updates(world: &World) -> usize {
    world.messages("alert_group.updated").await.len()
}

/// Both end, and that is said once.
async fn its_one_end_is_said(world: &World) {
    let before = updates(world).await;
    happens(world, EventKind::FindingResolved, 1, "fixed").await;
    happens(world, EventKind::FindingResolved, 2, "fixed").await;
    look(world, 2 * DAY).await;
    assert_eq!(updates(world).await, before);
    let resolved = world.messages("alert_group.resolved").await;
    assert_eq!(resolved.len(), 1, "{resolved:?}");
    assert!(world.store.open_groups(10).await.unwrap().is_empty());
}

#[tokio::test]
async fn what_nobody_has_covered_is_repeated_once_a_day() {
    let world = told().await;
    look(&world, DAY - 600).await;
    assert_eq!(updates(&world).await, 0);
    look(&world, 2 * DAY + 1_200).await;
    assert_eq!(updates(&world).await, 3);
    its_one_end_is_said(&world).await;
}

#[tokio::test]
async fn what_is_accepted_after_it_was_told_is_not_repeated_and_says_why() {
    let world = told().await;
    waiver(&world, "a2a/*").await;
    look(&world, 3 * DAY).await;
    assert_eq!(updates(&world).await, 0);
    for alert in world.store.all_open_alerts(10).await.unwrap() {
        assert_eq!(alert.why.len(), 3, "{:?}", alert.why);
        assert_eq!(alert.why[2], "Not repeated. Accepted by waiver 1 of Grace: gone in spring");
    }
    its_one_end_is_said(&world).await;
}

/// Told alerts meet a silence only when their group is due, a day later: meanwhile it is not calm, for it covers them.
#[tokio::test]
async fn a_silence_that_covers_what_was_told_does_not_end_as_calm() {
    let world = told().await;
    silence(&world, "kind:a2a-agent", Some(3_600)).await;
    look(&world, 3 * DAY).await;
    assert_eq!(updates(&world).await, 0);
    assert!(world.store.silences(world.now_s()).await.unwrap()[0].holds(world.now_s()));
    its_one_end_is_said(&world).await;
    assert!(
        world.store.silences(world.now_s()).await.unwrap().iter().all(|kept| !kept.holds(world.now_s())),
        "calm now"
    );
}

#[tokio::test]
async fn what_is_accepted_in_part_goes_on() {
    let world = told().await;
    waiver(&world, "a2a/one").await;
    look(&world, DAY + 600).await;
    assert_eq!(updates(&world).await, 1);
    its_one_end_is_said(&world).await;
}

#[tokio::test]
async fn one_accepted_and_the_other_taken_on_is_covered_and_who_took_it_on_for_a_while_hears_again() {
    let world = told().await;
    waiver(&world, "a2a/one").await;
    take_on(&world, Some(world.now_s() + 2 * DAY)).await;
    look(&world, 2 * DAY - 600).await;
    assert_eq!(updates(&world).await, 0);
    look(&world, 1_800).await;
    assert_eq!(updates(&world).await, 1);
    its_one_end_is_said(&world).await;
}

#[tokio::test]
async fn during_maintenance_nothing_is_repeated() {
    let world = told().await;
    maintenance(&world).await;
    look(&world, 3 * DAY - 600).await;
    assert_eq!(updates(&world).await, 0);
    look(&world, 1_800).await;
    assert_eq!(updates(&world).await, 1, "it is over");
    its_one_end_is_said(&world).await;
}

#[tokio::test]
async fn a_silence_after_the_telling_counts_as_matched_and_the_first_repeat_after_it_says_whose_it_was() {
    let world = told().await;
    let id = silence(&world, "kind:a2a-agent", Some(2 * DAY)).await;
    look(&world, 5 * DAY).await;
    assert_eq!(updates(&world).await, 0);
    let kept = world.store.silences(world.now_s()).await.unwrap();
    assert!(kept[0].holds(world.now_s()), "it matches all the time: {kept:?}");
    assert!(world.store.end_silence(id, world.now_s()).await.unwrap());
    look(&world, 1_200).await;
    let said = world.messages("alert_group.updated").await;
    assert_eq!(said.len(), 1);
    assert!(said[0]["data"].to_string().contains("the silence of Ada has ended: moving"), "{}", said[0]["data"]);
    let open = world.store.all_open_alerts(10).await.unwrap();
    assert!(open.iter().all(|alert| alert.why.len() == 2), "{:?}", open[0].why);
    look(&world, DAY).await;
    let said = world.messages("alert_group.updated").await;
    assert!(said.len() == 2 && !said[1]["data"].to_string().contains("has ended"), "it says so once");
    its_one_end_is_said(&world).await;
}

#[tokio::test]
async fn the_end_of_a_silence_is_said_whatever_has_held_the_alert_since() {
    let world = untold().await;
    happens(&world, EventKind::FindingRegressed, 1, "broke document").await;
    look(&world, 61).await;
    let id = silence(&world, "rule:a2a/two", None).await;
    happens(&world, EventKind::FindingRegressed, 2, "broke document").await;
    look(&world, 120).await;
    let kept = world.store.open_alerts("finding:2").await.unwrap();
    assert_eq!(kept[0].held_by.as_deref(), Some("silence:1"));
    world.store.end_silence(id, world.now_s()).await.unwrap();
    look(&world, 60).await;
    assert_eq!(world.store.open_alerts("finding:2").await.unwrap()[0].held_by, None, "it waits for its group");
    look(&world, 900).await;
    let said = world.messages("alert_group.updated").await;
    assert_eq!(said[0]["data"]["after_silences"][0], "the silence of Ada has ended: moving");
    its_one_end_is_said_of(&world).await;
}

/// Both end, whatever was said before.
async fn its_one_end_is_said_of(world: &World) {
    happens(world, EventKind::FindingResolved, 1, "fixed").await;
    happens(world, EventKind::FindingResolved, 2, "fixed").await;
    look(world, 1_200).await;
    assert_eq!(world.messages("alert_group.resolved").await.len(), 1);
}

#[tokio::test]
async fn what_is_taken_on_before_it_was_told_is_told_when_a_deploy_has_not_mended_it() {
    let world = untold().await;
    happens(&world, EventKind::FindingRegressed, 1, "broke document").await;
    take_on(&world, None).await;
    look(&world, 1_200).await;
    assert!(world.messages("alert_group.opened").await.is_empty(), "somebody has it");
    let kept = world.store.open_alerts("finding:1").await.unwrap();
    assert_eq!(kept[0].why[1], "Taken on by Lin: mine");
    deployed(&world, world.now_s()).await;
    look(&world, 61).await;
    assert_eq!(world.messages("alert_group.opened").await.len(), 1);
    assert_eq!(
        world.store.taken_on(&[1]).await.unwrap()[&1].until_s.map(|until_s| until_s <= world.now_s()),
        Some(true)
    );
    its_one_end_is_said_of(&world).await;
}

#[tokio::test]
async fn what_was_taken_on_is_told_again_after_a_new_deploy_and_not_after_an_old_one() {
    let world = told().await;
    take_on(&world, None).await;
    deployed(&world, world.now_s() - 600).await;
    look(&world, 2 * DAY).await;
    assert_eq!(updates(&world).await, 0, "it was deployed before somebody took it on");
    deployed(&world, world.now_s()).await;
    look(&world, 61).await;
    assert_eq!(updates(&world).await, 1);
    its_one_end_is_said_of(&world).await;
}

/// The target was deployed at a moment, and what came of it is known.
async fn deployed(world: &World, at_s: i64) {
    sqlx::query(
        "INSERT INTO deploy (id, target_id, at_s, weight, signals, outcome)
         SELECT COALESCE(MAX(id), 0) + 1, 1, $1, 5, '[]', 'clean' FROM deploy",
    )
    .bind(at_s)
    .execute(world.store.writer())
    .await
    .unwrap();
    sqlx::query(
        "INSERT INTO event (id, at_s, kind, target_id, subject_id, note)
         SELECT MAX(id) + 1, $1, $2, 1, (SELECT MAX(id) FROM deploy), 'clean' FROM event",
    )
    .bind(world.now_s())
    .bind(EventKind::DeployEvaluated.number())
    .execute(world.store.writer())
    .await
    .unwrap();
    world.teller.events().await.unwrap();
}

#[tokio::test]
async fn thousands_that_are_accepted_keep_nobody_behind_them_waiting() {
    let world = untold().await;
    waiver(&world, "a2a/one").await;
    sqlx::query(
        "INSERT INTO alert (id, route_id, key, state, severity, target_id, opened_event, last_event, opened_s, title, surface_id,
                            rule, facts, why, by_what, by_key)
         WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20001)
         SELECT i, 1, 'finding:' || (i + 10), 'firing', 'error', 1, 1, 1, 1, 'One', 1, 'a2a/one',
                '{\"kind\":[\"a2a-agent\"]}', '[]', 'target', 'tgt_1' FROM n",
    )
    .execute(world.store.writer())
    .await
    .unwrap();
    happens(&world, EventKind::FindingRegressed, 2, "broke document").await;
    look(&world, 61).await;
    let said = world.messages("alert_group.opened").await;
    assert_eq!(said.len(), 1);
    assert_eq!(said[0]["data"]["items"][0]["alert"], "finding:2");
}

#[tokio::test]
async fn who_takes_silence_for_an_end_is_told_that_it_goes_on() {
    let world = told().await;
    sqlx::query("UPDATE wh_endpoint SET format = 'alertmanager'").execute(world.store.writer()).await.unwrap();
    take_on(&world, None).await;
    look(&world, 3 * DAY + 1_200).await;
    let said = world.messages("alert_group.updated").await;
    assert_eq!(said.len(), 3, "once a day");
    assert_eq!(
        (&said[2]["data"]["group"]["revision"], &said[2]["data"]["group"]["repeat_s"]),
        (&1.into(), &DAY.into())
    );
    assert_eq!(said[2]["data"]["items"].as_array().unwrap().len(), 2);
    its_one_end_is_said(&world).await;
}
