//! Turns events into messages: reads what happened, asks the pipeline, keeps what it decided.
//!
//! Two transactions and no third: events, alerts and messages for programs with the cursor; groups and messages for people.
//! A kill between the two, or before either, loses nothing: the cursor says where to go on, and an alert that was not told
//! is still waiting.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use plumbline_store::alerting::{Alert, ByWhat, Group, GroupNews, Kept, READER, Share};
use plumbline_store::happened::{Facts, Happened};
use plumbline_store::hooks::{Endpoint, EndpointState, Mode, NewMessage};
use plumbline_store::words::EventKind;
use plumbline_store::{AlertId, EndpointId, Error, EventId, GroupId, Store};
use serde_json::Value;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::courier::Clock;
use crate::digest;
use crate::formats::Format;
use crate::matcher::{Matcher, wants_type};
use crate::message_id::Ids;
use crate::payload::{self, Source};
use crate::pipeline::{self, Bustle, Decision, Effect, Part, Quiet, ReadRoute, Telling};
use crate::{waiving, working};

/// Events read at a time.
const BATCH: u32 = 500;

/// Deliveries that one transaction adds, or a few more: fifty receivers of a thousand events would hold the database for seconds,
/// and the first message with it.
const MOST_DELIVERIES: usize = 500;

/// How often events are looked for. With the courier's own look this is most of the way from an event to its first byte.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// How often what waits is looked at when no event came.
const REVIEW_S: i64 = 5;

/// Alerts of a route that nothing holds, looked at in one go; a storm of more is told in the next.
const MOST_WAITING: usize = 20_000;

/// Alerts that wait, read at a time.
const SOME_WAITING: i64 = 5_000;

/// Open alerts that are compared with a silence, at most.
pub(crate) const MOST_OPEN: i64 = 20_000;

/// How long messages and their log are kept, in seconds; dead ones too.
const KEEP_S: i64 = 30 * 86_400;
/// How often old messages are let go.
const SWEEP_S: i64 = 3600;

/// How often findings are brought to the waivers in force, and surfaces to planned work; a page that makes one does not wait
/// for it.
const WAIVE_S: i64 = 60;

/// Turns events into messages.
#[derive(Clone)]
pub struct Teller {
    /// Where everything is kept.
    pub store: Store,
    /// Where this installation is reached.
    pub source: Source,
    /// The clock.
    pub clock: Clock,
    /// Rung when messages came.
    pub bell: Arc<Notify>,
    /// Gives messages their ids.
    pub ids: Arc<Ids>,
}

/// What came of one transaction's events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Taken {
    /// The last of them.
    pub until: EventId,
    /// Messages for programs.
    pub messages: usize,
}

/// A receiver of events with its matcher read.
struct Subscriber {
    endpoint: Endpoint,
    matcher: Matcher,
}

