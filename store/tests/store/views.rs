//! What pages ask: each question by one body on both databases.

use plumbline_store::Store;
use plumbline_store::sources::{CrawlEnd, Fault};
use plumbline_store::views::{Position, TargetFilter, TargetOrder, TargetRow};
use plumbline_store::walks::WalkEnd;
use plumbline_store::words::{
    CrawlKind, CrawlState, EventKind, Headline, ReachState, Severity, SurfaceKind, TargetKind,
};

use crate::support::{
    DAY, HOUR, NOON, body, card, domains, entry, for_each_database, judged, one_card, registry, ruleset, seen,
    surface_of,
};

/// Cards `a00.example` … in the order of their numbers: every third blocked, every third sound, the rest not looked at.
async fn many_cards(store: &Store, count: usize) {
    let rules = ruleset(store).await;
    let source = domains(store).await;
    let cards: Vec<_> = (0..count).map(|n| card(&format!("a{n:02}.example"))).collect();
    store.add_targets(source, &cards, NOON).await.unwrap();
    let mut observations = Vec::new();
    for n in 0..count {
        let surface = surface_of(store, &format!("a{n:02}.example")).await;
        let at = NOON + i64::try_from(n).unwrap();
        match n % 3 {
            0 => observations.push(seen(
                surface,
                at,
                &format!("{{\"n\":{n}}}"),
                judged(rules, &[("a2a/e", 'F'), ("a2a/f", 'F')]),
            )),
            1 => observations.push(seen(surface, at, &format!("{{\"n\":{n}}}"), judged(rules, &[("a2a/e", 'P')]))),
            _ => {}
        }
    }
    store.record(&observations).await.unwrap();
}

/// All targets of a filter, page by page.
async fn all_pages(store: &Store, filter: &TargetFilter, order: TargetOrder, page: i64) -> Vec<TargetRow> {
    let matching: i64 = store.target_counts(filter).await.unwrap().iter().map(|count| count.targets).sum();
    let mut after = Position::start();
    let mut all = Vec::new();
    loop {
        let rows = store.targets_page(filter, order, &after, matching, page).await.unwrap();
        let Some(last) = rows.last() else { return all };
        after = last.position();
        all.extend(rows);
    }
}

fn names(rows: &[TargetRow]) -> Vec<&str> {
    rows.iter().map(|row| row.name.trim_end_matches(".example")).collect()
}

#[tokio::test]
async fn pages_of_targets_join_without_gap_or_repetition_in_every_order() {
    for_each_database(async |store| {
        many_cards(&store, 8).await;
        for (order, expected) in [
            (TargetOrder::Headline, ["a06", "a03", "a00", "a07", "a04", "a01", "a02", "a05"]),
            (TargetOrder::Changed, ["a07", "a06", "a04", "a03", "a01", "a00", "a02", "a05"]),
            (TargetOrder::Name, ["a00", "a01", "a02", "a03", "a04", "a05", "a06", "a07"]),
        ] {
            for page in [1, 3, 50] {
                let all = all_pages(&store, &TargetFilter::default(), order, page).await;
                assert_eq!(names(&all), expected, "{order:?} by {page}");
            }
        }
    })
    .await;
}

