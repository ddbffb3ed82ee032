//! Recording observations: one transaction for a batch, in which history, findings, events and numbers move together.
//!
//! Reach and judgement are two axes. Every observation moves the first; only one that carries a judgement can move the
//! second, and then only for the rules that were judged. Killing the process loses what was in flight and nothing else.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use plumbline_rules::reach::Outcome;
use plumbline_rules::standing::Standing;
use sqlx::any::AnyRow;
use sqlx::{AssertSqlSafe, Row};

use crate::Store;
use crate::ahead::{Ahead, Packed};
use crate::deploys::{self, Changes};
use crate::dialect::{Table, Writing};
use crate::documents::{self, Body};
use crate::error::{Error, Result};
use crate::events::{self, News};
use crate::facts;
use crate::findings::{self, Occasion};
use crate::ids::{CrawlId, DocumentId, EvalId, RulesetId, SurfaceId};
use crate::incidents::{self, Down};
use crate::judged::{self, Earlier, Judged, Kept};
use crate::machine::Signal;
use crate::planned::{self, Work};
use crate::probes::{self, Probe};
use crate::reach::{self, OutcomeClass, Reach, ReachNews};
use crate::rows::{
    Bits, DAY_S, clean_or_none, context_key, count, in_statements, pack, places, shortened, word, word_or_none,
};
use crate::rulesets::Catalogue;
use crate::sources::{self, CrawlCounts};
use crate::surfaces::Validators;
use crate::targets::{self, Counts, Face, Link, TargetRow};
use crate::trends::Trends;
use crate::verify::{self, Episode, Plan};
use crate::volatile;
use crate::words::{EventKind, Headline, Known, ReachState, Role, SurfaceKind};

/// Observations that make one good batch.
pub const BATCH: usize = 500;
/// Targets that one surface tells a deploy of: an address that hundreds of names share is nobody's own.
const MOST_DEPLOYS: usize = 20;
/// A recorded conversation of more bytes is not kept: cut JSON is no JSON.
pub const LONGEST_SESSION: usize = 4 << 20;

/// One look at one surface.
#[derive(Debug, Clone, PartialEq)]
pub struct Observation {
    /// What was looked at.
    pub surface: SurfaceId,
    /// In which crawl.
    pub crawl: Option<CrawlId>,
    /// When.
    pub at_s: i64,
    /// What came of it.
    pub outcome: Outcome,
    /// The HTTP status of the last answer.
    pub status: Option<u16>,
    /// How long it took.
    pub took_ms: u32,
    /// It was made to confirm a change.
    pub is_verification: bool,
    /// Others could be reached meanwhile, so a silence is theirs.
    pub witness_good: bool,
    /// The document it gave.
    pub served: Served,
    /// What the document calls its own version.
    pub declared_version: Option<String>,
    /// What the document calls itself; used for targets whose own document it is.
    pub name: Option<String>,
    /// What the document says it is for.
    pub summary: Option<String>,
    /// Validators that came with a 200; kept as they are on a 304.
    pub validators: Option<Validators>,
    /// What the rules said; `None`: nothing could be judged.
    pub judged: Option<Judged>,
    /// Rules as they are now that fire on the document as it was at the last evaluation, where somebody judged that;
    /// it tells a change of rules from a change of theirs.
    pub fires_on_old: Option<Vec<String>>,
    /// The recorded conversation as JSON.
    pub session: Option<Vec<u8>>,
    /// What it shows about an endpoint as a whole; `None`: it is none, or this look showed nothing.
    pub standing: Option<Standing>,
    /// The surfaces that the document leads to, where it was read for them; `None` leaves those that are known.
    pub links: Option<Vec<Link>>,
    /// When the surface is due next; `None` takes it off the schedule.
    pub next_due_s: Option<i64>,
    /// Seconds between two regular looks at it; `None` leaves what is known.
    pub every_s: Option<i64>,
    /// Where the answer came from; `None`: there was none, or nobody looked.
    pub place: Option<Place>,
}

/// Where an answer came from, as far as that may change by itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Place {
    /// The address that was connected to, without its port.
    pub address: Option<String>,
    /// Issuer and end of the certificate that was shown.
    pub certificate: Option<String>,
    /// The hash of that certificate, in hexadecimal digits.
    pub leaf: Option<String>,
    /// The `Server` header.
    pub server: Option<String>,
}

/// The document an observation gave.
#[derive(Debug, Clone, PartialEq)]
pub enum Served {
    /// None.
    Nothing,
    /// The one it gave last (304, or the same bytes).
    Unchanged,
    /// One that is already kept, such as an entry of a registry's list.
    Kept(DocumentId),
    /// These bytes.
    Body(Body),
}

/// What a batch changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Recorded {
    /// Observations.
    pub observations: usize,
    /// Findings that opened, first looks included.
    pub opened: i64,
    /// Of these: regressions.
    pub regressed: i64,
    /// Findings that are over.
    pub resolved: i64,
    /// Observations whose failure was our own.
    pub faults: usize,
    /// Surfaces that serve another document.
    pub documents_changed: usize,
    /// Surfaces that documents lead to and that nobody knew: they are due at once.
    pub linked: usize,
    /// Looks out of turn that were planned to confirm a change.
    pub verifications: u64,
}

/// A surface before an observation.
#[derive(Debug, Clone)]
pub(crate) struct Before {
    kind: SurfaceKind,
    host: Option<i64>,
    paused: bool,
    place: Place,
    document: Option<i64>,
    /// The hash of that document, where its bytes are kept.
    document_hash: Option<Vec<u8>>,
    eval: Option<i64>,
    judged: Bits,
    profile: Option<String>,
    known: Option<Known>,
    headline: Headline,
    headline_since_s: Option<i64>,
    reach: Reach,
    reach_probes: i64,
    counts: Counts,
    evaluations: i64,
    first_evaluated_s: Option<i64>,
    last_evaluated_s: Option<i64>,
    last_ok_s: Option<i64>,
    last_attempt_s: Option<i64>,
    /// Facts that wait to be confirmed.
    facts_waiting: i64,
    validators: Validators,
    retired: bool,
    verifying: Option<Episode>,
    /// The last judgement, with the semantic hash of its document.
    evaluated: Option<(Earlier, Option<Vec<u8>>)>,
}

/// The same after it, as far as it moved.
struct After {
    document: Option<i64>,
    document_changed: bool,
    /// What was served is kept with its bytes, or none were served.
    body_is_kept: bool,
    eval: Option<i64>,
    judged: Bits,
    profile: Option<String>,
    known: Option<Known>,
    headline: Headline,
    counts: Counts,
    evaluations: i64,
    first_evaluated_s: Option<i64>,
    last_evaluated_s: Option<i64>,
    facts_waiting: i64,
    /// The findings moved, so a recorded conversation proves something.
    findings_moved: bool,
    /// Another look would settle something; `None`: nothing was judged, so nobody knows.
    is_unconfirmed: Option<bool>,
    /// The judgement, with the semantic hash of its document; `None`: nothing was judged.
    evaluated: Option<(Earlier, Option<Vec<u8>>)>,
}

/// What a batch gathers to write once at its end.
#[derive(Default)]
struct Batch {
    trends: Trends,
    /// A moment of the day that these are of; 0: of none yet.
    day_s: i64,
    crawls: BTreeMap<i64, CrawlCounts>,
    recorded: Recorded,
    /// Looks out of turn that may still be planned.
    room: u64,
    /// Incidents whose members changed.
    incidents: BTreeSet<i64>,
    ahead: Ahead,
    packed: Packed,
    /// Planned work on the surfaces.
    works: Vec<Work>,
    /// Surfaces that nobody works on any more.
    done: Vec<i64>,
}

