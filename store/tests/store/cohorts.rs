//! Cohorts: who is in them, how common failures are by surface, name and host, and what jumps.

use plumbline_store::Store;
use plumbline_store::targets::{HostName, NewTarget, OwnerName};
use plumbline_store::views::FixedShare;
use sqlx::Row;

use crate::support::{
    DAY, HOUR, NOON, card, domains, events, for_each_database, judged, number, ruleset, seen, surface_of, unseen,
};

/// Cards of one owner on one host, and each fails as its letter says.
async fn cards(store: &Store, owner: &str, domain: &str, letters: &str, at_s: i64) {
    let source = domains(store).await;
    let rules = ruleset(store).await;
    let named = |n: usize| NewTarget {
        host: Some(HostName { name: format!("h{}.{domain}", n % 2), domain: domain.into() }),
        owner: Some(OwnerName { slug: owner.into(), name: owner.into() }),
        ..card(&format!("{owner}{n}.{domain}"))
    };
    let targets: Vec<NewTarget> = (0..letters.len()).map(named).collect();
    store.add_targets(source, &targets, at_s).await.unwrap();
    for (n, letter) in letters.chars().enumerate() {
        let surface = surface_of(store, &format!("{owner}{n}.{domain}")).await;
        let look = match letter {
            '-' => unseen(surface, at_s, "unreachable:refused"),
            letter => seen(
                surface,
                at_s,
                &format!("{{\"n\":\"{owner}{n}\"}}"),
                judged(rules, &[("a2a/e", letter), ("a2a/w", 'P')]),
            ),
        };
        store.record(&[look]).await.unwrap();
    }
}

/// Surfaces, names and hosts judged and failing, and what could not be judged, of `a2a/e` in a cohort on its newest day.
async fn share(store: &Store, slug: &'static str) -> Vec<i64> {
    let row = sqlx::query(
        "SELECT d.evaluated, d.failing, d.unknown, d.targets_evaluated, d.targets_failing, d.hosts_evaluated,
                d.hosts_failing, d.opened
         FROM rule_day d
         JOIN cohort c ON c.id = d.cohort_id
         JOIN rule r ON r.id = d.rule_id
         WHERE c.slug = $1 AND r.slug = 'a2a/e'
         ORDER BY d.day DESC
         LIMIT 1",
    )
    .bind(slug)
    .fetch_one(store.reader())
    .await
    .unwrap();
    (0..8).map(|n| row.try_get(n).unwrap()).collect()
}

#[tokio::test]
async fn prevalence_is_counted_by_surface_name_and_host_in_every_cohort() {
    for_each_database(async |store| {
        cards(&store, "one", "a.example", "FFPPPPPPPU", NOON).await;
        cards(&store, "two", "b.example", "PPPPPPPPP-", NOON + HOUR).await;
        let counted = store.count_cohorts(NOON + 2 * HOUR).await.unwrap();
        assert!(counted.cohorts > 6, "{counted:?}");
        assert_eq!(share(&store, "all").await, [18, 2, 1, 18, 2, 4, 2, 0]);
        assert_eq!(share(&store, "a2a-agent").await, [18, 2, 1, 18, 2, 4, 2, 0]);
        assert_eq!(share(&store, "owner-one").await, [9, 2, 1, 9, 2, 2, 2, 0]);
        assert_eq!(share(&store, "host-a.example").await, [9, 2, 1, 9, 2, 2, 2, 0]);
        let two = "SELECT COUNT(*) FROM rule_day d JOIN cohort c ON c.id = d.cohort_id WHERE c.slug = 'owner-two'";
        assert_eq!(number(&store, two).await, 0, "nothing fails there");
        let members =
            "SELECT COUNT(*) FROM cohort_member m JOIN cohort c ON c.id = m.cohort_id WHERE c.slug = 'owner-two'";
        assert_eq!(number(&store, members).await, 10);
        let must =
            "SELECT passed * 10000 + judged * 100 + unknown FROM must_day WHERE cohort_id = 1 AND family = 'a2a'";
        assert_eq!(number(&store, must).await, 16 * 10_000 + 18 * 100 + 1);
        let again = store.count_cohorts(NOON + 2 * HOUR).await.unwrap();
        assert_eq!((again.cohorts, again.rows), (counted.cohorts, counted.rows), "counting twice changes nothing");
    })
    .await;
}

