//! An outage of several: each route hears of its own, of those it shares and of nobody else's; and what goes wrong with crawling
//! itself keeps quiet only what it explains.

use plumbline_store::hooks::Mode;
use plumbline_store::words::EventKind;
use plumbline_store::{EndpointId, RouteId};
use serde_json::Value;

use crate::support::{NOW, World};

/// A host with a card that harbour shows and an endpoint that harbour and pier show; and a card of pier's elsewhere.
pub async fn harbour() -> World {
    let world = World::new().await;
    for statement in [
        "INSERT INTO source (id, kind, name, base, added_s)
         VALUES (1, 'domains', 'domains', NULL, 1), (2, 'mcp-registry', 'official', 'https://registry.example', 1)",
        "INSERT INTO owner (id, slug, name, added_s) VALUES (1, 'harbour', 'Harbour', 1), (2, 'pier', 'Pier', 1)",
        "INSERT INTO host (id, name, domain, added_s)
         VALUES (1, 'harbour.example', 'harbour.example', 1), (2, 'pier.example', 'pier.example', 1)",
        "INSERT INTO target (id, kind, key, name, source_id, owner_id, host_id, first_seen_s, last_seen_s, changed_s)
         VALUES (1, 'a2a-agent', 'harbour.example', 'Harbour', 1, 1, 1, 1, 1, 1),
                (2, 'mcp-server', 'pier.example/tools', 'Pier', 1, 2, 2, 1, 1, 1)",
        "INSERT INTO surface (id, kind, url, host_id, added_s)
         VALUES (1, 'a2a-card', 'https://harbour.example/card', 1, 1),
                (2, 'mcp-endpoint', 'https://harbour.example/mcp', 1, 1),
                (3, 'a2a-card', 'https://pier.example/card', 2, 1)",
        "INSERT INTO target_surface (target_id, surface_id, role, added_s)
         VALUES (1, 1, 'main', 1), (1, 2, 'endpoint', 1), (2, 2, 'endpoint', 1), (2, 3, 'main', 1)",
    ] {
        sqlx::query(statement).execute(world.store.writer()).await.unwrap();
    }
    world
}

pub async fn route(world: &World, slug: &str, matcher: &str) -> (EndpointId, RouteId) {
    let to = world.endpoint(slug, "http://127.0.0.1:1/", Mode::Groups).await;
    let id = world.route(slug, &[to]).await;
    sqlx::query("UPDATE route SET matcher = $2 WHERE id = $1")
        .bind(id.0)
        .bind(matcher)
        .execute(world.store.writer())
        .await
        .unwrap();
    (to, id)
}

pub async fn happens(world: &World, kind: EventKind, target: Option<i64>, surface: Option<i64>, subject: i64) {
    sqlx::query(
        "INSERT INTO event (id, at_s, kind, target_id, surface_id, subject_id)
         SELECT COALESCE(MAX(id), 0) + 1, $1, $2, $3, $4, $5 FROM event",
    )
    .bind(world.now_s())
    .bind(kind.number())
    .bind(target)
    .bind(surface)
    .bind(subject)
    .execute(world.store.writer())
    .await
    .unwrap();
}

pub async fn run(world: &World, statement: &'static str) {
    sqlx::query(statement).execute(world.store.writer()).await.unwrap();
}

pub async fn look(world: &World, seconds: i64) {
    world.teller.events().await.unwrap();
    world.later(seconds);
    let mut reviewed_s = 0;
    world.teller.once(&mut reviewed_s).await.unwrap();
}

/// What a receiver was sent: the type of each message and what its items are about.
pub async fn heard(world: &World, to: EndpointId) -> Vec<String> {
    let rows: Vec<Vec<u8>> = sqlx::query_scalar(
        "SELECT body FROM wh_message JOIN wh_delivery ON message_id = wh_message.id WHERE endpoint_id = $1 ORDER BY wh_message.id",
    )
    .bind(to.0)
    .fetch_all(world.store.reader())
    .await
    .unwrap();
    let said = |body: &Vec<u8>| {
        let body: Value = serde_json::from_slice(body).unwrap();
        let items: Vec<&str> =
            body["data"]["items"].as_array().unwrap().iter().map(|item| item["alert"].as_str().unwrap()).collect();
        format!("{} {}", body["type"].as_str().unwrap(), items.join(","))
    };
    rows.iter().map(said).collect()
}