impl Store {
    /// Records a batch of observations, at most about [`BATCH`] of them, in one transaction: all or none. What is not
    /// confirmed waits for the next regular look.
    ///
    /// # Errors
    /// When a surface or rule is unknown, or the database fails.
    pub async fn record(&self, observations: &[Observation]) -> Result<Recorded> {
        self.record_and_verify(observations, 0).await
    }

    /// The same; at most `room` surfaces of which something is not confirmed are made due earlier, to look again out of
    /// turn. How many were is told in [`Recorded::verifications`].
    ///
    /// # Errors
    /// When a surface or rule is unknown, or the database fails.
    pub async fn record_and_verify(&self, observations: &[Observation], room: u64) -> Result<Recorded> {
        if observations.is_empty() {
            return Ok(Recorded::default());
        }
        let catalogue = self.present_catalogue().await?;
        let mut w = self.pools.write().await?;
        let recorded = all(&mut w, &catalogue, observations, room).await?;
        w.commit().await?;
        Ok(recorded)
    }

    /// Remembers what the rules say of a document that no surface serves now, such as an older version in a registry or
    /// the document before the present one.
    ///
    /// # Errors
    /// When a rule is unknown, or the database fails.
    pub async fn remember(&self, document: DocumentId, judged: &Judged, now_s: i64) -> Result<EvalId> {
        let catalogue = self.present_catalogue().await?;
        let mut w = self.pools.write().await?;
        let kept = judged::keep(&mut w, &catalogue, Some(document.0), None, judged, now_s).await?;
        w.commit().await?;
        Ok(EvalId(kept.eval))
    }

    /// Kept documents of listings that these rules have not judged yet, from one number on, in the order of their numbers.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn unjudged_listings(&self, ruleset: RulesetId, from: DocumentId, limit: u32) -> Result<Vec<DocumentId>> {
        let rows = sqlx::query(
            "SELECT document.id
             FROM document
             WHERE document.id >= $2
               AND EXISTS (SELECT 1 FROM listing WHERE listing.document_id = document.id)
               AND NOT EXISTS (SELECT 1 FROM eval WHERE eval.document_id = document.id AND eval.ruleset_id = $1)
             ORDER BY document.id
             LIMIT $3",
        )
        .bind(ruleset.0)
        .bind(from.0)
        .bind(i64::from(limit))
        .fetch_all(&self.pools.reader)
        .await?;
        rows.iter().map(|row| Ok(DocumentId(row.try_get(0)?))).collect()
    }

    /// The catalogue, read again if another process has stored rules that this one has not seen.
    pub(crate) async fn present_catalogue(&self) -> Result<Arc<Catalogue>> {
        let row = sqlx::query("SELECT (SELECT COUNT(*) FROM rule), (SELECT COUNT(*) FROM ruleset)")
            .fetch_one(&self.pools.reader)
            .await?;
        let catalogue = self.catalogue();
        if catalogue.size() == (row.try_get(0)?, row.try_get(1)?) { Ok(catalogue) } else { self.read_catalogue().await }
    }
}

/// Records a batch of observations.
pub(crate) async fn all(
    w: &mut Writing,
    catalogue: &Catalogue,
    observations: &[Observation],
    room: u64,
) -> Result<Recorded> {
    let Some(now_s) = observations.iter().map(|observation| observation.at_s).max() else {
        return Ok(Recorded::default());
    };
    let mut batch = Batch { room, ..Batch::default() };
    batch.read_ahead(w, observations).await?;
    for observation in observations {
        observe(w, &mut batch, catalogue, observation).await?;
    }
    for (crawl, counts) in &batch.crawls {
        sources::add_counts(w, *crawl, counts).await?;
    }
    let day_s = if batch.day_s == 0 { now_s } else { batch.day_s };
    batch.trends.write(w, day_s).await?;
    batch.packed.write(w).await?;
    let_go(w, &batch.done).await?;
    incidents::tell_grown(w, &batch.incidents, now_s).await?;
    Ok(batch.recorded)
}

impl Batch {
    /// What happens from here on happens on the day of that moment: numbers stand on the day of their events.
    async fn turn_to(&mut self, w: &mut Writing, at_s: i64) -> Result<()> {
        if self.day_s != 0 && self.day_s / DAY_S != at_s / DAY_S {
            std::mem::take(&mut self.trends).write(w, self.day_s).await?;
        }
        self.day_s = at_s;
        Ok(())
    }

    /// Reads what the looks will ask for, many surfaces with one statement.
    async fn read_ahead(&mut self, w: &mut Writing, observations: &[Observation]) -> Result<()> {
        let surfaces: BTreeSet<i64> = observations.iter().map(|seen| seen.surface.0).collect();
        let surfaces: Vec<i64> = surfaces.into_iter().collect();
        self.ahead.read(w, &surfaces).await?;
        self.works = planned::read(w, &surfaces).await?;
        let days = observations.iter().map(|seen| seen.at_s / DAY_S);
        let (Some(first), Some(last)) = (days.clone().min(), days.max()) else { return Ok(()) };
        self.packed.read(w, &surfaces, first, last).await
    }
}

/// The leases of surfaces that were looked at end.
async fn let_go(w: &mut Writing, surfaces: &[i64]) -> Result<()> {
    for some in in_statements(surfaces) {
        let statement = format!("DELETE FROM lease WHERE kind = 'surface' AND subject_id IN {}", places(1, some.len()));
        let delete = some.iter().fold(sqlx::query(AssertSqlSafe(statement)), |delete, id| delete.bind(*id));
        delete.execute(w.on()).await?;
    }
    Ok(())
}

