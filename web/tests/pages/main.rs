//! The pages as a browser and a program meet them: the real router over a real database.

mod acting;
mod api;
mod auditing;
mod events;
mod history;
mod leaving;
mod links;
mod repeating;
mod saying;
mod subscribing;
mod support;
mod wide;

use axum::body::Body;
use axum::http::{Request, StatusCode, header};
use plumbline_web::{CrawlStatus, RunningPass, SiteSettings, Unreached};

use crate::support::{NOW, SOUND, World};

#[tokio::test]
async fn every_page_answers_as_html_and_as_json() {
    let world = World::full().await;
    for page in world.pages().await {
        let html = world.get(&page).await;
        assert_eq!(html.status, StatusCode::OK, "{page}: {}", html.body);
        assert_eq!(html.header("content-type"), "text/html; charset=utf-8", "{page}");
        assert_eq!(html.body.matches("<h1>").count(), 1, "{page} has one h1");
        assert!(html.body.contains("class=\"skip\"") && html.body.contains("<main id=\"main\""), "{page}");
        let json = world.get_json(&page).await;
        assert_eq!(json.header("content-type"), "application/json", "{page}");
        assert!(json.json().is_object(), "{page}");
        assert_eq!(json.header("vary"), "accept, cookie", "{page}");
        let joint = if page.contains('?') { '&' } else { '?' };
        let linked = world.get(&format!("{page}{joint}format=json")).await;
        // What is free on the disk changes while others write.
        let [linked, json] = [linked, json].map(|answer| {
            let mut json = answer.json();
            json.as_object_mut().map(|members| members.remove("disk"));
            json
        });
        assert_eq!(linked, json, "{page}: the link to the JSON gives the JSON");
    }
}

#[tokio::test]
async fn every_answer_forbids_what_no_page_needs() {
    let world = World::full().await;
    let mut pages = world.pages().await;
    pages.extend(["/nowhere", "/healthz", "/targets/x"].map(str::to_owned));
    for page in pages {
        let answer = world.get(&page).await;
        let policy = answer.header("content-security-policy");
        for part in [
            "default-src 'none'",
            "style-src 'self'",
            "base-uri 'none'",
            "frame-ancestors 'none'",
            "form-action 'self'",
        ] {
            assert!(policy.contains(part), "{page}: {policy}");
        }
        assert!(policy.contains("script-src 'self';") && !policy.contains("unsafe"), "{page}: {policy}");
        assert_eq!(answer.header("x-content-type-options"), "nosniff", "{page}");
        assert_eq!(answer.header("referrer-policy"), "no-referrer", "{page}");
        assert_eq!(answer.header("x-frame-options"), "DENY", "{page}");
        assert!(!answer.header("x-request-id").is_empty(), "{page}");
    }
}

#[tokio::test]
async fn no_page_holds_an_inline_script_or_style_or_a_foreign_address() {
    let world = World::full().await;
    for page in world.pages().await {
        let body = world.get(&page).await.body;
        assert_eq!(body.matches("<script src=\"/static/plumbline-").count(), 1, "{page} loads our script");
        assert_eq!(body.matches("<script").count(), 1, "{page} holds no other");
        for forbidden in [" style=", "<style", " onload", "javascript:", "src=\"http", "<iframe", "@import"] {
            assert!(!body.contains(forbidden), "{page} holds {forbidden}");
        }
        let links = body.split("<link ").skip(1).filter_map(|link| link.split("href=\"").nth(1));
        for link in links {
            assert!(link.starts_with('/'), "{page} loads {}", &link[..40.min(link.len())]);
        }
    }
}

#[test]
fn no_template_holds_a_script_or_an_inline_style() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/templates");
    let mut read = 0;
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        // What is no page needs the names of its own vocabulary.
        if path.extension().is_none_or(|ending| ending != "html") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let text = text.replace("<script src=\"{{ frame.script_url() }}\" defer></script>", "");
        for forbidden in ["style=", "<script", "<style", "|safe", "http://", "https://"] {
            assert!(!text.contains(forbidden), "{} holds {forbidden}", path.display());
        }
        read += 1;
    }
    assert!(read > 10);
}

