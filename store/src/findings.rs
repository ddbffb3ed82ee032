//! Findings: each judgement steps the machine of every finding it touches, and what moved is written with its span and event.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use sqlx::Row;
use sqlx::any::AnyRow;

use crate::deploys::{self, Window};
use crate::dialect::{Table, Writing};
use crate::error::{Error, Result};
use crate::events::{self, News};
use crate::facts;
use crate::incidents;
use crate::judged::{Fired, Kept};
use crate::machine::{self, Flips, Look, Memory, Move, Opening, Recent, RuleMove, Signal};
use crate::rows::{Bits, DAY_S, count, in_statements, places, word, word_or_none};
use crate::rulesets::{Catalogue, RuleInfo};
use crate::targets::Counts;
use crate::trends::Trends;
use crate::words::{Cause, EventKind, Evidence, FindingState, Impact, OpenedAs, Resolution, Severity};

/// The findings of a surface, by rule.
pub(crate) type Findings = BTreeMap<i64, Finding>;

/// A row of `finding`, as far as stepping it needs.
#[derive(Debug, Clone)]
pub(crate) struct Finding {
    id: i64,
    memory: Memory,
    /// Regular evaluations of the surface up to which `memory` tells what was said.
    brought_to: i64,
    severity: Severity,
    impact: Option<Impact>,
    security: bool,
    opens: i64,
    occ_set: Option<i64>,
    occurrences: i64,
    unjudged_since_s: Option<i64>,
    /// The last judgement that reached its rule, while others do not.
    judged_s: Option<i64>,
    pending_since_s: Option<i64>,
    clear_since_s: Option<i64>,
    opened_s: Option<i64>,
    /// As what it will open, if it is confirmed.
    pending: Option<(OpenedAs, Cause)>,
    /// The judgement before the one with which it began or ended, and the document of that one.
    moved_after_s: Option<i64>,
    moved_doc: Option<i64>,
}

impl Finding {
    fn is_open(&self) -> bool {
        self.memory.is_open()
    }

    /// The word in `finding.state`. What was never confirmed is kept for its flips, and is over.
    fn state(&self) -> FindingState {
        self.memory.state.unwrap_or(FindingState::Resolved)
    }

    /// Occurrences count while it is open.
    fn counted_places(&self) -> i64 {
        if self.is_open() { self.occurrences } else { 0 }
    }
}

/// What a judgement is about, for the findings it touches.
#[derive(Debug)]
pub(crate) struct Occasion<'a> {
    pub(crate) surface: i64,
    pub(crate) target: Option<i64>,
    pub(crate) at_s: i64,
    /// The number that its recorded conversation will have; `None`: none is kept.
    pub(crate) session: Option<i64>,
    /// The first complete evaluation of the surface.
    pub(crate) is_first_look: bool,
    /// A rule that was not asked does not apply.
    pub(crate) is_whole: bool,
    /// The document judged.
    pub(crate) document: Option<i64>,
    /// It is another than at the last evaluation.
    pub(crate) document_moved: bool,
    /// It was made out of turn, to confirm a change.
    pub(crate) is_verification: bool,
    /// The document is an entry of a list: there is one copy of it, which needs no second look.
    pub(crate) is_listed: bool,
    /// Rule → version at the last evaluation; `None`: the same rules as now.
    pub(crate) rules_before: Option<Arc<HashMap<i64, i64>>>,
    /// Rule → version now.
    pub(crate) rules_now: Arc<HashMap<i64, i64>>,
    /// Rules, as they are now, that fire on the document as it was; `None`: nobody judged that.
    pub(crate) fired_on_old: Option<Vec<i64>>,
    /// Rules, as they were, that fire on the document as it is now; `None`: nobody judged that.
    pub(crate) old_rules_fire: Option<Vec<i64>>,
    /// How long the document before was seen, in seconds.
    pub(crate) old_document_held_s: i64,
    /// Rules that were judged when they were last looked at here.
    pub(crate) judged_before: &'a Bits,
    /// When the surface was first and last evaluated.
    pub(crate) evaluated_s: Option<(i64, i64)>,
    /// How many regular evaluations there were, this one included if it is one.
    pub(crate) evaluations: i64,
}