async fn observe(w: &mut Writing, batch: &mut Batch, catalogue: &Catalogue, seen: &Observation) -> Result<()> {
    let mut before = batch.ahead.surface(w, seen.surface).await?;
    batch.turn_to(w, seen.at_s.max(before.last_attempt_s.unwrap_or(seen.at_s))).await?;
    if seen.outcome.is_up() && !reach::is_answering(before.reach.state) {
        // An answer, and nothing less, brings back what was put away for its silence.
        let at_s = seen.at_s.max(before.last_attempt_s.unwrap_or(seen.at_s));
        if targets::welcome(w, &mut batch.trends, seen.surface.0, at_s).await? {
            batch.ahead.forget();
            before = batch.ahead.surface(w, seen.surface).await?;
        }
    }
    if before.retired {
        // It left its sources while the request was under way, or nothing has been there for a month.
        still_nothing(w, seen).await?;
        batch.done.push(seen.surface.0);
        return Ok(());
    }
    // A clock that was set back must not make spans that end before they begin.
    let at_s = seen.at_s.max(before.last_attempt_s.unwrap_or(seen.at_s));
    let targets = batch.ahead.showing(w, seen.surface.0).await?;
    let first_target = targets.first().map(|target| target.id);
    let (reach, news) = step_reach(w, seen, &before, at_s).await?;
    let reach_probes = keep_reach(w, seen, &before, &reach, at_s).await?;
    let incident = note_failing(w, batch, seen, &before, &reach, at_s).await?;
    tell_reach(w, seen, &before, first_target, news, incident, at_s).await?;
    let Stands { document, is_other: document_changed, is_kept } =
        keep_document(w, seen, &before, first_target, at_s).await?;
    note_deploy(w, seen, &before, document.filter(|_| document_changed), &targets, at_s).await?;
    let session = match &seen.session {
        Some(session) if session.len() <= LONGEST_SESSION => Some(w.next_id(Table::ProbeSession).await?),
        _ => None,
    };
    let mut after = match &seen.judged {
        Some(judged) => judge(w, batch, catalogue, seen, &before, judged, document, &targets, at_s, session).await?,
        None => After::unjudged(&before, document),
    };
    (after.document_changed, after.body_is_kept) = (document_changed, is_kept);
    if document_changed || before.document.is_none() {
        introduce(w, seen, &before, document, &targets).await?;
    }
    if reach::just_gone(&reach, before.last_attempt_s, at_s) {
        gone(w, batch, seen, first_target, &mut after, at_s, session).await?;
    }
    keep_session(w, seen, &after, at_s, session).await?;
    let is_planned = planned::is_planned(&batch.works, seen.surface, at_s);
    keep_probe(w, &mut batch.packed, seen, &before, &after, is_planned, at_s).await?;
    let plan = plan(batch, seen, &before, &after, &reach, at_s);
    write_surface(w, seen, &before, &after, &reach, reach_probes, plan, at_s).await?;
    let face = face(seen, &before, &after, &reach, plan, at_s);
    for target in &targets {
        fold_target(w, batch, target, seen.surface.0, &face, after.document_changed, at_s).await?;
    }
    if reach::is_forsaken(&reach, at_s) {
        targets::forsake(w, &mut batch.trends, seen.surface.0, plan.next_due_s, at_s).await?;
        batch.ahead.forget();
        batch.done.push(seen.surface.0);
        count_observation(batch, seen, &after);
        return Ok(());
    }
    batch.ahead.put_back(seen.surface.0, before.moved_on(seen, &after, reach, reach_probes, plan, at_s));
    for (target, links) in targets.iter().filter(|target| target.role == Role::Main).zip(seen.links.iter().cycle()) {
        let linked = targets::link(w, &mut batch.trends, target.id, links, at_s).await?;
        batch.recorded.linked += linked.new;
        if linked.is_other {
            batch.ahead.forget();
        }
    }
    batch.done.push(seen.surface.0);
    count_observation(batch, seen, &after);
    Ok(())
}

/// A look at what was put away found nothing there: only when it is asked next is written down.
async fn still_nothing(w: &mut Writing, seen: &Observation) -> Result<()> {
    sqlx::query(
        "UPDATE surface
         SET last_attempt_s = CASE WHEN COALESCE(last_attempt_s, 0) < $2 THEN $2 ELSE last_attempt_s END,
             next_due_s = CASE WHEN next_due_s IS NULL THEN NULL ELSE $3 END
         WHERE id = $1",
    )
    .bind(seen.surface.0)
    .bind(seen.at_s)
    .bind(seen.next_due_s)
    .execute(w.on())
    .await?;
    Ok(())
}

/// A new document of its own tells a target's name. Entries of registries tell theirs in the walk that brings them.
async fn introduce(
    w: &mut Writing,
    seen: &Observation,
    before: &Before,
    document: Option<i64>,
    targets: &[TargetRow],
) -> Result<()> {
    let is_card = seen.judged.as_ref().is_none_or(|judged| judged.headline != Headline::NotDetected);
    if document.is_none() || seen.name.is_none() || before.kind == SurfaceKind::ServerJson || !is_card {
        return Ok(());
    }
    let words = targets::OwnWords {
        name: seen.name.as_deref(),
        summary: seen.summary.as_deref(),
        version: seen.declared_version.as_deref(),
    };
    for target in targets.iter().filter(|target| target.role == Role::Main) {
        targets::describe(w, target.id, words).await?;
    }
    Ok(())
}

impl After {
    /// Nothing was judged, so nothing of the judgement moves.
    fn unjudged(before: &Before, document: Option<i64>) -> After {
        After {
            document,
            document_changed: false,
            body_is_kept: true,
            eval: before.eval,
            judged: before.judged.clone(),
            profile: before.profile.clone(),
            known: before.known,
            headline: before.headline,
            counts: before.counts,
            evaluations: before.evaluations,
            first_evaluated_s: before.first_evaluated_s,
            last_evaluated_s: before.last_evaluated_s,
            facts_waiting: before.facts_waiting,
            findings_moved: false,
            is_unconfirmed: None,
            evaluated: None,
        }
    }
}

/// When the surface is looked at next, and as what: in turn, or earlier to confirm what this look brought.
fn plan(batch: &mut Batch, seen: &Observation, before: &Before, after: &After, reach: &Reach, at_s: i64) -> Plan {
    let wants = after.is_unconfirmed.unwrap_or(before.verifying.is_some()) || reach::is_unconfirmed(reach);
    let room = before.verifying.is_some() || batch.room > 0;
    let plan = verify::plan(before.verifying, wants && room, seen.surface.0, at_s, seen.next_due_s);
    if plan.episode.is_some() {
        batch.room = batch.room.saturating_sub(1);
        batch.recorded.verifications += 1;
    }
    plan
}

/// Surfaces as they are, each with its number.
pub(crate) async fn load(w: &mut Writing, surfaces: &[i64]) -> Result<Vec<(i64, Before)>> {
    let mut found = Vec::with_capacity(surfaces.len());
    for some in in_statements(surfaces) {
        let statement = format!(
            "SELECT surface.kind, surface.document_id, surface.eval_id, surface.judged, surface.profile, surface.known,
                    surface.headline, surface.headline_since_s, surface.reach, surface.reach_reason,
                    surface.reach_since_s, surface.reach_probes, surface.streak, surface.streak_outcome,
                    surface.streak_since_s, surface.n_blocking, surface.n_error, surface.n_warn, surface.n_info,
                    surface.n_security, surface.evaluations, surface.first_evaluated_s, surface.last_evaluated_s,
                    surface.last_ok_s, surface.last_attempt_s, surface.etag, surface.last_modified, surface.retired_s,
                    eval.ruleset_id, eval.document_id, document.semantic_hash, surface.verifying,
                    surface.verify_from_s, surface.host_id, surface.address, surface.certificate, surface.leaf,
                    surface.server, surface.id, surface.paused, eval.context_hash,
                    CASE WHEN served.body IS NULL THEN NULL ELSE served.hash END,
                    (SELECT COUNT(*) FROM fact_pending WHERE fact_pending.surface_id = surface.id)
             FROM surface
             LEFT JOIN eval ON eval.id = surface.eval_id
             LEFT JOIN document ON document.id = eval.document_id
             LEFT JOIN document AS served ON served.id = surface.document_id
             WHERE surface.id IN {}",
            places(1, some.len())
        );
        for row in w.rows_of(statement, some).await? {
            found.push((row.try_get(38)?, before(&row)?));
        }
    }
    Ok(found)
}

