//! What pages say is so: numbers that agree, words that fit what they are about, nothing claimed that was not looked at.

use axum::http::StatusCode;
use plumbline_store::CrawlId;
use plumbline_store::hooks::{Mode, NewEndpoint, Origin};

use crate::links::lively;
use crate::support::{NOW, SOUND, World};

/// A card that was sound and then fell silent.
async fn silent_since() -> World {
    let world = World::full().await;
    world.add_card("gone.example", None).await;
    world.see(CrawlId(1), "gone.example", SOUND, NOW - 3_900).await;
    for at_s in [NOW - 3_000, NOW - 2_700, NOW - 2_400, NOW - 1_000] {
        world.miss(CrawlId(1), "gone.example", at_s).await;
    }
    world
}

#[tokio::test]
async fn a_host_holds_whatever_is_on_it_on_every_page() {
    let world = World::full().await;
    // The card of one stands on the host of another, as endpoints of a name do.
    world
        .write(
            "UPDATE surface SET host_id = (SELECT id FROM host WHERE name = 'sound.example')
             WHERE url LIKE 'https://blocked.example/%'",
        )
        .await;
    let matching = |json: serde_json::Value| json["matching"].as_i64();
    for (query, count) in
        [("host:sound.example", 2), ("-host:sound.example%20kind:a2a-agent", 2), ("host:blocked.example", 1)]
    {
        assert_eq!(matching(world.get_json(&format!("/targets?q={query}")).await.json()), Some(count), "{query}");
    }
    let page = world.get("/hosts/sound.example").await.words();
    assert!(page.contains("sound.example: of 2 targets"), "{page}");
}

#[tokio::test]
async fn what_is_sound_and_silent_has_to_answer_first() {
    let world = silent_since().await;
    let words = world.get(&world.target("gone").await).await.words();
    assert!(words.contains("Sound A2A 1.0") && words.contains("It does not answer now"), "{words}");
    assert!(words.contains("Make it answer: no connection came about in time."), "{words}");
    assert!(!words.contains("Nothing has to be done"), "{words}");
    let days =
        words.lines().find(|line| line.starts_with("Agent card its own document")).unwrap_or_else(|| panic!("{words}"));
    assert!(days.contains(" – "), "how long we waited is not how long an answer took: {days}");
    let well = world.get(&world.target("sound").await).await.words();
    assert!(well.contains("Nothing has to be done") && !well.contains("Make it answer"), "{well}");
}

#[tokio::test]
async fn what_was_not_judged_is_given_no_numbers() {
    let world = World::full().await;
    let page = world.get(&world.target("silent").await).await.words();
    assert!(page.contains("Not evaluated because it has not answered yet"), "{page}");
    assert!(!page.contains("rules that could look hold"), "{page}");
    for list in ["/targets?q=silent", "/targets?q=blocked"] {
        let words = world.get(list).await.words();
        let row = words.lines().find(|line| line.contains(".example ")).unwrap_or_else(|| panic!("{words}"));
        assert_eq!(row.contains("– –"), list.ends_with("silent"), "{row}");
    }
}

#[tokio::test]
async fn an_empty_database_is_not_praised() {
    let world = World::empty().await;
    assert!(world.get("/regressions").await.words().contains("Nothing has been judged yet."));
    let alerts = world.get("/alerts").await.words();
    assert!(alerts.contains("No alert leads anywhere yet."), "{alerts}");
    let almanac = world.get("/almanac/2026-11").await;
    assert!(almanac.words().contains("In November 2026 nothing was judged so far."), "{}", almanac.words());
    assert!(!almanac.body.contains("class=\"chart\"") && !almanac.words().contains("Nothing regressed"));
}