impl Occasion<'_> {
    /// What became of the rule since the last evaluation.
    fn rule_move(&self, rule: i64) -> RuleMove {
        match &self.rules_before {
            None => RuleMove::Same,
            Some(before) => match before.get(&rule) {
                None => RuleMove::New,
                version if version == self.rules_now.get(&rule) => RuleMove::Same,
                Some(_) => RuleMove::Changed,
            },
        }
    }

    /// The surface passed this version of the rule at two moments a day or more apart; a new version, if it passes the
    /// document that was there for a day.
    fn has_track_record(&self, rule: &RuleInfo) -> bool {
        let Some((first, last)) = self.evaluated_s else { return false };
        if self.rule_move(rule.id) != RuleMove::Same {
            let passed_old = self.fired_on_old.as_ref().is_some_and(|fired| !fired.contains(&rule.id));
            return passed_old && self.old_document_held_s >= DAY_S;
        }
        self.judged_before.has(rule.id) && last - first.max(rule.version_s) >= DAY_S
    }

    pub(crate) fn look(&self, signal: Signal, rule: &RuleInfo) -> Look {
        let only_the_rule_moved =
            rule.evidence == Evidence::Document && self.rule_move(rule.id) != RuleMove::Same && !self.document_moved;
        // What a registry lists is what it lists; what stands behind a listing may answer otherwise the next time.
        let is_listed = self.is_listed && !matches!(rule.evidence, Evidence::Live | Evidence::Timing);
        Look {
            signal,
            at_s: self.at_s,
            is_verification: self.is_verification,
            is_first: self.is_first_look,
            is_settled: is_listed || only_the_rule_moved,
            is_same_document: !self.document_moved,
        }
    }

    fn evaluated_before_s(&self) -> Option<i64> {
        self.evaluated_s.map(|(_, last)| last)
    }

    /// Regular evaluations before this one.
    fn evaluations_before(&self) -> i64 {
        self.evaluations - i64::from(!self.is_verification)
    }
}

/// What became of a surface's findings.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) counts: Counts,
    /// First looks included.
    pub(crate) opened: i64,
    /// Of the opened: at a first look.
    pub(crate) baseline: i64,
    pub(crate) resolved: i64,
    pub(crate) regressed: i64,
    /// Findings that another look would settle.
    pub(crate) unconfirmed: i64,
}

/// Steps all findings of a surface with what was judged. Gives them as they are then.
pub(crate) async fn step_all(
    w: &mut Writing,
    trends: &mut Trends,
    catalogue: &Catalogue,
    occasion: &Occasion<'_>,
    kept: &Kept,
    mut known: Findings,
) -> Result<(Outcome, Findings)> {
    let mut outcome = Outcome::default();
    let mut left = Vec::new();
    for fired in kept.fired.iter().filter(|fired| fired.rule.accuses()) {
        let before = known.remove(&fired.rule.id);
        let stepped = fires(w, trends, occasion, fired, before, &mut outcome).await?;
        left.push((fired.rule.clone(), stepped));
    }
    for (rule_id, before) in known {
        let rule = catalogue.numbered(rule_id).ok_or_else(|| Error::corrupt("finding", format!("rule {rule_id}")))?;
        let signal = signal(occasion, kept, rule_id);
        let stepped = does_not_fire(w, trends, occasion, &rule, before, signal, &mut outcome).await?;
        left.push((rule, stepped));
    }
    outcome.counts = counts(&left);
    let is_unconfirmed = |(_, finding): &&(_, Finding)| finding.memory.is_unconfirmed();
    outcome.unconfirmed = count(left.iter().filter(is_unconfirmed).count());
    Ok((outcome, left.into_iter().map(|(rule, finding)| (rule.id, finding)).collect()))
}

/// What a judgement says of a rule that does not fire.
pub(crate) fn signal(occasion: &Occasion<'_>, kept: &Kept, rule: i64) -> Signal {
    if kept.passed.contains(&rule) {
        Signal::Clear
    } else if !occasion.rules_now.contains_key(&rule) {
        Signal::RuleWithdrawn
    } else if kept.unjudged.contains(&rule) {
        Signal::Unjudged
    } else if occasion.is_whole {
        Signal::Clear
    } else {
        Signal::Unjudged
    }
}