#[tokio::test]
async fn hostile_names_and_documents_do_no_harm_anywhere() {
    let world = World::full().await;
    for page in world.pages().await {
        let answer = world.get(&page).await;
        let body = &answer.body;
        for harm in ["<script>alert", "<img src=x", "\u{202e}", "\u{200b}", "\u{1b}", "</title><script"] {
            assert!(!body.contains(harm), "{page} holds {harm:?}");
        }
        assert!(!body.contains(&"A".repeat(700)), "{page} shows a name of ten thousand letters");
    }
    let target = world.target("hostile").await;
    let page = world.get(&target).await;
    assert!(page.words().contains("⟨U+202E⟩gnp.exe⟨U+200B⟩⟨U+001B⟩"), "{}", page.words());
    assert!(page.body.contains("<bdi>"));
    let json = world.get_json(&target).await.json();
    assert!(
        json["target"]["name"].as_str().unwrap().contains('\u{202e}'),
        "JSON is not for eyes and keeps what was said"
    );
}

#[tokio::test]
async fn the_overview_counts_names_and_keeps_entries_beside_them() {
    let world = World::full().await;
    let words = world.get("/").await.words();
    assert!(words.contains("We watch 2 names in MCP registries (with 3 entries) and 4 A2A agent cards."), "{words}");
    let json = world.get_json("/").await.json();
    assert_eq!((json["present"]["targets"].as_i64(), json["present"]["entries"].as_i64()), (Some(6), Some(3)));
    assert!(words.contains("What the five words mean") && words.contains("The same numbers as a table"), "{words}");
}

#[tokio::test]
async fn nothing_reached_says_what_when_again_and_how_to_see_something() {
    let world = World::empty().await;
    world.status.send_replace(CrawlStatus {
        budget_left: Some(17),
        running: None,
        next_pass_at: Some(NOW + 600),
        unreached: vec![Unreached {
            what: "official".into(),
            url: "https://registry.modelcontextprotocol.io".into(),
            why: "its name could not be resolved".into(),
            retry_at: Some(NOW + 600),
        }],
    });
    insta::assert_snapshot!(world.get("/").await.words());
}

#[tokio::test]
async fn a_first_crawl_shows_how_far_it_is_and_looks_again_by_itself() {
    let world = World::empty().await;
    world.status.send_replace(CrawlStatus {
        running: Some(RunningPass {
            started_at: NOW - 120,
            activity: "walking the registry “official”".into(),
            listed: 1_200,
            planned: 1_500,
            done: 800,
        }),
        ..CrawlStatus::default()
    });
    let page = world.get("/").await;
    assert!(page.body.contains("<meta http-equiv=\"refresh\" content=\"10\">"));
    insta::assert_snapshot!(page.words());
    let full = World::full().await;
    assert!(!full.get("/").await.body.contains("http-equiv"), "a filled page does not reload under the reader");
}

#[tokio::test]
async fn an_empty_list_says_why_and_what_to_do() {
    let world = World::empty().await;
    let words = world.get("/targets").await.words();
    assert!(words.contains("There are no targets yet.") && words.contains("How to begin"), "{words}");
    let words = world.get("/crawls").await.words();
    assert!(words.contains("Nothing has been crawled yet.") && words.contains("plumbline crawl"), "{words}");
    let full = World::full().await;
    let words = full.get("/targets?q=sound&kind=mcp-server").await.words();
    assert!(words.contains("Nothing matches."), "{words}");
    assert!(words.contains("drop (leaves 2)") && words.contains("drop (leaves 1)"), "{words}");
}

#[tokio::test]
async fn a_blocked_target_says_who_refuses_it_and_what_to_do_first() {
    let world = World::full().await;
    let words = world.get(&world.target("blocked").await).await.words();
    for said in [
        "Blocked A2A 1.0 declared since",
        "Do this first:",
        "Refused by a2a Python 1.3.0",
        "/supportedInterfaces/0",
        "Four answers, never one score",
    ] {
        assert!(words.contains(said), "{said} is missing in\n{words}");
    }
}

