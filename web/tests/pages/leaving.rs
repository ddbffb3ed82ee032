//! What leaves for programs: the API and its description, downloads, feeds, badges, the registry that we serve.

use std::collections::BTreeSet;

use axum::body::Body;
use axum::http::{Request, StatusCode, header};
use plumbline_rules::document::Document;
use plumbline_rules::judge::{Given, Origin, Settings, Subject, judge};
use plumbline_rules::kind::Kind;
use plumbline_rules::report::Outcome;
use plumbline_rules::rule::{Axis, Severity};
use plumbline_store::walks::Entry;
use plumbline_web::SiteSettings;
use serde_json::Value;

use crate::support::{HOSTILE, World, entry_of};

/// Every address of the description with its parameters filled in.
async fn addresses(world: &World) -> Vec<String> {
    let target = world.target("blocked").await.replace("/targets/", "");
    let hash = world.get_json(&format!("/targets/{target}")).await.json()["surfaces"][0]["document"].clone();
    let description = world.get_json("/openapi.json").await.json();
    let paths = description["paths"].as_object().unwrap().iter().filter(|(_, path)| path["get"].is_object());
    paths
        .map(|(path, _)| path)
        .filter(|path| !path.contains("/deploys/{id}") && !path.contains("/incidents/{id}"))
        .map(|path| {
            let of_target = path.starts_with("/api/v1/targets") || path.starts_with("/targets");
            let one = if of_target { target.as_str() } else { "1" };
            let file = match path.split('/').nth(2) {
                Some("target" | "targets") => target.as_str(),
                Some("owner" | "owners") => "harbour",
                Some("host" | "hosts") => "sound.example",
                Some("cohorts") => "all",
                _ => "tier=1",
            };
            let ending = if path.starts_with("/feeds") { "atom" } else { "svg" };
            path.replace("/v0.1/servers/{name}", "/v0.1/servers/io.example%2Ftides")
                .replace("{version}", "latest")
                .replace("{file}", &format!("{file}.{ending}"))
                .replace("views.atom", "views.atom?q=tide")
                .replace("{id}", one)
                .replace("{hash}", hash.as_str().unwrap())
                .replace("{family}", "a2a")
                .replace("{name}", "interface-binding-required")
                .replace("{slug}", "all")
                .replace("/failing/{form}", "/failing/csv?rule=a2a/interface-binding-required")
                .replace("{form}", "csv")
        })
        // Nothing is tagged in this world, and nothing was said at an endpoint.
        .filter(|path| {
            !path.contains("tier=1") && !path.starts_with("/surfaces/") && !path.starts_with("/api/v1/webhooks/")
        })
        .collect()
}

/// The addresses of the routes that programs are served at, and whether each is told to: read from the source, as a router does
/// not tell.
fn routed() -> BTreeSet<(String, &'static str)> {
    let source = include_str!("../../src/routes.rs");
    let routes = source.split(".route(\"").skip(1).filter_map(|rest| rest.split_once("\", "));
    let for_programs = ["/api/", "/v0.1/", "/feeds/", "/badges/", "/metrics", "/healthz", "/readyz"];
    let is_for_programs = |path: &str| {
        for_programs.iter().any(|start| path.starts_with(start))
            || ["/raw", "/sarif", "/surfaces/{id}/session"].iter().any(|end| path.ends_with(end))
    };
    routes
        .filter(|(path, _)| is_for_programs(path))
        .flat_map(|(path, rest)| {
            let handler = rest.lines().next().unwrap();
            let methods = [("get(", "get"), ("post(", "post"), ("put(", "put"), ("delete(", "delete")];
            methods.into_iter().filter(|(call, _)| handler.contains(call)).map(|(_, name)| (path.to_owned(), name))
        })
        .collect()
}

#[tokio::test]
async fn every_route_for_programs_is_described() {
    let description = World::empty().await.get_json("/openapi.json").await.json();
    let routed = routed();
    assert!(routed.len() > 25, "{routed:?}");
    for (path, method) in &routed {
        let operation = &description["paths"][path][method];
        assert!(operation.is_object(), "{method} {path} is routed and not described");
        assert_eq!(operation["requestBody"].is_object(), *method == "post", "{method} {path}");
    }
}