fn counts(findings: &[(Arc<RuleInfo>, Finding)]) -> Counts {
    let mut counts = Counts::default();
    for (rule, finding) in findings.iter().filter(|(_, finding)| finding.is_open()) {
        counts.security += i64::from(finding.security);
        if rule.guess {
            continue;
        }
        counts.blocking += i64::from(finding.impact == Some(Impact::BreaksClients));
        match finding.severity {
            Severity::Error => counts.error += 1,
            Severity::Warning => counts.warn += 1,
            Severity::Info => counts.info += 1,
        }
    }
    counts
}

/// The findings of surfaces, each with its surface and rule.
pub(crate) async fn load(w: &mut Writing, surfaces: &[i64]) -> Result<Vec<(i64, i64, Finding)>> {
    let mut found = Vec::new();
    for some in in_statements(surfaces) {
        let statement = format!(
            "SELECT rule_id, id, state, severity, impact, security, opens, confirmations, flips, observed, flips_at,
                    occ_set_id, occurrences, unjudged_since_s, pending_since_s, clear_since_s, opened_s, recent,
                    refuted, confirmed_s, confirmed_before_s, pending_as, pending_cause, moved_after_s, moved_doc,
                    surface_id, judged_s
             FROM finding
             WHERE surface_id IN {} AND instance = ''",
            places(1, some.len())
        );
        for row in w.rows_of(statement, some).await? {
            found.push((row.try_get(25)?, row.try_get(0)?, finding(&row)?));
        }
    }
    Ok(found)
}

fn finding(row: &AnyRow) -> Result<Finding> {
    let state: FindingState = word("finding", row.try_get(2)?)?;
    let opens: i64 = row.try_get(6)?;
    let was_never_open = state == FindingState::Resolved && opens == 0;
    let bits =
        |column: usize| u32::try_from(row.try_get::<i64, _>(column)?).map_err(|error| Error::corrupt("finding", error));
    let pending_as = word_or_none("finding", row.try_get(21)?)?;
    Ok(Finding {
        id: row.try_get(1)?,
        memory: Memory {
            state: (!was_never_open).then_some(state),
            count: row.try_get(7)?,
            recent: Recent(u8::try_from(row.try_get::<i64, _>(17)?).map_err(|error| Error::corrupt("finding", error))?),
            raw: Flips { bits: bits(8)?, refuted: bits(18)?, observed: bits(9)? },
            openings: [row.try_get(19)?, row.try_get(20)?],
            has_opened: opens > 0,
        },
        brought_to: row.try_get(10)?,
        severity: word("finding", row.try_get(3)?)?,
        impact: word_or_none("finding", row.try_get(4)?)?,
        security: row.try_get::<i64, _>(5)? != 0,
        opens,
        occ_set: row.try_get(11)?,
        occurrences: row.try_get(12)?,
        unjudged_since_s: row.try_get(13)?,
        judged_s: row.try_get(26)?,
        pending_since_s: row.try_get(14)?,
        clear_since_s: row.try_get(15)?,
        opened_s: row.try_get(16)?,
        pending: pending_as.zip(word_or_none("finding", row.try_get(22)?)?),
        moved_after_s: row.try_get(23)?,
        moved_doc: row.try_get(24)?,
    })
}

/// A rule fires.
async fn fires(
    w: &mut Writing,
    trends: &mut Trends,
    occasion: &Occasion<'_>,
    fired: &Fired,
    known: Option<Finding>,
    outcome: &mut Outcome,
) -> Result<Finding> {
    let is_new = known.is_none();
    let finding = match known {
        Some(finding) => finding,
        None => Finding {
            id: w.next_id(Table::Finding).await?,
            memory: Memory::new(occasion.judged_before.has(fired.rule.id)),
            brought_to: occasion.evaluations_before(),
            severity: fired.severity,
            impact: fired.impact,
            security: fired.rule.security,
            opens: 0,
            occ_set: None,
            occurrences: 0,
            unjudged_since_s: None,
            judged_s: None,
            pending_since_s: None,
            clear_since_s: None,
            opened_s: None,
            pending: None,
            moved_after_s: None,
            moved_doc: None,
        },
    };
    let saw = Saw { signal: Signal::Fires, fired: Some(fired), is_new };
    step_one(w, trends, occasion, &fired.rule, finding, saw, outcome).await
}

