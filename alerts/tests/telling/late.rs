//! Who hears of a group that goes on: those who came later too; and of its end all who heard of its beginning, also when the route
//! is taken away.

use plumbline_alerts::sync::{Given, sync};
use plumbline_store::hooks::{Mode, NewEndpoint};
use plumbline_store::words::EventKind;
use plumbline_store::{EndpointId, RouteId};

use crate::outages::{happens, harbour, heard, look, route, run};
use crate::support::{NOW, World};

const INTERVAL_S: i64 = 901;

async fn down(world: &World, surface: i64) {
    happens(world, EventKind::TargetDown, Some(1), Some(surface), surface).await;
}

async fn up(world: &World, surface: i64) {
    happens(world, EventKind::TargetRecovered, Some(1), Some(surface), surface).await;
}

async fn leads(world: &World, route: RouteId, to: EndpointId) {
    sqlx::query("INSERT INTO route_endpoint (route_id, endpoint_id) VALUES ($1, $2)")
        .bind(route.0)
        .bind(to.0)
        .execute(world.store.writer())
        .await
        .unwrap();
}

/// All is over: who was told of anything is told of the end, once.
async fn ends_once(world: &World) {
    up(world, 1).await;
    up(world, 2).await;
    look(world, INTERVAL_S).await;
    assert!(world.store.open_groups(9).await.unwrap().is_empty());
    let open: i64 = sqlx::query_scalar("SELECT COUNT(*) FROM alert_told WHERE end_message IS NULL")
        .fetch_one(world.store.reader())
        .await
        .unwrap();
    assert_eq!(open, 0, "each beginning has its end");
}

#[tokio::test]
async fn a_second_receiver_hears_of_what_is_new_and_of_what_still_holds() {
    let world = harbour().await;
    let (first, route) = route(&world, "first", "").await;
    down(&world, 1).await;
    look(&world, 61).await;
    let second = world.endpoint("second", "http://127.0.0.1:1/", Mode::Groups).await;
    leads(&world, route, second).await;
    down(&world, 2).await;
    look(&world, INTERVAL_S).await;
    assert_eq!(heard(&world, first).await, ["alert_group.opened reach:1", "alert_group.updated reach:1,reach:2"]);
    assert_eq!(heard(&world, second).await, ["alert_group.opened reach:1,reach:2"]);
    ends_once(&world).await;
    for receiver in [first, second] {
        let last = heard(&world, receiver).await.pop();
        assert_eq!(last.as_deref(), Some("alert_group.resolved reach:1,reach:2"));
    }
}

#[tokio::test]
async fn an_end_is_told_to_nobody_who_did_not_hear_of_the_beginning() {
    let world = harbour().await;
    let (first, route) = route(&world, "first", "").await;
    down(&world, 1).await;
    down(&world, 2).await;
    look(&world, 61).await;
    let second = world.endpoint("second", "http://127.0.0.1:1/", Mode::Groups).await;
    leads(&world, route, second).await;
    up(&world, 1).await;
    look(&world, INTERVAL_S).await;
    assert_eq!(heard(&world, first).await[1], "alert_group.updated reach:2,reach:1");
    assert_eq!(heard(&world, second).await, ["alert_group.opened reach:2"]);
    // Whoever is no longer led to hears of ends alone.
    run(&world, "DELETE FROM route_endpoint WHERE endpoint_id = 1").await;
    down(&world, 1).await;
    look(&world, INTERVAL_S).await;
    assert_eq!(heard(&world, first).await.len(), 2);
    assert_eq!(heard(&world, second).await[1], "alert_group.updated reach:2,reach:1");
    ends_once(&world).await;
    assert_eq!(heard(&world, first).await[2], "alert_group.resolved reach:2");
    assert_eq!(heard(&world, second).await[2], "alert_group.resolved reach:2,reach:1");
}

#[tokio::test]
async fn a_receiver_that_was_paused_when_a_group_opened_hears_of_it_afterwards() {
    let world = harbour().await;
    let (only, _) = route(&world, "only", "").await;
    world.store.enable_endpoint(only, false, "paused", NOW).await.unwrap();
    down(&world, 1).await;
    look(&world, 61).await;
    assert!(heard(&world, only).await.is_empty());
    let open = world.store.open_alerts("reach:1").await.unwrap();
    assert_eq!(open[0].why[1], "Told to nobody: the route leads to no receiver.");
    world.store.enable_endpoint(only, true, "", NOW).await.unwrap();
    down(&world, 2).await;
    look(&world, INTERVAL_S).await;
    assert_eq!(heard(&world, only).await, ["alert_group.opened reach:1,reach:2"]);
    let open = world.store.open_alerts("reach:1").await.unwrap();
    assert!(open[0].why[1].starts_with("Told in group 1"), "{:?}", open[0].why);
    ends_once(&world).await;
    assert_eq!(heard(&world, only).await.len(), 2);
}

