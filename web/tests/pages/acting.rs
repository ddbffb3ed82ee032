//! The pages that act: alerts, silences, maintenance, waivers, webhooks.

use axum::body::Body;
use axum::http::{Request, StatusCode, header};
use plumbline_store::CrawlId;
use plumbline_store::hooks::{Mode, NewEndpoint, NewMessage, Origin};
use plumbline_store::words::EventKind;

use crate::support::{Answer, NOW, World};

/// A form as the person at this machine sends it.
async fn send(world: &World, path: &str, form: &'static str) -> Answer {
    let mut request = Request::post(path)
        .header(header::HOST, "127.0.0.1:8080")
        .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
        .body(Body::from(form))
        .unwrap();
    let here: std::net::SocketAddr = "127.0.0.1:40000".parse().unwrap();
    request.extensions_mut().insert(axum::extract::ConnectInfo(here));
    world.ask(request).await
}

#[tokio::test]
async fn every_acting_page_answers_when_nothing_was_done_yet() {
    let world = World::empty().await;
    for page in ["/alerts", "/routes", "/silences", "/maintenance", "/waivers", "/webhooks", "/webhooks/dead"] {
        let html = world.get(page).await;
        assert_eq!(html.status, StatusCode::OK, "{page}: {}", html.body);
        assert!(world.get_json(page).await.json().is_object(), "{page}");
    }
    assert!(world.get("/alerts").await.words().contains("No alert leads anywhere yet."));
    for page in ["/alerts/groups/7", "/webhooks/none"] {
        assert_eq!(world.get(page).await.status, StatusCode::NOT_FOUND, "{page}");
    }
    let types = world.get("/api/v1/event-types").await.json();
    let regressed = types.as_array().unwrap().iter().find(|one| one["type"] == "finding.regressed").unwrap();
    assert_eq!(regressed["example"]["data"]["finding"]["state"], "open");
}

#[tokio::test]
async fn a_silence_has_a_reason_and_an_end_and_covers_something() {
    let world = World::empty().await;
    for (form, field) in [
        ("match=owner%3Aharbour&reason=&hours=2", "reason"),
        ("match=&reason=work&hours=2", "match"),
        ("match=onwer%3Aharbour&reason=work&hours=2", "onwer"),
        ("match=owner%3Aharbour&reason=work&hours=9999", "hours"),
    ] {
        let answer = send(&world, "/silences", form).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{form}");
        assert!(answer.body.contains(field), "{form}: {}", answer.words());
    }
    let done = send(&world, "/silences", "match=owner%3Aharbour&reason=Work+on+the+pier&author=Ada&hours=2").await;
    assert_eq!(done.status, StatusCode::SEE_OTHER);
    let silences = world.get_json("/silences").await.json();
    assert_eq!(silences["silences"][0]["ends_s"], NOW + 7_200);
    assert!(world.get("/silences").await.words().contains("Work on the pier"));
    assert!(world.get("/silences?match=owner:harbour").await.words().contains("0 open alerts match"));
    assert_eq!(send(&world, "/silences/1/end", "").await.status, StatusCode::SEE_OTHER);
    assert_eq!(send(&world, "/silences/1/end", "").await.status, StatusCode::NOT_FOUND, "it is over");
}

#[tokio::test]
async fn only_the_person_at_this_machine_acts() {
    let world = World::empty().await;
    for path in ["/silences", "/maintenance", "/waivers", "/alerts/1/acknowledge", "/webhooks/x/enable"] {
        let request = Request::post(path)
            .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(Body::from("match=owner:x&reason=x&hours=1"))
            .unwrap();
        assert_eq!(world.ask(request).await.status, StatusCode::UNAUTHORIZED, "{path}");
    }
}

