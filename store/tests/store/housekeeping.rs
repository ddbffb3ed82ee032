//! What is old goes, in steps; what is history, the newest, or pointed at stays.

use plumbline_store::Store;
use plumbline_store::housekeeping::{Job, Retention};
use plumbline_store::sources::{CrawlEnd, Fault};
use plumbline_store::walks::WalkEnd;
use plumbline_store::words::{CrawlKind, CrawlState};
use plumbline_store::{CrawlId, SourceId};

use crate::support::{
    DAY, HOUR, NOON, card, domains, entry, for_each_database, judged, number, one_card, registry, ruleset, seen,
    surface_of, take, unseen,
};

/// Sweeps one kind, after a dry run that must have promised the same.
async fn sweep(store: &Store, job: Job, now_s: i64) -> u64 {
    let retention = Retention::default();
    let promised = store.sweepable(job, &retention, now_s).await.unwrap();
    let mut sweep = store.begin_sweep(job, &retention, now_s).await.unwrap();
    while store.sweep_step(&mut sweep).await.unwrap() {}
    let swept = sweep.rows();
    assert_eq!(promised, swept, "{job}: the dry run tells what will go");
    assert_eq!(store.sweepable(job, &retention, now_s).await.unwrap(), 0, "{job}: nothing is left to go");
    swept
}

async fn write(store: &Store, sql: &'static str) {
    sqlx::query(sql).execute(store.writer()).await.unwrap();
}

/// A finished crawl of a registry with one fault, and its walk.
async fn walked(store: &Store, source: SourceId, at_s: i64, names: &[&str]) -> CrawlId {
    let crawl = store.start_crawl(CrawlKind::FullWalk, Some(source), None, "test", at_s).await.unwrap();
    let walk = store.begin_walk(source, crawl, None, at_s).await.unwrap();
    let entries: Vec<_> = names.iter().map(|name| entry(name, "1.0.0")).collect();
    store.store_page(walk.id, &entries, None, at_s).await.unwrap();
    store.finish_walk(walk.id, &WalkEnd::Complete, at_s).await.unwrap();
    sqlx::query(
        "INSERT INTO walk_finding (walk_id, rule, severity, occurrences, places) VALUES ($1, 'registry/x', 'error', 1, '[]')",
    )
    .bind(walk.id.0)
    .execute(store.writer())
    .await
    .unwrap();
    let fault = Fault { code: "cursor-repeated".into(), subject: None, note: None };
    store.crawl_fault(crawl, &fault, at_s).await.unwrap();
    store.finish_crawl(crawl, &CrawlEnd { state: CrawlState::Complete, note: None }, at_s).await.unwrap();
    crawl
}

#[tokio::test]
async fn single_probes_go_after_two_weeks_and_their_days_stay() {
    for_each_database(async |store| {
        let surface = one_card(&store).await;
        let rules = ruleset(&store).await;
        for day in 0..30 {
            store.record(&[seen(surface, NOON + day * DAY, "{}", judged(rules, &[("a2a/e", 'P')]))]).await.unwrap();
        }
        assert_eq!(sweep(&store, Job::Probes, NOON + 29 * DAY).await, 15);
        assert_eq!(number(&store, "SELECT COUNT(*) FROM probe_day").await, 15);
        assert_eq!(number(&store, "SELECT MIN(day) FROM probe_day").await, (NOON + 15 * DAY) / DAY);
        assert_eq!(
            number(&store, "SELECT COUNT(*) FROM surface_month").await,
            2,
            "what each day came to is still there"
        );
    })
    .await;
}

#[tokio::test]
async fn more_than_a_step_goes_step_by_step_and_may_be_stopped() {
    for_each_database(async |store| {
        let source = domains(&store).await;
        let cards: Vec<_> = (0..1_200).map(|n| card(&format!("h{n}.example"))).collect();
        store.add_targets(source, &cards, NOON).await.unwrap();
        write(&store, "INSERT INTO probe_day (surface_id, day, probes) SELECT id, 100, etag FROM (SELECT id, CAST('' AS BYTEA) AS etag FROM surface) s").await;
        let mut steps = Vec::new();
        let mut job = store.begin_sweep(Job::Probes, &Retention::default(), NOON).await.unwrap();
        while steps.len() < 2 && store.sweep_step(&mut job).await.unwrap() {
            steps.push(job.rows());
        }
        assert_eq!(steps, [500, 1_000]);
        assert_eq!(number(&store, "SELECT COUNT(*) FROM probe_day").await, 200);
        assert_eq!(sweep(&store, Job::Probes, NOON).await, 200);
    })
    .await;
}