#[tokio::test]
async fn only_the_members_that_were_asked_for_come_back() {
    let world = World::full().await;
    let page = world.get("/api/v1/targets?fields=id,headline&limit=2").await.json();
    assert_eq!(page["items"][0].as_object().unwrap().keys().collect::<Vec<_>>(), ["headline", "id"]);
    assert!(page["next"].is_string());
    let one = world.get("/api/v1/targets/1?fields=key").await.json();
    assert_eq!(one.as_object().unwrap().len(), 1);
    let refused = world.get("/api/v1/targets?fields=id,colour").await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST);
    assert!(refused.json()["title"].as_str().unwrap().contains("colour"), "{}", refused.body);
    assert_eq!(world.get("/api/v1/exports/targets/csv?fields=id").await.status, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn every_address_of_the_description_answers_as_it_says() {
    let world = World::full().await;
    let all = addresses(&world).await;
    assert!(all.len() > 50, "{all:?}");
    for address in all {
        let answer = world.get(&address).await;
        // Who changed what is not for everybody, and its description says so.
        if address.starts_with("/api/v1/audit") {
            assert_eq!(answer.status, StatusCode::FORBIDDEN, "{}", answer.body);
            assert_eq!(answer.header("content-type"), "application/problem+json");
            continue;
        }
        assert_eq!(answer.status, StatusCode::OK, "{address}: {}", answer.body);
        let kind = answer.header("content-type");
        if address.contains("/exports/") {
            assert!(kind.starts_with("text/csv") && !answer.header("ratelimit").is_empty(), "{address}");
            continue;
        }
        if !address.starts_with("/api/v1/") || address.contains("/event") {
            assert!(!kind.is_empty() && !kind.starts_with("text/html"), "{address}: {kind}");
            continue;
        }
        assert!(!answer.header("ratelimit").is_empty(), "{address}");
        assert_eq!(answer.header("content-type"), "application/json", "{address}");
        let tag = answer.header("etag").to_owned();
        let again = Request::get(&address).header(header::IF_NONE_MATCH, &tag).body(Body::empty()).unwrap();
        let again = world.ask(again).await;
        assert_eq!((again.status, again.body.as_str()), (StatusCode::NOT_MODIFIED, ""), "{address}");
    }
}

/// What our rules say of a document of ours, hints left out.
fn said(kind: Kind, text: &str) -> Vec<String> {
    let given = Given::default();
    let subject = Subject {
        kind: Some(kind),
        version: None,
        origin: Origin::PublicHost,
        given: &given,
        session: None,
        answer: None,
    };
    let report = judge(&Document::from_text(text), &subject, &Settings::default());
    assert!(report.results.len() > 3, "the rules could look");
    let fired = report.results.iter().filter_map(|result| match &result.outcome {
        Outcome::Fires(places) if result.rule.axis == Axis::Conformity => Some((result.rule.id, places)),
        _ => None,
    });
    fired
        .flat_map(|(rule, places)| places.iter().map(move |place| (rule, place)))
        .filter(|(_, place)| place.severity != Severity::Info)
        .map(|(rule, place)| format!("{rule} {}: {}", place.pointer, place.message))
        .collect()
}

#[tokio::test]
async fn our_own_rules_find_nothing_in_our_own_description() {
    let world = World::empty().await;
    let said = said(Kind::Openapi, &world.get("/openapi.json").await.body);
    assert!(said.is_empty(), "{said:#?}");
}

#[tokio::test]
async fn no_description_names_what_it_does_not_define_or_says_a_thing_twice() {
    let world = World::empty().await;
    let description = world.get_json("/openapi.json").await.json();
    let schemas = description["components"]["schemas"].as_object().unwrap();
    let text = description.to_string();
    for reference in text.split("#/components/schemas/").skip(1) {
        let name = reference.split('"').next().unwrap();
        assert!(schemas.contains_key(name), "{name}");
    }
    let ids: Vec<&str> = description["paths"]
        .as_object()
        .unwrap()
        .values()
        .flat_map(|path| path.as_object().unwrap().values())
        .map(|operation| operation["operationId"].as_str().unwrap())
        .collect();
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len());
    let described = schemas["TargetRow"]["properties"]["headline_since_s"]["description"].as_str().unwrap();
    assert!(described.contains("never judged"), "what a field means comes from its documentation: {described}");
    let page = world.get("/api").await;
    assert!(page.words().contains("GET /api/v1/targets/{id}/findings"), "{}", page.words());
}

