//! Pages over all targets: what broke, what is common, groups, search, releases.

use axum::http::StatusCode;
use plumbline_store::CrawlId;

use crate::support::{NOW, SOUND, World};

/// Two cards that were sound for days; one broke an hour ago, the other was mended.
async fn moved() -> World {
    let world = World::empty().await;
    let crawl = world.walk_registry().await;
    let broken = SOUND.replace("\"protocolBinding\": \"JSONRPC\", ", "");
    for (host, documents) in
        [("broke.example", [SOUND, SOUND, &broken, &broken]), ("mended.example", [&broken, &broken, SOUND, SOUND])]
    {
        world.add_card(host, None).await;
        for (hours, document) in [80, 40, 2, 1].into_iter().zip(documents) {
            world.see(crawl, host, document, NOW - hours * 3_600).await;
        }
    }
    world
}

#[tokio::test]
async fn what_broke_is_told_by_its_cause_and_drawn_by_day() {
    let world = moved().await;
    let page = world.get("/regressions").await;
    let words = page.words();
    assert!(
        words.starts_with("Overview / Regressions")
            || words.contains("has regressed today, one in seven days, with a deploy."),
        "{words}"
    );
    assert!(words.contains("Deploy at broke.example"), "{words}");
    assert!(words.contains("opened with it; that it was this deploy is"), "{words}");
    assert!(page.body.contains("class=\"bar of-1\""), "the bars are drawn");
    for (query, count) in
        [("rule:a2a/*", 1), ("-rule:a2a/*", 0), ("host:broke.example severity:error", 1), ("nobody", 0)]
    {
        let json = world.get_json(&format!("/regressions?q={}", query.replace(' ', "%20"))).await.json();
        assert_eq!(json["regressions"].as_array().unwrap().len(), count, "{query}");
    }
    let wrong = world.get("/regressions?q=profile:1.0").await;
    assert_eq!(wrong.status, StatusCode::BAD_REQUEST);
    assert!(wrong.body.contains("<mark>profile:1.0</mark>"), "{}", wrong.words());
    let empty = World::empty().await.get("/regressions").await.words();
    assert!(empty.contains("Nothing has been judged yet."), "{empty}");
}

#[tokio::test]
async fn a_week_fits_on_one_page_and_into_markdown() {
    let world = moved().await;
    let page = world.get("/regressions/2026-w49").await.words();
    assert!(
        page.contains("Week 49 of 2026: 1 regressed, 0 opened without a past, 1 were mended; 0")
            || page.contains("as many as were mended"),
        "{page}"
    );
    let markdown = world.get("/regressions/2026-w49.md").await;
    assert_eq!(markdown.header("content-type"), "text/markdown; charset=utf-8");
    assert!(
        markdown.body.contains("| broke.example | `a2a/interface-binding-required` | Error | open |"),
        "{}",
        markdown.body
    );
    let quiet = world.get("/regressions/2026-w40").await.words();
    assert!(quiet.contains("Week 40 of 2026: nothing opened and nothing was mended."), "{quiet}");
    for none in ["2026-w60", "lately"] {
        assert_eq!(world.get(&format!("/regressions/{none}")).await.status, StatusCode::NOT_FOUND, "{none}");
    }
}

