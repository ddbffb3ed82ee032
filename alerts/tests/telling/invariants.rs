//! Whatever happens in whatever order: who is told of a beginning is told of its end, once, and nobody else is.

use std::collections::HashMap;

use plumbline_alerts::matcher::Matcher;
use plumbline_alerts::payload;
use plumbline_alerts::pipeline::{self, Bustle, Decision, Quiet, ReadRoute};
use plumbline_store::alerting::{Alert, AlertChange, AlertState, Grade, Group, NewRoute, Route, Silence};
use plumbline_store::hooks::Origin;
use plumbline_store::words::EventKind;
use plumbline_store::{AlertId, EventId, GroupId, RouteId};
use proptest::prelude::*;

const NOW: i64 = 1_796_083_200;

#[derive(Debug, Clone, Copy)]
enum Step {
    Regress(u8),
    Resolve(u8),
    Flap(u8),
    Calm(u8, bool),
    Silence(bool),
    Acknowledge(u8),
    Wait(i64),
}

fn step() -> impl Strategy<Value = Step> {
    let finding = 0..30_u8;
    prop_oneof![
        4 => finding.clone().prop_map(Step::Regress),
        4 => finding.clone().prop_map(Step::Resolve),
        1 => finding.clone().prop_map(Step::Flap),
        1 => (finding.clone(), any::<bool>()).prop_map(|(n, open)| Step::Calm(n, open)),
        1 => any::<bool>().prop_map(Step::Silence),
        1 => finding.prop_map(Step::Acknowledge),
        4 => prop_oneof![Just(1), Just(30), Just(70), Just(1_000), Just(100_000), Just(-500)].prop_map(Step::Wait),
    ]
}

/// Alerts and groups in memory, changed as the store changes them.
struct Book {
    route: ReadRoute,
    alerts: Vec<Alert>,
    groups: Vec<Group>,
    quiet: Quiet,
    now_s: i64,
    events: i64,
    opened: HashMap<AlertId, u32>,
    ended: HashMap<AlertId, u32>,
    messages: u32,
    /// When those were sent that a storm counts.
    sent: Vec<i64>,
}

impl Book {
    fn new() -> Book {
        let is = NewRoute {
            slug: "all".to_owned(),
            title: "all".to_owned(),
            matcher: String::new(),
            min_severity: Grade::Warning,
            include_baseline: false,
            include_rule_changes: false,
            wait_s: 60,
            interval_s: 900,
            repeat_s: 86_400,
            quiet_hours: None,
        };
        let route = Route { id: RouteId(1), is, origin: Origin::Ui, endpoints: Vec::new() };
        Book {
            route: ReadRoute { route, matcher: Matcher::default(), quiet: None },
            alerts: Vec::new(),
            groups: Vec::new(),
            quiet: Quiet::default(),
            now_s: NOW,
            events: 0,
            opened: HashMap::new(),
            ended: HashMap::new(),
            messages: 0,
            sent: Vec::new(),
        }
    }

    fn event(&mut self, kind: EventKind, finding: u8, note: Option<&str>) {
        self.events += 1;
        let mut happened = plumbline_alerts::event_types::happened(kind);
        happened.deploy = None;
        happened.event.id = EventId(self.events);
        happened.event.at_s = self.now_s;
        happened.event.subject = Some(i64::from(finding));
        happened.event.note = note.map(ToOwned::to_owned);
        // Three findings a target.
        if let Some(target) = &mut happened.target {
            target.id = i64::from(finding / 3);
        }
        let facts = payload::facts(&happened);
        let key = format!("finding:{finding}");
        let open: Vec<Alert> = self.alerts.iter().filter(|a| a.key == key && a.ended_s.is_none()).cloned().collect();
        for change in pipeline::take(&happened, &facts, std::slice::from_ref(&self.route), &open) {
            self.apply(change);
        }
    }

