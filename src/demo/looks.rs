//! What looking at the synthetic ecosystem gives: the agenda turned into observations that the store records, with the
//! quiet stretches between them.

use std::cmp::Reverse;
use std::collections::HashSet;

use plumbline_rules::canonical::{content_hash, semantic_hash};
use plumbline_rules::document::Document;
use plumbline_rules::judge::{self, Given, Origin, Subject, counts};
use plumbline_rules::reach::{Gate, Outcome};
use plumbline_rules::report::{self, Report};
use plumbline_rules::rule::{Impact, Severity};
use plumbline_rules::session::{Session, Surface};
use plumbline_rules::session_judge::judge_session;
use plumbline_rules::standing::self_description;
use plumbline_store::documents::Body;
use plumbline_store::judged::Judged;
use plumbline_store::reach::CALM_AFTER;
use plumbline_store::record::{BATCH, Observation, Served};
use plumbline_store::sources::CrawlCounts;
use plumbline_store::stretches::Stretch;
use plumbline_store::surfaces::Validators;
use plumbline_store::targets::{HostName, Link};
use plumbline_store::words::{Headline, Role};
use plumbline_store::{CrawlId, DocumentId, RulesetId, SurfaceId};

use super::documents::{self, Form};
use super::world::{Act, DAY_S, FAILURES, Face, Present, World};

/// The rules as they were for a while.
#[derive(Debug, Clone)]
pub struct Release {
    /// Their number in the database.
    pub ruleset: RulesetId,
    /// Rules that were not there yet.
    pub missing: HashSet<&'static str>,
}

/// Looks that are recorded together: first the quiet stretches before them, then the looks.
#[derive(Debug, Default)]
pub struct Chunk {
    /// Deploys that pipelines tell of.
    pub markers: Vec<Told>,
    pub stretches: Vec<Stretch>,
    pub observations: Vec<Observation>,
}

/// A deploy as the pipeline of a target tells of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    /// The key of the target.
    pub key: String,
    pub at_s: i64,
    pub version: String,
    /// How many there were before.
    pub run: u32,
}

/// Who looks, and with which rules.
pub struct Observer {
    pub world: World,
    pub judging: judge::Settings,
    pub release: Release,
    /// The round that is under way.
    pub round: Option<CrawlId>,
    /// The present document of surfaces that are entries of a list.
    pub listed: std::collections::HashMap<u32, DocumentId>,
    /// Entries that another version came for since the last walk.
    pub moved: Vec<u32>,
    /// Targets that left since the last walk.
    pub left: Vec<u32>,
    /// Looks in it that are recorded one by one.
    pub looked: i64,
    /// What pipelines told since the last look.
    pub told: Vec<Told>,
}

/// One look that is about to be made.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Usual,
    Verifying,
}

impl Observer {
    /// Lives through everything up to a moment and hands over what was seen, in order. Ends early when nobody takes it.
    pub fn live(&mut self, until_s: i64, mut give: impl FnMut(Chunk) -> bool) {
        let mut chunk = Chunk::default();
        let mut inside = HashSet::new();
        while let Some(Reverse((at_s, face, act))) = self.world.agenda.peek().copied() {
            if at_s >= until_s {
                break;
            }
            self.world.agenda.pop();
            let before = self.world.faces[face as usize].present;
            let way = self.happen(at_s, face, act);
            chunk.markers.append(&mut self.told);
            let Some(way) = way else { continue };
            let Some(id) = self.world.faces[face as usize].id else { continue };
            // Until now it answered as before.
            let now = std::mem::replace(&mut self.world.faces[face as usize].present, before);
            let quiet = self.quiet(face, at_s);
            self.world.faces[face as usize].present = now;
            if !quiet.is_empty() && inside.contains(&face) || chunk.observations.len() >= BATCH {
                inside.clear();
                if !give(std::mem::take(&mut chunk)) {
                    return;
                }
            }
            chunk.stretches.extend(quiet);
            if act == Act::Leave {
                // An entry is over with the walk that finds it deleted.
                let face = &mut self.world.faces[face as usize];
                face.is_over = face.form != Form::ServerJson;
            } else {
                chunk.observations.push(self.look(face, SurfaceId(id), at_s, way));
                inside.insert(face);
            }
        }
        give(chunk);
    }

