//! Every write is noted with who made it, and nothing secret of it is.

use axum::body::Body;
use axum::http::{Request, StatusCode, header};
use plumbline_store::tokens::{NewToken, Scope, text_of};
use serde_json::{Value, json};

use crate::support::{Answer, NOW, World};

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

async fn sent(world: &World, method: &str, path: &str, token: Option<&str>, kind: &str, body: String) -> Answer {
    let mut request = Request::builder().method(method).uri(path).header(header::HOST, "127.0.0.1:8080");
    if !kind.is_empty() {
        request = request.header(header::CONTENT_TYPE, kind);
    }
    if let Some(token) = token {
        request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
    }
    let mut request = request.body(Body::from(body)).unwrap();
    let peer = if token.is_none() { "127.0.0.1:4711" } else { "192.0.2.7:4711" };
    request.extensions_mut().insert(axum::extract::ConnectInfo(peer.parse::<std::net::SocketAddr>().unwrap()));
    world.ask(request).await
}

async fn api(world: &World, method: &str, path: &str, token: Option<&str>, body: &Value) -> Answer {
    let answer = sent(world, method, path, token, "application/json", body.to_string()).await;
    assert!(answer.status.is_success(), "{method} {path}: {} {}", answer.status, answer.body);
    answer
}

async fn form(world: &World, path: &str, body: &str) {
    let answer = sent(world, "POST", path, None, "application/x-www-form-urlencoded", body.to_owned()).await;
    assert!(answer.status.is_success() || answer.status.is_redirection(), "{path}: {} {}", answer.status, answer.body);
}

async fn token(world: &World, number: u8, scope: Scope, owner: Option<&str>) -> String {
    let text = text_of([number; 32]);
    let (scopes, owner, created_by) = (vec![scope], owner.map(str::to_owned), "test".to_owned());
    let new = NewToken { title: "pier".to_owned(), scopes, owner, created_by, expires_s: None };
    world.store.create_token(&text, &new, NOW).await.unwrap();
    text
}

/// Action and entity of everything that was noted, the oldest first.
async fn noted(world: &World) -> Vec<(String, String)> {
    let mut rows = world.store.noted(i64::MAX, None, 1_000).await.unwrap();
    rows.reverse();
    rows.into_iter().map(|row| (row.action, row.entity)).collect()
}

/// An open alert, for somebody to take on.
async fn alert(world: &World) {
    for statement in [
        "INSERT INTO route (id, slug, title, origin, matcher, min_severity, include_baseline, include_rule_changes, wait_s,
                            interval_s, repeat_s, enabled, created_s)
         VALUES (1, 'all', 'all', 'ui', '', 'warning', 0, 0, 60, 900, 86400, 1, 1)",
        "INSERT INTO alert (id, route_id, key, state, severity, opened_event, last_event, opened_s, title, facts, why, by_what,
                            by_key)
         VALUES (1, 1, 'finding:7', 'firing', 'error', 1, 1, 1, 'x', '{}', '[]', 'target', 'tgt_1')",
    ] {
        world.write(statement).await;
    }
}