async fn incident(world: &World) {
    for statement in [
        "UPDATE surface SET reach = 'down', reach_reason = 'refused' WHERE id IN (1, 2)",
        "INSERT INTO incident (id, opened_s, cause, shared, n_members, reason) VALUES (7, 1, 'host', 'harbour.example', 2, 'connect')",
        "INSERT INTO incident_member (incident_id, surface_id, joined_s) VALUES (7, 1, 1), (7, 2, 1)",
    ] {
        run(world, statement).await;
    }
    happens(world, EventKind::TargetDown, Some(1), Some(1), 1).await;
    happens(world, EventKind::IncidentOpened, None, None, 7).await;
    happens(world, EventKind::TargetDown, Some(1), Some(2), 2).await;
}

async fn all_answer_again(world: &World) {
    run(world, "UPDATE surface SET reach = 'up'").await;
    run(world, "UPDATE incident_member SET left_s = 5").await;
    run(world, "UPDATE incident SET closed_s = 5").await;
    happens(world, EventKind::TargetRecovered, Some(1), Some(1), 1).await;
    happens(world, EventKind::IncidentResolved, None, None, 7).await;
    happens(world, EventKind::TargetRecovered, Some(1), Some(2), 2).await;
}

#[tokio::test]
async fn the_owner_of_a_host_that_goes_down_is_told_of_the_incident_and_of_its_end() {
    let world = harbour().await;
    let (harbour, _) = route(&world, "harbour", "owner:harbour").await;
    let (pier, _) = route(&world, "pier", "owner:pier").await;
    let (cards, _) = route(&world, "cards", "surface:a2a-card kind:a2a-agent host:harbour.example").await;
    let (stranger, _) = route(&world, "stranger", "owner:stranger").await;
    incident(&world).await;
    look(&world, 61).await;
    all_answer_again(&world).await;
    look(&world, 61).await;
    for receiver in [harbour, pier, cards] {
        let wanted = ["alert_group.opened incident:7", "alert_group.resolved incident:7"];
        assert_eq!(heard(&world, receiver).await, wanted, "receiver {receiver}");
    }
    assert!(heard(&world, stranger).await.is_empty());
}

#[tokio::test]
async fn a_route_that_does_not_hear_of_an_incident_hears_of_its_members() {
    let world = harbour().await;
    let (down, _) = route(&world, "down", "type:target.down").await;
    incident(&world).await;
    look(&world, 61).await;
    assert_eq!(heard(&world, down).await, ["alert_group.opened reach:1,reach:2"]);
    all_answer_again(&world).await;
    look(&world, 61).await;
    assert_eq!(heard(&world, down).await.len(), 2);
}

#[tokio::test]
async fn whoever_is_struck_later_is_told_then_and_whoever_left_is_not_told_anew() {
    let world = harbour().await;
    incident(&world).await;
    world.teller.events().await.unwrap();
    let (harbour, _) = route(&world, "harbour", "target:harbour.example").await;
    let (pier, _) = route(&world, "pier", "host:pier.example -owner:harbour").await;
    run(&world, "UPDATE incident_member SET left_s = 5").await;
    run(&world, "INSERT INTO incident_member (incident_id, surface_id, joined_s) VALUES (7, 3, 5)").await;
    happens(&world, EventKind::IncidentUpdated, None, None, 7).await;
    look(&world, 61).await;
    assert_eq!(heard(&world, pier).await, ["alert_group.opened incident:7"]);
    assert!(heard(&world, harbour).await.is_empty());
}

#[tokio::test]
async fn a_surface_of_two_targets_concerns_both_until_nobody_shows_it() {
    let world = harbour().await;
    let (pier, _) = route(&world, "pier", "owner:pier").await;
    happens(&world, EventKind::TargetDown, Some(1), Some(2), 2).await;
    look(&world, 61).await;
    assert_eq!(heard(&world, pier).await, ["alert_group.opened reach:2"]);
    run(&world, "UPDATE target SET retired_s = 5 WHERE id = 1").await;
    happens(&world, EventKind::TargetRetired, Some(1), None, 1).await;
    look(&world, 61).await;
    assert_eq!(world.store.open_alerts("reach:2").await.unwrap().len(), 1, "pier still shows it");
    run(&world, "UPDATE target SET retired_s = 6 WHERE id = 2").await;
    happens(&world, EventKind::TargetRetired, Some(2), None, 1).await;
    look(&world, 61).await;
    assert_eq!(heard(&world, pier).await.last().map(String::as_str), Some("alert_group.resolved reach:2"));
}