fn before(row: &AnyRow) -> Result<Before> {
    let eval: Option<i64> = row.try_get(2)?;
    let ruleset: Option<i64> = row.try_get(28)?;
    let evaluated = match eval.zip(ruleset) {
        Some((eval, ruleset)) => {
            let (document, context) = (row.try_get(29)?, row.try_get(40)?);
            Some((Earlier { eval, document, ruleset, context }, row.try_get(30)?))
        }
        None => None,
    };
    Ok(Before {
        kind: word("surface", row.try_get(0)?)?,
        host: row.try_get(33)?,
        paused: row.try_get::<i64, _>(39)? != 0,
        place: Place {
            address: row.try_get(34)?,
            certificate: row.try_get(35)?,
            leaf: row.try_get(36)?,
            server: row.try_get(37)?,
        },
        document: row.try_get(1)?,
        document_hash: row.try_get(41)?,
        eval,
        judged: Bits::from_bytes(&row.try_get::<Option<Vec<u8>>, _>(3)?.unwrap_or_default()),
        profile: row.try_get(4)?,
        known: word_or_none("surface", row.try_get(5)?)?,
        headline: word("surface", row.try_get(6)?)?,
        headline_since_s: row.try_get(7)?,
        reach: Reach {
            state: word("surface", row.try_get(8)?)?,
            reason: row.try_get(9)?,
            since_s: row.try_get(10)?,
            streak: row.try_get(12)?,
            streak_of: word_or_none("surface", row.try_get(13)?)?,
            streak_since_s: row.try_get(14)?,
        },
        reach_probes: row.try_get(11)?,
        counts: Counts {
            blocking: row.try_get(15)?,
            error: row.try_get(16)?,
            warn: row.try_get(17)?,
            info: row.try_get(18)?,
            security: row.try_get(19)?,
        },
        evaluations: row.try_get(20)?,
        first_evaluated_s: row.try_get(21)?,
        last_evaluated_s: row.try_get(22)?,
        last_ok_s: row.try_get(23)?,
        last_attempt_s: row.try_get(24)?,
        facts_waiting: row.try_get(42)?,
        validators: Validators { etag: row.try_get(25)?, last_modified: row.try_get(26)? },
        retired: row.try_get::<Option<i64>, _>(27)?.is_some(),
        verifying: Episode::of(row.try_get(31)?, row.try_get(32)?),
        evaluated,
    })
}

impl Before {
    /// The surface as it was written after a look: what the next look in the same batch begins with.
    fn moved_on(
        self,
        seen: &Observation,
        after: &After,
        reach: Reach,
        reach_probes: i64,
        plan: Plan,
        at_s: i64,
    ) -> Before {
        Before {
            place: seen.place.as_ref().map_or_else(|| self.place.clone(), kept_place),
            document: after.document,
            document_hash: match &seen.served {
                _ if after.document == self.document => self.document_hash.clone(),
                Served::Body(body) if after.body_is_kept => Some(body.hash.to_vec()),
                _ => None,
            },
            eval: after.eval,
            judged: after.judged.clone(),
            profile: after.profile.clone(),
            known: after.known,
            headline: after.headline,
            headline_since_s: headline_since_s(seen, &self, after, at_s),
            reach,
            reach_probes,
            counts: after.counts,
            evaluations: after.evaluations,
            first_evaluated_s: after.first_evaluated_s,
            last_evaluated_s: after.last_evaluated_s,
            last_ok_s: last_ok(seen, &self, at_s),
            last_attempt_s: last_attempt(seen, &self, at_s),
            facts_waiting: after.facts_waiting,
            validators: validators(seen, &self, after),
            verifying: plan.episode,
            evaluated: after.evaluated.clone().or(self.evaluated),
            ..self
        }
    }
}

/// How the surface stands after this look.
async fn step_reach(
    w: &mut Writing,
    seen: &Observation,
    before: &Before,
    at_s: i64,
) -> Result<(Reach, Option<ReachNews>)> {
    let (after, news) = reach::step(&before.reach, seen.outcome, at_s, seen.witness_good);
    if !reach::is_change(before.reach.state, after.state) {
        return Ok((after, news));
    }
    // A span of being down is a change where it began and another where it ended.
    let earlier: i64 = sqlx::query_scalar(
        "SELECT (SELECT COUNT(*) FROM reach_span WHERE surface_id = $1 AND state = 'down' AND from_s > $2)
              + (SELECT COUNT(*) FROM reach_span WHERE surface_id = $1 AND state = 'down' AND to_s > $2)",
    )
    .bind(seen.surface.0)
    .bind(at_s - DAY_S)
    .fetch_one(w.on())
    .await?;
    Ok(reach::settled(after, news, earlier + 1, at_s))
}

/// Takes a surface that goes down into what it shares with others, and out of it when it answers. Gives the incident it
/// goes down with.
async fn note_failing(
    w: &mut Writing,
    batch: &mut Batch,
    seen: &Observation,
    before: &Before,
    reach: &Reach,
    at_s: i64,
) -> Result<Option<i64>> {
    let (was, is) = (before.reach.state, reach.state);
    if is == ReachState::Down && was != ReachState::Down {
        let prefix = before.place.address.as_deref().and_then(incidents::prefix_of);
        let down = Down {
            surface: seen.surface.0,
            host: before.host,
            prefix: prefix.as_deref(),
            certificate: before.place.certificate.as_deref(),
            reason: reach.reason.as_deref().unwrap_or_default(),
            since_s: reach.streak_since_s.unwrap_or(at_s),
            at_s,
        };
        return incidents::join(w, &mut batch.incidents, &down).await;
    }
    if reach::is_failing(was) && !reach::is_failing(is) {
        incidents::leave(w, &mut batch.incidents, seen.surface.0, at_s).await?;
    }
    Ok(None)
}

/// Writes down what tells of a new build, for every target that shows the surface.
async fn note_deploy(
    w: &mut Writing,
    seen: &Observation,
    before: &Before,
    new_document: Option<i64>,
    targets: &[TargetRow],
    at_s: i64,
) -> Result<()> {
    let infra = seen.place.as_ref().and_then(|place| moved_place(&before.place, place));
    keep_place(w, seen, before).await?;
    let profile = seen.judged.as_ref().and_then(|judged| judged.profile.as_deref());
    let is_touched = seen.validators.as_ref().is_some_and(|now| {
        let differs =
            |before: &Option<String>, now: &Option<String>| before.is_some() && now.is_some() && before != now;
        differs(&before.validators.etag, &now.etag) || differs(&before.validators.last_modified, &now.last_modified)
    });
    let mut changes =
        Changes { profile: (before.profile.as_deref(), profile), is_touched, infra, ..Changes::default() };
    let version_before = match new_document {
        Some(document) => {
            changes.says_otherwise = says_otherwise(w, before.document, document).await?;
            version_before(w, seen.surface.0, at_s).await?
        }
        None => None,
    };
    if new_document.is_some() {
        changes.version = (version_before.as_deref(), seen.declared_version.as_deref());
    }
    let signals = deploys::signals(before.kind, &changes, at_s);
    if signals.is_empty() || before.last_ok_s.is_none() {
        return Ok(());
    }
    // Whose own document it is comes before those that only name it.
    let (own, others): (Vec<_>, Vec<_>) = targets.iter().partition(|target| target.role == Role::Main);
    for target in own.into_iter().chain(others).take(MOST_DEPLOYS) {
        deploys::record(w, target.id, &signals, seen.crawl.map(|crawl| crawl.0), at_s).await?;
    }
    Ok(())
}

/// Whether two documents say different things, not only in other bytes.
async fn says_otherwise(w: &mut Writing, before: Option<i64>, now: i64) -> Result<bool> {
    let rows = sqlx::query("SELECT semantic_hash FROM document WHERE id = $1 OR id = $2")
        .bind(before)
        .bind(now)
        .fetch_all(w.on())
        .await?;
    let hashes = rows.iter().map(|row| Ok(row.try_get(0)?)).collect::<Result<Vec<Option<Vec<u8>>>>>()?;
    Ok(match hashes.as_slice() {
        [Some(one), Some(other)] => one != other,
        _ => true,
    })
}