/// A rule with a finding does not fire: it passed, or was not looked at, or is no more.
async fn does_not_fire(
    w: &mut Writing,
    trends: &mut Trends,
    occasion: &Occasion<'_>,
    rule: &RuleInfo,
    finding: Finding,
    signal: Signal,
    outcome: &mut Outcome,
) -> Result<Finding> {
    step_one(w, trends, occasion, rule, finding, Saw { signal, fired: None, is_new: false }, outcome).await
}

/// What a look says of one finding.
struct Saw<'a> {
    signal: Signal,
    fired: Option<&'a Fired>,
    /// It has no row yet.
    is_new: bool,
}

/// Steps one finding and writes what moved: its row, its span, its event, its part in the numbers of the day.
async fn step_one(
    w: &mut Writing,
    trends: &mut Trends,
    occasion: &Occasion<'_>,
    rule: &RuleInfo,
    mut finding: Finding,
    saw: Saw<'_>,
    outcome: &mut Outcome,
) -> Result<Finding> {
    let memory = brought_up(&finding, occasion);
    let (after, moved) = machine::step(&memory, &occasion.look(saw.signal, rule), rule.evidence);
    let places_moved = saw.fired.is_some_and(|fired| finding.occ_set != Some(fired.occ_set));
    let is_judged = matches!(saw.signal, Signal::Fires | Signal::Clear);
    let is_alive = !matches!(memory.state, None | Some(FindingState::Resolved | FindingState::Retired));
    let became_unjudged = saw.signal == Signal::Unjudged && finding.unjudged_since_s.is_none() && is_alive;
    let became_judged = is_judged && finding.unjudged_since_s.is_some();
    let says_the_same = after.raw.last() == memory.raw.last();
    if moved == Move::Stay && says_the_same && !places_moved && !became_unjudged && !became_judged {
        return Ok(finding);
    }
    let (was_open, places_before) = (finding.is_open(), finding.counted_places());
    finding.memory = after;
    finding.brought_to = occasion.evaluations;
    if is_judged {
        (finding.unjudged_since_s, finding.judged_s) = (None, None);
    } else if became_unjudged {
        (finding.unjudged_since_s, finding.judged_s) = (Some(occasion.at_s), occasion.evaluated_before_s());
    }
    if let Some(fired) = saw.fired {
        (finding.severity, finding.impact) = (fired.severity, fired.impact);
        (finding.occ_set, finding.occurrences) = (Some(fired.occ_set), fired.occurrences);
    }
    if moved == Move::Suspect {
        finding.pending = Some(classified(w, occasion, rule, &finding).await?);
    }
    let turn = turned(&mut finding, moved, occasion, rule, is_judged && saw.fired.is_none());
    let begins = finding.is_open() && !was_open;
    let opening = match begins {
        true => Some(match finding.pending.take() {
            Some(pending) => pending,
            None => classified(w, occasion, rule, &finding).await?,
        }),
        false => None,
    };
    if begins {
        finding.opened_s = Some(turn.since_s);
        finding.opens += 1;
    }
    if !finding.memory.is_unconfirmed() {
        (finding.pending, finding.moved_after_s, finding.moved_doc) = (None, None, None);
    }
    write(w, occasion, rule, &finding, &saw, moved != Move::Stay || places_moved).await?;
    if let Some((opened_as, cause)) = opening {
        begin_span(w, occasion, &finding, &turn, opened_as, cause).await?;
        count_opening(trends, rule, moved, opened_as, cause, outcome);
        tell_beginning(w, occasion, rule, &finding, moved, opened_as, cause).await?;
    } else if places_moved && finding.is_open() {
        sqlx::query("UPDATE finding_span SET occ_set_id = $2 WHERE finding_id = $1 AND to_s IS NULL")
            .bind(finding.id)
            .bind(finding.occ_set)
            .execute(w.on())
            .await?;
    }
    if moved == Move::StartFlapping && !begins {
        tell_flapping(w, occasion, rule, &finding, false).await?;
    }
    if moved == Move::StayOpen {
        tell_calm(w, occasion, rule, &finding).await?;
    }
    if let (true, Some(resolution)) = (was_open && !finding.is_open(), turn.resolution) {
        end_span(w, occasion.target, finding.id, &turn, resolution, occasion.session).await?;
        if moved == Move::StayAway {
            tell_calm(w, occasion, rule, &finding).await?;
        } else {
            tell_end(w, occasion, rule.id, finding.id, resolution).await?;
        }
        outcome.resolved += 1;
        trends.rule(rule.id).resolved += 1;
    }
    let delta = trends.rule(rule.id);
    delta.failing += i64::from(finding.is_open()) - i64::from(was_open);
    delta.occurrences += finding.counted_places() - places_before;
    Ok(finding)
}