#[tokio::test]
async fn what_could_not_be_looked_at_is_never_called_passed() {
    let world = World::full().await;
    let words = world.get(&world.target("silent").await).await.words();
    assert!(words.contains("Not evaluated"), "{words}");
    assert!(words.contains("Nothing was judged, so nothing is said for or against it."), "{words}");
    assert!(words.contains("was never judged, because no connection came about in time."), "{words}");
    assert!(!words.contains("Nothing to do"), "{words}");
    let words = world.get(&world.target("weather").await).await.words();
    assert!(words.contains("One name, 2 entries."), "{words}");
}

#[tokio::test]
async fn a_sound_target_names_its_rules_and_what_could_not_look() {
    let world = World::full().await;
    let page = world.get(&world.target("sound").await).await;
    let words = page.words();
    assert!(words.contains("Sound A2A 1.0 declared since"), "{words}");
    assert!(
        words.contains("Conformant.") && words.contains("Works in a2a Python 1.3.0 and a2a JavaScript 1.3.0."),
        "{words}"
    );
    assert!(words.contains("could not look"), "{words}");
}

#[tokio::test]
async fn findings_stand_beside_their_line_and_links_lead_to_it() {
    let world = World::full().await;
    let target = world.get(&world.target("blocked").await).await;
    let link = target.body.split("href=\"/documents/").nth(1).unwrap().split('"').next().unwrap().replace("&#38;", "&");
    let page = world.get(&format!("/documents/{}", link.split('#').next().unwrap())).await;
    assert_eq!(page.status, StatusCode::OK);
    assert!(page.body.contains("id=\"at\""), "the line asked for is marked");
    assert!(page.body.contains("class=\"hit error\""), "{}", page.words());
    let json = world.get_json(&format!("/documents/{}", link.split('?').next().unwrap())).await.json();
    let note =
        json["findings"].as_array().unwrap().iter().find(|n| n["rule"] == "a2a/interface-binding-required").unwrap();
    let line = usize::try_from(note["line"].as_u64().unwrap()).unwrap();
    assert_eq!(json["lines"][line - 1]["number"].as_u64().unwrap() as usize, line);
    let shown = json["lines"][line - 1]["pieces"]
        .as_array()
        .unwrap()
        .iter()
        .map(|p| p["text"].as_str().unwrap())
        .collect::<String>();
    assert!(shown.contains("https://tides.example.com/a2a"), "{shown}");
}

#[tokio::test]
async fn raw_bytes_are_saved_and_never_shown() {
    let world = World::full().await;
    let json = world.get_json(&world.target("sound").await).await.json();
    let hash = json["surfaces"][0]["document"].as_str().unwrap();
    let raw = world.get(&format!("/documents/{hash}/raw")).await;
    assert_eq!(raw.body, SOUND);
    assert_eq!(raw.header("content-type"), "application/octet-stream");
    assert!(raw.header("content-disposition").starts_with("attachment"));
    assert!(raw.header("content-security-policy").contains("sandbox"));
}

#[tokio::test]
async fn what_is_not_there_gets_a_page_with_a_way_on() {
    let world = World::full().await;
    for (path, said) in [
        ("/nowhere", "There is no page at this address."),
        ("/targets/999", "There is no target “999” here."),
        ("/targets/x%E2%80%AE", "There is no target “x⟨U+202E⟩” here."),
        ("/documents/00", "There is no document “00” here."),
        ("/rules/a2a/nothing", "There is no rule “a2a/nothing” here."),
        ("/crawls/77", "There is no crawl “77” here."),
    ] {
        let answer = world.get(path).await;
        assert_eq!(answer.status, StatusCode::NOT_FOUND, "{path}");
        assert!(answer.words().starts_with(said), "{path}: {}", answer.words());
        assert!(answer.body.contains("<a href=\"/\">Overview</a>"), "{path}");
        let problem = world.get_json(path).await;
        assert_eq!(problem.header("content-type"), "application/problem+json", "{path}");
        assert_eq!(problem.json()["status"], 404, "{path}");
    }
}