impl Teller {
    /// Ids that go on from those in the store.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn ids(store: &Store) -> Result<Arc<Ids>, Error> {
        Ok(Arc::new(Ids::after(store.newest_message().await?.as_deref())))
    }

    /// Tells until told to stop.
    pub async fn run(self, stop: CancellationToken) {
        let (mut reviewed_s, mut swept_s, mut waived_s) = (0, 0, 0);
        while !stop.is_cancelled() {
            match self.once(&mut reviewed_s).await {
                Ok(true) => self.bell.notify_one(),
                Ok(false) => {}
                Err(error) if error.may_pass() => tracing::warn!("events are told later: {error}"),
                Err(error) => tracing::error!("events cannot be told: {error}"),
            }
            if (self.now_s() - swept_s).abs() >= SWEEP_S {
                swept_s = self.now_s();
                if let Err(error) = self.forget().await {
                    tracing::warn!("old messages are let go later: {error}");
                }
            }
            if (self.now_s() - waived_s).abs() >= WAIVE_S {
                waived_s = self.now_s();
                if let Err(error) = waiving::apply(&self.store, waived_s).await {
                    tracing::warn!("waivers are brought to findings later: {error}");
                }
                if let Err(error) = self.end_calm_silences().await {
                    tracing::warn!("silences that have grown calm are ended later: {error}");
                }
                if let Err(error) = working::apply(&self.store, waived_s).await {
                    tracing::warn!("planned work is brought to surfaces later: {error}");
                }
            }
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
        }
    }

    /// One look: events, and what waits when its time has come. Gives whether anything was told.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn once(&self, reviewed_s: &mut i64) -> Result<bool, Error> {
        let (read, told) = self.events().await?;
        let now_s = self.now_s();
        let is_time = (now_s - *reviewed_s).abs() >= REVIEW_S;
        if !read && !is_time {
            return Ok(told);
        }
        *reviewed_s = now_s;
        self.store.end_acknowledgements(now_s).await?;
        self.store.expire_alerts(now_s).await?;
        let groups = self.groups().await?;
        let digests = digest::send_due(self).await?;
        Ok(told || groups || digests)
    }

    /// Lets go of messages that are old.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn forget(&self) -> Result<u64, Error> {
        self.store.forget_messages(self.now_s() - KEEP_S).await
    }

    pub(crate) fn now_s(&self) -> i64 {
        (self.clock)().div_euclid(1000)
    }

    /// Reads every event that came. Gives whether there were any, and whether a message came of them.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn events(&self) -> Result<(bool, bool), Error> {
        let mut from = self.store.begin_reading().await?;
        let (mut read, mut told) = (false, false);
        while let Some(taken) = self.some_events(from).await? {
            if taken.messages > 0 {
                // The first may leave while the rest is read.
                self.bell.notify_one();
            }
            told |= taken.messages > 0;
            read = true;
            from = taken.until;
        }
        Ok((read, told))
    }

    /// Reads as many of the events after one as make a good transaction. `None`: there are none, or another process reads them.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn some_events(&self, from: EventId) -> Result<Option<Taken>, Error> {
        let events = self.store.events_after(from, BATCH).await?;
        let Some(last) = events.last() else { return Ok(None) };
        let to = last.id;
        let routes = self.routes().await?;
        let subscribers = self.subscribers().await?;
        let (mut changes, mut messages) = (Vec::new(), Vec::new());
        let mut deliveries = 0;
        // Alerts that an event of this batch began or ended are not in the database yet: a key that comes again waits
        // for the next batch.
        let (mut seen, mut until) = (HashSet::new(), to);
        for event in events {
            let (id, kind) = (event.id, event.kind);
            if !is_wanted(kind, &subscribers, !routes.is_empty()) {
                continue;
            }
            let happened = self.store.happened(event).await?;
            let effect = if routes.is_empty() { None } else { pipeline::effect(&happened) };
            // Most deploys meet nothing that somebody took on.
            let reminded = match &effect {
                Some((_, Effect::Reminds)) => self.taken_on_before(&happened).await?,
                _ => Vec::new(),
            };
            let effect = effect.filter(|(_, effect)| *effect != Effect::Reminds || !reminded.is_empty());
            if let Some((key, effect)) = &effect {
                let key = match (effect, &happened.target) {
                    (Effect::EndsTarget | Effect::Reminds, Some(target)) => format!("target:{}", target.id),
                    _ => key.clone(),
                };
                let is_of_target = matches!(effect, Effect::EndsTarget | Effect::Reminds);
                let is_second = seen.contains(&key) || (is_of_target && !seen.is_empty());
                if is_second {
                    until = EventId(id.0 - 1);
                    break;
                }
                seen.insert(key);
            }
            let facts = payload::facts(&happened);
            if let Some((key, effect)) = effect {
                let open = match (effect, &happened.target) {
                    (Effect::EndsTarget, Some(target)) => self.store.open_alerts_of(target.id).await?,
                    (Effect::Reminds, _) => reminded,
                    _ => self.store.open_alerts(&key).await?,
                };
                changes.extend(pipeline::take(&happened, &facts, &routes, &open));
            }
            let to = wanting(&subscribers, &happened, &facts);
            deliveries += to.len();
            if !to.is_empty() {
                let data = payload::event_data(&happened, &self.source);
                messages.push(NewMessage {
                    id: self.ids.next((self.clock)()),
                    kind: kind.as_str().to_owned(),
                    event: Some(id.0),
                    group: None,
                    at_s: happened.event.at_s,
                    body: payload::body(kind.as_str(), happened.event.at_s, &self.source, &data),
                    to,
                });
            }
            if deliveries >= MOST_DELIVERIES {
                until = id;
                break;
            }
        }
        if !self.store.take_events(from, until, &changes, &messages, self.now_s()).await? {
            tracing::warn!("another process tells events of this database; it goes on");
            return Ok(None);
        }
        Ok(Some(Taken { until, messages: messages.len() }))
    }

    /// What somebody had taken on when a target was deployed.
    async fn taken_on_before(&self, happened: &Happened) -> Result<Vec<Alert>, Error> {
        let (Some(target), Some(deploy)) = (&happened.target, &happened.deploy) else { return Ok(Vec::new()) };
        self.store.taken_on_before(target.id, deploy.at_s).await
    }

    /// Tells what waits, and what a group has to say again. Gives whether a message came of it.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn groups(&self) -> Result<bool, Error> {
        let now_s = self.now_s();
        let routes = self.routes().await?;
        let waiting = self.store.oldest_waiting().await?;
        let due = self.store.due_groups(now_s).await?;
        if waiting.is_empty() && due.is_empty() {
            return Ok(false);
        }
        let mut session = Session {
            quiet: self.quiet(now_s).await?,
            endpoints: self.store.endpoints().await?,
            next: self.store.next_group().await?,
            news: Vec::new(),
            kept: Vec::new(),
            hushed: Vec::new(),
            later: Vec::new(),
            alive: Vec::new(),
            sent: BTreeMap::new(),
            lately: HashMap::new(),
        };
        // Whoever has waited longest comes first: in a storm there is not room for all.
        let mut routes: Vec<&ReadRoute> = routes.iter().collect();
        routes.sort_by_key(|route| waiting.get(&route.route.id).copied().unwrap_or(i64::MAX));
        for route in &routes {
            let free = match waiting.contains_key(&route.route.id) {
                true => self.free(route, &mut session, now_s).await?,
                false => Vec::new(),
            };
            let due: Vec<&Group> = due.iter().filter(|group| group.route == route.route.id).collect();
            self.route(route, free, &due, &mut session, now_s).await?;
        }
        for group in due.iter().filter(|group| !routes.iter().any(|route| route.route.id == group.route)) {
            self.tell_removed(group, &mut session, now_s).await?;
        }
        session.kept.retain(|kept| !session.news.iter().any(|one| one.opens.contains(&kept.alert)));
        self.note_matches(&session, now_s).await?;
        if !session.hushed.is_empty() {
            self.store.hush_alerts(&session.hushed).await?;
        }
        for (group, due_s) in &session.later {
            self.store.postpone_group(*group, *due_s).await?;
        }
        for message in &session.alive {
            self.store.queue_message(message, now_s).await?;
        }
        let told = !session.alive.is_empty() || session.news.iter().any(|one| !one.messages.is_empty());
        if session.news.is_empty() && session.kept.is_empty() {
            return Ok(told);
        }
        if !self.store.tell_groups(&session.news, &session.kept, now_s).await? {
            tracing::warn!("alerts have moved while they were told; they are looked at again");
            return Ok(false);
        }
        Ok(told)
    }

    /// What waits on a route and nothing holds. What is held is read past, however much of it there is.
    async fn free(&self, route: &ReadRoute, session: &mut Session, now_s: i64) -> Result<Vec<Alert>, Error> {
        let (mut free, mut after) = (Vec::new(), AlertId(0));
        loop {
            let some = self.store.waiting_alerts_of(route.route.id, after, SOME_WAITING).await?;
            let Some(last) = some.last() else { return Ok(free) };
            after = last.id;
            for alert in some {
                match pipeline::hold(&alert, route, &session.quiet, now_s) {
                    Some(kept) if kept.held_by == alert.held_by && kept.why == alert.why => {}
                    Some(kept) => session.kept.push(kept),
                    None => free.push(alert),
                }
            }
            if free.len() >= MOST_WAITING {
                return Ok(free);
            }
        }
    }

    /// One route: what is told together, what is told again.
    async fn route(
        &self,
        route: &ReadRoute,
        free: Vec<Alert>,
        due: &[&Group],
        session: &mut Session,
        now_s: i64,
    ) -> Result<(), Error> {
        let bustle = self.bustle(route, &free, session, now_s).await?;
        let (batches, kept) = pipeline::gather(&route.route, free.clone(), &bustle, now_s);
        let news = kept.into_iter().filter(|kept| {
            free.iter().all(|alert| alert.id != kept.alert || alert.why != kept.why || alert.held_by != kept.held_by)
        });
        session.kept.extend(news);
        let mut done = HashSet::new();
        for batch in batches {
            let group = bustle.groups.get(&(batch.by, batch.key.clone()));
            if let Some(group) = group {
                done.insert(group.id);
            }
            let new = (session.next, batch.by, batch.key.as_str());
            let look = self.look(route, group, new, batch.alerts, session, now_s).await?;
            self.decide(route, look, session, now_s);
        }
        let mut again = Vec::new();
        for group in due.iter().filter(|group| !done.contains(&group.id)) {
            let new = (group.id, group.by, group.key.as_str());
            again.push(self.look(route, Some(group), new, Vec::new(), session, now_s).await?);
        }
        let changes = again.iter().filter(|look| look.is_update(true)).count();
        let is_storm = pipeline::is_storm(&bustle, changes);
        if is_storm {
            self.count_sent(route, session, now_s).await?;
            // Whoever was told longest ago comes first: none waits for ever.
            again.sort_by_key(|look| look.told_s);
        }
        for look in again {
            let is_room = !is_storm || !look.is_update(false) || room(route, session) > 0;
            let later = Decision::Later(now_s + route.route.is.interval_s.max(1));
            let look = if is_room { look } else { Look { decision: Some(later), ..look } };
            self.decide(route, look, session, now_s);
        }
        Ok(())
    }

    /// A group of a route that was taken away: whoever was told of it is told that it is over.
    async fn tell_removed(&self, group: &Group, session: &mut Session, now_s: i64) -> Result<(), Error> {
        let Some(route) = self.store.removed_route(group.route).await? else {
            session.later.push((group.id, None));
            return Ok(());
        };
        let route = ReadRoute { route, matcher: Matcher::default(), quiet: None };
        let new = (group.id, group.by, group.key.as_str());
        let mut look = self.look(&route, Some(group), new, Vec::new(), session, now_s).await?;
        if let Some(Decision::Tell(telling)) = &mut look.decision {
            let said = &mut telling.group.summary;
            *said = payload::cut(&format!("{said}; the route {} was removed", route.route.is.slug), 300);
        }
        self.decide(&route, look, session, now_s);
        Ok(())
    }

    /// Reads a group and composes what is said of it.
    async fn look(
        &self,
        route: &ReadRoute,
        group: Option<&Group>,
        new: (GroupId, ByWhat, &str),
        fresh: Vec<Alert>,
        session: &Session,
        now_s: i64,
    ) -> Result<Look, Error> {
        let (members, told) = match group {
            Some(group) => (self.store.members(group.id).await?, self.store.told_each(group.id).await?),
            None => (Vec::new(), BTreeMap::new()),
        };
        let holding: Vec<Alert> = members.iter().filter(|alert| alert.ended_s.is_none()).cloned().collect();
        let after = after_silences(fresh.iter().chain(&holding), &session.quiet, now_s);
        let decision = pipeline::compose(route, group, new, members, &fresh, &session.quiet, now_s);
        let told_s = group.and_then(|group| group.told_s);
        let mut look = Look { group: group.map(|group| group.id), told_s, told, after, decision, alive: None };
        if let (Some(Decision::Quiet(..)), Some(group)) = (&look.decision, group) {
            look.alive = self.alive(route, group, &holding, &look.told, &session.endpoints, now_s).await?;
        }
        Ok(look)
    }

    /// What receivers are sent of a group that is kept quiet: those that take silence for an end.
    async fn alive(
        &self,
        route: &ReadRoute,
        group: &Group,
        holding: &[Alert],
        told: &BTreeMap<EndpointId, BTreeSet<AlertId>>,
        endpoints: &[Endpoint],
        now_s: i64,
    ) -> Result<Option<NewMessage>, Error> {
        let mut to = Vec::new();
        for endpoint in endpoints {
            let takes_silence_for_an_end = endpoint.is.format.parse() == Ok(Format::Alertmanager);
            if !takes_silence_for_an_end || !told.contains_key(&endpoint.id) {
                continue;
            }
            let last_s = self.store.last_about(group.id, endpoint.id).await?;
            if last_s.is_none_or(|last_s| last_s + route.route.is.repeat_s <= now_s) {
                to.push(endpoint.id);
            }
        }
        if to.is_empty() {
            return Ok(None);
        }
        let lists: Vec<&Alert> = holding.iter().collect();
        let data = payload::group_data(&route.route.is, group, &lists, &[], &self.source);
        Ok(Some(self.message(EventKind::AlertGroupUpdated, group.id, &data, to, now_s)))
    }

    fn decide(&self, route: &ReadRoute, look: Look, session: &mut Session, now_s: i64) {
        session.alive.extend(look.alive);
        match look.decision {
            None => {}
            Some(Decision::Quiet(due_s, kept)) => {
                session.hushed.extend(kept);
                session.later.extend(look.group.map(|group| (group, Some(due_s))));
            }
            Some(Decision::Later(due_s)) => session.later.extend(look.group.map(|group| (group, Some(due_s)))),
            Some(Decision::Tell(telling)) => {
                if telling.is_new {
                    session.next = GroupId(session.next.0 + 1);
                }
                let hears = hearers(route, &telling, &look.told, &session.endpoints);
                let parts = pipeline::parts(&telling, &look.told, &hears);
                for part in parts.iter().filter(|part| part.kind != EventKind::AlertGroupResolved) {
                    for to in &part.to {
                        *session.sent.entry(*to).or_default() += 1;
                    }
                }
                session.news.push(self.news(route, &telling, &parts, &look.after, now_s));
            }
        }
    }

    fn news(
        &self,
        route: &ReadRoute,
        telling: &Telling,
        parts: &[Part],
        after: &[(i64, String)],
        now_s: i64,
    ) -> GroupNews {
        let told = if parts.is_empty() {
            "Told to nobody: the route leads to no receiver.".to_owned()
        } else {
            format!("Told in group {} at {}.", telling.group.id, payload::rfc3339(now_s))
        };
        let is_first = |alert: &&Alert| {
            let is_late = alert.why.iter().any(|said| said.starts_with("Told to nobody"));
            telling.opens.contains(&alert.id) || is_late && parts.iter().any(|part| part.opens.contains(&alert.id))
        };
        let why = |alert: &Alert| {
            if is_first(&alert) {
                return Some((alert.id, alert.why.iter().take(1).cloned().chain([told.clone()]).collect()));
            }
            telling.freed.contains(&alert.id).then(|| (alert.id, pipeline::told_so_far(alert)))
        };
        GroupNews {
            messages: parts.iter().map(|part| self.share(route, telling, part, after, now_s)).collect(),
            group: telling.group.clone(),
            is_new: telling.is_new,
            opens: telling.opens.clone(),
            ends: telling.ends.clone(),
            why: telling.lists.iter().filter_map(why).collect(),
            kind: telling.kind,
            after_silences: after.iter().map(|(id, _)| *id).collect(),
        }
    }

    fn message(&self, kind: EventKind, group: GroupId, data: &Value, to: Vec<EndpointId>, now_s: i64) -> NewMessage {
        let kind = kind.as_str();
        NewMessage {
            id: self.ids.next((self.clock)()),
            kind: kind.to_owned(),
            event: None,
            group: Some(group.0),
            at_s: now_s,
            body: payload::body(kind, now_s, &self.source, data),
            to,
        }
    }

    fn share(&self, route: &ReadRoute, telling: &Telling, part: &Part, after: &[(i64, String)], now_s: i64) -> Share {
        let lists: Vec<&Alert> = part.lists.iter().collect();
        let said: Vec<String> = after.iter().map(|(_, said)| said.clone()).collect();
        let data = payload::group_data(&route.route.is, &telling.group, &lists, &said, &self.source);
        let message = self.message(part.kind, telling.group.id, &data, part.to.clone(), now_s);
        Share { message, opens: part.opens.clone(), ends: part.ends.clone() }
    }

    async fn routes(&self) -> Result<Vec<ReadRoute>, Error> {
        let mut read = Vec::new();
        for route in self.store.routes().await? {
            match Matcher::parse(&route.is.matcher) {
                Ok(matcher) => {
                    let quiet = route.is.quiet_hours.as_deref().and_then(|text| serde_json::from_str(text).ok());
                    read.push(ReadRoute { route, matcher, quiet });
                }
                Err(error) => tracing::error!("route {}: {error}", route.is.slug),
            }
        }
        Ok(read)
    }

    async fn subscribers(&self) -> Result<Vec<Subscriber>, Error> {
        let mut read = Vec::new();
        for endpoint in self.store.endpoints().await? {
            if endpoint.is.mode != Mode::Events || endpoint.state == EndpointState::Disabled {
                continue;
            }
            match Matcher::parse(&endpoint.is.matcher) {
                Ok(matcher) => read.push(Subscriber { endpoint, matcher }),
                Err(error) => tracing::error!("webhook {}: {error}", endpoint.is.slug),
            }
        }
        Ok(read)
    }

    async fn quiet(&self, now_s: i64) -> Result<Quiet, Error> {
        let mut quiet = Quiet::default();
        for silence in self.store.silences(now_s).await? {
            let matcher = Matcher::parse(&silence.matcher).unwrap_or_default();
            // A silence that cannot be read any more must not silence everything.
            if !matcher.is_empty() {
                quiet.silences.push((silence, matcher));
            }
        }
        for window in self.store.maintenances(now_s).await? {
            let matcher = Matcher::parse(&window.matcher).unwrap_or_default();
            if !matcher.is_empty() {
                quiet.maintenances.push((window, matcher));
            }
        }
        for waiver in self.store.waivers(now_s).await? {
            let matcher = Matcher::parse(&waiver.matcher).unwrap_or_default();
            if !matcher.is_empty() {
                quiet.waivers.push((waiver, matcher));
            }
        }
        for (route, key) in self.store.open_explanations(pipeline::WITNESS).await? {
            match key.strip_prefix("incident:").and_then(|incident| incident.parse().ok()) {
                Some(incident) => quiet.incidents.insert((route.0, incident)),
                None => quiet.degraded.insert(route.0),
            };
        }
        Ok(quiet)
    }

    async fn bustle(
        &self,
        route: &ReadRoute,
        free: &[Alert],
        session: &mut Session,
        now_s: i64,
    ) -> Result<Bustle, Error> {
        let id = route.route.id;
        let opened = self.store.bustle(id, now_s - route.route.is.interval_s, now_s).await?;
        let mut bustle = Bustle { opened, ..Bustle::default() };
        if free.is_empty() {
            return Ok(bustle);
        }
        if pipeline::is_storm(&bustle, free.len()) {
            self.count_sent(route, session, now_s).await?;
            bustle.room = room(route, session);
        }
        let rules: BTreeSet<&String> = free.iter().filter_map(|alert| alert.rule.as_ref()).collect();
        let mut keys: BTreeSet<(ByWhat, String)> = free.iter().map(|alert| alert.by.clone()).collect();
        for rule in rules {
            bustle.by_rule.insert(rule.clone(), self.store.targets_alerting(id, rule).await?);
            keys.insert((ByWhat::Rule, rule.clone()));
        }
        keys.insert((ByWhat::Storm, "storm".to_owned()));
        for (by, key) in keys {
            if let Some(group) = self.store.open_group(id, by, &key).await? {
                bustle.groups.insert((by, key), group);
            }
        }
        Ok(bustle)
    }

    /// Counts what every receiver was sent within the interval of a route.
    async fn count_sent(&self, route: &ReadRoute, session: &mut Session, now_s: i64) -> Result<(), Error> {
        let interval_s = route.route.is.interval_s;
        if let Entry::Vacant(unknown) = session.lately.entry(interval_s) {
            unknown.insert(self.store.sent_lately(now_s - interval_s, now_s).await?);
        }
        Ok(())
    }

    /// Notes which silences matched.
    async fn note_matches(&self, session: &Session, now_s: i64) -> Result<(), Error> {
        let matched: BTreeSet<i64> = session.kept.iter().chain(&session.hushed).filter_map(Kept::silence).collect();
        if !matched.is_empty() {
            self.store.silences_matched(&matched.into_iter().collect::<Vec<i64>>(), now_s).await?;
        }
        Ok(())
    }

    /// Ends silences that nothing has matched for as long as they say, also while nothing is told: what begins later is not
    /// theirs. Alerts that were told before are compared with silences only when their group is due, so an open one that a
    /// silence covers is a match all the same.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn end_calm_silences(&self) -> Result<(), Error> {
        let now_s = self.now_s();
        let silences = self.quiet(now_s).await?.silences;
        let calm = pipeline::calm_silences(&silences, now_s);
        if calm.is_empty() {
            return Ok(());
        }
        let open = self.store.all_open_alerts(MOST_OPEN).await?;
        for (silence, matcher) in silences.iter().filter(|(silence, _)| calm.contains(&silence.id)) {
            if open.iter().any(|alert| matcher.matches(&alert.facts)) {
                self.store.silences_matched(&[silence.id], now_s).await?;
            } else {
                self.store.end_silence(silence.id, now_s).await?;
            }
        }
        Ok(())
    }

    /// How far events were told.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn cursor(&self) -> Result<EventId, Error> {
        self.store.event_cursor(READER).await
    }
}