    /// What a moment changes. `None`: nobody looks.
    fn happen(&mut self, at_s: i64, n: u32, act: Act) -> Option<Way> {
        let (seed, year) = (self.world.extent.seed, self.world.share(at_s, 0.0, 1.0));
        let later = |world: &mut World, after_s: i64, act: Act| world.agenda.push(Reverse((at_s + after_s, n, act)));
        let face = &mut self.world.faces[n as usize];
        if face.is_over {
            return None;
        }
        let is_listed = face.form == Form::ServerJson;
        let is_up = face.present == Present::Up;
        match act {
            Act::Deploy | Act::Mend(_) | Act::Flip(_) | Act::Migrate => {
                match act {
                    Act::Mend(bit) if face.faults & (1 << bit) == 0 => return None,
                    Act::Mend(bit) => face.mend(bit),
                    Act::Flip(bit) => face.faults ^= 1 << bit,
                    Act::Migrate => {
                        face.form = Form::Card;
                        face.mend(31);
                    }
                    _ => {
                        if let Some(bit) = face.deploy(at_s, year, seed).filter(|bit| (at_s + i64::from(*bit)) % 3 != 0)
                        {
                            let days = super::dice::Dice::of(seed, at_s as u64).magnitude(0.1, 12.0);
                            later(&mut self.world, (days * DAY_S as f64) as i64, Act::Mend(bit));
                        }
                    }
                }
                if is_listed {
                    self.moved.push(n);
                    return None;
                }
                if self.world.faces[n as usize].last_s.is_none() || !is_up {
                    return None;
                }
                if act == Act::Deploy {
                    self.tell(at_s, n);
                }
                self.verify(at_s, n);
                Some(Way::Usual)
            }
            Act::Fail(how, long_s) => {
                if !is_up || face.last_s.is_none() {
                    return None;
                }
                let outcome = FAILURES[usize::from(how)];
                face.present = Present::Failing(outcome, long_s);
                let long_s = i64::from(long_s);
                let is_absent = matches!(outcome, Outcome::Absent(_));
                let third_day = if is_absent { 60 + 3 * DAY_S } else { 900 };
                let month = is_absent.then_some(60 + 30 * DAY_S);
                let looks = [60, 300, 900, CALM_AFTER, third_day].into_iter().chain(month);
                for after_s in looks.filter(|after_s| *after_s < long_s) {
                    later(&mut self.world, after_s, Act::FailAgain);
                }
                if long_s < i64::from(u32::MAX) {
                    later(&mut self.world, long_s, Act::Back);
                }
                Some(Way::Usual)
            }
            Act::FailAgain => (!is_up).then_some(Way::Verifying),
            Act::Back => {
                if is_up {
                    return None;
                }
                face.present = Present::Up;
                self.verify(at_s, n);
                // What came and went too often is called calm by the first look after so long: that one is no quiet look.
                self.world.agenda.push(Reverse((at_s + CALM_AFTER, n, Act::Look)));
                Some(Way::Usual)
            }
            Act::Again => (is_up && face.last_s.is_some()).then_some(Way::Verifying),
            Act::Look => is_up.then_some(Way::Usual),
            Act::Leave => {
                let thing = face.thing;
                let faces = self.world.things[thing as usize].faces.clone();
                if faces.first() == Some(&n) {
                    self.left.push(thing);
                    for face in
                        faces.into_iter().skip(1).filter(|face| self.world.faces[*face as usize].form != Form::Issuer)
                    {
                        self.world.agenda.push(Reverse((at_s, face, Act::Leave)));
                    }
                }
                Some(Way::Usual)
            }
        }
    }

    /// The operator's own targets have pipelines that tell of a deploy.
    fn tell(&mut self, at_s: i64, n: u32) {
        let face = &self.world.faces[n as usize];
        let thing = &self.world.things[face.thing as usize];
        if thing.is_own {
            let (key, version) = (thing.key.clone(), face.version());
            self.told.push(Told { key, at_s, version, run: face.edition });
        }
    }

    /// What moved is looked at again, soon.
    fn verify(&mut self, at_s: i64, n: u32) {
        let is_endpoint = self.world.faces[n as usize].form == Form::Endpoint;
        for after_s in [60, 300].into_iter().take(if is_endpoint { 2 } else { 1 }) {
            self.world.agenda.push(Reverse((at_s + after_s, n, Act::Again)));
        }
    }