/// Looks since its last change said what that change said.
fn brought_up(finding: &Finding, occasion: &Occasion<'_>) -> Memory {
    match finding.unjudged_since_s {
        Some(_) => finding.memory,
        None => finding.memory.after_equal_looks(occasion.evaluations_before() - finding.brought_to),
    }
}

/// When and with what a finding began or ended.
struct Turn {
    since_s: i64,
    /// The last judgement before.
    after_s: Option<i64>,
    document: Option<i64>,
    /// Why it is over, if it is.
    resolution: Option<Resolution>,
}

impl Turn {
    fn window(&self) -> Window {
        Window { after_s: self.after_s, until_s: self.since_s }
    }
}

/// The moments of a finding after a move.
fn turned(finding: &mut Finding, moved: Move, occasion: &Occasion<'_>, rule: &RuleInfo, passes: bool) -> Turn {
    let began_s = match moved {
        Move::Resolve(_) | Move::StayAway => finding.clear_since_s,
        Move::Retire(_) => None,
        _ => finding.pending_since_s,
    };
    let is_old = began_s.is_some() && finding.moved_after_s.is_some();
    let resolution = match moved {
        Move::Resolve(Resolution::Fixed) if is_our_doing(finding, occasion, rule) => Some(Resolution::RuleChanged),
        Move::Resolve(resolution) | Move::Retire(resolution) => Some(resolution),
        Move::StayAway => Some(Resolution::Fixed),
        _ => None,
    };
    let turn = Turn {
        since_s: began_s.unwrap_or(occasion.at_s),
        after_s: if is_old { finding.moved_after_s } else { occasion.evaluated_before_s() },
        document: if is_old { finding.moved_doc } else { occasion.document },
        resolution,
    };
    match moved {
        Move::Stay | Move::Count => {}
        Move::Suspect => finding.pending_since_s = Some(occasion.at_s),
        Move::Doubt => {
            finding.clear_since_s = Some(occasion.at_s);
            finding.pending = is_our_doing(finding, occasion, rule).then_some((OpenedAs::Rule, Cause::Rule));
        }
        _ => (finding.pending_since_s, finding.clear_since_s) = (None, None),
    }
    if matches!(moved, Move::Suspect | Move::Doubt) {
        (finding.moved_after_s, finding.moved_doc) = (occasion.evaluated_before_s(), occasion.document);
    }
    if finding.memory.state == Some(FindingState::Flapping) && !occasion.is_verification {
        // While it flaps, the end of its span is where the present row of passes began.
        finding.clear_since_s = passes.then(|| finding.clear_since_s.unwrap_or(occasion.at_s));
    }
    turn
}

/// Whether it is our rule that no longer fires, and not they who mended something.
fn is_our_doing(finding: &Finding, occasion: &Occasion<'_>, rule: &RuleInfo) -> bool {
    if finding.pending == Some((OpenedAs::Rule, Cause::Rule)) {
        return true;
    }
    if occasion.rule_move(rule.id) == RuleMove::Same {
        return false;
    }
    let still_fires_on_old = occasion.fired_on_old.as_ref().is_some_and(|fired| fired.contains(&rule.id));
    !(occasion.document_moved && still_fires_on_old)
}

async fn classified(
    w: &mut Writing,
    occasion: &Occasion<'_>,
    rule: &RuleInfo,
    finding: &Finding,
) -> Result<(OpenedAs, Cause)> {
    let was_fixed = finding.opens > 0 && was_fixed_before(w, finding.id).await?;
    Ok(machine::classify(&Opening {
        first_look: occasion.is_first_look,
        rule: occasion.rule_move(rule.id),
        document_moved: occasion.document_moved,
        fired_on_old: occasion.fired_on_old.as_ref().map(|fired| fired.contains(&rule.id)),
        old_rule_fires: occasion.old_rules_fire.as_ref().map(|fired| fired.contains(&rule.id)),
        evidence: rule.evidence,
        was_fixed,
        track_record: occasion.has_track_record(rule),
    }))
}