#[tokio::test]
async fn every_filter_narrows_list_and_counts_alike() {
    for_each_database(async |store| {
        many_cards(&store, 8).await;
        let none = TargetFilter::default();
        let rule = |slug: &str| TargetFilter { rule: Some(slug.into()), ..none.clone() };
        let words =
            |words: &[&str]| TargetFilter { words: words.iter().map(|w| (*w).into()).collect(), ..none.clone() };
        for (filter, expected) in [
            (TargetFilter { kind: Some(TargetKind::A2aAgent), ..none.clone() }, 8),
            (TargetFilter { kind: Some(TargetKind::McpServer), ..none.clone() }, 0),
            (TargetFilter { headline: Some(Headline::Blocked), ..none.clone() }, 3),
            (TargetFilter { reach: Some(ReachState::Up), ..none.clone() }, 6),
            (TargetFilter { reach: Some(ReachState::Retired), ..none.clone() }, 0),
            (TargetFilter { profile: Some("a2a-1.0".into()), ..none.clone() }, 6),
            (TargetFilter { profile: Some("a2a-0.3".into()), ..none.clone() }, 0),
            (rule("a2a/e"), 3),
            (rule("a2a/w"), 0),
            (rule("never/recorded"), 0),
            (words(&["a0"]), 8),
            (words(&["a03"]), 1),
            (words(&["exam", "a03"]), 1),
            (words(&["a03", "a04"]), 0),
            (words(&["03"]), 0),
            (TargetFilter { rule: Some("a2a/e".into()), ..words(&["a03"]) }, 1),
            (TargetFilter { rule: Some("a2a/e".into()), ..words(&["a04"]) }, 0),
        ] {
            let counted: i64 = store.target_counts(&filter).await.unwrap().iter().map(|count| count.targets).sum();
            assert_eq!(counted, expected, "{filter:?}");
            assert_eq!(store.some_targets(&filter).await.unwrap(), expected, "{filter:?} counted so far");
            for order in [TargetOrder::Headline, TargetOrder::Changed, TargetOrder::Name] {
                assert_eq!(all_pages(&store, &filter, order, 2).await.len() as i64, expected, "{filter:?} {order:?}");
            }
            // Many matches are found by walking; that must give the same.
            let walked =
                store.targets_page(&filter, TargetOrder::Headline, &Position::start(), 5_000, 50).await.unwrap();
            assert_eq!(walked.len() as i64, expected, "{filter:?} walked");
        }
    })
    .await;
}

#[tokio::test]
async fn a_finding_that_counts_leave_out_is_found_all_the_same() {
    for_each_database(async |store| {
        many_cards(&store, 8).await;
        // As where all that is open is a guess.
        sqlx::query("UPDATE target SET n_error = 0, n_blocking = 0 WHERE key = 'a00.example'")
            .execute(store.writer())
            .await
            .unwrap();
        for (query, expected) in
            [("severity:error", 3), ("-severity:error", 5), ("severity:warning", 0), ("-severity:info", 8)]
        {
            let filter = plumbline_store::query::parse(query).unwrap().filter(NOON).unwrap();
            let counted: i64 = store.target_counts(&filter).await.unwrap().iter().map(|count| count.targets).sum();
            assert_eq!(counted, expected, "{query}");
        }
    })
    .await;
}

#[tokio::test]
async fn the_latest_version_of_many_names_is_asked_for_at_once() {
    for_each_database(async |store| {
        let source = registry(&store).await;
        let crawl = store.start_crawl(CrawlKind::FullWalk, Some(source), None, "test", NOON).await.unwrap();
        let walk = store.begin_walk(source, crawl, None, NOON).await.unwrap();
        let named = |n: usize, version: &str| plumbline_store::walks::Entry {
            is_latest: Some(version == "2.0.0"),
            ..entry(&format!("io.example/n{n:02}"), version)
        };
        let mut entries: Vec<_> = (0..40).map(|n| named(n, "2.0.0")).collect();
        entries.extend((0..40).map(|n| named(n, "1.0.0")));
        entries.push(named(40, "1.0.0"));
        store.store_page(walk.id, &entries, None, NOON).await.unwrap();
        store.finish_walk(walk.id, &WalkEnd::Complete, NOON).await.unwrap();
        let filter = TargetFilter { kind: Some(TargetKind::McpServer), ..TargetFilter::default() };
        let mut targets = store.targets_page(&filter, TargetOrder::Name, &Position::start(), 41, 50).await.unwrap();
        targets.reverse();
        let ids: Vec<i64> = targets.iter().map(|target| target.id).collect();
        let latest = store.latest_entries(&ids).await.unwrap();
        assert_eq!(latest.len(), 41);
        assert_eq!(
            latest.iter().map(|entry| entry.target_id).collect::<Vec<_>>(),
            ids,
            "in the order that was asked for"
        );
        assert_eq!((latest[0].name.as_str(), latest[0].version.as_str()), ("io.example/n40", "1.0.0"));
        assert!(latest[1..].iter().all(|entry| entry.version == "2.0.0"), "{latest:?}");
        assert!(store.latest_entries(&[-1]).await.unwrap().is_empty());
    })
    .await;
}