/// What the document before the present one called its own version.
async fn version_before(w: &mut Writing, surface: i64, at_s: i64) -> Result<Option<String>> {
    let version: Option<Option<String>> = sqlx::query_scalar(
        "SELECT declared_version FROM doc_span WHERE surface_id = $1 AND to_s <= $2 ORDER BY from_s DESC LIMIT 1",
    )
    .bind(surface)
    .bind(at_s)
    .fetch_optional(w.on())
    .await?;
    Ok(version.flatten())
}

/// What of a place is another than before, where both are known.
fn moved_place(before: &Place, now: &Place) -> Option<(String, String)> {
    let pairs = [(&before.leaf, &now.leaf), (&before.address, &now.address), (&before.server, &now.server)];
    pairs.into_iter().find_map(|(before, now)| {
        let (before, now) = (before.as_deref()?, now.as_deref()?);
        (before != now).then(|| (before.to_owned(), now.to_owned()))
    })
}

/// Remembers where the answer came from, when that is another place than before.
async fn keep_place(w: &mut Writing, seen: &Observation, before: &Before) -> Result<()> {
    let Some(place) = seen.place.as_ref().filter(|place| **place != before.place) else { return Ok(()) };
    let prefix = place.address.as_deref().and_then(incidents::prefix_of);
    let kept = kept_place(place);
    sqlx::query("UPDATE surface SET address = $2, prefix = $3, certificate = $4, leaf = $5, server = $6 WHERE id = $1")
        .bind(seen.surface.0)
        .bind(kept.address)
        .bind(prefix)
        .bind(kept.certificate)
        .bind(kept.leaf)
        .bind(kept.server)
        .execute(w.on())
        .await?;
    Ok(())
}

/// A place as its columns take it.
fn kept_place(place: &Place) -> Place {
    let text = |text: &Option<String>| text.as_deref().map(|text| shortened(text, 200));
    Place {
        address: text(&place.address),
        certificate: text(&place.certificate),
        leaf: text(&place.leaf),
        server: text(&place.server),
    }
}

/// Closes and opens the span of reach when the state moved. Gives the observations in the present span.
async fn keep_reach(w: &mut Writing, seen: &Observation, before: &Before, reach: &Reach, at_s: i64) -> Result<i64> {
    if reach.state == before.reach.state {
        return Ok(before.reach_probes + 1);
    }
    if before.reach.since_s.is_some() {
        sqlx::query("UPDATE reach_span SET to_s = $2, probes = $3 WHERE surface_id = $1 AND to_s IS NULL")
            .bind(seen.surface.0)
            .bind(at_s)
            .bind(before.reach_probes)
            .execute(w.on())
            .await?;
    }
    sqlx::query(
        "INSERT INTO reach_span (surface_id, from_s, state, reason) VALUES ($1, $2, $3, $4)
         ON CONFLICT (surface_id, from_s) DO UPDATE SET
             to_s = NULL, state = excluded.state, reason = excluded.reason",
    )
    .bind(seen.surface.0)
    .bind(at_s)
    .bind(reach.state.as_str())
    .bind(reach.reason.as_deref())
    .execute(w.on())
    .await?;
    Ok(1)
}

async fn tell_reach(
    w: &mut Writing,
    seen: &Observation,
    before: &Before,
    target: Option<i64>,
    news: Option<ReachNews>,
    incident: Option<i64>,
    at_s: i64,
) -> Result<()> {
    let (kind, since_s, note) = match news {
        None => return Ok(()),
        Some(ReachNews::Down(since_s)) => (EventKind::TargetDown, since_s, reach::reason(seen.outcome)),
        Some(ReachNews::Flapping(since_s)) => (EventKind::TargetDown, since_s, Some("flapping".to_owned())),
        Some(ReachNews::Recovered(since_s)) => (EventKind::TargetRecovered, since_s, None),
        Some(ReachNews::Throttled) => return tell_throttled(w, seen, before, target, at_s).await,
    };
    let surface = Some(seen.surface.0);
    let news = News { target, surface, subject: surface, a: Some(since_s), b: incident, note, ..News::of(kind) };
    events::append(w, at_s, news).await
}

/// The host asks for peace: that is our affair, and told once for all its surfaces.
async fn tell_throttled(
    w: &mut Writing,
    seen: &Observation,
    before: &Before,
    target: Option<i64>,
    at_s: i64,
) -> Result<()> {
    let others: i64 = sqlx::query_scalar(
        "SELECT COUNT(*) FROM surface WHERE host_id = $1 AND id <> $2 AND reach = 'throttled' AND retired_s IS NULL",
    )
    .bind(before.host)
    .bind(seen.surface.0)
    .fetch_one(w.on())
    .await?;
    if others > 0 {
        return Ok(());
    }
    let host: Option<String> =
        sqlx::query_scalar("SELECT name FROM host WHERE id = $1").bind(before.host).fetch_optional(w.on()).await?;
    let note = Some(format!("{} asks to be left alone for a while", host.as_deref().unwrap_or("a host")));
    let subject = seen.crawl.map(|crawl| crawl.0);
    let news = News { target, surface: Some(seen.surface.0), subject, note, ..News::of(EventKind::CrawlDegraded) };
    events::append(w, at_s, news).await
}

/// The document that a look leaves a surface with.
struct Stands {
    document: Option<i64>,
    /// It is another than before, which was one.
    is_other: bool,
    /// What was served is kept with its bytes, or none were served.
    is_kept: bool,
}

/// Keeps the document and the span in which it is served.
async fn keep_document(
    w: &mut Writing,
    seen: &Observation,
    before: &Before,
    target: Option<i64>,
    at_s: i64,
) -> Result<Stands> {
    let as_before = Stands { document: before.document, is_other: false, is_kept: true };
    let (document, is_kept) = match &seen.served {
        Served::Nothing | Served::Unchanged => return Ok(as_before),
        Served::Body(body) if before.document_hash.as_deref() == Some(&body.hash) => return Ok(as_before),
        Served::Kept(document) => (document.0, true),
        Served::Body(body) => match before.document {
            Some(old) if says_nothing_new(w, seen, before, old, body, at_s).await? => return Ok(as_before),
            _ => keep_body(w, seen, before, body, at_s).await?,
        },
    };
    if before.document == Some(document) {
        return Ok(Stands { is_kept, ..as_before });
    }
    if before.document.is_some() {
        sqlx::query("UPDATE doc_span SET to_s = $2 WHERE surface_id = $1 AND to_s IS NULL")
            .bind(seen.surface.0)
            .bind(at_s)
            .execute(w.on())
            .await?;
    }
    let validators = seen.validators.clone().unwrap_or_default();
    sqlx::query(
        "INSERT INTO doc_span (surface_id, from_s, document_id, declared_version, etag, last_modified)
         VALUES ($1, $2, $3, $4, $5, $6)
         ON CONFLICT (surface_id, from_s) DO UPDATE SET
             to_s = NULL, document_id = excluded.document_id, declared_version = excluded.declared_version,
             etag = excluded.etag, last_modified = excluded.last_modified",
    )
    .bind(seen.surface.0)
    .bind(at_s)
    .bind(document)
    .bind(seen.declared_version.as_deref().map(|text| shortened(text, 200)))
    .bind(clean_or_none(validators.etag.as_deref()))
    .bind(clean_or_none(validators.last_modified.as_deref()))
    .execute(w.on())
    .await?;
    if before.document.is_some() {
        let news = News {
            target,
            surface: Some(seen.surface.0),
            subject: Some(seen.surface.0),
            a: before.document,
            b: Some(document),
            ..News::of(EventKind::DocumentChanged)
        };
        events::append(w, at_s, news).await?;
    }
    Ok(Stands { document: Some(document), is_other: before.document.is_some(), is_kept })
}

