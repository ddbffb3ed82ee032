//! A write that is sent twice with one key is done once.

use axum::body::Body;
use axum::http::{Request, StatusCode, header};
use plumbline_rules::canonical::content_hash;
use plumbline_store::repeats::Repeat;
use plumbline_store::tokens::{NewToken, Scope, text_of};
use serde_json::{Value, json};

use crate::support::{Answer, NOW, World};

async fn token(world: &World, number: u8, scope: Scope) -> String {
    let text = text_of([number; 32]);
    let (scopes, created_by) = (vec![scope], "test".to_owned());
    let new = NewToken { title: format!("Ada {number}"), scopes, owner: None, created_by, expires_s: None };
    world.store.create_token(&text, &new, NOW).await.unwrap();
    text
}

async fn post(world: &World, path: &str, token: &str, key: &str, body: &Value) -> Answer {
    let request = Request::post(path)
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::AUTHORIZATION, format!("Bearer {token}"))
        .header("idempotency-key", key)
        .body(Body::from(body.to_string()))
        .unwrap();
    world.ask(request).await
}

const SILENCES: &str = "/api/v1/silences";

fn silence(reason: &str) -> Value {
    json!({ "match": "owner:harbour", "reason": reason, "until": "2026-12-20T00:00:00Z" })
}

async fn kept(world: &World) -> usize {
    world.store.silences(NOW).await.unwrap().len()
}

#[tokio::test]
async fn the_same_key_and_body_get_the_first_answer_again_and_another_body_is_refused() {
    let world = World::empty().await;
    let ada = token(&world, 1, Scope::AlertsWrite).await;
    let first = post(&world, SILENCES, &ada, "k1", &silence("moving")).await;
    assert_eq!((first.status, first.header("idempotency-replayed")), (StatusCode::CREATED, ""), "{}", first.body);
    let again = post(&world, SILENCES, &ada, "k1", &silence("moving")).await;
    assert_eq!((again.status, again.header("idempotency-replayed")), (StatusCode::CREATED, "true"));
    assert_eq!((again.json(), again.header("content-type")), (first.json(), first.header("content-type")));
    assert_eq!(kept(&world).await, 1, "it was done once");

    let other = post(&world, SILENCES, &ada, "k1", &silence("something else")).await;
    assert_eq!(other.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(other.header("content-type").contains("problem+json") && other.body.contains("Idempotency-Key"));
    let dry = post(&world, &format!("{SILENCES}?dry_run=true"), &ada, "k1", &silence("moving")).await;
    assert_eq!(dry.status, StatusCode::UNPROCESSABLE_ENTITY, "another address is another request");
    assert_eq!(kept(&world).await, 1);
    assert_eq!(post(&world, SILENCES, &ada, "k2", &silence("moving")).await.status, StatusCode::CREATED);
    assert_eq!(kept(&world).await, 2);
}

#[tokio::test]
async fn a_key_is_its_senders_and_an_answer_is_nobody_elses() {
    let world = World::empty().await;
    let (ada, lin) = (token(&world, 1, Scope::AlertsWrite).await, token(&world, 2, Scope::AlertsWrite).await);
    let reader = token(&world, 3, Scope::Read).await;
    assert_eq!(post(&world, SILENCES, &ada, "k", &silence("moving")).await.status, StatusCode::CREATED);
    let theirs = post(&world, SILENCES, &lin, "k", &silence("moving")).await;
    assert_eq!((theirs.status, theirs.header("idempotency-replayed")), (StatusCode::CREATED, ""));
    assert_eq!(post(&world, SILENCES, &reader, "k", &silence("moving")).await.status, StatusCode::FORBIDDEN);
    assert_eq!(post(&world, SILENCES, "plb_none", "k", &silence("moving")).await.status, StatusCode::UNAUTHORIZED);
    assert_eq!(kept(&world).await, 2);
}

#[tokio::test]
async fn what_was_refused_may_be_mended_and_sent_with_the_same_key() {
    let world = World::empty().await;
    let ada = token(&world, 1, Scope::AlertsWrite).await;
    assert_eq!(post(&world, SILENCES, &ada, "k", &silence("")).await.status, StatusCode::BAD_REQUEST);
    assert_eq!(post(&world, SILENCES, &ada, "k", &silence("moving")).await.status, StatusCode::CREATED);
    for key in ["", "a b", &"x".repeat(256)] {
        let answer = post(&world, SILENCES, &ada, key, &silence("moving")).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{key:?}");
        assert!(answer.body.contains("visible characters"), "{}", answer.body);
    }
    assert_eq!(kept(&world).await, 1);
}

#[tokio::test]
async fn a_new_secret_is_answered_again_to_whoever_lost_it_and_lies_sealed() {
    let world = World::empty().await;
    let ada = token(&world, 1, Scope::AlertsWrite).await;
    let new = json!({ "name": "team", "url": "https://hooks.example.com/x", "format": "generic" });
    let first = post(&world, "/api/v1/webhooks", &ada, "k", &new).await;
    let again = post(&world, "/api/v1/webhooks", &ada, "k", &new).await;
    let secret = first.json()["secret"].as_str().unwrap().to_owned();
    assert!(secret.starts_with("whsec_"), "{}", first.body);
    assert_eq!((again.status, again.json()), (StatusCode::CREATED, first.json()));
    assert_eq!(again.header("location"), "/api/v1/webhooks/team");
    assert_eq!(again.header("cache-control"), "no-store");
    assert_eq!(world.store.endpoints().await.unwrap().len(), 1);
    let request = content_hash(format!("/api/v1/webhooks\n{new}").as_bytes());
    let kept = world.store.begin_answer("token 1", content_hash(b"k"), request, NOW).await.unwrap();
    let Repeat::Answered(sealed) = kept else { panic!("{kept:?}") };
    assert!(!String::from_utf8_lossy(&sealed).contains(&secret));
}

#[tokio::test]
async fn a_deploy_is_told_once_and_who_asks_meanwhile_is_told_to_wait() {
    let world = World::full().await;
    let ada = token(&world, 1, Scope::DeploysWrite).await;
    let deploy = json!({ "owner": "harbour", "version": "1.4.2" });
    let (one, two) = tokio::join!(
        post(&world, "/api/v1/deploys", &ada, "k", &deploy),
        post(&world, "/api/v1/deploys", &ada, "k", &deploy)
    );
    for answer in [&one, &two] {
        assert!(matches!(answer.status, StatusCode::ACCEPTED | StatusCode::CONFLICT), "{}", answer.body);
        assert_eq!(answer.status == StatusCode::CONFLICT, answer.header("retry-after") == "1", "{}", answer.body);
    }
    let again = post(&world, "/api/v1/deploys", &ada, "k", &deploy).await;
    assert_eq!((again.status, again.header("idempotency-replayed")), (StatusCode::ACCEPTED, "true"));
    let told = world.get_json("/api/v1/deploys").await.json();
    assert_eq!(told["items"].as_array().unwrap().len(), again.json()["deploys"].as_array().unwrap().len(), "{told}");
}