#[tokio::test]
async fn every_term_of_the_language_narrows_list_and_counts_alike() {
    for_each_database(async |store| {
        many_cards(&store, 8).await;
        for (query, expected) in [
            ("", 8),
            ("-headline:blocked", 5),
            ("-headline:sound -headline:sound", -1),
            ("kind:a2a-agent -reach:up", 2),
            ("-profile:1.0", 2),
            ("known:declared", 6),
            ("rule:a2a/e", 3),
            ("-rule:a2a/e", 5),
            ("rule:a2a/*", 3),
            ("-rule:a2a/*", 5),
            ("rule:mcp/*", 0),
            ("severity:error", 3),
            ("-severity:error", 5),
            ("-impact:cosmetic", 8),
            ("fact:a2a/f", 3),
            ("-fact:a2a/f", 5),
            ("security:no", 8),
            ("waived:yes", 0),
            ("-waived:yes", 8),
            ("owner:nobody", 0),
            ("-owner:nobody", 8),
            ("host:a03.example", 1),
            ("-host:a03.example", 7),
            ("tag:tier", 8),
            ("tag:tier=2", 0),
            ("-tag:tier=1", 0),
            ("source:domains", 8),
            ("-source:domains", 0),
            ("cohort:all", 8),
            ("cohort:mcp-server", 0),
            ("cohort:nobody", 0),
            ("changed:<1h", 5),
            ("changed:>1h", 3),
            ("added:<2h a0", 8),
            ("headline:blocked rule:a2a/e host:a03.example a03", 1),
        ] {
            let now = NOON + HOUR + 1;
            let Ok(filter) = plumbline_store::query::parse(query).unwrap().filter(now) else {
                assert_eq!(expected, -1, "{query}");
                continue;
            };
            let counted: i64 = store.target_counts(&filter).await.unwrap().iter().map(|count| count.targets).sum();
            assert_eq!(counted, expected, "{query}");
            for order in [TargetOrder::Headline, TargetOrder::Changed, TargetOrder::Name] {
                assert_eq!(all_pages(&store, &filter, order, 3).await.len() as i64, expected, "{query} {order:?}");
            }
            let walked =
                store.targets_page(&filter, TargetOrder::Headline, &Position::start(), 5_000, 50).await.unwrap();
            assert_eq!(walked.len() as i64, expected, "{query} walked");
        }
    })
    .await;
}

#[tokio::test]
async fn a_target_that_left_its_sources_is_listed_only_as_retired() {
    for_each_database(async |store| {
        many_cards(&store, 2).await;
        let source = domains(&store).await;
        store.set_targets(source, &[card("a00.example")], NOON + HOUR).await.unwrap();
        let all = all_pages(&store, &TargetFilter::default(), TargetOrder::Name, 50).await;
        assert_eq!(names(&all), ["a00"]);
        let retired = TargetFilter { reach: Some(ReachState::Retired), ..TargetFilter::default() };
        assert_eq!(names(&all_pages(&store, &retired, TargetOrder::Name, 50).await), ["a01"]);
        let days = store.cohort_days(0).await.unwrap();
        assert_eq!(days.last().unwrap().targets, 1);
    })
    .await;
}