#[tokio::test]
async fn prevalence_over_the_same_surfaces_on_both_days_is_a_switch_on_the_page_and_for_programs() {
    let world = World::full().await;
    let none = world.get("/prevalence?population=fixed").await;
    assert!(none.words().contains("Nothing has been judged by rules like these yet."), "{}", none.words());
    for statement in [
        "UPDATE surface SET first_evaluated_s = first_evaluated_s - 3456000",
        "UPDATE target SET first_seen_s = first_seen_s - 3456000",
        "INSERT INTO rule_day (cohort_id, rule_id, day, evaluated, failing, occurrences, opened, resolved, regressed)
         SELECT cohort_id, rule_id, day - 30, 1, 0, 0, 0, 0, 0 FROM rule_day WHERE cohort_id = 1",
    ] {
        world.write(statement).await;
    }
    // Another hour: what was answered a moment ago holds for this one.
    let json = world.get_json("/prevalence?population=fixed&cohort=a2a-agent").await.json();
    assert_eq!(json["population"], "fixed", "{json}");
    let rule = json["rules"].as_array().unwrap().iter().find(|one| one["failing"] != 0).expect("one fails");
    assert_eq!((&rule["before"], &rule["before_evaluated"]), (&0.into(), &rule["evaluated"]), "{rule}");
    let page = world.get("/prevalence?population=fixed&cohort=a2a-agent").await;
    assert!(page.words().contains("what was there and judged 30 days ago and still is"), "{}", page.words());
    assert!(page.body.contains("<option value=\"fixed\" selected>"), "{}", page.body);
    let csv = world.get("/prevalence?population=fixed&cohort=a2a-agent&format=csv").await;
    assert!(csv.body.lines().next().unwrap().contains("before_evaluated"), "{}", csv.body);
    assert_eq!(csv.body.lines().count(), json["rules"].as_array().unwrap().len() + 1);
    let api = world.get_json("/api/v1/cohorts/a2a-agent/fixed-prevalence?days=30").await.json();
    let same = api["items"].as_array().unwrap().iter().find(|one| one["rule"] == rule["rule"]).unwrap();
    assert_eq!((&same["failing"], &same["failing_before"]), (&rule["failing"], &0.into()));
    for bad in ["population=some", "population=fixed&against=all"] {
        assert_eq!(world.get(&format!("/prevalence?{bad}")).await.status, StatusCode::BAD_REQUEST, "{bad}");
    }
}

#[tokio::test]
async fn prevalence_is_failing_of_judged_and_says_what_moved() {
    let world = moved().await;
    let json = world.get_json("/prevalence").await.json();
    let rules = json["rules"].as_array().unwrap();
    let rule = rules.iter().find(|rule| rule["rule"] == "a2a/interface-binding-required").unwrap();
    assert_eq!(
        (rule["failing"].as_i64(), rule["evaluated"].as_i64(), rule["share"].as_i64()),
        (Some(1), Some(2), Some(5_000))
    );
    let page = world.get("/prevalence?family=a2a").await;
    assert!(page.body.contains("class=\"grid heat\"") && page.body.contains("class=\"dot-row\""), "{}", page.words());
    let facts = world.get_json("/prevalence?facts=1").await.json();
    assert!(facts["rules"].as_array().unwrap().iter().all(|rule| rule["rule"] != "a2a/interface-binding-required"));
    assert_eq!(world.get("/prevalence?cohort=nobody").await.status, StatusCode::BAD_REQUEST);
    let empty = World::empty().await.get("/prevalence").await.words();
    assert!(empty.contains("Nothing has been judged by rules like these yet."), "{empty}");
}

#[tokio::test]
async fn cohorts_owners_hosts_and_tags_have_a_page_each() {
    let world = World::full().await;
    let cohort = world.get("/cohorts/a2a-agent").await.words();
    assert!(cohort.contains("could judge among A2A agents are sound"), "{cohort}");
    assert!(world.get("/cohorts").await.words().contains("MCP servers"));
    let owner = world.get("/owners/harbour").await;
    assert!(owner.words().contains("Harbour Office: of 4 targets, 1 is blocked"), "{}", owner.words());
    assert!(owner.body.contains("src=\"/badges/owner/harbour.svg\""));
    assert!(world.get("/hosts/sound.example").await.words().contains("sound.example: of 1 target, 1 is sound"));
    for none in ["/cohorts/nobody", "/owners/nobody", "/hosts/nobody.example", "/tags/nothing=1"] {
        assert_eq!(world.get(none).await.status, StatusCode::NOT_FOUND, "{none}");
    }
}