    /// The looks since the last one that came out as it did, up to a moment.
    pub fn quiet(&mut self, n: u32, until_s: i64) -> Vec<Stretch> {
        let face = &self.world.faces[n as usize];
        let (Some(id), Some(last_s)) = (face.id, face.last_s) else { return Vec::new() };
        if face.form == Form::ServerJson {
            return Vec::new();
        }
        let (every_s, mut from_s) = (face.every_s, last_s + face.every_s);
        let mut stretches = Vec::new();
        let is_ours = |at_s: i64| self.world.gaps.iter().find(|(from, to)| (*from..*to).contains(&at_s)).copied();
        while from_s < until_s {
            let gap = is_ours(from_s);
            let end_s = match gap {
                Some((_, to)) => to,
                None => self.world.gaps.iter().map(|(from, _)| *from).find(|from| *from >= from_s).unwrap_or(i64::MAX),
            };
            let looks = (end_s.min(until_s) - from_s + every_s - 1) / every_s;
            stretches.push(stretch(face, SurfaceId(id), from_s, looks, gap.is_some()));
            from_s += looks * every_s;
        }
        if let Some(stretch) = stretches.last() {
            self.world.faces[n as usize].last_s = Some(stretch.first_s + (stretch.looks - 1) * every_s);
        }
        stretches
    }

    fn look(&mut self, n: u32, surface: SurfaceId, at_s: i64, way: Way) -> Observation {
        self.world.faces[n as usize].last_s = Some(at_s);
        self.looked += 1;
        if self.world.faces[n as usize].form == Form::ServerJson {
            self.world.show(self.world.faces[n as usize].thing);
        }
        let face = &self.world.faces[n as usize];
        let mut seen = Observation {
            surface,
            crawl: self.round,
            at_s,
            outcome: Outcome::Ok,
            status: Some(200),
            took_ms: u32::from(face.took_ms),
            is_verification: way == Way::Verifying,
            witness_good: true,
            served: Served::Nothing,
            declared_version: None,
            name: None,
            summary: None,
            validators: None,
            judged: None,
            fires_on_old: None,
            place: None,
            session: None,
            standing: None,
            links: None,
            next_due_s: None,
            every_s: Some(face.every_s),
        };
        match face.present {
            Present::Failing(outcome, _) => {
                seen.outcome = outcome;
                seen.status = status(outcome);
                seen.took_ms = if seen.status.is_some() { seen.took_ms } else { 10_000 };
            }
            Present::Up if face.form == Form::Endpoint => self.endpoint(n, &mut seen),
            Present::Up => self.document(n, &mut seen),
        }
        seen
    }

    fn document(&self, n: u32, seen: &mut Observation) {
        let face = &self.world.faces[n as usize];
        let version = face.version();
        let served = self.world.served(face, &version);
        let bytes = documents::bytes(&served);
        let document = Document::read(&bytes);
        let given = Given { url: Some(face.url.clone()), ..Given::default() };
        let origin = Origin::PublicHost;
        let subject =
            Subject { kind: face.form.kind(), version: None, origin, given: &given, session: None, answer: None };
        let report = judge::judge(&document, &subject, &self.judging);
        let context = content_hash(format!("{:?} {:?}", face.form.kind(), face.url).as_bytes());
        seen.judged = Some(self.judged(&report, context));
        seen.declared_version = Some(version.clone());
        seen.name = Some(served.name.to_owned());
        let semantic = document.root().map(semantic_hash);
        match self.listed.get(&n) {
            Some(document) => {
                seen.served = Served::Kept(*document);
                seen.links = Some(self.links(face));
                seen.status = None;
                seen.took_ms = 0;
            }
            None => {
                let tag = plumbline_rules::canonical::hex(&content_hash(&bytes)[..6]);
                seen.validators = Some(Validators { etag: Some(format!("\"{tag}\"")), last_modified: None });
                seen.served = Served::Body(Body::new(bytes, semantic, Some("application/json".to_owned())));
            }
        }
    }