    fn apply(&mut self, change: AlertChange) {
        match change {
            AlertChange::Begin(new) => self.alerts.push(Alert {
                id: AlertId(self.alerts.len() as i64 + 1),
                route: new.route,
                group: None,
                key: new.key,
                title: new.title,
                state: AlertState::Firing,
                severity: new.severity,
                target: new.target,
                target_key: None,
                surface: new.surface,
                rule: new.rule,
                facts: new.facts,
                why: new.why,
                by: new.by,
                opened_event: new.event,
                last_event: new.event,
                opened_s: new.at_s,
                notified_s: None,
                ended_s: None,
                ended_as: None,
                end_told_s: None,
                held_by: None,
                silenced_by: None,
                ack_by: None,
                ack_note: None,
                ack_until_s: None,
                is_surface_down: false,
                is_host_throttled: false,
                incident: None,
                looked_s: None,
            }),
            AlertChange::Touch { alert, severity, .. } => {
                let alert = self.alerts.iter_mut().find(|a| a.id == alert).unwrap();
                alert.severity = severity;
            }
            AlertChange::End { alert, how, at_s, .. } => {
                let now_s = self.now_s;
                let alert = self.alerts.iter_mut().find(|a| a.id == alert).unwrap();
                assert!(alert.ended_s.is_none(), "an alert ends once");
                (alert.ended_s, alert.ended_as, alert.state) = (Some(at_s), Some(how), AlertState::Resolved);
                let group = alert.group.filter(|_| alert.notified_s.is_some());
                for known in self.groups.iter_mut().filter(|g| Some(g.id) == group && g.ended_s.is_none()) {
                    known.due_s = Some(now_s);
                }
            }
        }
    }

    /// One look at what waits, as the teller makes it.
    fn look(&mut self) {
        let waiting: Vec<Alert> =
            self.alerts.iter().filter(|a| a.ended_s.is_none() && a.notified_s.is_none()).cloned().collect();
        let mut free = Vec::new();
        for alert in waiting {
            match pipeline::hold(&alert, &self.route, &self.quiet, self.now_s) {
                Some(kept) => {
                    let known = self.alerts.iter_mut().find(|a| a.id == kept.alert).unwrap();
                    (known.state, known.held_by, known.why) = (kept.state, kept.held_by, kept.why);
                }
                None => free.push(alert),
            }
        }
        let since = self.now_s - 900;
        let bustle = Bustle {
            opened: self.alerts.iter().filter(|a| a.opened_s > since).count() as i64,
            room: pipeline::MOST_IN_STORM - self.sent.iter().filter(|at_s| **at_s > since).count() as i64,
            by_rule: HashMap::new(),
            groups: self
                .groups
                .iter()
                .filter(|g| g.ended_s.is_none())
                .map(|g| ((g.by, g.key.clone()), g.clone()))
                .collect(),
        };
        let (batches, _) = pipeline::gather(&self.route.route, free, &bustle, self.now_s);
        let mut done = Vec::new();
        for batch in batches {
            let group = bustle.groups.get(&(batch.by, batch.key.clone())).cloned();
            done.extend(group.as_ref().map(|g| g.id));
            let next = GroupId(self.groups.len() as i64 + 1);
            self.tell(group.as_ref(), (next, batch.by, &batch.key), &batch.alerts);
        }
        let due: Vec<Group> = self
            .groups
            .iter()
            .filter(|g| {
                g.ended_s.is_none() && g.due_s.is_some_and(|due_s| due_s <= self.now_s) && !done.contains(&g.id)
            })
            .cloned()
            .collect();
        for group in due {
            self.tell(Some(&group), (group.id, group.by, &group.key), &[]);
        }
    }

    fn tell(
        &mut self,
        group: Option<&Group>,
        new: (GroupId, plumbline_store::alerting::ByWhat, &str),
        fresh: &[Alert],
    ) {
        let members: Vec<Alert> =
            group.map(|g| self.alerts.iter().filter(|a| a.group == Some(g.id)).cloned().collect()).unwrap_or_default();
        match pipeline::compose(&self.route, group, new, members, fresh, &self.quiet, self.now_s) {
            None => {}
            Some(Decision::Later(due_s) | Decision::Quiet(due_s, _)) => {
                let id = group.unwrap().id;
                self.groups.iter_mut().find(|g| g.id == id).unwrap().due_s = Some(due_s);
            }
            Some(Decision::Tell(telling)) => {
                self.messages += 1;
                if telling.kind != EventKind::AlertGroupResolved {
                    self.sent.push(self.now_s);
                }
                if telling.opens.is_empty() && telling.ends.is_empty() {
                    let is_free = |a: &Alert| {
                        a.state != AlertState::Acknowledged
                            && pipeline::hold(a, &self.route, &self.quiet, self.now_s).is_none()
                    };
                    assert!(telling.lists.iter().any(is_free), "what is kept quiet or taken on is not repeated");
                }
                for id in &telling.opens {
                    *self.opened.entry(*id).or_default() += 1;
                    let alert = self.alerts.iter_mut().find(|a| a.id == *id).unwrap();
                    assert!(alert.ended_s.is_none(), "what is over is not told as new");
                    (alert.group, alert.notified_s) = (Some(telling.group.id), Some(self.now_s));
                }
                for id in &telling.ends {
                    *self.ended.entry(*id).or_default() += 1;
                    self.alerts.iter_mut().find(|a| a.id == *id).unwrap().end_told_s = Some(self.now_s);
                }
                self.groups.retain(|g| g.id != telling.group.id);
                self.groups.push(telling.group);
            }
        }
    }

