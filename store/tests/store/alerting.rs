//! Every statement about alerts, receivers and what keeps quiet, on each database: a story from a regression to its last message.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use plumbline_store::alerting::{
    Alert, AlertChange, AlertState, ByWhat, EndedAs, Grade, Group, GroupNews, Kept, Maintenance, NewAlert, NewRoute,
    Share, Silence, Waiver,
};
use plumbline_store::happened::Facts;
use plumbline_store::hooks::{
    Attempt, DeliveryState, EndpointState, Mode, NewEndpoint, NewMessage, Origin, SealedSecret, SecretRole, Settled,
    Standing, Subscription,
};
use plumbline_store::taken_on::TakenOn;
use plumbline_store::words::EventKind;
use plumbline_store::{AlertId, EndpointId, EventId, GroupId, RouteId, Store, SurfaceId};

use crate::support::{DAY, HOUR, NOON, for_each_database, judged, one_card, ruleset, seen};

fn endpoint(slug: &str, mode: Mode) -> NewEndpoint {
    NewEndpoint {
        slug: slug.to_owned(),
        title: slug.to_owned(),
        url: format!("https://hooks.example.com/{slug}"),
        format: "generic".to_owned(),
        mode,
        types: vec!["finding.*".to_owned()],
        matcher: "owner:harbour".to_owned(),
        include_baseline: false,
        per_minute: 300,
        options: "{}".to_owned(),
        digest: None,
    }
}

fn route(slug: &str) -> NewRoute {
    NewRoute {
        slug: slug.to_owned(),
        title: slug.to_owned(),
        matcher: String::new(),
        min_severity: Grade::Warning,
        include_baseline: false,
        include_rule_changes: false,
        wait_s: 60,
        interval_s: 900,
        repeat_s: 86_400,
        quiet_hours: None,
    }
}

fn secret(scheme: &str, role: SecretRole) -> SealedSecret {
    SealedSecret {
        role,
        scheme: scheme.to_owned(),
        sealed: vec![1, 2, 3],
        created_s: NOON,
        expires_s: None,
        last_used_s: None,
    }
}

fn message(id: &str, to: &[EndpointId]) -> NewMessage {
    NewMessage {
        id: id.to_owned(),
        kind: "finding.regressed".to_owned(),
        event: Some(1),
        group: None,
        at_s: NOON,
        body: b"{}".to_vec(),
        to: to.to_vec(),
    }
}

fn begins(route: RouteId, key: &str) -> AlertChange {
    AlertChange::Begin(Box::new(NewAlert {
        route,
        key: key.to_owned(),
        title: format!("about {key}"),
        severity: Grade::Warning,
        target: Some(1),
        surface: Some(1),
        rule: Some("a2a/e".to_owned()),
        facts: Facts(BTreeMap::from([("owner".to_owned(), vec!["harbour".to_owned()])])),
        why: vec!["Route r takes it.".to_owned()],
        by: (ByWhat::Target, "tgt_1".to_owned()),
        event: EventId(1),
        at_s: NOON,
    }))
}

fn settled(id: EndpointId, message: &str, state: DeliveryState, standing: EndpointState) -> Settled {
    let is_good = state == DeliveryState::Delivered;
    Settled {
        attempt: Attempt {
            endpoint: id,
            message: message.to_owned(),
            at_ms: NOON * 1000,
            took_ms: 12,
            status: Some(if is_good { 204 } else { 500 }),
            error: None,
            request: "{}".to_owned(),
            response: Some("{}".to_owned()),
        },
        state,
        attempts: 1,
        next_s: (state == DeliveryState::Pending).then_some(NOON + 5),
        note: None,
        endpoint: Standing {
            state: standing,
            note: (!is_good).then(|| "status 500".to_owned()),
            failures: i64::from(!is_good),
            first_failure_s: (!is_good).then_some(NOON),
            last_failure_s: (!is_good).then_some(NOON),
            last_success_s: is_good.then_some(NOON),
            slowed: false,
        },
        signed_by: if is_good { vec![(SecretRole::Current, "v1")] } else { Vec::new() },
    }
}

/// A card with one open error.
async fn failing_card(store: &Store) -> SurfaceId {
    let surface = one_card(store).await;
    let rules = ruleset(store).await;
    store.record(&[seen(surface, NOON, "{}", judged(rules, &[("a2a/e", 'F'), ("a2a/w", 'P')]))]).await.unwrap();
    surface
}

