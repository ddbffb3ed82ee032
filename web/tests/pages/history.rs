//! The query language on the list of targets, and the pages of one target over time.

use axum::http::StatusCode;

use crate::support::{EVERY_S, NOW, SOUND, World};

/// A card that first was sound, then lost the binding of its interface and moved a skill, then was mended.
async fn changed_card() -> (World, String) {
    let world = World::empty().await;
    let crawl = world.walk_registry().await;
    world.add_card("moody.example", None).await;
    let broken = SOUND.replace("\"protocolBinding\": \"JSONRPC\", ", "").replace("Tide Tables", "Tide Tables Two");
    for (hours, document) in [(80, SOUND), (70, SOUND), (40, SOUND), (5, &broken), (4, &broken), (2, SOUND), (1, SOUND)]
    {
        world.see(crawl, "moody.example", document, NOW - hours * 3_600).await;
    }
    let target = world.target("moody").await;
    (world, target)
}

#[tokio::test]
async fn a_query_narrows_the_list_and_what_cannot_be_read_is_marked() {
    let world = World::full().await;
    for (query, count) in [
        ("headline:blocked", 1),
        ("-headline:blocked%20kind:a2a-agent", 3),
        ("rule:a2a/*", 1),
        ("owner:harbour", 4),
        ("host:sound.example", 1),
        ("source:official%20kind:mcp-server", 2),
        ("changed:%3C7d%20kind:a2a-agent%20sound", 1),
        ("kind:a2a-agent%20nobody", 0),
    ] {
        let json = world.get_json(&format!("/targets?q={query}")).await.json();
        assert_eq!(json["matching"], count, "{query}: {json}");
    }
    let wrong = world.get("/targets?q=headline:blocked%20hedline:sound").await;
    assert_eq!(wrong.status, StatusCode::BAD_REQUEST);
    assert!(wrong.body.contains("<mark>hedline:sound</mark>"), "{}", wrong.body);
    assert!(wrong.words().contains("Did you mean “headline:”?"));
    let problem = world.get_json("/targets?q=reach:up%20kind:none").await;
    assert_eq!(problem.header("content-type"), "application/problem+json");
    assert_eq!((problem.json()["word"]["at"].as_i64(), problem.json()["word"]["length"].as_i64()), (Some(9), Some(9)));
}

#[tokio::test]
async fn the_form_writes_the_query_and_leads_to_a_clean_address() {
    let world = World::full().await;
    let sent = world.get("/targets?q=tide&was=tide&kind=a2a-agent&headline=&reach=&profile=&rule=&sort=name").await;
    assert_eq!(
        (sent.status, sent.header("location")),
        (StatusCode::SEE_OTHER, "/targets?q=kind%3Aa2a-agent%20tide&sort=name")
    );
    let page = world.get("/targets?q=kind:a2a-agent%20headline:sound").await;
    assert!(page.body.contains("value=\"kind:a2a-agent headline:sound\""), "the field holds the whole query");
    assert!(page.body.contains("<option value=\"sound\" selected>"), "the choices stand as the query says");
    assert!(page.body.contains("value=\"kind:a2a-agent headline:sound reach:down\""), "and it offers how to go on");
    let nothing = world.get("/targets?q=kind:a2a-agent%20nobody").await.words();
    assert!(nothing.contains("words that begin with “nobody” drop (leaves 4)"), "{nothing}");
}