async fn was_fixed_before(w: &mut Writing, finding: i64) -> Result<bool> {
    let n: i64 = sqlx::query_scalar("SELECT COUNT(*) FROM finding_span WHERE finding_id = $1 AND resolution = 'fixed'")
        .bind(finding)
        .fetch_one(w.on())
        .await?;
    Ok(n > 0)
}

async fn write(
    w: &mut Writing,
    occasion: &Occasion<'_>,
    rule: &RuleInfo,
    finding: &Finding,
    saw: &Saw<'_>,
    is_other: bool,
) -> Result<()> {
    if saw.is_new {
        sqlx::query(
            "INSERT INTO finding (id, surface_id, rule_id, state, severity, security, first_seen_s, last_fired_s,
                                  changed_s, rule_version, revision)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $7, $7, $8, 0)",
        )
        .bind(finding.id)
        .bind(occasion.surface)
        .bind(rule.id)
        .bind(finding.state().as_str())
        .bind(finding.severity.as_str())
        .bind(i64::from(finding.security))
        .bind(occasion.at_s)
        .bind(rule.version)
        .execute(w.on())
        .await?;
    }
    let memory = &finding.memory;
    sqlx::query(
        "UPDATE finding
         SET state = $2, severity = $3, impact = $4, unjudged_since_s = $5,
             last_fired_s = CASE WHEN $6 = 1 THEN $7 ELSE last_fired_s END,
             rule_version = CASE WHEN $6 = 1 THEN $8 ELSE rule_version END,
             changed_s = CASE WHEN $9 = 1 THEN $7 ELSE changed_s END, revision = revision + $9,
             pending_since_s = $10, clear_since_s = $11, confirmations = $12, flips = $13, observed = $14,
             flips_at = $15, occ_set_id = $16, occurrences = $17, recent = $18, refuted = $19, confirmed_s = $20,
             confirmed_before_s = $21, pending_as = $22, pending_cause = $23, moved_after_s = $24, moved_doc = $25,
             judged_s = $26
         WHERE id = $1",
    )
    .bind(finding.id)
    .bind(finding.state().as_str())
    .bind(finding.severity.as_str())
    .bind(finding.impact.map(Impact::as_str))
    .bind(finding.unjudged_since_s)
    .bind(i64::from(saw.fired.is_some()))
    .bind(occasion.at_s)
    .bind(rule.version)
    .bind(i64::from(is_other))
    .bind(finding.pending_since_s)
    .bind(finding.clear_since_s)
    .bind(memory.count)
    .bind(i64::from(memory.raw.bits))
    .bind(i64::from(memory.raw.observed))
    .bind(finding.brought_to)
    .bind(finding.occ_set)
    .bind(finding.occurrences)
    .bind(i64::from(memory.recent.0))
    .bind(i64::from(memory.raw.refuted))
    .bind(memory.openings[0])
    .bind(memory.openings[1])
    .bind(finding.pending.map(|(opened_as, _)| opened_as.as_str()))
    .bind(finding.pending.map(|(_, cause)| cause.as_str()))
    .bind(finding.moved_after_s)
    .bind(finding.moved_doc)
    .bind(finding.judged_s)
    .execute(w.on())
    .await?;
    Ok(())
}

/// The span of an opening.
async fn begin_span(
    w: &mut Writing,
    occasion: &Occasion<'_>,
    finding: &Finding,
    turn: &Turn,
    opened_as: OpenedAs,
    cause: Cause,
) -> Result<()> {
    sqlx::query(
        "UPDATE finding
         SET opened_as = $2, cause = $3, resolution = NULL, opened_s = $4, closed_s = NULL, opens = $5
         WHERE id = $1",
    )
    .bind(finding.id)
    .bind(opened_as.as_str())
    .bind(cause.as_str())
    .bind(finding.opened_s)
    .bind(finding.opens)
    .execute(w.on())
    .await?;
    let (deploy, confidence) = deploys::attribute(w, occasion.target, turn.window(), cause).await?;
    sqlx::query(
        "INSERT INTO finding_span (finding_id, from_s, opened_as, cause, open_doc, occ_set_id, open_deploy, confidence,
                                   open_session)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
         ON CONFLICT (finding_id, from_s) DO UPDATE SET
             to_s = NULL, resolution = NULL, close_doc = NULL, close_deploy = NULL, close_confidence = NULL,
             close_session = NULL, occ_set_id = excluded.occ_set_id",
    )
    .bind(finding.id)
    .bind(turn.since_s)
    .bind(opened_as.as_str())
    .bind(cause.as_str())
    .bind(turn.document)
    .bind(finding.occ_set)
    .bind(deploy)
    .bind(confidence.as_str())
    .bind(occasion.session)
    .execute(w.on())
    .await?;
    Ok(())
}

