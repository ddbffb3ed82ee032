//! Events for programs: a page after a number, and a stream for as long as somebody listens.

use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::http::{Request, StatusCode, header};
use tower::ServiceExt;

use crate::support::World;

#[tokio::test]
async fn events_are_read_page_by_page_and_by_kind() {
    let world = World::full().await;
    let all = world.get("/api/v1/events?limit=1000").await;
    assert_eq!((all.status, all.header("content-type")), (StatusCode::OK, "application/json"));
    let all = all.json();
    let ids: Vec<i64> = all["events"].as_array().unwrap().iter().map(|event| event["id"].as_i64().unwrap()).collect();
    assert!(ids.len() > 3 && ids.is_sorted());
    assert_eq!((all["next"].as_i64(), all["newest"].as_i64()), (ids.last().copied(), ids.last().copied()));

    let mut seen = Vec::new();
    let mut after = 0;
    loop {
        let page = world.get(&format!("/api/v1/events?after={after}&limit=2")).await.json();
        let events = page["events"].as_array().unwrap().clone();
        if events.is_empty() {
            break;
        }
        seen.extend(events.iter().map(|event| event["id"].as_i64().unwrap()));
        after = page["next"].as_i64().unwrap();
    }
    assert_eq!(seen, ids, "pages hold each event once");

    let targets = world.get("/api/v1/events?type=target.*").await.json();
    let targets = targets["events"].as_array().unwrap().clone();
    assert!(!targets.is_empty());
    assert!(targets.iter().all(|event| event["type"].as_str().unwrap().starts_with("target.")));
    let one = targets[0]["target"].as_i64().unwrap();
    let of_one = world.get(&format!("/api/v1/events?target={one}")).await.json();
    assert!(of_one["events"].as_array().unwrap().iter().all(|event| event["target"].as_i64() == Some(one)));
    assert_eq!(world.get("/api/v1/events?type=finding.lost").await.status, StatusCode::BAD_REQUEST);
}

async fn listen(world: &World, path: &str, last: Option<&str>) -> axum::http::Response<Body> {
    let mut request = Request::get(path).header(header::ACCEPT, "text/event-stream");
    if let Some(last) = last {
        request = request.header("last-event-id", last);
    }
    world.router.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap()
}

#[tokio::test]
async fn a_reader_that_was_cut_off_goes_on_after_the_last_event_it_has() {
    let world = World::full().await;
    let newest = world.get("/api/v1/events?limit=1000").await.json()["newest"].as_i64().unwrap();
    let response = listen(&world, "/api/v1/events?after=0", Some(&(newest - 2).to_string())).await;
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let mut body = response.into_body().into_data_stream();
    let mut text = String::new();
    while text.matches("\n\n").count() < 2 {
        let next = futures_util::StreamExt::next(&mut body);
        let chunk = tokio::time::timeout(Duration::from_secs(20), next).await.expect("it comes").unwrap().unwrap();
        text.push_str(std::str::from_utf8(&chunk).unwrap());
    }
    assert!(text.starts_with(&format!("id: {}\n", newest - 1)), "{text}");
    assert!(
        text.contains(&format!("id: {newest}\n")) && text.contains("\nevent: ") && text.contains("\ndata: {"),
        "{text}"
    );
}

#[tokio::test]
async fn two_hundred_may_listen_and_a_place_is_free_again_when_one_leaves() {
    let world = World::full().await;
    let mut readers = Vec::new();
    for _ in 0..200 {
        let response = listen(&world, "/api/v1/events", None).await;
        assert_eq!(response.status(), StatusCode::OK);
        readers.push(response);
    }
    let refused = listen(&world, "/api/v1/events", None).await;
    assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
    assert!(refused.headers().contains_key("retry-after"));
    let _ = to_bytes(refused.into_body(), 1 << 20).await;
    readers.pop();
    assert_eq!(listen(&world, "/api/v1/events", None).await.status(), StatusCode::OK);
}