#[tokio::test]
async fn a_list_is_read_to_its_end_by_cursors() {
    let world = World::empty().await;
    for n in 0..7 {
        world.add_card(&format!("h{n}.example"), None).await;
    }
    for sort in ["headline", "changed", "name"] {
        let mut names = BTreeSet::new();
        let mut cursor = String::new();
        loop {
            let page = world.get(&format!("/api/v1/targets?sort={sort}&limit=3{cursor}")).await.json();
            for item in page["items"].as_array().unwrap() {
                assert!(names.insert(item["name"].as_str().unwrap().to_owned()), "{sort}: twice");
            }
            let Some(next) = page["next"].as_str() else { break };
            cursor = format!("&cursor={next}");
        }
        assert_eq!(names.len(), 7, "{sort}");
    }
}

#[tokio::test]
async fn problems_are_problems_whatever_is_asked_for() {
    let world = World::empty().await;
    for (path, status) in [
        ("/api/v1/targets/99", StatusCode::NOT_FOUND),
        ("/api/v1/targets?limit=0", StatusCode::BAD_REQUEST),
        ("/api/v1/targets?cursor=x", StatusCode::BAD_REQUEST),
        ("/api/v1/targets?q=knd:x", StatusCode::BAD_REQUEST),
        ("/api/v1/nothing", StatusCode::NOT_FOUND),
        ("/v0.1/servers?updated_since=yesterday", StatusCode::BAD_REQUEST),
    ] {
        let answer = world.get(path).await;
        assert_eq!(answer.status, status, "{path}");
        assert_eq!(answer.header("content-type"), "application/problem+json", "{path}");
        assert_eq!(answer.json()["status"], status.as_u16(), "{path}");
    }
}

/// As every browser asks. Rows come as a stream, and whoever packs a stream asks once more after its end.
#[tokio::test]
async fn downloads_come_packed_as_well() {
    let world = World::full().await;
    for path in addresses(&world).await.iter().filter(|path| path.contains("/exports/")) {
        for coding in ["gzip", "zstd"] {
            let request = Request::get(path).header(header::ACCEPT_ENCODING, coding).body(Body::empty()).unwrap();
            let plain = world.get(path).await;
            let packed = world.ask(request).await;
            assert_eq!(packed.status, plain.status, "{path}");
            let is_large = plain.status == StatusCode::OK && plain.body.len() > 200;
            assert!(!is_large || packed.header("content-encoding") == coding, "{path}: {:?}", packed.headers);
        }
    }
}

#[tokio::test]
async fn downloads_hold_every_row_and_no_formula() {
    let world = World::empty().await;
    for n in 0..612 {
        world.add_card(&format!("h{n:03}.example"), Some(format!("=SUM({n}),\"x\""))).await;
    }
    let answer = world.get("/api/v1/exports/targets/csv?q=kind:a2a-agent").await;
    assert!(answer.header("content-disposition").contains("plumbline-targets.csv"));
    assert_eq!(answer.body.matches("\r\n").count(), 613, "a header and every row, over more than one batch");
    assert!(
        answer.body.contains("\"'=SUM(7),\"\"x\"\"\"") && !answer.body.contains(",=SUM"),
        "{}",
        &answer.body[..600]
    );
    let lines = world.get("/api/v1/exports/targets/jsonl").await.body;
    let rows: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows.len(), 612);
    assert_eq!(world.get("/api/v1/exports/targets/xlsx").await.status, StatusCode::NOT_FOUND);
    let packed = world.get("/api/v1/exports/targets/parquet").await;
    if cfg!(feature = "parquet") {
        assert_eq!(packed.header("content-type"), "application/vnd.apache.parquet");
        assert!(packed.body.starts_with("PAR1"), "what is in it is read again by others, in the gate");
    } else {
        assert_eq!(packed.status, StatusCode::NOT_FOUND, "this build cannot write it");
    }
    for (month, days) in [("2026-11", 1), ("2026-10", 0)] {
        let lines = world.get(&format!("/api/v1/exports/days/jsonl?month={month}")).await.body;
        assert_eq!(lines.lines().count(), days, "{month}");
    }
    assert_eq!(world.get("/api/v1/exports/days/csv?month=2026-13").await.status, StatusCode::BAD_REQUEST);
    let page = world.get("/prevalence?format=csv").await;
    assert_eq!((page.status, page.header("content-type")), (StatusCode::OK, "text/csv; charset=utf-8; header=present"));
    let refused = world.get("/methodology?format=csv").await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST, "a page without rows says so");
}

