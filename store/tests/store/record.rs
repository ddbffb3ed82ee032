//! Observations: what moves, what must not, and what is remembered of it.

use plumbline_rules::reach::{Outcome, Unreachable};
use plumbline_store::documents::KEPT_BYTES;
use plumbline_store::judged::{Judged, Said};
use plumbline_store::probes;
use plumbline_store::reach::OutcomeClass;
use plumbline_store::record::{Observation, Recorded, Served};
use plumbline_store::rulesets::RuleFacts;
use plumbline_store::targets::Link;
use plumbline_store::words::{CrawlKind, Evidence, Headline, ReachState, Role, SurfaceKind};
use plumbline_store::{Error, Store, SurfaceId};
use sqlx::Row;

use crate::support::{
    DAY, HOUR, NOON, body, card, domains, events, for_each_database, judged, number, one_card, record_confirmed, rules,
    ruleset, seen, surface_of, unseen,
};

/// The finding of `a2a/e` in words: state, opened_as, cause, resolution.
async fn finding(store: &Store) -> String {
    let row = sqlx::query(
        "SELECT finding.state, COALESCE(opened_as, '-'), COALESCE(cause, '-'), COALESCE(resolution, '-')
         FROM finding JOIN rule ON rule.id = finding.rule_id WHERE slug = 'a2a/e'",
    )
    .fetch_optional(store.reader())
    .await
    .unwrap();
    let Some(row) = row else { return "none".into() };
    let words: Vec<String> = (0..4).map(|n| row.get(n)).collect();
    words.join(" ")
}

/// The numbers of the newest day for `a2a/e`: evaluated, failing, occurrences, opened, resolved, regressed, baseline.
async fn rule_day(store: &Store) -> Vec<i64> {
    let row = sqlx::query(
        "SELECT evaluated, failing, occurrences, opened, resolved, regressed, baseline
         FROM rule_day JOIN rule ON rule.id = rule_day.rule_id WHERE slug = 'a2a/e' ORDER BY day DESC LIMIT 1",
    )
    .fetch_one(store.reader())
    .await
    .unwrap();
    (0..7).map(|n| row.get(n)).collect()
}

#[tokio::test]
async fn a_first_look_opens_the_baseline() {
    for_each_database(async |store| {
        let rules = ruleset(&store).await;
        let surface = one_card(&store).await;
        let first = judged(rules, &[("a2a/e", '2'), ("a2a/w", 'F'), ("a2a/f", 'F'), ("common/json", 'P')]);
        let recorded = store.record(&[seen(surface, NOON, "{}", first)]).await.unwrap();
        assert_eq!(recorded, Recorded { observations: 1, opened: 2, ..Recorded::default() });
        assert_eq!(finding(&store).await, "open baseline baseline -");
        assert_eq!(rule_day(&store).await, [1, 1, 2, 0, 0, 0, 1]);
        let after = store.surface(surface).await.unwrap();
        assert_eq!((after.headline, after.reach.state), (Headline::Blocked, ReachState::Up));
        // The helper's places are errors that break clients, whatever the rule.
        assert_eq!((after.n_blocking, after.n_error, after.n_warn, after.n_security), (2, 2, 0, 1));
        assert_eq!(
            number(
                &store,
                "SELECT COUNT(*) FROM target WHERE headline_rank = 0 AND n_error = 2 AND profile = 'a2a-1.0'"
            )
            .await,
            1
        );
        assert_eq!(number(&store, "SELECT COUNT(*) FROM fact_span WHERE to_s IS NULL AND value = 'wrong'").await, 1);
    })
    .await;
}

#[tokio::test]
async fn a_card_gives_its_target_its_name_and_what_is_no_card_does_not() {
    for_each_database(async |store| {
        let rules = ruleset(&store).await;
        let surface = one_card(&store).await;
        let named = |at_s, document: &str, name: &str, headline| {
            let judged = Judged { headline, ..judged(rules, &[("a2a/e", 'P')]) };
            Observation { name: Some(name.to_owned()), ..seen(surface, at_s, document, judged) }
        };
        let count = "SELECT COUNT(*) FROM target WHERE name = 'Tide tables' AND declared_version = '1.0'";
        store.record(&[named(NOON, "{}", "Tide tables", Headline::Sound)]).await.unwrap();
        assert_eq!(number(&store, count).await, 1);
        assert_eq!(number(&store, "SELECT COUNT(*) FROM target_token WHERE token = 'tide'").await, 1);
        store.record(&[named(NOON + HOUR, "[]", "Some manifest", Headline::NotDetected)]).await.unwrap();
        assert_eq!(number(&store, count).await, 1);
    })
    .await;
}

#[tokio::test]
async fn silence_and_gates_move_no_finding() {
    for_each_database(async |store| {
        let rules = ruleset(&store).await;
        let surface = one_card(&store).await;
        store.record(&[seen(surface, NOON, "{}", judged(rules, &[("a2a/e", 'F')]))]).await.unwrap();
        let told = events(&store).await;
        let before = number(&store, "SELECT changed_s FROM finding").await;
        for (n, outcome) in (1..).zip([
            "unreachable:refused",
            "throttled",
            "gated:auth",
            "skipped:robots",
            "crawler_fault",
            "absent",
            "unreachable:http_5xx",
        ]) {
            store.record(&[unseen(surface, NOON + n * 60, outcome)]).await.unwrap();
        }
        assert_eq!(finding(&store).await, "open baseline baseline -");
        assert_eq!(number(&store, "SELECT changed_s FROM finding").await, before);
        assert_eq!(events(&store).await, told);
        assert_eq!(rule_day(&store).await, [1, 1, 1, 0, 0, 0, 1]);
        let after = store.surface(surface).await.unwrap();
        assert_eq!(
            (after.headline, after.last_evaluated_s, after.last_ok_s),
            (Headline::Blocked, Some(NOON), Some(NOON + 180))
        );
    })
    .await;
}