#[tokio::test]
async fn every_write_is_noted_once_by_page_and_by_program() {
    let world = World::full().await;
    alert(&world).await;
    let target = world.target("sound").await.trim_start_matches("/targets/").to_owned();
    let until = "2026-12-20T00:00:00Z";
    let silence = json!({ "match": "owner:harbour", "reason": "moving", "until": until });
    let waiver = json!({ "rule": "a2a/*", "match": "owner:harbour", "reason": "old", "until": until });
    let window = json!({ "title": "Backups", "match": "owner:harbour", "cron": "0 3 * * 0", "minutes": 60 });
    let hook = json!({ "name": "team", "url": "https://hooks.example.com/HIDDEN", "secret": SECRET });

    form(&world, "/silences", "match=owner%3Aharbour&reason=work&hours=2").await;
    form(&world, "/silences/1/end", "").await;
    api(&world, "POST", "/api/v1/silences", None, &silence).await;
    api(&world, "DELETE", "/api/v1/silences/2", None, &json!({})).await;
    form(&world, "/waivers", "rule=a2a%2F*&match=owner%3Aharbour&reason=old&days=2").await;
    form(&world, "/waivers/1/end", "").await;
    api(&world, "POST", "/api/v1/waivers", None, &waiver).await;
    api(&world, "DELETE", "/api/v1/waivers/2", None, &json!({})).await;
    form(&world, "/maintenance", "title=x&match=owner%3Aharbour&zone=UTC&cron=0+3+*+*+0&minutes=60").await;
    form(&world, "/maintenance/1/end", "").await;
    api(&world, "POST", "/api/v1/maintenance", None, &window).await;
    api(&world, "DELETE", "/api/v1/maintenance/2", None, &json!({})).await;
    form(&world, "/alerts/1/acknowledge", "note=mine&by=Ada").await;
    api(&world, "POST", "/api/v1/alerts/1/acknowledge", None, &json!({ "note": "still mine", "hours": 2 })).await;
    api(&world, "POST", "/api/v1/webhooks", None, &hook).await;
    api(&world, "PATCH", "/api/v1/webhooks/team", None, &json!({ "min_severity": "error", "secret": SECRET })).await;
    api(&world, "POST", "/api/v1/webhooks/team/rotate", None, &json!({ "grace_hours": 0 })).await;
    api(&world, "POST", "/api/v1/webhooks/team/pause", None, &json!({})).await;
    api(&world, "POST", "/api/v1/webhooks/team/resume", None, &json!({})).await;
    form(&world, "/webhooks/team", "match=owner%3Apier&format=generic&do=save").await;
    form(&world, "/webhooks/team/rotate", "hours=0&force=yes").await;
    form(&world, "/webhooks/team/disable", "").await;
    form(&world, "/webhooks/team/enable", "replay=yes").await;
    form(&world, "/webhooks/team/remove", "name=team").await;
    form(&world, "/webhooks", "name=other&url=https%3A%2F%2Fhooks.example.com%2FHIDDEN&format=generic&do=save").await;
    api(&world, "DELETE", "/api/v1/webhooks/other", None, &json!({})).await;
    form(&world, &format!("/targets/{target}/recheck"), "").await;
    form(&world, &format!("/targets/{target}/pause"), "").await;
    form(&world, &format!("/targets/{target}/resume"), "").await;
    form(&world, "/crawls/pause", "").await;
    form(&world, "/crawls/resume", "").await;
    api(&world, "POST", "/api/v1/deploys", None, &json!({ "target": target, "version": "2" })).await;

    let of = |pairs: &[(&str, &str)]| pairs.iter().map(|(a, e)| ((*a).to_owned(), (*e).to_owned())).collect::<Vec<_>>();
    let mut wanted = Vec::new();
    for what in ["silence", "waiver", "maintenance"] {
        for n in 1..=2 {
            wanted.extend(of(&[
                (&format!("{what}.add"), &format!("{what}:{n}")),
                (&format!("{what}.end"), &format!("{what}:{n}")),
            ]));
        }
    }
    wanted.extend(of(&[("alert.acknowledge", "alert:1"); 2]));
    for action in
        ["add", "change", "rotate", "pause", "resume", "change", "rotate", "pause", "resume", "replay", "remove"]
    {
        wanted.extend(of(&[(&format!("webhook.{action}"), "webhook:team")]));
    }
    wanted.extend(of(&[("webhook.add", "webhook:other"), ("webhook.remove", "webhook:other")]));
    for action in ["recheck", "pause", "resume"] {
        wanted.extend(of(&[(&format!("target.{action}"), &format!("target:{target}"))]));
    }
    let deploy = world.store.deploys(None, None, 9).await.unwrap().iter().find(|one| one.is_told).unwrap().id;
    wanted.extend(of(&[
        ("crawls.pause", "crawls"),
        ("crawls.resume", "crawls"),
        ("deploy.tell", &format!("deploy:{deploy}")),
    ]));
    assert_eq!(noted(&world).await, wanted);

    let whole = format!("{:?}", world.store.noted(i64::MAX, None, 1_000).await.unwrap());
    for secret in [SECRET, "whsec_", "HIDDEN"] {
        assert!(!whole.contains(secret), "{secret}");
    }
    let taken = world.store.noted(i64::MAX, Some("alert:1"), 9).await.unwrap();
    assert_eq!(taken[0].before, Some(json!({ "by": "Ada", "note": "mine", "until_s": null })));
    assert_eq!(taken[0].after.as_ref().unwrap()["by"], "operator");
    assert_eq!((taken[0].actor.as_str(), taken[0].ip.as_deref()), ("operator", Some("127.0.0.1")));
}