#[tokio::test]
async fn a_target_tells_everything_about_itself() {
    for_each_database(async |store| {
        let rules = ruleset(&store).await;
        let surface = one_card(&store).await;
        let first = judged(rules, &[("a2a/e", '2'), ("a2a/w", 'P'), ("a2a/f", 'F'), ("common/json", 'U')]);
        store.record(&[seen(surface, NOON, "{}", first)]).await.unwrap();
        let id = all_pages(&store, &TargetFilter::default(), TargetOrder::Name, 9).await[0].id;

        let target = store.target(id).await.unwrap().unwrap();
        assert_eq!((target.key.as_str(), target.headline, target.n_error), ("a.example", Headline::Blocked, 1));
        assert_eq!((target.owner.as_deref(), target.source.as_str()), (Some("Them"), "domains"));
        assert_eq!(store.target(id + 1).await.unwrap(), None);

        let surfaces = store.target_surfaces(id).await.unwrap();
        assert_eq!(surfaces.len(), 1);
        assert_eq!((surfaces[0].kind, surfaces[0].shared_with), (SurfaceKind::AgentCard, 0));
        let looked = surfaces[0].judged.clone().unwrap();
        assert_eq!((looked.judged, looked.ruleset.as_str()), (3, "1"));
        assert_eq!((looked.not_evaluated[0].reason.as_str(), looked.not_evaluated[0].rules), ("parent", 1));

        let findings = store.target_findings(id).await.unwrap();
        assert_eq!(findings.len(), 1);
        assert_eq!((findings[0].rule.as_str(), findings[0].severity), ("a2a/e", Severity::Error));
        assert_eq!(
            findings[0].places.iter().map(|p| p.pointer.as_str()).collect::<Vec<_>>(),
            ["/skills/0", "/skills/1"]
        );
        assert_eq!(store.target_past_findings(id).await.unwrap(), 0);

        let facts = store.target_facts(id).await.unwrap();
        assert_eq!((facts[0].rule.as_str(), facts[0].value.as_str()), ("a2a/f", "wrong"));

        let events = store.target_events(id, 50).await.unwrap();
        assert_eq!(events.last().unwrap().kind, EventKind::TargetAdded);
        assert!(events.windows(2).all(|pair| pair[0].id > pair[1].id), "newest first");

        let days = store.target_days(id, NOON / DAY).await.unwrap();
        let today = days[0].1[89].unwrap();
        assert_eq!((days[0].0, today.answered, today.headline), (surface.0, 1, Some(Headline::Blocked)));
        assert_eq!(store.target_strips(&[id], NOON / DAY).await.unwrap(), [(id, days[0].1.clone())]);
        assert_eq!(store.target_listings(id, 5).await.unwrap(), (Vec::new(), 0));
    })
    .await;
}

#[tokio::test]
async fn one_surface_shown_by_two_targets_fails_once_on_each_page() {
    for_each_database(async |store| {
        let rules = ruleset(&store).await;
        let surface = one_card(&store).await;
        let source = domains(&store).await;
        let twin = plumbline_store::targets::NewTarget { key: "twin.example".into(), ..card("a.example") };
        store.add_targets(source, &[twin], NOON).await.unwrap();
        store.record(&[seen(surface, NOON, "{}", judged(rules, &[("a2a/e", 'F')]))]).await.unwrap();
        let rule = store.rule_record("a2a/e").await.unwrap().unwrap();
        let mut after = (i64::MAX, 0);
        let mut keys = Vec::new();
        loop {
            let page = store.failing(rule.id, after, 1).await.unwrap();
            let Some(last) = page.last() else { break };
            after = (last.surface_id, last.target_id);
            keys.push(last.key.clone());
            assert_eq!(last.first.as_ref().unwrap().pointer, "/skills/0");
        }
        assert_eq!(keys, ["a.example", "twin.example"]);
        let id = all_pages(&store, &TargetFilter::default(), TargetOrder::Name, 9).await[0].id;
        assert_eq!(store.target_surfaces(id).await.unwrap()[0].shared_with, 1);
    })
    .await;
}