async fn open(store: &Store) -> Vec<Alert> {
    store.all_open_alerts(100).await.unwrap()
}

#[tokio::test]
async fn a_receiver_is_subscribed_changed_given_keys_and_taken_away() {
    for_each_database(async |store| {
        let (new, own) = (endpoint("team", Mode::Groups), route("team"));
        let secrets = [secret("v1", SecretRole::Current), secret("v1a", SecretRole::Current)];
        let asked = Subscription { endpoint: &new, secrets: &secrets, route: Some(&own) };
        let id = store.subscribe(&asked, NOON).await.unwrap().unwrap();
        assert_eq!(store.subscribe(&asked, NOON).await.unwrap(), None, "the name is taken");
        store.rename_endpoint(id, "team", "crew", true).await.unwrap();
        assert_eq!(store.endpoint("crew").await.unwrap().id, id);
        assert_eq!(store.routes().await.unwrap()[0].is.slug, "team", "it was not made in the settings");
        store.rename_endpoint(id, "crew", "team", false).await.unwrap();
        assert_eq!(store.routes().await.unwrap()[0].endpoints, [id]);
        assert_eq!(store.secrets(id, NOON).await.unwrap().len(), 2);
        store.rotate_secret(id, &secret("v1", SecretRole::Current), Some(NOON + HOUR)).await.unwrap();
        let roles = |secrets: Vec<SealedSecret>| secrets.iter().map(|one| one.role).collect::<Vec<_>>();
        assert_eq!(roles(store.secrets(id, NOON).await.unwrap()).len(), 3);
        assert_eq!(roles(store.secrets(id, NOON + HOUR).await.unwrap()).len(), 2, "the one before ran out");
        store.drop_secrets(id, "v1a").await.unwrap();
        store.drop_previous_secret(id).await.unwrap();
        assert_eq!(roles(store.secrets(id, NOON).await.unwrap()), [SecretRole::Current]);
        let events = endpoint("team", Mode::Events);
        let changed = Subscription { endpoint: &events, secrets: &[], route: None };
        store.resubscribe(id, &changed, NOON).await.unwrap();
        assert!(store.routes().await.unwrap().is_empty(), "its own route went");
        assert_eq!(store.endpoint("team").await.unwrap().is.mode, Mode::Events);
        store.enable_endpoint(id, false, "paused by Ada", NOON).await.unwrap();
        assert_eq!(store.endpoint("team").await.unwrap().state_note.as_deref(), Some("paused by Ada"));
        store.unsubscribe(id, "team", NOON).await.unwrap();
        assert!(store.endpoint("team").await.is_err() && store.endpoints().await.unwrap().is_empty());
        assert!(store.subscribe(&asked, NOON).await.unwrap().is_some(), "the name is free again");
    })
    .await;
}

