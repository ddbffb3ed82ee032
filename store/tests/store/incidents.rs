//! Reach over many surfaces: what fails together, what asks for peace, what comes and goes.

use plumbline_store::incidents::Shared;
use plumbline_store::record::{Observation, Place};
use plumbline_store::targets::{HostName, NewTarget};
use plumbline_store::words::ReachState;
use plumbline_store::{EventId, Store, SurfaceId};

use crate::support::{
    HOUR, NOON, card, domains, events, for_each_database, judged, number, ruleset, seen, surface_of, unseen,
};

/// So many cards: `shared` on one host, the others on hosts of their own.
async fn cards(store: &Store, shared: usize, alone: usize) -> Vec<SurfaceId> {
    let source = domains(store).await;
    let host = |n: usize| if n < shared { "shared.example".to_owned() } else { format!("h{n}.example") };
    let made: Vec<_> = (0..shared + alone)
        .map(|n| {
            let host = HostName { name: host(n), domain: host(n) };
            NewTarget { host: Some(host), ..card(&format!("h{n}.example")) }
        })
        .collect();
    store.add_targets(source, &made, NOON).await.unwrap();
    let mut surfaces = Vec::new();
    for n in 0..shared + alone {
        surfaces.push(surface_of(store, &format!("h{n}.example")).await);
    }
    surfaces
}

async fn all_answer(store: &Store, surfaces: &[SurfaceId], at: i64, place: Option<&Place>) {
    let rules = ruleset(store).await;
    let looks: Vec<_> = surfaces
        .iter()
        .map(|surface| Observation { place: place.cloned(), ..seen(*surface, at, "{}", judged(rules, &[])) })
        .collect();
    store.record(&looks).await.unwrap();
}

/// Three looks over ten minutes, each in the way given for the surface.
async fn all_fail(store: &Store, failing: &[(SurfaceId, &str)], at: i64) {
    for later in [0, 60, 300, 900] {
        let looks: Vec<_> = failing.iter().map(|(surface, how)| unseen(*surface, at + later, how)).collect();
        store.record(&looks).await.unwrap();
    }
}

async fn told(store: &Store) -> Vec<String> {
    let about =
        |word: &String| word.starts_with("incident") || word.starts_with("target.down") || word.ends_with("red");
    events(store).await.into_iter().filter(about).filter(|word| word != "finding.opened").collect()
}

const REFUSED: &str = "unreachable:refused";
const TIMEOUT: &str = "unreachable:connect_timeout";

#[tokio::test]
async fn a_host_that_goes_down_is_one_incident_with_all_its_surfaces() {
    for_each_database(async |store| {
        let surfaces = cards(&store, 3, 2).await;
        all_answer(&store, &surfaces, NOON, None).await;
        let failing: Vec<_> = surfaces[..3].iter().map(|surface| (*surface, REFUSED)).collect();
        all_fail(&store, &failing, NOON + HOUR).await;
        let incidents = store.incidents(None, 9).await.unwrap();
        assert_eq!(incidents.len(), 1);
        let incident = &incidents[0];
        assert_eq!((incident.cause, incident.shared.as_str()), (Shared::Host, "shared.example"));
        assert_eq!((incident.members, incident.failing, incident.reason.as_deref()), (3, 3, Some("connect")));
        let events = store.events_after(EventId(0), 100).await.unwrap();
        let down: Vec<_> = events.iter().filter(|event| event.kind.as_str() == "target.down").collect();
        let opened = events.iter().find(|event| event.kind.as_str() == "incident.opened").unwrap();
        assert_eq!(down.len(), 3);
        assert!(down.iter().all(|event| event.id > opened.id && event.b == Some(incident.id)), "inside the incident");

        let struck = store.happened(opened.clone()).await.unwrap().shown.0;
        assert_eq!(struck["target"], ["h0.example", "h1.example", "h2.example"], "all whom it has struck");
        assert_eq!((struck["owner"].as_slice(), struck["surface"].len()), (&["them".to_owned()][..], 1));
        assert_eq!(
            (struck["host"].as_slice(), struck["tag"].as_slice()),
            (&["shared.example".into()][..], &["tier=1".into()][..])
        );
        assert!(store.happened(down[0].clone()).await.unwrap().shown.0.is_empty(), "it is named already");

        // They answer again one after the other; the incident ends with the last.
        for (n, surface) in (0..).zip(&surfaces[..3]) {
            for later in [0, 90] {
                all_answer(&store, &[*surface], NOON + (2 + n) * HOUR + later, None).await;
            }
        }
        let (over, members) = store.incident(incident.id).await.unwrap().unwrap();
        assert_eq!((over.closed_s, over.failing), (Some(NOON + 4 * HOUR + 90), 0));
        assert!(members.iter().all(|member| member.left_s.is_some() && member.reach == ReachState::Up));
        assert_eq!(told(&store).await.last().map(String::as_str), Some("target.recovered"));
        assert_eq!(number(&store, "SELECT COUNT(*) FROM event WHERE kind = 22").await, 1);
        assert_eq!(number(&store, "SELECT COUNT(*) FROM event WHERE kind = 21").await, 2, "one for each who left it");
        assert!(store.incident(99).await.unwrap().is_none());
    })
    .await;
}