    fn endpoint(&self, n: u32, seen: &mut Observation) {
        let face = &self.world.faces[n as usize];
        let version = face.version();
        let served = self.world.served(face, &version);
        let session = if face.is_gated { documents::refusal(&served) } else { documents::conversation(&served) };
        let given = Given { listed: true, ..Given::default() };
        let report = judge_session(&session, Surface::Mcp, None, &given, &self.judging);
        if face.is_gated {
            seen.outcome = Outcome::Gated(Gate::Auth);
            seen.status = Some(401);
        }
        let live: Vec<String> =
            report.results.iter().map(|result| format!("{} {:?}", result.rule.id, result.outcome)).collect();
        let context = content_hash(live.join("\n").as_bytes());
        seen.judged = Some(Judged { is_complete: report.has_document, ..self.judged(&report, context) });
        if let Some(described) = self_description(&session) {
            let text = described.to_string();
            let semantic = Document::from_text(&text).root().map(semantic_hash);
            seen.served = Served::Body(Body::new(text.into_bytes(), semantic, Some("application/json".to_owned())));
            seen.declared_version = Some(version.clone());
        }
        seen.session = kept(session);
    }

    /// What the rules of the time said: those that were not there yet said nothing.
    fn judged(&self, report: &Report, context: [u8; 32]) -> Judged {
        let mut judged = Judged::of(report, self.release.ruleset, context);
        if self.release.missing.is_empty() {
            return judged;
        }
        judged.outcomes.retain(|outcome| !self.release.missing.contains(outcome.rule.as_ref()));
        if matches!(judged.headline, Headline::Sound | Headline::Deviates | Headline::Blocked) {
            judged.headline = headline(report, &self.release.missing);
        }
        judged
    }

    /// What an entry of a registry leads to.
    fn links(&self, entry: &Face) -> Vec<Link> {
        let link = |face: &u32| {
            let face = &self.world.faces[*face as usize];
            let name = face.url.split('/').nth(2).unwrap_or_default();
            let domain = plumbline_rules::text::registrable_domain(name).unwrap_or_else(|| name.to_owned());
            let role = if face.form == Form::Endpoint { Role::Endpoint } else { Role::Metadata };
            let host = Some(HostName { name: name.to_owned(), domain });
            Link { kind: face.form.surface(), url: face.url.clone(), role, host }
        };
        self.world.things[entry.thing as usize].faces[1..].iter().map(link).collect()
    }

    /// Everything that is watched is looked at again, over some hours: the rules have changed.
    pub fn judge_again(&mut self, from_s: i64) {
        let watched = (0_u32..).zip(&self.world.faces).filter(|(_, face)| face.last_s.is_some() && !face.is_over);
        let again: Vec<_> = watched
            .map(|(n, _)| Reverse((from_s + i64::from(n.wrapping_mul(2_654_435_761) >> 18), n, Act::Look)))
            .collect();
        self.world.agenda.extend(again);
    }

    /// What the looks of a round that changed nothing come to, as far as that can be told from who is there.
    pub fn usual_counts(&self, from_s: i64, to_s: i64) -> CrawlCounts {
        let mut counts = CrawlCounts::default();
        let is_ours = self.world.gaps.iter().any(|(from, to)| *from < to_s && *to > from_s);
        for face in self.world.faces.iter().filter(|face| face.last_s.is_some() && !face.is_over) {
            if face.form == Form::ServerJson {
                continue;
            }
            let looks = (to_s - from_s) / face.every_s;
            counts.planned += looks;
            counts.done += looks;
            match face.present {
                Present::Up if face.is_gated => counts.gated += looks,
                Present::Up => counts.ok += looks,
                Present::Failing(Outcome::Absent(_), _) => counts.absent += looks,
                Present::Failing(Outcome::Throttled, _) => counts.throttled += looks,
                Present::Failing(..) => counts.unreachable += looks,
            }
        }
        if is_ours {
            counts.faults += counts.ok / 3;
            counts.ok -= counts.ok / 3;
        }
        counts.judged = counts.ok + counts.gated;
        counts
    }
}

/// The word of a report without the rules that were not there yet.
fn headline(report: &Report, missing: &HashSet<&'static str>) -> Headline {
    let accusing = report.results.iter().filter(|result| counts(result.rule) && !result.rule.guess);
    let found: Vec<&report::Occurrence> = accusing
        .filter(|result| !missing.contains(result.rule.id))
        .filter_map(|result| match &result.outcome {
            report::Outcome::Fires(found) => Some(found),
            _ => None,
        })
        .flatten()
        .collect();
    if found.iter().any(|place| place.impact == Some(Impact::BreaksClients)) {
        Headline::Blocked
    } else if found.iter().any(|place| place.severity == Severity::Error) {
        Headline::Deviates
    } else {
        Headline::Sound
    }
}

