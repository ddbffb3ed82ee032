//! Summaries tell what happened to whom a subscription is about, since the one before.

use plumbline_store::hooks::{Mode, NewEndpoint, Origin};
use plumbline_store::words::EventKind;
use serde_json::Value;

use crate::outages::{happens, harbour, look, run};
use crate::support::{NOW, World};

const HOUR: i64 = 3_600;

async fn asks(world: &World, slug: &str, matcher: &str, digest: &str) {
    let mode = if matcher.is_empty() { Mode::Groups } else { Mode::Events };
    let new = NewEndpoint {
        slug: slug.to_owned(),
        title: slug.to_owned(),
        url: "http://127.0.0.1:1/".to_owned(),
        format: "generic".to_owned(),
        mode,
        types: vec!["ping".to_owned()],
        matcher: matcher.to_owned(),
        include_baseline: false,
        per_minute: 60,
        options: "{}".to_owned(),
        digest: Some(digest.to_owned()),
    };
    world.store.put_endpoint(&new, Origin::Ui, world.now_s()).await.unwrap();
}

async fn summaries(world: &World) -> Vec<Value> {
    world.messages("digest").await.into_iter().map(|body| body["data"].clone()).collect()
}

#[tokio::test]
async fn a_summary_counts_what_its_subscription_is_about() {
    let world = harbour().await;
    asks(&world, "pier", "owner:pier", r#"{"every":"daily","zone":"UTC","hour":8}"#).await;
    asks(&world, "all", "", r#"{"every":"daily","zone":"UTC","hour":8}"#).await;
    world.route("route", &[]).await;
    run(&world, "UPDATE route SET wait_s = 0").await;
    look(&world, 1).await;
    happens(&world, EventKind::TargetDown, Some(1), Some(1), 1).await;
    happens(&world, EventKind::TargetDown, Some(1), Some(2), 2).await;
    happens(&world, EventKind::TargetDown, Some(2), Some(3), 3).await;
    happens(&world, EventKind::TargetRecovered, Some(1), Some(1), 1).await;
    look(&world, 8 * HOUR).await;
    let said = summaries(&world).await;
    assert_eq!(said.len(), 2);
    let of = |n: i64| said.iter().find(|one| one["counts"]["target.down"] == n).unwrap();
    assert_eq!(of(3)["counts"]["target.recovered"], 1);
    // Pier shows the endpoint of harbour's host besides its own card.
    assert_eq!(of(2)["counts"].as_object().unwrap().len(), 1, "{}", of(2));
    assert_eq!((of(2)["open_alerts"].as_i64(), of(3)["open_alerts"].as_i64()), (Some(2), Some(2)));
    assert_eq!(of(2)["from"], "2026-12-01T00:00:00Z");
    assert_eq!(of(2)["to"], "2026-12-01T08:00:01Z");
}

#[tokio::test]
async fn a_summary_that_is_asked_for_at_another_hour_comes_then_and_misses_nothing() {
    let world = harbour().await;
    asks(&world, "pier", "owner:pier", r#"{"every":"weekly","zone":"UTC","hour":8}"#).await;
    look(&world, 1).await;
    assert_eq!(world.store.endpoint("pier").await.unwrap().digest_due_s, Some(NOW + 6 * 86_400 + 8 * HOUR));
    happens(&world, EventKind::TargetDown, Some(2), Some(3), 3).await;
    look(&world, HOUR).await;
    asks(&world, "pier", "owner:pier", r#"{"every":"daily","zone":"UTC","hour":6}"#).await;
    look(&world, 60).await;
    look(&world, 6 * HOUR).await;
    let said = summaries(&world).await;
    assert_eq!(said.len(), 1);
    assert_eq!(said[0]["counts"]["target.down"], 1);
    assert_eq!((said[0]["period"].as_str(), said[0]["from"].as_str()), (Some("daily"), Some("2026-12-01T00:00:00Z")));
    look(&world, 24 * HOUR).await;
    let said = summaries(&world).await;
    assert_eq!(said[1]["from"], said[0]["to"], "each goes on where the last one ended");
}