#[tokio::test]
async fn a_snapshot_is_handed_out_and_nothing_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let month = folder.path().join("2026-10");
    std::fs::create_dir(&month).unwrap();
    std::fs::write(folder.path().join("secret"), "x").unwrap();
    let schema = serde_json::json!({
        "month": "2026-10", "taken_at": "2026-11-01T00:00:00Z", "licence": "CC0-1.0",
        "tables": [{ "name": "days", "says": "All targets on a day.", "rows": 31, "columns": [],
            "files": [{ "name": "days.csv", "bytes": 3, "sha256": "00" }] }],
    });
    std::fs::write(month.join("schema.json"), schema.to_string()).unwrap();
    std::fs::write(month.join("days.csv"), "day").unwrap();
    let settings = SiteSettings { snapshots: Some(folder.path().to_owned()), ..SiteSettings::default() };
    let world = World::with_settings(settings).await;
    let words = world.get("/snapshots").await.words();
    assert!(
        words.contains("1 month to take away, the newest of 2026-10.") && words.contains("days.csv 3 B"),
        "{words}"
    );
    let file = world.get("/snapshots/2026-10/days.csv").await;
    assert_eq!((file.status, file.body.as_str(), file.header("content-length")), (StatusCode::OK, "day", "3"));
    for none in ["2026-10/rules.csv", "2026-09/days.csv", "2026-10/..%2F..%2Fsecret", "..%2Fsecret/x", "2026-10/.."] {
        assert_eq!(world.get(&format!("/snapshots/{none}")).await.status, StatusCode::NOT_FOUND, "{none}");
    }
    let words = World::empty().await.get("/snapshots").await.words();
    assert!(words.contains("No month was written yet.") && words.contains("plumbline snapshot"), "{words}");
}