#[tokio::test]
async fn names_are_counted_apart_from_entries() {
    for_each_database(async |store| {
        let source = registry(&store).await;
        let crawl = store.start_crawl(CrawlKind::FullWalk, Some(source), None, "me", NOON).await.unwrap();
        let walk = store.begin_walk(source, crawl, None, NOON).await.unwrap();
        let entries = [entry("io.example/a", "1"), entry("io.example/a", "2"), entry("io.example/b", "1")];
        store.store_page(walk.id, &entries, None, NOON).await.unwrap();
        store.finish_walk(walk.id, &WalkEnd::Complete, NOON).await.unwrap();
        let present = store.cohort_days(0).await.unwrap().pop().unwrap();
        assert_eq!((present.targets, present.entries, present.not_evaluated), (2, 3, 2));
        let kinds = store.kind_days().await.unwrap();
        assert_eq!(kinds.iter().find(|kind| kind.kind == TargetKind::McpServer).unwrap().counts.targets, 2);
        let page = all_pages(&store, &TargetFilter::default(), TargetOrder::Name, 9).await;
        let (listings, count) = store.target_listings(page[0].id, 1).await.unwrap();
        assert_eq!((listings.len(), count), (1, 2));
    })
    .await;
}

#[tokio::test]
async fn a_document_says_what_was_judged_of_it_and_who_serves_it() {
    for_each_database(async |store| {
        let rules = ruleset(&store).await;
        let surface = one_card(&store).await;
        let first = judged(rules, &[("a2a/e", '2'), ("a2a/f", 'F'), ("a2a/w", 'P')]);
        store.record(&[seen(surface, NOON, "{\"a\": 1}", first)]).await.unwrap();
        let hash: String = body("{\"a\": 1}").hash.iter().map(|byte| format!("{byte:02x}")).collect();
        let document = store.document_of_hash(&hash).await.unwrap().unwrap();
        assert_eq!((document.hash.as_str(), document.raw_len, document.is_cut), (hash.as_str(), 8, false));
        let said = document.judged.clone().unwrap();
        assert_eq!((said.headline, said.ruleset.as_str()), (Headline::Blocked, "1"));
        let fired: Vec<(&str, usize)> = said.fired.iter().map(|(rule, places)| (rule.as_str(), places.len())).collect();
        assert_eq!(fired, [("a2a/e", 2), ("a2a/f", 1)]);
        assert_eq!(store.document_bytes(&document).await.unwrap().unwrap(), b"{\"a\": 1}");
        let served = store.document_served_by(&document, 5).await.unwrap();
        assert_eq!((served.len(), served[0].name.as_str()), (1, "a.example"));
        for unknown in ["", "zz", &"0".repeat(64), &"g".repeat(64), "ü".repeat(32).as_str()] {
            assert_eq!(store.document_of_hash(unknown).await.unwrap(), None, "{unknown}");
        }
    })
    .await;
}

#[tokio::test]
async fn rules_are_tallied_by_the_newest_day_and_tell_their_course() {
    for_each_database(async |store| {
        assert_eq!(store.rule_tallies().await.unwrap(), []);
        many_cards(&store, 6).await;
        let of = |tallies: &[plumbline_store::views::RuleTally]| {
            tallies.iter().find(|tally| tally.rule == "a2a/e").map(|tally| (tally.evaluated, tally.failing))
        };
        assert_eq!(of(&store.rule_tallies().await.unwrap()), Some((4, 2)));
        let surface = surface_of(&store, "a00.example").await;
        let rules = ruleset(&store).await;
        for at in [NOON + DAY, NOON + DAY + HOUR] {
            store.record(&[seen(surface, at, "{}", judged(rules, &[("a2a/e", 'P')]))]).await.unwrap();
        }
        assert_eq!(of(&store.rule_tallies().await.unwrap()), Some((4, 1)));
        let record = store.rule_record("a2a/e").await.unwrap().unwrap();
        let days = store.rule_days(record.id, 0).await.unwrap();
        let course: Vec<(i64, i64, i64)> = days.iter().map(|d| (d.evaluated, d.failing, d.resolved)).collect();
        assert_eq!(course, [(4, 2, 0), (4, 1, 1)]);
        assert_eq!(store.rule_record("never/recorded").await.unwrap(), None);
    })
    .await;
}