#[tokio::test]
async fn a_field_that_cannot_be_read_is_named_and_not_guessed() {
    let world = World::full().await;
    for (path, said) in [
        ("/targets?headline=bad", "“bad” is no value of headline"),
        ("/targets?reach=sideways", "“sideways” is no value of reach"),
        ("/targets?kind=x", "“x” is no value of kind"),
        ("/targets?sort=x", "The field “sort” is none of headline, changed, name"),
        ("/targets?after=x", "The field “after” is no place in this list"),
        ("/rules?severity=grave", "The field “severity” cannot be read"),
        ("/rules?version=9", "The field “version” is none of"),
        ("/rules?seed=nobody", "The field “seed” cannot be read"),
        ("/rules/coverage?standing=x", "The field “standing” cannot be read"),
        ("/crawls?before=x", "The field “before” is no number of a crawl"),
    ] {
        let answer = world.get(path).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{path}");
        assert!(answer.words().starts_with(said), "{path}: {}", answer.words());
    }
    assert_eq!(
        world.get("/targets?headline=&reach=&kind=&q=").await.status,
        StatusCode::OK,
        "an empty field is no filter"
    );
}

#[tokio::test]
async fn coverage_has_a_way_on_for_every_published_rule() {
    let world = World::empty().await;
    let page = world.get("/rules/coverage").await;
    assert_eq!(page.status, StatusCode::OK);
    assert!(page.words().contains("Of 316 rules in four published catalogues"), "{}", page.words());
    assert!(page.body.contains("<a href=\"/rules/a2a/skill-id-duplicate\">"), "rows lead to rules");
    let json = world.get_json("/rules/coverage?source=validator&standing=not-observable").await.json();
    let rows = json["catalogues"][0]["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 29);
    assert!(rows.iter().all(|row| row["why"].as_str().is_some_and(|why| !why.is_empty())));
}

#[tokio::test]
async fn clients_are_shown_as_they_were_run() {
    let world = World::empty().await;
    let page = world.get("/clients").await;
    assert_eq!(page.status, StatusCode::OK);
    assert!(page.words().contains("released clients"), "{}", page.words());
    let json = world.get_json("/clients?rule=a2a/flag-not-boolean").await.json();
    let rows = json["kinds"][0]["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2);
    assert_eq!(rows[0]["clients"]["a2a-sdk 1.3.0"]["outcome"], "refuses");
    assert_eq!(rows[0]["clients"]["a2a-sdk 0.3.26"]["outcome"], "opens");
    let rule = world.get("/rules/a2a/flag-not-boolean").await;
    assert!(rule.body.contains("What released clients do with it"), "the rule's page has its runs");
    let none = world.get("/clients?rule=a2a/nothing").await;
    assert!(none.words().contains("No document was run for this rule."), "{}", none.words());
}

#[tokio::test]
async fn rules_are_filtered_by_revision_and_published_catalogue() {
    let world = World::empty().await;
    let json = world.get_json("/rules?family=a2a&version=0.1&seed=reader").await.json();
    let rules = json["families"][0]["rules"].as_array().unwrap();
    assert!(!rules.is_empty());
    for rule in rules {
        let versions = rule["versions"].to_string();
        assert!(versions.contains("0.1") || versions.contains("all"), "{rule}");
    }
    assert!(world.get("/rules?q=Duplicate+skill+id").await.body.contains("a2a/skill-id-duplicate"));
}

#[tokio::test]
async fn a_page_can_only_be_read() {
    let world = World::empty().await;
    let answer = world.ask(Request::post("/targets").body(Body::empty()).unwrap()).await;
    assert_eq!(answer.status, StatusCode::METHOD_NOT_ALLOWED);
    assert!(answer.words().contains("This page can only be read."));
}

#[tokio::test]
async fn a_chosen_theme_is_in_the_first_byte_of_the_page() {
    let world = World::empty().await;
    let form = Request::post("/theme").header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
    let chosen = world.ask(form.body(Body::from("theme=dark&back=%2Frules")).unwrap()).await;
    assert_eq!((chosen.status, chosen.header("location")), (StatusCode::SEE_OTHER, "/rules"));
    let cookie = chosen.header("set-cookie").split(';').next().unwrap().to_owned();
    let page = world.ask(Request::get("/rules").header(header::COOKIE, cookie).body(Body::empty()).unwrap()).await;
    assert!(page.body.starts_with("<!doctype html>\n<html lang=\"en\" data-theme=\"dark\">"), "{}", &page.body[..60]);
    assert!(!world.get("/rules").await.body.contains("data-theme"));
}

#[tokio::test]
async fn assets_are_kept_for_ever_under_the_hash_of_their_bytes() {
    let world = World::empty().await;
    let page = world.get("/").await.body;
    let url = page.split("rel=\"stylesheet\" href=\"").nth(1).unwrap().split('"').next().unwrap();
    let style = world.get(url).await;
    assert_eq!((style.status, style.header("content-type")), (StatusCode::OK, "text/css; charset=utf-8"));
    assert!(style.header("cache-control").contains("immutable"));
    assert_eq!(world.get("/static/plumbline-0.css").await.status, StatusCode::NOT_FOUND);
    assert_eq!(world.get("/favicon.ico").await.header("content-type"), "image/svg+xml");
}

#[tokio::test]
async fn the_sample_says_that_it_is_one() {
    let sample = World::with_settings(SiteSettings { is_sample: true, ..SiteSettings::default() }).await;
    assert!(sample.get("/").await.body.contains("built-in sample"));
    assert!(!sample.get("/").await.words().contains("serve --sample"), "it does not offer what is already on");
    assert!(World::empty().await.get("/").await.words().contains("plumbline serve --sample"));
}

#[tokio::test]
async fn the_crawler_s_page_says_who_it_is_how_it_behaves_and_how_to_opt_out() {
    let world = World::empty().await;
    insta::assert_snapshot!(world.get("/about/crawler").await.words());
}

#[tokio::test]
async fn a_crawl_tells_what_it_saw_and_what_it_did_not() {
    let world = World::full().await;
    insta::assert_snapshot!(world.get("/crawls/1").await.words());
}

#[tokio::test]
async fn health_is_told_in_plain_words() {
    let world = World::empty().await;
    assert_eq!(
        (world.get("/healthz").await.status, world.get("/healthz").await.body.as_str()),
        (StatusCode::OK, "alive\n")
    );
    assert_eq!(
        (world.get("/readyz").await.status, world.get("/readyz").await.body.as_str()),
        (StatusCode::OK, "ready\n")
    );
    world.store.close().await;
    assert_eq!(world.get("/readyz").await.status, StatusCode::SERVICE_UNAVAILABLE);
    let broken = world.get("/").await;
    assert_eq!(broken.status, StatusCode::INTERNAL_SERVER_ERROR);
    assert!(
        broken.words().contains("Something broke on our side.") && !broken.body.contains("pool"),
        "{}",
        broken.words()
    );
}

#[tokio::test]
async fn a_long_list_is_paged_and_says_where_it_is() {
    let world = World::empty().await;
    for n in 0..120 {
        world.add_card(&format!("h{n:03}.example"), None).await;
    }
    let mut url = "/targets?sort=name".to_owned();
    let mut seen = Vec::new();
    for expected in ["1 to 50 of 120, by name.", "51 to 100 of 120, by name.", "101 to 120 of 120, by name."] {
        assert!(world.get(&url).await.words().contains(expected), "{url}");
        let page = world.get_json(&url).await.json();
        seen.extend(
            page["targets"].as_array().unwrap().iter().map(|target| target["name"].as_str().unwrap().to_owned()),
        );
        url = page["next"].as_str().unwrap_or_default().to_owned();
    }
    assert_eq!(url, "");
    assert_eq!(seen, (0..120).map(|n| format!("h{n:03}.example")).collect::<Vec<_>>());
}

/// A request as the person at this machine makes it, or as somebody else does.
fn pressed(path: &str, peer: &str) -> Request<Body> {
    let mut request = Request::post(path)
        .header(header::HOST, "127.0.0.1:8080")
        .header(header::ACCEPT, "text/html")
        .body(Body::empty())
        .unwrap();
    request.extensions_mut().insert(axum::extract::ConnectInfo(std::net::SocketAddr::new(peer.parse().unwrap(), 4711)));
    request
}

#[tokio::test]
async fn only_the_person_at_this_machine_can_pause_resume_and_look_again() {
    let world = World::full().await;
    let target = world.target("sound").await;
    for action in ["recheck", "pause", "resume"] {
        let path = format!("{target}/{action}");
        let refused = world.ask(pressed(&path, "192.0.2.7")).await;
        assert_eq!(refused.status, StatusCode::FORBIDDEN);
        assert!(refused.words().contains("Only the person at this machine"), "{}", refused.words());
        let done = world.ask(pressed(&path, "127.0.0.1")).await;
        assert_eq!((done.status, done.header("location")), (StatusCode::SEE_OTHER, target.as_str()));
        let page = world.get(&target).await;
        assert_eq!(page.words().contains("Paused: it is not looked at"), action == "pause", "{action}");
        assert!(!page.body.contains("<button>Pause"), "no button for whoever cannot press it");
    }
    assert_eq!(world.ask(pressed("/targets/999/recheck", "127.0.0.1")).await.status, StatusCode::NOT_FOUND);
    assert_eq!(world.ask(pressed("/crawls/pause", "192.0.2.7")).await.status, StatusCode::FORBIDDEN);
    world.ask(pressed("/crawls/pause", "127.0.0.1")).await;
    assert!(world.get("/crawls").await.words().contains("Everything is paused"));
    world.ask(pressed("/crawls/resume", "127.0.0.1")).await;
    assert!(!world.get("/crawls").await.words().contains("Everything is paused"));
}

#[tokio::test]
async fn a_place_that_differs_at_every_fetch_is_shown_and_counts_again_when_the_operator_says_so() {
    let world = World::empty().await;
    let crawl = world.walk_registry().await;
    world.add_card("ticking.example", None).await;
    for n in 0..8 {
        let document = SOUND.replacen('{', &format!("{{\"made<at>\": \"{n} o'clock\", "), 1);
        world.see(crawl, "ticking.example", &document, NOW - (20 - n) * 3_600).await;
    }
    let path = format!("{}/documents", world.target("ticking").await);
    let places = async || world.get_json(&path).await.json()["volatile"].clone();
    let place = places().await[0].clone();
    assert_eq!((place["pointer"].as_str(), place["kind"].as_str()), (Some("/made<at>"), Some("a2a-card")));
    let page = world.get(&path).await;
    assert!(
        page.words().contains("What differs at every fetch") && page.words().contains("/made<at>"),
        "{}",
        page.words()
    );
    assert!(!page.body.contains("Count it again"), "no button for whoever cannot press it");
    let here = |path: &str| {
        let mut request = pressed(path, "127.0.0.1");
        *request.method_mut() = axum::http::Method::GET;
        request
    };
    let own = world.ask(here(&path)).await;
    assert!(own.body.contains("name=\"pointer\" value=\"/made&#60;at&#62;\""), "{}", own.body);
    let said = |pointer: &str, peer: &str| {
        let mut request = pressed(&format!("{path}/count"), peer);
        let form = "application/x-www-form-urlencoded".parse().unwrap();
        request.headers_mut().insert(header::CONTENT_TYPE, form);
        *request.body_mut() = Body::from(format!("surface={}&pointer={pointer}", place["surface_id"]));
        request
    };
    assert_eq!(world.ask(said("/made%3Cat%3E", "192.0.2.7")).await.status, StatusCode::FORBIDDEN);
    assert_eq!(world.ask(said("/name", "127.0.0.1")).await.status, StatusCode::NOT_FOUND);
    assert_eq!(places().await.as_array().map(Vec::len), Some(1));
    let done = world.ask(said("/made%3Cat%3E", "127.0.0.1")).await;
    assert_eq!((done.status, done.header("location")), (StatusCode::SEE_OTHER, path.as_str()));
    assert_eq!(places().await.as_array().map(Vec::len), Some(0));
    let noted = world.store.noted(i64::MAX, None, 9).await.unwrap();
    assert_eq!(noted.iter().map(|row| row.action.as_str()).collect::<Vec<_>>(), ["place.count"]);
    assert_eq!(world.ask(said("/made%3Cat%3E", "127.0.0.1")).await.status, StatusCode::NOT_FOUND, "it counts already");
    assert!(!world.get(&path).await.words().contains("What differs"), "nothing is left to tell");
}

#[tokio::test]
async fn whoever_opted_out_stands_on_the_page_about_the_crawler() {
    let settings = SiteSettings { opt_outs: vec!["domain:tides.dev".into()], ..SiteSettings::default() };
    let world = World::with_settings(settings).await;
    assert!(world.get("/about/crawler").await.words().contains("domain:tides.dev"));
    assert!(World::empty().await.get("/about/crawler").await.words().contains("Nobody has asked"));
}

#[tokio::test]
async fn this_installation_says_what_runs_how_big_it_is_and_what_it_keeps() {
    let world = World::full().await;
    let before = world.get("/settings/about").await.words();
    assert!(before.contains("no measurement is there yet"), "{before}");
    world.store.measure(NOON_BEFORE).await.unwrap();
    world.store.measure(NOW).await.unwrap();
    let words = world.get("/settings/about").await.words();
    for said in [
        "Plumbline has run for 2 h and keeps",
        "Ruleset 2026.11 with",
        "SQLite,",
        "% in use,",
        "Measured 30 Nov",
        "smaller tables",
        "Probe\n14 days. Every single probe.",
    ] {
        assert!(words.contains(said), "{said} is not in {words}");
    }
    let json = world.get_json("/settings/about").await.json();
    assert_eq!((&json["database"], &json["retention"]["event_days"]), (&"sqlite".into(), &400.into()));
    let tables = json["sizes"]["tables"].as_array().unwrap();
    assert!(tables.len() > 40 && tables[0]["bytes"].as_i64() >= tables[1]["bytes"].as_i64(), "the largest first");
    assert!(json["sizes"]["growth"].is_i64() && json["disk"]["free"].as_u64() > Some(0), "{json}");
    assert!(world.get("/").await.body.contains("href=\"/settings/about\""), "every page leads there");
}

/// Five days before the moment of every request.
const NOON_BEFORE: i64 = NOW - 5 * 86_400;

#[tokio::test]
async fn metrics_are_told_in_the_form_of_openmetrics_with_few_labels() {
    let world = World::full().await;
    world.store.measure(NOW).await.unwrap();
    let answer = world.get("/metrics").await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.body);
    assert_eq!(answer.header("content-type"), "application/openmetrics-text; version=1.0.0; charset=utf-8");
    let mut declared = Vec::new();
    let lines: Vec<&str> = answer.body.lines().collect();
    assert_eq!(lines.last(), Some(&"# EOF"));
    for line in &lines[..lines.len() - 1] {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let name = rest.split(' ').next().unwrap();
            assert!(!declared.contains(&name), "{name} is declared once");
            declared.push(name);
        } else if !line.starts_with("# HELP ") {
            let family = declared.last().unwrap();
            assert!(line.starts_with(family), "{line} stands under {family}");
            assert!(line.rsplit(' ').next().unwrap().parse::<f64>().is_ok(), "{line} ends in a number");
        }
    }
    for line in [
        "plumbline_build_info{version=\"0.1.0\",ruleset=\"2026.11\"} 1",
        "plumbline_targets{headline=\"sound\",reach=\"up\",kind=\"a2a-agent\"} 2",
        "plumbline_probe_total{outcome=\"unreachable\",kind=\"a2a-card\"} 2",
        "plumbline_probe_seconds_bucket{le=\"+Inf\"} 7",
        "plumbline_requests_total{class=\"2xx\"} 5",
        "plumbline_throttles_total 1",
        "plumbline_crawl_age_seconds{source=\"official\"} 4000",
        "plumbline_judged_total 5",
        "process_start_time_seconds 1796054820",
    ] {
        assert!(lines.contains(&line), "{line} is not in\n{}", answer.body);
    }
    let newest = world.store.newest_event().await.unwrap();
    assert!(lines.contains(&format!("plumbline_event_id {newest}").as_str()));
    let findings = lines.iter().filter(|line| line.starts_with("plumbline_findings_open{"));
    let findings: i64 = findings.map(|line| line.rsplit(' ').next().unwrap().parse::<i64>().unwrap()).sum();
    assert_eq!(findings, world.store.counts().await.unwrap().findings_open, "each open finding is counted once");
    assert!(!answer.body.contains("example"), "no host and no target is a label");
}