#[tokio::test]
async fn feeds_are_well_formed_whatever_a_target_is_called() {
    let world = World::full().await;
    let hostile = world.target("hostile").await;
    for feed in [
        "/feeds/regressions.atom".to_owned(),
        "/feeds/incidents.atom".to_owned(),
        "/feeds/releases.atom".to_owned(),
        format!("/feeds{hostile}.atom"),
        "/feeds/owners/harbour.atom".to_owned(),
        "/feeds/hosts/sound.example.atom".to_owned(),
        "/feeds/cohorts/a2a-agent.atom".to_owned(),
        "/feeds/views.atom?q=headline:blocked".to_owned(),
    ] {
        let answer = world.get(&feed).await;
        assert_eq!(answer.status, StatusCode::OK, "{feed}: {}", answer.body);
        assert_eq!(answer.header("content-type"), "application/atom+xml; charset=utf-8", "{feed}");
        let body = &answer.body;
        assert!(body.starts_with("<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<feed "), "{body}");
        assert!(!body.contains("<script") && !body.contains('\u{1b}') && !body.contains('\u{202e}'), "{feed}: {body}");
        assert_eq!(body.matches("<entry>").count(), body.matches("</entry>").count());
        assert_eq!(body.matches("<id>").count(), body.matches("<entry>").count() + 1, "each has an id of its own");
    }
    let blocked = world.get("/feeds/views.atom?q=headline:blocked").await.body;
    assert!(blocked.contains("blocked.example: blocked"), "{blocked}");
    assert_eq!(world.get("/feeds/owners/nobody.atom").await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn badges_say_how_a_target_stands_and_as_of_when() {
    let world = World::full().await;
    let number = |target: String| target.replace("/targets/", "");
    let (sound, blocked, silent) = (
        number(world.target("sound").await),
        number(world.target("blocked").await),
        number(world.target("silent").await),
    );
    for (badge, says, color) in [
        (format!("/badges/target/{sound}.svg"), ">sound</text>", "#007a52"),
        (format!("/badges/target/{blocked}.svg"), ">blocked</text>", "#84150d"),
        (format!("/badges/target/{blocked}.svg?metric=clients&style=plain"), ">refused by clients</text>", "#84150d"),
        (format!("/badges/target/{silent}.svg?metric=errors"), ">not evaluated</text>", "#545a66"),
        ("/badges/owner/harbour.svg".to_owned(), " of 3 sound</text>", "#84150d"),
    ] {
        let answer = world.get(&badge).await;
        assert_eq!((answer.status, answer.header("content-type")), (StatusCode::OK, "image/svg+xml"), "{badge}");
        assert!(answer.body.contains(says) && answer.body.contains(color), "{badge}: {}", answer.body);
        assert!(answer.body.contains("role=\"img\"") && answer.body.contains("aria-label="), "{badge}");
        assert_eq!(answer.header("cache-control"), "public, max-age=300, stale-while-revalidate=3600", "{badge}");
        assert_eq!(answer.header("cross-origin-resource-policy"), "cross-origin", "{badge} is shown elsewhere");
        assert!(!answer.header("etag").is_empty(), "{badge}");
    }
    let shield = world.get(&format!("/badges/target/{sound}.json")).await.json();
    assert_eq!((&shield["schemaVersion"], &shield["message"]), (&1.into(), &"sound".into()));
    let hostile = number(world.target("hostile").await);
    let answer = world.get(&format!("/badges/target/{hostile}.svg")).await;
    assert!(!answer.body.contains("<script") && !answer.body.contains("<img"), "{}", answer.body);
    assert_eq!(world.get("/badges/target/1.svg?metric=mood").await.status, StatusCode::BAD_REQUEST);
    assert_eq!(world.get("/badges/owner/nobody.svg").await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_client_of_the_official_registry_reads_ours() {
    let world = World::full().await;
    let mut names = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = world.get(&format!("/v0.1/servers?limit=2{cursor}")).await.json();
        for entry in page["servers"].as_array().unwrap() {
            names.push(format!(
                "{} {}",
                entry["server"]["name"].as_str().unwrap(),
                entry["server"]["version"].as_str().unwrap()
            ));
            let official = &entry["_meta"]["io.modelcontextprotocol.registry/official"];
            assert_eq!(official["status"], "active");
            assert!(official["publishedAt"].as_str().unwrap().ends_with('Z'));
            let ours = &entry["_meta"]["example.plumbline/conformance"];
            assert!(ours["verdict"].is_string() && ours["report"].as_str().unwrap().contains("/targets/"));
        }
        let Some(next) = page["metadata"]["nextCursor"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    names.sort();
    assert_eq!(names, ["io.example/tides 2.0.0", "io.example/weather 1.0.0", "io.example/weather 1.1.0"]);
    let count = |page: Value| page["servers"].as_array().unwrap().len();
    assert_eq!(count(world.get("/v0.1/servers?search=weath").await.json()), 1);
    assert_eq!(count(world.get("/v0.1/servers?version=latest").await.json()), 2);
    assert_eq!(count(world.get("/v0.1/servers?verdict=blocked").await.json()), 0);
    assert_eq!(count(world.get("/v0.1/servers?updated_since=2026-11-30T00:00:00Z").await.json()), 3);
    assert_eq!(count(world.get("/v0.1/servers?updated_since=2027-01-01T00:00:00Z").await.json()), 0);
    let versions = world.get("/v0.1/servers/io.example%2Fweather/versions").await.json();
    assert_eq!(count(versions), 2);
    let one = world.get("/v0.1/servers/io.example%2Fweather/versions/1.0.0").await.json();
    assert_eq!(one["server"]["version"], "1.0.0");
    assert_eq!(world.get("/v0.1/servers/io.example%2Fnothing/versions").await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn our_own_rules_find_nothing_in_our_own_registry() {
    let world = World::empty().await;
    world.walk_registry_of(&listed()).await;
    for query in ["", "&updated_since=2026-11-01T00:00:00Z", "&version=latest", "&search=tides"] {
        let (mut pages, mut cursor, mut names) = (Vec::new(), String::new(), 0);
        loop {
            let answer = world.get(&format!("/v0.1/servers?limit=2{query}{cursor}")).await;
            let found = said(Kind::RegistryPage, &answer.body);
            assert!(found.is_empty(), "{query}: {found:#?}");
            let page = answer.json();
            for entry in page["servers"].as_array().unwrap() {
                let found = said(Kind::RegistryEntry, &entry.to_string());
                assert!(found.is_empty(), "{query}: {found:#?}");
                names += 1;
            }
            let next = page["metadata"]["nextCursor"].as_str().map(str::to_owned);
            pages.push(page);
            let Some(next) = next else { break };
            cursor = format!("&cursor={next}");
        }
        let walk = serde_json::json!({ "pages": pages, "complete": true, "include_deleted": false });
        let found = said(Kind::RegistryWalk, &walk.to_string());
        assert!(found.is_empty(), "{query}: {found:#?}");
        assert_eq!(names, if query.contains("latest") || query.contains("search") { 3 } else { 6 }, "{query}");
    }
    let page = world.get("/v0.1/servers").await.json();
    let twice = serde_json::json!({ "pages": [page, page], "complete": true, "include_deleted": false });
    assert!(!said(Kind::RegistryWalk, &twice.to_string()).is_empty(), "the rules can fail");
}

/// Three names, two versions each, as a registry lists them.
fn listed() -> Vec<Entry> {
    let page: Value = serde_json::from_str(include_str!("../../../rules/examples/registry-page.json")).unwrap();
    let server = &page["servers"][0]["server"];
    let entry = |name: &str, version: &str, is_latest: bool| {
        let mut server = server.clone();
        server["name"] = format!("io.github.tidehouse/tides-{name}").into();
        server["version"] = version.into();
        server["remotes"][0]["url"] = format!("https://mcp.tidehouse.dev/{name}").into();
        server["repository"]["url"] = format!("https://github.com/tidehouse/{name}").into();
        server["packages"][0]["identifier"] = format!("@tidehouse/{name}").into();
        server["packages"][0]["version"] = version.into();
        entry_of(&server, is_latest)
    };
    ["north", "east", "south"]
        .into_iter()
        .flat_map(|name| [entry(name, "1.0.0", false), entry(name, "1.1.0", true)])
        .collect()
}

#[tokio::test]
async fn the_registry_is_filtered_by_how_an_endpoint_is_spoken_to() {
    let world = World::full().await;
    for era in ["legacy", "modern", "dual", "unknown"] {
        let page = world.get(&format!("/v0.1/servers?era={era}")).await.json();
        assert_eq!(page["metadata"]["count"], 0, "{era}: no endpoint was ever heard");
    }
    assert_eq!(world.get("/v0.1/servers?era=bronze").await.status, StatusCode::BAD_REQUEST);
    let page = world.get("/v0.1/servers?updated_since=2026-11-30T00:00:00Z&era=").await.json();
    assert_eq!(page["metadata"]["count"], 3);
    assert!(page["servers"][0]["_meta"]["example.plumbline/conformance"]["era"].is_null());
}

#[tokio::test]
async fn what_is_open_leaves_as_sarif() {
    let world = World::full().await;
    let target = world.target("blocked").await;
    let sarif = world.get(&format!("{target}/sarif")).await.json();
    let run = &sarif["runs"][0];
    let results = run["results"].as_array().unwrap();
    let broken = results.iter().find(|one| one["ruleId"] == "a2a/interface-binding-required").unwrap();
    let index = broken["ruleIndex"].as_u64().unwrap() as usize;
    assert_eq!(run["tool"]["driver"]["rules"][index]["id"], "a2a/interface-binding-required");
    assert_eq!(broken["level"], "error");
    assert!(!sarif.to_string().contains(HOSTILE));
}
