//! Every link of every page leads to a page, and to a place that is on it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use axum::http::StatusCode;
use plumbline_store::CrawlId;

use crate::support::{NOW, SOUND, World};

/// Links of one kind that are followed from pages of one kind: they come of one place in a template and differ in their row alone.
const OF_A_KIND: usize = 2;

/// A world in which documents changed, deploys broke and mended, and hosts failed together.
pub async fn lively() -> World {
    let world = World::full().await;
    let crawl = CrawlId(1);
    let broken = SOUND.replace("\"protocolBinding\": \"JSONRPC\", ", "").replace("Tide Tables", "Tide Tables Two");
    for (host, documents) in
        [("broke.example", [SOUND, SOUND, &broken, &broken]), ("mended.example", [&broken, &broken, SOUND, SOUND])]
    {
        world.add_card(host, None).await;
        for (hours, document) in [80, 40, 2, 1].into_iter().zip(documents) {
            world.see(crawl, host, document, NOW - hours * 3_600).await;
        }
    }
    for tenant in ["one.example", "two.example", "three.example"] {
        world.add_card_on("shared.example", tenant, None).await;
        for at_s in [NOW - 2_000, NOW - 1_900, NOW - 1_600, NOW - 1_000] {
            world.miss(crawl, tenant, at_s).await;
        }
    }
    world
}

/// The addresses of our own that a page links to, as a browser would ask for them.
fn links(body: &str) -> BTreeSet<String> {
    let anchors = body.split("<a ").skip(1).filter_map(|tag| tag.split('>').next());
    anchors
        .filter_map(|tag| tag.split("href=\"").nth(1)?.split('"').next())
        .map(|href| href.replace("&amp;", "&").replace("&#38;", "&"))
        .filter(|href| href.starts_with(['/', '#', '?']) && !href.starts_with("//"))
        .collect()
}

/// What an address has in common with others of its template: digits and hashes left out.
fn kind(address: &str) -> String {
    let (path, query) = address.split_once('?').unwrap_or((address, ""));
    let part = |part: &str| {
        if part.chars().any(|c| c.is_ascii_digit() || c == '.') { "#".to_owned() } else { part.to_owned() }
    };
    let mut parts: Vec<String> = path.split('/').map(part).collect();
    if parts.get(1).is_some_and(|first| first == "rules") && parts.len() == 4 {
        parts = vec!["rules".to_owned()];
    }
    let fields: Vec<&str> = query.split('&').filter_map(|pair| pair.split('=').next()).collect();
    format!("{}?{}", parts.join("/"), fields.join("&"))
}

#[tokio::test]
async fn every_link_of_every_page_leads_somewhere() {
    let world = lively().await;
    let mut waiting: VecDeque<(String, String)> = VecDeque::from([("/".to_owned(), String::new())]);
    waiting.extend(world.pages().await.into_iter().map(|page| (page, String::new())));
    let deploys = world.get_json("/api/v1/deploys").await.json();
    let deploys = deploys["items"].as_array().unwrap().iter().map(|one| format!("/deploys/{}", one["id"]));
    waiting.extend(deploys.map(|page| (page, String::new())));
    let mut asked: BTreeSet<String> = BTreeSet::new();
    let target = world.target("broke").await;
    let of_target = ["", "/timeline", "/findings", "/documents", "/diff", "/checks", "/session"];
    waiting.extend(of_target.map(|page| (format!("{target}{page}"), String::new())));
    let mut kinds: BTreeMap<(String, String), usize> = BTreeMap::new();
    let mut wrong = Vec::new();
    while let Some((address, from)) = waiting.pop_front() {
        let (page, place) = address.split_once('#').unwrap_or((&address, ""));
        let of_kind = kinds.entry((kind(&from), kind(page))).or_default();
        if asked.contains(page) || (!from.is_empty() && *of_kind >= OF_A_KIND) {
            continue;
        }
        asked.insert(page.to_owned());
        *of_kind += 1;
        let answer = world.get(page).await;
        if answer.status != StatusCode::OK && !answer.status.is_redirection() {
            wrong.push(format!("{from} leads to {address}: {}", answer.status));
            continue;
        }
        if !place.is_empty() && answer.status == StatusCode::OK && !answer.body.contains(&format!("id=\"{place}\"")) {
            wrong.push(format!("{from} leads to {address}, and there is no such place"));
        }
        if !answer.header("content-type").starts_with("text/html") {
            continue;
        }
        let own = page.split('?').next().unwrap_or_default();
        for link in links(&answer.body) {
            let link = match link.chars().next() {
                Some('#') => format!("{page}{link}"),
                Some('?') => format!("{own}{link}"),
                _ => link,
            };
            let place = link.split_once('#').filter(|(other, _)| *other == page).map(|(_, place)| place.to_owned());
            if place.is_some_and(|place| !answer.body.contains(&format!("id=\"{place}\""))) {
                wrong.push(format!("{page} leads to {link}, and there is no such place"));
            }
            waiting.push_back((link, page.to_owned()));
        }
    }
    for change in ["/diff?from=", "/diff?to="] {
        assert!(asked.iter().any(|address| address.contains(change)), "no {change} was followed");
    }
    assert!(asked.len() > 150, "only {} addresses were followed", asked.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn a_choice_of_two_documents_leads_to_their_difference() {
    let world = lively().await;
    let target = world.target("broke").await;
    let page = world.get(&format!("{target}/diff")).await;
    let form = page.body.split("aria-label=\"Choose two documents\"").nth(1).unwrap();
    let value = form.split("<option value=\"").nth(1).unwrap().split('"').next().unwrap();
    let chosen = world.get(&format!("{target}/diff?from={value}&to={value}")).await;
    assert_eq!(chosen.status, StatusCode::OK, "{value}: {}", chosen.words());
}