/// Whether another body differs from the one before only where this surface's differ at every fetch.
async fn says_nothing_new(
    w: &mut Writing,
    seen: &Observation,
    before: &Before,
    old: i64,
    body: &Body,
    at_s: i64,
) -> Result<bool> {
    if before.document_hash.is_none() {
        return Ok(false);
    }
    volatile::says_nothing_new(w, seen.surface.0, old, body, before.last_ok_s, at_s).await
}

/// Keeps a body, or of it only the hash where there is no room or too many came in a day. Its number, and whether the bytes
/// are kept.
async fn keep_body(
    w: &mut Writing,
    seen: &Observation,
    before: &Before,
    body: &Body,
    at_s: i64,
) -> Result<(i64, bool)> {
    let is_kept = w.keeps_bodies && !volatile::has_enough(w, seen.surface.0, at_s).await?;
    let document = match is_kept {
        true => documents::keep(w, before.kind, body, at_s).await?,
        false => documents::keep_hash(w, before.kind, body, at_s).await?,
    };
    Ok((document, is_kept))
}

#[expect(clippy::too_many_arguments, reason = "the parts of one observation, each loaded once")]
async fn judge(
    w: &mut Writing,
    batch: &mut Batch,
    catalogue: &Catalogue,
    seen: &Observation,
    before: &Before,
    judged: &Judged,
    document: Option<i64>,
    targets: &[TargetRow],
    at_s: i64,
    session: Option<i64>,
) -> Result<After> {
    let is_of_document = !matches!(seen.served, Served::Nothing);
    let judged_document = document.filter(|_| is_of_document);
    let earlier = before.evaluated.as_ref().map(|(earlier, _)| earlier);
    let kept = judged::keep(w, catalogue, judged_document, earlier, judged, at_s).await?;
    let evaluations = before.evaluations + i64::from(!seen.is_verification);
    let ruleset = |id: i64| catalogue.ruleset(id).ok_or_else(|| Error::corrupt("ruleset", id));
    let rules_before = match earlier {
        Some(earlier) if earlier.ruleset != judged.ruleset.0 => Some(ruleset(earlier.ruleset)?),
        _ => None,
    };
    let semantic_hash = semantic_hash(w, before, judged_document).await?;
    let document_moved = document_moved(before, judged_document, semantic_hash.as_deref());
    let both_moved = rules_before.is_some() && document_moved;
    let (fired_on_old, old_rules_fire, old_document_held_s) = match earlier {
        Some(earlier) if both_moved => (
            fired_on_old(w, catalogue, seen, before, judged).await?,
            fired_as_remembered(w, judged_document, earlier.ruleset).await?,
            held_s(w, seen.surface.0, earlier.document, at_s).await?,
        ),
        _ => (None, None, 0),
    };
    let occasion = Occasion {
        surface: seen.surface.0,
        target: targets.first().map(|target| target.id),
        at_s,
        session,
        is_first_look: before.first_evaluated_s.is_none(),
        is_whole: judged.is_whole(),
        document: judged_document,
        document_moved,
        is_verification: seen.is_verification,
        is_listed: matches!(seen.served, Served::Kept(_)),
        rules_before,
        rules_now: ruleset(judged.ruleset.0)?,
        fired_on_old,
        old_rules_fire,
        old_document_held_s,
        judged_before: &before.judged,
        evaluated_s: before.first_evaluated_s.zip(before.last_evaluated_s),
        evaluations,
    };
    let known = batch.ahead.findings(w, seen.surface.0).await?;
    let (outcome, left) = findings::step_all(w, &mut batch.trends, catalogue, &occasion, &kept, known).await?;
    batch.ahead.put_back_findings(seen.surface.0, left);
    let has_facts = before.evaluations > 0 || kept.fired.iter().any(|fired| fired.rule.describes());
    let says_the_same = before.eval == Some(kept.eval) && judged_document.is_some() && before.facts_waiting == 0;
    let facts_waiting = match has_facts && !says_the_same {
        true => facts::step_all(w, &mut batch.trends, catalogue, &occasion, &kept).await?,
        false => before.facts_waiting,
    };
    batch.recorded.opened += outcome.opened;
    batch.recorded.resolved += outcome.resolved;
    batch.recorded.regressed += outcome.regressed;
    count_findings(batch, seen, targets.first(), &outcome);
    let is_told = judged.is_whole();
    Ok(After {
        document,
        document_changed: false,
        body_is_kept: true,
        eval: Some(kept.eval),
        judged: judged_rules(&mut batch.trends, &before.judged, &kept, judged.is_whole(), &occasion),
        profile: if is_told { judged.profile.clone() } else { judged.profile.clone().or(before.profile.clone()) },
        known: judged.known.or(before.known),
        headline: headline(before, judged.headline, outcome.counts),
        counts: outcome.counts,
        evaluations,
        first_evaluated_s: before.first_evaluated_s.or(judged.is_a_look().then_some(at_s)),
        last_evaluated_s: Some(at_s),
        facts_waiting,
        findings_moved: outcome.opened + outcome.resolved > 0,
        is_unconfirmed: Some(outcome.unconfirmed > 0),
        evaluated: Some((
            Earlier {
                eval: kept.eval,
                document: judged_document,
                ruleset: judged.ruleset.0,
                context: context_key(&judged.context_hash),
            },
            semantic_hash,
        )),
    })
}

/// The semantic hash of a document that is judged.
async fn semantic_hash(w: &mut Writing, before: &Before, document: Option<i64>) -> Result<Option<Vec<u8>>> {
    match (&before.evaluated, document) {
        (_, None) => Ok(None),
        (Some((earlier, hash)), document) if earlier.document == document => Ok(hash.clone()),
        (_, document) => Ok(sqlx::query_scalar("SELECT semantic_hash FROM document WHERE id = $1")
            .bind(document)
            .fetch_one(w.on())
            .await?),
    }
}

/// Whether this document says something else than the one judged last; spacing and order of members say nothing.
fn document_moved(before: &Before, document: Option<i64>, hash: Option<&[u8]>) -> bool {
    let Some((Earlier { document: old, .. }, old_hash)) = &before.evaluated else { return document.is_some() };
    if document.is_none() || document == *old {
        return old.is_some() && document.is_none();
    }
    hash.is_none() || hash != old_hash.as_deref()
}

/// What the present rules say of the document as it was: as the observation tells, or as remembered.
async fn fired_on_old(
    w: &mut Writing,
    catalogue: &Catalogue,
    seen: &Observation,
    before: &Before,
    judged: &Judged,
) -> Result<Option<Vec<i64>>> {
    if let Some(slugs) = &seen.fires_on_old {
        return Ok(Some(slugs.iter().filter_map(|slug| catalogue.named(slug)).map(|rule| rule.id).collect()));
    }
    let Some((earlier, _)) = &before.evaluated else { return Ok(None) };
    fired_as_remembered(w, earlier.document, judged.ruleset.0).await
}