#[tokio::test]
async fn passes_go_with_their_faults_and_the_newest_of_each_source_stays() {
    for_each_database(async |store| {
        let source = registry(&store).await;
        // `a` was last listed in the first walk, so that walk and its crawl stay.
        let first = walked(&store, source, NOON, &["io.example/a", "io.example/b"]).await;
        for day in 1..=4 {
            walked(&store, source, NOON + day * DAY, &["io.example/b"]).await;
        }
        let round = store.start_crawl(CrawlKind::Round, None, None, "test", NOON).await.unwrap();
        store.finish_crawl(round, &CrawlEnd { state: CrawlState::Complete, note: None }, NOON).await.unwrap();
        let running = store.start_crawl(CrawlKind::Round, None, None, "test", NOON).await.unwrap();
        let now_s = NOON + 1_000 * DAY;

        assert_eq!(sweep(&store, Job::Walks, now_s).await, 3);
        assert_eq!(sweep(&store, Job::Crawls, now_s).await, 4);
        assert_eq!(number(&store, "SELECT COUNT(*) FROM walk").await, 2);
        let left =
            sqlx::query_scalar::<_, i64>("SELECT id FROM crawl ORDER BY id").fetch_all(store.reader()).await.unwrap();
        assert_eq!(left, [first.0, 5, running.0]);
        assert_eq!(number(&store, "SELECT COUNT(*) FROM walk_finding").await, 2);
        assert_eq!(number(&store, "SELECT COUNT(*) FROM crawl_fault").await, 2);
        assert_eq!(number(&store, "SELECT COUNT(*) FROM listing").await, 2);
    })
    .await;
}

#[tokio::test]
async fn a_dry_run_of_passes_counts_those_whose_walk_would_go_too() {
    for_each_database(async |store| {
        let source = registry(&store).await;
        for day in 0..4 {
            walked(&store, source, NOON + day * DAY, &["io.example/b"]).await;
        }
        let retention = Retention::default();
        assert_eq!(store.sweepable(Job::Crawls, &retention, NOON + 200 * DAY).await.unwrap(), 3);
        assert_eq!(store.sweepable(Job::Crawls, &retention, NOON + 92 * DAY).await.unwrap(), 2);
        assert_eq!(number(&store, "SELECT COUNT(*) FROM crawl").await, 4, "nothing has gone");
    })
    .await;
}

#[tokio::test]
async fn events_stay_while_somebody_has_not_read_them_or_an_alert_stands_on_them() {
    for_each_database(async |store| {
        let source = domains(&store).await;
        for n in 0..10 {
            store.add_targets(source, &[card(&format!("h{n}.example"))], NOON + n).await.unwrap();
        }
        let newest = store.newest_event().await.unwrap().0;
        assert_eq!(newest, 10);
        let now_s = NOON + 401 * DAY;
        assert_eq!(sweep(&store, Job::Events, NOON + 399 * DAY).await, 0, "they are too young");

        write(&store, "INSERT INTO event_cursor (reader, event_id) VALUES ('alerts', 4)").await;
        write(
            &store,
            "INSERT INTO route (id, slug, title, origin, matcher, created_s) VALUES (1, 'r', 'R', 'ui', '', 0)",
        )
        .await;
        write(
            &store,
            "INSERT INTO alert (id, route_id, key, state, severity, opened_event, last_event, opened_s)
             VALUES (1, 1, 'finding:1', 'firing', 'error', 2, 2, 0)",
        )
        .await;
        assert_eq!(sweep(&store, Job::Events, now_s).await, 3);
        write(&store, "UPDATE event_cursor SET event_id = 10").await;
        write(&store, "UPDATE alert SET ended_s = 1").await;
        assert_eq!(sweep(&store, Job::Events, now_s).await, 6);
        assert_eq!(store.newest_event().await.unwrap().0, newest, "numbers go on from the newest");
    })
    .await;
}