fn news_of(occasion: &Occasion<'_>, rule: i64, finding: i64, kind: EventKind, note: Option<String>) -> News {
    News {
        target: occasion.target,
        surface: Some(occasion.surface),
        rule: Some(rule),
        subject: Some(finding),
        note,
        ..News::of(kind)
    }
}

/// The one event of a beginning.
async fn tell_beginning(
    w: &mut Writing,
    occasion: &Occasion<'_>,
    rule: &RuleInfo,
    finding: &Finding,
    moved: Move,
    opened_as: OpenedAs,
    cause: Cause,
) -> Result<()> {
    if moved == Move::StartFlapping {
        return tell_flapping(w, occasion, rule, finding, true).await;
    }
    let is_regression = machine::is_regression(opened_as, cause);
    let kind = if is_regression { EventKind::FindingRegressed } else { EventKind::FindingOpened };
    let news = News {
        a: (opened_as == OpenedAs::Baseline).then_some(1),
        ..news_of(occasion, rule.id, finding.id, kind, Some(format!("{opened_as} {cause}")))
    };
    events::append(w, occasion.at_s, news).await
}

/// `begins`: it was not open before.
async fn tell_flapping(
    w: &mut Writing,
    occasion: &Occasion<'_>,
    rule: &RuleInfo,
    finding: &Finding,
    begins: bool,
) -> Result<()> {
    let news = news_of(occasion, rule.id, finding.id, EventKind::FindingFlappingStarted, None);
    let news = News { a: begins.then_some(1), ..news };
    events::append(w, occasion.at_s, news).await
}

async fn tell_calm(w: &mut Writing, occasion: &Occasion<'_>, rule: &RuleInfo, finding: &Finding) -> Result<()> {
    let note = Some(finding.state().to_string());
    let news = news_of(occasion, rule.id, finding.id, EventKind::FindingFlappingStopped, note);
    events::append(w, occasion.at_s, news).await
}

async fn tell_end(
    w: &mut Writing,
    occasion: &Occasion<'_>,
    rule: i64,
    finding: i64,
    resolution: Resolution,
) -> Result<()> {
    let news = news_of(occasion, rule, finding, EventKind::FindingResolved, Some(resolution.to_string()));
    events::append(w, occasion.at_s, news).await
}

fn count_opening(
    trends: &mut Trends,
    rule: &RuleInfo,
    moved: Move,
    opened_as: OpenedAs,
    cause: Cause,
    outcome: &mut Outcome,
) {
    let is_regression = moved == Move::Open && machine::is_regression(opened_as, cause);
    outcome.opened += 1;
    outcome.regressed += i64::from(is_regression);
    let delta = trends.rule(rule.id);
    delta.regressed += i64::from(is_regression);
    if opened_as == OpenedAs::Baseline {
        outcome.baseline += 1;
        delta.baseline += 1;
    } else {
        delta.opened += 1;
    }
}

/// Closes the open span of a finding.
async fn end_span(
    w: &mut Writing,
    target: Option<i64>,
    finding: i64,
    turn: &Turn,
    resolution: Resolution,
    session: Option<i64>,
) -> Result<()> {
    // Only a fix is the work of a deploy.
    let cause = if resolution == Resolution::Fixed { Cause::Document } else { Cause::Rule };
    let (deploy, confidence) = deploys::attribute(w, target, turn.window(), cause).await?;
    sqlx::query("UPDATE finding SET resolution = $2, closed_s = $3 WHERE id = $1")
        .bind(finding)
        .bind(resolution.as_str())
        .bind(turn.since_s)
        .execute(w.on())
        .await?;
    sqlx::query(
        "UPDATE finding_span
         SET to_s = $2, resolution = $3, close_doc = $4, close_deploy = $5, close_confidence = $6, close_session = $7
         WHERE finding_id = $1 AND to_s IS NULL",
    )
    .bind(finding)
    .bind(turn.since_s)
    .bind(resolution.as_str())
    .bind(turn.document)
    .bind(deploy)
    .bind(confidence.as_str())
    .bind(session)
    .execute(w.on())
    .await?;
    Ok(())
}