/// The rules of a set that fire on a document, where that was judged before.
async fn fired_as_remembered(w: &mut Writing, document: Option<i64>, ruleset: i64) -> Result<Option<Vec<i64>>> {
    let Some(document) = document else { return Ok(None) };
    let fired: Option<String> = sqlx::query_scalar(
        "SELECT fired FROM eval WHERE document_id = $1 AND ruleset_id = $2 ORDER BY id DESC LIMIT 1",
    )
    .bind(document)
    .bind(ruleset)
    .fetch_optional(w.on())
    .await?;
    let Some(fired) = fired else { return Ok(None) };
    let pairs: Vec<(i64, i64)> = serde_json::from_str(&fired).map_err(|error| Error::corrupt("judgement", error))?;
    Ok(Some(pairs.into_iter().map(|(rule, _)| rule).collect()))
}

/// For how long a surface had served a document before it served another, in seconds.
async fn held_s(w: &mut Writing, surface: i64, document: Option<i64>, at_s: i64) -> Result<i64> {
    let from_s: Option<i64> =
        sqlx::query_scalar("SELECT MIN(from_s) FROM doc_span WHERE surface_id = $1 AND document_id = $2")
            .bind(surface)
            .bind(document)
            .fetch_one(w.on())
            .await?;
    Ok(from_s.map_or(0, |from_s| at_s - from_s))
}

/// The rules that were judged when they were last looked at, after this look.
fn judged_rules(trends: &mut Trends, before: &Bits, kept: &Kept, is_whole: bool, occasion: &Occasion<'_>) -> Bits {
    let mut after = if is_whole { Bits::default() } else { before.clone() };
    if is_whole {
        let stays = |rule: &i64| kept.unjudged.contains(rule);
        before.iter().filter(stays).for_each(|rule| after.set(rule, true));
    }
    let looked_at = kept.passed.iter().copied().chain(kept.fired.iter().map(|fired| fired.rule.id));
    looked_at.for_each(|rule| after.set(rule, true));
    let withdrawn: Vec<i64> = after.iter().filter(|rule| !occasion.rules_now.contains_key(rule)).collect();
    withdrawn.into_iter().for_each(|rule| after.set(rule, false));
    for rule in before.iter().filter(|rule| !after.has(*rule)) {
        trends.rule(rule).evaluated -= 1;
    }
    for rule in after.iter().filter(|rule| !before.has(*rule)) {
        trends.rule(rule).evaluated += 1;
    }
    after
}

/// The word after a judgement: what is open decides, stale findings included; what could not be judged keeps its word.
fn headline(before: &Before, judged: Headline, counts: Counts) -> Headline {
    match judged {
        Headline::NotDetected => Headline::NotDetected,
        Headline::NotEvaluated => before.headline,
        Headline::Sound | Headline::Deviates | Headline::Blocked => {
            if counts.blocking > 0 {
                Headline::Blocked
            } else if counts.error > 0 {
                Headline::Deviates
            } else {
                Headline::Sound
            }
        }
    }
}

/// The document has been absent for three days: its findings end without the credit of a fix.
async fn gone(
    w: &mut Writing,
    batch: &mut Batch,
    seen: &Observation,
    target: Option<i64>,
    after: &mut After,
    at_s: i64,
    session: Option<i64>,
) -> Result<()> {
    let surface = seen.surface.0;
    let ended = findings::end_all(w, &mut batch.trends, surface, target, Signal::DocumentGone, at_s, session).await?;
    after.findings_moved |= ended > 0;
    batch.ahead.forget_findings(surface);
    batch.recorded.resolved += ended;
    after.counts = Counts::default();
    after.headline = Headline::NotEvaluated;
    let news = News { target, surface: Some(surface), subject: Some(surface), ..News::of(EventKind::TargetGone) };
    events::append(w, at_s, news).await
}

/// Keeps the newest conversation of a surface, the newest in which odd requests were made, and for good those in which
/// findings moved. `id` is its number; `None`: it is not kept.
async fn keep_session(w: &mut Writing, seen: &Observation, after: &After, at_s: i64, id: Option<i64>) -> Result<()> {
    let (Some(session), Some(id)) = (&seen.session, id) else { return Ok(()) };
    let is_odd = asks_odd(session);
    sqlx::query("DELETE FROM probe_session WHERE surface_id = $1 AND is_latest = 1 AND is_odd <= $2")
        .bind(seen.surface.0)
        .bind(i64::from(is_odd))
        .execute(w.on())
        .await?;
    sqlx::query(
        "INSERT INTO probe_session (id, surface_id, at_s, outcome, reason, is_latest, eval_id, raw_len, body, is_odd)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
    )
    .bind(id)
    .bind(seen.surface.0)
    .bind(at_s)
    .bind(OutcomeClass::from(seen.outcome).as_str())
    .bind(reach::reason(seen.outcome))
    .bind(i64::from(!after.findings_moved))
    .bind(after.eval)
    .bind(count(session.len()))
    .bind(pack(session)?)
    .bind(i64::from(is_odd))
    .execute(w.on())
    .await?;
    Ok(())
}

/// Whether odd requests were made in a recorded conversation: each run of them has one of these. Inside of what was said a
/// quotation mark never stands bare, so that nobody else can say so.
fn asks_odd(session: &[u8]) -> bool {
    const ODD: [&str; 5] = [
        r#""step":"bad-version""#,
        r#""step":"negotiate-same""#,
        r#""step":"negotiate-newest""#,
        r#""step":"origin""#,
        r#""step":"unknown-method""#,
    ];
    // A text is searched many bytes at a time, bytes one by one; and this is done while the database is written.
    std::str::from_utf8(session).is_ok_and(|session| ODD.iter().any(|odd| session.contains(odd)))
}

/// Adds the probe to its day and sums the day up in its month. What was not tried is no probe.
async fn keep_probe(
    w: &mut Writing,
    store: &mut Packed,
    seen: &Observation,
    before: &Before,
    after: &After,
    is_planned: bool,
    at_s: i64,
) -> Result<()> {
    if matches!(seen.outcome, Outcome::Skipped(_)) {
        return Ok(());
    }
    let day = at_s / DAY_S;
    let last_day = before.last_attempt_s.map(|at_s| at_s / DAY_S);
    let mut packed = match last_day {
        Some(last) if last == day => store.day(w, seen.surface, day).await?,
        _ => Vec::new(),
    };
    let probe = Probe {
        minute: u16::try_from(at_s % DAY_S / 60).unwrap_or(0),
        outcome: seen.outcome.into(),
        status: seen.status.unwrap_or(0),
        took_ms: u16::try_from(seen.took_ms).unwrap_or(u16::MAX),
        verification: seen.is_verification,
        document_changed: after.document_changed,
        in_maintenance: is_planned,
        judged: seen.judged.is_some(),
    };
    packed.extend(probe.pack());
    let (month, day_of_month) = probes::month_of(day);
    let mut days = match last_day.map(probes::month_of) {
        Some((last, _)) if last == month => store.month(w, seen.surface, month).await?,
        _ => Vec::new(),
    };
    let headline = (after.first_evaluated_s.is_some() || seen.judged.is_some()).then_some(after.headline);
    let earlier = probes::days(&days).nth(day_of_month).flatten().and_then(|day| day.headline);
    if let Some(summed) = probes::Day::of(probes::probes(&packed), earlier.max(headline)) {
        probes::put_day(&mut days, day_of_month, &summed);
    }
    store.put_day(seen.surface, day, packed);
    store.put_month(seen.surface, month, days);
    Ok(())
}