#[tokio::test]
async fn conversations_stay_where_something_began_or_ended() {
    for_each_database(async |store| {
        let surface = one_card(&store).await;
        let rules = ruleset(&store).await;
        let look = |hour: i64, letter: char| {
            let mut look = seen(
                surface,
                NOON + hour * HOUR,
                &format!("{{\"n\":{letter:?}}}"),
                judged(rules, &[("a2a/e", letter)]),
            );
            look.session = Some(b"{}".to_vec());
            look
        };
        // Opens, closes, is seen again, which is confirmed: three conversations that prove something; then the newest.
        for (hour, letter) in [(0, 'F'), (1, 'P'), (2, 'F'), (3, 'F'), (4, 'F')] {
            store.record(&[look(hour, letter)]).await.unwrap();
        }
        assert_eq!(number(&store, "SELECT COUNT(*) FROM probe_session").await, 4);
        let now_s = NOON + 100 * DAY;
        assert_eq!(sweep(&store, Job::Sessions, now_s).await, 0);
        // However much later than its span begins: that was confirmed by a look of another day.
        write(&store, "UPDATE probe_session SET at_s = at_s - 864000 WHERE id = 2").await;
        assert_eq!(sweep(&store, Job::Sessions, now_s).await, 0);
        // One that proves nothing any more, as after a correction.
        write(&store, "UPDATE finding_span SET close_session = NULL WHERE close_session = 2").await;
        assert_eq!(sweep(&store, Job::Sessions, now_s).await, 1);
        assert_eq!(number(&store, "SELECT COUNT(*) FROM probe_session WHERE is_latest = 1").await, 1);
    })
    .await;
}

#[tokio::test]
async fn leases_of_the_past_go_and_those_of_today_stay() {
    for_each_database(async |store| {
        one_card(&store).await;
        store.due_surfaces(NOON, take(10, NOON + 300), "a/1.1").await.unwrap();
        assert_eq!(sweep(&store, Job::Leases, NOON + HOUR).await, 0);
        assert_eq!(sweep(&store, Job::Leases, NOON + 2 * DAY).await, 1);
    })
    .await;
}

#[tokio::test]
async fn ten_years_later_all_history_is_still_there() {
    for_each_database(async |store| {
        let source = registry(&store).await;
        walked(&store, source, NOON, &["io.example/a"]).await;
        let surface = one_card(&store).await;
        let rules = ruleset(&store).await;
        for (hour, letter) in [(0, 'F'), (1, 'P'), (2, 'F')] {
            let text = format!("{{\"n\":{hour}}}");
            let said = judged(rules, &[("a2a/e", letter), ("a2a/f", letter)]);
            store.record(&[seen(surface, NOON + hour * HOUR, &text, said)]).await.unwrap();
        }
        store
            .record(&[unseen(surface_of(&store, "a.example").await, NOON + 4 * HOUR, "unreachable:refused")])
            .await
            .unwrap();
        let history = "SELECT (SELECT COUNT(*) FROM finding) * 10000000 + (SELECT COUNT(*) FROM finding_span) * 1000000
                            + (SELECT COUNT(*) FROM doc_span) * 100000 + (SELECT COUNT(*) FROM reach_span) * 10000
                            + (SELECT COUNT(*) FROM fact_span) * 1000 + (SELECT COUNT(*) FROM rule_day) * 100
                            + (SELECT COUNT(*) FROM cohort_day) * 10 + (SELECT COUNT(*) FROM surface_month)";
        let before = number(&store, history).await;
        assert!(before > 10_000_000);
        let documents = number(&store, "SELECT COUNT(*) FROM document WHERE body IS NOT NULL").await;
        for job in Job::ALL {
            sweep(&store, *job, NOON + 3_650 * DAY).await;
        }
        assert_eq!(number(&store, history).await, before);
        assert_eq!(number(&store, "SELECT COUNT(*) FROM document WHERE body IS NOT NULL").await, documents);
        // And the next look goes on as if nothing had been.
        let later = NOON + 3_650 * DAY;
        store.record(&[seen(surface, later, "{}", judged(rules, &[("a2a/e", 'P')]))]).await.unwrap();
        assert_eq!(number(&store, "SELECT COUNT(*) FROM finding WHERE state = 'resolved'").await, 1);
    })
    .await;
}