    fn silence(&mut self, is_on: bool) {
        let silence = Silence {
            id: 1,
            matcher: "family:a2a".to_owned(),
            reason: "work".to_owned(),
            author: "me".to_owned(),
            origin: Origin::Ui,
            created_s: 0,
            starts_s: 0,
            ends_s: i64::MAX,
            calm_s: None,
            matched_s: None,
            ended_s: None,
            is_told: false,
        };
        self.quiet.silences = if is_on { vec![(silence, Matcher::parse("family:a2a").unwrap())] } else { Vec::new() };
    }

    fn acknowledge(&mut self, finding: u8) {
        let key = format!("finding:{finding}");
        for alert in self.alerts.iter_mut().filter(|a| a.key == key && a.ended_s.is_none()) {
            alert.state = AlertState::Acknowledged;
        }
    }

    fn walk(&mut self, step: Step) {
        match step {
            Step::Regress(n) => self.event(EventKind::FindingRegressed, n, Some("again document")),
            Step::Resolve(n) => self.event(EventKind::FindingResolved, n, Some("fixed")),
            Step::Flap(n) => self.event(EventKind::FindingFlappingStarted, n, None),
            Step::Calm(n, open) => {
                self.event(EventKind::FindingFlappingStopped, n, Some(if open { "open" } else { "resolved" }));
            }
            Step::Silence(is_on) => self.silence(is_on),
            Step::Acknowledge(n) => self.acknowledge(n),
            Step::Wait(seconds) => self.now_s += seconds,
        }
        self.look();
    }

    /// Everything is over and time goes by.
    fn settle(&mut self) {
        self.silence(false);
        for n in 0..30 {
            self.event(EventKind::FindingResolved, n, Some("fixed"));
        }
        for _ in 0..6 {
            self.now_s += 1_000;
            self.look();
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn every_beginning_that_was_told_has_exactly_one_end_and_no_end_comes_without_it(
        steps in prop::collection::vec(step(), 1..120)
    ) {
        let mut book = Book::new();
        for step in steps {
            book.walk(step);
        }
        book.settle();
        for alert in &book.alerts {
            let opened = book.opened.get(&alert.id).copied().unwrap_or(0);
            let ended = book.ended.get(&alert.id).copied().unwrap_or(0);
            prop_assert!(opened <= 1, "{} was told {} times", alert.key, opened);
            prop_assert_eq!(opened, ended, "{}: told {}, its end {}", &alert.key, opened, ended);
        }
        for (at, alert) in book.alerts.iter().enumerate() {
            let overlaps = book.alerts[at + 1..].iter().any(|other| other.key == alert.key && other.opened_s < alert.ended_s.unwrap_or(i64::MAX) && alert.ended_s.is_none());
            prop_assert!(!overlaps, "{} has two open alerts", alert.key);
        }
        prop_assert!(book.groups.iter().all(|group| group.ended_s.is_some()), "every group ends");
    }

    #[test]
    fn a_restart_or_a_second_look_says_nothing_again(steps in prop::collection::vec(step(), 1..60)) {
        let mut book = Book::new();
        for step in steps {
            book.walk(step);
            // The end of a group lets what waited for it begin one of its own, in the next look.
            book.look();
            let before = book.messages;
            book.look();
            book.look();
            prop_assert_eq!(book.messages, before);
        }
    }
}