/// Closes or puts away every finding of a surface for a reason that is not a judgement. Gives how many were open. `session` is
/// the number that the recorded conversation will have, if one is kept.
pub(crate) async fn end_all(
    w: &mut Writing,
    trends: &mut Trends,
    surface: i64,
    target: Option<i64>,
    signal: Signal,
    at_s: i64,
    session: Option<i64>,
) -> Result<i64> {
    let look =
        Look { signal, at_s, is_verification: false, is_first: false, is_settled: false, is_same_document: true };
    let mut ended = 0;
    for (_, rule, mut finding) in load(w, &[surface]).await? {
        // No judgement, so the kind of evidence plays no part.
        let (after, moved) = machine::step(&finding.memory, &look, Evidence::Document);
        if moved == Move::Stay {
            continue;
        }
        let (was_open, places) = (finding.is_open(), finding.counted_places());
        finding.memory = after;
        sqlx::query(
            "UPDATE finding
             SET state = $2, changed_s = $3, revision = revision + 1, pending_since_s = NULL, clear_since_s = NULL,
                 confirmations = 0, recent = 1, flips = 0, refuted = 0, observed = 0, confirmed_s = NULL,
                 confirmed_before_s = NULL, pending_as = NULL, pending_cause = NULL, moved_after_s = NULL,
                 moved_doc = NULL
             WHERE id = $1",
        )
        .bind(finding.id)
        .bind(finding.state().as_str())
        .bind(at_s)
        .execute(w.on())
        .await?;
        let (Move::Resolve(resolution) | Move::Retire(resolution)) = moved else { continue };
        if was_open {
            let turn = Turn { since_s: at_s, after_s: None, document: None, resolution: Some(resolution) };
            end_span(w, target, finding.id, &turn, resolution, session).await?;
            let news = News {
                target,
                surface: Some(surface),
                rule: Some(rule),
                subject: Some(finding.id),
                note: Some(resolution.to_string()),
                ..News::of(EventKind::FindingResolved)
            };
            events::append(w, at_s, news).await?;
            let delta = trends.rule(rule);
            delta.failing -= 1;
            delta.occurrences -= places;
            delta.resolved += 1;
            ended += 1;
        }
    }
    Ok(ended)
}

/// Nobody shows the surface any more: its findings are retired, its facts end, it is no longer counted or scheduled.
pub(crate) async fn retire_surface(w: &mut Writing, trends: &mut Trends, surface: i64, now_s: i64) -> Result<()> {
    end_all(w, trends, surface, None, Signal::TargetRetired, now_s, None).await?;
    incidents::leave(w, &mut BTreeSet::new(), surface, now_s).await?;
    facts::end_all(w, trends, surface, now_s).await?;
    let judged: Option<Option<Vec<u8>>> =
        sqlx::query_scalar("SELECT judged FROM surface WHERE id = $1").bind(surface).fetch_optional(w.on()).await?;
    for rule in Bits::from_bytes(&judged.flatten().unwrap_or_default()).iter() {
        trends.rule(rule).evaluated -= 1;
    }
    sqlx::query("UPDATE reach_span SET to_s = $2 WHERE surface_id = $1 AND to_s IS NULL")
        .bind(surface)
        .bind(now_s)
        .execute(w.on())
        .await?;
    sqlx::query("UPDATE doc_span SET to_s = $2 WHERE surface_id = $1 AND to_s IS NULL")
        .bind(surface)
        .bind(now_s)
        .execute(w.on())
        .await?;
    sqlx::query("DELETE FROM lease WHERE kind = 'surface' AND subject_id = $1").bind(surface).execute(w.on()).await?;
    sqlx::query(
        "UPDATE surface
         SET retired_s = $2, next_due_s = NULL, verifying = 0, judged = NULL, evaluations = 0, first_evaluated_s = NULL,
             eval_id = NULL, document_id = NULL, etag = NULL, last_modified = NULL, reach = 'retired',
             n_blocking = 0, n_error = 0, n_warn = 0, n_info = 0, n_security = 0
         WHERE id = $1",
    )
    .bind(surface)
    .bind(now_s)
    .execute(w.on())
    .await?;
    Ok(())
}