#[tokio::test]
async fn a_message_is_tried_settled_replayed_and_forgotten() {
    for_each_database(async |store| {
        let id = store.put_endpoint(&endpoint("machine", Mode::Events), Origin::File, NOON).await.unwrap();
        store.put_secret(id, &secret("v1", SecretRole::Current)).await.unwrap();
        for n in 1..=3 {
            store.queue_message(&message(&format!("msg_{n}"), &[id]), NOON).await.unwrap();
        }
        assert_eq!(store.newest_message().await.unwrap().as_deref(), Some("msg_3"));
        assert_eq!(store.newest_body("finding.regressed").await.unwrap().as_deref(), Some(&b"{}"[..]));
        assert_eq!(store.endpoints_due(NOON).await.unwrap(), [id]);
        let due = store.due_deliveries(id, NOON, 32).await.unwrap();
        assert_eq!(due.iter().map(|one| one.message.as_str()).collect::<Vec<_>>(), ["msg_1", "msg_2", "msg_3"]);
        let tries = [
            settled(id, "msg_1", DeliveryState::Delivered, EndpointState::Active),
            settled(id, "msg_2", DeliveryState::Dead, EndpointState::Failing),
            settled(id, "msg_3", DeliveryState::Pending, EndpointState::Failing),
        ];
        store.settle(&tries, NOON).await.unwrap();
        let backlog = store.backlog(Some(id)).await.unwrap();
        assert_eq!((backlog.pending, backlog.dead, backlog.oldest_s), (1, 1, Some(NOON)));
        assert_eq!(store.backlog(None).await.unwrap(), backlog);
        assert_eq!(store.probe_delivery(id, NOON).await.unwrap(), None, "its time has not come");
        let probe = store.probe_delivery(id, NOON + 5).await.unwrap().unwrap();
        assert_eq!((probe.message.as_str(), probe.tries, probe.first_try_ms), ("msg_3", 1, Some(NOON * 1000)));
        // A try that another process kept, whose count was lost: the next is kept all the same.
        sqlx::query("UPDATE wh_delivery SET tries = 0 WHERE message_id = 'msg_3'")
            .execute(store.writer())
            .await
            .unwrap();
        let again = settled(id, "msg_3", DeliveryState::Pending, EndpointState::Failing);
        store.settle(&[again], NOON + 6).await.unwrap();
        assert_eq!(store.delivery(id, "msg_3").await.unwrap().unwrap().2.len(), 2);
        let dead = store.deliveries(Some(id), Some(DeliveryState::Dead), None, 10).await.unwrap();
        assert_eq!(dead.len(), 1);
        assert_eq!(store.deliveries(None, None, Some("msg_3"), 10).await.unwrap().len(), 2);
        let (row, body, tries) = store.delivery(id, "msg_1").await.unwrap().unwrap();
        assert_eq!((row.state, body.as_slice(), tries.len()), (DeliveryState::Delivered, &b"{}"[..], 1));
        assert!(store.replay(id, "msg_1", NOON + 9).await.unwrap());
        assert_eq!(store.replay_since(id, NOON, NOON + 9).await.unwrap(), 1);
        assert!(store.send_as_new(id, "msg_1", "msg_4", NOON + 9).await.unwrap());
        assert!(!store.send_as_new(id, "msg_none", "msg_5", NOON + 9).await.unwrap());
        store.enable_endpoint(id, true, "", NOON + 9).await.unwrap();
        assert_eq!(store.due_deliveries(id, NOON + 9, 32).await.unwrap().len(), 4);
        let summary = message("msg_6", &[id]);
        let machine = store.endpoint("machine").await.unwrap();
        assert!(store.queue_digest(&machine, Some(&summary), 1, Some(NOON), NOON + DAY, NOON).await.unwrap());
        let again = message("msg_7", &[id]);
        assert!(!store.queue_digest(&machine, Some(&again), 1, Some(NOON), NOON + DAY, NOON).await.unwrap());
        let machine = store.endpoint("machine").await.unwrap();
        assert_eq!((machine.digest_due_s, machine.digest_event, machine.digest_s), (Some(NOON + DAY), 1, Some(NOON)));
        let asked = |digest: &str| NewEndpoint { digest: Some(digest.to_owned()), ..machine.is.clone() };
        let planned = async |asked: &NewEndpoint| {
            store.put_endpoint(asked, Origin::Ui, NOON + 5).await.unwrap();
            let kept = store.endpoint("machine").await.unwrap();
            (kept.digest_due_s, kept.digest_s, kept.digest_event > 1)
        };
        assert_eq!(planned(&asked("daily")).await, (None, Some(NOON + 5), true), "a new one begins with what comes");
        let kept = store.endpoint("machine").await.unwrap();
        let event = kept.digest_event;
        assert!(store.queue_digest(&kept, None, event, kept.digest_s, NOON + DAY, NOON).await.unwrap());
        assert_eq!(planned(&asked("daily")).await, (Some(NOON + DAY), Some(NOON + 5), true), "nothing changed");
        assert_eq!(planned(&asked("weekly")).await, (None, Some(NOON + 5), true), "another hour is planned anew");
        assert_eq!(store.open_counts_of(id).await.unwrap(), None, "no route leads to it");
        assert_eq!(store.last_about(GroupId(1), id).await.unwrap(), None);
        assert!(!store.count_events(0, i64::MAX).await.unwrap().is_empty(), "failing and dead are told");
        assert_eq!(store.forget_messages(NOON + DAY).await.unwrap(), 0, "what waits is kept");
        store.remove_endpoint(id, NOON).await.unwrap();
        assert_eq!(store.forget_messages(NOON + DAY).await.unwrap(), 5);
    })
    .await;
}