#[expect(clippy::too_many_arguments, reason = "the parts of one surface, each made by one step")]
async fn write_surface(
    w: &mut Writing,
    seen: &Observation,
    before: &Before,
    after: &After,
    reach: &Reach,
    reach_probes: i64,
    plan: Plan,
    at_s: i64,
) -> Result<()> {
    let validators = validators(seen, before, after);
    sqlx::query(
        "UPDATE surface
         SET document_id = $2, eval_id = $3, judged = $4, profile = $5, known = $6, headline = $7,
             headline_since_s = $8, reach = $9, reach_reason = $10, reach_since_s = $11, reach_probes = $12,
             streak = $13, streak_outcome = $14, streak_since_s = $15,
             n_blocking = $16, n_error = $17, n_warn = $18, n_info = $19, n_security = $20,
             evaluations = $21, first_evaluated_s = $22, last_evaluated_s = $23, last_ok_s = $24,
             last_attempt_s = $25, last_status = $26, last_took_ms = $27, etag = $28, last_modified = $29,
             next_due_s = CASE WHEN paused = 1 THEN NULL ELSE $30 END,
             verifying = $31, verify_from_s = $32,
             era = COALESCE($33, era), access = COALESCE($34, access), standing = COALESCE($35, standing),
             urgent = CASE WHEN urgent = 1 THEN 0 ELSE urgent END, every_s = COALESCE($36, every_s)
         WHERE id = $1",
    )
    .bind(seen.surface.0)
    .bind(after.document)
    .bind(after.eval)
    .bind(after.judged.clone().into_bytes())
    .bind(after.profile.as_deref())
    .bind(after.known.map(Known::as_str))
    .bind(after.headline.as_str())
    .bind(headline_since_s(seen, before, after, at_s))
    .bind(reach.state.as_str())
    .bind(reach.reason.as_deref())
    .bind(reach.since_s)
    .bind(reach_probes)
    .bind(reach.streak)
    .bind(reach.streak_of.map(OutcomeClass::as_str))
    .bind(reach.streak_since_s)
    .bind(after.counts.blocking)
    .bind(after.counts.error)
    .bind(after.counts.warn)
    .bind(after.counts.info)
    .bind(after.counts.security)
    .bind(after.evaluations)
    .bind(after.first_evaluated_s)
    .bind(after.last_evaluated_s)
    .bind(last_ok(seen, before, at_s))
    .bind(last_attempt(seen, before, at_s))
    .bind(seen.status.map(i64::from))
    .bind(i64::from(seen.took_ms))
    .bind(validators.etag)
    .bind(validators.last_modified)
    .bind(plan.next_due_s)
    .bind(plan.episode.map_or(0, |episode| episode.n))
    .bind(plan.episode.map(|episode| episode.from_s))
    .bind(seen.standing.as_ref().map(|standing| standing.era.as_str()))
    .bind(seen.standing.as_ref().map(|standing| standing.access.as_str()))
    .bind(seen.standing.as_ref().and_then(|standing| serde_json::to_string(standing).ok()))
    .bind(seen.every_s)
    .execute(w.on())
    .await?;
    Ok(())
}

/// Since when the surface has its word.
fn headline_since_s(seen: &Observation, before: &Before, after: &After, at_s: i64) -> Option<i64> {
    let is_new = after.headline != before.headline || before.headline_since_s.is_none() && seen.judged.is_some();
    if is_new { Some(at_s) } else { before.headline_since_s }
}

/// The validators to ask with next. A body that was not kept is asked for whole again: "not modified" would leave nothing to
/// judge.
fn validators(seen: &Observation, before: &Before, after: &After) -> Validators {
    if !after.body_is_kept {
        return Validators::default();
    }
    let validators = seen.validators.as_ref().unwrap_or(&before.validators);
    Validators {
        etag: clean_or_none(validators.etag.as_deref()),
        last_modified: clean_or_none(validators.last_modified.as_deref()),
    }
}

fn last_ok(seen: &Observation, before: &Before, at_s: i64) -> Option<i64> {
    if seen.outcome.is_up() { Some(at_s) } else { before.last_ok_s }
}

/// What was skipped was not attempted.
fn last_attempt(seen: &Observation, before: &Before, at_s: i64) -> Option<i64> {
    if matches!(seen.outcome, Outcome::Skipped(_)) { before.last_attempt_s } else { Some(at_s) }
}

fn face(seen: &Observation, before: &Before, after: &After, reach: &Reach, plan: Plan, at_s: i64) -> Face {
    Face {
        is_main: true,
        headline: after.headline,
        reach: reach.state,
        reach_since_s: reach.since_s,
        profile: after.profile.clone(),
        known: after.known,
        counts: after.counts,
        last_ok_s: last_ok(seen, before, at_s),
        last_attempt_s: last_attempt(seen, before, at_s),
        next_due_s: plan.next_due_s.filter(|_| !before.paused),
    }
}

/// Brings the row of a target up to date; most have one surface, and this is it.
async fn fold_target(
    w: &mut Writing,
    batch: &mut Batch,
    target: &TargetRow,
    surface: i64,
    face: &Face,
    document_changed: bool,
    at_s: i64,
) -> Result<()> {
    let folded = if target.n_surfaces == 1 {
        let is_main = target.role == Role::Main;
        targets::fold(&[Face { is_main, ..face.clone() }])
    } else {
        targets::fold(&batch.ahead.faces(w, target.id, surface, face).await?)
    };
    let row = targets::write_folded(w, &mut batch.trends, target, &folded, document_changed, at_s).await?;
    batch.ahead.put_back_target(row);
    Ok(())
}

fn count_observation(batch: &mut Batch, seen: &Observation, after: &After) {
    batch.recorded.observations += 1;
    batch.recorded.documents_changed += usize::from(after.document_changed);
    batch.recorded.faults += usize::from(seen.outcome == Outcome::CrawlerFault);
    let Some(crawl) = seen.crawl else { return };
    let counts = batch.crawls.entry(crawl.0).or_default();
    counts.done += 1;
    counts.judged += i64::from(seen.judged.is_some());
    match OutcomeClass::from(seen.outcome) {
        OutcomeClass::Ok => counts.ok += 1,
        OutcomeClass::Gated => counts.gated += 1,
        OutcomeClass::Absent => counts.absent += 1,
        OutcomeClass::Unreachable => counts.unreachable += 1,
        OutcomeClass::Throttled => counts.throttled += 1,
        OutcomeClass::Skipped => counts.skipped += 1,
        OutcomeClass::CrawlerFault => counts.faults += 1,
    }
}

/// Findings are counted for the kind of the first target that shows the surface, once however many do.
fn count_findings(batch: &mut Batch, seen: &Observation, target: Option<&TargetRow>, outcome: &findings::Outcome) {
    if let Some(target) = target {
        batch.trends.count(target.kind, |cohort| {
            cohort.opened += outcome.opened - outcome.baseline;
            cohort.resolved += outcome.resolved;
            cohort.regressed += outcome.regressed;
        });
    }
    let Some(crawl) = seen.crawl else { return };
    let counts = batch.crawls.entry(crawl.0).or_default();
    counts.opened += outcome.opened;
    counts.resolved += outcome.resolved;
    counts.regressed += outcome.regressed;
}
