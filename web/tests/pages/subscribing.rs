//! Subscribing on pages and through the API: what is typed is tried before it is kept, and what is secret is seen once.

use axum::body::Body;
use axum::http::{Request, StatusCode, header};
use plumbline_alerts::settings::WebhookSetting;
use plumbline_store::hooks::Origin;
use plumbline_store::tokens::{NewToken, Scope, text_of};
use serde_json::{Value, json};

use crate::support::{Answer, NOW, World};

/// A request as somebody sends it: from here, or from elsewhere with or without a token.
async fn sent(world: &World, method: &str, path: &str, who: Option<&str>, body: (&str, String)) -> Answer {
    let mut request = Request::builder()
        .method(method)
        .uri(path)
        .header(header::HOST, "127.0.0.1:8080")
        .header(header::CONTENT_TYPE, body.0);
    if let Some(token) = who.filter(|who| who.starts_with("plb_")) {
        request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
    }
    let mut request = request.body(Body::from(body.1)).unwrap();
    let peer: std::net::SocketAddr =
        if who == Some("here") { "127.0.0.1:4711" } else { "192.0.2.7:4711" }.parse().unwrap();
    request.extensions_mut().insert(axum::extract::ConnectInfo(peer));
    world.ask(request).await
}

async fn form(world: &World, path: &str, who: Option<&str>, fields: &[(&str, &str)]) -> Answer {
    let quoted = |text: &str| {
        text.bytes()
            .map(|b| if b.is_ascii_alphanumeric() { char::from(b).to_string() } else { format!("%{b:02X}") })
            .collect::<String>()
    };
    let fields: Vec<String> = fields.iter().map(|(name, value)| format!("{name}={}", quoted(value))).collect();
    sent(world, "POST", path, who, ("application/x-www-form-urlencoded", fields.join("&"))).await
}

async fn api(world: &World, method: &str, path: &str, who: Option<&str>, body: &Value) -> Answer {
    sent(world, method, path, who, ("application/json", body.to_string())).await
}

async fn token(world: &World, number: u8, scope: Scope, owner: Option<&str>) -> String {
    let text = text_of([number; 32]);
    let new = NewToken {
        title: "Ada".to_owned(),
        scopes: vec![scope],
        owner: owner.map(str::to_owned),
        created_by: "test".into(),
        expires_s: None,
    };
    world.store.create_token(&text, &new, NOW).await.unwrap();
    text
}

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const TEAM: [(&str, &str); 6] = [
    ("name", "team"),
    ("url", "https://hooks.example.com/services/T0/HIDDEN"),
    ("format", "generic"),
    ("match", "owner:harbour"),
    ("types", "finding.* target.down"),
    ("secret", SECRET),
];

fn with(
    fields: &[(&'static str, &'static str)],
    more: &[(&'static str, &'static str)],
) -> Vec<(&'static str, &'static str)> {
    fields.iter().chain(more).copied().collect()
}

#[tokio::test]
async fn a_receiver_is_tried_before_it_is_kept_and_then_kept_with_its_secret_shown_once() {
    let world = World::empty().await;
    let page = world.get("/webhooks/new?match=owner:harbour").await;
    assert!(page.body.contains("whsec_") && page.body.contains("value=\"owner:harbour\""), "{}", page.body);
    assert_eq!(page.body.matches("<script").count(), 1, "our own file and no other");

    let tried = form(&world, "/webhooks", Some("here"), &with(&TEAM, &[("do", "test"), ("kind", "target.down")])).await;
    assert_eq!(tried.status, StatusCode::OK, "{}", tried.words());
    let words = tried.words();
    assert!(words.contains("It was accepted: status 202"), "{words}");
    assert!(
        words.contains("webhook-signature: v1,") && words.contains("x-heard: yes") && words.contains("thanks"),
        "{words}"
    );
    assert!(words.contains("openssl dgst -sha256"), "{words}");
    assert!(world.store.endpoints().await.unwrap().is_empty(), "a test keeps nothing");

    let shown = form(&world, "/webhooks", Some("here"), &with(&TEAM, &[("do", "preview"), ("kind", "ping")])).await;
    assert!(shown.words().contains("Made of the example of ping"), "{}", shown.words());

    let kept = form(&world, "/webhooks", Some("here"), &with(&TEAM, &[("do", "save")])).await;
    assert_eq!(kept.status, StatusCode::OK, "{}", kept.words());
    assert!(kept.body.contains(SECRET) && kept.header("cache-control") == "no-store", "{}", kept.body);
    for page in ["/webhooks", "/webhooks/team", "/webhooks/team/edit", "/api/v1/webhooks", "/api/v1/webhooks/team"] {
        let answer = world.get(page).await;
        assert_eq!(answer.status, StatusCode::OK, "{page}: {}", answer.body);
        assert!(!answer.body.contains(SECRET) && !answer.body.contains("HIDDEN"), "{page}: {}", answer.body);
    }
    let again = form(&world, "/webhooks", Some("here"), &with(&TEAM, &[("do", "save")])).await;
    assert_eq!(again.status, StatusCode::BAD_REQUEST);
    assert!(again.words().contains("there already") && again.body.contains("owner:harbour"), "{}", again.words());
}