#[tokio::test]
async fn readiness_is_strict_where_it_is_asked_to_be() {
    let world = World::full().await;
    for path in ["/readyz", "/readyz?strict", "/readyz?strict=1"] {
        let answer = world.get(path).await;
        assert_eq!((answer.status, answer.body.as_str()), (StatusCode::OK, "ready\n"), "{path}");
    }
    let impatient = SiteSettings { registry_interval_s: 60, surface_interval_s: 60, ..SiteSettings::default() };
    let world = World::with_settings(impatient).await;
    world.walk_registry().await;
    world.add_card("waiting.example", None).await;
    assert_eq!(world.get("/readyz").await.status, StatusCode::OK);
    let answer = world.get("/readyz?strict").await;
    assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE);
    let lines: Vec<&str> = answer.body.lines().collect();
    assert_eq!(
        lines,
        [
            "the last complete pass over official began 1\u{a0}h ago",
            "surfaces have been waiting to be looked at for 1\u{a0}h"
        ]
    );
}

#[tokio::test]
async fn a_walk_is_told_by_what_it_read() {
    let world = World::full().await;
    let crawl = world.get_json("/crawls").await.json();
    assert!(crawl["crawls"][0]["entries"].as_i64() > Some(0), "{crawl}");
    let page = world.get("/crawls").await;
    assert!(page.words().contains("The last walk of official read 3 entries and ended complete."), "{}", page.words());
}