#[tokio::test]
async fn what_was_not_evaluated_keeps_its_state_and_turns_stale() {
    for_each_database(async |store| {
        let rules = ruleset(&store).await;
        let surface = one_card(&store).await;
        store
            .record(&[seen(surface, NOON, "{}", judged(rules, &[("a2a/e", 'F'), ("common/json", 'P')]))])
            .await
            .unwrap();
        // The document no longer parses: nobody could tell what it is, and most rules are not even named.
        let mut broken = judged(rules, &[("common/json", 'F')]);
        broken.profile = None;
        broken.known = Some(plumbline_store::words::Known::Undetermined);
        record_confirmed(&store, seen(surface, NOON + 60, "{", broken)).await;
        assert_eq!(finding(&store).await, "open baseline baseline -");
        assert_eq!(number(&store, "SELECT COUNT(*) FROM finding WHERE state = 'open'").await, 2);
        assert_eq!(
            number(
                &store,
                "SELECT unjudged_since_s FROM finding WHERE opened_as = 'baseline' AND unjudged_since_s IS NOT NULL"
            )
            .await,
            NOON + 60
        );
        assert_eq!(rule_day(&store).await[..2], [1, 1]);
        assert_eq!(
            number(&store, "SELECT COUNT(*) FROM surface WHERE profile = 'a2a-1.0'").await,
            1,
            "it keeps the word it had"
        );

        store
            .record(&[seen(surface, NOON + 110, "{}", judged(rules, &[("a2a/e", 'F'), ("common/json", 'P')]))])
            .await
            .unwrap();
        assert_eq!(number(&store, "SELECT COUNT(*) FROM finding WHERE unjudged_since_s IS NOT NULL").await, 0);
        assert_eq!(number(&store, "SELECT COUNT(*) FROM finding WHERE state = 'resolved'").await, 1);
        // By name as well as by silence.
        store.record(&[seen(surface, NOON + 115, "{} ", judged(rules, &[("a2a/e", 'U')]))]).await.unwrap();
        assert_eq!(finding(&store).await, "open baseline baseline -");
        // A partial judgement says nothing of rules it does not name.
        let mut partial = judged(rules, &[("a2a/w", 'P')]);
        partial.is_complete = false;
        store.record(&[seen(surface, NOON + 119, "{}  ", partial)]).await.unwrap();
        assert_eq!(finding(&store).await, "open baseline baseline -");
        // A complete one does: the rule does not apply.
        store.record(&[seen(surface, NOON + 120, "{}   ", judged(rules, &[]))]).await.unwrap();
        assert_eq!(finding(&store).await, "resolved baseline baseline fixed");
        assert_eq!(rule_day(&store).await[..2], [0, 0]);
    })
    .await;
}

#[tokio::test]
async fn a_fact_is_set_changed_and_cleared_by_looks_that_agree() {
    for_each_database(async |store| {
        let rules = ruleset(&store).await;
        let surface = one_card(&store).await;
        let look = |at, text: &str, value: Option<&str>| {
            let mut said = judged(rules, &[("a2a/f", if value.is_some() { 'F' } else { 'P' }), ("a2a/e", 'P')]);
            for outcome in &mut said.outcomes {
                if let (Said::Fires(places), Some(value)) = (&mut outcome.said, value) {
                    value.clone_into(&mut places[0].message);
                }
            }
            seen(surface, at, text, said)
        };
        let facts = async || {
            let spans: Vec<(i64, Option<i64>, String)> =
                sqlx::query("SELECT from_s, to_s, value FROM fact_span ORDER BY from_s")
                    .fetch_all(store.reader())
                    .await
                    .unwrap()
                    .iter()
                    .map(|row| {
                        (row.get::<i64, _>(0) - NOON, row.get::<Option<i64>, _>(1).map(|to| to - NOON), row.get(2))
                    })
                    .collect();
            spans
        };
        let spans = |spans: &[(i64, Option<i64>, &str)]| -> Vec<(i64, Option<i64>, String)> {
            spans.iter().map(|(from, to, value)| (*from, *to, (*value).to_owned())).collect()
        };
        let waiting = async || number(&store, "SELECT COUNT(*) FROM fact_pending").await;
        // At the first look at once.
        store.record(&[look(NOON, "{}", Some("one"))]).await.unwrap();
        assert_eq!(facts().await, spans(&[(0, None, "one")]));
        // Another value that the next look does not repeat was none.
        store.record(&[look(NOON + 60, "[1]", Some("two"))]).await.unwrap();
        assert_eq!((facts().await, waiting().await), (spans(&[(0, None, "one")]), 1));
        store.record(&[look(NOON + 120, "{}", Some("one"))]).await.unwrap();
        assert_eq!((facts().await, waiting().await), (spans(&[(0, None, "one")]), 0));
        // One that it repeats holds since the first that said so, though the document is the same and so is its judgement.
        store.record(&[look(NOON + 180, "[]", Some("two"))]).await.unwrap();
        store.record(&[unseen(surface, NOON + 200, "unreachable:refused")]).await.unwrap();
        store.record(&[look(NOON + 240, "[]", Some("two"))]).await.unwrap();
        assert_eq!((facts().await, waiting().await), (spans(&[(0, Some(180), "one"), (180, None, "two")]), 0));
        assert_eq!(
            number(&store, "SELECT failing FROM rule_day JOIN rule ON rule.id = rule_id WHERE slug = 'a2a/f'").await,
            1
        );
        // That it is no more, a document shows with one look.
        store.record(&[look(NOON + 300, "[2]", None)]).await.unwrap();
        assert_eq!(facts().await.last().unwrap().1, Some(300));
        assert_eq!(
            number(&store, "SELECT failing FROM rule_day JOIN rule ON rule.id = rule_id WHERE slug = 'a2a/f'").await,
            0
        );
        // What waits goes with its target.
        store.record(&[look(NOON + 360, "[]", Some("two"))]).await.unwrap();
        assert_eq!(waiting().await, 1);
        store.set_targets(domains(&store).await, &[], NOON + 400).await.unwrap();
        assert_eq!(waiting().await, 0);
    })
    .await;
}