#[tokio::test]
async fn a_pager_that_slept_through_what_is_good_to_know_is_woken_by_what_is_grave() {
    let world = harbour().await;
    let (chat, route) = route(&world, "chat", "").await;
    run(&world, "UPDATE route SET min_severity = 'info'").await;
    let pager = world.endpoint("pager", "http://127.0.0.1:1/", Mode::Groups).await;
    run(&world, "UPDATE wh_endpoint SET format = 'pagerduty' WHERE slug = 'pager'").await;
    leads(&world, route, pager).await;
    for statement in [
        "INSERT INTO rule (id, slug, family, axis, class, severity, impact, basis, evidence, version, version_s, title)
         VALUES (1, 'a2a/one', 'a2a', 'conformity', 'finding', 'info', NULL, 'spec', 'document', 1, 1, 'One.')",
        "INSERT INTO finding (id, surface_id, rule_id, state, opened_as, cause, severity, first_seen_s, last_fired_s,
                              changed_s, rule_version)
         VALUES (9, 1, 1, 'open', 'broke', 'document', 'info', 1, 1, 1, 1)",
    ] {
        run(&world, statement).await;
    }
    happens(&world, EventKind::FindingOpened, Some(1), Some(1), 9).await;
    look(&world, 61).await;
    assert_eq!(heard(&world, chat).await, ["alert_group.opened finding:9"]);
    assert!(heard(&world, pager).await.is_empty(), "it wakes nobody");
    down(&world, 2).await;
    look(&world, INTERVAL_S).await;
    assert_eq!(heard(&world, pager).await, ["alert_group.opened reach:2,finding:9"]);
    happens(&world, EventKind::FindingResolved, Some(1), Some(1), 9).await;
    ends_once(&world).await;
    assert_eq!(heard(&world, pager).await.len(), 2);
}

#[tokio::test]
async fn a_route_that_is_taken_away_ends_what_it_told() {
    let world = harbour().await;
    let (harbour, id) = route(&world, "harbour", "").await;
    down(&world, 1).await;
    look(&world, 61).await;
    world.store.remove_route(id, world.now_s()).await.unwrap();
    look(&world, 5).await;
    assert_eq!(heard(&world, harbour).await, ["alert_group.opened reach:1", "alert_group.resolved reach:1"]);
    let said = world.messages("alert_group.resolved").await;
    let summary = said[0]["data"]["summary"].as_str().unwrap();
    assert!(summary.ends_with("; the route harbour was removed"), "{summary}");
    ends_once(&world).await;
    assert_eq!(heard(&world, harbour).await.len(), 2, "and that is all");
}

/// What the settings name: receivers for people, each at its address.
async fn settings(world: &World, named: &[(&str, &str)]) {
    let given: Vec<Given> = named
        .iter()
        .map(|(slug, url)| Given {
            endpoint: NewEndpoint {
                slug: (*slug).to_owned(),
                title: (*slug).to_owned(),
                url: (*url).to_owned(),
                format: "generic".to_owned(),
                mode: Mode::Groups,
                types: Vec::new(),
                matcher: String::new(),
                include_baseline: false,
                per_minute: 60,
                options: "{}".to_owned(),
                digest: None,
            },
            secrets: Vec::new(),
            token: None,
            ed25519: false,
        })
        .collect();
    sync(&world.store, &world.courier.vault, &given, &[], world.now_s()).await.unwrap();
}

#[tokio::test]
async fn a_receiver_that_only_has_another_name_goes_on() {
    let world = harbour().await;
    settings(&world, &[("team", "http://127.0.0.1:1/a"), ("other", "http://127.0.0.1:1/b")]).await;
    down(&world, 1).await;
    look(&world, 61).await;
    let team = world.store.endpoint("team").await.unwrap().id;
    settings(&world, &[("crew", "http://127.0.0.1:1/a"), ("others", "http://127.0.0.1:1/c")]).await;
    assert_eq!(world.store.endpoint("crew").await.unwrap().id, team);
    let routes: Vec<String> = world.store.routes().await.unwrap().into_iter().map(|route| route.is.slug).collect();
    assert_eq!(routes, ["crew", "others"]);
    look(&world, 61).await;
    assert_eq!(heard(&world, team).await.len(), 1, "nothing is over");
    ends_once_of(&world, team).await;
    // Two that are alike are not told apart: both are new.
    settings(&world, &[("a", "http://127.0.0.1:1/a"), ("b", "http://127.0.0.1:1/a")]).await;
    assert!(world.store.endpoint("a").await.unwrap().id != team && world.store.endpoint("b").await.unwrap().id != team);
}

async fn ends_once_of(world: &World, receiver: EndpointId) {
    up(world, 1).await;
    look(world, INTERVAL_S).await;
    assert_eq!(heard(world, receiver).await[1..], ["alert_group.resolved reach:1"]);
}