#[tokio::test]
async fn what_was_refused_or_only_tried_is_not_noted_and_a_token_is_named_with_what_it_may() {
    let world = World::empty().await;
    let pier = token(&world, 1, Scope::AlertsWrite, Some("pier")).await;
    let silence = |of: &str| json!({ "match": of, "reason": "moving", "until": "2026-12-20T00:00:00Z" }).to_string();
    let post =
        async |path: &str, body: String| sent(&world, "POST", path, Some(&pier), "application/json", body).await.status;
    assert_eq!(post("/api/v1/silences", silence("owner:harbour")).await, StatusCode::FORBIDDEN);
    assert_eq!(post("/api/v1/silences?dry_run=true", silence("owner:pier")).await, StatusCode::OK);
    assert!(noted(&world).await.is_empty());
    assert_eq!(post("/api/v1/silences", silence("owner:pier")).await, StatusCode::CREATED);
    let rows = world.store.noted(i64::MAX, None, 9).await.unwrap();
    assert_eq!(rows[0].actor, "token 1 “pier” (alerts:write, only pier)");
    assert_eq!(rows[0].ip.as_deref(), Some("192.0.2.7"));
    assert!(!format!("{rows:?}").contains(&pier[..12]), "of a token only the number is kept");
}

#[tokio::test]
async fn the_audit_is_for_the_person_at_this_machine_and_for_tokens_that_allow_everything() {
    let world = World::empty().await;
    let (admin, writer) =
        (token(&world, 1, Scope::Admin, None).await, token(&world, 2, Scope::AlertsWrite, None).await);
    let get = async |path: &str, token: Option<&str>| sent(&world, "GET", path, token, "", String::new()).await;
    for path in ["/settings/audit", "/api/v1/audit"] {
        assert_eq!(world.get(path).await.status, StatusCode::FORBIDDEN, "{path}");
        assert_eq!(get(path, Some(&writer)).await.status, StatusCode::FORBIDDEN, "{path}");
        assert_eq!(get(path, Some(&admin)).await.status, StatusCode::OK, "{path}");
        assert_eq!(get(path, None).await.status, StatusCode::OK, "{path}");
    }
    assert!(get("/settings/audit", None).await.words().contains("Nobody has changed anything yet."));
    form(&world, "/silences", "match=owner%3Aharbour&reason=%3Cb%3Ework&hours=2&author=Ada").await;
    form(&world, "/silences/1/end", "").await;
    let page = get("/settings/audit", None).await;
    assert!(page.words().contains("The last to change anything was operator"), "{}", page.words());
    assert!(page.body.contains("silence.add") && page.body.contains("&#60;b&#62;work"), "{}", page.body);
    assert!(page.body.contains("entity=silence%3A1"), "{}", page.body);
    let one = get("/settings/audit?entity=silence:2", None).await;
    assert!(one.words().contains("Nobody has changed silence:2 yet."), "{}", one.words());
    let first = get("/api/v1/audit?limit=1", None).await.json();
    assert_eq!((&first["items"][0]["action"], &first["next"]), (&json!("silence.end"), &json!("2")), "{first}");
    let then = get("/api/v1/audit?limit=1&cursor=2&entity=silence:1", None).await.json();
    assert_eq!((&then["items"][0]["action"], then.get("next")), (&json!("silence.add"), None), "{then}");
    let csv = get("/settings/audit?format=csv", None).await;
    assert_eq!(csv.body.lines().next(), Some("id,at_s,actor,action,entity,before,after,ip"));
    assert_eq!(csv.body.lines().count(), 3);
}