#[tokio::test]
async fn a_query_for_regressions_counts_what_it_finds() {
    let world = World::empty().await;
    let crawl = world.walk_registry().await;
    let broken = SOUND.replace("\"protocolBinding\": \"JSONRPC\", ", "");
    world.add_card("broke.example", Some("Same Name".to_owned())).await;
    for (hours, document) in [80, 40, 2, 1].into_iter().zip([SOUND, SOUND, &broken, &broken]) {
        world.see(crawl, "broke.example", document, NOW - hours * 3_600).await;
    }
    let found = world.get("/regressions?q=rule:a2a/*").await;
    let words = found.words();
    assert!(words.contains("1 finding like that regressed in 30 days, one in seven days, with a deploy."), "{words}");
    assert!(words.contains("Same Name broke.example"), "a name alone does not say which: {words}");
    assert!(found.body.contains("id=\"take\""));
    // What an endpoint on another host shows is asked for by that host.
    world.add_card("other.example", None).await;
    world
        .write(
            "UPDATE surface SET host_id = (SELECT id FROM host WHERE name = 'other.example')
             WHERE url LIKE 'https://broke.example/%'",
        )
        .await;
    let there = world.get_json("/regressions?q=host:other.example").await.json();
    assert_eq!(there["regressions"].as_array().map(Vec::len), Some(1), "{there}");
    let none = world.get("/regressions?q=owner:nobody").await;
    assert!(none.words().contains("Nothing like that regressed in 30 days."), "{}", none.words());
    assert!(!none.body.contains("class=\"chart\""), "no chart of what was not asked for");
    assert!(!none.body.contains("id=\"take\"") && !none.words().contains("taken on all"), "{}", none.words());
    assert!(world.get("/").await.words().contains("Same Name broke.example"));
    // Once it is mended nothing is left to be taken on.
    for minutes in [40, 20] {
        world.see(crawl, "broke.example", SOUND, NOW - minutes * 60).await;
    }
    let mended = world.get("/regressions").await;
    assert!(mended.words().contains("a2a/interface-binding-required mended"), "{}", mended.words());
    assert!(!mended.body.contains("id=\"take\"") && !mended.words().contains("taken on all"), "{}", mended.words());
}

#[tokio::test]
async fn a_receiver_that_was_sent_nothing_has_accepted_nothing() {
    let world = World::empty().await;
    for name in ["one", "two"] {
        let receiver = NewEndpoint {
            slug: name.to_owned(),
            title: name.to_owned(),
            url: "https://hooks.example/x".to_owned(),
            format: "generic".to_owned(),
            mode: Mode::Events,
            types: Vec::new(),
            matcher: String::new(),
            include_baseline: false,
            per_minute: 300,
            options: "{}".to_owned(),
            digest: None,
        };
        world.store.put_endpoint(&receiver, Origin::File, NOW).await.unwrap();
    }
    let words = world.get("/webhooks").await.words();
    assert!(words.contains("2 receivers, and nothing was sent to them yet."), "{words}");
    world.write("UPDATE wh_endpoint SET last_success_s = 1796000000 WHERE slug = 'one'").await;
    let words = world.get("/webhooks").await.words();
    assert!(words.contains("2 receivers: 1 accepts what it is sent and 1 has been sent nothing yet."), "{words}");
}

#[tokio::test]
async fn a_pause_is_told_before_everything_else() {
    let world = World::full().await;
    assert!(!world.get("/").await.words().contains("Everything is paused"));
    world.store.pause_all(true, NOW - 600).await.unwrap();
    world.status.send_replace(plumbline_web::CrawlStatus { next_pass_at: Some(NOW - 60), ..Default::default() });
    let crawls = world.get("/crawls").await.words();
    assert!(crawls.contains("Everything is paused since 17:57 UTC; the last walk"), "{crawls}");
    assert!(!crawls.contains("next pass"), "none comes: {crawls}");
    assert!(!crawls.contains("– of due"), "{crawls}");
    assert!(world.get("/").await.words().contains("Everything is paused since 17:57 UTC"));
}

#[tokio::test]
async fn made_up_data_are_called_made_up_on_every_page() {
    let world = World::full().await;
    let said = "These data are a demonstration";
    assert!(!world.get("/targets").await.body.contains(said));
    world.store.is_demonstration("400 synthetic targets over 90 days, seed 1").await.unwrap();
    for page in ["/", "/targets", "/rules", "/onboarding"] {
        let body = world.get(page).await.body;
        assert!(body.contains(said) && body.contains("400 synthetic targets"), "{page}");
    }
}

#[tokio::test]
async fn a_crawl_that_has_ended_is_not_live() {
    let world = World::full().await;
    assert!(!world.get("/crawls/1").await.body.contains("data-live"));
    let running = world.walk_registry().await;
    world.write("UPDATE crawl SET state = 'running', finished_s = NULL WHERE id = 2").await;
    assert_eq!(running, CrawlId(2));
    assert!(world.get("/crawls/2").await.body.contains("data-live"));
}