#[tokio::test]
async fn a_window_that_comes_again_shows_its_next_three_times() {
    let world = World::empty().await;
    let form = "title=Backups&match=owner%3Aharbour&zone=Europe%2FBerlin&cron=0+3+*+*+*&minutes=60";
    assert_eq!(send(&world, "/maintenance", form).await.status, StatusCode::SEE_OTHER);
    let windows = world.get_json("/maintenance").await.json();
    assert_eq!(windows["windows"][0]["next"].as_array().unwrap().len(), 3);
    let wrong = "title=Backups&match=owner%3Aharbour&zone=Berlin&cron=0+3+*+*+*&minutes=60";
    assert_eq!(send(&world, "/maintenance", wrong).await.status, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn a_waiver_is_about_a_rule_that_there_is() {
    let world = World::empty().await;
    let form = "rule=a2a%2F*&match=owner%3Aharbour&reason=Known&days=30";
    assert_eq!(send(&world, "/waivers", form).await.status, StatusCode::SEE_OTHER);
    assert!(world.get("/waivers").await.words().contains("Known"));
    let wrong = "rule=a2a%2Fno-such&match=owner%3Aharbour&reason=Known&days=30";
    assert_eq!(send(&world, "/waivers", wrong).await.status, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn a_receivers_address_is_hidden_and_its_messages_are_shown() {
    let world = World::empty().await;
    let new = NewEndpoint {
        slug: "team".to_owned(),
        title: "Team".to_owned(),
        url: "https://hooks.example.com/services/T0/SECRET".to_owned(),
        format: "slack".to_owned(),
        mode: Mode::Groups,
        types: Vec::new(),
        matcher: String::new(),
        include_baseline: false,
        per_minute: 30,
        options: "{}".to_owned(),
        digest: None,
    };
    let id = world.store.put_endpoint(&new, Origin::File, NOW).await.unwrap();
    let message = NewMessage {
        id: "msg_01K0PLUMB1NE00000000000000".to_owned(),
        kind: "ping".to_owned(),
        event: None,
        group: None,
        at_s: NOW,
        body: br#"{"type":"ping","data":{"message":"<script>"}}"#.to_vec(),
        to: vec![id],
    };
    world.store.queue_message(&message, NOW).await.unwrap();
    for page in ["/webhooks", "/webhooks/team", "/webhooks/team/deliveries/msg_01K0PLUMB1NE00000000000000"] {
        let html = world.get(page).await;
        assert_eq!(html.status, StatusCode::OK, "{page}: {}", html.body);
        assert!(!html.body.contains("SECRET") && !html.body.contains("<script>"), "{page}");
        assert!(!world.get_json(page).await.body.contains("SECRET"), "{page}");
    }
    let page = "/webhooks/team/deliveries/msg_01K0PLUMB1NE00000000000000";
    assert!(world.get(page).await.words().contains("ping is pending."));
    assert_eq!(send(&world, &format!("{page}/replay"), "").await.status, StatusCode::SEE_OTHER);
    assert_eq!(send(&world, "/webhooks/team/disable", "").await.status, StatusCode::SEE_OTHER);
    assert!(world.get("/webhooks").await.words().contains("1 receiver and it is switched off."));
    assert_eq!(send(&world, "/webhooks/team/enable", "replay=yes").await.status, StatusCode::SEE_OTHER);
}

#[tokio::test]
async fn what_is_seen_during_planned_work_is_a_gap_and_no_downtime() {
    let world = World::full().await;
    let target = world.target("sound").await;
    let badge = format!("/badges/target/{}.json?metric=uptime90", target.trim_start_matches("/targets/"));
    let up = async || world.get_json(&badge).await.json()["message"].as_str().unwrap().to_owned();
    let before = up().await;
    assert!(before.starts_with("100"), "{before}");
    let plan = "title=Backups&match=target%3Asound.example*&zone=UTC&starts=2026-11-30T18%3A07%3A00Z&minutes=60";
    assert_eq!(send(&world, "/maintenance", plan).await.status, StatusCode::SEE_OTHER);
    world.miss(CrawlId(1), "sound.example", NOW + 60).await;
    assert_eq!(up().await, before);
    let page = world.get(&format!("{target}/checks")).await;
    assert!(page.words().contains("1 look was during planned work, which counts for nothing."), "{}", page.words());
    assert!(page.body.contains("class=\"l-plan\"") && page.words().contains("in a maintenance window"));
    assert!(world.get(&target).await.words().contains("gap: planned work, throttled or our own fault"));

    assert_eq!(send(&world, "/maintenance/1/end", "").await.status, StatusCode::SEE_OTHER);
    world.miss(CrawlId(1), "sound.example", NOW + 120).await;
    assert!(up().await.starts_with("50"), "{}", up().await);
}

#[tokio::test]
async fn what_is_accepted_stays_where_it_is_and_is_counted_apart() {
    let world = World::full().await;
    let target = world.target("blocked").await;
    let findings = world.get_json(&format!("/api/v1{target}/findings")).await.json();
    let (id, rule) = (findings["items"][0]["id"].clone(), findings["items"][0]["rule"].as_str().unwrap().to_owned());
    assert_eq!(findings["items"][0]["waiver"], serde_json::Value::Null);

    let look = world.get(&format!("/waivers?rule={rule}&match=target:blocked.example*")).await.words();
    assert!(look.contains("It would cover 1 open finding now."), "{look}");
    let form = format!("rule={rule}&match=target:blocked.example*&reason=Gone+in+spring&author=Ada&days=30");
    assert_eq!(send(&world, "/waivers", Box::leak(form.into_boxed_str())).await.status, StatusCode::SEE_OTHER);

    let findings = world.get_json(&format!("/api/v1{target}/findings")).await.json();
    assert_eq!(findings["items"][0]["waiver"], 1, "{findings}");
    let page = world.get(&format!("/findings/{id}")).await.words();
    assert!(page.contains("Accepted by Ada until") && page.contains("Gone in spring"), "{page}");
    assert!(world.get(&target).await.words().contains("accepted for now"));
    assert!(world.get(&target).await.words().contains("Blocked"), "a waiver changes no verdict");
    let page = world.get(&format!("/rules/{rule}")).await.words();
    assert!(page.contains("of which 1 is accepted"), "{page}");
    let found = world.get_json("/targets?q=waived:yes").await.json();
    assert_eq!(found["targets"].as_array().unwrap().len(), 1, "{found}");
    assert!(world.get("/waivers").await.words().contains("1 open finding"));

    assert_eq!(send(&world, "/waivers/1/end", "").await.status, StatusCode::SEE_OTHER);
    let findings = world.get_json(&format!("/api/v1{target}/findings")).await.json();
    assert_eq!(findings["items"][0]["waiver"], serde_json::Value::Null);
    assert!(world.get_json("/targets?q=waived:yes").await.json()["targets"].as_array().unwrap().is_empty());
}

/// The events that a feed of regressions reads, for every finding of a target: nothing regresses within a test's minute.
async fn regressed(world: &World, target: &str) -> Vec<i64> {
    let findings = world.get_json(&format!("/api/v1{target}/findings")).await.json();
    let ids: Vec<i64> =
        findings["items"].as_array().unwrap().iter().map(|one| one["id"].as_i64().unwrap()).take(2).collect();
    for id in &ids {
        let statement = format!(
            "INSERT INTO event (id, at_s, kind, target_id, surface_id, rule_id, subject_id, note)
             SELECT (SELECT MAX(id) FROM event) + 1, {NOW} - 600, {}, {}, surface_id, rule_id, id, 'broke document'
             FROM finding WHERE id = {id}",
            EventKind::FindingRegressed.number(),
            target.trim_start_matches("/targets/"),
        );
        world.write(Box::leak(statement.into_boxed_str())).await;
    }
    ids
}

#[tokio::test]
async fn regressions_are_selected_and_taken_on_in_one_go_without_script() {
    let world = World::full().await;
    let ids = regressed(&world, &world.target("blocked").await).await;
    let page = world.get("/regressions").await;
    for id in &ids {
        assert!(page.body.contains(&format!("name=\"finding\" value=\"{id}\" form=\"take\"")), "{}", page.body);
    }
    assert!(page.body.contains("action=\"/regressions/acknowledge\"") && page.body.contains("id=\"take\""));
    assert!(page.words().contains("nobody has taken on 2 findings of this page yet"), "{}", page.words());
    assert!(page.body.contains("name=\"api_token\""), "from elsewhere a token is asked for");

    for (form, says) in
        [("note=mine", "Select the regressions"), ("finding=x&note=mine", "number"), ("finding=1", "note")]
    {
        let answer = send(&world, "/regressions/acknowledge", form).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{form}");
        assert!(answer.body.contains(says), "{form}: {}", answer.words());
    }
    let alert = format!(
        "INSERT INTO alert (id, route_id, key, state, severity, opened_event, last_event, opened_s, title, facts, why, by_what,
                            by_key)
         VALUES (1, 1, 'finding:{}', 'firing', 'error', 1, 1, 1, 'x', '{{}}', '[]', 'target', 'tgt_1')",
        ids[0]
    );
    world
        .write(
            "INSERT INTO route (id, slug, title, origin, matcher, min_severity, include_baseline, include_rule_changes, wait_s,
                                interval_s, repeat_s, enabled, created_s)
             VALUES (1, 'all', 'all', 'ui', '', 'warning', 0, 0, 60, 900, 86400, 1, 1)",
        )
        .await;
    world.write(Box::leak(alert.into_boxed_str())).await;
    let form =
        format!("finding={}&finding={}&finding=99999&note=Rolling+back&by=Ada&q=severity%3Aerror", ids[0], ids[1]);
    let done = send(&world, "/regressions/acknowledge", Box::leak(form.into_boxed_str())).await;
    assert_eq!((done.status, done.header("location")), (StatusCode::SEE_OTHER, "/regressions?q=severity%3Aerror"));
    let page = world.get("/regressions").await.words();
    assert_eq!(page.matches("taken on by Ada: Rolling back").count(), 2, "{page}");
    assert!(page.contains("somebody has taken on all that is open here"), "{page}");
    let alert = &world.store.all_open_alerts(9).await.unwrap()[0];
    assert_eq!((alert.state.as_str(), alert.ack_by.as_deref()), ("acknowledged", Some("Ada")));
    let rows = world.store.noted(i64::MAX, None, 9).await.unwrap();
    assert_eq!(
        (rows.len(), rows[0].action.as_str()),
        (2, "finding.acknowledge"),
        "what is no finding was not taken on"
    );
    // Whoever takes the alert on has taken on what it is about.
    send(&world, "/alerts/1/acknowledge", "note=My+turn&by=Grace").await;
    let page = world.get("/regressions").await.words();
    assert_eq!(
        (page.matches("taken on by Grace: My turn").count(), page.matches("taken on by Ada").count()),
        (1, 1),
        "{page}"
    );
}

#[test]
fn the_script_knows_the_key_that_selects_and_stays_small() {
    let script = include_str!("../../static/plumbline.js");
    assert!(script.contains("['x', 'select the row'") && script.len() < 15_000, "{} bytes", script.len());
}