#[tokio::test]
async fn a_finding_goes_stale_by_the_interval_of_its_own_surface() {
    for_each_database(async |store| {
        let rules = ruleset(&store).await;
        let source = domains(&store).await;
        store.add_targets(source, &[card("a.example"), card("b.example")], NOON).await.unwrap();
        let (hourly, daily) = (surface_of(&store, "a.example").await, surface_of(&store, "b.example").await);
        let both = [("a2a/e", 'F'), ("common/json", 'P')];
        let look = |surface, at, text, said: &[(&'static str, char)]| seen(surface, at, text, judged(rules, said));
        let each_day = Observation { every_s: Some(DAY), ..look(daily, NOON, "{}", &both) };
        store.record(&[look(hourly, NOON, "{}", &both), each_day]).await.unwrap();
        let times = async |surface: SurfaceId| {
            let target = store.finding(surface.0).await.unwrap().unwrap();
            (target.finding.last_evaluated_s, target.finding.stale_from_s)
        };
        assert_eq!(times(hourly).await, (Some(NOON), Some(NOON + 3 * HOUR)));
        assert_eq!(times(daily).await, (Some(NOON), Some(NOON + 3 * DAY)));
        // Nobody answers: nothing was evaluated.
        store.record(&[unseen(hourly, NOON + HOUR, "unreachable:refused")]).await.unwrap();
        assert_eq!(times(hourly).await, (Some(NOON), Some(NOON + 3 * HOUR)));
        store.record(&[look(hourly, NOON + 2 * HOUR, "{}", &both)]).await.unwrap();
        assert_eq!(times(hourly).await.1, Some(NOON + 5 * HOUR));
        // A document that does not parse hides the rule: looks go on and do not reach it.
        for at in [NOON + 3 * HOUR, NOON + 3 * HOUR + 60, NOON + 9 * HOUR] {
            let hidden = [("a2a/e", 'U'), ("common/json", 'F')];
            store.record(&[look(hourly, at, "{", &hidden)]).await.unwrap();
        }
        assert_eq!(times(hourly).await, (Some(NOON + 2 * HOUR), Some(NOON + 5 * HOUR)));
        store.record(&[look(hourly, NOON + 10 * HOUR, "{} ", &both)]).await.unwrap();
        assert_eq!(times(hourly).await.1, Some(NOON + 13 * HOUR));
        store.record(&[look(hourly, NOON + 11 * HOUR, "{}  ", &[])]).await.unwrap();
        assert_eq!(times(hourly).await, (Some(NOON + 11 * HOUR), None), "what is over is not stale");
    })
    .await;
}

#[tokio::test]
async fn what_could_not_be_told_is_no_first_look_and_what_has_no_revision_is() {
    for_each_database(async |store| {
        let rules = ruleset(&store).await;
        let surface = one_card(&store).await;
        let undetermined = |outcomes: &[(&'static str, char)]| {
            let known = Some(plumbline_store::words::Known::Undetermined);
            plumbline_store::judged::Judged { known, ..judged(rules, outcomes) }
        };
        let broken = undetermined(&[("common/json", 'F'), ("a2a/e", 'U'), ("a2a/w", 'U')]);
        store.record(&[seen(surface, NOON, "{", broken)]).await.unwrap();
        store
            .record(&[seen(surface, NOON + 1, "{}", undetermined(&[("common/json", 'P'), ("a2a/e", 'F')]))])
            .await
            .unwrap();
        assert_eq!(finding(&store).await, "open baseline baseline -");
        store
            .record(&[seen(surface, NOON + 2, "[]", undetermined(&[("common/json", 'P'), ("a2a/e", 'P')]))])
            .await
            .unwrap();
        let again = undetermined(&[("common/json", 'P'), ("a2a/e", 'F')]);
        record_confirmed(&store, seen(surface, NOON + 3, "{}", again)).await;
        assert_eq!(finding(&store).await, "open again document -");
    })
    .await;
}

#[tokio::test]
async fn a_fix_that_breaks_again_is_a_regression() {
    for_each_database(async |store| {
        let rules = ruleset(&store).await;
        let surface = one_card(&store).await;
        for (n, letter, expected) in [
            (0, 'P', "none"),
            (1, 'F', "open first document -"),
            (2, 'P', "resolved first document fixed"),
            (3, 'F', "open again document -"),
            (4, 'F', "open again document -"),
        ] {
            let document = format!("{{\"n\":{n}}}");
            record_confirmed(&store, seen(surface, NOON + n * 60, &document, judged(rules, &[("a2a/e", letter)])))
                .await;
            assert_eq!(finding(&store).await, expected, "after {n}");
        }
        assert_eq!(rule_day(&store).await, [1, 1, 1, 2, 1, 1, 0]);
        assert_eq!(number(&store, "SELECT COUNT(*) FROM finding_span").await, 2);
        assert_eq!(number(&store, "SELECT opens FROM finding").await, 2);
        assert_eq!(number(&store, "SELECT flips FROM finding").await, 0b101);
        assert_eq!(number(&store, "SELECT regressed FROM cohort_day WHERE cohort_id = 3").await, 1);
        let told: Vec<_> = events(&store).await.into_iter().filter(|word| word.starts_with("finding")).collect();
        assert_eq!(told, ["finding.opened", "finding.resolved", "finding.regressed"]);
    })
    .await;
}

#[tokio::test]
async fn what_passed_for_a_day_and_breaks_is_a_regression() {
    for_each_database(async |store| {
        let rules = ruleset(&store).await;
        let surface = one_card(&store).await;
        for at in [NOON, NOON + DAY] {
            store.record(&[seen(surface, at, "{}", judged(rules, &[("a2a/e", 'P')]))]).await.unwrap();
        }
        let broken = seen(surface, NOON + DAY + 60, "[]", judged(rules, &[("a2a/e", 'F')]));
        store.record(std::slice::from_ref(&broken)).await.unwrap();
        assert_eq!(finding(&store).await, "pending - - -", "nothing is told of what was seen once");
        assert!(!events(&store).await.iter().any(|word| word.starts_with("finding.")));
        store.record(&[Observation { at_s: broken.at_s + 60, is_verification: true, ..broken }]).await.unwrap();
        assert_eq!(finding(&store).await, "open broke document -");
        assert_eq!(number(&store, "SELECT from_s FROM finding_span").await, NOON + DAY + 60, "since it was seen first");
        let told = store.events_after(plumbline_store::EventId(0), 100).await.unwrap();
        let news = told.iter().find(|event| event.kind.as_str() == "finding.regressed").unwrap();
        assert_eq!(
            (news.rule.as_deref(), news.surface, news.note.as_deref()),
            (Some("a2a/e"), Some(surface), Some("broke document"))
        );
        let word = told.iter().find(|event| event.kind.as_str() == "target.headline_changed").unwrap();
        assert_eq!((word.a, word.b), (Some(2), Some(0)));
        assert!(told.iter().any(|event| event.kind.as_str() == "document.changed"));
    })
    .await;
}

#[tokio::test]
async fn our_change_is_never_their_regression() {
    for_each_database(async |store| {
        let old = ruleset(&store).await;
        let surface = one_card(&store).await;
        for at in [NOON, NOON + 2 * DAY] {
            store.record(&[seen(surface, at, "{}", judged(old, &[("a2a/e", 'P'), ("a2a/w", 'F')]))]).await.unwrap();
        }
        let mut stricter: Vec<RuleFacts> = rules();
        stricter[0].version = 2;
        stricter[1].version = 2;
        let new = store.ensure_ruleset("2", &stricter, NOON + 2 * DAY).await.unwrap();
        // Same document, new rules: one opens, one closes, both by us.
        let at = NOON + 2 * DAY + 60;
        store.record(&[seen(surface, at, "{}", judged(new, &[("a2a/e", 'F'), ("a2a/w", 'P')]))]).await.unwrap();
        assert_eq!(finding(&store).await, "open rule rule -");
        assert_eq!(number(&store, "SELECT COUNT(*) FROM finding WHERE resolution = 'rule_changed'").await, 1);
        assert_eq!(rule_day(&store).await[5], 0);
    })
    .await;
}

/// Two rulesets and one change of document in one crawl: old and new document under old and new rules, all cells of
/// dashboard §4.3.
#[tokio::test]
async fn a_new_document_under_new_rules_is_theirs_only_when_that_is_proved() {
    for_each_database(async |store| {
        let source = crate::support::domains(&store).await;
        // The rule changed or is new; the old document under the new rules; the new document under the old ones.
        type Cell = (bool, Option<char>, Option<char>, &'static str);
        let cells: [Cell; 12] = [
            (true, Some('F'), None, "rule rule"),
            (true, Some('F'), Some('F'), "rule rule"),
            (true, Some('F'), Some('P'), "rule rule"),
            (true, Some('P'), Some('F'), "broke document"),
            (true, Some('P'), Some('P'), "rule joint"),
            (true, Some('P'), None, "broke unknown"),
            (true, None, Some('F'), "first unknown"),
            (true, None, Some('P'), "first unknown"),
            (true, None, None, "first unknown"),
            (false, Some('F'), None, "rule rule"),
            (false, Some('P'), None, "broke document"),
            (false, None, None, "first unknown"),
        ];
        for (n, (is_changed, old_under_new, new_under_old, expected)) in (0_i64..).zip(cells) {
            let mut before = rules();
            before[0].version = u32::try_from(100 + n).unwrap();
            let mut after = rules();
            after[0].version = u32::try_from(200 + n).unwrap();
            if !is_changed {
                before.remove(0);
            }
            let hosts = [format!("a{n}.example"), format!("b{n}.example")];
            let cards: Vec<_> = hosts.iter().map(|host| crate::support::card(host)).collect();
            store.add_targets(source, &cards, NOON).await.unwrap();
            let surface = crate::support::surface_of(&store, &hosts[0]).await;
            let elsewhere = crate::support::surface_of(&store, &hosts[1]).await;
            let [old_text, new_text] = ["old", "new"].map(|which| format!("{{\"{which}\":{n}}}"));

            let old = store.ensure_ruleset("1", &before, NOON - 100 * DAY).await.unwrap();
            let passing: &[(&'static str, char)] =
                if is_changed { &[("a2a/e", 'P'), ("a2a/w", 'P')] } else { &[("a2a/w", 'P')] };
            for at in [NOON, NOON + DAY] {
                store.record(&[seen(surface, at, &old_text, judged(old, passing))]).await.unwrap();
            }
            if let Some(letter) = new_under_old {
                // Another surface served the new document while the old rules were in use.
                let look = seen(elsewhere, NOON, &new_text, judged(old, &[("a2a/e", letter)]));
                store.record(&[look]).await.unwrap();
            }
            let new = store.ensure_ruleset("2", &after, NOON + DAY).await.unwrap();
            if let Some(letter) = old_under_new {
                let document = store.last_document(surface).await.unwrap().unwrap().id;
                store.remember(document, &judged(new, &[("a2a/e", letter)]), NOON).await.unwrap();
            }
            let look = seen(surface, NOON + DAY + 60, &new_text, judged(new, &[("a2a/e", 'F'), ("a2a/w", 'P')]));
            let recorded = record_confirmed(&store, look).await;
            let found = sqlx::query("SELECT state, opened_as, cause FROM finding WHERE surface_id = $1")
                .bind(surface.0)
                .fetch_one(store.reader())
                .await
                .unwrap();
            let words: Vec<String> = (0..3).map(|n| found.get(n)).collect();
            assert_eq!(words.join(" "), format!("open {expected}"), "cell {n}");
            assert_eq!(recorded.regressed, i64::from(expected == "broke document"), "cell {n}");
        }
    })
    .await;
}

#[tokio::test]
async fn what_the_crawler_says_of_the_old_document_goes_before_what_is_remembered() {
    for_each_database(async |store| {
        for (n, fires, expected) in [(0, vec![], "broke document"), (1, vec!["a2a/n".to_owned()], "rule rule")] {
            let old = ruleset(&store).await;
            let host = format!("h{n}.example");
            let source = crate::support::domains(&store).await;
            store.add_targets(source, &[crate::support::card(&host)], NOON).await.unwrap();
            let surface = crate::support::surface_of(&store, &host).await;
            for at in [NOON, NOON + DAY] {
                store.record(&[seen(surface, at, "{}", judged(old, &[("a2a/e", 'P')]))]).await.unwrap();
            }
            let mut more = rules();
            more.push(crate::support::rule("a2a/n"));
            let new = store.ensure_ruleset("2", &more, NOON + DAY).await.unwrap();
            let mut look = seen(surface, NOON + DAY + 60, "[]", judged(new, &[("a2a/e", 'P'), ("a2a/n", 'F')]));
            look.fires_on_old = Some(fires);
            record_confirmed(&store, look).await;
            let words: String = sqlx::query_scalar(
                "SELECT note FROM event WHERE surface_id = $1 AND kind IN (1, 2) ORDER BY id DESC LIMIT 1",
            )
            .bind(surface.0)
            .fetch_one(store.reader())
            .await
            .unwrap();
            assert_eq!(words, expected);
        }
    })
    .await;
}

#[tokio::test]
async fn only_the_clock_or_behaviour_moved() {
    for_each_database(async |store| {
        let mut timed = rules();
        timed[0].evidence = Evidence::Time;
        timed[1].evidence = Evidence::Live;
        let rules = store.ensure_ruleset("1", &timed, NOON - 100 * DAY).await.unwrap();
        let surface = one_card(&store).await;
        for at in [NOON, NOON + DAY] {
            store.record(&[seen(surface, at, "{}", judged(rules, &[("a2a/e", 'P'), ("a2a/w", 'P')]))]).await.unwrap();
        }
        let both = judged(rules, &[("a2a/e", 'F'), ("a2a/w", 'F')]);
        let recorded = record_confirmed(&store, seen(surface, NOON + 2 * DAY, "{}", both)).await;
        assert_eq!(finding(&store).await, "open broke clock -");
        assert_eq!((recorded.opened, recorded.regressed), (2, 1), "behaviour is theirs, the clock is nobody's");
    })
    .await;
}

#[tokio::test]
async fn an_unchanged_observation_writes_no_history() {
    for_each_database(async |store| {
        let rules = ruleset(&store).await;
        let surface = one_card(&store).await;
        let look = |at| seen(surface, at, "{}", judged(rules, &[("a2a/e", 'F'), ("a2a/f", 'F')]));
        store.record(&[look(NOON)]).await.unwrap();
        let tables = "SELECT (SELECT COUNT(*) FROM event) + (SELECT COUNT(*) FROM finding_span) + (SELECT COUNT(*) FROM doc_span)
                      + (SELECT COUNT(*) FROM reach_span) + (SELECT COUNT(*) FROM fact_span) + (SELECT COUNT(*) FROM eval)
                      + (SELECT COUNT(*) FROM occ_set) + (SELECT COUNT(*) FROM document) + (SELECT SUM(revision) FROM finding)";
        let before = number(&store, tables).await;
        for n in 1..=23 {
            store.record(&[look(NOON + n * 600)]).await.unwrap();
        }
        assert_eq!(number(&store, tables).await, before);
        assert_eq!(number(&store, "SELECT evaluations FROM surface").await, 24);
        assert_eq!(number(&store, "SELECT last_evaluated_s FROM surface").await, NOON + 23 * 600);
        // What is kept of each is eight bytes.
        assert_eq!(number(&store, "SELECT length(probes) FROM probe_day").await, 24 * 8);
        // History of raw results is caught up when something moves.
        store.record(&[seen(surface, NOON + 24 * 600, "[]", judged(rules, &[("a2a/e", 'P')]))]).await.unwrap();
        assert_eq!(number(&store, "SELECT flips FROM finding").await, (1 << 25) - 2);
        assert_eq!(number(&store, "SELECT observed FROM finding").await, 25);
    })
    .await;
}

#[tokio::test]
async fn places_move_without_opening_or_closing() {
    for_each_database(async |store| {
        let rules = ruleset(&store).await;
        let surface = one_card(&store).await;
        store.record(&[seen(surface, NOON, "1", judged(rules, &[("a2a/e", 'F')]))]).await.unwrap();
        store.record(&[seen(surface, NOON + 60, "2", judged(rules, &[("a2a/e", '2')]))]).await.unwrap();
        assert_eq!(number(&store, "SELECT occurrences FROM finding").await, 2);
        assert_eq!(number(&store, "SELECT COUNT(*) FROM finding_span").await, 1);
        assert_eq!(rule_day(&store).await, [1, 1, 2, 0, 0, 0, 1]);
        let places = store.occurrences(number(&store, "SELECT occ_set_id FROM finding_span").await).await.unwrap();
        assert_eq!(places[1].pointer, "/skills/1");
        assert_eq!(number(&store, "SELECT changed_s FROM target").await, NOON + 60);
    })
    .await;
}

#[tokio::test]
async fn probes_and_days_are_packed_as_documented() {
    for_each_database(async |store| {
        let rules = ruleset(&store).await;
        let surface = one_card(&store).await;
        store
            .record(&[
                seen(surface, NOON, "{}", judged(rules, &[("a2a/e", 'F')])),
                unseen(surface, NOON + 60, "unreachable:read_timeout"),
                seen(surface, NOON + 120, "[]", judged(rules, &[("a2a/e", 'P')])),
            ])
            .await
            .unwrap();
        let row = sqlx::query("SELECT probes FROM probe_day").fetch_one(store.reader()).await.unwrap();
        let probes: Vec<_> = probes::probes(&row.get::<Vec<u8>, _>(0)).collect();
        assert_eq!(
            probes.iter().map(|probe| probe.outcome).collect::<Vec<_>>(),
            [OutcomeClass::Ok, OutcomeClass::Unreachable, OutcomeClass::Ok]
        );
        assert_eq!(
            (probes[2].minute, probes[2].status, probes[2].took_ms, probes[2].document_changed),
            (722, 200, 84, true)
        );
        let row = sqlx::query("SELECT month, days FROM surface_month").fetch_one(store.reader()).await.unwrap();
        assert_eq!(row.get::<i64, _>(0), 682);
        let day = probes::days(&row.get::<Vec<u8>, _>(1)).nth(28).flatten().unwrap();
        assert_eq!((day.answered, day.unreachable, day.headline), (2, 1, Some(Headline::Blocked)));
    })
    .await;
}

#[tokio::test]
async fn reach_has_spans_and_events_of_its_own() {
    for_each_database(async |store| {
        let rules = ruleset(&store).await;
        let surface = one_card(&store).await;
        store.record(&[seen(surface, NOON, "{}", judged(rules, &[]))]).await.unwrap();
        for n in 1..=4 {
            store.record(&[unseen(surface, NOON + n * 300, "unreachable:refused")]).await.unwrap();
        }
        let down = store.surface(surface).await.unwrap();
        assert_eq!((down.reach.state, down.reach.reason.as_deref()), (ReachState::Down, Some("refused")));
        assert_eq!(number(&store, "SELECT down FROM cohort_day WHERE cohort_id = 1").await, 1);
        assert_eq!(number(&store, "SELECT sound FROM cohort_day WHERE cohort_id = 1").await, 1);
        for n in 5..=6 {
            store.record(&[seen(surface, NOON + n * 300, "{}", judged(rules, &[]))]).await.unwrap();
        }
        assert_eq!(number(&store, "SELECT up FROM cohort_day WHERE cohort_id = 1").await, 1);
        assert_eq!(number(&store, "SELECT COUNT(*) FROM reach_span").await, 4);
        assert_eq!(number(&store, "SELECT COUNT(*) FROM reach_span WHERE to_s IS NULL AND state = 'up'").await, 1);
        assert_eq!(number(&store, "SELECT probes FROM reach_span WHERE state = 'suspect'").await, 2);
        let told: Vec<_> = events(&store).await.into_iter().filter(|word| word.starts_with("target.")).collect();
        assert_eq!(told, ["target.added", "target.down", "target.recovered"]);
    })
    .await;
}

#[tokio::test]
async fn what_is_absent_for_a_month_is_retired_until_somebody_answers_there() {
    for_each_database(async |store| {
        let rules = ruleset(&store).await;
        let source = domains(&store).await;
        let cards = [card("a.example"), card("b.example")];
        store.set_targets(source, &cards, NOON).await.unwrap();
        let surface = surface_of(&store, "a.example").await;
        let target = store.target_named(cards[0].kind, "a.example").await.unwrap().unwrap();
        let card_said = [("a2a/e", 'F'), ("a2a/f", 'F')];
        store.record(&[seen(surface, NOON, "{}", judged(rules, &card_said))]).await.unwrap();
        // What its card leads to goes with it.
        let host = card("a.example").host;
        let url = "https://a.example/a2a".to_owned();
        let link = Link { kind: SurfaceKind::A2aInterface, url: url.clone(), role: Role::Interface, host };
        store.set_links(target, &[link], NOON + 1).await.unwrap();
        let absent = async |at| store.record(&[unseen(surface, at, "absent")]).await.unwrap();
        absent(NOON + HOUR).await;
        absent(NOON + 2 * HOUR).await;
        absent(NOON + 10 * DAY).await;
        absent(NOON + 2 * HOUR + 30 * DAY - 1).await;
        assert_eq!(store.counts().await.unwrap().targets, 2, "a month is thirty days");
        let end = NOON + 2 * HOUR + 30 * DAY;
        absent(end).await;
        let now = store.surface(surface).await.unwrap();
        assert_eq!((now.retired_s, now.next_due_s), (Some(end), Some(end + HOUR)), "it is asked on");
        assert_eq!((now.reach.state, now.headline), (ReachState::Retired, Headline::NotEvaluated));
        let interface = store.surface_at(SurfaceKind::A2aInterface, &url).await.unwrap().unwrap();
        assert_eq!(store.surface(interface).await.unwrap().next_due_s, None);
        assert_eq!(store.counts().await.unwrap().targets, 1);
        assert_eq!(number(&store, "SELECT COUNT(*) FROM target WHERE retire_reason = 'absent'").await, 1);
        assert_eq!(number(&store, "SELECT COUNT(*) FROM finding WHERE state = 'retired'").await, 1);
        assert_eq!(number(&store, "SELECT COUNT(*) FROM fact_span WHERE to_s IS NULL").await, 0);
        assert_eq!(number(&store, "SELECT COUNT(*) FROM finding_span WHERE resolution = 'document_gone'").await, 1);
        let newest = "SELECT targets * 10 + retired FROM cohort_day WHERE cohort_id = 1 ORDER BY day DESC LIMIT 1";
        assert_eq!(number(&store, newest).await, 11);
        let told = async |kind: &str| events(&store).await.iter().filter(|word| *word == kind).count();
        assert_eq!((told("target.gone").await, told("target.retired").await), (1, 1));

        // The list that still names it is no answer, however often it is read; nor is a silence.
        for n in 1..=3 {
            let kept = store.set_targets(source, &cards, end + n * DAY).await.unwrap();
            assert_eq!((kept.kept, kept.returned, kept.left), (2, 0, 0));
            absent(end + n * DAY + 1).await;
        }
        store.record(&[unseen(surface, end + 4 * DAY, "unreachable:refused")]).await.unwrap();
        let now = store.surface(surface).await.unwrap();
        assert_eq!((now.retired_s, now.next_due_s), (Some(end), Some(end + 4 * DAY + HOUR)));
        assert_eq!((told("target.retired").await, told("target.returned").await), (1, 0));

        // An answer is. What was wrong with it then begins anew.
        store.record(&[seen(surface, end + 5 * DAY, "{}", judged(rules, &card_said))]).await.unwrap();
        let now = store.surface(surface).await.unwrap();
        assert_eq!((now.retired_s, now.reach.state, now.headline), (None, ReachState::Up, Headline::Blocked));
        assert_eq!(finding(&store).await, "open baseline baseline -");
        assert_eq!(store.counts().await.unwrap().targets, 2);
        assert_eq!(told("target.returned").await, 1);
        let diagnosis = store.examine(plumbline_store::doctor::Hand::Look, end + 5 * DAY, |_| true).await.unwrap();
        assert_eq!(diagnosis.left(), 0, "{diagnosis:#?}");

        // Put away again, it is asked as long as somebody names it.
        absent(end + 6 * DAY).await;
        absent(end + 6 * DAY + 60).await;
        absent(end + 36 * DAY + 60).await;
        assert_eq!(told("target.retired").await, 2);
        assert_eq!(store.set_targets(source, &cards[1..], end + 37 * DAY).await.unwrap().left, 1);
        assert_eq!(store.surface(surface).await.unwrap().next_due_s, None);
        assert_eq!(number(&store, "SELECT COUNT(*) FROM target WHERE retire_reason = 'source'").await, 1);
        let back = store.set_targets(source, &cards, end + 38 * DAY).await.unwrap();
        assert_eq!(back.returned, 1, "a list that names it anew is heard");
        assert_eq!(store.surface(surface).await.unwrap().next_due_s, Some(end + 38 * DAY));
    })
    .await;
}

#[tokio::test]
async fn an_endpoint_that_is_absent_for_a_month_is_retired_and_its_target_is_not() {
    for_each_database(async |store| {
        let rules = ruleset(&store).await;
        let surface = one_card(&store).await;
        let target = plumbline_store::TargetId(1);
        store.record(&[seen(surface, NOON, "{}", judged(rules, &[("a2a/e", 'P')]))]).await.unwrap();
        let host = card("a.example").host;
        let url = "https://a.example/a2a".to_owned();
        let link = Link { kind: SurfaceKind::A2aInterface, url: url.clone(), role: Role::Interface, host };
        store.set_links(target, std::slice::from_ref(&link), NOON + 1).await.unwrap();
        let interface = store.surface_at(SurfaceKind::A2aInterface, &url).await.unwrap().unwrap();
        for n in [0, 1, 20, 31] {
            store.record(&[unseen(interface, NOON + n * DAY + 60, "absent")]).await.unwrap();
        }
        assert_eq!(store.surface(interface).await.unwrap().reach.state, ReachState::Retired);
        store.set_links(target, &[link], NOON + 32 * DAY).await.unwrap();
        assert_eq!(store.surface(interface).await.unwrap().reach.state, ReachState::Retired, "a name is no answer");
        let detail = store.target(target.0).await.unwrap().unwrap();
        assert_eq!((detail.retired_s, detail.headline), (None, Headline::Sound));
        assert!(!events(&store).await.contains(&"target.retired".to_owned()));
        store.record(&[seen(interface, NOON + 33 * DAY, "", judged(rules, &[]))]).await.unwrap();
        assert_eq!(store.surface(interface).await.unwrap().reach.state, ReachState::Up);
        let diagnosis = store.examine(plumbline_store::doctor::Hand::Look, NOON + 33 * DAY, |_| true).await.unwrap();
        assert_eq!(diagnosis.left(), 0, "{diagnosis:#?}");
    })
    .await;
}

#[tokio::test]
async fn a_document_gone_for_three_days_takes_its_findings_along() {
    for_each_database(async |store| {
        let rules = ruleset(&store).await;
        let surface = one_card(&store).await;
        store.record(&[seen(surface, NOON, "{}", judged(rules, &[("a2a/e", 'F')]))]).await.unwrap();
        for n in 1..=5 {
            let session = Some(format!("{{\"n\":{n}}}").into_bytes());
            store.record(&[Observation { session, ..unseen(surface, NOON + n * DAY, "absent") }]).await.unwrap();
        }
        assert_eq!(finding(&store).await, "resolved baseline baseline document_gone");
        let named =
            "SELECT COUNT(*) FROM finding_span JOIN probe_session ON probe_session.id = finding_span.close_session
                     WHERE probe_session.is_latest = 0";
        assert_eq!(number(&store, named).await, 1, "the conversation in which it ended is kept for good");
        let after = store.surface(surface).await.unwrap();
        assert_eq!((after.headline, after.n_blocking), (Headline::NotEvaluated, 0));
        assert_eq!(events(&store).await.iter().filter(|word| *word == "target.gone").count(), 1);
        // It comes back as it was: it was never fixed, so it is not broken again.
        store.record(&[seen(surface, NOON + 9 * DAY, "{}", judged(rules, &[("a2a/e", 'F')]))]).await.unwrap();
        assert!(!finding(&store).await.contains("again"));
    })
    .await;
}

#[tokio::test]
async fn a_judgement_is_remembered_whole() {
    for_each_database(async |store| {
        let rules = ruleset(&store).await;
        let surface = one_card(&store).await;
        let mut said = judged(rules, &[("a2a/e", '2'), ("a2a/w", 'P'), ("a2a/f", 'N'), ("common/json", 'U')]);
        store.record(&[seen(surface, NOON, "{}", said.clone())]).await.unwrap();
        let document = store.last_document(surface).await.unwrap().unwrap();
        assert_eq!(document.hash, body("{}").hash);
        let (_, remembered) = store.memo(document.id, rules, &[7; 32]).await.unwrap().unwrap();
        said.outcomes.sort_by(|a, b| a.rule.cmp(&b.rule));
        let mut found = remembered.clone();
        found.outcomes.sort_by(|a, b| a.rule.cmp(&b.rule));
        assert_eq!(found, said);
        assert!(matches!(remembered.outcomes[0].said, Said::Fires(_)), "what fires comes first");
        assert_eq!(
            store.memo(document.id, rules, &[8; 32]).await.unwrap(),
            None,
            "another context is another question"
        );
    })
    .await;
}

#[tokio::test]
async fn a_long_body_is_cut_and_its_length_told() {
    for_each_database(async |store| {
        let rules = ruleset(&store).await;
        let surface = one_card(&store).await;
        let long = "x".repeat(KEPT_BYTES + 5);
        store.record(&[seen(surface, NOON, &long, judged(rules, &[]))]).await.unwrap();
        let document = store.last_document(surface).await.unwrap().unwrap();
        assert!(document.is_cut);
        assert_eq!(document.raw_len, i64::try_from(KEPT_BYTES + 5).unwrap());
        assert_eq!(document.bytes.unwrap().len(), KEPT_BYTES);
        assert_eq!(document.hash, body(&long).hash);
    })
    .await;
}

#[tokio::test]
async fn a_batch_is_all_or_nothing() {
    for_each_database(async |store| {
        let rules = ruleset(&store).await;
        let surface = one_card(&store).await;
        let unknown = seen(SurfaceId(99), NOON, "{}", judged(rules, &[]));
        let stranger = seen(surface, NOON, "{}", judged(rules, &[("a2a/never", 'F')]));
        for bad in [unknown, stranger] {
            let batch = [seen(surface, NOON, "{}", judged(rules, &[("a2a/e", 'F')])), bad];
            let error = store.record(&batch).await.unwrap_err();
            assert!(matches!(error, Error::Missing { .. } | Error::UnknownRule(_)), "{error}");
            assert_eq!(number(&store, "SELECT COUNT(*) FROM finding").await, 0);
            assert_eq!(number(&store, "SELECT COUNT(*) FROM document").await, 0);
        }
        // What the failed batches remembered of shared rows is forgotten with them.
        store.record(&[seen(surface, NOON, "{}", judged(rules, &[("a2a/e", 'F')]))]).await.unwrap();
        assert_eq!(number(&store, "SELECT COUNT(*) FROM occ_set").await, 1);
        assert_eq!(store.record(&[]).await.unwrap(), Recorded::default());
    })
    .await;
}

#[tokio::test]
async fn crawls_count_what_was_recorded_for_them() {
    for_each_database(async |store| {
        let rules = ruleset(&store).await;
        let surface = one_card(&store).await;
        let crawl = store.start_crawl(CrawlKind::Round, None, Some(rules), "me", NOON).await.unwrap();
        let mut looks = vec![seen(surface, NOON, "{}", judged(rules, &[("a2a/e", 'F')]))];
        looks.extend(["throttled", "crawler_fault", "gated:payment"].map(|outcome| unseen(surface, NOON + 1, outcome)));
        looks.iter_mut().for_each(|look| look.crawl = Some(crawl));
        store.record(&looks).await.unwrap();
        let counts = store.crawl(crawl).await.unwrap().counts;
        assert_eq!((counts.done, counts.ok, counts.throttled, counts.faults, counts.gated), (4, 1, 1, 1, 1));
        assert_eq!((counts.judged, counts.opened), (1, 1));
    })
    .await;
}

#[tokio::test]
async fn conversations_are_kept_while_they_are_news() {
    for_each_database(async |store| {
        let rules = ruleset(&store).await;
        let surface = one_card(&store).await;
        for (n, letter) in (0..).zip(['F', 'F', 'F', 'P', 'P']) {
            let mut look = seen(surface, NOON + n * 60, "", judged(rules, &[("a2a/e", letter)]));
            look.served = Served::Nothing;
            look.outcome = Outcome::Ok;
            look.session = Some(format!("{{\"n\":{n}}}").into_bytes());
            store.record(&[look]).await.unwrap();
        }
        // The one that opened, the one that closed, and the newest.
        assert_eq!(number(&store, "SELECT COUNT(*) FROM probe_session").await, 3);
        assert_eq!(number(&store, "SELECT COUNT(*) FROM probe_session WHERE is_latest = 1").await, 1);
        let kept = store.conversations(surface, 10).await.unwrap();
        assert_eq!(kept.iter().map(|one| one.has_moved).collect::<Vec<_>>(), [false, true, true]);
        assert_eq!(store.last_session(surface).await.unwrap().as_deref(), Some(b"{\"n\":4}".as_slice()));
        let opened = store.session(surface, kept[2].id).await.unwrap();
        assert_eq!(opened.as_deref(), Some(b"{\"n\":0}".as_slice()), "what opened it can be read again");
        assert_eq!(store.session(SurfaceId(99), kept[2].id).await.unwrap(), None);
        let named = "SELECT COUNT(*) FROM finding_span WHERE open_session = 1 AND close_session = 4";
        assert_eq!(number(&store, named).await, 1, "its span names both, of the five looks the first and the fourth");
        assert_eq!(
            number(&store, "SELECT COUNT(*) FROM eval").await,
            1,
            "of a conversation the newest judgement is kept"
        );
        assert_eq!(finding(&store).await, "resolved baseline baseline fixed");
    })
    .await;
}

#[tokio::test]
async fn the_newest_conversation_with_odd_requests_stays_beside_the_newest() {
    for_each_database(async |store| {
        let rules = ruleset(&store).await;
        let surface = one_card(&store).await;
        let odd = r#"{"exchanges":[{"step":"discover"},{"step":"unknown-method"}]}"#;
        let plain = r#"{"exchanges":[{"step":"ping","raw":"{\"step\":\"origin\"}"}]}"#;
        for (n, said) in (0..).zip([plain, odd, plain, odd, plain, plain]) {
            let mut look = seen(surface, NOON + n * 60, "{}", judged(rules, &[("a2a/e", 'P')]));
            look.session = Some(said.as_bytes().to_vec());
            store.record(&[look]).await.unwrap();
        }
        let kept: Vec<_> = store.conversations(surface, 10).await.unwrap();
        let shown: Vec<_> = kept.iter().map(|one| (one.id, one.is_odd, one.has_moved)).collect();
        assert_eq!(shown, [(6, false, false), (4, true, false)]);
        assert_eq!(store.last_odd_conversation(surface).await.unwrap().map(|one| one.id), Some(4));
    })
    .await;
}

#[tokio::test]
async fn a_clock_set_back_makes_no_span_that_ends_before_it_begins() {
    for_each_database(async |store| {
        let rules = ruleset(&store).await;
        let surface = one_card(&store).await;
        for (at, text, letter) in [(NOON, "1", 'F'), (NOON - HOUR, "2", 'P'), (NOON - 2 * HOUR, "3", 'F'), (NOON + 9, "4", 'P')] {
            store.record(&[seen(surface, at, text, judged(rules, &[("a2a/e", letter)]))]).await.unwrap();
        }
        let bad = "SELECT (SELECT COUNT(*) FROM finding_span WHERE to_s < from_s) + (SELECT COUNT(*) FROM doc_span WHERE to_s < from_s)
                   + (SELECT COUNT(*) FROM reach_span WHERE to_s < from_s)";
        assert_eq!(number(&store, bad).await, 0);
        assert_eq!(number(&store, "SELECT COUNT(*) FROM doc_span WHERE to_s IS NULL").await, 1);
    })
    .await;
}

#[tokio::test]
async fn numbers_of_the_day_agree_with_the_rows() {
    for_each_database(async |store| {
        let rules = ruleset(&store).await;
        let source = crate::support::domains(&store).await;
        let cards: Vec<_> = (0..6).map(|n| crate::support::card(&format!("h{n}.example"))).collect();
        store.set_targets(source, &cards, NOON).await.unwrap();
        let letters = ['F', 'P', 'U', '2', 'N', 'P', 'F', 'F', 'P', 'U', 'F', '2'];
        for round in 0..10_usize {
            let mut batch = Vec::new();
            for n in 0..6_usize {
                let surface = crate::support::surface_of(&store, &format!("h{n}.example")).await;
                let at = NOON + i64::try_from(round).unwrap() * 7 * HOUR;
                let pick = |shift: usize| letters[(round * 5 + n * 3 + shift) % letters.len()];
                if (round + n) % 7 == 3 {
                    batch.push(unseen(surface, at, "unreachable:refused"));
                } else {
                    let said = judged(rules, &[("a2a/e", pick(0)), ("a2a/w", pick(1)), ("a2a/f", pick(2))]);
                    batch.push(seen(surface, at, &format!("{}", (round + n) % 4), said));
                }
            }
            store.record(&batch).await.unwrap();
            if round == 6 {
                store.set_targets(source, &cards[1..], NOON + 7 * 7 * HOUR - 1).await.unwrap();
            }
            if round == 6 {
                break;
            }
        }
        for (kept, counted) in [
            (
                "SELECT CAST(SUM(failing) AS BIGINT) FROM rule_day WHERE day = (SELECT MAX(day) FROM cohort_day)",
                "SELECT (SELECT COUNT(*) FROM finding WHERE state = 'open') + (SELECT COUNT(*) FROM fact_span WHERE to_s IS NULL)",
            ),
            (
                "SELECT CAST(SUM(occurrences) AS BIGINT) FROM rule_day WHERE day = (SELECT MAX(day) FROM cohort_day)",
                "SELECT CAST(COALESCE(SUM(occurrences), 0) AS BIGINT) FROM finding WHERE state = 'open'",
            ),
            (
                "SELECT blocked FROM cohort_day WHERE cohort_id = 1 ORDER BY day DESC LIMIT 1",
                "SELECT COUNT(*) FROM target WHERE headline = 'blocked' AND retired_s IS NULL",
            ),
            (
                "SELECT sound + blocked + deviates + not_detected + not_evaluated FROM cohort_day WHERE cohort_id = 1 ORDER BY day DESC LIMIT 1",
                "SELECT COUNT(*) FROM target WHERE retired_s IS NULL",
            ),
            (
                "SELECT up + suspect + down + gated + absent + throttled + unknown FROM cohort_day WHERE cohort_id = 3 ORDER BY day DESC LIMIT 1",
                "SELECT COUNT(*) FROM target WHERE retired_s IS NULL",
            ),
            (
                "SELECT COUNT(*) FROM finding_span WHERE to_s IS NULL",
                "SELECT COUNT(*) FROM finding WHERE state = 'open'",
            ),
        ] {
            assert_eq!(number(&store, kept).await, number(&store, counted).await, "{kept}");
        }
    })
    .await;
}

#[tokio::test]
async fn hostile_occurrences_and_headers_do_no_harm() {
    for_each_database(async |store| {
        let rules = ruleset(&store).await;
        let surface = one_card(&store).await;
        let long = "\u{202e}x\0'\"<b>".repeat(10_000);
        let mut said = judged(rules, &[("a2a/e", 'F'), ("a2a/f", 'F')]);
        for outcome in &mut said.outcomes {
            let Said::Fires(places) = &mut outcome.said else { panic!("they fire") };
            places[0].message = long.clone();
            places[0].pointer = long.clone();
            *places = vec![places[0].clone(); 1500];
        }
        let mut look = seen(surface, NOON, &long, said);
        look.declared_version = Some(long.clone());
        look.validators = Some(plumbline_store::surfaces::Validators { etag: Some("\0".into()), last_modified: None });
        store.record(&[look]).await.unwrap();
        assert_eq!(number(&store, "SELECT occurrences FROM finding").await, 1500);
        let places = store.occurrences(number(&store, "SELECT occ_set_id FROM finding").await).await.unwrap();
        assert_eq!((places.len(), places[0].message.chars().count()), (1000, 1000));
    })
    .await;
}

/// Every row of a table as text, on SQLite.
async fn rows(store: &Store, table: &str) -> String {
    let columns: String =
        sqlx::query_scalar("SELECT group_concat('quote(' || name || ')', ' || '','' || ') FROM pragma_table_info($1)")
            .bind(table)
            .fetch_one(store.writer())
            .await
            .unwrap();
    let all = format!(
        "SELECT COALESCE(group_concat(one, char(10)), '') FROM (SELECT {columns} AS one FROM {table} ORDER BY 1)"
    );
    sqlx::query_scalar(sqlx::AssertSqlSafe(all)).fetch_one(store.writer()).await.unwrap()
}

#[tokio::test]
async fn a_batch_comes_to_what_its_looks_come_to_one_by_one() {
    let folder = tempfile::tempdir().unwrap();
    let mut told = Vec::new();
    for batch in [1, 3, 100] {
        let file = folder.path().join(format!("{batch}.db"));
        let store = Store::open(file.to_str().unwrap()).await.unwrap();
        let rules = ruleset(&store).await;
        let first = one_card(&store).await;
        let source = domains(&store).await;
        store.add_targets(source, &[card("a.example"), card("b.example")], NOON).await.unwrap();
        let second = surface_of(&store, "b.example").await;
        let link = |host: &str| Link {
            kind: SurfaceKind::Openapi,
            url: format!("https://{host}/openapi.json"),
            role: Role::Metadata,
            host: None,
        };
        let mut looks = Vec::new();
        for (n, letters) in ["P", "F", "F", "P", "P", "F", "F"].into_iter().enumerate() {
            let at = NOON + i64::try_from(n).unwrap() * 5000;
            let letter = letters.chars().next().unwrap();
            let say = judged(rules, &[("a2a/e", letter), ("a2a/w", 'F'), ("a2a/f", 'F')]);
            let mut main = seen(first, at, &format!("{{\"n\":{n},\"a\":[{n}]}}"), say.clone());
            main.links = Some([link("a.example"), link("c.example")].into_iter().take(1 + n % 2).collect());
            looks.push(main);
            looks.push(Observation {
                is_verification: true,
                ..seen(first, at + 60, &format!("{{\"n\":{n},\"a\":[{n}]}}"), say.clone())
            });
            looks.push(seen(second, at + 70, "{}", say));
            let silent = Outcome::Unreachable(Unreachable::Refused);
            looks.push(Observation {
                outcome: silent,
                served: Served::Nothing,
                judged: None,
                ..looks[looks.len() - 1].clone()
            });
        }
        for some in looks.chunks(batch) {
            store.record(some).await.unwrap();
        }
        let mut all = String::new();
        for table in [
            "surface",
            "target",
            "target_surface",
            "finding",
            "finding_span",
            "fact_span",
            "fact_pending",
            "reach_span",
            "doc_span",
            "document",
            "eval",
            "deploy",
            "event",
            "probe_day",
            "surface_month",
            "rule_day",
            "cohort_day",
        ] {
            all.push_str(&format!("{table}\n{}\n", rows(&store, table).await));
        }
        store.close().await;
        told.push(all);
    }
    assert!(told[0].contains("'again unknown'"), "something moves");
    for other in &told[1..] {
        for (one, other) in told[0].lines().zip(other.lines()) {
            assert_eq!(one, other);
        }
        assert_eq!(&told[0], other);
    }
}