#[tokio::test]
async fn what_is_wrong_stands_above_the_form_and_the_guard_judges_what_was_typed() {
    let world = World::empty().await;
    for (field, value, says) in [
        ("url", "https://refused.example/x", "not there"),
        ("url", "ftp://hooks.example.com/x", "address"),
        ("url", "https://me:pass@hooks.example.com/x", "user name or password"),
        ("match", "onwer:x", "onwer"),
        ("types", "no.such", "no.such"),
        ("name", "Team!", "lower-case"),
        ("secret", "whsec_AAAA", "24 to 64 bytes"),
        ("per_minute", "many", "per_minute"),
        ("format", "email", "mailto:"),
    ] {
        let answer = form(&world, "/webhooks", Some("here"), &with(&TEAM, &[(field, value), ("do", "save")])).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{field}: {}", answer.words());
        assert!(answer.words().contains(says), "{field}: {}", answer.words());
    }
    let template = [("format", "template"), ("template", "{{ data.title }}"), ("do", "save")];
    let answer = form(&world, "/webhooks", Some("here"), &with(&TEAM, &template)).await;
    assert!(answer.words().contains("it makes no JSON"), "{}", answer.words());
    assert!(world.store.endpoints().await.unwrap().is_empty());
}

#[tokio::test]
async fn a_form_is_sent_from_here_or_with_a_token_that_allows_it() {
    let world = World::empty().await;
    let writer = token(&world, 1, Scope::AlertsWrite, None).await;
    let reader = token(&world, 2, Scope::Read, None).await;
    let pier = token(&world, 3, Scope::AlertsWrite, Some("pier")).await;
    let save = with(&TEAM, &[("do", "save")]);
    assert_eq!(form(&world, "/webhooks", None, &save).await.status, StatusCode::UNAUTHORIZED);
    for (text, status) in
        [("plb_wrong", StatusCode::UNAUTHORIZED), (&reader, StatusCode::FORBIDDEN), (&pier, StatusCode::FORBIDDEN)]
    {
        assert_eq!(form(&world, "/webhooks", Some(text), &save).await.status, status, "{text}");
        let mut typed = save.clone();
        typed.push(("api_token", Box::leak(text.to_owned().into_boxed_str())));
        assert_eq!(form(&world, "/webhooks", None, &typed).await.status, status, "{text} in the form");
    }
    let mut typed = save.clone();
    typed.push(("api_token", Box::leak(writer.clone().into_boxed_str())));
    assert_eq!(form(&world, "/webhooks", None, &typed).await.status, StatusCode::OK);
    // From elsewhere the pages offer the field, from here they do not.
    assert!(world.get("/webhooks/new").await.body.contains("name=\"api_token\""));
    // What a token of one owner may not touch, it may not end either.
    for path in ["/webhooks/team/disable", "/webhooks/team/rotate", "/webhooks/team/test", "/webhooks/team/edit"] {
        let answer = form(&world, path, Some(&pier), &[]).await;
        assert!(
            matches!(answer.status, StatusCode::FORBIDDEN | StatusCode::METHOD_NOT_ALLOWED),
            "{path}: {}",
            answer.status
        );
    }
    let silence = [("match", "owner:pier"), ("reason", "work"), ("hours", "1")];
    assert_eq!(form(&world, "/silences", Some(&pier), &silence).await.status, StatusCode::SEE_OTHER);
    assert!(world.get("/silences").await.words().contains("Ada"), "the token's title is the author");
}