fn stretch(face: &Face, surface: SurfaceId, first_s: i64, looks: i64, is_ours: bool) -> Stretch {
    let outcome = match face.present {
        _ if is_ours => Outcome::CrawlerFault,
        Present::Up if face.is_gated => Outcome::Gated(Gate::Auth),
        Present::Up => Outcome::Ok,
        Present::Failing(outcome, _) => outcome,
    };
    let status = match outcome {
        Outcome::Ok => Some(if face.form == Form::Endpoint { 200 } else { 304 }),
        other => status(other),
    };
    Stretch {
        surface,
        first_s,
        every_s: face.every_s,
        looks,
        outcome,
        status,
        took_ms: if status.is_some() { face.took_ms } else { 10_000 },
        judged: outcome.is_up(),
        next_due_s: None,
    }
}

fn status(outcome: Outcome) -> Option<u16> {
    use plumbline_rules::reach::Unreachable::Http5xx;
    match outcome {
        Outcome::Ok => Some(200),
        Outcome::Gated(_) => Some(401),
        Outcome::Absent(status) => Some(status.unwrap_or(404)),
        Outcome::Unreachable(Http5xx) => Some(503),
        Outcome::Throttled => Some(429),
        Outcome::Unreachable(_) | Outcome::Skipped(_) | Outcome::CrawlerFault => None,
    }
}

/// The conversation for the record.
fn kept(session: Session) -> Option<Vec<u8>> {
    serde_json::to_vec(&session.masked()).ok()
}

#[cfg(test)]
mod tests {
    use super::super::world::Extent;
    use super::*;

    const START_S: i64 = 1_700_000_000;

    /// An observer of a small world in which nothing is planned and everything was looked at once.
    fn calm() -> Observer {
        let extent = Extent { targets: 80, seed: 4, start_s: START_S, end_s: START_S + 5 * DAY_S };
        let mut world = World::new(extent);
        world.agenda.clear();
        world.gaps.clear();
        for (id, face) in (1..).zip(&mut world.faces) {
            (face.id, face.last_s) = (Some(id), Some(START_S));
        }
        Observer {
            world,
            judging: judge::Settings::default(),
            release: Release { ruleset: RulesetId(1), missing: HashSet::new() },
            round: None,
            listed: std::collections::HashMap::new(),
            moved: Vec::new(),
            left: Vec::new(),
            looked: 0,
            told: Vec::new(),
        }
    }

    #[test]
    fn the_pipeline_of_an_own_target_tells_of_its_deploy_and_others_do_not() {
        for is_own in [true, false] {
            let mut observer = calm();
            let face = (0_u32..).zip(&observer.world.faces).find(|(_, face)| face.form == Form::Card).unwrap().0;
            let thing = observer.world.faces[face as usize].thing as usize;
            observer.world.things[thing].is_own = is_own;
            observer.world.agenda.push(Reverse((START_S + 1800, face, Act::Deploy)));
            let mut told = Vec::new();
            observer.live(START_S + DAY_S, |chunk| {
                told.extend(chunk.markers);
                true
            });
            let key = observer.world.things[thing].key.clone();
            let version = observer.world.faces[face as usize].version();
            let expected = Told { key, at_s: START_S + 1800, version, run: 1 };
            assert_eq!(told, if is_own { vec![expected] } else { vec![] });
        }
    }

    #[test]
    fn what_answers_again_is_looked_at_when_its_coming_and_going_is_forgotten() {
        let mut observer = calm();
        let face = (0_u32..).zip(&observer.world.faces).find(|(_, face)| face.form == Form::Card).unwrap().0;
        let backs: Vec<i64> = (0..4).map(|n| START_S + 1800 + n * 3000).collect();
        for back_s in &backs {
            observer.world.agenda.push(Reverse((back_s - 1200, face, Act::Fail(1, 1200))));
        }
        let mut looks = Vec::new();
        observer.live(START_S + 2 * DAY_S, |chunk| {
            looks.extend(chunk.observations.iter().map(|seen| (seen.at_s, seen.outcome.is_up())));
            true
        });
        for back_s in backs {
            assert!(looks.contains(&(back_s, true)), "it is looked at when it answers again");
            assert!(looks.contains(&(back_s + CALM_AFTER, true)), "and when that is {CALM_AFTER} seconds ago");
        }
    }
}