#[tokio::test]
async fn hints_can_be_asked_for_by_their_name() {
    let world = World::empty().await;
    let (hint, info) = (world.get("/rules?severity=hint").await, world.get("/rules?severity=info").await);
    assert_eq!(hint.status, StatusCode::OK, "{}", hint.words());
    assert_eq!(hint.words(), info.words());
    assert!(hint.body.contains("<option value=\"info\" selected>"), "the form says so too");
}

#[tokio::test]
async fn a_cohort_is_called_by_a_name_that_fits_a_sentence() {
    let world = World::full().await;
    world.write("INSERT INTO cohort (id, slug, title, query, refreshed_s, origin) SELECT MAX(id) + 1, 'owner-harbour', 'Of harbour', 'owner:harbour', 0, 'found' FROM cohort").await;
    let words = world.get("/cohorts").await.words();
    assert!(words.contains("Targets of harbour owner:harbour") && words.contains("By owner"), "{words}");
    let one = world.get("/cohorts/owner-harbour").await.words();
    assert!(one.contains("Of targets of harbour nothing could be judged yet."), "{one}");
}

#[tokio::test]
async fn no_page_speaks_of_one_as_of_many_or_in_words_of_the_database() {
    let world = lively().await;
    let mut pages = world.pages().await;
    pages
        .extend(["/rules/coverage", "/rules/mcp-requirements", "/routes", "/waivers", "/deploys/1"].map(str::to_owned));
    for page in pages {
        let words = world.get(&page).await.words();
        for wrong in [
            " 1 are ",
            "\n1 are ",
            "1 rule are",
            "1 rule need ",
            "1 rule do ",
            "1 hint that count ",
            "turned out",
            "a2a-card",
        ] {
            // What is checked may be named as the form names it.
            let is_said = words.contains(wrong) && !(page == "/check" || page == "/api");
            assert!(!is_said, "{page} says {wrong:?} in\n{words}");
        }
    }
    let coverage = world.get("/rules/coverage").await;
    assert!(coverage.body.contains("_<wbr>"), "a long name may be broken after each underscore");
    assert!(coverage.words().contains("1 is shown in another way"), "{}", coverage.words());
}

#[tokio::test]
async fn what_keeps_quiet_says_how_much_and_until_when() {
    let world = World::full().await;
    let send = |path: &'static str, form: &'static str| {
        let request = axum::http::Request::post(path)
            .header(axum::http::header::HOST, "127.0.0.1:8080")
            .header(axum::http::header::CONTENT_TYPE, "application/x-www-form-urlencoded")
            .extension(axum::extract::ConnectInfo(std::net::SocketAddr::from(([127, 0, 0, 1], 9))))
            .body(axum::body::Body::from(form))
            .unwrap();
        world.ask(request)
    };
    for (path, form, said) in [
        ("/silences", "match=owner%3Aharbour&reason=x&hours=4", "1 silence holds; the next ends 22:07 UTC."),
        (
            "/waivers",
            "rule=a2a%2F*&match=owner%3Aharbour&reason=Known&days=30",
            "1 waiver accepts 1 open finding; the next ends 30 Dec, 18:07 UTC.",
        ),
        (
            "/maintenance",
            "title=Backups&match=owner%3Aharbour&zone=UTC&cron=0+3+*+*+*&minutes=60",
            "1 window is planned; the next begins 1 Dec, 03:00 UTC.",
        ),
    ] {
        assert_eq!(send(path, form).await.status, StatusCode::SEE_OTHER, "{path}");
        let words = world.get(path).await.words();
        assert!(words.contains(said), "{said}: {words}");
    }
}

#[tokio::test]
async fn the_rules_are_folded_by_family_until_fewer_are_asked_for() {
    let world = World::empty().await;
    let all = world.get("/rules").await.body;
    assert!(all.contains("<a href=\"#f-a2a\">") && all.contains("<details class=\"fold\">"));
    assert!(!all.contains("<details class=\"fold\" open>"));
    let some = world.get("/rules?q=binding").await.body;
    assert!(some.contains("<details class=\"fold\" open>") && !some.contains("<details class=\"fold\">"));
}