#[tokio::test]
async fn a_search_finds_targets_rules_owners_and_hosts_or_jumps() {
    let world = World::full().await;
    let json = world.get_json("/search?q=sound").await.json();
    assert_eq!(
        (json["targets"][0]["name"].as_str(), json["hosts"][0]["slug"].as_str()),
        (Some("sound.example"), Some("sound.example"))
    );
    let json = world.get_json("/search?q=binding%20required").await.json();
    assert!(
        json["rules"].as_array().unwrap().iter().any(|rule| rule["rule"] == "a2a/interface-binding-required"),
        "{json}"
    );
    assert_eq!(world.get_json("/search?q=harb").await.json()["owners"][0]["slug"], "harbour");
    let hosts = world.get_json("/search?q=example").await.json()["hosts"].clone();
    assert!(hosts.as_array().is_some_and(|hosts| !hosts.is_empty()), "by a later word of its name: {hosts}");
    let jump = world.get("/search?q=a2a/interface-binding-required").await;
    assert_eq!(
        (jump.status, jump.header("location")),
        (StatusCode::SEE_OTHER, "/rules/a2a/interface-binding-required")
    );
    let terms = world.get("/search?q=headline:blocked").await;
    assert_eq!(terms.header("location"), "/targets?q=headline%3Ablocked");
    let nothing = world.get("/search?q=zzzzz").await.words();
    assert!(nothing.contains("Nothing begins with “zzzzz”."), "{nothing}");
}