#[tokio::test]
async fn a_secret_is_changed_with_both_signing_for_a_while_and_a_third_has_to_wait() {
    let world = World::empty().await;
    form(&world, "/webhooks", Some("here"), &with(&TEAM, &[("do", "save")])).await;
    let rotated = form(&world, "/webhooks/team/rotate", Some("here"), &[("hours", "24")]).await;
    assert!(rotated.body.contains("whsec_") && !rotated.body.contains(SECRET), "{}", rotated.body);
    let keys = world.get_json("/api/v1/webhooks/team").await.json()["keys"].clone();
    assert_eq!((&keys[0]["role"], &keys[1]["role"]), (&json!("current"), &json!("previous")), "{keys}");
    assert_eq!(keys[1]["expires_s"], NOW + 24 * 3_600);
    let tried = form(&world, "/webhooks/team/test", Some("here"), &[("kind", "ping")]).await.words();
    assert_eq!(tried.matches("v1,").count(), 3, "both sign, and the page names the scheme once: {tried}");
    let third = form(&world, "/webhooks/team/rotate", Some("here"), &[("hours", "24")]).await;
    assert_eq!(third.status, StatusCode::CONFLICT);
    assert!(third.body.contains("lock out"), "{}", third.body);
    assert_eq!(form(&world, "/webhooks/team/rotate", Some("here"), &[("hours", "0")]).await.status, StatusCode::OK);
    let keys = world.get_json("/api/v1/webhooks/team").await.json()["keys"].clone();
    assert_eq!(keys.as_array().unwrap().len(), 1, "an emergency leaves no other: {keys}");
}

