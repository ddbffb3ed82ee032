//! Planned work on surfaces: looks in it are kept, flagged, and count neither as up nor as down.

use std::collections::BTreeSet;

use plumbline_store::planned::Work;
use plumbline_store::probes;

use crate::support::{DAY, HOUR, NOON, for_each_database, judged, one_card, ruleset, seen, unseen};

#[tokio::test]
async fn looks_during_planned_work_count_for_nothing() {
    for_each_database(async |store| {
        let surface = one_card(&store).await;
        let rules = ruleset(&store).await;
        let (facts, last) = store.surface_facts(0).await.unwrap().unwrap();
        assert_eq!((facts.len(), facts[0].0), (1, surface));
        for (word, value) in
            [("kind", "a2a-agent"), ("surface", "a2a-card"), ("cohort", "all"), ("cohort", "a2a-agent")]
        {
            assert!(facts[0].1.0[word].iter().any(|known| known == value), "{word}: {:?}", facts[0].1);
        }
        assert_eq!(store.surface_facts(last).await.unwrap(), None);

        let work = Work { surface, maintenance: 7, from_s: NOON + HOUR, to_s: NOON + 3 * HOUR };
        let other = Work { maintenance: 8, from_s: NOON + 9 * HOUR, to_s: NOON + 10 * HOUR, ..work };
        let planned = BTreeSet::from([work, other]);
        store.plan_work(&BTreeSet::new(), &planned).await.unwrap();
        assert_eq!(store.planned_work().await.unwrap(), planned);
        store.plan_work(&planned, &BTreeSet::from([work])).await.unwrap();
        assert_eq!(store.planned_work().await.unwrap(), BTreeSet::from([work]));

        store.record(&[seen(surface, NOON, "{}", judged(rules, &[("a2a/e", 'P')]))]).await.unwrap();
        for at in [HOUR, 2 * HOUR, 3 * HOUR] {
            store.record(&[unseen(surface, NOON + at, "unreachable:connect_timeout")]).await.unwrap();
        }
        let (month, nth) = probes::month_of(NOON / DAY);
        let packed: Vec<u8> = sqlx::query_scalar("SELECT days FROM surface_month WHERE surface_id = $1 AND month = $2")
            .bind(surface.0)
            .bind(month)
            .fetch_one(store.reader())
            .await
            .unwrap();
        let day = probes::days(&packed).nth(nth).unwrap().unwrap();
        assert_eq!((day.answered, day.unreachable, day.neither), (1, 1, 2), "its end is no part of it");
        assert!(day.in_maintenance);
        let packed: Vec<u8> =
            sqlx::query_scalar("SELECT probes FROM probe_day").fetch_one(store.reader()).await.unwrap();
        let flags: Vec<bool> = probes::probes(&packed).map(|probe| probe.in_maintenance).collect();
        assert_eq!(flags, [false, true, true, false]);
    })
    .await;
}