#[tokio::test]
async fn what_broke_last_leaves_first_looks_out() {
    for_each_database(async |store| {
        let rules = ruleset(&store).await;
        let surface = one_card(&store).await;
        store.record(&[seen(surface, NOON, "{}", judged(rules, &[("a2a/w", 'F'), ("a2a/e", 'P')]))]).await.unwrap();
        assert_eq!(store.last_opened(5).await.unwrap(), []);
        for n in 1..4 {
            let at = NOON + n * 30 * HOUR;
            let letter = if n < 2 { 'P' } else { 'F' };
            store
                .record(&[seen(
                    surface,
                    at,
                    &format!("{{\"n\":{}}}", n.min(2)),
                    judged(rules, &[("a2a/w", 'F'), ("a2a/e", letter)]),
                )])
                .await
                .unwrap();
        }
        let opened = store.last_opened(5).await.unwrap();
        assert_eq!(opened.len(), 1);
        assert_eq!((opened[0].rule.as_str(), opened[0].name.as_str()), ("a2a/e", "a.example"));
    })
    .await;
}

#[tokio::test]
async fn crawls_are_listed_newest_first_with_their_source_walk_and_faults() {
    for_each_database(async |store| {
        let source = registry(&store).await;
        for n in 0..3 {
            let crawl =
                store.start_crawl(CrawlKind::FullWalk, Some(source), None, "me", NOON + n * HOUR).await.unwrap();
            let walk = store.begin_walk(source, crawl, None, NOON + n * HOUR).await.unwrap();
            let end = if n == 2 { WalkEnd::Incomplete("the cursor came twice".into()) } else { WalkEnd::Complete };
            store.finish_walk(walk.id, &end, NOON + n * HOUR).await.unwrap();
            let fault = Fault { code: "cursor-repeated".into(), subject: None, note: Some("again".into()) };
            store.crawl_fault(crawl, &fault, NOON + n * HOUR).await.unwrap();
            let end = CrawlEnd { state: CrawlState::Complete, note: None };
            store.finish_crawl(crawl, &end, NOON + n * HOUR + 60).await.unwrap();
        }
        let crawls = store.crawls(i64::MAX, 2).await.unwrap();
        assert_eq!(crawls.len(), 2);
        assert!(crawls[0].id > crawls[1].id);
        assert_eq!((crawls[0].source.as_deref(), crawls[0].kind), (Some("test"), CrawlKind::FullWalk));
        assert_eq!(store.crawls(crawls[1].id, 9).await.unwrap().len(), 1);
        let last = store.crawl_row(crawls[0].id).await.unwrap().unwrap();
        assert_eq!((last.state, last.finished_s), (CrawlState::Complete, Some(NOON + 2 * HOUR + 60)));
        let walk = store.crawl_walk(crawls[0].id).await.unwrap().unwrap();
        assert_eq!((walk.is_complete, walk.problem.as_deref()), (false, Some("the cursor came twice")));
        assert_eq!(store.first_crawl_faults(crawls[0].id, 5).await.unwrap()[0].code, "cursor-repeated");
        assert_eq!(store.crawl_row(99).await.unwrap(), None);
        let sources = store.sources_in_use().await.unwrap();
        assert_eq!((sources.len(), sources[0].name.as_str()), (1, "test"));
        store.answers().await.unwrap();
    })
    .await;
}