#[tokio::test]
async fn what_breaks_at_many_targets_at_once_is_told_and_what_a_rule_brings_is_not() {
    for_each_database(async |store| {
        cards(&store, "one", "a.example", &"P".repeat(40), NOON).await;
        let rules = ruleset(&store).await;
        for day in 0..3 {
            store.count_cohorts(NOON + day * DAY + HOUR).await.unwrap();
        }
        for n in 0..12 {
            let surface = surface_of(&store, &format!("one{n}.a.example")).await;
            for minutes in [0, 1, 6, 16] {
                let at_s = NOON + 2 * DAY + 2 * HOUR + minutes * 60;
                let mut look = seen(
                    surface,
                    at_s,
                    &format!("{{\"broken\":{n}}}"),
                    judged(rules, &[("a2a/e", 'F'), ("a2a/w", 'P')]),
                );
                look.is_verification = minutes > 0;
                store.record(&[look]).await.unwrap();
            }
        }
        store.count_cohorts(NOON + 2 * DAY + 5 * HOUR).await.unwrap();
        assert_eq!(share(&store, "owner-one").await, [40, 12, 0, 40, 12, 2, 2, 12]);
        let jumped = |events: &[String]| events.iter().filter(|word| *word == "rule.prevalence_jumped").count();
        assert_eq!(jumped(&events(&store).await), 0, "the day is not over");
        let counted = store.count_cohorts(NOON + 3 * DAY).await.unwrap();
        assert!(counted.jumps >= 3, "all, the kind, the owner: {counted:?}");
        assert_eq!(jumped(&events(&store).await), counted.jumps);
        assert_eq!(store.count_cohorts(NOON + 3 * DAY + HOUR).await.unwrap().jumps, 0, "told once");
    })
    .await;
}

#[tokio::test]
async fn a_fixed_population_is_moved_by_what_breaks_and_is_mended_and_by_nothing_that_comes_or_goes() {
    for_each_database(async |store| {
        cards(&store, "one", "a.example", "FFPPPPPPPP", NOON).await;
        store.count_cohorts(NOON + HOUR).await.unwrap();
        let later = NOON + 30 * DAY;
        cards(&store, "two", "b.example", "FFFFFFFFFF", later).await;
        let rules = ruleset(&store).await;
        for (n, letter) in [(0, 'P'), (2, 'F'), (3, 'F')] {
            let surface = surface_of(&store, &format!("one{n}.a.example")).await;
            for minutes in [0, 1, 6, 16] {
                let judged = judged(rules, &[("a2a/e", letter), ("a2a/w", 'P')]);
                let mut look = seen(surface, later + minutes * 60, &format!("{{\"later\":{n}}}"), judged);
                look.is_verification = minutes > 0;
                store.record(&[look]).await.unwrap();
            }
        }
        store.count_cohorts(later + HOUR).await.unwrap();
        assert_eq!(share(&store, "all").await[..2], [20, 13], "whoever is there");

        let (then, now_s) = (NOON / DAY, later + HOUR);
        let of = async |cohort: i64, day: i64, now_s: i64| {
            let shares = store.fixed_prevalence(cohort, day, now_s).await.unwrap();
            shares.iter().find(|one| one.rule == "a2a/e").cloned()
        };
        let fixed = FixedShare { rule: "a2a/e".into(), evaluated: 10, failing: 3, waived: 0, failing_before: 2 };
        assert_eq!(of(1, then, now_s).await.as_ref(), Some(&fixed));
        let kind = number(&store, "SELECT id FROM cohort WHERE slug = 'a2a-agent'").await;
        assert_eq!(of(kind, then, now_s).await.as_ref(), Some(&fixed));
        let owner = number(&store, "SELECT id FROM cohort WHERE slug = 'owner-one'").await;
        assert_eq!(of(owner, then, now_s).await.as_ref(), Some(&fixed));
        let newcomers = number(&store, "SELECT id FROM cohort WHERE slug = 'owner-two'").await;
        assert_eq!(of(newcomers, then, now_s).await, None, "nobody of them was there");
        assert_eq!(of(1, then - 9, now_s).await, None, "nothing was judged yet");

        sqlx::query("UPDATE target SET retired_s = $1 WHERE key LIKE 'one3%'")
            .bind(now_s)
            .execute(store.writer())
            .await
            .unwrap();
        assert_eq!(of(1, then, now_s).await.as_ref(), Some(&fixed), "an answer holds for its hour");
        let fewer = FixedShare { evaluated: 9, failing: 2, ..fixed };
        assert_eq!(of(1, then, now_s + HOUR).await.as_ref(), Some(&fewer), "who left is on neither side");

        // Of a surface that went over to another revision the rule says nothing any more: that mended nothing.
        let surface = surface_of(&store, "one1.a.example").await;
        for minutes in [40, 41, 46] {
            let other = judged(rules, &[("a2a/w", 'P')]);
            let mut look = seen(surface, later + minutes * 60, "{\"later\":1}", other);
            look.is_verification = minutes > 40;
            store.record(&[look]).await.unwrap();
        }
        let unjudged = FixedShare { evaluated: 8, failing: 1, failing_before: 1, ..fewer };
        assert_eq!(of(1, then, now_s + 2 * HOUR).await, Some(unjudged));
    })
    .await;
}