#[tokio::test]
async fn a_host_that_asks_for_peace_silences_no_other() {
    let world = harbour().await;
    let (all, _) = route(&world, "all", "").await;
    run(&world, "UPDATE surface SET reach = 'throttled' WHERE id = 3").await;
    happens(&world, EventKind::CrawlDegraded, Some(2), Some(3), 1).await;
    happens(&world, EventKind::TargetDown, Some(1), Some(1), 1).await;
    look(&world, 61).await;
    assert_eq!(
        heard(&world, all).await,
        ["alert_group.opened reach:1", "alert_group.opened crawl:throttled:pier.example"]
    );
    run(&world, "UPDATE surface SET reach = 'up' WHERE id = 3").await;
    look(&world, 61).await;
    assert_eq!(
        heard(&world, all).await.last().map(String::as_str),
        Some("alert_group.resolved crawl:throttled:pier.example")
    );
}

#[tokio::test]
async fn each_trouble_of_crawling_ends_by_itself_and_only_witnesses_keep_downs_quiet() {
    let world = harbour().await;
    let (all, _) = route(&world, "all", "").await;
    for statement in ["INSERT INTO crawl (id, source_id, kind, state, holder, started_s, held_back)
         VALUES (1, NULL, 'round', 'incomplete', 'me', 1, 0), (2, 2, 'full-walk', 'incomplete', 'me', 1, 0),
                (3, 2, 'full-walk', 'complete', 'me', 1, 900), (4, NULL, 'round', 'complete', 'me', 2, 0)"]
    {
        run(&world, statement).await;
    }
    // A walk that did not see all of its registry blames nobody else.
    happens(&world, EventKind::CrawlDegraded, None, None, 2).await;
    happens(&world, EventKind::TargetDown, Some(1), Some(1), 1).await;
    look(&world, 61).await;
    assert_eq!(heard(&world, all).await, ["alert_group.opened reach:1", "alert_group.opened crawl:walk:official"]);
    // The witnesses do not answer, and a walk that is complete does not change that.
    happens(&world, EventKind::CrawlDegraded, None, None, 1).await;
    happens(&world, EventKind::TargetDown, Some(2), Some(3), 3).await;
    run(
        &world,
        "INSERT INTO event (id, at_s, kind, subject_id, a, b) SELECT MAX(id) + 1, 9, 51, 3, 900, 1000 FROM event",
    )
    .await;
    happens(&world, EventKind::CrawlCompleted, None, None, 3).await;
    look(&world, 61).await;
    let held = world.store.open_alerts("reach:3").await.unwrap();
    assert_eq!(held[0].held_by.as_deref(), Some("crawl:witness"));
    let said = heard(&world, all).await;
    assert!(said.contains(&"alert_group.resolved crawl:walk:official".to_owned()), "{said:?}");
    assert!(said.contains(&"alert_group.opened crawl:loss:official".to_owned()), "{said:?}");
    // A round without faults does; what was lost waits for a whole walk that is believed.
    happens(&world, EventKind::CrawlCompleted, None, None, 4).await;
    look(&world, 61).await;
    let said = heard(&world, all).await;
    assert!(said.contains(&"alert_group.resolved crawl:witness".to_owned()), "{said:?}");
    assert!(said.contains(&"alert_group.opened reach:3".to_owned()), "{said:?}");
    sqlx::query(
        "INSERT INTO crawl (id, source_id, kind, state, holder, started_s, held_back)
         VALUES (5, 2, 'full-walk', 'complete', 'me', $1, 0)",
    )
    .bind(NOW + 600)
    .execute(world.store.writer())
    .await
    .unwrap();
    look(&world, 61).await;
    assert_eq!(heard(&world, all).await.last().map(String::as_str), Some("alert_group.resolved crawl:loss:official"));
}