#[tokio::test]
async fn a_timeline_names_the_newest_change_and_draws_each_lane() {
    let (world, target) = changed_card().await;
    let page = world.get(&format!("{target}/timeline")).await;
    let words = page.words();
    assert!(words.contains("Newest change,"), "{words}");
    assert!(words.contains("Documents Agent card 3 versions"), "{words}");
    assert!(words.contains("a2a/interface-binding-required over, open 1 time"), "{words}");
    assert!(page.body.contains("class=\"l-open\"") && page.body.contains("class=\"l-up\""));
    let two_weeks = world.get(&format!("{target}/timeline?days=14")).await.words();
    assert!(
        two_weeks.contains("Lane 29 Nov, 18:07 to now In words") && !two_weeks.contains("at the earliest"),
        "{two_weeks}"
    );
    let only = world.get(&format!("{target}/timeline?what=documents")).await.words();
    assert!(only.contains("Serves another document") && !only.contains("regressed"), "{only}");
    assert_eq!(world.get(&format!("{target}/timeline?what=nothing")).await.status, StatusCode::BAD_REQUEST);
    assert_eq!(world.get(&format!("{target}/timeline?days=x")).await.status, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn every_finding_keeps_its_spans() {
    let (world, target) = changed_card().await;
    let json = world.get_json(&format!("{target}/findings")).await.json();
    let spans = json["spans"].as_array().unwrap();
    let span = spans.iter().find(|span| span["rule"] == "a2a/interface-binding-required").unwrap();
    assert_eq!((span["opened_as"].as_str(), span["cause"].as_str()), (Some("broke"), Some("document")));
    assert_eq!((span["from_s"].as_i64(), span["to_s"].as_i64()), (Some(NOW - 5 * 3_600), Some(NOW - 2 * 3_600)));
    let page = world.get(&format!("/findings/{}", span["finding_id"])).await;
    let words = page.words();
    assert!(
        words.contains("Over since") && words.contains("Regressed, by a new document; over: it was looked at"),
        "{words}"
    );
    let open = world.get(&format!("{target}/findings?state=open")).await.words();
    assert!(!open.contains("interface-binding-required"), "{open}");
    assert_eq!(world.get("/findings/99999").await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn what_was_said_when_a_finding_came_and_went_can_be_read_again() {
    let (world, target) = changed_card().await;
    let json = world.get_json(&format!("{target}/findings")).await.json();
    let spans = json["spans"].as_array().unwrap();
    let span = spans.iter().find(|span| span["rule"] == "a2a/interface-binding-required").unwrap();
    let finding = world.get_json(&format!("/findings/{}", span["finding_id"])).await.json();
    let (opened, closed) = (finding["said"][0]["opened"].as_str(), finding["said"][0]["closed"].as_str());
    let then = world.get(opened.expect("what opened it is kept")).await;
    assert!(then.words().contains("a2a/interface-binding-required"), "what rested on it then: {}", then.words());
    assert!(then.words().contains("HTTP/1.1 over TLSv1.3") && then.body.contains("curl -i -X GET"));
    let after = world.get(closed.expect("what closed it is kept")).await;
    assert!(after.status == StatusCode::OK && !after.words().contains("a2a/interface-binding-required"));

    // The download is that conversation, and judging it says the same.
    let page = world.get_json(opened.unwrap()).await.json();
    let one = &page["conversations"][0];
    let file = world.get(&format!("/surfaces/{}/session?of={}", one["surface"], one["id"])).await;
    let session: plumbline_rules::session::Session = serde_json::from_str(&file.body).expect("it is a session");
    let report = plumbline_rules::session_judge::judge_session(
        &session,
        session.surface(),
        None,
        &plumbline_rules::judge::Given::default(),
        &plumbline_rules::judge::Settings::default(),
    );
    assert!(report.findings().any(|(rule, _)| rule.id == "a2a/interface-binding-required"));
    assert_ne!(file.body, world.get(&format!("/surfaces/{}/session", one["surface"])).await.body, "not the newest");
    for nothing in [format!("{target}/session?of=99999"), format!("/surfaces/{}/session?of=99999", one["surface"])] {
        assert_eq!(world.get(&nothing).await.status, StatusCode::NOT_FOUND, "{nothing}");
    }
}

/// A conversation with an endpoint that opens, answers a ping and, where `odd` is asked of it, any method.
fn endpoint_said(odd: bool) -> String {
    let asked = |step: &str, id: usize, method: &str, answer: serde_json::Value| {
        let mut answer = answer;
        answer["jsonrpc"] = "2.0".into();
        answer["id"] = id.into();
        serde_json::json!({
            "step": step,
            "request": { "method": "POST", "url": "https://tides.dev/mcp", "headers": { "content-type": "application/json" },
                         "raw": serde_json::json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": {} }).to_string() },
            "response": { "status": 200, "headers": { "content-type": "application/json" }, "raw": answer.to_string() },
            "at_ms": 0, "took_ms": 1
        })
    };
    let server = serde_json::json!({ "name": "tides", "title": "Tides", "version": "1" });
    let agreed = serde_json::json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": server });
    let third = match odd {
        true => asked("unknown-method", 2, "plumbline/does-not-exist", serde_json::json!({ "result": {} })),
        false => asked("ping", 2, "ping", serde_json::json!({ "result": {} })),
    };
    let exchanges = [
        asked("discover", 0, "server/discover", serde_json::json!({ "error": { "code": -32601, "message": "no" } })),
        asked("initialize", 1, "initialize", serde_json::json!({ "result": agreed })),
        third,
    ];
    serde_json::json!({ "exchanges": exchanges }).to_string()
}

#[tokio::test]
async fn a_finding_stands_under_the_conversation_that_it_rests_on() {
    let world = World::empty().await;
    let crawl = world.walk_registry().await;
    world.add_card("spoken.example", None).await;
    for (hours, odd) in [(80, true), (56, true), (32, true), (3, false), (2, false)] {
        world.talk(crawl, "spoken.example", &endpoint_said(odd), NOW - hours * 3_600).await;
    }
    let target = world.target("spoken").await;
    let rule = "mcp/unknown-method-accepted";
    let last = world.get_json(&format!("{target}/session")).await.json();
    let one = &last["conversations"][0];
    let said_under = |conversation: &serde_json::Value| {
        let exchanges = conversation["exchanges"].as_array().unwrap().iter();
        exchanges.filter(|exchange| exchange["findings"].to_string().contains(rule)).count()
    };
    assert_eq!(said_under(one), 0, "nobody asked for a made-up method there: {one}");
    assert_eq!(one["elsewhere"][0]["rule"], rule, "and it is open: {one}");
    let of = &one["elsewhere"][0]["of"];
    let page = world.get(&format!("{target}/session")).await;
    assert!(page.body.contains(&format!("{target}/session?of={of}")) && page.words().contains("Also open"));
    let there = world.get_json(&format!("{target}/session?of={of}")).await.json();
    assert_eq!(said_under(&there["conversations"][0]), 1, "{there}");
}

#[tokio::test]
async fn a_diff_links_each_change_to_what_it_opened_and_mended() {
    let (world, target) = changed_card().await;
    let documents = world.get_json(&format!("{target}/documents")).await.json();
    let versions = documents["versions"].as_array().unwrap();
    assert_eq!(versions.len(), 3);
    assert!(versions[1]["opened"].as_i64() >= Some(1) && versions[0]["mended"].as_i64() >= Some(1), "{documents}");
    let (sound, broken) = (versions[2]["document"].as_str().unwrap(), versions[1]["document"].as_str().unwrap());
    let newest = world.get(&format!("{target}/diff")).await.words();
    assert!(newest.contains("that mended"), "the newest change by default: {newest}");
    let url = format!("{target}/diff?from={}&to={}", &sound[..16], &broken[..16]);
    let json = world.get_json(&url).await.json();
    let changes = json["changes"].as_array().unwrap();
    let binding = changes.iter().find(|change| change["before"] == "/supportedInterfaces/0/protocolBinding").unwrap();
    assert_eq!((binding["what"].as_str(), binding["after"].as_str()), (Some("removed"), None));
    assert_eq!(binding["findings"][0]["rule"], "a2a/interface-binding-required");
    assert_eq!(binding["findings"][0]["opened"], true);
    let name = changes.iter().find(|change| change["after"] == "/name").unwrap();
    assert_eq!((name["what"].as_str(), name["findings"].as_array().unwrap().len()), (Some("changed"), 0));
    let text = world.get(&format!("{url}&view=text")).await;
    assert!(text.body.contains("class=\"plus\"") && text.body.contains("class=\"minus\""), "{}", text.words());
    assert!(text.words().contains("are equal."), "what is skipped is said: {}", text.words());
    assert_eq!(world.get(&format!("{target}/diff?from=abcdef012345")).await.status, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn the_checks_of_two_weeks_are_listed_and_counted() {
    let world = World::full().await;
    let silent = world.get(&format!("{}/checks", world.target("silent").await)).await.words();
    assert!(silent.contains("1 of 1 look had no usable answer."), "{silent}");
    let sound = world.get_json(&format!("{}/checks", world.target("sound").await)).await.json();
    assert_eq!((sound["probes"][0]["status"].as_i64(), sound["probes"][0]["took_ms"].as_i64()), (Some(200), Some(84)));
    let listed = world.get(&format!("{}/checks", world.target("weather").await)).await.words();
    assert!(listed.contains("No single look is kept."), "{listed}");
}

#[tokio::test]
async fn what_nobody_looked_at_for_three_of_its_own_intervals_is_stale() {
    let world = World::empty().await;
    let crawl = world.walk_registry().await;
    let blocked = SOUND.replace("\"protocolBinding\": \"JSONRPC\", ", "");
    for (host, at_s) in [("fresh.example", NOW - 3 * EVERY_S), ("old.example", NOW - 3 * EVERY_S - 1)] {
        world.add_card(host, None).await;
        world.see(crawl, host, &blocked, at_s).await;
    }
    for (name, is_stale) in [("fresh", false), ("old", true)] {
        let target = world.target(name).await;
        let number = target.replace("/targets/", "");
        let said = "; stale, last looked at";
        assert_eq!(world.get(&target).await.words().contains(said), is_stale, "{name}");
        assert_eq!(world.get(&format!("{target}/findings")).await.words().contains(said), is_stale, "{name}");
        let only = world.get(&format!("{target}/findings?state=stale")).await;
        assert_eq!(only.words().contains("a2a/interface-binding-required"), is_stale, "{name}: {}", only.words());
        let json = world.get_json(&format!("{target}/findings")).await.json();
        let finding = &json["findings"][0];
        assert_eq!(finding["stale_from_s"].as_i64().unwrap() < NOW, is_stale, "{json}");
        let page = world.get(&format!("/findings/{}", finding["id"])).await.words();
        assert_eq!(page.contains(said), is_stale, "{page}");
        let badge = world.get(&format!("/badges/target/{number}.svg")).await.body;
        assert_eq!((badge.contains(">blocked, stale<"), badge.contains("#545a66")), (is_stale, is_stale), "{badge}");
    }
    // As a database of an older release has it until the next look.
    sqlx::query("UPDATE surface SET every_s = NULL").execute(world.store.writer()).await.unwrap();
    let badge =
        world.get(&format!("/badges/target/{}.svg", world.target("fresh").await.replace("/targets/", ""))).await;
    assert!(!badge.body.contains("stale"), "nobody knows: {}", badge.body);
}

#[tokio::test]
async fn a_change_under_the_same_version_names_the_rule_that_minds() {
    let (world, _) = changed_card().await;
    let deploys = world.get_json("/api/v1/deploys").await.json();
    let id =
        deploys["items"].as_array().and_then(|items| items[0]["id"].as_i64()).unwrap_or_else(|| panic!("{deploys}"));
    let page = world.get(&format!("/deploys/{id}")).await;
    let words = page.words();
    assert!(words.contains("the document changed and its version did not"), "{words}");
    assert!(page.body.contains("href=\"/rules/common/changed-without-version\""), "{}", page.body);
}