#[tokio::test]
async fn a_listing_stands_beside_what_answers_and_what_nobody_asked_is_not_called_equal() {
    let world = World::full().await;
    let listed = world.get(&format!("{}/listing", world.target("weather").await)).await;
    assert!(listed.words().contains("The listing is in step, as far as it could be compared"), "{}", listed.words());
    assert!(listed.words().contains("no address was asked"), "{}", listed.words());
    let unlisted = world.get(&format!("{}/listing", world.target("blocked").await)).await;
    assert!(unlisted.words().contains("No registry lists it"), "{}", unlisted.words());
}

#[tokio::test]
async fn every_published_requirement_of_mcp_has_a_row_and_none_passes_unseen() {
    let world = World::full().await;
    let page = world.get_json("/rules/mcp-requirements?target=1").await;
    assert_eq!(page.status, 200);
    let page: serde_json::Value = serde_json::from_str(&page.body).unwrap();
    let rows: Vec<&serde_json::Value> =
        page["sections"].as_array().unwrap().iter().flat_map(|section| section["rows"].as_array().unwrap()).collect();
    assert_eq!(rows.len(), 133);
    assert!(rows.iter().all(|row| row.get("result").is_none()), "nobody talked to an endpoint of that target");
    assert_eq!(world.get("/rules/mcp-requirements").await.status, 200);
    assert_eq!(world.get("/rules/mcp-requirements?target=99999").await.status, 404);
}