#[tokio::test]
async fn what_fails_alone_or_in_another_way_or_at_another_time_is_no_incident() {
    for_each_database(async |store| {
        let surfaces = cards(&store, 4, 3).await;
        all_answer(&store, &surfaces, NOON, None).await;
        // One of a host of four; two in different ways.
        all_fail(&store, &[(surfaces[0], REFUSED), (surfaces[1], "unreachable:tls_expired")], NOON + HOUR).await;
        // Another one of it hours later.
        all_fail(&store, &[(surfaces[2], REFUSED)], NOON + 5 * HOUR).await;
        // Three that share nothing.
        let strangers: Vec<_> = surfaces[4..].iter().map(|surface| (*surface, TIMEOUT)).collect();
        all_fail(&store, &strangers, NOON + 8 * HOUR).await;
        assert!(store.incidents(None, 9).await.unwrap().is_empty());
        assert_eq!(number(&store, "SELECT COUNT(*) FROM event WHERE kind = 11").await, 6, "each is down by itself");
    })
    .await;
}

#[tokio::test]
async fn a_network_and_a_certificate_are_shared_across_hosts() {
    for_each_database(async |store| {
        let surfaces = cards(&store, 0, 7).await;
        let network = Place { address: Some("203.0.113.7".into()), ..Place::default() };
        all_answer(&store, &surfaces[..3], NOON, Some(&network)).await;
        let signed = Place { certificate: Some("CN=R11, until 2026-12-01 00:00".into()), ..Place::default() };
        all_answer(&store, &surfaces[3..], NOON, Some(&signed)).await;
        let silent: Vec<_> = surfaces[..3].iter().map(|surface| (*surface, TIMEOUT)).collect();
        all_fail(&store, &silent, NOON + HOUR).await;
        let expired: Vec<_> = surfaces[3..6].iter().map(|surface| (*surface, "unreachable:tls_expired")).collect();
        all_fail(&store, &expired, NOON + 2 * HOUR).await;
        let shared: Vec<_> = store
            .incidents(None, 9)
            .await
            .unwrap()
            .into_iter()
            .map(|incident| (incident.cause, incident.shared, incident.members))
            .collect();
        assert_eq!(
            shared,
            [
                (Shared::Certificate, "CN=R11, until 2026-12-01 00:00".to_owned(), 3),
                (Shared::Prefix, "203.0.113.0/24".to_owned(), 3),
            ]
        );
        // A fourth goes down for the same reason and joins.
        all_fail(&store, &[(surfaces[6], "unreachable:tls_expired")], NOON + 9 * HOUR).await;
        assert_eq!(store.incidents(None, 1).await.unwrap()[0].members, 4);
    })
    .await;
}

#[tokio::test]
async fn a_host_that_asks_for_peace_is_told_once() {
    for_each_database(async |store| {
        let surfaces = cards(&store, 2, 0).await;
        all_answer(&store, &surfaces, NOON, None).await;
        let told = number(&store, "SELECT COUNT(*) FROM event").await;
        for n in 1..=4 {
            let looks: Vec<_> = surfaces.iter().map(|surface| unseen(*surface, NOON + n * HOUR, "throttled")).collect();
            store.record(&looks).await.unwrap();
        }
        assert_eq!(store.surface(surfaces[1]).await.unwrap().reach.state, ReachState::Throttled);
        let events = store.events_after(EventId(told), 9).await.unwrap();
        assert_eq!(events.len(), 1, "{events:?}");
        assert_eq!(events[0].kind.as_str(), "crawl.degraded");
        assert_eq!(events[0].note.as_deref(), Some("shared.example asks to be left alone for a while"));
    })
    .await;
}

#[tokio::test]
async fn what_goes_up_and_down_all_day_is_told_once_and_then_left_in_peace() {
    for_each_database(async |store| {
        let surface = cards(&store, 0, 1).await[0];
        all_answer(&store, &[surface], NOON, None).await;
        let mut at = NOON;
        for _ in 0..5 {
            all_fail(&store, &[(surface, REFUSED)], at + 600).await;
            at += 600 + 900;
            for later in [60, 160] {
                all_answer(&store, &[surface], at + later, None).await;
            }
            at += 160;
        }
        assert_eq!(store.surface(surface).await.unwrap().reach.state, ReachState::Flapping);
        assert_eq!(told(&store).await, ["target.down", "target.recovered", "target.down", "target.down"]);
        assert_eq!(number(&store, "SELECT COUNT(*) FROM event WHERE kind = 11 AND note = 'flapping'").await, 1);
        for hours in [3, 7] {
            all_answer(&store, &[surface], at + hours * HOUR, None).await;
        }
        assert_eq!(store.surface(surface).await.unwrap().reach.state, ReachState::Up);
        assert_eq!(told(&store).await.len(), 5);
        assert_eq!(number(&store, "SELECT COUNT(*) FROM reach_span WHERE to_s IS NULL").await, 1);
    })
    .await;
}