/// What one look at what waits gathers.
struct Session {
    quiet: Quiet,
    endpoints: Vec<Endpoint>,
    next: GroupId,
    news: Vec<GroupNews>,
    kept: Vec<Kept>,
    /// Alerts that were told and are not repeated.
    hushed: Vec<Kept>,
    later: Vec<(GroupId, Option<i64>)>,
    /// Messages about groups that are kept quiet.
    alive: Vec<NewMessage>,
    /// Messages that this look sends each receiver, ends of groups left out.
    sent: BTreeMap<EndpointId, i64>,
    /// What they were sent before it, by the interval that counts.
    lately: HashMap<i64, BTreeMap<EndpointId, i64>>,
}

/// What is to be said of one group, or of one that is about to be.
struct Look {
    group: Option<GroupId>,
    told_s: Option<i64>,
    /// Who was told of which of its members.
    told: BTreeMap<EndpointId, BTreeSet<AlertId>>,
    /// Silences that are over, and what is said of them.
    after: Vec<(i64, String)>,
    decision: Option<Decision>,
    /// What is sent although it is kept quiet.
    alive: Option<NewMessage>,
}

impl Look {
    /// Whether it goes on and is told of again; of `changes` only those that are not mere repeats.
    fn is_update(&self, changes: bool) -> bool {
        let Some(Decision::Tell(telling)) = &self.decision else { return false };
        telling.kind == EventKind::AlertGroupUpdated && !(changes && telling.ends.is_empty())
    }
}