#[tokio::test]
async fn alerts_begin_are_held_told_taken_on_and_end() {
    let taken = |note: &str, at_s, until_s| TakenOn { by: "Ada".into(), note: note.into(), at_s, until_s };
    for_each_database(async |store| {
        failing_card(&store).await;
        let to = store.put_endpoint(&endpoint("team", Mode::Groups), Origin::Ui, NOON).await.unwrap();
        let id = store.put_route(&route("all"), &[to], Origin::Ui, NOON).await.unwrap();
        let from = store.begin_reading().await.unwrap();
        assert_eq!(store.begin_reading().await.unwrap(), from, "where it stood");
        let until = EventId(from.0 + 1);
        let changes =
            [begins(id, "finding:1"), begins(id, "reach:1"), begins(id, "rule:a2a/e:all"), begins(id, "webhook:1")];
        let throttled = [begins(id, "crawl:throttled:a.example")];
        assert!(store.take_events(from, from, &throttled, &[], NOON).await.unwrap());
        sqlx::query("UPDATE surface SET reach = 'throttled'").execute(store.writer()).await.unwrap();
        store.expire_alerts(NOON + 1).await.unwrap();
        assert_eq!(open(&store).await.len(), 1, "its host still asks to be left alone");
        sqlx::query("UPDATE surface SET reach = 'up'").execute(store.writer()).await.unwrap();
        store.expire_alerts(NOON + 1).await.unwrap();
        assert!(open(&store).await.is_empty());
        assert!(store.take_events(from, until, &changes, &[message("msg_1", &[to])], NOON).await.unwrap());
        assert!(!store.take_events(from, until, &changes, &[], NOON).await.unwrap(), "somebody else was faster");
        assert!(store.take_events(until, until, &changes[..1], &[], NOON).await.unwrap());
        assert_eq!(open(&store).await.len(), 4, "a key has one open alert on a route");
        store.expire_alerts(NOON + 1).await.unwrap();
        assert_eq!(open(&store).await.len(), 3, "the receiver accepts messages");
        store.expire_alerts(NOON + DAY).await.unwrap();
        assert_eq!(open(&store).await.len(), 2, "a jump is over after a day");

        let waiting = store.waiting_alerts(10).await.unwrap();
        assert_eq!(waiting.len(), 2);
        assert_eq!(store.waiting_alerts_of(id, AlertId(0), 9).await.unwrap(), waiting);
        assert_eq!(store.waiting_alerts_of(id, waiting[0].id, 9).await.unwrap(), waiting[1..]);
        assert_eq!(store.oldest_waiting().await.unwrap(), BTreeMap::from([(id, NOON)]));
        assert_eq!(store.open_alerts("finding:1").await.unwrap().len(), 1);
        assert_eq!(store.open_alerts_of(1).await.unwrap().len(), 2);
        assert!(store.open_alerts_of(2).await.unwrap().is_empty());
        assert_eq!(store.open_explanations("reach:1").await.unwrap(), [(id, "reach:1".to_owned())]);
        assert_eq!(store.alert(waiting[0].id).await.unwrap().unwrap().key, "finding:1");
        assert_eq!(store.alert(AlertId(99)).await.unwrap(), None);
        assert_eq!(store.bustle(id, NOON - 1, NOON).await.unwrap(), 5);
        assert_eq!(store.bustle(id, NOON - 1, NOON - 1).await.unwrap(), 0, "what is still to come is not counted");
        assert_eq!(store.targets_alerting(id, "a2a/e").await.unwrap(), 1);
        assert!(!waiting[0].is_host_throttled && !waiting[0].is_surface_down);

        let group = Group {
            id: store.next_group().await.unwrap(),
            route: id,
            by: ByWhat::Target,
            key: "tgt_1".to_owned(),
            opened_s: NOON,
            ended_s: None,
            due_s: Some(NOON + HOUR),
            told_s: Some(NOON),
            revision: 1,
            severity: Grade::Warning,
            firing: 1,
            resolved: 0,
            summary: "one alert".to_owned(),
        };
        let news = |group: &Group, is_new: bool, opens: &[AlertId], ends: &[AlertId], n: &str| GroupNews {
            group: group.clone(),
            is_new,
            opens: opens.to_vec(),
            ends: ends.to_vec(),
            why: opens.iter().map(|id| (*id, vec!["Told.".to_owned()])).collect(),
            messages: vec![Share {
                message: NewMessage {
                    group: Some(group.id.0),
                    event: None,
                    kind: "alert_group.opened".to_owned(),
                    ..message(n, &[to])
                },
                opens: opens.to_vec(),
                ends: ends.to_vec(),
            }],
            kind: EventKind::AlertGroupOpened,
            after_silences: Vec::new(),
        };
        let kept = Kept {
            alert: waiting[1].id,
            state: AlertState::Silenced,
            held_by: Some("silence:1".to_owned()),
            why: vec!["Silence 1.".to_owned()],
        };
        let first = news(&group, true, &[waiting[0].id], &[], "msg_2");
        assert!(store.tell_groups(std::slice::from_ref(&first), &[kept], NOON).await.unwrap());
        let again = news(&group, true, &[waiting[0].id], &[], "msg_2b");
        assert!(!store.tell_groups(&[again], &[], NOON).await.unwrap(), "somebody else has told of it");
        let next = Group { id: GroupId(group.id.0 + 1), key: "tgt_2".to_owned(), ..group.clone() };
        let again = news(&next, true, &[waiting[0].id], &[], "msg_2c");
        assert!(!store.tell_groups(&[again], &[], NOON).await.unwrap(), "the alert was told in another group");
        let late = news(&Group { revision: 3, ..group.clone() }, false, &[], &[], "msg_2d");
        assert!(!store.tell_groups(&[late], &[], NOON).await.unwrap(), "the group has moved");
        assert_eq!(store.open_counts().await.unwrap(), (1, 2), "and nothing of it was kept");
        assert_eq!(store.told_of(group.id).await.unwrap(), [to]);
        let each = store.told_each(group.id).await.unwrap();
        assert_eq!(each, BTreeMap::from([(to, BTreeSet::from([waiting[0].id]))]));
        assert_eq!(store.sent_lately(NOON - 1, NOON).await.unwrap(), BTreeMap::from([(to, 1)]));
        assert!(store.sent_lately(NOON, NOON + 9).await.unwrap().is_empty());
        assert_eq!(store.members(group.id).await.unwrap().len(), 1);
        assert_eq!(store.alert_group(group.id).await.unwrap().summary, "one alert");
        assert!(store.alert_group(GroupId(99)).await.is_err());
        assert_eq!(store.open_groups(10).await.unwrap().len(), 1);
        assert_eq!(store.open_counts().await.unwrap(), (1, 2));
        assert!(store.open_group(id, ByWhat::Target, "tgt_1").await.unwrap().is_some());
        assert!(store.due_groups(NOON).await.unwrap().is_empty());
        store.postpone_group(group.id, Some(NOON)).await.unwrap();
        assert_eq!(store.due_groups(NOON).await.unwrap().len(), 1);
        let waits = &store.waiting_alerts(10).await.unwrap()[0];
        assert_eq!((waits.held_by.as_deref(), waits.silenced_by), (Some("silence:1"), Some(1)));
        let hushed = |id, why: &str| Kept {
            alert: id,
            state: AlertState::Inhibited,
            held_by: Some("waiver:4".to_owned()),
            why: vec![why.to_owned()],
        };
        store.hush_alerts(&[hushed(waiting[0].id, "Accepted."), hushed(waiting[1].id, "Accepted.")]).await.unwrap();
        let told = store.alert(waiting[0].id).await.unwrap().unwrap();
        assert_eq!((told.held_by.as_deref(), told.state), (Some("waiver:4"), AlertState::Firing));
        assert_eq!(store.waiting_alerts(10).await.unwrap()[0].why, ["Silence 1."], "it was not told yet");

        assert!(store.acknowledge(waiting[0].id, &taken("mine", NOON, Some(NOON + 60))).await.unwrap());
        assert_eq!(store.end_acknowledgements(NOON).await.unwrap(), 0);
        let graver =
            AlertChange::Touch { alert: waiting[0].id, event: EventId(2), severity: Grade::Error, tells_again: true };
        assert!(store.take_events(until, until, &[graver], &[], NOON).await.unwrap());
        assert_eq!(store.alert(waiting[0].id).await.unwrap().unwrap().state, AlertState::Firing, "graver than it was");
        assert_eq!(store.taken_on(&[1]).await.unwrap()[&1].until_s, Some(NOON), "nor has anybody the finding");
        assert!(store.acknowledge(waiting[0].id, &taken("still mine", NOON, Some(NOON + 60))).await.unwrap());
        assert_eq!(store.taken_on_before(1, NOON).await.unwrap(), []);
        assert_eq!(store.taken_on_before(1, NOON + 1).await.unwrap().len(), 1);
        assert_eq!(store.taken_on_before(2, NOON + 1).await.unwrap(), []);
        assert_eq!(store.end_acknowledgements(NOON + 60).await.unwrap(), 1);
        let end = AlertChange::End { alert: waiting[0].id, event: EventId(3), how: EndedAs::Resolved, at_s: NOON + 70 };
        assert!(store.take_events(until, until, &[end], &[], NOON + 70).await.unwrap());
        assert!(!store.acknowledge(waiting[0].id, &taken("late", NOON + 70, None)).await.unwrap(), "it is over");
        let ended =
            Group { ended_s: Some(NOON + 70), due_s: None, revision: 2, firing: 0, resolved: 1, ..group.clone() };
        let last = news(&ended, false, &[], &[waiting[0].id], "msg_3");
        assert!(store.tell_groups(&[last], &[], NOON + 70).await.unwrap());
        let back = news(&Group { revision: 3, ..group.clone() }, false, &[], &[], "msg_3b");
        assert!(!store.tell_groups(&[back], &[], NOON + 71).await.unwrap(), "what is over does not begin again");
        assert_eq!(store.newest_alerts(i64::MAX, 10).await.unwrap().len(), 5);
        assert!(store.open_groups(10).await.unwrap().is_empty());
        store.remove_route(id, NOON + 80).await.unwrap();
        assert!(open(&store).await.is_empty(), "a route that is gone has no open alerts");
        assert_eq!(store.removed_route(id).await.unwrap().unwrap().is.slug, "all");
        assert_eq!(store.removed_route(RouteId(99)).await.unwrap(), None);
        let about: Vec<_> = store.events_after(EventId(0), 100).await.unwrap();
        for event in about {
            store.happened(event).await.unwrap();
        }
    })
    .await;
}