#[tokio::test]
async fn programs_subscribe_change_pause_and_take_away() {
    let world = World::empty().await;
    let writer = token(&world, 1, Scope::AlertsWrite, None).await;
    let (who, path) = (Some(writer.as_str()), "/api/v1/webhooks");
    let new = json!({
        "name": "pager", "url": "https://events.example.com/v2/enqueue", "format": "pagerduty", "token": "R0UT1NG",
        "match": "tag:tier=1", "min_severity": "error",
        "quiet_hours": { "zone": "Europe/Berlin", "from": "22:00", "to": "07:00" },
    });
    assert_eq!(api(&world, "POST", path, None, &new).await.status, StatusCode::UNAUTHORIZED);
    let dry = api(&world, "POST", "/api/v1/webhooks?dry_run=true", who, &new).await;
    assert_eq!((dry.status, &dry.json()["dry_run"]), (StatusCode::OK, &json!(true)), "{}", dry.body);
    assert!(!dry.body.contains("R0UT1NG"), "{}", dry.body);
    let made = api(&world, "POST", path, who, &new).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.body);
    assert_eq!(made.header("location"), "/api/v1/webhooks/pager");
    assert_eq!(api(&world, "POST", path, who, &new).await.status, StatusCode::CONFLICT);
    let routes = world.store.routes().await.unwrap();
    assert_eq!((routes[0].is.slug.as_str(), routes[0].is.min_severity.as_str()), ("pager", "error"));
    assert_eq!(routes[0].origin, Origin::Ui);

    for (body, says) in [
        (json!({ "name": "x", "url": "https://a.example", "colour": "red" }), "colour"),
        (json!({ "name": "x", "url": "https://refused.example" }), "not there"),
        (json!({ "name": "x", "url": "https://a.example", "format": "pagerduty" }), "routing key"),
        (json!([]), ""),
    ] {
        let answer = api(&world, "POST", path, who, &body).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{body}: {}", answer.body);
        assert!(
            answer.header("content-type").contains("problem+json") && answer.body.contains(says),
            "{body}: {}",
            answer.body
        );
    }

    let path = "/api/v1/webhooks/pager";
    let patched = api(&world, "PATCH", path, who, &json!({ "min_severity": "critical", "quiet_hours": null })).await;
    assert_eq!(patched.status, StatusCode::OK, "{}", patched.body);
    let route = &world.store.routes().await.unwrap()[0];
    assert_eq!((route.is.min_severity.as_str(), &route.is.quiet_hours), ("critical", &None));
    let elsewhere = api(&world, "PATCH", path, who, &json!({ "url": "https://evil.example/x" })).await;
    assert_eq!(elsewhere.status, StatusCode::BAD_REQUEST, "its token does not go elsewhere: {}", elsewhere.body);
    let tested = api(&world, "POST", &format!("{path}/test"), who, &json!({ "type": "target.down" })).await;
    assert_eq!(tested.json()["is_accepted"], true, "{}", tested.body);
    assert!(!tested.body.contains("R0UT1NG"), "{}", tested.body);
    let paused = api(&world, "POST", &format!("{path}/pause"), who, &json!({})).await.json();
    assert_eq!((&paused["state"], &paused["state_note"]), (&json!("disabled"), &json!("paused by Ada")));
    assert_eq!(api(&world, "POST", &format!("{path}/resume"), who, &json!({})).await.json()["state"], "active");
    assert_eq!(api(&world, "DELETE", path, who, &json!({})).await.status, StatusCode::NO_CONTENT);
    assert_eq!(api(&world, "DELETE", path, who, &json!({})).await.status, StatusCode::NOT_FOUND);
    assert!(world.store.routes().await.unwrap().is_empty(), "its route went with it");

    let unkept = json!({ "webhook": { "name": "x", "url": "https://a.example", "secret": SECRET }, "type": "ping" });
    let tried = api(&world, "POST", "/api/v1/webhook-tests", who, &unkept).await.json();
    assert!(tried["signed"].as_str().unwrap().starts_with("msg_"), "{tried}");
    assert!(world.store.endpoints().await.unwrap().is_empty());
}

#[tokio::test]
async fn what_stands_in_the_settings_file_is_changed_there_only() {
    let world = World::empty().await;
    let setting = WebhookSetting { name: "filed".into(), ..WebhookSetting::default() };
    let endpoint = setting.endpoint("https://hooks.example.com/x", "").unwrap();
    world.store.put_endpoint(&endpoint, Origin::File, NOW).await.unwrap();
    let path = "/api/v1/webhooks/filed";
    for (method, path) in [("PATCH", path), ("DELETE", path), ("POST", "/api/v1/webhooks/filed/rotate")] {
        let answer = api(&world, method, path, Some("here"), &json!({})).await;
        assert_eq!(answer.status, StatusCode::CONFLICT, "{method} {path}: {}", answer.body);
        assert!(answer.body.contains("settings file"), "{}", answer.body);
    }
    assert_eq!(world.get("/webhooks/filed/edit").await.status, StatusCode::CONFLICT);
    assert_eq!(
        form(&world, "/webhooks/filed/remove", Some("here"), &[("name", "filed")]).await.status,
        StatusCode::CONFLICT
    );
    assert!(
        world.get("/webhooks/filed").await.words().contains("It stands in the settings file and is changed there.")
    );
    assert_eq!(
        form(&world, "/webhooks/filed/test", Some("here"), &[]).await.status,
        StatusCode::OK,
        "it may be tested"
    );
}