#[tokio::test]
async fn of_old_documents_the_first_of_each_week_and_what_moved_a_finding_keep_their_bytes() {
    for_each_database(async |store| {
        let surface = one_card(&store).await;
        let rules = ruleset(&store).await;
        // A Thursday at noon: weeks of the count begin on Thursdays.
        let start = NOON / (7 * DAY) * 7 * DAY + 12 * HOUR;
        for day in 0..14 {
            let letter = if day == 4 { 'F' } else { 'P' };
            for minutes in [0, 1] {
                let at_s = start + day * DAY + minutes * 60;
                let text = format!("{{\"day\":{day}}}");
                store.record(&[seen(surface, at_s, &text, judged(rules, &[("a2a/e", letter)]))]).await.unwrap();
            }
        }
        assert_eq!(sweep(&store, Job::Documents, start + 60 * DAY).await, 0, "none is old");
        let gone = sweep(&store, Job::Documents, start + 200 * DAY).await;
        let kept = sqlx::query_scalar::<_, i64>(
            "SELECT (s.from_s - $1) / 86400 FROM doc_span s JOIN document d ON d.id = s.document_id
             WHERE d.body IS NOT NULL ORDER BY s.from_s",
        )
        .bind(start)
        .fetch_all(store.reader())
        .await
        .unwrap();
        assert_eq!(kept, [0, 4, 5, 7, 13], "first of the week, opened, closed, first of the week, present");
        assert_eq!(gone, 9);
        assert_eq!(number(&store, "SELECT COUNT(*) FROM document").await, 14, "hashes and spans of all stay");
    })
    .await;
}

#[tokio::test]
async fn short_spans_of_reach_are_joined_to_the_one_before_with_their_number() {
    for_each_database(async |store| {
        one_card(&store).await;
        for (from, to, state) in [
            (0, Some(90_000), "up"),
            (90_000, Some(90_060), "suspect"),
            (90_060, Some(200_000), "up"),
            (200_000, Some(205_000), "down"),
            (205_000, None, "up"),
        ] {
            sqlx::query("INSERT INTO reach_span (surface_id, from_s, to_s, state, probes) VALUES (1, $1, $2, $3, 5)")
                .bind(i64::from(from))
                .bind(to.map(i64::from))
                .bind(state)
                .execute(store.writer())
                .await
                .unwrap();
        }
        assert_eq!(sweep(&store, Job::Reach, 100 * DAY).await, 0, "not old enough");
        assert_eq!(sweep(&store, Job::Reach, 400 * DAY).await, 1);
        assert_eq!(number(&store, "SELECT COUNT(*) FROM reach_span").await, 3);
        assert_eq!(number(&store, "SELECT to_s FROM reach_span WHERE from_s = 0").await, 200_000);
        assert_eq!(number(&store, "SELECT probes * 10 + merged FROM reach_span WHERE from_s = 0").await, 151);
    })
    .await;
}

#[tokio::test]
async fn what_was_never_confirmed_goes_after_three_months_and_what_was_open_stays() {
    for_each_database(async |store| {
        let surface = one_card(&store).await;
        let rules = ruleset(&store).await;
        let look = async |at_s: i64, a: char, b: char| {
            let said = judged(rules, &[("a2a/e", a), ("a2a/w", b)]);
            store.record(&[seen(surface, at_s, "{}", said)]).await.unwrap();
        };
        look(NOON, 'F', 'P').await;
        look(NOON + HOUR, 'P', 'F').await;
        look(NOON + 2 * HOUR, 'P', 'P').await;
        // The newest row of all stays, because numbers are counted on from it.
        let other = card("b.example");
        store.add_targets(domains(&store).await, &[card("a.example"), other], NOON).await.unwrap();
        let second = surface_of(&store, "b.example").await;
        store.record(&[seen(second, NOON + HOUR, "[]", judged(rules, &[("a2a/e", 'F')]))]).await.unwrap();
        assert_eq!(number(&store, "SELECT COUNT(*) FROM finding").await, 3);
        assert_eq!(sweep(&store, Job::Refuted, NOON + 89 * DAY).await, 0);
        assert_eq!(sweep(&store, Job::Refuted, NOON + 91 * DAY).await, 1);
        assert_eq!(number(&store, "SELECT COUNT(*) FROM finding WHERE opens > 0").await, 2);
        assert_eq!(number(&store, "SELECT COUNT(*) FROM finding").await, 2);
        look(NOON + 92 * DAY, 'P', 'F').await;
        look(NOON + 92 * DAY + HOUR, 'P', 'F').await;
        let state = "SELECT COUNT(*) FROM finding WHERE state = 'open' AND opened_as = 'first'";
        assert_eq!(number(&store, state).await, 1, "and what comes later is told like any other");
    })
    .await;
}