#[tokio::test]
async fn what_keeps_quiet_is_kept_filed_and_ended() {
    for_each_database(async |store| {
        let surface = failing_card(&store).await;
        let silence = Silence {
            id: 0,
            matcher: "owner:harbour".to_owned(),
            reason: "moving".to_owned(),
            author: "Ada".to_owned(),
            origin: Origin::Ui,
            created_s: NOON,
            starts_s: NOON,
            ends_s: NOON + HOUR,
            calm_s: Some(60),
            matched_s: None,
            ended_s: None,
            is_told: false,
        };
        let waiver = Waiver {
            id: 0,
            rule: "a2a/*".to_owned(),
            matcher: "kind:a2a-agent".to_owned(),
            reason: "old".to_owned(),
            author: "Ada".to_owned(),
            origin: Origin::Ui,
            created_s: NOON,
            ends_s: NOON + DAY,
            ended_s: None,
        };
        let window = Maintenance {
            id: 0,
            title: "Backups".to_owned(),
            matcher: "owner:harbour".to_owned(),
            author: "Ada".to_owned(),
            origin: Origin::Ui,
            zone: "UTC".to_owned(),
            starts_s: None,
            cron: Some("0 3 * * 0".to_owned()),
            duration_s: 3_600,
            created_s: NOON,
            ended_s: None,
        };
        let (s, w, m) = (
            store.add_silence(&silence).await.unwrap(),
            store.add_waiver(&waiver).await.unwrap(),
            store.add_maintenance(&window).await.unwrap(),
        );
        store.silences_matched(&[s], NOON + 1).await.unwrap();
        assert_eq!(store.silences(NOON).await.unwrap()[0].matched_s, Some(NOON + 1));
        assert_eq!(store.waiver(w).await.unwrap().unwrap().rule, "a2a/*");
        assert_eq!(store.waiver(99).await.unwrap(), None);

        let found = store.waivable("a2a/*", 0, 10).await.unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].facts.0["kind"], ["a2a-agent"]);
        assert_eq!(store.waivable("a2a/e", 0, 10).await.unwrap(), found);
        assert!(store.waivable("mcp/*", 0, 10).await.unwrap().is_empty());
        store.set_waivers(&BTreeMap::from([(found[0].id, Some(w))])).await.unwrap();
        assert_eq!(store.waived_findings().await.unwrap(), BTreeMap::from([(found[0].id, w)]));
        let waived: i64 = sqlx::query_scalar("SELECT n_waived FROM target").fetch_one(store.reader()).await.unwrap();
        let of_rule: i64 = sqlx::query_scalar("SELECT waived FROM rule_day WHERE cohort_id = 1 AND failing = 1")
            .fetch_one(store.reader())
            .await
            .unwrap();
        assert_eq!((waived, of_rule), (1, 1));
        store.count_cohorts(NOON + HOUR).await.unwrap();
        let of_rule: i64 = sqlx::query_scalar("SELECT waived FROM rule_day WHERE cohort_id = 1 AND failing = 1")
            .fetch_one(store.reader())
            .await
            .unwrap();
        assert_eq!(of_rule, 1, "counted from nothing it is the same");
        let rules = ruleset(&store).await;
        let mended = judged(rules, &[("a2a/e", 'P'), ("a2a/w", 'P')]);
        for at in [NOON + HOUR, NOON + 2 * HOUR, NOON + 3 * HOUR] {
            store.record(&[seen(surface, at, "{\"v\":2}", mended.clone())]).await.unwrap();
        }
        store.set_waivers(&BTreeMap::new()).await.unwrap();
        let waived: i64 = sqlx::query_scalar("SELECT n_waived FROM target").fetch_one(store.reader()).await.unwrap();
        assert_eq!(waived, 0, "what is over is waived no more");

        assert!(store.end_silence(s, NOON + 2).await.unwrap() && !store.end_silence(s, NOON + 3).await.unwrap());
        assert!(store.end_waiver(w, NOON + 2).await.unwrap() && store.waivers(NOON + 3).await.unwrap().is_empty());
        assert!(store.end_maintenance(m, NOON + 2).await.unwrap());

        let filed = Silence { origin: Origin::File, ..silence };
        let accepted = Waiver { origin: Origin::File, ..waiver };
        let planned = Maintenance { origin: Origin::File, ..window };
        let (silences, waivers, windows) =
            ([("pier".to_owned(), filed)], [("old".to_owned(), accepted)], [("backups".to_owned(), planned)]);
        for _ in 0..2 {
            store.file_quiet(&silences, &waivers, &windows, NOON + 3).await.unwrap();
        }
        let holds = |silences: &[Silence]| silences.iter().filter(|one| one.holds(NOON + 3)).count();
        assert_eq!(holds(&store.silences(NOON + 3).await.unwrap()), 1);
        assert_eq!(store.waivers(NOON + 3).await.unwrap().len(), 1);
        assert_eq!(store.maintenances(NOON + 3).await.unwrap().len(), 1);
        store.file_quiet(&[], &[], &[], NOON + 4).await.unwrap();
        assert_eq!(holds(&store.silences(NOON + 3).await.unwrap()), 0);
        assert!(store.waivers(NOON + 5).await.unwrap().is_empty());
        assert!(store.maintenances(NOON + 5).await.unwrap().is_empty());
    })
    .await;
}

#[tokio::test]
async fn findings_are_taken_on_with_the_alerts_about_them() {
    for_each_database(async |store| {
        let surface = failing_card(&store).await;
        let finding: i64 = sqlx::query_scalar("SELECT MIN(id) FROM finding WHERE surface_id = $1")
            .bind(surface.0)
            .fetch_one(store.reader())
            .await
            .unwrap();
        let taken =
            |note: &str, at_s: i64| TakenOn { by: "Ada".into(), note: note.into(), at_s, until_s: Some(at_s + HOUR) };
        assert_eq!(store.take_on(&[finding, 999], &taken("mine", NOON)).await.unwrap(), [finding], "what is there");
        assert_eq!(store.take_on(&[finding], &taken("still mine", NOON + 1)).await.unwrap(), [finding]);
        let found = store.taken_on(&[finding, 999]).await.unwrap();
        assert_eq!(found, HashMap::from([(finding, taken("still mine", NOON + 1))]));
        assert_eq!(store.not_of_owner(&[finding], "nobody").await.unwrap(), [finding]);
        assert!(store.not_of_owner(&[finding], "them").await.unwrap().is_empty());
    })
    .await;
}