/// Messages that the busiest receiver of a route may still be sent in a storm.
fn room(route: &ReadRoute, session: &Session) -> i64 {
    let lately = session.lately.get(&route.route.is.interval_s);
    let sent = |to: &EndpointId| {
        let before = lately.and_then(|lately| lately.get(to)).copied().unwrap_or(0);
        before + session.sent.get(to).copied().unwrap_or(0)
    };
    pipeline::MOST_IN_STORM - route.route.endpoints.iter().map(sent).max().unwrap_or(0)
}

/// Whether anybody could want an event of that kind: most events of a first crawl are for nobody.
fn is_wanted(kind: EventKind, subscribers: &[Subscriber], has_routes: bool) -> bool {
    (has_routes && pipeline::is_heard(kind))
        || subscribers.iter().any(|one| wants_type(&one.endpoint.is.types, kind.as_str()))
}

/// Who is sent an event. What is said about a receiver goes to the others, and groups go by their own way.
fn wanting(subscribers: &[Subscriber], happened: &Happened, facts: &Facts) -> Vec<EndpointId> {
    let kind = happened.event.kind;
    if matches!(
        kind,
        EventKind::AlertGroupOpened | EventKind::AlertGroupUpdated | EventKind::AlertGroupResolved | EventKind::Ping
    ) {
        return Vec::new();
    }
    let is_about = |id: EndpointId| kind.as_str().starts_with("webhook.") && happened.event.subject == Some(id.0);
    subscribers
        .iter()
        .filter(|one| {
            let is = &one.endpoint.is;
            wants_type(&is.types, kind.as_str())
                && (is.include_baseline || !payload::is_baseline(happened))
                && one.matcher.matches(facts)
                && !is_about(one.endpoint.id)
        })
        .map(|one| one.endpoint.id)
        .collect()
}