#[tokio::test]
async fn a_receiver_is_taken_away_only_by_its_name() {
    let world = World::empty().await;
    form(&world, "/webhooks", Some("here"), &with(&TEAM, &[("do", "save")])).await;
    let slip = form(&world, "/webhooks/team/remove", Some("here"), &[("name", "tem")]).await;
    assert_eq!(slip.status, StatusCode::BAD_REQUEST);
    let changed =
        form(&world, "/webhooks/team", Some("here"), &[("match", "owner:pier"), ("format", "generic"), ("do", "save")])
            .await;
    assert_eq!(changed.status, StatusCode::SEE_OTHER, "{}", changed.words());
    let kept = world.store.endpoint("team").await.unwrap();
    assert_eq!(
        (kept.is.matcher.as_str(), kept.is.url.as_str()),
        ("owner:pier", "https://hooks.example.com/services/T0/HIDDEN")
    );
    assert_eq!(
        form(&world, "/webhooks/team/remove", Some("here"), &[("name", "team")]).await.status,
        StatusCode::SEE_OTHER
    );
    assert_eq!(world.get("/webhooks/team").await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn programs_keep_quiet_what_they_may_and_look_before() {
    let world = World::full().await;
    let writer = token(&world, 1, Scope::AlertsWrite, None).await;
    let pier = token(&world, 2, Scope::AlertsWrite, Some("pier")).await;
    let (who, until) = (Some(writer.as_str()), "2026-12-20T00:00:00Z");
    let silence = json!({ "match": "owner:harbour", "reason": "moving", "until": until });
    let dry = api(&world, "POST", "/api/v1/silences?dry_run=true", who, &silence).await.json();
    assert_eq!((&dry["dry_run"], &dry["open_alerts"]), (&json!(true), &json!(0)), "{dry}");
    assert!(world.get_json("/api/v1/silences").await.json()["items"].as_array().unwrap().is_empty());
    assert_eq!(api(&world, "POST", "/api/v1/silences", Some(&pier), &silence).await.status, StatusCode::FORBIDDEN);
    let made = api(&world, "POST", "/api/v1/silences", who, &silence).await;
    assert_eq!((made.status, &made.json()["author"]), (StatusCode::CREATED, &json!("Ada")), "{}", made.body);
    for (path, body) in [
        ("/api/v1/silences", json!({ "match": "", "reason": "x", "until": until })),
        ("/api/v1/silences", json!({ "match": "onwer:x", "reason": "x", "until": until })),
        ("/api/v1/silences", json!({ "match": "owner:x", "reason": "x", "until": "2027-12-20T00:00:00Z" })),
        ("/api/v1/waivers", json!({ "rule": "a2a/no-such", "match": "owner:x", "reason": "x", "until": until })),
        ("/api/v1/maintenance", json!({ "title": "x", "match": "owner:x", "minutes": 60 })),
    ] {
        let answer = api(&world, "POST", path, who, &body).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{path} {body}: {}", answer.body);
    }
    let waiver = json!({ "rule": "a2a/*", "match": "target:blocked.example*", "reason": "old", "until": until });
    let dry = api(&world, "POST", "/api/v1/waivers?dry_run=true", who, &waiver).await.json();
    assert!(dry["covers"]["findings"].as_i64().unwrap() >= 1, "{dry}");
    assert_eq!(api(&world, "POST", "/api/v1/waivers", who, &waiver).await.status, StatusCode::CREATED);
    let window = json!({ "title": "Backups", "match": "owner:harbour", "cron": "0 3 * * 0", "minutes": 60 });
    let dry = api(&world, "POST", "/api/v1/maintenance?dry_run=true", who, &window).await.json();
    assert_eq!(dry["next"].as_array().unwrap().len(), 3, "{dry}");
    assert_eq!(api(&world, "POST", "/api/v1/maintenance", who, &window).await.status, StatusCode::CREATED);
    for kind in ["silences", "waivers", "maintenance"] {
        let path = format!("/api/v1/{kind}/1");
        assert_eq!(api(&world, "DELETE", &path, Some(&pier), &json!({})).await.status, StatusCode::FORBIDDEN, "{kind}");
        assert_eq!(api(&world, "DELETE", &path, who, &json!({})).await.status, StatusCode::NO_CONTENT, "{kind}");
    }
    let note = json!({ "note": "mine" });
    assert_eq!(api(&world, "POST", "/api/v1/alerts/7/acknowledge", who, &note).await.status, StatusCode::NOT_FOUND);
    assert!(world.get_json("/api/v1/alerts").await.json()["items"].as_array().unwrap().is_empty());
}
