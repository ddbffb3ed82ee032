//! What programs tell of deploys, and who may.

use axum::body::Body;
use axum::http::{Request, StatusCode, header};
use plumbline_store::tokens::{NewToken, Scope, text_of};
use serde_json::json;

use crate::support::{Answer, NOW, World};

async fn told(world: &World, peer: &str, token: Option<&str>, body: &serde_json::Value) -> Answer {
    shown(world, peer, token.map(|token| format!("Bearer {token}")).as_deref(), body).await
}

/// The same, whatever is shown in place of a token.
async fn shown(world: &World, peer: &str, authorization: Option<&str>, body: &serde_json::Value) -> Answer {
    let mut request = Request::post("/api/v1/deploys")
        .header(header::HOST, "127.0.0.1:8080")
        .header(header::ACCEPT, "application/json")
        .header(header::CONTENT_TYPE, "application/json");
    if let Some(authorization) = authorization {
        request = request.header(header::AUTHORIZATION, authorization);
    }
    let mut request = request.body(Body::from(body.to_string())).unwrap();
    request.extensions_mut().insert(axum::extract::ConnectInfo(std::net::SocketAddr::new(peer.parse().unwrap(), 4711)));
    world.ask(request).await
}

async fn token(world: &World, number: u8, scope: Scope, owner: Option<&str>) -> String {
    let text = text_of([number; 32]);
    let new = NewToken {
        title: String::new(),
        scopes: vec![scope],
        owner: owner.map(str::to_owned),
        created_by: "test".into(),
        expires_s: None,
    };
    world.store.create_token(&text, &new, NOW).await.unwrap();
    text
}

#[tokio::test]
async fn a_deploy_is_told_by_whoever_sits_here_or_shows_a_token_that_allows_it() {
    let world = World::full().await;
    let target = world.target("sound").await;
    let number = target.trim_start_matches("/targets/").to_owned();
    let body = json!({ "target": number, "version": "2.0", "dedupe_key": "run 1", "crawl": true });
    let writer = token(&world, 1, Scope::DeploysWrite, None).await;
    let reader = token(&world, 2, Scope::Read, None).await;
    let stranger = token(&world, 3, Scope::DeploysWrite, Some("nobody")).await;
    for (peer, token, status) in [
        ("192.0.2.7", None, StatusCode::UNAUTHORIZED),
        ("192.0.2.7", Some("plb_wrong"), StatusCode::UNAUTHORIZED),
        ("127.0.0.1", Some("plb_wrong"), StatusCode::UNAUTHORIZED),
        ("127.0.0.1", Some(reader.as_str()), StatusCode::FORBIDDEN),
        ("192.0.2.7", Some(stranger.as_str()), StatusCode::NOT_FOUND),
        ("192.0.2.7", Some(writer.as_str()), StatusCode::ACCEPTED),
        ("127.0.0.1", None, StatusCode::ACCEPTED),
    ] {
        let answer = told(&world, peer, token, &body).await;
        assert_eq!(answer.status, status, "{peer} {token:?}: {}", answer.body);
    }
    // What is shown and is no token of ours makes nobody the operator.
    for other in ["Basic YTpi", "plb_without_a_scheme"] {
        let answer = shown(&world, "127.0.0.1", Some(other), &body).await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{other}");
    }
    let answer = told(&world, "127.0.0.1", None, &body).await.json();
    let deploys = world.store.deploys(None, None, 9).await.unwrap();
    let markers: Vec<_> = deploys.iter().filter(|deploy| deploy.is_told).collect();
    assert_eq!(markers.len(), 1, "told three times under one key");
    assert_eq!(answer["result_url"], format!("/api/v1/deploys/{}/result", markers[0].id));
    assert!(answer["surfaces_due"].as_u64().unwrap() >= 1);

    let page = world.get(&format!("/deploys/{}", markers[0].id)).await.words();
    assert!(page.contains("Their pipeline told us of it") && page.contains("their pipeline told us"), "{page}");
    let list = world.get("/deploys").await.words();
    assert!(list.contains("their pipeline told us") && !list.contains("something changed"), "{list}");
    let whole = world.get_json(&format!("/api/v1/deploys/{}", markers[0].id)).await.json();
    assert_eq!(whole["deploy"]["signals"][0]["kind"], "marker");

    let result = world.get_json(answer["result_url"].as_str().unwrap()).await.json();
    assert_eq!((&result["status"], &result["outcome"]), (&json!("pending"), &json!(null)));
    assert_eq!(world.get_json("/api/v1/deploys/999/result").await.status, StatusCode::NOT_FOUND);
    assert_eq!(world.get_json("/api/v1/deploys/1/result?fail_on=anything").await.status, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn what_cannot_be_read_is_refused_with_a_reason() {
    let world = World::full().await;
    for body in [
        json!({}),
        json!({ "target": "1", "owner": "them" }),
        json!({ "target": "1", "at": "yesterday" }),
        json!({ "target": "1", "at": "2020-01-01T00:00:00Z" }),
        json!({ "target": "1", "url": "javascript:alert(1)" }),
        json!({ "target": "1", "colour": "red" }),
        json!([]),
    ] {
        let answer = told(&world, "127.0.0.1", None, &body).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{body}: {}", answer.body);
        assert_eq!(answer.header("content-type"), "application/problem+json");
        assert!(answer.json()["detail"].as_str().is_some_and(|detail| !detail.is_empty()));
    }
    let answer = told(&world, "127.0.0.1", None, &json!({ "targets": ["1", "no.such.example"] })).await;
    assert_eq!((answer.status, answer.json()["detail"].as_str()), (StatusCode::NOT_FOUND, Some("no.such.example")));
    assert!(!world.store.deploys(None, None, 9).await.unwrap().iter().any(|deploy| deploy.is_told), "all or none");
}