/// Who hears of what is new in a group: where its route leads, less a receiver that it is about, less pagers for what wakes
/// nobody, unless they were told of the group already.
fn hearers(
    route: &ReadRoute,
    telling: &Telling,
    told: &BTreeMap<EndpointId, BTreeSet<AlertId>>,
    endpoints: &[Endpoint],
) -> Vec<EndpointId> {
    let is_about = |id: EndpointId| telling.lists.iter().all(|alert| alert.key == format!("webhook:{id}"));
    let is_quiet = telling.group.severity == plumbline_store::alerting::Grade::Info;
    let is_fit = |id: &EndpointId| {
        let endpoint = endpoints.iter().find(|endpoint| endpoint.id == *id);
        endpoint.is_some_and(|endpoint| {
            let is_pager = endpoint.is.format.parse().is_ok_and(Format::is_pager);
            let is_woken = !(is_pager && is_quiet) || told.contains_key(id);
            endpoint.state != EndpointState::Disabled && is_woken && !is_about(*id)
        })
    };
    route.route.endpoints.iter().copied().filter(is_fit).collect()
}

/// Silences that had kept these alerts and are over, each with a sentence; each says so once.
fn after_silences<'a>(alerts: impl Iterator<Item = &'a Alert>, quiet: &Quiet, now_s: i64) -> Vec<(i64, String)> {
    let held: BTreeSet<i64> = alerts.filter_map(|alert| alert.silenced_by).collect();
    quiet
        .silences
        .iter()
        .filter(|(silence, _)| held.contains(&silence.id) && !silence.is_told && !silence.holds(now_s))
        .map(|(silence, _)| {
            let said = format!("the silence of {} has ended: {}", silence.author, payload::cut(&silence.reason, 200));
            (silence.id, said)
        })
        .collect()
}