#[tokio::test]
async fn changes_of_rules_and_two_crawls_are_compared() {
    let world = World::full().await;
    let changes = world.get("/changes").await.words();
    assert!(
        changes.contains("Ruleset 2026.11 with") && changes.contains("The first that this database judged with."),
        "{changes}"
    );
    assert!(world.get("/methodology").await.words().contains("When a finding is believed"));
    let compare = world.get("/compare").await.words();
    assert!(compare.contains("There are not two crawls yet to compare."), "{compare}");
    let second = world.walk_registry().await;
    world
        .store
        .finish_crawl(
            second,
            &plumbline_store::sources::CrawlEnd { state: plumbline_store::words::CrawlState::Complete, note: None },
            NOW - 60,
        )
        .await
        .unwrap();
    let compare = world.get("/compare?a=1&b=2").await.words();
    assert!(compare.contains("From crawl 1 to crawl 2: 0 improved, 0 worsened"), "{compare}");
    // More crawls than the list holds: the chosen ones are in it all the same.
    for _ in 0..70 {
        world.walk_registry().await;
    }
    let compare = world.get("/compare?a=1&b=72").await;
    assert!(
        compare.body.contains("<option value=\"1\" selected>")
            && compare.body.contains("<option value=\"72\" selected>")
    );
    assert_eq!(world.get("/compare?a=77").await.status, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn what_fails_together_has_a_page_with_who_was_in_it() {
    let world = World::full().await;
    let tenants = ["one.example", "two.example", "three.example"];
    for tenant in tenants {
        world.add_card_on("shared.example", tenant, Some(format!("Desk {tenant}"))).await;
    }
    let crawl = CrawlId(1);
    for at_s in [NOW - 2_000, NOW - 1_900, NOW - 1_600, NOW - 1_000] {
        for tenant in tenants {
            world.miss(crawl, tenant, at_s).await;
        }
    }
    let list = world.get_json("/incidents").await.json();
    assert_eq!(
        (&list["incidents"][0]["cause"], &list["incidents"][0]["failing"]),
        (&"host".into(), &3.into()),
        "{list}"
    );
    let page = world.get(&format!("/incidents/{}", list["incidents"][0]["id"])).await.words();
    assert!(page.contains("what they share is the host shared.example"), "{page}");
    assert!(tenants.iter().all(|tenant| page.contains(&format!("Desk {tenant}"))), "{page}");
    assert!(page.contains(" to now"), "it goes on: {page}");
    for tenant in tenants {
        for at_s in [NOW - 900, NOW - 800, NOW - 700] {
            world.see(crawl, tenant, SOUND, at_s).await;
        }
    }
    let over = world.get(&format!("/incidents/{}", list["incidents"][0]["id"])).await;
    assert!(over.words().contains("over 30 Nov 2026"), "{}", over.words());
    let axis = over.body.split("class=\"lane axis\"").nth(1).unwrap().split("</svg>").next().unwrap();
    assert!(!axis.contains("now"), "what is over does not end now: {axis}");
}

#[tokio::test]
async fn two_versions_served_in_turn_are_said_to_be_so() {
    let world = World::full().await;
    world.add_card("turns.example", None).await;
    let crawl = CrawlId(1);
    let broken = SOUND.replace("\"protocolBinding\": \"JSONRPC\", ", "");
    for n in 0..14 {
        let document = if n % 4 < 2 { SOUND } else { broken.as_str() };
        world.see(crawl, "turns.example", document, NOW - 3_900 + n * 240).await;
    }
    let target = world.target("turns").await;
    let findings = world.get_json(&format!("{target}/findings")).await.json();
    let rows = findings["findings"].as_array().unwrap_or_else(|| panic!("{findings}"));
    let flapping = rows.iter().find(|row| row["state"] == "flapping").unwrap_or_else(|| panic!("{findings}"));
    let page = world.get(&format!("/findings/{}", flapping["id"])).await.words();
    assert!(page.contains("Two versions are being served"), "{page}");
}

#[tokio::test]
async fn without_deploys_and_outages_their_pages_say_so() {
    let world = World::full().await;
    assert!(world.get("/deploys").await.words().contains("No sign of a deploy has been seen."));
    assert!(world.get("/incidents").await.words().contains("No shared outage has been recorded."));
    for none in ["/deploys/7", "/incidents/7", "/deploys/x"] {
        assert_eq!(world.get(none).await.status, StatusCode::NOT_FOUND, "{none}");
    }
}

#[tokio::test]
async fn what_people_bring_is_judged_and_its_report_keeps_its_address() {
    let world = World::empty().await;
    let send = |form: String| {
        let request = axum::http::Request::post("/check")
            .header(axum::http::header::CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(axum::body::Body::from(form))
            .unwrap();
        world.ask(request)
    };
    let escaped = |text: &str| text.bytes().map(|byte| format!("%{byte:02X}")).collect::<String>();
    let broken =
        SOUND.replace("\"protocolBinding\": \"JSONRPC\", ", "").replace("Tide Tables", crate::support::HOSTILE_NAME);
    let sent = send(format!("text={}&kind=a2a-card", escaped(&broken))).await;
    assert_eq!(sent.status, StatusCode::SEE_OTHER);
    let url = sent.header("location").to_owned();
    assert!(url.starts_with("/reports/") && url.len() > 40, "nobody guesses {url}");
    let page = world.get(&url).await;
    assert!(
        page.words().contains("Blocked: ") && page.words().contains("a2a/interface-binding-required"),
        "{}",
        page.words()
    );
    assert!(!page.body.contains("<script>"), "what was pasted is shown and never run");
    for said in ["Clients Refused by a2a Python 1.3.0", "Detected as Agent card A2A 1.0"] {
        assert!(page.words().replace('\n', " ").contains(said), "{said}: {}", page.words());
    }
    let asked = send("url=sound.example".to_owned()).await;
    let url = asked.header("location").to_owned();
    let mut report = world.get_json(&url).await.json();
    for _ in 0..200 {
        if report["is_running"] == false {
            break;
        }
        tokio::task::yield_now().await;
        report = world.get_json(&url).await.json();
    }
    assert_eq!(
        (report["is_running"].as_bool(), report["report"]["kind"].as_str()),
        (Some(false), Some("a2a-card")),
        "{report}"
    );
    for (form, status) in [("", StatusCode::BAD_REQUEST), ("url=a&text=b", StatusCode::BAD_REQUEST)] {
        assert_eq!(send(form.to_owned()).await.status, status, "{form}");
    }
    assert_eq!(world.get("/reports/0123").await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn the_almanac_the_status_page_and_the_first_steps_say_where_things_stand() {
    let world = World::full().await;
    let almanac = world.get("/almanac/2026-11").await;
    assert!(almanac.words().contains("So far in November 2026, "), "{}", almanac.words());
    assert!(almanac.body.contains("id=\"verdicts-t\"") && almanac.body.contains("id=\"broke-t\""));
    assert_eq!(world.get("/almanac").await.header("location"), "/almanac/2026-11");
    for none in ["/almanac/2026-13", "/almanac/2027-01", "/almanac/x", "/status/shop"] {
        assert_eq!(world.get(none).await.status, StatusCode::NOT_FOUND, "{none}");
    }
    assert!(world.get("/status").await.words().contains("No component is named for this page yet."));
    let steps = world.get("/onboarding").await.words();
    assert!(steps.contains("1. Say what to watch done") && steps.contains("2. The first crawl done"), "{steps}");
    let empty = World::empty().await.get("/onboarding").await.words();
    assert!(empty.contains("Four steps to the first verdict"), "{empty}");
}
